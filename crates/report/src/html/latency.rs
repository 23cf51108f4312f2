//! How long loads took, as the latency probe measured it.

use maud::{Markup, html};

use super::parts::{bar, data_table, decimal, number};
use super::{Page, Shown, kernel};
use crate::sections::latency::{how, percentile};
use crate::style::place;
use crate::table::grouped;
use wavetap_explain::{MeasuredLatency, MeasuredLoad};

/// The section.
pub(super) fn section(page: &Page<'_>, shown: &Shown<'_>, latency: &MeasuredLatency) -> Markup {
    let head = html! {
        th { "Address" } th { "Load" } th { "Source" } th.n { "Executions" } th.n { "Mean" } th.n { "Net" }
        th.n { "Least" } th.n { "p50" } th.n { "p90" } th.n { "p99" } th.n { "Most" } th.n { "Share" } th { "Measured" }
    };
    let by_cost = latency.by_cost();
    let all: f64 = by_cost.iter().map(|load| latency.net(load)).sum();
    let row = |load: &MeasuredLoad| {
        let net = latency.net(load);
        let share = if all > 0.0 { net / all } else { 0.0 };
        // Cycles of a clock that wrapped around are too few.
        let least = if load.counts.wrapped > 0 { "≥ " } else { "" };
        html! {
            tr {
                td { (page.address(shown, load.address)) } td.i { (load.instruction) }
                td { (place(load.source.as_ref())) }
                td.n { (grouped(load.counts.executions)) }
                td.n { (least) (decimal(load.counts.mean())) }
                td.n { (least) (decimal(Some(net / load.counts.executions.max(1) as f64))) }
                td.n { (number(load.counts.shortest)) }
                @for percent in [50, 90, 99] { td.n { (percentile(load, percent)) } }
                td.n { (least) (grouped(load.counts.longest)) }
                td.n { (bar(share)) (super::parts::share_text(share)) }
                td { (how(load)) }
            }
        }
    };
    let rows = html! { @for load in by_cost { (row(load)) } };
    let table = html! {
        p.facts { "Cycles of the shader's clock from before each load until its wait is over." }
        p.facts {
            "Two readings of the clock with nothing between them take " (decimal(latency.empty.mean()))
            ": net is mean less that."
        }
        (data_table("Measured latency", "latency", &head, &rows))
    };
    kernel::closed_part("Measured latency of loads", &table)
}
