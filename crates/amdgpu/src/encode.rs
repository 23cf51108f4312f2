//! From an instruction to bytes: the inverse of [`super::decode`], field by field.

use super::inst::{Half, Inst, Operand, RegFile, Value, scalar};
use super::layout::Bits;
use super::table::OperandSpec;
use super::target::Target;
use super::vocabulary::{Coding, Modifier};
use wavetap_base::error::{Error, Result};

/// Operand codes of the inline integers: 0..=64 from here on, and -1..=-16 after 192.
const INLINE_ZERO: i64 = 128;
const INLINE_MINUS: i64 = 192;
/// Operand code: a literal follows.
const LITERAL: u64 = 255;
/// Operand code: a 64-bit literal follows.
const LITERAL64: u64 = 254;

/// The bytes of an instruction.
pub(super) fn encode(target: Target, inst: &Inst) -> Result<Vec<u8>> {
    let variant = inst.variant;
    let mut word = variant.matches | inst.ignored & !variant.mask;
    let fail = |what: String| Error::unsupported(format!("{}: {what}", variant.mnemonic));
    for (modifier, bits) in &variant.layout.modifiers {
        let number = modifier_number(inst, *modifier, bits)
            .ok_or_else(|| fail(format!("{modifier:?} does not fit its field")))?;
        let placed = bits.put(number).ok_or_else(|| fail(format!("{modifier:?} does not fit its field")))?;
        if (placed ^ variant.matches) & variant.mask & bits.mask() != 0 {
            return Err(fail(format!("{modifier:?} is fixed in this form")));
        }
        word |= placed;
    }
    if variant.operands.len() != inst.operands.len() {
        return Err(fail(format!("expected {} operands, found {}", variant.operands.len(), inst.operands.len())));
    }
    let (mut literal, mut behind) = (None, None);
    for (spec, operand) in variant.operands.iter().zip(&inst.operands) {
        let number = number(target, spec, operand, inst.ignored, &mut literal)
            .ok_or_else(|| fail(format!("{:?} cannot be {:?}", spec.role, operand.value)))?;
        let placed = spec
            .bits
            .put(number)
            .ok_or_else(|| fail(format!("{:?} does not fit its field: {:?}", spec.role, operand.value)))?;
        if spec.kind.coding == Coding::VectorBehind {
            behind = Some(behind.unwrap_or(0) | placed as u32);
        } else {
            word |= placed;
        }
    }
    let mut bytes = Vec::with_capacity(16);
    bytes.extend_from_slice(&word.to_le_bytes()[..usize::from(variant.layout.bytes)]);
    if let Some(dword) = behind {
        bytes.extend_from_slice(&dword.to_le_bytes());
    }
    if let Some(literal) = literal
        && !variant.operands.iter().any(|spec| spec.kind.coding == Coding::Literal)
    {
        match literal {
            Literal::Dword(literal) => bytes.extend_from_slice(&literal.to_le_bytes()),
            Literal::Quad(literal) => bytes.extend_from_slice(&literal.to_le_bytes()),
        }
    }
    Ok(bytes)
}

/// The number of a modifier's field; a signed offset is cut to it.
fn modifier_number(inst: &Inst, modifier: Modifier, bits: &Bits) -> Option<u64> {
    let number = inst.modifiers.get(modifier);
    if modifier != Modifier::Offset {
        return Some(number);
    }
    match inst.variant.signed_offset(bits) {
        Some(width) => signed(number as i64, width),
        None => Some(number),
    }
}

/// Two's complement in `width` bits.
fn signed(value: i64, width: u32) -> Option<u64> {
    let limit = 1i64 << (width - 1);
    (-limit..limit).contains(&value).then_some(value as u64 & ((1 << width) - 1))
}

/// The literal of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Literal {
    Dword(u32),
    Quad(u64),
}

/// Makes `value` the instruction's literal, of which there is one at most.
fn take(literal: &mut Option<Literal>, value: Literal) -> Option<()> {
    let same = literal.is_none_or(|other| other == value);
    *literal = Some(value);
    same.then_some(())
}

