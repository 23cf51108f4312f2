//! A device ELF with added code, one control block and a site table.
//!
//! The two steps: [`Plan::new`] says at which virtual addresses control block and code will be, [`Plan::finish`] takes
//! the code that was laid out for that address.
//!
//! Every byte of the original image stays at its virtual address, except: the program headers (which grow over the note
//! that lies after them), the descriptors of changed kernels, and the entries of the dynamic table that say where the
//! symbol tables are. Symbol tables, hash tables and the note move into new segments:
//!
//! - read, write: the control block.
//! - read, execute: the code.
//! - read: the metadata note, `.dynsym`, the hash tables, `.dynstr`; the program headers where they could not grow in
//!   place.

use std::collections::BTreeMap;
use std::ops::Range;

use object::{LittleEndian, pod};

use super::headers::{self, PAGE, TABLE_ALIGN, Tables, address_behind};
use super::symbol_tables;
use crate::code_object::metadata::{self, NOTE_OWNER};
use crate::code_object::{CONTROL_SYMBOL, CodeObject, DESCRIPTOR_SIZE, ENTRY_ALIGN, KernelDescriptor};
use crate::elf::constants::{
    DT_GNU_HASH, DT_HASH, DT_STRSZ, DT_STRTAB, DT_SYMTAB, DT_VERSYM, Dyn64, DynamicTag, PF_R, PF_W, PF_X, PT_LOAD,
    PT_NOTE, PT_PHDR, ProgramFlags, SHF_ALLOC, SHF_EXECINSTR, SHF_INFO_LINK, SHF_WRITE, SHT_DYNSYM, SHT_GNU_HASH,
    SHT_GNU_VERSYM, SHT_GROUP, SHT_HASH, SHT_NOTE, SHT_PROGBITS, SHT_REL, SHT_RELA, SHT_STRTAB, SHT_SYMTAB,
    SHT_SYMTAB_SHNDX, STB_GLOBAL, STB_LOCAL, STT_FUNC, STT_OBJECT, STV_DEFAULT, STV_PROTECTED, SectionFlags,
    SymbolInfo,
};
use crate::elf::{Elf, PROGRAM_HEADER_SIZE, Section, Segment, Symbol};
use wavetap_base::bytes::{self, align_up};
use wavetap_base::error::{Error, Result, ResultExt};

pub use wavetap_base::added::{CODE_SECTION, CONTROL_SECTION, MAP_SECTION};

/// Alignment of the control block: a cache line, so that its atomics share one with nothing else.
const CONTROL_ALIGN: u64 = 64;

/// Offset of the value within an entry of the dynamic table.
const VALUE_OFFSET: u64 = std::mem::offset_of!(Dyn64<LittleEndian>, d_val) as u64;

/// Sections that are written anew after the code.
const MOVED: [object::elf::SectionType; 4] = [SHT_DYNSYM, SHT_STRTAB, SHT_HASH, SHT_GNU_HASH];

/// How many segments and loaded sections are added.
const NEW_SEGMENTS: usize = 3;
const NEW_SECTIONS: usize = 2;

/// Offset and address of something that is added.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    address: u64,
}

/// A name for a piece of the added code: becomes a local function symbol, for people who read a disassembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSymbol {
    /// The symbol's name.
    pub name: String,
    /// Virtual address within the added code.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
}

/// What is new in a rewritten object.
#[derive(Debug, Clone, Copy)]
pub struct Changes<'c> {
    /// The code, for [`Plan::code_address`], padding after it included.
    pub code: &'c [u8],
    /// Names for parts of the code.
    pub symbols: &'c [CodeSymbol],
    /// New kernel descriptors by the descriptor's virtual address.
    pub descriptors: &'c [(u64, KernelDescriptor)],
    /// The whole metadata, changed and encoded.
    pub metadata: &'c [u8],
    /// Initial contents of the control block, as long as was planned.
    pub control: &'c [u8],
    /// The compressed site table.
    pub map: &'c [u8],
}

/// Where things will be in the rewritten object.
#[derive(Debug, Clone)]
pub struct Plan<'o, 'd> {
    object: &'o CodeObject<'d>,
    /// Bytes of the original file that stay; after them come only tables that are written anew.
    kept: u64,
    control: Place,
    control_size: u64,
    code: Place,
    note: usize,
    dynamic_symbols: usize,
}

