//! The emulator against this computer: the same source, compiled for both, must give the same results.

use crate::emulated::compare;

fn exact(a: u32, b: u32) -> bool {
    a == b
}

/// Any NaN is any other.
fn float(a: u32, b: u32) -> bool {
    a == b || (f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan())
}

#[test]
fn integers() {
    compare(
        r#"DEVICE void body(const u32 *in, u32 *out) {
            u32 a = in[0], b = in[1], c = in[2]; i32 x = a, y = b, z = c;
            out[0] = a + b * c; out[1] = a - b; out[2] = ((u64)a * b) >> 32; out[3] = ((i64)x * y) >> 32;
            out[4] = a << (b & 31); out[5] = a >> (c & 31); out[6] = x >> (b & 31);
            out[7] = b ? a / b : 7; out[8] = b ? a % b : 7; out[9] = (y && !(x == (int)0x80000000 && y == -1))
            ? x / y : 9;
            out[10] = x < y ? x : y; out[11] = a > b ? a : b; out[12] = __builtin_popcount(a) + __builtin_popcount(b);
            out[13] = a ? __builtin_clz(a) : 99; out[14] = a ? __builtin_ctz(a) : 98; out[15] = __builtin_bswap32(a);
            out[16] = (a & b) | (~a & c); out[17] = (a ^ b) ^ c; out[18] = a * 24 + (b >> 3); out[19] = (i8)a + (i16)b;
            out[20] = (u8)a * (u8)b + (u16)c; out[21] = __builtin_bitreverse32(a); out[22] = (x > y) + (a > b)
            * 2 + (x >= z) * 4 + (a <= c) * 8;
            out[23] = ((a >> 7) & 0x1ff) | (b << 9);
        }"#,
        3,
        24,
        &[],
        exact,
    );
}

#[test]
fn wide_integers() {
    compare(
        r#"DEVICE void put(u32 *out, u64 v) { out[0] = v; out[1] = v >> 32; }
        DEVICE void body(const u32 *in, u32 *out) {
            u64 a = in[0] | (u64)in[1] << 32, b = in[2] | (u64)in[3] << 32; i64 x = a, y = b;
            put(out, a + b); put(out + 2, a - b); put(out + 4, a * b); put(out + 6, a << (b & 63)); put(out + 8,
            a >> (b & 63)); put(out + 10, x >> (b & 63));
            put(out + 12, b ? a / b : 5); put(out + 14, b ? a % b : 5); put(out + 16, x < y ? a : b); put(out + 18,
            a < b ? a : b);
            out[20] = a == b; out[21] = x > y; out[22] = a >= b; out[23] = __builtin_popcountll(a);
            out[24] = a ? __builtin_clzll(a) : 64; out[25] = a ? __builtin_ctzll(a) : 64; put(out + 26,
            (u64)(u32)a * (u32)b + a);
            put(out + 28, (i64)(i32)a * (i32)b + b); put(out + 30, ((unsigned __int128)a * b) >> 64);
        }"#,
        4,
        32,
        &[],
        exact,
    );
}

#[test]
fn bytes_and_halves() {
    compare(
        r#"DEVICE void body(const u32 *in, u32 *out) {
            const u8 *p = (const u8 *)in; const u16 *q = (const u16 *)in; u8 *o = (u8 *)out; u16 *w = (u16 *)(out + 4);
            for (int i = 0; i < 16; ++i) o[i] = (u8)(p[i] * 3 + p[(i * 7) & 15]);
            for (int i = 0; i < 8; ++i) w[i] = (u16)(q[i] * q[(i + 3) & 7] + 77);
            i16 a = q[0], b = q[1]; u16 c = q[2], d = q[3];
            out[8] = (u16)(a + b); out[9] = (u16)(a - b); out[10] = (u16)(c * d); out[11] = a < b; out[12] = c < d;
            out[13] = (u16)(c >> (d & 15));
            out[14] = (u16)(i16)(a >> (d & 15)); out[15] = (u16)(c << (d & 15)); out[16] = (u16)(a < b ? a : b);
            out[17] = c > d ? c : d;
        }"#,
        4,
        18,
        &[],
        exact,
    );
}

