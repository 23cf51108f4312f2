//! Damages of tables: symbols and where loaders find them, the control block, the site table.

use std::sync::Arc;

use wavetap::code_object::{CONTROL_SYMBOL, CodeObject};
use wavetap::elf::Elf;
use wavetap::elf::constants::{
    DT_GNU_HASH, DT_HASH, DT_RELASZ, DT_STRSZ, DT_STRTAB, DT_SYMTAB, DynamicTag, SHT_DYNSYM, SHT_SYMTAB, SectionType,
};
use wavetap::profile::control::{self, MAP_SECTION};
use wavetap::profile::map::ObjectMap;
use wavetap::profile::probes::branches;
use wavetap::verify::Rule;

use super::Kind;
use super::object::{at, harm, raw, section};
use super::subject::{Harm, Subject};

/// Bytes of an entry of a symbol table (ELF-64).
const SYMBOL: u64 = 24;

pub const KINDS: &[Kind] = &[
    Kind {
        name: "relocations_lost",
        what: "DT_RELASZ is 0",
        rules: &[Rule::OriginalByte, Rule::Symbols],
        harm: |s| dynamic_value(s, DT_RELASZ, |_| 0),
    },
    Kind {
        name: "symbol_value_static",
        what: "a symbol of .symtab has another value",
        rules: &[Rule::Symbols],
        harm: |s| symbol(s, SHT_SYMTAB, 8),
    },
    Kind {
        name: "symbol_value_dynamic",
        what: "a symbol of .dynsym has another value",
        rules: &[Rule::Symbols],
        harm: |s| symbol(s, SHT_DYNSYM, 8),
    },
    Kind {
        name: "symbol_size",
        what: "a symbol of .symtab has another size",
        rules: &[Rule::Symbols],
        harm: |s| symbol(s, SHT_SYMTAB, 16),
    },
    Kind {
        name: "symbol_renamed",
        what: "a symbol of .symtab has another name",
        rules: &[Rule::Symbols],
        harm: |s| symbol(s, SHT_SYMTAB, 0),
    },
    Kind {
        name: "symbol_local",
        what: "a symbol of .symtab is bound otherwise",
        rules: &[Rule::Symbols],
        harm: |s| symbol(s, SHT_SYMTAB, 4),
    },
    Kind {
        name: "control_symbol_hidden",
        what: "the control block's symbol is no object",
        rules: &[Rule::Symbols],
        harm: |s| control_entry(s, SHT_SYMTAB, 4, 1),
    },
    Kind {
        name: "control_symbol_short",
        what: "the control block's symbol is smaller than the block",
        rules: &[Rule::Symbols],
        harm: |s| control_entry(s, SHT_DYNSYM, 16, 0x40),
    },
    Kind {
        name: "control_symbol_undefined",
        what: "the control block's symbol is in no section",
        rules: &[Rule::Symbols],
        harm: |s| control_undefined(s),
    },
    Kind {
        name: "control_symbol_elsewhere",
        what: "the control block's symbol leads somewhere else",
        rules: &[Rule::Symbols],
        harm: |s| control_entry(s, SHT_DYNSYM, 8, 8),
    },
    Kind {
        name: "symbol_protected",
        what: "a symbol of .dynsym has another visibility",
        rules: &[Rule::Symbols],
        harm: |s| symbol(s, SHT_DYNSYM, 5),
    },
    Kind {
        name: "symbol_name_changed",
        what: "a name in .dynstr is another",
        rules: &[Rule::Symbols],
        harm: |s| control_name(s),
    },
    Kind { name: "hash_stale", what: "a bucket of .hash is empty", rules: &[Rule::Symbols], harm: empty_bucket },
    Kind { name: "hash_chain_lost", what: "a chain of .hash ends early", rules: &[Rule::Symbols], harm: short_chain },
    Kind {
        name: "gnu_hash_stale",
        what: "the Bloom filter of .gnu.hash is another",
        rules: &[Rule::Symbols],
        harm: |s| blank(s, ".gnu.hash", 16),
    },
    Kind {
        name: "gnu_hash_value_changed",
        what: "a value of .gnu.hash is another",
        rules: &[Rule::Symbols],
        harm: gnu_value,
    },
    Kind {
        name: "symbol_table_stale",
        what: "DT_SYMTAB leads to the old table",
        rules: &[Rule::Symbols],
        harm: |s| dynamic_stale(s, DT_SYMTAB),
    },
    Kind {
        name: "string_table_stale",
        what: "DT_STRTAB leads to the old names",
        rules: &[Rule::Symbols],
        harm: |s| dynamic_stale(s, DT_STRTAB),
    },
    Kind {
        name: "string_size_stale",
        what: "DT_STRSZ is that of the old names",
        rules: &[Rule::Symbols],
        harm: |s| dynamic_stale(s, DT_STRSZ),
    },
    Kind {
        name: "hash_table_stale",
        what: "DT_HASH leads to the old table",
        rules: &[Rule::Symbols],
        harm: |s| dynamic_stale(s, DT_HASH),
    },
    Kind {
        name: "gnu_hash_table_stale",
        what: "DT_GNU_HASH leads to the old table",
        rules: &[Rule::Symbols],
        harm: |s| dynamic_stale(s, DT_GNU_HASH),
    },
    Kind {
        name: "control_block_set",
        what: "the control block has a buffer",
        rules: &[Rule::Symbols],
        harm: |s| control(s, control::BUFFER),
    },
    Kind {
        name: "control_stride",
        what: "the control block's records are of another size than the table's",
        rules: &[Rule::Map],
        harm: |s| control(s, control::STRIDE),
    },
    Kind {
        name: "table_of_another_object",
        what: "the site table was made from another object",
        rules: &[Rule::Map],
        harm: |s| table(s, |map| map.original.replace_range(0..1, "x")),
    },
    Kind {
        name: "table_corrupt",
        what: "the site table does not decompress",
        rules: &[Rule::Map],
        harm: |s| section(s, MAP_SECTION, 0),
    },
    Kind {
        name: "site_elsewhere",
        what: "a site is where no instruction is",
        rules: &[Rule::Map],
        harm: |s| table(s, |map| map.kernels[0].sites[0].address += 2),
    },
    Kind {
        name: "counters_overlap",
        what: "two sites have the same counters",
        rules: &[Rule::Map],
        harm: |s| table(s, |map| map.kernels[0].sites[1].offset = map.kernels[0].sites[0].offset),
    },
    Kind {
        name: "counters_behind_the_record",
        what: "a site's counters lie behind the record",
        rules: &[Rule::Map],
        harm: |s| table(s, |map| map.kernels[0].sites[0].offset = map.stride),
    },
    Kind {
        name: "address_moved",
        what: "the table says that an instruction is elsewhere",
        rules: &[Rule::Skeleton],
        harm: |s| table(s, |map| map.kernels[0].addresses[3].rewritten += 4),
    },
    Kind {
        name: "addresses_lost",
        what: "the table has no place for some instructions",
        rules: &[Rule::Skeleton],
        harm: |s| table(s, |map| map.kernels[0].addresses.truncate(5)),
    },
    Kind {
        name: "addresses_exchanged",
        what: "two instructions change places in the table",
        rules: &[Rule::Skeleton],
        harm: |s| table(s, exchange),
    },
    Kind {
        name: "address_lost",
        what: "the table has no place for one instruction",
        rules: &[Rule::Skeleton],
        harm: |s| table(s, |map| _ = map.kernels[0].addresses.pop()),
    },
    Kind {
        name: "address_twice",
        what: "the table has two places for an instruction",
        rules: &[Rule::Skeleton],
        harm: |s| table(s, |map| map.kernels[0].addresses[3].original = map.kernels[0].addresses[2].original),
    },
    Kind {
        name: "site_of_another_sort",
        what: "a site that counts lanes is said to count a branch",
        rules: &[Rule::Map],
        harm: |s| {
            table(s, |map| {
                let site = map.kernels[0].sites.iter_mut().find(|site| site.kind == *branches::EXEC);
                site.expect("a site that counts lanes").kind = Arc::clone(&branches::SCALAR);
            })
        },
    },
    Kind {
        name: "site_moved",
        what: "a site is another instruction",
        rules: &[Rule::Map],
        harm: |s| table(s, |map| map.kernels[0].sites[0].address = map.kernels[0].addresses[0].original),
    },
    Kind {
        name: "site_twice",
        what: "two sites are the same instruction",
        rules: &[Rule::Map],
        harm: |s| table(s, |map| map.kernels[0].sites[1].address = map.kernels[0].sites[0].address),
    },
    Kind {
        name: "record_smaller",
        what: "the table's records are smaller than their counters",
        rules: &[Rule::Map],
        harm: |s| table(s, |map| map.stride = 64),
    },
    Kind {
        name: "table_of_another_target",
        what: "the site table names another target",
        rules: &[Rule::Map],
        harm: |s| table(s, |map| map.target.push('0')),
    },
    Kind {
        name: "kernel_not_in_table",
        what: "an instrumented kernel has another name in the table",
        rules: &[Rule::Map],
        harm: |s| table(s, |map| map.kernels[0].name.replace_range(0..1, "x")),
    },
    Kind {
        name: "kernel_lost_from_the_table",
        what: "an instrumented kernel is not in the table",
        rules: &[Rule::Map],
        harm: |s| table(s, |map| drop(map.kernels.remove(0))),
    },
];

