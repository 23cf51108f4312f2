//! An independent checker of a rewritten file against its original.
//!
//! It shares nothing with the stages that rewrite: it reads the two files, decodes both, and checks that the rewritten one does what the original
//! does. What it checks, and how, is told in its parts:
//!
//! * `object`, `tables`: every original byte is where it was; segments, symbols, relocations as loaders want them;
//! * `kernels`, `allocation`, `preload`, `scratch`: descriptor, metadata and site table agree with each other and with the code; registers are allocated;
//! * `align`: the new code is the original with instructions inserted, and control flows the same way, calls included;
//! * `adjacent`: nothing was inserted between instructions that must follow each other;
//! * `preserve`, `homes`, `high_registers`: no original instruction reads anything that inserted code changed, EXEC and SCC included;
//! * `defined`: inserted code reads no register that nothing has set;
//! * `outstanding`, `accessed`, `translations`: inserted code waits for what it uses;
//! * `hazards`, `matrix`, `events`, `forwarding`, `scheduling`: what the target leaves to software holds around inserted code.
//!
//! A kernel's new code is the kernel and copies of functions that it calls; each is checked against its original by itself. At a call everything that the
//! function reads is what it is in the original; at a function's entry that is taken for granted, and at its return everything that original
//! code names is what it is in the original. Return addresses correspond.
//!
//! It checks code of every target that the tables have instructions of, in waves of 32 and 64. A finding says which rule is broken and where. No finding
//! means that every rule above was checked and held. `docs/verify.md` says in full what is checked and what is not.

mod accessed;
mod adjacent;
mod align;
mod allocation;
mod arrivals;
mod defined;
mod events;
mod few;
mod finding;
mod forwarding;
mod hazards;
mod high_registers;
mod homes;
mod host;
mod image;
mod kernels;
mod matrix;
mod object;
mod outstanding;
mod preload;
mod preserve;
mod scheduling;
mod scratch;
mod tables;
#[cfg(test)]
mod tests;
mod translations;
mod values;

pub use finding::{Finding, Rule};

use std::collections::BTreeSet;

use align::Alignment;

use crate::cfg::{BodyId, Cfg, Program};
use crate::code_object::{CodeObject, InitialRegisters};
use crate::dataflow::{Summaries, UsedRegisters, WaitSummaries};
use crate::error::{Result, ResultExt};
use crate::kernel::{Body, CallTarget, Flow, Image};
use crate::offload_bundle::Input;
use crate::profile::map::{AddressPair, ObjectMap};

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
    let (map, findings) = check_beside(original, rewritten, None, true);
    (map.map_or(0, |map| map.kernels.len()), findings)
}

/// A rewritten code object in which nothing was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Faultless<'a> {
    pub(crate) original: &'a CodeObject<'a>,
    pub(crate) rewritten: &'a CodeObject<'a>,
    /// Its site table, as [`check_beside`] read it.
    pub(crate) map: &'a ObjectMap,
}

/// [`check_object`]; gives the site table, if it can be read. Code that `earlier` has as well, in the same place, for a target that is like this one, with the same
/// descriptors, metadata and sites, is not looked at again: everything else is. Kernels are checked `at_once`, on all threads, or one after the other.
pub(crate) fn check_beside(
    original: &CodeObject<'_>,
    rewritten: &CodeObject<'_>,
    earlier: Option<Faultless<'_>>,
    at_once: bool,
) -> (Option<ObjectMap>, Vec<Finding>) {
    let mut findings = Vec::new();
    let map = object::check(original, rewritten, &mut findings);
    if let Some(map) = &map {
        kernels::check(original, rewritten, map, earlier, at_once, &mut findings);
    }
    (map, findings)
}

/// One kernel's code before and after.
#[derive(Debug, Clone, Copy)]
pub struct KernelCode<'a> {
    /// The original code object's code.
    pub program: &'a Program,
    /// The image that it was decoded from.
    pub image: &'a Image<'a>,
    /// The kernel in it.
    pub kernel: BodyId,
    /// The instrumented kernel, decoded from its new entry, and all that it calls.
    pub new: &'a Program,
    /// The address of the new entry.
    pub entry: u64,
    /// From here on code is new: what is called there is a copy of an original function.
    pub new_code: u64,
    /// Where the site table says each original instruction is now, those of copied functions included.
    pub addresses: &'a [AddressPair],
    /// Registers at entry by the original descriptor.
    pub entry_before: &'a InitialRegisters,
    /// Registers at entry by the new descriptor.
    pub entry_after: &'a InitialRegisters,
    /// Vector registers that the original descriptor allocates, without accumulation registers behind them.
    pub vector_registers: u32,
    /// Bytes of scratch memory of each work-item: what was added for inserted code.
    pub scratch: (u64, u64),
    /// Registers that any code of the original object may use.
    pub used: UsedRegisters,
    /// What calls in the original may read and write.
    pub summaries: &'a Summaries,
    /// Whether memory instructions may be replayed (XNACK is not known to be off).
    pub replays: bool,
}

