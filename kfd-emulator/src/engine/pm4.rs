//! Commands of the hardware's own format (PM4, type 3), in a queue of them or in a buffer that an AQL packet names:
//! those that AMD's runtime and drivers in user space make. Packets and their fields are those of AMD's headers for the
//! Linux driver (`soc15d.h` for gfx9, `nvd.h` later). Commands of a queue are done one after the other; a dispatch has
//! ended before the next command is looked at, so that there is nothing to wait for or to flush.

use std::mem::take;
use std::sync::atomic::{Ordering, fence};

use wavetap_emulator::Device;

use super::registers::Registers;
use super::{Queue, Step, Surroundings, Trouble, at, dispatches, load32, load64, store64};
use crate::clock;

/// Operations (`PACKET3_*`).
mod operation {
    pub(super) const NOP: u32 = 0x10;
    pub(super) const DISPATCH_DIRECT: u32 = 0x15;
    pub(super) const WRITE_DATA: u32 = 0x37;
    pub(super) const WAIT_REG_MEM: u32 = 0x3c;
    pub(super) const INDIRECT_BUFFER: u32 = 0x3f;
    pub(super) const COPY_DATA: u32 = 0x40;
    pub(super) const EVENT_WRITE: u32 = 0x46;
    pub(super) const RELEASE_MEM: u32 = 0x49;
    pub(super) const ACQUIRE_MEM: u32 = 0x58;
    pub(super) const SET_SH_REG: u32 = 0x76;
}

/// Names of operations that come up, done here or not.
const NAMES: [(u32, &str); 21] = [
    (operation::NOP, "NOP"),
    (operation::DISPATCH_DIRECT, "DISPATCH_DIRECT"),
    (0x16, "DISPATCH_INDIRECT"),
    (0x1e, "ATOMIC_MEM"),
    (0x22, "COND_EXEC"),
    (0x23, "PRED_EXEC"),
    (operation::WRITE_DATA, "WRITE_DATA"),
    (operation::WAIT_REG_MEM, "WAIT_REG_MEM"),
    (operation::INDIRECT_BUFFER, "INDIRECT_BUFFER"),
    (operation::COPY_DATA, "COPY_DATA"),
    (operation::EVENT_WRITE, "EVENT_WRITE"),
    (0x47, "EVENT_WRITE_EOP"),
    (operation::RELEASE_MEM, "RELEASE_MEM"),
    (0x50, "DMA_DATA"),
    (operation::ACQUIRE_MEM, "ACQUIRE_MEM"),
    (0x59, "REWIND"),
    (0x68, "SET_CONFIG_REG"),
    (0x69, "SET_CONTEXT_REG"),
    (operation::SET_SH_REG, "SET_SH_REG"),
    (0x79, "SET_UCONFIG_REG"),
    (0x9b, "SET_SH_REG_INDEX"),
];

/// The header that has no words after it: the count that would be 16384.
const NO_WORDS: u32 = 0x3fff;
/// A packet of type 2, which is a filler of one word.
const FILLER: u32 = 2;
/// The type of all others that are done.
const COMMAND: u32 = 3;

/// The first register that SET_SH_REG counts from.
const SH_REGISTERS: u32 = 0x2c00;

/// The registers by which a flush of the host's writes is asked for and told (`BIF_BX_PF0_GPU_HDP_FLUSH_REQ`, `_DONE`):
/// the same numbers in all versions of the block from NBIO 4.3 and 7.9 on.
const HDP_FLUSH: [u32; 2] = [0xe26, 0xe27];

/// Events: caches are flushed or invalidated, waves waited for (`VGT_EVENT_TYPE`).
const CACHE_FLUSH: u32 = 6;
const CS_PARTIAL_FLUSH: u32 = 7;
const CACHE_FLUSH_AND_INV_TS: u32 = 20;
const CACHE_FLUSH_AND_INV: u32 = 22;
const CS_DONE: u32 = 47;

/// How deep buffers of commands may be in each other: one of the ring, and one of that.
const DEEPEST: usize = 2;

const RING: &str = "a ring of commands";
const INDEX: &str = "an index of a ring of commands";
const BUFFER: &str = "a buffer of commands";
const OPERAND: &str = "an operand of a command";

