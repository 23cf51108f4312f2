//! Conversions of 8 and 16 numbers at once between usual floats and those of 4, 6 and 8 bits that have a common scale,
//! and look-ups of 16 codes (gfx1250; CDNA5 ISA guide, 7.6 and the instructions' pages).
//!
//! To small floats a number is divided by the scale, the exponent of a single-precision operand, and rounded to nearest
//! even. From them it is multiplied by a power of two in a byte with a bias of 127. Whose byte that is a field says, of
//! which only those values have a meaning here of which all sources agree: with 0, all lanes take the lowest byte of
//! lane n mod 16 for 8-bit numbers, and for others the lanes from 16 on its second byte; with 8, so do those of 8-bit
//! numbers (the guide's tables 36 and 37; Triton). Of others there are two descriptions (MLIR's lowering has both).
//! Stochastic rounding is left out: how the random bits are aligned is not documented.

use wavetap_amdgpu::{NumberFormat, Opcode, Operand, Reg, RegFile, Role};

use super::environment;
use crate::fault::stop::{ExecResult, undefined};
use crate::float::small_float::{Format, decode, encode, round_bf16};
use crate::float::{Round, from_bf16, from_f16, ldexp64, to_f16, to_f32};
use crate::lanes::{LANES, active};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Handler, Meaning, Op};

/// Bias of a scale's exponent.
const BIAS: i32 = 127;
/// The exponent that is NaN.
const NAN: u8 = 255;
/// Lanes that have scales.
const SCALED: usize = 16;

/// A usual float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wide {
    Single,
    Half,
    Brain,
}

impl Wide {
    fn of(format: NumberFormat) -> Option<Wide> {
        match format {
            NumberFormat::F32 => Some(Wide::Single),
            NumberFormat::F16 => Some(Wide::Half),
            NumberFormat::Bf16 => Some(Wide::Brain),
            _ => None,
        }
    }

    fn bits(self) -> usize {
        if self == Wide::Single { 32 } else { 16 }
    }

    fn value(self, bits: u64) -> f64 {
        match self {
            Wide::Single => f32::from_bits(bits as u32).into(),
            Wide::Half => from_f16(bits as u16),
            Wide::Brain => from_bf16(bits as u16),
        }
    }

    /// The nearest code; what is too large is infinite, or with `saturate` the largest of 16 bits.
    fn code(self, value: f64, saturate: bool) -> u64 {
        let (code, infinity) = match self {
            Wide::Single => return to_f32(value, Round::Nearest).to_bits().into(),
            Wide::Half => (to_f16(value, Round::Nearest), 0x7c00),
            Wide::Brain => (round_bf16(value, Round::Nearest), 0x7f80),
        };
        if saturate && value.is_finite() && code & 0x7fff == infinity { u64::from(code) - 1 } else { code.into() }
    }
}

fn small(format: NumberFormat) -> Option<Format> {
    match format {
        NumberFormat::Fp8 => Some(Format::E4M3),
        NumberFormat::Bf8 => Some(Format::E5M2),
        NumberFormat::Fp6 => Some(Format::E2M3),
        NumberFormat::Bf6 => Some(Format::E3M2),
        NumberFormat::Fp4 => Some(Format::E2M1),
        _ => None,
    }
}

/// How many numbers are converted, and of what kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Conversion {
    count: usize,
    wide: Wide,
    small: Format,
    widens: bool,
}

impl Conversion {
    /// Of a conversion of 8 or 16 numbers.
    fn of(opcode: Opcode) -> Option<Conversion> {
        let scale = opcode.scale().filter(|scale| matches!(scale.count, 8 | 16) && !scale.stochastic)?;
        let widens = small(scale.from).is_some();
        let (wide, narrow) = if widens { (scale.to, scale.from) } else { (scale.from, scale.to) };
        Some(Conversion { count: scale.count.into(), wide: Wide::of(wide)?, small: small(narrow)?, widens })
    }
}

/// The dwords of a source in every lane.
fn words(core: &mut Core, op: &Op, role: Role) -> ExecResult<Vec<[u32; LANES]>> {
    let dwords = op.inst.operand(role).map_or(0, |operand| operand.dwords);
    match op.inst.operand(role).and_then(Operand::reg) {
        Some(Reg { file: RegFile::Vector, first, dwords }) => {
            core.reading(op, RegFile::Vector, first, dwords.into())?;
            Ok(core.rows(RegFile::Vector, first, dwords.into()))
        }
        _ => match (op.source(role, if dwords == 2 { Ty::B64 } else { Ty::B32 }), dwords) {
            (Source::None, _) | (_, 3..) => undefined("an operation without that source"),
            (source, 2) => {
                let both = core.lanes(op, source, Ty::B64, 0)?;
                Ok(vec![both.map(|both| both as u32), both.map(|both| (both >> 32) as u32)])
            }
            (source, _) => Ok(vec![core.lanes(op, source, Ty::B32, 0)?.map(|value| value as u32)]),
        },
    }
}

/// The bits of a field that may cross dwords.
fn field(words: &[[u32; LANES]], lane: usize, at: usize, bits: usize) -> u64 {
    let word = |n: usize| words.get(n).map_or(0, |word| u64::from(word[lane]));
    (word(at / 32) | word(at / 32 + 1) << 32) >> (at % 32) & ((1 << bits) - 1)
}

