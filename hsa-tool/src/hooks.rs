//! The functions that the runtime's tables have in place of its own.
//!
//! Each tells the tool what the program does and calls what was there before. A panic ends here: nothing unwinds into
//! the program. Calls that the tool itself causes are passed on as they are.

mod allocated;

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use crate::api::{self, Api, ERROR, GpuEvent, INVALID_QUEUE, Place, QueueAddress, SUCCESS, Status, Writer, place};
use crate::objects::Object;
use crate::packets::{Packet, SIZE};
use crate::raw;
use crate::tool::{Source, Tool, complain};

/// The tool that was loaded last; never freed.
static TOOL: AtomicPtr<Tool> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// Whether this thread is inside the tool. No destructor: functions that run at exit may still call.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// How long a queue that is destroyed waits for its dispatches: a program that destroys one early does not want them.
const QUEUE_PATIENCE: Duration = Duration::from_secs(1);

/// `HSA_QUEUE_TYPE_COOPERATIVE`: workgroups of a dispatch may wait for each other.
const COOPERATIVE: u32 = 2;

/// The tool.
pub(crate) fn tool() -> Option<&'static Tool> {
    // SAFETY: null, or a tool that was leaked.
    unsafe { TOOL.load(Ordering::Acquire).as_ref() }
}

/// The functions that were in the table. There are some wherever a hook is called.
fn api() -> &'static Api {
    match tool() {
        Some(tool) => &tool.api,
        None => {
            complain("a function of the HSA tool was called before it was loaded", &"the process ends");
            std::process::abort()
        }
    }
}

