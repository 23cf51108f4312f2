//! What a program prints of time while time is modelled, compared with sums of the cycles that the report of the same
//! run has for each dispatch. The other terms are what `docs/results/hardware.md` and `isa-tables/machine.yaml` say.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::programs::{build, text};
use crate::stand_in::StandIn;

/// Microseconds of the first launch of an idle device, of the next one, of a copy; bytes that are copied in one.
const FIRST: f64 = 4.2;
const NEXT: f64 = 1.7;
const COPY: f64 = 12.0;
const LINK: f64 = 57_900.0;

/// Bytes that the program copies.
const BYTES: f64 = 1_048_576.0;

/// A device: its target, its clock, bytes a cycle of its memory, and what is said of its times.
struct Device {
    target: &'static str,
    mhz: f64,
    memory: f64,
    said: &'static str,
}

const DEVICES: [Device; 3] = [
    Device {
        target: "gfx90a",
        mhz: 1700.0,
        memory: 960.0,
        said: "modelled for Instinct MI210, error not measured on this board (docs/results/hardware.md)",
    },
    Device {
        target: "gfx942",
        mhz: 2100.0,
        memory: 2000.0,
        said: "modelled for Instinct MI300X, mean error 11 %/17 % on 10/11 programs measured on Instinct MI300A \
            (docs/results/hardware.md)",
    },
    Device {
        target: "gfx1100",
        mhz: 2500.0,
        memory: 380.0,
        said: "modelled for Radeon RX 7900 XTX, error not measured on this board (docs/results/hardware.md)",
    },
];

/// What a program printed, and the report of its run.
struct Run {
    printed: String,
    report: String,
}

fn run(stand_in: &StandIn, program: &Path, device: &Device, name: &str) -> Run {
    let file = stand_in.file(name);
    let output = stand_in.run(program, &[("WAVETAP_TIMING", file.to_str().expect("plain"))]);
    let (printed, errors) = text(&output);
    assert!(output.status.success() && printed.ends_with("PASS\n"), "{}: {printed}{errors}", device.target);
    // Once, however many times are asked for.
    assert_eq!(errors, format!("wavetap: times of events are {}\n", device.said));
    Run { printed, report: std::fs::read_to_string(file).expect("a report") }
}

/// Start and cycles of each dispatch, in their order.
fn dispatches(report: &Value) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64, u64)> = Vec::new();
    let number = |value: &Value| value.as_u64().expect("a number");
    for kernel in report["kernels"].as_array().expect("kernels") {
        for dispatch in kernel["dispatches"].as_array().expect("dispatches") {
            let [ordinal, start, cycles] =
                ["dispatch", "modelled_start", "modelled_cycles"].map(|name| number(&dispatch[name]));
            all.push((ordinal, start, cycles));
        }
    }
    all.sort_unstable();
    all.into_iter().map(|(_, start, cycles)| (start, cycles)).collect()
}

#[test]
fn times_of_events_are_sums_of_modelled_cycles() {
    let stand_in = StandIn::new();
    for device in &DEVICES {
        let program = build(&stand_in, "modelled_times", device.target, &[]);
        let found = run(&stand_in, &program, device, "time-1");
        let again = run(&stand_in, &program, device, "time-2");
        assert_eq!((&found.printed, &found.report), (&again.printed, &again.report), "{}", device.target);
        check(device, &found);
    }
}

#[test]
fn nothing_is_said_of_output_that_is_not_shown() {
    let stand_in = StandIn::new();
    let program = build(&stand_in, "modelled_times", "gfx90a", &[]);
    let shown = run(&stand_in, &program, &DEVICES[0], "time");
    let (config, time) = (stand_in.file("config"), stand_in.file("hidden"));
    let run = serde_json::json!({ "timing": time.to_str(), "hidden_output": true });
    let file = serde_json::json!({ "schema": "wavetap.run/1", "run": run });
    std::fs::write(&config, file.to_string()).expect("a configuration");
    let output = stand_in.run(&program, &[("WAVETAP_CONFIG", config.to_str().expect("plain"))]);
    let (printed, errors) = text(&output);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    assert_eq!(printed, shown.printed);
    assert_eq!(std::fs::read_to_string(time).expect("a report"), shown.report);
}

