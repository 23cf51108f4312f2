//! What a wave finds in its registers at entry: asking for more of it, and putting the rest back where the original
//! code expects it.

use crate::asm::{Asm, c, s, s2, v};
use wavetap_amdgpu::{HwregField, Opcode, Reg, Target, Value, scalar};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::{Reason, Refusal, Stop};
use wavetap_base::error::{Error, Result};
use wavetap_object::code_object::{
    Field, InitialRegisters, KernargPreload, KernelDescriptor, WorkItemIds, initial_registers,
};

/// SGPRs of the dispatch packet's address, and of what FLAT_SCRATCH is made of.
const DISPATCH_PTR_SGPRS: u32 = 2;
const FLAT_SCRATCH_INIT_SGPRS: u32 = 2;
/// All three work-item ids.
const WORK_ITEM_X_Y_Z: u32 = 2;
/// ttmp9: workgroup id x (AMDGPUUsage, "Initial Kernel Execution State").
const TTMP_X: u16 = scalar::TTMP0 + 9;
/// ttmp7: workgroup id y in the low half, z in the high one.
const TTMP_Y_Z: u16 = scalar::TTMP0 + 7;
/// Bits of one packed work-item id.
const WORK_ITEM_BITS: u32 = 10;

/// ttmp6 in a cluster of workgroups, four bits each: the place in it in x, y, z; from bit 12 on the highest place in x,
/// y, z (as LLVM's code for workgroup ids reads them).
const TTMP_CLUSTER: u16 = scalar::TTMP0 + 6;
/// IB_STS2's bits 9:6, which are 0 where there is no cluster.
const CLUSTER_MODE: HwregField = HwregField { register: 28, first: 6, bits: 4 };
/// Bytes of a preloaded register's argument.
const ARGUMENT_BYTES: u32 = 4;
/// Operand of `s_bfe_u32` for four bits.
const fn four_bits(first: u32) -> u32 {
    4 << 16 | first
}

/// The workgroup ids where the registers of [`Entry::workgroup_ids`] have those of the cluster.
fn clustered_ids(asm: &mut Asm, [x, y, z]: [u16; 3], other: u16) -> Result<()> {
    asm.op("s_getreg_b32", &[s(x), Value::Imm(CLUSTER_MODE.operand())])?;
    asm.op("s_cmp_eq_u32", &[s(x), c(0)])?;
    // Without a cluster nothing is said of ttmp6.
    asm.op("s_cselect_b32", &[s(x), c(0), s(TTMP_CLUSTER)])?;
    for (axis, id) in [(2, z), (1, y), (0, other)] {
        asm.op("s_bfe_u32", &[s(id), s(x), c(four_bits(12 + 4 * axis))])?;
        asm.op("s_add_u32", &[s(id), s(id), c(1)])?;
        match axis {
            0 => asm.op("s_mul_i32", &[s(id), s(id), s(TTMP_X)])?,
            1 => asm.op("s_and_b32", &[s(other), s(TTMP_Y_Z), c(0xffff)])?,
            _ => asm.op("s_lshr_b32", &[s(other), s(TTMP_Y_Z), c(16)])?,
        }
        if axis == 0 {
            asm.op("s_and_b32", &[s(x), s(x), c(15)])?;
            asm.op("s_add_u32", &[s(x), s(x), s(id)])?;
        } else {
            asm.op("s_mul_i32", &[s(id), s(id), s(other)])?;
            asm.op("s_bfe_u32", &[s(other), s(x), c(four_bits(4 * axis))])?;
            asm.op("s_add_u32", &[s(id), s(id), s(other)])?;
        }
    }
    Ok(())
}

