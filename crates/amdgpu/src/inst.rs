//! The decoded instruction and its parts: what every later stage reads.

use std::ops::Range;

use smallvec::SmallVec;

use super::opcode::{Opcode, OpcodeFlags};
use super::table::{Branch, Variant};
use super::vocabulary::{Access, Role, ValueType};

/// The register file a [`Reg`] belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegFile {
    /// Scalar registers *by their hardware operand code*: 0..=101 are `s0..s101`, then the named ones of [`scalar`].
    Scalar,
    /// Vector registers `v0..v255`.
    Vector,
    /// AGPRs `a0..a255`.
    Accum,
}

/// Codes of the named scalar registers: the operand codes of gfx9 (AMD ISA guides, "SGPR and constant operands"), and
/// of gfx10 for the null register. Where a target has other codes (gfx11 exchanged M0 and null), decoding and encoding
/// translate them.
pub mod scalar {
    /// `flat_scratch_lo`; the high half follows (gfx8 and gfx9; later `s102`).
    pub const FLAT_SCRATCH: u16 = 102;
    /// `xnack_mask_lo`; the high half follows (gfx8 and gfx9; later `s104`).
    pub const XNACK_MASK: u16 = 104;
    /// `vcc_lo`; the high half follows.
    pub const VCC: u16 = 106;
    /// `ttmp0`; fifteen follow.
    pub const TTMP0: u16 = 108;
    /// `m0`.
    pub const M0: u16 = 124;
    /// `null` (gfx10 and later): reads 0, and what is written is gone.
    pub const NULL: u16 = 125;
    /// `exec_lo`; the high half follows.
    pub const EXEC: u16 = 126;
    /// `src_shared_base`, then `src_shared_limit`, `src_private_base`, `src_private_limit`, `src_pops_exiting_wave_id`.
    pub const SHARED_BASE: u16 = 235;
    /// `src_vccz`.
    pub const VCCZ: u16 = 251;
    /// `src_execz`.
    pub const EXECZ: u16 = 252;
    /// `src_scc`: also how an implicit read or write of SCC is reported.
    pub const SCC: u16 = 253;
    /// `src_lds_direct`.
    pub const LDS_DIRECT: u16 = 254;
    /// The MODE register, which has no operand code: how implicit use of it (`s_setreg`) is reported.
    pub const MODE: u16 = 300;
}

/// A run of consecutive 32-bit registers of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg {
    /// The file.
    pub file: RegFile,
    /// The first register (for [`RegFile::Scalar`]: its operand code).
    pub first: u16,
    /// How many registers, 1 to 32.
    pub dwords: u8,
}

impl Reg {
    /// Scalar registers by operand code.
    #[must_use]
    pub const fn scalar(first: u16, dwords: u8) -> Self {
        Reg { file: RegFile::Scalar, first, dwords }
    }

    /// Vector registers.
    #[must_use]
    pub const fn vector(first: u16, dwords: u8) -> Self {
        Reg { file: RegFile::Vector, first, dwords }
    }

    /// AGPRs.
    #[must_use]
    pub const fn accum(first: u16, dwords: u8) -> Self {
        Reg { file: RegFile::Accum, first, dwords }
    }

    /// The 64-bit EXEC mask.
    pub const EXEC: Reg = Reg::scalar(scalar::EXEC, 2);
    /// The 64-bit VCC.
    pub const VCC: Reg = Reg::scalar(scalar::VCC, 2);
    /// SCC.
    pub const SCC: Reg = Reg::scalar(scalar::SCC, 1);
    /// M0.
    pub const M0: Reg = Reg::scalar(scalar::M0, 1);

    /// Whether this is the null register, however wide: it reads 0, and what is written is gone.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.file == RegFile::Scalar && self.first == scalar::NULL
    }

    /// Whether the two runs share a register. The null register holds nothing to share.
    #[must_use]
    pub fn overlaps(self, other: Reg) -> bool {
        if self.is_null() || other.is_null() {
            return false;
        }
        self.file == other.file
            && self.first < other.first + u16::from(other.dwords)
            && other.first < self.first + u16::from(self.dwords)
    }
}

