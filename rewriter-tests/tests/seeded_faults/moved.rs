//! Bits that nothing has written and that instructions move between lanes, scalars and registers before they matter.

use super::faults::{Edit, Fault};

const fn lds(what: &'static str, edit: Edit, expected: &'static [&'static str]) -> Fault {
    Fault { target: "gfx1030", lanes: 32, source: "memory", kernel: "reversed_in_lds", what, edit, expected }
}

use Edit::Insert;

/// The kernel writes neither v17 and what follows, nor s20 and what follows.
pub static FAULTS: &[Fault] = &[
    lds(
        "a lane that was not written beside one that was",
        Insert(&[
            "v_writelane_b32 v17, 3, 5",
            "fix: v_writelane_b32 v17, 3, 6",
            "v_readlane_b32 s20, v17, 6",
            "v_readlane_b32 s0, v0, s20",
        ]),
        &["s20 is used as the number of a lane", "v17 was never written"],
    ),
    lds(
        "a scalar through a lane",
        Insert(&[
            "s_mov_b32 s21, 37",
            "fix: s_mov_b32 s22, 3",
            "v_writelane_b32 v17, s22, s21",
            "v_readlane_b32 s20, v17, 5",
            "v_readlane_b32 s0, v0, s20",
        ]),
        &["s20 is used as the number of a lane", "s22 was never written"],
    ),
    lds(
        "a copy of a register with one lane written",
        Insert(&[
            "v_writelane_b32 v17, 3, 5",
            "v_mov_b32_e32 v18, v17",
            "fix: v_writelane_b32 v18, 3, 4",
            "v_readlane_b32 s20, v18, 4",
            "v_readlane_b32 s0, v0, s20",
        ]),
        &["s20 is used as the number of a lane", "v17 was never written"],
    ),
    lds(
        "a copy of a scalar to all lanes",
        Insert(&["fix: s_mov_b32 s22, 0", "v_mov_b32_e32 v17, s22", "global_load_dword v9, v17, s[2:3]"]),
        &["v17 is used as an address", "s22 was never written", "global_load_dword"],
    ),
];
