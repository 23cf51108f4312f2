//! What is known of one kernel before anything is chosen: its code and that of the functions it gets clones of,
//! analysed once, for every counter mode and register strategy.
//!
//! A function is cloned for each kernel that reaches it by calls whose targets are known: the clone counts into that
//! kernel's record, and its inserted code uses the registers that were chosen for the kernel, which nothing that the
//! kernel can reach names. Functions have no state of their own to share, so clones cost code and nothing else; calls
//! in them cost what they did. A function that cannot be cloned, or is reached through an unknown pointer, runs as it
//! was.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::Analysis;
use crate::block_weights::block_weights;
use crate::guards;
use crate::placement::{PlacedRecord, Restored, nonzero, restored};
use crate::probe::ProbeKind;
use crate::probe::latency::MeasuredLoads;
use crate::probe::table::{PlacedSite, SiteTable};
use crate::probe::time::WaveCounters;
use crate::scavenge::LiveOut;
use crate::uncopied::Uncopied;
use wavetap_amdgpu::{Flags, Opcode, Reg, Target};
use wavetap_analysis::cfg::{BodyId, Cfg, Program};
use wavetap_analysis::dataflow::{
    Indexing, Liveness, MaybeInitialized, RegSet, UsedRegisters, Waits, callable_registers, reachable_registers,
};
use wavetap_analysis::kernel::{Body, BodyKind, BundlingConstraints, CallTarget, Flow, Reason, Refusal, Stop};
use wavetap_analysis::solver::{Edges, Lattice, iterate};
use wavetap_base::entity::InstId;
use wavetap_object::code_object::{Field, Kernel, KernelDescriptor, KernelMetadata};

/// A function that is instrumented, the kernel itself or one of which it gets a clone, with what is known of it.
#[derive(Debug)]
pub(crate) struct ClonedFunction<'a> {
    pub(crate) body: &'a Body,
    pub(crate) cfg: Cfg,
    pub(crate) neighbours: BundlingConstraints,
    liveness: Liveness,
    indexing: Indexing,
    /// Where its waves start if their arguments are preloaded: what is before that is no work of the kernel's.
    pub(crate) preloaded_entry: Option<InstId>,
    /// Its sites.
    pub(crate) sites: Vec<PlacedSite>,
    /// Its loads, if their latency is measured.
    pub(crate) measured_loads: MeasuredLoads,
    pending: OnceCell<Vec<RegSet>>,
    assigned: OnceCell<MaybeInitialized>,
    slow_results: OnceCell<RegSet>,
    weights: OnceCell<Vec<f64>>,
    nonzero: OnceCell<Vec<bool>>,
    restored: OnceCell<Option<Vec<Restored>>>,
}

