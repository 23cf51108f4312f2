//! Probes: what is counted, as edits of a kernel, and what they need of registers, LDS and the kernel descriptor.
//!
//! [`branches`] plans the branch probe for one kernel: a snippet at each instruction that narrows EXEC and at each scalar branch, a prologue that
//! claims a record, and an epilogue at each end of the wave. Nothing is placed here and nothing is written; a kernel that cannot be
//! instrumented correctly is refused with its reason.
//!
//! Inserted code keeps its state in registers that no code of the kernel, nor anything it can call, names. Those are looked for inside the kernel's
//! allocation first; then the allocation grows; then snippets borrow what they need: scalar registers, with lanes of a vector register as memory, or lanes
//! of vector registers, with scalar registers as memory, or both, with accumulation registers or scratch memory as memory. No allocation is ever lowered.
//!
//! Functions that a kernel reaches by calls of known targets are copied for it and instrumented like it ([`FunctionEdits`]).
#![forbid(unsafe_code)]

mod asm;
mod borrow;
mod branch_probe;
mod entry;
mod epilogue;
mod first_vector;
mod flat_scratch;
mod group_memory;
mod guards;
mod high_registers;
mod homes;
pub mod layout;
mod lent_vectors;
mod mask_probe;
mod originals;
mod parts;
mod plan;
mod prologue;
mod registers;
mod scheduling;
mod settle;
mod sites;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use smallvec::SmallVec;

use wavetap_amdgpu::{Condition, Loss, Reg, Target};
use wavetap_analysis::cfg::{BodyId, Program};
use wavetap_analysis::dataflow::{
    Assigned, Liveness, RegSet, Summaries, UsedRegisters, WaitSummaries, callable_registers, reachable_registers,
};
use wavetap_analysis::kernel::edit::{Edits, FunctionEdits, Item, Snippet};
use wavetap_analysis::kernel::{Body, BodyKind, Image, Reason, Refusal, Stop};
use wavetap_base::entity::{ProgramPoint, Side};
use wavetap_object::code_object::{Field, Kernel, KernelDescriptor, KernelMetadata};
use wavetap_profile::map::{self, CounterMode, Resources, Site};
use wavetap_profile::record::{COUNTER, HEADER};

pub use originals::end_of_wave;
pub use registers::resources;

use borrow::{Borrowed, Registers, VectorSource};
use entry::ScratchAccess;
use homes::Homes;
use originals::Originals;
use parts::Part;
use plan::{Counters, Plan, Slices};
use registers::{Allocation, NUMBERED_VGPRS, Scalars, Vectors};
use sites::{Planned, Probe};

/// A code object's code with what is known of it as a whole: made once, used for each kernel.
#[derive(Debug)]
pub struct Analysis<'a> {
    program: &'a Program,
    image: &'a Image<'a>,
    summaries: Summaries,
    waits: WaitSummaries,
    /// What code at the end of an unknown pointer may touch, once somebody asked.
    callable: OnceLock<UsedRegisters>,
    always_borrow: bool,
    always_move: Option<MovedTo>,
}

/// Where inserted code moves what is in the vector registers that it borrows whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovedTo {
    /// To accumulation registers that no code names.
    Accum,
    /// To scratch memory behind what the kernel itself has of it.
    Scratch,
}

/// Where a kernel's inserted code gets vector registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Supply {
    /// No original code names them.
    Own,
    /// Lanes of them are borrowed, and kept in scalar registers meanwhile.
    Lanes,
    /// They are borrowed whole.
    Moved(MovedTo),
}

/// Where vector registers come from if nothing else is left.
const LAST_RESORT: Supply = Supply::Moved(MovedTo::Scratch);

/// What counts as live where a copied function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtReturn {
    /// Everything.
    All,
    /// What its callers read afterwards ([`parts::return_to_callers`]).
    Wanted,
}

