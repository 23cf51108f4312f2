//! The differences of two profiles as a page.

use maud::{Markup, html};

use super::document;
use super::parts::{Room, data_table};
use crate::diff::{
    Diff, KernelDiff, KernelNumbers, Metric, SiteDiff, SiteName, lines_of, metric_name, numbers, signed, site_name,
};
use crate::names::short;
use crate::style::{DID_NOT_END, counted, place};
use crate::table::grouped;
use wavetap_explain::words::number;

/// The page. `old` and `new` say what the profiles are: the names of their files.
#[must_use]
pub fn render_diff(diff: &Diff, old: &str, new: &str) -> String {
    let (differ, same): (Vec<&KernelDiff>, Vec<&KernelDiff>) =
        diff.kernels.iter().partition(|kernel| !kernel.is_same());
    let room = Room::default();
    let few = differ.len() <= FEW;
    document(
        "Wavetap differences",
        &html! {
            a href="#overview" { "Overview" }
            @if !differ.is_empty() { a href="#kernels" { "Kernels" } }
            @if !same.is_empty() || !diff.only_old.is_empty() || !diff.only_new.is_empty() {
                a href="#others" { "Other kernels" }
            }
        },
        &html! {
            (overview(diff, &differ, old, new))
            @if !differ.is_empty() {
                section #kernels {
                    h2 { "Kernels that differ" }
                    @for (at, kernel) in differ.iter().enumerate() { (kernel_section(kernel, at, few, &room)) }
                }
            }
            (others(diff, &same))
        },
    )
}

/// So many kernels are open from the start.
const FEW: usize = 4;

fn overview(diff: &Diff, differ: &[&KernelDiff], old: &str, new: &str) -> Markup {
    let metrics: Vec<Metric> = Metric::ALL
        .into_iter()
        .filter(|metric| differ.iter().any(|kernel| metric.of(&kernel.old) != metric.of(&kernel.new)))
        .collect();
    let head = html! {
        th { "Kernel" } th { "Target" }
        @for metric in &metrics { th.n { (metric_name(*metric)) } }
        th.n { "Sites that differ" } th.n { "Only old" } th.n { "Only new" }
    };
    let rows = html! {
        @for (at, kernel) in differ.iter().enumerate() {
            tr {
                td.name { a href=(format!("#k{}", at + 1)) title=(kernel.demangled) { (short(&kernel.demangled)) } }
                td { (kernel.target) }
                @for metric in &metrics { (change_cell(*metric, &kernel.old, &kernel.new)) }
                td.n { (grouped(kernel.changed.len() as u64)) }
                td.n { (grouped(kernel.only_old.len() as u64)) } td.n { (grouped(kernel.only_new.len() as u64)) }
            }
        }
    };
    html! {
        section #overview {
            h2 { "Overview" }
            p { "Old: " code { (old) } " · new: " code { (new) } }
            @if !diff.complete { p.note { (DID_NOT_END) } }
            @for failed in &diff.failed { p.note { "condition holds: " (failed) } }
            @if diff.same {
                p { "No difference: " (counted(diff.kernels.len() as u64, "kernel", "kernels")) "." }
            } @else {
                p.facts {
                    "Kernels are partners by name and target, sites by source line, operation and order. Counts are \
                        exact; a change is the new value less the old one."
                }
                @let moved: u64 = diff.kernels.iter().map(|kernel| kernel.moved).sum();
                @if moved > 0 { p.facts { (counted(moved, "site is", "sites are")) " on other lines." } }
                @if !differ.is_empty() { (data_table("Kernels that differ", "differ", &head, &rows)) }
            }
        }
    }
}

/// A change beside what it leads to.
fn change_cell(metric: Metric, old: &KernelNumbers, new: &KernelNumbers) -> Markup {
    let (old, new) = (metric.of(old), metric.of(new));
    match old.zip(new) {
        Some((old, new)) if old == new => html! { td.n data-v="0" { (number(new)) } },
        Some((old, new)) => html! { td.n data-v=(new - old) { b { (signed(new - old)) } " to " (number(new)) } },
        None if old == new => html! { td {} },
        None => html! { td.n { (value(old)) " → " (value(new)) } },
    }
}

