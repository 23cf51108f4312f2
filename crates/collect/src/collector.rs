//! Folding drained records into a profile.

use std::collections::HashMap;
use std::sync::Arc;

use wavetap_base::bytes;
use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_profile::accesses::DispatchAccesses;
use wavetap_profile::bounds::OutOfBounds;
use wavetap_profile::file::{Backend, KernelTotals, Origin, Profile, SiteTotals, WaveCounts, Work};
use wavetap_profile::launches::{LaunchShape, NotCounted, UncountedDispatches};
use wavetap_profile::map::{KernelMap, ObjectMap, Refused};
use wavetap_profile::record::{HEADER, Header};
use wavetap_profile::schema::{Counts, values_in_record};

use crate::rank;

/// A dispatch that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedDispatch {
    /// The kernel's index in the site table.
    pub kernel: u32,
    /// The ordinal that the host wrote into the control block.
    pub ordinal: u32,
    /// How it was launched, if that is to be recorded.
    pub shape: Option<LaunchShape>,
}

/// A region of the program, as the ranges that were open when it dispatched something, by its name in a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegionId(u32);

/// A kernel of an object, in a region if it was dispatched in one.
#[derive(Debug, Clone, Copy)]
pub struct CountedKernel<'m> {
    /// The object's site table.
    pub map: &'m ObjectMap,
    /// Its index in the site table.
    pub kernel: u32,
    /// The region.
    pub region: Option<RegionId>,
}

/// What the records of some dispatches of one object held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Folded {
    /// Waves that began with these records.
    pub waves: u64,
    /// Of these, waves that did not finish.
    pub unfinished: u64,
}

/// Folds records of any number of code objects into one profile.
#[derive(Debug)]
pub struct Collector {
    profile: Profile,
    per_wave: bool,
    /// By the original's digest and the kernel's name: each kernel of an object may have a site table of its own.
    places: HashMap<(String, String), usize>,
    /// Names of regions.
    regions: Vec<Arc<str>>,
    /// Places of kernels in regions, by the kernel's place and the region.
    region_places: HashMap<(usize, RegionId), usize>,
}

impl Collector {
    /// An empty collector; `per_wave` keeps every wave's counters besides the totals.
    #[must_use]
    pub fn new(backend: Backend, per_wave: bool) -> Collector {
        Collector {
            profile: rank::profile(Origin::Counters, backend),
            per_wave,
            places: HashMap::new(),
            regions: Vec::new(),
            region_places: HashMap::new(),
        }
    }

    /// An empty collector that collects in the same way.
    #[must_use]
    pub fn fresh(&self) -> Collector {
        // What is in flight has its regions by number.
        Collector { regions: self.regions.clone(), ..Collector::new(self.profile.backend, self.per_wave) }
    }

    /// The region of a name: that of the ranges that are open, outermost first, separated by
    /// [`SEPARATOR`](wavetap_profile::regions::SEPARATOR).
    pub fn region(&mut self, name: &str) -> RegionId {
        let known = self.regions.iter().position(|known| **known == *name);
        let at = known.unwrap_or_else(|| {
            self.regions.push(name.into());
            self.regions.len() - 1
        });
        RegionId(at as u32)
    }

    fn region_name(&self, region: Option<RegionId>) -> Option<String> {
        self.regions.get(region?.0 as usize).map(|name| name.to_string())
    }

    /// Whether every wave's counters are wanted.
    pub(crate) fn keeps_waves(&self) -> bool {
        self.per_wave
    }

    /// Makes an object's refusals part of the profile. Call it once for each object that was loaded.
    pub fn add_refused(&mut self, refused: &[Refused]) {
        for refused in refused {
            if !self.profile.refused.contains(refused) {
                self.profile.refused.push(refused.clone());
            }
        }
    }

    /// The profile's entry for kernel `index` of `map`, made on first use.
    ///
    /// # Errors
    /// Malformed if the object has no such kernel.
    pub fn kernel(&mut self, map: &ObjectMap, index: u32) -> Result<&mut KernelTotals> {
        let place = self.place(map, index)?;
        Ok(&mut self.profile.kernels[place])
    }

