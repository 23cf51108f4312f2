//! An independent checker of a rewritten file against its original.
//!
//! It shares nothing with the stages that rewrite: it reads the two files, decodes both, and checks that the rewritten one does what the original
//! does. What it checks, and how, is told in its parts:
//!
//! * `object`: every original byte is where it was; segments, symbols, relocations as loaders want them;
//! * `kernels`: descriptor, metadata and site table agree with each other and with the code; registers are allocated;
//! * `align`: the new code is the original with instructions inserted, and control flows the same way;
//! * `preserve`: no original instruction reads anything that inserted code changed, EXEC and SCC included;
//! * `outstanding`: inserted code waits for what it uses;
//! * `hazards`: required wait states hold around inserted code.
//!
//! A finding says which rule is broken and where. No finding means that every rule above was checked and held. What is not checked: that
//! probes count what they should (running the code shows that), and memory that inserted code writes.

mod align;
mod finding;
mod hazards;
mod host;
mod image;
mod kernels;
mod object;
mod outstanding;
mod preserve;
#[cfg(test)]
mod tests;
mod values;

pub use finding::{Finding, Rule};

use align::Alignment;

use crate::cfg::Program;
use crate::code_object::{CodeObject, InitialRegisters};
use crate::dataflow::{Summaries, UsedRegisters, WaitSummaries};
use crate::error::{Result, ResultExt};
use crate::kernel::Body;
use crate::offload_bundle::Input;
use crate::profile::map::AddressPair;

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
/// let report = wavetap::verify::check_files(&file, &file).expect("readable");
/// assert!(report.findings.is_empty());
/// ```
///
/// # Errors
/// If one of the files cannot be read as what it is.
pub fn check_files(original: &[u8], rewritten: &[u8]) -> Result<Report> {
    let mut report = Report::default();
    let (old, new) =
        (Input::parse(original).within(|| "the original".into())?, Input::parse(rewritten).within(|| "the rewritten file".into())?);
    let mut around = Vec::new();
    let pairs = host::pair(&old, &new, &mut around)?;
    report.findings.extend(around.into_iter().map(|finding| ("the file".to_owned(), finding)));
    for (place, before, after) in pairs {
        if before == after {
            continue;
        }
        if !crate::elf::is_elf(before) {
            report.findings.push((place, Finding::new(Rule::HostFile, "an entry that is no code object changed")));
            continue;
        }
        let before = CodeObject::parse(before).within(|| format!("{place} of the original"))?;
        let after = CodeObject::parse(after).within(|| format!("{place} of the rewritten file"))?;
        let (kernels, findings) = check_object(&before, &after);
        report.objects += 1;
        report.kernels += kernels;
        report.findings.extend(findings.into_iter().map(|finding| (place.clone(), finding)));
    }
    Ok(report)
}

/// Checks one rewritten code object against its original; tells how many instrumented kernels it has, and what is wrong.
#[must_use]
pub fn check_object(original: &CodeObject<'_>, rewritten: &CodeObject<'_>) -> (usize, Vec<Finding>) {
    let mut findings = Vec::new();
    let map = object::check(original, rewritten, &mut findings);
    if let Some(map) = &map {
        kernels::check(original, rewritten, map, &mut findings);
    }
    (map.map_or(0, |map| map.kernels.len()), findings)
}

/// One kernel's code before and after.
#[derive(Debug, Clone, Copy)]
pub struct KernelCode<'a> {
    /// The original code object's code.
    pub program: &'a Program,
    /// The kernel in it.
    pub kernel: crate::cfg::BodyId,
    /// The instrumented kernel, decoded from its new entry.
    pub new: &'a Body,
    /// Where the site table says each original instruction is now.
    pub addresses: &'a [AddressPair],
    /// Registers at entry by the original descriptor.
    pub entry_before: &'a InitialRegisters,
    /// Registers at entry by the new descriptor.
    pub entry_after: &'a InitialRegisters,
    /// Registers that any code of the original object may use.
    pub used: UsedRegisters,
    /// What calls in the original may read and write.
    pub summaries: &'a Summaries,
    /// What calls in the original may leave outstanding.
    pub wait_summaries: &'a WaitSummaries,
    /// Whether memory instructions may be replayed (XNACK is not known to be off).
    pub replays: bool,
}

/// Checks the code of one instrumented kernel against the original's.
#[must_use]
pub fn check_code(code: &KernelCode<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let original = code.program.body(code.kernel);
    if let Some(alignment) = Alignment::find(original, code.new, code.addresses, &mut findings) {
        let subject = preserve::Subject {
            program: code.program,
            id: code.kernel,
            new: code.new,
            alignment: &alignment,
            entry: (code.entry_before, code.entry_after),
            named: code.used.named,
            summaries: code.summaries,
        };
        preserve::check(&subject, &mut findings);
        outstanding::check(code.new, &alignment, code.wait_summaries, code.used.named, &mut findings);
        hazards::check(code.new, &alignment, code.replays, &mut findings);
    }
    findings.into_iter().map(|finding| finding.in_kernel(original.name())).collect()
}
