//! The device ELF around the code: image, segments, symbols, relocations, control block, site table.

use std::ops::Range;

use super::{image, tables};
use crate::finding::{Finding, Rule};
use wavetap_object::code_object::{CONTROL_SYMBOL, CodeObject, DESCRIPTOR_SIZE, digest};
use wavetap_object::elf::constants::{
    DT_GNU_HASH, DT_HASH, DT_STRSZ, DT_STRTAB, DT_SYMTAB, DynamicTag, RelocationType, SHN_ABS, SHT_DYNSYM, SHT_NOTE,
    SHT_SYMTAB, STB_GLOBAL, SectionType,
};
use wavetap_object::elf::{Elf, Relocation};
use wavetap_profile::control::{self, Control};
use wavetap_profile::map::{KernelMap, ObjectMap};
use wavetap_profile::record::{COUNTER, HEADER};

/// Dynamic table entries that say where the symbol tables are, how long they are and where they are hashed (ELF,
/// `DT_*`).
const TABLE_TAGS: [DynamicTag; 5] = [DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_GNU_HASH];
/// Size of the tag before a dynamic entry's value.
const TAG_SIZE: u64 = 8;
/// Size of a dynamic entry's value.
const VALUE_SIZE: u64 = 8;
/// Sections that the symbol and hash tables may leave behind.
const TABLE_SECTIONS: [&str; 4] = [".dynsym", ".dynstr", ".hash", ".gnu.hash"];

/// Checks everything but the kernels; gives the site table if it can be read.
pub(crate) fn check(
    original: &CodeObject<'_>,
    rewritten: &CodeObject<'_>,
    findings: &mut Vec<Finding>,
) -> Option<ObjectMap> {
    let (old, new) = (original.elf(), rewritten.elf());
    image::bytes_stay(old, new, &may_change(original, rewritten), Rule::OriginalByte, findings);
    image::segments(old, new, findings);
    image::section_headers(new, findings);
    let header = |elf: &Elf<'_>| {
        (elf.header.os_abi, elf.header.abi_version, elf.header.kind, elf.header.machine, elf.header.flags)
    };
    if header(old) != header(new) {
        findings.push(Finding::new(Rule::Segments, "the ELF header names another target or version"));
    }
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        image::symbols(old, new, kind, findings);
        control_symbol(new, kind, findings);
    }
    tables::check(new, findings);
    relocations(original, rewritten, findings);
    let map = site_table(original, rewritten, findings);
    if let Some(map) = &map {
        stride(new, map, findings);
    }
    map
}

/// Every record has room for all counters of its kernel, and the kernel's control block says so.
fn stride(new: &Elf<'_>, map: &ObjectMap, findings: &mut Vec<Finding>) {
    let symbols = image::read(new, SHT_SYMTAB).unwrap_or_default();
    let blocks = symbols
        .iter()
        .find(|symbol| symbol.name == CONTROL_SYMBOL)
        .and_then(|symbol| new.bytes_at(symbol.address, symbol.size).ok())
        .unwrap_or_default();
    for (kernel, block) in map.kernels.iter().zip(blocks.chunks(control::SIZE as usize)) {
        let said = Control::from_bytes(block).ok().map(|block| block.stride);
        if said.is_some_and(|said| said != map.stride) {
            let message = format!("records have up to {} bytes, the control block says {said:?}", map.stride);
            findings.push(Finding::new(Rule::Map, message).in_kernel(&kernel.name));
        }
    }
    let count = blocks.len() / control::SIZE as usize;
    if count < map.kernels.len() {
        let message = format!("{count} control blocks of {} kernels", map.kernels.len());
        findings.push(Finding::new(Rule::Map, message));
    }
    for kernel in &map.kernels {
        records(kernel, map.stride, findings);
    }
}

/// Records of so many bytes have room for all counters of a kernel.
pub(crate) fn records(kernel: &KernelMap, stride: u32, findings: &mut Vec<Finding>) {
    if kernel.placement.is_none() && kernel.record_bytes() > stride {
        let message = format!("its records have {} bytes, the largest {stride}", kernel.record_bytes());
        findings.push(Finding::new(Rule::Map, message).in_kernel(&kernel.name));
    }
    let end = |site: &wavetap_profile::map::Site| u64::from(site.offset) + u64::from(site.kind.counters() * COUNTER);
    // What placed counters are solved to has room for just those of the sites.
    let room = match &kernel.placement {
        Some(placement) => u64::from(HEADER) + placement.counters.len() as u64 * u64::from(COUNTER),
        None => kernel.record_bytes().into(),
    };
    if kernel.sites.iter().map(end).max().unwrap_or(0) > room {
        findings.push(Finding::new(Rule::Map, "counters are after the end of a record").in_kernel(&kernel.name));
    }
}

