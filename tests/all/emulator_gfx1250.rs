//! What gfx1250 alone has: runs of registers across v256, and dependences that code waits for by itself.
//!
//! The assembler knows its predecessor, whose encodings of these instructions it has; others are words.

use std::path::Path;
use std::process::Command;

use crate::emulated::{Bench, compiler_is_there};

const LANES: u16 = 32;

/// A code object with one kernel, which has 512 vector registers, v1 = 16 × lane, s[4:5] = input and s[6:7] = output.
fn assemble(dir: &Path, body: &str) -> Vec<u8> {
    let (source, object, image) = (dir.join("k.s"), dir.join("k.o"), dir.join("k.co"));
    // A count of 256 for the predecessor is one of 512 here.
    let text = format!(
        ".amdhsa_code_object_version 5\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\ns_load_b128 s[4:7], \
            s[0:1], 0x0\n\
         v_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 4, v0\ns_wait_kmcnt 0x0\n{body}\ns_endpgm\n.rodata\n.p2align 6\n\
         .amdhsa_kernel k\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_next_free_vgpr 256\n.amdhsa_next_free_sgpr \
         40\n\
         .amdhsa_wavefront_size32 1\n.amdhsa_group_segment_fixed_size 1024\n.end_amdhsa_kernel\n"
    );
    std::fs::write(&source, text).expect("written");
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(program).args(arguments).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let first = ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx1200", "-c"].map(std::ffi::OsStr::new);
    run("clang-19", &[&first[..], &[source.as_ref(), "-o".as_ref(), object.as_ref()]].concat());
    run("ld.lld-19", &["-shared".as_ref(), object.as_ref(), "-o".as_ref(), image.as_ref()]);
    let mut bytes = std::fs::read(image).expect("a code object");
    // EF_AMDGPU_MACH_AMDGCN_GFX1250.
    bytes[0x30] = 0x49;
    bytes
}

/// What the kernel leaves of 4 words for each lane, on a seed of the strict mode.
fn result(body: &str, input: &[u32], seed: u64) -> Result<Vec<u32>, String> {
    let dir = tempfile::tempdir().expect("a directory");
    let image = assemble(dir.path(), body);
    let mut bench = Bench::new("gfx1250", seed, &image);
    let from = bench.buffer(input);
    let to = bench.buffer(&vec![0; input.len()]);
    bench.run("k", 1, LANES, 1024, &[from, to]).map_err(|fault| fault.to_string())?;
    Ok(bench.read(to, input.len()))
}

fn input() -> Vec<u32> {
    (0..4 * u32::from(LANES)).map(|n| 0xab00_0000 + n).collect()
}

/// `global_load_b128 v[254:257], v1, s[4:5]`.
const LOAD: &str = ".long 0xee05c004, 0x000000fe, 0x00000001";
/// `global_store_b128 v1, v[254:257], s[6:7]`.
const STORE: &str = ".long 0xee074006, 0x7f000000, 0x00000001";
/// `ds_store_b128 v1, v[254:257]` and `ds_load_b128 v[254:257], v1`.
const LDS_STORE: &str = ".long 0xdb7c0000, 0x0000fe01";
const LDS_LOAD: &str = ".long 0xdbfc0000, 0xfe000001";
/// `s_wait_xcnt 0`.
const WAIT_X: &str = ".long 0xbfc50000";

/// `s_set_vgpr_msb`: the high bits of the first three sources and of the destination.
fn high(sources: [u32; 3], destination: u32) -> String {
    let bits = sources[0] | sources[1] << 2 | sources[2] << 4 | destination << 6;
    format!(".long {:#x}", 0xbf86_0000 | bits)
}

#[test]
fn runs_across_v256_are_whole() {
    if !compiler_is_there() {
        return;
    }
    let clear = |registers: &[u32], destination| {
        let moves: String = registers.iter().map(|n| format!("v_mov_b32 v{n}, -1\n")).collect();
        format!("{}\n{moves}{}\n", high([0; 3], destination), high([0; 3], 0))
    };
    let body = format!(
        "{LOAD}\ns_wait_loadcnt 0x0\n{WAIT_X}\n{LDS_STORE}\ns_wait_dscnt 0x0\n{}{}{LDS_LOAD}\ns_wait_dscnt 0x0\n\
            {STORE}",
        clear(&[254, 255], 0),
        clear(&[0, 1], 1)
    );
    for seed in 0..4 {
        assert_eq!(result(&body, &input(), seed), Ok(input()));
    }
    // Without the load from LDS they are what they were set to.
    let body = format!("{LOAD}\ns_wait_loadcnt 0x0\n{WAIT_X}\n{}{}{STORE}", clear(&[254], 0), clear(&[1], 1));
    let expected: Vec<u32> = input()
        .into_iter()
        .enumerate()
        .map(|(n, word)| if n % 4 == 1 || n % 4 == 2 { word } else { u32::MAX })
        .collect();
    assert_eq!(result(&body, &input(), 0), Ok(expected));
}

/// `hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2)`.
const OFF: &str = "s_setreg_imm32_b32 hwreg(26, 0, 2), 2";