/// The last letter of the control block's name among the names that loaders look at.
fn control_name(subject: &Subject) -> Vec<Harm> {
    let object = subject.object();
    let section = object.elf().section(".dynstr").expect("names");
    let range = section.offset as usize..(section.offset + section.size) as usize;
    let name = CONTROL_SYMBOL.as_bytes();
    let at = subject.rewritten[range.clone()]
        .windows(name.len())
        .position(|window| window == name)
        .expect("the control block's");
    raw(subject, (range.start + at + name.len() - 1) as u64, 1)
}

fn table_of(elf: &Elf<'_>, kind: SectionType) -> u64 {
    elf.sections.iter().find(|section| section.kind == kind).expect("a symbol table").offset
}

/// The last original symbol of a table, damaged at an offset in its entry.
fn symbol(subject: &Subject, kind: SectionType, offset: u64) -> Vec<Harm> {
    let object = subject.object();
    let symbols =
        if kind == SHT_SYMTAB { object.elf().symbols() } else { object.elf().dynamic_symbols() }.expect("symbols");
    let name = &subject.map.kernels[0].name;
    let index = symbols.iter().position(|symbol| symbol.name == name).expect("the kernel's symbol") as u64;
    let at = table_of(object.elf(), kind) + index * SYMBOL + offset;
    // A binding is in the high half of its byte.
    raw(subject, at, if offset == 4 { 0x30 } else { 1 })
}

