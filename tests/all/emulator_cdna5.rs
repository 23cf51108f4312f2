//! What gfx1250 alone has for matrices: products of small floats with scales, and the loads that transpose. Each
//! against a reference of its own that follows the CDNA5 ISA guide's tables (7.12.2, 7.12.6, 10.9.2). Instructions are
//! words of LLVM's assembler, fields put in.

use crate::emulated::small_float::{Float, float};
use crate::emulated::{Bench, bare, compiler_is_there, patterns};
use wavetap::emulator::{Fault, FaultKind};

const LANES: usize = 32;
const K: usize = 128;

/// By the code in the instruction: E4M3, E5M2, E2M3, E3M2, E2M1.
const FLOATS: [Float; 5] = [
    float(4, 3, 7, false, Some(0x7f)),
    float(5, 2, 15, true, None),
    float(2, 3, 1, false, None),
    float(3, 2, 3, false, None),
    float(2, 1, 1, false, None),
];

/// What a scale's code stands for; formats by their codes: E8M0, E5M3, E4M3.
fn scale(format: u32, code: u32) -> f64 {
    match (format, code) {
        (0, 0xff) | (1, 0xff) | (2, 0x7f) => f64::NAN,
        (0, _) => 2f64.powi(code as i32 - 127),
        (1, _) if code >> 3 == 0 => f64::from(code) * 2f64.powi(-17),
        (1, _) => (1.0 + f64::from(code & 7) / 8.0) * 2f64.powi((code >> 3) as i32 - 15),
        (_, _) if code >> 3 == 0 => f64::from(code) * 2f64.powi(-9),
        (_, _) => (1.0 + f64::from(code & 7) / 8.0) * 2f64.powi((code >> 3) as i32 - 7),
    }
}

/// An instruction's fields.
#[derive(Debug, Clone, Copy, Default)]
struct Fields {
    /// Numbers along K that have one scale; 0 without scales.
    block: usize,
    /// 16 or 32.
    rows: usize,
    formats: [u32; 2],
    scale_formats: [u32; 2],
    /// Scales are in the upper lanes.
    upper: [u32; 2],
    /// C's sign is changed, and before that taken away.
    sign: [bool; 2],
}

impl Fields {
    /// D in v[40:], A in v[8:], B in v[24:], scales in v[56:] and v[58:].
    fn words(self) -> String {
        let [a, b] = self.formats;
        let last = if self.sign[0] { 0x8000_0000 } else { 0 };
        let third = if self.sign[1] { 0x400 } else { 0 };
        let (third, last) = match self.rows {
            32 => (third | 0xcc88_4028, last | 0x1ca2_3108),
            _ => (third | 0xcc33_0028 | a << 11 | (b >> 2) << 14, last | 0x04a2_3108 | (b & 3) << 27),
        };
        let first = if self.block == 16 { 0xcc3a_0000u32 } else { 0xcc35_0000 };
        let first = first | self.upper[0] << 11 | self.scale_formats[1] << 8;
        let second = 0x0402_7538 | self.upper[1] << 27 | self.scale_formats[0] << 29;
        let scales = if self.block == 0 { String::new() } else { format!(".long {first:#x}, {second:#x}\n") };
        format!("{scales}.long {third:#x}, {last:#x}")
    }

    /// The kernel: a row of 64 words for each lane, and 16 words of the result.
    fn kernel(self, name: &str) -> String {
        let loads: String = (0..13)
            .map(|n| format!("global_load_dwordx4 v[{}:{}], v1, s[4:5] offset:{}\n", 8 + 4 * n, 11 + 4 * n, 16 * n))
            .collect();
        let stores: String = (0..4)
            .map(|n| format!("global_store_dwordx4 v2, v[{}:{}], s[6:7] offset:{}\n", 40 + 4 * n, 43 + 4 * n, 16 * n))
            .collect();
        let nops = "v_nop\n".repeat(10);
        let body = format!(
            "v_lshlrev_b32 v1, 8, v0\nv_lshlrev_b32 v2, 6, v0\n{loads}s_wait_loadcnt 0\n{}\n{nops}{stores}",
            self.words()
        );
        bare::kernel("gfx1250", name, 0, &body)
    }
}

