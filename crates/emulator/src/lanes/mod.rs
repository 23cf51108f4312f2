//! What vector ALU operations do to lanes, in loops that the compiler can turn into vector code.
//!
//! An operation is a function of one lane. [`operation`] makes of it, beside the call for one lane, loops over all
//! lanes with the function inlined, compiled for the vector instructions that this computer has.

pub(crate) mod elements;
pub(crate) mod places;
pub(crate) mod runs;
pub(crate) mod simplified;

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use crate::float::{Env, flush32};

/// Most lanes of a wave. wave32 uses the first half of everything.
pub(crate) const LANES: usize = 64;

/// A file of vector registers. Each is by itself, so that results can take its place without being copied.
pub(crate) type Registers = Vec<Box<Register>>;

/// A value of each lane.
pub(crate) type Lanes = [u64; LANES];

/// The active lanes of a mask, lowest first.
pub(crate) fn active(mask: u64) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            lane
        })
    })
}

/// The lanes of a register.
pub(crate) type Row = [u32; LANES];

/// A register: a row that vector instructions of the host find aligned.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(crate) struct Register(pub Row);

impl Default for Register {
    fn default() -> Self {
        Register([0; LANES])
    }
}

impl Deref for Register {
    type Target = Row;
    fn deref(&self) -> &Row {
        &self.0
    }
}

impl DerefMut for Register {
    fn deref_mut(&mut self) -> &mut Row {
        &mut self.0
    }
}

/// Lanes of half a wave, or of a wave of 32: what the loops go by.
const HALF: usize = LANES / 2;
/// Rows of the sources.
pub(crate) type Rows<'a> = [&'a Row; 3];
/// The low and high dwords of the sources.
pub(crate) type WideRows<'a> = [[&'a Row; 2]; 3];

/// A function of a lane: sources in, destination bits out.
pub(crate) trait Lane: Fn(&Env, &[u64; 4]) -> u64 + Copy + Send + Sync + 'static {}
impl<F: Fn(&Env, &[u64; 4]) -> u64 + Copy + Send + Sync + 'static> Lane for F {}

/// A comparison of lanes.
pub(crate) trait Test: Fn(&Env, u64, u64) -> bool + Copy + Send + Sync + 'static {}
impl<F: Fn(&Env, u64, u64) -> bool + Copy + Send + Sync + 'static> Test for F {}

/// A function of a lane with a carry or flag bit.
pub(crate) trait LaneBit: Fn(&Env, &[u64; 4]) -> (u64, bool) + Copy + Send + Sync + 'static {}
impl<F: Fn(&Env, &[u64; 4]) -> (u64, bool) + Copy + Send + Sync + 'static> LaneBit for F {}

/// The lanes that a loop is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActiveLanes {
    /// Halves of 32 lanes that the wave has, 1 or 2: loops go over all of them.
    pub halves: usize,
    /// The active lanes.
    pub mask: u64,
}

