//! What is added to a code object: its kernels, instrumented as far as they can be, and placed. They are planned and
//! placed one after the other, so that no more than a few of them are in memory as instructions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;

use rayon::prelude::*;

use crate::analysis::Analysis;
use crate::facts::KernelFacts;
use crate::instrumented::{Instrumented, Request};
use crate::layout::{Code, Distance, Segment};
use crate::probe::Probe;
use crate::refusal::{RefusalReason, refused};
use wavetap_amdgpu::Target;
use wavetap_analysis::cfg::Program;
use wavetap_analysis::kernel::{BodyKind, Image, Reason, Refusal, Stop};
use wavetap_base::error::{Error, Kind, Result};
use wavetap_object::code_object::{Kernel, KernelDescriptor, KernelMetadata, demangle};
use wavetap_object::emit::code_object::CodeSymbol;
use wavetap_profile::control;
use wavetap_profile::map::{AddressPair, Candidate, CounterMode, Declared, DescriptorBytes, KernelMap, Refused};
use wavetap_profile::placement::CounterPlacement;
use wavetap_profile::record::HEADER;

/// What the new code of a kernel is called in the symbol table.
const CODE_SUFFIX: &str = ".wavetap";

/// From this code object version on, compilers give a kernel that uses dynamic LDS an argument with its size.
const NAMES_DYNAMIC_LDS: u32 = 5;

/// Where counters live while a kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Counters {
    /// Registers, where that costs no occupancy. Otherwise where the kernel is predicted to take fewest cycles, of the
    /// places with which most waves run (with workgroups of the best size). Not LDS that its launches may need
    /// themselves.
    #[default]
    Auto,
    /// LDS.
    Lds,
    /// Memory.
    Global,
    /// Registers.
    Register,
}

impl Counters {
    /// Its name, as in `--counters`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Counters::Auto => "auto",
            Counters::Lds => "lds",
            Counters::Global => "global",
            Counters::Register => "register",
        }
    }
}

/// What is measured in the kernels of a code object.
#[derive(Debug, Clone, Copy)]
pub struct Measurement<'a> {
    /// What to measure.
    pub probes: &'a [&'static dyn Probe],
    /// Where the counters live.
    pub counters: Counters,
    /// Which of them are kept.
    pub placement: CounterPlacement,
    /// How many of a SIMD's waves a kernel may lose to its counters, at most; any number if not said. A kernel that
    /// would lose more is refused.
    pub max_occupancy_loss: Option<u32>,
    /// Whether the counters of each wave are to be had by themselves: each has a record of its own. Those in registers
    /// are totals.
    pub single_waves: bool,
}

/// What `auto` chooses of, the usual order of their costs: of two that are as good the first is taken.
const BY_COST: [CounterMode; 3] = [CounterMode::Register, CounterMode::Lds, CounterMode::Global];

/// A place for the counters of a kernel that the checker has rejected.
#[derive(Debug)]
struct RejectedMode {
    mode: CounterMode,
    why: String,
}

/// A kernel that all stages before writing agree to.
struct Planned<'k> {
    kernel: &'k Kernel,
    index: u32,
    mode: CounterMode,
    candidates: Vec<Candidate>,
    instrumented: Instrumented,
    code: Code,
}

/// Plans the kernels of a code object.
#[derive(Debug)]
pub struct ObjectPlanner<'a> {
    target: Target,
    image: &'a Image<'a>,
    measurement: Measurement<'a>,
    control: u64,
    /// Whether the metadata says which kernels use dynamic LDS.
    names_dynamic_lds: bool,
}

