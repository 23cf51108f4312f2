//! Giving streams something to do: it is done in its turn, or becomes a node of the graph that is being captured.

use std::ffi::c_void;

use crate::lock::runtime;
use crate::status::*;
use crate::stream_op::StreamOp;
use crate::tasks;

/// Gives a stream something to do, or the graph that is being captured from it. Only a copy to the program's own memory
/// has been done when this returns.
pub(crate) fn submit(stream: *mut c_void, operation: StreamOp) -> Outcome {
    let to_pageable = {
        let mut runtime = runtime();
        if runtime.capture_operation(stream, &operation)? {
            return Ok(());
        }
        runtime.is_to_pageable(&operation)
    };
    match tasks::give(stream, operation)? {
        Some(task) if to_pageable => tasks::wait_for(task),
        _ => Ok(()),
    }
}

/// As [`submit`], and has been done when this returns.
pub(crate) fn submit_and_wait(stream: *mut c_void, operation: StreamOp) -> Outcome {
    if runtime().capture_operation(stream, &operation)? {
        return Ok(());
    }
    tasks::give(stream, operation)?.map_or(Ok(()), tasks::wait_for)
}

/// Something that no capture may see, in the order of the default stream. It has been done when the call returns, but
/// for fills of device memory.
pub(crate) fn do_now(operation: &StreamOp) -> Outcome {
    let fills_device = {
        let mut runtime = runtime();
        runtime.refuse_while_capturing()?;
        matches!(operation, StreamOp::Fill(fill) if runtime.is_device_memory(fill.to.start))
    };
    match tasks::give(std::ptr::null_mut(), operation.clone())? {
        Some(task) if !fills_device => tasks::wait_for(task),
        _ => Ok(()),
    }
}
