//! Kernel descriptors, metadata and site tables of a rewritten object: in step with each other and with the code.

use super::finding::{Finding, Rule};
use super::{KernelCode, check_code};
use crate::cfg::{BodyId, Program};
use crate::code_object::{CodeObject, ENTRY_ALIGN, Feature, Field, Kernel, KernelDescriptor, KernelMetadata, initial_registers, metadata};
use crate::dataflow::{RegSet, Summaries, UsedRegisters, WaitSummaries, used_registers};
use crate::isa::{Reg, RegFile, Target, scalar};
use crate::kernel::{Body, BodyKind, Image};
use crate::profile::map::{CounterMode, KernelMap, ObjectMap};
use crate::profile::record::{COUNTER, HEADER};

/// Descriptor fields that instrumentation may change; everything else stays bit by bit.
const MAY_CHANGE: [Field; 10] = [
    Field::GROUP_SEGMENT_FIXED_SIZE,
    Field::ACCUM_OFFSET,
    Field::GRANULATED_WORKITEM_VGPR_COUNT,
    Field::GRANULATED_WAVEFRONT_SGPR_COUNT,
    Field::USER_SGPR_COUNT,
    Field::ENABLE_WORKGROUP_ID_X,
    Field::ENABLE_WORKGROUP_ID_Y,
    Field::ENABLE_WORKGROUP_ID_Z,
    Field::ENABLE_VGPR_WORKITEM_ID,
    Field::ENABLE_SGPR_DISPATCH_PTR,
];
/// Metadata numbers that may change with them, and only grow.
const METADATA_MAY_GROW: [&str; 4] = [".sgpr_count", ".vgpr_count", ".agpr_count", ".group_segment_fixed_size"];
/// Scalar registers behind the numbered ones: VCC alone, with XNACK_MASK, with FLAT_SCRATCH (LLVM, `getNumExtraSGPRs`).
const VCC_SGPRS: u32 = 2;
const XNACK_SGPRS: u32 = 4;
const FLAT_SCRATCH_SGPRS: u32 = 6;

/// Checks all kernels of a rewritten object.
pub(super) fn check(original: &CodeObject<'_>, rewritten: &CodeObject<'_>, map: &ObjectMap, findings: &mut Vec<Finding>) {
    let Some(target) = original.target().filter(|target| target.rewritable()) else {
        let message = format!("code for {} is not rewritten, so what it should be is not known", original.target_id());
        findings.push(Finding::new(Rule::Skeleton, message));
        return;
    };
    let (image, new_image) = match (Image::of(original), Image::of(rewritten)) {
        (Ok(image), Ok(new_image)) => (image, new_image),
        (Err(error), _) | (_, Err(error)) => return findings.push(Finding::new(Rule::Skeleton, error.to_string())),
    };
    let program = Program::of(target, &image);
    let context = Context {
        original,
        rewritten,
        target,
        new_image: &new_image,
        used: used_registers(&program, &image),
        summaries: Summaries::compute(&program),
        wait_summaries: WaitSummaries::compute(&program),
        program: &program,
    };
    for kernel in original.kernels() {
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
        findings.extend(found.into_iter().map(|finding| finding.in_kernel(&kernel.name)));
    }
    context.metadata(map, findings);
}

struct Context<'a> {
    original: &'a CodeObject<'a>,
    rewritten: &'a CodeObject<'a>,
    target: Target,
    new_image: &'a Image<'a>,
    used: UsedRegisters,
    summaries: Summaries,
    wait_summaries: WaitSummaries,
    program: &'a Program,
}

