//! Header tables as bytes.

use object::endian::{LittleEndian as LE, U32, U64};
use object::pod;

use crate::elf::constants::{FileHeader64, ProgramHeader64, SHN_LORESERVE, SectionHeader64, SymbolSection};
use crate::elf::{Elf, Section, Segment};
use wavetap_base::bytes;
use wavetap_base::error::{Error, Result};

/// Granularity at which segments are mapped; the alignment of every segment that is added.
pub(super) const PAGE: u64 = 4096;

/// The same for every header table.
pub(super) const TABLE_ALIGN: u64 = 8;

/// Addresses beyond this are no program's and no device object's; below it sums of addresses and sizes do not overflow.
const HIGHEST_ADDRESS: u64 = 1 << 47;

/// The end of what a file's segments occupy in memory, for something to be put after it.
///
/// # Errors
/// Unsupported if the segments are not in the order of their addresses, as loaders demand, overlap, are not aligned as
/// they say, or reach beyond all reason.
pub(super) fn image_end(elf: &Elf<'_>) -> Result<u64> {
    if !elf.loads().map(|load| load.address).is_sorted() {
        return Err(
            Error::unsupported("the segments are not in the order of their addresses").at(elf.header.segments_offset)
        );
    }
    // What loaders need of the segments that are there, they need of those after them.
    let congruent = |align: u64, load: &Segment| align.is_power_of_two() && load.offset % align == load.address % align;
    if let Some(load) = elf.loads().find(|load| load.align > 1 && !congruent(load.align, load)) {
        let message = format!(
            "the segment at {:#x} is not where its file offset and its alignment {:#x} let it be",
            load.address, load.align
        );
        return Err(Error::unsupported(message).at(elf.header.segments_offset));
    }
    if let Some((first, _)) = elf.loads().zip(elf.loads().skip(1)).find(|(first, next)| first.end() > next.address) {
        let message = format!("the segment at {:#x} reaches into the next one", first.address);
        return Err(Error::unsupported(message).at(elf.header.segments_offset));
    }
    let end = elf.loads().map(Segment::end).max().unwrap_or(0);
    if end > HIGHEST_ADDRESS {
        return Err(
            Error::unsupported(format!("a segment reaches up to address {end:#x}")).at(elf.header.segments_offset)
        );
    }
    Ok(end)
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

/// The address for contents at a file offset in the first pages after `end`, congruent to the offset.
pub(super) fn address_behind(end: u64, offset: u64) -> u64 {
    bytes::align_up(end, PAGE) + offset % PAGE
}

/// A program header table.
pub(super) fn encode_segments(segments: &[Segment]) -> Vec<u8> {
    let header = |segment: &Segment| ProgramHeader64 {
        p_type: U32::new(LE, segment.kind),
        p_flags: U32::new(LE, segment.flags),
        p_offset: U64::new(LE, segment.offset),
        p_vaddr: U64::new(LE, segment.address),
        p_paddr: U64::new(LE, segment.physical_address),
        p_filesz: U64::new(LE, segment.file_size),
        p_memsz: U64::new(LE, segment.memory_size),
        p_align: U64::new(LE, segment.align),
    };
    pod::bytes_of_slice(&segments.iter().map(header).collect::<Vec<_>>()).to_vec()
}

/// A section header table.
pub(super) fn encode_sections(sections: &[Section<'_>]) -> Vec<u8> {
    let header = |section: &Section<'_>| SectionHeader64 {
        sh_name: U32::new(LE, section.name_offset),
        sh_type: U32::new(LE, section.kind),
        sh_flags: U64::new(LE, section.flags),
        sh_addr: U64::new(LE, section.address),
        sh_offset: U64::new(LE, section.offset),
        sh_size: U64::new(LE, section.size),
        sh_link: U32::new(LE, section.link),
        sh_info: U32::new(LE, section.info),
        sh_addralign: U64::new(LE, section.align),
        sh_entsize: U64::new(LE, section.entry_size),
    };
    pod::bytes_of_slice(&sections.iter().map(header).collect::<Vec<_>>()).to_vec()
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
    ///
    /// # Errors
    /// A limit if there are more headers than can be counted there; larger numbers would need extended numbering.
    pub(super) fn enter(&self, out: &mut [u8]) -> Result<()> {
        let short = |count: usize| {
            let short = u16::try_from(count).ok().filter(|&count| count < SHN_LORESERVE);
            short.ok_or_else(|| Error::limit(format!("{count} headers in one table")))
        };
        let (header, _) = pod::from_bytes_mut::<FileHeader64<LE>>(out)
            .map_err(|()| Error::internal("a file that ends in its header was written"))?;
        header.e_phoff.set(LE, self.segments_offset);
        header.e_shoff.set(LE, self.sections_offset);
        header.e_phnum.set(LE, short(self.segment_count)?);
        header.e_shnum.set(LE, short(self.section_count)?);
        header.e_shstrndx.set(LE, SymbolSection(short(self.names_index)?));
        Ok(())
    }
}

/// Appends `contents` at the next multiple of `align`; returns its file offset.
pub(super) fn append(out: &mut Vec<u8>, align: u64, contents: &[u8]) -> u64 {
    let offset = bytes::align_up(out.len() as u64, align.max(1));
    // Files are large: what is added at their ends must not double the memory for them.
    out.reserve_exact(offset as usize - out.len() + contents.len());
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
