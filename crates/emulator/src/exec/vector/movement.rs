//! Vector instructions that move values between lanes of a row or between registers that M0 names.

use wavetap_amdgpu::{Half, Opcode, Operand, Reg, RegFile, Role, scalar};

use crate::fault::stop::{ExecResult, undefined};
use crate::lanes::{LANES, Lanes, active};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

fn register(op: &Op, role: Role) -> ExecResult<u16> {
    match op.inst.operand(role).and_then(Operand::reg) {
        Some(Reg { file: RegFile::Vector, first, .. }) => Ok(first),
        _ => undefined("an operand that is no vector register"),
    }
}

fn read(core: &mut Core, op: &Op, register: u16) -> ExecResult<[u32; LANES]> {
    core.reading(op, RegFile::Vector, register, 1)?;
    Ok(core.wave.vgpr[usize::from(register)].0)
}

fn write(core: &mut Core, op: &Op, register: u16, values: &[u32; LANES], mask: u64) -> ExecResult {
    core.writing(op, RegFile::Vector, register, 1)?;
    for lane in active(mask) {
        core.wave.vgpr[usize::from(register)][lane] = values[lane];
    }
    Ok(())
}

/// A source that may be scalar, for each lane.
fn source(core: &mut Core, op: &Op, role: Role) -> ExecResult<Lanes> {
    let source = op.source(role, Ty::B32);
    if source == Source::None {
        return undefined("a source that is not there");
    }
    core.lanes(op, source, Ty::B32, 0)
}

/// Fetches from the lanes that `from` gives. What an inactive lane has is fetched only with FI (`op_sel[0]`); without
/// it, BOUND_CTRL (`op_sel[1]`) says that 0 takes its place, or else the destination stays (RDNA ISA guides,
/// "V_PERMLANE16_B32").
fn fetch(core: &mut Core, op: &Op, from: impl Fn(usize) -> usize) -> ExecResult {
    let values = read(core, op, register(op, Role::Src0)?)?;
    let (fetch_inactive, bound) = (op.inst.modifiers.op_sel & 1 != 0, op.inst.modifiers.op_sel & 2 != 0);
    let exec = core.wave.exec();
    let (mut moved, mut mask) = ([0; LANES], 0);
    for lane in active(exec) {
        let at = from(lane);
        let valid = fetch_inactive || exec >> at & 1 != 0;
        if valid {
            moved[lane] = values[at];
        }
        if valid || bound {
            mask |= 1 << lane;
        }
    }
    write(core, op, register(op, Role::Vdst)?, &moved, mask)
}

/// The lane of the same row, or of the other row of a pair of rows.
fn in_row(lane: usize, within: usize, other: bool) -> usize {
    (lane & !15 | within & 15) ^ if other { 16 } else { 0 }
}

/// The selecting lanes are in two scalars, four bits each.
fn row_permute(core: &mut Core, op: &Op, other: bool) -> ExecResult {
    let (low, high) = (source(core, op, Role::Src1)?[0], source(core, op, Role::Src2)?[0]);
    let select = low & 0xffff_ffff | high << 32;
    fetch(core, op, |lane| in_row(lane, (select >> (4 * (lane & 15)) & 15) as usize, other))
}

/// Each lane selects for itself.
fn row_permute_each(core: &mut Core, op: &Op, other: bool) -> ExecResult {
    let select = source(core, op, Role::Src1)?;
    fetch(core, op, |lane| in_row(lane, select[lane] as usize, other))
}

/// `v_permlane64_b32`: exchanges the halves of a wave of 64 lanes, inactive ones included, and does nothing to one of
/// 32.
fn exchange_halves(core: &mut Core, op: &Op) -> ExecResult {
    if op.inst.wave_size != 64 {
        return Ok(());
    }
    let values = read(core, op, register(op, Role::Src0)?)?;
    let moved = std::array::from_fn(|lane| values[lane ^ 32]);
    let mask = core.wave.exec();
    write(core, op, register(op, Role::Vdst)?, &moved, mask)
}

