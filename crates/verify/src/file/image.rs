//! Every original byte at its original virtual address, and segments as loaders want them: for device objects and host
//! files alike.

use std::ops::Range;

use crate::finding::{Finding, Rule};
use wavetap_object::elf::constants::{PT_INTERP, PT_NOTE, PT_NULL, PT_PHDR, SHT_SYMTAB, SectionType};
use wavetap_object::elf::{Elf, FILE_HEADER_SIZE, PROGRAM_HEADER_SIZE, SECTION_HEADER_SIZE, Segment, Symbol};

/// More findings than this of one kind say nothing new.
const MOST: usize = 8;

/// Checks that every loaded byte of the original is where it was, but for the ELF header, the program headers, and file
/// ranges of the original that may change.
pub(crate) fn bytes_stay(
    old: &Elf<'_>,
    new: &Elf<'_>,
    may_change: &[Range<u64>],
    rule: Rule,
    findings: &mut Vec<Finding>,
) {
    let headers =
        old.header.segments_offset..old.header.segments_offset + PROGRAM_HEADER_SIZE * new.segments.len() as u64;
    let excepted = |offset: u64| {
        offset < FILE_HEADER_SIZE || headers.contains(&offset) || may_change.iter().any(|range| range.contains(&offset))
    };
    let mut found = 0;
    for load in old.loads() {
        let (Ok(before), Ok(now)) =
            (old.bytes_at(load.address, load.file_size), new.bytes_at(load.address, load.file_size))
        else {
            let message = format!("the {:#x} original bytes from here on are not loaded any more", load.file_size);
            findings.push(Finding::new(rule, message).at(load.address));
            continue;
        };
        for (index, (before, now)) in before.iter().zip(now).enumerate() {
            let (offset, address) = (load.offset + index as u64, load.address + index as u64);
            if before != now && !excepted(offset) {
                found += 1;
                if found <= MOST {
                    findings.push(
                        Finding::new(rule, format!("the original byte {before:#04x} became {now:#04x}")).at(address),
                    );
                }
            }
        }
    }
    if found > MOST {
        findings.push(Finding::new(rule, format!("{} further original bytes changed", found - MOST)));
    }
}

/// Checks the segments: the original ones are there and unchanged, those that are loaded ascend without overlap,
/// offsets and addresses are congruent, and nothing is both writable and executable. Notes and the program headers
/// themselves may have grown, and are found elsewhere, as may be the name of the interpreter.
pub(crate) fn segments(old: &Elf<'_>, new: &Elf<'_>, findings: &mut Vec<Finding>) {
    let mut complain = |address: u64, message: String| findings.push(Finding::new(Rule::Segments, message).at(address));
    // Whether what is no segment of its own is a part of one.
    let is_placed =
        |elf: &Elf<'_>, segment: &Segment| elf.file_offset(segment.address, segment.file_size) == Some(segment.offset);
    for segment in old.segments.iter().filter(|segment| !matches!(segment.kind, PT_NOTE | PT_PHDR | PT_NULL)) {
        let kept = |other: &Segment| {
            (other.kind, other.address, other.file_size) == (segment.kind, segment.address, segment.file_size)
                && (other.memory_size, other.flags, other.align) == (segment.memory_size, segment.flags, segment.align)
                // One that the original has elsewhere in the file than it is loaded from is to be left as it is:
                // loaders go by the address.
                && (other.is_load()
                    || other.file_size == 0
                    || is_placed(new, other)
                    || (other.offset == segment.offset && !is_placed(old, segment)))
        };
        // The kernel finds the interpreter's name by the header alone.
        let moved = |other: &Segment| {
            let contents = |elf: &Elf<'_>, segment: &Segment| {
                elf.bytes_at(segment.address, segment.file_size).ok().map(<[u8]>::to_vec)
            };
            (segment.kind, other.kind) == (PT_INTERP, PT_INTERP)
                && is_placed(new, other)
                && contents(old, segment) == contents(new, other)
        };
        if !new.segments.iter().any(|other| kept(other) || moved(other)) {
            complain(segment.address, "an original segment was changed".to_owned());
        }
    }
    let original_end = old.loads().map(Segment::end).max().unwrap_or(0);
    let mut end = 0;
    for load in new.loads() {
        if load.address < end {
            complain(
                load.address,
                format!(
                    "a segment begins before the end {end:#x} of the previous one: loaders allocate up to the \
                        last one"
                ),
            );
        }
        end = load.end();
        if load.file_size > load.memory_size {
            complain(load.address, "a segment is longer in the file than in memory".to_owned());
        }
        if load.align > 1 && load.offset % load.align != load.address % load.align {
            complain(
                load.address,
                format!("file offset {:#x} and address differ modulo the alignment {:#x}", load.offset, load.align),
            );
        }
        let is_new = load.address >= original_end;
        if is_new && load.is_writable() && load.is_executable() {
            complain(load.address, "a new segment is writable and executable".to_owned());
        }
        if !is_new && !old.loads().any(|other| other.address == load.address) {
            complain(load.address, "a new segment lies among the original ones".to_owned());
        }
    }
}

