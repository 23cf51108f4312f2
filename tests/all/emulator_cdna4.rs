//! Instructions that gfx950 alone has, against references that know the ISA guide's words and no code of the
//! emulator. As this LLVM does not know them they are here as LLVM 24 encodes them.

use crate::emulated::{Bench, Snippet, compiler_is_there, patterns};
use wavetap::emulator::FaultKind;

const LANES: usize = 64;
type Words = [[u32; 4]; LANES];

fn bench(target: &str, snippets: &[Snippet]) -> Bench {
    let dir = tempfile::tempdir().expect("a directory");
    Bench::new(
        target,
        1,
        &crate::emulated::assemble_text(dir.path(), target, &crate::emulated::text_of(snippets, true)),
    )
}

fn words(seed: usize) -> Words {
    let all = patterns(4 * LANES * (seed + 1));
    std::array::from_fn(|lane| std::array::from_fn(|n| all[4 * LANES * seed + 4 * lane + n] ^ (n as u32) << 13))
}

/// Each lane writes its numbers to a slot of 16 bytes, and loads another lane's: of the 16 lanes of a group it has
/// row by row 16 numbers, and gets a column.
const TRANSPOSING: [(&str, &str, usize, usize); 4] = [
    ("b4", ".long 0xd9c00000, 0x0800000c // ds_read_b64_tr_b4 v[8:9], v12", 4, 64),
    ("b6", ".long 0xd9c20000, 0x0800000c // ds_read_b96_tr_b6 v[8:10], v12", 6, 96),
    ("b8", ".long 0xd9c40000, 0x0800000c // ds_read_b64_tr_b8 v[8:9], v12", 8, 64),
    ("b16", ".long 0xd9c60000, 0x0800000c // ds_read_b64_tr_b16 v[8:9], v12", 16, 64),
];

/// Bits of a number that is as long as four words, from its lowest.
fn bits(words: [u32; 4], at: usize, length: usize) -> u32 {
    (0..length).map(|n| (words[(at + n) / 32] >> ((at + n) % 32) & 1) << n).sum()
}

