//! The engine of copies: those packets that the runtime (ROCr 5.2 to 7.2) makes. Their fields are those of SDMA 4 and
//! later; rectangles have others from gfx12 on.

use wavetap_emulator::Device;

use super::{Queue, Step, Surroundings, Trouble, at, load32, load64, rectangle, store64};
use crate::clock;

/// Operations, in the low byte of the first word.
mod operation {
    pub(super) const NOP: u32 = 0;
    pub(super) const COPY: u32 = 1;
    pub(super) const FENCE: u32 = 5;
    pub(super) const TRAP: u32 = 6;
    pub(super) const POLL: u32 = 8;
    pub(super) const ATOMIC: u32 = 10;
    pub(super) const CONSTANT_FILL: u32 = 11;
    pub(super) const TIMESTAMP: u32 = 13;
    pub(super) const GCR: u32 = 17;
}

/// Names of all operations that the engine of copies has, which are more than the runtime uses.
const NAMES: [(u32, &str); 17] = [
    (operation::NOP, "NOP"),
    (operation::COPY, "COPY"),
    (2, "WRITE"),
    (4, "INDIRECT"),
    (operation::FENCE, "FENCE"),
    (operation::TRAP, "TRAP"),
    (7, "SEMAPHORE"),
    (operation::POLL, "POLL_REGMEM"),
    (9, "COND_EXE"),
    (operation::ATOMIC, "ATOMIC"),
    (operation::CONSTANT_FILL, "CONST_FILL"),
    (12, "PTEPDE"),
    (operation::TIMESTAMP, "TIMESTAMP"),
    (14, "SRBM_WRITE"),
    (15, "PRE_EXE"),
    (16, "GPUVM_INV"),
    (operation::GCR, "GCR_REQ"),
];

/// Copies of a row of bytes, and of a rectangle of elements between linear memory.
const LINEAR: u32 = 0;
const RECTANGLE: u32 = 4;

/// The global clock, of the operations with time.
const GLOBAL_CLOCK: u32 = 2;

/// A 64-bit addition that returns nothing, of the atomic operations.
const ADD_64: u32 = 47;

/// One source and two destinations (bit 27 of a linear copy's header); the bytes of words in another order (bits 16,
/// 17, 24 and 25 of a copy's parameters).
const BROADCAST: u32 = 1 << 27;
const SWAPS: u32 = 3 << 16 | 3 << 24;

/// Words of the longest packet.
pub(crate) const MOST_WORDS: usize = 13;

/// Bytes that are copied at a time.
const PIECE: u64 = 1 << 20;

const RING: &str = "a ring of copies";
const INDEX: &str = "an index of a ring of copies";
pub(crate) const OPERAND: &str = "an operand of a copy";

/// Does the next packet, if there is one.
pub(crate) fn step(queue: &mut Queue, device: &mut Device, around: Surroundings) -> Result<Step, Trouble> {
    let read = load64(device, queue.read_index, INDEX)?;
    let write = load64(device, queue.write_index, INDEX)?;
    if read >= write {
        return Ok(Step::Idle);
    }
    let (start, length) = queue.ring;
    let mut words = [0; MOST_WORDS];
    for (n, word) in words.iter_mut().enumerate() {
        *word = load32(device, start.wrapping_add(read.wrapping_add(4 * n as u64) % length), RING)?;
    }
    match packet(&words, device, around)? {
        None => Ok(Step::Waits),
        Some(size) => {
            store64(device, queue.read_index, read.wrapping_add(size), INDEX)?;
            Ok(Step::Done)
        }
    }
}

