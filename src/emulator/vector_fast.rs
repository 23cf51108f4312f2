//! The short way of vector ALU instructions: whole registers of 32 or 64 bits a lane, no DPP, SDWA or output modifiers, the usual MODE.
//!
//! What is not of that kind, and every instruction while MODE is unusual or registers are indexed, goes the general way of [`super::vector`].

use crate::isa::{Inst, Reg, RegFile};

use super::core::{Core, LANES, Step, undefined};
use super::lanes::{Operation, Row, blend};
use super::op::{Handler, Op, Semantics, Source, Ty};
use super::vector::{run_lane, run_lane_bit, run_test};

static ZERO: Row = [0; LANES];

/// Room for a row that is not a register's, not filled before it is needed.
type Buffer = Option<Row>;

fn is_word(ty: Ty) -> bool {
    matches!(ty, Ty::B32 | Ty::F32)
}

fn is_whole(ty: Ty) -> bool {
    is_word(ty) || matches!(ty, Ty::B64 | Ty::F64)
}

/// The handler of an instruction: a short one where it is of that kind, else the one given.
pub(super) fn faster(run: Handler, semantics: &Semantics, inst: &Inst, dst: Option<Reg>) -> Handler {
    let m = inst.modifiers;
    let plain = m.op_sel | m.bitop3 | m.byte_sel == 0 && m.omod == 0 && !m.clamp && m.dpp.is_none() && m.dpp8.is_none() && m.sdwa.is_none();
    if !plain {
        return run;
    }
    let in_vector = dst.is_some_and(|reg| reg.file == RegFile::Vector);
    let is = |handler: Handler| std::ptr::fn_addr_eq(run, handler);
    match *semantics {
        Semantics::Lane { dst: ty, src: [a, b, c, d], .. } if is(run_lane) && in_vector && d == Ty::None => {
            let used = [a, b, c].map(|ty| ty != Ty::None);
            if is_word(ty) && (is_word(a) || !used[0]) && (is_word(b) || !used[1]) && (is_word(c) || !used[2] || c == Ty::Mask) {
                run_words
            } else if is_whole(ty) && [a, b, c].iter().all(|ty| is_whole(*ty) || *ty == Ty::None) {
                run_doubles
            } else {
                run
            }
        }
        Semantics::Test { src: [a, b], .. } if is(run_test) && is_word(a) && is_word(b) => run_word_test,
        Semantics::LaneBit { dst: ty, src: [a, b, c, d], .. } if is(run_lane_bit) && in_vector => {
            let words = is_word(ty) && is_word(a) && is_word(b);
            if words && matches!(c, Ty::None | Ty::Mask) && d == Ty::None && m.neg | m.abs == 0 { run_word_bit } else { run }
        }
        _ => run,
    }
}

/// Whether this short way is open now.
fn usual(core: &Core) -> bool {
    core.wave.usual && !core.is_indexing()
}

/// Checks that a source may be read; gives what it is if it is one value for all lanes.
fn check(core: &mut Core, op: &Op, source: Source, ty: Ty) -> Step<u64> {
    let dwords = u16::from(ty.dwords());
    match source {
        Source::Vector(first) => core.reading(op, RegFile::Vector, first, dwords).map(|()| 0),
        Source::Accum(first) => core.reading(op, RegFile::Accum, first, dwords).map(|()| 0),
        Source::Scalar(code) if ty == Ty::Mask => core.mask(op, code),
        Source::Scalar(code) if dwords == 2 => core.scalar64(op, code),
        Source::Scalar(code) => core.scalar(op, code).map(u64::from),
        Source::Const(bits) => Ok(bits),
        Source::None => Ok(0),
        Source::LdsDirect => core.lanes(op, source, Ty::B32, 0).map(|values| values[0]),
    }
}

/// One dword of a source in all lanes: `n` is 0 or 1.
fn row<'a>(core: &'a Core, source: Source, n: u16, value: u64, buffer: &'a mut Buffer) -> &'a Row {
    match source {
        Source::Vector(first) => &core.wave.vgpr[usize::from(first + n)],
        Source::Accum(first) => &core.wave.agpr[usize::from(first + n)],
        _ => buffer.insert([(value >> (32 * n)) as u32; LANES]),
    }
}

