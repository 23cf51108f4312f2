//! Loads from memory to LDS that pass by the vector registers: where their bytes go, against the formula of the ISA
//! guides worked out here.

use crate::emulated::{Bench, compiler_is_there};
use wavetap::emulator::FaultKind;

const LANES: usize = 64;
/// What LDS holds before.
const BEFORE: u32 = 0xeeee_eeee;

/// A load: its code, bytes of a lane, bytes that it has in LDS, its offset, whether a buffer's descriptor and scalar
/// offset go into the address in memory.
struct Load {
    name: &'static str,
    code: &'static str,
    bytes: usize,
    stride: usize,
    offset: usize,
    buffer: bool,
}

const fn load(
    name: &'static str,
    code: &'static str,
    bytes: usize,
    stride: usize,
    offset: usize,
    buffer: bool,
) -> Load {
    Load { name, code, bytes, stride, offset, buffer }
}

const DWORDS: [Load; 6] = [
    load("buffer", "buffer_load_dword v4, s[12:15], s9 offen lds", 4, 4, 0, true),
    load("buffer_far", "buffer_load_dword v4, s[12:15], s9 offen offset:256 lds", 4, 4, 256, true),
    load("buffer_byte", "buffer_load_ubyte v4, s[12:15], s9 offen offset:3 lds", 1, 4, 3, true),
    load("buffer_short", "buffer_load_ushort v4, s[12:15], s9 offen offset:8 lds", 2, 4, 8, true),
    load("global", "global_load_lds_dword v4, s[4:5]", 4, 4, 0, false),
    load("global_far", "global_load_lds_dword v4, s[4:5] offset:512", 4, 4, 512, false),
];
/// Of gfx950, as LLVM 24 encodes them.
const WIDE: [Load; 4] = [
    load(
        "buffer_3",
        ".long 0xe0591020, 0x09030004 // buffer_load_dwordx3 v4, s[12:15], s9 offen offset:32 lds",
        12,
        16,
        32,
        true,
    ),
    load(
        "buffer_4",
        ".long 0xe05d1020, 0x09030004 // buffer_load_dwordx4 v4, s[12:15], s9 offen offset:32 lds",
        16,
        16,
        32,
        true,
    ),
    load("global_3", ".long 0xddf88020, 0x00040004 // global_load_lds_dwordx3 v4, s[4:5] offset:32", 12, 16, 32, false),
    load("global_4", ".long 0xddf48020, 0x00040004 // global_load_lds_dwordx4 v4, s[4:5] offset:32", 16, 16, 32, false),
];

/// Kernels that fill LDS, load to it, and store all of it. Lane n's bytes are at 20 n.
fn kernels(loads: &[&Load]) -> String {
    let mut text = ".amdhsa_code_object_version 5\n".to_owned();
    for Load { name, code, .. } in loads {
        text += &format!(
            ".text\n.globl {name}\n.p2align 8\n.type {name},@function\n{name}:\n\
             s_load_dwordx8 s[4:11], s[0:1], 0x0\ns_load_dwordx4 s[12:15], s[0:1], 0x20\nv_and_b32 v0, 0x3ff, v0\n\
             v_lshlrev_b32 v1, 2, v0\n\
             v_mul_u32_u24 v4, 20, v0\nv_mov_b32 v2, v1\nv_mov_b32 v3, {BEFORE:#x}\ns_waitcnt lgkmcnt(0)\ns_mov_b32 \
             s20, s10\n\
             0:\nds_write_b32 v2, v3\nv_add_u32 v2, 0x100, v2\ns_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\n\
             s_cbranch_scc1 0b\ns_waitcnt lgkmcnt(0)\n\
             s_mov_b32 m0, s8\ns_nop 4\n{code}\ns_waitcnt vmcnt(0)\ns_barrier\nv_mov_b32 v2, v1\ns_mov_b32 s20, s10\n\
             0:\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v2, v3, s[6:7]\nv_add_u32 v2, 0x100, v2\n\
             s_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 0b\ns_endpgm\n\
             .rodata\n.p2align 6\n.amdhsa_kernel {name}\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\
             .amdhsa_next_free_vgpr 8\n.amdhsa_next_free_sgpr 24\n\
             .amdhsa_accum_offset 8\n.end_amdhsa_kernel\n"
        );
    }
    text
}

/// What memory holds.
fn contents() -> Vec<u32> {
    (0..1024_u32).map(|n| n.wrapping_mul(0x9e37_79b9) ^ 0x1234_5678).collect()
}

