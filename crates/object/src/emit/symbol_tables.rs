//! Symbol tables with added symbols, and the hash tables over them.

use object::endian::{LittleEndian as LE, U16, U32, U64};
use object::pod;

use crate::elf::Symbol;
use crate::elf::constants::{GnuHashHeader, SHN_LORESERVE, Sym64, SymbolSection, gnu_hash, hash as sysv_hash};
use wavetap_base::error::{Error, Result};

/// A symbol table entry.
pub(super) type Entry = Sym64<LE>;

/// A symbol as a table entry.
pub(super) fn entry(symbol: &Symbol<'_>, name_offset: u32) -> Entry {
    Sym64 {
        st_name: U32::new(LE, name_offset),
        st_info: symbol.info,
        st_other: symbol.other,
        st_shndx: U16::new(LE, symbol.section),
        st_value: U64::new(LE, symbol.address),
        st_size: U64::new(LE, symbol.size),
    }
}

/// The entries of an existing symbol table.
pub(super) fn entries(table: &[u8]) -> Result<Vec<Entry>> {
    let entries =
        pod::slice_from_all_bytes(table).map_err(|()| Error::malformed("a symbol table ends within a symbol"))?;
    Ok(entries.to_vec())
}

/// The number of a section, to be entered in a symbol.
pub(super) fn section_number(index: usize) -> Result<SymbolSection> {
    let number = u16::try_from(index).ok().filter(|&number| number < SHN_LORESERVE);
    number.map(SymbolSection).ok_or_else(|| Error::limit(format!("{index} sections")))
}

/// Adds `by` to every section index from `first` on.
pub(super) fn renumber(table: &mut [Entry], first: usize, by: usize) -> Result<()> {
    for entry in table {
        if let Some(index) = entry.st_shndx.get(LE).index().map(usize::from).filter(|&index| index >= first) {
            entry.st_shndx.set(LE, section_number(index + by)?);
        }
    }
    Ok(())
}

/// A `.hash` section over all symbols, the null symbol included.
pub(super) fn sysv_table(names: &[&str]) -> Vec<u8> {
    let count = names.len();
    let mut buckets = vec![0u32; count.max(1)];
    let mut chains = vec![0u32; count];
    for (index, name) in names.iter().enumerate().skip(1) {
        let bucket = sysv_hash(name.as_bytes()) as usize % buckets.len();
        chains[index] = std::mem::replace(&mut buckets[bucket], index as u32);
    }
    let words = [buckets.len() as u32, count as u32].into_iter().chain(buckets).chain(chains);
    words.flat_map(u32::to_le_bytes).collect()
}

/// A `.gnu.hash` section over the symbols from `first` on. It has one bucket, so that the symbols may stay in any
/// order.
pub(super) fn gnu_table(names: &[&str], first: u32) -> Vec<u8> {
    /// Second bit of the Bloom filter: the hash shifted by this.
    const SHIFT: u32 = 6;
    let hashes: Vec<u32> = names.iter().skip(first as usize).map(|name| gnu_hash(name.as_bytes())).collect();
    let words = (hashes.len() / 8).next_power_of_two();
    let mut bloom = vec![0u64; words];
    for hash in &hashes {
        bloom[(hash / 64) as usize % words] |= 1 << (hash % 64) | 1 << ((hash >> SHIFT) % 64);
    }
    let mut out = Vec::new();
    for word in [1, first, words as u32, SHIFT] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend(bloom.into_iter().flat_map(u64::to_le_bytes));
    out.extend_from_slice(&(if hashes.is_empty() { 0 } else { first }).to_le_bytes());
    for (index, hash) in hashes.iter().enumerate() {
        // The lowest bit marks the chain's end.
        let last = u32::from(index + 1 == hashes.len());
        out.extend_from_slice(&(hash & !1 | last).to_le_bytes());
    }
    out
}

/// The index of the first symbol that an existing `.gnu.hash` covers.
pub(super) fn gnu_first(table: &[u8]) -> Result<u32> {
    let header =
        pod::from_bytes::<GnuHashHeader<LE>>(table).map_err(|()| Error::malformed(".gnu.hash ends in its header"))?;
    Ok(header.0.symbol_base.get(LE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks a name up as a dynamic linker does.
    fn find_gnu(table: &[u8], names: &[&str], name: &str) -> Option<usize> {
        let word = |index: usize| u32::from_le_bytes(table[index * 4..index * 4 + 4].try_into().expect("four bytes"));
        let (buckets, first, bloom, shift) = (word(0), word(1), word(2), word(3));
        let hash = gnu_hash(name.as_bytes());
        let at = 16 + (hash as usize / 64 % bloom as usize) * 8;
        let filter = u64::from_le_bytes(table[at..at + 8].try_into().expect("eight bytes"));
        if filter >> (hash % 64) & filter >> ((hash >> shift) % 64) & 1 == 0 {
            return None;
        }
        let bucket_words = 4 + bloom as usize * 2;
        let mut index = word(bucket_words + (hash % buckets) as usize);
        while index != 0 {
            let chained = word(bucket_words + buckets as usize + (index - first) as usize);
            if chained | 1 == hash | 1 && names[index as usize] == name {
                return Some(index as usize);
            }
            index = if chained & 1 == 0 { index + 1 } else { 0 };
        }
        None
    }

    fn find_sysv(table: &[u8], names: &[&str], name: &str) -> Option<usize> {
        let word = |index: usize| u32::from_le_bytes(table[index * 4..index * 4 + 4].try_into().expect("four bytes"));
        let buckets = word(0) as usize;
        let mut index = word(2 + sysv_hash(name.as_bytes()) as usize % buckets) as usize;
        while index != 0 {
            if names[index] == name {
                return Some(index);
            }
            index = word(2 + buckets + index) as usize;
        }
        None
    }

    #[test]
    fn every_symbol_is_found_and_no_other() {
        for count in [1, 2, 3, 20, 300] {
            let names: Vec<String> = (0..count)
                .map(|index| if index == 0 { String::new() } else { format!("_Z{index}kernelPf.kd") })
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (gnu, sysv) = (gnu_table(&names, 1), sysv_table(&names));
            for (index, name) in names.iter().enumerate().skip(1) {
                assert_eq!(find_gnu(&gnu, &names, name), Some(index));
                assert_eq!(find_sysv(&sysv, &names, name), Some(index));
            }
            assert_eq!((find_gnu(&gnu, &names, "absent"), find_sysv(&sysv, &names, "absent")), (None, None));
        }
    }
}
