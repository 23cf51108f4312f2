//! Finding a place for one more program header in a host file.
//!
//! A loaded program header table cannot simply grow. The strategies, in the order in which they survive GNU strip,
//! objcopy and patchelf:
//!
//! 1. the `PT_NOTE` that `PT_GNU_PROPERTY` duplicates becomes the new segment's header;
//! 2. the table grows in place over `.interp` and the notes after it, which move into the new segment;
//! 3. another `PT_NOTE` gives its header up (its notes stay where they are, found through their sections only);
//! 4. a new table in the new segment, at an address that old kernels compute too.
//!
//! `PT_GNU_STACK` is never taken: without it thread stacks are executable.

use super::headers::PAGE;
use crate::elf::constants::{ET_EXEC, PT_GNU_PROPERTY, PT_INTERP, PT_LOAD, PT_NOTE, PT_PHDR};
use crate::elf::{Elf, PROGRAM_HEADER_SIZE, Segment};
use wavetap_base::bytes::align_up;
use wavetap_base::error::{Error, Result};

/// Most padding that a table in the new segment may cost.
const MAX_PADDING: u64 = 64 << 20;

/// How the new segment gets its program header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Room {
    /// The header with this index is replaced.
    Replace(usize),
    /// The table grows where it is; the segments with these indices move their contents into the new segment.
    Grow {
        /// Indices of `PT_INTERP` and `PT_NOTE` headers.
        moved: Vec<usize>,
    },
    /// The table moves into the new segment, which must lie at this place.
    NewTable {
        /// File offset of the new segment.
        offset: u64,
        /// Its virtual address.
        address: u64,
    },
}

/// All strategies that this file allows, best first.
pub(super) fn rooms(elf: &Elf<'_>, end: u64) -> Vec<Room> {
    let duplicate = duplicated_note(elf).map(Room::Replace);
    let grow = movable(elf).map(|moved| Room::Grow { moved });
    let note = elf.segments.iter().rposition(|segment| segment.kind == PT_NOTE).map(Room::Replace);
    let table = table_place(elf, end).map(|(offset, address)| Room::NewTable { offset, address });
    [duplicate, grow, note, table].into_iter().flatten().collect()
}

/// The best strategy for this file, whose last mapped address is below `end`.
pub(super) fn find(elf: &Elf<'_>, end: u64) -> Result<Room> {
    let room = rooms(elf, end).into_iter().next();
    room.ok_or_else(|| Error::unsupported("the program header table has no room for the new bundle's segment"))
}

/// The `PT_NOTE` that covers the same bytes as `PT_GNU_PROPERTY`, which is what loaders read.
fn duplicated_note(elf: &Elf<'_>) -> Option<usize> {
    let property = elf.segments.iter().find(|segment| segment.kind == PT_GNU_PROPERTY)?;
    let same = |segment: &Segment| {
        segment.kind == PT_NOTE && (segment.offset, segment.file_size) == (property.offset, property.file_size)
    };
    elf.segments.iter().position(same)
}

/// The segments to be moved so that one more header fits after the table; `None` if something else lies there.
fn movable(elf: &Elf<'_>) -> Option<Vec<usize>> {
    let start = elf.header.segments_offset;
    let end = start + (elf.segments.len() as u64 + 1) * PROGRAM_HEADER_SIZE;
    let overlaps = |offset: u64, size: u64| size != 0 && offset < end && offset + size > start;
    // The table must stay mapped, also after its old end.
    if !elf.loads().any(|load| load.offset <= start && end <= load.offset + load.file_size) {
        return None;
    }
    let mut moved = Vec::new();
    for (index, segment) in elf.segments.iter().enumerate() {
        match segment.kind {
            PT_LOAD | PT_PHDR => {}
            PT_INTERP | PT_NOTE if overlaps(segment.offset, segment.file_size) => moved.push(index),
            _ if overlaps(segment.offset, segment.file_size) => return None,
            _ => {}
        }
    }
    let inside = |offset: u64, size: u64| {
        let holds = |segment: &Segment| offset >= segment.offset && offset + size <= segment.offset + segment.file_size;
        moved.iter().any(|&index| holds(&elf.segments[index]))
    };
    let sections =
        elf.sections.iter().filter(|section| section.has_contents() && overlaps(section.offset, section.size));
    sections.into_iter().all(|section| inside(section.offset, section.size)).then_some(moved)
}

/// Offset and address for a segment with a new table.
///
/// Kernels before 5.18 compute the address of an executable's table as if it were in the first segment, so there the
/// distance of address and offset must be that segment's; a large `.bss` then costs padding in the file.
fn table_place(elf: &Elf<'_>, end: u64) -> Option<(u64, u64)> {
    let first = elf.loads().next()?;
    let distance = first.address.checked_sub(first.offset)?;
    let (behind_file, behind_image) = (align_up(elf.data.len() as u64, PAGE), align_up(end, PAGE));
    let by_kernel = elf.header.kind == ET_EXEC || elf.segments.iter().any(|segment| segment.kind == PT_INTERP);
    if !by_kernel {
        return Some((behind_file, behind_image));
    }
    let offset = behind_file.max(behind_image.checked_sub(distance)?);
    (offset - behind_file <= MAX_PADDING).then_some((offset, offset.checked_add(distance)?))
}
