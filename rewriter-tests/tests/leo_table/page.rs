//! `docs/results/leo.md`.

use std::fmt::Write;

use rewriter_tests::Failure;
use rewriter_tests::random::Random;

use crate::profile::Profiled;
use crate::statistics::rank_correlation;
use crate::table::{Row, Verdict};

/// What stands before the tables, and after them what is known of the differences.
const ABOUT: &str = include_str!("about.txt");
const DIFFERENCES: &str = include_str!("differences.txt");

/// How often rows are drawn for the interval of a rank correlation, of which 95 % are inside.
const DRAWS: usize = 10_000;
const OUTSIDE: usize = DRAWS / 40;

/// Whether a row is in a group.
type Chosen = fn(&Row) -> bool;

/// The gain of the paper and of the model.
fn pairs<'r>(rows: impl Iterator<Item = (&'r Row, &'r Profiled)>) -> Option<Vec<(f64, f64)>> {
    rows.map(|(row, profiled)| Some((row.speedup, profiled.speedup()?))).collect()
}

/// Spearman's rank correlation of all gains.
pub fn correlation(rows: &[Row], profiled: &[Profiled]) -> Option<f64> {
    rank_correlation(&pairs(rows.iter().zip(profiled))?)
}

/// The interval that 95 % of the rank correlations of rows drawn with replacement are in.
fn interval(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut random = Random::new(1);
    let draw = |_| rank_correlation(&pairs.iter().map(|_| random.of(pairs)).collect::<Vec<_>>());
    // All rows of a draw may be the same one, which has no order.
    let mut found: Vec<f64> = (0..DRAWS).filter_map(draw).collect();
    found.sort_by(f64::total_cmp);
    Some((*found.get(OUTSIDE)?, *found.get(found.len().checked_sub(OUTSIDE + 1)?)?))
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

/// Numbers that were worked out by hand.
pub fn checked() -> Result<(), Failure> {
    let is = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
    let rising: Vec<(f64, f64)> = (0..8).map(|n| (f64::from(n), f64::from(n * n))).collect();
    let certain = interval(&rising).is_some_and(|(low, high)| is(low, 1.0) && is(high, 1.0));
    let mixed: Vec<(f64, f64)> = (0..8).map(|n| (f64::from(n), f64::from(n * 5 % 8))).collect();
    let middle = rank_correlation(&mixed);
    let wide = interval(&mixed).zip(middle).is_some_and(|((low, high), middle)| low < middle && middle < high);
    let mean = is(geometric_mean([1.0, 2.0, 4.0].into_iter()), 2.0);
    if certain && wide && mean { Ok(()) } else { Err("other statistics than worked out by hand".into()) }
}

/// The whole page.
pub fn page(rows: &[Row], profiled: &[Profiled]) -> Result<String, Failure> {
    let mut text = ABOUT.to_owned();
    text += "\n## All together\n\n| rows | number | yes | finer | no | rank correlation | 95 % interval | ";
    text += "geometric mean: paper | model |\n|---|---|---|---|---|---|---|---|---|\n";
    let groups: [(&str, Chosen); 3] =
        [("looked at before", |row| !row.kept_aside), ("kept aside", |row| row.kept_aside), ("all", |_| true)];
    for (name, chosen) in groups {
        let of: Vec<(&Row, &Profiled)> = rows.iter().zip(profiled).filter(|(row, _)| chosen(row)).collect();
        let count = |verdict| of.iter().filter(|(row, _)| row.judged.verdict == verdict).count();
        let (yes, finer, no) = (count(Verdict::Yes), count(Verdict::Finer), count(Verdict::No));
        let pairs = pairs(of.iter().copied()).ok_or("a version was not profiled")?;
        let (low, high) = interval(&pairs).ok_or("no interval")?;
        let rank = rank_correlation(&pairs).ok_or("no rank correlation")?;
        let number = of.len();
        let theirs = geometric_mean(pairs.iter().map(|pair| pair.0));
        let ours = geometric_mean(pairs.iter().map(|pair| pair.1));
        let _ = writeln!(
            text,
            "| {name} | {number} | {yes} | {finer} | {no} | {rank:.2} | {low:.2} to {high:.2} | {theirs:.2} | \
             {ours:.2} |"
        );
    }
    text += "\n## Rows\n\n| row | cause in the paper | our first line | our first finding | agrees | ";
    text += "gain: paper | model |\n|---|---|---|---|---|---|---|\n";
    for (row, profiled) in rows.iter().zip(profiled) {
        let (name, cause, theirs) = (&row.row, &row.cause, row.speedup);
        let found = &profiled.found;
        let (kernel, bound) = (&found.kernel, &found.bound_text);
        let finding = match (found.texts.first(), &found.place, found.lines.first()) {
            (Some(first), Some(place), Some(line)) => format!("{first}; {place}: `{}`", line.replace('|', "\\|")),
            (Some(first), ..) => first.clone(),
            (None, ..) => "none".to_owned(),
        };
        let (verdict, ours) = (row.judged.verdict.name(), profiled.speedup().ok_or("not profiled")?);
        let aside = if row.kept_aside { " *" } else { "" };
        let _ = writeln!(
            text,
            "| {name}{aside} | {cause} | `{kernel}`: {bound} | {finding} | {verdict} | {theirs:.2} | {ours:.2} |"
        );
    }
    text += "\n\\* kept aside\n\n## Reasons\n\n";
    for row in rows {
        let (name, fix, code, why) = (&row.row, &row.fix, row.code.trim(), row.judged.why.trim());
        let verdict = row.judged.verdict.name();
        let _ =
            writeln!(text, "- **{name}** ({verdict}). The paper's change: {fix}. The cause in our code: {code} {why}");
    }
    text += "\n";
    text += DIFFERENCES;
    Ok(text)
}
