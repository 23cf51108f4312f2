//! The entry points for arrays.

use std::ffi::{c_int, c_uint, c_void};

use crate::copies::{BoxCopy, Side, check_kind};
use crate::entry_point::entry_points;
use crate::extents::Extent;
use crate::handles::handle;
use crate::lock::runtime;
use crate::memory;
use crate::objects::arrays::{Array, CUBEMAP, ChannelFormat, LAYERED};
use crate::properties::{TEXTURE_DEPTH, TEXTURE_SIDE};
use crate::raw;
use crate::status::*;
use crate::stream_op::StreamOp;
use crate::submit::{do_now, submit};
use crate::tasks::wait_for_all;

/// Flags that an array may have: layers, loads and stores by surfaces, faces, gathering.
const FLAGS: c_uint = LAYERED | 2 | CUBEMAP | 8;

/// No array has more layers.
const MOST_LAYERS: usize = 8192;

pub(crate) fn find(array: usize) -> Outcome<Array> {
    runtime().arrays.get(&array).copied().ok_or(INVALID_HANDLE)
}

/// Where an array's elements are, and their bytes.
pub(crate) fn side(array: usize) -> Outcome<(Side, usize)> {
    let array = find(array)?;
    Ok((array.side(), array.format.bytes()))
}

fn create(out: *mut usize, format: ChannelFormat, extent: Extent, flags: c_uint) -> Outcome {
    format.components()?;
    if out.is_null() || flags & !FLAGS != 0 || !fits(extent, flags) {
        return Err(INVALID_VALUE);
    }
    let (pitch, plane) = layout(format.bytes(), extent)?;
    let address = memory::allocate(plane.checked_mul(extent.depth.max(1)).ok_or(OUT_OF_MEMORY)?)?;
    let array = handle();
    runtime().arrays.insert(array, Array { address, pitch, plane, format, extent, flags });
    raw::store(out, array)
}

/// Whether the device has arrays of a size.
fn fits(Extent { width, height, depth }: Extent, flags: c_uint) -> bool {
    let side = |size: usize, most: c_int| size <= most as usize;
    let layers = flags & (LAYERED | CUBEMAP) != 0;
    width > 0
        && (height > 0 || depth == 0 || layers)
        && side(width, TEXTURE_SIDE)
        && side(height, TEXTURE_SIDE)
        && if layers { depth <= MOST_LAYERS } else { side(depth, TEXTURE_DEPTH) }
}

/// Bytes from row to row and from plane to plane: as the device's images have them.
fn layout(element: usize, extent: Extent) -> Outcome<(usize, usize)> {
    let width = extent.width.checked_mul(element).ok_or(OUT_OF_MEMORY)?;
    let rows = extent.height.max(1);
    let plain = || -> Outcome<(usize, usize)> {
        let pitch = memory::pitch(width)?;
        Ok((pitch, pitch.checked_mul(rows).ok_or(OUT_OF_MEMORY)?))
    };
    let target = runtime().device()?.target();
    let Some(images) = target.image_descriptors().filter(|_| width.max(rows) < LARGEST) else { return plain() };
    let (row, plane) = (
        images.row_bytes(extent.width as u64, element as u64),
        images.slice_bytes(extent.width as u64, rows as u64, element as u64),
    );
    Ok((row as usize, plane as usize))
}

/// No image is as wide or as high, in bytes.
const LARGEST: usize = 1 << 30;

fn destroy(array: usize) -> Outcome {
    wait_for_all()?;
    let removed = runtime().arrays.remove(&array).ok_or(CONTEXT_IS_DESTROYED)?;
    runtime().device()?.free(removed.address).map_err(|_| INVALID_VALUE)
}

/// `HIP_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Descriptor2D {
    width: usize,
    height: usize,
    format: c_int,
    components: c_uint,
}

/// `HIP_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Descriptor3D {
    width: usize,
    height: usize,
    depth: usize,
    format: c_int,
    components: c_uint,
    flags: c_uint,
}

/// Rows between an array and other memory; offsets are in bytes and rows.
struct Rows {
    array: usize,
    x: usize,
    y: usize,
    memory: u64,
    pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
}

