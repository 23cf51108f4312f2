//! The one device, what is loaded on it, and what has been collected.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wavetap::code_object::{KernelMetadata, ValueKind};
use wavetap::emulator::{AllocationKind, Device, Dispatch, DispatchStats, Fault, FaultKind, Options};
use wavetap::error::{Error, Result, ResultExt};
use wavetap::isa::Target;
use wavetap::offload_bundle::TargetId;
use wavetap::profile::collect::Collector;
use wavetap::profile::file::{Backend, Work};

use crate::arrays::Array;
use crate::counters;
use crate::findings::Findings;
use crate::graphs::Graphs;
use crate::host_memory::HostMemory;
use crate::hostcall::Hostcall;
use crate::images::{Image, Loaded, is_emulated, processor_for, runs_on};
use crate::kernarg::{self, Shape};
use crate::managed::Advice;
use crate::operation::Launch;
use crate::origins::OriginCollector;
use crate::pools::Pool;
use crate::settings::Settings;
use crate::status::*;
use crate::streams::Streams;
use crate::textures::Texture;
use crate::time::Timer;
use crate::trace::Tracer;

/// The device that is emulated unless the program has no code for it.
const DEFAULT_PROCESSOR: &str = "gfx90a";

/// Scratch bytes of each lane where a kernel's own need is not known statically, as long as the program does not set the limit.
const DEFAULT_STACK: u32 = 16 << 10;

/// Alignment of device memory.
const ALIGNMENT: u64 = 256;

/// What fresh device memory holds: large and easily recognised as an integer, finite and far from every likely result in each format of floating
/// point (with what is no number, a check of the form `if (fabs(found - expected) > limit) fail();` would pass), as an address nowhere.
/// (A little-endian 0xcdd4dead.)
const POISON: [u8; 4] = [0xad, 0xde, 0xd4, 0xcd];

/// No more than this of an allocation is filled: some programs allocate all there is and use little of it.
const MOST_POISON: u64 = 1 << 30;

/// It is filled in parts of this size.
const POISON_PART: u64 = 1 << 20;

/// Files are rewritten at most this often while kernels run, so that many small launches do not wait for them.
const WRITE_INTERVAL: Duration = Duration::from_millis(200);

/// Device addresses lie in this range: below and above are the host's.
pub(crate) const DEVICE_ADDRESSES: std::ops::Range<u64> = 0x2000_0000_0000..0x4000_0000_0000;

/// A kernel of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelRef {
    pub(crate) image: usize,
    pub(crate) name: String,
}

/// Everything there is.
pub(crate) struct Runtime {
    pub(crate) settings: Settings,
    pub(crate) images: Vec<Option<Image>>,
    /// Kernels by the address of their host stub.
    pub(crate) kernels: HashMap<usize, KernelRef>,
    /// Device variables by the address of their host shadow.
    pub(crate) variables: HashMap<usize, KernelRef>,
    /// What `hipModuleGetFunction` gave out; a handle is an index plus one.
    pub(crate) functions: Vec<KernelRef>,
    pub(crate) host: HostMemory,
    pub(crate) streams: Streams,
    pub(crate) graphs: Graphs,
    /// Arrays by handle.
    pub(crate) arrays: HashMap<usize, Array>,
    /// What texture objects were made of, by address.
    pub(crate) textures: HashMap<u64, Texture>,
    /// The arrays of surface objects, by address.
    pub(crate) surfaces: HashMap<u64, usize>,
    /// Memory pools by handle.
    pub(crate) pools: HashMap<usize, Pool>,
    pub(crate) default_pool: Option<usize>,
    pub(crate) current_pool: Option<usize>,
    /// Pool and size of allocations that came from one, by address.
    pub(crate) pooled: HashMap<u64, (usize, u64)>,
    /// What was advised about managed memory, by address.
    pub(crate) advised: HashMap<u64, Advice>,
    findings: Findings,
    pub(crate) hostcall: Hostcall,
    pub(crate) stack_limit: u32,
    device: Option<(Device, TargetId)>,
    dispatches: u64,
    collector: Option<Collector>,
    tracer: Option<Tracer>,
    origins: Option<OriginCollector>,
    timer: Option<Timer>,
    written: Option<Instant>,
}

