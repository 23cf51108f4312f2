//! What vector ALU operations do to lanes, in loops that the compiler can turn into vector code.
//!
//! An operation is a function of one lane. [`operation`] makes of it, beside the call for one lane, loops over all lanes with the function inlined, compiled
//! for the vector instructions that this computer has.

use std::sync::LazyLock;

use super::core::LANES;
use super::float::Env;

/// A row of a register file.
pub(super) type Row = [u32; LANES];
/// Rows of the sources.
pub(super) type Rows<'a> = [&'a Row; 3];

/// A function of a lane: sources in, destination bits out.
pub(super) trait Lane: Fn(&Env, &[u64; 4]) -> u64 + Copy + Send + Sync + 'static {}
impl<F: Fn(&Env, &[u64; 4]) -> u64 + Copy + Send + Sync + 'static> Lane for F {}

/// A comparison of lanes.
pub(super) trait Test: Fn(&Env, u64, u64) -> bool + Copy + Send + Sync + 'static {}
impl<F: Fn(&Env, u64, u64) -> bool + Copy + Send + Sync + 'static> Test for F {}

/// A function of a lane with a carry or flag bit.
pub(super) trait LaneBit: Fn(&Env, &[u64; 4]) -> (u64, bool) + Copy + Send + Sync + 'static {}
impl<F: Fn(&Env, &[u64; 4]) -> (u64, bool) + Copy + Send + Sync + 'static> LaneBit for F {}

/// An operation on lanes.
pub(super) trait Operation: Send + Sync {
    /// One lane.
    fn lane(&self, env: &Env, sources: &[u64; 4]) -> u64;
    /// All lanes, 32 bits each, of operations with the usual [`Env::USUAL`].
    fn words(&self, sources: Rows<'_>, out: &mut Row);
    /// The same of 64 bits, each source as its low and high halves.
    fn doubles(&self, sources: [[&Row; 2]; 3], out: [&mut Row; 2]);
}

/// A comparison.
pub(super) trait Comparison: Send + Sync {
    /// One lane.
    fn lane(&self, env: &Env, a: u64, b: u64) -> bool;
    /// A bit for each lane, of 32-bit sources.
    fn words(&self, a: &Row, b: &Row) -> u64;
}

/// An operation with a bit.
pub(super) trait BitOperation: Send + Sync {
    /// One lane.
    fn lane(&self, env: &Env, sources: &[u64; 4]) -> (u64, bool);
    /// All lanes, of 32-bit sources and a mask; gives a bit for each lane.
    fn words(&self, a: &Row, b: &Row, mask: u64, out: &mut Row) -> u64;
}

static ARCH: LazyLock<pulp::Arch> = LazyLock::new(pulp::Arch::new);

impl<F: Lane> Operation for F {
    fn lane(&self, env: &Env, sources: &[u64; 4]) -> u64 {
        self(env, sources)
    }

    fn words(&self, [a, b, c]: Rows<'_>, out: &mut Row) {
        let f = *self;
        ARCH.dispatch(
            #[inline(always)]
            || {
                for lane in 0..LANES {
                    out[lane] = f(&Env::USUAL, &[u64::from(a[lane]), u64::from(b[lane]), u64::from(c[lane]), 0]) as u32;
                }
            },
        );
    }

    fn doubles(&self, [a, b, c]: [[&Row; 2]; 3], [low, high]: [&mut Row; 2]) {
        let f = *self;
        ARCH.dispatch(
            #[inline(always)]
            || {
                let wide = |row: [&Row; 2], lane: usize| u64::from(row[0][lane]) | u64::from(row[1][lane]) << 32;
                for lane in 0..LANES {
                    let value = f(&Env::USUAL, &[wide(a, lane), wide(b, lane), wide(c, lane), 0]);
                    (low[lane], high[lane]) = (value as u32, (value >> 32) as u32);
                }
            },
        );
    }
}

impl<F: Test> Comparison for F {
    fn lane(&self, env: &Env, a: u64, b: u64) -> bool {
        self(env, a, b)
    }

    fn words(&self, a: &Row, b: &Row) -> u64 {
        let f = *self;
        ARCH.dispatch(
            #[inline(always)]
            || {
                let mut flags = [0; LANES];
                for lane in 0..LANES {
                    flags[lane] = u8::from(f(&Env::USUAL, u64::from(a[lane]), u64::from(b[lane])));
                }
                pack(&flags)
            },
        )
    }
}

impl<F: LaneBit> BitOperation for F {
    fn lane(&self, env: &Env, sources: &[u64; 4]) -> (u64, bool) {
        self(env, sources)
    }

