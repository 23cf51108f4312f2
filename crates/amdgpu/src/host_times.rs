//! What launches and copies cost beside the cycles of kernels, in modelled time.
//!
//! All of it is about one board, an MI300A: nothing else was found published. `docs/results/hardware.md` has the
//! sources and compares sums of these with measured times.

/// Nanoseconds from the submission of a launch to an idle device until its kernel begins, events around it included:
/// fitted to vector additions of 1024 to 4096 elements, the nearest to an empty kernel that was measured.
pub const FIRST_LAUNCH_NS: u64 = 4200;

/// Nanoseconds from a kernel's end to the start of the next one in the queue: a launch in a full queue takes 2.1 µs on
/// an MI210 (gpu-benches), of which the timing model says that 0.4 are the kernel's own.
pub const NEXT_LAUNCH_NS: u64 = 1700;

/// Nanoseconds of a copy between host and device beside those of its bytes: fitted to copies of 64 to 512 MiB.
pub const COPY_NS: u64 = 12_000;

/// Megabytes (10⁶ bytes) a second of such a copy, from the same fit.
pub const COPY_MB_PER_SECOND: u64 = 57_900;

/// Cycles of a clock of so many megahertz in this time, to the nearest one.
///
/// ```
/// assert_eq!(wavetap_amdgpu::host_times::cycles(4200, 2100), 8820);
/// ```
#[must_use]
pub fn cycles(nanoseconds: u64, mhz: u32) -> u64 {
    rounded(u128::from(nanoseconds) * u128::from(mhz), 1000)
}

/// Cycles that so many bytes take from the host to the device or back, [`COPY_NS`] not among them.
///
/// ```
/// // 57.9 kB in a microsecond of 2100 cycles.
/// assert_eq!(wavetap_amdgpu::host_times::copied_bytes(57_900, 2100), 2100);
/// ```
#[must_use]
pub fn copied_bytes(bytes: u64, mhz: u32) -> u64 {
    rounded(u128::from(bytes) * u128::from(mhz), COPY_MB_PER_SECOND.into())
}

fn rounded(dividend: u128, divisor: u128) -> u64 {
    u64::try_from((dividend + divisor / 2) / divisor).unwrap_or(u64::MAX)
}
