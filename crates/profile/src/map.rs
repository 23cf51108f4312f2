//! The site table: what a rewritten code object counts, and how its addresses map back.
//!
//! It is written as JSON to the map file and, compressed with zlib and with its addresses as distances, into the section [`super::control::MAP_SECTION`] of the rewritten object, so that a profile can be
//! read without the map file.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use super::hex;
use wavetap_base::error::{Error, Result};

/// Schema of the map of one code object.
pub const SCHEMA: &str = "wavetap.map/1";
/// A site table is never larger than this when unpacked: a damaged section must not exhaust memory.
const MAX_UNPACKED: u64 = 256 << 20;

/// How far a site table is usually compressed: room for less is made again and again, and copied.
const USUAL_RATIO: usize = 12;

/// How hard the section is compressed: the default level takes three times as long to make it a sixth smaller, which is less than a hundredth of an object.
const LEVEL: u32 = 3;

/// What sort of site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SiteKind {
    /// An instruction that forms a narrower EXEC. Counters: executions, agreements, lanes_before, lanes_after, empty.
    Exec,
    /// A uniform branch. Counters: executions, taken.
    Scalar,
}

impl SiteKind {
    /// How many counters such a site has.
    #[must_use]
    pub fn counters(self) -> u32 {
        match self {
            SiteKind::Exec => 5,
            SiteKind::Scalar => 2,
        }
    }
}

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// File as the line table names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

/// One counted instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Site {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// What it counts.
    pub kind: SiteKind,
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
    /// Waves a SIMD holds at most with these: with workgroups of the required size, or else of that of all sizes which gives most.
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

/// What the original object's metadata says of a kernel where the rewritten object's may say something else: a host tells it an application that asks what its kernel
/// needs, which then does the same work with counters as without.
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

/// One instrumented kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelMap {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Where its counters live.
    pub mode: CounterMode,
    /// Its sites, by address.
    pub sites: Vec<Site>,
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
    /// Original to rewritten addresses of all its instructions, by original address.
    pub addresses: Vec<AddressPair>,
}

/// Stands in [`Refused::name`] for all kernels of a code object that cannot be read.
pub const EVERY_KERNEL: &str = "*";

/// A kernel that was refused: it stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectMap {
    /// [`SCHEMA`].
    pub schema: String,
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
    /// The contents of the section: zlib over the map as JSON without its addresses, and behind that the addresses of each kernel: their number (32 bits); of the first
    /// pair the original and the rewritten address (64 bits each); of each other one how far both are from those before (signed, 32 bits each). All little-endian.
    ///
    /// # Errors
    /// Internal if it cannot be serialised.
    pub fn pack(&self) -> Result<Vec<u8>> {
        let mut contents = serde_json::to_vec(&WithoutAddresses::of(self)).map_err(|e| Error::internal(format!("site table: {e}")))?;
        for kernel in &self.kernels {
            pack_addresses(&kernel.addresses, &mut contents)?;
        }
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(LEVEL));
        encoder.write_all(&contents)?;
        Ok(encoder.finish()?)
    }

    /// Reads the section's contents.
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
        let mut json = serde_json::Deserializer::from_slice(&contents).into_iter::<ObjectMap>();
        let missing = || Error::malformed("site table: it is empty");
        let mut map = json.next().ok_or_else(missing)?.map_err(|e| Error::malformed(format!("site table: {e}")))?;
        let mut rest = contents.get(json.byte_offset()..).unwrap_or_default();
        if map.schema != SCHEMA {
            return Err(Error::unsupported(format!("site table schema {:?}, this program knows {SCHEMA:?}", map.schema)));
        }
        for kernel in &mut map.kernels {
            kernel.addresses = unpack_addresses(&mut rest)?;
        }
        if rest.is_empty() { Ok(map) } else { Err(Error::malformed(format!("site table: {} bytes too many", rest.len()))) }
    }
}

/// An [`ObjectMap`] that is written as if no kernel had addresses.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WithoutAddresses<'a> {
    schema: &'a str,
    target: &'a str,
    original: &'a str,
    stride: u32,
    kernels: Vec<KernelWithoutAddresses<'a>>,
    refused: &'a [Refused],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct KernelWithoutAddresses<'a> {
    name: &'a str,
    demangled: &'a str,
    mode: CounterMode,
    sites: &'a [Site],
    uncounted_callees: &'a [String],
    vector_registers: VectorSource,
    before: Resources,
    after: Resources,
    declared: Option<Declared>,
    addresses: &'a [AddressPair],
}

