//! What kernels execute, from the counts of their blocks: instructions by class, operations, bytes.
//!
//! [`WorkOfInstruction`] is what one execution of an instruction does, from its row of the instruction tables alone.
//! [`instructions`] joins the instructions of a body with the counts of its blocks: executions are those of the block,
//! active lanes what follows from the counts ([`LaneCounts`]). [`Mix`] adds them up: over a kernel, a loop, a source
//! line.
//!
//! What does not follow from the counts is counted as unknown, never guessed.
#![forbid(unsafe_code)]

mod addresses;
mod class;
mod count;
mod guards;
mod idle;
mod lanes;
mod math;
mod sites;
mod sum;
mod work;

pub use addresses::address_arithmetic;
pub use class::{AccessKind, Arithmetic, Class, MatrixUnit, NumberType, ScalarKind, VectorSpace, classes};
pub use count::{CountedInstruction, instructions, instructions_of};
pub use guards::{EarlyExit, GuardedWork, early_exits, goes_lane_by_lane, guarded_work};
pub use idle::{IdleTests, idle_tests, tests_work_items_only};
pub use lanes::LaneCounts;
pub use math::{MathFunction, math_functions};
pub use sites::SiteCounts;
pub use sum::{Bytes, ClassCount, Mix, OperationCount};
pub use work::{Executes, Operations, Traffic, WorkOfInstruction};
