//! What the original can see, on every target: EXEC and masks of wave32, M0 where LDS needs it, names of later
//! targets; and functions that were copied.

use super::listing::{accepts, finds};
use crate::Rule;

#[test]
fn exec_and_masks_in_waves_of_32() {
    let text = "v_mov_b32_e32 v0, 0\n+ s_mov_b32 s20, exec_lo\n+ s_mov_b32 exec_lo, 1\n@v_mov_b32_e32 v1, v0\ns_endpgm";
    for target in ["gfx1030", "gfx1103", "gfx1200"] {
        finds(target, &text.replace('@', ""), Rule::Exec, "exec");
        accepts(target, &text.replace('@', "+ s_mov_b32 exec_lo, s20\n"));
        let saved = text.replace("+ s_mov_b32 s20, exec_lo\n+ s_mov_b32 exec_lo, 1\n", "+ s_and_saveexec_b32 s20, 1\n");
        accepts(target, &saved.replace('@', "+ s_mov_b32 exec_lo, s20\n"));
        // The other half is no part of it.
        finds(target, &text.replace('@', "+ s_mov_b32 exec_lo, s21\n"), Rule::Exec, "exec");
    }
    finds(
        "gfx1030",
        "v_mov_b32_e32 v0, 0\n+ v_cmpx_eq_u32_e32 0, v0\nv_mov_b32_e32 v1, v0\ns_endpgm",
        Rule::Exec,
        "exec",
    );
}

/// Two lanes of v3 are kept, written and given back.
fn two_lanes(exec: &str, write: &str, last: &str) -> String {
    format!(
        "v_mov_b32_e32 v3, 5
        + s_nop 4
        + v_readlane_b32 s20, v3, 0
        + v_readlane_b32 s21, v3, 1
        + s_mov_b64 s[22:23], exec
        {exec}
        {write}
        + s_mov_b64 exec, s[22:23]
        + v_writelane_b32 v3, s20, 0
        {last}
        + s_nop 4
        v_mov_b32_e32 v4, v3
        s_endpgm"
    )
}

#[test]
fn vector_instructions_change_active_lanes_alone() {
    let (two, write, last) = ("+ s_mov_b64 exec, 3", "+ v_mov_b32_e32 v3, 7", "+ v_writelane_b32 v3, s21, 1");
    let either = |a: u32, b: u32| format!("+ s_cmp_eq_u32 s20, 0\n+ s_cselect_b64 exec, {a}, {b}");
    for target in ["gfx803", "gfx90a", "gfx1030/64"] {
        let accepts = |exec: &str, write, last| accepts(target, &two_lanes(exec, write, last));
        let finds = |exec: &str, write, last| finds(target, &two_lanes(exec, write, last), Rule::Clobbered, "v3");
        accepts(two, write, last);
        accepts("+ s_mov_b64 exec, 1", write, "");
        accepts(&either(1, 2), write, last);
        accepts(&either(1, 1), write, "");
        // More lanes are active, or may be; or one is not restored.
        finds("", write, last);
        finds("+ s_mov_b64 exec, 7", write, last);
        finds("+ s_mov_b64 exec, -1", write, last);
        finds(&either(1, 4), write, last);
        finds("+ s_cbranch_scc0 @on\n+ s_mov_b64 exec, 3\n+ on:", write, last);
        finds(two, write, "");
        finds(&either(1, 2), write, "");
        // That this one writes no other lanes is not known.
        finds(two, "+ v_or_b32_e32 v3, v3, v0", last);
    }
}

#[test]
fn what_nothing_has_set_comes_back_as_well() {
    // In the first round nothing has set s18, in later ones the original has.
    let text = "+ s_brev_b32 s18, 1
        top:
        + v_writelane_b32 v3, s18, 0
        + s_cbranch_vccz @skip
        + s_mov_b32 s18, 0
        + skip:
        @
        s_cbranch_vccnz @on
        s_mov_b32 s18, 5
        on:
        v_mov_b32_e32 v1, s18
        s_cbranch_scc0 @top
        s_endpgm";
    accepts("gfx90a", &text.replace("@\n", "+ v_readlane_b32 s18, v3, 0\n+ s_nop 4\n"));
    finds("gfx90a", &text.replace("@\n", "\n"), Rule::Clobbered, "s18");
    finds("gfx90a", &text.replace("@\n", "+ v_readlane_b32 s18, v3, 1\n+ s_nop 4\n"), Rule::Clobbered, "s18");
}

