//! Hazards of gfx10 and later: each is found where inserted code is a part of it, is not with what makes it safe, and
//! is not between original instructions alone.

use super::listing::{accepts, finds};
use crate::Rule;

/// Code with `@` for what makes it safe: found without, accepted with, and accepted without as the original.
#[track_caller]
fn needs(target: &str, text: &str, remedy: &str, part: &str) {
    let with = |remedy: &str| {
        text.lines().map(|line| if line.trim() == "@" { remedy } else { line }).collect::<Vec<_>>().join("\n")
    };
    finds(target, &with(""), Rule::Hazard, part);
    accepts(target, &with(remedy));
    accepts(target, &with("").replace("+ ", ""));
}

#[test]
fn scalar_registers_that_memory_instructions_have_yet_to_read() {
    let text = "v_mov_b32_e32 v0, 0\n+ global_load_dword v9, v0, s[0:1]\n@\n+ s_mov_b32 s0, 0\ns_endpgm";
    // gfx10.1: any VALU, a wait for everything, or for the sources.
    for remedy in ["+ v_nop", "+ s_waitcnt 0", "+ s_waitcnt_depctr 0xffe3"] {
        needs("gfx1010", text, remedy, "has yet to read");
        needs("gfx1010/64", text, remedy, "has yet to read");
    }
    accepts("gfx1030", &text.replace("@", "+ s_nop 0"));
    finds("gfx1010", &text.replace("@", "+ s_nop 0"), Rule::Hazard, "has yet to read");
    let scalar = "s_load_dword s4, s[0:1], null\n@\n+ v_readfirstlane_b32 s0, v0\ns_waitcnt lgkmcnt\ns_endpgm"
        .replace("s_waitcnt lgkmcnt", "s_waitcnt 0");
    for remedy in ["+ s_mov_b32 s9, 0", "+ s_waitcnt 0xc07f"] {
        needs("gfx1012", &scalar, remedy, "scalar memory instruction has yet to read");
    }
    finds("gfx1012", &scalar.replace("@", "+ s_nop 0"), Rule::Hazard, "scalar memory");
}

#[test]
fn exec_that_others_have_yet_to_read() {
    let text = "v_mov_b32_e32 v0, 0\n+ s_mov_b32 s20, exec_lo\n@\nv_cmpx_eq_u32_e32 0, v0\ns_endpgm";
    for remedy in ["+ v_readfirstlane_b32 s21, v0", "+ s_waitcnt_depctr 0xfffe"] {
        needs("gfx1010", text, remedy, "EXEC is written");
    }
    finds("gfx1010", &text.replace("@", "+ v_nop"), Rule::Hazard, "EXEC is written");
    accepts("gfx1030", &text.replace("@", ""));
}

#[test]
fn lds_a_branch_and_vector_memory() {
    let text = "v_mov_b32_e32 v0, 0\nds_write_b32 v0, v0\n+ s_cbranch_scc0 @on\n+ on:\n@\nglobal_store_dword v0, v0, \
        s[0:1]\ns_endpgm";
    needs("gfx1010", text, "+ s_waitcnt_vscnt null, 0", "a branch between them");
    // In the other order, and through a scratch or buffer access alike.
    let other = "v_mov_b32_e32 v0, 0\nglobal_store_dword v0, v0, s[0:1]\ns_cbranch_scc0 @on\non:\n@\n+ ds_write_b32 \
        v0, v0\ns_endpgm";
    needs("gfx1010", other, "+ s_waitcnt_vscnt null, 0", "a branch between them");
    accepts("gfx1030", &text.replace("\n@\n", "\n"));
}

#[test]
fn a_branch_over_63_dwords() {
    let nops = "+ s_nop 0\n".repeat(63);
    let text = format!("s_cbranch_scc0 @on\n{nops}on:\ns_endpgm");
    finds("gfx1010", &text, Rule::Hazard, "63 dwords");
    accepts("gfx1030", &text);
    accepts("gfx1010", &format!("s_cbranch_scc0 @on\n{nops}+ s_nop 0\non:\ns_endpgm"));
    accepts("gfx1010", &text.replace("+ ", ""));
}

#[test]
fn masks_of_lanes_that_are_written() {
    let text = "v_mov_b32_e32 v0, 0\ns_mov_b64 vcc, 0\nv_cndmask_b32_e64 v1, v0, v0, vcc\n+ s_mov_b64 vcc, exec\n@\n+ \
        s_mov_b64 s[20:21], vcc\ns_endpgm";
    needs("gfx1100/64", text, "+ s_waitcnt_depctr 0xfffe", "as a mask");
    accepts(
        "gfx1100",
        &text
            .replace("b64", "b32")
            .replace("vcc", "vcc_lo")
            .replace("exec", "exec_lo")
            .replace("s[20:21]", "s20")
            .replace("@", ""),
    );
    let vector = "v_mov_b32_e32 v0, 0\ns_mov_b64 vcc, 0\nv_cndmask_b32_e32 v1, v0, v0, vcc\n+ v_readfirstlane_b32 \
        vcc_lo, v0\n@\n+ s_mov_b32 s20, vcc_lo\ns_endpgm";
    needs("gfx1151/64", vector, "+ s_waitcnt_depctr 0xfffd", "as a mask");
}

