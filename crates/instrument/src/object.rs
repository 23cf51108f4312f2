//! What is added to a code object. Kernels are planned and placed one after the other, so that no more than a few of
//! them are in memory as instructions.

use std::collections::VecDeque;
use std::sync::OnceLock;

use rayon::prelude::*;

use super::{MALFORMED, UNVERIFIED, refused};
use crate::pipeline::options::{Counters, Options};
use wavetap_amdgpu::Target;
use wavetap_analysis::cfg::Program;
use wavetap_analysis::kernel::{BodyKind, Image, Reason, Refusal, Stop};
use wavetap_base::error::{Error, Kind, Result};
use wavetap_instrument::layout::{Code, Segment};
use wavetap_instrument::{Analysis, Instrumented, KernelFacts, Request};
use wavetap_object::code_object::{Kernel, KernelDescriptor, KernelMetadata, demangle};
use wavetap_object::emit::code_object::CodeSymbol;
use wavetap_profile::map::{AddressPair, CounterMode, Declared, KernelMap, Refused};
use wavetap_profile::record::HEADER;
use wavetap_verify::Finding;

/// What the new code of a kernel is called in the symbol table.
const CODE_SUFFIX: &str = ".wavetap";

/// From this code object version on, compilers give a kernel that uses dynamic LDS an argument with its size.
const NAMES_DYNAMIC_LDS: u32 = 5;

/// A kernel that all stages before writing agree to.
struct Planned<'k> {
    kernel: &'k Kernel,
    index: u32,
    mode: CounterMode,
    instrumented: Instrumented,
    code: Code,
}

/// Plans the kernels of a code object.
pub(super) struct Planner<'a> {
    target: Target,
    image: &'a Image<'a>,
    options: &'a Options,
    control: u64,
    /// Whether the metadata says which kernels use dynamic LDS.
    names_dynamic_lds: bool,
}

impl<'a> Planner<'a> {
    /// `control` is the address of the control block, `version` that of the code object.
    pub(super) fn new(
        target: Target,
        image: &'a Image<'a>,
        options: &'a Options,
        control: u64,
        version: u32,
    ) -> Planner<'a> {
        Planner { target, image, options, control, names_dynamic_lds: version >= NAMES_DYNAMIC_LDS }
    }

    /// Plans a kernel. One that calls nothing is decoded by itself, while no other has needed more. All others need the
    /// code of the whole object, as functions may be anybody's, and what is known of it: it is kept in `program` and
    /// `whole`.
    fn plan<'k, 'p>(
        &'p self,
        program: &'p OnceLock<Program>,
        whole: &OnceLock<Analysis<'p>>,
        index: u32,
        kernel: &'k Kernel,
    ) -> Result<Planned<'k>, Stop> {
        if kernel.code.is_empty() {
            let detail = "it is empty: its entry is where the code ends";
            return Err(Refusal::at(Reason::Undecodable, kernel.entry, detail).into());
        }
        let request =
            |mode| Request { mode, index, control: self.control, max_occupancy_loss: self.options.max_occupancy_loss };
        if whole.get().is_none() {
            let alone =
                Program::build(self.target, self.image, [(kernel.name.clone(), BodyKind::Kernel, kernel.entry)]);
            if alone.stands_alone() {
                return self.plan_in(&alone, &Analysis::new(&alone, self.image), kernel, request);
            }
        }
        let program = program.get_or_init(|| Program::of(self.target, self.image));
        let analysis = whole.get_or_init(|| Analysis::new(program, self.image));
        self.plan_in(program, analysis, kernel, request)
    }

    /// Plans a kernel in the mode asked for. `auto` takes LDS unless that is refused, lets fewer waves run than
    /// counters in memory do, or may leave a launch without the dynamic LDS that it needs.
    fn plan_in<'k>(
        &self,
        program: &Program,
        analysis: &Analysis<'_>,
        kernel: &'k Kernel,
        request: impl Fn(CounterMode) -> Request,
    ) -> Result<Planned<'k>, Stop> {
        let facts = KernelFacts::of(analysis, kernel, &self.options.probes)?;
        let plan = |mode| {
            let request = request(mode);
            let mut instrumented = wavetap_instrument::instrument(&facts, &request)?;
            let id = program.at(kernel.entry).ok_or_else(|| Error::internal("an instrumented kernel has no code"))?;
            let code = Code::plan(program, id, self.image, &std::mem::take(&mut instrumented.edits))?;
            Ok::<_, Stop>(Planned { kernel, index: request.index, mode, instrumented, code })
        };
        match self.options.counters {
            Counters::Lds => plan(CounterMode::Lds),
            Counters::Global => plan(CounterMode::Global),
            Counters::Register => plan(CounterMode::Register),
            Counters::Auto if wavetap_instrument::may_have_dynamic_lds(program, kernel, self.names_dynamic_lds)? => {
                plan(CounterMode::Global)
            }
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
}

