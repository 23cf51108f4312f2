//! The tool over tables of the test's own, as each version of ROCm lays them out.
//!
//! What the runtime does is imitated as far as the tool sees it: handles are numbers, device memory is the host's, and
//! packets that reach a queue are kept.

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use wavetap::at_load::Rewriting;
use wavetap::code_object::CodeObject;
use wavetap::collect::config::AtLoad;
use wavetap::collect::session::Records;
use wavetap::profile::control;
use wavetap::profile::file::{Backend, Profile};

use crate::api::{Api, Handler, INVALID_QUEUE, SUCCESS, Status, Tables, Writer};
use crate::hooks;
use crate::packets::SIZE;
use crate::settings::Settings;
use crate::tool::Tool;

/// Sizes of AMD's extension table in bytes, by version, and whether entries for interception have moved in it.
const EXTENSIONS: [(&str, usize, bool); 8] = [
    ("4.5 to 5.4", 400, false),
    ("5.5", 424, false),
    ("5.6", 456, true),
    ("6.0", 552, true),
    ("6.1", 560, true),
    ("6.2", 576, true),
    ("6.4", 592, true),
    ("7.2", 624, true),
];
const CORE: usize = 1016;
/// What the tool replaces.
const REPLACED: [usize; 8] = [72, 88, 688, 704, 936, 944, 952, 976];

const AGENT: u64 = 0xa;
const POOL: u64 = 0xb;
const EXECUTABLE: u64 = 0xe;
/// An ordinary queue's address, and a queue whose packets can be seen, with room for 64.
const PLAIN: usize = 0x1000;
static SEEN_QUEUE: [u64; 8] = [0, 0, 0, 64, 0, 0, 0, 0];
/// Symbols of an executable, whose handle is above: the kernel and the control blocks.
const KERNEL_SYMBOL: u64 = 1;
const CONTROL_SYMBOL: u64 = 2;
const HANDLE: u32 = 8;

/// What the imitated runtime knows. One test uses it at a time.
#[derive(Default)]
struct Runtime {
    /// Bytes of readers, by handle.
    readers: HashMap<u64, Vec<u8>>,
    /// What was loaded into executables, and its image.
    loaded: HashMap<u64, (Vec<u8>, Vec<u8>)>,
    handler: Option<Handler>,
    /// Packets that reached the queue.
    packets: Vec<[u8; SIZE]>,
    /// Values of signals.
    signals: HashMap<u64, i64>,
    /// Calls, in their order.
    calls: Vec<String>,
    /// Queues are made by another tool, which shows packets already.
    seen_already: bool,
    next: u64,
}

static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn with<T>(use_it: impl FnOnce(&mut Runtime) -> T) -> T {
    let mut runtime: MutexGuard<'_, Option<Runtime>> = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    use_it(runtime.get_or_insert_default())
}

fn put<T>(address: *mut c_void, value: T) {
    crate::raw::store(address as usize, value);
}

/// The address of the queue whose packets can be seen.
fn seen() -> usize {
    SEEN_QUEUE.as_ptr() as usize
}

/// The address of a symbol of what is loaded into an executable.
fn address(executable: u64, name: &str) -> u64 {
    with(|runtime| {
        let (bytes, image) = &runtime.loaded[&executable];
        let code = CodeObject::parse(bytes).expect("a code object");
        image.as_ptr() as u64 + code.symbol(name).expect("the symbol").address
    })
}

/// What is loaded into an executable.
fn loaded(executable: u64) -> Vec<u8> {
    with(|runtime| runtime.loaded[&executable].0.clone())
}

mod imitated {
    use super::*;

