//! Runs kernel dispatches without a GPU; strict mode is adversarial.
//!
//! The emulator is the oracle of the project: it shares no code with what rewrites kernels. It reads kernel descriptors
//! and program headers itself, finds what every instruction does by its operation in the instruction tables, and counts
//! branches by watching its own EXEC.
//!
//! In strict mode (see [`Options::strict`]) everything that the hardware leaves open is adversarial. Undefined
//! registers, LDS and scratch hold seeded random bits. A result that no wait has guaranteed must not be accessed.
//! Stores become visible to other waves late. Required wait states, forbidden sequences, races in LDS and uses of
//! undefined bits are checked. Waves run in seeded random order. `docs/reference/strict-mode.md` lists what is checked
//! and what is not.
//!
//! Common instructions have fast paths with the results of the slow ones (`exec::vector::fast`, and `global_fast`,
//! `lds_fast`, `scratch_fast` in `exec::memory`). Outside strict mode the workgroups of a long dispatch are divided
//! among threads (`device::workers`). `docs/results/emulator-missing.md` lists the operations that are not implemented,
//! and why.
//!
//! # Folders
//!
//! From the bottom to the top: a folder imports only those above it in this table.
//!
//! | folder | what |
//! |---|---|
//! | `address` | allocations, ranges, apertures, where an access of a lane goes |
//! | `float` | arithmetic and conversions of all formats and rounding modes |
//! | `lanes` | registers of all lanes, and loops over them |
//! | `fault` | why a dispatch was stopped; findings that it can go on after |
//! | `memory` | device memory and the loader of code objects |
//! | `op` | an instruction with its operands resolved, and what is known of its operation: data |
//! | `trace` | what a dispatch did: counts, origins of values, modelled time: data |
//! | `launch` | options, the dispatch packet, what all waves of a dispatch share |
//! | `shadow` | what strict mode keeps: operations in flight, store buffers, hazards, races, undefined bits |
//! | `state` | a wave, its workgroup's barrier, global wave sync; `Core`: access to them while an instruction runs |
//! | `strict` | the checks before and after an instruction; the order of stores |
//! | `exec` | a handler for each operation (`scalar`, `vector`, `matrix`, `memory`), and the choice of the handler |
//! | `run` | decoded code, the initial state of waves, the scheduler of workgroups |
//! | `timing` | the model of time, which decides when waves issue |
//! | `fidelity` | how exact what `exec` computes is |
//! | `device` | [`Device`]: dispatches in flight, and their division among threads |
//!
//! # Example
//!
//! A [`Device`] has memory and loaded code objects, and runs dispatches:
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
mod fidelity;
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
pub use address::aperture::{SHARED_APERTURE, private_aperture};
pub use address::{CodeAddress, ObjectId};
pub use device::Device;
pub use device::flight::{Flight, Share};
pub use exec::missing::missing;
pub use fault::findings::{Finding, FindingKind, Passes, Suppressions};
pub use fault::last_write::LastWrite;
pub use fault::overrun::{Beyond, Overrun};
pub use fault::{
    BarrierProblem, Fault, FaultKind, GlobalAccess, LdsAccess, MemoryAccess, MissingOrder, MissingSynchronisation,
    NoProgress,
};
pub use fidelity::exactness;
pub use launch::options::{Options, Residency};
pub use launch::packet::{Dispatch, QueuedPacket};
pub use launch::registers::RegisterDispatch;
pub use memory::loader::{LoadedObject, LoadedSymbol, SymbolKind};
pub use shadow::global::dispatches::{DispatchNumber, DispatchOrder};
pub use shadow::global::host::{HostAccess, HostTouch};
pub use trace::accesses::{AccessRecord, AccessRecords, AccessedMemory};
pub use trace::origins::{Origin, Origins, ValueOrigins, WaitOrigins};
pub use trace::timing::{
    Extrapolated, InstructionTime, LatencyClass, LatencyOverride, MemoryCounts, ModelledTime, Resource, ResourceUse,
    StallReason, TimedWorkgroups, Timing, TraceCategory, TracedInstruction, WaveSample, WaveTrace,
};
pub use trace::{DispatchStats, Trace, Visit};
/// What [`Device::map`] maps.
pub use vm_memory::{FileOffset, MmapRegion};
