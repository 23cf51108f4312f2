//! A kernel of up to a megabyte and more: blocks that branch back and forth across all of it.
//!
//! Direct branches reach as far as their encoding lets them in the original, so they no longer do once code is
//! inserted; farther ones are a jump through registers (`s_getpc_b64`, additions, `s_setpc_b64`), as compilers form it.

use rewriter_tests::random::Random;

use super::assembly::{FINISH, START, on_lanes};

/// Blocks of a kernel of more than a megabyte, and of one that is just too long for direct branches across it.
pub const MEGABYTE: usize = 1024;
pub const SHORT: usize = 150;
/// Bytes that fill each block but for what it does.
const FILL: usize = 960;
/// Direct branches go over so many blocks at the most: less than 128 KB of original code.
const NEAR: usize = 110;

/// The kernel's name.
pub const NAME: &str = "long";

/// A jump to any distance.
fn far(n: usize, label: &str) -> String {
    format!(
        "
    s_getpc_b64 s[10:11]
.Lpc{n}:
    s_add_u32 s10, s10, ({label}-.Lpc{n})&0xffffffff
    s_addc_u32 s11, s11, ({label}-.Lpc{n})>>32
    s_setpc_b64 s[10:11]
"
    )
}

/// The text of a kernel of so many blocks.
pub fn text(blocks: usize) -> String {
    let mut random = Random::new(1);
    let mut text = format!(".globl {NAME}\n.p2align 8\n.type {NAME},@function\n{NAME}:\n{START}");
    for n in 0..blocks {
        // Not every wave comes here with all lanes, and none stays for ever.
        text += &format!(
            "
.Lblock{n}:
    s_mov_mask EXEC, m30
    s_sub_u32 s21, s21, 1
    s_cbranch_scc0 .Lgo{n}
{}
.Lgo{n}:
    s_mul_i32 s20, s20, 0x19660d
    s_add_u32 s20, s20, {:#x}
",
            far(2 * n, ".Lend"),
            random.bits() as u32
        );
        text += &on_lanes(n, random.below(32));
        let near = |random: &mut Random| {
            let distance = NEAR / 2 + random.below(NEAR / 2);
            if random.chance(50) { n.saturating_sub(distance) } else { (n + distance).min(blocks - 1) }
        };
        let to = near(&mut random);
        let bit = random.below(32);
        text += &match random.below(6) {
            0 => format!("s_bitcmp1_b32 s20, {bit}\ns_cbranch_scc1 .Lblock{to}\n"),
            1 => format!("s_bitcmp1_b32 s20, {bit}\ns_cbranch_scc0 .Lblock{to}\n"),
            2 => format!("v_cmp_lt_u32 VCC, {:#x}, v1\ns_cbranch_vccz .Lblock{to}\n", 0xf000_0000_u32),
            3 => format!("v_cmp_lt_u32 VCC, {:#x}, v1\ns_cbranch_vccnz .Lblock{to}\n", 0xfc00_0000_u32),
            4 => format!(
                "v_cmp_lt_u32 VCC, {:#x}, v1\ns_and_saveexec_mask m8, VCC\ns_cbranch_execz .Lblock{to}\ns_mov_mask \
                    EXEC, m8\n",
                0xe000_0000_u32
            ),
            _ => {
                let to = random.below(blocks);
                format!(
                    "s_bitcmp1_b32 s20, {bit}\ns_cbranch_scc1 .Lstay{n}\n{}.Lstay{n}:\n",
                    far(2 * n + 1, &format!(".Lblock{to}"))
                )
            }
        };
        for at in 0..FILL / 8 {
            let number = random.bits() as u32 | 0x4000_0000;
            text += &match at % 3 {
                0 => format!("v_xor_b32 v1, {number:#x}, v1\n"),
                1 => format!("s_xor_b32 s20, s20, {number:#x}\n"),
                _ => format!("v_alignbit_b32 v1, v1, v1, {}\n", number % 31 + 1),
            };
        }
    }
    text + &format!(".Lend:\n{FINISH}\n.L{NAME}_end:\n.size {NAME}, .L{NAME}_end-{NAME}\n")
}
