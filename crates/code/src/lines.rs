//! Source lines of code.

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// The file as the debug information names it.
    pub file: String,
    /// From 1.
    pub line: u32,
}

/// A call that was inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlinedCall {
    /// The function that was inlined, if the debug information has its name.
    pub function: Option<String>,
    /// The line that calls it.
    pub called_at: SourceLine,
}

/// The source lines of the instructions of a program, by address.
pub trait SourceLines {
    /// The source line of the instruction at `address`.
    fn line(&self, address: u64) -> Option<SourceLine>;

    /// By which inlined calls the instruction at `address` came where it is, innermost first.
    fn inlined(&self, _address: u64) -> Vec<InlinedCall> {
        Vec::new()
    }
}

/// No lines are known.
impl SourceLines for () {
    fn line(&self, _address: u64) -> Option<SourceLine> {
        None
    }
}

impl<F: Fn(u64) -> Option<SourceLine>> SourceLines for F {
    fn line(&self, address: u64) -> Option<SourceLine> {
        self(address)
    }
}
