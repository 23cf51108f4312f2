//! Copying and filling memory. Everything is done when the call returns, so the asynchronous forms are the same.

use std::ffi::{c_int, c_void};

use crate::memory::{Extent, PitchedPointer};
use crate::raw;
use crate::runtime::{Runtime, runtime};
use crate::status::*;

/// `hipMemcpyDefault`, the largest copy kind; what is copied to what is told by the addresses.
const LAST_KIND: c_int = 4;

/// Copies between device memory and the host go through a buffer of at most this size.
const CHUNK: usize = 4 << 20;

/// Copies `size` bytes. Addresses tell where they are, and a copy that leaves an allocation is refused before anything is written.
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

/// A copy whose kind is at least one of HIP's; what is what is told by the addresses.
pub(crate) fn copy_kind(to: u64, from: u64, size: usize, kind: c_int) -> Outcome {
    if !(0..=LAST_KIND).contains(&kind) {
        return Err(INVALID_MEMCPY_DIRECTION);
    }
    copy(&mut runtime(), to, from, size)
}

/// One side of a box: where it starts, bytes from row to row and rows from plane to plane.
#[derive(Clone, Copy)]
struct Side {
    start: u64,
    pitch: usize,
    rows: usize,
}

impl Side {
    fn row(self, y: usize, z: usize) -> Outcome<u64> {
        let row = z.checked_mul(self.rows).and_then(|plane| plane.checked_add(y)).and_then(|row| row.checked_mul(self.pitch));
        row.and_then(|offset| self.start.checked_add(offset as u64)).ok_or(INVALID_VALUE)
    }

    fn of(pointer: PitchedPointer, position: Position) -> Outcome<Self> {
        let side = Side { start: pointer.pointer as u64, pitch: pointer.pitch, rows: pointer.y };
        let start = side.row(position.y, position.z)?.checked_add(position.x as u64).ok_or(INVALID_VALUE)?;
        Ok(Side { start, ..side })
    }
}

fn copy_box(to: Side, from: Side, extent: Extent) -> Outcome {
    let mut runtime = runtime();
    if extent.height.saturating_mul(extent.depth) > 1 && (extent.width > to.pitch || extent.width > from.pitch) {
        return Err(INVALID_PITCH_VALUE);
    }
    for z in 0..extent.depth {
        for y in 0..extent.height {
            copy(&mut runtime, to.row(y, z)?, from.row(y, z)?, extent.width)?;
        }
    }
    Ok(())
}

fn copy_rows(to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize) -> Outcome {
    let side = |start, pitch| Side { start, pitch, rows: height };
    copy_box(side(to, to_pitch), side(from, from_pitch), Extent { width, height, depth: 1 })
}

/// Fills `count` elements of the pattern's size.
fn fill(to: u64, pattern: &[u8], count: usize) -> Outcome {
    let size = pattern.len().checked_mul(count).ok_or(INVALID_VALUE)?;
    if size == 0 {
        return Ok(());
    }
    let mut runtime = runtime();
    let on_device = runtime.is_device_memory(to);
    if on_device {
        check_range(&mut runtime, to, size)?;
    } else if to == 0 || runtime.host.range_of(to).is_none() {
        // Filling is an operation of the device, which sees no other host memory.
        return Err(INVALID_VALUE);
    }
    let chunk: Vec<u8> = pattern.iter().copied().cycle().take(size.min(CHUNK)).collect();
    for start in (0..size).step_by(CHUNK) {
        let part = &chunk[..CHUNK.min(size - start)];
        if on_device {
            runtime.device()?.write(to + start as u64, part).map_err(|_| INVALID_VALUE)?;
        } else {
            raw::write(to as usize + start, part)?;
        }
    }
    Ok(())
}

fn fill_box(to: Side, value: c_int, extent: Extent) -> Outcome {
    for z in 0..extent.depth {
        for y in 0..extent.height {
            fill(to.row(y, z)?, &[value as u8], extent.width)?;
        }
    }
    Ok(())
}

