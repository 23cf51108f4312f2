//! What the timing model says of each dispatch, collected by kernel, and its samples.

use std::collections::{BTreeMap, HashMap};

use wavetap::code_object::{CodeObject, demangle};
use wavetap::emulator::{CodeAddress, DispatchStats, ModelledTime, Resource, StallReason, Timing, WaveTrace};
use wavetap::error::Result;
use wavetap::isa::{Board, Target};
use wavetap::profile::accuracy::Accuracy;
use wavetap::profile::map::Source;
use wavetap::profile::samples::{
    self, CorrelationId, DispatchInfo, HardwareId, KernelDispatch, KernelSymbol, Pc, Record, Sample, Samples, Snapshot,
    WorkgroupId,
};
use wavetap::profile::time::{
    DispatchTime, ExtrapolatedTime, InstructionCycles, InstructionType, KernelTime, MemoryTime, ResourceTime,
    TimeProfile, TracedInstruction, TracedWave, TracedWaves,
};

use crate::images::Loaded;
use crate::trace::{Names, Originals};

/// Most samples of a run that are kept.
const MOST_SAMPLES: usize = 4 << 20;

/// Collects modelled time.
pub(crate) struct Timer {
    time: TimeProfile,
    samples: Option<Samples>,
    /// Whether waves are traced.
    waves: bool,
    kernels: HashMap<(String, String), usize>,
    objects: HashMap<u32, Names>,
    /// Where the texts of samples are, by object and address.
    texts: Texts,
    /// Modelled cycles of all dispatches so far.
    now: u64,
}

/// Where the text of an instruction is in a file of samples, and its original address; by object and address.
type Texts = HashMap<(u32, u64), (usize, u64)>;

/// An instruction of the original.
type Instruction = (u64, String, Option<Source>);

impl Timer {
    pub(crate) fn new(timing: &Timing) -> Self {
        Timer {
            time: TimeProfile {
                board: timing.board.map(|board| board.name.to_owned()),
                ..TimeProfile::new(timing.latencies.iter().map(ToString::to_string).collect())
            },
            samples: timing.sample_interval.map(|interval| Samples::new(interval.get())),
            waves: timing.waves,
            kernels: HashMap::new(),
            objects: HashMap::new(),
            texts: HashMap::new(),
            now: 0,
        }
    }

    pub(crate) fn time(&self) -> &TimeProfile {
        &self.time
    }

    pub(crate) fn samples(&self) -> Option<&Samples> {
        self.samples.as_ref()
    }

    pub(crate) fn finish(&mut self) {
        self.time.complete = true;
    }

