//! The one device, what is loaded on it, and what has been collected.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, TryLockError};

use wavetap::code_object::{KernelMetadata, ValueKind, demangle};
use wavetap::collect::journals::Changes;
use wavetap::collect::residency::fewer_workgroups;
use wavetap::collect::session::{DispatchInfo, Session, Ticket};
use wavetap::collect::uncounted::Why;
use wavetap::emulated::EmulatedMemory;
use wavetap::emulator::{AllocationKind, Device, Dispatch, DispatchStats, Fault, FaultKind, Options, Share};
use wavetap::error::{Error, Result};
use wavetap::isa::Target;
use wavetap::offload_bundle::TargetId;
use wavetap::profile::file::Work;
use wavetap::report::names::short;

use crate::arrays::Array;
use crate::choice::choose_device;
use crate::collected_files::Collection;
use crate::device_heap;
use crate::device_presets::preset_of;
use crate::fault_places;
use crate::findings::Findings;
use crate::fork;
use crate::graph_memory::GraphMemory;
use crate::graphs::Graphs;
use crate::host_memory::HostMemory;
use crate::hostcall::Hostcall;
use crate::images::{Image, Kernel, Loaded, bytes_of};
use crate::in_flight::{InFlight, Segment};
use crate::kernarg::{self, Shape};
use crate::launch_attributes;
use crate::managed::Advice;
use crate::pools::Pools;
use crate::raw;
use crate::settings::Settings;
use crate::status::*;
use crate::stream_op::Launch;
use crate::streams::Streams;
use crate::tasks::{self, Tasks};
use crate::textures::Texture;
use crate::trace::Tracer;
use crate::uncounted;

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

/// Wave-instructions that the thread executes which launches a kernel: one that has not ended then goes on while the
/// thread does.
const AT_ONCE: u64 = 500_000;

/// Device addresses lie in this range: below and above are the host's.
pub(crate) const DEVICE_ADDRESSES: std::ops::Range<u64> = 0x2000_0000_0000..0x4000_0000_0000;

/// A kernel of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelRef {
    pub(crate) image: usize,
    pub(crate) name: String,
}

/// The code of a program, and what names it.
#[derive(Default)]
pub(crate) struct LoadedCode {
    pub(crate) images: Vec<Option<Image>>,
    /// Kernels by the address of their host stub.
    pub(crate) kernels: HashMap<usize, KernelRef>,
    /// Device variables by the address of their host shadow.
    pub(crate) variables: HashMap<usize, KernelRef>,
    /// What `hipModuleGetFunction` gave out; a handle is an index plus one.
    pub(crate) functions: Vec<KernelRef>,
}

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
    /// What was advised about managed memory, by address.
    pub(crate) advised: HashMap<u64, Advice>,
    pub(crate) findings: Findings,
    pub(crate) hostcall: Hostcall,
    /// Kernel argument segments that no kernel uses, by size and alignment.
    kernargs: HashMap<(u64, u64), Vec<u64>>,
    /// Kernels and the instructions of theirs of which it was said that they run past the end of an allocation.
    overruns: HashSet<(String, u64)>,
    /// Images of which a kernel that may allocate memory was launched.
    heap_users: HashSet<usize>,
    pub(crate) stack_limit: u32,
    /// What the program set for the heap of kernels, which has what it needs.
    pub(crate) heap_limit: usize,
    device: Option<(Device, TargetId)>,
    dispatches: u64,
    pub(crate) collection: Collection,
}

/// What loading an image takes.
struct Parts<'r> {
    device: &'r mut Device,
    id: &'r TargetId,
    images: &'r mut Vec<Option<Image>>,
    settings: &'r Settings,
    session: &'r mut Session,
}

static RUNTIME: LazyLock<Mutex<Runtime>> = LazyLock::new(|| {
    fork::watch();
    Mutex::new(Runtime::new(Settings::read()))
});

/// The runtime, unless another thread has it.
pub(crate) fn try_runtime() -> Option<MutexGuard<'static, Runtime>> {
    match RUNTIME.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Threads that wait for the runtime: while there are any, what runs in the background gives it up soon.
pub(crate) static WAITING: AtomicUsize = AtomicUsize::new(0);

/// The runtime, for this thread alone until the guard is dropped.
pub(crate) fn runtime() -> MutexGuard<'static, Runtime> {
    if let Ok(runtime) = RUNTIME.try_lock() {
        return runtime;
    }
    WAITING.fetch_add(1, Ordering::Relaxed);
    let runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    WAITING.fetch_sub(1, Ordering::Relaxed);
    runtime
}

