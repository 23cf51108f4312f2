//! A host file with new bundles in a segment of their own.
//!
//! Nothing that is there moves: the new segment lies after everything, in the file and in memory, and every wrapper
//! that named an old bundle names its successor. What else changes are the tables that must: program headers, section
//! headers and section names, which go to the end of the file.

use object::LittleEndian;

use super::headers::{self, PAGE, TABLE_ALIGN, Tables};
use super::program_headers::{self, Room};
use super::sink::Sink;
use crate::elf::constants::{FileHeader64, PF_R, PT_LOAD, PT_PHDR, SHF_ALLOC, SHT_PROGBITS};
use crate::elf::{Elf, PROGRAM_HEADER_SIZE, Section, Segment};
use crate::offload_bundle::{Input, POINTER_OFFSET, Pointer};
use wavetap_base::bytes::{self, align_up};
use wavetap_base::error::{Error, Result, ResultExt};

/// The section that holds the new bundles.
pub(super) const SECTION: &str = ".wavetap.fatbin";

/// Something that lies in the new segment: where it was, and where it is.
struct Moved {
    old: Segment,
    offset: u64,
    address: u64,
}

/// A host file to which the successors of bundles are appended.
pub(super) struct Appended<'d> {
    elf: Elf<'d>,
    room: Room,
    /// File offset and address of the new segment.
    start: u64,
    address: u64,
    /// The new bundles, with their addresses.
    places: Vec<(usize, u64)>,
}

impl<'d> Appended<'d> {
    /// The host file as it is, up to the place of the first new bundle.
    pub(super) fn begin(input: &Input<'d>, out: &mut Sink<'_>) -> Result<Appended<'d>> {
        let elf = Elf::parse(input.data)?;
        let end = headers::image_end(&elf)?;
        let room = program_headers::find(&elf, end).within(|| "the host file".into())?;
        if elf.sections.iter().any(|section| section.name == SECTION) {
            return Err(Error::unsupported(format!(
                "the host file has a section {SECTION} already: it was rewritten before"
            )));
        }
        let (start, address) = match room {
            Room::NewTable { offset, address } => (offset, address),
            _ => (align_up(input.data.len() as u64, PAGE), align_up(end, PAGE)),
        };
        out.append(input.data)?;
        out.append_zeros(start)?;
        Ok(Appended { elf, room, start, address, places: Vec::new() })
    }

    /// The address of what is at this file offset.
    fn address_of(&self, offset: u64) -> u64 {
        self.address + (offset - self.start)
    }

    /// The successor of this bundle comes next: bundles and their entries stay on pages.
    pub(super) fn next_bundle(&mut self, index: usize, out: &mut Sink<'_>) -> Result<()> {
        let offset = out.append_at(PAGE, &[])?;
        self.places.push((index, self.address_of(offset)));
        Ok(())
    }

    /// Completes the new segment, repoints the wrappers and writes the tables.
    pub(super) fn finish(self, input: &Input<'_>, out: &mut Sink<'_>) -> Result<()> {
        let elf = &self.elf;
        let bundles_end = out.size();
        let mut moved = Vec::new();
        if let Room::Grow { moved: indices } = &self.room {
            for &index in indices {
                let old = elf.segments[index];
                let contents = bytes::slice(elf.data, old.offset, old.file_size, "moved segment")?;
                let offset = out.append_at(headers::small_align(old.align)?, contents)?;
                moved.push(Moved { old, offset, address: self.address_of(offset) });
            }
        }
        let added = usize::from(!matches!(self.room, Room::Replace(_)));
        let count = elf.segments.len() + added;
        let table = match self.room {
            Room::NewTable { .. } => out.append_at(TABLE_ALIGN, &vec![0; count * PROGRAM_HEADER_SIZE as usize])?,
            _ => elf.header.segments_offset,
        };
        let size = out.size() - self.start;
        let load = Segment {
            kind: PT_LOAD,
            flags: PF_R,
            offset: self.start,
            address: self.address,
            physical_address: self.address,
            file_size: size,
            memory_size: size,
            align: PAGE,
        };
        let segments = new_segments(elf, &self.room, &moved, load, table);
        out.put(table, &headers::encode_segments(&segments))?;
        repoint(out, input, &self.places)?;

        let (sections, names) = new_sections(elf, &moved, load, bundles_end)?;
        append_sections(out, elf, sections, &names, table, segments.len())
    }
}

