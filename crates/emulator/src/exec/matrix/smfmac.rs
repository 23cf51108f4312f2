//! Matrix instructions with a sparse A (SMFMAC): two of every four numbers along K are zero and left out, and indices
//! say which two are there.
//!
//! A lane has some numbers of a row of A, and twice as many of a column of B: of these, each pair of A's numbers
//! chooses from its four by two indices of two bits (CDNA3 ISA guide, "Sparse matrices"). C is D's old value; its
//! layout, the order of additions and the rounding are those of [`super`].

use wavetap_amdgpu::{Opcode, OpcodeFlags, Operand, Reg, RegFile, Role};

use super::mfma::elements;
use crate::fault::stop::{ExecResult, undefined};
use crate::float::{Round, fma_odd, to_f32};
use crate::lanes::LANES;
use crate::op::matrix_shape::{MfmaShape, Sum};
use crate::op::semantics::Semantics;
use crate::state::core::Core;
use crate::state::op::{Handler, Meaning, Op};

/// The indices of each lane, two bits for each number of A.
fn indices(core: &mut Core, op: &Op, bits: usize) -> ExecResult<[u32; LANES]> {
    let Some(Reg { file: RegFile::Vector, first, .. }) = op.inst.operand(Role::Src2).and_then(Operand::reg) else {
        return undefined("sparse indices that are in no vector register");
    };
    core.reading(op, RegFile::Vector, first, 1)?;
    let modifiers = &op.inst.modifiers;
    let sets = 32 / bits;
    let set = if modifiers.cbsz & 3 == 0 { usize::from(modifiers.abid) % sets } else { 0 };
    Ok(core.wave.vgpr[usize::from(first)].map(|word| word >> (set * bits)))
}

fn run(core: &mut Core, op: &Op) -> ExecResult {
    let (Some(shape), Some(dst)) = (op.matrix, op.dst) else { return undefined("matrix shape") };
    let fnuz = core.launch.target.fnuz_fp8();
    let a = elements(core, op, Role::Src0, shape.a.bits())?;
    let b = elements(core, op, Role::Src1, shape.b.bits())?;
    let each = a[0].len();
    if b[0].len() != 2 * each {
        return undefined("a sparse matrix instruction with that many registers");
    }
    let index = indices(core, op, 2 * each)?;
    // Of two equal indices, or the larger one first, nothing is said.
    let chosen = |lane: usize, n: usize| 4 * (n / 2) + (index[lane] >> (2 * n) & 3) as usize;
    if (0..LANES).any(|lane| (0..each / 2).any(|pair| chosen(lane, 2 * pair) >= chosen(lane, 2 * pair + 1))) {
        return undefined("sparse indices that do not ascend");
    }
    let groups = LANES / shape.size;
    let count = shape.size * shape.size / LANES;
    core.reading(op, dst.file, dst.first, count as u16)?;
    core.writing(op, dst.file, dst.first, count as u16)?;
    for (lane, at) in (0..LANES).flat_map(|lane| (0..count).map(move |at| (lane, at))) {
        let (row, column, _) = shape.place(lane, at);
        let old = core.file(dst.file)[usize::from(dst.first) + at][lane];
        let products = (0..groups * each).map(|n| {
            let (group, n) = (n / each * shape.size, n % each);
            let other = chosen(row + group, n);
            (shape.a.value(a[row + group][n], fnuz), shape.b.value(b[column + group][other], fnuz))
        });
        let result = match shape.sum {
            Sum::I32 => products.fold(old, |sum, (x, y)| sum.wrapping_add((x * y) as i32 as u32)),
            _ => products
                .fold(f32::from_bits(old), |sum, (x, y)| to_f32(fma_odd(x, y, f64::from(sum)), Round::Nearest))
                .to_bits(),
        };
        core.file(dst.file)[usize::from(dst.first) + at][lane] = result;
    }
    Ok(())
}

/// The meaning of a sparse matrix instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    MfmaShape::of(opcode).filter(|_| opcode.is_any(OpcodeFlags::SMFMAC)).map(|_| (run as Handler, Semantics::Own))
}
