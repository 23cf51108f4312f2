//! What instructions do: a handler for each operation, by unit.

pub(crate) mod matrix;
pub(crate) mod memory;
pub(crate) mod missing;
pub(crate) mod pair;
pub(crate) mod scalar;
pub(crate) mod vector;
