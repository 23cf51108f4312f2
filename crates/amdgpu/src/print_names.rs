//! The names that assemblers give to codes: constants, special registers, selectors, formats, messages.

use std::fmt::Write;

use super::digits::{push_hexadecimal, push_signed};
use super::inst::{Inst, Operand, Value, scalar};
use super::opcode::{Opcode, OpcodeFlags};
use super::target::Target;
use super::vocabulary::{Flags, NameList, ValueType};

/// Inline floating constants by operand code from 240 on: their text, and their value in half, single and double
/// precision.
const INLINE_FLOATS: [(&str, u16, u32, u64); 9] = [
    ("0.5", 0x3800, 0x3f00_0000, 0x3fe0_0000_0000_0000),
    ("-0.5", 0xb800, 0xbf00_0000, 0xbfe0_0000_0000_0000),
    ("1.0", 0x3c00, 0x3f80_0000, 0x3ff0_0000_0000_0000),
    ("-1.0", 0xbc00, 0xbf80_0000, 0xbff0_0000_0000_0000),
    ("2.0", 0x4000, 0x4000_0000, 0x4000_0000_0000_0000),
    ("-2.0", 0xc000, 0xc000_0000, 0xc000_0000_0000_0000),
    ("4.0", 0x4400, 0x4080_0000, 0x4010_0000_0000_0000),
    ("-4.0", 0xc400, 0xc080_0000, 0xc010_0000_0000_0000),
    ("0.15915494", 0x3118, 0x3e22_f983, 0x3fc4_5f30_6dc9_c882),
];
/// The last inline constant, 1/(2*PI), has more digits in double precision.
const INVERSE_TWO_PI_F64: &str = "0.15915494309189532";

/// The text of an inline floating constant.
pub(super) fn inline_float(code: u8, ty: ValueType) -> &'static str {
    let index = usize::from(code).wrapping_sub(240);
    match (INLINE_FLOATS.get(index), ty) {
        (Some(_), ValueType::F64 | ValueType::I64 | ValueType::B64) if index == 8 => INVERSE_TWO_PI_F64,
        // Half precision patterns in an integer's place are written as numbers.
        (Some(_), ValueType::I16) => {
            ["0x3800", "0xb800", "0x3c00", "0xbc00", "0x4000", "0xc000", "0x4400", "0xc400", "0x3118"][index]
        }
        // Where they are no pairs of halves, their single precision patterns are written.
        (Some(_), ValueType::V2F16Literal) => [
            "0x3f000000",
            "0xbf000000",
            "0x3f800000",
            "0xbf800000",
            "0x40000000",
            "0xc0000000",
            "0x40800000",
            "0xc0800000",
            "0x3e22f983",
        ][index],
        (Some((text, ..)), _) => text,
        (None, _) => "",
    }
}

fn is_inline_int(value: i64) -> bool {
    (-16..=64).contains(&value)
}

/// Appends a 32-bit number as a source constant.
pub(super) fn push_constant32(out: &mut String, value: u32) {
    if is_inline_int(i64::from(value as i32)) {
        return push_signed(out, (value as i32).into());
    }
    match INLINE_FLOATS.iter().find(|(_, _, single, _)| *single == value) {
        Some((text, ..)) => out.push_str(text),
        None => push_hexadecimal(out, value.into()),
    }
}

/// Appends a literal; one that has the value of an inline constant is marked, so that assembling gives a literal again.
pub(super) fn push_literal(out: &mut String, value: u32, ty: ValueType) {
    match ty {
        _ if is_marked(value, ty) => {
            out.push_str("lit(");
            push_hexadecimal(out, value.into());
            out.push(')');
        }
        ValueType::F64 => {
            // The literal is the high half.
            let wide = u64::from(value) << 32;
            match INLINE_FLOATS.iter().find(|(.., double)| *double == wide) {
                _ if value == 0 => out.push('0'),
                Some((text, ..)) => out.push_str(text),
                None => push_hexadecimal(out, value.into()),
            }
        }
        ValueType::V2F16Literal if is_inline_int(i64::from(value as i32)) => push_signed(out, (value as i32).into()),
        ValueType::F16 | ValueType::I16 => push_hexadecimal(out, (value as u16).into()),
        _ => push_hexadecimal(out, value.into()),
    }
}

