//! Source lines of a cubin: `.debug_line`, whose sequences are tied to functions by relocations.
//!
//! Two of its extended opcodes are the vendor's. 0x90 has two numbers: a row of this sequence, counted from 1, that
//! holds the place of a call (0: none), and the offset in `.debug_str` of the name of the function that was inlined
//! there. It holds for the rows that follow, until the next 0x90 or the end of the sequence. This was found by
//! comparing tables with what `nvdisasm -gi` prints.

use std::borrow::Cow;

use gimli::{AttributeValue, DebugLineOffset, EndianSlice, LineInstruction, LineRow, LittleEndian, Reader as _};
use object::LittleEndian as LE;
use object::elf::FileHeader64;
use object::read::elf::{Rel as _, Rela as _, SectionHeader as _, SectionTable, Sym as _};
use wavetap_base::bytes::{put, slice, u64_at};
use wavetap_base::error::{Error, Result, ResultExt as _};
use wavetap_code::{InlinedCall, SourceLine, SourceLines};

const INLINED_CALL: u8 = 0x90;
/// Calls that are followed from one row: the depth of inlining.
const MAX_DEPTH: usize = 64;
/// The largest index of a section that addresses can name.
const MAX_SECTIONS: u64 = 1 << 16;
/// Sections have 2^40 bytes of addresses each while the table is read.
const SECTION_SHIFT: u32 = 40;

#[derive(Debug, Clone, Copy)]
struct Row {
    address: u64,
    /// An index of [`LineTable::files`].
    file: u32,
    line: u32,
    /// The row of the call, an index of [`LineTable::rows`], and an index of [`LineTable::names`].
    inlined: Option<(u32, u32)>,
    ends: bool,
}

/// The line table.
#[derive(Debug, Default)]
pub struct LineTable {
    files: Vec<String>,
    names: Vec<String>,
    rows: Vec<Row>,
    /// Indices of rows in the order of their addresses.
    order: Vec<u32>,
}

/// The lines of the instructions of one section.
#[derive(Debug, Clone, Copy)]
pub struct FunctionLines<'c> {
    table: &'c LineTable,
    section: usize,
}

impl<'c> FunctionLines<'c> {
    pub(super) fn new(table: &'c LineTable, section: usize) -> FunctionLines<'c> {
        FunctionLines { table, section }
    }
}

impl SourceLines for FunctionLines<'_> {
    fn line(&self, address: u64) -> Option<SourceLine> {
        self.table.location(self.section, address)
    }

    fn inlined(&self, address: u64) -> Vec<InlinedCall> {
        self.table.inlined(self.section, address)
    }
}

type Bytes<'d> = EndianSlice<'d, LittleEndian>;
type Sections<'d> = SectionTable<'d, FileHeader64<LE>>;
type Symbols<'d> = object::read::elf::SymbolTable<'d, FileHeader64<LE>>;

impl LineTable {
    /// Where the instruction at `address` of a section comes from. None if the compiler gave it to no line.
    pub(crate) fn location(&self, section: usize, address: u64) -> Option<SourceLine> {
        self.row(section, address).map(|row| self.place(row)).filter(|place| place.line > 0)
    }

    /// By which inlined calls it came there, innermost first.
    pub(crate) fn inlined(&self, section: usize, address: u64) -> Vec<InlinedCall> {
        let mut calls = Vec::new();
        let mut row = self.row(section, address);
        while let Some((caller, name)) = row.and_then(|row| row.inlined)
            && calls.len() < MAX_DEPTH
        {
            let Some(caller) = self.rows.get(caller as usize) else { break };
            calls.push(InlinedCall { function: self.names.get(name as usize).cloned(), called_at: self.place(caller) });
            row = Some(caller);
        }
        calls
    }

