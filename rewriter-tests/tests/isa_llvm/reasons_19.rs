//! Where we differ from LLVM 19 on purpose, beside the reasons for LLVM 22: what it did not know yet, and what is
//! written in another way since. That LLVM 22 agrees with us there is what the other comparison says.

use wavetap::isa::{Coding, Encoding, Modifier, Role};

use crate::reason::{Case, Field, How, Reason};

pub const REASONS: &[Reason] = &[
    Reason {
        what: "bits that no operand has, which must be 0",
        evidence: "VOPInstructions.td of LLVM 19 fixes the fields of sources that an operation does not have (VOP3e: \
            `!if(P.HasSrc2, src2, 0)`); newer compilers write other numbers there, and LLVM 22 ignores them",
        how: How::LlvmRefuses(|case| {
            let ignored = case.inst.as_ref()?.ignored;
            // The destination of v_cmpx has a reason of its own.
            case.without_bits(if case.name_starts("v_cmpx_") { ignored & !0xff } else { ignored })
        }),
    },
    Reason {
        what: "halves of registers, which it does not write",
        evidence: "only a few operations of LLVM 19 have forms for +real-true16; the others are disassembled in their \
            form for whole registers (decoder tables …_FAKE16)",
        how: How::Without(
            |case, text| if has_halves(case) { text.replace(".l", "").replace(".h", "") } else { text.to_owned() },
        ),
    },
    Reason {
        what: "high halves in the encodings of 32 bits, which it does not know",
        evidence: "the same: without forms for halves there are 128 registers, and AMDGPUInstPrinter calls the others \
            invalid, or the field is that of all 256",
        how: How::Either(|case| {
            let high = |field: &Field<'_>| match field.spec.kind.coding {
                Coding::VectorLow128 => field.number & 0x80 != 0,
                Coding::SrcLow128 => field.number & 0x180 == 0x180,
                _ => false,
            };
            let field = case.fields().find(high)?;
            case.with_operand(field.spec, field.number & !0x80)
        }),
    },
    Reason {
        what: "marks of literals that have the value of an inline constant",
        evidence: "LLVM 22 writes `lit(…)`, so that assembling gives the same bytes \
            (AMDGPUDisassembler::decodeLiteralConstant); LLVM 19 writes the constant",
        how: How::Text(with_marks),
    },
    Reason {
        what: "op_sel_hi of dot products of 4 and 8 elements",
        evidence: "they have none (RDNA3 ISA guide, V_DOT4 and V_DOT8); LLVM 19 prints the bits, LLVM 22 does not",
        how: How::Text(|case, theirs| {
            let known = case.name_starts("v_dot4_") || case.name_starts("v_dot8_");
            let (before, rest) = theirs.split_once(" op_sel_hi:[").filter(|_| known)?;
            Some(format!("{before}{}", rest.split_once(']')?.1))
        }),
    },
    Reason {
        what: "sign bits of integer sources",
        evidence: "NEG and ABS are for floats (RDNA3 ISA guide, VOP3 and DPP); LLVM 19 fixes the bits to 0 or prints \
            them as SDWA's sext(…), LLVM 22 leaves them out",
        how: How::Either(|case| {
            use Encoding::{Vop1Dpp, Vop2Dpp, Vop3, Vop3Dpp, Vop3Dpp8, VopcDpp};
            let known = matches!(case.variant.encoding, Vop1Dpp | Vop2Dpp | VopcDpp | Vop3 | Vop3Dpp | Vop3Dpp8);
            known.then(|| case.without_bits(signs_of_integers(case)))?
        }),
    },
    Reason {
        what: "op_sel of 16-bit operations in VOP3",
        evidence: "the forms of LLVM 19 for whole registers have no op_sel: it fixes the bits to 0 or does not print \
            them; llvm-mc 22 assembles and prints them",
        how: How::Either(|case| {
            let vop3 = matches!(
                case.variant.encoding,
                Encoding::Vop3 | Encoding::Vop3Dpp | Encoding::Vop3Dpp8 | Encoding::Vinterp
            );
            let known = has_halves(case)
                || case.variant.encoding == Encoding::Vinterp
                || case.name_starts("v_align")
                || case.variant.name.ends_with("16");
            (vop3 && known).then(|| case.without_bits(case.modifier_bits(Modifier::OpSel)))?
        }),
    },
    Reason {
        what: "tuples of vector registers from an odd one on",
        evidence: "gfx90a and later need even ones (CDNA2 ISA guide, \"VGPR alignment\"); LLVM 22 refuses odd ones, \
            LLVM 19 prints them",
        how: How::WeRefuseOperand(|field| {
            field.target.aligned_vgprs() && field.spec.kind.even && field.vector().is_some_and(|first| first % 2 == 1)
        }),
    },
    Reason {
        what: "DPP of operations on 64 bits before gfx90a",
        evidence: "VOP1Instructions.td of LLVM 19 has no DPP form for them; that of LLVM 22 has",
        how: How::Lacks(|case| {
            case.is_dpp()
                && case.variant.name.contains("f64")
                && case.codes.null.is_none()
                && !case.target.row_newbcast()
        }),
    },
    Reason {
        what: "operations and forms that LLVM 19 does not have",
        evidence: "SOPInstructions.td, VOP1Instructions.td, VOP2Instructions.td, VOP3PInstructions.td, \
            VOPDInstructions.td, DSInstructions.td and MIMGInstructions.td of LLVM 19 have no record for them",
        how: How::Lacks(|case| {
            let names = ["s_endpgm_ordered_ps_done", "s_alloc_vgpr", "v_swap_b16", "ds_bpermute_fi_b32"];
            let dual_dot = case.variant.mnemonic.contains("v_dual_dot2acc_f32");
            let packed = case.name_starts("v_pk_fmac_f16") && case.variant.encoding != Encoding::Vop2;
            let dot = case.name_starts("v_dot2_f32_bf16") && case.is_dpp();
            let bvh = ["image_bvh_dual_intersect_ray", "image_bvh8_intersect_ray"].contains(&case.variant.name);
            names.contains(&case.variant.name)
                || case.name_starts("ds_bvh_stack_push")
                || dual_dot
                || packed
                || dot
                || bvh
        }),
    },
    Reason {
        what: "the class mask of v_cmp_class_f16, the shift of v_alignbit and v_alignbyte, and pairs of 8-bit floats",
        evidence: "LLVM 22 reads them as 16-bit sources, with halves, signs and literals of 16 bits, LLVM 19 as 32-bit \
            integers without (VOPCInstructions.td, VOP3Instructions.td); the constant is printed as that of the other \
            type",
        how: How::Either(|case| {
            let role = match case.variant.name {
                "v_cmp_class_f16" | "v_cmpx_class_f16" => Role::Src1,
                "v_alignbit_b32" | "v_alignbyte_b32" => Role::Src2,
                "v_cvt_pk_f32_fp8" | "v_cvt_pk_f32_bf8" => Role::Src0,
                _ => return None,
            };
            let field = case.fields().find(|field| field.spec.role == role)?;
            let signs = case.without_bits(signs_of(case, role));
            signs.or_else(|| {
                case.with_operand(field.spec, if matches!(case.variant.encoding, Encoding::Vopc) { 0 } else { 256 })
            })
        }),
    },
    Reason {
        what: "EXEC as a lane mask of VOP3",
        evidence: "the operand's class was SReg_1_XEXEC in LLVM 19, without EXEC; it is SReg_1 in LLVM 22, and llvm-mc \
            22 takes EXEC",
        how: How::LlvmRefuses(|case| {
            let field = case.fields().find(|field| field.spec.kind.mask && matches!(field.code(), Some(126 | 127)))?;
            case.with_operand(field.spec, 106)
        }),
    },
    Reason {
        what: "clamp of integer operations",
        evidence: "LLVM 19 has none for them and fixes the bit to 0; LLVM 22 prints it",
        how: How::LlvmRefuses(|case| {
            let vop3 = matches!(case.variant.encoding, Encoding::Vop3 | Encoding::Vop3Dpp | Encoding::Vop3Dpp8);
            let integer = ["_b16", "_b32", "_u16", "_i16"].iter().any(|end| case.variant.name.ends_with(end));
            (vop3 && integer).then(|| case.without_bits(case.modifier_bits(Modifier::Clamp)))?
        }),
    },
    Reason {
        what: "the reserved number of dst_unused",
        evidence: "Vega ISA guide, SDWA: DST_UNUSED 3 is reserved; LLVM 19 prints it as UNUSED_PAD, LLVM 22 refuses it",
        how: How::WeRefuse(|case| {
            let bits = case.modifier_bits(Modifier::DstUnused);
            (bits != 0 && case.word() & bits == bits).then(|| case.without_bits(bits))?
        }),
    },
    Reason {
        what: "patterns of ds_swizzle with bits that mean nothing",
        evidence: "AMDGPUInstPrinter::printSwizzle of LLVM 19 writes the number then, that of LLVM 22 the pattern \
            without them",
        how: How::Text(|case, theirs| {
            let (before, rest) = theirs.split_once(" offset:")?;
            let (number, behind) =
                rest.split_once(' ').map_or((rest, String::new()), |(number, behind)| (number, format!(" {behind}")));
            let pattern = case.ours.as_ref()?.1.strip_prefix(before)?.strip_suffix(&behind)?;
            let same = case.inst.as_ref()?.modifiers.offset == number.parse::<i32>().ok()?
                && pattern.starts_with(" offset:swizzle(");
            (case.variant.name == "ds_swizzle_b32" && same).then(|| format!("{before}{pattern}{behind}"))
        }),
    },
    Reason {
        what: "names of hardware registers of gfx12",
        evidence: "AMDGPUAsmUtils.cpp: LLVM 20 put WAVE_ into the names of those that each wave has (RDNA4 ISA guide, \
            \"Hardware registers\")",
        how: How::Text(with_register_name),
    },
    Reason {
        what: "the name of a temporal hint of stores",
        evidence: "AMDGPUInstPrinter::printTH: number 3 of stores was TH_STORE_RT_WB in LLVM 19 and is TH_STORE_WB \
            since LLVM 20 (RDNA4 ISA guide, \"Temporal hints\": WB)",
        how: How::Text(|_, theirs| Some(theirs.replace(" th:TH_STORE_RT_WB", " th:TH_STORE_WB"))),
    },
    Reason {
        what: "v_nop with DPP",
        evidence: "LLVM 19 takes it for one without, whatever its source field holds",
        how: How::Lacks(|case| case.variant.name == "v_nop" && case.variant.encoding != Encoding::Vop1),
    },
    Reason {
        what: "scale_offset and nv of gfx12",
        evidence: "LLVM 19 has no name for the bits (SIDefines.h, CPol: NV and SCALE_OFFSET are of LLVM 21) and leaves \
            them out",
        how: How::Either(|case| {
            case.without_bits(case.modifier_bits(Modifier::Nv) | case.modifier_bits(Modifier::ScaleOffset))
        }),
    },
    Reason {
        what: "negative offsets of buffers",
        evidence: "RDNA4 ISA guide, VBUFFER: the offset is unsigned; LLVM 22 refuses it (AMDGPUDisassembler, MUBUF \
            offset), LLVM 19 prints a negative one",
        how: How::WeRefuse(|case| {
            let buffer = matches!(case.variant.encoding, Encoding::Mubuf | Encoding::Mtbuf)
                || case.name_starts("s_buffer_")
                || case.name_starts("s_atc_probe_buffer");
            buffer.then(|| case.without_bits(highest(case.modifier_bits(Modifier::Offset))))?
        }),
    },
    Reason {
        what: "data of a gather and of a load of samples with d16 at the end of the file",
        evidence: "two registers; LLVM 19 wants room for four (AMDGPUDisassembler::convertMIMGInst), LLVM 22 for two",
        how: How::LlvmRefuses(|case| {
            let known = (case.name_starts("image_gather4") || case.name_starts("image_msaa_load"))
                && case.inst.as_ref()?.modifiers.d16;
            let data =
                case.fields().find(|field| known && field.spec.role == Role::Vdata && field.number & 0xff > 250)?;
            case.with_operand(data.spec, data.number & !0x0f)
        }),
    },
    Reason {
        what: "the status of image atomics",
        evidence: "LLVM 19 has no forms of them with a register for it and leaves the form that its decoder met first, \
            with that one's data and addresses (AMDGPUDisassembler::convertMIMGInst); LLVM 22 has them",
        how: How::Either(|case| {
            let dimensioned = case.variant.image.is_some_and(|image| image.address.is_some());
            (case.name_starts("image_atomic") && dimensioned)
                .then(|| case.without_bits(case.modifier_bits(Modifier::Tfe)))?
        }),
    },
    Reason {
        what: "data of image atomics",
        evidence: "LLVM 19 prints one register, whatever the channel mask and tfe say; LLVM 22 counts them \
            (AMDGPUDisassembler::convertMIMGInst)",
        how: How::Text(|case, theirs| {
            let ours = &case.ours.as_ref()?.1;
            let rest = theirs.strip_prefix(case.variant.mnemonic)?.split_once(',')?.1;
            let data = ours.split_once(',')?.0;
            let first = theirs
                .split_once(',')?
                .0
                .trim_start_matches(case.variant.mnemonic)
                .trim_start_matches(" v")
                .trim_start_matches('[');
            let same = data
                .trim_start_matches(case.variant.mnemonic)
                .trim_start_matches(" v[")
                .starts_with(&format!("{}:", first.split(':').next()?));
            (case.name_starts("image_atomic") && same).then(|| format!("{data},{rest}"))
        }),
    },
];

