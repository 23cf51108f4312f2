//! Reads what `nvdisasm -c -lrm narrow` and `nvdisasm -c -hex` print: for each instruction the registers that it
//! reads and writes, and where branches go.

use std::collections::{BTreeMap, BTreeSet};

/// A register as the columns of the listing name it: the letter of the file, and the number.
pub type Name = (&'static str, u16);

/// What the listing says of an instruction.
#[derive(Debug, Default, Clone)]
pub struct Line {
    /// Guard, name, operands.
    pub text: String,
    /// Registers with `^` or `x`.
    pub writes: BTreeSet<Name>,
    /// Registers with `v` or `x`.
    pub reads: BTreeSet<Name>,
    /// Labels in its text.
    pub labels: Vec<String>,
}

/// A section of code.
#[derive(Debug, Default)]
pub struct Section {
    /// By address.
    pub lines: BTreeMap<u64, Line>,
    /// Addresses of labels.
    pub labels: BTreeMap<String, u64>,
}

/// The columns of a table of registers: at which character which register is.
type Columns = BTreeMap<usize, Name>;

/// Sections by name. Instructions without a table of registers are left out.
pub fn read(listing: &str) -> BTreeMap<String, Section> {
    let mut all: BTreeMap<String, Section> = BTreeMap::new();
    let (mut section, mut columns, mut titles) = (String::new(), Columns::new(), "");
    let (mut digits, mut pending): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    for line in listing.lines() {
        let (left, right) = line.rsplit_once("// ").unwrap_or((line, ""));
        let left = left.trim();
        if let Some(rest) = left.strip_prefix(".section").filter(|rest| rest.starts_with(char::is_whitespace)) {
            let name = rest.trim().trim_matches('"');
            section =
                name.strip_prefix(".text.").unwrap_or_default().split([',', '"']).next().unwrap_or_default().into();
            (pending, columns) = (Vec::new(), Columns::new());
            continue;
        }
        if section.is_empty() {
            continue;
        }
        if right.starts_with('|') && right.contains("GPR") {
            (titles, digits) = (right, Vec::new());
        } else if right.trim_start_matches('|').trim_start().starts_with('#') {
            columns = table(titles, &digits, right);
        } else if right.starts_with('|') && !left.contains("/*") {
            digits.push(right);
        }
        if let Some(label) = left.strip_suffix(':').filter(|label| !label.contains([' ', '*'])) {
            pending.push(label.to_owned());
            continue;
        }
        let Some((address, text)) = left.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) else { continue };
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        let entry = all.entry(section.clone()).or_default();
        entry.labels.extend(pending.drain(..).map(|label| (label, address)));
        let text = text.split(';').next().unwrap_or_default().trim();
        let mut found = Line { text: text.to_owned(), ..Line::default() };
        found.labels =
            text.split(['(', ')', '"', ',', ' ']).filter(|word| word.starts_with(".L_")).map(str::to_owned).collect();
        for (column, name) in columns.iter().filter(|_| right.starts_with('|')) {
            match right.as_bytes().get(*column) {
                Some(b'^') => _ = found.writes.insert(*name),
                Some(b'v') => _ = found.reads.insert(*name),
                Some(b'x') => _ = (found.writes.insert(*name), found.reads.insert(*name)),
                _ => {}
            }
        }
        entry.lines.insert(address, found);
    }
    all
}

/// The head of a table: titles, rows of upper digits, and the row of last digits, which begins with `#`.
fn table(titles: &str, digits: &[&str], last: &str) -> Columns {
    let mut columns = Columns::new();
    let mut position = 1;
    let names: Vec<&str> = titles.split('|').skip(1).collect();
    for (index, part) in last.split('|').skip(1).enumerate() {
        let file = match names.get(index).map(|title| title.trim()) {
            Some("GPR") => "R",
            Some("PRED") => "P",
            Some("UGPR") => "UR",
            Some("UPRED") => "UP",
            _ => "",
        };
        for (offset, _) in part.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit() && !file.is_empty()) {
            let column = position + offset;
            let rows = digits.iter().copied().chain([last]);
            let number: String = rows.filter_map(|row| row.as_bytes().get(column)).map(|byte| *byte as char).collect();
            if let Ok(number) = number.trim().parse() {
                columns.insert(column, (file, number));
            }
        }
        position += part.len() + 1;
    }
    columns
}
