//! Conversions to and from floats of 4 to 16 bits: 8-bit floats of both kinds, those with a common scale, and bfloat16.
//!
//! A small format is the list of the numbers that its codes stand for; a number is converted to the code whose number
//! is nearest.

use rustc_apfloat::Round;
use rustc_apfloat::ieee::{BFloat, Half, Single};
use wavetap::isa::{Inst, Modifier, Operand, RegFile, Role, Target};

use super::choose::Wishes;
use super::definition::Definition;
use super::lane::{self, Lane, T, fact};
use super::number::{Env, convert, f32};
use super::random::Random;
use super::state::{Loose, Place, State};

/// What codes beyond the largest number are.
#[derive(Clone, Copy, PartialEq)]
pub enum Beyond {
    /// There are none: the largest number it is.
    Saturates,
    /// One code: NaN.
    Nan,
    /// Infinity, then NaNs.
    Infinity,
    /// None, but minus zero is NaN.
    MinusZero,
}

/// A small format (OCP's MX and 8-bit specifications; CDNA3 ISA guide for the ones without minus zero).
#[derive(Clone, Copy)]
pub struct Small {
    pub bits: u32,
    pub fraction: u32,
    pub bias: i32,
    pub beyond: Beyond,
}

/// The format that a name means on a target.
pub fn format(name: &str, unsigned_zero: bool) -> Option<Small> {
    let format = |bits, fraction, bias, beyond| Some(Small { bits, fraction, bias, beyond });
    match (name, unsigned_zero) {
        ("fp8", false) => format(8, 3, 7, Beyond::Nan),
        ("bf8", false) => format(8, 2, 15, Beyond::Infinity),
        ("fp8", true) => format(8, 3, 8, Beyond::MinusZero),
        ("bf8", true) => format(8, 2, 16, Beyond::MinusZero),
        ("fp6", _) => format(6, 3, 1, Beyond::Saturates),
        ("bf6", _) => format(6, 2, 3, Beyond::Saturates),
        ("fp4", _) => format(4, 1, 1, Beyond::Saturates),
        _ => None,
    }
}

impl Small {
    /// The number of a positive code, as if all exponents were of numbers.
    pub fn magnitude(self, code: u64) -> f64 {
        let (exponent, fraction) = ((code >> self.fraction) as i32, (code & ((1 << self.fraction) - 1)) as f64);
        let unit = 0.5_f64.powi(self.fraction as i32);
        if exponent == 0 {
            fraction * unit * 2_f64.powi(1 - self.bias)
        } else {
            (1.0 + fraction * unit) * 2_f64.powi(exponent - self.bias)
        }
    }

    pub fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    pub fn largest(self) -> u64 {
        match self.beyond {
            Beyond::Saturates | Beyond::MinusZero => self.sign() - 1,
            Beyond::Nan => self.sign() - 2,
            Beyond::Infinity => self.sign() - 1 - (1 << self.fraction),
        }
    }

    pub fn decode(self, code: u64) -> f64 {
        let (negative, code) = (code & self.sign() != 0, code & (self.sign() - 1));
        let value = if self.beyond == Beyond::MinusZero && negative && code == 0 || code > self.largest() + 1 {
            f64::NAN
        } else if code == self.largest() + 1 {
            if self.beyond == Beyond::Infinity { f64::INFINITY } else { f64::NAN }
        } else {
            self.magnitude(code)
        };
        if negative { -value } else { value }
    }

    /// The nearest code, of two as near the even one; what is too large is as the format has it.
    pub fn encode(self, value: f64) -> u64 {
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        let nan = if self.beyond == Beyond::MinusZero { self.sign() } else { self.sign() - 1 };
        if value.is_nan() {
            return nan;
        }
        let x = value.abs();
        let mut code = (0..=self.largest()).rev().find(|&code| self.magnitude(code) <= x).unwrap_or(0);
        let (below, above) = (x - self.magnitude(code), self.magnitude(code + 1) - x);
        if above < below || above == below && code % 2 == 1 {
            code += 1;
        }
        if code > self.largest() || x.is_infinite() {
            return match self.beyond {
                Beyond::Saturates => sign | self.largest(),
                Beyond::Nan => sign | nan,
                Beyond::Infinity => sign | (self.largest() + 1),
                Beyond::MinusZero => nan,
            };
        }
        if code == 0 && self.beyond == Beyond::MinusZero { 0 } else { sign | code }
    }
}

