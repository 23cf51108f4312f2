//! Small kernels that are written as no compiler, or only some compiler, writes them.

use rewriter_tests::Failure;
use rewriter_tests::instrumented::Subject;
use rewriter_tests::kernels::build;
use wavetap::isa::{self, Target};
use wavetap::kernel::Reason;

use super::assembly::{FINISH, START, counted, file, instrumented, on_lanes, variant};
use super::{calls, scheduling, seeds};

/// What becomes of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is instrumented, and the counts are those that the emulator saw.
    Counted,
    /// So are its own, but some function's may be missing, which the profile names.
    CountedWithout(&'static [&'static str]),
    /// It is left as it was, for these reasons: with counters in LDS, and in memory.
    RefusedFor([Reason; 2]),
}
use Outcome::{Counted, CountedWithout, RefusedFor};

/// Refused for one reason in both modes.
pub fn refused(reason: Reason) -> Outcome {
    RefusedFor([reason; 2])
}

/// A file with one or more kernels.
pub struct Case {
    pub name: &'static str,
    code: String,
    kernels: &'static [&'static str],
    /// Of the first kernel; others are counted.
    outcome: Outcome,
    /// An operation that a target must have.
    needs: &'static str,
}

impl Case {
    pub fn new(name: &'static str, outcome: Outcome, body: &str) -> Case {
        Case { name, code: kernel("k", &format!("{START}{body}{FINISH}")), kernels: &["k"], outcome, needs: "s_endpgm" }
    }

