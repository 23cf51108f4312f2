//! How evenly ranks or hosts share what kernels did.

use maud::{Markup, html};

use super::parts::{bar, capital, data_table, short_name};
use super::{Page, Shown};
use crate::imbalance::{cells, members, one};
use crate::style::place;
use crate::table::grouped;
use wavetap_explain::imbalance::{Imbalance, KernelImbalance, Spread, Uneven};

/// Kernels on the page: those with the most waves beyond the mean. JSON has all.
const KERNELS: usize = 200;
/// Numbers of sites on the page: those of which one rank or host has most beyond the mean.
const SITES: usize = 500;

/// The section; nothing where the profile keeps neither ranks nor hosts apart.
pub(super) fn section(page: &Page<'_>) -> Markup {
    let all = &page.report.imbalance;
    html! {
        @if !all.is_empty() {
            section #imbalance {
                h2 { "Imbalance" }
                p.facts {
                    "What each rank or host has of a number, the first with the least and the first with the most. "
                    "Max/mean is 1.00 where all have the same; the bar is the part of the most that is beyond the mean."
                }
                @for imbalance in all { (of_dimension(page, imbalance)) }
            }
        }
    }
}

fn of_dimension(page: &Page<'_>, imbalance: &Imbalance) -> Markup {
    let members = members(imbalance);
    if imbalance.count < 2 {
        return html! { p.facts { (members) ": nothing to compare." } };
    }
    let one = one(imbalance.by);
    let (kernels, uneven) = (imbalance.by_excess(), imbalance.uneven());
    html! {
        h3 { "Imbalance of " (members) }
        (kernel_table(page, one, &kernels[..kernels.len().min(KERNELS)]))
        (more(kernels.len().saturating_sub(KERNELS), "kernels"))
        @if uneven.is_empty() {
            p { "Every site has the same everywhere." }
        } @else {
            p.facts { "Sites that are not the same everywhere, most beyond the mean first:" }
            (site_table(page, one, &uneven[..uneven.len().min(SITES)]))
            (more(uneven.len().saturating_sub(SITES), "numbers of sites"))
        }
    }
}

fn kernel_table(page: &Page<'_>, one: &str, kernels: &[&KernelImbalance]) -> Markup {
    let head = html! { th { "Kernel" } (heads(one)) };
    let rows = html! {
        @for kernel in kernels {
            @for spread in &kernel.totals { tr { td.name { (link(page, kernel)) } (spread_cells(spread)) } }
        }
    };
    data_table(&format!("Imbalance of {one}s: kernels"), "imbalance", &head, &rows)
}

fn site_table(page: &Page<'_>, one: &str, sites: &[Uneven<'_>]) -> Markup {
    let head = html! { th { "Kernel" } th { "Address" } th { "Source" } (heads(one)) };
    let rows = html! {
        @for Uneven { kernel, site, spread } in sites {
            tr {
                td.name { (link(page, kernel)) }
                td title=(site.instruction) {
                    @match shown(page, kernel) {
                        Some(shown) => (page.address(shown, site.address)),
                        None => code { (format!("{:x}", site.address)) },
                    }
                }
                td { (place(site.source.as_ref())) }
                (spread_cells(spread))
            }
        }
    };
    data_table(&format!("Imbalance of {one}s: sites"), "imbalance of sites", &head, &rows)
}

/// Heads of a spread's columns.
fn heads(one: &str) -> Markup {
    html! {
        th { "Of" } th.n { "Min" } th.n { (capital(one)) " of min" } th.n { "Mean" } th.n { "Max" }
        th.n { (capital(one)) " of max" } th.n { "Max/mean" }
    }
}

fn spread_cells(spread: &Spread) -> Markup {
    let [what, min, min_at, mean, max, max_at, imbalance] = cells(spread);
    // Of a number that all have 0 of there is no spread.
    let beyond = spread.imbalance.map_or(0.0, |imbalance| 1.0 - 1.0 / imbalance);
    html! {
        td { (what) } td.n { (min) } td.n { (min_at) } td.n data-v=(spread.mean) { (mean) } td.n { (max) }
        td.n { (max_at) } td.n data-v=[spread.imbalance] { (bar(beyond)) (imbalance) }
    }
}

fn shown<'p>(page: &'p Page<'_>, kernel: &KernelImbalance) -> Option<&'p Shown<'p>> {
    page.kernels.iter().find(|shown| (&shown.kernel.name, &shown.kernel.object) == (&kernel.name, &kernel.object))
}

/// The name of a kernel, as a link to its section.
fn link(page: &Page<'_>, kernel: &KernelImbalance) -> Markup {
    html! {
        @match shown(page, kernel) {
            Some(shown) => a href=(format!("#{}", shown.id)) title=(kernel.demangled) { (short_name(shown)) },
            None => (kernel.demangled),
        }
    }
}

/// What is not on the page, and what has it.
fn more(count: usize, what: &str) -> Markup {
    html! {
        @if count > 0 {
            p.note {
                "And " (grouped(count as u64)) " more " (what) ": " code { "wavetap report PROFILE --format json" }
                " has all."
            }
        }
    }
}
