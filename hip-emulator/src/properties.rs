//! What the emulated device says of itself, in the two layouts of `hipDeviceProp_t` that programs are compiled with.

use std::ffi::{c_char, c_int};

use wavetap::isa::{Board, Target};
use wavetap::offload_bundle::TargetId;

use crate::device_presets::{DevicePreset, preset_of};

/// Device memory as it is reported: what the emulator allows in all.
pub(crate) const TOTAL_MEMORY: usize = 16 << 30;

/// Largest grid in x; y and z may have 65,536 workgroups less one.
const GRID_X: c_int = c_int::MAX;
const GRID_YZ: c_int = 65_535;
/// Bus of the address that `hipDeviceGetPCIBusId` gives.
const PCI_BUS: c_int = 3;
/// Registers of 32 bits that a workgroup can have, as HIP reports it for these processors.
const REGISTERS: c_int = 65_536;
/// Frequency of the constant clock that `wall_clock64` reads, in kHz.
const CLOCK_INSTRUCTION_RATE: c_int = 100_000;
/// Alignment that textures over plain memory need, and that their rows do.
pub(crate) const TEXTURE_ALIGNMENT: usize = 256;
/// Largest textures: one-dimensional over plain memory, along one side of a one- or two-dimensional one, deepest
/// three-dimensional one.
pub(crate) const TEXTURE_LINEAR: c_int = 1 << 28;
pub(crate) const TEXTURE_SIDE: c_int = 16_384;
pub(crate) const TEXTURE_DEPTH: c_int = 8_192;

/// Features of `hipDeviceArch_t`, lowest bit first: 32-bit and float atomics (5), 64-bit atomics (2), doubles, vote,
/// ballot, shuffle; not funnel shift; system fences; not counting barriers, not surfaces; 3-D grids; not dynamic
/// parallelism.
const ARCH: u32 = 0b0_1001_0111_1111_1111;

/// The facts after both layouts.
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) arch_name: String,
    pub(crate) major: c_int,
    pub(crate) minor: c_int,
    pub(crate) compute_units: c_int,
    board: DevicePreset,
    number: c_int,
    lds: usize,
    max_workgroup: c_int,
    wave: c_int,
    threads: c_int,
    ecc: c_int,
    /// It has images.
    images: bool,
}

impl Facts {
    /// The facts of a device.
    pub(crate) fn of(id: &TargetId, board: Option<&Board>) -> Self {
        let board = preset_of(&id.processor, board);
        // The name is the version: major, one digit for minor, one hexadecimal digit for stepping.
        let digits: Vec<c_int> =
            id.processor.trim_start_matches("gfx").chars().filter_map(|c| c.to_digit(16)).map(|d| d as c_int).collect();
        let (major, minor, stepping) = match digits[..] {
            [major, minor, stepping] => (major, minor, stepping),
            [tens, ones, minor, stepping] => (10 * tens + ones, minor, stepping),
            _ => (0, 0, 0),
        };
        let target = Target::by_name(&id.processor);
        let int = |value: fn(Target) -> u32| target.map_or(0, value) as c_int;
        Facts {
            name: format!("wavetap emulator ({})", id.processor),
            arch_name: id.to_string(),
            major,
            minor,
            compute_units: board.multiprocessors,
            board,
            number: major * 100 + minor * 10 + stepping,
            lds: int(Target::lds_bytes) as usize,
            max_workgroup: int(Target::max_workgroup),
            wave: int(Target::wave_size),
            threads: int(|target| target.max_waves_per_simd() * target.simds_per_cu() * target.wave_size()),
            ecc: id.sramecc.unwrap_or(false).into(),
            images: target.is_some_and(|target| target.image_descriptors().is_some()),
        }
    }
}

fn text(value: &str) -> [c_char; 256] {
    let mut out = [0; 256];
    for (place, byte) in out.iter_mut().zip(value.bytes().take(255)) {
        *place = byte as c_char;
    }
    out
}

/// Writes down a layout: a structure of which only some fields are ever filled.
macro_rules! layout {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub(crate) struct $name { $($field: $ty,)* }
        impl $name {
            fn zero() -> Self {
                $name { $($field: <$ty as Zero>::ZERO,)* }
            }
        }
    };
}

/// What an unfilled field holds.
trait Zero {
    const ZERO: Self;
}
impl Zero for c_int {
    const ZERO: Self = 0;
}
impl Zero for u32 {
    const ZERO: Self = 0;
}
impl Zero for usize {
    const ZERO: Self = 0;
}
impl<T: Zero + Copy, const N: usize> Zero for [T; N] {
    const ZERO: Self = [T::ZERO; N];
}
impl Zero for c_char {
    const ZERO: Self = 0;
}

