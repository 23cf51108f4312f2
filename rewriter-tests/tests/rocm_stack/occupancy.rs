//! What AMD's own runtime says of occupancy, against the emulator's runtime, kernel by kernel; and launches that no
//! compute unit has room for, on both.
//!
//! Where the two differ, and why: HIP 5.2 counts vector registers in eights on all of gfx10, of which processors from
//! gfx1030 on allocate sixteen at a time; later versions do, and so does the emulator's runtime, which then says less.
//! For kernels that do not allow 1024 work-items HIP advises sizes that it does not launch.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{command, profile, program, programs, root, samples};
use rewriter_tests::full;
use wavetap::code_object::{CodeObject, KernelMetadata};
use wavetap::isa::Target;
use wavetap::profile::launches::NotCounted;

/// One of each sort that HIP 5.2 knows.
const QUICK: [&str; 3] = ["gfx906", "gfx90a", "gfx1030"];
const ALL: [&str; 8] = ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx1010", "gfx1012", "gfx1030", "gfx1031"];

/// The highest vector register that a kernel names.
const VECTORS: [u32; 20] = [0, 23, 24, 31, 32, 35, 36, 47, 48, 63, 64, 71, 72, 83, 95, 96, 127, 128, 191, 255];
/// The highest scalar register.
const SCALARS: [u32; 5] = [70, 77, 82, 93, 95];
const LDS: [u32; 5] = [1, 1000, 6554, 20000, 65536];

fn targets() -> &'static [&'static str] {
    if full() { &ALL } else { &QUICK }
}

#[test]
fn occupancy_is_what_amds_runtime_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut asked, mut less) = (0, 0);
    for target in targets() {
        let mut objects = vec![generated(folder.path(), target)];
        objects.extend(of_samples(folder.path(), target));
        for object in objects {
            let bytes = fs::read(&object).expect("an object");
            let code = CodeObject::parse(&bytes).expect("an object");
            let kernels: Vec<&KernelMetadata> =
                code.kernels().iter().filter_map(|kernel| kernel.metadata.as_deref()).collect();
            let names: Vec<&str> = code.kernels().iter().map(|kernel| kernel.name.as_str()).collect();
            let (amd, own) = (ask("rocm", target, &object, &names), ask("hip", target, &object, &names));
            assert!(amd.len() > 60 * kernels.len(), "{target}: {amd:?}");
            assert_eq!(amd.len(), own.len(), "{target} {}", object.display());
            for (amd, own) in amd.iter().zip(&own) {
                asked += 1;
                if amd == own {
                    continue;
                }
                let of = code.kernels().iter().find(|kernel| amd.starts_with(&format!("{} ", kernel.name)));
                let metadata = of.and_then(|kernel| kernel.metadata.as_deref()).expect("a line of a kernel");
                let place = format!("{target} {}: AMD {amd}, emulator {own}", object.display());
                assert!(known_difference(target, metadata, amd, own), "{place}");
                less += 1;
            }
        }
    }
    println!("{asked} answers, {less} differ as they should");
    assert!(asked > 4000 && less < asked / 8, "{asked} answers, {less} differ");
}

/// Whether two answers may differ.
fn known_difference(target: &str, kernel: &KernelMetadata, amd: &str, own: &str) -> bool {
    let [before, after] = [amd, own].map(|line| line.split(' ').collect::<Vec<_>>());
    let number = |line: &[&str], at: usize| line[at].parse::<i64>().expect("a number");
    let vgprs = kernel.vgpr_count as u32;
    let of_sixteen = Target::by_name(target).is_some_and(|target| target.vgpr_granule() == 16)
        && vgprs.next_multiple_of(16) != vgprs.next_multiple_of(8);
    if before[1] == "best" {
        return of_sixteen || kernel.max_flat_workgroup_size < 1024;
    }
    of_sixteen && before[..4] == after[..4] && number(&after, 4) < number(&before, 4)
}

