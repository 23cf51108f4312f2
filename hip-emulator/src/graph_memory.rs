//! Memory that graphs allocate. A graph's allocation has one address for as long as the graph, or what was copied or
//! instantiated from it, exists. What a launch has allocated is the program's until it is freed, by the program or by
//! the same or another graph: also when the graph has ended before.

use std::collections::HashMap;
use std::ffi::c_int;

use crate::status::*;

/// `hipGraphMemAttributeType`.
const USED_CURRENT: c_int = 0;
const USED_HIGH: c_int = 1;
const RESERVED_CURRENT: c_int = 2;
const RESERVED_HIGH: c_int = 3;

/// The sizes of graphs' allocations by address.
#[derive(Debug, Default)]
pub(crate) struct GraphMemory {
    /// Those whose graphs exist.
    owned: HashMap<u64, u64>,
    /// Those that launches have allocated, as the program submitted them, and that are not freed.
    live: HashMap<u64, u64>,
    used_high: u64,
    reserved_high: u64,
}

impl GraphMemory {
    /// Bytes that are live.
    pub(crate) fn used(&self) -> u64 {
        self.live.values().sum()
    }

    /// Bytes that graphs, or launches of graphs that have ended, have.
    pub(crate) fn reserved(&self) -> u64 {
        let orphans = self.live.iter().filter(|(address, _)| !self.owned.contains_key(address));
        self.owned.values().sum::<u64>() + orphans.map(|(_, size)| size).sum::<u64>()
    }

    /// Moves the high-water marks.
    fn has_changed(&mut self) {
        (self.used_high, self.reserved_high) =
            (self.used_high.max(self.used()), self.reserved_high.max(self.reserved()));
    }

    /// What a launch does to it.
    pub(crate) fn launch(&mut self, allocated: &HashMap<u64, u64>, freed: &[u64], frees_before: bool) -> Outcome {
        if !frees_before && allocated.keys().any(|address| self.live.contains_key(address)) {
            return Err(INVALID_VALUE);
        }
        self.live.extend(allocated);
        self.has_changed();
        self.live.retain(|address, _| !freed.contains(address));
        Ok(())
    }

    /// Whether the program frees a graph's memory, which then stays for the graph's next launch; an error if no launch
    /// has allocated it.
    pub(crate) fn frees(&mut self, address: u64) -> Outcome<bool> {
        if !self.owned.contains_key(&address) {
            return Ok(false);
        }
        self.live.remove(&address).map(|_| true).ok_or(INVALID_VALUE)
    }

    /// A graph has an allocation.
    pub(crate) fn own(&mut self, address: u64, size: u64) {
        self.owned.insert(address, size);
        self.has_changed();
    }

    /// No graph has an allocation any more; whether the program still has it.
    pub(crate) fn disown(&mut self, address: u64) -> bool {
        self.owned.remove(&address);
        self.live.contains_key(&address)
    }

    /// Sets a high-water mark back to what there is.
    pub(crate) fn set_back(&mut self, attribute: c_int) -> Outcome {
        match attribute {
            USED_HIGH => self.used_high = self.used(),
            RESERVED_HIGH => self.reserved_high = self.reserved(),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    /// Memory is freed.
    pub(crate) fn freed(&mut self, address: u64) {
        self.live.remove(&address);
    }

    /// Whether graphs that exist may use memory.
    pub(crate) fn is_owned(&self, address: u64) -> bool {
        self.owned.contains_key(&address)
    }

    /// What a program may ask.
    pub(crate) fn attribute(&self, attribute: c_int) -> Outcome<u64> {
        Ok(match attribute {
            USED_CURRENT => self.used(),
            USED_HIGH => self.used_high,
            RESERVED_CURRENT => self.reserved(),
            RESERVED_HIGH => self.reserved_high,
            _ => return Err(INVALID_VALUE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_launches_allocate_is_live_until_it_is_freed() {
        let mut memory = GraphMemory { owned: [(0x1000, 64), (0x2000, 32)].into(), ..GraphMemory::default() };
        let both = HashMap::from([(0x1000, 64), (0x2000, 32)]);
        memory.launch(&both, &[0x2000], false).unwrap();
        assert_eq!((memory.used(), memory.used_high, memory.reserved()), (64, 96, 96));
        assert_eq!(memory.launch(&both, &[], false), Err(INVALID_VALUE));
        assert_eq!(memory.launch(&both, &[0x2000], true), Ok(()));
        assert_eq!((memory.frees(0x1000), memory.frees(0x1000)), (Ok(true), Err(INVALID_VALUE)));
        assert_eq!(memory.frees(0x3000), Ok(false));
        memory.launch(&both, &[], false).unwrap();
        memory.owned.remove(&0x1000);
        assert_eq!((memory.reserved(), memory.frees(0x1000)), (96, Ok(false)));
        memory.freed(0x1000);
        assert_eq!((memory.reserved(), memory.used()), (32, 32));
    }
}
