//! Flat addresses that mean LDS or scratch, by their high 32 bits.

use wavetap_amdgpu::Target;

/// Bits 63:32 of a flat address in LDS (ROCm's value for gfx9).
pub const SHARED_APERTURE: u32 = 0x0001_0000;

/// Operand code of the address that scratch begins at, where flat addresses of scratch are such as other waves can use
/// (gfx1250).
pub(crate) const FLAT_SCRATCH_BASE: u16 = 230;

/// Bits 63:32 of a flat address in scratch.
pub(crate) const PRIVATE_APERTURE: u32 = 0x0002_0000;

/// Bits 63:32 of where scratch begins in flat addresses that name the lane. Code takes every address for one of scratch
/// that differs from this only below bit 58 (LLVM's lowering of `llvm.amdgcn.is.private`), so memory must not.
pub(crate) const LANES_APERTURE: u32 = 0x0800_0000;

/// Bits 63:32 of a flat address in scratch; where addresses name the lane, of the first lane's.
#[must_use]
pub fn private_aperture(target: Target) -> u32 {
    if target.has_flat_scratch_base() { LANES_APERTURE } else { PRIVATE_APERTURE }
}

/// The lane in whose scratch a flat address is, where flat addresses name it in bits 56:52 (LLVM's lowering of casts
/// from private to flat).
pub(crate) fn lane_of(address: u64) -> Option<usize> {
    let high = (address >> 32) as u32 ^ LANES_APERTURE;
    (high < 1 << 26).then_some((high >> 20) as usize)
}
