//! The profile file: totals per site, and on request every wave's counters.
//!
//! JSON, so that other tools can read it without this library. The emulator's own trace is written in the same form
//! with another [`Origin`], which makes comparing the two a comparison of values. The file has a table of the kinds of
//! its sites ([`crate::schema`]), and sites name their kind in it.

mod groups;
pub(crate) mod json;

use serde::{Deserialize, Serialize};

use super::accesses::DispatchAccesses;
use super::bounds::OutOfBounds;
use super::host::HostActivity;
use super::kind_table::KindTable;
use super::launches::{LaunchShape, UncountedDispatches};
use super::map::{CounterMode, Refused, Resources, Source};
use super::schema::Counts;
use wavetap_base::error::{Error, Result, ResultExt};

pub use groups::{Dimension, GroupKernel, GroupTotals};

/// Schema of a profile file.
pub const SCHEMA: &str = "wavetap.profile/2";
/// Schema of the profile files before there were several probes. They are read, not written.
pub const SCHEMA_1: &str = "wavetap.profile/1";

/// Who counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Instrumented kernels, through the control block.
    Counters,
    /// The emulator's own trace.
    Trace,
    /// Nothing: the runtime recorded what was launched, of kernels that do not count.
    Launches,
}

/// What ran the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The built-in emulator.
    Emulator,
    /// A GPU.
    Gpu,
}

/// One site's totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteTotals {
    /// Original virtual address.
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// The counters.
    pub counts: Counts,
}

/// What tells the sites of a kernel apart: there may be several of different probes at one address.
pub type SiteKey<'a> = (u64, &'a str, &'a str);

impl SiteTotals {
    /// Address, probe and kind.
    #[must_use]
    pub fn key(&self) -> SiteKey<'_> {
        let kind = self.counts.kind();
        (self.address, &kind.probe, &kind.name)
    }

    /// Whether both are the same site, whatever was counted.
    #[must_use]
    pub fn is_same_site(&self, other: &SiteTotals) -> bool {
        self.address == other.address && self.counts.kind() == other.counts.kind()
    }
}

/// What the emulator measured beside: dynamic work of all dispatches of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Work {
    /// Wave-instructions executed.
    pub instructions: u64,
    /// Bytes that loads, stores and atomics moved to or from global memory.
    pub global_bytes: u64,
    /// The same for LDS.
    pub lds_bytes: u64,
}

impl Work {
    /// The sum, which is not known where one of the two is not; none if it exceeds 64 bits.
    #[allow(clippy::option_option, reason = "a sum that is not known is not one that is too large")]
    pub(crate) fn sum(a: Option<Work>, b: Option<Work>) -> Option<Option<Work>> {
        let (Some(a), Some(b)) = (a, b) else { return Some(None) };
        Some(Some(Work {
            instructions: a.instructions.checked_add(b.instructions)?,
            global_bytes: a.global_bytes.checked_add(b.global_bytes)?,
            lds_bytes: a.lds_bytes.checked_add(b.lds_bytes)?,
        }))
    }
}

/// One kernel's totals. `Site` is another type only while a file is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "KernelTotals"))]
pub struct KernelTotals<Site = SiteTotals> {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Processor.
    pub target: String,
    /// MD5 of the original code object.
    pub object: String,
    /// The ranges of the program in which it was dispatched ([`Profile::regions`]); none for all dispatches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Where the counters lived; none for a trace.
    pub mode: Option<CounterMode>,
    /// Dispatches seen.
    pub dispatches: u64,
    /// How they were launched, in order of first dispatch; empty where that was not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<LaunchShape>,
    /// Waves that ran.
    pub waves: u64,
    /// Waves whose counters are missing because the record buffer was full.
    pub dropped: u64,
    /// Waves that began and never reached an epilogue: their counters may be incomplete.
    pub unfinished: u64,
    /// Whether waves shared records although each was to have its own.
    pub shared_records: bool,
    /// Resources before the rewrite.
    pub before: Option<Resources>,
    /// Resources after it.
    pub after: Option<Resources>,
    /// Functions it may call whose branches are not counted.
    pub uncounted_callees: Vec<String>,
    /// Dynamic work as the emulator saw it.
    pub work: Option<Work>,
    /// Its sites of all probes, in the order of their counters in a record; those of a trace in order of
    /// [`SiteTotals::key`].
    #[serde(alias = "branches")]
    pub sites: Vec<Site>,
}

