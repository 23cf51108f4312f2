//! Halves of registers that loads of up to 16 bits write: which instructions may use the other half before the load was
//! waited for.

use crate::emulated::{Bench, compiler_is_there, newer};
use wavetap::emulator::{Fault, FaultKind};

const ITEMS: usize = 32;

/// Runs code with strict checks; gives the first result word of each work-item.
fn run(target: &str, code: &str) -> Result<Vec<u32>, Box<Fault>> {
    let dir = tempfile::tempdir().expect("directory");
    let image = newer::object(dir.path(), target, code);
    let mut bench = Bench::new(target, 1, &image);
    let input: Vec<u32> = (0..4 * ITEMS as u32).map(|n| n * 0x1_0001).collect();
    let (input, output) = (bench.buffer(&input), bench.buffer(&[0; 4 * ITEMS]));
    bench.run("it", 1, ITEMS as u16, 0, &[input, output])?;
    Ok(bench.read(output, 4 * ITEMS).chunks(4).map(|words| words[0]).collect())
}

/// LDS has `0x00aa` at 2·t and `v2` the address; `v10` is `0x00bb0000`; then the code.
fn piece(target: &str, code: &str) -> String {
    let wait = if target.starts_with("gfx12") { "s_wait_dscnt 0" } else { "s_waitcnt lgkmcnt(0)" };
    format!(
        "v_lshlrev_b32 v2, 1, v0\nv_mov_b32 v3, 0xaa\nds_write_b16 v2, v3\n{wait}\nv_mov_b32 v10, 0xbb0000\nv_mov_b32 \
            v12, s6\n{code}\n{wait}\n"
    )
}

fn missing(found: Result<Vec<u32>, Box<Fault>>, register: &str) -> bool {
    match found {
        Err(fault) => matches!(&fault.kind, FaultKind::MissingWait { register: its, .. } if **its == *register),
        Ok(_) => false,
    }
}

/// A load of one half is in flight: memory instructions use the other half, or load it.
#[test]
fn memory_instructions_use_the_other_half() {
    if !compiler_is_there() {
        return;
    }
    let low = "ds_read_u16_d16 v10, v2";
    let high = "ds_read_u16_d16_hi v10, v2";
    let back = |target: &str, from: &str| {
        let wait = if target.starts_with("gfx12") { "s_wait_dscnt 0" } else { "s_waitcnt lgkmcnt(0)" };
        format!("{wait}\n{from}")
    };
    // LDS, global, FLAT, buffers; what the store wrote is read back.
    let stores = [
        (low, "ds_write_b16_d16_hi v2, v10 offset:1024", "ds_read_u16 v8, v2 offset:1024", 0xbb),
        (low, "ds_write_b8_d16_hi v2, v10 offset:1024", "ds_read_u8 v8, v2 offset:1024", 0xbb),
        (high, "ds_write_b16 v2, v10 offset:1024", "ds_read_u16 v8, v2 offset:1024", 0),
        (low, "global_store_short_d16_hi v1, v10, s[6:7]", "v_mov_b32 v8, 0xbb", 0xbb),
        (high, "global_store_byte v1, v10, s[6:7]", "v_mov_b32 v8, 0xbb", 0xbb),
        // Both halves by loads of different kinds.
        (low, "ds_read_u16_d16_hi v10, v2 offset:2", "v_mov_b32 v8, v10", 0xaa_00aa),
    ];
    for target in ["gfx1100", "gfx1150", "gfx1201"] {
        for (load, use_of_other, then, expected) in stores {
            let code = piece(target, &format!("{load}\n{use_of_other}\n{}", back(target, then)));
            let found = run(target, &code).unwrap_or_else(|fault| panic!("{target} {use_of_other}: {fault}"));
            // The last work-item reads past what was written.
            assert!(found[..ITEMS - 1].iter().all(|word| *word == expected), "{target} {use_of_other}: {found:x?}");
        }
        // The same half, and all of it.
        for (load, use_of_same, half) in [
            (low, "ds_write_b16 v2, v10", "v10.l"),
            (high, "ds_write_b16_d16_hi v2, v10", "v10.h"),
            (low, "ds_write_b32 v2, v10", "v10.l"),
            (high, "global_store_short_d16_hi v1, v10, s[6:7]", "v10.h"),
            (high, "global_store_dword v1, v10, s[6:7]", "v10.h"),
            (low, "global_load_short_d16 v10, v1, s[4:5]", "v10.l"),
            (high, "global_load_ushort v10, v1, s[4:5]", "v10.h"),
            // An address is a whole register.
            (high, "ds_write_b16 v10, v3", "v10.h"),
        ] {
            let found = run(target, &piece(target, &format!("{load}\n{use_of_same}")));
            assert!(missing(found.clone(), half), "{target} {load}, {use_of_same}: {found:?}");
        }
    }
}

