//! Contents that are kept until everything that they are written with is there.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use super::Scratch;
use crate::offload_bundle::Put;
use wavetap_base::error::{Error, Result};

/// How hard a code object that is kept is packed: nearly as fast as copying it, and a fifth to a tenth is left.
const LEVEL: i32 = 1;

/// How much of what is kept is put at a time.
const PIECE: usize = 256 << 10;

/// A code object or another entry of a bundle that is kept: in memory, as it is or packed, or in a file.
///
/// ```
/// use wavetap_object::emit::Kept;
///
/// assert_eq!(Kept::packed(&[7; 10_000], None)?.bytes()?, Kept::from(vec![7; 10_000]).bytes()?);
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Kept<'d> {
    size: usize,
    packed: bool,
    held: Held<'d>,
}

#[derive(Debug, Clone)]
enum Held<'d> {
    Here(Cow<'d, [u8]>),
    Away { scratch: Arc<Scratch>, offset: u64, size: usize },
}

impl From<Vec<u8>> for Kept<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Kept { size: bytes.len(), packed: false, held: Held::Here(Cow::Owned(bytes)) }
    }
}

impl<'d> From<&'d [u8]> for Kept<'d> {
    fn from(bytes: &'d [u8]) -> Self {
        Kept { size: bytes.len(), packed: false, held: Held::Here(Cow::Borrowed(bytes)) }
    }
}

impl<'d> Kept<'d> {
    /// Keeps these bytes as they are; in the file, if there is one.
    ///
    /// # Errors
    /// Those of the file.
    pub fn plain(bytes: &[u8], scratch: Option<&Arc<Scratch>>) -> Result<Kept<'d>> {
        Ok(Kept { size: bytes.len(), packed: false, held: Held::of(Cow::Borrowed(bytes), scratch)? })
    }

    /// Keeps these bytes packed: for one of many code objects. In the file, if there is one.
    ///
    /// # Errors
    /// Internal if the compressor fails; those of the file.
    pub fn packed(bytes: &[u8], scratch: Option<&Arc<Scratch>>) -> Result<Kept<'d>> {
        let packed = zstd::bulk::compress(bytes, LEVEL)
            .map_err(|error| Error::internal(format!("a code object is not packed: {error}")))?;
        Ok(Kept { size: bytes.len(), packed: true, held: Held::of(Cow::Owned(packed), scratch)? })
    }

    /// How many bytes they are when unpacked.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes.
    ///
    /// # Errors
    /// Internal if they do not unpack; those of the file.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        let held = self.held.bytes()?;
        if !self.packed {
            return Ok(held);
        }
        Ok(Cow::Owned(zstd::bulk::decompress(&held, self.size).map_err(not_unpacked)?))
    }

    /// Puts the bytes, one piece after the other.
    ///
    /// # Errors
    /// As [`Kept::bytes`].
    pub(super) fn put(&self, put: &mut Put<'_, Error>) -> Result<()> {
        if self.packed {
            let held = self.held.bytes()?;
            let mut decoder = zstd::stream::read::Decoder::with_buffer(&held[..]).map_err(not_unpacked)?;
            return put_pieces(self.size, put, |_, piece| decoder.read_exact(piece).map_err(not_unpacked));
        }
        match &self.held {
            Held::Here(bytes) => put(bytes),
            Held::Away { scratch, offset, .. } => {
                put_pieces(self.size, put, |at, piece| scratch.load(offset + at as u64, piece))
            }
        }
    }
}

/// Puts `size` bytes, of which `read` fills in those from a place on.
fn put_pieces(
    size: usize,
    put: &mut Put<'_, Error>,
    mut read: impl FnMut(usize, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; PIECE.min(size)];
    for at in (0..size).step_by(PIECE) {
        let piece = &mut buffer[..PIECE.min(size - at)];
        read(at, piece)?;
        put(piece)?;
    }
    Ok(())
}

fn not_unpacked(error: std::io::Error) -> Error {
    Error::internal(format!("a code object does not unpack: {error}"))
}

impl<'d> Held<'d> {
    fn of(bytes: Cow<'_, [u8]>, scratch: Option<&Arc<Scratch>>) -> Result<Held<'d>> {
        Ok(match scratch {
            Some(scratch) => {
                Held::Away { scratch: Arc::clone(scratch), offset: scratch.store(&bytes)?, size: bytes.len() }
            }
            None => {
                let mut bytes = bytes.into_owned();
                bytes.shrink_to_fit();
                Held::Here(Cow::Owned(bytes))
            }
        })
    }

    fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        match self {
            Held::Here(bytes) => Ok(Cow::Borrowed(bytes)),
            Held::Away { scratch, offset, size } => {
                let mut bytes = vec![0; *size];
                scratch.load(*offset, &mut bytes)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_come_back_from_wherever_they_are() {
        let bytes: Vec<u8> = (0..3 * PIECE + 5).map(|at| (at * at % 251) as u8).collect();
        let scratch = Arc::new(Scratch::new(tempfile::tempfile().expect("a file")));
        for scratch in [None, Some(&scratch)] {
            for kept in [Kept::plain(&bytes, scratch).expect("kept"), Kept::packed(&bytes, scratch).expect("kept")] {
                assert_eq!(kept.size(), bytes.len());
                assert!(kept.bytes().expect("read") == bytes);
                let mut pieces = Vec::new();
                kept.put(&mut |piece| {
                    pieces.extend_from_slice(piece);
                    Ok(())
                })
                .expect("put");
                assert!(pieces == bytes);
            }
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        let scratch = Arc::new(Scratch::new(std::fs::File::open("/dev/null").expect("opens")));
        let error = Kept::packed(&[7; 100], Some(&scratch)).unwrap_err();
        assert_eq!(error.kind(), wavetap_base::error::Kind::Io);
    }
}