/// Operands: codes by line and place along K, scales by line and block, C by row and column.
struct Product {
    fields: Fields,
    numbers: [Vec<Vec<u32>>; 2],
    scales: [Vec<Vec<u32>>; 2],
    c: Vec<Vec<f32>>,
}

impl Product {
    fn lines(fields: Fields, side: usize) -> usize {
        if side == 0 { fields.rows } else { 16 }
    }

    fn new(
        fields: Fields,
        mut number: impl FnMut(usize, usize, usize) -> u32,
        mut scale: impl FnMut(usize, usize, usize) -> u32,
    ) -> Product {
        let blocks = K.checked_div(fields.block).unwrap_or(0);
        let lines = |side| Self::lines(fields, side);
        let numbers =
            [0, 1].map(|side| (0..lines(side)).map(|line| (0..K).map(|k| number(side, line, k)).collect()).collect());
        let scales = [0, 1]
            .map(|side| (0..lines(side)).map(|line| (0..blocks).map(|n| scale(side, line, n)).collect()).collect());
        let c = (0..fields.rows).map(|row| (0..16).map(|column| row as f32 - 2.0 * column as f32).collect()).collect();
        Product { fields, numbers, scales, c }
    }

    fn format(&self, side: usize) -> Float {
        FLOATS[if self.fields.rows == 32 { 4 } else { self.fields.formats[side] as usize }]
    }

    /// The words of every lane, as the guide's tables place them.
    fn input(&self) -> Vec<u32> {
        let mut words = vec![[0x5a5a_5a5a_u32; 64]; LANES];
        for side in 0..2 {
            let (bits, first) = (self.format(side).bits(), 16 * side);
            for lane in words.iter_mut() {
                lane[first..first + 16].fill(0);
            }
            for (line, numbers) in self.numbers[side].iter().enumerate() {
                for (k, code) in numbers.iter().enumerate() {
                    // Of 8 bits V0-V3 have K=0..15 and in lanes from 16 on 16..31, V4-V7 32..47 and 48..63; of fewer a
                    // run is twice as long.
                    let run = if bits == 8 { 16 } else { 32 };
                    let lane = line % 16 + if k / run % 2 == 1 { 16 } else { 0 };
                    let at = line / 16 * 64 * bits + (k / (2 * run) * run + k % run) * bits;
                    for bit in 0..bits {
                        words[lane][first + (at + bit) / 32] |= (code >> bit & 1) << ((at + bit) % 32);
                    }
                }
            }
            for (line, scales) in self.scales[side].iter().enumerate() {
                let lane = line + 16 * self.fields.upper[side] as usize;
                let mut bytes = [0; 8];
                bytes.iter_mut().zip(scales).for_each(|(byte, scale)| *byte = *scale as u8);
                for (n, word) in bytes.chunks(4).enumerate() {
                    words[lane][48 + 2 * side + n] = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                }
            }
        }
        for (row, column) in (0..self.fields.rows).flat_map(|row| (0..16).map(move |column| (row, column))) {
            let (register, lane) = Self::place(row, column);
            words[lane][32 + register] = self.c[row][column].to_bits();
        }
        words.into_iter().flatten().collect()
    }

    fn place(row: usize, column: usize) -> (usize, usize) {
        (row % 8 + row / 16 * 8, row / 8 % 2 * 16 + column)
    }

    fn expected(&self, row: usize, column: usize) -> f64 {
        let one = |side: usize, line: usize, k: usize| {
            let value = self.format(side).value(self.numbers[side][line][k]);
            match self.fields.block {
                0 => value,
                block => value * scale(self.fields.scale_formats[side], self.scales[side][line][k / block]),
            }
        };
        let c = f64::from(self.c[row][column]);
        let c = if self.fields.sign[1] { c.abs() } else { c };
        let c = if self.fields.sign[0] { -c } else { c };
        (0..K).fold(c, |sum, k| sum + one(0, row, k) * one(1, column, k))
    }