impl<'o, 'd> Plan<'o, 'd> {
    /// Plans the rewrite of an object with a control block of `control_size` bytes.
    ///
    /// # Errors
    /// Unsupported if the object was rewritten before or has something that cannot be kept in step (symbol versions,
    /// section groups, no metadata note, segments out of order).
    pub fn new(object: &'o CodeObject<'d>, control_size: u64) -> Result<Self> {
        let elf = object.elf();
        if object.is_rewritten() {
            return Err(Error::unsupported(format!(
                "the code object has {CONTROL_SYMBOL} already: it was rewritten before"
            )));
        }
        let not_kept = [SHT_GNU_VERSYM, SHT_GROUP, SHT_SYMTAB_SHNDX];
        if let Some(section) = elf.sections.iter().find(|section| not_kept.contains(&section.kind)) {
            return Err(Error::unsupported(format!(
                "the code object has a section {} of type {:#x}",
                section.name, section.kind
            )));
        }
        let dynamic_symbols = elf.sections.iter().position(|section| section.kind == SHT_DYNSYM);
        let dynamic_symbols = dynamic_symbols
            .ok_or_else(|| Error::unsupported("the code object has no .dynsym to name the control block in"))?;
        check_dynamic(elf, dynamic_symbols)?;
        object.check_tables()?;
        let metadata = object.metadata().ok_or_else(|| Error::unsupported("the code object has no metadata note"))?;
        let descriptors: Vec<Range<u64>> = metadata.descriptors().collect();
        let holds_notes = |segment: &Segment| {
            let end = segment.offset + segment.file_size;
            let holds = |range: &Range<u64>| segment.offset <= range.start && range.end <= end;
            if segment.kind == PT_NOTE { descriptors.iter().filter(|range| holds(range)).count() } else { 0 }
        };
        let note = elf.segments.iter().position(|segment| holds_notes(segment) > 0);
        let note =
            note.ok_or_else(|| Error::unsupported("the code object's metadata note is in no PT_NOTE segment"))?;
        if holds_notes(&elf.segments[note]) < descriptors.len()
            || elf.segments.iter().filter(|segment| holds_notes(segment) > 0).count() > 1
        {
            return Err(Error::unsupported("the code object's metadata note is in two PT_NOTE segments"));
        }
        let end = headers::image_end(elf)?;
        let kept = kept_bytes(elf);
        let offset = align_up(kept, CONTROL_ALIGN);
        let control = Place { offset, address: address_behind(end, offset) };
        let offset = align_up(control.offset + control_size, ENTRY_ALIGN);
        let code = Place { offset, address: address_behind(control.address + control_size, offset) };
        Ok(Plan { object, kept, control, control_size, code, note, dynamic_symbols })
    }

    /// Size of the control block in bytes, as planned.
    #[must_use]
    pub fn control_size(&self) -> u64 {
        self.control_size
    }

    /// Virtual address of the control block.
    #[must_use]
    pub fn control_address(&self) -> u64 {
        self.control.address
    }

    /// Virtual address at which the added code starts, on a multiple of 256.
    #[must_use]
    pub fn code_address(&self) -> u64 {
        self.code.address
    }

    /// Writes the rewritten object. Without new descriptors nothing would use the new code, and the original's bytes
    /// come back.
    ///
    /// # Errors
    /// Internal if the changes do not fit the plan; a limit if a table would get too large.
    pub fn finish(&self, changes: &Changes<'_>) -> Result<Vec<u8>> {
        if changes.descriptors.is_empty() {
            return Ok(self.object.data().to_vec());
        }
        let out = Writer::new(self, changes)?.write().within(|| "writing the code object".into())?;
        // A fault of ours must not reach a loader.
        let check = CodeObject::parse(&out)
            .map_err(|error| Error::internal(format!("the rewritten object does not parse: {error}")))?;
        let lost = check.kernels().len() != self.object.kernels().len()
            || check.malformed().len() != self.object.malformed().len();
        if !check.is_rewritten() || lost {
            return Err(Error::internal("the rewritten object lost its control block or kernels"));
        }
        Ok(out)
    }
}