/// `hipPos`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Position {
    x: usize,
    y: usize,
    z: usize,
}

/// `hipMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy3D {
    from_array: *mut c_void,
    from_position: Position,
    from: PitchedPointer,
    to_array: *mut c_void,
    to_position: Position,
    to: PitchedPointer,
    extent: Extent,
    kind: c_int,
}

fn copy_3d(parameters: *const c_void) -> Outcome {
    let copy = raw::load(parameters.cast::<Copy3D>())?;
    if !copy.from_array.is_null() || !copy.to_array.is_null() {
        eprintln!("wavetap: hipMemcpy3D with an array is not implemented by the built-in runtime");
        return Err(NOT_SUPPORTED);
    }
    copy_box(Side::of(copy.to, copy.to_position)?, Side::of(copy.from, copy.from_position)?, copy.extent)
}

/// The address of a device variable, for a copy that starts `offset` bytes into it.
fn symbol(symbol: *const c_void, offset: usize, size: usize) -> Outcome<u64> {
    let (address, length) = crate::symbols::find(symbol)?;
    let end = (offset as u64).checked_add(size as u64).ok_or(INVALID_VALUE)?;
    if end > length { Err(INVALID_VALUE) } else { Ok(address + offset as u64) }
}

macro_rules! aliases {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => $of:expr;)*) => {
        entry_points! {$(
            fn $name($($arg: $ty),*) { $of }
        )*}
    };
}

