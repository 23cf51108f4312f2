//! A device ELF with one kernel: what is loaded beside a code object that a program has loaded already, so that this
//! one kernel has another descriptor and other code.
//!
//! Everything but the tables is at a fixed virtual address ([`CONTROL`], [`CODE`]), so that the code can be made before
//! its size is known. Segments are in the order of their addresses, each at its address in the file:
//!
//! - read: the headers.
//! - read, write: the control block.
//! - read, execute: the code.
//! - read: the metadata note, symbols, hash tables, names, the descriptor, the dynamic table.

use std::ops::Range;

use object::LittleEndian as LE;
use object::pod;
use rmpv::Value;

use super::headers::{self, PAGE, TABLE_ALIGN, Tables};
use super::symbol_tables;
use crate::code_object::metadata::{encode, note_bytes};
use crate::code_object::{
    CONTROL_SYMBOL, CodeObject, DESCRIPTOR_SIZE, DESCRIPTOR_SUFFIX, Kernel, KernelDescriptor, KernelMetadata,
};
use crate::elf::constants::{
    DT_GNU_HASH, DT_HASH, DT_NULL, DT_STRSZ, DT_STRTAB, DT_SYMENT, DT_SYMTAB, DynamicTag, PF_R, PF_W, PF_X, PT_DYNAMIC,
    PT_LOAD, PT_NOTE, PT_PHDR, ProgramFlags, ProgramType, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHN_UNDEF, SHT_DYNAMIC,
    SHT_DYNSYM, SHT_GNU_HASH, SHT_HASH, SHT_NOTE, SHT_NULL, SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB, STB_GLOBAL,
    STB_LOCAL, STT_FUNC, STT_NOTYPE, STT_OBJECT, STV_DEFAULT, STV_PROTECTED, SectionFlags, SectionType, Sym64,
    SymbolInfo, SymbolType,
};
use crate::elf::{FILE_HEADER_SIZE, PROGRAM_HEADER_SIZE, Section, Segment, Symbol};
use wavetap_base::added::{CODE_SECTION, CONTROL_SECTION};
use wavetap_base::bytes::{self, align_up};
use wavetap_base::error::{Error, Result};

/// Virtual address of the control block.
pub const CONTROL: u64 = PAGE;
/// Virtual address of the code.
pub const CODE: u64 = 2 * PAGE;

/// The order of the sections that others name.
const CONTROL_NUMBER: usize = 1;
const CODE_NUMBER: usize = 2;
const DESCRIPTOR_NUMBER: usize = 3;
const DYNAMIC_SYMBOLS_NUMBER: u32 = 5;
const DYNAMIC_NAMES_NUMBER: u32 = 8;
const NAMES_NUMBER: u32 = 11;

/// Size of an entry of the dynamic table: tag and value.
const DYNAMIC_ENTRY: u64 = 16;
/// How many program headers there are.
const SEGMENTS: u64 = 7;
/// The first ABI version whose metadata is of version 1.2: that of code objects v5.
const METADATA_1_2: u8 = 3;

/// What such an object has.
#[derive(Debug, Clone, Copy)]
pub struct KernelObject<'k> {
    /// The code object that the kernel is from: processor, features and version are the same.
    pub original: &'k Original,
    /// The kernel's name.
    pub name: &'k str,
    /// The new kernel's metadata.
    pub metadata: &'k KernelMetadata,
    /// The new descriptor, but for its entry.
    pub descriptor: &'k KernelDescriptor,
    /// Virtual address of its first instruction.
    pub entry: u64,
    /// The control block.
    pub control: &'k [u8],
    /// The code, for [`CODE`], padding after it included.
    pub code: &'k [u8],
}

/// What an object of one kernel has from the code object that the kernel is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    header: Vec<u8>,
    abi_version: u8,
    target: String,
}

