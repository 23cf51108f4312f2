//! The tables of a 64-bit little-endian ELF file, checked once and then plain data.
//!
//! Host executables and device code objects are both read through [`Elf`]; it keeps every header exactly as the file has it, so that a writer
//! can put an unchanged header back byte for byte.

pub mod constants;

use self::constants::*;
use crate::bytes;
use crate::error::{Error, Result};

/// Size of the file header in bytes.
pub const FILE_HEADER_SIZE: u64 = 64;
/// Size of one program header in bytes.
pub const PROGRAM_HEADER_SIZE: u64 = 56;
/// Size of one section header in bytes.
pub const SECTION_HEADER_SIZE: u64 = 64;
/// Size of one symbol table entry in bytes.
pub const SYMBOL_SIZE: u64 = 24;
/// Size of one relocation with addend in bytes.
pub const RELA_SIZE: u64 = 24;
/// Size of one dynamic table entry in bytes.
pub const DYNAMIC_ENTRY_SIZE: u64 = 16;

/// The fields of the file header that differ between files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// `EI_OSABI`.
    pub os_abi: u8,
    /// `EI_ABIVERSION`.
    pub abi_version: u8,
    /// `e_type`: `ET_EXEC`, `ET_DYN`, …
    pub kind: u16,
    /// `e_machine`.
    pub machine: u16,
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
    pub kind: u32,
    /// `p_flags`: `PF_R`, `PF_W`, `PF_X`.
    pub flags: u32,
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
    pub kind: u32,
    /// `sh_flags`: `SHF_ALLOC`, …
    pub flags: u64,
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
    pub info: u8,
    /// `st_other`: visibility.
    pub other: u8,
    /// Index of the section, or one of the `SHN_*` values.
    pub section: u16,
}

/// One relocation with addend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// Virtual address of the place that is changed (dynamic relocations).
    pub address: u64,
    /// The machine's relocation type.
    pub kind: u32,
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
    pub tag: u64,
    /// Address or value.
    pub value: u64,
    /// File offset of the entry.
    pub file_offset: u64,
}

impl Segment {
    /// Whether the loader maps it.
    #[must_use]
    pub fn is_load(&self) -> bool {
        self.kind == PT_LOAD
    }

    /// The end of the address range, which does not overflow in a checked [`Elf`].
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.memory_size)
    }
}

impl Section<'_> {
    /// Whether it is part of the loaded image.
    #[must_use]
    pub fn is_alloc(&self) -> bool {
        self.flags & SHF_ALLOC != 0
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
    /// `STT_*`.
    #[must_use]
    pub fn kind(&self) -> u8 {
        self.info & 0xf
    }

    /// `STB_*`.
    #[must_use]
    pub fn binding(&self) -> u8 {
        self.info >> 4
    }

    /// A function.
    #[must_use]
    pub fn is_function(&self) -> bool {
        self.kind() == STT_FUNC
    }

    /// A data object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.kind() == STT_OBJECT
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
}

/// Whether `data` starts like an ELF file.
#[must_use]
pub fn is_elf(data: &[u8]) -> bool {
    data.starts_with(&MAGIC)
}

