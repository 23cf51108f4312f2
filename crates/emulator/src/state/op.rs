//! An operation: a resolved instruction and how it runs.

use std::ops::{Deref, DerefMut};

use super::core::Core;
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
    /// What is known of it.
    pub resolved: ResolvedInst,
    /// The address of a simple access to global memory.
    pub global: Option<GlobalAddress>,
    /// The operations of an instruction that is two.
    pub pair: Option<Box<[Op; 2]>>,
    /// How many instructions from this one on are plain and follow each other, in the list of those decoded, too. All
    /// that a plain one does is to change registers and memory: the next instruction follows it, the wave goes on, it
    /// counts for no [`Site`], and it does not ask for the time. The worker that runs such instructions in a row
    /// asserts it.
    pub plain: u32,
    /// For the short way of a vector instruction.
    pub quick: Option<Box<FastPath>>,
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
