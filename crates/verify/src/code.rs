//! The code of one instrumented kernel, with the functions that were copied for it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use crate::hazards::{event_hazards, expert_scheduling, forwarding, wait_states};
use crate::placement::{bundles, first_vector, forbidden, high_registers};
use crate::values::{carried, defined, preserve, scratch};
use crate::waits::{outstanding, xcnt_replay};
use wavetap_analysis::cfg::{BodyId, Cfg, Program};
use wavetap_analysis::dataflow::{RegSet, Summaries, UsedRegisters, WaitSummaries};
use wavetap_analysis::kernel::{Body, CallTarget, Flow, Image};
use wavetap_object::code_object::InitialRegisters;
use wavetap_profile::map::AddressPair;

/// One kernel's code before and after.
#[derive(Debug, Clone, Copy)]
pub struct KernelCode<'a> {
    /// The original code object's code.
    pub program: &'a Program,
    /// The image that it was decoded from.
    pub image: &'a Image<'a>,
    /// The kernel in it.
    pub kernel: BodyId,
    /// The instrumented kernel, decoded from its new entry, and all that it calls.
    pub new: &'a Program,
    /// The address of the new entry.
    pub entry: u64,
    /// From here on code is new: what is called there is a copy of an original function.
    pub new_code: u64,
    /// Where the site table says each original instruction is now, those of copied functions included.
    pub addresses: &'a [AddressPair],
    /// Registers at entry by the original descriptor.
    pub entry_before: &'a InitialRegisters,
    /// Registers at entry by the new descriptor.
    pub entry_after: &'a InitialRegisters,
    /// Vector registers that the original descriptor allocates, without AGPRs after them.
    pub vector_registers: u32,
    /// Bytes of scratch memory of each work-item: what was added for inserted code.
    pub scratch: (u64, u64),
    /// Registers that any code of the original object may use.
    pub used: UsedRegisters,
    /// What calls in the original may read and write.
    pub summaries: &'a Summaries,
    /// Original addresses of accesses that some lanes may not execute, by the site table.
    pub dropping: &'a FxHashSet<u64>,
    /// Whether memory instructions may be replayed (XNACK is not known to be off).
    pub replays: bool,
}

/// A copied function may end in a jump to the copy of another one where the original calls that in its place. The new
/// body then has the instructions of both: this is the original that has as well, if it is so.
fn with_tail_calls(code: &KernelCode<'_>, original: BodyId, new: &Body) -> Option<Body> {
    let mut merged: Option<Body> = None;
    let mut jumps = BTreeSet::new();
    loop {
        let body = merged.as_ref().unwrap_or_else(|| code.program.body(original));
        let before = jumps.len();
        for (id, target) in body.calls().filter(|(id, _)| matches!(body.flow(*id), Flow::TailCall(_))) {
            let CallTarget::Known(function) = target else { continue };
            let places = code.addresses.iter().filter(|pair| pair.original == body.address(id));
            let mut flows = places.filter_map(|pair| new.at(pair.rewritten)).map(|id| new.flow(id));
            if flows.any(|flow| matches!(flow, Flow::Jump(_))) {
                jumps.insert(function);
            }
        }
        if jumps.len() == before {
            return merged;
        }
        let image = code.image.without_entries(&jumps);
        merged = Some(code.program.decode_in(&image, original).ok()?);
    }
}

/// A kernel or function before and after, and what was found so far.
struct Piece<'a> {
    id: BodyId,
    /// Of the new code.
    entry: u64,
    original: Cow<'a, Body>,
    new: &'a Body,
    /// None if something is wrong with it.
    alignment: Option<Alignment>,
    /// Copies that it calls, by entry.
    calls: Vec<u64>,
    found: Vec<Finding>,
}

