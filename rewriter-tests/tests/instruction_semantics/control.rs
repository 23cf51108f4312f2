//! Control flow, MODE, relative scalar moves, and the operations that change nothing a program sees.

use wavetap::isa::{Inst, Operand, Role, Target, Value};

use super::choose::Wishes;
use super::definition::Definition;
use super::random::Random;
use super::scalars;
use super::state::State;

/// The registers that the instructions behind a branch set, one each, and to what.
pub const LADDER: [u16; 4] = [80, 81, 82, 83];
pub const STEP: u32 = 0x1230;
/// The scalars that relative moves reach.
pub const RELATIVE: std::ops::Range<u16> = 16..48;

/// What follows a branch: each instruction of it that is executed sets its register.
fn jump(state: &mut State, skipped: usize) -> Option<()> {
    for (n, register) in LADDER.iter().enumerate().skip(skipped) {
        state.sgpr[usize::from(*register)] = STEP + n as u32;
    }
    (skipped <= LADDER.len()).then_some(())
}

fn displacement(inst: &Inst) -> Option<usize> {
    inst.operands.iter().find_map(|operand| if let Value::Imm(value) = operand.value { usize::try_from(value).ok() } else { None })
}

fn branch(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let vcc = state.mask(106);
    let taken = match inst.name() {
        "s_branch" => true,
        "s_cbranch_scc0" => !state.scc,
        "s_cbranch_scc1" => state.scc,
        "s_cbranch_vccz" => vcc == 0,
        "s_cbranch_vccnz" => vcc != 0,
        "s_cbranch_execz" => state.exec() == 0,
        "s_cbranch_execnz" => state.exec() != 0,
        // No debugger is there.
        _ => false,
    };
    jump(state, if taken { displacement(inst)? } else { 0 })
}

/// VCC is zero half of the time.
fn sometimes_zero(_: &Inst, state: &mut State, random: &mut Random) {
    if random.one_in(2) {
        state.set_mask(106, 0);
    }
}

fn pc(state: &State, to: u64) -> Option<usize> {
    Some(to.checked_sub(state.pc)? as usize / 4)
}

fn through_register(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let target = scalars::source(state, inst.operand(Role::Src0)?)?;
    let skipped = pc(state, target)?;
    let next = state.pc;
    if let Some(link) = inst.operand(Role::Sdst) {
        scalars::set(state, link, next)?;
    }
    jump(state, skipped)
}

fn into_ladder(inst: &Inst, state: &mut State, random: &mut Random) {
    let to = state.pc + 4 * random.below(LADDER.len() as u64 + 1);
    if let Some(reg) = inst.operand(Role::Src0).and_then(Operand::reg) {
        state.sgpr[usize::from(reg.first)] = to as u32;
        state.sgpr[usize::from(reg.first) + 1] = (to >> 32) as u32;
    }
}

fn call(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let next = state.pc;
    scalars::set(state, inst.operand(Role::Sdst)?, next)?;
    jump(state, displacement(inst)?)
}

fn getpc(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let next = state.pc;
    scalars::set(state, inst.operand(Role::Sdst)?, next)
}

/// Offset and width of a part of a hardware register; MODE is number 1.
fn mode_field(inst: &Inst, target: Target) -> Option<(u32, u32)> {
    let immediates: Vec<i64> =
        inst.operands.iter().filter_map(|operand| if let Value::Imm(value) = operand.value { Some(value) } else { None }).collect();
    let hwreg = *immediates.first()? as u32;
    let (id, offset, width) = (hwreg & 63, hwreg >> 6 & 31, (hwreg >> 11 & 31) + 1);
    let known = if target.has_float_mode_bits() { 10 } else { 8 };
    (id == 1 && offset + width <= known).then_some((offset, width))
}

fn getreg(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let (offset, width) = mode_field(inst, target)?;
    let value = u64::from(state.mode >> offset) & ((1 << width) - 1);
    scalars::set(state, inst.operand(Role::Sdst)?, value)
}

fn setreg(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let (offset, width) = mode_field(inst, target)?;
    let value = match inst.operand(Role::Src0) {
        Some(operand) => scalars::source(state, operand)? as u32,
        None => inst.operands.iter().find_map(|operand| if let Value::Literal(value) = operand.value { Some(value) } else { None })?,
    };
    let field = ((1_u64 << width) - 1) as u32;
    state.mode = state.mode & !(field << offset) | (value & field) << offset;
    Some(())
}

