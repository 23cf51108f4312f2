//! The first lines of a report: the kernels that most went to, and of each the one or two findings that matter most.
//!
//! A finding is something that a probe, the slicer, the analysis of memory accesses or the launch table says; each
//! kind is one function of a file in `finders`, with its evidence and its threshold. [`Finding::weight`] puts them in
//! an order; it is no prediction of what a change would gain.

mod bound;
mod choice;
pub(crate) mod data;
mod finders;
mod groups;
mod subject;
mod waiting;

pub use data::{Bound, Finding, FindingKind, Instance, KernelSummary, LaunchCost, Limit, LimitPart, SharesOf, Summary};

use crate::launches::{CodeOfKernel, LaunchInputs, LaunchTable};
use crate::variants::labelled;
use crate::{Kernel, Report};
use finders::find;
use groups::{Group, groups, titles};
use subject::Subject;
use wavetap_amdgpu::Board;
use wavetap_profile::file::{Profile, Work};
use wavetap_profile::time::TimeProfile;

/// Kernels whose findings are in a summary; instances of a template are one.
pub const KERNELS: usize = 4;
/// Starting launches is said to take long from this part of the run's time on.
const MUCH: f64 = 0.3;
/// If there are so many.
const MANY: u64 = 8;
/// Findings of a kernel in a summary.
const FINDINGS: usize = 4;

/// What a summary is made from besides the report.
#[derive(Debug, Clone, Copy)]
pub struct SummaryInputs<'a> {
    /// The run.
    pub profile: &'a Profile,
    /// The board that was named.
    pub board: Option<&'static Board>,
    /// What is known of the code of kernels.
    pub code: &'a [CodeOfKernel],
}

/// The kernels of a profile whose findings a summary has, by their places; of instances of a template the largest.
#[must_use]
pub fn largest(profile: &Profile, time: Option<&TimeProfile>) -> Vec<usize> {
    let sizes = match time {
        Some(time) => {
            let modelled = |kernel: &wavetap_profile::file::KernelTotals| cycles(time, &kernel.object, &kernel.name);
            profile.kernels.iter().map(modelled).collect()
        }
        None => sizes_by_count(profile.kernels.iter().map(|kernel| (kernel.work, kernel.waves))).1,
    };
    let names: Vec<(&str, &str)> = profile.kernels.iter().map(|kernel| (&*kernel.target, &*kernel.demangled)).collect();
    groups(&names, &sizes).iter().take(KERNELS).map(Group::largest).collect()
}

/// Modelled cycles of a kernel.
fn cycles(time: &TimeProfile, object: &str, name: &str) -> u64 {
    let mut of_kernel = time.kernels.iter().filter(|time| time.object == object && time.name == name);
    of_kernel.next().map_or(0, |time| time.modelled_cycles)
}

/// What kernels with so much work and so many waves have shares of where no time is modelled, and how much of it.
fn sizes_by_count(kernels: impl Iterator<Item = (Option<Work>, u64)>) -> (SharesOf, Vec<u64>) {
    let (work, waves): (Vec<Option<Work>>, Vec<u64>) = kernels.unzip();
    let instructions: Option<Vec<u64>> = work.iter().map(|work| work.map(|work| work.instructions)).collect();
    instructions.map_or((SharesOf::Waves, waves), |sizes| (SharesOf::Instructions, sizes))
}

impl Report {
    /// Adds the launch table and the summary: when waits and modelled time are there.
    pub fn summarise(&mut self, inputs: &SummaryInputs<'_>) {
        let SummaryInputs { profile, board, code } = *inputs;
        let mut table = LaunchTable::new(LaunchInputs { profile, board, time: self.time.as_ref(), code });
        let kernels = table.rows.iter_mut().map(|row| &mut row.kernel);
        for named in kernels.chain(table.warnings.iter_mut().map(|warning| &mut warning.kernel)) {
            let is_it = |kernel: &&Kernel| named.is(&kernel.object, &kernel.name);
            named.variant = self.kernels.iter().find(is_it).and_then(|kernel| kernel.variant.clone());
        }
        self.summary = Some(Summary::new(self, &table, code));
        self.launch_table = Some(table);
    }
}

