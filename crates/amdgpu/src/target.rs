//! Targets and what differs between them, asked by name.

use super::machine::Estimate;
use super::vocabulary::{Latency, MachineFact, NameList};

/// A processor, `gfx90a` for example. Everything that differs between processors is asked of it; nothing else compares
/// target names.
///
/// It is the processor together with the number of lanes of a wave, because the width of lane masks depends on that:
/// two values with different wave sizes differ.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub(super) data: &'static TargetData,
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

/// The facts of one target (from `isa-tables/targets.yaml`, where they are explained and their sources are).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetData {
    pub(crate) name: &'static str,
    pub(crate) instructions: usize,
    pub(crate) wave32: bool,
    pub(crate) wave64: bool,
    pub(crate) emulated: bool,
    pub(crate) generic: &'static [&'static str],
    pub(crate) rewritable: bool,
    pub(crate) mach: u32,
    pub(crate) vgpr_total: u32,
    pub(crate) vgpr_granule: u32,
    pub(crate) vgpr_encoded_granule: u32,
    pub(crate) max_vgprs: u32,
    pub(crate) has_accum: bool,
    pub(crate) unified_accum: bool,
    pub(crate) aligned_vgprs: bool,
    pub(crate) addressable_sgprs: u32,
    pub(crate) sgpr_granule: u32,
    pub(crate) sgpr_limits: &'static [(u32, u32)],
    pub(crate) fixed_sgprs: u32,
    pub(crate) max_user_sgprs: u32,
    pub(crate) max_waves_per_simd: u32,
    pub(crate) runtime_waves_per_simd: u32,
    pub(crate) simds_per_cu: u32,
    pub(crate) wgp_mode: bool,
    pub(crate) lds_bytes: u32,
    pub(crate) lds_granule: u32,
    pub(crate) max_wave_scratch: u32,
    pub(crate) max_workgroup: u32,
    pub(crate) max_groups: u32,
    pub(crate) named_barriers: bool,
    pub(crate) clusters: bool,
    pub(crate) has_gds: bool,
    pub(crate) l1_line_bytes: u32,
    pub(crate) code_line_bytes: u32,
    pub(crate) code_end_padding: u32,
    pub(crate) prefetch_size_bits: u8,
    pub(crate) xnack: bool,
    pub(crate) sramecc: bool,
    pub(crate) packed_work_item_ids: bool,
    pub(crate) architected_flat_scratch: bool,
    pub(crate) offset_flat_scratch: bool,
    pub(crate) architected_workgroup_ids: bool,
    pub(crate) kernarg_preload: bool,
    pub(crate) preload_prologue: bool,
    pub(crate) flushes_half_products: bool,
    pub(crate) shared_vgprs: bool,
    pub(crate) dynamic_vgpr_bit: u16,
    pub(crate) float_mode_bits: bool,
    pub(crate) cache_bits: u8,
    pub(crate) row_newbcast: bool,
    pub(crate) row_share: bool,
    pub(crate) wide_broadcast_only: bool,
    pub(crate) wave_shifts: bool,
    pub(crate) wait_states: u8,
    pub(crate) hazards: &'static [&'static str],
    pub(crate) keeps_high_half: bool,
    pub(crate) lds_phases: u8,
    pub(crate) lds_limit_in_m0: bool,
    pub(crate) fnuz_fp8: bool,
    pub(crate) halves_permute_apart: bool,
    pub(crate) facts: &'static [(&'static str, &'static str)],
    pub(crate) names: [&'static [(u8, &'static str)]; NameList::ALL.len()],
    pub(crate) dependency_fields: &'static [(u8, u8, &'static str)],
    pub(crate) latencies: [LatencyRange; Latency::ALL.len()],
    pub(crate) machine: [Estimate; MachineFact::ALL.len()],
}

/// The facts of an instruction set (from `isa-tables/instruction_sets.yaml`, where they are explained).
#[derive(Debug)]
pub(crate) struct InstructionSet {
    pub(crate) name: &'static str,
    pub(crate) generation: u32,
    pub(crate) sgprs: u16,
    pub(crate) ttmp_code: u16,
    pub(crate) ttmps: u16,
    pub(crate) null_code: u16,
    pub(crate) m0_code: u16,
    pub(crate) lds_direct: bool,
    pub(crate) literal64: bool,
    pub(crate) flat_scratch_base: bool,
    pub(crate) unpacked_d16: bool,
    pub(crate) max_flat_offset: u32,
    pub(crate) facts: &'static [(&'static str, &'static str)],
}

