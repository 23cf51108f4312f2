//! What every crate of wavetap stands on: located errors, checked reading and writing of bytes, numbers of variable
//! length, typed ids and patterns of names.
#![forbid(unsafe_code)]

pub mod added;
pub mod bytes;
pub mod entity;
pub mod error;
pub mod glob;
pub mod leb128;
