//! What the original accesses itself where inserted code does is safe, and nothing more.

use super::listing::{accepts, check, finds};
use crate::Rule;

/// A target's own name of a load of two registers.
fn named(target: &str, text: &str) -> String {
    let later = target.starts_with("gfx11") || target.starts_with("gfx12");
    if later { text.replace("s_load_dwordx2", "s_load_b64") } else { text.to_owned() }
}

/// A kernel that calls an unknown function, which may leave anything outstanding, with what comes after it.
fn behind_a_call(text: &str) -> String {
    format!("s_mov_b64 s[2:3], 0\ns_mov_b64 s[16:17], s[0:1]\ns_swappc_b64 s[30:31], s[16:17]\n{text}\ns_endpgm")
}

/// Asserts that nothing has to be waited for; what else is wrong is not looked at here.
#[track_caller]
fn settled(name: &str, text: &str) {
    let found = check(super::listing::target(name), text);
    assert!(found.iter().all(|finding| finding.rule != Rule::Wait), "{name}: {found:#?}\n{text}");
}

const TARGETS: [&str; 5] = ["gfx803", "gfx90a", "gfx1030/64", "gfx1100/64", "gfx1200/64"];
/// What a probe may do before an original instruction.
const PROBE: &str = "+ s_and_b64 s[20:21], s[2:3], exec";

#[test]
fn what_the_next_original_instruction_accesses() {
    for target in TARGETS {
        let with = |next: &str| named(target, &behind_a_call(&format!("{PROBE}\n{next}")));
        settled(target, &with("s_and_saveexec_b64 s[4:5], s[2:3]"));
        // It would be overwritten by what is outstanding.
        settled(target, &with("s_mov_b64 s[2:3], 0"));
        // Through other inserted code, on each of its ways.
        settled(target, &with("+ s_cbranch_scc1 @on\n+ s_mov_b32 s22, 1\n+ on:\ns_and_saveexec_b64 s[4:5], s[2:3]"));
        // Half of it is not all of it.
        finds(target, &with("s_mov_b32 s4, s2"), Rule::Wait, "{s3}");
        finds(target, &with("s_mov_b32 s4, s3"), Rule::Wait, "{s2}");
        // Another one, or the same one after an instruction that may wait for it.
        finds(target, &with("s_mov_b64 s[4:5], s[6:7]"), Rule::Wait, "{s2 s3}");
        finds(target, &with("s_nop 0\ns_mov_b64 s[4:5], s[2:3]"), Rule::Wait, "{s2 s3}");
        // On one way only.
        finds(target, &with("s_cbranch_scc1 @on\ns_mov_b64 s[4:5], s[2:3]\non:"), Rule::Wait, "{s2 s3}");
        // A load that is outstanding into the same register may come in order after the other.
        finds(target, &with("s_load_dwordx2 s[2:3], s[0:1], 16"), Rule::Wait, "{s2 s3}");
    }
}

#[test]
fn what_original_code_has_accessed() {
    for target in TARGETS {
        let with = |before: &str| named(target, &behind_a_call(&format!("{before}\n{PROBE}\ns_nop 0")));
        settled(target, &with("s_mov_b64 s[4:5], s[2:3]"));
        settled(target, &with("s_mov_b64 s[2:3], 0\ns_nop 0"));
        // A probe of its own is no proof.
        finds(target, &with("+ s_mov_b64 s[22:23], s[2:3]"), Rule::Wait, "{s2 s3}");
        finds(target, &with("s_mov_b32 s4, s2"), Rule::Wait, "{s3}");
        // Since then something else was issued or called.
        finds(target, &with("s_mov_b64 s[4:5], s[2:3]\ns_load_dwordx2 s[2:3], s[0:1], 16"), Rule::Wait, "{s2 s3}");
        finds(target, &with("s_mov_b64 s[4:5], s[2:3]\ns_swappc_b64 s[30:31], s[16:17]"), Rule::Wait, "{s2 s3}");
        // On one way only.
        finds(target, &with("s_cbranch_scc1 @on\ns_mov_b64 s[4:5], s[2:3]\non:\ns_nop 0"), Rule::Wait, "{s2 s3}");
        settled(target, &with("s_cbranch_scc1 @on\ns_mov_b64 s[4:5], s[2:3]\non:\ns_mov_b64 s[6:7], s[2:3]"));
    }
}

