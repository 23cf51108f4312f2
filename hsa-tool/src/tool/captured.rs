//! Capturing a dispatch: the packets before it end, its memory is copied, it runs, and the memory is copied again.
//!
//! The queue gets it with barriers around it: one that completes a signal when what comes before has ended, one that
//! waits for the first copy, and the same after the dispatch. The thread that rang the doorbell then copies. What it
//! waits for may wait for that thread: then the dispatch runs after a time, and is not captured.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use wavetap::capture::{Filter, Launched, Memory, Snapshot};
use wavetap::code_object::CodeObject;
use wavetap::collect::config::CaptureConfig;
use wavetap::error::{Error, Result};

use super::{LoadedKernel, Tool, complain};
use crate::api::{Api, QueueAddress};
use crate::memory::Allocations;
use crate::objects::Form;
use crate::packets::Packet;

/// How long the packets before a dispatch have to end, and the dispatch itself: an emulated one takes its time.
const BEFORE: Duration = Duration::from_secs(60);
const ITSELF: Duration = Duration::from_secs(3600);
const NAP: Duration = Duration::from_micros(50);

/// Which dispatch of the process is captured.
#[derive(Debug)]
pub(crate) struct Captures {
    seen: Mutex<Seen>,
    folder: PathBuf,
    most: u64,
}

/// What has been dispatched.
#[derive(Debug)]
struct Seen {
    filter: Filter,
    /// All dispatches, and the first queue that one was in, and whether there was another one.
    dispatches: u64,
    queue: Option<QueueAddress>,
    several_queues: bool,
}

/// A dispatch that a queue has, and the signals of the barriers around it.
#[derive(Debug)]
pub(crate) struct Capturing {
    packet: Packet,
    number: u64,
    /// 0 when what comes before it has ended.
    before: u64,
    /// The dispatch waits until it is 0.
    copied: u64,
    /// 0 when it has ended.
    after: u64,
    /// What comes after it waits until it is 0.
    copied_again: u64,
}

/// The memory of the GPU.
struct AgentCopies<'a> {
    api: &'a Api,
    allocations: &'a Allocations,
}

impl Memory for AgentCopies<'_> {
    fn allocations(&self) -> Vec<(u64, u64)> {
        self.allocations.all()
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<()> {
        let size = into.len();
        self.api
            .read_memory(address, into)
            .map_err(|error| Error::unsupported(format!("{size} bytes at {address:#x} cannot be copied: {error}")))
    }
}

impl Captures {
    pub(crate) fn new(config: &CaptureConfig) -> Captures {
        let filter = Filter::new(config.kernels.clone(), config.dispatch);
        Captures {
            seen: Mutex::new(Seen { filter, dispatches: 0, queue: None, several_queues: false }),
            folder: config.folder.clone(),
            most: config.memory_limit,
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", std::process::id()))
    }

    /// Says how many dispatches could have been captured.
    pub(crate) fn finish(&self) {
        let seen = self.seen().filter.seen();
        if let Err(error) = std::fs::write(self.file("seen"), seen.to_string()) {
            complain("what could be captured is not known", &error);
        }
    }
}

impl Tool {
    /// Whether dispatches are looked at to be captured, and none is counted.
    pub(crate) fn is_capturing(&self) -> bool {
        self.captures.is_some()
    }

    /// Notes a packet; the number of the dispatch, from 1, if it is the one that is to be captured.
    pub(crate) fn to_capture(&self, queue: QueueAddress, packet: &Packet) -> Option<u64> {
        let captures = self.captures.as_ref().filter(|_| packet.is_dispatch() && self.is_here())?;
        let kernel = self.state().kernels.get(&packet.kernel_object()).cloned();
        let mut seen = captures.seen();
        seen.dispatches += 1;
        seen.several_queues |= *seen.queue.get_or_insert(queue) != queue;
        let kernel = kernel.filter(|kernel| kernel.object.form != Form::HipsOwn)?;
        let is_it = seen.filter.selects(&kernel.name);
        is_it.then(|| seen.filter.seen())
    }

