//! How many wave-instructions the emulator executes in a second:
//!
//!     cargo bench -p rewriter-tests --bench emulate             # minutes, on a machine that does nothing else
//!     cargo bench -p rewriter-tests --bench emulate -- kinds    # seconds: only the table at the end
//!     cargo bench -p rewriter-tests --bench emulate -- kinds stream local strict    # some of its rows and columns
//!     cargo bench -p rewriter-tests --bench emulate -- launches # seconds: only the table of small launches
//!     cargo bench -p rewriter-tests --bench emulate -- programs # seconds: only the table of programs
//!
//! First a kernel of a sample, as compiled and as instrumented, in the strict mode and without it. Then, where clang-19
//! is installed, kernels that each do one kind of work (`emulate.hip`), and such of programs (`programs.hip`); the
//! lines at the end sum them up, each the fastest of some rounds.

use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use criterion::{Criterion, Throughput};
use rewriter_tests::place;
use wavetap::code_object::{CodeObject, ValueKind};
use wavetap::collect::collector::Collector;
use wavetap::collect::session::{self, DispatchInfo, ObjectId, Overlap, Records, Session};
use wavetap::emulated::EmulatedMemory;
use wavetap::emulator::{Device, Dispatch, LoadedObject, Options};
use wavetap::isa::Target;
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{self, Counters, probe, rewrite};
use wavetap::profile::file::Backend;

/// The sample, its kernel, the target.
const SAMPLE: &str = "nested_loops";
const TARGET: &str = "gfx90a";
/// Work-items of a workgroup, and workgroups.
const BLOCK: u32 = 256;
const GROUPS: u32 = 8;
/// Trip counts that the kernel reads are up to this.
const TRIPS: u32 = 8;

/// A loaded kernel, ready to be dispatched again and again.
struct Ready {
    device: Device,
    dispatch: Dispatch,
    /// Of an instrumented object.
    counters: Option<(Session, ObjectId)>,
}

fn code_object(file: &[u8]) -> Vec<u8> {
    let input = Input::parse(file).expect("a sample");
    let found = input.code_objects().find(|found| found.target.is_some_and(|t| t.processor == TARGET));
    found.expect("code for the target").bytes.to_vec()
}

fn prepare(bytes: &[u8], strict: bool) -> Ready {
    let code = CodeObject::parse(bytes).expect("a code object");
    let kernel = code.kernels().iter().find(|k| k.name.contains(SAMPLE)).expect("the kernel");
    let metadata = kernel.metadata.as_ref().expect("metadata");
    let mut device = Device::new(code.target().expect("known"), Options { strict, ..Options::default() });
    let object = device.load(bytes).expect("loads");
    let items = BLOCK * GROUPS;
    let mut arguments = vec![0u8; metadata.kernarg_segment_size as usize];
    for argument in &metadata.args {
        let value: Vec<u8> = match argument.value_kind {
            ValueKind::GlobalBuffer => {
                let buffer = device.malloc(u64::from(items) * 4, 256).expect("memory");
                let words: Vec<u8> = (0..items).flat_map(|i| (i * 7 % TRIPS + 1).to_le_bytes()).collect();
                device.write(buffer, &words).expect("a buffer");
                buffer.to_le_bytes().to_vec()
            }
            ValueKind::HiddenBlockCountX => GROUPS.to_le_bytes().to_vec(),
            ValueKind::HiddenGroupSizeX => (BLOCK as u16).to_le_bytes().to_vec(),
            ValueKind::HiddenBlockCountY | ValueKind::HiddenBlockCountZ => 1u32.to_le_bytes().to_vec(),
            ValueKind::HiddenGroupSizeY | ValueKind::HiddenGroupSizeZ => 1u16.to_le_bytes().to_vec(),
            _ => continue,
        };
        arguments[argument.offset as usize..][..value.len()].copy_from_slice(&value);
    }
    let kernarg_address = device.malloc(arguments.len() as u64, 256).expect("memory");
    device.write(kernarg_address, &arguments).expect("arguments");
    let dispatch = Dispatch {
        kernel_object: object.kernel(&kernel.name).expect("the kernel"),
        grid: [items, 1, 1],
        workgroup: [BLOCK as u16, 1, 1],
        private_segment_size: metadata.private_segment_fixed_size as u32,
        group_segment_size: metadata.group_segment_fixed_size as u32,
        kernarg_address,
        dispatch_id: 0,
    };
    let counters = listen(&mut device, &object, &code);
    Ready { device, dispatch, counters }
}

