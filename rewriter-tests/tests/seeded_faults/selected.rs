//! Registers that M0 selects: what an instruction names may be written or not, only what it accesses matters.

use super::faults::{Edit, Fault};

const fn lds(
    target: &'static str,
    lanes: u32,
    what: &'static str,
    edit: Edit,
    expected: &'static [&'static str],
) -> Fault {
    Fault { target, lanes, source: "memory", kernel: "reversed_in_lds", what, edit, expected }
}

use Edit::Insert;

/// The kernels write neither v14 on gfx8 and gfx9, nor v15 on gfx12, nor v17 and what follows on gfx1030, nor s20 and
/// what follows.
pub static FAULTS: &[Fault] = &[
    lds(
        "gfx803",
        64,
        "a relative source uninitialised",
        Insert(&[
            "s_mov_b32 m0, 2",
            "v_mov_b32_e32 v12, 0",
            "fix: v_mov_b32_e32 v14, 0",
            "v_movrels_b32_e32 v11, v12",
            "v_readfirstlane_b32 s1, v11",
            "s_nop 3",
            "v_readlane_b32 s2, v0, s1",
        ]),
        &["s1 is used as the number of a lane", "v14 was never written"],
    ),
    lds(
        "gfx90a",
        64,
        "an indexed source uninitialised",
        Insert(&[
            "s_mov_b32 s0, 2",
            "v_mov_b32_e32 v12, 0",
            "fix: v_mov_b32_e32 v14, 0",
            "s_set_gpr_idx_on s0, gpr_idx(SRC0)",
            "v_mov_b32_e32 v11, v12",
            "s_set_gpr_idx_off",
            "v_readfirstlane_b32 s1, v11",
            "s_nop 3",
            "v_readlane_b32 s2, v0, s1",
        ]),
        &["s1 is used as the number of a lane", "v14 was never written"],
    ),
    lds(
        "gfx1030",
        32,
        "a relative scalar source uninitialised",
        Insert(&[
            "s_mov_b32 m0, 2",
            "s_mov_b32 s20, 0",
            "fix: s_mov_b32 s22, 0",
            "s_movrels_b32 s24, s20",
            "v_readlane_b32 s0, v0, s24",
        ]),
        &["s24 is used as the number of a lane", "s22 was never written"],
    ),
    lds(
        "gfx1030",
        32,
        "a relative scalar destination left out",
        Insert(&[
            "s_mov_b32 m0, 2",
            "s_mov_b64 s[20:21], 0",
            "fix: s_movreld_b64 s[20:21], 0",
            "v_readlane_b32 s0, v0, s23",
        ]),
        &["s23 is used as the number of a lane", "s23 was never written"],
    ),
    lds(
        "gfx1030",
        32,
        "a relative source uninitialised, as the named one",
        Insert(&[
            "s_mov_b32 m0, 1",
            "fix: v_mov_b32_e32 v18, 0",
            "v_movrels_b32_e32 v19, v17",
            "global_load_dword v9, v19, s[2:3]",
        ]),
        &["v19 is used as an address", "v18 was never written", "global_load_dword"],
    ),
    lds(
        "gfx1030",
        32,
        "a relative source and destination uninitialised",
        Insert(&[
            "s_mov_b32 m0, 0x30002",
            "v_mov_b32_e32 v17, 0",
            "v_mov_b32_e32 v18, 0",
            "fix: v_mov_b32_e32 v19, 0",
            "v_movrelsd_2_b32_e32 v18, v17",
            "global_load_dword v9, v21, s[2:3]",
        ]),
        &["v21 is used as an address", "v19 was never written", "global_load_dword"],
    ),
    lds(
        "gfx1030",
        32,
        "a relative exchange with what is uninitialised",
        Insert(&[
            "s_mov_b32 m0, 0x30002",
            "v_mov_b32_e32 v17, 0",
            "v_mov_b32_e32 v18, 0",
            "fix: v_mov_b32_e32 v19, 0",
            "v_mov_b32_e32 v21, 0",
            "v_swaprel_b32 v18, v17",
            "global_load_dword v9, v19, s[2:3]",
            "global_load_dword v9, v21, s[2:3]",
        ]),
        &["v21 is used as an address", "v19 was never written", "global_load_dword"],
    ),
    lds(
        "gfx1030",
        32,
        "an uninitialised number of a register",
        Insert(&["fix: s_mov_b32 m0, 2", "v_mov_b32_e32 v17, 0", "v_movrels_b32_e32 v18, v17"]),
        &["m0 is used as the number of a register", "v_movrels_b32"],
    ),
    lds(
        "gfx1030",
        32,
        "a relative source beyond all registers",
        Insert(&["s_mov_b32 m0, -1", "fix: s_mov_b32 m0, 0", "v_mov_b32_e32 v17, 0", "v_movrels_b32_e32 v18, v17"]),
        &["is outside the", "registers that the kernel descriptor allocates", "v_movrels_b32"],
    ),
    lds(
        "gfx1200",
        32,
        "a relative source uninitialised",
        Insert(&[
            "s_mov_b32 m0, 2",
            "v_mov_b32_e32 v13, 0",
            "fix: v_mov_b32_e32 v15, 0",
            "v_movrels_b32_e32 v12, v13",
            "global_load_b32 v9, v12, s[2:3]",
        ]),
        &["v12 is used as an address", "v15 was never written", "global_load_b32"],
    ),
    lds(
        "gfx1200",
        32,
        "a relative destination left out",
        Insert(&[
            "s_mov_b32 m0, 2",
            "v_mov_b32_e32 v12, 0",
            "v_mov_b32_e32 v13, 0",
            "fix: v_movreld_b32_e32 v13, v12",
            "global_load_b32 v9, v15, s[2:3]",
        ]),
        &["v15 is used as an address", "v15 was never written", "global_load_b32"],
    ),
];
