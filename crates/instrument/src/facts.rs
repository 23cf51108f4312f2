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

use crate::analysis::Analysis;
use crate::function::ClonedFunction;
use crate::guards;
use crate::placement::PlacedRecord;
use crate::probe::{FunctionProbe, Needs, Probe, SiteTable};
use crate::scavenge::LiveOut;
use crate::uncopied::Uncopied;
use wavetap_amdgpu::{Opcode, Reg, Target};
use wavetap_analysis::cfg::{BodyId, Program};
use wavetap_analysis::dataflow::{Liveness, RegSet, UsedRegisters, callable_registers, reachable_registers};
use wavetap_analysis::kernel::{Body, BodyKind, CallTarget, Flow, Reason, Refusal, Stop};
use wavetap_analysis::solver::{Edges, Lattice, iterate};
use wavetap_base::entity::InstId;
use wavetap_object::code_object::{Field, KernargPreload, Kernel, KernelDescriptor, KernelMetadata};

/// What is known of one kernel.
#[derive(Debug)]
pub struct KernelFacts<'k, 'a> {
    pub(crate) analysis: &'k Analysis<'a>,
    pub(crate) kernel: &'k Kernel,
    pub(crate) metadata: &'k KernelMetadata,
    pub(crate) id: BodyId,
    pub(crate) target: Target,
    /// The kernel, and the functions that it gets clones of.
    pub(crate) functions: Vec<ClonedFunction<'k>>,
    /// Of each function: what each probe measures in it.
    probes: Vec<Vec<Box<dyn FunctionProbe>>>,
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
    /// Arguments that the original finds preloaded, and no code of it loads.
    pub(crate) preload: Option<KernargPreload>,
    /// What inserted code reads at sites, once that is asked for.
    reads: OnceCell<RegSet>,
    /// What the probes need of its inserted code.
    pub(crate) needs: Needs,
}

impl<'k, 'a> KernelFacts<'k, 'a> {
    /// Analyses a kernel, and finds what these probes measure in it.
    ///
    /// # Errors
    /// Refused if it cannot be instrumented correctly in any way.
    pub fn of(
        analysis: &'k Analysis<'a>,
        kernel: &'k Kernel,
        probes: &[&'static dyn Probe],
    ) -> Result<KernelFacts<'k, 'a>, Stop> {
        let program = analysis.program;
        let id = find(program, kernel)?;
        let target = program.body(id).target();
        let mut own = ClonedFunction::of(analysis, id, &kernel.descriptor)?;
        let preload = guards::preload(own.body, &kernel.descriptor)?;
        own.preloaded_entry = guards::preloaded_entry(own.body, &kernel.descriptor)?;
        let mut table = SiteTable::default();
        let measured = prepare(&own, probes)?;
        own.sites = table.add(&own, probes, &measured);
        let clones = clones(analysis, id, &kernel.descriptor, probes);
        let uncopied = Uncopied::of(program, id, |function| clones.contains_key(&function));
        let (mut functions, mut of_functions) = (vec![own], vec![measured]);
        for (mut function, measured) in clones.into_values() {
            function.sites = table.add(&function, probes, &measured);
            functions.push(function);
            of_functions.push(measured);
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
        let callable = || *analysis.callable.get_or_init(|| callable_registers(program, analysis.image));
        Ok(KernelFacts {
            analysis,
            kernel,
            metadata,
            id,
            target,
            functions,
            probes: of_functions,
            for_callers: OnceCell::new(),
            placed: OnceCell::new(),
            table,
            uncopied,
            workgroup_size,
            size_is_required: required.is_some(),
            lds_bytes: lds_bytes(metadata.group_segment_fixed_size, &kernel.descriptor)?,
            used: reachable_registers(program, id, callable),
            has_bounded_calls: has_bounded_calls(program, id),
            preload,
            reads: OnceCell::new(),
            needs: Needs::together(probes),
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
        self.functions.iter().for_each(ClonedFunction::exhaust_budget);
    }

    /// What each probe measures in a function, by its number.
    pub(crate) fn probes(&self, function: usize) -> &[Box<dyn FunctionProbe>] {
        self.probes.get(function).map_or(&[], Vec::as_slice)
    }

    /// Whether inserted code reads registers of the original code at a site.
    pub(crate) fn reads_at_sites(&self) -> bool {
        self.read_at_sites() != RegSet::EMPTY
    }

    /// The registers of the original code that inserted code reads at sites.
    pub(crate) fn read_at_sites(&self) -> RegSet {
        *self.reads.get_or_init(|| self.compute_reads())
    }

    fn compute_reads(&self) -> RegSet {
        let mut read = RegSet::EMPTY;
        for (function, probes) in self.functions.iter().zip(&self.probes) {
            for placed in &function.sites {
                if let Some(probe) = probes.get(placed.probe) {
                    read = read.union(probe.reads(function, &placed.site));
                }
            }
        }
        read
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

/// What each probe measures in a function.
fn prepare(function: &ClonedFunction<'_>, probes: &[&'static dyn Probe]) -> Result<Vec<Box<dyn FunctionProbe>>, Stop> {
    probes.iter().map(|probe| probe.prepare(function)).collect()
}

/// A function to be cloned, with what each probe measures in it.
type Clone<'k> = (ClonedFunction<'k>, Vec<Box<dyn FunctionProbe>>);

/// The functions that a kernel gets clones of: all that it reaches by calls of known functions that can be cloned.
/// Their sites are not in a table yet.
fn clones<'k>(
    analysis: &'k Analysis<'_>,
    kernel: BodyId,
    descriptor: &KernelDescriptor,
    probes: &[&'static dyn Probe],
) -> BTreeMap<BodyId, Clone<'k>> {
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
fn clone<'k>(
    analysis: &'k Analysis<'_>,
    id: BodyId,
    descriptor: &KernelDescriptor,
    probes: &[&'static dyn Probe],
) -> Option<Clone<'k>> {
    let body = analysis.program.body(id);
    if body.kind() != BodyKind::Function || body.ids().any(|inst| body.flow(inst) == Flow::IndirectJump) {
        return None;
    }
    let function = ClonedFunction::of(analysis, id, descriptor).ok()?;
    let measured = prepare(&function, probes).ok()?;
    let sites = measured.iter().flat_map(|probe| probe.sites()).map(|site| site.inst);
    let fits = sites.chain(function.ends()).all(|inst| function.check_modes(inst).is_ok());
    fits.then_some((function, measured))
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
