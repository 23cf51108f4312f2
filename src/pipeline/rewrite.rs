//! Input bytes to output bytes whose kernels count.
//!
//! Everything of a code object is planned before a byte of it is written. The two steps of a placement: [`emit::code_object::Plan`](crate::emit::code_object::Plan)
//! says where control block and code will be, `instrument` and `layout` make code for that place, and the plan writes it. A kernel that some stage
//! refuses is left as it was; without any instrumented kernel the output is the input. What was written is checked by [`verify`], which shares no code with
//! the stages that wrote it, and a kernel with a finding is refused like any other.

use std::sync::Mutex;

use rayon::prelude::*;

use super::object::{Object, digest, place, target_id};
use super::options::{Counters, Options};
use crate::cfg::Program;
use crate::code_object::{CodeObject, Kernel, KernelDescriptor, demangle};
use crate::emit::code_object::{Changes, CodeSymbol, Plan};
use crate::emit::{Replacement, merge};
use crate::error::{Error, Kind, Result, ResultExt};
use crate::instrument::{self, Analysis, Instrumented, Request};
use crate::isa::Target;
use crate::kernel::{Image, Refusal, Stop};
use crate::layout::{self, Code};
use crate::offload_bundle::{Found, Input};
use crate::profile::control::{self, Control};
use crate::profile::map::{AddressPair, CounterMode, KernelMap, ObjectMap, Refused, SCHEMA};
use crate::profile::record::HEADER;
use crate::verify::{self, Finding};

/// Reason of a kernel for a processor whose code cannot be rewritten.
const UNSUPPORTED_TARGET: &str = "unsupported_target";
/// Reason of a kernel in a code object that cannot be extended.
const UNSUPPORTED_OBJECT: &str = "unsupported_object";
/// Reason of a kernel whose instrumented code the independent checker finds fault with.
const UNVERIFIED: &str = "unverified";
/// Stands for the kernels of a code object that cannot be read.
pub(super) const EVERY_KERNEL: &str = "*";
/// What the new code of a kernel is called in the symbol table.
const CODE_SUFFIX: &str = ".wavetap";

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
/// use wavetap::pipeline::{Options, Probe, rewrite};
///
/// let error = rewrite(b"no program", &Options { probes: vec![Probe::Branches], ..Options::default() }).unwrap_err();
/// assert_eq!(error.to_string(), "neither an ELF file nor an offload bundle (at offset 0x0)");
/// ```
///
/// # Errors
/// Malformed if the input breaks its format; unsupported if it was rewritten before, or a counter mode is not available. A kernel
/// that cannot be instrumented is no error: see [`ObjectMap::refused`].
pub fn rewrite(data: &[u8], options: &Options) -> Result<Rewritten> {
    rewrite_with_progress(data, options, |_| {})
}

/// How far a rewrite is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Code objects that are done.
    pub done: usize,
    /// Code objects in the input.
    pub total: usize,
}

/// [`rewrite`], which tells `progress` at the start and after each code object.
///
/// Code objects are rewritten at the same time, as many as there are threads, or the kernels of each where there are few objects; the result is the same.
///
/// # Errors
/// As [`rewrite`].
pub fn rewrite_with_progress(data: &[u8], options: &Options, progress: impl FnMut(Progress) + Send) -> Result<Rewritten> {
    if options.counters == Counters::Register {
        return Err(Error::unsupported("counters in registers are not available yet: use lds, global or auto"));
    }
    let input = Input::parse(data)?;
    check_original(&input)?;
    let objects: Vec<Found<'_>> = input.code_objects().collect();
    let total = objects.len();
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
    // Either objects or kernels, never both: a thread that waits for kernels would take on another object, and hold the memory for two.
    let width = if total < 2 * rayon::current_num_threads() { Width::Kernels } else { Width::Objects };
    let one = |found: &Found<'_>| {
        let rewritten = rewrite_object(found, options, width).within(|| place(found));
        tell(1);
        rewritten
    };
    let rewritten: Vec<_> = match width {
        // One after the other, whatever its size: the largest last would be alone at the end.
        Width::Objects => objects.par_iter().with_max_len(1).map(one).collect(),
        Width::Kernels => objects.iter().map(one).collect(),
    };
    let mut replacements = Vec::new();
    let mut maps = Vec::new();
    for (found, rewritten) in objects.iter().zip(rewritten) {
        let Some((map, bytes)) = rewritten? else { continue };
        maps.push(map);
        replacements.extend(bytes.map(|bytes| Replacement { place: found.place, bytes }));
    }
    Ok(Rewritten { bytes: merge(&input, &replacements, options.packing)?, maps })
}

