//! What the model needs of an instruction, found once for each.

use smallvec::SmallVec;

use wavetap_amdgpu::{
    Access, Counter, Flags, Latency, MachineFact, MinMaxOp, NumberFormat, Opcode, OpcodeFlags, Operand, Reg, RegFile,
    Role, Value, VectorOp, scalar,
};

use super::machine::Machine;
use crate::op::Class;
use crate::op::clocks::SLEEP;
use crate::op::registers::{SLOTS, slot};
use crate::state::op::Op;
use crate::trace::timing::{Resource, SampleKind, TraceCategory};

/// What an instruction is issued to. A SIMD issues one instruction to each in a slot, of different waves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Valu,
    Scalar,
    Vmem,
    Lds,
    Branch,
    /// Exports and messages.
    Export,
    /// None: the sequencer does it itself.
    Internal,
}

/// How many there are that a SIMD has to share.
pub(crate) const UNITS: usize = 6;

/// What works on an instruction after it was issued, if that can keep later ones from being issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pipe {
    Valu,
    Trans,
    Matrix,
}

/// How many there are.
pub(crate) const PIPES: usize = 3;

impl Pipe {
    /// The resource whose use it is.
    pub(crate) fn resource(self) -> Resource {
        match self {
            Pipe::Valu => Resource::VectorAlu,
            Pipe::Trans => Resource::Transcendental,
            Pipe::Matrix => Resource::Matrix,
        }
    }
}

/// The instruction.
#[derive(Debug)]
pub(crate) struct TimingFacts {
    pub unit: Unit,
    pub class: Latency,
    pub kind: SampleKind,
    /// Registers that it needs, as slots of [`Wave::ready`](super::wave::WaveClock).
    pub reads: SmallVec<[u16; 8]>,
    /// Registers that it gives, [`TimingFacts::latency`] later.
    pub writes: SmallVec<[u16; 4]>,
    pub latency: u64,
    /// The user has set how long it takes.
    pub fixed: Option<u64>,
    /// The pipes that it needs, each with the cycles that it keeps it.
    pub pipes: SmallVec<[(Pipe, u64); 2]>,
    /// Cycles of its issue slot, and those that the sequencer is busy with it beyond that.
    pub issue: u64,
    pub internal: u64,
    /// The counters that count it.
    pub counters: SmallVec<[usize; 2]>,
    /// In which order they do: that of vector memory, of LDS, or none.
    pub order: Option<usize>,
    /// What it waits for: counter, and how many may be outstanding.
    pub waits: SmallVec<[(usize, usize); 2]>,
    /// Cycles for which it makes its wave sleep.
    pub sleep: u64,
    /// It waits for a split barrier.
    pub waits_for_barrier: bool,
    /// What the vector ALU wrote is so much later there for it than for the vector ALU: a vector and a scalar register.
    pub farther: [u64; 2],
    /// It makes the L1 cache forget.
    pub invalidates: bool,
    /// It makes the cache between L1 and L2 forget.
    pub invalidates_shared: bool,
}

/// SCC has no slot of its own; that of the null register, which holds nothing, is free.
const SCC: u16 = (SLOTS - 128) as u16 + scalar::NULL;

impl TimingFacts {
    pub(crate) fn of(op: &Op, machine: &Machine) -> TimingFacts {
        let inst = &op.inst;
        let class = inst.variant.latency;
        let unit = unit(op);
        let matrix = class == Latency::Mfma && unit == Unit::Valu;
        let counters: SmallVec<[usize; 2]> = Counter::ALL
            .into_iter()
            .filter(|counter| op.counters.contains(counter.flag()))
            .map(|counter| counter as usize)
            .collect();
        let mut facts = TimingFacts {
            unit,
            class,
            kind: kind(op, unit, matrix),
            reads: inst.reads().flat_map(slots).collect(),
            // What comes from memory is there when a wait says so.
            writes: if counters.is_empty() { inst.writes().flat_map(slots).collect() } else { SmallVec::new() },
            latency: machine.latency(class),
            fixed: machine.fixed.get(&op.address).copied(),
            pipes: SmallVec::new(),
            issue: machine.interval,
            internal: 0,
            counters,
            order: match op.class {
                Class::Vmem => Some(0),
                Class::Lds => Some(1),
                _ => None,
            },
            waits: op.waits.iter().map(|(counter, count)| (counter as usize, usize::from(count))).collect(),
            sleep: 0,
            waits_for_barrier: inst.is_any(OpcodeFlags::BARRIER_WAIT),
            farther: match unit {
                Unit::Valu => [0; 2],
                _ => [MachineFact::ValuToMemory, MachineFact::ValuToScalar].map(|fact| machine.fact(fact)),
            },
            invalidates: inst.is_any(OpcodeFlags::INVALIDATES),
            invalidates_shared: inst.opcode() == Opcode::BUFFER_GL1_INV,
        };
        match unit {
            Unit::Valu => facts.vector(op, machine, matrix),
            Unit::Internal => {
                let slots = u64::from(op.slots).max(1) - 1;
                let taken = if op.class == Class::Wait && class == Latency::Wait { machine.latency(class) } else { 0 };
                facts.internal = (slots * machine.interval).max(taken.saturating_sub(machine.interval));
                facts.sleep = op.sleeps;
                if matches!(inst.opcode(), Opcode::S_SLEEP_VAR | Opcode::S_MONITOR_SLEEP) {
                    facts.sleep = SLEEP;
                }
            }
            _ => {}
        }
        facts.latency = facts.fixed.unwrap_or(facts.latency);
        facts
    }

