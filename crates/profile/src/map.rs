//! The site table: what a rewritten code object counts, and how its addresses map back.
//!
//! It is written as JSON to the map file and, compressed with zlib and with its addresses as distances, into the
//! section [`super::control::MAP_SECTION`] of the rewritten object, so that a profile can be read without the map file.

mod addresses;

use std::io::{Read, Write};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use addresses::{pack_addresses, unpack_addresses};

use super::kind_table::KindTable;
use super::placement::{CounterPlacement, MAX_BYTES, MAX_SLOTS, Placement};
use super::record::{COUNTER, HEADER, record_bytes};
use super::schema::KindSchema;
use super::{hex, probes};
use wavetap_base::error::{Error, Result, ResultExt};

/// Schema of the map of one code object.
pub const SCHEMA: &str = "wavetap.map/4";
/// Schema of the maps in which every wave claimed a record. They are read, not written.
pub const SCHEMA_3: &str = "wavetap.map/3";
/// Schema of the maps before counters were placed. They are read, not written.
pub const SCHEMA_2: &str = "wavetap.map/2";
/// Schema of the maps before there were several probes. They are read, not written.
pub const SCHEMA_1: &str = "wavetap.map/1";
/// A site table is never larger than this when unpacked: a damaged section must not exhaust memory.
const MAX_UNPACKED: u64 = 256 << 20;

/// How far a site table is usually compressed: room for less is made again and again, and copied.
const USUAL_RATIO: usize = 12;

/// How hard the section is compressed: the default level takes three times as long to make it a sixth smaller, which is
/// less than a hundredth of an object.
const LEVEL: u32 = 3;

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// File as the line table names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

/// One counted instruction. In JSON its kind is an index into the map's table of kinds; `Kind` is another type only
/// there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site<Kind = Arc<KindSchema>> {
    /// Original virtual address.
    #[serde(with = "hex")]
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// What it counts.
    pub kind: Kind,
    /// Source line, where the object has a line table.
    pub source: Option<Source>,
    /// Offset of the site's first counter in a record.
    pub offset: u32,
}

/// Where counters live while a kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CounterMode {
    /// Atomics into the wave's record.
    Global,
    /// A slice of LDS for each wave, flushed in the epilogue.
    Lds,
    /// Registers, flushed in the epilogue.
    Register,
}

impl CounterMode {
    /// The place in words.
    #[must_use]
    pub fn place(self) -> &'static str {
        match self {
            CounterMode::Global => "global memory",
            CounterMode::Lds => "LDS",
            CounterMode::Register => "registers",
        }
    }
}

/// Where the vector registers come from that inserted code uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VectorSource {
    /// No original code names them.
    #[default]
    Unused,
    /// Lanes of the original's are spilled to scalar registers around each probe.
    Lanes,
    /// The original's are spilled to AGPRs around each probe.
    Accumulation,
    /// The original's are moved to scratch memory around each probe.
    Scratch,
}

/// What a kernel needs of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resources {
    /// Scalar registers allocated.
    pub sgprs: u32,
    /// Vector registers allocated (AGPRs included where they share the allocation).
    pub vgprs: u32,
    /// Static LDS of a workgroup in bytes.
    pub lds_bytes: u32,
    /// Bytes of scratch memory of each work-item, as the descriptor says.
    #[serde(default)]
    pub scratch_bytes: u32,
    /// Waves a SIMD holds at most with these: with workgroups of the required size, or else of that of all sizes which
    /// gives most.
    pub waves_per_simd: u32,
    /// Bytes of code.
    pub code_bytes: u64,
    /// Lanes of a wave; 0 in maps of versions that did not say.
    #[serde(default)]
    pub wave_size: u32,
    /// Whether a workgroup has the two compute units of a workgroup processor.
    #[serde(default)]
    pub wgp_mode: bool,
}

