//! What an instruction is for the hazards that are not counted in issue slots.

use smallvec::SmallVec;

use wavetap_amdgpu::{
    self, Access, AluWait, Branch, Counter, Flags, Half, Inst, Opcode, OpcodeFlags, Reg, RegFile, Role, Value, Variant,
    WaitCount, scalar,
};

use super::halves::{self, HalfRun};
use super::registers::register_name;

/// A set of scalar registers by code.
#[derive(Clone, Copy, Default)]
pub(crate) struct ScalarSet(pub u128);

/// What the name of an instruction says of these hazards; found once for each of them.
#[derive(Clone, Copy)]
pub(crate) struct EventOpcodeInfo {
    pub is_nop: bool,
    pub is_vector_nop: bool,
    /// Wait instructions other than `s_nop`, and those that only wait.
    pub waits: bool,
    pub is_waitcnt: bool,
    pub waits_for_stores: bool,
    pub is_version: bool,
    pub sets_denorm_mode: bool,
    /// An atomic on floats, if it is one of vector memory.
    pub float_atomic: bool,
    pub compares: bool,
    pub permutes: bool,
    pub sends: bool,
    /// It reads a mask of lanes: VCC, or what it names instead, unless it is a division's.
    takes_mask: bool,
    divides: bool,
    pub is_matrix: bool,
    pub is_sparse: bool,
    /// A matrix instruction with its scales before it.
    is_scaled: bool,
}

/// What an instruction is for these hazards; found once.
pub(crate) struct EventFacts {
    pub names: EventOpcodeInfo,
    /// Scalar registers: all that it reads, all that it writes, those of them that are named, and the mask of lanes
    /// among those read.
    pub reads: ScalarSet,
    pub writes: ScalarSet,
    pub named_writes: ScalarSet,
    pub mask: ScalarSet,
    /// The vector registers that it names as sources, and all that it writes: first ones and how many.
    pub sources: SmallVec<[(u16, u16); 4]>,
    pub results: SmallVec<[(u16, u16); 2]>,
    /// The same by half.
    pub sources_by_half: SmallVec<[HalfRun; 4]>,
    pub results_by_half: SmallVec<[HalfRun; 4]>,
    /// It waits until a field of the dependency counters is zero.
    pub waits_for_scalar: bool,
    pub waits_for_vmem_reads: bool,
    pub waits_for_vector: bool,
    /// All that it waits for of these counters.
    pub alu_wait: Option<AluWait>,
    /// It waits for all that scalar memory does, and for any counter.
    pub waits_for_smem: bool,
    pub waits_for_all_of_one: bool,
    pub has_literal: bool,
    /// It branches, to somewhere or if.
    pub branches: bool,
    pub bad_offset: bool,
    pub leaves_function: bool,
}

/// A field of `s_waitcnt_depctr`.
pub(crate) enum Field {
    SaSdst,
    VmVsrc,
    VaVdst,
}

/// Whether an instruction waits until a field of the dependency counters is zero.
pub(crate) fn waits_for(inst: &Inst, field: Field) -> bool {
    let bits = inst.operand(Role::DepCtr).map(|operand| operand.value);
    let Some(Value::Imm(bits)) = bits else { return false };
    let field = match field {
        Field::SaSdst => bits & 1,
        Field::VmVsrc => bits >> 2 & 7,
        Field::VaVdst => bits >> 12 & 15,
    };
    field == 0
}

impl ScalarSet {
    pub(crate) fn of(reg: Reg) -> ScalarSet {
        if reg.file != RegFile::Scalar || reg.first >= 128 {
            return ScalarSet(0);
        }
        ScalarSet((((1_u128 << reg.dwords) - 1) << reg.first) & !(1 << scalar::NULL))
    }

    pub(crate) fn first(self) -> String {
        register_name(RegFile::Scalar, self.0.trailing_zeros() as u16)
    }
}

