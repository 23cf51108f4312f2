//! The entry points for the nodes of graphs: adding them, asking for what they do, changing it.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};

use wavetap::code_object::KernelMetadata;

use crate::copies::{BoxCopy, BoxFill, Side};
use crate::copy_calls::{driver_3d, from_symbol, parameters_3d, to_symbol};
use crate::entry_point::entry_points;
use crate::extents::{Copy3D, Extent};
use crate::graphs::same_shape;
use crate::launch::{Dim3, KernelNode, node_launch};
use crate::lock::runtime;
use crate::node_types::{NodeType, type_of};
use crate::raw;
use crate::runtime::Runtime;
use crate::status::*;
use crate::stream_op::{HostCall, HostFunction, Launch, StreamOp};

/// `hipMemsetParams`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FillParameters {
    to: u64,
    element_size: c_uint,
    height: usize,
    pitch: usize,
    value: c_uint,
    width: usize,
}

/// `HIP_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DriverFill {
    to: u64,
    pitch: usize,
    value: c_uint,
    element_size: c_uint,
    width: usize,
    height: usize,
}

impl FillParameters {
    fn load(parameters: *const c_void) -> Outcome<StreamOp> {
        raw::load(parameters.cast::<Self>())?.operation()
    }

    fn load_driver(parameters: *const c_void) -> Outcome<StreamOp> {
        let DriverFill { to, pitch, value, element_size, width, height } = raw::load(parameters.cast())?;
        FillParameters { to, element_size, height, pitch, value, width }.operation()
    }

    fn operation(self) -> Outcome<StreamOp> {
        if !matches!(self.element_size, 1 | 2 | 4) || self.to == 0 || self.height == 0 {
            return Err(INVALID_VALUE);
        }
        let element = self.value.to_le_bytes()[..self.element_size as usize].to_vec();
        // One row needs no pitch.
        let pitch = if self.height <= 1 { usize::MAX } else { self.pitch };
        let to = Side::new(self.to, pitch, self.height);
        Ok(StreamOp::Fill(BoxFill { to, element, extent: Extent { width: self.width, height: self.height, depth: 1 } }))
    }

    fn of(fill: &BoxFill) -> Self {
        let mut value = [0; 4];
        value[..fill.element.len().min(4)].copy_from_slice(&fill.element[..fill.element.len().min(4)]);
        FillParameters {
            to: fill.to.start,
            element_size: fill.element.len() as c_uint,
            height: fill.extent.height,
            pitch: if fill.to.pitch == usize::MAX { 0 } else { fill.to.pitch },
            value: u32::from_le_bytes(value),
            width: fill.extent.width,
        }
    }
}

/// Bytes of `hipKernelNodeAttrValue`, and `hipKernelNodeAttrID`: what caches keep, that workgroups wait for each other
/// (those of a launch are in flight together anyway), the priority.
const ATTRIBUTE: usize = 32;
const ATTRIBUTES: [c_int; 3] = [1, 2, 8];

/// The attributes of a kernel's node.
fn kernel_node(node: usize) -> Outcome<HashMap<c_int, [u8; ATTRIBUTE]>> {
    let runtime = runtime();
    let node = runtime.graphs.node(node)?;
    if type_of(&node.operation) == NodeType::Kernel { Ok(node.attributes.clone()) } else { Err(INVALID_VALUE) }
}

/// `hipHostNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
struct HostNode {
    function: Option<HostFunction>,
    data: usize,
}

impl HostNode {
    fn load(parameters: *const c_void) -> Outcome<StreamOp> {
        let HostNode { function, data } = raw::load(parameters.cast::<Self>())?;
        Ok(StreamOp::Host { call: HostCall::Plain(function.ok_or(INVALID_VALUE)?), data })
    }
}

/// The places of `hipMemAllocNodeParams` that matter here, in words: after the properties of a pool and a list of
/// devices.
const ALLOCATION_WORDS: usize = 15;
const ALLOCATION_SIZE: usize = 13;
const ALLOCATION_ADDRESS: usize = 14;

