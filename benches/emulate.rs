//! Running a kernel of a sample on the emulator: as compiled and as instrumented, in the strict mode and without it. The throughput is in wave-instructions.

use std::fs;
use std::hint::black_box;

use criterion::{Criterion, Throughput};
use rewriter_tests::place;
use wavetap::code_object::{CodeObject, ValueKind};
use wavetap::emulator::{Device, Dispatch, LoadedObject, Options};
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{self, Counters, Probe, rewrite};
use wavetap::profile::control::{self, Control};

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
    /// Control block and record buffer of an instrumented object.
    counters: Option<(u64, Control)>,
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
    let counters = listen(&mut device, &object);
    Ready { device, dispatch, counters }
}

/// Gives an instrumented object a place for its counts.
fn listen(device: &mut Device, object: &LoadedObject) -> Option<(u64, Control)> {
    let block = object.symbols.get(control::SYMBOL)?.address;
    let mut bytes = [0; control::SIZE as usize];
    device.read(block, &mut bytes).expect("the control block");
    let mut control = Control::from_bytes(&bytes).expect("a control block");
    control.capacity = GROUPS * BLOCK / 64;
    control.buffer = device.malloc(u64::from(control.capacity) * u64::from(control.stride), 256).expect("records");
    Some((block, control))
}

impl Ready {
    /// One dispatch; the wave-instructions it executed.
    fn run(&mut self) -> u64 {
        if let Some((block, control)) = &self.counters {
            self.device.write(*block, &control.to_bytes()).expect("the control block");
        }
        self.device.dispatch(&self.dispatch).expect("no fault").instructions
    }
}

fn main() {
    let file = fs::read(place::samples().join(SAMPLE)).expect("a prebuilt sample");
    let instrumented = |counters| {
        let options = pipeline::Options { probes: vec![Probe::Branches], counters, ..Default::default() };
        rewrite(&file, &options).expect("rewritten").bytes
    };
    let files =
        [("as compiled", file.clone()), ("lds counters", instrumented(Counters::Lds)), ("global counters", instrumented(Counters::Global))];
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
}
