//! Contents that are kept until everything that they are written with is there.

use crate::error::{Error, Result};
use crate::offload_bundle::Put;

/// How hard a code object that is kept is packed: nearly as fast as copying it, and a fifth to a tenth is left.
const LEVEL: i32 = 1;

/// A new code object that is kept, as it is or packed.
///
/// ```
/// use wavetap::emit::Kept;
///
/// assert_eq!(Kept::packed(&[7; 10_000])?.bytes()?, Kept::from(vec![7; 10_000]).bytes()?);
/// # Ok::<(), wavetap::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    size: usize,
    held: Held,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    Plain(Vec<u8>),
    Zstd(Vec<u8>),
}

impl From<Vec<u8>> for Kept {
    fn from(bytes: Vec<u8>) -> Kept {
        Kept { size: bytes.len(), held: Held::Plain(bytes) }
    }
}

impl Kept {
    /// Keeps these bytes packed: for one of many code objects.
    ///
    /// # Errors
    /// Internal if the compressor fails.
    pub fn packed(bytes: &[u8]) -> Result<Kept> {
        let mut packed =
            zstd::bulk::compress(bytes, LEVEL).map_err(|error| Error::internal(format!("a code object is not packed: {error}")))?;
        packed.shrink_to_fit();
        Ok(Kept { size: bytes.len(), held: Held::Zstd(packed) })
    }

    /// How many bytes they are when unpacked.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes.
    ///
    /// # Errors
    /// Internal if they do not unpack.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        match &self.held {
            Held::Plain(bytes) => Ok(bytes.clone()),
            Held::Zstd(packed) => {
                let failed = |error| Error::internal(format!("a code object does not unpack: {error}"));
                zstd::bulk::decompress(packed, self.size).map_err(failed)
            }
        }
    }

    /// Puts the bytes.
    ///
    /// # Errors
    /// As [`Kept::bytes`].
    pub(super) fn put(&self, put: &mut Put<'_, Error>) -> Result<()> {
        match &self.held {
            Held::Plain(bytes) => put(bytes),
            Held::Zstd(_) => put(&self.bytes()?),
        }
    }
}
