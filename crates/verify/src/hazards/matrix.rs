//! Required wait states around matrix and dot-product instructions (gfx908 and later), as far as inserted code can be a
//! part of them.
//!
//! Inserted code has no matrix instructions. So there are rules between an original one and an inserted reader or
//! writer of its registers, and between inserted writers and an original one; where the number depends on what reads
//! the result, the largest is required.

use super::classes::{concerns_matrices, is_lds, is_matrix, is_valu, is_vector_memory};
use super::instruction_facts::Facts;
use super::wait_rule::{Pair, WaitRule, all, if_met};
use wavetap_amdgpu::{Encoding, Inst, NumberFormat, Opcode, OpcodeFlags, Reg, Role, WaitStates};
use wavetap_analysis::dataflow::RegSet;

/// The longest distance any of these rules needs (16 passes and 4).
pub(crate) const FARTHEST: u32 = 20;

/// The rules.
#[rustfmt::skip] // As in `wait_rules`.
pub(crate) static RULES: [WaitRule; 9] = {
    use Facts as F;
    [
        WaitRule::new("a result of a matrix instruction is read",
            F::MATRIX, F::USES, FARTHEST, result_to_reader),
        WaitRule::new("a result of a matrix instruction is overwritten",
            F::MATRIX, F::WRITES_VECTOR, FARTHEST, result_to_writer),
        WaitRule::new("what a matrix instruction accumulates on is overwritten",
            F::MATRIX, F::WRITES_VECTOR, FARTHEST, accumulator_to_writer),
        WaitRule::new("a vector register is written that a matrix instruction reads",
            all([F::VALU, F::WRITES_VECTOR]), F::MATRIX_SIDE, 2, vgpr_to_matrix),
        WaitRule::new("EXEC is written by a vector instruction before a matrix instruction",
            all([F::VALU, F::WRITES_EXEC]), F::MATRIX_SIDE, 4, exec_to_matrix),
        WaitRule::new("an AGPR is written that is read again",
            all([F::GFX908, F::ACCUM_MOVE]), F::MATRIX_SIDE, 3, accum_write_to_reader),
        WaitRule::new("a vector register is written from an AGPR and read by a memory instruction",
            all([F::GFX908, F::ACCUM_MOVE]), F::MEMORY_SIDE, 2, accum_read_to_memory),
        WaitRule::new("a result of a dot product is used",
            F::DOT, F::USES, 3, dot_to_use),
        WaitRule::new("a product in double precision before a fused multiply-add",
            F::MATRIX, F::FMA_F64, 2, double_to_fma),
    ]
};

fn is_dot(inst: &Inst) -> bool {
    inst.variant.opcode_flags.contains(OpcodeFlags::DOT)
}

fn is_double(inst: &Inst) -> bool {
    factors(inst) == Some(NumberFormat::F64)
}

/// Single-precision factors: other pipes on gfx94x.
fn is_single(inst: &Inst) -> bool {
    factors(inst) == Some(NumberFormat::F32)
}

/// What the factors are, the first one where they are of two kinds.
fn factors(inst: &Inst) -> Option<NumberFormat> {
    inst.opcode().matrix().map(|matrix| matrix.a)
}

fn reads_memory_side(inst: &Inst) -> bool {
    is_vector_memory(inst) || is_lds(inst) || inst.variant.encoding == Encoding::Exp
}

/// Passes of a matrix instruction, not fewer than it takes.
fn passes(inst: &Inst, states: WaitStates) -> u32 {
    let Some(matrix) = inst.opcode().matrix() else { return 16 };
    let (rows, depth) = (u32::from(matrix.rows), u32::from(matrix.depth));
    let newer = matches!(states, WaitStates::Gfx94x | WaitStates::Gfx950);
    // Of single precision and of XF32 half as many rows count.
    let deep = if matches!(matrix.b, NumberFormat::F32 | NumberFormat::Xf32) { 2 * depth } else { depth };
    match rows {
        _ if matrix.a == NumberFormat::F8f6f4 => rows / 2,
        4 => 2,
        _ if inst.is_any(OpcodeFlags::SMFMAC) => rows / 4,
        16 if newer && deep >= 16 => 4,
        32 if newer && deep >= 8 => 8,
        rows => rows / 2,
    }
}

/// Wait states after which a result may be read, or overwritten.
fn done(p: &Pair<'_>, memory: bool) -> u32 {
    let passes = passes(p.producer, p.states);
    if is_double(p.producer) {
        let large = p.producer.opcode().matrix().is_some_and(|matrix| matrix.rows == 16);
        return match (large, memory) {
            (false, false) => 6,
            (false, true) => 9,
            (true, _) if p.states == WaitStates::Gfx950 => 19,
            (true, false) => 11,
            (true, true) => 18,
        };
    }
    match p.states {
        WaitStates::Gfx908 => passes + 2,
        WaitStates::Gfx94x | WaitStates::Gfx950 if is_single(p.producer) => passes + 2,
        WaitStates::Gfx950 if passes >= 4 => passes + 4,
        _ => passes + 3,
    }
}