/// What the original object's metadata says of a kernel where the rewritten object's may say something else: a host
/// tells it an application that asks what its kernel needs, which then does the same work with counters as without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Declared {
    /// `.sgpr_count`
    pub sgpr_count: u64,
    /// `.vgpr_count`
    pub vgpr_count: u64,
    /// `.agpr_count`; 0 where it does not say.
    pub agpr_count: u64,
    /// `.group_segment_fixed_size`
    pub group_segment_fixed_size: u64,
    /// `.private_segment_fixed_size`
    pub private_segment_fixed_size: u64,
    /// The kernel descriptor, with which the original still runs: its entry is counted from where the descriptor is.
    /// Maps that older versions wrote do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<DescriptorBytes>,
}

/// A kernel descriptor, in text as 128 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorBytes(pub [u8; 64]);

impl Serialize for DescriptorBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for DescriptorBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let byte = |at: usize| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..64).map(byte).collect();
        let bytes = bytes.filter(|_| text.len() == 128).and_then(|bytes| bytes.try_into().ok());
        bytes.map(DescriptorBytes).ok_or_else(|| serde::de::Error::custom("128 hexadecimal digits expected"))
    }
}

/// How the schema of a file describes a kernel descriptor.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for DescriptorBytes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DescriptorBytes".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{128}$" })
    }
}

/// An original instruction and where it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressPair {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub original: u64,
    /// Virtual address in the rewritten object.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub rewritten: u64,
}

/// What would have become of a kernel with its counters in one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Candidate {
    /// The place.
    pub mode: CounterMode,
    /// Cycles that inserted code takes of a wave: a prediction, from latency tables and how deep code is in loops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_cycles: Option<u64>,
    /// Waves that a SIMD holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waves_per_simd: Option<u32>,
    /// Why it cannot be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// One instrumented kernel.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KernelMap<Kind = Arc<KindSchema>> {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Where its counters live.
    pub mode: CounterMode,
    /// Of what that was chosen; maps that older versions wrote do not have it.
    #[serde(default)]
    pub candidates: Vec<Candidate>,
    /// Its sites of all probes, in the order of their counters.
    pub sites: Vec<Site<Kind>>,
    /// Functions it may call whose branches are not counted (names, `?` for an unknown one).
    pub uncounted_callees: Vec<String>,
    /// Where its probes' vector registers come from.
    #[serde(default)]
    pub vector_registers: VectorSource,
    /// Before the rewrite.
    pub before: Resources,
    /// After it.
    pub after: Resources,
    /// What the original's metadata says; maps that older versions wrote do not have it.
    #[serde(default)]
    pub declared: Option<Declared>,
    /// Which counters its records have, where the others follow from these.
    #[serde(default)]
    pub placement: Option<Placement>,
    /// The placement that its counters have in place of the one that was asked for, where that takes more work to find
    /// than an analysis may take for code of its length.
    #[serde(default)]
    pub placement_fallback: Option<CounterPlacement>,
    /// How many records a dispatch has where a wave adds to one that follows from where on the machine it runs, a power
    /// of two; none where each wave has its own.
    #[serde(default)]
    pub slots: Option<u32>,
    /// Whether waves of sampled workgroups alone have records, with slots for accesses after the counters
    /// ([`super::accesses`]). Maps that older versions wrote do not say it: where they have accesses, it is so.
    #[serde(default)]
    pub records_accesses: bool,
    /// Original to rewritten addresses of all its instructions, by original address.
    pub addresses: Vec<AddressPair>,
}

impl<Kind> KernelMap<Kind> {
    /// How many records a dispatch has, whatever the number of its waves; none where each wave has its own.
    #[must_use]
    pub fn shared_slots(&self) -> Option<u32> {
        match &self.placement {
            Some(placement) => placement.chooses_records().then_some(placement.slots),
            None => self.slots,
        }
    }
}

impl KernelMap {
    /// Size of a record in bytes.
    #[must_use]
    pub fn record_bytes(&self) -> u32 {
        let counters = || self.sites.iter().fold(0, |sum: u32, site| sum.saturating_add(site.kind.counters()));
        self.placement.as_ref().map_or_else(|| record_bytes(counters()), Placement::record_bytes)
    }

