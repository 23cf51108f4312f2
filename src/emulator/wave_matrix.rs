//! Matrix instructions of RDNA (WMMA): D = A * B + C with 16 rows and 16 columns, spread over the lanes of a wave.
//!
//! A lane has a part of a row of A and of a column of B. On gfx11 it is all of it, and every sixteen lanes have the same again; on gfx12 each sixteen lanes have
//! a part of their own (RDNA3 ISA guide, "Wave matrix multiply accumulate"; RDNA4 ISA guide, "Matrix element storage in VGPRs"): how many numbers a lane has says
//! which. The order of K is the same in A and B, so it does not matter. Products are added in single precision one after the other, each rounded once, to
//! nearest; the hardware's own order of additions is not documented. EXEC is ignored.

use crate::isa::{Operand, Reg, RegFile, Role};

use super::core::{Core, LANES, Step, undefined};
use super::float::{Round, fma_odd, from_bf16, from_f16, to_bf16, to_f16, to_f32};
use super::op::{Meaning, Op, Semantics, Source, Ty};
use super::small_float::{Format, decode};

/// Rows of A, columns of B.
const SIZE: usize = 16;

/// The numbers in A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Half,
    Brain,
    Int8,
    Int4,
    Eight(Format),
}

impl Element {
    fn bits(self) -> usize {
        match self {
            Element::Half | Element::Brain => 16,
            Element::Int8 | Element::Eight(_) => 8,
            Element::Int4 => 4,
        }
    }
}

/// The numbers in C and D.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sum {
    Single,
    Half,
    Brain,
    Int,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    sum: Sum,
    k: usize,
    a: Element,
    b: Element,
}

impl Shape {
    /// `v_wmma_f32_16x16x16_f16`, `v_wmma_i32_16x16x32_iu4`, `v_wmma_f32_16x16x16_fp8_bf8` …
    fn parse(name: &str) -> Option<Shape> {
        let (sum, rest) = name.strip_prefix("v_wmma_")?.split_once("_16x16x")?;
        let (k, types) = rest.split_once('_')?;
        let sum = match sum {
            "f32" => Sum::Single,
            "f16" => Sum::Half,
            "bf16" => Sum::Brain,
            "i32" => Sum::Int,
            _ => return None,
        };
        let element = |name: &str| {
            Some(match name {
                "f16" => Element::Half,
                "bf16" => Element::Brain,
                "iu8" => Element::Int8,
                "iu4" => Element::Int4,
                "fp8" => Element::Eight(Format::E4M3),
                "bf8" => Element::Eight(Format::E5M2),
                _ => return None,
            })
        };
        let (a, b) = types.split_once('_').unwrap_or((types, types));
        let shape = Shape { sum, k: k.parse().ok()?, a: element(a)?, b: element(b)? };
        // Where A and B of other sizes are (gfx1250) differs between the two.
        let known = shape.k == 16 || (shape.k == 32 && shape.a == Element::Int4);
        known.then_some(shape)
    }
}

/// The rows of A or the columns of B, as numbers.
type Lines = Vec<Vec<f64>>;

fn registers(core: &mut Core, op: &Op, role: Role) -> Step<Vec<[u32; LANES]>> {
    match op.inst.operand(role).and_then(Operand::reg) {
        Some(Reg { file: RegFile::Vector, first, dwords }) => {
            core.reading(op, RegFile::Vector, first, dwords.into())?;
            Ok(core.rows(RegFile::Vector, first, u16::from(dwords)))
        }
        _ => undefined("a matrix that is in no vector registers"),
    }
}

/// A (`at` 0) or B (`at` 1).
fn lines(core: &mut Core, op: &Op, at: u8, element: Element, k: usize) -> Step<Lines> {
    let registers = registers(core, op, if at == 0 { Role::Src0 } else { Role::Src1 })?;
    let modifiers = &op.inst.modifiers;
    let bits = element.bits();
    let each = registers.len() * 32 / bits;
    let lanes = usize::from(op.inst.wave_size);
    if each == k && (SIZE..lanes).any(|lane| registers.iter().any(|register| register[lane] != register[lane % SIZE])) {
        return undefined("a matrix of which not every 16 lanes have the same");
    }
    let (negate, negate_high) = (modifiers.neg >> at & 1 != 0, modifiers.neg_hi >> at & 1 != 0);
    let value = |line: usize, n: usize| {
        let (lane, n) = (line + SIZE * (n / each), n % each);
        let raw = registers[n * bits / 32][lane] >> (n * bits % 32) & ((1_u64 << bits) - 1) as u32;
        let sign = if n % 2 == 0 { negate } else { negate_high };
        let signed = |x: f64| if sign { -x } else { x };
        match element {
            Element::Half => signed(from_f16(raw as u16)),
            Element::Brain => signed(from_bf16(raw as u16)),
            Element::Eight(format) => decode(format, raw as u8),
            // Their negation bit says that they are signed.
            Element::Int8 | Element::Int4 if !negate => raw.into(),
            Element::Int8 => (raw as u8 as i8).into(),
            Element::Int4 => ((raw << 28) as i32 >> 28).into(),
        }
    };
    Ok((0..SIZE).map(|line| (0..k).map(|n| value(line, n)).collect()).collect())
}