impl Role {
    /// Whether it is one of the addresses of vector memory: a run of registers, of images also registers of their own.
    #[must_use]
    pub fn is_address(self) -> bool {
        use Role::{Vaddr, Vaddr1, Vaddr2, Vaddr3, Vaddr4, Vaddr5, Vaddr6, Vaddr7, Vaddr8, Vaddr9, Vaddr10, Vaddr11};
        matches!(
            self,
            Vaddr | Vaddr1 | Vaddr2 | Vaddr3 | Vaddr4 | Vaddr5 | Vaddr6 | Vaddr7 | Vaddr8 | Vaddr9 | Vaddr10 | Vaddr11
        )
    }
}

impl Access {
    /// Whether it is read.
    #[must_use]
    #[inline]
    pub fn reads(self) -> bool {
        matches!(self, Access::Read | Access::ReadWrite)
    }

    /// Whether it is written.
    #[must_use]
    #[inline]
    pub fn writes(self) -> bool {
        matches!(self, Access::Write | Access::ReadWrite)
    }
}

/// The value of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// Registers (named scalar ones and the read-only `src_*` included).
    Reg(Reg),
    /// An inline integer constant, -16..=64 (operand codes 128..=208).
    InlineInt(i8),
    /// An inline floating constant by operand code: 240..=248 = 0.5, -0.5, 1, -1, 2, -2, 4, -4, 1/(2*PI).
    InlineFloat(u8),
    /// A 32-bit literal that follows the instruction.
    Literal(u32),
    /// A 64-bit literal that follows the instruction (gfx1250).
    Literal64(u64),
    /// An immediate from a field: offsets, `simm16` (sign-extended where the instruction does so), hwreg, counters. A
    /// branch target is the displacement in dwords from the next instruction.
    Imm(i64),
    /// The operand is absent (`off` as saddr/vaddr, unused src2, an image address that the dimension does not have).
    Off,
}

/// Which part of a 32-bit register an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Half {
    /// All of it, or a constant.
    #[default]
    Whole,
    /// Bits 15:0 (`v1.l`).
    Low,
    /// Bits 31:16 (`v1.h`).
    High,
}

/// One operand of a decoded instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Its part in the instruction.
    pub role: Role,
    /// Its value: a register, a constant, or nothing.
    pub value: Value,
    /// Read, written or both.
    pub access: Access,
    /// How its bits are understood.
    pub ty: ValueType,
    /// Width in 32-bit registers that the instruction really reads or writes (1 for 16-bit values).
    pub dwords: u8,
    /// Which half of a register, where operations name halves (gfx11 and later).
    pub half: Half,
}

impl Operand {
    /// The registers, if it is registers.
    #[must_use]
    pub fn reg(&self) -> Option<Reg> {
        match self.value {
            Value::Reg(reg) => Some(reg),
            _ => None,
        }
    }
}

/// DPP fields of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dpp {
    /// `dpp_ctrl`, 9 bits, as encoded.
    pub ctrl: u16,
    /// `row_mask`, 4 bits.
    pub row_mask: u8,
    /// `bank_mask`, 4 bits.
    pub bank_mask: u8,
    /// `bound_ctrl` as encoded (1: out-of-range lanes read 0).
    pub bound_ctrl: bool,
    /// `fi`: inactive lanes are read, too (gfx10 and later; DPP8 has it in its source code).
    pub fetch_inactive: bool,
}

/// SDWA fields of an instruction; selectors as encoded: 0-3 BYTE_n, 4 WORD_0, 5 WORD_1, 6 DWORD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)]
pub struct Sdwa {
    pub dst_sel: u8,
    /// 0 PAD, 1 SEXT, 2 PRESERVE.
    pub dst_unused: u8,
    pub src0_sel: u8,
    pub src1_sel: u8,
    pub src0_sext: bool,
    pub src1_sext: bool,
}

