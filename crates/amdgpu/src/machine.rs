//! Numbers of the machine around the instructions: how many compute units, what caches hold and how far away they are.
//!
//! They are what a model of time needs; nothing that is read, printed, checked or rewritten depends on them.
//! `isa-tables/machine.yaml` has them with their sources.

use super::target::Target;
use super::vocabulary::MachineFact;

/// A number that may not be known exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// At least.
    pub min: u32,
    /// Usually; what a model takes.
    pub typical: u32,
    /// At most.
    pub max: u32,
}

impl Target {
    /// A number of the machine around the instructions.
    ///
    /// ```
    /// use wavetap_amdgpu::{MachineFact, Target};
    /// let target = Target::by_name("gfx90a").unwrap();
    /// assert_eq!(target.machine(MachineFact::ComputeUnits).typical, 104);
    /// ```
    #[must_use]
    pub fn machine(self, fact: MachineFact) -> Estimate {
        self.data.machine[fact as usize]
    }
}
