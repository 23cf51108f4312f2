//! Kernel descriptors, metadata and site tables of a rewritten object: in step with each other and with the code.

use std::cell::LazyCell;
use std::iter::once;
use std::ops::Range;
use std::sync::OnceLock;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::preload;
use crate::added::AddedKernel;
use crate::code::{KernelCode, check_code};
use crate::finding::{Finding, Rule};
use crate::kernels::allocation::{Allocation, names_flat_scratch};
use crate::template::VerifiedTemplate;
use crate::values::{dropped, scratch};
use wavetap_amdgpu::{Branch, Demand, Memory, Reg, Target};
use wavetap_analysis::cfg::{BodyId, Program};
use wavetap_analysis::dataflow::{RegSet, Summaries, UsedRegisters, callable_registers, reachable_registers};
use wavetap_analysis::kernel::{BodyKind, Image};
use wavetap_object::code_object::{
    CodeObject, ENTRY_ALIGN, Feature, Features, Field, Kernel, KernelDescriptor, KernelMetadata, PartKind, ValueKind,
    initial_registers, metadata,
};
use wavetap_object::elf::Segment;
use wavetap_profile::map::{CounterMode, KernelMap, ObjectMap};
use wavetap_profile::probes::{bounds, branches};
use wavetap_profile::record::{COUNTER, HEADER};
use wavetap_profile::schema::KindSchema;

/// Alignment of a wave's counters in LDS.
const SLICE_ALIGN: u64 = 8;

/// Descriptor fields that instrumentation may change; everything else stays bit by bit.
const MAY_CHANGE: [Field; 15] = [
    Field::GROUP_SEGMENT_FIXED_SIZE,
    // How, is checked in `scratch`.
    Field::PRIVATE_SEGMENT_FIXED_SIZE,
    Field::ENABLE_PRIVATE_SEGMENT,
    Field::ENABLE_SGPR_FLAT_SCRATCH_INIT,
    Field::ACCUM_OFFSET,
    Field::GRANULATED_WORKITEM_VGPR_COUNT,
    Field::GRANULATED_WAVEFRONT_SGPR_COUNT,
    Field::USER_SGPR_COUNT,
    Field::ENABLE_WORKGROUP_ID_X,
    Field::ENABLE_WORKGROUP_ID_Y,
    Field::ENABLE_WORKGROUP_ID_Z,
    Field::ENABLE_VGPR_WORKITEM_ID,
    Field::ENABLE_SGPR_DISPATCH_PTR,
    // To what, is checked in `preload`.
    Field::KERNARG_PRELOAD_LENGTH,
    Field::KERNARG_PRELOAD_OFFSET,
];
/// Metadata numbers that may change with them, and only grow.
const METADATA_MAY_GROW: [&str; 5] =
    [".sgpr_count", ".vgpr_count", ".agpr_count", ".group_segment_fixed_size", ".private_segment_fixed_size"];

/// Everything that the checks of code read, but for the kernels themselves.
#[derive(PartialEq)]
struct Surroundings<'a> {
    image: &'a Image<'a>,
    new_image: &'a Image<'a>,
    /// Where the original ends and new code begins.
    end: u64,
    executable: Vec<&'a Segment>,
    features: Features,
}

impl<'a> Surroundings<'a> {
    fn of(
        original: &CodeObject<'_>,
        rewritten: &'a CodeObject<'_>,
        image: &'a Image<'a>,
        new_image: &'a Image<'a>,
    ) -> Self {
        let executable = rewritten.elf().loads().filter(|load| load.is_executable()).collect();
        Surroundings { image, new_image, end: original.image_end(), executable, features: rewritten.features() }
    }
}

/// Whether the checks of code have nothing before them that they had not when they looked at the other object.
fn is_known(
    other: VerifiedTemplate<'_>,
    target: Target,
    surroundings: &Surroundings<'_>,
    original: &[Kernel],
    rewritten: &[Kernel],
    map: &ObjectMap,
) -> bool {
    let (Ok(image), Ok(new_image)) = (Image::of(other.original), Image::of(other.rewritten)) else { return false };
    other.original.target().is_some_and(|other| other.is_like(target))
        && Surroundings::of(other.original, other.rewritten, &image, &new_image) == *surroundings
        && other.original.kernels() == original
        && other.rewritten.kernels() == rewritten
        && other.map.kernels == map.kernels
}

