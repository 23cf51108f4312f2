//! What was found of values, as long as it holds.
//!
//! While a loop is looked at, something is assumed of what it begins with. Assumptions are nested: those of inner loops
//! are made after and dropped before those of the loops around them. A value rests on the assumptions that were used to
//! find it; it is remembered until the innermost of these is withdrawn. Once an assumption is confirmed, what rests on
//! it rests on those around it. Where a search ended for its depth, what was found holds for searches that begin no
//! less deep: from higher up more may be found.

use rustc_hash::FxHashMap;

use super::{LaneSum, LaneValue};
use crate::dataflow::ssa::SsaId;

/// What a remembered value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A write of the register at a position.
    Write(SsaId, u16),
    /// A merge, as some lanes see it.
    Merge(SsaId, u16, Option<SsaId>),
}

/// The assumptions that a value depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RestsOn {
    /// How many assumptions there are up to the innermost that was used; 0 if none was.
    assumptions: usize,
    /// Whether the search ended for its depth, or because too much was looked at.
    is_cut: bool,
}

#[derive(Debug)]
struct Found {
    value: LaneValue,
    rests_on: RestsOn,
    depth: u32,
}

#[derive(Debug)]
struct Assumption {
    of: (SsaId, u16),
    /// Values that rest on this one as the innermost.
    holds: Vec<Key>,
}

/// What was found, and what is assumed.
#[derive(Debug, Default)]
pub(super) struct Memo {
    found: FxHashMap<Key, Found>,
    assumptions: Vec<Assumption>,
    /// The place of each among the assumptions, from 1, and what is assumed.
    assumed: FxHashMap<(SsaId, u16), (usize, LaneSum)>,
    /// What the value that is being looked for rests on so far.
    rests_on: RestsOn,
}

impl Memo {
    fn rest_on(&mut self, more: RestsOn) {
        self.rests_on.assumptions = self.rests_on.assumptions.max(more.assumptions);
        self.rests_on.is_cut |= more.is_cut;
    }

    /// What was found, if that holds for a search of this depth.
    pub(super) fn get(&mut self, key: Key, depth: u32) -> Option<LaneValue> {
        let found = self.found.get(&key).filter(|found| !found.rests_on.is_cut || depth >= found.depth)?;
        let (value, rests_on) = (found.value.clone(), found.rests_on);
        self.rest_on(rests_on);
        Some(value)
    }

    /// What is assumed of a merge.
    pub(super) fn assumed(&mut self, def: SsaId, position: u16) -> Option<LaneSum> {
        let (place, assumed) = self.assumed.get(&(def, position))?;
        let (assumptions, assumed) = (*place, assumed.clone());
        self.rest_on(RestsOn { assumptions, is_cut: false });
        Some(assumed)
    }

    /// Begins to look for a value; returns what [`Memo::end`] needs.
    pub(super) fn begin(&mut self) -> RestsOn {
        std::mem::take(&mut self.rests_on)
    }

    /// Remembers what was found, with what that rests on.
    pub(super) fn end(&mut self, around: RestsOn, key: Key, depth: u32, value: LaneValue) {
        let rests_on = std::mem::replace(&mut self.rests_on, around);
        self.rest_on(rests_on);
        self.found.insert(key, Found { value, rests_on, depth });
        if let Some(last) = rests_on.assumptions.checked_sub(1) {
            self.assumptions[last].holds.push(key);
        }
    }

    /// The search ends here: higher up, more may be found.
    pub(super) fn cut(&mut self) {
        self.rests_on.is_cut = true;
    }

    /// Assumes something of a merge.
    pub(super) fn assume(&mut self, def: SsaId, position: u16, assumed: LaneSum) {
        self.assumptions.push(Assumption { of: (def, position), holds: Vec::new() });
        self.assumed.insert((def, position), (self.assumptions.len(), assumed));
    }

    fn drop_last(&mut self) -> Vec<Key> {
        let Some(last) = self.assumptions.pop() else { return Vec::new() };
        self.assumed.remove(&last.of);
        // It is the one that is being looked at that rested on this one.
        self.rests_on.assumptions = self.rests_on.assumptions.min(self.assumptions.len());
        last.holds
    }

    /// The last assumption does not hold: nothing that rests on it is known.
    pub(super) fn withdraw(&mut self) {
        let count = self.assumptions.len();
        for key in self.drop_last() {
            if self.found.get(&key).is_some_and(|found| found.rests_on.assumptions == count) {
                self.found.remove(&key);
            }
        }
    }

    /// The last assumption holds: what rests on it rests on those before it.
    pub(super) fn confirm(&mut self) {
        let count = self.assumptions.len();
        for key in self.drop_last() {
            let Some(found) = self.found.get_mut(&key).filter(|found| found.rests_on.assumptions == count) else {
                continue;
            };
            found.rests_on.assumptions = count - 1;
            if let Some(around) = self.assumptions.last_mut() {
                around.holds.push(key);
            }
        }
    }
}