layout! {
    /// Before HIP 6.0.
    R0000 {
        name: [c_char; 256],
        total_global_mem: usize,
        shared_mem_per_block: usize,
        regs_per_block: c_int,
        warp_size: c_int,
        max_threads_per_block: c_int,
        max_threads_dim: [c_int; 3],
        max_grid_size: [c_int; 3],
        clock_rate: c_int,
        memory_clock_rate: c_int,
        memory_bus_width: c_int,
        total_const_mem: usize,
        major: c_int,
        minor: c_int,
        multi_processor_count: c_int,
        l2_cache_size: c_int,
        max_threads_per_multi_processor: c_int,
        compute_mode: c_int,
        clock_instruction_rate: c_int,
        arch: u32,
        concurrent_kernels: c_int,
        pci_domain_id: c_int,
        pci_bus_id: c_int,
        pci_device_id: c_int,
        max_shared_memory_per_multi_processor: usize,
        is_multi_gpu_board: c_int,
        can_map_host_memory: c_int,
        gcn_arch: c_int,
        gcn_arch_name: [c_char; 256],
        integrated: c_int,
        cooperative_launch: [c_int; 2],
        max_texture_1d_linear: c_int,
        max_texture_1d: c_int,
        max_texture_2d: [c_int; 2],
        max_texture_3d: [c_int; 3],
        hdp_flush: [usize; 2],
        mem_pitch: usize,
        texture_alignment: usize,
        texture_pitch_alignment: usize,
        kernel_exec_timeout_enabled: c_int,
        ecc_enabled: c_int,
        tcc_driver: c_int,
        cooperative_multi_device: [c_int; 4],
        is_large_bar: c_int,
        asic_revision: c_int,
        managed_memory: c_int,
        direct_managed_mem_access_from_host: c_int,
        concurrent_managed_access: c_int,
        pageable_memory_access: c_int,
        pageable_memory_access_uses_host_page_tables: c_int,
    }
}

layout! {
    /// HIP 6.0 and later.
    R0600 {
        name: [c_char; 256],
        uuid: [c_char; 16],
        luid: [c_char; 8],
        luid_device_node_mask: u32,
        total_global_mem: usize,
        shared_mem_per_block: usize,
        regs_per_block: c_int,
        warp_size: c_int,
        mem_pitch: usize,
        max_threads_per_block: c_int,
        max_threads_dim: [c_int; 3],
        max_grid_size: [c_int; 3],
        clock_rate: c_int,
        total_const_mem: usize,
        major: c_int,
        minor: c_int,
        texture_alignment: usize,
        texture_pitch_alignment: usize,
        device_overlap: c_int,
        multi_processor_count: c_int,
        kernel_exec_timeout_enabled: c_int,
        integrated: c_int,
        can_map_host_memory: c_int,
        compute_mode: c_int,
        max_texture_1d: c_int,
        max_texture_1d_mipmap: c_int,
        max_texture_1d_linear: c_int,
        max_texture_2d: [c_int; 2],
        max_texture_2d_others: [c_int; 7],
        max_texture_3d: [c_int; 3],
        other_textures_and_surfaces: [c_int; 25],
        surface_alignment: usize,
        concurrent_kernels: c_int,
        ecc_enabled: c_int,
        pci_bus_id: c_int,
        pci_device_id: c_int,
        pci_domain_id: c_int,
        tcc_driver: c_int,
        async_engine_count: c_int,
        unified_addressing: c_int,
        memory_clock_rate: c_int,
        memory_bus_width: c_int,
        l2_cache_size: c_int,
        persisting_l2_cache_max_size: c_int,
        max_threads_per_multi_processor: c_int,
        stream_priorities_supported: c_int,
        l1_cache_supported: [c_int; 2],
        shared_mem_per_multiprocessor: usize,
        regs_per_multiprocessor: c_int,
        managed_memory: c_int,
        is_multi_gpu_board: c_int,
        multi_gpu_board_group_id: c_int,
        host_native_atomic_supported: c_int,
        single_to_double_precision_perf_ratio: c_int,
        pageable_memory_access: c_int,
        concurrent_managed_access: c_int,
        compute_preemption_supported: c_int,
        can_use_host_pointer_for_registered_mem: c_int,
        cooperative_launch: [c_int; 2],
        shared_mem_per_block_optin: usize,
        pageable_memory_access_uses_host_page_tables: c_int,
        direct_managed_mem_access_from_host: c_int,
        max_blocks_per_multi_processor: c_int,
        access_policy_max_window_size: c_int,
        reserved_shared_mem_per_block: usize,
        host_register_supported: c_int,
        sparse_read_only_timeline: [c_int; 3],
        memory_pools_supported: c_int,
        support_flags: [c_int; 8],
        reserved: [c_int; 95],
        gcn_arch_name: [c_char; 256],
        max_shared_memory_per_multi_processor: usize,
        clock_instruction_rate: c_int,
        arch: u32,
        hdp_flush: [usize; 2],
        cooperative_multi_device: [c_int; 4],
        is_large_bar: c_int,
        asic_revision: c_int,
    }
}