impl<'a> ClonedFunction<'a> {
    /// Analyses a function; refuses one that changes how inserted instructions execute.
    fn of(
        analysis: &Analysis<'a>,
        id: BodyId,
        descriptor: &KernelDescriptor,
        probes: &[ProbeKind],
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
        let measured_loads = match probes.iter().find(|probe| probe.measures_latency()) {
            Some(probe) => {
                let waits = Waits::compute(body, &cfg, &analysis.waits);
                MeasuredLoads::of(body, &cfg, &neighbours, &waits, *probe == ProbeKind::DrainedLatency)
            }
            None => MeasuredLoads::default(),
        };
        let (preloaded_entry, pending, assigned, slow_results, weights, nonzero, restored) = Default::default();
        Ok(ClonedFunction {
            body,
            cfg,
            neighbours,
            liveness,
            indexing,
            preloaded_entry,
            sites: Vec::new(),
            measured_loads,
            pending,
            assigned,
            slow_results,
            weights,
            nonzero,
            restored,
        })
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
    pub(crate) fn pending(&self, analysis: &Analysis<'_>) -> &[RegSet] {
        self.pending.get_or_init(|| Waits::compute(self.body, &self.cfg, &analysis.waits).all_pending_writes())
    }

    /// Which registers hold anything, where the kernel starts with these.
    pub(crate) fn assigned(&self, at_entry: &RegSet) -> &MaybeInitialized {
        self.assigned.get_or_init(|| MaybeInitialized::compute(self.body, &self.cfg, at_entry))
    }

    /// By block: how often it is executed when the function is called once, as a guess.
    pub(crate) fn weights(&self) -> &[f64] {
        self.weights.get_or_init(|| block_weights(self.body, &self.cfg))
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
    fn is_over_budget(&self) -> bool {
        self.restored.get().is_some_and(Option::is_none)
    }

    /// Registers that hold results of instructions that take longer than others.
    pub(crate) fn slow_results(&self) -> &RegSet {
        let is_slow = |id: &InstId| self.body.inst(*id).variant.flags.intersects(Flags::MFMA | Flags::TRANS);
        self.slow_results.get_or_init(|| self.body.ids().filter(is_slow).flat_map(|id| self.body.writes(id)).collect())
    }
}

/// What is known of one kernel.
#[derive(Debug)]
pub struct KernelFacts<'k, 'a> {
    pub(crate) analysis: &'k Analysis<'a>,
    pub(crate) kernel: &'k Kernel,
    pub(crate) metadata: &'k KernelMetadata,
    pub(crate) id: BodyId,
    pub(crate) target: Target,
    /// The kernel, and the functions that it gets clones of.
    pub(crate) functions: Vec<ClonedFunction<'a>>,
    /// Liveness in them where it is known that their callers are the kernel and each other.
    for_callers: OnceCell<Vec<Liveness>>,
    /// The record of the fewest counters from which all others follow; none if they do not.
    placed: OnceCell<Option<PlacedRecord>>,
    /// Their sites.
    pub(crate) table: SiteTable,
    /// The functions that may run as they were.
    pub(crate) uncopied: Uncopied,
    /// Work-items of the largest workgroup.
    pub(crate) workgroup_size: u32,
    /// Whether all workgroups have that many.
    pub(crate) size_is_required: bool,
    /// Static LDS in bytes.
    pub(crate) lds_bytes: u32,
    /// The registers that the kernel and everything it may call can touch.
    pub(crate) used: UsedRegisters,
    /// Whether all that it may call is known, and nothing calls itself.
    pub(crate) has_bounded_calls: bool,
    /// Whether its accesses are recorded, in sampled workgroups.
    pub(crate) records_accesses: bool,
    /// The counters of its time, if that is measured.
    pub(crate) time: Option<WaveCounters>,
    /// Whether the latency of its loads is measured.
    pub(crate) measures_latency: bool,
}

impl<'k, 'a> KernelFacts<'k, 'a> {
    /// Analyses a kernel, and finds what these probes measure in it.
    ///
    /// # Errors
    /// Refused if it cannot be instrumented correctly in any way.
    pub fn of(
        analysis: &'k Analysis<'a>,
        kernel: &'k Kernel,
        probes: &[ProbeKind],
    ) -> Result<KernelFacts<'k, 'a>, Stop> {
        let program = analysis.program;
        let id = find(program, kernel)?;
        let target = program.body(id).target();
        let mut own = ClonedFunction::of(analysis, id, &kernel.descriptor, probes)?;
        guards::check_preload(own.body, &own.liveness, &kernel.descriptor)?;
        own.preloaded_entry = guards::preloaded_entry(own.body, &kernel.descriptor)?;
        let mut table = SiteTable::default();
        own.sites = table.add(&own, probes)?;
        let clones = clones(analysis, id, &kernel.descriptor, probes);
        let uncopied = Uncopied::of(program, id, |function| clones.contains_key(&function));
        let mut functions = vec![own];
        for mut function in clones.into_values() {
            function.sites = table.add(&function, probes)?;
            functions.push(function);
        }
        let missing = || Refusal::new(Reason::WorkgroupSize, "the metadata does not name the kernel");
        let metadata = kernel.metadata.as_ref().ok_or_else(missing)?;
        let required = metadata
            .reqd_workgroup_size
            .map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z))
            .filter(|&size| size != 0);
        let workgroup_size = match required.unwrap_or(u64::MAX).min(metadata.max_flat_workgroup_size) {
            size if (1..=u64::from(target.max_workgroup())).contains(&size) => size as u32,
            other => {
                return Err(
                    Refusal::new(Reason::WorkgroupSize, format!("workgroups of up to {other} work-items")).into()
                );
            }
        };
        let time = WaveCounters::of(&table.sites);
        let callable = || *analysis.callable.get_or_init(|| callable_registers(program, analysis.image));
        Ok(KernelFacts {
            analysis,
            kernel,
            metadata,
            id,
            target,
            functions,
            for_callers: OnceCell::new(),
            placed: OnceCell::new(),
            table,
            uncopied,
            workgroup_size,
            size_is_required: required.is_some(),
            lds_bytes: lds_bytes(metadata.group_segment_fixed_size, &kernel.descriptor)?,
            time,
            used: reachable_registers(program, id, callable),
            has_bounded_calls: has_bounded_calls(program, id),
            records_accesses: probes.contains(&ProbeKind::Memory),
            measures_latency: probes.iter().any(|probe| probe.measures_latency()),
        })
    }

