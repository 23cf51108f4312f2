//! Matrix instructions (MFMA): D = A * B + C on small dense matrices that are spread over the lanes of a wave.
//!
//! A has M rows and K columns, B has K rows and N columns, and there may be several independent blocks of them. How the
//! elements lie in registers follows AMD's matrix instruction calculator. Products are added one after the other in the
//! order of K, each rounded once to the accumulator's type; the hardware's own order of additions is not documented.
//! EXEC is ignored.

use wavetap_amdgpu::{Opcode, OpcodeFlags, Operand, Reg, RegFile, Role};

use crate::fault::stop::{ExecResult, undefined};
use crate::float::{Round, fma_odd, to_f32};
use crate::lanes::LANES;
use crate::op::matrix_shape::{MfmaShape, Sum};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Handler, Meaning, Op};

/// The bits of A or B: `[lane][element]`.
pub(crate) type Elements = Vec<Vec<u64>>;

pub(crate) fn elements(core: &mut Core, op: &Op, role: Role, bits: usize) -> ExecResult<Elements> {
    let Some(operand) = op.inst.operand(role) else { return undefined("a matrix instruction without source") };
    let Some(reg) = operand.reg().filter(|reg| reg.file != RegFile::Scalar) else {
        return undefined("a matrix source that is no vector register");
    };
    let words = u16::from(operand.dwords);
    core.reading(op, reg.file, reg.first, words)?;
    if core.launch.strict {
        let checked =
            core.wave.hazards.check_matrix_source(op, core.launch, Reg { dwords: operand.dwords, ..reg }, false);
        core.passed(checked)?;
    }
    let file = core.file(reg.file);
    let words = usize::from(words);
    let mask = u64::MAX >> (64 - bits);
    Ok((0..LANES)
        .map(|lane| {
            let word = |n: usize| if n < words { u64::from(file[usize::from(reg.first) + n][lane]) } else { 0 };
            // Those of six bits cross from one register to the next.
            let element = |at: usize| (word(at / 32) | word(at / 32 + 1) << 32) >> (at % 32) & mask;
            (0..words * 32 / bits).map(|n| element(n * bits)).collect()
        })
        .collect())
}

/// The lane whose B elements a lane uses (`blgp`).
fn pattern(blgp: u8, lane: usize) -> usize {
    match blgp {
        0 => lane,
        1 => lane % 32,
        2 => 32 + lane % 32,
        3 => (lane + 16) % 64,
        n => 16 * usize::from(n - 4) + lane % 16,
    }
}

fn run(core: &mut Core, op: &Op) -> ExecResult {
    let Some(shape) = op.matrix else { return undefined("matrix shape") };
    let modifiers = op.inst.modifiers;
    let fnuz = core.launch.target.fnuz_fp8();
    let a = elements(core, op, Role::Src0, shape.a.bits())?;
    let mut b = elements(core, op, Role::Src1, shape.b.bits())?;
    let (Some(dst), Some(c)) = (op.dst, op.inst.operand(Role::Src2)) else {
        return undefined("a matrix instruction without accumulator");
    };
    // In double precision BLGP negates A, B and C on the targets that have these bits.
    let negate = if shape.is_double() { modifiers.blgp } else { 0 };
    if !shape.is_double() && modifiers.blgp != 0 {
        b = (0..LANES).map(|lane| b[pattern(modifiers.blgp, lane)].clone()).collect();
    }
    let (m, k, per_lane) = (shape.size, shape.k, a[0].len());
    let blocks = LANES * per_lane / (m * k);
    // The lane and element that hold an entry of A or B.
    let place = |row: usize, at: usize, block: usize| (row + m * (block + blocks * (at / per_lane)), at % per_lane);
    let source_block = |block: usize| ((block & !((1 << modifiers.cbsz) - 1)) + usize::from(modifiers.abid)) % blocks;

    let words_each = if shape.is_double() { 2 } else { 1 };
    let count = m * m * blocks / LANES;
    let words = (count * words_each) as u16;
    let old = accumulator(core, op, c, words)?;
    core.writing(op, dst.file, dst.first, words)?;
    for (lane, index) in (0..LANES).flat_map(|lane| (0..count).map(move |index| (lane, index))) {
        let (i, j, block) = shape.place(lane, index);
        let a_block = if modifiers.cbsz == 0 || shape.is_double() { block } else { source_block(block) };
        let pairs = (0..k).map(|at| {
            let (a_lane, a_at) = place(i, at, a_block);
            let (b_lane, b_at) = place(j, at, block);
            (shape.a.value(a[a_lane][a_at], fnuz), shape.b.value(b[b_lane][b_at], fnuz))
        });
        let word = |n: usize| u64::from(old[index * words_each + n][lane]);
        let result = match shape.sum {
            Sum::F32 => u64::from(
                pairs
                    .fold(f32::from_bits(word(0) as u32), |sum, (x, y)| {
                        to_f32(fma_odd(x, y, f64::from(sum)), Round::Nearest)
                    })
                    .to_bits(),
            ),
            Sum::I32 => u64::from(pairs.fold(word(0) as u32, |sum, (x, y)| sum.wrapping_add((x * y) as i32 as u32))),
            Sum::F64 => {
                let sign = |bit: u8| if negate >> bit & 1 != 0 { -1.0 } else { 1.0 };
                pairs
                    .fold(sign(2) * f64::from_bits(word(0) | word(1) << 32), |sum, (x, y)| {
                        (sign(0) * x).mul_add(sign(1) * y, sum)
                    })
                    .to_bits()
            }
        };
        let first = usize::from(dst.first) + index * words_each;
        core.file(dst.file)[first][lane] = result as u32;
        if words_each == 2 {
            core.file(dst.file)[first + 1][lane] = (result >> 32) as u32;
        }
    }
    Ok(())
}

/// The registers of C, or a constant in all of its elements.
pub(crate) fn accumulator(core: &mut Core, op: &Op, c: &Operand, words: u16) -> ExecResult<Vec<[u32; LANES]>> {
    match c.reg() {
        Some(Reg { file: RegFile::Scalar, .. }) => undefined("a scalar register as accumulator"),
        Some(Reg { file, first, .. }) => {
            core.reading(op, file, first, words)?;
            if core.launch.strict {
                let source = Reg { file, first, dwords: words as u8 };
                let checked = core.wave.hazards.check_matrix_source(op, core.launch, source, true);
                core.passed(checked)?;
            }
            Ok(core.rows(file, first, words))
        }
        None => {
            let double = op.matrix.is_some_and(MfmaShape::is_double);
            match op.source(Role::Src2, if double { Ty::F64 } else { Ty::B32 }) {
                Source::Const(bits) if double => {
                    Ok((0..words).map(|n| [(bits >> (32 * (n % 2))) as u32; LANES]).collect())
                }
                Source::Const(bits) => Ok(vec![[bits as u32; LANES]; usize::from(words)]),
                _ => undefined("a matrix instruction without accumulator"),
            }
        }
    }
}

/// The meaning of a matrix instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    let shape = MfmaShape::of(opcode).filter(|_| opcode.is_any(OpcodeFlags::MFMA))?;
    (!shape.is_mixed()).then_some((run as Handler, Semantics::Own))
}
