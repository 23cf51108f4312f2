//! What the timing model says of a kernel.

use maud::{Markup, html};

use super::parts::{bar, data_table};
use super::{Page, Shown, kernel};
use crate::style::place;
use crate::table::grouped;
use crate::time::{caches, kernel_facts, most_first, shares};
use wavetap_profile::time::{InstructionCycles, KernelTime};

/// Instructions with their stalls, where the listing has the cycles of all.
const SHOWN: usize = 20;

/// The section.
pub(super) fn section(page: &Page<'_>, shown: &Shown<'_>, time: &KernelTime) -> Markup {
    let head = html! {
        th { "Address" } th { "Instruction" } th { "Source" } th.n { "Executions" } th.n { "Modelled cycles" }
        th.n { "Of all" } th { "Modelled stalls" }
    };
    let mut costliest: Vec<&InstructionCycles> = time.instructions.iter().collect();
    costliest.sort_by_key(|each| (std::cmp::Reverse(each.modelled_cycles()), each.address));
    let row = |each: &InstructionCycles| {
        let share = each.modelled_cycles() as f64 / time.modelled_wave_cycles.max(1) as f64;
        let stalls: Vec<String> = most_first(&each.modelled_stalled)
            .into_iter()
            .map(|(name, cycles)| format!("{name} {}", grouped(cycles)))
            .collect();
        html! {
            tr {
                td { (page.address(shown, each.address)) } td.i { (each.instruction) }
                td { (place(each.source.as_ref())) }
                td.n { (grouped(each.executions)) } td.n { (grouped(each.modelled_cycles())) }
                td.n { (bar(share)) (super::parts::share_text(share)) } td { (stalls.join(", ")) }
            }
        }
    };
    // The listing has the cycles of all.
    let most = if shown.is_listed.get() { SHOWN } else { costliest.len() };
    let rows = html! { @for each in costliest.iter().take(most) { (row(each)) } };
    let table = html! {
        p.facts { (kernel_facts(time).join(" · ")) }
        p.facts { "Cycles of waves: " (shares(time)) }
        p.facts { "Memory: " (caches(&time.memory).join("; ")) }
        (data_table("Modelled time", "time", &head, &rows))
        @if costliest.len() > most {
            p.facts { "The costliest " (most) " of " (costliest.len()) " instructions: the code above has all." }
        }
    };
    kernel::closed_part("Modelled time (the timing model's, nothing was measured)", &table)
}
