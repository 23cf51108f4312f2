//! Wavetap rewrites the GPU code inside a HIP executable so that it measures itself, runs it, and explains the
//! measurements.
//!
//! Code is read, rewritten and run from the binary alone: no source, no compiler, no GPU. The `wavetap` command
//! (package `cli`) is arguments and printing around this library.
//!
//! # A run
//!
//! [`Program`] is an executable, library or code object. It is rewritten, run, and explained:
//!
//! ```no_run
//! use wavetap::run::{BackendChoice, RunOptions, Stdout};
//! use wavetap::{ExplainOptions, Options, probe, Program};
//!
//! let program = Program::open("hip-samples/bin/divergence")?;
//! let rewritten = program.rewrite(&Options::new([probe::BRANCHES]))?;
//! assert!(rewritten.refused().is_empty(), "every kernel counts");
//!
//! let run = RunOptions::new().backend(BackendChoice::Emulator).target("gfx90a").stdout(Stdout::Discarded);
//! let finished = rewritten.run(&run)?;
//! assert_eq!(finished.exit_code(), 0);
//!
//! let profile = finished.profile()?;
//! let report = finished.explain(&profile, &ExplainOptions::new())?;
//! for kernel in &report.kernels {
//!     println!("{}: {} waves", kernel.demangled, kernel.waves);
//! }
//! # Ok::<(), wavetap::Error>(())
//! ```
//!
//! [`Program::kernels`] and [`Program::each_object`] look at code without running it, [`emulated::Emulator`] runs one
//! kernel with arguments of the caller's, and the functions of [`pipeline`] take bytes in place of files. Examples are
//! in the folder `examples/`.
//!
//! # Errors
//!
//! Everything that can fail returns [`Error`]. It says what was found, what was expected and where, and its
//! [`Error::kind`] tells bad input, something that is not supported, a limit, a fault of the library and an error of
//! the system apart. The errors of single parts ([`emulator::Fault`], [`collect::memory::MemoryError`],
//! [`collect::session::BeginError`]) convert to it. That a kernel is refused is no error: see
//! [`RewrittenProgram::refused`].
//!
//! # What stays the caller's
//!
//! The library prints nothing and handles no signals. [`run::Observer`] is told before an application starts and when
//! it has ended; [`files::observe_temporaries`] says which files a signal would leave behind.
//!
//! # The map
//!
//! Data flows downwards; each stage borrows what the earlier ones made and changes none of it. A crate depends on
//! crates above it only.
//!
//! - `base`: [`error`], [`bytes`], [`entity`], [`nearest`]; located errors, checked reading and writing, typed ids,
//!   patterns of names and names near a misspelt one.
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
//! - `verify`: [`verify`]; checks a rewritten file against its original; shares with `instrument` only what `object`,
//!   `amdgpu` and `analysis` know of any code: decoding, calls, control flow, wait counters.
//! - `emulator`: [`emulator`]; runs dispatches without a GPU; depends on `amdgpu` and `base` only, so that it shares no
//!   mistake with what rewrites.
//! - `collect`: [`collect`]; the host's half of measuring, whatever runs the kernels: arms dispatches, collects their
//!   records; the configuration of a run.
//! - `capture`: [`capture`]; one dispatch as a file: code, arguments, the memory that they reach, and what it became.
//! - `memory`: [`memory`]; how lanes access memory, from the code: lines, banks, categories.
//! - `mix`: [`mix`]; what kernels executed, from the counts of their blocks: classes, operations, bytes.
//! - `code`: [`mod@code`]; code of any vendor as the slicer reads it.
//! - `amd-code`: [`amd_code`]; the same of AMD GPUs, from the analyses.
//! - `slice`: [`mod@slice`]; what each wait waits for, ranked.
//! - `report`: [`report`]; profiles and slices as text, JSON and HTML.
//! - `wavetap`: [`pipeline`], [`Program`], [`run`], [`at_load`], [`emulated`], [`doctor`], [`files`]; the one place
//!   that orders the stages; programs; processes that are run and what they leave; code that is rewritten when a
//!   process loads it; the emulator as a backend of `collect` and as a GPU for single kernels; what a machine has for
//!   programs to run on; inputs and outputs.
//!
//! Three rules hold throughout. *Right or refused*: a kernel that some stage cannot handle correctly is left byte for
//! byte as it was, with a reason ([`kernel::Reason`]). *Nothing original moves*: new code goes into new segments.
//! *Input is hostile*: every offset and count in it is checked, and an error names its place; nothing panics and
//! nothing allocates what a header merely claims.
#![forbid(unsafe_code)]

pub use wavetap_amd_code as amd_code;
pub use wavetap_amdgpu as isa;
pub use wavetap_analysis::{cfg, dataflow, kernel};
pub use wavetap_base::{bytes, entity, error, glob, nearest};
pub use wavetap_capture as capture;
pub use wavetap_code as code;
pub use wavetap_collect as collect;
pub use wavetap_collect::stderr_line;
pub use wavetap_emulator as emulator;
pub use wavetap_explain as explain;
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
pub mod doctor;
pub mod emulated;
pub mod files;
pub mod pipeline;
mod program;
pub mod run;

pub use error::{Error, Kind, Result, ResultExt};
pub use pipeline::{CounterPlacement, Counters, Options, Selection};
pub use profile::file::Profile;
pub use program::{ExplainOptions, KernelVersion, Program, ProgramKernel, RewrittenProgram, rewrite_into};
pub use report::Report;
pub use run::{Finished, RunOptions};