#[test]
fn loads_of_the_kernel_itself() {
    for (target, wait) in
        [("gfx900", "s_waitcnt 0xc07f"), ("gfx1030/64", "s_waitcnt 0xc07f"), ("gfx1200/64", "s_wait_kmcnt 0")]
    {
        let text = |wait: &str| {
            named(
                target,
                &format!("s_load_dwordx2 s[2:3], s[0:1], 16\n{PROBE}\n{wait}\ns_mov_b64 s[4:5], s[2:3]\ns_endpgm"),
            )
        };
        finds(target, &text(wait), Rule::Wait, "{s2 s3}");
        settled(target, &text(&format!("+ {wait}")).replace(PROBE, &format!("{wait}\n{PROBE}")));
        // Vector registers have lanes of which the original may access others.
        let vectors = "s_swappc_b64 s[30:31], s[16:17]\n+ v_readfirstlane_b32 s20, v1\nv_mov_b32_e32 v2, v1";
        finds(target, &behind_a_call(vectors), Rule::Wait, "{v1}");
    }
}

#[test]
fn nothing_of_inserted_code_is_under_way_at_calls_and_returns() {
    let text = |kernel: &str, function: &str| {
        format!(
            "{kernel}\ns_call_b64 s[30:31], @function\ns_endpgm\nfunction:\ns_mov_b32 s4, s5\n{function}\ns_setpc_b64 \
                s[30:31]"
        )
    };
    for (target, wait) in
        [("gfx900", "s_waitcnt 0xc07f"), ("gfx1030", "s_waitcnt 0xc07f"), ("gfx1200", "s_wait_kmcnt 0")]
    {
        let (load, wait) = (named(target, "+ s_load_dwordx2 s[40:41], s[0:1], 16"), format!("\n+ {wait}"));
        finds(target, &text(&load, ""), Rule::Wait, "{s40 s41}");
        finds(target, &text("s_nop 0", &load), Rule::Wait, "{s40 s41}");
        settled(target, &text(&format!("{load}{wait}"), &format!("{load}{wait}")));
    }
}

#[test]
fn what_a_caller_left_under_way_has_arrived_once_a_function_has_waited() {
    let text = |waits: &[&str]| {
        let waits = waits.join("\n");
        format!(
            "s_call_b64 s[30:31], @function\ns_endpgm\nfunction:\n{waits}\nv_mov_b32_e32 v2, v1\n+ v_readlane_b32 s20, \
                v1, 0\ns_setpc_b64 s[30:31]"
        )
    };
    let old = ["s_waitcnt 0"];
    let new = [
        "s_wait_loadcnt 0",
        "s_wait_dscnt 0",
        "s_wait_samplecnt 0",
        "s_wait_bvhcnt 0",
        "s_wait_expcnt 0",
        "s_wait_kmcnt 0",
    ];
    for (target, waits) in
        [("gfx900", &old[..]), ("gfx1011", &old), ("gfx1030/64", &old), ("gfx1100", &old), ("gfx1200", &new)]
    {
        // Functions need not wait for stores, which write no register.
        settled(target, &text(waits));
        // Every other counter counts something that does.
        for left_out in 0..waits.len() {
            let mut fewer = waits.to_vec();
            fewer.remove(left_out);
            finds(target, &text(&fewer), Rule::Wait, "{v1}");
        }
    }
}

#[test]
fn inserted_code_goes_forward() {
    for target in ["gfx900", "gfx1200"] {
        finds(target, "s_mov_b32 s4, 0\n+ on:\n+ s_cbranch_scc1 @on\ns_endpgm", Rule::Branch, "loop forever");
        let text = "s_mov_b32 s4, 0\n+ on:\n+ s_mov_b32 s20, 0\n+ s_cbranch_scc0 @off\n+ s_branch @on\n+ off:\n\
            s_mov_b32 s5, s4\ns_endpgm";
        finds(target, text, Rule::Branch, "loop forever");
        accepts(target, &text.replace("@on", "@off"));
        // A loop of the original is one, whatever is inserted into it.
        accepts(target, "on:\ns_mov_b32 s4, 0\n+ s_mov_b32 s20, 0\ns_cbranch_scc1 @on\ns_endpgm");
    }
}

#[test]
fn giving_vector_registers_back_reads_nothing() {
    let text = |message| {
        format!("s_mov_b32 s4, 0\n+ s_mov_b32 exec_lo, 1\n+ s_mov_b32 m0, 1\ns_nop 0\ns_sendmsg {message}\ns_endpgm")
    };
    for target in ["gfx1100", "gfx1200"] {
        accepts(target, &text(3));
        finds(target, &text(1), Rule::Exec, "exec");
    }
}
