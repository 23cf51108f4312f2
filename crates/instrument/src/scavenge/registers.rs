//! Registers for inserted code: ones that no code of the kernel names, first inside its allocation, then after it.

use super::spill_slots::RESOURCE;
use crate::asm::{Asm, Global};
use crate::hazard_mitigation::Place;
use wavetap_amdgpu::{Opcode, Reg, Target};
use wavetap_analysis::dataflow::{RegSet, UsedRegisters};
use wavetap_analysis::kernel::{Reason, Refusal, Stop};
use wavetap_object::code_object::{Field, Kernel, KernelDescriptor, KernelMetadata};
use wavetap_profile::map::Resources;

/// Scalar registers after the numbered ones that lie in the same allocation: VCC, XNACK_MASK, FLAT_SCRATCH (gfx9).
pub(crate) const NAMED_SGPRS: u32 = 6;
/// The hardware writes work-item ids to v0, v1 and v2 at most.
pub(crate) const WORK_ITEM_VGPRS: u16 = 3;
/// Vector registers that an instruction can name.
pub(crate) const NUMBERED_VGPRS: u16 = 256;

/// The vector registers that inserted code keeps for itself. No original code names them, so they hold across calls
/// too. Numbers are those that instructions have; `bank` says which registers they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vectors {
    /// Which 256 registers the numbers are of: the high bits of the registers' numbers (`s_set_vgpr_msb`). Other than 0
    /// only where no number is one of a register with work-item ids.
    pub(crate) bank: u8,
    /// Pair: what is added. High halves are 0, but for lanes in which a probe keeps something; low halves of lanes 0
    /// and 4 are 1. Set by the prologue. Lanes from `RECORD_LANE` (`scalars.rs`) on serve as
    /// memory where scalar registers are borrowed.
    pub(crate) data: u16,
    /// Offset of each lane's counter, from the record or in LDS. Set by the prologue.
    pub(crate) address: u16,
    /// Pair for the addresses of global memory, on targets that address it in no other way.
    pub(crate) flat: Option<u16>,
    /// The first of the registers for what is recorded or checked, an even one, if anything is. They hold nothing from
    /// one snippet to the next.
    pub(crate) payload: Option<u16>,
    /// How many of these there are.
    pub(crate) payload_count: u16,
}

impl Vectors {
    /// Takes each register from `take`, which is told how many in a row and with which alignment.
    pub(crate) fn take(
        target: Target,
        payload_count: u16,
        mut take: impl FnMut(u16, u16) -> Option<u16>,
    ) -> Option<Vectors> {
        let data = take(2, 2)?;
        let address = take(1, 1)?;
        let flat = if Self::have_addresses(target) { Some(take(2, 2)?) } else { None };
        let payload = if payload_count > 0 { Some(take(payload_count, 2)?) } else { None };
        Some(Vectors { bank: 0, data, address, flat, payload, payload_count })
    }

    /// Whether global memory takes addresses from vector registers alone.
    fn have_addresses(target: Target) -> bool {
        !wavetap_amdgpu::has_operation(target, Opcode::GLOBAL_ATOMIC_ADD)
    }

    /// For where everything from v3 on is free: behind the work-item ids.
    pub(crate) fn behind_ids(target: Target) -> Vectors {
        Vectors {
            bank: 0,
            address: WORK_ITEM_VGPRS,
            data: WORK_ITEM_VGPRS + 1,
            flat: Self::have_addresses(target).then_some(WORK_ITEM_VGPRS + 3),
            payload: None,
            payload_count: 0,
        }
    }

    /// Those that hold something from one snippet to the next.
    pub(crate) fn kept(&self) -> impl Iterator<Item = u16> + use<> {
        [self.data, self.data + 1, self.address].into_iter()
    }

    /// All of them.
    pub(crate) fn registers(&self) -> impl Iterator<Item = u16> + use<> {
        let count = self.payload_count;
        let payload = self.payload.into_iter().flat_map(move |first| first..first + count);
        self.kept().chain(self.flat.into_iter().flat_map(|pair| [pair, pair + 1])).chain(payload)
    }