impl<'a> WithoutAddresses<'a> {
    fn of(map: &'a ObjectMap) -> WithoutAddresses<'a> {
        let ObjectMap { schema, target, original, stride, kernels, refused } = map;
        let kernels = kernels.iter().map(KernelWithoutAddresses::of).collect();
        WithoutAddresses { schema, target, original, stride: *stride, kernels, refused }
    }
}

impl<'a> KernelWithoutAddresses<'a> {
    fn of(kernel: &'a KernelMap) -> KernelWithoutAddresses<'a> {
        let KernelMap { name, demangled, mode, sites, uncounted_callees, vector_registers, before, after, declared, addresses: _ } = kernel;
        KernelWithoutAddresses {
            name,
            demangled,
            mode: *mode,
            sites,
            uncounted_callees,
            vector_registers: *vector_registers,
            before: *before,
            after: *after,
            declared: *declared,
            addresses: &[],
        }
    }
}

/// Bytes of a distance in [`pack_addresses`].
const DISTANCE: usize = size_of::<i32>();

/// Appends a kernel's addresses, as [`ObjectMap::pack`] says.
fn pack_addresses(pairs: &[AddressPair], to: &mut Vec<u8>) -> Result<()> {
    let far = |_| Error::internal("site table: code is more than 2 GiB apart");
    to.extend(u32::try_from(pairs.len()).map_err(far)?.to_le_bytes());
    let Some(first) = pairs.first() else { return Ok(()) };
    to.extend(first.original.to_le_bytes());
    to.extend(first.rewritten.to_le_bytes());
    let distance =
        |from: u64, address: u64| i32::try_from(address.wrapping_sub(from) as i64).map(|distance| u64::from(distance as u32)).map_err(far);
    to.reserve(2 * DISTANCE * pairs.len());
    for (before, pair) in pairs.iter().zip(&pairs[1..]) {
        let (original, rewritten) = (distance(before.original, pair.original)?, distance(before.rewritten, pair.rewritten)?);
        to.extend_from_slice(&(original | rewritten << (8 * DISTANCE)).to_le_bytes());
    }
    Ok(())
}

/// Reads what [`pack_addresses`] wrote from the front of `bytes`.
fn unpack_addresses(bytes: &mut &[u8]) -> Result<Vec<AddressPair>> {
    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
        let (front, rest) = bytes.split_at_checked(count).ok_or_else(|| Error::malformed("site table: it ends within addresses"))?;
        *bytes = rest;
        Ok(front)
    }
    fn number<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
        take(bytes, N).map(|bytes| std::array::from_fn(|index| bytes[index]))
    }
    let count = u32::from_le_bytes(number(bytes)?) as usize;
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut last = AddressPair { original: u64::from_le_bytes(number(bytes)?), rewritten: u64::from_le_bytes(number(bytes)?) };
    // Before there is room for so many they are known to be there.
    let distances = take(bytes, (count - 1).saturating_mul(2 * DISTANCE))?;
    let mut pairs = Vec::with_capacity(count);
    pairs.push(last);
    for pair in distances.chunks_exact(2 * DISTANCE) {
        let distance = |at: usize| i64::from(i32::from_le_bytes(std::array::from_fn(|index| pair[at + index])));
        last = AddressPair {
            original: last.original.wrapping_add_signed(distance(0)),
            rewritten: last.rewritten.wrapping_add_signed(distance(DISTANCE)),
        };
        pairs.push(last);
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_and_damaged_ones_do_not() {
        let pair = |original, rewritten| AddressPair { original, rewritten };
        let cases = [
            vec![],
            vec![pair(0x1000, 0x9000)],
            vec![pair(0x1000, 0x9000), pair(0x1004, 0x9040), pair(0x100c, 0x8f00), pair(0x7fff_0000, 0)],
        ];
        for pairs in cases {
            let mut bytes = Vec::new();
            pack_addresses(&pairs, &mut bytes).expect("near each other");
            let mut rest = bytes.as_slice();
            assert_eq!(unpack_addresses(&mut rest).expect("all there"), pairs);
            assert!(rest.is_empty());
            for length in 0..bytes.len() {
                assert!(unpack_addresses(&mut &bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
            }
        }
        assert!(pack_addresses(&[pair(0, 0), pair(1 << 32, 0)], &mut Vec::new()).is_err());
        assert!(unpack_addresses(&mut [0xff; 64].as_slice()).is_err(), "more than memory");
    }
}
