//! What all text has in common: decoration, numbers with their nouns, places, tables with titles.

use std::borrow::Cow;

use super::names::short;
use super::table::{Table, grouped};
pub(super) use wavetap_explain::words::counted;
pub use wavetap_explain::words::place;

/// Said of counts of a run that was cut short.
pub(super) const DID_NOT_END: &str = "the run did not end: these are the counts collected up to then";

/// How text is decorated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Whether to use ANSI colours.
    pub colour: bool,
    /// Whether names of kernels and functions are whole, however long they are.
    pub long_names: bool,
}

impl Style {
    /// A demangled name, shortened unless long ones are wanted.
    #[must_use]
    pub fn name(self, demangled: &str) -> Cow<'_, str> {
        if self.long_names { Cow::Borrowed(demangled) } else { short(demangled) }
    }

    /// `text` in bold.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// `text` dimmed.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// `text` as a warning.
    #[must_use]
    pub fn warn(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// `text` as something that changes where control goes.
    #[must_use]
    pub fn flow(self, text: &str) -> String {
        self.wrap("36", text)
    }

    /// `text` as something that is not as it should be.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A table with its title, unless it is empty.
pub(super) fn push_table(title: &str, table: &Table, style: Style, lines: &mut Vec<String>) {
    if table.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(format!("  {title}"));
    let mut table = table.lines(2).into_iter();
    lines.extend(table.next().map(|head| style.dim(&head)));
    lines.extend(table.map(|line| highlight(line, style)));
}

/// Lines about divergence stand out.
fn highlight(line: String, style: Style) -> String {
    if line.contains("  diverges in ") { style.warn(&line) } else { line }
}

/// What is missing from the counts of a kernel of whose waves so many were dropped and so many did not end.
pub(super) fn missing_waves(dropped: u64, unfinished: u64) -> impl Iterator<Item = String> {
    let all = [
        (dropped, "waves are missing from the counts: the record buffer was full (see --records)"),
        (unfinished, "waves began and never ended: their counts may be incomplete"),
    ];
    all.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{} {what}", grouped(count)))
}

/// Of which functions branches are missing, if of any.
pub(super) fn not_counted(callees: &[String]) -> Option<String> {
    (!callees.is_empty()).then(|| format!("not counted: branches within called functions ({})", callees.join(", ")))
}
