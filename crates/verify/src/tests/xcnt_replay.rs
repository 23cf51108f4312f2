//! Registers that memory instructions may have to read again until their addresses are translated (gfx1250).

use super::listing::{accepts, finds};
use crate::Rule;

const LATER: &str = "no wait for xcnt";

#[test]
fn inserted_code_overwrites_nothing_that_may_be_read_again() {
    // The scalar base, the vector offset, the data, and what a scalar load reads; by what writes them.
    for (memory, write) in [
        ("global_load_b32 v1, v0, s[4:5]", "s_mov_b32 s4, 0"),
        ("global_load_b32 v1, v0, s[4:5]", "v_readfirstlane_b32 s5, v0"),
        ("global_load_b32 v1, v2, s[4:5]", "v_mov_b32_e32 v2, 0"),
        ("global_store_b32 v0, v2, s[4:5]", "v_mov_b32_e32 v2, 0"),
        ("s_load_b32 s8, s[4:5], 16", "s_mov_b32 s4, 0"),
    ] {
        let text = |between: &str| {
            format!(
                "s_mov_b64 s[4:5], s[0:1]\nv_mov_b32_e32 v2, 0\n{memory}\n{between}\n+ {write}\ns_wait_idle\ns_endpgm"
            )
        };
        for target in ["gfx1250", "gfx1251"] {
            // What `s_set_vgpr_msb` lets wait is nothing that inserted code relies on.
            for too_little in ["", "+ s_nop 0", "+ s_wait_xcnt 1", "s_set_vgpr_msb 16"] {
                finds(target, &text(too_little), Rule::Wait, LATER);
            }
            accepts(target, &text("+ s_wait_xcnt 0"));
            accepts(target, &text("s_wait_xcnt 0"));
            accepts(target, &text("").replace("+ ", ""));
        }
        accepts("gfx1200", &text(""));
    }
}

#[test]
fn original_code_overwrites_nothing_that_inserted_code_may_read_again() {
    let text = |between: &str| {
        format!("s_mov_b64 s[4:5], s[0:1]\n+ global_store_b32 v0, v0, s[4:5]\n{between}\ns_mov_b32 s4, 0\ns_endpgm")
    };
    finds("gfx1250", &text(""), Rule::Wait, LATER);
    accepts("gfx1250", &text("+ s_wait_xcnt 0"));
    accepts("gfx1200", &text(""));
}

#[test]
fn no_xcnt_wait_for_dead_sources() {
    let text = "s_mov_b64 s[4:5], s[0:1]\nglobal_load_b32 v1, v0, s[4:5]\ns_wait_loadcnt 1\ns_mov_b32 s4, 0\n+ \
        s_mov_b32 s4, 0\ns_wait_idle\ns_endpgm";
    accepts("gfx1250", text);
    // The other half of the base is still what it was.
    finds("gfx1250", &text.replace("+ s_mov_b32 s4", "+ s_mov_b32 s5"), Rule::Wait, LATER);
}

#[test]
fn every_path_counts() {
    let text = |on_path: &str| {
        format!(
            "s_mov_b64 s[4:5], s[0:1]\nglobal_load_b32 v1, v0, s[4:5]\ns_cbranch_scc0 @on\n{on_path}\non:\n+ s_mov_b32 \
                s4, 0\ns_wait_idle\ns_endpgm"
        )
    };
    finds("gfx1250", &text("s_wait_xcnt 0"), Rule::Wait, LATER);
    accepts("gfx1250", &text("s_nop 0").replace("on:\n", "on:\n+ s_wait_xcnt 0\n"));
}

/// What shows that a translation is done (LLVM, SIInsertWaitcnts and `isXcntDrain`).
#[test]
fn other_proofs_count() {
    let text = |between: &str| {
        format!(
            "s_mov_b64 s[4:5], s[0:1]\nv_mov_b32_e32 v2, 0\nglobal_load_b32 v1, v2, s[4:5]\n{between}\n+ v_mov_b32_e32 \
                v2, 0\ns_wait_idle\ns_endpgm"
        )
    };
    for proof in [
        "s_wait_loadcnt 0",
        "s_load_b32 s8, s[0:1], 16",
        "s_barrier_signal -1",
        "s_sendmsg #3",
        "s_branch @on\non:\ns_nop 0",
    ] {
        accepts("gfx1250", &text(proof));
    }
    for none in
        ["s_wait_loadcnt 1", "s_wait_kmcnt 0", "s_wait_storecnt 0", "s_sleep #1", "s_cbranch_scc0 @on\non:\ns_nop 0"]
    {
        finds("gfx1250", &text(none), Rule::Wait, LATER);
    }
    // A store after the load has its own translation, and a load after the store proves that one, too.
    let store = "global_store_b32 v2, v2, s[4:5]";
    finds("gfx1250", &text(&format!("{store}\ns_wait_loadcnt 0")), Rule::Wait, LATER);
    accepts("gfx1250", &text(&format!("{store}\nglobal_load_b32 v3, v0, s[4:5]\ns_wait_loadcnt 0")));
    // Scalar memory completes in any order.
    let scalar =
        "s_mov_b64 s[4:5], s[0:1]\ns_load_b32 s8, s[4:5], 16\nBETWEEN\n+ s_mov_b32 s4, 0\ns_wait_idle\ns_endpgm";
    accepts("gfx1250", &scalar.replace("BETWEEN", "s_wait_kmcnt 0"));
    finds("gfx1250", &scalar.replace("BETWEEN", "s_wait_kmcnt 1"), Rule::Wait, LATER);
    finds("gfx1250", &scalar.replace("BETWEEN", "s_wait_loadcnt 0"), Rule::Wait, LATER);
}

/// Vector memory is translated in order: what it brings cannot come before.
#[test]
fn vector_memory_overwrites_what_vector_memory_reads() {
    let text = |write: &str| {
        format!(
            "s_mov_b64 s[4:5], s[0:1]\nv_mov_b32_e32 v2, 0\nglobal_store_b32 v0, v2, s[4:5]\n+ {write}\ns_wait_idle\n\
                s_endpgm"
        )
    };
    accepts("gfx1250", &text("global_load_b32 v2, v0, s[4:5]"));
    finds("gfx1250", &text("ds_load_b32 v2, v0"), Rule::Wait, LATER);
}