    /// Whether there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn row(&self, section: usize, address: u64) -> Option<&Row> {
        let address = (section as u64) << SECTION_SHIFT | address;
        let after = self.order.partition_point(|row| self.rows[*row as usize].address <= address);
        let row = &self.rows[*self.order.get(after.checked_sub(1)?)? as usize];
        (!row.ends && row.address >> SECTION_SHIFT == section as u64).then_some(row)
    }

    fn place(&self, row: &Row) -> SourceLine {
        SourceLine { file: self.files.get(row.file as usize).cloned().unwrap_or_default(), line: row.line }
    }

    pub(super) fn read(file: &[u8], sections: &Sections<'_>, symbols: &Symbols<'_>) -> Result<LineTable> {
        let section = |name: &str| {
            sections.enumerate().find(|(_, section)| sections.section_name(LE, section) == Ok(name.as_bytes()))
        };
        let contents = |name: &str| match section(name) {
            Some((_, section)) => slice(file, section.sh_offset(LE), section.sh_size(LE), name),
            None => Ok(&[][..]),
        };
        let Some((index, _)) = section(".debug_line") else { return Ok(LineTable::default()) };
        let mut bytes = Cow::Borrowed(contents(".debug_line")?);
        relocate(file, sections, symbols, index.0, bytes.to_mut())
            .within(|| "relocations of .debug_line".to_owned())?;
        let mut table = LineTable::default();
        let (strings, line_strings) = (contents(".debug_str")?, contents(".debug_line_str")?);
        table.programs(&bytes, strings, line_strings).within(|| ".debug_line".to_owned())?;
        let mut order: Vec<u32> = (0..table.rows.len() as u32).collect();
        // Stable: of two rows at one address the later one holds, and an end gives way to a beginning.
        order.sort_by_key(|row| (table.rows[*row as usize].address, !table.rows[*row as usize].ends));
        table.order = order;
        Ok(table)
    }

    fn programs(&mut self, bytes: &[u8], strings: &[u8], line_strings: &[u8]) -> Result<()> {
        let lines = gimli::DebugLine::new(bytes, LittleEndian);
        let mut offset = 0;
        while offset < bytes.len() {
            let program =
                lines.program(DebugLineOffset(offset), 8, None, None).map_err(|error| broken(error, offset))?;
            let length = program.header().unit_length();
            let head = usize::from(program.header().format().initial_length_size());
            self.program(program, strings, line_strings).map_err(|error| error.at(offset as u64))?;
            offset = offset.saturating_add(head).saturating_add(length);
        }
        Ok(())
    }

    fn program<'d>(
        &mut self,
        mut program: gimli::IncompleteLineProgram<Bytes<'d>>,
        strings: &[u8],
        line_strings: &[u8],
    ) -> Result<()> {
        let malformed = |error| broken(error, 0);
        let header = program.header().clone();
        let mut files = Vec::new();
        let mut instructions = header.instructions();
        let mut row = LineRow::new(&header);
        let (mut first, mut inlined) = (self.rows.len() as u32, None);
        while let Some(instruction) = instructions.next_instruction(&header).map_err(malformed)? {
            if let LineInstruction::UnknownExtended(opcode, mut rest) = instruction {
                if opcode.0 == INLINED_CALL {
                    let context = rest.read_uleb128().map_err(malformed)?;
                    let name = rest.read_uleb128().map_err(malformed)?;
                    inlined = match context.checked_sub(1) {
                        Some(context) if context < u64::from(self.rows.len() as u32 - first) => {
                            let name = string(strings, name)
                                .ok_or_else(|| Error::malformed("an inlined function whose name is not there"))?;
                            Some((first + context as u32, self.name(name)))
                        }
                        Some(_) => return Err(Error::malformed("an inlined call at a row that is not before it")),
                        None => None,
                    };
                }
                continue;
            }
            if !row.execute(instruction, &mut program).map_err(malformed)? {
                continue;
            }
            let number = row.file_index();
            let file = match files.iter().find(|(known, _)| *known == number) {
                Some((_, index)) => *index,
                None => {
                    let index = self.file(path(&header, number, strings, line_strings));
                    files.push((number, index));
                    index
                }
            };
            let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
            let ends = row.end_sequence();
            self.rows.push(Row { address: row.address(), file, line, inlined, ends });
            if ends {
                (first, inlined) = (self.rows.len() as u32, None);
            }
            row.reset(&header);
        }
        Ok(())
    }

    fn file(&mut self, path: String) -> u32 {
        intern(&mut self.files, path)
    }

    fn name(&mut self, name: String) -> u32 {
        intern(&mut self.names, name)
    }
}

fn broken(error: gimli::Error, offset: usize) -> Error {
    let error = Error::malformed(format!("line table: {error}"));
    if offset == 0 { error } else { error.at(offset as u64) }
}

fn intern(all: &mut Vec<String>, text: String) -> u32 {
    let index = all.iter().position(|known| *known == text).unwrap_or_else(|| {
        all.push(text);
        all.len() - 1
    });
    index as u32
}

fn string(strings: &[u8], offset: u64) -> Option<String> {
    let rest = strings.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

/// The path of a file of a program.
fn path(header: &gimli::LineProgramHeader<Bytes<'_>>, number: u64, strings: &[u8], line_strings: &[u8]) -> String {
    let text = |value: AttributeValue<Bytes<'_>>| match value {
        AttributeValue::String(text) => text.to_string_lossy().into_owned(),
        AttributeValue::DebugStrRef(offset) => string(strings, offset.0 as u64).unwrap_or_default(),
        AttributeValue::DebugLineStrRef(offset) => string(line_strings, offset.0 as u64).unwrap_or_default(),
        _ => String::new(),
    };
    let Some(file) = header.file(number) else { return String::new() };
    let name = text(file.path_name());
    match file.directory(header).map(text) {
        Some(folder) if !folder.is_empty() && !name.starts_with('/') => format!("{folder}/{name}"),
        _ => name,
    }
}

/// Applies the relocations of a section: each puts the address of a symbol, in the symbol's section, into eight bytes.
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
        let mut places = Vec::new();
        if let Some((entries, _)) = section.rela(LE, file).map_err(broken)? {
            places.extend(entries.iter().map(|entry| {
                (entry.r_offset(LE), entry.symbol(LE, false).map(|index| index.0), Some(entry.r_addend(LE)))
            }));
        } else if let Some((entries, _)) = section.rel(LE, file).map_err(broken)? {
            places
                .extend(entries.iter().map(|entry| (entry.r_offset(LE), entry.symbol(LE).map(|index| index.0), None)));
        }
        for (offset, symbol, addend) in places {
            let symbol = symbol.and_then(|index| symbols.symbol(object::SymbolIndex(index)).ok());
            let symbol = symbol.ok_or_else(|| fault("a relocation with a symbol that is not there"))?;
            let section = u64::from(symbol.st_shndx(LE).0);
            let addend = match addend {
                Some(addend) => addend,
                None => u64_at(bytes, offset, "place of a relocation")? as i64,
            };
            let address = symbol.st_value(LE).wrapping_add_signed(addend);
            if section >= MAX_SECTIONS || address >= 1 << SECTION_SHIFT {
                return Err(fault("a relocation to an address that no section has"));
            }
            put(bytes, offset, &(section << SECTION_SHIFT | address).to_le_bytes())
                .map_err(|_| fault("a relocation after the end of its section"))?;
        }
    }
    Ok(())
}
