//! What was dispatched in which range of the program.

use maud::{Markup, html};
use wavetap_explain::regions::RegionRow;

use super::parts::{data_table, number};
use crate::regions::OUTSIDE;
use crate::table::grouped;

/// The section of a page; nothing where the program has marked no range.
pub(super) fn section(rows: &[RegionRow]) -> Markup {
    if rows.is_empty() {
        return Markup::default();
    }
    let is_timed = rows.iter().any(|row| row.modelled_cycles.is_some());
    let head = html! {
        th { "Range" } th { "Kernel" } th.n { "Dispatches" } th.n { "Waves" }
        @if is_timed { th.n { "Modelled cycles" } }
    };
    let body = html! {
        @for row in rows {
            tr {
                td { (row.region.as_deref().unwrap_or(OUTSIDE)) }
                td.name { (row.demangled) }
                td.n { (grouped(row.dispatches)) }
                td.n { (grouped(row.waves)) }
                @if is_timed { td.n { (number(row.modelled_cycles)) } }
            }
        }
    };
    html! {
        section #regions {
            h2 { "Ranges of the program" }
            p.facts { "What was launched while which ranges were open (roctx); " code { "--region NAME" }
                " reports on one of them alone." }
            (data_table("Ranges of the program", "regions", &head, &body))
        }
    }
}
