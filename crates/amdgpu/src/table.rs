//! The compiled instruction tables: one [`Variant`] for each encoding form of an operation.

use super::decode::Plan;
use super::image::Image;
use super::inst::{Access, Reg, Role, ValueType, scalar};
use super::layout::{Bits, Kind, Layout, Modifier, Plain};
use super::traits::Traits;

bitflags::bitflags! {
    /// Registers an instruction uses without naming them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Implicit: u16 {
        /// SCC.
        const SCC = 1;
        /// The 64-bit VCC.
        const VCC = 2;
        /// The 64-bit EXEC.
        const EXEC = 4;
        /// M0.
        const M0 = 8;
        /// FLAT_SCRATCH.
        const FLAT_SCRATCH = 16;
        /// The MODE register.
        const MODE = 32;
        /// XNACK_MASK.
        const XNACK_MASK = 64;
    }

    /// Wait counters that an instruction increments when it issues. gfx8 and gfx9 have VM (stores count in it), LGKM and EXP, gfx10 and gfx11 also
    /// VS; gfx12 has LOAD, SAMPLE, BVH, STORE, DS, KM and EXP, and gfx1250 also X, ASYNC and TENSOR.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Counters: u16 {
        /// `vmcnt`.
        const VM = 1;
        /// `lgkmcnt`.
        const LGKM = 2;
        /// `expcnt`.
        const EXP = 4;
        /// `vscnt`: stores, and atomics without return.
        const VS = 8;
        /// `loadcnt`.
        const LOAD = 0x10;
        /// `samplecnt`.
        const SAMPLE = 0x20;
        /// `bvhcnt`.
        const BVH = 0x40;
        /// `storecnt`.
        const STORE = 0x80;
        /// `dscnt`.
        const DS = 0x100;
        /// `kmcnt`.
        const KM = 0x200;
        /// `xcnt`: address translations.
        const X = 0x400;
        /// `asynccnt`: copies between memory and LDS.
        const ASYNC = 0x800;
        /// `tensorcnt`.
        const TENSOR = 0x1000;
    }

    /// Properties of an instruction.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Flags: u32 {
        /// Executes per lane on the vector ALU (MFMA included).
        const VALU = 1;
        /// Executes on the scalar ALU.
        const SALU = 2;
        /// Reads memory or LDS.
        const LOAD = 4;
        /// Writes memory or LDS.
        const STORE = 8;
        /// Atomic read-modify-write.
        const ATOMIC = 16;
        /// An atomic that returns the old value.
        const RETURNS = 32;
        /// Matrix (MFMA/SMFMAC).
        const MFMA = 64;
        /// Transcendental.
        const TRANS = 128;
        /// A load that leaves the other half of its destination (d16).
        const D16 = 256;
        /// `s_barrier`.
        const BARRIER = 512;
        /// `s_waitcnt` and relatives.
        const WAIT = 1024;
        /// Works on a pair of values in each register: `op_sel_hi` is all ones unless it is written.
        const PACKED = 2048;
        /// A 32-bit operation that runs where those of 64 bits do, under the same restrictions of DPP.
        const DOUBLE_RATE = 4096;
    }
}

impl Implicit {
    /// The registers of the set; lane masks are as wide as the wave.
    #[inline]
    pub fn regs(self, wave_size: u32) -> impl Iterator<Item = Reg> {
        let mask = (wave_size / 32) as u8;
        let mut left = self.bits();
        // Most sets are empty or have one member.
        std::iter::from_fn(move || {
            let lowest = left & left.wrapping_neg();
            left ^= lowest;
            Some(match Implicit::from_bits_retain(lowest) {
                Implicit::SCC => Reg::SCC,
                Implicit::VCC => Reg::scalar(scalar::VCC, mask),
                Implicit::EXEC => Reg::scalar(scalar::EXEC, mask),
                Implicit::M0 => Reg::M0,
                Implicit::FLAT_SCRATCH => Reg::scalar(scalar::FLAT_SCRATCH, 2),
                Implicit::MODE => Reg::scalar(scalar::MODE, 1),
                Implicit::XNACK_MASK => Reg::scalar(scalar::XNACK_MASK, 2),
                _ => return None,
            })
        })
    }
}

