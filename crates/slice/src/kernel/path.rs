//! From the operation that is waited for, back to where its address comes from, and to the branch that left it its
//! lanes.
//!
//! A greedy walk, not a whole slice: at each instruction it goes to one producer, of those that were executed one in
//! the most loops around it, as what is computed before a loop is there when its rounds begin; of these the one whose
//! value is there last by static latencies, of equal ones the nearest. From a reload it goes to the store
//! ([`wavetap_code::DataFlow::origin`]), and from there follows only the stored data. No instruction is visited twice,
//! and a path has at most `LONGEST` steps after the operation. Where the store is not certain, the path says that it
//! goes through memory.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::Context;
use crate::lines::step;
use crate::result::{Edge, Step};
use wavetap_base::entity::InstId;
use wavetap_code::{Class, Origin, Values};

/// Steps of a path after the operation that is waited for.
const LONGEST: usize = 6;
/// Instructions that are looked at for what loads an address.
const NEAR: usize = 32;
/// Instructions that are looked at for when the values of one instruction are there.
const MOST: u32 = 32;

/// A path, and whether it leaves something out.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) steps: Vec<Step>,
    pub(super) through_memory: bool,
    /// What left the operation its lanes.
    pub(super) mask: Vec<Step>,
    /// The load that gave the operation its address.
    pub(super) address_loaded_by: Option<InstId>,
}

impl Context<'_> {
    fn executed(&self, id: InstId) -> bool {
        self.counts.of(self.code.block_of(id)).0 != Some(0)
    }

    /// The wait, the operation, and from which instructions its address comes: of several the one that takes longest,
    /// of equal ones the nearest. What is reloaded comes from the store; of that the data are followed.
    pub(super) fn path(&self, wait: InstId, cause: InstId) -> Path {
        let mut paths = self.paths.borrow_mut();
        // Of an operation that several waits wait for, the way back is the same.
        let behind = paths.entry(cause).or_insert_with(|| self.path_behind(cause));
        let steps = std::iter::once(step(self.code, wait, Edge::Stall)).chain(behind.steps.iter().cloned()).collect();
        Path { steps, mask: behind.mask.clone(), ..*behind }
    }

    fn path_behind(&self, cause: InstId) -> Path {
        let steps = vec![step(self.code, cause, Edge::Wait)];
        let address_loaded_by = self.address_loaded_by(cause);
        let mut path = Path { steps, through_memory: false, mask: self.mask(cause), address_loaded_by };
        let mut seen = FxHashSet::from_iter([cause]);
        let (mut at, mut data_only) = (cause, false);
        while path.steps.len() < LONGEST + 1 {
            // The operation that is waited for takes its time for its address; of what comes before, the value matters.
            let origin = if at == cause { None } else { self.code.origin(at, &|id| self.executed(id)) };
            let stored = match origin {
                Some(Origin::Store { inst, certain }) => {
                    path.through_memory |= !certain;
                    Some((inst, Edge::Memory))
                }
                Some(Origin::OnlyStore(store)) => Some((store, Edge::ThroughMemory)),
                Some(Origin::Unknown) => {
                    path.through_memory = true;
                    None
                }
                None => None,
            };
            let next = match stored.filter(|(store, _)| !seen.contains(store)) {
                Some(stored) => Some(stored),
                None => self
                    .producer(at, if data_only { Values::Stored } else { Values::All }, &seen)
                    .map(|producer| (producer, Edge::Register)),
            };
            let Some((next, edge)) = next else { break };
            seen.insert(next);
            path.steps.push(step(self.code, next, edge));
            data_only = edge != Edge::Register;
            at = next;
        }
        path
    }

    /// The wait, and the call of the function that left something outstanding.
    pub(super) fn call_path(&self, wait: InstId, call: InstId) -> Path {
        Path {
            steps: vec![step(self.code, wait, Edge::Stall), step(self.code, call, Edge::Wait)],
            through_memory: false,
            mask: Vec::new(),
            address_loaded_by: None,
        }
    }

    /// The instruction that what this one reads is waited for longest from.
    fn producer(&self, at: InstId, of: Values, seen: &FxHashSet<InstId>) -> Option<InstId> {
        let producers = self.code.producers(at, of).into_iter();
        let mut left = MOST;
        producers.filter(|id| !seen.contains(id) && self.executed(*id)).max_by_key(|id| {
            (self.shared_loops(at, *id), self.ready(*id, &mut left), Reverse(at.0.abs_diff(id.0)), *id)
        })
    }

    /// Cycles until the result of an instruction is there, by static latencies: its own, after those of what it reads.
    /// Values of earlier rounds of loops are taken to be there, and so are all after so many instructions as are `left`
    /// to look at.
    fn ready(&self, id: InstId, left: &mut u32) -> u64 {
        if let Some(known) = self.ready.borrow().get(&id) {
            return *known;
        }
        let own = u64::from(self.code.inst(id).latency.typical);
        let Some(rest) = left.checked_sub(1) else { return own };
        *left = rest;
        let earlier = |producer: &InstId| *producer < id && self.executed(*producer);
        let producers = self.code.producers(id, Values::All).into_iter().filter(earlier);
        let cycles = own.saturating_add(producers.map(|producer| self.ready(producer, left)).max().unwrap_or(0));
        self.ready.borrow_mut().insert(id, cycles);
        cycles
    }

    /// How many loops two instructions are both in.
    fn shared_loops(&self, a: InstId, b: InstId) -> usize {
        let around = |id: InstId| self.loops.around(self.code.block_of(id));
        around(a).filter(|index| around(b).any(|other| other == *index)).count()
    }

    /// The load that gave the address of an operation, directly or through other instructions: the operation cannot
    /// start before it is done. Of several the slowest, of these the nearest. In a loop only what is loaded in its
    /// rounds counts, outside of loops no arguments and constants; what is farther away than `NEAR` instructions is not
    /// looked for.
    fn address_loaded_by(&self, operation: InstId) -> Option<InstId> {
        let innermost = self.loops.innermost(self.code.block_of(operation));
        let in_loop = |id: InstId| self.loops.around(self.code.block_of(id)).any(|index| Some(index) == innermost);
        let inst = self.code.inst(operation);
        if !inst.class.is_memory() || inst.writes.is_empty() {
            return None;
        }
        let (mut seen, mut loads) = (FxHashSet::from_iter([operation]), Vec::new());
        let mut work = vec![operation];
        while let (Some(at), true) = (work.pop(), seen.len() < NEAR) {
            for producer in self.code.producers(at, Values::All) {
                let inside = innermost.is_none() || in_loop(producer);
                if !inside || !self.executed(producer) || !seen.insert(producer) {
                    continue;
                }
                match self.code.inst(producer).class {
                    Class::Constant if innermost.is_none() => {}
                    class if class.is_memory() => loads.push(producer),
                    _ => work.push(producer),
                }
            }
        }
        let time = |id: InstId| self.code.inst(id).latency.typical;
        loads.into_iter().max_by_key(|id| (time(*id), Reverse(operation.0.abs_diff(id.0)), *id))
    }

    /// The instruction that left an operation its lanes, and the comparison before it; nothing if all lanes of the wave
    /// may be there, or that is not known.
    fn mask(&self, id: InstId) -> Vec<Step> {
        let Some(mask) = self.code.mask(id) else { return Vec::new() };
        let compared = mask.compared.map(|id| step(self.code, id, Edge::Register));
        std::iter::once(step(self.code, mask.formed, Edge::Mask)).chain(compared).collect()
    }
}