/// Checks the code of one instrumented kernel, with the functions that were copied for it, against the original's.
#[must_use]
pub fn check_code(code: &KernelCode<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let kernel = code.program.body(code.kernel);
    let target = kernel.target();
    if code.scratch.0 < code.scratch.1 && !target.architected_flat_scratch() && !target.offset_flat_scratch() {
        scratch::stays(code.program, code.kernel, code.entry_before, code.summaries, &mut findings);
    }
    let mut belongs = vec![false; code.addresses.len()];
    let mut pieces = pieces(code, &mut belongs, &mut findings);
    let wait_summaries = WaitSummaries::compute(code.new);
    let mut calls: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
    for piece in &pieces {
        calls.entry(piece.entry).or_default().extend(&piece.calls);
    }
    let named = named(code, &pieces);
    let mut counters = RegSet::EMPTY;
    let mut changed_by = FxHashMap::default();
    for index in callees_first(&pieces, &calls) {
        let piece = &mut pieces[index];
        if let Some(alignment) = &piece.alignment {
            counters = counters.union(carried::check(piece.new, alignment, &named, &mut piece.found));
        }
        let changed = piece.check(code, &wait_summaries, &changed_by, &|entry| reached(&calls, entry).contains(&entry));
        changed_by.entry(piece.entry).or_insert(RegSet::EMPTY).add_all(&changed);
    }
    for piece in pieces.iter_mut().filter(|piece| piece.id == code.kernel) {
        if let Some(alignment) = &piece.alignment {
            carried::begin(piece.new, alignment, &counters, &mut piece.found);
        }
    }
    for piece in pieces {
        let of_function = |finding: Finding| {
            if piece.id == code.kernel { finding } else { finding.in_function(piece.original.name()) }
        };
        findings.extend(piece.found.into_iter().map(of_function));
    }
    for (pair, _) in code.addresses.iter().zip(&belongs).filter(|(_, belongs)| !**belongs) {
        let message =
            format!("the site table says {:#x} is here, but there is no such pair of instructions", pair.original);
        findings.push(Finding::new(Rule::Skeleton, message).at(pair.rewritten));
    }
    findings.into_iter().map(|finding| finding.in_kernel(kernel.name())).collect()
}

/// The kernel and all copies that it reaches, aligned with their originals; marks the pairs of the site table that
/// belong to one.
fn pieces<'a>(code: &KernelCode<'a>, belongs: &mut [bool], findings: &mut Vec<Finding>) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    let mut seen = BTreeSet::new();
    let mut work = vec![(code.kernel, code.entry)];
    // Discovery: aligning a function finds the copies that it calls.
    while let Some((id, entry)) = work.pop() {
        if !seen.insert((id, entry)) {
            continue;
        }
        let original = code.program.body(id);
        let mut found = Vec::new();
        if let Some(call) = code.program.runs_past_its_end(original) {
            let message = "nothing follows a call that may come back".to_owned();
            found.push(Finding::new(Rule::Skeleton, message).at(original.address(call)));
        }
        let Some(new) = code.new.at(entry).map(|new| code.new.body(new)) else {
            let why = code.new.undecodable().iter().find(|(_, address, _)| *address == entry);
            let why = why.map_or_else(String::new, |(_, _, error)| format!(": {error}"));
            findings.push(
                Finding::new(Rule::Skeleton, format!("the new code of {} cannot be decoded{why}", original.name()))
                    .at(entry),
            );
            continue;
        };
        let original = with_tail_calls(code, id, new).map_or(Cow::Borrowed(original), Cow::Owned);
        if original.target() != new.target() {
            found.push(Finding::new(Rule::Descriptor, "the new code runs in waves of another size").at(entry));
        }
        let mut pairs = Vec::new();
        let (mut next_old, mut next_new) = (0, 0);
        for (pair, belongs) in code.addresses.iter().zip(&mut *belongs) {
            if let Some(old) = original.at_next(pair.original, &mut next_old)
                && let Some(now) = new.at_next(pair.rewritten, &mut next_new)
            {
                *belongs = true;
                pairs.push((old, now));
            }
        }
        let mut calls = Vec::new();
        let before = found.len();
        let alignment = Alignment::find(&original, new, &pairs, (code.new_code, code.dropping), &mut calls, &mut found);
        if let Some(alignment) = &alignment {
            forbidden::check(&original, new, alignment, &mut found);
        }
        // Where control goes elsewhere, or something forbidden was inserted, the other rules have nothing to say.
        let alignment = alignment.filter(|_| found.len() == before);
        for &(function, copy) in &calls {
            match code.program.at(function) {
                Some(function) => work.push((function, copy)),
                None => found.push(Finding::new(
                    Rule::Branch,
                    format!("a copy of {function:#x} is called, which cannot be decoded"),
                )),
            }
        }
        let calls = calls.into_iter().map(|(_, copy)| copy).collect();
        pieces.push(Piece { id, entry, original, new, alignment, calls, found });
    }
    pieces
}

