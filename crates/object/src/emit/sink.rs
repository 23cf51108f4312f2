//! Where an output goes while it is made: piece by piece, so that it is never in memory as a whole.

use std::io::{self, Seek, SeekFrom, Write};

use wavetap_base::bytes::align_up;
use wavetap_base::error::{Error, Kind, Result};

/// What an output is written to: empty, and written by no one else.
pub trait Output: Write + Seek + Send {}

impl<T: Write + Seek + Send + ?Sized> Output for T {}

/// How many zeros are written at a time.
const ZEROS: usize = 4096;

/// An output, and how much of it there is.
pub(super) struct Sink<'w> {
    output: &'w mut dyn Output,
    size: u64,
    /// Why it could not be written: those who write through [`Write`] tell of it as a failure of their own.
    failure: Option<Error>,
}

impl<'w> Sink<'w> {
    pub(super) fn new(output: &'w mut dyn Output) -> Sink<'w> {
        Sink { output, size: 0, failure: None }
    }

    /// Bytes that were appended.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes)?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Appends `contents` at the next multiple of `align`; returns its offset.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn append_at(&mut self, align: u64, contents: &[u8]) -> Result<u64> {
        self.append_zeros(align_up(self.size, align.max(1)))?;
        let offset = self.size;
        self.append(contents)?;
        Ok(offset)
    }

    /// Appends zeros up to this offset.
    ///
    /// # Errors
    /// Internal if there is more; those of the output.
    pub(super) fn append_zeros(&mut self, end: u64) -> Result<()> {
        let mut left =
            end.checked_sub(self.size).ok_or_else(|| Error::internal("zeros before what was written").at(end))?;
        while left > 0 {
            let next = left.min(ZEROS as u64);
            self.append(&[0; ZEROS][..next as usize])?;
            left -= next;
        }
        Ok(())
    }

    /// Overwrites bytes.
    ///
    /// # Errors
    /// Internal if there are none yet; those of the output.
    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.size) {
            return Err(
                Error::internal(format!("write of {} bytes past the end {:#x}", bytes.len(), self.size)).at(offset)
            );
        }
        self.output.seek(SeekFrom::Start(offset))?;
        self.output.write_all(bytes)?;
        self.output.seek(SeekFrom::Start(self.size))?;
        Ok(())
    }

    /// The error of this, which was made while it was written through [`Write`]: the output's, if that is what failed.
    pub(super) fn explain(&mut self, error: Error) -> Error {
        self.failure.take().unwrap_or(error)
    }

    /// Nothing more is written.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn finish(self) -> Result<()> {
        Ok(self.output.flush()?)
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes);
        match &written {
            Ok(written) => self.size += *written as u64,
            // Whoever writes tries that again.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => self.failure = Some(Error::new(Kind::Io, error.to_string())),
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn what_is_put_must_be_there() {
        let mut output = Cursor::new(Vec::new());
        let mut sink = Sink::new(&mut output);
        assert_eq!(sink.append_at(8, b"head").unwrap(), 0);
        assert_eq!(sink.append_at(8, b"tail").unwrap(), 8);
        sink.put(2, b"ART").unwrap();
        assert_eq!(sink.put(9, b"long").unwrap_err().kind(), Kind::Internal);
        assert_eq!(sink.append_zeros(3).unwrap_err().kind(), Kind::Internal);
        sink.append(b"!").unwrap();
        sink.finish().unwrap();
        assert_eq!(output.into_inner(), b"heART\0\0\0tail!");
    }
}