impl Context<'_> {
    fn kernel(&self, old: &Kernel, new: &Kernel, entry: &KernelMap, findings: &mut Vec<Finding>) {
        if old.descriptor_address != new.descriptor_address {
            findings.push(Finding::new(Rule::Descriptor, "the descriptor moved").at(new.descriptor_address));
        }
        descriptor_fields(&old.descriptor, &new.descriptor, findings);
        self.entry(new, findings);
        let Some(id) = self.program.at(old.entry) else {
            findings.push(Finding::new(Rule::Skeleton, "the original cannot be decoded").at(old.entry));
            return;
        };
        let body = match Body::decode(self.program.body(id).target(), self.new_image, &new.name, BodyKind::Kernel, new.entry) {
            Ok(body) => body,
            Err(error) => return findings.push(Finding::new(Rule::Skeleton, error.to_string()).at(new.entry)),
        };
        let image_end = self.original.image_end();
        if body.span().start < image_end {
            findings.push(Finding::new(Rule::Branch, "control goes from new code into the original image").at(body.span().start));
        }
        self.allocation(old, new, id, &body, findings);
        self.lds(old, new, entry, findings);
        sites(self.program.body(id), entry, findings);
        let registers = (initial_registers(&old.descriptor, self.target), initial_registers(&new.descriptor, self.target));
        let (Ok(entry_before), Ok(entry_after)) = registers else {
            findings.push(Finding::new(Rule::Descriptor, "the initial registers contradict each other").at(new.descriptor_address));
            return;
        };
        findings.extend(check_code(&KernelCode {
            program: self.program,
            kernel: id,
            new: &body,
            addresses: &entry.addresses,
            entry_before: &entry_before,
            entry_after: &entry_after,
            used: self.used,
            summaries: &self.summaries,
            wait_summaries: &self.wait_summaries,
            replays: matches!(self.rewritten.features().xnack, Feature::Any | Feature::On),
        }));
    }

    /// The entry lies, aligned, in an executable segment behind the original image.
    fn entry(&self, new: &Kernel, findings: &mut Vec<Finding>) {
        let end = self.original.image_end();
        let executable = self
            .rewritten
            .elf()
            .loads()
            .any(|load| load.is_executable() && load.address >= end && load.address <= new.entry && new.entry < load.end());
        if !new.entry.is_multiple_of(ENTRY_ALIGN) || !executable {
            findings.push(Finding::new(Rule::Descriptor, "the entry is not aligned or not in the new executable segment").at(new.entry));
        }
    }

    /// No instruction uses a register behind the allocation, callees included.
    fn allocation(&self, old: &Kernel, new: &Kernel, id: BodyId, body: &Body, findings: &mut Vec<Finding>) {
        let mut complain = |message: String| findings.push(Finding::new(Rule::Allocation, message).at(new.descriptor_address));
        let callees = self.program.callees(id);
        let own = UsedRegisters::of_body(body).named;
        let used = callees.bodies.iter().fold(own, |used, id| used.union(UsedRegisters::of_body(self.program.body(*id)).named));
        let count = |highest: Option<u16>| highest.map_or(0, |highest| u32::from(highest) + 1);
        let (vectors, accums, scalars) = (count(used.highest_vgpr()), count(used.highest_agpr()), count(used.highest_sgpr()));
        let allocated = new.descriptor.allocated_vgprs(self.target);
        match new.descriptor.accum_offset(self.target) {
            Some(offset) => {
                if vectors > offset.min(allocated) {
                    complain(format!("code uses v{} of {} vector registers", vectors - 1, offset.min(allocated)));
                }
                if accums > 0 && offset + accums > allocated {
                    complain(format!("code uses a{}, accumulation registers are {offset} to {allocated}", accums - 1));
                }
                if old.descriptor.accum_offset(self.target).is_some_and(|before| before > offset) {
                    complain("the accumulation registers begin earlier than before".to_owned());
                }
            }
            None if vectors.max(accums) > allocated => {
                complain(format!("code uses register {} of {allocated} vector registers", vectors.max(accums) - 1));
            }
            None => {}
        }
        let behind = behind_sgprs(used, self.target, self.rewritten.features().xnack);
        if scalars + behind > new.descriptor.allocated_sgprs(self.target) {
            complain(format!(
                "code uses s{} of {} scalar registers, of which {behind} lie behind",
                scalars - 1,
                new.descriptor.allocated_sgprs(self.target)
            ));
        }
        if allocated < old.descriptor.allocated_vgprs(self.target)
            || new.descriptor.allocated_sgprs(self.target) < old.descriptor.allocated_sgprs(self.target)
        {
            complain("fewer registers are allocated than before: functions that nobody knows may use them".to_owned());
        }
        let (Some(before), Some(now)) = (&old.metadata, &new.metadata) else { return };
        if now.vgpr_count > u64::from(allocated) || now.sgpr_count > u64::from(new.descriptor.allocated_sgprs(self.target)) {
            let (vgprs, sgprs) = (now.vgpr_count, now.sgpr_count);
            findings.push(Finding::new(
                Rule::Metadata,
                format!("it counts {vgprs} VGPRs and {sgprs} SGPRs, more than the descriptor allocates"),
            ));
        }
        if now.vgpr_count < before.vgpr_count || now.sgpr_count < before.sgpr_count || now.agpr_count < before.agpr_count {
            findings.push(Finding::new(Rule::Metadata, "it counts fewer registers than before"));
        }
        let unified = self.target.unified_accum();
        let counted =
            if unified && accums > 0 { new.descriptor.accum_offset(self.target).unwrap_or(0) + accums } else { vectors.max(accums) };
        if u64::from(counted) > now.vgpr_count {
            findings.push(Finding::new(Rule::Metadata, format!("it counts {} VGPRs, code uses {counted}", now.vgpr_count)));
        }
    }

    /// LDS in note and descriptor, and the probes' part of it.
    fn lds(&self, old: &Kernel, new: &Kernel, entry: &KernelMap, findings: &mut Vec<Finding>) {
        let (Some(before), Some(now)) = (&old.metadata, &new.metadata) else {
            findings.push(Finding::new(Rule::Metadata, "an instrumented kernel without metadata"));
            return;
        };
        let static_size = u64::from(new.descriptor.get(Field::GROUP_SEGMENT_FIXED_SIZE));
        if static_size != now.group_segment_fixed_size {
            let noted = now.group_segment_fixed_size;
            findings.push(Finding::new(Rule::Lds, format!("the descriptor says {static_size} bytes of LDS, the metadata {noted}")));
        }
        if now.group_segment_fixed_size > u64::from(self.target.lds_bytes()) {
            findings
                .push(Finding::new(Rule::Lds, format!("{} bytes of LDS are more than a workgroup may have", now.group_segment_fixed_size)));
        }
        let slices = if entry.mode == CounterMode::Lds { slice_bytes(entry) * waves_per_workgroup(before, self.target) } else { 0 };
        let added = now.group_segment_fixed_size.checked_sub(before.group_segment_fixed_size);
        if added.is_none_or(|added| added < slices) {
            let message = format!(
                "{} bytes of LDS became {}, the waves' counters need {slices} more",
                before.group_segment_fixed_size, now.group_segment_fixed_size
            );
            findings.push(Finding::new(Rule::Lds, message));
        }
    }

    /// The metadata as a whole: the original's, but for the numbers of instrumented kernels that may grow.
    fn metadata(&self, map: &ObjectMap, findings: &mut Vec<Finding>) {
        let (Some(before), Some(now)) = (self.original.metadata(), self.rewritten.metadata()) else {
            if self.original.metadata().is_some() != self.rewritten.metadata().is_some() {
                findings.push(Finding::new(Rule::Metadata, "the metadata note is gone"));
            }
            return;
        };
        let mut expected = before.value.clone();
        for kernel in now.kernels.iter().filter(|kernel| map.kernels.iter().any(|entry| format!("{}.kd", entry.name) == kernel.symbol)) {
            let numbers = [kernel.sgpr_count, kernel.vgpr_count, kernel.agpr_count, kernel.group_segment_fixed_size];
            let was = before.kernels.iter().find(|old| old.symbol == kernel.symbol);
            let was = was.map(|old| [old.sgpr_count, old.vgpr_count, old.agpr_count, old.group_segment_fixed_size]);
            for (index, (key, number)) in METADATA_MAY_GROW.into_iter().zip(numbers).enumerate() {
                // A number that stayed need not have been written.
                if was.is_none_or(|was| was[index] != number)
                    && let Err(error) = metadata::set_kernel_number(&mut expected, &kernel.symbol, key, number)
                {
                    findings.push(Finding::new(Rule::Metadata, error.to_string()));
                }
            }
        }
        if expected != now.value {
            findings.push(Finding::new(Rule::Metadata, "more changed than the register counts and LDS of instrumented kernels"));
        }
    }
}

