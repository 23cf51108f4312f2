//! The probe of a scalar branch: how often it was reached and how often it was taken.

use super::asm::{c, s, v};
use super::borrow::Registers;
use super::plan::{Counters, Plan, restore_exec, restore_scc, save_scc, skip_if_off};
use wavetap_amdgpu::Condition;
use wavetap_analysis::kernel::edit::Snippet;
use wavetap_base::error::{Error, Result};

/// Lane of `taken`; lane 0 (executions) always holds 1.
const TAKEN: u32 = 1;
/// Both lanes.
const COUNTED: u32 = 0b11;

/// Before an `s_cbranch_*`. It works with EXEC = 0 too.
pub(super) fn before_branch(plan: &Plan, here: &Registers, condition: Condition, scc_is_live: bool, counters: Counters) -> Result<Snippet> {
    let r = here.scalars();
    let mut asm = plan.asm();
    let done = asm.new_label();
    let taken = s(r.first);
    here.enter(&mut asm, plan.vectors)?;
    if scc_is_live {
        save_scc(&mut asm, r)?;
    }
    skip_if_off(&mut asm, r, done)?;
    here.prepare(&mut asm, plan)?;
    match condition {
        Condition::Scc1 => asm.op("s_mov_b32", &[taken, s(r.saved_scc)])?,
        Condition::Scc0 => asm.op("s_xor_b32", &[taken, s(r.saved_scc), c(1)])?,
        Condition::VccZ | Condition::VccNz | Condition::ExecZ | Condition::ExecNz => {
            let register = if matches!(condition, Condition::VccZ | Condition::VccNz) { asm.vcc() } else { asm.exec() };
            let if_zero = matches!(condition, Condition::VccZ | Condition::ExecZ);
            asm.masks("s_cmp_eq_u", &[register, c(0)])?;
            asm.op("s_cselect_b32", &[taken, c(if_zero.into()), c((!if_zero).into())])?;
        }
        Condition::Debug => return Err(Error::internal("a debugger's branch is no site")),
    }
    plan.reach(&mut asm, r, counters)?;
    let (exec, saved) = (asm.exec(), asm.mask(r.saved_exec));
    asm.masks("s_mov_b", &[saved, exec])?;
    asm.op("v_writelane_b32", &[v(plan.vectors.data), taken, c(TAKEN)])?;
    asm.masks("s_mov_b", &[exec, c(COUNTED)])?;
    plan.add(&mut asm, r, counters)?;
    restore_exec(&mut asm, r)?;
    here.give_back(&mut asm)?;
    asm.bind(done);
    if scc_is_live {
        restore_scc(&mut asm, r)?;
    }
    here.leave(&mut asm, plan.vectors)?;
    asm.finish()
}
