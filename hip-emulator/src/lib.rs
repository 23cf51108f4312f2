//! Stands in for `libamdhip64`: an unmodified HIP executable loads it, and its kernels run on the emulator.
//!
//! Launches are asynchronous, and streams are ordered queues: kernels in flight make progress together, and with the
//! program. What can be done at once is done at once all the same, by the thread that submits it and in the order of
//! submission, so that a run is the same every time: only a kernel that does not end within 500,000 wave-instructions
//! is left to a thread of this library, and so is what comes after it. Kernels in flight then have turns. One that
//! waits for what never comes is described on standard error after some seconds, and ended when it has executed as many
//! wave-instructions as it may (`WAVETAP_FUEL`). There is one device and as much memory as the emulator allows; fresh
//! device memory holds a pattern.
//!
//! What it cannot do honestly is refused: an entry point that is not implemented prints its name and returns
//! `hipErrorNotSupported`; the module `stubs` lists them. A kernel that accesses what it must not, or traps, is
//! described on standard error, and from then on every call gives the error that HIP gives then. Where the emulator
//! itself cannot go on (an instruction that it lacks, a rule of the hardware that strict mode found broken, no fuel
//! left) it ends the program, as nothing that the kernel computed could be trusted.
//!
//! - `status`, `errors`, `entry_point`: HIP's error codes and the state they leave; what entry points have in common.
//! - `settings`, `messages`: what the environment says; what a person is told.
//! - `objects`, `stream_op`, `copies`, `extents`, `graphs`, `node_types`, `handles`, `in_flight`: streams, events,
//!   tasks, arrays, textures, pools, graphs and what they do, as data.
//! - `choice`, `images`, `kernarg`, `counters`, `trace`, `time`, `collection`: the device to emulate, loaded code,
//!   kernel arguments, rewritten code, the emulator's trace, modelled time, all that is collected.
//! - `clocks`, `begin`, `busy`: modelled clocks of the device, its streams and the program.
//! - `hostcall`, `printf`: what kernels ask of the host while they run.
//! - `runtime`: all of that together, and the device's memory. `lock`: who may use it, and the order of locks.
//! - `dispatch`, `operations`, `collected_files`: what is done with it: kernels, copies and fills; files of what was
//!   collected.
//! - `check`, `called`, `failed_calls`: what `wavetap check` finds.
//! - `captured`, `replay`: one dispatch into a file, and out of it.
//! - `tasks`, `submit`: the threads that do what streams have not done yet; giving streams something to do.
//! - `registration`, `launch`, `modules`, `libraries`, `functions`, `symbols`: the entry points for code.
//! - `memory`, `managed`, `virtual_memory`, `pools`, `arrays`, `copy_calls`: the entry points for memory.
//! - `image_objects`: the descriptors that kernels sample and load images by.
//! - `textures`, `texture_references`: the entry points for textures and surfaces.
//! - `streams`, `capture`, `graph_calls`, `graph_nodes`, `graph_memory`, `graph_memory_calls`, `devices`, `contexts`:
//!   the entry points for order and devices; memory that graphs allocate.
//! - `properties`, `device_presets`, `host_memory`, `raw`: what the device says of itself; host memory that kernels may
//!   use; the caller's pointers.
//! - `hiprtc`: programs that compile code.
//! - `stubs`, `compatibility`: the rest of the entry points, and of what the library exports.
//!
//! The command that starts a program with it writes the configuration of the run to a file
//! ([`wavetap::collect::config`]) and sets `WAVETAP_CONFIG` to its path. A person may set these variables, with a
//! command or without; they come after the file:
//!
//! - `WAVETAP_TARGET`: the emulated device; by default gfx90a, or else the first known target that the program has code
//!   for.
//! - `WAVETAP_PROFILE`: file for the counters of instrumented kernels, a journal until the program ends: for one
//!   process, as all files below.
//! - `WAVETAP_TRACE`: file for the emulator's own counts.
//! - `WAVETAP_ORIGINS`: file for what waits waited for and where values came from, which takes many times as long.
//! - `WAVETAP_JOURNAL`, `WAVETAP_COLLECT`: folder where each process keeps its journal, which has everything as soon as
//!   a dispatch has ended; what it is to have: `counters,trace,time,samples,fidelity`.
//! - `WAVETAP_REWRITE`: `auto`, `lds`, `global`: code objects that do not count are made to when they are loaded, with
//!   the counters there.
//! - `WAVETAP_REWRITE_KERNELS`, `WAVETAP_REWRITE_MAX_LOSS`: only kernels that match one of these patterns, one in a
//!   line; waves per SIMD that a kernel may lose.
//! - `WAVETAP_ORIGINALS`: folder where the originals of such code objects are kept, as `MD5.co`.
//! - `WAVETAP_STRICT`: `1`: the emulator's strict mode.
//! - `WAVETAP_STRICT_CONTINUE`: `1`: it goes on after findings where it is defined how.
//! - `WAVETAP_SUPPRESSIONS`: file of findings that it goes on after and does not report.
//! - `WAVETAP_FINDINGS`: file that lines with what it went on after are added to: a number, the kind, the kernel and
//!   the message, with tabs between them.
//! - `WAVETAP_SEED`, `WAVETAP_FUEL`: its seed; wave-instructions that a dispatch may execute, 50,000,000,000 where it
//!   is not set.
//! - `WAVETAP_THREADS`: threads that a long dispatch is divided among outside the strict mode; `0`, or not set: one for
//!   each core.
//! - `WAVETAP_RECORDS`: `N`: waves share N records; `N:drop`: waves that find N records taken are dropped.
//! - `WAVETAP_PER_WAVE`: `1`: keep every wave's counters.
//! - `WAVETAP_TIMING`: file for the modelled time of kernels, which turns the timing model on.
//! - `WAVETAP_LATENCY`: `CLASS=CYCLES,…`: latencies for the model.
//! - `WAVETAP_TIMING_WAVES`: whether the modelled time has what the waves of a compute unit did.
//! - `WAVETAP_SAMPLES`, `WAVETAP_SAMPLE_INTERVAL`: file for its stall samples; modelled cycles between those of a wave.
//! - `WAVETAP_SKIP_KERNELS`: `1`: launches are checked and do nothing; a program that verifies its results must then
//!   fail.
//! - `WAVETAP_POISON`: `0`: fresh device memory holds zeros, not 0xcdd4dead over and over.

