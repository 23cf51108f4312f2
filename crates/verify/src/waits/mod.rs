//! Inserted code waits for what it uses, and for what it overwrites.

pub(crate) mod outstanding;
mod outstanding_writes;
mod settled_scalars;
pub(crate) mod xcnt_replay;
