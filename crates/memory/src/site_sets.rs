//! Sets of instructions, each kept once: many words are accessed by the same ones.

use std::collections::HashMap;

/// A set of [`SiteSets`]; the default is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SetNumber(u32);

impl SetNumber {
    /// Its place among [`SiteSets::all`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Sets of addresses of instructions.
#[derive(Debug, Clone)]
pub struct SiteSets {
    /// Each by rising address.
    sets: Vec<Vec<u64>>,
    numbers: HashMap<Vec<u64>, SetNumber>,
    /// What a set is with one more address.
    with: HashMap<(SetNumber, u64), SetNumber>,
    /// What two sets are together.
    unions: HashMap<(SetNumber, SetNumber), SetNumber>,
}

impl Default for SiteSets {
    fn default() -> Self {
        let empty = HashMap::from([(Vec::new(), SetNumber::default())]);
        SiteSets { sets: vec![Vec::new()], numbers: empty, with: HashMap::new(), unions: HashMap::new() }
    }
}

/// The same sets with the same numbers, whichever questions were asked before.
impl PartialEq for SiteSets {
    fn eq(&self, other: &Self) -> bool {
        self.sets == other.sets
    }
}

impl Eq for SiteSets {}

impl SiteSets {
    /// All sets; the empty one is the first.
    #[must_use]
    pub fn all(&self) -> &[Vec<u64>] {
        &self.sets
    }

    /// The addresses of a set, by rising address; empty for a number of other sets.
    #[must_use]
    pub fn get(&self, set: SetNumber) -> &[u64] {
        self.sets.get(set.index()).map(Vec::as_slice).unwrap_or_default()
    }

    /// A set and one more address.
    pub fn with(&mut self, set: SetNumber, address: u64) -> SetNumber {
        if let Some(known) = self.with.get(&(set, address)) {
            return *known;
        }
        let mut addresses = self.get(set).to_vec();
        if let Err(place) = addresses.binary_search(&address) {
            addresses.insert(place, address);
        }
        let number = self.number(addresses);
        self.with.insert((set, address), number);
        number
    }

    /// Two sets together.
    pub fn union(&mut self, one: SetNumber, other: SetNumber) -> SetNumber {
        if one == other {
            return one;
        }
        if let Some(known) = self.unions.get(&(one, other)) {
            return *known;
        }
        let mut addresses = [self.get(one), self.get(other)].concat();
        addresses.sort_unstable();
        addresses.dedup();
        let number = self.number(addresses);
        self.unions.insert((one, other), number);
        number
    }

    fn number(&mut self, addresses: Vec<u64>) -> SetNumber {
        if let Some(known) = self.numbers.get(&addresses) {
            return *known;
        }
        let number = SetNumber(u32::try_from(self.sets.len()).unwrap_or(u32::MAX));
        self.sets.push(addresses.clone());
        self.numbers.insert(addresses, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_have_one_number() {
        let mut sets = SiteSets::default();
        let empty = SetNumber::default();
        let (one, two) = (sets.with(empty, 8), sets.with(empty, 4));
        let both = sets.with(one, 4);
        assert_eq!((sets.with(two, 8), sets.union(one, two), sets.union(both, empty)), (both, both, both));
        assert_eq!((sets.with(one, 8), sets.get(both), sets.get(empty)), (one, &[4, 8][..], &[][..]));
        assert_eq!(sets.all().len(), 4);
    }
}