    /// One more than the highest register.
    pub(crate) fn end(&self) -> u32 {
        let first = u32::from(self.bank) * u32::from(NUMBERED_VGPRS);
        self.registers().max().map_or(0, |highest| first + u32::from(highest) + 1)
    }
}

/// The scalar registers of a snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scalars {
    /// Pair: address of the wave's record, 0 while nothing is counted.
    pub record: u16,
    /// Pair: EXEC as the original code has it, while a probe changes it.
    pub saved_exec: u16,
    /// Pair: scratch.
    pub scratch: u16,
    /// Scratch.
    pub first: u16,
    /// Scratch.
    pub second: u16,
    /// SCC as the original code has it, while a probe changes it.
    pub saved_scc: u16,
}

impl Scalars {
    /// All of them.
    pub(crate) fn registers(&self) -> [Reg; 6] {
        let pairs = [self.record, self.saved_exec, self.scratch].map(|first| Reg::scalar(first, 2));
        let singles = [self.first, self.second, self.saved_scc].map(|first| Reg::scalar(first, 1));
        [pairs[0], pairs[1], pairs[2], singles[0], singles[1], singles[2]]
    }

    /// Takes each register from `take`, which is told how many in a row and with which alignment.
    pub(crate) fn take(mut take: impl FnMut(u16, u16) -> Result<u16, Refusal>) -> Result<Scalars, Refusal> {
        let [record, saved_exec, scratch] = [take(2, 2)?, take(2, 2)?, take(2, 2)?];
        // Vector instructions read these two. On some targets that has consequences for the pair that a register is in:
        // no original one may be in it.
        let first = take(2, 2)?;
        Ok(Scalars { record, saved_exec, scratch, first, second: first + 1, saved_scc: take(1, 1)? })
    }
}

/// The registers that inserted code has in a kernel: those that hold from one snippet to the next, and which others a
/// snippet expects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnRegisters {
    pub(crate) target: Target,
    pub(crate) vectors: Vectors,
    /// The scalar registers that hold across the kernel; none where each snippet scavenges its own.
    pub(crate) reserved: Option<Scalars>,
    /// Where lanes of vector registers are scavenged and the sink's counters do not start at 0: the scalar register
    /// with their start.
    pub(crate) counter_base: Option<u16>,
    /// The first of the scalar registers that describe scratch memory, where spill slots are there and need them.
    pub(crate) resource: Option<u16>,
    /// The pair that holds EXEC across an instruction for which it is narrowed; none where each site scavenges it.
    pub(crate) held_exec: Option<u16>,
    /// Lanes of the data pair hold something for the next snippet.
    pub(crate) keeps_lanes: bool,
}

impl OwnRegisters {
    /// The scalar registers that no original code names and inserted code has for good.
    pub(crate) fn own(&self) -> RegSet {
        let base = self.counter_base.map(|base| Reg::scalar(base, 1));
        let resource = self.resource.map(|first| Reg::scalar(first, RESOURCE));
        let held = self.held_exec.map(|first| Reg::scalar(first, 2));
        self.reserved.iter().flat_map(Scalars::registers).chain(base).chain(resource).chain(held).collect()
    }

    /// A snippet between original instructions.
    pub(crate) fn asm(&self) -> Asm {
        Asm::new(self.target, Place::Middle(self.own()))
    }

    /// A snippet before the end of a wave.
    pub(crate) fn asm_at_end(&self) -> Asm {
        Asm::new(self.target, Place::End(self.own()))
    }

    /// Global memory at a base, at the offsets in the address register.
    pub(crate) fn at(&self, base: u16, scratch: u16) -> Global {
        Global { base, offsets: self.vectors.address, flat: self.vectors.flat, scratch }
    }
}

