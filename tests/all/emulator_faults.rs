//! Strict mode finds what is wrong with a kernel: each of these snippets breaks one rule, and beside it is the same
//! snippet made right.

use crate::emulated::{Bench, Snippet, assemble, compiler_is_there};
use wavetap::emulator::FaultKind;

/// What a fault must be.
type Check = fn(&FaultKind) -> bool;

struct Case {
    wrong: Snippet,
    right: Snippet,
    check: Check,
    targets: &'static [&'static str],
}

const ALL: &[&str] = &["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942"];
const CDNA3: &[&str] = &["gfx942"];

macro_rules! case {
    ($name:ident, $targets:expr, $wrong:expr, $right:expr, $check:expr) => {
        Case {
            wrong: Snippet { name: concat!(stringify!($name), "_wrong"), code: $wrong },
            right: Snippet { name: concat!(stringify!($name), "_right"), code: $right },
            check: $check,
            targets: $targets,
        }
    };
}

fn missing_wait(kind: &FaultKind, name: &str, counter_name: &str) -> bool {
    matches!(kind, FaultKind::MissingWait { register, counter, .. } if **register == *name &&
        **counter == *counter_name)
}

fn hazard(kind: &FaultKind, states: u32) -> bool {
    matches!(kind, FaultKind::Hazard { required, .. } if *required == states)
}

