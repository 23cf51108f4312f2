//! The entry points for memory that graphs allocate, and what launches do to it.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::devices::only;
use crate::entry_point::entry_points;
use crate::lock::runtime;
use crate::raw;
use crate::runtime::Runtime;
use crate::status::*;
use crate::stream_op::Step;
use crate::stream_op::StreamOp;

/// Flag of an instantiated graph: what it has allocated is freed when it is launched again.
const FREES_ON_LAUNCH: u64 = 1;

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
        self.graph_memory.own(address, size);
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
            if !self.graph_memory.disown(address) {
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
        runtime().graph_memory.set_back(attribute)
    }

    /// Gives memory back that no graph needs: there is none, as graphs keep their addresses.
    fn hipDeviceGraphMemTrim(device: c_int) {
        only(device)
    }
}
