//! Counters in LDS: a slice for each wave, after everything the kernel itself uses. Where the counters of all waves do
//! not fit, those of the first sites are there, and the others in the wave's record.

use super::{CounterSink, PrologueRegisters, add_to_record, reach_record};
use crate::asm::{Asm, c, s, v, v2};
use crate::frame::entry::EntryNeeds;
use crate::records::RecordChoice;
use crate::scavenge::registers::{OwnRegisters, Scalars, Vectors};
use crate::site::Counters;
use wavetap_amdgpu::{Target, Value};
use wavetap_base::error::{Error, Result};
use wavetap_profile::record::{COUNTER, HEADER};

/// A 64-bit LDS access must be aligned to this.
const SLICE_ALIGN: u32 = 8;
/// Offsets of LDS instructions are below this.
const LDS_OFFSETS: u32 = 1 << 16;
/// Wait states between a comparison that writes EXEC and `v_readfirstlane` (gfx94x); SCC, VCC and EXEC are not read
/// here, so only this matters.
const LANE_READ_STATES: i64 = 4;

/// The sink of `--counters lds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LdsSink {
    /// Bytes of a wave's slice.
    slice: u32,
    /// Bytes that the workgroup needs more than before: the slices and what aligning them may cost.
    extra: u32,
    /// Lanes of a wave.
    lanes: u32,
}

/// Where the counters of a site are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// In the wave's slice of LDS.
    Slice,
    /// In the record: the slice has no room for them.
    Record,
}

impl LdsSink {
    /// Slices for workgroups of up to `workgroup_size` work-items beside `lds_bytes` of static LDS, for sites whose
    /// counters end at these bytes of the slice. If not all fit, half of what is left stays for the LDS that launches
    /// add.
    pub(crate) fn plan(target: Target, ends: &[u32], workgroup_size: u32, lds_bytes: u32) -> LdsSink {
        let lanes = target.wave_size();
        let waves = workgroup_size.div_ceil(lanes).max(1);
        let free = target.lds_bytes().saturating_sub(lds_bytes).saturating_sub(SLICE_ALIGN - 1);
        let wanted = ends.iter().copied().max().unwrap_or(0);
        let all_fit = wanted <= LDS_OFFSETS && u64::from(wanted) * u64::from(waves) <= free.into();
        let most = if all_fit { wanted } else { (free / 2 / waves).min(LDS_OFFSETS) };
        let slice = ends.iter().copied().filter(|end| *end <= most).max().unwrap_or(0);
        // Nothing of the kernel's is made larger for nothing.
        let extra = if slice == 0 { 0 } else { slice * waves + SLICE_ALIGN - 1 };
        LdsSink { slice, extra, lanes }
    }

    /// The wave's counters in LDS, in runs of up to one for each lane: byte offset of the run and its length.
    fn chunks(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (counters, lanes) = (self.slice / COUNTER, self.lanes);
        (0..counters).step_by(lanes as usize).map(move |first| (first * COUNTER, lanes.min(counters - first)))
    }

    fn home(&self, counters: Counters) -> Home {
        if counters.offset - HEADER + counters.count * COUNTER <= self.slice { Home::Slice } else { Home::Record }
    }
}

impl CounterSink for LdsSink {
    fn lds_bytes(&self) -> u32 {
        self.extra
    }

    fn entry_needs(&self, records: RecordChoice) -> EntryNeeds {
        match records {
            RecordChoice::Slot(_) => EntryNeeds::WorkItem,
            RecordChoice::Own => EntryNeeds::All,
        }
    }

    fn has_base(&self) -> bool {
        true
    }

