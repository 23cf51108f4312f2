//! The architectural state of a wave before and after one instruction, as the definitions see it, and how exactly
//! results must agree.

use wavetap::isa::Target;

/// Registers of each vector file that instructions under test may use.
pub const REGISTERS: usize = 160;
/// Bytes of the memory that instructions under test may use, and of LDS.
pub const MEMORY: usize = 6144;

/// A register of every lane.
pub type Row = [u32; 64];

/// Everything an instruction may read or change.
#[derive(Clone)]
pub struct State {
    /// Lanes of the wave.
    pub lanes: usize,
    /// By canonical operand code.
    pub sgpr: [u32; 128],
    pub scc: bool,
    /// Rounding 3:0, denormals 7:4, DX10_CLAMP 8, IEEE 9.
    pub mode: u32,
    pub vgpr: Vec<Row>,
    pub agpr: Vec<Row>,
    /// Device address of `memory`.
    pub address: u64,
    pub memory: Vec<u8>,
    pub lds: Vec<u8>,
    /// Private memory, of one lane after the other.
    pub scratch: Vec<u8>,
    pub target: Target,
    /// Of the target.
    pub generation: u32,
    /// Device address of the next instruction.
    pub pc: u64,
    /// Where results need not have these bits.
    pub loose: Vec<(Place, Loose)>,
}

/// A place that an instruction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Vector(usize),
    Accum(usize),
    Scalar(usize),
}

/// How a result may differ from the definition's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loose {
    /// A quiet NaN may be any other NaN.
    Nan16,
    Nan32,
    /// Of a 64-bit value that begins here.
    Nan64,
    /// Either half is a half-precision number.
    NanPair,
    /// Either half is a bfloat16 number.
    NanBrain,
    /// Either half is a half-precision number that may be a neighbour of the expected one.
    NearPair,
    /// Nothing is documented.
    Any,
    /// The low half alone is documented.
    Low16,
    /// Units in the last place; zeros have any sign; a denormal may be zero.
    Ulp16(u32),
    /// The same of bfloat16.
    UlpBrain(u32),
    Ulp32(u32),
    Ulp64(u64),
    /// An absolute difference of single-precision numbers.
    Near32(f32),
    Near16(f32),
    /// The same of bfloat16.
    NearBrain(f32),
}

impl State {
    pub fn exec(&self) -> u64 {
        self.pair(126) & self.all()
    }

    /// A mask of all lanes.
    pub fn all(&self) -> u64 {
        if self.lanes == 64 { u64::MAX } else { (1 << self.lanes) - 1 }
    }

    pub fn pair(&self, code: usize) -> u64 {
        u64::from(self.sgpr[code]) | u64::from(self.sgpr[code + 1]) << 32
    }

    /// A lane mask, as wide as the wave.
    pub fn mask(&self, code: usize) -> u64 {
        if self.lanes == 32 { u64::from(self.sgpr[code]) } else { self.pair(code) }
    }

    pub fn set_mask(&mut self, code: usize, value: u64) {
        self.sgpr[code] = value as u32;
        if self.lanes == 64 {
            self.sgpr[code + 1] = (value >> 32) as u32;
        }
    }

    pub fn is_active(&self, lane: usize) -> bool {
        self.exec() >> lane & 1 != 0
    }
}

/// Half precision to double, exactly.
pub fn half(bits: u32) -> f64 {
    let magnitude = match (bits >> 10 & 0x1f, f64::from(bits & 0x3ff)) {
        (0, fraction) => fraction * 2f64.powi(-24),
        (31, 0.0) => f64::INFINITY,
        (31, _) => f64::NAN,
        (exponent, fraction) => (1024.0 + fraction) * 2f64.powi(exponent as i32 - 25),
    };
    if bits & 0x8000 != 0 { -magnitude } else { magnitude }
}

fn ulps(a: u64, b: u64, sign: u32, denormal: u64) -> u64 {
    let magnitude = |bits: u64| bits & ((1 << sign) - 1);
    let flushed = |bits: u64| if magnitude(bits) < denormal { 0 } else { bits };
    let linear =
        |bits: u64| if bits >> sign & 1 != 0 { -i128::from(magnitude(bits)) } else { i128::from(magnitude(bits)) };
    let direct = linear(a).abs_diff(linear(b));
    direct.min(linear(flushed(a)).abs_diff(linear(flushed(b)))) as u64
}

