//! Compiles one source twice, for a GPU and for this computer, and runs both: the computer's result is the reference of
//! the emulator's.
#![allow(dead_code)]

pub mod bare;
pub mod newer;
pub mod small_float;

use std::path::Path;
use std::process::Command;

use wavetap::emulator::{Device, Dispatch, DispatchStats, Fault, LoadedObject, Options};
use wavetap::isa::Target;

/// The five targets.
pub const TARGETS: [&str; 5] = ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942"];

/// What every source begins with: kernels without headers or device library.
pub const PRELUDE: &str = r#"
typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned u32; typedef int i32; typedef unsigned long long u64; typedef long long i64;
#ifdef __HIP__
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 1024)))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
static inline DEVICE u32 local_id() { return __builtin_amdgcn_workitem_id_x(); }
static inline DEVICE u32 group_id() { return __builtin_amdgcn_workgroup_id_x(); }
static inline DEVICE u32 group_size() { return __builtin_amdgcn_workgroup_size_x(); }
static inline DEVICE u32 global_id() { return group_id() * group_size() + local_id(); }
static inline DEVICE void barrier() { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
__builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); }
#else
#define DEVICE
#endif
"#;

/// A source whose function `body(i, in, out)` computes `words` results for item `i` from its `inputs` words, wrapped
/// for both machines.
pub fn both(body: &str, inputs: usize, words: usize) -> (String, String) {
    let device = format!(
        "{PRELUDE}{body}\nKERNEL void kernel_main(const u32 *in, u32 *out, u32 n) {{ u32 i = global_id(); if (i < n) \
            body(in + i * {inputs}, out + i * {words}); }}\n"
    );
    let host = format!(
        "#include <cstdio>\n#include <vector>\n{PRELUDE}{body}\nint main(int c, char **v) {{ FILE *f = fopen(v[1], \
            \"rb\"); u32 n; fread(&n, 4, 1, f);
         std::vector<u32> in(n * {inputs}), out(n * {words}); fread(in.data(), 4, in.size(), f); fclose(f);
         for (u32 i = 0; i < n; ++i) body(&in[i * {inputs}], &out[i * {words}]);
         f = fopen(v[2], \"wb\"); fwrite(out.data(), 4, out.size(), f); fclose(f); }}\n"
    );
    (device, host)
}

/// Compiles device code to a bare code object.
pub fn compile(dir: &Path, target: &str, source: &str, extra: &[&str]) -> Vec<u8> {
    let (input, output) = (dir.join("kernel.hip"), dir.join(format!("kernel-{target}.co")));
    std::fs::write(&input, source).expect("written");
    let offload = format!("--offload-arch={target}");
    let result = Command::new("clang++-19")
        .args([
            "-w",
            "-x",
            "hip",
            &offload,
            "--offload-device-only",
            "--no-gpu-bundle-output",
            "-nogpuinc",
            "-ffp-contract=off",
        ])
        .args(if extra.iter().any(|flag| flag.starts_with("--rocm-device-lib-path")) {
            &[][..]
        } else {
            &["-nogpulib"][..]
        })
        .args(if extra.iter().any(|flag| flag.starts_with("-O")) { &[][..] } else { &["-O2"][..] })
        .args(extra)
        .arg(&input)
        .arg("-o")
        .arg(&output)
        .output()
        .expect("clang++-19 starts");
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    std::fs::read(output).expect("code object")
}

/// Compiles and runs the host's version.
pub fn host(dir: &Path, source: &str, inputs: &[u32], items: u32) -> Vec<u32> {
    let (code, program, data, result) = (dir.join("host.cpp"), dir.join("host"), dir.join("in"), dir.join("out"));
    std::fs::write(&code, source).expect("written");
    let output = Command::new("clang++-19")
        .args(["-w", "-O1", "-fno-builtin", "-ffp-contract=off", "-x", "c++"])
        .arg(&code)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut bytes = items.to_le_bytes().to_vec();
    bytes.extend(inputs.iter().flat_map(|word| word.to_le_bytes()));
    std::fs::write(&data, bytes).expect("written");
    assert!(Command::new(&program).arg(&data).arg(&result).status().expect("it starts").success());
    words(&std::fs::read(result).expect("result"))
}

pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

pub fn device(target: &str, seed: u64) -> Device {
    let target = Target::by_name(target).expect("target");
    Device::new(target, Options { strict: true, seed, fuel: 200_000_000, trace: true, ..Options::default() })
}

/// A device with one loaded object.
pub struct Bench {
    pub device: Device,
    pub object: LoadedObject,
    image: Vec<u8>,
}

impl Bench {
    pub fn new(target: &str, seed: u64, image: &[u8]) -> Bench {
        let mut device = device(target, seed);
        let object = device.load(image).expect("it loads");
        Bench { device, object, image: image.to_vec() }
    }

    /// With a device that was made otherwise.
    pub fn on(device: Device, object: LoadedObject, image: &[u8]) -> Bench {
        Bench { device, object, image: image.to_vec() }
    }

    pub fn buffer(&mut self, contents: &[u32]) -> u64 {
        let address = self.device.malloc(4 * contents.len() as u64, 256).expect("memory");
        let bytes: Vec<u8> = contents.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.device.write(address, &bytes).expect("written");
        address
    }

    pub fn read(&self, address: u64, count: usize) -> Vec<u32> {
        let mut bytes = vec![0; 4 * count];
        self.device.read(address, &mut bytes).expect("read");
        words(&bytes)
    }

    /// Runs a kernel with its arguments as 64-bit words; the sizes of segments come from the kernel descriptor.
    pub fn run(
        &mut self,
        kernel: &str,
        groups: u32,
        group: u16,
        lds: u32,
        arguments: &[u64],
    ) -> Result<DispatchStats, Fault> {
        let descriptor = self.object.kernel(kernel).expect("kernel");
        let mut kd = [0; 64];
        self.device.read(descriptor, &mut kd).expect("descriptor");
        let word = |at: usize| u32::from_le_bytes([kd[at], kd[at + 1], kd[at + 2], kd[at + 3]]);
        let kernarg = self.device.malloc(1024, 256).expect("memory");
        let mut bytes: Vec<u8> = arguments.iter().flat_map(|word| word.to_le_bytes()).collect();
        // Hidden arguments of code object v5: block counts and group sizes.
        let hidden = bytes.len();
        bytes.resize(hidden + 256, 0);
        bytes[hidden..hidden + 4].copy_from_slice(&groups.to_le_bytes());
        bytes[hidden + 4..hidden + 12].copy_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0]);
        bytes[hidden + 12..hidden + 14].copy_from_slice(&group.to_le_bytes());
        bytes[hidden + 14..hidden + 18].copy_from_slice(&[1, 0, 1, 0]);
        self.device.write(kernarg, &bytes).expect("arguments");
        let dispatch = Dispatch {
            kernel_object: descriptor,
            grid: [groups * u32::from(group), 1, 1],
            workgroup: [group, 1, 1],
            // Dynamic stacks need more than the descriptor says: as HIP, take some more.
            private_segment_size: if word(4) == 0 { 0 } else { word(4).max(4096) },
            group_segment_size: word(0) + lds,
            kernarg_address: kernarg,
            dispatch_id: 1,
        };
        let result = self.device.dispatch(&dispatch);
        self.device.free(kernarg).expect("freed");
        result
    }
}

