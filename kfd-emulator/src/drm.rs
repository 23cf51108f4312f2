//! The functions of libdrm that the runtime calls.

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::sync::OnceLock;

use crate::driver::{self, Driver};
use crate::gpu::{self, Gpu};
use crate::nodes::Node;
use crate::{clock, raw, topology};

/// What stands for the first GPU, and with its number added for each other one: never dereferenced.
const DEVICE: usize = 0x1000;

/// Version 3.54 of the graphics driver's interface.
const VERSION: [u32; 2] = [3, 54];

/// Words of `struct amdgpu_gpu_info` that are filled, of those that have the device id, external revision, family, and
/// the frequency of its clock in kHz.
const INFO_WORDS: usize = 20;
const ASIC_ID: usize = 0;
const EXTERNAL_REVISION: usize = 2;
const FAMILY: usize = 3;
const COUNTER_FREQUENCY: usize = 18;

/// A revision that the runtime's address library knows, of the first board of the newest family.
const FIRST_REVISION: u32 = 0x3c;

fn open(gpu: Gpu) -> c_int {
    Driver::get().ok_or(libc::ENODEV).and_then(|driver| driver.open(Node::Render(gpu))).unwrap_or_else(|errno| {
        raw::set_errno(errno);
        -1
    })
}

/// Initializes a device.
#[unsafe(no_mangle)]
pub extern "C" fn amdgpu_device_initialize(
    descriptor: c_int,
    major: *mut u32,
    minor: *mut u32,
    device: *mut *mut c_void,
) -> c_int {
    raw::store(major, VERSION[0]);
    raw::store(minor, VERSION[1]);
    let Some(gpu) = Driver::get().and_then(|driver| driver.gpu_of(descriptor)) else { return -libc::EINVAL };
    raw::store(device, (DEVICE + gpu.index()) as *mut c_void);
    0
}

/// Ends its use.
#[unsafe(no_mangle)]
pub extern "C" fn amdgpu_device_deinitialize(_device: *mut c_void) -> c_int {
    0
}

/// Its descriptor, another one than the caller opened: callers close theirs.
#[unsafe(no_mangle)]
pub extern "C" fn amdgpu_device_get_fd(device: *mut c_void) -> c_int {
    static DESCRIPTORS: [OnceLock<c_int>; gpu::MOST as usize] = [const { OnceLock::new() }; gpu::MOST as usize];
    let number = (device as usize).wrapping_sub(DEVICE);
    let all = Driver::get().into_iter().flat_map(|driver| Gpu::all(driver.gpus));
    let found = all.zip(&DESCRIPTORS).find(|(gpu, _)| gpu.index() == number);
    found.map_or(-1, |(gpu, descriptor)| *descriptor.get_or_init(|| open(gpu)))
}

/// Its name.
#[unsafe(no_mangle)]
pub extern "C" fn amdgpu_get_marketing_name(_device: *mut c_void) -> *const c_char {
    c"Wavetap emulator".as_ptr()
}

/// What it is.
#[unsafe(no_mangle)]
pub extern "C" fn amdgpu_query_gpu_info(_device: *mut c_void, info: *mut c_void) -> c_int {
    let (Some(driver), Some(bytes)) = (Driver::get(), raw::bytes(info as u64, 4 * INFO_WORDS)) else {
        return -libc::EINVAL;
    };
    let mut words = [0; INFO_WORDS];
    words[ASIC_ID] = topology::device_id(driver.target);
    words[EXTERNAL_REVISION] = FIRST_REVISION;
    words[FAMILY] = topology::family(driver.target).unwrap_or(0);
    words[COUNTER_FREQUENCY] = clock::GPU_KILOHERTZ;
    for (bytes, word) in bytes.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&u32::to_ne_bytes(word));
    }
    0
}

/// Opens a render node.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn drmOpenRender(minor: c_int) -> c_int {
    let gpu = Driver::get().and_then(|driver| Gpu::by_render_minor(minor as u32, driver.gpus));
    gpu.map_or(-libc::ENOENT, open)
}

/// Closes it.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn drmClose(descriptor: c_int) -> c_int {
    driver::forget(descriptor);
    raw::close(descriptor)
}

/// Asks something of the graphics driver: nothing that is needed.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn drmCommandWriteRead(
    _descriptor: c_int,
    _command: c_ulong,
    _data: *mut c_void,
    _size: c_ulong,
) -> c_int {
    0
}
