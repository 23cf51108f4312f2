//! The page of what the emulator lacks is what the tables and the emulator say. `BLESS=1` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use wavetap::emulator::missing;
use wavetap::isa::{Target, variants};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/results/emulator-missing.md");

/// The instruction sets by name, each with a target of it.
fn sets() -> BTreeMap<&'static str, Target> {
    let mut sets = BTreeMap::new();
    for target in Target::all().filter(|target| target.has_instructions()) {
        sets.entry(target.instruction_set()).or_insert(target);
    }
    sets
}

fn page() -> String {
    let mut page = String::from(
        "# What the emulator lacks\n\nWritten by `BLESS=1 cargo test -p wavetap --test all emulator_missing` from the \
            instruction tables: the operations of each instruction set that are not emulated. A kernel that reaches \
            one ends with a fault that names it.\n\n\
         | instruction set | operations | not emulated | runs at all |\n|---|---|---|---|\n",
    );
    let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for (set, target) in sets() {
        let emulated = Target::all().any(|each| each.instruction_set() == set && each.emulated());
        let missing = missing(target);
        let alone = variants(target).filter(|variant| variant.halves.is_none());
        let count = alone.map(|variant| variant.name).collect::<BTreeSet<_>>().len();
        writeln!(page, "| {set} | {count} | {} | {} |", missing.len(), if emulated { "yes" } else { "no" })
            .expect("text");
        for (name, reason) in missing {
            groups.entry(reason.expect("a reason")).or_default().entry(name).or_default().push(set);
        }
    }
    for (reason, names) in groups {
        write!(page, "\n## {}{}\n\n", reason[..1].to_uppercase(), &reason[1..]).expect("text");
        let mut by_sets: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
        for (name, sets) in names {
            by_sets.entry(sets).or_default().push(name);
        }
        for (sets, names) in by_sets {
            writeln!(page, "- {}: `{}`", sets.join(", "), names.join("` `")).expect("text");
        }
    }
    page
}

#[test]
fn the_page_is_up_to_date() {
    let made = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(PAGE, &made).expect("written");
    }
    let found = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(found == made, "docs/results/emulator-missing.md is not what the tables say; BLESS=1 writes it anew");
}