/// Scalar registers that the allocation needs behind the numbered ones.
fn behind_sgprs(used: RegSet, target: Target, xnack: Feature) -> u32 {
    let flat_scratch =
        used.iter().any(|reg| reg.file == RegFile::Scalar && (scalar::FLAT_SCRATCH..scalar::XNACK_MASK).contains(&reg.first));
    if flat_scratch || target.architected_flat_scratch() {
        FLAT_SCRATCH_SGPRS
    } else if matches!(xnack, Feature::Any | Feature::On) {
        XNACK_SGPRS
    } else if used.overlaps(Reg::VCC) {
        VCC_SGPRS
    } else {
        0
    }
}

/// All bits but those of the fields that may change are as they were.
fn descriptor_fields(old: &KernelDescriptor, new: &KernelDescriptor, findings: &mut Vec<Finding>) {
    let mut expected = *old;
    expected.set_entry_byte_offset(new.entry_byte_offset());
    for field in MAY_CHANGE {
        if expected.set(field, new.get(field)).is_err() {
            findings.push(Finding::new(Rule::Descriptor, "a field holds what it cannot"));
        }
    }
    if expected != *new {
        findings.push(Finding::new(Rule::Descriptor, "fields changed that instrumentation has nothing to do with"));
    }
    for field in [Field::ENABLE_WORKGROUP_ID_X, Field::ENABLE_WORKGROUP_ID_Y, Field::ENABLE_WORKGROUP_ID_Z, Field::ENABLE_SGPR_DISPATCH_PTR]
    {
        if old.is_set(field) && !new.is_set(field) {
            findings.push(Finding::new(Rule::Descriptor, "an initial register that the original needs is not enabled any more"));
        }
    }
    if new.get(Field::ENABLE_VGPR_WORKITEM_ID) < old.get(Field::ENABLE_VGPR_WORKITEM_ID) {
        findings.push(Finding::new(Rule::Descriptor, "work-item ids that the original needs are not enabled any more"));
    }
}