    fn words(&self, a: &Row, b: &Row, mask: u64, out: &mut Row) -> u64 {
        let f = *self;
        ARCH.dispatch(
            #[inline(always)]
            || {
                let mut flags = [0; LANES];
                for lane in 0..LANES {
                    let (value, flag) = f(&Env::USUAL, &[u64::from(a[lane]), u64::from(b[lane]), mask >> lane & 1, 0]);
                    (out[lane], flags[lane]) = (value as u32, u8::from(flag));
                }
                pack(&flags)
            },
        )
    }
}

/// The flags as the bits of a number, the first lowest.
#[inline(always)]
fn pack(flags: &[u8; LANES]) -> u64 {
    let mut bits = 0;
    for (n, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // Multiplication brings the lowest bits of the bytes together in the highest byte.
        bits |= (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * n);
    }
    bits
}

/// The operation that a function of a lane is. Functions without captured values take no memory; others stay, as they belong to decoded code.
pub(super) fn operation(f: impl Lane) -> &'static dyn Operation {
    Box::leak(Box::new(f))
}

/// See [`operation`].
pub(super) fn comparison(f: impl Test) -> &'static dyn Comparison {
    Box::leak(Box::new(f))
}

/// See [`operation`].
pub(super) fn bit_operation(f: impl LaneBit) -> &'static dyn BitOperation {
    Box::leak(Box::new(f))
}

/// Puts the results of the lanes in `mask` into a register.
#[inline]
pub(super) fn blend(register: &mut Row, values: &Row, mask: u64) {
    const HALF: usize = LANES / 2;
    if mask == u64::MAX {
        *register = *values;
    } else if mask == u64::from(u32::MAX) {
        register[..HALF].copy_from_slice(&values[..HALF]);
    } else {
        ARCH.dispatch(
            #[inline(always)]
            || {
                let halves = register.as_chunks_mut::<HALF>().0.iter_mut().zip(values.as_chunks::<HALF>().0);
                for ((register, values), mask) in halves.zip([mask as u32, (mask >> HALF) as u32]) {
                    for lane in 0..HALF {
                        let chosen = 0_u32.wrapping_sub(mask >> lane & 1);
                        register[lane] = register[lane] & !chosen | values[lane] & chosen;
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_bits() {
        for mask in [0, 1, u64::MAX, 0x8000_0000_0000_0000, 0x0123_4567_89ab_cdef] {
            let flags: [u8; LANES] = std::array::from_fn(|lane| (mask >> lane & 1) as u8);
            assert_eq!(pack(&flags), mask);
        }
    }

    #[test]
    fn only_the_lanes_of_a_mask_are_written() {
        let values: Row = std::array::from_fn(|lane| lane as u32 + 1);
        for mask in [0, 1, u64::MAX, 0xffff_ffff, 0xffff_ffff_0000_0000, 0x8000_0000_8000_0001, 0x0123_4567_89ab_cdef] {
            let mut register = [1000; LANES];
            blend(&mut register, &values, mask);
            for lane in 0..LANES {
                assert_eq!(register[lane], if mask >> lane & 1 != 0 { values[lane] } else { 1000 }, "{mask:#x} {lane}");
            }
        }
    }

    #[test]
    fn loops_do_what_the_function_does() {
        let f = |e: &Env, s: &[u64; 4]| if e.clamp { 0 } else { (s[0] ^ s[1]).wrapping_mul(s[2] | 1) };
        let row = |seed: u32| -> Row { std::array::from_fn(|lane| (lane as u32).wrapping_mul(seed).rotate_left(seed % 31)) };
        let (a, b, c) = (row(0x9e37_79b9), row(0x85eb_ca6b), row(0xc2b2_ae35));
        let mut out = [0; LANES];
        operation(f).words([&a, &b, &c], &mut out);
        let (mut low, mut high) = ([0; LANES], [0; LANES]);
        operation(f).doubles([[&a, &b], [&b, &c], [&c, &a]], [&mut low, &mut high]);
        let less = comparison(|_, a, b| a < b).words(&a, &b);
        let mut sums = [0; LANES];
        let carry = bit_operation(|_, s| ((s[0] + s[1] + s[2]) & 0xffff_ffff, (s[0] + s[1] + s[2]) >> 32 != 0));
        let carries = carry.words(&a, &b, 0x5555_5555_5555_5555, &mut sums);
        for lane in 0..LANES {
            let [x, y, z] = [a, b, c].map(|row| u64::from(row[lane]));
            assert_eq!(out[lane], f(&Env::USUAL, &[x, y, z, 0]) as u32);
            let wide = f(&Env::USUAL, &[x | y << 32, y | z << 32, z | x << 32, 0]);
            assert_eq!(u64::from(low[lane]) | u64::from(high[lane]) << 32, wide);
            assert_eq!(less >> lane & 1 != 0, x < y);
            let sum = x + y + u64::from(lane % 2 == 0);
            assert_eq!((u64::from(sums[lane]), carries >> lane & 1), (sum & 0xffff_ffff, sum >> 32));
        }
    }
}
