//! Matrix operations: D = A * B + C, where every element has its place in lanes and registers (AMD's matrix instruction
//! calculator).
//!
//! The hardware's order of additions is not documented, so the elements are small integers, of which every order gives
//! the same sum.

use rustc_apfloat::Round;
use rustc_apfloat::ieee::{Half, Single};
use wavetap::isa::{Inst, Modifier, Operand, RegFile, Role, Target, Value};

use super::choose::Wishes;
use super::definition::Definition;
use super::number::{bf16, convert, f32};
use super::random::Random;
use super::state::{State, half};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Element {
    F64,
    F32,
    F16,
    Bf16,
    I8,
    /// Of single precision the upper 19 bits.
    Xf32,
    /// Four bits of exponent and three of fraction, and five and two.
    Fp8,
    Bf8,
}

impl Element {
    fn of(name: &str) -> Option<Element> {
        Some(match name {
            "f64" => Element::F64,
            "f32" => Element::F32,
            "f16" => Element::F16,
            "bf16" => Element::Bf16,
            "i8" => Element::I8,
            "xf32" => Element::Xf32,
            "fp8" => Element::Fp8,
            "bf8" => Element::Bf8,
            _ => return None,
        })
    }

    fn bits(self) -> usize {
        match self {
            Element::F64 => 64,
            Element::F32 | Element::Xf32 => 32,
            Element::F16 | Element::Bf16 => 16,
            _ => 8,
        }
    }

    /// The bits of a small integer; `bias` is one more in the formats of CDNA3.
    fn encode(self, n: i64, bias: u64) -> u64 {
        let nearest = Round::NearestTiesToEven;
        let small = |fraction: u32, bias: u64| {
            let magnitude = n.unsigned_abs();
            if magnitude == 0 {
                return 0;
            }
            let exponent = 63 - magnitude.leading_zeros();
            let sign = if n < 0 { 0x80 } else { 0 };
            sign | (u64::from(exponent) + bias) << fraction
                | (magnitude << fraction >> exponent) & ((1 << fraction) - 1)
        };
        match self {
            Element::F64 => (n as f64).to_bits(),
            Element::F32 | Element::Xf32 => f32::from_signed(n, nearest),
            Element::F16 => convert::<Single, Half>(f32::from_signed(n, nearest), nearest),
            Element::Bf16 => bf16::from_signed(n, nearest),
            Element::I8 => n as u64 & 0xff,
            Element::Fp8 => small(3, 7 + bias),
            Element::Bf8 => small(2, 15 + bias),
        }
    }

    fn decode(self, bits: u64, bias: u64) -> i64 {
        let small = |fraction: u32, bias: u64| {
            let exponent = (bits & 0x7f) >> fraction;
            let significand = bits & ((1 << fraction) - 1) | 1 << fraction;
            let magnitude =
                if bits & 0x7f == 0 { 0 } else { significand << 20 >> (fraction as u64 + 20 + bias - exponent) } as i64;
            if bits & 0x80 != 0 { -magnitude } else { magnitude }
        };
        match self {
            Element::F64 => f64::from_bits(bits) as i64,
            Element::F32 => core::primitive::f32::from_bits(bits as u32) as i64,
            Element::Xf32 => core::primitive::f32::from_bits(bits as u32 & 0xffff_e000) as i64,
            Element::F16 => half(bits as u32) as i64,
            Element::Bf16 => core::primitive::f32::from_bits((bits as u32) << 16) as i64,
            Element::I8 => i64::from(bits as i8),
            Element::Fp8 => small(3, 7 + bias),
            Element::Bf8 => small(2, 15 + bias),
        }
    }
}

/// What a name says: `v_mfma_f32_16x16x4_4b_f16`, `v_mfma_f32_32x32x8bf16_1k`, `v_mfma_f32_16x16x32_fp8_bf8`.
#[derive(Debug, Clone, Copy)]
struct Shape {
    sum: Element,
    integer: bool,
    /// Half of A is left out, and indices say which.
    sparse: bool,
    size: usize,
    k: usize,
    a: Element,
    b: Element,
}

fn shape(name: &str) -> Option<Shape> {
    let dense = name.strip_prefix("v_mfma_");
    let sparse = dense.is_none();
    let (sum, rest) = dense.or_else(|| name.strip_prefix("v_smfmac_"))?.split_once('_')?;
    let integer = sum == "i32";
    let sum = if integer { Element::F32 } else { Element::of(sum)? };
    let rest = rest.strip_suffix("_1k").unwrap_or(rest);
    let (size, rest) = rest.split_once('x')?;
    let (_, rest) = rest.split_once('x')?;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    let types: Vec<&str> =
        rest[end..].split('_').filter(|part| !part.is_empty() && Element::of(part).is_some()).collect();
    let (a, b) = (Element::of(types.first()?)?, Element::of(types.last()?)?);
    Some(Shape { sum, integer, sparse, size: size.parse().ok()?, k: rest[..end].parse().ok()?, a, b })
}

