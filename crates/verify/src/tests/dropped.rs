//! Accesses that some lanes do not execute: EXEC is a subset of the original's there and nowhere else, and the lanes
//! that did not execute a load get 0.

use super::listing::{accepts, finds};
use crate::Rule;

/// What narrows EXEC, an access, what follows it, and what restores EXEC.
fn access(narrow: &str, access: &str, zero: &str, restore: &str) -> String {
    format!(
        "v_mov_b32_e32 v5, 0
        + s_mov_b64 s[20:21], exec
        + s_mov_b64 s[22:23], 5
        {narrow}
        {access}
        {zero}
        {restore}
        s_waitcnt #0
        v_xor_b32_e32 v6, v3, v5
        v_xor_b32_e32 v6, v2, v6
        s_endpgm"
    )
}

const NARROW: &str = "+ s_andn2_b64 exec, exec, s[22:23]";
const LOAD: &str = "~ global_load_dwordx2 v[2:3], v[0:1], off";
const ZERO: &str = "+ s_xor_b64 exec, exec, s[20:21]
    + s_cbranch_execz @on
    + s_waitcnt #0
    + v_mov_b32_e32 v3, 0
    + v_mov_b32_e32 v2, 0
    + on:";
const RESTORE: &str = "+ s_mov_b64 exec, s[20:21]";

#[test]
fn a_listed_access_is_executed_in_a_subset_of_the_lanes() {
    for target in ["gfx90a", "gfx942", "gfx1030/64"] {
        let accepts = |narrow: &str, zero: &str| accepts(target, &access(narrow, LOAD, zero, RESTORE));
        accepts(NARROW, ZERO);
        accepts(NARROW, "");
        accepts("+ s_and_b64 exec, s[22:23], exec", ZERO);
        accepts("+ s_and_b64 exec, exec, s[22:23]\n+ s_andn2_b64 exec, exec, s[20:21]", ZERO);
        accepts("+ s_cbranch_scc0 @all\n+ s_andn2_b64 exec, exec, s[22:23]\n+ all:", ZERO);
        accepts(NARROW, &ZERO.replace("s_xor_b64 exec, exec, s[20:21]", "s_xor_b64 exec, s[20:21], exec"));
        // A copy of the lanes is as good.
        let moved = "+ s_andn2_b64 exec, exec, s[22:23]
            + s_mov_b64 s[24:25], exec
            + s_mov_b64 exec, -1
            + s_mov_b64 exec, s[24:25]";
        accepts(moved, ZERO);
    }
    let text = access(NARROW, LOAD, ZERO, RESTORE).replace("_b64", "_b32").replace("exec", "exec_lo");
    let text =
        text.replace("s[20:21]", "s20").replace("s[22:23]", "s22").replace("s_cbranch_exec_loz", "s_cbranch_execz");
    accepts("gfx1030", &text);
    finds("gfx1030", &text.replace("~ ", ""), Rule::Exec, "exec");
    // Another name of the same.
    let newer = text.replace("global_load_dwordx2", "global_load_b64").replace("s_andn2_b32", "s_and_not1_b32");
    accepts("gfx1100", &newer);
    finds("gfx1100", &newer.replace("~ ", ""), Rule::Exec, "exec");
}

