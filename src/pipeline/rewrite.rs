//! Input bytes to output bytes whose kernels count.
//!
//! Everything of a code object is planned before a byte of it is written. The two steps of a placement:
//! [`emit::code_object::Plan`](wavetap_object::emit::code_object::Plan) says where control block and code will be,
//! `instrument` and `layout` make code for that place, and the plan writes it. A kernel that some stage refuses is left
//! as it was; without any instrumented kernel the output is the input. What was written is checked by [`verify`], which
//! shares no code with the stages that wrote it, and a kernel with a finding is refused like any other.

use std::hash::{Hash, Hasher};
use std::io::Cursor;
use std::sync::{Arc, Mutex};

use rustc_hash::{FxHashMap, FxHasher};

use super::object::{place, place_name, source, target_id};
use super::options::Options;
use wavetap_amdgpu::Target;
use wavetap_analysis::kernel::Image;
use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_object::code_object::{CodeObject, Kernel, LineTable, MalformedPart, PartKind, demangle, digest, metadata};
use wavetap_object::emit::code_object::{Changes, Plan};
use wavetap_object::emit::{Kept, Merger, Output, Scratch};
use wavetap_object::offload_bundle::{Found, Input};
use wavetap_profile::control::{self, Control};
use wavetap_profile::map::{EVERY_KERNEL, KernelMap, ObjectMap, Refused};
use wavetap_profile::record::HEADER;
use wavetap_verify::Faultless;

mod added;
mod order;
mod sources;
#[cfg(test)]
mod tests;

use added::{Added, Kernels, Planner};
use order::Order;
use sources::Sources;

/// Reason of a kernel for a processor whose code cannot be rewritten.
const UNSUPPORTED_TARGET: &str = "unsupported_target";
/// Reason of a kernel in a code object that cannot be extended.
const UNSUPPORTED_OBJECT: &str = "unsupported_object";
/// Reason of a kernel that contradicts the format, by itself or in its metadata, and of all kernels of a code object
/// that does.
const MALFORMED: &str = "malformed";
/// Reason of a kernel whose instrumented code the independent checker finds fault with.
const UNVERIFIED: &str = "unverified";
/// Where kernels are planned at the same time, so many for each thread: they are unequal in size, and memory for more
/// of them is spent.
const KERNELS_AT_ONCE: usize = 8;

/// A rewritten input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The output; the input's own bytes if no kernel was instrumented.
    pub bytes: Vec<u8>,
    /// A map for each selected code object, those without an instrumented kernel included: they say what was refused.
    pub maps: Vec<ObjectMap>,
}

/// Rewrites an executable, library, bundle or code object.
///
/// ```
/// use wavetap::pipeline::{Options, ProbeKind, rewrite};
///
/// let options = Options { probes: vec![ProbeKind::Branches], ..Options::default() };
/// let error = rewrite(b"no program", &options).unwrap_err();
/// assert_eq!(error.to_string(), "neither an ELF file nor an offload bundle (at offset 0x0)");
/// ```
///
/// # Errors
/// Malformed if the input breaks its format; unsupported if it was rewritten before, or a counter mode is not
/// available. A kernel that cannot be instrumented is no error: see [`ObjectMap::refused`].
pub fn rewrite(data: &[u8], options: &Options) -> Result<Rewritten> {
    let mut output = Cursor::new(Vec::new());
    let destination = Destination { output: &mut output, scratch: None };
    let maps = rewrite_to(data, options, destination, |map| map, |_| {})?;
    Ok(Rewritten { bytes: output.into_inner(), maps })
}

