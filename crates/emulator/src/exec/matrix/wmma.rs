//! Matrix instructions of RDNA (WMMA): D = A * B + C with 16 rows and 16 columns, spread over the lanes of a wave.
//!
//! A lane has a part of a row of A and of a column of B. On gfx11 it is all of it, and every sixteen lanes have the
//! same again; on gfx12 each sixteen lanes have a part of their own (RDNA3 ISA guide, "Wave matrix multiply
//! accumulate"; RDNA4 ISA guide, "Matrix element storage in VGPRs"): how many numbers a lane has says which. The order
//! of K is the same in A and B, so it does not matter; on gfx11 each sixteen lanes may have an order of their own, as
//! rocWMMA gives them, and which of them the hardware takes a row or a column from makes no difference as long as the
//! order is one for both. Products are added in single precision one after the other, each rounded once, to nearest;
//! the hardware's own order of additions is not documented. EXEC is ignored.

use wavetap_amdgpu::{Modifiers, NumberFormat, Opcode, OpcodeFlags, Operand, Reg, RegFile, Role, Value};

use crate::fault::stop::{ExecResult, undefined};
use crate::float::small_float::{Format, decode};
use crate::float::{Round, fma_odd, from_bf16, from_f16, to_bf16, to_f16, to_f32};
use crate::lanes::LANES;
use crate::op::semantics::{Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Handler, Meaning, Op};

/// Rows of A, columns of B.
pub(crate) const SIZE: usize = 16;

/// The numbers in A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Single,
    Half,
    Brain,
    Int8,
    Int4,
    Eight(Format),
}

impl Element {
    fn of(format: NumberFormat) -> Option<Element> {
        Some(match format {
            NumberFormat::F32 => Element::Single,
            NumberFormat::F16 => Element::Half,
            NumberFormat::Bf16 => Element::Brain,
            NumberFormat::Iu8 => Element::Int8,
            NumberFormat::Iu4 => Element::Int4,
            NumberFormat::Fp8 => Element::Eight(Format::E4M3),
            NumberFormat::Bf8 => Element::Eight(Format::E5M2),
            _ => return None,
        })
    }

    pub(crate) fn bits(self) -> usize {
        match self {
            Element::Single => 32,
            Element::Half | Element::Brain => 16,
            Element::Int8 | Element::Eight(_) => 8,
            Element::Int4 => 4,
        }
    }
}

/// The numbers in C or D.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    Single,
    Half,
    Brain,
    Int,
}

impl Sum {
    fn of(format: NumberFormat) -> Option<Sum> {
        Some(match format {
            NumberFormat::F32 => Sum::Single,
            NumberFormat::F16 => Sum::Half,
            NumberFormat::Bf16 => Sum::Brain,
            NumberFormat::I32 => Sum::Int,
            _ => return None,
        })
    }

    fn is_narrow(self) -> bool {
        matches!(self, Sum::Half | Sum::Brain)
    }

