//! A report as text for a terminal or a pipe.

use super::bad_access;
use super::imbalance;
use super::launches::{self, uncounted_line};
use super::regions;
use super::render::Lines;
use super::sections::{OfKernel, tables};
use super::slice::{Blame, Order, chain_lines, stall_lines, wait_lines};
use super::stalls::Stalls;
use super::style::{DID_NOT_END, counted, missing_waves, not_counted};
use super::variants::{self, Variant};
use super::{Kernel, Report, RunInfo};
use wavetap_profile::accuracy::Accuracy;
use wavetap_profile::file::{Backend, Origin};
use wavetap_profile::map::{CounterMode, Refused};

pub use super::style::{Style, place};

/// Causes of waits shown for each kernel: `slice` shows more.
const CHAINS_SHOWN: usize = 2;

/// How much of a report is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Details {
    /// Everything.
    #[default]
    All,
    /// The summary, the launch table and what is missing.
    Launches,
    /// The summary and what is missing.
    Summary,
}

/// How far modelled times may be from measured ones, if the report has any.
pub(super) fn accuracy(report: &Report) -> impl Iterator<Item = &Accuracy> {
    report.time.iter().flat_map(|time| &time.accuracy)
}

/// The whole report.
#[must_use]
pub fn render(report: &Report, style: Style) -> String {
    render_part(report, Details::All, style)
}