impl<'d> Elf<'d> {
    /// Reads and checks the headers: every table, segment and section lies within the file.
    ///
    /// # Errors
    /// Malformed when something does not; unsupported for 32-bit, big-endian or oversized tables.
    pub fn parse(data: &'d [u8]) -> Result<Self> {
        let ident = bytes::slice(data, 0, FILE_HEADER_SIZE, "ELF header")?;
        if !is_elf(data) {
            return Err(Error::malformed("an ELF file was expected (magic 7f 45 4c 46)").at(0));
        }
        if ident[4] != ELFCLASS64 || ident[5] != ELFDATA2LSB {
            return Err(Error::unsupported("only 64-bit little-endian ELF files are handled").at(4));
        }
        let header = Header {
            os_abi: ident[7],
            abi_version: ident[8],
            kind: bytes::u16_at(data, 16, "e_type")?,
            machine: bytes::u16_at(data, 18, "e_machine")?,
            flags: bytes::u32_at(data, 48, "e_flags")?,
            segments_offset: bytes::u64_at(data, 32, "e_phoff")?,
            sections_offset: bytes::u64_at(data, 40, "e_shoff")?,
            names_index: bytes::u16_at(data, 62, "e_shstrndx")?,
        };
        let segment_count = bytes::u16_at(data, 56, "e_phnum")?;
        let section_count = bytes::u16_at(data, 60, "e_shnum")?;
        if segment_count == PN_XNUM || (section_count == 0 && header.sections_offset != 0) {
            return Err(Error::unsupported("header tables with extended numbering are not handled").at(56));
        }
        entry_size_is(data, 54, segment_count, PROGRAM_HEADER_SIZE)?;
        entry_size_is(data, 58, section_count, SECTION_HEADER_SIZE)?;
        let segments = read_segments(data, &header, segment_count)?;
        let sections = read_sections(data, &header, section_count)?;
        Ok(Elf { data, header, segments, sections })
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
        let load = self.loads().find(|load| address >= load.address && end <= load.address.saturating_add(load.file_size))?;
        Some(load.offset + (address - load.address))
    }

    /// The bytes at a virtual address.
    ///
    /// # Errors
    /// Malformed if no loaded segment has all of them in the file.
    pub fn bytes_at(&self, address: u64, len: u64) -> Result<&'d [u8]> {
        let offset = self
            .file_offset(address, len)
            .ok_or_else(|| Error::malformed(format!("{len} bytes at address {address:#x}: not in the file's loaded segments")))?;
        bytes::slice(self.data, offset, len, "loaded bytes")
    }

    /// The symbols of a symbol table section, the null symbol included.
    ///
    /// # Errors
    /// Malformed if the table or its string table does not lie in the file or a name is not UTF-8.
    pub fn symbols(&self, table: &Section<'_>) -> Result<Vec<Symbol<'d>>> {
        let entries = self.contents(table)?;
        let strings = self.sections.get(table.link as usize).ok_or_else(|| {
            Error::malformed(format!("symbol table {} links to section {}, which does not exist", table.name, table.link))
        })?;
        let strings = self.contents(strings)?;
        if !(entries.len() as u64).is_multiple_of(SYMBOL_SIZE) {
            return Err(Error::malformed(format!("symbol table {}: its size is no multiple of {SYMBOL_SIZE}", table.name)).at(table.offset));
        }
        let mut symbols = Vec::with_capacity(entries.len() / SYMBOL_SIZE as usize);
        for offset in (0..entries.len() as u64).step_by(SYMBOL_SIZE as usize) {
            let name_offset = bytes::u32_at(entries, offset, "st_name")?;
            let fields = bytes::slice(entries, offset, SYMBOL_SIZE, "symbol")?;
            symbols.push(Symbol {
                name: string_at(strings, name_offset.into()).map_err(|error| error.within(format!("symbol table {}", table.name)))?,
                info: fields[4],
                other: fields[5],
                section: bytes::u16_at(fields, 6, "st_shndx")?,
                address: bytes::u64_at(fields, 8, "st_value")?,
                size: bytes::u64_at(fields, 16, "st_size")?,
            });
        }
        Ok(symbols)
    }

    /// The entries of the dynamic table up to and without `DT_NULL`; empty when there is none.
    ///
    /// # Errors
    /// Malformed if the table does not lie in the file.
    pub fn dynamic(&self) -> Result<Vec<DynamicEntry>> {
        let Some(segment) = self.segments.iter().find(|segment| segment.kind == PT_DYNAMIC) else {
            return Ok(Vec::new());
        };
        let table = bytes::slice(self.data, segment.offset, segment.file_size, "dynamic table")?;
        let mut entries = Vec::new();
        for offset in (0..table.len() as u64 / DYNAMIC_ENTRY_SIZE).map(|index| index * DYNAMIC_ENTRY_SIZE) {
            let tag = bytes::u64_at(table, offset, "d_tag")?;
            if tag == DT_NULL {
                break;
            }
            entries.push(DynamicEntry { tag, value: bytes::u64_at(table, offset + 8, "d_val")?, file_offset: segment.offset + offset });
        }
        Ok(entries)
    }

    /// The value of a dynamic table entry.
    ///
    /// # Errors
    /// Malformed if the dynamic table does not lie in the file.
    pub fn dynamic_value(&self, tag: u64) -> Result<Option<u64>> {
        Ok(self.dynamic()?.into_iter().find(|entry| entry.tag == tag).map(|entry| entry.value))
    }

    /// The relocations of `DT_RELA` (those that a loader applies, without the procedure linkage table's).
    ///
    /// # Errors
    /// Malformed if the table does not lie in the file.
    pub fn dynamic_relocations(&self) -> Result<Vec<Relocation>> {
        let (Some(address), Some(size)) = (self.dynamic_value(DT_RELA)?, self.dynamic_value(DT_RELASZ)?) else {
            return Ok(Vec::new());
        };
        if size == 0 {
            return Ok(Vec::new());
        }
        let start = self.file_offset(address, size).ok_or_else(|| Error::malformed(format!("DT_RELA {address:#x} is not in the file")))?;
        let table = bytes::slice(self.data, start, size, "DT_RELA")?;
        (0..size / RELA_SIZE)
            .map(|index| {
                let offset = index * RELA_SIZE;
                let info = bytes::u64_at(table, offset + 8, "r_info")?;
                Ok(Relocation {
                    address: bytes::u64_at(table, offset, "r_offset")?,
                    kind: info as u32,
                    symbol: (info >> 32) as u32,
                    addend: bytes::u64_at(table, offset + 16, "r_addend")? as i64,
                    file_offset: start + offset,
                })
            })
            .collect()
    }
}

