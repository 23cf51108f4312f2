//! The arrays that accesses are of: allocations in global memory, and parts of LDS that no instruction shares.
//!
//! Parts of LDS are the classes of a union-find structure over instructions: two instructions that access a word in
//! common, in whichever workgroup, are in one class. The result does not depend on the order of the records. A part is
//! the span from its first to its last byte, so the spans of two parts may overlap, their words do not.

use std::collections::HashMap;

use crate::accesses::Space;
use crate::recorded::{Recorded, RecordedKernel};

/// Bytes of a word.
pub(crate) const WORD: u64 = 4;

/// An array of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Array {
    /// An allocation, by its index in [`RecordedKernel::allocations`].
    Allocation(usize),
    /// Global memory that is in no allocation that is known.
    Elsewhere,
    /// A part of LDS, by its index in [`Arrays::lds`].
    Lds(usize),
}

/// Bytes of LDS, from the first to the one after the last. Others may lie between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LdsPart {
    /// The first byte.
    pub begin: u64,
    /// After the last byte.
    pub end: u64,
}

/// Which array each address is of.
///
/// LDS has no allocations that are known when a kernel runs. Two instructions that access a word in common access the
/// same part; so parts are apart where no instruction accesses both.
#[derive(Debug)]
pub struct Arrays<'k> {
    kernel: &'k RecordedKernel,
    parts: HashMap<u64, usize>,
    lds: Vec<LdsPart>,
}

impl<'k> Arrays<'k> {
    /// Finds the arrays of the accesses that were recorded of a kernel.
    #[must_use]
    pub fn of(kernel: &'k RecordedKernel) -> Arrays<'k> {
        let mut sites = Sites::default();
        let mut words: HashMap<u64, usize> = HashMap::new();
        let mut spans: Vec<LdsPart> = Vec::new();
        for record in kernel.records.iter().filter(|record| record.space == Space::Lds) {
            let site = sites.number(record.address);
            spans.resize(sites.parents.len(), LdsPart { begin: u64::MAX, end: 0 });
            for address in &record.addresses {
                let end = address.saturating_add(record.bytes.max(1).into());
                let span = &mut spans[site];
                (span.begin, span.end) = (span.begin.min(*address), span.end.max(end));
                for word in address / WORD..=(end - 1) / WORD {
                    let other = *words.entry(word).or_insert(site);
                    sites.join(site, other);
                }
            }
        }
        let (mut parts, mut lds): (HashMap<u64, usize>, Vec<LdsPart>) = (HashMap::new(), Vec::new());
        let mut of_root: HashMap<usize, usize> = HashMap::new();
        let mut by_begin: Vec<(u64, usize)> = sites.numbers.iter().map(|(address, site)| (*address, *site)).collect();
        by_begin.sort_by_key(|(address, site)| (spans[*site].begin, *address));
        for (address, site) in by_begin {
            let span = spans[site];
            let part = *of_root.entry(sites.root(site)).or_insert(lds.len());
            match lds.get_mut(part) {
                Some(whole) => *whole = LdsPart { begin: whole.begin.min(span.begin), end: whole.end.max(span.end) },
                None => lds.push(span),
            }
            parts.insert(address, part);
        }
        Arrays { kernel, parts, lds }
    }

    /// The parts of LDS, by rising first byte.
    #[must_use]
    pub fn lds(&self) -> &[LdsPart] {
        &self.lds
    }

    /// The array of a lane's address of a record; none in scratch.
    #[must_use]
    pub fn of_address(&self, record: &Recorded, address: u64) -> Option<Array> {
        match record.space {
            Space::Lds => self.parts.get(&record.address).map(|part| Array::Lds(*part)),
            Space::Scratch => None,
            _ => Some(self.kernel.allocation_of(address).map_or(Array::Elsewhere, Array::Allocation)),
        }
    }

    /// Bytes of an array; none if that is not known.
    #[must_use]
    pub fn bytes(&self, array: Array) -> Option<u64> {
        match array {
            Array::Allocation(index) => self.kernel.allocations.get(index).map(|allocation| allocation.size),
            Array::Lds(part) => self.lds.get(part).map(|part| part.end - part.begin),
            Array::Elsewhere => None,
        }
    }

    /// Where an array begins; 0 if that is not known.
    #[must_use]
    pub fn begin(&self, array: Array) -> u64 {
        match array {
            Array::Allocation(index) => self.kernel.allocations.get(index).map_or(0, |allocation| allocation.base),
            Array::Lds(part) => self.lds.get(part).map_or(0, |part| part.begin),
            Array::Elsewhere => 0,
        }
    }
}

/// Instructions in sets that share words.
#[derive(Default)]
struct Sites {
    numbers: HashMap<u64, usize>,
    parents: Vec<usize>,
}

impl Sites {
    fn number(&mut self, address: u64) -> usize {
        let next = self.parents.len();
        let number = *self.numbers.entry(address).or_insert(next);
        if number == next {
            self.parents.push(next);
        }
        number
    }

    fn root(&mut self, mut site: usize) -> usize {
        while self.parents[site] != site {
            self.parents[site] = self.parents[self.parents[site]];
            site = self.parents[site];
        }
        site
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.parents[one.max(other)] = one.min(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::testing::{kernel, record};

    #[test]
    fn parts_of_lds_are_what_instructions_share() {
        let in_lds = |address, begin: u64| {
            let addresses = (0..64).map(|lane| begin + 4 * lane).collect();
            Recorded { space: Space::Lds, addresses, ..record(address, 4, u64::MAX, |_| 0) }
        };
        let kernel = kernel("gfx90a", vec![in_lds(0x10, 0x400), in_lds(0x20, 0), in_lds(0x30, 0x480)]);
        let arrays = Arrays::of(&kernel);
        assert_eq!(arrays.lds(), [LdsPart { begin: 0, end: 0x100 }, LdsPart { begin: 0x400, end: 0x580 }]);
        let of: Vec<Option<Array>> =
            kernel.records.iter().map(|record| arrays.of_address(record, record.addresses[0])).collect();
        assert_eq!(of, [1, 0, 1].map(|part| Some(Array::Lds(part))));
        assert_eq!((arrays.begin(Array::Lds(1)), arrays.bytes(Array::Lds(1))), (0x400, Some(0x180)));
    }
}
