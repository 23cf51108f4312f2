//! Conditions of `--fail-if`: a metric, `>` or `<`, and a number: `divergence>+5%`.

use super::fields::Fields;
use super::{KernelDiff, KernelNumbers};
use crate::words::number;

/// A number of a kernel that conditions are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Share of executed branches in which lanes did not agree, in percent.
    Divergence,
    /// How many those are.
    Divergences,
    /// Executions of instructions that narrow EXEC.
    Branches,
    /// Executions of basic blocks.
    Blocks,
    /// Active lanes of a block on average.
    Lanes,
    /// Wave-instructions.
    Instructions,
    /// Waves.
    Waves,
    /// Dispatches.
    Dispatches,
    /// Bytes that accesses of global memory requested.
    GlobalBytes,
}

impl Metric {
    /// All of them.
    pub const ALL: [Metric; 9] = [
        Metric::Divergence,
        Metric::Divergences,
        Metric::Branches,
        Metric::Blocks,
        Metric::Lanes,
        Metric::Instructions,
        Metric::Waves,
        Metric::Dispatches,
        Metric::GlobalBytes,
    ];

    /// Its name in conditions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Metric::Divergence => "divergence",
            Metric::Divergences => "divergences",
            Metric::Branches => "branches",
            Metric::Blocks => "blocks",
            Metric::Lanes => "lanes",
            Metric::Instructions => "instructions",
            Metric::Waves => "waves",
            Metric::Dispatches => "dispatches",
            Metric::GlobalBytes => "global_bytes",
        }
    }

    /// Its value; none if it was not counted.
    #[must_use]
    pub fn of(self, numbers: &KernelNumbers) -> Option<f64> {
        match self {
            Metric::Divergence => numbers.divergence,
            Metric::Divergences => numbers.divergences.map(|count| count as f64),
            Metric::Branches => numbers.branches.map(|count| count as f64),
            Metric::Blocks => numbers.blocks.map(|count| count as f64),
            Metric::Lanes => numbers.lanes,
            Metric::Instructions => numbers.instructions.map(|count| count as f64),
            Metric::Waves => Some(numbers.waves as f64),
            Metric::Dispatches => Some(numbers.dispatches as f64),
            Metric::GlobalBytes => numbers.global_bytes.map(|bytes| bytes as f64),
        }
    }
}

/// What a condition compares with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// The new value.
    New,
    /// The new value less the old one.
    Change,
    /// The change in percent of the old value.
    Percent,
}

/// The number that a condition is about.
#[derive(Debug, Clone, PartialEq)]
enum Subject {
    Metric(Metric),
    /// A field of a schema: `PROBE/KIND/FIELD`.
    Field(String),
}

impl Subject {
    /// What is named so; a field has two slashes. Whether a profile has it is known later.
    fn named(name: &str) -> Option<Subject> {
        let metric = Metric::ALL.into_iter().find(|metric| metric.name() == name);
        let is_field = || name.splitn(3, '/').filter(|part| !part.is_empty()).count() == 3;
        metric.map(Subject::Metric).or_else(|| is_field().then(|| Subject::Field(name.to_owned())))
    }

    fn of(&self, numbers: &KernelNumbers, fields: &Fields) -> Option<f64> {
        match self {
            Subject::Metric(metric) => metric.of(numbers),
            Subject::Field(name) => fields.get(name).map(|value| *value as f64),
        }
    }
}

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    subject: Subject,
    more: bool,
    compared: Compared,
    limit: f64,
}

