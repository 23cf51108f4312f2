//! What the names of memory instructions say, and a model of what they do to bytes.

use super::number::{f16, f32, f64};
use rustc_apfloat::Round;

/// What an instruction does in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Access {
    Load {
        bytes: usize,
        signed: bool,
        part: Option<bool>,
    },
    /// `high`: of the high half of the register.
    Store {
        bytes: usize,
        high: bool,
    },
    Atomic {
        operation: Operation,
        bytes: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operation {
    Swap,
    Compare,
    Add,
    Sub,
    ReverseSub,
    /// Not below zero.
    SubClamped,
    /// Only if it does not go below zero.
    SubConditional,
    Min {
        signed: bool,
    },
    Max {
        signed: bool,
    },
    And,
    Or,
    Xor,
    Inc,
    Dec,
    MaskedOr,
    Wrap,
    FloatAdd,
    FloatMin,
    FloatMax,
    FloatCompare,
    PairAddHalf,
    PairAddBrain,
}

/// The access of a name without the part that says which memory it is.
pub fn parse(name: &str) -> Option<Access> {
    let load = |bytes, signed, part| Some(Access::Load { bytes, signed, part });
    let store = |bytes, high| Some(Access::Store { bytes, high });
    if let Some(what) = name.strip_prefix("load_").or_else(|| name.strip_prefix("read_")) {
        return match what {
            "ubyte" | "u8" => load(1, false, None),
            "sbyte" | "i8" => load(1, true, None),
            "ushort" | "u16" => load(2, false, None),
            "sshort" | "i16" => load(2, true, None),
            "dword" | "b32" => load(4, false, None),
            "dwordx2" | "b64" => load(8, false, None),
            "dwordx3" | "b96" => load(12, false, None),
            "dwordx4" | "b128" => load(16, false, None),
            "ubyte_d16" | "u8_d16" | "d16_u8" => load(1, false, Some(false)),
            "ubyte_d16_hi" | "u8_d16_hi" | "d16_hi_u8" => load(1, false, Some(true)),
            "sbyte_d16" | "i8_d16" | "d16_i8" => load(1, true, Some(false)),
            "sbyte_d16_hi" | "i8_d16_hi" | "d16_hi_i8" => load(1, true, Some(true)),
            "short_d16" | "u16_d16" | "d16_b16" => load(2, false, Some(false)),
            "short_d16_hi" | "u16_d16_hi" | "d16_hi_b16" => load(2, false, Some(true)),
            _ => None,
        };
    }
    if let Some(what) = name.strip_prefix("store_").or_else(|| name.strip_prefix("write_")) {
        return match what {
            "byte" | "b8" => store(1, false),
            "byte_d16_hi" | "b8_d16_hi" | "d16_hi_b8" => store(1, true),
            "short" | "b16" => store(2, false),
            "short_d16_hi" | "b16_d16_hi" | "d16_hi_b16" => store(2, true),
            "dword" | "b32" => store(4, false),
            "dwordx2" | "b64" => store(8, false),
            "dwordx3" | "b96" => store(12, false),
            "dwordx4" | "b128" => store(16, false),
            _ => None,
        };
    }
    let what = name.strip_prefix("atomic_").unwrap_or(name).replace("_rtn", "");
    let (operation, bytes) = match what.strip_suffix("_x2") {
        Some(operation) => (operation.to_owned(), 8),
        None => match what.rsplit_once('_') {
            Some((operation, kind)) if kind.len() == 3 && kind.ends_with("64") => {
                (format!("{operation}_{}", &kind[..1]), 8)
            }
            Some((operation, kind)) if kind.len() == 3 && kind.ends_with("32") => {
                (format!("{operation}_{}", &kind[..1]), 4)
            }
            _ => (what.clone(), 4),
        },
    };
    use Operation as O;
    let operation = match operation.as_str() {
        "swap" | "swap_b" | "wrxchg_b" | "storexchg_b" => O::Swap,
        "cmpswap" | "cmpswap_b" | "cmpst_b" | "cmpstore_b" => O::Compare,
        "add" | "add_u" => O::Add,
        "sub" | "sub_u" => O::Sub,
        "rsub_u" => O::ReverseSub,
        "csub" | "csub_u" | "sub_clamp_u" => O::SubClamped,
        "cond_sub_u" => O::SubConditional,
        "smin" | "min_i" => O::Min { signed: true },
        "umin" | "min_u" => O::Min { signed: false },
        "smax" | "max_i" => O::Max { signed: true },
        "umax" | "max_u" => O::Max { signed: false },
        "and" | "and_b" => O::And,
        "or" | "or_b" => O::Or,
        "xor" | "xor_b" => O::Xor,
        "inc" | "inc_u" => O::Inc,
        "dec" | "dec_u" => O::Dec,
        "mskor_b" => O::MaskedOr,
        "wrap_b" => O::Wrap,
        "add_f" => O::FloatAdd,
        "min_f" | "fmin" | "min_num_f" => O::FloatMin,
        "max_f" | "fmax" | "max_num_f" => O::FloatMax,
        "cmpst_f" | "cmpstore_f" | "fcmpswap" | "cmpswap_f" => O::FloatCompare,
        "pk_add_f16" => O::PairAddHalf,
        "pk_add_bf16" => O::PairAddBrain,
        _ => return None,
    };
    Some(Access::Atomic { operation, bytes })
}

/// What the name of an atomic of images says.
pub fn image_atomic(name: &str) -> Option<Access> {
    let rest = name.strip_prefix("image_atomic_")?;
    let rest = match rest {
        "add_uint" => "add",
        "sub_uint" => "sub",
        "min_int" => "smin",
        "max_int" => "smax",
        "min_uint" => "umin",
        "max_uint" => "umax",
        "inc_uint" => "inc",
        "dec_uint" => "dec",
        "add_flt" => "add_f32",
        "min_flt" => "fmin",
        "max_flt" => "fmax",
        rest => rest,
    };
    parse(&format!("atomic_{rest}"))
}

impl Operation {
    /// Whether it has a second value.
    pub fn has_second(self) -> bool {
        matches!(self, Operation::Compare | Operation::FloatCompare | Operation::MaskedOr | Operation::Wrap)
    }

    /// Whether memory holds floats, for which the values are chosen without those of which little is documented.
    pub fn float(self) -> bool {
        matches!(
            self,
            Operation::FloatAdd
                | Operation::FloatMin
                | Operation::FloatMax
                | Operation::FloatCompare
                | Operation::PairAddHalf
                | Operation::PairAddBrain
        )
    }

    /// What is in memory afterwards; `second` is the value compared with.
    pub fn apply(self, bytes: usize, old: u64, data: u64, second: u64) -> u64 {
        let width = 8 * bytes as u32;
        let ones = u64::MAX >> (64 - width);
        let signed = |x: u64| (x << (64 - width)) as i64 >> (64 - width);
        let nearest = Round::NearestTiesToEven;
        let wide = bytes == 8;
        let less = |a: u64, b: u64| if wide { f64::from(a) < f64::from(b) } else { f32::from(a) < f32::from(b) };
        let equal = |a: u64, b: u64| if wide { f64::from(a) == f64::from(b) } else { f32::from(a) == f32::from(b) };
        ones & match self {
            Operation::Swap => data,
            Operation::Compare => {
                if old == second {
                    data
                } else {
                    old
                }
            }
            Operation::Add => old.wrapping_add(data),
            Operation::Sub => old.wrapping_sub(data),
            Operation::ReverseSub => data.wrapping_sub(old),
            Operation::SubClamped => old.saturating_sub(data),
            Operation::SubConditional => {
                if old < data {
                    old
                } else {
                    old - data
                }
            }
            Operation::Min { signed: true } => {
                if signed(data) < signed(old) {
                    data
                } else {
                    old
                }
            }
            Operation::Max { signed: true } => {
                if signed(data) > signed(old) {
                    data
                } else {
                    old
                }
            }
            Operation::Min { signed: false } => old.min(data),
            Operation::Max { signed: false } => old.max(data),
            Operation::And => old & data,
            Operation::Or => old | data,
            Operation::Xor => old ^ data,
            Operation::Inc => {
                if old >= data {
                    0
                } else {
                    old + 1
                }
            }
            Operation::Dec => {
                if old == 0 || old > data {
                    data
                } else {
                    old - 1
                }
            }
            Operation::MaskedOr => old & !data | second,
            Operation::Wrap => {
                if old >= data {
                    old - data
                } else {
                    old.wrapping_add(second)
                }
            }
            Operation::FloatAdd => {
                if wide {
                    f64::add(old, data, nearest)
                } else {
                    f32::add(old, data, nearest)
                }
            }
            Operation::FloatMin => {
                if less(data, old) {
                    data
                } else {
                    old
                }
            }
            Operation::FloatMax => {
                if less(old, data) {
                    data
                } else {
                    old
                }
            }
            Operation::FloatCompare => {
                if equal(old, second) {
                    data
                } else {
                    old
                }
            }
            Operation::PairAddHalf => {
                f16::add(old & 0xffff, data & 0xffff, nearest) | f16::add(old >> 16, data >> 16, nearest) << 16
            }
            Operation::PairAddBrain => {
                use super::number::bf16;
                bf16::add(old & 0xffff, data & 0xffff, nearest) | bf16::add(old >> 16, data >> 16, nearest) << 16
            }
        }
    }

    /// A float without surprises: a small number of eighths.
    pub fn float_value(self, bytes: usize, n: i64) -> u64 {
        let nearest = Round::NearestTiesToEven;
        match self {
            Operation::PairAddHalf => {
                let one = f16::scale(f16::from_signed(n, nearest), -3, nearest);
                one | f16::negate(one) << 16
            }
            Operation::PairAddBrain => {
                use super::number::bf16;
                let one = bf16::from_signed(n % 64, nearest);
                one | bf16::negate(one) << 16
            }
            _ if bytes == 8 => f64::scale(f64::from_signed(n, nearest), -3, nearest),
            _ => f32::scale(f32::from_signed(n, nearest), -3, nearest),
        }
    }
}

/// Little-endian bytes as a number.
pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}
