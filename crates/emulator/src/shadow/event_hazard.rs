//! Hazards of gfx10 and later that the hardware does not resolve. They are not counted in issue slots: an event makes a
//! register unsafe until another event, often however far away, makes it safe. Which of them a target has is a fact of
//! the target (`isa-tables/targets.yaml`, `hazards`).

use smallvec::SmallVec;

use wavetap_amdgpu::{
    self, Access, AluWait, Branch, Counter, Encoding, EventHazards as Rules, Flags, Half, Inst, Opcode, OpcodeFlags,
    Reg, RegFile, Role, Value, Variant, WaitCount, scalar,
};

use super::expert_scheduling::Dependences;
use crate::exec::scalar::control::SOFTWARE;
use crate::fault::FaultKind;
use crate::fault::stop::{Step, stop};
use crate::op::halves;
use crate::op::halves::Run;
use crate::op::registers::register_name;
use crate::op::registers::{ACCUM_SLOTS, slot};
use crate::op::{Class, Op};
use crate::state::core::Core;

/// A set of scalar registers by code.
#[derive(Clone, Copy, Default)]
struct Codes(u128);

impl Codes {
    fn of(reg: Reg) -> Codes {
        if reg.file != RegFile::Scalar || reg.first >= 128 {
            return Codes(0);
        }
        Codes((((1_u128 << reg.dwords) - 1) << reg.first) & !(1 << scalar::NULL))
    }

    fn first(self) -> String {
        register_name(RegFile::Scalar, self.0.trailing_zeros() as u16)
    }
}

/// A kind of memory instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lds,
    Vmem,
}

/// A write of a vector register.
#[derive(Clone, Copy, Default)]
struct Written {
    /// How many vector ALU instructions, and transcendentals, had been issued with it.
    valu: u32,
    trans: u32,
    /// How often the scalar ALU had written EXEC.
    exec: u32,
    by_trans: bool,
}

/// What a wave has done that makes registers unsafe.
#[derive(Default)]
pub(crate) struct Events {
    /// Read by vector memory or LDS instructions that may not have done so yet.
    vmem_reads: Codes,
    /// Read by scalar memory instructions that may not have done so yet.
    smem_reads: Codes,
    /// A scalar or memory instruction reads EXEC.
    exec_read: bool,
    /// EXEC was just written by a comparison.
    compared: bool,
    last: Option<Kind>,
    branched: bool,
    /// Slots since an atomic on floats.
    float_atomic: Option<u64>,
    /// Read as a lane mask, and then written by the scalar ALU.
    masks: Codes,
    stale: Codes,
    matrix: Option<Reg>,
    nop: bool,
    /// By vector register; empty until the first write.
    written: Vec<Written>,
    valu: u32,
    trans: u32,
    exec: u32,
    /// The number of the last transcendental among the vector ALU instructions (from 1), and how many there were when
    /// EXEC was last written.
    trans_at: u32,
    exec_at: u32,
    /// Writes by vector ALU instructions up to this one are done.
    done: u32,
    dependences: Dependences,
}

/// The most vector ALU instructions, and transcendentals, between a transcendental and a use of its result that is too
/// early.
const TRANS_VALUS: u32 = 5;
const TRANS_TRANS: u32 = 1;
/// The most between two writes on either side of a write of EXEC, and between the second and a use of both, for the use
/// to be too early.
const FORWARD_WRITES: u32 = 2;
const FORWARD_USE: u32 = 4;
/// The message that gives registers back.
const DEALLOC_VGPRS: i64 = 3;
/// The branch offset that does not work.
const BAD_OFFSET: i64 = 0x3f;

fn hazard(rule: &'static str, resource: impl Into<Box<str>>) -> Step {
    stop(FaultKind::Hazard { rule, required: 0, found: 0, resource: resource.into() })
}