impl Condition {
    /// Reads `METRIC>NUMBER` or `METRIC<NUMBER`, where the metric may be a field of a probe's schema. With a sign the
    /// number is a change, with a sign and `%` a change in percent of the old value.
    ///
    /// # Errors
    /// What is wrong, at which character, and which metrics there are.
    pub fn parse(text: &str) -> Result<Condition, String> {
        let names = || Metric::ALL.map(Metric::name).join(", ");
        let wrong = |at: usize, expected: &str| {
            let column = text[..at].chars().count() + 1;
            let metrics = format!("{}, and PROBE/KIND/FIELD of any probe", names());
            format!("condition {text:?}, character {column}: expected {expected}; metrics are {metrics}")
        };
        let at = text.find(['>', '<']).ok_or_else(|| wrong(text.len(), "> or <"))?;
        let subject = Subject::named(text[..at].trim()).ok_or_else(|| wrong(0, "a metric"))?;
        let start = at + 1 + text[at + 1..].len() - text[at + 1..].trim_start().len();
        let number = text[start..].trim_end();
        let signed = number.starts_with(['+', '-']);
        let (digits, compared) = match number.strip_suffix('%') {
            Some(_) if !signed => return Err(wrong(start, "+ or - before a change in percent")),
            Some(digits) => (digits, Compared::Percent),
            None if signed => (number, Compared::Change),
            None => (number, Compared::New),
        };
        let limit: Option<f64> = digits.parse().ok().filter(|limit: &f64| limit.is_finite());
        let limit = limit.ok_or_else(|| wrong(start, "a number"))?;
        Ok(Condition { text: text.to_owned(), subject, more: text[at..].starts_with('>'), compared, limit })
    }

    /// Where it holds, and with which values; also where that cannot be said, because the metric was counted on one
    /// side only, or nowhere. `fields` are those of the kernels, old and new.
    pub(super) fn holds(&self, kernels: &[KernelDiff], fields: &[(Fields, Fields)]) -> Vec<String> {
        let value = |(kernel, (old, new)): (&KernelDiff, &(Fields, Fields))| {
            (self.subject.of(&kernel.old, old), self.subject.of(&kernel.new, new))
        };
        let values: Vec<(Option<f64>, Option<f64>)> = kernels.iter().zip(fields).map(value).collect();
        let mut failed: Vec<String> = Vec::new();
        for (kernel, values) in kernels.iter().zip(&values) {
            let name = &kernel.demangled;
            match *values {
                (Some(old), Some(new)) if self.compare(old, new) => {
                    failed.push(format!("{}: {name}: {} → {}", self.text, exact(old), exact(new)));
                }
                (Some(_), Some(_)) | (None, None) => {}
                (old, _) => {
                    let side = if old.is_some() { "new" } else { "old" };
                    failed.push(format!("{}: {name}: not counted in the {side} profile", self.text));
                }
            }
        }
        if values.iter().all(|values| *values == (None, None)) {
            failed.push(format!("{}: no kernel of both profiles has this number", self.text));
        }
        failed
    }

    fn compare(&self, old: f64, new: f64) -> bool {
        let change = new - old;
        let value = match self.compared {
            Compared::New => new,
            Compared::Change => change,
            // From nothing to something is more than any share.
            Compared::Percent if old == 0.0 && change == 0.0 => 0.0,
            Compared::Percent if old == 0.0 => f64::INFINITY,
            Compared::Percent => 100.0 * change / old,
        };
        if self.more { value > self.limit } else { value < self.limit }
    }
}

/// A number with three digits where it is no whole one: a limit may be small.
fn exact(value: f64) -> String {
    if value.fract() == 0.0 { number(value) } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, at, what) in [
            ("divergence", 11, "> or <"),
            ("speed>+5%", 1, "a metric"),
            ("tiles/load>+5%", 1, "a metric"),
            ("tiles//visits>+5%", 1, "a metric"),
            ("divergence>5%", 12, "+ or -"),
            ("divergence> x", 13, "a number"),
            ("lanes<", 7, "a number"),
            ("lanes<nan", 7, "a number"),
            ("", 1, "> or <"),
        ] {
            let error = Condition::parse(text).unwrap_err();
            assert!(error.contains(&format!("character {at}: expected {what}")), "{text}: {error}");
            assert!(error.contains("divergence, divergences, branches"), "{error}");
        }
    }
}
