//! Hazards of gfx10 and later that the hardware does not resolve. They are not counted in issue slots: an event makes a
//! register unsafe until another event, often however far away, makes it safe. Which of them a target has is a fact of
//! the target (`isa-tables/targets.yaml`, `hazards`).

use wavetap_amdgpu::{self, Encoding, EventHazards as Rules, Inst, Reg, RegFile, Role, scalar};

use super::expert_scheduling::{ExpertScheduling, SOFTWARE};
use crate::fault::FaultKind;
use crate::fault::stop::{ExecResult, stop};
use crate::launch::Launch;
use crate::op::event_facts::{EventFacts, ScalarSet};
use crate::op::registers::{ACCUM_SLOTS, register_name, slot};
use crate::op::{Class, ResolvedInst};

/// A kind of memory instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemoryKind {
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
    vmem_reads: ScalarSet,
    /// Read by scalar memory instructions that may not have done so yet.
    smem_reads: ScalarSet,
    /// A scalar or memory instruction reads EXEC.
    exec_read: bool,
    /// EXEC was just written by a comparison.
    compared: bool,
    last: Option<MemoryKind>,
    branched: bool,
    /// Slots since an atomic on floats.
    float_atomic: Option<u64>,
    /// Read as a lane mask, and then written by the scalar ALU.
    masks: ScalarSet,
    stale: ScalarSet,
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
    expert_scheduling: ExpertScheduling,
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

fn hazard(rule: &'static str, resource: impl Into<Box<str>>) -> ExecResult {
    stop(FaultKind::Hazard { rule, required: 0, found: 0, resource: resource.into() })
}

fn is_vmem(op: &ResolvedInst) -> bool {
    op.class == Class::Vmem
}

fn explicit_writes(inst: &Inst) -> impl Iterator<Item = Reg> + '_ {
    inst.operands
        .iter()
        .filter(|operand| operand.access != wavetap_amdgpu::Access::Read)
        .filter_map(|operand| operand.reg())
}

/// Registers of which no mask is remembered.
const EXEMPT: ScalarSet = ScalarSet(1 << scalar::M0 | 3 << scalar::EXEC);

/// The rules of each part of [`Events::check`].
const SCALAR: Rules = Rules::VMEM_TO_SCALAR_WRITE.union(Rules::SMEM_TO_VECTOR_WRITE).union(Rules::VCMPX_EXEC_WAR);
const ORDER: Rules = Rules::LDS_BRANCH_VMEM
    .union(Rules::BRANCH_OFFSET)
    .union(Rules::FLAT_OFFSET)
    .union(Rules::FLOAT_ATOMIC_DENORM_MODE)
    .union(Rules::VCMPX_PERMLANE)
    .union(Rules::DEALLOC_VGPRS);

impl Events {
    /// An instruction is about to be issued, in a scheduling mode.
    #[inline]
    pub(crate) fn check(&mut self, op: &ResolvedInst, launch: &Launch, scheduling: u32) -> ExecResult {
        match &op.event_facts {
            Some(facts) if !launch.event_hazards.is_empty() => self.check_facts(op, facts, launch, scheduling),
            _ => Ok(()),
        }
    }

    fn check_facts(&mut self, op: &ResolvedInst, facts: &EventFacts, launch: &Launch, scheduling: u32) -> ExecResult {
        let rules = launch.event_hazards;
        let wave64 = launch.lanes == 64;
        let unchecked = scheduling == SOFTWARE;
        if rules.intersects(SCALAR) {
            self.scalar(op, facts, rules)?;
        }
        if rules.intersects(ORDER) {
            self.order(op, facts, rules)?;
        }
        if rules.contains(Rules::VALU_MASK_WRITE) && wave64 {
            self.masks(op, facts)?;
        }
        if op.class == Class::Valu {
            self.vector(op, facts, rules, wave64)?;
        }
        if rules.contains(Rules::EXPERT_SCHEDULING) {
            self.expert_scheduling.issue(op, facts, launch.target, unchecked)?;
        }
        if is_vmem(op) || op.class == Class::Lds || op.inst.variant.encoding == Encoding::Exp || facts.waits_for_vector
        {
            self.done = self.valu;
        }
        if op.class == Class::Salu && op.definedness.writes_exec() {
            self.exec += 1;
            self.exec_at = self.valu;
        }
        self.nop = facts.names.is_nop;
        Ok(())
    }

