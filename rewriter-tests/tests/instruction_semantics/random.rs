//! Random numbers, and the bit patterns at which arithmetic goes wrong.

/// A generator with the choices that these tests make.
#[derive(Debug, Clone)]
pub struct Random(rewriter_tests::random::Random);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(rewriter_tests::random::Random::new(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.bits()
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A type of operand, for choosing bits of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bits {
    Word16,
    Word32,
    Word64,
    Half,
    /// bfloat16.
    Brain,
    Single,
    Double,
    /// Two of 16 bits.
    Pair16,
    PairHalf,
    PairSingle,
}

/// A floating format: bits of the fraction and of the exponent.
fn float(random: &mut Random, fraction: u32, exponent: u32) -> u64 {
    let width = fraction + exponent + 1;
    let (ones, top) = ((1_u64 << fraction) - 1, (1_u64 << exponent) - 1);
    let bias = top >> 1;
    let any = random.next() & (u64::MAX >> (64 - width));
    let sign = any & 1 << (width - 1);
    let near = [
        bias - 1,
        bias,
        bias + 1,
        bias + u64::from(fraction) - 1,
        bias + u64::from(fraction),
        bias + u64::from(fraction) + 1,
    ];
    match random.below(16) {
        0 => sign,
        1 => sign | top << fraction,
        // Quiet and signalling NaN.
        2 => sign | top << fraction | 1 << (fraction - 1) | any & ones,
        3 => sign | top << fraction | any & (ones >> 1) | 1,
        // Denormals and the smallest normal numbers.
        4 => sign | any & ones,
        5 => sign | [1, ones, ones + 1, ones + 2][random.below(4) as usize],
        // The largest.
        6 => sign | (top - 1) << fraction | [ones, any & ones][random.below(2) as usize],
        // Small integers and their halves: halfway cases of rounding to integers.
        7 | 8 => sign | random.pick(&near) << fraction | (any & ones) & !(ones >> 6),
        // A few high or low bits of the fraction: halfway cases of sums.
        9 => sign | (bias + random.below(8)) << fraction | random.pick(&[1, ones, ones >> 1, 1 << (fraction - 1), 0]),
        // Exponents that meet: sums that cancel.
        10 | 11 => sign | (bias + random.below(6)).saturating_sub(3) << fraction | any & ones,
        12 => sign | (bias + random.below(40)).saturating_sub(20).min(top - 1) << fraction | any & ones,
        _ => any,
    }
}

fn integer(random: &mut Random, width: u32) -> u64 {
    let ones = u64::MAX >> (64 - width);
    let top = 1 << (width - 1);
    let any = random.next();
    ones & match random.below(8) {
        0 => random.pick(&[0, 1, 2, ones, ones - 1, top, top - 1, top + 1, ones >> 1]),
        1 => any & 0x3f,
        2 => (any & 0xff).wrapping_neg(),
        3 => 1 << (any % u64::from(width)),
        4 => any & ones >> random.below(u64::from(width)),
        // Bytes and halves at their limits.
        5 => any & 0xff00_ff00_ff00_ff00 | (random.pick(&[0x00ff, 0x8000, 0x7f80, 0x0100]) * 0x0001_0001_0001_0001),
        _ => any,
    }
}

/// Bits for an operand: an edge of its type, or anything.
pub fn bits(random: &mut Random, ty: Bits) -> u64 {
    let twice = |random: &mut Random, ty, shift: u32| bits(random, ty) | bits(random, ty) << shift;
    match ty {
        Bits::Word16 => integer(random, 16),
        Bits::Word32 => integer(random, 32),
        Bits::Word64 => integer(random, 64),
        Bits::Half => float(random, 10, 5),
        Bits::Brain => float(random, 7, 8),
        Bits::Single => float(random, 23, 8),
        Bits::Double => float(random, 52, 11),
        Bits::Pair16 => twice(random, Bits::Word16, 16),
        Bits::PairHalf => twice(random, Bits::Half, 16),
        Bits::PairSingle => twice(random, Bits::Single, 32),
    }
}
