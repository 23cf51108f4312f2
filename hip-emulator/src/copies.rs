//! Boxes of memory that are copied and filled: rows of bytes with a pitch, in planes.

use std::ffi::c_int;
use std::ops::Range;

use wavetap::emulator::HostAccess;

use crate::extents::{Extent, PitchedPointer};
use crate::raw;
use crate::status::*;

/// `hipMemcpyDefault`, the largest copy kind; what is copied to what is told by the addresses.
const LAST_KIND: c_int = 4;

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

    pub(crate) fn row(self, y: usize, z: usize) -> Outcome<u64> {
        let (plane, row) = (z.checked_mul(self.plane), y.checked_mul(self.pitch));
        let offset = plane.zip(row).and_then(|(plane, row)| plane.checked_add(row));
        offset.and_then(|offset| self.start.checked_add(offset as u64)).ok_or(INVALID_VALUE)
    }

    /// The bytes of a box whose width is in bytes.
    fn ranges(self, Extent { width, height, depth }: Extent) -> Vec<Range<u64>> {
        let range = |start: u64, size: usize| start..start.saturating_add(size as u64);
        let is_one = (height <= 1 || self.pitch == width) && (depth <= 1 || self.plane == width.saturating_mul(height));
        if is_one {
            return vec![range(self.start, width.saturating_mul(height).saturating_mul(depth))];
        }
        let rows = (0..depth).flat_map(|z| (0..height).map(move |y| (y, z)));
        rows.filter_map(|(y, z)| Some(range(self.row(y, z).ok()?, width))).collect()
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

    /// What it reads and writes.
    pub(crate) fn accesses(&self) -> Vec<HostAccess> {
        let of = |side: Side, write| side.ranges(self.extent).into_iter().map(move |range| HostAccess { range, write });
        of(self.from, false).chain(of(self.to, true)).collect()
    }

    /// The same with what [`BoxCopy::gather`] gave as its source.
    pub(crate) fn with_source(&self, bytes: &[u8]) -> Self {
        BoxCopy { from: Side::new(bytes.as_ptr() as u64, self.extent.width, self.extent.height), ..*self }
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

    /// What it writes.
    pub(crate) fn accesses(&self) -> Vec<HostAccess> {
        let extent = Extent { width: self.extent.width.saturating_mul(self.element.len()), ..self.extent };
        self.to.ranges(extent).into_iter().map(|range| HostAccess { range, write: true }).collect()
    }
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
