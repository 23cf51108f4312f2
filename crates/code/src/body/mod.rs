//! One kernel or function, and the questions about it that are answered only where they are asked.

mod code;
mod dataflow;
mod reaching;

pub use code::{Code, CodeBuilder, Properties};
pub use dataflow::{DataFlow, MaskSource, Origin, Values};
pub use reaching::{Definition, Reaching, reaching};