/// Moves between scalars that M0 chooses.
fn relative(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let by = state.sgpr[124] as usize;
    let (to, from) = (inst.operand(Role::Sdst)?, inst.operand(Role::Src0)?);
    let dwords = usize::from(to.dwords);
    let in_range = |operand: &Operand| operand.reg().map(|reg| usize::from(reg.first)).filter(|code| RELATIVE.contains(&(*code as u16)));
    let value = |state: &State, n: usize| scalars::source(state, from).map(|value| (value >> (32 * n)) as u32);
    let words: Vec<u32> = if inst.name().contains("movrels") {
        let first = in_range(from)? + by;
        (0..dwords).map(|n| state.sgpr[first + n]).collect()
    } else {
        (0..dwords).map(|n| value(state, n)).collect::<Option<_>>()?
    };
    let first = in_range(to)? + if inst.name().contains("movreld") { by } else { 0 };
    state.sgpr[first..first + dwords].copy_from_slice(&words);
    Some(())
}

fn small_index(_: &Inst, state: &mut State, random: &mut Random) {
    state.sgpr[124] = random.below(8) as u32 * 2;
    for n in RELATIVE {
        state.sgpr[usize::from(n)] = random.next() as u32;
    }
}

/// Nothing that a program sees.
fn nothing(_: &Inst, _: &mut State, _: Target) -> Option<()> {
    Some(())
}

/// The definition of such an operation.
pub fn definition(name: &str) -> Option<Definition> {
    let ladder = |f| Definition { ladder: true, ..Definition::whole(f) };
    let small: fn(&mut Random, Role) -> Option<u64> = |random, _| Some(random.below(LADDER.len() as u64 + 1));
    // Only what has an immediate: others are chosen as always.
    let link: fn(&mut Random, Role) -> Option<u64> = |random, role| (role != Role::Sdst).then(|| random.below(LADDER.len() as u64 + 1));
    let zero: fn(&mut Random, Role) -> Option<u64> = |_, _| Some(0);
    let mode: fn(&mut Random, Role) -> Option<u64> = |random, role| {
        let (offset, width) = (random.below(8), 1 + random.below(8));
        (role == Role::Hwreg).then_some(1 | offset << 6 | (width.min(8 - offset) - 1) << 11)
    };
    let plain = Wishes { no_literals: true, ..Wishes::default() };
    Some(match name {
        "s_branch"
        | "s_cbranch_scc0"
        | "s_cbranch_scc1"
        | "s_cbranch_vccz"
        | "s_cbranch_vccnz"
        | "s_cbranch_execz"
        | "s_cbranch_execnz"
        | "s_cbranch_cdbgsys"
        | "s_cbranch_cdbguser"
        | "s_cbranch_cdbgsys_or_user"
        | "s_cbranch_cdbgsys_and_user" => Definition { operand: Some(small), prepare: Some(sometimes_zero), ..ladder(branch) },
        "s_call_b64" => Definition { operand: Some(link), ..ladder(call) },
        "s_setpc_b64" | "s_swappc_b64" => {
            Definition { prepare: Some(into_ladder), wishes: Wishes { no_inline: true, ..plain }, ..ladder(through_register) }
        }
        "s_getpc_b64" => Definition::whole(getpc),
        "s_getreg_b32" => Definition { operand: Some(mode), ..Definition::whole(getreg) },
        "s_setreg_b32" => Definition { operand: Some(mode), ..Definition::whole(setreg) },
        "s_setreg_imm32_b32" => Definition { operand: Some(mode), ..Definition::whole(setreg) },
        "s_movrels_b32" | "s_movrels_b64" | "s_movreld_b32" | "s_movreld_b64" => {
            Definition { prepare: Some(small_index), wishes: plain, relative: true, ..Definition::whole(relative) }
        }
        "s_nop"
        | "s_sleep"
        | "s_setprio"
        | "s_sethalt"
        | "s_setkill"
        | "s_waitcnt"
        | "s_wakeup"
        | "s_icache_inv"
        | "s_dcache_inv"
        | "s_dcache_inv_vol"
        | "s_dcache_wb"
        | "s_dcache_wb_vol"
        | "s_incperflevel"
        | "s_decperflevel"
        | "s_barrier"
        | "s_gl1_inv"
        | "s_inst_prefetch"
        | "s_clause"
        | "s_delay_alu"
        | "s_waitcnt_depctr"
        | "s_code_end_no"
        | "s_round_mode_no"
        | "v_nop"
        | "buffer_wbl2"
        | "buffer_inv"
        | "buffer_invl2"
        | "buffer_wbinvl1"
        | "buffer_wbinvl1_vol"
        | "ds_nop"
        | "buffer_gl0_inv"
        | "buffer_gl1_inv"
        | "s_wait_loadcnt"
        | "s_wait_storecnt"
        | "s_wait_dscnt"
        | "s_wait_kmcnt"
        | "s_wait_expcnt"
        | "s_wait_samplecnt"
        | "s_wait_bvhcnt"
        | "s_wait_loadcnt_dscnt"
        | "s_wait_storecnt_dscnt"
        | "s_wait_idle"
        | "s_set_inst_prefetch_distance"
        | "v_clrexcp"
        | "s_ttracedata"
        | "s_ttracedata_imm" => Definition { operand: Some(zero), ..Definition::whole(nothing) },
        _ => return None,
    })
}
