//! What kernels ask of the host while they run: device `printf`, the message of `assert`, and memory for `malloc`.
//!
//! A kernel that needs the host takes a packet from a stack of free ones, fills in what each lane asks for, puts the
//! packet on a stack of ready ones and adds to a signal; then it looks at the packet until the host says that it is
//! done. Stacks, packets and signal lie in one range of memory that only this file and such kernels know. The range is
//! the library's own ([`ForeignMemory`]), so it sees when the signal is written: the packets are served there and then,
//! and the kernel never waits.
//!
//! The layout is the one of the ROCm device libraries since 5.2 (`ockl`, hostcall).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use wavetap::emulator::{Device, ForeignMemory};
use wavetap::stderr_line;

use crate::device_heap::DeviceHeap;
use crate::printf;
use crate::status::{OUT_OF_MEMORY, Outcome};

/// Where kernels see the buffer: below device memory, where no program of the host has anything either.
const ADDRESS: u64 = 0x1800_0000_0000;

/// Packets: as many as waves may be resident.
const PACKETS: usize = 2048;

/// Places in the buffer's head, in bytes.
const HEADERS: usize = 0;
const PAYLOADS: usize = 8;
const DOORBELL: usize = 16;
const FREE: usize = 24;
const READY: usize = 32;
const INDEX_MASK: usize = 40;

/// The signal (`amd_signal_t`): its value is 8 bytes in; a mailbox, which there is none of, would come next.
const SIGNAL: usize = 64;
const SIGNAL_VALUE: usize = SIGNAL + 8;

/// Packet headers: next packet, active lanes, service, control.
const HEADER_START: usize = 256;
const HEADER_SIZE: usize = 24;
const LANES: usize = 8;
const SERVICE: usize = 16;
const CONTROL: usize = 20;
/// In the control word: the host has not answered.
const NOT_ANSWERED: u32 = 1;

/// Payloads: eight words of each of 64 lanes.
const PAYLOAD_START: usize = (HEADER_START + PACKETS * HEADER_SIZE).next_multiple_of(PAYLOAD_SIZE);
const PAYLOAD_SIZE: usize = 64 * LANE_SIZE;
const LANE_SIZE: usize = 64;

const SIZE: usize = PAYLOAD_START + PACKETS * PAYLOAD_SIZE;

/// The service that formats text.
const SERVICE_PRINTF: u32 = 2;

/// The service that gives memory and takes it back: an address, or 0 and a size.
const SERVICE_MEMORY: u32 = 3;

/// Fields of the first word of a message: whether it is the first part or the last, how many words follow, which
/// message.
const MESSAGE_BEGIN: u64 = 1;
const MESSAGE_END: u64 = 2;
const MESSAGE_LENGTH: Range<u32> = 5..8;
const MESSAGE_ID: u32 = 8;

/// In the control word of a text: it goes to standard error.
const TO_STANDARD_ERROR: u64 = 1;

/// The buffer, and messages that have begun.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    messages: HashMap<u64, Vec<u64>>,
    last_message: u64,
    /// Services that were asked for and that there are none of: said once.
    refused: Vec<u32>,
    /// What kernels can get memory from.
    heap: Option<DeviceHeap>,
    /// Whether it was said that it is used up.
    is_full: bool,
    /// Whether the kernel wrote to standard error, as a failed assertion does.
    complained: bool,
}

/// The way to the host that kernels are given.
#[derive(Default)]
pub(crate) struct Hostcall {
    buffer: Option<Arc<Mutex<Buffer>>>,
}

/// The device's view of it.
struct Window(Arc<Mutex<Buffer>>);

impl Hostcall {
    /// Address of the buffer, which is made when a kernel first needs it.
    pub(crate) fn address(&mut self, device: &mut Device) -> Outcome<u64> {
        if self.buffer.is_none() {
            let buffer = Arc::new(Mutex::new(Buffer::new()));
            device
                .register_foreign(Box::new(Window(Arc::clone(&buffer))), ADDRESS, SIZE as u64)
                .map_err(|_| OUT_OF_MEMORY)?;
            self.buffer = Some(buffer);
        }
        Ok(ADDRESS)
    }

    /// Address of the heap, which is made when a kernel first needs it.
    pub(crate) fn heap(&mut self, device: &mut Device) -> Outcome<u64> {
        self.address(device)?;
        let mut buffer = self.buffer.as_ref().ok_or(OUT_OF_MEMORY)?.lock().unwrap_or_else(PoisonError::into_inner);
        match &buffer.heap {
            Some(heap) => Ok(heap.address),
            None => Ok(buffer.heap.insert(DeviceHeap::new(device)?).address),
        }
    }

