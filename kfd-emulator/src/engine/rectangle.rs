//! Copies of boxes of elements between linear memory: what the runtime makes of a copy with a pitch.

use wavetap_amdgpu::Target;
use wavetap_emulator::Device;

use super::sdma::{MOST_WORDS, OPERAND};
use super::{Trouble, at};

/// Words of the packet.
pub(crate) const WORDS: u64 = 13;

/// The largest element has 16 bytes.
const MOST_ELEMENT: u32 = 4;

/// One side of the copy. Offsets and pitches are in elements.
#[derive(Debug, PartialEq, Eq)]
struct Side {
    address: u64,
    offset: [u64; 3],
    row: u64,
    slice: u64,
}

/// A copy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    /// The base-2 logarithm of an element's bytes.
    element: u32,
    from: Side,
    to: Side,
    /// Elements, rows and slices.
    extent: [u64; 3],
}

/// Bits of the fields, which became wider and others narrower with gfx12: of an x or y, of a z, of a slice's pitch; and
/// where a row's pitch begins.
struct Widths {
    plane: u32,
    depth: u32,
    slice: u32,
    row: u32,
}

impl Widths {
    fn of(target: Target) -> Self {
        if target.generation() < 12 {
            Widths { plane: 14, depth: 11, slice: 28, row: 13 }
        } else {
            Widths { plane: 16, depth: 14, slice: 32, row: 16 }
        }
    }

    /// The x and the y in a word.
    fn plane(&self, word: u32) -> [u64; 2] {
        [field(word, 0, self.plane), field(word, 16, self.plane)]
    }

    /// A side: its address and three parameters.
    fn side(&self, words: &[u32]) -> Option<Side> {
        let &[low, high, plane, depth, slice, ..] = words else { return None };
        let [x, y] = self.plane(plane);
        Some(Side {
            address: u64::from(low) | u64::from(high) << 32,
            offset: [x, y, field(depth, 0, self.depth)],
            row: field(depth, self.row, 32 - self.row) + 1,
            slice: field(slice, 0, self.slice) + 1,
        })
    }
}

/// So many bits of a word, from one on.
fn field(word: u32, first: u32, bits: u32) -> u64 {
    u64::from(word >> first) & ((1 << bits) - 1)
}

impl Side {
    /// Where a row begins.
    fn row_at(&self, element: u32, y: u64, z: u64) -> u64 {
        let [x_offset, y_offset, z_offset] = self.offset;
        let elements = x_offset + (y + y_offset) * self.row + (z + z_offset) * self.slice;
        self.address.wrapping_add(elements << element)
    }
}

impl Copy {
    /// The copy that a packet for a device describes; none if its elements have no such size.
    pub(crate) fn of(words: &[u32; MOST_WORDS], target: Target) -> Option<Self> {
        let element = words[0] >> 29;
        if element > MOST_ELEMENT {
            return None;
        }
        let widths = Widths::of(target);
        let [x, y] = widths.plane(words[11]);
        Some(Copy {
            element,
            from: widths.side(&words[1..6])?,
            to: widths.side(&words[6..11])?,
            extent: [x + 1, y + 1, field(words[12], 0, widths.depth) + 1],
        })
    }

    /// Copies row after row.
    pub(crate) fn run(&self, device: &mut Device) -> Result<(), Trouble> {
        let [width, height, depth] = self.extent;
        let mut row = vec![0; (width << self.element) as usize];
        for (y, z) in (0..depth).flat_map(|z| (0..height).map(move |y| (y, z))) {
            let (from, to) = (self.from.row_at(self.element, y, z), self.to.row_at(self.element, y, z));
            at(device.read(from, &mut row), from, OPERAND)?;
            at(device.write(to, &row), to, OPERAND)?;
        }
        Ok(())
    }
}
