//! The probe of memory latency: for each load, the cycles from before it until the wait that completes it is over.
//!
//! Executions with EXEC = 0 access nothing and are counted apart. The distribution has two buckets for each power of
//! two: [`BUCKET_BOUNDS`].

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::schema::{Counts, FieldSchema, KindSchema, Merge, Unit};

/// The probe's name.
pub const PROBE: &str = "memory-latency";

/// Buckets of the distribution.
pub const BUCKETS: usize = 32;

/// The least cycles of each bucket; those of the first are any number below the second's.
pub const BUCKET_BOUNDS: [u64; BUCKETS] = {
    let mut bounds = [0; BUCKETS];
    let mut bucket = 1;
    while bucket < BUCKETS {
        // 16, 24, 32, 48, 64, …
        let octave = 1 << (bucket / 2 + FIRST_OCTAVE);
        bounds[bucket] = octave + (bucket as u64 % 2) * octave / 2;
        bucket += 1;
    }
    bounds
};

/// The power of two with which the second half of the first bucket begins.
pub const FIRST_OCTAVE: usize = 4;

/// What is before the buckets among the fields.
pub const FIELDS_BEFORE_BUCKETS: usize = 6;

/// How a load is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    /// To the end of the original's own wait: what else the wave does meanwhile is in it, and inserted code adds
    /// nothing but clock readings.
    AtItsWait,
    /// The same, from the begin of the clause that the load is in.
    ClauseAtItsWait,
    /// Inserted code waits before the load and after it: nothing else is outstanding.
    Drained,
    /// The same of a whole clause: the load and the others of its clause.
    DrainedClause,
}

impl LatencyKind {
    /// All of them.
    pub const ALL: [LatencyKind; 4] =
        [LatencyKind::AtItsWait, LatencyKind::ClauseAtItsWait, LatencyKind::Drained, LatencyKind::DrainedClause];

    /// Whether inserted code waits for the load.
    #[must_use]
    pub fn is_drained(self) -> bool {
        matches!(self, LatencyKind::Drained | LatencyKind::DrainedClause)
    }

    /// The kind of a load that is or is not drained, in a clause or not.
    #[must_use]
    pub fn of(is_drained: bool, in_clause: bool) -> LatencyKind {
        match (is_drained, in_clause) {
            (false, false) => LatencyKind::AtItsWait,
            (false, true) => LatencyKind::ClauseAtItsWait,
            (true, false) => LatencyKind::Drained,
            (true, true) => LatencyKind::DrainedClause,
        }
    }

    /// The schema of such sites.
    #[must_use]
    pub fn schema(self) -> &'static Arc<KindSchema> {
        match self {
            LatencyKind::AtItsWait => &AT_ITS_WAIT,
            LatencyKind::ClauseAtItsWait => &CLAUSE_AT_ITS_WAIT,
            LatencyKind::Drained => &DRAINED,
            LatencyKind::DrainedClause => &DRAINED_CLAUSE,
        }
    }
}

/// See [`LatencyKind::AtItsWait`].
pub static AT_ITS_WAIT: LazyLock<Arc<KindSchema>> =
    LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "at_its_wait", FIELDS)));
/// See [`LatencyKind::ClauseAtItsWait`].
pub static CLAUSE_AT_ITS_WAIT: LazyLock<Arc<KindSchema>> =
    LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "clause_at_its_wait", FIELDS)));
/// See [`LatencyKind::Drained`].
pub static DRAINED: LazyLock<Arc<KindSchema>> = LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "drained", FIELDS)));
/// See [`LatencyKind::DrainedClause`].
pub static DRAINED_CLAUSE: LazyLock<Arc<KindSchema>> =
    LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "drained_clause", FIELDS)));
/// Two readings of the clock with nothing between them, once where a wave begins: what a load takes beside itself.
pub static EMPTY: LazyLock<Arc<KindSchema>> = LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "empty", FIELDS)));

/// The fields of [`LatencyCounts`], in its order; then the buckets. Where the first and the fifth are is given:
/// inserted code has a 1 there.
const FIELDS: &[FieldSchema] = &{
    const fn bucket(name: &'static str) -> FieldSchema {
        FieldSchema::new(name, Unit::Executions, Merge::Sum)
    }
    [
        FieldSchema::new("executions", Unit::Executions, Merge::Sum),
        FieldSchema::new("cycles", Unit::Cycles, Merge::Sum),
        FieldSchema::new("wrapped", Unit::Events, Merge::Sum),
        FieldSchema::new("shortest", Unit::Cycles, Merge::Min),
        FieldSchema::new("idle", Unit::Executions, Merge::Sum),
        FieldSchema::new("longest", Unit::Cycles, Merge::Max),
        bucket("from_0"),
        bucket("from_24"),
        bucket("from_32"),
        bucket("from_48"),
        bucket("from_64"),
        bucket("from_96"),
        bucket("from_128"),
        bucket("from_192"),
        bucket("from_256"),
        bucket("from_384"),
        bucket("from_512"),
        bucket("from_768"),
        bucket("from_1024"),
        bucket("from_1536"),
        bucket("from_2048"),
        bucket("from_3072"),
        bucket("from_4096"),
        bucket("from_6144"),
        bucket("from_8192"),
        bucket("from_12288"),
        bucket("from_16384"),
        bucket("from_24576"),
        bucket("from_32768"),
        bucket("from_49152"),
        bucket("from_65536"),
        bucket("from_98304"),
        bucket("from_131072"),
        bucket("from_196608"),
        bucket("from_262144"),
        bucket("from_393216"),
        bucket("from_524288"),
        bucket("from_786432"),
    ]
};

