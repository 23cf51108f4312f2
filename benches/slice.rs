//! Slicing generated kernels of growing length, from the bytes of the code object to the ranked chains, on one core.
//!
//!     cargo bench -p rewriter-tests --bench slice               # criterion
//!     cargo bench -p rewriter-tests --bench slice -- growth   # time by length, beside LLVM's disassembler
//!
//! The kernels are structured as compilers make them (nested loops, divergent branches, loads of all kinds after waits
//! with and without counts), assembled by clang-19. Wanted: 20 ms for 1,000 instructions, and a second for 100,000.
//! What stands beside it is LLVM's disassembler, which only reads the same code once.

mod llvm;

use std::hint::black_box;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput};
use rewriter_tests::kernels::build::{self, Variant};
use rewriter_tests::random::Random;
use rewriter_tests::real_code;
use wavetap::isa::Target;
use wavetap::pipeline::{self, Selection};

const LENGTHS: [usize; 6] = [500, 1_000, 2_000, 8_000, 20_000, 100_000];
/// The processor that the kernels are for.
const TARGET: &str = "gfx90a";
/// Milliseconds wanted, by length.
const WANTED: [(usize, f64); 2] = [(1_000, 20.0), (100_000, 1_000.0)];
/// Rounds of `growth`; the fastest counts.
const ROUNDS: usize = 5;
/// Branches and loops in each other at most.
const DEEPEST: usize = 4;

/// Writes a kernel, statement by statement.
struct Writer {
    text: String,
    random: Random,
    instructions: usize,
    labels: usize,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.instructions += 1;
    }

    fn vector(&mut self) -> usize {
        8 + self.random.below(48)
    }

    /// Straight code: what is loaded is waited for and used a little later.
    fn straight(&mut self) {
        let loads = 1 + self.random.below(4);
        let first = self.vector();
        for n in 0..loads {
            let to = 8 + (first + n) % 48;
            let address = 2 * (4 + self.random.below(20));
            match self.random.below(8) {
                0..=3 => {
                    self.line(&format!("global_load_dword v{to}, v[{address}:{}], off offset:{}", address + 1, 4 * n))
                }
                4 | 5 => self.line(&format!("ds_read_b32 v{to}, v{address} offset:{}", 4 * n)),
                6 => self.line(&format!("s_load_dword s{}, s[0:1], {:#x}", 20 + self.random.clone().below(20), 4 * n)),
                _ => self.line(&format!("flat_load_dword v{to}, v[{address}:{}]", address + 1)),
            }
        }
        for _ in 0..self.random.below(8) {
            let (to, a, b) = (self.vector(), self.vector(), self.vector());
            let operation = self.random.of(&["v_add_u32", "v_xor_b32", "v_mul_f32", "v_sub_u32"]);
            self.line(&format!("{operation} v{to}, v{a}, v{b}"));
        }
        let left = self.random.below(loads);
        let wait = match self.random.below(3) {
            0 => format!("s_waitcnt vmcnt({left})"),
            1 => "s_waitcnt vmcnt(0) lgkmcnt(0)".to_owned(),
            _ => format!("s_waitcnt lgkmcnt({left})"),
        };
        self.line(&wait);
        let (to, from) = (self.vector(), 8 + first % 48);
        self.line(&format!("v_add_u32 v{to}, v{from}, v{to}"));
        if self.random.chance(30) {
            let (address, data) = (2 * (4 + self.random.below(20)), self.vector());
            self.line(&format!("global_store_dword v[{address}:{}], v{data}, off", address + 1));
        }
    }

    /// Statements until so many more instructions are written.
    fn block(&mut self, instructions: usize, depth: usize) {
        let end = self.instructions + instructions;
        while self.instructions < end {
            let inner = (end - self.instructions).min(10 + self.random.below(120));
            let label = self.labels;
            match self.random.below(6) {
                0 if depth < DEEPEST => {
                    self.labels += 1;
                    self.line(&format!("s_movk_i32 s{}, 10", 60 + depth));
                    self.text += &format!(".Lloop{label}:\n");
                    self.block(inner, depth + 1);
                    self.line(&format!("s_sub_u32 s{0}, s{0}, 1", 60 + depth));
                    self.line(&format!("s_cmp_lg_u32 s{}, 0", 60 + depth));
                    self.line(&format!("s_cbranch_scc1 .Lloop{label}"));
                }
                1 if depth < DEEPEST => {
                    self.labels += 1;
                    let (a, b, mask) = (self.vector(), self.vector(), 40 + 2 * depth);
                    self.line(&format!("v_cmp_lt_u32 vcc, v{a}, v{b}"));
                    self.line(&format!("s_and_saveexec_b64 s[{mask}:{}], vcc", mask + 1));
                    // Long ones are jumped over by nothing: branches do not reach farther.
                    self.line(&format!("s_cbranch_execz .Lelse{label}"));
                    self.block(inner, depth + 1);
                    self.text += &format!(".Lelse{label}:\n");
                    self.line(&format!("s_or_b64 exec, exec, s[{mask}:{}]", mask + 1));
                }
                _ => self.straight(),
            }
        }
    }
}