include!(concat!(env!("OUT_DIR"), "/targets.rs"));
include!(concat!(env!("OUT_DIR"), "/instruction_sets.rs"));

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

    /// Its number in an ELF header, `EF_AMDGPU_MACH`.
    #[must_use]
    pub fn mach(self) -> u32 {
        self.data.mach
    }

    /// The target of an ELF header's `e_flags` (its `EF_AMDGPU_MACH` byte), whether there are instructions of it or
    /// not.
    #[must_use]
    pub fn by_elf_flags(e_flags: u32) -> Option<Target> {
        Self::all().find(|target| target.data.mach == e_flags & 0xff)
    }

    /// Whether the tables have its instructions. Of a target without them the facts alone are known.
    #[must_use]
    pub fn has_instructions(self) -> bool {
        SETS_WITH_ROWS >> self.data.instructions & 1 != 0
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

    /// The number of the instruction table, which processors of the same instruction set share: the bit in
    /// [`super::Variant::targets`].
    #[must_use]
    pub fn instruction_table(self) -> usize {
        self.data.instructions
    }

    /// Whether `FLAT_SCRATCH_BASE` is read as a scalar operand, and flat addresses of LDS and scratch are found by it.
    pub fn has_flat_scratch_base(self) -> bool {
        self.set().flat_scratch_base
    }

    /// The facts of the instruction set.
    pub(crate) fn set(self) -> &'static InstructionSet {
        &INSTRUCTION_SETS[self.data.instructions]
    }

    /// Every fact of the processor and then of its instruction set, by the names that `targets.yaml` and
    /// `instruction_sets.yaml` have for them, as text: for people and for comparisons. What a program asks for has
    /// functions of its own.
    ///
    /// ```
    /// use wavetap_amdgpu::Target;
    /// let target = Target::by_name("gfx90a").unwrap();
    /// assert!(target.facts().any(|fact| fact == ("vgpr_granule", "8")));
    /// ```
    pub fn facts(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.data.facts.iter().chain(self.set().facts).copied()
    }

    /// The largest offset of a flat instruction, where offsets of the flat segment are unsigned.
    pub(crate) fn max_flat_offset(self) -> u32 {
        self.set().max_flat_offset
    }

    /// The name of the instruction table: that of the processor it is named for.
    #[must_use]
    pub fn instruction_set(self) -> &'static str {
        self.set().name
    }

    /// Whether code means the same on both, and needs the same: they differ in name, number, what is told of them and
    /// how fast they are ([`Target::machine`]) at most.
    ///
    /// ```
    /// use wavetap_amdgpu::Target;
    /// let target = |name| Target::by_name(name).unwrap();
    /// assert!(target("gfx1030").is_like(target("gfx1031")));
    /// assert!(!target("gfx1030").is_like(target("gfx1100")));
    /// ```
    #[must_use]
    pub fn is_like(self, other: Target) -> bool {
        let known = |target: Target| TargetData {
            name: "",
            mach: 0,
            facts: &[],
            machine: [Estimate { min: 0, typical: 0, max: 0 }; MachineFact::ALL.len()],
            ..target.data.clone()
        };
        self == other || (self.wave_size == other.wave_size && known(self) == known(other))
    }

    /// The generic processor whose code it runs as well, such as gfx11-generic; of a generic one itself.
    #[must_use]
    pub fn generic(self) -> Option<Target> {
        self.data.generic.first().and_then(|name| Self::by_name(name))
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

    /// What is given for wave64; the registers of wave32 are half as wide, and twice as many.
    fn for_wave(self, registers: u32) -> u32 {
        registers * 64 / u32::from(self.wave_size)
    }

    /// Vector registers are allocated in multiples of this many.
    #[must_use]
    pub fn vgpr_granule(self) -> u32 {
        self.for_wave(self.data.vgpr_granule)
    }

    /// The kernel descriptor counts vector registers in this many.
    #[must_use]
    pub fn vgpr_encoded_granule(self) -> u32 {
        self.for_wave(self.data.vgpr_encoded_granule)
    }

    /// Vector registers of a lane that the waves of a SIMD share.
    #[must_use]
    pub fn vgpr_total(self) -> u32 {
        self.for_wave(self.data.vgpr_total)
    }

    /// Most waves a SIMD holds.
    #[must_use]
    pub fn max_waves_per_simd(self) -> u32 {
        self.data.max_waves_per_simd
    }

    /// Scalar registers a kernel can address as `s0..`.
    #[must_use]
    pub fn addressable_sgprs(self) -> u32 {
        self.data.addressable_sgprs
    }

    /// Whether there are AGPRs.
    #[must_use]
    pub fn has_accum(self) -> bool {
        self.data.has_accum
    }

    /// Whether AGPRs come out of the same allocation as vector registers (`ACCUM_OFFSET`).
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

    /// Bytes of padding after the last instruction (the prefetcher runs past the end).
    #[must_use]
    pub fn code_end_padding(self) -> u32 {
        self.data.code_end_padding
    }

    /// Most registers of a lane that one wave may have; with [`Target::unified_accum`] VGPRs and AGPRs
    /// together.
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

    /// SIMDs of a compute unit, over which the waves of a workgroup are spread; with [`Target::has_wgp_mode`] a
    /// workgroup may have two compute units.
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
        self.data.cache_bits == 1
    }

    /// Whether broadcasting a lane of a row is all that DPP can do in operations of 64 bits and in 32-bit
    /// multiplications.
    #[must_use]
    pub fn wide_broadcast_only(self) -> bool {
        self.data.wide_broadcast_only
    }

    /// Whether DPP has `row_newbcast`.
    #[must_use]
    pub fn row_newbcast(self) -> bool {
        self.data.row_newbcast
    }

    /// The number of scalar registers that every wave must ask for, where others start with wrong values.
    #[must_use]
    pub fn fixed_sgprs(self) -> Option<u32> {
        (self.data.fixed_sgprs > 0).then_some(self.data.fixed_sgprs)
    }

    /// Scalar registers that a kernel descriptor can have set when a wave starts.
    #[must_use]
    pub fn max_user_sgprs(self) -> u32 {
        self.data.max_user_sgprs
    }

    /// Whether a kernel chooses between one compute unit and the two of a workgroup processor for each workgroup.
    #[must_use]
    pub fn has_wgp_mode(self) -> bool {
        self.data.wgp_mode
    }

    /// Whether a workgroup can have named barriers.
    #[must_use]
    pub fn has_named_barriers(self) -> bool {
        self.data.named_barriers
    }

    /// Whether there are clusters of workgroups.
    #[must_use]
    pub fn has_clusters(self) -> bool {
        self.data.clusters
    }

    /// Bytes of a line of the instruction cache, in which prefetching is counted.
    #[must_use]
    pub fn code_line_bytes(self) -> u32 {
        self.data.code_line_bytes
    }

    /// Bits of a kernel descriptor's `INST_PREF_SIZE`, 0 if it has none.
    #[must_use]
    pub fn prefetch_size_bits(self) -> u8 {
        self.data.prefetch_size_bits
    }

    /// Whether page faults of memory accesses can be replayed.
    #[must_use]
    pub fn supports_xnack(self) -> bool {
        self.data.xnack
    }

    /// Whether there is SRAM error correction that can be on or off.
    #[must_use]
    pub fn supports_sramecc(self) -> bool {
        self.data.sramecc
    }

    /// Whether FLAT_SCRATCH holds a size and an offset instead of an address.
    #[must_use]
    pub fn offset_flat_scratch(self) -> bool {
        self.data.offset_flat_scratch
    }

    /// Whether workgroup ids are in ttmp9 (x) and ttmp7 (y in the low half, z in the high half) instead of registers
    /// after the user SGPRs.
    #[must_use]
    pub fn architected_workgroup_ids(self) -> bool {
        self.data.architected_workgroup_ids
    }

    /// Whether kernel arguments can be preloaded into user SGPRs.
    #[must_use]
    pub fn has_kernarg_preload(self) -> bool {
        self.data.kernarg_preload
    }

    /// Whether waves with preloaded arguments begin 256 bytes after the entry, before which code loads them for
    /// firmware that preloads nothing.
    #[must_use]
    pub fn has_preload_prologue(self) -> bool {
        self.data.preload_prologue
    }

    /// Whether a vector instruction may run beside a transcendental or matrix instruction before it, and software keeps
    /// those apart that use the same registers (LLVM, `hasTransCoexecutionHazard`, `hasWMMACoexecutionHazards`).
    #[must_use]
    pub fn has_coexecution(self) -> bool {
        self.generation() >= 1250
    }

    /// Whether wave64 can have vector registers that their halves share.
    #[must_use]
    pub fn has_shared_vgprs(self) -> bool {
        self.data.shared_vgprs
    }

    /// Whether waves can change their number of vector registers while they run.
    #[must_use]
    pub fn has_dynamic_vgprs(self) -> bool {
        self.data.dynamic_vgpr_bit != 0
    }

    /// The bit of a kernel descriptor that says so, counted from its start.
    pub fn dynamic_vgpr_bit(self) -> Option<u16> {
        self.has_dynamic_vgprs().then_some(self.data.dynamic_vgpr_bit)
    }

    /// Whether kernel descriptors have `ENABLE_DX10_CLAMP` and `ENABLE_IEEE_MODE`.
    #[must_use]
    pub fn has_float_mode_bits(self) -> bool {
        self.data.float_mode_bits
    }

    /// Whether the cache bits are called `glc`, `slc` and `dlc`.
    #[must_use]
    pub fn has_dlc(self) -> bool {
        self.data.cache_bits == 2
    }

    /// Whether instead of cache bits there are a temporal hint (`th`) and a scope.
    #[must_use]
    pub fn has_cache_scope(self) -> bool {
        self.data.cache_bits == 3
    }

    /// Whether DPP has `row_share` and `row_xmask`.
    #[must_use]
    pub fn row_share(self) -> bool {
        self.data.row_share
    }

    /// Whether DPP can shift and rotate whole waves and broadcast from row to row.
    #[must_use]
    pub fn wave_shifts(self) -> bool {
        self.data.wave_shifts
    }

    /// Whether operations on 16 bits leave the other half of their destination as it is.
    #[must_use]
    pub fn keeps_high_half(self) -> bool {
        self.data.keeps_high_half
    }

    /// Whether 8-bit floats are those of CDNA3 (no negative zero, no infinity), not OCP's.
    #[must_use]
    pub fn fnuz_fp8(self) -> bool {
        self.data.fnuz_fp8
    }

    /// Whether `ds_permute` and `ds_bpermute` stay within each half of a wave of 64.
    #[must_use]
    pub fn halves_permute_apart(self) -> bool {
        self.data.halves_permute_apart
    }

    /// Whether matrix instructions and dot products of half precision and bfloat16 flush denormals, whatever MODE says.
    #[must_use]
    pub fn flushes_half_products(self) -> bool {
        self.data.flushes_half_products
    }

    /// Whether LDS instructions take the size that they may reach from M0.
    #[must_use]
    pub fn lds_limit_in_m0(self) -> bool {
        self.data.lds_limit_in_m0
    }

    /// Whether a wave may have more vector registers than instructions have numbers for: see [`super::VgprMsb`].
    #[must_use]
    pub fn has_vgpr_msb(self) -> bool {
        const NUMBERED: u32 = 256;
        let kinds = 1 + u32::from(self.data.unified_accum);
        self.data.max_vgprs > kinds * NUMBERED
    }

    /// What its encodings belong to: 8 to 12, or 1250.
    #[must_use]
    pub fn generation(self) -> u32 {
        self.set().generation
    }

    /// Whether the registers that a scratch instruction adds up are signed (LLVM, `hasSignedScratchOffsets`).
    #[must_use]
    pub fn signed_scratch_offsets(self) -> bool {
        self.set().generation >= 12
    }

    /// Whether the register that is added to the scalar base of a global address is signed (LLVM,
    /// `hasSignedGVSOffset`).
    #[must_use]
    pub fn signed_global_offsets(self) -> bool {
        self.set().generation >= 1250
    }

    /// Whether descriptors of buffers have 57 bits of base and 45 of length (LLVM, `has45BitNumRecordsBufferResource`).
    #[must_use]
    pub fn has_wide_buffers(self) -> bool {
        self.set().generation >= 1250
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

    /// How long an instruction of a latency class takes: an estimate, see `isa-tables/latency.yaml`.
    #[must_use]
    pub fn latency(self, class: Latency) -> LatencyRange {
        self.data.latencies[class as usize]
    }

    /// Bytes of scratch memory that a wave may have.
    #[must_use]
    pub fn max_wave_scratch(self) -> u32 {
        self.data.max_wave_scratch
    }

    /// Workgroups of more than one wave that a compute unit holds at most: each needs a barrier.
    #[must_use]
    pub fn max_groups(self) -> u32 {
        self.data.max_groups
    }
}