    pub(crate) fn number(self, bits: u32) -> f64 {
        match self {
            Sum::Single => f32::from_bits(bits).into(),
            Sum::Half => from_f16(bits as u16),
            Sum::Brain => from_bf16(bits as u16),
            Sum::Int => f64::from(bits as i32),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Of C and of D.
    pub c: Sum,
    pub d: Sum,
    pub k: usize,
    pub a: Element,
    pub b: Element,
}

impl Shape {
    /// Of a dense or sparse WMMA operation whose factors are of kinds that its name says.
    pub(crate) fn of(opcode: Opcode) -> Option<Shape> {
        let matrix = opcode.matrix().filter(|_| opcode.is_any(OpcodeFlags::WMMA | OpcodeFlags::SWMMAC))?;
        let square = (matrix.rows, matrix.columns) == (16, 16);
        square.then_some(Shape {
            c: Sum::of(matrix.c)?,
            d: Sum::of(matrix.d)?,
            k: matrix.depth.into(),
            a: Element::of(matrix.a)?,
            b: Element::of(matrix.b)?,
        })
    }
}

pub(crate) fn registers(core: &mut Core, op: &Op, role: Role) -> ExecResult<Vec<[u32; LANES]>> {
    match op.inst.operand(role).and_then(Operand::reg) {
        Some(Reg { file: RegFile::Vector, first, dwords }) => {
            core.reading(op, RegFile::Vector, first, dwords.into())?;
            Ok(core.rows(RegFile::Vector, first, u16::from(dwords)))
        }
        _ => undefined("a matrix that is in no vector registers"),
    }
}

/// The numbers of A (`at` 0) or B (`at` 1) in every lane.
pub(crate) fn numbers(core: &mut Core, op: &Op, at: u8, element: Element) -> ExecResult<Vec<Vec<f64>>> {
    let registers = registers(core, op, if at == 0 { Role::Src0 } else { Role::Src1 })?;
    let modifiers = &op.inst.modifiers;
    let bits = element.bits();
    let mask = (u64::MAX >> (64 - bits)) as u32;
    let (negate, negate_high) = (modifiers.neg >> at & 1 != 0, modifiers.neg_hi >> at & 1 != 0);
    if element == Element::Single && negate_high {
        return undefined("the high negation of a matrix of single precision");
    }
    let value = |lane: usize, n: usize| {
        let raw = registers[n * bits / 32][lane] >> (n * bits % 32) & mask;
        let sign = if n.is_multiple_of(2) || bits == 32 { negate } else { negate_high };
        let signed = |x: f64| if sign { -x } else { x };
        match element {
            Element::Single => signed(f32::from_bits(raw).into()),
            Element::Half => signed(from_f16(raw as u16)),
            Element::Brain => signed(from_bf16(raw as u16)),
            Element::Eight(format) => decode(format, raw as u8),
            // Their negation bit says that they are signed.
            Element::Int8 | Element::Int4 if !negate => raw.into(),
            Element::Int8 => (raw as u8 as i8).into(),
            Element::Int4 => ((raw << 28) as i32 >> 28).into(),
        }
    };
    let each = registers.len() * 32 / bits;
    Ok((0..usize::from(op.inst.wave_size)).map(|lane| (0..each).map(|n| value(lane, n)).collect()).collect())
}

/// The rows of A or the columns of B, as each sixteen lanes have them that have all of one.
fn lines(numbers: &[Vec<f64>], k: usize) -> Vec<Vec<Vec<f64>>> {
    let each = numbers[0].len();
    if each == k {
        return numbers.chunks(SIZE).map(<[_]>::to_vec).collect();
    }
    vec![(0..SIZE).map(|line| (0..k).map(|n| numbers[line + SIZE * (n / each)][n % each]).collect()).collect()]
}

/// Refuses copies that are not the same numbers in another order along K, one order for both matrices: what the
/// hardware takes from which is not documented.
fn check_copies(a: &[Vec<Vec<f64>>], b: &[Vec<Vec<f64>>], k: usize) -> ExecResult {
    // What all rows and columns have at a place along K. The order of these is what copies may differ in.
    let places = |copy: usize| {
        let at = |n: usize| a[copy].iter().chain(&b[copy]).map(|line| line[n].to_bits()).collect::<Vec<u64>>();
        let mut places: Vec<Vec<u64>> = (0..k).map(at).collect();
        places.sort_unstable();
        places
    };
    let equal = |x: &[Vec<f64>], y: &[Vec<f64>]| {
        x.iter().flatten().zip(y.iter().flatten()).all(|(x, y)| x.to_bits() == y.to_bits())
    };
    let mut copies = 1..a.len();
    if copies.clone().all(|copy| equal(&a[copy], &a[0]) && equal(&b[copy], &b[0])) {
        return Ok(());
    }
    let first = places(0);
    match copies.find(|copy| places(*copy) != first) {
        Some(_) => undefined(
            "a matrix of which not every 16 lanes have the same numbers in an order along K that A and B share",
        ),
        None => Ok(()),
    }
}

/// Where an element of C or D is: register, lane, and the bit it begins at.
pub(crate) fn place(op: &Op, sum: Sum, packed: bool, row: usize, column: usize) -> (usize, usize, usize) {
    let groups = usize::from(op.inst.wave_size) / SIZE;
    let narrow = sum.is_narrow();
    if !packed {
        // gfx11: the groups of lanes have rows in turn; of narrow numbers `op_sel` has the half.
        let shift = if narrow && op.inst.modifiers.op_sel & 4 != 0 { 16 } else { 0 };
        return (row / groups, row % groups * SIZE + column, shift);
    }
    // gfx12: as many rows in a row, in wave64 in another order of the groups.
    let each = SIZE / groups;
    let group = if groups == 2 { row / 8 } else { (row / 4 % 2) * 2 + row / 8 };
    let within = row % each;
    if narrow { (within / 2, group * SIZE + column, within % 2 * 16) } else { (within, group * SIZE + column, 0) }
}

/// An element of D: that of C with the products added.
pub(crate) fn total(shape: Shape, clamp: bool, start: f64, products: impl Iterator<Item = (f64, f64)>) -> u32 {
    if shape.d == Sum::Int {
        // Exact in double precision: at most 2^31 + 128 * 2^16.
        let total = products.fold(start, |sum, (x, y)| sum + x * y) as i64;
        return if clamp { total.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32 } else { total as u32 };
    }
    let total = products.fold(start as f32, |sum, (x, y)| to_f32(fma_odd(x, y, sum.into()), Round::Nearest));
    match shape.d {
        Sum::Half => to_f16(total.into(), Round::Nearest).into(),
        Sum::Brain => to_bf16(total).into(),
        _ => total.to_bits(),
    }
}

/// Puts an element of D in its place.
pub(crate) fn put(core: &mut Core, sum: Sum, first: u16, (register, lane, shift): (usize, usize, usize), result: u32) {
    let cell = &mut core.wave.vgpr[usize::from(first) + register][lane];
    *cell = if sum.is_narrow() { *cell & !(0xffff << shift) | result << shift } else { result };
}

/// A constant in all elements of C.
pub(crate) fn constant(op: &Op, sum: Sum) -> Option<u32> {
    // An inline float is one of the element's own format.
    let float = op.inst.operand(Role::Src2).is_some_and(|operand| matches!(operand.value, Value::InlineFloat(_)));
    match op.source(Role::Src2, if sum == Sum::Half { Ty::F16 } else { Ty::B32 }) {
        Source::Const(bits) if sum == Sum::Brain && float => Some(bits as u32 >> 16),
        Source::Const(bits) => Some(bits as u32),
        _ => None,
    }
}

/// An element of C with the sign that the modifiers give it: the high negation bit is an absolute value here.
pub(crate) fn signed(element: f64, modifiers: &Modifiers) -> f64 {
    let element = if modifiers.neg_hi & 4 != 0 { element.abs() } else { element };
    if modifiers.neg & 4 != 0 { -element } else { element }
}

fn run(core: &mut Core, op: &Op) -> ExecResult {
    let Some(shape) = of(op.inst.opcode()) else { return undefined("matrix shape") };
    let modifiers = op.inst.modifiers;
    let a = lines(&numbers(core, op, 0, shape.a)?, shape.k);
    let b = lines(&numbers(core, op, 1, shape.b)?, shape.k);
    check_copies(&a, &b, shape.k)?;
    let Some(dst) = op.dst else { return undefined("a matrix instruction without destination") };
    let words = op.inst.operand(Role::Src0).map_or(0, |operand| usize::from(operand.dwords));
    // A lane that has all of a row of A is gfx11's.
    let packed = words * 32 / shape.a.bits() != shape.k;
    let constant = constant(op, shape.c);
    let c = if constant.is_some() { Vec::new() } else { registers(core, op, Role::Src2)? };
    core.writing(op, RegFile::Vector, dst.first, dst.dwords.into())?;
    for (row, column) in (0..SIZE).flat_map(|row| (0..SIZE).map(move |column| (row, column))) {
        let (register, lane, shift) = place(op, shape.c, packed, row, column);
        let mut start = shape.c.number(constant.unwrap_or_else(|| c[register][lane] >> shift));
        if shape.c != Sum::Int {
            start = signed(start, &modifiers);
        }
        // Of copies, a row of the result is computed with the one that its lanes have.
        let copy = row % a.len();
        let result =
            total(shape, modifiers.clamp, start, a[copy][row].iter().copied().zip(b[copy][column].iter().copied()));
        put(core, shape.d, dst.first, place(op, shape.d, packed, row, column), result);
    }
    Ok(())
}

fn of(opcode: Opcode) -> Option<Shape> {
    Shape::of(opcode).filter(|_| opcode.is_any(OpcodeFlags::WMMA))
}

/// The meaning of a matrix instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    of(opcode).map(|_| (run as Handler, Semantics::Own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_operations() {
        let shape = of(Opcode::V_WMMA_I32_16X16X32_IU4).unwrap();
        assert_eq!((shape.k, shape.a, shape.d), (32, Element::Int4, Sum::Int));
        let shape = of(Opcode::V_WMMA_F32_16X16X16_FP8_BF8).unwrap();
        assert_eq!((shape.a, shape.b), (Element::Eight(Format::E4M3), Element::Eight(Format::E5M2)));
        let shape = of(Opcode::V_WMMA_BF16F32_16X16X32_BF16).unwrap();
        assert_eq!((shape.c, shape.d, shape.k), (Sum::Single, Sum::Brain, 32));
        assert_eq!(of(Opcode::V_SWMMAC_F32_16X16X32_F16), None);
    }
}
