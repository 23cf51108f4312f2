//! Matrix instructions of RDNA4 with a sparse A (SWMMAC): two of every four numbers along K are zero and left out, and
//! indices say which two are there.
//!
//! D is C as well. A lane has some numbers of a row of A, in pairs, and their indices of two bits each in a register of
//! which `index_key` chooses the part; a column of B is in lanes as usual (RDNA4 ISA guide, "Sparse matrix"; AMD's
//! matrix instruction calculator). The four numbers of B that a pair chooses from are in the same place of the same
//! lane of B's column, or where a lane has no more of them (4-bit numbers in wave64) in the next lane that has.
//! Sums are those of [`super::wmma`], in the order of the lanes.

use wavetap_amdgpu::{Opcode, OpcodeFlags, Role};

use super::wmma::{Element, SIZE, Shape, numbers, place, put, registers, total};
use crate::fault::stop::{ExecResult, undefined};
use crate::op::semantics::Semantics;
use crate::state::core::Core;
use crate::state::op::{Handler, Meaning, Op};

/// Numbers along K of which two are there.
const GROUP: usize = 4;

fn run(core: &mut Core, op: &Op) -> ExecResult {
    let (Some(shape), Some(dst)) = (of(op.inst.opcode()), op.dst) else { return undefined("matrix shape") };
    let a = numbers(core, op, 0, shape.a)?;
    let b = numbers(core, op, 1, shape.b)?;
    let index = registers(core, op, Role::Src2)?;
    let (a_each, b_each) = (a[0].len(), b[0].len());
    // Lanes that share a row of A, and the part of the indices.
    let parts = shape.k / 2 / a_each;
    let shift = usize::from(op.inst.modifiers.index_key) * 2 * a_each % 32;
    let chosen = |lane: usize, n: usize| (index[0][lane] >> (shift + 2 * n) & 3) as usize;
    // Of two equal indices, or the larger one first, nothing is said.
    if (0..SIZE * parts).any(|lane| (0..a_each / 2).any(|pair| chosen(lane, 2 * pair) >= chosen(lane, 2 * pair + 1))) {
        return undefined("sparse indices that do not ascend");
    }
    let old = core.rows(dst.file, dst.first, dst.dwords.into());
    core.reading(op, dst.file, dst.first, dst.dwords.into())?;
    core.writing(op, dst.file, dst.first, dst.dwords.into())?;
    for (row, column) in (0..SIZE).flat_map(|row| (0..SIZE).map(move |column| (row, column))) {
        let at @ (register, lane, shift) = place(op, shape.d, true, row, column);
        let products = (0..parts * a_each).map(|n| {
            let (part, n) = (n / a_each, n % a_each);
            let first = n / 2 * GROUP;
            let other = part + parts * (first / b_each);
            let from = row + SIZE * part;
            (a[from][n], b[column + SIZE * other][first % b_each + chosen(from, n)])
        });
        let result = total(shape, op.inst.modifiers.clamp, shape.c.number(old[register][lane] >> shift), products);
        put(core, shape.d, dst.first, at, result);
    }
    Ok(())
}

/// What RDNA4 has; how the longer ones of gfx1250 lie in lanes has several descriptions.
fn of(opcode: Opcode) -> Option<Shape> {
    let shape = Shape::of(opcode).filter(|_| opcode.is_any(OpcodeFlags::SWMMAC))?;
    (shape.k == 32 || shape.k == 64 && shape.a == Element::Int4).then_some(shape)
}

/// The meaning of a sparse matrix instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    of(opcode).map(|_| (run as Handler, Semantics::Own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_operations() {
        assert_eq!(of(Opcode::V_SWMMAC_I32_16X16X64_IU4).map(|shape| shape.k), Some(64));
        assert_eq!(of(Opcode::V_SWMMAC_F32_16X16X64_F16), None, "gfx1250");
    }
}