/// The registers that original code names which may run with this: the kernel's and that of the copies, and any, if
/// something else is called.
fn named(code: &KernelCode<'_>, pieces: &[Piece<'_>]) -> RegSet {
    let copied = |target| matches!(target, CallTarget::Known(entry) if pieces.iter().any(|piece| piece.entry == entry));
    if pieces.iter().any(|piece| piece.new.calls().any(|(_, target)| !copied(target))) {
        return code.used.named;
    }
    let bodies = pieces.iter().map(|piece| &*piece.original);
    bodies.flat_map(|body| body.ids().flat_map(|id| body.reads(id).chain(body.writes(id)))).collect()
}

/// Each after those that it calls, unless they call it as well.
fn callees_first(pieces: &[Piece<'_>], calls: &FxHashMap<u64, Vec<u64>>) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; pieces.len()];
    let mut by_entry: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    for (index, piece) in pieces.iter().enumerate() {
        by_entry.entry(piece.entry).or_default().push(index);
    }
    // A postorder, not a fixed point: the second time a piece comes up its callees are done.
    let mut work: Vec<(usize, bool)> = (0..pieces.len()).rev().map(|index| (index, false)).collect();
    while let Some((index, done)) = work.pop() {
        if done {
            order.push(index);
        } else if !std::mem::replace(&mut seen[index], true) {
            work.push((index, true));
            let callees = calls[&pieces[index].entry].iter().filter_map(|callee| by_entry.get(callee)).flatten();
            work.extend(callees.map(|callee| (*callee, false)));
        }
    }
    order
}

/// Everything that a copy calls, directly or through others.
fn reached(calls: &FxHashMap<u64, Vec<u64>>, entry: u64) -> BTreeSet<u64> {
    let mut reached = BTreeSet::new();
    let mut work = vec![entry];
    // Reachability.
    while let Some(caller) = work.pop() {
        work.extend(calls.get(&caller).into_iter().flatten().copied().filter(|callee| reached.insert(*callee)));
    }
    reached
}

impl Piece<'_> {
    /// Checks all rules of code; gives what [`preserve::check`] gives.
    fn check(
        &mut self,
        code: &KernelCode<'_>,
        waits: &WaitSummaries,
        changed_by: &FxHashMap<u64, RegSet>,
        is_recursive: &dyn Fn(u64) -> bool,
    ) -> RegSet {
        let Piece { id, entry, original, new, alignment, found, .. } = self;
        let Some(alignment) = alignment else { return RegSet::EMPTY };
        let is_kernel = *id == code.kernel;
        let subject = preserve::Subject {
            original,
            new,
            alignment,
            entry: is_kernel.then_some((code.entry_before, code.entry_after)),
            named: code.used.named,
            summaries: code.summaries,
            vector_registers: code.vector_registers,
            scratch: code.scratch.0..code.scratch.1,
            new_code: code.new_code,
            changed_by,
            dropping: code.dropping,
            is_recursive: &|| is_recursive(*entry),
        };
        let cfg = Cfg::build(new);
        bundles::check(original, new, alignment, found);
        let originals = high_registers::Originals { used: code.used, allocated: code.vector_registers };
        high_registers::check(original, new, alignment, &originals, found);
        expert_scheduling::check(code.program, original, new, &cfg, alignment, found);
        let changed = preserve::check(&subject, &cfg, found);
        if is_kernel {
            defined::check(new, &cfg, alignment, code.entry_after, found);
            first_vector::check(new, alignment, found);
        }
        outstanding::check(new, &cfg, alignment, waits, code.used.named, found);
        xcnt_replay::check(new, &cfg, alignment, found);
        wait_states::check(new, &cfg, alignment, code.replays, found);
        event_hazards::check(original, new, &cfg, alignment, found);
        forwarding::check(new, &cfg, alignment, found);
        changed
    }
}