/// What is done at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    /// Code objects.
    Objects,
    /// Kernels of a code object.
    Kernels,
}

/// Refuses an input without code, and one that was rewritten before, in whatever part: two control blocks in one program clash, and sites of
/// inserted code mean nothing.
fn check_original(input: &Input<'_>) -> Result<()> {
    let mut some = false;
    for found in input.code_objects() {
        some = true;
        if CodeObject::parse(found.bytes).is_ok_and(|code| code.is_rewritten()) {
            return Err(Error::unsupported("this code was rewritten before: rewrite the original")).within(|| place(&found));
        }
    }
    if some { Ok(()) } else { Err(Error::unsupported("no entry of its bundles is a code object").at(0)) }
}

/// One code object: its map, and its new bytes if a kernel was instrumented. None if it is not selected.
fn rewrite_object(found: &Found<'_>, options: &Options, width: Width) -> Result<Option<(ObjectMap, Option<Vec<u8>>)>> {
    if options.probes.is_empty() {
        return Ok(None);
    }
    let code = match CodeObject::parse(found.bytes) {
        Ok(code) => code,
        // Beside others it stays as it is; by itself it is a wrong input.
        Err(error) if error.kind() == Kind::Unsupported && found.place.is_some() => return Ok(unread(found, options, &error)),
        Err(error) => return Err(error),
    };
    let target = target_id(found, &code);
    if !options.selection.has_target(&target) {
        return Ok(None);
    }
    let selected: Vec<&Kernel> = code.kernels().iter().filter(|kernel| options.selection.has_kernel(&kernel.name)).collect();
    let mut map = ObjectMap {
        schema: SCHEMA.to_owned(),
        target,
        original: digest(found.bytes),
        stride: HEADER,
        kernels: Vec::new(),
        refused: Vec::new(),
    };
    if selected.is_empty() {
        return Ok(Some((map, None)));
    }
    if !code.target().is_some_and(Target::rewritable) {
        let what = if code.target().is_some() { "is decoded but not rewritten" } else { "is not in the tables" };
        let rewritten: Vec<&str> = Target::all().filter(|target| target.rewritable()).map(Target::name).collect();
        let detail = format!("code for {} {what}: only that for {} is", code.target_id(), rewritten.join(", "));
        map.refused.extend(selected.iter().map(|kernel| refused(&map.target, kernel, UNSUPPORTED_TARGET, &detail, None)));
        return Ok(Some((map, None)));
    }
    let plan = match Plan::new(&code, control::SIZE) {
        Ok(plan) => plan,
        Err(error) if error.kind() == Kind::Unsupported => {
            map.refused.extend(selected.iter().map(|kernel| refused(&map.target, kernel, UNSUPPORTED_OBJECT, &error.to_string(), None)));
            return Ok(Some((map, None)));
        }
        Err(error) => return Err(error),
    };
    let mut plans = Plans { kernels: selected.iter().map(|kernel| (*kernel, None)).collect(), refused: Vec::new() };
    // Each round leaves out the kernels that the checker found fault with; there are never more rounds than kernels.
    loop {
        let mut map = map.clone();
        let Some(bytes) = instrument_object(found, &plan, &mut plans, options, width, &mut map)? else {
            map.refused = plans.refusals();
            return Ok(Some((map, None)));
        };
        // The checker decodes everything again: of what has been planned until here nothing is left in memory by now.
        let (_, findings) = verify::check_object(&code, &CodeObject::parse(&bytes)?);
        if findings.is_empty() {
            map.refused = plans.refusals();
            if !options.keep_addresses {
                map.kernels.iter_mut().for_each(|kernel| kernel.addresses = Vec::new());
            }
            return Ok(Some((map, Some(bytes))));
        }
        plans.leave_out(&map.target, findings);
    }
}

/// The new bytes of a code object whose kernels are instrumented as far as they can be; none if no kernel is.
fn instrument_object<'k>(
    found: &Found<'_>,
    plan: &Plan<'_, '_>,
    plans: &mut Plans<'k>,
    options: &Options,
    width: Width,
    map: &mut ObjectMap,
) -> Result<Option<Vec<u8>>> {
    let object = Object::decode(found)?;
    let analysis = Analysis::new(&object.program, &object.image);
    loop {
        map.kernels.clear();
        plans.complete(&map.target, width, |index, kernel| {
            let request =
                |mode| Request { kernel, mode, index, control: plan.control_address(), max_occupancy_loss: options.max_occupancy_loss };
            plan_kernel(&object.program, &object.image, &analysis, options.counters, request)
        })?;
        map.refused = plans.refusals();
        let planned: Vec<&Planned<'_>> = plans.kernels.iter().filter_map(|(_, planned)| planned.as_ref()).collect();
        if planned.is_empty() {
            return Ok(None);
        }
        match write(&object, plan, &planned, map) {
            Ok(bytes) => {
                plans.kernels.iter_mut().for_each(|(_, planned)| *planned = None);
                return Ok(Some(bytes));
            }
            Err(error) if error.kind() == Kind::Unsupported => plans.leave_out_all(&map.target, UNSUPPORTED_OBJECT, &error.to_string()),
            // The writer reads what it wrote, as the checker does.
            Err(error) if error.kind() == Kind::Internal => plans.leave_out_all(&map.target, UNVERIFIED, &error.to_string()),
            Err(error) => return Err(error),
        }
    }
}