/// Whether an operand is a half of a register.
fn has_halves(case: &Case<'_>) -> bool {
    use Coding::{SrcHalf, SrcLow128, VectorHalf, VectorLow128};
    case.variant.operands.iter().any(|spec| matches!(spec.kind.coding, SrcHalf | SrcLow128 | VectorHalf | VectorLow128))
}

/// The bits of signs that belong to no float source.
fn signs_of_integers(case: &Case<'_>) -> u128 {
    let signed = |role: Role| case.variant.operands.iter().any(|spec| spec.role == role && spec.kind.signs);
    SOURCES.into_iter().filter(|role| !signed(*role)).fold(0, |found, role| found | signs_of(case, role))
}

/// The bits of a source's signs.
fn signs_of(case: &Case<'_>, role: Role) -> u128 {
    let source = SOURCES.iter().position(|known| *known == role).unwrap_or(0);
    let signs =
        case.variant.layout.modifiers.iter().filter(|(modifier, _)| matches!(modifier, Modifier::Neg | Modifier::Abs));
    signs.fold(0, |found, (_, bits)| found | bits.put(1 << source).unwrap_or(0))
}

const SOURCES: [Role; 3] = [Role::Src0, Role::Src1, Role::Src2];

/// The text with our name of a hardware register of gfx12, if it has the older name or the number.
fn with_register_name(case: &Case<'_>, theirs: &str) -> Option<String> {
    let (before, rest) = theirs.split_once("hwreg(").filter(|_| case.target.has_cache_scope())?;
    let end = rest.find([',', ')'])?;
    let number = case.fields().find(|field| field.spec.role == Role::Hwreg)?.number & 63;
    let ours = case.target.hardware_register(number as u8)?;
    let known = rest[..end] == number.to_string() || ours.replace("HW_REG_WAVE_", "HW_REG_") == rest[..end];
    known.then(|| format!("{before}hwreg({ours}{}", &rest[end..]))
}

