//! Several runs of one program side by side: do they count the same, and what does each way of counting cost?

use serde::{Deserialize, Serialize};

use super::model::{Kernel, Report, RunInfo};
use super::table::{Align, Table, grouped};
use super::text::{Style, counted, refused_line};
use crate::profile::file::{Backend, Counts, KernelTotals, Profile, SiteTotals, Work};
use crate::profile::map::{Refused, Resources};

/// Schema of a comparison.
pub const COMPARE_SCHEMA: &str = "wavetap.compare/1";

/// One run that takes part.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// `lds`, `global`: what distinguishes it.
    pub mode: &'a str,
    /// What it counted.
    pub profile: &'a Profile,
    /// Whether the application wrote the same bytes to stdout as when it ran uninstrumented.
    pub same_output: bool,
    /// Whether it ended with the same exit code.
    pub same_exit: bool,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compare {
    /// [`COMPARE_SCHEMA`].
    pub schema: String,
    /// What ran the kernels.
    pub backend: Backend,
    /// Whether every mode counted the same for every kernel.
    pub same_counts: bool,
    /// Whether the application's stdout was the same in every run.
    pub same_output: bool,
    /// Whether its exit code was.
    pub same_exit: bool,
    /// Whether the uninstrumented run was traced, and the counts were compared with that trace.
    pub checked_against_trace: bool,
    /// Kernels in order of first dispatch.
    pub kernels: Vec<ComparedKernel>,
    /// Kernels left uncounted in some mode.
    pub refused: Vec<Refused>,
}

/// One kernel in all modes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedKernel {
    /// The counts of the first mode that counted it.
    #[serde(flatten)]
    pub kernel: Kernel,
    /// Dynamic work of the uninstrumented kernel.
    pub original_work: Option<Work>,
    /// Each mode.
    pub modes: Vec<ModeCost>,
}

