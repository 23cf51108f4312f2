//! What probes say of a kernel, one file for each probe: its data as in JSON. Sites of a probe without a section are
//! tables of the fields of their schema.

mod blocks;
mod branches;
mod latency;
mod sites;
mod time;

use serde::{Deserialize, Serialize};

use wavetap_profile::file::SiteTotals;
use wavetap_profile::probes::memory;

pub use blocks::Block;
pub use branches::Branch;
pub use latency::{MeasuredLatency, MeasuredLoad};
pub use sites::{SiteTable, TableSite, measured, unit_name};
pub use time::{MeasuredTime, TimedBlock};

/// Probes whose sites are the business of a command of its own: `wavetap memory` shows recorded accesses and what was
/// dropped of them.
const SHOWN_ELSEWHERE: [&str; 1] = [memory::PROBE];

/// What a probe says of a kernel.
trait Section: Sized {
    /// The probe's name.
    const PROBE: &'static str;

    /// That of a kernel with these sites, which may be of any probe.
    fn of(sites: &[SiteTotals]) -> Self;

    /// Whether nothing was measured.
    fn is_empty(&self) -> bool;
}

/// Defines [`Sections`]: a field for each probe, in the order of JSON.
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
            #[must_use]
            pub fn of(sites: &[SiteTotals]) -> Sections {
                Sections { $($field: Section::of(sites),)* site_tables: SiteTable::all(sites) }
            }

            /// Whether nothing was measured.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                $(Section::is_empty(&self.$field) &&)* self.site_tables.is_empty()
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
#[must_use]
pub fn has_section(probe: &str) -> bool {
    PROBES.contains(&probe) || SHOWN_ELSEWHERE.contains(&probe)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use wavetap_profile::probes;
    use wavetap_profile::schema::Counts;

    /// In a section of its own, as tables of its fields, or by a command of its own.
    #[test]
    fn sites_of_every_known_probe_are_shown() {
        let mut by_probe: BTreeMap<String, Vec<SiteTotals>> = BTreeMap::new();
        for kind in probes::kinds() {
            let values = vec![1; kind.fields.len()];
            let counts = Counts::new(kind, values).expect("as many values as fields");
            let site = SiteTotals { address: 0x100, instruction: "s_nop 0".to_owned(), source: None, counts };
            by_probe.entry(kind.probe.to_string()).or_default().push(site);
        }
        for (probe, sites) in by_probe {
            let sections = Sections::of(&sites);
            assert_eq!(sections.is_empty(), SHOWN_ELSEWHERE.contains(&probe.as_str()), "{probe}");
            assert_eq!(sections.site_tables.is_empty(), has_section(&probe), "{probe}");
        }
    }
}
