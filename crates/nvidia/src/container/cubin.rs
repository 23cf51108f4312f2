//! A cubin: the ELF file with the code for one model.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;

use object::LittleEndian as LE;
use object::elf::{EM_CUDA, FileHeader64, SHT_SYMTAB, STT_FUNC, SectionHeader64};
use object::read::elf::{FileHeader as _, Rel as _, Rela as _, SectionHeader as _, Sym as _};
use wavetap_base::bytes::slice;
use wavetap_base::error::{Error, Result, ResultExt as _};

use super::attributes::{IndirectBranches, indirect_branches};
use super::lines::{FunctionLines, LineTable};
use crate::isa::{INST_BYTES, Inst, Model, Word, decode};

/// `EI_OSABI` of CUDA 13 and of CUDA before: where the model is in `e_flags` depends on it.
const ABI_13: u8 = 0x41;
const ABI_BEFORE: u8 = 0x33;
/// In `st_other`: a kernel, which the host can launch.
const ENTRY: u8 = 0x10;
const TEXT: &str = ".text.";
const INFO: &str = ".nv.info.";

/// The opcode of padding.
const NOP: u16 = 0x918;

/// Largest section of code, in bytes.
const MAX_SECTION: u64 = 1 << 28;

/// The number of the model in a cubin's header.
pub(super) fn model(header: &FileHeader64<LE>) -> Result<u32> {
    let flags = header.e_flags(LE).0;
    match header.e_ident.os_abi.0 {
        ABI_13 => Ok(flags >> 8 & 0xff),
        ABI_BEFORE => Ok(flags & 0xff),
        other => Err(Error::unsupported(format!(
            "a cubin with OS/ABI {other:#x}: {ABI_13:#x} (CUDA 13) and {ABI_BEFORE:#x} (before) are handled"
        ))
        .at(7)),
    }
}

/// What a cubin's symbol table says of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FunctionSymbol {
    name: String,
    is_kernel: bool,
    /// Index of its section among the sections of the file.
    section: usize,
    range: Range<u64>,
}

#[derive(Debug, Clone)]
struct TextSection {
    name: String,
    /// Its bytes in the file.
    range: Range<usize>,
    branches: IndirectBranches,
    /// Offsets of instructions that the linker changes: they name another section.
    relocated: BTreeSet<u64>,
}

/// A cubin whose tables were checked.
#[derive(Debug)]
pub struct Cubin {
    origin: String,
    model: Model,
    bytes: Vec<u8>,
    functions: Vec<FunctionSymbol>,
    sections: HashMap<usize, TextSection>,
    lines: Result<LineTable>,
}

impl Cubin {
    /// Reads the tables of a cubin. `origin` says where it is from, for messages.
    ///
    /// # Errors
    /// Malformed if it is no cubin or its tables break the format; unsupported, with the name, if its model is not
    /// decoded. A fault in the line table costs the lines alone ([`Cubin::lines`]).
    pub fn parse(bytes: Vec<u8>, origin: &str) -> Result<Cubin> {
        Cubin::read(bytes, origin).within(|| origin.to_owned())
    }