fn add(out: *mut usize, graph: usize, after: *const usize, count: usize, operation: StreamOp) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    let after = raw::array(after, count)?;
    let node = runtime().graphs.add(graph, operation, &after)?;
    raw::store(out, node)
}

/// Gives a node something else to do of the same sort.
fn set(node: usize, operation: StreamOp) -> Outcome {
    let mut runtime = runtime();
    let node = runtime.graphs.node_mut(node)?;
    replace(&mut node.operation, operation)
}

/// Gives a step of an instantiated graph something else to do of the same sort.
fn set_step(executable: usize, node: usize, operation: StreamOp) -> Outcome {
    let mut runtime = runtime();
    replace(&mut runtime.graphs.step(executable, node)?.operation, operation)
}

fn replace(old: &mut StreamOp, new: StreamOp) -> Outcome {
    if type_of(old) != type_of(&new) {
        return Err(INVALID_VALUE);
    }
    *old = new;
    Ok(())
}

fn event(event: *mut c_void) -> Outcome<*mut c_void> {
    runtime().streams.event(event).map(|_| event).map_err(|_| INVALID_VALUE)
}

/// The value by which a program knows a kernel.
fn function_of(runtime: &Runtime, launch: &Launch) -> Outcome<usize> {
    let stub = runtime.code.kernels.iter().find(|(_, kernel)| **kernel == launch.kernel).map(|(stub, _)| *stub);
    let handle = || runtime.code.functions.iter().position(|kernel| *kernel == launch.kernel).map(|index| index + 1);
    stub.or_else(handle).ok_or(INVALID_VALUE)
}

/// Addresses of a launch's arguments.
fn argument_addresses(launch: &Launch, metadata: &KernelMetadata) -> Vec<usize> {
    let explicit = metadata.args.iter().filter(|argument| !argument.value_kind.is_hidden());
    explicit.map(|argument| launch.arguments.as_ptr() as usize + argument.offset as usize).collect()
}

fn kernel_parameters(node: usize) -> Outcome<KernelNode> {
    let mut runtime = runtime();
    let StreamOp::Kernel(launch) = &runtime.graphs.node(node)?.operation else { return Err(INVALID_VALUE) };
    let (shape, function, kernel) = (launch.shape, function_of(&runtime, launch)?, launch.kernel.clone());
    let metadata = runtime.kernel(&kernel)?;
    let node = runtime.graphs.node_mut(node)?;
    if let StreamOp::Kernel(launch) = &node.operation {
        node.pointers = argument_addresses(launch, &metadata);
    }
    let mut groups = [0; 3];
    for (groups, (items, size)) in groups.iter_mut().zip(shape.items.into_iter().zip(shape.workgroup)) {
        *groups = items.div_ceil(size);
    }
    Ok(KernelNode {
        block: Dim3::of(shape.workgroup),
        extra: 0,
        function,
        grid: Dim3::of(groups),
        parameters: node.pointers.as_ptr() as usize,
        dynamic_lds: shape.dynamic_lds,
    })
}

/// What a node does, asked for as `wanted`.
fn asked<T>(node: usize, wanted: impl Fn(&StreamOp) -> Option<T>) -> Outcome<T> {
    wanted(&runtime().graphs.node(node)?.operation).ok_or(INVALID_VALUE)
}

/// A copy's box as the program described it, or as the memory that it is.
fn copy_of(node: usize) -> Outcome<Copy3D> {
    let runtime = runtime();
    let node = runtime.graphs.node(node)?;
    match &node.operation {
        StreamOp::Copy(copy) => Ok(node.described.unwrap_or_else(|| Copy3D::of(copy))),
        _ => Err(INVALID_VALUE),
    }
}

/// Remembers how the program described a copy.
fn describe(node: usize, parameters: *const c_void) -> Outcome {
    let described = raw::load(parameters.cast::<Copy3D>())?;
    runtime().graphs.node_mut(node)?.described = Some(described);
    Ok(())
}

fn linear(to: u64, from: u64, size: usize, kind: c_int) -> Outcome<StreamOp> {
    within_memory(StreamOp::Copy(BoxCopy::linear(to, from, size, kind)?))
}

