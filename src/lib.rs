//! Wavetap rewrites the GPU code inside a HIP executable so that it counts what its branches and lanes do.
//!
//! # The map
//!
//! Data flows downwards; each stage borrows what the earlier ones made and changes none of it.
//!
//! | module | for |
//! |---|---|
//! | [`error`], [`bytes`], [`entity`] | located errors, checked reading, typed ids |
//! | [`isa`] | the instruction tables: decode, encode, print |
//! | [`emulator`] | runs dispatches without a GPU |
//! | [`kernel`] | the instructions that control reaches from an entry |
//! | [`cfg`] | blocks, edges, dominators, loops, the call graph |
//! | [`dataflow`] | liveness, reaching definitions, outstanding memory operations |
#![forbid(unsafe_code)]

pub mod bytes;
pub mod cfg;
pub mod dataflow;
pub mod emulator;
pub mod entity;
pub mod error;
pub mod isa;
pub mod kernel;
pub mod profile;
