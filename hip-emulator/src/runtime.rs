//! The one device, what is loaded on it, what HIP's objects are, and what has been collected: all that [`crate::lock`]
//! protects. Nothing here knows the lock, nor the entry points.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use wavetap::code_object::KernelMetadata;
use wavetap::collect::journals::Changes;
use wavetap::collect::session::Session;
use wavetap::emulated::EmulatedMemory;
use wavetap::emulator::{AllocationKind, Device, Options};
use wavetap::isa::Target;
use wavetap::offload_bundle::TargetId;
use wavetap::profile::check::Tool;

use crate::check::{Check, CopySide, Place};
use crate::choice::choose_device;
use crate::clocks::Clocks;
use crate::collection::Collection;
use crate::device_presets::{preset_of, residency_of};
use crate::extents::Extent;
use crate::findings::Findings;
use crate::graph_memory::GraphMemory;
use crate::graphs::Graphs;
use crate::handles::missing;
use crate::host_memory::HostMemory;
use crate::hostcall::Hostcall;
use crate::images::{Image, Kernel, KernelRef, Loaded, LoadedCode};
use crate::messages::complain;
use crate::objects::advice::Advice;
use crate::objects::arrays::Array;
use crate::objects::captures_of_dispatches::Captures;
use crate::objects::pools::Pools;
use crate::objects::streams::Streams;
use crate::objects::tasks::Tasks;
use crate::objects::textures::Texture;
use crate::objects::virtual_memory::VirtualMemory;
use crate::properties::Facts;
use crate::settings::Settings;
use crate::status::*;
use crate::stream_op::StreamOp;

/// Scratch bytes of each lane where a kernel's own need is not known statically, as long as the program does not set
/// the limit.
const DEFAULT_STACK: u32 = 16 << 10;

/// What HIP's heap of kernels has at first (`HIP_INITIAL_DM_SIZE`).
const DEFAULT_HEAP: usize = 8 << 20;

/// Alignment of device memory.
const ALIGNMENT: u64 = 256;

/// What fresh device memory holds: large and easily recognised as an integer, finite and far from every likely result
/// in each format of floating point (with what is no number, a check of the form `if (fabs(found - expected) > limit)
/// fail();` would pass), as an address nowhere. (A little-endian 0xcdd4dead.)
const POISON: [u8; 4] = [0xad, 0xde, 0xd4, 0xcd];

/// No more than this of an allocation is filled: some programs allocate all there is and use little of it.
const MOST_POISON: u64 = 1 << 30;

/// It is filled in parts of this size.
const POISON_PART: u64 = 1 << 20;

/// Device addresses lie in this range: below and above are the host's.
pub(crate) const DEVICE_ADDRESSES: std::ops::Range<u64> = 0x2000_0000_0000..0x4000_0000_0000;

/// Everything there is.
pub(crate) struct Runtime {
    pub(crate) settings: Settings,
    pub(crate) code: LoadedCode,
    pub(crate) host: HostMemory,
    pub(crate) streams: Streams,
    pub(crate) tasks: Tasks,
    pub(crate) graphs: Graphs,
    pub(crate) graph_memory: GraphMemory,
    /// Arrays by handle.
    pub(crate) arrays: HashMap<usize, Array>,
    /// What texture objects were made of, by address.
    pub(crate) textures: HashMap<u64, Texture>,
    /// The arrays of surface objects, by address.
    pub(crate) surfaces: HashMap<u64, usize>,
    pub(crate) pools: Pools,
    pub(crate) virtual_memory: VirtualMemory,
    /// What was advised about managed memory, by address.
    pub(crate) advised: HashMap<u64, Advice>,
    pub(crate) findings: Findings,
    /// What is checked, if anything is.
    pub(crate) check: Option<Check>,
    pub(crate) hostcall: Hostcall,
    /// Kernel argument segments that no kernel uses, by size and alignment.
    pub(crate) kernargs: HashMap<(u64, u64), Vec<u64>>,
    /// Kernels and the instructions of theirs of which it was said that they run past the end of an allocation; without
    /// an instruction, past the end of LDS.
    pub(crate) overruns: HashSet<(String, Option<u64>)>,
    /// Images of which a kernel that may allocate memory was launched.
    pub(crate) heap_users: HashSet<usize>,
    pub(crate) stack_limit: u32,
    /// What the program set for the heap of kernels, which has what it needs.
    pub(crate) heap_limit: usize,
    pub(crate) device: Option<(Device, TargetId)>,
    pub(crate) dispatches: u64,
    pub(crate) clocks: Clocks,
    /// Whether something that the program has not waited for uses its memory.
    pub(crate) uses_host: bool,
    /// Whether it was said that accesses of the program are not looked at.
    pub(crate) said_untouched: bool,
    /// Whether it was said that times of events are modelled.
    pub(crate) said_modelled: bool,
    pub(crate) collection: Collection,
    /// Which dispatch is captured, if one is.
    pub(crate) captures: Option<Captures>,
}