    fn check(&self, bench: &mut Bench, kernel: &str) {
        let (input, output) = (bench.buffer(&self.input()), bench.buffer(&[0; 16 * LANES]));
        let ran = bench.run(kernel, 1, LANES as u16, 0, &[input, output]);
        ran.unwrap_or_else(|fault| panic!("{:?}: {fault}", self.fields));
        let found = bench.read(output, 16 * LANES);
        for (row, column) in (0..self.fields.rows).flat_map(|row| (0..16).map(move |column| (row, column))) {
            let (register, lane) = Self::place(row, column);
            let (found, expected) = (f32::from_bits(found[16 * lane + register]), self.expected(row, column) as f32);
            let same = found == expected || found.is_nan() && expected.is_nan();
            assert!(same, "{:?} row {row} column {column}: {found} is not {expected}", self.fields);
        }
    }
}

/// Numbers whose sums are exact in single precision: codes of at most 8 in magnitude, and not too small.
fn exact_number(random: &mut impl FnMut() -> u32, format: Float) -> u32 {
    loop {
        let code = random() >> 7 & ((1 << format.bits()) - 1);
        let value = format.value(code).abs();
        if value == 0.0 || (0.25..=8.0).contains(&value) {
            return code;
        }
    }
}

fn random(seed: u32) -> impl FnMut() -> u32 {
    let mut words = patterns(40_000).into_iter().skip(seed as usize % 1000).cycle();
    let mut mixed = seed;
    move || {
        mixed = mixed.wrapping_mul(0x9e37_79b1).wrapping_add(words.next().unwrap_or_default() | 1);
        mixed >> 3
    }
}

fn exact(fields: Fields, seed: u32) -> Product {
    let (mut of_numbers, mut of_scales) = (random(seed), random(seed + 1));
    let format = |side: usize| FLOATS[if fields.rows == 32 { 4 } else { fields.formats[side] as usize }];
    // About 1: from half to 2.
    let middle = [127, 15 << 3, 7 << 3];
    let spread = |format: u32, random: u32| match format {
        0 => middle[0] + random % 3 - 1,
        format => middle[format as usize] + random % 4 * 4 - 8,
    };
    Product::new(
        fields,
        |side, _, _| exact_number(&mut of_numbers, format(side)),
        |side, _, _| spread(fields.scale_formats[side], of_scales() >> 5),
    )
}

#[test]
fn products_of_all_formats_with_scales() {
    if !compiler_is_there() {
        return;
    }
    let pairs = (0..5).flat_map(|a| (0..5).map(move |b| [a, b]));
    let mut all: Vec<Fields> = Vec::new();
    for (formats, block) in pairs.flat_map(|formats| [(formats, 16), (formats, 32)]) {
        let (a, b) = (formats[0] as usize, formats[1] as usize);
        all.push(Fields { block, rows: 16, formats, upper: [(a % 2) as u32, (b / 2 % 2) as u32], ..Fields::default() });
    }
    for formats in [[0, 0], [0, 1], [1, 1], [2, 3], [4, 4], [4, 2]] {
        all.push(Fields { rows: 16, formats, ..Fields::default() });
    }
    for block in [0, 16, 32] {
        all.push(Fields { block, rows: 32, formats: [4, 4], upper: [0, u32::from(block == 16)], ..Fields::default() });
    }
    // Formats of scales that go together.
    for (formats, scale_formats) in
        [([4, 4], [1, 1]), ([4, 4], [2, 2]), ([0, 4], [0, 1]), ([3, 4], [0, 2]), ([4, 1], [2, 0]), ([4, 2], [1, 0])]
    {
        all.push(Fields { block: 32, rows: 16, formats, scale_formats, ..Fields::default() });
    }
    all.push(Fields { block: 32, rows: 32, formats: [4, 4], scale_formats: [2, 2], ..Fields::default() });
    for sign in [[true, false], [false, true], [true, true]] {
        all.push(Fields { block: 32, rows: 16, sign, ..Fields::default() });
    }
    let text: String = all.iter().enumerate().map(|(n, fields)| fields.kernel(&format!("k{n}"))).collect();
    let mut bench = bare::bench("gfx1250", true, 1, &bare::assemble("gfx1250", &text));
    for (n, fields) in all.iter().enumerate() {
        exact(*fields, 77 + n as u32).check(&mut bench, &format!("k{n}"));
    }
}

