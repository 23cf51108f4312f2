//! A report as text for a terminal or a pipe.

use std::borrow::Cow;

use super::branches::{agreement, verdict};
use super::launches::{self, uncounted_line};
use super::model::{Branch, Kernel, Report, RunInfo};
use super::names::short;
use super::slice::chain_lines;
use super::table::{Align, Table, grouped};
use super::variants::{self, Variant};
use wavetap_profile::file::{Backend, Origin};
use wavetap_profile::map::{CounterMode, Refused, Source};
use wavetap_profile::probes::branches::{BranchCounts, ExecCounts, ScalarCounts};
use wavetap_slice::blame::Blame;
use wavetap_slice::{OperationSlice, WaitCertainty, WaitSlice};

/// Waits listed for each kernel: the costliest. JSON has all of them.
const WAITS_SHOWN: usize = 12;
/// Causes of waits shown for each kernel: `slice` shows more.
const CHAINS_SHOWN: usize = 2;

/// Said of counts of a run that was cut short.
pub(super) const DID_NOT_END: &str = "the run did not end: these are the counts collected up to then";

/// How text is decorated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Whether to use ANSI colours.
    pub colour: bool,
    /// Whether names of kernels and functions are whole, however long they are.
    pub long_names: bool,
}

impl Style {
    /// A demangled name, shortened unless long ones are wanted.
    #[must_use]
    pub fn name(self, demangled: &str) -> Cow<'_, str> {
        if self.long_names { Cow::Borrowed(demangled) } else { short(demangled) }
    }

    /// `text` in bold.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// `text` dimmed.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// `text` as a warning.
    #[must_use]
    pub fn warn(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// `text` as something that changes where control goes.
    #[must_use]
    pub fn flow(self, text: &str) -> String {
        self.wrap("36", text)
    }

    /// `text` as something that is not as it should be.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The whole report.
#[must_use]
pub fn render(report: &Report, style: Style) -> String {
    let mut lines = vec![ran_on(report)];
    lines.extend(cut_short(report).map(|line| style.warn(&line)));
    if report.kernels.is_empty() {
        lines.push("no instrumented kernel was dispatched".to_owned());
    }
    for (kernel, variant) in variants::in_order(&report.kernels, Kernel::key) {
        lines.push(String::new());
        kernel_lines(kernel, variant, style, &mut lines);
    }
    if !report.uncounted.is_empty() {
        lines.push(String::new());
        lines.push(style.bold("dispatched and not counted"));
        lines.extend(report.uncounted.iter().map(|uncounted| {
            let line = uncounted_line(uncounted, report.variant_object(uncounted));
            if uncounted.why.is_gap() { style.warn(&line) } else { line }
        }));
    }
    if !report.refused.is_empty() {
        lines.push(String::new());
        refused_lines(&report.refused, style, &mut lines);
    }
    if let Some(time) = &report.time {
        lines.push(String::new());
        super::time::render_to(time, style, &mut lines);
    }
    lines.push(String::new());
    lines.join("\n")
}

/// That the run was cut short, if it was.
pub(super) fn cut_short(report: &Report) -> Option<String> {
    match &report.run.signal {
        Some(signal) => Some(format!(
            "the run was ended by {signal}: these are the counts of the dispatches that had ended by then"
        )),
        None => (!report.ended).then(|| DID_NOT_END.to_owned()),
    }
}

/// One line that says what ran the kernels.
#[must_use]
pub fn ran_on(report: &Report) -> String {
    let mut targets: Vec<&str> = report.kernels.iter().map(|kernel| kernel.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut parts: Vec<String> = targets.into_iter().map(str::to_owned).collect();
    if report.backend == Backend::Emulator {
        let RunInfo { strict, seed, .. } = &report.run;
        parts.extend(strict.map(|on| format!("strict {}", if on { "on" } else { "off" })));
        parts.extend(seed.map(|seed| format!("seed {seed}")));
    }
    let place = match report.backend {
        Backend::Emulator => "the built-in emulator",
        Backend::Gpu => "the GPU",
    };
    let counted = match report.origin {
        Origin::Counters => "counted by the instrumented kernels",
        Origin::Trace => "counted by the emulator's own trace",
    };
    parts.push(counted.to_owned());
    if report.processes != 1 {
        parts.push(counted_processes(report.processes));
    }
    format!("ran on {place}: {}", parts.join(", "))
}

/// `the sum of 3 processes`.
fn counted_processes(processes: u32) -> String {
    format!("the sum of {}", self::counted(processes.into(), "process", "processes"))
}

fn kernel_lines(kernel: &Kernel, variant: Option<Variant<'_>>, style: Style, lines: &mut Vec<String>) {
    lines.push(style.bold(&style.name(&kernel.demangled)));
    lines.extend(variant.map(|variant| style.dim(&format!("  {}", variant.launched(&kernel.launches)))));
    lines.push(style.dim(&format!("  {}", facts(kernel))));
    lines.extend(launches::lines(&kernel.launches).into_iter().map(|line| style.dim(&format!("    {line}"))));
    lines.extend(missing_waves(kernel.dropped, kernel.unfinished).map(|line| style.warn(&format!("  {line}"))));
    lines.extend(not_counted(&kernel.uncounted_callees).map(|line| format!("  {line}")));
    if kernel.branches.is_empty() && kernel.sections.is_empty() {
        lines.push("  no branches".to_owned());
    }
    exec_lines(kernel, style, lines);
    scalar_lines(&kernel.branches, style, lines);
    kernel.sections.lines(kernel.wave_size(), style, lines);
    wait_lines(&kernel.waits, style, lines);
    chain_lines(&kernel.chains, (Blame::Exposed, "samples"), CHAINS_SHOWN, style, lines);
}

/// What is missing from the counts of a kernel of whose waves so many were dropped and so many did not end.
pub(super) fn missing_waves(dropped: u64, unfinished: u64) -> impl Iterator<Item = String> {
    let all = [
        (dropped, "waves are missing from the counts: the record buffer was full (see --records)"),
        (unfinished, "waves began and never ended: their counts may be incomplete"),
    ];
    all.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{} {what}", grouped(count)))
}

/// Of which functions branches are missing, if of any.
pub(super) fn not_counted(callees: &[String]) -> Option<String> {
    (!callees.is_empty()).then(|| format!("not counted: branches within called functions ({})", callees.join(", ")))
}

/// The counts of a branch in one line, in the terms of the tables.
pub(super) fn counts_text(counts: &BranchCounts) -> String {
    let mut parts = Vec::new();
    match *counts {
        BranchCounts::Exec(exec) => {
            let ExecCounts { executions, agreements, empty, .. } = exec;
            parts.push(counted(executions, "execution", "executions"));
            if let Some(agreement) = agreement(&exec) {
                parts.push(format!("{} ({agreement})", counted(agreements, "agreement", "agreements")));
            }
            if empty > 0 {
                parts.push(format!("{} empty", grouped(empty)));
            }
            parts.extend(exec.average_lanes().map(|(before, after)| format!("lanes {before:.1} → {after:.1}")));
        }
        BranchCounts::Scalar(ScalarCounts { executions, taken }) => {
            parts.push(counted(executions, "execution", "executions"));
            if executions > 0 {
                parts.push(format!("{} taken", grouped(taken)));
                parts.push(format!("{} not taken", grouped(executions.saturating_sub(taken))));
            }
        }
    }
    format!("{}: {}", parts.join(", "), verdict(counts))
}

/// `gfx90a, 1 dispatch, 32 waves, counters in LDS, occupancy 8 → 8 waves per SIMD`.
fn facts(kernel: &Kernel) -> String {
    let mut facts = vec![
        kernel.target.clone(),
        counted(kernel.dispatches, "dispatch", "dispatches"),
        counted(kernel.waves, "wave", "waves"),
    ];
    facts.extend(kernel.mode.map(|mode| format!("counters in {}", mode_name(mode))));
    // Counters in registers are never those of single waves.
    if kernel.shared_records && kernel.mode != Some(CounterMode::Register) {
        facts.push("waves shared records".to_owned());
    }
    facts.extend(kernel.occupancy());
    facts.join(", ")
}

/// The place of counters in words.
#[must_use]
pub fn mode_name(mode: CounterMode) -> &'static str {
    match mode {
        CounterMode::Global => "global memory",
        CounterMode::Lds => "LDS",
        CounterMode::Register => "registers",
    }
}

/// `1 wave`, `32 waves`.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

fn exec_lines(kernel: &Kernel, style: Style, lines: &mut Vec<String>) {
    let lanes = kernel.wave_size().map_or_else(|| "active lanes".to_owned(), |lanes| format!("lanes of {lanes}"));
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("instruction", Align::Left),
        ("source", Align::Left),
        ("executions", Align::Right),
        ("agreements", Align::Right),
        ("divergences", Align::Right),
        ("empty", Align::Right),
        (&lanes, Align::Left),
        ("verdict", Align::Left),
    ]);
    for branch in &kernel.branches {
        let BranchCounts::Exec(exec) = branch.counts else { continue };
        let ExecCounts { executions, agreements, empty, .. } = exec;
        table.row([
            format!("{:#x}", branch.address),
            branch.instruction.clone(),
            place(branch.source.as_ref()),
            grouped(executions),
            grouped(agreements),
            grouped(exec.divergences()),
            if empty == 0 { String::new() } else { grouped(empty) },
            exec.average_lanes().map(|(before, after)| format!("{before:>4.1} → {after:>4.1}")).unwrap_or_default(),
            verdict(&branch.counts),
        ]);
    }
    push_table("divergent branches", &table, style, lines);
}

