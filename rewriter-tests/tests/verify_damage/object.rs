//! Damages of what is around the code: original bytes, entries, segments, sections, the metadata's texts.

use wavetap::code_object::Field;
use wavetap::elf::Elf;
use wavetap::elf::constants::{PF_W, PT_DYNAMIC, PT_LOAD, PT_NOTE, ProgramType};
use wavetap::verify::Rule;

use super::subject::{Harm, Subject};
use super::{Kind, UNREADABLE};

/// Bytes of ELF headers (ELF-64).
const PROGRAM_HEADER: u64 = 56;
const SECTION_HEADER: u64 = 64;

pub const KINDS: &[Kind] = &[
    Kind {
        name: "original_code_changed",
        what: "a bit of the original code flips",
        rules: &[Rule::OriginalByte],
        harm: |s| {
            at(
                s,
                s.object().functions().first().map(|f| f.code.start).or(s
                    .object()
                    .kernels()
                    .first()
                    .map(|_| entry_of_original(s))),
            )
        },
    },
    Kind {
        name: "original_constant_changed",
        what: "a bit of the original constants flips",
        rules: &[Rule::OriginalByte],
        harm: constant,
    },
    Kind {
        name: "original_variable_changed",
        what: "a bit of an original variable flips",
        rules: &[Rule::OriginalByte],
        harm: |s| section(s, ".data", 0),
    },
    Kind {
        name: "relocation_changed",
        what: "a loader's relocation has another addend",
        rules: &[Rule::OriginalByte, Rule::Symbols],
        harm: |s| section(s, ".rela.dyn", 16),
    },
    Kind {
        name: "descriptor_reserved_bytes",
        what: "a reserved byte of a descriptor changes",
        rules: &[Rule::Descriptor],
        harm: |s| at(s, Some(first(s, |kernel| kernel.descriptor_address) + 12)),
    },
    Kind {
        name: "descriptor_of_another_kernel",
        what: "a descriptor of a kernel that is not instrumented changes",
        rules: &[Rule::Map],
        harm: |s| {
            let object = s.object();
            let left = |name: &str| s.map.kernels.iter().all(|entry| entry.name != name);
            let other =
                object.kernels().iter().find(|kernel| left(&kernel.name)).map(|kernel| kernel.descriptor_address);
            other.map_or_else(Vec::new, |address| at(s, Some(address + 48)))
        },
    },
    Kind {
        name: "entry_not_aligned",
        what: "the entry is an instruction further",
        rules: UNREADABLE,
        harm: |s| entry(s, 4),
    },
    Kind {
        name: "entry_displaced",
        what: "the entry is 256 bytes further",
        rules: &[Rule::Skeleton, Rule::Branch, Rule::Descriptor, Rule::Exec, Rule::Clobbered],
        harm: |s| entry(s, 256),
    },
    Kind {
        name: "entry_original",
        what: "the descriptor of an instrumented kernel has its original entry",
        rules: &[Rule::Descriptor],
        harm: original_entry,
    },
    Kind {
        name: "prefetch_too_long",
        what: "INST_PREF_SIZE is more than there is code (gfx11 and later)",
        rules: &[Rule::Descriptor],
        harm: prefetch,
    },
    Kind {
        name: "segments_exchanged",
        what: "two loaded segments are in the wrong order",
        rules: &[Rule::Segments],
        harm: exchanged,
    },
    Kind {
        name: "segment_writable",
        what: "the segment of new code is writable",
        rules: &[Rule::Segments],
        harm: |s| new_code_segment(s, 4, 2),
    },
    Kind {
        name: "segment_offset",
        what: "offset and address of new code differ modulo the page size",
        rules: &[Rule::Segments, Rule::Skeleton],
        harm: |s| new_code_segment(s, 8, 4),
    },
    Kind {
        name: "segment_size",
        what: "a segment is longer in the file than in memory",
        rules: &[Rule::Segments],
        harm: |s| new_code_segment(s, 32, 0x80),
    },
    Kind {
        name: "segment_lost",
        what: "new code is loaded by no segment",
        rules: UNREADABLE,
        harm: |s| new_code_segment(s, 0, 1),
    },
    Kind {
        name: "segment_not_executable",
        what: "the segment of new code is not executable",
        rules: UNREADABLE,
        harm: |s| new_code_segment(s, 4, 1),
    },
    Kind {
        name: "segment_of_the_original_writable",
        what: "an original segment is writable",
        rules: &[Rule::Segments],
        harm: |s| raw(s, loads(s)[0].header + 4, 2),
    },
    Kind {
        name: "control_block_read_only",
        what: "the control block's segment is not writable",
        rules: &[Rule::Symbols],
        harm: read_only,
    },
    Kind {
        name: "dynamic_segment_moved",
        what: "PT_DYNAMIC begins an entry further",
        rules: &[Rule::Segments],
        harm: |s| moved(s, PT_DYNAMIC),
    },
    Kind {
        name: "note_segment_moved",
        what: "PT_NOTE begins somewhere else",
        rules: UNREADABLE,
        harm: |s| moved(s, PT_NOTE),
    },
    Kind {
        name: "section_elsewhere",
        what: "a section header has another address",
        rules: &[Rule::Segments],
        harm: |s| section_header(s, ".data", 16),
    },
    Kind {
        name: "section_past_the_end",
        what: "a section reaches behind what is loaded",
        rules: UNREADABLE,
        harm: |s| section_header(s, ".data", 37),
    },
    Kind {
        name: "padding_missing",
        what: "the segment of new code ends with its last instruction",
        rules: &[Rule::Segments],
        harm: no_padding,
    },
    Kind {
        name: "bytes_behind_the_headers",
        what: "something follows the section headers",
        rules: &[Rule::Segments],
        harm: longer,
    },
    Kind {
        name: "feature_changed",
        what: "the ELF header names another feature",
        rules: &[Rule::Segments],
        harm: |s| raw(s, 0x31, 1),
    },
    Kind {
        name: "abi_changed",
        what: "the ELF header names another operating system",
        rules: UNREADABLE,
        harm: |s| raw(s, 7, 1),
    },
    Kind {
        name: "version_changed",
        what: "the ELF header names another version of the ABI",
        rules: &[Rule::Segments],
        harm: |s| raw(s, 8, 1),
    },
    Kind {
        name: "kernel_renamed_in_the_note",
        what: "the metadata has another name for a kernel",
        rules: &[Rule::Metadata, Rule::Symbols],
        harm: |s| note_text(s, ".name"),
    },
    Kind {
        name: "descriptor_renamed_in_the_note",
        what: "the metadata has another symbol for a kernel's descriptor",
        rules: &[Rule::Metadata, Rule::Symbols],
        harm: |s| note_text(s, ".symbol"),
    },
    Kind {
        name: "argument_changed_in_the_note",
        what: "the metadata has another kind of argument",
        rules: &[Rule::Metadata],
        harm: |s| note_text(s, ".value_kind"),
    },
    Kind {
        name: "target_changed_in_the_note",
        what: "the metadata names another target",
        rules: &[Rule::Metadata],
        harm: |s| note_text(s, "amdhsa.target"),
    },
];