static RUNTIME: LazyLock<Mutex<Runtime>> = LazyLock::new(|| Mutex::new(Runtime::new(Settings::read())));

/// The runtime, for this thread alone until the guard is dropped.
pub(crate) fn runtime() -> MutexGuard<'static, Runtime> {
    RUNTIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says on standard error why something was refused.
pub(crate) fn complain(what: &str, error: &Error) {
    eprintln!("wavetap: {what}: {error}");
}

/// The settings that a device of this processor has unless told otherwise (ROCm's defaults: error correction on, no page retry).
fn default_id(processor: &str) -> TargetId {
    let target = Target::by_name(processor);
    let xnack = target.is_some_and(Target::supports_xnack).then_some(false);
    let sramecc = target.is_some_and(Target::supports_sramecc).then_some(true);
    TargetId { processor: processor.to_owned(), xnack, sramecc }
}

/// A device of the processor of `wanted` with the features that it names.
fn device_for(wanted: &TargetId) -> TargetId {
    let base = default_id(processor_for(wanted));
    TargetId { xnack: wanted.xnack.or(base.xnack), sramecc: wanted.sramecc.or(base.sramecc), ..base }
}

/// The device to emulate, given what the program has code for.
fn choose_device(wanted: Option<&TargetId>, available: &[TargetId]) -> TargetId {
    let fallback = default_id(DEFAULT_PROCESSOR);
    let device = wanted.map_or(fallback, device_for);
    if available.iter().any(|code| runs_on(code, &device)) {
        return device;
    }
    // Code for the same processor with other features, then any emulated processor unless one was asked for.
    let fits = |code: &&TargetId| code.processor == device.processor && wanted.is_none_or(|id| id.xnack.is_none() && id.sramecc.is_none());
    let real = |code: &&TargetId| wanted.is_none() && is_emulated(code) && processor_for(code) == code.processor;
    let any = |code: &&TargetId| wanted.is_none() && is_emulated(code);
    let other = available.iter().find(fits).or_else(|| available.iter().find(real)).or_else(|| available.iter().find(any));
    other.map_or(device, device_for)
}

impl Runtime {
    fn new(settings: Settings) -> Self {
        let collector = settings.profile.is_some().then(|| Collector::new(Backend::Emulator, settings.per_wave));
        let tracer = settings.trace.is_some().then(Tracer::new);
        let origins = settings.origins.is_some().then(OriginCollector::default);
        let timer = settings.timing.as_ref().map(Timer::new);
        Runtime {
            settings,
            images: Vec::new(),
            kernels: HashMap::new(),
            variables: HashMap::new(),
            functions: Vec::new(),
            host: HostMemory::default(),
            streams: Streams::default(),
            graphs: Graphs::default(),
            arrays: HashMap::new(),
            textures: HashMap::new(),
            surfaces: HashMap::new(),
            pools: HashMap::new(),
            default_pool: None,
            current_pool: None,
            pooled: HashMap::new(),
            advised: HashMap::new(),
            findings: Findings::default(),
            hostcall: Hostcall::default(),
            stack_limit: DEFAULT_STACK,
            device: None,
            dispatches: 0,
            collector,
            tracer,
            origins,
            timer,
            written: None,
        }
    }

    fn parts(&mut self) -> Outcome<(&mut Device, &TargetId, &mut Vec<Option<Image>>, &Settings)> {
        if self.device.is_none() {
            let available: Vec<TargetId> =
                self.images.iter_mut().flatten().flat_map(|image| image.targets().cloned().collect::<Vec<_>>()).collect();
            let id = choose_device(self.settings.target.as_ref(), &available);
            let target = Target::by_name(&id.processor).filter(|target| target.emulated()).ok_or(NO_DEVICE)?;
            let default = Options::default();
            let options = Options {
                strict: self.settings.strict,
                seed: self.settings.seed,
                fuel: self.settings.fuel.unwrap_or(default.fuel),
                tolerated: default.tolerated,
                passes: default.passes,
                trace: self.tracer.is_some(),
                origins: self.origins.is_some(),
                threads: self.settings.threads,
                timing: self.settings.timing.clone(),
            };
            self.device = Some((Device::new(target, options), id));
        }
        let (device, id) = self.device.as_mut().ok_or(NO_DEVICE)?;
        Ok((device, id, &mut self.images, &self.settings))
    }

