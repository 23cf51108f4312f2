//! The wrappers in `.hipFatBinSegment`: 24 bytes per translation unit that tell the HIP runtime where its bundle is.

use super::MalformedBundle;
use crate::elf::constants::{ET_EXEC, R_X86_64_64, R_X86_64_RELATIVE, Rela64};
use crate::elf::{Elf, Relocation, Section, Symbol};
use wavetap_base::bytes;
use wavetap_base::error::{Error, Result, ResultExt};

/// The section that holds the wrappers.
pub const SECTION: &str = ".hipFatBinSegment";

/// First word of a wrapper: `HIPF` (what HIP's `__hipRegisterFatBinary` checks).
pub const MAGIC: u32 = 0x4849_5046;

/// Bytes of one wrapper: magic, version, pointer to the bundle, reserved pointer.
pub const SIZE: u64 = 24;

/// Offset of the bundle's address within a wrapper.
pub const POINTER_OFFSET: u64 = 8;

/// Bytes that a relocation changes.
const WORD: u64 = 8;

/// Offset of the addend within a relocation.
const ADDEND_OFFSET: u64 = std::mem::offset_of!(Rela64<object::LittleEndian>, r_addend) as u64;

/// Where the address in a wrapper comes from when the program is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pointer {
    /// The word in the file, as it is (fixed-address executable) or with the load address added (`DT_RELR`).
    InPlace,
    /// The addend of a relocation that has its place alone: `R_X86_64_RELATIVE`, or `R_X86_64_64` with a symbol that
    /// this file defines for itself (`__hip_fatbin` of relocatable device code).
    Addend {
        /// File offset of `r_addend`, which has 64 bits.
        file_offset: u64,
        /// What the loader adds to the addend beside the load address: the symbol's address, or 0.
        base: u64,
    },
}

/// One wrapper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    /// Its virtual address.
    pub address: u64,
    /// Its file offset; the word with the bundle's address is at [`POINTER_OFFSET`] after it.
    pub file_offset: u64,
    /// Virtual address of the bundle it names.
    pub bundle_address: u64,
    /// The word in the file where the bundle's address is or will be; often 0 when a relocation supplies it.
    pub in_place: u64,
    /// Where the address comes from.
    pub pointer: Pointer,
    /// Index of the bundle it names.
    pub bundle: usize,
}

/// Reads all wrappers of a host file; `bundle` is not known yet and left 0. Those that cannot be followed go to
/// `malformed`.
pub(super) fn read(elf: &Elf<'_>, malformed: &mut Vec<MalformedBundle>) -> Result<Vec<Wrapper>> {
    let mut wrappers = Vec::new();
    let sections: Vec<_> =
        elf.sections.iter().filter(|section| section.name == SECTION && section.is_alloc()).collect();
    if sections.is_empty() {
        return Ok(wrappers);
    }
    let mut relocations = elf.dynamic_relocations().within(|| "the relocation table".into())?;
    relocations.sort_by_key(|relocation| relocation.address);
    // Read when a wrapper needs them.
    let mut symbols = None;
    for section in sections {
        let contents = elf.contents(section)?;
        if !(contents.len() as u64).is_multiple_of(SIZE) {
            let message = format!("{SECTION} has {} bytes, a multiple of {SIZE} expected", contents.len());
            return Err(Error::malformed(message).at(section.offset));
        }
        for start in (0..contents.len() as u64).step_by(SIZE as usize) {
            match read_one(elf, section, contents, start, &relocations, &mut symbols) {
                Ok(wrapper) => wrappers.push(wrapper),
                Err(error) => {
                    malformed.push(MalformedBundle { is_wrapper: true, offset: Some(section.offset + start), error })
                }
            }
        }
    }
    Ok(wrappers)
}

/// Reads the wrapper at an offset of its section. Relocations are by address.
fn read_one<'d>(
    elf: &Elf<'d>,
    section: &Section<'_>,
    contents: &[u8],
    start: u64,
    relocations: &[Relocation],
    symbols: &mut Option<Vec<Symbol<'d>>>,
) -> Result<Wrapper> {
    let (address, file_offset) = (section.address + start, section.offset + start);
    let magic = bytes::u32_at(contents, start, "wrapper magic")?;
    if magic != MAGIC {
        return Err(Error::malformed(format!("a wrapper starts with {magic:#x}, {MAGIC:#x} expected")).at(file_offset));
    }
    let version = bytes::u32_at(contents, start + 4, "wrapper version")?;
    if version != 1 {
        return Err(Error::unsupported(format!("a wrapper of version {version}, 1 is handled")).at(file_offset + 4));
    }
    let in_place = bytes::u64_at(contents, start + POINTER_OFFSET, "wrapper pointer")?;
    let place = address + POINTER_OFFSET;
    let first = relocations.partition_point(|relocation| relocation.address.saturating_add(WORD) <= place);
    let mut naming =
        relocations[first..].iter().take_while(|relocation| relocation.address < place.saturating_add(WORD));
    let (pointer, bundle_address) = match (naming.next(), naming.next()) {
        (None, _) if elf.header.kind == ET_EXEC || elf.is_relr(place)? => (Pointer::InPlace, in_place),
        (None, _) => {
            let message = "a wrapper's pointer in a position-independent file is not relocated in a known way";
            return Err(Error::unsupported(message).at(file_offset + POINTER_OFFSET));
        }
        (Some(one), None) if one.address == place => relocated(elf, one, symbols)?,
        (Some(one), _) => {
            let message =
                format!("a wrapper's pointer is relocated in parts, by type {} at {:#x}", one.kind, one.address);
            return Err(Error::unsupported(message).at(one.file_offset));
        }
    };
    Ok(Wrapper { address, file_offset, bundle_address, in_place, pointer, bundle: 0 })
}

/// Where a pointer comes from that one relocation supplies, and the address that it gives.
fn relocated<'d>(elf: &Elf<'d>, one: &Relocation, symbols: &mut Option<Vec<Symbol<'d>>>) -> Result<(Pointer, u64)> {
    let base = match one.kind {
        R_X86_64_RELATIVE => 0,
        R_X86_64_64 => {
            let symbols = match symbols {
                Some(symbols) => symbols,
                none => none.insert(elf.dynamic_symbols()?),
            };
            let symbol = symbols.get(one.symbol as usize).filter(|symbol| symbol.is_defined());
            let symbol = symbol.ok_or_else(|| {
                let message = format!(
                    "a wrapper names a bundle in another file: its pointer is that of the undefined symbol {}",
                    one.symbol
                );
                Error::unsupported(message).at(one.file_offset)
            })?;
            if !elf.defines_for_itself(symbol)? {
                let message = format!(
                    "a wrapper's pointer is that of the symbol {}, which another file may define first",
                    symbol.name
                );
                return Err(Error::unsupported(message).at(one.file_offset));
            }
            symbol.address
        }
        kind => {
            let message = format!("a wrapper's pointer is relocated by type {kind} at {:#x}", one.address);
            return Err(Error::unsupported(message).at(one.file_offset));
        }
    };
    Ok((Pointer::Addend { file_offset: one.file_offset + ADDEND_OFFSET, base }, base.wrapping_add(one.addend as u64)))
}
