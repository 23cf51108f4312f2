//! A report as one HTML page that needs no other file.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::branches::verdict;
use super::launches;
use super::model::{Branch, Kernel, Report};
use super::slice::operation_text;
use super::style::Style;
use super::table::grouped;
use super::text::{cut_short, mode_name, ran_on};
use super::variants::{self, Variant};
use wavetap_profile::map::Source;
use wavetap_profile::probes::branches::{BranchCounts, ExecCounts, ScalarCounts};

/// Follows the reader's light or dark setting; a bar shows how often a branch diverges.
const CSS: &str = "
:root{color-scheme:light dark;--line:#8884;--bar:#d9730d}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
h2{font:600 1.05rem ui-monospace,monospace;margin:2rem 0 .2rem;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;margin:.6rem 0 1.2rem;font-size:.9rem}
th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
code{font:.85rem ui-monospace,monospace}
.facts{opacity:.75;margin:0}
.bar{display:inline-block;height:.7em;background:var(--bar);margin-right:.5em}
.note{border-left:3px solid var(--bar);padding-left:.6rem}
";

/// The page.
#[must_use]
pub fn render(report: &Report) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Wavetap report" }
                style { (PreEscaped(CSS)) }
            }
            body {
                h1 { "Wavetap report" }
                p { (ran_on(report)) }
                @if let Some(said) = cut_short(report) { p.note { (said) } }
                @for (kernel, variant) in variants::in_order(&report.kernels, Kernel::key) {
                    (kernel_section(kernel, variant))
                }
                @if report.kernels.is_empty() { p { "No instrumented kernel was dispatched." } }
                @if !report.uncounted.is_empty() { (uncounted_section(report)) }
                @if !report.refused.is_empty() { (refused_section(report)) }
                @if let Some(time) = &report.time {
                    section { h2 { "Modelled time" } pre { (super::time::render(time, Style::default())) } }
                }
            }
        }
    };
    page.into_string()
}

fn kernel_section(kernel: &Kernel, variant: Option<Variant<'_>>) -> Markup {
    html! {
        section {
            h2 { (kernel.demangled) }
            @if let Some(variant) = variant { p.facts { (variant.launched(&kernel.launches)) } }
            p.facts {
                (kernel.target) " · " (grouped(kernel.dispatches)) " dispatches · " (grouped(kernel.waves)) " waves"
                @if let Some(mode) = kernel.mode { " · counters in " (mode_name(mode)) }
                @if let Some(occupancy) = kernel.occupancy() { " · " (occupancy) }
            }
            @for line in launches::lines(&kernel.launches) { p.facts { (line) } }
            @if kernel.dropped > 0 {
                p.note { (grouped(kernel.dropped)) " waves are missing from the counts: the record buffer was full." }
            }
            @if kernel.unfinished > 0 {
                p.note { (grouped(kernel.unfinished)) " waves began and never ended: their counts may be incomplete." }
            }
            (exec_table(kernel))
            (scalar_table(kernel))
            (wait_table(kernel))
        }
    }
}

fn exec_table(kernel: &Kernel) -> Markup {
    let rows: Vec<&Branch> =
        kernel.branches.iter().filter(|branch| matches!(branch.counts, BranchCounts::Exec(_))).collect();
    html! {
        @if !rows.is_empty() {
            h3 { "Divergent branches" }
            table {
                tr {
                    th { "Address" } th { "Instruction" } th { "Source" }
                    th.n { "Executions" } th.n { "Agreements" } th.n { "Divergences" }
                    th.n { "Lanes before" } th.n { "Lanes after" } th { "Verdict" }
                }
                @for branch in rows { (exec_row(branch)) }
            }
        }
    }
}

