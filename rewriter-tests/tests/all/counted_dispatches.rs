//! Dispatches every kernel of the samples with made-up arguments, as compiled and instrumented, on the strict emulator:
//! memory ends up the same, and what was counted is what the emulator saw. Nothing of the samples' host code takes
//! part, so kernels also run with arguments, grids and workgroups that it never uses. `WAVETAP_DISPATCH_OBJECTS` names
//! further files to take kernels from, `WAVETAP_SEEDS` how many seeds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::planned::{branches, request};
use rewriter_tests::cores::on_all_cores;
use rewriter_tests::kernels::build::{self, Variant};
use rewriter_tests::random::Random;
use wavetap::cfg::Program;
use wavetap::code_object::{Argument, CodeObject, Field, Kernel, KernelMetadata, ValueKind, metadata};
use wavetap::emit::code_object::{Changes, CodeSymbol, Plan};
use wavetap::emulator::{CodeAddress, Device, Dispatch, Fault, LoadedObject, Options, Trace};
use wavetap::instrument::{Analysis, CounterPlacement, Instrumented, Request, SpillTo};
use wavetap::isa::Target;
use wavetap::kernel::{Image, Stop};
use wavetap::layout::{Code, place};
use wavetap::offload_bundle::Input;
use wavetap::profile::control::{self, Control, FLAG_SHARED};
use wavetap::profile::map::CounterMode;
use wavetap::profile::probes;
use wavetap::profile::record::{HEADER, Header};
use wavetap::profile::schema::KindSchema;

/// Wave-instructions of an original dispatch: made-up arguments may loop for long.
const FUEL: u64 = 400_000;
/// How many times as many an instrumented one may need.
const FUEL_FACTOR: u64 = 40;
/// Bytes of a made-up buffer.
const BUFFER: u64 = 1 << 16;
/// Records where a dispatch is not to run out of them.
const ENOUGH: u32 = 4096;

/// How a kernel is instrumented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    mode: CounterMode,
    registers: Registers,
}

/// Where inserted code gets its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registers {
    /// Where they are unused, if they are.
    Unused,
    /// Scalar registers are borrowed.
    Scalar,
    /// Vector registers, too, and AGPRs hold what was in them.
    MovedToAccum,
    /// The same with scratch memory.
    MovedToScratch,
}

impl Registers {
    const ALL: [Registers; 4] =
        [Registers::Unused, Registers::Scalar, Registers::MovedToAccum, Registers::MovedToScratch];

    fn analysis<'a>(self, program: &'a Program, image: &'a Image<'a>) -> Analysis<'a> {
        let analysis = Analysis::new(program, image);
        match self {
            Registers::Unused => analysis,
            Registers::Scalar => analysis.scavenging(),
            Registers::MovedToAccum => analysis.spilling(SpillTo::Agprs),
            Registers::MovedToScratch => analysis.spilling(SpillTo::Scratch),
        }
    }

    /// Whether that is there to be had.
    fn are_of(self, target: Target) -> bool {
        match self {
            Registers::Unused | Registers::Scalar | Registers::MovedToScratch => true,
            Registers::MovedToAccum => target.has_accum(),
        }
    }
}

const WAYS: [Way; 8] = {
    let mut ways = [Way { mode: CounterMode::Global, registers: Registers::Unused }; 8];
    let mut n = 0;
    while n < ways.len() {
        ways[n].registers = Registers::ALL[n / 2];
        ways[n].mode = if n % 2 == 0 { CounterMode::Global } else { CounterMode::Lds };
        n += 1;
    }
    ways
};

/// A code object with one kernel instrumented.
struct Rewritten {
    bytes: Vec<u8>,
    plan: Instrumented,
    /// New address by original address.
    moved: BTreeMap<u64, u64>,
}