#[test]
fn scc_is_kept_as_a_flag() {
    let text = "s_cmp_eq_u32 s0, 0\n+ s_cselect_b32 s20, 1, 0\n+ ADD s21, s0, 1\n@s_cbranch_scc1 @on\non:\ns_endpgm";
    for (target, add) in [("gfx803", "s_add_u32"), ("gfx1030", "s_add_u32"), ("gfx1200", "s_add_co_u32")] {
        let text = text.replace("ADD", add);
        finds(target, &text.replacen('@', "", 1), Rule::Scc, "scc");
        accepts(target, &text.replacen('@', "+ s_cmp_lg_u32 s20, 0\n", 1));
        finds(target, &text.replacen('@', "+ s_cmp_eq_u32 s20, 0\n", 1), Rule::Scc, "scc");
    }
}

#[test]
fn m0_limits_lds_on_gfx8() {
    let text = "v_mov_b32_e32 v0, 0\n+ s_mov_b32 s20, m0\n@+ ds_write_b32 v0, v0\n+ s_mov_b32 m0, s20\ns_endpgm";
    finds("gfx803", &text.replace('@', ""), Rule::Lds, "M0");
    accepts("gfx803", &text.replace('@', "+ s_mov_b32 m0, -1\n"));
    finds("gfx803", &text.replace('@', "+ s_mov_b32 m0, 64\n"), Rule::Lds, "M0");
    accepts("gfx900", &text.replace('@', ""));
    // And it is restored.
    let used = "s_mov_b32 m0, -1\nv_mov_b32_e32 v0, 0\n+ s_mov_b32 m0, 0\nds_write_b32 v0, v0\ns_endpgm";
    finds("gfx803", used, Rule::Clobbered, "m0");
}

#[test]
fn registers_that_are_not_ours() {
    finds("gfx1200", "+ s_mov_b32 ttmp9, 0\ns_endpgm".replace("ttmp9", "s117").as_str(), Rule::Forbidden, "s_mov_b32");
    accepts("gfx1030", "+ s_mov_b32 s20, null\n+ s_cmp_lg_u32 s20, 0\ns_endpgm");
    for forbidden in ["s_barrier", "s_inst_prefetch 0", "s_denorm_mode 0", "s_round_mode 0", "s_sleep 1"] {
        finds("gfx1030", &format!("+ {forbidden}\ns_endpgm"), Rule::Forbidden, "inserted code contains");
    }
    // Of messages, the one that asks for the time.
    accepts("gfx1100", "+ s_sendmsg_rtn_b64 s[20:21], #131\n+ s_waitcnt 0xfc07\ns_endpgm");
    finds("gfx1100", "+ s_sendmsg_rtn_b64 s[20:21], #130\ns_endpgm", Rule::Forbidden, "s_sendmsg_rtn_b64");
}

#[test]
fn waits_of_every_generation() {
    let text = "v_mov_b32_e32 v0, 0\n+ LOAD v9, v0, s[0:1]\n@+ v_readfirstlane_b32 s20, v9\ns_endpgm";
    for (target, load, wait, other) in [
        ("gfx900", "global_load_dword", "s_waitcnt 0x0f70", "s_waitcnt 0xc07f"),
        ("gfx1030", "global_load_dword", "s_waitcnt 0x3f70", "s_waitcnt_vscnt null, 0"),
        ("gfx1100", "global_load_b32", "s_waitcnt 0x03f7", "s_waitcnt_vscnt null, 0"),
        ("gfx1200", "global_load_b32", "s_wait_loadcnt 0", "s_wait_storecnt 0"),
    ] {
        let text = text.replace("LOAD", load);
        finds(target, &text.replace('@', ""), Rule::Wait, "no wait");
        finds(target, &text.replace('@', &format!("+ {other}\n")), Rule::Wait, "no wait");
        accepts(target, &text.replace('@', &format!("+ {wait}\n")));
    }
}