    /// The place of kernel `index` of `map` in the profile, which gets an entry on first use.
    ///
    /// # Errors
    /// Malformed if the object has no such kernel.
    pub fn place(&mut self, map: &ObjectMap, index: u32) -> Result<usize> {
        let kernel = kernel_of(map, index)?;
        let key = (map.original.clone(), kernel.name.clone());
        if let Some(place) = self.places.get(&key) {
            return Ok(*place);
        }
        let place = self.profile.kernels.len();
        let site = |site: &wavetap_profile::map::Site| SiteTotals {
            address: site.address,
            instruction: site.instruction.clone(),
            source: site.source.clone(),
            counts: Counts::zero(&site.kind),
        };
        self.profile.kernels.push(KernelTotals {
            name: kernel.name.clone(),
            demangled: kernel.demangled.clone(),
            target: map.target.clone(),
            object: map.original.clone(),
            mode: Some(kernel.mode),
            before: Some(kernel.before),
            after: Some(kernel.after),
            uncounted_callees: kernel.uncounted_callees.clone(),
            sites: kernel.sites.iter().map(site).collect(),
            ..KernelTotals::default()
        });
        self.places.insert(key, place);
        Ok(place)
    }

    /// The totals of a kernel, of all dispatches and of those in its region.
    fn totals(&mut self, of: CountedKernel<'_>) -> Result<impl Iterator<Item = &mut KernelTotals>> {
        let place = self.place(of.map, of.kernel)?;
        let of_region = match (of.region, self.region_name(of.region)) {
            (Some(region), Some(name)) => Some(*self.region_places.entry((place, region)).or_insert_with(|| {
                self.profile.regions.push(self.profile.kernels[place].without_counts(name));
                self.profile.regions.len() - 1
            })),
            _ => None,
        };
        let Profile { kernels, regions, .. } = &mut self.profile;
        Ok(kernels.get_mut(place).into_iter().chain(of_region.and_then(|at| regions.get_mut(at))))
    }

    /// Adds what the emulator measured beside of a dispatch of kernel `index` of `map`.
    ///
    /// # Errors
    /// Malformed if the object has no such kernel.
    pub fn add_work(&mut self, map: &ObjectMap, index: u32, region: Option<RegionId>, added: Work) -> Result<()> {
        for totals in self.totals(CountedKernel { map, kernel: index, region })? {
            let work = totals.work.get_or_insert(Work::default());
            work.instructions += added.instructions;
            work.global_bytes += added.global_bytes;
            work.lds_bytes += added.lds_bytes;
        }
        Ok(())
    }

    /// Adds dispatches of one kernel that have ended to its totals: the number, and how they were launched.
    ///
    /// # Errors
    /// Malformed if the object has no such kernel.
    pub fn add_dispatches(&mut self, of: CountedKernel<'_>, ended: &[EndedDispatch]) -> Result<()> {
        for totals in self.totals(of)? {
            for dispatch in ended.iter().filter(|dispatch| dispatch.kernel == of.kernel) {
                totals.dispatches += 1;
                if let Some(shape) = dispatch.shape {
                    shape.add_to(&mut totals.launches);
                }
            }
        }
        Ok(())
    }

    /// Adds one record to the totals of its kernel, which is that of the record's header. `dispatch` is the ordinal for
    /// the output of single waves where it is known; `shared` says that waves of several workgroups may have added to
    /// the record, which is then none of a single wave.
    ///
    /// # Errors
    /// Malformed if the record does not fit the site table; Limit if a counter exceeds 64 bits.
    pub fn fold(
        &mut self,
        of: CountedKernel<'_>,
        record: &[u8],
        dispatch: Option<u32>,
        shared: bool,
    ) -> Result<Folded> {
        let map = of.map;
        let header = Header::from_bytes(record)?;
        let kernel = kernel_of(map, header.kernel)?;
        let place = self.place(map, header.kernel)?;
        let mut values = Vec::with_capacity(kernel.sites.len());
        for site in &kernel.sites {
            values.push(
                values_in_record(&site.kind, record, site.offset).within(|| format!("site {:#x}", site.address))?,
            );
        }
        let unfinished = u64::from(header.began.saturating_sub(header.finished));
        for totals in self.totals(CountedKernel { kernel: header.kernel, ..of })? {
            for ((site, sum), values) in kernel.sites.iter().zip(&mut totals.sites).zip(&values) {
                sum.counts.add(values).within(|| format!("site {:#x}", site.address))?;
            }
            totals.waves += u64::from(header.began);
            totals.unfinished += unfinished;
            totals.shared_records |= shared;
        }
        if self.per_wave && !shared {
            self.profile.waves.push(WaveCounts {
                kernel: u32::try_from(place).map_err(|_| Error::limit("too many kernels in one profile"))?,
                dispatch,
                region: self.region_name(of.region),
                workgroup: header.workgroup,
                wave: header.wave,
                counters: values.into_iter().flatten().collect(),
            });
        }
        Ok(Folded { waves: header.began.into(), unfinished })
    }

