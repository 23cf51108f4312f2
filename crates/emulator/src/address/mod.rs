//! Where things are: allocations, loaded objects, code.

pub(crate) mod allocation;
