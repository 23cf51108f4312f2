//! Code that checks vector registers between VALU and memory by itself (SCHED_MODE, gfx12), as generators of
//! matrix products do in their main loops.

use wavetap::kernel::Reason;

use super::assembly::{FINISH, START, on_lanes};
use super::written::{Case, Outcome, address, kernel, refused};

/// What only these targets have.
const NEEDS: &str = "s_wait_loadcnt";
/// Switches the checks off, and on.
const OFF: &str = "s_setreg_imm32_b32 hwreg(26, 0, 2), 2\n";
const ON: &str = "s_setreg_imm32_b32 hwreg(26, 0, 2), 0\n";

pub fn cases() -> Vec<Case> {
    let counted = |name, body: &str| Case::new(name, Outcome::Counted, body).needing(NEEDS);
    let is_refused = |name, body: &str| Case::new(name, refused(Reason::ModeWrite), body).needing(NEEDS);
    vec![
        counted("loop_without_checks_of_vector_registers", &main_loop()),
        counted(
            "code_that_ends_without_checks_of_vector_registers",
            &format!("s_wait_alu 0x0\n{OFF}{}{}", on_lanes(0, 2), end()),
        ),
        // No site is where it depends on the path.
        counted(
            "checks_of_vector_registers_on_one_path",
            &format!(
                "{}s_bitcmp1_b32 s20, 3\n s_cbranch_scc1 .Lover\n{OFF}.Lover:\n v_xor_b32 v1, 5, v1\n s_wait_alu 0x0\n\
                    {ON}{}",
                on_lanes(0, 1),
                on_lanes(1, 4)
            ),
        ),
        is_refused(
            "branch_with_checks_of_vector_registers_on_one_path",
            &format!(
                "s_bitcmp1_b32 s20, 3\n s_cbranch_scc1 .Lover\n{OFF}.Lover:\n{}s_wait_alu 0x0\n{ON}",
                on_lanes(0, 1)
            ),
        ),
        is_refused("another_scheduling_mode", &format!("s_setreg_imm32_b32 hwreg(26, 0, 2), 1\n{}", on_lanes(0, 1))),
        is_refused("scheduling_mode_of_a_register", &format!("s_setreg_b32 hwreg(26, 0, 2), s20\n{}", on_lanes(0, 1))),
        Case::file("functions_that_set_checks_of_vector_registers_back", &["k"], Outcome::Counted, calls(ON))
            .needing(NEEDS),
        Case::file(
            "function_that_leaves_without_checks_of_vector_registers",
            &["k"],
            refused(Reason::ModeWrite),
            calls(""),
        )
        .needing(NEEDS),
        is_refused(
            "call_without_checks_of_vector_registers",
            &format!(
                "s_mov_b64 s[10:11], 0\n s_wait_alu 0x0\n{OFF}{}s_swappc_b64 s[10:11], s[10:11]\n{ON}",
                on_lanes(0, 1)
            ),
        ),
    ]
}

/// A kernel and a function that both run without the checks, but for calls and returns, as compilers have it. At its
/// end the function does this.
fn calls(end: &str) -> String {
    let function = format!(
        "{OFF}s_wait_alu 0x0\n{}v_xor_b32 v1, 3, v1\n s_wait_alu 0x0\n{end}s_setpc_b64 s[30:31]\n",
        on_lanes(11, 11)
    );
    let caller = format!(
        "{START}
        s_mov_mask m12, EXEC
        s_wait_alu 0x0
        {OFF}
        {}
        s_wait_alu 0x0
        {ON}
        {}
        s_swappc_b64 s[30:31], s[10:11]
        {OFF}
        s_mov_mask m30, m12
        {}
        s_wait_alu 0x0
        {ON}
        {FINISH}",
        on_lanes(0, 1),
        address(0, "first"),
        on_lanes(1, 5)
    );
    kernel("k", &caller) + &kernel("first", &format!(".Lfirst:\n{function}"))
}

/// Loads, stores and vector instructions on the same registers, with the waits that they need, and sites next to them.
fn main_loop() -> String {
    format!(
        "
        s_mov_b32 s26, 0
        v_mov_b32 v3, 0
        s_wait_alu 0x0
        {OFF}
    .Lagain:
        global_load_dword v5, v4, s[4:5]
        v_add_nc_u32 v6, v1, v3
        {}
        s_wait_alu 0xfff
        global_store_dword v4, v6, s[6:7]
        {}
        s_wait_loadcnt 0x0
        v_xor_b32 v3, v3, v5
        s_wait_alu 0xffe3
        v_xor_b32 v1, v1, v6
        v_lshlrev_b32 v7, 1, v5
        s_wait_alu 0xfff
        global_load_dword v5, v4, s[4:5]
        v_xor_b32 v1, v1, v7
        v_cmp_lt_i32 VCC, v1, v3
        s_cbranch_vccz .Lnone
        v_xor_b32 v1, 0x77, v1
    .Lnone:
        s_wait_loadcnt 0x0
        v_xor_b32 v1, v1, v5
        s_add_co_u32 s26, s26, 1
        s_cmp_gt_u32 s26, 3
        s_wait_alu 0x0
        s_cbranch_scc0 .Lagain
        WAIT_STORES
        {ON}
        {}",
        on_lanes(0, 1),
        on_lanes(1, 7),
        on_lanes(2, 9)
    )
}

/// An end like that of all kernels, without the checks.
fn end() -> &'static str {
    "
    s_mov_mask EXEC, m30
    v_xor_b32 v1, s20, v1
    s_wait_alu 0x0
    global_store_dword v4, v1, s[6:7]
    s_endpgm
    "
}