    /// The device, made on first use: by then a program has registered its code.
    pub(crate) fn device(&mut self) -> Outcome<&mut Device> {
        Ok(self.parts()?.0)
    }

    /// The device and the host memory that it sees.
    pub(crate) fn device_and_host(&mut self) -> Outcome<(&mut Device, &mut HostMemory)> {
        self.device()?;
        let (device, _) = self.device.as_mut().ok_or(NO_DEVICE)?;
        Ok((device, &mut self.host))
    }

    /// The device's processor and settings.
    pub(crate) fn device_id(&mut self) -> Outcome<TargetId> {
        Ok(self.parts()?.1.clone())
    }

    /// Adds an image and gives its index.
    pub(crate) fn add_image(&mut self, image: Image) -> usize {
        self.images.push(Some(image));
        self.images.len() - 1
    }

    /// Removes an image and what it occupies on the device.
    pub(crate) fn remove_image(&mut self, index: usize) -> Outcome {
        let image = self.images.get_mut(index).and_then(Option::take).ok_or(INVALID_HANDLE)?;
        if let (Some(loaded), Some((device, _))) = (image.loaded, self.device.as_mut()) {
            device.unload(&loaded.object).map_err(|_| INVALID_VALUE)?;
        }
        Ok(())
    }

    /// Loads an image if that has not been done, and tells the collector of it.
    pub(crate) fn load(&mut self, index: usize) -> Outcome<(&mut Device, &mut Loaded)> {
        let (device, id, images, settings) = self.parts()?;
        let image = images.get_mut(index).and_then(Option::as_mut).ok_or(INVALID_HANDLE)?;
        let first = image.loaded.is_none();
        if let Err(error) = image.load(device, id, settings) {
            complain("cannot load device code", &error);
            return Err(NO_BINARY_FOR_GPU);
        }
        let counters = self.images[index].as_ref().and_then(|image| image.loaded.as_ref()).and_then(|loaded| loaded.counters.as_ref());
        if first && let (Some(collector), Some(counters)) = (&mut self.collector, counters) {
            collector.add_object(&counters.map);
        }
        let loaded = self.images[index].as_mut().and_then(|image| image.loaded.as_mut()).ok_or(INVALID_HANDLE)?;
        let (device, _) = self.device.as_mut().ok_or(NO_DEVICE)?;
        Ok((device, loaded))
    }

    /// What the metadata says of a kernel.
    pub(crate) fn kernel(&mut self, kernel: &KernelRef) -> Outcome<Arc<KernelMetadata>> {
        let (_, loaded) = self.load(kernel.image)?;
        loaded.kernels.get(&kernel.name).cloned().ok_or(NOT_FOUND)
    }

    /// Whether an address is one of device memory that the host cannot touch itself.
    pub(crate) fn is_device_memory(&self, address: u64) -> bool {
        let kind = self.device.as_ref().and_then(|(device, _)| device.allocation_of(address)).map(|allocation| allocation.kind);
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
        Ok(())
    }

    /// Gives memory back that a graph held, where no other graph needs it.
    pub(crate) fn give_back(&mut self, memory: Vec<Arc<u64>>) {
        for address in memory.into_iter().filter_map(Arc::into_inner) {
            // A program may have freed it itself.
            let _ = self.free(address);
        }
    }

    /// Refuses what HIP refuses before it launches anything.
    pub(crate) fn check_launch(&mut self, kernel: &KernelRef, shape: &Shape) -> Outcome {
        let metadata = self.kernel(kernel)?;
        if kernarg::has(&metadata, &ValueKind::HiddenPrintfBuffer) {
            say_fault(&kernel.name, "it prints into a buffer (-mprintf-kind=buffered), which the built-in runtime does not have");
            return Err(NOT_SUPPORTED);
        }
        check(&metadata, shape, self.device()?.target())
    }