/// Without the preload the original code is run from its entry, where it begins by loading the arguments itself
/// (AMDGPUUsage, "Preloaded Kernel Arguments"), or the prologue loads them ([`Entry::load_arguments`]). The count of
/// user SGPRs stays, so that what follows them stays where it is. Where waves begin at the entry they find the
/// arguments as before.
fn stop_preloading(target: Target, descriptor: &mut KernelDescriptor) -> Result<()> {
    if begins_with_arguments(target) {
        return Ok(());
    }
    descriptor.set(Field::KERNARG_PRELOAD_LENGTH, 0)?;
    descriptor.set(Field::KERNARG_PRELOAD_OFFSET, 0)
}

/// Whether waves begin at a kernel's entry whether its arguments are preloaded or not (gfx125x), and not after code
/// that loads them.
pub(crate) fn begins_with_arguments(target: Target) -> bool {
    target.has_kernarg_preload() && !target.has_preload_prologue()
}

/// What inserted code needs of the prologue so that it reaches the wave's scratch memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScratchAccess {
    /// Nothing: the hardware does it, or no scratch memory is accessed.
    Given,
    /// FLAT_SCRATCH leads there.
    FlatScratch,
    /// Four scalar registers describe it: there are buffer instructions alone that reach it by nothing but scalar
    /// registers (gfx8).
    Buffer,
}

impl ScratchAccess {
    /// What inserted code needs that accesses scratch memory.
    pub(crate) fn of(target: Target) -> ScratchAccess {
        match (wavetap_amdgpu::has_operation(target, Opcode::SCRATCH_STORE_DWORD), target.architected_flat_scratch()) {
            (false, _) => ScratchAccess::Buffer,
            (true, true) => ScratchAccess::Given,
            (true, false) => ScratchAccess::FlatScratch,
        }
    }
}

/// What the prologue needs of the registers that the hardware sets, beside what scratch memory needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryNeeds {
    /// Nothing.
    Nothing,
    /// The dispatch packet's address and all work-item ids.
    WorkItem,
    /// These and all workgroup ids.
    All,
}

/// Entry registers before and after more of them were asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    old: InitialRegisters,
    new: InitialRegisters,
}

impl Entry {
    /// Asks in `descriptor` for what the prologue needs; and for what it needs for scratch memory, but for the four
    /// registers that describe all of it: those the original has to have. `preload` is what the prologue has to load.
    pub(crate) fn extend(
        target: Target,
        descriptor: &mut KernelDescriptor,
        needs: EntryNeeds,
        scratch: ScratchAccess,
        preload: Option<KernargPreload>,
    ) -> Result<Entry, Stop> {
        stop_preloading(target, descriptor)?;
        let old = initial_registers(descriptor, target)?;
        let lacks_flat_scratch = scratch == ScratchAccess::FlatScratch && old.flat_scratch_init.is_none();
        let lacks_packet = needs != EntryNeeds::Nothing && old.dispatch_ptr.is_none();
        let wanted = u32::from(old.used_user_sgprs)
            + if lacks_packet { DISPATCH_PTR_SGPRS } else { 0 }
            + if lacks_flat_scratch { FLAT_SCRATCH_INIT_SGPRS } else { 0 };
        if wanted > old.used_user_sgprs.into() {
            let most = target.max_user_sgprs();
            if wanted > most {
                let detail = format!(
                    "the addresses of dispatch packet and scratch memory would make {wanted} user SGPRs of at most \
                        {most}"
                );
                return Err(Refusal::new(Reason::UserSgprs, detail).into());
            }
            if lacks_packet {
                descriptor.set(Field::ENABLE_SGPR_DISPATCH_PTR, 1)?;
            }
            if lacks_flat_scratch {
                descriptor.set(Field::ENABLE_SGPR_FLAT_SCRATCH_INIT, 1)?;
            }
            descriptor.set(Field::USER_SGPR_COUNT, wanted.max(old.user_sgprs.into()))?;
        }
        if scratch != ScratchAccess::Given {
            descriptor.set(Field::ENABLE_PRIVATE_SEGMENT, 1)?;
        }
        if needs == EntryNeeds::All && !old.workgroup_ids_in_ttmp {
            for field in [Field::ENABLE_WORKGROUP_ID_X, Field::ENABLE_WORKGROUP_ID_Y, Field::ENABLE_WORKGROUP_ID_Z] {
                descriptor.set(field, 1)?;
            }
        }
        if needs != EntryNeeds::Nothing {
            descriptor.set(Field::ENABLE_VGPR_WORKITEM_ID, WORK_ITEM_X_Y_Z)?;
        }
        let new = initial_registers(descriptor, target)?;
        Ok(Entry { old, new }.with_arguments(preload))
    }

