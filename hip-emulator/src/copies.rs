//! Boxes of memory that are copied and filled: rows of bytes with a pitch, in planes.

use std::ffi::c_int;

use crate::memory::{Extent, PitchedPointer};
use crate::raw;
use crate::runtime::Runtime;
use crate::status::*;

/// `hipMemcpyDefault`, the largest copy kind; what is copied to what is told by the addresses.
const LAST_KIND: c_int = 4;

/// Copies between device memory and the host go through a buffer of at most this size.
const CHUNK: usize = 4 << 20;

/// Copies `size` bytes. Addresses tell where they are, and a copy that leaves an allocation is refused before anything
/// is written.
pub(crate) fn copy(runtime: &mut Runtime, to: u64, from: u64, size: usize) -> Outcome {
    if size == 0 {
        return Ok(());
    }
    let (to_device, from_device) = (runtime.is_device_memory(to), runtime.is_device_memory(from));
    if !to_device && !from_device {
        return raw::copy(to as usize, from as usize, size);
    }
    for (address, on_device) in [(to, to_device), (from, from_device)] {
        if on_device {
            check_range(runtime, address, size)?;
        }
    }
    let device = runtime.device()?;
    let mut buffer = vec![0; size.min(CHUNK)];
    // From the end when the ranges overlap that way.
    let backwards = to_device && from_device && to > from;
    let starts: Box<dyn Iterator<Item = usize>> = if backwards {
        Box::new((0..size).step_by(CHUNK).collect::<Vec<_>>().into_iter().rev())
    } else {
        Box::new((0..size).step_by(CHUNK))
    };
    for start in starts {
        let part = &mut buffer[..CHUNK.min(size - start)];
        let at = start as u64;
        if from_device {
            device.read(from + at, part).map_err(|_| INVALID_VALUE)?;
        } else {
            raw::read(from as usize + start, part)?;
        }
        if to_device {
            device.write(to + at, part).map_err(|_| INVALID_VALUE)?;
        } else {
            raw::write(to as usize + start, part)?;
        }
    }
    Ok(())
}

fn check_range(runtime: &mut Runtime, address: u64, size: usize) -> Outcome {
    let allocation = runtime.device()?.allocation_of(address).ok_or(INVALID_VALUE)?;
    if size as u64 > allocation.size - (address - allocation.address) { Err(INVALID_VALUE) } else { Ok(()) }
}

/// Refuses what is none of HIP's copy kinds; what is what is told by the addresses.
pub(crate) fn check_kind(kind: c_int) -> Outcome {
    if (0..=LAST_KIND).contains(&kind) { Ok(()) } else { Err(INVALID_MEMCPY_DIRECTION) }
}

/// One side of a box: where it starts, bytes from row to row and rows from plane to plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) start: u64,
    pub(crate) pitch: usize,
    pub(crate) rows: usize,
    /// Bytes from plane to plane.
    pub(crate) plane: usize,
}

impl Side {
    /// Rows and planes without anything between them.
    pub(crate) fn new(start: u64, pitch: usize, rows: usize) -> Self {
        Side { start, pitch, rows, plane: pitch.saturating_mul(rows) }
    }

    fn row(self, y: usize, z: usize) -> Outcome<u64> {
        let (plane, row) = (z.checked_mul(self.plane), y.checked_mul(self.pitch));
        let offset = plane.zip(row).and_then(|(plane, row)| plane.checked_add(row));
        offset.and_then(|offset| self.start.checked_add(offset as u64)).ok_or(INVALID_VALUE)
    }

    /// The side that starts `x` bytes, `y` rows and `z` planes further on.
    pub(crate) fn at(self, x: usize, y: usize, z: usize) -> Outcome<Self> {
        Ok(Side { start: self.row(y, z)?.checked_add(x as u64).ok_or(INVALID_VALUE)?, ..self })
    }
}

impl From<PitchedPointer> for Side {
    fn from(pointer: PitchedPointer) -> Self {
        Side::new(pointer.pointer, pointer.pitch, pointer.y)
    }
}

/// A copy of a box; its width is in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoxCopy {
    pub(crate) to: Side,
    pub(crate) from: Side,
    pub(crate) extent: Extent,
    /// The kind that the program named, which graphs give back.
    pub(crate) kind: c_int,
}

impl BoxCopy {
    /// A copy of bytes in a row.
    pub(crate) fn linear(to: u64, from: u64, size: usize, kind: c_int) -> Outcome<Self> {
        check_kind(kind)?;
        let side = |start| Side::new(start, size, 1);
        Ok(BoxCopy { to: side(to), from: side(from), extent: Extent { width: size, height: 1, depth: 1 }, kind })
    }

