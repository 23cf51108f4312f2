//! Vector operations on lanes that are of no family: truth tables, shifts that pack, a generator of random numbers, a
//! product for lighting, and the bits of 2/pi.

use std::sync::OnceLock;

use wavetap::isa::{Inst, Modifier, Role, Target};

use super::choose::Wishes;
use super::definition::Definition;
use super::lane::{self, Lane, T};
use super::number::{Env, f32};
use super::random::Random;
use super::state::State;

fn op(dst: T, src: &'static [T], f: fn(&Env, &[u64]) -> u64) -> Option<Lane> {
    Some(Lane { dst, src, f, loose: None, carry: None })
}

fn single(bits: u64) -> core::primitive::f32 {
    core::primitive::f32::from_bits(bits as u32)
}

/// An unsigned number of many bits, the lowest word first.
type Long = Vec<u32>;
/// Words of a fraction: more bits than 2/pi is ever shifted by, and as many again.
const WORDS: usize = 96;

fn divided(number: &Long, by: u64) -> Long {
    let mut rest = 0;
    let mut result = vec![0; number.len()];
    for (to, word) in result.iter_mut().zip(number).rev() {
        let all = rest << 32 | u64::from(*word);
        (*to, rest) = ((all / by) as u32, all % by);
    }
    result
}

/// `a + b`, or `a - b`.
fn sum(a: &Long, b: &Long, minus: bool) -> Long {
    let mut carry = i64::from(minus);
    let word = |(a, b): (&u32, &u32)| {
        let all = u64::from(*a) + u64::from(if minus { !*b } else { *b }) + carry as u64;
        carry = (all >> 32) as i64;
        all as u32
    };
    a.iter().zip(b).map(word).collect()
}

/// The arc tangent of 1/n, with one whole word.
fn arc_tangent(n: u64) -> Long {
    let mut power = vec![0; WORDS];
    power[WORDS - 1] = 1;
    power = divided(&power, n);
    let mut result = power.clone();
    for k in 1.. {
        power = divided(&power, n * n);
        if power.iter().all(|&word| word == 0) {
            break;
        }
        result = sum(&result, &divided(&power, 2 * k + 1), k % 2 == 1);
    }
    result
}

/// The bits of 2/pi after the point, the highest first: by division of one by pi / 2 (Machin's formula).
fn two_over_pi() -> &'static [bool] {
    static BITS: OnceLock<Vec<bool>> = OnceLock::new();
    BITS.get_or_init(|| {
        let times = |number: &Long, n: usize| (1..n).fold(number.clone(), |all, _| sum(&all, number, false));
        // pi / 4 = 4 arctan 1/5 - arctan 1/239
        let quarter = sum(&times(&arc_tangent(5), 4), &arc_tangent(239), true);
        let half = times(&quarter, 2);
        let mut rest = vec![0; WORDS];
        rest[WORDS - 1] = 1;
        (0..1400)
            .map(|_| {
                rest = times(&rest, 2);
                let fits = rest.iter().rev().cmp(half.iter().rev()).is_ge();
                if fits {
                    rest = sum(&rest, &half, true);
                }
                fits
            })
            .collect()
    })
}

/// A segment of 53 bits of 2/pi, as many segments on as the second source says and further for large arguments (AMD ISA
/// guides, "V_TRIG_PREOP_F64").
fn trig_preop(s: &[u64]) -> u64 {
    let exponent = (s[0] >> 52 & 0x7ff) as i32;
    let shift = (s[1] & 31) as i32 * 53 + (exponent - 1077).max(0);
    let bits = two_over_pi();
    // Beyond the 1201 bits that the hardware has.
    let bit = |n: i32| u64::from(n < 1201 && bits[n as usize]);
    let segment = (0..53).fold(0, |all, n| all << 1 | bit(shift + n));
    let scale = -53 - shift + if exponent >= 1968 { 128 } else { 0 };
    // Exact in two steps.
    (segment as core::primitive::f64 * 2_f64.powi(scale / 2) * 2_f64.powi(scale - scale / 2)).to_bits()
}