/// Does what a packet says, and gives its bytes; none if it has to wait.
fn packet(words: &[u32; MOST_WORDS], device: &mut Device, around: Surroundings) -> Result<Option<u64>, Trouble> {
    let double = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
    let sub = words[0] >> 8 & 0xff;
    let count = |word: u32| u64::from(word & 0x3fff_ffff) + 1;
    let size = match (words[0] & 0xff, sub) {
        (operation::NOP, 0) => 4 * (1 + u64::from(words[0] >> 16 & 0x3fff)),
        (operation::COPY, LINEAR) if words[0] & BROADCAST == 0 && words[2] & SWAPS == 0 => {
            copy(device, double(3), double(5), count(words[1]))?;
            28
        }
        (operation::COPY, RECTANGLE) if words[12] & SWAPS == 0 => {
            let copy = rectangle::Copy::of(words, device.target()).ok_or_else(|| unknown(words[0]))?;
            copy.run(device)?;
            4 * rectangle::WORDS
        }
        (operation::CONSTANT_FILL, 0) => {
            let (size, given) = (words[0] >> 30, count(words[4]));
            // Of dwords the runtime gives four bytes less than there are, the kernel's driver one byte less.
            let length = if size == DWORDS { given.next_multiple_of(4) } else { given };
            fill(device, double(1), words[3], length, size)?;
            20
        }
        (operation::FENCE, 0) => {
            at(device.write(double(1), &words[3].to_le_bytes()), double(1), OPERAND)?;
            16
        }
        (operation::TRAP, 0) => {
            // An event that has been destroyed has no waiter.
            let _ = around.events.set(words[1] & 0x0fff_ffff);
            8
        }
        (operation::POLL, 0) => {
            if !is_met(words, device)? {
                return Ok(None);
            }
            24
        }
        (operation::ATOMIC, 0) if words[0] >> 25 == ADD_64 => {
            let address = double(1);
            at(device.update(address, 8, |old| old.wrapping_add(double(3))), address, OPERAND)?;
            32
        }
        (operation::TIMESTAMP, GLOBAL_CLOCK) => {
            store64(device, double(1), clock::gpu(), OPERAND)?;
            12
        }
        // Of caches, of which there are none.
        (operation::GCR, _) => 20,
        _ => return Err(unknown(words[0])),
    };
    Ok(Some(size))
}

/// What is said of a packet that the runtime is not known to make.
fn unknown(header: u32) -> Trouble {
    let (operation, sub) = (header & 0xff, header >> 8 & 0xff);
    let name = NAMES.iter().find(|(number, _)| *number == operation).map_or("no operation", |(_, name)| name);
    Trouble::Unknown(format!("SDMA packet {header:#010x} ({name}, sub-operation {sub})"))
}

fn copy(device: &mut Device, from: u64, to: u64, length: u64) -> Result<(), Trouble> {
    let mut bytes = vec![0; length.min(PIECE) as usize];
    for offset in (0..length).step_by(PIECE as usize) {
        let piece = &mut bytes[..(length - offset).min(PIECE) as usize];
        let (from, to) = (from.wrapping_add(offset), to.wrapping_add(offset));
        at(device.read(from, piece), from, OPERAND)?;
        at(device.write(to, piece), to, OPERAND)?;
    }
    Ok(())
}

/// A fill whose elements are dwords.
const DWORDS: u32 = 2;

/// Repeats a value, of which as many bytes count as 2 to the power of `size`.
fn fill(device: &mut Device, to: u64, value: u32, length: u64, size: u32) -> Result<(), Trouble> {
    let value = value.to_le_bytes();
    let pattern = match size {
        0 => [value[0]; 4],
        1 => [value[0], value[1], value[0], value[1]],
        _ => value,
    };
    let bytes: Vec<u8> = pattern.into_iter().cycle().take(length.min(PIECE) as usize).collect();
    for offset in (0..length).step_by(PIECE as usize) {
        let piece = &bytes[..(length - offset).min(PIECE) as usize];
        let to = to.wrapping_add(offset);
        at(device.write(to, piece), to, OPERAND)?;
    }
    Ok(())
}

/// Whether memory has the value that a packet polls for; one that flushes a cache of the host's writes polls for none.
fn is_met(words: &[u32; MOST_WORDS], device: &Device) -> Result<bool, Trouble> {
    let (flushes, polls_memory) = (words[0] >> 26 & 1 != 0, words[0] >> 31 != 0);
    if flushes || !polls_memory {
        return Ok(true);
    }
    let address = u64::from(words[1]) | u64::from(words[2]) << 32;
    let (value, wanted) = (load32(device, address, OPERAND)? & words[4], words[3]);
    // FUNC: always, <, <=, ==, !=, >=, >.
    Ok(match words[0] >> 28 & 7 {
        0 => true,
        1 => value < wanted,
        2 => value <= wanted,
        3 => value == wanted,
        4 => value != wanted,
        5 => value >= wanted,
        6 => value > wanted,
        function => return Err(Trouble::Unknown(format!("an SDMA poll with function {function}"))),
    })
}

#[cfg(test)]
mod tests;