fn check(device: &Device, found: &Run) {
    let report: Value = serde_json::from_str(&found.report).expect("JSON");
    assert_eq!(report["clock_mhz"].as_f64(), Some(device.mhz));
    let all = dispatches(&report);
    assert_eq!(all.len(), 16, "{}", found.printed);
    let us = |n: usize| all[n].1 as f64 / device.mhz;
    let moved = |bytes: f64| bytes / device.memory / device.mhz;
    let expected = [
        ("one", FIRST + us(0)),
        ("two", FIRST + us(1) + NEXT + us(2)),
        ("to_device", COPY + BYTES / LINK),
        ("to_host", COPY + BYTES / 2.0 / LINK),
        // Read and written.
        ("on_device", FIRST + moved(2.0 * BYTES)),
        ("fill", FIRST + moved(BYTES)),
        ("beside_one", FIRST + us(3)),
        ("beside_two", FIRST + us(4)),
        ("beside_end", FIRST + us(3).max(us(4))),
        ("after_one", FIRST + us(5)),
        ("after_two", FIRST + us(5) + NEXT + us(6)),
        ("after_end", FIRST + us(5)),
        ("wide_one", FIRST + us(7)),
        // It was launched while the first one had the device.
        ("wide_two", FIRST + us(7) + us(8)),
        ("default_two", FIRST + us(9) + NEXT + us(10)),
        ("default_three", FIRST + us(9) + NEXT + us(10) + NEXT + us(11)),
        ("alone", us(12)),
        ("graph", FIRST + us(13) + NEXT + us(14).max(us(15))),
    ];
    let lines: Vec<(&str, &str)> = found.printed.lines().filter_map(|line| line.split_once(' ')).collect();
    let printed: BTreeMap<&str, f64> =
        lines.iter().filter_map(|(name, time)| Some((*name, time.parse().ok()?))).collect();
    assert_eq!(printed.len(), expected.len(), "{}", found.printed);
    for (name, expected) in expected {
        // A cycle for each rounded term, and what a float of milliseconds can tell apart.
        let allowed = 4.0 / device.mhz + expected * 2e-7;
        assert!(
            (printed[name] - expected).abs() <= allowed,
            "{} {name}: {} µs printed, {expected} expected",
            device.target,
            printed[name]
        );
    }
    clocks(device, &all, &lines);
}

/// The clocks that kernels have read are within their dispatches, and go on from one to the next.
fn clocks(device: &Device, all: &[(u64, u64)], lines: &[(&str, &str)]) {
    let seen: Vec<Vec<u64>> = lines
        .iter()
        .filter(|(name, _)| *name == "clocks")
        .map(|(_, numbers)| numbers.split(' ').map(|number| number.parse().expect("a clock")).collect())
        .collect();
    let of = [0, 2, 6, 12];
    assert_eq!(seen.len(), of.len());
    let (mut last, mut last_wall) = (0, 0);
    // gfx11 has 20 bits of a shader clock.
    let bits = if device.target == "gfx1100" { 20 } else { 64 };
    for (clocks, dispatch) in seen.iter().zip(of) {
        let (start, cycles) = all[dispatch];
        let [first, first_wall, end, end_wall] = clocks[..] else { panic!("{clocks:?}") };
        let ticks = |cycle: u64| cycle as f64 * 100.0 / device.mhz;
        for (wall, from, to) in [(first_wall, start, start + cycles), (end_wall, start, start + cycles)] {
            let wall = wall as f64;
            assert!(ticks(from) - 1.0 <= wall && wall <= ticks(to) + 1.0, "{} {dispatch}: {clocks:?}", device.target);
        }
        assert!(last_wall < first_wall && first_wall < end_wall, "{} {dispatch}: {clocks:?}", device.target);
        last_wall = end_wall;
        if bits == 64 {
            assert!(start <= first && first < end && end <= start + cycles, "{} {dispatch}: {clocks:?}", device.target);
            assert!(last < first, "{} {dispatch}: {clocks:?}", device.target);
            last = end;
            // Most of the kernel is between the two.
            assert!(2 * (end - first) > cycles, "{} {dispatch}: {clocks:?} of {cycles}", device.target);
        }
    }
}

#[test]
fn without_a_model_events_have_times_of_the_host() {
    let stand_in = StandIn::new();
    let program = build(&stand_in, "modelled_times", "gfx90a", &[]);
    let began = std::time::Instant::now();
    let output = stand_in.run_with(&program, &["host"], &[]);
    let took = began.elapsed().as_secs_f64() * 1e6;
    let (printed, errors) = text(&output);
    assert!(output.status.success() && printed.ends_with("PASS\n") && errors.is_empty(), "{printed}{errors}");
    for (name, rest) in printed.lines().filter_map(|line| line.split_once(' ')) {
        if name == "clocks" {
            continue;
        }
        let time: f64 = rest.parse().expect("a time");
        assert!((0.0..took).contains(&time), "{name}: {time} µs of {took}");
    }
    // The clock of kernels goes on with their instructions alone: no launch is in it.
    let clocks = printed.lines().find_map(|line| line.strip_prefix("clocks ")).expect("clocks of the first kernel");
    let first: f64 = clocks.split(' ').next().and_then(|first| first.parse().ok()).expect("a number");
    assert!(first < FIRST * 1700.0, "{clocks}");
}
