//! A decoded instruction made ready to run: its meaning found by name once, operands resolved, its role in traces and
//! rules known.

pub(crate) mod halves;
pub(crate) mod opcode_info;
pub(crate) mod registers;

use wavetap_amdgpu::{
    Condition, Counter, Counters, Half, Inst, Modifier, Opcode, OpcodeFlags, Operand, Reg, RegFile, Role, Target,
    Value, ValueType, VgprMsb, WaitCount, issued, scalar, wait_count,
};

use self::opcode_info::Named;
use crate::address::ObjectId;
use crate::fault::stop::Step;
use crate::float::Env;
use crate::lanes::{BitOperation, Comparison, Operation};
use crate::state::core::Core;
use crate::strict::undefined::Rule;

/// How the bits of a vector operand are understood. The `F` types flush denormals as MODE says, the `B` types never do;
/// negate and absolute value act on the sign bit of either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ty {
    None,
    B16,
    F16,
    B32,
    F32,
    B64,
    F64,
    /// One bit of a 64-bit scalar for each lane.
    Mask,
}

impl Ty {
    pub(crate) fn dwords(self) -> u8 {
        match self {
            Ty::None => 0,
            Ty::B16 | Ty::F16 | Ty::B32 | Ty::F32 => 1,
            Ty::B64 | Ty::F64 | Ty::Mask => 2,
        }
    }
}

/// Where an operand comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    None,
    Vector(u16),
    Accum(u16),
    /// By operand code.
    Scalar(u16),
    /// The bits, already in the operand's type.
    Const(u64),
    /// LDS at M0.
    LdsDirect,
}

/// What an instruction does to a lane: sources in, destination bits out.
pub(crate) type LaneFn = fn(&Env, &[u64; 4]) -> u64;
/// An atomic operation: old value, data, comparison value; gives the new value.
pub(crate) type AtomicFn = fn(u64, u64, u64) -> u64;
/// Runs an instruction.
pub(crate) type Handler = fn(&mut Core, &Op) -> Step;

/// What a 16-bit result does to the other half of its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum High {
    Zero,
    Keep,
}

/// The meaning of an instruction, as far as it is data for a shared handler.
#[derive(Clone, Copy)]
pub(crate) enum Semantics {
    /// The handler knows it all.
    Own,
    Lane {
        f: &'static dyn Operation,
        dst: Ty,
        src: [Ty; 4],
        high: High,
    },
    LaneBit {
        f: &'static dyn BitOperation,
        dst: Ty,
        src: [Ty; 4],
    },
    /// `exec`: also writes EXEC.
    Test {
        f: &'static dyn Comparison,
        src: [Ty; 2],
        exec: bool,
    },
    /// A scalar operation on floats, with the roles of its sources and the types of sources and result.
    ScalarFloat {
        f: &'static dyn Operation,
        sources: &'static [Role],
        from: Ty,
        to: Ty,
    },
    /// A scalar comparison of floats.
    ScalarTest {
        f: &'static dyn Comparison,
        ty: Ty,
    },
    /// Packed 16-bit: one function for either half. `short`: the two-operand encoding, which has no selection of
    /// halves.
    Packed {
        f: &'static dyn Operation,
        float: bool,
        short: bool,
    },
    /// Packed 32-bit floats.
    Packed32 {
        f: &'static dyn Operation,
    },
    Atomic {
        f: AtomicFn,
        bytes: u8,
        compare: bool,
        returns: bool,
    },
    Load {
        bytes: u8,
        signed: bool,
        d16: Option<bool>,
    },
    Store {
        bytes: u8,
        high: bool,
    },
}

/// A meaning: the handler and its data.
pub(crate) type Meaning = (Handler, Semantics);

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
    /// A conditional scalar branch.
    Branch,
}

/// Where an instruction is: its object, the virtual address in it, the device address.
pub(crate) type Place = (ObjectId, u64, u64);

