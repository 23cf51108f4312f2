//! Reaching definitions, from what instructions read and write and under which guard.
//!
//! Found backward from the use, over pairs of a block and what is still looked for: the units that no write has ended
//! yet, and the use's guard as long as its predicate was not written on the way. A write ends the search for its units
//! unless it keeps part of the old value ([`Instruction::keeps`](crate::Instruction::keeps)). With the guard of the use
//! still known, a write under the same guard ends it, too, and one under the opposite guard is not what is read. Guards
//! are per lane, and so is this; where the use reads other lanes they say nothing.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::code::Code;
use super::dataflow::{DataFlow, MaskSource, Values};
use crate::instruction::{Flow, Guard, Instruction, Location, ReadRole};
use wavetap_base::entity::{BlockId, InstId};

/// Where a value may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Definition {
    /// It was there when the body was entered.
    Entry,
    /// An instruction wrote it.
    Inst(InstId),
    /// Something that this call executes may have written it.
    Call(InstId),
}

/// What is looked for on a path, backward.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Search {
    file: u8,
    /// Ascending and apart, each with its end.
    units: SmallVec<[(u32, u32); 2]>,
    /// The guard under which it is read, as long as its predicate is the same value.
    guard: Option<Guard>,
}

impl Search {
    fn overlaps(&self, location: Location) -> bool {
        self.file == location.file && self.units.iter().any(|(from, to)| *from < location.end() && location.first < *to)
    }

    fn without(&mut self, location: Location) {
        let cut = |(from, to): (u32, u32)| {
            let before = (from, to.min(location.first));
            let after = (from.max(location.end()), to);
            [before, after].into_iter().filter(|(from, to)| from < to)
        };
        self.units = self.units.iter().copied().flat_map(cut).collect();
    }

    /// Goes back over an instruction; what of it may be read is told to `found`. False if nothing is left to look for.
    fn step(&mut self, code: &Code<'_>, id: InstId, found: &mut Vec<Definition>) -> bool {
        let inst = code.inst(id);
        let call = if let Flow::Call(effect) = &inst.flow { Some(effect) } else { None };
        let calls_unknown = call.is_some_and(|effect| effect.may_write_anything);
        // Its own guard is what the predicate was before; that of the use is what it writes.
        if calls_unknown || self.guard.is_some_and(|guard| writes(inst, guard.predicate)) {
            self.guard = None;
        }
        let guards = inst.guard.zip(self.guard);
        let same = guards.is_some_and(|(written, read)| written == read);
        let opposite = guards.is_some_and(|(written, read)| written.is_opposite(read));
        if calls_unknown {
            found.push(Definition::Call(id));
        }
        for write in &inst.writes {
            if !opposite && self.overlaps(write.location) {
                found.push(if call.is_some() { Definition::Call(id) } else { Definition::Inst(id) });
                if !write.partial && (inst.guard.is_none() || same) {
                    self.without(write.location);
                }
            }
        }
        !self.units.is_empty()
    }
}

fn writes(inst: &Instruction, location: Location) -> bool {
    inst.writes.iter().any(|write| write.location.overlaps(location))
}

/// Every definition of any unit of `location` that may reach `at`, ascending.
///
/// # Panics
/// If `at` is not of this code.
#[must_use]
pub fn reaching(code: &Code<'_>, at: InstId, location: Location) -> Vec<Definition> {
    let (graph, inst) = (code.graph(), code.inst(at));
    let mut found = Vec::new();
    let mut seen: FxHashSet<(BlockId, Search)> = FxHashSet::default();
    let guard = inst.guard.filter(|_| !inst.crosses_lanes);
    let units = SmallVec::from_slice(&[(location.first, location.end())]);
    let mut work = vec![(graph.block_of(at), at, Search { file: location.file, units, guard })];
    while let Some((block, end, mut search)) = work.pop() {
        let mut before = (graph.block(block).first.0..end.0).rev().map(InstId);
        if !before.all(|id| search.step(code, id, &mut found)) {
            continue;
        }
        if block == graph.entry() {
            found.push(Definition::Entry);
        }
        for edge in &graph.block(block).predecessors {
            if seen.insert((edge.block, search.clone())) {
                work.push((edge.block, InstId(graph.block(edge.block).last.0 + 1), search.clone()));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// [`DataFlow`] by [`reaching`]: of a guard, the instructions that wrote the predicate formed the mask.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reaching;

impl DataFlow for Reaching {
    fn producers(&self, code: &Code<'_>, at: InstId, of: Values) -> Vec<InstId> {
        let wanted = |role: ReadRole| match of {
            Values::All => role.is_value(),
            Values::Stored => role == ReadRole::Data,
        };
        let reads = code.inst(at).reads.iter().filter(|read| wanted(read.role));
        let mut found: Vec<InstId> = reads.flat_map(|read| instructions(code, at, read.location)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn lanes_written_by(&self, code: &Code<'_>, at: InstId) -> Option<InstId> {
        match reaching(code, at, code.inst(at).guard?.predicate)[..] {
            [Definition::Inst(formed)] => Some(formed),
            _ => None,
        }
    }

    fn mask(&self, code: &Code<'_>, at: InstId) -> Option<MaskSource> {
        let formed = self.lanes_written_by(code, at)?;
        Some(MaskSource { formed, compared: None })
    }
}

fn instructions(code: &Code<'_>, at: InstId, location: Location) -> impl Iterator<Item = InstId> + use<> {
    reaching(code, at, location).into_iter().filter_map(|definition| match definition {
        Definition::Inst(id) => Some(id),
        Definition::Entry | Definition::Call(_) => None,
    })
}