impl From<Supply> for map::VectorSource {
    fn from(supply: Supply) -> map::VectorSource {
        match supply {
            Supply::Own => map::VectorSource::Unused,
            Supply::Lanes => map::VectorSource::Lanes,
            Supply::Moved(MovedTo::Accum) => map::VectorSource::Accumulation,
            Supply::Moved(MovedTo::Scratch) => map::VectorSource::Scratch,
        }
    }
}

impl<'a> Analysis<'a> {
    /// Analyses what kernels share: what calls may read, write and leave outstanding.
    #[must_use]
    pub fn new(program: &'a Program, image: &'a Image<'a>) -> Analysis<'a> {
        let (summaries, waits) = (Summaries::compute(program), WaitSummaries::compute(program));
        Analysis { program, image, summaries, waits, callable: OnceLock::new(), always_borrow: false, always_move: None }
    }

    /// Makes inserted code borrow its scalar registers at each place even where some are unused. The scalar allocation then grows for the
    /// prologue alone; probes are longer.
    #[must_use]
    pub fn borrowing(self) -> Analysis<'a> {
        Analysis { always_borrow: true, ..self }
    }

    /// Makes inserted code borrow scalar registers and whole vector registers at each place even where some are unused.
    #[must_use]
    pub fn moving(self, to: MovedTo) -> Analysis<'a> {
        Analysis { always_move: Some(to), ..self }
    }
}

/// What to instrument, and how.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The kernel with its descriptor and metadata.
    pub kernel: &'a Kernel,
    /// Where counters live while it runs.
    pub mode: CounterMode,
    /// Its index in the site table.
    pub index: u32,
    /// Virtual address of the control block in the rewritten object.
    pub control: u64,
    /// How many of a SIMD's waves the kernel may lose to its counters, at most; any number if not said.
    pub max_occupancy_loss: Option<u32>,
}

/// Numbers of a kernel's metadata that change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataChange {
    /// `.sgpr_count`
    pub sgpr_count: u64,
    /// `.vgpr_count`
    pub vgpr_count: u64,
    /// `.agpr_count`
    pub agpr_count: u64,
    /// `.group_segment_fixed_size`
    pub group_segment_fixed_size: u64,
    /// `.private_segment_fixed_size`
    pub private_segment_fixed_size: u64,
}