/// Attaches a session to an instrumented object.
fn listen(device: &mut Device, object: &LoadedObject, code: &CodeObject<'_>) -> Option<(Session, ObjectId)> {
    let options = session::Options::new(Overlap::TimeSliced, Records::PerWave);
    let mut session = Session::new(Collector::new(Backend::Emulator, false), options);
    let address_of = |name: &str| object.symbols.get(name).map(|symbol| symbol.address);
    let attached = session.attach(&EmulatedMemory(device), code, address_of).expect("a site table")?;
    Some((session, attached))
}

impl Ready {
    /// One dispatch; the wave-instructions it executed.
    fn run(&mut self) -> u64 {
        let workgroup = self.dispatch.workgroup.map(u32::from);
        let info = DispatchInfo { kernel: 0, grid: self.dispatch.grid, workgroup, ordinal: 0, region: None };
        let ticket = self.counters.as_mut().map(|(session, object)| {
            session.begin_dispatch(&mut EmulatedMemory(&mut self.device), *object, &info).expect("the control block")
        });
        let instructions = self.device.dispatch(&self.dispatch).expect("no fault").instructions;
        if let (Some((session, _)), Some(ticket)) = (&mut self.counters, ticket) {
            session.end_dispatch(&mut EmulatedMemory(&mut self.device), ticket, None).expect("its records");
        }
        instructions
    }
}

/// The targets that the kinds of work are measured on, their kernels and the rounds of each.
const KIND_TARGETS: [&str; 2] = ["gfx90a", "gfx1100"];
const KINDS: [(&str, u32); 7] = [
    ("compute_f32", 2000),
    ("compute_i32", 2000),
    ("compute_f64", 2000),
    ("stream", 500),
    ("gather", 500),
    ("local", 1000),
    ("diverge", 500),
];
/// Workgroups of each: enough to divide among cores.
const KIND_GROUPS: u32 = 32;
/// How they are run: the name of the column, its width, whether in the strict mode, and on how many threads (0: all
/// cores).
const WAYS: [(&str, usize, (bool, usize)); 3] =
    [("one", 34, (false, 1)), ("strict", 10, (true, 1)), ("all", 12, (false, 0))];
/// Bytes of the buffer that they work on.
const BUFFER: u64 = 8 << 20;
/// Rounds of the comparison; the fastest counts, as everything slower is noise.
const ROUNDS: usize = 20;

/// The kernels of a file beside this one, compiled for a target; none without a compiler.
fn compile(file: &str, target: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().ok()?;
    let output = folder.path().join("kernels.co");
    let source = place::root().join("benches").join(file);
    let status = Command::new("clang++-19")
        .args([
            "-w",
            "-x",
            "hip",
            &format!("--offload-arch={target}"),
            "--offload-device-only",
            "--no-gpu-bundle-output",
            "-nogpuinc",
            "-nogpulib",
            "-O2",
        ])
        .arg(&source)
        .arg("-o")
        .arg(&output)
        .status()
        .ok()?;
    assert!(status.success(), "{} is not compiled for {target}", source.display());
    fs::read(output).ok()
}

