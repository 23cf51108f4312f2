//! The GPUs and their queues. One thread runs all of them in turn, so that kernels of several queues make progress
//! together: one may wait for another, on the same GPU or on another one.

mod aql;
pub(crate) mod check;
mod dispatches;
mod faults;
mod pm4;
mod rectangle;
mod registers;
mod sdma;
mod symbols;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wavetap_amdgpu::Target;
use wavetap_base::error::Error;
use wavetap_emulator::{Device, Fault, Flight, Options};

use self::check::Check;
use crate::events::Events;
use crate::gpu::{Gpu, Gpus};
use crate::layout::amd_queue;
use crate::memory::Mapping;

/// What packets a queue has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueKind {
    /// Dispatches and barriers.
    Aql,
    /// Copies.
    Sdma,
    /// Commands of the hardware's own format.
    Pm4,
}

/// What the packets of queues need beside their GPU.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'d> {
    pub(crate) events: &'d Events,
    /// Names of kernels of which it was said that they run past the end of their LDS.
    pub(crate) told: &'d Mutex<BTreeSet<String>>,
    /// Threads that wait for the engine: a kernel's share ends as soon as it can.
    pub(crate) waiting: &'d AtomicUsize,
    /// What is checked, if anything is.
    pub(crate) check: Option<&'d Mutex<Check>>,
    /// Whether messages have to say which GPU is meant.
    pub(crate) several_gpus: bool,
}

