//! Errors that say what was found, what was expected and where.
//!
//! There is one error type for the whole library. Its [`Kind`] tells bad input, something that is not supported, a
//! limit and a fault of our own apart, because a caller treats them differently: a command exits with code 2 on bad
//! input, and reports a refused kernel and goes on when something is unsupported.

use std::borrow::Cow;
use std::fmt;

/// What sort of failure an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The input breaks its format: nothing sensible can be read there.
    Malformed,
    /// The input is well-formed, and this program does not handle it.
    Unsupported,
    /// A fixed limit (size, count, fuel) was exceeded.
    Limit,
    /// A fault of this program, not of its input.
    Internal,
    /// The operating system refused a file operation.
    Io,
}

/// An error with the place where it happened.
///
/// Displayed as `message (at offset 0x40 in bundle entry 2 of app)`: outermost context last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: Kind,
    message: Message,
    offset: Option<u64>,
    context: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Message {
    Text(String),
    /// Code that is no instruction: made into text when the message is printed, because padding between functions is
    /// such code and there is much of it.
    Code {
        what: &'static str,
        of: &'static str,
        target: &'static str,
        dwords: [u32; 2],
    },
}

impl Message {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Message::Text(text) => Cow::Borrowed(text),
            Message::Code { what, of, target, dwords: [first, second] } => {
                Cow::Owned(format!("{what}{of} of {target}: {first:#010x} {second:#010x}"))
            }
        }
    }
}

/// The result of everything in this library that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of the given kind; `message` says what was found and what was expected.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, message: Message::Text(message.into()), offset: None, context: Vec::new() }))
    }

    /// The input breaks its format.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(Kind::Malformed, message)
    }

    /// Code whose first dwords are given is no instruction of a target: what it is (`"no instruction"`), and of which
    /// operation.
    pub fn no_instruction(what: &'static str, of: &'static str, target: &'static str, dwords: [u32; 2]) -> Self {
        let message = Message::Code { what, of, target, dwords };
        Error(Box::new(Inner { kind: Kind::Malformed, message, offset: None, context: Vec::new() }))
    }

    /// The input is well-formed but not handled.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, message)
    }

    /// A limit was exceeded.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(Kind::Limit, message)
    }

    /// A fault of this program.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// Adds the byte offset at which the error was found, if none is known yet.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Adds an outer place: `in kernel foo`, `in bundle entry 2`.
    #[must_use]
    pub fn within(mut self, context: impl Into<String>) -> Self {
        self.0.context.push(context.into());
        self
    }

    /// What sort of failure this is.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The message without its place.
    pub fn message(&self) -> Cow<'_, str> {
        self.0.message.text()
    }

    /// The byte offset of the failure, in the innermost context.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message.text())?;
        if let Some(offset) = self.0.offset {
            write!(f, " (at offset {offset:#x})")?;
        }
        for context in &self.0.context {
            write!(f, ", in {context}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::new(Kind::Io, error.to_string())
    }
}

/// Adds places to the error of a [`Result`] on its way up.
pub trait ResultExt<T> {
    /// Adds an outer place, made only when there is an error.
    fn within(self, context: impl FnOnce() -> String) -> Result<T>;
}

impl<T> ResultExt<T> for Result<T> {
    fn within(self, context: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| error.within(context()))
    }
}
