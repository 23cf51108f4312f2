//! What matters most of the kernels, and how they were launched.

use maud::{Markup, html};

use super::parts::{bar, capital, data_table, share_text, short_name};
use super::{Page, Shown};
use crate::Basis;
use crate::launches::{COLUMNS, LaunchTable, LaunchWarning, NamedKernel, cells, host_lines};
use crate::render::Line;
use crate::style::{Style, counted, place};
use crate::summary::{KernelSummary, Summary};
use crate::table::Align;

/// So many ways of launching are open from the start.
const FEW: usize = 12;

/// What matters most of the kernels with the largest shares.
pub(super) fn summary(page: &Page<'_>, summary: &Summary) -> Markup {
    let is_worth = |kernel: &&KernelSummary| kernel.bound.is_some() || !kernel.findings.is_empty();
    let worth: Vec<&KernelSummary> = summary.kernels.iter().filter(is_worth).collect();
    html! {
        @if !worth.is_empty() {
            h3 { "What matters most" }
            @if let Some(cost) = &summary.launches { p { (cost.line()) } }
            ul.summary {
                @for kernel in &worth {
                    li {
                        (bar(kernel.share)) b { (share_text(kernel.share)) } " "
                        (title(page, kernel))
                        @if let Some(bound) = &kernel.bound { ", " (bound.line()) }
                        ul {
                            @for finding in &kernel.findings {
                                li {
                                    (finding.line())
                                }
                            }
                        }
                    }
                }
            }
            p.facts { "Shares are of " (summary.shares_of.name())
                ". Gains (≤ 1.3×) are what is possible at most, by the timing model."
                @if worth.iter().any(|kernel| kernel.bound.iter().any(|bound| bound.basis == Basis::Predicted)) {
                    " What bounds a kernel is estimated from counts where its time was not modelled."
                }
            }
        }
    }
}

/// What the summary calls a kernel, or the instances of a template, as a link to the section of the largest.
fn title(page: &Page<'_>, kernel: &KernelSummary) -> Markup {
    let is_it = |shown: &&Shown<'_>| shown.kernel.object == kernel.object && shown.kernel.name == kernel.name;
    html! {
        @match page.kernels.iter().find(is_it) {
            Some(shown) => a.name href=(format!("#{}", shown.id)) title=(shown.kernel.demangled) { (kernel.title) },
            None => span.name { (kernel.title) },
        }
    }
}

/// The name of a kernel as a link to its section.
fn link(page: &Page<'_>, is_it: impl Fn(&Shown<'_>) -> bool) -> Markup {
    html! {
        @if let Some(shown) = page.kernels.iter().find(|shown| is_it(shown)) {
            a.name href=(format!("#{}", shown.id)) title=(shown.kernel.demangled) { (short_name(shown)) }
        }
    }
}

fn kernel_link(page: &Page<'_>, kernel: &NamedKernel) -> Markup {
    link(page, |shown| kernel.is(&shown.kernel.object, &shown.kernel.name))
}

/// Every way of launching a kernel, what is unfavourable, and what the host copied.
pub(super) fn table(page: &Page<'_>, table: &LaunchTable) -> Markup {
    let mut host = Vec::new();
    host_lines(table, &mut host);
    let head = html! {
        @for (name, align) in &COLUMNS { th.n[matches!(align, Align::Right)] { (capital(name)) } }
    };
    let rows = html! {
        @for row in &table.rows {
            tr {
                td.name { (kernel_link(page, &row.kernel)) }
                @for ((_, align), text) in COLUMNS.iter().zip(cells(row, Style::default())).skip(1) {
                    td.n[matches!(align, Align::Right)] { (text) }
                }
            }
        }
    };
    html! {
        details.part open[table.rows.len() <= FEW] {
            summary { h3 { "Launches" } }
            @for board in &table.boards { p.facts { (board.line()) } }
            @if table.rows.is_empty() {
                p { "How the kernels were launched is not recorded." }
            } @else {
                p.facts { "Kernels in the order of their first dispatch; numbers are of one launch." }
                (data_table("Launches", "launches", &head, &rows))
            }
            @for line in host { @if !line.is_empty() { p { (line.trim()) } } }
            @if !table.warnings.is_empty() { (warnings(page, &table.warnings)) }
        }
    }
}

fn warnings(page: &Page<'_>, warnings: &[LaunchWarning]) -> Markup {
    let head = html! {
        th { "Unfavourable" } th { "Kernel" } th.n { "Lost" }
        th { "What was found" } th { "What helps" } th { "Warned" }
    };
    let rows = html! {
        @for warning in warnings {
            tr {
                td { (warning.kind.name()) }
                td.name { (kernel_link(page, &warning.kernel)) }
                td.n data-v=(warning.weight) { (bar(warning.weight)) (share_text(warning.weight)) }
                td {
                    (warning.text) " (" (counted(warning.dispatches, "launch", "launches")) ")"
                    @if let Some(source) = &warning.source { " at " (place(Some(source))) }
                }
                td { (warning.kind.help()) } td { (warning.threshold) }
            }
        }
    };
    data_table("What is unfavourable about launches", "warnings", &head, &rows)
}
