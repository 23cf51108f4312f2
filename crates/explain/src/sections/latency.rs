//! What the latency probe measured.

use serde::{Deserialize, Serialize};

use super::Section;
use wavetap_profile::file::SiteTotals;
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::probes::latency::{EMPTY, LatencyCounts, LatencyKind, PROBE};

/// How long the loads of a kernel took until the waits that complete them were over: *measured*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredLatency {
    /// Two readings of the clock with nothing between them, once for each wave: what the cycles of all executions have
    /// in them that is not their load's.
    pub empty: LatencyCounts,
    /// Loads, and atomics that return something, by address.
    pub loads: Vec<MeasuredLoad>,
}

/// One load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredLoad {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// As printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// Between what it was measured.
    pub kind: LatencyKind,
    /// The counters.
    #[serde(flatten)]
    pub counts: LatencyCounts,
}

impl Section for Option<MeasuredLatency> {
    const PROBE: &'static str = PROBE;

    fn of(sites: &[SiteTotals]) -> Option<MeasuredLatency> {
        MeasuredLatency::of(sites)
    }

    fn is_empty(&self) -> bool {
        self.is_none()
    }
}

impl MeasuredLatency {
    /// That of a kernel with these sites; none if it was not measured, or if no wave began.
    #[must_use]
    pub fn of(sites: &[SiteTotals]) -> Option<MeasuredLatency> {
        let load = |site: &SiteTotals| {
            let found = |kind: LatencyKind| Some((kind, LatencyCounts::of(&site.counts, kind.schema())?));
            let (kind, counts) = LatencyKind::ALL.into_iter().find_map(found)?;
            let (address, instruction, source) = (site.address, site.instruction.clone(), site.source.clone());
            Some(MeasuredLoad { address, instruction, source, kind, counts })
        };
        let empty = sites.iter().find_map(|site| LatencyCounts::of(&site.counts, &EMPTY))?;
        let loads: Vec<MeasuredLoad> = sites.iter().filter_map(load).collect();
        (empty.executions > 0).then_some(MeasuredLatency { empty, loads })
    }

    /// The loads that were executed, those with most net cycles first.
    #[must_use]
    pub fn by_cost(&self) -> Vec<&MeasuredLoad> {
        let mut executed: Vec<&MeasuredLoad> = self.loads.iter().filter(|load| load.counts.executions > 0).collect();
        executed.sort_by(|a, b| self.net(b).total_cmp(&self.net(a)));
        executed
    }

    /// Net cycles of a load in all of its executions.
    #[must_use]
    pub fn net(&self, load: &MeasuredLoad) -> f64 {
        let empty = self.empty.mean().unwrap_or_default();
        (load.counts.cycles as f64 - load.counts.executions as f64 * empty).max(0.0)
    }
}
