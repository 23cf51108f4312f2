//! The library's tests, by what they are about: one program, since each more takes seconds to link, and since all cores
//! are busy to the end.
//!
//! `cargo test -p wavetap --test all timing::` runs those of one module.

mod analyses;
mod code_object;
mod counter_place;
mod disassembly;
mod emit_code_object;
mod emit_host;
mod emulated;
mod emulator;
mod emulator_buffers;
mod emulator_cdna4;
mod emulator_cdna5;
mod emulator_copies;
mod emulator_direct_lds;
mod emulator_faults;
mod emulator_findings;
mod emulator_flights;
mod emulator_forks;
mod emulator_generations;
mod emulator_gfx1250;
mod emulator_groups;
mod emulator_gws;
mod emulator_halves;
mod emulator_instructions;
mod emulator_lds_bounds;
mod emulator_missing;
mod emulator_packed_conversions;
mod emulator_tensor;
mod emulator_threads;
mod emulator_translations;
mod generations;
mod hip_compiler;
mod images;
mod isa_build;
mod isa_decode;
mod memory_scopes;
mod memory_scopes_newer;
mod offload_bundle;
mod random;
mod real_libraries;
mod slice;
mod timed;
mod timing;
mod timing_invariants;
mod timing_published;
mod verify_host;