/// Whether an inline constant has the value of a literal.
fn is_marked(value: u32, ty: ValueType) -> bool {
    let half = value as u16;
    let is_half = || INLINE_FLOATS.iter().any(|(_, known, ..)| *known == half);
    let is_single = || INLINE_FLOATS.iter().any(|(_, _, known, _)| *known == value);
    // These are the upper halves of single precision patterns.
    let is_brain = || INLINE_FLOATS.iter().any(|(_, _, known, _)| (*known >> 16) as u16 == half);
    match ty {
        ValueType::Bf16 => is_inline_int(i64::from(half as i16)) || is_brain(),
        ValueType::V2Bf16 => is_inline_int(i64::from(value as i32)) || value <= 0xffff && is_brain(),
        ValueType::V2F16Splat => is_inline_int(i64::from(value as i32)) || value >> 16 == u32::from(half) && is_half(),
        // Not marked, although an assembler takes the inline constant then.
        ValueType::V2F16Literal => false,
        ValueType::F16 => is_inline_int(i64::from(half as i16)) || is_half(),
        ValueType::V2F16 => is_inline_int(i64::from(value as i32)) || value <= 0xffff && is_half(),
        // The constants themselves are written.
        ValueType::F64 => false,
        ValueType::I64 | ValueType::B64 => is_inline_int(i64::from(value)),
        // Integers of 16 bits too: the inline floating constants in their place are single precision patterns.
        _ => is_inline_int(i64::from(value as i32)) || is_single(),
    }
}

/// A literal of 64 bits; one that 32 bits could hold is marked, so that assembling gives one of 64 again.
pub(super) fn literal64(value: u64, ty: ValueType) -> String {
    match INLINE_FLOATS.iter().find(|(.., double)| *double == value) {
        _ if value >> 32 == 0 => literal64_inside(value, ty),
        _ if is_inline_int(value as i64) => (value as i64).to_string(),
        Some(_) if value == INLINE_FLOATS[8].3 => INVERSE_TWO_PI_F64.to_owned(),
        Some((text, ..)) => (*text).to_owned(),
        None => literal64_inside(value, ty),
    }
}

/// The same of a form that always has one (`v_fmaak_f64`), where no inline constant can be.
pub(super) fn literal64_inside(value: u64, ty: ValueType) -> String {
    match value {
        _ if value >> 32 == 0 => format!("lit64({value:#x})"),
        // A literal of 32 bits is the high half of a double.
        _ if ty == ValueType::F64 && value as u32 == 0 => format!("{:#x}", value >> 32),
        _ => format!("{value:#x}"),
    }
}

/// Whether a literal is written as `lit(…)` or `lit64(…)`.
pub(super) fn is_marked_literal(operand: &Operand) -> bool {
    match operand.value {
        Value::Literal(value) => is_marked(value, operand.ty),
        Value::Literal64(value) => literal64(value, operand.ty).starts_with("lit64("),
        _ => false,
    }
}

/// The version in `s_version`: what the code was made for in bits 7:0, in 15:13 whether it is for wave64, wave32,
/// and for the debugger.
pub(super) fn program_version(target: Target, bits: u16) -> String {
    const FLAGS: [(u16, &str); 3] =
        [(0x2000, "UC_VERSION_W64_BIT"), (0x4000, "UC_VERSION_W32_BIT"), (0x8000, "UC_VERSION_MDP_BIT")];
    let flags = FLAGS.iter().fold(0, |all, (bit, _)| all | bit);
    if bits & !(flags | 0xff) != 0 {
        return format!("{bits:#x}");
    }
    let version = bits as u8;
    let name = target.name_of(NameList::ProgramVersions, version);
    let mut text = name.map_or_else(|| version.to_string(), str::to_owned);
    for (place, (_, name)) in FLAGS.iter().filter(|(bit, _)| bits & bit != 0).enumerate() {
        text = if place == 0 { format!("{text}|{name}") } else { format!("({text})|{name}") };
    }
    text
}

