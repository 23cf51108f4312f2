//! Stalls that are to be explained.

use std::collections::BTreeMap;

/// How long waves stood at an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StallCycles {
    /// Cycles, or samples.
    pub cycles: u64,
    /// Those whose reason is known, as rocprofiler-sdk names it, without what all its names begin with: `WAITCNT`.
    /// Empty if no reason is known.
    pub reasons: BTreeMap<String, u64>,
    /// Those of which it is known for which operation in flight they were, by its instruction's address.
    pub waits_for: BTreeMap<u64, u64>,
}

impl From<u64> for StallCycles {
    fn from(cycles: u64) -> StallCycles {
        StallCycles { cycles, ..StallCycles::default() }
    }
}