/// Where an element of C or D is: register, lane, and the bit it begins at.
fn place(op: &Op, sum: Sum, packed: bool, row: usize, column: usize) -> (usize, usize, usize) {
    let groups = usize::from(op.inst.wave_size) / SIZE;
    let narrow = matches!(sum, Sum::Half | Sum::Brain);
    if !packed {
        // gfx11: the groups of lanes have rows in turn; of narrow numbers `op_sel` has the half.
        let shift = if narrow && op.inst.modifiers.op_sel & 4 != 0 { 16 } else { 0 };
        return (row / groups, row % groups * SIZE + column, shift);
    }
    // gfx12: as many rows in a row, in waves of 64 in another order of the groups.
    let each = SIZE / groups;
    let group = if groups == 2 { row / 8 } else { (row / 4 % 2) * 2 + row / 8 };
    let within = row % each;
    if narrow { (within / 2, group * SIZE + column, within % 2 * 16) } else { (within, group * SIZE + column, 0) }
}

fn number(sum: Sum, bits: u32) -> f64 {
    match sum {
        Sum::Single => f32::from_bits(bits).into(),
        Sum::Half => from_f16(bits as u16),
        Sum::Brain => from_bf16(bits as u16),
        Sum::Int => f64::from(bits as i32),
    }
}

fn run(core: &mut Core, op: &Op) -> Step {
    let Some(shape) = Shape::parse(op.inst.variant.name) else { return undefined("matrix shape") };
    let modifiers = op.inst.modifiers;
    let a = lines(core, op, 0, shape.a, shape.k)?;
    let b = lines(core, op, 1, shape.b, shape.k)?;
    let Some(dst) = op.dst else { return undefined("a matrix instruction without destination") };
    let words = op.inst.operand(Role::Src0).map_or(0, |operand| usize::from(operand.dwords));
    // A lane that has all of a row of A is gfx11's.
    let packed = words * 32 / shape.a.bits() != shape.k;
    let constant = match op.source(Role::Src2, Ty::B32) {
        Source::Const(_) => {
            let narrow = matches!(shape.sum, Sum::Half | Sum::Brain);
            match op.source(Role::Src2, if narrow { Ty::F16 } else { Ty::B32 }) {
                Source::Const(bits) => Some(bits as u32),
                _ => None,
            }
        }
        _ => None,
    };
    let c = if constant.is_some() { Vec::new() } else { registers(core, op, Role::Src2)? };
    core.writing(op, RegFile::Vector, dst.first, dst.dwords.into())?;
    for (row, column) in (0..SIZE).flat_map(|row| (0..SIZE).map(move |column| (row, column))) {
        let (register, lane, shift) = place(op, shape.sum, packed, row, column);
        let bits = constant.unwrap_or_else(|| c[register][lane] >> shift);
        let products = (0..shape.k).map(|k| (a[row][k], b[column][k]));
        let result = if shape.sum == Sum::Int {
            // Exact in double precision: at most 2^31 + 32 * 2^16.
            let total = products.fold(number(Sum::Int, bits), |sum, (x, y)| sum + x * y) as i64;
            if modifiers.clamp { total.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32 } else { total as u32 }
        } else {
            let mut start = number(shape.sum, bits);
            // The high negation bit is an absolute value here.
            if modifiers.neg_hi & 4 != 0 {
                start = start.abs();
            }
            if modifiers.neg & 4 != 0 {
                start = -start;
            }
            let total = products.fold(start as f32, |sum, (x, y)| to_f32(fma_odd(x, y, sum.into()), Round::Nearest));
            match shape.sum {
                Sum::Half => to_f16(total.into(), Round::Nearest).into(),
                Sum::Brain => to_bf16(total).into(),
                _ => total.to_bits(),
            }
        };
        let cell = &mut core.wave.vgpr[usize::from(dst.first) + register][lane];
        *cell = match shape.sum {
            Sum::Single | Sum::Int => result,
            Sum::Half | Sum::Brain => *cell & !(0xffff << shift) | result << shift,
        };
    }
    Ok(())
}

/// The meaning of a matrix instruction.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    Shape::parse(name).map(|_| (run as super::op::Handler, Semantics::Own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_shape() {
        let shape = Shape::parse("v_wmma_i32_16x16x32_iu4").unwrap();
        assert_eq!((shape.k, shape.a, shape.sum), (32, Element::Int4, Sum::Int));
        let shape = Shape::parse("v_wmma_f32_16x16x16_fp8_bf8").unwrap();
        assert_eq!((shape.a, shape.b), (Element::Eight(Format::E4M3), Element::Eight(Format::E5M2)));
        assert_eq!(Shape::parse("v_wmma_f32_16x16x32_f16"), None);
        assert_eq!(Shape::parse("v_swmmac_f32_16x16x32_f16"), None);
    }
}