fn scalar_lines(branches: &[Branch], style: Style, lines: &mut Vec<String>) {
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("instruction", Align::Left),
        ("source", Align::Left),
        ("executions", Align::Right),
        ("taken", Align::Right),
        ("verdict", Align::Left),
    ]);
    for branch in branches {
        let BranchCounts::Scalar(ScalarCounts { executions, taken }) = branch.counts else { continue };
        table.row([
            format!("{:#x}", branch.address),
            branch.instruction.clone(),
            place(branch.source.as_ref()),
            grouped(executions),
            grouped(taken),
            verdict(&branch.counts),
        ]);
    }
    push_table("uniform branches", &table, style, lines);
}

/// The waits of a kernel, those that wait for nothing left out.
pub(super) fn wait_lines(waits: &[WaitSlice], style: Style, lines: &mut Vec<String>) {
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("wait", Align::Left),
        ("counter", Align::Left),
        ("source", Align::Left),
        ("executions", Align::Right),
        ("cycles", Align::Right),
        ("waits for", Align::Left),
    ]);
    let waiting: Vec<&WaitSlice> = waits.iter().filter(|wait| !wait.operations.is_empty()).collect();
    for wait in waiting.iter().take(WAITS_SHOWN) {
        let mut operations = wait.operations.iter().map(operation_text);
        // Only where one instruction waits on several counters, each with a row of its own.
        let several = waiting.iter().filter(|other| other.address == wait.address).count() > 1;
        table.row([
            format!("{:#x}", wait.address),
            wait.instruction.clone(),
            if several { format!("{}({})", wait.counter, wait.count) } else { String::new() },
            place(wait.source.as_ref()),
            wait.executions.map(grouped).unwrap_or_else(|| "?".to_owned()),
            grouped(wait.predicted_cycles),
            operations.next().unwrap_or_default(),
        ]);
        for operation in operations {
            table.row([
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                operation,
            ]);
        }
    }
    push_table("waits (predicted: executions × static latency, nothing was timed)", &table, style, lines);
    if waiting.len() > WAITS_SHOWN {
        lines.push(format!("  and {} more: --format json has all", waiting.len() - WAITS_SHOWN));
    }
}

