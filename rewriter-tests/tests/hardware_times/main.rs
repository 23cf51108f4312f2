//! Modelled times of whole kernels beside times that others measured on an MI300A: the numbers are in
//! `hardware-times.csv`, the comparison in `docs/results/hardware.md`.
//!
//! The programs are in a public repository, and none of their code is here. Whoever wants the comparison has a checkout
//! of it, which is compiled here:
//!
//! `BLESS=1 WAVETAP_PROGRAMS=FOLDER cargo test -p rewriter-tests --test hardware_times`
//!
//! where `FOLDER/mgpusim` is the repository. Each row runs until `WAVETAP_HARDWARE_SECONDS` (60) are over; what a row
//! gave is kept in `target/PROFILE/hardware-times` until the emulator or the program changes, so that a run that was
//! ended goes on where it was. `WAVETAP_HARDWARE_ONLY=vectoradd,fir` runs some programs only, and prints what it found
//! instead of the page. Progress is on standard error.
//!
//! Kernels of our own with the same algorithms and launch shapes, `own.hip`, are compared in every run of the tests.

mod own;
mod page;
mod plot;
mod programs;
mod rows;
mod statistics;

use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::{Failed, Trial};
use rewriter_tests::{Failure, place};

use programs::PROGRAMS;
use rows::{Measured, Modelled, Runner};

const FOLDER: &str = "WAVETAP_PROGRAMS";
const SECONDS: &str = "WAVETAP_HARDWARE_SECONDS";
const ONLY: &str = "WAVETAP_HARDWARE_ONLY";

/// A measured row, and what the model says of it.
pub struct Compared {
    measured: Measured,
    modelled: Modelled,
}

impl Compared {
    /// Modelled time in microseconds.
    fn time(&self) -> Option<f64> {
        match &self.modelled {
            Modelled::Run { launches, cycles, .. } => {
                Some(programs::of(&self.measured.program)?.time(*launches, *cycles, self.measured.copied_bytes))
            }
            Modelled::Limit | Modelled::Refused(_) => None,
        }
    }

    /// Modelled by measured average, minus 1.
    fn error(&self) -> Option<f64> {
        Some(self.time()? / self.measured.average - 1.0)
    }
}

fn main() -> ExitCode {
    rewriter_tests::run_trials(trials())
}

fn trials() -> Result<Vec<Trial>, Failure> {
    let mut trials = vec![
        Trial::test("the measured rows are sound", || sound().map_err(Failed::from)),
        Trial::test("our own kernels are near the measured times", || own::near().map_err(Failed::from)),
        Trial::test("a part of the workgroups gives the time of all", || own::extrapolated().map_err(Failed::from)),
        Trial::test("reports have the errors of the page", || page::is_quoted_right().map_err(Failed::from)),
        Trial::test("statistics", || statistics::checked().map_err(Failed::from)),
    ];
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    let checkout = folder.map(|folder| folder.join("mgpusim")).filter(|checkout| checkout.is_dir());
    if checkout.is_none() {
        eprintln!("hardware_times: {FOLDER} names no folder with the repository mgpusim, so no program is run");
    }
    let ignored = checkout.is_none();
    let compare = move || {
        let checkout = checkout.ok_or("the repository is not there")?;
        compare(checkout).map_err(Failed::from)
    };
    trials.push(Trial::test("modelled beside measured", compare).with_ignored_flag(ignored));
    Ok(trials)
}

fn sound() -> Result<(), Failure> {
    let rows = rows::measured()?;
    let mut seen = Vec::new();
    for row in &rows {
        let name = format!("{} {}", row.program, row.arguments);
        if programs::of(&row.program).is_none() {
            return Err(format!("{name}: no such program"));
        }
        if !(0.0 < row.least && row.least <= row.average && row.average <= row.most) {
            return Err(format!("{name}: the average is not between the least and the most"));
        }
        seen.push(name);
    }
    seen.sort();
    seen.dedup();
    if seen.len() != rows.len() {
        return Err("a row is there twice".into());
    }
    let without = PROGRAMS.iter().find(|program| !rows.iter().any(|row| row.program == program.name));
    without.map_or(Ok(()), |program| Err(format!("{} has no row", program.name)))
}

fn compare(checkout: PathBuf) -> Result<(), Failure> {
    let seconds = match std::env::var(SECONDS) {
        Ok(text) => text.parse().map_err(|_| format!("{SECONDS}={text}: a number of seconds was expected"))?,
        Err(_) => 60,
    };
    let only = std::env::var(ONLY).ok();
    let chosen = |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|each| each == name));
    let rows: Vec<Measured> = rows::measured()?.into_iter().filter(|row| chosen(&row.program)).collect();
    let all = Runner::new(checkout, seconds)?.run(rows)?;
    if only.is_some() {
        print!("{}", page::table(&all));
        return Ok(());
    }
    let (text, plot) = (page::page(&all, seconds), plot::plot(&all));
    let results = place::root().join("docs/results");
    if std::env::var_os("BLESS").is_some() {
        for (name, text) in [("hardware.md", text), ("hardware.svg", plot)] {
            std::fs::write(results.join(name), text).map_err(|e| format!("{name}: {e}"))?;
        }
    } else {
        print!("{text}");
    }
    Ok(())
}
