//! A wave that waits for a clock.

/// A wave is in a loop that only waits until a clock shows a later time (`run::clock_loops`).
pub(crate) struct ClockWait {
    /// The device address at which the loop begins.
    pub start: u64,
    /// The shader clock when the wave first read a clock in it.
    pub first: u64,
}