/// The definition of such an operation.
pub fn lane_definition(name: &str) -> Option<Lane> {
    const LARGEST: u64 = 0xff7f_ffff;
    match name {
        "v_ashr_pk_i8_i32" => op(T::U16, &[T::U32, T::U32, T::U32], |_, s| packed(s, -128, 127)),
        "v_ashr_pk_u8_i32" => op(T::U16, &[T::U32, T::U32, T::U32], |_, s| packed(s, 0, 255)),
        // A feedback register of 32 bits (taps of 0xc5).
        "v_prng_b32" => op(T::U32, &[T::U32], |_, s| s[0] << 1 & 0xffff_ffff ^ (0xc5 * (s[0] >> 31))),
        "v_mullit_f32" => op(T::F32, &[T::F32, T::F32, T::F32], |e, s| {
            let (b, c) = (single(s[1]), single(s[2]));
            let unlit =
                s[1] == LARGEST || b == core::primitive::f32::NEG_INFINITY || b.is_nan() || c <= 0.0 || c.is_nan();
            // Nothing times anything is nothing.
            let zero = single(s[0]) == 0.0 || b == 0.0;
            if unlit {
                LARGEST
            } else if zero {
                0
            } else {
                f32::mul(s[0], s[1], e.round32)
            }
        }),
        "v_trig_preop_f64" => op(T::F64, &[T::F64, T::U32], |_, s| trig_preop(s)),
        "v_cvt_i32_i16" => op(T::U32, &[T::U16], |_, s| s[0] as i16 as u32 as u64),
        "v_cvt_u32_u16" => op(T::U32, &[T::U16], |_, s| s[0]),
        "v_cvt_pk_i16_f32" => op(T::U32, &[T::F32, T::F32], |_, s| {
            let half = |bits: u64| f32::to_integer(bits, 16, true, rustc_apfloat::Round::TowardZero);
            half(s[0]) | half(s[1]) << 16
        }),
        "v_cvt_pk_u16_f32" => op(T::U32, &[T::F32, T::F32], |_, s| {
            let half = |bits: u64| f32::to_integer(bits, 16, false, rustc_apfloat::Round::TowardZero);
            half(s[0]) | half(s[1]) << 16
        }),
        "v_mul_lo_i32" => op(T::U32, &[T::U32, T::U32], |_, s| s[0].wrapping_mul(s[1]) & 0xffff_ffff),
        _ => None,
    }
}

fn packed(s: &[u64], least: i32, most: i32) -> u64 {
    let byte = |n: usize| ((s[n] as u32 as i32) >> (s[2] & 31)).clamp(least, most) as u64 & 0xff;
    byte(0) | byte(1) << 8
}

/// Each bit of the result is the entry of a table that the three sources' bits name.
fn table(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let narrow = inst.name().ends_with("16");
    let ty = if narrow { T::U16 } else { T::U32 };
    let env = Env::of(inst, state);
    let (s, written) = lane::gather(inst, state, target, &env, if narrow { &[T::U16; 3] } else { &[T::U32; 3] })?;
    for lane in (0..state.lanes).filter(|lane| written >> lane & 1 != 0) {
        let bit = |at: usize, n: u32| s[at][lane] >> n & 1;
        let value = (0..32).fold(0, |all, n| {
            let entry = 4 * bit(0, n) + 2 * bit(1, n) + bit(2, n);
            all | u64::from(inst.modifiers.bitop3 >> entry & 1) << n
        });
        lane::put(inst, state, target, lane, ty, value)?;
    }
    inst.operand(Role::Vdst).map(|_| ())
}

/// Signs of the sources are in their negations.
fn signed_dot(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let width = if inst.name() == "v_dot4_i32_iu8" { 8 } else { 4 };
    let env = Env::of(inst, state);
    let neg = inst.modifiers.neg;
    let (s, written) = lane::gather(inst, state, target, &env, &[T::U32, T::U32, T::U32])?;
    for lane in (0..state.lanes).filter(|lane| written >> lane & 1 != 0) {
        let part = |at: usize, n: u32| {
            let raw = (s[at][lane] >> (width * n) & ((1 << width) - 1)) as i64;
            if neg >> at & 1 != 0 && raw >> (width - 1) != 0 { raw - (1 << width) } else { raw }
        };
        let sum = (0..32 / width).map(|n| part(0, n) * part(1, n)).sum::<i64>() + i64::from(s[2][lane] as u32 as i32);
        let sum = if env.clamp { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
        lane::put(inst, state, target, lane, T::U32, sum as u64 & 0xffff_ffff)?;
    }
    Some(())
}

/// The definition of such an operation that needs more than its lane.
pub fn definition(name: &str) -> Option<Definition> {
    let entries: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Bitop3 => Some(random.below(256)),
        Modifier::Clamp | Modifier::Omod => Some(0),
        _ => None,
    };
    let signs: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Neg => Some(random.below(4)),
        Modifier::Clamp => Some(random.below(2)),
        Modifier::OpSelHi => Some(7),
        Modifier::OpSel | Modifier::NegHi => Some(0),
        _ => None,
    };
    let wishes = Wishes { no_float_constants: true, ..Wishes::default() };
    Some(match name {
        "v_bitop3_b32" | "v_bitop3_b16" => Definition { modifier: Some(entries), wishes, ..Definition::whole(table) },
        "v_dot4_i32_iu8" | "v_dot8_i32_iu4" => {
            let wishes = Wishes { no_inline: true, no_literals: true, ..wishes };
            Definition { modifier: Some(signs), wishes, ..Definition::whole(signed_dot) }
        }
        _ => return None,
    })
}