    /// Vector registers with which all workgroups that the kernel allows fit on a compute unit.
    pub(crate) fn most_vgprs(&self) -> u32 {
        let descriptor = &self.kernel.descriptor;
        let demand = descriptor.demand(self.target, self.lds_bytes, self.workgroup_size);
        descriptor.machine(self.target).most_vgprs(&demand, self.size_is_required)
    }

    /// The record of the fewest counters from which all others follow: that of `place`, once, unless it refuses.
    pub(crate) fn placed(
        &self,
        place: impl FnOnce(&Self) -> Result<PlacedRecord, Stop>,
    ) -> Result<Option<&PlacedRecord>, Stop> {
        if let Some(placed) = self.placed.get() {
            return Ok(placed.as_ref());
        }
        let placed = match place(self) {
            Ok(placed) => Some(placed),
            Err(Stop::Refused(_)) => None,
            Err(stop) => return Err(stop),
        };
        Ok(self.placed.get_or_init(|| placed).as_ref())
    }

    /// Whether the fewest counters were wanted, and finding them took more work than an analysis may take for code of
    /// its length: all are kept then.
    pub(crate) fn is_over_budget(&self) -> bool {
        self.functions.iter().any(ClonedFunction::is_over_budget)
    }

    /// As if [`ClonedFunction::restored`] took too much work.
    #[cfg(test)]
    pub(crate) fn exhaust_budget(&self) {
        self.functions.iter().for_each(|function| assert!(function.restored.set(None).is_ok()));
    }

    /// What a probe does for which counters elsewhere than in global memory are no place, if one does.
    pub(crate) fn needs_global_memory(&self) -> Option<&'static str> {
        match (self.records_accesses, &self.time) {
            (true, _) => Some("accesses are recorded"),
            (false, Some(_)) => Some("times are added up"),
            (false, None) => self.measures_latency.then_some("latencies are added up"),
        }
    }

    /// What is live in each function.
    pub(crate) fn liveness(&self, live_out: LiveOut) -> Vec<&Liveness> {
        match live_out {
            LiveOut::All => self.functions.iter().map(|function| &function.liveness).collect(),
            LiveOut::Callers => {
                self.for_callers.get_or_init(|| for_callers(self.analysis, &self.functions)).iter().collect()
            }
        }
    }

    /// Whether it calls functions that are known.
    pub(crate) fn calls_known_functions(&self) -> bool {
        self.analysis.program.call_sites(self.id).any(|(_, callee)| callee.is_some())
    }
}

/// The functions that a kernel gets clones of: all that it reaches by calls of known functions that can be cloned.
/// Their sites are not in a table yet.
fn clones<'a>(
    analysis: &Analysis<'a>,
    kernel: BodyId,
    descriptor: &KernelDescriptor,
    probes: &[ProbeKind],
) -> BTreeMap<BodyId, ClonedFunction<'a>> {
    let program = analysis.program;
    let mut found = BTreeMap::new();
    if !wavetap_amdgpu::has_operation(program.body(kernel).target(), Opcode::S_CALL_B64) {
        return found;
    }
    let mut work = vec![kernel];
    // Reachability: a function that cannot be cloned ends its path.
    while let Some(id) = work.pop() {
        for (_, target) in program.body(id).calls() {
            let CallTarget::Known(address) = target else { continue };
            let Some(callee) = program.at(address).filter(|callee| !found.contains_key(callee)) else { continue };
            if let Some(function) = clone(analysis, callee, descriptor, probes) {
                found.insert(callee, function);
                work.push(callee);
            }
        }
    }
    found
}

/// A function to be cloned, if nothing in it must stay where it is or prevents that code is inserted.
fn clone<'a>(
    analysis: &Analysis<'a>,
    id: BodyId,
    descriptor: &KernelDescriptor,
    probes: &[ProbeKind],
) -> Option<ClonedFunction<'a>> {
    let body = analysis.program.body(id);
    if body.kind() != BodyKind::Function || body.ids().any(|inst| body.flow(inst) == Flow::IndirectJump) {
        return None;
    }
    let function = ClonedFunction::of(analysis, id, descriptor, probes).ok()?;
    let sites = SiteTable::default().add(&function, probes).ok()?;
    let fits = sites
        .iter()
        .map(|placed| placed.site.inst)
        .chain(function.ends())
        .all(|inst| function.check_modes(inst).is_ok());
    fits.then_some(function)
}

