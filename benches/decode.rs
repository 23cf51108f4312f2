//! Decoding and printing real code, beside LLVM's disassembler on the same bytes in the same process, one core each:
//!
//!     rewriter-tests/fetch-corpora.sh bitsandbytes
//!     cargo bench -p rewriter-tests --bench decode                     # minutes, on a machine that does nothing else
//!     cargo bench -p rewriter-tests --bench decode -- --quick gfx1100  # seconds, one target
//!
//! The code is what bitsandbytes has for gfx90a and gfx1100, 3 MB each; where it was not fetched that of librocrand,
//! else that of the samples. LLVM is the one of the Rust toolchain, through its C API, which always prints: compare it
//! with `decode and print`. `decode` goes over the code with one instruction, as the disassembly of whole sections
//! does; `decode to values` makes each a value of its own, as control flow does. Wanted on each target: at least 100 MB
//! of code per second for decoding to structured instructions, 10 × LLVM; printing at 3 × LLVM. The lines at the end
//! say whether it is so.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use llvm_oracle::Disassembler;
use rewriter_tests::corpora::Corpus;
use rewriter_tests::real_code::{self, Code};
use wavetap::isa::{self, Inst, Target};

/// The targets whose code is measured, where they are handled.
const TARGETS: [&str; 2] = ["gfx90a", "gfx1100"];
/// Where code comes from, the first that has some.
const SOURCES: [&str; 2] = ["bitsandbytes", "librocrand"];
/// Rounds of the comparison; each side's fastest counts, as everything slower is noise.
const ROUNDS: usize = 7;
/// What is wanted: MB/s of decoding, and how many times as fast as LLVM decoding and printing are to be.
const WANTED: (f64, f64, f64) = (100.0, 10.0, 3.0);

/// The code of a target, and what it is the code of.
fn input(target: &str) -> Option<(&'static str, Vec<Code>)> {
    let fetched = SOURCES.map(|name| (name, Corpus::named(name).map_or_else(Vec::new, |corpus| corpus.files())));
    fetched.into_iter().chain([("the samples", real_code::sample_files())]).find_map(|(name, files)| {
        let of_file = |file: &PathBuf| real_code::of_file(file).expect("readable");
        let mut code: Vec<Code> = files.iter().flat_map(of_file).filter(|code| code.target.name() == target).collect();
        // The same code for several settings of the device is the same code.
        code.dedup_by(|one, other| one.bytes == other.bytes);
        (!code.is_empty()).then_some((name, code))
    })
}

/// Walks the code; `step` gives the size of the instruction at the start, `None` where there is none. The number of
/// instructions.
fn walk(code: &[Code], mut step: impl FnMut(&Code, usize) -> Option<usize>) -> usize {
    let mut count = 0;
    for part in code {
        let mut at = 0;
        while at + 4 <= part.bytes.len() {
            match step(part, at) {
                Some(size) => {
                    count += 1;
                    at += size;
                }
                None => at += 4,
            }
        }
    }
    count
}

fn decode(code: &[Code]) -> usize {
    let mut inst = Inst::blank();
    walk(code, |part, at| {
        isa::decode_into(&mut inst, part.target, &part.bytes[at..]).ok()?;
        Some(usize::from(black_box(&inst).size))
    })
}

/// The same, each instruction a value of its own.
fn decode_each(code: &[Code]) -> usize {
    walk(code, |part, at| {
        isa::decode(part.target, &part.bytes[at..]).ok().map(|inst| usize::from(black_box(&inst).size))
    })
}

fn print(code: &[Code]) -> usize {
    let mut inst = Inst::blank();
    walk(code, |part, at| {
        isa::decode_into(&mut inst, part.target, &part.bytes[at..]).ok()?;
        black_box(isa::print(part.target, &inst));
        Some(usize::from(inst.size))
    })
}

fn llvm(code: &[Code], disassembler: &mut Disassembler) -> usize {
    walk(code, |part, at| {
        let (size, text) = disassembler.raw(&part.bytes[at..], part.address + at as u64)?;
        // What it calls so is the padding of gfx10 and later.
        (black_box(text).trim_ascii() != b"v_illegal").then_some(size)
    })
}

fn fastest(mut run: impl FnMut() -> usize) -> Duration {
    let once = |_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    };
    (0..ROUNDS).map(once).min().expect("some rounds")
}

/// The comparison of one target, as text.
fn compare(target: &str, source: &str, code: &[Code], disassembler: &mut Disassembler) -> String {
    // Both read the same instructions, or the comparison means nothing.
    let (ours, theirs) = (decode(code), llvm(code, disassembler));
    assert!(ours.abs_diff(theirs) <= ours / 1000, "{target}: here are {ours} instructions, LLVM finds {theirs}");
    let bytes: usize = code.iter().map(|c| c.bytes.len()).sum();
    let rate = |time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    let (decoding, each, printing) =
        (rate(fastest(|| decode(code))), rate(fastest(|| decode_each(code))), rate(fastest(|| print(code))));
    let llvm_rate = rate(fastest(|| llvm(code, disassembler)));
    let (major, minor, patch) = disassembler.version();
    let verdict = |holds: bool| if holds { "as wanted" } else { "NOT as wanted" };
    format!(
        "\n{source}, {target}: {bytes} bytes, {ours} instructions\n  \
         wavetap, decode            {decoding:8.1} MB/s  {:5.2} x LLVM  {}\n  \
         wavetap, decode to values  {each:8.1} MB/s  {:5.2} x LLVM\n  \
         wavetap, decode and print  {printing:8.1} MB/s  {:5.2} x LLVM  {}\n  \
         LLVM {major}.{minor}.{patch}, decode and print {llvm_rate:5.1} MB/s",
        decoding / llvm_rate,
        verdict(decoding >= WANTED.0 && decoding / llvm_rate >= WANTED.1),
        each / llvm_rate,
        printing / llvm_rate,
        verdict(printing / llvm_rate >= WANTED.2),
    )
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut comparisons = Vec::new();
    for target in TARGETS {
        if Target::by_name(target).is_none() {
            println!("{target} is not handled");
            continue;
        }
        let Some((source, code)) = input(target) else {
            println!("there is no code for {target}: rewriter-tests/fetch-corpora.sh fetches it");
            continue;
        };
        let bytes: usize = code.iter().map(|c| c.bytes.len()).sum();
        let mut disassembler = Disassembler::new(target).expect("the Rust toolchain has LLVM");
        let mut group = criterion.benchmark_group(target);
        group.throughput(Throughput::Bytes(bytes as u64)).sample_size(10);
        group.bench_function("decode", |b| b.iter(|| decode(&code)));
        group.bench_function("decode to values", |b| b.iter(|| decode_each(&code)));
        group.bench_function("decode and print", |b| b.iter(|| print(&code)));
        group.bench_function("LLVM, decode and print", |b| b.iter(|| llvm(&code, &mut disassembler)));
        group.finish();
        comparisons.push(compare(target, source, &code, &mut disassembler));
    }
    criterion.final_summary();
    println!("{}", comparisons.join("\n"));
}
