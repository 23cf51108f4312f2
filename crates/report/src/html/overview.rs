//! What ran, and which of it matters: the kernels by share, how they were launched, the dispatches in order.

use std::cmp::Reverse;

use maud::{Markup, html};

use super::parts::{bar, data_table, number, share_text, short_name};
use super::{Page, Shown, launches};
use crate::fit;
use crate::launches::LaunchOccupancy;
use crate::stalls::Stalls;
use crate::style::{counted, place};
use crate::table::grouped;
use crate::text::{accuracy, cut_short, ran_on};
use wavetap_profile::probes::branches::BranchCounts;
use wavetap_profile::time::TimeProfile;

/// What the kernels' shares are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// Cycles of the timing model.
    ModelledCycles,
    /// Instructions of waves, from the counts of basic blocks.
    Instructions,
    /// Instructions of waves as the emulator saw them: those that count too.
    EmulatedInstructions,
    /// Waves.
    Waves,
}

impl Basis {
    /// The head of its column.
    fn head(self) -> &'static str {
        match self {
            Basis::ModelledCycles => "Modelled cycles",
            Basis::Instructions | Basis::EmulatedInstructions => "Instructions",
            Basis::Waves => "Waves",
        }
    }

    /// What the share is of, as a sentence.
    fn sentence(self) -> &'static str {
        match self {
            Basis::ModelledCycles => {
                "Shares are of the modelled cycles of all dispatches: the timing model's, nothing was measured."
            }
            Basis::Instructions => {
                "Shares are of the instructions that waves executed, from the counts of basic blocks. That is not time."
            }
            Basis::EmulatedInstructions => {
                "Shares are of the instructions that waves executed, as the emulator saw them, inserted ones among \
                    them. That is not time."
            }
            Basis::Waves => "Shares are of waves, because neither time nor instructions are known. That is not time.",
        }
    }
}

/// What each kernel has of the first of these that is known of all.
pub(super) fn amounts(page: &Page<'_>) -> (Basis, Vec<u64>) {
    let kernels = &page.report.kernels;
    let all = |of: &dyn Fn(usize) -> Option<u64>| (0..kernels.len()).map(of).collect::<Option<Vec<u64>>>();
    if let Some(cycles) = all(&|at| Some(page.time_of(&kernels[at])?.modelled_cycles)) {
        return (Basis::ModelledCycles, cycles);
    }
    let mix = |at: usize| page.code_of(&kernels[at])?.mix.as_ref().map(|mix| mix.total.instructions);
    if let Some(instructions) = all(&mix) {
        return (Basis::Instructions, instructions);
    }
    if let Some(work) = all(&|at| kernels[at].work.map(|work| work.instructions)) {
        return (Basis::EmulatedInstructions, work);
    }
    (Basis::Waves, kernels.iter().map(|kernel| kernel.waves).collect())
}

/// The section.
pub(super) fn section(page: &Page<'_>) -> Markup {
    html! {
        section #overview {
            h2 { "Overview" }
            p { (ran_on(page.report)) }
            @if let Some(said) = cut_short(page.report) { p.note { (said) } }
            @for accuracy in accuracy(page.report) { p.facts { "Cycles and times: " (accuracy.sentence()) "." } }
            @if page.kernels.is_empty() {
                p { "No instrumented kernel was dispatched." }
            } @else {
                @if let Some(summary) = &page.report.summary { (launches::summary(page, summary)) }
                (kernels(page))
                @match &page.report.launch_table {
                    Some(table) => (launches::table(page, table)),
                    None => (shapes(page)),
                }
                (super::roofline::section(page))
                (timeline(page))
            }
        }
    }
}