    pub(super) extern "C" fn queue_create(
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

    pub(super) extern "C" fn intercept_create(
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

    pub(super) extern "C" fn intercept_register(queue: usize, handler: Handler, _: *mut c_void) -> Status {
        if queue != seen() {
            return INVALID_QUEUE;
        }
        with(|runtime| runtime.handler = Some(handler));
        SUCCESS
    }

    pub(super) extern "C" fn queue_destroy(_: usize) -> Status {
        with(|runtime| runtime.calls.push("queue_destroy".into()));
        SUCCESS
    }

    pub(super) extern "C" fn memory_copy(to: *mut c_void, from: *const c_void, size: usize) -> Status {
        let bytes = crate::raw::bytes(from as usize, size).expect("memory").to_vec();
        for (at, byte) in bytes.into_iter().enumerate() {
            put((to as usize + at) as *mut c_void, byte);
        }
        SUCCESS
    }

    pub(super) extern "C" fn signal_create(value: i64, _: u32, _: *const u64, _: u64, signal: *mut u64) -> Status {
        let made = with(|runtime| {
            runtime.next += 1;
            runtime.signals.insert(runtime.next, value);
            runtime.next
        });
        put(signal.cast(), made);
        SUCCESS
    }

    pub(super) extern "C" fn signal_destroy(signal: u64) -> Status {
        with(|runtime| runtime.signals.remove(&signal));
        SUCCESS
    }

    pub(super) extern "C" fn signal_load(signal: u64) -> i64 {
        with(|runtime| runtime.signals.get(&signal).copied().expect("a signal"))
    }

    pub(super) extern "C" fn signal_store(signal: u64, value: i64) {
        with(|runtime| runtime.signals.insert(signal, value));
    }

    pub(super) extern "C" fn executable_create(_: u32, _: u32, _: *const c_char, executable: *mut u64) -> Status {
        let made = with(|runtime| {
            runtime.next += 1;
            EXECUTABLE + runtime.next
        });
        put(executable.cast(), made);
        SUCCESS
    }

    pub(super) extern "C" fn executable(executable: u64) -> Status {
        with(|runtime| {
            runtime.calls.push("executable_destroy".into());
            runtime.loaded.remove(&executable).expect("an executable");
        });
        SUCCESS
    }

    pub(super) extern "C" fn freeze(_: u64, _: *const c_char) -> Status {
        SUCCESS
    }

    pub(super) extern "C" fn symbol_get_info(symbol: u64, attribute: u32, value: *mut c_void) -> Status {
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

    pub(super) extern "C" fn status_string(_: Status, text: *mut *const c_char) -> Status {
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

    pub(super) extern "C" fn reader_from_file(file: i32, reader: *mut u64) -> Status {
        add_reader(crate::raw::file(file).expect("a file"), reader)
    }

    pub(super) extern "C" fn reader_from_memory(from: *const c_void, size: usize, reader: *mut u64) -> Status {
        add_reader(crate::raw::bytes(from as usize, size).expect("memory").to_vec(), reader)
    }

    pub(super) extern "C" fn reader_destroy(reader: u64) -> Status {
        with(|runtime| runtime.readers.remove(&reader));
        SUCCESS
    }

    pub(super) extern "C" fn load(executable: u64, _: u64, reader: u64, _: *const c_char, _: *mut u64) -> Status {
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

    pub(super) extern "C" fn symbols(
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

    pub(super) extern "C" fn pool_info(_: u64, attribute: u32, value: *mut c_void) -> Status {
        match attribute {
            0 => put(value, 0_u32),
            1 => put(value, 4_u32),
            _ => put(value, true),
        }
        SUCCESS
    }

    pub(super) extern "C" fn pools(
        agent: u64,
        visit: extern "C" fn(u64, *mut c_void) -> Status,
        data: *mut c_void,
    ) -> Status {
        assert_eq!(agent, AGENT);
        visit(POOL, data)
    }

    pub(super) extern "C" fn allocate(pool: u64, size: usize, _: u32, address: *mut usize) -> Status {
        assert_eq!(pool, POOL);
        put(address.cast(), vec![0xcc_u8; size].leak().as_ptr() as usize);
        SUCCESS
    }

    pub(super) extern "C" fn free(_: usize) -> Status {
        SUCCESS
    }

    pub(super) extern "C" fn write(packets: *const c_void, count: u64) {
        for index in 0..count as usize {
            let packet = crate::raw::load(packets as usize + index * SIZE).expect("a packet");
            with(|runtime| runtime.packets.push(packet));
        }
    }
}

/// The symbol of the first kernel of what is loaded into an executable.
fn kernel_name(executable: u64) -> String {
    CodeObject::parse(&loaded(executable)).expect("a code object").kernels()[0].symbol()
}

/// The static LDS of the first kernel.
fn lds(bytes: &[u8]) -> u32 {
    let code = CodeObject::parse(bytes).expect("a code object");
    code.kernels()[0].metadata.as_ref().expect("metadata").group_segment_fixed_size as u32
}

/// A table as a version of the runtime has it. Entries that the test does not have are addresses that nothing calls.
fn table(extension_size: usize, moved: bool) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let header = |size: usize| vec![size << 32 | 2, 0];
    let fill = |size: usize| {
        let mut table = header(size);
        table.extend((2..size / 8).map(|entry| 0xdead_0000 + entry));
        table
    };
    let (mut core, mut extension) = (fill(CORE), fill(extension_size));
    for (offset, function) in [
        (72, imitated::queue_create as *const () as usize),
        (88, imitated::queue_destroy as *const () as usize),
        (296, imitated::memory_copy as *const () as usize),
        (320, imitated::signal_destroy as *const () as usize),
        (336, imitated::signal_load as *const () as usize),
        (352, imitated::signal_store as *const () as usize),
        (688, imitated::executable as *const () as usize),
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
        (264 + later, imitated::signal_create as *const () as usize),
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
fn entry<T: Copy>(core: &[usize], offset: usize) -> T {
    assert_eq!(size_of::<T>(), size_of::<usize>());
    crate::raw::load::<T>(core.as_ptr() as usize + offset).expect("an entry")
}

/// A tool of a version's tables that rewrites what is loaded, with its profile in a file.
fn load(root: &[usize], profile: &std::path::Path, counters: &str) -> &'static Tool {
    let at_load = AtLoad { counters: counters.into(), ..AtLoad::default() };
    let settings = Settings {
        backend: Backend::Gpu,
        journal: None,
        profile: Some(profile.to_owned()),
        records: Records::PerWave,
        rewriting: Some(Rewriting::of(at_load).expect("options")),
    };
    let api = Api::read(Tables::read(root.as_ptr() as usize).expect("tables")).expect("functions");
    let tool: &'static Tool = Box::leak(Box::new(Tool::new(api, settings)));
    hooks::install(tool);
    tool.start();
    tool
}

/// A code object with one kernel, of 256 work-items at most.
fn code_object() -> Vec<u8> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../hip-samples/bin/divergence");
    let bytes = std::fs::read(file).expect("a sample");
    let input = wavetap::offload_bundle::Input::parse(&bytes).expect("an executable");
    let found = input.code_objects().find(|found| found.target.as_ref().is_some_and(|id| id.processor == "gfx90a"));
    found.expect("code for gfx90a").bytes.to_vec()
}

/// A dispatch of the kernel with these work-items in a workgroup of as many.
fn dispatch(items: u16, lds: u32, signal: u64) -> [u8; SIZE] {
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

fn send(packet: [u8; SIZE]) -> Vec<[u8; SIZE]> {
    let handler = with(|runtime| {
        runtime.packets.clear();
        runtime.handler.expect("a queue was made")
    });
    handler(packet.as_ptr().cast(), 1, 0, seen() as *mut c_void, imitated::write as Writer);
    with(|runtime| runtime.packets.clone())
}

fn word(packet: &[u8; SIZE], at: usize) -> u32 {
    u32::from_le_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
}

fn long(packet: &[u8; SIZE], at: usize) -> u64 {
    u64::from(word(packet, at)) | u64::from(word(packet, at + 4)) << 32
}

/// Begins a test: no other one uses the imitated runtime.
fn begin() -> MutexGuard<'static, ()> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    with(|runtime| *runtime = Runtime::default());
    guard
}

#[test]
fn what_is_replaced_is_where_each_version_has_it() {
    let _guard = begin();
    let folder = tempfile::tempdir().expect("a folder");
    for (version, size, moved) in EXTENSIONS {
        let (root, mut core, extension) = table(size, moved);
        let (core_before, extension_before) = (core.clone(), extension.clone());
        let tool = load(&root, &folder.path().join("profile"), "lds");
        let differs = (0..CORE / 8).filter(|entry| core[*entry] != core_before[*entry]).map(|entry| entry * 8);
        assert_eq!(differs.collect::<Vec<_>>(), REPLACED, "{version}");
        assert_eq!(extension, extension_before, "{version}");
        // Another tool that comes later stays.
        let later = 0xdead_beef;
        core[REPLACED[0] / 8] = later;
        hooks::remove(tool);
        assert_eq!(core[REPLACED[0] / 8], later, "{version}");
        core[REPLACED[0] / 8] = core_before[REPLACED[0] / 8];
        assert_eq!(core, core_before, "{version}");
        tool.drain();
        tool.join();
        tool.finish();
    }
}

#[test]
fn tables_that_lack_something_are_refused() {
    let _guard = begin();
    let read = |root: &[usize]| Tables::read(root.as_ptr() as usize).and_then(Api::read).map(drop);
    let (root, core, _extension) = table(400, false);
    assert_eq!(read(&root), Ok(()));
    let mut short = root.clone();
    short[0] = 24 << 32 | 1;
    assert!(read(&short).unwrap_err().contains("32 bytes"));
    assert!(Tables::read(0).is_err());
    let mut without = core;
    without[976 / 8] = 0;
    let mut root_without = root.clone();
    root_without[2] = without.as_ptr() as usize;
    let error = read(&root_without).unwrap_err();
    assert!(error.contains("1016 and 400 bytes have no load_agent_code_object"), "{error}");
    // As large as the older ones, and too small for what they have.
    let (root, _core, _extension) = table(304, false);
    let error = read(&root).unwrap_err();
    assert!(error.contains("no intercept_register"), "{error}");
}

#[test]
fn kernels_are_rewritten_and_packets_patched_in_each_version() {
    let original = code_object();
    let most = CodeObject::parse(&original).expect("a code object").kernels()[0]
        .metadata
        .as_ref()
        .expect("metadata")
        .max_flat_workgroup_size as u16;
    for (version, size, moved) in EXTENSIONS {
        let _guard = begin();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profile");
        let (root, core, _extension) = table(size, moved);
        let tool = load(&root, &path, "lds");

        let create: extern "C" fn(*const c_void, usize, *mut u64) -> Status = entry(&core, 944);
        let load: extern "C" fn(u64, u64, u64, *const c_char, *mut u64) -> Status = entry(&core, 976);
        let freeze: extern "C" fn(u64, *const c_char) -> Status = entry(&core, 704);
        let (mut reader, mut loaded) = (0, 0);
        assert_eq!(create(original.as_ptr().cast(), original.len(), &raw mut reader), SUCCESS);
        assert_eq!(load(EXECUTABLE, AGENT, reader, std::ptr::null(), &raw mut loaded), SUCCESS);
        assert_eq!(freeze(EXECUTABLE, std::ptr::null()), SUCCESS);
        assert_eq!(self::loaded(EXECUTABLE), original, "{version}: the program's object is loaded as it is");
        assert_eq!(with(|runtime| runtime.loaded.len()), 1, "{version}: no kernel was dispatched");

        let make: crate::api::QueueCreate = entry(&core, 72);
        let mut queue = 0;
        assert_eq!(make(AGENT, 64, 0, 0, 0, 0, 0, &raw mut queue), SUCCESS);
        assert_eq!(queue, seen());
        let calls = with(|runtime| std::mem::take(&mut runtime.calls));
        assert_eq!(calls, ["queue_create", "queue_destroy", "intercept_create"], "{version}");

        // Without a signal of the program's, and with one.
        let before = lds(&original);
        let [counted] = send(dispatch(64, before + 100, 0))[..] else { panic!("{version}: one packet") };
        let ours = with(|runtime| runtime.loaded.keys().copied().find(|executable| *executable != EXECUTABLE));
        let ours = ours.expect("the kernel was loaded");
        let (after, kernel) = (lds(&self::loaded(ours)), address(ours, &kernel_name(ours)));
        assert!(after > before, "{version}: it counts in LDS");
        let header = u16::from_le_bytes([counted[0], counted[1]]);
        assert_eq!((header, word(&counted, 28), long(&counted, 32)), (0x1502, after + 100, kernel), "{version}");
        let signal = long(&counted, 56);
        assert_eq!(with(|runtime| runtime.signals.get(&signal).copied()), Some(1));
        let [counted, barrier] = send(dispatch(64, before, 77_777))[..] else { panic!("{version}: two packets") };
        assert_eq!((long(&counted, 32), long(&counted, 56), counted[0]), (kernel, 77_777, 2));
        assert_eq!((u16::from_le_bytes([barrier[0], barrier[1]]), long(&barrier, 8)), (0x1103, 0));
        assert_eq!(with(|runtime| runtime.loaded.len()), 2, "{version}: it is loaded once");

        // What cannot count runs the original: the packet stays as it is.
        for packet in [dispatch(most + 1, before, 0), dispatch(64, before + (65536 - before), 0)] {
            assert_eq!(send(packet), [packet], "{version}");
        }
        let mut unknown = dispatch(64, before, 0);
        unknown[32] ^= 0x40;
        assert_eq!(send(unknown), [unknown]);
        let barrier = [3; SIZE];
        assert_eq!(send(barrier), [barrier], "{version}: what is no dispatch stays as it is");

        // The imitated GPU runs nothing, and the profile says so.
        with(|runtime| runtime.signals.values_mut().for_each(|signal| *signal = 0));
        let destroy: extern "C" fn(u64) -> Status = entry(&core, 688);
        assert_eq!(destroy(EXECUTABLE), SUCCESS);
        let calls = with(|runtime| std::mem::take(&mut runtime.calls));
        assert_eq!(calls, ["executable_destroy", "executable_destroy"], "{version}: ours, and the program's");
        tool.drain();
        tool.join();
        hooks::remove(tool);
        tool.finish();
        assert_eq!(with(|runtime| runtime.readers.len()), 1, "{version}: the program's own reader is left");
        let profile = Profile::from_json(&std::fs::read(&path).expect("a profile")).expect("a profile");
        let [kernel] = &profile.kernels[..] else { panic!("{version}: one kernel") };
        assert_eq!((kernel.dispatches, kernel.waves, kernel.unfinished), (2, 2, 2), "{version}");
        assert!(!profile.complete && profile.backend == Backend::Gpu);
        let why: Vec<&str> = profile.uncounted.iter().map(|uncounted| uncounted.why.name()).collect();
        assert_eq!(why, ["refused", "lds_does_not_fit", "not_rewritten"], "{version}");
    }
}

/// A queue that another tool's function has made shows its packets already.
#[test]
fn queues_of_other_tools_are_not_replaced() {
    let _guard = begin();
    let folder = tempfile::tempdir().expect("a folder");
    let (root, core, _extension) = table(624, true);
    let tool = load(&root, &folder.path().join("profile"), "lds");
    with(|runtime| runtime.seen_already = true);
    let make: crate::api::QueueCreate = entry(&core, 72);
    let mut queue = 0;
    assert_eq!(make(AGENT, 64, 0, 0, 0, 0, 0, &raw mut queue), SUCCESS);
    assert_eq!(with(|runtime| std::mem::take(&mut runtime.calls)), ["queue_create"]);
    assert!(with(|runtime| runtime.handler.is_some()));
    tool.drain();
    tool.join();
    tool.finish();
    hooks::remove(tool);
}

/// HIP launches some of its own kernels with larger workgroups than their metadata allows.
#[test]
fn hips_own_kernels_are_left_alone() {
    use crate::objects::{Form, Object};
    let at_load = AtLoad { counters: "auto".into(), ..AtLoad::default() };
    let rewriting = Rewriting::of(at_load).expect("options");
    let original = code_object();
    let (object, problem) = Object::new(&original, Some(&rewriting));
    assert!(object.form == Form::AtDispatch && problem.is_none() && object.is_of(&original));
    let options = wavetap::pipeline::Options {
        probes: vec![wavetap::pipeline::ProbeKind::Branches],
        ..wavetap::pipeline::Options::default()
    };
    let rewritten = wavetap::pipeline::rewrite(&original, &options).expect("rewritten").bytes;
    let (before, _) = Object::new(&rewritten, Some(&rewriting));
    assert!(before.form == Form::RewrittenBefore && before.bytes == rewritten);
    assert_eq!(before.kernels.len(), before.names.len());
    // Names as long as those of the sample's kernels, so that nothing else of the object changes.
    let mut own = original.clone();
    for name in CodeObject::parse(&original).expect("a code object").kernels().iter().map(|kernel| &kernel.name) {
        let mut other = "__amd_rocclr_".to_owned();
        other.extend(std::iter::repeat_n('x', name.len() - other.len() - 1));
        other.push(name.chars().next_back().expect("a name"));
        let places: Vec<usize> =
            (0..own.len() - name.len()).filter(|at| own[*at..].starts_with(name.as_bytes())).collect();
        for at in places {
            own[at..at + name.len()].copy_from_slice(other.as_bytes());
        }
    }
    let (object, problem) = Object::new(&own, Some(&rewriting));
    assert!(object.form == Form::HipsOwn && object.bytes.is_empty() && problem.is_none(), "{object:?}");
    let (object, problem) = Object::new(b"no code object", Some(&rewriting));
    assert!(object.form == Form::Unchanged && problem.is_none());
}
