//! Source lines of code.

use crate::result::Inlined;
use wavetap_object::code_object::LineTable;
use wavetap_profile::map::Source;

/// The source lines of the instructions of a code object.
pub trait SourceLines {
    /// The source line of the instruction at `address`.
    fn line(&self, address: u64) -> Option<Source>;

    /// By which inlined calls the instruction at `address` came where it is, innermost first.
    fn inlined(&self, _address: u64) -> Vec<Inlined> {
        Vec::new()
    }
}

/// No lines are known.
impl SourceLines for () {
    fn line(&self, _address: u64) -> Option<Source> {
        None
    }
}

impl<F: Fn(u64) -> Option<Source>> SourceLines for F {
    fn line(&self, address: u64) -> Option<Source> {
        self(address)
    }
}

impl SourceLines for Option<LineTable> {
    fn line(&self, address: u64) -> Option<Source> {
        let location = self.as_ref()?.location(address)?;
        (location.line > 0).then_some(Source { file: location.file, line: location.line })
    }

    fn inlined(&self, address: u64) -> Vec<Inlined> {
        let Some(lines) = self else { return Vec::new() };
        let frames = lines.frames(address);
        let calls = frames.iter().zip(frames.iter().skip(1)).filter_map(|(inner, outer)| {
            let location = outer.location.clone().filter(|location| location.line > 0)?;
            Some(Inlined {
                function: inner.function.clone(),
                called_at: Source { file: location.file, line: location.line },
            })
        });
        calls.collect()
    }
}
