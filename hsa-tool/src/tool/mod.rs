//! The tool of this process: what is loaded, what is in flight, what was counted.

mod beside;
mod captured;
mod dispatches;
mod faults;
mod launches;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wavetap::code_object::{CodeObject, DESCRIPTOR_SUFFIX};
use wavetap::collect::collector::Collector;
use wavetap::collect::journals::{Changes, Journals, replace};
use wavetap::collect::selected::{Selected, Submitted, unseen_ranges};
use wavetap::collect::session::{ObjectId, Session};
use wavetap::collect::uncounted::{Why, without_counters};
use wavetap::error::{Error, Result, ResultExt};
use wavetap::profile::launches::NotCounted;
use wavetap::profile::map::ObjectMap;
use wavetap::stderr_line;

use crate::api::{Api, QueueAddress};
use crate::memory::{AgentMemory, Allocations};
use crate::objects::{Form, KernelNeeds, Object};
use crate::packets::Packet;
use crate::raw;
use crate::settings::Settings;
use beside::LoadedBeside;
use captured::Captures;
use dispatches::InFlight;
use launches::Launches;

/// How long the end of a program, of a queue or of an executable waits for dispatches of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks at what is in flight: soon after something began, and later.
const SHORT_NAP: Duration = Duration::from_micros(50);
const LONG_NAP: Duration = Duration::from_millis(2);

/// What a reader reads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// Address and size, which stay valid until the reader is destroyed.
    Memory(usize, usize),
    /// A file that stays open as long.
    File(i32),
}

/// A code object that was loaded into an executable.
struct LoadedObject {
    agent: u64,
    /// Where its virtual address 0 is, once that is known.
    image: Option<u64>,
    object: Arc<Object>,
    /// Where it counts, if it was rewritten before.
    counters: Option<ObjectId>,
    /// Its kernels that were rewritten when they were dispatched.
    kernels: Vec<LoadedBeside>,
}

impl LoadedObject {
    /// Finds out where its image is, by the address of a kernel.
    fn find_image(&mut self, api: &Api, executable: u64) {
        let Some((name, offset)) = &self.object.descriptor else { return };
        let plain = |name: &str| name.strip_suffix(DESCRIPTOR_SUFFIX).unwrap_or(name).to_owned();
        let symbols = api.symbols(executable, self.agent).unwrap_or_default();
        let symbol = symbols.iter().find(|symbol| symbol.is_kernel && plain(&symbol.name) == *name);
        self.image = symbol.and_then(|symbol| symbol.address.checked_sub(*offset));
    }

    /// Whether an object that counts is of it.
    fn has(&self, object: ObjectId) -> bool {
        self.counters == Some(object) || self.kernels.iter().any(|kernel| kernel.object == object)
    }
}

/// A kernel that can be dispatched.
#[derive(Clone)]
pub(crate) struct LoadedKernel {
    pub(crate) name: Arc<str>,
    pub(crate) agent: u64,
    pub(crate) object: Arc<Object>,
    executable: u64,
    /// The place of its object in the executable.
    place: usize,
    pub(crate) counting: Counting,
}

/// Whether a kernel counts.
#[derive(Debug, Clone)]
pub(crate) enum Counting {
    /// How it does.
    Counts(Counters),
    /// It is to be rewritten at its first dispatch.
    AtDispatch,
    /// Not, and why; none for HIP's own.
    Not(Option<Why>),
}

/// How a kernel counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counters {
    pub(crate) object: ObjectId,
    /// Its index in the site table.
    pub(crate) kernel: u32,
    pub(crate) needs: KernelNeeds,
    /// Where the descriptor that counts is, if that is not the program's.
    pub(crate) descriptor: Option<u64>,
}

/// What changes.
pub(crate) struct State {
    pub(crate) session: Session,
    selected: Selected,
    journals: Journals,
    /// What is launched, if that is listed and nothing is counted.
    launches: Option<Launches>,
    readers: HashMap<u64, Source>,
    /// Code objects that the runtime has a copy of, by its handle.
    handles: HashMap<u64, Arc<Object>>,
    executables: HashMap<u64, Vec<LoadedObject>>,
    /// By the address of the descriptor.
    pub(crate) kernels: HashMap<u64, LoadedKernel>,
    pub(crate) in_flight: Vec<InFlight>,
    /// Queues for dispatches whose workgroups wait for each other.
    pub(crate) cooperative: HashSet<QueueAddress>,
    /// Signals that can be used again.
    pub(crate) signals: Vec<u64>,
    /// Something is missing that should have been counted.
    lacking: bool,
    /// The next dispatch's ordinal.
    next_ordinal: u32,
    /// No further thread waits for what is in flight.
    stopping: bool,
    /// All was written.
    finished: bool,
}

