//! Giving streams something to do: it is done in its turn, or becomes a node of the graph that is being captured.

use std::ffi::c_void;

use wavetap::collect::selected::Submitted;
use wavetap_ranges::Pausing;

use crate::lock::runtime;
use crate::status::*;
use crate::stream_op::{Step, StreamOp};
use crate::tasks;

/// Gives a stream something to do, or the graph that is being captured from it. Only a copy to the program's own memory
/// has been done when this returns.
pub(crate) fn submit(stream: *mut c_void, mut operation: StreamOp) -> Outcome {
    let to_pageable = {
        let mut runtime = runtime();
        if runtime.capture_operation(stream, &operation)? {
            return Ok(());
        }
        runtime.check_copy(&operation);
        mark(&mut operation, &here());
        runtime.is_to_pageable(&operation)
    };
    let given = tasks::give(stream, operation)?;
    if to_pageable { tasks::wait_for_given(stream, given) } else { Ok(()) }
}

/// Where the program is.
fn here() -> Submitted {
    let paused = match wavetap_ranges::pausing() {
        Pausing::Unsaid => None,
        Pausing::Paused => Some(true),
        Pausing::Resumed => Some(false),
    };
    Submitted { region: wavetap_ranges::region(), paused }
}

/// Says of kernels where the program was when it submitted them; of those of a graph, when it launched the graph.
fn mark(operation: &mut StreamOp, submitted: &Submitted) {
    match operation {
        StreamOp::Kernel(launch) => {
            let node = launch.submitted.region.take();
            launch.submitted = submitted.clone();
            if let Some(node) = node {
                let ranges = submitted.region.iter().map(String::as_str).chain([node.as_str()]);
                launch.submitted.region = Some(ranges.collect::<Vec<_>>().join("/"));
            }
        }
        StreamOp::Steps(steps) => steps.iter_mut().for_each(|step| mark(&mut step.operation, submitted)),
        _ => {}
    }
}

/// Names the kernels of a graph's steps: by the graph's number and the step's.
pub(crate) fn name_nodes(steps: &mut [Step], graph: &str) {
    for (number, step) in steps.iter_mut().enumerate() {
        let name = format!("{graph}/node {}", number + 1);
        match &mut step.operation {
            StreamOp::Kernel(launch) => launch.submitted.region = Some(name),
            StreamOp::Steps(steps) => name_nodes(steps, &name),
            _ => {}
        }
    }
}

/// As [`submit`], and has been done when this returns.
pub(crate) fn submit_and_wait(stream: *mut c_void, operation: StreamOp) -> Outcome {
    {
        let mut runtime = runtime();
        if runtime.capture_operation(stream, &operation)? {
            return Ok(());
        }
        runtime.check_copy(&operation);
    }
    let given = tasks::give(stream, operation)?;
    tasks::wait_for_given(stream, given)
}

/// Something that no capture may see, in the order of the default stream. It has been done when the call returns, but
/// for fills of device memory.
pub(crate) fn do_now(operation: &StreamOp) -> Outcome {
    let fills_device = {
        let mut runtime = runtime();
        runtime.refuse_while_capturing()?;
        runtime.check_copy(operation);
        matches!(operation, StreamOp::Fill(fill) if runtime.is_device_memory(fill.to.start))
    };
    let stream = std::ptr::null_mut();
    let given = tasks::give(stream, operation.clone())?;
    if fills_device { Ok(()) } else { tasks::wait_for_given(stream, given) }
}
