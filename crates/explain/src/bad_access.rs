//! Accesses out of bounds, as the bounds probe found them.

use serde::{Deserialize, Serialize};

use wavetap_profile::accesses::AllocatedRange;
use wavetap_profile::file::{KernelTotals, Profile, SiteTotals};
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::probes::bounds;

/// An instruction that accessed global memory outside of what was allocated, and the first time that it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BadAccess {
    /// Original virtual address of the instruction.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// Executions with a lane out of bounds, in all dispatches.
    pub executions: u64,
    /// Lanes out of bounds, summed.
    pub lanes: u64,
    /// The dispatch of the first one.
    pub dispatch: u32,
    /// Its workgroup.
    pub workgroup: [u32; 3],
    /// The wave in the workgroup.
    pub wave: u32,
    /// The first lane that was out of bounds.
    pub lane: u32,
    /// Whether workgroup, wave and lane are not known, and 0: a fault ended the dispatch before they were stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The address that this lane accessed.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub accessed: u64,
    /// The allocation that is nearest to it; null where nothing was allocated.
    pub nearest: Option<AllocatedRange>,
    /// Bytes from that allocation: below 0 before its start, from 0 on after its end. Null where there is none.
    pub distance: Option<i64>,
}

/// A buffer instruction that ran with a descriptor whose accesses cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UncheckedAccess {
    /// Original virtual address of the instruction.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// Executions that were not checked, in all dispatches.
    pub executions: u64,
}

/// Those of a kernel, by address.
pub(crate) fn unchecked_of_kernel(totals: &KernelTotals) -> Vec<UncheckedAccess> {
    let of_site = |site: &SiteTotals| UncheckedAccess {
        address: site.address,
        instruction: site.instruction.clone(),
        source: site.source.clone(),
        executions: bounds::unchecked(&site.counts),
    };
    totals.sites.iter().map(of_site).filter(|access| access.executions > 0).collect()
}

/// Those of a kernel, by its place in the profile; of several dispatches the first one. By address.
pub(crate) fn of_kernel(profile: &Profile, place: usize, totals: &KernelTotals) -> Vec<BadAccess> {
    let mut found: Vec<BadAccess> = Vec::new();
    let mut of_kernel: Vec<_> = profile.out_of_bounds.iter().filter(|bad| bad.kernel as usize == place).collect();
    of_kernel.sort_by_key(|bad| (bad.site, bad.dispatch));
    of_kernel.dedup_by_key(|bad| bad.site);
    for bad in of_kernel {
        let Some(site) = totals.sites.get(bad.site as usize) else { continue };
        let [executions, lanes, ..] = *site.counts.values() else { continue };
        // Of a dispatch that a fault ended the first execution alone is known.
        let (executions, lanes) = (executions.max(1), lanes.max(bad.lanes.count_ones().into()).max(1));
        found.push(BadAccess {
            address: site.address,
            instruction: site.instruction.clone(),
            source: site.source.clone(),
            executions,
            lanes,
            dispatch: bad.dispatch,
            workgroup: bad.workgroup,
            wave: bad.wave,
            lane: bad.lane,
            partial: bad.lanes == 0,
            accessed: bad.address,
            nearest: bad.nearest,
            distance: bad.distance().map(|bytes| bytes.clamp(i64::MIN.into(), i64::MAX.into()) as i64),
        });
    }
    found
}
