//! Maps with few entries.

use smallvec::SmallVec;

/// A map with few entries, sorted by key: states are copied and compared at every block, and of a tree that costs an
/// allocation for each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SmallMap<K, V>(SmallVec<[(K, V); 6]>);

impl<K: Copy + Ord, V: Copy + Eq> SmallMap<K, V> {
    /// Nothing.
    pub(crate) fn new() -> Self {
        SmallMap(SmallVec::new())
    }

    /// Where a key is, or belongs.
    fn place(&self, key: K) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(&key))
    }

    /// Whether there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: K) -> Option<V> {
        self.place(key).ok().map(|place| self.0[place].1)
    }

    /// The keys, ascending.
    pub(crate) fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.0.iter().map(|(key, _)| *key)
    }

    /// Whether there is a key from `first` on, and below `end`.
    pub(crate) fn has_within(&self, first: K, end: K) -> bool {
        let (Some(lowest), Some(highest)) = (self.0.first(), self.0.last()) else { return false };
        lowest.0 < end && first <= highest.0 && self.0.iter().any(|(key, _)| first <= *key && *key < end)
    }

    /// Sets the value of a key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.place(key) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => self.0.insert(place, (key, value)),
        }
    }

    /// Takes a key away.
    pub(crate) fn remove(&mut self, key: K) {
        if let Ok(place) = self.place(key) {
            self.0.remove(place);
        }
    }

    /// Keeps the entries of which `keep` is true; tells whether that changed anything.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(K, V) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|(key, value)| keep(*key, *value));
        self.0.len() != before
    }

    /// Keeps the entries that the other one has as well; tells whether that changed anything.
    pub(crate) fn keep_common(&mut self, other: &Self) -> bool {
        !self.0.is_empty() && self.0 != other.0 && self.retain(|key, value| other.get(key) == Some(value))
    }

    /// Adds the entries of another one; tells whether that changed anything.
    pub(crate) fn add_all(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (key, value) in &other.0 {
            if self.get(*key) != Some(*value) {
                self.insert(*key, *value);
                changed = true;
            }
        }
        changed
    }

    /// The values, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// Takes all entries away.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K: Copy, V: Copy> Clone for SmallMap<K, V> {
    fn clone(&self) -> Self {
        SmallMap(SmallVec::from_slice(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use wavetap_analysis::kernel::random::Random;

    #[test]
    fn it_is_a_map() {
        let mut random = Random::new(7);
        let (mut few, mut model) = (SmallMap::new(), BTreeMap::new());
        let (mut other, mut other_model) = (SmallMap::new(), BTreeMap::new());
        for _ in 0..2000 {
            let (key, value) = (random.below(12), random.below(3));
            let (first, end) = (random.below(12), random.below(12));
            assert_eq!(few.get(key), model.get(&key).copied());
            assert_eq!(few.has_within(first, end), (first..end).any(|key| model.contains_key(&key)));
            match random.below(8) {
                0..=2 => {
                    few.insert(key, value);
                    model.insert(key, value);
                }
                3 => {
                    few.remove(key);
                    model.remove(&key);
                }
                4 => {
                    let before = model.len();
                    model.retain(|other, _| *other != key);
                    assert_eq!(few.retain(|other, _| other != key), model.len() != before);
                }
                5 => {
                    let before = model.clone();
                    model.retain(|key, value| other_model.get(key) == Some(value));
                    assert_eq!(few.keep_common(&other), model != before);
                }
                6 => {
                    let before = model.clone();
                    model.extend(&other_model);
                    assert_eq!(few.add_all(&other), model != before);
                }
                _ => {
                    other.insert(key, value);
                    other_model.insert(key, value);
                }
            }
            assert!(few.0.iter().copied().eq(model.iter().map(|(key, value)| (*key, *value))));
            assert_eq!(few.clone() == other, model == other_model);
            assert_eq!(few.is_empty(), model.is_empty());
        }
    }
}
