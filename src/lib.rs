//! Wavetap rewrites the GPU code inside a HIP executable so that it counts what its branches and lanes do.
//!
//! # The map
//!
//! Data flows downwards; each stage borrows what the earlier ones made and changes none of it.
//!
//! | module | for |
//! |---|---|
//! | [`error`], [`bytes`], [`entity`] | located errors, checked reading, typed ids |
//! | [`elf`] | the checked tables of an ELF file, host or device |
//! | [`offload_bundle`] | finding, unpacking and writing the bundles of code objects in a host file |
//! | [`code_object`] | symbols, kernels, descriptors, metadata and source lines of a device ELF |
//! | [`isa`] | the instruction tables: decode, encode, print |
//! | [`emulator`] | runs dispatches without a GPU |
//! | [`kernel`] | the instructions that control reaches from an entry |
//! | [`mod@cfg`] | blocks, edges, dominators, loops, the call graph |
//! | [`dataflow`] | liveness, reaching definitions, outstanding memory operations |
//! | [`instrument`] | probes: what is counted, as edits of a kernel |
//! | [`layout`] | places original and inserted code at new addresses |
//! | [`mod@slice`] | what each wait waits for, ranked |
//! | [`slice`] | what each wait waits for, ranked |
//! | [`verify`] | an independent checker of a rewritten file |
//! | [`emit`] | device objects, bundles and host files with what was rewritten |
#![forbid(unsafe_code)]

pub mod bytes;
pub mod cfg;
pub mod code_object;
pub mod dataflow;
pub mod elf;
pub mod emit;
pub mod emulator;
pub mod entity;
pub mod error;
pub mod instrument;
pub mod isa;
pub mod kernel;
pub mod layout;
pub mod offload_bundle;
pub mod profile;
pub mod slice;
pub mod verify;
