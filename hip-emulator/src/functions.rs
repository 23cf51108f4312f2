//! What a program asks about its kernels.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use wavetap::code_object::KernelMetadata;
use wavetap::isa::{Demand, Target};

use crate::entry_point::entry_points;
use crate::images::KernelRef;
use crate::kernarg::Shape;
use crate::lock::runtime;
use crate::raw;
use crate::status::*;

/// `hipFuncAttributes`.
#[repr(C)]
struct FunctionAttributes {
    binary_version: c_int,
    cache_mode_ca: c_int,
    const_size_bytes: usize,
    local_size_bytes: usize,
    max_dynamic_shared_size_bytes: c_int,
    max_threads_per_block: c_int,
    num_regs: c_int,
    preferred_shmem_carveout: c_int,
    ptx_version: c_int,
    shared_size_bytes: usize,
}

/// `hipFuncAttribute`: those that can be set.
const ATTRIBUTE_DYNAMIC_LDS: c_int = 8;
const ATTRIBUTE_CARVEOUT: c_int = 9;

/// The kernel of a host stub.
pub(crate) fn stub(function: *const c_void) -> Outcome<KernelRef> {
    runtime().code.kernels.get(&(function as usize)).cloned().ok_or(INVALID_DEVICE_FUNCTION)
}

/// The kernel of a `hipFunction_t`.
pub(crate) fn function(handle: *mut c_void) -> Outcome<KernelRef> {
    let index = (handle as usize).checked_sub(1).ok_or(INVALID_HANDLE)?;
    runtime().code.functions.get(index).cloned().ok_or(INVALID_HANDLE)
}

/// A kernel's metadata and the device's target with waves of the size that the kernel has.
fn look_up(kernel: &KernelRef) -> Outcome<(Arc<KernelMetadata>, Target)> {
    let mut runtime = runtime();
    let (kernel, target) = (runtime.kernel(kernel)?, runtime.device()?.target());
    let lanes = u32::try_from(kernel.wavefront_size).map_err(|_| INVALID_VALUE)?;
    Ok((kernel, target.with_wave_size(lanes).unwrap_or(target)))
}

