//! Decoding and printing real gfx9 code, beside LLVM's disassembler on the same bytes in the same process.
//!
//! The code is that of the library which `rewriter-tests/fetch-corpora.sh` fetches (2 MB for gfx90a), or, where it was not fetched, that of the samples.
//! LLVM is the one of the Rust toolchain, through its C API, which always prints: compare it with `print`. One core, both sides.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use llvm_oracle::Disassembler;
use rewriter_tests::real_code::{self, Code};
use wavetap::isa;

/// The target whose code is measured.
const TARGET: &str = "gfx90a";
/// Rounds of the comparison; each side's fastest counts, as everything slower is somebody else's doing.
const ROUNDS: usize = 7;

fn input() -> (String, Vec<Code>) {
    let (name, files) = match real_code::library() {
        Some(library) => ("librocrand".to_owned(), vec![library]),
        None => ("the samples (rewriter-tests/fetch-corpora.sh fetches a library)".to_owned(), real_code::sample_files()),
    };
    let mut code: Vec<Code> = files.iter().flat_map(|file| real_code::of_file(file).expect("readable")).collect();
    code.retain(|c| c.target.name() == TARGET);
    // One object of the library for xnack on, one for off: the same code twice.
    if real_code::library().is_some() {
        code.truncate(1);
    }
    (name, code)
}

/// Walks the code; `step` gives the size of the instruction at the start, `None` where there is none. The number of instructions.
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
    walk(code, |part, at| isa::decode(part.target, &part.bytes[at..]).ok().map(|inst| usize::from(black_box(inst).size)))
}

fn print(code: &[Code]) -> usize {
    walk(code, |part, at| {
        let inst = isa::decode(part.target, &part.bytes[at..]).ok()?;
        black_box(isa::print(part.target, &inst));
        Some(usize::from(inst.size))
    })
}

fn llvm(code: &[Code], disassembler: &mut Disassembler) -> usize {
    walk(code, |part, at| disassembler.raw(&part.bytes[at..], part.address + at as u64).map(|(size, text)| (black_box(text), size).1))
}

fn fastest(mut run: impl FnMut() -> usize) -> Duration {
    let once = |_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    };
    (0..ROUNDS).map(once).min().expect("some rounds")
}

fn main() {
    let (name, code) = input();
    let bytes: usize = code.iter().map(|c| c.bytes.len()).sum();
    assert!(bytes > 0, "no {TARGET} code");
    let mut disassembler = Disassembler::new(TARGET).expect("the Rust toolchain has LLVM");

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Bytes(bytes as u64)).sample_size(10);
    group.bench_function("wavetap decode", |b| b.iter(|| decode(&code)));
    group.bench_function("wavetap decode and print", |b| b.iter(|| print(&code)));
    group.bench_function("llvm decode and print", |b| b.iter(|| llvm(&code, &mut disassembler)));
    group.finish();
    criterion.final_summary();

    // Both read the same instructions, or the comparison means nothing.
    let (ours, theirs) = (decode(&code), llvm(&code, &mut disassembler));
    assert_eq!(ours, theirs, "instructions that each side found");
    let (fast, text) = (fastest(|| decode(&code)), fastest(|| print(&code)));
    let llvm_text = fastest(|| llvm(&code, &mut disassembler));
    let rate = |time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    let (major, minor, patch) = disassembler.version();
    println!("\n{name}, {TARGET}: {bytes} bytes, {ours} instructions");
    println!("  wavetap, decode            {:8.1} MB/s  {:5.2} x LLVM", rate(fast), rate(fast) / rate(llvm_text));
    println!("  wavetap, decode and print  {:8.1} MB/s  {:5.2} x LLVM", rate(text), rate(text) / rate(llvm_text));
    println!("  LLVM {major}.{minor}.{patch}, decode and print {:5.1} MB/s", rate(llvm_text));
}
