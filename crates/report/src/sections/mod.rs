//! Sections of a kernel's report, one file for each probe: its data as in JSON, and its table.

use serde::{Deserialize, Serialize};

use super::text::Style;
use wavetap_profile::file::SiteTotals;

/// What probes other than that of branches measured in a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sections {}

impl Sections {
    /// The sections of a kernel's sites.
    pub(super) fn of(_sites: &[SiteTotals]) -> Sections {
        Sections {}
    }

    /// Whether nothing was measured.
    pub(super) fn is_empty(&self) -> bool {
        true
    }

    /// The tables.
    pub(super) fn lines(&self, _wave_size: Option<u32>, _style: Style, _lines: &mut Vec<String>) {}
}