    /// Scalar registers that memory instructions, or EXEC that any others, have yet to read (gfx10.1).
    fn scalar(&mut self, op: &ResolvedInst, facts: &EventFacts, rules: Rules) -> ExecResult {
        let valu = op.class == Class::Valu;
        if rules.contains(Rules::VMEM_TO_SCALAR_WRITE) {
            if matches!(op.class, Class::Salu | Class::Smem) {
                let written = facts.named_writes.0;
                if self.vmem_reads.0 & written != 0 {
                    let rule =
                        "vector memory or LDS instruction reads a scalar register, then scalar instruction writes it";
                    return hazard(rule, ScalarSet(self.vmem_reads.0 & written).first());
                }
            }
            if valu || (facts.names.is_waitcnt && op.imm == 0) || facts.waits_for_vmem_reads {
                self.vmem_reads = ScalarSet(0);
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
                    return hazard(rule, ScalarSet(self.smem_reads.0 & written).first());
                }
            }
            let scalar = op.class == Class::Salu && !facts.names.waits && !facts.names.is_version;
            if scalar || facts.waits_for_smem {
                self.smem_reads = ScalarSet(0);
            }
            if op.class == Class::Smem {
                self.smem_reads.0 |= facts.reads.0;
            }
        }
        if rules.contains(Rules::VCMPX_EXEC_WAR) {
            let exec = ScalarSet::of(Reg::EXEC).0;
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
    fn order(&mut self, op: &ResolvedInst, facts: &EventFacts, rules: Rules) -> ExecResult {
        let inst = &op.inst;
        let valu = op.class == Class::Valu;
        let names = &facts.names;
        if rules.contains(Rules::LDS_BRANCH_VMEM) {
            let kind = match op.class {
                Class::Lds => Some(MemoryKind::Lds),
                Class::Vmem if inst.variant.encoding != Encoding::Flat && !op.counters.is_empty() => {
                    Some(MemoryKind::Vmem)
                }
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

    /// Masks of lanes in wave64 (gfx11): one that a vector instruction has read and the scalar ALU writes is read
    /// too early.
    fn masks(&mut self, op: &ResolvedInst, facts: &EventFacts) -> ExecResult {
        if facts.leaves_function {
            // Compilers look at one function.
            self.masks = ScalarSet(0);
        }
        if facts.waits_for_scalar {
            self.stale = ScalarSet(0);
            self.masks = ScalarSet(0);
        }
        if matches!(op.class, Class::Valu | Class::Salu) {
            let read = facts.reads.0;
            if self.stale.0 & read != 0 {
                let rule = "VALU reads a mask of lanes, SALU writes it, and it is read with no wait for SALU";
                return hazard(rule, ScalarSet(self.stale.0 & read).first());
            }
        }
        if op.class == Class::Valu {
            // Compilers before LLVM 20 take any use of a scalar or of a literal, and a wait, for the end of it: no more
            // is asked for.
            let scalars = facts.reads.0 & !(3 << scalar::EXEC);
            if scalars != 0 || facts.has_literal {
                self.masks = ScalarSet(0);
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
    fn vector(&mut self, op: &ResolvedInst, facts: &EventFacts, rules: Rules, wave64: bool) -> ExecResult {
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
        // What is long done is the usual case. A result is early only after the last transcendental, or the last write
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
    fn early(&self, facts: &EventFacts, trans: bool, forwards: bool) -> ExecResult {
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
