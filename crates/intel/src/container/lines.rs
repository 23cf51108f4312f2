//! Source lines: `.debug_line`, whose sequences belong to functions by relocations.

use gimli::{AttributeValue, DebugLineOffset, EndianSlice, LittleEndian};
use object::LittleEndian as LE;
use object::elf::FileHeader64;
use object::read::elf::{Rel as _, Rela as _, SectionHeader as _, SectionTable, Sym as _, SymbolTable};
use wavetap_base::bytes::{put, slice, u64_at};
use wavetap_base::error::{Error, Result, ResultExt as _};
use wavetap_code::{SourceLine, SourceLines};

/// A relocation that puts an address of 64 bits.
const ADDRESS: u32 = 1;
const LOST: &str = "a relocation with a symbol that is not there";
/// While the table is read, each section has addresses of its own: its number above this bit.
const SECTION_SHIFT: u32 = 40;

#[derive(Debug, Clone, Copy)]
struct Row {
    address: u64,
    file: u32,
    line: u32,
    ends: bool,
}

/// The line table of a zebin.
#[derive(Debug, Default)]
pub struct LineTable {
    files: Vec<String>,
    /// Ascending by address.
    rows: Vec<Row>,
}

/// The lines of one function.
#[derive(Debug, Clone, Copy)]
pub struct FunctionLines<'z> {
    pub(super) table: Option<&'z LineTable>,
    pub(super) section: usize,
}

impl SourceLines for FunctionLines<'_> {
    fn line(&self, address: u64) -> Option<SourceLine> {
        self.table?.line(self.section, address)
    }
}

type Sections<'d> = SectionTable<'d, FileHeader64<LE>>;
type Symbols<'d> = SymbolTable<'d, FileHeader64<LE>>;
type Bytes<'d> = EndianSlice<'d, LittleEndian>;

impl LineTable {
    /// Whether there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn line(&self, section: usize, address: u64) -> Option<SourceLine> {
        let address = (section as u64) << SECTION_SHIFT | address;
        let after = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows.get(after.checked_sub(1)?)?;
        if row.ends || row.line == 0 || row.address >> SECTION_SHIFT != section as u64 {
            return None;
        }
        Some(SourceLine { file: self.files.get(row.file as usize)?.clone(), line: row.line })
    }

    pub(super) fn read(file: &[u8], sections: &Sections<'_>, symbols: &Symbols<'_>) -> Result<LineTable> {
        let found = sections
            .enumerate()
            .find(|(_, section)| sections.section_name(LE, section).is_ok_and(|name| name == b".debug_line"));
        let Some((index, section)) = found else { return Ok(LineTable::default()) };
        let bytes = slice(file, section.sh_offset(LE), section.sh_size(LE), ".debug_line")?;
        let mut bytes = bytes.to_vec();
        relocate(file, sections, symbols, index.0, &mut bytes).within(|| "relocations of .debug_line".to_owned())?;
        let mut table = LineTable::default();
        table.programs(&bytes).within(|| ".debug_line".to_owned())?;
        // Stable: of two rows at one address the later one holds, and an end gives way to a beginning.
        table.rows.sort_by_key(|row| (row.address, !row.ends));
        Ok(table)
    }

    fn programs(&mut self, bytes: &[u8]) -> Result<()> {
        let lines = gimli::DebugLine::new(bytes, LittleEndian);
        let mut offset = 0;
        while offset < bytes.len() {
            let broken = |error: gimli::Error| Error::malformed(error.to_string()).at(offset as u64);
            let program = lines.program(DebugLineOffset(offset), 8, None, None).map_err(broken)?;
            let header = program.header();
            let next = offset
                .saturating_add(usize::from(header.format().initial_length_size()))
                .saturating_add(header.unit_length());
            let mut rows = program.rows();
            let mut files: Vec<(u64, u32)> = Vec::new();
            while let Some((header, row)) = rows.next_row().map_err(broken)? {
                let number = row.file_index();
                let file = match files.iter().find(|(known, _)| *known == number) {
                    Some((_, file)) => *file,
                    None => {
                        let file = self.file(path(header, number));
                        files.push((number, file));
                        file
                    }
                };
                let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
                self.rows.push(Row { address: row.address(), file, line, ends: row.end_sequence() });
            }
            offset = next;
        }
        Ok(())
    }

    fn file(&mut self, path: String) -> u32 {
        let known = self.files.iter().position(|file| *file == path);
        known.unwrap_or_else(|| {
            self.files.push(path);
            self.files.len() - 1
        }) as u32
    }
}