/// Modifier fields. A field the encoding lacks is zero. Bit n of a mask belongs to source n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)] // The names are the assembler's.
pub struct Modifiers {
    pub neg: u8,
    pub abs: u8,
    /// VOP3P: negate of the high half.
    pub neg_hi: u8,
    /// `op_sel` bits of src0..2, bit 3 the destination.
    pub op_sel: u8,
    /// VOP3P: `op_sel_hi`.
    pub op_sel_hi: u8,
    pub clamp: bool,
    pub omod: u8,
    /// Byte offset of a memory instruction, sign-extended where signed. DS with two offsets: `offset0`, as encoded (not
    /// scaled).
    pub offset: i32,
    /// DS `offset1`, as encoded (not scaled).
    pub offset1: u8,
    /// `glc` (gfx940: `sc0`).
    pub glc: bool,
    /// `slc` (gfx940: `nt`).
    pub slc: bool,
    /// gfx90a `scc`, gfx940 `sc1`.
    pub scc: bool,
    pub lds: bool,
    pub tfe: bool,
    pub lwe: bool,
    pub nv: bool,
    pub gds: bool,
    pub idxen: bool,
    pub offen: bool,
    pub unorm: bool,
    pub da: bool,
    pub r128: bool,
    pub d16: bool,
    pub cbsz: u8,
    pub abid: u8,
    pub blgp: u8,
    /// SMEM: `soffset_en`/`imm` say which offsets are there; see [`Role::Soffset`].
    pub imm: bool,
    /// SMEM: see `imm`.
    pub soffset_en: bool,
    pub high: bool,
    /// Export: which of the four sources are written.
    pub export_enable: u8,
    /// Export: two sources, each with a pair of 16-bit values.
    pub export_compressed: bool,
    /// Export: the EXEC mask is the valid mask.
    pub export_valid_mask: bool,
    /// Export: the last one.
    pub done: bool,
    pub dpp: Option<Dpp>,
    pub sdwa: Option<Sdwa>,
    /// DPP8: the lane that each lane of eight reads, 3 bits each, the first lowest.
    pub dpp8: Option<u32>,
    /// DPP8: 1, or 2 if inactive lanes are read, too (the low bits of its source code).
    pub dpp8_fi: u8,
    /// gfx10 and gfx11.
    pub dlc: bool,
    pub a16: bool,
    /// Image dimension as encoded (gfx10 and later).
    pub dim: u8,
    /// Image addresses that are not consecutive: further dwords of them (gfx10, gfx11).
    pub nsa: u8,
    /// gfx12: temporal hint.
    pub th: u8,
    /// gfx12: 0 CU, 1 SE, 2 DEV, 3 SYS.
    pub scope: u8,
    pub scale_offset: bool,
    pub wait_exp: u8,
    pub wait_vdst: u8,
    pub wait_vsrc: u8,
    /// The truth table of `v_bitop3`.
    pub bitop3: u8,
    pub byte_sel: u8,
    pub scale_sel: u8,
    pub index_key: u8,
    /// Export: `row_en`.
    pub row_en: bool,
    pub matrix: Matrix,
}

/// Fields of scaled and mixed matrix operations (gfx1250), as encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)] // The names are the assembler's.
pub struct Matrix {
    pub a_fmt: u8,
    pub b_fmt: u8,
    pub a_scale: u8,
    pub b_scale: u8,
    pub a_scale_fmt: u8,
    pub b_scale_fmt: u8,
    pub a_reuse: u8,
    pub b_reuse: u8,
}

/// One decoded instruction.
///
/// It knows its variant's table row, its operands with access and width, and its modifiers; it does not know its
/// address.
#[derive(Debug, Clone, PartialEq)]
pub struct Inst {
    /// The table row.
    pub variant: &'static Variant,
    /// Encoded size in bytes, literal included: 4, 8, 12 …
    pub size: u8,
    /// Operands in the assembler's order (destinations first).
    pub operands: SmallVec<[Operand; 5]>,
    /// Modifiers.
    pub modifiers: Modifiers,
    /// The bits of the encoding that no operand or modifier stands for and the hardware ignores: kept so that encoding
    /// gives the same bytes back.
    pub ignored: u128,
    /// Lanes of the wave that it was decoded for.
    pub wave_size: u8,
}

impl Inst {
    /// No instruction yet: what [`super::decode_into`] is given at first.
    #[must_use]
    #[inline]
    pub fn blank() -> Inst {
        static BLANK: Variant = Variant::BLANK;
        Inst {
            variant: &BLANK,
            size: 0,
            operands: SmallVec::new(),
            modifiers: Modifiers::default(),
            ignored: 0,
            wave_size: 0,
        }
    }

