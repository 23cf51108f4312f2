//! What a backend takes of a dispatch before it runs, and of its memory when it has ended.

use std::ops::Range;
use std::path::Path;

use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_object::code_object::{CodeObject, demangle, digest};
use wavetap_object::elf::Elf;
use wavetap_object::elf::constants::{PF_W, PT_GNU_RELRO, PT_LOAD};

use crate::file::{CodePlace, Header, MemoryKind, MemoryRange, SCHEMA, write};
use crate::reach::{Allocations, Reached, reached};

/// The device memory of a backend.
pub trait Memory {
    /// First addresses and sizes of all allocations that a kernel may access, those of other code objects included.
    fn allocations(&self) -> Vec<(u64, u64)>;

    /// Copies bytes out, of one allocation or of a loaded code object.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<()>;
}

/// A dispatch that is about to run.
#[derive(Debug, Clone, Copy)]
pub struct Launched<'a> {
    /// The kernel's mangled name.
    pub kernel: &'a str,
    /// Its code object as it was loaded, not rewritten.
    pub code: &'a [u8],
    /// Device address of the code object's virtual address 0.
    pub code_address: u64,
    /// Work-items of the grid in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// Bytes of LDS of a workgroup, static and dynamic together.
    pub group_segment_size: u32,
    /// Bytes of scratch of a work-item.
    pub private_segment_size: u32,
    /// The segment of arguments.
    pub arguments: &'a [u8],
    /// The number of the dispatch, from 1, among all that were selected.
    pub dispatch: u64,
}

/// A dispatch and the memory that it reaches, as it was before.
#[derive(Debug)]
pub struct Snapshot {
    header: Header,
    code: Vec<u8>,
    arguments: Vec<u8>,
    memory: Vec<Reached>,
}

/// Where a code object has variables: its writable segments, without what only a loader writes. Virtual addresses.
///
/// # Errors
/// Malformed if it is no ELF file, or one whose segments wrap around.
pub fn variables(code: &[u8]) -> Result<Vec<Range<u64>>> {
    let elf = Elf::parse(code)?;
    let segments = &elf.segments;
    let relocated: Vec<Range<u64>> = segments
        .iter()
        .filter(|segment| segment.kind == PT_GNU_RELRO)
        .map(|segment| segment.address..segment.address.saturating_add(segment.memory_size))
        .collect();
    let mut ranges = Vec::new();
    for segment in segments.iter().filter(|segment| segment.kind == PT_LOAD && segment.flags.0 & PF_W.0 != 0) {
        let end = segment.address.checked_add(segment.memory_size);
        let end = end.ok_or_else(|| Error::malformed("a segment wraps around").at(segment.offset))?;
        let mut range = segment.address..end;
        // It comes first in what LLD writes, and is only read when it has been relocated.
        if let Some(relocated) = relocated.iter().find(|relocated| relocated.start == range.start) {
            range.start = relocated.end.min(range.end);
        }
        if !range.is_empty() {
            ranges.push(range);
        }
    }
    Ok(ranges)
}

/// Bytes from virtual address 0 to the end of the last segment.
///
/// # Errors
/// Malformed if it is no ELF file.
pub fn loaded_size(code: &[u8]) -> Result<u64> {
    let elf = Elf::parse(code)?;
    let ends = elf.segments.iter().filter(|segment| segment.kind == PT_LOAD);
    Ok(ends.map(|segment| segment.address.saturating_add(segment.memory_size)).max().unwrap_or_default())
}

