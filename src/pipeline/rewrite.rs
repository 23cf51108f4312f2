//! Input bytes to output bytes whose kernels count.
//!
//! Everything of a code object is planned before a byte of it is written. The two steps of a placement:
//! [`emit::code_object::Plan`](wavetap_object::emit::code_object::Plan) says where control block and code will be,
//! `instrument` and `layout` make code for that place, and the plan writes it. A kernel that some stage refuses stays
//! unchanged; without any instrumented kernel the output is the input. What was written is checked by [`verify`], which
//! shares decoding, calls, control flow and wait counters with the stages that wrote it and nothing else. A kernel with
//! a finding is refused like any other ([`code_object`]). Code objects are independent: they are rewritten at the same
//! time, and written in the order of the file.

use std::io::Cursor;
use std::sync::{Arc, Mutex};

use super::options::Options;
use wavetap_base::error::{Result, ResultExt};
use wavetap_instrument::probe;
use wavetap_instrument::refusal::{RefusalReason, all_refused};
use wavetap_object::emit::{CommitQueue, Committed, Kept, Merger, Output, Scratch, Sources, group_by_code};
use wavetap_object::offload_bundle::{Found, Input, location};
use wavetap_profile::map::ObjectMap;

pub(super) mod code_object;
#[cfg(test)]
mod tests;

use code_object::{Fresh, Outcome, Rewriter, Width};

/// A rewritten input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewritten {
    /// The output; the input's own bytes if no kernel was instrumented.
    pub bytes: Vec<u8>,
    /// A map for each selected code object, those without an instrumented kernel included: they say what was refused.
    pub maps: Vec<ObjectMap>,
}

/// Rewrites an executable, library, bundle or code object.
///
/// ```
/// use wavetap::pipeline::{Options, probe, rewrite};
///
/// let options = Options { probes: vec![probe::BRANCHES], ..Options::default() };
/// let error = rewrite(b"no program", &options).unwrap_err();
/// assert_eq!(error.to_string(), "neither an ELF file nor an offload bundle (at offset 0x0)");
/// ```
///
/// # Errors
/// Malformed if the input breaks its format; unsupported if it was rewritten before, probes cannot be combined, or a
/// counter mode is not available. A kernel that cannot be instrumented is no error: see [`ObjectMap::refused`].
pub fn rewrite(data: &[u8], options: &Options) -> Result<Rewritten> {
    let mut output = Cursor::new(Vec::new());
    let destination = Destination { output: &mut output, scratch: None };
    let maps = rewrite_to(data, options, destination, |map| map, |_| {})?;
    Ok(Rewritten { bytes: output.into_inner(), maps })
}

/// How far a rewrite is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Code objects that are done.
    pub done: usize,
    /// Code objects in the input.
    pub total: usize,
}

/// Where a rewrite writes.
pub struct Destination<'w> {
    /// The output: empty, and complete when the rewrite returns without an error.
    pub output: &'w mut dyn Output,
    /// Where originals that were unpacked wait for their turn, and new code for the rest of its bundle; without it they
    /// wait in memory.
    pub scratch: Option<Scratch>,
}

