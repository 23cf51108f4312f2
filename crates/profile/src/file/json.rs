//! A profile as JSON: how sites and kinds are written, and the versions that are read.

use std::collections::BTreeMap;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use super::{
    Backend, Dimension, GroupTotals, KernelTotals, Origin, Profile, SCHEMA, SCHEMA_1, SiteTotals, WaveCounts, groups,
    is_one, one,
};
use crate::accesses::DispatchAccesses;
use crate::bounds::OutOfBounds;
use crate::hex;
use crate::host::HostActivity;
use crate::kind_table::KindTable;
use crate::launches::UncountedDispatches;
use crate::map::{Refused, Source};
use crate::probes;
use crate::schema::{Counts, KindSchema};
use wavetap_base::error::{Error, Result, ResultExt};

/// The fields of a profile but for those that only some versions have.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Profile"))]
struct Written<'a> {
    schema: &'a str,
    /// Who counted.
    origin: Origin,
    /// What ran the kernels.
    backend: Backend,
    /// Whether the run ended and every dispatch was counted that was to be; false in a profile left by a killed run.
    complete: bool,
    /// Whether the run ended.
    ended: bool,
    /// The kinds of sites, with the fields of their counts.
    kinds: KindTable,
    /// Kernels that were dispatched, in order of first dispatch; in a sum of profiles in order of their mangled names.
    kernels: &'a [KernelTotals],
    /// Of these, what was dispatched inside ranges of the program.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    regions: &'a [KernelTotals],
    /// Kernels that could not be instrumented.
    refused: &'a [Refused],
    /// Dispatches that were not counted, and why.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    uncounted: &'a [UncountedDispatches],
    /// Processes whose counts these are; 1 if absent.
    #[serde(skip_serializing_if = "is_one")]
    processes: u32,
    /// Their rank among those that one launcher has started (MPI, Slurm); absent if it is not known or not the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    /// The name of the host that they ran on, where they have ranks; absent if it is not known or not the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    hostname: Option<&'a str>,
    /// What `groups` keeps apart; absent in a profile that was not merged by anything.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    by: &'a [Dimension],
    /// The parts of the kernels' totals that are of one rank or host each, by rank, then by host.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [GroupTotals],
    /// Every wave's counters, when asked for.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    waves: &'a [WaveCounts],
    /// What sampled workgroups have recorded of their accesses to memory, by dispatch.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    accesses: &'a [DispatchAccesses],
    /// The first bad access of each site in each dispatch, where bounds were checked.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    out_of_bounds: &'a [OutOfBounds],
    /// What the host had the device do, where that was recorded.
    #[serde(skip_serializing_if = "HostActivity::is_empty")]
    host: &'a HostActivity,
}

