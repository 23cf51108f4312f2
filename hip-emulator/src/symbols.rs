//! Device variables by the address of their host shadow.

use std::ffi::c_void;

use crate::entry_point::entry_points;
use crate::lock::runtime;
use crate::raw;
use crate::status::*;

/// Device address and size of a variable.
pub(crate) fn find(shadow: *const c_void) -> Outcome<(u64, u64)> {
    let mut runtime = runtime();
    let variable = runtime.code.variables.get(&(shadow as usize)).cloned().ok_or(INVALID_SYMBOL)?;
    let managed =
        runtime.code.images.get(variable.image).and_then(Option::as_ref).into_iter().flat_map(|image| &image.managed);
    if let Some(found) = managed.into_iter().find(|managed| managed.name == variable.name) {
        let size = runtime.host.range_of(found.address).ok_or(INVALID_SYMBOL)?.size;
        return Ok((found.address, size));
    }
    let (_, loaded) = runtime.load(variable.image)?;
    let symbol = loaded.object.symbols.get(&variable.name).ok_or(INVALID_SYMBOL)?;
    Ok((symbol.address, symbol.size))
}

entry_points! {
    /// Device address of a variable.
    fn hipGetSymbolAddress(out: *mut u64, symbol: *const c_void) {
        raw::store(out, find(symbol)?.0)
    }

    /// Size of a variable.
    fn hipGetSymbolSize(out: *mut usize, symbol: *const c_void) {
        raw::store(out, find(symbol)?.1 as usize)
    }
}
