//! Text of every command: no line is wider than it may be, nothing is shortened with `--wide`, and colours take no
//! columns.

use std::ffi::OsString;
use std::path::Path;

use rewriter_tests::command::{self, Finished};
use rewriter_tests::{Failure, place};

/// Columns where stdout is no terminal.
const PIPE: usize = 120;

/// Samples of which every command prints something. `small` ones run in each mode of `compare`.
const SAMPLES: [(&str, bool); 6] = [
    ("bin/divergence", true),
    ("bin/spmv", true),
    ("nine/bin/hotspot", true),
    ("memory/bin/patterns", true),
    ("latency/bin/chase", false),
    ("steps/bin/product_launches", false),
];

/// Files that one sample's commands write and read.
const OTHERS: &[&[&str]] = &[
    &["inspect", "{app}"],
    &["inspect", "{app}", "--target", "gfx90a", "--workgroup", "256"],
    &["disasm", "{app}", "--target", "gfx90a"],
    &["disasm", "{app}", "--target", "gfx90a", "--bytes", "--source"],
    &["memory", "{app}", "--target", "gfx90a"],
    &["slice", "{app}", "--target", "gfx90a"],
    &["profile", "--target", "gfx90a", "--probe", "branches,blocks", "-o", "counts", "--", "{app}"],
    &["profile", "--target", "gfx90a", "--probe", "none", "--", "{app}"],
    &["run", "--target", "gfx90a", "--timing", "--samples", "samples", "--", "{app}"],
    &["report", "counts", "--binary", "{app}"],
    &["report", "counts", "--details", "summary"],
    &["mix", "{app}", "--counters", "counts"],
    &["roofline", "{app}", "--counters", "counts"],
    &["slice", "{app}", "--counters", "counts"],
    &["slice", "{app}", "--samples", "samples", "--target", "gfx90a"],
    &["memory", "{app}", "--counters", "counts"],
    &["disasm", "{app}", "--target", "gfx90a", "--counters", "counts"],
    &["rewrite", "{app}", "-o", "counting", "--target", "gfx90a"],
    &["verify", "{app}", "counting"],
    &["profile", "--target", "gfx90a", "--probe", "memory", "-o", "records", "--", "{app}"],
    &["memory", "{app}", "--counters", "records", "--counters", "counts"],
    &["diff", "counts", "counts"],
];

/// Those that run the sample several times.
const SMALL: &[&[&str]] = &[
    &["profile", "--target", "gfx90a", "--timing", "--", "{app}"],
    &["profile", "--target", "gfx90a", "--probe", "time", "--", "{app}"],
    &["profile", "--target", "gfx90a", "--probe", "memory-latency", "--", "{app}"],
    &["profile", "--target", "gfx90a", "-o", "branches", "--", "{app}"],
    &["diff", "branches", "counts"],
    &["compare", "--target", "gfx90a", "--timing", "--", "{app}"],
];

fn wavetap(folder: &Path, arguments: &[&str], environment: &[(&str, OsString)]) -> Result<Finished, Failure> {
    command::run(&command::wavetap()?, arguments, environment, folder)
}

fn sample(name: &str) -> String {
    place::root().join("hip-samples").join(name).display().to_string()
}

/// A text without its escape sequences.
fn without_colours(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once('m').map_or("", |(_, rest)| rest))
}

/// Runs a command whose files are in the folder; lines of its report are at most so wide.
fn check(folder: &Path, line: &[&str], app: &str, columns: Option<usize>, colours: bool) -> Result<String, Failure> {
    let mut arguments: Vec<&str> = line.iter().map(|word| if *word == "{app}" { app } else { word }).collect();
    // Before the application, whose arguments follow.
    let options = if colours { &["--color", "always", "--force"][..] } else { &["--force"][..] };
    let no_files = ["inspect", "verify"].contains(&line[0]);
    let options = if no_files { &options[..options.len() - 1] } else { options };
    arguments.splice(1..1, options.iter().copied());
    let environment: Vec<(&str, OsString)> =
        columns.iter().map(|columns| ("COLUMNS", columns.to_string().into())).collect();
    let ended = wavetap(folder, &arguments, &environment)?;
    // A sample may be unfit for a probe, which is said on stderr.
    if ![0, 1].contains(&ended.code) || ended.err().contains("panicked") {
        return Err(ended.failure("it failed"));
    }
    let text = ended.out();
    if colours != text.contains('\x1b') && !text.trim().is_empty() && !["diff", "verify"].contains(&line[0]) {
        return Err(ended.failure("with colours, or without"));
    }
    let plain = without_colours(&text);
    let width = columns.unwrap_or(PIPE);
    match plain.lines().find(|line| line.chars().count() > width) {
        Some(wide) => Err(format!("$ {}\n{} columns: {wide}", ended.line, wide.chars().count())),
        None => Ok(plain),
    }
}