/// How far a rewrite is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
/// As [`rewrite`], and those of the destination, which are of the kind [`Kind::Io`].
pub fn rewrite_to<M: Send>(
    data: &[u8],
    options: &Options,
    destination: Destination<'_>,
    keep: impl Fn(ObjectMap) -> M + Sync,
    progress: impl FnMut(Progress) + Send,
) -> Result<Vec<M>> {
    let Destination { output, scratch } = destination;
    let scratch = scratch.map(Arc::new);
    let input = Input::parse(data)?;
    let objects: Vec<Found<'_>> = input.code_objects().collect();
    let groups = groups(&objects)?;
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
    let order = Order::new(&sources, Merger::new(&sources.input, options.packing, output));
    // New code is kept until the last of its bundle is there, and that of many processors is much.
    let kept = |(map, bytes): Outcome| -> Result<_> {
        let kept = bytes.map(|bytes| {
            if total > 1 { Kept::packed(&bytes, scratch.as_ref()) } else { Ok(Arc::unwrap_or_clone(bytes).into()) }
        });
        Ok((keep(map), kept.transpose()?))
    };
    let done = |number: usize, outcome: Result<Option<Outcome>>| {
        let outcome = outcome.within(|| place_name(sources.place(number)));
        tell(1);
        order.done(number, outcome.and_then(|outcome| outcome.map(kept).transpose()));
    };
    let work = || {
        while let Some(group) = order.next_group(groups.len()) {
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
    let mut maps = order.finish()?;
    maps.extend(unread.iter().map(|problem| keep(all_refused("?".to_owned(), String::new(), MALFORMED, problem))));
    Ok(maps)
}

/// Rewrites the first code object of a group, and those behind it while what was made of it is right for them. Returns
/// the others.
///
/// Of the group's originals, two are in memory at the same time.
fn rewrite_group<'g>(
    sources: &Sources<'_>,
    group: &'g [usize],
    options: &Options,
    width: Width,
    done: &impl Fn(usize, Result<Option<Outcome>>),
) -> &'g [usize] {
    let Some((&first, mut rest)) = group.split_first() else { return group };
    let rewriter = Rewriter { options, width, keeps: !rest.is_empty() };
    if let Some(error) = sources.damage(first) {
        done(first, sources.load(first).map(|bytes| unread(&sources.found(first, &bytes), options, &error)));
        return rest;
    }
    let bytes = match sources.load(first) {
        Ok(bytes) => bytes,
        Err(error) => {
            done(first, Err(error));
            return rest;
        }
    };
    let mut finished = None;
    done(first, rewriter.object(&sources.found(first, &bytes), Way::Anew(&mut finished)).map(Option::flatten));
    while let (Some(earlier), Some((&number, others))) = (&finished, rest.split_first()) {
        if sources.damage(number).is_some() {
            break;
        }
        let outcome =
            sources.load(number).and_then(|bytes| rewriter.object(&sources.found(number, &bytes), Way::Like(earlier)));
        match outcome.transpose() {
            Some(outcome) => done(number, outcome),
            None => break,
        }
        rest = others;
    }
    rest
}

/// What is done at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    /// Code objects.
    Objects,
    /// Kernels of a code object.
    Kernels,
}

/// How a code object is rewritten.
enum Way<'w, 'e, 'i> {
    /// From what was made of another one with the same code.
    Like(&'w Finished<'e>),
    /// By itself; what is made is for others.
    Anew(&'w mut Option<Finished<'i>>),
}

/// The map of a code object, and its new bytes if a kernel was instrumented.
type Outcome = (ObjectMap, Option<Arc<Vec<u8>>>);

/// The code objects by number, in groups of those with the same code in the same place: compilers make the same of a
/// program for processors that differ little.
///
/// Refuses an input without code, and one that was rewritten before, in whatever part: two control blocks in one
/// program clash, and sites of inserted code mean nothing.
fn groups(objects: &[Found<'_>]) -> Result<Vec<Vec<usize>>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut by_code: FxHashMap<u64, usize> = FxHashMap::default();
    for (index, found) in objects.iter().enumerate() {
        // One that cannot be read is told of when it is its turn.
        let Ok(code) = CodeObject::parse(found.bytes) else {
            groups.push(vec![index]);
            continue;
        };
        if code.is_rewritten() {
            return Err(Error::unsupported("this code was rewritten before: rewrite the original"))
                .within(|| place(found));
        }
        // Whether they are the same is looked at again: here it is enough that the same are never apart.
        let mut hasher = FxHasher::default();
        for segment in code.elf().loads().filter(|segment| segment.is_executable()) {
            segment.address.hash(&mut hasher);
            code.bytes_at(segment.address, segment.file_size).unwrap_or_default().hash(&mut hasher);
        }
        let group = *by_code.entry(hasher.finish()).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    if objects.is_empty() {
        Err(Error::unsupported("no entry of its bundles is a code object").at(0))
    } else {
        Ok(groups)
    }
}

/// How code objects are rewritten.
#[derive(Clone, Copy)]
struct Rewriter<'o> {
    options: &'o Options,
    width: Width,
    /// Whether what was made is kept for another object.
    keeps: bool,
}

/// A code object all of whose selected kernels were instrumented, and accepted at once.
struct Finished<'i> {
    code: CodeObject<'i>,
    image: Image<'i>,
    control: u64,
    added: Added,
    bytes: Arc<Vec<u8>>,
    /// The site table as the checker read it.
    map: ObjectMap,
}

