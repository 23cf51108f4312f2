//! Code objects that were linked from several, as generators of assembly make them: each has brought a metadata note of
//! its own.

use rewriter_tests::Failure;
use rewriter_tests::instrumented::Subject;
use rewriter_tests::kernels::build;
use wavetap::code_object::CodeObject;
use wavetap::isa::Target;
use wavetap::pipeline::{Counters, Options, probe, rewrite};

use super::assembly::{FINISH, START, counted, file, instrumented, on_lanes, variant};
use super::seeds;
use super::written::kernel;

/// The kernels, each in an object of its own.
const KERNELS: [&str; 3] = ["first", "second", "third"];

/// All kernels are counted, and afterwards one note says what all said.
pub fn check(target: Target) -> Result<(), Failure> {
    let text = |(n, name): (usize, &&str)| {
        file(&kernel(name, &format!("{START}{}{FINISH}", on_lanes(n, 3 * n + 2))), &[*name], target)
    };
    let texts: Vec<String> = KERNELS.iter().enumerate().map(text).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let object = build::linked(&texts, variant(target))?;
    let notes = |object: &[u8]| -> Result<(usize, usize), Failure> {
        let code = CodeObject::parse(object).map_err(|e| e.to_string())?;
        let metadata = code.metadata().ok_or("no metadata")?;
        Ok((metadata.descriptors().count(), metadata.kernels.len()))
    };
    if notes(&object)? != (KERNELS.len(), KERNELS.len()) {
        return Err(format!("{:?} notes and kernels", notes(&object)?));
    }
    for counters in [Counters::Lds, Counters::Global] {
        let options = Options { counters, probes: vec![probe::BRANCHES], ..Options::default() };
        let rewritten = rewrite(&object, &options).map_err(|e| e.to_string())?.bytes;
        if notes(&rewritten)? != (1, KERNELS.len()) {
            return Err(format!("{:?} notes and kernels of the rewritten object", notes(&rewritten)?));
        }
    }
    let subject = Subject::of(&object, target)?;
    for name in KERNELS {
        instrumented(&subject, name)?;
        counted(&subject, name, seeds())?;
    }
    Ok(())
}