/// Calls the tool, unless it caused this call itself or the process is a child; none, too, if it panicked.
fn inside<T>(call: impl FnOnce(&'static Tool) -> T) -> Option<T> {
    let tool = tool().filter(|tool| tool.is_here())?;
    if INSIDE.replace(true) {
        return None;
    }
    let result = catch_unwind(AssertUnwindSafe(|| call(tool)));
    INSIDE.set(false);
    if result.is_err() {
        complain("the HSA tool made an error", &"what was counted is incomplete");
        let _ = catch_unwind(AssertUnwindSafe(|| tool.state().lack()));
    }
    result.ok()
}

/// Puts the hooks into the tables.
pub(crate) fn install(tool: &'static Tool) {
    TOOL.store(std::ptr::from_ref(tool).cast_mut(), Ordering::Release);
    for (place, hook, _) in hooks(&tool.api) {
        tool.api.tables.replace(place, hook);
    }
}

/// Takes them out again where no other tool has put its own in their place.
pub(crate) fn remove(tool: &Tool) {
    for (place, hook, before) in hooks(&tool.api) {
        tool.api.tables.restore(place, hook, before);
    }
}

/// Where a hook is, its address, and what was there before.
fn hooks(api: &Api) -> Vec<(Place, usize, usize)> {
    let mut hooks = vec![
        (place::queue_create, queue_create as *const () as usize, api.queue_create as usize),
        (place::queue_destroy, queue_destroy as *const () as usize, api.queue_destroy as usize),
        (place::executable_destroy, executable_destroy as *const () as usize, api.executable_destroy as usize),
        (
            place::code_object_deserialize,
            code_object_deserialize as *const () as usize,
            api.code_object_deserialize as usize,
        ),
        (place::code_object_destroy, code_object_destroy as *const () as usize, api.code_object_destroy as usize),
        (place::load_code_object, load_code_object as *const () as usize, api.load_code_object as usize),
        (place::executable_freeze, executable_freeze as *const () as usize, api.executable_freeze as usize),
        (
            place::reader_create_from_file,
            reader_create_from_file as *const () as usize,
            api.reader_create_from_file as usize,
        ),
        (
            place::reader_create_from_memory,
            reader_create_from_memory as *const () as usize,
            api.reader_create_from_memory as usize,
        ),
        (place::reader_destroy, reader_destroy as *const () as usize, api.reader_destroy as usize),
        (
            place::load_agent_code_object,
            load_agent_code_object as *const () as usize,
            api.load_agent_code_object as usize,
        ),
    ];
    hooks.extend(allocated::hooks(api));
    hooks
}

/// Lets the runtime tell the tool of what happens to GPUs.
pub(crate) fn listen(api: &Api) {
    let status = (api.register_event_handler)(gpu_event, std::ptr::null_mut());
    if status != SUCCESS {
        complain("what kernels find before a memory access fault will be lost", &api.describe(status));
    }
}

/// Something happened to a GPU. What becomes of it is the runtime's matter: it ends the program, if no other handler
/// has taken care.
extern "C" fn gpu_event(event: *const GpuEvent, _data: *mut c_void) -> Status {
    if let Some(event) = raw::load::<GpuEvent>(event as usize)
        && let Some(address) = event.fault()
    {
        inside(|tool| tool.faulted(event.agent, address));
    }
    ERROR
}

extern "C" fn reader_create_from_memory(address: *const c_void, size: usize, reader: *mut u64) -> Status {
    let status = (api().reader_create_from_memory)(address, size, reader);
    if status == SUCCESS
        && let Some(reader) = raw::load::<u64>(reader as usize)
    {
        inside(|tool| tool.add_reader(reader, Source::Memory(address as usize, size)));
    }
    status
}

extern "C" fn reader_create_from_file(file: i32, reader: *mut u64) -> Status {
    let status = (api().reader_create_from_file)(file, reader);
    if status == SUCCESS
        && let Some(reader) = raw::load::<u64>(reader as usize)
    {
        inside(|tool| tool.add_reader(reader, Source::File(file)));
    }
    status
}

extern "C" fn reader_destroy(reader: u64) -> Status {
    inside(|tool| tool.remove_reader(reader));
    (api().reader_destroy)(reader)
}

extern "C" fn load_agent_code_object(
    executable: u64,
    agent: u64,
    reader: u64,
    options: *const c_char,
    loaded: *mut u64,
) -> Status {
    // Looked at before the program can change what it reads.
    let object = inside(|tool| tool.object(reader)).flatten();
    let status = (api().load_agent_code_object)(executable, agent, reader, options, loaded);
    if status == SUCCESS
        && let Some(object) = object
    {
        inside(|tool| tool.add_object(executable, agent, object));
    }
    status
}

/// Of HSA 1.0, with the two that follow: the runtime copies the code object, and gives a handle for it.
extern "C" fn code_object_deserialize(
    address: *const c_void,
    size: usize,
    options: *const c_char,
    handle: *mut u64,
) -> Status {
    let status = (api().code_object_deserialize)(address, size, options, handle);
    if status == SUCCESS
        && let Some(handle) = raw::load::<u64>(handle as usize)
    {
        inside(|tool| tool.add_handle(handle, address as usize, size));
    }
    status
}

extern "C" fn code_object_destroy(handle: u64) -> Status {
    inside(|tool| tool.remove_handle(handle));
    (api().code_object_destroy)(handle)
}

extern "C" fn load_code_object(executable: u64, agent: u64, handle: u64, options: *const c_char) -> Status {
    let status = (api().load_code_object)(executable, agent, handle, options);
    if status == SUCCESS {
        inside(|tool| {
            let object = tool.object_of_handle(handle).unwrap_or_else(|| Arc::new(Object::of_unknown_handle()));
            tool.add_object(executable, agent, object);
        });
    }
    status
}

extern "C" fn executable_freeze(executable: u64, options: *const c_char) -> Status {
    let status = (api().executable_freeze)(executable, options);
    if status == SUCCESS {
        inside(|tool| tool.arm(executable));
    }
    status
}

extern "C" fn executable_destroy(executable: u64) -> Status {
    inside(|tool| tool.disarm(executable));
    (api().executable_destroy)(executable)
}

#[allow(clippy::too_many_arguments, reason = "the runtime's own signature")]
extern "C" fn queue_create(
    agent: u64,
    size: u32,
    kind: u32,
    callback: usize,
    data: usize,
    private: u32,
    group: u32,
    queue: *mut QueueAddress,
) -> Status {
    let create = |create: api::QueueCreate| create(agent, size, kind, callback, data, private, group, queue);
    // Once it is known that no other tool makes queues whose packets can be seen, none is made to be replaced.
    let at_once =
        inside(|tool| tool.queues_are_replaced.load(Ordering::Relaxed) && create(tool.api.intercept_create) == SUCCESS);
    let status = if at_once == Some(true) { SUCCESS } else { create(api().queue_create) };
    let (SUCCESS, Some(made)) = (status, raw::load::<QueueAddress>(queue as usize)) else { return status };
    inside(|tool| {
        let register = |queue: QueueAddress| (tool.api.intercept_register)(queue, handle, queue as *mut c_void);
        let mut registered = register(made);
        if registered == INVALID_QUEUE {
            // An ordinary queue: one whose packets can be seen is made in its place.
            let destroyed = (tool.api.queue_destroy)(made);
            if destroyed != SUCCESS {
                return complain("a queue cannot be replaced", &tool.api.describe(destroyed));
            }
            let replaced = create(tool.api.intercept_create);
            if replaced != SUCCESS {
                complain("dispatches of a queue are not counted", &tool.api.describe(replaced));
                tool.state().lack();
                return again(create(tool.api.queue_create), &tool.api);
            }
            tool.queues_are_replaced.store(true, Ordering::Relaxed);
            registered = raw::load::<QueueAddress>(queue as usize).map_or(INVALID_QUEUE, register);
        }
        if registered != SUCCESS {
            complain("dispatches of a queue are not counted", &tool.api.describe(registered));
            tool.state().lack();
        }
        if let Some(made) = raw::load::<QueueAddress>(queue as usize) {
            allocated::add_queue(tool, made);
        }
        if kind == COOPERATIVE
            && let Some(made) = raw::load::<QueueAddress>(queue as usize)
        {
            tool.state().cooperative.insert(made);
        }
    });
    status
}

/// A queue that was made once is made again: without it the program cannot go on.
fn again(status: Status, api: &Api) {
    if status != SUCCESS {
        complain("a queue cannot be made again", &api.describe(status));
        std::process::abort()
    }
}

extern "C" fn queue_destroy(queue: QueueAddress) -> Status {
    inside(|tool| {
        tool.leave_queue(queue, QUEUE_PATIENCE);
        allocated::remove_queue(tool, queue);
    });
    (api().queue_destroy)(queue)
}

/// Is called with packets that the program has put into a queue.
extern "C" fn handle(packets: *const c_void, count: u64, _index: u64, queue: *mut c_void, writer: Writer) {
    let replace = |packet: Packet| inside(|tool| tool.replace(queue as QueueAddress, packet)).unwrap_or((packet, None));
    let mut out: Vec<[u8; SIZE]> = Vec::with_capacity(2);
    let mut captured = None;
    let capturing = tool().is_some_and(Tool::is_capturing);
    let to_capture = |packet: &Packet| inside(|tool| tool.to_capture(queue as QueueAddress, packet)).flatten();
    for index in 0..usize::try_from(count).unwrap_or(0) {
        let Some(packet) = raw::load::<[u8; SIZE]>(packets as usize + index * SIZE) else { break };
        if capturing {
            match to_capture(&Packet(packet)) {
                None => out.push(packet),
                Some(number) => match inside(|tool| tool.begin_capture(Packet(packet), number)).flatten() {
                    None => out.push(packet),
                    Some((packets, capture)) => {
                        out.extend(packets.iter().map(|packet| packet.0));
                        captured = Some(capture);
                    }
                },
            }
            continue;
        }
        let (packet, after) = replace(Packet(packet));
        out.push(packet.0);
        out.extend(after.map(|packet| packet.0));
    }
    writer(out.as_ptr().cast(), out.len() as u64);
    if let Some(capture) = captured {
        inside(|tool| tool.capture(capture));
    }
}