    /// Runs a kernel to its end. A fault is not an error of this launch: the device then answers everything with the fault's error.
    pub(crate) fn launch(&mut self, launch: &Launch) -> Outcome {
        let Launch { kernel, shape, arguments } = launch;
        let metadata = self.kernel(kernel)?;
        let target = self.device()?.target();
        check(&metadata, shape, target)?;
        if self.settings.skip_kernels {
            return Ok(());
        }
        let group_segment_size = u64::from(shape.dynamic_lds) + metadata.group_segment_fixed_size;
        let fixed = u32::try_from(metadata.private_segment_fixed_size).map_err(|_| INVALID_VALUE)?;
        let private_segment_size = if metadata.uses_dynamic_stack { fixed.saturating_add(self.stack_limit) } else { fixed };
        let mut services = kernarg::Services::default();
        if kernarg::has(&metadata, &ValueKind::HiddenHostcallBuffer) {
            let (device, _) = self.device.as_mut().ok_or(NO_DEVICE)?;
            services.hostcall = self.hostcall.address(device)?;
        }
        let segment = kernarg::segment(&metadata, shape, arguments, &services)?;
        let ordinal = self.dispatches;
        self.dispatches += 1;
        let (device, loaded) = self.load(kernel.image)?;
        let kernel_object = loaded.object.kernel(&kernel.name).ok_or(NOT_FOUND)?;
        let kernarg_address =
            device.malloc(segment.len() as u64, metadata.kernarg_segment_align.max(64).next_power_of_two()).map_err(|_| OUT_OF_MEMORY)?;
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
        let instrumented = loaded.counters.as_ref().and_then(|counters| counters.index_of(&kernel.name));
        let most_waves = counters::waves(shape.items, shape.workgroup, wave_size(&metadata, target));
        if self.collector.is_some() && instrumented.is_some() {
            let (device, loaded) = self.load(kernel.image)?;
            if let Some(counters) = &mut loaded.counters
                && let Err(error) = counters.arm(device, most_waves, ordinal as u32)
            {
                self.stop(&kernel.name, &error.to_string());
            }
        }
        let passes = self.settings.findings.of_kernel(&kernel.name);
        let (device, _) = self.load(kernel.image)?;
        device.options_mut().passes = passes;
        let result = device.dispatch(&dispatch);
        let found = device.take_findings();
        self.findings.add(&self.settings.findings, &kernel.name, found);
        let stats = match result {
            Ok(stats) => stats,
            Err(fault) => {
                self.fault(&kernel.name, &fault);
                return Ok(());
            }
        };
        if let Err(error) = self.collect(kernel, instrumented, &stats, (target, ordinal)) {
            self.stop(&kernel.name, &error.to_string());
        }
        self.device()?.free(kernarg_address).map_err(|_| UNKNOWN)?;
        Ok(())
    }

    /// A kernel that faulted: what the program did wrong becomes an error that it gets from now on. Anything else, such as a broken rule
    /// of the hardware or an instruction that is not emulated, ends the program, which could not know that its results are worth nothing.
    fn fault(&mut self, kernel: &str, fault: &Fault) {
        let status = match fault.kind {
            FaultKind::Memory { .. } | FaultKind::LdsBounds { .. } | FaultKind::ScratchBounds { .. } | FaultKind::Misaligned { .. } => {
                ILLEGAL_ADDRESS
            }
            FaultKind::Trap { .. } if self.hostcall.complained() => ASSERT,
            FaultKind::Trap { .. } => LAUNCH_FAILURE,
            _ => self.stop(kernel, &fault.to_string()),
        };
        say_fault(kernel, &fault.to_string());
        if let Err(error) = self.write() {
            complain("the counts could not be written", &error);
        }
        break_device(status);
    }

