//! The compressed bundle, `CCOB`: a header, then a plain bundle packed with zstd or zlib.

use std::io::{Read, Write};

use md5::{Digest, Md5};

use wavetap_base::bytes;
use wavetap_base::error::{Error, Result};

/// The first bytes of a compressed bundle. They also occur by chance, so a header is believed only when all its fields
/// make sense.
pub const MAGIC: &[u8; 4] = b"CCOB";

/// Most bytes a bundle may have when unpacked.
const MAX_UNCOMPRESSED: u64 = 2 << 30;

/// Most bytes that all bundles of one input may have when unpacked.
const MAX_TOTAL: u64 = 4 << 30;

/// Bundles of many similar code objects with page padding pack well, but not better than this.
const MAX_RATIO: u64 = 1000;

/// Below this size the ratio does not matter.
const HARMLESS: u64 = 64 << 20;

/// How a bundle is packed: the `method` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// zlib.
    Zlib = 0,
    /// zstd.
    Zstd = 1,
}

impl Method {
    fn from_field(field: u16) -> Option<Method> {
        [Method::Zlib, Method::Zstd].into_iter().find(|method| *method as u16 == field)
    }
}

/// Size of the header of version 2.
const HEADER_2: u64 = 24;
/// Size of the header of version 3.
const HEADER_3: u64 = 32;

/// zstd's level and largest window, and zlib's level, that Clang's bundler packs with. The window lets code for one
/// processor be told from the same for another, megabytes before it: without it bundles are three times as large.
const ZSTD_LEVEL: i32 = 3;
/// Two to this power bytes.
const ZSTD_WINDOW: u32 = 27;
/// The least window, likewise: what zstd takes at this level anyway.
const ZSTD_LEAST_WINDOW: u32 = 21;
/// Fewer bytes than this are hashed sooner than another thread is told of them.
const WORTH_A_THREAD: usize = 64 << 10;
/// zlib's own default.
const ZLIB_LEVEL: u32 = 6;

/// The header of a compressed bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressedHeader {
    /// 2 or 3.
    pub version: u16,
    /// How it is packed.
    pub method: Method,
    /// Bytes of the header itself.
    pub header_size: u64,
    /// Bytes of header and packed data.
    pub total_size: u64,
    /// Bytes of the bundle when unpacked.
    pub uncompressed_size: u64,
    /// The first eight bytes of the MD5 of the unpacked bundle.
    pub hash: u64,
}

impl CompressedHeader {
    /// Reads the header at the start of `data` and checks it against the bytes that are there.
    ///
    /// # Errors
    /// Malformed when a size lies; unsupported for version 1 (which does not say where it ends) and unknown versions
    /// and methods.
    pub fn parse(data: &[u8]) -> Result<Self> {
        if bytes::slice(data, 0, 4, "compressed bundle magic")? != MAGIC {
            return Err(Error::malformed("a compressed bundle was expected (magic CCOB)").at(0));
        }
        let version = bytes::u16_at(data, 4, "compressed bundle version")?;
        let method = bytes::u16_at(data, 6, "compression method")?;
        let (total_size, uncompressed_size, hash, header_size) = match version {
            2 => (
                bytes::u32_at(data, 8, "total size")?.into(),
                bytes::u32_at(data, 12, "uncompressed size")?.into(),
                bytes::u64_at(data, 16, "hash")?,
                HEADER_2,
            ),
            3 => (
                bytes::u64_at(data, 8, "total size")?,
                bytes::u64_at(data, 16, "uncompressed size")?,
                bytes::u64_at(data, 24, "hash")?,
                HEADER_3,
            ),
            _ => {
                return Err(
                    Error::unsupported(format!("compressed bundle of version {version}, 2 and 3 are handled")).at(4)
                );
            }
        };
        let Some(method) = Method::from_field(method) else {
            return Err(
                Error::unsupported(format!("compression method {method}, 0 (zlib) and 1 (zstd) are handled")).at(6)
            );
        };
        if total_size < header_size || total_size > data.len() as u64 {
            let message = format!("a compressed bundle of {total_size:#x} bytes where {:#x} are left", data.len());
            return Err(Error::malformed(message).at(8));
        }
        let allowed = total_size.saturating_mul(MAX_RATIO).clamp(HARMLESS, MAX_UNCOMPRESSED);
        if uncompressed_size > allowed {
            let message = format!(
                "{total_size:#x} packed bytes claim to unpack to {uncompressed_size:#x}, more than {allowed:#x}"
            );
            return Err(Error::limit(message).at(if version == 2 { 12 } else { 16 }));
        }
        Ok(CompressedHeader { version, method, header_size, total_size, uncompressed_size, hash })
    }
}

/// How many bytes all bundles of an input of this size may have when unpacked: many small bundles must not do what one
/// large one may not.
pub(super) fn allowance(input_size: u64) -> u64 {
    input_size.saturating_mul(MAX_RATIO).clamp(HARMLESS, MAX_TOTAL)
}

/// Unpacks the compressed bundle at the start of `data`; never makes more bytes than its header says.
pub(super) fn unpack(data: &[u8], header: &CompressedHeader) -> Result<Vec<u8>> {
    let packed = bytes::slice(data, header.header_size, header.total_size - header.header_size, "compressed bundle")?;
    let broken =
        |error| Error::malformed(format!("a compressed bundle does not unpack: {error}")).at(header.header_size);
    let content = match header.method {
        Method::Zlib => {
            let mut content = Vec::new();
            let mut decoder = flate2::read::ZlibDecoder::new(packed).take(header.uncompressed_size + 1);
            decoder.read_to_end(&mut content).map_err(broken)?;
            content
        }
        // An error if there is more than fits.
        Method::Zstd => zstd::bulk::decompress(packed, header.uncompressed_size as usize).map_err(broken)?,
    };
    if content.len() as u64 != header.uncompressed_size {
        let found = if content.len() as u64 > header.uncompressed_size {
            "more".to_owned()
        } else {
            format!("{:#x}", content.len())
        };
        let message =
            format!("a compressed bundle unpacks to {found} bytes, its header says {:#x}", header.uncompressed_size);
        return Err(Error::malformed(message).at(header.header_size));
    }
    let digest = Md5::digest(&content);
    if bytes::u64_at(&digest, 0, "digest")? != header.hash {
        return Err(Error::malformed("a compressed bundle's contents do not match its checksum").at(header.header_size));
    }
    Ok(content)
}

