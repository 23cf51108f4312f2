//! Texture references: variables that say which texture object they are bound to, on the host and on the device.

use std::ffi::{c_int, c_uint, c_void};

use crate::arrays;
use crate::entry_point::entry_points;
use crate::image_objects;
use crate::lock::runtime;
use crate::objects::arrays::ChannelFormat;
use crate::objects::textures::{Resource, Sampled};
use crate::raw;
use crate::status::*;
use crate::symbols;
use crate::textures::{create, destroy};

/// `textureReference`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Reference {
    normalized: c_int,
    read_mode: c_int,
    filter_mode: c_int,
    address_mode: [c_int; 3],
    format: ChannelFormat,
    srgb: c_int,
    anisotropy: c_uint,
    mipmap_filter: c_int,
    mipmap_bias: f32,
    mipmap_clamp: [f32; 2],
    object: u64,
    components: c_int,
    array_format: c_int,
}

impl Reference {
    fn sampled(&self) -> Sampled {
        Sampled {
            address_mode: self.address_mode,
            filter_mode: self.filter_mode,
            read_mode: self.read_mode,
            srgb: self.srgb,
            normalized: self.normalized,
            anisotropy: self.anisotropy,
            mipmap_filter: self.mipmap_filter,
            mipmap_bias: self.mipmap_bias,
            mipmap_clamp: self.mipmap_clamp,
            ..Sampled::default()
        }
    }
}

/// Binds a reference to what an object is made over; what it was bound to before is let go.
fn bind(reference: *mut Reference, resource: Resource) -> Outcome {
    let mut found = raw::load(reference.cast_const())?;
    let (address, size) = symbols::find(reference as *const c_void)?;
    if size as usize != size_of::<Reference>() {
        return Err(INVALID_SYMBOL);
    }
    destroy(found.object)?;
    found.object = create(resource, found.sampled(), None)?;
    raw::store(reference, found)?;
    let mut bytes = vec![0; size_of::<Reference>()];
    raw::read(reference as usize, &mut bytes)?;
    // Kernels in flight have the old one.
    crate::tasks::wait_for_all()?;
    runtime().device()?.write(address, &bytes).map_err(|_| INVALID_SYMBOL)
}

/// Memory is bound as it is: the device's allocations are aligned.
fn offset(out: *mut usize) {
    raw::store_optional(out, 0);
}

entry_points! {
    /// Binds a texture reference to plain memory.
    fn hipBindTexture(
        out: *mut usize, reference: *mut c_void, address: u64, format: *const ChannelFormat, size: usize
    ) {
        let resource = Resource { kind: 2, place: address, format: raw::load(format)?, size, height: 0, pitch: 0 };
        offset(out);
        bind(reference.cast(), resource)
    }

    /// Binds a texture reference to rows of plain memory.
    fn hipBindTexture2D(
        out: *mut usize, reference: *mut c_void, address: u64, format: *const ChannelFormat, width: usize,
            height: usize, pitch: usize,
    ) {
        offset(out);
        let format = raw::load(format)?;
        bind(reference.cast(), Resource { kind: 3, place: address, format, size: width, height, pitch })
    }

    /// Binds a texture reference to an array.
    fn hipBindTextureToArray(reference: *mut c_void, array: usize, format: *const ChannelFormat) {
        // Elements keep the array's format; another one of the same size would be a view.
        if raw::load(format)? != arrays::find(array).map_err(|_| INVALID_VALUE)?.format {
            return Err(NOT_SUPPORTED);
        }
        let format = ChannelFormat::default();
        let resource = Resource { kind: 0, place: array as u64, format, size: 0, height: 0, pitch: 0 };
        bind(reference.cast(), resource)
    }

    /// Ends what a texture reference is bound to.
    fn hipUnbindTexture(reference: *mut c_void) {
        image_objects::images(runtime().device()?.target())?;
        let reference = reference.cast::<Reference>();
        let mut found = raw::load(reference.cast_const())?;
        destroy(found.object)?;
        found.object = 0;
        raw::store(reference, found)
    }

    /// The texture reference of a symbol: itself.
    fn hipGetTextureReference(out: *mut *const c_void, symbol: *const c_void) {
        image_objects::images(runtime().device()?.target())?;
        raw::store(out, symbol)
    }

    /// How far a texture reference begins after the memory that it is bound to.
    fn hipGetTextureAlignmentOffset(out: *mut usize, reference: *const c_void) {
        image_objects::images(runtime().device()?.target())?;
        if reference.is_null() { Err(INVALID_VALUE) } else { raw::store(out, 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_that_of_the_header() {
        assert_eq!((size_of::<Reference>(), std::mem::offset_of!(Reference, object)), (88, 72));
    }
}
