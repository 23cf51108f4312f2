//! Symbol and hash tables as loaders look names up in them: the dynamic entries lead to the tables, and every symbol is
//! found through both hashes.

use crate::finding::{Finding, Rule};
use wavetap_object::elf::constants::{
    DT_GNU_HASH, DT_HASH, DT_STRSZ, DT_STRTAB, DT_SYMTAB, DynamicTag, SHT_DYNSYM, gnu_hash as gnu, hash as sysv,
};
use wavetap_object::elf::{Elf, Symbol};

/// A table of 32-bit words.
struct Words<'d>(&'d [u8]);

impl Words<'_> {
    fn get(&self, index: usize) -> Option<u32> {
        let bytes = self.0.get(index.checked_mul(4)?..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes))
    }
}

/// Checks the dynamic symbol table of a rewritten object.
pub(crate) fn check(new: &Elf<'_>, findings: &mut Vec<Finding>) {
    let mut complain = |message: String| findings.push(Finding::new(Rule::Symbols, message));
    let Some(table) = new.sections.iter().find(|section| section.kind == SHT_DYNSYM) else { return };
    let Ok(symbols) = new.dynamic_symbols() else { return complain(".dynsym cannot be read".to_owned()) };
    let value = |tag: DynamicTag| new.dynamic_value(tag).ok().flatten();
    let strings = new.sections.get(table.link as usize);
    let expected = [
        (DT_SYMTAB, "DT_SYMTAB", Some(table.address)),
        (DT_STRTAB, "DT_STRTAB", strings.map(|section| section.address)),
        (DT_STRSZ, "DT_STRSZ", strings.map(|section| section.size)),
        (DT_HASH, "DT_HASH", new.section(".hash").map(|section| section.address)),
        (DT_GNU_HASH, "DT_GNU_HASH", new.section(".gnu.hash").map(|section| section.address)),
    ];
    for (tag, name, expected) in expected {
        if expected.is_some() && value(tag) != expected {
            complain(format!("{name} is not where the section header says"));
        }
    }
    for (section, find) in
        [(".hash", find_sysv as fn(&Words<'_>, &[Symbol<'_>], &str) -> Option<usize>), (".gnu.hash", find_gnu)]
    {
        let Some(contents) = new.section(section).and_then(|section| new.contents(section).ok()) else { continue };
        let missing = symbols.iter().skip(1).filter(|symbol| symbol.is_defined() && !symbol.name.is_empty());
        let missing: Vec<&str> =
            missing.map(|symbol| symbol.name).filter(|name| find(&Words(contents), &symbols, name).is_none()).collect();
        if let Some(first) = missing.first() {
            complain(format!("{} symbols are not found through {section}, {first:?} among them", missing.len()));
        }
    }
}

/// `.hash` (System V ABI, "Hash Table").
fn find_sysv(table: &Words<'_>, symbols: &[Symbol<'_>], name: &str) -> Option<usize> {
    let (buckets, chains) = (table.get(0)? as usize, table.get(1)? as usize);
    let mut index = table.get(2 + (sysv(name.as_bytes()) as usize).checked_rem(buckets)?)? as usize;
    // A chain is never longer than the table.
    for _ in 0..chains {
        if index == 0 || symbols.get(index)?.name == name {
            break;
        }
        index = table.get(2 + buckets + index)? as usize;
    }
    (index != 0 && symbols.get(index)?.name == name).then_some(index)
}

/// `.gnu.hash`: Bloom filter, buckets, chains that end with an odd hash.
fn find_gnu(table: &Words<'_>, symbols: &[Symbol<'_>], name: &str) -> Option<usize> {
    let [buckets, first, bloom, shift] = [0, 1, 2, 3].map(|index| table.get(index));
    let (buckets, first, bloom, shift) = (buckets? as usize, first? as usize, bloom? as usize, shift?);
    let hash = gnu(name.as_bytes());
    let word = 4 + 2 * (hash as usize / 64).checked_rem(bloom)?;
    let filter = u64::from(table.get(word)?) | u64::from(table.get(word + 1)?) << 32;
    if filter >> (hash % 64) & filter >> (hash.checked_shr(shift)? % 64) & 1 == 0 {
        return None;
    }
    let start = 4 + 2 * bloom;
    let mut index = table.get(start + (hash as usize).checked_rem(buckets)?)? as usize;
    while index >= first && index != 0 {
        let chained = table.get(start + buckets + index - first)?;
        if chained | 1 == hash | 1 && symbols.get(index)?.name == name {
            return Some(index);
        }
        if chained & 1 != 0 {
            return None;
        }
        index += 1;
    }
    None
}