    /// Whether its accesses are compared with what is allocated ([`super::bounds`]).
    #[must_use]
    pub fn checks_bounds(&self) -> bool {
        self.sites.iter().any(|site| probes::bounds::kinds().iter().any(|kind| site.kind == **kind))
    }

    /// The index of the access whose counter is at this offset in the record.
    #[must_use]
    pub fn access_at(&self, offset: u32) -> Option<u32> {
        self.sites.iter().position(|site| site.offset == offset).map(|index| index as u32)
    }
}

/// Stands in [`Refused::name`] for all kernels of a code object that cannot be read.
pub const EVERY_KERNEL: &str = "*";

/// A kernel that was refused: it stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Processor.
    pub target: String,
    /// Short fixed name of the reason, `indirect_jump` for example.
    pub reason: String,
    /// One sentence with the place.
    pub detail: String,
    /// Original virtual address of the instruction, where the reason is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// The map of one rewritten code object. A record's kernel index is an index into `kernels`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "MapRead")]
pub struct ObjectMap {
    /// Target id of the bundle entry: `gfx90a:xnack-`.
    pub target: String,
    /// MD5 of the original code object, lower-case hex: joins a profile with the object it came from.
    pub original: String,
    /// Record stride in bytes.
    pub stride: u32,
    /// Instrumented kernels.
    pub kernels: Vec<KernelMap>,
    /// Kernels left as they were.
    pub refused: Vec<Refused>,
}

impl ObjectMap {
    /// The contents of the section: zlib over the map as JSON without its addresses, and after that the addresses of
    /// each kernel: their number (32 bits); of the first pair the original and the rewritten address (64 bits each); of
    /// each other one how far both are from those before (signed, 32 bits each). All little-endian.
    ///
    /// # Errors
    /// Internal if it cannot be serialised.
    pub fn pack(&self) -> Result<Vec<u8>> {
        let kinds = self.kinds()?;
        let mut contents = serde_json::to_vec(&MapWritten::of(self, &kinds, false)?)
            .map_err(|e| Error::internal(format!("site table: {e}")))?;
        for kernel in &self.kernels {
            pack_addresses(&kernel.addresses, &mut contents)?;
        }
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(LEVEL));
        encoder.write_all(&contents)?;
        Ok(encoder.finish()?)
    }

    /// The kinds of its sites.
    ///
    /// # Errors
    /// Unsupported if two kinds of one name differ.
    pub fn kinds(&self) -> Result<KindTable> {
        KindTable::of(self.kernels.iter().flat_map(|kernel| &kernel.sites).map(|site| &site.kind))
    }

    /// Reads the section's contents, of this or an earlier version.
    ///
    /// # Errors
    /// Malformed if it is not what [`ObjectMap::pack`] writes, Limit if it unpacks to more than 256 MiB.
    pub fn unpack(section: &[u8]) -> Result<ObjectMap> {
        let mut contents = Vec::with_capacity(section.len().saturating_mul(USUAL_RATIO).min(MAX_UNPACKED as usize));
        flate2::read::ZlibDecoder::new(section)
            .take(MAX_UNPACKED + 1)
            .read_to_end(&mut contents)
            .map_err(|e| Error::malformed(format!("site table does not decompress: {e}")))?;
        if contents.len() as u64 > MAX_UNPACKED {
            return Err(Error::limit("site table unpacks to more than 256 MiB"));
        }
        let mut json = serde_json::Deserializer::from_slice(&contents).into_iter::<MapRead>();
        let missing = || Error::malformed("site table: it is empty");
        let read = json.next().ok_or_else(missing)?.map_err(|e| Error::malformed(format!("site table: {e}")))?;
        let mut map = ObjectMap::try_from(read).within(|| "site table".to_owned())?;
        let mut rest = contents.get(json.byte_offset()..).unwrap_or_default();
        for kernel in &mut map.kernels {
            kernel.addresses = unpack_addresses(&mut rest)?;
        }
        if rest.is_empty() {
            Ok(map)
        } else {
            Err(Error::malformed(format!("site table: {} bytes too many", rest.len())))
        }
    }
}

