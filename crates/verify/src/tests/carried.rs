//! Counters in registers.

use super::listing::{accepts, finds};
use crate::Rule;

#[test]
fn a_counter_is_in_a_register_that_no_original_code_names() {
    let kernel = |counter: &str, after: &str| {
        format!("+ s_mov_b32 {counter}, 0\ns_mov_b32 s4, 1\n+ s_add_u32 {counter}, {counter}, 1\n{after}s_endpgm")
    };
    for target in ["gfx900", "gfx1030", "gfx1100/64", "gfx1201"] {
        accepts(target, &kernel("s40", ""));
        finds(target, &kernel("s4", ""), Rule::Counter, "s4");
        // In a loop something has set it on some path.
        finds(target, "again:\n+ s_add_u32 s40, s40, 1\ns_cbranch_scc1 @again\ns_endpgm", Rule::Counter, "s40");
        // It may not be written later either: the next iteration would count on.
        finds(target, &kernel("s40", "s_mov_b32 s40, 2\n"), Rule::Counter, "s40");
        // What inserted code has just set is no counter.
        accepts(target, "s_mov_b32 s4, 1\n+ s_mov_b32 s4, 0\n+ s_add_u32 s4, s4, 1\ns_endpgm");
    }
}

#[test]
fn a_counter_in_a_lane_is_in_a_vector_register_that_no_original_code_names() {
    let kernel = |vector: &str, change: &str| {
        format!(
            "+ v_mov_b32_e32 {vector}, 0\nv_mov_b32_e32 v4, 0\n+ v_readlane_b32 s40, {vector}, 3\n{change}\
             + v_writelane_b32 {vector}, s40, 3\ns_endpgm"
        )
    };
    let add = "+ s_add_u32 s40, s40, 1\n";
    for target in ["gfx900", "gfx1030", "gfx1100/64"] {
        accepts(target, &kernel("v9", add));
        finds(target, &kernel("v4", add), Rule::Counter, "v4");
        // A lane that comes back as it was.
        accepts(target, &kernel("v4", ""));
    }
}

#[test]
fn a_mask_of_what_happened_and_a_number_of_lanes_are_counters() {
    let kernel = |counter: &str, counts: &str| format!("+ s_mov_b32 {counter}, 1\ns_mov_b32 s4, 1\n{counts}s_endpgm");
    for target in ["gfx900", "gfx1030", "gfx1100/64", "gfx1201"] {
        for counts in ["+ s_bitset1_b32 s40, 3\n", "+ s_bcnt1_i32_b64 s40, exec\n"] {
            accepts(target, &kernel("s40", counts));
            finds(target, &kernel("s4", &counts.replace("s40", "s4")), Rule::Counter, "s4");
            finds(target, &kernel("s40", &format!("{counts}s_mov_b32 s40, 2\n")), Rule::Counter, "s40");
            finds(target, &kernel("s41", counts), Rule::Counter, "s40");
        }
        // A number that is read at once is none.
        let read = "+ s_bcnt1_i32_b64 s4, exec\n+ s_add_u32 s40, s40, s4\n";
        accepts(target, &kernel("s40", &format!("+ s_mov_b32 s40, 0\n{read}")));
    }
}
