//! Which instructions may be inserted, and where.

pub(crate) mod bundles;
pub(crate) mod first_vector;
pub(crate) mod forbidden;
pub(crate) mod high_registers;
