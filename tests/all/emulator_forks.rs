//! Forks and joins of divergent control flow, as the ISA guides of gfx8 and gfx9 have them.

use crate::emulated::{Bench, Snippet, compiler_is_there};

/// Two forks, one within a side of the other, the inner one through a register. v8 says which sides a lane was on, v9
/// how many lanes were there at a time, v10 how often the code after the joins ran for it. The stack takes s[0:7] up,
/// which is why the pointer in s[6:7] is put aside.
const NESTED: &str = "s_mov_b64 s[36:37], s[6:7]
 s_mov_b64 s[26:27], exec
 v_cmp_lt_u32 s[20:21], v4, v5
 v_cmp_lt_u32 s[22:23], v6, v7
 s_mov_b32 s24, 0
 s_nop 4
 s_cbranch_i_fork s[20:21], less
 v_or_b32 v8, 1, v8
 s_getpc_b64 s[32:33]
here:
 s_add_u32 s32, s32, inner-here
 s_addc_u32 s33, s33, 0
 s_getreg_b32 s25, hwreg(HW_REG_MODE, 29, 3)
 s_cbranch_g_fork s[22:23], s[32:33]
 v_or_b32 v8, 2, v8
 s_branch inner_meet
inner:
 v_or_b32 v8, 4, v8
inner_meet:
 s_bcnt1_i32_b64 s34, exec
 v_mov_b32 v9, s34
 v_add_u32 v10, 1, v10
 s_cbranch_join s25
 s_branch meet
less:
 v_or_b32 v8, 8, v8
 s_bcnt1_i32_b64 s34, exec
 v_mov_b32 v9, s34
meet:
 s_cbranch_join s24
 s_mov_b64 exec, s[26:27]
 v_add_u32 v10, 16, v10
 s_mov_b64 s[6:7], s[36:37]
 s_getreg_b32 s34, hwreg(HW_REG_MODE, 29, 3)
 v_mov_b32 v11, s34";

fn expected(words: &[[u32; 4]; 64]) -> Vec<[u32; 4]> {
    let side = |[a, b, c, d]: &[u32; 4]| {
        if a < b {
            8
        } else if c < d {
            5
        } else {
            3
        }
    };
    let count = |which: u32| words.iter().filter(|words| side(words) == which).count() as u32;
    words.iter().map(side).map(|side| [side, count(side), 16 + u32::from(side != 8), 0]).collect()
}

#[test]
fn each_lane_is_on_its_sides_and_all_meet() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for target in ["gfx900", "gfx90a", "gfx942", "gfx950"] {
        let text = crate::emulated::text_of(&[Snippet { name: "k", code: NESTED }], target != "gfx900");
        let mut bench = Bench::new(target, 1, &crate::emulated::assemble_text(dir.path(), target, &text));
        // The outer mask has few lanes, many, none and all; so has the inner one.
        for (outer, inner) in [(9, 30), (50, 3), (0, 64), (64, 1), (0, 0), (20, 44), (32, 16)] {
            let words = std::array::from_fn(|lane| {
                let lane = lane as u32;
                [lane * 37 % 64, outer, lane * 11 % 64, inner]
            });
            let found = bench.snippet("k", &words).unwrap_or_else(|fault| panic!("{target} {outer} {inner}: {fault}"));
            let expected = expected(&words);
            assert_eq!(found, expected, "{target} {outer} {inner}");
        }
    }
}

#[test]
fn a_join_without_a_fork_and_eight_forks_are_refused() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let forks: String = (0..8)
        .map(|n| {
            format!(
                "v_cmp_lt_u32 s[20:21], {n}, v0\ns_nop 4\ns_cbranch_i_fork s[20:21], skip{n}\nskip{n}:\n\
            s_mov_b64 exec, -1\n"
            )
        })
        .collect();
    let forks = format!("s_mov_b64 s[36:37], s[6:7]\n{forks}");
    let snippets = [
        Snippet { name: "join", code: "s_mov_b32 s24, 1\ns_cbranch_join s24" },
        Snippet { name: "forks", code: forks.leak() },
    ];
    let mut bench = Bench::new(
        "gfx942",
        1,
        &crate::emulated::assemble_text(dir.path(), "gfx942", &crate::emulated::text_of(&snippets, true)),
    );
    for (name, text) in [("join", "a join without a fork"), ("forks", "a fork within seven others")] {
        let fault = bench.snippet(name, &[[0; 4]; 64]).expect_err("it is refused");
        assert!(fault.to_string().contains(text), "{fault}");
    }
}