    fn read(bytes: Vec<u8>, origin: &str) -> Result<Cubin> {
        let file = &bytes[..];
        let broken = |error: object::read::Error| Error::malformed(format!("cubin: {error}")).at(0);
        let header = FileHeader64::<LE>::parse(file).map_err(broken)?;
        header.endian().map_err(broken)?;
        let machine = header.e_machine(LE);
        if machine != EM_CUDA {
            let text = format!("an ELF file for machine {}: {} (CUDA) was expected", machine.0, EM_CUDA.0);
            return Err(Error::malformed(text).at(18));
        }
        let number = model(header)?;
        let model =
            u16::try_from(number).map_err(|_| Error::malformed("a model number of more than 16 bits").at(48))?;
        let model = Model::new(model)?;
        let at_sections = |error: object::read::Error| {
            Error::malformed(format!("sections of a cubin: {error}")).at(header.e_shoff(LE))
        };
        let table = header.sections(LE, file).map_err(at_sections)?;
        let mut named = Vec::new();
        for (index, section) in table.enumerate() {
            let name = table.section_name(LE, section).map_err(at_sections)?;
            let name = std::str::from_utf8(name)
                .map_err(|_| Error::malformed("a section's name that is no UTF-8").at(section.sh_offset(LE)))?;
            named.push((index.0, name, section));
        }
        let infos: HashMap<&str, _> =
            named.iter().filter_map(|(_, name, section)| Some((name.strip_prefix(INFO)?, *section))).collect();
        let mut sections = HashMap::new();
        for (index, name, section) in &named {
            let Some(function) = name.strip_prefix(TEXT) else { continue };
            let section = text_section(file, function, section, infos.get(function).copied())
                .within(|| format!("section {name}"))?;
            sections.insert(*index, section);
        }
        for (_, name, section) in &named {
            if let Some(text) = sections.get_mut(&(section.sh_info(LE) as usize)) {
                text.relocated.extend(relocated(file, section).within(|| format!("section {name}"))?);
            }
        }
        let symbols = table.symbols(LE, file, SHT_SYMTAB).map_err(at_sections)?;
        let functions = functions(&symbols, &sections)?;
        let lines = LineTable::read(file, &table, &symbols);
        Ok(Cubin { origin: origin.to_owned(), model, functions, sections, lines, bytes })
    }

    /// Where it is from: a file, and an entry in it.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The model it is for.
    #[must_use]
    pub fn model(&self) -> Model {
        self.model
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its functions, those of a section next to each other in the order of their addresses.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = Function<'_>> {
        self.functions.iter().map(|symbol| Function { cubin: self, symbol })
    }

    /// The source lines; empty if it was compiled without `-lineinfo`.
    ///
    /// # Errors
    /// Malformed if the line table breaks its format.
    pub fn lines(&self) -> Result<&LineTable> {
        self.lines.as_ref().map_err(Clone::clone)
    }
}

fn text_section(
    file: &[u8],
    name: &str,
    section: &SectionHeader64<LE>,
    info: Option<&SectionHeader64<LE>>,
) -> Result<TextSection> {
    let (offset, size) = (section.sh_offset(LE), section.sh_size(LE));
    slice(file, offset, size, "section of code")?;
    if size > MAX_SECTION || size % INST_BYTES != 0 {
        let text = format!("{size:#x} bytes of code: a multiple of 16 below {MAX_SECTION:#x} was expected");
        return Err(Error::malformed(text).at(offset));
    }
    let branches = match info {
        Some(info) => {
            let offset = info.sh_offset(LE);
            indirect_branches(slice(file, offset, info.sh_size(LE), "attributes")?, offset)?
        }
        None => IndirectBranches::new(),
    };
    Ok(TextSection {
        name: name.to_owned(),
        range: offset as usize..(offset + size) as usize,
        branches,
        relocated: BTreeSet::new(),
    })
}

/// The instructions that the relocations of a section change.
fn relocated(file: &[u8], section: &SectionHeader64<LE>) -> Result<BTreeSet<u64>> {
    let broken = |error: object::read::Error| Error::malformed(error.to_string()).at(section.sh_offset(LE));
    let with_addend = section.rela(LE, file).map_err(broken)?;
    let without = section.rel(LE, file).map_err(broken)?;
    let offsets = with_addend.iter().flat_map(|(entries, _)| entries.iter().map(|entry| entry.r_offset(LE)));
    let more = without.iter().flat_map(|(entries, _)| entries.iter().map(|entry| entry.r_offset(LE)));
    Ok(offsets.chain(more).map(|offset| offset / INST_BYTES * INST_BYTES).collect())
}

/// A function of a cubin.
#[derive(Debug, Clone, Copy)]
pub struct Function<'c> {
    cubin: &'c Cubin,
    symbol: &'c FunctionSymbol,
}