    /// How long it keeps what it runs on.
    fn vector(&mut self, op: &Op, machine: &Machine, matrix: bool) {
        let sum = op.inst.opcode().vector().is_some_and(|what| what.operation == VectorOp::Add);
        let rate = match self.class {
            Latency::Valu64 => machine.fact(MachineFact::RateValu64),
            Latency::ValuF64 if sum => {
                let (usual, rate) = (machine.fact(MachineFact::RateF64), machine.fact(MachineFact::RateF64Add));
                self.latency = self.latency * rate / usual.max(1);
                rate
            }
            Latency::ValuF64 => machine.fact(MachineFact::RateF64),
            Latency::Trans => machine.fact(MachineFact::RateTrans),
            _ if wide_product(op.inst.opcode()) => {
                let rate = machine.fact(MachineFact::RateMul32);
                // The result is that of the last quarter.
                self.latency += machine.usual_passes() * rate.saturating_sub(1);
                rate
            }
            _ => 1,
        };
        let passes = if machine.fact(MachineFact::Wave64Once) != 0 && once(op) { 1 } else { machine.passes };
        self.latency += passes.saturating_sub(machine.interval);
        if matrix {
            let cycles = matrix_cycles(op, machine).unwrap_or_else(|| machine.latency(Latency::Mfma)).max(passes);
            // MFMA runs beside the vector ALU; WMMA is what the vector ALU does.
            let beside = op.inst.is_any(OpcodeFlags::MFMA | OpcodeFlags::SMFMAC);
            self.pipes.push((Pipe::Valu, if beside { passes } else { cycles }));
            self.pipes.push((Pipe::Matrix, cycles));
            if !machine.fixed_matrix {
                self.latency = cycles + machine.latency(Latency::Valu32);
            }
        } else if self.class == Latency::Trans && machine.fact(MachineFact::TransBeside) != 0 {
            self.pipes.push((Pipe::Valu, passes));
            self.pipes.push((Pipe::Trans, passes * rate));
        } else {
            self.pipes.push((Pipe::Valu, passes * rate));
        }
    }
}

/// A multiplication of all 32 bits of integers.
fn wide_product(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::V_MUL_LO_U32
            | Opcode::V_MUL_LO_I32
            | Opcode::V_MUL_HI_U32
            | Opcode::V_MUL_HI_I32
            | Opcode::V_MAD_U32
            | Opcode::V_MAD_U64_U32
            | Opcode::V_MAD_I64_I32
            | Opcode::V_MAD_CO_U64_U32
            | Opcode::V_MAD_CO_I64_I32
            | Opcode::V_MAD_NC_U64_U32
            | Opcode::V_MAD_NC_I64_I32
    )
}

