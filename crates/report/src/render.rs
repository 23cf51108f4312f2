//! How data of other crates becomes text.

use super::style::Style;

/// Something that is a line.
pub(crate) trait Line {
    /// The line, without decoration.
    fn line(&self) -> String;
}

/// Something that is several lines.
pub(crate) trait Lines {
    /// Adds them.
    fn lines(&self, style: Style, lines: &mut Vec<String>);
}