impl Default for KernelTotals {
    fn default() -> KernelTotals {
        KernelTotals {
            name: String::new(),
            demangled: String::new(),
            target: String::new(),
            object: String::new(),
            region: None,
            mode: None,
            dispatches: 0,
            launches: Vec::new(),
            waves: 0,
            dropped: 0,
            unfinished: 0,
            shared_records: false,
            before: None,
            after: None,
            uncounted_callees: Vec::new(),
            work: None,
            sites: Vec::new(),
        }
    }
}

/// Counters of one wave (`--per-wave`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaveCounts {
    /// Index into [`Profile::kernels`].
    pub kernel: u32,
    /// Dispatch ordinal; none where dispatches of the kernel overlapped, and it is not known which of them it was.
    pub dispatch: Option<u32>,
    /// The ranges of the program in which it was dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Wave index in the workgroup.
    pub wave: u32,
    /// Counters of the kernel's sites, in their order, each in record order.
    pub counters: Vec<u64>,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Who counted.
    pub origin: Origin,
    /// What ran the kernels.
    pub backend: Backend,
    /// Whether the run ended and every dispatch was counted that was to be; false in a profile left by a killed run.
    pub complete: bool,
    /// Whether the run ended; see [`Profile::has_ended`].
    pub ended: bool,
    /// Kernels that were dispatched, in order of first dispatch; in a sum of profiles in order of their mangled names.
    pub kernels: Vec<KernelTotals>,
    /// Of these, what was dispatched inside ranges of the program: a kernel for each combination of ranges, in order of
    /// first dispatch. What [`Profile::kernels`] has beyond them was dispatched outside of all ranges.
    pub regions: Vec<KernelTotals>,
    /// Kernels that could not be instrumented.
    pub refused: Vec<Refused>,
    /// Dispatches that were not counted, and why.
    pub uncounted: Vec<UncountedDispatches>,
    /// Processes whose counts these are.
    pub processes: u32,
    /// Their rank among those that one launcher has started (MPI, Slurm); none if it is not known or not the same.
    pub rank: Option<u32>,
    /// The name of the host that they ran on; none if it is not known or not the same. It is written of processes that
    /// have a rank.
    pub hostname: Option<String>,
    /// What [`Profile::groups`] keeps apart, in rising order; empty in a profile that was not merged by anything.
    pub by: Vec<Dimension>,
    /// The parts of [`Profile::kernels`] that are of one rank or host each, by rank, then by host.
    pub groups: Vec<GroupTotals>,
    /// Every wave's counters, when asked for.
    pub waves: Vec<WaveCounts>,
    /// What sampled workgroups have recorded of their accesses to memory, by dispatch.
    pub accesses: Vec<DispatchAccesses>,
    /// The first bad access of each site in each dispatch, where bounds were checked.
    pub out_of_bounds: Vec<OutOfBounds>,
    /// What the host had the device do, where that was recorded.
    pub host: HostActivity,
}

/// The processes of a profile that does not say how many.
pub fn one() -> u32 {
    1
}

/// Whether there was one process, which is not worth a line.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub fn is_one(processes: &u32) -> bool {
    *processes == 1
}

impl Profile {
    /// An empty profile.
    #[must_use]
    pub fn new(origin: Origin, backend: Backend) -> Profile {
        let (kernels, regions, refused, uncounted, waves, accesses, out_of_bounds, host) = Default::default();
        let processes = 1;
        Profile {
            origin,
            backend,
            complete: false,
            ended: false,
            kernels,
            regions,
            refused,
            uncounted,
            processes,
            rank: None,
            hostname: None,
            by: Vec::new(),
            groups: Vec::new(),
            waves,
            accesses,
            out_of_bounds,
            host,
        }
    }