fn single(bits: u64) -> f64 {
    core::primitive::f32::from_bits(bits as u32).into()
}

fn word(value: f64) -> u64 {
    (value as core::primitive::f32).to_bits().into()
}

/// The 8-bit format at the place that the name has it.
fn eight(inst: &Inst, target: Target) -> Option<Small> {
    let unsigned_zero = fact(target, "generation") == 9 && target.name() < "gfx950";
    let name = inst.name();
    format(if name.contains("fp8") { "fp8" } else { "bf8" }, unsigned_zero)
}

fn active(state: &State, written: u64) -> Vec<usize> {
    (0..state.lanes).filter(|lane| written >> lane & 1 != 0).collect()
}

fn loose(inst: &Inst, state: &mut State, dwords: usize) -> Option<()> {
    let first = usize::from(inst.operand(Role::Vdst)?.reg()?.first);
    state.loose.extend((0..dwords).map(|n| (Place::Vector(first + n), Loose::Nan32)));
    Some(())
}

/// From an 8-bit float to single precision, or from a pair.
fn from_eight(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let (format, env) = (eight(inst, target)?, Env::of(inst, state));
    let pair = inst.name().contains("_pk_");
    let (sources, written) = lane::gather(inst, state, target, &env, if pair { &[T::U16] } else { &[T::U32] })?;
    let to = vector(inst, Role::Vdst)?;
    for lane in active(state, written) {
        let source = sources[0][lane] >> (8 * u32::from(inst.modifiers.byte_sel));
        let number = |code: u64| word(format.decode(code & 0xff));
        if pair {
            state.vgpr[to][lane] = number(source) as u32;
            state.vgpr[to + 1][lane] = number(source >> 8) as u32;
        } else {
            state.vgpr[to][lane] = env.finish(T::F32, number(source)) as u32;
        }
    }
    loose(inst, state, if pair { 2 } else { 1 })
}

/// From an 8-bit float to half precision, or from a pair: every such number is one of half precision.
fn eight_to_half(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let (format, env) = (eight(inst, target)?, Env::of(inst, state));
    let pair = inst.name().contains("_pk_");
    let (sources, written) = lane::gather(inst, state, target, &env, if pair { &[T::U16] } else { &[T::U32] })?;
    for lane in active(state, written) {
        let source = sources[0][lane] >> (8 * u32::from(inst.modifiers.byte_sel));
        let number = |code: u64| Kind::Half.encode(format.decode(code & 0xff));
        let value = if pair { number(source) | number(source >> 8) << 16 } else { number(source) };
        lane::put(inst, state, target, lane, if pair { T::U32 } else { T::U16 }, value)?;
    }
    let first = usize::from(inst.operand(Role::Vdst)?.reg()?.first);
    state.loose.push((Place::Vector(first), Loose::NanPair));
    Some(())
}

/// Two half-precision numbers in one register to 8-bit floats, in one half of a register.
fn halves_to_eight(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let format = eight(inst, target)?;
    let env = Env::of(inst, state);
    let (sources, written) = lane::gather(inst, state, target, &env, &[T::U32])?;
    for lane in active(state, written) {
        let code = |half: u32| format.encode(Kind::Half.decode(sources[0][lane] >> (16 * half) & 0xffff));
        lane::put(inst, state, target, lane, T::U16, code(0) | code(1) << 8)?;
    }
    Some(())
}

/// Two single-precision numbers to 8-bit floats, in one half of a register.
fn to_eight(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let (format, env) = (eight(inst, target)?, Env::of(inst, state));
    let (sources, written) = lane::gather(inst, state, target, &env, &[T::F32, T::F32])?;
    for lane in active(state, written) {
        let code = |at: usize| format.encode(single(sources[at][lane]));
        let first = usize::from(inst.operand(Role::Vdst)?.reg()?.first);
        let shift = if inst.modifiers.op_sel & 8 != 0 { 16 } else { 0 };
        let old = state.vgpr[first][lane];
        state.vgpr[first][lane] = old & !(0xffff << shift) | ((code(0) | code(1) << 8) as u32) << shift;
    }
    Some(())
}

