//! Whether waits cover what is read: along all paths, each read of what a message writes comes after a wait for its
//! token. A may-analysis of its own, over what instructions read, write, set and wait for.

use std::collections::{BTreeMap, BTreeSet};

use wavetap_base::entity::InstId;
use wavetap_code::{Code, Definition, EdgeKind, Instruction, reaching};
use wavetap_intel::isa::{File, Inst, TOKENS};

/// The largest distance.
const FARTHEST: u8 = 7;

#[derive(Clone, Default, PartialEq)]
struct InFlight {
    messages: BTreeSet<InstId>,
    /// By pipe: how many younger instructions each has at least.
    pipes: [BTreeMap<InstId, u8>; 4],
}

/// A writer and a reader.
pub type Pair = (InstId, InstId);

#[derive(Default)]
pub struct Checked {
    /// Reads of results of messages that no wait came before, at their first reader on some path.
    pub pairs: BTreeSet<Pair>,
    /// Of messages: those that are in flight when they are read.
    pub violations: BTreeSet<Pair>,
    /// Of in-order pipes.
    pub distances: BTreeSet<Pair>,
}

fn token(inst: &Instruction) -> Option<u8> {
    inst.issues.iter().map(|issue| issue.counter.0).find(|counter| *counter < TOKENS)
}

fn reads(code: &Code<'_>, writer: InstId, reader: InstId) -> bool {
    let (writer, reader) = (code.inst(writer), code.inst(reader));
    let is_opposite = writer.guard.zip(reader.guard).is_some_and(|(one, other)| one.is_opposite(other));
    // Accumulators, flags and address registers are interlocked; of what is indirect it is not known what is written.
    let mut locations = writer.writes.iter().map(|write| write.location).filter(|one| one.file == File::General as u8);
    let overlaps = locations.any(|written| reader.reads.iter().any(|read| read.location.overlaps(written)));
    overlaps && !is_opposite && !writer.is_indirect
}

/// Whether what `pair.0` writes reaches `pair.1`.
pub fn is_definition(code: &Code<'_>, pair: &Pair) -> bool {
    let mut found = code.inst(pair.1).reads.iter().flat_map(|read| reaching(code, pair.1, read.location));
    found.any(|definition| definition == Definition::Inst(pair.0))
}

/// Which paths are gone along.
#[derive(Clone, Copy, PartialEq)]
pub enum Paths {
    /// All of the graph.
    All,
    /// Those that a machine may take. After a `goto` without predicate no lane goes on with the next instruction. A
    /// `join` jumps only where no lane goes on with it: not after the instruction before it, nor after a branch that
    /// sends lanes to it.
    Taken,
}

/// Checks with all token waits off by `shift`.
pub fn check(code: &Code<'_>, insts: &[Inst], shift: u8, paths: Paths) -> Checked {
    let graph = code.graph();
    // By whether lanes go on with the block's first instruction.
    let mut starts: Vec<[Option<InFlight>; 2]> = vec![[None, None]; graph.len()];
    starts[graph.entry().index()][1] = Some(InFlight::default());
    let mut work = vec![(graph.entry(), 1)];
    while let Some((block, lanes)) = work.pop() {
        let Some(mut state) = starts[block.index()][lanes].clone() else { continue };
        graph.block(block).insts().for_each(|id| step(code, id, &mut state, shift, None));
        let last = &insts[graph.block(block).last.index()];
        for edge in &graph.block(block).successors {
            let falls = edge.kind == EdgeKind::FallThrough;
            let leaves = &*last.name == "goto" && last.predicate.is_none();
            let stays = &*last.name == "join" && lanes == 1;
            if paths == Paths::Taken && (falls && leaves || !falls && stays) {
                continue;
            }
            let to = code.address(graph.block(edge.block).first);
            let sends_lanes = last.branch.is_none_or(|branch| match &*last.name {
                "join" => false,
                _ => branch.update.or(branch.jump) == Some(to),
            });
            let lanes = usize::from(paths == Paths::All || falls || sends_lanes);
            let start = &mut starts[edge.block.index()][lanes];
            let joined = start.as_ref().map_or_else(|| state.clone(), |known| join(known, &state));
            if start.as_ref() != Some(&joined) {
                *start = Some(joined);
                work.push((edge.block, lanes));
            }
        }
    }
    let mut checked = Checked::default();
    for block in graph.ids() {
        for mut state in starts[block.index()].clone().into_iter().flatten() {
            graph.block(block).insts().for_each(|id| step(code, id, &mut state, shift, Some(&mut checked)));
        }
    }
    checked
}

fn join(one: &InFlight, other: &InFlight) -> InFlight {
    let mut both = one.clone();
    both.messages.extend(&other.messages);
    for (pipe, other) in both.pipes.iter_mut().zip(&other.pipes) {
        for (id, younger) in other {
            pipe.entry(*id).and_modify(|known| *known = (*known).min(*younger)).or_insert(*younger);
        }
    }
    both
}

fn step(code: &Code<'_>, id: InstId, state: &mut InFlight, shift: u8, mut checked: Option<&mut Checked>) {
    let inst = code.inst(id);
    if let Some(checked) = &mut checked {
        let read = state.messages.iter().filter(|writer| reads(code, **writer, id));
        checked.pairs.extend(read.map(|writer| (*writer, id)));
    }
    for wait in &inst.waits {
        match wait.counter.0 {
            counter if counter < TOKENS => {
                let waited = (counter + shift) % TOKENS;
                state.messages.retain(|message| token(code.inst(*message)) != Some(waited));
            }
            counter if counter >= 2 * TOKENS => {
                state.pipes[usize::from(counter - 2 * TOKENS)].retain(|_, younger| *younger < wait.count);
            }
            _ => {}
        }
    }
    if let Some(checked) = checked {
        let messages = state.messages.iter().filter(|writer| reads(code, **writer, id));
        checked.violations.extend(messages.map(|writer| (*writer, id)));
        let others = state.pipes.iter().flat_map(BTreeMap::keys).filter(|writer| reads(code, **writer, id));
        checked.distances.extend(others.map(|writer| (*writer, id)));
    }
    if let Some(set) = token(inst) {
        if shift == 0 {
            state.messages.retain(|message| token(code.inst(*message)) != Some(set));
        }
        state.messages.insert(id);
    }
    for counter in inst.issues.iter().map(|issue| issue.counter.0).filter(|counter| *counter >= 2 * TOKENS) {
        let pipe = &mut state.pipes[usize::from(counter - 2 * TOKENS)];
        pipe.values_mut().for_each(|younger| *younger += 1);
        pipe.retain(|_, younger| *younger < FARTHEST);
        pipe.insert(id, 0);
    }
}
