//! Header tables as bytes.

use crate::bytes;
use crate::elf::{Elf, FILE_HEADER_SIZE, PROGRAM_HEADER_SIZE, SECTION_HEADER_SIZE, Section, Segment};
use crate::error::{Error, Result};

/// Granularity at which segments are mapped; the alignment of every segment that is added.
pub(super) const PAGE: u64 = 4096;

/// The same for every header table.
pub(super) const TABLE_ALIGN: u64 = 8;

/// Addresses beyond this are no program's and no device object's; below it sums of addresses and sizes do not overflow.
const HIGHEST_ADDRESS: u64 = 1 << 47;

/// The end of what a file's segments occupy in memory, for something to be put behind it.
///
/// # Errors
/// Unsupported if the segments are not in the order of their addresses, as loaders demand, or reach beyond all reason.
pub(super) fn image_end(elf: &Elf<'_>) -> Result<u64> {
    if !elf.loads().map(|load| load.address).is_sorted() {
        return Err(Error::unsupported("the segments are not in the order of their addresses"));
    }
    let end = elf.loads().map(Segment::end).max().unwrap_or(0);
    if end > HIGHEST_ADDRESS { Err(Error::unsupported(format!("a segment reaches up to address {end:#x}"))) } else { Ok(end) }
}

/// The alignment of a segment or section that moves.
///
/// # Errors
/// Unsupported if it is none that tables, notes or strings have.
pub(super) fn small_align(align: u64) -> Result<u64> {
    match align {
        0 | 1 => Ok(1),
        2 | 4 | 8 | 16 => Ok(align),
        _ => Err(Error::unsupported(format!("something that has to move is aligned to {align:#x}"))),
    }
}

/// The address for contents at a file offset in the first pages behind `end`, congruent to the offset.
pub(super) fn address_behind(end: u64, offset: u64) -> u64 {
    bytes::align_up(end, PAGE) + offset % PAGE
}

/// A program header table.
pub(super) fn encode_segments(segments: &[Segment]) -> Vec<u8> {
    let mut out = Vec::with_capacity(segments.len() * PROGRAM_HEADER_SIZE as usize);
    for segment in segments {
        out.extend_from_slice(&segment.kind.to_le_bytes());
        out.extend_from_slice(&segment.flags.to_le_bytes());
        for word in [segment.offset, segment.address, segment.physical_address, segment.file_size, segment.memory_size, segment.align] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    out
}

/// A section header table.
pub(super) fn encode_sections(sections: &[Section<'_>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sections.len() * SECTION_HEADER_SIZE as usize);
    for section in sections {
        out.extend_from_slice(&section.name_offset.to_le_bytes());
        out.extend_from_slice(&section.kind.to_le_bytes());
        for word in [section.flags, section.address, section.offset, section.size] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&section.link.to_le_bytes());
        out.extend_from_slice(&section.info.to_le_bytes());
        out.extend_from_slice(&section.align.to_le_bytes());
        out.extend_from_slice(&section.entry_size.to_le_bytes());
    }
    out
}

/// Where the tables of a rewritten file are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tables {
    pub(super) segments_offset: u64,
    pub(super) segment_count: usize,
    pub(super) sections_offset: u64,
    pub(super) section_count: usize,
    pub(super) names_index: usize,
}

impl Tables {
    /// Enters the places in the file header.
    pub(super) fn enter(&self, out: &mut [u8]) -> Result<()> {
        let short = |count: usize| u16::try_from(count).map_err(|_| Error::limit(format!("{count} headers in one table")));
        bytes::slice(out, 0, FILE_HEADER_SIZE, "file header")?;
        bytes::put(out, 32, &self.segments_offset.to_le_bytes())?;
        bytes::put(out, 40, &self.sections_offset.to_le_bytes())?;
        bytes::put(out, 56, &short(self.segment_count)?.to_le_bytes())?;
        bytes::put(out, 60, &short(self.section_count)?.to_le_bytes())?;
        bytes::put(out, 62, &short(self.names_index)?.to_le_bytes())
    }
}

/// Appends `contents` at the next multiple of `align`; returns its file offset.
pub(super) fn append(out: &mut Vec<u8>, align: u64, contents: &[u8]) -> u64 {
    let offset = bytes::align_up(out.len() as u64, align.max(1));
    out.resize(offset as usize, 0);
    out.extend_from_slice(contents);
    offset
}

/// Adds a name to a string table; returns its offset there.
pub(super) fn add_name(strings: &mut Vec<u8>, name: &str) -> Result<u32> {
    if strings.last().is_none_or(|&last| last != 0) {
        strings.push(0);
    }
    let offset = u32::try_from(strings.len()).map_err(|_| Error::limit("a string table of more than 4 GiB"))?;
    strings.extend_from_slice(name.as_bytes());
    strings.push(0);
    Ok(offset)
}
