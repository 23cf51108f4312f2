//! The operations of atomics, shared by LDS, global, buffer and scalar memory.

use super::convert::sum32;
use super::float::{Round, add_odd, from_bf16, from_f16, to_bf16, to_f16, to_f32};
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
        "pk_add_f16" => (|old, d, _| halves(old, d, |a, b| to_f16(from_f16(a) + from_f16(b), Round::Nearest)), 4),
        "pk_add_bf16" => (|old, d, _| halves(old, d, |a, b| to_bf16(to_f32(add_odd(from_bf16(a), from_bf16(b)), Round::Nearest))), 4),
        _ => return None,
    })
}

/// The atomic named behind `global_atomic_`, `flat_atomic_`, `buffer_atomic_` or `s_atomic_`.
pub(super) fn global(rest: &str) -> Option<Atomic> {
    if let Some((f, bytes)) = float(rest) {
        return Some(Atomic { f, bytes, compare: false });
    }
    let (operation, wide) = match rest.strip_suffix("_x2") {
        Some(operation) => (operation, true),
        None => (rest, false),
    };
    let f = integer(operation, wide)?;
    Some(Atomic { f, bytes: if wide { 8 } else { 4 }, compare: operation == "cmpswap" })
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
    let compare = matches!(operation, "cmpst" | "mskor" | "wrap");
    let f: AtomicFn = match (operation, ty) {
        ("min", "i32" | "i64") => integer("smin", wide)?,
        ("max", "i32" | "i64") => integer("smax", wide)?,
        ("min", "u32" | "u64") => integer("umin", wide)?,
        ("max", "u32" | "u64") => integer("umax", wide)?,
        ("wrxchg", "b32" | "b64") => integer("swap", wide)?,
        ("cmpst", "b32" | "b64") => integer("cmpswap", wide)?,
        ("cmpst", "f32") => |old, d, c| if f32::from_bits(old as u32) == f32::from_bits(c as u32) { d } else { old },
        ("cmpst", "f64") => |old, d, c| if f64::from_bits(old) == f64::from_bits(c) { d } else { old },
        // The first data operand is the mask of bits to clear, the second the bits to set.
        ("mskor", "b32" | "b64") => |old, d, c| old & !c | d,
        ("wrap", "b32") => |old, d, c| if old as u32 >= c as u32 { old.wrapping_sub(c) } else { old.wrapping_add(d) },
        ("add" | "sub" | "rsub" | "inc" | "dec", "u32" | "u64") | ("and" | "or" | "xor", "b32" | "b64") => integer(operation, wide)?,
        _ => return None,
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
        assert!(lds("ds_read_b32").is_none());
        assert_eq!(lds("ds_mskor_b32").unwrap().0.bytes, 4);
    }
}
