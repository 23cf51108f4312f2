//! What was counted of a kernel: of its blocks, and of the instructions that narrow EXEC.

use rustc_hash::FxHashMap;
use wavetap_profile::file::KernelTotals;
use wavetap_profile::probes::blocks::BlockCounts;
use wavetap_profile::probes::branches::{BranchCounts, ExecCounts};

/// What was counted of a kernel, by address.
#[derive(Debug)]
pub struct SiteCounts<'a> {
    totals: &'a KernelTotals,
    blocks: FxHashMap<u64, BlockCounts>,
    exec: FxHashMap<u64, ExecCounts>,
}

impl<'a> SiteCounts<'a> {
    /// Of a kernel.
    #[must_use]
    pub fn of(totals: &'a KernelTotals) -> SiteCounts<'a> {
        let blocks =
            totals.sites.iter().filter_map(|site| Some((site.address, BlockCounts::of(&site.counts)?))).collect();
        let exec = totals.sites.iter().filter_map(|site| match BranchCounts::of(&site.counts) {
            Some(BranchCounts::Exec(counts)) => Some((site.address, counts)),
            _ => None,
        });
        SiteCounts { totals, blocks, exec: exec.collect() }
    }

    /// Whether blocks were counted at all.
    #[must_use]
    pub fn has_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Whether every wave was counted, to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.totals.dropped == 0 && self.totals.unfinished == 0
    }

    /// Of the block that begins at an address.
    #[must_use]
    pub fn block(&self, address: u64) -> Option<BlockCounts> {
        self.blocks.get(&address).copied()
    }

    /// Of an instruction that narrows EXEC.
    pub(crate) fn exec(&self, address: u64) -> Option<ExecCounts> {
        self.exec.get(&address).copied()
    }
}