    /// Adds what the sampled workgroups of a dispatch have recorded.
    pub fn add_accesses(&mut self, region: Option<RegionId>, accesses: DispatchAccesses) {
        let region = self.region_name(region);
        self.profile.accesses.push(DispatchAccesses { region, ..accesses });
    }

    /// Adds the first bad accesses of a dispatch's sites.
    pub fn add_out_of_bounds(&mut self, region: Option<RegionId>, found: Vec<OutOfBounds>) {
        let region = self.region_name(region);
        let of_region = found.into_iter().map(|bad| OutOfBounds { region: region.clone(), ..bad });
        self.profile.out_of_bounds.extend(of_region);
    }

    /// Records waves of a kernel that ran and found no record.
    ///
    /// # Errors
    /// Malformed if the object has no such kernel.
    pub fn add_dropped(&mut self, of: CountedKernel<'_>, waves: u64) -> Result<()> {
        for totals in self.totals(of)? {
            totals.waves += waves;
            totals.dropped += waves;
        }
        Ok(())
    }

    /// Records waves of a kernel that ran in workgroups that were not sampled.
    ///
    /// # Errors
    /// Malformed if the object has no such kernel.
    pub fn add_unsampled(&mut self, of: CountedKernel<'_>, waves: u64) -> Result<()> {
        self.totals(of)?.for_each(|totals| totals.waves += waves);
        Ok(())
    }

    /// Records waves of a kernel that are not counted, as they or others that they share a record with never ended.
    ///
    /// # Errors
    /// Malformed if the object has no such kernel.
    pub fn add_unfinished(&mut self, of: CountedKernel<'_>, waves: u64) -> Result<()> {
        for totals in self.totals(of)? {
            totals.waves += waves;
            totals.unfinished += waves;
        }
        Ok(())
    }

    /// Records dispatches of a kernel that ended, and whose records cannot be told from those of one that faulted.
    ///
    /// # Errors
    /// Malformed if the object has no such kernel.
    pub fn add_lost(&mut self, of: CountedKernel<'_>, dispatches: u64) -> Result<()> {
        let CountedKernel { map, kernel, region } = of;
        let kernel = kernel_of(map, kernel)?;
        if dispatches > 0 {
            self.not_counted(UncountedDispatches {
                name: kernel.name.clone(),
                demangled: kernel.demangled.clone(),
                target: map.target.clone(),
                object: map.original.clone(),
                region: self.region_name(region),
                why: NotCounted::Faulted,
                detail: "it overlapped with a dispatch of the same kernel that ended with a fault".to_owned(),
                dispatches,
            });
        }
        Ok(())
    }

    /// Records dispatches that are not counted.
    pub fn not_counted(&mut self, dispatches: UncountedDispatches) {
        dispatches.add_to(&mut self.profile.uncounted);
    }

    /// The profile so far, for a journal, which leaves it as it is.
    #[must_use]
    pub fn profile_mut(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// The profile so far.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Marks the run as ended and returns the profile.
    #[must_use]
    pub fn finish(mut self) -> Profile {
        self.profile.end();
        self.profile
    }
}

/// The header of a record, checked against the site table.
///
/// # Errors
/// Malformed if the record is too short or its kernel is not in the table.
pub fn header(map: &ObjectMap, record: &[u8]) -> Result<Header> {
    bytes::slice(record, 0, HEADER.into(), "record header")?;
    let header = Header::from_bytes(record)?;
    kernel_of(map, header.kernel)?;
    Ok(header)
}

fn kernel_of(map: &ObjectMap, index: u32) -> Result<&KernelMap> {
    let missing =
        || Error::malformed(format!("kernel index {index}, the site table has {} kernels", map.kernels.len()));
    map.kernels.get(index as usize).ok_or_else(missing)
}
