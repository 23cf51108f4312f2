//! The file: a ZIP archive with these entries.
//!
//! | entry | contents |
//! |---|---|
//! | `capture.json` | [`Header`] |
//! | `code.co` | the code object, as it was before any rewriting |
//! | `arguments.bin` | the kernel's own arguments, without hidden ones |
//! | `before/0xADDRESS.bin` | a range of memory before the dispatch |
//! | `after/0xADDRESS.bin` | the same after it, where it has changed |
//!
//! A file that is read may be made to harm: its header is checked as a whole before anything else is read, an entry has
//! exactly the size that the header says, and memory is taken for what is really there, not for what a size claims.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_object::code_object::digest;
use wavetap_profile::hex;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Schema of the header.
pub const SCHEMA: &str = "wavetap.capture/1";

/// Names of entries.
const HEADER: &str = "capture.json";
const CODE: &str = "code.co";
const ARGUMENTS: &str = "arguments.bin";

/// Most bytes of a header, of a code object and of arguments that are read.
const MOST_HEADER: u64 = 64 << 20;
const MOST_CODE: u64 = 1 << 30;
const MOST_ARGUMENTS: u64 = 1 << 20;
/// No device address is this large.
const MOST_ADDRESS: u64 = 1 << 48;
/// The fastest level above none: memory is large and compresses well or not at all.
const LEVEL: i64 = 1;

/// What is known of a captured dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of Wavetap that wrote it.
    pub version: String,
    /// The kernel's mangled name.
    pub kernel: String,
    /// The same as in the source.
    pub demangled: String,
    /// The target id of its code object: `gfx90a:sramecc+:xnack-`.
    pub target: String,
    /// MD5 of the code object.
    pub object: String,
    /// Which dispatch it was of all that were selected, from 1.
    pub dispatch: u64,
    /// Work-items of the grid in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// Bytes of LDS of a workgroup, static and dynamic together.
    pub group_segment_size: u32,
    /// Bytes of scratch of a work-item.
    pub private_segment_size: u32,
    /// Where the code object was loaded.
    pub code: CodePlace,
    /// Words of arguments, variables and memory that are addresses in the code object: of its variables or functions,
    /// unless a number looks like one.
    pub code_addresses: u64,
    /// Whether nothing but the kernel could change the memory between both readings.
    pub alone: bool,
    /// The memory, variables of the code object first.
    pub memory: Vec<MemoryRange>,
}

/// Where a code object lies in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CodePlace {
    /// Device address of the code object's virtual address 0.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// Bytes to the end of its last segment.
    pub size: u64,
}

/// What a range of memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// An allocation of the program.
    Allocation,
    /// Variables of the kernel's code object.
    Variables,
}

/// A range of memory that the dispatch reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MemoryRange {
    /// First device address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// What it is.
    pub kind: MemoryKind,
    /// Whether the dispatch changed it.
    pub changed: bool,
}

impl Header {
    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.memory.iter().fold(0, |sum, range| sum.saturating_add(range.size))
    }

    fn check(&self, most: u64) -> Result<()> {
        let Header { schema, kernel, grid, workgroup, memory, code, .. } = self;
        if schema != SCHEMA {
            return Err(Error::unsupported(format!("schema {schema:?}, {SCHEMA:?} was expected")));
        }
        let texts = [kernel, &self.demangled, &self.target, &self.object, &self.version];
        if let Some(text) = texts.iter().find(|text| text.is_empty() || text.chars().any(char::is_control)) {
            return Err(Error::malformed(format!("{text:?}: printable text was expected")));
        }
        if grid.contains(&0) || workgroup.contains(&0) {
            return Err(Error::malformed(format!("a grid of {grid:?} work-items in workgroups of {workgroup:?}")));
        }
        if code.address.checked_add(code.size).is_none_or(|end| end > MOST_ADDRESS) {
            return Err(Error::malformed(format!("code of {} bytes at {:#x}", code.size, code.address)));
        }
        if self.bytes() > most {
            return Err(Error::limit(format!("{} bytes of memory, at most {most} are read", self.bytes())));
        }
        let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
        for MemoryRange { address, size, .. } in memory {
            let end = address.checked_add(*size).filter(|end| *size > 0 && *end <= MOST_ADDRESS);
            let end = end.ok_or_else(|| Error::malformed(format!("{size} bytes of memory at {address:#x}")))?;
            let before = ends.range(..end).next_back().filter(|(_, before)| **before > *address);
            if let Some((other, _)) = before {
                return Err(Error::malformed(format!("memory at {address:#x} overlaps that at {other:#x}")));
            }
            ends.insert(*address, end);
        }
        Ok(())
    }
}

fn before(address: u64) -> String {
    format!("before/{address:#x}.bin")
}

fn after(address: u64) -> String {
    format!("after/{address:#x}.bin")
}