/// Every code of every format, and every scale of every format, alone in its row.
#[test]
fn all_codes_of_numbers_and_scales() {
    if !compiler_is_there() {
        return;
    }
    let of_format = |format: u32| Fields { block: 32, rows: 16, formats: [format, 4], ..Fields::default() };
    let of_scale =
        |scale: u32| Fields { block: 16, rows: 16, formats: [4, 4], scale_formats: [scale; 2], ..Fields::default() };
    let all: Vec<Fields> = (0..5).map(of_format).chain((0..3).map(of_scale)).collect();
    let text: String = all.iter().enumerate().map(|(n, fields)| fields.kernel(&format!("k{n}"))).collect();
    let mut bench = bare::bench("gfx1250", true, 1, &bare::assemble("gfx1250", &text));
    // 1 in E2M1.
    const ONE: u32 = 2;
    for (n, fields) in all.iter().enumerate() {
        let (is_scale, format) = (n >= 5, fields.scale_formats[0]);
        let codes = match (is_scale, format) {
            (false, _) => 1 << FLOATS[n].bits(),
            (true, 2) => 128,
            (true, _) => 256,
        };
        let one = [127, 15 << 3, 7 << 3][format as usize];
        for first in (0..codes).step_by(16) {
            // Row m has its code at K = 8m, column n a one at 8n.
            let number = |side: usize, line: usize, k: usize| match (side, k == 8 * line) {
                (_, false) => 0,
                (0, true) if !is_scale => first + line as u32,
                (0, true) | (_, true) => ONE,
            };
            let scale = |side: usize, line: usize, block: usize| match side {
                0 if is_scale && block == 8 * line / 16 => first + line as u32,
                _ => one,
            };
            let mut product = Product::new(*fields, number, scale);
            product.c.iter_mut().flatten().for_each(|c| *c = 0.0);
            product.check(&mut bench, &format!("k{n}"));
        }
    }
}

fn refused(bench: &mut Bench, kernel: &str) -> Fault {
    let (input, output) = (bench.buffer(&[0; 64 * LANES]), bench.buffer(&[0; 16 * LANES]));
    bench.run(kernel, 1, LANES as u16, 0, &[input, output]).expect_err("refused")
}

/// What the guide leaves out, or has as it is nowhere else.
#[test]
fn what_is_not_told_is_refused() {
    if !compiler_is_there() {
        return;
    }
    let (block, rows) = (32, 16);
    let cases = [
        (Fields { rows, formats: [0, 4], ..Fields::default() }, "8-bit and narrower floats without scales"),
        (Fields { rows, formats: [3, 1], ..Fields::default() }, "8-bit and narrower floats without scales"),
        (Fields { block, rows, formats: [0, 0], scale_formats: [1, 0], ..Fields::default() }, "do not go together"),
        (Fields { block, rows, formats: [4, 4], scale_formats: [1, 2], ..Fields::default() }, "do not go together"),
        (
            Fields { block, rows: 32, formats: [4, 4], upper: [1, 0], ..Fields::default() },
            "scales of 32 rows from lane 16 on",
        ),
    ];
    let text: String = cases.iter().enumerate().map(|(n, (fields, _))| fields.kernel(&format!("k{n}"))).collect();
    let mut bench = bare::bench("gfx1250", true, 1, &bare::assemble("gfx1250", &text));
    for (n, (_, says)) in cases.iter().enumerate() {
        let fault = refused(&mut bench, &format!("k{n}"));
        assert!(matches!(&fault.kind, FaultKind::Undefined { what } if what.contains(says)), "{says}: {fault}");
    }
}

