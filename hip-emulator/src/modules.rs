//! Modules that a program loads itself.

use std::ffi::{c_char, c_uint, c_void};
use std::fs;

use crate::entry_point::entry_points;
use crate::images::Image;
use crate::images::KernelRef;
use crate::lock::runtime;
use crate::messages::complain;
use crate::raw;
use crate::runtime::Runtime;
use crate::status::*;
use crate::tasks::wait_for_all;

/// A handle is an image's index plus one.
pub(crate) fn image(module: *mut c_void) -> Outcome<usize> {
    (module as usize).checked_sub(1).ok_or(INVALID_HANDLE)
}

pub(crate) fn add(out: *mut usize, image: wavetap::error::Result<Image>) -> Outcome {
    match image {
        Ok(image) => {
            let mut runtime = runtime();
            let index = runtime.add_image(image);
            if let Err(status) = runtime.load(index).map(|_| ()) {
                runtime.remove_image(index)?;
                return Err(status);
            }
            runtime.check.iter_mut().for_each(|check| check.handles.created(index + 1, "module"));
            drop(runtime);
            raw::store(out, index + 1)
        }
        Err(error) => {
            complain("a module", &error);
            Err(INVALID_KERNEL_FILE)
        }
    }
}

impl Runtime {
    /// The handle of a kernel: an index plus one, the same whenever it is asked for.
    pub(crate) fn function(&mut self, kernel: KernelRef) -> usize {
        let known = self.code.functions.iter().position(|other| *other == kernel);
        let index = known.unwrap_or_else(|| {
            self.code.functions.push(kernel);
            self.code.functions.len() - 1
        });
        index + 1
    }
}

entry_points! {
    /// Loads a module from a file: a bundle or a code object.
    fn hipModuleLoad(out: *mut usize, path: *const c_char) {
        let path = raw::string(path)?;
        if out.is_null() || path.is_empty() {
            return Err(INVALID_VALUE);
        }
        let data = fs::read(path).map_err(|_| FILE_NOT_FOUND)?;
        add(out, Image::file(data))
    }

    /// Loads a module from memory.
    fn hipModuleLoadData / hipModuleLoadFatBinary(out: *mut usize, data: *const c_void) {
        if out.is_null() || data.is_null() {
            return Err(INVALID_VALUE);
        }
        add(out, Image::module(data as usize))
    }

    /// Loads a module from memory; the options are for a compiler that is not needed.
    fn hipModuleLoadDataEx(
        out: *mut usize, data: *const c_void, _count: c_uint, _options: *mut c_void, _values: *mut *mut c_void
    ) {
        if out.is_null() || data.is_null() {
            return Err(INVALID_VALUE);
        }
        add(out, Image::module(data as usize))
    }

    /// Unloads a module.
    fn hipModuleUnload(module: *mut c_void) {
        let index = image(module)?;
        wait_for_all()?;
        let mut runtime = runtime();
        // Handles of its kernels stay, and are refused from now on.
        runtime.remove_image(index)?;
        runtime.check.iter_mut().for_each(|check| check.handles.destroyed(module as usize));
        Ok(())
    }

    /// Finds a kernel of a module.
    fn hipModuleGetFunction(out: *mut usize, module: *mut c_void, name: *const c_char) {
        let (image, name) = (image(module)?, raw::string(name)?);
        let mut runtime = runtime();
        let (_, loaded) = runtime.load(image)?;
        let kernel = KernelRef { image, name: loaded.kernel_named(&name).ok_or(NOT_FOUND)?.to_owned() };
        raw::store(out, runtime.function(kernel))
    }

    /// Finds a kernel by its host stub.
    fn hipGetFuncBySymbol(out: *mut usize, symbol: *const c_void) {
        let mut runtime = runtime();
        let kernel = runtime.code.kernels.get(&(symbol as usize)).cloned().ok_or(INVALID_DEVICE_FUNCTION)?;
        raw::store(out, runtime.function(kernel))
    }

    /// Number of kernels of a module.
    fn hipModuleGetFunctionCount(out: *mut c_uint, module: *mut c_void) {
        let mut runtime = runtime();
        let (_, loaded) = runtime.load(image(module)?)?;
        raw::store(out, loaded.kernels.len() as c_uint)
    }

    /// Finds a variable of a module.
    fn hipModuleGetGlobal(address: *mut u64, size: *mut usize, module: *mut c_void, name: *const c_char) {
        let name = raw::string(name)?;
        let mut runtime = runtime();
        let (_, loaded) = runtime.load(image(module)?)?;
        let symbol = *loaded.object.symbols.get(&name).ok_or(NOT_FOUND)?;
        raw::store_optional(address, symbol.address);
        raw::store_optional(size, symbol.size as usize);
        Ok(())
    }
}