// Forms with a stream ignore it: there is one order.
aliases! {
    fn hipMemcpy(to: u64, from: u64, size: usize, kind: c_int) => copy_kind(to, from, size, kind);
    fn hipMemcpy_spt(to: u64, from: u64, size: usize, kind: c_int) => copy_kind(to, from, size, kind);
    fn hipMemcpyAsync(to: u64, from: u64, size: usize, kind: c_int, _stream: *mut c_void) => copy_kind(to, from, size, kind);
    fn hipMemcpyAsync_spt(to: u64, from: u64, size: usize, kind: c_int, _stream: *mut c_void) => copy_kind(to, from, size, kind);
    fn hipMemcpyWithStream(to: u64, from: u64, size: usize, kind: c_int, _stream: *mut c_void) => copy_kind(to, from, size, kind);
    fn hipMemcpyHtoD(to: u64, from: u64, size: usize) => copy_kind(to, from, size, 1);
    fn hipMemcpyDtoH(to: u64, from: u64, size: usize) => copy_kind(to, from, size, 2);
    fn hipMemcpyDtoD(to: u64, from: u64, size: usize) => copy_kind(to, from, size, 3);
    fn hipMemcpyHtoDAsync(to: u64, from: u64, size: usize, _stream: *mut c_void) => copy_kind(to, from, size, 1);
    fn hipMemcpyDtoHAsync(to: u64, from: u64, size: usize, _stream: *mut c_void) => copy_kind(to, from, size, 2);
    fn hipMemcpyDtoDAsync(to: u64, from: u64, size: usize, _stream: *mut c_void) => copy_kind(to, from, size, 3);
    fn hipMemcpyPeer(to: u64, _to_device: c_int, from: u64, _from_device: c_int, size: usize) => copy_kind(to, from, size, 3);
    fn hipMemcpyPeerAsync(to: u64, _to_device: c_int, from: u64, _from_device: c_int, size: usize, _stream: *mut c_void)
        => copy_kind(to, from, size, 3);
    fn hipMemcpy2D(to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, _kind: c_int)
        => copy_rows(to, to_pitch, from, from_pitch, width, height);
    fn hipMemcpy2D_spt(to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, _kind: c_int)
        => copy_rows(to, to_pitch, from, from_pitch, width, height);
    fn hipMemcpy2DAsync(
        to: u64,
        to_pitch: usize,
        from: u64,
        from_pitch: usize,
        width: usize,
        height: usize,
        _kind: c_int,
        _stream: *mut c_void,
    )
        => copy_rows(to, to_pitch, from, from_pitch, width, height);
    fn hipMemcpy3D(parameters: *const c_void) => copy_3d(parameters);
    fn hipMemcpy3D_spt(parameters: *const c_void) => copy_3d(parameters);
    fn hipMemcpy3DAsync(parameters: *const c_void, _stream: *mut c_void) => copy_3d(parameters);
    fn hipMemcpyToSymbol(to: *const c_void, from: u64, size: usize, offset: usize, kind: c_int)
        => copy_kind(symbol(to, offset, size)?, from, size, kind);
    fn hipMemcpyToSymbol_spt(to: *const c_void, from: u64, size: usize, offset: usize, kind: c_int)
        => copy_kind(symbol(to, offset, size)?, from, size, kind);
    fn hipMemcpyToSymbolAsync(to: *const c_void, from: u64, size: usize, offset: usize, kind: c_int, _stream: *mut c_void)
        => copy_kind(symbol(to, offset, size)?, from, size, kind);
    fn hipMemcpyFromSymbol(to: u64, from: *const c_void, size: usize, offset: usize, kind: c_int)
        => copy_kind(to, symbol(from, offset, size)?, size, kind);
    fn hipMemcpyFromSymbol_spt(to: u64, from: *const c_void, size: usize, offset: usize, kind: c_int)
        => copy_kind(to, symbol(from, offset, size)?, size, kind);
    fn hipMemcpyFromSymbolAsync(to: u64, from: *const c_void, size: usize, offset: usize, kind: c_int, _stream: *mut c_void)
        => copy_kind(to, symbol(from, offset, size)?, size, kind);
    fn hipMemset(to: u64, value: c_int, size: usize) => fill(to, &[value as u8], size);
    fn hipMemset_spt(to: u64, value: c_int, size: usize) => fill(to, &[value as u8], size);
    fn hipMemsetAsync(to: u64, value: c_int, size: usize, _stream: *mut c_void) => fill(to, &[value as u8], size);
    fn hipMemsetAsync_spt(to: u64, value: c_int, size: usize, _stream: *mut c_void) => fill(to, &[value as u8], size);
    fn hipMemsetD8(to: u64, value: u8, count: usize) => fill(to, &[value], count);
    fn hipMemsetD8Async(to: u64, value: u8, count: usize, _stream: *mut c_void) => fill(to, &[value], count);
    fn hipMemsetD16(to: u64, value: u16, count: usize) => fill(to, &value.to_le_bytes(), count);
    fn hipMemsetD16Async(to: u64, value: u16, count: usize, _stream: *mut c_void) => fill(to, &value.to_le_bytes(), count);
    fn hipMemsetD32(to: u64, value: c_int, count: usize) => fill(to, &value.to_le_bytes(), count);
    fn hipMemsetD32Async(to: u64, value: c_int, count: usize, _stream: *mut c_void) => fill(to, &value.to_le_bytes(), count);
    fn hipMemset2D(to: u64, pitch: usize, value: c_int, width: usize, height: usize)
        => fill_box(Side { start: to, pitch, rows: height }, value, Extent { width, height, depth: 1 });
    fn hipMemset2DAsync(to: u64, pitch: usize, value: c_int, width: usize, height: usize, _stream: *mut c_void)
        => fill_box(Side { start: to, pitch, rows: height }, value, Extent { width, height, depth: 1 });
    fn hipMemset3D(to: PitchedPointer, value: c_int, extent: Extent)
        => fill_box(Side { start: to.pointer as u64, pitch: to.pitch, rows: to.y }, value, extent);
    fn hipMemset3DAsync(to: PitchedPointer, value: c_int, extent: Extent, _stream: *mut c_void)
        => fill_box(Side { start: to.pointer as u64, pitch: to.pitch, rows: to.y }, value, extent);
}
