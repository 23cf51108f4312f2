//! Source lines of code, as profiles have them.

use crate::result::{Edge, Inlined, Step};
use wavetap_base::entity::InstId;
use wavetap_code::{Code, InlinedCall, SourceLine};
use wavetap_profile::map::Source;

/// A line as profiles have it.
fn source(SourceLine { file, line }: SourceLine) -> Source {
    Source { file, line }
}

fn inlined(InlinedCall { function, called_at }: InlinedCall) -> Inlined {
    Inlined { function, called_at: source(called_at) }
}

/// The source line of the instruction at an address.
pub(crate) fn line(code: &Code<'_>, address: u64) -> Option<Source> {
    code.lines().line(address).map(source)
}

/// An instruction as a step of a path.
pub(crate) fn step(code: &Code<'_>, id: InstId, edge: Edge) -> Step {
    let address = code.address(id);
    Step {
        address,
        instruction: code.inst(id).text.to_string(),
        source: line(code, address),
        inlined: code.lines().inlined(address).into_iter().map(inlined).collect(),
        edge,
    }
}
