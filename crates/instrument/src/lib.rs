//! Instrumentation: what is measured, as edits of a kernel, and what that needs of registers, LDS and the kernel
//! descriptor.
//!
//! [`KernelFacts`] analyses one kernel once; [`instrument`] plans it for one counter mode: a snippet at each site of
//! the probes, a prologue that finds the record, and an epilogue at each end of the wave. Nothing is placed here and
//! nothing is written; a kernel that cannot be instrumented correctly is refused with its reason.
//!
//! | folder | question |
//! |---|---|
//! | `probe` | what is measured: one file for each probe |
//! | `placement` | which counters are kept, and how the others follow from them |
//! | `sink` | where counters are kept: one file for each place |
//! | `register` | counters in registers |
//! | `scavenge` | which registers inserted code uses |
//! | `frame` | what the kernel's entry and ends do |
//! | `layout` | where original and inserted code lie |
//! | `object` | all kernels of a code object together: what is added to it |
//!
//! Inserted code keeps its state in registers that no code of the kernel, nor anything it can call, names. Those are
//! looked for inside the kernel's allocation first; then the allocation grows; then snippets scavenge what they need:
//! scalar registers, spilled to lanes of a vector register, or lanes of vector registers, spilled to scalar registers,
//! or both, spilled to AGPRs or scratch memory. No allocation is ever lowered.
//!
//! Functions that a kernel reaches by calls of known targets are cloned for it and instrumented like it.
#![forbid(unsafe_code)]

mod analysis;
mod asm;
mod block_weights;
mod cost;
mod facts;
mod frame;
mod function;
mod group_memory;
mod guards;
mod hazard_mitigation;
mod high_registers;
mod instrumented;
pub mod layout;
pub mod object;
mod placement;
mod plan;
mod planned;
pub mod probe;
mod records;
pub mod refusal;
mod register;
mod scavenge;
mod scheduling;
mod sink;
mod site;
#[cfg(test)]
mod tests;
mod uncopied;

use wavetap_analysis::cfg::Program;
use wavetap_analysis::kernel::Stop;
use wavetap_object::code_object::Kernel;

pub use analysis::{Analysis, SpillTo};
pub use facts::KernelFacts;
pub use function::ClonedFunction;
pub use instrumented::{Instrumented, MetadataChange, Request};
pub use probe::Probe;
pub use scavenge::registers::{resources, resources_of};
pub use wavetap_profile::placement::CounterPlacement;

/// Plans the instrumentation of one kernel.
///
/// # Errors
/// Refused if it cannot be done correctly; failed if the kernel's descriptor contradicts itself or an instruction
/// cannot be built.
pub fn instrument(facts: &KernelFacts<'_, '_>, request: &Request) -> Result<Instrumented, Stop> {
    plan::cheapest(facts, request)
}

/// Whether launches of a kernel may need LDS after its static one, so that counters there could leave them none. `told`
/// says that the compiler of the code object names such kernels by an argument, as compilers do from code object
/// version 5 on; otherwise anything that looks like it counts.
///
/// # Errors
/// Refused if its code is not known.
pub fn may_have_dynamic_lds(program: &Program, kernel: &Kernel, told: bool) -> Result<bool, Stop> {
    let id = facts::find(program, kernel)?;
    Ok(kernel.metadata.as_ref().is_some_and(|metadata| group_memory::may_be_dynamic(program, id, metadata, told)))
}