impl<'a> ObjectPlanner<'a> {
    /// `control` is the address of the first control block, `version` that of the code object.
    #[must_use]
    pub fn new(
        target: Target,
        image: &'a Image<'a>,
        measurement: Measurement<'a>,
        control: u64,
        version: u32,
    ) -> ObjectPlanner<'a> {
        ObjectPlanner { target, image, measurement, control, names_dynamic_lds: version >= NAMES_DYNAMIC_LDS }
    }

    /// Plans a kernel. One that calls nothing is decoded by itself, while no other has needed more. All others need the
    /// code of the whole object, as any kernel may call a function, and what is known of it: it is kept in `program`
    /// and `whole`.
    fn plan<'k, 'p>(
        &'p self,
        program: &'p OnceLock<Program>,
        whole: &OnceLock<Analysis<'p>>,
        index: u32,
        kernel: &'k Kernel,
        rejected: &[RejectedMode],
    ) -> Result<Planned<'k>, Stop> {
        if kernel.code.is_empty() {
            let detail = "it is empty: its entry is where the code ends";
            return Err(Refusal::at(Reason::Undecodable, kernel.entry, detail).into());
        }
        let Measurement { placement, max_occupancy_loss, single_waves: per_wave, .. } = self.measurement;
        let control = self.control + control::offset_of(index);
        let request = |mode| Request { mode, placement, index, control, per_wave, max_occupancy_loss };
        if whole.get().is_none() {
            let alone =
                Program::build(self.target, self.image, [(kernel.name.clone(), BodyKind::Kernel, kernel.entry)]);
            if alone.stands_alone() {
                return self.plan_in(&alone, &Analysis::new(&alone, self.image), kernel, rejected, request);
            }
        }
        let program = program.get_or_init(|| Program::of(self.target, self.image));
        let analysis = whole.get_or_init(|| Analysis::new(program, self.image));
        self.plan_in(program, analysis, kernel, rejected, request)
    }

    /// Plans a kernel in the mode asked for, or in the best of all.
    fn plan_in<'k>(
        &self,
        program: &Program,
        analysis: &Analysis<'_>,
        kernel: &'k Kernel,
        rejected: &[RejectedMode],
        request: impl Fn(CounterMode) -> Request,
    ) -> Result<Planned<'k>, Stop> {
        let facts = KernelFacts::of(analysis, kernel, self.measurement.probes)?;
        let modes: &[CounterMode] = match self.measurement.counters {
            // What is recorded has room nowhere else.
            Counters::Auto if facts.needs.global_memory.is_some() => &[CounterMode::Global],
            Counters::Auto => &BY_COST,
            Counters::Lds => &[CounterMode::Lds],
            Counters::Global => &[CounterMode::Global],
            Counters::Register => &[CounterMode::Register],
        };
        let (mut candidates, mut refusal) = (Vec::new(), None);
        let mut best: Option<(CounterMode, Instrumented)> = None;
        for &mode in modes {
            let rejection = rejected.iter().find(|rejected| rejected.mode == mode);
            let planned = match (rejection, self.unfit(program, kernel, mode)?) {
                (Some(rejected), _) => Err(Refusal::new(Reason::CounterMode, rejected.why.clone()).into()),
                (None, Some(refusal)) => Err(Stop::Refused(refusal)),
                (None, None) => crate::instrument(&facts, &request(mode)),
            };
            let planned = match planned {
                Ok(planned) => planned,
                Err(Stop::Refused(why)) => {
                    let refused = Some(why.detail.clone());
                    candidates.push(Candidate { mode, added_cycles: None, waves_per_simd: None, refused });
                    refusal = Some(why);
                    continue;
                }
                Err(stop) => return Err(stop),
            };
            let (added_cycles, waves_per_simd) = (Some(planned.added_cycles), Some(planned.after.waves_per_simd));
            candidates.push(Candidate { mode, added_cycles, waves_per_simd, refused: None });
            let rank = |planned: &Instrumented| (Reverse(planned.after.waves_per_simd), planned.added_cycles);
            // Registers come first. What costs no occupancy is there the cheapest in nearly every kernel, and each plan
            // takes time.
            let is_free = mode == CounterMode::Register && planned.loss.waves() == 0;
            if best.as_ref().is_none_or(|(_, best)| rank(&planned) < rank(best)) {
                best = Some((planned.mode, planned));
            }
            if is_free {
                break;
            }
        }
        let Some((mode, mut instrumented)) = best else {
            let none = || Stop::Failed(Error::internal("no counter mode was tried"));
            return Err(refusal.map_or_else(none, Stop::Refused));
        };
        let id = program.at(kernel.entry).ok_or_else(|| Error::internal("an instrumented kernel has no code"))?;
        let code = Code::plan(program, id, self.image, &std::mem::take(&mut instrumented.edits))?;
        Ok(Planned { kernel, index: request(mode).index, mode, candidates, instrumented, code })
    }

    /// Why a mode is not chosen for a kernel, whatever it costs.
    fn unfit(&self, program: &Program, kernel: &Kernel, mode: CounterMode) -> Result<Option<Refusal>, Stop> {
        if self.measurement.counters != Counters::Auto {
            return Ok(None);
        }
        let detail = match mode {
            CounterMode::Register if self.measurement.single_waves => {
                "each wave's counters are asked for, and those in registers are totals"
            }
            CounterMode::Lds if crate::may_have_dynamic_lds(program, kernel, self.names_dynamic_lds)? => {
                "launches may need the LDS themselves"
            }
            _ => return Ok(None),
        };
        Ok(Some(Refusal::new(Reason::CounterMode, detail)))
    }
}

/// What is added to a code object, but for the kernels' maps: the same for others with the same code and descriptors in
/// the same places.
#[derive(Debug)]
pub struct AddedCode {
    /// The address of the code.
    pub base: u64,
    /// The code of all instrumented kernels.
    pub code: Vec<u8>,
    /// Where it has distances to the original image.
    pub distances: Vec<Distance>,
    /// Their descriptors, by address.
    pub descriptors: Vec<(u64, KernelDescriptor)>,
    /// Their symbols.
    pub symbols: Vec<CodeSymbol>,
    /// What changes in their metadata.
    pub numbers: Vec<MetadataNumber>,
    /// Bytes of the largest record.
    pub stride: u32,
}

