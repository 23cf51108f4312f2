//! What strict mode tracks of a wave and a workgroup beside their state: operations in flight, hazards, races, which
//! bits were written.

pub(crate) mod barrier_sites;
pub(crate) mod event_hazard;
pub(crate) mod expert_scheduling;
pub(crate) mod global;
pub(crate) mod group_checks;
pub(crate) mod hazard;
pub(crate) mod in_flight;
pub(crate) mod init_shadow;
pub(crate) mod matrix_hazard;
pub(crate) mod neighbours;
pub(crate) mod polls;
pub(crate) mod races;
pub(crate) mod store_buffer;
pub(crate) mod wave_checks;
pub(crate) mod xcnt_replay;