impl MetadataChange {
    /// What is to be written into the metadata of the kernel, of which it says `before` so far.
    #[must_use]
    pub fn numbers(&self, before: &KernelMetadata) -> SmallVec<[(&'static str, u64); 5]> {
        let always = [
            (".sgpr_count", self.sgpr_count),
            (".vgpr_count", self.vgpr_count),
            (".group_segment_fixed_size", self.group_segment_fixed_size),
        ];
        // Few kernels need more of these, and not all metadata have them.
        let seldom = [
            (".agpr_count", self.agpr_count, before.agpr_count),
            (".private_segment_fixed_size", self.private_segment_fixed_size, before.private_segment_fixed_size),
        ];
        let changed = seldom.into_iter().filter(|(_, now, before)| now != before).map(|(key, now, _)| (key, now));
        always.into_iter().chain(changed).collect()
    }
}

/// A planned instrumentation of one kernel.
#[derive(Debug, Clone)]
pub struct Instrumented {
    /// What to insert.
    pub edits: Edits,
    /// The descriptor, but for its entry.
    pub descriptor: KernelDescriptor,
    /// The metadata's new numbers.
    pub metadata: MetadataChange,
    /// The sites, in the order of their counters: the kernel's by address, then those of its functions. Without source lines.
    pub sites: Vec<Site>,
    /// Size of the kernel's records.
    pub record_bytes: u32,
    /// Functions whose branches are not counted, or not always: their originals may run. `?` stands for unknown ones.
    pub uncounted_callees: Vec<String>,
    /// Where the vector registers come from.
    pub vector_registers: map::VectorSource,
    /// What the kernel needs as it was.
    pub before: Resources,
    /// What it needs with the edits; the size of the new code is not known here and 0.
    pub after: Resources,
    /// What it costs in occupancy with the workgroup size for which that is most.
    pub loss: Loss,
}

/// Plans the branch probe for one kernel.
///
/// # Errors
/// Refused if it cannot be done correctly; failed if the kernel's descriptor contradicts itself or an instruction cannot be built.
pub fn branches(analysis: &Analysis<'_>, request: &Request<'_>) -> Result<Instrumented, Stop> {
    let loss = |planned: &Instrumented| planned.before.waves_per_simd.saturating_sub(planned.after.waves_per_simd);
    // Nothing says how large the workgroups of launches will be.
    let costs_too_much = |planned: &Instrumented| {
        let Loss { workgroup_size, before, .. } = planned.loss;
        let lost = planned.loss.waves();
        request.max_occupancy_loss.filter(|most| lost > *most).map(|most| {
            let detail =
                format!("with workgroups of {workgroup_size}, {lost} of {before} waves per SIMD would be lost, and at most {most} may be");
            Refusal::new(Reason::OccupancyLoss, detail)
        })
    };
    if let Some(to) = analysis.always_move {
        return match plan(analysis, request, Supply::Moved(to), AtReturn::All) {
            Err(Stop::Refused(_)) => plan(analysis, request, Supply::Moved(to), AtReturn::Wanted),
            planned => planned,
        };
    }
    let own = plan(analysis, request, Supply::Own, AtReturn::All);
    let mut refusal = match own {
        Ok(planned) => match costs_too_much(&planned) {
            None => return Ok(planned),
            Some(refusal) => refusal,
        },
        Err(Stop::Refused(refusal)) if matches!(refusal.reason, Reason::VectorRegisters | Reason::ScalarRegisters) => refusal,
        Err(stop) => return Err(stop),
    };
    // What borrows vector registers asks for few more of them or none, and takes longer; the longer, the later it comes here.
    for at_return in [AtReturn::All, AtReturn::Wanted] {
        let mut costly = None;
        for supply in [Supply::Lanes, Supply::Moved(MovedTo::Accum), LAST_RESORT] {
            match plan(analysis, request, supply, at_return) {
                Ok(planned) if costs_too_much(&planned).is_some() => {}
                Ok(planned) if loss(&planned) > 0 => costly = costly.or(Some(planned)),
                Ok(planned) => return Ok(planned),
                Err(Stop::Refused(last)) if supply == LAST_RESORT && at_return == AtReturn::All && refusal.reason == last.reason => {
                    refusal.detail = format!("{}; and none can be moved to scratch memory: {}", refusal.detail, last.detail);
                    refusal.address = refusal.address.or(last.address);
                }
                Err(Stop::Refused(_)) => {}
                Err(stop) => return Err(stop),
            }
        }
        let calls = |id| analysis.program.call_sites(id).any(|(_, callee)| callee.is_some());
        if costly.is_some() || !find(analysis.program, request.kernel).is_ok_and(calls) {
            return costly.ok_or(Stop::Refused(refusal));
        }
    }
    Err(Stop::Refused(refusal))
}

/// Whether launches of a kernel may need LDS after its static one, so that counters there could leave them none. `told` says that the compiler of the code object
/// names such kernels by an argument, as compilers do from code object version 5 on; otherwise anything that looks like it counts.
///
/// # Errors
/// Refused if its code is not known.
pub fn may_have_dynamic_lds(program: &Program, kernel: &Kernel, told: bool) -> Result<bool, Stop> {
    let id = find(program, kernel)?;
    Ok(kernel.metadata.as_ref().is_some_and(|metadata| group_memory::may_be_dynamic(program, id, metadata, told)))
}

/// Plans with vector registers from one source.
fn plan(analysis: &Analysis<'_>, request: &Request<'_>, supply: Supply, at_return: AtReturn) -> Result<Instrumented, Stop> {
    let kernel = request.kernel;
    let id = find(analysis.program, kernel)?;
    let target = analysis.program.body(id).target();
    let mut kernel_part = Part::of(analysis, id, &kernel.descriptor)?;
    guards::check_preload(kernel_part.body, &kernel_part.liveness, &kernel.descriptor)?;
    let mut table = sites::Table::default();
    kernel_part.sites = table.add(kernel_part.body)?;
    let functions = parts::functions(analysis, id, &kernel.descriptor);
    let originals = Originals::of(analysis.program, id, |function| functions.contains_key(&function));
    let mut parts = vec![kernel_part];
    for mut part in functions.into_values() {
        part.sites = table.add(part.body)?;
        parts.push(part);
    }
    if at_return == AtReturn::Wanted {
        parts::return_to_callers(analysis, &mut parts);
    }

    let metadata = kernel.metadata.as_ref().ok_or_else(|| Refusal::new(Reason::WorkgroupSize, "the metadata does not name the kernel"))?;
    let required = metadata.reqd_workgroup_size.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z)).filter(|&size| size != 0);
    let workgroup_size = match required.unwrap_or(u64::MAX).min(metadata.max_flat_workgroup_size) {
        size if (1..=u64::from(target.max_workgroup())).contains(&size) => size as u32,
        other => return Err(Refusal::new(Reason::WorkgroupSize, format!("workgroups of up to {other} work-items")).into()),
    };
    let lds_bytes = lds_bytes(metadata.group_segment_fixed_size, &kernel.descriptor)?;
    let counters = table.counters();
    let slices = match request.mode {
        CounterMode::Global => None,
        CounterMode::Lds => {
            group_memory::check(target, kernel, metadata)?;
            originals.check_return(analysis.program)?;
            Some(Slices::plan(target, &table.ends(), workgroup_size, lds_bytes))
        }
        CounterMode::Register => {
            return Err(Refusal::new(Reason::CounterMode, "the branch probe keeps its counters in LDS or in memory").into());
        }
    };

    let mut descriptor = kernel.descriptor;
    let scratch = if supply == LAST_RESORT { ScratchAccess::of(target) } else { ScratchAccess::Given };
    let sets_flat_scratch = scratch == ScratchAccess::FlatScratch;
    let entry = entry::Entry::extend(target, &mut descriptor, scratch)?;
    let allocation = Allocation {
        target,
        descriptor: &kernel.descriptor,
        used: used(analysis, id),
        accum: metadata.agpr_count,
        bounded_calls: has_bounded_calls(analysis.program, id),
        keeps_flat_scratch: sets_flat_scratch && flat_scratch::stays(analysis.program, id, entry.original()),
    };
    allocation.check_names()?;
    let mut free = allocation.free_scalars(entry.scalars());
    // Where too few scalar registers are unused, every snippet borrows what it needs; where too few vector registers are, these.
    let borrow = analysis.always_borrow || matches!(supply, Supply::Moved(_));
    let kept = if borrow { None } else { Scalars::take(|count, align| free.take(count, align)).ok() };
    let (mut terms, mut slice_start, mut homes) = (None, None, None);
    let vectors = match supply {
        Supply::Own => allocation.choose_vectors()?,
        Supply::Lanes => {
            // What is borrowed has to be found again: not both kinds of registers can be.
            if kept.is_none() || allocation.used.indexed {
                return Err(Refusal::new(Reason::VectorRegisters, "no vector registers are free, and none can be borrowed").into());
            }
            slice_start = if slices.is_some() { Some(free.take(1, 1)?) } else { None };
            // Whole pairs, as for the two that vector instructions read.
            let pairs = std::iter::from_fn(|| free.take(2, 2).ok()).flat_map(|first| [first, first + 1]);
            let slots = pairs.take(lent_vectors::MOST_SLOTS).collect();
            terms = Some(lent_vectors::Terms { slots, end: allocation.vgprs().min(NUMBERED_VGPRS.into()) as u16 });
            Vectors::behind_ids(target)
        }
        Supply::Moved(to) => {
            let vectors = homes::choose(target, &parts)?;
            homes = Some(Homes::find(to, &allocation, metadata, homes::count(&vectors), &mut free)?);
            vectors
        }
    };
    let (index, control) = (request.index, request.control);
    let plan = Plan { target, vectors, kept, slice_start, homes, sets_flat_scratch, slices, kernel: index, control };
    let (prologue, prologue_end) = prologue::prologue(&plan, &entry, first_vector::sequence(parts[0].body, &entry)?)?;
    // FLAT_SCRATCH lies behind all numbered registers, also those of the original.
    let original_end = allocation.used.named.highest_sgpr().filter(|_| sets_flat_scratch).map_or(0, |highest| u32::from(highest) + 1);
    let keeps = kept.is_some() || homes.and_then(Homes::resource).is_some();
    let sgprs = prologue_end.max(if keeps { free.end } else { 0 }).max(original_end);
    let vgprs = vectors.end();
    allocation.grow(&mut descriptor, sgprs, vgprs)?;
    let (agpr_count, private_segment) = match homes {
        None => (metadata.agpr_count, metadata.private_segment_fixed_size),
        Some(homes) => homes.allocate(&allocation, metadata, &mut descriptor, homes::count(&vectors))?,
    };

    let end = allocation.sgprs().max(sgprs);
    let mut inserts = Vec::new();
    for part in &parts {
        let pending = if kept.is_none() || terms.is_some() { part.pending(analysis) } else { Vec::new() };
        let assigned = (!pending.is_empty()).then(|| Assigned::compute(part.body, &part.cfg, &entry.original_scalars()));
        let lender = Lender { part, kept, terms: terms.as_ref(), homes, pending, assigned, end };
        inserts.push(insertions(&plan, &lender, part)?);
    }
    let mut inserts = inserts.into_iter();
    let of_kernel = inserts.next().unwrap_or_default();
    let of_functions = parts[1..].iter().zip(inserts).map(|(part, inserts)| FunctionEdits { entry: part.body.entry_address(), inserts });
    let mut edits = Edits {
        prologue,
        inserts: of_kernel,
        functions: of_functions.collect(),
        spare_scalar: kept.map(|scalars| Reg::scalar(scalars.saved_scc, 1)),
    };

    if analysis.program.bodies().iter().any(Body::sets_scheduling) {
        scheduling::leave_nothing(target, &mut edits)?;
    }
    let extra = slices.map_or(0, |slices| slices.extra);
    if descriptor.get(Field::GROUP_SEGMENT_FIXED_SIZE) != 0 || extra != 0 {
        descriptor.set(Field::GROUP_SEGMENT_FIXED_SIZE, lds_bytes + extra)?;
    }
    let mut before = registers::resources(target, &kernel.descriptor, lds_bytes, workgroup_size);
    before.code_bytes = parts.iter().flat_map(|part| part.body.insts()).map(|inst| u64::from(inst.size)).sum();
    let mut after = registers::resources(target, &descriptor, lds_bytes + extra, workgroup_size);
    let machine = kernel.descriptor.machine(target);
    let demands =
        (kernel.descriptor.demand(target, lds_bytes, workgroup_size), descriptor.demand(target, lds_bytes + extra, workgroup_size));
    if required.is_some() {
        (before.waves_per_simd, after.waves_per_simd) = (machine.occupancy(&demands.0).waves, machine.occupancy(&demands.1).waves);
    }
    let loss = machine.worst_loss(if required.is_some() { workgroup_size } else { 1 }, &demands.0, &demands.1);
    let (named_scalars, named_vectors) = named_registers(target, &edits);
    // Where every wave has the same number, the original may count less than all that can lie behind the numbered ones.
    let counted_scalars = (sgprs.max(named_scalars) + registers::NAMED_SGPRS).min(target.fixed_sgprs().unwrap_or(u32::MAX));
    let metadata = MetadataChange {
        sgpr_count: metadata.sgpr_count.max(counted_scalars.into()).max(allocation.named_sgprs(&descriptor)),
        vgpr_count: allocation.metadata_vgprs(&descriptor, metadata, vgprs.max(named_vectors), agpr_count),
        agpr_count,
        group_segment_fixed_size: u64::from(lds_bytes + extra),
        private_segment_fixed_size: private_segment,
    };
    Ok(Instrumented {
        edits,
        descriptor,
        metadata,
        sites: table.sites,
        record_bytes: HEADER + counters * COUNTER,
        uncounted_callees: originals.names(analysis.program),
        vector_registers: supply.into(),
        before,
        after,
        loss,
    })
}