/// What one mode does to one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeCost {
    /// `lds`, `global`, ….
    pub mode: String,
    /// Whether this mode counted the kernel at all.
    pub counted: bool,
    /// Whether it counted what the others did.
    pub same_counts: bool,
    /// The first thing in which it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// Dynamic work, as the emulator saw it.
    pub work: Option<Work>,
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
    /// Compares `runs` with one another and, where there is one, with the emulator's `trace` of the uninstrumented program.
    #[must_use]
    pub fn new(backend: Backend, trace: Option<&Profile>, runs: &[Run<'_>]) -> Compare {
        let mut refused: Vec<Refused> = Vec::new();
        for one in runs.iter().flat_map(|run| &run.profile.refused) {
            if !refused.contains(one) {
                refused.push(one.clone());
            }
        }
        let mut seen: Vec<&KernelTotals> = Vec::new();
        for kernel in runs.iter().flat_map(|run| &run.profile.kernels) {
            if !seen.iter().any(|known| same_kernel(known, kernel)) {
                seen.push(kernel);
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
                        .find(|kernel| kernel.name == first.name && kernel.object == first.object && kernel.target == first.target)
                        .cloned()
                        .unwrap_or_else(|| unreachable!("every report has the kernels of its profile")),
                    original_work: traced.and_then(|kernel| kernel.work),
                    modes: runs.iter().map(|run| cost(run, first, traced)).collect(),
                }
            })
            .collect();
        Compare {
            schema: COMPARE_SCHEMA.to_owned(),
            backend,
            same_counts: kernels.iter().flat_map(|kernel| &kernel.modes).all(|mode| mode.same_counts),
            same_output: runs.iter().all(|run| run.same_output),
            same_exit: runs.iter().all(|run| run.same_exit),
            checked_against_trace: trace.is_some(),
            kernels,
            refused,
        }
    }

    /// The comparison as text.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut lines = Vec::new();
        for kernel in &self.kernels {
            kernel.lines(style, &mut lines);
            lines.push(String::new());
        }
        if self.kernels.is_empty() {
            lines.push("no instrumented kernel was dispatched".to_owned());
        }
        let against = if self.checked_against_trace { ", and the emulator's trace of the original says the same" } else { "" };
        lines.push(if self.same_counts {
            format!("counts: the same in all modes{against}")
        } else {
            style.warn("counts: NOT the same, see above")
        });
        lines.push(if self.same_output {
            "output: the same bytes in all runs".to_owned()
        } else {
            style.warn("output: NOT the same bytes in all runs")
        });
        if !self.same_exit {
            lines.push(style.warn("exit code: NOT the same in all runs"));
        }
        if !self.refused.is_empty() {
            lines.push("left uncounted".to_owned());
            lines.extend(self.refused.iter().map(|kernel| refused_line(kernel, style)));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl ComparedKernel {
    fn lines(&self, style: Style, lines: &mut Vec<String>) {
        lines.push(style.bold(&style.name(&self.kernel.demangled)));
        lines.push(style.dim(&format!(
            "  {}, {}, {}",
            self.kernel.target,
            counted(self.kernel.dispatches, "dispatch", "dispatches"),
            counted(self.kernel.waves, "wave", "waves")
        )));
        let mut table = Table::new(&[
            ("mode", Align::Left),
            ("counts", Align::Left),
            ("instructions", Align::Right),
            ("added", Align::Right),
            ("global bytes", Align::Right),
            ("added", Align::Right),
            ("LDS bytes", Align::Right),
            ("added", Align::Right),
            ("SGPRs", Align::Right),
            ("VGPRs", Align::Right),
            ("LDS", Align::Right),
            ("waves/SIMD", Align::Right),
        ]);
        table.row(cost_row("original", "", self.original_work, [None; 3], self.modes.iter().find_map(|mode| mode.before)));
        for mode in &self.modes {
            let counts = match (mode.counted, mode.same_counts) {
                (false, _) => "not counted",
                (true, true) => "same",
                (true, false) => "DIFFER",
            };
            table.row(cost_row(
                &mode.mode,
                counts,
                mode.work,
                [mode.instructions_added, mode.global_bytes_added, mode.lds_bytes_added],
                mode.after,
            ));
        }
        let mut table = table.lines(2).into_iter();
        lines.extend(table.next().map(|head| style.dim(&head)));
        lines.extend(table);
        for mode in &self.modes {
            lines.extend(mode.difference.as_ref().map(|difference| style.warn(&format!("  {}: {difference}", mode.mode))));
        }
    }
}

fn cost_row(mode: &str, counts: &str, work: Option<Work>, added: [Option<i64>; 3], resources: Option<Resources>) -> Vec<String> {
    let number = |value: Option<u64>| value.map(grouped).unwrap_or_default();
    let [instructions, global, lds] = added.map(|value| value.map(signed).unwrap_or_default());
    vec![
        mode.to_owned(),
        counts.to_owned(),
        number(work.map(|work| work.instructions)),
        instructions,
        number(work.map(|work| work.global_bytes)),
        global,
        number(work.map(|work| work.lds_bytes)),
        lds,
        number(resources.map(|r| r.sgprs.into())),
        number(resources.map(|r| r.vgprs.into())),
        number(resources.map(|r| r.lds_bytes.into())),
        number(resources.map(|r| r.waves_per_simd.into())),
    ]
}

fn signed(value: i64) -> String {
    match value {
        0 => "0".to_owned(),
        1.. => format!("+{}", grouped(value.unsigned_abs())),
        _ => format!("-{}", grouped(value.unsigned_abs())),
    }
}

fn same_kernel(a: &KernelTotals, b: &KernelTotals) -> bool {
    a.name == b.name && a.object == b.object && a.target == b.target
}

fn cost(run: &Run<'_>, first: &KernelTotals, traced: Option<&KernelTotals>) -> ModeCost {
    let Some(kernel) = run.profile.kernels.iter().find(|kernel| same_kernel(kernel, first)) else {
        // A mode that refused a kernel said so; one that silently lost it counted something else than the others.
        let refused = run.profile.refused.iter().any(|refused| refused.name == first.name && refused.target == first.target);
        let difference = (!refused).then(|| "has no counts of this kernel and gives no reason".to_owned());
        return ModeCost {
            mode: run.mode.to_owned(),
            counted: false,
            same_counts: refused,
            difference,
            work: None,
            instructions_added: None,
            global_bytes_added: None,
            lds_bytes_added: None,
            before: None,
            after: None,
        };
    };
    let difference = difference(first, kernel).or_else(|| {
        let against_trace = difference_from_trace(traced?, kernel)?;
        Some(format!("unlike the emulator's trace: {against_trace}"))
    });
    let original = traced.and_then(|traced| traced.work);
    let added = |of: fn(&Work) -> u64| Some(of(kernel.work.as_ref()?) as i64 - of(original.as_ref()?) as i64);
    ModeCost {
        mode: run.mode.to_owned(),
        counted: true,
        same_counts: difference.is_none(),
        difference,
        work: kernel.work,
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
    if expected.branches.len() != found.branches.len() {
        return Some(format!("{} branches, expected {}", found.branches.len(), expected.branches.len()));
    }
    expected.branches.iter().zip(&found.branches).find_map(|(expected, found)| {
        if expected.address != found.address {
            return Some(format!("{:#x} {}: expected a site at {:#x}", found.address, found.instruction, expected.address));
        }
        different_counts(found, &expected.counts)
    })
}

/// The first thing in which a kernel's counts differ from the emulator's trace. The trace has only the sites that were reached, and those
/// of called functions, too, whose branches are not counted.
fn difference_from_trace(traced: &KernelTotals, found: &KernelTotals) -> Option<String> {
    if let Some(difference) = different_waves(traced, found) {
        return Some(difference);
    }
    let counted = found.branches.iter().find_map(|site| {
        let expected = traced.branches.iter().find(|traced| traced.address == site.address);
        different_counts(site, &expected.map_or_else(|| Counts::zero(site.counts.kind()), |traced| traced.counts))
    });
    counted.or_else(|| {
        let missed = |site: &&SiteTotals| !found.branches.iter().any(|counted| counted.address == site.address);
        let site = traced.branches.iter().find(missed).filter(|_| found.uncounted_callees.is_empty())?;
        Some(format!("{:#x} {}: reached {} times, not counted", site.address, site.instruction, site.counts.executions()))
    })
}

fn different_waves(expected: &KernelTotals, found: &KernelTotals) -> Option<String> {
    [("dispatches", expected.dispatches, found.dispatches), ("waves", expected.waves, found.waves), ("dropped waves", 0, found.dropped)]
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
    use crate::profile::file::{Origin, ScalarCounts};

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
            branches: vec![SiteTotals {
                address: 0x1000,
                instruction: "s_cbranch_scc1 4".to_owned(),
                source: None,
                counts: Counts::Scalar(ScalarCounts { executions: 9, taken }),
            }],
            ..KernelTotals::default()
        });
        profile
    }

    fn run<'a>(mode: &'a str, profile: &'a Profile) -> Run<'a> {
        Run { mode, profile, same_output: true, same_exit: true }
    }

    #[test]
    fn equal_counts_and_their_cost() {
        let (trace, lds, global) = (profile(3, 100), profile(3, 140), profile(3, 130));
        let compare = Compare::new(Backend::Emulator, Some(&trace), &[run("lds", &lds), run("global", &global)]);
        assert!(compare.same_counts);
        assert_eq!(compare.kernels[0].modes[0].instructions_added, Some(40));
        assert_eq!(compare.kernels[0].modes[1].instructions_added, Some(30));
        let text = compare.render(Style::default());
        assert!(text.contains("counts: the same in all modes"), "{text}");
        assert!(text.contains("+40"), "{text}");
        let json = serde_json::to_string(&compare).unwrap();
        assert_eq!(serde_json::from_str::<Compare>(&json).unwrap(), compare);
    }

    #[test]
    fn a_difference_is_named() {
        let (trace, lds, global) = (profile(3, 100), profile(3, 140), profile(4, 130));
        let compare = Compare::new(Backend::Emulator, Some(&trace), &[run("lds", &lds), run("global", &global)]);
        assert!(!compare.same_counts);
        assert!(compare.kernels[0].modes[0].same_counts);
        assert!(compare.render(Style::default()).contains("global: 0x1000 s_cbranch_scc1 4: counted [9, 4], expected [9, 3]"));
    }

    #[test]
    fn a_mode_that_agrees_with_the_others_and_not_with_the_trace_differs() {
        let (trace, lds) = (profile(2, 100), profile(3, 140));
        assert!(!Compare::new(Backend::Emulator, Some(&trace), &[run("lds", &lds)]).same_counts);
    }

    #[test]
    fn a_site_that_the_trace_does_not_have_was_never_reached() {
        let (mut trace, mut lds) = (profile(3, 100), profile(3, 140));
        let mut unreached = lds.kernels[0].branches[0].clone();
        (unreached.address, unreached.counts) = (0x2000, Counts::Scalar(ScalarCounts::default()));
        lds.kernels[0].branches.push(unreached);
        assert!(Compare::new(Backend::Emulator, Some(&trace), &[run("lds", &lds)]).same_counts);
        // A site that was reached and is not counted is a gap, unless it is in a function that is known not to be counted.
        trace.kernels[0].branches[0].address = 0x3000;
        assert!(!Compare::new(Backend::Emulator, Some(&trace), &[run("lds", &lds)]).same_counts);
    }

    #[test]
    fn a_kernel_without_counts_and_without_a_reason_differs() {
        let (lds, nothing) = (profile(3, 140), Profile::new(Origin::Counters, Backend::Emulator));
        assert!(!Compare::new(Backend::Emulator, None, &[run("lds", &lds), run("global", &nothing)]).same_counts);
    }
}
