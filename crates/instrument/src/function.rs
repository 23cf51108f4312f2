//! A function that is instrumented: its code, and what is known of it whatever is inserted. Analyses that not every
//! kernel needs are made when they are first asked for.

use std::cell::OnceCell;

use crate::analysis::Analysis;
use crate::block_weights::block_weights;
use crate::guards;
use crate::placement::{Restored, nonzero, restored};
use crate::site::PlacedSite;
use wavetap_amdgpu::Flags;
use wavetap_analysis::cfg::{BodyId, Cfg};
use wavetap_analysis::dataflow::{Definitions, Indexing, Liveness, MaybeInitialized, RegSet, Waits};
use wavetap_analysis::kernel::{Body, BundlingConstraints, Flow, Stop};
use wavetap_base::entity::InstId;
use wavetap_object::code_object::KernelDescriptor;

/// A function that is instrumented, the kernel itself or one of which it gets a clone, with what is known of it.
#[derive(Debug)]
pub struct ClonedFunction<'a> {
    analysis: &'a Analysis<'a>,
    pub(crate) body: &'a Body,
    pub(crate) cfg: Cfg,
    pub(crate) neighbours: BundlingConstraints,
    pub(crate) liveness: Liveness,
    indexing: Indexing,
    /// Where its waves start if their arguments are preloaded: what is before that is no work of the kernel's.
    pub(crate) preloaded_entry: Option<InstId>,
    /// Its sites.
    pub(crate) sites: Vec<PlacedSite>,
    pending: OnceCell<Vec<RegSet>>,
    assigned: OnceCell<MaybeInitialized>,
    slow_results: OnceCell<RegSet>,
    weights: OnceCell<Vec<f64>>,
    nonzero: OnceCell<Vec<bool>>,
    restored: OnceCell<Option<Vec<Restored>>>,
}

impl<'a> ClonedFunction<'a> {
    /// Analyses a function; refuses one that changes how inserted instructions execute.
    pub(crate) fn of(
        analysis: &'a Analysis<'a>,
        id: BodyId,
        descriptor: &KernelDescriptor,
    ) -> Result<ClonedFunction<'a>, Stop> {
        let body = analysis.program.body(id);
        let cfg = Cfg::build(body);
        guards::check_ends(analysis.program, body)?;
        guards::check_mode(body)?;
        guards::check_scheduling(analysis.program, body)?;
        guards::check_allocation(body, descriptor)?;
        guards::check_dealloc(body, &cfg)?;
        let liveness = Liveness::compute(body, &cfg, &analysis.summaries);
        let (indexing, neighbours) = (Indexing::of(body), BundlingConstraints::of(body));
        let (preloaded_entry, pending, assigned, slow_results, weights, nonzero, restored) = Default::default();
        Ok(ClonedFunction {
            analysis,
            body,
            cfg,
            neighbours,
            liveness,
            indexing,
            preloaded_entry,
            sites: Vec::new(),
            pending,
            assigned,
            slow_results,
            weights,
            nonzero,
            restored,
        })
    }

    /// The decoded instructions.
    #[must_use]
    pub fn body(&self) -> &'a Body {
        self.body
    }

    /// Its basic blocks.
    #[must_use]
    pub fn cfg(&self) -> &Cfg {
        &self.cfg
    }

    /// Which instructions nothing may come between: clauses and others that the hardware takes as one.
    #[must_use]
    pub fn bundling(&self) -> &BundlingConstraints {
        &self.neighbours
    }

    /// Its first instruction that counts as work of the function: code that loads arguments for firmware that preloads
    /// none comes before that.
    #[must_use]
    pub fn entry(&self) -> InstId {
        self.preloaded_entry.unwrap_or(self.body.entry())
    }

    /// Whether an instruction is of the code before [`ClonedFunction::entry`], which no probe measures.
    #[must_use]
    pub fn is_before_entry(&self, id: InstId) -> bool {
        self.preloaded_entry.is_some_and(|start| (self.body.entry()..start).contains(&id))
    }

    /// Which waits complete which memory operations. Computed anew by each call.
    #[must_use]
    pub fn waits(&self) -> Waits<'_> {
        Waits::compute(self.body, &self.cfg, &self.analysis.waits)
    }

    /// Which instructions may have written what others read. Computed anew by each call.
    pub(crate) fn definitions(&self) -> Definitions<'_> {
        Definitions::new(self.body, &self.cfg, &self.analysis.summaries)
    }

    /// Refuses an insertion at an instruction where vector registers may be indexed at run time, or vector instructions
    /// may be skipped.
    pub(crate) fn check_modes(&self, id: InstId) -> Result<(), Stop> {
        Ok(guards::check_modes(self.body, &self.indexing, id)?)
    }

    /// The instructions that end the wave.
    pub(crate) fn ends(&self) -> impl Iterator<Item = InstId> + '_ {
        self.body.ids().filter(|&inst| self.body.flow(inst) == Flow::End)
    }

    /// Before each instruction, the registers into which loads are outstanding.
    pub(crate) fn pending(&self) -> &[RegSet] {
        self.pending.get_or_init(|| self.waits().all_pending_writes())
    }

    /// Which registers hold anything, where the kernel starts with these.
    pub(crate) fn assigned(&self, at_entry: &RegSet) -> &MaybeInitialized {
        self.assigned.get_or_init(|| MaybeInitialized::compute(self.body, &self.cfg, at_entry))
    }

    /// By block: how often it is executed when the function is called once, as a guess.
    pub(crate) fn weights(&self) -> &[f64] {
        self.weights.get_or_init(|| block_weights(self.body, &self.cfg))
    }

    /// How often an instruction is executed when the function is called once: a guess, from how deep in loops it is.
    #[must_use]
    pub fn weight(&self, inst: InstId) -> f64 {
        self.weights()[self.cfg.block_of(inst).index()]
    }

    /// Before each instruction, whether EXEC is certain to have a lane.
    pub(crate) fn nonzero(&self) -> &[bool] {
        self.nonzero.get_or_init(|| nonzero(self.body, &self.cfg))
    }

    /// Where EXEC is again what it was before; none if that takes more work than a function of its length may.
    pub(crate) fn restored(&self) -> Option<&[Restored]> {
        self.restored.get_or_init(|| restored(self.body, &self.cfg).ok()).as_deref()
    }

    /// Whether [`ClonedFunction::restored`] was wanted and took too much work.
    pub(crate) fn is_over_budget(&self) -> bool {
        self.restored.get().is_some_and(Option::is_none)
    }

    /// As if [`ClonedFunction::restored`] took too much work.
    #[cfg(test)]
    pub(crate) fn exhaust_budget(&self) {
        assert!(self.restored.set(None).is_ok());
    }

    /// Registers that hold results of instructions that take longer than others.
    pub(crate) fn slow_results(&self) -> &RegSet {
        let is_slow = |id: &InstId| self.body.inst(*id).variant.flags.intersects(Flags::MFMA | Flags::TRANS);
        self.slow_results.get_or_init(|| self.body.ids().filter(is_slow).flat_map(|id| self.body.writes(id)).collect())
    }
}
