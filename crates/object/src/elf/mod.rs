//! The tables of a 64-bit little-endian ELF file, checked once and then plain data.
//!
//! Host executables and device code objects are both read through [`Elf`]. The `object` crate knows the format; what is
//! added here is a check of all headers up front, errors that say where, limits, and headers as plain values that keep
//! every field, so that a writer can change one and put the others back as they were.

use object::LittleEndian as LE;
use object::pod::{self, Pod};
use object::read::StringTable;
use object::read::elf::{Dyn as _, FileHeader as _, NoteIterator, Rela as _, RelrIterator, SectionTable, Sym as _};

use self::constants::{
    DF_1_PIE, DF_SYMBOLIC, DT_FLAGS, DT_FLAGS_1, DT_NULL, DT_RELA, DT_RELASZ, DT_RELR, DT_RELRSZ, DT_SYMBOLIC, Dyn64,
    DynamicTag, ELFMAG, ET_EXEC, FileHeader64, FileType, Machine, NoteType, PF_W, PF_X, PN_XNUM, PT_DYNAMIC, PT_LOAD,
    PT_NOTE, ProgramFlags, ProgramHeader64, ProgramType, Rela64, RelocationType, Relr64, SHF_ALLOC, SHF_EXECINSTR,
    SHN_ABS, SHN_UNDEF, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE, SHT_NULL, SHT_SYMTAB, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC,
    STT_OBJECT, STV_DEFAULT, SectionFlags, SectionHeader64, SectionType, Sym64, SymbolInfo, SymbolOther, SymbolSection,
};
use wavetap_base::bytes;
use wavetap_base::error::{Error, Result, ResultExt};

/// The numbers and structures of the format, as the `object` crate names them.
pub use object::elf as constants;

#[cfg(test)]
mod tests;

/// Size of the file header in bytes.
pub const FILE_HEADER_SIZE: u64 = size_of::<FileHeader64<LE>>() as u64;
/// Size of one program header in bytes.
pub const PROGRAM_HEADER_SIZE: u64 = size_of::<ProgramHeader64<LE>>() as u64;

/// Size of one section header in bytes.
pub const SECTION_HEADER_SIZE: u64 = size_of::<SectionHeader64<LE>>() as u64;

/// Longest name that is read; C++ compilers write names of some ten thousand bytes. Without a limit, many symbols could
/// share one endless name.
const MAX_NAME: u64 = 256 << 10;

/// Alignment of notes and their parts in code objects (AMDGPUUsage, "Note Records").
const NOTE_ALIGN: u64 = 4;

/// The fields of the file header that differ between files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// `EI_OSABI`.
    pub os_abi: u8,
    /// `EI_ABIVERSION`.
    pub abi_version: u8,
    /// `e_type`: `ET_EXEC`, `ET_DYN`, …
    pub kind: FileType,
    /// `e_machine`.
    pub machine: Machine,
    /// `e_flags`.
    pub flags: u32,
    /// File offset of the program headers.
    pub segments_offset: u64,
    /// File offset of the section headers, 0 when there are none.
    pub sections_offset: u64,
    /// Index of the section that holds the section names.
    pub names_index: u16,
}

/// One program header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// `p_type`: `PT_LOAD`, …
    pub kind: ProgramType,
    /// `p_flags`: `PF_R`, `PF_W`, `PF_X`.
    pub flags: ProgramFlags,
    /// File offset of the contents.
    pub offset: u64,
    /// Virtual address.
    pub address: u64,
    /// `p_paddr`; loaders ignore it, a rewrite keeps it.
    pub physical_address: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes in memory.
    pub memory_size: u64,
    /// `p_align`.
    pub align: u64,
}

/// One section header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section<'d> {
    /// The name; empty for section 0.
    pub name: &'d str,
    /// Offset of the name in the section name table.
    pub name_offset: u32,
    /// `sh_type`: `SHT_PROGBITS`, …
    pub kind: SectionType,
    /// `sh_flags`: `SHF_ALLOC`, …
    pub flags: SectionFlags,
    /// Virtual address, 0 when the section is not loaded.
    pub address: u64,
    /// File offset.
    pub offset: u64,
    /// Size in bytes (in memory when the section has no contents in the file).
    pub size: u64,
    /// `sh_link`.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// `sh_addralign`.
    pub align: u64,
    /// `sh_entsize`.
    pub entry_size: u64,
}