/// An [`ObjectMap`] as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ObjectMap"))]
struct MapWritten<'a> {
    schema: &'a str,
    /// Target id of the bundle entry.
    target: &'a str,
    /// MD5 of the original code object: joins a profile with the object it came from.
    original: &'a str,
    /// Record stride in bytes.
    stride: u32,
    /// The kinds of sites, with the fields of their counters in a record.
    kinds: &'a KindTable,
    /// Instrumented kernels. A record's kernel index is an index into this list.
    kernels: Vec<KernelWritten<'a>>,
    /// Refused kernels.
    refused: &'a [Refused],
}

#[cfg(feature = "schema")]
crate::described_as!(ObjectMap, MapWritten<'static>);

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "KernelMap"))]
struct KernelWritten<'a> {
    /// Mangled name.
    name: &'a str,
    /// Demangled name.
    demangled: &'a str,
    /// Where its counters live.
    mode: CounterMode,
    /// Of what that was chosen.
    candidates: &'a [Candidate],
    /// Its sites of all probes, in the order of their counters.
    sites: Vec<SiteWritten<'a>>,
    /// Functions it may call whose branches are not counted (names, `?` for an unknown one).
    uncounted_callees: &'a [String],
    /// Where its probes' vector registers come from.
    vector_registers: VectorSource,
    /// Before the rewrite.
    before: Resources,
    /// After it.
    after: Resources,
    /// What the original's metadata says.
    declared: Option<Declared>,
    /// Which counters its records have, where the others follow from these.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<&'a Placement>,
    /// The placement that its counters have in place of the one that was asked for, where that takes more work to find
    /// than an analysis may take for code of its length.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement_fallback: Option<CounterPlacement>,
    /// How many records a dispatch has where a wave adds to one that follows from where on the machine it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    slots: Option<u32>,
    /// Whether waves of sampled workgroups alone have records, with slots for accesses after the counters.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    records_accesses: bool,
    /// Original to rewritten addresses of all its instructions, by original address.
    addresses: &'a [AddressPair],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Site"))]
struct SiteWritten<'a> {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    address: u64,
    /// The instruction as printed.
    instruction: &'a str,
    /// Index into `kinds`.
    kind: u32,
    /// Source line.
    source: Option<&'a Source>,
    /// Offset of the site's first counter in a record.
    offset: u32,
}

impl<'a> MapWritten<'a> {
    fn of(map: &'a ObjectMap, kinds: &'a KindTable, with_addresses: bool) -> Result<MapWritten<'a>> {
        let ObjectMap { target, original, stride, kernels, refused } = map;
        let kernels =
            kernels.iter().map(|kernel| KernelWritten::of(kernel, kinds, with_addresses)).collect::<Result<_>>()?;
        Ok(MapWritten { schema: SCHEMA, target, original, stride: *stride, kinds, kernels, refused })
    }
}

