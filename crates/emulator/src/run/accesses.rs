//! Records of where lanes go in memory.

use crate::address::CodeAddress;
use crate::exec::memory::accesses::{Accesses, How, gather};
use crate::lanes::active;
use crate::op::Class;
use crate::state::core::Core;
use crate::state::op::Op;
use crate::trace::accesses::{AccessRecord, AccessedMemory};

/// The accesses of an instruction that is about to be executed. What strict mode says of the registers that addresses
/// are in it says when the instruction itself reads them.
fn gathered(core: &mut Core, op: &Op) -> Option<Accesses> {
    let said = core.wave.checks.found.borrow().len();
    let accesses = gather(core, op);
    core.wave.checks.found.borrow_mut().truncate(said);
    accesses
}

/// Notes where the lanes of an instruction are about to go in memory.
pub(super) fn note_accesses(core: &mut Core, op: &Op, most: usize) {
    let Some(accesses) = gathered(core, op) else { return };
    let (place, workgroup, wave) =
        (CodeAddress { object: op.object, address: op.address }, core.wave.group_id, core.wave.index);
    let mut add = |memory, bytes: u64, lanes, addresses, heads| {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let record = AccessRecord { place, workgroup, wave, memory, bytes, lanes, addresses, heads };
        core.stats.accesses.add(record, most);
    };
    let both = [(AccessedMemory::Global, !accesses.scratch), (AccessedMemory::Scratch, accesses.scratch)];
    for (memory, of) in both.into_iter().filter(|(_, of)| accesses.lanes & of != 0) {
        let each = active(accesses.lanes).zip(&accesses.memory).filter(|(lane, _)| of >> lane & 1 != 0);
        let addresses = each.map(|(_, address)| *address).collect();
        let heads = if memory == AccessedMemory::Global { accesses.heads.clone() } else { Vec::new() };
        add(memory, accesses.size, accesses.lanes & of, addresses, heads);
    }
    for lds in accesses.lds.iter().filter(|lds| lds.mask != 0) {
        let addresses = active(lds.mask).map(|lane| lds.addresses[lane]).collect();
        add(AccessedMemory::Lds, lds.size, lds.mask, addresses, Vec::new());
    }
}

/// What is accessed while time is not modelled: 64 bytes of memory, what no cache's line is shorter than.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WarmLine {
    pub address: u64,
    pub how: How,
    /// By scalar memory.
    pub scalar: bool,
}

impl WarmLine {
    const BYTES: u64 = 64;
}

/// Notes the lines that an instruction is about to access.
pub(super) fn note_lines(core: &mut Core, op: &Op, lines: &mut Vec<WarmLine>) {
    if !matches!(op.class, Class::Vmem | Class::Smem) {
        return;
    }
    let Some(accesses) = gathered(core, op) else { return };
    let last = accesses.size.max(1) - 1;
    let numbers =
        accesses.memory.iter().flat_map(|&at| at / WarmLine::BYTES..=at.saturating_add(last) / WarmLine::BYTES);
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    let (how, scalar) = (accesses.how, op.class == Class::Smem);
    lines.extend(numbers.iter().map(|number| WarmLine { address: number * WarmLine::BYTES, how, scalar }));
}
