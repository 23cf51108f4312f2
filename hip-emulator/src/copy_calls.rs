//! The entry points that copy and fill memory.

use std::ffi::{c_int, c_void};

use crate::arrays;
use crate::copies::{BoxCopy, BoxFill, Side, check_kind};
use crate::entry_point::entry_points;
use crate::extents::{Copy3D, Extent, PitchedPointer, Position};
use crate::raw;
use crate::raw::loaded_as_hip_5;
use crate::status::*;
use crate::stream_op::StreamOp;
use crate::submit::{do_now, submit, submit_and_wait};

/// Copy kinds whose direction the call's name says.
const TO_DEVICE: c_int = 1;
const TO_HOST: c_int = 2;
const ON_DEVICE: c_int = 3;
/// `hipMemcpyDefault`.
const BY_ADDRESS: c_int = 4;

impl Copy3D {
    /// The box that is copied. Of an array positions and widths are in elements, of other memory in bytes.
    pub(crate) fn copy(&self) -> Outcome<BoxCopy> {
        check_kind(self.kind)?;
        // One of each, and no more.
        if [(self.from_array, self.from), (self.to_array, self.to)]
            .iter()
            .any(|(array, memory)| (*array == 0) == (memory.pointer == 0))
        {
            return Err(INVALID_VALUE);
        }
        let side = |array: usize, pointer: PitchedPointer, position: Position| -> Outcome<(Side, usize)> {
            if array == 0 {
                return Ok((Side::from(pointer).at(position.x, position.y, position.z)?, 1));
            }
            let (side, element) = arrays::side(array)?;
            let x = position.x.checked_mul(element).ok_or(INVALID_VALUE)?;
            Ok((side.at(x, position.y, position.z)?, element))
        };
        let (from, from_element) = side(self.from_array, self.from, self.from_position)?;
        let (to, to_element) = side(self.to_array, self.to, self.to_position)?;
        if self.from_array != 0 && self.to_array != 0 && from_element != to_element {
            return Err(INVALID_VALUE);
        }
        let width = self.extent.width.checked_mul(from_element.max(to_element)).ok_or(INVALID_VALUE)?;
        Ok(BoxCopy { to, from, extent: Extent { width, ..self.extent }, kind: self.kind })
    }

    /// What the program would say to get a copy.
    pub(crate) fn of(copy: &BoxCopy) -> Self {
        let pointer =
            |side: Side| PitchedPointer { pointer: side.start, pitch: side.pitch, x: copy.extent.width, y: side.rows };
        Copy3D {
            from: pointer(copy.from),
            to: pointer(copy.to),
            extent: copy.extent,
            kind: copy.kind,
            ..Copy3D::default()
        }
    }
}

/// The box of a `hipMemcpy3DParms`.
pub(crate) fn parameters_3d(parameters: *const c_void) -> Outcome<BoxCopy> {
    raw::load(parameters.cast::<Copy3D>())?.copy()
}

/// One side of a driver-style copy.
#[repr(C)]
#[derive(Clone, Copy)]
struct DriverSide2D {
    x: usize,
    y: usize,
    memory_type: c_int,
    host: u64,
    device: u64,
    array: usize,
    pitch: usize,
}

/// `hip_Memcpy2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DriverCopy2D {
    from: DriverSide2D,
    to: DriverSide2D,
    width: usize,
    height: usize,
}

/// One side of `HIP_MEMCPY3D`, whose numbers were `unsigned` before HIP 6.
#[repr(C)]
#[derive(Clone, Copy)]
struct DriverSide3D<N> {
    x: N,
    y: N,
    z: N,
    level: N,
    memory_type: c_int,
    host: u64,
    device: u64,
    array: usize,
    pitch: N,
    height: N,
}

/// `HIP_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DriverCopy3D<N> {
    from: DriverSide3D<N>,
    to: DriverSide3D<N>,
    width: N,
    height: N,
    depth: N,
}

/// Where a side of the driver's kind lies; x is in bytes.
fn driver_side(memory_type: c_int, [host, device, array]: [u64; 3], pitch: usize, rows: usize) -> Outcome<Side> {
    let types = if loaded_as_hip_5() { [0, 1, 2, 3] } else { [1, 2, 10, 11] };
    Ok(match types.iter().position(|known| *known == memory_type) {
        Some(0) => Side::new(host, pitch, rows),
        Some(2) => arrays::side(array as usize)?.0,
        Some(_) => Side::new(device, pitch, rows),
        // Managed memory since HIP 6.
        None if !loaded_as_hip_5() && memory_type == 3 => Side::new(device, pitch, rows),
        None => return Err(INVALID_VALUE),
    })
}

