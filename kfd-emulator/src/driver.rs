//! The driver of this process.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use wavetap_amdgpu::Target;

use crate::engine::{Engine, Step, Surroundings};
use crate::events::Events;
use crate::gpu::Gpu;
use crate::memory::Allocations;
use crate::raw;
use crate::settings::Settings;
use crate::topology;
use wavetap_collect::stderr_line;

/// The driver, with its GPUs.
pub(crate) struct Driver {
    /// What each GPU is.
    pub(crate) target: Target,
    /// How many there are.
    pub(crate) gpus: u32,
    /// The process that it is of: there is none in a child.
    process: u32,
    /// The folder of the topology's files.
    pub(crate) topology: PathBuf,
    pub(crate) events: Events,
    allocations: Mutex<Allocations>,
    engine: Mutex<Engine>,
    /// Kernels of which it was said that they run past the end of their LDS.
    told: Mutex<BTreeSet<String>>,
    /// Threads that wait for the engine: the one that runs queues lets them go first.
    waiting: AtomicUsize,
}

/// How long the thread looks for work again and again before it sleeps between two looks, and how long it sleeps then,
/// and after a longer time without work. A doorbell is plain memory: nothing wakes the thread.
const AWAKE: Duration = Duration::from_micros(500);
const NAP: Duration = Duration::from_micros(50);
const LONG_WITHOUT_WORK: Duration = Duration::from_millis(500);
const SLEEP: Duration = Duration::from_micros(500);

static DRIVER: OnceLock<Driver> = OnceLock::new();

/// An open file of the driver: a duplicate of one.
struct Descriptor {
    /// -1 where there is none.
    number: AtomicI32,
    /// The minor number of the render node that was opened; 0 of the driver's own device.
    render_minor: AtomicU32,
}

/// The driver's open files. No lock: a file is closed in any state of the program.
static DESCRIPTORS: [Descriptor; 128] =
    [const { Descriptor { number: AtomicI32::new(-1), render_minor: AtomicU32::new(0) } }; 128];

impl Driver {
    /// The driver. It starts when the program first looks for it; what keeps it from starting ends the program with
    /// exit code 2, as it would run on another device or none.
    pub(crate) fn get() -> Option<&'static Driver> {
        let driver = DRIVER.get_or_init(|| {
            Self::start().unwrap_or_else(|error| {
                stderr_line!("wavetap: the emulated kernel driver cannot start: {error}");
                raw::end_now(2)
            })
        });
        // HSA cannot be used in the child of a process that has used it.
        (driver.process == std::process::id()).then_some(driver)
    }

    /// The driver of this process if it has started.
    pub(crate) fn started() -> Option<&'static Driver> {
        DRIVER.get().filter(|driver| driver.process == std::process::id())
    }

    fn start() -> std::io::Result<Driver> {
        let Settings { target, gpus, options } = Settings::read();
        let topology = folder()?;
        topology::write(&topology, target, gpus)?;
        raw::at_exit(remove_topology);
        let driver = Driver {
            target,
            gpus,
            process: std::process::id(),
            topology,
            events: Events::default(),
            allocations: Mutex::new(Allocations::new(gpus)?),
            engine: Mutex::new(Engine::new(target, &options, gpus)),
            told: Mutex::default(),
            waiting: AtomicUsize::new(0),
        };
        thread::Builder::new().name("wavetap-kfd".into()).spawn(run_queues)?;
        Ok(driver)
    }

    /// What is allocated.
    pub(crate) fn allocations(&self) -> MutexGuard<'_, Allocations> {
        self.allocations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The GPUs and their queues, for another thread than the one that runs them.
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        engine
    }

    /// Looks at all queues once.
    fn turn(&self) -> Step {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let several_gpus = self.gpus > 1;
        engine.turn(Surroundings { events: &self.events, told: &self.told, waiting: &self.waiting, several_gpus })
    }

    /// A new descriptor of the driver's device, or of the render node of a GPU.
    pub(crate) fn open(&self, gpu: Option<Gpu>) -> Result<i32, i32> {
        let file = self.allocations().file().try_clone();
        let descriptor = file.map_err(|error| error.raw_os_error().unwrap_or(libc::EMFILE))?.into_raw_fd();
        let free = DESCRIPTORS
            .iter()
            .find(|place| place.number.compare_exchange(-1, descriptor, Ordering::AcqRel, Ordering::Relaxed).is_ok());
        let Some(place) = free else {
            raw::close(descriptor);
            return Err(libc::EMFILE);
        };
        place.render_minor.store(gpu.map_or(0, Gpu::render_minor), Ordering::Release);
        Ok(descriptor)
    }

    /// The GPU whose render node a descriptor is of. Where there is only one, it is that, whatever the descriptor is a
    /// duplicate of.
    pub(crate) fn gpu_of(&self, descriptor: i32) -> Option<Gpu> {
        let place = DESCRIPTORS.iter().find(|place| place.number.load(Ordering::Acquire) == descriptor);
        let known = place.and_then(|place| Gpu::by_render_minor(place.render_minor.load(Ordering::Acquire), self.gpus));
        known.or_else(|| Gpu::all(self.gpus).next().filter(|_| self.gpus == 1))
    }
}

/// Runs queues until the program ends.
fn run_queues() {
    // Waits until the driver has started, which starts this thread.
    let Some(driver) = Driver::get() else { return };
    let mut worked = Instant::now();
    loop {
        let step = driver.turn();
        if step == Step::Done {
            worked = Instant::now();
        }
        // The lock is not fair: who waits for it goes first.
        while driver.waiting.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        let without = worked.elapsed();
        match step {
            Step::Done => {}
            _ if without < AWAKE => thread::yield_now(),
            _ if without < LONG_WITHOUT_WORK => thread::sleep(NAP),
            _ => thread::sleep(SLEEP),
        }
    }
}

/// Whether a descriptor is one of the driver's.
pub(crate) fn is_ours(descriptor: i32) -> bool {
    descriptor >= 0 && DESCRIPTORS.iter().any(|place| place.number.load(Ordering::Acquire) == descriptor)
}

/// Forgets a descriptor that is about to be closed.
pub(crate) fn forget(descriptor: i32) {
    if descriptor < 0 {
        return;
    }
    for place in &DESCRIPTORS {
        let _ = place.number.compare_exchange(descriptor, -1, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// A new folder for the topology, in the one that the command names if it has started the program.
fn folder() -> std::io::Result<PathBuf> {
    let parent = std::env::var_os("WAVETAP_TOPOLOGY").map_or_else(std::env::temp_dir, PathBuf::from);
    let named = |n: u32| parent.join(format!("wavetap-topology-{}-{n}", std::process::id()));
    for n in 0.. {
        match fs::create_dir(named(n)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            result => return result.map(|()| named(n)),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

/// Removes the folder when the program ends.
extern "C" fn remove_topology() {
    if let Some(driver) = Driver::started() {
        remove(&driver.topology);
    }
}

/// A folder that stays is of no harm.
fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}