    /// Adds a dispatch of `kernel` and gives what it adds.
    pub(crate) fn add(
        &mut self,
        (kernel, region): (&str, Option<&str>),
        loaded: &Loaded,
        target: Target,
        &Dispatched { ordinal, started, mhz }: &Dispatched,
        stats: &DispatchStats,
    ) -> Result<Option<TimeProfile>> {
        let Some(modelled) = &stats.time else { return Ok(None) };
        let id = loaded.object.id.0;
        let code = CodeObject::parse(&loaded.bytes)?;
        let original = Originals::of(loaded, kernel, &code);
        let names = match self.objects.entry(id) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert(Names::of(loaded)?),
        };
        let time = &mut self.time;
        time.clock_mhz = mhz;
        let at = *self.kernels.entry((names.original.clone(), kernel.to_owned())).or_insert_with(|| {
            time.kernels.push(empty(kernel, names));
            time.kernels.len() - 1
        });
        let known = &time.kernels[at];
        let mut totals = empty(kernel, names);
        totals.waves = stats.waves;
        totals.most_waves_per_simd = modelled.most_waves;
        totals.modelled_cycles = modelled.cycles;
        totals.modelled_wave_cycles = modelled.wave_cycles;
        let (dispatch, modelled_cycles, region) = (ordinal, modelled.cycles, region.map(str::to_owned));
        let extrapolated = modelled.extrapolated.map(|how| ExtrapolatedTime {
            modelled_workgroups: how.modelled,
            workgroups: how.workgroups,
            error_permille: how.error_permille,
        });
        let modelled_start = mhz.map(|_| started);
        totals.dispatches.push(DispatchTime { dispatch, modelled_cycles, modelled_start, region, extrapolated });
        add_memory(&mut totals.memory, modelled);
        totals.resources = resources(modelled);
        // What the run-time's own instructions and other objects' took is not left out of the sum.
        let instruction = |address: u64| -> Option<Instruction> {
            let address = original.address(address)?;
            Some((address, original.instruction(&code, target, address), names.source(address)))
        };
        for (place, cycles) in &modelled.instructions {
            let sum = cycles.issued + cycles.stalls();
            let found = if place.object.0 == id { original.address(place.address) } else { None };
            let Some(address) = found else {
                totals.modelled_added_cycles += sum;
                continue;
            };
            let at = match totals.instructions.binary_search_by_key(&address, |each| each.address) {
                Ok(at) => at,
                Err(at) => {
                    let before = known
                        .instructions
                        .binary_search_by_key(&address, |each| each.address)
                        .ok()
                        .map(|at| &known.instructions[at]);
                    let text = || before.map(|each| (address, each.instruction.clone(), each.source.clone()));
                    let Some((address, instruction, source)) = text().or_else(|| instruction(place.address)) else {
                        continue;
                    };
                    let new = InstructionCycles {
                        address,
                        instruction,
                        source,
                        executions: 0,
                        modelled_issued: 0,
                        modelled_stalled: Default::default(),
                        modelled_waits_for: Vec::new(),
                        modelled_vector_alu: 0,
                        lines: 0,
                        modelled_lds_conflict_cycles: 0,
                    };
                    totals.instructions.insert(at, new);
                    at
                }
            };
            let each = &mut totals.instructions[at];
            each.executions += cycles.executions;
            each.modelled_issued += cycles.issued;
            each.modelled_vector_alu += cycles.vector_alu;
            each.lines += cycles.lines;
            each.modelled_lds_conflict_cycles += cycles.lds_conflict_cycles;
            for reason in StallReason::ALL.into_iter().filter(|reason| cycles.stalled(*reason) > 0) {
                *each.modelled_stalled.entry(reason.name().to_owned()).or_default() += cycles.stalled(reason);
            }
        }
        for ((waiting, operation), cycles) in &modelled.waited {
            let here = |place: &CodeAddress| (place.object.0 == id).then(|| original.address(place.address)).flatten();
            let Some((waiting, operation)) = here(waiting).zip(here(operation)) else { continue };
            if let Ok(at) = totals.instructions.binary_search_by_key(&waiting, |each| each.address) {
                totals.instructions[at].add_wait(operation, *cycles);
            }
        }
        if self.waves && known.traced.is_none() {
            let here = |place: &CodeAddress| (place.object.0 == id).then(|| original.address(place.address)).flatten();
            totals.traced = Some(traced(modelled, ordinal, here));
        }
        if let Some(samples) = &mut self.samples {
            let numbers = Numbers { object: id, kernel: at as u64 + 1, dispatch: ordinal + 1, start: self.now };
            add_samples(samples, &mut self.texts, modelled, &numbers, instruction, names, (kernel, &totals.demangled));
        }
        self.now += modelled.cycles;
        let mut added = TimeProfile { kernels: vec![totals], ..TimeProfile::new(self.time.latencies.clone()) };
        added.board.clone_from(&self.time.board);
        let board = self.time.board.as_deref().and_then(Board::by_name);
        (added.accuracy, added.clock_mhz) = (vec![accuracy(target, board, &added.latencies)], mhz);
        self.time.merge(&added);
        Ok(Some(added))
    }
}

/// The waves that were traced; without what a rewrite added.
fn traced(modelled: &ModelledTime, dispatch: u64, original: impl Fn(&CodeAddress) -> Option<u64>) -> TracedWaves {
    let mut types: BTreeMap<u64, &str> = BTreeMap::new();
    let mut wave = |wave: &WaveTrace| TracedWave {
        workgroup: wave.workgroup,
        wave: wave.wave,
        simd: wave.simd,
        modelled_begin: wave.begin,
        modelled_end: wave.end,
        instructions: wave
            .instructions
            .iter()
            .filter_map(|each| {
                let address = original(&each.place)?;
                types.insert(address, each.category.name());
                Some(TracedInstruction(address, each.begin, each.issued, each.duration))
            })
            .collect(),
    };
    let waves = modelled.waves.iter().map(&mut wave).collect();
    let kind = |(address, kind): (u64, &str)| InstructionType { address, kind: kind.to_owned() };
    TracedWaves { dispatch, lost: modelled.lost_waves, types: types.into_iter().map(kind).collect(), waves }
}

/// When a dispatch was.
pub(crate) struct Dispatched {
    /// Its number in the run.
    pub(crate) ordinal: u64,
    /// When it began, on the modelled clock.
    pub(crate) started: u64,
    /// Megahertz of that clock.
    pub(crate) mhz: Option<u32>,
}

/// How far the modelled times of a target may be from measured ones.
pub(crate) fn accuracy(target: Target, board: Option<&Board>, latencies: &[String]) -> Accuracy {
    let named = board.filter(|board| board.target == target.name());
    let board = named.or(Board::of_target(target)).map_or(target.name(), |board| board.title);
    Accuracy::of(target.name(), board, !latencies.is_empty())
}