/// The code object of a kernel of about so many instructions.
fn kernel(instructions: usize) -> Vec<u8> {
    let mut writer =
        Writer { text: String::new(), random: Random::new(instructions as u64), instructions: 0, labels: 0 };
    writer.block(instructions, 0);
    writer.line("s_endpgm");
    let text = format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa--{TARGET}\"\n.text\n.globl long\n.p2align 8\n.type long,@function\nlong:\n\
         {}.Lend:\n.size long, .Lend-long\n\
         .rodata\n.p2align 6\n.amdhsa_kernel long\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_next_free_vgpr 64\n\
         .amdhsa_next_free_sgpr 80\n\
         .amdhsa_accum_offset 64\n.end_amdhsa_kernel\n",
        writer.text
    );
    let target = Target::by_name(TARGET).expect("known");
    build::assembled(&text, Variant { target, level: "O0", version: 5 }).expect("clang-19 assembles it")
}

fn slice(code: &[u8]) -> usize {
    let slice = pipeline::slice(code, &Selection::default(), pipeline::Evidence::default()).expect("slices");
    let kernel = slice.kernels.first().expect("a kernel");
    assert!(!kernel.chains.is_empty());
    kernel.chains.len()
}

/// Milliseconds of the fastest of some rounds.
fn fastest(mut run: impl FnMut()) -> f64 {
    let seconds = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    1e3 * (0..ROUNDS).map(seconds).fold(f64::INFINITY, f64::min)
}

fn growth() {
    println!(
        "{:>13} {:>10} {:>22} {:>8} {:>14}",
        "instructions", "ms", "us per instruction", "chains", "x LLVM reading"
    );
    for length in LENGTHS {
        let code = kernel(length);
        let mut chains = 0;
        let ours = fastest(|| chains = black_box(slice(&code)));
        let parts = real_code::of_bytes("long", &code).expect("readable");
        let mut instructions = 0;
        let theirs = fastest(|| instructions = llvm::disassemble(&parts));
        let wanted = WANTED.iter().find(|(of, _)| *of == length).map_or_else(String::new, |(_, wanted)| {
            format!("  wanted: {wanted} ms: {}", if ours <= *wanted { "as wanted" } else { "NOT as wanted" })
        });
        println!(
            "{instructions:>13} {ours:>10.2} {:>22.3} {chains:>8} {:>14.2}{wanted}",
            1e3 * ours / instructions as f64,
            ours / theirs
        );
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "growth") {
        growth();
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("slice");
    for length in LENGTHS {
        let code = kernel(length);
        group.throughput(Throughput::Elements(length as u64)).sample_size(10);
        group.bench_with_input(BenchmarkId::from_parameter(length), &code, |b, code| b.iter(|| black_box(slice(code))));
    }
    group.finish();
    criterion.final_summary();
}
