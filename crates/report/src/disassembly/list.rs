//! Which pieces of an object's code are listed, and listing them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::annotate::{Surroundings, annotate};
use super::symbols::Symbols;
use super::{CodeKind, CodeText, ObjectFacts, Sink};
use crate::counted::ProfileOfInput;
use crate::kernel_facts::{kernel_facts, kernel_target};
use wavetap_amdgpu::Target;
use wavetap_analysis::cfg::Program;
use wavetap_analysis::dataflow::{Summaries, WaitSummaries};
use wavetap_analysis::kernel::{Body, BodyKind, CallTarget, Image};
use wavetap_base::error::Result;
use wavetap_object::code_object::{CodeObject, Kernel, demangle, digest};
use wavetap_object::elf::Section;
use wavetap_object::offload_bundle::{entry_id, location};
use wavetap_object::selection::{Opened, Selection};
use wavetap_profile::file::Profile;

/// Gives the text of a source line: file and line, from 1.
pub type SourceText<'a> = dyn Fn(&str, u32) -> Option<String> + 'a;

/// What to disassemble and how.
#[derive(Default)]
pub struct Listed<'a> {
    /// Which targets, and which kernels with the functions that they may call.
    pub selection: Selection,
    /// Patterns of names of functions or kernels that are listed without what they call.
    pub functions: Vec<String>,
    /// Entries (`0.2`), any of which has to match; none selects every entry that the HIP runtime will see.
    pub entries: Vec<String>,
    /// The workgroup size that occupancy is for.
    pub workgroup: Option<u32>,
    /// Bytes of LDS that launches add, for occupancy.
    pub dynamic_lds: u32,
    /// Where the text of source lines comes from, if it is wanted.
    pub source_text: Option<&'a SourceText<'a>>,
    /// Counts of a run, to be shown beside what they count.
    pub profile: Option<&'a Profile>,
}

impl Listed<'_> {
    /// Whether no kernel and no function is named: then all code is listed.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.selection.kernels.is_empty() && self.functions.is_empty()
    }

    /// The functions and kernels that are listed without what they call.
    fn by_name(&self) -> Selection {
        Selection { kernels: self.functions.clone(), targets: Vec::new() }
    }
}

/// A kernel, a function, or what is between them.
struct Part<'o> {
    range: Range<u64>,
    kind: CodeKind,
    name: Option<String>,
    kernel: Option<&'o Kernel>,
}

