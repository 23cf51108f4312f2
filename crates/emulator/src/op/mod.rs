//! An instruction with its operands resolved ([`ResolvedInst`]), and what is known of its operation. It is data that
//! handlers, strict mode, the trace and the model of time read; how an instruction runs is in `exec`.

pub(crate) mod clocks;
pub(crate) mod definedness;
pub(crate) mod event_facts;
pub(crate) mod fast_path;
pub(crate) mod global_address;
pub(crate) mod halves;
pub(crate) mod matrix_shape;
pub(crate) mod memory_registers;
pub(crate) mod opcode_info;
pub(crate) mod pair;
pub(crate) mod registers;
pub(crate) mod sampling;
pub(crate) mod semantics;
pub(crate) mod sources;
pub(crate) mod transpose;
pub(crate) mod wave_transpose;

use wavetap_amdgpu::{
    Condition, Counter, Counters, Half, Inst, Modifier, Opcode, OpcodeFlags, Operand, Reg, RegFile, Role, Target,
    Value, VgprMsb, WaitCount, issued, scalar, wait_count,
};

use self::definedness::DefinednessRule;
use self::event_facts::EventFacts;
use self::matrix_shape::MfmaShape;
use self::memory_registers::MemoryRegisters;
use self::opcode_info::OpcodeInfo;
use self::semantics::{Semantics, Source, Ty, source};
use self::sources::{by_role, scalar_of};
use crate::address::ObjectId;

/// What the instruction is for the rules of wait states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Valu,
    Salu,
    Smem,
    Vmem,
    Lds,
    Branch,
    Wait,
    Other,
}

/// What the trace counts at the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    None,
    /// It narrows EXEC.
    Exec,
    /// A conditional uniform branch.
    Branch,
}

/// Where an instruction is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstLocation {
    pub object: ObjectId,
    /// Virtual address in the object.
    pub address: u64,
    /// Device address.
    pub pc: u64,
}

/// An instruction at an address with its operands resolved: all that is known before it runs, but for how it runs.
pub(crate) struct ResolvedInst {
    pub semantics: Semantics,
    pub inst: Inst,
    pub object: ObjectId,
    /// Virtual address in the object.
    pub address: u64,
    /// Its device address.
    pub pc: u64,
    /// That of the next instruction.
    pub next: u64,
    /// That of the instruction that a direct branch goes to.
    pub target: u64,
    /// The sources of scalar instructions, as 32 and as 64 bits.
    pub scalars: [[Source; 2]; 3],
    /// The immediate of an instruction that has one.
    pub imm: i64,
    pub class: Class,
    pub site: Site,
    /// The first written operand.
    pub dst: Option<Reg>,
    /// The scalar destination of an instruction that has one beside `dst`.
    pub sdst: u16,
    pub src: [Source; 4],
    /// The halves of registers that the sources name, where operations name them (gfx11 and later).
    pub halves: [Option<Half>; 4],
    /// The same of the destination.
    pub dst_half: Half,
    /// A load of a half sets the other half to zero.
    pub clears: bool,
    /// What a memory instruction accesses of its data register: one half, where code waits for that alone.
    pub data_half: Half,
    /// A transcendental, whose result is late on some targets.
    pub trans: bool,
    /// Writes a part of its destination register only (for the rules of wait states).
    pub partial: bool,
    /// What a matrix instruction multiplies.
    pub matrix: Option<MfmaShape>,
    /// A 32-bit literal is sign-extended for it.
    pub signed64: bool,
    /// A dot product.
    pub dot: bool,
    /// `v_accvgpr_write_b32` and `v_accvgpr_read_b32`, which have rules of their own on gfx908.
    pub accum_write: bool,
    pub accum_read: bool,
    /// Addresses a buffer through scalar memory.
    pub scalar_buffer: bool,
    /// Its object may run with replay of memory instructions (XNACK).
    pub replay: bool,
    /// The high bits of vector register numbers that were added to its operands.
    pub vgpr_msb: VgprMsb,
    /// What it reads is a clock.
    pub reads_clock: bool,
    /// Shader cycles that it sleeps.
    pub sleeps: u64,
    /// Issue slots it fills: more than one for `s_nop`.
    pub slots: u8,
    /// The counters that count it.
    pub counters: Counters,
    /// Its addresses are translated after it is issued, and counted (gfx1250).
    pub is_translated: bool,
    /// Waits until all addresses are translated, where that is counted.
    pub translates: bool,
    /// Goes through a sampler.
    pub samples: bool,
    /// FLAT operations keep their order among the others.
    pub flat_in_order: bool,
    /// The counters that it waits for, with the values.
    pub waits: WaitCount,
    /// What a memory instruction names of registers.
    pub memory_registers: Option<MemoryRegisters>,
    /// What it is for the hazards that are no matter of slots, where the target has any.
    pub event_facts: Option<Box<EventFacts>>,
    /// What it does with undefined bits.
    pub definedness: DefinednessRule,
}

