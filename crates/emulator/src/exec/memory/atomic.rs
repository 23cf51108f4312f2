//! The operations of atomics, shared by LDS, global, buffer and scalar memory.

use wavetap_amdgpu::{AtomicInfo, AtomicOp, Opcode};

use crate::exec::vector::convert::sum32;
use crate::exec::vector::minmax;
use crate::float::{Round, add_odd, from_bf16, from_f16, to_bf16, to_f16, to_f32};
use crate::op::semantics::AtomicFn;

/// The operation of an atomic on one element.
#[derive(Clone, Copy)]
pub(crate) struct Atomic {
    pub f: AtomicFn,
    /// 4 or 8.
    pub bytes: u8,
    /// Whether it compares: its data is twice as wide.
    pub compare: bool,
}

fn halves(a: u64, b: u64, f: fn(u16, u16) -> u16) -> u64 {
    u64::from(f(a as u16, b as u16)) | u64::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

fn min32(a: u64, b: u64) -> u64 {
    let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
    if y < x || x.is_nan() { b } else { a }
}

fn max32(a: u64, b: u64) -> u64 {
    let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
    if y > x || x.is_nan() { b } else { a }
}

fn min64(a: u64, b: u64) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    if y < x || x.is_nan() { b } else { a }
}

fn max64(a: u64, b: u64) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    if y > x || x.is_nan() { b } else { a }
}

fn same32(old: u64, new: u64, compare: u64) -> u64 {
    if f32::from_bits(old as u32) == f32::from_bits(compare as u32) { new } else { old }
}

fn same64(old: u64, new: u64, compare: u64) -> u64 {
    if f64::from_bits(old) == f64::from_bits(compare) { new } else { old }
}

/// What an operation makes of the old value, its data and the second data, of 8 or of 4 bytes.
fn function(operation: AtomicOp, wide: bool) -> Option<AtomicFn> {
    use AtomicOp as A;
    Some(match (operation, wide) {
        (A::Swap, _) => |_, d, _| d,
        (A::Cmpswap, false) => |old, d, c| if old as u32 == c as u32 { d } else { old },
        (A::Cmpswap, true) => |old, d, c| if old == c { d } else { old },
        (A::Fcmpswap, false) => same32,
        (A::Fcmpswap, true) => same64,
        // Here the first data operand is what is compared with, and the second what is stored.
        (A::Cmpstore, false) => |old, d, c| if old as u32 == d as u32 { c } else { old },
        (A::Cmpstore, true) => |old, d, c| if old == d { c } else { old },
        (A::Fcmpstore, false) => |old, d, c| same32(old, c, d),
        (A::Fcmpstore, true) => |old, d, c| same64(old, c, d),
        (A::Add, _) => |old, d, _| old.wrapping_add(d),
        (A::Sub, _) => |old, d, _| old.wrapping_sub(d),
        (A::Rsub, _) => |old, d, _| d.wrapping_sub(old),
        (A::Smin, false) => |old, d, _| u64::from((old as u32 as i32).min(d as u32 as i32) as u32),
        (A::Smin, true) => |old, d, _| (old as i64).min(d as i64) as u64,
        (A::Umin, false) => |old, d, _| u64::from((old as u32).min(d as u32)),
        (A::Umin, true) => |old, d, _| old.min(d),
        (A::Smax, false) => |old, d, _| u64::from((old as u32 as i32).max(d as u32 as i32) as u32),
        (A::Smax, true) => |old, d, _| (old as i64).max(d as i64) as u64,
        (A::Umax, false) => |old, d, _| u64::from((old as u32).max(d as u32)),
        (A::Umax, true) => |old, d, _| old.max(d),
        (A::And, _) => |old, d, _| old & d,
        (A::Or, _) => |old, d, _| old | d,
        (A::Xor, _) => |old, d, _| old ^ d,
        (A::Inc, false) => |old, d, _| if old as u32 >= d as u32 { 0 } else { old + 1 },
        (A::Inc, true) => |old, d, _| if old >= d { 0 } else { old + 1 },
        // Saturates at 0.
        (A::SubClamp, _) => |old, d, _| old.saturating_sub(d),
        (A::CondSub, _) => |old, d, _| if old >= d { old - d } else { old },
        (A::Dec, false) => |old, d, _| if old as u32 == 0 || old as u32 > d as u32 { d } else { old - 1 },
        (A::Dec, true) => |old, d, _| if old == 0 || old > d { d } else { old - 1 },
        // The first data operand is the mask of bits to clear, the second the bits to set.
        (A::Mskor, _) => |old, d, c| old & !c | d,
        (A::Wrap, false) => |old, d, c| if old as u32 >= c as u32 { old.wrapping_sub(c) } else { old.wrapping_add(d) },
        (A::Wrap, true) => return None,
        (A::Fadd, false) => |old, d, _| sum32(old, d),
        (A::Fadd, true) => |old, d, _| (f64::from_bits(old) + f64::from_bits(d)).to_bits(),
        (A::Fmin, false) => |old, d, _| min32(old, d),
        (A::Fmax, false) => |old, d, _| max32(old, d),
        (A::Fmin, true) => |old, d, _| min64(old, d),
        (A::Fmax, true) => |old, d, _| max64(old, d),
        (A::FminNum, false) => |old, d, _| minmax::single::number(d, old, true),
        (A::FmaxNum, false) => |old, d, _| minmax::single::number(d, old, false),
        (A::FminNum, true) => |old, d, _| minmax::wide::number(d, old, true),
        (A::FmaxNum, true) => |old, d, _| minmax::wide::number(d, old, false),
        (A::PkAddF16, _) => |old, d, _| halves(old, d, |a, b| to_f16(from_f16(a) + from_f16(b), Round::Nearest)),
        (A::PkAddBf16, _) => {
            |old, d, _| halves(old, d, |a, b| to_bf16(to_f32(add_odd(from_bf16(a), from_bf16(b)), Round::Nearest)))
        }
    })
}