/// Vector instructions wait for both halves: their hardware may write all of the register.
#[test]
fn vector_instructions_wait_for_both_halves() {
    if !compiler_is_there() {
        return;
    }
    for target in ["gfx1100", "gfx1201"] {
        // v_mov_b16 v8.l, v10.h; v_mov_b16 v10.h, v3.l: the low half of v10 is in flight.
        for code in [".long 0x7e10398a", ".long 0x7f143903", "v_mov_b32 v8, v10", "v_mov_b32 v10, v8"] {
            let found = run(target, &piece(target, &format!("ds_read_u16_d16 v10, v2\n{code}")));
            assert!(missing(found.clone(), "v10.l"), "{target} {code}: {found:?}");
        }
    }
}

/// Before gfx11 code knows whole registers only.
#[test]
fn earlier_targets_have_whole_registers() {
    if !compiler_is_there() {
        return;
    }
    for target in ["gfx900", "gfx906", "gfx1030"] {
        for code in [
            "ds_write_b16_d16_hi v2, v10",
            "v_add_u16_sdwa v8, v10, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:WORD_0",
            "v_mov_b32_sdwa v10, v3 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0",
        ] {
            let code = if target == "gfx1030" {
                code.replace("v_add_u16_sdwa", "v_add_nc_u32_sdwa").replace("v_add_nc_u32_sdwa", "v_or_b32_sdwa")
            } else {
                code.to_owned()
            };
            let found = run(target, &piece(target, &format!("ds_read_u16_d16 v10, v2\n{code}")));
            assert!(missing(found.clone(), "v10"), "{target} {code}: {found:?}");
        }
    }
}

/// With error correction of registers, a load of a half writes all of its register: zeros, where that is documented.
#[test]
fn error_correction_writes_whole_registers() {
    if !compiler_is_there() {
        return;
    }
    let loads = [
        ("ds_read_u16_d16 v10, v2", 0xaa),
        ("ds_read_u16_d16_hi v10, v2", 0xaa_0000),
        ("v_mov_b32 v12, 0\nglobal_load_ubyte_d16_hi v10, v12, s[4:5] offset:20", 0x5_0000),
        ("v_mov_b32 v12, 0\nglobal_load_short_d16 v10, v12, s[4:5] offset:20", 5),
    ];
    let wait = "\ns_wait_loadcnt_dscnt 0\nv_mov_b32 v8, v10";
    for (load, expected) in loads {
        let found = run("gfx1250", &piece("gfx1250", &format!("v_mov_b32 v10, 0x770077\n{load}{wait}"))).expect(load);
        assert!(found.iter().all(|word| *word == expected), "{load}: {found:x?}");
        let found = run("gfx1201", &piece("gfx1201", &format!("v_mov_b32 v10, 0x770077\n{load}{wait}"))).expect(load);
        let kept = if expected < 0x1_0000 { 0x77_0000 } else { 0x77 };
        assert!(found.iter().all(|word| *word == expected | kept), "{load}: {found:x?}");
    }
    // The other half is in flight, too.
    assert!(missing(run("gfx1250", &piece("gfx1250", "ds_read_u16_d16 v10, v2\nds_write_b16_d16_hi v2, v10")), "v10"));
    // On gfx9 nothing tells what is there. What is loaded is.
    for target in ["gfx906", "gfx90a", "gfx942", "gfx950"] {
        let code = |then: &str| {
            piece(
                target,
                &format!(
                    "ds_read_u16_d16 v10, v2\ns_waitcnt lgkmcnt(0)\n{then}\nv_readfirstlane_b32 s8, v11\ns_nop 4\n\
                        s_cmp_eq_u32 s8, 5\ns_cbranch_scc1 .Lon\n.Lon:"
                ),
            )
        };
        let found = run(target, &code("v_lshrrev_b32 v11, 16, v10\ns_nop 1"));
        assert!(
            matches!(&found, Err(fault) if matches!(fault.kind, FaultKind::Uninitialised { .. })),
            "{target}: {found:?}"
        );
        run(target, &code("v_and_b32 v11, 0xffff, v10\ns_nop 1")).unwrap_or_else(|fault| panic!("{target}: {fault}"));
    }
    let found = run("gfx900", &piece("gfx900", "ds_read_u16_d16 v10, v2\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v8, v10"))
        .expect("no error correction");
    assert!(found.iter().all(|word| *word == 0xbb_00aa), "{found:x?}");
}

