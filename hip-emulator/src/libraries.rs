//! Libraries of kernels, HIP 7's form of modules. A handle of a kernel is that of a function, so that it can be
//! launched as one.

use std::ffi::{c_char, c_uint, c_void};
use std::fs;

use crate::entry_point::entry_points;
use crate::images::Image;
use crate::images::KernelRef;
use crate::lock::runtime;
use crate::modules::{add, image};
use crate::raw;
use crate::status::*;
use crate::tasks::wait_for_all;

/// The kernels of a library, by name.
fn names(library: *mut c_void) -> Outcome<Vec<String>> {
    let mut runtime = runtime();
    let (_, loaded) = runtime.load(image(library)?)?;
    let mut names: Vec<String> = loaded.kernels.keys().cloned().collect();
    names.sort_unstable();
    Ok(names)
}

entry_points! {
    /// Loads a library from memory; options are for a compiler that is not needed.
    fn hipLibraryLoadData(
        out: *mut usize,
        data: *const c_void,
        _options: *mut c_void,
        _values: *mut *mut c_void,
        _count: c_uint,
        _library_options: *mut c_void,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) {
        if out.is_null() || data.is_null() {
            return Err(INVALID_VALUE);
        }
        add(out, Image::module(data as usize))
    }

    /// Loads a library from a file.
    fn hipLibraryLoadFromFile(
        out: *mut usize,
        path: *const c_char,
        _options: *mut c_void,
        _values: *mut *mut c_void,
        _count: c_uint,
        _library_options: *mut c_void,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) {
        let path = raw::string(path)?;
        if out.is_null() || path.is_empty() {
            return Err(INVALID_VALUE);
        }
        add(out, Image::file(fs::read(path).map_err(|_| FILE_NOT_FOUND)?))
    }

    /// Unloads a library.
    fn hipLibraryUnload(library: *mut c_void) {
        let index = image(library)?;
        wait_for_all()?;
        runtime().remove_image(index)
    }

    /// Finds a kernel by its name.
    fn hipLibraryGetKernel(out: *mut usize, library: *mut c_void, name: *const c_char) {
        let (image, name) = (image(library)?, raw::string(name)?);
        let mut runtime = runtime();
        let (_, loaded) = runtime.load(image)?;
        let kernel = KernelRef { image, name: loaded.kernel_named(&name).ok_or(NOT_FOUND)?.to_owned() };
        raw::store(out, runtime.function(kernel))
    }

    /// Number of kernels.
    fn hipLibraryGetKernelCount(out: *mut c_uint, library: *mut c_void) {
        raw::store(out, names(library)?.len() as c_uint)
    }

    /// Handles of as many kernels as there is room for, in the order of their names.
    fn hipLibraryEnumerateKernels(out: *mut usize, room: c_uint, library: *mut c_void) {
        let names = names(library)?;
        if out.is_null() || room == 0 {
            return Err(INVALID_VALUE);
        }
        let image = image(library)?;
        let mut runtime = runtime();
        for (index, name) in names.into_iter().take(room as usize).enumerate() {
            let function = runtime.function(KernelRef { image, name });
            raw::store(out.wrapping_add(index), function)?;
        }
        Ok(())
    }

    /// The function of a kernel, which is the same.
    fn hipKernelGetFunction(out: *mut usize, kernel: *mut c_void) {
        let index = (kernel as usize).checked_sub(1).ok_or(INVALID_HANDLE)?;
        runtime().code.functions.get(index).ok_or(INVALID_HANDLE)?;
        raw::store(out, kernel as usize)
    }

    /// The library that a kernel is of.
    fn hipKernelGetLibrary(out: *mut usize, kernel: *mut c_void) {
        let runtime = runtime();
        let index = (kernel as usize).checked_sub(1).ok_or(INVALID_HANDLE)?;
        let known = runtime.code.functions.get(index).ok_or(INVALID_HANDLE)?;
        raw::store(out, known.image + 1)
    }
}
