//! Folding drained records into a profile: the host's half of the protocol.
//!
//! A host (the stand-in runtime, the HSA tool) reads the control block and the used part of the record buffer back after a dispatch and hands both to
//! [`Collector::drain`].

use std::collections::HashMap;

use super::control::{Control, FLAG_SHARED};
use super::file::{Backend, KernelTotals, Origin, Profile, SiteTotals, WaveCounts};
use super::launches::{LaunchShape, UncountedDispatches};
use super::map::{KernelMap, ObjectMap, Refused};
use super::record::{HEADER, Header};
use super::schema::{Counts, values_in_record};
use wavetap_base::bytes;
use wavetap_base::error::{Error, Result, ResultExt};

/// Folds records of any number of code objects into one profile.
#[derive(Debug)]
pub struct Collector {
    profile: Profile,
    per_wave: bool,
    places: HashMap<(String, u32), usize>,
}

impl Collector {
    /// An empty collector; `per_wave` keeps every wave's counters besides the totals.
    #[must_use]
    pub fn new(backend: Backend, per_wave: bool) -> Collector {
        Collector { profile: Profile::new(Origin::Counters, backend), per_wave, places: HashMap::new() }
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

    fn place(&mut self, map: &ObjectMap, index: u32) -> Result<usize> {
        let key = (map.original.clone(), index);
        if let Some(place) = self.places.get(&key) {
            return Ok(*place);
        }
        let kernel = kernel_of(map, index)?;
        let place = self.profile.kernels.len();
        self.profile.kernels.push(KernelTotals {
            name: kernel.name.clone(),
            demangled: kernel.demangled.clone(),
            target: map.target.clone(),
            object: map.original.clone(),
            mode: Some(kernel.mode),
            dispatches: 0,
            launches: Vec::new(),
            waves: 0,
            dropped: 0,
            unfinished: 0,
            shared_records: false,
            before: Some(kernel.before),
            after: Some(kernel.after),
            uncounted_callees: kernel.uncounted_callees.clone(),
            work: None,
            sites: kernel
                .sites
                .iter()
                .map(|site| SiteTotals {
                    address: site.address,
                    instruction: site.instruction.clone(),
                    source: site.source.clone(),
                    counts: Counts::zero(&site.kind),
                })
                .collect(),
        });
        self.places.insert(key, place);
        Ok(place)
    }

    /// Folds what one dispatch of kernel `index` left: the control block as read back, and the buffer's first `min(head, capacity)` records.
    ///
    /// # Errors
    /// Malformed if block, records and site table do not fit one another.
    pub fn drain(&mut self, map: &ObjectMap, index: u32, control: &Control, buffer: &[u8]) -> Result<()> {
        if control.stride != map.stride || control.stride < HEADER {
            return Err(Error::malformed(format!("record stride {} where the site table says {}", control.stride, map.stride)));
        }
        let shared = control.flags & FLAG_SHARED != 0 && control.head > control.capacity;
        let used = u64::from(control.head.min(control.capacity));
        let place = self.place(map, index)?;
        let totals = &mut self.profile.kernels[place];
        totals.dispatches += 1;
        totals.waves += u64::from(control.head);
        totals.dropped += u64::from(control.dropped);
        totals.shared_records |= shared;
        for number in 0..used {
            let record = bytes::slice(buffer, number * u64::from(control.stride), control.stride.into(), "record")
                .within(|| format!("record {number}"))?;
            self.fold(map, index, place, record, shared).within(|| format!("record {number}"))?;
        }
        Ok(())
    }

    fn fold(&mut self, map: &ObjectMap, index: u32, place: usize, record: &[u8], shared: bool) -> Result<()> {
        let header = Header::from_bytes(record)?;
        if header.kernel != index {
            return Err(Error::malformed(format!("it belongs to kernel {} of the object, the dispatch ran kernel {index}", header.kernel)));
        }
        let totals = &mut self.profile.kernels[place];
        totals.unfinished += u64::from(header.began.saturating_sub(header.finished));
        let mut all = Vec::new();
        for (site, sum) in kernel_of(map, index)?.sites.iter().zip(&mut totals.sites) {
            let values = values_in_record(&site.kind, record, site.offset).within(|| format!("site {:#x}", site.address))?;
            sum.counts.add(&values)?;
            all.extend(values);
        }
        if self.per_wave && !shared {
            self.profile.waves.push(WaveCounts {
                kernel: place as u32,
                dispatch: header.dispatch,
                workgroup: header.workgroup,
                wave: header.wave,
                counters: all,
            });
        }
        Ok(())
    }

    /// Records how a dispatch of kernel `index` was launched.
    ///
    /// # Errors
    /// Malformed if the object has no such kernel.
    pub fn launched(&mut self, map: &ObjectMap, index: u32, shape: LaunchShape) -> Result<()> {
        shape.add_to(&mut self.kernel(map, index)?.launches);
        Ok(())
    }

    /// Records dispatches that are not counted.
    pub fn not_counted(&mut self, dispatches: UncountedDispatches) {
        dispatches.add_to(&mut self.profile.uncounted);
    }

    /// The profile so far and the place of kernel `index` of `map` in it, for a journal.
    ///
    /// # Errors
    /// Malformed if the object has no such kernel.
    pub fn dispatched(&mut self, map: &ObjectMap, index: u32) -> Result<(&mut Profile, usize)> {
        let place = self.place(map, index)?;
        Ok((&mut self.profile, place))
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

    /// Marks the run as ended and gives the profile.
    #[must_use]
    pub fn finish(mut self) -> Profile {
        self.profile.end();
        self.profile
    }
}

fn kernel_of(map: &ObjectMap, index: u32) -> Result<&KernelMap> {
    map.kernels
        .get(index as usize)
        .ok_or_else(|| Error::malformed(format!("kernel index {index}, the site table has {} kernels", map.kernels.len())))
}
