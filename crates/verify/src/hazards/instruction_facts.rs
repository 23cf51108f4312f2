//! What an instruction is, as far as the rules about wait states depend on it.

use super::classes::{
    concerns_matrices, is_dpp, is_lds, is_matrix, is_vector_memory, swaps_rows, wide_data, writes_part,
};
use wavetap_amdgpu::{Encoding, Flags, Implicit, Inst, Memory, Opcode, OpcodeFlags, Reg, RegFile, Value, scalar};
use wavetap_analysis::dataflow::RegSet;

bitflags::bitflags! {
    /// Properties of an instruction, and of the target that it is for. A property may be there though it does not hold,
    /// where finding out costs more than asking a rule; it is never missing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub(crate) struct Facts: u64 {
        /// Executes on the vector ALU.
        const VALU = 1;
        /// Executes on the scalar ALU.
        const SALU = 1 << 1;
        /// Vector memory.
        const VECTOR_MEMORY = 1 << 2;
        /// Takes vector registers elsewhere: memory, LDS, export.
        const MEMORY_SIDE = 1 << 3;
        /// Uses vector registers: on the vector ALU, or to take them elsewhere.
        const USES = 1 << 4;
        /// Writes `sN` or VCC.
        const WRITES_SGPR = 1 << 5;
        const WRITES_VCC = 1 << 6;
        const WRITES_EXEC = 1 << 7;
        const WRITES_M0 = 1 << 8;
        /// Writes a vector or AGPR.
        const WRITES_VECTOR = 1 << 9;
        /// Reads a scalar register other than EXEC.
        const READS_SGPR = 1 << 10;
        /// Reads a vector or AGPR.
        const READS_VECTOR = 1 << 11;
        const DPP = 1 << 12;
        /// `v_div_fmas`.
        const DIV_FMAS = 1 << 13;
        /// Its lane may be chosen by a scalar register.
        const SELECTS_LANE = 1 << 14;
        /// `v_readlane`, `v_writelane`, `v_readfirstlane`.
        const LANE = 1 << 15;
        /// Sends a message, or goes to global data share.
        const MESSAGE = 1 << 16;
        /// M0 may be an index of it.
        const INDEXES = 1 << 17;
        /// Stores wide data that it takes late.
        const WIDE_STORE = 1 << 18;
        const TRANS = 1 << 19;
        /// Writes a part of a register.
        const PARTIAL = 1 << 20;
        /// Names VCCZ or EXECZ.
        const NAMES_ZERO_FLAG = 1 << 21;
        /// Names EXEC.
        const NAMES_EXEC = 1 << 22;
        /// Accesses a hardware register.
        const HARDWARE_REGISTER = 1 << 23;
        /// Returns from the trap handler.
        const TRAP_RETURN = 1 << 24;
        const SWAPS_ROWS = 1 << 25;
        /// A matrix instruction.
        const MATRIX = 1 << 26;
        /// A matrix instruction, or to or from AGPRs.
        const MATRIX_SIDE = 1 << 27;
        /// To or from AGPRs.
        const ACCUM_MOVE = 1 << 28;
        const DOT = 1 << 29;
        /// A fused multiply-add in double precision.
        const FMA_F64 = 1 << 30;
        /// The target forwards fewer results in hardware.
        const STRICT = 1 << 31;
        /// The target is of gfx950.
        const GFX950 = 1 << 32;
        /// The target is of gfx908.
        const GFX908 = 1 << 33;
        /// The target has a rule more about M0.
        const INDEXED_BY_M0 = 1 << 34;
    }
}

/// Whether it is a scalar instruction that accesses no memory.
pub(super) fn is_scalar(inst: &Inst) -> bool {
    matches!(inst.variant.encoding, Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc | Encoding::Sopp)
}

impl Facts {
    pub(super) fn of(inst: &Inst) -> Facts {
        let variant = inst.variant;
        let mut facts = Facts::of_variant(inst);
        for operand in &inst.operands {
            let Value::Reg(reg) = operand.value else { continue };
            facts |= Facts::of_named(reg);
            if operand.access.reads() {
                facts |= Facts::of_read(reg);
            }
            if operand.access.writes() {
                facts |= Facts::of_written(reg);
            }
        }
        let not_sgprs = Implicit::SCC | Implicit::EXEC | Implicit::MODE;
        facts.add_if(Facts::READS_SGPR, !(variant.implicit_reads - not_sgprs).is_empty() || inst.modifiers.gds);
        let writes = variant.implicit_writes;
        facts.add_if(
            Facts::WRITES_SGPR,
            writes.intersects(Implicit::VCC | Implicit::FLAT_SCRATCH | Implicit::XNACK_MASK),
        );
        facts.add_if(Facts::WRITES_VCC, writes.contains(Implicit::VCC));
        facts.add_if(Facts::WRITES_EXEC, writes.contains(Implicit::EXEC));
        facts.add_if(Facts::WRITES_M0, writes.contains(Implicit::M0));
        facts
    }

