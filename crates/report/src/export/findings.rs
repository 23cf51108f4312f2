//! All that was found in a run, as the log that is written as SARIF and as remarks of LLVM: what a summary says of each
//! kernel, what recorded accesses show, and every branch whose lanes disagreed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::finding_rules::{FoundBy, Rules};
use crate::findings::{FindingLog, KernelNote, Level, LoggedFinding, NamedKernel};
use crate::memory::{self, Evidence, KernelMemory, MemoryFinding, MemoryReport};
use crate::style::{DID_NOT_END, counted, missing_waves, not_counted, place};
use crate::summary::{Finding, FindingKind, KernelFindings, SharesOf};
use crate::table::grouped;
use crate::{Branch, Kernel, Report};
use wavetap_profile::map::Source;
use wavetap_profile::probes::branches::{BranchCounts, ExecCounts};

/// A finding that loses this part of what it is about is an error.
const ERROR: f64 = 0.5;
/// And this part a warning.
const WARNING: f64 = 0.25;
/// What is found in a kernel with less than this share of the run is a note.
const WORTH_MENDING: f64 = 0.05;
/// Means are compared in so many parts of 1.
const PARTS: f64 = 1000.0;

/// What a log is made from.
#[derive(Debug, Clone, Copy)]
pub struct FindingInputs<'a> {
    /// The run.
    pub report: &'a Report,
    /// All kernels with all that is found of them, and what they have shares of:
    /// [`of_all_kernels`](crate::summary::of_all_kernels).
    pub kernels: &'a [KernelFindings<'a>],
    /// What the shares are of.
    pub shares_of: SharesOf,
    /// How lanes access memory, with what was recorded; of the same kernels, if there are records.
    pub memory: Option<&'a MemoryReport>,
    /// The file's name.
    pub file: &'a str,
    /// The folder that names of files are relative to.
    pub base: Option<&'a str>,
}

/// The log of the kernels that `selected` (by mangled name and target) is true of.
#[must_use]
pub fn finding_log(inputs: FindingInputs<'_>, selected: &dyn Fn(&str, &str) -> bool) -> FindingLog {
    let FindingInputs { report, kernels, shares_of, memory, file, base } = inputs;
    let mut log = FindingLog {
        file: file.to_owned(),
        base: base.map(str::to_owned),
        pass: "wavetap",
        fingerprint: "runFinding/v1",
        rules: Vec::new(),
        findings: Vec::new(),
        notes: Vec::new(),
        run: if report.ended { Vec::new() } else { vec![(Level::Warning, DID_NOT_END.to_owned())] },
        unread: memory.map(|memory| memory.unread.clone()).unwrap_or_default(),
    };
    let mut rules = Rules::default();
    let is_meant = |of: &&KernelFindings<'_>| selected(&of.kernel.name, &of.kernel.target);
    let kernels: Vec<&KernelFindings<'_>> = kernels.iter().filter(is_meant).collect();
    for of_kernel in &kernels {
        let first = log.findings.len();
        let of_summary = |finding| of_summary(of_kernel, finding, shares_of, &mut rules);
        log.findings.extend(of_kernel.findings.iter().map(of_summary));
        log.findings.extend(branches(of_kernel, &mut rules));
        let found = (log.findings.len() - first) as u64;
        log.notes.push(note(of_kernel, found, shares_of));
    }
    for kernel in memory.iter().flat_map(|memory| &memory.kernels) {
        let is_it = |of: &&&KernelFindings<'_>| of.kernel.name == kernel.name && of.kernel.target == kernel.target;
        let share = kernels.iter().find(is_it).map_or(0.0, |of| of.share);
        log.findings.extend(recorded(kernel, share, &mut rules));
    }
    log.notes.extend(left_out(report, selected));
    log.rules = rules.texts();
    number_places(&mut log.findings);
    // To a millionth, so that what is alike stays in the order of the report.
    let share = |finding: &LoggedFinding| (finding.share.unwrap_or(0.0) * 1e6) as u64;
    log.findings.sort_by_key(|finding| (Reverse(share(finding)), Reverse(finding.level)));
    log
}

/// Findings of one rule, kernel and line differ by their number.
fn number_places(findings: &mut [LoggedFinding]) {
    let mut seen: BTreeMap<(usize, String, String, String), usize> = BTreeMap::new();
    for finding in findings {
        let NamedKernel { name, target, .. } = &finding.kernel;
        let number = seen.entry((finding.rule, name.clone(), target.clone(), finding.place.clone())).or_default();
        *number += 1;
        finding.place.push_str(&format!(" {number}"));
    }
}

