//! Numbers as text, appended to a string: what most operands are made of, in a small part of the time that the standard
//! library's formatting takes, which has options to look at.

/// Appends a number in decimal.
pub(super) fn push_decimal(out: &mut String, value: u64) {
    if value >= 10 {
        push_decimal(out, value / 10);
    }
    out.push(char::from(b'0' + (value % 10) as u8));
}

/// Appends a number with its sign in decimal.
pub(super) fn push_signed(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    push_decimal(out, value.unsigned_abs());
}

/// Appends a number in hexadecimal, with `0x`.
pub(super) fn push_hexadecimal(out: &mut String, value: u64) {
    out.push_str("0x");
    let digits = value.checked_ilog2().unwrap_or(0) / 4 + 1;
    for digit in (0..digits).rev() {
        out.push(char::from(b"0123456789abcdef"[(value >> (4 * digit) & 15) as usize]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_standard_library_writes_them() {
        let edges = (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, (1 << bit) + 1]);
        for value in (0..2000).chain((0..20).map(|digits| 10u64.pow(digits.min(19)))).chain(edges).chain([u64::MAX]) {
            let (mut decimal, mut signed, mut hexadecimal) = (String::new(), String::new(), String::new());
            push_decimal(&mut decimal, value);
            push_signed(&mut signed, value as i64);
            push_hexadecimal(&mut hexadecimal, value);
            assert_eq!(
                (decimal, signed, hexadecimal),
                (value.to_string(), (value as i64).to_string(), format!("{value:#x}"))
            );
        }
    }
}