/// `v_permlane16_swap` and `v_permlane32_swap`: the upper rows of each pair of rows of the first register change places
/// with the lower ones of the second.
fn swap_rows(core: &mut Core, op: &Op, row: usize) -> ExecResult {
    let lanes = usize::from(op.inst.wave_size);
    if core.wave.exec().count_ones() as usize != lanes {
        return undefined("an exchange of rows with inactive lanes");
    }
    let (first, second) = (register(op, Role::Vdst)?, register(op, Role::Src0)?);
    let (mut a, mut b) = (read(core, op, first)?, read(core, op, second)?);
    for lane in (0..lanes).filter(|lane| lane & row == 0) {
        std::mem::swap(&mut a[lane + row], &mut b[lane]);
    }
    let mask = core.wave.exec();
    write(core, op, first, &a, mask)?;
    write(core, op, second, &b, mask)
}

/// The groups of lanes of gfx1250's permutations: the first lane of a lane's group, the lane's place in it, and the
/// group's width.
fn group(lane: usize, width: u64) -> (usize, usize, usize) {
    let width = width as usize;
    (lane / width * width, lane % width, width)
}

fn group_width(core: &mut Core, op: &Op, role: Role) -> ExecResult<u64> {
    let width = source(core, op, role)?[0] & 0xffff_ffff;
    if width.is_power_of_two() && width <= u64::from(op.inst.wave_size) {
        return Ok(width);
    }
    undefined(format!("groups of {width} lanes"))
}

/// Permutations within groups: `from` gives the lane to fetch from, active or not, by the group's first lane, the own
/// place in it, the group's width and the selecting scalar.
fn group_permute(core: &mut Core, op: &Op, from: fn(usize, usize, usize, usize) -> usize) -> ExecResult {
    let width = group_width(core, op, Role::Src2)?;
    let select = source(core, op, Role::Src1)?[0] as u32 as usize;
    let values = read(core, op, register(op, Role::Src0)?)?;
    let moved = std::array::from_fn(|lane| {
        let (base, at, width) = group(lane, width);
        values[from(base, at, width, select) % LANES]
    });
    let mask = core.wave.exec();
    write(core, op, register(op, Role::Vdst)?, &moved, mask)
}

/// `v_permlane_idx_gen_b32`: the address with which `ds_bpermute_b32` fetches from a place in the lane's group.
fn group_index(core: &mut Core, op: &Op) -> ExecResult {
    let width = group_width(core, op, Role::Src1)?;
    let select = source(core, op, Role::Src0)?;
    let indices = std::array::from_fn(|lane| {
        let (base, _, width) = group(lane, width);
        (base as u32 + (select[lane] as u32 & 63 & (width as u32 - 1))) << 2
    });
    let mask = core.wave.exec();
    write(core, op, register(op, Role::Vdst)?, &indices, mask)
}

/// What M0 adds to register numbers: the whole of it, or ten bits for the source and ten for the destination.
fn relative(core: &mut Core, op: &Op, two: bool) -> ExecResult<(u16, u16)> {
    let m0 = core.scalar(op, scalar::M0)?;
    let whole = m0.min(0xffff) as u16;
    Ok(if two { (m0 as u16 & 0x3ff, (m0 >> 16) as u16 & 0x3ff) } else { (whole, whole) })
}

fn plain(op: &Op) -> ExecResult {
    let modifiers = &op.inst.modifiers;
    if modifiers.dpp.is_some() || modifiers.dpp8.is_some() || modifiers.sdwa.is_some() {
        return undefined("relative register numbers together with DPP or SDWA");
    }
    Ok(())
}

/// `v_movrel*`: which of the two register numbers M0 is added to.
fn move_relative(core: &mut Core, op: &Op, from: bool, to: bool, two: bool) -> ExecResult {
    plain(op)?;
    let (source_offset, destination_offset) = relative(core, op, two)?;
    let values = if from {
        let at = register(op, Role::Src0)?.saturating_add(source_offset);
        read(core, op, at)?
    } else {
        source(core, op, Role::Src0)?.map(|value| value as u32)
    };
    let first = register(op, Role::Vdst)?;
    let mask = core.wave.exec();
    write(core, op, if to { first.saturating_add(destination_offset) } else { first }, &values, mask)
}

