//! Conversions between usual floats and those of 4, 6 and 8 bits that have a common scale (gfx950).
//!
//! The scale is a power of two: the exponent of a single-precision operand. From small floats, a number is multiplied
//! by it; to small ones, divided by it and rounded to nearest even. 8-bit floats overflow as MODE's FP16_OVFL says; the
//! smaller ones have neither infinity nor NaN and end at their largest number.
//!
//! The `sr` forms round by random bits ([`encode_stochastic`]). Which of these the second and later numbers of a
//! register take has two descriptions: by HIP's headers all take the same, by AMD's emulator (rocm-systems, rocjitsu)
//! each the successor of those before, as `v_prng_b32` has it. Where it matters, and where the two round what is too
//! small for the format differently, the kernel ends. A scale with the exponent 255 is NaN: from small floats so is the
//! result; to small ones the kernel ends, since one of the two has NaN and the other leaves the destination as it is.

use wavetap_amdgpu::{NumberFormat, Opcode, Operand, Reg, RegFile, Role, ScaleInfo};

use super::environment;
use crate::fault::stop::{ExecResult, undefined};
use crate::float::small_float::{Format, SINGLE, decode, encode, encode_stochastic, round_bf16};
use crate::float::{Round, from_bf16, from_f16, ldexp64, to_f16};
use crate::lanes::{LANES, active};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Handler, Meaning, Op};

/// A kind of number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Single,
    Half,
    Brain,
    Small(Format),
}

impl Number {
    fn of(format: NumberFormat) -> Option<Number> {
        Some(match format {
            NumberFormat::F32 => Number::Single,
            NumberFormat::F16 => Number::Half,
            NumberFormat::Bf16 => Number::Brain,
            NumberFormat::Fp8 => Number::Small(Format::E4M3),
            NumberFormat::Bf8 => Number::Small(Format::E5M2),
            NumberFormat::Fp6 => Number::Small(Format::E2M3),
            NumberFormat::Bf6 => Number::Small(Format::E3M2),
            NumberFormat::Fp4 => Number::Small(Format::E2M1),
            _ => return None,
        })
    }

    fn bits(self) -> usize {
        match self {
            Number::Single => 32,
            Number::Half | Number::Brain => 16,
            Number::Small(format) => format.bits() as usize,
        }
    }

    fn value(self, bits: u64) -> f64 {
        match self {
            Number::Single => f32::from_bits(bits as u32).into(),
            Number::Half => from_f16(bits as u16),
            Number::Brain => from_bf16(bits as u16),
            Number::Small(format) => decode(format, bits as u8),
        }
    }

    fn fraction_bits(self) -> u32 {
        match self {
            Number::Single => SINGLE,
            Number::Half => 10,
            _ => 7,
        }
    }

    fn code(self, value: f64, saturate: bool) -> u64 {
        match self {
            Number::Single => (value as f32).to_bits().into(),
            Number::Half => to_f16(value, Round::Nearest).into(),
            Number::Brain => round_bf16(value, Round::Nearest).into(),
            Number::Small(format) => encode(format, value, saturate).into(),
        }
    }
}

/// How many numbers are converted, of what kind, and whether they alternate between two sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Conversion {
    count: usize,
    from: Number,
    to: Number,
    two: bool,
    /// It rounds by random bits.
    stochastic: bool,
}

impl Conversion {
    /// Of a conversion of 1, 2 or 32 numbers.
    fn of(opcode: Opcode) -> Option<Conversion> {
        let ScaleInfo { to, from, count, two_sources, stochastic } = opcode.scale()?;
        let (to, from, count) = (Number::of(to)?, Number::of(from)?, usize::from(count));
        let two = two_sources || (count == 2 && from == Number::Single && !stochastic);
        matches!(count, 1 | 2 | 32).then_some(Conversion { count, from, to, two, stochastic })
    }

    /// The code of a number that is divided by the scale already, rounded by random bits. `n` is its place among
    /// those of the instruction.
    fn rounded(&self, value: f64, (n, random): (usize, u32), saturate: bool) -> ExecResult<u64> {
        let Number::Small(format) = self.to else { return undefined("meaning") };
        let code = |precision: u32, random: u32| encode_stochastic(format, value, precision, random, saturate);
        let precision = self.from.fraction_bits();
        let found = code(SINGLE, random);
        if found != code(precision, random) {
            return undefined("the stochastic rounding of a half to a denormal number, which sources have differently");
        }
        if n > 0
            && [0, u32::MAX].iter().any(|&random| code(SINGLE, random) != found || code(precision, random) != found)
        {
            return undefined(format!(
                "the stochastic rounding of number {n} of a register: its random bits are not documented"
            ));
        }
        Ok(found.into())
    }
}

/// The dwords of a source of a lane.
fn dwords(core: &mut Core, op: &Op, role: Role) -> ExecResult<Vec<[u32; LANES]>> {
    match op.inst.operand(role).and_then(Operand::reg) {
        Some(Reg { file: RegFile::Vector, first, dwords }) => {
            core.reading(op, RegFile::Vector, first, dwords.into())?;
            Ok(core.rows(RegFile::Vector, first, u16::from(dwords)))
        }
        _ => {
            let source = op.source(role, Ty::B32);
            if source == Source::None {
                return undefined("a conversion without that source");
            }
            Ok(vec![core.lanes(op, source, Ty::B32, 0)?.map(|value| value as u32)])
        }
    }
}

