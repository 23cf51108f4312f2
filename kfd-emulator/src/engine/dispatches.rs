//! Dispatches in flight, of packets and of commands.

use std::sync::atomic::{Ordering, fence};

use wavetap_emulator::{Device, Flight, Share};

use super::{Queue, Surroundings, Trouble, faults};

/// Wave-instructions of a kernel before others have their turn: where others are in flight (and several threads run it,
/// which takes its time to begin), and where not.
const TURN: u64 = 20_000;
const DIVIDED_TURN: u64 = 500_000;
const LONG_TURN: u64 = 2_000_000;

/// Runs a share of a dispatch; gives when it began, once it has ended. Until then it is the queue's.
pub(crate) fn advance(
    queue: &mut Queue,
    device: &mut Device,
    around: Surroundings,
    (mut flight, began): (Flight, u64),
    kernel_object: u64,
    shared: bool,
) -> Result<Option<u64>, Trouble> {
    let instructions = match flight.threads() {
        _ if !shared => LONG_TURN,
        1 => TURN,
        _ => DIVIDED_TURN,
    };
    let share = Share { instructions, interrupt: Some(around.waiting) };
    let ended = device.advance(&mut flight, share);
    let found = device.take_findings();
    if let Some(mut check) = around.check()
        && !found.is_empty()
    {
        check.found(found, device, (kernel_object, queue.launch));
    }
    let ended = ended.map_err(|fault| Trouble::of_kernel(fault, kernel_object))?;
    let Some(stats) = ended else {
        queue.flight = Some((flight, began));
        return Ok(None);
    };
    faults::tell_overruns(&stats.overruns, kernel_object, queue, device, around);
    // What the kernel stored is there for who sees its end.
    fence(Ordering::SeqCst);
    Ok(Some(began))
}