    /// A copy of rows.
    pub(crate) fn rows(
        to: (u64, usize),
        from: (u64, usize),
        width: usize,
        height: usize,
        kind: c_int,
    ) -> Outcome<Self> {
        check_kind(kind)?;
        let side = |(start, pitch)| Side::new(start, pitch, height);
        Ok(BoxCopy { to: side(to), from: side(from), extent: Extent { width, height, depth: 1 }, kind })
    }

    /// The source's bytes, row after row.
    pub(crate) fn gather(&self) -> Outcome<Vec<u8>> {
        let BoxCopy { from, extent: Extent { width, height, depth }, .. } = *self;
        let size = width.checked_mul(height).and_then(|size| size.checked_mul(depth)).ok_or(INVALID_VALUE)?;
        let mut bytes = vec![0; size];
        for (row, into) in bytes.chunks_exact_mut(width.max(1)).enumerate() {
            raw::read(from.row(row % height, row / height)? as usize, into)?;
        }
        Ok(bytes)
    }

    /// The same with what [`BoxCopy::gather`] gave as its source.
    pub(crate) fn with_source(&self, bytes: &[u8]) -> Self {
        BoxCopy { from: Side::new(bytes.as_ptr() as u64, self.extent.width, self.extent.height), ..*self }
    }

    /// Copies.
    pub(crate) fn run(&self, runtime: &mut Runtime) -> Outcome {
        let BoxCopy { to, from, extent, .. } = *self;
        if extent.height.saturating_mul(extent.depth) > 1 && (extent.width > to.pitch || extent.width > from.pitch) {
            return Err(INVALID_PITCH_VALUE);
        }
        for z in 0..extent.depth {
            for y in 0..extent.height {
                copy(runtime, to.row(y, z)?, from.row(y, z)?, extent.width)?;
            }
        }
        Ok(())
    }
}

/// Fills a box with elements; its width is in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoxFill {
    pub(crate) to: Side,
    pub(crate) element: Vec<u8>,
    pub(crate) extent: Extent,
}

impl BoxFill {
    /// Elements in a row.
    pub(crate) fn elements(to: u64, element: &[u8], count: usize) -> Self {
        let to = Side::new(to, usize::MAX, 1);
        BoxFill { to, element: element.to_vec(), extent: Extent { width: count, height: 1, depth: 1 } }
    }

    /// Rows of elements.
    pub(crate) fn rows(to: u64, pitch: usize, element: &[u8], width: usize, height: usize) -> Self {
        let to = Side::new(to, pitch, height);
        BoxFill { to, element: element.to_vec(), extent: Extent { width, height, depth: 1 } }
    }

    /// Fills.
    pub(crate) fn run(&self, runtime: &mut Runtime) -> Outcome {
        let Extent { width, height, depth } = self.extent;
        if height.saturating_mul(depth) > 1 && self.element.len().saturating_mul(width) > self.to.pitch {
            return Err(INVALID_VALUE);
        }
        for z in 0..depth {
            for y in 0..height {
                fill(runtime, self.to.row(y, z)?, &self.element, width)?;
            }
        }
        Ok(())
    }
}

/// Fills `count` elements of the pattern's size.
fn fill(runtime: &mut Runtime, to: u64, pattern: &[u8], count: usize) -> Outcome {
    let size = pattern.len().checked_mul(count).ok_or(INVALID_VALUE)?;
    if size == 0 {
        return Ok(());
    }
    let on_device = runtime.is_device_memory(to);
    if on_device {
        check_range(runtime, to, size)?;
    } else if to == 0 || runtime.host.range_of(to).is_none_or(|range| size as u64 > range.size - (to - range.address)) {
        // Filling is an operation of the device, which sees no other host memory.
        return Err(INVALID_VALUE);
    }
    let whole = CHUNK - CHUNK % pattern.len();
    let chunk: Vec<u8> = pattern.iter().copied().cycle().take(size.min(whole)).collect();
    for start in (0..size).step_by(whole) {
        let part = &chunk[..whole.min(size - start)];
        if on_device {
            runtime.device()?.write(to + start as u64, part).map_err(|_| INVALID_VALUE)?;
        } else {
            raw::write(to as usize + start, part)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_move_by_bytes_rows_and_planes() {
        let side = Side::new(1000, 256, 3);
        assert_eq!(side.at(5, 2, 1).unwrap().start, 1000 + 5 + 256 * (2 + 3));
        assert_eq!(side.at(0, usize::MAX, 0), Err(INVALID_VALUE));
    }
}