#[test]
fn other_lanes_and_other_instructions_are_found() {
    for target in ["gfx90a", "gfx1030/64"] {
        let exec = |text: &str| finds(target, text, Rule::Exec, "exec");
        // It is not restored.
        exec(&access(NARROW, LOAD, ZERO, ""));
        exec(&access(NARROW, LOAD, "", ""));
        exec(&access(NARROW, LOAD, "", "+ s_mov_b64 exec, s[24:25]"));
        // It is no subset, or not known to be one.
        for narrow in [
            "+ s_or_b64 exec, exec, s[22:23]",
            "+ s_mov_b64 exec, s[22:23]",
            "+ s_mov_b64 exec, -1",
            "+ s_xor_b64 exec, exec, s[22:23]",
            "+ s_andn2_b64 exec, s[22:23], exec",
            "+ s_mov_b64 exec, -1\n+ s_andn2_b64 exec, exec, s[22:23]",
            "+ s_cbranch_scc0 @all\n+ s_or_b64 exec, exec, s[22:23]\n+ all:",
        ] {
            exec(&access(narrow, LOAD, "", RESTORE));
        }
        // The access is not listed, or there is an original instruction beside it.
        exec(&access(NARROW, &LOAD.replace("~ ", ""), ZERO, RESTORE));
        exec(&access(NARROW, &format!("v_mov_b32_e32 v7, 0\n{LOAD}"), ZERO, RESTORE));
        exec(&access(NARROW, &format!("{LOAD}\nv_mov_b32_e32 v7, 0"), "", RESTORE));
        // Of the lanes before an original instruction that writes EXEC.
        let old =
            format!("{NARROW}\n+ s_mov_b64 s[24:25], exec\n{RESTORE}\ns_mov_b64 exec, 7\n+ s_mov_b64 exec, s[24:25]");
        exec(&access(&old, LOAD, "", "+ s_mov_b64 exec, 7"));
    }
}

#[test]
fn lanes_that_did_not_execute_a_load_get_0_and_nothing_else() {
    for target in ["gfx90a", "gfx1030/64"] {
        let found = |zero: &str, part: &str| {
            finds(target, &access(NARROW, LOAD, zero, RESTORE), Rule::Clobbered, part);
        };
        found(&ZERO.replace("v3, 0", "v3, 1"), "v3");
        found(&ZERO.replace("v3, 0", "v5, 0"), "v5");
        // In the lanes that executed it, in all, or in others.
        found(&ZERO.replace("+ s_xor_b64 exec, exec, s[20:21]", ""), "v3");
        found(&ZERO.replace("s_xor_b64 exec, exec, s[20:21]", "s_mov_b64 exec, s[20:21]"), "v3");
        found(&ZERO.replace("s_xor_b64 exec, exec, s[20:21]", "s_xor_b64 exec, exec, s[22:23]"), "v3");
        found(&format!("+ s_andn2_b64 exec, exec, s[24:25]\n{ZERO}"), "v3");
        found(&format!("{ZERO}\n+ s_mov_b64 exec, s[20:21]\n+ v_mov_b32_e32 v3, 0"), "v3");
        // Those of another access.
        let twice = format!("{LOAD}\n+ s_mov_b64 exec, s[20:21]\nv_mov_b32_e32 v7, 0");
        finds(target, &access(NARROW, &twice, ZERO, RESTORE), Rule::Clobbered, "v3");
        // It is not complete yet.
        finds(target, &access(NARROW, LOAD, &ZERO.replace("+ s_waitcnt #0", ""), RESTORE), Rule::Wait, "v");
    }
}

