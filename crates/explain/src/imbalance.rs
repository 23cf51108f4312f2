//! How evenly ranks or hosts share what kernels did: of profiles that were merged with `--by`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wavetap_profile::file::{Dimension, GroupKernel, GroupTotals, KernelTotals, Profile, SiteTotals};
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::schema::Merge;

/// What one dimension says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Imbalance {
    /// What shares the work.
    pub by: Dimension,
    /// How many ranks or hosts there are. One that never dispatched a kernel has 0 of it.
    pub count: u64,
    /// The kernels, in the order of the profile.
    pub kernels: Vec<KernelImbalance>,
}

/// How a kernel is shared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelImbalance {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id.
    pub target: String,
    /// MD5 of the original code object.
    pub object: String,
    /// Dispatches and waves; instructions and bytes as the emulator saw them, inserted code included.
    pub totals: Vec<Spread>,
    /// Its sites, in the order of the profile.
    pub sites: Vec<SiteImbalance>,
}

/// How what a site counts is shared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteImbalance {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// The probe whose site it is.
    pub probe: String,
    /// The kind of the site.
    pub kind: String,
    /// The fields of which anything was measured.
    pub fields: Vec<Spread>,
}

/// How one number is shared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// What it is: `waves`, or a field of the site.
    pub what: String,
    /// The least that one has.
    pub min: u64,
    /// The first rank or host that has it.
    pub min_at: String,
    /// The mean of all.
    pub mean: f64,
    /// The most that one has.
    pub max: u64,
    /// The first rank or host that has it.
    pub max_at: String,
    /// The most by the mean: 1 where all have the same. Null where all have 0.
    pub imbalance: Option<f64>,
}

/// A number of a site of which not all ranks or hosts have the same.
#[derive(Debug, Clone, Copy)]
pub struct Uneven<'i> {
    /// The kernel.
    pub kernel: &'i KernelImbalance,
    /// The site.
    pub site: &'i SiteImbalance,
    /// The number.
    pub spread: &'i Spread,
}

impl Imbalance {
    /// The kernels, those of which one rank or host has most waves beyond the mean first.
    #[must_use]
    pub fn by_excess(&self) -> Vec<&KernelImbalance> {
        let excess = |kernel: &&KernelImbalance| {
            let waves = kernel.totals.iter().find(|spread| spread.what == "waves");
            Reverse(waves.map_or(0, |spread| spread.excess() as u64))
        };
        let mut kernels: Vec<&KernelImbalance> = self.kernels.iter().collect();
        kernels.sort_by_key(excess);
        kernels
    }

    /// The numbers of sites that are not the same everywhere, most beyond the mean first.
    #[must_use]
    pub fn uneven(&self) -> Vec<Uneven<'_>> {
        let sites = self.kernels.iter().flat_map(|kernel| kernel.sites.iter().map(move |site| (kernel, site)));
        let fields = sites.flat_map(|(kernel, site)| {
            let uneven = site.fields.iter().filter(|spread| spread.min < spread.max);
            uneven.map(move |spread| Uneven { kernel, site, spread })
        });
        let mut all: Vec<Uneven<'_>> = fields.collect();
        all.sort_by(|one, other| other.spread.excess().total_cmp(&one.spread.excess()));
        all
    }
}

impl Spread {
    /// How much more than the mean one has.
    #[must_use]
    pub fn excess(&self) -> f64 {
        self.max as f64 - self.mean
    }

    /// Of values with what they are of; none if nothing was measured.
    fn of<'a>(what: &str, values: impl Iterator<Item = (&'a str, u64)>) -> Option<Spread> {
        let (mut sum, mut count) = (0_u128, 0_u64);
        let mut ends: Option<[(&str, u64); 2]> = None;
        for (at, value) in values {
            (sum, count) = (sum + u128::from(value), count + 1);
            let [min, max] = ends.get_or_insert([(at, value); 2]);
            if value < min.1 {
                *min = (at, value);
            }
            if value > max.1 {
                *max = (at, value);
            }
        }
        let [(min_at, min), (max_at, max)] = ends?;
        let mean = sum as f64 / count as f64;
        Some(Spread {
            what: what.to_owned(),
            min,
            min_at: min_at.to_owned(),
            mean,
            max,
            max_at: max_at.to_owned(),
            imbalance: (max > 0).then(|| max as f64 / mean),
        })
    }
}

/// That of each dimension that a profile keeps apart.
#[must_use]
pub fn of(profile: &Profile) -> Vec<Imbalance> {
    profile.by.iter().map(|by| of_dimension(profile, *by)).collect()
}

fn of_dimension(profile: &Profile, by: Dimension) -> Imbalance {
    let key = |group: &GroupTotals| match by {
        Dimension::Rank => (group.rank, None),
        Dimension::Host => (None, group.hostname.clone()),
    };
    // Groups of a rank on several hosts, or of the ranks of a host, are one.
    let mut members: BTreeMap<(Option<u32>, Option<String>), Vec<&GroupTotals>> = BTreeMap::new();
    for group in &profile.groups {
        members.entry(key(group)).or_default().push(group);
    }
    let label = |(rank, host): &(Option<u32>, Option<String>)| match rank {
        Some(rank) => rank.to_string(),
        None => host.clone().unwrap_or_default(),
    };
    let members: Vec<(String, Vec<&GroupTotals>)> =
        members.iter().map(|(key, groups)| (label(key), groups.clone())).collect();
    let kernel = |(number, totals): (u32, &KernelTotals)| of_kernel(totals, number, &members);
    Imbalance { by, count: members.len() as u64, kernels: (0..).zip(&profile.kernels).map(kernel).collect() }
}

