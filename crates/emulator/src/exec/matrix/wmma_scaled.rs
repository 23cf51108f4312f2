//! Matrix instructions of gfx1250 on floats of 8, 6 and 4 bits, of which A and B may have different ones, with and
//! without scales (`v_wmma_f32_16x16x128_f8f6f4`, `v_wmma_scale_…`, `v_wmma_scale16_…`, and those with 32 rows of 4
//! bits).
//!
//! Lanes n and 16 + n have row n of A, or column n of B, in turn: along K runs of sixteen numbers of 8 bits, of
//! thirty-two of 6 or 4 bits. 32 rows are twice 16, one after the other, in C as well. A scale is for 32 numbers along
//! K of a row, or 16 (`scale16`): the bytes of one register, or two, from the lowest on. Of 16 rows the lanes from 0 or
//! from 16 on have them, as the instruction says; of 32, all lanes (CDNA5 ISA guide, 7.12.2 and 7.12.6).
//!
//! Without scales that guide does not list the instruction, and AMD's emulator (rocjitsu) has another layout where one
//! of A and B is of 8 bits and the other is not: refused. Products are added in the order of K, each rounded once, as
//! in [`super::wmma`]; the hardware's own order is not documented. Denormals are kept.

use wavetap_amdgpu::{Opcode, Operand, RegFile, Role, Value, scalar};

use super::wmma::{self, Element, SIZE, Sum, put, registers, total};
use crate::fault::stop::{ExecResult, undefined};
use crate::float::ldexp64;
use crate::float::small_float::{Format, decode};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Handler, Meaning, Op};

/// Numbers along K.
const K: usize = 128;

/// The format of a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScaleFormat {
    E8M0,
    E5M3,
    E4M3,
}

impl ScaleFormat {
    fn of(code: u8) -> Option<ScaleFormat> {
        [ScaleFormat::E8M0, ScaleFormat::E5M3, ScaleFormat::E4M3].get(usize::from(code)).copied()
    }

    /// The value of a code; none where nothing says what it means: a sign.
    fn value(self, code: u8) -> Option<f64> {
        const BIAS_E8M0: i32 = 127;
        match self {
            ScaleFormat::E8M0 if code == 255 => Some(f64::NAN),
            ScaleFormat::E8M0 => Some(ldexp64(1.0, i32::from(code) - BIAS_E8M0)),
            ScaleFormat::E5M3 => Some(decode_e5m3(code)),
            ScaleFormat::E4M3 if code & 0x80 != 0 => None,
            ScaleFormat::E4M3 => Some(decode(Format::E4M3, code)),
        }
    }
}

/// An eight-bit float without sign: five bits of exponent with a bias of 15, three of fraction; the largest code is
/// NaN, and there is no infinity.
fn decode_e5m3(code: u8) -> f64 {
    const BIAS: i32 = 15;
    let (exponent, fraction) = (i32::from(code >> 3), f64::from(code & 7));
    match (code, exponent) {
        (0xff, _) => f64::NAN,
        (_, 0) => ldexp64(fraction, 1 - BIAS - 3),
        _ => ldexp64(8.0 + fraction, exponent - BIAS - 3),
    }
}

/// What a scaled matrix operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    rows: usize,
    /// Numbers along K that have one scale.
    block: Option<usize>,
}

impl Shape {
    fn of(opcode: Opcode) -> Option<Shape> {
        let (rows, block) = match opcode {
            Opcode::V_WMMA_F32_16X16X128_F8F6F4 => (16, None),
            Opcode::V_WMMA_F32_32X16X128_F4 => (32, None),
            Opcode::V_WMMA_SCALE_F32_16X16X128_F8F6F4 => (16, Some(32)),
            Opcode::V_WMMA_SCALE_F32_32X16X128_F4 => (32, Some(32)),
            Opcode::V_WMMA_SCALE16_F32_16X16X128_F8F6F4 => (16, Some(16)),
            Opcode::V_WMMA_SCALE16_F32_32X16X128_F4 => (32, Some(16)),
            _ => return None,
        };
        Some(Shape { rows, block })
    }
}

/// A matrix operand: A or B.
struct Side {
    matrix: Role,
    scale: Role,
    lines: usize,
    format: Format,
    scale_format: ScaleFormat,
    /// The scales are in lanes from 16 on.
    high: bool,
}

impl Side {
    fn bits(&self) -> usize {
        self.format.bits() as usize
    }

