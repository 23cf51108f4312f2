//! Rewriting whole files: host executable in, host executable out. The libraries are those that
//! `rewriter-tests/fetch-corpora.sh` fetches, where it was run.
//!
//!     cargo bench -p rewriter-tests --bench rewrite             # criterion: samples and librocrand in both modes
//!     cargo bench -p rewriter-tests --bench rewrite -- scale    # whole libraries: MB of code per second, peak memory
//!
//! Nobody else rewrites such code, so what stands beside `scale` is LLVM's disassembler, which only reads it: the
//! gfx90a code of the same file, in the same run, on one core. Wanted: 20 MB of code per second on two cores, and at
//! most three times the memory of the file when unbundled. The lines say whether it is so.

mod llvm;

use std::fs;
use std::hint::black_box;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use criterion::{Criterion, Throughput};
use rewriter_tests::corpora::Corpus;
use rewriter_tests::{place, real_code};
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{Counters, Destination, Options, Scratch, probe, rewrite, rewrite_to};
use wavetap::profile::map::ObjectMap;
use wavetap::report::rewrite::Summary;

/// MB of code per second, and memory as a multiple of the unbundled file.
const WANTED: (f64, f64) = (20.0, 3.0);
/// Rounds of `scale`; the fastest counts, as everything slower is noise.
const ROUNDS: usize = 2;
/// The target whose code LLVM disassembles for comparison.
const COMPARED: &str = "gfx90a";

fn options(counters: Counters) -> Options {
    Options { probes: vec![probe::BRANCHES], counters, keep_addresses: false, ..Options::default() }
}

/// This process's greatest memory, in bytes.
fn peak() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().map_or(f64::NAN, |kilobytes: f64| kilobytes * 1024.0)
}

/// MB of code that LLVM disassembles in a second.
fn llvm_rate(file: &Path) -> Option<f64> {
    let code: Vec<_> =
        real_code::of_file(file).expect("readable").into_iter().filter(|code| code.target.name() == COMPARED).collect();
    let bytes: usize = code.iter().map(|part| part.bytes.len()).sum();
    let start = Instant::now();
    llvm::disassemble(&code);
    (bytes > 0).then(|| bytes as f64 / 1e6 / start.elapsed().as_secs_f64())
}

/// The argument with which the benchmark starts itself for one rewrite: file and mode follow.
const ONE: &str = "one-rewrite";

/// What one rewrite in a process of its own took: an allocator keeps what it once had, so a second one in the same
/// process says nothing of memory.
struct Measured {
    seconds: f64,
    /// Greatest memory of the process less what it had before, in bytes.
    memory: f64,
    code: f64,
    kernels: usize,
    refused: usize,
}

/// A file without a name where outputs are built: `/tmp` may be memory.
fn nameless() -> fs::File {
    tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).expect("a file")
}

/// Rewrites a file once as the command does, from file to file, and prints what that took, for [`measured`].
fn one(file: &Path, counters: Counters) {
    let data = fs::read(file).expect("readable");
    let before = peak();
    let start = Instant::now();
    let mut output = BufWriter::new(nameless());
    let destination = Destination { output: &mut output, scratch: Some(Scratch::new(nameless())) };
    let keep = |map: ObjectMap| Summary::of(std::slice::from_ref(&map));
    let summary = Summary::join(rewrite_to(&data, &options(counters), destination, keep, |_| {}).expect("rewritten"));
    let seconds = start.elapsed().as_secs_f64();
    let memory = peak() - before;
    let code: u64 = summary.kernels.iter().map(|kernel| kernel.before.code_bytes).sum();
    let (kernels, refused) = (summary.kernels.len(), summary.refused.len());
    println!("{seconds} {memory} {code} {kernels} {refused}");
}

fn measured(file: &Path, counters: Counters) -> Measured {
    let itself = std::env::current_exe().expect("a benchmark is a file");
    let mode = if counters == Counters::Lds { "lds" } else { "global" };
    // As the command has it, which tells the allocator itself (`cli/src/memory.rs`).
    let mut command = Command::new(itself);
    command.env("MALLOC_TRIM_THRESHOLD_", (8 << 20).to_string()).env("MALLOC_TOP_PAD_", (4 << 20).to_string());
    let output = command.arg(ONE).arg(file).arg(mode).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let [seconds, memory, code, kernels, refused] = numbers[..] else { panic!("five numbers expected: {text}") };
    Measured { seconds, memory, code, kernels: kernels as usize, refused: refused as usize }
}

/// One library: a line.
fn measure(file: &Path, counters: Counters) {
    let theirs = llvm_rate(file);
    let data = fs::read(file).expect("readable");
    let unbundled: u64 = {
        let input = Input::parse(&data).expect("parses");
        let packed: u64 = input.bundles.iter().map(|bundle| bundle.size).sum();
        let content: usize = input.bundles.iter().map(|bundle| bundle.content.len()).sum();
        data.len() as u64 - packed + content as u64
    };
    let rounds: Vec<Measured> = (0..ROUNDS).map(|_| measured(file, counters)).collect();
    let most = rounds.iter().map(|round| round.memory).fold(0.0, f64::max);
    let Some(Measured { seconds, code, kernels, refused, .. }) =
        rounds.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds))
    else {
        return;
    };
    let (rate, memory) = (code / 1e6 / seconds, most / unbundled as f64);
    let verdict = |holds: bool| if holds { "as wanted" } else { "NOT as wanted" };
    let beside = theirs
        .map_or_else(String::new, |theirs| format!(", {:.2} x LLVM's disassembler ({theirs:.1} MB/s)", rate / theirs));
    println!(
        "{} {counters:?}: {kernels} kernels, {refused} refused, {:.1} MB of code in {seconds:.1} s: {rate:.2} MB/s \
            ({}){beside}; {:.0} MB of memory, {memory:.1} x the {:.1} MB unbundled ({})",
        file.file_name().unwrap_or_default().to_string_lossy(),
        code / 1e6,
        verdict(rate >= WANTED.0),
        most / 1e6,
        unbundled as f64 / 1e6,
        verdict(memory <= WANTED.1),
    );
}

fn scale() {
    let files: Vec<PathBuf> =
        ["bitsandbytes", "librocrand"].iter().filter_map(|name| Corpus::named(name)).flat_map(|c| c.files()).collect();
    if files.is_empty() {
        println!("there are no libraries: rewriter-tests/fetch-corpora.sh fetches them");
    }
    println!("on {} cores", std::thread::available_parallelism().map_or(1, usize::from));
    for file in files {
        for counters in [Counters::Lds, Counters::Global] {
            measure(&file, counters);
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [one_rewrite, file, mode] = &arguments[..]
        && one_rewrite == ONE
    {
        return one(Path::new(file), if mode == "lds" { Counters::Lds } else { Counters::Global });
    }
    if arguments.iter().any(|argument| argument == "scale") {
        scale();
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("rewrite");
    let samples = ["divergence", "o0"].map(|name| place::samples().join(name));
    let files: Vec<PathBuf> = samples.into_iter().chain(real_code::library()).collect();
    for file in files {
        let data = fs::read(&file).expect("readable");
        let name = file.file_name().expect("a file").to_string_lossy().into_owned();
        group.throughput(Throughput::Bytes(data.len() as u64)).sample_size(10);
        for (mode, counters) in [("lds", Counters::Lds), ("global", Counters::Global)] {
            group.bench_function(format!("{name} {mode}"), |b| {
                b.iter(|| black_box(rewrite(&data, &options(counters)).expect("rewritten")).bytes.len());
            });
        }
    }
    group.finish();
    criterion.final_summary();
}