fn bench(target: &str, loads: &[&Load]) -> Bench {
    let dir = tempfile::tempdir().expect("a directory");
    Bench::new(target, 1, &crate::emulated::assemble_text(dir.path(), target, &kernels(loads)))
}

/// Runs a load with a scalar offset of 64 and gives what is in LDS then.
fn run(bench: &mut Bench, load: &Load, m0: u32, lds: usize) -> Result<Vec<u32>, wavetap::emulator::Fault> {
    let (from, to) = (bench.buffer(&contents()), bench.buffer(&vec![0; lds / 4]));
    let rows = (lds / 256) as u64;
    let arguments = [from, to, u64::from(m0) | 64 << 32, rows, from, 4096 | 0x2_7000 << 32];
    bench.run(load.name, 1, LANES as u16, lds as u32, &arguments)?;
    Ok(bench.read(to, lds / 4))
}

/// LDS after a load, by the formula. `base` is what M0 comes to; lanes that begin beyond LDS do nothing.
fn expected(load: &Load, base: usize, lds: usize) -> Vec<u32> {
    let memory: Vec<u8> = contents().iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut found: Vec<u8> = std::iter::repeat_n(BEFORE.to_le_bytes(), lds / 4).flatten().collect();
    for lane in 0..LANES {
        let at = base + load.offset + load.stride * lane;
        let from = 20 * lane + load.offset + if load.buffer { 64 } else { 0 };
        if at < lds {
            let mut bytes = memory[from..from + load.bytes].to_vec();
            bytes.resize(load.bytes.max(4), 0);
            found[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }
    crate::emulated::words(&found)
}

fn check(target: &str, loads: &[&Load], cases: &[(u32, usize)], lds: usize) {
    let mut bench = bench(target, loads);
    for load in loads {
        for &(m0, base) in cases {
            let found = run(&mut bench, load, m0, lds)
                .unwrap_or_else(|fault| panic!("{target} {} with {m0:#x}: {fault}", load.name));
            let expected = expected(load, base, lds);
            let first = found.iter().zip(&expected).position(|(found, expected)| found != expected);
            assert!(first.is_none(), "{target} {} with M0 {m0:#x}: LDS differs first at dword {first:?}", load.name);
        }
    }
}

#[test]
fn the_offset_of_the_instruction_is_for_both_places() {
    if compiler_is_there() {
        let loads: Vec<&Load> = DWORDS.iter().collect();
        check("gfx90a", &loads[..4], &[(0, 0), (1024, 1024)], 4096);
        for target in ["gfx942", "gfx950"] {
            check(target, &loads, &[(0, 0), (1024, 1024)], 4096);
        }
        check("gfx950", &WIDE.iter().collect::<Vec<_>>(), &[(0, 0), (1024, 1024)], 4096);
    }
}

#[test]
fn as_many_bits_of_m0_count_as_lds_needs() {
    if compiler_is_there() {
        let loads: Vec<&Load> = DWORDS.iter().chain(&WIDE).collect();
        check("gfx950", &loads, &[(0x1_0000, 0x1_0000), (0x4_0400, 0x400), (0x2_4000, 0x2_4000)], 160 << 10);
        let loads: Vec<&Load> = DWORDS.iter().collect();
        check("gfx942", &loads, &[(0x1_0400, 0x400)], 4096);
    }
}

#[test]
fn flat_loads_drop_two_bits_of_m0_and_buffer_loads_do_not() {
    if compiler_is_there() {
        let [buffer, _, _, _, global, _] = &DWORDS;
        check("gfx950", &[global], &[(0x403, 0x400)], 4096);
        check("gfx950", &[buffer], &[(0x402, 0x402)], 4096);
    }
}

#[test]
fn lanes_of_a_buffer_load_that_are_not_in_lds_do_nothing() {
    if compiler_is_there() {
        let [buffer, far, _, _, global, _] = &DWORDS;
        for target in ["gfx942", "gfx950"] {
            check(target, &[buffer, far], &[(4096, 4096), (4000, 4000), (0xffff, 0xffff), (0x7fff_ffff, 0xffff)], 4096);
            let fault = run(&mut bench(target, &[global]), global, 4000, 4096).expect_err("lane 24 is beyond LDS");
            assert!(matches!(fault.kind, FaultKind::LdsBounds { .. }), "{fault}");
            let fault = run(&mut bench(target, &[buffer]), buffer, 4094, 4096).expect_err("lane 0 is in LDS in part");
            assert!(matches!(fault.kind, FaultKind::LdsBounds { .. }), "{fault}");
        }
    }
}