impl Summary {
    /// The summary of a report with these launches.
    #[must_use]
    pub fn new(report: &Report, launches: &LaunchTable, code: &[CodeOfKernel]) -> Summary {
        let (shares_of, sizes) = sizes(report);
        let all: u64 = sizes.iter().fold(0, |sum, size| sum.saturating_add(*size));
        let share = |size: u64| if all == 0 { 0.0 } else { size as f64 / all as f64 };
        let names: Vec<(&str, &str)> =
            report.kernels.iter().map(|kernel| (&*kernel.target, &*kernel.demangled)).collect();
        let groups = groups(&names, &sizes);
        let titles = titles(&names, &groups);
        let (shown, rest) = groups.split_at(groups.len().min(KERNELS));
        let kernels = shown.iter().zip(titles).map(|(group, title)| {
            let kernel = &report.kernels[group.largest()];
            let instance = |place: &usize| {
                let Kernel { name, demangled, object, .. } = &report.kernels[*place];
                Instance {
                    name: name.clone(),
                    demangled: demangled.clone(),
                    object: object.clone(),
                    share: share(sizes[*place]),
                }
            };
            let several = group.places.len() > 1;
            let subject = subject(report, group.largest(), launches, code);
            KernelSummary {
                name: kernel.name.clone(),
                demangled: kernel.demangled.clone(),
                target: kernel.target.clone(),
                object: kernel.object.clone(),
                title: labelled(&title, kernel.variant.as_deref().filter(|_| !several)),
                share: share(group.size),
                instances: group.places.iter().filter(|_| several).map(instance).collect(),
                bound: bound::bound(&subject),
                findings: find(&subject).into_iter().take(FINDINGS).collect(),
            }
        });
        Summary {
            shares_of,
            runs_differ: shown.iter().any(|group| runs_differ(&subject(report, group.largest(), launches, code))),
            kernels: kernels.collect(),
            more: rest.iter().map(|group| group.places.len() as u64).sum(),
            share_of_more: share(rest.iter().fold(0, |sum, group| sum.saturating_add(group.size))),
            launches: launch_cost(report, launches),
        }
    }
}

/// What a kernel has a share of, and all that is found of it.
#[derive(Debug, Clone)]
pub struct KernelFindings<'r> {
    /// The kernel.
    pub kernel: &'r Kernel,
    /// Its share, 0 to 1.
    pub share: f64,
    /// What is found, what matters most first.
    pub findings: Vec<Finding>,
}

/// All kernels of a report with all that is found of them, not only what a summary shows, and what the shares are of.
#[must_use]
pub fn of_all_kernels<'r>(
    report: &'r Report,
    launches: &LaunchTable,
    code: &[CodeOfKernel],
) -> (SharesOf, Vec<KernelFindings<'r>>) {
    let (shares_of, sizes) = sizes(report);
    let all: u64 = sizes.iter().fold(0, |sum, size| sum.saturating_add(*size));
    let of_kernel = |(place, size): (usize, &u64)| KernelFindings {
        kernel: &report.kernels[place],
        share: if all == 0 { 0.0 } else { *size as f64 / all as f64 },
        findings: find(&subject(report, place, launches, code)),
    };
    (shares_of, sizes.iter().enumerate().map(of_kernel).collect())
}

/// What is known of a kernel, by its place.
fn subject<'a>(report: &'a Report, place: usize, launches: &'a LaunchTable, code: &'a [CodeOfKernel]) -> Subject<'a> {
    let kernel = &report.kernels[place];
    let is_it = |object: &str, name: &str| kernel.object == object && kernel.name == name;
    let time = report.time.as_ref().map(|time| &time.kernels);
    let code = code.iter().find(|code| is_it(&code.object, &code.name));
    let mut subject = Subject {
        kernel,
        launches,
        time: time.and_then(|all| all.iter().find(|time| is_it(&time.object, &time.name))),
        memory: code.and_then(|code| code.memory.as_ref()),
        code: code.and_then(|code| code.executed.as_ref()),
        cycles: None,
    };
    if subject.time.is_none() {
        subject.cycles = bound::cycles(&subject);
    }
    subject
}

/// What starting all launches takes, if that is much beside what they run.
fn launch_cost(report: &Report, table: &LaunchTable) -> Option<LaunchCost> {
    let (mut launches, mut modelled_microseconds) = (0_u64, 0.0);
    for time in &report.time.as_ref()?.kernels {
        let of_target = table.boards.iter().find(|board| board.target == time.target)?;
        let board = Board::by_name(of_target.board.as_deref()?)?;
        launches += time.dispatches.len() as u64;
        modelled_microseconds += board.microseconds(time.modelled_cycles as f64);
    }
    let starting_microseconds = launches as f64 * bound::LAUNCH_MICROSECONDS;
    let is_much = launches >= MANY && starting_microseconds >= MUCH * (starting_microseconds + modelled_microseconds);
    is_much.then_some(LaunchCost { launches, modelled_microseconds, starting_microseconds })
}

/// Whether an instruction was not executed as often in the run whose time is modelled as in the one that was counted.
fn runs_differ(subject: &Subject<'_>) -> bool {
    let (Some(time), Some(code)) = (subject.time, subject.code) else { return false };
    time.instructions.iter().any(|modelled| {
        let counted = code.instructions.get(&modelled.address).and_then(|counted| counted.executions);
        counted.is_some_and(|counted| counted != modelled.executions)
    })
}

/// What the kernels of a report have shares of, and how much of it.
fn sizes(report: &Report) -> (SharesOf, Vec<u64>) {
    if let Some(time) = &report.time {
        let of = |kernel: &Kernel| cycles(time, &kernel.object, &kernel.name);
        return (SharesOf::ModelledCycles, report.kernels.iter().map(of).collect());
    }
    sizes_by_count(report.kernels.iter().map(|kernel| (kernel.work, kernel.waves)))
}
