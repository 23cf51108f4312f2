//! The parts of a sum that are of one rank or host each.

use std::collections::BTreeMap;

use crate::file::{Dimension, GroupKernel, GroupTotals, KernelTotals, Profile};
use wavetap_base::error::{Error, Result};

/// What a part is of: the rank and the host where these are kept apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct GroupKey {
    pub(super) rank: Option<u32>,
    pub(super) hostname: Option<String>,
}

impl GroupKey {
    /// Of processes with a rank and a host.
    ///
    /// # Errors
    /// Unsupported if what is kept apart is not known.
    pub(super) fn new(by: &[Dimension], rank: Option<u32>, hostname: Option<&str>) -> Result<GroupKey> {
        let mut key = GroupKey::default();
        for dimension in by {
            let is_known = match dimension {
                Dimension::Rank => {
                    key.rank = rank;
                    rank.is_some()
                }
                Dimension::Host => {
                    key.hostname = hostname.map(str::to_owned);
                    hostname.is_some()
                }
            };
            if !is_known {
                let name = dimension.name();
                return Err(Error::unsupported(format!(
                    "no {name} is known of it, by which profiles are kept apart (--by): MPI and Slurm give processes \
                        ranks, and a profile of several of them has none"
                )));
            }
        }
        Ok(key)
    }
}

/// One part.
#[derive(Debug, Default)]
struct Group {
    processes: u32,
    /// By the number of the kernel in the sum.
    kernels: BTreeMap<u32, GroupKernel>,
}

/// All parts.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<GroupKey, Group>);

impl Groups {
    /// Adds a profile that was kept apart by at least `by`, or by nothing. `kernels` gives for each of its kernels the
    /// number in the sum.
    ///
    /// # Errors
    /// Unsupported if it lacks what is kept apart; Limit if a sum exceeds 64 bits.
    pub(super) fn add(&mut self, profile: &Profile, by: &[Dimension], kernels: &[u32]) -> Result<()> {
        if profile.by.is_empty() {
            let key = GroupKey::new(by, profile.rank, profile.hostname.as_deref())?;
            let parts = (0..).zip(&profile.kernels).map(|(at, kernel)| GroupKernel::of(at, kernel));
            return self.add_group(key, profile.processes, parts, &profile.kernels, kernels);
        }
        for group in &profile.groups {
            let key = GroupKey::new(by, group.rank, group.hostname.as_deref())?;
            self.add_group(key, group.processes, group.kernels.iter().cloned(), &profile.kernels, kernels)?;
        }
        Ok(())
    }

    fn add_group(
        &mut self,
        key: GroupKey,
        processes: u32,
        parts: impl Iterator<Item = GroupKernel>,
        kernels: &[KernelTotals],
        numbers: &[u32],
    ) -> Result<()> {
        let group = self.0.entry(key).or_default();
        group.processes = group.processes.saturating_add(processes);
        for part in parts {
            let at = part.kernel as usize;
            let (Some(kernel), Some(number)) = (kernels.get(at), numbers.get(at)) else { continue };
            match group.kernels.get_mut(number) {
                Some(known) => known.add(&part, kernel)?,
                None => {
                    group.kernels.insert(*number, part);
                }
            }
        }
        Ok(())
    }

    /// As a profile has them; `index` gives the place of each kernel of the sum in the profile.
    pub(super) fn finish(self, index: &[u32]) -> Vec<GroupTotals> {
        let finish = |(key, group): (GroupKey, Group)| {
            let place = |(number, part): (u32, GroupKernel)| GroupKernel { kernel: index[number as usize], ..part };
            let mut kernels: Vec<GroupKernel> = group.kernels.into_iter().map(place).collect();
            kernels.sort_by_key(|part| part.kernel);
            GroupTotals { rank: key.rank, hostname: key.hostname, processes: group.processes, kernels }
        };
        self.0.into_iter().map(finish).collect()
    }
}