/// Checks all kernels of a rewritten object, `at_once` or one after the other.
pub(crate) fn check(
    original: &CodeObject<'_>,
    rewritten: &CodeObject<'_>,
    map: &ObjectMap,
    earlier: Option<VerifiedTemplate<'_>>,
    at_once: bool,
    findings: &mut Vec<Finding>,
) {
    let Some(target) = original.target().filter(|target| target.emulated() || target.rewritable()) else {
        let message = format!("what code for {} needs is not known well enough to check it", original.target_id());
        findings.push(Finding::new(Rule::Skeleton, message));
        return;
    };
    let (image, new_image) = match (Image::of(original), Image::of(rewritten)) {
        (Ok(image), Ok(new_image)) => (image, new_image),
        (Err(error), _) | (_, Err(error)) => return findings.push(Finding::new(Rule::Skeleton, error.to_string())),
    };
    let names = |object: &CodeObject<'_>| -> Vec<(PartKind, String)> {
        object.malformed().iter().map(|part| (part.kind, part.name.clone())).collect()
    };
    if names(original) != names(rewritten) {
        findings.push(Finding::new(
            Rule::Skeleton,
            "other kernels, functions, symbols or metadata cannot be read than in the original",
        ));
    }
    let surroundings = Surroundings::of(original, rewritten, &image, &new_image);
    let is_known = earlier
        .is_some_and(|other| is_known(other, target, &surroundings, original.kernels(), rewritten.kernels(), map));
    let executable = surroundings.executable.iter().map(|load| load.address..load.end()).collect();
    let context = Context {
        end: original.image_end(),
        executable,
        features: rewritten.features(),
        target,
        new_image: &new_image,
        whole: OnceLock::new(),
        is_known,
        image: &image,
    };
    let one = |kernel: &Kernel| {
        let mut found = Vec::new();
        let entry = map.kernels.iter().find(|entry| entry.name == kernel.name);
        match (rewritten.kernel(&kernel.name), entry) {
            (None, _) => found.push(Finding::new(Rule::Symbols, "the kernel is gone")),
            (Some(new), None) if new.descriptor != kernel.descriptor => {
                found.push(Finding::new(Rule::Map, "its descriptor changed, but it is not in the site table"));
            }
            (Some(new), None) if new.metadata != kernel.metadata => {
                found.push(Finding::new(Rule::Metadata, "the metadata of a kernel that is not instrumented changed"));
            }
            (Some(_), None) => {}
            (Some(new), Some(entry)) => context.kernel(kernel, new, entry, &mut found),
        }
        found.into_iter().map(|finding| finding.in_kernel(&kernel.name)).collect::<Vec<_>>()
    };
    if at_once {
        findings.par_extend(original.kernels().par_iter().with_max_len(1).flat_map_iter(one));
    } else {
        findings.extend(original.kernels().iter().flat_map(one));
    }
    check_metadata(original, rewritten, map, findings);
}

/// Checks one kernel whose new code is in an object of its own.
pub(crate) fn check_added(added: &AddedKernel<'_>, new_image: &Image<'_>, findings: &mut Vec<Finding>) {
    let AddedKernel { original, rewritten, target, features, image, image_end, code, .. } = *added;
    let context = Context {
        end: image_end,
        executable: once(added.address..added.address + code.len() as u64).collect(),
        features,
        target,
        new_image,
        whole: OnceLock::new(),
        is_known: false,
        image,
    };
    context.kernel(original, rewritten, added.map, findings);
    let same_numbers = |new: &KernelMetadata, old: &KernelMetadata| KernelMetadata {
        sgpr_count: old.sgpr_count,
        vgpr_count: old.vgpr_count,
        agpr_count: old.agpr_count,
        group_segment_fixed_size: old.group_segment_fixed_size,
        private_segment_fixed_size: old.private_segment_fixed_size,
        ..new.clone()
    };
    let is_same = match (&original.metadata, &rewritten.metadata) {
        (Some(old), Some(new)) => same_numbers(new, old) == **old,
        _ => false,
    };
    if !is_same {
        let message = "more changed than the register counts, LDS and scratch memory of the kernel";
        findings.push(Finding::new(Rule::Metadata, message));
    }
}

