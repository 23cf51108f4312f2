//! Compilers wait for what they use: in their output no instruction reads, or overwrites, a register that a load may
//! still write, on any path.
//!
//! So an operation that [`Waits`] takes to be outstanding at such a place is one that it lost track of: a wait that was
//! misread, a counter that the tables leave out or add, an order that does not hold. The quick run takes the samples
//! and small programs that clang compiles here; the long run every kernel and function of the fetched libraries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use rewriter_tests::corpora::CORPORA;
use rewriter_tests::{full, real_code};
use wavetap::cfg::{Cfg, Program};
use wavetap::code_object::CodeObject;
use wavetap::dataflow::{FlatMemory, Operation, RegSet, WaitSummaries, Waits};
use wavetap::entity::InstId;
use wavetap::isa::{self, Access, Counter, Flags, Half, Inst, Memory};
use wavetap::kernel::{Body, Image};
use wavetap::offload_bundle::Input;

/// As many complaints as a person can use.
const SHOWN: usize = 40;

/// What was looked at, by target.
#[derive(Default)]
struct Seen {
    bodies: usize,
    instructions: usize,
    /// Uses of registers that a load had written, after its wait.
    loads: usize,
    stale: Vec<String>,
    /// Kernels and functions that cannot be decoded.
    undecodable: Vec<String>,
}

type ByTarget = BTreeMap<String, Seen>;

/// Instructions that may overwrite what a load of the same kind has yet to write: both write in order (LLVM,
/// SIInsertWaitcnts).
fn loads_in_order(body: &Body, id: InstId) -> bool {
    matches!(
        body.inst(id).variant.memory,
        Memory::Global | Memory::Scratch | Memory::Buffer | Memory::Image | Memory::Flat | Memory::Lds
    )
}

/// The half of its destination that a 16-bit load writes; none if it writes whole registers.
fn loaded_half(inst: &Inst) -> Option<Half> {
    let single = inst.variant.flags.contains(Flags::D16) && inst.variant.memory_bytes <= 2;
    single.then(|| if inst.name().contains("d16_hi") { Half::High } else { Half::Low })
}

/// Whether an instruction touches only the half of a register that a load leaves alone: since gfx11 the halves are
/// apart.
fn other_half(body: &Body, id: InstId, load: InstId) -> bool {
    let (Some(half), Some(loaded)) = (loaded_half(body.inst(load)), body.writes(load).next()) else { return false };
    let inst = body.inst(id);
    inst.operands.iter().filter(|operand| operand.reg().is_some_and(|reg| reg.overlaps(loaded))).all(|operand| {
        let used =
            if operand.access == Access::ReadWrite { loaded_half(inst).unwrap_or(operand.half) } else { operand.half };
        used != Half::Whole && used != half
    })
}

fn check(label: &str, body: &Body, summaries: &WaitSummaries, seen: &mut Seen) {
    let cfg = Cfg::build(body);
    // A compiler knows of many FLAT operations that they do not access LDS.
    let waits = Waits::compute_with(body, &cfg, summaries, FlatMemory::NoLds);
    seen.bodies += 1;
    seen.instructions += body.len();
    seen.loads += body.insts().iter().filter(|inst| !inst.variant.counters.is_empty()).count();
    waits.for_each_pending(|id, operations| {
        if operations.is_empty() {
            return;
        }
        let reads: RegSet = body.reads(id).collect();
        let overwrites: RegSet = if loads_in_order(body, id) { RegSet::EMPTY } else { body.writes(id).collect() };
        let uses = reads.union(overwrites);
        for (counter, operation) in operations {
            let Operation::Inst(load) = *operation else { continue };
            let clash = uses.intersection(waits.results(*counter, *operation));
            if !clash.is_empty() && !other_half(body, id, load) {
                let print = |id| isa::print(body.target(), body.inst(id));
                seen.stale.push(format!(
                    "{label} {} {:#x}: `{}` uses {clash:?} of `{}` at {:#x}: no wait for {}",
                    body.name(),
                    body.address(id),
                    print(id),
                    print(load),
                    body.address(load),
                    counter.name()
                ));
            }
        }
    });
}

fn check_object(label: &str, object: &CodeObject<'_>, seen: &mut ByTarget) {
    let Some(target) = object.target() else { return };
    let image = Image::of(object).expect("an image");
    let program = Program::of(target, &image);
    let summaries = WaitSummaries::compute(&program);
    let seen = seen.entry(target.name().to_owned()).or_default();
    for body in program.bodies() {
        check(label, body, &summaries, seen);
    }
    seen.undecodable.extend(program.undecodable().iter().map(|(name, _, error)| format!("{label} {name}: {error}")));
}

fn check_file(path: &Path, seen: &mut ByTarget) {
    let data = std::fs::read(path).expect("readable");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for found in Input::parse(&data).expect("a file with device code").code_objects() {
        let object = CodeObject::parse(found.bytes).expect("a code object");
        check_object(&format!("{name} {}", object.target_id()), &object, seen);
    }
}

