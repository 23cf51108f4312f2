//! Sections of a kernel's report, one file for each probe: its data as in JSON, and its table.

mod blocks;
mod latency;
mod time;

use serde::{Deserialize, Serialize};

use super::style::Style;
use wavetap_amdgpu::Target;
use wavetap_profile::file::SiteTotals;

pub use blocks::Block;
pub use latency::{MeasuredLatency, MeasuredLoad};
pub use time::{MeasuredTime, TimedBlock};

/// What probes other than that of branches measured in a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sections {
    /// Basic blocks by address; empty where they were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// How long it took; not there where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_time: Option<MeasuredTime>,
    /// How long its loads took; not there where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_latency: Option<MeasuredLatency>,
}

impl Sections {
    /// The sections of a kernel's sites.
    pub(super) fn of(sites: &[SiteTotals]) -> Sections {
        Sections {
            blocks: sites.iter().filter_map(Block::of).collect(),
            measured_time: MeasuredTime::of(sites),
            measured_latency: MeasuredLatency::of(sites),
        }
    }

    /// Whether nothing was measured.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.measured_time.is_none() && self.measured_latency.is_none()
    }

    /// The tables of a kernel of this target and with waves of this size, which was dispatched so often.
    pub(super) fn lines(
        &self,
        (target, wave_size): (Option<Target>, Option<u32>),
        dispatches: u64,
        style: Style,
        lines: &mut Vec<String>,
    ) {
        blocks::lines(&self.blocks, wave_size, style, lines);
        if let Some(time) = &self.measured_time {
            time.lines(target, dispatches, style, lines);
        }
        if let Some(latency) = &self.measured_latency {
            latency.lines(target, style, lines);
        }
    }
}