/// One symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'d> {
    /// The name as the file has it (mangled).
    pub name: &'d str,
    /// Virtual address.
    pub address: u64,
    /// Size in bytes; compilers often leave 0.
    pub size: u64,
    /// `st_info`: binding and type.
    pub info: SymbolInfo,
    /// `st_other`: visibility.
    pub other: SymbolOther,
    /// Index of the section, or one of the `SHN_*` values.
    pub section: SymbolSection,
}

/// One relocation with addend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// Virtual address of the place that is changed (dynamic relocations).
    pub address: u64,
    /// The machine's relocation type.
    pub kind: RelocationType,
    /// Index in the symbol table that the relocation section links to.
    pub symbol: u32,
    /// The addend.
    pub addend: i64,
    /// File offset of this relocation entry.
    pub file_offset: u64,
}

/// One entry of the dynamic table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DynamicEntry {
    /// `DT_*`.
    pub tag: DynamicTag,
    /// Address or value.
    pub value: u64,
    /// File offset of the entry.
    pub file_offset: u64,
}

/// One note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note<'d> {
    /// The contents.
    pub descriptor: &'d [u8],
    /// File offset of the contents.
    pub file_offset: u64,
}

impl Segment {
    fn read(header: &ProgramHeader64<LE>) -> Self {
        Segment {
            kind: header.p_type.get(LE),
            flags: header.p_flags.get(LE),
            offset: header.p_offset.get(LE),
            address: header.p_vaddr.get(LE),
            physical_address: header.p_paddr.get(LE),
            file_size: header.p_filesz.get(LE),
            memory_size: header.p_memsz.get(LE),
            align: header.p_align.get(LE),
        }
    }

    /// Whether the loader maps it.
    #[must_use]
    pub fn is_load(&self) -> bool {
        self.kind == PT_LOAD
    }

    /// Whether its contents may be written to.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.flags.contains(PF_W)
    }

    /// Whether its contents may be executed.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.flags.contains(PF_X)
    }

    /// The end of the address range, which does not overflow in a checked [`Elf`].
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.memory_size)
    }
}

impl Section<'_> {
    fn read(header: &SectionHeader64<LE>) -> Self {
        Section {
            name: "",
            name_offset: header.sh_name.get(LE),
            kind: header.sh_type.get(LE),
            flags: header.sh_flags.get(LE),
            address: header.sh_addr.get(LE),
            offset: header.sh_offset.get(LE),
            size: header.sh_size.get(LE),
            link: header.sh_link.get(LE),
            info: header.sh_info.get(LE),
            align: header.sh_addralign.get(LE),
            entry_size: header.sh_entsize.get(LE),
        }
    }

    /// Whether it is part of the loaded image.
    #[must_use]
    pub fn is_alloc(&self) -> bool {
        self.flags.contains(SHF_ALLOC)
    }

    /// Whether it holds instructions.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.flags.contains(SHF_EXECINSTR)
    }

    /// Whether it has contents in the file.
    #[must_use]
    pub fn has_contents(&self) -> bool {
        self.kind != SHT_NOBITS && self.kind != SHT_NULL
    }

    /// Whether a loaded section covers `address`.
    #[must_use]
    pub fn covers(&self, address: u64) -> bool {
        self.is_alloc() && address >= self.address && address - self.address < self.size
    }
}

impl Symbol<'_> {
    /// A function.
    #[must_use]
    pub fn is_function(&self) -> bool {
        self.info.st_type() == STT_FUNC
    }

    /// A data object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.info.st_type() == STT_OBJECT
    }

    /// Defined in this file.
    #[must_use]
    pub fn is_defined(&self) -> bool {
        self.section != SHN_UNDEF
    }
}

