//! The library as other programs use it. What its examples print was worked out by hand, or another program says it.

use std::cell::Cell;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};

use rewriter_tests::command::{self, Finished};
use rewriter_tests::place::{root, samples};
use serde_json::Value;
use wavetap::emulated::{Emulator, KernelArgument, Launch};
use wavetap::error::Kind;
use wavetap::profile::launches::NotCounted;
use wavetap::run::{BackendChoice, Libraries, Observer, RunOptions, Stdout};
use wavetap::{Options, Program, Result, probe};

fn run(program: &Path, arguments: &[&str]) -> Finished {
    command::run(program, arguments, &[], root()).and_then(|finished| finished.exited(0)).expect("it ends with 0")
}

fn example(name: &str, arguments: &[&str]) -> String {
    let finished = run(&command::example(name).expect("it is built"), arguments);
    assert_eq!(finished.err(), "", "{name}");
    finished.out()
}

fn sample(name: &str) -> String {
    samples().join(name).to_str().expect("a plain path").to_owned()
}

/// Sizes of the symbols and `.vgpr_count` of the metadata as `llvm-readelf` 19 shows them; no kernel has LDS.
#[test]
fn kernels_are_listed() {
    let expected = "\
ramp(unsigned int*, unsigned int)
  gfx906     104 bytes of code,   4 VGPRs,     0 bytes of LDS
  gfx90a     104 bytes of code,   4 VGPRs,     0 bytes of LDS
  gfx942      92 bytes of code,   4 VGPRs,     0 bytes of LDS
checker(unsigned int*, unsigned int, unsigned int)
  gfx906     164 bytes of code,   3 VGPRs,     0 bytes of LDS
  gfx90a     180 bytes of code,   4 VGPRs,     0 bytes of LDS
  gfx942     168 bytes of code,   4 VGPRs,     0 bytes of LDS
volume(unsigned int*, unsigned int, unsigned int, unsigned int)
  gfx906     228 bytes of code,   6 VGPRs,     0 bytes of LDS
  gfx90a     252 bytes of code,   6 VGPRs,     0 bytes of LDS
  gfx942     240 bytes of code,   6 VGPRs,     0 bytes of LDS
";
    assert_eq!(example("list_kernels", &[&sample("two_kernels")]), expected);
}

/// `s_load` and `global_load` in what `llvm-objdump` 19 disassembles.
#[test]
fn loads_are_counted() {
    let expected = "\
gfx90a _Z4rampPjj: {Scalar: 3}
gfx90a _Z7checkerPjjj: {Scalar: 3, Global: 1}
gfx90a _Z6volumePjjjj: {Scalar: 4, Global: 1}
";
    assert_eq!(example("count_loads", &[&sample("two_kernels"), "gfx90a"]), expected);
}

/// Each kernel has 16 workgroups of two waves. `threadIdx.x < 32` in line 7 divides the first wave of each,
/// `threadIdx.x > 63` in line 16 none.
#[test]
fn divergences_are_reported() {
    let expected = "\
divergent(unsigned int*, unsigned int*): 32 waves
  line 7: 16 of 32 executions diverged
non_divergent(unsigned int*, unsigned int*): 32 waves
  line 16: 0 of 32 executions diverged
";
    assert_eq!(example("own_report", &[&sample("divergence")]), expected);
}

/// 12 workgroups of four full waves transpose tiles: each wave is at the one barrier once, with 64 lanes. The address
/// is that which `llvm-objdump` 19 shows.
#[test]
fn a_probe_of_another_crate_counts() {
    let expected = "\
transpose(int const*, int*, int, int)
  0x180c s_barrier: 48 executions, 3072 lanes
";
    let barriers = command::package("wavetap-example-barriers").expect("it is built");
    assert_eq!(run(&barriers, &[&sample("transpose")]).out(), expected);
}

/// A probe of this file, which measures nothing.
#[derive(Debug)]
struct Foreign;

impl probe::Probe for Foreign {
    fn name(&self) -> &'static str {
        "foreign"
    }

    fn summary(&self) -> &'static str {
        "nothing"
    }

    fn prepare(
        &self,
        _: &probe::ClonedFunction<'_>,
    ) -> std::result::Result<Box<dyn probe::FunctionProbe>, probe::Stop> {
        Err(probe::Error::internal("no function is looked at").into())
    }
}

/// The libraries that rewrite what is loaded do not know it: a run without its counts would say nothing.
#[test]
fn a_probe_of_another_crate_is_refused_at_load() {
    let rewritten = open("divergence").rewrite_at_load(&Options::new([&Foreign as &dyn probe::Probe]));
    let run = RunOptions::new().backend(BackendChoice::Emulator).stdout(Stdout::Discarded);
    let error = rewritten.run(&run).expect_err("it cannot be").to_string();
    assert!(error.starts_with("probe foreign is of another crate"), "{error}");
}

