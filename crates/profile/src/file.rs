//! The profile file: totals per site, and on request every wave's counters.
//!
//! JSON, so that other tools can read it without this library. The emulator's own trace is written in the same form with another [`Origin`], which makes comparing
//! the two a comparison of values.

use serde::{Deserialize, Serialize};

use super::hex;
use super::launches::{LaunchShape, UncountedDispatches};
use super::map::{CounterMode, Refused, Resources, SiteKind, Source};
use wavetap_base::error::{Error, Result};

/// Schema of a profile file.
pub const SCHEMA: &str = "wavetap.profile/1";

/// Who counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Instrumented kernels, through the control block.
    Counters,
    /// The emulator's own trace.
    Trace,
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

/// The counters of an EXEC-narrowing site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExecCounts {
    /// Arrivals with EXEC not 0.
    pub executions: u64,
    /// Arrivals at which all active lanes agreed.
    pub agreements: u64,
    /// Active lanes before, summed.
    pub lanes_before: u64,
    /// Active lanes after, summed.
    pub lanes_after: u64,
    /// Arrivals with EXEC = 0, which are in none of the others.
    pub empty: u64,
}

/// The counters of a uniform branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalarCounts {
    /// Arrivals.
    pub executions: u64,
    /// Arrivals at which it was taken.
    pub taken: u64,
}

/// Counters by kind of site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Counts {
    /// See [`SiteKind::Exec`].
    Exec(ExecCounts),
    /// See [`SiteKind::Scalar`].
    Scalar(ScalarCounts),
}

impl Counts {
    /// All zero.
    #[must_use]
    pub fn zero(kind: SiteKind) -> Counts {
        match kind {
            SiteKind::Exec => Counts::Exec(ExecCounts::default()),
            SiteKind::Scalar => Counts::Scalar(ScalarCounts::default()),
        }
    }

    /// The kind of site these belong to.
    #[must_use]
    pub fn kind(&self) -> SiteKind {
        match self {
            Counts::Exec(_) => SiteKind::Exec,
            Counts::Scalar(_) => SiteKind::Scalar,
        }
    }

    /// How often the site was reached (for an EXEC site: not counting empty arrivals).
    #[must_use]
    pub fn executions(&self) -> u64 {
        match self {
            Counts::Exec(c) => c.executions,
            Counts::Scalar(c) => c.executions,
        }
    }

    /// Adds counters in record order.
    ///
    /// # Errors
    /// Limit if a sum does not fit 64 bits; Malformed if there are not [`SiteKind::counters`] values.
    pub fn add(&mut self, values: &[u64]) -> Result<()> {
        let fields: Vec<&mut u64> = match self {
            Counts::Exec(c) => vec![&mut c.executions, &mut c.agreements, &mut c.lanes_before, &mut c.lanes_after, &mut c.empty],
            Counts::Scalar(c) => vec![&mut c.executions, &mut c.taken],
        };
        if fields.len() != values.len() {
            return Err(Error::malformed(format!("{} counters where a site has {}", values.len(), fields.len())));
        }
        for (field, value) in fields.into_iter().zip(values) {
            *field = field.checked_add(*value).ok_or_else(|| Error::limit("a counter exceeds 64 bits"))?;
        }
        Ok(())
    }

    /// The counters in record order.
    #[must_use]
    pub fn values(&self) -> Vec<u64> {
        match self {
            Counts::Exec(c) => vec![c.executions, c.agreements, c.lanes_before, c.lanes_after, c.empty],
            Counts::Scalar(c) => vec![c.executions, c.taken],
        }
    }
}

/// One site's totals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteTotals {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// The counters.
    #[serde(flatten)]
    pub counts: Counts,
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

/// One kernel's totals.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelTotals {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Processor.
    pub target: String,
    /// MD5 of the original code object.
    pub object: String,
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
    /// Whether waves shared records.
    pub shared_records: bool,
    /// Resources before the rewrite.
    pub before: Option<Resources>,
    /// Resources after it.
    pub after: Option<Resources>,
    /// Functions it may call whose branches are not counted.
    pub uncounted_callees: Vec<String>,
    /// Dynamic work as the emulator saw it.
    pub work: Option<Work>,
    /// Sites by address.
    pub branches: Vec<SiteTotals>,
}

