//! Where waves begin, and whether calls return.

use wavetap_analysis::cfg::{BodyId, Program};
use wavetap_analysis::kernel::end_of_wave;
use wavetap_code::Entries;
use wavetap_object::code_object::{CodeObject, Field, Kernel};

/// How waves come into a kernel of this code object.
#[must_use]
pub fn entries(program: &Program, code: &CodeObject<'_>, name: &str) -> Entries {
    let kernel = code.kernel(name);
    let flows = program.by_name(name).is_some_and(|id| always_returns(program, id)) && kernel.is_some();
    Entries { flows, also_begins: kernel.and_then(begins_after_entry) }
}

/// Whether all that a body may call is known, and none of it ends the wave.
#[must_use]
pub fn always_returns(program: &Program, id: BodyId) -> bool {
    let callees = program.callees(id);
    !callees.unknown && callees.bodies.iter().all(|id| end_of_wave(program.body(*id)).is_none())
}

/// Bytes of the code at the entry that loads the arguments, where they may be preloaded instead: waves begin after it
/// (AMDGPUUsage, "Preloaded Kernel Arguments").
const PRELOAD_PROLOGUE: u64 = 256;

/// Whether waves may begin after the entry of a kernel: with preloaded arguments they do, if the hardware can.
#[must_use]
pub fn starts_after_entry(kernel: &Kernel) -> bool {
    kernel.descriptor.get(Field::KERNARG_PRELOAD_LENGTH) != 0
}

/// Where waves may begin instead of at a kernel's entry, if they may.
#[must_use]
pub fn begins_after_entry(kernel: &Kernel) -> Option<u64> {
    starts_after_entry(kernel).then_some(kernel.entry + PRELOAD_PROLOGUE)
}
