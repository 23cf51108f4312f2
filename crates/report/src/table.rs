//! Plain text tables: columns as wide as their widest cell, numbers to the right.
//!
//! A table that is wider than its text may be has its headings in several lines, then its text columns narrower, and
//! if that is not enough, its columns in several parts below each other. Numbers are never shortened.

use super::fit;
use super::style::Style;
pub use wavetap_explain::words::grouped;

/// Which side of its column a cell keeps to, and what becomes of one that has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Short text, which is always whole.
    Left,
    /// Numbers, which are always whole.
    Right,
    /// Sentences, which wrap.
    Words,
    /// Names of kernels and functions, of which the parameters or the middle can be left out.
    Name,
    /// Instructions, of which the end can be left out.
    Code,
    /// Places in source files, of which the beginning can be left out.
    Place,
}

impl Align {
    /// The least columns of a text, with which it can be read well; with which sentences do that wrap, as they lose
    /// nothing; and with which it can be read at all.
    fn least(self) -> Option<[usize; 3]> {
        match self {
            Align::Left | Align::Right => None,
            Align::Words => Some([32, 20, 18]),
            Align::Code => Some([24, 24, 16]),
            Align::Name => Some([32, 32, 20]),
            Align::Place => Some([24, 24, 14]),
        }
    }
}

/// Two spaces: a gap that a single space within a cell cannot be mistaken for.
const GAP: &str = "  ";

/// Without a width, columns are no wider than this: a longer cell, as names of templates are, pushes only its own line
/// to the right. Otherwise a table of many lines is as wide as its longest name in all of them.
const WIDEST: usize = 100;

/// How many times text is made narrower, as [`Align::least`] says.
const STEPS: usize = 3;

/// Columns of a text in a table in several parts.
const IN_PARTS: usize = 30;

/// Columns whose cells say which row it is, wherever they are; else the first column does.
const KEYS: [&str; 2] = ["address", "entry"];