impl Finished<'_> {
    /// Whether what was made of this object is what would be made of another one.
    fn is_of(&self, code: &CodeObject<'_>, image: &Image<'_>, plan: &Plan<'_, '_>) -> bool {
        let alike = self.code.target().zip(code.target()).is_some_and(|(one, other)| one.is_like(other));
        alike
            && self.image == *image
            && self.code.kernels() == code.kernels()
            && self.code.features() == code.features()
            && self.code.version() == code.version()
            && (self.control, self.added.base) == (plan.control_address(), plan.code_address())
    }
}

impl Rewriter<'_> {
    /// One code object, or that it is not selected; nothing if what was made of the other one is not right for it.
    fn object<'i>(self, found: &Found<'i>, way: Way<'_, '_, 'i>) -> Result<Option<Option<Outcome>>> {
        if self.options.probes.is_empty() {
            return Ok(Some(None));
        }
        match self.readable(found, way) {
            // Beside others it stays as it is; by itself it is a wrong input.
            Err(error) if found.place.is_some() && !matches!(error.kind(), Kind::Internal | Kind::Io) => {
                Ok(Some(unread(found, self.options, &error)))
            }
            outcome => outcome,
        }
    }

    /// [`Self::object`] of one that can be read.
    fn readable<'i>(self, found: &Found<'i>, way: Way<'_, '_, 'i>) -> Result<Option<Option<Outcome>>> {
        let options = self.options;
        let code = CodeObject::parse(found.bytes)?;
        let target = target_id(found, &code);
        if !options.selection.has_target(&target) {
            return Ok(Some(None));
        }
        let chosen = code.kernels().iter().filter(|kernel| options.selection.has(kernel));
        let (selected, undescribed): (Vec<&Kernel>, Vec<&Kernel>) =
            chosen.partition(|kernel| kernel.metadata.is_some());
        let mut map = ObjectMap {
            target,
            original: digest(found.bytes),
            stride: HEADER,
            kernels: Vec::new(),
            refused: malformed(&code, &undescribed, found, options),
        };
        if selected.is_empty() {
            return Ok(Some(Some((map, None))));
        }
        let Some(processor) = code.target().filter(|target| target.rewritable()) else {
            let what = if code.target().is_some() { "is decoded but not rewritten" } else { "is not in the tables" };
            let rewritten: Vec<&str> = Target::all().filter(|target| target.rewritable()).map(Target::name).collect();
            let detail = format!("code for {} {what}: only that for {} is", code.target_id(), rewritten.join(", "));
            map.refused
                .extend(selected.iter().map(|kernel| refused(&map.target, kernel, UNSUPPORTED_TARGET, &detail, None)));
            return Ok(Some(Some((map, None))));
        };
        let plan = match Plan::new(&code, control::SIZE) {
            Ok(plan) => plan,
            Err(error) if error.kind() == Kind::Unsupported => {
                map.refused.extend(
                    selected
                        .iter()
                        .map(|kernel| refused(&map.target, kernel, UNSUPPORTED_OBJECT, &error.to_string(), None)),
                );
                return Ok(Some(Some((map, None))));
            }
            Err(error) => return Err(error),
        };
        let image = Image::of(&code)?;
        // Damaged debug information costs the source lines, nothing else.
        let lines = code.line_table().unwrap_or_default();
        let at_once = self.width == Width::Kernels;
        let writer = Writer { code: &code, lines: lines.as_ref(), plan: &plan };
        let finished = match way {
            Way::Like(earlier) if earlier.is_of(&code, &image, &plan) => {
                return Ok(like(earlier, &writer, map, self)?.map(Some));
            }
            Way::Like(_) => return Ok(None),
            Way::Anew(finished) => finished,
        };
        let mut kernels = Kernels::new(selected, map.refused.clone());
        // Each round leaves out the kernels that the checker found fault with; there are never more rounds than
        // kernels.
        loop {
            let mut map = map.clone();
            let Some((bytes, added)) = self.instrument(processor, &image, &writer, &mut kernels, &mut map)? else {
                map.refused = kernels.refusals();
                return Ok(Some(Some((map, None))));
            };
            let added = (self.keeps && kernels.are_all()).then_some(added);
            let map = without_addresses(map, options);
            // The checker decodes everything again.
            let (read, findings) = wavetap_verify::check_beside(&code, &CodeObject::parse(&bytes)?, None, at_once);
            if findings.is_empty() {
                let bytes = Arc::new(bytes);
                if let (Some(added), Some(read)) = (added, read) {
                    let control = plan.control_address();
                    *finished = Some(Finished { control, added, bytes: Arc::clone(&bytes), map: read, image, code });
                }
                return Ok(Some(Some((map, Some(bytes)))));
            }
            kernels.leave_out(&map.target, findings);
        }
    }

    /// The new bytes of a code object whose kernels are instrumented as far as they can be, and what was added; none if
    /// no kernel is.
    fn instrument(
        self,
        target: Target,
        image: &Image<'_>,
        writer: &Writer<'_, '_>,
        kernels: &mut Kernels<'_>,
        map: &mut ObjectMap,
    ) -> Result<Option<(Vec<u8>, Added)>> {
        let planner =
            Planner::new(target, image, self.options, writer.plan.control_address(), writer.code.version().into());
        let at_once = match self.width {
            Width::Objects => 1,
            Width::Kernels => KERNELS_AT_ONCE * rayon::current_num_threads(),
        };
        let placed = kernels.place(&map.target, &planner, writer.plan.code_address(), at_once)?;
        map.refused = kernels.refusals();
        let written = placed.and_then(|(added, maps)| {
            if maps.is_empty() {
                return Ok(None);
            }
            let bytes = writer.write(&added, maps, map)?;
            Ok(Some((bytes, added)))
        });
        match written {
            Err(error) if error.kind() == Kind::Unsupported => {
                kernels.leave_out_all(&map.target, UNSUPPORTED_OBJECT, &error.to_string())
            }
            // The writer reads what it wrote, as the checker does.
            Err(error) if error.kind() == Kind::Internal => {
                kernels.leave_out_all(&map.target, UNVERIFIED, &error.to_string())
            }
            other => return other,
        }
        Ok(None)
    }
}

