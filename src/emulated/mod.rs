//! The emulator for other programs: as a backend of [`crate::collect`], and as a GPU that runs single kernels.
//!
//! [`Emulator`] loads code objects, gives kernels their arguments, the hidden ones among them, and collects what
//! instrumented kernels count. [`EmulatedMemory`] is the memory of an emulated device as [`crate::collect`] wants it.

mod arguments;
mod gpu;
mod memory;

pub use arguments::{KernelArgument, hidden_argument};
pub use gpu::{Emulator, Launch, Module};
pub use memory::EmulatedMemory;
