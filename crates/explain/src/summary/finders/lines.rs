//! What instructions cost, added up by source line.

use std::collections::BTreeMap;

use crate::summary::data::{Finding, FindingKind};
use crate::{Basis, words::place};
use wavetap_profile::map::Source;

/// A line that has this part of what all have is named alone, others after it.
const MAIN: f64 = 0.5;
/// Others are counted if they have this part of a kernel.
const OTHERS: f64 = 0.05;
/// A line with less than this part of a kernel is not counted among several.
const SMALL: f64 = 0.01;
/// Lines that are named of several.
const NAMED: usize = 4;

/// Parts of a kernel by source line, the largest first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lines {
    lines: Vec<(Option<Source>, f64)>,
}

impl Lines {
    /// Adds up what instructions have of a kernel.
    pub(super) fn add_up(parts: impl IntoIterator<Item = (Option<Source>, f64)>) -> Lines {
        let mut sums: BTreeMap<Option<Source>, f64> = BTreeMap::new();
        for (source, part) in parts {
            *sums.entry(source).or_default() += part;
        }
        let mut lines: Vec<(Option<Source>, f64)> = sums.into_iter().collect();
        lines.sort_by(|a, b| b.1.total_cmp(&a.1));
        Lines { lines }
    }

    /// What all lines have.
    pub(super) fn sum(&self) -> f64 {
        self.lines.iter().map(|(_, part)| part).sum()
    }

    /// The line with the largest part, if it has most of what all have: it is the place of a finding then.
    pub(super) fn main(&self) -> Option<(Option<&Source>, f64)> {
        let (source, part) = self.lines.first()?;
        (*part >= MAIN * self.sum()).then_some((source.as_ref(), *part))
    }

    /// The line with the largest part.
    pub(super) fn first(&self) -> Option<&Source> {
        self.lines.first()?.0.as_ref()
    }

    /// The lines that matter.
    fn large(&self) -> &[(Option<Source>, f64)] {
        let end = self.lines.iter().position(|(_, part)| *part < SMALL).unwrap_or(self.lines.len());
        &self.lines[..end.max(1).min(self.lines.len())]
    }

    /// `; 56 % with 3 more lines`, `; 83 % with main.cu:35`, after what the main line has; nothing where the others
    /// have little.
    pub(super) fn with_others(&self) -> String {
        let others = self.sum() - self.lines.first().map_or(0.0, |(_, part)| *part);
        let count = self.large().len().saturating_sub(1);
        if others < OTHERS || count == 0 {
            return String::new();
        }
        let with = match &self.large()[1..] {
            [(Some(source), _)] => place(Some(source)),
            [_] => "1 more line".to_owned(),
            _ => format!("{count} more lines"),
        };
        format!("; {:.0} % with {with}", 100.0 * self.sum())
    }

    /// ` at 4 lines (main.cu:77, 86, 103, 120)`; nothing where the main line is the place.
    pub(super) fn places(&self) -> String {
        if self.main().is_some() {
            return String::new();
        }
        let large = self.large();
        let known: Vec<&Source> = large.iter().filter_map(|(source, _)| source.as_ref()).take(NAMED).collect();
        let mut names: Vec<String> = Vec::new();
        for (index, source) in known.iter().enumerate() {
            let is_same = index > 0 && known[index - 1].file == source.file;
            names.push(if is_same { source.line.to_string() } else { place(Some(source)) });
        }
        if names.is_empty() {
            return String::new();
        }
        let more = if large.len() > names.len() { ", …" } else { "" };
        format!(" at {} lines ({}{more})", large.len(), names.join(", "))
    }

    /// A finding at the main line, or at several.
    pub(super) fn finding(&self, kind: FindingKind, basis: Basis, text: String, help: &str, weight: f64) -> Finding {
        let several = self.main().is_none();
        let also = self.large().iter().skip(1).filter_map(|(source, _)| source.clone());
        Finding {
            source: self.first().cloned(),
            also: also.filter(|_| several).collect(),
            ..Finding::new(kind, basis, text, help, weight)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: u32, part: f64) -> (Option<Source>, f64) {
        (Some(Source { file: "src/main.cu".to_owned(), line }), part)
    }

    #[test]
    fn small_ones_are_added_up() {
        let four = Lines::add_up([line(77, 0.1), line(86, 0.13), line(103, 0.13), line(120, 0.12), line(77, 0.08)]);
        assert!(four.main().is_none());
        assert_eq!(four.places(), " at 4 lines (main.cu:77, 86, 103, 120)");
        assert!((four.sum() - 0.56).abs() < 1e-9);
        let finding = four.finding(FindingKind::Wait, Basis::Predicted, String::new(), "", 0.5);
        assert_eq!((finding.source, finding.also.len()), (line(77, 0.0).0, 3));
    }

    #[test]
    fn a_line_with_most_is_the_place() {
        let one = Lines::add_up([line(16, 0.46), line(17, 0.02), line(18, 0.04), line(19, 0.001)]);
        assert_eq!(one.main().map(|(_, part)| part), Some(0.46));
        assert_eq!((one.places(), one.with_others()), (String::new(), "; 52 % with 2 more lines".to_owned()));
        let two = Lines::add_up([line(16, 0.46), line(35, 0.32)]);
        assert_eq!(two.with_others(), "; 78 % with main.cu:35");
        let alone = Lines::add_up([line(16, 0.46), line(17, 0.02)]);
        assert_eq!(alone.with_others(), "");
        let finding = alone.finding(FindingKind::Wait, Basis::Predicted, String::new(), "", 0.5);
        assert!(finding.also.is_empty());
    }

    #[test]
    fn lines_that_are_not_known_are_counted() {
        let lines = Lines::add_up([(None, 0.2), line(3, 0.1), line(4, 0.15), line(5, 0.001)]);
        assert_eq!(lines.places(), " at 3 lines (main.cu:4, 3, …)");
        assert_eq!(Lines::add_up([]).places(), "");
        assert_eq!(Lines::add_up([(None, 0.4)]).places(), "");
    }
}
