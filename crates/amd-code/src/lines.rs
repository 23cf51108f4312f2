//! Source lines from the debug information of a code object.

use wavetap_code::{InlinedCall, SourceLine, SourceLines};
use wavetap_object::code_object::{LineTable, SourceLocation};

/// The lines of a code object, if it has any.
#[derive(Debug, Clone, Copy)]
pub struct TableLines<'a>(pub Option<&'a LineTable>);

/// Line 0 is none.
fn line(location: SourceLocation) -> Option<SourceLine> {
    (location.line > 0).then_some(SourceLine { file: location.file, line: location.line })
}

impl SourceLines for TableLines<'_> {
    fn line(&self, address: u64) -> Option<SourceLine> {
        line(self.0?.location(address)?)
    }

    fn inlined(&self, address: u64) -> Vec<InlinedCall> {
        let Some(lines) = self.0 else { return Vec::new() };
        let frames = lines.frames(address);
        let calls = frames.iter().zip(frames.iter().skip(1)).filter_map(|(inner, outer)| {
            let called_at = line(outer.location.clone()?)?;
            Some(InlinedCall { function: inner.function.clone(), called_at })
        });
        calls.collect()
    }
}
