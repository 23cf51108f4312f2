//! Kernel launches.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null;

use crate::entry_point::entry_points;
use crate::functions::{function, resident_workgroups, stub};
use crate::images::KernelRef;
use crate::kernarg::{self, Shape};
use crate::launch_attributes::{self, Attribute};
use crate::lock::runtime;
use crate::per_thread::{PerThread, pop};
use crate::raw;
use crate::status::*;
use crate::stream_op::{Launch, StreamOp};
use crate::streams::record_optional;
use crate::submit::submit;

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
    // No destructors: functions that run at exit may still launch.

    /// Configurations that were pushed and not yet popped by the kernel's stub.
    static CONFIGURATIONS: PerThread<Vec<Configuration>> = const { PerThread::new(Vec::new()) };

    /// What `hipSetupArgument` has set for the next launch.
    static SET_UP: PerThread<Vec<u8>> = const { PerThread::new(Vec::new()) };
}

/// Markers in the `extra` array of a module launch (HIP's `HIP_LAUNCH_PARAM_*`).
const EXTRA_BUFFER: usize = 1;
const EXTRA_SIZE: usize = 2;
const EXTRA_END: usize = 3;

/// More bytes than a kernel's arguments can have.
const MOST_ARGUMENTS: usize = 1 << 16;

fn shape(groups: [u32; 3], workgroup: [u32; 3], dynamic_lds: usize) -> Outcome<Shape> {
    let mut items = [0; 3];
    for axis in 0..3 {
        items[axis] = groups[axis].checked_mul(workgroup[axis]).ok_or(INVALID_CONFIGURATION)?;
    }
    let dynamic_lds = u32::try_from(dynamic_lds).map_err(|_| INVALID_CONFIGURATION)?;
    Ok(Shape { items, workgroup, dynamic_lds })
}

/// A launch whose arguments are read through an array of pointers to them.
fn with_pointers(kernel: &KernelRef, shape: &Shape, arguments: *const *const c_void) -> Outcome<StreamOp> {
    let metadata = runtime().kernel(kernel)?;
    let arguments =
        kernarg::explicit(&metadata, |index, place| raw::read(raw::element(arguments, index)? as usize, place))?;
    Ok(StreamOp::Kernel(Launch::new(kernel.clone(), *shape, arguments)))
}

