//! What all inserted code of one kernel agrees on.

use super::asm::{Asm, Global, c, s, s2, v2};
use super::registers::{Scalars, Vectors};
use super::settle::Place;
use crate::dataflow::RegSet;
use crate::error::Result;
use crate::isa::Target;
use crate::kernel::edit::Label;
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
    pub(super) vectors: Vectors,
    /// The scalar registers that hold across the kernel; none where snippets borrow theirs.
    pub(super) kept: Option<Scalars>,
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

    /// The scalar registers that no original code names.
    fn own(&self) -> RegSet {
        self.kept.iter().flat_map(Scalars::registers).collect()
    }

    /// A snippet between original instructions.
    pub(super) fn asm(&self) -> Asm {
        Asm::new(self.target, Place::Middle(self.own()))
    }

    /// A snippet before the end of a wave.
    pub(super) fn asm_at_end(&self) -> Asm {
        Asm::new(self.target, Place::End(self.own()))
    }

    /// Global memory at a base, at the offsets in the address register.
    pub(super) fn at(&self, base: u16, scratch: u16) -> Global {
        Global { base, offsets: self.vectors.address, flat: self.vectors.flat, scratch }
    }

    /// Makes the counters that start at `offset` of the record addressable; what [`Plan::add`] needs. Destroys SCC and the scratch pair where the
    /// offset is beyond an instruction's reach.
    pub(super) fn reach(&self, asm: &mut Asm, r: Scalars, offset: u32) -> Result<()> {
        if self.slices.is_none() && offset > asm.largest_global_offset() {
            asm.op("s_add_u32", &[s(r.scratch), s(r.record), c(offset)])?;
            asm.op("s_addc_u32", &[s(r.scratch + 1), s(r.record + 1), c(0)])?;
        }
        Ok(())
    }

    /// Adds each active lane's data to its counter of the site whose counters start at `offset` of the record. Destroys the first register and, where
    /// the target has FLAT memory instructions alone, SCC and the scratch pair.
    pub(super) fn add(&self, asm: &mut Asm, r: Scalars, offset: u32) -> Result<()> {
        let data = v2(self.vectors.data);
        match self.slices {
            Some(_) => {
                asm.open_lds(Some(r.first))?;
                asm.lds("ds_add_u64", self.vectors.address, data, offset - HEADER)?;
                asm.close_lds(r.first)
            }
            None if offset > asm.largest_global_offset() => asm.global("atomic_add_x2", self.at(r.scratch, r.scratch), data, 0),
            None => asm.global("atomic_add_x2", self.at(r.record, r.scratch), data, offset),
        }
    }
}

/// Leaves to `done` if the wave counts nothing. Destroys SCC.
pub(super) fn skip_if_off(asm: &mut Asm, r: Scalars, done: Label) -> Result<()> {
    asm.op("s_cmp_eq_u64", &[s2(r.record), c(0)])?;
    asm.branch("s_cbranch_scc1", done);
    Ok(())
}

/// Gives EXEC back to the original code.
pub(super) fn restore_exec(asm: &mut Asm, r: Scalars) -> Result<()> {
    let (exec, saved) = (asm.exec(), asm.mask(r.saved_exec));
    asm.masks("s_mov", &[exec, saved])
}

/// Keeps SCC for [`restore_scc`].
pub(super) fn save_scc(asm: &mut Asm, r: Scalars) -> Result<()> {
    asm.op("s_cselect_b32", &[s(r.saved_scc), c(1), c(0)])
}

/// Gives SCC back to the original code.
pub(super) fn restore_scc(asm: &mut Asm, r: Scalars) -> Result<()> {
    asm.op("s_cmp_lg_u32", &[s(r.saved_scc), c(0)])
}