/// Hands out scalar registers that are in no set given to it.
#[derive(Debug, Clone)]
pub(crate) struct ScalarPool {
    taken: Vec<bool>,
    /// One more than the highest register handed out.
    pub(crate) end: u32,
}

impl ScalarPool {
    /// All numbered scalar registers from `first` on for which `taken` does not hold.
    pub(crate) fn new(target: Target, first: u16, taken: impl Fn(u16) -> bool) -> ScalarPool {
        // Where no more can be asked for, VCC and what else lies after the numbered ones has to fit in, too.
        let end = target.fixed_sgprs().map_or(target.addressable_sgprs(), |fixed| fixed - NAMED_SGPRS);
        let taken = (0..end as u16).map(|number| number < first || taken(number)).collect();
        ScalarPool { taken, end: 0 }
    }

    /// The lowest run of `count` registers that starts at a multiple of `align`.
    pub(crate) fn take(&mut self, count: u16, align: u16) -> Result<u16, Refusal> {
        let run = |first: usize| {
            self.taken.get(first..first + usize::from(count)).is_some_and(|run| run.iter().all(|taken| !taken))
        };
        let first = (0..self.taken.len()).step_by(usize::from(align)).find(|&first| run(first)).ok_or_else(|| {
            let free = self.taken.iter().filter(|taken| !**taken).count();
            Refusal::new(
                Reason::ScalarRegisters,
                format!("{count} scalar registers are needed in a row, {free} are free at all"),
            )
        })?;
        self.taken[first..first + usize::from(count)].fill(true);
        self.end = self.end.max(first as u32 + u32::from(count));
        Ok(first as u16)
    }
}

/// What a kernel allocates, and what its code uses of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allocation<'a> {
    pub(crate) target: Target,
    pub(crate) descriptor: &'a KernelDescriptor,
    /// What its own code and everything it may call names.
    pub(crate) used: UsedRegisters,
    /// AGPRs by the metadata.
    pub(crate) accum: u64,
    /// Whether all that it may call is known, and nothing calls itself.
    pub(crate) bounded_calls: bool,
    /// Whether FLAT_SCRATCH, which the prologue is asked to set, keeps that value.
    pub(crate) keeps_flat_scratch: bool,
    /// Vector registers with which all workgroups that the original allows fit on a compute unit.
    pub(crate) most_vgprs: u32,
}

