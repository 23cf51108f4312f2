//! What `libamdhip64` exports and is no part of HIP: conversions of half precision that compilers once called, what
//! debuggers ask for, and calls of old versions.

use std::ffi::{c_char, c_void};

use crate::entry_point::entry_points;
use crate::launch::{Dim3, stub_launch};
use crate::raw;

/// Bits of the exponent's bias in single precision less those in half precision, at the place of half precision's.
const BIAS: u32 = 127 - 15;

/// A half's bits, rounded to nearest even.
fn to_half(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, magnitude) = ((bits >> 16 & 0x8000) as u16, bits & 0x7fff_ffff);
    let rounded = match magnitude {
        // No number keeps the upper bits of its payload and becomes quiet; infinity.
        0x7f80_0001.. => 0x7e00 | (magnitude >> 13 & 0x3ff),
        // 65520 and more.
        0x477f_f000.. => 0x7c00,
        // Normal: the bits that are dropped carry into what stays.
        0x3880_0000.. => (magnitude - (BIAS << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13,
        // Subnormal, in units of 2^-24; below half of one it is 0.
        0x3300_0000.. => {
            let (mantissa, shift) = (magnitude & 0x7f_ffff | 0x80_0000, 126 - (magnitude >> 23));
            let (whole, rest, half) = (mantissa >> shift, mantissa & ((1 << shift) - 1), 1 << (shift - 1));
            whole + u32::from(rest > half || (rest == half && whole & 1 != 0))
        }
        _ => 0,
    };
    sign | rounded as u16
}

/// The value of a half's bits.
fn from_half(half: u16) -> f32 {
    let (sign, exponent, mantissa) = (u32::from(half >> 15) << 31, u32::from(half >> 10 & 31), u32::from(half & 0x3ff));
    let magnitude = match exponent {
        0 => (mantissa as f32 / 16_777_216.0).to_bits(),
        31 => 0x7f80_0000 | mantissa << 13,
        _ => (exponent + BIAS) << 23 | mantissa << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// A half of a single.
#[unsafe(no_mangle)]
extern "C" fn __gnu_f2h_ieee(value: f32) -> u16 {
    to_half(value)
}

/// A single of a half.
#[unsafe(no_mangle)]
extern "C" fn __gnu_h2f_ieee(half: u16) -> f32 {
    from_half(half)
}

/// Which build of AMD's runtime this is: none.
#[unsafe(no_mangle)]
extern "C" fn amd_dbgapi_get_build_name() -> *const c_char {
    c"wavetap".as_ptr()
}

/// Which commit of AMD's runtime this was built from: none.
#[unsafe(no_mangle)]
extern "C" fn amd_dbgapi_get_git_hash() -> *const c_char {
    c"".as_ptr()
}

/// Number of the build of AMD's runtime: none.
#[unsafe(no_mangle)]
extern "C" fn amd_dbgapi_get_build_id() -> usize {
    0
}

entry_points! {
    /// Starts the runtime; it starts itself.
    fn hip_init() {
        Ok(())
    }

    /// Launches a kernel by its host stub: what `hipLaunchKernelGGL` of HIP before 5.3 is a macro of.
    fn _ZN8hip_impl22hipLaunchKernelGGLImplEmRK4dim3S2_jP12ihipStream_tPPv(
        function: usize,
        grid: *const Dim3,
        block: *const Dim3,
        dynamic_lds: u32,
        stream: *mut c_void,
        arguments: *const *const c_void,
    ) {
        let (grid, block) = (raw::load(grid)?, raw::load(block)?);
        stub_launch(function as *const c_void, grid, block, arguments, dynamic_lds as usize, stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked out by hand.
    #[test]
    fn halves() {
        for (single, half) in [
            (0.0_f32, 0_u16),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (65519.0, 0x7bff),
            (65520.0, 0x7c00),
            (f32::INFINITY, 0x7c00),
            // Ties: between 2048 and 2050, and 2050 and 2052.
            (2049.0, 0x6800),
            (2051.0, 0x6802),
            // 2^-14, 2^-24, half of that, and a bit more.
            (6.103_515_6e-5, 0x0400),
            (5.960_464_5e-8, 1),
            (2.980_232_2e-8, 0),
            (2.980_233e-8, 1),
            // 1.5 times 2^-24 is a tie that goes to 2 of them.
            (8.940_697e-8, 2),
        ] {
            assert_eq!(to_half(single), half, "{single}");
        }
        assert!(from_half(0x7e00).is_nan() && to_half(f32::NAN) & 0x7c00 == 0x7c00 && to_half(f32::NAN) & 0x3ff != 0);
        for half in (0..=0x7c00).chain(0x8000..=0xfc00) {
            assert_eq!(to_half(from_half(half)), half);
        }
    }
}
