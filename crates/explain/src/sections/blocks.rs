//! The counts of basic blocks.

use serde::{Deserialize, Serialize};

use super::Section;
use wavetap_profile::file::SiteTotals;
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::probes::blocks::{BlockCounts, PROBE};

/// One counted basic block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Block {
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
    pub counts: BlockCounts,
}

impl Block {
    /// The block of a site; none if it is a site of another probe.
    fn of(site: &SiteTotals) -> Option<Block> {
        let counts = BlockCounts::of(&site.counts)?;
        Some(Block {
            address: site.address,
            instruction: site.instruction.clone(),
            source: site.source.clone(),
            counts,
        })
    }
}

impl Section for Vec<Block> {
    const PROBE: &'static str = PROBE;

    fn of(sites: &[SiteTotals]) -> Vec<Block> {
        sites.iter().filter_map(Block::of).collect()
    }

    fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }
}