fn exec_row(branch: &Branch) -> Markup {
    let BranchCounts::Exec(exec) = branch.counts else { return Markup::default() };
    let (ExecCounts { executions, agreements, .. }, divergences) = (exec, exec.divergences());
    let lanes = exec.average_lanes();
    // Four ems at 100 %.
    let bar = if executions == 0 { 0.0 } else { 4.0 * divergences as f64 / executions as f64 };
    html! {
        tr {
            td { code { (format!("{:#x}", branch.address)) } } td { code { (branch.instruction) } }
            td { (place(branch.source.as_ref())) }
            td.n { (grouped(executions)) } td.n { (grouped(agreements)) } td.n { (grouped(divergences)) }
            td.n { @if let Some((before, _)) = lanes { (format!("{before:.1}")) } }
            td.n { @if let Some((_, after)) = lanes { (format!("{after:.1}")) } }
            td { span.bar style=(format!("width:{bar:.2}em")) {} (verdict(&branch.counts)) }
        }
    }
}

fn scalar_table(kernel: &Kernel) -> Markup {
    let rows: Vec<&Branch> =
        kernel.branches.iter().filter(|branch| matches!(branch.counts, BranchCounts::Scalar(_))).collect();
    html! {
        @if !rows.is_empty() {
            h3 { "Uniform branches" }
            table {
                tr { th { "Address" } th { "Instruction" } th { "Source" }
                    th.n { "Executions" } th.n { "Taken" } th { "Verdict" } }
                @for branch in rows {
                    @if let BranchCounts::Scalar(ScalarCounts { executions, taken }) = branch.counts {
                        tr {
                            td { code { (format!("{:#x}", branch.address)) } } td { code { (branch.instruction) } }
            td { (place(branch.source.as_ref())) }
                            td.n { (grouped(executions)) } td.n { (grouped(taken)) }
                            td { (verdict(&branch.counts)) }
                        }
                    }
                }
            }
        }
    }
}

fn wait_table(kernel: &Kernel) -> Markup {
    html! {
        @if !kernel.waits.is_empty() {
            h3 { "Waits (predicted, not measured)" }
            table {
                tr { th { "Address" } th { "Wait" } th { "Source" }
                    th.n { "Executions" } th.n { "Cycles" } th { "Waits for" } }
                @for wait in kernel.waits.iter().filter(|wait| !wait.operations.is_empty()) {
                    tr {
                        td { code { (format!("{:#x}", wait.address)) } } td {
                            code { (wait.instruction) }
                            @if kernel.waits.iter().filter(|other| other.address == wait.address).count() > 1 {
                                " (" (wait.counter) ")"
                            }
                        }
                        td { (place(wait.source.as_ref())) }
                        td.n { @if let Some(n) = wait.executions { (grouped(n)) } }
                        td.n { (grouped(wait.predicted_cycles)) }
                        td {
                            @for operation in &wait.operations {
                                div { code { (operation_text(operation)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn uncounted_section(report: &Report) -> Markup {
    html! {
        section {
            h2 { "Dispatched and not counted" }
            table {
                tr { th { "Kernel" } th { "Target" } th.n { "Dispatches" } th { "Reason" } th { "Detail" } }
                @for uncounted in &report.uncounted {
                    tr {
                        td { code { (uncounted.demangled) } }
                        td {
                            (uncounted.target)
                            @if let Some(object) = report.variant_object(uncounted) { ", code object " (object) }
                        }
                        td.n { (grouped(uncounted.dispatches)) }
                        td { (uncounted.why.name()) } td { (uncounted.detail) }
                    }
                }
            }
        }
    }
}

fn refused_section(report: &Report) -> Markup {
    html! {
        section {
            h2 { "Left uncounted" }
            table {
                tr { th { "Kernel" } th { "Target" } th { "Reason" } th { "Detail" } }
                @for refused in &report.refused {
                    tr {
                        td { code { (refused.demangled) } } td { (refused.target) } td { (refused.reason) }
                        td { (refused.detail) }
                    }
                }
            }
        }
    }
}

fn place(source: Option<&Source>) -> String {
    source.map(|source| format!("{}:{}", source.file, source.line)).unwrap_or_default()
}