/// The kinds of sites of this probe.
#[must_use]
pub fn kinds() -> [&'static Arc<KindSchema>; 5] {
    [&AT_ITS_WAIT, &CLAUSE_AT_ITS_WAIT, &DRAINED, &DRAINED_CLAUSE, &EMPTY]
}

/// The counters of a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyCounts {
    /// Executions with an active lane.
    pub executions: u64,
    /// Cycles of the shader's clock from before the load until its wait is over, summed over these.
    pub cycles: u64,
    /// Of these executions, those that took so long that the clock may have wrapped around: their cycles may be too
    /// few, by multiples of 2^20. Always 0 on targets whose clock has 64 bits.
    pub wrapped: u64,
    /// Cycles of the shortest execution; not there if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortest: Option<u64>,
    /// Executions with EXEC = 0, which are in no other field.
    pub idle: u64,
    /// Cycles of the longest execution.
    pub longest: u64,
    /// The distribution, without empty buckets.
    pub buckets: Vec<LatencyBucket>,
}

/// A bucket of the distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyBucket {
    /// The least cycles.
    pub from: u64,
    /// Executions took fewer cycles than this; no limit in the last bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<u64>,
    /// How many executions.
    pub executions: u64,
}

impl LatencyCounts {
    /// The typed view of the counts of a kind of this probe; none if they are of another.
    #[must_use]
    pub fn of(counts: &Counts, kind: &Arc<KindSchema>) -> Option<LatencyCounts> {
        if counts.kind() != kind {
            return None;
        }
        let (&[executions, cycles, wrapped, shortest, idle, longest], buckets) =
            counts.values().split_first_chunk::<FIELDS_BEFORE_BUCKETS>()?;
        let bucket = |(number, executions): (usize, &u64)| LatencyBucket {
            from: BUCKET_BOUNDS[number],
            below: BUCKET_BOUNDS.get(number + 1).copied(),
            executions: *executions,
        };
        let buckets = buckets.iter().enumerate().map(bucket).filter(|bucket| bucket.executions > 0);
        let shortest = (executions > 0).then_some(shortest);
        Some(LatencyCounts { executions, cycles, wrapped, shortest, idle, longest, buckets: buckets.collect() })
    }

    /// Cycles of an execution; none if there was none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.executions > 0).then(|| self.cycles as f64 / self.executions as f64)
    }

    /// The bucket of the execution that so many of a hundred are not longer than; none if there was none.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<LatencyBucket> {
        let wanted = (u128::from(self.executions) * u128::from(percent)).div_ceil(100).max(1);
        let mut up_to = 0;
        self.buckets.iter().copied().find(|bucket| {
            up_to += u128::from(bucket.executions);
            up_to >= wanted
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_the_bounds_of_their_names() {
        for (bound, field) in BUCKET_BOUNDS.iter().zip(&FIELDS[FIELDS_BEFORE_BUCKETS..]) {
            assert_eq!(field.name, format!("from_{bound}"));
        }
        assert_eq!(FIELDS.len(), FIELDS_BEFORE_BUCKETS + BUCKETS);
        assert!(BUCKET_BOUNDS.is_sorted());
    }

    #[test]
    fn a_view_has_the_fields_by_their_names() {
        let mut values = vec![0; FIELDS.len()];
        values[..FIELDS_BEFORE_BUCKETS].copy_from_slice(&[10, 3000, 1, 120, 2, 900]);
        (values[FIELDS_BEFORE_BUCKETS + 5], values[FIELDS_BEFORE_BUCKETS + 11]) = (9, 1);
        let counts = Counts::new(&DRAINED, values).unwrap();
        let view = LatencyCounts::of(&counts, &DRAINED).unwrap();
        assert_eq!(LatencyCounts::of(&counts, &AT_ITS_WAIT), None);
        for (field, value) in [("executions", view.executions), ("cycles", view.cycles), ("wrapped", view.wrapped)] {
            assert_eq!(counts.value(field), Some(value));
        }
        for (field, value) in [("shortest", 120), ("idle", view.idle), ("longest", view.longest), ("from_96", 9)] {
            assert_eq!(counts.value(field), Some(value));
        }
        let bucket = |from, below, executions| LatencyBucket { from, below: Some(below), executions };
        assert_eq!(view.buckets, [bucket(96, 128, 9), bucket(768, 1024, 1)]);
        assert_eq!(view.mean(), Some(300.0));
        assert_eq!([50, 90, 99].map(|percent| view.percentile(percent).unwrap().from), [96, 96, 768]);
        let nothing = LatencyCounts::of(&Counts::zero(&EMPTY), &EMPTY).unwrap();
        assert_eq!((nothing.shortest, nothing.mean(), nothing.percentile(50)), (None, None, None));
    }

    #[test]
    fn kinds_are_found_by_what_they_say() {
        for kind in LatencyKind::ALL {
            let in_clause = matches!(kind, LatencyKind::ClauseAtItsWait | LatencyKind::DrainedClause);
            assert_eq!(LatencyKind::of(kind.is_drained(), in_clause), kind);
            assert_eq!(serde_json::to_value(kind).unwrap(), *kind.schema().name);
        }
    }
}