/// [`rewrite`] of which the output is never in memory as a whole: it is written bundle by bundle. Of each map there is
/// only what `keep` makes of it, in the order of the file; the maps of many processors are large. `progress` is told at
/// the start and after each code object.
///
/// Code objects are rewritten at the same time, as many as there are threads, or the kernels of each where there are
/// few objects; the result is the same.
///
/// # Errors
/// As [`rewrite`], and those of the destination, which are of the kind [`Kind::Io`](wavetap_base::error::Kind::Io).
pub fn rewrite_to<M: Send>(
    data: &[u8],
    options: &Options,
    destination: Destination<'_>,
    keep: impl Fn(ObjectMap) -> M + Sync,
    progress: impl FnMut(Progress) + Send,
) -> Result<Vec<M>> {
    probe::check_together(&options.probes)?;
    let Destination { output, scratch } = destination;
    let scratch = scratch.map(Arc::new);
    let input = Input::parse(data)?;
    let objects: Vec<Found<'_>> = input.code_objects().collect();
    let groups = group_by_code(&objects)?;
    let places = objects.iter().map(|found| found.place).collect();
    let unread: Vec<String> = input.malformed.iter().map(ToString::to_string).collect();
    let sources = Sources::new(input, places, scratch.as_ref())?;
    let total = sources.count();
    let told = Mutex::new((0, progress));
    let tell = |more: usize| {
        // A panic of `progress` is not ours to hide, nor to repeat.
        if let Ok(mut told) = told.lock() {
            told.0 += more;
            let done = told.0;
            (told.1)(Progress { done, total });
        }
    };
    tell(0);
    // Either objects or kernels, never both: a thread that waits for kernels would take on another object, and hold the
    // memory for two.
    let width = if total < 2 * rayon::current_num_threads() { Width::Kernels } else { Width::Objects };
    let queue = CommitQueue::new(&sources, Merger::new(&sources.input, options.packing, output));
    // New code is kept until the last of its bundle is there, and that of many processors is much.
    let committed = |outcome: Outcome| -> Result<_> {
        let Outcome::Selected { map, bytes } = outcome else { return Ok(None) };
        let bytes = bytes.map(|bytes| {
            if total > 1 { Kept::packed(&bytes, scratch.as_ref()) } else { Ok(Arc::unwrap_or_clone(bytes).into()) }
        });
        Ok(Some(Committed { map: keep(map), bytes: bytes.transpose()? }))
    };
    let done = |number: usize, outcome: Result<Outcome>| {
        let outcome = outcome.within(|| location(sources.place(number)));
        tell(1);
        queue.done(number, outcome.and_then(committed));
    };
    let work = || {
        while let Some(group) = queue.next_group(groups.len()) {
            let mut rest = &groups[group][..];
            while !rest.is_empty() {
                rest = rewrite_group(&sources, rest, options, width, &done);
            }
        }
    };
    match width {
        Width::Objects => drop(rayon::broadcast(|_| work())),
        Width::Kernels => work(),
    }
    let mut maps = queue.finish()?;
    maps.extend(unread.iter().map(|problem| keep(all_refused("?", "", RefusalReason::Malformed, problem))));
    Ok(maps)
}

/// Rewrites the first code object of a group, and those after it while what was made of it is right for them. Returns
/// the others.
///
/// Of the group's originals, two are in memory at the same time.
fn rewrite_group<'g>(
    sources: &Sources<'_>,
    group: &'g [usize],
    options: &Options,
    width: Width,
    done: &impl Fn(usize, Result<Outcome>),
) -> &'g [usize] {
    let Some((&first, mut rest)) = group.split_first() else { return group };
    let rewriter = Rewriter { options, width, makes_template: !rest.is_empty() };
    let bytes = match sources.load(first) {
        Ok(bytes) => bytes,
        Err(error) => {
            done(first, Err(error));
            return rest;
        }
    };
    let found = sources.found(first, &bytes);
    if let Some(error) = sources.damage(first) {
        done(first, Ok(Outcome::unread(&found, options, &error)));
        return rest;
    }
    let template = match rewriter.rewrite(&found) {
        Ok(Fresh { outcome, template }) => {
            done(first, Ok(outcome));
            template
        }
        Err(error) => {
            done(first, Err(error));
            None
        }
    };
    while let (Some(template), Some((&number, others))) = (&template, rest.split_first()) {
        if sources.damage(number).is_some() {
            break;
        }
        let outcome =
            sources.load(number).and_then(|bytes| rewriter.rewrite_like(&sources.found(number, &bytes), template));
        match outcome.transpose() {
            Some(outcome) => done(number, outcome),
            None => break,
        }
        rest = others;
    }
    rest
}
