//! What instructions mean, as far as it is data: types, sources, and functions of a lane.

use wavetap_amdgpu::{Operand, RegFile, Role, Value, ValueType, scalar};

use crate::float::{Env, Round, to_f16};
use crate::lanes::{BitOperation, Comparison, Operation};

/// How the bits of a vector operand are understood. The `F` types flush denormals as MODE says, the `B` types never do;
/// negate and absolute value act on the sign bit of either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ty {
    None,
    B16,
    F16,
    B32,
    F32,
    B64,
    F64,
    /// One bit of a 64-bit scalar for each lane.
    Mask,
}

/// Where an operand comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    None,
    Vector(u16),
    Accum(u16),
    /// By operand code.
    Scalar(u16),
    /// The bits, already in the operand's type.
    Const(u64),
    /// LDS at M0.
    LdsDirect,
}

/// What an instruction does to a lane: sources in, destination bits out.
pub(crate) type LaneFn = fn(&Env, &[u64; 4]) -> u64;

/// An atomic operation: old value, data, comparison value; returns the new value.
pub(crate) type AtomicFn = fn(u64, u64, u64) -> u64;

/// What a 16-bit result does to the other half of its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum High {
    Zero,
    Keep,
}

/// The meaning of an instruction, as far as it is data for a shared handler.
#[derive(Clone, Copy)]
pub(crate) enum Semantics {
    /// All of it is in the handler.
    Own,
    Lane {
        f: &'static dyn Operation,
        dst: Ty,
        src: [Ty; 4],
        high: High,
    },
    LaneBit {
        f: &'static dyn BitOperation,
        dst: Ty,
        src: [Ty; 4],
    },
    /// `exec`: also writes EXEC.
    Test {
        f: &'static dyn Comparison,
        src: [Ty; 2],
        exec: bool,
    },
    /// A scalar operation on floats, with the roles of its sources and the types of sources and result.
    ScalarFloat {
        f: &'static dyn Operation,
        sources: &'static [Role],
        from: Ty,
        to: Ty,
    },
    /// A scalar comparison of floats.
    ScalarTest {
        f: &'static dyn Comparison,
        ty: Ty,
    },
    /// Packed 16-bit: one function for either half. `short`: the two-operand encoding, which has no selection of
    /// halves.
    Packed {
        f: &'static dyn Operation,
        float: bool,
        short: bool,
    },
    /// Packed 32-bit floats.
    Packed32 {
        f: &'static dyn Operation,
    },
    Atomic {
        f: AtomicFn,
        bytes: u8,
        compare: bool,
        returns: bool,
    },
    Load {
        bytes: u8,
        signed: bool,
        d16: Option<bool>,
    },
    Store {
        bytes: u8,
        high: bool,
    },
}

/// The bits of an inline constant or literal in a type.
pub(crate) fn constant(value: Value, ty: Ty, signed64: bool) -> Option<u64> {
    match value {
        Value::Literal64(bits) => Some(bits),
        Value::InlineInt(i) => Some(match ty {
            Ty::B16 | Ty::F16 => u64::from(i16::from(i) as u16),
            Ty::B64 | Ty::F64 | Ty::Mask => i64::from(i) as u64,
            _ => u64::from(i32::from(i) as u32),
        }),
        Value::InlineFloat(code) => {
            let value = match code {
                240 => 0.5,
                241 => -0.5,
                242 => 1.0,
                243 => -1.0,
                244 => 2.0,
                245 => -2.0,
                246 => 4.0,
                247 => -4.0,
                _ => 0.0,
            };
            // 1/(2*PI) has its own bits in each format (AMD ISA guides, inline constants).
            let inverse = code == 248;
            Some(match ty {
                Ty::B16 | Ty::F16 if inverse => 0x3118,
                Ty::B16 | Ty::F16 => u64::from(to_f16(value, Round::Nearest)),
                Ty::B64 | Ty::F64 | Ty::Mask if inverse => 0x3fc4_5f30_6dc9_c882,
                Ty::B64 | Ty::F64 | Ty::Mask => value.to_bits(),
                _ if inverse => 0x3e22_f983,
                _ => u64::from((value as f32).to_bits()),
            })
        }
        Value::Literal(bits) => Some(match ty {
            Ty::B16 | Ty::F16 => u64::from(bits & 0xffff),
            Ty::F64 => u64::from(bits) << 32,
            Ty::B64 if signed64 => i64::from(bits as i32) as u64,
            _ => u64::from(bits),
        }),
        Value::Imm(value) => Some(value as u64),
        Value::Reg(_) | Value::Off => None,
    }
}

/// An operand as a source of a type.
pub(crate) fn source(operand: &Operand, ty: Ty, signed64: bool) -> Source {
    match operand.value {
        Value::Reg(reg) => match reg.file {
            RegFile::Vector => Source::Vector(reg.first),
            RegFile::Accum => Source::Accum(reg.first),
            RegFile::Scalar if reg.first == scalar::LDS_DIRECT => Source::LdsDirect,
            RegFile::Scalar => Source::Scalar(reg.first),
        },
        Value::Off => Source::None,
        // An inline float is one of the operand's format, which is the upper half of single precision.
        value @ Value::InlineFloat(_) if operand.ty == ValueType::Bf16 && ty == Ty::B16 => {
            constant(value, Ty::B32, false).map_or(Source::None, |bits| Source::Const(bits >> 16))
        }
        // The high half of a double, also where its bits are taken as they are.
        Value::Literal(bits) if operand.ty == ValueType::F64 && ty.dwords() == 2 => {
            Source::Const(u64::from(bits) << 32)
        }
        other => constant(other, ty, signed64).map_or(Source::None, Source::Const),
    }
}

impl Ty {
    pub(crate) fn dwords(self) -> u8 {
        match self {
            Ty::None => 0,
            Ty::B16 | Ty::F16 | Ty::B32 | Ty::F32 => 1,
            Ty::B64 | Ty::F64 | Ty::Mask => 2,
        }
    }
}