/// File ranges of the original whose loaded bytes may differ (contract C1).
fn may_change(original: &CodeObject<'_>, rewritten: &CodeObject<'_>) -> Vec<Range<u64>> {
    let elf = original.elf();
    let mut ranges = Vec::new();
    for kernel in original.kernels() {
        // Which bits may change is checked kernel by kernel.
        if rewritten.kernel(&kernel.name).is_some_and(|new| new.descriptor != kernel.descriptor) {
            ranges.push(kernel.descriptor_offset..kernel.descriptor_offset + DESCRIPTOR_SIZE);
        }
    }
    for entry in elf.dynamic().unwrap_or_default() {
        if TABLE_TAGS.contains(&entry.tag) {
            ranges.push(entry.file_offset + TAG_SIZE..entry.file_offset + TAG_SIZE + VALUE_SIZE);
        }
    }
    for section in &elf.sections {
        if section.kind == SHT_NOTE || TABLE_SECTIONS.contains(&section.name) {
            ranges.push(section.offset..section.offset.saturating_add(section.size));
        }
    }
    ranges
}

/// The control blocks' symbol is one that loaders export, in a writable segment, and its blocks count nothing until a
/// host sets them up.
fn control_symbol(new: &Elf<'_>, kind: SectionType, findings: &mut Vec<Finding>) {
    let table = if kind == SHT_SYMTAB { ".symtab" } else { ".dynsym" };
    let mut complain =
        |message: String| findings.push(Finding::new(Rule::Symbols, format!("{CONTROL_SYMBOL} in {table}: {message}")));
    let Some(symbols) = image::read(new, kind) else { return complain("no such table".to_owned()) };
    let found: Vec<_> = symbols.iter().filter(|symbol| symbol.name == CONTROL_SYMBOL).collect();
    let [symbol] = found.as_slice() else { return complain(format!("{} of them, 1 expected", found.len())) };
    if !symbol.is_object() || symbol.info.st_bind() != STB_GLOBAL || !symbol.is_defined() || symbol.section == SHN_ABS {
        complain("loaders see only global objects in a section".to_owned());
    }
    if symbol.size < control::SIZE || !symbol.size.is_multiple_of(control::SIZE) {
        return complain(format!("{} bytes, blocks of {} expected", symbol.size, control::SIZE));
    }
    let end = symbol.address.saturating_add(symbol.size);
    let writable = new.loads().any(|load| load.is_writable() && load.address <= symbol.address && end <= load.end());
    let Ok(blocks) = new.bytes_at(symbol.address, symbol.size) else {
        return complain("its bytes are not in the file".to_owned());
    };
    for block in blocks.chunks(control::SIZE as usize) {
        match Control::from_bytes(block) {
            Ok(block) if !writable || block != (Control { stride: block.stride, ..Control::default() }) => {
                return complain("a block is not writable or not in its initial state".to_owned());
            }
            Ok(_) => {}
            Err(error) => return complain(error.to_string()),
        }
    }
}

/// The loader applies the same relocations as before.
fn relocations(original: &CodeObject<'_>, rewritten: &CodeObject<'_>, findings: &mut Vec<Finding>) {
    fn named<'o>(object: &'o CodeObject<'_>, relocation: &Relocation) -> (u64, RelocationType, i64, &'o str) {
        let symbol = object.dynamic_symbols().get(relocation.symbol as usize).map_or("", |symbol| symbol.name);
        (relocation.address, relocation.kind, relocation.addend, symbol)
    }
    let list = |object| -> Vec<(u64, RelocationType, i64, String)> {
        let object: &CodeObject<'_> = object;
        let mut list: Vec<_> = object
            .relocations()
            .iter()
            .map(|each| named(object, each))
            .map(|(a, k, d, s)| (a, k, d, s.to_owned()))
            .collect();
        list.sort();
        list
    };
    if list(original) != list(rewritten) {
        findings.push(Finding::new(Rule::Symbols, "the loader's relocations changed"));
    }
}

/// The site table inside the object names this original.
fn site_table(original: &CodeObject<'_>, rewritten: &CodeObject<'_>, findings: &mut Vec<Finding>) -> Option<ObjectMap> {
    let mut complain = |message: String| findings.push(Finding::new(Rule::Map, message));
    let elf = rewritten.elf();
    let Some(section) = elf.section(control::MAP_SECTION) else {
        complain(format!("there is no section {}", control::MAP_SECTION));
        return None;
    };
    match elf.contents(section).and_then(ObjectMap::unpack) {
        Ok(map) => {
            let digest = digest(original.data());
            if map.original != digest {
                complain(format!("it was made from an object with MD5 {}, this one has {digest}", map.original));
            }
            // A bundle may name features otherwise than the object.
            if Some(map.target.split(':').next().unwrap_or_default()) != original.processor() {
                complain(format!("it is of {}, the object of {}", map.target, original.target_id()));
            }
            Some(map)
        }
        Err(error) => {
            complain(error.to_string());
            None
        }
    }
}
