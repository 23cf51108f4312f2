//! The faults. Names of registers and counts of lines are those of clang 19's output; a line that is not there is a
//! failure, never a pass.

use std::fmt;

/// What is done to the text of a kernel. A line is found by a part of it and by how many such lines are before it.
pub enum Edit {
    /// The line is taken out.
    Drop(&'static str, usize),
    /// In the line, the first text becomes the second.
    Change(&'static str, usize, &'static str, &'static str),
    /// These are put before the end of the kernel; with the fault, without those that begin with `fix: `.
    Insert(&'static [&'static str]),
}

/// A fault and what must be said of it.
pub struct Fault {
    pub target: &'static str,
    /// Lanes of a wave.
    pub lanes: u32,
    /// The file and the kernel in it.
    pub source: &'static str,
    pub kernel: &'static str,
    /// In words.
    pub what: &'static str,
    pub edit: Edit,
    /// Texts that the message has; `*` stands for anything.
    pub expected: &'static [&'static str],
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:8} {:22} {:45}", format!("{}/{}", self.target, self.lanes), self.kernel, self.what)
    }
}

const fn lds(
    target: &'static str,
    lanes: u32,
    what: &'static str,
    edit: Edit,
    expected: &'static [&'static str],
) -> Fault {
    Fault { target, lanes, source: "memory", kernel: "reversed_in_lds", what, edit, expected }
}

const fn bins(
    target: &'static str,
    lanes: u32,
    what: &'static str,
    edit: Edit,
    expected: &'static [&'static str],
) -> Fault {
    Fault { target, lanes, source: "atomics", kernel: "histogram", what, edit, expected }
}

use Edit::{Change, Drop, Insert};

const NO_BARRIER: &[&str] = &["race in LDS: ", "by `ds_", "with no barrier between them"];
const LDS_BOUNDS: &[&str] = &["LDS access of 8 bytes at offset", "outside the", "offset:20400"];
const OUTSIDE: &[&str] = &["load of 4 bytes at 0x", "is outside every allocation"];
const COUNT: Edit = Change("s_waitcnt lgkmcnt(4)", 0, "(4)", "(5)");
const COUNT_12: Edit = Change("s_wait_dscnt 0x4", 0, "0x4", "0x5");
const FAR_LDS: Edit = Change("offset:2040", 0, "2040", "20400");
const FAR: Edit = Change("v_lshlrev_b64", 0, ", 2, ", ", 20, ");
const FAR_ARGUMENTS: Edit = Change("0x24", 0, "0x24", "0x24000");

