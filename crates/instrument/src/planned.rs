//! What all planned code has in common at its end: snippets in their order, with what the modes of the original ask for
//! around them; and what follows from it for descriptor, metadata and occupancy.

use crate::facts::KernelFacts;
use crate::function::ClonedFunction;
use crate::instrumented::{Instrumented, MetadataChange};
use crate::scavenge::registers::{self, Allocation};
use crate::{cost, guards, high_registers, scheduling};
use wavetap_amdgpu::{Demand, Reg, Target};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::{Edits, FunctionEdits, Item, Snippet};
use wavetap_analysis::kernel::{Body, Reason, Refusal, Stop};
use wavetap_base::entity::ProgramPoint;
use wavetap_object::code_object::{Field, KernelDescriptor};
use wavetap_profile::map::{CounterMode, VectorSource};
use wavetap_profile::placement::{CounterPlacement, Placement};

/// Puts a function's snippets in order, those of one point as they were written, with what the modes of the original
/// ask for around them. `bank`: which 256 vector registers their numbers are of; `dissolves`: clauses need not stay.
///
/// # Errors
/// Refused if one of them is where nothing may be inserted.
pub(crate) fn in_order(
    function: &ClonedFunction<'_>,
    bank: u8,
    dissolves: bool,
    mut inserts: Vec<(ProgramPoint, Snippet)>,
) -> Result<Vec<(ProgramPoint, Snippet)>, Stop> {
    for (point, snippet) in &mut inserts {
        if !dissolves {
            guards::check_clause(function.body, &function.neighbours, *point)?;
        }
        scheduling::bracket(function.body, *point, snippet)?;
        high_registers::bracket(function.body, bank, *point, snippet)?;
    }
    inserts.sort_by_key(|(point, _)| *point);
    Ok(inserts)
}

/// Inserted code, and what it needs.
#[derive(Debug)]
pub(crate) struct PlannedCode {
    pub(crate) prologue: Snippet,
    /// Of each function, the kernel first: what is inserted, by place.
    pub(crate) inserts: Vec<Vec<(ProgramPoint, Snippet)>>,
    /// A scalar register that is free wherever code is placed.
    pub(crate) spare_scalar: Option<u16>,
    /// The descriptor with the registers that it needs.
    pub(crate) descriptor: KernelDescriptor,
    /// One more than the highest scalar register that it uses of its own, and the highest vector register.
    pub(crate) sgprs: u32,
    pub(crate) vgprs: u32,
    /// What the metadata says of AGPRs and scratch memory.
    pub(crate) agpr_count: u64,
    pub(crate) private_segment: u64,
    /// Bytes of LDS that a workgroup needs more than before.
    pub(crate) lds_bytes: u32,
    /// Where its counters are.
    pub(crate) mode: CounterMode,
    pub(crate) record_bytes: u32,
    /// How many records waves share by where they run, in code without placed counters.
    pub(crate) slots: Option<u32>,
    pub(crate) vector_registers: VectorSource,
    pub(crate) placement: Option<Placement>,
}

