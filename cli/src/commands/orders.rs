//! `wavetap check --schedules`: the application in several orders of workgroups and waves.
//!
//! It runs in the usual order and in others. Findings are put together. Where what it leaves in memory differs, or what
//! it prints, it runs once more in the usual order and in the other one: only what comes out the same both times is due
//! to the order, and not to something else that differs from run to run.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use wavetap::collect::check::Outputs;
use wavetap::error::{Error, Result, ResultExt};
use wavetap::explain::check::merge;
use wavetap::explain::check::outputs::{Difference, TwoOutputs, first_difference};
use wavetap::profile::check::{Class, Finding, FoundIn, Tool};
use wavetap::run::{App, Checked, Finished, Launch, RunOptions, Stdout};
use wavetap::stderr_line;

use crate::launch;
use crate::signals::Held;

/// Classes that explain that results differ.
const EXPLAIN: [Class; 6] = [
    Class::LdsRace,
    Class::GlobalRace,
    Class::StreamRace,
    Class::HostRace,
    Class::LaneConflict,
    Class::UninitialisedRegister,
];

/// The seeds of so many orders: the usual one, 0, and those from one on.
pub(super) fn seeds(count: u64, first: Option<u64>) -> Vec<u64> {
    let first = first.unwrap_or(1).max(1);
    std::iter::once(0).chain(first..first.saturating_add(count - 1)).collect()
}

/// Where stderr is no terminal, progress is said after so long without a word.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of several orders.
pub(super) struct Tried {
    /// The first run, or the one that was interrupted.
    pub finished: Finished,
    /// What was found in all of them.
    pub checked: Checked,
    /// The orders that were run to their end.
    pub seeds: Vec<u64>,
}

/// One run.
struct Ran {
    seed: u64,
    finished: Finished,
    checked: Checked,
    stdout: Vec<u8>,
}

impl Ran {
    /// Whether two runs printed the same and ended alike.
    fn ended_as(&self, other: &Ran) -> bool {
        self.stdout == other.stdout && self.finished.exit_code() == other.finished.exit_code()
    }

    fn difference<'r>(&'r self, other: &Ran) -> Option<Difference<'r>> {
        first_difference(&self.checked.outputs, &other.checked.outputs)
    }

    /// Whether two runs of one order did the same, up to this launch.
    fn repeats(&self, other: &Ran, launch: Option<u64>) -> bool {
        match (launch, self.difference(other)) {
            (Some(_), None) => true,
            (Some(launch), Some(Difference::Memory(output))) => output.launch > launch,
            (Some(_), Some(Difference::Launches)) => false,
            (None, difference) => difference.is_none() && self.ended_as(other),
        }
    }
}

/// Runs an application in several orders.
struct Orders<'a> {
    app: &'a App,
    options: RunOptions,
    folder: &'a Path,
    runs: usize,
    held: &'a Held,
    /// When progress was said, or the first run began.
    said: Instant,
}

impl Orders<'_> {
    /// Says on stderr what is run next.
    fn say(&mut self, what: &str) {
        if std::io::stderr().is_terminal() || self.said.elapsed() > PATIENCE {
            stderr_line!("wavetap: {what}");
            self.said = Instant::now();
        }
    }

    fn is_interrupted(&self) -> bool {
        self.held.arrived().is_some()
    }

    fn run(&mut self, seed: u64, outputs: Outputs) -> Result<Ran> {
        self.runs += 1;
        let file = self.folder.join(format!("{}.out", self.runs));
        self.options.schedule = Some(seed);
        self.options.outputs = Some(outputs);
        self.options.stdout = Stdout::File(file.clone());
        let finished = Launch { app: self.app, executable: None, options: &self.options, at_load: None }
            .execute(&launch::Terminal)
            .within(|| format!("order {seed}"))?;
        let checked = finished.checked().ok_or_else(|| Error::internal("nothing was checked"))?.clone();
        let stdout = wavetap::files::read(&file)?;
        Ok(Ran { seed, finished, checked, stdout })
    }

    /// What differs between the usual order and another one, if it differs by the order.
    fn compare(&mut self, usual: &Ran, other: &Ran, found: &[Finding]) -> Result<Compared> {
        let difference = usual.difference(other);
        let launch = match difference {
            Some(Difference::Memory(output)) => Some(output.launch),
            _ => None,
        };
        if launch.is_none() && difference.is_none() && usual.ended_as(other) {
            return Ok(Compared::Same);
        }
        if let Some(Difference::Memory(output)) = difference
            && found.iter().any(|finding| explains(finding, &output.kernels))
        {
            return Ok(Compared::Explained);
        }
        let outputs = launch.map_or(Outputs::Digests, |launch| Outputs::Pages { launch });
        self.say(&format!("with --schedule-seed {} results differ: both orders once more", other.seed));
        let usual_again = self.run(usual.seed, outputs)?;
        if self.is_interrupted() {
            return Ok(Compared::Interrupted);
        }
        let again = [usual_again, self.run(other.seed, outputs)?];
        if self.is_interrupted() {
            return Ok(Compared::Interrupted);
        }
        if !usual.repeats(&again[0], launch) || !other.repeats(&again[1], launch) {
            return Ok(Compared::Unsteady);
        }
        Ok(match difference {
            Some(Difference::Memory(output)) => {
                let pages = TwoOutputs::new(&again[0].checked.pages, &again[1].checked.pages);
                let mut finding = match pages.first() {
                    Some(address) => self.written(other.seed, output.launch, address)?,
                    None => None,
                }
                .unwrap_or_else(|| {
                    let kernels = output.kernels.join(", ");
                    let message = format!(
                        "launch {} ({kernels}) leaves other memory with --schedule-seed {} than in the usual order",
                        output.launch, other.seed
                    );
                    Finding::new(Class::OrderDependent, message)
                });
                pages.describe(&mut finding, other.seed);
                Compared::Differs(Box::new(finding))
            }
            Some(Difference::Launches) | None => {
                let what = if difference.is_some() {
                    "other kernels are launched".to_owned()
                } else if usual.stdout == other.stdout {
                    let codes = [usual, other].map(|ran| ran.finished.exit_code());
                    format!("the exit code is {} and not {}", codes[1], codes[0])
                } else {
                    format!("line {} of the standard output differs", first_line(&usual.stdout, &other.stdout))
                };
                let message = format!("with --schedule-seed {} {what}; all device memory is the same", other.seed);
                Compared::Differs(Box::new(Finding::new(Class::OrderDependent, message)))
            }
        })
    }

    /// The finding that says what has written a byte.
    fn written(&mut self, seed: u64, launch: u64, address: u64) -> Result<Option<Finding>> {
        let ran = self.run(seed, Outputs::Byte { launch, address })?;
        Ok(ran.checked.findings.into_iter().find(|finding| finding.class == Class::OrderDependent))
    }
}

