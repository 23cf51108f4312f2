//! Control flow, MODE, relative scalar moves, and the operations that change nothing a program sees.

use wavetap::isa::{Inst, Operand, Role, Target, Value};

use super::choose::Wishes;
use super::definition::Definition;
use super::random::Random;
use super::scalars;
use super::state::State;

/// The registers that the instructions after a branch set, one each, and to what.
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
    inst.operands
        .iter()
        .find_map(|operand| if let Value::Imm(value) = operand.value { usize::try_from(value).ok() } else { None })
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

/// The distance is in bytes, from the next instruction.
fn add_pc(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let bytes = scalars::source(state, inst.operand(Role::Src0)?)?;
    jump(state, usize::try_from(bytes).ok().filter(|bytes| bytes.is_multiple_of(4))? / 4)
}

fn distance_into_ladder(inst: &Inst, state: &mut State, random: &mut Random) {
    let bytes = 4 * random.below(LADDER.len() as u64 + 1);
    if let Some(reg) = inst.operand(Role::Src0).and_then(Operand::reg) {
        state.sgpr[usize::from(reg.first)] = bytes as u32;
        state.sgpr[usize::from(reg.first) + 1] = 0;
    }
}

fn getpc(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let next = state.pc;
    scalars::set(state, inst.operand(Role::Sdst)?, next)
}

