//! The packet processor: dispatches, barriers, and AMD's own packets. The packets of a queue are processed one after
//! the other, which the barrier bit allows and nothing forbids.

use std::mem::take;

use wavetap_emulator::{Device, QueuedPacket};

use super::{Queue, Step, Surroundings, Trouble, at, dispatches, load32, load64, pm4, store64};
use crate::clock;
use crate::layout::{amd_signal, barrier, barrier_value};

/// Bytes of a packet.
const PACKET: u64 = 64;

/// Types of packets (`hsa_packet_type_t`), in the low byte of the header.
mod packet {
    pub(super) const VENDOR: u8 = 0;
    pub(super) const INVALID: u8 = 1;
    pub(super) const DISPATCH: u8 = 2;
    pub(super) const BARRIER_AND: u8 = 3;
    pub(super) const BARRIER_OR: u8 = 5;
}

/// Formats of AMD's own packets, in the byte after the header: commands for the hardware in a buffer; and waiting for a
/// value.
const PM4: u8 = 1;
const BARRIER_VALUE: u8 = 2;

/// Signals that a barrier packet can name.
const DEPENDENCES: u64 = 5;

/// Offset of the kernel descriptor's address in a dispatch packet.
const KERNEL_OBJECT: u64 = 32;

const RING: &str = "a queue's ring";
const INDEX: &str = "a queue's index";
const SIGNAL: &str = "a signal";

/// Does the next thing that there is to do of a queue.
pub(crate) fn step(
    queue: &mut Queue,
    device: &mut Device,
    around: Surroundings,
    shared: bool,
) -> Result<Step, Trouble> {
    let read = load64(device, queue.read_index, INDEX)?;
    if read >= load64(device, queue.write_index, INDEX)? {
        return Ok(Step::Idle);
    }
    let address = queue.ring.0.wrapping_add(read.wrapping_mul(PACKET) % queue.ring.1);
    let header = load32(device, address, RING)?;
    let [kind, _, format, _] = header.to_le_bytes();
    let began = match kind {
        // It was reserved, and is being written.
        packet::INVALID => return Ok(Step::Waits),
        packet::DISPATCH => match dispatch(queue, device, around, (address, read), shared)? {
            None => return Ok(Step::Done),
            Some(began) => began,
        },
        packet::BARRIER_AND | packet::BARRIER_OR => {
            if !are_met(device, address, kind == packet::BARRIER_AND)? {
                return Ok(Step::Waits);
            }
            clock::gpu()
        }
        packet::VENDOR if format == PM4 => match commands(queue, device, around, address, shared)? {
            Commanded::Ended => clock::gpu(),
            Commanded::Going(step) => return Ok(step),
        },
        packet::VENDOR if format == BARRIER_VALUE => {
            if !has_value(device, address)? {
                return Ok(Step::Waits);
            }
            clock::gpu()
        }
        _ => {
            let reason = format!("an AQL packet of type {kind}, format {format}, at {address:#x}");
            return Err(Trouble::Unknown(reason));
        }
    };
    let signal = load64(device, barrier::completion_signal.of(address), RING)?;
    at(device.update(address, 4, |word| word & !0xff | u64::from(packet::INVALID)), address, RING)?;
    store64(device, queue.read_index, read.wrapping_add(1), INDEX)?;
    complete(device, around, signal, began)?;
    Ok(Step::Done)
}

/// Begins a dispatch or runs a share of it; gives when it began, once it has ended.
fn dispatch(
    queue: &mut Queue,
    device: &mut Device,
    around: Surroundings,
    (address, read): (u64, u64),
    shared: bool,
) -> Result<Option<u64>, Trouble> {
    let kernel_object = load64(device, address.wrapping_add(KERNEL_OBJECT), RING)?;
    let (flight, began) = match take(&mut queue.flight) {
        Some(running) => running,
        None => {
            let start = queue.start();
            let queued = QueuedPacket { packet: address, queue: start, dispatch_id: read };
            let flight = device.begin_queued(queued).map_err(|fault| Trouble::of_kernel(fault, kernel_object))?;
            queue.launch = around.check().map_or(0, |mut check| check.launched(device, kernel_object));
            (flight, clock::gpu())
        }
    };
    dispatches::advance(queue, device, around, (flight, began), kernel_object, shared)
}

/// How far the commands of a packet are.
enum Commanded {
    Ended,
    Going(Step),
}

