//! The site table: what a rewritten code object counts, and how its addresses map back.
//!
//! It is written as JSON to the map file and, compressed with zlib, into the section [`super::control::MAP_SECTION`] of the rewritten object, so that a profile can be
//! read without the map file.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use super::hex;
use crate::error::{Error, Result};

/// Schema of the map of one code object.
pub const SCHEMA: &str = "wavetap.map/1";
/// A site table is never larger than this when unpacked: a damaged section must not exhaust memory.
const MAX_UNPACKED: u64 = 256 << 20;

/// What sort of site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteKind {
    /// An instruction that forms a narrower EXEC. Counters: executions, agreements, lanes_before, lanes_after, empty.
    Exec,
    /// A scalar branch. Counters: executions, taken.
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
pub struct Source {
    /// File as the line table names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

/// One counted instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Original virtual address.
    #[serde(with = "hex")]
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
#[serde(rename_all = "snake_case")]
pub enum CounterMode {
    /// Atomics into the wave's record.
    Global,
    /// A slice of LDS for each wave, flushed in the epilogue.
    Lds,
    /// Registers, flushed in the epilogue.
    Register,
}

/// What a kernel needs of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Scalar registers allocated.
    pub sgprs: u32,
    /// Vector registers allocated (accumulation registers included where they share the allocation).
    pub vgprs: u32,
    /// Static LDS of a workgroup in bytes.
    pub lds_bytes: u32,
    /// Waves a SIMD holds at most with these.
    pub waves_per_simd: u32,
    /// Bytes of code.
    pub code_bytes: u64,
}

/// An original instruction and where it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressPair {
    /// Original virtual address.
    #[serde(with = "hex")]
    pub original: u64,
    /// Virtual address in the rewritten object.
    #[serde(with = "hex")]
    pub rewritten: u64,
}

/// One instrumented kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Before the rewrite.
    pub before: Resources,
    /// After it.
    pub after: Resources,
    /// Original to rewritten addresses of all its instructions, by original address.
    pub addresses: Vec<AddressPair>,
}

/// A kernel that was left as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The contents of the section: zlib over JSON.
    ///
    /// # Errors
    /// Internal if it cannot be serialised.
    pub fn pack(&self) -> Result<Vec<u8>> {
        let json = serde_json::to_vec(self).map_err(|e| Error::internal(format!("site table: {e}")))?;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&json)?;
        Ok(encoder.finish()?)
    }

    /// Reads the section's contents.
    ///
    /// # Errors
    /// Malformed if it is not what [`ObjectMap::pack`] writes, Limit if it unpacks to more than 256 MiB.
    pub fn unpack(section: &[u8]) -> Result<ObjectMap> {
        let mut json = Vec::new();
        flate2::read::ZlibDecoder::new(section)
            .take(MAX_UNPACKED + 1)
            .read_to_end(&mut json)
            .map_err(|e| Error::malformed(format!("site table does not decompress: {e}")))?;
        if json.len() as u64 > MAX_UNPACKED {
            return Err(Error::limit("site table unpacks to more than 256 MiB"));
        }
        let map: ObjectMap = serde_json::from_slice(&json).map_err(|e| Error::malformed(format!("site table: {e}")))?;
        if map.schema != SCHEMA {
            return Err(Error::unsupported(format!("site table schema {:?}, this program knows {SCHEMA:?}", map.schema)));
        }
        Ok(map)
    }
}