    /// Asks for nothing more.
    pub(crate) fn keep(
        target: Target,
        descriptor: &mut KernelDescriptor,
        preload: Option<KernargPreload>,
    ) -> Result<Entry, Stop> {
        stop_preloading(target, descriptor)?;
        let registers = initial_registers(descriptor, target)?;
        Ok(Entry { old: registers, new: registers }.with_arguments(preload))
    }

    /// The original finds arguments in registers, which the hardware does not put there any more.
    fn with_arguments(mut self, preload: Option<KernargPreload>) -> Entry {
        self.old.kernarg_preload = preload.or(self.old.kernarg_preload);
        self
    }

    /// Loads the arguments that the original finds preloaded and the hardware does not preload any more, and waits for
    /// them. All else is where the original expects it.
    pub(crate) fn load_arguments(&self, asm: &mut Asm) -> Result<()> {
        let (Some(preload), None) = (self.old.kernarg_preload, self.new.kernarg_preload) else { return Ok(()) };
        let base =
            self.old.kernarg_ptr.ok_or_else(|| Error::internal("arguments are preloaded without a pointer to them"))?;
        let mut done = 0;
        while done < preload.length {
            let register = preload.first + done;
            let fits = |count: u16| done + count <= preload.length && register.is_multiple_of(count.min(4));
            let count = [8, 4, 2].into_iter().find(|count| fits(*count)).unwrap_or(1);
            let at = u32::from(preload.offset + done) * ARGUMENT_BYTES;
            match count {
                8 => asm.scalar_load("s_load_dwordx8", register, 8, base, at)?,
                4 => asm.scalar_load("s_load_dwordx4", register, 4, base, at)?,
                2 => asm.scalar_load("s_load_dwordx2", register, 2, base, at)?,
                _ => asm.scalar_load("s_load_dword", register, 1, base, at)?,
            }
            done += count;
        }
        asm.wait_scalar_loads()
    }

    /// The registers that the original asked for.
    pub(crate) fn original(&self) -> &InitialRegisters {
        &self.old
    }

    /// How many scalar registers are set at entry, or expected to be by the original code.
    pub(crate) fn scalars(&self) -> u16 {
        self.old.total.max(self.new.total)
    }

    /// The pair with the dispatch packet's address.
    pub(crate) fn dispatch_ptr(&self) -> Result<u16> {
        self.new.dispatch_ptr.ok_or_else(|| Error::internal("the dispatch packet's address was not enabled"))
    }

    /// The registers in which the prologue has the workgroup ids: those that are set at entry, or new ones from `take`.
    pub(crate) fn workgroup_id_registers(
        &self,
        mut take: impl FnMut() -> Result<u16, Refusal>,
    ) -> Result<[u16; 3], Stop> {
        if self.new.workgroup_ids_in_ttmp {
            return Ok([take()?, take()?, take()?]);
        }
        match (self.new.workgroup_id_x, self.new.workgroup_id_y, self.new.workgroup_id_z) {
            (Some(x), Some(y), Some(z)) => Ok([x, y, z]),
            _ => Err(Error::internal("the workgroup ids were not enabled").into()),
        }
    }

    /// Puts the workgroup ids into these registers, where they are not there. Destroys SCC and the other register.
    pub(crate) fn workgroup_ids(&self, asm: &mut Asm, target: Target, [x, y, z]: [u16; 3], other: u16) -> Result<()> {
        if !self.new.workgroup_ids_in_ttmp {
            return Ok(());
        }
        if target.has_clusters() {
            return clustered_ids(asm, [x, y, z], other);
        }
        asm.op("s_mov_b32", &[s(x), s(TTMP_X)])?;
        asm.op("s_and_b32", &[s(y), s(TTMP_Y_Z), c(0xffff)])?;
        asm.op("s_lshr_b32", &[s(z), s(TTMP_Y_Z), c(16)])
    }