#[test]
fn loads_transpose_sixteen_columns() {
    if !compiler_is_there() {
        return;
    }
    // The slot that is loaded is that of lane 5 n + 3.
    let code: Vec<String> = TRANSPOSING
        .iter()
        .map(|(_, load, ..)| {
            format!(
                "v_lshlrev_b32 v12, 4, v0\nds_write_b128 v12, v[4:7]\nv_mul_u32_u24 v12, 5, v0\nv_add_u32 v12, 3, v12\n\
                 v_and_b32 v12, 63, v12\n\
                 v_lshlrev_b32 v12, 4, v12\ns_waitcnt lgkmcnt(0)\n{load}\ns_waitcnt lgkmcnt(0)"
            )
        })
        .collect();
    let snippets: Vec<Snippet> =
        TRANSPOSING.iter().zip(&code).map(|((name, ..), code)| Snippet { name, code: code.clone().leak() }).collect();
    let mut bench = bench("gfx950", &snippets);
    for seed in 0..3 {
        let input = words(seed);
        for (name, _, size, loaded) in TRANSPOSING {
            let found = bench.snippet(name, &input).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            for group in 0..4 {
                let per_lane = loaded / size;
                // Row by row, 16 numbers each.
                let matrix: Vec<u32> = (0..16)
                    .flat_map(|lane| {
                        let slot = input[(5 * (16 * group + lane) + 3) % LANES];
                        (0..per_lane).map(move |n| bits(slot, n * size, size))
                    })
                    .collect();
                for column in 0..16 {
                    let lane = 16 * group + column;
                    for row in 0..per_lane {
                        let number = bits(found[lane], row * size, size);
                        assert_eq!(number, matrix[16 * row + column], "{name}: lane {lane}, number {row}, seed {seed}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_transposing_load_wants_all_lanes_and_an_aligned_address() {
    if !compiler_is_there() {
        return;
    }
    let fill = "v_lshlrev_b32 v12, 4, v0\nds_write_b128 v12, v[4:7]\ns_waitcnt lgkmcnt(0)\n";
    for ((name, load, _, size), by) in TRANSPOSING.into_iter().zip([4, 8, 4, 4]) {
        for (what, change) in [
            ("aligned", String::new()),
            ("off", "s_mov_b64 exec, 1\n".into()),
            ("by", format!("v_add_u32 v12, {by}, v12\n")),
        ] {
            let code = format!("{fill}{change}{load}\ns_waitcnt lgkmcnt(0)\ns_mov_b64 exec, -1");
            let found = bench("gfx950", &[Snippet { name: "k", code: code.leak() }]).snippet("k", &words(0));
            match found {
                Ok(_) => assert_eq!(what, "aligned", "{name} of {size} bits"),
                Err(fault) => {
                    assert_ne!(what, "aligned", "{name}: {fault}");
                    assert!(matches!(fault.kind, FaultKind::Undefined { .. }), "{name} {what}: {fault}");
                }
            }
        }
    }
}

/// A format: exponent bits, fraction bits, bias, code of the largest number.
#[derive(Clone, Copy)]
struct Format(u32, u32, i32, u32);

const FP8: Format = Format(4, 3, 7, 0x7e);
const BF8: Format = Format(5, 2, 15, 0x7b);
const FP4: Format = Format(2, 1, 1, 7);
const FP6: Format = Format(2, 3, 1, 0x1f);
const BF6: Format = Format(3, 2, 3, 0x1f);
const HALF: Format = Format(5, 10, 15, 0x7bff);
const BRAIN: Format = Format(8, 7, 127, 0x7f7f);

impl Format {
    fn decode(self, code: u32) -> f64 {
        let Format(_, fraction, bias, _) = self;
        let part = f64::from(code & ((1 << fraction) - 1)) / f64::from(1 << fraction);
        match (code >> fraction) as i32 {
            0 => part * 2f64.powi(1 - bias),
            exponent => (1.0 + part) * 2f64.powi(exponent - bias),
        }
    }

    fn sign(self) -> u32 {
        1 << (self.0 + self.1)
    }

    /// The two codes that a number is between, and its way from one to the other in units of the random numbers that
    /// count, cut off; none above the largest number.
    fn between(self, value: f64) -> Option<(u32, u64)> {
        let low =
            (0..=self.3).collect::<Vec<_>>().partition_point(|&code| self.decode(code) <= value.abs()).checked_sub(1)?
                as u32;
        let next = self.decode(low) + (self.decode(low) - self.decode(low.saturating_sub(1))).max(self.decode(1));
        let (start, end) = (self.decode(low), if low == self.3 { next } else { self.decode(low + 1) });
        (value.abs() < end)
            .then(|| (low, ((value.abs() - start) / (end - start) * f64::from(1 << (23 - self.1))) as u64))
    }

    /// What a number becomes with random bits; above the largest number what `above` is.
    fn round(self, value: f64, random: u32, above: u32) -> u32 {
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        let Some((low, way)) = self.between(value) else { return sign | above };
        let up = way + u64::from(random >> (9 + self.1)) >= 1 << (23 - self.1);
        sign | if !up {
            low
        } else if low == self.3 {
            above
        } else {
            low + 1
        }
    }
}

/// Numbers of all magnitudes of a format and beyond, as single precision.
fn numbers(format: Format, n: usize) -> f32 {
    let code = (n * 7919) as u32 % (format.3 + 3);
    let (low, step) = (format.decode(code.min(format.3)), format.decode(1));
    let part = f64::from(patterns(n % 97 + 1)[n % 97] >> 9) / f64::from(1 << 23);
    let between = if code < format.3 { format.decode(code + 1) - low } else { 3.0 * low };
    let value = match n % 5 {
        0 => low,
        1 => low + between / 2.0,
        2 => step * part / 8.0,
        _ => low + between * part,
    } as f32;
    if n.is_multiple_of(3) { -value } else { value }
}

/// Conversions of one number by random bits: v4 is it, v5 the random number, v6 the scale; format, what is above the
/// largest number, fraction bits of the source.
const SINGLES: [(&str, &str, Format, u32, &str); 9] = [
    ("f16_f32", ".long 0xd2a60008, 0x00020b04", HALF, 0x7c00, "f32"),
    ("bf16_f32", ".long 0xd2a70008, 0x00020b04", BRAIN, 0x7f80, "f32"),
    ("fp8_f32", ".long 0xd2370008, 0x041a0b04", FP8, 0x7f, "f32"),
    ("fp8_at_24", ".long 0xd2376008, 0x041a0b04 // op_sel:[0,0,1,1]", FP8, 0x7f, "f32"),
    ("bf8_f32", ".long 0xd2380008, 0x041a0b04", BF8, 0x7c, "f32"),
    ("fp8_f16", ".long 0xd2420008, 0x041a0b04", FP8, 0x7f, "f16"),
    ("bf8_f16", ".long 0xd2430008, 0x041a0b04", BF8, 0x7c, "f16"),
    ("fp8_bf16", ".long 0xd2460008, 0x041a0b04", FP8, 0x7f, "bf16"),
    ("bf8_bf16", ".long 0xd2470008, 0x041a0b04", BF8, 0x7c, "bf16"),
];

/// The bits of a number as a source has it, and its value; what does not fit is cut off.
fn source(kind: &str, value: f32) -> (u32, f64) {
    match kind {
        "f32" => (value.to_bits(), value.into()),
        "bf16" => (value.to_bits() >> 16, f32::from_bits(value.to_bits() & 0xffff_0000).into()),
        _ => {
            let code = (0..15).rev().fold(0_u32, |code, bit| {
                let with = code | 1 << bit;
                if with <= HALF.3 && HALF.decode(with) <= f64::from(value).abs() { with } else { code }
            });
            let sign = if value.is_sign_negative() { -1.0 } else { 1.0 };
            (code | if sign < 0.0 { 0x8000 } else { 0 }, sign * HALF.decode(code))
        }
    }
}

#[test]
fn stochastic_conversions_add_random_bits_and_cut_off() {
    if !compiler_is_there() {
        return;
    }
    // The old value of the destination stays but for the part that is written.
    let code: Vec<String> = SINGLES.iter().map(|(_, code, ..)| format!("v_mov_b32 v8, v7\n{code}")).collect();
    let snippets: Vec<Snippet> =
        SINGLES.iter().zip(&code).map(|((name, ..), code)| Snippet { name, code: code.clone().leak() }).collect();
    let mut bench = bench("gfx950", &snippets);
    for (name, _, format, above, kind) in SINGLES {
        let scaled = format.0 + format.1 == 7;
        for round in 0..40_usize {
            // Of halves only normal results: sources differ on others.
            let exponent = if scaled && kind != "f16" { round as i32 - 20 } else { 0 };
            let mut expected = Vec::new();
            let input: Words = std::array::from_fn(|lane| {
                let n = 64 * round + lane;
                let mut value = numbers(format, n) * 2f32.powi(exponent);
                // The mode of these kernels takes denormal sources for zeros.
                let is_denormal = name == "bf16_f32" && value.is_subnormal();
                if is_denormal
                    || kind != "f32" && f64::from(value.abs()) * 2f64.powi(-exponent) < 2f64.powi(1 - format.2)
                {
                    value = 0f32.copysign(value);
                }
                let (bits, exact) = source(kind, value);
                let random = match n % 4 {
                    0 => 0,
                    1 => u32::MAX,
                    _ => patterns(n % 61 + 1)[n % 61].wrapping_mul(2_654_435_761),
                };
                let old = (n as u32).wrapping_mul(0x0101_4101) | 0x1000_0001;
                let (width, shift) = (if scaled { 0xff } else { 0xffff }, if name == "fp8_at_24" { 24 } else { 0 });
                expected
                    .push(old & !(width << shift) | format.round(exact * 2f64.powi(-exponent), random, above) << shift);
                [bits, random, 2f32.powi(exponent).to_bits(), old]
            });
            let found = bench.snippet(name, &input).unwrap_or_else(|fault| panic!("{name} {round}: {fault}"));
            for lane in 0..LANES {
                let [bits, random, ..] = input[lane];
                assert_eq!(
                    found[lane][0], expected[lane],
                    "v_cvt…sr_{name} of {bits:#x} with {random:#x}, scale 2^{exponent}"
                );
            }
        }
    }
}

#[test]
fn numbers_that_are_exact_need_no_random_bits_and_others_are_refused() {
    if !compiler_is_there() {
        return;
    }
    // v[4:5] are two numbers, v6 is random, v7 the scale. The third has all its numbers in registers of its own.
    let many = |bits: usize, code: &str| {
        let data: String = (0..bits).map(|n| format!("v_mov_b32 v{}, v{}\n", 16 + n, 4 + n % 2)).collect();
        format!("{data}{code}\nv_mov_b32 v8, v48\nv_mov_b32 v9, v49\nv_mov_b32 v10, v50\nv_mov_b32 v11, v53")
    };
    let snippets = [
        Snippet {
            name: "fp4",
            code: ".long 0xd23e0008, 0x041e0d04 // v_cvt_scalef32_sr_pk_fp4_f32 v8, v[4:5], v6, v7",
        },
        Snippet { name: "fp6", code: many(32, "FP6").replace("FP6", ".long 0xd2540030, 0x041e0d10").leak() },
        Snippet { name: "bf6", code: many(32, "BF6").replace("BF6", ".long 0xd2550030, 0x041e0d10").leak() },
    ];
    let mut bench = bench("gfx950", &snippets);
    for (name, format, of_all) in [("fp4", FP4, 2), ("fp6", FP6, 32), ("bf6", BF6, 32)] {
        let width = format.0 + format.1 + 1;
        for code in 0..=format.3 {
            let second = format.3 - code;
            let exponent = code as i32 - 5;
            let number = |code: u32| ((format.decode(code) * 2f64.powi(exponent)) as f32).to_bits();
            let input: Words = std::array::from_fn(|lane| {
                [
                    number(code),
                    number(second) | 1 << 31,
                    (lane as u32).wrapping_mul(0x9e37_79b9),
                    2f32.powi(exponent).to_bits(),
                ]
            });
            let expected: Vec<u32> =
                (0..of_all).map(|n| if n % 2 == 0 { code } else { second | format.sign() }).collect();
            let found = bench.snippet(name, &input).unwrap_or_else(|fault| panic!("{name} {code}: {fault}"));
            for (lane, found) in found.iter().enumerate() {
                // Three registers and the sixth.
                for (n, expected) in expected
                    .iter()
                    .enumerate()
                    .filter(|(n, _)| (n + 1) * width as usize <= 96.min(of_all * width as usize))
                {
                    let number = bits([found[0], found[1], found[2], 0], n * width as usize, width as usize);
                    assert_eq!(number, *expected, "{name}: number {n} of lane {lane}");
                }
            }
        }
        // The first takes the random number as it is.
        let middle = ((format.decode(1) + format.decode(2)) / 2.0) as f32;
        let random = |lane: usize| (lane as u32 % 2) << 31;
        let input: Words = std::array::from_fn(|lane| [middle.to_bits(), 0, random(lane), 1f32.to_bits()]);
        let even = if of_all == 2 { bench.snippet(name, &input).ok() } else { None };
        if let Some(found) = even {
            assert!(found.iter().enumerate().all(|(lane, found)| found[0] & 15 == 1 + lane as u32 % 2), "{found:x?}");
        }
        let input: Words = std::array::from_fn(|lane| [0, middle.to_bits(), random(lane), 1f32.to_bits()]);
        let fault = bench.snippet(name, &input).expect_err("the second number is between two");
        assert!(fault.to_string().contains("random bits are not documented"), "{fault}");
        let input: Words = std::array::from_fn(|_| [0, 0, 0, 0x7f80_0000]);
        let fault = bench.snippet(name, &input).expect_err("the scale is NaN");
        assert!(fault.to_string().contains("the scale NaN"), "{fault}");
    }
}

#[test]
fn a_scaled_conversion_takes_signs_of_single_numbers() {
    if !compiler_is_there() {
        return;
    }
    let snippets = [
        Snippet { name: "two", code: ".long 0xd2350208, 0x241a0b04 // v_cvt_scalef32_pk_fp8_f32 v8, -v4, |v5|, v6" },
        Snippet { name: "one", code: ".long 0xd2370108, 0xa41a0b04 // v_cvt_scalef32_sr_fp8_f32 v8, -|v4|, v5, -v6" },
        Snippet { name: "halves", code: ".long 0xd2400008, 0x20020d04 // v_cvt_scalef32_pk_fp8_f16 v8, -v4, v6" },
    ];
    let mut bench = bench("gfx950", &snippets);
    // Both of a number's signs; the random number is no more than one.
    let signs: Words = std::array::from_fn(|lane| {
        let sign = |bit: usize| (lane as u32 >> bit & 1) << 31;
        [2f32.to_bits() | sign(0), 1.5f32.to_bits() | sign(1), 1f32.to_bits(), 0]
    });
    let (two, one) = (FP8.between(2.0).expect("in range").0, FP8.between(1.5).expect("in range").0);
    let found = bench.snippet("two", &signs).expect("it runs");
    for (lane, found) in found.iter().enumerate() {
        assert_eq!(found[0], (if lane & 1 == 0 { two | 0x80 } else { two }) | one << 8, "lane {lane}");
    }
    let found = bench.snippet("one", &signs).expect("it runs");
    assert!(found.iter().all(|found| found[0] == two | 0x80), "{found:x?}");
    assert!(bench.snippet("halves", &signs).is_err(), "of which of the two halves the sign is");
}