/// The findings are those of the command.
#[test]
fn an_executable_is_profiled() {
    let command = command::wavetap().expect("it is built");
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.json");
    let report_path = report.to_str().expect("a plain path");
    let sample = sample("two_kernels");
    let arguments = ["profile", "--backend", "emulator", "--probe", "branches,blocks", "--format", "json", "--report"];
    run(&command, &[&arguments[..], &[report_path, "--", &sample]].concat());
    let report: Value = serde_json::from_slice(&std::fs::read(&report).expect("a report")).expect("JSON");
    let mut expected = String::new();
    let kernels = report["summary"]["kernels"].as_array().expect("a summary");
    assert_eq!(kernels.len(), 3);
    for kernel in kernels {
        let share = 100.0 * kernel["share"].as_f64().expect("a share");
        expected += &format!("{share:.0} % {}\n", kernel["title"].as_str().expect("a title"));
        for finding in kernel["findings"].as_array().expect("findings") {
            expected += &format!("  {}\n", finding["text"].as_str().expect("a text"));
        }
    }
    assert_eq!(example("profile_executable", &[&sample]), expected);
    assert!(expected.contains("divergence"), "{expected}");
}

fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

fn open(name: &str) -> Program {
    Program::open(sample(name)).expect("a sample")
}

/// `vectoradd(a, b, sum, n)` on 1000 elements in workgroups of 256: the last one is partial, and `blockDim` is a hidden
/// argument.
#[test]
fn one_kernel_runs_with_arguments_of_the_callers() {
    let mut gpu = Emulator::new("gfx90a").expect("a GPU");
    let module = gpu.load(open("vectoradd").bytes()).expect("it loads");
    let a = gpu.buffer(&floats((0..1000).map(|i| i as f32))).expect("memory");
    let b = gpu.buffer(&floats((0..1000).map(|i| 2.0 * i as f32))).expect("memory");
    let sum = gpu.alloc(4000).expect("memory");
    let arguments: [KernelArgument; 4] = [a.into(), b.into(), sum.into(), 1000_i32.into()];
    for name in ["vectoradd", "_Z9vectoraddPKfS0_Pfi", "vectoradd(float const*, float const*, float*, int)"] {
        gpu.write(sum, &[0; 4000]).expect("written");
        gpu.launch(module, name, Launch::of_items(1024).workgroup([256, 1, 1]), &arguments).expect("it runs");
        assert_eq!(gpu.read(sum, 4000).expect("read"), floats((0..1000).map(|i| 3.0 * i as f32)), "{name}");
    }
    // It does not count, and the profile says so.
    let profile = gpu.finish();
    assert!(profile.kernels.is_empty());
    let uncounted: Vec<_> =
        profile.uncounted.iter().map(|kernel| (&*kernel.name, kernel.why, kernel.dispatches)).collect();
    assert_eq!(uncounted, [("_Z9vectoraddPKfS0_Pfi", NotCounted::NotRewritten, 3)]);
}

#[test]
fn launches_that_cannot_be_are_refused() {
    let mut gpu = Emulator::new("gfx90a").expect("a GPU");
    let module = gpu.load(open("vectoradd").bytes()).expect("it loads");
    let memory = gpu.alloc(4096).expect("memory");
    let good: [KernelArgument; 4] = [memory.into(), memory.into(), memory.into(), 4_i32.into()];
    let small = Launch::of_items(64);
    let mut refused = |kernel: &str, launch: Launch, arguments: &[KernelArgument], text: &str| {
        let error = gpu.launch(module, kernel, launch, arguments).expect_err(text);
        assert!(error.to_string().contains(text), "{error}");
        error.kind()
    };
    assert_eq!(refused("vectorsub", small, &good, "no kernel is called \"vectorsub\""), Kind::Unsupported);
    refused("vectoradd", small, &good[..3], "3 arguments, the kernel has 4");
    let long = [&good[..3], &[4_i64.into()]].concat();
    refused("vectoradd", small, &long, "argument 3 has 8 bytes, the kernel takes 4 (by_value)");
    refused("vectoradd", small.workgroup([2048, 1, 1]), &good, "a workgroup of 2048 work-items, 1 to 1024");
    refused("vectoradd", small.workgroup([0, 1, 1]), &good, "a workgroup of 0 work-items");
    refused("vectoradd", Launch::of_items(0), &good, "a grid without work-items");
    let lds = refused("vectoradd", small.dynamic_lds(65537), &good, "65537 bytes of LDS, a workgroup can have 65536");
    assert_eq!(lds, Kind::Limit);
    // What stops a kernel is an error like any other.
    let null: [KernelArgument; 4] = [0_u64.into(), memory.into(), memory.into(), 4_i32.into()];
    assert_eq!(refused("vectoradd", small, &null, "is outside every allocation"), Kind::Malformed);
    assert!(Emulator::new("gfx1").is_err_and(|error| error.to_string().contains("\"gfx1\"")));
}

