//! Hazards of gfx10 and later that the hardware does not resolve. They are not counted in issue slots: an event makes a register unsafe until another event, often
//! however far away, makes it safe. Which of them a target has is a fact of the target (`isa-tables/targets.yaml`, `hazards`).

use crate::isa::{Branch, Encoding, EventHazards as Rules, Inst, Reg, RegFile, Role, Value, scalar};

use super::core::{Core, Step, register_name, stop};
use super::fault::FaultKind;
use super::op::{Class, Op};
use super::pending::slot;

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
pub(super) struct Events {
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
    /// Writes by vector ALU instructions up to this one are done.
    done: u32,
}

/// The most vector ALU instructions, and transcendentals, between a transcendental and a use of its result that is too early.
const TRANS_VALUS: u32 = 5;
const TRANS_TRANS: u32 = 1;
/// The most between two writes on either side of a write of EXEC, and between the second and a use of both, for the use to be too early.
const FORWARD_WRITES: u32 = 2;
const FORWARD_USE: u32 = 4;
/// The message that gives registers back.
const DEALLOC_VGPRS: i64 = 3;
/// The branch offset that does not work.
const BAD_OFFSET: i64 = 0x3f;

fn hazard(rule: &'static str, resource: impl Into<Box<str>>) -> Step {
    stop(FaultKind::Hazard { rule, required: 0, found: 0, resource: resource.into() })
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

fn is_matrix(inst: &Inst) -> bool {
    inst.name().starts_with("v_wmma") || inst.name().starts_with("v_swmmac")
}

fn explicit_writes(inst: &Inst) -> impl Iterator<Item = Reg> + '_ {
    inst.operands.iter().filter(|operand| operand.access != crate::isa::Access::Read).filter_map(|operand| operand.reg())
}

fn explicit_reads(inst: &Inst) -> impl Iterator<Item = Reg> + '_ {
    inst.operands.iter().filter(|operand| operand.access != crate::isa::Access::Write).filter_map(|operand| operand.reg())
}

/// The registers that an instruction reads as a mask of lanes.
fn mask_of(inst: &Inst) -> Codes {
    let name = inst.name();
    let takes = ["v_cndmask_", "v_addc_", "v_add_co_ci_", "v_subb_", "v_sub_co_ci_", "v_subbrev_", "v_subrev_co_ci_", "v_div_fmas_"];
    if !takes.iter().any(|start| name.starts_with(start)) {
        return Codes(0);
    }
    let named = inst.operand(Role::Src2).and_then(|operand| operand.reg()).filter(|reg| reg.file == RegFile::Scalar);
    Codes::of(named.filter(|_| !name.starts_with("v_div")).unwrap_or(Reg::VCC))
}

/// Registers of which no mask is remembered.
const EXEMPT: Codes = Codes(1 << scalar::M0 | 3 << scalar::EXEC);

/// An instruction is about to be issued.
pub(super) fn check(core: &mut Core, op: &Op) -> Step {
    let rules = core.launch.event_hazards;
    if rules.is_empty() {
        return Ok(());
    }
    let wave64 = core.launch.lanes == 64;
    let events = &mut core.wave.checks.events;
    events.scalar(op, rules)?;
    events.order(op, rules)?;
    if rules.contains(Rules::VALU_MASK_WRITE) && wave64 {
        events.masks(op)?;
    }
    if op.class == Class::Valu {
        events.vector(op, rules, wave64)?;
    }
    if is_vmem(op) || op.class == Class::Lds || op.inst.variant.encoding == Encoding::Exp || waits_for(&op.inst, Field::VaVdst) {
        events.done = events.valu;
    }
    if op.class == Class::Salu && op.unknown.writes_exec() {
        events.exec += 1;
    }
    events.nop = op.inst.name() == "s_nop";
    Ok(())
}