/// Wave-instructions per second of one kind of work.
fn rate(code: &[u8], target: &str, kind: &str, rounds: u32, (strict, threads): (bool, usize)) -> f64 {
    let target = Target::by_name(target).expect("a target");
    let mut device = Device::new(target, Options { strict, threads, ..Options::default() });
    let object = device.load(code).expect("loads");
    let data = device.malloc(BUFFER, 256).expect("memory");
    let words: Vec<u8> = (0..BUFFER as u32 / 4).flat_map(|i| (i % 9973).to_le_bytes()).collect();
    device.write(data, &words).expect("a buffer");
    let kernarg_address = device.malloc(64, 256).expect("memory");
    let rounds = if strict { rounds / 8 } else { rounds };
    device.write(kernarg_address, &[&data.to_le_bytes()[..], &rounds.to_le_bytes()].concat()).expect("arguments");
    let dispatch = Dispatch {
        kernel_object: object.kernel(kind).expect("the kernel"),
        grid: [BLOCK * KIND_GROUPS, 1, 1],
        workgroup: [BLOCK as u16, 1, 1],
        private_segment_size: 0,
        group_segment_size: 1024,
        kernarg_address,
        dispatch_id: 0,
    };
    let once = |_| {
        let start = Instant::now();
        let instructions = device.dispatch(&dispatch).expect("no fault").instructions;
        instructions as f64 / start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(once).fold(0.0, f64::max)
}

/// The table of all kinds of work, in millions of wave-instructions per second.
fn kinds() {
    for target in KIND_TARGETS {
        let Some(code) = compile("emulate.hip", target) else {
            println!("clang++-19 is not installed: the kinds of work are not measured");
            return;
        };
        println!(
            "\n{target}: millions of wave-instructions per second{:>14}{:>10}{:>12}",
            "one core", "strict", "all cores"
        );
        for (kind, rounds) in KINDS.iter().copied().filter(|(kind, _)| chosen(kind, KINDS.map(|(kind, _)| kind))) {
            print!("  {kind:20}");
            for (name, width, way) in WAYS {
                match chosen(name, WAYS.map(|(name, ..)| name)) {
                    true => print!("{:>width$.1}", rate(&code, target, kind, rounds, way) / 1e6),
                    false => print!("{:>width$}", "-"),
                }
            }
            println!();
        }
    }
}

/// Programs of many small launches: their name, and launches of a round.
const PROGRAMS: [(&str, u32); 5] =
    [("launches", 50_000), ("waves", 1), ("elimination", 510), ("reversal", 58_000), ("sweep", 3_000)];
/// Workgroups of the launch that is nothing but waves: 320,000 of them.
const EMPTY_GROUPS: u32 = 80_000;
/// Rows of the matrix that is eliminated, and items of a row of the dynamic program.
const MATRIX: u32 = 256;
const ROW: u32 = 1000;

/// A loop of the host's own that takes a tenth of a second or so: what times are divided by, so that they can be
/// compared between machines and between hours of one.
fn calibration() -> f64 {
    let once = |_| {
        let start = Instant::now();
        let mut state = black_box(1_u64);
        for _ in 0..50_000_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        }
        black_box(state);
        start.elapsed().as_secs_f64()
    };
    (0..5).map(once).fold(f64::MAX, f64::min)
}

/// The seconds that a program of small launches takes.
fn program(code: &[u8], target: &str, name: &str, launches: u32) -> f64 {
    let mut device =
        Device::new(Target::by_name(target).expect("a target"), Options { strict: false, ..Options::default() });
    let object = device.load(code).expect("loads");
    let data = device.malloc(BUFFER, 256).expect("memory");
    let more = device.malloc(BUFFER, 256).expect("memory");
    let ones: Vec<u8> = (0..BUFFER as u32 / 4).flat_map(|i| (1.0 + (i % 97) as f32).to_le_bytes()).collect();
    device.write(data, &ones).expect("a buffer");
    device.write(more, &ones).expect("a buffer");
    let kernarg_address = device.malloc(64, 256).expect("memory");
    let mut launch = |kernel: &str, items: u32, arguments: &[u64], last: [u32; 2]| {
        let bytes: Vec<u8> = arguments
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .chain(last.iter().flat_map(|word| word.to_le_bytes()))
            .collect();
        device.write(kernarg_address, &bytes).expect("arguments");
        let dispatch = Dispatch {
            kernel_object: object.kernel(kernel).expect("the kernel"),
            grid: [items.next_multiple_of(BLOCK), 1, 1],
            workgroup: [BLOCK as u16, 1, 1],
            private_segment_size: 0,
            group_segment_size: 1024,
            kernarg_address,
            dispatch_id: 0,
        };
        device.dispatch(&dispatch).expect("no fault");
    };
    let mut round = || match name {
        "launches" => (0..launches).for_each(|_| launch("empty", 1, &[data], [0; 2])),
        "waves" => launch("empty", EMPTY_GROUPS * BLOCK, &[data], [0; 2]),
        "elimination" => (0..launches / 2).for_each(|column| {
            launch("multipliers", MATRIX - 1 - column, &[data, more], [MATRIX, column]);
            launch("eliminate", (MATRIX - 1 - column) * (MATRIX - column), &[data, more], [MATRIX, column]);
        }),
        "reversal" => (0..launches).for_each(|n| launch("reverse", 1, &[data], [n % 200 + 2, 0])),
        _ => (0..launches).for_each(|row| launch("sweep", ROW, &[data, more], [ROW, row])),
    };
    let once = |_| {
        let start = Instant::now();
        round();
        start.elapsed().as_secs_f64()
    };
    (0..3).map(once).fold(f64::MAX, f64::min)
}

