//! What the descriptor and the metadata say of a kernel, and the occupancy that follows.

use crate::disassembly::KernelFacts;
use crate::occupancy::{Needs, Occupancy};
use wavetap_amdgpu::Target;
use wavetap_object::code_object::{CodeObject, Field, Kernel, KernelDescriptor};

/// Workgroups may have this many work-items where the metadata does not say (AMDGPUUsage,
/// "amdgpu-flat-work-group-size").
const DEFAULT_WORKGROUP: u64 = 1024;

/// Lanes of a wave of the processors before those that are known.
const OLDER_WAVE: u32 = 64;

/// The facts of a kernel. `workgroup` is the size of the workgroups it will be launched with, if that is known;
/// otherwise the source's required or largest one is taken. `dynamic_lds` is what launches add to its LDS.
pub(crate) fn kernel_facts(
    code: &CodeObject<'_>,
    kernel: &Kernel,
    workgroup: Option<u32>,
    dynamic_lds: u32,
) -> KernelFacts {
    let metadata = kernel.metadata.as_ref();
    let descriptor = &kernel.descriptor;
    let target = kernel_target(code, kernel);
    let lds_bytes = metadata
        .map_or(descriptor.get(Field::GROUP_SEGMENT_FIXED_SIZE).into(), |metadata| metadata.group_segment_fixed_size);
    let largest = metadata.map(|metadata| metadata.max_flat_workgroup_size).filter(|size| *size > 0);
    let required_workgroup = metadata.and_then(|metadata| metadata.reqd_workgroup_size);
    let required = required_workgroup.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z)).filter(|size| *size > 0);
    let exact = workgroup.map(u64::from).or(required);
    let occupancy = target.map(|target| {
        let saturated = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let needs = Needs {
            vgprs: allocated_vgprs(descriptor, target),
            sgprs: allocated_sgprs(descriptor, target).unwrap_or(0),
            lds_bytes: saturated(lds_bytes).saturating_add(dynamic_lds),
            workgroup: saturated(exact.or(largest).unwrap_or(DEFAULT_WORKGROUP)).clamp(1, target.max_workgroup()),
            exact: exact.is_some(),
            wgp_mode: target.has_wgp_mode() && descriptor.is_set(Field::WGP_MODE),
        };
        Occupancy::of(target, &needs)
    });
    KernelFacts {
        descriptor: kernel.descriptor_address,
        vgprs: metadata.map(|metadata| metadata.vgpr_count),
        allocated_vgprs: target.map(|target| allocated_vgprs(descriptor, target)),
        agprs: metadata.map(|metadata| metadata.agpr_count),
        sgprs: metadata.map(|metadata| metadata.sgpr_count),
        allocated_sgprs: target.and_then(|target| allocated_sgprs(descriptor, target)),
        lds_bytes,
        scratch_bytes: descriptor.get(Field::PRIVATE_SEGMENT_FIXED_SIZE).into(),
        dynamic_stack: metadata
            .map_or(descriptor.is_set(Field::USES_DYNAMIC_STACK), |metadata| metadata.uses_dynamic_stack),
        kernarg_bytes: descriptor.get(Field::KERNARG_SIZE).into(),
        spilled_sgprs: metadata.map(|metadata| metadata.sgpr_spill_count),
        spilled_vgprs: metadata.map(|metadata| metadata.vgpr_spill_count),
        workgroup_size: largest,
        wave_size: target.map_or(OLDER_WAVE, Target::wave_size),
        required_workgroup,
        occupancy,
    }
}

/// Vector registers that a lane is given.
fn allocated_vgprs(descriptor: &KernelDescriptor, target: Target) -> u32 {
    descriptor.allocated_vgprs(target).next_multiple_of(target.vgpr_granule())
}

/// Scalar registers that a wave is given; none where every wave has all of them, whatever the descriptor says.
fn allocated_sgprs(descriptor: &KernelDescriptor, target: Target) -> Option<u32> {
    (target.sgpr_granule() < target.addressable_sgprs()).then(|| descriptor.allocated_sgprs(target))
}

/// The processor with the waves that this kernel has; none for a processor that is not known at all.
pub(crate) fn kernel_target(code: &CodeObject<'_>, kernel: &Kernel) -> Option<Target> {
    Some(kernel.descriptor.machine(Target::by_elf_flags(code.elf().header.flags)?))
}