    /// With other text around the kernel `k`, or more kernels.
    pub fn file(name: &'static str, kernels: &'static [&'static str], outcome: Outcome, code: String) -> Case {
        Case { name, code, kernels, outcome, needs: "s_endpgm" }
    }

    pub fn needing(self, needs: &'static str) -> Case {
        Case { needs, ..self }
    }

    /// Assembles, rewrites and runs it.
    pub fn check(&self, target: Target) -> Result<(), Failure> {
        if !isa::has_operation(target, isa::Opcode::from_name(self.needs).expect("an operation")) {
            return Ok(());
        }
        let object = build::assembled(&file(&self.code, self.kernels, target), variant(target))?;
        let subject = Subject::of(&object, target)?;
        for (n, kernel) in self.kernels.iter().enumerate() {
            let outcome = if n == 0 { self.outcome } else { Counted };
            let refusals = subject.refusals(kernel);
            let uncounted = subject.uncounted(kernel);
            let without: &[&str] = match outcome {
                Counted => &[],
                CountedWithout(functions) => functions,
                RefusedFor(reasons) => {
                    let wanted = ["lds", "global"].into_iter().zip(reasons.map(Reason::name));
                    // Whichever counters are kept.
                    let counters = |mode: &'static str| mode.split(' ').next().unwrap_or(mode);
                    if !refusals.iter().map(|(mode, refused)| (counters(mode), &*refused.reason)).eq(wanted) {
                        return Err(format!("{kernel} is not refused for {reasons:?}: {refusals:?}"));
                    }
                    continue;
                }
            };
            instrumented(&subject, kernel)?;
            if uncounted.iter().any(|(_, names)| !named(names, without)) {
                return Err(format!("{kernel}: uncounted are {uncounted:?}"));
            }
            counted(&subject, kernel, seeds())?;
        }
        Ok(())
    }
}

/// Whether functions are named as expected; `?` stands for those that nobody knows, and a name without its address for
/// any.
fn named(names: &[String], expected: &[&str]) -> bool {
    names.len() == expected.len() && names.iter().zip(expected).all(|(name, expected)| name.starts_with(expected))
}

/// A kernel or function: a symbol with a size.
pub fn kernel(name: &str, body: &str) -> String {
    format!(
        ".globl {name}\n.p2align 8\n.type {name},@function\n{name}:\n{body}\n.L{name}_end:\n.size {name}, \
            .L{name}_end-{name}\n"
    )
}

/// `s[10:11]` becomes the address of a label in the code.
pub fn address(n: usize, label: &str) -> String {
    format!(
        "
    s_getpc_b64 s[10:11]
.Lpc{n}:
    s_add_u32 s10, s10, ({label}-.Lpc{n})&0xffffffff
    s_addc_u32 s11, s11, ({label}-.Lpc{n})>>32
"
    )
}

/// `s[10:11]` becomes the address of a symbol in another section.
pub const SYMBOL: &str = "
    s_getpc_b64 s[10:11]
    s_add_u32 s10, s10, symbol@rel32@lo+4
    s_addc_u32 s11, s11, symbol@rel32@hi+12
";

/// What `s[10:11]` points to goes into `s20`.
const LOAD: &str = "
    s_load_dword s24, s[10:11], 0x0
    WAIT_SCALAR
    s_xor_b32 s20, s20, s24
";

/// A word of constant data that is called `symbol`.
const DATA: &str = "\n.rodata\n.p2align 2\nsymbol: .long 0x12345678\n";

pub fn cases() -> Vec<Case> {
    let lanes = |n: usize| on_lanes(n, 3 * n + 1);
    let mut cases = vec![
        Case::new(
            "data_between_branches",
            Counted,
            &format!(
                "{}{LOAD}
                s_bitcmp1_b32 s20, 3
                s_cbranch_scc1 .Lover
                s_branch .Lbehind
            .Ldata:
                .long 0xffffffff, 0xdeadbeef, 0x7fffffff
            .Lover:
                {}
            .Lbehind:
                {}",
                address(0, ".Ldata"),
                lanes(0),
                lanes(1)
            ),
        ),
        Case::new(
            "data_behind_a_branch_that_is_always_taken",
            refused(Reason::Undecodable),
            &format!("s_cbranch_execnz .Lover\n .long 0xffffffff, 0xffffffff\n.Lover:\n{}", lanes(0)),
        ),
        Case::new(
            "chains_of_branches",
            Counted,
            &format!(
                "
                s_bitcmp1_b32 s20, 3
                s_cbranch_scc1 .La
                s_cbranch_scc0 .Lnext
            .Lnext:
                s_branch .Lb
            .La:
                s_branch .Lc
            .Lb:
                s_cbranch_execnz .Lc
                {}
            .Lc:
                s_branch .Ld
            .Le:
                s_branch .Lf
            .Ld:
                {}
                s_sub_u32 s21, s21, 7
                s_cbranch_scc0 .Ld
                s_branch .Le
            .Lf:
                {}",
                lanes(0),
                lanes(1),
                lanes(2)
            ),
        ),
        Case::new(
            "two_ends",
            Counted,
            &format!("{}\n s_bitcmp1_b32 s20, 7\n s_cbranch_scc1 .Lmore\n{FINISH}\n.Lmore:\n{}", lanes(0), lanes(1)),
        ),
        Case::new(
            "jump_through_registers",
            Counted,
            &format!("{}s_setpc_b64 s[10:11]\n.long 0xffffffff\n.Lthere:\n{}", address(0, ".Lthere"), lanes(0)),
        ),
        Case::new(
            "jump_into_a_table",
            refused(Reason::IndirectJump),
            &format!(
                "
                s_and_b32 s24, s20, 1
                s_lshl_b32 s24, s24, 2
                {}
                s_add_u32 s10, s10, s24
                s_addc_u32 s11, s11, 0
                s_setpc_b64 s[10:11]
            .Ltable:
                s_branch .La
                s_branch .Lb
            .La:
                {}
            .Lb:
                {}",
                address(0, ".Ltable"),
                lanes(0),
                lanes(1)
            ),
        ),
        Case::file(
            "code_before_the_entry",
            &["k"],
            Counted,
            format!(
                ".Lbefore:\n{}\n s_branch .Lafter\n{}",
                lanes(0),
                kernel("k", &format!("{START}\n s_branch .Lbefore\n.Lafter:\n{}{FINISH}", lanes(1)))
            ),
        ),
        Case::file(
            "no_size",
            &["k"],
            Counted,
            format!(".globl k\n.p2align 8\n.type k,@function\nk:\n{START}{}{FINISH}", lanes(0)),
        ),
        Case::file(
            "two_entries_into_common_code",
            &["k", "l"],
            Counted,
            kernel("k", &format!("{START}\n s_branch .Lcommon\n"))
                + &kernel(
                    "l",
                    &format!(
                        "{START}{}
                        s_bitcmp1_b32 s20, 5
                        s_cbranch_scc1 .Lcommon
                        s_not_b32 s20, s20
                    .Lcommon:
                        {}
                        s_sub_u32 s21, s21, 9
                        s_cbranch_scc0 .Lcommon
                        {FINISH}",
                        lanes(0),
                        lanes(1)
                    ),
                ),
        ),
        Case::file(
            "branch_to_another_kernel",
            &["k", "l"],
            Counted,
            kernel("k", &format!("{START}{}\n s_branch l\n", lanes(0)))
                + &kernel("l", &format!("{START}{}{FINISH}", lanes(1))),
        ),
        Case::file(
            "jump_to_a_function_that_ends_the_wave",
            &["k"],
            Counted,
            kernel("k", &format!("{START}{}{}s_setpc_b64 s[10:11]\n", lanes(0), address(0, "l")))
                + &kernel("l", &format!("{START}{}{FINISH}", lanes(1))),
        ),
        Case::file(
            "jump_to_another_kernel",
            &["k", "l"],
            RefusedFor([Reason::CalleeEndsWave, Reason::KernelReturns]),
            kernel("k", &format!("{START}{}{}s_setpc_b64 s[10:11]\n", lanes(0), address(0, "l")))
                + &kernel("l", &format!("{START}{}{FINISH}", lanes(1))),
        ),
    ];
    // The branch no longer reaches, and nothing may come between the members of a clause.
    let clauses: String = (0..230)
        .map(|n| {
            format!("s_clause 0x26\n{}{}", "global_store_dword v4, v1, s[6:7]\n".repeat(39), on_lanes(100 + n, n % 32))
        })
        .collect();
    let body = format!("s_bitcmp1_b32 s20, 3\n s_cbranch_scc1 .Lover\n{clauses}.Lover:\n");
    cases.push(Case::new("islands_between_clauses", Counted, &body).needing("s_clause"));
    // On gfx10.1 no branch may come between these without a wait for stores.
    let pairs = "ds_write_b32 v4, v1\n global_store_dword v4, v1, s[6:7]\n".repeat(95);
    let pairs: String = (0..80).map(|n| format!("{pairs}{}", on_lanes(200 + n, n % 32))).collect();
    let body = format!("s_cmp_eq_u32 s20, s20\n s_cbranch_scc1 .Lover\n{pairs}.Lover:\n");
    cases.push(Case::new("islands_between_lds_and_memory", Counted, &body).needing("s_waitcnt_vscnt"));
    cases.extend(skipped());
    cases.extend(program_counters());
    cases.extend(pointers());
    cases.extend(calls::cases());
    cases.extend(scheduling::cases());
    cases
}

/// Vector instructions that a bit of a scalar register lets be skipped.
fn skipped() -> Vec<Case> {
    let body = format!(
        "{}
        v_cmp_gt_i32 VCC, 0, v1
        s_setvskip s20, 3
        v_xor_b32 v1, 0x1234, v1
        v_cmp_le_i32 VCC, 0, v1
        global_store_dword v4, v1, s[6:7]
        s_setvskip 0, 0
        s_cbranch_vccz .Lzero
        {}
    .Lzero:
        s_setvskip s20, 5
        v_readfirstlane_b32 s20, v1
        global_load_dword v1, v4, s[4:5]
        s_setvskip 4, 1
        v_xor_b32 v3, 0x77, v4
        WAIT_LOADS
        v_xor_b32 v1, v1, v3
        {}
        s_setvskip 4, 2
        v_mov_b32 v1, 0
        s_setvskip 0, 0
        {}",
        on_lanes(0, 1),
        on_lanes(1, 4),
        on_lanes(2, 7),
        on_lanes(3, 9)
    );
    let counted = Case::new("skipped_vector_instructions", Counted, &body).needing("s_setvskip");
    let branch = format!("s_setvskip s20, 3\n s_cbranch_scc1 .Lover\n{}.Lover:\n s_setvskip 0, 0\n", on_lanes(0, 1));
    let inside = Case::new("branch_where_vector_instructions_may_be_skipped", refused(Reason::ModeWrite), &branch)
        .needing("s_setvskip");
    vec![counted, inside]
}

/// Branches of any length as generators of assembly (Tensile) write them: the distance is added up first, and
/// subtracted where it is negative.
fn long_branches() -> String {
    format!(
        "
        s_mov_b32 s26, 0
    .Lagain:
        s_bitcmp1_b32 s20, 3
        s_cbranch_scc0 .Lnear
        s_getpc_b64 s[10:11]
    .Lforward:
        s_add_i32 s24, .Lfar-.Lforward-4, 4
        s_add_u32 s10, s10, s24
        s_addc_u32 s11, s11, 0
        s_setpc_b64 s[10:11]
    .Lnear:
        {}
    .Lfar:
        {}
        s_lshr_b32 s20, s20, 1
        s_add_u32 s26, s26, 1
        s_cmp_gt_u32 s26, 3
        s_cbranch_scc1 .Lout
        s_getpc_b64 s[10:11]
    .Lback:
        s_add_i32 s24, .Lagain-.Lback-4, 4
        s_abs_i32 s24, s24
        s_sub_u32 s10, s10, s24
        s_subb_u32 s11, s11, 0
        s_setpc_b64 s[10:11]
    .Lout:
        ",
        on_lanes(0, 1),
        on_lanes(1, 5)
    )
}

/// `s_getpc_b64` and what is added to it.
fn program_counters() -> Vec<Case> {
    let with_data = |name, body: &str| {
        Case::file(name, &["k"], Counted, kernel("k", &format!("{START}{body}{LOAD}{}{FINISH}", on_lanes(0, 5))) + DATA)
    };
    vec![
        with_data("address_of_a_symbol", SYMBOL),
        with_data(
            "address_through_the_offset_table",
            "
            s_getpc_b64 s[10:11]
            s_add_u32 s10, s10, symbol@gotpcrel32@lo+4
            s_addc_u32 s11, s11, symbol@gotpcrel32@hi+12
            s_load_dwordx2 s[10:11], s[10:11], 0x0
            WAIT_SCALAR
            ",
        ),
        // As for gfx12, whose program counter has 48 bits.
        with_data(
            "address_with_its_sign_extended",
            "
            s_getpc_b64 s[10:11]
            s_sext_i32_i16 s11, s11
            s_add_u32 s10, s10, symbol@rel32@lo+8
            s_addc_u32 s11, s11, symbol@rel32@hi+16
            ",
        ),
        with_data(
            "address_by_a_64_bit_addition",
            "
            s_mov_b32 s24, symbol@rel32@lo+16
            s_mov_b32 s25, symbol@rel32@hi+8
            s_getpc_b64 s[10:11]
            s_add_nc_u64 s[10:11], s[10:11], s[24:25]
            ",
        )
        .needing("s_add_nc_u64"),
        Case::new(
            "address_by_subtraction",
            Counted,
            &format!(
                "
                s_branch .Lover
            .Ldata:
                .long 0x87654321
            .Lover:
                s_getpc_b64 s[10:11]
            .Lhere:
                s_sub_u32 s10, s10, .Lhere-.Ldata
                s_subb_u32 s11, s11, 0
                {LOAD}{}",
                on_lanes(0, 5)
            ),
        ),
        Case::new("generated_long_branches", Counted, &long_branches()),
        Case::new(
            "program_counter_in_the_output",
            Counted,
            &format!("s_getpc_b64 s[10:11]\n s_xor_b32 s20, s20, s10\n s_xor_b32 s20, s20, s11\n{}", on_lanes(0, 5)),
        ),
        Case::new(
            "distance_of_two_places",
            Counted,
            &format!(
                "s_getpc_b64 s[10:11]\n{}\n s_getpc_b64 s[24:25]\n s_sub_u32 s24, s24, s10\n s_xor_b32 s20, s20, s24\n",
                on_lanes(0, 5)
            ),
        ),
        Case::new(
            "condition_across_the_program_counter",
            Counted,
            &format!(
                "
                s_bitcmp1_b32 s20, 4
                s_getpc_b64 s[10:11]
                s_cselect_b32 s24, s10, s20
                s_xor_b32 s20, s20, s24
                s_bitcmp1_b32 s20, 9
                s_getpc_b64 s[10:11]
                s_cbranch_scc1 .Lset
                s_xor_b32 s20, s20, s10
            .Lset:
                {}",
                on_lanes(0, 5)
            ),
        ),
        Case::new(
            "program_counter_in_a_loop",
            Counted,
            &format!(
                "
            .Lagain:
                s_getpc_b64 vcc
                s_add_u32 s20, s20, vcc_lo
                s_addc_u32 s20, s20, vcc_hi
                {}
                s_sub_u32 s21, s21, 11
                s_cbranch_scc0 .Lagain
                ",
                on_lanes(0, 5)
            ),
        ),
    ]
}

/// Slots that the loader fills with the addresses of code.
fn pointers() -> Vec<Case> {
    let constant = "\n.section .data.rel.ro,\"aw\",@progbits\n.p2align 3\n";
    let target = format!(
        "
        WAIT_SCALAR
        s_setpc_b64 s[10:11]
        .long 0xffffffff
    .Lone:
        {}
    .Ltwo:
        {}{FINISH}",
        on_lanes(0, 5),
        on_lanes(1, 6)
    );
    vec![
        Case::file(
            "jump_to_a_relocated_label",
            &["k"],
            Counted,
            kernel("k", &format!("{START}{SYMBOL}\n s_load_dwordx2 s[10:11], s[10:11], 0x8\n{target}"))
                + &format!("{constant}symbol: .quad .Ltwo, .Lone\n"),
        ),
        Case::file(
            "jump_through_a_table_of_labels",
            &["k"],
            refused(Reason::IndirectJump),
            kernel(
                "k",
                &format!(
                    "{START}{SYMBOL}
                    s_and_b32 s24, s20, 8
                    s_add_u32 s10, s10, s24
                    s_addc_u32 s11, s11, 0
                    s_load_dwordx2 s[10:11], s[10:11], 0x0
                    {target}"
                ),
            ) + &format!("{constant}symbol: .quad .Ltwo, .Lone\n"),
        ),
        // Nobody promises that it still holds what the loader put there.
        Case::file(
            "jump_to_what_a_variable_holds",
            &["k"],
            refused(Reason::IndirectJump),
            kernel("k", &format!("{START}{SYMBOL}\n s_load_dwordx2 s[10:11], s[10:11], 0x8\n{target}"))
                + "\n.data\n.p2align 3\nsymbol: .quad .Ltwo, .Lone\n",
        ),
    ]
}
