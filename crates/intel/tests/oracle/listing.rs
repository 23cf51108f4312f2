//! What `iga64` says of a kernel, read from its listings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// A byte of a register file: its name, register and byte.
pub type Byte = (&'static str, u32, u32);

/// One line.
#[derive(Debug, Default)]
pub struct Line {
    pub id: u32,
    pub text: String,
    pub name: String,
    pub lanes: Option<String>,
    pub predicate: String,
    pub scoreboard: BTreeSet<String>,
    pub labels: Vec<u64>,
    /// By slot, as the listing names it.
    pub slots: BTreeMap<String, BTreeSet<Byte>>,
    /// Definitions that reach it: the instruction, and which bytes of it.
    pub definitions: BTreeSet<(u32, Byte)>,
}

const FILES: [(&str, u32); 4] = [("r", 64), ("acc", 64), ("f", 4), ("a", 32)];

/// `r1:2`, `r0[0-3,8-11],r1[4]`.
fn bytes(text: &str) -> BTreeSet<Byte> {
    let mut all = BTreeSet::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).expect("a register has a number");
        let (file, size) = FILES.into_iter().find(|(file, _)| *file == &rest[..digits]).expect("a known file");
        let end = rest[digits..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        let number: u32 = rest[digits..end].parse().expect("a number");
        rest = &rest[end..];
        if let Some(after) = rest.strip_prefix(':') {
            let end = after.find(',').unwrap_or(after.len());
            let count: u32 = after[..end].parse().expect("a count");
            all.extend((0..count).flat_map(|k| (0..size).map(move |byte| (file, number + k, byte))));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix('[') {
            let (ranges, after) = after.split_once(']').expect("a bracket");
            for range in ranges.split(',') {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let (first, last): (u32, u32) = (first.parse().expect("a byte"), last.parse().expect("a byte"));
                all.extend((first..=last).map(|byte| (file, number, byte)));
            }
            rest = after;
        } else {
            all.extend((0..size).map(|byte| (file, number, byte)));
        }
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    all
}

/// Everything of the form `key:{…}` or `#key{…}`.
fn groups<'t>(text: &'t str, separator: &str) -> Vec<(&'t str, &'t str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(separator) {
        let key = before.rsplit([' ', ',']).next().unwrap_or_default();
        let Some((inside, after)) = after.split_once('}') else { break };
        found.push((key, inside));
        rest = after;
    }
    found
}

fn run(kernel: &Path, option: &str) -> String {
    let output = Command::new("iga64").args(["-d", "-p=XeHPC", "-Xprint-pc", option]).arg(kernel).output();
    String::from_utf8(output.expect("iga64 runs").stdout).expect("UTF-8")
}

/// By address. `kernel` is a file with the code alone.
pub fn read(kernel: &Path) -> BTreeMap<u64, Line> {
    let mut lines = BTreeMap::new();
    let mut comments = String::new();
    for text in run(kernel, "-Xprint-deps").lines() {
        if let Some(comment) = text.strip_prefix("// ") {
            comments += comment;
            comments += " ";
        } else if text.starts_with("/*") {
            let (address, mut line) = instruction(text);
            for (key, inside) in groups(&comments, ":{") {
                line.slots.entry(key.to_owned()).or_default().extend(bytes(inside));
            }
            comments.clear();
            lines.insert(address, line);
        }
    }
    for text in run(kernel, "-Xprint-defs").lines().filter(|text| text.starts_with("/*")) {
        let (address, parsed) = instruction(text);
        let line = lines.get_mut(&address).expect("both listings have the same instructions");
        line.id = parsed.id;
        let after = text.split_once("*/").expect("an address").1;
        let comment = after.split_once("//").map_or("", |(_, comment)| comment);
        let comment = comment.split(';').next().unwrap_or_default();
        for (key, inside) in groups(comment, "{") {
            let id = key.trim_start_matches('#').parse().expect("an instruction");
            line.definitions.extend(bytes(inside).into_iter().map(|byte| (id, byte)));
        }
    }
    lines
}

fn instruction(text: &str) -> (u64, Line) {
    let (head, rest) = text.split_once("*/").expect("an address");
    let address = head.split('[').nth(1).and_then(|rest| rest.split(']').next()).expect("an address");
    let address = u64::from_str_radix(address, 16).expect("a number");
    let id = head.split_once('#').map_or(0, |(_, rest)| {
        rest.split_whitespace().next().and_then(|id| id.parse().ok()).expect("an instruction's number")
    });
    let mut line = Line { id, ..Line::default() };
    let code = rest.split("//").next().unwrap_or_default().trim();
    line.text = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let (code, options) = match code.rsplit_once('{') {
        Some((code, options)) => (code, options.trim_end_matches('}')),
        None => (code, ""),
    };
    let is_scoreboard = |word: &&str| word.contains('@') || word.starts_with('$');
    line.scoreboard = options.split(',').filter(is_scoreboard).map(str::to_owned).collect();
    let mut words = code.split_whitespace().peekable();
    if let Some(predicate) = words.next_if(|word| word.starts_with('(')) {
        line.predicate = predicate.to_owned();
    }
    line.name = words.next().unwrap_or_default().to_owned();
    if let Some(lanes) = words.next_if(|word| word.contains("|M")) {
        line.lanes = Some(lanes.to_owned());
    }
    let label = |word: &str| word.strip_prefix('L').and_then(|rest| rest.parse().ok());
    line.labels = words.filter_map(label).collect();
    (address, line)
}
