//! Annotated disassembly: every executable byte of the selected code, piece by piece.

use std::collections::BTreeSet;
use std::ops::Range;

pub use super::annotate::SourceText;
use super::annotate::{Surroundings, annotate};
use super::counted::Given;
use super::kernel_facts::{kernel_facts, kernel_target};
use super::object::{Opened, every_object, place_name};
use super::options::Selection;
use super::symbols::Symbols;
use wavetap_amdgpu::Target;
use wavetap_analysis::cfg::Program;
use wavetap_analysis::dataflow::{Summaries, WaitSummaries};
use wavetap_analysis::kernel::{Body, BodyKind, CallTarget, Image};
use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_object::code_object::{CodeObject, Kernel, MalformedPart, PartKind, demangle, digest};
use wavetap_object::elf::Section;
use wavetap_object::offload_bundle::Input;
use wavetap_profile::file::Profile;
use wavetap_report::disassembly::{CodeKind, CodeText, ObjectFacts, Sink};

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

/// Disassembles the selected code into `sink`: all executable sections, or only the selected kernels (with the
/// functions that they may call) and functions. Returns what could not be disassembled although it was selected, and
/// why.
///
/// ```
/// use wavetap::pipeline::{Listed, disassemble};
/// use wavetap::report::disassembly::Disassembly;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/divergence");
/// # let data = std::fs::read(path).unwrap();
/// let mut listed = Listed::default();
/// listed.selection.targets.push("gfx90a".into());
/// listed.selection.kernels.push("divergent".into());
/// let mut disassembly = Disassembly::default();
/// let refused = disassemble(&data, &listed, &mut disassembly)?;
/// assert!(refused.is_empty());
/// let kernel = &disassembly.objects[0].code[0];
/// assert_eq!(kernel.instructions[0].instruction, "s_load_dword s7, s[4:5], 0x1c");
/// # Ok::<(), wavetap::error::Error>(())
/// ```
///
/// # Errors
/// Malformed or unsupported if the input or a selected code object cannot be taken apart; malformed if a selection
/// selects nothing or the profile is of another input; unsupported if there is a profile and selected code was
/// rewritten; what `sink` reports.
pub fn disassemble(data: &[u8], listed: &Listed<'_>, sink: &mut dyn Sink) -> Result<Vec<String>> {
    let input = Input::parse(data)?;
    let (opened, mut refused) = open(&input, listed)?;
    let given = listed.profile.map(|profile| Given::of(profile, &input, &listed.entries, &opened)).transpose()?;
    for object in &opened {
        let target = object.code.target();
        match target {
            Some(target) => list(object, target, (listed, given.as_ref()), sink, &mut refused)
                .within(|| place_name(object.place))?,
            None => return Err(Error::internal("an object of an unknown processor was opened")),
        }
    }
    Ok(refused)
}

/// Offset of the flags in an ELF header, which say what a code object is for.
const ELF_FLAGS: u64 = 48;

/// The selected objects of processors that are handled, and what is said of the others. All errors of input and
/// selection are found here, before anything is written.
fn open<'i>(input: &'i Input<'_>, listed: &Listed<'_>) -> Result<(Vec<Opened<'i>>, Vec<String>)> {
    let (mut opened, mut refused) = (Vec::new(), Vec::new());
    let mut failed = None;
    for found in every_object(input, &listed.entries, &listed.selection)? {
        let named = |object: Opened<'i>| match object.code.target() {
            Some(_) => Ok(object),
            None => Err(Error::unsupported(format!("code for {}, whose instructions are not known", object.target_id))
                .at(ELF_FLAGS)),
        };
        match Opened::open(&found).and_then(named).within(|| place_name(found.place)) {
            Ok(object) => opened.push(object),
            // One beside others; by itself it is a wrong input.
            Err(error) if error.kind() == Kind::Unsupported || found.place.is_some() => {
                refused.push(error.to_string());
                failed = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    if let (true, Some(error)) = (opened.is_empty(), failed) {
        return Err(error);
    }
    refused.extend(input.malformed.iter().map(ToString::to_string));
    for object in &opened {
        let everything = listed.selection.kernels.is_empty() && listed.functions.is_empty();
        let wanted = |part: &&MalformedPart| match part.kind {
            PartKind::Kernel => {
                everything || !listed.selection.kernels.is_empty() && listed.selection.has_kernel(&part.name)
            }
            _ => everything,
        };
        let parts = object.code.malformed().iter().filter(wanted);
        refused.extend(parts.map(|part| format!("{part}, in {}", place_name(object.place))));
    }
    let malformed =
        opened.iter().flat_map(|object| object.code.malformed()).filter(|part| part.kind == PartKind::Kernel);
    let malformed: Vec<&str> = malformed.map(|part| part.name.as_str()).collect();
    let kernels = || opened.iter().flat_map(|object| object.code.kernels()).map(|kernel| kernel.name.as_str());
    let names = || kernels().chain(malformed.iter().copied());
    let functions = || opened.iter().flat_map(|object| object.code.functions()).map(|function| function.name.as_str());
    for pattern in &listed.selection.kernels {
        let one = Selection { kernels: vec![pattern.clone()], targets: Vec::new() };
        if !names().any(|name| one.has_kernel(name))
            && !opened.iter().any(|object| object.code.kernels().iter().any(|kernel| one.has(kernel)))
        {
            let hint = if functions().any(|name| one.has_kernel(name)) {
                "; a function of that name is there: --function"
            } else {
                ""
            };
            return Err(Error::malformed(format!("no kernel matches {pattern:?}{hint}")));
        }
    }
    for pattern in &listed.functions {
        let one = Selection { kernels: vec![pattern.clone()], targets: Vec::new() };
        if !names().chain(functions()).any(|name| one.has_kernel(name)) {
            return Err(Error::malformed(format!("no function or kernel matches {pattern:?}")));
        }
    }
    Ok((opened, refused))
}

/// A kernel, a function, or what is between them.
struct Part<'o> {
    range: Range<u64>,
    kind: CodeKind,
    name: Option<String>,
    kernel: Option<&'o Kernel>,
}

/// Lists one object.
fn list(
    object: &Opened<'_>,
    target: Target,
    (listed, given): (&Listed<'_>, Option<&Given<'_>>),
    sink: &mut dyn Sink,
    refused: &mut Vec<String>,
) -> Result<()> {
    let code = &object.code;
    if !has_wanted(code, listed) {
        return Ok(());
    }
    let image = Image::of(code)?;
    let digest = digest(object.bytes);
    let counts = given.map(|given| given.object(object, &digest, target, &image)).transpose()?;
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
        id: object.id(),
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
                text.problem
                    .iter()
                    .map(|problem| format!("control flow of {problem}, in {}", place_name(object.place))),
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
    let by_name = Selection { kernels: listed.functions.clone(), targets: Vec::new() };
    let function = |name: &str| !listed.functions.is_empty() && by_name.has_kernel(name);
    let everything = listed.selection.kernels.is_empty() && listed.functions.is_empty();
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
        let everything = listed.selection.kernels.is_empty() && listed.functions.is_empty();
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
        let by_name = Selection { kernels: listed.functions.clone(), targets: Vec::new() };
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