fn driver_2d(parameters: *const c_void) -> Outcome<StreamOp> {
    let copy = raw::load(parameters.cast::<DriverCopy2D>())?;
    let side = |side: DriverSide2D| {
        let pitch = if side.pitch == 0 { copy.width } else { side.pitch };
        driver_side(side.memory_type, [side.host, side.device, side.array as u64], pitch, copy.height)?
            .at(side.x, side.y, 0)
    };
    let extent = Extent { width: copy.width, height: copy.height, depth: 1 };
    Ok(StreamOp::Copy(BoxCopy { to: side(copy.to)?, from: side(copy.from)?, extent, kind: BY_ADDRESS }))
}

/// A [`DriverCopy3D`] of either form.
fn driver_3d_of<N: Copy + TryInto<usize>>(parameters: *const c_void) -> Outcome<BoxCopy> {
    let copy = raw::load(parameters.cast::<DriverCopy3D<N>>())?;
    let number = |value: N| value.try_into().map_err(|_| INVALID_VALUE);
    let extent = Extent { width: number(copy.width)?, height: number(copy.height)?, depth: number(copy.depth)? };
    let side = |side: DriverSide3D<N>| {
        let or = |value: usize, default: usize| if value == 0 { default } else { value };
        let (pitch, rows) = (or(number(side.pitch)?, extent.width), or(number(side.height)?, extent.height));
        driver_side(side.memory_type, [side.host, side.device, side.array as u64], pitch, rows)?.at(
            number(side.x)?,
            number(side.y)?,
            number(side.z)?,
        )
    };
    Ok(BoxCopy { to: side(copy.to)?, from: side(copy.from)?, extent, kind: BY_ADDRESS })
}

/// The box of a `HIP_MEMCPY3D`.
pub(crate) fn driver_3d(parameters: *const c_void) -> Outcome<BoxCopy> {
    if loaded_as_hip_5() { driver_3d_of::<u32>(parameters) } else { driver_3d_of::<usize>(parameters) }
}

/// The address of a device variable, for a copy that starts `offset` bytes into it.
pub(crate) fn symbol(symbol: *const c_void, offset: usize, size: usize) -> Outcome<u64> {
    let (address, length) = crate::symbols::find(symbol)?;
    let end = (offset as u64).checked_add(size as u64).ok_or(INVALID_VALUE)?;
    if end > length { Err(INVALID_VALUE) } else { Ok(address + offset as u64) }
}

/// A copy to a variable.
pub(crate) fn to_symbol(to: *const c_void, from: u64, size: usize, offset: usize, kind: c_int) -> Outcome<StreamOp> {
    Ok(StreamOp::SymbolCopy { copy: BoxCopy::linear(symbol(to, offset, size)?, from, size, kind)?, to_symbol: true })
}

/// A copy from a variable.
pub(crate) fn from_symbol(to: u64, from: *const c_void, size: usize, offset: usize, kind: c_int) -> Outcome<StreamOp> {
    Ok(StreamOp::SymbolCopy { copy: BoxCopy::linear(to, symbol(from, offset, size)?, size, kind)?, to_symbol: false })
}

fn linear(to: u64, from: u64, size: usize, kind: c_int) -> Outcome<StreamOp> {
    Ok(StreamOp::Copy(BoxCopy::linear(to, from, size, kind)?))
}