/// The lanes that have loaded the columns K = 0, 1, … of the guide's drawing: of 8 bits rows 0 to 7 and rows 8 to 15,
/// of 4 bits all 16 rows.
const EIGHT: [[usize; 16]; 2] = [
    [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27],
    [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31],
];
const FOUR: [usize; 32] = [
    0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30,
    31,
];

/// What lane m has after a load: of 8 bits M = m for K = 0..7 in lanes below 16, and K = 8..15 in the others; of 4 bits
/// 16 numbers along K each.
fn transposed(bits: usize, loaded: &[[u8; 8]; LANES], lane: usize) -> [u8; 8] {
    let m = lane % 16;
    if bits == 8 {
        return std::array::from_fn(|n| loaded[EIGHT[m / 8][8 * (lane / 16) + n]][m % 8]);
    }
    let nibble = |n: usize| loaded[FOUR[16 * (lane / 16) + n]][m / 2] >> (4 * (m % 2)) & 15;
    std::array::from_fn(|n| nibble(2 * n) | nibble(2 * n + 1) << 4)
}

#[test]
fn transposing_loads() {
    if !compiler_is_there() {
        return;
    }
    // v[8:9] from the address in v2, or that and s[4:5].
    let cases = [
        ("lds8", 8, ".long 0xdbf40000, 0x08000002"),
        ("lds4", 4, ".long 0xdbe80000, 0x08000002"),
        ("memory8", 8, ".long 0xee160004, 0x00000008, 0x00000002"),
        ("memory4", 4, ".long 0xee1cc004, 0x00000008, 0x00000002"),
    ];
    // Lane n has what is in place 5n + 3 of 32.
    let before = "v_mul_u32_u24 v2, 5, v0\nv_add_nc_u32 v2, 3, v2\nv_and_b32 v2, 31, v2\nv_lshlrev_b32 v2, 3, v2\n\
        v_lshlrev_b32 v1, 3, v0\n\
        v_mov_b32 v8, 0\nv_mov_b32 v9, 0\nglobal_load_dwordx2 v[4:5], v1, s[4:5]\ns_wait_loadcnt 0\n\
        ds_write_b64 v1, v[4:5]\ns_wait_dscnt 0\n";
    let after = "s_wait_loadcnt 0\ns_wait_dscnt 0\ns_mov_b32 exec_lo, -1\nglobal_store_dwordx2 v1, v[8:9], s[6:7]";
    let mut text = String::new();
    for (name, _, words) in cases {
        text += &bare::kernel("gfx1250", name, 256, &format!("{before}{words}\n{after}"));
        text += &bare::kernel(
            "gfx1250",
            &format!("{name}_some"),
            256,
            &format!("{before}s_mov_b32 exec_lo, 0xffff\n{words}\n{after}"),
        );
        text += &bare::kernel(
            "gfx1250",
            &format!("{name}_none"),
            256,
            &format!("{before}s_mov_b32 exec_lo, 0\n{words}\n{after}"),
        );
    }
    // 6 bits, and gfx1200's, have no meaning.
    let six = ["ds", "global"]
        .map(|of| if of == "ds" { ".long 0xdbec0000, 0x08000002" } else { ".long 0xee1d0004, 0x00000008, 0x00000002" });
    text += &six
        .iter()
        .enumerate()
        .map(|(n, words)| bare::kernel("gfx1250", &format!("six{n}"), 256, words))
        .collect::<String>();
    let mut bench = bare::bench("gfx1250", true, 1, &bare::assemble("gfx1250", &text));
    let data = patterns(2 * LANES);
    let input = bench.buffer(&data);
    let mut loaded = [[0; 8]; LANES];
    for (lane, bytes) in loaded.iter_mut().enumerate() {
        let at = (5 * lane + 3) % 32;
        bytes[..4].copy_from_slice(&data[2 * at].to_le_bytes());
        bytes[4..].copy_from_slice(&data[2 * at + 1].to_le_bytes());
    }
    for (name, bits, _) in cases {
        let output = bench.buffer(&[0; 2 * LANES]);
        bench.run(name, 1, LANES as u16, 0, &[input, output]).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let found: Vec<u8> = bench.read(output, 2 * LANES).iter().flat_map(|word| word.to_le_bytes()).collect();
        for lane in 0..LANES {
            assert_eq!(found[8 * lane..][..8], transposed(bits, &loaded, lane), "{name}, lane {lane}");
        }
        let fault =
            bench.run(&format!("{name}_some"), 1, LANES as u16, 0, &[input, output]).expect_err("lanes that are off");
        assert!(
            matches!(&fault.kind, FaultKind::Undefined { what } if what.contains("lanes that are off")),
            "{name}: {fault}"
        );
        let none = bench.run(&format!("{name}_none"), 1, LANES as u16, 0, &[input, output]);
        match name.starts_with("memory") {
            true => {
                none.unwrap_or_else(|fault| panic!("{name}: {fault}"));
                assert_eq!(bench.read(output, 2 * LANES), [0; 2 * LANES], "{name}");
            }
            false => assert!(none.is_err(), "{name}"),
        }
    }
    for n in 0..2 {
        let fault = bench.run(&format!("six{n}"), 1, LANES as u16, 0, &[input, input]).expect_err("no meaning");
        assert!(matches!(fault.kind, FaultKind::UnknownInstruction { .. }), "{fault}");
    }
}