/// Writes a capture; `memory` has what each range of the header held before and, where it changed, after.
pub(crate) fn write(
    path: &Path,
    header: &Header,
    (code, arguments): (&[u8], &[u8]),
    memory: &[(&[u8], Option<&[u8]>)],
) -> Result<()> {
    let mut archive = ZipWriter::new(BufWriter::new(File::create(path)?));
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).compression_level(Some(LEVEL));
    let mut add = |name: &str, bytes: &[u8]| -> Result<()> {
        let large = bytes.len() as u64 >= u32::MAX.into();
        archive.start_file(name, options.large_file(large)).map_err(|error| of_archive(&error))?;
        Ok(archive.write_all(bytes)?)
    };
    let text = serde_json::to_vec_pretty(header).map_err(|error| Error::internal(error.to_string()))?;
    add(HEADER, &text)?;
    add(CODE, code)?;
    add(ARGUMENTS, arguments)?;
    for (range, (bytes, changed)) in header.memory.iter().zip(memory) {
        add(&before(range.address), bytes)?;
        if let Some(changed) = changed {
            add(&after(range.address), changed)?;
        }
    }
    let mut file = archive.finish().map_err(|error| of_archive(&error))?;
    Ok(file.flush()?)
}

fn of_archive(error: &zip::result::ZipError) -> Error {
    Error::malformed(format!("the archive: {error}"))
}

/// A capture that is read.
pub struct CaptureFile {
    archive: ZipArchive<BufReader<File>>,
    header: Header,
}

impl CaptureFile {
    /// Opens a capture and checks its header. At most `most` bytes of memory are read.
    ///
    /// # Errors
    /// Io if it cannot be read; malformed if it is no capture; unsupported if it has another version; limit if it has
    /// more memory.
    pub fn open(path: &Path, most: u64) -> Result<CaptureFile> {
        Self::read_from(path, most).within(|| path.display().to_string())
    }

    fn read_from(path: &Path, most: u64) -> Result<CaptureFile> {
        let file = File::open(path).map_err(|error| Error::new(Kind::Io, format!("cannot read: {error}")))?;
        let file = BufReader::new(file);
        let archive = ZipArchive::new(file)
            .map_err(|error| Error::malformed(format!("not a capture (a ZIP archive was expected): {error}")))?;
        let mut archive = archive;
        let text = entry(&mut archive, HEADER, None, MOST_HEADER)?;
        let header: Header =
            serde_json::from_slice(&text).map_err(|error| Error::malformed(error.to_string()).within(HEADER))?;
        header.check(most).within(|| HEADER.to_owned())?;
        Ok(CaptureFile { archive, header })
    }

    /// What is known of the dispatch.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The code object.
    ///
    /// # Errors
    /// Malformed if it is missing, damaged or another one; limit if it is too large.
    pub fn code(&mut self) -> Result<Vec<u8>> {
        let code = entry(&mut self.archive, CODE, None, MOST_CODE)?;
        let found = digest(&code);
        if found != self.header.object {
            let expected = &self.header.object;
            return Err(Error::malformed(format!("{CODE}: its MD5 is {found}, the header says {expected}")));
        }
        Ok(code)
    }

    /// The kernel's own arguments.
    ///
    /// # Errors
    /// As [`CaptureFile::code`].
    pub fn arguments(&mut self) -> Result<Vec<u8>> {
        entry(&mut self.archive, ARGUMENTS, None, MOST_ARGUMENTS)
    }

    /// What a range of [`Header::memory`] held before the dispatch.
    ///
    /// # Errors
    /// Malformed if it is missing, damaged or of another size.
    pub fn before(&mut self, range: &MemoryRange) -> Result<Vec<u8>> {
        entry(&mut self.archive, &before(range.address), Some(range.size), range.size)
    }

    /// What it held afterwards; none where the dispatch did not change it.
    ///
    /// # Errors
    /// As [`CaptureFile::before`].
    pub fn after(&mut self, range: &MemoryRange) -> Result<Option<Vec<u8>>> {
        let name = after(range.address);
        range.changed.then(|| entry(&mut self.archive, &name, Some(range.size), range.size)).transpose()
    }
}

/// The bytes of an entry: exactly so many if that is known, and never more than `most`.
fn entry(archive: &mut ZipArchive<BufReader<File>>, name: &str, exactly: Option<u64>, most: u64) -> Result<Vec<u8>> {
    let found = archive.by_name(name).map_err(|error| Error::malformed(format!("{name}: {error}")))?;
    let mut bytes = Vec::new();
    found
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Error::malformed(format!("{name}: {error}")))?;
    let length = bytes.len() as u64;
    match exactly {
        Some(expected) if length != expected => {
            let found = if length > expected { "more".to_owned() } else { length.to_string() };
            Err(Error::malformed(format!("{name}: {found} bytes, {expected} were expected")))
        }
        None if length > most => Err(Error::limit(format!("{name}: more than {most} bytes"))),
        _ => Ok(bytes),
    }
}
