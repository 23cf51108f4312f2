//! The code that is instrumented for one kernel: the kernel itself and the functions that it gets copies of.
//!
//! A function is copied for each kernel that reaches it by calls whose targets are known: the copy counts into that kernel's record, and its
//! inserted code uses the registers that were chosen for the kernel, which nothing that the kernel can reach names. Functions have no state of
//! their own to share, so copies cost code and nothing else; calls in them cost what they did. A function that cannot be copied, or is reached through an
//! unknown pointer, runs as it was.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Analysis;
use super::guards;
use super::sites::Planned;
use wavetap_amdgpu::Reg;
use wavetap_analysis::cfg::{BodyId, Cfg};
use wavetap_analysis::dataflow::{Indexing, Liveness, RegSet, Waits};
use wavetap_analysis::kernel::{Body, BodyKind, CallTarget, Flow, Neighbours, Stop};
use wavetap_base::entity::InstId;
use wavetap_object::code_object::KernelDescriptor;

/// A body with what is known of it.
pub(super) struct Part<'a> {
    pub(super) body: &'a Body,
    pub(super) cfg: Cfg,
    pub(super) liveness: Liveness,
    pub(super) neighbours: Neighbours,
    indexing: Indexing,
    /// Its sites.
    pub(super) sites: Vec<Planned>,
}

impl<'a> Part<'a> {
    /// Analyses a body; refuses one that changes how inserted instructions execute.
    pub(super) fn of(analysis: &Analysis<'a>, id: BodyId, descriptor: &KernelDescriptor) -> Result<Part<'a>, Stop> {
        let body = analysis.program.body(id);
        let cfg = Cfg::build(body);
        guards::check_ends(analysis.program, body)?;
        guards::check_mode(body)?;
        guards::check_scheduling(analysis.program, body)?;
        guards::check_allocation(body, descriptor)?;
        guards::check_dealloc(body, &cfg)?;
        let liveness = Liveness::compute(body, &cfg, &analysis.summaries);
        let indexing = Indexing::of(body);
        Ok(Part { body, liveness, neighbours: Neighbours::of(body), indexing, sites: Vec::new(), cfg })
    }

    /// Refuses an insertion at an instruction where vector registers may be indexed at run time, or vector instructions may be skipped.
    pub(super) fn check_modes(&self, id: InstId) -> Result<(), Stop> {
        Ok(guards::check_modes(self.body, &self.indexing, id)?)
    }

    /// The instructions that end the wave.
    pub(super) fn ends(&self) -> impl Iterator<Item = InstId> + '_ {
        self.body.ids().filter(|&inst| self.body.flow(inst) == Flow::End)
    }

    /// Before each instruction, the registers into which loads are under way.
    pub(super) fn pending(&self, analysis: &Analysis<'_>) -> Vec<RegSet> {
        Waits::compute(self.body, &self.cfg, &analysis.waits).all_pending_writes()
    }
}

/// The functions that a kernel gets copies of: all that it reaches by calls of known functions that can be copied. Their sites are not numbered yet.
pub(super) fn functions<'a>(analysis: &Analysis<'a>, kernel: BodyId, descriptor: &KernelDescriptor) -> BTreeMap<BodyId, Part<'a>> {
    let program = analysis.program;
    let mut found = BTreeMap::new();
    if !wavetap_amdgpu::has_operation(program.body(kernel).target(), "s_call_b64") {
        return found;
    }
    let mut work = vec![kernel];
    while let Some(id) = work.pop() {
        for (_, target) in program.body(id).calls() {
            let CallTarget::Known(address) = target else { continue };
            let Some(callee) = program.at(address).filter(|callee| !found.contains_key(callee)) else { continue };
            if let Some(part) = copy(analysis, callee, descriptor) {
                found.insert(callee, part);
                work.push(callee);
            }
        }
    }
    found
}

/// A function to be copied, if nothing in it must stay where it is or keeps code from being inserted.
fn copy<'a>(analysis: &Analysis<'a>, id: BodyId, descriptor: &KernelDescriptor) -> Option<Part<'a>> {
    let body = analysis.program.body(id);
    if body.kind() != BodyKind::Function || body.ids().any(|inst| body.flow(inst) == Flow::IndirectJump) {
        return None;
    }
    let part = Part::of(analysis, id, descriptor).ok()?;
    let sites = super::sites::Table::default().add(body).ok()?;
    let fits = sites.iter().map(|site| site.inst).chain(part.ends()).all(|inst| part.check_modes(inst).is_ok());
    fits.then_some(part)
}

/// Goes over liveness in copied functions again: their callers are the parts and nobody else, so a scalar register is dead where a function returns if none of them reads it
/// afterwards. In functions that may call themselves, or go to another one at their end, everything stays as it was.
pub(super) fn return_to_callers(analysis: &Analysis<'_>, parts: &mut [Part<'_>]) {
    let Some(kernel) = parts.first() else { return };
    let target = kernel.body.target();
    let numbered = (0..target.addressable_sgprs() as u16).map(|number| Reg::scalar(number, 1));
    let asked: RegSet = numbered.chain([Reg::VCC]).collect();
    let by_entry: FxHashMap<u64, usize> = parts.iter().enumerate().map(|(index, part)| (part.body.entry_address(), index)).collect();
    let is_unasked = |part: &Part<'_>| {
        let calls_itself = |id| analysis.program.callees(id).bodies.contains(&id);
        part.body.calls().any(|(inst, _)| matches!(part.body.flow(inst), Flow::TailCall(_)))
            || analysis.program.at(part.body.entry_address()).is_none_or(calls_itself)
    };
    // What is live where each returns: more and more.
    let mut at_return: Vec<RegSet> =
        parts.iter().map(|part| if is_unasked(part) { RegSet::ALL } else { RegSet::ALL.difference(asked) }).collect();
    let mut work: Vec<usize> = (0..parts.len()).collect();
    while let Some(index) = work.pop() {
        let Part { body, cfg, liveness, .. } = &mut parts[index];
        *liveness = Liveness::returning_to(body, cfg, &analysis.summaries, at_return[index]);
        for (inst, target) in body.calls() {
            let CallTarget::Known(address) = target else { continue };
            let Some(&callee) = by_entry.get(&address) else { continue };
            let live = match body.flow(inst) {
                Flow::Call(_) => *liveness.after(inst),
                _ => RegSet::ALL,
            };
            if !live.is_subset(&at_return[callee]) {
                at_return[callee].add_all(&live);
                if !work.contains(&callee) {
                    work.push(callee);
                }
            }
        }
    }
}