/// An operation on lanes.
pub(crate) trait Operation: Send + Sync {
    /// One lane.
    fn lane(&self, env: &Env, sources: &[u64; 4]) -> u64;
    /// The active lanes, 32 bits each, of operations with the usual [`Env::USUAL`]. What it makes of the others means
    /// nothing. The sources are no array: an array would be written to memory in parts and be read as a whole, which
    /// processors wait for.
    fn words(&self, a: &Row, b: &Row, c: &Row, out: &mut Row, lanes: ActiveLanes);
    /// The same of 64 bits, each source as its low and high dwords.
    fn doubles(&self, sources: WideRows<'_>, out: [&mut Row; 2], lanes: ActiveLanes);
}

/// A comparison.
pub(crate) trait Comparison: Send + Sync {
    /// One lane.
    fn lane(&self, env: &Env, a: u64, b: u64) -> bool;
    /// A bit for each lane, of 32-bit sources. Those of inactive lanes mean nothing.
    fn words(&self, a: &Row, b: &Row, lanes: ActiveLanes) -> u64;
}

/// An operation with a bit.
pub(crate) trait BitOperation: Send + Sync {
    /// One lane.
    fn lane(&self, env: &Env, sources: &[u64; 4]) -> (u64, bool);
    /// The active lanes, of 32-bit sources; returns a bit for each lane. What is made of the others means nothing.
    fn words(&self, a: &Row, b: &Row, c: &Row, out: &mut Row, lanes: ActiveLanes) -> u64;
    /// The same of 64 bits, each source as its low and high dwords.
    fn doubles(&self, sources: WideRows<'_>, out: [&mut Row; 2], lanes: ActiveLanes) -> u64;
}

static ARCH: LazyLock<pulp::Arch> = LazyLock::new(pulp::Arch::new);

/// Gives a type the loop that [`pulp::Arch::dispatch`] compiles for vector instructions. A type for each loop, no
/// closure: between a closure and its caller there is a function that the compiler may leave as it is, with everything
/// in it, and that is then code without those instructions.
macro_rules! vector_loop {
    (($($f:ident: $bound:ident)?) $name:ty, $output:ty, |$this:ident| $body:block) => {
        impl$(<$f: $bound>)? pulp::NullaryFnOnce for $name {
            type Output = $output;

            #[inline(always)]
            fn call(self) -> $output {
                let $this = self;
                $body
            }
        }
    };
}

pub(crate) use vector_loop;

struct Words<'a, F>(F, Rows<'a>, &'a mut Row, usize);

vector_loop!((F: Lane) Words<'_, F>, (), |this| {
    let Words(f, [a, b, c], out, halves) = this;
    let lanes = lanes_of(halves);
    let sources = a[..lanes].iter().zip(&b[..lanes]).zip(&c[..lanes]);
    for (out, ((&a, &b), &c)) in out[..lanes].iter_mut().zip(sources) {
        *out = f(&Env::USUAL, &[u64::from(a), u64::from(b), u64::from(c), 0]) as u32;
    }
});

/// The lanes of one or two halves of a wave. A number that is not known when this is compiled: loops over so many lanes
/// become loops of vector instructions, where those over a fixed number are unrolled before that is tried.
#[inline(always)]
fn lanes_of(halves: usize) -> usize {
    HALF * halves.min(2)
}

struct Doubles<'a, F>(F, WideRows<'a>, [&'a mut Row; 2], usize);

/// A 64-bit value of a lane.
#[inline(always)]
fn wide([low, high]: [&[u32]; 2], lane: usize) -> u64 {
    u64::from(low[lane]) | u64::from(high[lane]) << 32
}

vector_loop!((F: Lane) Doubles<'_, F>, (), |this| {
    let Doubles(f, [a, b, c], [low, high], halves) = this;
    let lanes = lanes_of(halves);
    let [a, b, c] = [a, b, c].map(|[low, high]| [&low[..lanes], &high[..lanes]]);
    let (low, high) = (&mut low[..lanes], &mut high[..lanes]);
    for lane in 0..lanes {
        let value = f(&Env::USUAL, &[wide(a, lane), wide(b, lane), wide(c, lane), 0]);
        (low[lane], high[lane]) = (value as u32, (value >> 32) as u32);
    }
});

struct Tests<'a, F>(F, &'a Row, &'a Row, usize);

vector_loop!((F: Test) Tests<'_, F>, u64, |this| {
    let Tests(f, a, b, halves) = this;
    let lanes = lanes_of(halves);
    let mut flags = [0; LANES];
    for (flag, (&a, &b)) in flags[..lanes].iter_mut().zip(a[..lanes].iter().zip(&b[..lanes])) {
        *flag = u8::from(f(&Env::USUAL, u64::from(a), u64::from(b)));
    }
    pack(&flags)
});

struct Bits<'a, F>(F, Rows<'a>, &'a mut Row, usize);

vector_loop!((F: LaneBit) Bits<'_, F>, u64, |this| {
    let Bits(f, [a, b, c], out, halves) = this;
    let lanes = lanes_of(halves);
    let mut flags = [0; LANES];
    let sources = a[..lanes].iter().zip(&b[..lanes]).zip(&c[..lanes]);
    for ((out, flag), ((&a, &b), &c)) in out[..lanes].iter_mut().zip(&mut flags[..lanes]).zip(sources) {
        let (value, bit) = f(&Env::USUAL, &[u64::from(a), u64::from(b), u64::from(c), 0]);
        (*out, *flag) = (value as u32, u8::from(bit));
    }
    pack(&flags)
});

struct DoubleBits<'a, F>(F, WideRows<'a>, [&'a mut Row; 2], usize);

vector_loop!((F: LaneBit) DoubleBits<'_, F>, u64, |this| {
    let DoubleBits(f, [a, b, c], [low, high], halves) = this;
    let lanes = lanes_of(halves);
    let mut flags = [0; LANES];
    let [a, b, c] = [a, b, c].map(|[low, high]| [&low[..lanes], &high[..lanes]]);
    let (low, high) = (&mut low[..lanes], &mut high[..lanes]);
    for lane in 0..lanes {
        let (value, bit) = f(&Env::USUAL, &[wide(a, lane), wide(b, lane), wide(c, lane), 0]);
        (low[lane], high[lane], flags[lane]) = (value as u32, (value >> 32) as u32, u8::from(bit));
    }
    pack(&flags)
});

