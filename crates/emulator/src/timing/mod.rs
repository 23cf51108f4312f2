//! A model of time beside the functional emulator: how many cycles a dispatch might take, and what its waves wait for.
//!
//! The model is driven by execution: it decides which wave issues its next instruction when, the functional emulator
//! runs that instruction, and the model works out when its results are there. Numbers are facts of the target
//! (`isa-tables/machine.yaml`, `isa-tables/latency.yaml`), most of them estimates with a range. What is modelled and
//! what is left out is in `docs/reference/timing-model.md`. It is a *model*: what prints its cycles says so.
//!
//! | file | what |
//! |---|---|
//! | `machine` | the numbers of a target, with what the user put in their place |
//! | `facts` | what the model needs of an instruction |
//! | `access` | the addresses of a memory instruction; its conflicts in LDS |
//! | `chance` | latencies by chance |
//! | `lanes` | how long the addresses of an instruction keep L1 |
//! | `cache`, `memory` | caches and the way to memory |
//! | `sampling` | which workgroups are modelled, where not all are |
//! | `place` | which workgroup is on which compute unit |
//! | `wave` | results, counters and charged cycles of a wave |
//! | `schedule` | the order of everything |
//! | `engine` | how instructions are executed, the only part that uses the functional emulator's scheduler |

mod cache;
mod chance;
mod engine;
mod facts;
mod lanes;
mod machine;
mod memory;
mod place;
mod sampling;
mod schedule;
mod wave;

pub(crate) use memory::KeptMemory;
pub(crate) use schedule::{Advanced, PausedModel, advance, begin};
