//! Findings of the strict mode: where it says undefined bits come from, what counts as written or done, and how a
//! dispatch goes on after them.

use crate::emulated::{Bench, Snippet, assemble, compiler_is_there};
use wavetap::emulator::{Fault, FaultKind, Finding, FindingKind, Passes, Suppressions};

const INPUTS: [[u32; 4]; 64] = [[3, 5, 7, 9]; 64];

/// The bench of one snippet, named `it`.
fn bench(target: &str, code: &'static str) -> Bench {
    let dir = tempfile::tempdir().expect("directory");
    let image = assemble(dir.path(), target, &[Snippet { name: "it", code }]).expect("assembles");
    Bench::new(target, 1, &image)
}

fn fault(target: &str, code: &'static str) -> Fault {
    bench(target, code).snippet("it", &INPUTS).expect_err("a fault")
}

#[test]
fn undefined_bits_are_followed_through_lds() {
    if !compiler_is_there() {
        return;
    }
    let stored = "v_lshlrev_b32 v2, 2, v0\nds_write_b32 v2, v50\ns_waitcnt lgkmcnt(0)\nds_read_b32 v8, v2\ns_waitcnt \
        lgkmcnt(0)\nglobal_store_dword v1, v8, s[6:7]";
    let text = fault("gfx90a", stored).to_string();
    assert!(
        text.contains("of LDS, written at 0x") && text.contains("with bits of v50, which was never written"),
        "{text}"
    );
    // Of two rounds, and of a store that has two parts, of which one is known.
    let twice = "v_lshlrev_b32 v2, 3, v0\nv_mov_b32 v20, 1\nv_mov_b32 v21, v51\nds_write_b64 v2, v[20:21]\ns_waitcnt \
        lgkmcnt(0)\nds_read_b32 v8, v2 offset:4\ns_waitcnt lgkmcnt(0)\n\
        ds_write_b32 v2, v8 offset:1024\ns_waitcnt lgkmcnt(0)\nds_read_b64 v[20:21], v2 offset:1024\n\
        s_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v20, s[6:7]";
    let text = fault("gfx90a", twice).to_string();
    assert!(
        text.contains("of LDS, written at 0x") && text.contains("with bits of v51, which was never written"),
        "{text}"
    );
    let never = "v_lshlrev_b32 v2, 2, v0\nds_read_b32 v8, v2\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v8, s[6:7]";
    let text = fault("gfx90a", never).to_string();
    assert!(text.contains("of LDS, which was never written") && !text.contains("written at"), "{text}");
}

/// A hardware register is read, and the result decides a branch.
#[test]
fn what_a_hardware_register_says_is_known() {
    if !compiler_is_there() {
        return;
    }
    let code = "s_getreg_b32 s8, hwreg(HW_REG_MODE, 0, 8)\ns_nop 4\ns_cmp_eq_u32 s8, 0\ns_cbranch_scc1 .Lnext\n\
        .Lnext:\nv_mov_b32 v8, s8";
    for target in ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100"] {
        let found = bench(target, code).snippet("it", &INPUTS).unwrap_or_else(|fault| panic!("{target}: {fault}"));
        // Round to nearest even; denormals of 64 and 16 bits are kept.
        assert_eq!(found[0][0], 0xc0, "{target}");
    }
}