/// The kernels of a code object that are to be instrumented. A kernel's index is its place among those that are not refused, and part of its code.
struct Plans<'k> {
    kernels: Vec<(&'k Kernel, Option<Planned<'k>>)>,
    refused: Vec<Refused>,
}

impl<'k> Plans<'k> {
    /// Plans what is not planned, until every kernel is planned with its index or refused.
    fn complete<P>(&mut self, target: &str, width: Width, plan: P) -> Result<()>
    where
        P: Fn(u32, &'k Kernel) -> Result<Planned<'k>, Stop> + Sync,
    {
        loop {
            let missing = |(index, (kernel, planned)): (usize, &(&'k Kernel, Option<Planned<'k>>))| {
                let stale = planned.as_ref().is_none_or(|planned| planned.index != index as u32);
                stale.then_some((index, *kernel))
            };
            let missing: Vec<(usize, &'k Kernel)> = self.kernels.iter().enumerate().filter_map(missing).collect();
            let one = |&(index, kernel): &(usize, &'k Kernel)| (index, plan(index as u32, kernel));
            let made: Vec<_> = match width {
                Width::Kernels => missing.par_iter().with_max_len(1).map(one).collect(),
                Width::Objects => missing.iter().map(one).collect(),
            };
            let mut some_refused = false;
            for (index, made) in made {
                let (kernel, place) = &mut self.kernels[index];
                match made {
                    Ok(planned) => *place = Some(planned),
                    Err(Stop::Refused(refusal)) => {
                        let Refusal { reason, detail, address } = refusal;
                        self.refused.push(refused(target, kernel, reason.name(), &detail, address));
                        *place = None;
                        some_refused = true;
                    }
                    Err(Stop::Failed(error)) => return Err(error.within(format!("kernel {}", demangle(&kernel.name)))),
                }
            }
            if !some_refused {
                return Ok(());
            }
            // What is not planned now is refused.
            self.kernels.retain(|(_, planned)| planned.is_some());
        }
    }

    /// Refuses the kernels that the checker found fault with; all, if the fault is in no kernel: as with tables that were damaged before, and that
    /// no reader of the original looks at.
    fn leave_out(&mut self, target: &str, findings: Vec<Finding>) {
        for finding in findings {
            let detail = format!("the checker does not accept the instrumented code: {finding}");
            let named = finding.kernel.as_deref();
            let at = named.and_then(|name| self.kernels.iter().position(|(kernel, _)| kernel.name == name));
            if let Some(index) = at {
                let (kernel, _) = self.kernels.remove(index);
                let detail = format!("the checker does not accept the instrumented code: {}", finding.message);
                self.refused.push(refused(target, kernel, UNVERIFIED, &detail, None));
            } else if !named.is_some_and(|name| self.refused.iter().any(|refused| refused.name == name)) {
                self.leave_out_all(target, UNVERIFIED, &detail);
            }
        }
    }

    /// Refuses all kernels that are left.
    fn leave_out_all(&mut self, target: &str, reason: &str, detail: &str) {
        self.refused.extend(self.kernels.drain(..).map(|(kernel, _)| refused(target, kernel, reason, detail, None)));
    }

    /// What was refused, by name.
    fn refusals(&self) -> Vec<Refused> {
        let mut refused = self.refused.clone();
        refused.sort_by(|a, b| a.name.cmp(&b.name));
        refused
    }
}

/// A code object whose kernels are not known stays as it was, unless it is another target's.
fn unread(found: &Found<'_>, options: &Options, error: &Error) -> Option<(ObjectMap, Option<Vec<u8>>)> {
    let target = found.target.map_or_else(|| "?".to_owned(), ToString::to_string);
    if found.target.is_some() && !options.selection.has_target(&target) {
        return None;
    }
    let all = Refused {
        name: EVERY_KERNEL.to_owned(),
        demangled: EVERY_KERNEL.to_owned(),
        target: target.clone(),
        reason: UNSUPPORTED_OBJECT.to_owned(),
        detail: error.to_string(),
        address: None,
    };
    let map = ObjectMap {
        schema: SCHEMA.to_owned(),
        target,
        original: digest(found.bytes),
        stride: HEADER,
        kernels: Vec::new(),
        refused: vec![all],
    };
    Some((map, None))
}

/// A kernel that all stages before writing agree to.
struct Planned<'k> {
    kernel: &'k Kernel,
    index: u32,
    mode: CounterMode,
    instrumented: Instrumented,
    code: Code,
}

/// Plans a kernel in the mode asked for. `auto` takes LDS unless that is refused or lets fewer waves run than counters in memory do.
fn plan_kernel<'k>(
    program: &Program,
    image: &Image<'_>,
    analysis: &Analysis<'_>,
    counters: Counters,
    request: impl Fn(CounterMode) -> Request<'k>,
) -> Result<Planned<'k>, Stop> {
    let plan = |mode| {
        let request = request(mode);
        let mut instrumented = instrument::branches(analysis, &request)?;
        let id = program.at(request.kernel.entry).ok_or_else(|| Error::internal("an instrumented kernel has no code"))?;
        let code = Code::plan(program, id, image, &std::mem::take(&mut instrumented.edits))?;
        Ok::<_, Stop>(Planned { kernel: request.kernel, index: request.index, mode, instrumented, code })
    };
    match counters {
        Counters::Lds => plan(CounterMode::Lds),
        Counters::Global => plan(CounterMode::Global),
        Counters::Register => plan(CounterMode::Register),
        Counters::Auto => match (plan(CounterMode::Lds), plan(CounterMode::Global)) {
            (Err(Stop::Refused(_)), global) => global,
            (Ok(lds), Err(Stop::Refused(_))) => Ok(lds),
            (Err(Stop::Failed(error)), _) | (_, Err(Stop::Failed(error))) => Err(Stop::Failed(error)),
            (Ok(lds), Ok(global)) => {
                let cheaper = lds.instrumented.after.waves_per_simd >= global.instrumented.after.waves_per_simd;
                Ok(if cheaper { lds } else { global })
            }
        },
    }
}

