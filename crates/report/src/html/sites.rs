//! Sites of a probe that has no section of its own: a table of the fields of their schema.

use maud::{Markup, html};

use super::kernel::closed_part;
use super::parts::data_table;
use super::{Page, Shown};
use crate::sections::sites::{cells, heads, title};
use crate::style::place;
use wavetap_explain::SiteTable;

/// The table, after what its sites come to together: rows of the page are sorted by its reader.
pub(super) fn section(page: &Page<'_>, shown: &Shown<'_>, table: &SiteTable) -> Markup {
    let head = html! {
        th { "Address" } th { "Instruction" } th { "Source" } @for head in heads(table) { th.n { (head) } }
    };
    let rows = html! {
        @for site in table.sorted() {
            tr {
                td { (page.address(shown, site.address)) } td.i { (site.instruction) }
                td { (place(site.source.as_ref())) }
                @for cell in cells(table, &site.counts) { td.n { (cell) } }
            }
        }
    };
    let totals = heads(table).zip(cells(table, &table.totals)).map(|(head, total)| format!("{head}: {total}"));
    let totals = totals.collect::<Vec<_>>().join(", ");
    let content = html! { p.facts { "All sites: " (totals) } (data_table(&title(table), "sites", &head, &rows)) };
    closed_part(&title(table), &content)
}
