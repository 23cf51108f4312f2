//! What the paper says of each row, what was expected, and what was judged.

use std::path::PathBuf;

use rewriter_tests::{Failure, place};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::profile::Found;

/// Rows of the table, and those that were looked at once, when nothing was changed any more.
const ROWS: usize = 21;
const KEPT_ASIDE: usize = 10;

pub fn folder() -> PathBuf {
    place::root().join("hip-samples/leo")
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectations {
    schema: String,
    rows: Vec<Expectation>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectation {
    row: String,
    program: String,
    #[serde(default)]
    kept_aside: bool,
    cause: String,
    fix: String,
    speedup: f64,
    code: String,
    expected: Vec<Expected>,
}

/// What a report would have to say: what bounds the kernel, or its first finding.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    bound: Option<String>,
    kind: Option<String>,
    line: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Judgements {
    schema: String,
    rows: Vec<Judgement>,
}

/// What was found of a row, in words that do not change with a number, and what to say of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    row: String,
    /// The limit that the first line names.
    bound: String,
    /// The first finding; none if there was none.
    kind: Option<String>,
    /// A part of its text.
    #[serde(default)]
    text: String,
    /// A part of its source line.
    line: Option<String>,
    pub verdict: Verdict,
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    #[serde(rename = "yes")]
    Yes,
    Finer,
    #[serde(rename = "no")]
    No,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Yes => "yes",
            Verdict::Finer => "finer",
            Verdict::No => "no",
        }
    }
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    pub row: String,
    pub program: String,
    pub kept_aside: bool,
    pub cause: String,
    pub fix: String,
    /// What the paper's authors measured.
    pub speedup: f64,
    /// Whether our program's code has the cause.
    pub code: String,
    pub expected: Vec<Expected>,
    pub judged: Judgement,
}

impl Expected {
    pub fn is_met(&self, found: &Found) -> bool {
        let is_bound = self.bound.as_ref().is_none_or(|bound| *bound == found.bound);
        let is_kind = self.kind.is_none() || self.kind == found.kind;
        is_bound && is_kind && self.line.as_ref().is_none_or(|part| found.lines.iter().any(|line| line.contains(part)))
    }
}

impl Judgement {
    /// Whether it is about what was found.
    pub fn is_of(&self, found: &Found) -> bool {
        let first = found.texts.first().map_or("", String::as_str);
        self.bound == found.bound
            && self.kind == found.kind
            && first.contains(&self.text)
            && self.line.as_ref().is_none_or(|part| found.lines.iter().any(|line| line.contains(part)))
    }
}

fn read<T: DeserializeOwned>(name: &str) -> Result<T, Failure> {
    let file = folder().join(name);
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    serde_yaml::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))
}

/// All rows, in the order of the table.
pub fn rows() -> Result<Vec<Row>, Failure> {
    let expected: Expectations = read("expected.yaml")?;
    let mut judged: Judgements = read("judged.yaml")?;
    if expected.schema != "wavetap.leo-expectations/1" || judged.schema != "wavetap.leo-judgements/1" {
        return Err("another schema".into());
    }
    let mut rows = Vec::new();
    for row in expected.rows {
        let at = judged.rows.iter().position(|judgement| judgement.row == row.row);
        let judged = judged.rows.remove(at.ok_or_else(|| format!("{} was not judged", row.row))?);
        let is_empty = |expected: &Expected| expected.bound.is_none() && expected.kind.is_none();
        if row.expected.is_empty() || row.expected.iter().any(is_empty) || judged.why.is_empty() {
            return Err(format!("{}: nothing is expected, or no reason given", row.row));
        }
        rows.push(Row {
            row: row.row,
            program: row.program,
            kept_aside: row.kept_aside,
            cause: row.cause,
            fix: row.fix,
            speedup: row.speedup,
            code: row.code,
            expected: row.expected,
            judged,
        });
    }
    let aside = rows.iter().filter(|row| row.kept_aside).count();
    if rows.len() != ROWS || aside != KEPT_ASIDE || !judged.rows.is_empty() {
        return Err(format!("{} rows, {aside} kept aside; judged, too: {:?}", rows.len(), judged.rows));
    }
    Ok(rows)
}
