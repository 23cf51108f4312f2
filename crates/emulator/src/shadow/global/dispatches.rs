//! Which dispatches and accesses of the host are over before another one begins.
//!
//! As vector clocks have it, with chains for threads: each dispatch of a chain is ordered after those of it that began
//! before. A dispatch goes to a chain whose last one it is ordered after, so there are as many chains as dispatches
//! that nothing orders.

use std::collections::BTreeMap;

/// A dispatch, or an access of the host, of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DispatchNumber {
    /// Its place among those that have begun, from 1. 0 where races in memory are not checked.
    pub number: u64,
    /// The chain that it is in.
    pub chain: u32,
}

/// A set of dispatches and accesses of the host: with each one it has those of its chain that began before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DispatchOrder {
    /// All with smaller numbers are in it.
    all_before: u64,
    /// The last one of each chain that is in it, unless it is one of those.
    chains: BTreeMap<u32, u64>,
}

impl DispatchOrder {
    /// Everything that has begun, or will have.
    #[must_use]
    pub fn everything() -> DispatchOrder {
        DispatchOrder { all_before: u64::MAX, chains: BTreeMap::new() }
    }

    /// All that began up to this one.
    #[must_use]
    pub fn up_to(last: DispatchNumber) -> DispatchOrder {
        DispatchOrder { all_before: last.number + 1, chains: BTreeMap::new() }
    }

    /// Whether one is in it.
    #[must_use]
    pub fn has(&self, dispatch: DispatchNumber) -> bool {
        let DispatchNumber { number, chain } = dispatch;
        number < self.all_before || self.chains.get(&chain).is_some_and(|last| number <= *last)
    }

    /// Whether all of another set are in it.
    #[must_use]
    pub fn has_all(&self, other: &DispatchOrder) -> bool {
        other.all_before <= self.all_before
            && other.chains.iter().all(|(&chain, &number)| self.has(DispatchNumber { number, chain }))
    }

    /// Adds one, with what comes before it in its chain. What else it is ordered after is not added.
    pub fn add(&mut self, dispatch: DispatchNumber) {
        if !self.has(dispatch) {
            self.chains.insert(dispatch.chain, dispatch.number);
        }
    }

    /// Adds all of another set.
    pub fn join(&mut self, other: &DispatchOrder) {
        if other.all_before > self.all_before {
            self.all_before = other.all_before;
            self.chains.retain(|_, number| *number >= other.all_before);
        }
        other.chains.iter().for_each(|(&chain, &number)| self.add(DispatchNumber { number, chain }));
    }
}

/// The chains of a device.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    /// How many have begun.
    begun: u64,
    /// The last one of each.
    last: Vec<u64>,
}

impl Chains {
    /// The number of the next one, which is ordered after these.
    pub(crate) fn begin(&mut self, order: &DispatchOrder) -> DispatchNumber {
        self.begun += 1;
        let number = self.begun;
        let mut chains = (0..).zip(&self.last);
        let chain = chains.find(|(chain, last)| order.has(DispatchNumber { number: **last, chain: *chain }));
        let chain = chain.map_or(self.last.len() as u32, |(chain, _)| chain);
        match self.last.get_mut(chain as usize) {
            Some(last) => *last = number,
            None => self.last.push(number),
        }
        DispatchNumber { number, chain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ordered_shares_a_chain() {
        let mut chains = Chains::default();
        let first = chains.begin(&DispatchOrder::everything());
        let apart = chains.begin(&DispatchOrder::default());
        let mut after = DispatchOrder::default();
        after.add(first);
        let next = chains.begin(&after);
        assert_eq!((first.chain, apart.chain, next.chain), (0, 1, 0));
        assert!(after.has(first) && !after.has(apart) && !after.has(next));
        let mut both = DispatchOrder::default();
        both.add(apart);
        assert!(!both.has_all(&after));
        both.join(&after);
        assert!(both.has_all(&after) && both.has(apart) && !both.has(next));
        let all = DispatchOrder::up_to(next);
        assert!(all.has_all(&both) && !both.has_all(&all));
        both.join(&all);
        assert_eq!(both, all);
        assert!(DispatchOrder::everything().has_all(&all));
    }
}