impl Original {
    /// Of a code object.
    ///
    /// # Errors
    /// Malformed if it ends within its header.
    pub fn of(object: &CodeObject<'_>) -> Result<Original> {
        Ok(Original {
            header: bytes::slice(object.data(), 0, FILE_HEADER_SIZE, "ELF header")?.to_vec(),
            abi_version: object.elf().header.abi_version,
            target: object.target_id(),
        })
    }
}

/// A file that grows, and its sections.
struct Growing {
    out: Vec<u8>,
    names: Vec<u8>,
    sections: Vec<Section<'static>>,
}

impl Growing {
    /// An empty file, the place of its headers left free.
    fn new() -> Growing {
        let mut file = Growing { out: vec![0; CONTROL as usize], names: vec![0], sections: Vec::new() };
        file.push(0, (SHT_NULL, SectionFlags(0)), 0, 0..0);
        file
    }

    fn push(&mut self, name_offset: u32, (kind, flags): (SectionType, SectionFlags), align: u64, at: Range<u64>) {
        let address = if flags.contains(SHF_ALLOC) { at.start } else { 0 };
        let (offset, size) = (at.start, at.end - at.start);
        let (link, info, entry_size) = (0, 0, 0);
        let name = "";
        let section = Section { name, name_offset, kind, flags, address, offset, size, link, info, align, entry_size };
        self.sections.push(section);
    }

    /// Appends a section, which is loaded to the address of its place in the file if it is loaded; gives that.
    fn add(&mut self, name: &str, section: (SectionType, SectionFlags), align: u64, contents: &[u8]) -> Result<u64> {
        let offset = headers::append(&mut self.out, align, contents);
        let name_offset = headers::add_name(&mut self.names, name)?;
        self.push(name_offset, section, align, offset..offset + contents.len() as u64);
        Ok(offset)
    }

    /// Sets what the last section names, and the size of its entries.
    fn link(&mut self, link: u32, entry_size: u64) {
        if let Some(section) = self.sections.last_mut() {
            (section.link, section.entry_size) = (link, entry_size);
        }
    }

    /// Appends a symbol table.
    fn symbols(&mut self, name: &str, section: (SectionType, SectionFlags), table: &[u8], names: u32) -> Result<u64> {
        let at = self.add(name, section, TABLE_ALIGN, table)?;
        self.link(names, size_of::<Sym64<LE>>() as u64);
        if let Some(section) = self.sections.last_mut() {
            // The null symbol is the only local one.
            section.info = 1;
        }
        Ok(at)
    }
}