/// `v_swaprel_b32`.
fn swap_relative(core: &mut Core, op: &Op) -> ExecResult {
    plain(op)?;
    let (source_offset, destination_offset) = relative(core, op, true)?;
    let first = register(op, Role::Vdst)?.saturating_add(destination_offset);
    let second = register(op, Role::Src0)?.saturating_add(source_offset);
    let (a, b) = (read(core, op, first)?, read(core, op, second)?);
    let mask = core.wave.exec();
    write(core, op, first, &b, mask)?;
    write(core, op, second, &a, mask)
}

/// `v_swap_b16`: two halves of registers.
fn swap_halves(core: &mut Core, op: &Op) -> ExecResult {
    let (first, second) = (register(op, Role::Vdst)?, register(op, Role::Src0)?);
    let shift =
        |role: Role| if op.inst.operand(role).is_some_and(|operand| operand.half == Half::High) { 16 } else { 0 };
    let (x, y) = (shift(Role::Vdst), shift(Role::Src0));
    let (a, b) = (read(core, op, first)?, read(core, op, second)?);
    core.writing(op, RegFile::Vector, first, 1)?;
    core.writing(op, RegFile::Vector, second, 1)?;
    for lane in active(core.wave.exec()) {
        let mut put = |register: u16, shift: u32, value: u32| {
            let cell = &mut core.wave.vgpr[usize::from(register)][lane];
            *cell = *cell & !(0xffff << shift) | (value & 0xffff) << shift;
        };
        put(first, x, b[lane] >> y);
        put(second, y, a[lane] >> x);
    }
    Ok(())
}

macro_rules! own {
    ($f:expr) => {
        ($f, Semantics::Own)
    };
}

/// The meaning of an instruction of this kind.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_PERMLANE16_B32 => own!(|core, op| row_permute(core, op, false)),
        Opcode::V_PERMLANEX16_B32 => own!(|core, op| row_permute(core, op, true)),
        Opcode::V_PERMLANE16_VAR_B32 => own!(|core, op| row_permute_each(core, op, false)),
        Opcode::V_PERMLANEX16_VAR_B32 => own!(|core, op| row_permute_each(core, op, true)),
        Opcode::V_PERMLANE64_B32 => own!(exchange_halves),
        Opcode::V_PERMLANE16_SWAP_B32 => own!(|core, op| swap_rows(core, op, 16)),
        Opcode::V_PERMLANE32_SWAP_B32 => own!(|core, op| swap_rows(core, op, 32)),
        Opcode::V_PERMLANE_BCAST_B32 => {
            own!(|core, op| group_permute(core, op, |base, _, width, select| base + (select & 63 & (width - 1))))
        }
        Opcode::V_PERMLANE_UP_B32 => own!(|core, op| group_permute(core, op, |base, at, width, delta| {
            let delta = delta.min(width);
            base + if at < delta { at } else { at - delta }
        })),
        Opcode::V_PERMLANE_DOWN_B32 => own!(|core, op| group_permute(core, op, |base, at, width, delta| {
            let delta = delta.min(width);
            base + if at + delta < width { at + delta } else { at }
        })),
        Opcode::V_PERMLANE_XOR_B32 => own!(|core, op| group_permute(core, op, |base, at, width, mask| {
            let to = (base + at) ^ (mask & 63);
            // It is there in wave32 only.
            if mask < 32 && to < base + width { to } else { base + at }
        })),
        Opcode::V_PERMLANE_IDX_GEN_B32 => own!(group_index),
        Opcode::V_MOVRELD_B32 => own!(|core, op| move_relative(core, op, false, true, false)),
        Opcode::V_MOVRELS_B32 => own!(|core, op| move_relative(core, op, true, false, false)),
        Opcode::V_MOVRELSD_B32 => own!(|core, op| move_relative(core, op, true, true, false)),
        Opcode::V_MOVRELSD_2_B32 => own!(|core, op| move_relative(core, op, true, true, true)),
        Opcode::V_SWAPREL_B32 => own!(swap_relative),
        Opcode::V_SWAP_B16 => own!(swap_halves),
        _ => return None,
    })
}