/// A checked ELF file.
#[derive(Debug, Clone)]
pub struct Elf<'d> {
    /// The whole file.
    pub data: &'d [u8],
    /// The file header.
    pub header: Header,
    /// The program headers in file order.
    pub segments: Vec<Segment>,
    /// The section headers in file order, section 0 included; empty when the file has none.
    pub sections: Vec<Section<'d>>,
    tables: SectionTable<'d, FileHeader64<LE>>,
}

/// Whether `data` starts like an ELF file.
#[must_use]
pub fn is_elf(data: &[u8]) -> bool {
    data.starts_with(&ELFMAG)
}

impl<'d> Elf<'d> {
    /// Reads and checks the headers: every table, segment and section lies within the file.
    ///
    /// # Errors
    /// Malformed when something does not; unsupported for 32-bit, big-endian or oversized tables.
    pub fn parse(data: &'d [u8]) -> Result<Self> {
        bytes::slice(data, 0, FILE_HEADER_SIZE, "ELF header")?;
        if !is_elf(data) {
            return Err(Error::malformed("an ELF file was expected (magic 7f 45 4c 46)").at(0));
        }
        let raw = FileHeader64::<LE>::parse(data).and_then(|raw| raw.endian().map(|_| raw));
        let raw =
            raw.map_err(|_| Error::unsupported("only 64-bit little-endian ELF files of version 1 are handled").at(4))?;
        let header = Header {
            os_abi: raw.e_ident.os_abi.0,
            abi_version: raw.e_ident.abi_version,
            kind: raw.e_type(LE),
            machine: raw.e_machine(LE),
            flags: raw.e_flags(LE).0,
            segments_offset: raw.e_phoff(LE),
            sections_offset: raw.e_shoff(LE),
            names_index: raw.e_shstrndx(LE).0,
        };
        let (segment_count, section_count) = (raw.e_phnum(LE), raw.e_shnum(LE));
        if segment_count == PN_XNUM
            || (section_count == 0 && header.sections_offset != 0)
            || raw.e_shstrndx(LE).is_reserved()
        {
            return Err(Error::unsupported("header tables with extended numbering are not handled").at(56));
        }
        let place = |error: object::read::Error, count: u16, at| {
            Error::malformed(format!("{error}: {count} headers expected in a file of {:#x} bytes", data.len())).at(at)
        };
        let segments =
            raw.program_headers(LE, data).map_err(|error| place(error, segment_count, header.segments_offset))?;
        let segments = read_segments(data, segments, header.segments_offset)?;
        let sections =
            raw.section_headers(LE, data).map_err(|error| place(error, section_count, header.sections_offset))?;
        // Names are read with the other fields.
        let tables = SectionTable::new(sections, StringTable::default());
        let sections = read_sections(data, sections, &header)?;
        Ok(Elf { data, header, segments, sections, tables })
    }

