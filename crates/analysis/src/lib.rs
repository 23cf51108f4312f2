//! What a function of GPU code does: decoded along its control flow, as blocks and loops, and with the results of
//! dataflow analyses.
#![forbid(unsafe_code)]

pub mod cfg;
pub mod dataflow;
pub mod kernel;
pub mod solver;
