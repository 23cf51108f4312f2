//! Counters that are kept, and those that follow from them.
//!
//! Control flow obeys Kirchhoff's law: as many waves leave a block as enter it. A kernel whose counters are *placed*
//! keeps only some of them, and the others are sums and differences of these. A [`Placement`] says how: it turns a
//! record with the counters that were kept into the record that the site table describes, which is the only one that
//! anything else knows.
//!
//! Values are numbered: 0 is how many waves finished, then come the counters that are kept, then one for each
//! [`Sum`], whose terms have lower numbers than itself.

use serde::{Deserialize, Serialize};

use crate::record::{COUNTER, HEADER, Header};
use wavetap_base::bytes;
use wavetap_base::error::{Error, Result};

/// The number of the value that is how many waves finished.
pub const WAVES: u32 = 0;
/// The number of the first counter that is kept.
pub const FIRST_KEPT: u32 = 1;
/// The most records that waves of a kernel may choose among.
pub const MAX_SLOTS: u32 = 1 << 16;
/// The most bytes that the records of a dispatch may have: a damaged site table must not exhaust memory. What is kept
/// in registers needs less than a fourth of it.
pub const MAX_BYTES: u64 = 256 << 20;

/// Which counters of a kernel are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CounterPlacement {
    /// The fewest from which all others follow. In LDS and in memory all are kept where the flow of control is not
    /// known.
    #[default]
    Minimal,
    /// All, each at its own site.
    All,
}

impl CounterPlacement {
    /// Both.
    pub const ALL: [CounterPlacement; 2] = [CounterPlacement::Minimal, CounterPlacement::All];

    /// Its name, as in `--placement`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CounterPlacement::Minimal => "minimal",
            CounterPlacement::All => "all",
        }
    }

    /// The placement of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<CounterPlacement> {
        CounterPlacement::ALL.into_iter().find(|placement| placement.name() == name)
    }
}

/// A sum of values, each times a factor.
pub type Sum = Vec<(i64, u32)>;

/// How a record with the counters that are kept becomes one with all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// How many records a dispatch has, of which a wave chooses one by where on the machine it runs; 0 where each
    /// wave has its own.
    pub slots: u32,
    /// How many counters a record has.
    pub kept: u32,
    /// Values that follow from others: terms of a factor and the number of a value.
    pub sums: Vec<Sum>,
    /// Of each counter that the sites have, in their order: the number of its value.
    pub counters: Vec<u32>,
}

impl Placement {
    /// Whether waves choose their records by where on the machine they run.
    #[must_use]
    pub fn chooses_records(&self) -> bool {
        self.slots != 0
    }

    /// Size of a record in bytes, where [`Placement::check`] finds nothing.
    #[must_use]
    pub fn record_bytes(&self) -> u32 {
        HEADER + self.kept * COUNTER
    }

    /// Finds what no placement may have, where the sites have so many counters.
    ///
    /// # Errors
    /// Malformed: a number of records that is no power of two, records that are too large, a term that does not come
    /// before its sum, a counter without a value or one too many.
    pub fn check(&self, counters: u32) -> Result<()> {
        let bytes = u64::from(self.slots.max(1)) * (u64::from(HEADER) + u64::from(self.kept) * u64::from(COUNTER));
        let values = u64::from(FIRST_KEPT) + u64::from(self.kept) + self.sums.len() as u64;
        let found = if (self.slots != 0 && !self.slots.is_power_of_two()) || self.slots > MAX_SLOTS {
            format!("{} records, expected 0 or a power of two up to {MAX_SLOTS}", self.slots)
        } else if bytes > MAX_BYTES {
            format!("records of {bytes} bytes in all, expected up to {MAX_BYTES}")
        } else if self.counters.len() != counters as usize {
            format!("{} counters are placed, the sites have {counters}", self.counters.len())
        } else if let Some(counter) = self.counters.iter().find(|value| u64::from(**value) >= values) {
            format!("a counter is value {counter}, there are {values}")
        } else {
            let first = FIRST_KEPT as usize + self.kept as usize;
            let early = |(at, sum): &(usize, &Sum)| sum.iter().any(|(_, value)| *value as usize >= first + at);
            match self.sums.iter().enumerate().find(early) {
                Some((at, _)) => format!("value {} is a sum of later ones", first + at),
                None => return Ok(()),
            }
        };
        Err(Error::malformed(format!("placed counters: {found}")))
    }