/// Rows of branches with this are warnings.
const DIVERGES: &str = "diverges in ";

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
    pub fn lines(&self, indent: usize, style: Style) -> Vec<String> {
        let columns: Vec<usize> = (0..self.head.len()).filter(|column| self.widest(*column) > 0).collect();
        let Some(width) = style.width else {
            let widths = columns.iter().map(|column| self.widest(*column).min(WIDEST).max(self.head_width(*column)));
            return self.part(&columns, &widths.collect::<Vec<_>>(), false, indent, style);
        };
        let room = width.saturating_sub(indent);
        let parts = self.parts(columns, room);
        let parts = parts.iter().enumerate();
        parts.flat_map(|(number, (columns, widths))| self.part(columns, widths, number > 0, indent, style)).collect()
    }

    fn widest(&self, column: usize) -> usize {
        self.rows.iter().map(|row| fit::width(&row[column])).max().unwrap_or(0)
    }

    fn head_width(&self, column: usize) -> usize {
        fit::width(&self.head[column].0)
    }

    /// The least columns of a heading.
    fn head_word(&self, column: usize) -> usize {
        self.head[column].0.split(' ').map(fit::width).max().unwrap_or(0)
    }

    /// The columns of each part with their widths; one part if there is room.
    fn parts(&self, columns: Vec<usize>, room: usize) -> Vec<(Vec<usize>, Vec<usize>)> {
        if let Some(widths) = self.widths(&columns, room) {
            return vec![(columns, widths)];
        }
        let least = |column: usize| match self.head[column].1.least() {
            Some(_) => self.widest(column).min(IN_PARTS).max(self.head_word(column)),
            None => self.widest(column).max(self.head_word(column)),
        };
        let key = columns.iter().copied().find(|column| KEYS.contains(&self.head[*column].0.as_str()));
        let Some(key) = key.or_else(|| columns.first().copied()) else { return Vec::new() };
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let mut used = 0;
        for column in columns.into_iter().filter(|column| *column != key) {
            let wider = GAP.len() + least(column);
            match parts.last_mut().filter(|_| used + wider <= room) {
                Some(part) => part.push(column),
                None => {
                    parts.push(vec![key, column]);
                    used = least(key);
                }
            }
            used += wider;
        }
        if parts.is_empty() {
            parts.push(vec![key]);
        }
        let widths = |part: &[usize]| {
            let least = || part.iter().map(|column| least(*column).min(room)).collect();
            self.widths(part, room).unwrap_or_else(least)
        };
        parts.into_iter().map(|part| (part.clone(), widths(&part))).collect()
    }

    /// The widths of columns with which they have room; none if they have none.
    fn widths(&self, columns: &[usize], room: usize) -> Option<Vec<usize>> {
        let mut widths: Vec<usize> =
            columns.iter().map(|column| self.widest(*column).max(self.head_width(*column))).collect();
        let gaps = GAP.len() * columns.len().saturating_sub(1);
        let fits = |widths: &[usize]| widths.iter().sum::<usize>() + gaps <= room;
        // Headings in several lines: the ones that save most first.
        let narrow = |place: usize| self.widest(columns[place]).max(self.head_word(columns[place]));
        let mut order: Vec<usize> = (0..columns.len()).collect();
        order.sort_by_key(|place| std::cmp::Reverse(widths[*place] - narrow(*place)));
        for place in order {
            if fits(&widths) {
                return Some(widths);
            }
            widths[place] = narrow(place);
        }
        // Then text, the widest first.
        for step in 0..STEPS {
            let least = |place: usize| {
                let (_, align) = &self.head[columns[place]];
                align.least().map_or(usize::MAX, |least| least[step].max(self.head_word(columns[place])))
            };
            while !fits(&widths) {
                let shrinks = (0..columns.len()).filter(|place| widths[*place] > least(*place));
                let Some(widest) = shrinks.max_by_key(|place| widths[*place]) else { break };
                widths[widest] -= 1;
            }
        }
        fits(&widths).then_some(widths)
    }

    /// The lines of these columns; `is_later` says whether other columns are above.
    fn part(&self, columns: &[usize], widths: &[usize], is_later: bool, indent: usize, style: Style) -> Vec<String> {
        let wide = style.width.is_none();
        let heads: Vec<Vec<String>> = columns
            .iter()
            .zip(widths)
            .map(|(column, width)| {
                let text = &self.head[*column].0;
                if wide { vec![text.clone()] } else { fit::cell(text, *width) }
            })
            .collect();
        let cells: Vec<Vec<Vec<String>>> = columns
            .iter()
            .zip(widths)
            .map(|(column, width)| if wide { self.whole(*column) } else { self.cells(*column, *width, style) })
            .collect();
        // What wraps may need less than it was given.
        let used = |place: usize| {
            let cells = cells[place].iter().chain([&heads[place]]).flatten();
            cells.map(|text| fit::width(text)).max().unwrap_or(0).min(widths[place])
        };
        let widths: Vec<usize> = (0..columns.len()).map(used).collect();
        let line = |texts: Vec<&str>| {
            let mut line = " ".repeat(indent);
            for ((text, width), column) in texts.iter().zip(&widths).zip(columns) {
                let blanks = " ".repeat(width.saturating_sub(fit::width(text)));
                if self.head[*column].1 == Align::Right {
                    line += &blanks;
                    line += text;
                } else {
                    line += text;
                    line += &blanks;
                }
                line += GAP;
            }
            line.truncate(line.trim_end().len());
            line
        };
        let mut lines = Vec::new();
        let height = heads.iter().map(Vec::len).max().unwrap_or(0);
        for number in 0..height {
            // The last lines are beside each other, above the cells.
            let text = |head: &'_ Vec<String>| (number + head.len()).checked_sub(height);
            let texts = heads.iter().map(|head| text(head).map_or("", |at| head[at].as_str())).collect();
            lines.push(style.dim(&line(texts)));
        }
        for (number, row) in self.rows.iter().enumerate() {
            // A row that says nothing more than which row it is.
            if is_later && columns.iter().skip(1).all(|column| row[*column].is_empty()) {
                continue;
            }
            let height = cells.iter().map(|column| column[number].len()).max().unwrap_or(0);
            let warns = row.iter().any(|cell| cell.starts_with(DIVERGES));
            for at in 0..height {
                let line = line(cells.iter().map(|column| column[number].get(at).map_or("", String::as_str)).collect());
                lines.push(if warns { style.warn(&line) } else { line });
            }
        }
        lines
    }

    /// The cells of a column as they are.
    fn whole(&self, column: usize) -> Vec<Vec<String>> {
        self.rows.iter().map(|row| vec![row[column].clone()]).collect()
    }

    /// The cells of a column in lines of this width.
    fn cells(&self, column: usize, width: usize, style: Style) -> Vec<Vec<String>> {
        let texts: Vec<&str> = self.rows.iter().map(|row| row[column].as_str()).collect();
        let one = |text: String| vec![text];
        match self.head[column].1 {
            Align::Name if !style.long_names => fit::names(&texts, width).into_iter().map(one).collect(),
            Align::Code => texts.into_iter().map(|text| one(fit::beginning(text, width))).collect(),
            Align::Place => texts.into_iter().map(|text| one(fit::end(text, width))).collect(),
            _ => texts.into_iter().map(|text| fit::cell(text, width)).collect(),
        }
    }
}