    /// The loaded segments in file order.
    pub fn loads(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.is_load())
    }

    /// The first section of this name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section<'d>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The contents of a section; empty when it has none in the file.
    ///
    /// # Errors
    /// Malformed if it lies outside the file.
    pub fn contents(&self, section: &Section<'_>) -> Result<&'d [u8]> {
        if !section.has_contents() {
            return Ok(&[]);
        }
        bytes::slice(self.data, section.offset, section.size, "section contents")
    }

    /// The file offset of `len` bytes at a virtual address, if one loaded segment has all of them in the file.
    #[must_use]
    pub fn file_offset(&self, address: u64, len: u64) -> Option<u64> {
        let end = address.checked_add(len)?;
        let load =
            self.loads().find(|load| address >= load.address && end <= load.address.saturating_add(load.file_size))?;
        Some(load.offset + (address - load.address))
    }

    /// The bytes at a virtual address.
    ///
    /// # Errors
    /// Malformed if no loaded segment has all of them in the file.
    pub fn bytes_at(&self, address: u64, len: u64) -> Result<&'d [u8]> {
        let offset = self.file_offset(address, len).ok_or_else(|| {
            Error::malformed(format!("{len} bytes at address {address:#x}: not in the file's loaded segments"))
        })?;
        bytes::slice(self.data, offset, len, "loaded bytes")
    }

    /// The symbols of `.symtab`, the null symbol included; empty when there is none.
    ///
    /// # Errors
    /// Malformed if the table or its string table does not lie in the file or a name is not UTF-8.
    pub fn symbols(&self) -> Result<Vec<Symbol<'d>>> {
        self.symbol_table(SHT_SYMTAB)?.into_iter().map(|(symbol, problem)| problem.map_or(Ok(symbol), Err)).collect()
    }

    /// The symbols of `.dynsym`, the null symbol included; empty when there is none.
    ///
    /// # Errors
    /// As for [`Self::symbols`].
    pub fn dynamic_symbols(&self) -> Result<Vec<Symbol<'d>>> {
        self.symbol_table(SHT_DYNSYM)?.into_iter().map(|(symbol, problem)| problem.map_or(Ok(symbol), Err)).collect()
    }

    /// The symbols of the first section of a type ([`SHT_SYMTAB`] or [`SHT_DYNSYM`]), the null symbol included. A
    /// symbol whose name cannot be read has an empty name and is undefined, and what is wrong with it is beside it.
    ///
    /// # Errors
    /// Malformed if the table does not lie in the file.
    pub fn symbol_table(&self, kind: SectionType) -> Result<Vec<(Symbol<'d>, Option<Error>)>> {
        let Some(section) = self.sections.iter().find(|section| section.kind == kind) else {
            return Ok(Vec::new());
        };
        let place = || format!("symbol table {}", section.name);
        let table = self.tables.symbols(LE, self.data, kind);
        let table = table.map_err(|error| Error::malformed(error.to_string()).at(section.offset)).within(place)?;
        let strings =
            self.sections.get(table.string_section().0).map_or(Ok(&[][..]), |strings| self.contents(strings))?;
        let read = |symbol: &Sym64<LE>| {
            let (name, problem) = match string_at(strings, symbol.st_name(LE).into()).within(place) {
                Ok(name) => (name, None),
                Err(error) => ("", Some(error)),
            };
            let symbol = Symbol {
                name,
                address: symbol.st_value(LE),
                size: symbol.st_size(LE),
                info: symbol.st_info,
                other: symbol.st_other,
                section: if problem.is_some() { SHN_UNDEF } else { symbol.st_shndx(LE) },
            };
            (symbol, problem)
        };
        Ok(table.iter().map(read).collect())
    }

    /// A table in the file.
    fn table<T: Pod>(&self, offset: u64, size: u64, what: &str) -> Result<&'d [T]> {
        let table = bytes::slice(self.data, offset, size, what)?;
        pod::slice_from_all_bytes(table).map_err(|()| {
            Error::malformed(format!("{what} has {size:#x} bytes, a multiple of {} expected", size_of::<T>()))
                .at(offset)
        })
    }

    /// A table at an address that the dynamic table tells; its file offset and entries.
    fn dynamic_table<T: Pod>(&self, start: DynamicTag, size: DynamicTag, what: &str) -> Result<(u64, &'d [T])> {
        let (Some(address), Some(size)) = (self.dynamic_value(start)?, self.dynamic_value(size)?) else {
            return Ok((0, &[]));
        };
        if size == 0 {
            return Ok((0, &[]));
        }
        let offset = self.file_offset(address, size);
        let offset = offset.ok_or_else(|| {
            Error::malformed(format!("{what} of {size:#x} bytes at address {address:#x} is not in the file"))
        })?;
        Ok((offset, self.table(offset, size, what)?))
    }

    /// The entries of the dynamic table up to and without `DT_NULL`; empty when there is none.
    ///
    /// # Errors
    /// Malformed if the table does not lie in the file.
    pub fn dynamic(&self) -> Result<Vec<DynamicEntry>> {
        let Some(segment) = self.segments.iter().find(|segment| segment.kind == PT_DYNAMIC) else {
            return Ok(Vec::new());
        };
        let table: &[Dyn64<LE>] = self.table(segment.offset, segment.file_size, "the dynamic table")?;
        let offsets = (segment.offset..).step_by(size_of::<Dyn64<LE>>());
        let entries = table.iter().take_while(|entry| entry.tag(LE) != DT_NULL).zip(offsets);
        Ok(entries
            .map(|(entry, file_offset)| DynamicEntry { tag: entry.tag(LE), value: entry.val(LE), file_offset })
            .collect())
    }

    /// The value of a dynamic table entry.
    ///
    /// # Errors
    /// Malformed if the dynamic table does not lie in the file.
    pub fn dynamic_value(&self, tag: DynamicTag) -> Result<Option<u64>> {
        Ok(self.dynamic()?.into_iter().find(|entry| entry.tag == tag).map(|entry| entry.value))
    }

    /// The relocations of `DT_RELA` (those that a loader applies, without the procedure linkage table's).
    ///
    /// # Errors
    /// Malformed if the table does not lie in the file.
    pub fn dynamic_relocations(&self) -> Result<Vec<Relocation>> {
        let (start, table) = self.dynamic_table::<Rela64<LE>>(DT_RELA, DT_RELASZ, "DT_RELA")?;
        let offsets = (start..).step_by(size_of::<Rela64<LE>>());
        let read = |(entry, file_offset): (&Rela64<LE>, u64)| Relocation {
            address: entry.r_offset(LE),
            kind: entry.r_type(LE, false),
            symbol: entry.r_sym(LE, false),
            addend: entry.r_addend(LE),
            file_offset,
        };
        Ok(table.iter().zip(offsets).map(read).collect())
    }

    /// Whether a dynamic symbol means this file's own definition, whatever else a program loads: another file's is
    /// found first only if this is a library and lets that happen (gABI, "Symbol Table", visibility; `DF_SYMBOLIC`).
    ///
    /// # Errors
    /// Malformed if the dynamic table does not lie in the file.
    pub fn defines_for_itself(&self, symbol: &Symbol<'_>) -> Result<bool> {
        // An absolute symbol is not moved with the file, and what an ifunc resolver returns is not known.
        if !symbol.is_defined() || symbol.section == SHN_ABS || symbol.info.st_type() == STT_GNU_IFUNC {
            return Ok(false);
        }
        if symbol.info.st_bind() == STB_LOCAL || symbol.other.visibility() != STV_DEFAULT || self.header.kind == ET_EXEC
        {
            return Ok(true);
        }
        let flags = |tag| Ok::<_, Error>(self.dynamic_value(tag)?.unwrap_or(0));
        let symbolic = self.dynamic_value(DT_SYMBOLIC)?.is_some() || flags(DT_FLAGS)? & DF_SYMBOLIC.0 != 0;
        Ok(symbolic || flags(DT_FLAGS_1)? & DF_1_PIE.0 != 0)
    }

    /// Whether the compact relocations of `DT_RELR` add the load address to the word at `address` (gABI, "Relative
    /// Relocation Table").
    ///
    /// # Errors
    /// Malformed if the table does not lie in the file.
    pub fn is_relr(&self, address: u64) -> Result<bool> {
        let (_, table) = self.dynamic_table::<Relr64<LE>>(DT_RELR, DT_RELRSZ, "DT_RELR")?;
        Ok(RelrIterator::<FileHeader64<LE>>::new(LE, table).any(|place| place == address))
    }

    /// The notes of an owner (its terminating zero included) and type, in the note segments, or in the note sections if
    /// those have none.
    ///
    /// # Errors
    /// Malformed if a note reaches out of its segment or section.
    pub fn notes(&self, owner: &[u8], kind: NoteType) -> Result<Vec<Note<'d>>> {
        let segments = self
            .segments
            .iter()
            .filter(|segment| segment.kind == PT_NOTE)
            .map(|segment| (segment.offset, segment.file_size));
        let sections = self
            .sections
            .iter()
            .filter(|section| section.kind == SHT_NOTE)
            .map(|section| (section.offset, section.size));
        let found = self.notes_in(segments, owner, kind)?;
        if found.is_empty() { self.notes_in(sections, owner, kind) } else { Ok(found) }
    }

    /// [`Elf::notes`] in these parts of the file, each once.
    fn notes_in(&self, parts: impl Iterator<Item = (u64, u64)>, owner: &[u8], kind: NoteType) -> Result<Vec<Note<'d>>> {
        let mut found: Vec<Note<'d>> = Vec::new();
        for (start, size) in parts {
            let broken =
                |error: object::read::Error| Error::malformed(error.to_string()).at(start).within("a table of notes");
            let notes = bytes::slice(self.data, start, size, "notes")?;
            for note in NoteIterator::<FileHeader64<LE>>::new(LE, NOTE_ALIGN, notes).map_err(broken)? {
                let note = note.map_err(broken)?;
                if note.name_bytes() == owner && note.n_type(LE) == kind {
                    // Both are parts of the file.
                    let within = note.desc().as_ptr().addr() - notes.as_ptr().addr();
                    found.push(Note { descriptor: note.desc(), file_offset: start + within as u64 });
                }
            }
        }
        found.sort_by_key(|note| note.file_offset);
        found.dedup_by_key(|note| note.file_offset);
        Ok(found)
    }
}