/// An object with the code of an earlier one, made from what was added to that; nothing if the checker finds fault with
/// it.
fn like(
    earlier: &Finished<'_>,
    writer: &Writer<'_, '_>,
    mut map: ObjectMap,
    rewriter: Rewriter<'_>,
) -> Result<Option<Outcome>> {
    // The source lines are another object's: this one's take their place.
    let Ok(bytes) = writer.write(&earlier.added, earlier.map.kernels.clone(), &mut map) else { return Ok(None) };
    let map = without_addresses(map, rewriter.options);
    let rewritten = CodeObject::parse(&earlier.bytes)?;
    let faultless = Faultless { original: &earlier.code, rewritten: &rewritten, map: &earlier.map };
    let at_once = rewriter.width == Width::Kernels;
    let (_, findings) =
        wavetap_verify::check_beside(writer.code, &CodeObject::parse(&bytes)?, Some(faultless), at_once);
    Ok(findings.is_empty().then(|| (map, Some(Arc::new(bytes)))))
}

/// The map as it is handed out.
fn without_addresses(mut map: ObjectMap, options: &Options) -> ObjectMap {
    if !options.keep_addresses {
        map.kernels.iter_mut().for_each(|kernel| kernel.addresses = Vec::new());
    }
    map
}

/// The selected kernels that contradict the format: those that cannot be read, and those that the metadata does not
/// describe.
fn malformed(code: &CodeObject<'_>, undescribed: &[&Kernel], found: &Found<'_>, options: &Options) -> Vec<Refused> {
    let target = target_id(found, code);
    let mut all = Vec::new();
    for kernel in undescribed {
        let entry = |part: &&MalformedPart| part.kind == PartKind::MetadataEntry && part.name == kernel.name;
        let note = |part: &&MalformedPart| part.kind == PartKind::Metadata;
        let part = code.malformed().iter().find(entry).or_else(|| code.malformed().iter().find(note));
        let detail = part.map_or_else(
            || format!("the metadata has no kernel with the descriptor {}", kernel.symbol()),
            ToString::to_string,
        );
        all.push(refused(&target, kernel, MALFORMED, &detail, None));
    }
    let unread = code
        .malformed()
        .iter()
        .filter(|part| part.kind == PartKind::Kernel && options.selection.has_kernel(&part.name));
    all.extend(unread.map(|part| Refused {
        name: part.name.clone(),
        demangled: demangle(&part.name).into_owned(),
        target: target.clone(),
        reason: MALFORMED.to_owned(),
        detail: part.error.to_string(),
        address: None,
    }));
    all
}