pub static FAULTS: &[Fault] = &[
    // gfx8
    lds(
        "gfx803",
        64,
        "no wait for a scalar load",
        Drop("s_waitcnt lgkmcnt(0)", 0),
        &["reads s7 while `s_load_dword`", "lgkmcnt was not waited", "s_and_b32 s4, s7"],
    ),
    lds(
        "gfx803",
        64,
        "no wait for a vector load",
        Drop("s_waitcnt vmcnt(0)", 0),
        &["reads v3 while `flat_load_dword`", "vmcnt", "v_mad_u64_u32"],
    ),
    lds(
        "gfx803",
        64,
        "no wait for LDS writes before the barrier",
        Drop("s_waitcnt lgkmcnt(0)", 1),
        &["race in LDS: load", "store by `ds_write_b", "has not waited for before the barrier"],
    ),
    lds("gfx803", 64, "no barrier", Drop("s_barrier", 0), NO_BARRIER),
    lds(
        "gfx803",
        64,
        "a wait for one LDS read too few",
        COUNT,
        &["reads v0 while `ds_read_b64`", "lgkmcnt was not waited"],
    ),
    lds(
        "gfx803",
        64,
        "no wait for the last LDS read",
        Drop("s_waitcnt lgkmcnt(0)", 2),
        &["reads v7 while `ds_read_u16`", "lgkmcnt", "v_or_b32"],
    ),
    // LDS's counter counts flat accesses to memory, too, and says nothing of them: the other still has both.
    lds(
        "gfx803",
        64,
        "no wait for a flat load but that of LDS's counter",
        Insert(&[
            "flat_load_dword v6, v[4:5]",
            "flat_load_dword v7, v[4:5]",
            "s_waitcnt lgkmcnt(0)",
            "fix: s_waitcnt vmcnt(1)",
            "v_mov_b32_e32 v8, v6",
        ]),
        &["reads v6 while `flat_load_dword`", "vmcnt was not waited", "v_mov_b32"],
    ),
    lds(
        "gfx803",
        64,
        "half of an index uninitialised",
        Drop("v_mov_b32_e32 v2, 0", 0),
        &["used as an address", "v2 was never written", "flat_load_dword"],
    ),
    lds("gfx803", 64, "an LDS offset out of bounds", FAR_LDS, LDS_BOUNDS),
    lds("gfx803", 64, "an index out of bounds", FAR, OUTSIDE),
    lds(
        "gfx803",
        64,
        "a hazard: lane select",
        Insert(&["v_readfirstlane_b32 s0, v0", "fix: s_nop 3", "v_readlane_b32 s1, v0, s0"]),
        &["hazard on s0", "selects the lane", "needs 4", "v_readlane_b32"],
    ),
    lds(
        "gfx803",
        64,
        "a hazard: mode register",
        Insert(&[
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0",
            "fix: s_nop 1",
            "s_getreg_b32 s0, hwreg(HW_REG_MODE)",
        ]),
        &["hazard on hwreg(1)", "s_setreg", "needs 2", "s_getreg_b32"],
    ),
    // gfx90a
    lds(
        "gfx90a",
        64,
        "no wait for a scalar load",
        Drop("s_waitcnt lgkmcnt(0)", 0),
        &["reads s7 while `s_load_dword`", "lgkmcnt was not waited", "s_and_b32 s4, s7"],
    ),
    lds(
        "gfx90a",
        64,
        "no wait for a vector load",
        Drop("s_waitcnt vmcnt(0)", 0),
        &["reads v1 while `global_load_dword`", "vmcnt was not waited", "v_mad_u64_u32"],
    ),
    lds(
        "gfx90a",
        64,
        "no wait for LDS writes before the barrier",
        Drop("s_waitcnt lgkmcnt(0)", 1),
        &["race in LDS: load", "store by `ds_write_b", "has not waited for before the barrier"],
    ),
    lds("gfx90a", 64, "no barrier", Drop("s_barrier", 0), NO_BARRIER),
    lds(
        "gfx90a",
        64,
        "a wait for one LDS read too few",
        COUNT,
        &["reads v0 while `ds_read_b64`", "lgkmcnt was not waited"],
    ),
    lds(
        "gfx90a",
        64,
        "no wait for the last LDS read",
        Drop("s_waitcnt lgkmcnt(0)", 2),
        &["while `ds_read_u", "lgkmcnt", "v_lshl_or_b32"],
    ),
    lds(
        "gfx90a",
        64,
        "half of an index uninitialised",
        Drop("v_mov_b32_e32 v3, 0", 0),
        &["used as an address", "v3 was never written", "global_load_dword"],
    ),
    lds(
        "gfx90a",
        64,
        "a scalar that is not loaded",
        Drop("s_load_dword s7", 0),
        &["used as an address", "s7 was never written", "global_load_dword"],
    ),
    lds("gfx90a", 64, "an LDS offset out of bounds", FAR_LDS, LDS_BOUNDS),
    lds("gfx90a", 64, "an index out of bounds", FAR, OUTSIDE),
    lds(
        "gfx90a",
        64,
        "kernel arguments out of bounds",
        FAR_ARGUMENTS,
        &["load of 4 bytes at 0x", "is outside every allocation", "s_load_dword"],
    ),
    bins(
        "gfx90a",
        64,
        "no barrier between clearing and counting",
        Drop("s_barrier", 0),
        &["race in LDS: ", "ds_add_u32", "ds_write_b32", "with no barrier"],
    ),
    bins(
        "gfx90a",
        64,
        "no barrier between counting and reading",
        Drop("s_barrier", 1),
        &["race in LDS: ", "ds_add_u32", "ds_read_b32", "with no barrier"],
    ),
    bins(
        "gfx90a",
        64,
        "counters in LDS are not cleared",
        Drop("ds_write_b32 v2, v1", 0),
        &["v0 is used as data for memory that others see", "of LDS, which was never written", "global_atomic_add"],
    ),
    lds(
        "gfx90a",
        64,
        "a hazard: scalar base of a load",
        Insert(&[
            "v_readfirstlane_b32 s0, v4",
            "v_readfirstlane_b32 s1, v5",
            "v_mov_b32_e32 v6, 0",
            "fix: s_nop 4",
            "global_load_dword v7, v6, s[0:1]",
        ]),
        &["hazard on s", "VALU writes SGPR, vector memory reads it needs 5", "global_load_dword"],
    ),
    lds(
        "gfx90a",
        64,
        "a hazard: condition of a division",
        Insert(&["v_cmp_eq_u32_e32 vcc, v0, v1", "fix: s_nop 3", "v_div_fmas_f32 v6, v0, v0, v0"]),
        &["hazard on vcc", "v_div_fmas reads it needs 4"],
    ),
    lds(
        "gfx90a",
        64,
        "a hazard: matrix result",
        Insert(&["s_nop 7", "v_mfma_f32_4x4x1f32 v[0:3], v6, v7, v[0:3]", "fix: s_nop 4", "v_mov_b32_e32 v8, v0"]),
        &["hazard on v0", "needs 5", "v_mov_b32"],
    ),
    lds(
        "gfx90a",
        64,
        "a hazard: data of a wide store",
        Insert(&["fix: s_nop 0", "v_mov_b32_e32 v0, 0"]),
        &["hazard on v0", "overwrites its data needs 1"],
    ),
    lds(
        "gfx90a",
        64,
        "a hazard: lanes of DPP",
        Insert(&["v_mov_b32_e32 v6, 1", "fix: s_nop 1", "v_mov_b32_dpp v7, v6 row_shr:1 row_mask:0xf bank_mask:0xf"]),
        &["hazard on v6", "DPP reads it needs 2"],
    ),
    // gfx942
    lds(
        "gfx942",
        64,
        "no wait for a scalar load",
        Drop("s_waitcnt lgkmcnt(0)", 0),
        &["reads s4 while `s_load_dwordx4`", "lgkmcnt was not waited", "v_mov_b32"],
    ),
    lds(
        "gfx942",
        64,
        "no wait for a vector load",
        Drop("s_waitcnt vmcnt(0)", 0),
        &["reads v1 while `global_load_dword`", "vmcnt was not waited", "ds_write_b32"],
    ),
    lds(
        "gfx942",
        64,
        "no wait for LDS writes before the barrier",
        Drop("s_waitcnt lgkmcnt(0)", 1),
        &["race in LDS: load", "store by `ds_write_b", "has not waited for before the barrier"],
    ),
    lds("gfx942", 64, "no barrier", Drop("s_barrier", 0), NO_BARRIER),
    lds(
        "gfx942",
        64,
        "a wait for one LDS read too few",
        COUNT,
        &["reads v0 while `ds_read_b64`", "lgkmcnt was not waited"],
    ),
    lds(
        "gfx942",
        64,
        "half of an index uninitialised",
        Drop("v_mov_b32_e32 v5, 0", 0),
        &["used as an address", "v5 was never written", "global_load_dword"],
    ),
    lds("gfx942", 64, "an LDS offset out of bounds", FAR_LDS, LDS_BOUNDS),
    lds("gfx942", 64, "an index out of bounds", Change("v_lshl_add_u64", 0, ", 2, ", ", 4, "), OUTSIDE),
    lds(
        "gfx942",
        64,
        "a hazard: data of a wide store",
        Insert(&["fix: s_nop 1", "v_mov_b32_e32 v0, 0"]),
        &["hazard on v0", "overwrites its data needs 2"],
    ),
    lds(
        "gfx942",
        64,
        "a hazard: transcendental result",
        Insert(&["s_nop 1", "v_rcp_f32_e32 v6, v6", "fix: s_nop 0", "v_mov_b32_e32 v7, v6"]),
        &["hazard on v6", "transcendental writes VGPR, VALU reads it needs 1"],
    ),
    lds(
        "gfx942",
        64,
        "a hazard: scalar of a comparison",
        Insert(&["v_cmp_eq_u32_e64 s[0:1], v6, v7", "fix: s_nop 1", "v_cndmask_b32_e64 v6, v6, v7, s[0:1]"]),
        &["hazard on s0", "VALU writes SGPR, VALU reads it needs 2"],
    ),
    // gfx1010
    lds(
        "gfx1010",
        32,
        "a hazard: scalar that vector memory reads",
        Insert(&[
            "v_mov_b32_e32 v8, 0",
            "global_load_dword v9, v8, s[2:3]",
            "fix: s_waitcnt_depctr 0xffe3",
            "s_mov_b32 s2, 0",
        ]),
        &[
            "hazard on s2",
            "vector memory or LDS instruction reads a scalar register, then scalar instruction writes it",
            "s_mov_b32 s2",
        ],
    ),
    lds(
        "gfx1010",
        32,
        "a hazard: scalar that scalar memory reads",
        Insert(&[
            "s_waitcnt_depctr 0xffe3",
            "s_load_dword s0, s[2:3], 0x0",
            "fix: s_mov_b32 null, 0",
            "v_readfirstlane_b32 s2, v0",
        ]),
        &["hazard on s2", "scalar memory instruction reads a scalar register, then VALU writes it"],
    ),
    lds(
        "gfx1010",
        32,
        "a hazard: EXEC written too early",
        Insert(&["fix: s_waitcnt_depctr 0xfffe", "v_cmpx_eq_u32_e32 v0, v0"]),
        &["hazard on exec", "then VALU writes it", "v_cmpx_eq_u32"],
    ),
    lds(
        "gfx1010",
        32,
        "a hazard: comparison and permutation",
        Insert(&[
            "s_waitcnt_depctr 0xfffe",
            "v_cmpx_eq_u32_e32 v0, v0",
            "fix: v_mov_b32_e32 v8, v0",
            "v_permlane16_b32 v9, v0, 0, 0",
        ]),
        &["hazard on exec", "then v_permlane", "v_permlane16_b32"],
    ),
    lds(
        "gfx1010",
        32,
        "a hazard: LDS, branch, memory",
        Insert(&[
            "v_mov_b32_e32 v8, 0",
            "ds_read_b32 v9, v8",
            "s_branch .Lseeded",
            ".Lseeded:",
            "fix: s_waitcnt_vscnt null, 0x0",
            "global_load_dword v10, v8, s[2:3]",
        ]),
        &["hazard on memory", "with a branch between them", "global_load_dword"],
    ),
    // gfx1030
    lds(
        "gfx1030",
        32,
        "no wait for a scalar load",
        Drop("s_waitcnt lgkmcnt(0)", 0),
        &["reads s7 while `s_load_dword`", "lgkmcnt was not waited", "s_and_b32 s4, s7"],
    ),
    lds(
        "gfx1030",
        32,
        "no wait for a vector load",
        Drop("s_waitcnt vmcnt(0)", 0),
        &["reads v5 while `global_load_dword`", "vmcnt was not waited", "v_mad_u64_u32"],
    ),
    lds(
        "gfx1030",
        32,
        "no wait for LDS writes before the barrier",
        Drop("s_waitcnt lgkmcnt(0)", 1),
        &["race in LDS: load", "store by `ds_write_b", "has not waited for before the barrier"],
    ),
    lds("gfx1030", 32, "no barrier", Drop("s_barrier", 0), NO_BARRIER),
    lds(
        "gfx1030",
        32,
        "a wait for one LDS read too few",
        COUNT,
        &["reads v3 while `ds_read_b64`", "lgkmcnt was not waited"],
    ),
    lds(
        "gfx1030",
        32,
        "an uninitialised LDS address",
        Drop("v_lshlrev_b32_e32 v8, 2, v0", 0),
        &["used as an address", "v8 was never written", "ds_"],
    ),
    lds("gfx1030", 32, "an LDS offset out of bounds", FAR_LDS, LDS_BOUNDS),
    lds("gfx1030", 32, "an index out of bounds", FAR, OUTSIDE),
    lds(
        "gfx1030",
        32,
        "an uninitialised condition",
        Insert(&["fix: s_mov_b32 s20, 0", "s_cmp_eq_u32 s20, 0x1234", "s_cbranch_scc1 .Lseeded", ".Lseeded:"]),
        &["scc is used as the condition of a branch", "s_cbranch_scc1"],
    ),
    lds(
        "gfx1030",
        32,
        "an uninitialised EXEC",
        Insert(&["fix: s_mov_b32 s20, -1", "s_mov_b32 exec_lo, s20"]),
        &["exec is used as EXEC", "s20 was never written", "s_mov_b32 exec_lo, s20"],
    ),
    lds(
        "gfx1030",
        32,
        "an uninitialised number of a lane",
        Insert(&["fix: s_mov_b32 s20, 3", "v_readlane_b32 s0, v0, s20"]),
        &["s20 is used as the number of a lane", "v_readlane_b32"],
    ),
    lds(
        "gfx1030",
        32,
        "a hazard: float atomic, then the mode",
        Insert(&[
            "v_mov_b32_e32 v8, 0",
            "s_mov_b32 exec_lo, 0",
            "global_atomic_fmin v8, v8, s[2:3]",
            "fix: s_nop 2",
            "s_denorm_mode 3",
        ]),
        &["hazard on mode", "atomic on floats", "s_denorm_mode"],
    ),
    bins(
        "gfx1030",
        32,
        "no barrier between counting and reading",
        Drop("s_barrier", 1),
        &["race in LDS: ", "ds_add_u32", "ds_read_b32", "with no barrier"],
    ),
    // gfx1100
    lds(
        "gfx1100",
        32,
        "no wait for a scalar load",
        Drop("s_waitcnt lgkmcnt(0)", 0),
        &["reads s4 while `s_load_b32`", "lgkmcnt was not waited", "s_and_b32 s4, s4"],
    ),
    lds(
        "gfx1100",
        32,
        "no wait for a vector load",
        Drop("s_waitcnt vmcnt(0)", 0),
        &["reads v5 while `global_load_b32`", "vmcnt was not waited", "v_mad_u64_u32"],
    ),
    lds(
        "gfx1100",
        32,
        "no wait for LDS writes before the barrier",
        Drop("s_waitcnt lgkmcnt(0)", 1),
        &["race in LDS: load", "store by `ds_store_b", "has not waited for before the barrier"],
    ),
    lds("gfx1100", 32, "no barrier", Drop("s_barrier", 0), NO_BARRIER),
    lds(
        "gfx1100",
        32,
        "a wait for one LDS read too few",
        COUNT,
        &["reads v3 while `ds_load_b64`", "lgkmcnt was not waited"],
    ),
    lds(
        "gfx1100",
        32,
        "an uninitialised LDS address",
        Drop("v_lshlrev_b32_e32 v6, 2, v0", 0),
        &["used as an address", "v6 was never written", "ds_"],
    ),
    lds("gfx1100", 32, "an LDS offset out of bounds", FAR_LDS, LDS_BOUNDS),
    lds(
        "gfx1100",
        32,
        "a hazard: transcendental result",
        Insert(&["v_rcp_f32_e32 v6, v6", "fix: s_waitcnt_depctr 0xfff", "v_mov_b32_e32 v7, v6"]),
        &["hazard on v6", "transcendental writes VGPR, VALU reads it soon after"],
    ),
    lds(
        "gfx1100",
        32,
        "a hazard: matrix result",
        Insert(&[
            "v_mov_b32_e32 v0, 0",
            "v_mov_b32_e32 v1, 0",
            "v_mov_b32_e32 v2, 0",
            "v_mov_b32_e32 v3, 0",
            "v_mov_b32_e32 v4, 0",
            "v_mov_b32_e32 v5, 0",
            "v_mov_b32_e32 v6, 0",
            "v_mov_b32_e32 v7, 0",
            "v_mov_b32_e32 v8, 0",
            "v_mov_b32_e32 v9, 0",
            "v_mov_b32_e32 v10, 0",
            "v_mov_b32_e32 v11, 0",
            "v_mov_b32_e32 v12, 0",
            "v_mov_b32_e32 v13, 0",
            "v_mov_b32_e32 v14, 0",
            "v_mov_b32_e32 v15, 0",
            "s_waitcnt_depctr 0xfff",
            "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[8:15], v[0:7]",
            "fix: v_nop",
            "v_wmma_f32_16x16x16_f16 v[8:15], v[0:7], v[0:7], v[8:15]",
        ]),
        &["hazard on v0", "another that multiplies its result", "v_wmma"],
    ),
    lds(
        "gfx1100",
        64,
        "a hazard: mask of lanes",
        Insert(&[
            "v_cndmask_b32_e64 v6, v6, v7, s[0:1]",
            "s_mov_b64 s[0:1], 0",
            "fix: s_waitcnt_depctr 0xfffe",
            "v_cndmask_b32_e64 v6, v6, v7, s[0:1]",
        ]),
        &["hazard on s0", "VALU reads a mask of lanes, SALU writes it"],
    ),
    lds(
        "gfx1100",
        64,
        "a hazard: results on both sides of EXEC",
        Insert(&[
            "v_mov_b32_e32 v6, 0",
            "s_mov_b64 exec, -1",
            "v_mov_b32_e32 v7, 0",
            "fix: s_waitcnt_depctr 0xfff",
            "v_add_nc_u32_e32 v6, v6, v7",
        ]),
        &["hazard on v6", "SALU writes EXEC", "v_add_nc_u32"],
    ),
    lds(
        "gfx1100",
        32,
        "a hazard: registers given back",
        Drop("s_nop 0", 0),
        &["hazard on message", "gives vector registers back", "s_sendmsg"],
    ),
    // gfx1200
    lds(
        "gfx1200",
        32,
        "no wait for a scalar load",
        Drop("s_wait_kmcnt 0x0", 0),
        &["reads s4 while `s_load_b32`", "kmcnt was not waited", "s_and_b32 s4, s4"],
    ),
    lds(
        "gfx1200",
        32,
        "no wait for a vector load",
        Drop("s_wait_loadcnt 0x0", 0),
        &["reads v5 while `global_load_b32`", "loadcnt was not waited", "v_mad_co_u64_u32"],
    ),
    lds(
        "gfx1200",
        32,
        "no wait for LDS writes before the barrier",
        Drop("s_wait_dscnt 0x0", 0),
        &["race in LDS: load", "store by `ds_store_b", "has not waited for before the barrier"],
    ),
    lds("gfx1200", 32, "no wait for the barrier", Drop("s_barrier_wait", 0), NO_BARRIER),
    lds(
        "gfx1200",
        32,
        "a wait for one LDS read too few",
        COUNT_12,
        &["reads v3 while `ds_load_b64`", "dscnt was not waited"],
    ),
    lds(
        "gfx1200",
        32,
        "no wait for the last LDS read",
        Drop("s_wait_dscnt 0x0", 1),
        &["while `ds_load_u", "dscnt was not waited", "v_lshl_or_b32"],
    ),
    lds(
        "gfx1200",
        32,
        "an uninitialised LDS address",
        Drop("v_lshlrev_b32_e32 v6, 2, v0", 0),
        &["used as an address", "v6 was never written", "ds_"],
    ),
    lds("gfx1200", 32, "an LDS offset out of bounds", FAR_LDS, LDS_BOUNDS),
    lds("gfx1200", 32, "an index out of bounds", FAR, OUTSIDE),
    bins(
        "gfx1200",
        32,
        "no wait for the barrier before reading",
        Drop("s_barrier_wait", 1),
        &["race in LDS: ", "ds_add_u32", "ds_load_b32", "with no barrier"],
    ),
    bins(
        "gfx1200",
        32,
        "counters in LDS are not cleared",
        Drop("ds_store_b32 v2, v1", 0),
        &["v0 is used as data for memory that others see", "of LDS, which was never written", "global_atomic_add"],
    ),
    lds(
        "gfx1200",
        32,
        "a hazard: registers given back",
        Drop("s_nop 0", 0),
        &["hazard on message", "gives vector registers back", "s_sendmsg"],
    ),
    // The counter of stores.
    lds(
        "gfx1030",
        32,
        "no wait for a store before the barrier",
        Insert(&[
            "fix: s_waitcnt_vscnt null, 0x0",
            "s_barrier",
            "v_mov_b32_e32 v8, 0",
            "global_load_dword v9, v8, s[2:3]",
        ]),
        &["reads memory at 0x", "while `global_store_dwordx4", "vscnt was not waited for", "global_load_dword"],
    ),
    lds(
        "gfx1100",
        32,
        "no wait for a store before the barrier",
        Insert(&[
            "fix: s_waitcnt_vscnt null, 0x0",
            "s_barrier",
            "v_mov_b32_e32 v8, 0",
            "global_load_b32 v9, v8, s[2:3]",
        ]),
        &["reads memory at 0x", "while `global_store_b128", "vscnt was not waited for", "global_load_b32"],
    ),
    lds(
        "gfx1200",
        32,
        "no wait for a store before the barrier",
        Insert(&[
            "fix: s_wait_storecnt 0x0",
            "s_barrier_signal -1",
            "s_barrier_wait -1",
            "v_mov_b32_e32 v8, 0",
            "global_load_b32 v9, v8, s[2:3]",
        ]),
        &["reads memory at 0x", "while `global_store_b128", "storecnt was not waited for", "global_load_b32"],
    ),
];
