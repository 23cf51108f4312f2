//! Kernels that wait until a clock shows a later time, on the emulator: they wait for as long as they ask for, in few
//! rounds; a kernel that waits for memory or measures is not hurried. What is expected follows from `clocks.cpp` and
//! from what `wavetap_emulator::Options::clock_mhz` promises: 100 ticks of the constant clock are a microsecond.

use std::time::{Duration, Instant};

use rewriter_tests::kernels::build::{self, Variant};
use rewriter_tests::place;
use wavetap::code_object::CodeObject;
use wavetap::emulator::{Device, Dispatch, Options, Timing};
use wavetap::isa::Target;

const TARGETS: [(&str, u32); 6] =
    [("gfx803", 64), ("gfx90a", 64), ("gfx1030", 32), ("gfx1100", 32), ("gfx1100", 64), ("gfx1201", 32)];
/// Ticks of the constant clock: 20 milliseconds, which an emulated loop alone would take some seconds for.
const TICKS: u64 = 2_000_000;
/// A wait may be so many parts in a hundred too long.
const TOO_LONG: u64 = 4;
/// A wait takes some hundred rounds; without help that of 20 milliseconds takes more than 100,000.
const FEW: u64 = 3000;

fn ways() -> [(&'static str, Options); 3] {
    let plain = Options { strict: false, ..Options::default() };
    [
        ("strict", Options { seed: 3, ..Options::default() }),
        ("timing", Options { timing: Some(Timing::default()), ..plain.clone() }),
        ("plain", plain),
    ]
}

/// Runs a kernel on one workgroup; what it wrote, and how long that took.
fn run(object: &[u8], options: &Options, kernel: &str, argument: u64, items: u32) -> (Vec<u64>, Duration) {
    let code = CodeObject::parse(object).expect("a code object");
    let mut device = Device::new(code.target().expect("known"), options.clone());
    let loaded = device.load(object).expect("it loads");
    let out = device.malloc(8 * 64, 256).expect("memory");
    let arguments: Vec<u8> = [argument, out].into_iter().flat_map(u64::to_le_bytes).collect();
    let kernarg_address = device.malloc(arguments.len() as u64, 256).expect("memory");
    device.write(kernarg_address, &arguments).expect("arguments");
    let known = code.kernels().iter().find(|known| known.name == kernel).expect("the kernel");
    let dispatch = Dispatch {
        kernel_object: loaded.base + known.descriptor_address,
        grid: [items, 1, 1],
        workgroup: [items as u16, 1, 1],
        private_segment_size: 0,
        group_segment_size: 0,
        kernarg_address,
        dispatch_id: 0,
    };
    let began = Instant::now();
    device.dispatch(&dispatch).unwrap_or_else(|fault| panic!("{kernel} on {}: {fault}", code.target_id()));
    let took = began.elapsed();
    let mut bytes = [0; 8 * 64];
    device.read(out, &mut bytes).expect("results");
    (bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))).collect(), took)
}

/// Every target in every way, at two levels.
fn each(check: impl Fn(&str, &dyn Fn(&str, u64, u32) -> (Vec<u64>, Duration), Target, &str)) {
    for (name, lanes) in TARGETS {
        let target = Target::by_name(name).and_then(|target| target.with_wave_size(lanes)).expect("a target");
        for level in ["O1", "O3"] {
            let source = place::root().join("rewriter-tests/tests/all/clocks.cpp");
            let object = build::object_of(&source, Variant { target, level, version: 5 }).expect("compiles");
            for (way, options) in ways() {
                let case = format!("{name} wave{lanes} {level} {way}");
                check(&case, &|kernel, argument, items| run(&object, &options, kernel, argument, items), target, way);
            }
        }
    }
}

fn is_right(waited: u64, ticks: u64) -> bool {
    (ticks..=ticks + ticks * TOO_LONG / 100).contains(&waited)
}

#[test]
fn waiting_takes_its_time_and_few_rounds() {
    each(|case, run, target, _| {
        let (out, took) = run("waits_for_constant_clock", TICKS, 1);
        assert!(is_right(out[0], TICKS), "{case}: waited for {} of {TICKS} ticks", out[0]);
        assert!(out[1] < FEW, "{case}: {} rounds", out[1]);
        assert!(took >= Duration::from_micros(TICKS / 100), "{case}: the host saw it wait for {took:?} only");
        // 20 bits that wrap around are not to wait with (clock.rs of the instruction tables).
        if target.shader_clock().is_some_and(|clock| clock.bits() == 64) {
            let (out, _) = run("waits_for_shader_clock", TICKS * 20, 1);
            assert!(is_right(out[0], TICKS * 20) && out[1] < FEW, "{case}: shader clock: {:?}", &out[..2]);
        }
    });
}

#[test]
fn each_lane_waits_for_its_own_time() {
    each(|case, run, target, _| {
        let lanes = target.wave_size();
        let (out, _) = run("lanes_wait", TICKS, lanes);
        for (lane, waited) in out[..lanes as usize].iter().enumerate() {
            assert!(is_right(*waited, TICKS + lane as u64), "{case}: lane {lane} waited for {waited} ticks");
        }
    });
}

#[test]
fn who_waits_for_memory_is_given_as_many_instructions_as_ever() {
    each(|case, run, _, way| {
        // 100 microseconds: 200,000 cycles, or 50,000 instructions where time is not modelled.
        let (out, _) = run("waits_for_flag", 10_000, 1);
        assert!(out[0] >= 10_000, "{case}");
        // A round has at most 25 instructions, of 4 cycles each; modelled, a load of memory takes a few hundred.
        let least = if way == "timing" { 200_000 / 4000 } else { 200_000 / (4 * 25) };
        assert!(out[1] > least, "{case}: {} rounds", out[1]);
    });
}

#[test]
fn who_measures_is_not_hurried() {
    each(|case, run, _, _| {
        // The two are some instructions apart, a few ticks; modelled, less than a hundred.
        let (out, _) = run("measures", 2000, 1);
        assert!(out[0] < 2000 * 100, "{case}: {} ticks", out[0]);
    });
}

#[test]
fn sleeping_takes_time() {
    each(|case, run, _, _| {
        // 127 · 64 cycles of 2 GHz are 406 ticks.
        let (out, _) = run("sleeps", 100, 1);
        assert!((40_640..44_000).contains(&out[0]), "{case}: {} ticks", out[0]);
    });
}
