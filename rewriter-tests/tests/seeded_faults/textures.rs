//! Faults around textures. The kernels have none: an image and a sampler are put together before their end, and
//! all texels are border, so that no memory is read.

use super::faults::{Edit, Fault};

const fn lds(target: &'static str, what: &'static str, edit: Edit, expected: &'static [&'static str]) -> Fault {
    Fault { target, lanes: 32, source: "memory", kernel: "reversed_in_lds", what, edit, expected }
}

/// A one-dimensional image of one float, a sampler of whole coordinates with a border, and a coordinate far outside;
/// the format is at another place on gfx12.
macro_rules! sample {
    ($format:literal, $($after:literal),*) => {
        Edit::Insert(&[
            "s_mov_b32 s16, 0",
            $format,
            "s_mov_b32 s18, 0",
            "s_mov_b32 s19, 0x80000004",
            "s_mov_b64 s[20:21], 0",
            "s_mov_b64 s[22:23], 0",
            "s_mov_b32 s24, 0x8006",
            "s_mov_b32 s25, 0",
            "s_mov_b64 s[26:27], 0",
            "v_mov_b32_e32 v8, 0xc0a00000",
            "v_mov_b32_e32 v10, 0",
            "image_sample_lz v9, v8, s[16:23], s[24:27] dmask:0x1 dim:SQ_RSRC_IMG_1D",
            $($after),*
        ])
    };
}

pub static FAULTS: &[Fault] = &[
    lds(
        "gfx1030",
        "no wait for a texture",
        sample!("s_mov_b32 s17, 0x1600000", "fix: s_waitcnt vmcnt(0)", "v_add_f32_e32 v10, v9, v9"),
        &["reads v9 while `image_sample_lz`", "vmcnt was not waited for", "v_add_f32"],
    ),
    lds(
        "gfx1200",
        "no wait for a texture",
        sample!("s_mov_b32 s17, 0x2c0000", "fix: s_wait_samplecnt 0x0", "v_add_f32_e32 v10, v9, v9"),
        &["reads v9 while `image_sample_lz`", "samplecnt was not waited for", "v_add_f32"],
    ),
    lds(
        "gfx1200",
        "a load over a texture that was not waited for",
        sample!("s_mov_b32 s17, 0x2c0000", "fix: s_wait_samplecnt 0x0", "global_load_b32 v9, v10, s[2:3]"),
        &["overwrites v9 while `image_sample_lz`", "samplecnt was not waited for", "global_load_b32"],
    ),
];
