//! The slowest kernels of libraries, by stage: a person meets the slowest one first, when it is loaded.
//!
//!     cargo bench -p rewriter-tests --bench slowest -- FILE [TARGET]
//!
//! Each kernel of the file is analysed by itself, once, on one thread, whose CPU time is taken: other work on the
//! machine does not count. Printed are the ten kernels that take longest in all, as a table of milliseconds, and the
//! most that any stage of any kernel takes for 10 KB of code; kernels of less than that count as much. `rewrite` is
//! decoding, planning, writing and verifying one kernel, with all counters and with the fewest: the difference is what
//! placement takes. Wanted: at most 50 ms for 10 KB.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use cpu_time::ThreadTime;
use wavetap::amd_code::{CodeInputs, with_code};
use wavetap::cfg::{Cfg, Program};
use wavetap::dataflow::{Definitions, Liveness, Summaries, WaitSummaries, Waits};
use wavetap::instrument::CounterPlacement;
use wavetap::kernel::BodyKind;
use wavetap::memory::{Accesses, Launched, WaveAccesses, pointers};
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{KernelRewriter, Object, Options, probe};
use wavetap::slice::{KernelInputs, slice_kernel};

/// Kernels that are shown.
const SHOWN: usize = 10;
/// Bytes of code for which times are compared, and milliseconds that are wanted for them.
const UNIT: f64 = 10_000.0;
const WANTED: f64 = 50.0;
const STAGES: [&str; 7] =
    ["decode", "cfg", "dataflow", "rewrite, all counters", "rewrite, fewest counters", "memory", "slice"];

struct Timed {
    name: String,
    bytes: u64,
    stages: [f64; STAGES.len()],
}

impl Timed {
    fn total(&self) -> f64 {
        self.stages.iter().sum()
    }

    /// The most that a stage takes for so much code.
    fn worst(&self) -> f64 {
        self.stages.iter().fold(0.0, |most, stage| stage.max(most)) * UNIT / UNIT.max(self.bytes as f64)
    }
}

/// Milliseconds that something takes.
fn timed<R>(run: impl FnOnce() -> R) -> f64 {
    let start = ThreadTime::now();
    std::hint::black_box(run());
    start.elapsed().as_secs_f64() * 1e3
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let Some(file) = arguments.next().map(PathBuf::from) else {
        println!("slowest: no file was named, nothing is measured");
        return ExitCode::SUCCESS;
    };
    let target = arguments.next();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| run(&file, target.as_deref()));
    ExitCode::SUCCESS
}

fn run(file: &PathBuf, target: Option<&str>) {
    let data = std::fs::read(file).expect("readable");
    let input = Input::parse(&data).expect("an input");
    let mut kernels: Vec<Timed> = Vec::new();
    for found in input.code_objects() {
        let object = match Object::decode(&found) {
            Ok(object) if target.is_none_or(|target| object.target.name() == target) => object,
            _ => continue,
        };
        let (summaries, waits) = (Summaries::compute(&object.program), WaitSummaries::compute(&object.program));
        let rewriter = |placement| {
            let options = Options { probes: vec![probe::BRANCHES], placement, ..Options::default() };
            KernelRewriter::new(found.bytes.to_vec(), &options).expect("an object")
        };
        let rewriters = [CounterPlacement::All, CounterPlacement::Minimal].map(rewriter);
        let mut seen = BTreeSet::new();
        for kernel in object.code.kernels() {
            let Some(body) = object.program.bodies().iter().find(|body| body.name() == kernel.name) else { continue };
            if !seen.insert(kernel.name.clone()) {
                continue;
            }
            let entry = [(kernel.name.clone(), BodyKind::Kernel, body.entry_address())];
            let decode = timed(|| Program::build(object.target, &object.image, entry));
            let cfg = timed(|| (Cfg::build(body).loops(), Cfg::build(body).post_dominators()));
            let graph = Cfg::build(body);
            let definitions = Definitions::new(body, &graph, &summaries);
            let dataflow = timed(|| {
                let waits = Waits::compute(body, &graph, &waits).all_pending_writes();
                (Liveness::compute(body, &graph, &summaries), waits, Definitions::new(body, &graph, &summaries))
            });
            let [all, minimal] = rewriters.each_ref().map(|rewriter| timed(|| rewriter.rewrite(&kernel.name)));
            let launched = Launched::of(Some(kernel), None);
            let memory = timed(|| {
                let accesses = Accesses::of(body, &definitions, pointers(Some(kernel)));
                let mut waves = WaveAccesses::new(&accesses, &launched);
                accesses.all().iter().map(|access| waves.site(access)).count()
            });
            let pointers = pointers(Some(kernel));
            let slice = timed(|| {
                let launched = Launched::of(Some(kernel), None);
                let inputs = CodeInputs { pointers: &pointers, launched, ..CodeInputs::new(body, &waits, &summaries) };
                with_code(&inputs, |code| slice_kernel(&KernelInputs::new(code), body.name()))
            });
            kernels.push(Timed {
                name: wavetap::code_object::demangle(&kernel.name).into_owned(),
                bytes: body.insts().iter().map(|inst| u64::from(inst.size)).sum(),
                stages: [decode, cfg, dataflow, all, minimal, memory, slice],
            });
        }
    }
    kernels.sort_by(|a, b| b.total().total_cmp(&a.total()));
    println!("| kernel | bytes | {} |\n|---|{}", STAGES.join(" | "), "---:|".repeat(STAGES.len() + 1));
    for kernel in kernels.iter().take(SHOWN) {
        let name: String = kernel.name.chars().take(48).collect();
        let stages: Vec<String> = kernel.stages.iter().map(|stage| format!("{stage:.1}")).collect();
        println!("| `{name}` | {} | {} |", kernel.bytes, stages.join(" | "));
    }
    if let Some(worst) = kernels.iter().max_by(|a, b| a.worst().total_cmp(&b.worst())) {
        let verdict = if worst.worst() <= WANTED { "within" } else { "more than" };
        println!(
            "\n{} kernels; the most for 10 KB: {:.1} ms, {verdict} the {WANTED} wanted: {} ({} bytes)",
            kernels.len(),
            worst.worst(),
            worst.name.chars().take(48).collect::<String>(),
            worst.bytes
        );
    }
}