/// A number to an 8-bit float by chance: up if the part that does not fit and random bits make a whole. Sources are
/// below the format's largest number.
fn by_chance(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let (format, env) = (eight(inst, target)?, Env::of(inst, state));
    let (sources, written) = lane::gather(inst, state, target, &env, &[T::F32, T::U32])?;
    // gfx940 has the byte in the upper two bits of op_sel.
    let byte =
        if fact(target, "generation") == 9 { inst.modifiers.op_sel >> 2 & 3 } else { 0 } | inst.modifiers.byte_sel;
    for lane in active(state, written) {
        let (value, chance) = (single(sources[0][lane]), sources[1][lane]);
        let below = (0..format.largest()).rev().find(|&code| format.magnitude(code) <= value.abs())?;
        let (low, high) = (format.magnitude(below), format.magnitude(below + 1));
        // As many bits as do not fit.
        let scale = 2_f64.powi(23 - format.fraction as i32);
        let part = (value.abs() - low) / (high - low) * scale;
        let up = part + (chance >> (9 + format.fraction)) as f64 >= scale;
        let has_sign = value < 0.0 && (format.beyond != Beyond::MinusZero || below + u64::from(up) > 0);
        let code = (below + u64::from(up)) | if has_sign { format.sign() } else { 0 };
        let first = usize::from(inst.operand(Role::Vdst)?.reg()?.first);
        let old = state.vgpr[first][lane];
        state.vgpr[first][lane] = old & !(0xff << (8 * byte)) | (code as u32) << (8 * byte);
    }
    Some(())
}

/// Fills the registers of an operand, lane by lane.
pub fn fill(state: &mut State, operand: Option<&Operand>, mut next: impl FnMut() -> u32) {
    let Some(operand) = operand else { return };
    let Some(reg) = operand.reg() else { return };
    for n in 0..usize::from(operand.dwords) {
        let at = usize::from(reg.first) + n;
        match reg.file {
            RegFile::Vector => state.vgpr[at] = std::array::from_fn(|_| next()),
            RegFile::Accum => state.agpr[at] = std::array::from_fn(|_| next()),
            RegFile::Scalar if (16..100).contains(&at) => state.sgpr[at] = next(),
            RegFile::Scalar => {}
        }
    }
}

fn in_range(inst: &Inst, state: &mut State, random: &mut Random) {
    // Down to what rounds to nothing; the smaller of the largest numbers.
    let exponents = if inst.name().contains("bf8") { 104..141 } else { 112..133 };
    let one = |random: &mut Random| {
        (random.below(2) << 31 | (exponents.start + random.below(exponents.end - exponents.start)) << 23) as u32
    };
    fill(state, inst.operand(Role::Src0), || one(random) | random.next() as u32 & 0x7f_ffff);
}

/// A kind of number.
#[derive(Clone, Copy)]
pub enum Kind {
    Single,
    Half,
    Brain,
    Small(Small),
}

impl Kind {
    pub fn of(name: &str) -> Option<Kind> {
        match name {
            "f32" => Some(Kind::Single),
            "f16" => Some(Kind::Half),
            "bf16" => Some(Kind::Brain),
            name => format(name, false).map(Kind::Small),
        }
    }

    pub fn bits(self) -> usize {
        match self {
            Kind::Single => 32,
            Kind::Half | Kind::Brain => 16,
            Kind::Small(format) => format.bits as usize,
        }
    }

    pub fn decode(self, bits: u64) -> f64 {
        match self {
            Kind::Single => single(bits),
            Kind::Half => super::state::half(bits as u32),
            Kind::Brain => single(bits << 16),
            Kind::Small(format) => format.decode(bits),
        }
    }

    fn encode(self, value: f64) -> u64 {
        use rustc_apfloat::ieee::Double;
        let bits = value.to_bits();
        match self {
            Kind::Single => convert::<Double, Single>(bits, Round::NearestTiesToEven),
            Kind::Half => convert::<Double, Half>(bits, Round::NearestTiesToEven),
            Kind::Brain => convert::<Double, BFloat>(bits, Round::NearestTiesToEven),
            Kind::Small(format) => format.encode(value),
        }
    }
}