fn attributes(kernel: &KernelRef) -> Outcome<FunctionAttributes> {
    let (kernel, target) = look_up(kernel)?;
    let int = |value: u64| c_int::try_from(value).unwrap_or(c_int::MAX);
    let version: c_int = target
        .name()
        .trim_start_matches("gfx")
        .chars()
        .take_while(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .unwrap_or(0);
    Ok(FunctionAttributes {
        binary_version: version,
        cache_mode_ca: 0,
        const_size_bytes: 0,
        local_size_bytes: kernel.private_segment_fixed_size as usize,
        max_dynamic_shared_size_bytes: int(
            u64::from(target.lds_bytes()).saturating_sub(kernel.group_segment_fixed_size)
        ),
        max_threads_per_block: int(kernel.max_flat_workgroup_size),
        num_regs: int(kernel.vgpr_count),
        preferred_shmem_carveout: 0,
        ptx_version: version,
        shared_size_bytes: kernel.group_segment_fixed_size as usize,
    })
}

fn attribute(kernel: &KernelRef, attribute: c_int) -> Outcome<c_int> {
    let all = attributes(kernel)?;
    let int = |value: usize| c_int::try_from(value).unwrap_or(c_int::MAX);
    // `hipFunction_attribute` in its order.
    Ok(match attribute {
        0 => all.max_threads_per_block,
        1 => int(all.shared_size_bytes),
        2 => int(all.const_size_bytes),
        3 => int(all.local_size_bytes),
        4 => all.num_regs,
        5 => all.ptx_version,
        6 => all.binary_version,
        7 => all.cache_mode_ca,
        8 => all.max_dynamic_shared_size_bytes,
        9 => all.preferred_shmem_carveout,
        _ => return Err(INVALID_VALUE),
    })
}

/// Workgroups that a multiprocessor holds at once, as AMD's runtime counts them.
fn workgroups_per_unit(kernel: &KernelMetadata, target: Target, threads: u32, dynamic_lds: u64) -> u32 {
    target.workgroups_by_runtime(&demand(kernel, target, threads, dynamic_lds))
}

fn demand(kernel: &KernelMetadata, target: Target, threads: u32, dynamic_lds: u64) -> Demand {
    let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Demand {
        vgprs: number(kernel.vgpr_count),
        sgprs: number(kernel.sgpr_count),
        lds_bytes: number(kernel.group_segment_fixed_size.saturating_add(dynamic_lds)),
        workgroup_size: threads,
        wgp_mode: target.has_wgp_mode(),
    }
}

/// Workgroups of a launch that the device holds at once, by AMD's runtime and by its registers and LDS.
pub(crate) fn resident_workgroups(kernel: &KernelRef, shape: &Shape) -> Outcome<u64> {
    let (kernel, target) = look_up(kernel)?;
    let threads = shape.workgroup.iter().product();
    let units = runtime().facts()?.compute_units;
    let demand = demand(&kernel, target, threads, shape.dynamic_lds.into());
    Ok(u64::from(target.workgroups_by_runtime(&demand).min(target.workgroups(&demand))) * units as u64)
}

fn max_workgroups(out: *mut c_int, kernel: &KernelRef, threads: c_int, dynamic_lds: usize) -> Outcome {
    let (kernel, target) = look_up(kernel)?;
    let threads = u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or(INVALID_VALUE)?;
    raw::store(out, workgroups_per_unit(&kernel, target, threads, dynamic_lds as u64) as c_int)
}

fn best_size(grid: *mut c_int, block: *mut c_int, kernel: &KernelRef, dynamic_lds: usize, limit: c_int) -> Outcome {
    let (kernel, target) = look_up(kernel)?;
    let most = kernel.max_flat_workgroup_size.min(target.max_workgroup().into()) as u32;
    let most = u32::try_from(limit).ok().filter(|limit| *limit > 0).map_or(most, |limit| limit.min(most));
    let (size, workgroups) = target.workgroup_by_runtime(&demand(&kernel, target, most, dynamic_lds as u64));
    let units = runtime().facts()?.compute_units;
    raw::store(grid, workgroups as c_int * units)?;
    raw::store(block, size as c_int)
}

entry_points! {
    /// Sizes and limits of a kernel.
    fn hipFuncGetAttributes(out: *mut c_void, function: *const c_void) {
        if out.is_null() {
            return Err(INVALID_VALUE);
        }
        raw::store(out.cast::<FunctionAttributes>(), attributes(&stub(function)?)?)
    }

    /// One size or limit of a kernel.
    fn hipFuncGetAttribute(out: *mut c_int, which: c_int, function: *mut c_void) {
        raw::store(out, attribute(&self::function(function)?, which)?)
    }

    /// Asks for more LDS than usual, or for another share of it: all there is may always be used.
    fn hipFuncSetAttribute(function: *const c_void, attribute: c_int, value: c_int) {
        let most = attributes(&stub(function)?)?.max_dynamic_shared_size_bytes;
        match attribute {
            ATTRIBUTE_DYNAMIC_LDS if (0..=most).contains(&value) => Ok(()),
            // In percent, or as the library likes.
            ATTRIBUTE_CARVEOUT if (-1..=100).contains(&value) => Ok(()),
            _ => Err(INVALID_VALUE),
        }
    }

    /// Caches do not matter here.
    fn hipFuncSetCacheConfig(_function: *const c_void, config: c_int) {
        if (0..=3).contains(&config) { Ok(()) } else { Err(INVALID_VALUE) }
    }

    /// Banks of LDS do not matter here.
    fn hipFuncSetSharedMemConfig(_function: *const c_void, _config: c_int) {
        Ok(())
    }

    /// LDS that a launch may add where a compute unit is to hold so many workgroups.
    fn hipOccupancyAvailableDynamicSMemPerBlock(
        out: *mut usize, function: *const c_void, workgroups: c_int, threads: c_int
    ) {
        let (kernel, target) = look_up(&stub(function)?)?;
        let limit = kernel.max_flat_workgroup_size.min(target.max_workgroup().into());
        let workgroups = u64::try_from(workgroups).ok().filter(|count| *count > 0).ok_or(INVALID_VALUE)?;
        if !(1..=limit).contains(&u64::try_from(threads).unwrap_or(0)) {
            return Err(INVALID_VALUE);
        }
        let granule = u64::from(target.lds_granule());
        let each = u64::from(target.lds_bytes()) / workgroups / granule * granule;
        raw::store(out, each.saturating_sub(kernel.group_segment_fixed_size) as usize)
    }

    /// Workgroups of a size that a compute unit holds.
    fn hipOccupancyMaxActiveBlocksPerMultiprocessor(
        out: *mut c_int, function: *const c_void, threads: c_int, dynamic_lds: usize
    ) {
        max_workgroups(out, &stub(function)?, threads, dynamic_lds)
    }

    /// Workgroups of a size that a compute unit holds.
    fn hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        out: *mut c_int,
        function: *const c_void,
        threads: c_int,
        dynamic_lds: usize,
        _flags: c_uint,
    ) {
        max_workgroups(out, &stub(function)?, threads, dynamic_lds)
    }

    /// Workgroups of a size that a compute unit holds.
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        out: *mut c_int, function: *mut c_void, threads: c_int, dynamic_lds: usize
    ) {
        max_workgroups(out, &self::function(function)?, threads, dynamic_lds)
    }

    /// Workgroups of a size that a compute unit holds.
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        out: *mut c_int,
        function: *mut c_void,
        threads: c_int,
        dynamic_lds: usize,
        _flags: c_uint,
    ) {
        max_workgroups(out, &self::function(function)?, threads, dynamic_lds)
    }

    /// The workgroup size that keeps most threads resident.
    fn hipOccupancyMaxPotentialBlockSize(
        grid: *mut c_int, block: *mut c_int, function: *const c_void, dynamic_lds: usize, limit: c_int
    ) {
        best_size(grid, block, &stub(function)?, dynamic_lds, limit)
    }

    /// The workgroup size that keeps most threads resident.
    fn hipModuleOccupancyMaxPotentialBlockSize(
        grid: *mut c_int,
        block: *mut c_int,
        function: *mut c_void,
        dynamic_lds: usize,
        limit: c_int,
    ) {
        best_size(grid, block, &self::function(function)?, dynamic_lds, limit)
    }

    /// The workgroup size that keeps most threads resident.
    fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
        grid: *mut c_int,
        block: *mut c_int,
        function: *mut c_void,
        dynamic_lds: usize,
        limit: c_int,
        _flags: c_uint,
    ) {
        best_size(grid, block, &self::function(function)?, dynamic_lds, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupancy_follows_registers_and_lds() {
        let target = Target::by_name("gfx90a").unwrap();
        let kernel = |vgpr_count, group_segment_fixed_size| KernelMetadata {
            vgpr_count,
            group_segment_fixed_size,
            max_flat_workgroup_size: 1024,
            ..KernelMetadata::default()
        };
        // 8 waves for each of 4 SIMDs: 32 waves; 65 registers are given 72, which leaves 7.
        assert_eq!(workgroups_per_unit(&kernel(32, 0), target, 256, 0), 8);
        assert_eq!(workgroups_per_unit(&kernel(65, 0), target, 256, 0), 7);
        assert_eq!(workgroups_per_unit(&kernel(32, 16 << 10), target, 256, 4 << 10), 3);
        // 65 registers are given 72, 7 waves for each SIMD: of 16 waves, one.
        assert_eq!(workgroups_per_unit(&kernel(65, 0), target, 1024, 0), 1);
        assert_eq!(workgroups_per_unit(&kernel(32, 0), target, 2048, 0), 0);
    }
}
