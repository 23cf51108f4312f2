//! Dispatches in time, in Chrome's trace format: `chrome://tracing`, Perfetto (<https://ui.perfetto.dev>) and
//! speedscope open it.
//!
//! The time is modelled. A dispatch begins when the one before it has ended, as the model runs them; a cycle is shown
//! as a nanosecond, as no clock is modelled.

use serde_json::{Value, json};

use wavetap_profile::time::{KernelTime, TimeProfile};

/// Nanoseconds, which cycles are shown as, in the format's microseconds.
const MICROSECOND: f64 = 1000.0;

/// The trace of the selected kernels. Kernels of one target are a process, kernels its threads. A dispatch begins where
/// it begins among those of all kernels.
#[must_use]
pub fn chrome_trace(time: &TimeProfile, is_selected: impl Fn(&KernelTime) -> bool) -> Value {
    let mut targets: Vec<&str> = Vec::new();
    let mut events = Vec::new();
    let mut dispatches = Vec::new();
    for (thread, kernel) in (1..).zip(&time.kernels) {
        if !is_selected(kernel) {
            dispatches.extend(kernel.dispatches.iter().map(|dispatch| (dispatch, None)));
            continue;
        }
        let process = targets.iter().position(|target| *target == kernel.target).unwrap_or_else(|| {
            targets.push(&kernel.target);
            targets.len() - 1
        }) + 1;
        events.push(name("thread_name", process, thread, &kernel.demangled));
        dispatches.extend(kernel.dispatches.iter().map(|dispatch| (dispatch, Some((kernel, process, thread)))));
    }
    for (process, target) in (1..).zip(&targets) {
        events.push(name("process_name", process, 0, &format!("{target}, modelled: 1 ns is a cycle")));
    }
    dispatches.sort_by_key(|(dispatch, ..)| dispatch.dispatch);
    let mut begin = 0_u64;
    for (dispatch, shown) in dispatches {
        events.extend(shown.map(|(kernel, process, thread)| {
            json!({
                "name": kernel.demangled,
                "cat": "dispatch",
                "ph": "X",
                "ts": begin as f64 / MICROSECOND,
                "dur": dispatch.modelled_cycles as f64 / MICROSECOND,
                "pid": process,
                "tid": thread,
                "args": { "dispatch": dispatch.dispatch, "modelled_cycles": dispatch.modelled_cycles },
            })
        }));
        begin = begin.saturating_add(dispatch.modelled_cycles);
    }
    json!({
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": { "modelled": true, "complete": time.complete, "processes": time.processes },
    })
}

/// What a process or a thread is called.
fn name(kind: &str, process: usize, thread: usize, name: &str) -> Value {
    json!({ "name": kind, "ph": "M", "pid": process, "tid": thread, "args": { "name": name } })
}
