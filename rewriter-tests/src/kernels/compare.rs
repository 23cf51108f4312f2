//! Whether the output of a kernel is what it must be: the same bits, or within a documented error.

use crate::Failure;

/// How outputs are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Every bit.
    Bits,
    /// Floating-point numbers of this many bits that are at most so many representable numbers apart.
    Ulp {
        /// Bits of a number.
        width: usize,
        /// How many.
        most: u64,
    },
    /// Floating-point numbers of 32 or 64 bits that differ by so much of 1 or of the expected magnitude, whichever is
    /// larger.
    Near {
        /// Bits of a number.
        width: usize,
        /// By how much.
        most: f64,
    },
}

impl Rule {
    /// Reads `bits`, `f32 ulp 2`, `f64 near 1e-9`.
    ///
    /// # Errors
    /// If it says something else.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || format!("`{text}` is no way to compare outputs");
        let words: Vec<&str> = text.split_whitespace().collect();
        let width = match words.first() {
            Some(&"bits") if words.len() == 1 => return Ok(Rule::Bits),
            Some(&"f16") => 16,
            Some(&"f32") => 32,
            Some(&"f64") => 64,
            _ => return Err(wrong()),
        };
        match words[1..] {
            ["ulp", most] => Ok(Rule::Ulp { width, most: most.parse().map_err(|_| wrong())? }),
            ["near", most] if width > 16 => Ok(Rule::Near { width, most: most.parse().map_err(|_| wrong())? }),
            _ => Err(wrong()),
        }
    }

    /// Compares.
    ///
    /// # Errors
    /// The first elements that differ too much, and how many do.
    pub fn check(self, found: &[u8], expected: &[u8]) -> Result<(), Failure> {
        if found.len() != expected.len() {
            return Err(format!("{} bytes of output, {} expected", found.len(), expected.len()));
        }
        let width = match self {
            Rule::Bits => 32,
            Rule::Ulp { width, .. } | Rule::Near { width, .. } => width,
        };
        let elements = |bytes: &[u8]| -> Vec<u64> {
            bytes
                .chunks(width / 8)
                .map(|chunk| chunk.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
                .collect()
        };
        let (found, expected) = (elements(found), elements(expected));
        let wrong: Vec<usize> = (0..found.len()).filter(|&n| !self.same(found[n], expected[n])).collect();
        if wrong.is_empty() {
            return Ok(());
        }
        let digits = width / 4;
        let shown: Vec<String> = wrong
            .iter()
            .take(6)
            .map(|&n| format!("[{n}] {:#0digits$x}, expected {:#0digits$x}", found[n], expected[n]))
            .collect();
        Err(format!("{} of {} elements differ ({self:?}): {}", wrong.len(), found.len(), shown.join("; ")))
    }

    fn same(self, found: u64, expected: u64) -> bool {
        match self {
            Rule::Bits => found == expected,
            Rule::Ulp { width, most } => {
                let (a, b) = (ordered(found, width), ordered(expected, width));
                match (a, b) {
                    (None, None) => true,
                    (Some(a), Some(b)) => a.abs_diff(b) <= most,
                    _ => false,
                }
            }
            Rule::Near { width, most } => {
                let number =
                    |bits: u64| if width == 32 { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) };
                let (a, b) = (number(found), number(expected));
                a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= most * b.abs().max(1.0)
            }
        }
    }
}

/// The position of a number among all of its format, equal zeros; none for what is no number.
fn ordered(bits: u64, width: usize) -> Option<i64> {
    let fraction = match width {
        16 => 10,
        32 => 23,
        _ => 52,
    };
    let sign = 1u64 << (width - 1);
    let magnitude = bits & (sign - 1);
    let infinity = sign - (1 << fraction);
    let position = magnitude as i64;
    (magnitude <= infinity).then_some(if bits & sign == 0 { position } else { -position })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_bits() {
        let rule = Rule::parse("bits").unwrap();
        assert!(rule.check(&[1, 2, 3, 4], &[1, 2, 3, 4]).is_ok());
        assert!(rule.check(&[1, 2, 3, 4], &[1, 2, 3, 5]).is_err());
        assert!(rule.check(&[1, 2, 3, 4], &[1, 2, 3, 4, 5]).is_err());
    }

    #[test]
    fn ulps_are_counted_across_zero() {
        let rule = Rule::parse("f32 ulp 2").unwrap();
        let check = |a: f32, b: f32| rule.check(&a.to_le_bytes(), &b.to_le_bytes()).is_ok();
        assert!(check(0.0, -0.0));
        assert!(check(f32::from_bits(1), -f32::from_bits(1)));
        assert!(!check(f32::from_bits(1), -f32::from_bits(2)));
        assert!(check(f32::NAN, -f32::NAN));
        assert!(!check(f32::NAN, 1.0));
        assert!(check(f32::MAX, f32::INFINITY));
        assert!(!check(1.0, 1.0 + 3.0 * f32::EPSILON));
    }

    #[test]
    fn near_is_absolute_below_one_and_relative_above() {
        let rule = Rule::parse("f64 near 1e-3").unwrap();
        let check = |a: f64, b: f64| rule.check(&a.to_le_bytes(), &b.to_le_bytes()).is_ok();
        assert!(check(0.0005, 0.0));
        assert!(check(1000.5, 1000.0));
        assert!(!check(1002.0, 1000.0));
        assert!(!check(f64::NAN, 0.0));
        assert!(Rule::parse("f16 near 1").is_err());
        assert!(Rule::parse("f32 ulp").is_err());
    }
}