/// Output of the program, line by line.
fn ask(stack: &str, target: &str, object: &Path, kernels: &[&str]) -> Vec<String> {
    let object = object.to_str().expect("a plain path");
    let program = program(".occupancy");
    let mut arguments = vec!["run", "--stack", stack, "--target", target, "--"];
    arguments.extend([program.to_str().expect("a plain path"), "ask", object]);
    arguments.extend(kernels);
    let wavetap = command::wavetap().expect("the command is built");
    let finished = command::run(&wavetap, &arguments, &[], programs()).expect("it ends");
    let lines = finished.out().lines().map(str::to_owned).collect();
    assert!(finished.err().is_empty(), "{target} {stack}: {finished:?}");
    finished.exited(0).expect("it answers");
    lines
}

/// Kernels that ask for many different amounts of one thing.
fn generated(folder: &Path, target: &str) -> PathBuf {
    let mut text = String::from("target triple = \"amdgcn-amd-amdhsa\"\n");
    let mut count = 0;
    let mut kernel = |vector: u32, scalar: u32, lds: u32, size: u32| {
        let n = count;
        count += 1;
        let _ = writeln!(text, "@lds{n} = internal addrspace(3) global [{lds} x i8] poison, align 16");
        let _ = writeln!(text, "define amdgpu_kernel void @k{n}() #{n} {{");
        let _ = writeln!(text, "  call void asm sideeffect \"\", \"~{{v{vector}}},~{{s{scalar}}}\"()");
        if lds > 1 {
            let _ = writeln!(text, "  store volatile i8 1, ptr addrspace(3) @lds{n}");
        }
        let _ = writeln!(text, "  ret void\n}}\nattributes #{n} = {{ \"amdgpu-flat-work-group-size\"=\"1,{size}\" }}");
    };
    for vector in VECTORS {
        // Compilers give larger workgroups no more than these.
        kernel(vector, 20, 1, if vector < 64 { 1024 } else { 256 });
    }
    for scalar in SCALARS {
        kernel(7, scalar, 1, 1024);
    }
    for lds in LDS {
        kernel(7, 20, lds, 1024);
    }
    let source = folder.join("kernels.ll");
    fs::write(&source, text).expect("a file");
    let object = folder.join(format!("{target}.o"));
    let mut compile = Command::new("llc-19");
    compile.args(["-march=amdgcn", "--amdhsa-code-object-version=4", "-filetype=obj"]);
    made(compile.arg(format!("-mcpu={target}")).arg(&source).arg("-o").arg(&object));
    linked(&object)
}

fn linked(object: &Path) -> PathBuf {
    let linked = object.with_extension("co");
    made(Command::new("ld.lld-19").arg("-shared").arg(object).arg("-o").arg(&linked));
    linked
}

