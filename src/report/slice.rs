//! A slice as text.

use super::table::{Align, Table, grouped};
use super::text::{self, Style, place, push_table, wait_lines};
use crate::slice::Slice;
use crate::slice::chains::{Chain, Edge};
use crate::slice::evidence::KernelSamples;

/// As many causes as a person looks at.
const CHAINS_SHOWN: usize = 5;
/// As many places with samples.
const PLACES_SHOWN: usize = 10;

/// All kernels with their waits.
#[must_use]
pub fn render(slice: &Slice, style: Style) -> String {
    let mut lines = Vec::new();
    for kernel in &slice.kernels {
        lines.push(format!("{}  {}", style.bold(&kernel.demangled), style.dim(&kernel.target)));
        let before = lines.len();
        wait_lines(&kernel.waits, style, &mut lines);
        if lines.len() == before {
            lines.push("  no waits".to_owned());
        }
        chain_lines(&kernel.chains, CHAINS_SHOWN, style, &mut lines);
        if let Some(samples) = &kernel.samples {
            sample_lines(samples, style, &mut lines);
        }
        lines.push(String::new());
    }
    if slice.kernels.is_empty() {
        lines.push("no kernel selected\n".to_owned());
    }
    lines.join("\n")
}

/// The causes that cost most, each from the wait back to where it comes from.
pub(super) fn chain_lines(chains: &[Chain], most: usize, style: Style, lines: &mut Vec<String>) {
    if chains.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(style.dim("  why (predicted: what is left of the latency when the wait begins, as often as the wait was executed)"));
    for chain in chains.iter().take(most) {
        let (percent, cycles) = (100.0 * chain.kernel_share, grouped(chain.predicted_cycles));
        let samples = chain.samples.map_or_else(String::new, |samples| format!(", {samples:.1} samples"));
        lines.push(format!("  {percent:>3.0} %  {cycles} cycles{samples}: {}", chain.reading));
        for step in &chain.path {
            let arrow = match step.edge {
                Edge::Stall => "wait",
                Edge::Wait => "for",
                Edge::Register => "of",
            };
            let source = place(step.source.as_ref());
            let source = if source.is_empty() { source } else { format!(" ({source})") };
            lines.push(format!("         {arrow:>4} {:>#7x} {}{source}", step.address, step.instruction));
        }
    }
    if chains.len() > most {
        lines.push(format!("  and {} more: --format json has all", chains.len() - most));
    }
}

/// Where waves were seen.
fn sample_lines(samples: &KernelSamples, style: Style, lines: &mut Vec<String>) {
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("instruction", Align::Left),
        ("source", Align::Left),
        ("samples", Align::Right),
        ("issued", Align::Right),
        ("did not issue", Align::Left),
    ]);
    for place in samples.places.iter().take(PLACES_SHOWN) {
        let reasons: Vec<String> = place.stalled.iter().map(|(reason, count)| format!("{reason} {}", grouped(*count))).collect();
        table.row([
            format!("{:#x}", place.address),
            place.instruction.clone(),
            text::place(place.source.as_ref()),
            grouped(place.samples),
            grouped(place.issued),
            reasons.join(", "),
        ]);
    }
    let what = if samples.modelled { "modelled, not measured" } else { "measured" };
    push_table(&format!("{} samples ({what})", grouped(samples.samples)), &table, style, lines);
    if samples.places.len() > PLACES_SHOWN {
        lines.push(format!("  and {} more places: --format json has all", samples.places.len() - PLACES_SHOWN));
    }
}