/// The constants of the source that is there to be damaged.
const CONSTANTS: [u8; 4] = 0x57a7_1c00_u32.to_le_bytes();

/// A bit of a constant flips; kernel descriptors lie in the same section.
fn constant(subject: &Subject) -> Vec<Harm> {
    let object = subject.object();
    let Some(section) = object.elf().section(".rodata") else { return Vec::new() };
    let range = section.offset as usize..(section.offset + section.size) as usize;
    let place = subject.rewritten[range.clone()].windows(4).position(|window| window == CONSTANTS);
    place.map_or_else(Vec::new, |at| raw(subject, (range.start + at) as u64, 1))
}

pub fn harm(bytes: Vec<u8>) -> Vec<Harm> {
    vec![Harm { bytes, kernel: None }]
}

/// The address of the original code of the first instrumented kernel.
fn entry_of_original(subject: &Subject) -> u64 {
    subject.map.kernels[0].addresses[0].original
}

/// A bit flips at an address.
pub fn at(subject: &Subject, address: Option<u64>) -> Vec<Harm> {
    let Some(address) = address else { return Vec::new() };
    let offset = subject.object().file_offset(address, 1).expect("in the file");
    raw(subject, offset, 1)
}

/// Bits flip at a place in the file.
pub fn raw(subject: &Subject, offset: u64, bits: u8) -> Vec<Harm> {
    let mut bytes = subject.rewritten.clone();
    bytes[offset as usize] ^= bits;
    harm(bytes)
}

/// Something of the first kernel in the table.
fn first<T>(subject: &Subject, of: impl Fn(&wavetap::code_object::Kernel) -> T) -> T {
    of(subject.object().kernel(&subject.map.kernels[0].name).expect("a kernel"))
}

fn entry(subject: &Subject, by: i64) -> Vec<Harm> {
    let (address, mut damaged) = first(subject, |kernel| (kernel.descriptor_address, kernel.descriptor));
    damaged.set_entry_byte_offset(damaged.entry_byte_offset() + by);
    harm(subject.patched(&[(address, damaged.bytes().to_vec())]))
}

fn original_entry(subject: &Subject) -> Vec<Harm> {
    let (address, mut damaged) = first(subject, |kernel| (kernel.descriptor_address, kernel.descriptor));
    damaged.set_entry_byte_offset(entry_of_original(subject).wrapping_sub(address) as i64);
    harm(subject.patched(&[(address, damaged.bytes().to_vec())]))
}