/// A launch whose arguments are given either way that a module's launch allows.
fn with_either(
    kernel: &KernelRef,
    shape: &Shape,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> Outcome<StreamOp> {
    if extra.is_null() {
        return with_pointers(kernel, shape, parameters);
    }
    if !parameters.is_null() {
        return Err(INVALID_VALUE);
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
    let mut arguments = vec![0; size.min(1 << 20)];
    raw::read(buffer, &mut arguments)?;
    Ok(StreamOp::Kernel(Launch::new(kernel.clone(), *shape, arguments)))
}

/// What HIP answers where a launch by a module's handle has sizes that no launch can have.
fn module_status(status: Status) -> Status {
    if status == INVALID_CONFIGURATION { INVALID_VALUE } else { status }
}

/// Launches by a module's handle.
fn module_launch(
    kernel: &KernelRef,
    shape: &Shape,
    stream: *mut c_void,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> Outcome {
    submit(stream, module_operation(kernel, shape, parameters, extra)?)
}

fn module_operation(
    kernel: &KernelRef,
    shape: &Shape,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> Outcome<StreamOp> {
    if shape.workgroup.contains(&0) {
        return Err(INVALID_CONFIGURATION);
    }
    runtime().check_launch(kernel, shape).map_err(module_status)?;
    with_either(kernel, shape, parameters, extra)
}

/// Launches by a host stub.
pub(crate) fn stub_launch(
    function: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    dynamic_lds: usize,
    stream: *mut c_void,
) -> Outcome {
    let (kernel, shape) = (stub(function)?, shape(grid.array(), block.array(), dynamic_lds)?);
    submit(stream, stub_operation(&kernel, &shape, arguments)?)
}

fn stub_operation(kernel: &KernelRef, shape: &Shape, arguments: *const *const c_void) -> Outcome<StreamOp> {
    runtime().check_launch(kernel, shape)?;
    with_pointers(kernel, shape, arguments)
}

/// A launch that has the time of its own start in an event, if there is one.
fn timed_launch(mut operation: StreamOp, stream: *mut c_void, start: *mut c_void) -> Outcome {
    if let StreamOp::Kernel(launch) = &mut operation {
        launch.start_event = (!start.is_null()).then_some(start as usize);
    }
    submit(stream, operation)
}

/// Launches what needs all its workgroups resident at once.
fn cooperative_launch(
    kernel: &KernelRef,
    shape: &Shape,
    arguments: *const *const c_void,
    extra: *const *const c_void,
    stream: *mut c_void,
) -> Outcome {
    runtime().check_launch(kernel, shape)?;
    let groups: u64 = (0..3).map(|axis| u64::from(shape.items[axis] / shape.workgroup[axis])).product();
    if groups > resident_workgroups(kernel, shape)? {
        return Err(COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    let mut operation = with_either(kernel, shape, arguments, extra)?;
    if let StreamOp::Kernel(launch) = &mut operation {
        launch.cooperative = true;
    }
    submit(stream, operation)
}

/// `hipLaunchParams`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DeviceLaunch {
    function: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    dynamic_lds: usize,
    stream: *mut c_void,
}

/// `hipFunctionLaunchParams`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DeviceModuleLaunch {
    function: *mut c_void,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    dynamic_lds: c_uint,
    stream: *mut c_void,
    arguments: *const *const c_void,
}

/// Flags of a launch over several devices: nothing is waited for before it, and nothing after it.
const MULTI_DEVICE_FLAGS: c_uint = 1 | 2;

/// The launch of the one device there is, of a list of launches.
fn only_launch<T: Copy>(list: *const T, count: c_uint, flags: c_uint) -> Outcome<T> {
    if list.is_null() || count != 1 || flags & !MULTI_DEVICE_FLAGS != 0 {
        return Err(INVALID_VALUE);
    }
    raw::load(list)
}

/// Refuses the default stream, which launches over several devices cannot have.
fn own_stream(stream: *mut c_void) -> Outcome {
    if stream.is_null() { Err(INVALID_HANDLE) } else { Ok(()) }
}

/// The launch that the parameters of a graph's node describe.
pub(crate) fn node_launch(node: &KernelNode) -> Outcome<StreamOp> {
    if node.function == 0 {
        return Err(INVALID_VALUE);
    }
    let kernel = stub(node.function as *const c_void).or_else(|_| function(node.function as *mut c_void))?;
    let shape = shape(node.grid.array(), node.block.array(), node.dynamic_lds as usize)?;
    runtime().check_launch(&kernel, &shape)?;
    with_either(&kernel, &shape, node.parameters as *const *const c_void, node.extra as *const *const c_void)
}

/// `hipLaunchConfig_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LaunchConfiguration {
    grid: Dim3,
    block: Dim3,
    dynamic_lds: usize,
    stream: *mut c_void,
    attributes: *const Attribute,
    attribute_count: c_uint,
}

/// `HIP_LAUNCH_CONFIG`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DriverConfiguration {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    dynamic_lds: c_uint,
    stream: *mut c_void,
    attributes: *const Attribute,
    attribute_count: c_uint,
}

/// `hipKernelNodeParams`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelNode {
    pub(crate) block: Dim3,
    pub(crate) extra: usize,
    pub(crate) function: usize,
    pub(crate) grid: Dim3,
    pub(crate) parameters: usize,
    pub(crate) dynamic_lds: c_uint,
}

impl Dim3 {
    pub(crate) fn of([x, y, z]: [u32; 3]) -> Self {
        Dim3 { x, y, z }
    }

    fn array(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

entry_points! {
    /// Remembers a launch configuration for the kernel stub that is called next.
    fn __hipPushCallConfiguration(grid: Dim3, block: Dim3, dynamic_lds: usize, stream: *mut c_void) {
        CONFIGURATIONS.with(|stack| stack.borrow_mut().push((grid, block, dynamic_lds, stream)));
        Ok(())
    }

    /// Gives the configuration back to the stub.
    fn __hipPopCallConfiguration(grid: *mut Dim3, block: *mut Dim3, dynamic_lds: *mut usize, stream: *mut *mut c_void) {
        let configuration = CONFIGURATIONS.with(pop).ok_or(MISSING_CONFIGURATION)?;
        raw::store(grid, configuration.0)?;
        raw::store(block, configuration.1)?;
        raw::store(dynamic_lds, configuration.2)?;
        raw::store(stream, configuration.3)
    }

    /// Launches a kernel by its host stub.
    fn hipLaunchKernel / hipLaunchKernel_spt(
        function: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        dynamic_lds: usize,
        stream: *mut c_void,
    ) {
        stub_launch(function, grid, block, arguments, dynamic_lds, stream)
    }

    /// Launches a kernel by its host stub, with attributes.
    fn hipLaunchKernelExC(
        configuration: *const LaunchConfiguration, function: *const c_void, arguments: *const *const c_void
    ) {
        let of = raw::load(configuration)?;
        if !launch_attributes::are_cooperative(of.attributes, of.attribute_count)? {
            return stub_launch(function, of.grid, of.block, arguments, of.dynamic_lds, of.stream);
        }
        let shape = shape(of.grid.array(), of.block.array(), of.dynamic_lds)?;
        cooperative_launch(&stub(function)?, &shape, arguments, null(), of.stream)
    }

    /// Launches a module's kernel, with attributes.
    fn hipDrvLaunchKernelEx(
        configuration: *const DriverConfiguration,
        handle: *mut c_void,
        parameters: *const *const c_void,
        extra: *const *const c_void,
    ) {
        let of = raw::load(configuration)?;
        let shape = shape(of.grid, of.block, of.dynamic_lds as usize)?;
        let kernel = function(handle)?;
        if !launch_attributes::are_cooperative(of.attributes, of.attribute_count)? {
            return module_launch(&kernel, &shape, of.stream, parameters, extra);
        }
        cooperative_launch(&kernel, &shape, parameters, extra, of.stream).map_err(module_status)
    }

    /// Launches a kernel by its host stub with the configuration that was pushed.
    fn hipLaunchByPtr(function: *const c_void) {
        let (grid, block, dynamic_lds, stream) = CONFIGURATIONS.with(pop).ok_or(MISSING_CONFIGURATION)?;
        let arguments = SET_UP.with(|bytes| bytes.take());
        let (kernel, shape) = (stub(function)?, shape(grid.array(), block.array(), dynamic_lds)?);
        runtime().check_launch(&kernel, &shape)?;
        submit(stream, StreamOp::Kernel(Launch::new(kernel, shape, arguments)))
    }

    /// Configures the launch that [`hipLaunchByPtr`] does.
    fn hipConfigureCall(grid: Dim3, block: Dim3, dynamic_lds: usize, stream: *mut c_void) {
        CONFIGURATIONS.with(|stack| stack.borrow_mut().push((grid, block, dynamic_lds, stream)));
        SET_UP.with(|bytes| bytes.take());
        Ok(())
    }

    /// Sets an argument of the launch that [`hipLaunchByPtr`] does.
    fn hipSetupArgument(argument: *const c_void, size: usize, offset: usize) {
        let end = offset.checked_add(size).filter(|end| *end <= MOST_ARGUMENTS).ok_or(INVALID_VALUE)?;
        SET_UP.with(|bytes| {
            let mut bytes = bytes.borrow_mut();
            let length = bytes.len().max(end);
            bytes.resize(length, 0);
            raw::read(argument as usize, &mut bytes[offset..end])
        })
    }

    /// Launches a kernel by its host stub and records events around it.
    fn hipExtLaunchKernel(
        function: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        dynamic_lds: usize,
        stream: *mut c_void,
        start: *mut c_void,
        stop: *mut c_void,
        _flags: i32,
    ) {
        record_optional(stream, start)?;
        let (kernel, shape) = (stub(function)?, shape(grid.array(), block.array(), dynamic_lds)?);
        timed_launch(stub_operation(&kernel, &shape, arguments)?, stream, start)?;
        record_optional(stream, stop)
    }

    /// Launches a kernel by its host stub whose workgroups wait for each other.
    fn hipLaunchCooperativeKernel / hipLaunchCooperativeKernel_spt(
        function: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        dynamic_lds: c_uint,
        stream: *mut c_void,
    ) {
        let shape = shape(grid.array(), block.array(), dynamic_lds as usize)?;
        cooperative_launch(&stub(function)?, &shape, arguments, null(), stream)
    }

    /// Launches kernels, one for each device of a list, whose workgroups wait for each other: there is one device.
    fn hipLaunchCooperativeKernelMultiDevice(list: *const DeviceLaunch, count: c_int, flags: c_uint) {
        let of = only_launch(list, c_uint::try_from(count).map_err(|_| INVALID_VALUE)?, flags)?;
        let kernel = stub(of.function)?;
        own_stream(of.stream)?;
        let shape = shape(of.grid.array(), of.block.array(), of.dynamic_lds)?;
        cooperative_launch(&kernel, &shape, of.arguments, null(), of.stream)
    }

    /// Launches kernels of modules, one for each device of a list, whose workgroups wait for each other.
    fn hipModuleLaunchCooperativeKernelMultiDevice(list: *const DeviceModuleLaunch, count: c_uint, flags: c_uint) {
        let of = only_launch(list, count, flags)?;
        let kernel = function(of.function)?;
        own_stream(of.stream)?;
        let shape = shape(of.grid, of.block, of.dynamic_lds as usize)?;
        cooperative_launch(&kernel, &shape, of.arguments, null(), of.stream).map_err(module_status)
    }

    /// Launches kernels, one for each device of a list.
    fn hipExtLaunchMultiKernelMultiDevice(list: *const DeviceLaunch, count: c_int, flags: c_uint) {
        let of = only_launch(list, c_uint::try_from(count).map_err(|_| INVALID_VALUE)?, flags)?;
        own_stream(of.stream)?;
        stub_launch(of.function, of.grid, of.block, of.arguments, of.dynamic_lds, of.stream)
    }

    /// Launches a module's kernel whose workgroups wait for each other.
    fn hipModuleLaunchCooperativeKernel(
        handle: *mut c_void,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        dynamic_lds: c_uint,
        stream: *mut c_void,
        parameters: *const *const c_void,
    ) {
        let shape = shape([grid_x, grid_y, grid_z], [block_x, block_y, block_z], dynamic_lds as usize)?;
        cooperative_launch(&function(handle)?, &shape, parameters, null(), stream).map_err(module_status)
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
        stream: *mut c_void,
        parameters: *const *const c_void,
        extra: *const *const c_void,
    ) {
        let shape = shape([grid_x, grid_y, grid_z], [block_x, block_y, block_z], dynamic_lds as usize)?;
        module_launch(&function(handle)?, &shape, stream, parameters, extra)
    }

    /// Launches a module's kernel; the grid is in work-items. Programs know it by its C++ names.
    fn hipExtModuleLaunchKernel / hipHccModuleLaunchKernel /
        _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j /
        _Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_(
        handle: *mut c_void,
        items_x: u32,
        items_y: u32,
        items_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        dynamic_lds: usize,
        stream: *mut c_void,
        parameters: *const *const c_void,
        extra: *const *const c_void,
        start: *mut c_void,
        stop: *mut c_void,
    ) {
        let dynamic_lds = u32::try_from(dynamic_lds).map_err(|_| INVALID_VALUE)?;
        let shape = Shape { items: [items_x, items_y, items_z], workgroup: [block_x, block_y, block_z], dynamic_lds };
        let kernel = function(handle)?;
        record_optional(stream, start)?;
        timed_launch(module_operation(&kernel, &shape, parameters, extra)?, stream, start)?;
        record_optional(stream, stop)
    }
}