/// An instruction at an address, ready to run.
pub(crate) struct Op {
    pub run: Handler,
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
    /// The address of a simple access to global memory.
    pub global: Option<crate::exec::memory::global_fast::Address>,
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
    pub matrix: Option<crate::exec::matrix::mfma::Shape>,
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
    /// What it waits for.
    pub waits: WaitCount,
    /// What a memory instruction names of registers.
    pub named: Option<crate::shadow::hazard::Named>,
    /// What it is for the hazards that are no matter of slots, where the target has any.
    pub facts: Option<Box<crate::shadow::event_hazard::Facts>>,
    /// What it does with undefined bits.
    pub unknown: Rule,
    /// The operations of an instruction that is two.
    pub pair: Option<Box<[Op; 2]>>,
    /// How many instructions from this one on are plain and follow each other, in the list of those decoded, too. All
    /// that a plain one does is to change registers and memory: the next instruction follows it, the wave goes on, it
    /// counts for no [`Site`], and it does not ask for the time. The worker that runs such instructions in a row
    /// asserts it.
    pub plain: u32,
    /// For the short way of a vector instruction.
    pub quick: Option<Box<crate::exec::vector::fast::Quick>>,
}

/// The bits of an inline constant or literal in a type.
pub(crate) fn constant(value: Value, ty: Ty, signed64: bool) -> Option<u64> {
    match value {
        Value::Literal64(bits) => Some(bits),
        Value::InlineInt(i) => Some(match ty {
            Ty::B16 | Ty::F16 => u64::from(i16::from(i) as u16),
            Ty::B64 | Ty::F64 | Ty::Mask => i64::from(i) as u64,
            _ => u64::from(i32::from(i) as u32),
        }),
        Value::InlineFloat(code) => {
            let value = match code {
                240 => 0.5,
                241 => -0.5,
                242 => 1.0,
                243 => -1.0,
                244 => 2.0,
                245 => -2.0,
                246 => 4.0,
                247 => -4.0,
                _ => 0.0,
            };
            // 1/(2*PI) has its own bits in each format (AMD ISA guides, inline constants).
            let inverse = code == 248;
            Some(match ty {
                Ty::B16 | Ty::F16 if inverse => 0x3118,
                Ty::B16 | Ty::F16 => u64::from(crate::float::to_f16(value, crate::float::Round::Nearest)),
                Ty::B64 | Ty::F64 | Ty::Mask if inverse => 0x3fc4_5f30_6dc9_c882,
                Ty::B64 | Ty::F64 | Ty::Mask => value.to_bits(),
                _ if inverse => 0x3e22_f983,
                _ => u64::from((value as f32).to_bits()),
            })
        }
        Value::Literal(bits) => Some(match ty {
            Ty::B16 | Ty::F16 => u64::from(bits & 0xffff),
            Ty::F64 => u64::from(bits) << 32,
            Ty::B64 if signed64 => i64::from(bits as i32) as u64,
            _ => u64::from(bits),
        }),
        Value::Imm(value) => Some(value as u64),
        Value::Reg(_) | Value::Off => None,
    }
}

/// An operand as a source of a type.
pub(crate) fn source(operand: &Operand, ty: Ty, signed64: bool) -> Source {
    match operand.value {
        Value::Reg(reg) => match reg.file {
            RegFile::Vector => Source::Vector(reg.first),
            RegFile::Accum => Source::Accum(reg.first),
            RegFile::Scalar if reg.first == scalar::LDS_DIRECT => Source::LdsDirect,
            RegFile::Scalar => Source::Scalar(reg.first),
        },
        Value::Off => Source::None,
        // An inline float is one of the operand's format, which is the upper half of single precision.
        value @ Value::InlineFloat(_) if operand.ty == ValueType::Bf16 && ty == Ty::B16 => {
            constant(value, Ty::B32, false).map_or(Source::None, |bits| Source::Const(bits >> 16))
        }
        // The high half of a double, also where its bits are taken as they are.
        Value::Literal(bits) if operand.ty == ValueType::F64 && ty.dwords() == 2 => {
            Source::Const(u64::from(bits) << 32)
        }
        other => constant(other, ty, signed64).map_or(Source::None, Source::Const),
    }
}

impl Op {
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

    /// [`Op::source`] before there is an `Op`.
    pub(crate) fn by_role(inst: &Inst, role: Role, ty: Ty, signed64: bool) -> Source {
        inst.operand(role).map_or(Source::None, |operand| source(operand, ty, signed64))
    }

