//! The driver of this process.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use wavetap_amdgpu::Target;

use crate::engine::check::Check;
use crate::engine::{Engine, Step, Surroundings};
use crate::events::Events;
use crate::gpu::Gpu;
use crate::memory::{Allocations, VRAM};
use crate::nodes::{DRM_MAJOR, Node};
use crate::raw;
use crate::settings::Settings;
use crate::sysfs;
use wavetap_collect::stderr_line;

/// The driver, with its GPUs.
pub(crate) struct Driver {
    /// What each GPU is.
    pub(crate) target: Target,
    /// How many there are.
    pub(crate) gpus: u32,
    /// The process that it is of: there is none in a child.
    process: u32,
    /// The folder of the driver's files, which stands for `/`.
    pub(crate) root: PathBuf,
    pub(crate) events: Events,
    /// A runtime has said that it runs.
    pub(crate) runtime_enabled: AtomicBool,
    allocations: Mutex<Allocations>,
    engine: Mutex<Engine>,
    /// Kernels of which it was said that they run past the end of their LDS.
    told: Mutex<BTreeSet<String>>,
    /// What is checked, if anything is.
    check: Option<Mutex<Check>>,
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

thread_local! {
    /// This thread is starting the driver: what it opens meanwhile are the machine's own files.
    static STARTS: Cell<bool> = const { Cell::new(false) };
}

/// An open device file of the driver: a duplicate of one.
struct Descriptor {
    /// -1 where there is none.
    number: AtomicI32,
    /// The minor number of the graphics device that was opened; that of none ([`NO_MINOR`]) of the driver's own device.
    minor: AtomicU32,
}

/// No minor number of a graphics device.
const NO_MINOR: u32 = u32::MAX;

/// The driver's open files. No lock: a file is closed in any state of the program.
static DESCRIPTORS: [Descriptor; 128] =
    [const { Descriptor { number: AtomicI32::new(-1), minor: AtomicU32::new(NO_MINOR) } }; 128];

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

    /// The driver whose files are to be read, which starts for it. The child of a process still has them.
    pub(crate) fn files() -> Option<&'static Driver> {
        if STARTS.get() { None } else { DRIVER.get().or_else(Self::get) }
    }

    /// The driver if it has started, in this process or the one that this is a child of.
    pub(crate) fn known() -> Option<&'static Driver> {
        DRIVER.get()
    }

    /// Brings a file up to date that is about to be read.
    pub(crate) fn refresh(&self, path: &[u8]) {
        if let Some(gpu) = sysfs::used_memory(path, self.gpus)
            && self.process == std::process::id()
        {
            let used = VRAM - self.allocations().available(gpu);
            // Without room for it the file stays as it is.
            let _ = sysfs::write_used(&self.root, gpu, used);
        }
    }

    /// The driver of this process if it has started.
    pub(crate) fn started() -> Option<&'static Driver> {
        DRIVER.get().filter(|driver| driver.process == std::process::id())
    }

    fn start() -> std::io::Result<Driver> {
        STARTS.set(true);
        let Settings { target, gpus, compute_units, options, check } = Settings::read();
        // Without links, as the C library finds it.
        let root = fs::canonicalize(folder()?)?;
        sysfs::write(&root, target, gpus, compute_units)?;
        raw::at_exit(remove_files);
        let driver = Driver {
            target,
            gpus,
            process: std::process::id(),
            root,
            events: Events::default(),
            runtime_enabled: AtomicBool::new(false),
            allocations: Mutex::new(Allocations::new(gpus)?),
            engine: Mutex::new(Engine::new(target, &options, gpus)),
            told: Mutex::default(),
            check: check.as_ref().map(Check::new).map(Mutex::new),
            waiting: AtomicUsize::new(0),
        };
        thread::Builder::new().name("wavetap-kfd".into()).spawn(run_queues)?;
        STARTS.set(false);
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
        let Driver { events, told, waiting, check, .. } = self;
        engine.turn(Surroundings { events, told, waiting, check: check.as_ref(), several_gpus })
    }

    /// A new descriptor of a device file.
    pub(crate) fn open(&self, node: Node) -> Result<i32, i32> {
        let file = self.allocations().file().try_clone();
        let descriptor = file.map_err(|error| error.raw_os_error().unwrap_or(libc::EMFILE))?.into_raw_fd();
        let free = DESCRIPTORS
            .iter()
            .find(|place| place.number.compare_exchange(-1, descriptor, Ordering::AcqRel, Ordering::Relaxed).is_ok());
        let Some(place) = free else {
            raw::close(descriptor);
            return Err(libc::EMFILE);
        };
        let (major, minor) = node.number();
        place.minor.store(if major == DRM_MAJOR { minor } else { NO_MINOR }, Ordering::Release);
        Ok(descriptor)
    }

    /// The device file that a descriptor is of.
    pub(crate) fn node_of(&self, descriptor: i32) -> Option<Node> {
        let is = |place: &&Descriptor| descriptor >= 0 && place.number.load(Ordering::Acquire) == descriptor;
        let minor = DESCRIPTORS.iter().find(is)?.minor.load(Ordering::Acquire);
        let nodes = Gpu::all(self.gpus).flat_map(|gpu| [Node::Card(gpu), Node::Render(gpu)]);
        if minor == NO_MINOR { Some(Node::Kfd) } else { nodes.into_iter().find(|node| node.number().1 == minor) }
    }

    /// The GPU whose device file a descriptor is of. Where there is only one, it is that, whatever the descriptor is a
    /// duplicate of.
    pub(crate) fn gpu_of(&self, descriptor: i32) -> Option<Gpu> {
        let known = self.node_of(descriptor).and_then(Node::gpu);
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

/// A new folder for the driver's files, in the one that the command names if it has started the program.
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
extern "C" fn remove_files() {
    if let Some(driver) = Driver::started() {
        if let Some(check) = &driver.check {
            check.lock().unwrap_or_else(PoisonError::into_inner).finish();
        }
        remove(&driver.root);
    }
}

/// A folder that stays is of no harm.
fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}