impl Loose {
    /// Whether two results, each with the register after it, agree.
    pub fn agree(self, expected: [u32; 2], found: [u32; 2]) -> bool {
        let [e, f] = [expected[0], found[0]];
        if e == f && (expected[1] == found[1] || !matches!(self, Loose::Nan64 | Loose::Ulp64(_))) {
            return true;
        }
        let (e64, f64_) = (u64::from(e) | u64::from(expected[1]) << 32, u64::from(f) | u64::from(found[1]) << 32);
        let nan_brain = |bits: u32| bits & 0x7fff > 0x7f80;
        let nan16 = |bits: u32| bits & 0x7fff > 0x7c00;
        let nan32 = |bits: u32| bits & 0x7fff_ffff > 0x7f80_0000;
        let nan64 = |bits: u64| bits & (u64::MAX >> 1) > 0x7ff << 52;
        let finite = |x: f32| x.is_finite();
        match self {
            Loose::Any => true,
            Loose::Low16 => e as u16 == f as u16,
            Loose::Nan16 => e >> 16 == f >> 16 && nan16(e) && nan16(f),
            Loose::Nan32 => nan32(e) && nan32(f),
            Loose::Nan64 => nan64(e64) && nan64(f64_),
            Loose::NanPair => {
                let same = |e: u32, f: u32| e as u16 == f as u16 || (nan16(e) && nan16(f));
                same(e, f) && same(e >> 16, f >> 16)
            }
            Loose::NanBrain => {
                let same = |e: u32, f: u32| e as u16 == f as u16 || (nan_brain(e) && nan_brain(f));
                same(e, f) && same(e >> 16, f >> 16)
            }
            Loose::NearPair => {
                let same = |e: u32, f: u32| {
                    let close = ulps((e & 0xffff).into(), (f & 0xffff).into(), 15, 0x400) <= 1;
                    (nan16(e) && nan16(f)) || (!nan16(e) && !nan16(f) && close)
                };
                same(e, f) && same(e >> 16, f >> 16)
            }
            Loose::Ulp16(n) => {
                let close =
                    ulps(u64::from(e & 0xffff), u64::from(f & 0xffff), 15, 0x400) <= n.into() && !nan16(e) && !nan16(f);
                e >> 16 == f >> 16 && (close || (nan16(e) && nan16(f)))
            }
            Loose::UlpBrain(n) => {
                let close = ulps(u64::from(e & 0xffff), u64::from(f & 0xffff), 15, 0x80) <= n.into()
                    && !nan_brain(e)
                    && !nan_brain(f);
                e >> 16 == f >> 16 && (close || (nan_brain(e) && nan_brain(f)))
            }
            Loose::NearBrain(n) => {
                let (x, y) = (f32::from_bits(e << 16), f32::from_bits(f << 16));
                e >> 16 == f >> 16 && ((x.is_nan() && y.is_nan()) || (x - y).abs() <= n)
            }
            Loose::Ulp32(n) => {
                (nan32(e) && nan32(f))
                    || (!nan32(e) && !nan32(f) && ulps(e.into(), f.into(), 31, 0x80_0000) <= n.into())
            }
            Loose::Ulp64(n) => {
                (nan64(e64) && nan64(f64_)) || (!nan64(e64) && !nan64(f64_) && ulps(e64, f64_, 63, 1 << 52) <= n)
            }
            Loose::Near32(n) => {
                let (x, y) = (f32::from_bits(e), f32::from_bits(f));
                (x.is_nan() && y.is_nan()) || (finite(x) && finite(y) && (x - y).abs() <= n)
            }
            Loose::Near16(n) => {
                let (x, y) = (half(e & 0xffff), half(f & 0xffff));
                e >> 16 == f >> 16 && ((x.is_nan() && y.is_nan()) || (x - y).abs() <= f64::from(n))
            }
        }
    }
}
