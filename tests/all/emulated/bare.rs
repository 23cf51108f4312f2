//! Assembled kernels without a frame: what a kernel of a few lines does on a target. gfx1250 is assembled as gfx1200,
//! whose encodings it shares; what only it has are `.long` words, taken from LLVM 24's assembler. gfx950 is assembled
//! as gfx942.

use std::path::Path;
use std::process::Command;

use wavetap::emulator::{Device, Options};
use wavetap::isa::Target;

use super::Bench;

/// A kernel whose argument words are in `s[4:7]` and whose `v0` is the work-item.
pub fn kernel(target: &str, name: &str, lds: u32, body: &str) -> String {
    let generation = Target::by_name(target).expect("a target").generation();
    let wait = if generation >= 12 { "s_wait_kmcnt 0" } else { "s_waitcnt lgkmcnt(0)" };
    let wave = if generation >= 10 { ".amdhsa_wavefront_size32 1\n" } else { "" };
    let accum = if matches!(target, "gfx90a" | "gfx942" | "gfx950") { ".amdhsa_accum_offset 128\n" } else { "" };
    format!(
        ".text\n.globl {name}\n.p2align 8\n.type {name},@function\n{name}:\ns_load_dwordx4 s[4:7], s[0:1], 0x0\n\
         v_and_b32 v0, 0x3ff, v0\n{wait}\n\
         {body}\ns_endpgm\n.rodata\n.p2align 6\n.amdhsa_kernel {name}\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\
         .amdhsa_next_free_vgpr 128\n\
         .amdhsa_next_free_sgpr 64\n.amdhsa_group_segment_fixed_size {lds}\n{wave}{accum}.end_amdhsa_kernel\n"
    )
}

/// The code object of such kernels.
pub fn assemble(target: &str, text: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name).into_os_string();
    std::fs::write(at("bare.s"), format!(".amdhsa_code_object_version 5\n{text}")).expect("written");
    // EF_AMDGPU_MACH_AMDGCN_GFX1250 and EF_AMDGPU_MACH_AMDGCN_GFX950.
    let (cpu, machine) = match target {
        "gfx1250" => ("gfx1200", Some(0x49)),
        "gfx950" => ("gfx942", Some(0x4f)),
        _ => (target, None),
    };
    let cpu = format!("-mcpu={cpu}");
    run("clang-19", &["-target", "amdgcn-amd-amdhsa", &cpu, "-c", "-o"], &[&at("bare.o"), &at("bare.s")]);
    run("ld.lld-19", &["-shared", "-o"], &[&at("bare.co"), &at("bare.o")]);
    let mut bytes = std::fs::read(Path::new(&at("bare.co"))).expect("a code object");
    if let Some(machine) = machine {
        bytes[0x30] = machine;
    }
    bytes
}

fn run(program: &str, options: &[&str], files: &[&std::ffi::OsString]) {
    let output = Command::new(program).args(options).args(files).output().expect("it starts");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A device, strict or not, with such kernels.
pub fn bench(target: &str, strict: bool, seed: u64, image: &[u8]) -> Bench {
    let options = Options { strict, seed, fuel: 200_000_000, ..Options::default() };
    let mut device = Device::new(Target::by_name(target).expect("a target"), options);
    let object = device.load(image).expect("it loads");
    Bench::on(device, object, image)
}