/// The tool.
pub(crate) struct Tool {
    pub(crate) api: Api,
    pub(crate) allocations: Allocations,
    /// The runtime's function makes queues whose packets cannot be seen, and others are made in their place.
    pub(crate) queues_are_replaced: AtomicBool,
    /// Which dispatch is captured, if one is; then none is counted.
    captures: Option<Captures>,
    settings: Settings,
    /// What says which ranges of the program are open.
    ranges: Option<raw::Ranges>,
    /// The process whose counts these are: after `fork` the child cannot use HSA.
    process: u32,
    state: Mutex<State>,
    /// Something is in flight, or the thread is to end.
    changed: Condvar,
    /// Done once the runtime tells of faults.
    listening: Once,
    /// Code objects that are loaded: several GPUs have the same.
    objects: Mutex<Vec<Weak<Object>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Prints what went wrong.
pub(crate) fn complain(what: &str, problem: &dyn std::fmt::Display) {
    stderr_line!("wavetap: {what}: {problem}");
}

impl State {
    /// Marks what was counted as incomplete.
    pub(crate) fn lack(&mut self) {
        self.lacking = true;
        self.journals.mark_incomplete();
    }

    /// Says in the journals whether there is more to come: the program may end before it is collected.
    pub(crate) fn set_uncollected(&mut self, uncollected: bool) {
        self.journals.set_uncollected(uncollected);
    }

    /// Writes to the journals the totals of kernels that have changed.
    pub(crate) fn write(&mut self, places: &[usize]) {
        for place in places {
            self.write_changes(Some(*place));
        }
    }

    /// Writes to the journals the totals of the kernel at a place, and what else is new.
    fn write_changes(&mut self, place: Option<usize>) {
        let State { session, journals, launches, .. } = self;
        journals.add(changes(session, launches, place));
    }

    /// Whether a kernel records its accesses.
    pub(crate) fn records_accesses(&self, kernel: &LoadedKernel) -> bool {
        let Counting::Counts(counters) = &kernel.counting else { return false };
        let map = self.session.map(counters.object).ok();
        map.and_then(|map| map.kernels.get(counters.kernel as usize)).is_some_and(|kernel| kernel.records_accesses)
    }

    /// Records a dispatch where launches are listed; whether they are.
    pub(crate) fn list(&mut self, kernel: &LoadedKernel, region: Option<&str>, packet: &Packet) -> bool {
        let Some(launches) = &mut self.launches else { return false };
        if kernel.object.form == Form::HipsOwn {
            return true;
        }
        match launches.add(kernel, region, packet) {
            Some(place) => self.write_changes(Some(place)),
            None => {
                let why = "no_metadata: what the kernel needs is not known".to_owned();
                self.not_counted((&kernel.name, region), &kernel.object, (NotCounted::Refused, why));
            }
        }
        true
    }