impl<F: Lane> Operation for F {
    fn lane(&self, env: &Env, sources: &[u64; 4]) -> u64 {
        self(env, sources)
    }

    fn words(&self, a: &Row, b: &Row, c: &Row, out: &mut Row, lanes: ActiveLanes) {
        ARCH.dispatch(Words(*self, [a, b, c], out, lanes.halves));
    }

    fn doubles(&self, sources: WideRows<'_>, out: [&mut Row; 2], lanes: ActiveLanes) {
        ARCH.dispatch(Doubles(*self, sources, out, lanes.halves));
    }
}

impl<F: Test> Comparison for F {
    fn lane(&self, env: &Env, a: u64, b: u64) -> bool {
        self(env, a, b)
    }

    fn words(&self, a: &Row, b: &Row, lanes: ActiveLanes) -> u64 {
        ARCH.dispatch(Tests(*self, a, b, lanes.halves))
    }
}

impl<F: LaneBit> BitOperation for F {
    fn lane(&self, env: &Env, sources: &[u64; 4]) -> (u64, bool) {
        self(env, sources)
    }

    fn words(&self, a: &Row, b: &Row, c: &Row, out: &mut Row, lanes: ActiveLanes) -> u64 {
        ARCH.dispatch(Bits(*self, [a, b, c], out, lanes.halves))
    }

    fn doubles(&self, sources: WideRows<'_>, out: [&mut Row; 2], lanes: ActiveLanes) -> u64 {
        ARCH.dispatch(DoubleBits(*self, sources, out, lanes.halves))
    }
}

/// A row as its two halves.
#[inline(always)]
fn halved(row: &Row) -> &[[u32; HALF]] {
    row.as_chunks().0
}

#[inline(always)]
fn halved_mut(row: &mut Row) -> &mut [[u32; HALF]] {
    row.as_chunks_mut().0
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

/// The operation that a function of a lane is. A closure without captured values takes no memory; a function pointer
/// takes its 8 bytes, once for each operation that a thread of a device decodes first.
pub(crate) fn operation(f: impl Lane) -> &'static dyn Operation {
    Box::leak(Box::new(f))
}

/// See [`operation`].
pub(crate) fn comparison(f: impl Test) -> &'static dyn Comparison {
    Box::leak(Box::new(f))
}

/// See [`operation`].
pub(crate) fn bit_operation(f: impl LaneBit) -> &'static dyn BitOperation {
    Box::leak(Box::new(f))
}

struct Expand<'a>(u32, &'a mut [u32]);

vector_loop!(() Expand<'_>, (), |this| {
    let Expand(bits, into) = this;
    for (into, lane) in into.iter_mut().zip(0..) {
        *into = bits >> (lane & 31) & 1;
    }
});

/// The bits of a mask as numbers, the lowest in the first lane.
pub(crate) fn expand(mask: u64, into: &mut Row) {
    for (half, into) in halved_mut(into).iter_mut().enumerate() {
        ARCH.dispatch(Expand((mask >> (HALF * half)) as u32, into));
    }
}

/// A part of each lane: shifted left, then right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LanePart {
    pub up: u8,
    pub down: u8,
    /// The shift to the right keeps the sign.
    pub signed: bool,
}

struct TakePart<'a>(&'a [u32], LanePart, &'a mut [u32]);

vector_loop!(() TakePart<'_>, (), |this| {
    let TakePart(row, LanePart { up, down, signed }, into) = this;
    let (up, down) = (up & 31, down & 31);
    if signed {
        for (into, &word) in into.iter_mut().zip(row) {
            *into = ((word << up) as i32 >> down) as u32;
        }
    } else {
        for (into, &word) in into.iter_mut().zip(row) {
            *into = word << up >> down;
        }
    }
});

/// Parts of the lanes of a row.
pub(crate) fn take_part(row: &Row, part: LanePart, into: &mut Row) {
    ARCH.dispatch(TakePart(row, part, into));
}

/// What becomes of the sign of numbers: first none, then the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sign {
    pub absolute: bool,
    pub negate: bool,
}

struct WithSign<'a>(&'a [u32], u32, u32, &'a mut [u32]);

vector_loop!(() WithSign<'_>, (), |this| {
    let WithSign(row, keep, flip, into) = this;
    for (into, &word) in into.iter_mut().zip(row) {
        *into = word & keep ^ flip;
    }
});

