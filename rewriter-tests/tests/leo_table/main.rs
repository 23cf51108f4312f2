//! Programs after table IV of LEO (arXiv 2604.20032), whose authors looked for the causes of stalls in 21 programs on
//! an MI300A, changed the programs and measured what it gained: what `wavetap profile` says of each, and how many
//! times as fast the change makes it in the timing model. `hip-samples/leo/expected.yaml` was written before any was
//! profiled. `judged.yaml` has what was found then, and a verdict on it: the test fails when something else is found.
//!
//! Quick: two programs, others each day. Full: all; with `BLESS=1` that writes `docs/results/leo.md`:
//!
//!     BLESS=1 WAVETAP_FULL_TESTS=1 cargo test -p rewriter-tests --test leo_table -- --nocapture
//!
//! `WAVETAP_LEO_ONLY=VOL3D,FIR` profiles some rows only and prints what was found. What a row gave is kept in
//! `target/PROFILE/leo-table` until the command, the emulator or the program changes. Needs clang 19.

mod page;
mod profile;
#[path = "../hardware_times/statistics.rs"]
mod statistics;
mod table;

use std::process::ExitCode;

use libtest_mimic::{Failed, Trial};
use rewriter_tests::{Failure, day, full, place};

use profile::{Profiled, Runner};
use table::{Row, Verdict};

const ONLY: &str = "WAVETAP_LEO_ONLY";
const PAGE: &str = "docs/results/leo.md";
/// Rows of a quick run.
const QUICK: usize = 2;
/// What is asked of all rows together: that so many agree, and how the gains are ordered.
const AGREE: usize = 15;
const RANK_CORRELATION: f64 = 0.6;

fn main() -> ExitCode {
    rewriter_tests::run_trials(Ok(vec![
        Trial::test("the files have all rows", || table::rows().map(drop).map_err(Failed::from)),
        Trial::test("statistics", || statistics::checked().and_then(|()| page::checked()).map_err(Failed::from)),
        Trial::test("what is found is what was judged", || judged().map_err(Failed::from)),
    ]))
}

fn judged() -> Result<(), Failure> {
    let rows = table::rows()?;
    let only = std::env::var(ONLY).ok();
    let chosen: Vec<&Row> = match &only {
        Some(only) => rows.iter().filter(|row| only.split(',').any(|name| name == row.row)).collect(),
        None if full() => rows.iter().collect(),
        None => (0..QUICK).map(|n| &rows[(day() as usize * QUICK + n) % rows.len()]).collect(),
    };
    // Gains are in the page alone, which the full run compares.
    let with_fixed = full() || only.is_some();
    let runner = Runner::new(&chosen)?;
    let profiled = runner.run(&chosen, with_fixed)?;
    let mut wrong = Vec::new();
    for (row, profiled) in chosen.iter().zip(&profiled) {
        println!("{}: {}", row.row, profiled.text());
        wrong.extend(differs(row, profiled).map(|why| format!("{}: {why}", row.row)));
    }
    if only.is_some() || !full() {
        return if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) };
    }
    let text = page::page(&rows, &profiled)?;
    let file = place::root().join(PAGE);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &text).map_err(|e| format!("{PAGE}: {e}"))?;
    } else if std::fs::read_to_string(&file).map_err(|e| format!("{PAGE}: {e}"))? != text {
        wrong.push(format!("{PAGE} is not what was found: write it with BLESS=1, and read what changed"));
    }
    let agree = rows.iter().filter(|row| row.judged.verdict != Verdict::No).count();
    let correlation = page::correlation(&rows, &profiled).ok_or("no rank correlation")?;
    if agree < AGREE || correlation < RANK_CORRELATION {
        wrong.push(format!("{agree} rows agree, and gains have a rank correlation of {correlation:.2}"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// How what was found differs from what was judged, or the verdict from what was expected.
fn differs(row: &Row, profiled: &Profiled) -> Option<Failure> {
    let found = &profiled.found;
    if found.texts.iter().any(|text| text.contains("called functions")) {
        return Some(format!("no kernel calls a function: {:?}", found.texts));
    }
    if !row.judged.is_of(found) {
        return Some(format!("{:?} was judged, not {found:?}", row.judged));
    }
    let agrees = row.expected.iter().any(|expected| expected.is_met(found));
    match (agrees, row.judged.verdict) {
        (true, Verdict::Yes) | (false, Verdict::Finer | Verdict::No) => None,
        _ => Some(format!(
            "the verdict is {:?}, what was expected {:?}, found {found:?}",
            row.judged.verdict, row.expected
        )),
    }
}