/// What is added to a code object, but for the kernels' maps: the same for others with the same code and descriptors in
/// the same places.
pub(super) struct Added {
    /// The address of the code.
    pub(super) base: u64,
    pub(super) code: Vec<u8>,
    pub(super) descriptors: Vec<(u64, KernelDescriptor)>,
    pub(super) symbols: Vec<CodeSymbol>,
    /// Kernel, key and number in the metadata.
    pub(super) numbers: Vec<(String, &'static str, u64)>,
    pub(super) stride: u32,
}

/// [`Added`] while kernels are added.
struct Adding {
    added: Added,
    segment: Segment,
    /// Without source lines.
    maps: Vec<KernelMap>,
}

impl Adding {
    fn new(target: Target, base: u64) -> Result<Adding> {
        let (code, descriptors, symbols, numbers) = Default::default();
        let added = Added { base, code, descriptors, symbols, numbers, stride: HEADER };
        Ok(Adding { added, segment: Segment::new(target, base)?, maps: Vec::new() })
    }

    /// Places a kernel behind the others.
    fn push(&mut self, planned: Planned<'_>) -> Result<()> {
        let Planned { kernel, mode, instrumented, code, .. } = planned;
        let entry = self.segment.push(&code)?;
        let added = &mut self.added;
        added.stride = added.stride.max(instrumented.record_bytes);
        let mut descriptor = instrumented.descriptor;
        descriptor.set_entry_byte_offset(entry.wrapping_sub(kernel.descriptor_address) as i64);
        added.descriptors.push((kernel.descriptor_address, descriptor));
        added.symbols.push(CodeSymbol {
            name: format!("{}{CODE_SUFFIX}", kernel.name),
            address: entry,
            size: code.size(),
        });
        let before = kernel.metadata.as_ref().ok_or_else(|| Error::internal("a planned kernel has no metadata"))?;
        let numbers = instrumented.metadata.numbers(before);
        added.numbers.extend(numbers.into_iter().map(|(key, number)| (kernel.symbol(), key, number)));
        let mut after = instrumented.after;
        after.code_bytes = code.size();
        self.maps.push(KernelMap {
            name: kernel.name.clone(),
            demangled: demangle(&kernel.name).into_owned(),
            mode,
            sites: instrumented.sites,
            uncounted_callees: instrumented.uncounted_callees.iter().map(|name| demangle(name).into_owned()).collect(),
            vector_registers: instrumented.vector_registers,
            before: instrumented.before,
            after,
            declared: Some(declared(before)),
            addresses: code
                .addresses(entry)
                .into_iter()
                .map(|(original, rewritten)| AddressPair { original, rewritten })
                .collect(),
        });
        Ok(())
    }

    fn finish(self) -> (Added, Vec<KernelMap>) {
        (Added { code: self.segment.finish(), ..self.added }, self.maps)
    }
}

/// What a host tells an application of a kernel.
fn declared(metadata: &KernelMetadata) -> Declared {
    Declared {
        sgpr_count: metadata.sgpr_count,
        vgpr_count: metadata.vgpr_count,
        agpr_count: metadata.agpr_count,
        group_segment_fixed_size: metadata.group_segment_fixed_size,
        private_segment_fixed_size: metadata.private_segment_fixed_size,
    }
}

/// The kernels of a code object that are to be instrumented, and those that were refused. A kernel's index is its place
/// among those that are not refused, and part of its code.
pub(super) struct Kernels<'k> {
    kernels: Vec<&'k Kernel>,
    refused: Vec<Refused>,
}

