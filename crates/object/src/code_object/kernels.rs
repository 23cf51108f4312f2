//! The kernels and functions of a code object and where their code lies.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::descriptor::{DESCRIPTOR_SIZE, ENTRY_ALIGN, KernelDescriptor};
use super::malformed::{MalformedPart, PartKind};
use super::metadata::{KernelMetadata, Metadata};
use crate::elf::{Elf, Section, Symbol};
use wavetap_base::error::{Error, Result};

/// What a descriptor's symbol ends with.
pub const DESCRIPTOR_SUFFIX: &str = ".kd";

/// A kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The mangled name, without `.kd`.
    pub name: String,
    /// Virtual address of its descriptor.
    pub descriptor_address: u64,
    /// File offset of its descriptor.
    pub descriptor_offset: u64,
    /// The descriptor.
    pub descriptor: KernelDescriptor,
    /// Virtual address of its first instruction.
    pub entry: u64,
    /// The virtual addresses of its code. Without a symbol that has a size it reaches to the next function or the
    /// section's end, and may then end with padding. Empty if the entry is where the code ends.
    pub code: Range<u64>,
    /// Whether `code` ends where a symbol's size says.
    pub sized: bool,
    /// What the metadata note says of it.
    pub metadata: Option<Arc<KernelMetadata>>,
}

/// A device function that is not a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The mangled name.
    pub name: String,
    /// The virtual addresses of its code; as for a [`Kernel`].
    pub code: Range<u64>,
    /// Whether `code` ends where the symbol's size says.
    pub sized: bool,
}

impl Kernel {
    /// The name of its descriptor's symbol.
    #[must_use]
    pub fn symbol(&self) -> String {
        format!("{}{DESCRIPTOR_SUFFIX}", self.name)
    }
}