/// Bytes from an address to the end of its memory, if that is known.
fn bytes_from(runtime: &mut Runtime, address: u64) -> Outcome<Option<u64>> {
    if let Some(range) = runtime.host.range_of(address) {
        return Ok(Some(range.size - (address - range.address)));
    }
    let found = runtime.device()?.allocation_of(address);
    Ok(found.map(|found| found.size - (address - found.address)))
}

/// A copy of bytes, unless it is to or from nothing, or leaves an allocation.
fn within_memory(operation: StreamOp) -> Outcome<StreamOp> {
    let (StreamOp::Copy(copy) | StreamOp::SymbolCopy { copy, .. }) = &operation else { return Err(INVALID_VALUE) };
    let mut runtime = runtime();
    for address in [copy.to.start, copy.from.start] {
        let most = bytes_from(&mut runtime, address)?;
        if address == 0 || most.is_some_and(|most| copy.extent.width as u64 > most) {
            return Err(INVALID_VALUE);
        }
    }
    Ok(operation)
}

/// What a copy of bytes is to copy from now on: not nothing, nor what it overlaps, nor what has another kind than the
/// program says. A variable is named by the call for it, not by its address on the host.
fn replaced(operation: StreamOp) -> Outcome<StreamOp> {
    let operation = within_memory(operation)?;
    let (StreamOp::Copy(copy) | StreamOp::SymbolCopy { copy, .. }) = &operation else { return Err(INVALID_VALUE) };
    let (to, from, size) = (copy.to.start, copy.from.start, copy.extent.width as u64);
    let runtime = runtime();
    // `hipMemcpyKind`: whether it is from the device, and to it. What is said to be the host's may be the device's.
    let device = [matches!(copy.kind, 2 | 3), matches!(copy.kind, 1 | 3)];
    let other = |address, device: bool| device && runtime.is_pageable(address);
    let overlap = to < from.saturating_add(size) && from < to.saturating_add(size);
    let is_variable = [to, from].iter().any(|address| runtime.code.variables.contains_key(&(*address as usize)));
    if size == 0 || overlap || is_variable || other(from, device[0]) || other(to, device[1]) {
        return Err(INVALID_VALUE);
    }
    drop(runtime);
    Ok(operation)
}

fn copy_of_graph(graph: usize) -> Outcome<StreamOp> {
    runtime().graphs.copy(graph).map(StreamOp::Child)
}

macro_rules! additions {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => $of:expr;)*) => {
        entry_points! {$(
            $(#[$meta])*
            fn $name(out: *mut usize, graph: usize, after: *const usize, count: usize $(, $arg: $ty)*) {
                add(out, graph, after, count, $of)
            }
        )*}
    };
}

additions! {
    /// Adds a kernel.
    fn hipGraphAddKernelNode(node: *const KernelNode) => node_launch(&raw::load(node)?)?;
    /// Adds a copy of bytes.
    fn hipGraphAddMemcpyNode1D(to: u64, from: u64, size: usize, kind: c_int) => linear(to, from, size, kind)?;
    /// Adds a copy to a variable.
    fn hipGraphAddMemcpyNodeToSymbol(to: *const c_void, from: u64, size: usize, offset: usize, kind: c_int)
        => within_memory(to_symbol(to, from, size, offset, kind)?)?;
    /// Adds a copy from a variable.
    fn hipGraphAddMemcpyNodeFromSymbol(to: u64, from: *const c_void, size: usize, offset: usize, kind: c_int)
        => within_memory(from_symbol(to, from, size, offset, kind)?)?;
    /// Adds a copy described as the driver does.
    fn hipDrvGraphAddMemcpyNode(
        parameters: *const c_void, _context: *mut c_void
    ) => StreamOp::Copy(driver_3d(parameters)?);
    /// Adds a fill.
    fn hipGraphAddMemsetNode(parameters: *const c_void) => FillParameters::load(parameters)?;
    /// Adds a fill described as the driver does.
    fn hipDrvGraphAddMemsetNode(
        parameters: *const c_void, _context: *mut c_void
    ) => FillParameters::load_driver(parameters)?;
    /// Adds a call of a function of the program.
    fn hipGraphAddHostNode(parameters: *const c_void) => HostNode::load(parameters)?;
    /// Adds a node that does nothing.
    fn hipGraphAddEmptyNode() => StreamOp::Empty;
    /// Adds the recording of an event.
    fn hipGraphAddEventRecordNode(recorded: *mut c_void) => StreamOp::Record(event(recorded)? as usize);
    /// Adds the waiting for an event.
    fn hipGraphAddEventWaitNode(awaited: *mut c_void) => StreamOp::Wait(event(awaited)? as usize);
    /// Adds a copy of a graph.
    fn hipGraphAddChildGraphNode(child: usize) => copy_of_graph(child)?;
    /// Adds the end of an allocation.
    fn hipGraphAddMemFreeNode(address: u64) => StreamOp::Free(address);
    /// Adds the end of an allocation.
    fn hipDrvGraphAddMemFreeNode(address: u64) => StreamOp::Free(address);
}

