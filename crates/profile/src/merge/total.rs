//! The sum of parsed profiles.

use std::collections::{BTreeMap, BTreeSet};

use super::builds::Builds;
use super::groups::Groups;
use crate::accesses::DispatchAccesses;
use crate::bounds::OutOfBounds;
use crate::file::{Backend, Dimension, KernelTotals, Origin, Profile, WaveCounts};
use crate::host::HostActivity;
use crate::launches::{UncountedDispatches, smallest};
use crate::map::Refused;
use wavetap_base::error::{Error, Result, ResultExt};

/// A fact of each profile that the sum has where all have the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Same<T> {
    /// No profile was added.
    #[default]
    Unset,
    /// All have this.
    All(T),
    /// Two differ, or one has none.
    Differs,
}

impl<T: PartialEq> Same<T> {
    pub(super) fn add(&mut self, fact: Option<T>) {
        let is_same = match (&*self, &fact) {
            (Same::Unset, Some(_)) => true,
            (Same::All(known), Some(fact)) => known == fact,
            _ => false,
        };
        match fact {
            Some(fact) if is_same => *self = Same::All(fact),
            _ => *self = Same::Differs,
        }
    }

    pub(super) fn get(self) -> Option<T> {
        match self {
            Same::All(fact) => Some(fact),
            Same::Unset | Same::Differs => None,
        }
    }
}

/// What is the same of a kernel in all files, in the order of the sum: name, target, digest, region.
type KernelKey = (String, String, String, Option<String>);

/// Kernels by what they are of.
#[derive(Debug, Default)]
struct Kernels {
    numbers: BTreeMap<KernelKey, u32>,
    /// The sum of each with the first file that has it.
    sums: Vec<(KernelTotals, String)>,
}

/// What makes dispatches alike that were not counted: all of [`UncountedDispatches`] but how many they are.
type UncountedKey = (String, String, String, Option<String>, crate::launches::NotCounted, String);

/// The sum so far.
#[derive(Debug)]
pub(super) struct Total {
    /// What is kept apart; none until the first profile says it.
    by: Option<Vec<Dimension>>,
    /// Whether the user said so.
    by_is_given: bool,
    different_builds: bool,
    /// Of the first profile, with the name of its file.
    head: Option<(Origin, Backend, String)>,
    complete: bool,
    ended: bool,
    processes: u32,
    rank: Same<u32>,
    hostname: Same<String>,
    groups: Groups,
    builds: Builds,
    kernels: Kernels,
    regions: Kernels,
    refused: BTreeSet<Refused>,
    uncounted: BTreeMap<UncountedKey, UncountedDispatches>,
    waves: Vec<WaveCounts>,
    accesses: Vec<DispatchAccesses>,
    out_of_bounds: Vec<OutOfBounds>,
    host: HostActivity,
}

impl Total {
    pub(super) fn new(by: Option<Vec<Dimension>>, different_builds: bool) -> Total {
        Total {
            by_is_given: by.is_some(),
            by,
            different_builds,
            head: None,
            complete: true,
            ended: true,
            processes: 0,
            rank: Same::Unset,
            hostname: Same::Unset,
            groups: Groups::default(),
            builds: Builds::default(),
            kernels: Kernels::default(),
            regions: Kernels::default(),
            refused: BTreeSet::new(),
            uncounted: BTreeMap::new(),
            waves: Vec::new(),
            accesses: Vec::new(),
            out_of_bounds: Vec::new(),
            host: HostActivity::default(),
        }
    }

    /// What is kept apart, as far as that is known.
    pub(super) fn by(&self) -> &[Dimension] {
        self.by.as_deref().unwrap_or_default()
    }

    /// Adds a profile.
    pub(super) fn add(&mut self, profile: &Profile, file: &str) -> Result<()> {
        let place = || file.to_owned();
        self.check_head(profile, file).within(place)?;
        self.ended &= profile.has_ended();
        self.complete &= profile.complete;
        self.processes = self.processes.saturating_add(profile.processes);
        self.rank.add(profile.rank);
        self.hostname.add(profile.hostname.clone());
        self.builds.add(&profile.kernels, file);
        let numbers = self.kernels.add(&profile.kernels, file)?;
        self.regions.add(&profile.regions, file)?;
        if let Some(by) = self.by.as_deref().filter(|by| !by.is_empty()) {
            self.groups.add(profile, by, &numbers).within(place)?;
        }
        self.refused.extend(profile.refused.iter().cloned());
        for uncounted in &profile.uncounted {
            self.add_uncounted(uncounted).within(place)?;
        }
        self.host.merge(&profile.host);
        let number = |kernel: u32| {
            let of = numbers.len();
            let number = numbers.get(kernel as usize).copied();
            number.ok_or_else(|| Error::malformed(format!("{file}: an entry of kernel {kernel}, there are {of}")))
        };
        for wave in &profile.waves {
            self.waves.push(WaveCounts { kernel: number(wave.kernel)?, ..wave.clone() });
        }
        for accesses in &profile.accesses {
            self.accesses.push(DispatchAccesses { kernel: number(accesses.kernel)?, ..accesses.clone() });
        }
        for bad in &profile.out_of_bounds {
            self.out_of_bounds.push(OutOfBounds { kernel: number(bad.kernel)?, ..bad.clone() });
        }
        Ok(())
    }

