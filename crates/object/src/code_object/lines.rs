//! Source lines of device addresses, and names of parameters, from the object's DWARF.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use gimli::{
    AttributeValue, DW_AT_abstract_origin, DW_AT_decl_line, DW_AT_low_pc, DW_AT_name, DW_AT_specification,
    DW_TAG_formal_parameter, DW_TAG_subprogram, EndianArcSlice, LittleEndian,
};
use object::pod;

use crate::elf::constants::{CompressionHeader64, ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, SHF_COMPRESSED};
use crate::elf::{Elf, Section};
use wavetap_base::error::{Error, Result, ResultExt};

/// Largest debug section that is unpacked.
const MAX_SECTION: u64 = 1 << 30;

/// A debug section, unpacked.
type Contents = EndianArcSlice<LittleEndian>;

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLocation {
    /// Path as the compiler recorded it.
    pub file: String,
    /// Line, from 1; 0 when the compiler gave the instruction to no line.
    pub line: u32,
    /// Column, from 1; 0 for the whole line.
    pub column: u32,
}

/// One function that an instruction belongs to: the innermost is the function inlined last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Name of the function, demangled, if the DWARF tells.
    pub function: Option<String>,
    /// The place within that function.
    pub location: Option<SourceLocation>,
}

/// The line table of a code object.
pub struct LineTable {
    context: addr2line::Context<Contents>,
}

impl std::fmt::Debug for LineTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LineTable")
    }
}

impl LineTable {
    /// Loads the DWARF of an object; `None` when it was compiled without debug information.
    ///
    /// # Errors
    /// Malformed when the DWARF breaks its format.
    pub fn load(elf: &Elf<'_>) -> Result<Option<Self>> {
        if elf.section(".debug_line").is_none() || elf.section(".debug_info").is_none() {
            return Ok(None);
        }
        let dwarf = gimli::Dwarf::load(|id| {
            let contents = match elf.section(id.name()) {
                Some(section) => debug_section(elf, section).within(|| id.name().to_owned())?,
                None => Cow::Borrowed(&[][..]),
            };
            Ok::<_, Error>(EndianArcSlice::new(Arc::from(contents.as_ref()), LittleEndian))
        })?;
        let context = addr2line::Context::from_dwarf(dwarf)
            .map_err(|error| Error::malformed(format!("debug information: {error}")))?;
        Ok(Some(LineTable { context }))
    }

    /// The source place of the instruction at `address`, innermost; `None` when the table has no line for it.
    #[must_use]
    pub fn location(&self, address: u64) -> Option<SourceLocation> {
        convert(self.context.find_location(address).ok()??)
    }

    /// The functions around the instruction at `address`, innermost first; empty when the DWARF has none.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        let Ok(mut found) = self.context.find_frames(address).skip_all_loads() else {
            return frames;
        };
        while let Ok(Some(frame)) = found.next() {
            let function = frame.function.and_then(|name| Some(super::demangle(&name.raw_name().ok()?).into_owned()));
            frames.push(Frame { function, location: frame.location.and_then(convert) });
        }
        frames
    }

    /// The names of the parameters of the function that begins at `address`, in their order; none where the DWARF has
    /// no such function, or one of them has no name. Line tables alone (`-gline-tables-only`) have no parameters.
    #[must_use]
    pub fn parameters(&self, address: u64) -> Option<Vec<String>> {
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
        parameters(unit, address).ok().flatten()
    }

    /// The line in which the function that begins at `address` is declared; none where the DWARF does not say. Line
    /// tables alone (`-gline-tables-only`) do not.
    #[must_use]
    pub fn declaration(&self, address: u64) -> Option<u32> {
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
        declaration(unit, address).ok().flatten()
    }
}

/// References from a function to its declaration that are followed.
const MOST_REFERENCES: usize = 8;