    /// Records a dispatch that is not counted.
    pub(crate) fn not_counted(&mut self, (kernel, region): (&str, Option<&str>), object: &Object, (why, detail): Why) {
        use wavetap::profile::launches::UncountedDispatches;
        let demangled = wavetap::code_object::demangle(kernel).into_owned();
        let (name, target, digest) = (kernel.to_owned(), object.target.clone(), object.digest().to_owned());
        let region = region.map(str::to_owned);
        let uncounted =
            UncountedDispatches { name, demangled, target, object: digest, region, why, detail, dispatches: 1 };
        match &mut self.launches {
            Some(launches) => uncounted.add_to(&mut launches.profile.uncounted),
            None => self.session.collector_mut().not_counted(uncounted),
        }
        self.write_changes(None);
    }
}

/// What journals are to write.
fn changes<'a>(session: &'a mut Session, launches: &'a mut Option<Launches>, place: Option<usize>) -> Changes<'a> {
    match launches {
        Some(launches) => Changes { trace: Some((&mut launches.profile, place)), ..Changes::default() },
        None => Changes { counters: Some((session.collector_mut().profile_mut(), place)), ..Changes::default() },
    }
}

impl Tool {
    /// A tool of this process, which counts nothing yet.
    pub(crate) fn new(api: Api, settings: Settings) -> Tool {
        let journals = Journals::new(settings.journal.as_deref(), settings.profile.as_deref(), None);
        let state = State {
            session: Session::new(Collector::new(settings.backend, false), settings.session),
            selected: settings.selected.clone(),
            journals,
            launches: settings.launches.then(|| Launches::new(settings.backend)),
            readers: HashMap::new(),
            handles: HashMap::new(),
            executables: HashMap::new(),
            kernels: HashMap::new(),
            in_flight: Vec::new(),
            cooperative: HashSet::new(),
            signals: Vec::new(),
            lacking: false,
            next_ordinal: 0,
            stopping: false,
            finished: false,
        };
        Tool {
            api,
            allocations: Allocations::default(),
            queues_are_replaced: AtomicBool::new(false),
            captures: settings.capture.as_ref().map(Captures::new),
            settings,
            ranges: raw::ranges(),
            process: std::process::id(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            listening: Once::new(),
            objects: Mutex::default(),
            thread: Mutex::default(),
        }
    }

    /// Where the program is, of the calling thread.
    pub(crate) fn submitted(&self) -> Submitted {
        let Some(ranges) = self.ranges else { return Submitted::default() };
        let mut pausing = 0;
        let mut name = vec![0_u8; 256];
        loop {
            let length = ranges(&raw mut pausing, name.as_mut_ptr().cast(), name.len());
            if length <= name.len() {
                name.truncate(length);
                break;
            }
            name.resize(length, 0);
        }
        let region = (!name.is_empty()).then(|| String::from_utf8_lossy(&name).into_owned());
        let paused = match pausing {
            1 => Some(true),
            2 => Some(false),
            _ => None,
        };
        Submitted { region, paused }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, for the end of a program: a thread that the program has stopped may hold it for good.
    fn state_soon(&self) -> Option<MutexGuard<'_, State>> {
        let start = Instant::now();
        loop {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(std::sync::TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(std::sync::TryLockError::WouldBlock) if start.elapsed() > PATIENCE => return None,
                Err(std::sync::TryLockError::WouldBlock) => std::thread::sleep(SHORT_NAP),
            }
        }
    }

    /// Whether this is the process that the tool was loaded into, and not a child after `fork`.
    pub(crate) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Begins: a thread collects what dispatches that have ended have counted, and the journal shows that the tool was
    /// loaded.
    pub(crate) fn start(&'static self) {
        self.state().journals.begin();
        let collecting = || self.collect();
        match std::thread::Builder::new().name("wavetap-hsa".into()).spawn(collecting) {
            Ok(thread) => *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread),
            // Without it counts are collected when executables and queues are destroyed.
            Err(error) => complain("counts are collected late", &error),
        }
    }

    /// Collects what has ended, until the tool stops.
    fn collect(&self) {
        let mut nap = SHORT_NAP;
        let mut state = self.state();
        while !state.stopping {
            if state.in_flight.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                nap = SHORT_NAP;
                continue;
            }
            let ended = self.collect_ended(&mut state);
            nap = if ended { SHORT_NAP } else { (nap * 2).min(LONG_NAP) };
            drop(state);
            std::thread::sleep(nap);
            state = self.state();
        }
    }

    /// Says that something is in flight.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Collects what has ended, waits for what has not for a time, and lets no thread do so any more. The runtime works
    /// still; afterwards it may be gone.
    pub(crate) fn drain(&self) {
        if !self.is_here() {
            return;
        }
        if let Some(mut state) = self.state_soon() {
            self.wait_for(&mut state, PATIENCE, |_| true);
            state.stopping = true;
            for signal in std::mem::take(&mut state.signals) {
                (self.api.signal_destroy)(signal);
            }
        }
        self.wake();
    }

