//! Kernel launches.

use std::cell::RefCell;
use std::ffi::{c_uint, c_void};

use crate::kernarg::{Arguments, Shape};
use crate::raw;
use crate::runtime::{KernelRef, runtime};
use crate::status::*;

/// `dim3`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dim3 {
    x: u32,
    y: u32,
    z: u32,
}

/// What `<<<...>>>` pushes.
type Configuration = (Dim3, Dim3, usize, *mut c_void);

thread_local! {
    /// Configurations that were pushed and not yet popped by the kernel's stub.
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// Markers in the `extra` array of a module launch (HIP's `HIP_LAUNCH_PARAM_*`).
const EXTRA_BUFFER: usize = 1;
const EXTRA_SIZE: usize = 2;
const EXTRA_END: usize = 3;

fn shape(groups: [u32; 3], workgroup: [u32; 3], dynamic_lds: usize) -> Outcome<Shape> {
    let mut items = [0; 3];
    for axis in 0..3 {
        items[axis] = groups[axis].checked_mul(workgroup[axis]).ok_or(INVALID_CONFIGURATION)?;
    }
    let dynamic_lds = u32::try_from(dynamic_lds).map_err(|_| INVALID_CONFIGURATION)?;
    Ok(Shape { items, workgroup, dynamic_lds })
}

fn stub(function: *const c_void) -> Outcome<KernelRef> {
    runtime().kernels.get(&(function as usize)).cloned().ok_or(INVALID_DEVICE_FUNCTION)
}

/// The kernel behind a `hipFunction_t`.
pub(crate) fn function(handle: *mut c_void) -> Outcome<KernelRef> {
    let index = (handle as usize).checked_sub(1).ok_or(INVALID_HANDLE)?;
    runtime().functions.get(index).cloned().ok_or(INVALID_HANDLE)
}

fn with_pointers(kernel: &KernelRef, shape: &Shape, arguments: *const *const c_void) -> Outcome {
    let mut each = |index: usize, place: &mut [u8]| raw::read(raw::element(arguments, index)? as usize, place);
    runtime().launch(kernel, shape, Arguments::Each(&mut each))
}

fn module_launch(kernel: &KernelRef, shape: &Shape, parameters: *const *const c_void, extra: *const *const c_void) -> Outcome {
    if !parameters.is_null() || extra.is_null() {
        return with_pointers(kernel, shape, parameters);
    }
    let (mut buffer, mut size) = (0, 0);
    let mut at = 0;
    loop {
        match raw::element(extra, at)? as usize {
            EXTRA_BUFFER => buffer = raw::element(extra, at + 1)? as usize,
            EXTRA_SIZE => size = raw::load(raw::element(extra, at + 1)?.cast::<usize>())?,
            EXTRA_END => break,
            _ => return Err(INVALID_VALUE),
        }
        at += 2;
    }
    let mut bytes = vec![0; size.min(1 << 20)];
    raw::read(buffer, &mut bytes)?;
    runtime().launch(kernel, shape, Arguments::Packed(&bytes))
}

impl Dim3 {
    fn array(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

entry_points! {
    /// Remembers a launch configuration for the kernel stub that is called next.
    fn __hipPushCallConfiguration(grid: Dim3, block: Dim3, dynamic_lds: usize, stream: *mut c_void) {
        CONFIGURATIONS.with_borrow_mut(|stack| stack.push((grid, block, dynamic_lds, stream)));
        Ok(())
    }

    /// Gives the configuration back to the stub.
    fn __hipPopCallConfiguration(grid: *mut Dim3, block: *mut Dim3, dynamic_lds: *mut usize, stream: *mut *mut c_void) {
        let configuration = CONFIGURATIONS.with_borrow_mut(Vec::pop).ok_or(MISSING_CONFIGURATION)?;
        raw::store(grid, configuration.0)?;
        raw::store(block, configuration.1)?;
        raw::store(dynamic_lds, configuration.2)?;
        raw::store(stream, configuration.3)
    }

    /// Launches a kernel by its host stub.
    fn hipLaunchKernel(
        function: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        dynamic_lds: usize,
        _stream: *mut c_void,
    ) {
        with_pointers(&stub(function)?, &shape(grid.array(), block.array(), dynamic_lds)?, arguments)
    }

    /// As [`hipLaunchKernel`]; all streams are one.
    fn hipLaunchKernel_spt(
        function: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        dynamic_lds: usize,
        _stream: *mut c_void,
    ) {
        with_pointers(&stub(function)?, &shape(grid.array(), block.array(), dynamic_lds)?, arguments)
    }

    /// Launches a kernel by its host stub and records events around it.
    fn hipExtLaunchKernel(
        function: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        dynamic_lds: usize,
        _stream: *mut c_void,
        start: *mut c_void,
        stop: *mut c_void,
        _flags: i32,
    ) {
        let (kernel, shape) = (stub(function)?, shape(grid.array(), block.array(), dynamic_lds)?);
        runtime().streams.record_optional(start)?;
        with_pointers(&kernel, &shape, arguments)?;
        runtime().streams.record_optional(stop)
    }

    /// Launches a module's kernel; the grid is in workgroups.
    fn hipModuleLaunchKernel(
        handle: *mut c_void,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        dynamic_lds: c_uint,
        _stream: *mut c_void,
        parameters: *const *const c_void,
        extra: *const *const c_void,
    ) {
        let shape = shape([grid_x, grid_y, grid_z], [block_x, block_y, block_z], dynamic_lds as usize)?;
        module_launch(&function(handle)?, &shape, parameters, extra)
    }

    /// Launches a module's kernel; the grid is in work-items.
    fn hipExtModuleLaunchKernel(
        handle: *mut c_void,
        items_x: u32,
        items_y: u32,
        items_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        dynamic_lds: usize,
        _stream: *mut c_void,
        parameters: *const *const c_void,
        extra: *const *const c_void,
        start: *mut c_void,
        stop: *mut c_void,
        _flags: u32,
    ) {
        let dynamic_lds = u32::try_from(dynamic_lds).map_err(|_| INVALID_CONFIGURATION)?;
        let shape = Shape { items: [items_x, items_y, items_z], workgroup: [block_x, block_y, block_z], dynamic_lds };
        if shape.workgroup.contains(&0) {
            return Err(INVALID_CONFIGURATION);
        }
        let kernel = function(handle)?;
        runtime().streams.record_optional(start)?;
        module_launch(&kernel, &shape, parameters, extra)?;
        runtime().streams.record_optional(stop)
    }
}