/// The dynamic table names no table that the section headers do not: what is not found through them would be left
/// after, out of date.
fn check_dynamic(elf: &Elf<'_>, symbols: usize) -> Result<()> {
    if !elf.sections[symbols].is_alloc() {
        return Err(Error::unsupported("the code object's .dynsym is not loaded"));
    }
    let named = [(DT_HASH, Some(SHT_HASH)), (DT_GNU_HASH, Some(SHT_GNU_HASH)), (DT_VERSYM, None)];
    for (tag, kind) in named {
        let in_section = |section: &Section<'_>| {
            Some(section.kind) == kind && section.link as usize == symbols && section.is_alloc()
        };
        let sections = elf.sections.iter().filter(|section| in_section(section)).count();
        let entries = elf.dynamic()?.iter().filter(|entry| entry.tag == tag).count();
        if entries != sections {
            let message = format!(
                "the dynamic table names {entries} tables with tag {:#x}, the section headers {sections}",
                tag.0
            );
            return Err(Error::unsupported(message));
        }
    }
    Ok(())
}

/// The file up to the end of what stays in place: everything but tables that are written anew and lie last.
fn kept_bytes(elf: &Elf<'_>) -> u64 {
    let rebuilt = rebuilt_tables(elf);
    let segments = elf.segments.iter().map(|segment| segment.offset + segment.file_size);
    let sections = elf
        .sections
        .iter()
        .enumerate()
        .filter(|(index, _)| !rebuilt.contains(index))
        .map(|(_, section)| if section.has_contents() { section.offset + section.size } else { section.offset });
    let headers = elf.header.segments_offset + elf.segments.len() as u64 * PROGRAM_HEADER_SIZE;
    segments.chain(sections).max().unwrap_or(0).max(headers).min(elf.data.len() as u64)
}

/// The sections outside the image that are written anew: `.symtab`, its names, the section names.
fn rebuilt_tables(elf: &Elf<'_>) -> Vec<usize> {
    let mut tables = vec![usize::from(elf.header.names_index)];
    if let Some(index) = elf.sections.iter().position(|section| section.kind == SHT_SYMTAB) {
        tables.extend([index, elf.sections[index].link as usize]);
    }
    tables.retain(|&index| elf.sections.get(index).is_some_and(|section| !section.is_alloc()));
    tables
}

struct Writer<'p, 'd> {
    plan: &'p Plan<'p, 'd>,
    elf: &'p Elf<'d>,
    changes: &'p Changes<'p>,
    out: Vec<u8>,
    segments: Vec<Segment>,
    segments_offset: u64,
    /// In their new order; indices of original sections are shifted by `shift`.
    sections: Vec<Section<'d>>,
    /// Index of the first added section.
    inserted: usize,
    /// New contents of string tables by original section index.
    strings: BTreeMap<usize, Vec<u8>>,
}

impl<'p, 'd> Writer<'p, 'd> {
    fn new(plan: &'p Plan<'p, 'd>, changes: &'p Changes<'p>) -> Result<Self> {
        let elf = plan.object.elf();
        if changes.control.len() as u64 != plan.control_size {
            return Err(Error::internal(format!(
                "a control block of {} bytes, {} were planned",
                changes.control.len(),
                plan.control_size
            )));
        }
        if elf.sections.iter().any(|section| [CODE_SECTION, CONTROL_SECTION, MAP_SECTION].contains(&section.name)) {
            return Err(Error::unsupported("the code object has sections of a rewritten one"));
        }
        let inserted = elf.sections.iter().rposition(Section::is_alloc).map_or(elf.sections.len(), |last| last + 1);
        // An object is large: as it grows there is neither another one nor room for one.
        let symbols: usize =
            changes.symbols.iter().map(|symbol| size_of::<symbol_tables::Entry>() + symbol.name.len() + 1).sum();
        let loaded: u64 =
            elf.sections.iter().filter(|section| MOVED.contains(&section.kind)).map(|section| section.size).sum();
        let tables = elf.data.len() - plan.kept as usize
            + loaded as usize
            + symbols
            + changes.metadata.len()
            + changes.map.len();
        let mut out = Vec::with_capacity(plan.code.offset as usize + changes.code.len() + tables + PAGE as usize);
        out.extend_from_slice(&elf.data[..plan.kept as usize]);
        let (segments, segments_offset) = (elf.segments.clone(), elf.header.segments_offset);
        let (sections, strings) = (elf.sections.clone(), BTreeMap::new());
        Ok(Writer { plan, elf, changes, out, segments, segments_offset, sections, inserted, strings })
    }

    fn write(mut self) -> Result<Vec<u8>> {
        self.put_descriptors()?;
        self.put_control_and_code()?;
        self.put_loaded_tables()?;
        self.put_symbols()?;
        self.put_sections()
    }

