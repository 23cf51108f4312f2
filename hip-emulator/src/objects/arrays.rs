//! Arrays: device memory whose elements have a format and whose layout is the library's.

use std::ffi::{c_int, c_uint};

use crate::copies::Side;
use crate::extents::Extent;
use crate::status::*;

/// `hipChannelFormatKind`.
pub(crate) const KIND_SIGNED: c_int = 0;
pub(crate) const KIND_UNSIGNED: c_int = 1;
pub(crate) const KIND_FLOAT: c_int = 2;

/// `hipArrayLayered`: the depth is a number of layers.
pub(crate) const LAYERED: c_uint = 1;
/// `hipArrayCubemap`: the layers are faces.
pub(crate) const CUBEMAP: c_uint = 4;

/// `hipChannelFormatDesc`: bits of each component and their kind.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChannelFormat {
    pub(crate) bits: [c_int; 4],
    pub(crate) kind: c_int,
}

/// `hipArray_Format` by kind and bits of a component.
const FORMATS: &[(c_int, c_int, c_int)] = &[
    (0x01, KIND_UNSIGNED, 8),
    (0x02, KIND_UNSIGNED, 16),
    (0x03, KIND_UNSIGNED, 32),
    (0x08, KIND_SIGNED, 8),
    (0x09, KIND_SIGNED, 16),
    (0x0a, KIND_SIGNED, 32),
    (0x10, KIND_FLOAT, 16),
    (0x20, KIND_FLOAT, 32),
];

impl ChannelFormat {
    /// Components that have bits: they come first and are equally wide.
    pub(crate) fn components(&self) -> Outcome<usize> {
        let count = self.bits.iter().take_while(|bits| **bits != 0).count();
        let equal = self.bits[..count].iter().all(|bits| *bits == self.bits[0]);
        let known = FORMATS.iter().any(|(_, kind, bits)| (*kind, *bits) == (self.kind, self.bits[0]));
        if matches!(count, 1 | 2 | 4) && equal && known && self.bits[count..].iter().all(|bits| *bits == 0) {
            Ok(count)
        } else {
            Err(INVALID_VALUE)
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bits.iter().map(|bits| *bits as usize).sum::<usize>() / 8
    }

    pub(crate) fn of(format: c_int, components: c_uint) -> Outcome<Self> {
        let (_, kind, bits) = *FORMATS.iter().find(|(known, ..)| *known == format).ok_or(INVALID_VALUE)?;
        let found = ChannelFormat { bits: [0, 1, 2, 3].map(|n| if n < components { bits } else { 0 }), kind };
        if found.components()? == components as usize { Ok(found) } else { Err(INVALID_VALUE) }
    }

    pub(crate) fn format(&self) -> c_int {
        FORMATS
            .iter()
            .find(|(_, kind, bits)| (*kind, *bits) == (self.kind, self.bits[0]))
            .map_or(0, |(format, ..)| *format)
    }
}

/// An array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Array {
    pub(crate) address: u64,
    pub(crate) pitch: usize,
    /// Bytes from plane to plane.
    pub(crate) plane: usize,
    pub(crate) format: ChannelFormat,
    /// In elements, as the program said it: 0 for a dimension that it lacks.
    pub(crate) extent: Extent,
    pub(crate) flags: c_uint,
}

impl Array {
    pub(crate) fn rows(&self) -> usize {
        self.extent.height.max(1)
    }

    pub(crate) fn side(&self) -> Side {
        Side { plane: self.plane, ..Side::new(self.address, self.pitch, self.rows()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_go_both_ways() {
        for (format, ..) in FORMATS {
            for components in [1, 2, 4] {
                let found = ChannelFormat::of(*format, components).unwrap();
                assert_eq!((found.format(), found.components()), (*format, Ok(components as usize)));
            }
            assert_eq!(ChannelFormat::of(*format, 3), Err(INVALID_VALUE));
        }
        assert_eq!(ChannelFormat::of(7, 1), Err(INVALID_VALUE));
        assert_eq!(ChannelFormat { bits: [8, 8, 0, 8], kind: KIND_SIGNED }.components(), Err(INVALID_VALUE));
        assert_eq!(ChannelFormat { bits: [8, 16, 0, 0], kind: KIND_SIGNED }.components(), Err(INVALID_VALUE));
    }
}