    fn prologue(&self, own: &OwnRegisters, asm: &mut Asm, registers: PrologueRegisters) -> Result<()> {
        let (Some(start), Some(wave)) = (registers.lds_size, registers.wave) else {
            return Err(Error::internal("the prologue has no size of LDS"));
        };
        let PrologueRegisters { temporary, through, .. } = registers;
        let r = own.vectors;
        // The workgroup's LDS ends with the slices; where they start is rounded up, for which `extra` has room.
        asm.op("s_sub_u32", &[s(start), s(start), c(self.extra.saturating_sub(SLICE_ALIGN - 1))])?;
        asm.op("s_and_b32", &[s(start), s(start), c(!(SLICE_ALIGN - 1))])?;
        asm.op("s_mul_i32", &[s(temporary), s(wave), c(self.slice)])?;
        asm.op("s_add_u32", &[s(start), s(start), s(temporary)])?;
        if let Some(base) = own.counter_base {
            asm.op("s_mov_b32", &[s(base), s(start)])?;
        }
        let start = asm.vector_source(start, through)?;
        // On gfx8 this writes VCC, too.
        asm.op("v_add_u32_e32", &[v(r.address), start, v(r.address)])?;
        asm.op("v_mov_b32_e32", &[v(r.data), c(0)])?;
        asm.open_lds(None)?;
        for (offset, lanes) in self.chunks() {
            asm.exec_lanes(lanes)?;
            asm.lds("ds_write_b64", r.address, v2(r.data), offset)?;
        }
        asm.exec_lanes(self.lanes)
    }

    fn reach(&self, own: &OwnRegisters, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()> {
        if self.home(counters) == Home::Slice {
            return Ok(());
        }
        // The address register is for LDS. Its lane 0 has the slice's start: without it, it leads from the record to
        // the counters.
        asm.read_lane(r.scratch + 1, own.vectors.address, 0)?;
        asm.op("s_sub_u32", &[s(r.scratch), s(r.record), s(r.scratch + 1)])?;
        asm.op("s_subb_u32", &[s(r.scratch + 1), s(r.record + 1), c(0)])?;
        // A memory instruction that uses what a vector instruction wrote comes five states later; at least four
        // instructions are in between.
        asm.states(1)?;
        reach_record(asm, r, r.scratch, counters)
    }

    fn add(&self, own: &OwnRegisters, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()> {
        if self.home(counters) == Home::Record {
            return add_to_record(own, asm, r, r.scratch, counters);
        }
        asm.open_lds(Some(r.first))?;
        asm.lds("ds_add_u64", own.vectors.address, v2(own.vectors.data), counters.offset - HEADER)?;
        asm.close_lds(r.first)
    }

    fn epilogue(&self, own: &OwnRegisters, asm: &mut Asm, r: Scalars) -> Result<u16> {
        let Vectors { data, address, .. } = own.vectors;
        asm.open_lds(None)?;
        asm.exec_lanes(self.lanes)?;
        asm.states(LANE_READ_STATES)?;
        // The address register holds each lane's place in LDS. Lane 0 has the slice's start: subtracted from the
        // record's address, it makes a base from which the same register leads to the record.
        asm.op("v_readfirstlane_b32", &[s(r.first), v(address)])?;
        asm.op("s_sub_u32", &[s(r.scratch), s(r.record), s(r.first)])?;
        asm.op("s_subb_u32", &[s(r.scratch + 1), s(r.record + 1), c(0)])?;
        let mut moved = 0;
        for (offset, lanes) in self.chunks() {
            asm.exec_lanes(lanes)?;
            asm.lds_load("ds_read_b64", v2(data), address, offset)?;
            asm.wait_lds()?;
            let mut reach = HEADER + offset - moved;
            if reach > asm.largest_global_offset() {
                move_base(asm, r, reach)?;
                moved += reach;
                reach = 0;
            }
            asm.global("atomic_add_x2", own.at(r.scratch, r.saved_exec), v2(data), reach)?;
        }
        if moved > 0 {
            move_base(asm, r, moved.wrapping_neg())?;
        }
        Ok(r.scratch)
    }
}

/// Adds a number to the scratch pair; with its sign.
fn move_base(asm: &mut Asm, r: Scalars, by: u32) -> Result<()> {
    let high = if (by as i32) < 0 { Value::InlineInt(-1) } else { c(0) };
    asm.op("s_add_u32", &[s(r.scratch), s(r.scratch), c(by)])?;
    asm.op("s_addc_u32", &[s(r.scratch + 1), s(r.scratch + 1), high])
}