    /// The new index of an original section.
    fn renumbered(&self, index: usize) -> usize {
        if index >= self.inserted { index + NEW_SECTIONS } else { index }
    }

    fn put_descriptors(&mut self) -> Result<()> {
        for (number, (address, descriptor)) in self.changes.descriptors.iter().enumerate() {
            let kernel = self.plan.object.kernels().iter().find(|kernel| kernel.descriptor_address == *address);
            let kernel = kernel.ok_or_else(|| {
                Error::internal(format!("a new descriptor for address {address:#x}, where there is none"))
            })?;
            if self.changes.descriptors[..number].iter().any(|(other, _)| other == address) {
                return Err(Error::internal(format!("two new descriptors for address {address:#x}")));
            }
            let entry = address.wrapping_add_signed(descriptor.entry_byte_offset());
            let code = self.plan.code.address..self.plan.code.address + self.changes.code.len() as u64;
            if !entry.is_multiple_of(ENTRY_ALIGN) || !code.contains(&entry) {
                return Err(Error::internal(format!(
                    "kernel {}: its new entry {entry:#x} is not in the new code",
                    kernel.name
                )));
            }
            debug_assert_eq!(descriptor.bytes().len() as u64, DESCRIPTOR_SIZE);
            bytes::put(&mut self.out, kernel.descriptor_offset, descriptor.bytes())?;
        }
        Ok(())
    }

    fn put_control_and_code(&mut self) -> Result<()> {
        let (control, code) = (self.plan.control, self.plan.code);
        let added = [(control, self.changes.control, PF_R | PF_W), (code, self.changes.code, PF_R | PF_X)];
        for (place, contents, flags) in added {
            self.out.resize(place.offset as usize, 0);
            self.out.extend_from_slice(contents);
            self.add_load(place, contents.len() as u64, flags);
        }
        let loaded = |name_offset, flags: SectionFlags, place: Place, size: usize, align| Section {
            name: "",
            name_offset,
            kind: SHT_PROGBITS,
            flags: SHF_ALLOC | flags,
            address: place.address,
            offset: place.offset,
            size: size as u64,
            link: 0,
            info: 0,
            align,
            entry_size: 0,
        };
        let names = [self.add_section_name(CONTROL_SECTION)?, self.add_section_name(CODE_SECTION)?];
        let control = loaded(names[0], SHF_WRITE, control, self.changes.control.len(), CONTROL_ALIGN);
        let code = loaded(names[1], SHF_EXECINSTR, code, self.changes.code.len(), ENTRY_ALIGN);
        let count = self.sections.len();
        for section in &mut self.sections {
            section.link = shifted(section.link, self.inserted, count);
            if section.flags.contains(SHF_INFO_LINK) || [SHT_REL, SHT_RELA].contains(&section.kind) {
                section.info = shifted(section.info, self.inserted, count);
            }
        }
        self.sections.splice(self.inserted..self.inserted, [control, code]);
        Ok(())
    }

    /// Adds a segment after the last loaded one.
    fn add_load(&mut self, place: Place, size: u64, flags: ProgramFlags) {
        let Place { offset, address } = place;
        let load = Segment {
            kind: PT_LOAD,
            flags,
            offset,
            address,
            physical_address: address,
            file_size: size,
            memory_size: size,
            align: PAGE,
        };
        let behind = self.segments.iter().rposition(Segment::is_load).map_or(self.segments.len(), |last| last + 1);
        self.segments.insert(behind, load);
    }

    /// The contents of an original string table, to be added to.
    fn string_table(&mut self, index: usize) -> Result<&mut Vec<u8>> {
        let original =
            self.elf.sections.get(index).ok_or_else(|| Error::malformed(format!("no section {index} for names")))?;
        let original = self.elf.contents(original)?;
        Ok(self.strings.entry(index).or_insert_with(|| original.to_vec()))
    }

    fn add_section_name(&mut self, name: &str) -> Result<u32> {
        let index = usize::from(self.elf.header.names_index);
        headers::add_name(self.string_table(index)?, name)
    }

