//! Wavetap rewrites the GPU code inside a HIP executable so that it counts what its branches and lanes do, runs it, and explains the counts.
//!
//! Code is read, rewritten and run from the binary alone. The `wavetap` command (package `cli`) puts files and processes around
//! [`pipeline`]; [`pipeline::rewrite`] is the way in for other programs:
//!
//! ```no_run
//! use wavetap::pipeline::{Options, Probe, rewrite};
//!
//! let input = std::fs::read("app")?;
//! let rewritten = rewrite(&input, &Options { probes: vec![Probe::Branches], ..Options::default() })?;
//! for refused in rewritten.maps.iter().flat_map(|map| &map.refused) {
//!     eprintln!("{} is left as it was: {}", refused.demangled, refused.detail);
//! }
//! std::fs::write("app.counting", rewritten.bytes)?;
//! # Ok::<(), wavetap::error::Error>(())
//! ```
//!
//! # The map
//!
//! Data flows downwards; each stage borrows what the earlier ones made and changes none of it. A module imports only from floors above its own
//! in this table, except where it says so.
//!
//! | floor | module | for |
//! |---|---|---|
//! | 0 | [`error`], [`bytes`], [`entity`], `glob` | located errors, checked reading and writing, typed ids, patterns of names |
//! | 1 | [`elf`] | the checked tables of an ELF file, host or device |
//! | 1 | [`offload_bundle`] | finding, unpacking and writing the bundles of code objects in a host file |
//! | 1 | [`code_object`] | symbols, kernels, descriptors, metadata and source lines of a device ELF |
//! | 1 | [`isa`] | the instruction tables: decode, encode, print |
//! | 1 | [`profile`] | control block, records, site table, profile file: one definition for all who write or read them |
//! | 2 | [`kernel`] | the instructions that control reaches from an entry; edits as data; refusals |
//! | 3 | [`mod@cfg`] | blocks, edges, dominators, loops, the call graph |
//! | 4 | [`dataflow`] | liveness, reaching definitions, outstanding memory operations |
//! | 5 | [`instrument`] | probes: what is counted, as edits of a kernel |
//! | 6 | [`layout`] | places original and inserted code at new addresses |
//! | 7 | [`emit`] | device objects, bundles and host files with what was rewritten |
//! | 8 | [`verify`] | checks a rewritten file against its original; shares no code with floors 5 to 7 |
//! | 8 | [`emulator`] | runs dispatches without a GPU; uses `isa` and `code_object` only, so that it shares no mistake with floors 3 to 7 |
//! | 8 | [`mod@slice`] | what each wait waits for, ranked |
//! | 9 | [`report`] | profiles and slices as text, JSON and HTML |
//! | 10 | [`pipeline`] | the one place that orders the stages |
//!
//! Three rules hold throughout. *Right or refused*: a kernel that some stage cannot handle correctly is left byte for byte as it was, with a
//! reason ([`kernel::Reason`]). *Nothing original moves*: new code goes into new segments. *Input is hostile*: every offset and count in it is checked, and
//! an error names its place; nothing panics and nothing allocates what a header merely claims.
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
mod glob;
pub mod instrument;
pub mod isa;
pub mod kernel;
pub mod layout;
pub mod offload_bundle;
pub mod pipeline;
pub mod profile;
pub mod report;
pub mod slice;
pub mod verify;