/// One more than the highest numbered scalar register, and than the highest vector register, that inserted code names: what it borrows need not be among
/// those that the original names.
fn named_registers(target: Target, edits: &Edits) -> (u32, u32) {
    let inserts = edits.inserts.iter().chain(edits.functions.iter().flat_map(|function| &function.inserts));
    let items = inserts.flat_map(|(_, snippet)| &snippet.items);
    let instructions = items.filter_map(|item| if let Item::Inst(inst) = item { Some(inst) } else { None });
    let named: RegSet = instructions.flat_map(|inst| inst.reads().chain(inst.writes())).collect();
    let end = |highest: Option<u16>| highest.map_or(0, |highest| u32::from(highest) + 1);
    (end(named.highest_sgpr_below(target.addressable_sgprs() as u16)), end(named.highest_vgpr()))
}

/// The kernel's decoded body.
fn find(program: &Program, kernel: &Kernel) -> Result<BodyId, Stop> {
    if let Some(id) = program.at(kernel.entry) {
        if program.body(id).kind() == BodyKind::Kernel {
            return Ok(id);
        }
        return Err(Refusal::at(Reason::KernelReturns, kernel.entry, "the kernel is also called as a function").into());
    }
    let error = program.undecodable().iter().find(|(_, address, _)| *address == kernel.entry).map(|(_, _, error)| error);
    let detail = error.map_or_else(|| "its code was not decoded".to_owned(), ToString::to_string);
    Err(Refusal { reason: Reason::Undecodable, detail, address: error.and_then(wavetap_base::error::Error::offset) }.into())
}