    /// Lets FLAT_SCRATCH lead to the wave's scratch memory, as an original prologue would (AMDGPUUsage, "Flat
    /// Scratch"). Destroys SCC and a pair.
    pub(crate) fn set_flat_scratch(&self, asm: &mut Asm, target: Target, pair: u16) -> Result<()> {
        let (Some(base), Some(offset)) = (self.new.flat_scratch_init, self.new.private_segment_wave_offset) else {
            return Err(Error::internal("what FLAT_SCRATCH is made of was not enabled"));
        };
        let hwreg = target.flat_scratch_hwreg();
        let to = if hwreg.is_some() { pair } else { scalar::FLAT_SCRATCH };
        asm.op("s_add_u32", &[s(to), s(base), s(offset)])?;
        asm.op("s_addc_u32", &[s(to + 1), s(base + 1), c(0)])?;
        for (half, number) in hwreg.into_iter().flat_map(|low| [low, low + 1]).enumerate() {
            let field = HwregField { register: number, first: 0, bits: 32 }.operand();
            asm.op("s_setreg_b32", &[Value::Imm(field), s(to + half as u16)])?;
        }
        Ok(())
    }

    /// Lets four scalar registers describe the wave's scratch memory, as an original prologue would: what the hardware
    /// gives describes that of all waves (AMDGPUUsage, "Private Segment Buffer"). Destroys SCC.
    pub(crate) fn describe_scratch(&self, asm: &mut Asm, to: u16) -> Result<()> {
        let (Some(all), Some(offset)) = (self.new.private_segment_buffer, self.new.private_segment_wave_offset) else {
            return Err(Error::internal("what describes scratch memory was not enabled"));
        };
        asm.op("s_add_u32", &[s(to), s(all), s(offset)])?;
        asm.op("s_addc_u32", &[s(to + 1), s(all + 1), c(0)])?;
        asm.op("s_mov_b64", &[s2(to + 2), s2(all + 2)])
    }

    /// Reads the work-item ids of the first active lane into three scalar registers. Destroys SCC.
    pub(crate) fn first_lane_ids(&self, asm: &mut Asm, into: [u16; 3]) -> Result<()> {
        match self.new.work_item_ids {
            WorkItemIds::Separate { .. } => {
                for (vector, register) in (0..).zip(into) {
                    asm.op("v_readfirstlane_b32", &[s(register), v(vector)])?;
                }
            }
            WorkItemIds::Packed { .. } => {
                let [x, y, z] = into;
                asm.op("v_readfirstlane_b32", &[s(x), v(0)])?;
                // s_bfe_u32: offset in bits 4:0, width in bits 22:16.
                asm.op("s_bfe_u32", &[s(y), s(x), c(WORK_ITEM_BITS << 16 | WORK_ITEM_BITS)])?;
                asm.op("s_bfe_u32", &[s(z), s(x), c(WORK_ITEM_BITS << 16 | (2 * WORK_ITEM_BITS))])?;
                asm.op("s_and_b32", &[s(x), s(x), c((1 << WORK_ITEM_BITS) - 1)])?;
            }
        }
        Ok(())
    }

