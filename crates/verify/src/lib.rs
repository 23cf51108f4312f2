//! An independent checker of a rewritten file against its original.
//!
//! It uses none of the code that rewrites: it reads the two files, decodes both, and checks that the rewritten one does
//! what the original does. With the stages that rewrite it shares what decodes and analyses code (`wavetap-amdgpu`,
//! `wavetap-analysis`): the decoder, call resolution, `Cfg` and `Program`, `Summaries` and `reachable_registers`,
//! `Liveness` (in `preload`), `Definitions` (in `scratch`), and the model of wait counters. Its README says for each
//! which test compares it with something independent, mostly the emulator.
//!
//! What it checks, and how, is told in its parts:
//!
//! * `file`: every original byte is where it was; segments, symbols, relocations as loaders want them;
//! * `kernels`: descriptor, metadata and site table agree with each other and with the code; registers are allocated;
//! * `alignment`: the new code is the original with instructions inserted, and control flows the same way, calls
//!   included;
//! * `placement`: only what may be inserted was, and nothing between instructions that must follow each other;
//! * `values`: no original instruction reads anything that inserted code changed, EXEC and SCC included; inserted code
//!   reads no undefined register;
//! * `waits`: inserted code waits for what it uses;
//! * `hazards`: what the target leaves to software holds around inserted code.
//!
//! A kernel's new code is the kernel and copies of functions that it calls; each is checked against its original by
//! itself. At a call everything that the function reads is what it is in the original; at a function's entry that is
//! taken for granted, and at its return everything that original code names is what it is in the original, but for
//! scalar registers that no caller of the copy reads after the call. Return addresses correspond.
//!
//! It checks code of every target that the tables have instructions of, in wave32 and wave64. A finding says which
//! rule is broken and where. No finding means that every rule above was checked and held. `docs/reference/verifier.md`
//! says in full what is checked and what is not.
#![forbid(unsafe_code)]

mod added;
mod alignment;
mod code;
mod file;
mod finding;
mod hazards;
mod kernels;
mod placement;
mod template;
#[cfg(test)]
mod tests;
mod values;
mod waits;

pub use added::{AddedKernel, check_added, check_moved};
pub use code::{KernelCode, check_code};
pub use finding::{Finding, Rule};
pub use template::VerifiedTemplate;

use wavetap_base::error::{Result, ResultExt};
use wavetap_object::code_object::CodeObject;
use wavetap_object::offload_bundle::Input;
use wavetap_profile::map::ObjectMap;

/// What was checked and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Code objects that differ from the original's and were checked.
    pub objects: usize,
    /// Instrumented kernels that were checked.
    pub kernels: usize,
    /// Broken rules, each with the code object's place in the file.
    pub findings: Vec<(String, Finding)>,
}

/// Checks a rewritten file (host executable or library, bundle, code object) against its original.
///
/// ```
/// // A file is a faithful rewrite of itself.
/// # let Ok(file) = std::fs::read("hip-samples/bin/vectoradd") else { return };
/// let report = wavetap_verify::check_files(&file, &file).expect("readable");
/// assert!(report.findings.is_empty());
/// ```
///
/// # Errors
/// If one of the files cannot be read as what it is.
pub fn check_files(original: &[u8], rewritten: &[u8]) -> Result<Report> {
    let mut report = Report::default();
    let (old, new) = (
        Input::parse(original).within(|| "the original".into())?,
        Input::parse(rewritten).within(|| "the rewritten file".into())?,
    );
    let mut around = Vec::new();
    let pairs = file::host::pair(&old, &new, &mut around)?;
    report.findings.extend(around.into_iter().map(|finding| ("the file".to_owned(), finding)));
    for (place, before, after) in pairs {
        if before == after {
            continue;
        }
        if !wavetap_object::elf::is_elf(before) {
            report.findings.push((place, Finding::new(Rule::HostFile, "an entry that is no code object changed")));
            continue;
        }
        let (before, after) = match (CodeObject::parse(before), CodeObject::parse(after)) {
            (Ok(before), Ok(after)) => (before, after),
            // Beside others the rest can be checked; by itself it is a wrong input.
            (Err(error), _) if old.bundles.is_empty() => return Err(error.within(format!("{place} of the original"))),
            (_, Err(error)) if old.bundles.is_empty() => {
                return Err(error.within(format!("{place} of the rewritten file")));
            }
            (Err(error), _) => {
                let message = format!("a code object that cannot be read changed: {error}");
                report.findings.push((place, Finding::new(Rule::Skeleton, message)));
                continue;
            }
            (_, Err(error)) => {
                report.findings.push((
                    place,
                    Finding::new(Rule::Skeleton, format!("the rewritten code object cannot be read: {error}")),
                ));
                continue;
            }
        };
        let (kernels, findings) = check_object(&before, &after);
        report.objects += 1;
        report.kernels += kernels;
        report.findings.extend(findings.into_iter().map(|finding| (place.clone(), finding)));
    }
    Ok(report)
}

/// Checks one rewritten code object against its original; tells how many instrumented kernels it has, and what is
/// wrong.
#[must_use]
pub fn check_object(original: &CodeObject<'_>, rewritten: &CodeObject<'_>) -> (usize, Vec<Finding>) {
    let (map, findings) = check_beside(original, rewritten, None, true);
    (map.map_or(0, |map| map.kernels.len()), findings)
}

/// [`check_object`]; gives the site table, if it can be read. Code that `earlier` has as well, in the same place, for a
/// target that is like this one, with the same descriptors, metadata and sites, is not looked at again: everything else
/// is. Kernels are checked `at_once`, on all threads, or one after the other.
pub fn check_beside(
    original: &CodeObject<'_>,
    rewritten: &CodeObject<'_>,
    earlier: Option<VerifiedTemplate<'_>>,
    at_once: bool,
) -> (Option<ObjectMap>, Vec<Finding>) {
    let mut findings = Vec::new();
    let map = file::object::check(original, rewritten, &mut findings);
    if let Some(map) = &map {
        kernels::check(original, rewritten, map, earlier, at_once, &mut findings);
    }
    (map, findings)
}
