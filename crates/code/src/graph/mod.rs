//! Control flow: blocks, edges and loops.

mod blocks;
mod loops;

pub use blocks::{Block, Edge, EdgeKind, Graph};
pub use loops::{Loop, Loops};