/// Runs with and without the line that begins with `fix: `; without it there must be a fault with these words.
fn needs(lines: &[&str], expected: &[&str]) {
    let prepare = format!("global_load_b128 v[4:7], v1, s[4:5]\ns_wait_loadcnt 0x0\n{WAIT_X}\ns_wait_alu 0x0\n{OFF}\n");
    let end = "\ns_wait_alu 0x0\nglobal_store_b128 v1, v[4:7], s[6:7]";
    let fixed: Vec<&str> = lines.iter().map(|line| line.trim_start_matches("fix: ")).collect();
    let broken: Vec<&str> = lines.iter().copied().filter(|line| !line.starts_with("fix: ")).collect();
    for seed in 0..4 {
        let found = result(&format!("{prepare}{}{end}", fixed.join("\n")), &input(), seed);
        assert!(found.is_ok(), "{lines:?}: {found:?}");
        let fault =
            result(&format!("{prepare}{}{end}", broken.join("\n")), &input(), seed).expect_err("a wait is missing");
        assert!(expected.iter().all(|text| fault.contains(text)), "{lines:?}: {fault}");
    }
}

#[test]
fn code_waits_for_vector_registers_by_itself() {
    if !compiler_is_there() {
        return;
    }
    let store = "global_store_b32 v1, v8, s[6:7]";
    needs(&["v_mov_b32 v8, 4", "fix: s_wait_alu 0xfff", store], &["hazard on v8", "with no wait for va_vdst"]);
    needs(
        &["v_mov_b32 v8, 4", "s_wait_alu 0xfff", store, WAIT_X, "fix: s_wait_alu 0xffe3", "v_mov_b32 v8, 5"],
        &["hazard on v8", "with no wait for vm_vsrc"],
    );
    // Registers above v255 are others.
    let (above, low) = (high([0; 3], 1), high([0; 3], 0));
    let store_above = format!("{}\n{store}\n{low}", high([0, 1, 0], 0));
    needs(
        &[&above, "v_mov_b32 v8, 4", &low, "fix: s_wait_alu 0xfff", &store_above],
        &["hazard on v264", "with no wait for va_vdst"],
    );
    let body = format!(
        "s_wait_alu 0x0\n{OFF}\n{above}\nv_mov_b32 v4, 4\n{low}\nglobal_load_b128 v[4:7], v1, s[4:5]\ns_wait_loadcnt \
            0x0\n"
    );
    assert_eq!(result(&format!("{body}global_store_b128 v1, v[4:7], s[6:7]"), &input(), 0), Ok(input()));
}

/// `v_wmma_f32_16x16x32_f16 v[32:39], v[64:71], v[72:79], v[32:39]`.
const MATRIX: &str = ".long 0xcc600020, 0x1c829140";

#[test]
fn large_matrices_are_counted_down_in_order() {
    if !compiler_is_there() {
        return;
    }
    let store = "global_store_b32 v1, v8, s[6:7]";
    let defined: String = (32..40).chain(64..80).map(|n| format!("v_mov_b32 v{n}, 0\n")).collect();
    let before = format!("{defined}s_wait_alu 0x0");
    // Two in flight are the matrices: what is before them is done. With three it may not be.
    needs(
        &[&before, "v_mov_b32 v8, 4", MATRIX, MATRIX, "fix: s_wait_alu 0x2fff", "s_wait_alu 0x3fff", store],
        &["hazard on v8", "with no wait for va_vdst"],
    );
    // What they read they have read when a vector instruction after them is done.
    let overwrites = "global_load_b32 v64, v1, s[4:5]";
    let moves = "v_mov_b32 v20, 0\nv_mov_b32 v21, 0";
    needs(
        &[&before, MATRIX, moves, "fix: s_wait_alu 0x1fff", "s_wait_alu 0x3fff", overwrites, "s_wait_loadcnt 0x0"],
        &["hazard on v64", "VALU reads VGPR", "with no wait for va_vdst"],
    );
    // Conversions to 64 bits are ordinary; arithmetic on 64 bits overtakes.
    let convert = "v_cvt_f64_u32 v[8:9], v4";
    needs(
        &[convert, moves, "fix: s_wait_alu 0x2fff", "s_wait_alu 0x3fff", store],
        &["hazard on v8", "with no wait for va_vdst"],
    );
    let add = "v_add_f64 v[8:9], v[4:5], v[6:7]";
    needs(
        &[add, moves, "fix: s_wait_alu 0xfff", "s_wait_alu 0x2fff", store],
        &["hazard on v8", "with no wait for va_vdst"],
    );
    // Transcendentals overtake.
    needs(
        &[&before, "v_mov_b32 v8, 4", "v_exp_f32 v9, v64", "fix: s_wait_alu 0xfff", "s_wait_alu 0x1fff", store],
        &["hazard on v8", "with no wait for va_vdst"],
    );
}

#[test]
fn the_mode_is_read_back() {
    if !compiler_is_there() {
        return;
    }
    let body = format!(
        "s_getreg_b32 s10, hwreg(26, 0, 2)\ns_wait_alu 0x0\n{OFF}\ns_getreg_b32 s11, hwreg(26, 0, 2)\nv_mov_b32 v4, \
            s10\nv_mov_b32 v5, s11\n\
         v_mov_b32 v6, 0\nv_mov_b32 v7, 0\ns_wait_alu 0x0\nglobal_store_b128 v1, v[4:7], s[6:7]"
    );
    assert_eq!(result(&body, &input(), 0), Ok([0, 2, 0, 0].repeat(usize::from(LANES))));
    for other in ["hwreg(26, 0, 2), 1", "hwreg(26, 0, 3), 6"] {
        let fault = result(&format!("s_setreg_imm32_b32 {other}"), &input(), 0).expect_err("another mode");
        assert!(fault.contains("undefined: scheduling mode"), "{fault}");
    }
}
