//! What there is room for: on a GPU, and here.

use std::sync::Arc;

use wavetap_amdgpu::{Demand, Target};

use crate::launch::options::{Options, Residency};

/// What a GPU has room for of a dispatch.
pub(crate) struct Room {
    /// Workgroups at the same time, at least 1.
    pub workgroups: u64,
    /// The GPU in words.
    pub board: Arc<str>,
}

impl Room {
    /// For a dispatch whose workgroups demand this, if it is looked at whether they wait for each other.
    pub(crate) fn new(options: &Options, target: Target, demand: impl FnOnce() -> Demand) -> Option<Room> {
        let residency = options.residency.as_ref().filter(|_| options.strict && options.timing.is_none());
        let Residency { compute_units, board } = residency?;
        let demand = demand();
        let units = compute_units / if demand.wgp_mode { 2 } else { 1 };
        let workgroups = u64::from(target.workgroups(&demand)) * u64::from(units);
        Some(Room { workgroups: workgroups.max(1), board: board.clone() })
    }
}

/// How many waves with so much scratch may be resident at once, so that scratch stays bounded; with `all` as many as a
/// large GPU holds.
pub(crate) fn resident_waves(wave_scratch_size: u64, all: bool) -> usize {
    /// As many as are of use.
    const MOST: u64 = 2048;
    /// As many as a large GPU holds.
    const ALL: u64 = 1 << 14;
    /// Two workgroups of the largest size.
    const LEAST: u64 = 32;
    const ARENA: u64 = 1 << 30;
    (ARENA / wave_scratch_size.max(1)).clamp(LEAST, if all { ALL } else { MOST }) as usize
}
