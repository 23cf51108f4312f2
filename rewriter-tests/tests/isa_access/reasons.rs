//! Where our operand access differs from LLVM's description on purpose. Every register in which an instruction differs
//! must fall under one of these.

use wavetap::isa::{Access, Encoding, Flags, Implicit, Inst, Role, Target};

/// Whose side has the register that the other lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Ours,
    Llvm,
}

/// What is done with the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
}

/// One register that only one side has.
pub struct Difference<'a> {
    pub target: Target,
    pub inst: &'a Inst,
    pub who: Who,
    pub kind: Kind,
    pub register: &'a str,
}

/// Why differences of a class are right.
pub struct Reason {
    /// The class.
    pub what: &'static str,
    /// How it is known that LLVM's description is coarser or wrong there.
    #[allow(dead_code)] // For people.
    pub evidence: &'static str,
    pub holds: fn(&Difference<'_>) -> bool,
}

impl Difference<'_> {
    fn only(&self, who: Who, kind: Kind) -> bool {
        self.who == who && self.kind == kind
    }

    fn named(&self, names: &[&str]) -> bool {
        names.contains(&self.inst.name())
    }

    /// Whether it is the old value of a result, which ours reads because a part of it stays, or stays under a
    /// condition.
    fn old_result(&self) -> bool {
        self.only(Who::Ours, Kind::Read) && self.in_operand(|operand| operand.access == Access::ReadWrite)
    }

    /// Whether an operand that `chosen` takes has the register.
    fn in_operand(&self, chosen: impl Fn(&wavetap::isa::Operand) -> bool) -> bool {
        self.inst
            .operands
            .iter()
            .filter(|operand| chosen(operand))
            .filter_map(wavetap::isa::Operand::reg)
            .any(|reg| rewriter_tests::access::names(self.target, reg).any(|name| name == self.register))
    }
}

