//! The heap of kernels: what `malloc` and `free` in device code ask the host for.
//!
//! The device libraries keep slabs of 2 MiB in a structure that begins as zeros (`ockl`, `heap_t`: "all bits 0 is an
//! acceptable state"), and ask the host for each slab and for each allocation of more than 3 KiB. The host's memory
//! cannot change while kernels run, so all that they can get is there before: one range, of which the host's memory is
//! taken as it is written.

use std::collections::BTreeMap;

use wavetap::code_object::CodeObject;
use wavetap::emulator::Device;
use wavetap::isa::{self, ConstantClock, Inst, Opcode, Value};

use crate::status::{OUT_OF_MEMORY, Outcome};

/// Bytes of the structure (`hidden_heap_v1`).
const HEAP_SIZE: u64 = 131_072;

/// Bytes that kernels can have at once.
const ARENA_SIZE: u64 = 2 << 30;

/// The alignment of slabs, which have this size too: their allocations find them by their address.
const SLAB: u64 = 2 << 20;

/// That of everything else: by it, `free` tells these from parts of slabs.
const PAGE: u64 = 4096;

/// Whether `malloc` of a code object waits for ever: the device libraries wait there for the constant clock, and those
/// of ROCm 5 read it by an instruction that this target does not have, so that they take its time for 0.
pub(crate) fn waits_for_ever(bytes: &[u8]) -> bool {
    let Ok(code) = CodeObject::parse(bytes) else { return false };
    let Some(target) = code.target() else { return false };
    let Some(ConstantClock::Message(message)) = target.constant_clock() else { return false };
    let asks = |inst: &Inst| {
        matches!(inst.opcode(), Opcode::S_SENDMSG_RTN_B32 | Opcode::S_SENDMSG_RTN_B64)
            && inst.operands.iter().any(|operand| operand.value == Value::Imm(message.into()))
    };
    let sections = code.elf().sections.iter().filter(|section| section.is_executable());
    !sections.filter_map(|section| code.elf().contents(section).ok()).any(|text| {
        let mut rest = text;
        while !rest.is_empty() {
            let size = match isa::decode(target, rest) {
                Ok(inst) if asks(&inst) => return true,
                Ok(inst) => usize::from(inst.size),
                Err(_) => 4,
            };
            rest = rest.get(size..).unwrap_or_default();
        }
        false
    })
}

/// The structure that kernels know, and the memory that they are given.
#[derive(Debug)]
pub(crate) struct DeviceHeap {
    /// Address of the structure.
    pub(crate) address: u64,
    arena: Arena,
}

/// A range of addresses, and what of it is in use.
#[derive(Debug)]
struct Arena {
    start: u64,
    end: u64,
    /// No address from here on was given out.
    fresh: u64,
    /// Sizes by address.
    used: BTreeMap<u64, u64>,
}

impl DeviceHeap {
    /// An empty heap.
    pub(crate) fn new(device: &mut Device) -> Outcome<Self> {
        let mut malloc = |size, align| device.malloc(size, align).map_err(|_| OUT_OF_MEMORY);
        let address = malloc(HEAP_SIZE, PAGE)?;
        Ok(DeviceHeap { address, arena: Arena::new(malloc(ARENA_SIZE, SLAB)?, ARENA_SIZE) })
    }

    /// Answers a kernel: the address of memory of this size, or 0 when there is none.
    pub(crate) fn give(&mut self, size: u64) -> u64 {
        self.arena.give(size).unwrap_or(0)
    }

    /// Takes memory back; whether it was given.
    pub(crate) fn take_back(&mut self, address: u64) -> bool {
        self.arena.used.remove(&address).is_some()
    }
}

impl Arena {
    fn new(start: u64, size: u64) -> Self {
        Arena { start, end: start + size, fresh: start, used: BTreeMap::new() }
    }

    fn give(&mut self, size: u64) -> Option<u64> {
        let align = if size == SLAB { SLAB } else { PAGE };
        let size = size.max(1).checked_next_multiple_of(PAGE)?;
        let fits = |from: u64, end: u64| {
            from.checked_next_multiple_of(align).filter(|at| at.checked_add(size).is_some_and(|to| to <= end))
        };
        let address = fits(self.fresh, self.end).or_else(|| {
            // The first gap between those in use, or after the last of them.
            let mut from = self.start;
            for (&address, &size) in &self.used {
                if let Some(at) = fits(from, address) {
                    return Some(at);
                }
                from = address + size;
            }
            fits(from, self.end)
        })?;
        self.fresh = self.fresh.max(address + size);
        self.used.insert(address, size);
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_are_aligned_and_what_is_freed_is_given_again() {
        let mut arena = Arena::new(4 * SLAB, 4 * SLAB);
        assert_eq!(arena.give(5000), Some(4 * SLAB));
        assert_eq!(arena.give(SLAB), Some(5 * SLAB));
        assert_eq!(arena.give(1), Some(6 * SLAB));
        assert_eq!(arena.give(SLAB), Some(7 * SLAB));
        // The end is reached: from now on gaps are used.
        assert_eq!(arena.give(PAGE), Some(4 * SLAB + 2 * PAGE));
        assert_eq!(arena.give(SLAB), None);
        assert!(arena.used.remove(&(5 * SLAB)).is_some());
        assert_eq!(arena.give(SLAB), Some(5 * SLAB));
        assert_eq!(arena.give(u64::MAX), None);
        let ranges: Vec<(u64, u64)> = arena.used.iter().map(|(at, size)| (*at, at + size)).collect();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }
}