/// What a dispatch is called in a file of samples.
struct Numbers {
    object: u32,
    kernel: u64,
    dispatch: u64,
    start: u64,
}

fn add_samples(
    all: &mut Samples,
    texts: &mut Texts,
    modelled: &ModelledTime,
    numbers: &Numbers,
    instruction: impl Fn(u64) -> Option<Instruction>,
    names: &Names,
    (kernel, demangled): (&str, &str),
) {
    let object = u64::from(numbers.object) + 1;
    if all.code_objects.iter().all(|known| known.code_object_id != object) {
        all.code_objects.push(samples::CodeObject { code_object_id: object, md5: names.original.clone() });
    }
    if all.kernel_symbols.iter().all(|known| known.kernel_id != numbers.kernel) {
        all.kernel_symbols.push(KernelSymbol {
            kernel_id: numbers.kernel,
            code_object_id: object,
            kernel_name: format!("{kernel}.kd"),
            formatted_kernel_name: demangled.to_owned(),
        });
    }
    all.buffer_records.kernel_dispatch.push(KernelDispatch {
        start_timestamp: numbers.start,
        end_timestamp: numbers.start + modelled.cycles,
        dispatch_info: DispatchInfo { dispatch_id: numbers.dispatch, kernel_id: numbers.kernel },
    });
    all.metadata.lost += modelled.lost_samples;
    for sample in modelled.samples.iter().filter(|sample| sample.place.object.0 == numbers.object) {
        if all.buffer_records.pc_sample_stochastic.len() >= MOST_SAMPLES {
            all.metadata.lost += 1;
            continue;
        }
        let key = (numbers.object, sample.place.address);
        let (inst_index, offset) = match texts.get(&key) {
            Some(known) => *known,
            None => {
                let Some((offset, text, source)) = instruction(sample.place.address) else { continue };
                all.strings.pc_sample_instructions.push(text);
                all.strings
                    .pc_sample_comments
                    .push(source.map(|place| format!("{}:{}", place.file, place.line)).unwrap_or_default());
                let new = (all.strings.pc_sample_instructions.len() - 1, offset);
                texts.insert(key, new);
                new
            }
        };
        let [x, y, z] = sample.workgroup;
        all.buffer_records.pc_sample_stochastic.push(Sample {
            record: Record {
                hw_id: HardwareId { simd_id: sample.simd, cu_or_wgp_id: sample.unit, ..HardwareId::default() },
                pc: Pc { code_object_id: object, code_object_offset: offset },
                exec_mask: sample.exec,
                timestamp: numbers.start + sample.cycle,
                dispatch_id: numbers.dispatch,
                corr_id: CorrelationId { internal: numbers.dispatch, external: 0 },
                wrkgrp_id: WorkgroupId { x, y, z },
                wave_in_grp: sample.wave,
                wave_issued: sample.stalled.is_none().into(),
                inst_type: if sample.stalled.is_none() { sample.instruction_type() } else { "NO_INST" },
                wave_cnt: sample.resident,
                snapshot: Snapshot {
                    stall_reason: sample.stalled.map_or("NONE", StallReason::name),
                    dual_issue_valu: 0,
                },
                waits_for: sample.waits_for.filter(|place| place.object.0 == numbers.object).and_then(|place| {
                    let (code_object_offset, ..) = instruction(place.address)?;
                    Some(Pc { code_object_id: object, code_object_offset })
                }),
            },
            inst_index,
        });
    }
}

fn add_memory(sum: &mut MemoryTime, modelled: &ModelledTime) {
    let memory = &modelled.memory;
    sum.l1_hits += memory.l1_hits;
    sum.l1_misses += memory.l1_misses;
    sum.l2_hits += memory.l2_hits;
    sum.l2_misses += memory.l2_misses;
    sum.l2_written_back += memory.l2_written_back;
    sum.l2_left += memory.l2_left;
    sum.memory_lines += memory.memory_lines;
    sum.stored_bytes += memory.stored_bytes;
    sum.modelled_lds_conflict_cycles += memory.lds_conflict_cycles;
    sum.serialized_atomics += memory.serialized_atomics;
    sum.modelled_atomic_cycles += memory.atomic_cycles;
}

/// How busy the parts of the machine were that it has.
fn resources(modelled: &ModelledTime) -> Vec<ResourceTime> {
    let used = &modelled.used;
    let is_there = |resource: &Resource| used.available(*resource) > 0;
    let of = |resource: Resource| ResourceTime {
        resource: resource.name().to_owned(),
        modelled_busy: used.busy(resource),
        modelled_available: used.available(resource),
    };
    Resource::ALL.into_iter().filter(is_there).map(of).collect()
}

fn empty(kernel: &str, names: &Names) -> KernelTime {
    KernelTime::new(kernel, &demangle(kernel), &names.target, &names.original)
}