/// Says on standard error why something was refused.
pub(crate) fn complain(what: &str, error: &Error) {
    eprintln!("wavetap: {what}: {error}");
}

impl Runtime {
    pub(crate) fn new(settings: Settings) -> Self {
        let collection = Collection::new(&settings);
        Runtime {
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
            let options = Options {
                strict: self.settings.strict,
                seed: self.settings.seed,
                fuel: self.settings.fuel.unwrap_or(default.fuel),
                tolerated: default.tolerated,
                passes: default.passes,
                trace: self.collection.tracer.as_ref().is_some_and(Tracer::traces),
                // The strict mode executes instructions one by one anyway.
                trace_lanes: self.settings.strict && self.collection.tracer.as_ref().is_some_and(Tracer::traces),
                origins: self.collection.origins.is_some(),
                accesses: 0,
                watched: default.watched,
                threads: self.settings.threads,
                clock_mhz: (preset_of(&id.processor).clock / 1000).unsigned_abs(),
                timing: self.settings.timing.clone(),
            };
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
        self.follow_fork();
        let Parts { device, id, images, settings, session } = self.parts()?;
        let image = images.get_mut(index).and_then(Option::as_mut).ok_or(INVALID_HANDLE)?;
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
    fn needs(&mut self, kernel: &KernelRef) -> Outcome<Kernel> {
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
        Ok(address)
    }

    /// Fills device memory with what fresh memory holds.
    pub(crate) fn make_fresh(&mut self, address: u64, size: u64) -> Outcome {
        if !self.settings.poison {
            return Ok(());
        }
        let size = size.min(MOST_POISON);
        let part: Vec<u8> = POISON.iter().copied().cycle().take(size.min(POISON_PART) as usize).collect();
        let device = self.device()?;
        for at in (0..size).step_by(POISON_PART as usize) {
            let length = POISON_PART.min(size - at) as usize;
            device.write(address + at, &part[..length]).map_err(|_| INVALID_VALUE)?;
        }
        Ok(())
    }

    /// Frees memory of any kind.
    pub(crate) fn free(&mut self, address: u64) -> Outcome {
        let (device, host) = self.device_and_host()?;
        if host.range_of(address).is_some() {
            host.free(device, address)?;
            self.advised.remove(&address);
            return Ok(());
        }
        device.free(address).map_err(|_| INVALID_VALUE)?;
        self.leave_pool(address);
        self.graph_memory.freed(address);
        Ok(())
    }

    /// Refuses what HIP refuses before it launches anything.
    pub(crate) fn check_launch(&mut self, kernel: &KernelRef, shape: &Shape) -> Outcome {
        self.check_shape(kernel, shape).inspect_err(|status| self.not_counted(kernel, uncounted::refused(*status)))
    }

    fn check_shape(&mut self, kernel: &KernelRef, shape: &Shape) -> Outcome {
        let metadata = self.kernel(kernel)?;
        if kernarg::has(&metadata, &ValueKind::HiddenPrintfBuffer) {
            say_fault(
                &kernel.name,
                "it prints into a buffer (-mprintf-kind=buffered), which the built-in runtime does not have",
            );
            return Err(NOT_SUPPORTED);
        }
        if kernarg::has(&metadata, &ValueKind::HiddenHeapV1) && self.heap_users.insert(kernel.image) {
            let (_, loaded) = self.load(kernel.image)?;
            if device_heap::waits_for_ever(&loaded.bytes) {
                let why = "it may call malloc, which was compiled with device libraries of ROCm 5: they wait for a \
                    clock that this processor does not have, on a GPU as well, and then never return";
                say_fault(&kernel.name, why);
            }
        }
        launch_attributes::check_cluster(metadata.cluster_dims.unwrap_or_default())?;
        kernarg::check(&metadata, shape, self.device()?.target())?;
        self.check_room(kernel, shape)
    }

    /// Refuses workgroups that no compute unit has registers for.
    fn check_room(&mut self, kernel: &KernelRef, shape: &Shape) -> Outcome {
        let (device, loaded) = self.load(kernel.image)?;
        let Some(kernel_object) = loaded.object.kernel(&kernel.name) else { return Ok(()) };
        // Its LDS was looked at.
        match device.check_room(kernel_object, shape.workgroup.iter().product(), shape.dynamic_lds) {
            Err(fault) if matches!(fault.kind, FaultKind::NoRoom { .. }) => {
                say_fault(&kernel.name, &fault.kind.to_string());
                Err(LAUNCH_OUT_OF_RESOURCES)
            }
            _ => Ok(()),
        }
    }

    /// Whether kernels count.
    pub(crate) fn counts(&self) -> bool {
        self.settings.wants_counters()
    }

    /// Runs a kernel, if it is short to its end; otherwise it returns what is in flight. A fault is not an error of
    /// this launch: the device then answers everything with the fault's error.
    pub(crate) fn launch(&mut self, launch: &Launch) -> Outcome<Option<Box<InFlight>>> {
        let Launch { kernel, shape, arguments, cooperative } = launch;
        let Kernel { loaded: mut metadata, original } = self.needs(kernel)?;
        let target = self.device()?.target();
        kernarg::check(&original, shape, target)?;
        if self.settings.skip_kernels {
            return Ok(None);
        }
        let fewer = if *cooperative { self.fewer_workgroups(kernel, shape)? } else { None };
        if fewer.is_some() {
            metadata = Arc::clone(&original);
        }
        let (group_segment_size, no_room) =
            uncounted::lds(metadata.group_segment_fixed_size, original.group_segment_fixed_size, shape, target);
        let fixed = u32::try_from(metadata.private_segment_fixed_size).map_err(|_| INVALID_VALUE)?;
        let private_segment_size =
            if metadata.uses_dynamic_stack { fixed.saturating_add(self.stack_limit) } else { fixed };
        let mut services = kernarg::Services::default();
        if kernarg::has(&metadata, &ValueKind::HiddenHostcallBuffer) {
            let (device, _) = self.device.as_mut().ok_or(NO_DEVICE)?;
            services.hostcall = self.hostcall.address(device)?;
            if kernarg::may_allocate(&metadata) {
                services.heap = self.hostcall.heap(device)?;
            }
        }
        let mut segment = kernarg::segment(&metadata, shape, arguments, &services)?;
        let grids = if *cooperative { kernarg::add_grids(&mut segment, &metadata) } else { None };
        let ordinal = self.dispatches;
        self.dispatches += 1;
        let room = (segment.len() as u64, metadata.kernarg_segment_align.max(64).next_power_of_two());
        let kept = self.kernargs.get_mut(&room).and_then(Vec::pop);
        let (device, loaded) = self.load(kernel.image)?;
        let mut kernel_object = loaded.object.kernel(&kernel.name).ok_or(NOT_FOUND)?;
        if fewer.is_some() || no_room.is_some() {
            kernel_object = match loaded.original(device, &kernel.name) {
                Some(original) => original,
                // Without its descriptor the original cannot run, and nothing else may.
                None if fewer.is_some() => return Err(COOPERATIVE_LAUNCH_TOO_LARGE),
                None => kernel_object,
            };
        }
        let kernarg_address = kept.map_or_else(|| device.malloc(room.0, room.1), Ok).map_err(|_| OUT_OF_MEMORY)?;
        if let Some(grids) = grids {
            kernarg::describe_grid(&mut segment, kernarg_address, grids, shape);
        }
        device.write(kernarg_address, &segment).map_err(|_| OUT_OF_MEMORY)?;
        let mut workgroup = [0; 3];
        for (to, from) in workgroup.iter_mut().zip(shape.workgroup) {
            *to = u16::try_from(from).map_err(|_| INVALID_CONFIGURATION)?;
        }
        let dispatch = Dispatch {
            kernel_object,
            grid: shape.items,
            workgroup,
            private_segment_size,
            group_segment_size: u32::try_from(group_segment_size).map_err(|_| INVALID_CONFIGURATION)?,
            kernarg_address,
            dispatch_id: ordinal,
        };
        let why_original = fewer.or(no_room);
        let has_room = why_original.is_none();
        let instrumented =
            loaded.counters.as_ref().filter(|_| has_room).and_then(|counters| counters.index_of(&kernel.name));
        // Without counts no reason is reported.
        let why_not = if self.counts() && instrumented.is_none() {
            let (_, loaded) = self.load(kernel.image)?;
            uncounted::without_counters(loaded, &kernel.name).or(why_original)
        } else {
            None
        };
        let mut ticket = None;
        if let Some(index) = instrumented.filter(|_| self.counts()) {
            let info =
                DispatchInfo { kernel: index, grid: shape.items, workgroup: shape.workgroup, ordinal: ordinal as u32 };
            match self.begin_counting(kernel, &info) {
                Ok(begun) => ticket = begun,
                Err(error) => self.stop(&kernel.name, &error.to_string()),
            }
        }
        if let Some(why) = why_not {
            self.not_counted(kernel, why);
        }
        if self.settings.strict {
            let mut passes = self.settings.findings.of_kernel(&kernel.name);
            if !passes.suppressed.kinds().is_empty() {
                let (_, loaded) = self.load(kernel.image)?;
                let rewritten = fault_places::rewritten(&loaded.bytes, &kernel.name);
                passes.suppressed = passes.suppressed.with_addresses(rewritten);
            }
            self.device()?.options_mut().passes = passes;
        }
        let device = self.device()?;
        match device.begin(&dispatch) {
            Ok(flight) => {
                self.collection.host_launch(&self.settings, &kernel.name, shape);
                let mut of = InFlight::new(
                    kernel.clone(),
                    *shape,
                    flight,
                    Segment { address: kernarg_address, room },
                    ticket,
                    target,
                    ordinal,
                );
                let ended = self.advance(&mut of, Share { instructions: AT_ONCE, interrupt: None })?;
                Ok((!ended).then(|| Box::new(of)))
            }
            Err(fault) => {
                self.abandon(kernel, ticket, &fault);
                self.fault(&kernel.name, &fault);
                Ok(None)
            }
        }
    }

    /// Why a cooperative launch has to run the original, if its kernel counts and it has to.
    fn fewer_workgroups(&mut self, kernel: &KernelRef, shape: &Shape) -> Outcome<Option<Why>> {
        let (_, loaded) = self.load(kernel.image)?;
        let Some(counters) = &loaded.counters else { return Ok(None) };
        let Some(mapped) = counters.map.kernels.iter().find(|mapped| mapped.name == kernel.name) else {
            return Ok(None);
        };
        let size = shape.workgroup.iter().product();
        Ok(fewer_workgroups(&counters.map.target, (&mapped.before, &mapped.after), size, shape.dynamic_lds))
    }

    /// Says of accesses after allocations, each place once, and keeps the segment of arguments for the next launch.
    pub(crate) fn ended(&mut self, kernel: &KernelRef, stats: &DispatchStats, arguments: Segment) {
        for overrun in &stats.overruns {
            if self.overruns.insert((kernel.name.clone(), overrun.place.address)) {
                let more = "a GPU lets that be up to the end of its page, and so does this run; with --strict it ends \
                    the program";
                let what =
                    fault_places::text_of_overrun(bytes_of(&self.code.images, Some(overrun.place.object)), overrun);
                say_fault(&kernel.name, &format!("{what}: {more}"));
            }
        }
        self.kernargs.entry(arguments.room).or_default().push(arguments.address);
    }

    /// Arms the control block for a dispatch.
    fn begin_counting(&mut self, kernel: &KernelRef, info: &DispatchInfo) -> Result<Option<Ticket>> {
        let loaded =
            self.code.images.get(kernel.image).and_then(Option::as_ref).and_then(|image| image.loaded.as_ref());
        let counters = loaded.and_then(|loaded| loaded.counters.as_ref());
        let (Some(counters), Some((device, _))) = (counters, &mut self.device) else { return Ok(None) };
        Ok(Some(self.collection.session.begin_dispatch(&mut EmulatedMemory(device), counters.object, info)?))
    }

    /// Forgets what a dispatch counted that faulted, if it did.
    pub(crate) fn abandon(&mut self, kernel: &KernelRef, ticket: Option<Ticket>, fault: &Fault) {
        let (Some(ticket), Some((device, _))) = (ticket, &mut self.device) else { return };
        if let Err(error) = self.collection.session.abandon(&mut EmulatedMemory(device), ticket) {
            complain("the counters of a kernel that faulted could not be taken away", &error);
        }
        let text = fault_places::text(bytes_of(&self.code.images, fault.object), fault);
        self.not_counted(kernel, uncounted::faulted(&text));
    }

    /// A kernel that faulted: what the program did wrong becomes an error that it gets from now on. Anything else, such
    /// as a broken rule of the hardware or an instruction that is not emulated, ends the program, which could not know
    /// that its results are worth nothing.
    pub(crate) fn fault(&mut self, kernel: &str, fault: &Fault) {
        let text = fault_places::text(bytes_of(&self.code.images, fault.object), fault);
        let status = match fault.kind {
            FaultKind::Memory { .. }
            | FaultKind::LdsBounds { .. }
            | FaultKind::ScratchBounds { .. }
            | FaultKind::Misaligned { .. } => ILLEGAL_ADDRESS,
            FaultKind::NoRoom { .. } => LAUNCH_OUT_OF_RESOURCES,
            FaultKind::Trap { .. } if self.hostcall.complained() => ASSERT,
            FaultKind::Trap { .. } => LAUNCH_FAILURE,
            _ => self.stop(kernel, &text),
        };
        say_fault(kernel, &text);
        if let Err(error) = self.write_time() {
            complain("the counts could not be written", &error);
        }
        break_device(status);
        tasks::wake();
    }

    /// Records a dispatch that is not counted.
    pub(crate) fn not_counted(&mut self, kernel: &KernelRef, why: Why) {
        let loaded =
            self.code.images.get(kernel.image).and_then(Option::as_ref).and_then(|image| image.loaded.as_ref());
        if !self.settings.wants_counters() {
            return;
        }
        let collector = self.collection.session.collector_mut();
        match self.collection.uncounted.dispatch(kernel, loaded, why) {
            Ok(dispatch) => {
                collector.not_counted(dispatch);
                self.collection
                    .journals
                    .add(Changes { counters: Some((collector.profile_mut(), None)), ..Changes::default() });
            }
            Err(error) => complain("a dispatch that was not counted could not be recorded", &error),
        }
    }

    /// Drains what a dispatch counted and adds the emulator's own numbers.
    pub(crate) fn collect(
        &mut self,
        (kernel, shape): (&KernelRef, &Shape),
        ticket: Option<Ticket>,
        stats: &DispatchStats,
        (target, ordinal): (Target, u64),
    ) -> Result<()> {
        let loaded = self.code.images[kernel.image].as_ref().and_then(|image| image.loaded.as_ref());
        let loaded = loaded.ok_or_else(|| Error::internal("a kernel ran that is not loaded"))?;
        let mut changes = Changes::default();
        if let (Some(counters), Some(ticket), Some((device, _))) = (&loaded.counters, ticket, &mut self.device) {
            let index = counters
                .index_of(&kernel.name)
                .ok_or_else(|| Error::internal("a kernel counts that the site table lacks"))?;
            self.collection.session.end_dispatch(&mut EmulatedMemory(device), ticket, Some(shape.launched()))?;
            let collector = self.collection.session.collector_mut();
            let work = collector.kernel(&counters.map, index)?.work.get_or_insert(Work::default());
            work.instructions += stats.instructions;
            work.global_bytes += stats.global_bytes;
            work.lds_bytes += stats.lds_bytes;
            let place = collector.place(&counters.map, index)?;
            changes.counters = Some((collector.profile_mut(), Some(place)));
        }
        if let Some(tracer) = &mut self.collection.tracer {
            let place = tracer.add(&kernel.name, loaded, target, stats, shape)?;
            changes.trace = Some((tracer.profile_mut(), Some(place)));
        }
        if let Some(origins) = &mut self.collection.origins {
            origins.add(loaded, stats)?;
        }
        let mut added = None;
        if let Some(timer) = &mut self.collection.timer {
            added = timer.add(&kernel.name, loaded, target, ordinal, stats)?;
        }
        if let (Some(added), Some(timer)) = (&added, &self.collection.timer) {
            changes.time = Some((added, timer.time()));
        }
        self.collection.journals.add(changes);
        self.write_now_and_then();
        Ok(())
    }

    /// Ends the program as a GPU's fault does: whatever the kernel was to compute is missing, and a program that goes
    /// on would not know.
    pub(crate) fn stop(&mut self, kernel: &str, reason: &str) -> ! {
        say_fault(kernel, reason);
        self.findings.finish(&self.settings.findings);
        if let Err(error) = self.write() {
            complain("the counts could not be written", &error);
        }
        // What the program has printed so far is what a person looks for first.
        raw::flush_output();
        std::process::abort()
    }
}

/// Says on standard error what a kernel did: that first, as names of kernels can be long.
fn say_fault(kernel: &str, reason: &str) {
    eprintln!("wavetap: {reason}, in kernel {}", short(&demangle(kernel)));
}