/// A number of a kernel's metadata that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataNumber {
    /// The symbol of the kernel's descriptor.
    pub symbol: String,
    /// The key.
    pub key: &'static str,
    /// The new number.
    pub number: u64,
}

/// The kernels of a code object with new places.
#[derive(Debug)]
pub enum ObjectPlacement {
    /// What is added; the maps are without source lines.
    Placed {
        /// What is added to the object.
        added: AddedCode,
        /// The map of each kernel, in the order of their indices.
        maps: Vec<KernelMap>,
    },
    /// What was planned does not fit after the object's own code.
    DoesNotFit(Error),
}

/// [`AddedCode`] while kernels are added.
struct Adding {
    added: AddedCode,
    segment: Segment,
    /// Without source lines.
    maps: Vec<KernelMap>,
}

impl Adding {
    fn new(target: Target, base: u64) -> Result<Adding> {
        let (code, distances, descriptors, symbols, numbers) = Default::default();
        let added = AddedCode { base, code, distances, descriptors, symbols, numbers, stride: HEADER };
        Ok(Adding { added, segment: Segment::new(target, base)?, maps: Vec::new() })
    }

    /// Places a kernel after the others.
    fn push(&mut self, planned: Planned<'_>) -> Result<()> {
        let Planned { kernel, mode, candidates, instrumented, code, .. } = planned;
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
        added.numbers.extend(numbers.into_iter().map(|(key, number)| MetadataNumber {
            symbol: kernel.symbol(),
            key,
            number,
        }));
        let mut after = instrumented.after;
        after.code_bytes = code.size();
        self.maps.push(KernelMap {
            name: kernel.name.clone(),
            demangled: demangle(&kernel.name).into_owned(),
            mode,
            candidates,
            sites: instrumented.sites,
            uncounted_callees: instrumented.uncounted_callees.iter().map(|name| demangle(name).into_owned()).collect(),
            vector_registers: instrumented.vector_registers,
            before: instrumented.before,
            after,
            declared: Some(declared(before, &kernel.descriptor)),
            placement: instrumented.placement,
            placement_fallback: instrumented.placement_fallback,
            slots: instrumented.slots,
            records_accesses: instrumented.records_accesses,
            addresses: code
                .addresses(entry)
                .into_iter()
                .map(|(original, rewritten)| AddressPair { original, rewritten })
                .collect(),
        });
        Ok(())
    }

    fn finish(self) -> ObjectPlacement {
        let distances = self.segment.distances().to_vec();
        let added = AddedCode { code: self.segment.finish(), distances, ..self.added };
        ObjectPlacement::Placed { added, maps: self.maps }
    }
}

/// What a host tells an application of a kernel.
fn declared(metadata: &KernelMetadata, descriptor: &KernelDescriptor) -> Declared {
    Declared {
        sgpr_count: metadata.sgpr_count,
        vgpr_count: metadata.vgpr_count,
        agpr_count: metadata.agpr_count,
        group_segment_fixed_size: metadata.group_segment_fixed_size,
        private_segment_fixed_size: metadata.private_segment_fixed_size,
        descriptor: Some(DescriptorBytes(*descriptor.bytes())),
    }
}

/// The kernels of a code object that are to be instrumented, and those that were refused. A kernel's index is its place
/// among those that are not refused, and part of its code.
#[derive(Debug)]
pub struct SelectedKernels<'k> {
    kernels: Vec<&'k Kernel>,
    /// Where the counters of each of them are, once they are placed, if it was for `auto` to choose.
    chosen: Vec<CounterMode>,
    /// By name, what `auto` must not choose again.
    rejected: BTreeMap<&'k str, Vec<RejectedMode>>,
    refused: Vec<Refused>,
}