impl<'a> KernelWritten<'a> {
    fn of(kernel: &'a KernelMap, kinds: &KindTable, with_addresses: bool) -> Result<KernelWritten<'a>> {
        let KernelMap {
            name,
            demangled,
            mode,
            candidates,
            sites,
            uncounted_callees,
            vector_registers,
            before,
            after,
            declared,
            placement,
            placement_fallback,
            slots,
            records_accesses,
            addresses,
        } = kernel;
        let sites = sites.iter().map(|site| {
            let missing = || Error::internal(format!("site table: kind {} is not in the table of kinds", site.kind));
            let kind = kinds.index(&site.kind).ok_or_else(missing)?;
            let Site { address, instruction, kind: _, source, offset } = site;
            Ok(SiteWritten { address: *address, instruction, kind, source: source.as_ref(), offset: *offset })
        });
        Ok(KernelWritten {
            name,
            demangled,
            mode: *mode,
            candidates,
            sites: sites.collect::<Result<_>>()?,
            uncounted_callees,
            vector_registers: *vector_registers,
            before: *before,
            after: *after,
            declared: *declared,
            placement: placement.as_ref(),
            placement_fallback: *placement_fallback,
            slots: *slots,
            records_accesses: *records_accesses,
            addresses: if with_addresses { addresses } else { &[] },
        })
    }
}

impl Serialize for ObjectMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kinds = self.kinds().map_err(serde::ser::Error::custom)?;
        MapWritten::of(self, &kinds, true).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// An [`ObjectMap`] of any version as it is read.
#[derive(Deserialize)]
struct MapRead {
    schema: String,
    target: String,
    original: String,
    stride: u32,
    #[serde(default)]
    kinds: Vec<KindSchema>,
    kernels: Vec<KernelMap<KindRead>>,
    refused: Vec<Refused>,
}

/// A site's kind: since version 2 an index into the table.
#[derive(Deserialize)]
#[serde(untagged)]
enum KindRead {
    Index(u32),
    Name(String),
}

impl KindRead {
    fn resolve(self, version_1: bool, kinds: &KindTable) -> Result<Arc<KindSchema>> {
        match self {
            KindRead::Index(index) if !version_1 => kinds.at(index).cloned(),
            KindRead::Name(name) if version_1 => {
                let known = probes::find(probes::VERSION_1, &name);
                known.cloned().ok_or_else(|| Error::malformed(format!("{SCHEMA_1:?} has no kind {name:?}")))
            }
            KindRead::Index(index) => Err(Error::malformed(format!("kind {index}, expected a name"))),
            KindRead::Name(name) => {
                Err(Error::malformed(format!("kind {name:?}, expected an index into the table of kinds")))
            }
        }
    }
}

impl TryFrom<MapRead> for ObjectMap {
    type Error = Error;