    fn add_if(&mut self, facts: Facts, met: bool) {
        if met {
            *self |= facts;
        }
    }

    /// What its name, its flags and its modifiers say.
    fn of_variant(inst: &Inst) -> Facts {
        let variant = inst.variant;
        let mut facts = Facts::empty();
        let (flags, opcode_flags) = (variant.flags, variant.opcode_flags);
        facts.add_if(Facts::VALU | Facts::USES, flags.contains(Flags::VALU));
        facts.add_if(Facts::SALU, flags.contains(Flags::SALU));
        facts.add_if(Facts::MESSAGE, variant.memory == Memory::Message || inst.modifiers.gds);
        facts.add_if(Facts::HARDWARE_REGISTER, opcode_flags.contains(OpcodeFlags::HARDWARE_REGISTER));
        facts.add_if(Facts::DPP, is_dpp(inst));
        if is_vector_memory(inst) {
            facts |= Facts::VECTOR_MEMORY | Facts::MEMORY_SIDE | Facts::USES;
            facts.add_if(Facts::WIDE_STORE, wide_data(inst).is_some());
        } else if is_lds(inst) || variant.encoding == Encoding::Exp {
            facts |= Facts::MEMORY_SIDE | Facts::USES;
        }
        if !flags.contains(Flags::VALU) && (is_scalar(inst) || variant.encoding == Encoding::Smem) {
            facts.add_if(Facts::MESSAGE, inst.opcode() == Opcode::S_TTRACEDATA);
            facts.add_if(Facts::TRAP_RETURN, opcode_flags.contains(OpcodeFlags::TRAP_RETURN));
            facts.add_if(Facts::INDEXES, opcode_flags.contains(OpcodeFlags::SCALAR_RELATIVE) || inst.modifiers.lds);
            return facts;
        }
        // LDS and memory with M0 are among these; too many do no harm here.
        if variant.memory != Memory::None
            || variant.encoding == Encoding::Exp
            || opcode_flags.contains(OpcodeFlags::INTERP)
        {
            facts |= Facts::INDEXES;
        }
        facts.add_if(Facts::TRANS, flags.contains(Flags::TRANS));
        facts.add_if(Facts::PARTIAL, writes_part(inst));
        facts.add_if(Facts::DIV_FMAS, opcode_flags.contains(OpcodeFlags::DIV_FMAS));
        facts.add_if(Facts::SWAPS_ROWS, swaps_rows(inst));
        match inst.opcode() {
            Opcode::V_READLANE_B32 | Opcode::V_WRITELANE_B32 => facts |= Facts::SELECTS_LANE | Facts::LANE,
            Opcode::V_READFIRSTLANE_B32 => facts |= Facts::LANE,
            Opcode::V_FMA_F64 | Opcode::V_FMAC_F64 => facts |= Facts::FMA_F64,
            _ => {}
        }
        if concerns_matrices(inst) {
            facts.add_if(Facts::MATRIX | Facts::MATRIX_SIDE, is_matrix(inst));
            facts.add_if(Facts::ACCUM_MOVE | Facts::MATRIX_SIDE, opcode_flags.contains(OpcodeFlags::ACCUM_MOVE));
            facts.add_if(Facts::DOT, opcode_flags.contains(OpcodeFlags::DOT));
        }
        facts
    }

    fn of_named(reg: Reg) -> Facts {
        let mut facts = Facts::empty();
        if reg.file == RegFile::Scalar {
            facts.add_if(Facts::NAMES_ZERO_FLAG, matches!(reg.first, scalar::VCCZ | scalar::EXECZ));
            facts.add_if(Facts::NAMES_EXEC, reg.overlaps(Reg::EXEC));
        }
        facts
    }

    fn of_read(reg: Reg) -> Facts {
        match reg.file {
            RegFile::Scalar if matches!(reg.first, scalar::EXEC | scalar::EXECZ) => Facts::empty(),
            RegFile::Scalar => Facts::READS_SGPR,
            RegFile::Vector | RegFile::Accum => Facts::READS_VECTOR,
        }
    }

    fn of_written(reg: Reg) -> Facts {
        if reg.file != RegFile::Scalar {
            return Facts::WRITES_VECTOR;
        }
        let mut facts = Facts::empty();
        facts.add_if(Facts::WRITES_SGPR, reg.first < scalar::VCC + 2);
        let positions = RegSet::positions(reg);
        let overlaps = |first: u16, count: usize| {
            positions.start < usize::from(first) + count && usize::from(first) < positions.end
        };
        facts.add_if(Facts::WRITES_VCC, overlaps(scalar::VCC, 2));
        facts.add_if(Facts::WRITES_EXEC, overlaps(scalar::EXEC, 2));
        facts.add_if(Facts::WRITES_M0, overlaps(scalar::M0, 1));
        facts
    }
}