/// Counter bytes of one wave.
fn slice_bytes(entry: &KernelMap) -> u64 {
    entry
        .sites
        .iter()
        .map(|site| u64::from(site.offset.saturating_sub(HEADER)) + u64::from(site.kind.counters() * COUNTER))
        .max()
        .unwrap_or(0)
}

/// Waves of the largest workgroup that the original's metadata allows.
fn waves_per_workgroup(before: &KernelMetadata, target: Target) -> u64 {
    let required = before.reqd_workgroup_size.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z)).filter(|size| *size != 0);
    required.unwrap_or(u64::MAX).min(before.max_flat_workgroup_size).div_ceil(u64::from(target.wave_size()))
}

/// Sites are original instructions, and their counters do not overlap.
fn sites(original: &Body, entry: &KernelMap, findings: &mut Vec<Finding>) {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for site in &entry.sites {
        if original.at(site.address).is_none() {
            findings.push(Finding::new(Rule::Map, format!("a site at {:#x}, where no instruction is", site.address)));
        }
        ranges.push((site.offset, site.offset.saturating_add(site.kind.counters() * COUNTER)));
    }
    ranges.sort_unstable();
    if ranges.first().is_some_and(|first| first.0 < HEADER) || ranges.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        findings.push(Finding::new(Rule::Map, "counters of two sites overlap, or lie in the record's header"));
    }
}
