//! The compressed bundle, `CCOB`: a header, then a plain bundle packed with zstd or zlib.

use std::io::Read;

use md5::{Digest, Md5};

use crate::bytes;
use crate::error::{Error, Result};

/// The first bytes of a compressed bundle. They also occur by chance, so a header is believed only when all its fields make sense.
pub const MAGIC: &[u8; 4] = b"CCOB";

/// Most bytes a bundle may have when unpacked.
const MAX_UNCOMPRESSED: u64 = 2 << 30;

/// Most bytes that all bundles of one input may have when unpacked.
const MAX_TOTAL: u64 = 4 << 30;

/// Bundles of many similar code objects with page padding pack well, but not better than this.
const MAX_RATIO: u64 = 1000;

/// Below this size the ratio does not matter.
const HARMLESS: u64 = 64 << 20;

/// `method` field: zlib.
const METHOD_ZLIB: u16 = 0;
/// `method` field: zstd.
const METHOD_ZSTD: u16 = 1;

/// The header of a compressed bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressedHeader {
    /// 2 or 3.
    pub version: u16,
    /// 0 = zlib, 1 = zstd.
    pub method: u16,
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
    /// Malformed when a size lies; unsupported for version 1 (which does not say where it ends) and unknown versions and methods.
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
                24,
            ),
            3 => {
                (bytes::u64_at(data, 8, "total size")?, bytes::u64_at(data, 16, "uncompressed size")?, bytes::u64_at(data, 24, "hash")?, 32)
            }
            _ => return Err(Error::unsupported(format!("compressed bundle of version {version}, 2 and 3 are handled")).at(4)),
        };
        if method != METHOD_ZLIB && method != METHOD_ZSTD {
            return Err(Error::unsupported(format!("compression method {method}, 0 (zlib) and 1 (zstd) are handled")).at(6));
        }
        if total_size < header_size || total_size > data.len() as u64 {
            let message = format!("a compressed bundle of {total_size:#x} bytes where {:#x} are left", data.len());
            return Err(Error::malformed(message).at(8));
        }
        let allowed = total_size.saturating_mul(MAX_RATIO).clamp(HARMLESS, MAX_UNCOMPRESSED);
        if uncompressed_size > allowed {
            let message = format!("{total_size:#x} packed bytes claim to unpack to {uncompressed_size:#x}, more than {allowed:#x}");
            return Err(Error::limit(message).at(if version == 2 { 12 } else { 16 }));
        }
        Ok(CompressedHeader { version, method, header_size, total_size, uncompressed_size, hash })
    }
}

/// How many bytes all bundles of an input of this size may have when unpacked: many small bundles must not do what one large one may not.
pub(super) fn allowance(input_size: u64) -> u64 {
    input_size.saturating_mul(MAX_RATIO).clamp(HARMLESS, MAX_TOTAL)
}

/// Unpacks the compressed bundle at the start of `data`; never makes more bytes than its header says.
pub(super) fn unpack(data: &[u8], header: &CompressedHeader) -> Result<Vec<u8>> {
    let packed = bytes::slice(data, header.header_size, header.total_size - header.header_size, "compressed bundle")?;
    let content = match header.method {
        METHOD_ZLIB => read_bounded(flate2::read::ZlibDecoder::new(packed), header),
        _ => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed)
                .map_err(|error| Error::malformed(format!("a compressed bundle is not zstd data: {error}")).at(header.header_size))?;
            read_bounded(decoder, header)
        }
    }?;
    let digest = Md5::digest(&content);
    if bytes::u64_at(&digest, 0, "digest")? != header.hash {
        return Err(Error::malformed("a compressed bundle's contents do not match its checksum").at(header.header_size));
    }
    Ok(content)
}

fn read_bounded(decoder: impl Read, header: &CompressedHeader) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    decoder
        .take(header.uncompressed_size + 1)
        .read_to_end(&mut content)
        .map_err(|error| Error::malformed(format!("a compressed bundle does not unpack: {error}")).at(header.header_size))?;
    if content.len() as u64 != header.uncompressed_size {
        let found = if content.len() as u64 > header.uncompressed_size { "more".to_owned() } else { format!("{:#x}", content.len()) };
        let message = format!("a compressed bundle unpacks to {found} bytes, its header says {:#x}", header.uncompressed_size);
        return Err(Error::malformed(message).at(header.header_size));
    }
    Ok(content)
}
