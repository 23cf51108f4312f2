//! Wait counters: from `waits.yaml` to Rust source.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::vocabulary::Vocabulary;
use super::{Failure, read};

/// A generation.
#[derive(Deserialize)]
struct Row {
    name: String,
    flat_in_order: bool,
    halves_apart: bool,
    instructions: Vec<Instruction>,
}

#[derive(Deserialize)]
struct Instruction {
    name: String,
    #[serde(flatten)]
    fields: BTreeMap<String, String>,
}

/// Rust source of the arrays `WAIT_FORMATS` and, by target, `WAIT_FORMAT_OF`; `targets` are their names and those of
/// their rows.
pub(super) fn source(tables: &Path, vocabulary: &Vocabulary, targets: &[(&str, &str)]) -> Result<String, Failure> {
    let rows: Vec<Row> = read(&tables.join("waits.yaml"))?;
    let mut out = format!("static WAIT_FORMATS: [WaitFormat; {}] = [\n", rows.len());
    for row in &rows {
        let (flat, halves) = (row.flat_in_order, row.halves_apart);
        writeln!(
            out,
            "    WaitFormat {{\n        flat_in_order: {flat},\n        halves_apart: {halves},\n        instructions: \
                &["
        )?;
        for instruction in &row.instructions {
            let mut fields = String::new();
            for (counter, bits) in &instruction.fields {
                let counter = vocabulary
                    .number("Counters", counter)
                    .map_err(|error| format!("waits.yaml: {}: {error}", instruction.name))?;
                let runs: Result<Vec<String>, Failure> = bits.split(',').map(run).collect();
                write!(fields, "WaitField {{ counter: Counter::ALL[{counter}], runs: &[{}] }}, ", runs?.join(", "))?;
            }
            writeln!(
                out,
                "            (Opcode::{}, &[{}]),",
                instruction.name.to_uppercase(),
                fields.trim_end_matches(", ")
            )?;
        }
        writeln!(out, "        ],\n    }},")?;
    }
    writeln!(out, "];\nstatic WAIT_FORMAT_OF: [u8; {}] = [", targets.len())?;
    for (target, waits) in targets {
        let format = rows.iter().position(|row| row.name == *waits);
        let format =
            format.ok_or_else(|| format!("targets.yaml: {target} waits like {waits}, which waits.yaml has not"))?;
        writeln!(out, "    {format}, // {target}")?;
    }
    if let Some(unused) = rows.iter().find(|row| targets.iter().all(|(_, waits)| row.name != *waits)) {
        return Err(format!("waits.yaml: no target of targets.yaml waits like {}", unused.name).into());
    }
    out.push_str("];\n");
    Ok(out)
}

/// `'15:14@4'`: low bit, width, and the bit of the value at which it starts.
fn run(run: &str) -> Result<String, Failure> {
    let (place, shift) = run.split_once('@').unwrap_or((run, "0"));
    let (high, low) = place.split_once(':').unwrap_or((place, place));
    let (high, low, shift): (u8, u8, u8) = (high.parse()?, low.parse()?, shift.parse()?);
    Ok(format!("({low}, {}, {shift})", high - low + 1))
}