impl Rows {
    fn copy(&self, to_array: bool) -> Outcome<StreamOp> {
        check_kind(self.kind)?;
        let array = find(self.array)?;
        let right = self.x.checked_add(self.width).ok_or(INVALID_VALUE)?;
        let below = self.y.checked_add(self.height).ok_or(INVALID_VALUE)?;
        if right > array.extent.width * array.format.bytes() || below > array.rows() * array.extent.depth.max(1) {
            return Err(INVALID_VALUE);
        }
        let (plane, y) = (self.y / array.rows(), self.y % array.rows());
        if array.plane != array.pitch * array.rows() && y + self.height > array.rows() {
            return Err(INVALID_VALUE);
        }
        let inside = array.side().at(self.x, y, plane)?;
        let outside = Side::new(self.memory, self.pitch, self.height);
        let (to, from) = if to_array { (inside, outside) } else { (outside, inside) };
        let extent = Extent { width: self.width, height: self.height, depth: 1 };
        Ok(StreamOp::Copy(BoxCopy { to, from, extent, kind: self.kind }))
    }
}

/// Bytes between an array and other memory, from element to element across the ends of rows.
fn bytes(array: usize, offset: usize, memory: u64, size: usize, to_array: bool) -> Outcome<Vec<StreamOp>> {
    let of = find(array)?;
    let row = of.extent.width * of.format.bytes();
    let mut operations = Vec::new();
    let mut done = 0;
    while done < size {
        let at = offset.checked_add(done).ok_or(INVALID_VALUE)?;
        let width = (row - at % row).min(size - done);
        let part = Rows {
            array,
            x: at % row,
            y: at / row,
            memory: memory + done as u64,
            pitch: width,
            width,
            height: 1,
            kind: 4,
        };
        operations.push(part.copy(to_array)?);
        done += width;
    }
    Ok(operations)
}

fn bytes_now(array: usize, offset: usize, memory: u64, size: usize, to_array: bool) -> Outcome {
    bytes(array, offset, memory, size, to_array)?.iter().try_for_each(do_now)
}

fn bytes_later(array: usize, offset: usize, memory: u64, size: usize, to_array: bool, stream: *mut c_void) -> Outcome {
    bytes(array, offset, memory, size, to_array)?.into_iter().try_for_each(|part| submit(stream, part))
}

fn start(array: usize, x: usize, y: usize) -> Outcome<usize> {
    let array = find(array)?;
    y.checked_mul(array.extent.width * array.format.bytes())
        .and_then(|offset| offset.checked_add(x))
        .ok_or(INVALID_VALUE)
}

