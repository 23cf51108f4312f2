//! Vector registers above v255 (gfx1250).

use super::listing::{accepts, finds};
use crate::Rule;

/// v1 is read again, and v257 (`v1` between the two that set high bits) as well.
fn kernel(inserted: &str) -> String {
    format!(
        "v_mov_b32_e32 v1, 0\ns_set_vgpr_msb 65\nv_mov_b32_e32 v1, 1\n{inserted}\nv_mov_b32_e32 v2, v1\ns_set_vgpr_msb \
            16640\nv_mov_b32_e32 v3, v1\ns_endpgm"
    )
}

#[test]
fn inserted_code_has_registers_of_its_own_and_sets_back_what_it_changes() {
    for target in ["gfx1250", "gfx1251"] {
        let good = "+ s_set_vgpr_msb 16640\n+ v_mov_b32_e32 v9, 0\n+ s_set_vgpr_msb 65";
        accepts(target, &kernel(good));
        accepts(target, &kernel(""));
        accepts(target, &kernel("+ s_nop 0"));
        // v265, which no original code has, by the original's high bits and by others.
        accepts(target, &kernel("+ v_mov_b32_e32 v9, 0"));
        accepts(target, &kernel("+ s_set_vgpr_msb 85\n+ v_mov_b32_e32 v9, 0\n+ s_set_vgpr_msb 65"));
        // What is in a lane of it comes back; v9 is another register.
        let lane = |read: &str| {
            format!(
                "v_mov_b32_e32 v9, 2\ns_mov_b32 s4, 3\ns_set_vgpr_msb 65\n+ s_set_vgpr_msb 85\n+ v_writelane_b32 v9, \
                    s4, 1\n+ s_mov_b32 s4, 5\n{read}\n+ s_set_vgpr_msb 65\ns_set_vgpr_msb 0\nv_mov_b32_e32 v1, s4\n\
                    v_mov_b32_e32 v2, v9\ns_endpgm"
            )
        };
        accepts(target, &lane("+ v_readlane_b32 s4, v9, 1"));
        finds(target, &lane("+ s_set_vgpr_msb 0\n+ v_readlane_b32 s4, v9, 1"), Rule::Clobbered, "reads {s4}");
        finds(target, &lane("+ v_readlane_b32 s4, v9, 2"), Rule::Clobbered, "reads {s4}");
        let high_bits = "other high bits of vector registers";
        // v257 is the original's; not set back, or to others; set back, and not enough.
        for bad in [
            "+ v_mov_b32_e32 v1, 0",
            "+ s_set_vgpr_msb 85\n+ v_mov_b32_e32 v1, 0\n+ s_set_vgpr_msb 65",
            "+ s_set_vgpr_msb 1\n+ v_mov_b32_e32 v9, v9\n+ s_set_vgpr_msb 65",
            "+ s_set_vgpr_msb 0\n+ v_mov_b32_e32 v9, 0",
            "+ s_set_vgpr_msb 0\n+ v_mov_b32_e32 v9, 0\n+ s_set_vgpr_msb 1",
            "+ s_set_vgpr_msb 0\n+ v_mov_b32_e32 v9, 0\n+ s_set_vgpr_msb 64",
            "+ s_set_vgpr_msb 0",
        ] {
            finds(target, &kernel(bad), Rule::Clobbered, high_bits);
        }
        // Which register it is that is changed.
        finds(target, &kernel(&good.replace("v9", "v1")), Rule::Clobbered, "reads {v1}");
        // After a literal for MODE, whose bits 19:12 are the high bits.
        accepts(target, &kernel(&format!("s_setreg_imm32_b32 #2049, 0x5000\n+ s_nop 0\n{good}")));
        finds(target, &kernel("+ s_setreg_imm32_b32 #2049, 0x100"), Rule::Forbidden, "s_setreg_imm32_b32");
    }
}