/// As much of the report.
#[must_use]
pub fn render_part(report: &Report, details: Details, style: Style) -> String {
    let mut lines = vec![ran_on(report)];
    lines.extend(cut_short(report).map(|line| style.warn(&line)));
    lines.extend(accuracy(report).map(|accuracy| format!("cycles and times: {}", accuracy.sentence())));
    if report.backend == Backend::Emulator && report.kernels.iter().any(Kernel::is_timed) {
        let what = "cycles of the shader's clock are modelled, if the emulator's timing model was on";
        lines.push(format!("{what}; else 4 for each instruction"));
    }
    if report.kernels.is_empty() {
        let instrumented = if report.origin == Origin::Launches { "" } else { "instrumented " };
        // What was dispatched and did not end has no counts.
        lines.push(match cut_short(report) {
            Some(_) => format!("no dispatch of any {instrumented}kernel had ended by then"),
            None => format!("no {instrumented}kernel was dispatched"),
        });
    }
    if let Some(summary) = &report.summary {
        summary.lines(style, &mut lines);
    }
    if let Some(table) = report.launch_table.as_ref().filter(|_| details != Details::Summary) {
        lines.push(String::new());
        table.lines(style, &mut lines);
    }
    if details != Details::Summary {
        regions::lines(&report.regions, style, &mut lines);
        imbalance::lines(&report.imbalance, &report.kernels, style, &mut lines);
    }
    // Of kernels of which only the launches are known there is nothing else.
    let has_details = details == Details::All && report.origin != Origin::Launches;
    for (kernel, variant) in variants::in_order(&report.kernels, Kernel::key).into_iter().filter(|_| has_details) {
        lines.push(String::new());
        kernel_lines(kernel, variant, Stalls::of(report, kernel).as_ref(), style, &mut lines);
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
    if let Some(time) = report.time.as_ref().filter(|_| details == Details::All) {
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
            "the run was ended by {signal}{}: these are the counts of the dispatches that had ended by then",
            report.run.while_running()
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
        Origin::Launches => "launches only, nothing was counted",
    };
    parts.push(counted.to_owned());
    parts.extend(report.run.region.iter().map(|region| format!("in ranges {region} alone")));
    if report.processes != 1 {
        parts.push(counted_processes(report.processes));
    }
    format!("ran on {place}: {}", parts.join(", "))
}

/// `the sum of 3 processes`.
fn counted_processes(processes: u32) -> String {
    format!("the sum of {}", counted(processes.into(), "process", "processes"))
}

fn kernel_lines(
    kernel: &Kernel,
    variant: Option<Variant<'_>>,
    stalls: Option<&Stalls<'_>>,
    style: Style,
    lines: &mut Vec<String>,
) {
    lines.push(style.bold(&style.name(&kernel.demangled)));
    lines.extend(variant.map(|variant| style.dim(&format!("  {}", variant.launched(&kernel.launches)))));
    lines.extend(kernel.build.as_ref().map(|build| style.dim(&format!("  {}", build.line()))));
    lines.push(style.dim(&format!("  {}", facts(kernel))));
    lines.extend(launches::lines(&kernel.launches).into_iter().map(|line| style.dim(&format!("    {line}"))));
    lines.extend(missing_waves(kernel.dropped, kernel.unfinished).map(|line| style.warn(&format!("  {line}"))));
    lines.extend(not_counted(&kernel.uncounted_callees).map(|line| format!("  {line}")));
    if kernel.sections.is_empty() {
        lines.push("  no branches".to_owned());
    }
    let of_kernel =
        OfKernel { target: kernel.processor(), wave_size: kernel.wave_size(), dispatches: kernel.dispatches };
    tables(&kernel.sections, of_kernel, style, lines);
    bad_access::lines(&kernel.out_of_bounds, style, lines);
    bad_access::unchecked_lines(&kernel.unchecked_accesses, style, lines);
    wait_lines(&kernel.waits, stalls.map_or(Order::Predicted, Order::Modelled), style, lines);
    match stalls {
        Some(stalls) => stall_lines(&kernel.chains, stalls, CHAINS_SHOWN, style, lines),
        None => chain_lines(&kernel.chains, Order::Predicted, (Blame::Exposed, "samples"), CHAINS_SHOWN, style, lines),
    }
}

/// `gfx90a, 1 dispatch, 32 waves, counters in LDS, occupancy 8 → 8 waves per SIMD`.
fn facts(kernel: &Kernel) -> String {
    let mut facts = vec![
        kernel.target.clone(),
        counted(kernel.dispatches, "dispatch", "dispatches"),
        counted(kernel.waves, "wave", "waves"),
    ];
    facts.extend(kernel.mode.map(|mode| format!("counters in {}", mode.place())));
    // Counters in registers are never those of single waves.
    if kernel.shared_records && kernel.mode != Some(CounterMode::Register) {
        facts.push("waves shared records".to_owned());
    }
    facts.extend(kernel.occupancy());
    facts.join(", ")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launches::Launch;
    use wavetap_profile::file::{KernelTotals, Profile, SiteTotals};
    use wavetap_profile::launches::LaunchShape;
    use wavetap_profile::map::{Resources, Source};
    use wavetap_profile::probes::branches::{ExecCounts, ScalarCounts};

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
        Report::new(&profile, RunInfo { strict: Some(true), seed: Some(7), exit_code: Some(0), ..RunInfo::default() })
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
        let page = crate::html::render(&report, &crate::html::PageData::default());
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
        report.run.running = vec!["spin(int*)".to_owned(), "other()".to_owned()];
        let text = render(&report, Style::default());
        assert!(text.contains("was ended by SIGKILL (signal 9) while spin(int*), other() ran: "), "{text}");
        let kernels = std::mem::take(&mut report.kernels);
        let text = render(&report, Style::default());
        assert!(text.contains("no dispatch of any instrumented kernel had ended by then\n"), "{text}");
        report.kernels = kernels;
        report.processes = 3;
        assert!(render(&report, Style::default()).contains("kernels, the sum of 3 processes\n"));
    }

    #[test]
    fn html_has_the_counts_and_escapes_names() {
        let page = crate::html::render(&report(), &crate::html::PageData::default());
        assert!(page.contains("void k&lt;int&gt;()") && !page.contains("k<int>"), "{page}");
        assert!(page.contains("diverges in 50 % of executions"));
        assert!(
            page.starts_with("<!DOCTYPE html>") && !page.contains("http:") && !page.contains("https:"),
            "one page, nothing from elsewhere"
        );
    }

    #[test]
    fn json_can_be_read_back() {
        let report = report();
        let json = serde_json::to_string(&report).unwrap();
        assert!(json.starts_with(r#"{"schema":"wavetap.report/1","backend":"emulator""#), "{json}");
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }
}
