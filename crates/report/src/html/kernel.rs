//! A kernel: what is known of it, why it waits, its code, and the tables of what was counted.

use maud::{Markup, html};

use super::parts::{bar, data_table, decimal, number, share_text};
use super::{Page, Shown, code, dispatches, heat, latency, memory, mix, sites, time};
use crate::branches::verdict;
use crate::launches;
use crate::slice::{Chain, CountSource, Step, WaitSlice, edge_word, operation_text};
use crate::stalls::{Stalls, causes};
use crate::style::{counted, missing_waves, not_counted, place};
use crate::table::grouped;
use crate::{Block, Branch};
use wavetap_profile::probes::branches::{BranchCounts, ExecCounts, ScalarCounts};
use wavetap_profile::time::InstructionCycles;

/// Causes of waits that are shown before the others are asked for.
const CHAINS_OPEN: usize = 5;

/// Places of modelled stalls that are shown: the code has all.
const STALLS_SHOWN: usize = 20;

/// The section; `open` says whether it is shown before it is asked for.
pub(super) fn section(page: &Page<'_>, shown: &Shown<'_>, open: bool) -> Markup {
    let kernel = shown.kernel;
    let known = page.code_of(kernel);
    // First of all: what leads to it has to know whether there is room for it.
    let code = known.and_then(|known| Some(code::section(page, shown, known, known.code.as_ref()?)));
    let code = page.room.part("code", code.unwrap_or_default());
    shown.is_listed.set(!code.0.is_empty());
    html! {
        details.kernel id=(shown.id) open[open] {
            summary {
                h2 { (kernel.demangled) }
                span.facts { (share_text(shown.share)) }
            }
            @if let Some(variant) = shown.variant { p.facts { (variant.launched(&kernel.launches)) } }
            @if let Some(build) = &kernel.build { p.facts { (build.line()) } }
            p.facts {
                (kernel.target) " · " (counted(kernel.dispatches, "dispatch", "dispatches")) " · "
                (counted(kernel.waves, "wave", "waves"))
                @if let Some(mode) = kernel.mode { " · counters in " (mode.place()) }
                @if let Some(occupancy) = kernel.occupancy() { " · " (occupancy) }
            }
            @for line in launches::lines(&kernel.launches) { p.facts { (line) } }
            @for line in missing_waves(kernel.dropped, kernel.unfinished) { p.note { (line) } }
            @if let Some(line) = not_counted(&kernel.uncounted_callees) { p.note { (line) } }
            @if let Some(known) = known.filter(|known| known.code.is_some()) {
                @if let Some(resources) = &known.code.as_ref().and_then(|code| code.kernel.as_ref()) {
                    p.facts {
                        "VGPRs " (resources.used_vgprs()) " · SGPRs " (resources.used_sgprs()) " · LDS "
                        (counted(resources.lds_bytes, "byte", "bytes")) " · scratch "
                        (counted(resources.scratch_bytes, "byte", "bytes")) " a lane"
                        @let spills = resources.spills();
                        @if !spills.is_empty() { " · spilled: " (spills) }
                    }
                }
            }
            (page.room.part("dispatches", dispatches::section(page, shown)))
            @match page.time_of(kernel).and_then(Stalls::of_time) {
                Some(stalls) => (page.room.part("why it waits", stalls_part(page, shown, &stalls))),
                None => (page.room.part("why it waits", chains(page, shown))),
            }
            @if let Some(memory) = known.and_then(|known| known.memory.as_ref()) {
                (page.room.part("findings", memory::findings(page, shown, memory)))
            }
            (code)
            @if let Some(memory) = known.and_then(|known| known.memory.as_ref()) {
                (page.room.part("accesses of memory", memory::accesses(page, shown, memory)))
                @if let Some(recorded) = &memory.recorded {
                    (page.room.part("arrays and heat maps", heat::section(page, shown, recorded)))
                }
            }
            @if let Some(mix) = known.and_then(|known| known.mix.as_ref()) {
                (page.room.part("instruction mix", mix::section(page, shown, mix)))
            }
            @if let Some(time) = page.time_of(kernel) {
                (page.room.part("modelled time", time::section(page, shown, time)))
            }
            @if let Some(latency) = &kernel.sections.measured_latency {
                (page.room.part("measured latency", latency::section(page, shown, latency)))
            }
            (page.room.part("divergent branches", exec_table(page, shown)))
            (page.room.part("uniform branches", scalar_table(page, shown)))
            (page.room.part("basic blocks", block_table(page, shown)))
            @for table in &kernel.sections.site_tables {
                (page.room.part("sites of other probes", sites::section(page, shown, table)))
            }
            (page.room.part("waits", wait_table(page, shown)))
            (left_out(page, shown))
        }
    }
}

/// What the page has no room for, and what shows it.
fn left_out(page: &Page<'_>, shown: &Shown<'_>) -> Markup {
    let left_out = page.room.take_left_out();
    html! {
        @if !left_out.is_empty() {
            p.note {
                "Left out, because the page would be too large: " (left_out.join(", ")) ". "
                code { "wavetap disasm FILE --kernel '" (shown.kernel.name) "' --counters PROFILE" } " and "
                code { "wavetap report PROFILE --binary FILE --format json" } " have it."
            }
        }
    }
}

