//! What may be outstanding in one counter: the state of [`Waits`](super::Waits), for one counter.
//!
//! A map from operations to [`Position`]s: how many younger operations of its order there are (`min` to `max`), and
//! whether it is outstanding on all paths (`certain`). An operation that is not in the map is complete. Join: the union
//! of the operations, the wider of the two ranges, `certain` only if certain on both sides. An operation that only one
//! side has becomes uncertain. Positions are small numbers with a bound, so chains are finite.
//!
//! The map is a list that is sorted by operation, because most are short and joins, which are frequent, merge them in
//! one pass.

use super::completion::CompletionOrder;
use super::waits::Operation;

/// Where an operation stands in its counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) min: u8,
    pub(super) max: u8,
    pub(super) certain: bool,
}

/// One operation that may be outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) operation: Operation,
    pub(super) position: Position,
    /// What it completes in order with: always the same for an operation in a counter.
    pub(super) kind: CompletionOrder,
}

/// The operations of a counter, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Queue(Vec<Pending>);

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Pending> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Pending> {
        self.0.iter_mut()
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&mut Pending) -> bool) {
        self.0.retain_mut(keep);
    }

    fn find(&self, operation: Operation) -> Result<usize, usize> {
        // Operations are met in about the order of their addresses.
        match self.0.last() {
            Some(last) if last.operation < operation => Err(self.0.len()),
            _ => self.0.binary_search_by_key(&operation, |pending| pending.operation),
        }
    }

    pub(super) fn get(&self, operation: Operation) -> Option<Position> {
        self.find(operation).ok().map(|at| self.0[at].position)
    }

    pub(super) fn insert(&mut self, pending: Pending) {
        match self.find(pending.operation) {
            Ok(at) => self.0[at] = pending,
            Err(at) => self.0.insert(at, pending),
        }
    }

    /// Takes an operation out; tells whether it was there.
    pub(super) fn remove(&mut self, operation: Operation) -> bool {
        self.find(operation).map(|at| self.0.remove(at)).is_ok()
    }

    /// Adds what may be pending in `other`; tells whether that changed anything. What is not pending in both is not
    /// certain.
    pub(super) fn join(&mut self, other: &Queue) -> bool {
        if self.0 == other.0 {
            return false;
        }
        let mut changed = false;
        let mut joined = Vec::with_capacity(self.0.len().max(other.0.len()));
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let order = match (mine.peek(), theirs.peek()) {
                (Some(a), Some(b)) => a.operation.cmp(&b.operation),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => break,
            };
            let (a, b) = match order {
                std::cmp::Ordering::Less => (mine.next(), None),
                std::cmp::Ordering::Greater => (None, theirs.next()),
                std::cmp::Ordering::Equal => (mine.next(), theirs.next()),
            };
            let position = match (a, b) {
                (Some(Pending { position: a, .. }), Some(Pending { position: b, .. })) => {
                    Position { min: a.min.min(b.min), max: a.max.max(b.max), certain: a.certain && b.certain }
                }
                (Some(one), None) | (None, Some(one)) => Position { certain: false, ..one.position },
                (None, None) => break,
            };
            changed |= a.is_none_or(|a| a.position != position);
            joined.extend(a.or(b).map(|pending| Pending { position, ..*pending }));
        }
        if changed {
            self.0 = joined;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::kernel::random::Random;
    use wavetap_base::entity::InstId;

    type Model = BTreeMap<Operation, Position>;

    fn random_queue(random: &mut Random) -> (Queue, Model) {
        let (mut queue, mut model) = (Queue::default(), Model::new());
        for _ in 0..random.below(8) {
            let operation = match random.below(8) {
                0 => Operation::Caller,
                1 => Operation::Callee(InstId(random.below(6) as u32)),
                _ => Operation::Inst(InstId(random.below(6) as u32)),
            };
            let (min, more) = (random.below(3) as u8, random.below(3) as u8);
            let position = Position { min, max: min + more, certain: random.below(2) == 0 };
            queue.insert(Pending { operation, position, kind: CompletionOrder::Vmem });
            model.insert(operation, position);
            if random.below(4) == 0 {
                assert_eq!(queue.remove(operation), model.remove(&operation).is_some());
                assert!(!queue.remove(operation));
            }
        }
        (queue, model)
    }

    fn as_model(queue: &Queue) -> Model {
        assert!(queue.iter().map(|pending| pending.operation).is_sorted());
        queue.iter().map(|pending| (pending.operation, pending.position)).collect()
    }

    /// The definition: the union, with the wider range, certain only if certain in both.
    #[test]
    fn joins_as_maps_do() {
        let mut random = Random::new(11);
        for _ in 0..5000 {
            let ((mut queue, model), (other, other_model)) = (random_queue(&mut random), random_queue(&mut random));
            assert_eq!(as_model(&queue), model);
            let mut expected = model.clone();
            for (operation, position) in &mut expected {
                position.certain &= other_model.get(operation).is_some_and(|other| other.certain);
            }
            for (operation, theirs) in &other_model {
                let mine = expected.entry(*operation).or_insert(Position { certain: false, ..*theirs });
                (mine.min, mine.max) = (mine.min.min(theirs.min), mine.max.max(theirs.max));
            }
            let changed = queue.join(&other);
            assert_eq!(as_model(&queue), expected);
            assert_eq!(changed, expected != model);
            assert!(!queue.join(&other), "once is enough");
            for (operation, position) in &expected {
                assert_eq!(queue.get(*operation), Some(*position));
            }
        }
    }
}