/// Whether 8-bit floats are the ones of CDNA3, with a bias greater by one.
fn bias(target: Target) -> u64 {
    u64::from(matches!(target.instruction_set(), "gfx942" | "gfx9-4-generic"))
}

fn rows<'a>(state: &'a State, operand: &Operand) -> Option<(&'a [[u32; 64]], usize)> {
    let reg = operand.reg()?;
    match reg.file {
        RegFile::Vector => Some((&state.vgpr, reg.first.into())),
        RegFile::Accum => Some((&state.agpr, reg.first.into())),
        RegFile::Scalar => None,
    }
}

/// Bits of an element of a lane.
fn element(state: &State, operand: &Operand, bits: usize, lane: usize, n: usize) -> Option<u64> {
    let (rows, first) = rows(state, operand)?;
    let word = |at: usize| u64::from(rows[first + at][lane]);
    Some(match bits {
        64 => word(2 * n) | word(2 * n + 1) << 32,
        _ => word(n * bits / 32) >> (n * bits % 32) & ((1 << bits) - 1),
    })
}

/// The lane whose elements of B a lane uses.
fn pattern(blgp: u8, lane: usize) -> usize {
    let (half, quarter) = (lane % 32, lane % 16);
    match blgp {
        0 => lane,
        // The first half for both, the second for both, and rotated by a quarter.
        1 => half,
        2 => 32 + half,
        3 => (lane + 16) % 64,
        // One quarter for all.
        n => 16 * (usize::from(n) - 4) + quarter,
    }
}

/// Lane and register of an element of C and D.
fn place(shape: Shape, i: usize, j: usize, block: usize) -> (usize, usize) {
    match (shape.sum, shape.size) {
        (Element::F64, 16) => (16 * (i % 4) + j, i / 4),
        (Element::F64, _) => (16 * i + 4 * block + j, 0),
        (_, 32) => (32 * (i / 4 % 2) + j, 16 * block + 4 * (i / 8) + i % 4),
        (_, 16) => (16 * (i / 4) + j, 4 * block + i % 4),
        _ => (4 * block + j, i),
    }
}

/// Of every four numbers along K of A two are there, and two indices of two bits say which, the first lowest: CDNA3 ISA
/// guide, "Sparse matrices".
fn execute_sparse(shape: Shape, inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let (a, b, d) = (inst.operand(Role::Src0)?, inst.operand(Role::Src1)?, inst.operand(Role::Vdst)?);
    let index = inst.operand(Role::Src2)?.reg()?;
    let bias = bias(target);
    let each = usize::from(b.dwords) * 32 / shape.b.bits();
    let set = if inst.modifiers.cbsz & 3 == 0 { usize::from(inst.modifiers.abid) * each % 32 } else { 0 };
    let before = state.clone();
    for i in 0..shape.size {
        // A as if nothing were left out.
        let mut row = vec![0; shape.k];
        for (n, place) in (0..shape.k / 2).map(|n| (n % (each / 2), i + n / (each / 2) * shape.size)) {
            let chosen = before.vgpr[usize::from(index.first)][place] >> (set + 2 * n) & 3;
            row[place / shape.size * each + n / 2 * 4 + chosen as usize] =
                shape.a.decode(element(&before, a, shape.a.bits(), place, n)?, bias);
        }
        for j in 0..shape.size {
            let mut sum = 0;
            for (k, x) in row.iter().enumerate() {
                sum +=
                    x * shape.b.decode(element(&before, b, shape.b.bits(), j + k / each * shape.size, k % each)?, bias);
            }
            let (lane, at) = place(shape, i, j, 0);
            let old = element(&before, d, 32, lane, at)?;
            let value = if shape.integer {
                (sum as u32).wrapping_add(old as u32).into()
            } else {
                f32::add(old, f32::from_signed(sum, Round::NearestTiesToEven), Round::NearestTiesToEven)
            };
            let reg = d.reg()?;
            let rows = if reg.file == RegFile::Accum { &mut state.agpr } else { &mut state.vgpr };
            rows[usize::from(reg.first) + at][lane] = value as u32;
        }
    }
    Some(())
}

