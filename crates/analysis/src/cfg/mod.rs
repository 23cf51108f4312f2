//! The control-flow graph of a body and the call graph of a code object.
//!
//! [`Cfg`] has basic blocks, edges, dominators, post-dominators and loops. A call does not end a body's flow: its block
//! has a [`EdgeKind::CallReturn`] edge to the instruction it returns to, and what happens in between is the call
//! graph's matter. Blocks that end the wave, return, or jump to an unknown place have no successors here ([`Exit`]
//! tells which).
//!
//! [`Program`] is a whole code object: its kernels, its functions, those that are found only because they are called,
//! and who calls whom.

mod calls;
mod dominators;
mod graph;
mod loops;

pub use calls::{BodyId, Callees, Program};
pub use dominators::DominatorTree;
pub use graph::{Backward, Block, Cfg, Edge, EdgeKind, Exit, Forward};
pub use loops::{Loop, Loops};

#[cfg(test)]
mod tests;
