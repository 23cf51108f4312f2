//! What the processes of a run have found (`wavetap check`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::Path;

use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_profile::check::{Finding, Line, Output, OutputPage};

use super::host_frames::HostFrames;
use crate::files;

/// What was found in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Processes that used the HIP runtime: without one, nothing was checked.
    pub processes: usize,
    /// Whether a kernel was launched, where AMD's runtime launches them or inserted code checks them.
    pub launched: bool,
    /// Each place once, in the order in which processes began and found it.
    pub findings: Vec<Finding>,
    /// What could not be looked at.
    pub not_checked: Vec<String>,
    /// What launches have left in memory ([`RunOptions::outputs`](super::RunOptions::outputs)).
    pub outputs: Vec<Output>,
    /// Pages of that.
    pub pages: Vec<OutputPage>,
}

/// Reads what processes left in a folder.
pub(super) fn read(folder: &Path) -> Result<Checked> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .map_err(|error| files::io(folder, "cannot read", &error))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "findings"))
        .collect();
    paths.sort();
    let mut all = Checked { processes: paths.len(), ..Checked::default() };
    for path in paths {
        add(&mut all, &files::read(&path)?).within(|| format!("findings of process {}", stem(&path)))?;
    }
    let mut frames = HostFrames::default();
    all.findings.iter_mut().for_each(|finding| frames.complete(finding));
    all.findings = united(std::mem::take(&mut all.findings));
    all.findings.iter_mut().for_each(Finding::order_ends);
    Ok(all)
}

/// Findings once for each place, now that places of the host have source lines.
fn united(findings: Vec<Finding>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for finding in findings {
        let mut lines = finding.clone();
        let earlier = lines.other.as_mut().and_then(|other| other.call.as_mut());
        let frames = lines.call.iter_mut().chain(earlier).flat_map(|call| &mut call.stack);
        frames.filter(|frame| frame.source.is_some()).for_each(|frame| frame.address = 0);
        match places.entry(format!("{:?}", lines.place())) {
            Entry::Occupied(known) => all[*known.get()].count += finding.count,
            Entry::Vacant(new) => {
                new.insert(all.len());
                all.push(finding);
            }
        }
    }
    all
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Adds the lines of one process, the last of which may not be whole.
fn add(all: &mut Checked, data: &[u8]) -> Result<()> {
    // Where its places are in the list.
    let mut places: Vec<usize> = Vec::new();
    let text = String::from_utf8_lossy(data);
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for (n, line) in whole.lines().enumerate() {
        let line = serde_json::from_str(line).map_err(|error| Error::malformed(format!("line {}: {error}", n + 1)))?;
        match line {
            Line::Begin => places.clear(),
            Line::Found(finding) => {
                let known = all.findings.iter().position(|known| known.place() == finding.place());
                match known {
                    Some(at) => all.findings[at].count += finding.count,
                    None => all.findings.push(*finding),
                }
                places.push(known.unwrap_or(all.findings.len() - 1));
            }
            Line::Again { place, count } => {
                let at = usize::try_from(place).ok().and_then(|place| places.get(place));
                let at = at.ok_or_else(|| Error::malformed(format!("line {}: no place has number {place}", n + 1)))?;
                all.findings[*at].count += count;
            }
            Line::Launched => all.launched = true,
            Line::NotChecked(what) if all.not_checked.contains(&what) => {}
            Line::NotChecked(what) => all.not_checked.push(what),
            Line::Output(output) => all.outputs.push(output),
            Line::Page(page) => all.pages.push(page),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::check::Class;

    #[test]
    fn processes_are_added_up() {
        let line = |line: &Line| serde_json::to_string(line).expect("JSON") + "\n";
        let found = line(&Line::Found(Box::new(Finding::new(Class::Leak, "one"))));
        let again = line(&Line::Again { place: 0, count: 4 });
        let mut all = Checked::default();
        let begin = line(&Line::Begin);
        add(&mut all, format!("{begin}{found}{again}{begin}{found}{again}{{\"fou").as_bytes()).expect("lines");
        assert!(!all.launched);
        add(&mut all, line(&Line::Launched).as_bytes()).expect("lines");
        assert!(all.launched);
        add(&mut all, found.as_bytes()).expect("lines");
        assert_eq!((all.findings.len(), all.findings[0].count), (1, 11));
        assert!(add(&mut all, again.as_bytes()).is_err_and(|error| error.to_string().contains("line 1")));
    }
}
