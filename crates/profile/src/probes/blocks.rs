//! The probe of basic blocks: how often each was executed, and by how many lanes.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::schema::{Counts, FieldSchema, KindSchema, Merge, Unit};

/// The probe's name.
pub const PROBE: &str = "blocks";

/// A basic block, at its first instruction.
pub static BLOCK: LazyLock<Arc<KindSchema>> = LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "block", FIELDS)));

/// The fields of [`BlockCounts`], in its order.
const FIELDS: &[FieldSchema] =
    &[FieldSchema::new("executions", Unit::Executions, Merge::Sum), FieldSchema::new("lanes", Unit::Lanes, Merge::Sum)];

/// The kinds of sites of this probe.
#[must_use]
pub fn kinds() -> [&'static Arc<KindSchema>; 1] {
    [&BLOCK]
}

/// The counters of a basic block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockCounts {
    /// Executions by a wave, with EXEC = 0 too.
    pub executions: u64,
    /// Active lanes where it begins, summed over executions.
    pub lanes: u64,
}

impl BlockCounts {
    /// The typed view of a site's counts; none if it is a site of another probe.
    #[must_use]
    pub fn of(counts: &Counts) -> Option<BlockCounts> {
        match *counts.values() {
            [executions, lanes] if *counts.kind() == *BLOCK => Some(BlockCounts { executions, lanes }),
            _ => None,
        }
    }

    /// Average active lanes of an execution; none if it was not executed.
    #[must_use]
    pub fn average_lanes(&self) -> Option<f64> {
        (self.executions > 0).then(|| self.lanes as f64 / self.executions as f64)
    }
}

impl From<BlockCounts> for Counts {
    fn from(BlockCounts { executions, lanes }: BlockCounts) -> Counts {
        Counts::of_array(&BLOCK, [executions, lanes])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_has_the_fields_by_their_names() {
        let view = BlockCounts { executions: 3, lanes: 96 };
        let counts = Counts::from(view);
        assert_eq!(BlockCounts::of(&counts), Some(view));
        assert_eq!(serde_json::to_value(&counts).unwrap(), serde_json::to_value(view).unwrap());
        assert_eq!(view.average_lanes(), Some(32.0));
        assert_eq!(BlockCounts::default().average_lanes(), None);
        let other = crate::probes::branches::ScalarCounts { executions: 3, taken: 1 };
        assert_eq!(BlockCounts::of(&other.into()), None);
    }
}