    /// Drains what a dispatch counted and adds the emulator's own numbers.
    fn collect(
        &mut self,
        kernel: &KernelRef,
        instrumented: Option<u32>,
        stats: &DispatchStats,
        (target, ordinal): (Target, u64),
    ) -> Result<()> {
        let loaded = self.images[kernel.image].as_ref().and_then(|image| image.loaded.as_ref());
        let loaded = loaded.ok_or_else(|| Error::internal("a kernel ran that is not loaded"))?;
        if let (Some(collector), Some(counters), Some(index), Some((device, _))) =
            (&mut self.collector, &loaded.counters, instrumented, &mut self.device)
        {
            let (control, records) = counters.drain(device)?;
            collector.drain(&counters.map, index, &control, &records)?;
            let work = collector.kernel(&counters.map, index)?.work.get_or_insert(Work::default());
            work.instructions += stats.instructions;
            work.global_bytes += stats.global_bytes;
            work.lds_bytes += stats.lds_bytes;
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.add(&kernel.name, loaded, target, stats)?;
        }
        if let Some(origins) = &mut self.origins {
            origins.add(loaded, stats)?;
        }
        if let Some(timer) = &mut self.timer {
            timer.add(&kernel.name, loaded, target, ordinal, stats)?;
        }
        if self.written.is_none_or(|last| last.elapsed() >= WRITE_INTERVAL) {
            self.write()?;
            self.written = Some(Instant::now());
        }
        Ok(())
    }

    /// Writes the files that were asked for.
    fn write(&self) -> Result<()> {
        if let (Some(path), Some(collector)) = (&self.settings.profile, &self.collector) {
            replace(path, &collector.profile().to_json()?)?;
        }
        if let (Some(path), Some(tracer)) = (&self.settings.trace, &self.tracer) {
            replace(path, &tracer.profile().to_json()?)?;
        }
        self.write_time()
    }

    fn write_time(&self) -> Result<()> {
        let Some(timer) = &self.timer else { return Ok(()) };
        if let Some(path) = &self.settings.time {
            replace(path, &timer.time().to_json()?)?;
        }
        if let (Some(path), Some(samples)) = (&self.settings.samples, timer.samples()) {
            replace(path, &samples.to_json()?)?;
        }
        Ok(())
    }

    /// Writes the files for the last time.
    fn finish(&mut self) {
        self.findings.finish(&self.settings.findings);
        let mut result = Ok(());
        if let (Some(path), Some(collector)) = (&self.settings.profile, self.collector.take()) {
            result = collector.finish().to_json().and_then(|json| replace(path, &json));
        }
        if let (Some(path), Some(tracer)) = (&self.settings.trace, &mut self.tracer) {
            tracer.finish();
            result = result.and(tracer.profile().to_json().and_then(|json| replace(path, &json)));
        }
        if let (Some(path), Some(origins)) = (&self.settings.origins, &self.origins) {
            result = result.and(origins.file().to_json().and_then(|json| replace(path, &json)));
        }
        if let Some(timer) = &mut self.timer {
            timer.finish();
        }
        result = result.and(self.write_time());
        if let Err(error) = result {
            complain("the counts could not be written", &error);
        }
    }

    /// Ends the program as a GPU's fault does: whatever the kernel was to compute is missing, and a program that goes on would not know.
    fn stop(&mut self, kernel: &str, reason: &str) -> ! {
        say_fault(kernel, reason);
        self.findings.finish(&self.settings.findings);
        if let Err(error) = self.write() {
            complain("the counts could not be written", &error);
        }
        std::process::abort()
    }
}

/// Says on standard error what a kernel did.
fn say_fault(kernel: &str, reason: &str) {
    eprintln!("wavetap: kernel {}: {reason}", wavetap::code_object::demangle(kernel));
}

/// Lanes of a kernel's waves: it chooses where the device has both sizes.
fn wave_size(kernel: &KernelMetadata, target: Target) -> u32 {
    u32::try_from(kernel.wavefront_size).ok().filter(|size| *size > 0).unwrap_or(target.wave_size())
}

