//! How an instruction uses and makes bits that are undefined.

use smallvec::SmallVec;

use wavetap_amdgpu::{Access, Branch, Condition, Counters, Inst, Opcode, OpcodeFlags, RegFile, Role, Variant, scalar};

use super::Class;
use super::registers::{ACCUM_SLOTS, slot};

/// Registers that follow each other, by slot: the first, and how many.
pub(crate) type SlotRun = (u16, u16);

/// What an operand is used for that must be defined.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredUse {
    Address,
    Lane,
    Target,
    Register,
}

/// How the lanes of an instruction depend on each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Across {
    /// A lane's results are of its own sources, and all of them are written.
    No,
    /// The same, but parts of registers are written.
    Part,
    /// Of any lane's, or only some lanes are written.
    Yes,
    /// All lanes are read and written whatever EXEC is.
    Matrix,
}

/// What an instruction does to undefined bits; found once.
pub(crate) struct DefinednessRule {
    pub kind: RuleKind,
    pub across: Across,
    pub vectors: SmallVec<[SlotRun; 4]>,
    pub scalars: SmallVec<[SlotRun; 4]>,
    pub writes: SmallVec<[SlotRun; 2]>,
    pub scalar_writes: SmallVec<[SlotRun; 2]>,
    pub uses: SmallVec<[(SlotRun, RequiredUse); 2]>,
    pub reads_scc: bool,
    pub writes_scc: bool,
    pub writes_exec: bool,
    pub relative: Option<Relative>,
    pub moves: Option<BitMove>,
}

/// Which rule an instruction has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleKind {
    Nothing,
    /// It reads none that could be undefined, and all that it writes is defined.
    Defines,
    Compute,
    /// Addresses must be defined; `strict::undefined_memory` has the rules of the data.
    Memory,
    BranchScc,
    BranchVcc,
}

pub(crate) fn registers(spans: &[SlotRun]) -> impl Iterator<Item = usize> + '_ {
    spans.iter().flat_map(|&(first, count)| usize::from(first)..usize::from(first + count))
}

impl RequiredUse {
    pub(crate) fn text(self) -> &'static str {
        match self {
            RequiredUse::Address => "an address",
            RequiredUse::Lane => "the number of a lane",
            RequiredUse::Target => "the target of a branch",
            RequiredUse::Register => "the number of a register",
        }
    }
}

impl DefinednessRule {
    pub(crate) fn new(inst: &Inst, class: Class, traits: &DefinednessTraits) -> DefinednessRule {
        let kind = traits.kind;
        let modifiers = &inst.modifiers;
        let moved = modifiers.dpp.is_some() || modifiers.dpp8.is_some() || class == Class::Lds;
        let part = modifiers.sdwa.is_some_and(|sdwa| sdwa.dst_sel != 6)
            || modifiers.op_sel & 8 != 0
            || inst
                .operands
                .iter()
                .any(|operand| operand.access != Access::Read && operand.half != wavetap_amdgpu::Half::Whole)
            || traits.parts;
        let across = match () {
            () if traits.matrix => Across::Matrix,
            () if moved || traits.lanes => Across::Yes,
            () if part => Across::Part,
            () => Across::No,
        };
        let mut rule = DefinednessRule {
            kind,
            across,
            vectors: SmallVec::new(),
            scalars: SmallVec::new(),
            writes: SmallVec::new(),
            scalar_writes: SmallVec::new(),
            uses: SmallVec::new(),
            reads_scc: false,
            writes_scc: false,
            writes_exec: false,
            relative: traits.relative,
            moves: BitMove::of(inst, traits.moves),
        };
        rule.registers(inst, class, traits.selects_lane);
        if kind == RuleKind::Nothing && (rule.writes_scc || !rule.scalar_writes.is_empty()) {
            rule.kind = RuleKind::Defines;
        }
        rule
    }

    /// Whether it writes EXEC.
    pub(crate) fn writes_exec(&self) -> bool {
        self.writes_exec
    }