fn nothing_stale(seen: &ByTarget) {
    let mut wrong = Vec::new();
    for (target, seen) in seen {
        println!(
            "{target}: {} kernels and functions, {} instructions, {} operations that count, {} uses too early",
            seen.bodies,
            seen.instructions,
            seen.loads,
            seen.stale.len()
        );
        wrong.extend(seen.stale.iter().chain(&seen.undecodable).take(SHOWN).cloned());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_samples_wait_for_what_they_use() {
    let mut seen = ByTarget::new();
    for path in real_code::sample_files() {
        check_file(&path, &mut seen);
    }
    nothing_stale(&seen);
    assert!(seen.values().map(|seen| seen.loads).sum::<usize>() > 1_000);
}

/// Processors of every generation that clang 19 knows.
const COMPILED_FOR: [&str; 9] =
    ["gfx803", "gfx900", "gfx90a", "gfx942", "gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200"];

/// Loads of every kind that are used at once, in loops, after branches, and in a function.
const PROGRAM: &str = r#"
typedef float f4 __attribute__((ext_vector_type(4)));
__attribute__((always_inline)) float old(__global float *p, __constant int *c) {
    int first = __atomic_fetch_add((__global int *)p + c[1], c[2], __ATOMIC_RELAXED);
    return (float)first + (float)__atomic_fetch_or((__global int *)p + 8, 1, __ATOMIC_ACQ_REL);
}
__attribute__((noinline)) float f(__global const float *p, __local float *q, int n) {
    float s = p[n];
    for (int i = 0; i < n; i++) s += p[i] * q[n - i];
    return s;
}
__kernel void mixed(__global const f4 *a, __global float *out, __constant int *c, __local float *l, int n) {
    float *g = n & 64 ? (float *)out : (float *)l;
    int i = __builtin_amdgcn_workitem_id_x();
    float s = 0;
    l[i] = out[i];
    for (int k = 0; k < n; k++) {
        f4 v = a[k * 64 + i];
        s += v.x * c[k] + v.w;
        if (v.y > s) s += l[(i + k) & 63] + g[k];
        else s -= out[c[k] + i];
        float t[8];
        for (int j = 0; j < 8; j++) t[(j + k) & 7] = a[j].y;
        s += t[k & 7];
    }
    s += f(out, l, n);
    out[i] = s;
    __builtin_amdgcn_s_barrier();
    out[i + 64] += l[63 - i] + old(out, c);
}
"#;

/// Compiles the program; none if there is no clang.
fn compile(folder: &Path, processor: &str, optimisation: &str) -> Option<PathBuf> {
    let source = folder.join("mixed.cl");
    std::fs::write(&source, PROGRAM).expect("writable");
    let out = folder.join(format!("{processor}{optimisation}.hsaco"));
    let options =
        ["-x", "cl", "-cl-std=CL2.0", "-nogpulib", "-Xclang", "-finclude-default-header", "--target=amdgcn-amd-amdhsa"];
    let ran = Command::new("clang-19")
        .args(options)
        .arg(format!("-mcpu={processor}"))
        .arg(optimisation)
        .arg("-o")
        .args([&out, &source])
        .output();
    let ran = ran.ok()?;
    assert!(ran.status.success(), "{processor}: {}", String::from_utf8_lossy(&ran.stderr));
    Some(out)
}

#[test]
fn compiled_programs_of_every_generation_wait_for_what_they_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut seen = ByTarget::new();
    for processor in COMPILED_FOR {
        for optimisation in ["-O0", "-O1", "-O3"] {
            match compile(folder.path(), processor, optimisation) {
                Some(file) => check_file(&file, &mut seen),
                None => return println!("SKIPPED: there is no clang-19"),
            }
        }
    }
    nothing_stale(&seen);
    let has_rows = |name: &str| isa::Target::by_name(name).is_some_and(|target| isa::variants(target).next().is_some());
    let known = COMPILED_FOR.iter().filter(|name| has_rows(name)).count();
    assert_eq!(seen.len(), known, "each target that is known has code");
    assert!(seen.values().all(|seen| seen.loads > 50));
}

#[test]
fn libraries_wait_for_what_they_use() {
    let mut seen = ByTarget::new();
    for corpus in CORPORA {
        if !full() && corpus.name != "jax-rocm60-plugin" {
            continue;
        }
        let files = corpus.files();
        assert!(
            !files.is_empty() || !full(),
            "{} is not there: rewriter-tests/fetch-corpora.sh {} fetches it",
            corpus.name,
            corpus.name
        );
        files.iter().for_each(|file| check_file(file, &mut seen));
    }
    nothing_stale(&seen);
    assert!(!full() || seen.len() >= 5);
}

/// That the check would find something: waits are taken away.
#[test]
fn without_its_waits_real_code_is_found_stale() {
    let mut stale = 0;
    for path in real_code::sample_files().into_iter().take(3) {
        let data = std::fs::read(&path).expect("readable");
        for found in Input::parse(&data).expect("a file").code_objects() {
            let object = CodeObject::parse(found.bytes).expect("a code object");
            let target = object.target().expect("known");
            for kernel in object.kernels() {
                let mut code =
                    object.bytes_at(kernel.code.start, kernel.code.end - kernel.code.start).expect("code").to_vec();
                let mut at = 0;
                while at + 4 <= code.len() {
                    let Ok(inst) = isa::decode(target, &code[at..]) else { break };
                    if isa::wait_count(target, &inst)
                        .is_some_and(|counts| counts.iter().any(|(counter, _)| counter != Counter::Exp))
                    {
                        let nop = isa::build(target, "s_nop", &[isa::Value::Imm(0)]).expect("s_nop");
                        code[at..at + 4].copy_from_slice(&isa::encode(target, &nop).expect("encodes"));
                    }
                    at += usize::from(inst.size);
                }
                let mut image = Image::new();
                image.add_code(kernel.code.start, &code);
                let entry = (kernel.name.clone(), wavetap::kernel::BodyKind::Kernel, kernel.entry);
                let program = Program::build(target, &image, [entry]);
                let mut seen = Seen::default();
                program.bodies().iter().for_each(|body| check("", body, &WaitSummaries::none(), &mut seen));
                stale += usize::from(!seen.stale.is_empty());
            }
        }
    }
    assert!(stale > 5, "{stale} kernels");
}