fn kernels(page: &Page<'_>) -> Markup {
    let has_findings = page.kernels.iter().any(|shown| findings(page, shown).is_some());
    let stalls: Vec<Option<Stalls<'_>>> =
        page.kernels.iter().map(|shown| page.time_of(shown.kernel).and_then(Stalls::of_time)).collect();
    let is_modelled = stalls.iter().any(Option::is_some);
    let has_waits = is_modelled || page.kernels.iter().any(|shown| !shown.kernel.chains.is_empty());
    let head = html! {
        th { "Kernel" } th.n { "Share" }
        @if is_modelled {
            th title="the source line at which waves stood longest in the timing model" { "Waits most at (modelled)" }
        } @else if has_waits {
            th { "Waits most for (predicted)" }
        }
        @if has_findings { th.n title="findings in recorded accesses" { "Findings" } }
        th.n { (page.basis.head()) } th.n { "Dispatches" } th.n { "Waves" }
        th.n title="of executions of branches that narrow EXEC" { "Divergent" }
        th { "Occupancy" }
    };
    let rows = html! {
        @for (shown, stalls) in page.kernels.iter().zip(&stalls) {
            tr {
                td.name { a href=(format!("#{}", shown.id)) title=(shown.kernel.demangled) { (short_name(shown)) } }
                td.n data-v=(shown.share) { (bar(shown.share)) (share_text(shown.share)) }
                @if has_waits { td.text { (waits_most(shown, stalls.as_ref(), is_modelled)) } }
                @if has_findings { td.n { (number(findings(page, shown))) } }
                td.n { (grouped(shown.amount)) }
                td.n { (grouped(shown.kernel.dispatches)) }
                td.n { (grouped(shown.kernel.waves)) }
                td.n { (divergence(shown).map(share_text).unwrap_or_default()) }
                td { (shown.kernel.occupancy().unwrap_or_default().trim_start_matches("occupancy ")) }
            }
        }
    };
    html! {
        p.facts { (page.basis.sentence()) }
        (data_table("Kernels", "kernels", &head, &rows))
    }
}

/// Where a kernel waits most: in the timing model, or, of a kernel whose time was not modelled, as predicted.
fn waits_most(shown: &Shown<'_>, stalls: Option<&Stalls<'_>>, is_modelled: bool) -> String {
    let chains = &shown.kernel.chains;
    let Some(stalls) = stalls else {
        let predicted = chains.first().map(|chain| chain.reading.as_str()).unwrap_or_default();
        return if is_modelled && !predicted.is_empty() {
            format!("predicted: {predicted}")
        } else {
            predicted.to_owned()
        };
    };
    let hottest = stalls.hottest_line().map(|(source, cycles, address)| (place(Some(source)), cycles, address));
    let first = || {
        stalls.in_order().first().map(|each| (format!("{:x}", each.address), stalls.cycles(each.address), each.address))
    };
    let Some((place, cycles, address)) = hottest.or_else(first) else { return String::new() };
    let reason = stalls.reason(address).unwrap_or_default();
    format!("{place}: {} of stall cycles, {reason}", share_text(stalls.share(cycles)))
}

/// In how many executions of branches that narrow EXEC the lanes did not agree; none where none was executed.
fn divergence(shown: &Shown<'_>) -> Option<f64> {
    let (mut executions, mut divergences) = (0_u64, 0_u64);
    for branch in &shown.kernel.sections.branches {
        if let BranchCounts::Exec(exec) = branch.counts {
            executions = executions.saturating_add(exec.executions);
            divergences = divergences.saturating_add(exec.divergences());
        }
    }
    (executions > 0).then(|| divergences as f64 / executions as f64)
}

/// How many findings are worth a look; none where no access was recorded.
fn findings(page: &Page<'_>, shown: &Shown<'_>) -> Option<u64> {
    let recorded = page.code_of(shown.kernel)?.memory.as_ref()?.recorded.as_ref()?;
    Some(recorded.findings.iter().filter(|finding| !finding.folded && !finding.note).count() as u64)
}

/// How kernels were launched, where no table of that was made.
fn shapes(page: &Page<'_>) -> Markup {
    // In the order of first dispatch, which is the report's.
    let shown = |at: usize| page.kernels.iter().find(|shown| std::ptr::eq(shown.kernel, &page.report.kernels[at]));
    let order: Vec<&Shown<'_>> = (0..page.report.kernels.len()).filter_map(shown).collect();
    if order.iter().all(|shown| shown.kernel.launches.is_empty()) {
        return html! { p.facts { "How the kernels were launched is not recorded in this profile." } };
    }
    let axes = |of: [u32; 3]| of.map(|axis| axis.to_string()).join("×");
    let head = html! {
        th { "Kernel" } th { "Grid (work-items)" } th { "Workgroup" } th.n { "Workgroups" }
        th.n title="bytes of LDS that the launch added" { "Dynamic LDS" } th.n { "Dispatches" } th { "Occupancy" }
    };
    let rows = html! {
        @for shown in order {
            @for launch in &shown.kernel.launches {
                @let shape = &launch.shape;
                tr {
                    td.name { a href=(format!("#{}", shown.id)) { (short_name(shown)) } }
                    td { (shape.grid.map_or_else(|| "several".to_owned(), axes)) }
                    td { (axes(shape.workgroup)) }
                    td.n { (number(shape.grid.map(|grid| workgroups(grid, shape.workgroup)))) }
                    td.n { (grouped(shape.dynamic_lds.into())) }
                    td.n { (grouped(shape.dispatches)) }
                    td { (launch.occupancy.map(LaunchOccupancy::text).unwrap_or_default()) }
                }
            }
        }
    };
    html! {
        details.part open[page.kernels.len() <= FEW] {
            summary { h3 { "Launches" } }
            p.facts { "Kernels in the order of their first dispatch; launches of one shape are one row." }
            (data_table("Launches", "launches", &head, &rows))
        }
    }
}

