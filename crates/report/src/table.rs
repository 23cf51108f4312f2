//! Plain text tables: columns as wide as their widest cell, within bounds, numbers to the right.

use std::fmt::Write as _;

pub use wavetap_explain::words::grouped;

/// Which side of its column a cell keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Two spaces: a gap that a single space within a cell cannot be mistaken for.
const GAP: &str = "  ";

/// Columns are no wider than this: a longer cell, as names of templates are, pushes only its own line to the right.
/// Otherwise a table of many lines is as wide as its longest name in all of them.
const WIDEST: usize = 100;

/// A table with a heading line.
#[derive(Debug)]
pub struct Table {
    head: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    #[must_use]
    pub fn new(columns: &[(&str, Align)]) -> Table {
        Table { head: columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect(), rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty; cells beyond the columns are dropped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = cells.into_iter().take(self.head.len()).collect();
        row.resize(self.head.len(), String::new());
        self.rows.push(row);
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines: heading first, each indented by `indent` spaces, without trailing spaces. A column whose cells are
    /// all empty is left out.
    #[must_use]
    pub fn lines(&self, indent: usize) -> Vec<String> {
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let widest = self.rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
                if widest == 0 { 0 } else { widest.min(WIDEST).max(width(&self.head[column].0)) }
            })
            .collect();
        let head: Vec<&str> = self.head.iter().map(|(name, _)| name.as_str()).collect();
        std::iter::once(self.line(&head, &widths, indent))
            .chain(
                self.rows
                    .iter()
                    .map(|row| self.line(&row.iter().map(String::as_str).collect::<Vec<_>>(), &widths, indent)),
            )
            .collect()
    }

    fn line(&self, cells: &[&str], widths: &[usize], indent: usize) -> String {
        let mut line = " ".repeat(indent);
        let mut first = true;
        for ((cell, width), (_, align)) in cells.iter().zip(widths).zip(&self.head) {
            if *width == 0 {
                continue;
            }
            if !first {
                line.push_str(GAP);
            }
            first = false;
            // Writing to a String cannot fail.
            let _ = match align {
                Align::Left => write!(line, "{cell:<width$}"),
                Align::Right => write!(line, "{cell:>width$}"),
            };
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Width in terminal columns, for the characters that appear here (none is wide or combining).
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        let mut table = Table::new(&[("name", Align::Left), ("unused", Align::Left), ("n", Align::Right)]);
        table.row(["a".to_owned(), String::new(), "10".to_owned()]);
        table.row(["longer →".to_owned(), String::new(), "7".to_owned()]);
        assert_eq!(table.lines(2), ["  name       n", "  a         10", "  longer →   7"]);
    }

    #[test]
    fn a_long_cell_is_whole_and_widens_its_own_line_only() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        let long = "x".repeat(3 * WIDEST);
        table.row([long.clone(), "1".to_owned()]);
        table.row(["short".to_owned(), "2".to_owned()]);
        let short = format!("{:WIDEST$}  2", "short");
        assert_eq!(table.lines(0), [format!("{:WIDEST$}  n", "name"), format!("{long}  1"), short]);
    }
}