/// Where the entry of the control block's symbol is.
fn control_at(subject: &Subject, kind: SectionType) -> u64 {
    let object = subject.object();
    let symbols =
        if kind == SHT_SYMTAB { object.elf().symbols() } else { object.elf().dynamic_symbols() }.expect("symbols");
    let index = symbols.iter().position(|symbol| symbol.name == CONTROL_SYMBOL).expect("there") as u64;
    table_of(object.elf(), kind) + index * SYMBOL
}

fn control_entry(subject: &Subject, kind: SectionType, offset: u64, bits: u8) -> Vec<Harm> {
    raw(subject, control_at(subject, kind) + offset, bits)
}

fn control_undefined(subject: &Subject) -> Vec<Harm> {
    let at = control_at(subject, SHT_DYNSYM) as usize + 6;
    let mut bytes = subject.rewritten.clone();
    bytes[at..at + 2].fill(0);
    harm(bytes)
}

fn control(subject: &Subject, offset: u64) -> Vec<Harm> {
    let object = subject.object();
    let symbols = object.elf().symbols().expect("symbols");
    let address = symbols.iter().find(|symbol| symbol.name == CONTROL_SYMBOL).expect("there").address;
    at(subject, Some(address + offset))
}

/// Eight bytes of a section become 0.
fn blank(subject: &Subject, name: &str, offset: u64) -> Vec<Harm> {
    let Some(at) = subject.object().elf().section(name).map(|section| (section.offset + offset) as usize) else {
        return Vec::new();
    };
    let mut bytes = subject.rewritten.clone();
    bytes[at..at + 8].fill(0);
    harm(bytes)
}