/// So many kernels have their launches open.
const FEW: usize = 12;

fn workgroups(grid: [u32; 3], workgroup: [u32; 3]) -> u64 {
    let axis = |axis: usize| u64::from(grid[axis].div_ceil(workgroup[axis].max(1)));
    axis(0).saturating_mul(axis(1)).saturating_mul(axis(2))
}

/// Dispatches that the timeline draws.
const MOST_DISPATCHES: usize = 2000;
/// Kernels with a lane of their own.
const LANES: usize = 12;
/// Units of the drawing.
const WIDTH: f64 = 1000.0;
const LANE: usize = 18;
const LABELS: f64 = 230.0;
const NARROWEST: f64 = 1.0;
/// Characters that the label of a lane has room for.
const LABEL: usize = 34;

/// Dispatches in order, as wide as their modelled cycles.
fn timeline(page: &Page<'_>) -> Markup {
    let Some(time) = &page.report.time else { return Markup::default() };
    let title = html! { h3 { "Dispatches in order (modelled cycles)" } };
    if time.processes != 1 {
        let several = counted(time.processes.into(), "process", "processes");
        return html! { (title) p.facts { "No timeline: these are the dispatches of " (several) ", added up." } };
    }
    let mut dispatches = dispatches(page, time);
    dispatches.sort_unstable();
    let all = dispatches.len();
    dispatches.truncate(MOST_DISPATCHES);
    if dispatches.is_empty() {
        return Markup::default();
    }
    let cycles = dispatches.iter().fold(0_u64, |sum, (_, _, cycles)| sum.saturating_add(*cycles));
    let scale = (WIDTH - LABELS) / cycles.max(1) as f64;
    let lanes = page.kernels.len().min(LANES + 1);
    let height = lanes * LANE;
    let names: Vec<String> = page.kernels.iter().take(LANES).map(|shown| short_name(shown).into_owned()).collect();
    let names = fit::names(&names.iter().map(String::as_str).collect::<Vec<_>>(), LABEL);
    let mut begun = 0_u64;
    html! {
        (title)
        p.facts {
            "One after the other, each as wide as its modelled cycles: a dispatch begins where the one before ended. "
            (grouped(cycles)) " modelled cycles"
            @if all > MOST_DISPATCHES {
                "; the first " (grouped(MOST_DISPATCHES as u64)) " of " (grouped(all as u64)) " dispatches"
            }
            "."
        }
        div.scroll {
        svg.timeline viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            aria-label="Dispatches in order, one lane for each kernel" {
            @for lane in 0..lanes {
                rect.lane x="0" y=(lane * LANE) width=(WIDTH) height=(LANE - 2) {}
                text x="4" y=(lane * LANE + 12) { (names.get(lane).map_or("others", String::as_str)) }
            }
            @for (dispatch, kernel, cycles) in dispatches {
                @let x = LABELS + begun as f64 * scale;
                @let shown = &page.kernels[kernel];
                @let () = begun = begun.saturating_add(cycles);
                a href=(format!("#{}", shown.id)) {
                    rect x=(format!("{x:.1}")) y=(kernel.min(LANES) * LANE + 1)
                        width=(format!("{:.1}", (cycles as f64 * scale).max(NARROWEST))) height=(LANE - 4) {
                        title {
                            "dispatch " (dispatch) ": " (short_name(shown)) ", " (grouped(cycles)) " modelled cycles"
                        }
                    }
                }
            }
        }
        }
    }
}

/// Number, place of the kernel on the page, cycles.
fn dispatches(page: &Page<'_>, time: &TimeProfile) -> Vec<(u64, usize, u64)> {
    let of_kernel = |(at, shown): (usize, &Shown<'_>)| {
        let kernel = time.kernels.iter().find(|time| super::is_time_of(time, shown.kernel));
        let all = kernel.map(|kernel| kernel.dispatches.as_slice()).unwrap_or_default();
        all.iter().map(move |each| (each.dispatch, at, each.modelled_cycles)).collect::<Vec<_>>()
    };
    page.kernels.iter().enumerate().flat_map(of_kernel).collect()
}

/// The kernels in the order of the page: the largest amount first.
pub(super) fn in_order(amounts: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..amounts.len()).collect();
    order.sort_by_key(|at| (Reverse(amounts[*at]), *at));
    order
}