impl<'d> Surroundings<'d> {
    /// What is checked, if anything is.
    pub(crate) fn check(&self) -> Option<MutexGuard<'d, Check>> {
        Some(self.check?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A queue.
pub(crate) struct Queue {
    pub(crate) gpu: Gpu,
    kind: QueueKind,
    /// Address and bytes of its ring.
    pub(crate) ring: (u64, u64),
    /// Addresses of its indices: of packets, of bytes in one of copies, of words in one of commands.
    pub(crate) write_index: u64,
    pub(crate) read_index: u64,
    /// The dispatch in flight, and the tick at which it began.
    pub(crate) flight: Option<(Flight, u64)>,
    /// Its number, if anything is checked.
    pub(crate) launch: u64,
    /// How far it is in commands.
    pub(crate) pm4: pm4::State,
    /// A packet's commands are being done.
    pub(crate) in_commands: bool,
    /// A packet of it could not be processed: no further one is.
    broken: bool,
}

impl Queue {
    /// Where the runtime's queue (`amd_queue_t`) starts, whose write index the driver is told.
    pub(crate) fn start(&self) -> u64 {
        self.write_index.wrapping_sub(amd_queue::write_dispatch_id.at)
    }
}

/// What a look at a queue came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// There is no packet.
    Idle,
    /// A packet waits for something.
    Waits,
    /// Something was done.
    Done,
}

/// Why a packet cannot be processed.
pub(crate) enum Trouble {
    /// Its kernel was stopped, or could not begin.
    Fault { fault: Box<Fault>, kernel_object: u64 },
    /// What the packet processor needs is at an address that is not mapped.
    Memory { address: u64, what: &'static str },
    /// It is none that the emulated device knows.
    Unknown(String),
}

impl Trouble {
    /// A kernel's fault.
    pub(crate) fn of_kernel(fault: Fault, kernel_object: u64) -> Self {
        Trouble::Fault { fault: Box::new(fault), kernel_object }
    }
}

/// Gives an access that failed its place.
pub(crate) fn at<T>(result: Result<T, Error>, address: u64, what: &'static str) -> Result<T, Trouble> {
    result.map_err(|_| Trouble::Memory { address, what })
}

/// A word of device memory.
pub(crate) fn load32(device: &Device, address: u64, what: &'static str) -> Result<u32, Trouble> {
    let mut bytes = [0; 4];
    at(device.read(address, &mut bytes), address, what)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Two words of device memory, read in one step.
pub(crate) fn load64(device: &Device, address: u64, what: &'static str) -> Result<u64, Trouble> {
    let mut bytes = [0; 8];
    at(device.read(address, &mut bytes), address, what)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Writes two words in one step.
pub(crate) fn store64(device: &mut Device, address: u64, value: u64, what: &'static str) -> Result<(), Trouble> {
    at(device.write(address, &value.to_le_bytes()), address, what)
}

/// The GPUs, and what is to be done.
pub(crate) struct Engine {
    /// One for each GPU, in their order.
    devices: Vec<Device>,
    queues: BTreeMap<u32, Queue>,
}

impl Engine {
    /// So many GPUs without queues.
    pub(crate) fn new(target: Target, options: &Options, gpus: u32) -> Self {
        let devices = Gpu::all(gpus).map(|_| Device::new(target, options.clone())).collect();
        Engine { devices, queues: BTreeMap::new() }
    }

    /// The devices of some GPUs.
    fn devices(&mut self, gpus: Gpus) -> impl Iterator<Item = &mut Device> {
        let wanted = move |number: usize| gpus.iter().any(|gpu| gpu.index() == number);
        self.devices.iter_mut().enumerate().filter(move |(number, _)| wanted(*number)).map(|(_, device)| device)
    }

    /// Maps memory into GPUs.
    pub(crate) fn map(&mut self, mapping: &Mapping) -> Result<(), i32> {
        for device in self.devices(mapping.gpus) {
            device.map(mapping.address, Arc::clone(&mapping.pages)).map_err(|_| libc::EINVAL)?;
            if mapping.executable {
                device.allow_code(mapping.address).map_err(|_| libc::EINVAL)?;
            }
        }
        Ok(())
    }

    /// Ends a mapping into GPUs.
    pub(crate) fn unmap(&mut self, address: u64, gpus: Gpus) -> Result<(), i32> {
        self.devices(gpus).try_for_each(|device| device.unmap(address).map_err(|_| libc::EINVAL))
    }

    /// A new queue's number.
    pub(crate) fn create_queue(
        &mut self,
        gpu: Gpu,
        kind: QueueKind,
        ring: (u64, u64),
        write_index: u64,
        read_index: u64,
    ) -> Result<u32, i32> {
        /// A page has as many doorbells of 8 bytes.
        const MOST: u32 = 512;
        let number = (0..MOST).find(|number| !self.queues.contains_key(number)).ok_or(libc::ENOSPC)?;
        // A ring of no word has no place for a command.
        if ring.1 < 4 || ring.0 == 0 {
            return Err(libc::EINVAL);
        }
        self.queues.insert(
            number,
            Queue {
                gpu,
                kind,
                ring,
                write_index,
                read_index,
                flight: None,
                launch: 0,
                pm4: pm4::State::default(),
                in_commands: false,
                broken: false,
            },
        );
        Ok(number)
    }

    /// Ends a queue, whatever it is doing.
    pub(crate) fn destroy_queue(&mut self, number: u32) -> Result<(), i32> {
        let queue = self.queues.remove(&number).ok_or(libc::EINVAL)?;
        if let Some((flight, _)) = queue.flight {
            self.devices[queue.gpu.index()].abandon(flight);
        }
        Ok(())
    }

    /// Looks at all queues once; the most that came of it.
    pub(crate) fn turn(&mut self, around: Surroundings) -> Step {
        let running = self.queues.values().filter(|queue| queue.flight.is_some()).count();
        let mut most = Step::Idle;
        for queue in self.queues.values_mut().filter(|queue| !queue.broken) {
            let device = &mut self.devices[queue.gpu.index()];
            let step = match queue.kind {
                QueueKind::Aql => aql::step(queue, device, around, running > 1),
                QueueKind::Sdma => sdma::step(queue, device, around),
                QueueKind::Pm4 => pm4::step(queue, device, around, running > 1),
            };
            match step {
                Ok(step) => most = most.max(step),
                Err(trouble) => {
                    queue.broken = true;
                    faults::report(&trouble, queue, device, around);
                }
            }
        }
        most
    }
}
