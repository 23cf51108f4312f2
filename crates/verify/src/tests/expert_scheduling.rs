//! Code that checks vector registers between VALU and memory by itself (gfx12).

use super::listing::{accepts, finds};
use crate::Rule;

/// `hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2)`, and all checks but those of vector registers, or all.
const OFF: &str = "s_setreg_imm32_b32 #0x81a, =2";
const ON: &str = "s_setreg_imm32_b32 #0x81a, =0";
/// For va_vdst and vm_vsrc.
const WAIT: &str = "s_wait_alu #0x0fe3";

/// Original code with these inserted lines where the hardware does not check registers.
fn without_checks(inserted: &[&str]) -> String {
    let inserted: String = inserted.iter().map(|line| format!("+ {line}\n")).collect();
    format!("{OFF}\n{inserted}v_mov_b32_e32 v1, 0\n{ON}\ns_endpgm")
}

#[test]
fn inserted_code_has_the_hardware_look_after_its_registers() {
    let inserted = "v_mov_b32_e32 v9, 0";
    let bracketed = [WAIT, ON, inserted, WAIT, OFF];
    for target in ["gfx1200", "gfx1201", "gfx1250", "gfx1251"] {
        accepts(target, &without_checks(&[]));
        accepts(target, &without_checks(&bracketed));
        // What has nothing to do with vector registers or memory may run as it is.
        accepts(target, &without_checks(&["s_mov_b32 s9, 0"]));
        finds(target, &without_checks(&[inserted]), Rule::Hazard, "may be left to software");
        for (missing, message) in
            [(0, "changes the mode"), (1, "may be left to software"), (3, "changes the mode"), (4, "in another mode")]
        {
            let mut lines = bracketed.to_vec();
            lines.remove(missing);
            finds(target, &without_checks(&lines), Rule::Hazard, message);
        }
        for half in ["s_wait_alu #0x0fff", "s_wait_alu #0xffe3"] {
            finds(target, &without_checks(&[half, ON, inserted, WAIT, OFF]), Rule::Hazard, "changes the mode");
        }
    }
}

#[test]
fn inserted_code_leaves_nothing_under_way() {
    let before =
        |last: &str| format!("+ v_mov_b32_e32 v9, 0\n{last}{WAIT}\n{OFF}\nv_mov_b32_e32 v1, 0\n{ON}\ns_endpgm");
    let message = "leaves something outstanding";
    finds("gfx1200", &before(""), Rule::Hazard, message);
    finds("gfx1200", &before("+ s_wait_alu #0x0fff\n"), Rule::Hazard, message);
    accepts("gfx1200", &before(&format!("+ {WAIT}\n")));
    // On every path.
    let paths = |on_path: &str| {
        format!(
            "+ v_mov_b32_e32 v9, 0\n+ s_cbranch_scc0 @on\n{on_path}on:\ns_nop 0\n{WAIT}\n{OFF}\n{WAIT}\n{ON}\ns_endpgm"
        )
    };
    finds("gfx1200", &paths(&format!("+ {WAIT}\n")), Rule::Hazard, message);
    // Where nothing switches the checks off, nothing is asked.
    accepts("gfx1200", "+ v_mov_b32_e32 v9, 0\nv_mov_b32_e32 v1, 0\ns_endpgm");
}
