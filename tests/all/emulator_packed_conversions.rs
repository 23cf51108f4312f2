//! Conversions of 8 and 16 numbers at once between usual floats and those of 4, 6 and 8 bits, and look-ups of 16 codes
//! (gfx1250), against definitions of their own that search for the nearest code. Instructions are words of LLVM's
//! assembler.

use crate::emulated::small_float::{Float, float};
use crate::emulated::{Bench, bare, compiler_is_there, patterns};
use wavetap::emulator::FaultKind;

const LANES: usize = 32;
/// Words of a lane's sources: v[16:31] the first, v32 to v34 the others.
const INPUT: usize = 20;

const FP8: Float = float(4, 3, 7, false, Some(0x7f));
const BF8: Float = float(5, 2, 15, true, None);
const FP6: Float = float(2, 3, 1, false, None);
const BF6: Float = float(3, 2, 3, false, None);
const FP4: Float = float(2, 1, 1, false, None);
const F32: Float = float(8, 23, 127, true, None);
const F16: Float = float(5, 10, 15, true, None);
const BF16: Float = float(8, 7, 127, true, None);

impl Float {
    /// The largest code of a number.
    fn largest(self) -> u32 {
        let all = (1 << (self.exponent + self.fraction)) - 1;
        match (self.ieee, self.nan) {
            (true, _) => all - (1 << self.fraction),
            (false, Some(_)) => all - 1,
            (false, None) => all,
        }
    }

    /// Whether a code is the nearest to a value, ties to even; beyond the largest number by half a step it is infinity
    /// or NaN, or the largest number.
    fn is_nearest(self, code: u32, value: f64, saturates: bool) -> bool {
        let size = self.exponent + self.fraction;
        let found = self.value(code);
        if value.is_nan() || found.is_nan() && !self.ieee && value.is_infinite() {
            return found.is_nan();
        }
        let magnitude = code & ((1 << size) - 1);
        if (code >> size & 1 != 0) != value.is_sign_negative() && !found.is_nan() {
            return false;
        }
        let (value, largest) = (value.abs(), self.largest());
        let step = self.value(largest) - self.value(largest - 1);
        let limit = self.value(largest) + step / 2.0;
        // The largest number's last bit says whether half a step above it is it.
        if value > limit || value == limit && largest & 1 == 1 && self.nan.is_none() && self.ieee {
            let no_special = !self.ieee && self.nan.is_none();
            return match saturates && value.is_finite() || no_special {
                true => magnitude == largest,
                false => self.value(magnitude).is_infinite() || self.value(magnitude).is_nan() && !self.ieee,
            };
        }
        let distance = |code: u32| (self.value(code) - value).abs();
        let here = distance(magnitude);
        let near = [magnitude.checked_sub(1), (magnitude < largest).then_some(magnitude + 1)];
        magnitude <= largest
            && near
                .into_iter()
                .flatten()
                .all(|other| here < distance(other) || here == distance(other) && magnitude.is_multiple_of(2))
    }
}

/// An instruction: its words, how many numbers from what to what.
#[derive(Debug, Clone, Copy)]
struct Conversion {
    words: &'static str,
    count: usize,
    from: Float,
    to: Float,
    /// The lane and byte that have the scale of a lane, where it is a byte.
    scale: Option<fn(usize) -> (usize, usize)>,
}

fn bytes_by_half(lane: usize) -> (usize, usize) {
    (lane % 16, lane / 16)
}

fn first_byte(lane: usize) -> (usize, usize) {
    (lane % 16, 0)
}

include!("packed_conversions/instructions.rs");

fn kernel(name: &str, body: &str, saturates: bool) -> String {
    let loads: String = (0..5)
        .map(|n| format!("global_load_dwordx4 v[{}:{}], v1, s[4:5] offset:{}\n", 16 + 4 * n, 19 + 4 * n, 16 * n))
        .collect();
    let stores: String = (0..4)
        .map(|n| format!("global_store_dwordx4 v2, v[{}:{}], s[6:7] offset:{}\n", 40 + 4 * n, 43 + 4 * n, 16 * n))
        .collect();
    let clear: String = (40..56).map(|n| format!("v_mov_b32 v{n}, 0\n")).collect();
    // MODE.FP16_OVFL is bit 23.
    let mode = if saturates { "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n" } else { "" };
    let body = format!(
        "v_mul_u32_u24 v1, 80, v0\nv_lshlrev_b32 v2, 6, v0\n{mode}{loads}{clear}s_wait_loadcnt 0\n{body}\n{stores}"
    );
    bare::kernel("gfx1250", name, 0, &body)
}