fn execute(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let shape = shape(inst.name())?;
    if shape.sparse {
        return execute_sparse(shape, inst, state, target);
    }
    let m = inst.modifiers;
    let (a, b, c, d) =
        (inst.operand(Role::Src0)?, inst.operand(Role::Src1)?, inst.operand(Role::Src2)?, inst.operand(Role::Vdst)?);
    let bias = bias(target);
    let each = usize::from(a.dwords) * 32 / shape.a.bits();
    let blocks = 64 * each / (shape.size * shape.k);
    if 1 << m.cbsz > blocks || m.abid >= 1 << m.cbsz {
        return None;
    }
    let before = state.clone();
    let wide = shape.sum == Element::F64;
    // Element k of row or column n: lanes hold consecutive ones, then blocks, then further ones.
    let lane_of = |n: usize, k: usize, block: usize| (n + shape.size * (block + blocks * (k / each)), k % each);
    for block in 0..blocks {
        let a_block = block >> m.cbsz << m.cbsz | usize::from(m.abid);
        for i in 0..shape.size {
            for j in 0..shape.size {
                let mut sum = 0_i64;
                for k in 0..shape.k {
                    let ((a_lane, a_at), (b_lane, b_at)) = (lane_of(i, k, a_block), lane_of(j, k, block));
                    let x = shape.a.decode(element(&before, a, shape.a.bits(), a_lane, a_at)?, bias);
                    let y = shape.b.decode(element(&before, b, shape.b.bits(), pattern(m.blgp, b_lane), b_at)?, bias);
                    sum += x * y;
                }
                let (lane, at) = place(shape, i, j, block);
                let old = match c.value {
                    Value::Reg(_) => element(&before, c, if wide { 64 } else { 32 }, lane, at)?,
                    Value::InlineInt(n) if wide => i64::from(n) as u64,
                    // As a float it is a denormal, which is lost or not by the order of additions.
                    Value::InlineInt(n) if n != 0 && !shape.integer => return None,
                    Value::InlineInt(n) => u64::from(i32::from(n) as u32),
                    // Halves would have to be added.
                    Value::InlineFloat(code @ 242..=247) => {
                        let value = [1.0, -1.0, 2.0, -2.0, 4.0, -4.0][usize::from(code) - 242];
                        if wide {
                            core::primitive::f64::to_bits(value)
                        } else {
                            u64::from((value as core::primitive::f32).to_bits())
                        }
                    }
                    _ => return None,
                };
                let value = if shape.integer {
                    (sum as u32).wrapping_add(old as u32).into()
                } else if wide {
                    (core::primitive::f64::from_bits(old) + sum as core::primitive::f64).to_bits()
                } else {
                    f32::add(old, f32::from_signed(sum, Round::NearestTiesToEven), Round::NearestTiesToEven)
                };
                let reg = d.reg()?;
                let rows = if reg.file == RegFile::Accum { &mut state.agpr } else { &mut state.vgpr };
                let first = usize::from(reg.first) + at * if wide { 2 } else { 1 };
                rows[first][lane] = value as u32;
                if wide {
                    rows[first + 1][lane] = (value >> 32) as u32;
                }
            }
        }
    }
    Some(())
}

/// Eight pairs of indices, the smaller one of each first.
pub fn ascending(random: &mut Random) -> u32 {
    (0..8).fold(0, |word, pair| word | random.pick(&[0b0100_u32, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110]) << (4 * pair))
}

fn prepare(inst: &Inst, state: &mut State, random: &mut Random) {
    let Some(shape) = shape(inst.name()) else { return };
    if let Some(index) = inst.operand(Role::Src2).and_then(Operand::reg).filter(|_| shape.sparse) {
        state.vgpr[usize::from(index.first)] = std::array::from_fn(|_| ascending(random));
    }
    let sum = if shape.sparse { Role::Vdst } else { Role::Src2 };
    for (role, kind) in [(Role::Src0, shape.a), (Role::Src1, shape.b), (sum, shape.sum)] {
        let Some(operand) = inst.operand(role).copied() else { continue };
        let Some(reg) = operand.reg() else { continue };
        if shape.integer && role == sum {
            continue;
        }
        for lane in 0..64 {
            for n in 0..usize::from(operand.dwords) {
                let mut word = 0_u64;
                let bits = kind.bits().min(32);
                for part in 0..32 / bits {
                    let small = match kind {
                        Element::I8 => random.below(256) as i64 - 128,
                        Element::Bf8 => random.below(15) as i64 - 7,
                        Element::Fp8 => random.below(31) as i64 - 15,
                        _ => random.below(129) as i64 - 64,
                    };
                    // Either format of 8 bits: the prepared bits mean a number in both, the value is asked of the
                    // target.
                    let junk = if kind == Element::Xf32 { random.below(1 << 13) } else { 0 };
                    let encoded = kind.encode(small, 1) | if small == 0 { 0 } else { junk };
                    word |= if kind == Element::F64 {
                        if n % 2 == 1 { encoded >> 32 } else { 0 }
                    } else {
                        encoded << (bits * part)
                    };
                }
                let rows = if reg.file == RegFile::Accum { &mut state.agpr } else { &mut state.vgpr };
                rows[usize::from(reg.first) + n][lane] = word as u32;
            }
        }
    }
}

/// The definition of a matrix operation.
pub fn definition(name: &str) -> Option<Definition> {
    let shape = shape(name).filter(|_| !name.ends_with("f8f6f4"))?;
    let wishes = Wishes { apart: true, no_literals: true, ..Wishes::default() };
    let modifier: fn(&mut Random, Modifier) -> Option<u64> =
        if shape.sum == Element::F64 || matches!(shape.a, Element::Fp8 | Element::Bf8) {
            |_, _| Some(0)
        } else {
            |random, modifier| match modifier {
                Modifier::Cbsz => Some(random.below(3)),
                Modifier::Abid => Some(random.below(2)),
                Modifier::Blgp => Some(if random.one_in(2) { random.below(8) } else { 0 }),
                _ => None,
            }
        };
    Some(Definition { wishes, prepare: Some(prepare), modifier: Some(modifier), ..Definition::whole(execute) })
}
