//! A slice as text.

use std::collections::BTreeSet;

use super::{
    Blame, Candidate, Chain, Coverage, Edge, GivenSamples, Inlined, KernelSamples, OperationSlice, Slice, Step,
    WaitCertainty, WaitSlice,
};
use crate::stalls::{Stalls, causes};
use crate::style::{self, Style, place};
use crate::table::{Align, Table, grouped, push_table};
use wavetap_profile::pc_samples::SampleKind;

/// Waits listed for each kernel: the costliest. JSON has all of them.
const WAITS_SHOWN: usize = 12;
/// As many causes as a person looks at.
const CHAINS_SHOWN: usize = 5;
/// As many places with samples.
const PLACES_SHOWN: usize = 10;
/// As many places that ambiguous samples may be at.
const CANDIDATES_SHOWN: usize = 3;

/// By what waits are ordered.
#[derive(Clone, Copy)]
pub(crate) enum Order<'a> {
    /// The stalls of a timing model.
    Modelled(&'a Stalls<'a>),
    /// What is predicted from executions and latencies.
    Predicted,
    /// Latencies alone: executions cannot be counted.
    NotByTime,
}

/// All kernels with their waits.
#[must_use]
pub fn render(slice: &Slice, style: Style) -> String {
    let mut lines = Vec::new();
    for kernel in &slice.kernels {
        lines.push(format!("{}  {}", style.bold(&style.name(&kernel.demangled)), style.dim(&kernel.target)));
        let before = lines.len();
        let order = if kernel.not_ranked_by_time { Order::NotByTime } else { Order::Predicted };
        wait_lines(&kernel.waits, order, style, &mut lines);
        if lines.len() == before {
            lines.push("  no waits".to_owned());
        }
        let unit = kernel.samples.as_ref().map_or("samples", |samples| samples.kind.unit());
        chain_lines(&kernel.chains, order, (slice.blame, unit), CHAINS_SHOWN, style, &mut lines);
        if kernel.coverage.nodes > 0 {
            let Coverage { nodes, before, after } = kernel.coverage;
            let (before, after) = (100.0 * before, 100.0 * after);
            lines.push(style.dim(&format!(
                "  of {nodes} waits and operations, {before:.0} % have one dependence at most; {after:.0} % when only \
                    those blamed count"
            )));
        }
        if let Some(samples) = &kernel.samples {
            sample_lines(samples, style, &mut lines);
        }
        lines.push(String::new());
    }
    if slice.kernels.is_empty() {
        lines.push("no kernel selected\n".to_owned());
    }
    for given in &slice.samples {
        given_lines(given, style, &mut lines);
    }
    lines.join("\n")
}

/// The waits of a kernel, those that wait for nothing left out: in the order of modelled stalls, if there are some.
pub(crate) fn wait_lines(waits: &[WaitSlice], order: Order<'_>, style: Style, lines: &mut Vec<String>) {
    let stalls = if let Order::Modelled(stalls) = order { Some(stalls) } else { None };
    let predicted = if stalls.is_some() { "predicted cycles" } else { "cycles" };
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("wait", Align::Code),
        ("counter", Align::Left),
        ("source", Align::Place),
        ("executions", Align::Right),
        ("modelled stall cycles", Align::Right),
        (predicted, Align::Right),
        ("waits for", Align::Words),
    ]);
    let mut waiting: Vec<&WaitSlice> = waits.iter().filter(|wait| !wait.operations.is_empty()).collect();
    let modelled = |wait: &WaitSlice| stalls.map(|stalls| stalls.cycles(wait.address));
    waiting.sort_by_key(|wait| std::cmp::Reverse(modelled(wait)));
    for wait in waiting.iter().take(WAITS_SHOWN) {
        let mut operations = wait.operations.iter().map(operation_text);
        // Only where one instruction waits on several counters, each with a row of its own.
        let several = waiting.iter().filter(|other| other.address == wait.address).count() > 1;
        table.row([
            format!("{:#x}", wait.address),
            wait.instruction.clone(),
            if several { counter_text(wait) } else { String::new() },
            place(wait.source.as_ref()),
            wait.executions.map(grouped).unwrap_or_else(|| "?".to_owned()),
            modelled(wait).map(grouped).unwrap_or_default(),
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
                String::new(),
                operation,
            ]);
        }
    }
    let title = match order {
        Order::Modelled(_) => "waits by modelled stall cycles (predicted: executions × static latency)",
        Order::Predicted => "waits (predicted: executions × static latency, nothing was timed)",
        Order::NotByTime => "waits, not ranked by time (static latency of one execution; nothing was counted or timed)",
    };
    push_table(title, &table, style, lines);
    if waiting.len() > WAITS_SHOWN {
        lines.push(format!("  and {} more: --format json has all", waiting.len() - WAITS_SHOWN));
    }
}