/// How many numbers a scaled conversion takes, whether from two operands, and the kinds of its source and its result.
struct Scaled {
    count: usize,
    two: bool,
    to: Kind,
    from: Kind,
}

fn scaled(name: &str) -> Option<Scaled> {
    let parts: Vec<&str> = name.strip_prefix("v_cvt_scalef32_")?.split('_').collect();
    let (shape, to, from) = match parts[..] {
        [to, from] => ("", to, from),
        [shape, to, from] => (shape, to, from),
        _ => return None,
    };
    let count = match shape {
        "" => 1,
        "pk" => 2,
        "pk32" | "2xpk16" => 32,
        _ => return None,
    };
    Some(Scaled {
        count,
        two: shape == "2xpk16" || count == 2 && from == "f32",
        to: Kind::of(to)?,
        from: Kind::of(from)?,
    })
}

/// Bits of consecutive registers.
pub fn bits_at(state: &State, first: usize, lane: usize, at: usize, count: usize) -> u64 {
    (0..count)
        .map(|n| at + n)
        .fold(0, |all, bit| all | u64::from(state.vgpr[first + bit / 32][lane] >> (bit % 32) & 1) << (bit - at))
}

/// Sets bits of consecutive registers.
pub fn set_bits_at(state: &mut State, first: usize, lane: usize, at: usize, count: usize, value: u64) {
    for n in 0..count {
        let word = &mut state.vgpr[first + (at + n) / 32][lane];
        let mask = 1 << ((at + n) % 32);
        *word = if value >> n & 1 != 0 { *word | mask } else { *word & !mask };
    }
}

/// The vector register of an operand.
pub fn vector(inst: &Inst, role: Role) -> Option<usize> {
    inst.operand(role)?.reg().filter(|reg| reg.file == RegFile::Vector).map(|reg| reg.first.into())
}

fn convert_scaled(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let Scaled { count, two, to, from } = scaled(inst.name())?;
    let m = inst.modifiers;
    let scale = lane::read(state, inst.operand(if two { Role::Src2 } else { Role::Src1 })?, T::U32)?;
    let (a, to_at) = (vector(inst, Role::Src0)?, vector(inst, Role::Vdst)?);
    let before = state.clone();
    // Where a register has room for more, `op_sel` says which part.
    let source_bits = if two { 32 } else { (count * from.bits()).min(32) };
    let source_at = match source_bits {
        8 => 8 * usize::from(m.op_sel & 3),
        16 if matches!(from, Kind::Small(_)) => 16 * usize::from(m.op_sel & 1),
        _ => 0,
    };
    let result_at = match count * to.bits() {
        8 => 8 * usize::from(m.op_sel >> 2 & 3),
        16 => 16 * usize::from(m.op_sel >> 3 & 1),
        _ => 0,
    };
    for lane in (0..before.lanes).filter(|lane| before.is_active(*lane)) {
        let factor = 2_f64.powi((scale[lane] >> 23 & 0xff) as i32 - 127);
        for n in 0..count {
            // Two sources take turns.
            let (register, at) = if two { ([a, vector(inst, Role::Src1)?][n % 2], n / 2) } else { (a, n) };
            let value = from.decode(bits_at(&before, register, lane, source_at + at * from.bits(), from.bits()));
            if value.is_nan() && matches!(to, Kind::Small(format) if format.beyond == Beyond::Saturates) {
                return None;
            }
            // As a number, a scale of 255 is NaN.
            let value = match from {
                Kind::Small(_) if factor == 2_f64.powi(128) => f64::NAN,
                Kind::Small(_) => value * factor,
                _ => value / factor,
            };
            set_bits_at(state, to_at, lane, result_at + n * to.bits(), to.bits(), to.encode(value));
        }
    }
    let loose = match to {
        Kind::Single => Loose::Nan32,
        Kind::Half => Loose::NanPair,
        Kind::Brain => Loose::NanBrain,
        Kind::Small(_) => return Some(()),
    };
    state.loose.extend((0..(count * to.bits()).div_ceil(32)).map(|n| (Place::Vector(to_at + n), loose)));
    Some(())
}

