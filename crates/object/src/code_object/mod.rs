//! A device ELF: its kernels, their descriptors and metadata, symbols, relocations and source lines.
//!
//! [`CodeObject::parse`] checks everything that the rest of the program relies on: headers, notes, descriptors and code
//! ranges lie in the file, entries are aligned and executable. A kernel, function, symbol or metadata entry of which
//! that is not true is left out and told of ([`CodeObject::malformed`]); the rest can be used. What it gives out
//! borrows the file's bytes.

use std::borrow::Cow;

use crate::elf::constants::{EM_AMDGPU, ET_DYN, ET_REL, SHT_DYNSYM, SHT_SYMTAB, SectionType};
use crate::elf::{Elf, Relocation, Symbol};
use wavetap_amdgpu::Target;
use wavetap_base::error::{Error, Result};

mod descriptor;
mod digest;
mod kernels;
mod lines;
mod malformed;
pub mod metadata;
mod processor;
mod registers;

pub use descriptor::{DESCRIPTOR_SIZE, ENTRY_ALIGN, Field, KernelDescriptor};
pub use digest::digest;
pub use kernels::{DESCRIPTOR_SUFFIX, Function, Kernel};
pub use lines::{Frame, LineTable, SourceLocation};
pub use malformed::{MalformedPart, PartKind};
pub use metadata::{Argument, KernelMetadata, Metadata, ValueKind};
pub use processor::{Feature, Features, processor_name};
pub use registers::{InitialRegisters, KernargPreload, MAX_USER_SGPRS, WorkItemIds, initial_registers};

/// `EI_OSABI` of the HSA runtime's objects (AMDGPUUsage, "ELF Header").
const ELFOSABI_AMDGPU_HSA: u8 = 64;
/// That of AMD's graphics drivers.
const ELFOSABI_AMDGPU_PAL: u8 = 65;
/// That of Mesa's compute.
const ELFOSABI_AMDGPU_MESA3D: u8 = 66;

pub use wavetap_base::added::CONTROL_SYMBOL;

/// A checked device ELF.
#[derive(Debug, Clone)]
pub struct CodeObject<'d> {
    elf: Elf<'d>,
    version: u8,
    symbols: Vec<Symbol<'d>>,
    dynamic_symbols: Vec<Symbol<'d>>,
    relocations: Vec<Relocation>,
    metadata: Option<Metadata>,
    kernels: Vec<Kernel>,
    functions: Vec<Function>,
    malformed: Vec<MalformedPart>,
}

impl<'d> CodeObject<'d> {
    /// Parses a code object of version 4, 5 or 6.
    ///
    /// # Errors
    /// Malformed, with the place, when headers or tables contradict the format; unsupported for other versions and
    /// relocatable objects. Single kernels, functions, symbols and metadata that do are no error: see
    /// [`Self::malformed`].
    pub fn parse(data: &'d [u8]) -> Result<Self> {
        let elf = Elf::parse(data)?;
        let header = elf.header;
        if header.machine != EM_AMDGPU {
            return Err(Error::unsupported(format!(
                "an ELF file for machine {}, {EM_AMDGPU} (AMD GPU) expected",
                header.machine
            ))
            .at(18));
        }
        if header.os_abi != ELFOSABI_AMDGPU_HSA {
            let of = match header.os_abi {
                ELFOSABI_AMDGPU_PAL => "of the graphics driver (AMDPAL): shaders, and no kernels that HIP could launch",
                ELFOSABI_AMDGPU_MESA3D => "of Mesa: its kernels are described otherwise than HIP's",
                _ => "of no runtime that is known",
            };
            let (found, expected) = (header.os_abi, ELFOSABI_AMDGPU_HSA);
            return Err(Error::unsupported(format!(
                "a code object {of} (OS ABI {found}); those for HSA ({expected}) are handled"
            ))
            .at(7));
        }
        let version = match header.abi_version {
            2 => 4,
            3 => 5,
            4 => 6,
            old @ (0 | 1) => {
                let version = old + 2;
                return Err(Error::unsupported(format!(
                    "code object v{version} (ABI version {old}), which compilers wrote before ROCm 4.1: v4 to v6 are \
                        handled; compile the source again"
                ))
                .at(8));
            }
            other => {
                return Err(Error::unsupported(format!(
                    "code object with ABI version {other}: 2 to 4 (v4 to v6) are handled"
                ))
                .at(8));
            }
        };
        if header.kind != ET_DYN {
            let what = if header.kind == ET_REL {
                "a relocatable device object file (.o), not linked yet"
            } else {
                "a device ELF"
            };
            return Err(Error::unsupported(format!(
                "{what}, of type {}: only linked objects (type {ET_DYN}) are handled",
                header.kind
            ))
            .at(16));
        }
        let mut malformed = Vec::new();
        let symbols = read_symbols(&elf, SHT_SYMTAB, ".symtab", &mut malformed)?;
        let dynamic_symbols = read_symbols(&elf, SHT_DYNSYM, ".dynsym", &mut malformed)?;
        let relocations = elf.dynamic_relocations()?;
        let metadata = Metadata::read(&elf).unwrap_or_else(|error| {
            malformed.push(MalformedPart { kind: PartKind::Metadata, name: String::new(), error });
            None
        });
        let entries = metadata.iter().flat_map(|metadata| &metadata.malformed);
        malformed.extend(entries.map(|entry| {
            let symbol = entry.symbol.as_deref().unwrap_or("?");
            let name = symbol.strip_suffix(DESCRIPTOR_SUFFIX).unwrap_or(symbol).to_owned();
            MalformedPart { kind: PartKind::MetadataEntry, name, error: entry.error.clone() }
        }));
        let named = if symbols.is_empty() { &dynamic_symbols } else { &symbols };
        let (kernels, functions) = kernels::find(&elf, named, metadata.as_ref(), &mut malformed);
        Ok(CodeObject { elf, version, symbols, dynamic_symbols, relocations, metadata, kernels, functions, malformed })
    }