const FLOATS: &str = r#"DEVICE u32 bits(float f) { return __builtin_bit_cast(u32, f); }
    DEVICE void body(const u32 *in, u32 *out) {
        float a = __builtin_bit_cast(float, in[0]), b = __builtin_bit_cast(float, in[1]),
        c = __builtin_bit_cast(float, in[2]);
        out[0] = bits(a + b); out[1] = bits(a - b); out[2] = bits(a * b); out[3] = bits(a / b);
        out[4] = bits(__builtin_fmaf(a, b, c));
        out[5] = bits(__builtin_sqrtf(a)); out[6] = bits(__builtin_floorf(a)); out[7] = bits(__builtin_ceilf(b));
        out[8] = bits(__builtin_truncf(c));
        out[9] = bits(__builtin_rintf(a)); out[10] = a < b; out[11] = a <= b; out[12] = a == b; out[13] = a != b;
        out[14] = a > b; out[15] = a >= b;
        out[16] = __builtin_isunordered(a, b); out[17] = bits(-a); out[18] = bits(__builtin_fabsf(b));
        out[19] = bits(__builtin_copysignf(a, b));
        out[20] = a == a && a > -2e9f && a < 2e9f ? (u32)(i32)a : 0; out[21] = a >= 0 && a < 4e9f ? (u32)a : 0;
        out[22] = bits((float)(i32)in[0]); out[23] = bits((float)in[1]); out[24] = bits((float)(u8)in[0]);
        out[25] = bits(a + b * c);
        out[26] = bits(a * 2.0f + 1.5f); out[27] = bits((float)(((u64)in[0] << 32) | in[1]));
        out[28] = a != a ? 1 : b != b ? 2 : 3;
        out[29] = __builtin_isinf(a); out[30] = bits(-a * b - c); out[31] = bits(1.0f / a);
    }"#;

#[test]
fn single_precision() {
    compare(FLOATS, 3, 32, &[], float);
}

/// The same unoptimised: scratch, calls, every value through memory.
#[test]
fn unoptimised() {
    compare(FLOATS, 3, 32, &["-O0"], float);
}

#[test]
fn double_precision() {
    compare(
        r#"DEVICE void put(u32 *out, double v) { if (v != v) v = __builtin_nan(""); u64 b = __builtin_bit_cast(u64,
        v); out[0] = b; out[1] = b >> 32; }
        DEVICE void body(const u32 *in, u32 *out) {
            double a = __builtin_bit_cast(double, in[0] | (u64)in[1] << 32), b = __builtin_bit_cast(double,
            in[2] | (u64)in[3] << 32);
            double c = __builtin_bit_cast(double, in[4] | (u64)in[5] << 32);
            put(out, a + b); put(out + 2, a * b); put(out + 4, a / b); put(out + 6, __builtin_fma(a, b, c));
            put(out + 8, __builtin_sqrt(a));
            put(out + 10, __builtin_floor(a)); put(out + 12, __builtin_ceil(b)); put(out + 14, __builtin_trunc(c));
            put(out + 16, __builtin_rint(a));
            put(out + 18, (double)(i32)in[0]); put(out + 20, (double)in[1]); put(out + 22,
            (double)(float)1.1f * (i64)(((u64)in[0] << 32) | in[2]));
            float f = (float)a; if (f != f) f = __builtin_nanf(""); out[24] = __builtin_bit_cast(u32, f);
            out[25] = a < b; out[26] = a >= c; out[27] = a == a && a < 2e9 && a > -2e9 ? (u32)(i32)a : 1;
            put(out + 28, 1.0 / b);
            out[30] = a >= 0 && a < 4e9 ? (u32)a : 1; out[31] = __builtin_isunordered(a, b);
            put(out + 32, a == a && __builtin_fabs(a) < 9e18 ? (double)(i64)a : 3.0);
        }"#,
        6,
        34,
        &[],
        exact,
    );
}

#[test]
fn control_flow() {
    compare(
        r#"DEVICE u32 step(u32 x) { return x & 1 ? x * 3 + 1 : x >> 1; }
        DEVICE void body(const u32 *in, u32 *out) {
            u32 x = in[0] | 1, n = 0, s = 0;
            while (x != 1 && n < 90) { x = step(x); ++n; if ((x & 0xff) == 77) { s += 5; continue; } if ((x & 0xfff)
            == 123) break; s ^= x; }
            out[0] = n; out[1] = s;
            u32 t = 0;
            for (u32 i = 0; i < (in[1] & 15); ++i) for (u32 j = i; j < (in[0] & 7); ++j) { if ((i ^ j) & 1)
            t += i * j; else t ^= j << i; }
            out[2] = t;
            switch (in[1] & 7) { case 0: out[3] = x; break; case 1: out[3] = s; break; case 2: case 3: out[3] = n * 7;
            break; case 5: out[3] = t; break; default: out[3] = 42; }
        }"#,
        2,
        4,
        &[],
        exact,
    );
}

