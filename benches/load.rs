//! What the HSA tool costs a program: when it loads a large library, and at each dispatch.
//!
//!     rewriter-tests/fetch-corpora.sh bitsandbytes
//!     cargo bench -p rewriter-tests --bench load               # a library of more than 100 MB, ten kernels used
//!     cargo bench -p rewriter-tests --bench load -- whole    # and all its kernels, which takes minutes
//!     cargo bench -p rewriter-tests --bench load -- dispatch # on Debian's ROCm libraries, with the emulated driver
//!
//! The library is one code object, assembled by clang-19 from the kernels of bitsandbytes for gfx90a, each as often as
//! is needed. Each time is the fastest of some rounds; read the ratios, all of one run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rewriter_tests::command;
use rewriter_tests::corpora::Corpus;
use rewriter_tests::kernels::build::{self, Variant};
use rewriter_tests::place;
use wavetap::code_object::{CodeObject, Kernel};
use wavetap::isa::Target;
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{Counters, KernelRewriter, Options, probe, rewrite};

/// The processor that the kernels are for.
const TARGET: &str = "gfx90a";
/// Bytes of code of the library, and of a tenth of it.
const LARGE: u64 = 100 << 20;
const SMALL: u64 = LARGE / 10;
/// Kernels that a program uses.
const USED: usize = 10;
/// Rounds of what takes less than a second; the fastest counts.
const ROUNDS: usize = 3;
/// Offset of a descriptor's distance to the kernel's first instruction (AMDGPUUsage, "Kernel Descriptor").
const ENTRY_OFFSET: usize = 16;
/// Rounds of the program that dispatches: each has two dispatches.
const DISPATCH_ROUNDS: [u32; 2] = [1, 1001];

fn options(counters: Counters) -> Options {
    Options { probes: vec![probe::BRANCHES], counters, ..Options::default() }
}

/// Seconds of the fastest of some rounds.
fn fastest<T>(rounds: usize, mut run: impl FnMut() -> T) -> (f64, T) {
    let one = |_| {
        let start = Instant::now();
        let made = run();
        (start.elapsed().as_secs_f64(), made)
    };
    (0..rounds).map(one).min_by(|a, b| a.0.total_cmp(&b.0)).expect("a round")
}

/// The code objects of a library for the target.
fn objects(library: &Path) -> Vec<Vec<u8>> {
    let data = fs::read(library).expect("readable");
    let input = Input::parse(&data).expect("parses");
    let found = input.code_objects().filter(|found| found.target.as_ref().is_some_and(|id| id.processor == TARGET));
    found.map(|found| found.bytes.to_vec()).collect()
}

