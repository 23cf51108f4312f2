//! What all inserted code of one kernel agrees on.

use super::asm::{Asm, EXEC, MAX_GLOBAL_OFFSET, c, s, s2, v2};
use super::registers::Registers;
use crate::error::Result;
use crate::isa::Target;
use crate::kernel::{Reason, Refusal};
use crate::profile::record::{COUNTER, HEADER};

/// Counters in LDS: a slice for each wave, behind everything the kernel itself uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slices {
    /// Bytes of a wave's slice.
    pub(super) slice: u32,
    /// Bytes that the workgroup needs more than before: the slices and what aligning them may cost.
    pub(super) extra: u32,
}

/// A 64-bit LDS access must be aligned to this.
const SLICE_ALIGN: u32 = 8;

impl Slices {
    /// Slices for workgroups of up to `workgroup_size` work-items beside `lds_bytes` of static LDS.
    pub(super) fn plan(target: Target, counters: u32, workgroup_size: u32, lds_bytes: u32) -> Result<Slices, Refusal> {
        let slice = counters * COUNTER;
        let waves = workgroup_size.div_ceil(target.wave_size());
        let extra = u64::from(slice) * u64::from(waves) + u64::from(SLICE_ALIGN - 1);
        if u64::from(lds_bytes) + extra > target.lds_bytes().into() {
            let detail = format!(
                "{counters} counters for each of {waves} waves need {extra} bytes of LDS beside the kernel's {lds_bytes}, of {}",
                target.lds_bytes()
            );
            return Err(Refusal::new(Reason::LdsSize, detail));
        }
        Ok(Slices { slice, extra: extra as u32 })
    }
}

/// What is fixed before any snippet is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) target: Target,
    pub(super) registers: Registers,
    /// Counters are in LDS, or else in the wave's record.
    pub(super) slices: Option<Slices>,
    /// How many counters the kernel's sites have.
    pub(super) counters: u32,
    /// The kernel's index in the site table.
    pub(super) kernel: u32,
    /// Address of the control block in the rewritten object.
    pub(super) control: u64,
}

impl Plan {
    /// The wave's counters in runs of up to one for each lane: byte offset of the run and its length.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (counters, lanes) = (self.counters, self.target.wave_size());
        (0..counters).step_by(lanes as usize).map(move |first| (first * COUNTER, lanes.min(counters - first)))
    }

    /// Leaves to `done` if the wave counts nothing. Destroys SCC.
    pub(super) fn skip_if_off(&self, asm: &mut Asm, done: crate::kernel::edit::Label) -> Result<()> {
        asm.op("s_cmp_eq_u64", &[s2(self.registers.record), c(0)])?;
        asm.branch("s_cbranch_scc1", done);
        Ok(())
    }

    /// Makes the counters that start at `offset` of the record addressable; what [`Plan::add`] needs. Destroys SCC and the scratch pair where the
    /// offset is beyond an instruction's reach.
    pub(super) fn reach(&self, asm: &mut Asm, offset: u32) -> Result<()> {
        if self.slices.is_none() && offset > MAX_GLOBAL_OFFSET {
            let (record, scratch) = (self.registers.record, self.registers.scratch);
            asm.op("s_add_u32", &[s(scratch), s(record), c(offset)])?;
            asm.op("s_addc_u32", &[s(scratch + 1), s(record + 1), c(0)])?;
        }
        Ok(())
    }

    /// Adds each active lane's data to its counter of the site whose counters start at `offset` of the record.
    pub(super) fn add(&self, asm: &mut Asm, offset: u32) -> Result<()> {
        let r = self.registers;
        match self.slices {
            Some(_) => asm.lds("ds_add_u64", r.address, v2(r.data), offset - HEADER),
            None if offset > MAX_GLOBAL_OFFSET => asm.global("global_atomic_add_x2", r.address, v2(r.data), r.scratch, 0),
            None => asm.global("global_atomic_add_x2", r.address, v2(r.data), r.record, offset),
        }
    }

    /// Gives EXEC back to the original code.
    pub(super) fn restore_exec(&self, asm: &mut Asm) -> Result<()> {
        asm.op("s_mov_b64", &[EXEC, s2(self.registers.saved_exec)])
    }

    /// Keeps SCC for [`Plan::restore_scc`].
    pub(super) fn save_scc(&self, asm: &mut Asm) -> Result<()> {
        asm.op("s_cselect_b32", &[s(self.registers.saved_scc), c(1), c(0)])
    }

    /// Gives SCC back to the original code.
    pub(super) fn restore_scc(&self, asm: &mut Asm) -> Result<()> {
        asm.op("s_cmp_lg_u32", &[s(self.registers.saved_scc), c(0)])
    }
}
