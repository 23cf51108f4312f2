//! Clocks as the kernel's driver gives them.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds between ticks of the GPU's clock.
const GPU_TICK: u64 = 10;

/// Kilohertz of the GPU's clock.
pub(crate) const GPU_KILOHERTZ: u32 = 100_000;

fn nanoseconds(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    (tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(tv_nsec as u64)
}

/// Nanoseconds since the machine was started, by which the runtime gives times.
pub(crate) fn system() -> u64 {
    nanoseconds(ClockId::Boottime)
}

/// Nanoseconds that nothing corrects.
pub(crate) fn cpu() -> u64 {
    nanoseconds(ClockId::MonotonicRaw)
}

/// Ticks of the GPU.
pub(crate) fn gpu() -> u64 {
    system() / GPU_TICK
}