/// Interesting bit patterns, then pseudo-random ones.
pub fn patterns(count: usize) -> Vec<u32> {
    const CORNERS: [u32; 24] = [
        0,
        1,
        2,
        3,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x8000_0001,
        0x3f80_0000,
        0xbf80_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x0000_0100,
        0x0080_0000,
        0x007f_ffff,
        0x7f7f_ffff,
        0x4b00_0000,
        0xcf00_0000,
        0x4f00_0000,
        0x3eaa_aaab,
        0x4049_0fdb,
        0x5555_5555,
        0xffff_8000,
    ];
    let mut state = 12345_u64;
    (0..count)
        .map(|n| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = (state >> 32) as u32;
            match n % 4 {
                0 | 1 => CORNERS[(state >> 40) as usize % CORNERS.len()],
                _ => random,
            }
        })
        .collect()
}

pub fn compiler_is_there() -> bool {
    let found = Command::new("clang++-19").arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: clang++-19 is not installed; this test compiles its own kernels");
    }
    found
}

/// Runs `body` on every target and compares with the host, word by word; `same` says whether two results agree.
pub fn compare(body: &str, inputs: usize, results: usize, flags: &[&str], same: fn(u32, u32) -> bool) {
    compare_on(&TARGETS, body, inputs, results, flags, same);
}

/// [`compare`] on some targets.
pub fn compare_on(
    targets: &[&str],
    body: &str,
    inputs: usize,
    results: usize,
    flags: &[&str],
    same: fn(u32, u32) -> bool,
) {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    let items = 700_u32;
    let data = patterns(items as usize * inputs);
    let (source, host_source) = both(body, inputs, results);
    let expected = host(dir.path(), &host_source, &data, items);
    for target in targets {
        let image = compile(dir.path(), target, &source, flags);
        for seed in [1, 2] {
            let mut bench = Bench::new(target, seed, &image);
            let (input, output) = (bench.buffer(&data), bench.buffer(&vec![0; expected.len()]));
            let stats = bench
                .run("kernel_main", 6, 128, 0, &[input, output, u64::from(items)])
                .unwrap_or_else(|fault| panic!("{target}: {fault}"));
            assert_eq!(stats.waves, 12);
            let found = bench.read(output, expected.len());
            for (n, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let item = n / results;
                assert!(
                    same(*found, *expected),
                    "{target}: item {item} result {}: {found:#x}, host {expected:#x}, inputs {:x?}",
                    n % results,
                    &data[item * inputs..(item + 1) * inputs]
                );
            }
        }
    }
}

/// A kernel in assembly: each lane has its four input words in `v4..v7`, `v0` is its id, and its results are `v8..v11`.
pub struct Snippet {
    pub name: &'static str,
    pub code: &'static str,
}

