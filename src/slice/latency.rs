//! How long memory operations take, in cycles, as ranges from published static models. Nothing here knows of caches or contention.
//!
//! The ranges span two sources: LLVM's scheduling model of gfx9 (`SISchedule.td`, in units of 4 cycles: LDS 5, scalar memory 5, vector memory 80), which calls
//! itself approximate, and the latency table that the LEO analyser's public artifact uses for CDNA (LDS 5-20, LDS atomics 10-40, scalar loads 5-50, vector
//! memory 80-300, its atomics 100-400).

use serde::{Deserialize, Serialize};

use crate::isa::{Flags, Inst, Memory};

/// A range of cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cycles {
    /// At least, when all goes well.
    pub min: u32,
    /// At most, in the models.
    pub max: u32,
}

impl Cycles {
    const fn new(min: u32, max: u32) -> Cycles {
        Cycles { min, max }
    }

    /// The range of the slower of two.
    #[must_use]
    pub fn slower(self, other: Cycles) -> Cycles {
        Cycles { min: self.min.max(other.min), max: self.max.max(other.max) }
    }
}

const LDS: Cycles = Cycles::new(5, 20);
const LDS_ATOMIC: Cycles = Cycles::new(10, 40);
const SCALAR: Cycles = Cycles::new(5, 50);
const VECTOR: Cycles = Cycles::new(80, 320);
const VECTOR_ATOMIC: Cycles = Cycles::new(100, 400);
/// Exports and messages: neither source has them; an LDS access is the nearest thing.
const OTHER: Cycles = LDS;

/// The static latency of a memory operation.
#[must_use]
pub fn of(inst: &Inst) -> Cycles {
    let atomic = inst.variant.flags.contains(Flags::ATOMIC);
    match inst.variant.memory {
        Memory::Lds | Memory::Gds if atomic => LDS_ATOMIC,
        Memory::Lds | Memory::Gds => LDS,
        Memory::Scalar => SCALAR,
        Memory::Global | Memory::Flat | Memory::Scratch | Memory::Buffer | Memory::Image if atomic => VECTOR_ATOMIC,
        Memory::Global | Memory::Flat | Memory::Scratch | Memory::Buffer | Memory::Image => VECTOR,
        Memory::Message | Memory::None => OTHER,
    }
}

/// The latency of an operation of which only the counter is known: any.
#[must_use]
pub fn unknown_memory() -> Cycles {
    Cycles::new(LDS.min, VECTOR_ATOMIC.max)
}
