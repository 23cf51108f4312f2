//! Matrix instructions (MFMA): D = A * B + C on small dense matrices that are spread over the lanes of a wave.
//!
//! A has M rows and K columns, B has K rows and N columns, and there may be several independent blocks of them. How the
//! elements lie in registers follows AMD's matrix instruction calculator. Products are added one after the other in the
//! order of K, each rounded once to the accumulator's type; the hardware's own order of additions is not documented.
//! EXEC is ignored.

use wavetap_amdgpu::{NumberFormat, Opcode, OpcodeFlags, Operand, Reg, RegFile, Role};

use crate::fault::stop::{Step, undefined};
use crate::float::small_float::{Format, decode};
use crate::float::{Round, fma_odd, from_bf16, from_f16, to_f32};
use crate::lanes::LANES;
use crate::op::{Meaning, Op, Semantics, Source, Ty};
use crate::state::core::Core;

/// The element type of A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    F16,
    Bf16,
    I8,
    Fp8,
    Bf8,
    F64,
    /// Single precision of which 10 bits of the fraction count.
    Xf32,
    /// Of 4, 6 or 8 bits, as the instruction's fields say ([`super::mfma_scaled`]).
    Mixed,
}

impl Element {
    pub(crate) fn bits(self) -> usize {
        match self {
            Element::F64 => 64,
            Element::F32 | Element::Xf32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::I8 | Element::Fp8 | Element::Bf8 | Element::Mixed => 8,
        }
    }

    pub(crate) fn value(self, bits: u64, fnuz: bool) -> f64 {
        match self {
            Element::F64 => f64::from_bits(bits),
            Element::F32 => f64::from(f32::from_bits(bits as u32)),
            Element::Xf32 => f64::from(f32::from_bits(xf32(bits as u32))),
            Element::F16 => from_f16(bits as u16),
            Element::Bf16 => from_bf16(bits as u16),
            Element::I8 => f64::from(bits as u8 as i8),
            Element::Fp8 => decode(Format::eight(false, fnuz), bits as u8),
            Element::Bf8 | Element::Mixed => decode(Format::eight(true, fnuz), bits as u8),
        }
    }
}

/// What of a single-precision number is multiplied in XF32: sign, exponent and 10 bits of the fraction; the other 13
/// are cut off. The ISA guide does not say how they get lost; that they are cut off has been measured on CDNA3 (P. Xie
/// et al., "MMA-Sim", 2025). A NaN whose bits are among those stays one.
fn xf32(bits: u32) -> u32 {
    let nan = f32::from_bits(bits).is_nan();
    bits & !0x1fff | if nan { 0x40_0000 } else { 0 }
}

/// The accumulator's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    F32,
    I32,
    F64,
}

/// What the name of an instruction says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub sum: Sum,
    /// Rows and columns of D.
    pub size: usize,
    k: usize,
    pub a: Element,
    pub b: Element,
}

impl Shape {
    /// Of a dense or sparse MFMA operation.
    pub(crate) fn of(opcode: Opcode) -> Option<Shape> {
        let matrix = opcode.matrix().filter(|_| opcode.is_any(OpcodeFlags::MFMA | OpcodeFlags::SMFMAC))?;
        let sum = match matrix.d {
            NumberFormat::F32 => Sum::F32,
            NumberFormat::I32 => Sum::I32,
            NumberFormat::F64 => Sum::F64,
            _ => return None,
        };
        let element = |format: NumberFormat| {
            Some(match format {
                NumberFormat::F32 => Element::F32,
                NumberFormat::F16 => Element::F16,
                NumberFormat::Bf16 => Element::Bf16,
                NumberFormat::I8 => Element::I8,
                NumberFormat::Fp8 => Element::Fp8,
                NumberFormat::Bf8 => Element::Bf8,
                NumberFormat::F64 => Element::F64,
                NumberFormat::Xf32 => Element::Xf32,
                NumberFormat::F8f6f4 => Element::Mixed,
                _ => return None,
            })
        };
        let (size, k) = (matrix.rows.into(), matrix.depth.into());
        Some(Shape { sum, size, k, a: element(matrix.a)?, b: element(matrix.b)? })
    }

    /// Whether the accumulator is in double precision.
    pub(crate) fn is_double(self) -> bool {
        self.sum == Sum::F64
    }

