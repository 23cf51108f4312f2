//! Texture and surface objects.

use std::ffi::{c_int, c_uint, c_void};

use wavetap::isa::Target;

use crate::arrays;
use crate::entry_point::entry_points;
use crate::image_objects::{self, Elements, Sampling, WRAP};
use crate::lock::runtime;
use crate::objects::arrays::ChannelFormat;
use crate::objects::textures::{Resource, Sampled, Texture, View};
use crate::properties::{TEXTURE_ALIGNMENT, TEXTURE_LINEAR, TEXTURE_SIDE};
use crate::raw;
use crate::status::*;
use crate::tasks::wait_for_all;

/// `hipResourceType`.
const ARRAY: c_int = 0;
const MIPMAPPED: c_int = 1;
const LINEAR: c_int = 2;
const PITCH_2D: c_int = 3;

/// `hipFilterModeLinear` and `hipReadModeNormalizedFloat`.
const FILTER_LINEAR: c_int = 1;
const READ_NORMALIZED: c_int = 1;

/// Refuses what the device, or HIP on any of them, does not have.
fn check(target: Target, resource: &Resource, sampled: &Sampled) -> Outcome {
    let images = image_objects::images(target)?;
    if sampled.anisotropy != 0 || sampled.mipmap_bias != 0.0 || sampled.srgb != 0 || resource.kind == MIPMAPPED {
        return Err(NOT_SUPPORTED);
    }
    let aligned = |address: u64| address != 0 && address.is_multiple_of(TEXTURE_ALIGNMENT as u64);
    match resource.kind {
        ARRAY => {
            let array = arrays::find(resource.place as usize).map_err(|_| INVALID_VALUE)?;
            if array.extent.depth > 0 && sampled.filter_mode == FILTER_LINEAR && !images.filters_depth {
                Err(NOT_SUPPORTED)
            } else {
                Ok(())
            }
        }
        LINEAR
            if aligned(resource.place)
                && (1..TEXTURE_LINEAR as usize).contains(&(resource.size / resource.format.bytes().max(1))) =>
        {
            Ok(())
        }
        PITCH_2D
            if aligned(resource.place)
                && resource.size.min(resource.height) > 0
                && resource.size.max(resource.height) < TEXTURE_SIDE as usize
                && resource.pitch.is_multiple_of(TEXTURE_ALIGNMENT) =>
        {
            Ok(())
        }
        _ => Err(INVALID_VALUE),
    }
}

/// Puts an object's dwords where kernels read them.
fn place(words: &[u32]) -> Outcome<u64> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut runtime = runtime();
    let address = runtime.allocate(bytes.len() as u64)?;
    runtime.device()?.write(address, &bytes).map_err(|_| OUT_OF_MEMORY)?;
    Ok(address)
}

/// Makes a texture object; gives its address.
pub(crate) fn create(resource: Resource, sampled: Sampled, view: Option<View>) -> Outcome<u64> {
    let target = runtime().device()?.target();
    check(target, &resource, &sampled)?;
    if view.is_some() && resource.kind != ARRAY {
        return Err(INVALID_VALUE);
    }
    let read = |format| Elements { format, normalized: sampled.read_mode == READ_NORMALIZED };
    let image = match resource.kind {
        ARRAY => {
            let array = arrays::find(resource.place as usize).map_err(|_| INVALID_VALUE)?;
            let format = view.map_or(Ok(array.format), |view| view.channels())?;
            if format.bytes() != array.format.bytes() {
                return Err(INVALID_VALUE);
            }
            image_objects::array(target, &array, read(format))?
        }
        LINEAR => {
            resource.format.components()?;
            image_objects::linear(target, resource.place, resource.size, read(resource.format))?
        }
        _ => {
            resource.format.components()?;
            image_objects::rows(
                target,
                resource.place,
                (resource.size, resource.height),
                resource.pitch,
                read(resource.format),
            )?
        }
    };
    // Plain memory is not filtered.
    let over_rows = resource.kind != LINEAR;
    let sampling = Sampling {
        // One mode for all coordinates, as HIP has it.
        address_mode: if over_rows { sampled.address_mode[0] } else { WRAP },
        linear: over_rows && sampled.filter_mode == FILTER_LINEAR,
        normalized: sampled.normalized != 0,
    };
    let sampler = image_objects::sampler(target, sampling)?;
    let address = place(&[&image[..], &sampler[..]].concat())?;
    runtime().textures.insert(address, Texture { resource, sampled, view: view.unwrap_or_default() });
    Ok(address)
}