    /// The scalar register code of an operand.
    pub(crate) fn scalar_of(inst: &Inst, role: Role) -> Option<u16> {
        inst.operand(role).and_then(Operand::reg).filter(|reg| reg.file == RegFile::Scalar).map(|reg| reg.first)
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
    pub(crate) fn new(target: Target, mut inst: Inst, (run, semantics): Meaning, named: &Named, place: Place) -> Op {
        // A conversion of 8-bit floats has no field for where its result goes: to all of the register.
        if let Some(sdwa) = inst.modifiers.sdwa.as_mut()
            && !inst.variant.layout.modifiers.iter().any(|(modifier, _)| *modifier == Modifier::DstSel)
        {
            sdwa.dst_sel = 6;
        }
        let (object, address, pc) = place;
        let opcode = inst.opcode();
        let dst = inst
            .operands
            .iter()
            .find(|operand| matches!(operand.access, wavetap_amdgpu::Access::Write | wavetap_amdgpu::Access::ReadWrite))
            .and_then(Operand::reg);
        let sdst = Self::scalar_of(&inst, Role::Sdst).unwrap_or(scalar::VCC);
        let types: [Ty; 4] = match semantics {
            Semantics::Lane { src, .. } | Semantics::LaneBit { src, .. } => src,
            Semantics::Test { src, .. } => [src[0], src[1], Ty::None, Ty::None],
            Semantics::Packed { .. } => [Ty::B32; 4],
            Semantics::Packed32 { .. } => [Ty::B64; 4],
            _ => [Ty::B32; 4],
        };
        let Named { class, trans, signed64, dot, accum_write, accum_read, scalar_buffer, samples, matrix, .. } = *named;
        let src = crate::exec::vector::sources(&inst, &types, dst, signed64);
        let halves = crate::exec::vector::halves(&inst, &src);
        let written = inst.operands.iter().find(|operand| operand.reg().is_some() && operand.reg() == dst);
        let dst_half = written.map_or(Half::Whole, |operand| operand.half);
        let data_half = data_half(target, class, &semantics);
        let (run, quick) = crate::exec::vector::fast::faster(run, &semantics, &inst, src, dst);
        let (run, global) = crate::exec::memory::global_fast::faster(target, run, &semantics, &inst);
        let site = if named.may_be_site { classify_site(&inst) } else { Site::None };
        let modifiers = inst.modifiers;
        let partial =
            modifiers.sdwa.is_some_and(|s| s.dst_sel != 6) || (class == Class::Valu && modifiers.op_sel & 8 != 0);
        let next = pc + u64::from(inst.size);
        let slots = match inst.operands.first().map(|operand| operand.value) {
            Some(Value::Imm(count)) if opcode == Opcode::S_NOP => (count as u8 & 0xf) + 1,
            _ => 1,
        };
        let imm = inst.operands.iter().find_map(|operand| match operand.value {
            Value::Imm(value) => Some(value),
            _ => None,
        });
        let displacement = inst.branch_displacement().or(imm).unwrap_or(0);
        let imm = imm.unwrap_or(0);
        let scalars = [Role::Src0, Role::Src1, Role::Src2].map(|role| {
            let of = |ty: Ty| Self::by_role(&inst, role, ty, signed64);
            [of(Ty::B32), of(Ty::B64)]
        });
        let quick = match semantics {
            Semantics::Packed32 { .. } => crate::exec::vector::fast::packed32_sources(&inst, &scalars, dst),
            _ => quick,
        };
        let waits = wait_count(target, &inst).unwrap_or_default();
        let counters = issued(&inst);
        let is_translated = counters.contains(Counters::X);
        // It proves no result.
        let counters = counters.difference(Counters::X);
        let waits_for_translations = inst.waits_for_translations();
        let unknown = Rule::new(&inst, class, &named.traits);
        let facts = named
            .events
            .map(|names| Box::new(crate::shadow::event_hazard::Facts::new(&inst, names, &waits, data_half)));
        let of_registers = crate::shadow::hazard::named(&inst, class);
        Op {
            run,
            semantics,
            inst,
            object,
            address,
            pc,
            next,
            target: next.wrapping_add((displacement * 4) as u64),
            scalars,
            imm,
            global,
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
            slots,
            counters,
            is_translated,
            translates: target.counts_in(Counter::X) && waits_for_translations,
            samples,
            flat_in_order: target.flat_in_order(),
            waits,
            named: of_registers,
            facts,
            unknown,
            pair: None,
            plain: u32::from(named.plain && site == Site::None),
            quick,
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
