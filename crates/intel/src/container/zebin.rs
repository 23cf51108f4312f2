//! A zebin: the ELF file with the code for one processor.

use std::ops::Range;

use object::LittleEndian as LE;
use object::elf::{FileHeader64, SHT_SYMTAB, STT_FUNC, SectionHeader64};
use object::read::elf::{FileHeader as _, SectionHeader as _, SectionTable, Sym as _, SymbolTable};
use wavetap_base::bytes::{slice, u16_at};
use wavetap_base::error::{Error, Result, ResultExt as _};
use wavetap_code::{Code, SourceLines};

use super::lines::{FunctionLines, LineTable};
use super::notes::Target;
use super::ze_info::{ExecutionEnvironment, ZeInfo};
use crate::isa::{Inst, decode};
use crate::program::Program;

/// `EM_INTELGT`.
pub(super) const MACHINE: u16 = 205;
/// `e_type` of an OpenCL device binary: an executable, a library, an object, a debug file.
const DEVICE_TYPES: [u16; 5] = [0xff01, 0xff02, 0xff03, 0xff04, 0xff05];
/// The section of a device binary with code.
const DEVICE_SECTION: &[u8] = b"Intel(R) OpenCL Device Binary";
const TEXT: &str = ".text.";
/// A place in a kernel after which its arguments are loaded.
const ENTRY: &[u8] = b"_entry";
/// Functions of a section at most.
const MAX_FUNCTIONS: usize = 1 << 16;
/// Lanes of a kernel of which nothing is said.
const DEFAULT_LANES: u32 = 16;

/// What an ELF file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElfKind {
    Zebin,
    Device,
    Other(u16),
}

pub(super) fn kind(bytes: &[u8]) -> Option<ElfKind> {
    if !bytes.starts_with(b"\x7fELF") {
        return None;
    }
    let (e_type, machine) = (u16_at(bytes, 16, "type").ok()?, u16_at(bytes, 18, "machine").ok()?);
    Some(match machine {
        MACHINE => ElfKind::Zebin,
        _ if DEVICE_TYPES.contains(&e_type) => ElfKind::Device,
        other => ElfKind::Other(other),
    })
}

type Sections<'d> = SectionTable<'d, FileHeader64<LE>>;

fn sections(file: &[u8]) -> Result<Sections<'_>> {
    let broken = |error: object::read::Error| Error::malformed(format!("zebin: {error}")).at(0);
    let header = FileHeader64::<LE>::parse(file).map_err(broken)?;
    header.endian().map_err(broken)?;
    let at_sections =
        |error: object::read::Error| Error::malformed(format!("sections: {error}")).at(header.e_shoff(LE));
    header.sections(LE, file).map_err(at_sections)
}

fn name_of<'d>(table: &Sections<'d>, section: &SectionHeader64<LE>) -> Result<&'d [u8]> {
    table
        .section_name(LE, section)
        .map_err(|error| Error::malformed(format!("a section's name: {error}")).at(section.sh_offset(LE)))
}

fn contents<'d>(file: &'d [u8], section: &SectionHeader64<LE>) -> Result<&'d [u8]> {
    slice(file, section.sh_offset(LE), section.sh_size(LE), "section")
}

/// The device binaries of the container with that name.
pub(super) fn device_binaries(file: &[u8]) -> Result<Vec<&[u8]>> {
    let table = sections(file)?;
    let mut found = Vec::new();
    for section in table.iter() {
        if name_of(&table, section)? == DEVICE_SECTION {
            found.push(contents(file, section)?);
        }
    }
    Ok(found)
}

/// A zebin whose tables were checked.
#[derive(Debug)]
pub struct Zebin<'d> {
    target: Target,
    functions: Vec<Function<'d>>,
    lines: Result<LineTable>,
}

/// A kernel, or a function that kernels call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'d> {
    /// Mangled name.
    pub name: &'d str,
    /// Whether the host can launch it; else it is called.
    pub is_kernel: bool,
    /// Lanes of a thread.
    pub lanes: u32,
    /// General registers of a thread; 0 if that is not told.
    pub register_count: u32,
    /// Where it is in its section. Addresses begin at 0 in each section: those of samples are the same.
    pub range: Range<u64>,
    target: Target,
    section: usize,
    bytes: &'d [u8],
}

