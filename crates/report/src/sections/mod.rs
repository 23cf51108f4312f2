//! Sections of a kernel's report, one file for each probe: its data as in JSON, and its table.

mod blocks;

use serde::{Deserialize, Serialize};

use super::style::Style;
use wavetap_profile::file::SiteTotals;

pub use blocks::Block;

/// What probes other than that of branches measured in a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sections {
    /// Basic blocks by address; empty where they were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
}

impl Sections {
    /// The sections of a kernel's sites.
    pub(super) fn of(sites: &[SiteTotals]) -> Sections {
        Sections { blocks: sites.iter().filter_map(Block::of).collect() }
    }

    /// Whether nothing was measured.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The tables.
    pub(super) fn lines(&self, wave_size: Option<u32>, style: Style, lines: &mut Vec<String>) {
        blocks::lines(&self.blocks, wave_size, style, lines);
    }
}