fn rewrite(
    object: &CodeObject<'_>,
    analysis: &Analysis<'_>,
    program: &Program,
    image: &Image<'_>,
    kernel: &Kernel,
    request: Request,
) -> Result<Rewritten, Stop> {
    let emit = Plan::new(object, control::SIZE)?;
    let plan = branches(analysis, kernel, &Request { control: emit.control_address(), ..request })?;
    let id = program.at(kernel.entry).expect("decoded");
    let code = Code::plan(program, id, image, &plan.edits)?;
    let placed = place(program.body(id).target(), &[&code], emit.code_address())?;
    let entry = placed.entries[0];
    let mut descriptor = plan.descriptor;
    descriptor.set_entry_byte_offset(entry.wrapping_sub(kernel.descriptor_address) as i64);
    let mut value = object.metadata().expect("metadata").value().expect("values");
    for (key, number) in plan.metadata.numbers(kernel.metadata.as_ref().expect("metadata")) {
        metadata::set_kernel_number(&mut value, &kernel.symbol(), key, number)?;
    }
    let bytes = emit.finish(&Changes {
        code: &placed.bytes,
        symbols: &[CodeSymbol { name: format!("{}.wavetap", kernel.name), address: entry, size: code.size() }],
        descriptors: &[(kernel.descriptor_address, descriptor)],
        metadata: &metadata::encode(&value).expect("encodes"),
        control: &Control { stride: plan.record_bytes, ..Control::default() }.to_bytes(),
        map: b"",
    })?;
    Ok(Rewritten { bytes, plan, moved: code.addresses(entry).into_iter().collect() })
}

/// What is dispatched: the same for the original and for each rewrite.
struct Launch {
    grid: [u32; 3],
    workgroup: [u16; 3],
    dynamic_lds: u32,
    /// Value of scalar arguments, and of what buffers hold.
    number: u32,
    /// What buffers hold is below this.
    limit: u64,
    contents: u64,
}

impl Launch {
    /// Workgroups in x, y, z.
    fn groups(&self) -> [u32; 3] {
        [0, 1, 2].map(|axis| self.grid[axis].div_ceil(self.workgroup[axis].into()))
    }

    /// Waves of a whole workgroup.
    fn group_waves(&self, target: Target) -> u32 {
        self.workgroup.iter().map(|size| u32::from(*size)).product::<u32>().div_ceil(target.wave_size())
    }

    fn random(random: &mut Random, kernel: &Kernel) -> Launch {
        let metadata = kernel.metadata.as_ref().expect("metadata");
        // A dimension that the kernel does not look at would make several work-items do the same, in a race.
        let asks = |field| kernel.descriptor.is_set(field);
        let dimensions = match (asks(Field::ENABLE_WORKGROUP_ID_Y), asks(Field::ENABLE_WORKGROUP_ID_Z)) {
            (_, true) => 3,
            (true, false) => 2,
            (false, false) => 1,
        };
        // A kernel that calls functions asks for everything, needed or not.
        let dimensions = random.of(&[dimensions, 1]);
        let flat = |shape: &[u32; 3]| shape[dimensions..].iter().all(|&n| n == 1);
        let workgroup = match metadata.reqd_workgroup_size {
            Some(size) => size.map(|n| n as u16),
            None => {
                let shapes =
                    [[64, 1, 1], [128, 1, 1], [256, 1, 1], [100, 1, 1], [16, 16, 1], [32, 8, 1], [8, 4, 4], [37, 3, 1]];
                let fits: Vec<[u16; 3]> = shapes
                    .into_iter()
                    .filter(|shape: &[u16; 3]| {
                        shape.iter().map(|&n| u64::from(n)).product::<u64>() <= metadata.max_flat_workgroup_size
                    })
                    .filter(|shape| flat(&shape.map(u32::from)))
                    .collect();
                random.of(&fits)
            }
        };
        let groups: Vec<[u32; 3]> =
            [[3, 1, 1], [2, 2, 1], [1, 2, 2], [1, 1, 1], [5, 1, 1]].into_iter().filter(flat).collect();
        let groups = random.of(&groups);
        let mut grid = [0, 1, 2].map(|d| u32::from(workgroup[d]) * groups[d]);
        // Sometimes the last workgroup is partial.
        if metadata.reqd_workgroup_size.is_none() && grid[0] > 9 && random.of(&[true, false]) {
            grid[0] -= random.of(&[1, 7]);
        }
        let number = random.of(&[1, 16, 64, 100, 200, 333]);
        Launch {
            grid,
            workgroup,
            dynamic_lds: random.of(&[0, 2048, 8192]),
            number,
            limit: random.of(&[5, 200, 1 << 12]),
            contents: random.bits(),
        }
    }