/// What an atomic operation of memory or LDS does, if it is one.
pub(crate) fn of(opcode: Opcode) -> Option<Atomic> {
    use AtomicOp as A;
    let AtomicInfo { operation, bytes } = opcode.atomic()?;
    let compare = matches!(operation, A::Cmpswap | A::Fcmpswap | A::Cmpstore | A::Fcmpstore | A::Mskor | A::Wrap);
    Some(Atomic { f: function(operation, bytes == 8)?, bytes, compare })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_counters() {
        let inc = of(Opcode::GLOBAL_ATOMIC_INC).unwrap().f;
        assert_eq!([0, 1, 2, 3, 4].map(|old| inc(old, 3, 0)), [1, 2, 3, 0, 0]);
        let dec = of(Opcode::GLOBAL_ATOMIC_DEC).unwrap().f;
        assert_eq!([0, 1, 3, 4].map(|old| dec(old, 3, 0)), [3, 0, 2, 3]);
    }

    #[test]
    fn operations() {
        assert!(of(Opcode::FLAT_ATOMIC_CMPSWAP_X2).is_some_and(|a| a.compare && a.bytes == 8));
        assert!(of(Opcode::DS_CMPST_RTN_F64).is_some_and(|a| a.compare && a.bytes == 8));
        assert!(of(Opcode::DS_ADD_F32).is_some_and(|a| !a.compare && a.bytes == 4));
        assert!(of(Opcode::DS_READ_B32).is_none() && of(Opcode::GLOBAL_ATOMIC_ORDERED_ADD_B64).is_none());
        let same = |name: Opcode, typed: Opcode| {
            let (a, b) = (of(name).unwrap(), of(typed).unwrap());
            (a.bytes, a.compare) == (b.bytes, b.compare)
                && [(3, 5, 3), (9, 5, 3)].iter().all(|&(x, y, z)| (a.f)(x, y, z) == (b.f)(x, y, z))
        };
        for (name, typed) in [
            (Opcode::GLOBAL_ATOMIC_ADD, Opcode::GLOBAL_ATOMIC_ADD_U32),
            (Opcode::GLOBAL_ATOMIC_SMIN_X2, Opcode::GLOBAL_ATOMIC_MIN_I64),
            (Opcode::GLOBAL_ATOMIC_CMPSWAP_X2, Opcode::GLOBAL_ATOMIC_CMPSWAP_B64),
            (Opcode::GLOBAL_ATOMIC_FMAX, Opcode::GLOBAL_ATOMIC_MAX_F32),
            (Opcode::GLOBAL_ATOMIC_CSUB, Opcode::GLOBAL_ATOMIC_SUB_CLAMP_U32),
        ] {
            assert!(same(name, typed), "{name}");
        }
        let stored = of(Opcode::DS_CMPSTORE_RTN_B32).unwrap();
        assert_eq!(((stored.f)(7, 7, 1), (stored.f)(7, 1, 7)), (1, 7), "new value first, comparison second");
        assert_eq!(of(Opcode::DS_MSKOR_B32).unwrap().bytes, 4);
    }
}