/// The line in which the function of a unit is declared that begins at `address`.
fn declaration(unit: gimli::UnitRef<'_, Contents>, address: u64) -> gimli::Result<Option<u32>> {
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        let begin = entry.attr_value(DW_AT_low_pc).map(|value| unit.attr_address(value)).transpose()?;
        if entry.tag() != DW_TAG_subprogram || begin.flatten() != Some(address) {
            continue;
        }
        let mut entry = entry.clone();
        for _ in 0..MOST_REFERENCES {
            if let Some(line) = entry.attr_value(DW_AT_decl_line).and_then(|value| value.udata_value()) {
                return Ok(u32::try_from(line).ok().filter(|line| *line > 0));
            }
            let next = entry.attr_value(DW_AT_abstract_origin).or_else(|| entry.attr_value(DW_AT_specification));
            let Some(AttributeValue::UnitRef(offset)) = next else { break };
            entry = unit.entry(offset)?;
        }
        break;
    }
    Ok(None)
}

/// The names of the parameters of the function of a unit that begins at `address`; none where one has no name.
fn parameters(unit: gimli::UnitRef<'_, Contents>, address: u64) -> gimli::Result<Option<Vec<String>>> {
    let mut entries = unit.entries();
    let mut function = None;
    let mut names = Vec::new();
    while let Some(entry) = entries.next_dfs()? {
        match function {
            None if entry.tag() == DW_TAG_subprogram => {
                let begin = entry.attr_value(DW_AT_low_pc).map(|value| unit.attr_address(value)).transpose()?;
                function = (begin.flatten() == Some(address)).then(|| entry.depth());
            }
            Some(depth) if entry.depth() <= depth => break,
            Some(depth) if entry.depth() == depth + 1 && entry.tag() == DW_TAG_formal_parameter => {
                let origin = match entry.attr_value(DW_AT_abstract_origin) {
                    Some(AttributeValue::UnitRef(offset)) => unit.entry(offset)?.attr_value(DW_AT_name),
                    _ => None,
                };
                let Some(name) = entry.attr_value(DW_AT_name).or(origin) else { return Ok(None) };
                names.push(String::from_utf8_lossy(&unit.attr_string(name)?).into_owned());
            }
            _ => {}
        }
    }
    Ok(function.map(|_| names))
}

fn convert(location: addr2line::Location<'_>) -> Option<SourceLocation> {
    let file = location.file?.to_owned();
    Some(SourceLocation { file, line: location.line.unwrap_or(0), column: location.column.unwrap_or(0) })
}

/// The contents of a debug section, unpacked if it is compressed.
fn debug_section<'d>(elf: &Elf<'d>, section: &Section<'_>) -> Result<Cow<'d, [u8]>> {
    let contents = elf.contents(section)?;
    if !section.flags.contains(SHF_COMPRESSED) {
        return Ok(Cow::Borrowed(contents));
    }
    let (header, packed) = pod::from_bytes::<CompressionHeader64<object::LittleEndian>>(contents)
        .map_err(|()| Error::malformed("a compressed debug section ends in its header").at(section.offset))?;
    let (method, size) = (header.ch_type.get(object::LittleEndian), header.ch_size.get(object::LittleEndian));
    if size > MAX_SECTION {
        return Err(Error::limit(format!("a debug section that unpacks to {size:#x} bytes")).at(section.offset));
    }
    let broken = |error: &dyn std::fmt::Display| {
        Error::malformed(format!("a compressed debug section: {error}")).at(section.offset)
    };
    let mut out = Vec::new();
    match method {
        ELFCOMPRESS_ZLIB => flate2::read::ZlibDecoder::new(packed)
            .take(size + 1)
            .read_to_end(&mut out)
            .map_err(|error| broken(&error))?,
        ELFCOMPRESS_ZSTD => {
            out = zstd::bulk::decompress(packed, size as usize).map_err(|error| broken(&error))?;
            out.len()
        }
        other => return Err(Error::unsupported(format!("debug section compression {other}")).at(section.offset)),
    };
    if out.len() as u64 != size {
        return Err(broken(&"its size is not the one its header says"));
    }
    Ok(Cow::Owned(out))
}