/// What HIP refuses before it launches anything.
fn check(kernel: &KernelMetadata, shape: &Shape, target: Target) -> Outcome {
    let threads: u64 = shape.workgroup.iter().map(|size| u64::from(*size)).product();
    if threads == 0 || shape.items.contains(&0) || threads > u64::from(target.max_workgroup()) {
        return Err(INVALID_CONFIGURATION);
    }
    if threads > kernel.max_flat_workgroup_size {
        return Err(LAUNCH_FAILURE);
    }
    if u64::from(shape.dynamic_lds) + kernel.group_segment_fixed_size > u64::from(target.lds_bytes()) {
        return Err(INVALID_CONFIGURATION);
    }
    Ok(())
}

/// Writes a profile under a temporary name beside its place and renames it, so that a reader never sees half of one.
fn replace(path: &Path, contents: &[u8]) -> Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let place = || path.display().to_string();
    fs::write(&temporary, contents).map_err(Error::from).within(place)?;
    fs::rename(&temporary, path).map_err(Error::from).within(place)
}

/// Runs when the program exits or unloads this library, after its own exit handlers.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        // A thread that is still inside a launch holds the lock; what it had collected was written as it went.
        if let Ok(mut runtime) = RUNTIME.try_lock() {
            runtime.finish();
        }
    }
    at_exit
};

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> TargetId {
        TargetId::parse(text).unwrap()
    }

    #[test]
    fn chooses_the_device_that_the_program_has_code_for() {
        let choose = |wanted: Option<&str>, available: &[&str]| {
            let available: Vec<TargetId> = available.iter().map(|text| id(text)).collect();
            choose_device(wanted.map(id).as_ref(), &available).to_string()
        };
        assert_eq!(choose(None, &[]), "gfx90a:sramecc+:xnack-");
        assert_eq!(choose(None, &["gfx906", "gfx90a"]), "gfx90a:sramecc+:xnack-");
        assert_eq!(choose(None, &["gfx9-generic", "gfx906:xnack-", "gfx942"]), "gfx906:sramecc+:xnack-");
        assert_eq!(choose(None, &["gfx9-generic", "gfx11-generic"]), "gfx900:xnack-");
        assert_eq!(choose(Some("gfx1036"), &["gfx10-3-generic", "gfx90a"]), "gfx1036");
        assert_eq!(choose(None, &["gfx1030", "gfx906"]), "gfx1030");
        assert_eq!(choose(None, &["gfx90a:xnack+"]), "gfx90a:sramecc+:xnack+");
        assert_eq!(choose(Some("gfx942"), &["gfx90a"]), "gfx942:sramecc+:xnack-");
        assert_eq!(choose(Some("gfx90a"), &["gfx90a:sramecc-"]), "gfx90a:sramecc-:xnack-");
        assert_eq!(choose(Some("gfx90a:xnack-"), &["gfx90a:xnack+"]), "gfx90a:sramecc+:xnack-");
        assert_eq!(choose(Some("gfx900"), &[]), "gfx900:xnack-");
    }

    #[test]
    fn refuses_impossible_launches() {
        let target = Target::by_name("gfx90a").unwrap();
        let kernel = KernelMetadata { max_flat_workgroup_size: 256, group_segment_fixed_size: 1024, ..KernelMetadata::default() };
        let try_shape =
            |items: [u32; 3], workgroup: [u32; 3], dynamic_lds| check(&kernel, &Shape { items, workgroup, dynamic_lds }, target);
        assert_eq!(try_shape([256, 1, 1], [256, 1, 1], 64 << 10), Err(INVALID_CONFIGURATION));
        assert_eq!(try_shape([256, 1, 1], [256, 1, 1], 63 << 10), Ok(()));
        assert_eq!(try_shape([512, 1, 1], [512, 1, 1], 0), Err(LAUNCH_FAILURE));
        assert_eq!(try_shape([2048, 1, 1], [2048, 1, 1], 0), Err(INVALID_CONFIGURATION));
        assert_eq!(try_shape([0, 1, 1], [64, 1, 1], 0), Err(INVALID_CONFIGURATION));
        assert_eq!(try_shape([64, 1, 1], [0, 1, 1], 0), Err(INVALID_CONFIGURATION));
    }
}