#[test]
fn kernels_have_names_and_targets() {
    let kernel = open("two_kernels").kernel("volume").expect("a kernel");
    assert_eq!(kernel.name, "_Z6volumePjjjj");
    assert_eq!(kernel.on("gfx90a").expect("a version").code_bytes, 252);
    let error = kernel.on("gfx1100").expect_err("there is none").to_string();
    assert!(error.contains("no code for \"gfx1100\"; there is code for gfx906, gfx90a, gfx942"), "{error}");
    let error = open("two_kernels").kernel("vol").expect_err("no kernel").to_string();
    assert!(error.contains("no kernel is called \"vol\"; there are ramp(unsigned int*, unsigned int), "), "{error}");
}

#[test]
fn a_rewritten_program_can_be_kept() {
    let options = Options::new([probe::BRANCHES]);
    let program = open("divergence");
    let rewritten = program.rewrite(&options).expect("it is rewritten");
    assert_eq!((rewritten.kernels().len(), rewritten.refused().len()), (6, 0), "two kernels for three targets");
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("counting");
    rewritten.save(&kept, false).expect("it is written");
    assert!(rewritten.save(&kept, false).is_err_and(|error| error.to_string().contains("exists")));
    let expected = wavetap::pipeline::rewrite(program.bytes(), &options).expect("it is rewritten").bytes;
    assert!(std::fs::read(&kept).expect("a file") == expected);
    let mode = |path: &Path| std::fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&kept), mode(program.path()));
    // Run as it is, it counts.
    let run = RunOptions::new().backend(BackendChoice::Emulator).stdout(Stdout::Discarded);
    let profile = Program::open(&kept).and_then(|kept| kept.run(&run)?.profile()).expect("it runs");
    assert_eq!(profile.kernels.iter().map(|kernel| kernel.waves).collect::<Vec<_>>(), [32, 32]);
    // The original does not, and the profile says so.
    let profile = program.run(&run).and_then(|finished| finished.profile()).expect("it runs");
    assert!(profile.kernels.is_empty());
    assert!(profile.uncounted.iter().all(|kernel| kernel.why == NotCounted::NotRewritten));
    assert_eq!(profile.uncounted.len(), 2);
}

/// Counts how often an application is started, and how often it has ended.
#[derive(Default)]
struct Counted {
    started: Cell<u32>,
    ended: Cell<u32>,
}

impl Observer for Counted {
    fn start(&self, command: &mut Command) -> std::io::Result<Child> {
        self.started.set(self.started.get() + 1);
        command.spawn()
    }

    fn ended(&self) {
        self.ended.set(self.ended.get() + 1);
    }
}

#[test]
fn any_program_can_be_run() {
    let shell = Program::find("sh").expect("a shell");
    assert!(!shell.has_own_code());
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("output");
    let run = |script: &str| {
        let stdout = Stdout::File(output.clone());
        let options = RunOptions::new().args(["-c", script]).env("VALUE", "7").backend(BackendChoice::Emulator);
        let counted = Counted::default();
        let finished = shell.run_observed(&options.stdout(stdout), &counted).expect("it runs");
        assert_eq!((counted.started.get(), counted.ended.get()), (1, 1));
        finished
    };
    let finished = run("echo $VALUE; exit 3");
    assert_eq!((finished.exit_code(), finished.signal(), finished.is_success()), (3, None, false));
    assert_eq!(std::fs::read_to_string(&output).expect("its output"), "7\n");
    let finished = run("kill -TERM $$");
    assert_eq!((finished.exit_code(), finished.signal()), (143, Some("SIGTERM (signal 15)")));
    assert_eq!(finished.remarks(), ["the application was ended by SIGTERM (signal 15)"]);
    let error = run("true").profile().expect_err("nothing was collected").to_string();
    assert!(
        error.contains("no process of it used the HIP runtime to load any: there is nothing to count ("),
        "{error}"
    );
}

#[test]
fn libraries_are_where_the_caller_says() {
    let program = open("divergence");
    let run = |libraries: Libraries| -> Result<i32> {
        let options = RunOptions::new().backend(BackendChoice::Emulator).stdout(Stdout::Discarded);
        Ok(program.run(&options.libraries(libraries))?.exit_code())
    };
    let error = run(Libraries::in_folder("/no/such/folder")).expect_err("it is not there").to_string();
    assert!(error.starts_with("/no/such/folder: the caller names it, but it cannot be opened"), "{error}");
    command::wavetap().expect("the libraries are built");
    let built = rewriter_tests::place::build_folder().join("deps");
    assert_eq!(run(Libraries::in_folder(built)).expect("it runs"), 0);
}