/// The encoding family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The manuals' names.
pub enum Encoding {
    Sop1,
    Sop2,
    Sopk,
    Sopc,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    Vop3,
    Vop3p,
    Vintrp,
    Ds,
    Flat,
    Global,
    Scratch,
    Mubuf,
    Mtbuf,
    Mimg,
    Exp,
    Vop1Dpp,
    Vop2Dpp,
    Vop1Sdwa,
    Vop2Sdwa,
    VopcSdwa,
    Vop1Dpp8,
    Vop2Dpp8,
    VopcDpp,
    VopcDpp8,
    Vop3Dpp,
    Vop3Dpp8,
    Vop3pDpp,
    Vop3pDpp8,
    Vopd,
    Vinterp,
    Ldsdir,
    Vimage,
    Vsample,
    Tensor,
}

/// How an instruction changes the flow of control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Branch {
    /// It does not.
    None,
    /// `s_branch`.
    Jump,
    /// `s_cbranch_*`, by its condition.
    Conditional(Condition),
    /// `s_call_b64`: direct call.
    Call,
    /// `s_swappc_b64`: indirect call.
    IndirectCall,
    /// `s_setpc_b64`, `s_rfe_*`: jump or return through a register.
    IndirectJump,
    /// `s_endpgm` and relatives.
    End,
    /// `s_cbranch_g_fork`, `s_cbranch_i_fork`, `s_cbranch_join`: control flow no current compiler emits.
    Obsolete,
    /// `s_trap`.
    Trap,
}

/// The condition of an `s_cbranch_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Condition {
    Scc0,
    Scc1,
    VccZ,
    VccNz,
    ExecZ,
    ExecNz,
    /// `s_cbranch_cdbg*`: debugger state.
    Debug,
}

/// The memory an instruction accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Memory {
    None,
    Scalar,
    Global,
    Flat,
    Scratch,
    Buffer,
    Image,
    Lds,
    Gds,
    Message,
}

/// Latency class, keys of the latency table (LLVM `SISchedule.td` classes under our own names).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Latency {
    Valu32,
    Valu64,
    ValuF64,
    Trans,
    Mfma,
    Salu,
    Smem,
    Lds,
    Vmem,
    Export,
    Branch,
    Barrier,
    Message,
    Wait,
}

impl Latency {
    /// All classes.
    pub const ALL: [Latency; 14] = [
        Latency::Valu32,
        Latency::Valu64,
        Latency::ValuF64,
        Latency::Trans,
        Latency::Mfma,
        Latency::Salu,
        Latency::Smem,
        Latency::Lds,
        Latency::Vmem,
        Latency::Export,
        Latency::Branch,
        Latency::Barrier,
        Latency::Message,
        Latency::Wait,
    ];

    /// The name in `isa-tables/latency.yaml`: `valu_f64`.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["valu32", "valu64", "valu_f64", "trans", "mfma", "salu", "smem", "lds", "vmem", "export", "branch", "barrier", "message", "wait"]
            [self as usize]
    }
}

/// One operand of a [`Variant`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperandSpec {
    /// Its part.
    pub role: Role,
    /// Read, written or both.
    pub access: Access,
    /// How its bits are understood.
    pub ty: ValueType,
    /// Width in 32-bit registers (fields may change it: see [`super::Inst::operands`]).
    pub dwords: u8,
    /// What the field's number means.
    pub kind: &'static Kind,
    /// Where the field is.
    pub bits: Bits,
    /// What decoding need not work out from the kind.
    pub plain: Plain,
}