fn rows(
    to: u64,
    to_pitch: usize,
    from: u64,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> Outcome<StreamOp> {
    Ok(StreamOp::Copy(BoxCopy::rows((to, to_pitch), (from, from_pitch), width, height, kind)?))
}

fn elements(to: u64, element: &[u8], count: usize) -> StreamOp {
    StreamOp::Fill(BoxFill::elements(to, element, count))
}

/// Rows of elements, which the pitch must have room for, also if there is only one.
fn element_rows(to: u64, pitch: usize, element: &[u8], width: usize, height: usize) -> Outcome<StreamOp> {
    if width > 0 && height > 0 && width.checked_mul(element.len()).is_none_or(|bytes| bytes > pitch) {
        return Err(INVALID_VALUE);
    }
    Ok(StreamOp::Fill(BoxFill::rows(to, pitch, element, width, height)))
}

/// A box of bytes. Of its pitch HIP asks that the rows which the pointer names fit, not those that are filled.
fn cells(to: PitchedPointer, value: c_int, extent: Extent) -> Outcome<StreamOp> {
    if extent.elements() > 0 && to.pitch != extent.width && (to.pitch == 0 || to.x > to.pitch) {
        return Err(INVALID_VALUE);
    }
    Ok(StreamOp::Fill(BoxFill { to: to.into(), element: vec![value as u8], extent }))
}

macro_rules! operations {
    ($(now fn $now:ident $(/ $now_also:ident)* ($($now_arg:ident: $now_ty:ty),* $(,)?) => $now_of:expr;)*
     $(of a stream fn $later:ident $(/ $later_also:ident)* ($($arg:ident: $ty:ty),* $(,)?) => $of:expr;)*) => {
        entry_points! {
            $(fn $now $(/ $now_also)* ($($now_arg: $now_ty),*) { do_now(&$now_of) })*
            $(fn $later $(/ $later_also)* ($($arg: $ty,)* stream: *mut c_void) { submit(stream, $of) })*
        }
    };
}

operations! {
    now fn hipMemcpy / hipMemcpy_spt(to: u64, from: u64, size: usize, kind: c_int) => linear(to, from, size, kind)?;
    now fn hipMemcpyHtoD(to: u64, from: u64, size: usize) => linear(to, from, size, TO_DEVICE)?;
    now fn hipMemcpyDtoH(to: u64, from: u64, size: usize) => linear(to, from, size, TO_HOST)?;
    now fn hipMemcpyDtoD(to: u64, from: u64, size: usize) => linear(to, from, size, ON_DEVICE)?;
    now fn hipMemcpyPeer(to: u64, to_device: c_int, from: u64, from_device: c_int, size: usize) => {
        crate::devices::only(to_device)?;
        crate::devices::only(from_device)?;
        linear(to, from, size, ON_DEVICE)?
    };
    now fn hipMemcpy2D / hipMemcpy2D_spt(
        to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: c_int,
    ) => rows(to, to_pitch, from, from_pitch, width, height, kind)?;
    now fn hipMemcpyParam2D / hipDrvMemcpy2DUnaligned(parameters: *const c_void) => driver_2d(parameters)?;
    now fn hipMemcpy3D / hipMemcpy3D_spt(parameters: *const c_void) => StreamOp::Copy(parameters_3d(parameters)?);
    now fn hipDrvMemcpy3D(parameters: *const c_void) => StreamOp::Copy(driver_3d(parameters)?);
    now fn hipMemcpyToSymbol / hipMemcpyToSymbol_spt(
        to: *const c_void, from: u64, size: usize, offset: usize, kind: c_int
    )
        => to_symbol(to, from, size, offset, kind)?;
    now fn hipMemcpyFromSymbol / hipMemcpyFromSymbol_spt(
        to: u64, from: *const c_void, size: usize, offset: usize, kind: c_int
    )
        => from_symbol(to, from, size, offset, kind)?;
    now fn hipMemset / hipMemset_spt(to: u64, value: c_int, size: usize) => elements(to, &[value as u8], size);
    now fn hipMemsetD8(to: u64, value: u8, count: usize) => elements(to, &[value], count);
    now fn hipMemsetD16(to: u64, value: u16, count: usize) => elements(to, &value.to_le_bytes(), count);
    now fn hipMemsetD32(to: u64, value: c_int, count: usize) => elements(to, &value.to_le_bytes(), count);
    now fn hipMemset2D / hipMemset2D_spt(to: u64, pitch: usize, value: c_int, width: usize, height: usize)
        => element_rows(to, pitch, &[value as u8], width, height)?;
    now fn hipMemsetD2D8(
        to: u64, pitch: usize, value: u8, width: usize, height: usize
    ) => element_rows(to, pitch, &[value], width, height)?;
    now fn hipMemsetD2D16(to: u64, pitch: usize, value: u16, width: usize, height: usize)
        => element_rows(to, pitch, &value.to_le_bytes(), width, height)?;
    now fn hipMemsetD2D32(to: u64, pitch: usize, value: u32, width: usize, height: usize)
        => element_rows(to, pitch, &value.to_le_bytes(), width, height)?;
    now fn hipMemset3D / hipMemset3D_spt(to: PitchedPointer, value: c_int, extent: Extent) => cells(to, value, extent)?;

    of a stream fn hipMemcpyAsync / hipMemcpyAsync_spt(
        to: u64, from: u64, size: usize, kind: c_int
    ) => linear(to, from, size, kind)?;
    of a stream fn hipMemcpyHtoDAsync(to: u64, from: u64, size: usize) => linear(to, from, size, TO_DEVICE)?;
    of a stream fn hipMemcpyDtoHAsync(to: u64, from: u64, size: usize) => linear(to, from, size, TO_HOST)?;
    of a stream fn hipMemcpyDtoDAsync(to: u64, from: u64, size: usize) => linear(to, from, size, ON_DEVICE)?;
    of a stream fn hipMemcpyPeerAsync(to: u64, to_device: c_int, from: u64, from_device: c_int, size: usize) => {
        crate::devices::only(to_device)?;
        crate::devices::only(from_device)?;
        linear(to, from, size, ON_DEVICE)?
    };
    of a stream fn hipMemcpy2DAsync / hipMemcpy2DAsync_spt(
        to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: c_int,
    ) => rows(to, to_pitch, from, from_pitch, width, height, kind)?;
    of a stream fn hipMemcpyParam2DAsync(parameters: *const c_void) => driver_2d(parameters)?;
    of a stream fn hipMemcpy3DAsync / hipMemcpy3DAsync_spt(
        parameters: *const c_void
    ) => StreamOp::Copy(parameters_3d(parameters)?);
    of a stream fn hipDrvMemcpy3DAsync(parameters: *const c_void) => StreamOp::Copy(driver_3d(parameters)?);
    of a stream fn hipMemcpyToSymbolAsync / hipMemcpyToSymbolAsync_spt(
        to: *const c_void, from: u64, size: usize, offset: usize, kind: c_int,
    ) => to_symbol(to, from, size, offset, kind)?;
    of a stream fn hipMemcpyFromSymbolAsync / hipMemcpyFromSymbolAsync_spt(
        to: u64, from: *const c_void, size: usize, offset: usize, kind: c_int,
    ) => from_symbol(to, from, size, offset, kind)?;
    of a stream fn hipMemsetAsync / hipMemsetAsync_spt(
        to: u64, value: c_int, size: usize
    ) => elements(to, &[value as u8], size);
    of a stream fn hipMemsetD8Async(to: u64, value: u8, count: usize) => elements(to, &[value], count);
    of a stream fn hipMemsetD16Async(to: u64, value: u16, count: usize) => elements(to, &value.to_le_bytes(), count);
    of a stream fn hipMemsetD32Async(to: u64, value: c_int, count: usize) => elements(to, &value.to_le_bytes(), count);
    of a stream fn hipMemset2DAsync / hipMemset2DAsync_spt(
        to: u64, pitch: usize, value: c_int, width: usize, height: usize
    )
        => element_rows(to, pitch, &[value as u8], width, height)?;
    of a stream fn hipMemsetD2D8Async(to: u64, pitch: usize, value: u8, width: usize, height: usize)
        => element_rows(to, pitch, &[value], width, height)?;
    of a stream fn hipMemsetD2D16Async(to: u64, pitch: usize, value: u16, width: usize, height: usize)
        => element_rows(to, pitch, &value.to_le_bytes(), width, height)?;
    of a stream fn hipMemsetD2D32Async(to: u64, pitch: usize, value: u32, width: usize, height: usize)
        => element_rows(to, pitch, &value.to_le_bytes(), width, height)?;
    of a stream fn hipMemset3DAsync / hipMemset3DAsync_spt(
        to: PitchedPointer, value: c_int, extent: Extent
    ) => cells(to, value, extent)?;
}

entry_points! {
    /// Copies in the order of a stream, and waits for it.
    fn hipMemcpyWithStream(to: u64, from: u64, size: usize, kind: c_int, stream: *mut c_void) {
        submit_and_wait(stream, linear(to, from, size, kind)?)
    }
}
