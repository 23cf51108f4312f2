//! The site table of a kernel: in which order the sites' counters lie in a record.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{FunctionProbe, Probe};
use crate::function::ClonedFunction;
use crate::site::{Counters, PlacedSite, ProbeSite};
use wavetap_profile::map::Site;
use wavetap_profile::record::{COUNTER, HEADER};
use wavetap_profile::schema::KindSchema;

/// The sites of a kernel and of the functions that are cloned for it, each with the offset of its counters in a record.
#[derive(Debug, Default)]
pub(crate) struct SiteTable {
    /// In the order of their counters.
    pub(crate) sites: Vec<Site>,
    /// By address, probe and the name of the kind.
    by_place: FxHashMap<(u64, &'static str, Cow<'static, str>), usize>,
    counters: u32,
}

impl SiteTable {
    /// Adds a function's sites. Functions may share code: an instruction has the same counters in all of them.
    pub(crate) fn add(
        &mut self,
        function: &ClonedFunction<'_>,
        probes: &[&'static dyn Probe],
        measured: &[Box<dyn FunctionProbe>],
    ) -> Vec<PlacedSite> {
        let mut found = Vec::new();
        for (index, probe) in measured.iter().enumerate() {
            found.extend(probe.sites().iter().map(|site| (index, *site)));
        }
        // Those of several probes at one place are next to each other; of one they are in order already.
        found.sort_by_key(|(_, site)| site.inst);
        let body = function.body;
        let place = |(probe, site): (usize, ProbeSite)| {
            let address = body.address(site.inst);
            let index =
                *self.by_place.entry((address, probes[probe].name(), site.kind.name.clone())).or_insert_with(|| {
                    let offset = HEADER + self.counters * COUNTER;
                    self.counters += site.kind.counters();
                    let instruction = wavetap_amdgpu::print(body.target(), body.inst(site.inst));
                    self.sites.push(Site { address, instruction, kind: Arc::clone(site.kind), source: None, offset });
                    self.sites.len() - 1
                });
            PlacedSite { probe, site, offset: self.sites[index].offset }
        };
        found.into_iter().map(place).collect()
    }

    /// The counters of the first site of a kind, for kinds that a kernel has one site of.
    pub(crate) fn of_kind(&self, kind: &KindSchema) -> Option<Counters> {
        let site = self.sites.iter().find(|site| *site.kind == *kind)?;
        Some(Counters { offset: site.offset, count: site.kind.counters() })
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