    /// What contradicts the format and was left out, symbols first. Kernels whose metadata is among this are in
    /// [`Self::kernels`], without metadata.
    #[must_use]
    pub fn malformed(&self) -> &[MalformedPart] {
        &self.malformed
    }

    /// Makes sure that symbol tables and the metadata note can be read whole, as what is added has to be kept in step
    /// with them.
    ///
    /// # Errors
    /// Unsupported, with what is malformed.
    pub fn check_tables(&self) -> Result<()> {
        let part = self.malformed.iter().find(|part| matches!(part.kind, PartKind::Symbol | PartKind::Metadata));
        part.map_or(Ok(()), |part| Err(Error::unsupported(part.to_string())))
    }

    /// The whole file.
    #[must_use]
    pub fn data(&self) -> &'d [u8] {
        self.elf.data
    }

    /// Headers, segments and sections.
    #[must_use]
    pub fn elf(&self) -> &Elf<'d> {
        &self.elf
    }

    /// Code object version: 4, 5 or 6.
    #[must_use]
    pub fn version(&self) -> u8 {
        self.version
    }

    /// The target, if it is one this program knows the instructions of.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        Target::by_elf_flags(self.elf.header.flags).filter(|target| target.has_instructions())
    }

    /// The processor's name, known instructions or not.
    #[must_use]
    pub fn processor(&self) -> Option<&'static str> {
        processor_name(self.elf.header.flags)
    }

    /// The device settings it was compiled for.
    #[must_use]
    pub fn features(&self) -> Features {
        Features::from_flags(self.elf.header.flags)
    }

    /// The version of a generic processor such as `gfx11-generic`, which grows when code has to be compiled again for
    /// it; `None` for others.
    #[must_use]
    pub fn generic_version(&self) -> Option<u8> {
        processor::generic_version(self.elf.header.flags)
    }

    /// Processor and required settings: `gfx90a:sramecc+:xnack-`.
    #[must_use]
    pub fn target_id(&self) -> String {
        let flags = self.elf.header.flags;
        let processor =
            self.processor().map_or_else(|| format!("unknown processor {:#x}", flags & 0xff), str::to_owned);
        format!("{processor}{}", self.features())
    }

    /// The symbols of `.symtab`, the null symbol included; empty when it was stripped.
    #[must_use]
    pub fn symbols(&self) -> &[Symbol<'d>] {
        &self.symbols
    }

    /// The symbols of `.dynsym`, the null symbol included.
    #[must_use]
    pub fn dynamic_symbols(&self) -> &[Symbol<'d>] {
        &self.dynamic_symbols
    }

    /// A defined symbol by name, from `.symtab` or else `.dynsym`.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<&Symbol<'d>> {
        self.symbols.iter().chain(&self.dynamic_symbols).find(|symbol| symbol.name == name && symbol.is_defined())
    }

    /// The relocations that a loader applies; their symbols are indices into [`Self::dynamic_symbols`].
    #[must_use]
    pub fn relocations(&self) -> &[Relocation] {
        &self.relocations
    }

    /// The metadata note.
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// The kernels by address of their entry.
    #[must_use]
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Every name that a kernel goes by: that of its descriptor's symbol, the one that its metadata gives it where that
    /// is another, and those of kernels that cannot be read.
    pub fn kernel_names(&self) -> impl Iterator<Item = &str> {
        fn in_metadata(kernel: &Kernel) -> Option<&str> {
            kernel.metadata.as_ref().map(|metadata| metadata.name.as_str()).filter(|name| *name != kernel.name)
        }
        let unread = self.malformed.iter().filter(|part| part.kind == PartKind::Kernel);
        self.kernels
            .iter()
            .flat_map(|kernel| [Some(kernel.name.as_str()), in_metadata(kernel)])
            .flatten()
            .chain(unread.map(|part| part.name.as_str()))
    }

    /// The kernel of this (mangled) name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The functions that are not kernels, by address. A stripped object names only exported ones.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// File offset of `len` bytes at a virtual address, if the file has them.
    #[must_use]
    pub fn file_offset(&self, address: u64, len: u64) -> Option<u64> {
        self.elf.file_offset(address, len)
    }

    /// The bytes at a virtual address.
    ///
    /// # Errors
    /// Malformed if the file does not have all of them in one loaded segment.
    pub fn bytes_at(&self, address: u64, len: u64) -> Result<&'d [u8]> {
        self.elf.bytes_at(address, len)
    }

    /// The end of the loaded image: the highest address after a segment.
    #[must_use]
    pub fn image_end(&self) -> u64 {
        self.elf.loads().map(crate::elf::Segment::end).max().unwrap_or(0)
    }

    /// Whether it was rewritten by this program.
    #[must_use]
    pub fn is_rewritten(&self) -> bool {
        self.symbol(CONTROL_SYMBOL).is_some()
    }

    /// Loads the source lines; `None` when it was compiled without debug information.
    ///
    /// # Errors
    /// Malformed when the DWARF breaks its format.
    pub fn line_table(&self) -> Result<Option<LineTable>> {
        LineTable::load(&self.elf)
    }
}