    /// Waits for the thread to end, as the code that it runs is about to be unloaded.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|_| self.is_here()) {
            // What it was about to say it has said.
            let _ = thread.join();
        }
    }

    /// Writes what was counted for the last time. The runtime is not called.
    pub(crate) fn finish(&self) {
        if !self.is_here() {
            return;
        }
        let Some(mut state) = self.state_soon().filter(|state| !state.finished) else { return };
        state.finished = true;
        if let Some(captures) = &self.captures {
            captures.finish();
        }
        if let Some(unseen) = unseen_ranges() {
            stderr_line!("wavetap: {unseen}");
        }
        let left = state.in_flight.len();
        if left > 0 {
            complain("the program ended before its kernels", &format!("{left} dispatches are not counted"));
            state.lack();
        }
        let State { session, journals, launches, lacking, .. } = &mut *state;
        if let Some(journal) = journals.of_process() {
            journal.add(changes(session, launches, None));
            journal.end();
        }
        if let Some(path) = &self.settings.profile {
            let mut profile = session.finish();
            profile.set_ended(!*lacking);
            if let Err(error) = profile.to_json().and_then(|json| replace(path, &json)) {
                complain("the counts could not be written", &error);
            }
        }
    }

    // --- code objects

    /// Remembers what a reader reads.
    pub(crate) fn add_reader(&self, reader: u64, source: Source) {
        self.state().readers.insert(reader, source);
    }

    /// Forgets a reader that is destroyed.
    pub(crate) fn remove_reader(&self, reader: u64) {
        self.state().readers.remove(&reader);
    }

    /// Remembers what a handle is for that the runtime has made of bytes at an address.
    pub(crate) fn add_handle(&self, handle: u64, address: usize, size: usize) {
        if let Some(bytes) = raw::bytes(address, size) {
            let object = self.object_of(bytes);
            self.state().handles.insert(handle, object);
        }
    }

    /// Forgets a handle that is destroyed.
    pub(crate) fn remove_handle(&self, handle: u64) {
        self.state().handles.remove(&handle);
    }

    /// The code object of a handle; none if that is not known.
    pub(crate) fn object_of_handle(&self, handle: u64) -> Option<Arc<Object>> {
        self.state().handles.get(&handle).cloned()
    }

    /// The code object that a reader reads; none if that is not known.
    pub(crate) fn object(&self, reader: u64) -> Option<Arc<Object>> {
        let source = *self.state().readers.get(&reader)?;
        let read;
        let bytes = match source {
            Source::Memory(address, size) => raw::bytes(address, size)?,
            Source::File(descriptor) => {
                read = raw::file(descriptor)
                    .inspect_err(|error| complain("a code object that is loaded cannot be read", error))
                    .ok()?;
                &read
            }
        };
        Some(self.object_of(bytes))
    }

    /// What becomes of a code object with these bytes.
    fn object_of(&self, bytes: &[u8]) -> Arc<Object> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.retain(|object| object.strong_count() > 0);
        if let Some(object) = objects.iter().filter_map(Weak::upgrade).find(|object| object.is_of(bytes)) {
            return object;
        }
        let (mut object, problem) = Object::new(bytes, self.settings.rewriting.as_ref());
        if self.is_capturing() {
            object.bytes = bytes.to_vec();
        }
        if let Some(problem) = problem {
            complain("a code object that was loaded is not counted", &problem);
        }
        let object = Arc::new(object);
        objects.push(Arc::downgrade(&object));
        object
    }

    /// Remembers an object that the program has loaded into an executable.
    pub(crate) fn add_object(&self, executable: u64, agent: u64, object: Arc<Object>) {
        let loaded = LoadedObject { agent, image: None, object, counters: None, kernels: Vec::new() };
        self.state().executables.entry(executable).or_default().push(loaded);
    }

    /// Arms the objects of an executable that can now be dispatched from.
    pub(crate) fn arm(&self, executable: u64) {
        let mut state = self.state();
        let state = &mut *state;
        let Some(objects) = state.executables.get_mut(&executable) else { return };
        for (place, loaded) in objects.iter_mut().enumerate() {
            loaded.find_image(&self.api, executable);
            if let Some(image) = loaded.image {
                self.allocations.add_other(image, image, loaded.object.extent);
            }
            let armed = if state.launches.is_some() {
                named_kernels(&self.api, executable, place, loaded, |_| Counting::Not(None))
            } else {
                arm(&self.api, executable, place, loaded, &mut state.session)
            };
            match armed {
                // What is loaded in an unknown way may be any of the executable's.
                Ok(kernels) if loaded.object.form == Form::Unknown => {
                    for (address, kernel) in kernels {
                        state.kernels.entry(address).or_insert(kernel);
                    }
                }
                Ok(kernels) => state.kernels.extend(kernels),
                Err(error) => {
                    complain("a code object that was loaded is not counted", &error);
                    state.lacking = true;
                    state.journals.mark_incomplete();
                }
            }
        }
        state.write_changes(None);
    }

    /// Collects what the kernels of an executable have counted that is about to be destroyed, and forgets it.
    pub(crate) fn disarm(&self, executable: u64) {
        let mut state = self.state();
        let Some(objects) = state.executables.remove(&executable) else { return };
        let of_it = |flight: &InFlight| objects.iter().any(|loaded| loaded.has(flight.object));
        self.wait_for(&mut state, PATIENCE, of_it);
        let left: Vec<InFlight> = state.in_flight.extract_if(.., |flight| of_it(flight)).collect();
        for flight in &left {
            let region = flight.region.as_deref();
            state.not_counted((&flight.kernel, region), &flight.code, dispatches::unloaded());
        }
        state.kernels.retain(|_, kernel| kernel.executable != executable);
        for loaded in objects {
            loaded.image.into_iter().for_each(|image| self.allocations.remove_other(image));
            let mut memory = AgentMemory::new(&self.api, loaded.agent);
            for object in loaded.counters.into_iter().chain(loaded.kernels.iter().map(|kernel| kernel.object)) {
                if let Err(error) = state.session.detach(&mut memory, object) {
                    complain("memory of counters could not be freed", &error);
                }
            }
            for kernel in loaded.kernels {
                self.allocations.remove(kernel.image);
                // What may still run stays.
                if left.iter().any(|flight| flight.object == kernel.object) {
                    std::mem::forget(kernel);
                } else {
                    kernel.unload(&self.api);
                }
            }
        }
    }
}

