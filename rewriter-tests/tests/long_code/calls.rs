//! Calls of functions, near and far, by name and through what memory holds.

use wavetap::kernel::Reason;

use super::assembly::{FINISH, START, on_lanes};
use super::written::Outcome::{Counted, CountedWithout};
use super::written::{Case, SYMBOL, address, kernel, refused};

/// Two functions that return as the ABI has it.
fn functions() -> String {
    let function =
        |name: &str, n: usize| kernel(name, &format!(".L{name}:\n{}\n s_setpc_b64 s[30:31]\n", on_lanes(n, n)));
    function("first", 11) + &function("second", 12)
}

/// Two functions, of which the first leaves the address of the second where its own was.
fn sets_its_address() -> String {
    let function = |name: &str, n: usize, more: &str| {
        kernel(name, &format!(".L{name}:\n{}{more}\n s_setpc_b64 s[30:31]\n", on_lanes(n, n)))
    };
    function("first", 11, &address(9, "other")) + &function("other", 12, "")
}

/// Keeps all lanes elsewhere than where a call leaves its return address.
const CALLER: &str = "s_mov_mask m12, EXEC\n";
const CALLED: &str = "s_mov_mask m30, m12\n";

/// A kernel of which some waves end with a call.
fn last_call(function: &str) -> String {
    let die = format!("s_bitcmp1_b32 s20, 3\n s_cbranch_scc1 .Ldie\n{}{FINISH}.Ldie:\n", on_lanes(1, 4));
    let call = format!("{}s_swappc_b64 s[30:31], s[10:11]", address(0, function));
    kernel("k", &format!("{START}{}{die}{}{call}", on_lanes(0, 1), on_lanes(2, 7))) + "\n.fill 64, 4, 0\n"
}

/// Functions, near and far.
pub fn cases() -> Vec<Case> {
    let call = "s_swappc_b64 s[30:31], s[10:11]\n";
    let caller = |body: &str| kernel("k", &format!("{START}{CALLER}{body}{CALLED}{}{FINISH}", on_lanes(0, 5)));
    // 160 KB that may be passed through, and that a wave jumps over.
    let long = format!(
        "
        s_cmp_eq_u32 s21, 60
        s_cbranch_scc0 .Lslow
        {}
        s_setpc_b64 s[10:11]
    .Lslow:
        .fill 40000, 4, 0xbf800000
    .Lfast:
        ",
        address(7, ".Lfast")
    );
    vec![
        Case::file(
            "call_over_other_code",
            &["k"],
            Counted,
            caller(&format!("{}{call}", address(0, "first"))) + ".fill 50000, 4, 0xffffffff\n" + &functions(),
        ),
        Case::file(
            "call_over_own_code",
            &["k"],
            Counted,
            caller(&format!("{}{call}{long}{}{call}", address(0, "first"), address(1, "second"))) + &functions(),
        ),
        // Compilers that know what a function leaves alone keep its address there.
        Case::file(
            "calls_through_the_same_registers",
            &["k"],
            Counted,
            caller(&format!("{}{call}v_xor_b32 v1, 3, v1\n{call}{call}", address(0, "first"))) + &functions(),
        ),
        Case::file(
            "calls_through_registers_that_the_function_sets",
            &["k"],
            CountedWithout(&["first", "?"]),
            caller(&format!("{}{call}{call}", address(0, "first"))) + &sets_its_address(),
        ),
        Case::file(
            "direct_call",
            &["k"],
            Counted,
            caller("s_call_b64 s[30:31], .Lfirst\ns_call_b64 s[30:31], .Lsecond\ns_call_b64 s[30:31], .Lfirst\n")
                + &functions(),
        )
        .needing("s_call_b64"),
        // The second function is called, which nothing but a run can tell.
        Case::file(
            "call_of_what_a_variable_holds",
            &["k"],
            CountedWithout(&["?"]),
            caller(&format!(
                "{}
                v_mov_b32 v2, s10
                v_mov_b32 v3, s11
                {SYMBOL}
                v_mov_b32 v5, 0
                global_store_dwordx2 v5, v[2:3], s[10:11]
                WAIT_STORES
                v_nop
                s_dcache_inv
                WAIT_SCALAR
                s_load_dwordx2 s[10:11], s[10:11], 0x0
                WAIT_SCALAR
                {call}",
                address(0, "second")
            )) + &functions()
                + "\n.data\n.p2align 3\nsymbol: .quad first\n",
        ),
        // Nothing comes back from its last call, and nothing that is an instruction lies after it.
        Case::file(
            "call_that_nothing_comes_back_from",
            &["k"],
            Counted,
            last_call("dies") + &kernel("dies", &format!("{}\n s_endpgm\n", on_lanes(11, 2))),
        ),
        Case::file(
            "last_call_of_what_may_come_back",
            &["k"],
            refused(Reason::Undecodable),
            last_call("dies")
                + &kernel(
                    "dies",
                    &format!("s_cbranch_scc0 .Ldies\n{}\n s_endpgm\n.Ldies:\n s_setpc_b64 s[30:31]\n", on_lanes(11, 2)),
                ),
        ),
        // It is no function that anybody has named, and returns its own way.
        Case::file(
            "subroutine_without_a_name",
            &["k"],
            CountedWithout(&["function_at_", "?"]),
            caller(&format!(
                "{}s_swappc_b64 s[34:35], s[10:11]\n s_branch .Lafter\n.Lsub:\n{}s_setpc_b64 s[34:35]\n.Lafter:\n",
                address(0, ".Lsub"),
                on_lanes(1, 6)
            )),
        ),
    ]
}