#[test]
fn operations_of_one_kind_arrive_in_order_whatever_else_is_under_way() {
    // A flat operation has no place in the order of the others.
    let text = |second: &str, used: &str| {
        format!(
            "v_mov_b32_e32 v0, 0\nv_mov_b32_e32 v1, 0\n+ flat_store_dword v[0:1], v0\nglobal_load_dword v8, v0, \
                s[0:1]\n{second}\n\
             s_waitcnt 0x0f71\n+ v_readfirstlane_b32 s20, {used}\ns_endpgm"
        )
    };
    let (global, flat) = ("global_load_dword v9, v0, s[0:1]", "flat_load_dword v9, v[0:1]");
    for target in ["gfx900", "gfx90a"] {
        accepts(target, &text(global, "v8"));
        finds(target, &text(global, "v9"), Rule::Wait, "v9");
        finds(target, &text(flat, "v8"), Rule::Wait, "v8");
        finds(target, &text("s_nop 0", "v8"), Rule::Wait, "v8");
        // One that may be of either kind, and a wait that is enough for one of them.
        let either = format!("s_cbranch_scc0 @on\nflat_load_dword v8, v[0:1]\non:\n{global}");
        finds(target, &text(&either, "v8"), Rule::Wait, "v8");
        accepts(target, &text(&either, "v8").replace("0x0f71", "0"));
        // The same on one path.
        finds(target, &text(&format!("flat_load_dword v8, v[0:1]\n{global}"), "v8"), Rule::Wait, "v8");
        finds(target, &text(&format!("{global}\nflat_load_dword v10, v[0:1]"), "v9"), Rule::Wait, "v9");
    }
}

/// A kernel that calls a function, both with inserted lines.
fn call(kernel: &str, function: &str) -> String {
    format!(
        "s_mov_b32 s32, 0\n{kernel}s_call_b64 s[30:31], @function\ns_mov_b32 s6, s5\ns_endpgm\n\
         function:\n{function}s_mov_b32 s5, s4\ns_setpc_b64 s[30:31]"
    )
}

#[test]
fn copied_functions_are_checked_like_kernels() {
    for target in ["gfx900", "gfx1030", "gfx1100/64", "gfx1201"] {
        accepts(target, &call("", ""));
        accepts(target, &call("+ s_mov_b32 s40, 0\n", "+ s_mov_b32 s40, 1\n"));
        // The function reads s4; what reads s5 after the call is not the kernel's probe's concern.
        finds(target, &call("s_mov_b32 s4, 7\n+ s_mov_b32 s4, 0\n", ""), Rule::Clobbered, "s4");
        finds(target, &call("", "+ s_mov_b32 s30, 0\n"), Rule::Clobbered, "s30");
        finds(target, &call("", "+ s_mov_b32 s40, exec_lo\n+ s_mov_b32 exec_lo, 0\n"), Rule::Exec, "copy of");
        // What the kernel keeps in a register of its own does not survive the copy, which may use the same.
        let kept = "s_mov_b32 s4, 7\n+ s_mov_b32 s40, s6\n+ s_mov_b32 s6, 0\n";
        let text = call(&format!("s_mov_b32 s6, 1\n{kept}"), "")
            .replace("s_mov_b32 s6, s5", "+ s_mov_b32 s6, s40\ns_mov_b32 s7, s6");
        finds(target, &text, Rule::Clobbered, "s6");
    }
}

/// A kernel that sets s6, s7 and VCC and calls `f` once or twice, and is at its end then; `f` calls `g`. Inserted lines
/// where each is.
fn nested(behind: &str, f: &str, g: &str) -> String {
    // What the caller has loaded may be outstanding at a function's entry.
    format!(
        "s_mov_b32 s32, 0\ns_mov_b32 s6, 7\ns_mov_b32 s7, 8\ns_mov_b32 vcc_lo, 1\ns_call_b64 s[30:31], @f\n\
         {behind}s_endpgm\n\
         f:\nWAIT\ns_mov_b32 s34, s30\ns_mov_b32 s35, s31\ns_call_b64 s[30:31], @g\n{f}s_setpc_b64 s[34:35]\n\
         g:\nWAIT\ns_mov_b32 s5, s4\n{g}s_setpc_b64 s[30:31]"
    )
}