/// The bits of a field that may cross dwords.
fn field(words: &[[u32; LANES]], lane: usize, at: usize, bits: usize) -> u64 {
    let word = |n: usize| words.get(n).map_or(0, |word| u64::from(word[lane]));
    let (first, shift) = (at / 32, at % 32);
    (word(first) | word(first + 1) << 32) >> shift & ((1 << bits) - 1)
}

fn run(core: &mut Core, op: &Op) -> ExecResult {
    let Some(conversion) = Conversion::of(op.inst.opcode()) else { return undefined("meaning") };
    let Conversion { count, from, to, two, stochastic } = conversion;
    let modifiers = &op.inst.modifiers;
    // The scale's sign does not count. Of several numbers in one operand it is not documented which ones have theirs
    // changed.
    let data = if two { 3 } else { 1 };
    let alone = from == Number::Single && (count == 1 || two && count == 2);
    if (modifiers.neg | modifiers.abs) & data != 0 && !alone {
        return undefined("a conversion of several numbers in an operand whose sign is changed");
    }
    let first = dwords(core, op, Role::Src0)?;
    let second = if two { dwords(core, op, Role::Src1)? } else { Vec::new() };
    let scales = dwords(core, op, if two || stochastic { Role::Src2 } else { Role::Src1 })?;
    let randoms = if stochastic { Some(dwords(core, op, Role::Src1)?) } else { None };
    if stochastic && modifiers.op_sel & 3 != 0 {
        return undefined("a stochastic conversion that chooses a part of its source");
    }
    let Some(dst) = op.dst else { return undefined("a conversion without destination") };
    let env = environment(core, op);
    // Of one register, the part that small floats are in.
    let part = |select: u8| usize::from(select) * to.bits().min(from.bits()) * count;
    let narrow = |number: Number| count <= 2 && matches!(number, Number::Small(_));
    let source_at = match (narrow(from), count * from.bits()) {
        (true, 16) => part(modifiers.op_sel & 1),
        (true, _) => part(modifiers.op_sel & 3),
        _ => 0,
    };
    let bits = count * to.bits();
    let result_at = match (narrow(to), bits) {
        (true, 16) => part(modifiers.op_sel >> 3 & 1),
        (true, _) => part(modifiers.op_sel >> 2 & 3),
        (false, 16) => usize::from(modifiers.op_sel >> 3 & 1) * 16,
        _ => 0,
    };
    let words = (result_at + bits).div_ceil(32);
    core.writing(op, RegFile::Vector, dst.first, words as u16)?;
    for lane in active(core.wave.exec()) {
        let exponent = (scales[0][lane] >> 23 & 0xff) as i32 - 127;
        let small = matches!(from, Number::Small(_));
        if exponent == 128 && !small {
            return undefined("a conversion to small floats with the scale NaN");
        }
        let mut result = vec![0_u32; words];
        for n in 0..count {
            let (words, at) = match two {
                true if n % 2 == 1 => (&second, n / 2),
                true => (&first, n / 2),
                false => (&first, n),
            };
            let value = from.value(field(words, lane, source_at + at * from.bits(), from.bits()));
            let changes = |of: u8| (of & data) >> n.min(7) & 1 != 0;
            let value = if changes(modifiers.abs) { value.abs() } else { value };
            let value = if changes(modifiers.neg) { -value } else { value };
            if value.is_nan() && matches!(to, Number::Small(format) if format.bits() < 8) {
                return undefined("the conversion of NaN to a float that has none");
            }
            let value = if exponent == 128 { f64::NAN } else { value };
            let (scaled, saturate) =
                (ldexp64(value, if small { exponent } else { -exponent }), env.half_overflow || env.clamp);
            let code = match &randoms {
                Some(randoms) => conversion.rounded(scaled, (n, randoms[0][lane]), saturate)?,
                None => to.code(scaled, saturate),
            };
            let place = result_at + n * to.bits();
            let placed = code << (place % 32);
            result[place / 32] |= placed as u32;
            if place % 32 + to.bits() > 32 {
                result[place / 32 + 1] |= (placed >> 32) as u32;
            }
        }
        for (n, word) in result.iter().enumerate() {
            let cell = &mut core.wave.vgpr[usize::from(dst.first) + n][lane];
            // Bits of a register that are not written stay.
            let mask = if bits < 32 { ((1_u32 << bits) - 1) << result_at } else { u32::MAX };
            *cell = *cell & !mask | word;
        }
    }
    Ok(())
}

/// The meaning of such a conversion.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    Conversion::of(opcode).map(|_| (run as Handler, Semantics::Own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions() {
        let conversion = Conversion::of(Opcode::V_CVT_SCALEF32_PK_FP4_F32).unwrap();
        assert_eq!((conversion.count, conversion.two, conversion.to.bits()), (2, true, 4));
        let conversion = Conversion::of(Opcode::V_CVT_SCALEF32_PK32_F16_BF6).unwrap();
        assert_eq!((conversion.count, conversion.two, conversion.from.bits()), (32, false, 6));
        let conversion = Conversion::of(Opcode::V_CVT_SCALEF32_SR_PK_FP4_F32).unwrap();
        assert_eq!(
            (conversion.count, conversion.two, conversion.stochastic),
            (2, false, true),
            "both numbers in one pair of registers"
        );
        assert_eq!(Conversion::of(Opcode::V_CVT_SCALEF32_PK8_FP8_F32), None, "gfx1250");
    }

    #[test]
    fn fields_cross_dwords() {
        let words = [[0x8000_0000; LANES], [0b101; LANES]];
        assert_eq!(field(&words, 3, 30, 6), 0b010110);
    }
}