    /// Kernel arguments; every buffer is allocated and filled.
    fn arguments(&self, device: &mut Device, metadata: &KernelMetadata) -> (u64, Vec<u64>) {
        let mut data = vec![0u8; metadata.kernarg_segment_size.max(8) as usize];
        let mut buffers = Vec::new();
        let mut random = Random::new(self.contents);
        for argument in &metadata.args {
            let bytes = match argument.value_kind {
                ValueKind::GlobalBuffer => {
                    let buffer = device.malloc(BUFFER, 256).expect("memory");
                    // Small numbers are good indices, counts and offsets.
                    let words: Vec<u8> =
                        (0..BUFFER / 4).flat_map(|_| ((random.bits() % self.limit) as u32).to_le_bytes()).collect();
                    device.write(buffer, &words).expect("a buffer");
                    buffers.push(buffer);
                    buffer.to_le_bytes().to_vec()
                }
                _ => self.value(argument),
            };
            let at = argument.offset as usize;
            for (place, byte) in data[at..at + argument.size as usize].iter_mut().zip(bytes) {
                *place = byte;
            }
        }
        let address = device.malloc(data.len() as u64, 256).expect("memory");
        device.write(address, &data).expect("arguments");
        (address, buffers)
    }

    fn value(&self, argument: &Argument) -> Vec<u8> {
        let (grid, workgroup) = (self.grid, self.workgroup.map(u32::from));
        let count = |d: usize| (grid[d] / workgroup[d]).to_le_bytes().to_vec();
        let short = |n: u32| (n as u16).to_le_bytes().to_vec();
        match argument.value_kind {
            ValueKind::HiddenBlockCountX => count(0),
            ValueKind::HiddenBlockCountY => count(1),
            ValueKind::HiddenBlockCountZ => count(2),
            ValueKind::HiddenGroupSizeX => short(workgroup[0]),
            ValueKind::HiddenGroupSizeY => short(workgroup[1]),
            ValueKind::HiddenGroupSizeZ => short(workgroup[2]),
            ValueKind::HiddenRemainderX => short(grid[0] % workgroup[0]),
            ValueKind::HiddenRemainderY => short(grid[1] % workgroup[1]),
            ValueKind::HiddenRemainderZ => short(grid[2] % workgroup[2]),
            ValueKind::HiddenGridDims => short(3),
            ValueKind::HiddenDynamicLdsSize => self.dynamic_lds.to_le_bytes().to_vec(),
            ValueKind::ByValue => self
                .number
                .to_le_bytes()
                .iter()
                .copied()
                .cycle()
                .take(if argument.size == 4 { 4 } else { 0 })
                .chain(
                    // A wider value: its first word is the number.
                    self.number.to_le_bytes().into_iter().filter(|_| argument.size != 4),
                )
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// What a dispatch left.
struct Outcome {
    memory: Vec<Vec<u8>>,
    trace: Trace,
    object: LoadedObject,
    waves: u64,
    control: Option<Control>,
    records: Vec<u8>,
}

/// The record buffer that an instrumented object is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Records {
    /// None: the kernel counts nothing. Also for original objects.
    None,
    /// So many, among which waves choose by where they run.
    Slots(u32),
    /// So many, one for each wave.
    Own(u32),
    /// So many, which waves share beyond that.
    Shared(u32),
}

impl Records {
    fn capacity(self) -> Option<u32> {
        match self {
            Records::None => None,
            Records::Slots(count) | Records::Own(count) | Records::Shared(count) => Some(count),
        }
    }
}

fn run(
    target: Target,
    bytes: &[u8],
    kernel: &str,
    launch: &Launch,
    seed: u64,
    records: Records,
) -> Result<Outcome, Fault> {
    let is_original = CodeObject::parse(bytes).is_ok_and(|code| !code.is_rewritten());
    let fuel = if is_original { FUEL } else { FUEL * FUEL_FACTOR };
    let mut device = Device::new(target, Options { strict: true, seed, fuel, trace: true, ..Options::default() });
    let object = device.load(bytes).expect("loads");
    let code = CodeObject::parse(bytes).expect("a code object");
    let metadata = code.kernel(kernel).and_then(|k| k.metadata.clone()).expect("metadata");
    let (kernarg_address, buffers) = launch.arguments(&mut device, &metadata);
    let block = object.symbols.get(control::SYMBOL).map(|symbol| symbol.address);
    let mut buffer = None;
    if let (Some(block), Some(capacity)) = (block, records.capacity()) {
        let mut bytes = [0; control::SIZE as usize];
        device.read(block, &mut bytes).expect("the control block");
        let mut control = Control::from_bytes(&bytes).expect("a control block");
        let size = u64::from(capacity) * u64::from(control.stride);
        let address = device.malloc(size, 256).expect("records");
        control.buffer = address;
        // Where waves choose among records, the rest of the block is not for them.
        let garbage = matches!(records, Records::Slots(_));
        let number = |number: u32| if garbage { 0xdead_beef } else { number };
        let groups = launch.groups();
        control.capacity = number(capacity);
        control.flags = number(if matches!(records, Records::Shared(_)) { FLAG_SHARED } else { 0 });
        control.groups = [number(groups[0]), number(groups[1])];
        control.group_waves = number(launch.group_waves(target));
        control.dispatch = number(77);
        device.write(block, &control.to_bytes()).expect("the control block");
        buffer = Some((block, address, size));
    }
    let dispatch = Dispatch {
        kernel_object: object.kernel(kernel).expect("the kernel"),
        grid: launch.grid,
        workgroup: launch.workgroup,
        private_segment_size: (metadata.private_segment_fixed_size as u32).max(if metadata.uses_dynamic_stack {
            16384
        } else {
            0
        }),
        group_segment_size: metadata.group_segment_fixed_size as u32 + launch.dynamic_lds,
        kernarg_address,
        dispatch_id: 0,
    };
    let stats = device.dispatch(&dispatch)?;
    let read = |address: u64, size: u64| {
        let mut bytes = vec![0; size as usize];
        device.read(address, &mut bytes).expect("readable");
        bytes
    };
    let memory = buffers.iter().map(|&address| read(address, BUFFER)).collect();
    let control = block.map(|block| Control::from_bytes(&read(block, control::SIZE)).expect("a control block"));
    let records = buffer.map_or_else(Vec::new, |(_, address, size)| read(address, size));
    Ok(Outcome { memory, trace: stats.trace.expect("traced"), object, waves: stats.waves, control, records })
}

/// What the trace says of a site, in record order.
fn traced(outcome: &Outcome, address: u64, kind: &KindSchema) -> Vec<u64> {
    let place = CodeAddress { object: outcome.object.id, address };
    if *kind == **probes::branches::EXEC {
        let c = outcome.trace.exec_sites.get(&place).copied().unwrap_or_default();
        return vec![c.executions, c.agreements, c.lanes_before, c.lanes_after, c.empty];
    }
    assert_eq!(*kind, **probes::branches::SCALAR);
    let c = outcome.trace.branches.get(&place).copied().unwrap_or_default();
    vec![c.executions, c.taken]
}

/// All records with the counters of the sites.
fn whole_records(outcome: &Outcome, plan: &Instrumented) -> Vec<Vec<u8>> {
    let kept = outcome.records.chunks(plan.record_bytes as usize);
    match &plan.placement {
        Some(placement) => kept.map(|record| placement.solve(record).expect("counts of waves")).collect(),
        None => kept.map(<[u8]>::to_vec).collect(),
    }
}

/// The sum of all records' counters of a site.
fn counted(records: &[Vec<u8>], offset: u32, kind: &KindSchema) -> Vec<u64> {
    let mut sums = vec![0u64; kind.counters() as usize];
    for record in records {
        for (n, sum) in sums.iter_mut().enumerate() {
            let at = offset as usize + 8 * n;
            *sum += u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
        }
    }
    sums
}

/// Headers of the records that were used.
fn headers(outcome: &Outcome, stride: u32) -> Vec<Header> {
    outcome
        .records
        .chunks(stride as usize)
        .map(|record| Header::from_bytes(record).expect("a header"))
        .filter(|h| (h.began, h.finished) != (0, 0))
        .collect()
}

/// What became of the dispatches of one kernel.
#[derive(Debug, Default)]
struct Tally {
    compared: usize,
    faulted: usize,
    refused: usize,
    counted: u64,
}

/// Runs one kernel in all ways with one seed.
#[allow(clippy::too_many_arguments)] // What one object has in common, and what is tried with it.
fn check(
    place_name: &str,
    object: &CodeObject<'_>,
    analyses: &[Analysis<'_>; 4],
    program: &Program,
    image: &Image<'_>,
    kernel: &Kernel,
    seed: u64,
    tally: &mut Tally,
) {
    let target = object.target().expect("a target");
    let mut random = Random::new(seed ^ kernel.entry << 20);
    let launch = Launch::random(&mut random, kernel);
    let original = match run(target, object.data(), &kernel.name, &launch, seed, Records::None) {
        Ok(outcome) => outcome,
        Err(fault) => {
            if std::env::var_os("WAVETAP_SHOW_FAULTS").is_some() {
                eprintln!("{place_name}: {fault}");
            }
            tally.faulted += 1;
            return;
        }
    };
    // What depends on the order of the waves differs between runs of the original, too, and cannot be compared.
    let others = |range: std::ops::Range<u64>| {
        range.filter_map(|n| run(target, object.data(), &kernel.name, &launch, seed + 1000 * n, Records::None).ok())
    };
    if others(1..3).any(|other| other.trace != original.trace) {
        tally.faulted += 1;
        return;
    }
    let mut racy = None;
    let mut is_racy = || {
        *racy.get_or_insert_with(|| {
            others(3..400).any(|other| other.memory != original.memory || other.trace != original.trace)
        })
    };
    let ways = WAYS.into_iter().enumerate().flat_map(|(number, way)| [(number, way, false), (number, way, true)]);
    for (number, way, per_wave) in ways.filter(|(_, way, _)| way.registers.are_of(target)) {
        let chosen = number + number / 2 + usize::from(per_wave) + seed as usize;
        let placement = CounterPlacement::ALL[chosen % 2];
        let at = format!(
            "{place_name} seed {seed} {way:?} {placement:?} per wave {per_wave} grid {:?} workgroup {:?} number {}",
            launch.grid, launch.workgroup, launch.number
        );
        let analysis = &analyses[way.registers as usize];
        let request = Request { per_wave, ..request(way.mode, placement, 0, 0) };
        let rewritten = match rewrite(object, analysis, program, image, kernel, request) {
            Ok(rewritten) => rewritten,
            Err(Stop::Refused(refusal)) => {
                eprintln!("{at}: {refusal}");
                tally.refused += 1;
                continue;
            }
            Err(Stop::Failed(error)) => panic!("{at}: {error}"),
        };
        let lds = u64::from(launch.dynamic_lds) + rewritten.plan.metadata.group_segment_fixed_size;
        if lds > u64::from(target.lds_bytes()) {
            continue;
        }
        let stride = rewritten.plan.record_bytes;
        let few = random.of(&[1, 2, 4]);
        let of_waves = [Records::Own(ENOUGH), Records::None, Records::Own(few), Records::Shared(few)];
        let placed = rewritten.plan.placement.as_ref().filter(|placement| placement.chooses_records());
        let slots = placed.map(|placement| placement.slots).or(rewritten.plan.slots);
        let of_slots = slots.map(|slots| [Records::Slots(slots), Records::None]);
        for records in of_slots.as_ref().map_or(&of_waves[..], |records| &records[..]).iter().copied() {
            let at = format!("{at} {records:?}");
            let outcome =
                run(target, &rewritten.bytes, &kernel.name, &launch, seed * 7 + 3, records).unwrap_or_else(|fault| {
                    let moved = rewritten.moved.iter().find(|(_, new)| **new >= fault.address).map(|(old, _)| *old);
                    panic!("{at}: {fault} (original code at or behind {moved:x?})")
                });
            for (n, (a, b)) in original.memory.iter().zip(&outcome.memory).enumerate() {
                assert!(a == b || is_racy(), "{at}: buffer {n} differs");
            }
            assert_eq!(outcome.waves, original.waves, "{at}");
            let control = outcome.control.expect("a control block");
            let used = headers(&outcome, stride);
            match records {
                Records::None => {
                    assert_eq!(control.dropped, 0, "{at}");
                    continue;
                }
                Records::Slots(_) => {
                    assert_eq!(used.iter().map(|h| u64::from(h.finished)).sum::<u64>(), outcome.waves, "{at}");
                    let rest = Header { finished: 0, ..used[0] };
                    let nothing = Header { kernel: 0, dispatch: 0, workgroup: [0; 3], wave: 0, began: 0, finished: 0 };
                    assert_eq!(rest, nothing, "{at}");
                }
                Records::Own(capacity) => {
                    assert_eq!(used.len() as u64 + u64::from(control.dropped), outcome.waves, "{at}");
                    assert!(used.iter().all(|h| (h.began, h.finished) == (1, 1)), "{at}");
                    let places = used.iter().map(|h| {
                        let ([x, y, z], [groups_x, groups_y, _]) = (h.workgroup, launch.groups());
                        ((z * groups_y + y) * groups_x + x) * launch.group_waves(target) + h.wave
                    });
                    assert!(places.max() < Some(capacity), "{at}");
                    if capacity == ENOUGH {
                        assert_eq!(control.dropped, 0, "{at}");
                        check_headers(&at, &launch, &used);
                    }
                }
                Records::Shared(_) => {
                    assert_eq!(control.dropped, 0, "{at}");
                    assert_eq!(used.iter().map(|h| u64::from(h.began)).sum::<u64>(), outcome.waves, "{at}");
                    assert!(used.iter().all(|h| h.began == h.finished), "{at}");
                }
            }
            let ordinal = if per_wave { 77 } else { 0 };
            assert!(used.iter().all(|h| (h.kernel, h.dispatch) == (0, ordinal)), "{at}");
            if control.dropped == 0 {
                let records = whole_records(&outcome, &rewritten.plan);
                for site in &rewritten.plan.sites {
                    let counted = counted(&records, site.offset, &site.kind);
                    let seen = traced(&original, site.address, &site.kind);
                    // What the instrumented kernel itself did there is no question of races.
                    let itself = traced(&outcome, rewritten.moved[&site.address], &site.kind);
                    assert_eq!(counted, itself, "{at}: {} at {:#x}", site.instruction, site.address);
                    assert!(
                        counted == seen || is_racy(),
                        "{at}: {} at {:#x}: {counted:?}, {seen:?}",
                        site.instruction,
                        site.address
                    );
                    tally.counted += counted[0];
                }
            }
        }
        tally.compared += 1;
    }
    // Every site of the kernel that the emulator saw is counted.
    let body = program.body(program.at(kernel.entry).expect("decoded"));
    let plan = branches(&analyses[0], kernel, &request(CounterMode::Global, CounterPlacement::All, 0, 0));
    if let Ok(plan) = plan {
        let seen = original.trace.exec_sites.keys().chain(original.trace.branches.keys());
        for place in seen.filter(|place| body.at(place.address).is_some()) {
            assert!(
                plan.sites.iter().any(|site| site.address == place.address),
                "{place_name}: {:#x} is not a site",
                place.address
            );
        }
    }
}

/// With a record for each wave, the headers name every wave once.
fn check_headers(at: &str, launch: &Launch, used: &[Header]) {
    let mut waves: Vec<([u32; 3], u32)> = used.iter().map(|h| (h.workgroup, h.wave)).collect();
    waves.sort_unstable();
    let mut wanted = Vec::new();
    let groups = [0, 1, 2].map(|d| launch.grid[d].div_ceil(u32::from(launch.workgroup[d])));
    for x in 0..groups[0] {
        for y in 0..groups[1] {
            for z in 0..groups[2] {
                let size = |d: usize, n: u32| {
                    u32::from(launch.workgroup[d]).min(launch.grid[d] - n * u32::from(launch.workgroup[d]))
                };
                let items = size(0, x) * size(1, y) * size(2, z);
                wanted.extend((0..items.div_ceil(HEADER * 2)).map(|wave| ([x, y, z], wave)));
            }
        }
    }
    wanted.sort_unstable();
    assert_eq!(waves, wanted, "{at}: waves by their record headers");
}

/// Runs all kernels of a file's code objects.
fn check_file(name: &str, data: &[u8], seeds: std::ops::Range<u64>) -> BTreeMap<String, Tally> {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let only = std::env::var("WAVETAP_KERNEL").ok();
    let input = Input::parse(data).expect("device code");
    for found in input.code_objects() {
        let object = CodeObject::parse(found.bytes).expect("a code object");
        let Some(target) = object.target() else { continue };
        let image = Image::of(&object).expect("an image");
        let program = Program::of(target, &image);
        let analyses = Registers::ALL.map(|registers| registers.analysis(&program, &image));
        for kernel in
            object.kernels().iter().filter(|kernel| only.as_ref().is_none_or(|only| kernel.name.contains(only)))
        {
            let place_name = format!("{name} {} {}", target.name(), kernel.name);
            let tally = tallies.entry(place_name.clone()).or_default();
            for seed in seeds.clone() {
                check(&place_name, &object, &analyses, &program, &image, kernel, seed, tally);
            }
        }
    }
    tallies
}

fn seeds() -> std::ops::Range<u64> {
    0..std::env::var("WAVETAP_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3)
}

#[test]
fn counters_of_made_up_dispatches_are_what_the_emulator_saw() {
    let mut files: Vec<PathBuf> = match std::env::var("WAVETAP_DISPATCH_OBJECTS") {
        Ok(files) => files.split(':').map(PathBuf::from).collect(),
        Err(_) => {
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../hip-samples/bin");
            std::fs::read_dir(folder).expect("the samples").map(|entry| entry.expect("an entry").path()).collect()
        }
    };
    files.sort();
    let check = |file: &PathBuf| {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let data = std::fs::read(file).expect("readable");
        check_file(&name, &data, seeds())
    };
    let tallies: Vec<_> = on_all_cores(&files, check).into_iter().flatten().collect();
    let (mut compared, mut idle) = (0, Vec::new());
    for (place, tally) in &tallies {
        compared += tally.compared;
        if tally.compared == 0 {
            idle.push(place.clone());
        }
        if std::env::var_os("WAVETAP_SHOW_FAULTS").is_some() {
            eprintln!("{place}: {tally:?}");
        }
    }
    eprintln!("{compared} dispatches compared; never run to their end: {idle:?}");
    assert!(compared > 0, "something was compared");
}

/// On gfx8 buffer instructions alone reach scratch memory, by registers that have to outlast calls of functions: those
/// are not copied there.
#[test]
fn registers_move_to_scratch_memory_across_calls_on_gfx8() {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/counted_dispatches.cpp");
    let target = Target::by_name("gfx803").expect("a target");
    // The fifth version asks hidden arguments where scratch memory is in the flat address space, and made-up ones do
    // not say.
    let object = build::object_of(&source, Variant { target, level: "O2", version: 4 }).expect("compiled");
    let tallies = check_file("counted_dispatches.cpp", &object, seeds());
    assert_eq!(tallies.len(), 2);
    for (place, tally) in tallies {
        assert!(tally.compared > 0 && tally.refused == 0 && tally.counted > 0, "{place}: {tally:?}");
    }
}
