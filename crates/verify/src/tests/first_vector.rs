//! The first vector instructions of a wave (gfx125x).

use super::listing::{accepts, finds};
use crate::Rule;

/// An original kernel with these instructions before it.
fn kernel_after(inserted: &[&str]) -> String {
    let inserted: String = inserted.iter().map(|line| format!("+ {line}\n")).collect();
    format!("{inserted}v_mov_b32_e32 v1, 0\ns_endpgm")
}

const BASE: &str = "s_mov_b64 s[64:65], 0";
const NOP: &str = "v_nop";
const PREFETCH: &str = "global_prefetch_b8 v0, s[64:65]";

#[test]
fn inserted_code_at_the_entry_begins_with_them() {
    for target in ["gfx1250", "gfx1251"] {
        for whole in [&[BASE, NOP, PREFETCH, "s_mov_b32 s9, 0", "v_mov_b32_e32 v9, 0"][..], &[BASE, PREFETCH, NOP]] {
            accepts(target, &kernel_after(whole));
        }
        finds(target, &kernel_after(&[BASE, PREFETCH]), Rule::Hazard, "the first vector instruction is not v_nop");
        finds(
            target,
            &kernel_after(&[BASE, "v_mov_b32_e32 v9, 0", NOP, PREFETCH]),
            Rule::Hazard,
            "the first vector instruction is not v_nop",
        );
        finds(target, &kernel_after(&[NOP]), Rule::Hazard, "the kernel branches before its first");
        let clause = &[BASE, NOP, "s_clause 0x1", PREFETCH, PREFETCH];
        finds(target, &kernel_after(clause), Rule::Hazard, "the first vector memory instruction is in a clause");
        // A branch to the original may come first.
        finds(
            target,
            &format!("+ {BASE}\n+ s_cbranch_scc0 @on\n+ {NOP}\n+ {PREFETCH}\non:\ns_endpgm"),
            Rule::Hazard,
            "the kernel branches",
        );
        // What the compiler made first is its own matter.
        accepts(target, "v_mov_b32_e32 v1, 0\n+ v_mov_b32_e32 v9, 0\ns_endpgm");
    }
    accepts("gfx1200", &kernel_after(&["v_mov_b32_e32 v9, 0"]));
}

/// HW_REG_MODE, bit 25.
const REPLAY: &str = "s_setreg_imm32_b32 #0x641, =1";

#[test]
fn inserted_code_may_write_to_mode_what_the_original_writes_first() {
    let kernel = |inserted: &[&str], original: &str| {
        let inserted: String = inserted.iter().map(|line| format!("+ {line}\n")).collect();
        format!("{inserted}{original}\nv_nop\ns_endpgm")
    };
    let sequence = |first| [first, BASE, NOP, PREFETCH];
    accepts("gfx1250", &kernel(&sequence(REPLAY), REPLAY));
    finds("gfx1250", &kernel(&sequence(REPLAY), "s_nop 0"), Rule::Forbidden, "s_setreg_imm32_b32");
    finds(
        "gfx1250",
        &kernel(&sequence(REPLAY), "s_setreg_imm32_b32 #0x641, =0"),
        Rule::Forbidden,
        "s_setreg_imm32_b32",
    );
    finds("gfx1250", &kernel(&[BASE, NOP, REPLAY, PREFETCH], REPLAY), Rule::Forbidden, "s_setreg_imm32_b32");
}