fn prefetch(subject: &Subject) -> Vec<Harm> {
    let Some(field) = Field::prefetch_size(subject.target) else { return Vec::new() };
    let last = subject.map.kernels.iter().max_by_key(|kernel| kernel.addresses.iter().map(|pair| pair.rewritten).max());
    let object = subject.object();
    let kernel = object.kernel(&last.expect("a kernel").name).expect("a kernel");
    let mut damaged = kernel.descriptor;
    damaged.set(field, (1 << field.width) - 1).expect("fits");
    harm(subject.patched(&[(kernel.descriptor_address, damaged.bytes().to_vec())]))
}

/// A bit flips in a section.
pub fn section(subject: &Subject, name: &str, offset: u64) -> Vec<Harm> {
    let Some(at) = subject.object().elf().section(name).map(|section| section.offset + offset) else {
        return Vec::new();
    };
    raw(subject, at, 0xff)
}

/// A loaded segment.
struct Load {
    /// Where its program header is.
    header: u64,
    executable: bool,
    writable: bool,
}

fn headers(elf: &Elf<'_>, kind: ProgramType) -> Vec<(u64, u32)> {
    let headers = elf.segments.iter().enumerate().filter(|(_, segment)| segment.kind == kind);
    headers
        .map(|(index, segment)| (elf.header.segments_offset + index as u64 * PROGRAM_HEADER, segment.flags.0))
        .collect()
}

fn loads(subject: &Subject) -> Vec<Load> {
    let load = |(header, flags): (u64, u32)| Load { header, executable: flags & 1 != 0, writable: flags & PF_W.0 != 0 };
    headers(subject.object().elf(), PT_LOAD).into_iter().map(load).collect()
}

fn exchanged(subject: &Subject) -> Vec<Harm> {
    let loads = loads(subject);
    let (first, second) = (loads[loads.len() - 2].header as usize, loads[loads.len() - 1].header as usize);
    let mut bytes = subject.rewritten.clone();
    let size = PROGRAM_HEADER as usize;
    let header = bytes[first..first + size].to_vec();
    bytes.copy_within(second..second + size, first);
    bytes[second..second + size].copy_from_slice(&header);
    harm(bytes)
}

/// The last program header of some sort, damaged.
fn last_load(subject: &Subject, is: impl Fn(&Load) -> bool, offset: u64, bits: u8) -> Vec<Harm> {
    raw(subject, loads(subject).into_iter().rev().find(is).expect("a new segment").header + offset, bits)
}

/// The program header of new code, damaged.
fn new_code_segment(subject: &Subject, offset: u64, bits: u8) -> Vec<Harm> {
    last_load(subject, |load| load.executable, offset, bits)
}

fn read_only(subject: &Subject) -> Vec<Harm> {
    last_load(subject, |load| load.writable, 4, 2)
}

/// A segment that is a part of another one begins 16 bytes further.
fn moved(subject: &Subject, kind: ProgramType) -> Vec<Harm> {
    let header = headers(subject.object().elf(), kind)[0].0 as usize;
    let mut bytes = subject.rewritten.clone();
    for at in [header + 8, header + 16, header + 24] {
        let place = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        bytes[at..at + 8].copy_from_slice(&(place + 16).to_le_bytes());
    }
    harm(bytes)
}

/// A bit of a section header flips.
fn section_header(subject: &Subject, name: &str, offset: u64) -> Vec<Harm> {
    let object = subject.object();
    let index = object.elf().sections.iter().position(|section| section.name == name);
    index.map_or_else(Vec::new, |index| {
        raw(subject, object.elf().header.sections_offset + index as u64 * SECTION_HEADER + offset, 4)
    })
}

/// The first value of a key with a text as its value has another last letter.
fn note_text(subject: &Subject, key: &str) -> Vec<Harm> {
    let object = subject.object();
    let note =
        object.elf().section(".note").map(|section| section.offset as usize..(section.offset + section.size) as usize);
    let range = note.expect("a note");
    let needle: Vec<u8> = [0xa0 | key.len() as u8].into_iter().chain(key.bytes()).collect();
    let mut bytes = subject.rewritten.clone();
    let value = range.clone().find(|at| bytes[*at..range.end].starts_with(&needle)).map(|at| at + needle.len());
    let Some(value) = value else { return Vec::new() };
    let last = match bytes[value] {
        short @ 0xa0..=0xbf => value + usize::from(short & 0x1f),
        0xd9 => value + 1 + usize::from(bytes[value + 1]),
        other => panic!("{key} has a value that begins with {other:#x}"),
    };
    bytes[last] ^= 1;
    harm(bytes)
}

fn no_padding(subject: &Subject) -> Vec<Harm> {
    let header = loads(subject).into_iter().rev().find(|load| load.executable).expect("new code").header as usize;
    let padding = u64::from(subject.target.code_end_padding());
    let mut bytes = subject.rewritten.clone();
    for at in [header + 32, header + 40] {
        let size = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        bytes[at..at + 8].copy_from_slice(&(size - padding).to_le_bytes());
    }
    harm(bytes)
}

fn longer(subject: &Subject) -> Vec<Harm> {
    let mut bytes = subject.rewritten.clone();
    bytes.extend([0; 8]);
    harm(bytes)
}