    /// Whether a kernel wrote to standard error since this was last asked.
    pub(crate) fn complained(&self) -> bool {
        self.buffer
            .as_ref()
            .is_some_and(|buffer| std::mem::take(&mut buffer.lock().unwrap_or_else(PoisonError::into_inner).complained))
    }
}

impl ForeignMemory for Window {
    fn read(&self, offset: u64, into: &mut [u8]) {
        let buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        into.copy_from_slice(&buffer.bytes[offset as usize..][..into.len()]);
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.bytes[offset as usize..][..from.len()].copy_from_slice(from);
        if (offset as usize..offset as usize + from.len()).contains(&SIGNAL_VALUE) {
            buffer.serve();
        }
    }
}

impl Buffer {
    fn new() -> Self {
        let mut buffer =
            Buffer { bytes: vec![0; SIZE], messages: HashMap::new(), last_message: 0, ..Buffer::default() };
        buffer.set(HEADERS, ADDRESS + HEADER_START as u64);
        buffer.set(PAYLOADS, ADDRESS + PAYLOAD_START as u64);
        buffer.set(DOORBELL, ADDRESS + SIGNAL as u64);
        buffer.set(INDEX_MASK, PACKETS as u64 - 1);
        // A packet is named by its index and, above the mask, a tag; 0 ends a stack, so packet 0 has a tag from the
        // start.
        let mut top = 0;
        for index in 0..PACKETS {
            buffer.set(HEADER_START + index * HEADER_SIZE, top);
            top = if index == 0 { PACKETS as u64 } else { index as u64 };
        }
        buffer.set(FREE, top);
        buffer
    }

    fn word(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_le_bytes(word)
    }

    fn half(&self, at: usize) -> u32 {
        let mut half = [0; 4];
        half.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_le_bytes(half)
    }

