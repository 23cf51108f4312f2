//! What all inserted code of one kernel agrees on.

use super::asm::{Asm, Global, c, s, s2, v, v2};
use super::homes::{Homes, RESOURCE};
use super::registers::{Scalars, Vectors};
use super::settle::Place;
use wavetap_amdgpu::{Reg, Target};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::Label;
use wavetap_base::error::Result;
use wavetap_profile::record::{COUNTER, HEADER};

/// Counters in LDS: a slice for each wave, behind everything the kernel itself uses. Where the counters of all waves do not fit, those of the first
/// sites are there, and the others in the wave's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slices {
    /// Bytes of a wave's slice.
    pub(super) slice: u32,
    /// Bytes that the workgroup needs more than before: the slices and what aligning them may cost.
    pub(super) extra: u32,
}

/// A 64-bit LDS access must be aligned to this.
const SLICE_ALIGN: u32 = 8;
/// Offsets of LDS instructions are below this.
const LDS_OFFSETS: u32 = 1 << 16;

impl Slices {
    /// Slices for workgroups of up to `workgroup_size` work-items beside `lds_bytes` of static LDS, for sites whose counters end at these bytes of the
    /// slice. If not all fit, half of what is left stays for the LDS that launches add.
    pub(super) fn plan(target: Target, ends: &[u32], workgroup_size: u32, lds_bytes: u32) -> Slices {
        let waves = workgroup_size.div_ceil(target.wave_size()).max(1);
        let free = target.lds_bytes().saturating_sub(lds_bytes).saturating_sub(SLICE_ALIGN - 1);
        let wanted = ends.iter().copied().max().unwrap_or(0);
        let all_fit = wanted <= LDS_OFFSETS && u64::from(wanted) * u64::from(waves) <= free.into();
        let most = if all_fit { wanted } else { (free / 2 / waves).min(LDS_OFFSETS) };
        let slice = ends.iter().copied().filter(|end| *end <= most).max().unwrap_or(0);
        // Nothing of the kernel's is made larger for nothing.
        let extra = if slice == 0 { 0 } else { slice * waves + SLICE_ALIGN - 1 };
        Slices { slice, extra }
    }
}

/// What is fixed before any snippet is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) target: Target,
    pub(super) vectors: Vectors,
    /// The scalar registers that hold across the kernel; none where snippets borrow theirs.
    pub(super) kept: Option<Scalars>,
    /// Where vector registers are borrowed and counters are in LDS: the scalar register with the start of the wave's slice.
    pub(super) slice_start: Option<u16>,
    /// Where vector registers are borrowed whole: where what was in them goes, and what is kept for the next snippet.
    pub(super) homes: Option<Homes>,
    /// The prologue sets FLAT_SCRATCH: homes are in scratch memory, and neither the hardware nor the original says where that is.
    pub(super) sets_flat_scratch: bool,
    /// Counters are in LDS, or else in the wave's record.
    pub(super) slices: Option<Slices>,
    /// The kernel's index in the site table.
    pub(super) kernel: u32,
    /// Address of the control block in the rewritten object.
    pub(super) control: u64,
}

impl Plan {
    /// The wave's counters in LDS, in runs of up to one for each lane: byte offset of the run and its length.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (counters, lanes) = (self.slices.map_or(0, |slices| slices.slice / COUNTER), self.target.wave_size());
        (0..counters).step_by(lanes as usize).map(move |first| (first * COUNTER, lanes.min(counters - first)))
    }

    /// The scalar registers that no original code names and inserted code has for good.
    pub(super) fn own(&self) -> RegSet {
        let start = self.slice_start.map(|start| Reg::scalar(start, 1));
        let resource = self.homes.and_then(Homes::resource).map(|first| Reg::scalar(first, RESOURCE));
        self.kept.iter().flat_map(Scalars::registers).chain(start).chain(resource).collect()
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

    /// Makes the counters of a site addressable; what [`Plan::add`] needs. Destroys SCC and the scratch pair, unless an instruction reaches them from where
    /// the address register points.
    pub(super) fn reach(&self, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()> {
        let offset = counters.offset;
        let base = match self.home(counters) {
            Home::Lds => return Ok(()),
            Home::Record => s(r.record),
            Home::Beside => {
                // The address register is for LDS. Its lane 0 has the slice's start: without it, it leads from the record to the counters.
                asm.op("v_readlane_b32", &[s(r.scratch + 1), v(self.vectors.address), c(0)])?;
                asm.op("s_sub_u32", &[s(r.scratch), s(r.record), s(r.scratch + 1)])?;
                asm.op("s_subb_u32", &[s(r.scratch + 1), s(r.record + 1), c(0)])?;
                // A memory instruction that uses what a vector instruction wrote comes five states later; at least four instructions are in between.
                asm.states(1)?;
                s(r.scratch)
            }
        };
        if offset > asm.largest_global_offset() {
            let high = if base == s(r.record) { s(r.record + 1) } else { s(r.scratch + 1) };
            asm.op("s_add_u32", &[s(r.scratch), base, c(offset)])?;
            asm.op("s_addc_u32", &[s(r.scratch + 1), high, c(0)])?;
        }
        Ok(())
    }

    /// Adds each active lane's data to its counter of a site. Destroys the first register and, where the target has FLAT memory instructions alone, SCC
    /// and the pair that EXEC is not saved in.
    pub(super) fn add(&self, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()> {
        let data = v2(self.vectors.data);
        let home = self.home(counters);
        if home == Home::Lds {
            asm.open_lds(Some(r.first))?;
            asm.lds("ds_add_u64", self.vectors.address, data, counters.offset - HEADER)?;
            return asm.close_lds(r.first);
        }
        let far = counters.offset > asm.largest_global_offset();
        let base = if far || home == Home::Beside { r.scratch } else { r.record };
        asm.global("atomic_add_x2", self.at(base, r.scratch), data, if far { 0 } else { counters.offset })
    }

    /// Where the counters of a site are.
    fn home(&self, counters: Counters) -> Home {
        match self.slices {
            None => Home::Record,
            Some(Slices { slice, .. }) if counters.offset - HEADER + counters.count * COUNTER <= slice => Home::Lds,
            Some(_) => Home::Beside,
        }
    }
}

/// The counters of a site.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counters {
    /// Offset of the first in the record.
    pub(super) offset: u32,
    /// How many.
    pub(super) count: u32,
}

/// Where counters are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// In the wave's slice of LDS.
    Lds,
    /// In the record, as all of the kernel's are.
    Record,
    /// In the record, while others are in LDS.
    Beside,
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
    asm.masks("s_mov_b", &[exec, saved])
}

/// Keeps SCC for [`restore_scc`].
pub(super) fn save_scc(asm: &mut Asm, r: Scalars) -> Result<()> {
    asm.op("s_cselect_b32", &[s(r.saved_scc), c(1), c(0)])
}

/// Gives SCC back to the original code.
pub(super) fn restore_scc(asm: &mut Asm, r: Scalars) -> Result<()> {
    asm.op("s_cmp_lg_u32", &[s(r.saved_scc), c(0)])
}
