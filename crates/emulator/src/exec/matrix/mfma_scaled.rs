//! Matrix instructions of gfx950 on floats of 8, 6 and 4 bits, of which A and B may have different ones, with scales
//! (`v_mfma_f32_…_f8f6f4`, `v_mfma_scale_f32_…_f8f6f4`).
//!
//! CBSZ and BLGP say what A and B are made of: E4M3, E5M2, E2M3, E3M2, E2M1. A lane has 32 numbers of a row of A and of
//! a column of B. Of 6 and 4 bits they follow one another along K; of 8 bits they are two runs of sixteen, the second
//! of which begins where the first one of the last lane of that row ends (the mapping that ROCm's composable_kernel
//! tests on gfx950). That matters where A and B differ, and for the scales: every 32 numbers along K of a row have one,
//! a power of two in a byte with a bias of 127 (255 is NaN). The lanes that have the row hold them, the first lane that
//! of the first 32; OP_SEL chooses the byte of their register.
//!
//! Products are added in the order of K, each rounded once, as in [`super`]; the hardware's own order is not
//! documented. Denormals are kept.

use wavetap_amdgpu::{Opcode, Operand, Reg, RegFile, Role};

use super::mfma::{Elements, accumulator, elements};
use crate::fault::stop::{ExecResult, undefined};
use crate::float::small_float::{Format, decode};
use crate::float::{Round, fma_odd, ldexp64, to_f32};
use crate::lanes::LANES;
use crate::op::matrix_shape::MfmaShape;
use crate::op::semantics::{Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Handler, Meaning, Op};

/// Numbers of a row that have one scale; a lane has as many.
const BLOCK: usize = 32;

/// Numbers of 8 bits that follow one another in a lane.
const RUN: usize = 16;

/// What a format field says.
fn format(code: u8) -> Option<Format> {
    Some(match code {
        0 => Format::E4M3,
        1 => Format::E5M2,
        2 => Format::E2M3,
        3 => Format::E3M2,
        4 => Format::E2M1,
        _ => return None,
    })
}

/// The group of lanes, counted in rows, that has a number of a row, and which of its numbers it is.
fn place(format: Format, groups: usize, k: usize) -> (usize, usize) {
    if format.bits() == 8 { (k / RUN % groups, k / (RUN * groups) * RUN + k % RUN) } else { (k / BLOCK, k % BLOCK) }
}

/// The scale of every lane, as a power of two or NaN.
fn scales(core: &mut Core, op: &Op, role: Role, source: u8) -> ExecResult<[Option<i32>; LANES]> {
    let Some(operand) = op.inst.operand(role) else { return Ok([Some(0); LANES]) };
    let modifiers = &op.inst.modifiers;
    let byte = (modifiers.op_sel >> source & 1) + 2 * (modifiers.op_sel_hi >> source & 1);
    if core.launch.strict
        && let Some(reg @ Reg { file: RegFile::Vector | RegFile::Accum, .. }) = Operand::reg(operand)
    {
        let checked = core.wave.hazards.check_matrix_source(op, core.launch, reg, false);
        core.passed(checked)?;
    }
    let words = match op.source(role, Ty::B32) {
        Source::None => return undefined("a matrix instruction without scale"),
        source => core.lanes(op, source, Ty::B32, 0)?,
    };
    Ok(words.map(|word| match (word >> (8 * byte)) as u8 {
        255 => None,
        code => Some(i32::from(code) - 127),
    }))
}

/// Row `line` of A, or column of B, along K.
fn row(bits: &Elements, format: Format, scales: &[Option<i32>; LANES], line: usize, shape: MfmaShape) -> Vec<f64> {
    let groups = LANES / shape.size;
    (0..shape.k())
        .map(|k| {
            let (group, n) = place(format, groups, k);
            let value = decode(format, bits[line + shape.size * group][n] as u8);
            scales[line + shape.size * (k / BLOCK)].map_or(f64::NAN, |scale| ldexp64(value, scale))
        })
        .collect()
}

fn run(core: &mut Core, op: &Op) -> ExecResult {
    let (Some(shape), Some(dst), Some(c)) = (op.matrix, op.dst, op.inst.operand(Role::Src2)) else {
        return undefined("matrix shape");
    };
    let (Some(of_a), Some(of_b)) = (format(op.inst.modifiers.cbsz), format(op.inst.modifiers.blgp)) else {
        return undefined("a matrix of a format that there is not");
    };
    let a = elements(core, op, Role::Src0, of_a.bits() as usize)?;
    let b = elements(core, op, Role::Src1, of_b.bits() as usize)?;
    if a[0].len() != BLOCK || b[0].len() != BLOCK {
        return undefined("a matrix of that many registers");
    }
    let a_scales = scales(core, op, Role::Scale0, 0)?;
    let b_scales = scales(core, op, Role::Scale1, 1)?;
    let rows: Vec<_> = (0..shape.size).map(|line| row(&a, of_a, &a_scales, line, shape)).collect();
    let columns: Vec<_> = (0..shape.size).map(|line| row(&b, of_b, &b_scales, line, shape)).collect();
    let count = shape.size * shape.size / LANES;
    let old = accumulator(core, op, c, count as u16)?;
    core.writing(op, dst.file, dst.first, count as u16)?;
    for (lane, index) in (0..LANES).flat_map(|lane| (0..count).map(move |index| (lane, index))) {
        let (i, j, _) = shape.place(lane, index);
        let pairs = rows[i].iter().zip(&columns[j]);
        let sum = pairs
            .fold(f32::from_bits(old[index][lane]), |sum, (x, y)| to_f32(fma_odd(*x, *y, sum.into()), Round::Nearest));
        core.file(dst.file)[usize::from(dst.first) + index][lane] = sum.to_bits();
    }
    Ok(())
}

/// The meaning of such a matrix instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    MfmaShape::of(opcode).filter(|shape| shape.is_mixed()).map(|_| (run as Handler, Semantics::Own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_row_has_one_place() {
        for (format, groups) in
            [Format::E4M3, Format::E2M3, Format::E2M1].into_iter().flat_map(|format| [(format, 4), (format, 2)])
        {
            let places: std::collections::BTreeSet<_> = (0..BLOCK * groups).map(|k| place(format, groups, k)).collect();
            assert_eq!(places.len(), BLOCK * groups);
            assert!(places.iter().all(|(group, n)| *group < groups && *n < BLOCK));
        }
    }

    #[test]
    fn bytes_are_in_two_runs() {
        assert_eq!(place(Format::E4M3, 4, 15), (0, 15));
        assert_eq!(place(Format::E4M3, 4, 16), (1, 0));
        assert_eq!(place(Format::E4M3, 4, 64), (0, 16));
        assert_eq!(place(Format::E2M1, 4, 64), (2, 0));
    }
}
