//! Wavetap rewrites the GPU code inside a HIP executable so that it counts what its branches and lanes do, runs it, and
//! explains the counts.
//!
//! Code is read, rewritten and run from the binary alone. The `wavetap` command (package `cli`) puts files and
//! processes around [`pipeline`]; [`pipeline::rewrite`] is the way in for other programs:
//!
//! ```no_run
//! use wavetap::pipeline::{Options, probe, rewrite};
//!
//! let input = std::fs::read("app")?;
//! let rewritten = rewrite(&input, &Options { probes: vec![probe::BRANCHES], ..Options::default() })?;
//! for refused in rewritten.maps.iter().flat_map(|map| &map.refused) {
//!     eprintln!("{} is refused: {}", refused.demangled, refused.detail);
//! }
//! std::fs::write("app.counting", rewritten.bytes)?;
//! # Ok::<(), wavetap::error::Error>(())
//! ```
//!
//! # The map
//!
//! Data flows downwards; each stage borrows what the earlier ones made and changes none of it. A crate depends on
//! crates above it only.
//!
//! - `base`: [`error`], [`bytes`], [`entity`]; located errors, checked reading and writing, typed ids, patterns of
//!   names.
//! - `amdgpu`: [`isa`]; the instruction tables: decode, encode, print; targets.
//! - `object`: [`elf`], [`offload_bundle`], [`code_object`]; tables of ELF files; bundles in host files; symbols,
//!   kernels, descriptors, metadata and source lines of code objects.
//! - `object`: [`emit`]; device objects, bundles and host files with what was rewritten.
//! - `profile`: [`profile`]; control block, records, site table, profile file: one definition for all who write or read
//!   them.
//! - `analysis`: [`kernel`], [`mod@cfg`], [`dataflow`]; decoded functions; blocks, loops, calls; liveness, definitions,
//!   outstanding memory operations.
//! - `instrument`: [`instrument`], [`layout`]; probes: what is counted, as edits of a kernel; places original and
//!   inserted code at new addresses.
//! - `verify`: [`verify`]; checks a rewritten file against its original; shares no code with `instrument`.
//! - `emulator`: [`emulator`]; runs dispatches without a GPU; depends on `amdgpu` only, so that it shares no mistake
//!   with what rewrites.
//! - `collect`: [`collect`]; the host's half of measuring, whatever runs the kernels: arms dispatches, collects their
//!   records; the configuration of a run.
//! - `memory`: [`memory`]; how lanes access memory, from the code: lines, banks, categories.
//! - `mix`: [`mix`]; what kernels executed, from the counts of their blocks: classes, operations, bytes.
//! - `slice`: [`mod@slice`]; what each wait waits for, ranked.
//! - `report`: [`report`]; profiles and slices as text, JSON and HTML.
//! - `wavetap`: [`pipeline`], [`at_load`], [`emulated`]; the one place that orders the stages; code that is rewritten
//!   when a process loads it; the emulator as a backend of `collect`.
//!
//! Three rules hold throughout. *Right or refused*: a kernel that some stage cannot handle correctly is left byte for
//! byte as it was, with a reason ([`kernel::Reason`]). *Nothing original moves*: new code goes into new segments.
//! *Input is hostile*: every offset and count in it is checked, and an error names its place; nothing panics and
//! nothing allocates what a header merely claims.
#![forbid(unsafe_code)]

pub use wavetap_amdgpu as isa;
pub use wavetap_analysis::{cfg, dataflow, kernel};
pub use wavetap_base::{bytes, entity, error};
pub use wavetap_collect as collect;
pub use wavetap_emulator as emulator;
pub use wavetap_instrument as instrument;
pub use wavetap_instrument::{layout, probe};
pub use wavetap_memory as memory;
pub use wavetap_mix as mix;
pub use wavetap_object::{code_object, elf, emit, offload_bundle};
pub use wavetap_profile as profile;
pub use wavetap_report as report;
pub use wavetap_slice as slice;
pub use wavetap_verify as verify;

pub mod at_load;
pub mod emulated;
pub mod pipeline;
