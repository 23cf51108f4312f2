//! Numbers with their nouns, and places, as all sentences have them.

use wavetap_profile::map::Source;

/// A count with thin grouping: `1 234 567` reads, `1234567` does not; fewer than five digits stay together.
#[must_use]
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 wave`, `32 waves`.
#[must_use]
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// `divergence.hip:12`: the file's last component, because the directory is the same on every line.
#[must_use]
pub fn place(source: Option<&Source>) -> String {
    source
        .map(|source| format!("{}:{}", source.file.rsplit('/').next().unwrap_or(&source.file), source.line))
        .unwrap_or_default()
}

/// A number, with two digits where it is no whole one.
#[must_use]
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 { grouped(value as u64) } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(1234), "1234");
        assert_eq!(grouped(12345), "12,345");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