impl ResolvedInst {
    /// Whether it is one of those that a wave may pass over (MODE.vskip).
    pub(crate) fn is_vector(&self) -> bool {
        matches!(self.class, Class::Valu | Class::Vmem | Class::Lds)
            || self.inst.variant.encoding == wavetap_amdgpu::Encoding::Exp
    }

    /// With error correction of registers, a load of a half writes all of its register (CDNA5 ISA guide, D16 loads:
    /// "fill the unused portion with zero"; LLVM's `d16PreservesUnusedBits` says as much of gfx9, though not what is
    /// left).
    pub(crate) fn write_all(&mut self) {
        if matches!(self.semantics, Semantics::Load { d16: Some(_), .. }) {
            (self.clears, self.data_half) = (true, Half::Whole);
        }
    }

    /// What a load of a half makes of a register.
    pub(crate) fn with_half(&self, old: u32, value: u32, d16: Option<bool>) -> u32 {
        let old = if self.clears { 0 } else { old };
        match d16 {
            None => value,
            Some(false) => old & 0xffff_0000 | value & 0xffff,
            Some(true) => old & 0xffff | value << 16,
        }
    }

    /// A source by role, resolved in a type.
    pub(crate) fn source(&self, role: Role, ty: Ty) -> Source {
        self.inst.operand(role).map_or(Source::None, |operand| source(operand, ty, self.signed64))
    }

    /// An immediate operand.
    pub(crate) fn imm(&self, role: Role) -> i64 {
        match self.inst.operand(role).map(|operand| operand.value) {
            Some(Value::Imm(value)) => value,
            Some(Value::InlineInt(value)) => i64::from(value),
            Some(Value::Literal(value)) => i64::from(value),
            _ => 0,
        }
    }

    /// The immediate of an operand that has any of the roles immediates come in.
    pub(crate) fn any_imm(&self) -> i64 {
        self.imm
    }

    /// Resolves an instruction at an address.
    pub(crate) fn new(
        target: Target,
        mut inst: Inst,
        semantics: Semantics,
        info: &OpcodeInfo,
        location: InstLocation,
    ) -> ResolvedInst {
        // A conversion of 8-bit floats has no field for where its result goes: to all of the register.
        if let Some(sdwa) = inst.modifiers.sdwa.as_mut()
            && !inst.variant.layout.modifiers.iter().any(|(modifier, _)| *modifier == Modifier::DstSel)
        {
            sdwa.dst_sel = 6;
        }
        let InstLocation { object, address, pc } = location;
        let opcode = inst.opcode();
        let dst = inst
            .operands
            .iter()
            .find(|operand| matches!(operand.access, wavetap_amdgpu::Access::Write | wavetap_amdgpu::Access::ReadWrite))
            .and_then(Operand::reg);
        let sdst = scalar_of(&inst, Role::Sdst).unwrap_or(scalar::VCC);
        let types: [Ty; 4] = match semantics {
            Semantics::Lane { src, .. } | Semantics::LaneBit { src, .. } => src,
            Semantics::Test { src, .. } => [src[0], src[1], Ty::None, Ty::None],
            Semantics::Packed { .. } => [Ty::B32; 4],
            Semantics::Packed32 { .. } => [Ty::B64; 4],
            _ => [Ty::B32; 4],
        };
        let OpcodeInfo { class, trans, signed64, dot, accum_write, accum_read, scalar_buffer, samples, matrix, .. } =
            *info;
        let src = self::sources::sources(&inst, &types, dst, signed64);
        let halves = self::sources::halves(&inst, &src);
        let written = inst.operands.iter().find(|operand| operand.reg().is_some() && operand.reg() == dst);
        let dst_half = written.map_or(Half::Whole, |operand| operand.half);
        let data_half = data_half(target, class, &semantics);
        let site = if info.may_be_site { classify_site(&inst) } else { Site::None };
        let modifiers = inst.modifiers;
        let partial =
            modifiers.sdwa.is_some_and(|s| s.dst_sel != 6) || (class == Class::Valu && modifiers.op_sel & 8 != 0);
        let next = pc + u64::from(inst.size);
        let slots = match inst.operands.first().map(|operand| operand.value) {
            Some(Value::Imm(count)) if opcode == Opcode::S_NOP => (count as u8 & 0xf) + 1,
            _ => 1,
        };
        let imm = clocks::immediate(&inst);
        let displacement = inst.branch_displacement().or(imm).unwrap_or(0);
        let imm = imm.unwrap_or(0);
        let (reads_clock, sleeps) = (clocks::reads_clock(&inst, imm), clocks::sleeps(&inst, imm));
        let scalars = [Role::Src0, Role::Src1, Role::Src2].map(|role| {
            let of = |ty: Ty| by_role(&inst, role, ty, signed64);
            [of(Ty::B32), of(Ty::B64)]
        });
        let waits = wait_count(target, &inst).unwrap_or_default();
        let counters = issued(&inst);
        let is_translated = counters.contains(Counters::X);
        // It proves no result.
        let counters = counters.difference(Counters::X);
        let waits_for_translations = inst.waits_for_translations();
        let definedness = DefinednessRule::new(&inst, class, &info.traits);
        let event_facts = info.events.map(|names| Box::new(EventFacts::new(&inst, names, &waits, data_half)));
        let memory_registers = self::memory_registers::of(&inst, class);
        ResolvedInst {
            semantics,
            inst,
            object,
            address,
            pc,
            next,
            target: next.wrapping_add((displacement * 4) as u64),
            scalars,
            imm,
            class,
            site,
            dst,
            sdst,
            src,
            halves,
            dst_half,
            clears: false,
            data_half,
            trans,
            partial,
            matrix,
            signed64,
            dot,
            accum_write,
            accum_read,
            scalar_buffer,
            replay: false,
            vgpr_msb: VgprMsb::default(),
            reads_clock,
            sleeps,
            slots,
            counters,
            is_translated,
            translates: target.counts_in(Counter::X) && waits_for_translations,
            samples,
            flat_in_order: target.flat_in_order(),
            waits,
            memory_registers,
            event_facts,
            definedness,
        }
    }
}

