//! Runs kernel dispatches without a GPU, and is deliberately a harsh machine.
//!
//! The emulator is the oracle of the project: it shares no code with what rewrites kernels. It reads kernel descriptors
//! and program headers itself, resolves every instruction to its meaning by the name in the instruction tables, and
//! counts branches by watching its own EXEC.
//!
//! In strict mode (see [`Options::strict`]) everything the hardware leaves open is made unkind: undefined registers,
//! LDS and scratch hold seeded random bits, a result that no wait has guaranteed must not be touched, stores become
//! visible to other waves late, required wait states and forbidden sequences are checked, so are races in LDS and uses
//! of what was never written, and waves run in seeded random order. `docs/reference/strict-mode.md` says what is
//! checked and what is not.
//!
//! Common instructions go short ways that give the same results (`vector_fast`, `global_fast`, `lds_fast`,
//! `scratch_fast`), and outside strict mode the workgroups of a long dispatch are divided among threads (`workers`).
//! Which operations have no meaning here, and why, is in `docs/results/emulator-missing.md`.
//!
//! A [`Device`] has memory, loaded code objects and a way to run a dispatch:
//!
//! ```
//! use wavetap_emulator::{Device, Options};
//! use wavetap_amdgpu::Target;
//!
//! let mut device = Device::new(Target::by_name("gfx90a").unwrap(), Options::default());
//! let buffer = device.malloc(64, 16).unwrap();
//! device.write(buffer, &[1, 2, 3]).unwrap();
//! let mut back = [0; 3];
//! device.read(buffer, &mut back).unwrap();
//! assert_eq!(back, [1, 2, 3]);
//! ```
#![forbid(unsafe_code)]

mod allocation;
mod async_copy;
mod atomic;
mod brain;
mod buffer;
mod code;
mod compare;
mod convert;
mod copied;
mod core;
mod delayed;
mod dependences;
mod device;
mod direct_lds;
mod dispatch;
mod dot;
mod events;
mod exact;
mod fault;
mod findings;
mod flight;
mod float;
mod float_order;
mod fork;
mod global_fast;
mod gws;
mod halves;
mod hazard;
mod image;
mod known;
mod lane_access;
mod lanes;
mod lds;
mod lds_fast;
mod lds_row;
mod loader;
mod matrix;
mod matrix_hazard;
mod memory;
mod missing;
mod movement;
mod named;
mod op;
mod origins;
mod packed;
mod pair;
mod pending;
mod races;
mod random;
mod run;
mod sampler;
mod scalar;
mod scalar_control;
mod scalar_exec;
mod scalar_float;
mod scalar_memory;
mod scaled;
mod scaled_matrix;
mod scaled_pack;
mod scratch_fast;
mod small_float;
mod spare;
mod sparse;
mod sparse_wave;
mod store_order;
mod strict;
mod tensor;
mod timing;
mod trace;
mod translations;
mod transposing;
mod typed;
mod undefined;
mod undefined_memory;
mod vector;
mod vector_fast;
mod vector_float;
mod vector_int;
mod vector_memory;
mod wave_matrix;
mod wave_scaled;
mod wave_transposing;
mod workers;

pub use device::{Device, Options};
pub use dispatch::Dispatch;
pub use fault::{Fault, FaultKind, LdsAccess, MemoryAccess};
pub use findings::{Finding, FindingKind, Passes, Suppressions};
pub use flight::{Flight, Share};
pub use loader::{LoadedObject, LoadedSymbol, ObjectId, SymbolKind};
pub use memory::{Allocation, AllocationKind, ForeignMemory};
pub use missing::missing;
pub use origins::{Origin, Origins, ValueOrigins, WaitOrigins};
pub use timing::{
    InstructionTime, LatencyClass, LatencyOverride, MemoryCounts, ModelledTime, StallReason, Timing, WaveSample,
};
pub use trace::{CodeAddress, DispatchStats, Overrun, Trace};