/// The operand code of a scalar register.
fn scalar_code(target: Target, code: u16) -> u64 {
    let set = target.set();
    match code {
        scalar::M0 => set.m0_code.into(),
        scalar::NULL => set.null_code.into(),
        _ => code.into(),
    }
}

/// The number that stands for an operand's value in its field.
fn number(
    target: Target,
    spec: &OperandSpec,
    operand: &Operand,
    ignored: u128,
    literal: &mut Option<Literal>,
) -> Option<u64> {
    let kind = spec.kind;
    match (operand.value, kind.coding) {
        (Value::Imm(value), Coding::Unsigned) => u64::try_from(value).ok(),
        (Value::Imm(value), Coding::Signed) => signed(value, spec.bits.width()),
        // A source that an export does not read, or an address that an image does not have.
        (Value::Off, Coding::Vector) => Some(spec.bits.get(ignored)),
        (Value::Off, Coding::VectorBehind) => Some(0),
        // A source may share the literal that the form has inside, and be no other.
        (Value::Literal(value), Coding::Literal) => take(literal, Literal::Dword(value)).map(|()| value.into()),
        (Value::Literal64(value), Coding::Literal) => {
            // A source that shares it has its low half.
            if *literal == Some(Literal::Dword(value as u32)) {
                *literal = None;
            }
            take(literal, Literal::Quad(value)).map(|()| value)
        }
        (Value::Reg(reg), coding) => {
            let first = if reg.file == RegFile::Scalar { scalar_code(target, reg.first) } else { reg.first.into() };
            let high = u64::from(operand.half == Half::High) << 7;
            match (reg.file, coding) {
                (
                    RegFile::Vector,
                    Coding::Vector | Coding::VectorAcc | Coding::VectorHalf | Coding::VectorBehind | Coding::Sdwa,
                )
                | (RegFile::Accum, Coding::Accum) => Some(first),
                (RegFile::Vector, Coding::VectorLow128) => (first < 128).then_some(first | high),
                (RegFile::Vector, Coding::VectorOtherParity) => Some(first & !1),
                (RegFile::Vector, Coding::SrcLow128) => (first < 128).then_some(first | high | 1 << 8),
                (RegFile::Accum, Coding::VectorAcc) => Some(first | 1 << 9),
                (RegFile::Vector, Coding::Source | Coding::SourceAcc | Coding::SrcHalf)
                | (RegFile::Accum, Coding::SourceAccum) => Some(first | 1 << 8),
                (RegFile::Accum, Coding::SourceAcc) => Some(first | 3 << 8),
                (
                    RegFile::Scalar,
                    Coding::Source | Coding::SourceAcc | Coding::SourceAccum | Coding::SrcHalf | Coding::SrcLow128,
                ) => Some(first),
                (RegFile::Scalar, Coding::Sdwa) => Some(first | 1 << 8),
                // VCC is what the form writes when it names no destination; bits that were set all the same are ignored
                // ones.
                (RegFile::Scalar, Coding::SdwaSdst) if reg.first == scalar::VCC && spec.bits.get(ignored) < 1 << 7 => {
                    Some(spec.bits.get(ignored))
                }
                (RegFile::Scalar, Coding::SdwaSdst) => Some(first | 1 << 7),
                _ => None,
            }
        }
        (
            value,
            Coding::Source
            | Coding::SourceAcc
            | Coding::SourceAccum
            | Coding::Sdwa
            | Coding::SrcHalf
            | Coding::SrcLow128,
        ) => {
            let code = match value {
                Value::InlineInt(value @ 0..=64) => (INLINE_ZERO + i64::from(value)) as u64,
                Value::InlineInt(value @ -16..=-1) => (INLINE_MINUS - i64::from(value)) as u64,
                Value::InlineFloat(code @ 240..=248) => code.into(),
                Value::Literal(value) => {
                    // The literal inside may be a longer one.
                    if !matches!(literal, Some(Literal::Quad(quad)) if *quad as u32 == value) {
                        take(literal, Literal::Dword(value))?;
                    }
                    LITERAL
                }
                Value::Literal64(value) => {
                    take(literal, Literal::Quad(value))?;
                    LITERAL64
                }
                _ => return None,
            };
            Some(if kind.coding == Coding::Sdwa { code | 1 << 8 } else { code })
        }
        _ => None,
    }
}
