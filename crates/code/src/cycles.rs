//! Ranges of cycles.

use serde::{Deserialize, Serialize};

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

impl Cycles {
    /// A latency that is always the same.
    #[must_use]
    pub const fn fixed(cycles: u32) -> Cycles {
        Cycles { min: cycles, typical: cycles, max: cycles }
    }

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