/// The symbols of a table. Those that cannot be read are told of.
fn read_symbols<'d>(
    elf: &Elf<'d>,
    kind: SectionType,
    table: &str,
    malformed: &mut Vec<MalformedPart>,
) -> Result<Vec<Symbol<'d>>> {
    let mut symbols = Vec::new();
    for (index, (symbol, problem)) in elf.symbol_table(kind)?.into_iter().enumerate() {
        if let Some(error) = problem {
            malformed.push(MalformedPart { kind: PartKind::Symbol, name: format!("{index} of {table}"), error });
        }
        symbols.push(symbol);
    }
    Ok(symbols)
}

/// Deepest nesting of a mangled name that is followed.
const DEMANGLE_DEPTH: u32 = 128;

/// A C++ name as a person writes it; a name that is not mangled, or nested too deeply, stays as it is. `.kd` is kept.
/// Control characters, which a symbol may have, are written as `\\x1b`: the result acts on no terminal.
///
/// ```
/// assert_eq!(wavetap_object::code_object::demangle("_Z3addPfi"), "add(float*, int)");
/// assert_eq!(wavetap_object::code_object::demangle("plain"), "plain");
/// ```
#[must_use]
pub fn demangle(name: &str) -> Cow<'_, str> {
    match demangle_any(name) {
        Cow::Borrowed(text) => printable(text),
        Cow::Owned(text) => Cow::Owned(printable(&text).into_owned()),
    }
}

/// The text, in which no character acts on a terminal: control characters are written as `\x1b`.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for character in text.chars() {
        if character.is_control() {
            out.push_str(&format!("\\x{:02x}", u32::from(character)));
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

fn demangle_any(name: &str) -> Cow<'_, str> {
    let (stem, suffix) = match name.strip_suffix(DESCRIPTOR_SUFFIX) {
        Some(stem) => (stem, DESCRIPTOR_SUFFIX),
        None => (name, ""),
    };
    let options = cpp_demangle::ParseOptions::default().recursion_limit(DEMANGLE_DEPTH);
    let symbol =
        stem.starts_with("_Z").then(|| cpp_demangle::BorrowedSymbol::new_with_options(stem.as_bytes(), &options));
    match symbol {
        Some(Ok(symbol)) => {
            let options = cpp_demangle::DemangleOptions::new().recursion_limit(DEMANGLE_DEPTH);
            symbol.demangle_with_options(&options).map_or(Cow::Borrowed(name), |text| Cow::Owned(text + suffix))
        }
        _ => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_spelled() {
        assert_eq!(printable("plain ünïcode_核"), "plain ünïcode_核");
        assert_eq!(printable("esc\x1b[31mred\ttab\u{9b}"), "esc\\x1b[31mred\\x09tab\\x9b");
        assert_eq!(demangle("esc\x1b[0m.kd"), "esc\\x1b[0m.kd");
    }
}