#[cfg(feature = "schema")]
crate::described_as!(Profile, Written<'static>);
#[cfg(feature = "schema")]
crate::described_as!(SiteTotals, Site);

impl<'a> Written<'a> {
    fn of(profile: &'a Profile) -> Result<Written<'a>> {
        let kinds = profile.kinds()?;
        let Profile { origin, backend, complete, ended, processes, rank, hostname, by, groups, .. } = profile;
        let Profile { kernels, regions, refused, uncounted, waves, accesses, out_of_bounds, host, .. } = profile;
        let (origin, backend, complete, ended, processes) = (*origin, *backend, *complete, *ended, *processes);
        Ok(Written {
            schema: SCHEMA,
            origin,
            backend,
            complete,
            ended,
            kinds,
            kernels,
            regions,
            refused,
            uncounted,
            processes,
            rank: *rank,
            hostname: hostname.as_deref(),
            by,
            groups,
            waves,
            accesses,
            out_of_bounds,
            host,
        })
    }
}

/// A profile as it is read.
#[derive(Deserialize)]
struct Read<Site> {
    origin: Origin,
    backend: Backend,
    complete: bool,
    #[serde(default)]
    ended: bool,
    #[serde(default)]
    kinds: Vec<KindSchema>,
    kernels: Vec<KernelTotals<Site>>,
    #[serde(default = "Vec::new")]
    regions: Vec<KernelTotals<Site>>,
    refused: Vec<Refused>,
    #[serde(default)]
    uncounted: Vec<UncountedDispatches>,
    #[serde(default = "one")]
    processes: u32,
    #[serde(default)]
    rank: Option<u32>,
    #[serde(default)]
    hostname: Option<String>,
    #[serde(default)]
    by: Vec<Dimension>,
    #[serde(default)]
    groups: Vec<GroupTotals>,
    #[serde(default)]
    waves: Vec<WaveCounts>,
    #[serde(default)]
    accesses: Vec<DispatchAccesses>,
    #[serde(default)]
    out_of_bounds: Vec<OutOfBounds>,
    #[serde(default)]
    host: HostActivity,
}

impl<Site: AnySite> Read<Site> {
    fn profile(self) -> Result<Profile> {
        let kinds = KindTable::read(self.kinds)?;
        let resolve = |kernels: Vec<KernelTotals<Site>>| -> Result<Vec<KernelTotals>> {
            kernels.into_iter().map(|kernel| resolve(kernel, &kinds)).collect()
        };
        let (kernels, regions) = (resolve(self.kernels)?, resolve(self.regions)?);
        let Read {
            origin,
            backend,
            complete,
            ended,
            refused,
            uncounted,
            processes,
            rank,
            hostname,
            by,
            groups,
            waves,
            accesses,
            out_of_bounds,
            host,
            ..
        } = Read::<Site> { kinds: Vec::new(), kernels: Vec::new(), regions: Vec::new(), ..self };
        let profile = Profile {
            regions,
            origin,
            backend,
            complete,
            ended,
            kernels,
            refused,
            uncounted,
            processes,
            rank,
            hostname,
            by,
            groups,
            waves,
            accesses,
            out_of_bounds,
            host,
        };
        groups::check(&profile)?;
        Ok(profile)
    }
}

/// A site as a version of the file has it.
trait AnySite {
    fn resolve(self, kinds: &KindTable) -> Result<SiteTotals>;
}

/// One site's totals.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SiteTotals"))]
struct Site {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    address: u64,
    /// The instruction as printed.
    instruction: String,
    /// Source line.
    source: Option<Source>,
    /// The probe whose site it is.
    probe: String,
    /// The kind of the site, which is in `kinds`.
    kind: String,
    /// The values by field.
    counts: BTreeMap<String, u64>,
}

impl AnySite for Site {
    fn resolve(self, kinds: &KindTable) -> Result<SiteTotals> {
        let Site { address, instruction, source, probe, kind, counts } = self;
        let counts = kinds.expect(&probe, &kind).and_then(|kind| Counts::from_named(kind, counts));
        Ok(SiteTotals { address, instruction, source, counts: counts.within(|| format!("site {address:#x}"))? })
    }
}

/// A site of a file of version 1: of the one probe that there was, and the counters beside the rest.
#[derive(Deserialize)]
struct Site1 {
    #[serde(with = "hex")]
    address: u64,
    instruction: String,
    source: Option<Source>,
    kind: String,
    #[serde(flatten)]
    counts: BTreeMap<String, u64>,
}

impl AnySite for Site1 {
    fn resolve(self, _: &KindTable) -> Result<SiteTotals> {
        let Site1 { address, instruction, source, kind, counts } = self;
        let known = probes::find(probes::VERSION_1, &kind)
            .ok_or_else(|| Error::malformed(format!("{SCHEMA_1:?} has no kind {kind:?}")));
        let counts = known.and_then(|kind| Counts::from_named(kind, counts));
        Ok(SiteTotals { address, instruction, source, counts: counts.within(|| format!("site {address:#x}"))? })
    }
}

impl Serialize for SiteTotals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = self.counts.kind();
        let mut site = serializer.serialize_struct("SiteTotals", 6)?;
        site.serialize_field("address", &format_args!("{:#x}", self.address))?;
        site.serialize_field("instruction", &self.instruction)?;
        site.serialize_field("source", &self.source)?;
        site.serialize_field("probe", &kind.probe)?;
        site.serialize_field("kind", &kind.name)?;
        site.serialize_field("counts", &self.counts)?;
        site.end()
    }
}