/// The table of programs of small launches.
fn launches() {
    for target in KIND_TARGETS {
        let Some(code) = compile("emulate.hip", target) else {
            return println!("clang++-19 is not installed: small launches are not measured");
        };
        let unit = calibration();
        println!("\n{target}: programs of small launches, in seconds{:>17}{:>16}", "time", "calibrations");
        for (name, count) in PROGRAMS {
            let time = program(&code, target, name, count);
            println!("  {name:20}{count:>10} launches{time:>27.3}{:>16.2}", time / unit);
        }
    }
}

/// Kernels of programs: their name, their size, and workgroups.
const PROGRAM_KERNELS: [(&str, u32, u32); 6] = [
    ("n_body", 1024, 8),
    ("matrix_product", 256, 16),
    ("k_means", 256, 64),
    ("matrix_vector", 1024, 4),
    ("transposed_vector", 1024, 4),
    ("option_price", 256, 16),
];

/// The table of kernels of programs, on one core: the rate, and the time relative to the calibration loop.
fn program_kernels() {
    for target in KIND_TARGETS {
        let Some(code) = compile("programs.hip", target) else {
            return println!("clang++-19 is not installed: programs are not measured");
        };
        let unit = calibration();
        println!("\n{target}: millions of wave-instructions per second{:>14}{:>16}", "one core", "calibrations");
        for (kernel, size, groups) in PROGRAM_KERNELS {
            let (instructions, time) = program_kernel(&code, target, (kernel, size, groups));
            println!("  {kernel:20}{:>34.1}{:>16.3}", instructions as f64 / time / 1e6, time / unit);
        }
    }
}

/// The wave-instructions of a kernel of a program and the seconds that they take.
fn program_kernel(code: &[u8], target: &str, (kernel, size, groups): (&str, u32, u32)) -> (u64, f64) {
    let target = Target::by_name(target).expect("a target");
    let mut device = Device::new(target, Options { strict: false, threads: 1, ..Options::default() });
    let object = device.load(code).expect("loads");
    let [from, to] = [(); 2].map(|()| device.malloc(BUFFER, 256).expect("memory"));
    let number = |i: u32| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32;
    let numbers: Vec<u8> = (0..BUFFER as u32 / 4).flat_map(|i| number(i).to_le_bytes()).collect();
    device.write(from, &numbers).expect("a buffer");
    let kernarg_address = device.malloc(64, 256).expect("memory");
    let arguments = [&from.to_le_bytes()[..], &to.to_le_bytes(), &size.to_le_bytes()].concat();
    device.write(kernarg_address, &arguments).expect("arguments");
    let dispatch = Dispatch {
        kernel_object: object.kernel(kernel).expect("the kernel"),
        grid: [BLOCK * groups, 1, 1],
        workgroup: [BLOCK as u16, 1, 1],
        private_segment_size: 0,
        group_segment_size: 16384,
        kernarg_address,
        dispatch_id: 0,
    };
    let once = |_| {
        let start = Instant::now();
        let instructions = device.dispatch(&dispatch).expect("no fault").instructions;
        (instructions, start.elapsed().as_secs_f64())
    };
    (0..ROUNDS).map(once).min_by(|one, other| one.1.total_cmp(&other.1)).expect("rounds")
}

/// Whether the arguments name this one of several, or none of them.
fn chosen<const N: usize>(one: &str, several: [&str; N]) -> bool {
    let named = |name: &str| std::env::args().any(|argument| argument == name);
    named(one) || !several.iter().any(|other| named(other))
}

fn main() {
    if std::env::args().any(|argument| argument == "kinds") {
        return kinds();
    }
    if std::env::args().any(|argument| argument == "launches") {
        return launches();
    }
    if std::env::args().any(|argument| argument == "programs") {
        return program_kernels();
    }
    let file = fs::read(place::samples().join(SAMPLE)).expect("a prebuilt sample");
    let instrumented = |counters| {
        let options = pipeline::Options { probes: vec![probe::BRANCHES], counters, ..Default::default() };
        rewrite(&file, &options).expect("rewritten").bytes
    };
    let files = [
        ("as compiled", file.clone()),
        ("lds counters", instrumented(Counters::Lds)),
        ("global counters", instrumented(Counters::Global)),
    ];
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("emulate");
    group.sample_size(10);
    for (name, file) in &files {
        let object = code_object(file);
        for (mode, strict) in [("", false), (", strict", true)] {
            let mut ready = prepare(&object, strict);
            let instructions = ready.run();
            group.throughput(Throughput::Elements(instructions));
            group.bench_function(format!("{SAMPLE} {name}{mode}"), |b| b.iter(|| black_box(ready.run())));
        }
    }
    group.finish();
    criterion.final_summary();
    kinds();
    launches();
    program_kernels();
}