/// Counters of one wave (`--per-wave`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaveCounts {
    /// Index into [`Profile::kernels`].
    pub kernel: u32,
    /// Dispatch ordinal.
    pub dispatch: u32,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Wave index in the workgroup.
    pub wave: u32,
    /// Counters of the kernel's sites, in their order, each in record order.
    pub counters: Vec<u64>,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    /// [`SCHEMA`].
    pub schema: String,
    /// Who counted.
    pub origin: Origin,
    /// What ran the kernels.
    pub backend: Backend,
    /// Whether the run ended and every dispatch was counted that was to be; false in a profile left by a killed run.
    pub complete: bool,
    /// Whether the run ended; see [`Profile::has_ended`].
    #[serde(default)]
    pub ended: bool,
    /// Kernels that were dispatched, in order of first dispatch.
    pub kernels: Vec<KernelTotals>,
    /// Kernels that could not be instrumented.
    pub refused: Vec<Refused>,
    /// Dispatches that were not counted, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<UncountedDispatches>,
    /// Processes whose counts these are.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub processes: u32,
    /// Every wave's counters, when asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<WaveCounts>,
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
        let (kernels, refused, uncounted, waves) = Default::default();
        let processes = 1;
        Profile { schema: SCHEMA.to_owned(), origin, backend, complete: false, ended: false, kernels, refused, uncounted, processes, waves }
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
    /// Internal if it cannot be serialised.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        let mut json = serde_json::to_vec_pretty(self).map_err(|e| Error::internal(format!("profile: {e}")))?;
        json.push(b'\n');
        Ok(json)
    }

    /// Reads a profile file.
    ///
    /// # Errors
    /// Malformed if it is not one, Unsupported if it is of another version.
    pub fn from_json(json: &[u8]) -> Result<Profile> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_slice(json).map_err(|e| Error::malformed(format!("not a profile: {e}")))?;
        if head.schema != SCHEMA {
            return Err(Error::unsupported(format!("profile schema {:?}, this program knows {SCHEMA:?}", head.schema)));
        }
        serde_json::from_slice(json).map_err(|e| Error::malformed(format!("profile: {e}")))
    }

    /// Adds another profile's counters (other ranks, nodes or runs of the same program).
    ///
    /// # Errors
    /// Unsupported if the two count differently (origin, backend, sites of the same kernel); Limit if a sum overflows.
    pub fn merge(&mut self, other: &Profile) -> Result<()> {
        if self.origin != other.origin || self.backend != other.backend {
            return Err(Error::unsupported("profiles of different origin or backend do not add up"));
        }
        let (ended, complete) = (self.has_ended() && other.has_ended(), self.complete && other.complete);
        (self.ended, self.complete) = (ended, complete);
        self.processes = self.processes.saturating_add(other.processes);
        let base = self.kernels.len() as u32;
        let mut places = Vec::new();
        for kernel in &other.kernels {
            let place = self.kernels.iter().position(|k| k.name == kernel.name && k.object == kernel.object && k.target == kernel.target);
            places.push(place.unwrap_or(self.kernels.len()) as u32);
            match place {
                Some(place) => self.kernels[place].merge(kernel)?,
                None => self.kernels.push(kernel.clone()),
            }
        }
        debug_assert!(self.kernels.len() as u32 >= base);
        for refused in &other.refused {
            if !self.refused.contains(refused) {
                self.refused.push(refused.clone());
            }
        }
        for uncounted in &other.uncounted {
            uncounted.clone().add_to(&mut self.uncounted);
        }
        self.waves.extend(
            other
                .waves
                .iter()
                .map(|wave| WaveCounts { kernel: places.get(wave.kernel as usize).copied().unwrap_or(wave.kernel), ..wave.clone() }),
        );
        Ok(())
    }
}

impl KernelTotals {
    /// Adds the totals of the same kernel in another profile.
    ///
    /// # Errors
    /// Unsupported if the sites differ; Limit if a sum overflows.
    pub fn merge(&mut self, other: &KernelTotals) -> Result<()> {
        if self.mode.is_none() && other.mode.is_none() {
            self.add_reached(other)?;
        } else {
            self.add_counted(other)?;
        }
        self.dispatches += other.dispatches;
        // Where one does not say how its dispatches were launched, what the other says is not all.
        if self.launches.is_empty() || other.launches.is_empty() {
            self.launches.clear();
        } else {
            other.launches.iter().for_each(|launch| launch.add_to(&mut self.launches));
        }
        self.waves += other.waves;
        self.dropped += other.dropped;
        self.unfinished += other.unfinished;
        self.shared_records |= other.shared_records;
        self.work = match (self.work, other.work) {
            (Some(a), Some(b)) => Some(Work {
                instructions: a.instructions + b.instructions,
                global_bytes: a.global_bytes + b.global_bytes,
                lds_bytes: a.lds_bytes + b.lds_bytes,
            }),
            _ => None,
        };
        Ok(())
    }

    /// Adds the sites of another trace: a trace has only those that were reached.
    fn add_reached(&mut self, other: &KernelTotals) -> Result<()> {
        for site in &other.branches {
            match self.branches.binary_search_by_key(&site.address, |mine| mine.address) {
                Ok(at) => self.branches[at].counts.add(&site.counts.values())?,
                Err(at) => self.branches.insert(at, site.clone()),
            }
        }
        Ok(())
    }

    /// Adds the counters of the same sites.
    fn add_counted(&mut self, other: &KernelTotals) -> Result<()> {
        let same = self.branches.len() == other.branches.len()
            && self.branches.iter().zip(&other.branches).all(|(a, b)| a.address == b.address && a.counts.kind() == b.counts.kind());
        if !same {
            return Err(Error::unsupported(format!("kernel {}: the two profiles have different sites", self.name)));
        }
        for (a, b) in self.branches.iter_mut().zip(&other.branches) {
            a.counts.add(&b.counts.values())?;
        }
        Ok(())
    }
}