    /// Makes the registers look as they would without what was added: the last thing a prologue does.
    pub(crate) fn restore(&self, asm: &mut Asm) -> Result<()> {
        if let (WorkItemIds::Packed { count }, WorkItemIds::Packed { count: 3 }) =
            (self.old.work_item_ids, self.new.work_item_ids)
            && count < 3
        {
            let mask = (1 << (u32::from(count) * WORK_ITEM_BITS)) - 1;
            asm.op("v_and_b32_e32", &[v(0), c(mask), v(0)])?;
        }
        // A value never moves up, so going from the lowest to the highest overwrites nothing that is still needed.
        for (to, from, width) in self.moves() {
            debug_assert!(to <= from);
            if to == from {
                continue;
            }
            if width.is_multiple_of(2) && to.is_multiple_of(2) && from.is_multiple_of(2) {
                for pair in (0..width).step_by(2) {
                    asm.op("s_mov_b64", &[s2(to + pair), s2(from + pair)])?;
                }
            } else {
                for single in 0..width {
                    asm.op("s_mov_b32", &[s(to + single), s(from + single)])?;
                }
            }
        }
        Ok(())
    }

    /// Where each value is expected, where it is, and how many registers it has, in ascending order.
    fn moves(&self) -> Vec<(u16, u16, u16)> {
        let mut moves: Vec<_> = values(&self.old)
            .into_iter()
            .zip(values(&self.new))
            .filter_map(|((old, width), (new, _))| Some((old?, new?, width)))
            .collect();
        moves.sort_unstable();
        moves
    }

    /// The registers that hold a value when the original code is entered. Only those with work-item ids are vector
    /// registers: where the ids are packed, it is one.
    pub(crate) fn original_registers(&self) -> RegSet {
        let scalars = values(&self.old).into_iter().filter_map(|(first, width)| Some(Reg::scalar(first?, width as u8)));
        let vectors = (0..self.old.work_item_ids.vgprs()).map(|number| Reg::vector(number, 1));
        scalars.chain(vectors).collect()
    }
}

/// Where each value is, and how many registers it has.
fn values(r: &InitialRegisters) -> [(Option<u16>, u16); 13] {
    let preload = r.kernarg_preload;
    [
        (preload.map(|preload| preload.first), preload.map_or(0, |preload| preload.length)),
        (r.private_segment_buffer, 4),
        (r.dispatch_ptr, 2),
        (r.queue_ptr, 2),
        (r.kernarg_ptr, 2),
        (r.dispatch_id, 2),
        (r.flat_scratch_init, 2),
        (r.private_segment_size, 1),
        (r.workgroup_id_x, 1),
        (r.workgroup_id_y, 1),
        (r.workgroup_id_z, 1),
        (r.workgroup_info, 1),
        (r.private_segment_wave_offset, 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Preloaded arguments, for which there is no code, come where they were after two registers were put before them.
    #[test]
    fn preloaded_arguments_are_put_back() {
        let entry = |name: &str| {
            let mut descriptor = KernelDescriptor::from_bytes([0; 64]);
            let waves_of_32 = u32::from(name == "gfx1250");
            for (field, value) in [
                (Field::ENABLE_SGPR_KERNARG_SEGMENT_PTR, 1),
                (Field::KERNARG_PRELOAD_LENGTH, 5),
                (Field::KERNARG_PRELOAD_OFFSET, 1),
                (Field::USER_SGPR_COUNT, 7),
                (Field::ENABLE_WAVEFRONT_SIZE32, waves_of_32),
            ] {
                descriptor.set(field, value).expect("fits");
            }
            let target = Target::by_name(name).expect("a target");
            let entry =
                Entry::extend(target, &mut descriptor, EntryNeeds::All, ScratchAccess::Given, None).expect("an entry");
            (entry, [Field::KERNARG_PRELOAD_LENGTH, Field::KERNARG_PRELOAD_OFFSET].map(|field| descriptor.get(field)))
        };
        let (gfx1250, preloads) = entry("gfx1250");
        assert_eq!((gfx1250.moves(), preloads), (vec![(0, 2, 2), (2, 4, 5)], [5, 1]));
        assert_eq!(gfx1250.dispatch_ptr().expect("an address"), 0);
        // Where code loads them, nothing is preloaded any more.
        let (gfx942, preloads) = entry("gfx942");
        assert_eq!((gfx942.moves(), preloads), (vec![(0, 2, 2)], [0, 0]));
    }
}