/// A FLAT operation keeps its place among LDS operations from gfx10 on: a wait for it that counts memory proves done
/// what was before it, and not what came after.
#[test]
fn flat_operations_keep_their_place_among_those_of_lds() {
    if !compiler_is_there() {
        return;
    }
    const BEFORE: &str = "v_lshlrev_b32 v2, 2, v0\nds_write_b32 v2, v4\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v13, s7\n\
        v_add_nc_u32 v12, s6, v1\n";
    let code = |rest: &str| -> &'static str { format!("{BEFORE}{rest}\ns_waitcnt vmcnt(0) lgkmcnt(0)").leak() };
    let store = code(
        "ds_read_b32 v8, v2\nflat_store_dword v[12:13], v5\ns_waitcnt_vscnt null, 0x0\nds_write_b32 v2, v5\ns_waitcnt \
            lgkmcnt(1)\nv_mov_b32 v9, v8",
    );
    let load = code(
        "ds_read_b32 v8, v2\nflat_load_dword v10, v[12:13]\ns_waitcnt vmcnt(0)\nds_write_b32 v2, v5\ns_waitcnt \
            lgkmcnt(1)\nv_mov_b32 v9, v8",
    );
    let after = code("flat_store_dword v[12:13], v5\nds_read_b32 v8, v2\ns_waitcnt_vscnt null, 0x0\nv_mov_b32 v9, v8");
    let not_yet = code(
        "ds_read_b32 v8, v2\nglobal_store_dword v[12:13], v5, off\ns_waitcnt_vscnt null, 0x0\nds_write_b32 v2, v5\n\
            s_waitcnt lgkmcnt(1)\nv_mov_b32 v9, v8\nds_read_b32 v8, v2\ns_waitcnt_vscnt null, 0x0\nv_mov_b32 v9, v8",
    );
    for target in ["gfx1010", "gfx1030", "gfx1100"] {
        for code in [store, load] {
            let found = bench(target, code).snippet("it", &INPUTS).unwrap_or_else(|fault| panic!("{target}: {fault}"));
            assert_eq!((found[0][0], found[0][1]), (3, 3), "{target}");
        }
        for code in [after, not_yet] {
            let kind = fault(target, code).kind;
            assert!(
                matches!(&kind, FaultKind::MissingWait { register, .. } if **register == *"v8"),
                "{target}: {kind}"
            );
        }
    }
}

/// Runs a snippet that goes on.
fn passed(code: &'static str, passes: Passes) -> Result<(Vec<[u32; 4]>, Vec<Finding>), Fault> {
    let mut bench = bench("gfx90a", code);
    bench.device.options_mut().passes = passes;
    let results = bench.snippet("it", &INPUTS)?;
    Ok((results, bench.device.take_findings()))
}

const WAIT: &str = "global_load_dword v8, v1, s[4:5]\nv_mov_b32 v9, v8\nv_mov_b32 v10, v8\ns_waitcnt vmcnt(0)";
const BRANCH: &str =
    "v_readfirstlane_b32 s8, v50\ns_nop 4\ns_cmp_eq_u32 s8, 5\ns_cbranch_scc1 .Lnext\n.Lnext:\nv_mov_b32 v8, 1";
const HAZARD: &str = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\ns_nop 0\ns_getreg_b32 s8, hwreg(HW_REG_MODE, 0, \
    2)\nv_mov_b32 v8, 3";
/// The last lane reads after the end, at which there is half of what it wants.
const OVERREAD: &str = "global_load_dwordx2 v[8:9], v1, s[4:5] offset:12\ns_waitcnt vmcnt(0)";

#[test]
fn a_dispatch_goes_on_where_it_is_defined_how() {
    if !compiler_is_there() {
        return;
    }
    let all = || Passes { all: true, ..Passes::default() };
    for (code, kind, lane, count, expected) in [
        (WAIT, FindingKind::MissingWait, 0, 1, [3, 3, 3, 0]),
        (BRANCH, FindingKind::Uninitialised, 0, 1, [1, 0, 0, 0]),
        (HAZARD, FindingKind::Hazard, 0, 1, [3, 0, 0, 0]),
        (OVERREAD, FindingKind::Overread, 63, 1, [9, 0, 0, 0]),
    ] {
        assert_eq!(FindingKind::of(&passed(code, Passes::default()).expect_err(code).kind), Some(kind), "{code}");
        let (results, findings) = passed(code, all()).unwrap_or_else(|fault| panic!("{code}: {fault}"));
        assert_eq!(results[lane], expected, "{code}");
        assert!(
            findings.iter().all(|finding| finding.kind == kind && finding.count >= count && !finding.suppressed),
            "{findings:?}"
        );
        // One for each instruction that uses what is not there.
        assert_eq!(findings.len(), if kind == FindingKind::MissingWait { 2 } else { 1 }, "{findings:?}");
        // Nothing is left for the next one.
        let suppressed = Suppressions::parse(&format!("{kind} i*")).expect("a line");
        let (results, findings) =
            passed(code, Passes { suppressed, ..Passes::default() }).unwrap_or_else(|fault| panic!("{code}: {fault}"));
        assert!(results[lane] == expected && findings.iter().all(|finding| finding.suppressed), "{findings:?}");
        // Of another kind, or at another instruction.
        let other = FindingKind::DEFINED.into_iter().find(|other| *other != kind).expect("another");
        for line in [format!("{other} *"), format!("{kind} * 0xfff0")] {
            let suppressed = Suppressions::parse(&line).expect("a line");
            passed(code, Passes { suppressed, ..Passes::default() }).expect_err(&line);
        }
    }
}