/// Places the code, completes the map and writes the new object.
fn write(object: &Object<'_>, plan: &Plan<'_, '_>, planned: &[&Planned<'_>], map: &mut ObjectMap) -> Result<Vec<u8>> {
    let codes: Vec<&Code> = planned.iter().map(|kernel| &kernel.code).collect();
    let placed = layout::place(object.target, &codes, plan.code_address())?;
    let mut value = object.code.metadata().ok_or_else(|| Error::internal("a planned object has no metadata"))?.value.clone();
    let mut descriptors: Vec<(u64, KernelDescriptor)> = Vec::new();
    let mut symbols = Vec::new();
    for (kernel, &entry) in planned.iter().zip(&placed.entries) {
        let address = kernel.kernel.descriptor_address;
        let mut descriptor = kernel.instrumented.descriptor;
        descriptor.set_entry_byte_offset(entry.wrapping_sub(address) as i64);
        descriptors.push((address, descriptor));
        symbols.push(CodeSymbol { name: format!("{}{CODE_SUFFIX}", kernel.kernel.name), address: entry, size: kernel.code.size() });
        let before = kernel.kernel.metadata.as_ref().ok_or_else(|| Error::internal("a planned kernel has no metadata"))?;
        kernel.instrumented.metadata.write(&mut value, &kernel.kernel.symbol(), before)?;
        map.kernels.push(kernel_map(object, kernel, entry));
    }
    map.stride = planned.iter().map(|kernel| kernel.instrumented.record_bytes).max().unwrap_or(HEADER);
    let control = Control { stride: map.stride, ..Control::default() };
    plan.finish(&Changes {
        code: &placed.bytes,
        symbols: &symbols,
        descriptors: &descriptors,
        metadata: &value,
        control: &control.to_bytes(),
        map: &map.pack()?,
    })
}

fn kernel_map(object: &Object<'_>, planned: &Planned<'_>, entry: u64) -> KernelMap {
    let Planned { kernel, mode, instrumented, code, .. } = planned;
    let mut sites = instrumented.sites.clone();
    for site in &mut sites {
        site.source = object.source(site.address);
    }
    let mut after = instrumented.after;
    after.code_bytes = code.size();
    KernelMap {
        name: kernel.name.clone(),
        demangled: demangle(&kernel.name).into_owned(),
        mode: *mode,
        sites,
        uncounted_callees: instrumented.uncounted_callees.iter().map(|name| demangle(name).into_owned()).collect(),
        before: instrumented.before,
        after,
        addresses: code.addresses(entry).into_iter().map(|(original, rewritten)| AddressPair { original, rewritten }).collect(),
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
