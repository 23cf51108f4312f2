//! Targets and what differs between them, asked by name.

/// A processor, `gfx90a` for example. Everything that differs between processors is asked of it; nothing else compares target names.
#[derive(Debug, Clone, Copy)]
pub struct Target(&'static TargetData);

/// The facts of one target (from `isa-tables/targets.yaml`; sources there).
#[derive(Debug)]
pub(crate) struct TargetData {
    pub(crate) name: &'static str,
    /// `EF_AMDGPU_MACH` in the ELF flags.
    pub(crate) mach: u32,
    pub(crate) vgpr_granule: u32,
    pub(crate) vgpr_total: u32,
    pub(crate) max_waves_per_simd: u32,
    pub(crate) has_accum: bool,
    pub(crate) unified_accum: bool,
    pub(crate) packed_work_item_ids: bool,
    pub(crate) architected_flat_scratch: bool,
    pub(crate) code_end_padding: u32,
}

/// Position in the tables' per-target bit masks.
const TARGETS: [TargetData; 5] = [
    TargetData {
        name: "gfx900",
        mach: 0x2c,
        vgpr_granule: 4,
        vgpr_total: 256,
        max_waves_per_simd: 10,
        has_accum: false,
        unified_accum: false,
        packed_work_item_ids: false,
        architected_flat_scratch: false,
        code_end_padding: 192,
    },
    TargetData {
        name: "gfx906",
        mach: 0x2f,
        vgpr_granule: 4,
        vgpr_total: 256,
        max_waves_per_simd: 10,
        has_accum: false,
        unified_accum: false,
        packed_work_item_ids: false,
        architected_flat_scratch: false,
        code_end_padding: 192,
    },
    TargetData {
        name: "gfx908",
        mach: 0x30,
        vgpr_granule: 4,
        vgpr_total: 256,
        max_waves_per_simd: 10,
        has_accum: true,
        unified_accum: false,
        packed_work_item_ids: false,
        architected_flat_scratch: false,
        code_end_padding: 192,
    },
    TargetData {
        name: "gfx90a",
        mach: 0x3f,
        vgpr_granule: 8,
        vgpr_total: 512,
        max_waves_per_simd: 8,
        has_accum: true,
        unified_accum: true,
        packed_work_item_ids: true,
        architected_flat_scratch: false,
        code_end_padding: 1024,
    },
    TargetData {
        name: "gfx942",
        mach: 0x4c,
        vgpr_granule: 8,
        vgpr_total: 512,
        max_waves_per_simd: 8,
        has_accum: true,
        unified_accum: true,
        packed_work_item_ids: true,
        architected_flat_scratch: true,
        code_end_padding: 1024,
    },
];

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl Eq for Target {}

impl Target {
    /// All targets that the tables have, in a fixed order.
    pub fn all() -> impl Iterator<Item = Target> {
        TARGETS.iter().map(Target)
    }

    /// The target of this name (`gfx90a`), without features.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Target> {
        Self::all().find(|target| target.name() == name)
    }

    /// The target of an ELF header's `e_flags` (its `EF_AMDGPU_MACH` byte).
    #[must_use]
    pub fn by_elf_flags(e_flags: u32) -> Option<Target> {
        Self::all().find(|target| target.0.mach == e_flags & 0xff)
    }

    /// `gfx90a`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Lanes of a wave.
    #[must_use]
    pub fn wave_size(self) -> u32 {
        64
    }

    /// Vector registers are allocated in multiples of this many.
    #[must_use]
    pub fn vgpr_granule(self) -> u32 {
        self.0.vgpr_granule
    }

    /// Vector registers of a lane that the waves of a SIMD share.
    #[must_use]
    pub fn vgpr_total(self) -> u32 {
        self.0.vgpr_total
    }

    /// Most waves a SIMD holds.
    #[must_use]
    pub fn max_waves_per_simd(self) -> u32 {
        self.0.max_waves_per_simd
    }

    /// Scalar registers a kernel can address as `s0..`.
    #[must_use]
    pub fn addressable_sgprs(self) -> u32 {
        102
    }

    /// Whether there are accumulation registers.
    #[must_use]
    pub fn has_accum(self) -> bool {
        self.0.has_accum
    }

    /// Whether accumulation registers come out of the same allocation as vector registers (`ACCUM_OFFSET`).
    #[must_use]
    pub fn unified_accum(self) -> bool {
        self.0.unified_accum
    }

    /// Whether the work-item ids are packed into v0 (x 9:0, y 19:10, z 29:20).
    #[must_use]
    pub fn packed_work_item_ids(self) -> bool {
        self.0.packed_work_item_ids
    }

    /// Whether the hardware sets FLAT_SCRATCH itself.
    #[must_use]
    pub fn architected_flat_scratch(self) -> bool {
        self.0.architected_flat_scratch
    }

    /// Bytes of LDS a workgroup may have.
    #[must_use]
    pub fn lds_bytes(self) -> u32 {
        65536
    }

    /// Bytes of padding behind the last instruction (the prefetcher runs past the end).
    #[must_use]
    pub fn code_end_padding(self) -> u32 {
        self.0.code_end_padding
    }
}
