//! The files: every original byte is where it was, and loaders find what they need.

pub(crate) mod host;
mod image;
pub(crate) mod object;
mod tables;
