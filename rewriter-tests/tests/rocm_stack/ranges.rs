//! Ranges that a program marks with roctx: what is counted where, on either stack.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use wavetap::profile::file::{KernelTotals, Profile};
use wavetap::profile::launches::NotCounted;

use super::{counts, profile, program, root, wavetap};

const STACKS: [&str; 2] = ["hip", "rocm"];

/// Compiles the program, linked with a library that is called as ROCm's is and has its version, and does nothing.
pub(super) fn compile(folder: &Path) {
    let built = |command: &mut Command| {
        let output = command.output().expect("the compiler starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let (source, versions, library) =
        (folder.join(".roctx.c"), folder.join(".roctx.versions"), folder.join(".roctx.so"));
    let functions = "int roctxRangePushA(const char *m) { return -9; }\nint roctxRangePop(void) { return -9; }\n\
        unsigned long roctxRangeStartA(const char *m) { return 0; }\nvoid roctxRangeStop(unsigned long range) {}\n\
        int roctxProfilerPause(unsigned long t) { return -9; }\n\
        int roctxProfilerResume(unsigned long t) { return -9; }\n";
    fs::write(&source, functions).expect("a file");
    fs::write(&versions, "ROCTX_4.1 { global: *; };\n").expect("a file");
    let script = format!("-Wl,--version-script={}", versions.display());
    let name = "-Wl,-soname,libroctx64.so.4";
    built(Command::new("clang-19").args(["-shared", "-fPIC", &script, name, "-o"]).args([&library, &source]));
    built(
        Command::new("clang++-19")
            .args(["-w", "-x", "hip", "-std=c++17", "-O2", "-mcode-object-version=4", "-pthread"])
            .arg("--offload-arch=gfx90a")
            .arg(format!("--rocm-device-lib-path={}", folder.join(".bitcode").display()))
            .arg(root().join("rewriter-tests/tests/rocm_stack/ranges.hip"))
            .arg("-o")
            .args([folder.join(".ranges").as_os_str(), "-lamdhip64".as_ref()])
            // After it: it is no source.
            .args(["-Xlinker".as_ref(), library.as_os_str()]),
    );
}

/// Region, kernel, dispatches and waves of each row.
fn rows(kernels: &[KernelTotals]) -> Vec<(&str, &str, u64, u64)> {
    let short = |name: &'static str, kernel: &KernelTotals| kernel.name.contains(name).then_some(name);
    kernels
        .iter()
        .map(|kernel| {
            let name = short("fill", kernel).or(short("scale", kernel)).expect("one of the kernels");
            (kernel.region.as_deref().unwrap_or_default(), name, kernel.dispatches, kernel.waves)
        })
        .collect()
}

/// What the program launches, by its source: in each region, and in all.
const IN_RANGES: [(&str, &str, u64, u64); 5] = [
    ("step", "fill", 2, 2),
    ("step/decode/2", "fill", 1, 1),
    ("step/decode/2", "scale", 1, 4),
    ("all", "scale", 1, 4),
    ("step/all", "scale", 1, 4),
];
const IN_ALL: [(&str, &str, u64, u64); 2] = [("", "fill", 4, 4), ("", "scale", 4, 16)];

#[test]
fn what_is_launched_in_a_range_is_counted_there() {
    let program = program(".ranges");
    let [hip, rocm] = STACKS.map(|stack| counts(&["--stack", stack, "--probe", "branches"], &program, &["ranges"]));
    assert_eq!(rows(&hip.kernels), IN_ALL);
    assert_eq!(rows(&hip.regions), IN_RANGES);
    assert_eq!((&hip.kernels, &hip.regions), (&rocm.kernels, &rocm.regions));
    for counted in [&hip, &rocm] {
        let left_out: Vec<_> = counted.uncounted.iter().map(|of| (of.why, of.dispatches)).collect();
        assert_eq!(left_out, [(NotCounted::OutsideRegion, 2)], "while profilers pause");
        assert!(counted.complete, "nothing is missing that was to be counted");
    }
    // The emulator's own counts of each region are the same.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace");
    let arguments = ["run", "--stack", "hip", "--target", "gfx90a", "--trace", trace.to_str().expect("a plain path")];
    wavetap(&arguments, &program, &["ranges"]).exited(0).expect("it passes");
    let trace = Profile::from_json(&fs::read(trace).expect("a trace")).expect("a trace");
    assert_eq!((rows(&trace.kernels), rows(&trace.regions)), (rows(&hip.kernels), rows(&hip.regions)));
    let sites = |kernel: &KernelTotals| -> BTreeMap<_, Vec<u64>> {
        let counted = kernel.sites.iter().filter(|site| site.counts.values().iter().any(|value| *value > 0));
        counted.map(|site| (site.address, site.counts.values().to_vec())).collect()
    };
    for (of_trace, counted) in trace.regions.iter().zip(&hip.regions) {
        let traced = sites(of_trace);
        let counted_sites = sites(counted);
        assert!(!counted_sites.is_empty());
        for (address, values) in counted_sites {
            assert_eq!(traced.get(&address), Some(&values), "{:?} {} {address:#x}", counted.region, counted.name);
        }
    }
    // One region alone.
    let decode = hip.of_region("decode").expect("a region");
    assert_eq!(rows(&decode.kernels), [("", "fill", 1, 1), ("", "scale", 1, 4)]);
    assert_eq!(sites(&decode.kernels[1]), sites(&hip.regions[2]));
}

#[test]
fn records_of_one_region_are_never_those_of_another() {
    let program = program(".ranges");
    for counters in ["lds", "global", "register"] {
        let [hip, rocm] =
            STACKS.map(|stack| counts(&["--stack", stack, "--counters", counters], &program, &["alternating"]));
        assert_eq!(rows(&hip.regions), [("even", "scale", 20, 80), ("odd", "scale", 20, 80)]);
        assert_eq!((&hip.kernels, &hip.regions), (&rocm.kernels, &rocm.regions), "{counters}");
        assert_ne!(hip.regions[0].sites, hip.regions[1].sites, "the test tells them apart");
    }
}

#[test]
fn dispatches_are_chosen_by_ranges_pauses_and_numbers() {
    let program = program(".ranges");
    for stack in STACKS {
        let chosen = |options: &[&str], argument: &str| {
            let profile = counts(&[&["--stack", stack], options].concat(), &program, &[argument]);
            let left_out: Vec<_> = profile.uncounted.iter().map(|of| (of.why, of.dispatches)).collect();
            let sum: u64 = left_out.iter().map(|(_, dispatches)| dispatches).sum();
            assert!(profile.complete && sum > 0, "{stack} {options:?}: {left_out:?}");
            profile
        };
        let inside = chosen(&["--region", "decode"], "ranges");
        assert_eq!(rows(&inside.kernels), [("", "fill", 1, 1), ("", "scale", 1, 4)], "{stack}");
        let inside = chosen(&["--region", "/^al+$/"], "ranges");
        assert_eq!(rows(&inside.regions), [("all", "scale", 1, 4), ("step/all", "scale", 1, 4)], "{stack}");
        let second = chosen(&["--dispatches", "2-3", "--probe", "blocks"], "ranges");
        assert_eq!(rows(&second.kernels), [("", "fill", 2, 2), ("", "scale", 2, 8)], "{stack}");
        let both = chosen(&["--region", "step", "--dispatches", "1"], "ranges");
        assert_eq!(rows(&both.regions), [("step", "fill", 1, 1), ("step/decode/2", "scale", 1, 4)], "{stack}");
        let resumed = chosen(&["--selected-regions"], "ranges");
        assert_eq!(rows(&resumed.regions), [("step", "fill", 1, 1)], "{stack}");
        // Launches alone, of kernels that count nothing.
        let launches = chosen(&["--probe", "none", "--region", "odd"], "alternating");
        assert_eq!(rows(&launches.regions), [("odd", "scale", 20, 80)], "{stack}");
        let bad = profile(&["--stack", stack, "--region", "/(/"], &program, &["ranges"]).0;
        assert!(bad.err().contains("/(/: no regular expression"), "{}", bad.err());
        bad.exited(2).expect("it is refused");
    }
}

#[test]
fn kernels_of_a_graph_are_where_the_graph_is_launched() {
    let program = program(".ranges");
    for stack in STACKS {
        let graph = counts(&["--stack", stack], &program, &["graph"]);
        assert_eq!(rows(&graph.kernels), [("", "fill", 2, 2), ("", "scale", 4, 16)], "{stack}");
        assert_eq!(rows(&graph.regions), [("launched", "fill", 1, 1), ("launched", "scale", 2, 8)], "{stack}");
    }
    let nodes = counts(&["--stack", "hip", "--graph-nodes"], &program, &["graph"]);
    let expected = [
        ("launched/graph 1/node 1", "fill", 1, 1),
        ("launched/graph 1/node 2", "scale", 1, 4),
        ("launched/graph 1/node 3", "scale", 1, 4),
        ("graph 1/node 1", "fill", 1, 1),
        ("graph 1/node 2", "scale", 1, 4),
        ("graph 1/node 3", "scale", 1, 4),
    ];
    assert_eq!(rows(&nodes.regions), expected);
    let node = nodes.of_region("graph 1/node 3").expect("a region");
    assert_eq!(rows(&node.kernels), [("", "scale", 2, 8)]);
    let (refused, _) = profile(&["--stack", "rocm", "--graph-nodes"], &program, &["graph"]);
    assert!(refused.err().contains("--graph-nodes"), "{}", refused.err());
    refused.exited(2).expect("it is refused");
}
