//! A runtime of the tests' own: tables as each version of ROCm lays them out, and what is behind them as far as the
//! tool sees it. Handles are numbers, device memory is the host's, and packets that reach a queue are kept.

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use wavetap::at_load::Rewriting;
use wavetap::code_object::CodeObject;
use wavetap::collect::config::AtLoad;
use wavetap::collect::session::{Options, Overlap, Records};
use wavetap::profile::control;
use wavetap::profile::file::Backend;

use crate::api::{Api, ERROR, EventHandler, Handler, INVALID_QUEUE, PointerFacts, SUCCESS, Status, Tables, Writer};
use crate::hooks;
use crate::packets::SIZE;
use crate::settings::Settings;
use crate::tool::Tool;

/// Sizes of AMD's extension table in bytes, by version, and whether entries for interception have moved in it.
pub(super) const EXTENSIONS: [(&str, usize, bool); 8] = [
    ("4.5 to 5.4", 400, false),
    ("5.5", 424, false),
    ("5.6", 456, true),
    ("6.0", 552, true),
    ("6.1", 560, true),
    ("6.2", 576, true),
    ("6.4", 592, true),
    ("7.2", 624, true),
];
pub(super) const CORE: usize = 1016;
/// What the tool replaces.
pub(super) const REPLACED: [usize; 17] =
    [72, 88, 264, 272, 280, 288, 312, 320, 632, 640, 688, 696, 704, 936, 944, 952, 976];

pub(super) const AGENT: u64 = 0xa;
pub(super) const POOL: u64 = 0xb;
/// The host, and its pool.
const HOST: u64 = 0x1a;
const HOST_POOL: u64 = 0x1b;
pub(super) const EXECUTABLE: u64 = 0xe;
/// An ordinary queue's address, and a queue whose packets can be seen, with room for 64, and with the high halves of
/// flat addresses that are not global.
pub(super) const PLAIN: usize = 0x1000;
pub(super) static SEEN_QUEUE: [u64; 9] = [0, 0, 0, 64, 0, 0, 0, 0, 0x2_0000_0001];
/// Symbols of an executable, whose handle is above: the kernel and the control blocks.
pub(super) const KERNEL_SYMBOL: u64 = 1;
pub(super) const CONTROL_SYMBOL: u64 = 2;
pub(super) const HANDLE: u32 = 8;

/// What the imitated runtime knows. One test uses it at a time.
#[derive(Default)]
pub(super) struct Runtime {
    /// Bytes of readers, by handle.
    pub(super) readers: HashMap<u64, Vec<u8>>,
    /// What was loaded into executables, and its image.
    pub(super) loaded: HashMap<u64, (Vec<u8>, Vec<u8>)>,
    /// Of the queue whose packets can be seen: the last is called first.
    pub(super) handlers: Vec<(Handler, usize)>,
    /// Of events of GPUs.
    pub(super) event_handlers: Vec<EventHandler>,
    /// How many handlers are left for the packets that one passes on.
    left: usize,
    /// Packets that reached the queue.
    pub(super) packets: Vec<[u8; SIZE]>,
    /// Values of signals.
    pub(super) signals: HashMap<u64, i64>,
    /// Calls, in their order.
    pub(super) calls: Vec<String>,
    /// Queues are made by another tool, which shows packets already.
    pub(super) seen_already: bool,
    pub(super) next: u64,
}

static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);
pub(super) static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub(super) fn with<T>(use_it: impl FnOnce(&mut Runtime) -> T) -> T {
    let mut runtime: MutexGuard<'_, Option<Runtime>> = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    use_it(runtime.get_or_insert_default())
}

pub(super) fn put<T>(address: *mut c_void, value: T) {
    crate::raw::store(address as usize, value);
}

/// The address of the queue whose packets can be seen.
pub(super) fn seen() -> usize {
    SEEN_QUEUE.as_ptr() as usize
}

/// The address of a symbol of what is loaded into an executable.
pub(super) fn address(executable: u64, name: &str) -> u64 {
    with(|runtime| {
        let (bytes, image) = &runtime.loaded[&executable];
        let code = CodeObject::parse(bytes).expect("a code object");
        image.as_ptr() as u64 + code.symbol(name).expect("the symbol").address
    })
}

