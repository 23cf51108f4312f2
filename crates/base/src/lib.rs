//! What every crate of wavetap stands on: located errors, checked reading and writing of bytes, numbers of variable
//! length, typed ids, dominators of graphs, patterns of names, and names near a misspelt one.
#![forbid(unsafe_code)]

pub mod added;
pub mod bytes;
pub mod dominators;
pub mod entity;
pub mod error;
pub mod glob;
pub mod leb128;
pub mod nearest;
