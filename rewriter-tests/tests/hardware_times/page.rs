//! `docs/results/hardware.md`.

use std::collections::BTreeMap;
use std::fmt::Write;

use rewriter_tests::{Failure, place};
use wavetap::profile::accuracy::{MEASURED, MeasuredError, PAGE};

use crate::Compared;
use crate::programs::{self, COPY, COPY_RATE, FIRST, MEGAHERTZ, NEXT, PROGRAMS};
use crate::rows::Modelled;
use crate::statistics::{Errors, rank_correlation};

/// What stands before the tables, and after them what is known of the misses.
const ABOUT: &str = include_str!("about.txt");
const MISSES: &str = include_str!("misses.txt");
const LARGE: &str = include_str!("large.txt");

/// Rows of the first table.
const FINDING_OUT: &str = "programs for finding out";
const KEPT_ASIDE: &str = "programs kept aside";

/// What the second table calls a group of programs.
fn group_name(finding_out: bool) -> &'static str {
    if finding_out { "finding out" } else { "kept aside" }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn named(all: &[Compared], name: &str) -> Vec<f64> {
    errors(all, |row| row.measured.program == name)
}

fn errors(all: &[Compared], chosen: impl Fn(&Compared) -> bool) -> Vec<f64> {
    all.iter().filter(|row| chosen(row)).filter_map(Compared::error).collect()
}

fn is_finding_out(row: &Compared) -> bool {
    programs::of(&row.measured.program).is_some_and(|program| program.finding_out)
}

/// The whole page.
pub fn page(all: &[Compared], seconds: u64) -> String {
    let mut text = ABOUT
        .replace("{seconds}", &seconds.to_string())
        .replace("{first}", &FIRST.to_string())
        .replace("{next}", &NEXT.to_string())
        .replace("{copy}", &COPY.to_string())
        .replace("{rate}", &format!("{:.1}", COPY_RATE / 1e3))
        .replace("{clock}", &(MEGAHERTZ / 1e3).to_string());
    text += "\n## All together\n\n";
    text += "| rows | number | mean error | median error | within 25 % |\n|---|---|---|---|---|\n";
    let with = |row: &Compared| row.measured.mgpusim.is_some();
    let mut line = |what: &str, errors: &[f64]| {
        if let Some(found) = Errors::of(errors) {
            let (mean, median, near) = (percent(found.mean), percent(found.median), percent(found.near));
            let _ = writeln!(text, "| {what} | {} | {mean} | {median} | {near} |", found.rows);
        }
    };
    line(FINDING_OUT, &errors(all, is_finding_out));
    line(KEPT_ASIDE, &errors(all, |row| !is_finding_out(row)));
    line("all", &errors(all, |_| true));
    let to_least = |row: &Compared| Some(row.time()? / row.measured.least - 1.0);
    line("all, to the least measured time", &all.iter().filter_map(to_least).collect::<Vec<_>>());
    line("those that MGPUSim has, this model", &errors(all, with));
    let theirs = |row: &Compared| row.time().and(Some(row.measured.mgpusim? / row.measured.average - 1.0));
    line("those, MGPUSim", &all.iter().filter_map(theirs).collect::<Vec<_>>());
    text += "\n## Programs\n\n*Rank correlation*: Spearman's, of modelled and measured times over sizes. *Class*: what \
             a modelled time\nof a kernel like these is good for, three quarters of the rows being within it.\n\n";
    text +=
        "| program | | sizes modelled | of | mean error | median error | within 25 % | rank correlation | class |\n";
    text += "|---|---|---|---|---|---|---|---|---|\n";
    for program in PROGRAMS {
        let of = all.iter().filter(|row| row.measured.program == program.name);
        let pairs: Vec<(f64, f64)> = of.clone().filter_map(|row| Some((row.measured.average, row.time()?))).collect();
        let group = group_name(program.finding_out);
        let (name, number) = (program.name, of.count());
        let found = named(all, program.name);
        let Some(errors) = Errors::of(&found) else {
            let _ = writeln!(text, "| {name} | {group} | 0 | {number} | | | | | |");
            continue;
        };
        let (mean, median, near) = (percent(errors.mean), percent(errors.median), percent(errors.near));
        let rank = rank_correlation(&pairs).map(|rank| format!("{rank:.2}")).unwrap_or_default();
        let class = class(&found);
        let rows = errors.rows;
        let _ = writeln!(
            text,
            "| {name} | {group} | {rows} | {number} | {mean} | {median} | {near} | {rank} | modelled, ±{class} % |"
        );
    }
    text += "\n![Modelled over measured times](hardware.svg)\n\n";
    text += MISSES;
    text += LARGE;
    text += "\n## Rows\n\nTimes in microseconds; *ratio*: modelled by measured average; *±*: worked out from a part \
             of the\nworkgroups, and how far that may be off the model of all.\n\n";
    text += &table(all);
    text
}