/// Offset and width of a part of a hardware register; MODE is number 1.
fn mode_field(inst: &Inst, target: Target) -> Option<(u32, u32)> {
    let immediates: Vec<i64> = inst
        .operands
        .iter()
        .filter_map(|operand| if let Value::Imm(value) = operand.value { Some(value) } else { None })
        .collect();
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
        None => inst
            .operands
            .iter()
            .find_map(|operand| if let Value::Literal(value) = operand.value { Some(value) } else { None })?,
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
    let in_range = |operand: &Operand| {
        operand.reg().map(|reg| usize::from(reg.first)).filter(|code| RELATIVE.contains(&(*code as u16)))
    };
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

/// `s_round_mode` and `s_denorm_mode` set four bits of MODE.
fn mode_bits(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let shift = if inst.name() == "s_round_mode" { 0 } else { 4 };
    let bits = inst
        .operands
        .iter()
        .find_map(|operand| if let Value::Imm(value) = operand.value { Some(value) } else { None })?;
    state.mode = state.mode & !(15 << shift) | (bits as u32 & 15) << shift;
    Some(())
}

/// The number of the wave in its workgroup, which has one wave.
fn first_wave(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    scalars::set(state, inst.operand(Role::Sdst)?, 0)
}

/// The register of a loop over the halves of a wave, which has the EXEC of the half that is not running.
fn other_half(inst: &Inst) -> Option<usize> {
    inst.operands.iter().find_map(Operand::reg).map(|reg| reg.first.into()).filter(|code| (16..100).contains(code))
}

/// The first half is run first; the second one only if the first has no lane; without any lane, neither is.
fn halves_begin(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let saved = other_half(inst)?;
    match (state.sgpr[126], state.sgpr[127]) {
        (0, 0) => return jump(state, displacement(inst)?),
        (0, _) => state.sgpr[saved] = 0,
        (_, high) => {
            state.sgpr[saved] = high;
            state.sgpr[127] = 0;
        }
    }
    jump(state, 0)
}

/// After the first half comes the second one, if it has a lane; after that, EXEC is what it was.
fn halves_end(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let saved = other_half(inst)?;
    if state.sgpr[127] != 0 {
        state.sgpr[126] = state.sgpr[saved];
        return jump(state, 0);
    }
    if state.sgpr[saved] == 0 {
        return jump(state, 0);
    }
    // There is no other half in a wave of 32 lanes.
    if state.lanes == 32 {
        return None;
    }
    state.sgpr[127] = state.sgpr[saved];
    state.sgpr[saved] = state.sgpr[126];
    state.sgpr[126] = 0;
    jump(state, displacement(inst)?)
}

/// A half without lanes, now and then.
fn empty_halves(inst: &Inst, state: &mut State, random: &mut Random) {
    for half in [126, 127] {
        if random.one_in(3) {
            state.sgpr[half] = 0;
        }
    }
    if let Some(saved) = other_half(inst).filter(|_| random.one_in(3)) {
        state.sgpr[saved] = 0;
    }
}

/// A wait whose count is the immediate: the register is NULL.
fn waits(inst: &Inst, _: &mut State, _: Target) -> Option<()> {
    inst.operands.first()?.reg().filter(|reg| reg.first == wavetap::isa::scalar::NULL).map(|_| ())
}

/// A move in which M0 has an offset for either register.
fn relative_both(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let m0 = state.sgpr[124] as usize;
    let at = |role: Role, by: usize| {
        let first = inst.operand(role)?.reg()?.first;
        let register = usize::from(first) + by;
        (RELATIVE.contains(&first) && RELATIVE.contains(&(register as u16))).then_some(register)
    };
    state.sgpr[at(Role::Sdst, m0 >> 16 & 0x3ff)?] = state.sgpr[at(Role::Src0, m0 & 0x3ff)?];
    Some(())
}

fn two_small_indices(inst: &Inst, state: &mut State, random: &mut Random) {
    small_index(inst, state, random);
    state.sgpr[124] = (random.below(12) | random.below(12) << 16) as u32;
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
    let link: fn(&mut Random, Role) -> Option<u64> =
        |random, role| (role != Role::Sdst).then(|| random.below(LADDER.len() as u64 + 1));
    let zero: fn(&mut Random, Role) -> Option<u64> = |_, _| Some(0);
    let mode: fn(&mut Random, Role) -> Option<u64> = |random, role| {
        let (offset, width) = (random.below(8), 1 + random.below(8));
        match role {
            Role::Hwreg => Some(1 | offset << 6 | (width.min(8 - offset) - 1) << 11),
            // On gfx1250 these bits of a literal choose registers, whatever is written: see `programs`.
            Role::Imm => Some(random.next() & 0xfff0_0fff),
            _ => None,
        }
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
        | "s_cbranch_cdbgsys_and_user" => {
            Definition { operand: Some(small), prepare: Some(sometimes_zero), ..ladder(branch) }
        }
        "s_add_pc_i64" => Definition { prepare: Some(distance_into_ladder), wishes: plain, ..ladder(add_pc) },
        "s_call_b64" | "s_call_i64" => Definition { operand: Some(link), ..ladder(call) },
        "s_setpc_b64" | "s_swappc_b64" | "s_set_pc_i64" | "s_swap_pc_i64" => Definition {
            prepare: Some(into_ladder),
            wishes: Wishes { no_inline: true, ..plain },
            ..ladder(through_register)
        },
        "s_getpc_b64" | "s_get_pc_i64" => Definition::whole(getpc),
        "s_getreg_b32" => Definition { operand: Some(mode), ..Definition::whole(getreg) },
        "s_setreg_b32" => Definition { operand: Some(mode), ..Definition::whole(setreg) },
        "s_setreg_imm32_b32" => Definition { operand: Some(mode), ..Definition::whole(setreg) },
        "s_movrels_b32" | "s_movrels_b64" | "s_movreld_b32" | "s_movreld_b64" => {
            Definition { prepare: Some(small_index), wishes: plain, relative: true, ..Definition::whole(relative) }
        }
        "s_round_mode" | "s_denorm_mode" => Definition::whole(mode_bits),
        "s_get_waveid_in_workgroup" => Definition::whole(first_wave),
        "s_subvector_loop_begin" | "s_subvector_loop_end" => {
            let begins = name.ends_with("begin");
            let f = if begins { halves_begin } else { halves_end };
            let target: fn(&mut Random, Role) -> Option<u64> =
                |random, role| (role != Role::Src0).then(|| random.below(LADDER.len() as u64 + 1));
            Definition {
                operand: Some(target),
                prepare: Some(empty_halves),
                wishes: Wishes { no_inline: true, ..plain },
                ..ladder(f)
            }
        }
        "s_movrelsd_2_b32" => Definition {
            prepare: Some(two_small_indices),
            wishes: plain,
            relative: true,
            ..Definition::whole(relative_both)
        },
        "s_waitcnt_vmcnt" | "s_waitcnt_expcnt" | "s_waitcnt_lgkmcnt" | "s_waitcnt_vscnt" => {
            let null: fn(&mut Random, Role) -> Option<u64> = |random, _| Some(124 + random.below(2));
            Definition { operand: Some(null), ..Definition::whole(waits) }
        }
        "flat_prefetch_b8" | "global_prefetch_b8" => Definition::whole(nothing),
        "s_nop"
        | "s_sleep_var"
        | "s_version"
        | "s_code_end"
        | "s_wait_alu"
        | "s_wait_event"
        | "s_atc_probe"
        | "s_atc_probe_buffer"
        | "s_prefetch_inst"
        | "s_prefetch_inst_pc_rel"
        | "s_prefetch_data"
        | "s_prefetch_data_pc_rel"
        | "s_buffer_prefetch_data"
        | "s_sendmsg"
        | "s_sendmsghalt"
        | "v_pipeflush"
        | "global_inv"
        | "global_wb"
        | "global_wbinv"
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
        | "s_wait_xcnt"
        | "s_wait_asynccnt"
        | "s_wait_tensorcnt"
        | "s_monitor_sleep"
        | "s_setprio_inc_wg"
        | "s_set_inst_prefetch_distance"
        | "v_clrexcp"
        | "s_ttracedata"
        | "s_ttracedata_imm" => Definition { operand: Some(zero), ..Definition::whole(nothing) },
        _ => return None,
    })
}
