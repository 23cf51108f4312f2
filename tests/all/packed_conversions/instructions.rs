// Words of LLVM 24's assembler; the first source is in v16, the scale in v32, the result in v40.

const CONVERSIONS: &[Conversion] = &[
    // v_cvt_scale_pk8_f32_fp8 v[40:47], v[16:17], v32
    Conversion { words: ".long 0xd6aa0028, 0x02024110", count: 8, from: FP8, to: F32, scale: Some(first_byte) },
    // v_cvt_scale_pk8_f32_fp8 v[40:47], v[16:17], v32 scale_sel:8
    Conversion { words: ".long 0xd6aa4028, 0x02024110", count: 8, from: FP8, to: F32, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk8_fp8_f32 v[40:41], v[16:23], v32
    Conversion { words: ".long 0xd6c30028, 0x02024110", count: 8, from: F32, to: FP8, scale: None },
    // v_cvt_scale_pk8_f16_fp8 v[40:43], v[16:17], v32
    Conversion { words: ".long 0xd6a80028, 0x02024110", count: 8, from: FP8, to: F16, scale: Some(first_byte) },
    // v_cvt_scale_pk8_f16_fp8 v[40:43], v[16:17], v32 scale_sel:8
    Conversion { words: ".long 0xd6a84028, 0x02024110", count: 8, from: FP8, to: F16, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk8_fp8_f16 v[40:41], v[16:19], v32
    Conversion { words: ".long 0xd6c40028, 0x02024110", count: 8, from: F16, to: FP8, scale: None },
    // v_cvt_scale_pk8_bf16_fp8 v[40:43], v[16:17], v32
    Conversion { words: ".long 0xd6a90028, 0x02024110", count: 8, from: FP8, to: BF16, scale: Some(first_byte) },
    // v_cvt_scale_pk8_bf16_fp8 v[40:43], v[16:17], v32 scale_sel:8
    Conversion { words: ".long 0xd6a94028, 0x02024110", count: 8, from: FP8, to: BF16, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk8_fp8_bf16 v[40:41], v[16:19], v32
    Conversion { words: ".long 0xd6b40028, 0x02024110", count: 8, from: BF16, to: FP8, scale: None },
    // v_cvt_scale_pk8_f32_bf8 v[40:47], v[16:17], v32
    Conversion { words: ".long 0xd6ad0028, 0x02024110", count: 8, from: BF8, to: F32, scale: Some(first_byte) },
    // v_cvt_scale_pk8_f32_bf8 v[40:47], v[16:17], v32 scale_sel:8
    Conversion { words: ".long 0xd6ad4028, 0x02024110", count: 8, from: BF8, to: F32, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk8_bf8_f32 v[40:41], v[16:23], v32
    Conversion { words: ".long 0xd6c50028, 0x02024110", count: 8, from: F32, to: BF8, scale: None },
    // v_cvt_scale_pk8_f16_bf8 v[40:43], v[16:17], v32
    Conversion { words: ".long 0xd6ab0028, 0x02024110", count: 8, from: BF8, to: F16, scale: Some(first_byte) },
    // v_cvt_scale_pk8_f16_bf8 v[40:43], v[16:17], v32 scale_sel:8
    Conversion { words: ".long 0xd6ab4028, 0x02024110", count: 8, from: BF8, to: F16, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk8_bf8_f16 v[40:41], v[16:19], v32
    Conversion { words: ".long 0xd6c60028, 0x02024110", count: 8, from: F16, to: BF8, scale: None },
    // v_cvt_scale_pk8_bf16_bf8 v[40:43], v[16:17], v32
    Conversion { words: ".long 0xd6ac0028, 0x02024110", count: 8, from: BF8, to: BF16, scale: Some(first_byte) },
    // v_cvt_scale_pk8_bf16_bf8 v[40:43], v[16:17], v32 scale_sel:8
    Conversion { words: ".long 0xd6ac4028, 0x02024110", count: 8, from: BF8, to: BF16, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk8_bf8_bf16 v[40:41], v[16:19], v32
    Conversion { words: ".long 0xd6b50028, 0x02024110", count: 8, from: BF16, to: BF8, scale: None },
    // v_cvt_scale_pk8_f32_fp4 v[40:47], v16, v32
    Conversion { words: ".long 0xd6a10028, 0x02024110", count: 8, from: FP4, to: F32, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk8_fp4_f32 v40, v[16:23], v32
    Conversion { words: ".long 0xd6b00028, 0x02024110", count: 8, from: F32, to: FP4, scale: None },
    // v_cvt_scale_pk8_f16_fp4 v[40:43], v16, v32
    Conversion { words: ".long 0xd69f0028, 0x02024110", count: 8, from: FP4, to: F16, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk8_fp4_f16 v40, v[16:19], v32
    Conversion { words: ".long 0xd6b30028, 0x02024110", count: 8, from: F16, to: FP4, scale: None },
    // v_cvt_scale_pk8_bf16_fp4 v[40:43], v16, v32
    Conversion { words: ".long 0xd6a00028, 0x02024110", count: 8, from: FP4, to: BF16, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk8_fp4_bf16 v40, v[16:19], v32
    Conversion { words: ".long 0xd6b80028, 0x02024110", count: 8, from: BF16, to: FP4, scale: None },
    // v_cvt_scale_pk16_f32_fp6 v[40:55], v[16:18], v32
    Conversion { words: ".long 0xd6c90028, 0x02024110", count: 16, from: FP6, to: F32, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk16_fp6_f32 v[40:42], v[16:31], v32
    Conversion { words: ".long 0xd6cd0028, 0x02024110", count: 16, from: F32, to: FP6, scale: None },
    // v_cvt_scale_pk16_f16_fp6 v[40:47], v[16:18], v32
    Conversion { words: ".long 0xd6c70028, 0x02024110", count: 16, from: FP6, to: F16, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk16_fp6_f16 v[40:42], v[16:23], v32
    Conversion { words: ".long 0xd6cf0028, 0x02024110", count: 16, from: F16, to: FP6, scale: None },
    // v_cvt_scale_pk16_bf16_fp6 v[40:47], v[16:18], v32
    Conversion { words: ".long 0xd6c80028, 0x02024110", count: 16, from: FP6, to: BF16, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk16_fp6_bf16 v[40:42], v[16:23], v32
    Conversion { words: ".long 0xd6d10028, 0x02024110", count: 16, from: BF16, to: FP6, scale: None },
    // v_cvt_scale_pk16_f32_bf6 v[40:55], v[16:18], v32
    Conversion { words: ".long 0xd6cc0028, 0x02024110", count: 16, from: BF6, to: F32, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk16_bf6_f32 v[40:42], v[16:31], v32
    Conversion { words: ".long 0xd6ce0028, 0x02024110", count: 16, from: F32, to: BF6, scale: None },
    // v_cvt_scale_pk16_f16_bf6 v[40:47], v[16:18], v32
    Conversion { words: ".long 0xd6ca0028, 0x02024110", count: 16, from: BF6, to: F16, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk16_bf6_f16 v[40:42], v[16:23], v32
    Conversion { words: ".long 0xd6d00028, 0x02024110", count: 16, from: F16, to: BF6, scale: None },
    // v_cvt_scale_pk16_bf16_bf6 v[40:47], v[16:18], v32
    Conversion { words: ".long 0xd6cb0028, 0x02024110", count: 16, from: BF6, to: BF16, scale: Some(bytes_by_half) },
    // v_cvt_scalef32_pk16_bf6_bf16 v[40:42], v[16:23], v32
    Conversion { words: ".long 0xd6d20028, 0x02024110", count: 16, from: BF16, to: BF6, scale: None },
];

/// Name, bits of an entry, dwords of the two parts of the table.
const LOOK_UPS: &[(&str, usize, [usize; 2], &str)] = &[
    // v_perm_pk16_b4_u4 v[40:41], v16, v18, v[20:21]
    ("four", 4, [1, 1], ".long 0xd63f0028, 0x04522510"),
    // v_perm_pk16_b6_u4 v[40:42], v16, v[18:19], v[20:21]
    ("six", 6, [1, 2], ".long 0xd6420028, 0x04522510"),
    // v_perm_pk16_b8_u4 v[40:43], v[16:17], v[18:19], v[20:21]
    ("eight", 8, [2, 2], ".long 0xd6430028, 0x04522510"),
];

const REFUSED: &[(&str, &str)] = &[
    // v_cvt_scale_pk8_f32_fp8 v[40:47], v[16:17], v32 scale_sel:2
    (".long 0xd6aa1028, 0x02024110", "choice of scales 2"),
    // v_cvt_scale_pk8_f32_fp4 v[40:47], v16, v32 scale_sel:4
    (".long 0xd6a12028, 0x02024110", "choice of scales 4"),
    // v_cvt_scalef32_pk8_fp8_f32 v[40:41], v[16:23], v32
    (".long 0xd6c30028, 0x02024110", "the scale NaN"),
    // v_cvt_scalef32_pk8_fp4_f32 v40, v[16:23], 1.0
    (".long 0xd6b00028, 0x0201e510", "the conversion of NaN"),
];