/// What came of a comparison.
enum Compared {
    Same,
    /// By a finding that there is already.
    Explained,
    /// Runs of one order differ, too.
    Unsteady,
    Interrupted,
    Differs(Box<Finding>),
}

fn explains(finding: &Finding, kernels: &[String]) -> bool {
    EXPLAIN.contains(&finding.class) && is_in(finding, kernels)
}

fn is_in(finding: &Finding, kernels: &[String]) -> bool {
    finding.at.as_ref().is_some_and(|at| kernels.contains(&at.kernel))
}

/// The number of the first line that differs.
fn first_line(one: &[u8], other: &[u8]) -> usize {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    one[..same].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Runs an application in the orders of these seeds, the first of which is the usual one. A signal that is held
/// ends the run of the application, and no other one is begun.
pub(super) fn run(app: &App, options: RunOptions, seeds: &[u64], tools: &[Tool], held: &Held) -> Result<Tried> {
    let folder = wavetap::files::temporary_folder()?;
    let mut orders = Orders { app, options, folder: folder.path(), runs: 0, held, said: Instant::now() };
    let mut ran = Vec::new();
    for (n, seed) in seeds.iter().enumerate() {
        orders.say(&format!("order {} of {} (--schedule-seed {seed})", n + 1, seeds.len()));
        let one = orders.run(*seed, Outputs::Digests)?;
        if ran.is_empty() {
            let mut out = std::io::stdout().lock();
            // Where its reader has gone, the application would not have been told either.
            let _ = out.write_all(&one.stdout).and_then(|()| out.flush());
        }
        ran.push(one);
        if orders.is_interrupted() {
            break;
        }
    }
    let is_interrupted = orders.is_interrupted();
    let findings = ran.iter().map(|ran| (ran.seed, ran.checked.findings.clone())).collect();
    let mut findings = merge(findings);
    let mut not_checked: Vec<String> = Vec::new();
    for what in ran.iter().flat_map(|ran| &ran.checked.not_checked) {
        if !not_checked.contains(what) {
            not_checked.push(what.clone());
        }
    }
    if is_interrupted {
        let (order, last) = (ran.len(), seeds.len());
        let after = if order < last { ", and the orders after it" } else { "" };
        not_checked.push(format!("interrupted in order {order} of {last}: the rest of this order{after}"));
    }
    let (usual, others) = ran.split_first().ok_or_else(|| Error::internal("no order"))?;
    let several = ran.iter().find(|ran| ran.checked.processes != 1);
    match several {
        _ if !tools.contains(&Tool::Races) => {}
        _ if is_interrupted => not_checked.push("whether results depend on the order: interrupted".to_owned()),
        Some(ran) if ran.checked.processes > 1 => {
            not_checked.push("whether results depend on the order: several processes use the GPU".to_owned());
        }
        Some(_) => {}
        None => {
            let mut different: Vec<Finding> = Vec::new();
            for other in others {
                if let Some(Difference::Memory(output)) = usual.difference(other)
                    && let Some(known) = different.iter_mut().find(|finding| is_in(finding, &output.kernels))
                {
                    known.schedules.iter_mut().for_each(|found| found.count += 1);
                    continue;
                }
                match orders.compare(usual, other, &findings)? {
                    Compared::Same | Compared::Explained => {}
                    Compared::Unsteady => {
                        let what = "whether results depend on the order: what the application leaves in memory or \
                            prints differs between two runs in the same order";
                        not_checked.push(what.to_owned());
                        break;
                    }
                    Compared::Interrupted => {
                        not_checked.push("whether results depend on the order: interrupted".to_owned());
                        break;
                    }
                    Compared::Differs(finding) => match different.iter_mut().find(|it| it.place() == finding.place()) {
                        Some(known) => known.schedules.iter_mut().for_each(|found| found.count += 1),
                        None => different
                            .push(Finding { schedules: Some(FoundIn { count: 1, first: other.seed }), ..*finding }),
                    },
                }
            }
            findings.extend(different);
        }
    }
    let Checked { processes, launched, .. } = usual.checked;
    let checked = Checked { processes, launched, findings, not_checked, ..Checked::default() };
    let ended = ran.len() - usize::from(is_interrupted);
    let shown = if is_interrupted { ended } else { 0 };
    Ok(Tried { finished: ran.swap_remove(shown).finished, checked, seeds: seeds[..ended].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_order_comes_first() {
        assert_eq!(seeds(1, None), [0]);
        assert_eq!(seeds(3, None), [0, 1, 2]);
        assert_eq!(seeds(3, Some(7)), [0, 7, 8]);
        assert_eq!(first_line(b"a\nb\n", b"a\nc\n"), 2);
    }
}