    /// Whether the run ended. Profiles of versions that did not say so by itself are complete where it did.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended || self.complete
    }

    /// Marks the run as ended.
    pub fn end(&mut self) {
        self.set_ended(true);
    }

    /// Says whether the run ended.
    pub fn set_ended(&mut self, ended: bool) {
        (self.ended, self.complete) = (ended, ended);
        self.check_complete();
    }

    /// Sets [`Profile::complete`] to what the rest says.
    pub fn check_complete(&mut self) {
        self.complete = self.has_ended() && !self.uncounted.iter().any(|uncounted| uncounted.why.is_gap());
    }

    /// The file's contents.
    ///
    /// # Errors
    /// Unsupported if sites have different kinds of one name; internal if it cannot be serialised.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        json::write(self)
    }

    /// Reads a profile file of this or an earlier version.
    ///
    /// # Errors
    /// Malformed if it is not one, Unsupported if it is of an unknown version or has another kind of a known probe.
    pub fn from_json(json: &[u8]) -> Result<Profile> {
        json::read(json)
    }

    /// The kinds of its sites.
    ///
    /// # Errors
    /// Unsupported if two kinds of one name differ.
    pub fn kinds(&self) -> Result<KindTable> {
        let kernels = self.kernels.iter().chain(&self.regions);
        KindTable::of(kernels.flat_map(|kernel| &kernel.sites).map(|site| site.counts.kind()))
    }

    /// Adds the counters of another process of the same run. [`Merger`](crate::merge::Merger) adds up files.
    ///
    /// # Errors
    /// Unsupported if the two count differently (origin, backend, sites of the same kernel) or one has groups; Limit if
    /// a sum overflows.
    pub fn merge(&mut self, other: &Profile) -> Result<()> {
        if !self.by.is_empty() || !other.by.is_empty() {
            return Err(Error::unsupported("a profile with groups is not one of a process"));
        }
        if self.origin != other.origin || self.backend != other.backend {
            return Err(Error::unsupported("profiles of different origin or backend do not add up"));
        }
        let (ended, complete) = (self.has_ended() && other.has_ended(), self.complete && other.complete);
        (self.ended, self.complete) = (ended, complete);
        self.processes = self.processes.saturating_add(other.processes);
        self.rank = self.rank.filter(|rank| other.rank == Some(*rank));
        self.hostname = self.hostname.take().filter(|name| other.hostname.as_ref() == Some(name));
        self.host.merge(&other.host);
        let places = add_kernels(&mut self.kernels, &other.kernels)?;
        add_kernels(&mut self.regions, &other.regions)?;
        for refused in &other.refused {
            if !self.refused.contains(refused) {
                self.refused.push(refused.clone());
            }
        }
        for uncounted in &other.uncounted {
            uncounted.clone().add_to(&mut self.uncounted);
        }
        self.waves.extend(other.waves.iter().map(|wave| WaveCounts {
            kernel: places.get(wave.kernel as usize).copied().unwrap_or(wave.kernel),
            ..wave.clone()
        }));
        self.accesses.extend(other.accesses.iter().map(|accesses| DispatchAccesses {
            kernel: places.get(accesses.kernel as usize).copied().unwrap_or(accesses.kernel),
            ..accesses.clone()
        }));
        self.out_of_bounds.extend(other.out_of_bounds.iter().map(|bad| OutOfBounds {
            kernel: places.get(bad.kernel as usize).copied().unwrap_or(bad.kernel),
            ..bad.clone()
        }));
        Ok(())
    }
}

/// Adds totals to those of the same kernels in the same region; gives the place of each.
fn add_kernels(all: &mut Vec<KernelTotals>, others: &[KernelTotals]) -> Result<Vec<u32>> {
    let mut places = Vec::new();
    for kernel in others {
        let place = all.iter().position(|known| known.is_same_kernel(kernel) && known.region == kernel.region);
        places.push(place.unwrap_or(all.len()) as u32);
        match place {
            Some(place) => all[place].merge(kernel)?,
            None => all.push(kernel.clone()),
        }
    }
    Ok(places)
}