/// Static LDS: the runtime takes it from the metadata. The descriptor says the same or nothing.
fn lds_bytes(metadata: u64, descriptor: &KernelDescriptor) -> Result<u32, Stop> {
    let stated = descriptor.get(Field::GROUP_SEGMENT_FIXED_SIZE);
    match u32::try_from(metadata) {
        Ok(bytes) => Ok(bytes.max(stated)),
        Err(_) => Err(Refusal::new(Reason::LdsSize, format!("{metadata} bytes of static LDS")).into()),
    }
}

/// The registers that the kernel and everything it may call can touch.
fn used(analysis: &Analysis<'_>, id: BodyId) -> UsedRegisters {
    let callable = || *analysis.callable.get_or_init(|| callable_registers(analysis.program, analysis.image));
    reachable_registers(analysis.program, id, callable)
}

/// Whether all that a kernel may call is known, and nothing calls itself.
fn has_bounded_calls(program: &Program, kernel: BodyId) -> bool {
    let callees = program.callees(kernel);
    !callees.unknown && callees.bodies.iter().all(|callee| !program.callees(*callee).bodies.contains(callee))
}

/// A body's snippets, by their place.
fn insertions(plan: &Plan, lender: &Lender<'_>, part: &Part<'_>) -> Result<Vec<(ProgramPoint, Snippet)>, Stop> {
    let mut inserts = Vec::new();
    for planned in &part.sites {
        part.check_modes(planned.inst)?;
        probe(plan, lender, &part.liveness, planned, &mut inserts)?;
    }
    for end in part.ends() {
        part.check_modes(end)?;
        let point = ProgramPoint { inst: guards::place_before_end(part.body, &part.cfg, end), side: Side::Before };
        let (plan, here) = lender.at_end(plan, point)?;
        inserts.push((point, epilogue::epilogue(&plan, &here, point.inst != end)?));
    }
    for (point, snippet) in &mut inserts {
        guards::check_clause(part.body, &part.neighbours, *point)?;
        scheduling::bracket(part.body, *point, snippet)?;
        high_registers::bracket(part.body, *point, snippet)?;
    }
    inserts.sort_by_key(|(point, _)| *point);
    Ok(inserts)
}

