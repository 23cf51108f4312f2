//! Device `printf`: a format and its arguments, as a kernel sends them, become text.

use crate::raw;

/// A conversion of a format: what C's `printf` calls flags, width, precision, length and conversion.
#[derive(Debug, PartialEq, Eq)]
struct Conversion<'f> {
    flags: &'f [u8],
    width: Option<Number>,
    precision: Option<Number>,
    length: &'f [u8],
    letter: u8,
}

/// A width or a precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Is(i32),
    /// `*`: the next argument.
    Argument,
}

/// Splits leading bytes off that are among `set`.
fn take<'f>(text: &mut &'f [u8], set: &[u8]) -> &'f [u8] {
    let length = text.iter().take_while(|byte| set.contains(byte)).count();
    let (taken, rest) = text.split_at(length);
    *text = rest;
    taken
}

fn number(text: &mut &[u8]) -> Option<Number> {
    if let Some(rest) = text.strip_prefix(b"*") {
        *text = rest;
        return Some(Number::Argument);
    }
    let digits = take(text, b"0123456789");
    std::str::from_utf8(digits).ok().filter(|digits| !digits.is_empty())?.parse().ok().map(Number::Is)
}

/// Reads a conversion after its `%`; `None` if it is none that C knows.
fn conversion<'f>(text: &mut &'f [u8]) -> Option<Conversion<'f>> {
    let flags = take(text, b"-+ #0");
    let width = number(text);
    let precision = text.strip_prefix(b".").map(|rest| {
        *text = rest;
        number(text).unwrap_or(Number::Is(0))
    });
    let length = take(text, b"hljztLq");
    let (&letter, rest) = text.split_first()?;
    *text = rest;
    b"diouxXcfFeEgGaAspn%".contains(&letter).then_some(Conversion { flags, width, precision, length, letter })
}

/// The arguments that are left.
struct Words<'w>(&'w [u64]);

impl Words<'_> {
    fn next(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A string, which takes as many words as it and its zero need.
    fn string(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some(word) = self.next() {
            let bytes = word.to_le_bytes();
            text.extend(bytes.iter().take_while(|byte| **byte != 0));
            if bytes.contains(&0) {
                break;
            }
        }
        text
    }
}

/// An integer argument as the 64 bits that its declared length makes of it.
fn integer(value: u64, length: &[u8], signed: bool) -> u64 {
    match (length, signed) {
        (b"hh", true) => value as i8 as u64,
        (b"hh", false) => value as u8 as u64,
        (b"h", true) => value as i16 as u64,
        (b"h", false) => value as u16 as u64,
        (b"", true) => value as i32 as u64,
        (b"", false) => value as u32 as u64,
        _ => value,
    }
}

/// Text of one conversion; `None` when its arguments are missing.
fn convert(conversion: &Conversion<'_>, words: &mut Words<'_>) -> Option<Vec<u8>> {
    let mut resolve = |number: Option<Number>| match number {
        None => Some(None),
        Some(Number::Is(value)) => Some(Some(value)),
        Some(Number::Argument) => words.next().map(|value| Some(value as i32)),
    };
    let (width, precision) = (resolve(conversion.width)?, resolve(conversion.precision)?);
    // A negative width is a flag and a width, a negative precision is none.
    let mut specification = b"%".to_vec();
    specification.extend(conversion.flags);
    if let Some(width) = width {
        specification.extend(width.to_string().bytes());
    }
    if let Some(precision) = precision.filter(|precision| *precision >= 0) {
        specification.extend(format!(".{precision}").bytes());
    }
    let letter = conversion.letter;
    let value = match letter {
        b'd' | b'i' | b'o' | b'u' | b'x' | b'X' => {
            specification.extend(b"ll");
            raw::Formatted::Integer(integer(words.next()?, conversion.length, matches!(letter, b'd' | b'i')))
        }
        b'c' => raw::Formatted::Integer(words.next()?),
        b'p' => raw::Formatted::Pointer(words.next()?),
        b's' => raw::Formatted::Text(words.string()),
        // `%n` would store into the kernel's memory.
        b'n' => return words.next().map(|_| Vec::new()),
        _ => raw::Formatted::Float(f64::from_bits(words.next()?)),
    };
    specification.push(letter);
    Some(raw::format(&specification, value))
}