/// A counter and how many may stay outstanding; a scoreboard or token alone where none may.
fn counter_text(wait: &WaitSlice) -> String {
    match wait.count {
        0 if !wait.counter.ends_with("cnt") => wait.counter.clone(),
        count => format!("{}({count})", wait.counter),
    }
}

/// An operation that is waited for, in one line.
pub(crate) fn operation_text(operation: &OperationSlice) -> String {
    let sure = match operation.certainty {
        WaitCertainty::Must => "",
        WaitCertainty::May => " on some paths",
        WaitCertainty::Unordered => " maybe (completes out of order)",
        WaitCertainty::IfCounted => " if it is counted",
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

/// The causes that cost most, each from the wait back to where it comes from.
pub(crate) fn chain_lines(
    chains: &[Chain],
    order: Order<'_>,
    (blame, unit): (Blame, &str),
    most: usize,
    style: Style,
    lines: &mut Vec<String>,
) {
    if chains.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(style.dim(match blame {
        Blame::Exposed if matches!(order, Order::NotByTime) => {
            "  why, not ranked by time (what is left of the static latency when the wait begins, once)"
        }
        Blame::Exposed => {
            "  why (predicted: what is left of the latency when the wait begins, as often as the wait was executed)"
        }
        Blame::Leo => "  why (as LEO is published, to compare with: distance × issues × match)",
    }));
    for chain in chains.iter().take(most) {
        let (percent, cycles) = (100.0 * chain.kernel_share, grouped(chain.predicted_cycles));
        let exposed =
            chain.exposed_samples.map_or_else(String::new, |exposed| format!(", {exposed:.1} of them exposed"));
        let samples = chain.samples.map(|samples| format!("{samples:.1} {unit}{exposed}"));
        // Nothing is predicted of a stall of which only samples tell.
        let cycles = (chain.self_blame.is_none() || samples.is_none()).then(|| format!("{cycles} cycles"));
        let cost: Vec<String> = cycles.into_iter().chain(samples).collect();
        lines.push(format!("  {percent:>3.0} %  {}: {}", cost.join(", "), chain.reading));
        // Which branch it is matters where it has left lanes out.
        let mask = chain.mask.iter().filter(|_| chain.evidence.active_lanes.is_some());
        lines.extend(chain.path.iter().chain(mask).map(step_line));
        if let Some(load) = chain.evidence.address_loaded_by {
            lines.push(style.dim(&format!(
                "              its address is loaded at {load:#x}: it cannot start before that is done"
            )));
        }
        if chain.through_memory {
            lines.push(
                style.dim("              a value of these was loaded from memory that it is not certain who wrote"),
            );
        }
    }
    if chains.len() > most {
        lines.push(format!("  and {} more: --format json has all", chains.len() - most));
    }
}

/// Where waves stood longest in the timing model, and for which operations it is predicted that they waited there.
pub(crate) fn stall_lines(chains: &[Chain], stalls: &Stalls<'_>, most: usize, style: Style, lines: &mut Vec<String>) {
    lines.push(String::new());
    lines.push(style.dim("  why (modelled stall cycles; what a wait is for is predicted)"));
    let places = stalls.in_order();
    for each in places.iter().take(most) {
        let cycles = stalls.cycles(each.address);
        let reason = stalls.reason(each.address).unwrap_or_default();
        let mut causes = causes(chains, each.address).peekable();
        let first = causes.peek().map_or_else(String::new, |cause| format!(": {}", cause.reading));
        let (percent, cycles) = (100.0 * stalls.share(cycles), grouped(cycles));
        lines.push(format!("  {percent:>3.0} %  {cycles} modelled stall cycles, most of them {reason}{first}"));
        if causes.peek().is_none() {
            let source = place(each.source.as_ref());
            let source = if source.is_empty() { source } else { format!(" ({source})") };
            lines.push(format!("         {:>4} {:>#7x} {}{source}", "at", each.address, each.instruction));
        }
        for (number, chain) in causes.enumerate() {
            if number > 0 {
                lines.push(format!("          and {}", chain.reading));
            }
            let mask = chain.mask.iter().filter(|_| chain.evidence.active_lanes.is_some());
            lines.extend(chain.path.iter().skip(number.min(1)).chain(mask).map(step_line));
        }
    }
    if places.len() > most {
        lines.push(format!("  and {} more: --format json has all", places.len() - most));
    }
}

/// How a step of a chain goes on from the one before, in a word.
pub(crate) fn edge_word(edge: Edge) -> &'static str {
    match edge {
        Edge::Stall => "wait",
        Edge::Wait => "for",
        Edge::Register => "of",
        Edge::Memory | Edge::ThroughMemory => "from",
        Edge::Mask => "if",
    }
}

/// One step of a chain.
fn step_line(step: &Step) -> String {
    let arrow = edge_word(step.edge);
    let mut source = place(step.source.as_ref());
    for Inlined { called_at, .. } in &step.inlined {
        source += &format!(", inlined at {}", place(Some(called_at)));
    }
    let source = if source.is_empty() { source } else { format!(" ({source})") };
    format!("         {arrow:>4} {:>#7x} {}{source}", step.address, step.instruction)
}

/// Where waves were seen.
fn sample_lines(samples: &KernelSamples, style: Style, lines: &mut Vec<String>) {
    let trace = samples.kind == SampleKind::ThreadTrace;
    let hidden = samples.places.iter().any(|place| place.hidden.is_some());
    let mut columns = vec![("address", Align::Right), ("instruction", Align::Code), ("source", Align::Place)];
    if trace {
        columns.extend([
            ("executions", Align::Right),
            ("cycles", Align::Right),
            ("stalled", Align::Right),
            ("idle before", Align::Right),
        ]);
    } else {
        columns.extend([("samples", Align::Right), ("issued", Align::Right)]);
        columns.extend(hidden.then_some(("hidden", Align::Right)));
        columns.push(("did not issue", Align::Words));
    }
    let mut table = Table::new(&columns);
    let number = |number: Option<u64>| number.map_or_else(String::new, grouped);
    for place in samples.places.iter().take(PLACES_SHOWN) {
        let mut row =
            vec![format!("{:#x}", place.address), place.instruction.clone(), style::place(place.source.as_ref())];
        if trace {
            row.extend([
                number(place.executions),
                grouped(place.samples),
                grouped(place.samples.saturating_sub(place.issued)),
                number(place.idle),
            ]);
        } else {
            let reasons: Vec<String> =
                place.stalled.iter().map(|(reason, count)| format!("{reason} {}", grouped(*count))).collect();
            row.extend([grouped(place.samples), grouped(place.issued)]);
            row.extend(hidden.then(|| number(place.hidden)));
            row.push(reasons.join(", "));
        }
        table.row(row);
    }
    let what = if samples.modelled { "modelled, not measured" } else { "measured" };
    let title = format!("{} {} ({}, {what})", grouped(samples.samples), samples.unit, samples.kind.name());
    push_table(&title, &table, style, lines);
    lines.push(style.dim(&format!("  {}", samples.caveat)));
    if samples.places.len() > PLACES_SHOWN {
        lines.push(format!("  and {} more places: --format json has all", samples.places.len() - PLACES_SHOWN));
    }
}

/// What of given samples is in no kernel.
fn given_lines(given: &GivenSamples, style: Style, lines: &mut Vec<String>) {
    for (count, what) in
        [(given.nowhere, "outside of any code object"), (given.elsewhere, "of code that is not in this file")]
    {
        if count > 0 {
            lines.push(format!("{} {} {what}", grouped(count), given.kind.unit()));
        }
    }
    let what = if matches!(given.kind, SampleKind::HostTrapCsv | SampleKind::StochasticCsv) {
        "dispatch"
    } else {
        "code object"
    };
    for each in given.foreign.iter().take(PLACES_SHOWN) {
        let place = each.uri.as_ref().map_or_else(String::new, |uri| format!(", {uri}"));
        lines.push(format!("  {} of {what} {}{place}: {}", grouped(each.samples), each.id, each.why));
    }
    if given.foreign.len() > PLACES_SHOWN {
        lines.push(format!("  and of {} more: --format json has all", given.foreign.len() - PLACES_SHOWN));
    }
    if given.ambiguous.is_empty() {
        return;
    }
    let mut table = Table::new(&[
        ("samples", Align::Right),
        ("issued", Align::Right),
        ("instruction", Align::Code),
        ("source", Align::Place),
        ("may be at", Align::Words),
    ]);
    let mut several = false;
    for each in given.ambiguous.iter().take(PLACES_SHOWN) {
        let targets: BTreeSet<&str> = each.candidates.iter().map(|at| at.target.as_str()).collect();
        several |= targets.len() > 1;
        let place = |at: &Candidate| {
            let target = if targets.len() > 1 { format!(" ({})", at.target) } else { String::new() };
            format!("{:#x} of {}{target}", at.address, at.kernel)
        };
        let mut places: Vec<String> = each.candidates.iter().take(CANDIDATES_SHOWN).map(place).collect();
        if each.candidates.len() > CANDIDATES_SHOWN {
            places.push(format!("and {} more", each.candidates.len() - CANDIDATES_SHOWN));
        }
        table.row([
            grouped(each.samples),
            grouped(each.issued),
            each.instruction.clone(),
            each.comment.clone(),
            places.join(", "),
        ]);
    }
    let all: u64 = given.ambiguous.iter().map(|each| each.samples).sum();
    push_table(
        &format!("{} samples can be of one of several instructions, and are given to none", grouped(all)),
        &table,
        style,
        lines,
    );
    if given.ambiguous.len() > PLACES_SHOWN {
        lines.push(format!("  and {} more: --format json has all", given.ambiguous.len() - PLACES_SHOWN));
    }
    if several {
        lines.push("  --target says which of the processors it was".to_owned());
    }
}