fn of_kernel(totals: &KernelTotals, number: u32, members: &[(String, Vec<&GroupTotals>)]) -> KernelImbalance {
    let parts: Vec<(&str, Vec<&GroupKernel>)> = members
        .iter()
        .map(|(label, groups)| {
            let part = |group: &&GroupTotals| {
                let at = group.kernels.binary_search_by_key(&number, |part| part.kernel);
                at.ok()
            };
            let parts = groups.iter().filter_map(|group| part(group).map(|at| &group.kernels[at]));
            (label.as_str(), parts.collect())
        })
        .collect();
    let spread = |what: &str, of: &dyn Fn(&GroupKernel) -> u64| {
        let sum = |parts: &[&GroupKernel]| parts.iter().fold(0_u64, |sum, part| sum.saturating_add(of(part)));
        Spread::of(what, parts.iter().map(|(label, parts)| (*label, sum(parts))))
    };
    let mut spreads: Vec<Option<Spread>> =
        vec![spread("dispatches", &|part| part.dispatches), spread("waves", &|part| part.waves)];
    // Where one part does not say, the others are not all.
    if totals.work.is_some() {
        let work = |part: &GroupKernel| part.work.unwrap_or_default();
        spreads.push(spread("instructions", &|part| work(part).instructions));
        spreads.push(spread("global_bytes", &|part| work(part).global_bytes));
        spreads.push(spread("lds_bytes", &|part| work(part).lds_bytes));
    }
    let mut first = 0;
    let sites = totals.sites.iter().map(|site| {
        let imbalance = of_site(site, first, &parts);
        first += site.counts.values().len();
        imbalance
    });
    KernelImbalance {
        sites: sites.collect(),
        name: totals.name.clone(),
        demangled: totals.demangled.clone(),
        target: totals.target.clone(),
        object: totals.object.clone(),
        totals: spreads.into_iter().flatten().filter(|spread| spread.max > 0).collect(),
    }
}

/// That of a site whose counters begin at `first`.
fn of_site(site: &SiteTotals, first: usize, parts: &[(&str, Vec<&GroupKernel>)]) -> SiteImbalance {
    let kind = site.counts.kind();
    let field = |(at, field): (usize, &wavetap_profile::schema::FieldSchema)| {
        let value = |parts: &[&GroupKernel]| {
            let values = parts.iter().filter_map(|part| part.counters.get(first + at));
            values.fold(field.merge.identity(), |sum, value| field.merge.combine(sum, *value).unwrap_or(u64::MAX))
        };
        let values = parts.iter().map(|(label, parts)| (*label, value(parts)));
        let is_measured = |value: u64| field.merge != Merge::Min || value != field.merge.identity();
        Spread::of(&field.name, values.filter(|(_, value)| is_measured(*value)))
    };
    SiteImbalance {
        address: site.address,
        instruction: site.instruction.clone(),
        source: site.source.clone(),
        probe: kind.probe.to_string(),
        kind: kind.name.to_string(),
        fields: kind.fields.iter().enumerate().filter_map(field).filter(|spread| spread.max > 0).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::file::{Backend, Origin};
    use wavetap_profile::probes::branches::ScalarCounts;

    fn group(rank: u32, host: &str, parts: &[(u32, u64)]) -> GroupTotals {
        let part = |&(kernel, waves): &(u32, u64)| {
            let counters = vec![10 * waves, waves];
            GroupKernel { kernel, dispatches: 1, waves, work: None, counters }
        };
        let kernels = parts.iter().map(part).collect();
        GroupTotals { rank: Some(rank), hostname: Some(host.to_owned()), processes: 1, kernels }
    }

    #[test]
    fn ranks_without_a_dispatch_have_nothing_of_it_and_hosts_have_their_ranks() {
        let counts = ScalarCounts { executions: 0, taken: 0 };
        let site = SiteTotals { address: 0x10, instruction: "s_nop".to_owned(), source: None, counts: counts.into() };
        let kernel =
            |name: &str| KernelTotals { name: name.to_owned(), sites: vec![site.clone()], ..KernelTotals::default() };
        let profile = Profile {
            kernels: vec![kernel("a"), kernel("b")],
            by: vec![Dimension::Rank, Dimension::Host],
            groups: vec![
                group(0, "n1", &[(0, 4), (1, 9)]),
                group(1, "n1", &[(0, 8)]),
                group(2, "n0", &[(0, 6)]),
                group(2, "n1", &[(0, 2)]),
            ],
            ..Profile::new(Origin::Counters, Backend::Emulator)
        };
        let [ranks, hosts] = of(&profile).try_into().expect("two dimensions");
        assert_eq!((ranks.count, hosts.count), (3, 2));
        let waves = |imbalance: &Imbalance, kernel: usize| {
            let spread = imbalance.kernels[kernel].totals[1].clone();
            let Spread { what, min, min_at, mean, max, max_at, imbalance } = spread;
            assert_eq!(what, "waves");
            (min, min_at, mean, max, max_at, imbalance.expect("not all 0"))
        };
        assert_eq!(waves(&ranks, 0), (4, "0".to_owned(), 20.0 / 3.0, 8, "1".to_owned(), 1.2));
        assert_eq!(waves(&ranks, 1), (0, "1".to_owned(), 3.0, 9, "0".to_owned(), 3.0));
        assert_eq!(waves(&hosts, 0), (6, "n0".to_owned(), 10.0, 14, "n1".to_owned(), 1.4));
        let taken = &ranks.kernels[0].sites[0].fields[1];
        assert_eq!((taken.what.as_str(), taken.min, taken.max, taken.excess()), ("taken", 4, 8, 8.0 - 20.0 / 3.0));
    }
}