fn run(bench: &mut Bench, kernel: &str, input: &[[u32; INPUT]; LANES]) -> Vec<[u32; 16]> {
    let (from, to) = (bench.buffer(input.as_flattened()), bench.buffer(&[0; 16 * LANES]));
    bench.run(kernel, 1, LANES as u16, 0, &[from, to]).unwrap_or_else(|fault| panic!("{kernel}: {fault}"));
    bench.read(to, 16 * LANES).as_chunks().0.to_vec()
}

fn field(words: &[u32], at: usize, bits: usize) -> u32 {
    (0..bits).map(|n| (words[(at + n) / 32] >> ((at + n) % 32) & 1) << n).sum()
}

fn set_field(words: &mut [u32], at: usize, bits: usize, value: u32) {
    for n in 0..bits {
        words[(at + n) / 32] = words[(at + n) / 32] & !(1 << ((at + n) % 32)) | (value >> n & 1) << ((at + n) % 32);
    }
}

/// Codes to convert: every one of few bits; of others corners, numbers near those of the small format, and random ones.
fn sources(conversion: &Conversion) -> Vec<u32> {
    if conversion.scale.is_some() {
        return (0..1 << conversion.from.bits()).collect();
    }
    let mask = if conversion.from.bits() == 32 { u32::MAX } else { 0xffff };
    let mut all: Vec<u32> = patterns(700).into_iter().map(|word| word & mask).collect();
    let size = conversion.from.exponent + conversion.from.fraction;
    // Numbers of the small format, half-way between two, and beside that.
    for code in 0..1 << (conversion.to.bits() - 1) {
        let [one, next] = [code, code + 1].map(|code| conversion.to.value(code));
        for value in [one, (one + next) / 2.0].into_iter().filter(|value| value.is_finite()) {
            let at = (0..1 << size).collect::<Vec<u32>>().partition_point(|code| conversion.from.value(*code) < value);
            let at = at as u32;
            all.extend([at, at + 1, at.saturating_sub(1), at | 1 << size]);
        }
    }
    all
}

fn check(conversions: &[Conversion], saturates: bool) {
    let text: String =
        conversions.iter().enumerate().map(|(n, of)| kernel(&format!("k{n}"), of.words, saturates)).collect();
    let mut bench = bare::bench("gfx1250", true, 1, &bare::assemble("gfx1250", &text));
    for (n, conversion) in conversions.iter().enumerate() {
        let Conversion { count, from, to, .. } = *conversion;
        let has_nan = to.ieee || to.nan.is_some();
        let codes: Vec<u32> = if from.bits() == 32 { singles(conversion) } else { sources(conversion) };
        let codes: Vec<u32> = codes.into_iter().filter(|code| has_nan || !from.value(*code).is_nan()).collect();
        let scales = patterns(4000);
        for (round, codes) in codes.chunks(count * LANES).enumerate() {
            let mut input = [[0; INPUT]; LANES];
            for (lane, row) in input.iter_mut().enumerate() {
                for n in 0..count {
                    set_field(row, n * from.bits(), from.bits(), codes[(lane * count + n) % codes.len()]);
                }
                // Around 1, and now and then anything that is a number.
                let random = scales[(round * LANES + lane) % scales.len()] >> 3;
                row[16] = match conversion.scale {
                    Some(_) if lane % 5 == 4 => random & 0xf8f8_f8f8 | 0x0101_0101,
                    Some(_) => 0x7f7f_7f7f ^ random & 0x0707_0707,
                    None if lane % 5 == 4 => (random % 250) << 23 | random & 0x8000_1234,
                    None => (120 + random % 16) << 23 | random & 0x8000_4321,
                };
            }
            for (lane, found) in run(&mut bench, &format!("k{n}"), &input).iter().enumerate() {
                for n in 0..count {
                    let value = from.value(field(&input[lane], n * from.bits(), from.bits()));
                    let power = match conversion.scale {
                        Some(place) => {
                            let (of, byte) = place(lane);
                            i32::from((input[of][16] >> (8 * byte)) as u8) - 127
                        }
                        None => 127 - (input[lane][16] >> 23 & 0xff) as i32,
                    };
                    // The guide's table: infinity becomes NaN where there is none, and where what is too large is
                    // saturated.
                    let no_infinity =
                        value.is_infinite() && conversion.scale.is_none() && to.bits() == 8 && (saturates || !to.ieee);
                    let value = if no_infinity { f64::NAN } else { value * 2f64.powi(power) };
                    let code = field(found, n * to.bits(), to.bits());
                    assert!(
                        to.is_nearest(code, value, saturates && to != F32),
                        "{conversion:?} saturates {saturates} lane {lane} number {n}: {value:e} is {code:#x}"
                    );
                }
                let used = (count * to.bits()).div_ceil(32);
                assert!(found[used..].iter().all(|word| *word == 0), "{conversion:?} writes more");
            }
        }
    }
}