/// Finds all kernels, by address of their entry, and all other functions, by address. Those that cannot be used go to
/// `malformed`.
pub(super) fn find(
    elf: &Elf<'_>,
    symbols: &[Symbol<'_>],
    metadata: Option<&Metadata>,
    malformed: &mut Vec<MalformedPart>,
) -> (Vec<Kernel>, Vec<Function>) {
    let mut reject =
        |kind: PartKind, name: &str, error: Error| malformed.push(MalformedPart { kind, name: name.to_owned(), error });
    let described = metadata.map_or(&[][..], |metadata| &metadata.kernels);
    let described: FxHashMap<&str, &Arc<KernelMetadata>> =
        described.iter().map(|kernel| (kernel.symbol.as_str(), kernel)).collect();
    let mut names = FxHashSet::default();
    let mut kernels: Vec<Kernel> = Vec::new();
    for symbol in symbols.iter().filter(|symbol| symbol.is_defined() && symbol.is_object()) {
        let Some(name) = symbol.name.strip_suffix(DESCRIPTOR_SUFFIX) else { continue };
        if names.insert(name) {
            match read_kernel(elf, symbol, name) {
                Ok(kernel) => {
                    let metadata = described.get(symbol.name).map(|&metadata| Arc::clone(metadata));
                    kernels.push(Kernel { metadata, ..kernel });
                }
                Err(error) => reject(PartKind::Kernel, name, error),
            }
        }
    }
    kernels.sort_by_key(|kernel| kernel.entry);

    // Of several names for one place, the one that says how long it is.
    let mut code: Vec<&Symbol<'_>> = symbols.iter().filter(|symbol| is_code(symbol)).collect();
    code.sort_by_key(|symbol| (symbol.address, std::cmp::Reverse(symbol.size)));
    code.dedup_by_key(|symbol| symbol.address);
    let mut starts: Vec<u64> =
        code.iter().map(|symbol| symbol.address).chain(kernels.iter().map(|kernel| kernel.entry)).collect();
    starts.sort_unstable();
    starts.dedup();
    kernels.retain_mut(|kernel| {
        let symbol = code.binary_search_by_key(&kernel.entry, |symbol| symbol.address);
        let size = symbol.map_or(0, |index| code[index].size);
        match code_range(elf, kernel.entry, size, &starts) {
            Ok((range, sized)) => {
                (kernel.code, kernel.sized) = (range, sized);
                true
            }
            Err(error) => {
                reject(PartKind::Kernel, &kernel.name, error);
                false
            }
        }
    });
    let mut functions: Vec<Function> = Vec::new();
    for symbol in code {
        // The code of a kernel whose descriptor cannot be read is no function.
        let is_kernel =
            names.contains(symbol.name) || kernels.binary_search_by_key(&symbol.address, |kernel| kernel.entry).is_ok();
        if !is_kernel {
            match code_range(elf, symbol.address, symbol.size, &starts) {
                Ok((code, sized)) => functions.push(Function { name: symbol.name.to_owned(), code, sized }),
                Err(error) => reject(PartKind::Function, symbol.name, error),
            }
        }
    }
    (kernels, functions)
}

fn is_code(symbol: &Symbol<'_>) -> bool {
    symbol.is_defined() && symbol.is_function()
}

fn read_kernel(elf: &Elf<'_>, symbol: &Symbol<'_>, name: &str) -> Result<Kernel> {
    let address = symbol.address;
    let offset = elf.file_offset(address, DESCRIPTOR_SIZE).ok_or_else(|| {
        Error::malformed(format!(
            "the kernel descriptor at address {address:#x} does not lie in the file's loaded segments"
        ))
    })?;
    // The loader finds the descriptor through its section, so both ways must lead to the same bytes.
    let section = symbol
        .section
        .index()
        .and_then(|index| elf.sections.get(usize::from(index)))
        .filter(|section| section.covers(address));
    if section.map(|section| section.offset.wrapping_add(address - section.address)) != Some(offset) {
        return Err(Error::malformed(format!(
            "the kernel descriptor at address {address:#x} is not in the section its symbol names"
        ))
        .at(offset));
    }
    let descriptor = KernelDescriptor::read(elf.data, offset)?;
    let entry = address.wrapping_add_signed(descriptor.entry_byte_offset());
    if !entry.is_multiple_of(ENTRY_ALIGN) {
        return Err(Error::malformed(format!("its entry {entry:#x} is not on a multiple of {ENTRY_ALIGN}")).at(offset));
    }
    // What is entered at the very end of the code is a kernel without an instruction: the compiler knew that nothing
    // launches it.
    let executable = |load: &&crate::elf::Segment| {
        load.is_executable() && entry >= load.address && entry - load.address <= load.file_size
    };
    if !elf.loads().any(|load| executable(&load)) {
        return Err(Error::malformed(format!("its entry {entry:#x} is not in an executable segment")).at(offset));
    }
    Ok(Kernel {
        name: name.to_owned(),
        descriptor_address: address,
        descriptor_offset: offset,
        descriptor,
        entry,
        code: entry..entry,
        sized: false,
        metadata: None,
    })
}

/// The range of code that starts at `start`: `size` bytes, or up to the next start or the end of the section. It is
/// empty for what starts where the section ends.
fn code_range(elf: &Elf<'_>, start: u64, size: u64, starts: &[u64]) -> Result<(Range<u64>, bool)> {
    let section = elf.sections.iter().find(|section| section.covers(start) && section.is_executable());
    let ends_there = |section: &&Section<'_>| {
        section.is_executable() && section.is_alloc() && section.address.checked_add(section.size) == Some(start)
    };
    if section.is_none() && size == 0 && elf.sections.iter().any(|section| ends_there(&section)) {
        return Ok((start..start, true));
    }
    let section =
        section.ok_or_else(|| Error::malformed(format!("its code at {start:#x} is not in an executable section")))?;
    let limit = section.address + section.size;
    let end = if size != 0 {
        start.checked_add(size).filter(|&end| end <= limit)
    } else {
        let next = starts.partition_point(|&other| other <= start);
        Some(starts.get(next).map_or(limit, |&next| next.min(limit)))
    };
    let end = end.ok_or_else(|| {
        Error::malformed(format!("its code at {start:#x} of {size:#x} bytes reaches past its section"))
    })?;
    // The bytes must be there: a section may claim more than its segment holds.
    elf.bytes_at(start, end - start)?;
    Ok((start..end, size != 0))
}