/// Absolute value and negation of a source, on the dword that has the sign.
fn signed<'a>(op: &Op, at: usize, row: &'a Row, buffer: &'a mut Buffer) -> &'a Row {
    let modifiers = &op.inst.modifiers;
    with_sign(row, modifiers.abs >> at & 1 != 0, modifiers.neg >> at & 1 != 0, buffer)
}

fn with_sign<'a>(row: &'a Row, absolute: bool, negate: bool, buffer: &'a mut Buffer) -> &'a Row {
    const SIGN: u32 = 1 << 31;
    if !absolute && !negate {
        return row;
    }
    let (keep, flip) = (if absolute { !SIGN } else { u32::MAX }, if negate { SIGN } else { 0 });
    buffer.insert(row.map(|value| value & keep ^ flip))
}

/// A lane mask as numbers.
fn expand(mask: u64, buffer: &mut Buffer) -> &Row {
    buffer.insert(std::array::from_fn(|lane| (mask >> lane & 1) as u32))
}

fn run_words(core: &mut Core, op: &Op) -> Step {
    if !usual(core) {
        return run_lane(core, op);
    }
    let Semantics::Lane { f, src, .. } = op.semantics else { return undefined("meaning") };
    let Some(Reg { first, .. }) = op.dst else { return undefined("no destination") };
    let values = [check(core, op, op.src[0], src[0])?, check(core, op, op.src[1], src[1])?, check(core, op, op.src[2], src[2])?];
    core.writing(op, RegFile::Vector, first, 1)?;
    let mut out = [0; LANES];
    {
        let (mut a, mut b, mut c): (Buffer, Buffer, Buffer) = (None, None, None);
        let (mut sign_a, mut sign_b, mut sign_c): (Buffer, Buffer, Buffer) = (None, None, None);
        let a = signed(op, 0, row(core, op.src[0], 0, values[0], &mut a), &mut sign_a);
        let b = match src[1] {
            Ty::None => &ZERO,
            _ => signed(op, 1, row(core, op.src[1], 0, values[1], &mut b), &mut sign_b),
        };
        let c = match src[2] {
            Ty::None => &ZERO,
            Ty::Mask => expand(values[2], &mut c),
            _ => signed(op, 2, row(core, op.src[2], 0, values[2], &mut c), &mut sign_c),
        };
        f.words([a, b, c], &mut out);
    }
    let mask = core.wave.exec();
    blend(&mut core.wave.vgpr[usize::from(first)], &out, mask);
    Ok(())
}

fn run_doubles(core: &mut Core, op: &Op) -> Step {
    if !usual(core) {
        return run_lane(core, op);
    }
    let Semantics::Lane { f, src, dst, .. } = op.semantics else { return undefined("meaning") };
    let Some(Reg { first, .. }) = op.dst else { return undefined("no destination") };
    let values = [check(core, op, op.src[0], src[0])?, check(core, op, op.src[1], src[1])?, check(core, op, op.src[2], src[2])?];
    core.writing(op, RegFile::Vector, first, u16::from(dst.dwords()))?;
    let (mut low, mut high) = ([0; LANES], [0; LANES]);
    {
        let mut buffers: [[Buffer; 3]; 3] = Default::default();
        let mut sources = [[&ZERO; 2]; 3];
        for (at, [low, high, sign]) in buffers.iter_mut().enumerate() {
            if src[at] == Ty::None {
                continue;
            }
            sources[at][0] = row(core, op.src[at], 0, values[at], low);
            if src[at].dwords() == 2 {
                sources[at][1] = signed(op, at, row(core, op.src[at], 1, values[at], high), sign);
            } else {
                sources[at][0] = signed(op, at, sources[at][0], sign);
            }
        }
        f.doubles(sources, [&mut low, &mut high]);
    }
    let mask = core.wave.exec();
    blend(&mut core.wave.vgpr[usize::from(first)], &low, mask);
    if dst.dwords() == 2 {
        blend(&mut core.wave.vgpr[usize::from(first) + 1], &high, mask);
    }
    Ok(())
}

