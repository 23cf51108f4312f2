//! How long the operations that a wait waits for take: the target's latency classes, as ranges. Nothing here knows of
//! caches or contention.

use serde::{Deserialize, Serialize};

use wavetap_amdgpu::{Inst, Latency, LatencyRange, Target};

/// A range of cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cycles {
    /// At least, when all goes well.
    pub min: u32,
    /// Usually.
    pub typical: u32,
    /// At most, without contention.
    pub max: u32,
}

impl From<LatencyRange> for Cycles {
    fn from(range: LatencyRange) -> Cycles {
        Cycles { min: range.min, typical: range.typical, max: range.max }
    }
}

impl Cycles {
    /// The range with this much more in each place.
    #[must_use]
    pub fn longer_by(self, more: u32) -> Cycles {
        Cycles {
            min: self.min.saturating_add(more),
            typical: self.typical.saturating_add(more),
            max: self.max.saturating_add(more),
        }
    }

    /// The range of the slower of two.
    #[must_use]
    pub fn slower(self, other: Cycles) -> Cycles {
        Cycles { min: self.min.max(other.min), typical: self.typical.max(other.typical), max: self.max.max(other.max) }
    }
}

/// The static latency of an operation.
#[must_use]
pub fn of(target: Target, inst: &Inst) -> Cycles {
    target.latency(inst.variant.latency).into()
}

/// The latency of an operation of which only the counter is known: anything from an LDS access to a vector memory
/// access.
#[must_use]
pub fn unknown_memory(target: Target) -> Cycles {
    Cycles { min: target.latency(Latency::Lds).min, ..target.latency(Latency::Vmem).into() }
}