#[test]
fn nothing_goes_on_after_a_store_to_nowhere() {
    if !compiler_is_there() {
        return;
    }
    for code in [
        "v_mov_b32 v2, 0x400000\nglobal_store_dword v2, v4, s[6:7]",
        "v_mov_b32 v2, 0x400000\nglobal_load_dword v8, v2, s[4:5]\ns_waitcnt vmcnt(0)",
        "global_store_dword v1, v4, s[6:7] offset:1024",
        "v_mov_b32 v2, 0x1000\nds_write_b32 v2, v4",
        "v_mov_b32 v200, 0",
    ] {
        let suppressed = Suppressions::parse("* *").expect("a line");
        let fault = passed(code, Passes { all: true, suppressed, ..Passes::default() }).expect_err(code);
        assert!(FindingKind::of(&fault.kind).is_none_or(|kind| !FindingKind::DEFINED.contains(&kind)), "{fault}");
        // Where accesses may be left out, it does go on, and they have not happened.
        let result = passed(code, Passes { all: true, accesses: true, ..Passes::default() });
        assert_eq!(result.is_ok(), FindingKind::of(&fault.kind).is_some(), "{code}");
    }
}

/// Each of two waves reads what the other may not have written yet, twice.
#[test]
fn races_are_passed_over_and_counted() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    let code = "v_lshlrev_b32 v2, 2, v0\nv_xor_b32 v3, 0x100, v2\nds_write_b32 v2, v0\ns_waitcnt lgkmcnt(0)\n\
        ds_read_b32 v8, v3\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v9, v3\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v8, 0";
    let image = assemble(dir.path(), "gfx90a", &[Snippet { name: "it", code }]).expect("assembles");
    for seed in 0..4 {
        let mut bench = Bench::new("gfx90a", seed, &image);
        bench.device.options_mut().passes = Passes { all: true, ..Passes::default() };
        let (input, output) = (bench.buffer(&[0; 512]), bench.buffer(&[0; 512]));
        bench.run("it", 1, 128, 0, &[input, output]).unwrap_or_else(|fault| panic!("{fault}"));
        let found = bench.device.take_findings();
        let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
        assert!(kinds.contains(&FindingKind::LdsRace), "seed {seed}: {found:?}");
        // What comes after the barrier is ordered.
        let written = bench.read(output, 512);
        assert!(written.chunks(4).enumerate().all(|(t, result)| result[1] == t as u32 ^ 64), "seed {seed}");
        assert!(bench.device.take_findings().is_empty());
    }
}

