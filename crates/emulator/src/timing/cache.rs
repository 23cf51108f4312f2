//! A set-associative cache with least recently used replacement. It has which lines there are and when they arrive, not
//! what is in them.
//!
//! A line is in the cache from the moment of its miss, with the cycle at which its data arrive: a second access before
//! then is a hit that waits. Recency is a count of uses, not of cycles. A set is allocated at its first use, and an
//! empty way has the use 0, so that it is replaced before any line. Replacing a line that was written returns it, for
//! the cache to write back.

/// A line.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// One more than its number; 0 where there is none.
    tag: u64,
    /// When its data are there.
    ready: u64,
    used: u64,
    dirty: bool,
}

/// A cache.
#[derive(Debug)]
pub(crate) struct Cache {
    /// By set; one that was never used has none.
    sets: Vec<Box<[Entry]>>,
    ways: usize,
    spread: Spread,
    uses: u64,
    /// Cycles before the present dispatch, which the cycles of entries include.
    before: u64,
}

/// Which set a line is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// That of the lowest bits of its number.
    Lowest,
    /// That of the lowest bits of its number, exclusive or a hash of the others: lines in a row fill all sets alike,
    /// and lines at a stride do not share one set.
    Folded,
    /// By a hash of its number.
    Mixed,
}

/// The bits of a number, mixed (Fibonacci hashing).
pub(crate) fn mixed(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

/// The set of a line, of a power of two.
fn folded(line: u64, sets: u64) -> u64 {
    (line ^ mixed(line / sets) as u64) & (sets - 1)
}

impl Cache {
    pub(crate) fn new(bytes: u64, line: u64, ways: u64, spread: Spread) -> Cache {
        let lines = (bytes / line.max(1)).max(1);
        let ways = ways.clamp(1, lines);
        let sets = (lines / ways).max(1) as usize;
        Cache { sets: vec![Box::default(); sets], ways: ways as usize, spread, uses: 0, before: 0 }
    }

    fn set(&mut self, line: u64) -> &mut Box<[Entry]> {
        let count = self.sets.len();
        let at = match self.spread {
            Spread::Mixed => mixed(line) % count,
            Spread::Folded if count.is_power_of_two() => folded(line, count as u64) as usize,
            Spread::Folded | Spread::Lowest => (line % count as u64) as usize,
        };
        &mut self.sets[at]
    }

    /// When the data of a line are there, if it has the line; that is now its last use.
    pub(crate) fn find(&mut self, line: u64, write: bool) -> Option<u64> {
        self.uses += 1;
        let (uses, before) = (self.uses, self.before);
        let entry = self.set(line).iter_mut().find(|entry| entry.tag == line + 1)?;
        entry.used = uses;
        entry.dirty |= write;
        Some(entry.ready.saturating_sub(before))
    }

    /// Takes a line in; returns the changed one that had to leave, if one had to.
    pub(crate) fn insert(&mut self, line: u64, ready: u64, dirty: bool) -> Option<u64> {
        self.uses += 1;
        let (uses, ways, ready) = (self.uses, self.ways, ready + self.before);
        let set = self.set(line);
        if set.is_empty() {
            *set = vec![Entry::default(); ways].into();
        }
        let mut oldest = 0;
        for way in 1..set.len() {
            if set[way].used < set[oldest].used {
                oldest = way;
            }
        }
        let left = std::mem::replace(&mut set[oldest], Entry { tag: line + 1, ready, used: uses, dirty });
        (left.tag != 0 && left.dirty).then(|| left.tag - 1)
    }

    /// How many of its lines were written.
    pub(crate) fn changed(&self) -> u64 {
        self.sets.iter().flatten().filter(|entry| entry.tag != 0 && entry.dirty).count() as u64
    }

    /// A dispatch has ended at this cycle: the next one begins to count at 0.
    pub(crate) fn ended(&mut self, at: u64) {
        self.before += at;
    }

    /// The lines that were written, which are now as they were: they have been written back.
    pub(crate) fn write_back(&mut self) -> Vec<u64> {
        let mut lines = Vec::new();
        for entry in self.sets.iter_mut().flat_map(|set| set.iter_mut()) {
            if entry.tag != 0 && std::mem::take(&mut entry.dirty) {
                lines.push(entry.tag - 1);
            }
        }
        lines
    }

    /// Forgets a line: another cache has written it.
    pub(crate) fn forget(&mut self, line: u64) {
        if let Some(entry) = self.set(line).iter_mut().find(|entry| entry.tag == line + 1) {
            *entry = Entry::default();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.sets.iter_mut().for_each(|set| set.fill(Entry::default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_leaves() {
        let mut cache = Cache::new(256, 64, 2, Spread::Lowest);
        assert_eq!(cache.find(0, false), None);
        cache.insert(0, 5, false);
        cache.insert(2, 6, true);
        assert_eq!((cache.find(0, false), cache.find(2, false)), (Some(5), Some(6)));
        cache.find(0, false);
        assert_eq!(cache.insert(4, 7, false), Some(2), "line 2 was changed, and had to leave");
        assert_eq!((cache.find(0, false), cache.find(2, false), cache.find(4, false)), (Some(5), None, Some(7)));
        cache.insert(1, 8, false);
        assert_eq!(cache.find(0, false), Some(5), "line 1 is in the other set");
        cache.clear();
        assert_eq!(cache.find(0, false), None);
    }

    #[test]
    fn capacity_is_that_of_all_lines() {
        for spread in [Spread::Lowest, Spread::Folded, Spread::Mixed] {
            let mut cache = Cache::new(1 << 14, 64, 64, spread);
            (0..256).for_each(|line| {
                cache.insert(line, 0, false);
            });
            let kept = (0..256).filter(|line| cache.find(*line, false).is_some()).count();
            assert!(kept == 256 || spread == Spread::Mixed && kept > 200, "{kept}");
            (256..512).for_each(|line| {
                cache.insert(line, 0, false);
            });
            assert!((0..256).filter(|line| cache.find(*line, false).is_some()).count() < 60);
        }
    }

    #[test]
    fn lines_at_a_stride_use_all_folded_sets() {
        for stride in [1, 2, 4, 6, 8, 12, 64] {
            let mut cache = Cache::new(1 << 14, 64, 64, Spread::Folded);
            (0..192).for_each(|n| {
                cache.insert(n * stride, 0, false);
            });
            assert!((0..192).all(|n| cache.find(n * stride, false).is_some()), "{stride}");
        }
    }

    #[test]
    fn a_later_dispatch_finds_the_lines_of_the_one_before() {
        let mut cache = Cache::new(256, 64, 2, Spread::Lowest);
        cache.insert(0, 70, true);
        cache.insert(1, 90, false);
        assert_eq!(cache.write_back(), [0]);
        assert_eq!(cache.changed(), 0);
        cache.ended(80);
        assert_eq!((cache.find(0, false), cache.find(1, false)), (Some(0), Some(10)));
        cache.insert(2, 5, false);
        assert_eq!(cache.find(2, false), Some(5));
        cache.forget(2);
        assert_eq!(cache.find(2, false), None);
    }
}