    /// The operation's base name, without encoding suffix: `v_add_f32`, `s_and_saveexec_b64`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.variant.name
    }

    /// The operation, of a pair the first one; see [`Inst::halves`].
    #[must_use]
    #[inline]
    pub fn opcode(&self) -> Opcode {
        self.variant.opcode
    }

    /// Whether its operation has one of these properties, or one of a pair of operations has.
    #[must_use]
    #[inline]
    pub fn is_any(&self, flags: OpcodeFlags) -> bool {
        self.variant.opcode_flags.intersects(flags)
    }

    /// The first operand with this role.
    #[must_use]
    pub fn operand(&self, role: Role) -> Option<&Operand> {
        self.operands.iter().find(|operand| operand.role == role)
    }

    /// Every register run the instruction reads, explicit and implicit. Implicit SCC, VCC, EXEC, M0, FLAT_SCRATCH and
    /// MODE are reported as scalar registers by their code. A `ReadWrite` operand is in both lists. VALU and vector
    /// memory instructions read EXEC.
    #[inline]
    pub fn reads(&self) -> impl Iterator<Item = Reg> + '_ {
        self.operands
            .iter()
            .filter(|operand| operand.access.reads())
            .filter_map(Operand::reg)
            .chain(self.variant.implicit_reads.regs(self.wave_size.into()))
            // Global data share: M0 has base and size of the allocation.
            .chain(self.modifiers.gds.then_some(Reg::M0))
    }

    /// Every register run the instruction writes, explicit and implicit.
    #[inline]
    pub fn writes(&self) -> impl Iterator<Item = Reg> + '_ {
        self.operands
            .iter()
            .filter(|operand| operand.access.writes())
            .filter_map(Operand::reg)
            .chain(self.variant.implicit_writes.regs(self.wave_size.into()))
    }

    /// [`Inst::reads`] and [`Inst::writes`] at once, each in its order.
    #[inline]
    pub fn accesses(&self, mut read: impl FnMut(Reg), mut write: impl FnMut(Reg)) {
        for operand in &self.operands {
            let Value::Reg(reg) = operand.value else { continue };
            if operand.access.reads() {
                read(reg);
            }
            if operand.access.writes() {
                write(reg);
            }
        }
        let lanes = self.wave_size.into();
        self.variant.implicit_reads.regs(lanes).for_each(&mut read);
        if self.modifiers.gds {
            read(Reg::M0);
        }
        self.variant.implicit_writes.regs(lanes).for_each(write);
    }

    /// Whether the hardware lets it pass only when all addresses are translated (gfx1250): messages, barriers, accesses
    /// of hardware registers, and whatever changes the program counter (LLVM, SIInstrInfo, `isXcntDrain`). A
    /// conditional branch is among these for LLVM, though it changes nothing where it is not taken. So is
    /// `s_set_vgpr_msb`: LLVM takes the waits for `xcnt` out that follow it in a block (`AMDGPULowerVGPREncoding`).
    #[must_use]
    pub fn waits_for_translations(&self) -> bool {
        self.variant.branch != Branch::None || self.variant.opcode_flags.contains(OpcodeFlags::TRANSLATES)
    }

    /// What `s_getreg` and `s_setreg` access: the number of a hardware register, and which of its bits. None of other
    /// instructions.
    #[must_use]
    pub fn hardware_register(&self) -> Option<(u8, Range<u32>)> {
        if !self.variant.opcode_flags.contains(OpcodeFlags::HARDWARE_REGISTER) {
            return None;
        }
        // hwreg(number, first bit, count): number 5:0, first 10:6, count - 1 15:11.
        let operand = self.operand(Role::Hwreg).or_else(|| self.operand(Role::Simm16))?;
        let Value::Imm(fields) = operand.value else { return None };
        let (number, first, count) = (fields as u8 & 0x3f, fields as u32 >> 6 & 0x1f, (fields as u32 >> 11 & 0x1f) + 1);
        Some((number, first..first + count))
    }

    /// The number of the hardware register that it changes, if it changes one.
    #[must_use]
    pub fn sets_hwreg(&self) -> Option<u8> {
        self.hardware_register().filter(|_| self.is_any(OpcodeFlags::SETREG)).map(|(number, _)| number)
    }

    /// Displacement of a direct branch, in dwords from the next instruction.
    #[must_use]
    pub fn branch_displacement(&self) -> Option<i64> {
        match self.operand(Role::SimmTarget)?.value {
            Value::Imm(displacement) => Some(displacement),
            _ => None,
        }
    }
}