/// An operation that is waited for, in one line.
pub(super) fn operation_text(operation: &OperationSlice) -> String {
    let sure = match operation.certainty {
        WaitCertainty::Must => "",
        WaitCertainty::May => " on some paths",
        WaitCertainty::Unordered => " maybe (completes out of order)",
    };
    match (operation.address, &operation.instruction) {
        (Some(address), Some(instruction)) => {
            let source = place(operation.source.as_ref());
            let source = if source.is_empty() { source } else { format!(" ({source})") };
            format!("{address:#x} {instruction}{source}{sure}")
        }
        _ => format!("what the caller had outstanding{sure}"),
    }
}

pub(super) fn push_table(title: &str, table: &Table, style: Style, lines: &mut Vec<String>) {
    if table.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(format!("  {title}"));
    let mut table = table.lines(2).into_iter();
    lines.extend(table.next().map(|head| style.dim(&head)));
    lines.extend(table.map(|line| highlight(line, style)));
}

/// Lines about divergence stand out.
fn highlight(line: String, style: Style) -> String {
    if line.contains("  diverges in ") { style.warn(&line) } else { line }
}

fn refused_lines(refused: &[Refused], style: Style, lines: &mut Vec<String>) {
    lines.push(style.bold("left uncounted"));
    for kernel in refused {
        lines.push(refused_line(kernel, style));
    }
}