    /// The read-only segment: note, dynamic symbols and what belongs to them, and the program headers if they cannot
    /// stay where they are.
    fn put_loaded_tables(&mut self) -> Result<()> {
        let code_end = self.plan.code.address + self.changes.code.len() as u64;
        let start = align_up(self.out.len() as u64, TABLE_ALIGN);
        let place = Place { offset: start, address: address_behind(code_end, start) };
        self.out.resize(start as usize, 0);
        let count = self.segments.len() + 1;
        let size = count as u64 * PROGRAM_HEADER_SIZE;
        let in_place = self.may_grow(self.elf.header.segments_offset, size);
        let table = if in_place {
            self.elf.header.segments_offset
        } else {
            headers::append(&mut self.out, TABLE_ALIGN, &vec![0; size as usize])
        };
        let moved = |offset: u64| place.address + (offset - place.offset);

        self.move_note(place)?;
        self.move_dynamic_symbols(place)?;

        let size = self.out.len() as u64 - place.offset;
        self.add_load(place, size, PF_R);
        debug_assert_eq!(self.segments.len(), self.elf.segments.len() + NEW_SEGMENTS);
        for segment in self.segments.iter_mut().filter(|segment| segment.kind == PT_PHDR) {
            let size = count as u64 * PROGRAM_HEADER_SIZE;
            if !in_place {
                (segment.offset, segment.address, segment.physical_address) = (table, moved(table), moved(table));
            }
            (segment.file_size, segment.memory_size) = (size, size);
        }
        self.segments_offset = table;
        bytes::put(&mut self.out, table, &headers::encode_segments(&self.segments))
    }