/// Commands that are left of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commands {
    /// Where the next one is.
    pub(crate) address: u64,
    /// Words that are left.
    pub(crate) words: u64,
}

/// How far a queue is in commands.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) registers: Registers,
    /// Buffers that are being done, from the outermost one.
    pub(crate) buffers: Vec<Commands>,
    /// The next word of the ring.
    position: u64,
}

/// What a command comes to.
enum Outcome {
    Done,
    Waits,
    /// The dispatch has begun.
    Begun,
    /// Commands elsewhere are next; whether they are instead of the rest of this buffer.
    Buffer(Commands, bool),
}

/// Does the next command of a queue of them.
pub(crate) fn step(
    queue: &mut Queue,
    device: &mut Device,
    around: Surroundings,
    shared: bool,
) -> Result<Step, Trouble> {
    if queue.flight.is_some() || !queue.pm4.buffers.is_empty() {
        return in_buffers(queue, device, around, shared);
    }
    let length = queue.ring.1 / 4;
    let written = load64(device, queue.write_index, INDEX)? % length;
    if written == queue.pm4.position {
        return Ok(Step::Idle);
    }
    let left = (written + length - queue.pm4.position) % length;
    let ring = queue.ring.0;
    let word = |n: u64| ring.wrapping_add(4 * (n % length));
    let position = queue.pm4.position;
    let Some(command) = read(device, left, |n| word(position + n), RING)? else { return Ok(Step::Waits) };
    let outcome = run(&command, word(position), queue, device, around)?;
    if matches!(outcome, Outcome::Waits) {
        return Ok(Step::Waits);
    }
    queue.pm4.position = (position + command.len() as u64) % length;
    if let Outcome::Buffer(commands, _) = outcome {
        queue.pm4.buffers.push(commands);
    }
    store64(device, queue.read_index, queue.pm4.position, INDEX)?;
    Ok(Step::Done)
}

/// Does the next command of the innermost buffer, or a share of the dispatch that is in flight.
pub(crate) fn in_buffers(
    queue: &mut Queue,
    device: &mut Device,
    around: Surroundings,
    shared: bool,
) -> Result<Step, Trouble> {
    if let Some((flight, began)) = take(&mut queue.flight) {
        let entry = queue.pm4.registers.entry();
        dispatches::advance(queue, device, around, (flight, began), entry, shared)?;
        return Ok(Step::Done);
    }
    let Some(&Commands { address, words }) = queue.pm4.buffers.last() else { return Ok(Step::Idle) };
    if words == 0 {
        queue.pm4.buffers.pop();
        return Ok(Step::Done);
    }
    let place = |n: u64| address.wrapping_add(4 * n);
    let Some(command) = read(device, words, place, BUFFER)? else {
        let reason =
            format!("a PM4 packet at {address:#x} that is longer than its buffer, of which {words} words are left");
        return Err(Trouble::Unknown(reason));
    };
    let outcome = run(&command, address, queue, device, around)?;
    if matches!(outcome, Outcome::Waits) {
        return Ok(Step::Waits);
    }
    if let Some(last) = queue.pm4.buffers.last_mut() {
        let done = command.len() as u64;
        *last = Commands { address: place(done), words: words - done };
    }
    match outcome {
        Outcome::Buffer(commands, true) => {
            queue.pm4.buffers.pop();
            queue.pm4.buffers.push(commands);
        }
        Outcome::Buffer(commands, false) => {
            if queue.pm4.buffers.len() == DEEPEST {
                let reason = "buffers of PM4 commands in each other, more than two";
                return Err(unknown(&command, address, reason));
            }
            queue.pm4.buffers.push(commands);
        }
        _ => {}
    }
    Ok(Step::Done)
}

/// The words of the next packet; none if it has more than are left.
fn read(
    device: &Device,
    left: u64,
    place: impl Fn(u64) -> u64,
    what: &'static str,
) -> Result<Option<Vec<u32>>, Trouble> {
    let header = load32(device, place(0), what)?;
    let words = match header >> 30 {
        FILLER => 1,
        COMMAND if header >> 16 & NO_WORDS == NO_WORDS && header >> 8 & 0xff == operation::NOP => 1,
        // Others are of no known length, and are refused.
        COMMAND => 2 + u64::from(header >> 16 & NO_WORDS),
        _ => 1,
    };
    if words > left {
        return Ok(None);
    }
    (0..words).map(|n| load32(device, place(n), what)).collect::<Result<Vec<u32>, _>>().map(Some)
}