/// Checks what reports say of errors against the page.
pub fn is_quoted_right() -> Result<(), Failure> {
    let MeasuredError { board, adjusted, kept_aside, .. } = MEASURED;
    let file = place::root().join(PAGE);
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    for (group, row, quoted) in [(true, FINDING_OUT, adjusted), (false, KEPT_ASIDE, kept_aside)] {
        let cells = text.lines().find_map(|line| line.strip_prefix(&format!("| {row} | ")));
        let mean = cells.and_then(|cells| cells.split(" | ").nth(1));
        let modelled = PROGRAMS.iter().filter(|program| program.finding_out == group).filter(|program| {
            let row = format!("| {} | {} | ", program.name, group_name(group));
            text.lines().any(|line| line.starts_with(&row) && !line.starts_with(&format!("{row}0 ")))
        });
        let (found, programs) = (mean.unwrap_or("no row"), modelled.count());
        if found != format!("{} %", quoted.mean_percent) || programs != quoted.programs as usize {
            return Err(format!("{row}: the page has {found} of {programs} programs, reports have {quoted:?}"));
        }
    }
    let measured = board.trim_start_matches("Instinct ");
    let title = format!("# The timing model beside kernels measured on an {measured}");
    if text.starts_with(&title) { Ok(()) } else { Err(format!("{PAGE} is not about an {measured}")) }
}

/// The error that three quarters of the rows are within, in steps of five percent.
fn class(errors: &[f64]) -> u64 {
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let at = (sizes.len() * 3).div_ceil(4).saturating_sub(1);
    (sizes.get(at).map_or(0.0, |size| (size * 20.0).ceil() * 5.0) as u64).max(5)
}

/// Every row that was modelled, and how many were not.
pub fn table(all: &[Compared]) -> String {
    let mut text = String::from(
        "| program | arguments | calls | measured, least | average | modelled | ratio | MGPUSim |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let mut left = Vec::new();
    for program in PROGRAMS {
        let rows: Vec<&Compared> = all.iter().filter(|row| row.measured.program == program.name).collect();
        for row in &rows {
            let measured = &row.measured;
            let Some(time) = row.time() else { continue };
            let (name, arguments, calls) = (&measured.program, &measured.arguments, measured.iterations);
            let (least, average, ratio) = (measured.least, measured.average, time / measured.average);
            let within = match &row.modelled {
                Modelled::Run { extrapolated: Some(permille), .. } => {
                    format!(" (±{:.1} %)", f64::from(*permille) / 10.0)
                }
                _ => String::new(),
            };
            let theirs = measured.mgpusim.map(|time| format!("{time:.1}")).unwrap_or_default();
            let _ = writeln!(
                text,
                "| {name} | `{arguments}` | {calls} | {least:.1} | {average:.1} | {time:.1}{within} | {ratio:.2} | \
                 {theirs} |"
            );
        }
        let limit = rows.iter().filter(|row| matches!(row.modelled, Modelled::Limit)).count();
        if limit > 0 {
            left.push(format!("{} ({limit})", program.name));
        }
    }
    if !left.is_empty() {
        let _ = writeln!(text, "\nNot done within the time limit:\n{}.", left.join(",\n"));
    }
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for row in all {
        if let Modelled::Refused(why) = &row.modelled {
            let why = why.split(" at 0x").next().unwrap_or_default();
            *refused.entry(format!("{}: {why}", row.measured.program)).or_default() += 1;
        }
    }
    let refused: Vec<String> = refused.iter().map(|(why, count)| format!("{why} ({count} rows)")).collect();
    if !refused.is_empty() {
        let _ = writeln!(text, "\nNot run:\n\n- {}", refused.join("\n- "));
    }
    text
}
