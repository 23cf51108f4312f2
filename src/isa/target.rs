//! Targets and what differs between them, asked by name.

use super::table::Latency;

/// A processor, `gfx90a` for example. Everything that differs between processors is asked of it; nothing else compares target names.
///
/// It is the processor together with the number of lanes of a wave, because the width of lane masks depends on that: two values with different
/// wave sizes differ.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    data: &'static TargetData,
    wave_size: u8,
}

/// How many clock cycles something takes, without contention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyRange {
    /// At least.
    pub min: u32,
    /// Usually.
    pub typical: u32,
    /// At most.
    pub max: u32,
}

/// Classes of [`Latency`].
pub(crate) const LATENCY_CLASSES: usize = 14;

/// The facts of one target (from `isa-tables/targets.yaml`, where they are explained and their sources are).
#[derive(Debug)]
pub(crate) struct TargetData {
    pub(crate) name: &'static str,
    pub(crate) instructions: usize,
    pub(crate) wave32: bool,
    pub(crate) wave64: bool,
    pub(crate) emulated: bool,
    pub(crate) rewritable: bool,
    pub(crate) mach: u32,
    pub(crate) vgpr_granule: u32,
    pub(crate) vgpr_total: u32,
    pub(crate) max_waves_per_simd: u32,
    pub(crate) max_vgprs: u32,
    pub(crate) sgpr_granule: u32,
    pub(crate) sgpr_limits: &'static [(u32, u32)],
    pub(crate) lds_bytes: u32,
    pub(crate) lds_granule: u32,
    pub(crate) has_gds: bool,
    pub(crate) simds_per_cu: u32,
    pub(crate) max_workgroup: u32,
    pub(crate) has_accum: bool,
    pub(crate) unified_accum: bool,
    pub(crate) aligned_vgprs: bool,
    pub(crate) packed_work_item_ids: bool,
    pub(crate) architected_flat_scratch: bool,
    pub(crate) sc_cache_bits: bool,
    pub(crate) row_newbcast: bool,
    pub(crate) code_end_padding: u32,
    pub(crate) l1_line_bytes: u32,
    pub(crate) hardware_registers: &'static [(u8, &'static str)],
    pub(crate) messages: &'static [(u8, &'static str)],
    pub(crate) latencies: [LatencyRange; LATENCY_CLASSES],
}

include!(concat!(env!("OUT_DIR"), "/targets.rs"));

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.data, other.data) && self.wave_size == other.wave_size
    }
}
impl Eq for Target {}

impl Target {
    /// All targets that the tables have, in a fixed order, each with its default wave size.
    pub fn all() -> impl Iterator<Item = Target> {
        TARGETS.iter().map(|data| Target { data, wave_size: if data.wave32 { 32 } else { 64 } })
    }

    /// The same processor with waves of `lanes` lanes; none if it has no such waves.
    #[must_use]
    pub fn with_wave_size(self, lanes: u32) -> Option<Target> {
        let has = match lanes {
            32 => self.data.wave32,
            64 => self.data.wave64,
            _ => false,
        };
        has.then_some(Target { wave_size: lanes as u8, ..self })
    }

    /// The position in [`Target::all`].
    #[must_use]
    pub fn index(self) -> usize {
        TARGETS.iter().position(|data| std::ptr::eq(data, self.data)).unwrap_or(0)
    }