fn named(kernel: &Kernel) -> NamedKernel {
    let Kernel { name, demangled, target, .. } = kernel;
    NamedKernel { name: name.clone(), demangled: demangled.clone(), target: target.clone() }
}

/// The properties that are not null.
fn properties<const N: usize>(all: [(&str, Value); N]) -> Map<String, Value> {
    all.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn of_summary(of: &KernelFindings<'_>, finding: &Finding, shares_of: SharesOf, rules: &mut Rules) -> LoggedFinding {
    let KernelFindings { kernel, share, .. } = *of;
    let level = match finding.weight {
        _ if share < WORTH_MENDING => Level::Note,
        weight if weight >= ERROR => Level::Error,
        weight if weight >= WARNING => Level::Warning,
        _ => Level::Note,
    };
    let (basis, shares_of) = (finding.basis.word(), shares_of.name());
    let percent = format!("{:.1}", 100.0 * share);
    let help = Some(&finding.help).filter(|help| !help.is_empty());
    let helps = help.map(|help| format!(" What helps: {help}.")).unwrap_or_default();
    let mut arguments =
        vec![("String", format!("{} (", finding.text)), ("Basis", basis.to_owned()), ("String", ")".to_owned())];
    if let Some(help) = help {
        arguments.extend([("String", "; what helps: ".to_owned()), ("Help", help.clone())]);
    }
    arguments.extend([
        ("String", "; weight ".to_owned()),
        ("Weight", format!("{:.3}", finding.weight)),
        ("String", " in a kernel with ".to_owned()),
        ("KernelShare", percent.clone()),
        ("String", format!(" % of all {shares_of}, on ")),
        ("Target", kernel.target.clone()),
    ]);
    LoggedFinding {
        rule: rules.place(FoundBy::Summary(finding.kind)),
        level,
        // A place where much is executed is nothing that could be better.
        is_missed: finding.kind != FindingKind::HotCode,
        kernel: named(kernel),
        source: finding.source.clone(),
        address: None,
        related: Vec::new(),
        place: place(finding.source.as_ref()),
        message: format!("{} ({basis}).{helps} The kernel has {percent} % of all {shares_of}.", finding.text),
        arguments,
        share: Some(share * finding.weight.clamp(0.0, 1.0)),
        executions: None,
        properties: properties([
            ("target", json!(kernel.target)),
            ("basis", json!(finding.basis)),
            ("help", json!(help)),
            ("weight", json!(finding.weight)),
            ("kernelShare", json!(share)),
        ]),
    }
}

/// The branches whose lanes disagreed, the most often first, but for those at lines that a finding is about.
fn branches(of: &KernelFindings<'_>, rules: &mut Rules) -> Vec<LoggedFinding> {
    let kernel = of.kernel;
    let said: Vec<&Source> = of
        .findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::Divergence)
        .filter_map(|finding| finding.source.as_ref())
        .collect();
    let disagreed = |branch: &Branch| match branch.counts {
        BranchCounts::Exec(exec) if exec.divergences() > 0 => Some(exec),
        _ => None,
    };
    let is_said = |branch: &&Branch| branch.source.as_ref().is_some_and(|source| said.contains(&source));
    let mut all: Vec<(&Branch, ExecCounts)> = kernel
        .sections
        .branches
        .iter()
        .filter(|branch| !is_said(branch))
        .filter_map(|branch| Some((branch, disagreed(branch)?)))
        .collect();
    all.sort_by_key(|(branch, exec)| (Reverse(exec.divergences()), branch.address));
    all.into_iter().map(|(branch, exec)| of_branch(kernel, branch, &exec, rules)).collect()
}

fn of_branch(kernel: &Kernel, branch: &Branch, exec: &ExecCounts, rules: &mut Rules) -> LoggedFinding {
    let percent = 100.0 * exec.divergences() as f64 / exec.executions.max(1) as f64;
    let [divergences, executions, before, after] =
        [exec.divergences(), exec.executions, exec.lanes_before, exec.lanes_after].map(grouped);
    let at = format!("{:#x}", branch.address);
    LoggedFinding {
        rule: rules.place(FoundBy::Branch),
        level: Level::Note,
        is_missed: false,
        kernel: named(kernel),
        source: branch.source.clone(),
        address: Some(branch.address),
        related: Vec::new(),
        place: match place(branch.source.as_ref()) {
            line if line.is_empty() => branch.instruction.split(' ').next().unwrap_or_default().to_owned(),
            line => line,
        },
        message: format!(
            "lanes disagree in {divergences} of {executions} executions ({percent:.0} %): of {before} lanes {after} \
                stay active (counted)."
        ),
        arguments: vec![
            ("String", "lanes disagree in ".to_owned()),
            ("Divergences", exec.divergences().to_string()),
            ("String", " of ".to_owned()),
            ("Executions", exec.executions.to_string()),
            ("String", " executions: of ".to_owned()),
            ("LanesBefore", exec.lanes_before.to_string()),
            ("String", " lanes ".to_owned()),
            ("LanesAfter", exec.lanes_after.to_string()),
            ("String", " stay active, on ".to_owned()),
            ("Target", kernel.target.clone()),
            ("String", " at ".to_owned()),
            ("Address", at.clone()),
        ],
        share: None,
        executions: Some(exec.executions),
        properties: properties([
            ("target", json!(kernel.target)),
            ("basis", json!("counted")),
            ("address", json!(at)),
            ("instruction", json!(branch.instruction)),
            ("executions", json!(exec.executions)),
            ("divergences", json!(exec.divergences())),
            ("lanesBefore", json!(exec.lanes_before)),
            ("lanesAfter", json!(exec.lanes_after)),
        ]),
    }
}