struct Context<'a> {
    /// Where the original ends and new code begins.
    end: u64,
    /// The executable segments, new ones included.
    executable: Vec<Range<u64>>,
    features: Features,
    target: Target,
    new_image: &'a Image<'a>,
    /// All code of the original, once some kernel needs it.
    whole: OnceLock<Original>,
    /// The code was looked at in another object.
    is_known: bool,
    image: &'a Image<'a>,
}

/// Code of the original, and what is known of it.
struct Original {
    program: Program,
    summaries: Summaries,
    /// What code at the end of an unknown pointer may touch, once it matters.
    callable: OnceLock<UsedRegisters>,
}

impl Original {
    fn of(program: Program) -> Original {
        Original { summaries: Summaries::compute(&program), program, callable: OnceLock::new() }
    }
}

impl Context<'_> {
    fn kernel(&self, old: &Kernel, new: &Kernel, entry: &KernelMap, findings: &mut Vec<Finding>) {
        if old.descriptor_address != new.descriptor_address {
            findings.push(Finding::new(Rule::Descriptor, "the descriptor moved").at(new.descriptor_address));
        }
        // What a kernel has depends on the size of its waves.
        let target = old.descriptor.machine(self.target);
        descriptor_fields((&old.descriptor, &new.descriptor), target, findings);
        launches((old, new), target, findings);
        self.entry(new, target, findings);
        if self.is_known {
            return;
        }
        // Functions may be called by others, too. A kernel without calls needs no other, and is not kept either.
        if self.whole.get().is_none() {
            let alone = Program::build(self.target, self.image, [(old.name.clone(), BodyKind::Kernel, old.entry)]);
            if alone.stands_alone() {
                return self.code((old, new), entry, &Original::of(alone), findings);
            }
        }
        let whole = self.whole.get_or_init(|| Original::of(Program::of(self.target, self.image)));
        self.code((old, new), entry, whole, findings);
    }

    /// The code of an instrumented kernel.
    fn code(&self, (old, new): (&Kernel, &Kernel), entry: &KernelMap, known: &Original, findings: &mut Vec<Finding>) {
        let (target, program, summaries) = (old.descriptor.machine(self.target), &known.program, &known.summaries);
        let Some(id) = program.at(old.entry) else {
            findings.push(Finding::new(Rule::Skeleton, "the original cannot be decoded").at(old.entry));
            return;
        };
        let original = program.body(id);
        let code = Program::build(self.target, self.new_image, [(new.name.clone(), BodyKind::Kernel, new.entry)]);
        self.used_registers((old, new), program, id, &code, target, findings);
        self.lds((old, new), &code, target, entry, findings);
        self.sites(&code, entry, findings);
        let registers = (initial_registers(&old.descriptor, target), initial_registers(&new.descriptor, target));
        let (Ok(entry_before), Ok(entry_after)) = registers else {
            findings.push(
                Finding::new(Rule::Descriptor, "the initial registers contradict each other")
                    .at(new.descriptor_address),
            );
            return;
        };
        let scratch = scratch::added((old, new), program, id, target, findings);
        preload::check((&old.descriptor, &new.descriptor), &entry_before, original, summaries, findings);
        let used = reachable_registers(program, id, || {
            *known.callable.get_or_init(|| callable_registers(program, self.image))
        });
        let dropping = entry.sites.iter().filter(|site| site.kind == *bounds::DROPPED_ACCESS);
        let dropping: FxHashSet<u64> = dropping.map(|site| site.address).collect();
        let allocated = old.descriptor.allocated_vgprs(target);
        // As `Allocation` has it: what is no AGPR is a vector register.
        let vector_registers = match old.descriptor.accum_offset(target) {
            Some(offset) if used.named.highest_agpr().is_some() => offset.min(allocated),
            _ => allocated,
        };
        findings.extend(check_code(&KernelCode {
            program,
            image: self.image,
            kernel: id,
            new: &code,
            entry: new.entry,
            new_code: self.end,
            addresses: &entry.addresses,
            entry_before: &entry_before,
            entry_after: &entry_after,
            vector_registers,
            scratch: (scratch.start, scratch.end),
            used,
            summaries,
            dropping: &dropping,
            replays: matches!(self.features.xnack, Feature::Any | Feature::On),
        }));
    }

    /// The entry lies, aligned, in an executable segment after the original image, and no more is prefetched than is
    /// there.
    fn entry(&self, new: &Kernel, target: Target, findings: &mut Vec<Finding>) {
        let end = self.end;
        let segment = self.executable.iter().find(|load| load.start >= end && load.contains(&new.entry));
        let Some(segment) = segment.filter(|_| new.entry.is_multiple_of(ENTRY_ALIGN)) else {
            findings.push(
                Finding::new(Rule::Descriptor, "the entry is not aligned or not in the new executable segment")
                    .at(new.entry),
            );
            return;
        };
        let prefetched = new.descriptor.prefetched_bytes(target).unwrap_or(0);
        if new.entry + u64::from(prefetched) > segment.end {
            let message =
                format!("{prefetched} bytes of code are prefetched, there are {:#x}", segment.end - new.entry);
            findings.push(Finding::new(Rule::Descriptor, message).at(new.descriptor_address));
        }
    }

    /// Registers of the new code, of the functions that were copied for it and of the original ones that it calls are
    /// allocated.
    fn used_registers(
        &self,
        (old, new): (&Kernel, &Kernel),
        program: &Program,
        id: BodyId,
        code: &Program,
        target: Target,
        findings: &mut Vec<Finding>,
    ) {
        let callees = program.callees(id);
        let bodies = || code.bodies().iter().chain(callees.bodies.iter().map(|id| program.body(*id)));
        let used = bodies().map(|body| UsedRegisters::of_body(body).named).fold(RegSet::EMPTY, RegSet::union);
        let names_flat_scratch = !target.all_sgprs() && bodies().any(names_flat_scratch);
        let is_behind = |kernel: &Kernel, used: RegSet| {
            kernel
                .descriptor
                .accum_offset(target)
                .zip(used.highest_vgpr())
                .is_some_and(|(offset, highest)| u32::from(highest) >= offset)
        };
        let before = || once(program.body(id)).chain(callees.bodies.iter().map(|id| program.body(*id)));
        let vectors_behind = is_behind(new, used)
            && !callees.unknown
            && used.highest_agpr().is_none()
            && before().any(|body| is_behind(old, UsedRegisters::of_body(body).named));
        let allocation =
            Allocation { old, new, target, xnack: self.features.xnack, names_flat_scratch, vectors_behind };
        allocation.check(used, findings);
    }

    /// Sites are original instructions of the kernel or of functions that were copied for it, and code ends where it
    /// should: in padding.
    fn sites(&self, code: &Program, entry: &KernelMap, findings: &mut Vec<Finding>) {
        sites(code, entry, findings);
        let (end, padding) = (self.end, u64::from(self.target.code_end_padding()));
        let new_code = code.bodies().iter().filter(|body| body.entry_address() >= end);
        let last = new_code.map(|body| body.span().end).max().unwrap_or(0);
        let around = self.executable.iter().filter(|load| load.start <= last && last <= load.end);
        let segment = around.map(|load| load.end).max();
        if segment.is_none_or(|end| last + padding > end) {
            let message =
                format!("less than {padding} bytes of padding follow the code: the prefetcher runs past its end");
            findings.push(Finding::new(Rule::Segments, message).at(last));
        }
        for body in code.bodies().iter().filter(|body| body.entry_address() >= end && body.span().start < end) {
            findings.push(
                Finding::new(Rule::Branch, "control goes from new code into the original image").at(body.span().start),
            );
        }
    }

    /// LDS in note and descriptor, and the probes' part of it.
    fn lds(
        &self,
        (old, new): (&Kernel, &Kernel),
        code: &Program,
        target: Target,
        entry: &KernelMap,
        findings: &mut Vec<Finding>,
    ) {
        let (Some(before), Some(now)) = (&old.metadata, &new.metadata) else {
            findings.push(Finding::new(Rule::Metadata, "an instrumented kernel without metadata"));
            return;
        };
        let stated = |kernel: &Kernel| u64::from(kernel.descriptor.get(Field::GROUP_SEGMENT_FIXED_SIZE));
        let static_size = stated(new);
        // HIP launches kernels with what the metadata says: some generators write nothing into the descriptor.
        let kept = (static_size, now.group_segment_fixed_size) == (stated(old), before.group_segment_fixed_size);
        if static_size != now.group_segment_fixed_size && !kept {
            let noted = now.group_segment_fixed_size;
            findings.push(Finding::new(
                Rule::Lds,
                format!("the descriptor says {static_size} bytes of LDS, the metadata {noted}"),
            ));
        }
        if now.group_segment_fixed_size > u64::from(target.lds_bytes()) {
            findings.push(Finding::new(
                Rule::Lds,
                format!("{} bytes of LDS are more than a workgroup may have", now.group_segment_fixed_size),
            ));
        }
        if entry.mode == CounterMode::Lds && target.unified_accum() && old.descriptor.is_set(Field::TG_SPLIT) {
            findings.push(Finding::new(
                Rule::Lds,
                "counters in LDS, which workgroups in threadgroup split mode do not have",
            ));
        }
        let placed = before.args.iter().find(|argument| argument.value_kind == ValueKind::DynamicSharedPointer);
        if let Some(argument) = placed.filter(|_| entry.mode == CounterMode::Lds) {
            let at = argument.offset;
            let message = format!(
                "counters at the end of LDS, where the launcher places what the argument at offset {at} points to"
            );
            findings.push(Finding::new(Rule::Lds, message));
        }
        // The slices of all waves, and what aligning them may cost; counters that find no room there are in memory.
        let waves = waves_per_workgroup(before, target);
        let most = if entry.mode == CounterMode::Lds { slice_bytes(entry) } else { 0 };
        let own = if kept { before.group_segment_fixed_size } else { before.group_segment_fixed_size.max(stated(old)) };
        let slice = match now.group_segment_fixed_size.checked_sub(own) {
            Some(0) => Some(0),
            Some(added) => added
                .checked_sub(SLICE_ALIGN - 1)
                .filter(|slices| slices % (waves * SLICE_ALIGN) == 0)
                .map(|slices| slices / waves),
            None => None,
        };
        let Some(slice) = slice.filter(|slice| *slice <= most) else {
            let message = format!(
                "{own} bytes of LDS became {}, which is no slice of up to {most} bytes for each of {waves} waves more",
                now.group_segment_fixed_size
            );
            return findings.push(Finding::new(Rule::Lds, message));
        };
        let original: LazyCell<FxHashSet<u64>, _> =
            LazyCell::new(|| entry.addresses.iter().map(|pair| pair.rewritten).collect());
        // Functions that are called where they always were are no copies.
        let image_end = self.end;
        for body in code.bodies().iter().filter(|body| body.entry_address() >= image_end) {
            for id in body.ids().filter(|id| body.inst(*id).variant.memory == Memory::Lds) {
                let end = i64::from(body.inst(id).modifiers.offset) + i64::from(COUNTER);
                if end > slice as i64 && !original.contains(&body.address(id)) {
                    let message = format!("{} reaches byte {end} of a slice of {slice}", body.inst(id).name());
                    findings.push(Finding::new(Rule::Lds, message).at(body.address(id)));
                }
            }
        }
    }
}