    /// Checks what all profiles have in common.
    fn check_head(&mut self, profile: &Profile, file: &str) -> Result<()> {
        let Profile { origin, backend, .. } = *profile;
        let (known_origin, known_backend, first) = self.head.get_or_insert_with(|| (origin, backend, file.to_owned()));
        if (*known_origin, *known_backend) != (origin, backend) {
            return Err(Error::unsupported(format!(
                "it is of {}, {first} is of {}: these do not add up",
                made_by(origin, backend),
                made_by(*known_origin, *known_backend)
            )));
        }
        let by = self.by.get_or_insert_with(|| profile.by.clone());
        if !self.by_is_given && *by != profile.by {
            return Err(Error::unsupported(format!(
                "it has {}, {first} has {}: --by says what to keep apart",
                kept_apart(&profile.by),
                kept_apart(by)
            )));
        }
        if let Some(lost) = by.iter().find(|dimension| !profile.by.is_empty() && !profile.by.contains(dimension)) {
            let (lost, has) = (lost.name(), kept_apart(&profile.by));
            return Err(Error::unsupported(format!("it has {has}: what each {lost} has of them is not known")));
        }
        if origin == Origin::Trace && !by.is_empty() {
            return Err(Error::unsupported(format!(
                "it is a trace, which has no parts by {}; profiles of counters and launches have",
                by[0].name()
            )));
        }
        Ok(())
    }

    fn add_uncounted(&mut self, added: &UncountedDispatches) -> Result<()> {
        let UncountedDispatches { name, demangled, target, object, region, why, detail, dispatches } = added;
        let (name, target, object, region) = (name.clone(), target.clone(), object.clone(), region.clone());
        let key = (name, target, object, region, *why, detail.clone());
        match self.uncounted.get_mut(&key) {
            Some(known) => {
                known.dispatches = known
                    .dispatches
                    .checked_add(*dispatches)
                    .ok_or_else(|| Error::limit(format!("kernel {}: a sum exceeds 64 bits", known.name)))?;
                if *demangled < known.demangled {
                    known.demangled.clone_from(demangled);
                }
            }
            None => {
                self.uncounted.insert(key, added.clone());
            }
        }
        Ok(())
    }

    /// The sum as a profile.
    pub(super) fn finish(self) -> Result<Profile> {
        if !self.different_builds {
            self.builds.check()?;
        }
        let (origin, backend, _) =
            self.head.ok_or_else(|| Error::internal("a sum of profiles without any that was added"))?;
        let (kernels, index) = self.kernels.finish();
        let place = |kernel: u32| index[kernel as usize];
        let mut waves = self.waves;
        waves.iter_mut().for_each(|wave| wave.kernel = place(wave.kernel));
        waves.sort_unstable();
        let mut accesses = self.accesses;
        accesses.iter_mut().for_each(|accesses| accesses.kernel = place(accesses.kernel));
        accesses.sort_unstable();
        let mut out_of_bounds = self.out_of_bounds;
        out_of_bounds.iter_mut().for_each(|bad| bad.kernel = place(bad.kernel));
        out_of_bounds.sort_unstable();
        Ok(Profile {
            complete: self.complete,
            ended: self.ended,
            kernels,
            regions: self.regions.finish().0,
            refused: self.refused.into_iter().collect(),
            uncounted: self.uncounted.into_values().collect(),
            processes: self.processes,
            rank: self.rank.get(),
            hostname: self.hostname.get(),
            groups: self.groups.finish(&index),
            by: self.by.unwrap_or_default(),
            waves,
            accesses,
            out_of_bounds,
            host: self.host,
            ..Profile::new(origin, backend)
        })
    }
}

impl Kernels {
    /// Adds kernels, and gives the number of each.
    fn add(&mut self, kernels: &[KernelTotals], file: &str) -> Result<Vec<u32>> {
        kernels.iter().map(|kernel| self.add_kernel(kernel, file)).collect()
    }