mod arrays;
mod begin;
mod busy;
mod called;
mod capture;
mod captured;
mod check;
mod choice;
mod clocks;
mod collected_files;
mod collection;
mod compatibility;
mod contexts;
mod copies;
mod copy_calls;
mod counters;
mod device_heap;
mod device_presets;
mod devices;
mod dispatch;
mod entry_point;
mod errors;
mod extents;
mod failed_calls;
mod fault_places;
mod fidelity;
mod findings;
mod functions;
mod graph_calls;
mod graph_memory;
mod graph_memory_calls;
mod graph_nodes;
mod graphs;
mod handles;
mod hiprtc;
mod host_memory;
mod hostcall;
mod image_objects;
mod images;
mod in_flight;
mod kernarg;
mod launch;
mod launch_attributes;
mod libraries;
mod lock;
mod managed;
mod memory;
mod messages;
mod modules;
mod node_types;
mod objects;
mod operations;
mod ordered;
mod origins;
mod per_thread;
mod pools;
mod printf;
mod properties;
mod raw;
mod registration;
mod replay;
mod runtime;
mod settings;
mod status;
mod stream_op;
mod streams;
mod stubs;
mod submit;
mod symbols;
mod tasks;
mod texture_references;
mod textures;
mod time;
mod touched;
mod trace;
mod uncounted;
mod virtual_memory;