impl Allocation<'_> {
    /// Numbered scalar registers inside the allocation.
    pub(crate) fn sgprs(&self) -> u32 {
        let allocated = self.descriptor.allocated_sgprs(self.target);
        let asked =
            if self.target.generation() >= 10 { allocated } else { allocated.min(self.descriptor.requested_sgprs()) };
        asked.saturating_sub(NAMED_SGPRS).min(self.target.addressable_sgprs())
    }

    /// Numbered vector registers inside the allocation.
    pub(crate) fn vgprs(&self) -> u32 {
        self.descriptor.accum_offset(self.target).unwrap_or_else(|| self.descriptor.allocated_vgprs(self.target))
    }

    /// AGPRs after those that are numbered `v0..`, where both share the allocation. Without the
    /// metadata's word for it, all that is allocated there.
    fn accum_behind(&self, offset: u32) -> u32 {
        let allocated = self.descriptor.allocated_vgprs(self.target).saturating_sub(offset);
        let named = self.used.named.highest_agpr().map_or(0, |highest| u64::from(highest) + 1);
        if named <= self.accum && self.accum <= allocated.into() && !self.used.indexed {
            self.accum as u32
        } else {
            allocated
        }
    }

    /// Refuses a kernel that has two names for the same register: after `ACCUM_OFFSET`, `v200` and some `a40` are one.
    pub(crate) fn check_names(&self) -> Result<(), Refusal> {
        let Some(offset) = self.descriptor.accum_offset(self.target) else { return Ok(()) };
        match (self.used.named.highest_vgpr(), self.used.named.highest_agpr()) {
            (Some(vector), Some(_)) if u32::from(vector) >= offset => {
                let detail = format!(
                    "v{vector} and a{} are the same register: ACCUM_OFFSET is {offset}",
                    u32::from(vector) - offset
                );
                Err(Refusal::new(Reason::VectorAllocation, detail))
            }
            _ => Ok(()),
        }
    }

    /// Scalar registers that neither the original code nor the hardware at entry (`initial` ones) has anything in.
    pub(crate) fn free_scalars(&self, initial: u16) -> ScalarPool {
        self.free_scalars_below(initial, self.target.addressable_sgprs())
    }

    /// Those of them below `end`.
    pub(crate) fn free_scalars_below(&self, initial: u16, end: u32) -> ScalarPool {
        let indexed = if self.used.indexed { self.sgprs() } else { 0 };
        let taken = |number: u16| {
            self.used.named.contains(Reg::scalar(number, 1)) || !(indexed..end).contains(&u32::from(number))
        };
        ScalarPool::new(self.target, initial, taken)
    }

    /// How far numbered scalar and vector registers may reach if as many waves shall run as the kernel's own registers
    /// let.
    pub(crate) fn ends_without_loss(&self) -> (u32, u32) {
        let machine = self.descriptor.machine(self.target);
        let demand = self.descriptor.demand(machine, 0, 1);
        let waves = machine.waves_by_vgprs(demand.vgprs).min(machine.waves_by_sgprs(demand.sgprs));
        let last = |most: u32, fits: &dyn Fn(u32) -> bool| (0..=most).rev().find(|end| fits(*end)).unwrap_or(0);
        let scalars = |end: u32| machine.waves_by_sgprs(end + NAMED_SGPRS) >= waves;
        let vectors = |end: u32| {
            let (_, total) = self.grown_vgprs(end);
            machine.waves_by_vgprs(total) >= waves
        };
        (last(self.target.addressable_sgprs(), &scalars), last(NUMBERED_VGPRS.into(), &vectors))
    }

    /// How far numbered vector registers may reach if all workgroups that the original allows shall fit.
    pub(crate) fn end_of_vectors(&self) -> u32 {
        let fits = |end: &u32| self.grown_vgprs(*end).1 <= self.most_vgprs;
        (0..=NUMBERED_VGPRS.into()).rev().find(fits).unwrap_or(0)
    }

    /// The lowest vector register below `end` that no code names and is not taken.
    pub(crate) fn free_vector(&self, taken: &RegSet, end: u32) -> Option<u16> {
        let indexed = if self.used.indexed { self.vgprs() } else { 0 };
        let mut numbers = (WORK_ITEM_VGPRS..NUMBERED_VGPRS).filter(|number| (indexed..end).contains(&(*number).into()));
        let is_taken = |reg| self.used.named.contains(reg) || taken.contains(reg);
        numbers.find(|number| !is_taken(Reg::vector(*number, 1)))
    }

    /// Chooses the vector registers of inserted code: below v256, or else all of them among 256 others where the target
    /// has such. Code that reads registers of original code (`reads`), which are among the first, names these alone.
    pub(crate) fn choose_vectors(&self, payload: u16, reads: bool) -> Result<Vectors, Refusal> {
        let banks = if self.target.has_vgpr_msb() && !reads { self.target.max_vgprs().div_ceil(256) as u8 } else { 1 };
        (0..banks).find_map(|bank| self.choose_vectors_of(bank, payload)).ok_or_else(|| {
            Refusal::new(Reason::VectorRegisters, "inserted code needs vector registers that no code uses")
        })
    }

    /// [`Allocation::choose_vectors`] among the 256 registers with these high bits of their numbers.
    fn choose_vectors_of(&self, bank: u8, payload: u16) -> Option<Vectors> {
        let indexed = if self.used.indexed { self.vgprs() } else { 0 };
        let free = |number: u16| {
            let meant = u16::from(bank) * NUMBERED_VGPRS + number;
            (WORK_ITEM_VGPRS..NUMBERED_VGPRS).contains(&number)
                && u32::from(meant) >= indexed
                && !self.used.named.contains(Reg::vector(meant, 1))
        };
        let mut taken: Vec<u16> = Vec::new();
        let chosen = Vectors::take(self.target, payload, |count, align| {
            let fits = |first: &u16| (*first..first + count).all(|number| free(number) && !taken.contains(&number));
            let first = (0..NUMBERED_VGPRS).step_by(align.into()).find(fits)?;
            taken.extend(first..first + count);
            Some(first)
        })?;
        Some(Vectors { bank, ..chosen })
    }

    /// Grows the allocation in a descriptor so that scalar registers below `sgprs` and vector registers below `vgprs`
    /// can be used. It never shrinks.
    pub(crate) fn grow(&self, descriptor: &mut KernelDescriptor, sgprs: u32, vgprs: u32) -> Result<(), Stop> {
        let wanted = sgprs + NAMED_SGPRS;
        // What is asked for counts, not what rounding adds to it: inserted code stays inside of what the descriptor
        // says.
        let asked = self
            .target
            .fixed_sgprs()
            .or((self.target.generation() >= 10).then_some(u32::MAX))
            .unwrap_or(descriptor.requested_sgprs());
        if wanted > asked {
            if let Some(fixed) = self.target.fixed_sgprs() {
                let detail = format!("{wanted} scalar registers are needed, and every wave has {fixed}");
                return Err(Refusal::new(Reason::ScalarRegisters, detail).into());
            }
            descriptor.set_allocated_sgprs(wanted)?;
        }
        let limit = match self.target.unified_accum() {
            true => self.target.vgpr_total(),
            false => self.target.max_vgprs(),
        };
        let too_many = |count| match limit.min(self.most_vgprs) {
            fitting if fitting < limit => self.too_large(count),
            _ => Refusal::new(
                Reason::VectorRegisters,
                format!("{count} vector registers are needed, {limit} can be had"),
            ),
        };
        let (offset, total) = self.grown_vgprs(vgprs);
        if offset.is_some_and(|offset| offset > NUMBERED_VGPRS.into())
            || total > limit.min(self.most_vgprs) && total > descriptor.allocated_vgprs(self.target)
        {
            return Err(too_many(total).into());
        }
        if let Some(offset) = offset {
            descriptor.set_accum_offset(offset)?;
        }
        if total > descriptor.allocated_vgprs(self.target) {
            descriptor.set_allocated_vgprs(self.target, total)?;
        }
        Ok(())
    }

    /// Where AGPRs begin, if they have to begin later, and how many registers are allocated, so that vector registers
    /// below `vgprs` can be used.
    fn grown_vgprs(&self, vgprs: u32) -> (Option<u32>, u32) {
        let allocated = self.descriptor.allocated_vgprs(self.target);
        match self.descriptor.accum_offset(self.target) {
            Some(offset) if vgprs > offset => {
                let new_offset = vgprs.next_multiple_of(ACCUM_GRANULE);
                (Some(new_offset), allocated.max(new_offset + self.accum_behind(offset)))
            }
            Some(_) => (None, allocated),
            None => (None, allocated.max(vgprs)),
        }
    }

    /// The lowest run of `count` AGPRs that no code names.
    pub(crate) fn free_accum(&self, count: u32) -> Option<u16> {
        let is_free = |number: u16| number < NUMBERED_VGPRS && !self.used.named.contains(Reg::accum(number, 1));
        (0..NUMBERED_VGPRS).find(|first| (*first..first + count as u16).all(is_free))
    }

    /// Grows the allocation in a descriptor so that AGPRs below `accum` can be used. It never shrinks.
    pub(crate) fn grow_accum(&self, descriptor: &mut KernelDescriptor, accum: u32) -> Result<(), Stop> {
        let wanted = descriptor.accum_offset(self.target).unwrap_or(0) + accum;
        let allocated = descriptor.allocated_vgprs(self.target);
        if wanted > self.most_vgprs && wanted > allocated {
            return Err(self.too_large(wanted).into());
        }
        if wanted > self.target.max_vgprs() {
            let detail = format!("{wanted} vector registers are needed, {} can be had", self.target.max_vgprs());
            return Err(Refusal::new(Reason::VectorRegisters, detail).into());
        }
        Ok(descriptor.set_allocated_vgprs(self.target, wanted.max(allocated))?)
    }

    /// The refusal of so many vector registers that a workgroup which the original allows would not fit.
    fn too_large(&self, count: u32) -> Refusal {
        let detail = format!(
            "{count} vector registers are needed, and the largest workgroups run with at most {}",
            self.most_vgprs
        );
        Refusal::new(Reason::VectorRegisters, detail)
    }

    /// One more than the highest numbered scalar register that the original names: the metadata of hand-written code
    /// may count fewer.
    pub(crate) fn named_sgprs(&self, grown: &KernelDescriptor) -> u64 {
        let highest = self.used.named.highest_sgpr_below(self.target.addressable_sgprs() as u16);
        highest.map_or(0, |highest| u64::from(highest) + 1).min(grown.allocated_sgprs(self.target).into())
    }

    /// `.vgpr_count` of the metadata for a grown descriptor with so many AGPRs by the metadata: they
    /// count where they share the allocation. The metadata of hand-written code may count fewer than are named, or
    /// none.
    pub(crate) fn metadata_vgprs(
        &self,
        grown: &KernelDescriptor,
        metadata: &KernelMetadata,
        vgprs: u32,
        agprs: u64,
    ) -> u64 {
        let named = |highest: Option<u16>| highest.map_or(0, |highest| u64::from(highest) + 1);
        let (vgprs, agprs) = (
            u64::from(vgprs).max(named(self.used.named.highest_vgpr())),
            agprs.max(named(self.used.named.highest_agpr())),
        );
        let with_accum = match grown.accum_offset(self.target) {
            Some(offset) if agprs > 0 => u64::from(offset) + agprs,
            _ => vgprs.max(agprs),
        };
        metadata.vgpr_count.max(with_accum.min(grown.allocated_vgprs(self.target).into()))
    }
}

