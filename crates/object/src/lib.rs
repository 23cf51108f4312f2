//! AMD GPU code objects: the bundles of them in host files, their tables, symbols, kernel descriptors, metadata and
//! source lines; and writing all of it back with code that was added.
#![forbid(unsafe_code)]

pub mod code_object;
pub mod elf;
pub mod emit;
pub mod offload_bundle;
pub mod selection;