impl KernelObject<'_> {
    /// Writes the object: each byte is loaded to the virtual address of its place in the file.
    ///
    /// # Errors
    /// Internal if the control block has no room before the code, or the result is none that a reader accepts.
    pub fn write(&self) -> Result<Vec<u8>> {
        if CONTROL + self.control.len() as u64 > CODE {
            return Err(Error::internal(format!("a control block of {} bytes", self.control.len())));
        }
        let mut file = Growing::new();
        let none = SectionFlags(0);
        file.add(CONTROL_SECTION, (SHT_PROGBITS, SHF_ALLOC | SHF_WRITE), PAGE, self.control)?;
        file.add(CODE_SECTION, (SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR), PAGE, self.code)?;
        let start = align_up(file.out.len() as u64, PAGE);
        let mut descriptor = *self.descriptor;
        descriptor.set_entry_byte_offset(self.entry.wrapping_sub(start) as i64);
        file.add(".rodata", (SHT_PROGBITS, SHF_ALLOC), PAGE, descriptor.bytes())?;
        let note = note_bytes(&encode(&self.value())?);
        let note_at = file.add(".note", (SHT_NOTE, SHF_ALLOC), 4, &note)?;

        let descriptor_name = format!("{}{DESCRIPTOR_SUFFIX}", self.name);
        let symbols = [
            symbol(CONTROL_SYMBOL, STT_OBJECT, CONTROL, self.control.len() as u64, CONTROL_NUMBER)?,
            symbol(self.name, STT_FUNC, self.entry, CODE + self.code.len() as u64 - self.entry, CODE_NUMBER)?,
            symbol(&descriptor_name, STT_OBJECT, start, DESCRIPTOR_SIZE, DESCRIPTOR_NUMBER)?,
        ];
        let (mut strings, mut names) = (vec![0], vec![""]);
        let (info, other) = (SymbolInfo::new(STB_LOCAL, STT_NOTYPE), STV_DEFAULT.into());
        let null = Symbol { name: "", address: 0, size: 0, info, other, section: SHN_UNDEF };
        let mut table = vec![symbol_tables::entry(&null, 0)];
        for symbol in &symbols {
            table.push(symbol_tables::entry(symbol, headers::add_name(&mut strings, symbol.name)?));
            names.push(symbol.name);
        }
        let table = pod::bytes_of_slice(&table);
        let symbols_at = file.symbols(".dynsym", (SHT_DYNSYM, SHF_ALLOC), table, DYNAMIC_NAMES_NUMBER)?;
        let gnu = symbol_tables::gnu_table(&names, 1);
        let gnu_at = file.add(".gnu.hash", (SHT_GNU_HASH, SHF_ALLOC), TABLE_ALIGN, &gnu)?;
        file.link(DYNAMIC_SYMBOLS_NUMBER, 0);
        let hash = symbol_tables::sysv_table(&names);
        let hash_at = file.add(".hash", (SHT_HASH, SHF_ALLOC), TABLE_ALIGN, &hash)?;
        file.link(DYNAMIC_SYMBOLS_NUMBER, 4);
        let strings_at = file.add(".dynstr", (SHT_STRTAB, SHF_ALLOC), 1, &strings)?;
        let entries = [
            (DT_SYMTAB, symbols_at),
            (DT_SYMENT, size_of::<Sym64<LE>>() as u64),
            (DT_STRTAB, strings_at),
            (DT_STRSZ, strings.len() as u64),
            (DT_GNU_HASH, gnu_at),
            (DT_HASH, hash_at),
            (DT_NULL, 0),
        ];
        let words = entries.iter().flat_map(|(tag, value): &(DynamicTag, u64)| [tag.0 as u64, *value]);
        let dynamic: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let dynamic_at = file.add(".dynamic", (SHT_DYNAMIC, SHF_ALLOC), TABLE_ALIGN, &dynamic)?;
        file.link(DYNAMIC_NAMES_NUMBER, DYNAMIC_ENTRY);
        let end = file.out.len() as u64;

        file.symbols(".symtab", (SHT_SYMTAB, none), table, NAMES_NUMBER)?;
        file.add(".strtab", (SHT_STRTAB, none), 1, &strings)?;
        let names_index = file.sections.len();
        let mut section_names = file.names.clone();
        headers::add_name(&mut section_names, ".shstrtab")?;
        file.add(".shstrtab", (SHT_STRTAB, none), 1, &section_names)?;
        let sections_offset = headers::append(&mut file.out, TABLE_ALIGN, &headers::encode_sections(&file.sections));

        let headers_end = FILE_HEADER_SIZE + SEGMENTS * PROGRAM_HEADER_SIZE;
        let code_end = CODE + self.code.len() as u64;
        let segments: [Segment; SEGMENTS as usize] = [
            segment(PT_PHDR, PF_R, FILE_HEADER_SIZE..headers_end, TABLE_ALIGN),
            segment(PT_LOAD, PF_R, 0..headers_end, PAGE),
            segment(PT_LOAD, PF_R | PF_W, CONTROL..CONTROL + self.control.len() as u64, PAGE),
            segment(PT_LOAD, PF_R | PF_X, CODE..code_end, PAGE),
            segment(PT_LOAD, PF_R, start..end, PAGE),
            segment(PT_DYNAMIC, PF_R, dynamic_at..dynamic_at + dynamic.len() as u64, TABLE_ALIGN),
            segment(PT_NOTE, PF_R, note_at..note_at + note.len() as u64, 4),
        ];
        bytes::put(&mut file.out, 0, &self.original.header)?;
        bytes::put(&mut file.out, FILE_HEADER_SIZE, &headers::encode_segments(&segments))?;
        let (segment_count, section_count) = (segments.len(), file.sections.len());
        let segments_offset = FILE_HEADER_SIZE;
        Tables { segments_offset, segment_count, sections_offset, section_count, names_index }.enter(&mut file.out)?;
        self.check(&file.out)?;
        Ok(file.out)
    }

    /// A fault of ours must not reach a loader.
    fn check(&self, file: &[u8]) -> Result<()> {
        let wrong = |what: String| Error::internal(format!("the object of kernel {} {what}", self.name));
        let parsed = CodeObject::parse(file).map_err(|error| wrong(format!("does not parse: {error}")))?;
        if let Some(malformed) = parsed.malformed().first() {
            return Err(wrong(format!("contradicts the format: {malformed}")));
        }
        let is_right = |kernel: &Kernel| {
            let mut descriptor = *self.descriptor;
            descriptor.set_entry_byte_offset(kernel.descriptor.entry_byte_offset());
            let metadata = kernel.metadata.as_deref();
            let has_sizes = metadata.is_some_and(|metadata| {
                (metadata.group_segment_fixed_size, metadata.private_segment_fixed_size)
                    == (self.metadata.group_segment_fixed_size, self.metadata.private_segment_fixed_size)
            });
            (kernel.name.as_str(), kernel.entry) == (self.name, self.entry)
                && kernel.descriptor == descriptor
                && has_sizes
        };
        if parsed.kernels().len() != 1 || !parsed.kernels().iter().all(is_right) || !parsed.is_rewritten() {
            return Err(wrong("has another kernel".to_owned()));
        }
        Ok(())
    }

    /// The metadata: what a runtime or profiler reads of a kernel, without its arguments.
    fn value(&self) -> Value {
        let metadata = self.metadata;
        let pair = |key: &str, value: Value| (Value::from(key), value);
        let mut kernel = vec![
            pair(".name", Value::from(self.name)),
            pair(".symbol", Value::from(format!("{}{DESCRIPTOR_SUFFIX}", self.name))),
        ];
        let numbers = [
            (".kernarg_segment_size", metadata.kernarg_segment_size),
            (".kernarg_segment_align", metadata.kernarg_segment_align),
            (".group_segment_fixed_size", metadata.group_segment_fixed_size),
            (".private_segment_fixed_size", metadata.private_segment_fixed_size),
            (".max_flat_workgroup_size", metadata.max_flat_workgroup_size),
            (".wavefront_size", metadata.wavefront_size),
            (".sgpr_count", metadata.sgpr_count),
            (".vgpr_count", metadata.vgpr_count),
            (".agpr_count", metadata.agpr_count),
            (".sgpr_spill_count", metadata.sgpr_spill_count),
            (".vgpr_spill_count", metadata.vgpr_spill_count),
        ];
        kernel.extend(numbers.map(|(key, number)| pair(key, Value::from(number))));
        let minor = if self.original.abi_version < METADATA_1_2 { 1 } else { 2 };
        Value::Map(vec![
            pair("amdhsa.kernels", Value::Array(vec![Value::Map(kernel)])),
            pair("amdhsa.target", Value::from(format!("amdgcn-amd-amdhsa--{}", self.original.target))),
            pair("amdhsa.version", Value::Array(vec![Value::from(1), Value::from(minor)])),
        ])
    }
}

fn segment(kind: ProgramType, flags: ProgramFlags, at: Range<u64>, align: u64) -> Segment {
    let (offset, size) = (at.start, at.end - at.start);
    let (address, physical_address, file_size, memory_size) = (offset, offset, size, size);
    Segment { kind, flags, offset, address, physical_address, file_size, memory_size, align }
}

/// A symbol that loaders export.
fn symbol(name: &str, kind: SymbolType, address: u64, size: u64, section: usize) -> Result<Symbol<'_>> {
    let (info, other) = (SymbolInfo::new(STB_GLOBAL, kind), STV_PROTECTED.into());
    Ok(Symbol { name, address, size, info, other, section: symbol_tables::section_number(section)? })
}