/// The metadata as a whole: the original's, but for the numbers of instrumented kernels that may grow.
fn check_metadata(original: &CodeObject<'_>, rewritten: &CodeObject<'_>, map: &ObjectMap, findings: &mut Vec<Finding>) {
    let (Some(before), Some(now)) = (original.metadata(), rewritten.metadata()) else {
        if original.metadata().is_some() != rewritten.metadata().is_some() {
            findings.push(Finding::new(Rule::Metadata, "the metadata note is gone"));
        }
        return;
    };
    let Ok(mut expected) = before.value() else {
        return findings.push(Finding::new(Rule::Metadata, "the metadata cannot be read"));
    };
    for kernel in now
        .kernels
        .iter()
        .filter(|kernel| map.kernels.iter().any(|entry| format!("{}.kd", entry.name) == kernel.symbol))
    {
        let numbers = |kernel: &KernelMetadata| {
            [
                kernel.sgpr_count,
                kernel.vgpr_count,
                kernel.agpr_count,
                kernel.group_segment_fixed_size,
                kernel.private_segment_fixed_size,
            ]
        };
        let was = before.kernels.iter().find(|old| old.symbol == kernel.symbol).map(|old| numbers(old));
        for (index, (key, number)) in METADATA_MAY_GROW.into_iter().zip(numbers(kernel)).enumerate() {
            // A number that stayed need not have been written.
            if was.is_none_or(|was| was[index] != number)
                && let Err(error) = metadata::set_kernel_number(&mut expected, &kernel.symbol, key, number)
            {
                findings.push(Finding::new(Rule::Metadata, error.to_string()));
            }
        }
    }
    if !now.is(&expected) {
        findings.push(Finding::new(
            Rule::Metadata,
            "more changed than the register counts, LDS and scratch memory of instrumented kernels",
        ));
    }
}