/// An operation of which a SIMD that works on 32 lanes does 64 at once, where it has twice the units for usual ones:
/// sums, products, minima and maxima of single and half precision, integers of 16 bits, dot products of two, moves and
/// selections (Mesa, ACO's statistics).
fn once(op: &Op) -> bool {
    use NumberFormat::{Bf16, F16, F32, I16, U16, U32};
    let opcode = op.inst.opcode();
    if op.inst.modifiers.dpp.is_some() || op.inst.modifiers.dpp8.is_some() {
        return false;
    }
    match (opcode.vector(), opcode.minmax()) {
        (Some(what), _) => matches!(
            (what.operation, what.format),
            (VectorOp::Add | VectorOp::Mul | VectorOp::Fma, F32 | F16 | I16 | U16)
                | (VectorOp::Other, I16 | U16)
                | (VectorOp::Move | VectorOp::Select, U32)
                | (VectorOp::Dot, F16 | Bf16)
        ),
        (None, Some(what)) => {
            matches!(what.operation, MinMaxOp::Min | MinMaxOp::Max | MinMaxOp::MinNum | MinMaxOp::MaxNum)
                && matches!(what.format, F32 | F16)
        }
        _ => false,
    }
}

impl TimingFacts {
    /// What a thread trace has it as.
    pub(crate) fn category(&self) -> TraceCategory {
        match self.kind {
            SampleKind::Valu | SampleKind::Matrix => TraceCategory::Valu,
            SampleKind::Scalar if self.class == Latency::Smem => TraceCategory::Smem,
            SampleKind::Scalar => TraceCategory::Salu,
            SampleKind::Vmem => TraceCategory::Vmem,
            SampleKind::Flat => TraceCategory::Flat,
            SampleKind::Lds => TraceCategory::Lds,
            SampleKind::Branch | SampleKind::BranchTaken | SampleKind::Jump => TraceCategory::Branch,
            SampleKind::Message | SampleKind::Export => TraceCategory::Message,
            SampleKind::Barrier | SampleKind::Internal => TraceCategory::Immed,
        }
    }
}

fn unit(op: &Op) -> Unit {
    match op.class {
        Class::Valu => Unit::Valu,
        Class::Salu | Class::Smem => Unit::Scalar,
        Class::Vmem => Unit::Vmem,
        Class::Lds => Unit::Lds,
        Class::Branch => Unit::Branch,
        Class::Wait => Unit::Internal,
        Class::Other => match op.inst.variant.latency {
            Latency::Export | Latency::Message => Unit::Export,
            _ => Unit::Internal,
        },
    }
}

fn kind(op: &Op, unit: Unit, matrix: bool) -> SampleKind {
    match unit {
        Unit::Valu if matrix => SampleKind::Matrix,
        Unit::Valu => SampleKind::Valu,
        Unit::Scalar => SampleKind::Scalar,
        Unit::Vmem if op.inst.variant.encoding == wavetap_amdgpu::Encoding::Flat => SampleKind::Flat,
        Unit::Vmem => SampleKind::Vmem,
        Unit::Lds => SampleKind::Lds,
        Unit::Branch if op.inst.variant.encoding != wavetap_amdgpu::Encoding::Sopp => SampleKind::Jump,
        Unit::Branch => SampleKind::Branch,
        Unit::Export if op.inst.variant.latency == Latency::Export => SampleKind::Export,
        Unit::Export => SampleKind::Message,
        Unit::Internal if op.inst.variant.flags.contains(Flags::BARRIER) => SampleKind::Barrier,
        Unit::Internal => SampleKind::Internal,
    }
}

/// The slots of a run of registers.
fn slots(reg: Reg) -> impl Iterator<Item = u16> {
    let (first, count) = match (reg.file, reg.first) {
        _ if reg.is_null() => (0, 0),
        (RegFile::Scalar, scalar::SCC) => (SCC, 1),
        // Registers that only the hardware writes, and MODE.
        (RegFile::Scalar, 128..) => (0, 0),
        (file, first) => (slot(file, first) as u16, u16::from(reg.dwords)),
    };
    (first..first + count).filter(|slot| usize::from(*slot) < SLOTS)
}

/// Cycles that a matrix operation keeps its unit: its multiplications and additions by the rate for their type. None
/// where the rate is not known.
fn matrix_cycles(op: &Op, machine: &Machine) -> Option<u64> {
    let shape = MatrixShape::of(op.inst.opcode())?;
    let rate = machine.fact(shape.rate);
    if rate == 0 {
        return None;
    }
    let dst = op.inst.operand(Role::Vdst)?;
    let doubles = shape.rate == MachineFact::MatrixF64;
    let blocks = if shape.blocks_by_result { blocks(dst, shape.rows * shape.columns, doubles) } else { 1 };
    let operations = 2 * shape.rows * shape.columns * shape.depth * blocks / if shape.sparse { 2 } else { 1 };
    let rate = if shape.first_bf16 { rate.min(FIRST_BF16) } else { rate };
    // Several small products did not become faster with later targets.
    let rate = match shape.rate {
        _ if blocks == 1 => rate,
        MachineFact::MatrixF64 => rate.min(machine.fact(MachineFact::MatrixF64Blocks)),
        _ => rate.min(machine.fact(MachineFact::MatrixBlocks)),
    };
    Some(operations.div_ceil(rate.max(1)).max(machine.fact(MachineFact::MatrixLeast)))
}