/// What was found in the recorded accesses of a kernel with this share of the run.
fn recorded(kernel: &KernelMemory, share: f64, rules: &mut Rules) -> Vec<LoggedFinding> {
    let findings = kernel.recorded.iter().flat_map(|recorded| &recorded.findings);
    findings.map(|finding| of_records(kernel, finding, share, rules)).collect()
}

/// The level of a pattern: where a ratio of costs is known, as that of the code; notes, and shares too small to matter,
/// are notes.
fn level_of_records(finding: &MemoryFinding, share: f64) -> Level {
    let ratio = match finding.evidence {
        Evidence::Lines { lines, ideal } => Some((lines, ideal)),
        Evidence::Cycles { cycles, ideal, .. } => Some((cycles, ideal)),
        _ => None,
    };
    match ratio {
        _ if finding.note || finding.folded || share < WORTH_MENDING => Level::Note,
        Some((cost, ideal)) => {
            let [cost, ideal] = [cost, ideal].map(|mean| (PARTS * mean).round() as u64);
            memory::level_of(memory::Severity::of(cost, ideal))
        }
        None => Level::Warning,
    }
}

fn of_records(kernel: &KernelMemory, finding: &MemoryFinding, share: f64, rules: &mut Rules) -> LoggedFinding {
    let first = finding.sites.first();
    let source = first.and_then(|site| site.source.clone());
    let (name, because) = (memory::RecordedPattern::of(finding.kind).name, memory::because(finding));
    let array = finding.array.as_deref().map(|array| format!(" of {array}")).unwrap_or_default();
    let help = finding.fix.map(memory::may_help);
    let helps = help.map(|help| format!(" What may help: {help}.")).unwrap_or_default();
    let percent = format!("{:.1}", 100.0 * finding.share);
    let mut arguments = vec![
        ("String", format!("recorded accesses{array}: {name}: {because}; ")),
        ("Share", percent.clone()),
        ("String", " % of the kernel's".to_owned()),
    ];
    arguments.extend(
        help.map(|help| [("String", "; what may help: ".to_owned()), ("Help", help.to_owned())]).into_iter().flatten(),
    );
    arguments.extend([("String", "; on ".to_owned()), ("Target", kernel.target.clone())]);
    let addresses: Vec<String> = finding.sites.iter().map(|site| format!("{:#x}", site.address)).collect();
    LoggedFinding {
        rule: rules.place(FoundBy::Records(finding.kind)),
        level: level_of_records(finding, share),
        is_missed: !finding.note,
        kernel: NamedKernel {
            name: kernel.name.clone(),
            demangled: kernel.demangled.clone(),
            target: kernel.target.clone(),
        },
        related: Vec::new(),
        place: format!("{} {}", place(source.as_ref()), finding.array.as_deref().unwrap_or_default()),
        source,
        address: first.map(|site| site.address),
        message: format!(
            "recorded accesses{array}: {name}: {because} ({percent} % of the kernel's requests to L1, or cycles of \
                LDS).{helps}"
        ),
        arguments,
        share: Some(share * finding.share),
        executions: None,
        properties: properties([
            ("target", json!(kernel.target)),
            ("basis", json!("measured")),
            ("array", json!(finding.array)),
            ("addresses", json!(addresses)),
            ("evidence", json!(finding.evidence)),
            ("share", json!(finding.share)),
            ("kernelShare", json!(share)),
            ("allWorkgroups", json!(finding.whole)),
            ("recordsMissing", json!(finding.truncated)),
        ]),
    }
}

