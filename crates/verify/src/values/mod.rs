//! Every original instruction reads what it reads in the original.

pub(crate) mod carried;
pub(crate) mod compared;
pub(crate) mod defined;
pub(crate) mod dropped;
mod entry;
pub(crate) mod preloaded;
pub(crate) mod preserve;
pub(crate) mod scratch;
mod small_map;
mod spill_slots;