/// The zero-terminated string at `offset` of a string table.
///
/// # Errors
/// Malformed if it starts outside the table, does not end within it or within 256 KiB, or is not UTF-8.
pub fn string_at(strings: &[u8], offset: u64) -> Result<&str> {
    if offset == 0 {
        return Ok("");
    }
    let end = offset.saturating_add(MAX_NAME + 1).min(strings.len() as u64);
    let name = u32::try_from(offset).map_err(|_| ()).and_then(|offset| StringTable::new(strings, 0, end).get(offset));
    let name = name.map_err(|()| {
        let message =
            format!("no name of at most {MAX_NAME:#x} bytes ends in the string table of {:#x} bytes", strings.len());
        Error::malformed(message).at(offset)
    })?;
    std::str::from_utf8(name).map_err(|_| Error::malformed("a name is not UTF-8").at(offset))
}

/// Checks the program headers against the file.
fn read_segments(data: &[u8], headers: &[ProgramHeader64<LE>], start: u64) -> Result<Vec<Segment>> {
    let places = (start..).step_by(size_of::<ProgramHeader64<LE>>());
    let read = |(header, place)| {
        let segment = Segment::read(header);
        bytes::slice(data, segment.offset, segment.file_size, "segment contents")
            .within(|| format!("program header at {place:#x}"))?;
        if segment.address.checked_add(segment.memory_size).is_none()
            || (segment.is_load() && segment.file_size > segment.memory_size)
        {
            return Err(Error::malformed("a program header's sizes contradict each other").at(place));
        }
        Ok(segment)
    };
    headers.iter().zip(places).map(read).collect()
}