/// A named scalar register.
pub(super) fn special_register(code: u16, dwords: u8) -> &'static str {
    match (code, dwords) {
        (scalar::FLAT_SCRATCH, 2) => "flat_scratch",
        (scalar::FLAT_SCRATCH, _) => "flat_scratch_lo",
        (103, _) => "flat_scratch_hi",
        (scalar::XNACK_MASK, 2) => "xnack_mask",
        (scalar::XNACK_MASK, _) => "xnack_mask_lo",
        (105, _) => "xnack_mask_hi",
        (scalar::VCC, 2) => "vcc",
        (scalar::VCC, _) => "vcc_lo",
        (107, _) => "vcc_hi",
        (108, 2) => "tba",
        (108, _) => "tba_lo",
        (109, _) => "tba_hi",
        (110, 2) => "tma",
        (110, _) => "tma_lo",
        (111, _) => "tma_hi",
        (scalar::M0, _) => "m0",
        (scalar::NULL, _) => "null",
        // Assemblers have one name for the low half and for both.
        (230, _) => "src_flat_scratch_base_lo",
        (231, _) => "src_flat_scratch_base_hi",
        (scalar::EXEC, 2) => "exec",
        (scalar::EXEC, _) => "exec_lo",
        (127, _) => "exec_hi",
        (scalar::SHARED_BASE, _) => "src_shared_base",
        (236, _) => "src_shared_limit",
        (237, _) => "src_private_base",
        (238, _) => "src_private_limit",
        (239, _) => "src_pops_exiting_wave_id",
        (scalar::VCCZ, _) => "src_vccz",
        (scalar::EXECZ, _) => "src_execz",
        (scalar::SCC, _) => "src_scc",
        (scalar::LDS_DIRECT, _) => "src_lds_direct",
        _ => "?",
    }
}

/// The dimension of an image instruction.
pub(super) fn image_dimension(target: Target, number: u8) -> String {
    match target.name_of(NameList::ImageDimensions, number) {
        Some(name) => format!(" dim:SQ_RSRC_IMG_{name}"),
        None => format!(" dim:{number}"),
    }
}

/// The data formats of typed buffers before gfx10, by number (gfx9 ISA guides, "MTBUF").
pub const BUFFER_DATA_FORMATS: [&str; 16] = [
    "INVALID",
    "8",
    "16",
    "8_8",
    "32",
    "16_16",
    "10_11_11",
    "11_11_10",
    "10_10_10_2",
    "2_10_10_10",
    "8_8_8_8",
    "32_32",
    "16_16_16_16",
    "32_32_32",
    "32_32_32_32",
    "RESERVED_15",
];
/// Their number formats.
pub const BUFFER_NUMBER_FORMATS: [&str; 8] =
    ["UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT"];

/// The format of a typed buffer instruction: data format in bits 3:0, number format in bits 6:4 (gfx9 ISA guides,
/// "MTBUF").
pub(super) fn buffer_format(target: Target, format: u8) -> String {
    const USUAL: u8 = 1;
    if target.set().generation >= 10 {
        // One number for both.
        return match target.name_of(NameList::BufferFormats, format) {
            _ if format == USUAL => String::new(),
            Some(name) => format!(" format:[BUF_FMT_{name}]"),
            None => format!(" format:{format}"),
        };
    }
    let format = u32::from(format);
    // The usual ones are not written.
    const USUAL_DATA: u32 = 1;
    let (data, number) = (format & 15, format >> 4 & 7);
    let mut parts = Vec::new();
    if data != USUAL_DATA {
        parts.push(format!("BUF_DATA_FORMAT_{}", BUFFER_DATA_FORMATS[data as usize]));
    }
    if number != 0 {
        parts.push(format!("BUF_NUM_FORMAT_{}", BUFFER_NUMBER_FORMATS[number as usize]));
    }
    if parts.is_empty() { String::new() } else { format!(" format:[{}]", parts.join(",")) }
}