fn run_word_test(core: &mut Core, op: &Op) -> Step {
    if !usual(core) {
        return run_test(core, op);
    }
    let Semantics::Test { f, src, exec } = op.semantics else { return undefined("meaning") };
    let values = [check(core, op, op.src[0], src[0])?, check(core, op, op.src[1], src[1])?];
    let bits = {
        let (mut a, mut b, mut sign_a, mut sign_b): (Buffer, Buffer, Buffer, Buffer) = (None, None, None, None);
        let a = signed(op, 0, row(core, op.src[0], 0, values[0], &mut a), &mut sign_a);
        let b = signed(op, 1, row(core, op.src[1], 0, values[1], &mut b), &mut sign_b);
        f.words(a, b)
    };
    super::vector::set_test(core, op, bits & core.wave.exec(), exec)
}

fn run_word_bit(core: &mut Core, op: &Op) -> Step {
    if !usual(core) {
        return run_lane_bit(core, op);
    }
    let Semantics::LaneBit { f, src, .. } = op.semantics else { return undefined("meaning") };
    let Some(Reg { first, .. }) = op.dst else { return undefined("no destination") };
    let values = [check(core, op, op.src[0], src[0])?, check(core, op, op.src[1], src[1])?, check(core, op, op.src[2], src[2])?];
    core.writing(op, RegFile::Vector, first, 1)?;
    let mut out = [0; LANES];
    let bits = {
        let (mut a, mut b): (Buffer, Buffer) = (None, None);
        f.words(row(core, op.src[0], 0, values[0], &mut a), row(core, op.src[1], 0, values[1], &mut b), values[2], &mut out)
    };
    let mask = core.wave.exec();
    blend(&mut core.wave.vgpr[usize::from(first)], &out, mask);
    core.set_mask(op, op.sdst, bits & mask)
}

/// Packed operations on pairs of 32-bit numbers: a row for each half. None where the general way must be gone.
pub(super) fn run_packed32(core: &mut Core, op: &Op, f: &dyn Operation) -> Option<Step> {
    let modifiers = op.inst.modifiers;
    if !usual(core) || modifiers.clamp {
        return None;
    }
    Some(packed32(core, op, f))
}

fn packed32(core: &mut Core, op: &Op, f: &dyn Operation) -> Step {
    let modifiers = op.inst.modifiers;
    let Some(Reg { first, .. }) = op.dst else { return undefined("no destination") };
    let mut values = [0; 3];
    for (value, [source, _]) in values.iter_mut().zip(op.scalars) {
        // A constant is the same in both halves.
        let double = |bits: u64| bits << 32 | bits;
        *value = if let Source::Const(bits) = source { double(bits) } else { check(core, op, source, Ty::B64)? };
    }
    core.writing(op, RegFile::Vector, first, 2)?;
    let mut out = [[0; LANES]; 2];
    for (half, out) in out.iter_mut().enumerate() {
        let (select, negate) = if half == 0 { (modifiers.op_sel, modifiers.neg) } else { (modifiers.op_sel_hi, modifiers.neg_hi) };
        let mut buffers: [[Buffer; 2]; 3] = Default::default();
        let mut rows = [&ZERO; 3];
        for (at, [buffer, sign]) in buffers.iter_mut().enumerate() {
            let source = op.scalars[at][0];
            if source != Source::None {
                let row = row(core, source, u16::from(select >> at & 1), values[at], buffer);
                rows[at] = with_sign(row, false, negate >> at & 1 != 0, sign);
            }
        }
        f.words(rows, out);
    }
    let mask = core.wave.exec();
    for (n, values) in out.iter().enumerate() {
        blend(&mut core.wave.vgpr[usize::from(first) + n], values, mask);
    }
    Ok(())
}
