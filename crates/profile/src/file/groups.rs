//! What a merged profile keeps apart: totals of each rank, of each host, or of each rank on each host.

use serde::{Deserialize, Serialize};

use super::{KernelTotals, Profile, Work};
use wavetap_base::error::{Error, Result};

/// What tells the parts of a merged profile apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// The rank ([`Profile::rank`]).
    Rank,
    /// The name of the host ([`Profile::hostname`]).
    Host,
}

impl Dimension {
    /// Its name, as in JSON and in `--by`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Rank => "rank",
            Dimension::Host => "host",
        }
    }
}

/// What was collected of one rank, host, or rank on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupTotals {
    /// The rank, where ranks are kept apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The host, where hosts are kept apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Processes.
    pub processes: u32,
    /// Kernels that it dispatched, by rising index.
    pub kernels: Vec<GroupKernel>,
}

/// The part of a kernel's totals that is of one group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupKernel {
    /// Index into [`Profile::kernels`].
    pub kernel: u32,
    /// Dispatches.
    pub dispatches: u64,
    /// Waves.
    pub waves: u64,
    /// Dynamic work as the emulator saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Counters of the kernel's sites, in their order, each in record order.
    pub counters: Vec<u64>,
}

impl GroupKernel {
    /// All of a kernel's totals.
    pub(crate) fn of(kernel: u32, totals: &KernelTotals) -> GroupKernel {
        GroupKernel {
            kernel,
            dispatches: totals.dispatches,
            waves: totals.waves,
            work: totals.work,
            counters: totals.sites.iter().flat_map(|site| site.counts.values()).copied().collect(),
        }
    }

    /// Adds another part of the same kernel's totals, whose sites are `of`'s.
    ///
    /// # Errors
    /// Limit if a sum exceeds 64 bits.
    pub(crate) fn add(&mut self, other: &GroupKernel, of: &KernelTotals) -> Result<()> {
        let too_large = || Error::limit(format!("kernel {}: a sum exceeds 64 bits", of.name));
        let dispatches = self.dispatches.checked_add(other.dispatches).ok_or_else(too_large)?;
        let waves = self.waves.checked_add(other.waves).ok_or_else(too_large)?;
        self.work = Work::sum(self.work, other.work).ok_or_else(too_large)?;
        (self.dispatches, self.waves) = (dispatches, waves);
        let fields = of.sites.iter().flat_map(|site| site.counts.kind().fields.iter());
        for ((mine, value), field) in self.counters.iter_mut().zip(&other.counters).zip(fields) {
            *mine = field.merge.combine(*mine, *value).ok_or_else(too_large)?;
        }
        Ok(())
    }
}

/// Checks that groups are of a profile's kernels.
///
/// # Errors
/// Malformed: a kernel that is not there or has another number of counters.
pub(super) fn check(profile: &Profile) -> Result<()> {
    let counters = |kernel: &KernelTotals| kernel.sites.iter().map(|site| site.counts.values().len()).sum();
    let expected: Vec<usize> = profile.kernels.iter().map(counters).collect();
    for part in profile.groups.iter().flat_map(|group| &group.kernels) {
        let found = part.counters.len();
        match expected.get(part.kernel as usize) {
            None => {
                let of = expected.len();
                return Err(Error::malformed(format!("a group has kernel {}, there are {of}", part.kernel)));
            }
            Some(expected) if *expected != found => {
                let name = &profile.kernels[part.kernel as usize].name;
                return Err(Error::malformed(format!(
                    "kernel {name}: a group has {found} counters, its sites have {expected}"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
