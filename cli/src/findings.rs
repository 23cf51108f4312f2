//! What the strict mode found and a run went on after.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wavetap::emulator::Suppressions;
use wavetap::error::{Result, ResultExt};

use crate::files;

/// The file of suppressions as another process may open it, once it is known to be right.
pub fn suppressions(path: Option<&Path>) -> Result<Option<PathBuf>> {
    let Some(path) = path else { return Ok(None) };
    let text = files::read(path)?;
    Suppressions::parse(&String::from_utf8_lossy(&text)).within(|| path.display().to_string())?;
    std::path::absolute(path).map(Some).map_err(|error| files::io(path, "cannot make it absolute", &error))
}

/// Says each place on standard error, with how often it was found; tells whether there was any.
pub fn report(file: &Path) -> Result<bool> {
    if !file.exists() {
        return Ok(false);
    }
    let text = files::read(file)?;
    let text = String::from_utf8_lossy(&text);
    // Each process that took part has lines of its own. Where a lane or a wave differs, the first one is told.
    let mut places: BTreeMap<(&str, &str, &str), (u64, &str)> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(4, '\t').collect();
        let &[count, kind, kernel, message] = fields.as_slice() else { continue };
        let place = message.split(", workgroup [").next().unwrap_or(message);
        let at = place.rsplit_once(" at ").map_or(place, |(_, at)| at);
        places.entry((kernel, kind, at)).or_insert((0, message)).0 += count.parse::<u64>().unwrap_or(1);
    }
    let all: u64 = places.values().map(|(count, _)| count).sum();
    let s = |count: u64| if count == 1 { "" } else { "s" };
    let at = places.len() as u64;
    eprintln!("wavetap: strict mode went on after {all} finding{} at {at} place{}:", s(all), s(at));
    for ((kernel, kind, _), (count, message)) in &places {
        eprintln!("wavetap: kernel {kernel}: {kind}, {count} time{}, first: {message}", s(*count));
    }
    Ok(all > 0)
}
