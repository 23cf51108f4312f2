//! Double precision in the directed rounding modes, where the rounding error of the host's arithmetic may itself be too
//! small for a double.

use super::Round;

/// Bits that a significand is brought to, of which 53 are kept: what falls out at the bottom leaves a one there.
const WIDTH: u32 = 126;

/// A finite number that is not zero: `±significand * 2^exponent`, the significand having [`WIDTH`] bits.
#[derive(Clone, Copy)]
struct Number {
    negative: bool,
    significand: u128,
    exponent: i32,
}

impl Number {
    /// Of any significand but zero.
    fn new(negative: bool, significand: u128, exponent: i32) -> Number {
        let up = significand.leading_zeros() as i32 - (128 - WIDTH as i32);
        let significand = if up >= 0 { significand << up } else { shift_right(significand, -up) };
        Number { negative, significand, exponent: exponent - up }
    }

    /// The sum; none: it is zero.
    fn plus(self, other: Number) -> Option<Number> {
        let (big, small) = if (self.exponent, self.significand) >= (other.exponent, other.significand) {
            (self, other)
        } else {
            (other, self)
        };
        let low = shift_right(small.significand, big.exponent - small.exponent);
        let sum = if big.negative == small.negative { big.significand + low } else { big.significand - low };
        (sum != 0).then(|| Number::new(big.negative, sum, big.exponent))
    }

    /// The double in this mode.
    fn round(self, round: Round) -> f64 {
        /// The exponent of the last bit of the smallest numbers.
        const LEAST: i32 = -1074;
        let drop = (WIDTH as i32 - 53).max(LEAST - self.exponent);
        let (whole, rest) = if drop > WIDTH as i32 + 1 {
            (0, 1)
        } else {
            (self.significand >> drop, self.significand & ((1 << drop) - 1))
        };
        let half = if drop > WIDTH as i32 + 1 { 2 } else { 1 << (drop - 1) };
        let up = match round {
            Round::Nearest => rest > half || (rest == half && whole & 1 == 1),
            Round::Up => rest != 0 && !self.negative,
            Round::Down => rest != 0 && self.negative,
            Round::Zero => false,
        };
        // At most 2^53, so exact; a carry out of the bits is, too.
        let whole = (whole + u128::from(up)) as u64;
        let exponent = self.exponent + drop;
        let (whole, exponent) =
            if whole >> 53 != 0 && exponent != LEAST { (whole >> 1, exponent + 1) } else { (whole, exponent) };
        let magnitude = if whole == 0 {
            0.0
        } else if 63 - whole.leading_zeros() as i32 + exponent > 1023 {
            let largest = matches!((round, self.negative), (Round::Zero, _) | (Round::Up, true) | (Round::Down, false));
            if largest { f64::MAX } else { f64::INFINITY }
        } else if exponent == LEAST {
            // The bits of denormals and of the numbers above them are those of their multiple of the least.
            f64::from_bits(whole)
        } else {
            let up = whole.leading_zeros() - 11;
            let biased = (exponent - up as i32 + 1075) as u64;
            f64::from_bits(biased << 52 | (whole << up & ((1 << 52) - 1)))
        };
        if self.negative { -magnitude } else { magnitude }
    }
}

/// Shifts right; a one that falls out stays as the lowest bit.
fn shift_right(bits: u128, by: i32) -> u128 {
    match by {
        0 => bits,
        1..128 => bits >> by | u128::from(bits & ((1 << by) - 1) != 0),
        _ => u128::from(bits != 0),
    }
}

/// Significand and exponent of a finite number.
fn parts(value: f64) -> (u128, i32) {
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32);
    if exponent == 0 { (fraction.into(), -1074) } else { ((fraction | 1 << 52).into(), exponent - 1075) }
}

/// `(a * b + c) * 2^scale`, rounded once. Zeros, infinities and NaN are as in any mode but for the sign of an exact
/// zero sum.
pub(crate) fn fma(a: f64, b: f64, c: f64, scale: i32, round: Round) -> f64 {
    let negative = a.is_sign_negative() != b.is_sign_negative();
    if !a.is_finite() || !b.is_finite() || !c.is_finite() {
        return a.mul_add(b, c);
    }
    let exact_zero = if round == Round::Down { -0.0 } else { 0.0 };
    let ((m, i), (n, j), (k, l)) = (parts(a), parts(b), parts(c));
    let number = match (m * n, k) {
        (0, 0) if negative == c.is_sign_negative() => return c,
        (0, 0) => return exact_zero,
        (0, _) => Some(Number::new(c.is_sign_negative(), k, l)),
        (product, 0) => Some(Number::new(negative, product, i + j)),
        (product, _) => Number::new(negative, product, i + j).plus(Number::new(c.is_sign_negative(), k, l)),
    };
    number.map_or(exact_zero, |number| {
        Number { exponent: number.exponent + scale.clamp(-5000, 5000), ..number }.round(round)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host's arithmetic is the reference in the nearest mode.
    #[test]
    fn rounds_as_the_host() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = state ^ state >> 29;
            // Exponents that meet, and some near both ends.
            let exponent = [1023 + bits % 64, bits % 60, 2046 - bits % 60, 500 + bits % 40][(bits >> 60) as usize & 3];
            f64::from_bits(bits & !(0x7ff << 52) | exponent << 52)
        };
        for _ in 0..200_000 {
            let (a, b, c) = (next(), next(), next());
            let expected = a.mul_add(b, c);
            assert_eq!(fma(a, b, c, 0, Round::Nearest).to_bits(), expected.to_bits(), "{a:e} {b:e} {c:e}");
            let (low, high) = (fma(a, b, c, 0, Round::Down), fma(a, b, c, 0, Round::Up));
            assert!(low <= expected && expected <= high, "{a:e} {b:e} {c:e}");
            assert_eq!(
                fma(a, b, c, 0, Round::Zero).to_bits(),
                if expected.is_sign_negative() { high } else { low }.to_bits()
            );
        }
        assert_eq!(fma(1.5, 1.0, 0.0, -1074, Round::Nearest), f64::from_bits(2), "ties to even");
        assert_eq!(fma(1.0, 1.0, 0.0, -3000, Round::Up), f64::from_bits(1));
        assert_eq!(fma(-1.0, 1.0, 0.0, 3000, Round::Up), f64::MIN);
    }
}