/// All of them.
pub const REASONS: &[Reason] = &[
    Reason {
        what: "both halves of the base of scratch memory",
        evidence: "LLVM has one register for the low half and for both (SIRegisterInfo.td, SRC_FLAT_SCRATCH_BASE, \
            whose name in 64-bit operands is that of the low half); a source of 64 bits reads both",
        holds: |d| {
            d.only(Who::Ours, Kind::Read)
                && d.register == "src_flat_scratch_base_hi"
                && d.in_operand(|operand| operand.dwords == 2 && operand.reg().is_some_and(|reg| reg.dwords == 2))
        },
    },
    Reason {
        what: "M0 is not read by LDS instructions from gfx9 on",
        evidence: "Vega ISA guide, 'LDS: M0 is not used' (it clamped addresses before); LLVM's \
            FeatureLDSRequiresM0Init is off there and code is selected as the `_gfx9` pseudos without M0, but its \
            decoder finds the records of gfx8 with the same bits. With `gds` M0 holds base and size of the allocation \
            and both read it.",
        holds: |d| {
            d.only(Who::Llvm, Kind::Read)
                && d.register == "m0"
                && d.inst.variant.encoding == Encoding::Ds
                && !d.inst.modifiers.gds
                && !["append", "consume", "addtid", "gws", "ordered"].iter().any(|part| d.inst.name().contains(part))
                && !d.target.name().starts_with("gfx8")
        },
    },
    Reason {
        what: "M0 is read by every access to global data share",
        evidence: "the ISA guides, 'M0: GDS base and size'. LLVM's records of gfx9 itself have no M0, whether the \
            `gds` bit is set or not.",
        holds: |d| d.only(Who::Ours, Kind::Read) && d.register == "m0" && d.inst.modifiers.gds,
    },
    Reason {
        what: "lane masks have 32 bits in waves of 32 lanes",
        evidence: "the RDNA ISA guides, 'wave32: EXEC_HI and VCC_HI are not used as masks'. LLVM's records name all of \
            EXEC and VCC; it narrows VCC when it makes an instruction (SIInstrInfo::fixImplicitOperands) and keeps \
            EXEC.",
        holds: |d| {
            let implicit =
                if d.kind == Kind::Read { d.inst.variant.implicit_reads } else { d.inst.variant.implicit_writes };
            d.who == Who::Llvm
                && d.target.wave_size() == 32
                && (d.register == "exec_hi" && implicit.contains(Implicit::EXEC)
                    || d.register == "vcc_hi" && implicit.contains(Implicit::VCC))
        },
    },
    Reason {
        what: "FLAT_SCRATCH is no scalar register from gfx10 on",
        evidence: "the RDNA ISA guides: FLAT_SCRATCH is written with s_setreg, the operand codes are s102 and s103. \
            LLVM's records name FLAT_SCR for all.",
        holds: |d| {
            d.only(Who::Llvm, Kind::Read)
                && d.register.starts_with("flat_scr_")
                && d.target.addressable_sgprs() > 102
                && [Encoding::Flat, Encoding::Scratch, Encoding::Smem].contains(&d.inst.variant.encoding)
        },
    },
    Reason {
        what: "counters that LLVM has as registers",
        evidence: "ASYNCcnt and TENSORcnt are wait counters (`Variant::counters`), not registers that code can name.",
        holds: |d| d.who == Who::Llvm && ["asynccnt", "tensorcnt"].contains(&d.register),
    },
    Reason {
        what: "the second result's old value in VOPD",
        evidence: "RDNA3 ISA guide, 'VOPD: vdstY has no lowest bit, it is the inverse of vdstX's'. LLVM's decoder \
            inserts the tied source without that bit and the tie itself gives the register, so that both are read.",
        holds: |d| {
            let partner = |reg: wavetap::isa::Reg| format!("v{}", reg.first ^ 1);
            d.only(Who::Llvm, Kind::Read)
                && d.inst.operands.iter().any(|operand| {
                    operand.role == Role::VdstY
                        && operand.access == Access::ReadWrite
                        && operand.reg().is_some_and(|reg| partner(reg) == d.register)
                })
        },
    },
    Reason {
        what: "s_movreld writes the register that it names, plus M0",
        evidence: "the ISA guides: SGPR[D + M0] = S0. LLVM has the named register as a source only; dataflow takes all \
            registers that M0 can reach.",
        holds: |d| {
            d.only(Who::Ours, Kind::Write)
                && d.inst.name().starts_with("s_movreld")
                && d.in_operand(|operand| operand.role == Role::Sdst)
        },
    },
    Reason {
        what: "relative moves happen in active lanes only",
        evidence: "the RDNA ISA guides have them among the VOP1 operations, which execute per active lane. LLVM's \
            definitions of these two set `Uses = [M0]` where their neighbours have `[M0, EXEC]`.",
        holds: |d| {
            d.only(Who::Ours, Kind::Read)
                && d.register.starts_with("exec_")
                && d.named(&["v_movrelsd_2_b32", "v_swaprel_b32"])
        },
    },
    Reason {
        what: "sources of an export that its channel mask leaves out",
        evidence: "the ISA guides, 'EN: 0 means the channel is not written'; assemblers write them as `off`. LLVM's \
            decoder keeps the four registers.",
        holds: |d| {
            d.only(Who::Llvm, Kind::Read) && d.inst.variant.encoding == Encoding::Exp && d.register.starts_with('v')
        },
    },
    Reason {
        what: "16-bit loads leave the other half of their register",
        evidence: "the ISA guides, 'D16: the other half is preserved'. LLVM's pseudos are tied (`$vdst = $vdst_in`); \
            the records that decode copy the operand but not the constraint, and those of formatted buffers and images \
            are not tied although an odd number of values leaves a half.",
        holds: |d| d.old_result() && (d.inst.variant.flags.contains(Flags::D16) || d.inst.modifiers.d16),
    },
    Reason {
        what: "image addresses are as long as the image needs",
        evidence: "the encodings of gfx8 and gfx9 do not say how many registers the address takes (the resource does, \
            and A16): LLVM's decoder takes the shortest form, ours the longest that the operation can use.",
        holds: |d| {
            d.only(Who::Ours, Kind::Read)
                && d.inst.variant.image.is_some_and(|image| image.address.is_none())
                && d.in_operand(|operand| operand.role == Role::Vaddr)
        },
    },
    Reason {
        what: "the status that LWE writes behind image data",
        evidence: "Vega ISA guide, 'LWE: LOD warning enable': as TFE, an additional register is written. LLVM's \
            decoder counts it for TFE only.",
        holds: |d| d.who == Who::Ours && d.inst.modifiers.lwe && d.in_operand(|operand| operand.role == Role::Vdata),
    },
    Reason {
        what: "data of a gather with tfe and d16",
        evidence: "a gather has four values, two registers with d16, and the status makes three; LLVM has no form of \
            gather with three, and leaves data and address of the form that it found first.",
        holds: |d| {
            let in_data = d.in_operand(|operand| operand.role == Role::Vdata);
            let computed = d.inst.variant.image.is_some_and(|image| image.address.is_some());
            d.inst.name().starts_with("image_gather4")
                && d.inst.modifiers.tfe
                && d.inst.modifiers.d16
                && (d.who == Who::Ours && in_data || d.kind == Kind::Read && computed && d.register.starts_with('v'))
        },
    },
    Reason {
        what: "SDWA with dst_unused:UNUSED_PRESERVE leaves parts of its result",
        evidence: "the ISA guides, 'DST_UNUSED: UNUSED_PRESERVE'. LLVM ties the result where it makes such an \
            instruction (SIPeepholeSDWA), not in the record.",
        holds: |d| d.old_result() && d.inst.modifiers.sdwa.is_some_and(|sdwa| sdwa.dst_unused == 2),
    },
    Reason {
        what: "a bit of the register is set, or all of it under a condition",
        evidence: "the ISA guides: s_bitset changes one bit, s_cmov writes if SCC is set. LLVM's pseudo of s_bitset is \
            tied; the record that decodes is not, and s_cmov is not tied at all.",
        holds: |d| d.old_result() && (d.inst.name().starts_with("s_bitset") || d.inst.name().starts_with("s_cmov")),
    },
    Reason {
        what: "16-bit results leave the other half of their register",
        evidence: "Vega ISA guide, 'OP_SEL[3]: destination half; the other is unchanged', RDNA guides, '16-bit results \
            leave the other half'; LLVM knows by a list (GCNSubtarget::zeroesHigh16BitsOfDest), not by the record, \
            unless halves are registers of their own.",
        holds: |d| d.old_result() && half_result(d.inst.name()),
    },
    Reason {
        what: "conversions into a part of the register",
        evidence: "CDNA4 ISA guide: V_CVT_SCALEF32_* into bytes and halves write the part that OP_SEL names and leave \
            the others. LLVM's record has the old value as an operand; decoding leaves it out.",
        holds: |d| d.old_result() && d.inst.name().starts_with("v_cvt_scalef32_"),
    },
    Reason {
        what: "s_cbranch_g_fork, i_fork and join change EXEC",
        evidence: "Vega ISA guide, 'S_CBRANCH_G_FORK: … EXEC = mask_pass'. LLVM never emits them and has no implicit \
            registers for them.",
        holds: |d| {
            d.who == Who::Ours
                && d.register.starts_with("exec_")
                && d.named(&["s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join"])
        },
    },
    Reason {
        what: "s_setvskip sets a bit of MODE",
        evidence: "Vega ISA guide, 'S_SETVSKIP: VSKIP = S0.u[S1.u[4:0]]', which says of comparisons, and not here, \
            that they write SCC. LLVM's record is that of all operations of the format.",
        holds: |d| {
            d.named(&["s_setvskip"])
                && (d.who == Who::Ours && d.register == "mode" || d.only(Who::Llvm, Kind::Write) && d.register == "scc")
        },
    },
];

/// Whether an operation has a 16-bit result, by its name: the first type is the result's.
fn half_result(name: &str) -> bool {
    if name == "v_sat_pk_u8_i16" || name.starts_with("v_wmma_f16_") || name.starts_with("v_wmma_bf16_") {
        return true;
    }
    const HALVES: [&str; 5] = ["f16", "bf16", "i16", "u16", "b16"];
    const OTHERS: [&str; 9] = ["b32", "f32", "i32", "u32", "b64", "f64", "i64", "u64", "fp8"];
    let first = name.split('_').find(|part| HALVES.contains(part) || OTHERS.contains(part));
    first.is_some_and(|first| HALVES.contains(&first)) && !name.contains("_pk")
}
