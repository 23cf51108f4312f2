//! In what two outputs of a program differ.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use wavetap::error::Result;
use wavetap::report::compare::{DifferentLine, OutputDifference};

use crate::files;

/// More of a line is not shown.
const SHOWN: usize = 200;
/// More of a line is not compared with the next: a file without line ends must not need its size in memory.
const LONGEST_LINE: u64 = 1 << 20;

/// Those of them that come before a number, and are no units.
const LABELS: &[&str] =
    &["time", "elapsed", "took", "duration", "bandwidth", "throughput", "latency", "speedup", "date"];
/// Words beside numbers that are times, or rates that come of times. Compared without regard to case.
const TIME_WORDS: &[&str] = &[
    "time",
    "elapsed",
    "took",
    "duration",
    "seconds",
    "second",
    "sec",
    "secs",
    "ms",
    "us",
    "ns",
    "msec",
    "usec",
    "nsec",
    "milliseconds",
    "microseconds",
    "nanoseconds",
    "minutes",
    "min",
    "s",
    "bandwidth",
    "throughput",
    "latency",
    "fps",
    "gflops",
    "tflops",
    "mflops",
    "flops",
    "flop",
    "hz",
    "mhz",
    "ghz",
    "gb",
    "mb",
    "kb",
    "gib",
    "mib",
    "speedup",
    "date",
];

/// Compares two outputs, line by line.
pub fn between(original: &Path, found: &Path) -> Result<OutputDifference> {
    let open =
        |path: &Path| File::open(path).map(BufReader::new).map_err(|error| files::io(path, "cannot read", &error));
    let (mut original, mut found) = (open(original)?, open(found)?);
    let mut first = None;
    let mut number = 0;
    loop {
        number += 1;
        let (mine, other) = (line(&mut original)?, line(&mut found)?);
        if mine.is_none() && other.is_none() {
            return Ok(first.map_or(OutputDifference::Same, OutputDifference::Times));
        }
        if mine == other {
            continue;
        }
        let times = mine.as_deref().zip(other.as_deref()).is_some_and(|(mine, other)| only_times(mine, other));
        let shown =
            DifferentLine { line: number, original: mine.as_deref().map(show), found: other.as_deref().map(show) };
        if !times {
            return Ok(OutputDifference::Different(shown));
        }
        first.get_or_insert(shown);
    }
}

fn line(from: &mut BufReader<File>) -> std::io::Result<Option<Vec<u8>>> {
    use std::io::Read;
    let mut line = Vec::new();
    let read = from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    Ok((read > 0).then_some(line))
}

/// A line as a terminal may be shown it.
fn show(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let clean = text.trim_end_matches(['\n', '\r']).chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(SHOWN).collect()
}

/// A part of a line.
#[derive(Debug, PartialEq, Eq)]
enum Part<'l> {
    Number(&'l str),
    Word(&'l str),
    Other(&'l str),
}

/// Whether two lines are the same but for numbers, and these are times: a word that goes with times is beside one, or
/// in the line before it.
fn only_times(a: &[u8], b: &[u8]) -> bool {
    let (Ok(a), Ok(b)) = (std::str::from_utf8(a), std::str::from_utf8(b)) else { return false };
    let blank = |part: &Part<'_>| matches!(part, Part::Other(text) if text.trim().is_empty());
    let [a, b] = [a, b].map(|line| parts(line).into_iter().filter(|part| !blank(part)).collect::<Vec<_>>());
    let same = |(a, b): (&Part<'_>, &Part<'_>)| a == b || matches!((a, b), (Part::Number(_), Part::Number(_)));
    if a.len() != b.len() || !a.iter().zip(&b).all(same) {
        return false;
    }
    let is_time =
        |part: &Part<'_>| matches!(part, Part::Word(word) if TIME_WORDS.contains(&word.to_ascii_lowercase().as_str()));
    let is_label =
        |part: &Part<'_>| matches!(part, Part::Word(word) if LABELS.contains(&word.to_ascii_lowercase().as_str()));
    let differs = (0..a.len()).filter(|at| a[*at] != b[*at]);
    differs
        .into_iter()
        .all(|at| a[..at].iter().any(is_time) || a.get(at + 1).is_some_and(|part| is_time(part) && !is_label(part)))
}

/// Takes a line apart.
fn parts(line: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let digit = |c: char| c.is_ascii_digit();
        let end = |inside: &dyn Fn(char) -> bool| rest.find(|c: char| !inside(c)).unwrap_or(rest.len());
        let (length, part): (usize, fn(&str) -> Part<'_>) = if digit(first) {
            let mut length = end(&|c| digit(c) || c == '.');
            // An exponent: 1.5e-03.
            let exponent = &rest[length..];
            if let Some(digits) = exponent.strip_prefix(['e', 'E']).map(|text| text.trim_start_matches(['+', '-']))
                && digits.starts_with(digit)
            {
                length = rest.len() - digits.trim_start_matches(digit).len();
            }
            (length, |text| Part::Number(text))
        } else if first.is_alphabetic() || first == 'µ' {
            (end(&|c| c.is_alphabetic() || c == 'µ'), |text| Part::Word(text))
        } else {
            (first.len_utf8(), |text| Part::Other(text))
        };
        parts.push(part(&rest[..length]));
        rest = &rest[length..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(a: &str, b: &str) -> OutputDifference {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = [("a", a), ("b", b)].map(|(name, text)| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        });
        between(&a, &b).unwrap()
    }

    #[test]
    fn times_are_told_from_other_numbers() {
        for (a, b) in [
            ("PASS\ntook 1.5 ms\n", "PASS\ntook 17.25 ms\n"),
            ("kernel: 3ms\n", "kernel: 12ms\n"),
            ("Elapsed: 0.001\n", "Elapsed: 1.2e-03\n"),
            ("copy   12.1 GB/s\n", "copy    9.7 GB/s\n"),
            ("Average time 3 us, bandwidth 4\n", "Average time 5 us, bandwidth 7\n"),
        ] {
            assert!(matches!(compare(a, b), OutputDifference::Times(_)), "{a}{b}{:?}", compare(a, b));
        }
        for (a, b) in [
            ("sum 3\n", "sum 4\n"),
            ("PASS\n", "FAIL\n"),
            ("PASS\n", "PASS\nmore\n"),
            ("sum 3 took 1 ms\n", "sum 4 took 1 ms\n"),
            ("took 1 ms\nsum 1\n", "took 2 ms\nsum 2\n"),
        ] {
            assert!(matches!(compare(a, b), OutputDifference::Different(_)), "{a}{b}{:?}", compare(a, b));
        }
        assert_eq!(compare("x\n", "x\n"), OutputDifference::Same);
    }

    #[test]
    fn the_first_line_that_differs_is_shown() {
        let OutputDifference::Different(line) = compare("a\nb\x1b[2J\nc", "a\nd\n") else { panic!() };
        assert_eq!((line.line, line.original.as_deref(), line.found.as_deref()), (2, Some("b [2J"), Some("d")));
        let OutputDifference::Different(line) = compare("a\n", "a\nd\n") else { panic!() };
        assert_eq!((line.line, line.original, line.found.as_deref()), (2, None, Some("d")));
    }
}
