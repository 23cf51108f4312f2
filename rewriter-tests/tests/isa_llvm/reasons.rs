//! Where we differ from LLVM 22 on purpose. LLVM's disassembler takes a good deal that no assembler makes and no
//! processor promises to understand; the tables refuse it.

use wavetap::isa::{Accepts, Coding, Encoding, Modifier, Role, Value, ValueType};

use crate::images;
use crate::reason::{Field, How, Reason};

/// Operand code: a literal follows.
const LITERAL: u64 = 255;
/// Operand code: a literal of 64 bits follows.
const LITERAL_64: u64 = 254;

/// A literal that is nothing else.
const PLAIN: u64 = 0x1234_5678;

pub const REASONS: &[Reason] = &[
    Reason {
        what: "scalar registers that start at an odd place",
        evidence: "ISA guides, \"SGPR alignment\": pairs start at an even register, longer runs at a multiple of four. \
            LLVM prints the aligned ones with a warning (AMDGPUDisassembler::createSRegOperand), and llvm-mc takes \
            none that are not aligned",
        how: How::WeRefuseOperand(|field| {
            let aligned = |index: u64| index.is_multiple_of(field.scalar_alignment());
            field.scalar_index().is_some_and(|index| !aligned(index))
                || field.code().is_some_and(|code| (102..108).contains(&code) && !aligned(code))
        }),
    },
    Reason {
        what: "scalar registers that run out of their file",
        evidence: "AMDGPUDisassembler::createSRegOperand forms a run from its first register alone, into FLAT_SCRATCH, \
            VCC, or beyond the trap registers",
        how: How::WeRefuseOperand(|field| {
            let Some(code) = field.code().filter(|_| field.dwords() > 1) else { return false };
            let (end, dwords, traps) = (field.codes.scalar_end, field.dwords(), field.codes.first_trap);
            code < end && code + dwords > end
                || (end..108.min(traps)).contains(&code) && dwords > 2
                || (traps..124).contains(&code) && code + dwords > 124
        }),
    },
    Reason {
        what: "the null register where it means nothing",
        evidence: "AMDGPUDisassembler::decodeSpecialReg32/64 know it before gfx10 too, and \
            AMDGPUDisassembler::decodeSrcOp does not look at the register class: llvm-mc takes `null` neither as a \
            descriptor or an address nor before gfx10",
        how: How::WeRefuseOperand(|field| match field.codes.null {
            Some(null) => field.code() == Some(null) && !field.takes(Accepts::NULL),
            None => field.code() == Some(125),
        }),
    },
    Reason {
        what: "a literal for a source that takes none",
        evidence: "AMDGPUDisassembler::decodeSrcOp reads one for every source; the manuals have literals in SOP, VOP1, \
            VOP2 and VOPC and since gfx10 in VOP3, and llvm-mc takes none elsewhere. In DPP and SDWA it reads none and \
            prints 255",
        how: How::WeRefuseOperand(|field| field.code() == Some(LITERAL) && !field.takes(Accepts::LITERAL)),
    },
    Reason {
        what: "a literal of 64 bits where there is none",
        evidence: "AMDGPUDisassembler::decodeSrcOp reads one for code 254 on every processor that has no LDS direct, \
            and for every source; gfx1250 has them for sources of 64 bits",
        how: How::WeRefuseOperand(|field| field.code() == Some(LITERAL_64) && !field.takes(Accepts::LDS_DIRECT)),
    },
    Reason {
        what: "the base of scratch memory before gfx1250",
        evidence: "AMDGPUDisassembler::decodeSpecialReg32/64 know codes 230 and 231 on every processor; llvm-mc \
            refuses the names",
        how: How::WeRefuseOperand(|field| {
            matches!(field.code(), Some(230 | 231)) && !field.target.name().starts_with("gfx125")
        }),
    },
    Reason {
        what: "a read-only code where a register is needed",
        evidence: "AMDGPUDisassembler::decodeSrcOp does not look at the register class",
        how: How::WeRefuseOperand(|field| {
            matches!(field.code(), Some(230 | 231 | 235..=239 | 251..=253))
                && (!field.takes(Accepts::READ_ONLY) || field.dwords() > 2)
        }),
    },
    Reason {
        what: "M0 or EXEC where it means nothing",
        evidence: "AMDGPUDisassembler::decodeSrcOp does not look at the register class",
        how: How::WeRefuseOperand(|field| {
            field.code() == Some(field.codes.m0) && (!field.takes(Accepts::M0) || field.dwords() > 1)
                || field.code() == Some(126) && !field.takes(Accepts::EXEC_LO)
                || field.code() == Some(127) && (!field.takes(Accepts::EXEC_HI) || field.dwords() > 1)
        }),
    },
    Reason {
        what: "vector registers as a lane mask",
        evidence: "the operand is of class SReg_1, and llvm-mc takes no vector register; \
            AMDGPUDisassembler::decodeSrcOp takes one",
        how: How::WeRefuseOperand(|field| {
            field.is_source() && field.number >= 256 && !field.takes(Accepts::VECTOR | Accepts::ACCUM)
        }),
    },
    Reason {
        what: "a vector source without the bit of vector registers",
        evidence: "AMDGPUDisassembler::decodeSrcReg9 and decodeSrcAV10 take every code; the operand's class has vector \
            registers alone, and llvm-mc takes nothing else",
        how: How::WeRefuseOperand(|field| {
            field.code().is_some() && !field.takes(Accepts::SCALAR | Accepts::INLINE | Accepts::M0)
        }),
    },
    Reason {
        what: "a barrier in a scalar register that is not M0",
        evidence: "RDNA4 ISA guide, S_BARRIER_SIGNAL: the barrier is in M0 or an inline constant, and llvm-mc takes \
            nothing else; LLVM decodes its M0 as any scalar source",
        how: How::WeRefuseOperand(|field| {
            field.variant.name.contains("barrier")
                && matches!(field.code(), Some(0..128))
                && field.spec.kind.accepts == Accepts::INLINE
        }),
    },
    Reason {
        what: "vector registers that run out of the file",
        evidence: "there are 256, and llvm-mc takes no run beyond v255; AMDGPUDisassembler::createRegOperand forms one \
            by number",
        how: How::WeRefuseOperand(|field| {
            let past = |first| first + u64::from(field.spec.kind.shown.min(field.spec.kind.dwords)) > 256;
            !field.target.has_vgpr_msb() && field.vector().is_some_and(past)
        }),
    },
    Reason {
        what: "accumulation registers that LDS cannot reach",
        evidence: "CDNA1 ISA guide: memory instructions have no ACC bit; only gfx90a brought it, and llvm-mc refuses \
            it for gfx908",
        how: How::WeRefuseOperand(|field| {
            field.spec.kind.coding == Coding::VectorAcc && field.number & 0x200 != 0 && !field.target.unified_accum()
        }),
    },
    Reason {
        what: "global data share on a target that has none",
        evidence: "LLVM: FeatureGDS is missing on gfx90a and later; llvm-mc refuses `gds`",
        how: How::WeRefuse(|case| {
            (case.variant.encoding == Encoding::Ds && !case.target.has_gds())
                .then(|| case.without_bits(case.modifier_bits(Modifier::Gds)))?
        }),
    },
    Reason {
        what: "a flat offset with the sign bit",
        evidence: "Vega, RDNA1 and RDNA3 ISA guides, FLAT: the flat segment's offset is unsigned and a bit less than \
            the field; llvm-mc refuses larger ones",
        how: How::WeRefuse(|case| {
            (case.variant.encoding == Encoding::Flat)
                .then(|| case.without_bits(case.modifier_bits(Modifier::Offset)))?
        }),
    },
    Reason {
        what: "image data from an odd register on",
        evidence: "LLVM: FeatureRequiresAlignedVGPRs; llvm-mc refuses them. AMDGPUDisassembler::convertMIMGInst makes \
            the run from its first register",
        how: How::WeRefuse(|case| {
            (case.variant.encoding == Encoding::Mimg && case.target.aligned_vgprs())
                .then(|| case.without_bits(1 << 40))?
        }),
    },
    Reason {
        what: "image data that runs out of the file",
        evidence: "there are 256 registers, and llvm-mc takes no run beyond v255",
        how: How::WeRefuse(images::data_in_the_file),
    },
    Reason {
        what: "image addresses that run out of the file",
        evidence: "as data: AMDGPUDisassembler::convertMIMGInst finds no such run (CheckVGPROverflow) and leaves the \
            registers of the form that the table gave",
        how: How::WeRefuse(images::addresses_in_the_file),
    },
    Reason {
        what: "a dimension for which the form has no addresses",
        evidence: "AMDGPUDisassembler::convertMIMGInst finds no opcode and keeps the one that the table gave (\"should \
            this be an error?\"), whose number of addresses is not the dimension's: llvm-mc refuses the text \
            (validateMIMGAddrSize)",
        how: How::WeRefuse(images::another_dimension),
    },
    Reason {
        what: "bits behind the last of the separate addresses",
        evidence: "RDNA2 ISA guide, \"MIMG: non-sequential addresses\"; llvm-mc writes 0 there, and LLVM's decoder \
            does not look at them. An instruction here has no place for bits behind the first 128",
        how: How::WeRefuse(images::nothing_behind),
    },
    Reason {
        what: "LDS direct where there is none",
        evidence: "AMDGPUDisassembler::decodeSpecialReg32 knows code 254 on every processor and for every source; \
            gfx11 dropped it (RDNA3 ISA guide, \"Scalar operands\"), earlier ones have it in VOP1, VOP2 and VOPC \
            alone, and llvm-mc refuses it elsewhere",
        how: How::WeRefuseOperand(|field| field.code() == Some(254)),
    },
    Reason {
        what: "a scaled matrix operation with a reserved source code",
        evidence: "AMDGPUDisassembler::getInstruction tries the forms of 8 bytes when that of 16 fails, and finds the \
            operation that loads the scales in the first half",
        how: How::WeRefuseOperand(|field| {
            field.variant.name.contains("_scale")
                && field.variant.layout.bytes == 16
                && matches!(field.code(), Some(209..=229 | 232..=234 | 249 | 250))
        }),
    },
    Reason {
        what: "the reserved format of scales",
        evidence: "AMDGPUInstPrinter::printMatrixScaleFmt writes 3 as a number; llvm-mc has no name for it",
        how: How::WeRefuse(|case| {
            let fields = [Modifier::MatrixAScaleFmt, Modifier::MatrixBScaleFmt].map(|field| case.modifier_bits(field));
            let reserved = fields
                .into_iter()
                .filter(|bits| *bits != 0 && case.word() & bits == *bits)
                .fold(0, |all, bits| all | bits);
            case.without_bits(reserved)
        }),
    },
    Reason {
        what: "channel masks that an image atomic does not have",
        evidence: "Vega ISA guide, \"Image atomics\": one or two registers of data, twice as many for compare and \
            swap; llvm-mc refuses other masks (validateMIMGAtomicDMask)",
        how: How::WeRefuse(|case| {
            let dmask = case
                .fields()
                .find(|field| field.spec.role == Role::Dmask)
                .filter(|_| case.name_starts("image_atomic"))?;
            case.with_operand(dmask.spec, 3)
        }),
    },
    Reason {
        what: "v_cmpx in VOP3 with a destination number that is not EXEC's",
        evidence: "older LLVM wrote 0 there, and binaries have it; the hardware ignores the field (RDNA ISA guides, \
            VOPC: V_CMPX writes EXEC only). LLVM 22 insists on 126",
        how: How::LlvmRefuses(|case| {
            let known =
                case.name_starts("v_cmpx_") && case.variant.mnemonic.contains("_e64") && case.codes.null.is_some();
            known.then(|| case.with_word(case.word() & !0xff | 126))
        }),
    },
    Reason {
        what: "copies of tensors with zeros in fields that they have no use for",
        evidence: "the kernels that AMD ships for gfx1250 (ROCm/aiter, hsa/gfx1250) have 0 in DIM, DMASK and VADDR4; \
            LLVM 22 insists on 1, 1 and null, which it writes",
        how: How::LlvmRefuses(|case| {
            let zeros = case.name_starts("tensor_") && case.word() & (1 << 22 | 1) == 0;
            zeros.then(|| case.with_word(case.word() | 0x7c << 56 | 1 << 22 | 1))
        }),
    },
    Reason {
        what: "scales of matrices with an inline 0 for the source that loading them does not have",
        evidence: "LLVM 24 (in Triton 3.9) writes 0x80 there, LLVM 22 writes v0 and insists on it",
        how: How::LlvmRefuses(|case| {
            let scaled = case.name_starts("v_wmma_scale") || case.name_starts("v_wmma_ld_scale");
            (scaled && case.word() >> 50 & 0x1ff == 0x80)
                .then(|| case.with_word(case.word() & !(0x1ff << 50) | 0x100 << 50))
        }),
    },
    Reason {
        what: "dependences that s_delay_alu has no name for",
        evidence: "AMDGPUInstPrinter::printSDelayALU calls them invalid but decodes them; the codes are reserved \
            (RDNA3 ISA guide, S_DELAY_ALU)",
        how: How::LlvmRefuses(|case| {
            let delay = case.fields().find(|field| field.spec.role == Role::Delay)?;
            let (first, skip, second) = (delay.number & 15, delay.number >> 4 & 7, delay.number >> 7 & 15);
            let legal = |code: u64, last: u64| if code > last { 0 } else { code };
            case.with_operand(
                delay.spec,
                delay.number & !0x7ff | legal(first, 11) | legal(skip, 5) << 4 | legal(second, 11) << 7,
            )
        }),
    },
    Reason {
        what: "DPP of gfx11 and gfx12 whose control LLVM decodes without a bit",
        evidence: "the tables of LLVM 22 have a fixed or foreign bit there: what llvm-mc assembles is disassembled to \
            another control",
        how: How::Either(|case| {
            let known = ["v_fma_mix", "v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32"].iter().any(|name| case.name_starts(name))
                && case.is_dpp();
            known.then(|| case.without_bits(case.modifier_bits(Modifier::DppCtrl)))?
        }),
    },
    Reason {
        what: "a constant of v_fmac with DPP",
        evidence: "LLVM prints the constant's operand code instead: AMDGPUDisassembler::convertMacDPPInst moves \
            operands after their types were looked up; llvm-mc assembles 2.0 to the same word",
        how: How::Either(|case| {
            let constant = |field: &Field<'_>| {
                field.spec.role == Role::Src1 && matches!(field.code(), Some(128..=208 | 240..=248))
            };
            let known =
                case.name_starts("v_fmac_") && matches!(case.variant.encoding, Encoding::Vop3Dpp | Encoding::Vop3Dpp8);
            let field = case.fields().find(constant).filter(|_| known)?;
            case.with_operand(field.spec, field.usual())
        }),
    },
    Reason {
        what: "a literal of v_fmamk and its relatives whose value is a constant's operand code",
        evidence: "LLVM decodes it once more, as an operand: K of 244 is printed and assembled as that of 2.0 (llvm-mc \
            --disassemble --show-encoding of 00 01 00 58 f4 00 00 00 for gfx1100 has another encoding)",
        how: How::Either(|case| {
            let code = |field: &Field<'_>| {
                field.spec.kind.coding == Coding::Literal && matches!(field.number, 128..=208 | 240..=248)
            };
            let field = case.fields().find(code)?;
            case.with_operand(field.spec, PLAIN)
        }),
    },
    Reason {
        what: "a literal of a pair that a source and v_dual_fmamk or v_dual_fmaak share",
        evidence: "LLVM marks such a literal in v_fmamk and not in the pair: what has an inline constant's value is \
            assembled to another word (llvm-mc --disassemble --show-encoding of 12 a9 85 c8 ff ec 78 11 05 00 00 00 \
            for gfx1100)",
        how: How::Either(|case| {
            let shared =
                case.variant.encoding == Encoding::Vopd && case.fields().any(|field| field.code() == Some(LITERAL));
            let field = case
                .fields()
                .find(|field| shared && field.spec.kind.coding == Coding::Literal && field.number != PLAIN)?;
            case.with_operand(field.spec, PLAIN)
        }),
    },
    Reason {
        what: "three trap registers",
        evidence: "LLVM has no class of three trap registers (SIRegisterInfo.td, TTMP_96 is for decoding only) and \
            refuses the word; RDNA4 ISA guide, \"S_LOAD_B96\"",
        how: How::LlvmRefuses(|case| {
            let trap = |field: &Field<'_>| field.dwords() == 3 && matches!(field.code(), Some(108..=123));
            let field = case.fields().find(trap)?;
            case.with_operand(field.spec, 0)
        }),
    },
    Reason {
        what: "the name of an SDWA compare of gfx8",
        evidence: "AMDGPUInstPrinter::printInst writes no suffix for these; llvm-mc takes both",
        how: How::Text(|case, theirs| {
            let (name, rest) = theirs.split_once(' ')?;
            (case.variant.encoding == Encoding::VopcSdwa && case.codes.first_trap == 112)
                .then(|| format!("{name}_sdwa {rest}"))
        }),
    },
    Reason {
        what: "data of a gather with tfe and d16",
        evidence: "two registers of data and one of status; LLVM has no form with three and prints two \
            (AMDGPUDisassembler::convertMIMGInst finds no opcode and keeps the one that the table gave)",
        how: How::Text(|case, theirs| {
            let known = case.name_starts("image_gather4") && theirs.contains(" tfe") && theirs.contains(" d16");
            let (first, rest) = theirs.strip_prefix(case.variant.mnemonic)?.strip_prefix(" v[")?.split_once(':')?;
            let (_, rest) = rest.split_once(']')?;
            known.then(|| {
                format!("{} v[{first}:{}]{rest}", case.variant.mnemonic, first.parse::<u32>().unwrap_or(0) + 2)
            })
        }),
    },
    Reason {
        what: "registers of a gather with tfe and d16",
        evidence: "as above; since gfx10 the addresses stay those of the form that the table gave, too",
        how: How::Either(images::gather_without_status),
    },
    Reason {
        what: "VCC within the bars of an absolute value",
        evidence: "AMDGPUInstPrinter::printOperandAndFPInputMods writes the implied VCC of v_cndmask before it closes \
            the bars of the operand in front; llvm-mc does not take that",
        how: How::Text(|_, theirs| {
            let vcc = [", vcc_lo|", ", vcc|"].into_iter().find(|vcc| theirs.contains(vcc))?;
            Some(theirs.replacen(vcc, &format!("|{}", &vcc[..vcc.len() - 1]), 1))
        }),
    },
    Reason {
        what: "a message with bits beyond its number",
        evidence: "AMDGPU::SendMsg::decodeMsg of gfx11 takes eight bits of the sixteen, so the text does not assemble \
            to the word; ours is the number",
        how: How::Text(|case, theirs| {
            let field = case.fields().find(|field| field.spec.role == Role::Message)?;
            let (before, rest) = theirs.split_once("sendmsg(")?;
            let name = rest.strip_suffix(')')?;
            let known =
                case.codes.m0 == 125 && field.number > 0xff && case.target.message(field.number as u8) == Some(name);
            known.then(|| format!("{before}{}", field.number))
        }),
    },
    Reason {
        what: "the upper half of a literal of 64 bits for a pair",
        evidence: "AMDGPUInstPrinter::printRegularOperand prints OPERAND_REG_IMM_V2FP32 and V2INT32 with \
            printImmediate32, which drops the upper half",
        how: How::Either(|case| {
            let wide = case.inst.as_ref()?.operands.iter().find_map(|operand| match (operand.value, operand.ty) {
                (Value::Literal64(value), ValueType::V2F32 | ValueType::V2I32) => Some(value),
                _ => None,
            })?;
            let fixed = usize::from(case.variant.layout.bytes);
            let mut bytes = case.bytes.to_vec();
            bytes[fixed..fixed + 8].copy_from_slice(&(wide & 0xffff_ffff).to_le_bytes());
            Some(bytes)
        }),
    },
];