/// A table with its title, unless it is empty.
pub(super) fn push_table(title: &str, table: &Table, style: Style, lines: &mut Vec<String>) {
    if table.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(format!("  {title}"));
    lines.extend(table.lines(2, style));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(width: usize) -> Style {
        Style { width: Some(width), ..Style::default() }
    }

    fn of(columns: &[(&str, Align)], rows: &[&[&str]]) -> Table {
        let mut table = Table::new(columns);
        rows.iter().for_each(|row| table.row(row.iter().map(|cell| (*cell).to_owned())));
        table
    }

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        let columns = [("name", Align::Left), ("unused", Align::Left), ("n", Align::Right)];
        let table = of(&columns, &[&["a", "", "10"], &["longer →", "", "7"]]);
        for style in [Style::default(), within(40)] {
            assert_eq!(table.lines(2, style), ["  name       n", "  a         10", "  longer →   7"]);
        }
    }

    #[test]
    fn a_long_cell_is_whole_and_widens_its_own_line_only() {
        let long = "x".repeat(3 * WIDEST);
        let table = of(&[("name", Align::Name), ("n", Align::Right)], &[&[&long, "1"], &["short", "2"]]);
        let short = format!("{:WIDEST$}  2", "short");
        assert_eq!(table.lines(0, Style::default()), [format!("{:WIDEST$}  n", "name"), format!("{long}  1"), short]);
    }

    #[test]
    fn headings_wrap_before_text_is_shortened() {
        let columns = [("kernel", Align::Name), ("modelled wave cycles", Align::Right)];
        let table = of(&columns, &[&["add(float*, float*)", "7"], &["sub(int)", "12"]]);
        let expected = [
            "                     modelled",
            "                         wave",
            "kernel                 cycles",
            "add(float*, float*)         7",
            "sub(int)                   12",
        ];
        assert_eq!(table.lines(0, within(30)), expected);
    }

    #[test]
    fn text_is_shortened_or_wraps_and_numbers_are_whole() {
        let columns = [("address", Align::Right), ("instruction", Align::Code), ("verdict", Align::Words)];
        let row = ["0x1e28", "s_and_saveexec_b64 s[8:9], vcc", "diverges in 50 % of executions"];
        let table = of(&columns, &[&row]);
        let shortened = [
            "address  instruction               verdict",
            " 0x1e28  s_and_saveexec_b64 s[8:…  diverges in 50 % of executions",
        ];
        assert_eq!(table.lines(0, within(65)), shortened);
        let expected = [
            "address  instruction       verdict",
            " 0x1e28  s_and_saveexec_…  diverges in 50 %",
            "                           of executions",
        ];
        assert_eq!(table.lines(0, within(45)), expected);
        let coloured = table.lines(0, Style { colour: true, ..within(45) });
        assert_eq!(coloured[1], format!("\x1b[33m{}\x1b[0m", expected[1]));
    }

    #[test]
    fn a_table_without_room_is_in_parts() {
        let number = |n: u64| grouped(n * 1_000_000_000);
        let heads: Vec<String> = (0..6).map(|n| format!("n{n}")).collect();
        let mut columns = vec![("kernel", Align::Name)];
        columns.extend(heads.iter().map(|head| (head.as_str(), Align::Right)));
        let mut table = Table::new(&columns);
        table.row(["k()".to_owned()].into_iter().chain((1..7).map(number)));
        let lines = table.lines(2, within(44));
        assert!(lines.iter().all(|line| fit::width(line) <= 44), "{lines:#?}");
        assert_eq!(lines.len(), 6, "{lines:#?}");
        assert!(lines.iter().skip(1).step_by(2).all(|line| line.starts_with("  k()")), "{lines:#?}");
        assert!((1..7).all(|n| lines.concat().contains(&number(n))), "{lines:#?}");
        // A row without numbers is in the first part alone.
        table.row(["none()".to_owned()]);
        let lines = table.lines(2, within(44));
        assert_eq!(lines.iter().filter(|line| line.contains("none()")).count(), 1, "{lines:#?}");
    }
}
