//! What all text has in common: decoration, numbers with their nouns, places.

use std::borrow::Cow;

use super::fit;
use super::names::short;
pub(super) use wavetap_explain::words::counted;
use wavetap_explain::words::grouped;
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
    /// Columns that there are; none for lines as long as they are. Tables fit by themselves, and [`Style::fit`] wraps
    /// all other lines when they are printed.
    pub width: Option<usize>,
}

impl Style {
    /// A demangled name, shortened unless long ones are wanted.
    #[must_use]
    pub fn name(self, demangled: &str) -> Cow<'_, str> {
        if self.long_names { Cow::Borrowed(demangled) } else { short(demangled) }
    }

    /// The lines of a text, of which those that have no room wrap at words.
    #[must_use]
    pub fn fit(self, text: String) -> String {
        match self.width {
            Some(width) => fit::text(&text, width),
            None => text,
        }
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