/// Operations a cycle and SIMD of the `bf16` instructions that gfx908 began with: half the rate of those called `_1k`
/// (CDNA 2 white paper).
const FIRST_BF16: u64 = 128;

/// How many independent products a result of this size holds.
fn blocks(dst: &Operand, elements: u64, doubles: bool) -> u64 {
    let dwords = match (dst.value, dst.access) {
        (Value::Reg(reg), Access::Write | Access::ReadWrite) => u64::from(reg.dwords),
        _ => 1,
    };
    let results = dwords * 64 / if doubles { 2 } else { 1 };
    (results / elements.max(1)).max(1)
}

/// What a matrix operation multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MatrixShape {
    rows: u64,
    columns: u64,
    depth: u64,
    rate: MachineFact,
    sparse: bool,
    blocks_by_result: bool,
    first_bf16: bool,
}

impl MatrixShape {
    fn of(opcode: Opcode) -> Option<MatrixShape> {
        let matrix = opcode.matrix()?;
        let rate = match matrix.a {
            NumberFormat::F64 => MachineFact::MatrixF64,
            NumberFormat::F32 => MachineFact::MatrixF32,
            NumberFormat::Xf32 => MachineFact::MatrixXf32,
            NumberFormat::F16 => MachineFact::MatrixF16,
            NumberFormat::Bf16 => MachineFact::MatrixBf16,
            NumberFormat::I8 | NumberFormat::Iu8 | NumberFormat::F8f6f4 => MachineFact::MatrixI8,
            NumberFormat::Fp8 | NumberFormat::Bf8 => MachineFact::MatrixFp8,
            NumberFormat::Iu4 | NumberFormat::F4 => MachineFact::MatrixI4,
            _ => return None,
        };
        Some(MatrixShape {
            rows: matrix.rows.into(),
            columns: matrix.columns.into(),
            depth: matrix.depth.into(),
            rate,
            sparse: opcode.is_any(OpcodeFlags::SMFMAC | OpcodeFlags::SWMMAC),
            blocks_by_result: opcode.is_any(OpcodeFlags::MFMA),
            first_bf16: matches!(
                opcode,
                Opcode::V_MFMA_F32_16X16X2BF16
                    | Opcode::V_MFMA_F32_16X16X8BF16
                    | Opcode::V_MFMA_F32_32X32X2BF16
                    | Opcode::V_MFMA_F32_32X32X4BF16
                    | Opcode::V_MFMA_F32_4X4X2BF16
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_matrix_operations() {
        let of = |opcode| {
            MatrixShape::of(opcode).map(|shape| (shape.rows, shape.columns, shape.depth, shape.rate, shape.sparse))
        };
        assert_eq!(of(Opcode::V_MFMA_F32_32X32X8F16), Some((32, 32, 8, MachineFact::MatrixF16, false)));
        assert_eq!(of(Opcode::V_MFMA_F32_16X16X4_4B_F16), Some((16, 16, 4, MachineFact::MatrixF16, false)));
        assert_eq!(of(Opcode::V_MFMA_F32_32X32X16_FP8_BF8), Some((32, 32, 16, MachineFact::MatrixFp8, false)));
        assert_eq!(of(Opcode::V_MFMA_SCALE_F32_16X16X128_F8F6F4), Some((16, 16, 128, MachineFact::MatrixI8, false)));
        assert_eq!(of(Opcode::V_WMMA_I32_16X16X16_IU4), Some((16, 16, 16, MachineFact::MatrixI4, false)));
        assert_eq!(of(Opcode::V_SWMMAC_F32_16X16X32_BF16), Some((16, 16, 32, MachineFact::MatrixBf16, true)));
        assert!(MatrixShape::of(Opcode::V_MFMA_F32_32X32X4BF16).unwrap().first_bf16);
        assert!(!MatrixShape::of(Opcode::V_MFMA_F32_32X32X4BF16_1K).unwrap().first_bf16);
        assert_eq!(of(Opcode::V_ADD_F32), None);
    }
}
