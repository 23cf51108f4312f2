//! The probe of an instruction that narrows EXEC: how many lanes were there, how many go on, did they agree.
//!
//! Lanes 0 to 4 of the data register hold what is added to the five counters; lanes 0 (executions) and 4 (empty) are always 1, and EXEC
//! chooses between lanes 0 to 3 and lane 4, so that a wave that arrives with EXEC = 0 counts in `empty` alone.

use super::asm::{Asm, c, s, v};
use super::borrow::Registers;
use super::plan::{Counters, Plan, restore_exec, restore_scc, save_scc, skip_if_off};
use super::registers::Scalars;
use wavetap_amdgpu::Value;
use wavetap_analysis::kernel::edit::Snippet;
use wavetap_base::error::Result;

/// Lane of `agreements`.
const AGREEMENTS: u32 = 1;
/// Lane of `lanes_before`.
const LANES_BEFORE: u32 = 2;
/// Lane of `lanes_after`.
const LANES_AFTER: u32 = 3;
/// Lanes of executions, agreements, lanes_before and lanes_after.
const COUNTED: u32 = 0b01111;
/// Lane of `empty`.
const EMPTY: u32 = 0b10000;

/// Before a scalar instruction that makes EXEC `EXEC & mask`, or `EXEC & ~mask`. All such instructions write SCC, so it is free here.
pub(super) fn before_mask(plan: &Plan, here: &Registers, mask: Value, complemented: bool, counters: Counters) -> Result<Snippet> {
    let r = here.scalars();
    let mut asm = plan.asm();
    let done = asm.new_label();
    here.enter(&mut asm, plan.vectors)?;
    skip_if_off(&mut asm, r, done)?;
    here.prepare(&mut asm, plan)?;
    let (exec, saved, narrowed) = (asm.exec(), asm.mask(r.saved_exec), asm.mask(r.scratch));
    asm.masks("s_mov_b", &[saved, exec])?;
    asm.masks(if complemented { "s_andn2_b" } else { "s_and_b" }, &[narrowed, exec, mask])?;
    count(plan, &mut asm, r, narrowed, counters)?;
    here.give_back(&mut asm)?;
    asm.bind(done);
    here.leave(&mut asm, plan.vectors)?;
    asm.finish()
}

/// Before a vector comparison that writes EXEC: keeps the mask that it is about to change.
pub(super) fn before_compare(plan: &Plan, here: &Registers) -> Result<Snippet> {
    let mut asm = plan.asm();
    here.keep_exec(&mut asm, plan.vectors)?;
    asm.finish()
}

/// After a vector comparison that wrote EXEC.
pub(super) fn after_compare(plan: &Plan, here: &Registers, scc_is_live: bool, counters: Counters) -> Result<Snippet> {
    let r = here.scalars();
    let mut asm = plan.asm();
    let done = asm.new_label();
    here.enter(&mut asm, plan.vectors)?;
    if scc_is_live {
        save_scc(&mut asm, r)?;
    }
    skip_if_off(&mut asm, r, done)?;
    here.prepare(&mut asm, plan)?;
    here.kept_exec(&mut asm, plan.vectors)?;
    let exec = asm.exec();
    count(plan, &mut asm, r, exec, counters)?;
    here.give_back(&mut asm)?;
    asm.bind(done);
    if scc_is_live {
        restore_scc(&mut asm, r)?;
    }
    here.leave(&mut asm, plan.vectors)?;
    asm.finish()
}

/// Counts, with the old mask in the saved-EXEC pair and the new one in `after`; leaves EXEC as it was. Destroys SCC and the scratch registers.
fn count(plan: &Plan, asm: &mut Asm, r: Scalars, after: Value, counters: Counters) -> Result<()> {
    let data = plan.vectors.data;
    let (lanes_after, lanes_before, agreed) = (s(r.first), s(r.second), s(r.scratch));
    // SCC is whether any lane goes on: if none does, they agree. With no lane there at all the answer is not used.
    let (exec, saved) = (asm.exec(), asm.mask(r.saved_exec));
    asm.masks("s_bcnt1_i32_b", &[lanes_after, after])?;
    asm.op("s_cselect_b32", &[agreed, c(0), c(1)])?;
    asm.masks("s_bcnt1_i32_b", &[lanes_before, saved])?;
    if after == exec {
        // From here on the saved pair is what EXEC must be again.
        asm.masks("s_mov_b", &[saved, exec])?;
    }
    // The new mask is part of the old one, so the same number of lanes is the same mask.
    asm.op("s_cmp_eq_u32", &[lanes_after, lanes_before])?;
    asm.op("s_cselect_b32", &[agreed, c(1), agreed])?;
    asm.op("v_writelane_b32", &[v(data), agreed, c(AGREEMENTS)])?;
    asm.op("v_writelane_b32", &[v(data), lanes_before, c(LANES_BEFORE)])?;
    asm.op("v_writelane_b32", &[v(data), lanes_after, c(LANES_AFTER)])?;
    plan.reach(asm, r, counters)?;
    asm.op("s_cmp_lg_u32", &[lanes_before, c(0)])?;
    asm.masks("s_cselect_b", &[exec, c(COUNTED), c(EMPTY)])?;
    plan.add(asm, r, counters)?;
    restore_exec(asm, r)
}