/// A copied function may end in a jump to the copy of another one where the original calls that in its place. The new body then has the instructions of both:
/// this is the original that has as well, if it is so.
fn with_tail_calls(code: &KernelCode<'_>, original: BodyId, new: &Body) -> Option<Body> {
    let mut merged: Option<Body> = None;
    let mut jumps = BTreeSet::new();
    loop {
        let body = merged.as_ref().unwrap_or_else(|| code.program.body(original));
        let before = jumps.len();
        for (id, target) in body.calls().filter(|(id, _)| matches!(body.flow(*id), Flow::TailCall(_))) {
            let CallTarget::Known(function) = target else { continue };
            let places = code.addresses.iter().filter(|pair| pair.original == body.address(id));
            let mut flows = places.filter_map(|pair| new.at(pair.rewritten)).map(|id| new.flow(id));
            if flows.any(|flow| matches!(flow, Flow::Jump(_))) {
                jumps.insert(function);
            }
        }
        if jumps.len() == before {
            return merged;
        }
        let image = code.image.without_entries(&jumps);
        merged = Some(code.program.decode_in(&image, original).ok()?);
    }
}

/// Checks the code of one instrumented kernel, with the functions that were copied for it, against the original's.
#[must_use]
pub fn check_code(code: &KernelCode<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let wait_summaries = WaitSummaries::compute(code.new);
    let kernel = code.program.body(code.kernel);
    let mut belongs = vec![false; code.addresses.len()];
    let mut seen = BTreeSet::new();
    let mut work = vec![(code.kernel, code.entry)];
    let target = kernel.target();
    if code.scratch.0 < code.scratch.1 && !target.architected_flat_scratch() && !target.offset_flat_scratch() {
        scratch::stays(code.program, code.kernel, code.entry_before, code.summaries, &mut findings);
    }
    while let Some((id, entry)) = work.pop() {
        if !seen.insert((id, entry)) {
            continue;
        }
        let original = code.program.body(id);
        let mut found = Vec::new();
        if let Some(call) = code.program.runs_past_its_end(original) {
            let message = "nothing follows a call that may come back".to_owned();
            found.push(Finding::new(Rule::Skeleton, message).at(original.address(call)));
        }
        let Some(new) = code.new.at(entry).map(|new| code.new.body(new)) else {
            let why = code.new.undecodable().iter().find(|(_, address, _)| *address == entry);
            let why = why.map_or_else(String::new, |(_, _, error)| format!(": {error}"));
            findings.push(Finding::new(Rule::Skeleton, format!("the new code of {} cannot be decoded{why}", original.name())).at(entry));
            continue;
        };
        let merged = with_tail_calls(code, id, new);
        let original = merged.as_ref().unwrap_or(original);
        if original.target() != new.target() {
            found.push(Finding::new(Rule::Descriptor, "the new code runs in waves of another size").at(entry));
        }
        let mut pairs = Vec::new();
        let (mut next_old, mut next_new) = (0, 0);
        for (pair, belongs) in code.addresses.iter().zip(&mut belongs) {
            if let Some(old) = original.at_next(pair.original, &mut next_old)
                && let Some(now) = new.at_next(pair.rewritten, &mut next_new)
            {
                *belongs = true;
                pairs.push((old, now));
            }
        }
        let mut calls = Vec::new();
        if let Some(alignment) = Alignment::find(original, new, &pairs, code.new_code, &mut calls, &mut found) {
            let subject = preserve::Subject {
                original,
                new,
                alignment: &alignment,
                entry: (id == code.kernel).then_some((code.entry_before, code.entry_after)),
                named: code.used.named,
                summaries: code.summaries,
                vector_registers: code.vector_registers,
                scratch: code.scratch.0..code.scratch.1,
                new_code: code.new_code,
            };
            let cfg = Cfg::build(new);
            adjacent::check(original, new, &alignment, &mut found);
            high_registers::check(original, new, &alignment, &mut found);
            scheduling::check((code.program, kernel), original, new, &cfg, &alignment, &mut found);
            preserve::check(&subject, &cfg, &mut found);
            if id == code.kernel {
                defined::check(new, &cfg, &alignment, code.entry_after, &mut found);
            }
            outstanding::check(new, &cfg, &alignment, &wait_summaries, code.used.named, &mut found);
            translations::check(new, &cfg, &alignment, &mut found);
            hazards::check(new, &cfg, &alignment, code.replays, &mut found);
            events::check(original, new, &cfg, &alignment, &mut found);
            forwarding::check(new, &cfg, &alignment, &mut found);
        }
        for (function, copy) in calls {
            match code.program.at(function) {
                Some(function) => work.push((function, copy)),
                None => found.push(Finding::new(Rule::Branch, format!("a copy of {function:#x} is called, which cannot be decoded"))),
            }
        }
        let of_function = |finding: Finding| if id == code.kernel { finding } else { finding.in_function(original.name()) };
        findings.extend(found.into_iter().map(of_function));
    }
    for (pair, _) in code.addresses.iter().zip(&belongs).filter(|(_, belongs)| !**belongs) {
        let message = format!("the site table says {:#x} is here, but there is no such pair of instructions", pair.original);
        findings.push(Finding::new(Rule::Skeleton, message).at(pair.rewritten));
    }
    findings.into_iter().map(|finding| finding.in_kernel(kernel.name())).collect()
}
