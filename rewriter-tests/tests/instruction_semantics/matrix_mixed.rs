//! Matrix operations of gfx950 on floats of 8, 6 and 4 bits with scales: each number is decoded by its format's
//! definition (OCP Microscaling formats), multiplied by the power of two of its 32 along K, and the products are summed
//! exactly. Numbers and scales are chosen such that every order of additions gives the same sum.

use wavetap::isa::{Inst, Modifier, Operand, RegFile, Role, Target, Value};

use super::choose::Wishes;
use super::definition::Definition;
use super::random::Random;
use super::state::State;

/// Bits of exponent and fraction, and the bias, by the code in the instruction.
fn format(code: u8) -> Option<(u32, u32, i32)> {
    [(4, 3, 7), (5, 2, 15), (2, 3, 1), (3, 2, 3), (2, 1, 1)].get(usize::from(code)).copied()
}

fn width((exponent, fraction, _): (u32, u32, i32)) -> usize {
    1 + exponent as usize + fraction as usize
}

fn decode(format @ (_, fraction, bias): (u32, u32, i32), bits: u32) -> f64 {
    let sign = if bits >> (width(format) - 1) & 1 != 0 { -1.0 } else { 1.0 };
    let magnitude = bits & ((1 << (width(format) - 1)) - 1);
    let (exponent, rest) =
        (magnitude >> fraction, f64::from(magnitude & ((1 << fraction) - 1)) / f64::from(1 << fraction));
    sign * if exponent == 0 { rest * 2f64.powi(1 - bias) } else { (1.0 + rest) * 2f64.powi(exponent as i32 - bias) }
}

/// The code of a number that has one.
fn encode(format @ (_, fraction, bias): (u32, u32, i32), magnitude: u32, negative: bool) -> u32 {
    let sign = u32::from(negative) << (width(format) - 1);
    let Some(exponent) = magnitude.checked_ilog2() else { return sign };
    sign | (exponent + bias as u32) << fraction | (magnitude << fraction >> exponent) & ((1 << fraction) - 1)
}

fn rows<'a>(state: &'a mut State, operand: &Operand) -> Option<(&'a mut Vec<[u32; 64]>, usize)> {
    let reg = operand.reg()?;
    match reg.file {
        RegFile::Vector => Some((&mut state.vgpr, reg.first.into())),
        RegFile::Accum => Some((&mut state.agpr, reg.first.into())),
        RegFile::Scalar => None,
    }
}

/// `v_mfma_f32_32x32x64_f8f6f4`: rows, and the length of each.
fn shape(name: &str) -> Option<(usize, usize)> {
    let rest = name.strip_prefix("v_mfma_scale_").or_else(|| name.strip_prefix("v_mfma_"))?;
    match rest {
        "f32_16x16x128_f8f6f4" => Some((16, 128)),
        "f32_32x32x64_f8f6f4" => Some((32, 64)),
        _ => None,
    }
}

/// A row of A or a column of B.
fn line(state: &mut State, inst: &Inst, at: usize, row: usize) -> Option<Vec<f64>> {
    let (size, k) = shape(inst.name())?;
    let format = format([inst.modifiers.cbsz, inst.modifiers.blgp][at])?;
    let operand = *inst.operand([Role::Src0, Role::Src1][at])?;
    let scale = inst.operand([Role::Scale0, Role::Scale1][at]).copied();
    let byte = (inst.modifiers.op_sel >> at & 1) + (inst.modifiers.op_sel_hi >> at & 1) * 2;
    (0..k)
        .map(|k| {
            // Two runs of sixteen bytes, and of smaller numbers one of 32.
            let (lane, n) = if width(format) == 8 {
                (row + size * (k % (1024 / size) / 16), k / (1024 / size) * 16 + k % 16)
            } else {
                (row + size * (k / 32), k % 32)
            };
            let scale = match scale {
                None => 1.0,
                Some(scale) => {
                    let (rows, first) = rows(state, &scale)?;
                    2f64.powi((rows[first][row + size * (k / 32)] >> (8 * byte) & 0xff) as i32 - 127)
                }
            };
            let (rows, first) = rows(state, &operand)?;
            let bit = |bit: usize| rows[first + bit / 32][lane] >> (bit % 32) & 1;
            let bits = (0..width(format)).fold(0, |bits, at| bits | bit(n * width(format) + at) << at);
            Some(scale * decode(format, bits))
        })
        .collect()
}