    /// The packets by which a dispatch is captured, and what [`Tool::capture`] is to do once the queue has them; none
    /// if it cannot be captured.
    pub(crate) fn begin_capture(&self, mut packet: Packet, number: u64) -> Option<(Vec<Packet>, Capturing)> {
        let signal = || self.api.new_signal().map_err(Error::unsupported);
        let signals = || -> Result<[u64; 4]> { Ok([signal()?, signal()?, signal()?, signal()?]) };
        let [before, copied, after, copied_again] =
            signals().inspect_err(|error| complain("the dispatch is not captured", error)).ok()?;
        let original = packet;
        packet.synchronise_with_host();
        let packets = vec![
            Packet::all_ended(before),
            Packet::wait_for(copied),
            packet,
            Packet::all_ended(after),
            Packet::wait_for(copied_again),
        ];
        Some((packets, Capturing { packet: original, number, before, copied, after, copied_again }))
    }

    /// Captures a dispatch that the queue has with the barriers around it.
    pub(crate) fn capture(&self, capturing: Capturing) {
        if let Err(error) = self.try_to_capture(&capturing) {
            complain("the dispatch is not captured", &error);
        }
        // Whatever has failed, the queue goes on. A signal that a barrier may still use is not destroyed.
        (self.api.signal_store)(capturing.copied, 0);
        (self.api.signal_store)(capturing.copied_again, 0);
    }

    fn try_to_capture(&self, capturing: &Capturing) -> Result<()> {
        let Capturing { packet, number, before, copied, after, .. } = capturing;
        let captures = self.captures.as_ref().ok_or_else(|| Error::internal("nothing is captured"))?;
        let kernel = self.state().kernels.get(&packet.kernel_object()).cloned();
        let kernel = kernel.ok_or_else(|| Error::unsupported("its code object is not known"))?;
        self.wait_for_signal(*before, BEFORE, "what was dispatched before it has not ended")?;
        let code = &kernel.object.bytes;
        let code_address = code_address(&kernel, packet.kernel_object())?;
        let mut memory = AgentCopies { api: &self.api, allocations: &self.allocations };
        let mut arguments = vec![0; arguments_size(&kernel)?];
        if !arguments.is_empty() {
            memory.read(packet.kernarg_address(), &mut arguments)?;
        }
        let launched = Launched {
            kernel: &kernel.name,
            code,
            code_address,
            grid: packet.grid(),
            workgroup: packet.workgroup(),
            group_segment_size: packet.group_segment(),
            private_segment_size: packet.private_segment(),
            arguments: &arguments,
            dispatch: *number,
        };
        let snapshot = Snapshot::take(&mut memory, &launched, captures.most)?;
        let dispatches = captures.seen().dispatches;
        (self.api.signal_store)(*copied, 0);
        self.wait_for_signal(*after, ITSELF, "it has not ended")?;
        let alone = {
            let seen = captures.seen();
            !seen.several_queues && seen.dispatches == dispatches
        };
        snapshot.complete(&mut memory, alone, &captures.file("capture")).map(drop)
    }

    /// Waits until a barrier has completed its signal, which is left to the runtime where it does not in time.
    fn wait_for_signal(&self, signal: u64, most: Duration, what: &str) -> Result<()> {
        let start = Instant::now();
        while (self.api.signal_load)(signal) > 0 {
            if start.elapsed() > most {
                return Err(Error::limit(format!("{what} after {} s", most.as_secs())));
            }
            std::thread::sleep(NAP);
        }
        Ok(())
    }
}

/// Device address of the virtual address 0 of a kernel's code object, whose descriptor is at an address.
fn code_address(kernel: &LoadedKernel, descriptor: u64) -> Result<u64> {
    let code = CodeObject::parse(&kernel.object.bytes)?;
    let known = code.kernels().iter().find(|known| *known.name == *kernel.name);
    let known = known.ok_or_else(|| Error::unsupported("its code object has no such kernel"))?;
    let symbol = code.symbol(&known.symbol()).ok_or_else(|| Error::malformed("its descriptor has no symbol"))?;
    descriptor.checked_sub(symbol.address).ok_or_else(|| Error::malformed("its descriptor lies before its code"))
}

/// Bytes of the segment of arguments.
fn arguments_size(kernel: &LoadedKernel) -> Result<usize> {
    let code = CodeObject::parse(&kernel.object.bytes)?;
    let known = code.kernels().iter().find(|known| *known.name == *kernel.name);
    let metadata = known.and_then(|known| known.metadata.as_deref());
    let size =
        metadata.ok_or_else(|| Error::unsupported("its code object has no metadata of it"))?.kernarg_segment_size;
    usize::try_from(size).map_err(|_| Error::limit(format!("{size} bytes of arguments")))
}