fn chains(page: &Page<'_>, shown: &Shown<'_>) -> Markup {
    let all = &shown.kernel.chains;
    if all.is_empty() {
        return Markup::default();
    }
    let (first, more) = all.split_at(all.len().min(CHAINS_OPEN));
    html! {
        details.part open {
            summary { h3 { "Why it waits" } span.facts { "predicted, nothing was timed" } }
            p.facts {
                "What is left of an operation's latency when the wait for it begins, as often as the wait was executed."
            }
            ol.chains { @for chain in first { (chain_item(page, shown, chain)) } }
            @if !more.is_empty() {
                details {
                    summary { (counted(more.len() as u64, "more cause", "more causes")) }
                    ol.chains start=(first.len() + 1) { @for chain in more { (chain_item(page, shown, chain)) } }
                }
            }
        }
    }
}

/// Where waves stood in the timing model, each with the predicted causes of the wait.
fn stalls_part(page: &Page<'_>, shown: &Shown<'_>, stalls: &Stalls<'_>) -> Markup {
    let mut all = stalls.in_order();
    let count = all.len();
    all.truncate(STALLS_SHOWN);
    let (first, more) = all.split_at(all.len().min(CHAINS_OPEN));
    let item = |each: &InstructionCycles| stall_item(page, shown, stalls, each);
    html! {
        details.part open {
            summary { h3 { "Why it waits" } span.facts { "modelled, nothing was measured" } }
            p.facts {
                "Cycles that waves stood at an instruction in the timing model. For which operation a wait waits is \
                    predicted from the code."
            }
            ol.chains { @for each in first { (item(each)) } }
            @if !more.is_empty() {
                details {
                    summary {
                        (counted(more.len() as u64, "more place", "more places"))
                        @if count > STALLS_SHOWN { " of " (count - first.len()) }
                    }
                    ol.chains start=(first.len() + 1) { @for each in more { (item(each)) } }
                }
            }
        }
    }
}

fn stall_item(page: &Page<'_>, shown: &Shown<'_>, stalls: &Stalls<'_>, each: &InstructionCycles) -> Markup {
    let cycles = stalls.cycles(each.address);
    let source = place(each.source.as_ref());
    let mut causes = causes(&shown.kernel.chains, each.address).peekable();
    html! {
        li {
            (bar(stalls.share(cycles))) b { (share_text(stalls.share(cycles))) } " "
            (grouped(cycles)) " modelled stall cycles at "
            @if !source.is_empty() { b { (source) } " " }
            "(" (page.address(shown, each.address)) " " code { (each.instruction) } "), most of them "
            (stalls.reason(each.address).unwrap_or_default())
            @if causes.peek().is_some() {
                @for chain in causes {
                    p.cause { (chain.reading) }
                    (chain_steps(page, shown, chain))
                }
            }
        }
    }
}

fn chain_item(page: &Page<'_>, shown: &Shown<'_>, chain: &Chain) -> Markup {
    html! {
        li {
            (bar(chain.kernel_share)) b { (share_text(chain.kernel_share)) } " "
            (grouped(chain.predicted_cycles)) " cycles"
            @if chain.evidence.executions == CountSource::Unknown { " each time it was executed" }
            ": " (chain.reading)
            (chain_steps(page, shown, chain))
        }
    }
}

/// From a wait to where what it waits for comes from.
fn chain_steps(page: &Page<'_>, shown: &Shown<'_>, chain: &Chain) -> Markup {
    // Which branch it is matters where it has left lanes out.
    let mask = chain.mask.iter().filter(|_| chain.evidence.active_lanes.is_some());
    let step = |step: &Step| {
        html! {
            tr {
                td { (edge_word(step.edge)) }
                td { (page.address(shown, step.address)) }
                td.i { (step.instruction) }
                td {
                    (place(step.source.as_ref()))
                    @for (number, inlined) in step.inlined.iter().enumerate() {
                        @if number > 0 || step.source.is_some() { ", " }
                        "inlined at " (place(Some(&inlined.called_at)))
                    }
                }
            }
        }
    };
    html! {
        table.steps { tbody { @for each in chain.path.iter().chain(mask) { (step(each)) } } }
        @if chain.through_memory {
            p.facts { "A value of these was loaded from memory that it is not certain who wrote." }
        }
    }
}

/// A part that opens when it is asked for.
pub(super) fn closed_part(title: &str, content: &Markup) -> Markup {
    html! { details.part { summary { h3 { (title) } } (content) } }
}