/// What is said of a packet that cannot be done.
fn unknown(command: &[u32], address: u64, why: &str) -> Trouble {
    /// Words that are shown.
    const SHOWN: usize = 9;
    let header = command.first().copied().unwrap_or(0);
    let operation = header >> 8 & 0xff;
    let name = NAMES.iter().find(|(number, _)| *number == operation).map_or("no known operation", |(_, name)| name);
    let name = if header >> 30 == COMMAND { name } else { "not of type 3" };
    let words: Vec<String> = command.iter().take(SHOWN).map(|word| format!("{word:#010x}")).collect();
    let more = if command.len() > SHOWN { " …" } else { "" };
    Trouble::Unknown(format!("PM4 packet {operation:#04x} ({name}) at {address:#x}, {why}: {}{more}", words.join(" ")))
}

/// Does a packet.
fn run(
    command: &[u32],
    address: u64,
    queue: &mut Queue,
    device: &mut Device,
    around: Surroundings,
) -> Result<Outcome, Trouble> {
    let refuse = |why: &str| Err(unknown(command, address, why));
    let (header, body) = command.split_first().unwrap_or((&0, &[]));
    if header >> 30 == FILLER {
        return Ok(Outcome::Done);
    }
    if header >> 30 != COMMAND {
        return refuse("which the emulated device does not have");
    }
    // Predication would need a condition that no packet here sets.
    if header & 1 != 0 {
        return refuse("with a predicate");
    }
    match (header >> 8 & 0xff, body) {
        (operation::NOP, _) => Ok(Outcome::Done),
        (operation::SET_SH_REG, [offset, values @ ..]) => {
            if offset >> 16 != 0 {
                return refuse("with an index");
            }
            let first = SH_REGISTERS + offset;
            for (register, value) in (first..).zip(values) {
                if !queue.pm4.registers.set(register, *value) {
                    return refuse(&format!("of register {register:#x}, which is none of a compute queue"));
                }
            }
            Ok(Outcome::Done)
        }
        (operation::DISPATCH_DIRECT, &[x, y, z, initiator]) => {
            if [x, y, z].contains(&0) {
                return Ok(Outcome::Done);
            }
            let dispatch = match queue.pm4.registers.dispatch(device.target(), [x, y, z], initiator) {
                Ok(dispatch) => dispatch,
                Err(why) => return refuse(&why),
            };
            let began = device.begin_registers(&dispatch);
            let flight = began.map_err(|fault| Trouble::of_kernel(fault, dispatch.entry))?;
            queue.launch = around.check().map_or(0, |mut check| check.launched(device, dispatch.entry));
            queue.flight = Some((flight, clock::gpu()));
            Ok(Outcome::Begun)
        }
        (operation::ACQUIRE_MEM, body @ ([_, _, _, _, _, _] | [_, _, _, _, _, _, _])) => {
            if invalidates_code(device, body) {
                device.forget_code();
            }
            fence(Ordering::SeqCst);
            Ok(Outcome::Done)
        }
        (operation::RELEASE_MEM, &[event, select, low, high, data_low, data_high, context]) => {
            if !is_flush(event & 0x3f) {
                return refuse("with an event that the emulated device does not have");
            }
            let data = double(data_low, data_high);
            let to = double(low & !3, high);
            fence(Ordering::SeqCst);
            match select >> 29 {
                0 => {}
                1 => at(device.write(to, &data_low.to_le_bytes()), to, OPERAND)?,
                2 => at(device.write(to, &data.to_le_bytes()), to, OPERAND)?,
                3 => at(device.write(to, &clock::gpu().to_le_bytes()), to, OPERAND)?,
                _ => return refuse("with data that the emulated device does not have"),
            }
            // Memory, by the L2 cache or not.
            if select >> 16 & 3 > 1 {
                return refuse("to no memory");
            }
            match select >> 24 & 7 {
                // None; wait for the write.
                0 | 3 => {}
                // An interrupt; one after the write.
                1 | 2 => interrupt(around, context, (select >> 29 != 0).then_some(to)),
                _ => return refuse("with an interrupt that the emulated device does not have"),
            }
            Ok(Outcome::Done)
        }
        (operation::WAIT_REG_MEM, &[info, first, second, reference, mask, _]) => match (info >> 4 & 3, info >> 6 & 3) {
            (1, 0 | 3) => {
                let value = load32(device, double(first & !3, second), OPERAND)? & mask;
                let Some(met) = compare(info & 7, value, reference) else { return refuse("with no known comparison") };
                Ok(if met { Outcome::Done } else { Outcome::Waits })
            }
            // The host's writes are in memory at once.
            (0, 1) if [first, second] == HDP_FLUSH => Ok(Outcome::Done),
            _ => refuse("for a register that the emulated device does not have"),
        },
        (operation::WRITE_DATA, [control, low, high, data @ ..]) if matches!(control >> 8 & 0xf, 2 | 5) => {
            let to = double(low & !3, *high);
            let step = if control >> 16 & 1 == 0 { 4 } else { 0 };
            for (n, word) in data.iter().enumerate() {
                let to = to.wrapping_add(step * n as u64);
                at(device.write(to, &word.to_le_bytes()), to, OPERAND)?;
            }
            Ok(Outcome::Done)
        }
        (operation::COPY_DATA, &[control, low, high, to_low, to_high]) if matches!(control >> 8 & 0xf, 2 | 5) => {
            let (from, to) = (double(low & !3, high), double(to_low & !3, to_high));
            let is_wide = control >> 16 & 1 != 0;
            let value = match (control & 0xf, is_wide) {
                (1 | 2, true) => load64(device, from, OPERAND)?,
                (1 | 2, false) => load32(device, from, OPERAND)?.into(),
                (5, _) => double(low, high),
                (9, _) => clock::gpu(),
                _ => return refuse("from what the emulated device does not have"),
            };
            let size = if is_wide { 8 } else { 4 };
            at(device.write(to, &value.to_le_bytes()[..size]), to, OPERAND)?;
            Ok(Outcome::Done)
        }
        (operation::EVENT_WRITE, &[event]) if is_flush(event & 0x3f) => Ok(Outcome::Done),
        (operation::INDIRECT_BUFFER, &[low, high, control]) => {
            let commands = Commands { address: double(low & !3, high), words: (control & 0xf_ffff).into() };
            Ok(Outcome::Buffer(commands, control >> 20 & 1 != 0))
        }
        _ => refuse("which the emulated device does not have"),
    }
}