    /// Whether the program header table may grow to `size` bytes where it is: after it lie only things that move away,
    /// and a segment maps it.
    fn may_grow(&self, start: u64, size: u64) -> bool {
        let end = start + size;
        let overlaps = |offset: u64, size: u64| size != 0 && offset < end && offset + size > start;
        let note = self.elf.segments[self.plan.note];
        let moves = |index: usize, section: &Section<'_>| {
            let in_note = section.kind == SHT_NOTE
                && section.offset >= note.offset
                && section.offset + section.size <= note.offset + note.file_size;
            in_note || self.dynamic_tables().contains(&index)
        };
        let mapped = self.elf.loads().any(|load| load.offset <= start && end <= load.offset + load.file_size);
        let segments = self.elf.segments.iter().enumerate().all(|(index, segment)| {
            let fine = segment.is_load() || segment.kind == PT_PHDR || index == self.plan.note;
            fine || !overlaps(segment.offset, segment.file_size)
        });
        let sections = self.elf.sections.iter().enumerate();
        let sections = sections
            .filter(|(_, section)| section.has_contents())
            .all(|(index, section)| moves(index, section) || !overlaps(section.offset, section.size));
        mapped && segments && sections
    }

    /// Original indices of `.dynsym`, its names and its hash tables, where they are loaded.
    fn dynamic_tables(&self) -> Vec<usize> {
        let symbols = self.plan.dynamic_symbols;
        let hashes = self.elf.sections.iter().enumerate().filter(|(_, section)| {
            [SHT_HASH, SHT_GNU_HASH].contains(&section.kind) && section.link as usize == symbols
        });
        let names = self.elf.sections[symbols].link as usize;
        let mut tables = vec![symbols, names];
        tables.extend(hashes.map(|(index, _)| index));
        tables.retain(|&index| self.elf.sections[index].is_alloc());
        tables
    }

    /// Moves the notes' segment with the changed metadata, and the sections in it.
    fn move_note(&mut self, segment_place: Place) -> Result<()> {
        let old = self.elf.segments[self.plan.note];
        let object_metadata = self.plan.object.metadata().ok_or_else(|| Error::internal("the metadata was lost"))?;
        let contents = bytes::slice(self.elf.data, old.offset, old.file_size, "notes")?;
        let header_size = 12 + align_up(NOTE_OWNER.len() as u64, 4);
        let mut new = Vec::new();
        // What is cut out, and what is there in its place. One note says what all said.
        let mut cuts: Vec<(Range<u64>, u64)> = Vec::new();
        let mut kept = 0;
        for (index, descriptor) in object_metadata.descriptors().enumerate() {
            let start = (descriptor.start - old.offset).checked_sub(header_size).filter(|start| *start >= kept);
            let start = start.ok_or_else(|| Error::internal("a metadata note has no room for its header"))?;
            new.extend_from_slice(&contents[kept as usize..start as usize]);
            if index == 0 {
                new.extend_from_slice(&metadata::note_bytes(self.changes.metadata));
            }
            kept = align_up(descriptor.end - old.offset, 4).min(contents.len() as u64);
            cuts.push((start..kept, new.len() as u64));
        }
        new.extend_from_slice(&contents[kept as usize..]);

        let offset = headers::append(&mut self.out, headers::small_align(old.align)?.max(4), &new);
        let address = segment_place.address + (offset - segment_place.offset);
        let moved = self
            .segments
            .iter_mut()
            .find(|segment| **segment == old)
            .ok_or_else(|| Error::internal("the note segment was lost"))?;
        *moved = Segment {
            offset,
            address,
            physical_address: address,
            file_size: new.len() as u64,
            memory_size: new.len() as u64,
            ..old
        };
        for index in 0..self.elf.sections.len() {
            let section = self.elf.sections[index];
            if section.kind != SHT_NOTE
                || section.offset < old.offset
                || section.offset + section.size > old.offset + old.file_size
            {
                continue;
            }
            // A boundary before the metadata stays, one after it moves with what is after.
            let boundary = |at: u64| match cuts.iter().rfind(|(cut, _)| cut.start < at) {
                Some((cut, end)) => at.saturating_sub(cut.end) + end,
                None => at,
            };
            let (start, end) =
                (boundary(section.offset - old.offset), boundary(section.offset + section.size - old.offset));
            let new_index = self.renumbered(index);
            let new_section = &mut self.sections[new_index];
            new_section.offset = offset + start;
            new_section.address = address + start;
            new_section.size = end - start;
        }
        Ok(())
    }

    /// Writes `.dynsym` with the control symbol, its names and its hash tables, and points the dynamic table to them.
    fn move_dynamic_symbols(&mut self, place: Place) -> Result<()> {
        let index = self.plan.dynamic_symbols;
        let section = self.elf.sections[index];
        let names_index = section.link as usize;
        let name = headers::add_name(self.string_table(names_index)?, CONTROL_SYMBOL)?;
        let mut table = symbol_tables::entries(self.elf.contents(&section)?)?;
        symbol_tables::renumber(&mut table, self.inserted, NEW_SECTIONS)?;
        table.push(symbol_tables::entry(&self.control_symbol()?, name));
        let mut names: Vec<&str> = self.plan.object.dynamic_symbols().iter().map(|symbol| symbol.name).collect();
        names.push(CONTROL_SYMBOL);

        for index in self.dynamic_tables() {
            let old = self.elf.sections[index];
            let (contents, tag) = match old.kind {
                SHT_DYNSYM => (pod::bytes_of_slice(&table).to_vec(), DT_SYMTAB),
                SHT_HASH => (symbol_tables::sysv_table(&names), DT_HASH),
                SHT_GNU_HASH => {
                    let first =
                        symbol_tables::gnu_first(self.elf.contents(&old)?).map_err(|error| error.at(old.offset))?;
                    (symbol_tables::gnu_table(&names, first), DT_GNU_HASH)
                }
                _ => (self.string_table(index)?.clone(), DT_STRTAB),
            };
            let offset = headers::append(&mut self.out, headers::small_align(old.align)?, &contents);
            let address = place.address + (offset - place.offset);
            let new_index = self.renumbered(index);
            let new = &mut self.sections[new_index];
            (new.offset, new.address, new.size) = (offset, address, contents.len() as u64);
            self.set_dynamic(tag, address, Some(old.address))?;
            if tag == DT_STRTAB {
                self.set_dynamic(DT_STRSZ, contents.len() as u64, None)?;
            }
        }
        Ok(())
    }

    /// Changes an entry of the dynamic table, which must be there and have the expected value.
    fn set_dynamic(&mut self, tag: DynamicTag, value: u64, expected: Option<u64>) -> Result<()> {
        let wrong = |at| {
            Error::unsupported(format!("the dynamic table's entry {:#x} does not agree with the sections", tag.0))
                .at(at)
        };
        let entry = self.elf.dynamic()?.into_iter().find(|entry| entry.tag == tag);
        let entry = entry.ok_or_else(|| wrong(self.elf.section(".dynamic").map_or(0, |section| section.offset)))?;
        if expected.is_some_and(|expected| expected != entry.value) {
            return Err(wrong(entry.file_offset));
        }
        bytes::put(&mut self.out, entry.file_offset + VALUE_OFFSET, &value.to_le_bytes())
    }

    fn control_symbol(&self) -> Result<Symbol<'static>> {
        Ok(Symbol {
            name: CONTROL_SYMBOL,
            address: self.plan.control.address,
            size: self.plan.control_size,
            info: SymbolInfo::new(STB_GLOBAL, STT_OBJECT),
            other: STV_PROTECTED.into(),
            section: symbol_tables::section_number(self.inserted)?,
        })
    }

    /// Writes `.symtab` with the control symbol and, among the local ones, the names of the new code. A stripped object
    /// stays stripped.
    fn put_symbols(&mut self) -> Result<()> {
        let Some(index) = self.elf.sections.iter().position(|section| section.kind == SHT_SYMTAB) else {
            return Ok(());
        };
        let section = self.elf.sections[index];
        let names_index = section.link as usize;
        let mut table = symbol_tables::entries(self.elf.contents(&section)?)?;
        symbol_tables::renumber(&mut table, self.inserted, NEW_SECTIONS)?;
        // Relocations that name symbols by index would have to be changed with them.
        let named_by_index = self
            .elf
            .sections
            .iter()
            .any(|other| [SHT_REL, SHT_RELA].contains(&other.kind) && other.link as usize == index);
        let mut local = Vec::new();
        if !named_by_index {
            for symbol in self.changes.symbols {
                let name = headers::add_name(self.string_table(names_index)?, &symbol.name)?;
                let section = symbol_tables::section_number(self.inserted + 1)?;
                let (info, other) = (SymbolInfo::new(STB_LOCAL, STT_FUNC), STV_DEFAULT.into());
                local.push(symbol_tables::entry(
                    &Symbol { name: "", address: symbol.address, size: symbol.size, info, other, section },
                    name,
                ));
            }
        }
        let first_global = section.info as usize;
        if first_global > table.len() {
            return Err(
                Error::malformed(".symtab says that its first global symbol is after its end").at(section.offset)
            );
        }
        let added = local.len() as u32;
        table.splice(first_global..first_global, local);
        let name = headers::add_name(self.string_table(names_index)?, CONTROL_SYMBOL)?;
        table.push(symbol_tables::entry(&self.control_symbol()?, name));
        let table = pod::bytes_of_slice(&table);
        let offset = headers::append(&mut self.out, TABLE_ALIGN, table);
        let new_index = self.renumbered(index);
        let new = &mut self.sections[new_index];
        (new.offset, new.size, new.info) = (offset, table.len() as u64, section.info + added);
        Ok(())
    }

    /// Writes what is not loaded: names, the site table, and last of all the section headers.
    fn put_sections(mut self) -> Result<Vec<u8>> {
        let name_offset = self.add_section_name(MAP_SECTION)?;
        for (index, contents) in std::mem::take(&mut self.strings) {
            if self.elf.sections[index].is_alloc() {
                continue;
            }
            let offset = headers::append(&mut self.out, 1, &contents);
            let new_index = self.renumbered(index);
            let new = &mut self.sections[new_index];
            (new.offset, new.size) = (offset, contents.len() as u64);
        }
        let offset = headers::append(&mut self.out, TABLE_ALIGN, self.changes.map);
        self.sections.push(Section {
            name: "",
            name_offset,
            kind: SHT_PROGBITS,
            flags: SectionFlags(0),
            address: 0,
            offset,
            size: self.changes.map.len() as u64,
            link: 0,
            info: 0,
            align: 1,
            entry_size: 0,
        });
        let sections_offset = headers::append(&mut self.out, TABLE_ALIGN, &headers::encode_sections(&self.sections));
        // Loaders take the highest place that any section names for the end of the file.
        if let Some(section) = self.sections.iter().find(|section| section.offset > sections_offset) {
            return Err(Error::unsupported(format!(
                "the section {} without contents is after the end of the file",
                section.name
            ))
            .at(section.offset));
        }
        let tables = Tables {
            segments_offset: self.segments_offset,
            segment_count: self.segments.len(),
            sections_offset,
            section_count: self.sections.len(),
            names_index: self.renumbered(self.elf.header.names_index.into()),
        };
        tables.enter(&mut self.out)?;
        Ok(self.out)
    }
}

/// A section index in a header field after the insertion.
fn shifted(index: u32, inserted: usize, count: usize) -> u32 {
    if (inserted..count).contains(&(index as usize)) { index + NEW_SECTIONS as u32 } else { index }
}