/// What is said of a kernel: its share, how much was found, and what its counts lack.
fn note(of: &KernelFindings<'_>, found: u64, shares_of: SharesOf) -> KernelNote {
    let KernelFindings { kernel, share, .. } = *of;
    let share = format!("{:.1} % of all {}", 100.0 * share, shares_of.name());
    let missing = missing_waves(kernel.dropped, kernel.unfinished);
    let gaps = missing.chain(not_counted(&kernel.uncounted_callees)).map(|text| (Level::Warning, text));
    let texts = std::iter::once((Level::Note, format!("{share}: {}", counted(found, "finding", "findings"))));
    KernelNote { kernel: named(kernel), name: "KernelShare", texts: texts.chain(gaps).collect() }
}

/// Kernels and dispatches that were not counted, with the reason.
fn left_out<'a>(report: &'a Report, is_meant: &'a dyn Fn(&str, &str) -> bool) -> impl Iterator<Item = KernelNote> + 'a {
    let note = |name: &str, demangled: &str, target: &str, text: String| KernelNote {
        kernel: NamedKernel { name: name.to_owned(), demangled: demangled.to_owned(), target: target.to_owned() },
        name: "NotCounted",
        texts: vec![(Level::Warning, text)],
    };
    let refused = report.refused.iter().filter(|refused| is_meant(&refused.name, &refused.target));
    let refused = refused.map(move |refused| {
        let text = format!("not instrumented ({}): {}", refused.reason, refused.detail);
        note(&refused.name, &refused.demangled, &refused.target, text)
    });
    let uncounted = report.uncounted.iter().filter(|of| of.why.is_gap() && is_meant(&of.name, &of.target));
    let uncounted = uncounted.map(move |of| {
        let text = format!("{} not counted: {}", counted(of.dispatches, "dispatch was", "dispatches were"), of.detail);
        note(&of.name, &of.demangled, &of.target, text)
    });
    refused.chain(uncounted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunInfo;
    use wavetap_profile::file::{Backend, KernelTotals, Origin, Profile};

    fn found(share: f64, weight: f64) -> LoggedFinding {
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        profile.kernels.push(KernelTotals { name: "_Z1kv".to_owned(), ..KernelTotals::default() });
        let report = Report::new(&profile, RunInfo::default());
        let finding = json!({
            "kind": "divergence",
            "text": "lanes disagree",
            "basis": "counted",
            "help": "sort the data",
            "source": { "file": "k.hip", "line": 7 },
            "weight": weight,
        });
        let finding: Finding = serde_json::from_value(finding).expect("a finding");
        let of = KernelFindings { kernel: &report.kernels[0], share, findings: Vec::new() };
        of_summary(&of, &finding, SharesOf::Waves, &mut Rules::default())
    }

    #[test]
    fn levels_are_by_weight_in_kernels_that_matter() {
        for (share, weight, level) in [
            (0.05, 0.5, Level::Error),
            (0.05, 0.49, Level::Warning),
            (1.0, 0.25, Level::Warning),
            (1.0, 0.24, Level::Note),
            (0.049, 1.0, Level::Note),
        ] {
            assert_eq!(found(share, weight).level, level, "{share}, {weight}");
        }
        let finding = found(0.5, 0.5);
        assert_eq!(finding.share, Some(0.25));
        let words = "lanes disagree (counted). What helps: sort the data. The kernel has 50.0 % of all waves.";
        assert_eq!(finding.message, words);
    }

    #[test]
    fn patterns_are_as_bad_as_what_they_cost() {
        let of = |evidence, note, folded| MemoryFinding {
            kind: memory::FindingKind::Uncoalesced,
            fix: None,
            array: None,
            sites: Vec::new(),
            evidence,
            share: 0.5,
            note,
            folded,
            truncated: false,
            whole: true,
        };
        let lines = |lines| Evidence::Lines { lines, ideal: 2.0 };
        let words = Evidence::Words { matching: 1, of: 1 };
        for (finding, share, level) in [
            (of(lines(16.0), false, false), 1.0, Level::Error),
            (of(lines(15.9), false, false), 1.0, Level::Warning),
            (of(lines(3.9), false, false), 1.0, Level::Note),
            (of(words, false, false), 1.0, Level::Warning),
            (of(words, true, false), 1.0, Level::Note),
            (of(lines(16.0), false, true), 1.0, Level::Note),
            (of(lines(16.0), false, false), 0.01, Level::Note),
        ] {
            assert_eq!(level_of_records(&finding, share), level, "{finding:?}, {share}");
        }
    }

    #[test]
    fn findings_of_one_line_have_numbers() {
        let mut all = vec![found(1.0, 0.5), found(1.0, 0.4)];
        number_places(&mut all);
        assert_eq!([&all[0].place, &all[1].place], ["k.hip:7 1", "k.hip:7 2"]);
    }
}