/// What a memory instruction accesses of its data register.
fn data_half(target: Target, class: Class, semantics: &Semantics) -> Half {
    let high = match *semantics {
        Semantics::Load { d16: Some(high), .. } => high,
        Semantics::Store { bytes: 1 | 2, high } => high,
        _ => return Half::Whole,
    };
    match (target.halves_apart() && matches!(class, Class::Vmem | Class::Lds), high) {
        (false, _) => Half::Whole,
        (true, false) => Half::Low,
        (true, true) => Half::High,
    }
}

/// Which instructions the trace counts. This list is the emulator's own on purpose: it is what the counters are
/// compared with.
fn classify_site(inst: &Inst) -> Site {
    let is_exec = |role: Role| {
        inst.operand(role).and_then(Operand::reg).is_some_and(|reg| {
            reg.file == RegFile::Scalar
                && reg.first == scalar::EXEC
                && u32::from(reg.dwords) * 32 == u32::from(inst.wave_size)
        })
    };
    let exec_site = match inst.opcode() {
        Opcode::S_AND_SAVEEXEC_B64 | Opcode::S_ANDN1_SAVEEXEC_B64 | Opcode::S_ANDN1_WREXEC_B64 => true,
        Opcode::S_AND_SAVEEXEC_B32 | Opcode::S_ANDN1_SAVEEXEC_B32 | Opcode::S_ANDN1_WREXEC_B32 => true,
        Opcode::S_AND_NOT0_SAVEEXEC_B32
        | Opcode::S_AND_NOT0_SAVEEXEC_B64
        | Opcode::S_AND_NOT0_WREXEC_B32
        | Opcode::S_AND_NOT0_WREXEC_B64 => true,
        Opcode::S_AND_B64 | Opcode::S_AND_B32 => is_exec(Role::Sdst) && (is_exec(Role::Src0) || is_exec(Role::Src1)),
        Opcode::S_ANDN2_B64 | Opcode::S_ANDN2_B32 | Opcode::S_AND_NOT1_B64 | Opcode::S_AND_NOT1_B32 => {
            is_exec(Role::Sdst) && is_exec(Role::Src0)
        }
        _ => inst.is_any(OpcodeFlags::CMPX),
    };
    if exec_site {
        Site::Exec
    } else if matches!(inst.variant.branch, wavetap_amdgpu::Branch::Conditional(Condition::Debug)) {
        Site::None
    } else if matches!(
        inst.opcode(),
        Opcode::S_CBRANCH_SCC0
            | Opcode::S_CBRANCH_SCC1
            | Opcode::S_CBRANCH_VCCZ
            | Opcode::S_CBRANCH_VCCNZ
            | Opcode::S_CBRANCH_EXECZ
            | Opcode::S_CBRANCH_EXECNZ
    ) {
        Site::Branch
    } else {
        Site::None
    }
}
