//! Sites of a probe that has no section of its own: a table of the fields of their schema.

use maud::{Markup, html};

use super::kernel::closed_part;
use super::parts::data_table;
use super::{Page, Shown};
use crate::sections::SiteTable;
use crate::style::place;

/// The table, after what its sites come to together: rows of the page are sorted by its reader.
pub(super) fn section(page: &Page<'_>, shown: &Shown<'_>, table: &SiteTable) -> Markup {
    let head = html! {
        th { "Address" } th { "Instruction" } th { "Source" } @for head in table.heads() { th.n { (head) } }
    };
    let rows = html! {
        @for site in table.sorted() {
            tr {
                td { (page.address(shown, site.address)) } td.i { (site.instruction) }
                td { (place(site.source.as_ref())) }
                @for cell in table.cells(&site.counts) { td.n { (cell) } }
            }
        }
    };
    let totals = table.heads().zip(table.cells(&table.totals)).map(|(head, total)| format!("{head}: {total}"));
    let totals = totals.collect::<Vec<_>>().join(", ");
    let content = html! { p.facts { "All sites: " (totals) } (data_table(&table.title(), "sites", &head, &rows)) };
    closed_part(&table.title(), &content)
}
