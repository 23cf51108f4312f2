//! The site table of a kernel: in which order the sites' counters lie in a record.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{ProbeKind, ProbeSite};
use crate::facts::ClonedFunction;
use wavetap_analysis::kernel::Stop;
use wavetap_profile::map::Site;
use wavetap_profile::record::{COUNTER, HEADER};

/// A site of one function, its probe, and the offset of its counters in a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedSite {
    pub(crate) probe: ProbeKind,
    pub(crate) site: ProbeSite,
    pub(crate) offset: u32,
}

/// The sites of a kernel and of the functions that are cloned for it, each with the offset of its counters in a record.
#[derive(Debug, Default)]
pub(crate) struct SiteTable {
    /// In the order of their counters.
    pub(crate) sites: Vec<Site>,
    /// By address, probe and the name of the kind.
    by_place: FxHashMap<(u64, ProbeKind, Cow<'static, str>), usize>,
    counters: u32,
}

impl SiteTable {
    /// Adds a function's sites. Functions may share code: an instruction has the same counters in all of them.
    pub(crate) fn add(&mut self, function: &ClonedFunction<'_>, probes: &[ProbeKind]) -> Result<Vec<PlacedSite>, Stop> {
        let mut found = Vec::new();
        for probe in probes {
            found.extend(probe.probe().sites(function)?.into_iter().map(|site| (*probe, site)));
        }
        // Those of several probes at one place are next to each other; of one they are in order already.
        found.sort_by_key(|(_, site)| site.inst);
        let body = function.body;
        let place = |(probe, site): (ProbeKind, ProbeSite)| {
            let address = body.address(site.inst);
            let index = *self.by_place.entry((address, probe, site.kind.name.clone())).or_insert_with(|| {
                let offset = HEADER + self.counters * COUNTER;
                self.counters += site.kind.counters();
                let instruction = wavetap_amdgpu::print(body.target(), body.inst(site.inst));
                self.sites.push(Site { address, instruction, kind: Arc::clone(site.kind), source: None, offset });
                self.sites.len() - 1
            });
            PlacedSite { probe, site, offset: self.sites[index].offset }
        };
        Ok(found.into_iter().map(place).collect())
    }

    /// Where each site's counters end, in bytes after the record's header.
    pub(crate) fn ends(&self) -> Vec<u32> {
        self.sites.iter().map(|site| site.offset - HEADER + site.kind.counters() * COUNTER).collect()
    }

    /// How many counters the sites have.
    pub(crate) fn counters(&self) -> u32 {
        self.counters
    }
}