impl<'c> Function<'c> {
    /// Mangled name.
    #[must_use]
    pub fn name(&self) -> &'c str {
        &self.symbol.name
    }

    /// Whether the host can launch it; else it is called.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.symbol.is_kernel
    }

    /// The model it is for.
    #[must_use]
    pub fn model(&self) -> Model {
        self.cubin.model
    }

    fn text(&self) -> Option<&'c TextSection> {
        self.cubin.sections.get(&self.symbol.section)
    }

    /// The name of its section, without `.text.`: that of a kernel or function. Functions that a kernel alone calls are
    /// in the kernel's section.
    #[must_use]
    pub fn section(&self) -> &'c str {
        self.text().map_or("", |text| &text.name)
    }

    /// Where it is in its section. Addresses begin at 0 in each section.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.symbol.range.clone()
    }

    /// Where an indirect branch may go, as the compiler recorded it.
    #[must_use]
    pub fn indirect_targets(&self, branch: u64) -> Option<&'c [u64]> {
        self.text()?.branches.get(&branch).map(Vec::as_slice)
    }

    /// Whether the linker fills in what the instruction at this address names.
    #[must_use]
    pub fn is_relocated(&self, address: u64) -> bool {
        self.text().is_some_and(|text| text.relocated.contains(&address))
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &'c [u8] {
        let section = self.text().and_then(|text| self.cubin.bytes.get(text.range.clone())).unwrap_or_default();
        section.get(self.symbol.range.start as usize..self.symbol.range.end as usize).unwrap_or_default()
    }

    /// The offset in the cubin of its first instruction.
    #[must_use]
    pub fn file_offset(&self) -> u64 {
        self.text().map_or(0, |text| text.range.start as u64 + self.symbol.range.start)
    }

    /// Its instructions, without padding after the last one.
    ///
    /// # Errors
    /// Unsupported or malformed, with the offset in the section, if an instruction is not in the tables.
    pub fn instructions(&self) -> Result<Vec<Inst>> {
        let words = self.bytes().as_chunks::<16>().0;
        // Padding is of NOPs, which are not decoded: it is most of many small functions.
        let is_padding = |bytes: &&[u8; 16]| Word::from_bytes(**bytes).opcode() == NOP;
        let used = words.len() - words.iter().rev().take_while(is_padding).count();
        let addresses = (self.symbol.range.start..).step_by(INST_BYTES as usize);
        let decoded = addresses.zip(&words[..used]).map(|(address, bytes)| {
            decode(self.cubin.model, Word::from_bytes(*bytes), address).within(|| self.to_string())
        });
        decoded.collect()
    }

    /// Its source lines.
    ///
    /// # Errors
    /// Malformed if the line table of the cubin breaks its format.
    pub fn lines(&self) -> Result<FunctionLines<'c>> {
        Ok(FunctionLines::new(self.cubin.lines()?, self.symbol.section))
    }
}

impl fmt::Display for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} of {}", self.name(), self.cubin.model, self.cubin.origin)
    }
}

type Symbols<'d> = object::read::elf::SymbolTable<'d, FileHeader64<LE>>;

/// The functions of the sections of code. Each ends where the next one of its section begins.
fn functions(symbols: &Symbols<'_>, sections: &HashMap<usize, TextSection>) -> Result<Vec<FunctionSymbol>> {
    let mut all = Vec::new();
    for (index, symbol) in symbols.enumerate() {
        let section = usize::from(symbol.st_shndx(LE).0);
        let Some(text) = sections.get(&section).filter(|_| symbol.st_type() == STT_FUNC) else { continue };
        let fault = |what: &str| Error::malformed(format!("symbol {}: {what}", index.0)).at(text.range.start as u64);
        let name = symbol.name(LE, symbols.strings()).ok().and_then(|name| std::str::from_utf8(name).ok());
        let name = name.ok_or_else(|| fault("a name that cannot be read"))?;
        let start = symbol.st_value(LE);
        if start % INST_BYTES != 0 || start >= text.range.len() as u64 {
            return Err(fault("a function that begins where no instruction of its section does"));
        }
        let is_kernel = symbol.st_other().0 & ENTRY != 0;
        all.push(FunctionSymbol { name: name.to_owned(), is_kernel, section, range: start..text.range.len() as u64 });
    }
    all.sort_by_key(|function| (function.section, function.range.start, !function.is_kernel));
    all.dedup_by_key(|function| (function.section, function.range.start));
    for index in 1..all.len() {
        if all[index - 1].section == all[index].section {
            all[index - 1].range.end = all[index].range.start;
        }
    }
    Ok(all)
}
