//! Runs the workgroups of a dispatch: decoded code, the state that waves begin with, the scheduler.

pub(crate) mod accesses;
mod clock_loops;
pub(crate) mod code;
mod counts;
mod demands;
pub(crate) mod origins;
pub(crate) mod paused;
pub(crate) mod plan;
pub(crate) mod pool;
pub(crate) mod residency;
mod room;
pub(crate) mod schedule;
pub(crate) mod shared;
mod sharing;
mod straight_line;
pub(crate) mod stuck;
#[cfg(test)]
mod tests;
pub(crate) mod worker;
