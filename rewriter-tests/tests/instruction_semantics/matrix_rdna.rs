//! Matrix operations of RDNA: where every element is, follows AMD's matrix instruction calculator, on gfx12 by its
//! formulas for each size of numbers and of waves.
//!
//! The hardware's order of additions is not documented, so the elements are small integers, of which every order gives
//! the same sum.

use rustc_apfloat::Round;
use rustc_apfloat::ieee::{BFloat, Half, Single};
use wavetap::isa::{Inst, Modifier, Operand, Role, Target, Value};

use super::choose::Wishes;
use super::definition::Definition;
use super::matrix::ascending;
use super::number::{convert, f32};
use super::random::Random;
use super::state::{State, half};

const NEAREST: Round = Round::NearestTiesToEven;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Element {
    F32,
    F16,
    Bf16,
    Fp8,
    Bf8,
    /// Integers of so many bits.
    Int(usize),
}

impl Element {
    fn of(name: &str) -> Option<Element> {
        Some(match name {
            "f32" => Element::F32,
            "f16" => Element::F16,
            "bf16" => Element::Bf16,
            "fp8" => Element::Fp8,
            "bf8" => Element::Bf8,
            "iu8" => Element::Int(8),
            "iu4" => Element::Int(4),
            "i32" => Element::Int(32),
            _ => return None,
        })
    }

    fn bits(self) -> usize {
        match self {
            Element::F32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::Fp8 | Element::Bf8 => 8,
            Element::Int(bits) => bits,
        }
    }

    fn encode(self, n: i64) -> u64 {
        let single = f32::from_signed(n, NEAREST);
        match self {
            Element::F32 => single,
            Element::F16 => convert::<Single, Half>(single, NEAREST),
            Element::Bf16 => convert::<Single, BFloat>(single, NEAREST),
            // The numbers that both have, by table: 0 to 4.
            Element::Fp8 => {
                u64::from([0_u8, 0x38, 0x40, 0x44, 0x48][n.unsigned_abs() as usize] | if n < 0 { 0x80 } else { 0 })
            }
            Element::Bf8 => {
                u64::from([0_u8, 0x3c, 0x40, 0x42, 0x44][n.unsigned_abs() as usize] | if n < 0 { 0x80 } else { 0 })
            }
            Element::Int(bits) => n as u64 & (u64::MAX >> (64 - bits)),
        }
    }

