//! The operations of atomics, shared by LDS, global, buffer and scalar memory.

use super::convert::sum32;
use super::float::{Round, add_odd, from_bf16, from_f16, to_bf16, to_f16, to_f32};
use super::float_order;
use super::op::AtomicFn;

/// What an atomic does, found by its operation and type name.
#[derive(Clone, Copy)]
pub(super) struct Atomic {
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

/// Integer operations: `operation` as in `global_atomic_<operation>`, with the width apart.
fn integer(operation: &str, wide: bool) -> Option<AtomicFn> {
    Some(match (operation, wide) {
        ("swap", _) => |_, d, _| d,
        ("cmpswap", false) => |old, d, c| if old as u32 == c as u32 { d } else { old },
        ("cmpswap", true) => |old, d, c| if old == c { d } else { old },
        ("add", _) => |old, d, _| old.wrapping_add(d),
        ("sub", _) => |old, d, _| old.wrapping_sub(d),
        ("rsub", _) => |old, d, _| d.wrapping_sub(old),
        ("smin", false) => |old, d, _| u64::from((old as u32 as i32).min(d as u32 as i32) as u32),
        ("smin", true) => |old, d, _| (old as i64).min(d as i64) as u64,
        ("umin", false) => |old, d, _| u64::from((old as u32).min(d as u32)),
        ("umin", true) => |old, d, _| old.min(d),
        ("smax", false) => |old, d, _| u64::from((old as u32 as i32).max(d as u32 as i32) as u32),
        ("smax", true) => |old, d, _| (old as i64).max(d as i64) as u64,
        ("umax", false) => |old, d, _| u64::from((old as u32).max(d as u32)),
        ("umax", true) => |old, d, _| old.max(d),
        ("and", _) => |old, d, _| old & d,
        ("or", _) => |old, d, _| old | d,
        ("xor", _) => |old, d, _| old ^ d,
        ("inc", false) => |old, d, _| if old as u32 >= d as u32 { 0 } else { old + 1 },
        ("inc", true) => |old, d, _| if old >= d { 0 } else { old + 1 },
        // Saturates at 0.
        ("csub" | "sub_clamp", _) => |old, d, _| old.saturating_sub(d),
        ("cond_sub", _) => |old, d, _| if old >= d { old - d } else { old },
        ("dec", false) => |old, d, _| if old as u32 == 0 || old as u32 > d as u32 { d } else { old - 1 },
        ("dec", true) => |old, d, _| if old == 0 || old > d { d } else { old - 1 },
        _ => return None,
    })
}

/// Floating-point operations, by operation and type.
fn float(operation: &str) -> Option<(AtomicFn, u8)> {
    Some(match operation {
        "add_f32" => (|old, d, _| sum32(old, d), 4),
        "add_f64" => (|old, d, _| (f64::from_bits(old) + f64::from_bits(d)).to_bits(), 8),
        "min_f32" => (|old, d, _| min32(old, d), 4),
        "max_f32" => (|old, d, _| max32(old, d), 4),
        "min_f64" => (|old, d, _| min64(old, d), 8),
        "max_f64" => (|old, d, _| max64(old, d), 8),
        "min_num_f32" => (|old, d, _| float_order::single::number(d, old, true), 4),
        "max_num_f32" => (|old, d, _| float_order::single::number(d, old, false), 4),
        "min_num_f64" => (|old, d, _| float_order::wide::number(d, old, true), 8),
        "max_num_f64" => (|old, d, _| float_order::wide::number(d, old, false), 8),
        "pk_add_f16" => (|old, d, _| halves(old, d, |a, b| to_f16(from_f16(a) + from_f16(b), Round::Nearest)), 4),
        "pk_add_bf16" => (|old, d, _| halves(old, d, |a, b| to_bf16(to_f32(add_odd(from_bf16(a), from_bf16(b)), Round::Nearest))), 4),
        _ => return None,
    })
}

fn same32(old: u64, new: u64, compare: u64) -> u64 {
    if f32::from_bits(old as u32) == f32::from_bits(compare as u32) { new } else { old }
}

fn same64(old: u64, new: u64, compare: u64) -> u64 {
    if f64::from_bits(old) == f64::from_bits(compare) { new } else { old }
}

/// The operation of an integer type, as [`integer`] calls it.
fn of_type(operation: &str, ty: &str) -> Option<AtomicFn> {
    let wide = ty.ends_with("64");
    match (operation, ty) {
        ("min", "i32" | "i64") => integer("smin", wide),
        ("max", "i32" | "i64") => integer("smax", wide),
        ("min", "u32" | "u64") => integer("umin", wide),
        ("max", "u32" | "u64") => integer("umax", wide),
        ("add" | "sub" | "rsub" | "inc" | "dec", "u32" | "u64")
        | ("csub" | "sub_clamp" | "cond_sub", "u32")
        | ("and" | "or" | "xor" | "swap" | "cmpswap", "b32" | "b64") => integer(operation, wide),
        _ => None,
    }
}

/// The atomic named behind `global_atomic_`, `flat_atomic_`, `buffer_atomic_` or `s_atomic_`: with the type behind it (`add_u32`), or as it was called before
/// gfx11 (`add`, `add_x2`, `fmin`).
pub(super) fn global(rest: &str) -> Option<Atomic> {
    if let Some((f, bytes)) = float(rest) {
        return Some(Atomic { f, bytes, compare: false });
    }
    let (f, bytes): (AtomicFn, u8) = match rest {
        "fmin" => (|old, d, _| min32(old, d), 4),
        "fmax" => (|old, d, _| max32(old, d), 4),
        "fmin_x2" => (|old, d, _| min64(old, d), 8),
        "fmax_x2" => (|old, d, _| max64(old, d), 8),
        "fcmpswap" | "cmpswap_f32" => return Some(Atomic { f: same32, bytes: 4, compare: true }),
        "fcmpswap_x2" => return Some(Atomic { f: same64, bytes: 8, compare: true }),
        _ => {
            let typed = rest.rsplit_once('_').and_then(|(operation, ty)| Some((of_type(operation, ty)?, ty.ends_with("64"))));
            let (f, wide) = match (typed, rest.strip_suffix("_x2")) {
                (Some(found), _) => found,
                (None, Some(operation)) => (integer(operation, true)?, true),
                (None, None) => (integer(rest, false)?, false),
            };
            (f, if wide { 8 } else { 4 })
        }
    };
    Some(Atomic { f, bytes, compare: rest.starts_with("cmpswap") })
}

/// The atomic named by `ds_<operation>[_rtn]_<type>`; the bool says that it returns.
pub(super) fn lds(name: &str) -> Option<(Atomic, bool)> {
    let rest = name.strip_prefix("ds_")?;
    let returns = rest.contains("_rtn_");
    let rest = rest.replace("_rtn_", "_");
    if let Some((f, bytes)) = float(&rest) {
        return Some((Atomic { f, bytes, compare: false }, returns));
    }
    let (operation, ty) = rest.rsplit_once('_')?;
    let wide = ty.ends_with("64");
    let compare = matches!(operation, "cmpst" | "cmpstore" | "mskor" | "wrap");
    let f: AtomicFn = match (operation, ty) {
        ("wrxchg" | "storexchg", "b32" | "b64") => integer("swap", wide)?,
        ("cmpst", "b32" | "b64") => integer("cmpswap", wide)?,
        ("cmpst", "f32") => same32,
        ("cmpst", "f64") => same64,
        // Here the first data operand is what is stored, and the second what is compared with.
        ("cmpstore", "b32") => |old, d, c| if old as u32 == d as u32 { c } else { old },
        ("cmpstore", "b64") => |old, d, c| if old == d { c } else { old },
        ("cmpstore", "f32") => |old, d, c| same32(old, c, d),
        ("cmpstore", "f64") => |old, d, c| same64(old, c, d),
        // The first data operand is the mask of bits to clear, the second the bits to set.
        ("mskor", "b32" | "b64") => |old, d, c| old & !c | d,
        ("wrap", "b32") => |old, d, c| if old as u32 >= c as u32 { old.wrapping_sub(c) } else { old.wrapping_add(d) },
        ("swap" | "cmpswap" | "csub", _) => return None,
        _ => of_type(operation, ty)?,
    };
    Some((Atomic { f, bytes: if wide { 8 } else { 4 }, compare }, returns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_counters() {
        let inc = global("inc").unwrap().f;
        assert_eq!([0, 1, 2, 3, 4].map(|old| inc(old, 3, 0)), [1, 2, 3, 0, 0]);
        let dec = global("dec").unwrap().f;
        assert_eq!([0, 1, 3, 4].map(|old| dec(old, 3, 0)), [3, 0, 2, 3]);
    }

    #[test]
    fn names() {
        assert!(global("cmpswap_x2").is_some_and(|a| a.compare && a.bytes == 8));
        assert!(lds("ds_cmpst_rtn_f64").is_some_and(|(a, returns)| a.compare && returns && a.bytes == 8));
        assert!(lds("ds_add_f32").is_some_and(|(a, returns)| !returns && a.bytes == 4));
        assert!(lds("ds_read_b32").is_none() && lds("ds_swap_b32").is_none());
        let same = |name: &str, typed: &str| {
            let (a, b) = (global(name).unwrap(), global(typed).unwrap());
            (a.bytes, a.compare) == (b.bytes, b.compare) && [(3, 5, 3), (9, 5, 3)].iter().all(|&(x, y, z)| (a.f)(x, y, z) == (b.f)(x, y, z))
        };
        for (name, typed) in
            [("add", "add_u32"), ("smin_x2", "min_i64"), ("cmpswap_x2", "cmpswap_b64"), ("fmax", "max_f32"), ("csub", "sub_clamp_u32")]
        {
            assert!(same(name, typed), "{name}");
        }
        let (stored, _) = lds("ds_cmpstore_rtn_b32").unwrap();
        assert_eq!(((stored.f)(7, 7, 1), (stored.f)(7, 1, 7)), (1, 7), "new value first, comparison second");
        assert_eq!(lds("ds_mskor_b32").unwrap().0.bytes, 4);
    }
}