/// What loading an image takes.
struct Parts<'r> {
    device: &'r mut Device,
    id: &'r TargetId,
    images: &'r mut Vec<Option<Image>>,
    settings: &'r Settings,
    session: &'r mut Session,
}

impl Runtime {
    pub(crate) fn new(settings: Settings) -> Self {
        let collection = Collection::new(&settings);
        let captures = settings.capture.as_ref().map(Captures::new);
        let check = settings.check.as_ref().map(Check::new);
        Runtime {
            captures,
            check,
            settings,
            code: LoadedCode::default(),
            host: HostMemory::default(),
            streams: Streams::default(),
            tasks: Tasks::default(),
            graphs: Graphs::default(),
            graph_memory: GraphMemory::default(),
            arrays: HashMap::new(),
            textures: HashMap::new(),
            surfaces: HashMap::new(),
            pools: Pools::default(),
            virtual_memory: VirtualMemory::default(),
            advised: HashMap::new(),
            findings: Findings::default(),
            hostcall: Hostcall::default(),
            kernargs: HashMap::new(),
            overruns: HashSet::new(),
            heap_users: HashSet::new(),
            stack_limit: DEFAULT_STACK,
            heap_limit: DEFAULT_HEAP,
            device: None,
            dispatches: 0,
            clocks: Clocks::new(),
            uses_host: false,
            said_untouched: false,
            said_modelled: false,
            collection,
        }
    }

