//! How a kernel's lanes access memory: what was found, and what each instruction costs.

use maud::{Markup, html};

use super::parts::{bar, data_table, decimal, number, share_text};
use super::{Page, Shown};
use crate::memory::{KernelMemory, MeasuredAccess, MemoryAccess, MemoryFinding, RecordedPattern, because, may_help};
use crate::style::{counted, place};
use crate::table::grouped;

/// What was found in recorded accesses; the code alone finds nothing that was not said of the access.
pub(super) fn findings(page: &Page<'_>, shown: &Shown<'_>, memory: &KernelMemory) -> Markup {
    let Some(recorded) = &memory.recorded else { return Markup::default() };
    let (folded, worth): (Vec<&MemoryFinding>, Vec<&MemoryFinding>) =
        recorded.findings.iter().partition(|finding| finding.folded);
    html! {
        details.part open {
            summary { h3 { "What was found in recorded accesses" } }
            p.facts {
                (counted(recorded.executions, "access", "accesses")) " of " (grouped(recorded.workgroups)) " of "
                (counted(recorded.of_workgroups, "workgroup", "workgroups"))
                @if recorded.dispatches != recorded.of_dispatches {
                    ", in the first " (grouped(recorded.dispatches)) " of "
                    (counted(recorded.of_dispatches, "dispatch", "dispatches"))
                }
                ". Shares are of requests to L1, or of cycles of LDS."
            }
            @if recorded.not_measured > 0 {
                p.note {
                    (counted(recorded.not_measured, "access of the code is", "accesses of the code are"))
                    " not measured: through descriptors, of scratch, or above v255."
                }
            }
            @if recorded.dropped > 0 {
                p.note { (grouped(recorded.dropped)) " accesses are missing, for which there was no room." }
            }
            @if worth.is_empty() { p { "Nothing was found." } } @else { (finding_table(page, shown, &worth)) }
            @if !folded.is_empty() {
                details {
                    summary { "and " (folded.len()) " of small shares" }
                    (finding_table(page, shown, &folded))
                }
            }
        }
    }
}

fn finding_table(page: &Page<'_>, shown: &Shown<'_>, findings: &[&MemoryFinding]) -> Markup {
    let head = html! {
        th.n { "Share" } th { "Finding" } th { "Of" } th { "Because" } th { "May help" } th { "At" }
    };
    let rows = html! {
        @for finding in findings {
            tr {
                td.n data-v=(finding.share) { (bar(finding.share)) (share_text(finding.share)) }
                td { @if finding.note { "note: " } (RecordedPattern::of(finding.kind).name) }
                td { (finding.array.as_deref().unwrap_or_default()) }
                td { (because(finding)) }
                td { (finding.fix.map(may_help).unwrap_or_default()) }
                td {
                    @for site in &finding.sites {
                        div {
                            (page.address(shown, site.address))
                            " " (place(site.source.as_ref()))
                        }
                    }
                }
            }
        }
    };
    data_table("Findings", "findings", &head, &rows)
}

/// Every access, with what it costs by the code and as it was recorded.
pub(super) fn accesses(page: &Page<'_>, shown: &Shown<'_>, memory: &KernelMemory) -> Markup {
    if memory.accesses.is_empty() {
        return Markup::default();
    }
    let recorded = memory.recorded.is_some();
    let head = html! {
        th { "Address" } th { "Instruction" } th { "Source" } th { "Array" } th { "Lanes are" } th.n { "Executions" }
        th.n title="lines of L1, or cycles of LDS, of an execution, by the code" { "Cost" }
        th.n title="as many as its bytes need" { "Ideal" }
        th.n title="beyond that, in all executions" { "Excess" }
        @if recorded {
            th.n { "Recorded" } th.n { "Lanes" } th.n { "Cost" } th.n { "Ideal" }
            th.n title="beyond that, in the recorded executions" { "Excess" }
            th.n title="the mean of those, times all executions" { "Excess of all" }
            th.n title="of requests to L1, or of cycles of LDS" { "Share" } th { "By the code" }
        }
    };
    let rows = html! { @for access in &memory.accesses { (access_rows(page, shown, access, recorded)) } };
    html! {
        details.part {
            summary { h3 { "Accesses of memory" } }
            p.facts {
                "Cost: lines of L1 of " (memory.line_bytes) " bytes, or cycles of LDS, that an execution takes: by the \
                    code with all lanes active"
                @if recorded { "; then as it was recorded" }
                "."
            }
            (data_table("Accesses of memory", "accesses", &head, &rows))
        }
    }
}

fn access_rows(page: &Page<'_>, shown: &Shown<'_>, access: &MemoryAccess, recorded: bool) -> Markup {
    let row = |measured: Option<&MeasuredAccess>| {
        html! {
            tr {
                td { (page.address(shown, access.address)) } td.i { (access.instruction) }
                td { (place(access.source.as_ref())) }
                td { (access.array.as_deref().unwrap_or_default()) }
                td { (format!("{:?}", access.category).to_lowercase()) }
                td.n { (number(access.executions)) }
                td.n { (decimal(access.cost().map(|(cost, _)| cost))) }
                td.n { (decimal(access.cost().map(|(_, ideal)| ideal))) }
                td.n { (number(access.excess.map(|excess| excess.round() as u64))) }
                @if recorded { (measured_cells(measured, access.addresses)) }
            }
        }
    };
    html! {
        @if access.measured.is_empty() { (row(None)) }
        @for measured in &access.measured { (row(Some(measured))) }
    }
}

fn measured_cells(measured: Option<&MeasuredAccess>, addresses: u32) -> Markup {
    let Some(measured) = measured else { return html! { td { "not recorded" } @for _ in 0..7 { td {} } } };
    let shown = measured.of_instruction(addresses);
    html! {
        td.n { (grouped(shown.executions)) } td.n { (decimal(Some(measured.lanes))) }
        td.n { (decimal(shown.cost)) } td.n { (decimal(shown.ideal)) }
        td.n { (grouped(measured.excess)) }
        td.n { (number(measured.total.map(|total| total.excess.round() as u64))) }
        td.n data-v=(measured.share) { (share_text(measured.share)) }
        td { (measured.as_predicted.map_or("", |same| if same { "the same" } else { "different" })) }
    }
}