#[test]
fn no_line_is_wider_than_120_columns_in_a_pipe() -> Result<(), Failure> {
    let mut failures = Vec::new();
    for (name, small) in SAMPLES {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let app = sample(name);
        for line in OTHERS.iter().chain(if small { SMALL } else { &[] }) {
            match check(folder.path(), line, &app, None, false) {
                Ok(text) if text.trim().is_empty() && line[0] != "memory" => {
                    failures.push(format!("{name}: {line:?} printed nothing"));
                }
                Ok(_) => {}
                Err(failure) => failures.push(failure),
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

#[test]
fn no_line_is_wider_than_columns() -> Result<(), Failure> {
    let mut failures = Vec::new();
    for (name, columns, colours) in
        [("bin/divergence", 80, false), ("bin/divergence", 80, true), ("bin/spmv", 100, false), ("bin/spmv", 60, true)]
    {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let app = sample(name);
        let lines = OTHERS.iter().chain(SMALL);
        failures.extend(lines.filter_map(|line| check(folder.path(), line, &app, Some(columns), colours).err()));
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

#[test]
fn a_report_in_a_file_fits_and_columns_must_be_a_number() -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let app = sample("bin/divergence");
    let written = |columns: &str| -> Result<usize, Failure> {
        let line = ["slice", "--force", "--target", "gfx90a", "--report", "text", &app];
        wavetap(folder.path(), &line, &[("COLUMNS", columns.into())])?.exited(0)?;
        let text = std::fs::read_to_string(folder.path().join("text")).map_err(|e| e.to_string())?;
        Ok(text.lines().map(|line| line.chars().count()).max().unwrap_or(0))
    };
    for no_number in ["", "many", "0", "-1"] {
        let widest = written(no_number)?;
        if !(81..=PIPE).contains(&widest) {
            return Err(format!("COLUMNS={no_number}: {widest} columns"));
        }
    }
    let widest = written("80")?;
    if widest > 80 {
        return Err(format!("{widest} columns"));
    }
    Ok(())
}

#[test]
fn wide_text_is_whole() -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let app = sample("bin/divergence");
    let run = |options: &[&str], columns: &str| {
        let line: Vec<&str> = [&["profile", "--target", "gfx90a"][..], options, &["--", &app]].concat();
        Ok::<String, Failure>(wavetap(folder.path(), &line, &[("COLUMNS", columns.into())])?.exited(0)?.out())
    };
    let (narrow, wide) = (run(&[], "80")?, run(&["--wide"], "80")?);
    let name = "non_divergent(unsigned int*, unsigned int*)";
    let is_row = |line: &&str| line.contains("16×1×1");
    let rows = |text: &str| text.lines().filter(is_row).map(str::to_owned).collect::<Vec<_>>();
    let (narrow_rows, wide_rows) = (rows(&narrow), rows(&wide));
    if !wide_rows.iter().any(|row| row.contains(name)) || wide.contains('…') {
        return Err(format!("a name is not whole:\n{wide}"));
    }
    if narrow_rows.is_empty() || narrow_rows.iter().any(|row| row.contains(name)) || !narrow.contains("_divergent(…)")
    {
        return Err(format!("a name is whole where it has no room:\n{narrow}"));
    }
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    if widest(&wide) <= PIPE || run(&["--wide"], "200")? != wide {
        return Err(format!("--wide depends on the width, or nothing is wide:\n{wide}"));
    }
    // The option is global: before the subcommand, too.
    let before = ["--wide", "slice", "--target", "gfx90a", &app];
    let after = ["slice", "--wide", "--target", "gfx90a", &app];
    let [before, after] = [before, after].map(|line| wavetap(folder.path(), &line, &[]).and_then(|run| run.exited(0)));
    if before?.out() != after?.out() {
        return Err("--wide before the subcommand is not the same as after it".to_owned());
    }
    Ok(())
}