/// One position of the printed operand list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The next operand.
    Operand,
    /// The word `vcc`, which has no field.
    Vcc,
    /// The word `off`: an address part that the form lacks.
    Off,
    /// The word `m0`.
    M0,
    /// The mnemonic of the second operation of a pair.
    Second,
    /// The literal of the second operation of a pair, which the first one has, too.
    LiteralX,
    /// The byte offset, where it is not the last operand.
    Offset,
}

/// One row of the tables: an operation in one encoding form, on the targets that have it.
///
/// Rows are compared by identity: there is one of each.
#[derive(Debug)]
pub struct Variant {
    /// Base name without encoding suffix: `v_add_f32`.
    pub name: &'static str,
    /// The mnemonic as LLVM prints it: `v_add_f32_e32`.
    pub mnemonic: &'static str,
    /// Encoding family.
    pub encoding: Encoding,
    /// The value of the opcode field.
    pub opcode: u16,
    /// Operands in the assembler's order.
    pub operands: &'static [OperandSpec],
    /// Registers read without being named.
    pub implicit_reads: Implicit,
    /// Registers written without being named.
    pub implicit_writes: Implicit,
    /// Control flow.
    pub branch: Branch,
    /// Memory.
    pub memory: Memory,
    /// Wait counters incremented.
    pub counters: Counters,
    /// Latency class.
    pub latency: Latency,
    /// Of a pair of operations (VOPD): the registers that each half reads without naming them. See [`super::Inst::halves`].
    pub halves: Option<[Implicit; 2]>,
    /// Properties.
    pub flags: Flags,
    /// What an image instruction's form says about the number of its registers.
    pub image: Option<Image>,
    /// Bytes of memory accessed per lane (0: none or not fixed).
    pub memory_bytes: u8,
    /// The bits that are fixed for this form, in the order of the code's bits (bit 32 is the lowest of the second dword).
    pub mask: u128,
    /// The values of the fixed bits.
    pub matches: u128,
    /// Where the modifiers are.
    pub layout: &'static Layout,
    /// The operand positions as they are printed.
    pub written: &'static [Written],
    /// The modifiers that are printed after the operands, in order.
    pub printed: &'static [Modifier],
    /// The instruction sets that have the row: bit n is that of [`super::Target::instruction_table`] n.
    pub targets: u32,
    /// The wave size that it needs; 0: any.
    pub wave_size: u8,
    /// What follows from all this for decoding.
    pub plan: Plan,
    /// What follows from the name.
    pub traits: Traits,
}

/// The layout of an instruction without fields.
static NO_FIELDS: Layout = Layout { bytes: 4, signed_offset: false, modifiers: Vec::new(), modifier_bits: 0, has_parts: false };

impl Variant {
    /// A row that says nothing, for tests that describe instructions instead of decoding them.
    pub const BLANK: Variant = Variant {
        name: "",
        mnemonic: "",
        encoding: Encoding::Sopp,
        opcode: 0,
        operands: &[],
        implicit_reads: Implicit::empty(),
        implicit_writes: Implicit::empty(),
        halves: None,
        branch: Branch::None,
        memory: Memory::None,
        counters: Counters::empty(),
        latency: Latency::Salu,
        flags: Flags::empty(),
        image: None,
        memory_bytes: 0,
        mask: 0,
        matches: 0,
        layout: &NO_FIELDS,
        written: &[],
        printed: &[],
        targets: 0,
        wave_size: 0,
        plan: Plan::BLANK,
        traits: Traits::empty(),
    };

    /// Whether `target` has the row.
    #[must_use]
    pub fn is_of(&self, target: super::Target) -> bool {
        self.targets & 1 << target.instruction_table() != 0 && (self.wave_size == 0 || u32::from(self.wave_size) == target.wave_size())
    }

    /// The width of the offset field, where the offset is signed.
    #[inline]
    pub(crate) fn signed_offset(&self, bits: &Bits) -> Option<u32> {
        self.layout.signed_offset.then(|| bits.width())
    }
}

impl PartialEq for Variant {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