/// All bits but those of the fields that may change are as they were.
fn descriptor_fields((old, new): (&KernelDescriptor, &KernelDescriptor), target: Target, findings: &mut Vec<Finding>) {
    let mut expected = *old;
    expected.set_entry_byte_offset(new.entry_byte_offset());
    let prefetch = Field::prefetch_size(target);
    for field in MAY_CHANGE.into_iter().filter(|field| may_change(*field, old, target)).chain(prefetch) {
        if expected.set(field, new.get(field)).is_err() {
            findings.push(Finding::new(Rule::Descriptor, "a field holds what it cannot"));
        }
    }
    if expected != *new {
        findings.push(Finding::new(Rule::Descriptor, "fields changed that instrumentation has nothing to do with"));
    }
    for field in [
        Field::ENABLE_WORKGROUP_ID_X,
        Field::ENABLE_WORKGROUP_ID_Y,
        Field::ENABLE_WORKGROUP_ID_Z,
        Field::ENABLE_SGPR_DISPATCH_PTR,
    ] {
        if old.is_set(field) && !new.is_set(field) {
            findings.push(Finding::new(
                Rule::Descriptor,
                "an initial register that the original needs is not enabled any more",
            ));
        }
    }
    let ids = [Field::ENABLE_WORKGROUP_ID_X, Field::ENABLE_WORKGROUP_ID_Y, Field::ENABLE_WORKGROUP_ID_Z];
    let needed_together = ids.into_iter().chain([Field::ENABLE_SGPR_DISPATCH_PTR]).all(|field| new.is_set(field));
    if ids.iter().any(|field| old.is_set(*field) != new.is_set(*field)) && !needed_together {
        let message = "other workgroup ids are enabled: what is inserted reads all of them and the dispatch packet";
        findings.push(Finding::new(Rule::Descriptor, message));
    }
    let brings = [Field::ENABLE_SGPR_DISPATCH_PTR, Field::ENABLE_SGPR_FLAT_SCRATCH_INIT];
    let (before, now) = (old.user_sgpr_count(target), new.user_sgpr_count(target));
    if now < before || now > before && !brings.iter().any(|field| old.is_set(*field) != new.is_set(*field)) {
        let message = format!("{before} user SGPRs became {now} without an address that takes them");
        findings.push(Finding::new(Rule::Descriptor, message));
    }
    if new.get(Field::ENABLE_VGPR_WORKITEM_ID) < old.get(Field::ENABLE_VGPR_WORKITEM_ID) {
        findings.push(Finding::new(Rule::Descriptor, "work-item ids that the original needs are not enabled any more"));
    }
}

