//! What was dispatched in which range of the program, as text.

use wavetap_explain::regions::RegionRow;

use crate::style::Style;
use crate::table::{Align, Table, grouped};

/// Rows shown as text: a program that marks each of its steps has many. JSON and pages have all.
const SHOWN: usize = 24;

/// What is in the place of a region for what was dispatched outside of all.
pub(crate) const OUTSIDE: &str = "outside of ranges";

/// Whether a row is the first one of its region.
fn is_first(rows: &[RegionRow], at: usize) -> bool {
    at.checked_sub(1).is_none_or(|before| rows[before].region != rows[at].region)
}

/// The lines of the section; none where the program has marked no range.
pub(crate) fn lines(rows: &[RegionRow], style: Style, lines: &mut Vec<String>) {
    if rows.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(style.bold("ranges of the program (--region NAME reports on one alone)"));
    let columns = [
        ("range", Align::Words),
        ("kernel", Align::Name),
        ("dispatches", Align::Right),
        ("waves", Align::Right),
        ("modelled cycles", Align::Right),
    ];
    let mut table = Table::new(&columns);
    for (at, row) in rows.iter().enumerate().take(SHOWN) {
        let region = row.region.as_deref().unwrap_or(OUTSIDE);
        table.row([
            if is_first(rows, at) { region.to_owned() } else { String::new() },
            style.name(&row.demangled).into_owned(),
            grouped(row.dispatches),
            grouped(row.waves),
            row.modelled_cycles.map(grouped).unwrap_or_default(),
        ]);
    }
    lines.extend(table.lines(2, style));
    if rows.len() > SHOWN {
        lines.push(format!("  and {} more: --format json has all", rows.len() - SHOWN));
    }
}