impl KernelTotals {
    /// A kernel in a region of which nothing was counted yet: what is the same for all dispatches.
    #[must_use]
    pub fn without_counts(&self, region: String) -> KernelTotals {
        let site = |site: &SiteTotals| SiteTotals { counts: Counts::zero(site.counts.kind()), ..site.clone() };
        KernelTotals {
            name: self.name.clone(),
            demangled: self.demangled.clone(),
            target: self.target.clone(),
            object: self.object.clone(),
            region: Some(region),
            mode: self.mode,
            before: self.before,
            after: self.after,
            uncounted_callees: self.uncounted_callees.clone(),
            sites: self.sites.iter().map(site).collect(),
            ..KernelTotals::default()
        }
    }

    /// Whether both are of one kernel, in whatever region.
    #[must_use]
    pub fn is_same_kernel(&self, other: &KernelTotals) -> bool {
        self.name == other.name && self.object == other.object && self.target == other.target
    }

    /// Adds the totals of the same kernel in another profile.
    ///
    /// # Errors
    /// Unsupported if the sites differ; Limit if a sum overflows.
    pub fn merge(&mut self, other: &KernelTotals) -> Result<()> {
        self.add_counts(other)?;
        // Where one does not say how its dispatches were launched, what the other says is not all.
        if self.launches.is_empty() || other.launches.is_empty() {
            self.launches.clear();
        } else {
            other.launches.iter().for_each(|launch| launch.add_to(&mut self.launches));
        }
        Ok(())
    }

    /// Adds all but how it was launched.
    pub(crate) fn add_counts(&mut self, other: &KernelTotals) -> Result<()> {
        if self.mode.is_none() && other.mode.is_none() {
            self.add_reached(other)?;
        } else {
            self.add_counted(other)?;
        }
        let too_large = || Error::limit(format!("kernel {}: a sum exceeds 64 bits", self.name));
        let sum = |a: u64, b: u64| a.checked_add(b).ok_or_else(too_large);
        let dispatches = sum(self.dispatches, other.dispatches)?;
        let waves = sum(self.waves, other.waves)?;
        let dropped = sum(self.dropped, other.dropped)?;
        let unfinished = sum(self.unfinished, other.unfinished)?;
        self.work = Work::sum(self.work, other.work).ok_or_else(too_large)?;
        (self.dispatches, self.waves, self.dropped, self.unfinished) = (dispatches, waves, dropped, unfinished);
        self.shared_records |= other.shared_records;
        Ok(())
    }

    /// Adds the sites of another trace: a trace has only those that were reached.
    fn add_reached(&mut self, other: &KernelTotals) -> Result<()> {
        other.sites.iter().try_for_each(|site| self.add_site(site))
    }

    /// Adds a site to those of a trace, which are in order of [`SiteTotals::key`].
    ///
    /// # Errors
    /// As [`Counts::merge`].
    pub fn add_site(&mut self, site: &SiteTotals) -> Result<()> {
        match self.sites.binary_search_by_key(&site.key(), SiteTotals::key) {
            Ok(at) => self.sites[at].counts.merge(&site.counts),
            Err(at) => {
                self.sites.insert(at, site.clone());
                Ok(())
            }
        }
    }

    /// Adds the counters of the same sites.
    fn add_counted(&mut self, other: &KernelTotals) -> Result<()> {
        let same = self.sites.len() == other.sites.len()
            && self.sites.iter().zip(&other.sites).all(|(a, b)| a.is_same_site(b));
        if !same {
            return Err(Error::unsupported(format!("kernel {}: the two profiles have different sites", self.name)));
        }
        for (a, b) in self.sites.iter_mut().zip(&other.sites) {
            a.counts.merge(&b.counts).within(|| format!("kernel {}, site {:#x}", self.name, a.address))?;
        }
        Ok(())
    }
}