fn cases() -> Vec<Case> {
    vec![
        case!(
            load_use,
            ALL,
            "global_load_dword v8, v1, s[4:5]\nv_add_u32 v9, v8, v8",
            "global_load_dword v8, v1, s[4:5]\ns_waitcnt vmcnt(0)\nv_add_u32 v9, v8, v8",
            |k| { missing_wait(k, "v8", "vmcnt") }
        ),
        case!(
            load_overwrite,
            ALL,
            "global_load_dword v8, v1, s[4:5]\nv_mov_b32 v8, 1",
            "global_load_dword v8, v1, s[4:5]\ns_waitcnt vmcnt(0)\nv_mov_b32 v8, 1",
            |k| matches!(k, FaultKind::MissingWait { overwritten: true, .. })
        ),
        // Two loads: waiting for one leaves the second.
        case!(
            counted_wait,
            ALL,
            "global_load_dword v8, v1, s[4:5]\nglobal_load_dword v9, v1, s[4:5]\ns_waitcnt vmcnt(1)\nv_mov_b32 v10, v9",
            "global_load_dword v8, v1, s[4:5]\nglobal_load_dword v9, v1, s[4:5]\ns_waitcnt vmcnt(1)\nv_mov_b32 v10, \
                v8\ns_waitcnt vmcnt(0)\nv_mov_b32 v10, v9",
            |k| missing_wait(k, "v9", "vmcnt")
        ),
        // Scalar loads come back in any order: a count other than zero proves nothing.
        case!(
            scalar_order,
            ALL,
            "s_load_dword s8, s[4:5], 0x0\ns_load_dword s9, s[4:5], 0x4\ns_waitcnt lgkmcnt(1)\ns_add_u32 s10, s8, 1",
            "s_load_dword s8, s[4:5], 0x0\ns_load_dword s9, s[4:5], 0x4\ns_waitcnt lgkmcnt(0)\ns_add_u32 s10, s8, 1",
            |k| missing_wait(k, "s8", "lgkmcnt")
        ),
        case!(
            lds_wait,
            ALL,
            "v_lshlrev_b32 v2, 2, v0\nds_write_b32 v2, v4\nds_read_b32 v8, v2\nv_mov_b32 v9, v8",
            "v_lshlrev_b32 v2, 2, v0\nds_write_b32 v2, v4\nds_read_b32 v8, v2\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v9, v8",
            |k| missing_wait(k, "v8", "lgkmcnt")
        ),
        // A flat load needs both counters.
        case!(
            flat_wait,
            ALL,
            "v_mov_b32 v2, s4\nv_mov_b32 v3, s5\nflat_load_dword v8, v[2:3]\nglobal_load_dword v9, v1, s[4:5]\n\
                s_waitcnt vmcnt(1)\nv_mov_b32 v10, v8",
            "v_mov_b32 v2, s4\nv_mov_b32 v3, s5\nflat_load_dword v8, v[2:3]\nglobal_load_dword v9, v1, s[4:5]\n\
                s_waitcnt vmcnt(0) lgkmcnt(0)\nv_mov_b32 v10, v8",
            |k| missing_wait(k, "v8", "vmcnt and lgkmcnt")
        ),
        case!(
            outside,
            ALL,
            "v_mov_b32 v2, 0x400000\nglobal_load_dword v8, v2, s[4:5]\ns_waitcnt vmcnt(0)",
            "global_load_dword v8, v1, s[4:5]\ns_waitcnt vmcnt(0)",
            |k| { matches!(k, FaultKind::Memory { nearest: Some(_), .. }) }
        ),
        case!(
            outside_lds,
            ALL,
            "v_mov_b32 v2, 0x1000\nds_write_b32 v2, v4",
            "v_mov_b32 v2, 0xffc\nds_write_b32 v2, v4",
            |k| { matches!(k, FaultKind::LdsBounds { offset: 0x1000, allocated: 4096, .. }) }
        ),
        case!(register_bounds, ALL, "v_mov_b32 v200, 0", "v_mov_b32 v60, 0", |k| matches!(
            k,
            FaultKind::RegisterBounds { .. }
        )),
        case!(scalar_bounds, ALL, "s_mov_b32 s90, 0", "s_mov_b32 s39, 0", |k| matches!(
            k,
            FaultKind::RegisterBounds { .. }
        )),
        case!(
            misaligned_atomic,
            ALL,
            "v_or_b32 v2, 2, v1\nglobal_atomic_add v2, v4, s[6:7]",
            "global_atomic_add v1, v4, s[6:7]",
            |k| { matches!(k, FaultKind::Misaligned { align: 4, .. }) }
        ),
        case!(trap, ALL, "s_trap 2", "s_trap 3", |k| matches!(k, FaultKind::Trap { id: 2 })),
        case!(
            scalar_to_memory,
            ALL,
            "v_readfirstlane_b32 s8, v4\ns_mov_b32 s8, s4\nv_readfirstlane_b32 s9, v5\nglobal_load_dword v8, v1, \
                s[8:9]",
            "v_mov_b32 v2, s4\nv_mov_b32 v3, s5\nv_readfirstlane_b32 s8, v2\nv_readfirstlane_b32 s9, v3\ns_nop 4\n\
                global_load_dword v8, v1, s[8:9]\ns_waitcnt vmcnt(0)",
            |k| hazard(k, 5)
        ),
        case!(
            div_fmas,
            ALL,
            "v_cmp_eq_u32 vcc, v4, v5\ns_nop 2\nv_div_fmas_f32 v8, v4, v5, v6",
            "v_cmp_eq_u32 vcc, v4, v5\ns_nop 3\nv_div_fmas_f32 v8, v4, v5, v6",
            |k| { hazard(k, 4) }
        ),
        case!(
            lane_select,
            ALL,
            "v_readfirstlane_b32 s8, v0\ns_nop 2\nv_readlane_b32 s9, v4, s8",
            "v_readfirstlane_b32 s8, v0\ns_nop 3\nv_readlane_b32 s9, v4, s8",
            |k| { hazard(k, 4) }
        ),
        case!(
            dpp_read,
            ALL,
            "v_mov_b32 v9, v4\nv_mov_b32_dpp v8, v9 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
            "v_mov_b32 v9, v4\ns_nop 1\nv_mov_b32_dpp v8, v9 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
            |k| hazard(k, 2)
        ),
        case!(
            dpp_exec,
            ALL,
            "v_cmpx_ge_u32 vcc, v0, v0\ns_nop 3\nv_mov_b32_dpp v8, v4 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
            "v_cmpx_ge_u32 vcc, v0, v0\ns_nop 4\nv_mov_b32_dpp v8, v4 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
            |k| hazard(k, 5)
        ),
        case!(
            hardware_register,
            ALL,
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\ns_nop 0\ns_getreg_b32 s8, hwreg(HW_REG_MODE)",
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\ns_nop 1\ns_getreg_b32 s8, hwreg(HW_REG_MODE)",
            |k| hazard(k, 2)
        ),
        case!(
            wide_store,
            ALL,
            "global_store_dwordx4 v1, v[4:7], s[6:7]\nv_mov_b32 v5, 0",
            "global_store_dwordx4 v1, v[4:7], s[6:7]\ns_nop 1\nv_mov_b32 v5, 0",
            |k| { matches!(k, FaultKind::Hazard { required: 1 | 2, .. }) }
        ),
        case!(
            half_of_vcc,
            ALL,
            "s_mov_b64 vcc, 0\ns_nop 0\ns_mov_b32 vcc_lo, 0\ns_cbranch_vccz .Lnext\n.Lnext:",
            "s_mov_b32 vcc_lo, 0\ns_mov_b64 vcc, vcc\ns_nop 0",
            |k| { matches!(k, FaultKind::Hazard { rule, .. } if rule.contains("VCCZ")) }
        ),
        case!(
            transcendental,
            CDNA3,
            "v_exp_f32 v8, v4\nv_mov_b32 v9, v8",
            "v_exp_f32 v8, v4\ns_nop 0\nv_mov_b32 v9, v8",
            |k| hazard(k, 1)
        ),
        case!(
            scalar_to_vector,
            CDNA3,
            "v_readfirstlane_b32 s8, v4\nv_mov_b32 v9, s8",
            "v_readfirstlane_b32 s8, v4\ns_nop 1\nv_mov_b32 v9, s8",
            |k| hazard(k, 2)
        ),
        case!(
            exec_to_lane,
            CDNA3,
            "v_cmpx_ge_u32 vcc, v0, v0\ns_nop 2\nv_readlane_b32 s8, v4, 0",
            "v_cmpx_ge_u32 vcc, v0, v0\ns_nop 3\nv_readlane_b32 s8, v4, 0",
            |k| { hazard(k, 4) }
        ),
        case!(
            vector_to_lane,
            CDNA3,
            "v_mov_b32 v9, v4\nv_readlane_b32 s8, v9, 0",
            "v_mov_b32 v9, v4\ns_nop 0\nv_readlane_b32 s8, v9, 0",
            |k| hazard(k, 1)
        ),
        // The objects may run with XNACK: a memory instruction may be replayed, so its neighbours must not overwrite
        // its address.
        case!(
            replayed_scalar,
            ALL,
            "s_mov_b64 s[10:11], s[4:5]\ns_load_dword s8, s[10:11], 0x0\ns_load_dwordx2 s[10:11], s[4:5], 0x0\n\
                s_waitcnt lgkmcnt(0)",
            "s_mov_b64 s[10:11], s[4:5]\ns_load_dword s8, s[10:11], 0x0\ns_nop 0\ns_load_dwordx2 s[10:11], s[4:5], \
                0x0\ns_waitcnt lgkmcnt(0)",
            |k| hazard(k, 1)
        ),
        case!(
            replayed_vector,
            ALL,
            "v_mov_b32 v2, v1\nglobal_load_dword v8, v2, s[4:5]\nglobal_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)",
            "v_mov_b32 v2, v1\nglobal_load_dword v8, v2, s[4:5]\ns_nop 0\nglobal_load_dword v2, v1, s[4:5]\ns_waitcnt \
                vmcnt(0)",
            |k| hazard(k, 1)
        ),
        // Matrix instructions: 2 passes read by the vector ALU, and by memory; overwritten; its accumulator
        // overwritten; fresh inputs.
        case!(
            matrix_read,
            &["gfx90a"],
            "v_mfma_f32_4x4x1f32 v[8:11], v4, v5, 0\ns_nop 3\nv_mov_b32 v20, v8",
            "v_mfma_f32_4x4x1f32 v[8:11], v4, v5, 0\ns_nop 4\nv_mov_b32 v20, v8",
            |k| hazard(k, 5)
        ),
        case!(
            matrix_store,
            &["gfx90a"],
            "v_mfma_f32_16x16x4f32 v[8:11], v4, v5, 0\ns_nop 9\nglobal_store_dword v1, v8, s[6:7]",
            "v_mfma_f32_16x16x4f32 v[8:11], v4, v5, 0\ns_nop 10\nglobal_store_dword v1, v8, s[6:7]",
            |k| hazard(k, 11)
        ),
        case!(
            matrix_overwrite,
            CDNA3,
            "v_mfma_f32_32x32x2f32 v[8:23], v4, v5, 0\ns_nop 15\ns_nop 0\nv_mov_b32 v9, 0",
            "v_mfma_f32_32x32x2f32 v[8:23], v4, v5, 0\ns_nop 15\ns_nop 1\nv_mov_b32 v9, 0",
            |k| hazard(k, 18)
        ),
        case!(
            matrix_accumulator,
            &["gfx90a"],
            "v_mfma_f32_16x16x4f32 v[20:23], v4, v5, v[24:27]\ns_nop 5\nv_mov_b32 v24, 0",
            "v_mfma_f32_16x16x4f32 v[20:23], v4, v5, v[24:27]\ns_nop 6\nv_mov_b32 v24, 0",
            |k| hazard(k, 7)
        ),
        case!(
            matrix_chain,
            &["gfx90a"],
            "v_mfma_f32_16x16x4f32 v[20:23], v4, v5, v[24:27]\nv_mfma_f32_16x16x4f32 v[20:23], v20, v5, v[20:23]",
            "v_mfma_f32_16x16x4f32 v[20:23], v4, v5, v[24:27]\nv_mfma_f32_16x16x4f32 v[20:23], v4, v5, v[20:23]",
            |k| hazard(k, 11)
        ),
        case!(
            matrix_input,
            &["gfx90a", "gfx942"],
            "v_mov_b32 v30, v4\ns_nop 0\nv_mfma_f32_4x4x1f32 v[20:23], v30, v5, 0",
            "v_mov_b32 v30, v4\ns_nop 1\nv_mfma_f32_4x4x1f32 v[20:23], v30, v5, 0",
            |k| hazard(k, 2)
        ),
        case!(
            matrix_xf32,
            CDNA3,
            "v_mfma_f32_16x16x8_xf32 v[8:11], v[4:5], v[6:7], 0\ns_nop 5\nv_mov_b32 v20, v8",
            "v_mfma_f32_16x16x8_xf32 v[8:11], v[4:5], v[6:7], 0\ns_nop 6\nv_mov_b32 v20, v8",
            |k| hazard(k, 7)
        ),
        case!(
            accumulator_read,
            &["gfx908"],
            "v_mfma_f32_4x4x1f32 a[0:3], v4, v5, a[0:3]\ns_nop 2\nv_accvgpr_read_b32 v8, a0",
            "v_mfma_f32_4x4x1f32 a[0:3], v4, v5, a[0:3]\ns_nop 3\nv_accvgpr_read_b32 v8, a0",
            |k| hazard(k, 4)
        ),
        case!(
            dot_read,
            &["gfx90a", "gfx942"],
            "v_dot4_i32_i8 v20, v4, v5, v6\ns_nop 1\nv_mov_b32 v21, v20",
            "v_dot4_i32_i8 v20, v4, v5, v6\ns_nop 2\nv_mov_b32 v21, v20",
            |k| { hazard(k, 3) }
        ),
    ]
}