/// The target of an export.
pub(super) fn export_target(target: u32, generation: u32) -> String {
    match target {
        0..=7 => format!("mrt{target}"),
        8 => "mrtz".to_owned(),
        9 if generation < 11 => "null".to_owned(),
        12..=15 => format!("pos{}", target - 12),
        16 if generation >= 10 => "pos4".to_owned(),
        20 if generation >= 10 => "prim".to_owned(),
        21..=22 if generation >= 11 => format!("dual_src_blend{}", target - 21),
        32..=63 if generation < 11 => format!("param{}", target - 32),
        _ => format!("invalid_target_{target}"),
    }
}

/// A message: its id in bits 3:0, the operation in bits 6:4, the stream in bits 9:8.
pub(super) fn message(target: Target, bits: u16) -> String {
    const GS: u16 = 2;
    const GS_DONE: u16 = 3;
    const SYSTEM: u16 = 15;
    if target.set().generation >= 11 {
        return match target.message(bits as u8) {
            _ if bits > 0xff => bits.to_string(),
            Some(name) => format!("sendmsg({name})"),
            None => format!("sendmsg({bits}, 0, 0)"),
        };
    }
    let (id, operation, stream) = (bits & 15, bits >> 4 & 7, bits >> 8 & 3);
    let operation_name = match (id, operation) {
        (GS | GS_DONE, 0) => "GS_OP_NOP",
        (GS | GS_DONE, 1) => "GS_OP_CUT",
        (GS | GS_DONE, 2) => "GS_OP_EMIT",
        (GS | GS_DONE, 3) => "GS_OP_EMIT_CUT",
        (SYSTEM, _) => target.name_of(NameList::SystemOperations, operation as u8).unwrap_or(""),
        _ => "",
    };
    let known = match id {
        GS => operation != 0 && !operation_name.is_empty(),
        GS_DONE => !operation_name.is_empty() && (operation != 0 || stream == 0),
        SYSTEM => !operation_name.is_empty() && stream == 0,
        _ => operation == 0 && stream == 0,
    };
    match target.message(id as u8) {
        Some(name) if known => {
            let mut text = format!("sendmsg({name}");
            if !operation_name.is_empty() {
                let _ = write!(text, ", {operation_name}");
                if id != SYSTEM && operation != 0 {
                    let _ = write!(text, ", {stream}");
                }
            }
            text + ")"
        }
        _ if bits == id | operation << 4 | stream << 8 => format!("sendmsg({id}, {operation}, {stream})"),
        _ => bits.to_string(),
    }
}

/// The mode of `s_set_gpr_idx_on`: which operands are indexed.
pub(super) fn index_mode(bits: u32) -> String {
    const NAMES: [&str; 4] = ["SRC0", "SRC1", "SRC2", "DST"];
    if bits >> NAMES.len() != 0 {
        return format!("{bits:#x}");
    }
    let chosen: Vec<&str> =
        NAMES.iter().enumerate().filter(|(index, _)| bits >> index & 1 != 0).map(|(_, name)| *name).collect();
    format!("gpr_idx({})", chosen.join(","))
}

/// `dpp_ctrl`.
pub(super) fn dpp_control(control: u16, generation: u32) -> String {
    match control {
        0x150..=0x15f if generation >= 10 => format!(" row_share:{}", control & 15),
        0x160..=0x16f if generation >= 10 => format!(" row_xmask:{}", control & 15),
        0..=0xff => format!(" quad_perm:[{},{},{},{}]", control & 3, control >> 2 & 3, control >> 4 & 3, control >> 6),
        0x101..=0x10f => format!(" row_shl:{}", control & 15),
        0x111..=0x11f => format!(" row_shr:{}", control & 15),
        0x121..=0x12f => format!(" row_ror:{}", control & 15),
        0x130 => " wave_shl:1".to_owned(),
        0x134 => " wave_rol:1".to_owned(),
        0x138 => " wave_shr:1".to_owned(),
        0x13c => " wave_ror:1".to_owned(),
        0x140 => " row_mirror".to_owned(),
        0x141 => " row_half_mirror".to_owned(),
        0x142 => " row_bcast:15".to_owned(),
        0x143 => " row_bcast:31".to_owned(),
        0x150..=0x15f => format!(" row_newbcast:{}", control & 15),
        _ => format!(" dpp_ctrl:{control:#x}"),
    }
}

