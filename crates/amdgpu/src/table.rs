//! The compiled instruction tables: one [`Variant`] for each encoding form of an operation.

use super::decode::Plan;
use super::image::Image;
use super::inst::{Reg, scalar};
use super::layout::{Bits, Kind, Layout, Plain};
use super::opcode::{Opcode, OpcodeFlags};
use super::vocabulary::{Access, Counters, Encoding, Flags, Implicit, Latency, Memory, Modifier, Role, ValueType};

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
    /// [`Opcode::name`]; of a pair of operations the names of both.
    pub name: &'static str,
    /// The mnemonic as LLVM prints it: `v_add_f32_e32`.
    pub mnemonic: &'static str,
    /// Encoding family.
    pub encoding: Encoding,
    /// The operation; of a pair of operations (VOPD) the first one.
    pub opcode: Opcode,
    /// The second operation of a pair.
    pub second: Option<Opcode>,
    /// What is known of the operation, or of either one of a pair.
    pub opcode_flags: OpcodeFlags,
    /// The value of the opcode field.
    pub op: u16,
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
    /// Of a pair of operations (VOPD): the registers that each half reads without naming them. See
    /// [`super::Inst::halves`].
    pub halves: Option<[Implicit; 2]>,
    /// Properties.
    pub flags: Flags,
    /// What an image instruction's form says about the number of its registers.
    pub image: Option<Image>,
    /// Bytes of memory accessed per lane (0: none or not fixed).
    pub memory_bytes: u8,
    /// The bits that are fixed for this form, in the order of the code's bits (bit 32 is the lowest of the second
    /// dword).
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
}

/// The layout of an instruction without fields.
static NO_FIELDS: Layout =
    Layout { bytes: 4, signed_offset: false, modifiers: Vec::new(), modifier_bits: 0, has_parts: false };

impl Variant {
    /// A row that says nothing, for tests that describe instructions instead of decoding them.
    pub const BLANK: Variant = Variant {
        name: "",
        mnemonic: "",
        encoding: Encoding::Sopp,
        opcode: Opcode::INVALID,
        second: None,
        op: 0,
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
        opcode_flags: OpcodeFlags::empty(),
    };

    /// Whether `target` has the row.
    #[must_use]
    pub fn is_of(&self, target: super::Target) -> bool {
        self.targets & 1 << target.instruction_table() != 0
            && (self.wave_size == 0 || u32::from(self.wave_size) == target.wave_size())
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
