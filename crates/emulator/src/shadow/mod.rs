//! What strict mode tracks of a wave and a workgroup beside their state: operations in flight, hazards, races, which
//! bits were written.

pub(crate) mod event_hazard;
pub(crate) mod expert_scheduling;
pub(crate) mod hazard;
pub(crate) mod in_flight;
pub(crate) mod init_shadow;
pub(crate) mod lds_row;
pub(crate) mod matrix_hazard;
pub(crate) mod races;
pub(crate) mod store_buffer;
pub(crate) mod xcnt_replay;