    /// Whether the inputs are in single precision.
    pub(crate) fn is_single(self) -> bool {
        self.a == Element::F32
    }

    /// Whether the inputs are in XF32.
    pub(crate) fn is_xf32(self) -> bool {
        self.a == Element::Xf32
    }

    /// Whether the instruction's fields say what the inputs are.
    pub(crate) fn is_mixed(self) -> bool {
        self.a == Element::Mixed
    }

    pub(crate) fn k(self) -> usize {
        self.k
    }

    /// Row, column and block of element `index` of the accumulator in a lane.
    pub(crate) fn place(self, lane: usize, index: usize) -> (usize, usize, usize) {
        let column = lane % self.size;
        match (self.sum, self.size) {
            (Sum::F64, 16) => (4 * index + lane / 16, column, 0),
            (Sum::F64, _) => (lane / 16, column, lane / 4 % 4),
            (_, 32) => (8 * (index % 16 / 4) + 4 * (lane / 32) + index % 4, column, index / 16),
            (_, 16) => (4 * (lane / 16) + index % 4, column, index / 4),
            _ => (index, column, lane / 4),
        }
    }
}

/// The bits of A or B: `[lane][element]`.
pub(crate) type Elements = Vec<Vec<u64>>;

pub(crate) fn elements(core: &mut Core, op: &Op, role: Role, bits: usize) -> Step<Elements> {
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

fn run(core: &mut Core, op: &Op) -> Step {
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
pub(crate) fn accumulator(core: &mut Core, op: &Op, c: &Operand, words: u16) -> Step<Vec<[u32; LANES]>> {
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
            let double = op.matrix.is_some_and(Shape::is_double);
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
    let shape = Shape::of(opcode).filter(|_| opcode.is_any(OpcodeFlags::MFMA))?;
    (!shape.is_mixed()).then_some((run as crate::op::Handler, Semantics::Own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_operations() {
        let shape = Shape::of(Opcode::V_MFMA_F32_32X32X4_2B_BF16).unwrap();
        assert_eq!((shape.size, shape.k, shape.a), (32, 4, Element::Bf16));
        let shape = Shape::of(Opcode::V_MFMA_F32_16X16X32_BF8_FP8).unwrap();
        assert_eq!((shape.size, shape.k, shape.a, shape.b), (16, 32, Element::Bf8, Element::Fp8));
        let shape = Shape::of(Opcode::V_MFMA_F32_32X32X8BF16_1K).unwrap();
        assert_eq!((shape.size, shape.k, shape.a), (32, 8, Element::Bf16));
        let shape = Shape::of(Opcode::V_MFMA_SCALE_F32_16X16X128_F8F6F4).unwrap();
        assert_eq!((shape.size, shape.k, shape.a), (16, 128, Element::Mixed));
    }

    #[test]
    fn xf32_cuts_fractions_off() {
        assert_eq!(xf32(0x3f80_1fff), 0x3f80_0000);
        assert_eq!(xf32(0xbfff_ffff), 0xbfff_e000);
        assert_eq!(xf32(0x7f80_0000), 0x7f80_0000);
        assert!(f32::from_bits(xf32(0x7f80_0001)).is_nan());
    }

    /// Every element of D has exactly one place.
    #[test]
    fn places_are_a_bijection() {
        for (opcode, blocks) in [
            (Opcode::V_MFMA_F32_32X32X1F32, 2),
            (Opcode::V_MFMA_F32_32X32X2F32, 1),
            (Opcode::V_MFMA_F32_16X16X1F32, 4),
            (Opcode::V_MFMA_F32_16X16X4F32, 1),
            (Opcode::V_MFMA_F32_4X4X1F32, 16),
            (Opcode::V_MFMA_F64_16X16X4F64, 1),
            (Opcode::V_MFMA_F64_4X4X4F64, 4),
        ] {
            let shape = Shape::of(opcode).unwrap();
            let mut seen = std::collections::HashSet::new();
            for lane in 0..LANES {
                for index in 0..shape.size * shape.size * blocks / LANES {
                    let (i, j, block) = shape.place(lane, index);
                    assert!(i < shape.size && j < shape.size && block < blocks, "{opcode}");
                    assert!(seen.insert((i, j, block)), "{opcode}");
                }
            }
            assert_eq!(seen.len(), shape.size * shape.size * blocks, "{opcode}");
        }
    }
}
