//! Whole programs: what instrumented kernels counted, and what follows from it, against the totals that the emulator
//! has of the original, and against operations and bytes that were worked out by hand from the source.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use rewriter_tests::{Failure, command, counts, full, place};
use wavetap::pipeline::{self, MemoryInputs, Selection};
use wavetap::report::memory::Space;
use wavetap::report::mix::{KernelMix, MixReport, Traffic};

/// Side of the matrices of `gemm_rows` and `gemm_columns`.
const GEMM: u64 = 64;
/// Work-items of the kernels on vectors, and what each of them adds up in `lane_rows`.
const COUNT: u64 = 4096;
const ROW: u64 = 16;

/// The programs' trials.
pub fn trials() -> Vec<Trial> {
    let targets: &[&'static str] = if full() { &["gfx906", "gfx90a", "gfx942"] } else { &["gfx90a"] };
    let mut trials: Vec<Trial> = ["gfx90a", "gfx942", "gfx1030", "gfx1100"]
        .into_iter()
        .flat_map(|target| {
            let of = |what: &str, test: fn(&str) -> Result<(), Failure>| {
                Trial::test(format!("{what} on {target}"), move || test(target).map_err(Failed::from))
            };
            [
                of("by hand", by_hand),
                of("transforms and a stencil", transforms_and_stencil),
                of("generic pointers", generic_pointers),
            ]
        })
        .collect();
    for sample in place::sample_names() {
        for target in targets {
            let sample = sample.clone();
            let name = format!("sample {sample} {target}");
            trials.push(Trial::test(name, move || totals(&sample, target).map_err(Failed::from)));
        }
    }
    trials
}

/// Runs a program, instrumented; gives what it executed.
fn mix(file: &Path, target: &str, folder: &Path) -> Result<MixReport, Failure> {
    let profile = folder.join("counts.profile");
    let args = ["profile", "--backend", "emulator", "--probe", "branches,blocks", "--target", target, "--report"];
    let mut args: Vec<OsString> = args.map(OsString::from).to_vec();
    let rest: [PathBuf; 5] = [folder.join("report"), "-o".into(), profile.clone(), "--".into(), file.to_path_buf()];
    args.extend(rest.map(OsString::from));
    command::run(&command::wavetap()?, &args, &[], place::root())?.exited(0)?;
    let data = std::fs::read(file).map_err(|e| e.to_string())?;
    let selection = Selection { targets: vec![target.to_owned()], ..Selection::default() };
    pipeline::mix(&data, &selection, &counts::read_profile(&profile)?).map_err(|e| e.to_string())
}

/// Instructions and bytes are those that the emulator counted in the original.
fn totals(sample: &str, target: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let file = place::samples().join(sample);
    let trace = folder.path().join("trace.profile");
    let args = ["run", "--backend", "emulator", "--target", target, "--trace"].map(OsString::from);
    let rest = [trace.clone().into_os_string(), "--".into(), file.clone().into_os_string()];
    let args: Vec<OsString> = args.into_iter().chain(rest).collect();
    command::run(&command::wavetap()?, &args, &[], place::root())?.exited(0)?;
    let report = mix(&file, target, folder.path())?;
    let mut compared = 0;
    for seen in counts::read_profile(&trace)?.kernels.iter().filter(|kernel| kernel.dispatches > 0) {
        let said = report.kernels.iter().find(|kernel| kernel.name == seen.name);
        let said = said.ok_or_else(|| format!("{}: no mix", seen.name))?;
        let work = seen.work.ok_or("the trace has no work")?;
        if said.total.uncounted > 0 || !said.uncounted_callees.is_empty() {
            if said.total.instructions > work.instructions {
                return Err(format!("{}: more instructions than were executed", seen.name));
            }
            continue;
        }
        compared += 1;
        if said.total.instructions != work.instructions {
            let (said, seen_of) = (said.total.instructions, work.instructions);
            return Err(format!("{}: {said} instructions, {seen_of} were executed", seen.name));
        }
        if said.total.bytes.iter().any(|row| row.unknown > 0) {
            continue;
        }
        // The emulator has all but LDS in one number, and what atomics read and write in it twice: 4 bytes of a lane in
        // all samples.
        let atomics = |memory: &str| -> u64 {
            let rows = said.total.classes.iter();
            let ours = rows.filter(|row| row.class.starts_with(memory) && row.class.ends_with(".atomic"));
            4 * ours.map(|row| row.lanes).sum::<u64>()
        };
        let bytes = |memory: Traffic| said.total.bytes_of(memory);
        // Of FLAT accesses the code need not say the memory.
        if bytes(Traffic::Flat) > 0 {
            continue;
        }
        let global = bytes(Traffic::Global) + bytes(Traffic::Scalar) + bytes(Traffic::Scratch) + atomics("vmem.");
        let lds = bytes(Traffic::Lds) + atomics("lds.");
        if (global, lds) != (work.global_bytes, work.lds_bytes) {
            let (memory, of_lds) = (work.global_bytes, work.lds_bytes);
            let name = &seen.name;
            return Err(format!("{name}: {global} bytes of memory, {lds} of LDS; {memory} and {of_lds} were moved"));
        }
    }
    if compared == 0 && sample != "calls" { Err("nothing was compared".to_owned()) } else { Ok(()) }
}

/// Operations and bytes that follow from the source.
fn by_hand(target: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let report = mix(&place::root().join("hip-samples/memory/bin/accesses"), target, folder.path())?;
    let kernel = |name: &str| -> Result<&KernelMix, Failure> {
        let mut found = report.kernels.iter().filter(|kernel| kernel.demangled.contains(name) && kernel.waves > 0);
        found.next().ok_or_else(|| format!("no {name}"))
    };
    // Name, floating-point operations, bytes of global memory by vector instructions, if these follow from the source.
    let gemm = 2 * GEMM * GEMM * GEMM;
    for (name, flops, bytes) in [
        ("gemm_rows(", gemm, Some(4 * (2 * GEMM * GEMM * GEMM + GEMM * GEMM))),
        ("gemm_columns(", gemm, Some(4 * (2 * GEMM * GEMM * GEMM + GEMM * GEMM))),
        ("lane_rows(", COUNT * ROW, Some(4 * COUNT * (ROW + 1))),
        ("lane_columns(", COUNT * ROW, Some(4 * COUNT * (ROW + 1))),
        ("structure_of_arrays(", COUNT, Some(8 * COUNT)),
        ("array_of_structures(", COUNT, Some(8 * COUNT)),
        ("backward(", 0, Some(8 * COUNT)),
        ("gather(", 0, Some(12 * COUNT)),
    ] {
        let total = &kernel(name)?.total;
        if (total.flops.effective, total.flops.lanes_unknown) != (flops, 0) {
            return Err(format!("{name}: {:?}, worked out by hand: {flops}", total.flops));
        }
        // All lanes are active and nothing is packed: the hardware would count the same.
        let packed = total.classes.iter().any(|row| row.class.contains("dot"));
        if !packed && total.flops.convention > flops {
            return Err(format!("{name}: {:?}, worked out by hand: {flops}", total.flops));
        }
        if bytes.is_some_and(|bytes| bytes != total.bytes_of(Traffic::Global)) {
            return Err(format!("{name}: {:?}, worked out by hand: {bytes:?}", total.bytes));
        }
    }
    Ok(())
}

/// What a kernel of `hip-samples/counts/flops.hip` computes, from the source.
struct ByHand {
    /// A part of the kernel's demangled name.
    kernel: String,
    /// Additions, multiplications, and both in one, of active lanes.
    adds: u64,
    muls: u64,
    fmas: u64,
    /// How many of them an instruction does in a lane.
    packed: u64,
    /// Lanes of the waves that do it, and how many of these are active.
    lanes_of_wave: (u64, u64),
    /// Bytes of LDS.
    lds: u64,
    /// Bytes of global memory by vector instructions, where they do not depend on whether the compiler unrolls.
    global: Option<u64>,
}

/// Transforms of each size, which `flops` makes.
const TRANSFORMS: u64 = 3;
/// Points of the stencil's grid.
const GRID: [u64; 3] = [64, 12, 10];
/// Work-items that have a pair of numbers.
const PAIRS: u64 = 1024;

/// A radix-2 transform of N = 2^bits points has `bits` stages of N/2 butterflies; a butterfly multiplies two complex
/// numbers (4 products, 2 sums) and adds and subtracts the product (4 sums): 10 operations, 5 N log2 N in all. Where
/// they may be fused, each sum within the product takes one of its two products with it: 2 products, 2 fused, 4 sums. A
/// fused one is two operations, so that it is 10 again.
///
/// N/2 work-items load and store two points of 8 bytes, and two of each in every stage: 32 bytes of LDS for each
/// butterfly, and as many for each work-item before and after the stages. 64 points have 32 work-items: half of a wave
/// of 64.
fn transform(bits: u32, fused: bool, wave: u64) -> ByHand {
    let half = 1_u64 << (bits - 1);
    let butterflies = TRANSFORMS * half * u64::from(bits);
    let (adds, muls, fmas) = if fused { (4, 2, 2) } else { (6, 4, 0) };
    ByHand {
        kernel: format!("fft<{bits}, {fused}>"),
        adds: adds * butterflies,
        muls: muls * butterflies,
        fmas: fmas * butterflies,
        packed: 1,
        lanes_of_wave: (wave.max(half), half),
        lds: 32 * (butterflies + TRANSFORMS * half),
        global: None,
    }
}

/// A point inside adds six neighbours (5 sums), weighs the sum and itself (2 products) and adds both (1 sum): 8
/// operations; fused, the last sum takes a product with it. It loads seven points and stores one, of 4 bytes. A row is
/// 64 work-items, of which the first and the last are at the border; waves of rows at a border do nothing.
fn stencil(fused: bool) -> ByHand {
    let [x, y, z] = GRID.map(|points| points - 2);
    let points = x * y * z;
    let (adds, muls, fmas) = if fused { (5, 1, 1) } else { (6, 2, 0) };
    ByHand {
        kernel: format!("stencil<{fused}>"),
        adds: adds * points,
        muls: muls * points,
        fmas: fmas * points,
        packed: 1,
        lanes_of_wave: (GRID[0], x),
        lds: 0,
        global: Some((7 + 1) * 4 * points),
    }
}

/// Two products and two sums, or two of both; gfx90a and gfx942 have an instruction for both numbers. A pair is loaded
/// twice and stored once.
fn pairs(fused: bool, packs: bool) -> ByHand {
    let (adds, muls, fmas) = if fused { (0, 0, 2) } else { (2, 2, 0) };
    ByHand {
        kernel: format!("pairs<{fused}>"),
        adds: adds * PAIRS,
        muls: muls * PAIRS,
        fmas: fmas * PAIRS,
        packed: if packs { 2 } else { 1 },
        lanes_of_wave: (1, 1),
        lds: 0,
        global: Some(3 * 8 * PAIRS),
    }
}

fn transforms_and_stencil(target: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let report = mix(&place::root().join("hip-samples/counts/bin/flops"), target, folder.path())?;
    let is_cdna = ["gfx90a", "gfx942"].contains(&target);
    for fused in [false, true] {
        for bits in [6, 8, 10] {
            transform(bits, fused, if is_cdna { 64 } else { 32 }).check(&report)?;
        }
        stencil(fused).check(&report)?;
        pairs(fused, is_cdna).check(&report)?;
    }
    Ok(())
}

impl ByHand {
    fn check(&self, report: &MixReport) -> Result<(), Failure> {
        let name = &self.kernel;
        let kernel = report.kernels.iter().find(|kernel| kernel.demangled.contains(name.as_str()) && kernel.waves > 0);
        let total = &kernel.ok_or_else(|| format!("no {name}"))?.total;
        let flops = self.adds + self.muls + 2 * self.fmas;
        // As the hardware would count: all lanes of a wave, and a pair once.
        let all_lanes = flops / self.packed * self.lanes_of_wave.0 / self.lanes_of_wave.1;
        let found = (total.flops.effective, total.flops.convention, total.flops.lanes_unknown);
        if found != (flops, all_lanes, 0) {
            return Err(format!("{name}: {found:?}, worked out by hand: {flops}, {all_lanes}"));
        }
        for (class, expected) in [("add", self.adds), ("mul", self.muls), ("fma", self.fmas)] {
            let rows = total.classes.iter().filter(|row| row.class == format!("valu.f32.{class}"));
            let lanes: u64 = rows.map(|row| row.lanes).sum();
            if lanes != expected / self.packed {
                return Err(format!("{name}: {lanes} of {class}, worked out by hand: {}", expected / self.packed));
            }
        }
        if total.bytes_of(Traffic::Lds) != self.lds {
            return Err(format!("{name}: {:?}, worked out by hand: {} of LDS", total.bytes, self.lds));
        }
        if self.global.is_some_and(|bytes| bytes != total.bytes_of(Traffic::Global)) {
            return Err(format!("{name}: {:?}, worked out by hand: {:?}", total.bytes, self.global));
        }
        Ok(())
    }
}

/// What the kernels of `hip-samples/counts/generic.hip` access, from the source: in each round a work-item of
/// `weighted` loads two numbers from memory, stores both to LDS, and reads two there for each tap; at the end it stores
/// one. One of `either` loads one, stores it to LDS, reads eight from where an argument says, and stores one; it is
/// launched twice.
fn generic_pointers(target: &str) -> Result<(), Failure> {
    const ITEM: u64 = 4;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let file = place::root().join("hip-samples/counts/bin/generic");
    let report = mix(&file, target, folder.path())?;
    let (weighted, rounds, taps) = (6 * 128, 5, 16);
    let (either, reads) = (2 * 4 * 128, 8);
    for (name, global, lds, flat) in [
        ("weighted(", weighted * (2 * rounds + 1), weighted * rounds * (2 + 2 * taps), 0),
        ("either(", either * 2, either, either * reads),
    ] {
        let kernel = report.kernels.iter().find(|kernel| kernel.demangled.contains(name) && kernel.waves > 0);
        let total = &kernel.ok_or_else(|| format!("no {name}"))?.total;
        let found = [Traffic::Global, Traffic::Lds, Traffic::Flat].map(|memory| total.bytes_of(memory));
        let expected = [global, lds, flat].map(|items| items * ITEM);
        if found != expected {
            return Err(format!("{name}: {found:?} of global memory, LDS and either; by hand: {expected:?}"));
        }
    }
    of_code(&file, target)
}

/// Reads through generic pointers are of LDS where the code says so, and otherwise nothing is said of their lines.
fn of_code(file: &Path, target: &str) -> Result<(), Failure> {
    let data = std::fs::read(file).map_err(|e| e.to_string())?;
    let selection = Selection { targets: vec![target.to_owned()], ..Selection::default() };
    let report = pipeline::memory(&data, &selection, MemoryInputs::default()).map_err(|e| e.to_string())?;
    let mut seen = Vec::new();
    for kernel in &report.kernels {
        for access in kernel.accesses.iter().filter(|access| access.instruction.starts_with("flat_")) {
            if access.is_uniform_load() || access.lines.is_some() {
                return Err(format!("{access:?}"));
            }
            seen.push((kernel.demangled.starts_with("weighted("), access.space));
        }
    }
    seen.sort_unstable();
    match seen.as_slice() {
        [(false, Space::Flat), (true, Space::Lds), (true, Space::Lds)] => Ok(()),
        seen => Err(format!("FLAT accesses, whether of weighted: {seen:?}")),
    }
}