impl Snapshot {
    /// Takes a dispatch whose memory is as it finds it: what was to be done before has been done.
    ///
    /// # Errors
    /// Limit if more than `most` bytes of memory are reached; malformed if the code object cannot be read; what
    /// `memory` gives.
    pub fn take(memory: &mut dyn Memory, launched: &Launched<'_>, most: u64) -> Result<Snapshot> {
        let Launched { kernel, code, code_address, grid, workgroup, .. } = *launched;
        let size = loaded_size(code)?;
        let parsed = CodeObject::parse(code)?;
        let arguments = explicit(&parsed, kernel, launched.arguments);
        let own = code_address..code_address.saturating_add(size);
        let mut variables = variables(code)?
            .into_iter()
            .map(|range| read(memory, code_address.wrapping_add(range.start), range.end - range.start))
            .collect::<Result<Vec<Reached>>>()?;
        let roots: Vec<u8> = variables.iter().flat_map(|range| range.bytes.iter().copied()).collect();
        let allocations = memory.allocations().into_iter().filter(|(address, _)| !own.contains(address)).collect();
        let allocations = Allocations::new(allocations);
        let read = |address: u64, into: &mut [u8]| memory.read(address, into);
        let (mut found, code_addresses) = reached(&allocations, (&arguments, &roots), own, most, read)?;
        let range = |kind: MemoryKind| {
            move |of: &Reached| MemoryRange { address: of.address, size: of.bytes.len() as u64, kind, changed: false }
        };
        let header = Header {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: kernel.to_owned(),
            demangled: demangle(kernel).into_owned(),
            target: parsed.target_id(),
            object: digest(code),
            dispatch: launched.dispatch,
            grid,
            workgroup,
            group_segment_size: launched.group_segment_size,
            private_segment_size: launched.private_segment_size,
            code: CodePlace { address: code_address, size },
            code_addresses: code_addresses.0,
            alone: true,
            memory: variables
                .iter()
                .map(range(MemoryKind::Variables))
                .chain(found.iter().map(range(MemoryKind::Allocation)))
                .collect(),
        };
        variables.append(&mut found);
        Ok(Snapshot { header, code: code.to_vec(), arguments, memory: variables })
    }

    /// What is known of the dispatch.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Reads the memory again, now that the dispatch has ended, and writes the capture. `alone` says whether nothing
    /// else could change the memory meanwhile.
    ///
    /// # Errors
    /// Io if the file cannot be written; what `memory` gives.
    pub fn complete(mut self, memory: &mut dyn Memory, alone: bool, path: &Path) -> Result<Header> {
        self.header.alone = alone;
        let mut after = Vec::with_capacity(self.memory.len());
        for (before, range) in self.memory.iter().zip(&mut self.header.memory) {
            let now = read(memory, before.address, before.bytes.len() as u64)?.bytes;
            range.changed = now != before.bytes;
            after.push(range.changed.then_some(now));
        }
        let contents: Vec<(&[u8], Option<&[u8]>)> =
            self.memory.iter().zip(&after).map(|(before, after)| (&before.bytes[..], after.as_deref())).collect();
        write(path, &self.header, (&self.code, &self.arguments), &contents).within(|| path.display().to_string())?;
        Ok(self.header)
    }
}

fn read(memory: &mut dyn Memory, address: u64, size: u64) -> Result<Reached> {
    let length = usize::try_from(size).map_err(|_| Error::limit(format!("{size} bytes at {address:#x}")))?;
    let mut bytes = vec![0; length];
    memory.read(address, &mut bytes)?;
    Ok(Reached { address, bytes })
}

/// The part of a segment of arguments that the program gave, and no runtime: all of it where there is no metadata.
fn explicit(code: &CodeObject<'_>, kernel: &str, segment: &[u8]) -> Vec<u8> {
    let metadata = code.kernels().iter().find(|known| known.name == kernel).and_then(|known| known.metadata.as_deref());
    let Some(metadata) = metadata else { return segment.to_vec() };
    let own = metadata.args.iter().filter(|argument| !argument.value_kind.is_hidden());
    let end = own.map(|argument| argument.offset.saturating_add(argument.size)).max().unwrap_or_default();
    let end = usize::try_from(end).unwrap_or(usize::MAX).min(segment.len());
    segment[..end].to_vec()
}