/// A kernel's totals with its sites for use.
fn resolve<Site: AnySite>(kernel: KernelTotals<Site>, kinds: &KindTable) -> Result<KernelTotals> {
    let sites: Result<_> = kernel.sites.into_iter().map(|site| site.resolve(kinds)).collect();
    Ok(KernelTotals {
        sites: sites.within(|| format!("kernel {}", kernel.name))?,
        name: kernel.name,
        demangled: kernel.demangled,
        target: kernel.target,
        object: kernel.object,
        region: kernel.region,
        mode: kernel.mode,
        dispatches: kernel.dispatches,
        launches: kernel.launches,
        waves: kernel.waves,
        dropped: kernel.dropped,
        unfinished: kernel.unfinished,
        shared_records: kernel.shared_records,
        before: kernel.before,
        after: kernel.after,
        uncounted_callees: kernel.uncounted_callees,
        work: kernel.work,
    })
}

/// The file's contents.
pub(super) fn write(profile: &Profile) -> Result<Vec<u8>> {
    let mut json =
        serde_json::to_vec_pretty(&Written::of(profile)?).map_err(|e| Error::internal(format!("profile: {e}")))?;
    json.push(b'\n');
    Ok(json)
}

/// Reads a file.
pub(super) fn read(json: &[u8]) -> Result<Profile> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let head: Head = serde_json::from_slice(json).map_err(|e| Error::malformed(format!("not a profile: {e}")))?;
    match head.schema.as_str() {
        SCHEMA => parse::<Site>(json),
        SCHEMA_1 => parse::<Site1>(json),
        other => {
            Err(Error::unsupported(format!("profile schema {other:?}, this program knows {SCHEMA:?} and {SCHEMA_1:?}")))
        }
    }
}

fn parse<'d, Site: AnySite + Deserialize<'d>>(json: &'d [u8]) -> Result<Profile> {
    let read: Read<Site> = serde_json::from_slice(json).map_err(|e| Error::malformed(format!("profile: {e}")))?;
    read.profile().within(|| "profile".to_owned())
}

/// Appends a profile's JSON without line breaks, for a journal.
pub(crate) fn write_compact(profile: &Profile, out: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(out, &Written::of(profile)?).map_err(|e| Error::internal(format!("profile: {e}")))
}

/// Reads what [`write_compact`] wrote.
pub(crate) fn read_compact(json: &[u8]) -> Result<Profile> {
    parse::<Site>(json)
}

/// Appends the JSON of one kernel with the kinds of its sites, for a journal.
pub(crate) fn write_kernel(kernel: &KernelTotals, out: &mut Vec<u8>) -> Result<()> {
    #[derive(Serialize)]
    struct Written<'a> {
        kinds: KindTable,
        kernel: &'a KernelTotals,
    }
    let kinds = KindTable::of(kernel.sites.iter().map(|site| site.counts.kind()))?;
    serde_json::to_writer(out, &Written { kinds, kernel })
        .map_err(|e| Error::internal(format!("kernel {}: {e}", kernel.name)))
}

