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

mod address;
mod device;
mod exec;
mod fault;
mod float;
mod lanes;
mod launch;
mod memory;
mod op;
mod run;
mod shadow;
mod state;
mod strict;
mod timing;
mod trace;

pub use address::allocation::{Allocation, AllocationKind, ForeignMemory};
pub use address::{CodeAddress, ObjectId};
pub use device::Device;
pub use device::flight::{Flight, Share};
pub use exec::missing::missing;
pub use fault::findings::{Finding, FindingKind, Passes, Suppressions};
pub use fault::overrun::Overrun;
pub use fault::{Fault, FaultKind, LdsAccess, MemoryAccess};
pub use launch::options::Options;
pub use launch::packet::Dispatch;
pub use memory::loader::{LoadedObject, LoadedSymbol, SymbolKind};
pub use trace::origins::{Origin, Origins, ValueOrigins, WaitOrigins};
pub use trace::timing::{
    InstructionTime, LatencyClass, LatencyOverride, MemoryCounts, ModelledTime, StallReason, Timing, WaveSample,
};
pub use trace::{DispatchStats, Trace};