impl PlannedCode {
    /// What follows from it for the kernel: descriptor, metadata, occupancy.
    pub(crate) fn finish(self, facts: &KernelFacts<'_, '_>, allocation: &Allocation<'_>) -> Result<Instrumented, Stop> {
        let KernelFacts { analysis, kernel, metadata, target, functions, .. } = facts;
        let (program, target) = (analysis.program, *target);
        let PlannedCode { prologue, inserts, mut descriptor, sgprs, vgprs, agpr_count, private_segment, .. } = self;
        let mut inserts = inserts.into_iter();
        let of_kernel = inserts.next().unwrap_or_default();
        let clones = functions.iter().skip(1).zip(inserts);
        let clones = clones.map(|(function, inserts)| FunctionEdits { entry: function.body.entry_address(), inserts });
        let mut edits = Edits {
            prologue,
            inserts: of_kernel,
            functions: clones.collect(),
            spare_scalar: self.spare_scalar.map(|register| Reg::scalar(register, 1)),
        };
        if program.bodies().iter().any(Body::sets_scheduling) {
            scheduling::leave_nothing(target, &mut edits)?;
        }
        let extra = self.lds_bytes;
        let (lds_bytes, workgroup_size) = (facts.lds_bytes, facts.workgroup_size);
        // Where they do not agree, they stay as they are.
        let group_segment_fixed_size =
            if extra == 0 { metadata.group_segment_fixed_size } else { u64::from(lds_bytes + extra) };
        if extra != 0 {
            descriptor.set(Field::GROUP_SEGMENT_FIXED_SIZE, lds_bytes + extra)?;
        }
        let mut before = registers::resources(target, &kernel.descriptor, lds_bytes, workgroup_size);
        before.code_bytes =
            functions.iter().flat_map(|function| function.body.insts()).map(|inst| u64::from(inst.size)).sum();
        let mut after = registers::resources(target, &descriptor, lds_bytes + extra, workgroup_size);
        let machine = kernel.descriptor.machine(target);
        let demands = (
            kernel.descriptor.demand(target, lds_bytes, workgroup_size),
            descriptor.demand(target, lds_bytes + extra, workgroup_size),
        );
        if facts.size_is_required {
            (before.waves_per_simd, after.waves_per_simd) =
                (machine.occupancy(&demands.0).waves, machine.occupancy(&demands.1).waves);
        }
        if let Some(size) = machine.lost_workgroup(&demands.0, &demands.1, facts.size_is_required) {
            let limit = machine.occupancy(&Demand { workgroup_size: size, ..demands.1 }).limit;
            let detail = format!(
                "workgroups of {size} work-items would not fit on a compute unit any more: {} vector registers, {} \
                    scalar registers and {} bytes of LDS; too much of {limit}",
                demands.1.vgprs, demands.1.sgprs, demands.1.lds_bytes
            );
            return Err(Refusal::new(Reason::Unlaunchable, detail).into());
        }
        let loss = machine.worst_loss(if facts.size_is_required { workgroup_size } else { 1 }, &demands.0, &demands.1);
        let (named_scalars, named_vectors) = named_registers(target, &edits);
        // Where every wave has the same number, the original may count less than all that can lie after the numbered
        // ones.
        let counted_scalars =
            (sgprs.max(named_scalars) + registers::NAMED_SGPRS).min(target.fixed_sgprs().unwrap_or(u32::MAX));
        let metadata = MetadataChange {
            sgpr_count: metadata.sgpr_count.max(counted_scalars.into()).max(allocation.named_sgprs(&descriptor)),
            vgpr_count: allocation.metadata_vgprs(&descriptor, metadata, vgprs.max(named_vectors), agpr_count),
            agpr_count,
            group_segment_fixed_size,
            private_segment_fixed_size: private_segment,
        };
        let added_cycles = cost::added_cycles(target, after.waves_per_simd, snippets(functions, &edits));
        Ok(Instrumented {
            added_cycles,
            edits,
            descriptor,
            metadata,
            sites: facts.table.sites.clone(),
            record_bytes: self.record_bytes,
            uncounted_callees: facts.uncopied.names(program),
            vector_registers: self.vector_registers,
            mode: self.mode,
            placement: self.placement,
            placement_fallback: facts.is_over_budget().then_some(CounterPlacement::All),
            slots: self.slots,
            records_accesses: facts.needs.records,
            before,
            after,
            loss,
        })
    }
}

/// All inserted code of a kernel, each with how often it is guessed to run. How often a function is called is not
/// known: each counts once.
fn snippets<'e>(functions: &[ClonedFunction<'_>], edits: &'e Edits) -> Vec<(f64, &'e Snippet)> {
    let mut snippets = vec![(1.0, &edits.prologue)];
    let inserts = std::iter::once(&edits.inserts).chain(edits.functions.iter().map(|function| &function.inserts));
    for (function, inserts) in functions.iter().zip(inserts) {
        let times = |inst| function.weights()[function.cfg.block_of(inst).index()];
        snippets.extend(inserts.iter().map(|(point, snippet)| (times(point.inst), snippet)));
    }
    snippets
}

/// One more than the highest numbered scalar register, and than the highest vector register, that inserted code names:
/// what it scavenges need not be among those that the original names.
fn named_registers(target: Target, edits: &Edits) -> (u32, u32) {
    let inserts = edits.inserts.iter().chain(edits.functions.iter().flat_map(|function| &function.inserts));
    let items = inserts.flat_map(|(_, snippet)| &snippet.items);
    let instructions = items.filter_map(|item| if let Item::Inst(inst) = item { Some(inst) } else { None });
    let named: RegSet = instructions.flat_map(|inst| inst.reads().chain(inst.writes())).collect();
    let end = |highest: Option<u16>| highest.map_or(0, |highest| u32::from(highest) + 1);
    (end(named.highest_sgpr_below(target.addressable_sgprs() as u16)), end(named.highest_vgpr()))
}
