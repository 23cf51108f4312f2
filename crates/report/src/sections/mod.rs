//! Sections of a kernel's report, one file for each probe: its data as in JSON, and its tables in text. Sites of a
//! probe without a section are tables of the fields of their schema.

mod blocks;
mod branches;
mod latency;
mod sites;
mod time;

use serde::{Deserialize, Serialize};

use super::style::Style;
use wavetap_amdgpu::Target;
use wavetap_profile::file::SiteTotals;
use wavetap_profile::probes::memory;

pub use blocks::Block;
pub use branches::Branch;
pub use latency::{MeasuredLatency, MeasuredLoad};
pub use sites::{SiteTable, TableSite};
pub(crate) use sites::{measured, unit_name};
pub use time::{MeasuredTime, TimedBlock};

/// Probes whose sites are the business of a command of its own: `wavetap memory` shows recorded accesses and what was
/// dropped of them.
const SHOWN_ELSEWHERE: [&str; 1] = [memory::PROBE];

/// What the tables of a kernel have to know of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfKernel {
    /// Its processor, if that is known.
    pub target: Option<Target>,
    /// Lanes of its waves, if that is known.
    pub wave_size: Option<u32>,
    /// How often it was dispatched.
    pub dispatches: u64,
}

/// What a probe says of a kernel.
trait Section: Sized {
    /// The probe's name.
    const PROBE: &'static str;

    /// That of a kernel with these sites, which may be of any probe.
    fn of(sites: &[SiteTotals]) -> Self;

    /// Whether nothing was measured.
    fn is_empty(&self) -> bool;

    /// Adds its tables.
    fn lines(&self, kernel: OfKernel, style: Style, lines: &mut Vec<String>);
}

/// Defines [`Sections`]: a field for each probe, in the order in which text has them.
macro_rules! sections {
    ($($(#[$attribute:meta])* $field:ident: $section:ty,)*) => {
        /// What probes measured in a kernel.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct Sections {
            $($(#[$attribute])* pub $field: $section,)*
            /// Sites of probes that have no section of their own, a table for each kind of site.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub site_tables: Vec<SiteTable>,
        }

        /// Probes with a section.
        const PROBES: &[&str] = &[$(<$section as Section>::PROBE),*];

        impl Sections {
            /// The sections of a kernel's sites.
            pub(super) fn of(sites: &[SiteTotals]) -> Sections {
                Sections { $($field: Section::of(sites),)* site_tables: SiteTable::all(sites) }
            }

            /// Whether nothing was measured.
            pub(super) fn is_empty(&self) -> bool {
                $(Section::is_empty(&self.$field) &&)* self.site_tables.is_empty()
            }

            /// The tables of a kernel.
            pub(super) fn lines(&self, kernel: OfKernel, style: Style, lines: &mut Vec<String>) {
                $(Section::lines(&self.$field, kernel, style, lines);)*
                self.site_tables.iter().for_each(|table| table.lines(style, lines));
            }
        }
    };
}

sections! {
    /// Branches by address.
    branches: Vec<Branch>,
    /// Basic blocks by address; empty where they were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<Block>,
    /// How long it took; not there where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measured_time: Option<MeasuredTime>,
    /// How long its loads took; not there where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measured_latency: Option<MeasuredLatency>,
}

/// Whether sites of a probe are shown by something that knows what they mean.
pub(crate) fn has_section(probe: &str) -> bool {
    PROBES.contains(&probe) || SHOWN_ELSEWHERE.contains(&probe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::probes;

    #[test]
    fn every_known_probe_has_a_section() {
        for kind in probes::kinds() {
            assert!(has_section(&kind.probe), "{kind}");
        }
    }
}
