//! The state of waves and workgroups, and access to it with the checks of strict mode.

pub(crate) mod barrier;
pub(crate) mod clock_wait;
pub(crate) mod core;
pub(crate) mod fp_mode;
pub(crate) mod gws;
pub(crate) mod op;
pub(crate) mod random;
pub(crate) mod wave;
pub(crate) mod work;