/// Checks that the section headers are the last thing in the file and that contents lie before them.
pub(crate) fn section_headers(new: &Elf<'_>, findings: &mut Vec<Finding>) {
    let end = new.header.sections_offset + SECTION_HEADER_SIZE * new.sections.len() as u64;
    if end != new.data.len() as u64 {
        findings.push(Finding::new(
            Rule::Segments,
            "the section headers are not the last thing in the file: loaders cut it after them",
        ));
    }
    for section in &new.sections {
        let in_file = if section.has_contents() { section.size } else { 0 };
        if section.offset.saturating_add(in_file) > new.header.sections_offset {
            findings
                .push(Finding::new(Rule::Segments, format!("section {} is after the section headers", section.name)));
        }
        let placed = new.file_offset(section.address, section.size.max(1)) == Some(section.offset);
        if section.is_alloc() && section.has_contents() && section.size > 0 && !placed {
            findings.push(
                Finding::new(Rule::Segments, format!("section {} is not where its segment loads it", section.name))
                    .at(section.address),
            );
        }
    }
}

/// Checks that every original symbol of a kind of table is still there with its value.
pub(crate) fn symbols(old: &Elf<'_>, new: &Elf<'_>, kind: SectionType, findings: &mut Vec<Finding>) {
    let name = if kind == SHT_SYMTAB { ".symtab" } else { ".dynsym" };
    let table = |elf: &Elf<'_>| elf.sections.iter().find(|section| section.kind == kind).map(|section| section.offset);
    let (Some(_), has) = (table(old), table(new)) else { return };
    if has.is_none() {
        findings.push(Finding::new(Rule::Symbols, format!("{name} is gone")));
        return;
    }
    let (Some(before), Some(now)) = (read(old, kind), read(new, kind)) else {
        findings.push(Finding::new(Rule::Symbols, format!("{name} cannot be read")));
        return;
    };
    let same = |a: &Symbol<'_>, b: &Symbol<'_>| {
        (a.name, a.address, a.size, a.info, a.other, a.is_defined())
            == (b.name, b.address, b.size, b.info, b.other, b.is_defined())
    };
    let mut sorted: Vec<&Symbol<'_>> = now.iter().collect();
    sorted.sort_by_key(|symbol| (symbol.name, symbol.address));
    for symbol in &before {
        let from = sorted.partition_point(|other| (other.name, other.address) < (symbol.name, symbol.address));
        let mut candidates =
            sorted[from..].iter().take_while(|other| (other.name, other.address) == (symbol.name, symbol.address));
        if !candidates.any(|other| same(symbol, other)) {
            findings.push(
                Finding::new(Rule::Symbols, format!("{name} lost or changed {:?}", symbol.name)).at(symbol.address),
            );
        }
    }
}

/// The symbols of the table of this kind.
pub(crate) fn read<'d>(elf: &Elf<'d>, kind: SectionType) -> Option<Vec<Symbol<'d>>> {
    elf.sections.iter().find(|section| section.kind == kind)?;
    if kind == SHT_SYMTAB { elf.symbols() } else { elf.dynamic_symbols() }.ok()
}
