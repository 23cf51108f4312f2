//! What the time probe measured.

use serde::{Deserialize, Serialize};

use super::Section;
use wavetap_profile::file::SiteTotals;
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::probes::time::{BLOCK, BlockTime, EMPTY, PROBE, WaveTime};

/// How long the waves of a kernel ran, and how long they were in each basic block: *measured*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredTime {
    /// The waves. When they began and ended is comparable within one dispatch.
    pub waves: WaveTime,
    /// A block without instructions, once for each wave: what the times of all executions of blocks have in them that
    /// is not their instructions'.
    pub empty: BlockTime,
    /// Basic blocks by address.
    pub blocks: Vec<TimedBlock>,
}

/// One basic block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimedBlock {
    /// Original virtual address of its first instruction.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// Its first instruction as printed.
    pub instruction: String,
    /// Source line of that.
    pub source: Option<Source>,
    /// The counters.
    #[serde(flatten)]
    pub counts: BlockTime,
}

impl Section for Option<MeasuredTime> {
    const PROBE: &'static str = PROBE;

    fn of(sites: &[SiteTotals]) -> Option<MeasuredTime> {
        MeasuredTime::of(sites)
    }

    fn is_empty(&self) -> bool {
        self.is_none()
    }
}

impl MeasuredTime {
    /// That of a kernel with these sites; none if it was not measured, or if no wave ended.
    #[must_use]
    pub fn of(sites: &[SiteTotals]) -> Option<MeasuredTime> {
        let block = |site: &SiteTotals| {
            Some(TimedBlock {
                address: site.address,
                instruction: site.instruction.clone(),
                source: site.source.clone(),
                counts: BlockTime::of(&site.counts, &BLOCK)?,
            })
        };
        Some(MeasuredTime {
            waves: sites.iter().find_map(|site| WaveTime::of(&site.counts))?,
            empty: sites.iter().find_map(|site| BlockTime::of(&site.counts, &EMPTY))?,
            blocks: sites.iter().filter_map(block).collect(),
        })
    }
}
