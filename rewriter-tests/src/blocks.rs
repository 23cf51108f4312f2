//! What must hold between the counts of basic blocks, of branches, and what the emulator saw.

use std::collections::BTreeMap;

use wavetap::profile::file::KernelTotals;
use wavetap::profile::probes::blocks::BlockCounts;
use wavetap::profile::probes::branches::BranchCounts;

use crate::Failure;
use crate::instrumented::Outcome;

/// Every instruction that the emulator saw is in a block, and was executed as often as that: the blocks are all there
/// are, and no control enters or leaves one in its middle. The counts of branches follow from those of the blocks that
/// they are in. What `is_skipped` (`s_setvskip`) may be executed less often.
///
/// # Errors
/// What is not so.
pub fn are_whole(seen: &Outcome, counted: &KernelTotals, is_skipped: &dyn Fn(u64) -> bool) -> Result<(), Failure> {
    let blocks: BTreeMap<u64, BlockCounts> =
        counted.sites.iter().filter_map(|site| Some((site.address, BlockCounts::of(&site.counts)?))).collect();
    let block =
        |address: u64| blocks.range(..=address).next_back().ok_or_else(|| format!("{address:#x} is in no block"));
    for (place, executed) in seen.trace.executed.iter().filter(|(place, _)| place.object == seen.object) {
        let (start, counts) = block(place.address)?;
        if counts.executions != *executed && !(counts.executions > *executed && is_skipped(place.address)) {
            let counted = counts.executions;
            return Err(format!(
                "{:#x} was executed {executed} times, its block at {start:#x} {counted}",
                place.address
            ));
        }
    }
    for site in &counted.sites {
        let executions = match BranchCounts::of(&site.counts) {
            Some(BranchCounts::Exec(exec)) => exec.executions + exec.empty,
            Some(BranchCounts::Scalar(scalar)) => scalar.executions,
            None => continue,
        };
        let (start, counts) = block(site.address)?;
        if counts.executions != executions {
            return Err(format!(
                "the branch at {:#x}: {executions}, its block at {start:#x}: {}",
                site.address, counts.executions
            ));
        }
    }
    Ok(())
}