/// Lists the selected code of one object for this processor. What cannot be followed goes to `refused`.
///
/// # Errors
/// Malformed if the object contradicts its format; what `sink` reports.
pub fn list(
    object: &Opened<'_>,
    target: Target,
    listed: &Listed<'_>,
    profile: Option<&ProfileOfInput<'_>>,
    sink: &mut dyn Sink,
    refused: &mut Vec<String>,
) -> Result<()> {
    let code = &object.code;
    if !has_wanted(code, listed) {
        return Ok(());
    }
    let image = Image::of(code)?;
    let digest = digest(object.bytes);
    let counts = profile.map(|profile| profile.object(object, &digest, target, &image)).transpose()?;
    // Nothing says what waves a function is for: those of the kernels beside it.
    let target = code.kernels().first().and_then(|kernel| kernel_target(code, kernel)).unwrap_or(target);
    let choice = Choice::of(code, target, &image, listed);
    // Damaged debug information costs the source lines, nothing else.
    let lines = code.line_table().unwrap_or_default();
    let mut symbols = Symbols::of(code);
    let functions = &choice.functions;
    for body in functions.bodies() {
        symbols.add(body.entry_address(), body.span().end, body.name());
    }
    let around = Surroundings {
        image: &image,
        symbols: &symbols,
        lines: lines.as_ref(),
        source_text: listed.source_text,
        summaries: &Summaries::compute(functions),
        wait_summaries: &WaitSummaries::compute(functions),
    };
    sink.object(ObjectFacts {
        id: entry_id(object.place),
        bare: object.place.is_none(),
        target: object.target_id.clone(),
        code_object_version: code.version(),
        digest,
        line_table: lines.is_some(),
    })?;
    for (section, start, bytes) in executable(code)? {
        let range = start..start + bytes.len() as u64;
        for part in parts(code, functions, &range) {
            if !choice.has(&part) {
                continue;
            }
            let mut text = CodeText {
                kind: part.kind,
                demangled: part.name.as_deref().map(|name| demangle(name).into_owned()),
                name: part.name.clone(),
                target: object.target_id.clone(),
                section: section.to_owned(),
                address: part.range.start,
                end: part.range.end,
                kernel: part.kernel.map(|kernel| kernel_facts(code, kernel, listed.workgroup, listed.dynamic_lds)),
                problem: None,
                pressure: None,
                counted: None,
                blocks: Vec::new(),
                loops: Vec::new(),
                instructions: Vec::new(),
            };
            let target = part.kernel.and_then(|kernel| kernel_target(code, kernel)).unwrap_or(target);
            let rest = &bytes[(part.range.start - range.start) as usize..];
            let kernel_body = part.kernel.map(|kernel| kernel_body(target, &image, kernel));
            let body = match &kernel_body {
                Some(Ok(body)) => Some(body),
                Some(Err(error)) => {
                    text.problem = Some(error.to_string());
                    None
                }
                None => functions.at(part.range.start).map(|id| functions.body(id)),
            };
            if part.kind == CodeKind::Function && body.is_none() {
                let error = functions.undecodable().iter().find(|(_, address, _)| *address == part.range.start);
                text.problem = error.map(|(_, _, error)| error.to_string());
            }
            refused.extend(
                text.problem.iter().map(|problem| format!("control flow of {problem}, in {}", location(object.place))),
            );
            let target = body.map_or(target, Body::target);
            annotate(&mut text, target, rest, body, &around);
            if let Some(counts) = &counts {
                counts.annotate(&mut text)?;
            }
            sink.code(text)?;
        }
    }
    Ok(())
}

/// Whether an object has something of what is asked for: of a library's hundreds most have not.
fn has_wanted(code: &CodeObject<'_>, listed: &Listed<'_>) -> bool {
    let by_name = listed.by_name();
    let function = |name: &str| !listed.functions.is_empty() && by_name.has_kernel(name);
    let everything = listed.is_everything();
    everything
        || code
            .kernels()
            .iter()
            .any(|found| !listed.selection.kernels.is_empty() && listed.selection.has(found) || function(&found.name))
        || code.functions().iter().any(|found| function(&found.name))
}

/// A kernel by itself, with what the functions that it calls tell of where it goes.
fn kernel_body(target: Target, image: &Image<'_>, kernel: &Kernel) -> Result<Body> {
    let body = Body::decode(target, image, &kernel.name, BodyKind::Kernel, kernel.entry)?;
    if !body.jumps_away() && body.calls().all(|(_, to)| to != CallTarget::Unknown) {
        return Ok(body);
    }
    let program = Program::build(target, image, [(kernel.name.clone(), BodyKind::Kernel, kernel.entry)]);
    Ok(program.at(kernel.entry).map_or(body, |id| program.body(id).clone()))
}

/// What of an object is listed.
struct Choice {
    /// Addresses of the kernels and functions; none selects all code.
    entries: Option<BTreeSet<u64>>,
    /// All functions, decoded: those with symbols and those that are known to be called.
    functions: Program,
}