#[test]
fn accesses_of_buffers_are_as_others() {
    let [load, store] = ["load", "store"].map(|what| format!("~ buffer_{what}_dwordx2 v[2:3], off, s[4:7], s8"));
    let add = "~ buffer_atomic_add v3, off, s[4:7], s8";
    let access = |narrow: &str, instruction: &str, zero: &str, restore: &str| {
        let defined = "s_mov_b32 s6, 1\ns_mov_b32 s8, 2\nv_mov_b32_e32 v2, 3\nv_mov_b32_e32 v3, 4\n";
        defined.to_owned() + &access(narrow, instruction, zero, restore)
    };
    for target in ["gfx90a", "gfx942", "gfx1030/64"] {
        accepts(target, &access(NARROW, &load, ZERO, RESTORE));
        for silent in [&store, add] {
            accepts(target, &access(NARROW, silent, "", RESTORE));
            // It writes no register: nothing may be put there.
            finds(target, &access(NARROW, silent, ZERO, RESTORE), Rule::Clobbered, "v3");
        }
        for access_of_buffer in [&load, &store, add] {
            let exec = |text: &str| finds(target, text, Rule::Exec, "exec");
            exec(&access(NARROW, access_of_buffer, "", ""));
            exec(&access("+ s_or_b64 exec, exec, s[22:23]", access_of_buffer, "", RESTORE));
            exec(&access("+ s_mov_b64 exec, -1", access_of_buffer, "", RESTORE));
            exec(&access(NARROW, &access_of_buffer.replace("~ ", ""), "", RESTORE));
            // The descriptor and the scalar offset are read there.
            for register in ["s6", "s8"] {
                let narrow = format!("{NARROW}\n+ s_mov_b32 {register}, 0");
                finds(target, &access(&narrow, access_of_buffer, "", RESTORE), Rule::Clobbered, register);
            }
        }
        let found = |zero: &str| finds(target, &access(NARROW, &load, zero, RESTORE), Rule::Clobbered, "v3");
        found(&ZERO.replace("v3, 0", "v3, 1"));
        found(&ZERO.replace("+ s_xor_b64 exec, exec, s[20:21]", ""));
        finds(target, &access(NARROW, &load, &ZERO.replace("+ s_waitcnt #0", ""), RESTORE), Rule::Wait, "v");
    }
    // EXEC is restored from lanes first, as after a check of a buffer, and narrowed then.
    let from_lanes = "+ v_writelane_b32 v9, s20, 14
        + v_writelane_b32 v9, s21, 15
        + s_and_b64 exec, exec, s[22:23]
        + s_mov_b64 exec, -1
        + v_readlane_b32 s26, v9, 14
        + v_readlane_b32 s27, v9, 15
        + s_mov_b64 exec, s[26:27]
        + s_andn2_b64 exec, exec, s[22:23]";
    accepts("gfx90a", &access(from_lanes, &load, ZERO, RESTORE));
    let other = from_lanes.replace("v_readlane_b32 s27, v9, 15", "v_readlane_b32 s27, v9, 13");
    finds("gfx90a", &access(&other, &load, ZERO, RESTORE), Rule::Exec, "exec");
}

#[test]
fn halves_that_a_load_keeps_are_kept() {
    let half = |mnemonic: &str, mask: &str| {
        let load = format!("~ {mnemonic} v3, v[0:1], off");
        let zero = format!("+ s_xor_b64 exec, exec, s[20:21]\n+ s_waitcnt #0\n+ v_and_b32_e32 v3, {mask}, v3");
        access(NARROW, &load, &zero, RESTORE)
    };
    for target in ["gfx900", "gfx1030/64"] {
        accepts(target, &half("global_load_short_d16", "0xffff0000"));
        accepts(target, &half("global_load_short_d16_hi", "0xffff"));
        finds(target, &half("global_load_short_d16", "0xffff"), Rule::Clobbered, "v3");
        finds(target, &half("global_load_short_d16_hi", "0xffff0000"), Rule::Clobbered, "v3");
        finds(target, &half("global_load_dword", "0xffff"), Rule::Clobbered, "v3");
    }
}

#[test]
fn a_clause_is_dissolved_where_it_is_a_hint() {
    let clause = "= s_clause #1
        ~ global_load_dword v3, v[0:1], off
        + s_nop #0
        global_load_dword v4, v[0:1], off
        s_endpgm";
    let newer = clause.replace("load_dword", "load_b32");
    for (target, clause) in [("gfx1030", clause), ("gfx1100", &newer), ("gfx1200", &newer)] {
        accepts(target, clause);
        finds(target, &clause.replace("= ", ""), Rule::Adjacent, "clause");
        finds(target, &clause.replace("~ ", ""), Rule::Skeleton, "s_clause");
    }
    finds("gfx1250", &newer, Rule::Skeleton, "s_clause");
    // Nothing else may become s_nop.
    finds("gfx1030", &clause.replace("s_clause #1", "s_sleep #1"), Rule::Skeleton, "s_sleep");
}