impl<'k> Kernels<'k> {
    /// `refused` are those that cannot be read.
    pub(super) fn new(kernels: Vec<&'k Kernel>, refused: Vec<Refused>) -> Kernels<'k> {
        Kernels { kernels, refused }
    }

    /// Plans all kernels, `at_once` of them at the same time, and places them from `base` on. Those that are refused
    /// are left out.
    ///
    /// The outer error is that of planning; the inner one says that what was planned cannot be placed.
    pub(super) fn place(
        &mut self,
        target: &str,
        planner: &Planner<'_>,
        base: u64,
        at_once: usize,
    ) -> Result<Result<(Added, Vec<KernelMap>)>> {
        let mut adding = match Adding::new(planner.target, base) {
            Ok(adding) => adding,
            Err(error) => return Ok(Err(error)),
        };
        let (program, whole) = (OnceLock::new(), OnceLock::new());
        let mut placed = Vec::new();
        let mut queue: VecDeque<&'k Kernel> = std::mem::take(&mut self.kernels).into();
        while !queue.is_empty() {
            let next: Vec<(usize, &'k Kernel)> = queue.drain(..at_once.min(queue.len())).enumerate().collect();
            let one = |&(number, kernel): &(usize, &'k Kernel)| {
                (kernel, planner.plan(&program, &whole, (placed.len() + number) as u32, kernel))
            };
            let made: Vec<_> = if at_once > 1 {
                next.par_iter().with_max_len(1).map(one).collect()
            } else {
                next.iter().map(one).collect()
            };
            // Behind one that is refused, all others have another index.
            let mut again = Vec::new();
            let mut made = made.into_iter();
            while let Some((kernel, outcome)) = made.next() {
                match outcome {
                    Ok(planned) if planned.index as usize != placed.len() => again.push(kernel),
                    Ok(planned) => {
                        if let Err(error) = adding.push(planned) {
                            let rest = again.into_iter().chain(made.map(|(kernel, _)| kernel)).chain(queue);
                            self.kernels = placed.into_iter().chain([kernel]).chain(rest).collect();
                            return Ok(Err(error));
                        }
                        placed.push(kernel);
                    }
                    Err(Stop::Refused(Refusal { reason, detail, address })) => {
                        self.refused.push(refused(target, kernel, reason.name(), &detail, address));
                    }
                    Err(Stop::Failed(error)) if error.kind() == Kind::Io => return Err(error),
                    Err(Stop::Failed(error)) => {
                        let reason = if error.kind() == Kind::Internal { UNVERIFIED } else { MALFORMED };
                        self.refused.push(refused(target, kernel, reason, &error.to_string(), None));
                    }
                }
            }
            again.into_iter().rev().for_each(|kernel| queue.push_front(kernel));
        }
        self.kernels = placed;
        Ok(Ok(adding.finish()))
    }

    /// Refuses the kernels that the checker found fault with; all, if the fault is in no kernel: as with tables that
    /// were damaged before, and that no reader of the original looks at.
    pub(super) fn leave_out(&mut self, target: &str, findings: Vec<Finding>) {
        for finding in findings {
            let detail = format!("the checker does not accept the instrumented code: {finding}");
            let named = finding.kernel.as_deref();
            let at = named.and_then(|name| self.kernels.iter().position(|kernel| kernel.name == name));
            if let Some(index) = at {
                let kernel = self.kernels.remove(index);
                let detail = format!("the checker does not accept the instrumented code: {}", finding.message);
                self.refused.push(refused(target, kernel, UNVERIFIED, &detail, None));
            } else if !named.is_some_and(|name| self.refused.iter().any(|refused| refused.name == name)) {
                self.leave_out_all(target, UNVERIFIED, &detail);
            }
        }
    }

    /// Refuses all kernels that are left.
    pub(super) fn leave_out_all(&mut self, target: &str, reason: &str, detail: &str) {
        self.refused.extend(self.kernels.drain(..).map(|kernel| refused(target, kernel, reason, detail, None)));
    }

    /// Whether none was refused.
    pub(super) fn are_all(&self) -> bool {
        self.refused.is_empty()
    }

    /// What was refused, by name.
    pub(super) fn refusals(&self) -> Vec<Refused> {
        let mut refused = self.refused.clone();
        refused.sort_by(|a, b| a.name.cmp(&b.name));
        refused
    }
}