/// A selector of SDWA.
pub(super) fn sdwa_selector(selector: u8) -> &'static str {
    ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD", "?"][usize::from(selector & 7)]
}

/// What SDWA does with the rest of the destination.
pub(super) fn sdwa_unused(unused: u8) -> &'static str {
    ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "?"][usize::from(unused & 3)]
}

/// The pattern of `ds_swizzle_b32` (gfx9 ISA guides, "DS_SWIZZLE_B32").
pub(super) fn swizzle(pattern: u16, generation: u32) -> String {
    const ROTATE: u16 = 0xc000;
    const FFT: u16 = 0xe000;
    const QUAD: u16 = 0x80;
    const ALL: u16 = 0x1f;
    let text = match pattern {
        0 => return String::new(),
        ROTATE.. if generation < 9 => pattern.to_string(),
        FFT.. => format!("swizzle(FFT,{})", pattern & ALL),
        ROTATE.. => format!("swizzle(ROTATE,{},{})", pattern >> 10 & 1, pattern >> 5 & ALL),
        _ if pattern >> 8 == QUAD => {
            format!("swizzle(QUAD_PERM,{},{},{},{})", pattern & 3, pattern >> 2 & 3, pattern >> 4 & 3, pattern >> 6 & 3)
        }
        0x8000.. => pattern.to_string(),
        _ => {
            let (and, or, xor) = (pattern & ALL, pattern >> 5 & ALL, pattern >> 10 & ALL);
            let group = ALL - and + 1;
            if and == ALL && or == 0 && xor.count_ones() == 1 {
                format!("swizzle(SWAP,{xor})")
            } else if and == ALL && or == 0 && xor > 0 && (xor + 1).is_power_of_two() {
                format!("swizzle(REVERSE,{})", xor + 1)
            } else if group > 1 && group.is_power_of_two() && or < group && xor == 0 {
                format!("swizzle(BROADCAST,{group},{or})")
            } else {
                format!("swizzle(BITMASK_PERM,\"{}\")", lane_bits(and, or, xor))
            }
        }
    };
    format!(" offset:{text}")
}

/// What becomes of each bit of the lane number: 0, 1, preserved or inverted.
fn lane_bits(and: u16, or: u16, xor: u16) -> String {
    let of = |lane: u16| (lane & and | or) ^ xor;
    let (zeros, ones) = (of(0), of(0x1f));
    (0..5)
        .rev()
        .map(|bit| match (zeros >> bit & 1, ones >> bit & 1) {
            (0, 0) => '0',
            (1, 1) => '1',
            (0, _) => 'p',
            _ => 'i',
        })
        .collect()
}

/// Element formats of a matrix operation.
pub(super) const MATRIX_FORMATS: [&str; 5] =
    ["MATRIX_FMT_FP8", "MATRIX_FMT_BF8", "MATRIX_FMT_FP6", "MATRIX_FMT_BF6", "MATRIX_FMT_FP4"];
/// Which scales of a row a matrix operation takes.
pub(super) const MATRIX_SCALES: [&str; 2] = ["MATRIX_SCALE_ROW0", "MATRIX_SCALE_ROW1"];
/// Formats of the scales of a matrix operation.
pub(super) const MATRIX_SCALE_FORMATS: [&str; 3] =
    ["MATRIX_SCALE_FMT_E8", "MATRIX_SCALE_FMT_E5M3", "MATRIX_SCALE_FMT_E4M3"];