/// A code object whose kernels are not known stays as it was, unless it is another target's.
fn unread(found: &Found<'_>, options: &Options, error: &Error) -> Option<Outcome> {
    let target = found.target.map_or_else(|| "?".to_owned(), ToString::to_string);
    if found.target.is_some() && !options.selection.has_target(&target) {
        return None;
    }
    let reason = if error.kind() == Kind::Unsupported { UNSUPPORTED_OBJECT } else { MALFORMED };
    Some((all_refused(target, digest(found.bytes), reason, &error.to_string()), None))
}

/// The map of a code object, or of a whole bundle, of which nothing is instrumented.
fn all_refused(target: String, original: String, reason: &str, detail: &str) -> ObjectMap {
    let all = Refused {
        name: EVERY_KERNEL.to_owned(),
        demangled: EVERY_KERNEL.to_owned(),
        target: target.clone(),
        reason: reason.to_owned(),
        detail: detail.to_owned(),
        address: None,
    };
    ObjectMap { target, original, stride: HEADER, kernels: Vec::new(), refused: vec![all] }
}

/// A code object that something is added to.
struct Writer<'w, 'd> {
    code: &'w CodeObject<'d>,
    lines: Option<&'w LineTable>,
    plan: &'w Plan<'w, 'd>,
}

impl Writer<'_, '_> {
    /// Completes the map with the maps of the added kernels, to which only the source lines are missing, and writes the
    /// new object.
    fn write(&self, added: &Added, kernels: Vec<KernelMap>, map: &mut ObjectMap) -> Result<Vec<u8>> {
        let mut value =
            self.code.metadata().ok_or_else(|| Error::internal("a planned object has no metadata"))?.value()?;
        for (symbol, key, number) in &added.numbers {
            metadata::set_kernel_number(&mut value, symbol, key, *number)?;
        }
        // As values it takes ten times the room.
        let metadata = metadata::encode(&value)?;
        drop(value);
        map.kernels = kernels;
        for site in map.kernels.iter_mut().flat_map(|kernel| &mut kernel.sites) {
            site.source = source(self.lines, site.address);
        }
        map.stride = added.stride;
        let control = Control { stride: map.stride, ..Control::default() };
        self.plan.finish(&Changes {
            code: &added.code,
            symbols: &added.symbols,
            descriptors: &added.descriptors,
            metadata: &metadata,
            control: &control.to_bytes(),
            map: &map.pack()?,
        })
    }
}

fn refused(target: &str, kernel: &Kernel, reason: &str, detail: &str, address: Option<u64>) -> Refused {
    Refused {
        name: kernel.name.clone(),
        demangled: demangle(&kernel.name).into_owned(),
        target: target.to_owned(),
        reason: reason.to_owned(),
        detail: detail.to_owned(),
        address: address.map(|address| format!("{address:#x}")),
    }
}
