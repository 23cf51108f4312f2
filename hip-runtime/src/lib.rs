//! Stands in for `libamdhip64`: an unmodified HIP executable loads it, and its kernels run on the emulator.
//!
//! It does what a program can observe of the real library where everything is executed in order: a launch has ended when it returns, so
//! every stream is always idle. What it cannot do honestly is refused: an entry point that is not implemented prints its name and
//! returns `hipErrorNotSupported`. A kernel that faults ends the program, as a GPU's fault does.
//!
//! | module | for |
//! |---|---|
//! | `status`, `settings` | HIP's error codes; what the environment asks for |
//! | `runtime`, `images`, `kernarg`, `counters`, `trace` | the device, loaded code, kernel arguments, control block, the emulator's trace |
//! | `registration`, `launch`, `memory`, `copies`, `symbols`, `streams`, `modules`, `devices`, `functions` | the entry points |
//! | `properties`, `host_memory`, `raw` | layouts of the device properties; host memory that kernels may use; the caller's pointers |
//! | `stubs` | the rest of the entry points |
//!
//! The command that starts a program with it sets these variables:
//!
//! | variable | meaning |
//! |---|---|
//! | `WAVETAP_TARGET` | the emulated device; by default gfx90a, or else the first known target that the program has code for |
//! | `WAVETAP_PROFILE` | file for the counters of instrumented kernels |
//! | `WAVETAP_TRACE` | file for the emulator's own counts |
//! | `WAVETAP_STRICT` | `1`: the emulator's strict mode |
//! | `WAVETAP_SEED`, `WAVETAP_FUEL` | its seed; wave-instructions that a dispatch may execute |
//! | `WAVETAP_RECORDS` | `N`: waves share N records; `N:drop`: waves that find N records taken are dropped |
//! | `WAVETAP_PER_WAVE` | `1`: keep every wave's counters |

mod copies;
mod counters;
mod devices;
mod functions;
mod host_memory;
mod images;
mod kernarg;
mod launch;
mod memory;
mod modules;
mod properties;
mod raw;
mod registration;
mod runtime;
mod settings;
mod status;
mod streams;
mod stubs;
mod symbols;
mod trace;
