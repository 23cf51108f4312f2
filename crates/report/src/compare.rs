//! Several runs of one program side by side: do they count the same, and what does each way of counting cost?

mod text;
mod time;

pub use time::ModelledTime;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::style::counted;
use super::{Kernel, Report, RunInfo};
use wavetap_profile::file::{Backend, KernelTotals, Profile, SiteTotals, Work};
use wavetap_profile::launches::UncountedDispatches;
use wavetap_profile::map::{Refused, Resources};
use wavetap_profile::schema::Counts;

/// Schema of a comparison.
pub const COMPARE_SCHEMA: &str = "wavetap.compare/1";

/// One run that takes part.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// `lds`, `global`: what distinguishes it.
    pub mode: &'a str,
    /// What it counted.
    pub profile: &'a Profile,
    /// What the emulator saw in the same run.
    pub trace: Option<&'a Profile>,
    /// How the application's stdout differs from that of the uninstrumented run.
    pub output: &'a OutputDifference,
    /// The application's exit code (128 + n after signal n).
    pub exit_code: i32,
}

/// How an output differs from that of the uninstrumented run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutputDifference {
    /// Not at all.
    #[default]
    Same,
    /// Only in numbers that look like times.
    Times(DifferentLine),
    /// In something else.
    Different(DifferentLine),
}

/// The first line in which two outputs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DifferentLine {
    /// Its number, from 1.
    pub line: u64,
    /// What the uninstrumented run wrote there; none where its output has ended.
    pub original: Option<String>,
    /// What this run wrote.
    pub found: Option<String>,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compare {
    /// [`COMPARE_SCHEMA`].
    pub schema: String,
    /// What ran the kernels.
    pub backend: Backend,
    /// Whether every mode counted the same for every kernel. Where `exact` holds as well, what differs is what the
    /// program did.
    pub same_counts: bool,
    /// Whether every mode counted what the emulator saw in the same run.
    pub exact: bool,
    /// Whether the application's stdout was the same in every run.
    pub same_output: bool,
    /// Whether its exit code was.
    pub same_exit: bool,
    /// The exit code of the uninstrumented run (128 + n after signal n).
    pub exit_code: i32,
    /// Whether every run was traced, and its counts were compared with that trace.
    pub checked_against_trace: bool,
    /// Latencies of the timing model that were set by the user, `valu32=8`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<String>,
    /// How the outputs differ, by mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<ModeOutput>,
    /// Why the comparison does not hold; none if it does.
    pub problems: Vec<String>,
    /// Kernels in order of first dispatch.
    pub kernels: Vec<ComparedKernel>,
    /// Kernels left uncounted in some mode.
    pub refused: Vec<Refused>,
}

/// One kernel in all modes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedKernel {
    /// The counts of the first mode that counted it.
    #[serde(flatten)]
    pub kernel: Kernel,
    /// Dynamic work of the uninstrumented kernel.
    pub original_work: Option<Work>,
    /// Modelled time of the uninstrumented kernel, with `--timing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_time: Option<ModelledTime>,
    /// Each mode.
    pub modes: Vec<ModeCost>,
}

/// How a mode's output differs from that of the uninstrumented run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModeOutput {
    /// `lds`, `global`, ….
    pub mode: String,
    /// The difference.
    pub difference: OutputDifference,
}

/// What one mode does to one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModeCost {
    /// `lds`, `global`, ….
    pub mode: String,
    /// Whether this mode counted the kernel at all.
    pub counted: bool,
    /// Whether it counted what the others did.
    pub same_counts: bool,
    /// Whether it counted what the emulator saw in the same run; none if that is not known. Of a kernel with uncounted
    /// dispatches: whether it counted no more than that.
    pub exact: Option<bool>,
    /// Dispatches of the kernel that this mode did not count, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<UncountedDispatches>,
    /// The first thing in which it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// Dynamic work, as the emulator saw it.
    pub work: Option<Work>,
    /// Modelled time, with `--timing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<ModelledTime>,
    /// Wave-instructions more than in the uninstrumented run.
    pub instructions_added: Option<i64>,
    /// Bytes to and from global memory more than in the uninstrumented run.
    pub global_bytes_added: Option<i64>,
    /// Bytes to and from LDS more than in the uninstrumented run.
    pub lds_bytes_added: Option<i64>,
    /// Resources before the rewrite.
    pub before: Option<Resources>,
    /// Resources after it.
    pub after: Option<Resources>,
}

