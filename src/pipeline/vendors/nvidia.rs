//! NVIDIA: cubins and the files that hold them.

use std::collections::BTreeSet;

use super::{FoundCode, FoundFunction, NotRead, SampledFunctions, Then, check, has_target};
use wavetap_base::error::Result;
use wavetap_code::SourceLines;
use wavetap_explain::words::counted;
use wavetap_nvidia::container::{self, Cubin, Function, FunctionLines, Opened};
use wavetap_object::selection::Selection;

pub(super) fn read((data, origin): (&[u8], &str), selection: &Selection, then: Then<'_>) -> Result<()> {
    let Opened { cubins, refused, ptx } = container::open(data, origin)?;
    let targets: Vec<String> = cubins.iter().map(|cubin| cubin.model().to_string()).collect();
    let names: Vec<&str> = cubins.iter().flat_map(|cubin| cubin.functions().map(|function| function.name())).collect();
    check(origin, selection, &targets, &names)?;
    type Wanted<'c> = (&'c Cubin, Vec<(Function<'c>, Option<FunctionLines<'c>>)>);
    let wanted: Vec<Wanted<'_>> = cubins
        .iter()
        .filter(|cubin| has_target(selection, &cubin.model().to_string()))
        .map(|cubin| {
            let functions = cubin.functions().filter(|function| selection.has_kernel(function.name()));
            // Damaged debug information costs the source lines, nothing else.
            (cubin, functions.map(|function| (function, function.lines().ok())).collect())
        })
        .collect();
    let found = wanted.iter().map(|(cubin, functions)| FoundCode {
        target: cubin.model().to_string(),
        functions: functions
            .iter()
            .map(|(function, lines)| {
                let lines: &dyn SourceLines = match lines {
                    Some(lines) => lines,
                    None => &(),
                };
                FoundFunction {
                    name: function.name().to_owned(),
                    is_kernel: function.is_kernel(),
                    code: function.code(lines),
                }
            })
            .collect(),
    });
    let models: BTreeSet<String> = ptx.iter().map(|model| format!("sm_{model}")).collect();
    let models: Vec<String> = models.into_iter().collect();
    let note = format!(
        "{} of PTX for {}, which the driver compiles: not read",
        counted(ptx.len() as u64, "entry", "entries"),
        models.join(", ")
    );
    let notes = if ptx.is_empty() { Vec::new() } else { vec![note] };
    then(found.collect(), NotRead { notes, unread: refused.iter().map(ToString::to_string).collect() });
    Ok(())
}

pub(super) fn samples(text: &str) -> Result<SampledFunctions> {
    let functions = wavetap_nvidia::samples::read(text)?;
    Ok(functions.into_iter().map(|function| (function.name, function.places)).collect())
}
