//! Addresses that may not be translated yet (gfx1250): what shows that they are.

use crate::emulated::{Bench, compiler_is_there, newer};
use wavetap::emulator::{Fault, FaultKind};

const ITEMS: usize = 32;

fn run(code: &str) -> Result<(), Box<Fault>> {
    let dir = tempfile::tempdir().expect("directory");
    // MODE bit 25: several operations are replayed, as compilers want it.
    let replay = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 25, 1), 1";
    let image = newer::object(dir.path(), "gfx1250", &format!("{replay}\n{code}"));
    let mut bench = Bench::new("gfx1250", 1, &image);
    let (input, output) = (bench.buffer(&[7; 4 * ITEMS]), bench.buffer(&[0; 4 * ITEMS]));
    bench.run("it", 1, ITEMS as u16, 0, &[input, output])?;
    Ok(())
}

fn too_early(code: &str) -> bool {
    match run(code) {
        Err(fault) => {
            matches!(&fault.kind, FaultKind::MissingWait { counter, overwritten: true, .. } if **counter == *"xcnt")
        }
        Ok(()) => false,
    }
}

/// What LLVM 24 puts no wait after, and what it does (SIInstrInfo, `isXcntDrain`; SIInsertWaitcnts).
#[test]
fn what_waits_for_translations() {
    if !compiler_is_there() {
        return;
    }
    let xcnt = |count: i64| newer::words("gfx1250", "s_wait_xcnt", &[count]);
    let piece = |between: &str| {
        format!("v_mov_b32 v2, v1\nv_mov_b32 v3, 5\nglobal_store_b32 v2, v3, s[6:7]\n{between}\nv_mov_b32 v2, 0")
    };
    for proof in [
        &*xcnt(0),
        "s_barrier_signal -1\ns_barrier_wait -1",
        "s_sendmsg 0x3ff",
        "s_getreg_b32 s8, hwreg(HW_REG_MODE, 0, 2)",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0",
        "s_branch .Lon\n.Lon:",
        "s_cmp_eq_u32 s4, s5\ns_cbranch_scc1 .Lon\n.Lon:",
        "s_load_b32 s8, s[4:5], 0x0",
        "s_wait_storecnt 0",
        "global_load_b32 v4, v1, s[4:5]\ns_wait_loadcnt 0",
        // s_set_vgpr_msb, of the third source: it leaves out no register here (AMDGPULowerVGPREncoding).
        &*format!("{HIGH_SOURCE}\ns_wait_alu depctr_vm_vsrc(0)"),
    ] {
        run(&piece(proof)).unwrap_or_else(|fault| panic!("{proof}: {fault}"));
    }
    for none in [
        "",
        "s_wait_alu depctr_vm_vsrc(0)",
        &*xcnt(1),
        "s_sleep 1",
        "s_setprio 1",
        "s_nop 7",
        "s_wait_loadcnt 0",
        "s_wait_kmcnt 0",
        "global_load_b32 v4, v1, s[4:5]\ns_wait_loadcnt 1",
        "v_mov_b32 v5, 0\nds_store_b32 v5, v5\ns_wait_dscnt 0",
    ] {
        assert!(too_early(&piece(none)), "{none}");
    }
}

/// `s_set_vgpr_msb`: the third source means v256 and up, which no instruction here has.
const HIGH_SOURCE: &str = ".long 0xbf860010";

/// As LLVM 24 compiles a matrix multiplication: a wait for `xcnt` that would come after `s_set_vgpr_msb` is left out,
/// and another one is not.
#[test]
fn setting_high_bits_of_vector_registers_waits_for_what_came_before() {
    if !compiler_is_there() {
        return;
    }
    let store = "v_mov_b32 v2, v1\nv_mov_b32 v3, 5\nglobal_store_b32 v2, v3, s[6:7]";
    let other = "v_mov_b32 v4, 1\ns_mov_b32 s8, 0";
    let write = "s_wait_alu depctr_vm_vsrc(0)\nv_mov_b32 v2, 0";
    run(&format!("{store}\n{HIGH_SOURCE}\n{other}\n{write}")).expect("it waits, however far away");
    // Directly after a literal for MODE it would be dropped.
    assert!(too_early(&format!("s_nop 0\n{HIGH_SOURCE}\n{store}\n{other}\n{write}")), "it comes before the store");
    // Two of two, of which the first alone is translated.
    assert!(too_early(&format!("{store}\n{HIGH_SOURCE}\n{other}\nglobal_store_b32 v2, v4, s[6:7]\n{write}")));
    // Scalar memory, too: nothing else has waited for the base.
    let load = "s_mov_b64 s[8:9], s[4:5]\ns_load_b32 s10, s[8:9], 0x0";
    run(&format!("{load}\n{HIGH_SOURCE}\ns_mov_b32 s9, 0\ns_wait_kmcnt 0")).expect("it waits");
    assert!(too_early(&format!("s_nop 0\n{HIGH_SOURCE}\n{load}\ns_mov_b32 s9, 0\ns_wait_kmcnt 0")));
}

/// Vector memory is translated in order.
#[test]
fn vector_memory_overwrites_what_vector_memory_reads() {
    if !compiler_is_there() {
        return;
    }
    let piece = |write: &str| format!("v_mov_b32 v2, v1\nv_mov_b32 v3, 5\nglobal_store_b32 v2, v3, s[6:7]\n{write}");
    run(&piece("global_load_b32 v2, v1, s[4:5]\ns_wait_loadcnt 0")).expect("in order");
    assert!(too_early(&piece("v_mov_b32 v9, 0\nds_load_b32 v2, v9")));
    // With error correction of registers a load of half a register writes all of it.
    let half =
        "v_mov_b32 v2, v1\nv_mov_b32 v3, 5\nv_mov_b32 v9, 0\nds_store_b32 v9, v9\nglobal_store_b16 v2, v3, s[6:7]\n";
    assert!(too_early(&format!("{half}ds_load_u16_d16_hi v3, v9")));
}

/// Copies that `asynccnt` counts read their registers once: LLVM 24 waits neither for their sources nor for them.
#[test]
fn copies_that_run_by_themselves_are_not_translated_again() {
    if !compiler_is_there() {
        return;
    }
    // global_load_async_to_lds_b32 v20, v21, s[4:5]; s_wait_asynccnt 0
    let copy = "v_lshlrev_b32 v20, 2, v0\nv_mov_b32 v21, v1\n.long 0xee180004, 0x14, 0x15\n";
    run(&format!("{copy}v_mov_b32 v20, 0\nv_mov_b32 v21, 0\n.long 0xbfca0000")).expect("none of them is read again");
    // One after a store is not counted with it.
    let store = "v_mov_b32 v2, v1\nv_mov_b32 v3, 5\nglobal_store_b32 v2, v3, s[6:7]\n";
    let wait = |count: i64| newer::words("gfx1250", "s_wait_xcnt", &[count]);
    assert!(too_early(&format!("{store}{copy}{}\nv_mov_b32 v2, 0\n.long 0xbfca0000", wait(1))));
    run(&format!("{store}{copy}{}\nv_mov_b32 v2, 0\n.long 0xbfca0000", wait(0))).expect("it was waited for");
}