    fn parts(&mut self) -> Outcome<Parts<'_>> {
        if self.device.is_none() {
            let available: Vec<TargetId> = self
                .code
                .images
                .iter_mut()
                .flatten()
                .flat_map(|image| image.targets().cloned().collect::<Vec<_>>())
                .collect();
            let id = choose_device(self.settings.target.as_ref(), &available);
            let target = Target::by_name(&id.processor).filter(|target| target.emulated()).ok_or(NO_DEVICE)?;
            let default = Options::default();
            let wants =
                |tools: &[Tool]| self.check.as_ref().is_some_and(|check| tools.iter().any(|tool| check.wants(*tool)));
            let options = Options {
                strict: self.settings.strict,
                seed: self.settings.seed,
                fuel: self.settings.fuel.unwrap_or(default.fuel),
                tolerated: default.tolerated,
                passes: default.passes,
                barriers: self.settings.check.is_some(),
                // The shadow of memory goes by the same notes.
                races: wants(&[Tool::Races, Tool::Init, Tool::Sync]),
                residency: wants(&[Tool::Sync]).then(|| residency_of(target, self.settings.board)),
                schedule: self.settings.check.as_ref().and_then(|check| check.schedule),
                trace: self.collection.traces() || self.collection.fidelity.is_some(),
                // The strict mode executes instructions one by one anyway.
                trace_lanes: self.settings.strict && self.collection.traces(),
                origins: self.collection.origins.is_some(),
                accesses: 0,
                watched: default.watched,
                threads: self.settings.threads,
                clock_mhz: (preset_of(&id.processor, self.settings.board).clock / 1000).unsigned_abs(),
                timing: self.settings.timing.clone(),
            };
            if options.timing.is_some() {
                self.clocks.start(target, self.settings.board, options.clock_mhz);
            }
            if self.check.as_ref().is_some_and(|check| check.wants(Tool::Races)) {
                self.clocks.keep_order();
            }
            self.device = Some((Device::new(target, options), id));
        }
        let (device, id) = self.device.as_mut().ok_or(NO_DEVICE)?;
        Ok(Parts {
            device,
            id,
            images: &mut self.code.images,
            settings: &self.settings,
            session: &mut self.collection.session,
        })
    }

    /// The device, made on first use: by then a program has registered its code.
    pub(crate) fn device(&mut self) -> Outcome<&mut Device> {
        Ok(self.parts()?.device)
    }

    /// The device and the host memory that it sees.
    pub(crate) fn device_and_host(&mut self) -> Outcome<(&mut Device, &mut HostMemory)> {
        self.device()?;
        let (device, _) = self.device.as_mut().ok_or(NO_DEVICE)?;
        Ok((device, &mut self.host))
    }

    /// The device and the session that counts on it.
    pub(crate) fn device_and_session(&mut self) -> Outcome<(&mut Device, &mut Session)> {
        let Parts { device, session, .. } = self.parts()?;
        Ok((device, session))
    }

    /// Copies device memory out.
    pub(crate) fn read_device(&self, address: u64, into: &mut [u8]) -> Outcome {
        let (device, _) = self.device.as_ref().ok_or(NO_DEVICE)?;
        device.read(address, into).map_err(|_| INVALID_VALUE)
    }

    /// The device's processor and settings.
    pub(crate) fn device_id(&mut self) -> Outcome<TargetId> {
        Ok(self.parts()?.id.clone())
    }

    /// What is known of the device.
    pub(crate) fn facts(&mut self) -> Outcome<Facts> {
        let board = self.settings.board;
        Ok(Facts::of(&self.device_id()?, board))
    }

    /// Adds an image and gives its index.
    pub(crate) fn add_image(&mut self, image: Image) -> usize {
        self.code.images.push(Some(image));
        self.code.images.len() - 1
    }

    /// Removes an image and what it occupies on the device.
    pub(crate) fn remove_image(&mut self, index: usize) -> Outcome {
        let image = self.code.images.get_mut(index).and_then(Option::take).ok_or(INVALID_HANDLE)?;
        if let (Some(loaded), Some((device, _))) = (image.loaded, self.device.as_mut()) {
            if let Some(counters) = &loaded.counters {
                self.collection
                    .session
                    .detach(&mut EmulatedMemory(device), counters.object)
                    .map_err(|_| INVALID_VALUE)?;
            }
            device.unload(&loaded.object).map_err(|_| INVALID_VALUE)?;
        }
        Ok(())
    }

    /// Loads an image if that has not been done, and tells the collector of it.
    pub(crate) fn load(&mut self, index: usize) -> Outcome<(&mut Device, &mut Loaded)> {
        self.collection.follow_fork(&self.settings, &self.code.images);
        let Parts { device, id, images, settings, session } = self.parts()?;
        let image = images.get_mut(index).and_then(Option::as_mut);
        // A module's handle is its number, from 1.
        let image = image.ok_or_else(|| missing(index + 1, INVALID_HANDLE))?;
        let first = image.loaded.is_none();
        if let Err(error) = image.load(device, id, settings, session) {
            complain("cannot load device code", &error);
            return Err(NO_BINARY_FOR_GPU);
        }
        let loaded = self.code.images[index].as_ref().and_then(|image| image.loaded.as_ref());
        let collects = |loaded: &&Loaded| loaded.counters.is_some() || !loaded.refused().is_empty();
        if first
            && self.settings.wants_counters()
            && let Some(loaded) = loaded.filter(collects)
        {
            let collector = self.collection.session.collector_mut();
            collector.add_refused(loaded.refused());
            self.collection
                .journals
                .add(Changes { counters: Some((collector.profile_mut(), None)), ..Changes::default() });
        }
        let loaded = self.code.images[index].as_mut().and_then(|image| image.loaded.as_mut()).ok_or(INVALID_HANDLE)?;
        let (device, _) = self.device.as_mut().ok_or(NO_DEVICE)?;
        Ok((device, loaded))
    }

    /// What a kernel needs.
    pub(crate) fn needs(&mut self, kernel: &KernelRef) -> Outcome<Kernel> {
        let (_, loaded) = self.load(kernel.image)?;
        loaded.kernels.get(&kernel.name).cloned().ok_or(NOT_FOUND)
    }

    /// What the metadata says of a kernel as the program knows it: the answer to whatever it asks.
    pub(crate) fn kernel(&mut self, kernel: &KernelRef) -> Outcome<Arc<KernelMetadata>> {
        self.needs(kernel).map(|kernel| kernel.original)
    }

    /// Whether an address is one of device memory that the host cannot touch itself.
    pub(crate) fn is_device_memory(&self, address: u64) -> bool {
        let kind = self
            .device
            .as_ref()
            .and_then(|(device, _)| device.allocation_of(address))
            .map(|allocation| allocation.kind);
        DEVICE_ADDRESSES.contains(&address) && kind != Some(AllocationKind::Foreign)
    }

    /// Allocates device memory, which looks as unlike anything useful as it can.
    pub(crate) fn allocate(&mut self, size: u64) -> Outcome<u64> {
        let address = self.device()?.malloc(size, ALIGNMENT).map_err(|_| OUT_OF_MEMORY)?;
        self.make_fresh(address, size)?;
        self.note_allocation(address, size);
        Ok(address)
    }

    /// Fills device memory with what fresh memory holds.
    pub(crate) fn make_fresh(&mut self, address: u64, size: u64) -> Outcome {
        let poisoned = if self.settings.poison { size.min(MOST_POISON) } else { 0 };
        let size = poisoned;
        let part: Vec<u8> = POISON.iter().copied().cycle().take(size.min(POISON_PART) as usize).collect();
        let device = self.device()?;
        for at in (0..size).step_by(POISON_PART as usize) {
            let length = POISON_PART.min(size - at) as usize;
            device.write(address + at, &part[..length]).map_err(|_| INVALID_VALUE)?;
        }
        if self.check.as_ref().is_some_and(|check| check.wants(Tool::Init)) {
            self.device()?.mark_undefined(address);
        }
        Ok(())
    }

    /// Notes what the program allocates, if that is checked.
    pub(crate) fn note_allocation(&mut self, address: u64, size: u64) {
        if let Some(check) = &mut self.check {
            check.allocations.allocated(address, size);
        }
    }

    /// Frees memory of any kind.
    pub(crate) fn free(&mut self, address: u64) -> Outcome {
        let freed = self.free_unchecked(address);
        if let Some(check) = &mut self.check {
            match freed {
                Ok(()) => check.allocations.freed(address),
                Err(_) => check.freed_again(address),
            }
        }
        freed
    }

    fn free_unchecked(&mut self, address: u64) -> Outcome {
        let (device, host) = self.device_and_host()?;
        if host.range_of(address).is_some() {
            host.free(device, address)?;
            self.advised.remove(&address);
            return Ok(());
        }
        device.free(address).map_err(|_| INVALID_VALUE)?;
        self.pools.freed(address);
        self.graph_memory.freed(address);
        Ok(())
    }

    /// Looks at the direction and the memory of a copy, if calls are checked.
    pub(crate) fn check_copy(&mut self, operation: &StreamOp) {
        let (StreamOp::Copy(copy), true) = (operation, self.check.is_some()) else { return };
        let Extent { width, height, depth } = copy.extent;
        if width == 0 || height == 0 || depth == 0 {
            return;
        }
        let side = |address: u64| {
            let place = match (self.is_device_memory(address), self.host.range_of(address)) {
                (true, _) => Place::Device,
                (false, Some(_)) => Place::Shared,
                (false, None) => Place::Pageable,
            };
            CopySide { address, place }
        };
        let (to, from) = (side(copy.to.start), side(copy.from.start));
        if let Some(check) = &mut self.check {
            check.copies(copy.kind, to, from);
        }
    }

    /// Whether an address is one of the program's own memory, which the device does not see.
    pub(crate) fn is_pageable(&self, address: u64) -> bool {
        !self.is_device_memory(address) && self.host.range_of(address).is_none()
    }
}