/// Packs a plain bundle. `version` is 2 or 3; a bundle that is too large for the fields of version 2 becomes one of
/// version 3.
///
/// ```
/// use wavetap_object::offload_bundle::{Input, Method, write_compressed, write_plain};
///
/// let plain = write_plain(&[("hipv4-amdgcn-amd-amdhsa--gfx90a", &[7; 10_000])]);
/// let packed = write_compressed(&plain, 2, Method::Zstd)?;
/// assert!(packed.len() < plain.len());
/// assert_eq!(Input::parse(&packed)?.bundles[0].content, plain);
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
///
/// # Errors
/// Internal if the compressor fails.
pub fn write_compressed(plain: &[u8], version: u16, method: Method) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut packer = Packer::new(version, method, plain.len(), plain.len(), &mut out)?;
    packer.put(plain)?;
    let header = packer.finish()?;
    bytes::put(&mut out, 0, &header)?;
    Ok(out)
}

/// [`write_compressed`] of a plain bundle that is told piece by piece and written piece by piece, so that neither it
/// nor the compressed one need be in memory as a whole.
pub struct Packer<W: Write> {
    version: u16,
    method: Method,
    size: u64,
    hash: Md5,
    encoder: Encoder<W>,
}

enum Encoder<W: Write> {
    Zlib(flate2::write::ZlibEncoder<Counting<W>>),
    Zstd(zstd::stream::write::Encoder<'static, Counting<W>>),
}

/// A writer, and how much was written.
struct Counting<W> {
    to: W,
    size: u64,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

fn not_packed(error: std::io::Error) -> Error {
    Error::internal(format!("a bundle could not be packed: {error}"))
}

impl<W: Write + Send> Packer<W> {
    /// For a plain bundle of `size` bytes, in which what is alike is at most `distance` bytes apart: that is how far
    /// the compressor looks back, and about the memory that it takes. What is written begins with room for the header.
    ///
    /// # Errors
    /// Internal if the compressor fails, or what it is written to.
    pub fn new(version: u16, method: Method, size: usize, distance: usize, to: W) -> Result<Packer<W>> {
        // The packed bytes are not known yet: their number must fit in any case.
        let short = u32::try_from(zstd::zstd_safe::compress_bound(size) as u64 + HEADER_2).is_ok();
        let version = if version == 2 && short { 2 } else { 3 };
        let mut to = Counting { to, size: 0 };
        to.write_all(&[0; HEADER_3 as usize][..header_size(version) as usize]).map_err(not_packed)?;
        let encoder = match method {
            Method::Zlib => Encoder::Zlib(flate2::write::ZlibEncoder::new(to, flate2::Compression::new(ZLIB_LEVEL))),
            Method::Zstd => Encoder::Zstd(zstd_encoder(size, distance, to).map_err(not_packed)?),
        };
        Ok(Packer { version, method, size: size as u64, hash: Md5::new(), encoder })
    }

    /// The next bytes of the plain bundle.
    ///
    /// # Errors
    /// Internal if the compressor fails, or what it is written to.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let Packer { hash, encoder, .. } = self;
        let mut pack = || match encoder {
            Encoder::Zlib(encoder) => encoder.write_all(bytes),
            Encoder::Zstd(encoder) => encoder.write_all(bytes),
        };
        let packed = if bytes.len() < WORTH_A_THREAD {
            hash.update(bytes);
            pack()
        } else {
            rayon::join(pack, || hash.update(bytes)).0
        };
        packed.map_err(not_packed)
    }

    /// Writes what is left; returns the header, whose place is at the start of what was written.
    ///
    /// # Errors
    /// Internal if the compressor fails, or what it is written to, or the plain bundle had another size than was said.
    pub fn finish(self) -> Result<Vec<u8>> {
        let Packer { version, method, size, hash, encoder } = self;
        let written = match encoder {
            Encoder::Zlib(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
        };
        let total = written.map_err(not_packed)?.size;
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&version.to_le_bytes());
        header.extend_from_slice(&(method as u16).to_le_bytes());
        let size_of_field = if version == 2 { size_of::<u32>() } else { size_of::<u64>() };
        for field in [total, size] {
            header.extend_from_slice(&field.to_le_bytes()[..size_of_field]);
        }
        header.extend_from_slice(&hash.finalize()[..8]);
        Ok(header)
    }
}

fn header_size(version: u16) -> u64 {
    if version == 2 { HEADER_2 } else { HEADER_3 }
}

fn zstd_encoder<W: Write>(
    size: usize,
    distance: usize,
    to: W,
) -> std::io::Result<zstd::stream::write::Encoder<'static, W>> {
    let mut encoder = zstd::stream::write::Encoder::new(to, ZSTD_LEVEL)?;
    encoder.long_distance_matching(true)?;
    encoder.window_log(distance.next_power_of_two().ilog2().clamp(ZSTD_LEAST_WINDOW, ZSTD_WINDOW))?;
    encoder.set_pledged_src_size(Some(size as u64))?;
    Ok(encoder)
}
