//! What the strict mode found and a run went on after.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wavetap_base::error::{Result, ResultExt};
use wavetap_emulator::Suppressions;
use wavetap_report::names::short;

use crate::files;

/// The file of suppressions as another process may open it, once it is known to be right.
pub(super) fn suppressions(path: Option<&Path>) -> Result<Option<PathBuf>> {
    let Some(path) = path else { return Ok(None) };
    let text = files::read(path)?;
    Suppressions::parse(&String::from_utf8_lossy(&text)).within(|| path.display().to_string())?;
    std::path::absolute(path).map(Some).map_err(|error| files::io(path, "cannot make it absolute", &error))
}

/// What was found, with how often and where, as lines of text, and whether there was anything. What differs in numbers
/// alone, registers and addresses, is one line.
#[derive(Debug, Default)]
pub(super) struct StrictFindings {
    pub(super) lines: Vec<String>,
    pub(super) any: bool,
}

/// Reads what the processes of a run have found.
pub(super) fn read(file: &Path) -> Result<StrictFindings> {
    if !file.exists() {
        return Ok(StrictFindings::default());
    }
    let text = files::read(file)?;
    let text = String::from_utf8_lossy(&text);
    // Each process that took part has lines of its own. Where a lane or a wave differs, the first one is told.
    let mut found: BTreeMap<(&str, &str, String), Alike> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(4, '\t').collect();
        let &[count, kind, kernel, message] = fields.as_slice() else { continue };
        let place = message.split(", workgroup [").next().unwrap_or(message);
        let at = place.rsplit_once(" at ").map_or(place, |(_, at)| at);
        let alike = found.entry((kernel, kind, without_numbers(place))).or_default();
        *alike.places.entry(at).or_default() += count.parse::<u64>().unwrap_or(1);
        alike.first.get_or_insert(message);
    }
    let all: u64 = found.values().map(Alike::times).sum();
    let places: u64 = found.values().map(|alike| alike.places.len() as u64).sum();
    let mut lines =
        vec![format!("strict mode went on after {} at {}:", counted(all, "finding"), counted(places, "place"))];
    for ((kernel, kind, _), alike) in &found {
        let first = alike.first.unwrap_or_default();
        let kernel = short(kernel);
        let others: Vec<&str> =
            alike.places.keys().copied().filter(|at| !first.contains(&format!(" at {at},"))).collect();
        let others = if others.is_empty() { String::new() } else { format!("; also at {}", others.join(", ")) };
        lines.push(format!("kernel {kernel}: {kind}, {}, first: {first}{others}", counted(alike.times(), "time")));
    }
    Ok(StrictFindings { lines, any: all > 0 })
}

/// Findings that differ in numbers alone.
#[derive(Default)]
struct Alike<'t> {
    /// How often, by the address of the instruction.
    places: BTreeMap<&'t str, u64>,
    /// The first message.
    first: Option<&'t str>,
}

impl Alike<'_> {
    fn times(&self) -> u64 {
        self.places.values().sum()
    }
}

/// The text with `#` in place of each number.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let (word, end) = match word.char_indices().last() {
            Some((at, last)) if !last.is_ascii_alphanumeric() => word.split_at(at),
            _ => (word, ""),
        };
        match word.find(|c: char| c.is_ascii_digit()) {
            Some(at) => out.extend([&word[..at], "#"]),
            None => out.push_str(word),
        }
        out.push_str(end);
    }
    out
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_and_addresses_are_left_out() {
        let text = "reads v0 while `ds_read_b64` at 0x1a40 may, in `v_add_u32 v1, s[4:5]` at 0x1a58";
        assert_eq!(without_numbers(text), "reads v# while `ds_read_b#` at # may, in `v_add_u# v#, s[#:#]` at #");
    }
}
