//! What a kernel executed: classes, operations, bytes, loops.

use maud::{Markup, html};

use super::parts::{bar, data_table, number, share_text};
use super::{Page, Shown, kernel};
use crate::mix::{KernelMix, MixCounts, OperationSum, memory_name};
use crate::style::{counted, place};
use crate::table::grouped;

/// The section.
pub(super) fn section(page: &Page<'_>, shown: &Shown<'_>, mix: &KernelMix) -> Markup {
    let total = &mix.total;
    let content = html! {
        p.facts {
            (counted(total.instructions, "instruction", "instructions")) " of "
            (counted(mix.waves, "wave", "waves")) " of " (mix.wave_size) " lanes"
            @if mix.addresses_known {
                " · " (grouped(total.vector_addresses)) " vector and " (grouped(total.scalar_addresses))
                " scalar instructions compute addresses only"
            }
        }
        @if total.uncounted > 0 {
            p.note { "Executions of " (counted(total.uncounted, "instruction", "instructions")) " are not known." }
        }
        @if total.lanes_unknown > 0 {
            p.note {
                "Active lanes of " (counted(total.lanes_unknown, "issued instruction", "issued instructions"))
                " do not follow from the counts."
            }
        }
        div.columns { (classes(total)) (operations(total)) (bytes(total)) }
        @if !mix.loops.is_empty() { (loops(page, shown, mix)) }
    };
    kernel::closed_part("Instruction mix", &content)
}

fn classes(total: &MixCounts) -> Markup {
    let head = html! { th { "Class" } th.n { "Issued" } th.n { "Share" } th.n { "Active lanes" } };
    let rows = html! {
        @for row in &total.classes {
            @let share = row.issued as f64 / total.instructions.max(1) as f64;
            tr {
                td { (row.class) } td.n { (grouped(row.issued)) } td.n { (bar(share)) (share_text(share)) }
                td.n {
                    @if row.in_lanes > 0 { (format!("{:.1}", row.lanes as f64 / row.in_lanes as f64)) }
                    @if row.lanes_unknown > 0 { " (" (grouped(row.lanes_unknown)) " unknown)" }
                }
            }
        }
    };
    data_table("Instructions by class", "classes", &head, &rows)
}

fn operations(total: &MixCounts) -> Markup {
    let head = html! {
        th { "Operations" }
        th.n title="every lane whatever EXEC is, as rocprof-compute counts" { "rocprof-compute's" }
        th.n title="of active lanes, each product and each sum" { "Effective" }
        th.n title="instructions whose active lanes are not known" { "Lanes unknown" }
    };
    let sums = [("FLOPs", &total.flops), ("IOPs", &total.iops)];
    let all: Vec<(&str, &OperationSum)> = total
        .operations
        .iter()
        .map(|row| (row.number.as_str(), &row.sum))
        .chain(sums.into_iter().filter(|(_, sum)| sum.convention > 0))
        .collect();
    let rows = html! {
        @for (name, sum) in &all {
            tr {
                td { (name) } td.n { (grouped(sum.convention)) } td.n { (grouped(sum.effective)) }
                td.n { (number(Some(sum.lanes_unknown).filter(|count| *count > 0))) }
            }
        }
    };
    if all.is_empty() { Markup::default() } else { data_table("Operations", "operations", &head, &rows) }
}

fn bytes(total: &MixCounts) -> Markup {
    if total.bytes.is_empty() {
        return Markup::default();
    }
    let head = html! {
        th { "Memory" } th.n { "Bytes requested" } th.n { "FLOPs per byte" }
        th.n title="instructions of which it is not known" { "Unknown" }
    };
    let rows = html! {
        @for row in &total.bytes {
            tr {
                td { (memory_name(row.memory)) } td.n { (grouped(row.requested)) }
                td.n { @if let Some(intensity) = total.flops_per_byte(row) { (format!("{intensity:.3}")) } }
                td.n { (number(Some(row.unknown).filter(|count| *count > 0))) }
            }
        }
    };
    data_table("Bytes", "bytes", &head, &rows)
}

fn loops(page: &Page<'_>, shown: &Shown<'_>, mix: &KernelMix) -> Markup {
    let head = html! {
        th { "Loop at" } th.n { "Depth" } th { "Source" } th.n { "Rounds" } th.n { "Instructions" } th.n { "Share" }
        th.n { "FLOPs" }
    };
    let rows = html! {
        @for each in &mix.loops {
            @let share = each.mix.instructions as f64 / mix.total.instructions.max(1) as f64;
            tr {
                td { (page.address(shown, each.header)) } td.n { (each.depth) } td { (place(each.source.as_ref())) }
                td.n { (each.iterations.map_or_else(|| "?".to_owned(), grouped)) }
                td.n { (grouped(each.mix.instructions)) } td.n { (bar(share)) (share_text(share)) }
                td.n { (grouped(each.mix.flops.effective)) }
            }
        }
    };
    data_table("Loops", "loops", &head, &rows)
}