impl Choice {
    fn of(code: &CodeObject<'_>, target: Target, image: &Image<'_>, listed: &Listed<'_>) -> Choice {
        let everything = listed.is_everything();
        let wanted = |kernel: &&Kernel| !listed.selection.kernels.is_empty() && listed.selection.has(kernel);
        let mut called = BTreeSet::new();
        // A kernel is decoded here for its calls and again when it is listed: a library's kernels are too many to keep.
        for kernel in code.kernels().iter().filter(|kernel| everything || wanted(kernel)) {
            let target = kernel_target(code, kernel).unwrap_or(target);
            if let Ok(body) = kernel_body(target, image, kernel) {
                called.extend(body.calls().filter_map(|(_, to)| match to {
                    CallTarget::Known(address) => Some(address),
                    CallTarget::Unknown => None,
                }));
            }
        }
        let named = image.entries().filter(|(_, _, kind)| *kind == BodyKind::Function);
        let mut entries: Vec<(String, BodyKind, u64)> =
            named.map(|(address, name, kind)| (name.to_owned(), kind, address)).collect();
        let unnamed = called.iter().filter(|address| image.entry_name(**address).is_none());
        entries.extend(unnamed.map(|address| (format!("function_at_{address:#x}"), BodyKind::Function, *address)));
        let functions = Program::build(target, image, entries);
        if everything {
            return Choice { entries: None, functions };
        }
        let by_name = listed.by_name();
        let named = |name: &str| !listed.functions.is_empty() && by_name.has_kernel(name);
        let mut entries: BTreeSet<u64> = BTreeSet::new();
        entries.extend(
            code.kernels().iter().filter(|kernel| wanted(kernel) || named(&kernel.name)).map(|kernel| kernel.entry),
        );
        entries.extend(functions.bodies().iter().filter(|body| named(body.name())).map(Body::entry_address));
        let undecodable = functions.undecodable().iter().filter(|(name, _, _)| named(name));
        entries.extend(undecodable.map(|(_, address, _)| *address));
        for address in called {
            entries.insert(address);
            let callees = functions.at(address).map(|id| functions.callees(id).bodies).unwrap_or_default();
            entries.extend(callees.into_iter().map(|id| functions.body(id).entry_address()));
        }
        Choice { entries: Some(entries), functions }
    }

    fn has(&self, part: &Part<'_>) -> bool {
        self.entries.as_ref().is_none_or(|entries| part.kind != CodeKind::Other && entries.contains(&part.range.start))
    }
}

/// The executable sections with their contents, or the executable segments of an object without section headers: name,
/// address, bytes.
fn executable<'d>(code: &CodeObject<'d>) -> Result<Vec<(&'d str, u64, &'d [u8])>> {
    let elf = code.elf();
    let is_code = |section: &&Section<'_>| {
        section.is_alloc() && section.is_executable() && section.has_contents() && section.size > 0
    };
    let mut found = Vec::new();
    for section in elf.sections.iter().filter(is_code) {
        found.push((section.name, section.address, elf.contents(section)?));
    }
    if found.is_empty() {
        for segment in elf.loads().filter(|segment| segment.is_executable() && segment.file_size > 0) {
            found.push(("", segment.address, code.bytes_at(segment.address, segment.file_size)?));
        }
    }
    found.sort_by_key(|(_, address, _)| *address);
    Ok(found)
}

/// Cuts a section into kernels, functions and what is between them.
fn parts<'o>(code: &'o CodeObject<'_>, functions: &Program, range: &Range<u64>) -> Vec<Part<'o>> {
    let mut named: Vec<Part<'o>> = Vec::new();
    for kernel in code.kernels() {
        named.push(Part {
            range: kernel.code.clone(),
            kind: CodeKind::Kernel,
            name: Some(kernel.name.clone()),
            kernel: Some(kernel),
        });
    }
    for function in code.functions() {
        named.push(Part {
            range: function.code.clone(),
            kind: CodeKind::Function,
            name: Some(function.name.clone()),
            kernel: None,
        });
    }
    for body in functions.bodies() {
        let name = Some(body.name().to_owned());
        named.push(Part { range: body.entry_address()..body.span().end, kind: CodeKind::Function, name, kernel: None });
    }
    named.retain(|part| range.contains(&part.range.start));
    // Several names for one place: a kernel, then the name with a size, has it.
    named.sort_by_key(|part| part.range.start);
    named.dedup_by_key(|part| part.range.start);
    let mut all: Vec<Part<'o>> = Vec::new();
    let mut at = range.start;
    let starts: Vec<u64> = named.iter().skip(1).map(|part| part.range.start).chain([range.end]).collect();
    for (mut part, next) in named.into_iter().zip(starts) {
        if part.range.start > at {
            all.push(Part { range: at..part.range.start, kind: CodeKind::Other, name: None, kernel: None });
        }
        part.range.end = part.range.end.min(next).max(part.range.start);
        at = part.range.end;
        all.push(part);
    }
    if at < range.end {
        all.push(Part { range: at..range.end, kind: CodeKind::Other, name: None, kernel: None });
    }
    all.retain(|part| !part.range.is_empty());
    all
}