fn made(command: &mut Command) {
    let output = command.output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Code objects of the samples; quick: of one.
fn of_samples(folder: &Path, target: &str) -> Vec<PathBuf> {
    let mut names = samples();
    if !full() {
        names.retain(|name| name == "lds_reduce");
    }
    let object = |name: String| {
        let object = folder.join(format!("{name}-{target}.co"));
        let mut compile = Command::new("clang++-19");
        compile.args(["-w", "-x", "hip", "-std=c++17", "-O2", "-mcode-object-version=4", "--offload-device-only"]);
        compile.args(["--no-gpu-bundle-output", &format!("--offload-arch={target}")]);
        compile.arg(format!("--rocm-device-lib-path={}", programs().join(".bitcode").display()));
        made(compile.arg(root().join(format!("hip-samples/src/{name}.hip"))).arg("-o").arg(&object));
        object
    };
    names.into_iter().map(object).collect()
}

/// 16 waves of 128 registers are more than the 1024 that four SIMDs have; 8 waves are as many.
#[test]
fn a_launch_without_room_is_an_error_of_the_runtime() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("full.s");
    fs::write(&source, FULL).expect("a file");
    let object = source.with_extension("o");
    let mut assemble = Command::new("llvm-mc-19");
    assemble.args(["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx906", "-filetype=obj"]);
    made(assemble.arg(&source).arg("-o").arg(&object));
    let object = linked(&object);
    let launch = |stack: &str, threads: &str, strict: bool| {
        let object = object.to_str().expect("a plain path");
        let program = program(".occupancy");
        let mut arguments = vec!["run", "--stack", stack, "--target", "gfx906"];
        arguments.extend(strict.then_some("--strict"));
        arguments.extend(["--", program.to_str().expect("a plain path"), "launch", object, "full", threads]);
        let wavetap = command::wavetap().expect("the command is built");
        command::run(&wavetap, &arguments, &[], programs()).expect("it ends")
    };
    for strict in [false, true] {
        for stack in ["rocm", "hip"] {
            let fits = launch(stack, "512", strict);
            assert!(fits.out().ends_with("ended: hipSuccess\n"), "{stack}: {fits:?}");
            fits.exited(0).expect("it runs");
        }
        let refused = launch("hip", "1024", strict);
        assert!(refused.out().starts_with("launched: hipErrorLaunchOutOfResources\n"), "{refused:?}");
        assert!(refused.err().contains("16 waves and needs 128 vector registers"), "{refused:?}");
        let refused = launch("rocm", "1024", strict);
        let said = refused.err().to_string();
        assert!(said.contains("16 waves and needs 128 vector registers"), "{said}");
        // ROCr's names for the packet processor's error: of version 5.2, and later.
        let names = ["HSA_STATUS_ERROR_INVALID_ISA", "HSA_STATUS_ERROR_OUT_OF_REGISTERS"];
        assert!(names.iter().any(|name| said.contains(name)), "{said}");
        refused.exited(134).expect("signal 6");
    }
}

/// Of what counts in memory three workgroups fit where the program was told four: the original runs, on both stacks.
#[test]
fn a_cooperative_launch_has_the_workgroups_that_were_promised() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("cooperative");
    let mut compile = Command::new("clang++-19");
    compile.args(["-w", "-x", "hip", "-std=c++17", "-O2", "-mcode-object-version=4", "--offload-arch=gfx90a"]);
    compile.arg(format!("--rocm-device-lib-path={}", programs().join(".bitcode").display()));
    compile.arg(root().join("hip-emulator/tests/programs/cooperative.hip")).arg("-o").arg(&program);
    made(compile.arg("-lamdhip64"));
    let counted = |stack: &str| {
        let (finished, profile) = profile(&["--stack", stack, "--counters", "global"], &program, &[]);
        let text = finished.out().to_string();
        assert!(text.starts_with("4 workgroups on a multiprocessor\n") && text.ends_with("PASS\n"), "{finished:?}");
        finished.exited(1).expect("a dispatch is missing");
        profile.expect("a profile")
    };
    let real = counted("rocm");
    let why: Vec<_> = real.uncounted.iter().map(|each| (each.why, each.dispatches)).collect();
    assert_eq!(why, [(NotCounted::FewerWorkgroups, 1)]);
    // The launch of three workgroups, of four waves each.
    assert_eq!((real.kernels[0].dispatches, real.kernels[0].waves), (1, 12));
    assert_eq!(real, counted("hip"));
}

/// A kernel with 128 vector registers whose metadata allows 1024 work-items.
const FULL: &str = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx906\"
.amdhsa_code_object_version 4
.text
.globl full
.p2align 8
.type full,@function
full:
	s_endpgm
	.size full, . - full
	.rodata
	.p2align 6
	.amdhsa_kernel full
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_kernarg_size 8
		.amdhsa_next_free_vgpr 128
		.amdhsa_next_free_sgpr 16
	.end_amdhsa_kernel
	.amdgpu_metadata
amdhsa.kernels:
  - .args:
      - {.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 1024
    .name: full
    .private_segment_fixed_size: 0
    .sgpr_count: 16
    .symbol: full.kd
    .vgpr_count: 128
    .wavefront_size: 64
amdhsa.version: [1, 1]
	.end_amdgpu_metadata
";