entry_points! {
    /// Creates a one- or two-dimensional array.
    fn hipMallocArray(out: *mut usize, format: *const ChannelFormat, width: usize, height: usize, flags: c_uint) {
        create(out, raw::load(format)?, Extent { width, height, depth: 0 }, flags)
    }

    /// Creates an array of up to three dimensions.
    fn hipMalloc3DArray(out: *mut usize, format: *const ChannelFormat, extent: Extent, flags: c_uint) {
        create(out, raw::load(format)?, extent, flags)
    }

    /// Creates an array by the driver's description.
    fn hipArrayCreate(out: *mut usize, descriptor: *const c_void) {
        let of = raw::load(descriptor.cast::<Descriptor2D>())?;
        let extent = Extent { width: of.width, height: of.height, depth: 0 };
        create(out, ChannelFormat::of(of.format, of.components)?, extent, 0)
    }

    /// Creates an array by the driver's description.
    fn hipArray3DCreate(out: *mut usize, descriptor: *const c_void) {
        let of = raw::load(descriptor.cast::<Descriptor3D>())?;
        let extent = Extent { width: of.width, height: of.height, depth: of.depth };
        create(out, ChannelFormat::of(of.format, of.components)?, extent, of.flags)
    }

    /// Ends an array.
    fn hipFreeArray / hipArrayDestroy(array: usize) {
        if array == 0 { Err(INVALID_VALUE) } else { destroy(array) }
    }

    /// Format, size and flags of an array.
    fn hipArrayGetInfo(format: *mut ChannelFormat, extent: *mut Extent, flags: *mut c_uint, array: usize) {
        let array = find(array)?;
        raw::store_optional(format, array.format);
        raw::store_optional(extent, array.extent);
        raw::store_optional(flags, array.flags);
        Ok(())
    }

    /// The driver's description of an array.
    fn hipArrayGetDescriptor(out: *mut c_void, array: usize) {
        let of = find(array)?;
        let (format, components) = (of.format.format(), of.format.components()? as c_uint);
        raw::store(out.cast(), Descriptor2D { width: of.extent.width, height: of.extent.height, format, components })
    }

    /// The driver's description of an array.
    fn hipArray3DGetDescriptor(out: *mut c_void, array: usize) {
        let of = find(array)?;
        let (format, components) = (of.format.format(), of.format.components()? as c_uint);
        let Extent { width, height, depth } = of.extent;
        raw::store(out.cast(), Descriptor3D { width, height, depth, format, components, flags: of.flags })
    }

    /// Format of an array's elements.
    fn hipGetChannelDesc(out: *mut ChannelFormat, array: usize) {
        raw::store(out, find(array)?.format)
    }

    /// Copies rows into an array.
    fn hipMemcpy2DToArray / hipMemcpy2DToArray_spt(
        array: usize, x: usize, y: usize, memory: u64, pitch: usize, width: usize, height: usize, kind: c_int,
    ) {
        do_now(&Rows { array, x, y, memory, pitch, width, height, kind }.copy(true)?)
    }

    /// Copies rows into an array in stream order.
    fn hipMemcpy2DToArrayAsync / hipMemcpy2DToArrayAsync_spt(
        array: usize, x: usize, y: usize, memory: u64, pitch: usize, width: usize, height: usize, kind: c_int,
            stream: *mut c_void,
    ) {
        submit(stream, Rows { array, x, y, memory, pitch, width, height, kind }.copy(true)?)
    }

    /// Copies rows out of an array.
    fn hipMemcpy2DFromArray / hipMemcpy2DFromArray_spt(
        memory: u64, pitch: usize, array: usize, x: usize, y: usize, width: usize, height: usize, kind: c_int,
    ) {
        do_now(&Rows { array, x, y, memory, pitch, width, height, kind }.copy(false)?)
    }

    /// Copies rows out of an array in stream order.
    fn hipMemcpy2DFromArrayAsync / hipMemcpy2DFromArrayAsync_spt(
        memory: u64, pitch: usize, array: usize, x: usize, y: usize, width: usize, height: usize, kind: c_int,
            stream: *mut c_void,
    ) {
        submit(stream, Rows { array, x, y, memory, pitch, width, height, kind }.copy(false)?)
    }

    /// Copies rows from an array to an array.
    fn hipMemcpy2DArrayToArray(
        to: usize, to_x: usize, to_y: usize, from: usize, from_x: usize, from_y: usize, width: usize, height: usize,
            kind: c_int,
    ) {
        let array = find(from)?;
        let side = array.side().at(from_x, from_y, 0)?;
        // Checks the source's bounds.
        Rows { array: from, x: from_x, y: from_y, memory: 1, pitch: width, width, height, kind }.copy(false)?;
        let Side { start: memory, pitch, .. } = side;
        do_now(&Rows { array: to, x: to_x, y: to_y, memory, pitch, width, height, kind }.copy(true)?)
    }

    /// Copies bytes into an array.
    fn hipMemcpyToArray(array: usize, x: usize, y: usize, memory: u64, size: usize, kind: c_int) {
        check_kind(kind)?;
        bytes_now(array, start(array, x, y)?, memory, size, true)
    }

    /// Copies bytes out of an array.
    fn hipMemcpyFromArray / hipMemcpyFromArray_spt(
        memory: u64, array: usize, x: usize, y: usize, size: usize, kind: c_int
    ) {
        check_kind(kind)?;
        bytes_now(array, start(array, x, y)?, memory, size, false)
    }

    /// Copies bytes into an array.
    fn hipMemcpyHtoA / hipMemcpyDtoA(array: usize, offset: usize, memory: u64, size: usize) {
        bytes_now(array, offset, memory, size, true)
    }

    /// Copies bytes out of an array.
    fn hipMemcpyAtoH / hipMemcpyAtoD(memory: u64, array: usize, offset: usize, size: usize) {
        bytes_now(array, offset, memory, size, false)
    }

    /// Copies bytes into an array in stream order.
    fn hipMemcpyHtoAAsync(array: usize, offset: usize, memory: u64, size: usize, stream: *mut c_void) {
        bytes_later(array, offset, memory, size, true, stream)
    }

    /// Copies bytes out of an array in stream order.
    fn hipMemcpyAtoHAsync(memory: u64, array: usize, offset: usize, size: usize, stream: *mut c_void) {
        bytes_later(array, offset, memory, size, false, stream)
    }
}

/// Describes the elements of an array.
#[unsafe(no_mangle)]
extern "C" fn hipCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, kind: c_int) -> ChannelFormat {
    ChannelFormat { bits: [x, y, z, w], kind }
}