/// The program headers with the new segment after the last loaded one.
fn new_segments(elf: &Elf<'_>, room: &Room, moved: &[Moved], load: Segment, table: u64) -> Vec<Segment> {
    let mut segments = elf.segments.clone();
    for place in moved {
        // A segment of another type with the same bytes (PT_GNU_PROPERTY) goes along.
        for segment in segments.iter_mut().filter(|segment| !segment.is_load() && same_bytes(segment, &place.old)) {
            (segment.offset, segment.address, segment.physical_address) = (place.offset, place.address, place.address);
        }
    }
    if let Room::Replace(index) = room {
        segments.remove(*index);
    }
    let behind = segments.iter().rposition(Segment::is_load).map_or(segments.len(), |last| last + 1);
    segments.insert(behind, load);
    let size = segments.len() as u64 * PROGRAM_HEADER_SIZE;
    for segment in segments.iter_mut().filter(|segment| segment.kind == PT_PHDR) {
        if matches!(room, Room::NewTable { .. }) {
            let address = load.address + (table - load.offset);
            (segment.offset, segment.address, segment.physical_address) = (table, address, address);
        }
        (segment.file_size, segment.memory_size) = (size, size);
    }
    segments
}

fn same_bytes(a: &Segment, b: &Segment) -> bool {
    (a.offset, a.file_size) == (b.offset, b.file_size)
}

/// Lets every wrapper of a replaced bundle name the new one.
fn repoint(out: &mut Sink<'_>, input: &Input<'_>, places: &[(usize, u64)]) -> Result<()> {
    for (bundle, address) in places {
        let mut named = 0;
        for wrapper in input.wrappers().iter().filter(|wrapper| wrapper.bundle == *bundle) {
            let word = wrapper.file_offset + POINTER_OFFSET;
            match wrapper.pointer {
                Pointer::InPlace => out.put(word, &address.to_le_bytes())?,
                Pointer::Addend { file_offset, base } => {
                    let addend = address.wrapping_sub(base).to_le_bytes();
                    out.put(file_offset, &addend)?;
                    // Some linkers write the addend in place as well.
                    if wrapper.in_place != 0 {
                        out.put(word, &addend)?;
                    }
                }
            }
            named += 1;
        }
        if named == 0 {
            let offset = input.bundles.get(*bundle).map_or(0, |bundle| bundle.offset);
            return Err(
                Error::unsupported("no wrapper names the bundle, so no program would load its successor").at(offset)
            );
        }
    }
    Ok(())
}

/// The section headers, with moved sections at their new places and the new section as the last one, so that
/// no section is renumbered, and the section names.
fn new_sections<'d>(
    elf: &Elf<'d>,
    moved: &[Moved],
    load: Segment,
    bundles_end: u64,
) -> Result<(Vec<Section<'d>>, Vec<u8>)> {
    let mut sections = elf.sections.clone();
    for section in sections.iter_mut().filter(|section| section.is_alloc() && section.has_contents()) {
        let holds = |place: &&Moved| {
            section.offset >= place.old.offset
                && section.offset + section.size <= place.old.offset + place.old.file_size
        };
        if let Some(place) = moved.iter().find(holds) {
            let within = section.offset - place.old.offset;
            (section.offset, section.address) = (place.offset + within, place.address + within);
        }
    }
    let names = elf
        .sections
        .get(usize::from(elf.header.names_index))
        .ok_or_else(|| Error::internal("a host file without section names"))?;
    let mut names = elf.contents(names)?.to_vec();
    let name_offset = headers::add_name(&mut names, SECTION)?;
    sections.push(Section {
        name: SECTION,
        name_offset,
        kind: SHT_PROGBITS,
        flags: SHF_ALLOC,
        address: load.address,
        offset: load.offset,
        size: bundles_end - load.offset,
        link: 0,
        info: 0,
        align: PAGE,
        entry_size: 0,
    });
    Ok((sections, names))
}

/// Puts section names and section headers at the end and enters the tables' places in the file header.
fn append_sections(
    out: &mut Sink<'_>,
    elf: &Elf<'_>,
    mut sections: Vec<Section<'_>>,
    names: &[u8],
    table: u64,
    segment_count: usize,
) -> Result<()> {
    let names_index = usize::from(elf.header.names_index);
    let offset = out.append_at(1, names)?;
    (sections[names_index].offset, sections[names_index].size) = (offset, names.len() as u64);
    let sections_offset = out.append_at(TABLE_ALIGN, &headers::encode_sections(&sections))?;
    let mut header = bytes::slice(elf.data, 0, size_of::<FileHeader64<LittleEndian>>() as u64, "file header")?.to_vec();
    Tables { segments_offset: table, segment_count, sections_offset, section_count: sections.len(), names_index }
        .enter(&mut header)?;
    out.put(0, &header)
}