/// A value of the dynamic table becomes another.
fn dynamic_value(subject: &Subject, tag: DynamicTag, change: impl Fn(u64) -> u64) -> Vec<Harm> {
    let object = subject.object();
    let Some(entry) = object.elf().dynamic().expect("readable").into_iter().find(|entry| entry.tag == tag) else {
        return Vec::new();
    };
    let (at, value) = (entry.file_offset as usize + 8, change(entry.value));
    let mut bytes = subject.rewritten.clone();
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    if value == entry.value { Vec::new() } else { harm(bytes) }
}

/// A value of the dynamic table is what it was.
fn dynamic_stale(subject: &Subject, tag: DynamicTag) -> Vec<Harm> {
    let original = CodeObject::parse(&subject.original).expect("an object");
    let old = original.elf().dynamic_value(tag).expect("readable");
    dynamic_value(subject, tag, |now| old.unwrap_or(now))
}

/// A section's 32-bit words, with a change.
fn words(subject: &Subject, name: &str, change: impl Fn(&mut [u32])) -> Vec<Harm> {
    let object = subject.object();
    let Some(section) = object.elf().section(name) else { return Vec::new() };
    let range = section.offset as usize..(section.offset + section.size) as usize;
    let mut all: Vec<u32> = subject.rewritten[range.clone()]
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("four")))
        .collect();
    change(&mut all);
    let mut bytes = subject.rewritten.clone();
    for (place, word) in bytes[range].chunks_exact_mut(4).zip(all) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    harm(bytes)
}

/// The first bucket of `.hash` that leads to a symbol leads to none.
fn empty_bucket(subject: &Subject) -> Vec<Harm> {
    words(subject, ".hash", |table| {
        let buckets = table[0] as usize;
        *table[2..2 + buckets].iter_mut().find(|bucket| **bucket != 0).expect("a bucket") = 0;
    })
}

/// The first chain of `.hash` that goes on ends.
fn short_chain(subject: &Subject) -> Vec<Harm> {
    words(subject, ".hash", |table| {
        let buckets = table[0] as usize;
        *table[2 + buckets..].iter_mut().find(|next| **next != 0).expect("a chain") = 0;
    })
}

/// The last symbol's hash in `.gnu.hash`, all bits but that which ends the chain.
fn gnu_value(subject: &Subject) -> Vec<Harm> {
    words(subject, ".gnu.hash", |table| *table.last_mut().expect("a value") ^= 0x10)
}

/// The site table, changed. What nobody checks is left out, so that it fits where it was.
pub fn table(subject: &Subject, change: impl Fn(&mut ObjectMap)) -> Vec<Harm> {
    let mut map = subject.map.clone();
    for kernel in &mut map.kernels {
        kernel.demangled.clear();
        kernel.sites.iter_mut().for_each(|site| site.instruction.clear());
    }
    if map.kernels[0].sites.len() < 2 {
        return Vec::new();
    }
    change(&mut map);
    let packed = map.pack().expect("packs");
    let object = subject.object();
    let section = object.elf().section(MAP_SECTION).expect("a table");
    assert!(packed.len() as u64 <= section.size, "{}: the damaged table does not fit", subject.name);
    let mut bytes = subject.rewritten.clone();
    bytes[section.offset as usize..section.offset as usize + packed.len()].copy_from_slice(&packed);
    harm(bytes)
}

fn exchange(map: &mut ObjectMap) {
    let addresses = &mut map.kernels[0].addresses;
    let second = addresses[2].rewritten;
    addresses[2].rewritten = std::mem::replace(&mut addresses[1].rewritten, second);
}
