//! What becomes of a kernel or a packet that did something wrong: the runtime is told as by the hardware, so that the
//! program gets its error; where the emulator itself cannot go on, the program is ended.

use std::sync::PoisonError;

use wavetap_amdgpu::Limit;
use wavetap_emulator::{Beyond, Device, Fault, FaultKind, ObjectId, Overrun};

use super::{Queue, QueueKind, Surroundings, Trouble, aql, load64, symbols};
use crate::layout::{amd_queue, amd_signal};
use crate::raw;
use wavetap_collect::stderr_line;

/// What the trap handler of the runtime writes into a queue's error signal after `s_trap 2` (`abort`, `assert`).
const ERROR_TRAP: u64 = 0x8000_0000;

/// What the packet processor writes there of a dispatch for which there is too little LDS, or too few registers (ROCr,
/// `AqlQueue::DynamicQueueEventsHandler`).
const ERROR_GROUP_MEMORY: u64 = 4;
const ERROR_REGISTERS: u64 = 128;
/// How the names of the kernels begin by which AMD's runtime copies and fills.
const RUNTIMES_KERNELS: &str = "__amd_rocclr_";

/// Whether a kernel is one by which AMD's runtime copies and fills.
pub(crate) fn is_runtimes(name: &str) -> bool {
    name.starts_with(RUNTIMES_KERNELS)
}

/// Reports what went wrong with a packet of a queue, which is not processed any further.
pub(crate) fn report(trouble: &Trouble, queue: &Queue, device: &mut Device, around: Surroundings) {
    match trouble {
        Trouble::Fault { fault, kernel_object } => kernel(fault, *kernel_object, queue, device, around),
        Trouble::Memory { address, what } => {
            stderr_line!("wavetap: {what} is at {address:#x}, which is not mapped{}", of_gpu(queue, around));
            exception(*address, queue, around);
        }
        Trouble::Unknown(what) => {
            stderr_line!("wavetap: {what}: the emulated device does not know it{}", of_gpu(queue, around));
            stop();
        }
    }
}

/// Says that a kernel went past the end of its LDS, once for each kernel.
pub(crate) fn tell_overruns(
    overruns: &[Overrun],
    kernel_object: u64,
    queue: &Queue,
    device: &Device,
    around: Surroundings,
) {
    let Some(overrun) = overruns.iter().find(|overrun| matches!(overrun.beyond, Beyond::Lds { .. })) else { return };
    let name = name(device, kernel_object);
    if !around.told.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone()) {
        return;
    }
    let mut overrun = overrun.clone();
    if let Some(address) = located(device, Some(overrun.place.object), overrun.place.address) {
        overrun.place.address = address;
    }
    stderr_line!(
        "wavetap: {overrun}: a GPU lets that be up to the end of its allocation unit, and so does this run; with \
            --strict it ends the program, in kernel {name}{}",
        of_gpu(queue, around)
    );
}

/// Where an instruction is in its code object.
fn located(device: &Device, object: Option<ObjectId>, address: u64) -> Option<u64> {
    let base = device.code_base(object?)?;
    symbols::offset_in_object(device, base + address)
}

/// The name of a kernel, or where its descriptor is.
fn name(device: &Device, kernel_object: u64) -> String {
    symbols::kernel(device, kernel_object).unwrap_or_else(|| format!("at {kernel_object:#x}"))
}

fn kernel(fault: &Fault, kernel_object: u64, queue: &Queue, device: &mut Device, around: Surroundings) {
    if let Some(mut check) = around.check() {
        check.stopped(fault, device, (kernel_object, queue.launch));
    }
    let mut fault = fault.clone();
    if let Some(address) = located(device, fault.object, fault.address) {
        fault.address = address;
    }
    let name = name(device, kernel_object);
    stderr_line!("wavetap: {fault}, in kernel {name}{}", of_gpu(queue, around));
    if is_runtimes(&name) && name.contains("Image") {
        stderr_line!(
            "wavetap: AMD's runtime lays images out as the emulated device does not know them; programs with arrays, \
                textures or surfaces run with --stack hip"
        );
    }
    match fault.kind {
        FaultKind::Memory { address, .. } | FaultKind::Misaligned { address, .. } => exception(address, queue, around),
        // The hardware has no address for these.
        FaultKind::LdsBounds { .. } | FaultKind::ScratchBounds { .. } => exception(0, queue, around),
        FaultKind::Trap { .. } => {
            if queue_error(ERROR_TRAP, queue, device, around).is_none() {
                stop();
            }
        }
        FaultKind::NoRoom { limit, .. } => {
            let registers = matches!(limit, Limit::VectorRegisters | Limit::ScalarRegisters);
            let error = if registers { ERROR_REGISTERS } else { ERROR_GROUP_MEMORY };
            if queue_error(error, queue, device, around).is_none() {
                stop();
            }
        }
        _ => stop(),
    }
}

/// Which GPU a message is about: the number that HIP has for it, and the node that the runtime names.
fn of_gpu(queue: &Queue, around: Surroundings) -> String {
    if !around.several_gpus {
        return String::new();
    }
    format!(", on GPU {} (node {})", queue.gpu.number(), queue.gpu.node())
}

/// Tells the runtime of an access to what is not mapped.
fn exception(address: u64, queue: &Queue, around: Surroundings) {
    if !around.events.memory_exception(address, queue.gpu.id()) {
        stop();
    }
}

/// Tells the runtime that a queue has stopped; none if it does not listen.
fn queue_error(error: u64, queue: &Queue, device: &mut Device, around: Surroundings) -> Option<()> {
    if queue.kind != QueueKind::Aql {
        return None;
    }
    let start = queue.start();
    let signal = load64(device, amd_queue::queue_inactive_signal.of(start), "").ok().filter(|signal| *signal != 0)?;
    let (mailbox, event) = aql::waiters(device, signal).ok()?;
    device.write(amd_signal::value.of(signal), &error.to_le_bytes()).ok()?;
    aql::notify(device, around, mailbox, event);
    Some(())
}

/// Ends the program as a GPU's fault does: what was to be computed is missing, and a program that goes on would not
/// know.
fn stop() -> ! {
    // What the program has printed so far is what a person looks for first.
    raw::flush_output();
    std::process::abort()
}
