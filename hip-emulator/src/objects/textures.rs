//! What texture objects are made of.

use std::ffi::{c_int, c_uint};

use super::arrays::{ChannelFormat, KIND_FLOAT, KIND_SIGNED, KIND_UNSIGNED};
use crate::status::*;

/// `hipResourceDesc`: the union's parts lie over each other.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resource {
    pub(crate) kind: c_int,
    /// The array, or the address.
    pub(crate) place: u64,
    pub(crate) format: ChannelFormat,
    /// Bytes of plain memory, or the width of its rows in elements.
    pub(crate) size: usize,
    pub(crate) height: usize,
    pub(crate) pitch: usize,
}

/// `hipTextureDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sampled {
    pub(crate) address_mode: [c_int; 3],
    pub(crate) filter_mode: c_int,
    pub(crate) read_mode: c_int,
    pub(crate) srgb: c_int,
    pub(crate) border: [f32; 4],
    pub(crate) normalized: c_int,
    pub(crate) anisotropy: c_uint,
    pub(crate) mipmap_filter: c_int,
    pub(crate) mipmap_bias: f32,
    pub(crate) mipmap_clamp: [f32; 2],
}

/// `hipResourceViewDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct View {
    format: c_int,
    size: [usize; 3],
    mip_levels: [c_uint; 2],
    layers: [c_uint; 2],
}

/// What a texture object was made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Texture {
    pub(crate) resource: Resource,
    pub(crate) sampled: Sampled,
    pub(crate) view: View,
}

impl View {
    /// The format that a view gives elements (`hipResourceViewFormat`): three counts of components of each kind.
    pub(crate) fn channels(&self) -> Outcome<ChannelFormat> {
        const KINDS: [(c_int, c_int); 8] = [
            (KIND_UNSIGNED, 8),
            (KIND_SIGNED, 8),
            (KIND_UNSIGNED, 16),
            (KIND_SIGNED, 16),
            (KIND_UNSIGNED, 32),
            (KIND_SIGNED, 32),
            (KIND_FLOAT, 16),
            (KIND_FLOAT, 32),
        ];
        let number = usize::try_from(self.format - 1).map_err(|_| INVALID_VALUE)?;
        // After them are compressed ones.
        let (kind, bits) = *KINDS.get(number / 3).ok_or(NOT_SUPPORTED)?;
        let components = [1, 2, 4][number % 3];
        Ok(ChannelFormat { bits: [0, 1, 2, 3].map(|n| if n < components { bits } else { 0 }), kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_those_of_the_headers() {
        assert_eq!((size_of::<Resource>(), size_of::<Sampled>(), size_of::<View>()), (64, 64, 48));
    }

    #[test]
    fn formats_of_views() {
        let format = |number| View { format: number, ..View::default() }.channels();
        assert_eq!(format(3), Ok(ChannelFormat { bits: [8; 4], kind: KIND_UNSIGNED }));
        assert_eq!(format(0x17), Ok(ChannelFormat { bits: [32, 32, 0, 0], kind: KIND_FLOAT }));
        assert_eq!((format(0), format(0x19)), (Err(INVALID_VALUE), Err(NOT_SUPPORTED)));
    }
}