    fn try_from(read: MapRead) -> Result<ObjectMap> {
        let MapRead { schema, target, original, stride, kinds, kernels, refused } = read;
        let known = [SCHEMA, SCHEMA_3, SCHEMA_2, SCHEMA_1];
        if !known.contains(&schema.as_str()) {
            return Err(Error::unsupported(format!("site table schema {schema:?}, this program knows {known:?}")));
        }
        let kinds = KindTable::read(kinds)?;
        let kernels =
            kernels.into_iter().map(|kernel| kernel.resolve(schema == SCHEMA_1, &kinds)).collect::<Result<_>>()?;
        Ok(ObjectMap { target, original, stride, kernels, refused })
    }
}

impl KernelMap<KindRead> {
    fn resolve(self, version_1: bool, kinds: &KindTable) -> Result<KernelMap> {
        let place = |address: u64| format!("kernel {}, site {address:#x}", self.name);
        let sites = self.sites.into_iter().map(|Site { address, instruction, kind, source, offset }| {
            let kind = kind.resolve(version_1, kinds).within(|| place(address))?;
            Ok(Site { address, instruction, kind, source, offset })
        });
        let sites: Vec<Site> = sites.collect::<Result<_>>()?;
        if let Some(placement) = &self.placement {
            let counters = sites.iter().map(|site| site.kind.counters()).sum();
            placement.check(counters).within(|| format!("kernel {}", self.name))?;
        }
        if let Some(slots) = self.slots {
            let counters = sites.iter().map(|site| u64::from(site.kind.counters())).sum();
            check_slots(slots, counters).within(|| format!("kernel {}", self.name))?;
        }
        let records_accesses = self.records_accesses || sites.iter().any(|site| site.kind == *probes::memory::ACCESS);
        Ok(KernelMap {
            sites,
            records_accesses,
            name: self.name,
            demangled: self.demangled,
            mode: self.mode,
            candidates: self.candidates,
            uncounted_callees: self.uncounted_callees,
            vector_registers: self.vector_registers,
            before: self.before,
            after: self.after,
            declared: self.declared,
            placement: self.placement,
            placement_fallback: self.placement_fallback,
            slots: self.slots,
            addresses: self.addresses,
        })
    }
}

/// Finds what no number of records may be, where each has so many counters.
fn check_slots(slots: u32, counters: u64) -> Result<()> {
    let bytes = u64::from(slots).saturating_mul(u64::from(HEADER) + counters.saturating_mul(COUNTER.into()));
    if !slots.is_power_of_two() || slots > MAX_SLOTS {
        return Err(Error::malformed(format!("{slots} records, expected a power of two up to {MAX_SLOTS}")));
    }
    if bytes > MAX_BYTES {
        return Err(Error::malformed(format!("records of {bytes} bytes in all, expected up to {MAX_BYTES}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::branches;

    /// A map that version 1 wrote.
    const VERSION_1: &str = include_str!("map/version1.json");

    #[test]
    fn a_map_of_version_1_is_read() {
        let map: ObjectMap = serde_json::from_str(VERSION_1).unwrap();
        let [kernel] = map.kernels.as_slice() else { panic!("one kernel") };
        let sites: Vec<_> = kernel.sites.iter().map(|site| (site.address, &site.kind, site.offset)).collect();
        let (exec, scalar) = (&*branches::EXEC, &*branches::SCALAR);
        assert_eq!(sites, [(0x1e28, exec, 32), (0x1e30, scalar, 72), (0x1e38, scalar, 88), (0x1e64, scalar, 104)]);
        // The section has it without addresses, which follow packed.
        let mut json: serde_json::Value = serde_json::from_str(VERSION_1).unwrap();
        json["kernels"][0]["addresses"] = serde_json::json!([]);
        let mut section = serde_json::to_vec(&json).unwrap();
        pack_addresses(&kernel.addresses, &mut section).unwrap();
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(LEVEL));
        encoder.write_all(&section).unwrap();
        assert_eq!(ObjectMap::unpack(&encoder.finish().unwrap()).unwrap(), map);
        // Written anew it is of this version and the same map.
        assert_eq!(ObjectMap::unpack(&map.pack().unwrap()).unwrap(), map);
        let json = serde_json::to_string(&map).unwrap();
        assert!(json.contains(SCHEMA) && json.contains("\"kind\":0") && json.contains("lanes_before"), "{json}");
        assert_eq!(serde_json::from_str::<ObjectMap>(&json).unwrap(), map);
    }

    #[test]
    fn kinds_of_sites_are_in_the_table() {
        let map: ObjectMap = serde_json::from_str(VERSION_1).unwrap();
        let json = serde_json::to_string(&map).unwrap();
        let fault = |from: &str, to: &str, in_json: &str| {
            assert!(in_json.contains(from), "{from}");
            serde_json::from_str::<ObjectMap>(&in_json.replace(from, to)).unwrap_err().to_string()
        };
        let found = fault("\"kind\":1", "\"kind\":2", &json);
        assert!(found.contains("kind 2, the table has 2 kinds, in kernel _Z9divergentPjS_, site 0x1e30"), "{found}");
        assert!(
            fault("\"kind\":1", "\"kind\":\"scalar\"", &json).contains("expected an index into the table of kinds")
        );
        assert!(fault("\"exec\"", "\"other\"", VERSION_1).contains("no kind \"other\""));
        assert!(
            fault("wavetap.map/1", "wavetap.map/5", VERSION_1)
                .contains("this program knows [\"wavetap.map/4\", \"wavetap.map/3\", \"wavetap.map/2\"")
        );
    }

    #[test]
    fn slots_are_read_and_damaged_ones_refused() {
        let mut map: ObjectMap = serde_json::from_str(VERSION_1).unwrap();
        assert_eq!((map.kernels[0].shared_slots(), map.kernels[0].record_bytes()), (None, map.stride));
        map.kernels[0].slots = Some(256);
        let json = serde_json::to_string(&map).unwrap();
        assert_eq!(serde_json::from_str::<ObjectMap>(&json).unwrap(), map);
        let fault = |slots: &str| {
            let json = json.replace("\"slots\":256", &format!("\"slots\":{slots}"));
            serde_json::from_str::<ObjectMap>(&json).unwrap_err().to_string()
        };
        assert!(fault("3").contains("3 records, expected a power of two up to 65536"));
        assert!(fault("0").contains("0 records, expected a power of two"));
        assert!(fault("131072").contains("131072 records"));
    }
}
