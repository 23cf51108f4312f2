//! The state of waves and workgroups, and access to it with the checks of strict mode.

pub(crate) mod core;
pub(crate) mod random;