/// Reads what [`write_kernel`] wrote.
pub(crate) fn read_kernel(json: &[u8]) -> Result<KernelTotals> {
    #[derive(Deserialize)]
    struct Read {
        kinds: Vec<KindSchema>,
        kernel: KernelTotals<Site>,
    }
    let Read { kinds, kernel } = serde_json::from_slice(json).map_err(|e| Error::malformed(format!("kernel: {e}")))?;
    resolve(kernel, &KindTable::read(kinds)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::map::CounterMode;
    use crate::probes::branches::{BranchCounts, ExecCounts, ScalarCounts};
    use crate::schema::{FieldSchema, Merge, Unit};

    /// A file that version 1 wrote.
    const VERSION_1: &[u8] = include_bytes!("version1.json");

    fn site(address: u64, counts: Counts) -> SiteTotals {
        SiteTotals { address, instruction: "s_nop 0".to_owned(), source: None, counts }
    }

    #[test]
    fn a_file_of_version_1_is_read() {
        let profile = Profile::from_json(VERSION_1).unwrap();
        let [kernel] = profile.kernels.as_slice() else { panic!("one kernel") };
        let views: Vec<_> = kernel.sites.iter().map(|site| (site.address, BranchCounts::of(&site.counts))).collect();
        let exec = ExecCounts { executions: 32, agreements: 16, lanes_before: 2048, lanes_after: 1536, empty: 0 };
        let scalar = |executions, taken| Some(ScalarCounts { executions, taken }.into());
        let expected =
            [(0x1e28, Some(exec.into())), (0x1e30, scalar(32, 32)), (0x1e38, scalar(0, 0)), (0x1e64, scalar(32, 16))];
        assert_eq!(views, expected);
        assert_eq!((profile.has_ended(), profile.processes, profile.waves[0].counters.len()), (true, 1, 11));
        // Written anew it is of this version and the same profile.
        let json = profile.to_json().unwrap();
        assert!(String::from_utf8(json.clone()).unwrap().contains(SCHEMA));
        assert_eq!(Profile::from_json(&json).unwrap(), profile);
    }

    #[test]
    fn a_file_of_version_1_has_its_own_counters_only() {
        let text = String::from_utf8(VERSION_1.to_vec()).unwrap();
        let fault = |from: &str, to: &str| {
            assert!(text.contains(from));
            Profile::from_json(text.replace(from, to).as_bytes()).unwrap_err().to_string()
        };
        let missing = fault("\"taken\"", "\"not_taken\"");
        assert!(missing.contains("kind branches/scalar: field \"taken\" is missing"), "{missing}");
        assert!(fault("\"scalar\"", "\"indirect\"").contains("no kind \"indirect\""));
        assert!(
            fault("profile/1", "profile/3")
                .contains("this program knows \"wavetap.profile/2\" and \"wavetap.profile/1\"")
        );
    }

    #[test]
    fn sites_of_several_probes_lie_side_by_side() {
        const FIELDS: &[FieldSchema] = &[
            FieldSchema::new("executions", Unit::Executions, Merge::Sum),
            FieldSchema::new("shortest", Unit::Cycles, Merge::Min),
        ];
        let timed = Arc::new(KindSchema::new("unknown-to-this-program", "timed", FIELDS));
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        profile.kernels.push(KernelTotals {
            name: "k".to_owned(),
            mode: Some(CounterMode::Global),
            sites: vec![
                site(0x1000, ScalarCounts { executions: 3, taken: 1 }.into()),
                site(0x1000, Counts::new(&timed, vec![3, 40]).unwrap()),
            ],
            ..KernelTotals::default()
        });
        let json = profile.to_json().unwrap();
        assert_eq!(Profile::from_json(&json).unwrap(), profile);
        let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let expected = serde_json::json!({
            "address": "0x1000", "instruction": "s_nop 0", "source": null,
            "probe": "unknown-to-this-program", "kind": "timed", "counts": { "executions": 3, "shortest": 40 },
        });
        assert_eq!(value["kernels"][0]["sites"][1], expected);
        let expected = serde_json::json!({ "name": "shortest", "unit": "cycles", "merge": "min" });
        assert_eq!((&value["kinds"][1]["fields"][1], value["kinds"].as_array().map(Vec::len)), (&expected, Some(2)));
        // Merged by the rule of each field.
        let mut other = profile.clone();
        other.kernels[0].sites[1].counts = Counts::new(&timed, vec![5, 30]).unwrap();
        profile.merge(&other).unwrap();
        let values: Vec<_> = profile.kernels[0].sites.iter().map(|site| site.counts.values()).collect();
        assert_eq!(values, [[6, 2], [8, 30]]);
        other.kernels[0].sites[1].counts =
            Counts::zero(&Arc::new(KindSchema::new("unknown-to-this-program", "timed", &FIELDS[..1])));
        assert!(profile.merge(&other).unwrap_err().to_string().contains("different sites"));
        // A site names a kind of the table.
        let text = String::from_utf8(json).unwrap().replace("\"kind\": \"timed\"", "\"kind\": \"other\"");
        let fault = Profile::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(fault.contains("kind unknown-to-this-program/other is not in the table of kinds"), "{fault}");
    }
}