/// The numbers of a row with another sign.
pub(crate) fn with_sign(row: &Row, sign: Sign, into: &mut Row) {
    const SIGN: u32 = 1 << 31;
    ARCH.dispatch(WithSign(
        row,
        if sign.absolute { !SIGN } else { u32::MAX },
        if sign.negate { SIGN } else { 0 },
        into,
    ));
}

/// Gives the numbers of a row another sign.
pub(crate) fn change_sign(row: &mut Row, sign: Sign) {
    if sign.absolute || sign.negate {
        let numbers = *row;
        with_sign(&numbers, sign, row);
    }
}

struct Flush<'a>(&'a [u32], &'a mut [u32]);

vector_loop!(() Flush<'_>, (), |this| {
    let Flush(row, into) = this;
    for (into, &word) in into.iter_mut().zip(row) {
        *into = flush32(word);
    }
});

/// The numbers of a row, of single precision, with denormals made zeros.
pub(crate) fn flush(row: &Row, into: &mut Row) {
    ARCH.dispatch(Flush(row, into));
}

struct Blend<'a>(&'a mut [u32], &'a [u32], u32);

vector_loop!(() Blend<'_>, (), |this| {
    let Blend(register, values, mask) = this;
    for ((word, &value), lane) in register.iter_mut().zip(values).zip(0..) {
        let chosen = 0_u32.wrapping_sub(mask >> (lane & 31) & 1);
        *word = *word & !chosen | value & chosen;
    }
});

/// Puts the results of the lanes in `mask` into a register.
#[inline]
pub(crate) fn blend(register: &mut Row, values: &Row, mask: u64) {
    for (half, (register, values)) in halved_mut(register).iter_mut().zip(halved(values)).enumerate() {
        match (mask >> (HALF * half)) as u32 {
            0 => {}
            u32::MAX => *register = *values,
            mask => ARCH.dispatch(Blend(register, values, mask)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO_ROW: Row = [0; LANES];
    const ALL: ActiveLanes = ActiveLanes { halves: 2, mask: u64::MAX };
    const HALF_OF_THEM: ActiveLanes = ActiveLanes { halves: 1, mask: 0xffff_ffff };

    #[test]
    fn flags_become_bits() {
        for mask in [0, 1, 0xffff_ffff, 0x8000_0000_8000_0000, 0x0123_4567_89ab_cdef] {
            let flags: [u8; LANES] = std::array::from_fn(|lane| (mask >> lane & 1) as u8);
            assert_eq!(pack(&flags), mask);
        }
        for mask in [0, 1, u64::MAX, 0x8000_0000_0000_0000, 0x0123_4567_89ab_cdef] {
            let mut row = [7; LANES];
            expand(mask, &mut row);
            assert_eq!(row, std::array::from_fn(|lane| (mask >> lane & 1) as u32));
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
        let row =
            |seed: u32| -> Row { std::array::from_fn(|lane| (lane as u32).wrapping_mul(seed).rotate_left(seed % 31)) };
        let (a, b, c) = (row(0x9e37_79b9), row(0x85eb_ca6b), row(0xc2b2_ae35));
        let mut out = [0; LANES];
        operation(f).words(&a, &b, &c, &mut out, ALL);
        let (mut low, mut high) = ([0; LANES], [0; LANES]);
        operation(f).doubles([[&a, &b], [&b, &c], [&c, &a]], [&mut low, &mut high], ALL);
        let less = comparison(|_, a, b| a < b).words(&a, &b, ALL);
        let mut sums = [0; LANES];
        let carry = bit_operation(|_, s| ((s[0] + s[1] + s[2]) & 0xffff_ffff, (s[0] + s[1] + s[2]) >> 32 != 0));
        let mut even = [0; LANES];
        expand(0x5555_5555_5555_5555, &mut even);
        let carries = carry.words(&a, &b, &even, &mut sums, ALL);
        let mut wide = [[0; LANES]; 2];
        let [first, second] = &mut wide;
        let wide_carries = carry.doubles([[&a, &ZERO_ROW], [&b, &ZERO_ROW], [&even, &ZERO_ROW]], [first, second], ALL);
        assert_eq!((wide_carries, wide), (carries, [sums, ZERO_ROW]));
        // Half a wave, and the rest as it was.
        let mut half = [3; LANES];
        operation(f).words(&a, &b, &c, &mut half, HALF_OF_THEM);
        assert_eq!((&half[..HALF], &half[HALF..]), (&out[..HALF], &[3; HALF][..]));
        let less_half = comparison(|_, a, b| a < b).words(&a, &b, HALF_OF_THEM);
        assert_eq!(less_half, less & 0xffff_ffff);
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