/// Bits that nothing has written go where the numbers go: of a tile whose column 3 is undefined one lane of each half
/// of the wave is.
#[test]
fn undefined_numbers_of_a_tile() {
    if !compiler_is_there() {
        return;
    }
    for (name, words, bits) in
        [("eight", ".long 0xdbf40000, 0x08000002", 8), ("four", ".long 0xdbe80000, 0x08000002", 4)]
    {
        // Row r of 16 numbers is at 16r for 8 bits, whose halves are in lanes of their own, and at 8r for 4 bits.
        let place: [u32; LANES] = std::array::from_fn(|lane| {
            let find = |row: &[usize]| row.iter().position(|of| *of == lane);
            match (bits, find(&EIGHT[0]), find(&EIGHT[1])) {
                (8, Some(k), _) => 16 * k as u32,
                (8, _, Some(k)) => 16 * k as u32 + 8,
                _ => 8 * FOUR.iter().position(|of| *of == lane).expect("a row") as u32,
            }
        });
        let size = if bits == 8 { 16 } else { 8 };
        // Lane r writes all of its row but the byte with column 3, of 4 bits with columns 2 and 3.
        let writes: String = (0..size)
            .filter(|at| *at != if bits == 8 { 3 } else { 1 })
            .map(|at| format!("ds_write_b8 v3, v4 offset:{at}\n"))
            .collect();
        let body = |bad: bool| {
            let lane = if bad { 3 } else { 5 };
            format!(
                "v_lshlrev_b32 v1, 2, v0\nglobal_load_dword v2, v1, s[4:5]\nv_mul_u32_u24 v3, {size}, v0\nv_mov_b32 \
                    v4, 0x11\ns_wait_loadcnt 0\n{writes}s_wait_dscnt 0\n\
                 {words}\ns_wait_dscnt 0\ns_mov_b32 exec_lo, {:#x}\nglobal_store_dword v1, v8, s[6:7]",
                1 << lane | 1 << (16 + lane)
            )
        };
        let text =
            bare::kernel("gfx1250", "good", 512, &body(false)) + &bare::kernel("gfx1250", "bad", 512, &body(true));
        let mut bench = bare::bench("gfx1250", true, 1, &bare::assemble("gfx1250", &text));
        let (from, to) = (bench.buffer(&place), bench.buffer(&[0; LANES]));
        bench.run("good", 1, LANES as u16, 0, &[from, to]).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let found = bench.read(to, LANES);
        assert_eq!([found[5], found[21]], [0x1111_1111; 2], "{name}");
        let fault = bench.run("bad", 1, LANES as u16, 0, &[from, to]).expect_err("undefined numbers");
        assert!(matches!(fault.kind, FaultKind::Uninitialised { .. }), "{name}: {fault}");
    }
}