impl Events {
    /// Scalar registers that memory instructions, or EXEC that any others, have yet to read (gfx10.1).
    fn scalar(&mut self, op: &Op, rules: Rules) -> Step {
        let inst = &op.inst;
        let valu = op.class == Class::Valu;
        if rules.contains(Rules::VMEM_TO_SCALAR_WRITE) {
            if matches!(op.class, Class::Salu | Class::Smem) {
                let written = explicit_writes(inst).fold(0, |all, reg| all | Codes::of(reg).0);
                if self.vmem_reads.0 & written != 0 {
                    let rule = "vector memory or LDS instruction reads a scalar register, then scalar instruction writes it";
                    return hazard(rule, Codes(self.vmem_reads.0 & written).first());
                }
            }
            if valu || (inst.name() == "s_waitcnt" && op.imm == 0) || waits_for(inst, Field::VmVsrc) {
                self.vmem_reads = Codes(0);
            }
            if is_vmem(op) || op.class == Class::Lds {
                self.vmem_reads.0 |= inst.reads().fold(0, |all, reg| all | Codes::of(reg).0);
            }
        }
        if rules.contains(Rules::SMEM_TO_VECTOR_WRITE) {
            if valu {
                let written = inst.writes().fold(0, |all, reg| all | Codes::of(reg).0);
                if self.smem_reads.0 & written != 0 {
                    let rule = "scalar memory instruction reads a scalar register, then VALU writes it";
                    return hazard(rule, Codes(self.smem_reads.0 & written).first());
                }
            }
            let scalar = op.class == Class::Salu && !inst.name().starts_with("s_wait") && inst.name() != "s_version";
            let waited = op.waits.iter().any(|(counter, allowed)| counter == crate::isa::Counter::Lgkm && allowed == 0);
            if scalar || waited {
                self.smem_reads = Codes(0);
            }
            if op.class == Class::Smem {
                self.smem_reads.0 |= inst.reads().fold(0, |all, reg| all | Codes::of(reg).0);
            }
        }
        if rules.contains(Rules::VCMPX_EXEC_WAR) {
            let exec = Codes::of(Reg::EXEC).0;
            let written = inst.writes().fold(0, |all, reg| all | Codes::of(reg).0);
            if valu && written & exec != 0 && self.exec_read {
                return hazard("EXEC is read by another than a VALU instruction, then VALU writes it", "exec");
            }
            if (valu && written != 0) || waits_for(inst, Field::SaSdst) {
                self.exec_read = false;
            }
            self.exec_read |= !valu && inst.reads().any(|reg| Codes::of(reg).0 & exec != 0);
        }
        Ok(())
    }

    /// What must not follow what.
    fn order(&mut self, op: &Op, rules: Rules) -> Step {
        let inst = &op.inst;
        let valu = op.class == Class::Valu;
        let name = inst.name();
        let branch = matches!(inst.variant.branch, Branch::Jump | Branch::Conditional(_));
        if rules.contains(Rules::LDS_BRANCH_VMEM) {
            let kind = match op.class {
                Class::Lds => Some(Kind::Lds),
                Class::Vmem if inst.variant.encoding != Encoding::Flat && !op.counters.is_empty() => Some(Kind::Vmem),
                _ => None,
            };
            if let Some(kind) = kind {
                if self.branched && self.last.is_some_and(|last| last != kind) {
                    return hazard("an LDS and a vector memory instruction with a branch between them and no wait for stores", "memory");
                }
                self.last = Some(kind);
                self.branched = false;
            }
            self.branched |= branch;
            if name == "s_waitcnt_vscnt" && op.waits.iter().any(|(_, allowed)| allowed == 0) {
                self.last = None;
            }
        }
        if rules.contains(Rules::BRANCH_OFFSET) && branch && inst.branch_displacement() == Some(BAD_OFFSET) {
            return hazard("a branch over 63 dwords", "pc");
        }
        if rules.contains(Rules::FLAT_OFFSET) && inst.variant.encoding == Encoding::Flat && inst.modifiers.offset != 0 {
            return hazard("a flat access with an offset", "address");
        }
        if rules.contains(Rules::FLOAT_ATOMIC_DENORM_MODE) {
            if name == "s_denorm_mode" && self.float_atomic.is_some_and(|slots| slots < 3) {
                return hazard("atomic on floats in memory, then s_denorm_mode fewer than three slots later", "mode");
            }
            self.float_atomic = match self.float_atomic {
                _ if is_vmem(op) && name.contains("atomic") && (name.contains("_f") || name.contains("pk_add")) => Some(0),
                _ if valu || name.starts_with("s_wait") => None,
                since => since.map(|slots| slots + u64::from(op.slots)),
            };
        }
        if rules.contains(Rules::VCMPX_PERMLANE) && valu {
            if self.compared && name.starts_with("v_permlane") {
                return hazard("VALU comparison writes EXEC, then v_permlane with no other VALU instruction between", "exec");
            }
            if name != "v_nop" {
                self.compared = name.starts_with("v_cmpx");
            }
        }
        if rules.contains(Rules::DEALLOC_VGPRS) && name == "s_sendmsg" && op.imm & 0xff == DEALLOC_VGPRS && !self.nop {
            return hazard("the message that gives vector registers back, with no s_nop before it", "message");
        }
        Ok(())
    }