/// One code object with at least so many bytes of code, of kernels that are in `parts`.
fn library(parts: &[Vec<u8>], code_bytes: u64) -> Vec<u8> {
    // Always the same, so that what was assembled once is found again.
    let folder = place::build_folder().join("load-parts");
    fs::create_dir_all(&folder).expect("a folder");
    let (mut text, mut descriptors, mut metadata) = (String::new(), String::new(), String::new());
    let _ = writeln!(text, ".amdgcn_target \"amdgcn-amd-amdhsa--{TARGET}\"\n.text");
    let mut kernels: Vec<(String, &Vec<u8>, Kernel)> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let file = folder.join(format!("{number}.co"));
        fs::write(&file, part).expect("written");
        let code = CodeObject::parse(part).expect("parses");
        let rewriter = KernelRewriter::new(part.clone(), &options(Counters::Auto)).expect("a code object");
        // Code that calls others, or cannot be rewritten, would be none without the rest of its object.
        let alone = |kernel: &&Kernel| rewriter.rewrite(&kernel.name).is_ok_and(|made| made.stands_alone());
        for kernel in code.kernels().iter().filter(alone) {
            kernels.push((file.display().to_string(), part, kernel.clone()));
        }
    }
    let (mut size, mut number) = (0, 0);
    while size < code_bytes {
        let (file, part, kernel) = &kernels[number % kernels.len()];
        let (length, name) = (kernel.code.end - kernel.code.start, format!("kernel_{number}"));
        let offset = CodeObject::parse(part).expect("parses").file_offset(kernel.entry, length).expect("in the file");
        let _ = write!(
            text,
            ".globl {name}\n.protected {name}\n.p2align 8\n.type {name},@function\n{name}:\n\
                .incbin \"{file}\", {offset}, {length}\n.size {name}, {length}\n"
        );
        let bytes = kernel.descriptor.bytes();
        let list = |bytes: &[u8]| bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
        let _ = write!(
            descriptors,
            ".globl {name}.kd\n.protected {name}.kd\n.p2align 6\n.type {name}.kd,@object\n{name}.kd:\n\
                .byte {}\n.quad {name}-{name}.kd\n.byte {}\n.size {name}.kd, 64\n",
            list(&bytes[..ENTRY_OFFSET]),
            list(&bytes[ENTRY_OFFSET + 8..]),
        );
        let said = kernel.metadata.as_deref().expect("metadata");
        let _ = write!(metadata, "  - .name: {name}\n    .symbol: {name}.kd\n    .args: []\n");
        for (key, value) in [
            ("kernarg_segment_size", said.kernarg_segment_size),
            ("kernarg_segment_align", said.kernarg_segment_align),
            ("group_segment_fixed_size", said.group_segment_fixed_size),
            ("private_segment_fixed_size", said.private_segment_fixed_size),
            ("max_flat_workgroup_size", said.max_flat_workgroup_size),
            ("wavefront_size", said.wavefront_size),
            ("sgpr_count", said.sgpr_count),
            ("vgpr_count", said.vgpr_count),
            ("agpr_count", said.agpr_count),
        ] {
            let _ = writeln!(metadata, "    .{key}: {value}");
        }
        size += length;
        number += 1;
    }
    let _ = write!(
        text,
        ".rodata\n{descriptors}.amdgpu_metadata\n---\namdhsa.kernels:\n{metadata}amdhsa.target: \
            amdgcn-amd-amdhsa--{TARGET}\namdhsa.version: [1, 2]\n...\n.end_amdgpu_metadata\n"
    );
    let target = Target::by_name(TARGET).expect("known");
    build::assembled(&text, Variant { target, level: "O0", version: 5 }).expect("clang-19 assembles it")
}

/// A library that is loaded, and ten kernels of it that are dispatched; with `whole`, and all its kernels.
fn measure(name: &str, object: &[u8], whole: bool) {
    let options = options(Counters::Auto);
    let code = CodeObject::parse(object).expect("parses");
    let names: Vec<&str> = code.kernels().iter().map(|kernel| kernel.name.as_str()).collect();
    let bytes: u64 = code.kernels().iter().map(|kernel| kernel.code.end - kernel.code.start).sum();
    let used: Vec<&str> = names.iter().copied().step_by((names.len() / USED).max(1)).take(USED).collect();
    let (load, rewriter) = fastest(ROUNDS, || KernelRewriter::new(object.to_vec(), &options).expect("a code object"));
    // What all kernels of an object need is read with the first.
    let (first, _) = fastest(1, || rewriter.rewrite(used[0]));
    let (each, counted) = fastest(ROUNDS, || {
        let made = used.iter().filter_map(|name| rewriter.rewrite(name).ok());
        made.filter(|made| rewriter.code_at(made, 0x7f00_0000_0000, 0x7f00_1000_0000).is_ok()).count()
    });
    let all = load + first + each;
    println!(
        "{name}: {} kernels, {:.1} MB of code: loaded in {:.3} s, the first kernel {:.1} ms, {} ({counted} of them \
            counted) {:.1} ms each: {all:.2} s",
        names.len(),
        bytes as f64 / 1e6,
        load,
        1e3 * first,
        used.len(),
        1e3 * each / used.len() as f64,
    );
    if whole {
        let (seconds, rewritten) = fastest(1, || rewrite(object, &options).expect("rewritten"));
        let counted: usize = rewritten.maps.iter().map(|map| map.kernels.len()).sum();
        println!(
            "{name}: all kernels ({counted} counted) {seconds:.2} s, {:.1} ms each: {:.1} x as long",
            1e3 * seconds / names.len() as f64,
            seconds / all
        );
    }
}