/// The largest workgroup that the original's metadata allows and that fitted on a compute unit fits as it is now.
fn launches((old, new): (&Kernel, &Kernel), target: Target, findings: &mut Vec<Finding>) {
    let (Some(before), Some(now)) = (&old.metadata, &new.metadata) else { return };
    let required = before.reqd_workgroup_size.is_some_and(|size| !size.contains(&0));
    let clipped = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let size = clipped(largest_workgroup(before));
    let demand = |kernel: &Kernel, lds: u64| kernel.descriptor.demand(target, clipped(lds), size);
    let (was, is) = (demand(old, before.group_segment_fixed_size), demand(new, now.group_segment_fixed_size));
    if let Some(size) = target.lost_workgroup(&was, &is, required) {
        let limit = target.occupancy(&Demand { workgroup_size: size, ..is }).limit;
        let message = format!(
            "workgroups of {size} work-items do not fit on a compute unit any more: {} vector registers, {} scalar \
                registers, {} bytes of LDS; too much of {limit}",
            is.vgprs, is.sgprs, is.lds_bytes
        );
        findings.push(Finding::new(Rule::Launch, message).at(new.descriptor_address));
    }
    let scratch = |kernel: &Kernel, stated: u64| {
        stated.max(kernel.descriptor.get(Field::PRIVATE_SEGMENT_FIXED_SIZE).into()) * u64::from(target.wave_size())
    };
    let (was, is) = (scratch(old, before.private_segment_fixed_size), scratch(new, now.private_segment_fixed_size));
    let most = u64::from(target.max_wave_scratch());
    if was <= most && is > most {
        let message = format!("a wave needs {is} bytes of scratch memory, and may have {most}");
        findings.push(Finding::new(Rule::Launch, message).at(new.descriptor_address));
    }
}