/// Liveness in cloned functions, where their callers are the kernel and each other: a scalar register is dead where a
/// function returns if no caller reads it afterwards. In functions that may call themselves, or go to another one at
/// their end, all is live at their ends.
fn for_callers(analysis: &Analysis<'_>, functions: &[ClonedFunction<'_>]) -> Vec<Liveness> {
    let Some(kernel) = functions.first() else { return Vec::new() };
    let target = kernel.body.target();
    let numbered = (0..target.addressable_sgprs() as u16).map(|number| Reg::scalar(number, 1));
    let narrowed: RegSet = numbered.chain([Reg::VCC]).collect();
    let entry = |(index, function): (usize, &ClonedFunction<'_>)| (function.body.entry_address(), index);
    let by_entry: FxHashMap<u64, usize> = functions.iter().enumerate().map(entry).collect();
    let keeps_all = |function: &ClonedFunction<'_>| {
        let calls_itself = |id| analysis.program.callees(id).bodies.contains(&id);
        function.body.calls().any(|(inst, _)| matches!(function.body.flow(inst), Flow::TailCall(_)))
            || analysis.program.at(function.body.entry_address()).is_none_or(calls_itself)
    };
    // What is live where each returns: only grows.
    let at_return = |function| if keeps_all(function) { RegSet::ALL } else { RegSet::ALL.difference(narrowed) };
    let mut at_return: Vec<RegSet> = functions.iter().map(at_return).collect();
    let mut all: Vec<Liveness> = functions.iter().map(|function| function.liveness.clone()).collect();
    let callees = |body: &Body| -> Vec<(InstId, usize)> {
        let known = |(inst, target)| match target {
            CallTarget::Known(address) => Some((inst, *by_entry.get(&address)?)),
            CallTarget::Unknown => None,
        };
        body.calls().filter_map(known).collect()
    };
    let calls: Vec<Vec<(InstId, usize)>> = functions.iter().map(|function| callees(function.body)).collect();
    let to_callees = calls.iter().map(|calls| calls.iter().map(|(_, callee)| *callee).collect()).collect();
    iterate(&Edges::new(to_callees, [0]), |caller| {
        let ClonedFunction { body, cfg, .. } = &functions[caller];
        all[caller] = Liveness::returning_to(body, cfg, &analysis.summaries, at_return[caller]);
        let mut changed = false;
        for &(inst, callee) in &calls[caller] {
            let live = match body.flow(inst) {
                Flow::Call(_) => all[caller].after(inst),
                _ => &RegSet::ALL,
            };
            changed |= at_return[callee].join(live);
        }
        changed
    });
    all
}

/// The kernel's decoded body.
pub(crate) fn find(program: &Program, kernel: &Kernel) -> Result<BodyId, Stop> {
    if let Some(id) = program.at(kernel.entry) {
        if program.body(id).kind() == BodyKind::Kernel {
            return Ok(id);
        }
        return Err(Refusal::at(Reason::KernelReturns, kernel.entry, "the kernel is also called as a function").into());
    }
    let error =
        program.undecodable().iter().find(|(_, address, _)| *address == kernel.entry).map(|(_, _, error)| error);
    let detail = error.map_or_else(|| "its code was not decoded".to_owned(), ToString::to_string);
    Err(Refusal { reason: Reason::Undecodable, detail, address: error.and_then(wavetap_base::error::Error::offset) }
        .into())
}

/// Static LDS: the runtime takes it from the metadata. The descriptor says the same or nothing.
fn lds_bytes(metadata: u64, descriptor: &KernelDescriptor) -> Result<u32, Stop> {
    let stated = descriptor.get(Field::GROUP_SEGMENT_FIXED_SIZE);
    match u32::try_from(metadata) {
        Ok(bytes) => Ok(bytes.max(stated)),
        Err(_) => Err(Refusal::new(Reason::LdsSize, format!("{metadata} bytes of static LDS")).into()),
    }
}

/// Whether all that a kernel may call is known, and nothing calls itself.
fn has_bounded_calls(program: &Program, kernel: BodyId) -> bool {
    let callees = program.callees(kernel);
    !callees.unknown && callees.bodies.iter().all(|callee| !program.callees(*callee).bodies.contains(callee))
}