/// Scales mostly near one, and no NaN where there is none in the result.
fn prepare_scaled(inst: &Inst, state: &mut State, random: &mut Random) {
    let Some(Scaled { two, to, from, .. }) = scaled(inst.name()) else { return };
    let scale = inst.operand(if two { Role::Src2 } else { Role::Src1 });
    fill(state, scale, || {
        let exponent = if random.one_in(4) { 1 + random.below(254) } else { 120 + random.below(15) };
        (exponent << 23) as u32 | random.next() as u32 & 0x807f_ffff
    });
    let numbers = |from: Kind, random: &mut Random| match from {
        Kind::Single => {
            (random.below(2) << 31
                | (115 + random.below(24)) << 23
                | random.below(8) << 20
                | random.next() & if random.one_in(2) { 0xfffff } else { 0 }) as u32
        }
        Kind::Half => {
            let mut half = || {
                (random.below(2) << 15
                    | random.below(31) << 10
                    | random.below(16) << 6
                    | random.next() & if random.one_in(2) { 63 } else { 0 }) as u32
            };
            half() | half() << 16
        }
        Kind::Brain => {
            let mut brain = || (random.below(2) << 15 | (115 + random.below(24)) << 7 | random.below(128)) as u32;
            brain() | brain() << 16
        }
        Kind::Small(_) => random.next() as u32,
    };
    if matches!(to, Kind::Small(_)) {
        state.sgpr[124] = 127 << 23;
        fill(state, inst.operand(Role::Src0), || numbers(from, random));
        if two {
            fill(state, inst.operand(Role::Src1), || numbers(from, random));
        }
    } else {
        fill(state, inst.operand(Role::Src0), || random.next() as u32);
    }
}

/// Four products of 8-bit floats and a sum, with numbers so small that every order of additions gives the same.
fn dot4(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let kinds: Vec<Small> = inst.name().rsplit('_').take(2).filter_map(|name| format(name, false)).collect();
    let env = Env::of(inst, state);
    let (sources, written) = lane::gather(inst, state, target, &env, &[T::U32, T::U32, T::F32])?;
    for lane in active(state, written) {
        let product = |n: u32| {
            kinds[1].decode(sources[0][lane] >> (8 * n) & 0xff) * kinds[0].decode(sources[1][lane] >> (8 * n) & 0xff)
        };
        let sum = (0..4).map(product).sum::<f64>() + single(sources[2][lane]);
        lane::put(inst, state, target, lane, T::F32, word(sum))?;
    }
    state.loose.push((Place::Vector(inst.operand(Role::Vdst)?.reg()?.first.into()), Loose::Nan32));
    Some(())
}

fn small_numbers(inst: &Inst, state: &mut State, random: &mut Random) {
    let kinds: Vec<Small> = inst.name().rsplit('_').take(2).filter_map(|name| format(name, false)).collect();
    for (role, format) in [Role::Src0, Role::Src1].into_iter().zip(kinds.iter().rev()) {
        // Between 1 and 8, in eighths.
        let mut code = || {
            ((format.bias as u64 + random.below(3)) << format.fraction
                | random.below(1 << format.fraction)
                | random.below(2) << 7) as u32
        };
        fill(state, inst.operand(role), || u32::from_le_bytes(std::array::from_fn(|_| code() as u8)));
    }
    fill(state, inst.operand(Role::Src2), || {
        f32::from_signed(random.below(512) as i64 - 256, Round::NearestTiesToEven) as u32
    });
}

fn brains(name: &str) -> Option<Lane> {
    let op = |dst, src, loose, f| Some(Lane { dst, src, f, loose, carry: None });
    match name {
        "v_cvt_f32_bf16" => op(T::U32, &[T::Brain], None, |_, s| s[0] << 16),
        "v_cvt_pk_bf16_f32" => op(T::U32, &[T::F32, T::F32], Some(Loose::NanBrain), |_, s| {
            let brain = |bits: u64| convert::<Single, BFloat>(bits, Round::NearestTiesToEven);
            brain(s[0]) | brain(s[1]) << 16
        }),
        "v_cvt_pk_f16_f32" => op(T::H16, &[T::F32, T::F32], None, |_, s| {
            let half = |bits: u64| convert::<Single, Half>(bits, Round::NearestTiesToEven);
            half(s[0]) | half(s[1]) << 16
        }),
        _ => None,
    }
}

