//! An operation: a resolved instruction and how it runs.

use std::ops::{Deref, DerefMut};

use wavetap_amdgpu::Flags;

use super::core::Core;
use crate::fault::MemoryAccess;
use crate::fault::stop::ExecResult;
use crate::op::ResolvedInst;
use crate::op::fast_path::FastPath;
use crate::op::global_address::GlobalAddress;
use crate::op::semantics::Semantics;

/// Runs an instruction.
pub(crate) type Handler = fn(&mut Core, &Op) -> ExecResult;

/// A meaning: the handler and its data.
pub(crate) type Meaning = (Handler, Semantics);

/// An instruction at an address, ready to run.
pub(crate) struct Op {
    pub run: Handler,
    /// What is found of the instruction once, for all executions.
    pub resolved: ResolvedInst,
    /// The address of a simple access to global memory.
    pub global_address: Option<GlobalAddress>,
    /// The operations of an instruction that is two.
    pub pair: Option<Box<[Op; 2]>>,
    /// How many instructions from this one on are straight-line code, and follow each other in the list of those
    /// decoded as well. A straight-line instruction changes registers and memory only: the wave goes on with the next
    /// one, the trace counts nothing at it (`op::Site`), and it does not read the clock. The worker asserts it.
    pub straight_line: u32,
    /// For the fast path of a vector instruction.
    pub fast_path: Option<Box<FastPath>>,
}

impl Op {
    /// What it does to memory.
    pub(crate) fn memory_access(&self) -> MemoryAccess {
        let flags = self.inst.variant.flags;
        match self.semantics {
            Semantics::Atomic { .. } => MemoryAccess::Atomic,
            _ if flags.contains(Flags::ATOMIC) => MemoryAccess::Atomic,
            _ if flags.contains(Flags::STORE) => MemoryAccess::Store,
            _ => MemoryAccess::Load,
        }
    }
}

impl Deref for Op {
    type Target = ResolvedInst;

    #[inline(always)]
    fn deref(&self) -> &ResolvedInst {
        &self.resolved
    }
}

impl DerefMut for Op {
    fn deref_mut(&mut self) -> &mut ResolvedInst {
        &mut self.resolved
    }
}