/// Ends a texture object; null is none.
pub(crate) fn destroy(texture: u64) -> Outcome {
    if texture == 0 {
        return Ok(());
    }
    image_objects::images(runtime().device()?.target())?;
    wait_for_all()?;
    let mut runtime = runtime();
    runtime.textures.remove(&texture).ok_or(INVALID_VALUE)?;
    runtime.free(texture)
}

fn find(texture: u64) -> Outcome<Texture> {
    if texture == 0 {
        return Err(INVALID_VALUE);
    }
    image_objects::images(runtime().device()?.target())?;
    runtime().textures.get(&texture).copied().ok_or(INVALID_VALUE)
}

/// `HIP_RESOURCE_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DriverResource {
    kind: c_int,
    place: u64,
    format: c_int,
    components: c_uint,
    size: usize,
    height: usize,
    pitch: usize,
    reserved: [usize; 11],
    flags: c_uint,
}

/// `HIP_TEXTURE_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DriverSampled {
    address_mode: [c_int; 3],
    filter_mode: c_int,
    flags: c_uint,
    anisotropy: c_uint,
    mipmap_filter: c_int,
    mipmap_bias: f32,
    mipmap_clamp: [f32; 2],
    border: [f32; 4],
    reserved: [c_int; 12],
}

/// `HIP_TRSF_READ_AS_INTEGER`, `HIP_TRSF_NORMALIZED_COORDINATES`, `HIP_TRSF_SRGB`.
const AS_INTEGER: c_uint = 1;
const NORMALIZED: c_uint = 2;
const SRGB: c_uint = 16;

impl DriverResource {
    fn resource(&self) -> Outcome<Resource> {
        let format = match self.kind {
            LINEAR | PITCH_2D => ChannelFormat::of(self.format, self.components)?,
            _ => ChannelFormat::default(),
        };
        Ok(Resource {
            kind: self.kind,
            place: self.place,
            format,
            size: self.size,
            height: self.height,
            pitch: self.pitch,
        })
    }

    fn of(from: &Resource) -> Self {
        let Resource { kind, place, format, size, height, pitch } = *from;
        let components = format.components().unwrap_or(0) as c_uint;
        DriverResource {
            kind,
            place,
            format: format.format(),
            components,
            size,
            height,
            pitch,
            reserved: [0; 11],
            flags: 0,
        }
    }
}

impl DriverSampled {
    fn sampled(&self) -> Sampled {
        Sampled {
            address_mode: self.address_mode,
            filter_mode: self.filter_mode,
            read_mode: if self.flags & AS_INTEGER != 0 { 0 } else { READ_NORMALIZED },
            srgb: c_int::from(self.flags & SRGB != 0),
            border: self.border,
            normalized: c_int::from(self.flags & NORMALIZED != 0),
            anisotropy: self.anisotropy,
            mipmap_filter: self.mipmap_filter,
            mipmap_bias: self.mipmap_bias,
            mipmap_clamp: self.mipmap_clamp,
        }
    }

    fn of(from: &Sampled) -> Self {
        let flag = |set: bool, flag| if set { flag } else { 0 };
        let flags = flag(from.read_mode != READ_NORMALIZED, AS_INTEGER)
            | flag(from.normalized != 0, NORMALIZED)
            | flag(from.srgb != 0, SRGB);
        DriverSampled {
            address_mode: from.address_mode,
            filter_mode: from.filter_mode,
            flags,
            anisotropy: from.anisotropy,
            mipmap_filter: from.mipmap_filter,
            mipmap_bias: from.mipmap_bias,
            mipmap_clamp: from.mipmap_clamp,
            border: from.border,
            reserved: [0; 12],
        }
    }
}