/// What is loaded into an executable.
pub(super) fn loaded(executable: u64) -> Vec<u8> {
    with(|runtime| runtime.loaded[&executable].0.clone())
}

pub(super) mod imitated {
    use super::*;

    pub(in crate::tests) extern "C" fn queue_create(
        _: u64,
        _: u32,
        _: u32,
        _: usize,
        _: usize,
        _: u32,
        _: u32,
        queue: *mut usize,
    ) -> Status {
        let made = with(|runtime| {
            runtime.calls.push("queue_create".into());
            if runtime.seen_already { seen() } else { PLAIN }
        });
        put(queue.cast(), made);
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn intercept_create(
        _: u64,
        _: u32,
        _: u32,
        _: usize,
        _: usize,
        _: u32,
        _: u32,
        queue: *mut usize,
    ) -> Status {
        with(|runtime| runtime.calls.push("intercept_create".into()));
        put(queue.cast(), seen());
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn intercept_register(queue: usize, handler: Handler, data: *mut c_void) -> Status {
        if queue != seen() {
            return INVALID_QUEUE;
        }
        with(|runtime| runtime.handlers.push((handler, data as usize)));
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn queue_destroy(_: usize) -> Status {
        with(|runtime| runtime.calls.push("queue_destroy".into()));
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn memory_copy(to: *mut c_void, from: *const c_void, size: usize) -> Status {
        let bytes = crate::raw::bytes(from as usize, size).expect("memory").to_vec();
        for (at, byte) in bytes.into_iter().enumerate() {
            put((to as usize + at) as *mut c_void, byte);
        }
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn signal_create(
        value: i64,
        _: u32,
        _: *const u64,
        _: u64,
        signal: *mut u64,
    ) -> Status {
        let made = with(|runtime| {
            runtime.next += 1;
            runtime.signals.insert(runtime.next, value);
            runtime.next
        });
        put(signal.cast(), made);
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn core_signal_create(
        value: i64,
        count: u32,
        agents: *const u64,
        signal: *mut u64,
    ) -> Status {
        signal_create(value, count, agents, 0, signal)
    }

    /// The GPU has memory of the host at other addresses.
    pub(in crate::tests) extern "C" fn lock(
        host: usize,
        _: usize,
        _: *const u64,
        _: i32,
        address: *mut usize,
    ) -> Status {
        put(address.cast(), host + 0x10_0000);
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn signal_destroy(signal: u64) -> Status {
        with(|runtime| runtime.signals.remove(&signal));
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn signal_load(signal: u64) -> i64 {
        with(|runtime| runtime.signals.get(&signal).copied().expect("a signal"))
    }

    pub(in crate::tests) extern "C" fn signal_store(signal: u64, value: i64) {
        with(|runtime| runtime.signals.insert(signal, value));
    }

    pub(in crate::tests) extern "C" fn executable_create(
        _: u32,
        _: u32,
        _: *const c_char,
        executable: *mut u64,
    ) -> Status {
        let made = with(|runtime| {
            runtime.next += 1;
            EXECUTABLE + runtime.next
        });
        put(executable.cast(), made);
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn executable(executable: u64) -> Status {
        with(|runtime| {
            runtime.calls.push("executable_destroy".into());
            runtime.loaded.remove(&executable).expect("an executable");
        });
        SUCCESS
    }

    /// Makes a handle for a copy of a code object: a reader.
    pub(in crate::tests) extern "C" fn deserialize(
        address: *const c_void,
        size: usize,
        _: *const c_char,
        handle: *mut u64,
    ) -> Status {
        reader_from_memory(address, size, handle)
    }

    /// Loads the code object of a handle, which is the reader's that the test has made for it.
    pub(in crate::tests) extern "C" fn load_by_handle(
        executable: u64,
        agent: u64,
        object: u64,
        options: *const c_char,
    ) -> Status {
        load(executable, agent, object, options, std::ptr::null_mut())
    }

    pub(in crate::tests) extern "C" fn freeze(_: u64, _: *const c_char) -> Status {
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn symbol_get_info(symbol: u64, attribute: u32, value: *mut c_void) -> Status {
        let (executable, symbol) = (symbol >> HANDLE, symbol & 0xff);
        let is_kernel = symbol == KERNEL_SYMBOL;
        let name = if is_kernel { kernel_name(executable) } else { control::SYMBOL.to_owned() };
        match attribute {
            0 => put(value, u32::from(is_kernel)),
            1 => put(value, name.len() as u32),
            2 => name.bytes().enumerate().for_each(|(at, byte)| put((value as usize + at) as *mut c_void, byte)),
            21 | 22 => put(value, address(executable, &name)),
            _ => return 1,
        }
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn status_string(_: Status, text: *mut *const c_char) -> Status {
        put(text.cast(), c"a status".as_ptr());
        SUCCESS
    }

    fn add_reader(bytes: Vec<u8>, reader: *mut u64) -> Status {
        let made = with(|runtime| {
            runtime.next += 1;
            runtime.readers.insert(runtime.next, bytes);
            runtime.next
        });
        put(reader.cast(), made);
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn reader_from_file(file: i32, reader: *mut u64) -> Status {
        add_reader(crate::raw::file(file).expect("a file"), reader)
    }

    pub(in crate::tests) extern "C" fn reader_from_memory(
        from: *const c_void,
        size: usize,
        reader: *mut u64,
    ) -> Status {
        add_reader(crate::raw::bytes(from as usize, size).expect("memory").to_vec(), reader)
    }

    pub(in crate::tests) extern "C" fn reader_destroy(reader: u64) -> Status {
        with(|runtime| runtime.readers.remove(&reader));
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn load(
        executable: u64,
        _: u64,
        reader: u64,
        _: *const c_char,
        _: *mut u64,
    ) -> Status {
        with(|runtime| {
            let bytes = runtime.readers.get(&reader).expect("a reader").clone();
            let code = CodeObject::parse(&bytes).expect("a code object");
            let mut image = vec![0; code.image_end() as usize];
            for segment in code.elf().loads() {
                let (from, to, size) = (segment.offset as usize, segment.address as usize, segment.file_size as usize);
                image[to..to + size].copy_from_slice(&bytes[from..from + size]);
            }
            runtime.loaded.insert(executable, (bytes, image));
        });
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn symbols(
        executable: u64,
        agent: u64,
        visit: extern "C" fn(u64, u64, u64, *mut c_void) -> Status,
        data: *mut c_void,
    ) -> Status {
        visit(executable, agent, executable << HANDLE | KERNEL_SYMBOL, data);
        if CodeObject::parse(&loaded(executable)).expect("a code object").is_rewritten() {
            visit(executable, agent, executable << HANDLE | CONTROL_SYMBOL, data);
        }
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn pool_info(pool: u64, attribute: u32, value: *mut c_void) -> Status {
        match attribute {
            0 => put(value, 0_u32),
            1 => put(value, if pool == POOL { 4_u32 } else { 2 }),
            _ => put(value, true),
        }
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn pools(
        agent: u64,
        visit: extern "C" fn(u64, *mut c_void) -> Status,
        data: *mut c_void,
    ) -> Status {
        visit(if agent == AGENT { POOL } else { HOST_POOL }, data)
    }

    pub(in crate::tests) extern "C" fn system_info(_: u32, _: *mut c_void) -> Status {
        ERROR
    }

    /// Of no address anything is known.
    pub(in crate::tests) extern "C" fn pointer_info(
        _: usize,
        _: *mut PointerFacts,
        _: usize,
        _: *mut u32,
        _: *mut usize,
    ) -> Status {
        ERROR
    }

    pub(in crate::tests) extern "C" fn agents(
        visit: extern "C" fn(u64, *mut c_void) -> Status,
        data: *mut c_void,
    ) -> Status {
        [AGENT, HOST].into_iter().for_each(|agent| assert_eq!(visit(agent, data), SUCCESS));
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn agent_info(agent: u64, what: u32, value: *mut c_void) -> Status {
        assert_eq!(what, 17);
        put(value, u32::from(agent == AGENT));
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn allow_access(count: u32, agents: *const u64, _: *const u32, _: usize) -> Status {
        assert_eq!((count, crate::raw::load::<u64>(agents as usize)), (1, Some(AGENT)));
        with(|runtime| runtime.calls.push("allow_access".into()));
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn register_event_handler(handler: EventHandler, _: *mut c_void) -> Status {
        with(|runtime| runtime.event_handlers.push(handler));
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn allocate(pool: u64, size: usize, _: u32, address: *mut usize) -> Status {
        assert!(pool == POOL || pool == HOST_POOL);
        put(address.cast(), vec![0xcc_u8; size].leak().as_ptr() as usize);
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn free(_: usize) -> Status {
        SUCCESS
    }

    pub(in crate::tests) extern "C" fn write(packets: *const c_void, count: u64) {
        let next = with(|runtime| {
            runtime.left = runtime.left.checked_sub(1)?;
            Some((runtime.left, runtime.handlers[runtime.left]))
        });
        if let Some((left, (handler, data))) = next {
            handler(packets, count, 0, data as *mut c_void, write as Writer);
            with(|runtime| runtime.left = left + 1);
            return;
        }
        for index in 0..count as usize {
            let packet = crate::raw::load(packets as usize + index * SIZE).expect("a packet");
            with(|runtime| runtime.packets.push(packet));
        }
    }
}

/// The symbol of the first kernel of what is loaded into an executable.
pub(super) fn kernel_name(executable: u64) -> String {
    CodeObject::parse(&loaded(executable)).expect("a code object").kernels()[0].symbol()
}

/// The static LDS of the first kernel.
pub(super) fn lds(bytes: &[u8]) -> u32 {
    let code = CodeObject::parse(bytes).expect("a code object");
    code.kernels()[0].metadata.as_ref().expect("metadata").group_segment_fixed_size as u32
}

/// A table as a version of the runtime has it. Entries that the test does not have are addresses that nothing calls.
pub(super) fn table(extension_size: usize, moved: bool) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let header = |size: usize| vec![size << 32 | 2, 0];
    let fill = |size: usize| {
        let mut table = header(size);
        table.extend((2..size / 8).map(|entry| 0xdead_0000 + entry));
        table
    };
    let (mut core, mut extension) = (fill(CORE), fill(extension_size));
    for (offset, function) in [
        (32, imitated::system_info as *const () as usize),
        (56, imitated::agents as *const () as usize),
        (64, imitated::agent_info as *const () as usize),
        (72, imitated::queue_create as *const () as usize),
        (88, imitated::queue_destroy as *const () as usize),
        (296, imitated::memory_copy as *const () as usize),
        (312, imitated::core_signal_create as *const () as usize),
        (320, imitated::signal_destroy as *const () as usize),
        (336, imitated::signal_load as *const () as usize),
        (352, imitated::signal_store as *const () as usize),
        (632, imitated::deserialize as *const () as usize),
        (640, imitated::reader_destroy as *const () as usize),
        (688, imitated::executable as *const () as usize),
        (696, imitated::load_by_handle as *const () as usize),
        (704, imitated::freeze as *const () as usize),
        (760, imitated::symbol_get_info as *const () as usize),
        (776, imitated::status_string as *const () as usize),
        (936, imitated::reader_from_file as *const () as usize),
        (960, imitated::executable_create as *const () as usize),
        (944, imitated::reader_from_memory as *const () as usize),
        (952, imitated::reader_destroy as *const () as usize),
        (976, imitated::load as *const () as usize),
        (1000, imitated::symbols as *const () as usize),
    ] {
        core[offset / 8] = function;
    }
    let later = if moved { 16 } else { 0 };
    for (offset, function) in [
        (104, imitated::pool_info as *const () as usize),
        (112, imitated::pools as *const () as usize),
        (120, imitated::allocate as *const () as usize),
        (128, imitated::free as *const () as usize),
        (152 + later, imitated::allow_access as *const () as usize),
        (176 + later, imitated::lock as *const () as usize),
        (184 + later, imitated::free as *const () as usize),
        (224 + later, imitated::pointer_info as *const () as usize),
        (264 + later, imitated::signal_create as *const () as usize),
        (288 + later, imitated::register_event_handler as *const () as usize),
        (296 + later, imitated::intercept_create as *const () as usize),
        (304 + later, imitated::intercept_register as *const () as usize),
    ] {
        if let Some(entry) = extension.get_mut(offset / 8) {
            *entry = function;
        }
    }
    let mut root = header(48);
    root.extend([core.as_ptr() as usize, extension.as_ptr() as usize, 0, 0]);
    (root, core, extension)
}

/// The entry of a core table as the runtime calls it.
pub(super) fn entry<T: Copy>(core: &[usize], offset: usize) -> T {
    assert_eq!(size_of::<T>(), size_of::<usize>());
    crate::raw::load::<T>(core.as_ptr() as usize + offset).expect("an entry")
}

/// A tool of a version's tables that rewrites what is loaded, with its profile in a file.
pub(super) fn load(root: &[usize], profile: &std::path::Path, counters: &str) -> &'static Tool {
    load_with(root, settings(profile, counters))
}

/// A tool of a version's tables with these settings.
pub(super) fn load_with(root: &[usize], settings: Settings) -> &'static Tool {
    let api = Api::read(Tables::read(root.as_ptr() as usize).expect("tables")).expect("functions");
    let tool: &'static Tool = Box::leak(Box::new(Tool::new(api, settings)));
    hooks::install(tool);
    tool.start();
    tool
}

/// Rewrites what is dispatched, with the profile in a file.
pub(super) fn settings(profile: &std::path::Path, counters: &str) -> Settings {
    let at_load = AtLoad { counters: counters.into(), ..AtLoad::default() };
    Settings {
        selected: wavetap::collect::selected::Selected::default(),
        capture: None,
        backend: Backend::Gpu,
        journal: None,
        profile: Some(profile.to_owned()),
        launches: false,
        session: Options::new(Overlap::Concurrent, Records::PerWave),
        rewriting: Some(Rewriting::of(at_load).expect("options")),
    }
}

/// A code object with one kernel, of 256 work-items at most.
pub(super) fn code_object() -> Vec<u8> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../hip-samples/bin/divergence");
    let bytes = std::fs::read(file).expect("a sample");
    let input = wavetap::offload_bundle::Input::parse(&bytes).expect("an executable");
    let found = input.code_objects().find(|found| found.target.as_ref().is_some_and(|id| id.processor == "gfx90a"));
    found.expect("code for gfx90a").bytes.to_vec()
}

/// A dispatch of the kernel with these work-items in a workgroup of as many.
pub(super) fn dispatch(items: u16, lds: u32, signal: u64) -> [u8; SIZE] {
    let mut packet = [0; SIZE];
    packet[0..2].copy_from_slice(&0x0b02_u16.to_le_bytes());
    packet[2] = 1;
    for (at, size) in [(4, items), (6, 1), (8, 1)] {
        packet[at..at + 2].copy_from_slice(&size.to_le_bytes());
    }
    for (at, value) in [(12, items.into()), (16, 1), (20, 1), (24, 0), (28, lds)] {
        packet[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
    }
    packet[32..40].copy_from_slice(&address(EXECUTABLE, &kernel_name(EXECUTABLE)).to_le_bytes());
    packet[56..64].copy_from_slice(&signal.to_le_bytes());
    packet
}

pub(super) fn send(packet: [u8; SIZE]) -> Vec<[u8; SIZE]> {
    with(|runtime| {
        assert!(!runtime.handlers.is_empty(), "a queue was made");
        runtime.packets.clear();
        runtime.left = runtime.handlers.len();
    });
    imitated::write(packet.as_ptr().cast(), 1);
    with(|runtime| runtime.packets.clone())
}

pub(super) fn word(packet: &[u8; SIZE], at: usize) -> u32 {
    u32::from_le_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
}

pub(super) fn long(packet: &[u8; SIZE], at: usize) -> u64 {
    u64::from(word(packet, at)) | u64::from(word(packet, at + 4)) << 32
}

/// Begins a test: no other one uses the imitated runtime.
pub(super) fn begin() -> MutexGuard<'static, ()> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    with(|runtime| *runtime = Runtime::default());
    guard
}
