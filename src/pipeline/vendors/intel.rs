//! Intel: zebins and the files that hold them.

use super::{FoundCode, FoundFunction, NotRead, SampledFunctions, Then, check, has_target};
use wavetap_base::error::Result;
use wavetap_intel::container::FunctionLines;
use wavetap_intel::{Function, Zebin};
use wavetap_object::selection::Selection;

pub(super) fn read((data, origin): (&[u8], &str), selection: &Selection, then: Then<'_>) -> Result<()> {
    let zebins = wavetap_intel::open(data, origin)?;
    let targets: Vec<String> = zebins.iter().map(|zebin| zebin.target().name().to_owned()).collect();
    let names: Vec<&str> =
        zebins.iter().flat_map(|zebin| zebin.functions().iter().map(|function| function.name)).collect();
    check(origin, selection, &targets, &names)?;
    type Wanted<'z> = (&'z Zebin<'z>, Vec<(&'z Function<'z>, FunctionLines<'z>)>);
    let wanted: Vec<Wanted<'_>> = zebins
        .iter()
        .filter(|zebin| has_target(selection, zebin.target().name()))
        .map(|zebin| {
            let functions = zebin.functions().iter().filter(|function| selection.has_kernel(function.name));
            (zebin, functions.map(|function| (function, zebin.lines(function))).collect())
        })
        .collect();
    let found = wanted.iter().map(|(zebin, functions)| FoundCode {
        target: zebin.target().name().to_owned(),
        functions: functions
            .iter()
            .map(|(function, lines)| FoundFunction {
                name: function.name.to_owned(),
                is_kernel: function.is_kernel,
                code: function.code(lines),
            })
            .collect(),
    });
    then(found.collect(), NotRead::default());
    Ok(())
}

pub(super) fn samples(text: &str) -> Result<SampledFunctions> {
    Ok(wavetap_intel::samples::read(text)?.into_iter().collect())
}