fn view(view: *const c_void) -> Outcome<Option<View>> {
    if view.is_null() { Ok(None) } else { raw::load(view.cast()).map(Some) }
}

entry_points! {
    /// Makes a texture object.
    fn hipCreateTextureObject(
        out: *mut u64, resource: *const c_void, texture: *const c_void, resource_view: *const c_void
    ) {
        image_objects::images(runtime().device()?.target())?;
        let object = create(raw::load(resource.cast())?, raw::load(texture.cast())?, view(resource_view)?)?;
        raw::store(out, object)
    }

    /// Ends a texture object.
    fn hipDestroyTextureObject / hipTexObjectDestroy(texture: u64) {
        destroy(texture)
    }

    /// What a texture object was made over.
    fn hipGetTextureObjectResourceDesc(out: *mut c_void, texture: u64) {
        raw::store(out.cast(), find(texture)?.resource)
    }

    /// How a texture object samples.
    fn hipGetTextureObjectTextureDesc(out: *mut c_void, texture: u64) {
        raw::store(out.cast(), find(texture)?.sampled)
    }

    /// How a texture object sees its array.
    fn hipGetTextureObjectResourceViewDesc(out: *mut c_void, texture: u64) {
        raw::store(out.cast(), find(texture)?.view)
    }

    /// Makes a texture object by the driver's description.
    fn hipTexObjectCreate(
        out: *mut u64, resource: *const c_void, texture: *const c_void, resource_view: *const c_void
    ) {
        image_objects::images(runtime().device()?.target())?;
        let resource = raw::load(resource.cast::<DriverResource>())?.resource()?;
        let object = create(resource, raw::load(texture.cast::<DriverSampled>())?.sampled(), view(resource_view)?)?;
        raw::store(out, object)
    }

    /// What a texture object was made over, as the driver describes it.
    fn hipTexObjectGetResourceDesc(out: *mut c_void, texture: u64) {
        raw::store(out.cast(), DriverResource::of(&find(texture)?.resource))
    }

    /// How a texture object samples, as the driver describes it.
    fn hipTexObjectGetTextureDesc(out: *mut c_void, texture: u64) {
        raw::store(out.cast(), DriverSampled::of(&find(texture)?.sampled))
    }

    /// How a texture object sees its array.
    fn hipTexObjectGetResourceViewDesc(out: *mut c_void, texture: u64) {
        raw::store(out.cast(), find(texture)?.view)
    }

    /// Makes a surface object over an array.
    fn hipCreateSurfaceObject / _Z22hipCreateSurfaceObjectPP13__hip_surfacePK15hipResourceDesc(
        out: *mut u64, resource: *const c_void
    ) {
        let target = runtime().device()?.target();
        image_objects::images(target)?;
        let resource = raw::load(resource.cast::<Resource>())?;
        if resource.kind != ARRAY || out.is_null() {
            return Err(INVALID_VALUE);
        }
        let array = arrays::find(resource.place as usize).map_err(|_| INVALID_VALUE)?;
        let words = image_objects::array(target, &array, Elements { format: array.format, normalized: false })?;
        let address = place(&words)?;
        runtime().surfaces.insert(address, resource.place as usize);
        raw::store(out, address)
    }

    /// Ends a surface object.
    fn hipDestroySurfaceObject / _Z23hipDestroySurfaceObjectP13__hip_surface(surface: u64) {
        if surface == 0 {
            return Ok(());
        }
        wait_for_all()?;
        let mut runtime = runtime();
        runtime.surfaces.remove(&surface).ok_or(INVALID_VALUE)?;
        runtime.free(surface)
    }

    /// Elements that a texture over plain memory may have.
    fn hipDeviceGetTexture1DLinearMaxWidth(out: *mut usize, _format: *const ChannelFormat, device: c_int) {
        if device == 0 { raw::store(out, TEXTURE_LINEAR as usize) } else { Err(INVALID_DEVICE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_those_of_the_headers() {
        assert_eq!((size_of::<DriverResource>(), size_of::<DriverSampled>()), (144, 104));
    }
}