/// What the name of an instruction says of these hazards; found once for each of them.
#[derive(Clone, Copy)]
pub(crate) struct EventNames {
    is_nop: bool,
    is_vector_nop: bool,
    /// Wait instructions other than `s_nop`, and those that only wait.
    waits: bool,
    is_waitcnt: bool,
    waits_for_stores: bool,
    is_version: bool,
    sets_denorm_mode: bool,
    /// An atomic on floats, if it is one of vector memory.
    float_atomic: bool,
    compares: bool,
    permutes: bool,
    sends: bool,
    /// It reads a mask of lanes: VCC, or what it names instead, unless it is a division's.
    takes_mask: bool,
    divides: bool,
    is_matrix: bool,
    is_sparse: bool,
    /// A matrix instruction with its scales before it.
    is_scaled: bool,
}

impl EventNames {
    pub(crate) fn of(variant: &Variant) -> EventNames {
        let opcode = variant.opcode;
        EventNames {
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

/// What an instruction is for these hazards; found once.
pub(crate) struct Facts {
    names: EventNames,
    /// Scalar registers: all that it reads, all that it writes, those of them that are named, and the mask of lanes
    /// among those read.
    reads: Codes,
    writes: Codes,
    named_writes: Codes,
    mask: Codes,
    /// The vector registers that it names as sources, and all that it writes: first ones and how many.
    pub(crate) sources: SmallVec<[(u16, u16); 4]>,
    pub(crate) results: SmallVec<[(u16, u16); 2]>,
    /// The same by half.
    pub(crate) sources_by_half: SmallVec<[Run; 4]>,
    pub(crate) results_by_half: SmallVec<[Run; 4]>,
    /// It waits until a field of the dependency counters is zero.
    waits_for_scalar: bool,
    waits_for_vmem_reads: bool,
    waits_for_vector: bool,
    /// All that it waits for of these counters.
    pub(crate) alu_wait: Option<AluWait>,
    /// It waits for all that scalar memory does, and for any counter.
    waits_for_smem: bool,
    waits_for_all_of_one: bool,
    has_literal: bool,
    /// It branches, to somewhere or if.
    branches: bool,
    bad_offset: bool,
    leaves_function: bool,
}

impl Facts {
    /// Whether it is a matrix instruction.
    pub(crate) fn is_matrix(&self) -> bool {
        self.names.is_matrix
    }

    /// How often a vector instruction is counted in va_vdst: once, or twice with scales (LLVM, SIInsertWaitcnts:
    /// "VOP3PX2").
    pub(crate) fn counted_writes(&self) -> u32 {
        1 + u32::from(self.names.is_scaled)
    }

    pub(crate) fn new(inst: &Inst, names: EventNames, waits: &WaitCount, data_half: Half) -> Facts {
        let explicit = |not: Access| {
            inst.operands.iter().filter(move |operand| operand.access != not).filter_map(|operand| operand.reg())
        };
        let codes = |all: Codes, reg: Reg| Codes(all.0 | Codes::of(reg).0);
        let vector = |reg: &Reg| reg.file == RegFile::Vector;
        let run = |reg: Reg| (reg.first, u16::from(reg.dwords));
        let none = Codes(0);
        let branches = matches!(inst.variant.branch, Branch::Jump | Branch::Conditional(_));
        let named_mask =
            inst.operand(Role::Src2).and_then(|operand| operand.reg()).filter(|reg| reg.file == RegFile::Scalar);
        Facts {
            names,
            reads: inst.reads().fold(none, codes),
            writes: inst.writes().fold(none, codes),
            named_writes: explicit(Access::Read).fold(none, codes),
            mask: if names.takes_mask {
                Codes::of(named_mask.filter(|_| !names.divides).unwrap_or(Reg::VCC))
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

/// A field of `s_waitcnt_depctr`.
enum Field {
    SaSdst,
    VmVsrc,
    VaVdst,
}

/// Whether an instruction waits until a field of the dependency counters is zero.
fn waits_for(inst: &Inst, field: Field) -> bool {
    let bits = inst.operand(Role::DepCtr).map(|operand| operand.value);
    let Some(Value::Imm(bits)) = bits else { return false };
    let field = match field {
        Field::SaSdst => bits & 1,
        Field::VmVsrc => bits >> 2 & 7,
        Field::VaVdst => bits >> 12 & 15,
    };
    field == 0
}

fn is_vmem(op: &Op) -> bool {
    op.class == Class::Vmem
}

fn explicit_writes(inst: &Inst) -> impl Iterator<Item = Reg> + '_ {
    inst.operands
        .iter()
        .filter(|operand| operand.access != wavetap_amdgpu::Access::Read)
        .filter_map(|operand| operand.reg())
}

/// Registers of which no mask is remembered.
const EXEMPT: Codes = Codes(1 << scalar::M0 | 3 << scalar::EXEC);

/// The rules of each part of [`check_facts`].
const SCALAR: Rules = Rules::VMEM_TO_SCALAR_WRITE.union(Rules::SMEM_TO_VECTOR_WRITE).union(Rules::VCMPX_EXEC_WAR);
const ORDER: Rules = Rules::LDS_BRANCH_VMEM
    .union(Rules::BRANCH_OFFSET)
    .union(Rules::FLAT_OFFSET)
    .union(Rules::FLOAT_ATOMIC_DENORM_MODE)
    .union(Rules::VCMPX_PERMLANE)
    .union(Rules::DEALLOC_VGPRS);

/// An instruction is about to be issued.
#[inline]
pub(crate) fn check(core: &mut Core, op: &Op) -> Step {
    match &op.facts {
        Some(facts) if !core.launch.event_hazards.is_empty() => check_facts(core, op, facts),
        _ => Ok(()),
    }
}

fn check_facts(core: &mut Core, op: &Op, facts: &Facts) -> Step {
    let rules = core.launch.event_hazards;
    let wave64 = core.launch.lanes == 64;
    let unchecked = core.wave.scheduling == SOFTWARE;
    let events = &mut core.wave.checks.events;
    if rules.intersects(SCALAR) {
        events.scalar(op, facts, rules)?;
    }
    if rules.intersects(ORDER) {
        events.order(op, facts, rules)?;
    }
    if rules.contains(Rules::VALU_MASK_WRITE) && wave64 {
        events.masks(op, facts)?;
    }
    if op.class == Class::Valu {
        events.vector(op, facts, rules, wave64)?;
    }
    if rules.contains(Rules::EXPERT_SCHEDULING) {
        events.dependences.issue(op, facts, core.launch.target, unchecked)?;
    }
    if is_vmem(op) || op.class == Class::Lds || op.inst.variant.encoding == Encoding::Exp || facts.waits_for_vector {
        events.done = events.valu;
    }
    if op.class == Class::Salu && op.unknown.writes_exec() {
        events.exec += 1;
        events.exec_at = events.valu;
    }
    events.nop = facts.names.is_nop;
    Ok(())
}

impl Events {
    /// Scalar registers that memory instructions, or EXEC that any others, have yet to read (gfx10.1).
    fn scalar(&mut self, op: &Op, facts: &Facts, rules: Rules) -> Step {
        let valu = op.class == Class::Valu;
        if rules.contains(Rules::VMEM_TO_SCALAR_WRITE) {
            if matches!(op.class, Class::Salu | Class::Smem) {
                let written = facts.named_writes.0;
                if self.vmem_reads.0 & written != 0 {
                    let rule =
                        "vector memory or LDS instruction reads a scalar register, then scalar instruction writes it";
                    return hazard(rule, Codes(self.vmem_reads.0 & written).first());
                }
            }
            if valu || (facts.names.is_waitcnt && op.imm == 0) || facts.waits_for_vmem_reads {
                self.vmem_reads = Codes(0);
            }
            if is_vmem(op) || op.class == Class::Lds {
                self.vmem_reads.0 |= facts.reads.0;
            }
        }
        if rules.contains(Rules::SMEM_TO_VECTOR_WRITE) {
            if valu {
                let written = facts.writes.0;
                if self.smem_reads.0 & written != 0 {
                    let rule = "scalar memory instruction reads a scalar register, then VALU writes it";
                    return hazard(rule, Codes(self.smem_reads.0 & written).first());
                }
            }
            let scalar = op.class == Class::Salu && !facts.names.waits && !facts.names.is_version;
            if scalar || facts.waits_for_smem {
                self.smem_reads = Codes(0);
            }
            if op.class == Class::Smem {
                self.smem_reads.0 |= facts.reads.0;
            }
        }
        if rules.contains(Rules::VCMPX_EXEC_WAR) {
            let exec = Codes::of(Reg::EXEC).0;
            let written = facts.writes.0;
            if valu && written & exec != 0 && self.exec_read {
                return hazard("EXEC is read by another than a VALU instruction, then VALU writes it", "exec");
            }
            if (valu && written != 0) || facts.waits_for_scalar {
                self.exec_read = false;
            }
            self.exec_read |= !valu && facts.reads.0 & exec != 0;
        }
        Ok(())
    }

    /// What must not follow what.
    fn order(&mut self, op: &Op, facts: &Facts, rules: Rules) -> Step {
        let inst = &op.inst;
        let valu = op.class == Class::Valu;
        let names = &facts.names;
        if rules.contains(Rules::LDS_BRANCH_VMEM) {
            let kind = match op.class {
                Class::Lds => Some(Kind::Lds),
                Class::Vmem if inst.variant.encoding != Encoding::Flat && !op.counters.is_empty() => Some(Kind::Vmem),
                _ => None,
            };
            if let Some(kind) = kind {
                if self.branched && self.last.is_some_and(|last| last != kind) {
                    return hazard(
                        "an LDS and a vector memory instruction with a branch between them and no wait for stores",
                        "memory",
                    );
                }
                self.last = Some(kind);
                self.branched = false;
            }
            self.branched |= facts.branches;
            if names.waits_for_stores && facts.waits_for_all_of_one {
                self.last = None;
            }
        }
        if rules.contains(Rules::BRANCH_OFFSET) && facts.bad_offset {
            return hazard("a branch over 63 dwords", "pc");
        }
        if rules.contains(Rules::FLAT_OFFSET) && inst.variant.encoding == Encoding::Flat && inst.modifiers.offset != 0 {
            return hazard("a flat access with an offset", "address");
        }
        if rules.contains(Rules::FLOAT_ATOMIC_DENORM_MODE) {
            if names.sets_denorm_mode && self.float_atomic.is_some_and(|slots| slots < 3) {
                return hazard("atomic on floats in memory, then s_denorm_mode fewer than three slots later", "mode");
            }
            self.float_atomic = match self.float_atomic {
                _ if is_vmem(op) && names.float_atomic => Some(0),
                _ if valu || names.waits => None,
                since => since.map(|slots| slots + u64::from(op.slots)),
            };
        }
        if rules.contains(Rules::VCMPX_PERMLANE) && valu {
            if self.compared && names.permutes {
                return hazard(
                    "VALU comparison writes EXEC, then v_permlane with no other VALU instruction between",
                    "exec",
                );
            }
            if !names.is_vector_nop {
                self.compared = names.compares;
            }
        }
        if rules.contains(Rules::DEALLOC_VGPRS) && names.sends && op.imm & 0xff == DEALLOC_VGPRS && !self.nop {
            return hazard("the message that gives vector registers back, with no s_nop before it", "message");
        }
        Ok(())
    }

    /// Masks of lanes in waves of 64 (gfx11): one that a vector instruction has read and the scalar ALU writes is read
    /// too early.
    fn masks(&mut self, op: &Op, facts: &Facts) -> Step {
        if facts.leaves_function {
            // Compilers look at one function.
            self.masks = Codes(0);
        }
        if facts.waits_for_scalar {
            self.stale = Codes(0);
            self.masks = Codes(0);
        }
        if matches!(op.class, Class::Valu | Class::Salu) {
            let read = facts.reads.0;
            if self.stale.0 & read != 0 {
                let rule = "VALU reads a mask of lanes, SALU writes it, and it is read with no wait for SALU";
                return hazard(rule, Codes(self.stale.0 & read).first());
            }
        }
        if op.class == Class::Valu {
            // Compilers before LLVM 20 take any use of a scalar or of a literal, and a wait, for the end of it: no more
            // is asked for.
            let scalars = facts.reads.0 & !(3 << scalar::EXEC);
            if scalars != 0 || facts.has_literal {
                self.masks = Codes(0);
            }
            self.masks.0 |= facts.mask.0 & !EXEMPT.0;
        }
        let written = facts.writes.0;
        let stale = self.masks.0 & written;
        self.masks.0 &= !written;
        self.stale.0 &= !written;
        if op.class == Class::Salu {
            self.stale.0 |= stale;
        }
        Ok(())
    }

    /// Results of vector instructions that are used too early (gfx11 and later).
    fn vector(&mut self, op: &Op, facts: &Facts, rules: Rules, wave64: bool) -> Step {
        let inst = &op.inst;
        if rules.contains(Rules::WMMA_RAW) {
            let again = facts.names.is_matrix.then_some(self.matrix).flatten();
            if let Some(result) = again {
                let role = |role: Role| inst.operand(role).and_then(|operand| operand.reg());
                let index = role(Role::Src2).filter(|_| facts.names.is_sparse);
                if [role(Role::Src0), role(Role::Src1), index]
                    .into_iter()
                    .flatten()
                    .any(|source| source.overlaps(result))
                {
                    let rule =
                        "matrix instruction, then another that multiplies its result, with no VALU instruction between";
                    return hazard(rule, register_name(result.file, result.first));
                }
            }
            self.matrix = facts.names.is_matrix.then(|| explicit_writes(inst).next()).flatten();
        }
        let forwards = rules.contains(Rules::VALU_PARTIAL_FORWARD) && wave64;
        if !rules.contains(Rules::VALU_TRANS_USE) && !forwards {
            return Ok(());
        }
        if self.written.is_empty() {
            self.written = vec![Written::default(); ACCUM_SLOTS];
        }
        // What is long done is the usual case. A result is early only behind the last transcendental, or the last write
        // of EXEC, of which the first of the two results is at most so many instructions old.
        let trans =
            rules.contains(Rules::VALU_TRANS_USE) && self.trans_at != 0 && self.valu - self.trans_at <= TRANS_VALUS;
        let forwards = forwards && self.exec != 0 && self.valu - self.exec_at <= FORWARD_WRITES + 1 + FORWARD_USE;
        if trans || forwards {
            self.early(facts, trans, forwards)?;
        }
        self.valu += 1;
        self.trans += u32::from(op.trans);
        if op.trans {
            self.trans_at = self.valu;
        }
        let written = Written { valu: self.valu, trans: self.trans, exec: self.exec, by_trans: op.trans };
        for &(first, count) in &facts.results {
            for index in first..first + count {
                self.written[slot(RegFile::Vector, index)] = written;
            }
        }
        Ok(())
    }

    /// Whether an instruction uses results too early: those of transcendentals, and those on either side of a write of
    /// EXEC.
    fn early(&self, facts: &Facts, trans: bool, forwards: bool) -> Step {
        let parts = |(first, count): (u16, u16)| (first..first + count).map(|index| slot(RegFile::Vector, index));
        let recent = |written: &Written| written.valu > self.done;
        for (source, at) in facts.sources.iter().flat_map(|&run| parts(run).map(move |at| (run, at))) {
            let first = self.written[at];
            let name = || register_name(RegFile::Vector, at as u16);
            if trans
                && first.by_trans
                && recent(&first)
                && self.valu - first.valu <= TRANS_VALUS
                && self.trans - first.trans <= TRANS_TRANS
            {
                return hazard("transcendental writes VGPR, VALU reads it soon after with no wait for VALU", name());
            }
            let early = |second: &Written| {
                recent(second)
                    && second.exec > first.exec
                    && second.valu - first.valu <= FORWARD_WRITES + 1
                    && self.valu - second.valu <= FORWARD_USE
            };
            // The registers of one operand come together.
            let others = || facts.sources.iter().filter(|other| **other != source).flat_map(|&run| parts(run));
            if forwards && recent(&first) && others().any(|other| early(&self.written[other])) {
                return hazard(
                    "VALU writes VGPR, SALU writes EXEC, VALU writes another VGPR, VALU reads both with no wait for \
                        VALU",
                    name(),
                );
            }
        }
        Ok(())
    }
}