/// Numbers of so many bits, one after the other, into the destination of active lanes.
fn write(core: &mut Core, op: &Op, bits: usize, numbers: &[[u64; LANES]]) -> ExecResult {
    let count = (bits * numbers.len()).div_ceil(32);
    let Some(dst) = op.dst.filter(|dst| usize::from(dst.dwords) == count) else {
        return undefined("a result of that many registers");
    };
    core.writing(op, RegFile::Vector, dst.first, count as u16)?;
    for lane in active(core.wave.exec()) {
        let mut result = [0_u32; 17];
        for (n, number) in numbers.iter().enumerate() {
            let (word, shifted) = (n * bits / 32, number[lane] << (n * bits % 32));
            result[word] |= shifted as u32;
            result[word + 1] |= (shifted >> 32) as u32;
        }
        for (register, word) in core.wave.vgpr[usize::from(dst.first)..].iter_mut().zip(&result[..count]) {
            register[lane] = *word;
        }
    }
    Ok(())
}

/// The lane and the byte of its register that have the scale of a lane.
fn scale_place(is_eight: bool, select: u8, lane: usize) -> ExecResult<(usize, usize)> {
    match (is_eight, select) {
        (true, 0) => Ok((lane % SCALED, 0)),
        (true, 8) | (false, 0) => Ok((lane % SCALED, lane / SCALED)),
        _ => undefined(format!("the choice of scales {select}, which documents have differently")),
    }
}

fn widen(core: &mut Core, op: &Op) -> ExecResult {
    let Some(Conversion { count, wide, small, .. }) = Conversion::of(op.inst.opcode()) else {
        return undefined("meaning");
    };
    let bits = small.bits() as usize;
    let from = words(core, op, Role::Src0)?;
    let scales = words(core, op, Role::Src1)?;
    let saturate = environment(core, op).half_overflow;
    let mut numbers = vec![[0; LANES]; count];
    for lane in active(core.wave.exec()) {
        let (of, byte) = scale_place(bits == 8, op.inst.modifiers.scale_sel, lane)?;
        let scale = (scales[0][of] >> (8 * byte)) as u8;
        for (n, number) in numbers.iter_mut().enumerate() {
            let value = decode(small, field(&from, lane, n * bits, bits) as u8);
            let value = if scale == NAN { f64::NAN } else { ldexp64(value, i32::from(scale) - BIAS) };
            number[lane] = wide.code(value, saturate);
        }
    }
    write(core, op, wide.bits(), &numbers)
}

fn narrow(core: &mut Core, op: &Op) -> ExecResult {
    let Some(Conversion { count, wide, small, .. }) = Conversion::of(op.inst.opcode()) else {
        return undefined("meaning");
    };
    let from = words(core, op, Role::Src0)?;
    let scales = words(core, op, Role::Src1)?;
    let saturate = environment(core, op).half_overflow;
    let mut numbers = vec![[0; LANES]; count];
    for lane in active(core.wave.exec()) {
        let exponent = (scales[0][lane] >> 23) as u8;
        if exponent == NAN {
            return undefined("a conversion with the scale NaN");
        }
        for (n, number) in numbers.iter_mut().enumerate() {
            let value = wide.value(field(&from, lane, n * wide.bits(), wide.bits()));
            let value = match value.is_infinite() && small.bits() == 8 && (saturate || small == Format::E4M3) {
                // Unlike other conversions (the guide, "OPSEL with FP8 and BF8 conversions").
                true => f64::NAN,
                false => ldexp64(value, BIAS - i32::from(exponent)),
            };
            if value.is_nan() && small.bits() < 8 {
                return undefined("the conversion of NaN to a float that has none");
            }
            number[lane] = encode(small, value, saturate).into();
        }
    }
    write(core, op, small.bits() as usize, &numbers)
}

/// `v_perm_pk16_b4_u4` and its relatives: bits of an entry.
fn entry_bits(opcode: Opcode) -> Option<usize> {
    match opcode {
        Opcode::V_PERM_PK16_B4_U4 => Some(4),
        Opcode::V_PERM_PK16_B6_U4 => Some(6),
        Opcode::V_PERM_PK16_B8_U4 => Some(8),
        _ => None,
    }
}

/// Looks 16 codes of 4 bits up in a table, of which the second source is the lower part.
fn look_up(core: &mut Core, op: &Op) -> ExecResult {
    let Some(bits) = entry_bits(op.inst.opcode()) else { return undefined("meaning") };
    let mut table = words(core, op, Role::Src1)?;
    table.extend(words(core, op, Role::Src0)?);
    let codes = words(core, op, Role::Src2)?;
    let entry = |lane: usize, n: usize| field(&table, lane, field(&codes, lane, 4 * n, 4) as usize * bits, bits);
    let numbers: Vec<[u64; LANES]> = (0..16).map(|n| std::array::from_fn(|lane| entry(lane, n))).collect();
    write(core, op, bits, &numbers)
}

/// The meaning of such an operation.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    let run: Handler = match Conversion::of(opcode) {
        Some(conversion) if conversion.widens => widen,
        Some(_) => narrow,
        None => {
            entry_bits(opcode)?;
            look_up
        }
    };
    Some((run, Semantics::Own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_converted() {
        let of = Conversion::of;
        assert_eq!(
            of(Opcode::V_CVT_SCALE_PK8_BF16_FP4),
            Some(Conversion { count: 8, wide: Wide::Brain, small: Format::E2M1, widens: true })
        );
        assert_eq!(
            of(Opcode::V_CVT_SCALEF32_PK16_FP6_F32),
            Some(Conversion { count: 16, wide: Wide::Single, small: Format::E2M3, widens: false })
        );
        assert_eq!(of(Opcode::V_CVT_SCALEF32_SR_PK8_FP8_F32), None);
        assert_eq!(of(Opcode::V_CVT_SCALEF32_PK_FP8_F32), None);
    }
}