/// The immediate of `s_delay_alu`: a dependence in bits 3:0, instructions to skip in 6:4, another dependence in 10:7.
pub(super) fn push_delay(out: &mut String, bits: u16) {
    const DEPENDENCES: [&str; 12] = [
        "NO_DEP",
        "VALU_DEP_1",
        "VALU_DEP_2",
        "VALU_DEP_3",
        "VALU_DEP_4",
        "TRANS32_DEP_1",
        "TRANS32_DEP_2",
        "TRANS32_DEP_3",
        "FMA_ACCUM_CYCLE_1",
        "SALU_CYCLE_1",
        "SALU_CYCLE_2",
        "SALU_CYCLE_3",
    ];
    const SKIPS: [&str; 6] = ["SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"];
    let (first, skip, second) = (bits & 15, bits >> 4 & 7, bits >> 7 & 15);
    let parts =
        [("instid0(", &DEPENDENCES[..], first), ("instskip(", &SKIPS, skip), ("instid1(", &DEPENDENCES, second)];
    let mut separator = "";
    for (field, names, code) in parts.into_iter().filter(|(.., code)| *code != 0) {
        out.push_str(separator);
        out.push_str(field);
        out.push_str(names.get(usize::from(code)).unwrap_or(&"/* invalid */"));
        out.push(')');
        separator = " | ";
    }
    if separator.is_empty() {
        out.push('0');
    }
}

/// The cache policy of gfx12: temporal hint and scope.
pub(super) fn cache_policy(inst: &Inst) -> String {
    const SCOPES: [&str; 4] = ["SCOPE_CU", "SCOPE_SE", "SCOPE_DEV", "SCOPE_SYS"];
    let modifiers = &inst.modifiers;
    let mut text = String::new();
    if modifiers.scale_offset {
        text.push_str(" scale_offset");
    }
    if modifiers.th != 0 {
        text.push_str(" th:");
        text.push_str(&temporal_hint(inst));
    }
    if modifiers.scope != 0 {
        let _ = write!(text, " scope:{}", SCOPES[usize::from(modifiers.scope & 3)]);
    }
    if modifiers.nv {
        text.push_str(" nv");
    }
    text
}

/// The name of a temporal hint, which depends on what the instruction does.
fn temporal_hint(inst: &Inst) -> String {
    let (flags, th, scope) = (inst.variant.flags, inst.modifiers.th, inst.modifiers.scope);
    if flags.contains(Flags::ATOMIC) {
        const CASCADE: u8 = 4;
        const NON_TEMPORAL: u8 = 2;
        const RETURN: u8 = 1;
        const DEVICE: u8 = 2;
        return match th {
            _ if th & CASCADE != 0 && scope >= DEVICE => {
                format!("TH_ATOMIC_CASCADE{}", if th & NON_TEMPORAL != 0 { "_NT" } else { "_RT" })
            }
            _ if th & CASCADE != 0 => format!("TH_ATOMIC_{th:#x}"),
            _ if th & NON_TEMPORAL != 0 => format!("TH_ATOMIC_NT{}", if th & RETURN != 0 { "_RETURN" } else { "" }),
            _ => "TH_ATOMIC_RETURN".to_owned(),
        };
    }
    const SYSTEM: u8 = 3;
    // Copies between memory and LDS read the one and write the other.
    let store = flags.contains(Flags::STORE) && (!flags.contains(Flags::LOAD) || inst.is_any(OpcodeFlags::FROM_LDS))
        || matches!(inst.opcode(), Opcode::TENSOR_SAVE | Opcode::TENSOR_STOP);
    let name = match th {
        1 => "NT",
        2 => "HT",
        // At system scope past all caches, else the last use, or written back.
        3 if scope == SYSTEM => "BYPASS",
        3 if store => "WB",
        3 => "LU",
        4 => "NT_RT",
        5 => "RT_NT",
        6 => "NT_HT",
        7 if store => "NT_WB",
        _ => return format!("{th:#x}"),
    };
    format!("TH_{}_{name}", if store { "STORE" } else { "LOAD" })
}