fn value(value: Option<f64>) -> String {
    value.map_or_else(|| "not counted".to_owned(), number)
}

fn kernel_section(kernel: &KernelDiff, at: usize, open: bool, room: &Room) -> Markup {
    let mut changed: Vec<&SiteDiff> = kernel.changed.iter().collect();
    changed.sort_by_key(|change| std::cmp::Reverse(change.size()));
    html! {
        details.kernel id=(format!("k{}", at + 1)) open[open] {
            summary { h2 { (kernel.demangled) } span.facts { (kernel.target) } }
            (number_table(kernel))
            (room.part("sites", sites(&changed)))
            @for (names, which) in [(&kernel.only_old, "old"), (&kernel.only_new, "new")] {
                (room.part("sites of one profile", partnerless(names, which)))
            }
            @let left_out = room.take_left_out();
            @if !left_out.is_empty() {
                p.note {
                    "Left out, because the page would be too large: " (left_out.join(", ")) ". "
                    code { "wavetap diff OLD NEW --format json" } " has it."
                }
            }
        }
    }
}

fn number_table(kernel: &KernelDiff) -> Markup {
    let head = html! { th { "Number" } th.n { "Old" } th.n { "New" } th.n { "Change" } th.n { "In %" } };
    let rows = html! {
        @for (name, old, new) in numbers(kernel) {
            @if old != new {
                tr {
                    td { (name) } td.n { (value(old)) } td.n { (value(new)) }
                    td.n { (old.zip(new).map(|(old, new)| signed(new - old)).unwrap_or_default()) }
                    td.n {
                        @if let Some((old, new)) = old.zip(new).filter(|(old, _)| *old != 0.0) {
                            (format!("{:+.1} %", 100.0 * (new - old) / old))
                        }
                    }
                }
            }
        }
    };
    if rows.0.is_empty() { Markup::default() } else { data_table("Numbers", "numbers", &head, &rows) }
}

fn sites(changed: &[&SiteDiff]) -> Markup {
    if changed.is_empty() {
        return Markup::default();
    }
    let head = html! {
        th { "Line" } th { "Site" } th { "Probe" } th { "Counter" } th.n { "Old" } th.n { "New" } th.n { "Change" }
    };
    let rows = html! {
        @for change in changed {
            @for (field, old) in &change.old {
                @if let Some(new) = change.new.get(field).filter(|new| *new != old) {
                    tr {
                        td { (lines_of(change)) } td.i { (site_name(&change.site)) }
                        td { (change.site.kind) } td { (field) } td.n { (grouped(*old)) } td.n { (grouped(*new)) }
                        td.n { (signed(*new as f64 - *old as f64)) }
                    }
                }
            }
        }
    };
    html! { h3 { "Sites" } (data_table("Sites", "sites", &head, &rows)) }
}

fn partnerless(names: &[SiteName], which: &str) -> Markup {
    if names.is_empty() {
        return Markup::default();
    }
    let title = format!("Only in the {which} profile");
    let head = html! { th { "Line" } th { "Site" } th { "Probe" } };
    let rows = html! {
        @for site in names {
            tr { td { (place(site.source.as_ref())) } td.i { (site_name(site)) } td { (site.kind) } }
        }
    };
    html! { h3 { (title) } (data_table(&title, which, &head, &rows)) }
}

fn others(diff: &Diff, same: &[&KernelDiff]) -> Markup {
    let groups = [("Only in the old profile", &diff.only_old), ("Only in the new profile", &diff.only_new)];
    if same.is_empty() && groups.iter().all(|(_, names)| names.is_empty()) {
        return Markup::default();
    }
    html! {
        section #others {
            h2 { "Other kernels" }
            @for (title, names) in groups {
                @if !names.is_empty() {
                    h3 { (title) }
                    ul { @for name in names { li.name { (name) } } }
                }
            }
            @if !same.is_empty() {
                details {
                    summary { (counted(same.len() as u64, "kernel is", "kernels are")) " the same in both" }
                    ul { @for kernel in same { li.name { (kernel.demangled) " " span.facts { (kernel.target) } } } }
                }
            }
        }
    }
}