#[test]
fn every_broken_rule_is_found() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    for target in ALL {
        let cases: Vec<Case> = cases().into_iter().filter(|case| case.targets.contains(target)).collect();
        let snippets: Vec<Snippet> = cases
            .iter()
            .flat_map(|case| [&case.wrong, &case.right])
            .map(|snippet| Snippet { name: snippet.name, code: snippet.code })
            .collect();
        let image = assemble(dir.path(), target, &snippets).expect("assembles");
        let inputs: [[u32; 4]; 64] = std::array::from_fn(|lane| [lane as u32 + 1, 2, 3, 4]);
        for case in &cases {
            for seed in 0..4 {
                let fault =
                    Bench::new(target, seed, &image).snippet(case.wrong.name, &inputs).expect_err(case.wrong.name);
                assert!((case.check)(&fault.kind), "{target} {}: {fault}", case.wrong.name);
                assert!(!fault.instruction.is_empty(), "{fault:?}");
                if let Err(fault) = Bench::new(target, seed, &image).snippet(case.right.name, &inputs) {
                    panic!("{target} {}: {fault}", case.right.name);
                }
            }
        }
    }
}

/// Matrix instructions of gfx950, whose results come later: of 4-bit numbers after 4 passes, of 8-bit numbers after 8.
/// Its assembler is newer than the one here.
#[test]
fn matrices_of_small_floats_take_as_long_as_their_numbers_are_wide() {
    if !compiler_is_there() {
        return;
    }
    // v_mfma_f32_16x16x128_f8f6f4 v[20:23], v[4:7], v[4:7], 0 cbsz:4 blgp:4, and v[20:23], v[4:11], v[4:11], 0
    let four = ".long 0xd3ad0414, 0x82020904\n";
    let eight = ".long 0xd3ad0014, 0x02020904\n";
    let dir = tempfile::tempdir().expect("directory");
    for (matrix, enough, required) in
        [(four, ["s_nop 6", "s_nop 7"], 8), (eight, ["s_nop 7\ns_nop 2", "s_nop 7\ns_nop 3"], 12)]
    {
        let [wrong, right] =
            enough.map(|nops| -> &'static str { format!("{matrix}{nops}\nv_mov_b32 v24, v20").leak() });
        let snippets = [Snippet { name: "wrong", code: wrong }, Snippet { name: "right", code: right }];
        let mut image = assemble(dir.path(), "gfx942", &snippets).expect("assembles");
        // EF_AMDGPU_MACH of gfx950.
        image[0x30] = 0x4f;
        let mut bench = Bench::new("gfx950", 0, &image);
        let fault = bench.snippet("wrong", &[[0x3838_3838; 4]; 64]).expect_err("it is too soon");
        assert!(hazard(&fault.kind, required), "{fault}");
        bench.snippet("right", &[[0x3838_3838; 4]; 64]).expect("it is late enough");
    }
}

/// Without the wait before a barrier another wave may read LDS too early: a race, whatever the seed.
#[test]
fn writes_that_nothing_waits_for_race_behind_the_barrier() {
    if !compiler_is_there() {
        return;
    }
    // Each wave writes its part of LDS, then reads the other wave's.
    const BODY: &str = "v_lshlrev_b32 v2, 2, v0\nv_xor_b32 v3, 0x100, v2\nds_write_b32 v2, v0\nWAIT\ns_barrier\n\
        ds_read_b32 v8, v3\ns_waitcnt lgkmcnt(0)";
    let dir = tempfile::tempdir().expect("directory");
    let with: &'static str = BODY.replace("WAIT", "s_waitcnt lgkmcnt(0)").leak();
    let without: &'static str = BODY.replace("WAIT", "s_nop 0").leak();
    let image = assemble(
        dir.path(),
        "gfx90a",
        &[Snippet { name: "with", code: with }, Snippet { name: "without", code: without }],
    )
    .expect("assembles");
    for seed in 0..10 {
        let run = |kernel: &str| {
            let mut bench = Bench::new("gfx90a", seed, &image);
            let (input, output) = (bench.buffer(&[0; 512]), bench.buffer(&[0; 512]));
            bench.run(kernel, 1, 128, 0, &[input, output]).map(|_| bench.read(output, 512))
        };
        let found = run("with").expect("it runs");
        assert!(found.chunks(4).enumerate().all(|(t, result)| result[0] == t as u32 ^ 64), "seed {seed}");
        let fault = run("without").expect_err("a race");
        assert!(matches!(fault.kind, FaultKind::LdsRace { .. }), "seed {seed}: {fault}");
    }
}

#[test]
fn fuel_ends_an_endless_loop() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    let image = assemble(dir.path(), "gfx906", &[Snippet { name: "endless", code: ".Lagain:\ns_branch .Lagain" }])
        .expect("assembles");
    let mut bench = Bench::new("gfx906", 0, &image);
    bench.device.options_mut().fuel = 10_000;
    let fault = bench.snippet("endless", &[[0; 4]; 64]).expect_err("it ends");
    assert_eq!(fault.kind, FaultKind::OutOfFuel);
}

/// What is undefined differs from seed to seed, and is the same for one seed.
#[test]
fn undefined_registers_depend_on_the_seed() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    let image = assemble(
        dir.path(),
        "gfx90a",
        &[Snippet { name: "peek", code: "v_mov_b32 v8, v50\nv_mov_b32 v9, s30\nv_mov_b32 v10, vcc_lo" }],
    )
    .expect("assembles");
    let run = |seed| Bench::new("gfx90a", seed, &image).snippet("peek", &[[0; 4]; 64]).expect("it runs");
    assert_eq!(run(1), run(1));
    let (one, two) = (run(1), run(2));
    assert!((0..3).all(|word| one[0][word] != two[0][word]));
    assert_ne!(one[0][0], one[1][0]);
}
