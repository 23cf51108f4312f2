//! Sets of small numbers that share what they have in common.
//!
//! A set is a binary tree over its numbers, 64 of them in a leaf. Equal trees are one tree, found by their contents, so
//! that equal sets have equal ids; results of operations are remembered. Sets that grow and shrink by a few numbers at
//! a time, as those of neighbouring program points do, cost a path from root to leaf each.

use rustc_hash::FxHashMap;

/// A set; equal sets have equal ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct SetId(u32);

impl SetId {
    pub(super) const EMPTY: SetId = SetId(0);

    pub(super) fn is_empty(self) -> bool {
        self == SetId::EMPTY
    }
}

/// Numbers in a leaf.
const LEAF: u32 = u64::BITS;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Leaf(u64),
    Pair(SetId, SetId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// All sets, of numbers below a bound.
#[derive(Debug)]
pub(super) struct Sets {
    /// By id; the first stands for the empty set at every height.
    nodes: Vec<Node>,
    numbers: FxHashMap<Node, SetId>,
    results: FxHashMap<(Operation, SetId, SetId), SetId>,
    /// Pairs on the path to a leaf.
    height: u32,
    /// Nodes that were visited.
    visits: u64,
}

impl Sets {
    /// For numbers below `bound`.
    pub(super) fn below(bound: u32) -> Sets {
        let height = bound.div_ceil(LEAF).max(1).next_power_of_two().trailing_zeros();
        let (numbers, results) = Default::default();
        Sets { nodes: vec![Node::Leaf(0)], numbers, results, height, visits: 0 }
    }

    /// How many nodes were visited since the beginning: the work that was done.
    pub(super) fn visits(&self) -> u64 {
        self.visits
    }

    fn node(&mut self, node: Node) -> SetId {
        if matches!(node, Node::Leaf(0) | Node::Pair(SetId::EMPTY, SetId::EMPTY)) {
            return SetId::EMPTY;
        }
        let nodes = &mut self.nodes;
        *self.numbers.entry(node).or_insert_with(|| {
            nodes.push(node);
            SetId(nodes.len() as u32 - 1)
        })
    }

    fn halves(&self, set: SetId) -> (SetId, SetId) {
        if let Node::Pair(low, high) = self.nodes[set.0 as usize] { (low, high) } else { Default::default() }
    }

    pub(super) fn singleton(&mut self, number: u32) -> SetId {
        let mut set = self.node(Node::Leaf(1 << (number % LEAF)));
        for level in 0..self.height {
            let is_high = (number / LEAF) >> level & 1 == 1;
            set = self.node(if is_high { Node::Pair(SetId::EMPTY, set) } else { Node::Pair(set, SetId::EMPTY) });
        }
        self.visits += u64::from(self.height) + 1;
        set
    }

    #[cfg(test)]
    fn contains(&self, set: SetId, number: u32) -> bool {
        let mut at = set;
        for level in (0..self.height).rev() {
            let (low, high) = self.halves(at);
            at = if (number / LEAF) >> level & 1 == 1 { high } else { low };
        }
        matches!(self.nodes[at.0 as usize], Node::Leaf(bits) if bits >> (number % LEAF) & 1 == 1)
    }

    pub(super) fn union(&mut self, a: SetId, b: SetId) -> SetId {
        self.combine(Operation::Union, a, b)
    }

    pub(super) fn intersection(&mut self, a: SetId, b: SetId) -> SetId {
        self.combine(Operation::Intersection, a, b)
    }

    /// What of `a` is not in `b`.
    pub(super) fn difference(&mut self, a: SetId, b: SetId) -> SetId {
        self.combine(Operation::Difference, a, b)
    }

    fn combine(&mut self, operation: Operation, a: SetId, b: SetId) -> SetId {
        use Operation::{Difference, Intersection, Union};
        self.visits += 1;
        match (operation, a.is_empty(), b.is_empty()) {
            (Union, true, _) => return b,
            (Union | Difference, _, true) => return a,
            (Intersection, true, _) | (Intersection, _, true) | (Difference, true, _) => return SetId::EMPTY,
            _ if a == b => return if operation == Difference { SetId::EMPTY } else { a },
            _ => {}
        }
        let (a, b) = if operation == Difference { (a, b) } else { (a.min(b), a.max(b)) };
        if let Some(result) = self.results.get(&(operation, a, b)) {
            return *result;
        }
        let node = match (self.nodes[a.0 as usize], self.nodes[b.0 as usize]) {
            (Node::Leaf(a), Node::Leaf(b)) => Node::Leaf(match operation {
                Union => a | b,
                Intersection => a & b,
                Difference => a & !b,
            }),
            _ => {
                let ((a_low, a_high), (b_low, b_high)) = (self.halves(a), self.halves(b));
                Node::Pair(self.combine(operation, a_low, b_low), self.combine(operation, a_high, b_high))
            }
        };
        let result = self.node(node);
        self.results.insert((operation, a, b), result);
        result
    }

    /// Its numbers, the lowest first.
    pub(super) fn numbers(&self, set: SetId) -> impl Iterator<Item = u32> + '_ {
        // What is left to visit, with the height of each and the first number below it.
        let mut work = vec![(set, self.height, 0)];
        let mut leaf = (0_u64, 0);
        std::iter::from_fn(move || {
            while leaf.0 == 0 {
                let (set, height, first) = work.pop()?;
                match self.nodes[set.0 as usize] {
                    _ if set.is_empty() => {}
                    Node::Leaf(bits) => leaf = (bits, first),
                    Node::Pair(low, high) => {
                        let height = height - 1;
                        work.extend([(high, height, first + (LEAF << height)), (low, height, first)]);
                    }
                }
            }
            let number = leaf.1 + leaf.0.trailing_zeros();
            leaf.0 &= leaf.0 - 1;
            Some(number)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn sets_are_those_of_the_standard_library() {
        let mut random = SplitMix64::seed_from_u64(7);
        for bound in [1, 64, 65, 1000] {
            let mut sets = Sets::below(bound);
            let mut all: Vec<(SetId, BTreeSet<u32>)> = vec![(SetId::EMPTY, BTreeSet::new())];
            let mut ids: BTreeMap<BTreeSet<u32>, SetId> = [(BTreeSet::new(), SetId::EMPTY)].into();
            for _ in 0..2000 {
                let mut any = |n: usize| random.next_u64() as usize % n;
                let (a, b) = (all[any(all.len())].clone(), all[any(all.len())].clone());
                let (id, set): (SetId, BTreeSet<u32>) = match any(4) {
                    0 => (sets.union(a.0, b.0), &a.1 | &b.1),
                    1 => (sets.intersection(a.0, b.0), &a.1 & &b.1),
                    2 => (sets.difference(a.0, b.0), &a.1 - &b.1),
                    _ => {
                        let number = any(bound as usize) as u32;
                        (sets.singleton(number), BTreeSet::from([number]))
                    }
                };
                assert!(sets.numbers(id).eq(set.iter().copied()));
                assert_eq!(*ids.entry(set.clone()).or_insert(id), id, "equal sets have equal ids");
                assert!((0..bound).all(|number| sets.contains(id, number) == set.contains(&number)));
                all.push((id, set));
            }
            assert!(ids.len() > 1 && (bound == 1 || ids.len() > 200), "{}", ids.len());
        }
    }

    #[test]
    fn sets_that_grow_cost_a_path_each() {
        let work = |bound: u32| {
            let mut sets = Sets::below(bound);
            let mut grown = Vec::new();
            let mut set = SetId::EMPTY;
            for number in 0..bound {
                let one = sets.singleton(number);
                set = sets.union(set, one);
                grown.push(set);
            }
            for pair in grown.windows(2) {
                assert_eq!(sets.intersection(pair[0], pair[1]), pair[0]);
            }
            sets.visits()
        };
        let (once, four) = (work(10_000), work(40_000));
        assert!(four < 6 * once, "{once} and {four}");
    }
}
