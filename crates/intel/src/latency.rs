//! Latencies by class, in cycles of the vector engine, without contention.
//!
//! No manual has them, and none was measured: all are estimates of the order of magnitude. Slices of this processor are
//! not ranked by time unless samples are given, so the numbers only order causes.

use wavetap_code::{Class, Cycles};

/// Distances end at 7 instructions, and one of 32 lanes of 32 bits takes two cycles.
const ALU: Cycles = Cycles { min: 6, typical: 10, max: 14 };
/// A quarter of the lanes work on transcendentals.
const MATH: Cycles = Cycles { min: 12, typical: 20, max: 40 };
/// Eight steps of a systolic array, some repetitions.
const MATRIX: Cycles = Cycles { min: 16, typical: 32, max: 48 };
/// Shared local memory is part of the L1 cache: `MEMORY`'s least.
const SHARED: Cycles = Cycles { min: 60, typical: 65, max: 70 };
/// From a hit in L1, over L2, to HBM.
const MEMORY: Cycles = Cycles { min: 60, typical: 400, max: 900 };
/// A message to another unit and back.
const MESSAGE: Cycles = Cycles { min: 30, typical: 60, max: 200 };

pub(crate) fn of(class: Class) -> Cycles {
    match class {
        Class::Alu => ALU,
        Class::Special => MATH,
        Class::Matrix => MATRIX,
        Class::Shared => SHARED,
        Class::Constant | Class::Private | Class::Global | Class::Generic | Class::Image => MEMORY,
        Class::Barrier | Class::Fence | Class::Message => MESSAGE,
        Class::Control | Class::Wait | Class::Other => Cycles::default(),
    }
}
