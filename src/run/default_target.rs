//! The processor that is emulated for a program under ROCm, whose driver has to know before anything is loaded.

use wavetap_amdgpu::Target;
use wavetap_object::offload_bundle::{Input, TargetId};

/// The processor that is emulated where nothing says which.
const DEFAULT: &str = "gfx90a";

/// The processor to emulate under ROCm for a program: gfx90a if it has code for that or for none at all, else the first
/// one that it has code for. XNACK is off there, so code that needs it counts for nothing.
pub(super) fn for_program(data: &[u8]) -> String {
    let input = Input::parse(data);
    let code = input.iter().flat_map(Input::code_objects).filter_map(|found| found.target);
    first_for(code).unwrap_or(DEFAULT).to_owned()
}

/// The first of the processors that ROCm can have, [`DEFAULT`] before all others.
fn first_for<'t>(code: impl Iterator<Item = &'t TargetId>) -> Option<&'t str> {
    let is_for =
        |id: &&TargetId| id.xnack != Some(true) && Target::by_name(&id.processor).is_some_and(Target::emulated);
    let mut processors = code.filter(is_for).map(|id| id.processor.as_str()).filter(|name| !name.contains('-'));
    let first = processors.next()?;
    if first == DEFAULT { Some(first) } else { processors.find(|name| *name == DEFAULT).or(Some(first)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_a_processor_that_it_has_code_for() {
        for (code, expected) in [
            (&[][..], None),
            (&["gfx906", "gfx90a"], Some("gfx90a")),
            (&["gfx1030", "gfx906"], Some("gfx1030")),
            (&["gfx9-generic", "gfx942:xnack+", "gfx1100"], Some("gfx1100")),
        ] {
            let code: Vec<_> = code.iter().map(|text| TargetId::parse(text).unwrap()).collect();
            assert_eq!(first_for(code.iter()), expected, "{code:?}");
        }
        assert_eq!(for_program(b"#!/bin/sh"), DEFAULT);
    }
}