#[test]
fn what_functions_change_may_be_read_by_no_caller() {
    let change = "+ s_mov_b32 s6, 0\n";
    let later = "s_wait_loadcnt 0\ns_wait_samplecnt 0\ns_wait_bvhcnt 0\ns_wait_dscnt 0\ns_wait_kmcnt 0";
    for (target, wait) in
        [("gfx900", "s_waitcnt 0"), ("gfx1030", "s_waitcnt 0"), ("gfx1100/64", "s_waitcnt 0"), ("gfx1201", later)]
    {
        let accepts = |text: &str| accepts(target, &text.replace("WAIT", wait));
        let finds = |text: &str, rule, part| finds(target, &text.replace("WAIT", wait), rule, part);
        // Nothing reads it.
        accepts(&nested("", change, ""));
        accepts(&nested("", "", change));
        accepts(&nested("s_mov_b32 s6, s5\ns_mov_b32 s8, s6\n", "", change));
        accepts(&nested("s_mov_b32 s8, s7\n", "", change));
        // The next caller does, or the one after it, some way or in a later call; or a copy of it is inserted and
        // read.
        finds(
            &nested("s_mov_b32 s8, s6\n", change, ""),
            Rule::Clobbered,
            "{s6}, which inserted code changed, changed by s_call_b64",
        );
        finds(
            &nested("s_mov_b32 s8, s6\n", "", change),
            Rule::Clobbered,
            "{s6}, which inserted code changed, changed by s_call_b64",
        );
        finds(
            &nested("", "s_mov_b32 s8, s6\n", change),
            Rule::Clobbered,
            "{s6}, which inserted code changed, changed by s_call_b64",
        );
        finds(
            &nested("s_cbranch_scc0 @on\ns_mov_b32 s6, 1\non:\ns_mov_b32 s8, s6\n", "", change),
            Rule::Clobbered,
            "s6",
        );
        finds(&nested("+ s_mov_b32 s7, s6\ns_mov_b32 s8, s7\n", "", change), Rule::Clobbered, "s7");
        finds(&nested("s_mov_b32 s8, vcc_lo\n", "", "+ s_mov_b64 vcc, 0\n"), Rule::Clobbered, "vcc_lo");
        let again = "s_add_u32 s9, s9, 1\ns_call_b64 s[30:31], @f\n";
        finds(&nested(again, "", change).replace("s5, s4", "s5, s6"), Rule::Clobbered, "s6");
        // Where to return to is read at once; and what is no scalar register with a number stays.
        finds(&nested("", "", "+ s_mov_b32 s30, 0\n"), Rule::Clobbered, "s30");
        finds(&nested("", "", "+ s_mov_b32 s34, 0\n"), Rule::Branch, "Return became");
        finds(&nested("", "", "+ s_mov_b32 exec_lo, 0\n"), Rule::Exec, "exec");
        finds(&nested("", "", "+ s_mov_b32 m0, 0\n"), Rule::Clobbered, "m0");
        finds(&nested("", "", "+ s_cmp_lg_u32 s6, 0\n"), Rule::Scc, "scc");
        finds(&nested("v_mov_b32_e32 v1, v0\n", "", "+ v_mov_b32_e32 v1, 0\n"), Rule::Clobbered, "v1");
        // A function that may run while it runs.
        let recursive = nested("", "s_cbranch_scc0 @over\ns_call_b64 s[30:31], @f\nover:\n", change);
        finds(&recursive.replace("s34", "s4").replace("s35", "s5").replace("34:35", "4:5"), Rule::Clobbered, "s6");
    }
}

#[test]
fn registers_that_nothing_has_set() {
    for target in ["gfx900", "gfx1030"] {
        finds(target, "+ s_add_u32 s20, s21, s0\ns_endpgm", Rule::Undefined, "s21");
        finds(target, "+ v_mov_b32_e32 v9, v8\ns_endpgm", Rule::Undefined, "v8");
        accepts(target, "+ s_mov_b32 s21, s1\n+ s_add_u32 s20, s21, s0\n+ v_mov_b32_e32 v9, v0\ns_endpgm");
        // On one path is enough: what is put away need not be there on every one.
        accepts(target, "+ s_cbranch_execz @on\n+ s_mov_b32 s21, 0\n+ on:\n+ s_mov_b32 s20, s21\ns_endpgm");
    }
}