    /// The target of this name (`gfx90a`), without features.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Target> {
        Self::all().find(|target| target.name() == name)
    }

    /// The target of an ELF header's `e_flags` (its `EF_AMDGPU_MACH` byte).
    #[must_use]
    pub fn by_elf_flags(e_flags: u32) -> Option<Target> {
        Self::all().find(|target| target.data.mach == e_flags & 0xff)
    }

    /// `gfx90a`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.data.name
    }

    /// Lanes of a wave.
    #[must_use]
    pub fn wave_size(self) -> u32 {
        self.wave_size.into()
    }

    /// The number of the instruction table, which processors of the same instruction set share: the bit in [`super::Variant::targets`].
    #[must_use]
    pub fn instruction_table(self) -> usize {
        self.data.instructions
    }

    /// The name of the instruction table: that of the processor it is named for.
    #[must_use]
    pub fn instruction_set(self) -> &'static str {
        INSTRUCTION_SETS[self.data.instructions]
    }

    /// Whether the emulator runs its code.
    #[must_use]
    pub fn emulated(self) -> bool {
        self.data.emulated
    }

    /// Whether its code can be rewritten.
    #[must_use]
    pub fn rewritable(self) -> bool {
        self.data.rewritable
    }

    /// Vector registers are allocated in multiples of this many.
    #[must_use]
    pub fn vgpr_granule(self) -> u32 {
        self.data.vgpr_granule
    }

    /// Vector registers of a lane that the waves of a SIMD share.
    #[must_use]
    pub fn vgpr_total(self) -> u32 {
        self.data.vgpr_total
    }

    /// Most waves a SIMD holds.
    #[must_use]
    pub fn max_waves_per_simd(self) -> u32 {
        self.data.max_waves_per_simd
    }

    /// Scalar registers a kernel can address as `s0..`.
    #[must_use]
    pub fn addressable_sgprs(self) -> u32 {
        102
    }

    /// Whether there are accumulation registers.
    #[must_use]
    pub fn has_accum(self) -> bool {
        self.data.has_accum
    }

    /// Whether accumulation registers come out of the same allocation as vector registers (`ACCUM_OFFSET`).
    #[must_use]
    pub fn unified_accum(self) -> bool {
        self.data.unified_accum
    }

    /// Whether the work-item ids are packed into v0 (x 9:0, y 19:10, z 29:20).
    #[must_use]
    pub fn packed_work_item_ids(self) -> bool {
        self.data.packed_work_item_ids
    }

    /// Whether the hardware sets FLAT_SCRATCH itself.
    #[must_use]
    pub fn architected_flat_scratch(self) -> bool {
        self.data.architected_flat_scratch
    }

    /// Bytes of LDS a workgroup may have.
    #[must_use]
    pub fn lds_bytes(self) -> u32 {
        self.data.lds_bytes
    }

    /// Bytes of padding behind the last instruction (the prefetcher runs past the end).
    #[must_use]
    pub fn code_end_padding(self) -> u32 {
        self.data.code_end_padding
    }

    /// Most registers of a lane that one wave may have; with [`Target::unified_accum`] vector and accumulation registers together.
    #[must_use]
    pub fn max_vgprs(self) -> u32 {
        self.data.max_vgprs
    }

    /// Scalar registers are allocated in multiples of this many.
    #[must_use]
    pub fn sgpr_granule(self) -> u32 {
        self.data.sgpr_granule
    }

    /// LDS is allocated in multiples of this many bytes.
    #[must_use]
    pub fn lds_granule(self) -> u32 {
        self.data.lds_granule
    }

    /// SIMDs of a compute unit, over which the waves of a workgroup are spread.
    #[must_use]
    pub fn simds_per_cu(self) -> u32 {
        self.data.simds_per_cu
    }

    /// Most work items of a workgroup.
    #[must_use]
    pub fn max_workgroup(self) -> u32 {
        self.data.max_workgroup
    }

    /// Whether runs of vector registers must start at an even one.
    #[must_use]
    pub fn aligned_vgprs(self) -> bool {
        self.data.aligned_vgprs
    }

    /// Whether the cache bits are called `sc0`, `sc1` and `nt`.
    #[must_use]
    pub fn sc_cache_bits(self) -> bool {
        self.data.sc_cache_bits
    }

    /// Whether DPP has `row_newbcast`, which is then all that it can do with 64-bit operands.
    #[must_use]
    pub fn row_newbcast(self) -> bool {
        self.data.row_newbcast
    }

    /// Whether there is global data share.
    #[must_use]
    pub fn has_gds(self) -> bool {
        self.data.has_gds
    }

    /// Bytes of a line of the vector L1 cache.
    #[must_use]
    pub fn l1_line_bytes(self) -> u32 {
        self.data.l1_line_bytes
    }

    /// Waves per SIMD that `vgprs` registers of a lane allow (at least one register is allocated).
    #[must_use]
    pub fn waves_by_vgprs(self, vgprs: u32) -> u32 {
        let allocated = vgprs.max(1).next_multiple_of(self.data.vgpr_granule);
        (self.data.vgpr_total / allocated).min(self.data.max_waves_per_simd)
    }

    /// Waves per SIMD that `sgprs` scalar registers (VCC and the like included) allow; 0 if no wave may have so many.
    #[must_use]
    pub fn waves_by_sgprs(self, sgprs: u32) -> u32 {
        self.data.sgpr_limits.iter().find(|(most, _)| sgprs <= *most).map_or(0, |(_, waves)| *waves)
    }

    /// Waves per SIMD that `lds_bytes` of LDS allow a workgroup of `waves` waves; 0 if the workgroup does not fit.
    #[must_use]
    pub fn waves_by_lds(self, lds_bytes: u32, waves: u32) -> u32 {
        let waves = waves.max(1);
        let allocated = lds_bytes.max(1).next_multiple_of(self.data.lds_granule);
        let groups = self.data.lds_bytes / allocated;
        (groups * waves).div_ceil(self.data.simds_per_cu).min(self.data.max_waves_per_simd)
    }

    /// The name of a hardware register (`s_getreg`, `s_setreg`).
    #[must_use]
    pub fn hardware_register(self, number: u8) -> Option<&'static str> {
        self.data.hardware_registers.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
    }

    /// The name of a message (`s_sendmsg`).
    #[must_use]
    pub fn message(self, number: u8) -> Option<&'static str> {
        self.data.messages.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
    }

    /// How long an instruction of a latency class takes: an estimate, see `isa-tables/latency.yaml`.
    #[must_use]
    pub fn latency(self, class: Latency) -> LatencyRange {
        self.data.latencies[class as usize]
    }
}
