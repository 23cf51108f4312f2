//! Code that has told the hardware not to check vector registers between VALU and memory (SCHED_MODE, gfx12), and
//! forgets a wait of its own.

use super::faults::{Edit, Fault};

const fn lds(what: &'static str, edit: Edit, expected: &'static [&'static str]) -> Fault {
    Fault { target: "gfx1200", lanes: 32, source: "memory", kernel: "reversed_in_lds", what, edit, expected }
}

/// The mode is on around these; nothing is outstanding when it is switched.
macro_rules! unchecked {
    ($($line:literal),*) => {
        Edit::Insert(&[
            "s_wait_storecnt 0x0",
            "v_mov_b32_e32 v8, 0",
            "s_wait_alu 0x0",
            "s_setreg_imm32_b32 hwreg(26, 0, 2), 2",
            $($line,)*
            "s_wait_dscnt 0x0",
            "s_wait_alu 0x0",
            "s_setreg_imm32_b32 hwreg(26, 0, 2), 0",
        ])
    };
}

pub static FAULTS: &[Fault] = &[
    lds(
        "no wait before LDS reads VALU's result",
        unchecked!("v_mov_b32_e32 v8, 4", "fix: s_wait_alu 0xfff", "ds_load_b32 v9, v8"),
        &["hazard on v8", "VALU writes VGPR", "with no wait for va_vdst", "ds_load_b32"],
    ),
    lds(
        "no wait before a load over VALU's result",
        unchecked!("v_mov_b32_e32 v9, 4", "fix: s_wait_alu 0xfff", "ds_load_b32 v9, v8"),
        &["hazard on v9", "VALU writes VGPR", "with no wait for va_vdst", "ds_load_b32"],
    ),
    lds(
        "no wait before a load over VALU's source",
        unchecked!("v_mov_b32_e32 v9, v8", "fix: s_wait_alu 0xfff", "ds_load_b32 v8, v8"),
        &["hazard on v8", "VALU reads VGPR", "with no wait for va_vdst", "ds_load_b32"],
    ),
    lds(
        "VALU overwrites what LDS has yet to read",
        unchecked!("ds_load_b32 v9, v8", "fix: s_wait_alu 0xffe3", "v_mov_b32_e32 v8, 8"),
        &["hazard on v8", "it is overwritten with no wait for vm_vsrc", "v_mov_b32"],
    ),
    lds(
        "a wait for all vector instructions but two",
        unchecked!(
            "v_mov_b32_e32 v8, 4",
            "v_mov_b32_e32 v10, 0",
            "fix: s_wait_alu 0x1fff",
            "s_wait_alu 0x2fff",
            "ds_load_b32 v9, v8"
        ),
        &["hazard on v8", "VALU writes VGPR", "with no wait for va_vdst", "ds_load_b32"],
    ),
    lds(
        "a wait for all vector instructions but a transcendental",
        unchecked!(
            "v_mov_b32_e32 v9, 0",
            "v_mov_b32_e32 v8, 4",
            "v_exp_f32_e32 v9, v9",
            "fix: s_wait_alu 0xfff",
            "s_wait_alu 0x1fff",
            "ds_load_b32 v9, v8"
        ),
        &["hazard on v8", "VALU writes VGPR", "with no wait for va_vdst", "ds_load_b32"],
    ),
    lds(
        "a wait for all sources but two",
        unchecked!(
            "v_mov_b32_e32 v7, v8",
            "s_wait_alu 0xfff",
            "ds_load_b32 v9, v8",
            "ds_load_b32 v10, v7",
            "fix: s_wait_alu 0xffe7",
            "s_wait_alu 0xffeb",
            "v_mov_b32_e32 v8, 8"
        ),
        &["hazard on v8", "it is overwritten with no wait for vm_vsrc", "v_mov_b32"],
    ),
    lds(
        "a wait for all loads but two, of two",
        unchecked!(
            "v_mov_b32_e32 v7, v8",
            "s_wait_alu 0xfff",
            "ds_load_b32 v9, v8",
            "ds_load_b32 v10, v7",
            "fix: s_wait_dscnt 0x1",
            "s_wait_dscnt 0x2",
            "v_mov_b32_e32 v8, 8"
        ),
        &["hazard on v8", "it is overwritten with no wait for vm_vsrc", "v_mov_b32"],
    ),
    lds(
        "what is under way stays so when the mode changes",
        Edit::Insert(&[
            "s_wait_storecnt 0x0",
            "v_mov_b32_e32 v8, 0",
            "fix: s_wait_alu 0xfff",
            "s_setreg_imm32_b32 hwreg(26, 0, 2), 2",
            "ds_load_b32 v9, v8",
            "s_wait_dscnt 0x0",
        ]),
        &["hazard on v8", "VALU writes VGPR", "with no wait for va_vdst", "ds_load_b32"],
    ),
];