/// The definition of a conversion whose lanes are simple.
pub fn lane_definition(name: &str) -> Option<Lane> {
    brains(name)
}

/// The definition of any other conversion of small floats.
pub fn definition(name: &str) -> Option<Definition> {
    // A register wholly written where it is not one of bits; neither clamp nor output modifier, whose meaning here is
    // not documented.
    let whole: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::DstSel => Some(6),
        Modifier::Clamp | Modifier::Omod => Some(0),
        Modifier::ByteSel => Some(random.below(4)),
        Modifier::OpSel => Some(random.below(2)),
        _ => None,
    };
    let upper: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Clamp | Modifier::Omod => Some(0),
        Modifier::OpSel => Some(8 * random.below(2)),
        _ => None,
    };
    let quarters: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Clamp | Modifier::Omod | Modifier::Neg | Modifier::Abs => Some(0),
        Modifier::ByteSel => Some(random.below(4)),
        Modifier::OpSel => Some(4 * random.below(4)),
        _ => None,
    };
    let parts: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Clamp | Modifier::Omod | Modifier::Neg | Modifier::Abs => Some(0),
        Modifier::OpSel => Some(random.below(16)),
        _ => None,
    };
    let nothing: fn(&mut Random, Modifier) -> Option<u64> = |_, modifier| match modifier {
        Modifier::OpSelHi => Some(7),
        _ => None,
    };
    let numbers =
        Wishes { no_inline: true, no_literals: true, no_float_constants: true, apart: true, ..Wishes::default() };
    Some(match name {
        "v_cvt_f32_fp8" | "v_cvt_f32_bf8" | "v_cvt_pk_f32_fp8" | "v_cvt_pk_f32_bf8" => Definition {
            modifier: Some(whole),
            wishes: Wishes { no_inline: true, ..Wishes::default() },
            ..Definition::whole(from_eight)
        },
        "v_cvt_f16_fp8" | "v_cvt_f16_bf8" | "v_cvt_pk_f16_fp8" | "v_cvt_pk_f16_bf8" => {
            let halves: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
                Modifier::Clamp | Modifier::Omod => Some(0),
                Modifier::ByteSel => Some(random.below(4)),
                Modifier::OpSel => Some(random.pick(&[0, 1, 8, 9])),
                _ => None,
            };
            let wishes = Wishes { no_inline: true, no_literals: true, denormals: true, ..Wishes::default() };
            Definition { modifier: Some(halves), wishes, ..Definition::whole(eight_to_half) }
        }
        "v_cvt_pk_fp8_f16" | "v_cvt_pk_bf8_f16" => {
            use super::random::Bits;
            let wishes = Wishes { no_inline: true, no_literals: true, ..Wishes::default() };
            // Which of the two numbers the signs would be of, is not documented.
            let upper: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
                Modifier::Clamp | Modifier::Omod | Modifier::Neg | Modifier::Abs => Some(0),
                Modifier::OpSel => Some(8 * random.below(2)),
                _ => None,
            };
            Definition { modifier: Some(upper), wishes, types: &[Bits::PairHalf], ..Definition::whole(halves_to_eight) }
        }
        "v_cvt_pk_fp8_f32" | "v_cvt_pk_bf8_f32" => {
            use super::random::Bits;
            Definition { modifier: Some(upper), types: &[Bits::Single, Bits::Single], ..Definition::whole(to_eight) }
        }
        "v_cvt_sr_fp8_f32" | "v_cvt_sr_bf8_f32" => Definition {
            modifier: Some(quarters),
            prepare: Some(in_range),
            wishes: numbers,
            ..Definition::whole(by_chance)
        },
        "v_dot4_f32_fp8_fp8" | "v_dot4_f32_fp8_bf8" | "v_dot4_f32_bf8_fp8" | "v_dot4_f32_bf8_bf8" => {
            let wishes = Wishes { plain: true, ..numbers };
            Definition { wishes, modifier: Some(nothing), prepare: Some(small_numbers), ..Definition::whole(dot4) }
        }
        _ => {
            scaled(name)?;
            Definition {
                wishes: numbers,
                modifier: Some(parts),
                prepare: Some(prepare_scaled),
                ..Definition::whole(convert_scaled)
            }
        }
    })
}