    /// Masks of lanes in waves of 64 (gfx11): one that a vector instruction has read and the scalar ALU writes is read too early.
    fn masks(&mut self, op: &Op) -> Step {
        let inst = &op.inst;
        if matches!(inst.variant.branch, Branch::IndirectCall | Branch::IndirectJump | Branch::Call) {
            // Compilers look at one function.
            self.masks = Codes(0);
        }
        if waits_for(inst, Field::SaSdst) {
            self.stale = Codes(0);
            self.masks = Codes(0);
        }
        if matches!(op.class, Class::Valu | Class::Salu) {
            let read = inst.reads().fold(0, |all, reg| all | Codes::of(reg).0);
            if self.stale.0 & read != 0 {
                let rule = "VALU reads a mask of lanes, SALU writes it, and it is read with no wait for SALU";
                return hazard(rule, Codes(self.stale.0 & read).first());
            }
        }
        if op.class == Class::Valu {
            // Compilers before LLVM 20 take any use of a scalar or of a literal, and a wait, for the end of it: no more is asked for.
            let scalars = inst.reads().fold(0, |all, reg| all | Codes::of(reg).0) & !(3 << scalar::EXEC);
            if scalars != 0 || inst.operands.iter().any(|operand| matches!(operand.value, Value::Literal(_))) {
                self.masks = Codes(0);
            }
            self.masks.0 |= mask_of(inst).0 & !EXEMPT.0;
        }
        let written = inst.writes().fold(0, |all, reg| all | Codes::of(reg).0);
        let stale = self.masks.0 & written;
        self.masks.0 &= !written;
        self.stale.0 &= !written;
        if op.class == Class::Salu {
            self.stale.0 |= stale;
        }
        Ok(())
    }

    /// Results of vector instructions that are used too early (gfx11 and later).
    fn vector(&mut self, op: &Op, rules: Rules, wave64: bool) -> Step {
        let inst = &op.inst;
        if rules.contains(Rules::WMMA_RAW) {
            let again = is_matrix(inst).then_some(self.matrix).flatten();
            if let Some(result) = again {
                let role = |role: Role| inst.operand(role).and_then(|operand| operand.reg());
                let index = role(Role::Src2).filter(|_| inst.name().starts_with("v_swmmac"));
                if [role(Role::Src0), role(Role::Src1), index].into_iter().flatten().any(|source| source.overlaps(result)) {
                    let rule = "matrix instruction, then another that multiplies its result, with no VALU instruction between";
                    return hazard(rule, register_name(result.file, result.first));
                }
            }
            self.matrix = is_matrix(inst).then(|| explicit_writes(inst).next()).flatten();
        }
        let forwards = rules.contains(Rules::VALU_PARTIAL_FORWARD) && wave64;
        if !rules.contains(Rules::VALU_TRANS_USE) && !forwards {
            return Ok(());
        }
        if self.written.is_empty() {
            self.written = vec![Written::default(); 256];
        }
        let sources = || explicit_reads(inst).filter(|reg| reg.file == RegFile::Vector);
        let parts = |reg: Reg| (reg.first..reg.first + u16::from(reg.dwords)).map(|index| slot(RegFile::Vector, index));
        let recent = |written: &Written| written.valu > self.done;
        for (source, at) in sources().flat_map(|reg| parts(reg).map(move |at| (reg, at))) {
            let first = self.written[at];
            let name = || register_name(RegFile::Vector, at as u16);
            if rules.contains(Rules::VALU_TRANS_USE)
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
            let others = || sources().filter(|other| *other != source).flat_map(parts);
            if forwards && recent(&first) && others().any(|other| early(&self.written[other])) {
                return hazard(
                    "VALU writes VGPR, SALU writes EXEC, VALU writes another VGPR, VALU reads both with no wait for VALU",
                    name(),
                );
            }
        }
        self.valu += 1;
        self.trans += u32::from(op.trans);
        let written = Written { valu: self.valu, trans: self.trans, exec: self.exec, by_trans: op.trans };
        for reg in inst.writes().filter(|reg| reg.file == RegFile::Vector) {
            for index in reg.first..reg.first + u16::from(reg.dwords) {
                self.written[slot(RegFile::Vector, index)] = written;
            }
        }
        Ok(())
    }
}