/// The text of snippets, one kernel each.
pub fn text_of(snippets: &[Snippet], unified: bool) -> String {
    let mut text = String::from(".amdhsa_code_object_version 5\n");
    for Snippet { name, code } in snippets {
        // `v255` is the scratch address of the template.
        text += &format!(
            ".text\n.globl {name}\n.p2align 8\n.type {name},@function\n{name}:\n s_load_dwordx4 s[4:7], s[0:1], 0x0\n \
                v_and_b32 v0, 0x3ff, v0\n v_lshlrev_b32 v1, 4, v0\n s_waitcnt lgkmcnt(0)\n global_load_dwordx4 v[4:7], \
                v1, s[4:5]\n v_mov_b32 v8, 0\n v_mov_b32 v9, 0\n v_mov_b32 v10, 0\n v_mov_b32 v11, 0\n s_waitcnt \
                vmcnt(0)\n s_nop 7\n{code}\n s_nop 7\n s_nop 7\n s_nop 7\n global_store_dwordx4 v1, v[8:11], s[6:7]\n \
                s_endpgm\n\
             .rodata\n.p2align 6\n.amdhsa_kernel {name}\n .amdhsa_user_sgpr_kernarg_segment_ptr 1\n \
             .amdhsa_next_free_vgpr {vgprs}\n .amdhsa_next_free_sgpr 40\n .amdhsa_group_segment_fixed_size 4096\n\
             {accum}.end_amdhsa_kernel\n",
            vgprs = if unified { 128 } else { 64 },
            accum = if unified { " .amdhsa_accum_offset 64\n" } else { "" },
        );
    }
    text
}

/// Assembles snippets to one code object, one kernel each.
pub fn assemble(dir: &Path, target: &str, snippets: &[Snippet]) -> Result<Vec<u8>, String> {
    let text = text_of(snippets, matches!(target, "gfx90a" | "gfx942"));
    let (source, object, image) = (dir.join("snippets.s"), dir.join("snippets.o"), dir.join("snippets.co"));
    std::fs::write(&source, text).expect("written");
    let cpu = format!("-mcpu={target}");
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(program).args(arguments).output().expect("it starts");
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    };
    run(
        "clang-19",
        &[
            "-target".as_ref(),
            "amdgcn-amd-amdhsa".as_ref(),
            cpu.as_ref(),
            "-c".as_ref(),
            source.as_ref(),
            "-o".as_ref(),
            object.as_ref(),
        ],
    )?;
    run("ld.lld-19", &["-shared".as_ref(), object.as_ref(), "-o".as_ref(), image.as_ref()])?;
    Ok(std::fs::read(image).expect("code object"))
}

/// Processors whose code is assembled for a predecessor, which has the same encodings of most instructions; and their
/// EF_AMDGPU_MACH. What the predecessor lacks is written as words.
const NEWER: [(&str, &str, u8); 2] = [("gfx950", "gfx942", 0x4f), ("gfx1250", "gfx1200", 0x49)];

/// Assembles a text, for a target that this LLVM does not know as for its predecessor.
pub fn assemble_text(dir: &Path, target: &str, text: &str) -> Vec<u8> {
    assemble_with(dir, target, text, &[])
}

/// The same, with further options of the compiler.
pub fn assemble_with(dir: &Path, target: &str, text: &str, options: &[&str]) -> Vec<u8> {
    let (source, object, image) = (dir.join("text.s"), dir.join("text.o"), dir.join("text.co"));
    std::fs::write(&source, text).expect("written");
    let newer = NEWER.iter().find(|(name, ..)| *name == target);
    let cpu = format!("-mcpu={}", newer.map_or(target, |(_, known, _)| known));
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(program).args(arguments).output().expect("it starts");
        assert!(output.status.success(), "{target}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let mut arguments: Vec<&std::ffi::OsStr> =
        ["-target", "amdgcn-amd-amdhsa", &cpu, "-c"].into_iter().map(std::ffi::OsStr::new).collect();
    arguments.extend(options.iter().map(std::ffi::OsStr::new));
    arguments.extend([source.as_os_str(), "-o".as_ref(), object.as_os_str()]);
    run("clang-19", &arguments);
    run("ld.lld-19", &["-shared".as_ref(), object.as_ref(), "-o".as_ref(), image.as_ref()]);
    let mut bytes = std::fs::read(image).expect("a code object");
    if let Some((.., mach)) = newer {
        bytes[0x30] = *mach;
    }
    bytes
}

impl Bench {
    /// Runs a snippet on one full wave; gives the four result words of each lane.
    pub fn snippet(&mut self, name: &str, inputs: &[[u32; 4]; 64]) -> Result<Vec<[u32; 4]>, Fault> {
        let (input, output) = (self.buffer(inputs.as_flattened()), self.buffer(&[0; 256]));
        self.run(name, 1, 64, 0, &[input, output])?;
        Ok(self.read(output, 256).chunks(4).map(|c| [c[0], c[1], c[2], c[3]]).collect())
    }
}