#[test]
fn results_that_are_used_too_early() {
    let trans = "v_mov_b32_e32 v0, 0\nv_rcp_f32_e32 v1, v0\n@\n+ v_readfirstlane_b32 s20, v1\ns_endpgm";
    needs("gfx1100", trans, "+ s_waitcnt_depctr 0xfff", "transcendental");
    accepts("gfx1150", &trans.replace("@", ""));
    let forward = "v_mov_b32_e32 v0, 0\nv_mov_b32_e32 v1, 0\n+ s_mov_b64 s[20:21], exec\n+ s_mov_b64 exec, s[20:21]\n\
        @\nv_mov_b32_e32 v2, 0\nv_add_nc_u32_e32 v3, v1, v2\ns_endpgm";
    needs("gfx1100/64", forward, "+ s_waitcnt_depctr 0xfff", "both sides");
    needs("gfx1151/64", forward, "+ s_waitcnt_depctr 0xfff", "both sides");
}

#[test]
fn a_flag_that_half_a_write_leaves_stale() {
    let text =
        "s_mov_b64 vcc, 0\n+ s_mov_b32 s20, vcc_lo\n+ s_mov_b32 vcc_lo, s20\n@\ns_cbranch_vccz @on\non:\ns_endpgm";
    needs("gfx900", text, "+ s_mov_b64 vcc, vcc", "VCCZ");
    needs("gfx803", text, "+ s_mov_b64 vcc, vcc", "VCCZ");
}

#[test]
fn clauses_stay_whole() {
    let text = |between: &str| {
        format!(
            "v_mov_b32_e32 v0, 0\ns_clause 1\nglobal_load_dword v1, v0, s[0:1]\n{between}global_load_dword v2, v0, \
                s[0:1]\ns_waitcnt 0\ns_endpgm"
        )
    };
    accepts("gfx1030", &text(""));
    finds("gfx1030", &text("+ s_mov_b32 s20, 0\n"), Rule::Adjacent, "clause");
    finds("gfx1030", &text("").replace("v0, 0\n", "v0, 0\n+ s_clause 2\n"), Rule::Adjacent, "clause");
    let message = |between: &str| format!("s_nop 0\n{between}s_sendmsg 3\ns_endpgm");
    accepts("gfx1100", &message(""));
    finds("gfx1100", &message("+ s_mov_b32 s20, 0\n"), Rule::Adjacent, "registers back");
}

#[test]
fn nothing_is_inserted_where_registers_are_indexed() {
    let text = |inside: &str, behind: &str| {
        let code = "s_mov_b32 s0, 0\ns_set_gpr_idx_on s0, 1\n{}v_mov_b32_e32 v0, v1\ns_set_gpr_idx_off\n{}s_endpgm";
        code.replacen("{}", inside, 1).replacen("{}", behind, 1)
    };
    let inserted = "+ v_mov_b32_e32 v9, 0\n";
    for target in ["gfx803", "gfx900", "gfx90a", "gfx942"] {
        accepts(target, &text("", inserted));
        finds(target, &text(inserted, ""), Rule::Adjacent, "indexed");
    }
}

#[test]
fn pairs_that_vector_instructions_have_read() {
    let text = "v_mov_b32_e32 v0, s0\n+ s_mov_b32 s4, 0\n+ v_mov_b32_e32 v9, s4\n+ s_mov_b32 s5, 0\n@\n+ s_mov_b32 s6, \
        s5\ns_endpgm";
    needs("gfx1200", text, "+ s_wait_alu 0xfffe", "no wait for the scalar instruction");
    // A pair that no vector instruction reads needs none.
    accepts("gfx1200", "v_mov_b32_e32 v0, s0\n+ s_mov_b32 s4, 0\n+ s_mov_b32 s6, s4\ns_endpgm");
    // What inserted code reads makes what the original writes unsafe.
    let tracked = "s_mov_b32 s4, 0\n+ v_writelane_b32 v9, s4, 1\ns_mov_b32 s4, 1\n@\ns_mov_b32 s5, s4\ns_endpgm";
    needs("gfx1201", tracked, "+ s_wait_alu 0xfffe", "no wait for the scalar instruction");
    let vector = "v_mov_b32_e32 v0, s4\n+ v_readlane_b32 s4, v0, 1\n@\n+ v_writelane_b32 v9, s4, 2\ns_endpgm";
    needs("gfx1200", vector, "+ s_wait_alu 0xf1ff", "no wait for the vector instruction");
}
