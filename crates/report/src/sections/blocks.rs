//! The counts of basic blocks as a table.

use serde::{Deserialize, Serialize};

use super::{OfKernel, Section};
use crate::style::{Style, place, push_table};
use crate::table::{Align, Table, grouped};
use wavetap_profile::file::SiteTotals;
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::probes::blocks::{BlockCounts, PROBE};

/// Blocks listed for each kernel: those with the most executions by lanes. JSON has all of them.
const BLOCKS_SHOWN: usize = 12;

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

    fn lines(&self, kernel: OfKernel, style: Style, lines: &mut Vec<String>) {
        block_lines(self, kernel.wave_size, style, lines);
    }
}

/// The blocks of a kernel, those with the most executions first.
fn block_lines(blocks: &[Block], wave_size: Option<u32>, style: Style, lines: &mut Vec<String>) {
    let lanes = wave_size.map_or_else(|| "active lanes".to_owned(), |lanes| format!("lanes of {lanes}"));
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("first instruction", Align::Left),
        ("source", Align::Left),
        ("executions", Align::Right),
        (&lanes, Align::Right),
    ]);
    let mut blocks: Vec<&Block> = blocks.iter().collect();
    blocks.sort_by_key(|block| std::cmp::Reverse(block.counts.executions));
    for block in blocks.iter().take(BLOCKS_SHOWN) {
        table.row([
            format!("{:#x}", block.address),
            block.instruction.clone(),
            place(block.source.as_ref()),
            grouped(block.counts.executions),
            block.counts.average_lanes().map(|lanes| format!("{lanes:.1}")).unwrap_or_default(),
        ]);
    }
    push_table("basic blocks", &table, style, lines);
    if blocks.len() > BLOCKS_SHOWN {
        lines.push(format!("  and {} more: --format json has all", blocks.len() - BLOCKS_SHOWN));
    }
}
