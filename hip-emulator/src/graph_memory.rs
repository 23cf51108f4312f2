//! Memory that graphs allocate. A graph's allocation has one address for as long as the graph, or what was copied or
//! instantiated from it, exists. What a launch has allocated is the program's until it is freed, by the program or by
//! the same or another graph: also when the graph has ended before.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::devices::only;
use crate::entry_point::entry_points;
use crate::graphs::Step;
use crate::raw;
use crate::runtime::{Runtime, runtime};
use crate::status::*;
use crate::stream_op::StreamOp;

/// `hipGraphMemAttributeType`.
const USED_CURRENT: c_int = 0;
const USED_HIGH: c_int = 1;
const RESERVED_CURRENT: c_int = 2;
const RESERVED_HIGH: c_int = 3;

/// Flag of an instantiated graph: what it has allocated is freed when it is launched again.
const FREES_ON_LAUNCH: u64 = 1;

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
    fn used(&self) -> u64 {
        self.live.values().sum()
    }

    fn reserved(&self) -> u64 {
        let orphans = self.live.iter().filter(|(address, _)| !self.owned.contains_key(address));
        self.owned.values().sum::<u64>() + orphans.map(|(_, size)| size).sum::<u64>()
    }

    fn has_changed(&mut self) {
        (self.used_high, self.reserved_high) =
            (self.used_high.max(self.used()), self.reserved_high.max(self.reserved()));
    }

    /// What a launch does to it.
    fn launch(&mut self, allocated: &HashMap<u64, u64>, freed: &[u64], frees_before: bool) -> Outcome {
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

    /// Memory is freed.
    pub(crate) fn freed(&mut self, address: u64) {
        self.live.remove(&address);
    }

    /// Whether graphs that exist may use memory.
    pub(crate) fn is_owned(&self, address: u64) -> bool {
        self.owned.contains_key(&address)
    }

    /// What a program may ask.
    fn attribute(&self, attribute: c_int) -> Outcome<u64> {
        Ok(match attribute {
            USED_CURRENT => self.used(),
            USED_HIGH => self.used_high,
            RESERVED_CURRENT => self.reserved(),
            RESERVED_HIGH => self.reserved_high,
            _ => return Err(INVALID_VALUE),
        })
    }
}

/// What steps allocate, and what they free.
fn uses(steps: &[Step], allocated: &mut HashMap<u64, u64>, freed: &mut Vec<u64>) {
    for step in steps {
        match &step.operation {
            StreamOp::Allocate { address, size } => drop(allocated.insert(*address, *size)),
            StreamOp::Free(address) => freed.push(*address),
            StreamOp::Steps(steps) => uses(steps, allocated, freed),
            _ => {}
        }
    }
}

impl Runtime {
    /// A graph has allocated memory.
    pub(crate) fn graph_allocates(&mut self, graph: usize, address: u64, size: u64) -> Outcome {
        self.graphs.graph_mut(graph)?.memory.push(address.into());
        self.graph_memory.owned.insert(address, size);
        self.graph_memory.has_changed();
        Ok(())
    }

    /// What an instantiated graph does when it is launched; an error if it would allocate what is not freed.
    pub(crate) fn steps_of_launch(&mut self, executable: usize) -> Outcome<Vec<Step>> {
        let executable = self.graphs.executable(executable)?;
        let (steps, frees_before) = (executable.steps.clone(), executable.flags & FREES_ON_LAUNCH != 0);
        let (mut allocated, mut freed) = (HashMap::new(), Vec::new());
        uses(&steps, &mut allocated, &mut freed);
        self.graph_memory.launch(&allocated, &freed, frees_before)?;
        Ok(steps)
    }

    /// Gives memory back that a graph held, where no other graph needs it and no launch has left it to the program.
    pub(crate) fn give_back(&mut self, memory: Vec<Arc<u64>>) {
        for address in memory.into_iter().filter_map(Arc::into_inner) {
            self.graph_memory.owned.remove(&address);
            if !self.graph_memory.live.contains_key(&address) {
                // A program may have freed it itself.
                let _ = self.free(address);
            }
        }
    }
}

entry_points! {
    /// Bytes of graphs' memory: in use, reserved, and the most of each.
    fn hipDeviceGetGraphMemAttribute(device: c_int, attribute: c_int, out: *mut c_void) {
        only(device)?;
        let value = runtime().graph_memory.attribute(attribute)?;
        raw::store(out.cast::<u64>(), value)
    }

    /// Sets a high-water mark back to what there is.
    fn hipDeviceSetGraphMemAttribute(device: c_int, attribute: c_int, value: *const c_void) {
        only(device)?;
        if raw::load(value.cast::<u64>())? != 0 {
            return Err(INVALID_VALUE);
        }
        let memory = &mut runtime().graph_memory;
        match attribute {
            USED_HIGH => memory.used_high = memory.used(),
            RESERVED_HIGH => memory.reserved_high = memory.reserved(),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    /// Gives memory back that no graph needs: there is none, as graphs keep their addresses.
    fn hipDeviceGraphMemTrim(device: c_int) {
        only(device)
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