// The layouts as C compilers lay the headers' structures out.
const _: () = assert!(size_of::<R0000>() == 792 && std::mem::offset_of!(R0000, gcn_arch_name) == 396);
const _: () = assert!(std::mem::offset_of!(R0000, arch) == 356 && std::mem::offset_of!(R0000, ecc_enabled) == 740);
const _: () =
    assert!(std::mem::offset_of!(R0000, hdp_flush) == 696 && std::mem::offset_of!(R0000, is_large_bar) == 764);
const _: () = assert!(size_of::<R0600>() == 1472 && std::mem::offset_of!(R0600, gcn_arch_name) == 1160);

macro_rules! fill {
    ($out:ident, $facts:ident) => {
        $out.name = text(&$facts.name);
        $out.total_global_mem = TOTAL_MEMORY;
        $out.shared_mem_per_block = $facts.lds;
        $out.regs_per_block = REGISTERS;
        $out.warp_size = $facts.wave;
        $out.max_threads_per_block = $facts.max_workgroup;
        $out.max_threads_dim = [$facts.max_workgroup; 3];
        $out.max_grid_size = [GRID_X, GRID_YZ, GRID_YZ];
        $out.clock_rate = $facts.board.clock;
        $out.memory_clock_rate = $facts.board.memory_clock;
        $out.memory_bus_width = $facts.board.bus_width;
        $out.total_const_mem = TOTAL_MEMORY;
        $out.major = $facts.major;
        $out.minor = $facts.minor;
        $out.multi_processor_count = $facts.compute_units;
        $out.l2_cache_size = $facts.board.l2;
        $out.integrated = $facts.board.integrated.into();
        $out.concurrent_kernels = 1;
        $out.cooperative_launch = [1, 0];
        $out.pci_bus_id = PCI_BUS;
        $out.max_threads_per_multi_processor = $facts.threads;
        $out.clock_instruction_rate = CLOCK_INSTRUCTION_RATE;
        $out.arch = ARCH;
        $out.max_shared_memory_per_multi_processor = $facts.lds;
        $out.can_map_host_memory = 1;
        $out.gcn_arch_name = text(&$facts.arch_name);
        $out.max_texture_1d_linear = TEXTURE_LINEAR;
        $out.max_texture_1d = TEXTURE_SIDE;
        $out.max_texture_2d = [TEXTURE_SIDE; 2];
        $out.max_texture_3d = [TEXTURE_SIDE, TEXTURE_SIDE, TEXTURE_DEPTH];
        $out.mem_pitch = c_int::MAX as usize;
        $out.texture_alignment = TEXTURE_ALIGNMENT;
        $out.texture_pitch_alignment = TEXTURE_ALIGNMENT;
        $out.ecc_enabled = $facts.ecc;
        $out.managed_memory = 1;
        $out.direct_managed_mem_access_from_host = 1;
        $out.concurrent_managed_access = 1;
    };
}

impl R0000 {
    /// The properties of a device.
    pub(crate) fn of(facts: &Facts) -> Self {
        let mut out = Self::zero();
        fill!(out, facts);
        out.gcn_arch = facts.number;
        out
    }
}

impl R0600 {
    /// The properties of a device.
    pub(crate) fn of(facts: &Facts) -> Self {
        let mut out = Self::zero();
        fill!(out, facts);
        out.shared_mem_per_multiprocessor = facts.lds;
        out.shared_mem_per_block_optin = facts.lds;
        out.regs_per_multiprocessor = REGISTERS;
        out.unified_addressing = 1;
        out.host_register_supported = 1;
        out.can_use_host_pointer_for_registered_mem = 1;
        out.memory_pools_supported = 1;
        out.stream_priorities_supported = 1;
        out.l1_cache_supported = [1, 1];
        out.async_engine_count = 2;
        out.max_blocks_per_multi_processor = facts.threads / facts.wave.max(1);
        out
    }
}