impl Elf<'_> {
    /// Whether the compact relocations of `DT_RELR` add the load address to the word at `address` (gABI, "Relative Relocation Table").
    ///
    /// # Errors
    /// Malformed if the table does not lie in the file.
    pub fn is_relr(&self, address: u64) -> Result<bool> {
        let (Some(table), Some(size)) = (self.dynamic_value(DT_RELR)?, self.dynamic_value(DT_RELRSZ)?) else {
            return Ok(false);
        };
        // Each bitmap entry stands for the 63 words behind what came before it.
        const WORD: u64 = 8;
        const BITS: u64 = 63;
        let mut next = 0u64;
        for entry in self.bytes_at(table, size)?.chunks_exact(WORD as usize) {
            let entry = bytes::u64_at(entry, 0, "DT_RELR entry")?;
            if entry & 1 == 0 {
                if entry == address {
                    return Ok(true);
                }
                next = entry.wrapping_add(WORD);
            } else {
                let distance = address.wrapping_sub(next);
                if distance.is_multiple_of(WORD) && distance / WORD < BITS && entry >> (distance / WORD + 1) & 1 == 1 {
                    return Ok(true);
                }
                next = next.wrapping_add(WORD * BITS);
            }
        }
        Ok(false)
    }
}

/// The zero-terminated string at `offset` of a string table.
///
/// # Errors
/// Malformed if it starts outside the table, is not terminated or is not UTF-8.
pub fn string_at(strings: &[u8], offset: u64) -> Result<&str> {
    if offset == 0 {
        return Ok("");
    }
    let tail = usize::try_from(offset).ok().and_then(|offset| strings.get(offset..));
    let tail =
        tail.ok_or_else(|| Error::malformed(format!("a name lies at {offset:#x} of a string table of {:#x} bytes", strings.len())))?;
    let end = tail.iter().position(|&byte| byte == 0).ok_or_else(|| Error::malformed("a name is not terminated").at(offset))?;
    std::str::from_utf8(&tail[..end]).map_err(|_| Error::malformed("a name is not UTF-8").at(offset))
}