    fn set(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Serves every packet that is ready, the first that came first.
    fn serve(&mut self) {
        let mut ready = Vec::new();
        let mut next = self.word(READY);
        self.set(READY, 0);
        while next != 0 && ready.len() < PACKETS {
            let index = (next & (PACKETS as u64 - 1)) as usize;
            ready.push(index);
            next = self.word(HEADER_START + index * HEADER_SIZE);
        }
        for index in ready.into_iter().rev() {
            self.packet(index);
        }
    }

    fn packet(&mut self, index: usize) {
        let header = HEADER_START + index * HEADER_SIZE;
        let lanes = self.word(header + LANES);
        let service = self.half(header + SERVICE);
        for lane in (0..64).filter(|lane| lanes >> lane & 1 != 0) {
            let at = PAYLOAD_START + index * PAYLOAD_SIZE + lane * LANE_SIZE;
            let words = [0, 1, 2, 3, 4, 5, 6, 7].map(|word| self.word(at + 8 * word));
            let answer = match service {
                SERVICE_PRINTF => self.message(&words),
                SERVICE_MEMORY if self.heap.is_some() => self.memory(words[0], words[1]),
                _ => self.refuse(service),
            };
            self.set(at, answer);
        }
        let control = self.half(header + CONTROL) & !NOT_ANSWERED;
        self.bytes[header + CONTROL..][..4].copy_from_slice(&control.to_le_bytes());
    }

    /// Gives memory to a kernel, or takes it back.
    fn memory(&mut self, address: u64, size: u64) -> u64 {
        let Some(heap) = &mut self.heap else { return 0 };
        if address != 0 {
            if !heap.take_back(address) {
                stderr_line!(
                    "wavetap: a kernel frees {address:#x}, which its malloc did not give or which is free already: \
                        nothing is done"
                );
            }
            return 0;
        }
        let given = heap.give(size);
        if given == 0 && !std::mem::replace(&mut self.is_full, true) {
            stderr_line!(
                "wavetap: malloc in a kernel: no room for {size} bytes among the 2 GiB that kernels can have: it gives \
                    null"
            );
        }
        given
    }

    fn refuse(&mut self, service: u32) -> u64 {
        if !self.refused.contains(&service) {
            self.refused.push(service);
            stderr_line!(
                "wavetap: a kernel asks the host for service {service}, which the built-in runtime does not have: it \
                    gets 0"
            );
        }
        0
    }

    /// Takes a part of a lane's message; the last one gives what `printf` returns, the others the message's name.
    fn message(&mut self, words: &[u64; 8]) -> u64 {
        let descriptor = words[0];
        let length = (descriptor >> MESSAGE_LENGTH.start) as usize & ((1 << MESSAGE_LENGTH.len()) - 1);
        let id = if descriptor & MESSAGE_BEGIN != 0 {
            self.last_message += 1;
            self.last_message
        } else {
            descriptor >> MESSAGE_ID
        };
        let message = self.messages.entry(id).or_default();
        message.extend(&words[1..=length]);
        if descriptor & MESSAGE_END == 0 {
            return descriptor & !MESSAGE_BEGIN & ((1 << MESSAGE_ID) - 1) | id << MESSAGE_ID;
        }
        let message = self.messages.remove(&id).unwrap_or_default();
        let Some((control, text)) = message.split_first() else { return u64::MAX };
        if control & !TO_STANDARD_ERROR != 0 {
            return u64::MAX;
        }
        let to_error = control & TO_STANDARD_ERROR != 0;
        self.complained |= to_error;
        printf::print(text, to_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a wave does to ask: takes the packet on top, fills it, makes it ready, rings.
    fn ask(buffer: &mut Window, service: u32, lanes: &[(usize, [u64; 8])]) -> Vec<u64> {
        let word = |buffer: &Window, at: usize| {
            let mut word = [0; 8];
            buffer.read(at as u64, &mut word);
            u64::from_le_bytes(word)
        };
        let packet = word(buffer, FREE);
        let index = (packet & word(buffer, INDEX_MASK)) as usize;
        let header = HEADER_START + index * HEADER_SIZE;
        let next = word(buffer, header);
        buffer.write(FREE as u64, &next.to_le_bytes());
        let mask = lanes.iter().fold(0_u64, |mask, (lane, _)| mask | 1 << lane);
        buffer.write((header + LANES) as u64, &mask.to_le_bytes());
        buffer.write((header + SERVICE) as u64, &service.to_le_bytes());
        buffer.write((header + CONTROL) as u64, &NOT_ANSWERED.to_le_bytes());
        let place = |lane: usize| PAYLOAD_START + index * PAYLOAD_SIZE + lane * LANE_SIZE;
        for (lane, words) in lanes {
            for (n, value) in words.iter().enumerate() {
                buffer.write((place(*lane) + 8 * n) as u64, &value.to_le_bytes());
            }
        }
        let ready = word(buffer, READY);
        buffer.write(header as u64, &ready.to_le_bytes());
        buffer.write(READY as u64, &packet.to_le_bytes());
        buffer.write(SIGNAL_VALUE as u64, &1_u64.to_le_bytes());
        assert_eq!(word(buffer, header + SERVICE) >> 32 & u64::from(NOT_ANSWERED), 0, "answered");
        assert_eq!(word(buffer, READY), 0);
        buffer.write(header as u64, &next.to_le_bytes());
        buffer.write(FREE as u64, &packet.to_le_bytes());
        lanes.iter().map(|(lane, _)| word(buffer, place(*lane))).collect()
    }

    #[test]
    fn messages_of_lanes_are_kept_apart() {
        let mut window = Window(Arc::new(Mutex::new(Buffer::new())));
        let begin = |words: [u64; 2]| [MESSAGE_BEGIN | 2 << 5, words[0], words[1], 0, 0, 0, 0, 0];
        // Control word 0 and the format "%d\n" of each lane, then its argument.
        let format = u64::from_le_bytes(*b"%d\n\0\0\0\0\0");
        let names = ask(&mut window, SERVICE_PRINTF, &[(0, begin([0, format])), (5, begin([0, format]))]);
        assert_ne!(names[0] >> MESSAGE_ID, names[1] >> MESSAGE_ID);
        let end = |name: u64, value: u64| [name | MESSAGE_END | 1 << 5, value, 0, 0, 0, 0, 0, 0];
        // The part before said its own length; the name that comes back is used with another.
        let name = |name: u64| name & !(7 << 5);
        let lengths = ask(&mut window, SERVICE_PRINTF, &[(0, end(name(names[0]), 7)), (5, end(name(names[1]), 1234))]);
        assert_eq!(lengths, [2, 5]);
        assert!(!window.0.lock().unwrap().complained);
    }

    #[test]
    fn other_services_get_nothing() {
        let mut window = Window(Arc::new(Mutex::new(Buffer::new())));
        assert_eq!(ask(&mut window, 3, &[(63, [0, 4096, 0, 0, 0, 0, 0, 0])]), [0]);
        assert_eq!(window.0.lock().unwrap().refused, [3]);
    }

    #[test]
    fn every_packet_is_on_the_free_stack_once() {
        let buffer = Buffer::new();
        let mut seen = vec![false; PACKETS];
        let mut next = buffer.word(FREE);
        while next != 0 {
            let index = (next & (PACKETS as u64 - 1)) as usize;
            assert!(!std::mem::replace(&mut seen[index], true));
            next = buffer.word(HEADER_START + index * HEADER_SIZE);
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}
