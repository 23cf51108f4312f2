//! Vector operations in which lanes see each other, scalars or more registers than their own two.

use wavetap::isa::{Inst, Operand, Role, Target};

use super::choose::Wishes;
use super::definition::Definition;
use super::lane::{self, T};
use super::random::Bits;
use super::scalars;
use super::state::State;

fn vector(inst: &Inst, role: Role) -> Option<usize> {
    inst.operand(role).and_then(Operand::reg).map(|reg| reg.first.into())
}

fn selected(inst: &Inst, state: &State) -> Option<usize> {
    Some(scalars::source(state, inst.operand(Role::Src1)?)? as usize % state.lanes)
}

fn readlane(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let lane = selected(inst, state)?;
    let value = lane::read(state, inst.operand(Role::Src0)?, T::U32)?[lane];
    scalars::set(state, inst.operand(Role::Sdst).or_else(|| inst.operand(Role::Vdst))?, value)
}

fn readfirstlane(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    // With no lane active the first one is read.
    let lane = (0..state.lanes).find(|lane| state.is_active(*lane)).unwrap_or(0);
    let value = lane::read(state, inst.operand(Role::Src0)?, T::U32)?[lane];
    scalars::set(state, inst.operand(Role::Sdst).or_else(|| inst.operand(Role::Vdst))?, value)
}

fn writelane(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let lane = selected(inst, state)?;
    let value = scalars::source(state, inst.operand(Role::Src0)?)?;
    state.vgpr[vector(inst, Role::Vdst)?][lane] = value as u32;
    Some(())
}

fn swap(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let (a, b) = (vector(inst, Role::Vdst)?, vector(inst, Role::Src0)?);
    let before = state.clone();
    for lane in (0..state.lanes).filter(|lane| before.is_active(*lane)) {
        state.vgpr[a][lane] = before.vgpr[b][lane];
        state.vgpr[b][lane] = before.vgpr[a][lane];
    }
    Some(())
}

/// Counts the bits of a mask that belong to lower lanes, of the lower or the upper 32.
fn mbcnt(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let mask = lane::read(state, inst.operand(Role::Src0)?, T::U32)?;
    let base = lane::read(state, inst.operand(Role::Src1)?, T::U32)?;
    let first = if inst.name().contains("_hi_") { 32 } else { 0 };
    let to = vector(inst, Role::Vdst)?;
    for lane in 0..state.lanes {
        if state.is_active(lane) {
            let count = (0..32).filter(|bit| first + bit < lane && mask[lane] >> bit & 1 != 0).count();
            state.vgpr[to][lane] = (base[lane] as u32).wrapping_add(count as u32);
        }
    }
    Some(())
}

/// Four masked sums of absolute differences, each added to a register.
fn mqsad(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let a = lane::read(state, inst.operand(Role::Src0)?, T::U64)?;
    let b = lane::read(state, inst.operand(Role::Src1)?, T::U32)?;
    let (c, to) = (
        vector(inst, Role::Src2).filter(|_| inst.operand(Role::Src2).is_some_and(|o| o.dwords == 4))?,
        vector(inst, Role::Vdst)?,
    );
    let before = state.clone();
    for lane in (0..state.lanes).filter(|lane| before.is_active(*lane)) {
        for n in 0..4 {
            let sum: u32 = (0..4)
                .map(|k| ((a[lane] >> (8 * (n + k)) & 0xff) as u32, (b[lane] >> (8 * k) & 0xff) as u32))
                .filter(|(_, reference)| *reference != 0)
                .map(|(byte, reference)| byte.abs_diff(reference))
                .sum();
            state.vgpr[to + n][lane] = before.vgpr[c + n][lane].wrapping_add(sum);
        }
    }
    Some(())
}

/// The definition of such an operation.
pub fn definition(name: &str) -> Option<Definition> {
    let apart = Wishes { apart: true, ..Wishes::default() };
    Some(match name {
        "v_readlane_b32" => Definition::whole(readlane),
        "v_readfirstlane_b32" => Definition::whole(readfirstlane),
        "v_writelane_b32" => Definition::whole(writelane),
        "v_swap_b32" => Definition { wishes: apart, ..Definition::whole(swap) },
        "v_mbcnt_lo_u32_b32" | "v_mbcnt_hi_u32_b32" => Definition::whole(mbcnt),
        "v_mqsad_u32_u8" => {
            let wishes = Wishes { no_float_constants: true, ..apart };
            Definition { wishes, types: &[Bits::Word64, Bits::Word32], ..Definition::whole(mqsad) }
        }
        _ => return None,
    })
}