entry_points! {
    /// Adds a copy.
    fn hipGraphAddMemcpyNode(
        out: *mut usize, graph: usize, after: *const usize, count: usize, parameters: *const c_void
    ) {
        add(out, graph, after, count, StreamOp::Copy(parameters_3d(parameters)?))?;
        describe(raw::load(out.cast_const())?, parameters)
    }

    /// Adds an allocation, which has its address from now on.
    fn hipGraphAddMemAllocNode(out: *mut usize, graph: usize, after: *const usize, count: usize, parameters: *mut u64) {
        let words = raw::array(parameters.cast_const(), ALLOCATION_WORDS)?;
        let size = words.get(ALLOCATION_SIZE).copied().filter(|size| *size > 0).ok_or(INVALID_VALUE)?;
        let mut locked = runtime();
        locked.graphs.graph(graph)?;
        let address = locked.allocate(size)?;
        drop(locked);
        add(out, graph, after, count, StreamOp::Allocate { address, size })?;
        runtime().graph_allocates(graph, address, size)?;
        raw::store(parameters.wrapping_add(ALLOCATION_ADDRESS), address)
    }

    /// Size and address of an allocation.
    fn hipGraphMemAllocNodeGetParams(node: usize, out: *mut u64) {
        let (address, size) = asked(node, |operation| match operation {
            StreamOp::Allocate { address, size } => Some((*address, *size)),
            _ => None,
        })?;
        (0..ALLOCATION_WORDS).try_for_each(|word| raw::store(out.wrapping_add(word), 0))?;
        raw::store(out.wrapping_add(ALLOCATION_SIZE), size)?;
        raw::store(out.wrapping_add(ALLOCATION_ADDRESS), address)
    }

    /// The address whose use ends.
    fn hipGraphMemFreeNodeGetParams(node: usize, out: *mut u64) {
        let address = asked(node, |operation| match operation {
            StreamOp::Free(address) => Some(*address),
            _ => None,
        })?;
        raw::store(out, address)
    }

    /// The launch of a kernel's node; the arguments are the node's own.
    fn hipGraphKernelNodeGetParams(node: usize, out: *mut KernelNode) {
        raw::store(out, kernel_parameters(node)?)
    }

    /// Sets the launch of a kernel's node.
    fn hipGraphKernelNodeSetParams(node: usize, parameters: *const KernelNode) {
        set(node, node_launch(&raw::load(parameters)?)?)
    }

    /// Sets the launch of an instantiated kernel.
    fn hipGraphExecKernelNodeSetParams(executable: usize, node: usize, parameters: *const KernelNode) {
        set_step(executable, node, node_launch(&raw::load(parameters)?)?)
    }

    /// Copies attributes of a kernel's node: none makes a difference.
    fn hipGraphKernelNodeCopyAttributes(from: usize, to: usize) {
        let attributes = kernel_node(from)?;
        kernel_node(to)?;
        runtime().graphs.node_mut(to)?.attributes = attributes;
        Ok(())
    }

    /// Sets an attribute of a kernel's node: none makes a difference.
    fn hipGraphKernelNodeSetAttribute(node: usize, attribute: c_int, value: *const [u8; ATTRIBUTE]) {
        kernel_node(node)?;
        let value = raw::load(value)?;
        if !ATTRIBUTES.contains(&attribute) {
            return Err(INVALID_VALUE);
        }
        runtime().graphs.node_mut(node)?.attributes.insert(attribute, value);
        Ok(())
    }

    /// An attribute of a kernel's node; what was not set is 0.
    fn hipGraphKernelNodeGetAttribute(node: usize, attribute: c_int, out: *mut [u8; ATTRIBUTE]) {
        let attributes = kernel_node(node)?;
        if !ATTRIBUTES.contains(&attribute) {
            return Err(INVALID_VALUE);
        }
        raw::store(out, attributes.get(&attribute).copied().unwrap_or_default())
    }

    /// A copy's box.
    fn hipGraphMemcpyNodeGetParams(node: usize, out: *mut c_void) {
        raw::store(out.cast::<Copy3D>(), copy_of(node)?)
    }

    /// Sets a copy's box.
    fn hipGraphMemcpyNodeSetParams(node: usize, parameters: *const c_void) {
        set(node, StreamOp::Copy(parameters_3d(parameters)?))?;
        describe(node, parameters)
    }

    /// Sets a copy's box.
    fn hipDrvGraphMemcpyNodeSetParams(node: usize, parameters: *const c_void) {
        set(node, StreamOp::Copy(driver_3d(parameters)?))
    }

    /// Sets an instantiated copy's box.
    fn hipGraphExecMemcpyNodeSetParams(executable: usize, node: usize, parameters: *const c_void) {
        set_step(executable, node, StreamOp::Copy(parameters_3d(parameters)?))
    }

    /// Sets an instantiated copy's box.
    fn hipDrvGraphExecMemcpyNodeSetParams(
        executable: usize, node: usize, parameters: *const c_void, _context: *mut c_void
    ) {
        set_step(executable, node, StreamOp::Copy(driver_3d(parameters)?))
    }

    /// Sets what a copy of bytes copies.
    fn hipGraphMemcpyNodeSetParams1D(node: usize, to: u64, from: u64, size: usize, kind: c_int) {
        set(node, replaced(linear(to, from, size, kind)?)?)?;
        runtime().graphs.node_mut(node)?.described = None;
        Ok(())
    }

    /// Sets what an instantiated copy of bytes copies.
    fn hipGraphExecMemcpyNodeSetParams1D(executable: usize, node: usize, to: u64, from: u64, size: usize, kind: c_int) {
        set_step(executable, node, replaced(linear(to, from, size, kind)?)?)
    }

    /// Sets what a copy to a variable copies.
    fn hipGraphMemcpyNodeSetParamsToSymbol(
        node: usize, to: *const c_void, from: u64, size: usize, offset: usize, kind: c_int
    ) {
        set(node, replaced(to_symbol(to, from, size, offset, kind)?)?)
    }

    /// Sets what a copy from a variable copies.
    fn hipGraphMemcpyNodeSetParamsFromSymbol(
        node: usize, to: u64, from: *const c_void, size: usize, offset: usize, kind: c_int
    ) {
        set(node, replaced(from_symbol(to, from, size, offset, kind)?)?)
    }

    /// Sets what an instantiated copy to a variable copies.
    fn hipGraphExecMemcpyNodeSetParamsToSymbol(
        executable: usize, node: usize, to: *const c_void, from: u64, size: usize, offset: usize, kind: c_int,
    ) {
        set_step(executable, node, replaced(to_symbol(to, from, size, offset, kind)?)?)
    }

    /// Sets what an instantiated copy from a variable copies.
    fn hipGraphExecMemcpyNodeSetParamsFromSymbol(
        executable: usize, node: usize, to: u64, from: *const c_void, size: usize, offset: usize, kind: c_int,
    ) {
        set_step(executable, node, replaced(from_symbol(to, from, size, offset, kind)?)?)
    }

    /// What a fill fills.
    fn hipGraphMemsetNodeGetParams(node: usize, out: *mut c_void) {
        let fill = asked(node, |operation| match operation {
            StreamOp::Fill(fill) => Some(FillParameters::of(fill)),
            _ => None,
        })?;
        raw::store(out.cast(), fill)
    }

    /// Sets what a fill fills.
    fn hipGraphMemsetNodeSetParams(node: usize, parameters: *const c_void) {
        set(node, FillParameters::load(parameters)?)
    }

    /// Sets what an instantiated fill fills.
    fn hipGraphExecMemsetNodeSetParams(executable: usize, node: usize, parameters: *const c_void) {
        set_step(executable, node, FillParameters::load(parameters)?)
    }

    /// Sets what an instantiated fill fills.
    fn hipDrvGraphExecMemsetNodeSetParams(
        executable: usize, node: usize, parameters: *const c_void, _context: *mut c_void
    ) {
        set_step(executable, node, FillParameters::load_driver(parameters)?)
    }

    /// The function that a node calls.
    fn hipGraphHostNodeGetParams(node: usize, out: *mut c_void) {
        let (function, data) = asked(node, |operation| match operation {
            StreamOp::Host { call: HostCall::Plain(function), data } => Some((*function, *data)),
            _ => None,
        })?;
        raw::store(out.cast(), HostNode { function: Some(function), data })
    }

    /// Sets the function that a node calls.
    fn hipGraphHostNodeSetParams(node: usize, parameters: *const c_void) {
        set(node, HostNode::load(parameters)?)
    }

    /// Sets the function that an instantiated node calls.
    fn hipGraphExecHostNodeSetParams(executable: usize, node: usize, parameters: *const c_void) {
        set_step(executable, node, HostNode::load(parameters)?)
    }

    /// The event that a node records.
    fn hipGraphEventRecordNodeGetEvent(node: usize, out: *mut usize) {
        let event = asked(node, |operation| match operation {
            StreamOp::Record(event) => Some(*event),
            _ => None,
        })?;
        raw::store(out, event)
    }

    /// Sets the event that a node records.
    fn hipGraphEventRecordNodeSetEvent(node: usize, recorded: *mut c_void) {
        set(node, StreamOp::Record(event(recorded)? as usize))
    }

    /// Sets the event that an instantiated node records.
    fn hipGraphExecEventRecordNodeSetEvent(executable: usize, node: usize, recorded: *mut c_void) {
        set_step(executable, node, StreamOp::Record(event(recorded)? as usize))
    }

    /// The event that a node waits for.
    fn hipGraphEventWaitNodeGetEvent(node: usize, out: *mut usize) {
        let event = asked(node, |operation| if let StreamOp::Wait(event) = operation { Some(*event) } else { None })?;
        raw::store(out, event)
    }

    /// Sets the event that a node waits for.
    fn hipGraphEventWaitNodeSetEvent(node: usize, awaited: *mut c_void) {
        set(node, StreamOp::Wait(event(awaited)? as usize))
    }

    /// Sets the event that an instantiated node waits for.
    fn hipGraphExecEventWaitNodeSetEvent(executable: usize, node: usize, awaited: *mut c_void) {
        set_step(executable, node, StreamOp::Wait(event(awaited)? as usize))
    }

    /// The graph within a node.
    fn hipGraphChildGraphNodeGetGraph(node: usize, out: *mut usize) {
        let child = asked(node, |operation| if let StreamOp::Child(child) = operation { Some(*child) } else { None })?;
        raw::store(out, child)
    }

    /// Sets the graph within an instantiated node.
    fn hipGraphExecChildGraphNodeSetParams(executable: usize, node: usize, child: usize) {
        let mut runtime = runtime();
        let youngest = runtime.settings.strict;
        let steps = runtime.graphs.steps(child, youngest)?;
        if runtime.graphs.node(node)?.graph == child {
            return Err(UNKNOWN);
        }
        let StreamOp::Steps(old) = &mut runtime.graphs.step(executable, node)?.operation else {
            return Err(INVALID_VALUE);
        };
        same_shape(old, &steps).map_err(|_| GRAPH_EXEC_UPDATE_FAILURE)?;
        *old = steps;
        Ok(())
    }
}

// The layouts as C compilers lay the headers' structures out.
const _: () =
    assert!(size_of::<KernelNode>() == 64 && size_of::<FillParameters>() == 48 && size_of::<DriverFill>() == 40);