/// One refused kernel in one line.
#[must_use]
pub fn refused_line(kernel: &Refused, style: Style) -> String {
    format!("  {} ({}): {}: {}", style.name(&kernel.demangled), kernel.target, kernel.reason, kernel.detail)
}

/// `divergence.hip:12`: the file's last component, because the directory is the same on every line.
#[must_use]
pub fn place(source: Option<&Source>) -> String {
    source
        .map(|source| format!("{}:{}", source.file.rsplit('/').next().unwrap_or(&source.file), source.line))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launches::Launch;
    use wavetap_profile::file::{KernelTotals, Profile, SiteTotals};
    use wavetap_profile::launches::LaunchShape;
    use wavetap_profile::map::Resources;

    /// A profile with one kernel that diverges in half of its executions; its name needs escaping in HTML.
    fn report() -> Report {
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        profile.complete = true;
        let exec = ExecCounts { executions: 32, agreements: 16, lanes_before: 2048, lanes_after: 512, empty: 0 };
        let site = |address, instruction: &str, counts| SiteTotals {
            address,
            instruction: instruction.to_owned(),
            source: Some(Source { file: "/src/k.hip".to_owned(), line: 7 }),
            counts,
        };
        profile.kernels.push(KernelTotals {
            name: "_Z1kIiEvv".to_owned(),
            demangled: "void k<int>()".to_owned(),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            mode: Some(CounterMode::Lds),
            dispatches: 1,
            waves: 32,
            dropped: 3,
            sites: vec![
                site(0x1a40, "s_and_saveexec_b64 s[0:1], vcc", exec.into()),
                site(0x1a44, "s_cbranch_execz 4", ScalarCounts { executions: 32, taken: 0 }.into()),
            ],
            ..KernelTotals::default()
        });
        Report::new(&profile, RunInfo { strict: Some(true), seed: Some(7), exit_code: Some(0), signal: None })
    }

    #[test]
    fn text_says_everything_without_colours() {
        let expected = "\
ran on the built-in emulator: gfx90a, strict on, seed 7, counted by the instrumented kernels

void k<int>()
  gfx90a, 1 dispatch, 32 waves, counters in LDS
  3 waves are missing from the counts: the record buffer was full (see --records)

  divergent branches
  address  instruction                     source   executions  agreements  divergences  lanes of 64  verdict
   0x1a40  s_and_saveexec_b64 s[0:1], vcc  k.hip:7          32          16           16  64.0 → 16.0  diverges in 50 % \
   of executions

  uniform branches
  address  instruction        source   executions  taken  verdict
   0x1a44  s_cbranch_execz 4  k.hip:7          32      0  never taken
";
        assert_eq!(render(&report(), Style::default()), expected);
    }

    #[test]
    fn lanes_are_of_the_waves_that_the_kernel_has() {
        let lanes = |target: &str, wave_size: Option<u32>| {
            let mut report = report();
            report.kernels[0].target = target.to_owned();
            report.kernels[0].before = wave_size.map(|wave_size| Resources { wave_size, ..Resources::default() });
            let text = render(&report, Style::default());
            text.lines()
                .find_map(|line| Some(line.split_once("divergences  ")?.1.split_once("  ")?.0.to_owned()))
                .unwrap()
        };
        assert_eq!(lanes("gfx1100", Some(32)), "lanes of 32");
        assert_eq!(lanes("gfx1100", Some(64)), "lanes of 64");
        assert_eq!(lanes("gfx942:sramecc+:xnack-", None), "lanes of 64");
        assert_eq!(lanes("gfx1250", None), "lanes of 32");
        // A trace does not say, nor do maps of versions that did not.
        assert_eq!(lanes("gfx1100", None), "active lanes");
        assert_eq!(lanes("gfx1100", Some(0)), "active lanes");
    }

    #[test]
    fn variants_of_a_kernel_are_told_apart() {
        let mut report = report();
        let mut other = report.kernels[0].clone();
        report.kernels[0].object = "3f2a91bc44".to_owned();
        other.object = "77aa00ff12".to_owned();
        let shape = LaunchShape { grid: Some([256, 2, 1]), workgroup: [64, 1, 1], dynamic_lds: 4096, dispatches: 1 };
        other.launches = vec![Launch { shape, occupancy: None }];
        report.kernels.push(Kernel { name: "between".to_owned(), demangled: "between".to_owned(), ..other.clone() });
        report.kernels.push(other);
        let text = render(&report, Style::default());
        let first = "void k<int>()\n  variant 1 of 2: code object 3f2a91bc\n";
        let second = "void k<int>()\n  variant 2 of 2: code object 77aa00ff, launched as 4×2×1 workgroups of 64×1×1 \
            with 4096 bytes of dynamic LDS\n";
        let places = [first, second, "between\n  gfx90a"]
            .map(|part| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}")));
        assert!(places.is_sorted(), "{text}");
        let page = crate::html::render(&report);
        assert!(page.contains("variant 2 of 2: code object 77aa00ff, launched as"), "{page}");
    }

    #[test]
    fn colours_change_nothing_else() {
        let coloured = render(&report(), Style { colour: true, ..Style::default() });
        assert!(coloured.contains("\x1b[33m   0x1a40"), "{coloured}");
        let mut plain = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, escape)) = rest.split_once('\x1b') {
            plain.push_str(before);
            rest = escape.split_once('m').expect("an escape sequence ends with m").1;
        }
        plain.push_str(rest);
        assert_eq!(plain, render(&report(), Style::default()));
    }

    #[test]
    fn an_unfinished_run_says_so() {
        let mut report = report();
        (report.complete, report.ended) = (false, false);
        assert!(render(&report, Style::default()).contains("the run did not end"));
        report.run.signal = Some("SIGKILL (signal 9)".to_owned());
        assert!(render(&report, Style::default()).contains("the run was ended by SIGKILL (signal 9): "));
        report.processes = 3;
        assert!(render(&report, Style::default()).contains("kernels, the sum of 3 processes\n"));
    }

    #[test]
    fn html_has_the_counts_and_escapes_names() {
        let page = crate::html::render(&report());
        assert!(page.contains("void k&lt;int&gt;()") && !page.contains("k<int>"), "{page}");
        assert!(page.contains("diverges in 50 % of executions"));
        assert!(page.starts_with("<!DOCTYPE html>") && !page.contains("http"), "one page, nothing from elsewhere");
    }

    #[test]
    fn json_can_be_read_back() {
        let report = report();
        let json = serde_json::to_string(&report).unwrap();
        assert!(json.starts_with(r#"{"schema":"wavetap.report/1","backend":"emulator""#), "{json}");
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }
}