/// Checks the section headers against the file and finds their names.
fn read_sections<'d>(data: &'d [u8], headers: &[SectionHeader64<LE>], header: &Header) -> Result<Vec<Section<'d>>> {
    if headers.is_empty() {
        return Ok(Vec::new());
    }
    let places = (header.sections_offset..).step_by(size_of::<SectionHeader64<LE>>());
    let read = |(header, place)| {
        let section = Section::read(header);
        if section.has_contents() {
            bytes::slice(data, section.offset, section.size, "section contents")
                .within(|| format!("section header at {place:#x}"))?;
        }
        if section.address.checked_add(section.size).is_none() {
            return Err(Error::malformed("a section's address range wraps around").at(place));
        }
        Ok(section)
    };
    let mut sections: Vec<Section<'d>> = headers.iter().zip(places).map(read).collect::<Result<_>>()?;
    let names = sections.get(usize::from(header.names_index)).filter(|section| section.has_contents());
    let names = names.ok_or_else(|| {
        Error::malformed(format!("e_shstrndx {} names no section with contents", header.names_index)).at(62)
    })?;
    let names = bytes::slice(data, names.offset, names.size, "section names")?;
    for section in &mut sections {
        section.name = string_at(names, section.name_offset.into()).within(|| "section names".into())?;
    }
    Ok(sections)
}