/// Formats a message: the format, padded to whole words, and the arguments after it.
pub(crate) fn text(message: &[u64]) -> Vec<u8> {
    let mut words = Words(message);
    let format = words.string();
    let mut out = Vec::new();
    let mut rest = format.as_slice();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        out.extend(&rest[..at]);
        let start = &rest[at..];
        rest = &rest[at + 1..];
        match conversion(&mut rest) {
            Some(Conversion { letter: b'%', .. }) => out.push(b'%'),
            Some(conversion) => match convert(&conversion, &mut words) {
                Some(text) => out.extend(text),
                None => return out,
            },
            // Undefined in C: shown as it stands.
            None => {
                out.extend(start);
                return out;
            }
        }
    }
    out.extend(rest);
    out
}

/// Prints a message through the program's own C library, so that it comes in order with the program's output; gives
/// what `printf` returns.
pub(crate) fn print(message: &[u64], to_error: bool) -> u64 {
    let text = text(message);
    if raw::print(&text, to_error) { text.len() as u64 } else { -1_i32 as u32 as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message as a kernel lays it out.
    fn message(format: &str, arguments: &[Argument<'_>]) -> Vec<u64> {
        let padded = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            bytes.push(0);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            bytes.chunks(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).collect::<Vec<_>>()
        };
        let mut words = padded(format);
        for argument in arguments {
            match argument {
                Argument::Word(word) => words.push(*word),
                Argument::Float(value) => words.push(value.to_bits()),
                Argument::Text(text) => words.extend(padded(text)),
            }
        }
        words
    }

    enum Argument<'a> {
        Word(u64),
        Float(f64),
        Text(&'a str),
    }
    use Argument::{Float, Text, Word};

    #[test]
    fn formats_as_c_does() {
        for (format, arguments, expected) in [
            ("plain 100%%\n", &[] as &[Argument<'_>], "plain 100%\n"),
            ("%d %5d|%-5d|%05d", &[Word(-7_i32 as u32 as u64), Word(42), Word(42), Word(42)], "-7    42|42   |00042"),
            ("%u %x %#X %o", &[Word(u32::MAX.into()), Word(255), Word(255), Word(8)], "4294967295 ff 0XFF 10"),
            ("%lld %lu %hhd", &[Word(-1_i64 as u64), Word(u64::MAX), Word(0x1ff)], "-1 18446744073709551615 -1"),
            ("%f %.2e %g", &[Float(1.5), Float(12345.678), Float(0.1)], "1.500000 1.23e+04 0.1"),
            ("%*d|%-*d|%.*f", &[Word(4), Word(7), Word(4), Word(7), Word(1), Float(2.25)], "   7|7   |2.2"),
            ("%s and %s|%5.2s|%c", &[Text("eight..."), Text(""), Text("word"), Word(65)], "eight... and |   wo|A"),
            ("%p", &[Word(0x1234)], "0x1234"),
        ] {
            assert_eq!(String::from_utf8(text(&message(format, arguments))).unwrap(), expected, "{format}");
        }
    }

    #[test]
    fn bad_formats_do_no_harm() {
        assert_eq!(text(&message("a %d b %d", &[Word(1)])), b"a 1 b ");
        assert_eq!(text(&message("a %y", &[Word(1)])), b"a %y");
        assert_eq!(text(&message("a %", &[])), b"a %");
        assert_eq!(text(&message("%n%d", &[Word(1), Word(2)])), b"2");
        assert_eq!(text(&[u64::MAX; 3]), [0xff; 24]);
        assert_eq!(text(&[]), b"");
    }
}