    /// The same with the registers that an instruction accesses where it names others, by what is in M0.
    pub(crate) fn moved(&self, relative: Relative, inst: &Inst, m0: u32) -> DefinednessRule {
        let mut rule = DefinednessRule {
            vectors: SmallVec::new(),
            scalars: SmallVec::new(),
            writes: SmallVec::new(),
            scalar_writes: SmallVec::new(),
            uses: SmallVec::new(),
            relative: None,
            ..*self
        };
        let [source_by, destination_by] = relative.offsets(m0);
        for operand in &inst.operands {
            let Some(reg) = operand.reg() else { continue };
            let (is_source, by) = match operand.role {
                Role::Src0 => (true, source_by),
                Role::Vdst | Role::Sdst => (false, destination_by),
                _ => continue,
            };
            let end = if reg.file == RegFile::Scalar { scalar::EXEC } else { ACCUM_SLOTS as u16 };
            let first = u32::from(reg.first).saturating_add(by);
            if first.saturating_add(reg.dwords.into()) > end.into() {
                // EXEC is always defined; where there is no such register the instruction itself stops.
                continue;
            }
            let (reads, writes) = match reg.file {
                RegFile::Scalar => (&mut rule.scalars, &mut rule.scalar_writes),
                _ => (&mut rule.vectors, &mut rule.writes),
            };
            let span = (first as u16, u16::from(reg.dwords));
            if is_source || relative.swaps {
                reads.push(span);
            }
            if !is_source || relative.swaps {
                writes.push(span);
            }
        }
        rule
    }

    fn registers(&mut self, inst: &Inst, class: Class, selects_lane: bool) {
        for operand in &inst.operands {
            let Some(reg) = operand.reg() else { continue };
            if operand.access == Access::Write || (reg.file == RegFile::Scalar && reg.first >= 128) {
                continue;
            }
            let span = (slot(reg.file, reg.first) as u16, u16::from(operand.dwords.max(1)));
            let lane = matches!(operand.role, Role::Src1) && selects_lane;
            let used = match operand.role {
                _ if self.kind == RuleKind::Memory && class == Class::Branch => Some(RequiredUse::Target),
                // Where it is in LDS.
                Role::Vdata | Role::Vdst if inst.variant.counters.contains(Counters::ASYNC) => {
                    Some(RequiredUse::Address)
                }
                Role::Vdata | Role::Data0 | Role::Data1 | Role::Sdata | Role::Vdst | Role::Old => None,
                // How many registers it has depends on the image: the instruction itself looks.
                _ if operand.role.is_address() && inst.variant.image.is_some() => None,
                _ if self.kind == RuleKind::Memory => Some(RequiredUse::Address),
                _ if lane => Some(RequiredUse::Lane),
                _ => None,
            };
            if let Some(used) = used {
                self.uses.push((span, used));
            }
        }
        for reg in inst.reads() {
            match (reg.file, reg.first) {
                (RegFile::Scalar, scalar::SCC) => self.reads_scc = true,
                (RegFile::Scalar, scalar::EXEC | 127..) => {}
                (RegFile::Scalar, first) => self.scalars.push((first, reg.dwords.into())),
                (file, first) => self.vectors.push((slot(file, first) as u16, reg.dwords.into())),
            }
        }
        for reg in inst.writes() {
            match (reg.file, reg.first) {
                (RegFile::Scalar, scalar::SCC) => self.writes_scc = true,
                (RegFile::Scalar, 128..) => {}
                (RegFile::Scalar, first) => {
                    self.writes_exec |= first + u16::from(reg.dwords) > scalar::EXEC;
                    self.scalar_writes.push((first, reg.dwords.into()));
                }
                (file, first) => self.writes.push((slot(file, first) as u16, reg.dwords.into())),
            }
        }
    }
}

/// An instruction that does nothing but move bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BitMove {
    /// A lane of a vector register to a scalar register.
    FromLane,
    /// A scalar to a lane of a vector register.
    ToLane,
    /// A register of all active lanes.
    Lanes,
}

/// Which of the register numbers that an instruction names M0 is added to.
#[derive(Clone, Copy)]
pub(crate) struct Relative {
    pub source: bool,
    pub destination: bool,
    /// Ten bits for the source and ten from bit 16 on for the destination; otherwise the whole of it for both.
    pub parts: bool,
    /// Both registers are read and written.
    pub swaps: bool,
}

/// What an operation does with undefined bits.
#[derive(Clone, Copy)]
pub(crate) struct DefinednessTraits {
    pub kind: RuleKind,
    /// It moves values between lanes.
    pub lanes: bool,
    /// It may write parts of registers.
    pub parts: bool,
    pub matrix: bool,
    pub selects_lane: bool,
    pub relative: Option<Relative>,
    /// All that it does is to move bits.
    pub moves: Option<BitMove>,
}