impl EventOpcodeInfo {
    pub(crate) fn of(variant: &Variant) -> EventOpcodeInfo {
        let opcode = variant.opcode;
        EventOpcodeInfo {
            is_nop: variant.opcode_flags.contains(OpcodeFlags::NOP),
            is_vector_nop: opcode == Opcode::V_NOP,
            waits: variant.flags.contains(Flags::WAIT),
            is_waitcnt: opcode == Opcode::S_WAITCNT,
            waits_for_stores: opcode == Opcode::S_WAITCNT_VSCNT,
            is_version: opcode == Opcode::S_VERSION,
            sets_denorm_mode: opcode == Opcode::S_DENORM_MODE,
            float_atomic: opcode.is_any(OpcodeFlags::FLOAT_ATOMIC),
            compares: opcode.is_any(OpcodeFlags::CMPX),
            permutes: opcode.is_any(OpcodeFlags::PERMLANE),
            sends: opcode == Opcode::S_SENDMSG,
            takes_mask: variant.opcode_flags.contains(OpcodeFlags::LANE_MASK),
            divides: opcode.is_any(OpcodeFlags::DIV_FMAS),
            is_matrix: opcode.is_any(OpcodeFlags::WMMA | OpcodeFlags::SWMMAC),
            is_sparse: opcode.is_any(OpcodeFlags::SWMMAC),
            is_scaled: matches!(
                opcode,
                Opcode::V_WMMA_SCALE_F32_16X16X128_F8F6F4
                    | Opcode::V_WMMA_SCALE_F32_32X16X128_F4
                    | Opcode::V_WMMA_SCALE16_F32_16X16X128_F8F6F4
                    | Opcode::V_WMMA_SCALE16_F32_32X16X128_F4
            ),
        }
    }
}

impl EventFacts {
    /// Whether it is a matrix instruction.
    pub(crate) fn is_matrix(&self) -> bool {
        self.names.is_matrix
    }

    /// How often a vector instruction is counted in va_vdst: once, or twice with scales (LLVM, SIInsertWaitcnts:
    /// "VOP3PX2").
    pub(crate) fn counted_writes(&self) -> u32 {
        1 + u32::from(self.names.is_scaled)
    }

    pub(crate) fn new(inst: &Inst, names: EventOpcodeInfo, waits: &WaitCount, data_half: Half) -> EventFacts {
        let explicit = |not: Access| {
            inst.operands.iter().filter(move |operand| operand.access != not).filter_map(|operand| operand.reg())
        };
        let codes = |all: ScalarSet, reg: Reg| ScalarSet(all.0 | ScalarSet::of(reg).0);
        let vector = |reg: &Reg| reg.file == RegFile::Vector;
        let run = |reg: Reg| (reg.first, u16::from(reg.dwords));
        let none = ScalarSet(0);
        let branches = matches!(inst.variant.branch, Branch::Jump | Branch::Conditional(_));
        let named_mask =
            inst.operand(Role::Src2).and_then(|operand| operand.reg()).filter(|reg| reg.file == RegFile::Scalar);
        EventFacts {
            names,
            reads: inst.reads().fold(none, codes),
            writes: inst.writes().fold(none, codes),
            named_writes: explicit(Access::Read).fold(none, codes),
            mask: if names.takes_mask {
                ScalarSet::of(named_mask.filter(|_| !names.divides).unwrap_or(Reg::VCC))
            } else {
                none
            },
            sources: explicit(Access::Write).filter(vector).map(run).collect(),
            results: inst.writes().filter(vector).map(run).collect(),
            sources_by_half: halves::named(inst, Access::Write, data_half),
            results_by_half: halves::named(inst, Access::Read, data_half),
            waits_for_scalar: waits_for(inst, Field::SaSdst),
            waits_for_vmem_reads: waits_for(inst, Field::VmVsrc),
            waits_for_vector: waits_for(inst, Field::VaVdst),
            alu_wait: wavetap_amdgpu::alu_wait(inst),
            waits_for_smem: waits.iter().any(|(counter, allowed)| counter == Counter::Lgkm && allowed == 0),
            waits_for_all_of_one: waits.iter().any(|(_, allowed)| allowed == 0),
            has_literal: inst.operands.iter().any(|operand| matches!(operand.value, Value::Literal(_))),
            branches,
            bad_offset: branches && inst.branch_displacement() == Some(BAD_OFFSET),
            leaves_function: matches!(inst.variant.branch, Branch::IndirectCall | Branch::IndirectJump | Branch::Call),
        }
    }
}

/// The branch offset that does not work.
pub(crate) const BAD_OFFSET: i64 = 0x3f;