/// Where snippets get their registers.
struct Lender<'a> {
    part: &'a Part<'a>,
    /// Scalar registers: the same everywhere, or else borrowed from the original code for as long as the snippet runs.
    kept: Option<Scalars>,
    /// Where lanes of vector registers are borrowed.
    terms: Option<&'a lent_vectors::Terms>,
    /// Where vector registers are borrowed whole.
    homes: Option<Homes>,
    /// Before each instruction, the registers into which loads are under way; empty where nothing is borrowed.
    pending: Vec<RegSet>,
    /// Which registers hold anything; none where nothing is borrowed.
    assigned: Option<Assigned>,
    /// One more than the highest numbered scalar register of the allocation.
    end: u32,
}

impl Lender<'_> {
    /// The registers of a snippet, and the plan with its vector registers.
    fn at(&self, plan: &Plan, point: ProgramPoint) -> Result<(Plan, Registers), Stop> {
        let Lender { part: Part { body, cfg, liveness, .. }, pending, .. } = self;
        let assigned = self.assigned.as_ref().map_or(RegSet::ALL, |assigned| assigned.at(body, cfg, point));
        let scalars = match self.kept {
            Some(scalars) => Borrowed::Kept(scalars),
            None => {
                let accessed: RegSet = body.reads(point.inst).chain(body.writes(point.inst)).collect();
                let taken = accessed.union(plan.own());
                let lent = Borrowed::lend(self.end, liveness.at(point), &assigned, &pending[point.inst.index()], &taken);
                lent.map_err(|refusal| Refusal { address: Some(body.address(point.inst)), ..refusal })?
            }
        };
        if let Some(homes) = self.homes {
            let pending = &pending[point.inst.index()];
            let moves = homes.moves(&plan.vectors, &plan.own(), self.part, pending, point, self.end)?;
            return Ok((*plan, Registers::new(scalars, VectorSource::Moved(moves))));
        }
        let Some(terms) = self.terms else { return Ok((*plan, Registers::new(scalars, VectorSource::Own))) };
        let (vectors, loan) = terms.lend(self.part, &assigned, &pending[point.inst.index()], point)?;
        Ok((Plan { vectors, ..*plan }, Registers::new(scalars, VectorSource::Lanes(loan))))
    }

    /// The registers of a snippet before the end of a wave: nothing needs the original's vector registers any more.
    fn at_end(&self, plan: &Plan, point: ProgramPoint) -> Result<(Plan, Registers), Stop> {
        match (&self.terms, self.kept) {
            (Some(_), Some(scalars)) => {
                let lanes = VectorSource::Lanes(lent_vectors::Loan::default());
                Ok((*plan, Registers::new(Borrowed::Kept(scalars), lanes)))
            }
            _ => self.at(plan, point),
        }
    }
}