fn exec_table(page: &Page<'_>, shown: &Shown<'_>) -> Markup {
    let exec = |branch: &Branch| matches!(branch.counts, BranchCounts::Exec(_));
    if !shown.kernel.sections.branches.iter().any(exec) {
        return Markup::default();
    }
    let lanes = shown.kernel.wave_size().map_or_else(|| "Lanes".to_owned(), |lanes| format!("Lanes of {lanes}"));
    let head = html! {
        th { "Address" } th { "Instruction" } th { "Source" } th.n { "Executions" } th.n { "Agreements" }
        th.n { "Divergences" } th.n { "Empty" } th.n { (lanes) " before" } th.n { "after" } th { "Verdict" }
    };
    let row = |branch: &Branch| {
        let BranchCounts::Exec(exec) = branch.counts else { return Markup::default() };
        let ExecCounts { executions, agreements, empty, .. } = exec;
        let lanes = exec.average_lanes();
        let share = exec.divergences() as f64 / executions.max(1) as f64;
        html! {
            tr {
                td { (page.address(shown, branch.address)) } td.i { (branch.instruction) }
                td { (place(branch.source.as_ref())) }
                td.n { (grouped(executions)) } td.n { (grouped(agreements)) }
                td.n { (grouped(exec.divergences())) }
                td.n { @if empty > 0 { (grouped(empty)) } }
                td.n { (decimal(lanes.map(|(before, _)| before))) } td.n { (decimal(lanes.map(|(_, after)| after))) }
                td { @if share > 0.0 { (bar(share)) } (verdict(&branch.counts)) }
            }
        }
    };
    let rows = html! { @for branch in &shown.kernel.sections.branches { (row(branch)) } };
    closed_part("Divergent branches", &data_table("Divergent branches", "divergent", &head, &rows))
}

fn scalar_table(page: &Page<'_>, shown: &Shown<'_>) -> Markup {
    let scalar = |branch: &&Branch| matches!(branch.counts, BranchCounts::Scalar(_));
    let all: Vec<&Branch> = shown.kernel.sections.branches.iter().filter(scalar).collect();
    if all.is_empty() {
        return Markup::default();
    }
    let head = html! {
        th { "Address" } th { "Instruction" } th { "Source" } th.n { "Executions" } th.n { "Taken" } th { "Verdict" }
    };
    let row = |branch: &Branch| {
        let BranchCounts::Scalar(ScalarCounts { executions, taken }) = branch.counts else { return Markup::default() };
        html! {
            tr {
                td { (page.address(shown, branch.address)) } td.i { (branch.instruction) }
                td { (place(branch.source.as_ref())) }
                td.n { (grouped(executions)) } td.n { (grouped(taken)) } td { (verdict(&branch.counts)) }
            }
        }
    };
    let rows = html! { @for branch in all { (row(branch)) } };
    closed_part("Uniform branches", &data_table("Uniform branches", "uniform", &head, &rows))
}

fn block_table(page: &Page<'_>, shown: &Shown<'_>) -> Markup {
    let blocks = &shown.kernel.sections.blocks;
    if blocks.is_empty() {
        return Markup::default();
    }
    let head = html! {
        th { "Address" } th { "First instruction" } th { "Source" } th.n { "Executions" } th.n { "Lanes" }
    };
    let row = |block: &Block| {
        html! {
            tr {
                td { (page.address(shown, block.address)) } td.i { (block.instruction) }
                td { (place(block.source.as_ref())) }
                td.n { (grouped(block.counts.executions)) } td.n { (decimal(block.counts.average_lanes())) }
            }
        }
    };
    let rows = html! { @for block in blocks { (row(block)) } };
    closed_part("Basic blocks", &data_table("Basic blocks", "blocks", &head, &rows))
}

fn wait_table(page: &Page<'_>, shown: &Shown<'_>) -> Markup {
    let mut waits: Vec<&WaitSlice> = shown.kernel.waits.iter().filter(|wait| !wait.operations.is_empty()).collect();
    if waits.is_empty() {
        return Markup::default();
    }
    let stalls = page.time_of(shown.kernel).and_then(Stalls::of_time);
    let modelled = |wait: &WaitSlice| stalls.as_ref().map(|stalls| stalls.cycles(wait.address));
    waits.sort_by_key(|wait| std::cmp::Reverse(modelled(wait)));
    let head = html! {
        th { "Address" } th { "Wait" } th { "Counter" } th { "Source" } th.n { "Executions" }
        @if stalls.is_some() { th.n title="cycles that waves stood there in the timing model" { "Modelled stalls" } }
        th.n title="executions × static latency of the slowest operation" { "Cycles (predicted)" } th { "Waits for" }
    };
    let row = |wait: &WaitSlice| {
        html! {
            tr {
                td { (page.address(shown, wait.address)) } td.i { (wait.instruction) }
                td { (wait.counter) "(" (wait.count) ")" } td { (place(wait.source.as_ref())) }
                td.n { (wait.executions.map_or_else(|| "?".to_owned(), grouped)) }
                @if stalls.is_some() { td.n { (number(modelled(wait))) } }
                td.n { (number(Some(wait.predicted_cycles))) }
                td.i { @for operation in &wait.operations { div { (operation_text(operation)) } } }
            }
        }
    };
    let rows = html! { @for wait in waits { (row(wait)) } };
    let title = if stalls.is_some() {
        "Waits by modelled stalls"
    } else {
        "Waits (predicted: executions × static latency, nothing was timed)"
    };
    closed_part(title, &data_table("Waits", "waits", &head, &rows))
}