/// A property by its number in `hipDeviceAttribute_t`, as the structure has it; `None` for a number that has no
/// meaning.
pub(crate) fn attribute(facts: &Facts, attribute: c_int) -> Option<c_int> {
    let p = R0600::of(facts);
    // Sizes that do not fit are reported as the largest number that does.
    let size = |value: usize| c_int::try_from(value).unwrap_or(c_int::MAX);
    Some(match attribute {
        0 => p.ecc_enabled,
        2 => p.async_engine_count,
        3 => p.can_map_host_memory,
        4 => p.can_use_host_pointer_for_registered_mem,
        5 => p.clock_rate,
        6 => p.compute_mode,
        8 => p.concurrent_kernels,
        9 => p.concurrent_managed_access,
        10 => p.cooperative_launch[0],
        11 => p.cooperative_launch[1],
        13 => p.direct_managed_mem_access_from_host,
        14 => p.l1_cache_supported[0],
        16 => p.integrated,
        17 => p.is_multi_gpu_board,
        18 => p.kernel_exec_timeout_enabled,
        19 => p.l2_cache_size,
        20 => p.l1_cache_supported[1],
        23 => p.major,
        24 => p.managed_memory,
        25 => p.max_blocks_per_multi_processor,
        26..=28 => p.max_threads_dim[(attribute - 26) as usize],
        29..=31 => p.max_grid_size[(attribute - 29) as usize],
        39 => p.max_texture_1d,
        41 => p.max_texture_1d_linear,
        43 | 44 => p.max_texture_2d[(attribute - 43) as usize],
        49..=51 => p.max_texture_3d[(attribute - 49) as usize],
        55 => p.max_threads_dim[0],
        56 => p.max_threads_per_block,
        57 => p.max_threads_per_multi_processor,
        58 => size(p.mem_pitch),
        59 => p.memory_bus_width,
        60 => p.memory_clock_rate,
        61 => p.minor,
        63 | 10_015 => p.multi_processor_count,
        65 => p.pageable_memory_access,
        66 => p.pageable_memory_access_uses_host_page_tables,
        67 => p.pci_bus_id,
        68 => p.pci_device_id,
        69 => p.pci_domain_id,
        71 => p.regs_per_block,
        72 => p.regs_per_multiprocessor,
        74 => size(p.shared_mem_per_block),
        75 => size(p.shared_mem_per_block_optin),
        76 => size(p.shared_mem_per_multiprocessor),
        78 => p.stream_priorities_supported,
        80 => p.tcc_driver,
        81 => size(p.texture_alignment),
        82 => size(p.texture_pitch_alignment),
        83 => size(p.total_const_mem),
        84 => size(p.total_global_mem),
        85 => p.unified_addressing,
        87 => p.warp_size,
        88 => p.memory_pools_supported,
        90 => p.host_register_supported,
        10_000 | 10_017 => p.clock_instruction_rate,
        10_001 => p.arch as c_int,
        10_002 => size(p.max_shared_memory_per_multi_processor),
        10_003 => facts.number,
        10_012 => p.asic_revision,
        // Streams wait for values; memory may be fine-grained.
        10_013 | 10_016 => 1,
        10_014 => facts.images.into(),
        // The other known ones: nothing of the kind.
        1..=91 | 10_004..=10_013 => 0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(id: &str) -> Facts {
        Facts::of(&TargetId::parse(id).unwrap(), None)
    }

    #[test]
    fn versions_come_from_the_name() {
        for (id, major, minor, number) in
            [("gfx90a", 9, 0, 910), ("gfx906", 9, 0, 906), ("gfx942", 9, 4, 942), ("gfx900", 9, 0, 900)]
        {
            let facts = facts(id);
            assert_eq!((facts.major, facts.minor, facts.number), (major, minor, number), "{id}");
        }
    }

    #[test]
    fn both_layouts_and_the_attributes_agree() {
        // A device is never one of a generic processor.
        for target in Target::all().filter(|target| target.emulated() && target.generic() != Some(*target)) {
            let facts = facts(target.name());
            let (old, new) = (R0000::of(&facts), R0600::of(&facts));
            assert_eq!(old.name, new.name);
            assert_eq!(old.gcn_arch_name, new.gcn_arch_name);
            for (number, old, new) in [
                (5, old.clock_rate, new.clock_rate),
                (23, old.major, new.major),
                (26, old.max_threads_dim[0], new.max_threads_dim[0]),
                (30, old.max_grid_size[1], new.max_grid_size[1]),
                (56, old.max_threads_per_block, new.max_threads_per_block),
                (57, old.max_threads_per_multi_processor, new.max_threads_per_multi_processor),
                (63, old.multi_processor_count, new.multi_processor_count),
                (74, old.shared_mem_per_block as c_int, new.shared_mem_per_block as c_int),
                (87, old.warp_size, new.warp_size),
            ] {
                assert_eq!(attribute(&facts, number), Some(old), "{number}");
                assert_eq!(old, new, "{number}");
                assert_ne!(old, 0, "{number}");
            }
        }
        assert_eq!(attribute(&facts("gfx90a"), 99), None);
    }
}
