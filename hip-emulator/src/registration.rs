//! What a program's start-up code calls: its fat binaries, kernels and variables.

use std::ffi::{c_char, c_int, c_uint, c_void};

use wavetap::error::Error;

use crate::called::called;
use crate::host_memory::HostKind;
use crate::images::KernelRef;
use crate::images::{Image, Managed};
use crate::lock::runtime;
use crate::messages::complain;
use crate::raw;
use crate::tasks::wait_for_all;

/// First word of a wrapper, `HIPF`.
const WRAPPER_MAGIC: u32 = 0x4849_5046;

/// `__CudaFatBinaryWrapper` as Clang writes it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Wrapper {
    magic: u32,
    version: u32,
    bundle: *const c_void,
    reserved: *const c_void,
}

/// A handle that the start-up code passes back: the image's index plus one. It is never followed.
type Modules = *mut *mut c_void;

fn index(modules: Modules) -> Option<usize> {
    (modules as usize).checked_sub(1)
}

/// Registers the bundle of a translation unit.
#[unsafe(no_mangle)]
extern "C" fn __hipRegisterFatBinary(wrapper: *const c_void) -> Modules {
    let Ok(wrapper) = raw::load(wrapper.cast::<Wrapper>()) else { return std::ptr::null_mut() };
    if wrapper.magic != WRAPPER_MAGIC || wrapper.version != 1 {
        let (magic, version) = (wrapper.magic, wrapper.version);
        complain(
            "fat binary",
            &Error::unsupported(format!(
                "wrapper {magic:#x} of version {version}: {WRAPPER_MAGIC:#x} of version 1 expected"
            )),
        );
        return std::ptr::null_mut();
    }
    (runtime().add_image(Image::registered(wrapper.bundle as usize)) + 1) as Modules
}

/// Registers a kernel's host stub.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
extern "C" fn __hipRegisterFunction(
    modules: Modules,
    stub: *const c_void,
    _device_function: *const c_char,
    name: *const c_char,
    _thread_limit: c_uint,
    _thread: *const c_void,
    _block: *const c_void,
    _block_dim: *const c_void,
    _grid_dim: *const c_void,
    _wave_size: *const c_int,
) {
    if let (Some(image), Ok(name)) = (index(modules), raw::string(name)) {
        runtime().code.kernels.insert(stub as usize, KernelRef { image, name });
    }
}

/// Registers a variable's host shadow.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
extern "C" fn __hipRegisterVar(
    modules: Modules,
    shadow: *const c_void,
    _host_name: *const c_char,
    name: *const c_char,
    _external: c_int,
    _size: usize,
    _constant: c_int,
    _global: c_int,
) {
    if let (Some(image), Ok(name)) = (index(modules), raw::string(name)) {
        runtime().code.variables.insert(shadow as usize, KernelRef { image, name });
    }
}

/// Registers a managed variable: allocates it, stores its address for host and device.
#[unsafe(no_mangle)]
extern "C" fn __hipRegisterManagedVar(
    modules: Modules,
    pointer: *mut *mut c_void,
    initial: *const c_void,
    name: *const c_char,
    size: usize,
    _align: c_uint,
) {
    let (Some(image), Ok(name)) = (index(modules), raw::string(name)) else { return };
    let mut runtime = runtime();
    let mut bytes = vec![0; size];
    let _ = raw::read(initial as usize, &mut bytes);
    let runtime = &mut *runtime;
    // The device is chosen by what is registered so far; all of a translation unit's kernels are.
    let Ok(address) =
        runtime.device_and_host().and_then(|(device, host)| host.allocate(device, size, HostKind::Managed, 1))
    else {
        return;
    };
    let _ = raw::write(address as usize, &bytes);
    let _ = raw::store(pointer, address as *mut c_void);
    if let Some(image) = runtime.code.images.get_mut(image).and_then(Option::as_mut) {
        image.managed.push(Managed { name: name.clone(), address });
    }
    runtime.code.variables.insert(pointer as usize, KernelRef { image, name });
}

/// Registers a texture reference: a variable whose shadow says what it is bound to.
#[unsafe(no_mangle)]
extern "C" fn __hipRegisterTexture(
    modules: Modules,
    shadow: *const c_void,
    _host_name: *const c_char,
    name: *const c_char,
    _kind: c_int,
    _normalized: c_int,
    _external: c_int,
) {
    if let (Some(image), Ok(name)) = (index(modules), raw::string(name)) {
        runtime().code.variables.insert(shadow as usize, KernelRef { image, name });
    }
}

/// Registers a surface reference, which is a variable as well.
#[unsafe(no_mangle)]
extern "C" fn __hipRegisterSurface(
    modules: Modules,
    shadow: *const c_void,
    host_name: *const c_char,
    name: *const c_char,
    kind: c_int,
    external: c_int,
) {
    __hipRegisterTexture(modules, shadow, host_name, name, kind, 0, external);
}

/// Called when the program or one of its libraries ends.
#[unsafe(no_mangle)]
extern "C" fn __hipUnregisterFatBinary(modules: Modules) {
    let Some(image) = index(modules) else { return };
    // What was launched ends first, as in HIP. A broken device runs nothing.
    called("the end of the program");
    let _ = wait_for_all();
    let mut runtime = runtime();
    runtime.code.kernels.retain(|_, kernel| kernel.image != image);
    runtime.code.variables.retain(|_, variable| variable.image != image);
    let _ = runtime.remove_image(image);
}