impl<'d> Zebin<'d> {
    pub(super) fn parse(file: &'d [u8]) -> Result<Zebin<'d>> {
        let table = sections(file)?;
        let target = Target::of_notes(file, table.iter())?;
        let mut info = ZeInfo::default();
        let mut texts = Vec::new();
        for (index, section) in table.enumerate() {
            let name = name_of(&table, section)?;
            if name == b".ze_info" {
                info = ZeInfo::read(contents(file, section)?, section.sh_offset(LE))?;
            }
            let Some(name) = name.strip_prefix(TEXT.as_bytes()) else { continue };
            let name = std::str::from_utf8(name)
                .map_err(|_| Error::malformed("a section's name that is no UTF-8").at(section.sh_offset(LE)))?;
            let bytes = contents(file, section).within(|| format!("{TEXT}{name}"))?;
            texts.push((index.0, name, section.sh_addr(LE), bytes));
        }
        let symbols =
            table.symbols(LE, file, SHT_SYMTAB).map_err(|error| Error::malformed(format!("symbols: {error}")).at(0))?;
        let environment = |name: &str| info.kernels.iter().find(|kernel| kernel.name == name);
        let mut functions = Vec::new();
        for (section, name, base, bytes) in texts {
            let ranges = ranges(&symbols, section, name, base..base.saturating_add(bytes.len() as u64))
                .within(|| format!("{TEXT}{name}"))?;
            let kernel = environment(name).map(|kernel| kernel.execution_env);
            for (name, range) in ranges {
                let own = environment(name).map(|kernel| kernel.execution_env);
                let ExecutionEnvironment { grf_count, simd_size } = own.or(kernel).unwrap_or_default();
                let lanes = if simd_size == 0 { DEFAULT_LANES } else { simd_size };
                functions.push(Function {
                    name,
                    is_kernel: own.is_some(),
                    lanes,
                    register_count: grf_count,
                    range,
                    target,
                    section,
                    bytes,
                });
            }
        }
        let lines = LineTable::read(file, &table, &symbols);
        Ok(Zebin { target, functions, lines })
    }

    /// The processor.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// The functions, by section and address.
    #[must_use]
    pub fn functions(&self) -> &[Function<'d>] {
        &self.functions
    }

    /// The line table. A fault in it costs the lines alone.
    ///
    /// # Errors
    /// Malformed if `.debug_line` breaks its format.
    pub fn line_table(&self) -> Result<&LineTable> {
        self.lines.as_ref().map_err(Clone::clone)
    }

    /// The source lines of a function; none where the table has none, or breaks its format.
    #[must_use]
    pub fn lines(&self, function: &Function<'_>) -> FunctionLines<'_> {
        FunctionLines { table: self.lines.as_ref().ok(), section: function.section }
    }
}

/// The functions of a section: symbols that are not within another one. Without symbols, the section. In files that
/// were taken from a process, sections and symbols have `addresses`.
fn ranges<'d>(
    symbols: &SymbolTable<'d, FileHeader64<LE>>,
    section: usize,
    name: &'d str,
    addresses: Range<u64>,
) -> Result<Vec<(&'d str, Range<u64>)>> {
    let size = addresses.end - addresses.start;
    let mut found: Vec<(&str, Range<u64>)> = Vec::new();
    for symbol in symbols.iter().filter(|symbol| symbol.st_type() == STT_FUNC) {
        if usize::from(symbol.st_shndx(LE).0) != section {
            continue;
        }
        let fault = |what: &str| Error::malformed(format!("a function symbol {what}")).at(symbol.st_value(LE));
        let label = symbols.symbol_name(LE, symbol).map_err(|error| fault(&error.to_string()))?;
        if label == ENTRY {
            continue;
        }
        let label = std::str::from_utf8(label).map_err(|_| fault("whose name is no UTF-8"))?;
        let start =
            symbol.st_value(LE).checked_sub(addresses.start).ok_or_else(|| fault("that is not within its section"))?;
        let end = match symbol.st_size(LE) {
            0 => size,
            length => start.saturating_add(length),
        };
        if start >= end || end > size {
            return Err(fault("that is not within its section"));
        }
        found.push((label, start..end));
        if found.len() > MAX_FUNCTIONS {
            return Err(Error::limit(format!("more than {MAX_FUNCTIONS} functions in a section")));
        }
    }
    if found.is_empty() && size > 0 {
        found.push((name, 0..size));
    }
    // Outer ones first, and the section's own name before others of its range.
    found.sort_by_key(|(label, range)| (range.start, std::cmp::Reverse(range.end), *label != name));
    let mut end = 0;
    found.retain(|(_, range)| {
        let is_outer = range.start >= end;
        end = end.max(range.end);
        is_outer
    });
    Ok(found)
}

impl Function<'_> {
    /// Its instructions.
    ///
    /// # Errors
    /// As [`decode`], with the function's name.
    pub fn instructions(&self) -> Result<Vec<Inst>> {
        decode(self.bytes, self.range.clone()).map_err(|error| error.within(self.name))
    }

    /// The bytes of its section.
    #[must_use]
    pub fn section_bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Its code, with the source lines that `lines` knows.
    ///
    /// # Errors
    /// As [`Function::instructions`], and as [`wavetap_code::CodeBuilder::build`].
    pub fn code<'l>(&self, lines: &'l dyn SourceLines) -> Result<Code<'l>> {
        let instructions = self.instructions()?;
        let program =
            Program { name: self.name, is_kernel: self.is_kernel, target: self.target.name(), lanes: self.lanes };
        program.code(&instructions, lines).map_err(|error| error.within(self.name))
    }
}