/// Finds the kernels of a loaded object and how they count.
fn arm(
    api: &Api,
    executable: u64,
    place: usize,
    loaded: &mut LoadedObject,
    session: &mut Session,
) -> Result<Vec<(u64, LoadedKernel)>> {
    let (agent, object) = (loaded.agent, Arc::clone(&loaded.object));
    if object.form == Form::HipsOwn {
        return named_kernels(api, executable, place, loaded, |_| Counting::Not(None));
    }
    if let Some(source) = &object.source {
        session.collector_mut().add_refused(source.rewriter().refused());
        return named_kernels(api, executable, place, loaded, |name| {
            if source.rewriter().has(name) {
                return Counting::AtDispatch;
            }
            Counting::Not(without_counters(None, object.refused(), name))
        });
    }
    let mut map = None;
    if object.form == Form::RewrittenBefore {
        let symbols = api.symbols(executable, agent).map_err(Error::unsupported)?;
        let code = CodeObject::parse(&object.bytes)?;
        let address = |name: &str| {
            symbols.iter().find(|symbol| !symbol.is_kernel && symbol.name == name).map(|symbol| symbol.address)
        };
        let memory = AgentMemory::new(api, agent);
        let attached = session.attach(&memory, &code, address)?;
        let id = attached.ok_or_else(|| Error::internal("the runtime has no symbol for its control block"))?;
        loaded.counters = Some(id);
        map = Some(Arc::clone(session.map(id)?));
    }
    let map: Option<&ObjectMap> = map.as_deref();
    let refused = map.map_or(object.refused().unwrap_or_default(), |map| &map.refused);
    session.collector_mut().add_refused(refused);
    let id = loaded.counters;
    named_kernels(api, executable, place, loaded, |name| {
        if let Some(why) = without_counters(map, object.refused(), name) {
            return Counting::Not(Some(why));
        }
        let index = map.and_then(|map| map.kernels.iter().position(|kernel| kernel.name == name));
        let counters = index.zip(id).zip(object.kernels.get(name));
        let Some(((index, object), needs)) = counters else { return Counting::Not(None) };
        Counting::Counts(Counters { object, kernel: index as u32, needs: *needs, descriptor: None })
    })
    .within(|| "the symbols of an executable".into())
}

/// The kernels of an object, by the addresses of their descriptors.
fn named_kernels(
    api: &Api,
    executable: u64,
    place: usize,
    loaded: &LoadedObject,
    counting: impl Fn(&str) -> Counting,
) -> Result<Vec<(u64, LoadedKernel)>> {
    let symbols = api.symbols(executable, loaded.agent).map_err(Error::unsupported)?;
    let kernels = symbols.into_iter().filter(|symbol| symbol.is_kernel).filter_map(|symbol| {
        let name = symbol.name.strip_suffix(DESCRIPTOR_SUFFIX).unwrap_or(&symbol.name).to_owned();
        // An executable may have several objects.
        loaded.object.has(&name).then_some(())?;
        let kernel = LoadedKernel {
            counting: counting(&name),
            name: name.into(),
            agent: loaded.agent,
            object: Arc::clone(&loaded.object),
            executable,
            place,
        };
        Some((symbol.address, kernel))
    });
    Ok(kernels.collect())
}