    fn add_kernel(&mut self, kernel: &KernelTotals, file: &str) -> Result<u32> {
        let KernelTotals { name, target, object, region, .. } = kernel;
        let too_large = || Error::limit(format!("{file}: kernel {name}: a sum exceeds 64 bits"));
        let key = (name.clone(), target.clone(), object.clone(), region.clone());
        let next = self.sums.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        let Some((sum, first)) = self.sums.get_mut(number as usize) else {
            let launches = smallest(&[&kernel.launches]).ok_or_else(too_large)?;
            self.sums.push((KernelTotals { launches, ..kernel.clone() }, file.to_owned()));
            return Ok(number);
        };
        if let Some(difference) = difference(sum, kernel) {
            return Err(Error::unsupported(format!(
                "{file}: kernel {name} ({target}): {difference} in {first}: they do not add up"
            )));
        }
        let is_known = !sum.launches.is_empty() && !kernel.launches.is_empty();
        let launches = if is_known { smallest(&[&sum.launches, &kernel.launches]) } else { Some(Vec::new()) };
        sum.launches = launches.ok_or_else(too_large)?;
        sum.add_counts(kernel).within(|| file.to_owned())?;
        sum.before = sum.before.or(kernel.before);
        sum.after = sum.after.or(kernel.after);
        // The text of what is the same may be of different versions of this program.
        if kernel.demangled < sum.demangled {
            sum.demangled.clone_from(&kernel.demangled);
        }
        if sum.mode.is_some() {
            for (known, site) in sum.sites.iter_mut().zip(&kernel.sites) {
                if (&site.instruction, &site.source) < (&known.instruction, &known.source) {
                    known.instruction.clone_from(&site.instruction);
                    known.source.clone_from(&site.source);
                }
            }
        }
        Ok(number)
    }

    /// The kernels in the order of what they are of, and the place of each number.
    fn finish(self) -> (Vec<KernelTotals>, Vec<u32>) {
        let mut places = vec![0; self.sums.len()];
        let mut sums: Vec<Option<KernelTotals>> = self.sums.into_iter().map(|(sum, _)| Some(sum)).collect();
        let mut kernels = Vec::with_capacity(sums.len());
        for number in self.numbers.into_values() {
            places[number as usize] = kernels.len() as u32;
            kernels.extend(sums[number as usize].take());
        }
        (kernels, places)
    }
}

/// How two kernels of the same code differ so that their counts do not add up, as "… here, not …".
fn difference(known: &KernelTotals, added: &KernelTotals) -> Option<String> {
    let mode = |kernel: &KernelTotals| kernel.mode.map_or("nowhere", crate::map::CounterMode::place);
    if known.mode != added.mode {
        return Some(format!("counters are in {}, not in {} as", mode(added), mode(known)));
    }
    if added.mode.is_some() {
        let probes = |kernel: &KernelTotals| -> BTreeSet<String> {
            let kinds = kernel.sites.iter().map(|site| site.counts.kind().to_string());
            kinds.map(|kind| kind.split('/').next().unwrap_or_default().to_owned()).collect()
        };
        let (of_known, of_added) = (probes(known), probes(added));
        if of_known != of_added && !of_known.is_empty() && !of_added.is_empty() {
            let names = |probes: BTreeSet<String>| probes.into_iter().collect::<Vec<_>>().join(", ");
            return Some(format!("it has counts of other probes: {}, not {} as", names(of_added), names(of_known)));
        }
        let sites = known.sites.iter().zip(&added.sites);
        if let Some((known, added)) = sites.into_iter().find(|(known, added)| !known.is_same_site(added)) {
            let of = |site: &crate::file::SiteTotals| format!("{:#x} of {}", site.address, site.counts.kind());
            return Some(format!("it has a site at {}, not at {} as", of(added), of(known)));
        }
        if known.sites.len() != added.sites.len() {
            return Some(format!("it has {} sites, not {} as", added.sites.len(), known.sites.len()));
        }
    }
    let differ = |a: Option<crate::map::Resources>, b: Option<crate::map::Resources>| {
        a.zip(b).is_some_and(|(known, added)| known != added)
    };
    if differ(known.before, added.before) || differ(known.after, added.after) {
        return Some("registers, LDS or code size are not as".to_owned());
    }
    (known.uncounted_callees != added.uncounted_callees)
        .then(|| "functions that are not counted are not those".to_owned())
}

/// What a profile is of, in words.
fn made_by(origin: Origin, backend: Backend) -> String {
    let what = match origin {
        Origin::Counters => "counters",
        Origin::Trace => "the trace",
        Origin::Launches => "launches",
    };
    let whose = match backend {
        Backend::Emulator => "the emulator",
        Backend::Gpu => "a GPU",
    };
    format!("{what} on {whose}")
}

/// What a profile keeps apart, in words.
fn kept_apart(by: &[Dimension]) -> String {
    match by {
        [] => "no parts".to_owned(),
        by => format!("parts by {}", by.iter().map(|dimension| dimension.name()).collect::<Vec<_>>().join(" and ")),
    }
}