/// As [`sources`], of single precision, which has too many codes to search.
fn singles(conversion: &Conversion) -> Vec<u32> {
    let mut all: Vec<u32> = patterns(700);
    for code in 0..1 << (conversion.to.bits() - 1) {
        let [one, next] = [code, code + 1].map(|code| conversion.to.value(code));
        for value in [one, (one + next) / 2.0].into_iter().filter(|value| value.is_finite()) {
            let at = (value as f32).to_bits();
            all.extend([at, at + 1, at.saturating_sub(1), at | 1 << 31]);
        }
    }
    all
}

#[test]
fn numbers_are_rounded_to_the_nearest() {
    if compiler_is_there() {
        check(CONVERSIONS, false);
        check(CONVERSIONS, true);
    }
}

#[test]
fn codes_are_looked_up() {
    if !compiler_is_there() {
        return;
    }
    let text: String = LOOK_UPS.iter().map(|(name, _, _, words)| kernel(name, words, false)).collect();
    let mut bench = bare::bench("gfx1250", true, 1, &bare::assemble("gfx1250", &text));
    let words = patterns(INPUT * LANES);
    let mut input = [[0; INPUT]; LANES];
    input.iter_mut().zip(words.chunks(INPUT)).for_each(|(row, words)| row.copy_from_slice(words));
    for (name, bits, sizes, _) in LOOK_UPS {
        for (lane, found) in run(&mut bench, name, &input).iter().enumerate() {
            // The second source is the lower part: v[18:19], then v[16:17]; codes are in v[20:21].
            let table: Vec<u32> =
                input[lane][2..2 + sizes[1]].iter().chain(&input[lane][..sizes[0]]).copied().collect();
            for n in 0..16 {
                let code = field(&input[lane][4..], 4 * n, 4) as usize;
                assert_eq!(
                    field(found, n * bits, *bits),
                    field(&table, code * bits, *bits),
                    "{name} lane {lane} code {n}"
                );
            }
        }
    }
}

#[test]
fn what_is_not_told_is_refused() {
    if !compiler_is_there() {
        return;
    }
    let text: String =
        REFUSED.iter().enumerate().map(|(n, (words, _))| kernel(&format!("k{n}"), words, false)).collect();
    let mut bench = bare::bench("gfx1250", true, 1, &bare::assemble("gfx1250", &text));
    // NaN everywhere, scales included.
    let (from, to) = (bench.buffer(&[u32::MAX; INPUT * LANES]), bench.buffer(&[0; 16 * LANES]));
    for (n, (_, says)) in REFUSED.iter().enumerate() {
        let fault = bench.run(&format!("k{n}"), 1, LANES as u16, 0, &[from, to]).expect_err(says);
        assert!(matches!(&fault.kind, FaultKind::Undefined { what } if what.contains(says)), "{says}: {fault}");
    }
}