/// The path of a file; the tables of DWARF 4 have their names in place.
fn path(header: &gimli::LineProgramHeader<Bytes<'_>>, number: u64) -> String {
    let text = |value: AttributeValue<Bytes<'_>>| match value {
        AttributeValue::String(text) => text.to_string_lossy().into_owned(),
        _ => String::new(),
    };
    let Some(file) = header.file(number) else { return String::new() };
    let name = text(file.path_name());
    match file.directory(header).map(text) {
        Some(folder) if !folder.is_empty() && !name.starts_with('/') => format!("{folder}/{name}"),
        _ => name,
    }
}

/// The index and the address of the section of a symbol. Files that were taken from a process have symbols with the
/// name of their section, and the index of another one.
fn section_of(sections: &Sections<'_>, symbols: &Symbols<'_>, symbol: &object::elf::Sym64<LE>) -> Option<(usize, u64)> {
    let name = symbols.symbol_name(LE, symbol).ok()?;
    let named = sections.enumerate().find(|(_, section)| sections.section_name(LE, section) == Ok(name));
    let index = named.map_or(usize::from(symbol.st_shndx(LE).0), |(index, _)| index.0);
    let section = sections.section(object::SectionIndex(index)).ok()?;
    Some((index, section.sh_addr(LE)))
}

/// Puts the section and the offset of a symbol where relocations want its address.
fn relocate(
    file: &[u8],
    sections: &Sections<'_>,
    symbols: &Symbols<'_>,
    target: usize,
    bytes: &mut [u8],
) -> Result<()> {
    for section in sections.iter().filter(|section| section.sh_info(LE) as usize == target) {
        let fault = |what: &str| Error::malformed(what.to_owned()).at(section.sh_offset(LE));
        let broken = |error: object::read::Error| fault(&error.to_string());
        // Place, symbol, type, and the addend unless it is in place.
        let mut all = Vec::new();
        if let Some((entries, _)) = section.rela(LE, file).map_err(broken)? {
            for entry in entries {
                all.push((
                    entry.r_offset(LE),
                    entry.symbol(LE, false),
                    entry.r_type(LE, false),
                    Some(entry.r_addend(LE)),
                ));
            }
        } else if let Some((entries, _)) = section.rel(LE, file).map_err(broken)? {
            for entry in entries {
                all.push((entry.r_offset(LE), entry.symbol(LE), entry.r_type(LE), None));
            }
        }
        for (offset, symbol, kind, addend) in all {
            if kind.0 != ADDRESS {
                continue;
            }
            let symbol = symbol.and_then(|index| symbols.symbol(index).ok());
            let symbol = symbol.ok_or_else(|| fault(LOST))?;
            let addend = match addend {
                Some(addend) => addend,
                None => u64_at(bytes, offset, "place of a relocation")?.cast_signed(),
            };
            let (section, base) = section_of(sections, symbols, symbol).ok_or_else(|| fault(LOST))?;
            // In files that were taken from a process, sections and symbols have addresses.
            let address = symbol.st_value(LE).wrapping_sub(base).wrapping_add_signed(addend);
            if address >= 1 << SECTION_SHIFT {
                return Err(fault("a relocation to an address that no section has"));
            }
            let address = (section as u64) << SECTION_SHIFT | address;
            put(bytes, offset, &address.to_le_bytes())
                .map_err(|_| fault("a relocation after the end of its section"))?;
        }
    }
    Ok(())
}
