//! The first lines of a report: the kernels that most went to, and of each the one or two findings that matter most.
//!
//! A finding is something that a probe, the slicer, the analysis of memory accesses or the launch table says; each kind
//! is one function of `finders`, with its evidence and its threshold. [`Finding::weight`] puts them in an order; it
//! is no prediction of what a change would gain.

pub(crate) mod data;
mod finders;
mod text;

pub use data::{Finding, FindingKind, KernelSummary, SharesOf, Summary};

use crate::launches::{CodeOfKernel, LaunchInputs, LaunchTable};
use crate::{Kernel, Report};
use finders::{FINDERS, Subject};
use wavetap_amdgpu::Board;
use wavetap_profile::file::{Profile, Work};

/// Kernels whose findings are in a summary.
pub const KERNELS: usize = 4;
/// Findings of a kernel in a summary.
const FINDINGS: usize = 2;

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

/// The kernels of a profile whose findings a summary has, where no time is modelled; by their places.
#[must_use]
pub fn largest(profile: &Profile) -> Vec<usize> {
    let (_, sizes) = sizes_by_count(profile.kernels.iter().map(|kernel| (kernel.work, kernel.waves)));
    let mut places: Vec<usize> = (0..sizes.len()).collect();
    places.sort_by_key(|place| std::cmp::Reverse(sizes[*place]));
    places.truncate(KERNELS);
    places
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
        let table = LaunchTable::new(LaunchInputs { profile, board, time: self.time.as_ref(), code });
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
        let mut places: Vec<usize> = (0..sizes.len()).collect();
        places.sort_by_key(|place| std::cmp::Reverse(sizes[*place]));
        let kernels: Vec<KernelSummary> = places
            .iter()
            .take(KERNELS)
            .map(|place| {
                let kernel = &report.kernels[*place];
                let mut findings = findings(report, kernel, launches, code);
                findings.truncate(FINDINGS);
                KernelSummary {
                    name: kernel.name.clone(),
                    demangled: kernel.demangled.clone(),
                    target: kernel.target.clone(),
                    object: kernel.object.clone(),
                    share: share(sizes[*place]),
                    findings,
                }
            })
            .collect();
        let rest = places.iter().skip(KERNELS);
        Summary {
            shares_of,
            more: rest.len() as u64,
            share_of_more: share(rest.fold(0, |sum, place| sum.saturating_add(sizes[*place]))),
            kernels,
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
    let of_kernel = |(kernel, size): (&'r Kernel, &u64)| KernelFindings {
        kernel,
        share: if all == 0 { 0.0 } else { *size as f64 / all as f64 },
        findings: findings(report, kernel, launches, code),
    };
    (shares_of, report.kernels.iter().zip(&sizes).map(of_kernel).collect())
}

/// What is found of a kernel, what matters most first.
fn findings(report: &Report, kernel: &Kernel, launches: &LaunchTable, code: &[CodeOfKernel]) -> Vec<Finding> {
    let is_it = |object: &str, name: &str| kernel.object == object && kernel.name == name;
    let time = report.time.as_ref().map(|time| &time.kernels);
    let subject = Subject {
        kernel,
        launches,
        time: time.and_then(|all| all.iter().find(|time| is_it(&time.object, &time.name))),
        memory: code.iter().find(|code| is_it(&code.object, &code.name)).and_then(|code| code.memory.as_ref()),
    };
    let mut findings: Vec<Finding> = FINDERS.iter().flat_map(|finder| finder(&subject)).collect();
    findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    findings
}

/// What the kernels of a report have shares of, and how much of it.
fn sizes(report: &Report) -> (SharesOf, Vec<u64>) {
    if let Some(time) = &report.time {
        let of = |kernel: &Kernel| {
            let same =
                |time: &&wavetap_profile::time::KernelTime| time.object == kernel.object && time.name == kernel.name;
            time.kernels.iter().find(same).map_or(0, |time| time.modelled_cycles)
        };
        return (SharesOf::ModelledCycles, report.kernels.iter().map(of).collect());
    }
    sizes_by_count(report.kernels.iter().map(|kernel| (kernel.work, kernel.waves)))
}
