//! Sites of any schema by its fields: for probes that have no section of their own.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::has_section;
use wavetap_profile::file::SiteTotals;
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::schema::{Counts, FieldSchema, KindSchema, Merge, Unit};

/// The sites of one kind in a kernel, with their values as the kind's schema describes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteTable {
    /// The probe.
    pub probe: String,
    /// The kind of site.
    pub kind: String,
    /// What each value of a site is.
    pub fields: Vec<FieldSchema>,
    /// By field the values of all sites, combined as the field says. Of a minimum null where nothing was measured, of a
    /// sum null where it exceeds 64 bits.
    pub totals: BTreeMap<String, Option<u64>>,
    /// The sites by address.
    pub sites: Vec<TableSite>,
}

/// One site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TableSite {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// The values by field; null for a minimum of which nothing was measured.
    pub counts: BTreeMap<String, Option<u64>>,
}

impl SiteTable {
    /// The tables of a kernel's sites that no section shows, in the order of their first sites.
    #[must_use]
    pub fn all(sites: &[SiteTotals]) -> Vec<SiteTable> {
        let mut by_kind: Vec<(&Arc<KindSchema>, Vec<&SiteTotals>)> = Vec::new();
        for site in sites.iter().filter(|site| !has_section(&site.counts.kind().probe)) {
            let kind = site.counts.kind();
            match by_kind.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, of_kind)) => of_kind.push(site),
                None => by_kind.push((kind, vec![site])),
            }
        }
        by_kind.into_iter().map(|(kind, sites)| SiteTable::of(kind, &sites)).collect()
    }

    fn of(kind: &KindSchema, sites: &[&SiteTotals]) -> SiteTable {
        let total = |(at, field): (usize, &FieldSchema)| {
            let values = sites.iter().filter_map(|site| site.counts.values().get(at));
            let total = values.copied().try_fold(field.merge.identity(), |sum, value| field.merge.combine(sum, value));
            (field.name.to_string(), total.and_then(|total| measured(field, total)))
        };
        let mut rows: Vec<TableSite> = sites.iter().map(|site| TableSite::of(site)).collect();
        rows.sort_by_key(|site| site.address);
        SiteTable {
            probe: kind.probe.to_string(),
            kind: kind.name.to_string(),
            fields: kind.fields.to_vec(),
            totals: kind.fields.iter().enumerate().map(total).collect(),
            sites: rows,
        }
    }

    /// The sites with the largest values of the first field first.
    #[must_use]
    pub fn sorted(&self) -> Vec<&TableSite> {
        let mut sites: Vec<&TableSite> = self.sites.iter().collect();
        let first = self.fields.first().map(|field| field.name.as_ref()).unwrap_or_default();
        sites.sort_by_key(|site| Reverse(site.counts.get(first).copied().flatten()));
        sites
    }
}

impl TableSite {
    fn of(site: &SiteTotals) -> TableSite {
        TableSite {
            address: site.address,
            instruction: site.instruction.clone(),
            source: site.source.clone(),
            counts: values(&site.counts),
        }
    }
}

/// The values of a site by field; none for a minimum of which nothing was measured.
fn values(counts: &Counts) -> BTreeMap<String, Option<u64>> {
    let fields = counts.kind().fields.iter().zip(counts.values());
    fields.map(|(field, value)| (field.name.to_string(), measured(field, *value))).collect()
}

/// A value, unless it says that nothing was measured.
#[must_use]
pub fn measured(field: &FieldSchema, value: u64) -> Option<u64> {
    Some(value).filter(|value| field.merge != Merge::Min || *value != Merge::Min.identity())
}

/// A unit in a word.
#[must_use]
pub fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Executions => "executions",
        Unit::Lanes => "lanes",
        Unit::Cycles => "cycles",
        Unit::Ticks => "ticks",
        Unit::Bytes => "bytes",
        Unit::Transactions => "transactions",
        Unit::Events => "events",
    }
}
