//! What a probe needs of the code and the registers around it, and of those who run it.

use super::Probe;
use wavetap_base::error::{Error, Result};

/// What a probe needs. Planning, the registers of inserted code, collection and the command read this, and nothing else
/// of a probe: the default is a probe whose sites are counted by themselves, in any registers, beside other probes.
/// Another crate begins with the default, as fields will be added:
///
/// ```
/// let mut needs = wavetap_instrument::probe::Needs::default();
/// needs.keeps_lanes = true;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Needs {
    /// No other probe may measure the same kernel, and why: what is said of it.
    pub alone: Option<&'static str>,
    /// Its counters can be in global memory alone, and what is done there: what is said of it ("times are added up").
    pub global_memory: Option<&'static str>,
    /// Its counters follow from no others, and from no executions or lanes ([`super::FunctionProbe::counters`]): each
    /// is added to at its site, which counters in registers are not.
    pub at_each_site: bool,
    /// Waves of sampled workgroups alone have records, each its own, with slots for what is recorded after the counters
    /// ([`wavetap_profile::accesses`]). Inserted code has a pair of vector registers more
    /// ([`super::Measurement::payload`]), and the control block's sample table is set.
    pub records: bool,
    /// The control block leads to a table of what is allocated of global memory
    /// ([`wavetap_profile::bounds`]), and the prologue leaves the place of the wave in the grid in lanes of the data
    /// pair. Inserted code has six vector registers more.
    pub allocations: bool,
    /// Lanes of inserted code's data pair hold something from one snippet of a wave to the next: from lane
    /// [`FIRST_KEPT_LANE`] on, of the second register; of both with [`Needs::unused_registers`]. They are 0 at first.
    /// Lanes of vector registers are not scavenged then; where registers are spilled whole, these are spilled, too. One
    /// probe of a kernel may need this.
    pub keeps_lanes: bool,
    /// Code before a site narrows EXEC for its instruction. Inserted code has a pair of scalar registers more, and a
    /// clause is dissolved if code is between its members.
    pub narrows_exec: bool,
    /// All registers of inserted code are ones that no code of the kernel names; without, the kernel is refused. What
    /// is said of it.
    pub unused_registers: Option<&'static str>,
    /// [`super::FunctionProbe::at_end`] has to be where each wave ends: kernels that call code which may end it are
    /// refused.
    pub every_end: bool,
    /// It reads clocks: what inserted code of others takes is in its numbers, and on the emulator they are those of the
    /// timing model.
    pub reads_clocks: bool,
}

/// The first lane that a probe may keep something in ([`Needs::keeps_lanes`]): those before it add to counters.
pub const FIRST_KEPT_LANE: u32 = 8;

impl Needs {
    /// Whether each counter can be made of executions and lanes that are measured elsewhere.
    pub(crate) fn can_be_placed(&self) -> bool {
        !self.at_each_site && self.global_memory.is_none()
    }

    /// Vector registers that hold nothing from one snippet to the next.
    pub(crate) fn payload(&self) -> u16 {
        match (self.allocations, self.records) {
            (true, _) => 6,
            (false, true) => 2,
            (false, false) => 0,
        }
    }

    /// Whether lanes of vector registers can be scavenged: nothing is in the others then, and nothing is left there.
    pub(crate) fn allows_lane_spills(&self) -> bool {
        !self.keeps_lanes && self.payload() == 0 && self.unused_registers.is_none()
    }

    /// Of several probes: each thing that one of them needs.
    pub(crate) fn together(probes: &[&'static dyn Probe]) -> Needs {
        probes.iter().map(|probe| probe.needs()).fold(Needs::default(), |all, needs| Needs {
            alone: all.alone.or(needs.alone),
            global_memory: all.global_memory.or(needs.global_memory),
            at_each_site: all.at_each_site || needs.at_each_site,
            records: all.records || needs.records,
            allocations: all.allocations || needs.allocations,
            keeps_lanes: all.keeps_lanes || needs.keeps_lanes,
            narrows_exec: all.narrows_exec || needs.narrows_exec,
            unused_registers: all.unused_registers.or(needs.unused_registers),
            every_end: all.every_end || needs.every_end,
            reads_clocks: all.reads_clocks || needs.reads_clocks,
        })
    }
}

/// Refuses probes that cannot measure the same kernel: one that stands alone beside another, two that keep something in
/// the same lanes, the same one twice.
///
/// # Errors
/// Unsupported: which probe, and why.
pub fn check_together(probes: &[&'static dyn Probe]) -> Result<()> {
    let refuse =
        |name, why: &str| Err(Error::unsupported(format!("probe {name} cannot be combined with other probes: {why}")));
    let alone = probes.iter().find_map(|probe| Some((probe.name(), probe.needs().alone?)));
    if let (Some((name, why)), 2..) = (alone, probes.len()) {
        return refuse(name, why);
    }
    if let Some(keeps) = probes.iter().filter(|probe| probe.needs().keeps_lanes).nth(1) {
        return refuse(keeps.name(), "another one keeps something in the same lanes");
    }
    let is_again = |(n, probe): &(usize, &&dyn Probe)| probes[..*n].iter().any(|other| other.name() == probe.name());
    match probes.iter().enumerate().find(is_again) {
        Some((_, probe)) => Err(Error::unsupported(format!("probe {} is given twice", probe.name()))),
        None => Ok(()),
    }
}