impl Relative {
    pub(crate) fn of(opcode: Opcode) -> Option<Relative> {
        let (source, destination, parts, swaps) = match opcode {
            Opcode::S_MOVRELS_B32 | Opcode::S_MOVRELS_B64 | Opcode::V_MOVRELS_B32 => (true, false, false, false),
            Opcode::S_MOVRELD_B32 | Opcode::S_MOVRELD_B64 | Opcode::V_MOVRELD_B32 => (false, true, false, false),
            Opcode::V_MOVRELSD_B32 => (true, true, false, false),
            Opcode::S_MOVRELSD_2_B32 | Opcode::V_MOVRELSD_2_B32 => (true, true, true, false),
            Opcode::V_SWAPREL_B32 => (true, true, true, true),
            _ => return None,
        };
        Some(Relative { source, destination, parts, swaps })
    }

    /// The bits of M0 that count.
    pub(crate) fn bits(self) -> u32 {
        if self.parts { 0x03ff_03ff } else { u32::MAX }
    }

    /// What is added to the numbers of the source and of the destination.
    pub(crate) fn offsets(self, m0: u32) -> [u32; 2] {
        let [source, destination] = if self.parts { [m0 & 0x3ff, m0 >> 16 & 0x3ff] } else { [m0, m0] };
        [if self.source { source } else { 0 }, if self.destination { destination } else { 0 }]
    }
}

impl DefinednessTraits {
    pub(crate) fn of(variant: &Variant, class: Class) -> DefinednessTraits {
        let opcode = variant.opcode;
        // Of a pair of operations: either one's.
        let is = |flags: OpcodeFlags| variant.opcode_flags.intersects(flags);
        let kind = match (class, variant.branch) {
            _ if is(OpcodeFlags::HARDWARE_REGISTER | OpcodeFlags::SET_VGPR_MSB | OpcodeFlags::BARRIER) => {
                RuleKind::Nothing
            }
            // The exchanges between lanes are computations.
            (Class::Lds, _) if is(OpcodeFlags::CROSSBAR) => RuleKind::Compute,
            (Class::Smem | Class::Vmem | Class::Lds, _) => RuleKind::Memory,
            (Class::Branch, Branch::Conditional(Condition::Scc0 | Condition::Scc1)) => RuleKind::BranchScc,
            (Class::Branch, Branch::Conditional(Condition::VccZ | Condition::VccNz)) => RuleKind::BranchVcc,
            (Class::Branch, _) => RuleKind::Memory,
            (Class::Valu | Class::Salu, _) => RuleKind::Compute,
            (Class::Wait | Class::Other, _) => RuleKind::Nothing,
        };
        DefinednessTraits {
            kind,
            lanes: is(OpcodeFlags::MOVES_LANES),
            parts: is(OpcodeFlags::MAY_WRITE_PART),
            matrix: is(OpcodeFlags::MATRIX),
            selects_lane: matches!(opcode, Opcode::V_READLANE_B32 | Opcode::V_WRITELANE_B32),
            relative: Relative::of(opcode),
            moves: BitMove::of_opcode(opcode),
        }
    }
}

impl BitMove {
    /// What an operation moves, if it has no modifiers.
    pub(crate) fn of_opcode(opcode: Opcode) -> Option<BitMove> {
        match opcode {
            Opcode::V_READLANE_B32 => Some(BitMove::FromLane),
            Opcode::V_WRITELANE_B32 => Some(BitMove::ToLane),
            Opcode::V_MOV_B32
            | Opcode::V_ACCVGPR_READ_B32
            | Opcode::V_ACCVGPR_WRITE_B32
            | Opcode::V_ACCVGPR_MOV_B32 => Some(BitMove::Lanes),
            _ => None,
        }
    }

    /// What an instruction moves, if it does nothing else; `of_opcode` is what [`BitMove::of_opcode`] says.
    pub(crate) fn of(inst: &Inst, of_opcode: Option<BitMove>) -> Option<BitMove> {
        let modifiers = &inst.modifiers;
        let unmodified = modifiers.dpp.is_none()
            && modifiers.dpp8.is_none()
            && modifiers.sdwa.is_none()
            && (modifiers.neg, modifiers.abs, modifiers.omod, modifiers.op_sel, modifiers.clamp) == (0, 0, 0, 0, false);
        of_opcode.filter(|_| unmodified)
    }
}