    /// The lane, counted from the row's or column's first, and which of its numbers a number is.
    fn place(&self, k: usize) -> (usize, usize) {
        let run = if self.bits() == 8 { 16 } else { 32 };
        (k / run % 2 * SIZE, k / (2 * run) * run + k % run)
    }

    /// The rows of A or columns of B, scaled.
    fn lines(&self, core: &mut Core, op: &Op, block: Option<usize>) -> ExecResult<Vec<Vec<f64>>> {
        let words = registers(core, op, self.matrix)?;
        let (bits, sets) = (self.bits(), self.lines / SIZE);
        if words.len() * 32 != sets * K / 2 * bits {
            return undefined("a matrix of that many registers");
        }
        let scales = match block {
            Some(block) => self.scales(core, op, K / block)?,
            None => vec![vec![1.0]; self.lines],
        };
        let number = |line: usize, k: usize| {
            let (lane, n) = self.place(k);
            let at = line / SIZE * (K / 2 * bits) + n * bits;
            let word = |n: usize| words.get(n).map_or(0, |word| u64::from(word[line % SIZE + lane]));
            let code = (word(at / 32) | word(at / 32 + 1) << 32) >> (at % 32) & ((1 << bits) - 1);
            decode(self.format, code as u8) * scales[line][block.map_or(0, |block| k / block)]
        };
        Ok((0..self.lines).map(|line| (0..K).map(|k| number(line, k)).collect()).collect())
    }

    /// The scales of each row or column.
    fn scales(&self, core: &mut Core, op: &Op, count: usize) -> ExecResult<Vec<Vec<f64>>> {
        let bytes = self.scale_bytes(core, op, count)?;
        let value = |code: &u8| self.scale_format.value(*code);
        let values: Option<Vec<Vec<f64>>> = bytes.iter().map(|line| line.iter().map(value).collect()).collect();
        values.map_or_else(|| undefined("a scale with a sign"), Ok)
    }

    fn scale_bytes(&self, core: &mut Core, op: &Op, count: usize) -> ExecResult<Vec<Vec<u8>>> {
        let all = |byte: u8| Ok(vec![vec![byte; count]; self.lines]);
        match op.inst.operand(self.scale) {
            // Scales by 1, whatever their format (CDNA5 ISA guide).
            Some(Operand { value: Value::InlineInt(0), .. }) if self.scale_format == ScaleFormat::E8M0 => all(127),
            // Of a scalar register the lowest byte is for all.
            Some(operand)
                if operand.reg().is_some_and(|reg| reg.file == RegFile::Scalar && reg.first < scalar::NULL) =>
            {
                match op.source(self.scale, Ty::B32) {
                    Source::Scalar(code) => all(core.scalar(op, code)? as u8),
                    _ => undefined("a matrix instruction without scale"),
                }
            }
            Some(operand) if operand.reg().is_some_and(|reg| reg.file == RegFile::Vector) => {
                let words = registers(core, op, self.scale)?;
                if words.len() * 4 != count {
                    return undefined("scales of that many registers");
                }
                let first = if self.high { SIZE } else { 0 };
                Ok((first..first + self.lines)
                    .map(|lane| (0..count).map(|n| (words[n / 4][lane] >> (n % 4 * 8)) as u8).collect())
                    .collect())
            }
            _ => undefined("scales that are a constant other than 0"),
        }
    }
}

/// Whether the guide has such formats of numbers and of scales together.
fn go_together(a: &Side, b: &Side) -> bool {
    use ScaleFormat::E8M0;
    let is_four = |side: &Side| side.bits() == 4;
    match (a.scale_format, b.scale_format) {
        (E8M0, E8M0) => true,
        (E8M0, _) => !is_four(a) && is_four(b),
        (_, E8M0) => is_four(a) && !is_four(b),
        (one, other) => one == other && is_four(a) && is_four(b),
    }
}

fn sides(op: &Op, shape: Shape) -> Option<[Side; 2]> {
    let fields = op.inst.modifiers.matrix;
    let of = |code: u8| if shape.rows == 32 { Some(Format::E2M1) } else { Format::by_code(code) };
    let a = Side {
        matrix: Role::Src0,
        scale: Role::Scale0,
        lines: shape.rows,
        format: of(fields.a_fmt)?,
        scale_format: ScaleFormat::of(fields.a_scale_fmt)?,
        high: fields.a_scale != 0,
    };
    let b = Side {
        matrix: Role::Src1,
        scale: Role::Scale1,
        lines: SIZE,
        format: of(fields.b_fmt)?,
        scale_format: ScaleFormat::of(fields.b_scale_fmt)?,
        high: fields.b_scale != 0,
    };
    Some([a, b])
}

