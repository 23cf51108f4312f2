//! The code before every `s_endpgm`: LDS counters go to the wave's record, then the wave is counted as finished.
//!
//! It works with any EXEC, 0 too, and changes no register that the original code has: there may be loads still under way into those.

use super::asm::{Asm, c, s, v, v2};
use super::borrow::Registers;
use super::lent_vectors;
use super::plan::{Plan, skip_if_off};
use super::registers::{Scalars, Vectors};
use wavetap_amdgpu::Value;
use wavetap_analysis::kernel::edit::Snippet;
use wavetap_base::error::Result;
use wavetap_profile::record;

/// Wait states between a comparison that writes EXEC and `v_readfirstlane` (gfx94x); SCC, VCC and EXEC are not read here, so only this matters.
const LANE_READ_STATES: i64 = 4;

/// The epilogue. SCC is free: nothing follows, but for a message that takes EXEC for something it reads where `keep_exec` says so.
pub(super) fn epilogue(plan: &Plan, here: &Registers, keep_exec: bool) -> Result<Snippet> {
    let r = here.scalars();
    let data = plan.vectors.data;
    let mut asm = plan.asm_at_end();
    let done = asm.new_label();
    here.enter(&mut asm, plan.vectors)?;
    skip_if_off(&mut asm, r, done)?;
    if here.lends_lanes() {
        lent_vectors::at_end(&mut asm, plan)?;
    }
    let (exec, saved) = (asm.exec(), asm.mask(r.saved_exec));
    if keep_exec {
        asm.masks("s_mov_b", &[saved, exec])?;
    }
    let base = if plan.slices.is_some() { flush(plan, &mut asm, r)? } else { r.record };
    asm.exec_lanes(1)?;
    // Only when the counters have arrived does the wave count as finished.
    asm.wait_global_writes()?;
    asm.op("v_mov_b32_e32", &[v(data), c(1)])?;
    asm.global("atomic_add", plan.at(base, r.saved_exec), v(data), record::FINISHED)?;
    if keep_exec {
        asm.masks("s_mov_b", &[exec, saved])?;
    }
    asm.bind(done);
    asm.finish()
}

/// Adds the wave's LDS slice to its record; gives the pair from which the address register leads to the record.
fn flush(plan: &Plan, asm: &mut Asm, r: Scalars) -> Result<u16> {
    let Vectors { data, address, .. } = plan.vectors;
    asm.open_lds(None)?;
    asm.exec_lanes(plan.target.wave_size())?;
    asm.states(LANE_READ_STATES)?;
    // The address register holds each lane's place in LDS. Lane 0 has the slice's start: subtracted from the record's address, it makes a base
    // from which the same register leads to the record.
    asm.op("v_readfirstlane_b32", &[s(r.first), v(address)])?;
    asm.op("s_sub_u32", &[s(r.scratch), s(r.record), s(r.first)])?;
    asm.op("s_subb_u32", &[s(r.scratch + 1), s(r.record + 1), c(0)])?;
    let mut moved = 0;
    for (offset, lanes) in plan.chunks() {
        asm.exec_lanes(lanes)?;
        asm.lds_load("ds_read_b64", v2(data), address, offset)?;
        asm.wait_lds()?;
        let mut reach = record::HEADER + offset - moved;
        if reach > asm.largest_global_offset() {
            move_base(asm, r, reach)?;
            moved += reach;
            reach = 0;
        }
        asm.global("atomic_add_x2", plan.at(r.scratch, r.saved_exec), v2(data), reach)?;
    }
    if moved > 0 {
        move_base(asm, r, moved.wrapping_neg())?;
    }
    Ok(r.scratch)
}

/// Adds a number to the scratch pair; with its sign.
fn move_base(asm: &mut Asm, r: Scalars, by: u32) -> Result<()> {
    let high = if (by as i32) < 0 { Value::InlineInt(-1) } else { c(0) };
    asm.op("s_add_u32", &[s(r.scratch), s(r.scratch), c(by)])?;
    asm.op("s_addc_u32", &[s(r.scratch + 1), s(r.scratch + 1), high])
}