/// The snippets of one site.
fn probe(
    plan: &Plan,
    lender: &Lender<'_>,
    liveness: &Liveness,
    planned: &Planned,
    inserts: &mut Vec<(ProgramPoint, Snippet)>,
) -> Result<(), Stop> {
    let counters = Counters { offset: planned.offset, count: planned.probe.kind().counters() };
    let before = ProgramPoint { inst: planned.inst, side: Side::Before };
    let after = ProgramPoint { inst: planned.inst, side: Side::After };
    let scc_is_live = |point| liveness.at(point).overlaps(Reg::SCC);
    let (here_plan, here) = lender.at(plan, before)?;
    match planned.probe {
        Probe::Mask { mask, complemented } => {
            inserts.push((before, mask_probe::before_mask(&here_plan, &here, mask, complemented, counters)?));
        }
        Probe::Compare => {
            inserts.push((before, mask_probe::before_compare(&here_plan, &here)?));
            let (plan, here) = lender.at(plan, after)?;
            inserts.push((after, mask_probe::after_compare(&plan, &here, scc_is_live(after), counters)?));
        }
        Probe::Branch(condition) => {
            let live = scc_is_live(before) || matches!(condition, Condition::Scc0 | Condition::Scc1);
            inserts.push((before, branch_probe::before_branch(&here_plan, &here, condition, live, counters)?));
        }
    }
    Ok(())
}