impl<'k> SelectedKernels<'k> {
    /// `refused` are those that cannot be read.
    #[must_use]
    pub fn new(kernels: Vec<&'k Kernel>, refused: Vec<Refused>) -> SelectedKernels<'k> {
        SelectedKernels { kernels, chosen: Vec::new(), rejected: BTreeMap::new(), refused }
    }

    /// Plans all kernels, `at_once` of them at the same time, and places them from `base` on. Those that are refused
    /// are left out.
    ///
    /// # Errors
    /// Those of planning that are no kernel's: of the kind [`Kind::Io`].
    pub fn place(
        &mut self,
        target: &str,
        planner: &ObjectPlanner<'_>,
        base: u64,
        at_once: usize,
    ) -> Result<ObjectPlacement> {
        let mut adding = match Adding::new(planner.target, base) {
            Ok(adding) => adding,
            Err(error) => return Ok(ObjectPlacement::DoesNotFit(error)),
        };
        let (program, whole) = (OnceLock::new(), OnceLock::new());
        self.chosen.clear();
        let rejected = |kernel: &Kernel| self.rejected.get(&*kernel.name).map_or(&[][..], Vec::as_slice);
        let mut placed = Vec::new();
        let mut queue: VecDeque<&'k Kernel> = std::mem::take(&mut self.kernels).into();
        while !queue.is_empty() {
            let next: Vec<(usize, &'k Kernel)> = queue.drain(..at_once.min(queue.len())).enumerate().collect();
            let one = |&(number, kernel): &(usize, &'k Kernel)| {
                (kernel, planner.plan(&program, &whole, (placed.len() + number) as u32, kernel, rejected(kernel)))
            };
            let made: Vec<_> = if at_once > 1 {
                next.par_iter().with_max_len(1).map(one).collect()
            } else {
                next.iter().map(one).collect()
            };
            // After one that is refused, all others have another index.
            let mut again = Vec::new();
            let mut made = made.into_iter();
            while let Some((kernel, outcome)) = made.next() {
                match outcome {
                    Ok(planned) if planned.index as usize != placed.len() => again.push(kernel),
                    Ok(planned) => {
                        if let Err(error) = adding.push(planned) {
                            let rest = again.into_iter().chain(made.map(|(kernel, _)| kernel)).chain(queue);
                            self.kernels = placed.into_iter().chain([kernel]).chain(rest).collect();
                            return Ok(ObjectPlacement::DoesNotFit(error));
                        }
                        placed.push(kernel);
                    }
                    Err(Stop::Refused(Refusal { reason, detail, address })) => {
                        // With nothing left to choose, what the checker found is why.
                        let refusal = match rejected(kernel).last() {
                            Some(last) => refused(target, kernel, RefusalReason::Unverified, &last.why, None),
                            None => refused(target, kernel, reason.into(), &detail, address),
                        };
                        self.refused.push(refusal);
                    }
                    Err(Stop::Failed(error)) if error.kind() == Kind::Io => return Err(error),
                    Err(Stop::Failed(error)) => {
                        let internal = error.kind() == Kind::Internal;
                        let reason = if internal { RefusalReason::Unverified } else { RefusalReason::Malformed };
                        self.refused.push(refused(target, kernel, reason, &error.to_string(), None));
                    }
                }
            }
            again.into_iter().rev().for_each(|kernel| queue.push_front(kernel));
        }
        self.kernels = placed;
        if planner.measurement.counters == Counters::Auto {
            self.chosen = adding.maps.iter().map(|map| map.mode).collect();
        }
        Ok(adding.finish())
    }

    /// A kernel, by its mangled name, is rejected by the checker: where `auto` chose where its counters are, it has to
    /// choose another place when the kernels are placed again, otherwise the kernel is refused. If no kernel is to
    /// blame, all are refused: as with tables that were damaged before, and that no reader of the original looks at.
    /// `finding` is the whole finding, `message` what is wrong.
    pub fn reject(&mut self, target: &str, name: Option<&str>, finding: &str, message: &str) {
        const REJECTED: &str = "the checker does not accept the instrumented code: ";
        let reason = RefusalReason::Unverified;
        if let Some(index) = name.and_then(|name| self.kernels.iter().position(|kernel| kernel.name == name)) {
            let (kernel, why) = (self.kernels[index], format!("{REJECTED}{message}"));
            let Some(&mode) = self.chosen.get(index) else {
                self.kernels.remove(index);
                self.refused.push(refused(target, kernel, reason, &why, None));
                return;
            };
            // There may be several findings in a kernel.
            let rejected = self.rejected.entry(&kernel.name).or_default();
            if rejected.iter().all(|rejected| rejected.mode != mode) {
                rejected.push(RejectedMode { mode, why });
            }
        } else if !name.is_some_and(|name| self.refused.iter().any(|refused| refused.name == name)) {
            self.refuse_all(target, reason, &format!("{REJECTED}{finding}"));
        }
    }

    /// Refuses all kernels that are left.
    pub fn refuse_all(&mut self, target: &str, reason: RefusalReason, detail: &str) {
        self.refused.extend(self.kernels.drain(..).map(|kernel| refused(target, kernel, reason, detail, None)));
    }

    /// Whether none was refused.
    #[must_use]
    pub fn are_all(&self) -> bool {
        self.refused.is_empty()
    }

    /// How many are to be instrumented.
    #[must_use]
    pub fn count(&self) -> usize {
        self.kernels.len()
    }

    /// What was refused, by name.
    #[must_use]
    pub fn refusals(&self) -> Vec<Refused> {
        let mut refused = self.refused.clone();
        refused.sort_by(|a, b| a.name.cmp(&b.name));
        refused
    }
}