impl Compare {
    /// Compares `runs` with one another, each with the emulator's trace of itself, and with the uninstrumented run: its
    /// `trace` and its exit code.
    #[must_use]
    pub fn new(backend: Backend, trace: Option<&Profile>, exit_code: i32, runs: &[Run<'_>]) -> Compare {
        let mut refused: Vec<Refused> = Vec::new();
        for one in runs.iter().flat_map(|run| &run.profile.refused) {
            if !refused.contains(one) {
                refused.push(one.clone());
            }
        }
        let mut seen: Vec<&KernelTotals> = Vec::new();
        for (run, kernel) in runs.iter().flat_map(|run| run.profile.kernels.iter().map(move |kernel| (run, kernel))) {
            match seen.iter_mut().find(|known| same_kernel(known, kernel)) {
                // Modes are compared with one that counted all dispatches, if there is one.
                Some(known) if uncounted(run, kernel).is_empty() && known.dispatches < kernel.dispatches => {
                    *known = kernel
                }
                Some(_) => {}
                None => seen.push(kernel),
            }
        }
        let reports: Vec<Report> = runs.iter().map(|run| Report::new(run.profile, RunInfo::default())).collect();
        let kernels: Vec<ComparedKernel> = seen
            .into_iter()
            .map(|first| {
                let traced = trace.and_then(|trace| trace.kernels.iter().find(|kernel| same_kernel(kernel, first)));
                ComparedKernel {
                    kernel: reports
                        .iter()
                        .flat_map(|report| &report.kernels)
                        .find(|kernel| {
                            kernel.name == first.name
                                && kernel.object == first.object
                                && kernel.target == first.target
                                && kernel.dispatches == first.dispatches
                        })
                        .cloned()
                        .unwrap_or_else(|| unreachable!("every report has the kernels of its profile")),
                    original_work: traced.and_then(|kernel| kernel.work),
                    original_time: None,
                    modes: runs.iter().map(|run| cost(run, first, traced)).collect(),
                }
            })
            .collect();
        let different = runs.iter().filter(|run| *run.output != OutputDifference::Same);
        let outputs: Vec<ModeOutput> =
            different.map(|run| ModeOutput { mode: run.mode.to_owned(), difference: run.output.clone() }).collect();
        let modes = || kernels.iter().flat_map(|kernel| &kernel.modes);
        let mut compare = Compare {
            schema: COMPARE_SCHEMA.to_owned(),
            backend,
            same_counts: modes().all(|mode| mode.same_counts),
            exact: modes().all(|mode| mode.exact.unwrap_or(mode.same_counts)),
            same_output: outputs.is_empty(),
            same_exit: runs.iter().all(|run| run.exit_code == exit_code),
            exit_code,
            checked_against_trace: !runs.is_empty() && runs.iter().all(|run| run.trace.is_some()),
            latencies: Vec::new(),
            outputs,
            problems: Vec::new(),
            kernels,
            refused,
        };
        compare.problems = compare.find_problems(runs);
        compare
    }

    fn find_problems(&self, runs: &[Run<'_>]) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.same_exit {
            let codes = runs.iter().map(|run| format!("{} with {}", run.mode, run.exit_code));
            problems.push(format!(
                "the exit code is not the same in all runs: original {}, {}",
                self.exit_code,
                codes.collect::<Vec<_>>().join(", ")
            ));
        } else if self.exit_code != 0 {
            problems.push(format!("the application failed in every run (exit code {})", self.exit_code));
        }
        if self.kernels.is_empty() {
            problems.push("no dispatch of an instrumented kernel has ended: there is nothing to compare".to_owned());
        }
        if !self.exact {
            problems.push("the counts are not those of the emulator's trace".to_owned());
        }
        let missing = |mode: &ModeCost| mode.uncounted.iter().map(|dispatches| dispatches.dispatches).sum::<u64>();
        let missing: u64 = self.kernels.iter().flat_map(|kernel| &kernel.modes).map(missing).sum();
        if missing > 0 {
            problems.push(format!("{} not counted, see above", counted(missing, "dispatch is", "dispatches are")));
        }
        if self.outputs.iter().any(|output| matches!(output.difference, OutputDifference::Different(_))) {
            problems.push("the output is not the same in all runs".to_owned());
        }
        if !self.refused.is_empty() {
            problems.push(format!("{} left uncounted", counted(self.refused.len() as u64, "kernel is", "kernels are")));
        }
        problems
    }
}

fn same_kernel(a: &KernelTotals, b: &KernelTotals) -> bool {
    a.name == b.name && a.object == b.object && a.target == b.target
}

/// The dispatches of a kernel that a run has not counted, though it was to.
fn uncounted(run: &Run<'_>, kernel: &KernelTotals) -> Vec<UncountedDispatches> {
    let same = |other: &&UncountedDispatches| {
        other.why.is_gap()
            && other.name == kernel.name
            && other.object == kernel.object
            && other.target == kernel.target
    };
    run.profile.uncounted.iter().filter(same).cloned().collect()
}

fn cost(run: &Run<'_>, first: &KernelTotals, traced: Option<&KernelTotals>) -> ModeCost {
    let own = run.trace.map(|trace| trace.kernels.iter().find(|kernel| same_kernel(kernel, first)));
    let uncounted = uncounted(run, first);
    let Some(kernel) = run.profile.kernels.iter().find(|kernel| same_kernel(kernel, first)) else {
        // A mode that refused a kernel said so; one that silently lost it counted something else than the others.
        let refused =
            run.profile.refused.iter().any(|refused| refused.name == first.name && refused.target == first.target);
        let explained = refused || !uncounted.is_empty();
        let lost = !explained && own.is_none_or(|own| own.is_some());
        let difference = match (explained, lost) {
            (true, _) => None,
            (false, true) => Some("has no counts of this kernel and gives no reason".to_owned()),
            (false, false) => Some("did not dispatch this kernel".to_owned()),
        };
        return ModeCost {
            mode: run.mode.to_owned(),
            counted: false,
            same_counts: explained,
            exact: Some(!lost),
            uncounted,
            difference,
            work: None,
            time: None,
            instructions_added: None,
            global_bytes_added: None,
            lds_bytes_added: None,
            before: None,
            after: None,
        };
    };
    // A trace may have sites of probes that this run was not instrumented with.
    let probes: BTreeSet<&str> =
        run.profile.kernels.iter().flat_map(|kernel| &kernel.sites).map(|site| site.key().1).collect();
    let is_counted = |site: &SiteTotals| probes.is_empty() || probes.contains(site.key().1);
    let from_trace = own.map(|own| match own {
        // The trace has all dispatches, and not which of them were counted.
        Some(own) if !uncounted.is_empty() => more_than_traced(own, kernel, &uncounted),
        Some(own) => difference_from_trace(own, kernel, is_counted)
            .map(|different| format!("unlike the emulator's trace of this run: {different}")),
        None => Some("the emulator's trace of this run has no such kernel".to_owned()),
    });
    let from_first = difference(first, kernel).filter(|_| uncounted.is_empty());
    let same_counts = from_first.is_none();
    let exact = from_trace.as_ref().map(Option::is_none);
    let difference = from_trace.flatten().or(from_first);
    let original = traced.and_then(|traced| traced.work);
    let added = |of: fn(&Work) -> u64| Some(of(kernel.work.as_ref()?) as i64 - of(original.as_ref()?) as i64);
    ModeCost {
        mode: run.mode.to_owned(),
        counted: true,
        same_counts,
        exact,
        uncounted,
        difference,
        work: kernel.work,
        time: None,
        instructions_added: added(|work| work.instructions),
        global_bytes_added: added(|work| work.global_bytes),
        lds_bytes_added: added(|work| work.lds_bytes),
        before: kernel.before,
        after: kernel.after,
    }
}

/// The first thing in which two counts of a kernel differ.
fn difference(expected: &KernelTotals, found: &KernelTotals) -> Option<String> {
    if let Some(difference) = different_waves(expected, found) {
        return Some(difference);
    }
    if expected.sites.len() != found.sites.len() {
        return Some(format!("{} branches, expected {}", found.sites.len(), expected.sites.len()));
    }
    expected.sites.iter().zip(&found.sites).find_map(|(expected, found)| {
        if expected.address != found.address {
            return Some(format!(
                "{:#x} {}: expected a site at {:#x}",
                found.address, found.instruction, expected.address
            ));
        }
        let (kind, other) = (found.counts.kind(), expected.counts.kind());
        if kind != other {
            return Some(format!(
                "{:#x} {}: counts of kind {kind}, expected {other}",
                found.address, found.instruction
            ));
        }
        different_counts(found, &expected.counts)
    })
}

/// The first thing in which a kernel's counts differ from the emulator's trace. The trace has only the sites that were
/// reached, and those of called functions, too, whose branches are not counted.
fn difference_from_trace(
    traced: &KernelTotals,
    found: &KernelTotals,
    is_counted: impl Fn(&SiteTotals) -> bool,
) -> Option<String> {
    if let Some(difference) = different_waves(traced, found) {
        return Some(difference);
    }
    if let Some(difference) = found.sites.iter().find_map(|site| different_counts(site, &traced_counts(traced, site))) {
        return Some(difference);
    }
    let missed = |site: &&SiteTotals| is_counted(site) && !found.sites.iter().any(|counted| counted.is_same_site(site));
    let site = traced.sites.iter().find(missed).filter(|_| found.uncounted_callees.is_empty())?;
    let executions =
        site.counts.executions().map_or_else(|| "it was reached".to_owned(), |times| format!("reached {times} times"));
    Some(format!("{:#x} {}: {executions}, not counted", site.address, site.instruction))
}

/// What a kernel of which some dispatches were not counted has more of than the emulator's trace of all of them.
fn more_than_traced(traced: &KernelTotals, found: &KernelTotals, uncounted: &[UncountedDispatches]) -> Option<String> {
    let missing: u64 = uncounted.iter().map(|dispatches| dispatches.dispatches).sum();
    if found.dispatches + missing != traced.dispatches {
        return Some(format!(
            "{} dispatches and {missing} uncounted, the trace has {}",
            found.dispatches, traced.dispatches
        ));
    }
    found.sites.iter().find_map(|site| {
        let expected = traced_counts(traced, site);
        let more = site.counts.values().iter().zip(expected.values()).any(|(found, expected)| found > expected);
        more.then(|| different_counts(site, &expected))
            .flatten()
            .map(|different| format!("more than the trace: {different}"))
    })
}

/// What a trace has of a site: nothing where it was not reached.
fn traced_counts(traced: &KernelTotals, site: &SiteTotals) -> Counts {
    let found = traced.sites.iter().find(|traced| traced.is_same_site(site));
    found.map_or_else(|| Counts::zero(site.counts.kind()), |traced| traced.counts.clone())
}

fn different_waves(expected: &KernelTotals, found: &KernelTotals) -> Option<String> {
    [
        ("dispatches", expected.dispatches, found.dispatches),
        ("waves", expected.waves, found.waves),
        ("dropped waves", 0, found.dropped),
    ]
    .into_iter()
    .find(|(_, expected, found)| expected != found)
    .map(|(what, expected, found)| format!("{found} {what}, expected {expected}"))
}

fn different_counts(found: &SiteTotals, expected: &Counts) -> Option<String> {
    (found.counts != *expected).then(|| {
        let (counted, expected) = (found.counts.values(), expected.values());
        format!("{:#x} {}: counted {counted:?}, expected {expected:?}", found.address, found.instruction)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Style;
    use wavetap_profile::file::Origin;
    use wavetap_profile::launches::NotCounted;
    use wavetap_profile::probes::branches::ScalarCounts;

    fn profile(taken: u64, instructions: u64) -> Profile {
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        profile.kernels.push(KernelTotals {
            name: "_Z1kv".to_owned(),
            demangled: "k()".to_owned(),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            dispatches: 1,
            waves: 2,
            work: Some(Work { instructions, global_bytes: 8, lds_bytes: 0 }),
            sites: vec![SiteTotals {
                address: 0x1000,
                instruction: "s_cbranch_scc1 4".to_owned(),
                source: None,
                counts: ScalarCounts { executions: 9, taken }.into(),
            }],
            ..KernelTotals::default()
        });
        profile
    }

    /// A run whose trace says what was counted, unless another trace is given.
    fn run<'a>(mode: &'a str, profile: &'a Profile, trace: Option<&'a Profile>) -> Run<'a> {
        Run { mode, profile, trace: Some(trace.unwrap_or(profile)), output: &OutputDifference::Same, exit_code: 0 }
    }

    #[test]
    fn equal_counts_and_their_cost() {
        let (trace, lds, global) = (profile(3, 100), profile(3, 140), profile(3, 130));
        let compare =
            Compare::new(Backend::Emulator, Some(&trace), 0, &[run("lds", &lds, None), run("global", &global, None)]);
        assert!(compare.same_counts && compare.exact && compare.problems.is_empty());
        assert_eq!(compare.kernels[0].modes[0].instructions_added, Some(40));
        assert_eq!(compare.kernels[0].modes[1].instructions_added, Some(30));
        let text = compare.render(Style::default());
        assert!(text.contains("counts: the same in all modes"), "{text}");
        assert!(text.contains("+40"), "{text}");
        let json = serde_json::to_string(&compare).unwrap();
        assert_eq!(serde_json::from_str::<Compare>(&json).unwrap(), compare);
    }

    #[test]
    fn executions_may_differ_between_runs_whose_counts_are_exact() {
        let (trace, lds, global) = (profile(3, 100), profile(3, 140), profile(4, 130));
        let compare =
            Compare::new(Backend::Emulator, Some(&trace), 0, &[run("lds", &lds, None), run("global", &global, None)]);
        assert!(!compare.same_counts && compare.exact && compare.problems.is_empty());
        assert!(compare.kernels[0].modes[0].same_counts);
        let text = compare.render(Style::default());
        assert!(text.contains("global: 0x1000 s_cbranch_scc1 4: counted [9, 4], expected [9, 3]"), "{text}");
        assert!(text.contains("executions differ between runs") && text.contains("--threads 1"), "{text}");
    }

    #[test]
    fn a_mode_that_agrees_with_the_others_and_not_with_its_own_trace_is_wrong() {
        let (trace, lds) = (profile(2, 100), profile(3, 140));
        let compare = Compare::new(Backend::Emulator, Some(&lds), 0, &[run("lds", &lds, Some(&trace))]);
        assert!(compare.same_counts && !compare.exact);
        assert_eq!(compare.problems, ["the counts are not those of the emulator's trace"]);
        assert!(compare.render(Style::default()).contains("lds: unlike the emulator's trace of this run"));
    }

    #[test]
    fn a_site_that_the_trace_does_not_have_was_never_reached() {
        let (mut trace, mut lds) = (profile(3, 100), profile(3, 140));
        let mut unreached = lds.kernels[0].sites[0].clone();
        (unreached.address, unreached.counts) = (0x2000, ScalarCounts::default().into());
        lds.kernels[0].sites.push(unreached);
        assert!(Compare::new(Backend::Emulator, None, 0, &[run("lds", &lds, Some(&trace))]).exact);
        // A site that was reached and is not counted is a gap, unless it is in a function that is known not to be
        // counted.
        trace.kernels[0].sites[0].address = 0x3000;
        assert!(!Compare::new(Backend::Emulator, None, 0, &[run("lds", &lds, Some(&trace))]).exact);
    }

    #[test]
    fn a_kernel_without_counts_and_without_a_reason_is_wrong() {
        let (lds, nothing) = (profile(3, 140), Profile::new(Origin::Counters, Backend::Emulator));
        let runs = [run("lds", &lds, None), run("global", &nothing, Some(&lds))];
        assert!(!Compare::new(Backend::Emulator, None, 0, &runs).exact);
        // One that did not run there is another execution.
        let runs = [run("lds", &lds, None), run("global", &nothing, None)];
        let compare = Compare::new(Backend::Emulator, None, 0, &runs);
        assert!(compare.exact && !compare.same_counts);
    }

    #[test]
    fn dispatches_that_were_not_counted_are_said_and_are_no_difference() {
        let (mut all, mut lds) = (profile(3, 100), profile(2, 90));
        all.kernels[0].dispatches = 2;
        let global = all.clone();
        lds.uncounted.push(UncountedDispatches {
            region: None,
            name: "_Z1kv".to_owned(),
            demangled: "k()".to_owned(),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            why: NotCounted::LdsDoesNotFit,
            detail: "no room".to_owned(),
            dispatches: 1,
        });
        let runs = [run("lds", &lds, Some(&all)), run("global", &global, None)];
        let compare = Compare::new(Backend::Emulator, Some(&all), 0, &runs);
        assert!(compare.exact, "{compare:?}");
        assert_eq!(compare.problems, ["1 dispatch is not counted, see above"]);
        assert_eq!(compare.kernels[0].modes[0].uncounted.len(), 1);
        assert_eq!(compare.kernels[0].kernel.dispatches, 2, "what is shown is of a mode that counted all");
        let text = compare.render(Style::default());
        assert!(text.contains("in part") && text.contains("lds: 1 dispatch: lds_does_not_fit: no room"), "{text}");
        assert!(!text.contains("NOT EXACT") && !text.contains("expected 2"), "{text}");
        // Of no dispatch at all: the reason is there, too.
        lds.kernels.clear();
        lds.uncounted[0].dispatches = 2;
        let runs = [run("lds", &lds, Some(&all)), run("global", &global, None)];
        let compare = Compare::new(Backend::Emulator, Some(&all), 0, &runs);
        assert_eq!(
            (compare.exact, compare.problems.as_slice()),
            (true, ["2 dispatches are not counted, see above".to_owned()].as_slice())
        );
        // More than the trace of all dispatches is wrong in any case, and so is a dispatch that is in neither.
        let mut lds = profile(4, 90);
        lds.uncounted = vec![UncountedDispatches { dispatches: 1, ..compare.kernels[0].modes[0].uncounted[0].clone() }];
        assert!(!Compare::new(Backend::Emulator, Some(&all), 0, &[run("lds", &lds, Some(&all))]).exact);
        lds.kernels[0].sites.clear();
        lds.uncounted[0].dispatches = 5;
        assert!(!Compare::new(Backend::Emulator, Some(&all), 0, &[run("lds", &lds, Some(&all))]).exact);
    }

    #[test]
    fn nothing_is_not_the_same() {
        let nothing = Profile::new(Origin::Counters, Backend::Emulator);
        let compare = Compare::new(Backend::Emulator, None, 0, &[run("lds", &nothing, None)]);
        assert_eq!(compare.problems, ["no dispatch of an instrumented kernel has ended: there is nothing to compare"]);
        assert!(!compare.render(Style::default()).contains("counts: the same"));
        let lds = profile(3, 140);
        let failed = Run { exit_code: 3, ..run("lds", &lds, None) };
        let compare = Compare::new(Backend::Emulator, None, 3, &[failed]);
        assert_eq!(compare.problems, ["the application failed in every run (exit code 3)"]);
        let compare = Compare::new(Backend::Emulator, None, 0, &[failed]);
        assert!(compare.problems[0].contains("original 0, lds with 3"), "{:?}", compare.problems);
    }

    #[test]
    fn outputs_may_differ_in_times_alone() {
        let lds = profile(3, 140);
        let line = |found: &str| DifferentLine {
            line: 2,
            original: Some("took 1.5 ms".to_owned()),
            found: Some(found.to_owned()),
        };
        let (times, other) = (OutputDifference::Times(line("took 1.7 ms")), OutputDifference::Different(line("FAIL")));
        let compare = |output| Compare::new(Backend::Emulator, None, 0, &[Run { output, ..run("lds", &lds, None) }]);
        assert!(compare(&times).problems.is_empty() && !compare(&times).same_output);
        assert!(compare(&times).render(Style::default()).contains("only in numbers that look like times"));
        assert_eq!(compare(&other).problems, ["the output is not the same in all runs"]);
        assert!(compare(&other).render(Style::default()).contains("  original: took 1.5 ms\n  lds: FAIL"));
    }
}