fn double(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Whether an event only waits for waves, and flushes or invalidates caches, of which there are none.
fn is_flush(event: u32) -> bool {
    matches!(event, CACHE_FLUSH | CS_PARTIAL_FLUSH | CACHE_FLUSH_AND_INV_TS | CACHE_FLUSH_AND_INV | CS_DONE)
}

/// Whether ACQUIRE_MEM says that code has changed: gfx9 has a bit in the first word, later ones two in the last.
fn invalidates_code(device: &Device, body: &[u32]) -> bool {
    const SH_ICACHE_ACTION_ENA: u32 = 1 << 29;
    const GLI_INV: u32 = 3;
    match body {
        [first, ..] if device.target().generation() < 10 => first & SH_ICACHE_ACTION_ENA != 0,
        [_, _, _, _, _, _, last] => last & GLI_INV != 0,
        _ => false,
    }
}

/// WAIT_REG_MEM's comparisons: always, <, <=, ==, !=, >=, >.
fn compare(function: u32, value: u32, reference: u32) -> Option<bool> {
    Some(match function {
        0 => true,
        1 => value < reference,
        2 => value <= reference,
        3 => value == reference,
        4 => value != reference,
        5 => value >= reference,
        6 => value > reference,
        _ => return None,
    })
}

/// Wakes who waits for the event of an interrupt: that which the packet names, or else the one in whose slot it has
/// written, as the kernel's driver finds it.
fn interrupt(around: Surroundings, context: u32, written: Option<u64>) {
    let named = Some(context).filter(|event| *event != 0);
    let event = named.or_else(|| around.events.of_slot(written?));
    if let Some(event) = event {
        // It may have been destroyed in between.
        let _ = around.events.set(event);
    }
}