fn results(inst: &Inst) -> RegSet {
    inst.operand(Role::Vdst).and_then(|operand| operand.reg()).into_iter().collect()
}

fn result_to_reader(p: &Pair<'_>) -> Option<u32> {
    let reads = results(p.producer).intersects(&p.consumer.reads);
    let memory = reads_memory_side(p.consumer);
    (is_matrix(p.producer) && !is_matrix(p.consumer) && reads && (memory || is_valu(p.consumer)))
        .then(|| done(p, memory))
}

fn result_to_writer(p: &Pair<'_>) -> Option<u32> {
    let overwrites = results(p.producer).intersects(&p.consumer.writes);
    (is_matrix(p.producer) && !is_matrix(p.consumer) && overwrites).then(|| match p.states {
        WaitStates::Gfx908 => passes(p.producer, p.states) - 1,
        _ => done(p, false),
    })
}

fn accumulator_to_writer(p: &Pair<'_>) -> Option<u32> {
    let accumulator: RegSet = p.producer.operand(Role::Src2).and_then(|operand| operand.reg()).into_iter().collect();
    let overwrites = accumulator.intersects(&p.consumer.writes);
    let exempt = is_double(p.producer) || (p.strict() && is_single(p.producer));
    (is_matrix(p.producer) && !exempt && !is_matrix(p.consumer) && overwrites).then(|| {
        let passes = passes(p.producer, p.states);
        if p.states == WaitStates::Gfx908 { passes.saturating_sub(3) } else { passes - 1 }
    })
}

fn vgpr_to_matrix(p: &Pair<'_>) -> Option<u32> {
    let consumes =
        is_matrix(p.consumer) || (p.states == WaitStates::Gfx908 && p.consumer.opcode() == Opcode::V_ACCVGPR_WRITE_B32);
    let reads = p.producer.writes.vectors().intersects(&p.consumer.reads);
    let moved = p.states == WaitStates::Gfx908 && p.producer.opcode() == Opcode::V_ACCVGPR_WRITE_B32;
    if_met(consumes && is_valu(p.producer) && !concerns_matrices(p.producer) && reads && !moved, 2)
}

fn exec_to_matrix(p: &Pair<'_>) -> Option<u32> {
    let consumes =
        is_matrix(p.consumer) || (p.states == WaitStates::Gfx908 && p.consumer.opcode() == Opcode::V_ACCVGPR_WRITE_B32);
    if_met(consumes && is_valu(p.producer) && p.producer.writes.overlaps(Reg::EXEC), 4)
}

fn accum_write_to_reader(p: &Pair<'_>) -> Option<u32> {
    let writes = p.states == WaitStates::Gfx908 && p.producer.opcode() == Opcode::V_ACCVGPR_WRITE_B32;
    let reads = results(p.producer).intersects(&p.consumer.reads);
    let accumulates = p
        .consumer
        .operand(Role::Src2)
        .and_then(|operand| operand.reg())
        .is_some_and(|reg| results(p.producer).overlaps(reg));
    match (writes && reads, is_matrix(p.consumer)) {
        (true, true) => Some(if accumulates { 1 } else { 3 }),
        (true, false) if p.consumer.opcode() == Opcode::V_ACCVGPR_READ_B32 => Some(3),
        _ => None,
    }
}

fn accum_read_to_memory(p: &Pair<'_>) -> Option<u32> {
    let reads = results(p.producer).intersects(&p.consumer.reads);
    if_met(
        p.states == WaitStates::Gfx908
            && p.producer.opcode() == Opcode::V_ACCVGPR_READ_B32
            && reads
            && reads_memory_side(p.consumer),
        2,
    )
}

fn dot_to_use(p: &Pair<'_>) -> Option<u32> {
    let later = !matches!(p.states, WaitStates::None | WaitStates::Gfx9 | WaitStates::Gfx908);
    let uses = results(p.producer).intersects(&p.consumer.reads.union(p.consumer.writes));
    let same = p.producer.variant == p.consumer.variant;
    if_met(later && is_dot(p.producer) && !same && (is_valu(p.consumer) || reads_memory_side(p.consumer)) && uses, 3)
}

fn double_to_fma(p: &Pair<'_>) -> Option<u32> {
    let fma = matches!(p.consumer.opcode(), Opcode::V_FMA_F64 | Opcode::V_FMAC_F64);
    if_met(is_matrix(p.producer) && is_double(p.producer) && fma, 2)
}