    /// The record that the site table describes, of one that waves have left; `began` and `finished` are as there.
    ///
    /// # Errors
    /// Malformed if the record is too short, or no control flow can have left such counters.
    pub fn solve(&self, kept: &[u8]) -> Result<Vec<u8>> {
        let header = Header::from_bytes(kept)?;
        let mut values = Vec::with_capacity(FIRST_KEPT as usize + self.kept as usize + self.sums.len());
        values.push(i128::from(header.finished));
        for number in 0..self.kept {
            values.push(bytes::u64_at(kept, u64::from(HEADER + number * COUNTER), "counter")?.into());
        }
        for sum in &self.sums {
            let mut value = 0;
            for (factor, number) in sum {
                let term = values.get(*number as usize).and_then(|term: &i128| term.checked_mul((*factor).into()));
                value =
                    term.and_then(|term| i128::checked_add(value, term)).ok_or_else(|| contradiction("overflow"))?;
            }
            values.push(value);
        }
        let mut record = bytes::slice(kept, 0, HEADER.into(), "record header")?.to_vec();
        record.reserve(self.counters.len() * COUNTER as usize);
        for number in &self.counters {
            let value = values.get(*number as usize).copied().unwrap_or(-1);
            let value = u64::try_from(value).map_err(|_| contradiction(&value.to_string()))?;
            record.extend(value.to_le_bytes());
        }
        Ok(record)
    }
}

fn contradiction(value: &str) -> Error {
    Error::malformed(format!("no control flow leaves such counters: one that follows from them is {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop: the header is entered by `waves`, and again by the latch, whose executions are kept.
    fn placement() -> Placement {
        Placement {
            slots: 4,
            kept: 1,
            sums: vec![vec![(1, 0), (1, 1)], vec![(1, 2), (-3, 1)]],
            counters: vec![2, 1, 3],
        }
    }

    fn record(finished: u32, kept: u64) -> Vec<u8> {
        let mut record = vec![0; HEADER as usize];
        record[28..32].copy_from_slice(&finished.to_le_bytes());
        record.extend(kept.to_le_bytes());
        record
    }

    #[test]
    fn what_follows_is_summed() {
        let placement = placement();
        placement.check(3).unwrap();
        let solved = placement.solve(&record(10, 5)).unwrap();
        let counter = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| solved[32 + 8 * at + byte]));
        assert_eq!([counter(0), counter(1), counter(2)], [15, 5, 0]);
        assert_eq!(placement.record_bytes() as usize, record(0, 0).len());
    }

    #[test]
    fn counters_that_contradict_each_other_are_an_error() {
        let error = placement().solve(&record(10, 6)).unwrap_err().to_string();
        assert!(error.contains("no control flow leaves such counters: one that follows from them is -2"), "{error}");
        assert!(placement().solve(&record(10, 5)[..36]).is_err());
    }

    #[test]
    fn damaged_placements_are_refused() {
        let fault = |damage: fn(&mut Placement)| {
            let mut placement = placement();
            damage(&mut placement);
            placement.check(3).unwrap_err().to_string()
        };
        assert!(fault(|p| p.slots = 3).contains("3 records"));
        assert!(fault(|p| p.slots = 1 << 20).contains("expected 0 or a power of two up to 65536"));
        assert!(fault(|p| p.counters.truncate(2)).contains("2 counters are placed, the sites have 3"));
        assert!(fault(|p| p.counters[0] = 4).contains("a counter is value 4, there are 4"));
        assert!(fault(|p| p.kept = u32::MAX).contains("bytes in all, expected up to 268435456"));
        assert!(fault(|p| p.sums[0][0].1 = 2).contains("value 2 is a sum of later ones"));
    }
}