#[test]
fn calls_and_function_pointers() {
    compare(
        r#"#define FAR __attribute__((noinline)) DEVICE
        FAR u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
        FAR u32 add(u32 a, u32 b) { return a + b; }
        FAR u32 mix(u32 a, u32 b) { u32 array[16]; for (int i = 0; i < 16; ++i) array[i] = a * i + b;
        return array[a & 15] ^ array[b & 15]; }
        DEVICE void body(const u32 *in, u32 *out) {
            out[0] = fibonacci(in[0] & 7);
            u32 (*f)(u32, u32) = in[1] & 1 ? add : mix;
            out[1] = f(in[0], in[1]); out[2] = mix(in[1], in[0]);
        }"#,
        2,
        3,
        &[],
        exact,
    );
}

#[test]
fn half_precision() {
    compare(
        r#"DEVICE u32 bits(_Float16 h) { if (h != h) return 0x7e00; return __builtin_bit_cast(u16, h); }
        DEVICE void body(const u32 *in, u32 *out) {
            _Float16 a = __builtin_bit_cast(_Float16, (u16)in[0]), b = __builtin_bit_cast(_Float16, (u16)in[1]);
            out[0] = bits(a + b); out[1] = bits(a - b); out[2] = bits(a * b);
            out[3] = bits((_Float16)(float)(i32)in[0]);
            float f = a; if (f != f) f = __builtin_nanf(""); out[4] = __builtin_bit_cast(u32, f);
            out[5] = a < b; out[6] = a == b; out[7] = bits((_Float16)__builtin_bit_cast(float, in[2]));
        }"#,
        3,
        8,
        &[],
        exact,
    );
}

/// The device library's functions, which use everything the vector ALU has: table look-ups of 2/pi, exponents, scaled
/// divisions.
#[test]
fn mathematics() {
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode";
    if !std::path::Path::new(LIBRARY).exists() {
        eprintln!("SKIPPED: the ROCm device library is not installed in {LIBRARY}");
        return;
    }
    let flag = format!("--rocm-device-lib-path={LIBRARY}");
    // Within 4 units in the last place of single precision, and of the 32 high bits of double precision.
    let near = |a: u32, b: u32| {
        (f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan())
            || (a as i32).abs_diff(b as i32) <= 4
            || (a & 0x7fff_ffff == 0 && b & 0x7fff_ffff == 0)
    };
    let functions =
        ["sin", "cos", "exp", "exp2", "log", "log2", "log10", "cbrt", "tanh", "atan", "erf", "sqrt", "asinh"];
    let declare: String = functions
        .iter()
        .map(|name| {
            format!(
                "#ifdef __HIP__\nextern \"C\" DEVICE float __ocml_{name}_f32(float); extern \"C\" DEVICE double \
                    __ocml_{name}_f64(double);\n#define F{name} __ocml_{name}_f32\n#define D{name} __ocml_{name}_f64\n\
                 #else\nextern \"C\" float {name}f(float); extern \"C\" double {name}(double);\n#define F{name} \
                 {name}f\n#define D{name} {name}\n#endif\n"
            )
        })
        .collect();
    let calls: String = functions
        .iter()
        .enumerate()
        .map(|(n, name)| format!("out[{}] = bits(F{name}(a)); out[{}] = high(D{name}(b));\n", 2 * n, 2 * n + 1))
        .collect();
    let body = format!(
        "{declare}DEVICE u32 bits(float f) {{ return f != f ? 0x7fc00000 : __builtin_bit_cast(u32, f); }}
        DEVICE u32 high(double d) {{ return d != d ? 0x7ff80000 : (u32)(__builtin_bit_cast(u64, d) >> 32); }}
        DEVICE void body(const u32 *in, u32 *out) {{
            float a = __builtin_bit_cast(float, in[0]); double b = __builtin_bit_cast(double, (u64)in[1] << 32 | \
            in[0]);\n{calls}}}"
    );
    crate::emulated::compare_on(
        &["gfx900", "gfx906", "gfx908", "gfx90a"],
        &body,
        2,
        2 * functions.len(),
        &[&flag],
        near,
    );
}