/// Seconds that the program takes for one dispatch, with options of a command.
fn per_dispatch(program: &Path, object: &Path, command_line: &[&str]) -> f64 {
    let wavetap = command::wavetap().expect("the command is built");
    let folder = tempfile::tempdir().expect("a folder");
    let seconds = |rounds: u32| {
        let rounds = rounds.to_string();
        let texts = [program, object].map(|path| path.to_str().expect("a plain path"));
        let arguments = [command_line, &["--", texts[0], texts[1], "1", &rounds, "paced"]].concat();
        let one = || {
            let finished = command::run(&wavetap, &arguments, &[], folder.path()).expect("it ends");
            assert!(finished.out().contains("PASS"), "{finished:?}");
        };
        fastest(ROUNDS, one).0
    };
    let [few, many] = DISPATCH_ROUNDS;
    (seconds(many) - seconds(few)) / f64::from(2 * (many - few))
}

/// A program that uses HSA, with some thousand dispatches.
fn dispatch() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, object) = (folder.path().join("direct"), folder.path().join("direct.co"));
    let sources = place::root().join("rewriter-tests/tests/rocm_stack");
    let bitcode = folder.path().join("bitcode");
    fs::create_dir(&bitcode).expect("a folder");
    let run = |command: &mut Command| assert!(command.status().expect("it starts").success(), "{command:?}");
    run(Command::new(place::root().join("hip-samples/bitcode.sh")).arg(&bitcode));
    run(Command::new("clang++-19")
        .args(["-w", "-x", "hip", "-O2", "-mcode-object-version=4", "--offload-arch=gfx90a", "--offload-device-only"])
        .arg("--no-gpu-bundle-output")
        .arg(format!("--rocm-device-lib-path={}", bitcode.display()))
        .arg(sources.join("direct_kernel.hip"))
        .arg("-o")
        .arg(&object));
    run(Command::new("clang-19")
        .arg("-O1")
        .arg(sources.join("direct.c"))
        .arg("-o")
        .arg(&program)
        .arg("-lhsa-runtime64"));
    let profile = folder.path().join("profile");
    let profile = profile.to_str().expect("a plain path");
    let counted = ["profile", "--stack", "rocm", "--target", TARGET, "--force", "-o", profile, "--report", "/dev/null"];
    let with = |options: &[&'static str]| [&counted[..], options].concat();
    let cases: [(&str, Vec<&str>); 5] = [
        ("without the tool", vec!["run", "--stack", "rocm", "--target", TARGET]),
        ("with it, no kernel selected", with(&["--kernel", "none_of_these"])),
        ("counted in registers", with(&["--counters", "register"])),
        ("counted in LDS", with(&["--counters", "lds"])),
        ("counted in memory", with(&["--counters", "global"])),
    ];
    let mut without = None;
    for (name, command) in cases {
        let seconds = per_dispatch(&program, &object, &command);
        let without = *without.get_or_insert(seconds);
        println!("{name}: {:.1} us for a dispatch, {:.2} x", 1e6 * seconds, seconds / without);
    }
}

fn main() {
    let asked = |word: &str| std::env::args().any(|argument| argument == word);
    if asked("dispatch") {
        return dispatch();
    }
    let files: Vec<_> = Corpus::named("bitsandbytes").map(|corpus| corpus.files()).unwrap_or_default();
    let Some(file) = files.last() else {
        println!("there is no library: rewriter-tests/fetch-corpora.sh bitsandbytes fetches it");
        return;
    };
    let parts = objects(file);
    for (number, part) in parts.iter().enumerate() {
        measure(&format!("bitsandbytes, object {number}"), part, true);
    }
    measure("a small library", &library(&parts, SMALL), true);
    measure("a large library", &library(&parts, LARGE), asked("whole"));
}
