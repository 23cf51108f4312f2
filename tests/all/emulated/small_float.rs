//! Floats of few bits, for references: what a code stands for.

/// A float of few bits: bits of exponent and of fraction, bias, and whether the largest exponent is as in IEEE formats;
/// `nan` is the only NaN otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Float {
    pub exponent: u32,
    pub fraction: u32,
    pub bias: i32,
    pub ieee: bool,
    pub nan: Option<u32>,
}

/// A float by its parts.
pub const fn float(exponent: u32, fraction: u32, bias: i32, ieee: bool, nan: Option<u32>) -> Float {
    Float { exponent, fraction, bias, ieee, nan }
}

impl Float {
    /// Bits of a code.
    pub fn bits(self) -> usize {
        1 + (self.exponent + self.fraction) as usize
    }

    /// What a code stands for.
    pub fn value(self, code: u32) -> f64 {
        let size = self.exponent + self.fraction;
        let (sign, rest) = (if code >> size & 1 != 0 { -1.0 } else { 1.0 }, code & ((1 << size) - 1));
        let (exponent, fraction) = (rest >> self.fraction, rest & ((1 << self.fraction) - 1));
        if self.nan == Some(rest) {
            return f64::NAN;
        }
        if self.ieee && exponent == (1 << self.exponent) - 1 {
            return if fraction == 0 { sign * f64::INFINITY } else { f64::NAN };
        }
        let one = f64::from(1 << self.fraction);
        let (whole, power) =
            if exponent == 0 { (f64::from(fraction), 1) } else { (one + f64::from(fraction), exponent as i32) };
        sign * whole / one * 2f64.powi(power - self.bias)
    }
}