    fn decode(self, bits: u64, signed: bool) -> i64 {
        match self {
            Element::F32 => core::primitive::f32::from_bits(bits as u32) as i64,
            Element::F16 => half(bits as u32) as i64,
            Element::Bf16 => core::primitive::f32::from_bits((bits as u32) << 16) as i64,
            Element::Fp8 | Element::Bf8 => (-4..=4).find(|n| self.encode(*n) == bits).unwrap_or(0),
            Element::Int(width) if signed => (bits << (64 - width)) as i64 >> (64 - width),
            Element::Int(_) => bits as i64,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Of C, and of D.
    from: Element,
    sum: Element,
    k: usize,
    a: Element,
    b: Element,
    sparse: bool,
}

/// `v_wmma_f32_16x16x16_fp8_bf8`, `v_swmmac_i32_16x16x64_iu4`.
fn shape(name: &str) -> Option<Shape> {
    let dense = name.strip_prefix("v_wmma_");
    let (sum, rest) = dense.or_else(|| name.strip_prefix("v_swmmac_"))?.split_once("_16x16x")?;
    let (k, types) = rest.split_once('_')?;
    let (a, b) = types.split_once('_').unwrap_or((types, types));
    let (from, sum) = if sum == "bf16f32" { ("f32", "bf16") } else { (sum, sum) };
    let shape = Shape {
        from: Element::of(from)?,
        sum: Element::of(sum)?,
        k: k.parse().ok()?,
        a: Element::of(a)?,
        b: Element::of(b)?,
        sparse: dense.is_none(),
    };
    // gfx1250 has more sparse ones.
    (!shape.sparse || shape.k <= 32 || name.ends_with("x64_iu4")).then_some(shape)
}

/// Which sixteen lanes have number `k` of a column of B, or of a dense row of A, and where in them: gfx12. Of the
/// larger matrices of gfx1250 the two groups of lanes have eight numbers by turns, of single precision two
/// (composable_kernel's mapping).
fn place(shape: Shape, lanes: usize, k: usize) -> (usize, usize) {
    let wide = lanes == 64;
    match (shape.sparse, shape.b.bits(), shape.k) {
        (false, 32, _) => (k / 2, k % 2),
        (false, 16, 32) | (false, 8, 64 | 128) => (k / 8 % 2, k / 16 * 8 + k % 8),
        (false, 16, _) if wide => (2 * (k / 8 % 2) + k / 4 % 2, k % 4),
        (false, 16, _) => (k / 4 % 2, k / 8 * 4 + k % 4),
        (false, 8, _) if wide => (2 * (k / 4 % 2) + k / 8, k % 4),
        (false, 8, _) => (k / 8, k % 8),
        (false, _, 16) => (k / 8, k % 8),
        (false, ..) if wide => (2 * (k / 8 % 2) + k / 16, k % 8),
        (false, ..) => (k / 16, k % 16),
        (true, 16, _) if wide => (k / 8, k % 8),
        (true, 16, _) => (k / 8 % 2, k / 16 * 8 + k % 8),
        (true, _, 32) if wide => (2 * (k / 8 % 2) + k / 16, k % 8),
        (true, _, 32) => (k / 16, k % 16),
        (true, ..) if wide => (2 * (k / 16 % 2) + k / 32, k % 16),
        (true, ..) => (k / 32, k % 32),
    }
}

/// The same of four numbers along K of a sparse row of A, of which two are there: the sixteen lanes, and the first
/// number in them.
fn place_of_four(shape: Shape, lanes: usize, k: usize) -> (usize, usize) {
    let wide = lanes == 64;
    match (shape.a.bits(), shape.k) {
        (16, _) if wide => (k / 8, k / 4 % 2 * 2),
        (16, _) => (k / 8 % 2, (k / 16 * 2 + k / 4 % 2) * 2),
        (8, _) if wide => (2 * (k / 8 % 2) + k / 16, k / 4 % 2 * 2),
        // Of 4-bit numbers 32 lanes of 64 have all.
        (_, 32) => (k / 16, k / 4 % 4 * 2),
        _ if wide => (2 * (k / 16 % 2) + k / 32, k / 4 % 4 * 2),
        _ => (k / 32, k / 4 % 8 * 2),
    }
}

/// Register, lane and first bit of an element of C and D.
fn place_of_sum(element: Element, inst: &Inst, newer: bool, i: usize, j: usize) -> (usize, usize, usize) {
    let wide = inst.wave_size == 64;
    let narrow = element.bits() == 16;
    let (register, lane) = match (newer, wide) {
        (false, false) => (i / 2, 16 * (i % 2) + j),
        (false, true) => (i / 4, 16 * (i % 4) + j),
        (true, false) => (i % 8, 16 * (i / 8) + j),
        (true, true) => (i % 4, 32 * (i / 4 % 2) + 16 * (i / 8) + j),
    };
    match (narrow, newer) {
        (true, true) => (register / 2, lane, register % 2 * 16),
        (true, false) => (register, lane, usize::from(inst.modifiers.op_sel >> 2 & 1) * 16),
        _ => (register, lane, 0),
    }
}

fn bits(state: &State, operand: &Operand, width: usize, lane: usize, n: usize) -> Option<u64> {
    let word = state.vgpr[usize::from(operand.reg()?.first) + n * width / 32][lane];
    Some(u64::from(word) >> (n * width % 32) & (u64::MAX >> (64 - width)))
}

fn execute(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let shape = shape(inst.name())?;
    let m = inst.modifiers;
    let (a, b, c, d) =
        (inst.operand(Role::Src0)?, inst.operand(Role::Src1)?, inst.operand(Role::Src2)?, inst.operand(Role::Vdst)?);
    let newer = target.name().starts_with("gfx12");
    let lanes = usize::from(inst.wave_size);
    let before = state.clone();
    let value = |at: usize, lane: usize, n: usize| {
        let (operand, element) = [(a, shape.a), (b, shape.b)][at];
        let value = element.decode(bits(&before, operand, element.bits(), lane, n)?, m.neg >> at & 1 != 0);
        let sign = if n.is_multiple_of(2) || element.bits() == 32 { m.neg } else { m.neg_hi };
        Some(if element.bits() >= 16 && sign >> at & 1 != 0 { -value } else { value })
    };
    let mut rows = vec![vec![0; shape.k]; 16];
    let mut columns = rows.clone();
    for (line, k) in (0..16).flat_map(|line| (0..shape.k).map(move |k| (line, k))) {
        // On gfx11 every lane has all of a row.
        let (group, n) = if newer { place(shape, lanes, k) } else { (0, k) };
        columns[line][k] = value(1, line + 16 * group, n)?;
        if !shape.sparse {
            rows[line][k] = value(0, line + 16 * group, n)?;
        } else if k.is_multiple_of(4) {
            let (group, n) = place_of_four(shape, lanes, k);
            let lane = line + 16 * group;
            let each = usize::from(a.dwords) * 32 / shape.a.bits();
            let word = before.vgpr[usize::from(c.reg()?.first)][lane] >> (2 * each * usize::from(m.index_key));
            for n in [n, n + 1] {
                rows[line][k + (word >> (2 * n) & 3) as usize] = value(0, lane, n)?;
            }
        }
    }
    for (i, j) in (0..16).flat_map(|i| (0..16).map(move |j| (i, j))) {
        let (register, lane, shift) = place_of_sum(shape.from, inst, newer, i, j);
        let from = if shape.sparse { d } else { c };
        let old = match from.value {
            Value::Reg(reg) => {
                let word = before.vgpr[usize::from(reg.first) + register][lane] >> shift;
                shape.from.decode(u64::from(word) & (u64::MAX >> (64 - shape.from.bits())), true)
            }
            Value::InlineInt(n) if matches!(shape.sum, Element::Int(_)) || n == 0 => n.into(),
            Value::InlineFloat(code @ 242..=247) if !matches!(shape.sum, Element::Int(_)) => {
                [1, -1, 2, -2, 4, -4][usize::from(code) - 242]
            }
            _ => return None,
        };
        let old = match shape.sum {
            Element::Int(_) => old,
            _ if shape.sparse => old,
            _ => {
                let old = if m.neg_hi & 4 != 0 { old.abs() } else { old };
                if m.neg & 4 != 0 { -old } else { old }
            }
        };
        let sum = old + rows[i].iter().zip(&columns[j]).map(|(x, y)| x * y).sum::<i64>();
        let sum = if m.clamp { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
        let (register, lane, shift) = place_of_sum(shape.sum, inst, newer, i, j);
        let word = &mut state.vgpr[usize::from(d.reg()?.first) + register][lane];
        let mask = (u64::MAX >> (64 - shape.sum.bits())) as u32;
        *word = *word & !(mask << shift) | (shape.sum.encode(sum) as u32) << shift;
    }
    Some(())
}

fn prepare(inst: &Inst, state: &mut State, random: &mut Random) {
    let Some(shape) = shape(inst.name()) else { return };
    let sum = if shape.sparse { Role::Vdst } else { Role::Src2 };
    if let Some(index) = inst.operand(Role::Src2).and_then(Operand::reg).filter(|_| shape.sparse) {
        state.vgpr[usize::from(index.first)] = std::array::from_fn(|_| ascending(random));
    }
    for (role, kind) in [(Role::Src0, shape.a), (Role::Src1, shape.b), (sum, shape.from)] {
        let Some(operand) = inst.operand(role).copied() else { continue };
        let Some(reg) = operand.reg().filter(|_| kind != Element::Int(32)) else { continue };
        // A lane that has all of a row has what the other sixteen have.
        let whole = role != sum && usize::from(operand.dwords) * 32 == kind.bits() * shape.k;
        for (n, lane) in (0..usize::from(operand.dwords)).flat_map(|n| (0..64).map(move |lane| (n, lane))) {
            let row = &mut state.vgpr[usize::from(reg.first) + n];
            let number = |random: &mut Random| match kind {
                Element::Int(bits) => random.below(1 << bits) as i64,
                _ if role == sum => random.below(17) as i64 - 8,
                _ => random.below(7) as i64 - 3,
            };
            row[lane] = (0..32 / kind.bits())
                .fold(0, |word, at| word | (kind.encode(number(random)) as u32) << (at * kind.bits()));
            if whole && lane >= 16 {
                row[lane] = row[lane % 16];
            }
        }
    }
}

/// The definition of a matrix operation.
pub fn definition(name: &str) -> Option<Definition> {
    let shape = shape(name)?;
    let wishes = Wishes { apart: true, no_literals: true, ..Wishes::default() };
    let integers: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Neg => Some(random.below(4)),
        Modifier::Clamp => Some(random.below(2)),
        Modifier::IndexKey => Some(random.below(4)),
        _ => Some(0),
    };
    let halves: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Neg | Modifier::NegHi => Some(random.below(4)),
        Modifier::OpSel => Some(random.below(2) * 4),
        Modifier::IndexKey => Some(random.below(4)),
        _ => Some(0),
    };
    let signs: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Neg | Modifier::NegHi => Some(random.below(8)),
        Modifier::OpSel => Some(random.below(2) * 4),
        _ => Some(0),
    };
    let bytes: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::IndexKey => Some(random.below(4)),
        Modifier::Neg | Modifier::NegHi => Some(random.below(2) * 4),
        _ => Some(0),
    };
    let singles: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Neg => Some(random.below(8)),
        Modifier::NegHi => Some(random.below(2) * 4),
        _ => Some(0),
    };
    let modifier = match (shape.a, shape.sparse) {
        (Element::F32, _) => singles,
        (Element::Int(_), _) => integers,
        (Element::F16 | Element::Bf16, true) => halves,
        (Element::F16 | Element::Bf16, false) => signs,
        _ => bytes,
    };
    Some(Definition { wishes, prepare: Some(prepare), modifier: Some(modifier), ..Definition::whole(execute) })
}