/// Does the next command of the buffer that a packet names.
fn commands(
    queue: &mut Queue,
    device: &mut Device,
    around: Surroundings,
    address: u64,
    shared: bool,
) -> Result<Commanded, Trouble> {
    /// A command for a buffer: its header without the bits that are no matter; the words of such a command.
    const INDIRECT_BUFFER: u32 = 0xc002_3f00;
    const NO_MATTER: u32 = 0xff;
    if !queue.in_commands {
        let words = [4, 8, 12, 16].map(|offset| load32(device, address.wrapping_add(offset), RING));
        let [header, low, high, control] = words;
        let (header, low, high, control) = (header?, low?, high?, control?);
        if header & !NO_MATTER != INDIRECT_BUFFER {
            let reason = format!(
                "an AQL packet of AMD's at {address:#x} whose PM4 packet is no INDIRECT_BUFFER: {header:#010x} \
                    {low:#010x} {high:#010x} {control:#010x}"
            );
            return Err(Trouble::Unknown(reason));
        }
        let place = u64::from(low & !3) | u64::from(high) << 32;
        queue.pm4.buffers = vec![pm4::Commands { address: place, words: (control & 0xf_ffff).into() }];
        queue.in_commands = true;
    }
    if queue.flight.is_some() || !queue.pm4.buffers.is_empty() {
        return pm4::in_buffers(queue, device, around, shared).map(Commanded::Going);
    }
    queue.in_commands = false;
    Ok(Commanded::Ended)
}

/// Whether the signals of a barrier packet are 0: all of them, or one.
fn are_met(device: &Device, packet: u64, all: bool) -> Result<bool, Trouble> {
    let (mut any, mut met, mut unmet) = (false, false, false);
    for n in 0..DEPENDENCES {
        let signal = load64(device, barrier::dep_signal.of(packet).wrapping_add(8 * n), RING)?;
        if signal != 0 {
            any = true;
            let value = load64(device, amd_signal::value.of(signal), SIGNAL)?;
            if value == 0 { met = true } else { unmet = true }
        }
    }
    Ok(if all { !unmet } else { met || !any })
}

/// Whether the signal of a packet has the value that it waits for.
fn has_value(device: &Device, packet: u64) -> Result<bool, Trouble> {
    /// Conditions (`hsa_signal_condition_t`) in their order; the last is "at least".
    const EQUAL: u32 = 0;
    const NOT_EQUAL: u32 = 1;
    const LESS: u32 = 2;
    let signal = load64(device, barrier_value::signal.of(packet), RING)?;
    if signal == 0 {
        return Ok(true);
    }
    let mask = load64(device, barrier_value::mask.of(packet), RING)?;
    let wanted = load64(device, barrier_value::value.of(packet), RING)? as i64;
    let value = (load64(device, amd_signal::value.of(signal), SIGNAL)? & mask) as i64;
    Ok(match load32(device, barrier_value::cond.of(packet), RING)? {
        EQUAL => value == wanted,
        NOT_EQUAL => value != wanted,
        LESS => value < wanted,
        _ => value >= wanted,
    })
}

/// Tells the signal of a packet that it was processed.
pub(crate) fn complete(device: &mut Device, around: Surroundings, signal: u64, began: u64) -> Result<(), Trouble> {
    if signal == 0 {
        return Ok(());
    }
    store64(device, amd_signal::start_ts.of(signal), began, SIGNAL)?;
    store64(device, amd_signal::end_ts.of(signal), clock::gpu(), SIGNAL)?;
    let value = amd_signal::value.of(signal);
    // Its owner may free it as soon as it has the new value.
    let (mailbox, event) = waiters(device, signal)?;
    at(device.update(value, 8, |old| old.wrapping_sub(1)), value, SIGNAL)?;
    notify(device, around, mailbox, event);
    Ok(())
}

/// The mailbox and the event of a signal.
pub(crate) fn waiters(device: &Device, signal: u64) -> Result<(u64, u32), Trouble> {
    let mailbox = load64(device, amd_signal::event_mailbox_ptr.of(signal), SIGNAL)?;
    Ok((mailbox, load32(device, amd_signal::event_id.of(signal), SIGNAL)?))
}

/// Wakes who waits for a signal.
pub(crate) fn notify(device: &mut Device, around: Surroundings, mailbox: u64, event: u32) {
    if event == 0 {
        return;
    }
    if mailbox != 0 {
        // The page of mailboxes is the runtime's own; the event is what wakes.
        let _ = device.write(mailbox, &u64::from(event).to_le_bytes());
    }
    // It may have been destroyed in between.
    let _ = around.events.set(event);
}