fn run(core: &mut Core, op: &Op) -> ExecResult {
    let (Some(shape), Some(dst)) = (Shape::of(op.inst.opcode()), op.dst) else { return undefined("matrix shape") };
    let Some([a, b]) = sides(op, shape) else { return undefined("a matrix of a format that there is not") };
    let modifiers = &op.inst.modifiers;
    if (modifiers.neg | modifiers.neg_hi) & 3 != 0 {
        return undefined("a matrix of small floats with its signs changed");
    }
    match shape.block {
        None if (a.bits() == 8) != (b.bits() == 8) => {
            return undefined("a product of 8-bit and narrower floats without scales");
        }
        Some(_) if !go_together(&a, &b) => return undefined("formats of numbers and scales that do not go together"),
        // All lanes have scales of their own.
        Some(_) if shape.rows == 32 && a.high => return undefined("scales of 32 rows from lane 16 on"),
        _ => {}
    }
    let rows = a.lines(core, op, shape.block)?;
    let columns = b.lines(core, op, shape.block)?;
    let constant = wmma::constant(op, Sum::Single);
    let c = if constant.is_some() { Vec::new() } else { registers(core, op, Role::Src2)? };
    core.writing(op, RegFile::Vector, dst.first, dst.dwords.into())?;
    let sum =
        wmma::Shape { c: Sum::Single, d: Sum::Single, k: K, a: Element::Eight(a.format), b: Element::Eight(b.format) };
    for (row, column) in (0..shape.rows).flat_map(|row| (0..SIZE).map(move |column| (row, column))) {
        let (register, lane, shift) = wmma::place(op, Sum::Single, true, row % SIZE, column);
        let register = row / SIZE * (SIZE / 2) + register;
        let start = wmma::signed(f32::from_bits(constant.unwrap_or_else(|| c[register][lane])).into(), modifiers);
        let products = rows[row].iter().copied().zip(columns[column].iter().copied());
        put(core, Sum::Single, dst.first, (register, lane, shift), total(sum, false, start, products));
    }
    Ok(())
}

/// The meaning of such a matrix instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    Shape::of(opcode).map(|_| (run as Handler, Semantics::Own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_as_the_guide_has_them() {
        let value = |format: ScaleFormat, code| format.value(code).unwrap();
        assert_eq!(value(ScaleFormat::E8M0, 127), 1.0);
        assert_eq!(value(ScaleFormat::E8M0, 0), 2f64.powi(-127));
        assert!(value(ScaleFormat::E8M0, 255).is_nan());
        assert_eq!(value(ScaleFormat::E5M3, 0xfe), 114_688.0);
        assert_eq!(value(ScaleFormat::E5M3, 0x08), 2f64.powi(-14));
        assert_eq!(value(ScaleFormat::E5M3, 0x07), 0.875 * 2f64.powi(-14));
        assert_eq!(value(ScaleFormat::E5M3, 0x01), 2f64.powi(-17));
        assert_eq!((value(ScaleFormat::E5M3, 0), value(ScaleFormat::E4M3, 0)), (0.0, 0.0));
        assert!(value(ScaleFormat::E5M3, 0xff).is_nan() && value(ScaleFormat::E4M3, 0x7f).is_nan());
        assert_eq!(value(ScaleFormat::E4M3, 0x7e), 1.75 * 256.0);
        assert_eq!(ScaleFormat::E4M3.value(0x80), None);
    }

    #[test]
    fn shapes_of_operations() {
        assert_eq!(Shape::of(Opcode::V_WMMA_SCALE16_F32_32X16X128_F4), Some(Shape { rows: 32, block: Some(16) }));
        assert_eq!(Shape::of(Opcode::V_WMMA_SCALE_F32_16X16X128_F8F6F4), Some(Shape { rows: 16, block: Some(32) }));
        assert_eq!(Shape::of(Opcode::V_WMMA_F32_16X16X128_F8F6F4), Some(Shape { rows: 16, block: None }));
        assert_eq!(Shape::of(Opcode::V_WMMA_LD_SCALE_PAIRED_B32), None);
    }
}
