//! The fields of a kernel's sites, from their schemas alone.

use std::collections::BTreeMap;

use crate::sections::{has_section, measured};
use wavetap_profile::file::KernelTotals;
use wavetap_profile::schema::Merge;

/// Values of all sites of some kernels by `PROBE/KIND/FIELD`, combined as the field says. A field of which nothing was
/// measured has none. A sum is at most 2^64 - 1, as others of a kernel's numbers are.
pub(super) type Fields = BTreeMap<String, u64>;

/// The fields of all probes.
pub(super) fn of_all(kernels: &[&KernelTotals]) -> Fields {
    of(kernels, |_| true)
}

/// The fields of probes that have no section of their own, and so no numbers.
pub(super) fn without_section(kernels: &[&KernelTotals]) -> Fields {
    of(kernels, |probe| !has_section(probe))
}

fn of(kernels: &[&KernelTotals], wanted: impl Fn(&str) -> bool) -> Fields {
    let mut fields = Fields::new();
    let sites = kernels.iter().flat_map(|kernel| &kernel.sites);
    for site in sites.filter(|site| wanted(&site.counts.kind().probe)) {
        let kind = site.counts.kind();
        for (field, value) in kind.fields.iter().zip(site.counts.values()) {
            let Some(value) = measured(field, *value) else { continue };
            let name = format!("{}/{}/{}", kind.probe, kind.name, field.name);
            let sum = fields.entry(name).or_insert_with(|| field.merge.identity());
            *sum = match field.merge {
                Merge::Sum => sum.saturating_add(value),
                Merge::Max | Merge::Min => field.merge.combine(*sum, value).unwrap_or(*sum),
            };
        }
    }
    fields
}