/// Whether a field of those that may change means on this target what its name says, and may change there.
fn may_change(field: Field, old: &KernelDescriptor, target: Target) -> bool {
    match field {
        Field::ACCUM_OFFSET => target.unified_accum(),
        // Where all waves have the same number of scalar registers, the field stays as it is.
        Field::GRANULATED_WAVEFRONT_SGPR_COUNT => !target.all_sgprs(),
        Field::ENABLE_WORKGROUP_ID_X | Field::ENABLE_WORKGROUP_ID_Y | Field::ENABLE_WORKGROUP_ID_Z => {
            !target.architected_workgroup_ids()
        }
        Field::KERNARG_PRELOAD_LENGTH | Field::KERNARG_PRELOAD_OFFSET => {
            target.has_kernarg_preload() && old.get(Field::KERNARG_PRELOAD_LENGTH) != 0
        }
        _ => true,
    }
}

/// Counter bytes of one wave.
fn slice_bytes(entry: &KernelMap) -> u64 {
    if let Some(placement) = &entry.placement {
        return u64::from(placement.kept) * u64::from(COUNTER);
    }
    entry
        .sites
        .iter()
        .map(|site| u64::from(site.offset.saturating_sub(HEADER)) + u64::from(site.kind.counters() * COUNTER))
        .max()
        .unwrap_or(0)
}

/// Work-items of the largest workgroup that the metadata allows.
fn largest_workgroup(before: &KernelMetadata) -> u64 {
    let required =
        before.reqd_workgroup_size.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z)).filter(|size| *size != 0);
    required.unwrap_or(u64::MAX).min(before.max_flat_workgroup_size)
}

/// Waves of the largest workgroup that the original's metadata allows.
fn waves_per_workgroup(before: &KernelMetadata, target: Target) -> u64 {
    largest_workgroup(before).div_ceil(u64::from(target.wave_size()))
}

/// Sites are original instructions, each of its kind and there once, and their counters do not overlap.
fn sites(code: &Program, entry: &KernelMap, findings: &mut Vec<Finding>) {
    let wanted: FxHashSet<u64> = entry.sites.iter().map(|site| site.address).collect();
    let places = entry
        .addresses
        .iter()
        .filter(|pair| wanted.contains(&pair.original))
        .map(|pair| (pair.original, pair.rewritten));
    let places: FxHashMap<u64, u64> = places.collect();
    let different: FxHashSet<(u64, &KindSchema)> = entry.sites.iter().map(|site| (site.address, &*site.kind)).collect();
    if different.len() != entry.sites.len() {
        findings.push(Finding::new(Rule::Map, "two sites are the same instruction"));
    }
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for site in &entry.sites {
        let mut complain =
            |what: &str| findings.push(Finding::new(Rule::Map, format!("a site at {:#x}, {what}", site.address)));
        // Whether it is the same there as in the original is checked with the code.
        let inst = |place: u64| code.bodies().iter().find_map(|body| body.at(place).map(|id| body.inst(id)));
        match places.get(&site.address).copied().map(inst) {
            None => complain("where no instruction is"),
            // Said elsewhere.
            Some(None) => {}
            Some(Some(inst))
                if site.kind == *branches::SCALAR && !matches!(inst.variant.branch, Branch::Conditional(_)) =>
            {
                complain("which is no branch");
            }
            Some(Some(inst)) if site.kind == *branches::EXEC && !inst.writes().any(|reg| reg.overlaps(Reg::EXEC)) => {
                complain("which leaves EXEC alone");
            }
            Some(Some(inst)) if site.kind == *bounds::DROPPED_ACCESS && !dropped::is_access(inst) => {
                complain("which is no access to global memory");
            }
            Some(Some(_)) => {}
        }
        ranges.push((site.offset, site.offset.saturating_add(site.kind.counters() * COUNTER)));
    }
    ranges.sort_unstable();
    if ranges.first().is_some_and(|first| first.0 < HEADER) || ranges.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        findings.push(Finding::new(Rule::Map, "counters of two sites overlap, or lie in the record's header"));
    }
}