/// The highest of some bits.
fn highest(bits: u128) -> u128 {
    if bits == 0 { 0 } else { 1 << bits.ilog2() }
}

/// LLVM's text with marks where ours has them, if the constants there have the values of our literals.
fn with_marks(case: &Case<'_>, theirs: &str) -> Option<String> {
    let ours = &case.ours.as_ref()?.1;
    let mut parts = ours.split("lit(");
    let (mut text, mut rest) = (String::new(), theirs);
    let mut until = parts.next()?;
    for part in parts {
        // What stands in front may differ in something that has another reason: the place is found by its comma or, of
        // the first operand, its blank.
        let sign = ["-|", "|", "-"].into_iter().find(|sign| until.ends_with(sign)).unwrap_or("");
        let start = match until.matches(", ").count() {
            0 => rest.find(' ')? + 1,
            commas => rest.match_indices(", ").nth(commas - 1)?.0 + 2,
        };
        let constant =
            if sign == "-" { rest[start..].strip_prefix("neg(")? } else { rest[start..].strip_prefix(sign)? };
        let end = constant.find([',', ')', '|', ' ']).unwrap_or(constant.len());
        let (literal, behind) = part.split_once(')')?;
        let value = u32::from_str_radix(literal.trim_start_matches("0x"), 16).ok()?;
        if !is_constant(&constant[..end], value) {
            return None;
        }
        text += &format!("{}{sign}lit({literal})", &rest[..start]);
        rest = if sign == "-" { constant[end..].strip_prefix(')')? } else { &constant[end..] };
        until = behind;
    }
    Some(text + rest)
}

/// Whether an inline constant's text has a value, as an integer or as a float of 16 or 32 bits.
fn is_constant(text: &str, value: u32) -> bool {
    let integer = text.parse::<i32>().is_ok_and(|number| number as u32 == value || number as u16 == value as u16);
    let float = text.parse::<f32>().is_ok_and(|number| {
        let single = number.to_bits();
        // 1/(2*PI) is not exact in the text.
        let inverse_two_pi =
            text == "0.15915494" && (value == 0x3e22_f983 || value as u16 == 0x3118 || value == 0x3e22);
        single == value
            || half_bits(number) == Some(value as u16)
            || single & 0xffff == 0 && single >> 16 == value
            || inverse_two_pi
    });
    integer || float
}

/// The bits of a half precision number, for those that half precision has with few digits.
fn half_bits(number: f32) -> Option<u16> {
    let single = number.to_bits();
    let exponent = (single >> 23 & 0xff) as i32 - 127 + 15;
    if !(1..31).contains(&exponent) || single & 0x1fff != 0 {
        return None;
    }
    Some(((single >> 16 & 0x8000) | (exponent as u32) << 10 | (single >> 13 & 0x3ff)) as u16)
}