/// `ACCUM_OFFSET` counts in this many registers (AMDGPUUsage, "Kernel Descriptor").
const ACCUM_GRANULE: u32 = 4;

/// What a kernel needs as it was compiled, for its largest workgroup; none without metadata. The size of its code is
/// not known here and left 0.
#[must_use]
pub fn resources_of(target: Target, kernel: &Kernel) -> Option<Resources> {
    let metadata = kernel.metadata.as_deref()?;
    let lds_bytes = u32::try_from(metadata.group_segment_fixed_size).ok()?;
    let largest = u32::try_from(metadata.max_flat_workgroup_size).ok()?;
    Some(resources(target, &kernel.descriptor, lds_bytes, largest))
}

/// What a kernel with this descriptor needs, and how many waves of it a SIMD holds at most, for workgroups of up to
/// `workgroup_size` work-items with `lds_bytes` of LDS. The size of its code is not known here and left 0.
#[must_use]
pub fn resources(target: Target, descriptor: &KernelDescriptor, lds_bytes: u32, workgroup_size: u32) -> Resources {
    let machine = descriptor.machine(target);
    let demand = descriptor.demand(machine, lds_bytes, workgroup_size);
    let waves_per_simd = machine.best_occupancy(&demand).waves;
    let scratch_bytes = descriptor.get(Field::PRIVATE_SEGMENT_FIXED_SIZE);
    Resources {
        sgprs: demand.sgprs,
        vgprs: demand.vgprs,
        lds_bytes,
        scratch_bytes,
        waves_per_simd,
        code_bytes: 0,
        wave_size: machine.wave_size(),
        wgp_mode: demand.wgp_mode,
    }
}