fn entry_size_is(data: &[u8], field: u64, count: u16, expected: u64) -> Result<()> {
    let found = bytes::u16_at(data, field, "header entry size")?;
    if count != 0 && u64::from(found) != expected {
        return Err(Error::malformed(format!("header table entries of {found} bytes, {expected} expected")).at(field));
    }
    Ok(())
}

fn read_segments(data: &[u8], header: &Header, count: u16) -> Result<Vec<Segment>> {
    let table = bytes::slice(data, header.segments_offset, u64::from(count) * PROGRAM_HEADER_SIZE, "program headers")?;
    let mut segments = Vec::with_capacity(count.into());
    for offset in (0..table.len() as u64).step_by(PROGRAM_HEADER_SIZE as usize) {
        let segment = Segment {
            kind: bytes::u32_at(table, offset, "p_type")?,
            flags: bytes::u32_at(table, offset + 4, "p_flags")?,
            offset: bytes::u64_at(table, offset + 8, "p_offset")?,
            address: bytes::u64_at(table, offset + 16, "p_vaddr")?,
            physical_address: bytes::u64_at(table, offset + 24, "p_paddr")?,
            file_size: bytes::u64_at(table, offset + 32, "p_filesz")?,
            memory_size: bytes::u64_at(table, offset + 40, "p_memsz")?,
            align: bytes::u64_at(table, offset + 48, "p_align")?,
        };
        let place = header.segments_offset + offset;
        bytes::slice(data, segment.offset, segment.file_size, "segment contents")
            .map_err(|error| error.within(format!("program header at {place:#x}")))?;
        if segment.address.checked_add(segment.memory_size).is_none() || (segment.is_load() && segment.file_size > segment.memory_size) {
            return Err(Error::malformed("a program header's sizes contradict each other").at(place));
        }
        segments.push(segment);
    }
    Ok(segments)
}

fn read_sections<'d>(data: &'d [u8], header: &Header, count: u16) -> Result<Vec<Section<'d>>> {
    let table = bytes::slice(data, header.sections_offset, u64::from(count) * SECTION_HEADER_SIZE, "section headers")?;
    let mut sections = Vec::with_capacity(count.into());
    for offset in (0..table.len() as u64).step_by(SECTION_HEADER_SIZE as usize) {
        let section = Section {
            name: "",
            name_offset: bytes::u32_at(table, offset, "sh_name")?,
            kind: bytes::u32_at(table, offset + 4, "sh_type")?,
            flags: bytes::u64_at(table, offset + 8, "sh_flags")?,
            address: bytes::u64_at(table, offset + 16, "sh_addr")?,
            offset: bytes::u64_at(table, offset + 24, "sh_offset")?,
            size: bytes::u64_at(table, offset + 32, "sh_size")?,
            link: bytes::u32_at(table, offset + 40, "sh_link")?,
            info: bytes::u32_at(table, offset + 44, "sh_info")?,
            align: bytes::u64_at(table, offset + 48, "sh_addralign")?,
            entry_size: bytes::u64_at(table, offset + 56, "sh_entsize")?,
        };
        let place = header.sections_offset + offset;
        if section.has_contents() {
            bytes::slice(data, section.offset, section.size, "section contents")
                .map_err(|error| error.within(format!("section header at {place:#x}")))?;
        }
        if section.address.checked_add(section.size).is_none() {
            return Err(Error::malformed("a section's address range wraps around").at(place));
        }
        sections.push(section);
    }
    if sections.is_empty() {
        return Ok(sections);
    }
    let names = sections.get(usize::from(header.names_index)).filter(|section| section.has_contents());
    let names =
        names.ok_or_else(|| Error::malformed(format!("e_shstrndx {} names no section with contents", header.names_index)).at(62))?;
    let names = bytes::slice(data, names.offset, names.size, "section names")?;
    for section in &mut sections {
        section.name = string_at(names, section.name_offset.into()).map_err(|error| error.within("section names"))?;
    }
    Ok(sections)
}
