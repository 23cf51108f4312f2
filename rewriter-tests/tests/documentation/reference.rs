//! Reference pages against the code.

use std::fmt::Write;
use std::fs;

use serde_json::Value;
use wavetap::isa::Target;
use wavetap::kernel::Reason;
use wavetap::profile::fidelity::Choice;
use wavetap::profile::probes;
use wavetap_dataset::Partition;
use wavetap_dataset::tables::{self, Table};

use crate::{keep, page};

/// The text of `docs/reference/targets.md`.
fn targets() -> String {
    let mut text = String::from(
        "# Targets\n\n\
         Written by `BLESS=1 cargo test --workspace --test documentation` from the target facts \
         (`isa-tables/targets.yaml`):\n\
         every processor whose instructions are known. All of them are inspected, disassembled and sliced. Nothing \
         has\n\
         been counted on a GPU yet, of any target ([limits](limits.md)).\n\n\
         | target | instruction set | waves | rewritten | emulated |\n|---|---|---|---|---|\n",
    );
    let yes = |is: bool| if is { "yes" } else { "no" };
    for target in Target::all().filter(|target| target.has_instructions()) {
        let sizes = [32, 64].into_iter().filter(|lanes| target.with_wave_size(*lanes).is_some());
        let waves: Vec<String> = sizes.map(|lanes| format!("wave{lanes}")).collect();
        let (set, waves) = (target.instruction_set(), waves.join(", "));
        let (rewritten, emulated) = (yes(target.rewritable()), yes(target.emulated()));
        writeln!(text, "| {} | {set} | {waves} | {rewritten} | {emulated} |", target.name()).expect("text");
    }
    text
}

#[test]
fn the_list_of_targets_is_that_of_the_tables() {
    keep("docs/reference/targets.md", &targets());
}

/// The text of `docs/reference/dataset.md`.
fn dataset() -> String {
    let kinds = probes::kinds().into_iter().map(|kind| tables::of_kind(kind).expect("a table"));
    let all: Vec<Table> = tables::fixed().into_iter().chain(kinds).collect();
    let description = wavetap_dataset::description(Partition::RunAndRank, &all);
    let mut text = String::from(
        "# Columns of datasets\n\n\
         Written by `BLESS=1 cargo test --workspace --test documentation` from the code: the tables of a\n\
         [dataset](../guide/datasets.md), which `_wavetap.json` in it describes in the same words. A column that is \
         *optional*\n\
         may be NULL. Types are DuckDB's. Each table begins with these columns:\n\n",
    );
    let columns = |text: &mut String, columns: &Value| {
        text.push_str("| column | type | unit | meaning |\n|---|---|---|---|\n");
        for column in columns.as_array().expect("columns") {
            let word = |name: &str| column[name].as_str().unwrap_or_default().to_owned();
            let kind = if column["optional"] == true { "optional, " } else { "" };
            let (name, of, unit, meaning) = (word("name"), word("type"), word("unit"), word("meaning"));
            writeln!(text, "| `{name}` | {kind}`{of}` | {unit} | {meaning} |").expect("text");
        }
    };
    columns(&mut text, &description["common_columns"]);
    for table in description["tables"].as_array().expect("tables") {
        let (name, row) = (table["name"].as_str().expect("a name"), table["row"].as_str().expect("a row"));
        write!(text, "\n## {name}\n\nA row is {row}.\n\n").expect("text");
        columns(&mut text, &table["columns"]);
    }
    text
}

#[test]
fn the_columns_of_datasets_are_listed() {
    keep("docs/reference/dataset.md", &dataset());
}

#[test]
fn the_readme_supports_every_target() {
    let readme = fs::read_to_string(page("README.md")).expect("the README");
    let table: Vec<&str> = readme
        .lines()
        .skip_while(|line| !line.starts_with("| target family |"))
        .take_while(|line| line.starts_with('|'))
        .collect();
    let covered = |name: &str| {
        table.iter().any(|row| {
            spans(row.split('|').nth(1).unwrap_or_default())
                .any(|(first, last)| first <= number(name) && number(name) <= last)
        })
    };
    let generic = |name: &str| name.ends_with("-generic");
    let targets = Target::all().filter(|target| target.has_instructions() && !generic(target.name()));
    let missing: Vec<&str> = targets.map(Target::name).filter(|name| !covered(name)).collect();
    assert!(missing.is_empty(), "not in the README's table of target families: {missing:?}");
}

/// The first and last processor of each `gfxA to gfxB` or `gfxA` in a cell.
fn spans(cell: &str) -> impl Iterator<Item = (u32, u32)> {
    let names = cell.split_once(':').map_or("", |(_, names)| names);
    names.split(',').filter_map(|part| {
        let mut ends = part.split(" to ").map(|name| number(name.trim()));
        let first = ends.next()?;
        Some((first, ends.next().unwrap_or(first)))
    })
}

/// `gfx90a` as the number that its name writes, in hexadecimal.
fn number(name: &str) -> u32 {
    u32::from_str_radix(name.trim_start_matches("gfx"), 16).unwrap_or(0)
}

#[test]
fn the_refusal_reasons_are_those_of_the_code() {
    let text = fs::read_to_string(page("docs/reference/refusals.md")).expect("the page");
    let mut rows = text.lines().filter(|line| line.starts_with("| `")).map(|line| {
        let cells: Vec<&str> = line.split(" | ").collect();
        (cells[0].trim_matches(['|', ' ', '`']).to_owned(), cells[2].trim_end_matches(" |").to_owned())
    });
    for reason in Reason::ALL {
        let row = rows.next().unwrap_or_default();
        assert_eq!(row, (reason.name().to_owned(), reason.explanation().to_owned()), "docs/reference/refusals.md");
    }
    let objects: Vec<String> = rows.map(|(name, _)| name).collect();
    assert_eq!(
        objects,
        ["unsupported_target", "unsupported_object", "malformed", "unverified"],
        "docs/reference/refusals.md"
    );
}

#[test]
fn every_choice_of_the_emulator_is_explained() {
    let text = fs::read_to_string(page("docs/reference/fidelity.md")).expect("the page");
    let explained = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |")).map(|(name, _)| name);
    let explained: Vec<&str> = explained.collect();
    assert_eq!(explained, Choice::ALL.map(Choice::name));
}