/// Hazards that instructions with odd operands look for themselves: the run goes on after each, with the result that
/// the right number of wait states gives.
#[test]
fn a_dispatch_goes_on_after_every_hazard() {
    if !compiler_is_there() {
        return;
    }
    const VCCZ: &str =
        "s_mov_b64 vcc, 0\ns_mov_b32 vcc_lo, 1\nNOP\nv_mov_b32 v8, 1\ns_cbranch_vccnz .Lon\nv_mov_b32 v8, 2\n.Lon:";
    let cases = [
        (
            "gfx90a",
            "v_mov_b32 v2, 3\nv_readfirstlane_b32 s8, v2\nNOP\nv_readlane_b32 s9, v0, s8\nv_mov_b32 v8, s9",
            "s_nop 3",
            3,
        ),
        ("gfx90a", "v_cmp_eq_u32 vcc, v4, v4\nNOP\nv_div_fmas_f32 v8, 1.0, 1.0, 1.0", "s_nop 3", 0),
        ("gfx90a", VCCZ, "s_mov_b64 vcc, vcc", 1),
        ("gfx942", "v_mov_b32 v2, 7\nNOP\nv_readfirstlane_b32 s8, v2\ns_nop 1\nv_mov_b32 v8, s8", "s_nop 0", 7),
        (
            "gfx942",
            "v_mov_b32 v2, 7\nv_cmpx_eq_u32 v2, v2\nNOP\nv_writelane_b32 v2, 9, 0\nv_mov_b32 v8, v2",
            "s_nop 3",
            9,
        ),
        (
            "gfx90a",
            "v_mov_b32 v2, 1.0\nNOP\nv_mfma_f32_4x4x1f32 v[20:23], v2, v2, 0\ns_nop 7\nv_cvt_u32_f32 v8, v20",
            "s_nop 1",
            1,
        ),
        (
            "gfx90a",
            "v_mov_b32 v2, 1.0\nv_mov_b32 v20, 1.0\nv_mov_b32 v21, 1.0\nv_mov_b32 v22, 1.0\nv_mov_b32 v23, 1.0\nNOP\n\
             v_mfma_f32_4x4x1f32 v[20:23], v2, v2, v[20:23]\n\
             s_nop 7\nv_cvt_u32_f32 v8, v20",
            "s_nop 1",
            2,
        ),
    ];
    for (target, code, nop, lane_0) in cases {
        let [right, wrong] = [nop, ""].map(|nop| -> &'static str { code.replace("NOP", nop).leak() });
        let expected =
            bench(target, right).snippet("it", &INPUTS).unwrap_or_else(|fault| panic!("{target} {right}: {fault}"));
        assert!(lane_0 == 0 || expected[0][0] == lane_0, "{target} {code}: {expected:x?}");
        let found = bench(target, wrong).snippet("it", &INPUTS).expect_err(wrong);
        assert_eq!(FindingKind::of(&found.kind), Some(FindingKind::Hazard), "{found}");
        let mut on = bench(target, wrong);
        on.device.options_mut().passes = Passes { all: true, ..Passes::default() };
        assert_eq!(
            on.snippet("it", &INPUTS).unwrap_or_else(|fault| panic!("{target} {wrong}: {fault}")),
            expected,
            "{target} {wrong}"
        );
        let findings = on.device.take_findings();
        assert!(
            !findings.is_empty() && findings.iter().all(|finding| finding.kind == FindingKind::Hazard),
            "{findings:?}"
        );
    }
}

/// Who keeps records of accesses reads the registers that addresses are in, and finds nothing of its own in them.
#[test]
fn records_of_accesses_change_no_findings() {
    if !compiler_is_there() {
        return;
    }
    // The address of the second load is not waited for.
    let code = "global_load_dword v8, v1, s[4:5]\nglobal_load_dword v9, v8, s[4:5]\ns_waitcnt vmcnt(0)";
    let run = |accesses: usize| {
        let mut bench = bench("gfx90a", code);
        let options = bench.device.options_mut();
        (options.passes, options.accesses) = (Passes { all: true, ..Passes::default() }, accesses);
        let results = bench.snippet("it", &[[4, 0, 0, 0]; 64]).unwrap_or_else(|fault| panic!("{fault}"));
        (results, bench.device.take_findings())
    };
    let (results, findings) = run(0);
    assert!(findings.iter().any(|finding| finding.kind == FindingKind::MissingWait), "{findings:?}");
    assert_eq!(run(100), (results, findings));
}