fn execute(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let (size, _) = shape(inst.name())?;
    let mut before = state.clone();
    let lines = |before: &mut State, at| (0..size).map(|row| line(before, inst, at, row)).collect::<Option<Vec<_>>>();
    let (a, b) = (lines(&mut before, 0)?, lines(&mut before, 1)?);
    let (c, d) = (*inst.operand(Role::Src2)?, *inst.operand(Role::Vdst)?);
    for (i, j) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
        let (lane, at) =
            if size == 32 { (32 * (i / 4 % 2) + j, 4 * (i / 8) + i % 4) } else { (16 * (i / 4) + j, i % 4) };
        let old = match c.value {
            Value::Reg(_) => {
                let (rows, first) = rows(&mut before, &c)?;
                f32::from_bits(rows[first + at][lane])
            }
            Value::InlineInt(0) => 0.0,
            Value::InlineFloat(code @ 242..=247) => [1.0, -1.0, 2.0, -2.0, 4.0, -4.0][usize::from(code) - 242],
            _ => return None,
        };
        let sum: f64 = a[i].iter().zip(&b[j]).map(|(x, y)| x * y).sum();
        let (rows, first) = rows(state, &d)?;
        rows[first + at][lane] = ((f64::from(old) + sum) as f32).to_bits();
    }
    Some(())
}

fn prepare(inst: &Inst, state: &mut State, random: &mut Random) {
    for (role, code) in [(Role::Src0, inst.modifiers.cbsz), (Role::Src1, inst.modifiers.blgp)] {
        let (Some(operand), Some(format)) = (inst.operand(role).copied(), format(code)) else { continue };
        let Some((rows, first)) = rows(state, &operand) else { continue };
        (0..64).for_each(|lane| {
            let mut words = [0_u32; 9];
            for n in 0..32 {
                let magnitude = random.pick(&[0, 1, 2, 3, 4, 6, if width(format) > 4 { 7 } else { 6 }]);
                let code = u64::from(encode(format, magnitude, random.one_in(2))) << (n * width(format) % 32);
                words[n * width(format) / 32] |= code as u32;
                words[n * width(format) / 32 + 1] |= (code >> 32) as u32;
            }
            for (n, word) in words.iter().enumerate().take(operand.dwords.into()) {
                rows[first + n][lane] = *word;
            }
        });
    }
    for role in [Role::Scale0, Role::Scale1] {
        let Some((rows, first)) = inst.operand(role).copied().and_then(|operand| rows(state, &operand)) else {
            continue;
        };
        rows[first] = std::array::from_fn(|_| u32::from_le_bytes(std::array::from_fn(|_| 125 + random.below(5) as u8)));
    }
    let Some(c) = inst.operand(Role::Src2).copied() else { return };
    if let Some((rows, first)) = rows(state, &c) {
        for row in &mut rows[first..first + usize::from(c.dwords)] {
            *row = std::array::from_fn(|_| (random.below(257) as f32 - 128.0).to_bits());
        }
    }
}

/// The definition of such an operation.
pub fn definition(name: &str) -> Option<Definition> {
    shape(name)?;
    let wishes = Wishes { apart: true, no_literals: true, ..Wishes::default() };
    let modifier: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Cbsz | Modifier::Blgp => Some(random.below(5)),
        Modifier::OpSel | Modifier::OpSelHi => Some(random.below(4)),
        _ => Some(0),
    };
    Some(Definition { wishes, prepare: Some(prepare), modifier: Some(modifier), ..Definition::whole(execute) })
}
