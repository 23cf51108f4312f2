//! What the vendor's disassembler says of the fixtures, as committed text: a line an instruction, with the registers
//! that it writes, those that it reads, and where it branches to. `BLESS=1` with `WAVETAP_NVIDIA` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::listing::{Line, Name, Section};

fn registers(names: &BTreeSet<Name>) -> String {
    names.iter().map(|(file, number)| format!("{file}{number}")).collect::<Vec<_>>().join(" ")
}

/// The text of a listing.
pub fn text(listing: &BTreeMap<String, Section>) -> String {
    let mut out = String::new();
    for (name, section) in listing {
        writeln!(out, "section {name}").expect("a string");
        for (address, line) in &section.lines {
            let targets = line.labels.iter().filter_map(|label| section.labels.get(label));
            let targets = targets.map(|target| format!("{target:x}")).collect::<Vec<_>>().join(" ");
            let (writes, reads) = (registers(&line.writes), registers(&line.reads));
            let text = line.text.split("(*").next().unwrap_or_default().trim();
            writeln!(out, "{address:04x} | {writes} | {reads} | {targets} | {text}").expect("a string");
        }
    }
    out
}

/// The listing of a text.
pub fn read(text: &str) -> BTreeMap<String, Section> {
    let mut all: BTreeMap<String, Section> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(section) = line.strip_prefix("section ") {
            name = section.to_owned();
            continue;
        }
        let [address, writes, reads, targets, text] = line.splitn(5, " |").collect::<Vec<_>>()[..] else {
            panic!("{line}: five fields")
        };
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).expect("a hexadecimal number");
        let section = all.entry(name.clone()).or_default();
        let labels: Vec<String> = targets.split_whitespace().map(str::to_owned).collect();
        section.labels.extend(labels.iter().map(|label| (label.clone(), hexadecimal(label))));
        let line = Line { text: text.trim().to_owned(), writes: set(writes), reads: set(reads), labels };
        section.lines.insert(hexadecimal(address), line);
    }
    all
}

fn set(text: &str) -> BTreeSet<Name> {
    let name = |word: &str| {
        let (file, digits) = word.split_at(word.find(|letter: char| letter.is_ascii_digit()).expect("a number"));
        let files = ["R", "P", "UR", "UP"];
        (*files.iter().find(|known| **known == file).expect("a file"), digits.parse().expect("a number"))
    };
    text.split_whitespace().map(name).collect()
}
