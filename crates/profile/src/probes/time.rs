//! The probe of time: how long each wave ran, and how long it was in each basic block.
//!
//! Inserted code reads the shader's clock twice where a block begins: before its own work (the *entry stamp*), and
//! after it. A block's time is that from its entry stamp to the next one of the wave, so that the times of all blocks
//! together are the time of the wave. The part of it between the two readings is the probe's own.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::schema::{Counts, FieldSchema, KindSchema, Merge, Unit};

/// The probe's name.
pub const PROBE: &str = "time";

/// A basic block, at its first instruction.
pub static BLOCK: LazyLock<Arc<KindSchema>> = LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "block", BLOCKS)));
/// A block without instructions where a kernel begins: what an execution of a block takes beside its instructions.
pub static EMPTY: LazyLock<Arc<KindSchema>> = LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "empty", BLOCKS)));
/// The waves of a kernel.
pub static WAVE: LazyLock<Arc<KindSchema>> = LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "wave", WAVES)));

/// Ticks of the constant clock (log2) in which a shader clock of 20 bits is certain not to have wrapped around: below
/// 6.4 GHz beside 100 MHz, which is what the constant clock of the targets with such a shader clock has.
pub const SAFE_TICKS_SHIFT: u32 = 14;

/// The fields of [`BlockTime`], in its order.
const BLOCKS: &[FieldSchema] = &[
    FieldSchema::new("executions", Unit::Executions, Merge::Sum),
    FieldSchema::new("cycles", Unit::Cycles, Merge::Sum),
    FieldSchema::new("probe_cycles", Unit::Cycles, Merge::Sum),
    FieldSchema::new("wrapped", Unit::Events, Merge::Sum),
];

/// The fields of [`WaveTime`], in its order.
const WAVES: &[FieldSchema] = &[
    FieldSchema::new("waves", Unit::Executions, Merge::Sum),
    FieldSchema::new("cycles", Unit::Cycles, Merge::Sum),
    FieldSchema::new("shortest", Unit::Cycles, Merge::Min),
    FieldSchema::new("longest", Unit::Cycles, Merge::Max),
    FieldSchema::new("first_begin", Unit::Ticks, Merge::Min),
    FieldSchema::new("last_begin", Unit::Ticks, Merge::Max),
    FieldSchema::new("last_end", Unit::Ticks, Merge::Max),
];

/// The kinds of sites of this probe.
#[must_use]
pub fn kinds() -> [&'static Arc<KindSchema>; 3] {
    [&BLOCK, &EMPTY, &WAVE]
}

/// The counters of a basic block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockTime {
    /// Executions by a wave that it has left, for another block or by ending.
    pub executions: u64,
    /// Cycles of the shader's clock from its entry stamps to the next ones.
    pub cycles: u64,
    /// Of these, cycles in inserted code.
    pub probe_cycles: u64,
    /// Executions that took so long that the clock may have wrapped around: their cycles may be too few, by multiples
    /// of 2^20. Always 0 on targets whose clock has 64 bits.
    pub wrapped: u64,
}

impl BlockTime {
    /// The typed view of the counts of a block, or of the one without instructions; none if it is another site.
    #[must_use]
    pub fn of(counts: &Counts, kind: &Arc<KindSchema>) -> Option<BlockTime> {
        match *counts.values() {
            [executions, cycles, probe_cycles, wrapped] if counts.kind() == kind => {
                Some(BlockTime { executions, cycles, probe_cycles, wrapped })
            }
            _ => None,
        }
    }

    /// Cycles that are not those of the probe.
    #[must_use]
    pub fn own_cycles(&self) -> u64 {
        self.cycles.saturating_sub(self.probe_cycles)
    }

    /// Those of an execution; none if there was none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.executions > 0).then(|| self.own_cycles() as f64 / self.executions as f64)
    }
}

/// The counters of a kernel's waves, of those that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaveTime {
    /// How many.
    pub waves: u64,
    /// Cycles from the begin to the end of each, summed; with those of the probe.
    pub cycles: u64,
    /// Those of the shortest.
    pub shortest: u64,
    /// Those of the longest.
    pub longest: u64,
    /// When the first one began, in ticks of the constant clock.
    pub first_begin: u64,
    /// When the last one began.
    pub last_begin: u64,
    /// When the last one ended.
    pub last_end: u64,
}

impl WaveTime {
    /// The typed view of a site's counts; none if it is another site, or if no wave ended.
    #[must_use]
    pub fn of(counts: &Counts) -> Option<WaveTime> {
        match *counts.values() {
            [waves, cycles, shortest, longest, first_begin, last_begin, last_end]
                if *counts.kind() == *WAVE && waves > 0 =>
            {
                Some(WaveTime { waves, cycles, shortest, longest, first_begin, last_begin, last_end })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_have_the_fields_by_their_names() {
        let view = BlockTime { executions: 4, cycles: 100, probe_cycles: 60, wrapped: 1 };
        let counts = Counts::new(&BLOCK, vec![4, 100, 60, 1]).unwrap();
        assert_eq!(BlockTime::of(&counts, &BLOCK), Some(view));
        assert_eq!(BlockTime::of(&counts, &EMPTY), None);
        assert_eq!(serde_json::to_value(&counts).unwrap(), serde_json::to_value(view).unwrap());
        assert_eq!((view.own_cycles(), view.mean()), (40, Some(10.0)));
        let counts = Counts::new(&WAVE, vec![2, 30, 10, 20, 5, 6, 9]).unwrap();
        let view = WaveTime::of(&counts).unwrap();
        assert_eq!(serde_json::to_value(&counts).unwrap(), serde_json::to_value(view).unwrap());
        assert_eq!(WaveTime::of(&Counts::zero(&WAVE)), None);
    }
}