/// In expert scheduling mode, waits are counted, and halves are apart but for what VALU overwrites: as LLVM 24 has it
/// for gfx12.
#[test]
fn counted_waits_for_registers() {
    if !compiler_is_there() {
        return;
    }
    const START: &str = "v_mov_b32 v11, 1\nv_mov_b32 v13, 2\ns_wait_alu 0x0\ns_setreg_imm32_b32 hwreg(26, 0, 2), 2\n";
    const END: &str = "\ns_wait_dscnt 0\ns_wait_alu 0x0\ns_setreg_imm32_b32 hwreg(26, 0, 2), 0\n";
    // v_mov_b16 v10.h, v3.l; s_wait_alu va_vdst(1) and vm_vsrc(1).
    let (high, vdst_1, vsrc_1) = (".long 0x7f143903\n", "s_wait_alu 0x1fff\n", "s_wait_alu 0xffe7\n");
    let low = "v_mov_b32 v10, 5\n";
    let store = "ds_store_b16 v2, v10 offset:1024\n";
    let two = "ds_store_b32 v2, v10 offset:1024\nds_store_b32 v2, v11 offset:2048\n";
    for (code, register) in [
        // The low half was written before the high one, which may still be.
        (format!("{low}{high}{vdst_1}{store}"), None),
        (format!("{low}{high}{store}"), Some("v10")),
        (format!("{low}{high}{vdst_1}ds_store_b32 v2, v10 offset:1024\n"), Some("v10")),
        // A transcendental runs beside the others.
        (format!("{low}v_exp_f32 v12, v11\n{vdst_1}{store}"), Some("v10")),
        (format!("v_exp_f32 v10, v11\nv_mov_b32 v12, 0\n{vdst_1}{store}"), Some("v10")),
        (format!("{low}v_mov_b32 v12, 0\n{vdst_1}{store}"), None),
        // What LDS has yet to read: VALU may overwrite all of the register, a load its half.
        (format!("{store}{high}"), Some("v10")),
        (format!("{store}ds_load_u16_d16_hi v10, v2\n"), None),
        (format!("{store}ds_load_u16_d16 v10, v2\n"), Some("v10")),
        (format!("{two}{vsrc_1}v_mov_b32 v10, 0\n"), None),
        (format!("{two}{vsrc_1}v_mov_b32 v11, 0\n"), Some("v11")),
        (format!("{two}s_wait_dscnt 1\nv_mov_b32 v10, 0\n"), None),
        (format!("{two}s_wait_dscnt 1\nv_mov_b32 v11, 0\n"), Some("v11")),
        (format!("{store}global_store_b32 v1, v11, s[6:7]\n{vsrc_1}v_mov_b32 v10, 0\n"), Some("v10")),
        (format!("{store}global_store_b32 v1, v11, s[6:7]\ns_wait_storecnt 0\nv_mov_b32 v10, 0\n"), Some("v10")),
    ] {
        match (run("gfx1201", &piece("gfx1201", &format!("{START}{code}{END}"))), register) {
            (Ok(_), None) => {}
            (Err(fault), Some(register)) => {
                let found = matches!(&fault.kind, FaultKind::Hazard { resource, .. } if **resource == *register);
                assert!(found, "{code}: {fault}");
            }
            (Ok(_), Some(_)) => panic!("{code}: nothing was found"),
            (Err(fault), None) => panic!("{code}: {fault}"),
        }
    }
}
