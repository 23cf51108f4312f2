//! The runtime's interface: a table of functions, in which a tool replaces those that it is to be called for.
//!
//! The runtime gives out a table of tables. Each begins with its version, of which only the size in bytes says what is
//! in it: entries were added and inserted without a new number. The core table has had the same entries since ROCm
//! 4.5; in AMD's extension two were inserted before those for interception in 5.6, when it grew to 456 bytes.

use std::ffi::{c_char, c_void};

use crate::raw;

/// A status of the runtime (`hsa_status_t`); 0 is success.
pub(crate) type Status = u32;
pub(crate) const SUCCESS: Status = 0;
/// `HSA_STATUS_ERROR`.
pub(crate) const ERROR: Status = 0x1000;
/// `HSA_STATUS_ERROR_INVALID_QUEUE`.
pub(crate) const INVALID_QUEUE: Status = 0x1007;

/// A queue's address.
pub(crate) type QueueAddress = usize;

/// Passes on packets from a handler.
pub(crate) type Writer = extern "C" fn(packets: *const c_void, count: u64);
/// Is called with packets before a queue has them.
pub(crate) type Handler = extern "C" fn(packets: *const c_void, count: u64, index: u64, data: *mut c_void, Writer);

/// Is called with what happened to a GPU ([`GpuEvent`]), and what it was registered with.
pub(crate) type EventHandler = extern "C" fn(event: *const GpuEvent, data: *mut c_void) -> Status;

type AgentVisitor = extern "C" fn(agent: u64, data: *mut c_void) -> Status;
type SymbolVisitor = extern "C" fn(executable: u64, agent: u64, symbol: u64, data: *mut c_void) -> Status;
type PoolVisitor = extern "C" fn(pool: u64, data: *mut c_void) -> Status;

/// Maps what a file descriptor of another interface (OpenGL, dma-buf) is.
pub(crate) type InteropMap =
    extern "C" fn(u32, *const u64, i32, u32, *mut usize, *mut usize, *mut usize, *mut usize) -> Status;
/// What is known of an address.
pub(crate) type PointerInfo = extern "C" fn(usize, *mut PointerFacts, usize, *mut u32, *mut usize) -> Status;
/// Makes memory of the host accessible, counted as a pool's.
pub(crate) type LockToPool = extern "C" fn(usize, usize, *const u64, i32, u64, u32, *mut usize) -> Status;
/// Maps memory at reserved addresses: address, size, offset, handle, flags (from ROCm 6.0 on).
pub(crate) type VirtualMap = extern "C" fn(usize, usize, usize, u64, u64) -> Status;
pub(crate) type VirtualUnmap = extern "C" fn(usize, usize) -> Status;

/// `hsa_amd_pointer_info_t`; newer ones are longer, and take shorter ones.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct PointerFacts {
    size: u32,
    kind: u32,
    device: usize,
    host: usize,
    bytes: usize,
    user: usize,
    owner: u64,
    flags: u32,
}

/// What happened to a GPU (`hsa_amd_event_t`). Fields beyond these follow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct GpuEvent {
    kind: u32,
    pub(crate) agent: u64,
    /// Of a memory access fault: the address, on GPUs that of its page.
    address: u64,
}

impl GpuEvent {
    /// The address of a memory access fault (`HSA_AMD_GPU_MEMORY_FAULT_EVENT`); none of other events.
    pub(crate) fn fault(&self) -> Option<u64> {
        (self.kind == 0).then_some(self.address)
    }
}

/// Where versions that have virtual memory management have it.
pub(crate) mod virtual_memory {
    use crate::api::Place;
    pub(crate) const MAP: Place = Place::Extension(488);
    pub(crate) const UNMAP: Place = Place::Extension(496);
}

/// `HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT`: kernels may access all memory of the host.
const ALL_OF_THE_HOST: u32 = 0x202;

/// What a queue is made with, in the order of the arguments.
pub(crate) type QueueCreate = extern "C" fn(u64, u32, u32, usize, usize, u32, u32, *mut QueueAddress) -> Status;

/// What a symbol is asked for (`hsa_executable_symbol_info_t`).
pub(crate) mod symbol {
    pub(crate) const TYPE: u32 = 0;
    pub(crate) const NAME_LENGTH: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const VARIABLE_ADDRESS: u32 = 21;
    pub(crate) const KERNEL_OBJECT: u32 = 22;

    /// Values of [`TYPE`].
    pub(crate) const VARIABLE: u32 = 0;
    pub(crate) const KERNEL: u32 = 1;
}

/// What a memory pool is asked for (`hsa_amd_memory_pool_info_t`).
mod pool {
    pub(super) const SEGMENT: u32 = 0;
    pub(super) const GLOBAL_FLAGS: u32 = 1;
    pub(super) const ALLOC_ALLOWED: u32 = 5;

    /// A value of [`SEGMENT`].
    pub(super) const GLOBAL: u32 = 0;
    /// Flags of [`GLOBAL_FLAGS`].
    pub(super) const FINE_GRAINED: u32 = 2;
    pub(super) const COARSE_GRAINED: u32 = 4;
}

/// `HSA_AGENT_INFO_DEVICE`, and what it is of the host.
const AGENT_DEVICE: u32 = 17;
const DEVICE_CPU: u32 = 0;

/// `HSA_PROFILE_FULL` and `HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT`, with which HIP makes executables.
const PROFILE_FULL: u32 = 1;
const DEFAULT_ROUNDING: u32 = 0;

/// Attribute of a signal that no host thread sleeps for: its completion raises no interrupt.
const SIGNAL_GPU_ONLY: u64 = 1;

/// Bytes of a table's version. The second of its four words is the table's size.
const VERSION: usize = 16;
const SIZE: usize = 4;
/// The smallest extension table with entries before those for interception that older ones have not.
const GROWN: usize = 456;

/// Where an entry is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// In the core table, at this byte offset.
    Core(usize),
    /// In the extension.
    Extension(usize),
    /// In the extension; in a grown one at the second offset.
    Grown(usize, usize),
}

/// The runtime's tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tables {
    core: (usize, usize),
    extension: (usize, usize),
}

impl Tables {
    /// Reads the table of tables.
    pub(crate) fn read(table: usize) -> Result<Tables, String> {
        let size = |address: usize| raw::load::<u32>(address + SIZE).map_or(0, |size| size as usize);
        let least = VERSION + 2 * size_of::<usize>();
        if table == 0 || size(table) < least {
            return Err(format!("the HSA runtime's table of tables has no {least} bytes"));
        }
        let at = |index: usize| raw::load::<usize>(table + VERSION + index * size_of::<usize>()).unwrap_or(0);
        let part = |name: &str, address: usize| {
            if address == 0 {
                Err(format!("the HSA runtime has no {name} table"))
            } else {
                Ok((address, size(address)))
            }
        };
        Ok(Tables { core: part("core", at(0))?, extension: part("AMD extension", at(1))? })
    }

    /// Whether queues of this runtime stop for good where a full one is to take more packets than it has room for: up
    /// to ROCm 5.5.
    pub(crate) fn queues_stop(&self) -> bool {
        self.extension.1 < GROWN
    }

    /// The address of an entry, if the table reaches so far.
    fn entry(&self, place: Place) -> Option<usize> {
        let ((table, size), offset) = match place {
            Place::Core(offset) => (self.core, offset),
            Place::Extension(offset) => (self.extension, offset),
            Place::Grown(old, new) => (self.extension, if self.extension.1 < GROWN { old } else { new }),
        };
        (offset + size_of::<usize>() <= size).then_some(table + offset)
    }

    fn function(&self, name: &str, place: Place) -> Result<usize, String> {
        let function = self.entry(place).and_then(raw::load::<usize>).filter(|function| *function != 0);
        function.ok_or_else(|| {
            let (core, extension) = (self.core.1, self.extension.1);
            format!("the HSA runtime's tables of {core} and {extension} bytes have no {name}")
        })
    }

    /// What an entry has that not all versions have.
    pub(crate) fn get(&self, place: Place) -> Option<usize> {
        self.entry(place).and_then(raw::load::<usize>).filter(|function| *function != 0)
    }

    /// Puts a function in the place of what an entry has.
    pub(crate) fn replace(&self, place: Place, function: usize) {
        if let Some(entry) = self.entry(place) {
            raw::store(entry, function);
        }
    }

    /// Puts back what an entry had, if it has still what it was replaced with.
    pub(crate) fn restore(&self, place: Place, ours: usize, before: usize) {
        if let Some(entry) = self.entry(place).filter(|entry| raw::load::<usize>(*entry) == Some(ours)) {
            raw::store(entry, before);
        }
    }
}

macro_rules! functions {
    ($($name:ident: $type:ty, $place:expr;)*) => {
        /// The functions of the runtime, or of the tool that comes before it, as they were when this one was loaded.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct Api {
            pub(crate) tables: Tables,
            /// Those of virtual memory management, where the version has it.
            pub(crate) virtual_map: Option<VirtualMap>,
            pub(crate) virtual_unmap: Option<VirtualUnmap>,
            $(pub(crate) $name: $type,)*
        }

        impl Api {
            /// Reads the tables; an error says what they lack.
            pub(crate) fn read(tables: Tables) -> Result<Api, String> {
                Ok(Api {
                    tables,
                    virtual_map: tables.get(virtual_memory::MAP).map(|function| {
                        // SAFETY: not null; the entry at this place has this type in every version that has it.
                        unsafe { std::mem::transmute::<usize, VirtualMap>(function) }
                    }),
                    virtual_unmap: tables.get(virtual_memory::UNMAP).map(|function| {
                        // SAFETY: the same.
                        unsafe { std::mem::transmute::<usize, VirtualUnmap>(function) }
                    }),
                    $($name: {
                        let function = tables.function(stringify!($name), $place)?;
                        // SAFETY: not null; the entry at this place has this type in every version of the table.
                        unsafe { std::mem::transmute::<usize, $type>(function) }
                    },)*
                })
            }
        }

        /// Where the functions are.
        #[allow(non_upper_case_globals, dead_code, reason = "named as the fields are, and most are only called")]
        pub(crate) mod place {
            use crate::api::Place::{self, Core, Extension, Grown};
            $(pub(crate) const $name: Place = $place;)*
        }
    };
}

use Place::{Core, Extension, Grown};

functions! {
    system_get_info: extern "C" fn(u32, *mut c_void) -> Status, Core(32);
    iterate_agents: extern "C" fn(AgentVisitor, *mut c_void) -> Status, Core(56);
    agent_get_info: extern "C" fn(u64, u32, *mut c_void) -> Status, Core(64);
    queue_create: QueueCreate, Core(72);
    queue_destroy: extern "C" fn(QueueAddress) -> Status, Core(88);
    memory_register: extern "C" fn(usize, usize) -> Status, Core(264);
    memory_deregister: extern "C" fn(usize, usize) -> Status, Core(272);
    memory_allocate: extern "C" fn(u64, usize, *mut usize) -> Status, Core(280);
    memory_free: extern "C" fn(usize) -> Status, Core(288);
    memory_copy: extern "C" fn(*mut c_void, *const c_void, usize) -> Status, Core(296);
    core_signal_create: extern "C" fn(i64, u32, *const u64, *mut u64) -> Status, Core(312);
    signal_destroy: extern "C" fn(u64) -> Status, Core(320);
    signal_load: extern "C" fn(u64) -> i64, Core(336);
    signal_store: extern "C" fn(u64, i64), Core(352);
    executable_create: extern "C" fn(u32, u32, *const c_char, *mut u64) -> Status, Core(960);
    executable_destroy: extern "C" fn(u64) -> Status, Core(688);
    code_object_deserialize: extern "C" fn(*const c_void, usize, *const c_char, *mut u64) -> Status, Core(632);
    code_object_destroy: extern "C" fn(u64) -> Status, Core(640);
    load_code_object: extern "C" fn(u64, u64, u64, *const c_char) -> Status, Core(696);
    executable_freeze: extern "C" fn(u64, *const c_char) -> Status, Core(704);
    symbol_get_info: extern "C" fn(u64, u32, *mut c_void) -> Status, Core(760);
    status_string: extern "C" fn(Status, *mut *const c_char) -> Status, Core(776);
    reader_create_from_file: extern "C" fn(i32, *mut u64) -> Status, Core(936);
    reader_create_from_memory: extern "C" fn(*const c_void, usize, *mut u64) -> Status, Core(944);
    reader_destroy: extern "C" fn(u64) -> Status, Core(952);
    load_agent_code_object: extern "C" fn(u64, u64, u64, *const c_char, *mut u64) -> Status, Core(976);
    iterate_agent_symbols: extern "C" fn(u64, u64, SymbolVisitor, *mut c_void) -> Status, Core(1000);
    pool_get_info: extern "C" fn(u64, u32, *mut c_void) -> Status, Extension(104);
    iterate_pools: extern "C" fn(u64, PoolVisitor, *mut c_void) -> Status, Extension(112);
    pool_allocate: extern "C" fn(u64, usize, u32, *mut usize) -> Status, Extension(120);
    pool_free: extern "C" fn(usize) -> Status, Extension(128);
    agents_allow_access: extern "C" fn(u32, *const u64, *const u32, usize) -> Status, Grown(152, 168);
    memory_lock: extern "C" fn(usize, usize, *const u64, i32, *mut usize) -> Status, Grown(176, 192);
    memory_unlock: extern "C" fn(usize) -> Status, Grown(184, 200);
    interop_map: InteropMap, Grown(200, 216);
    interop_unmap: extern "C" fn(usize) -> Status, Grown(208, 224);
    pointer_info: PointerInfo, Grown(224, 240);
    ipc_attach: extern "C" fn(*const c_void, usize, u32, *const u64, *mut usize) -> Status, Grown(248, 264);
    ipc_detach: extern "C" fn(usize) -> Status, Grown(256, 272);
    signal_create: extern "C" fn(i64, u32, *const u64, u64, *mut u64) -> Status, Grown(264, 280);
    register_event_handler: extern "C" fn(EventHandler, *mut c_void) -> Status, Grown(288, 304);
    intercept_create: QueueCreate, Grown(296, 312);
    intercept_register: extern "C" fn(QueueAddress, Handler, *mut c_void) -> Status, Grown(304, 320);
    lock_to_pool: LockToPool, Grown(336, 352);
    svm_attributes_set: extern "C" fn(usize, usize, *const c_void, usize) -> Status, Grown(368, 384);
}

impl Api {
    /// A status in words.
    pub(crate) fn describe(&self, status: Status) -> String {
        let mut text = std::ptr::null();
        let known = (self.status_string)(status, &raw mut text) == SUCCESS;
        let text = if known { raw::text(text) } else { String::new() };
        format!("{text} (status {status:#x})")
    }

    fn check(&self, status: Status) -> Result<(), String> {
        if status == SUCCESS { Ok(()) } else { Err(self.describe(status)) }
    }

    /// Copies from device memory.
    pub(crate) fn read_memory(&self, address: u64, into: &mut [u8]) -> Result<(), String> {
        if into.is_empty() {
            return Ok(());
        }
        self.check((self.memory_copy)(into.as_mut_ptr().cast(), address as *const c_void, into.len()))
    }

    /// Copies to device memory.
    pub(crate) fn write_memory(&self, address: u64, bytes: &[u8]) -> Result<(), String> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.check((self.memory_copy)(address as *mut c_void, bytes.as_ptr().cast(), bytes.len()))
    }

    /// Whether kernels may access all memory of the host.
    pub(crate) fn can_access_the_host(&self) -> bool {
        let mut all = false;
        (self.system_get_info)(ALL_OF_THE_HOST, (&raw mut all).cast()) == SUCCESS && all
    }

    /// The memory that the runtime has at an address of the GPU's, in whole pages: where it begins, and its size.
    pub(crate) fn allocation_at(&self, address: u64) -> Option<(u64, u64)> {
        let mut facts = PointerFacts { size: size_of::<PointerFacts>() as u32, ..PointerFacts::default() };
        let none = std::ptr::null_mut();
        let status = (self.pointer_info)(address as usize, &raw mut facts, 0, none, std::ptr::null_mut());
        (status == SUCCESS && facts.kind != 0).then_some((facts.device as u64, facts.bytes as u64))
    }

    /// A signal with the value 1, for a packet to complete.
    pub(crate) fn new_signal(&self) -> Result<u64, String> {
        let mut signal = 0;
        self.check((self.signal_create)(1, 0, std::ptr::null(), SIGNAL_GPU_ONLY, &raw mut signal))?;
        Ok(signal)
    }

    /// The pool of a GPU's own memory.
    pub(crate) fn device_pool(&self, agent: u64) -> Result<u64, String> {
        let found = self.pool(agent, pool::COARSE_GRAINED)?;
        found.ok_or_else(|| "the GPU has no coarse-grained memory to allocate".to_owned())
    }

    /// The pool of an agent's global memory with a flag, from which can be allocated.
    fn pool(&self, agent: u64, flag: u32) -> Result<Option<u64>, String> {
        let mut pools: Vec<u64> = Vec::new();
        self.check((self.iterate_pools)(agent, add_handle, (&raw mut pools).cast()))?;
        let number = |pool: u64, what: u32| {
            let mut value = 0_u32;
            let known = (self.pool_get_info)(pool, what, (&raw mut value).cast()) == SUCCESS;
            known.then_some(value)
        };
        let allowed = |pool: u64| {
            let mut value = false;
            (self.pool_get_info)(pool, pool::ALLOC_ALLOWED, (&raw mut value).cast()) == SUCCESS && value
        };
        let fits = |pool: &u64| {
            number(*pool, pool::SEGMENT) == Some(pool::GLOBAL)
                && number(*pool, pool::GLOBAL_FLAGS).is_some_and(|flags| flags & flag != 0)
                && allowed(*pool)
        };
        Ok(pools.into_iter().find(fits))
    }

    /// Allocates memory of the host that a GPU accesses, each access as it is: nothing is kept in caches.
    pub(crate) fn allocate_host(&self, agent: u64, size: usize) -> Result<u64, String> {
        let mut agents: Vec<u64> = Vec::new();
        self.check((self.iterate_agents)(add_handle, (&raw mut agents).cast()))?;
        for host in agents {
            let mut device = 0_u32;
            self.check((self.agent_get_info)(host, AGENT_DEVICE, (&raw mut device).cast()))?;
            if device != DEVICE_CPU {
                continue;
            }
            if let Some(pool) = self.pool(host, pool::FINE_GRAINED)? {
                let address = self.allocate(pool, size)?;
                self.check((self.agents_allow_access)(1, &raw const agent, std::ptr::null(), address as usize))?;
                return Ok(address);
            }
        }
        Err("the host has no fine-grained memory to allocate".to_owned())
    }

    /// Allocates from a pool.
    pub(crate) fn allocate(&self, pool: u64, size: usize) -> Result<u64, String> {
        let mut address = 0;
        self.check((self.pool_allocate)(pool, size, 0, &raw mut address))?;
        Ok(address as u64)
    }

    /// Frees what was allocated from a pool.
    pub(crate) fn free(&self, address: u64) -> Result<(), String> {
        self.check((self.pool_free)(address as usize))
    }

    /// The symbols that an executable has for an agent.
    pub(crate) fn symbols(&self, executable: u64, agent: u64) -> Result<Vec<Symbol>, String> {
        let mut handles: Vec<u64> = Vec::new();
        extern "C" fn visit(_executable: u64, _agent: u64, symbol: u64, data: *mut c_void) -> Status {
            // SAFETY: `data` is the vector below, which nothing else uses during the call.
            unsafe { &mut *data.cast::<Vec<u64>>() }.push(symbol);
            SUCCESS
        }
        self.check((self.iterate_agent_symbols)(executable, agent, visit, (&raw mut handles).cast()))?;
        handles.into_iter().filter_map(|handle| self.symbol(handle).transpose()).collect()
    }

    /// A symbol that is a kernel or a variable.
    fn symbol(&self, handle: u64) -> Result<Option<Symbol>, String> {
        let kind: u32 = self.symbol_info(handle, symbol::TYPE)?;
        let attribute = match kind {
            symbol::VARIABLE => symbol::VARIABLE_ADDRESS,
            symbol::KERNEL => symbol::KERNEL_OBJECT,
            _ => return Ok(None),
        };
        let address: u64 = self.symbol_info(handle, attribute)?;
        let length: u32 = self.symbol_info(handle, symbol::NAME_LENGTH)?;
        let mut name = vec![0_u8; length as usize];
        self.check((self.symbol_get_info)(handle, symbol::NAME, name.as_mut_ptr().cast()))?;
        let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
        Ok(Some(Symbol { name, is_kernel: kind == symbol::KERNEL, address }))
    }

    fn symbol_info<T: Copy + Default>(&self, handle: u64, attribute: u32) -> Result<T, String> {
        let mut value = T::default();
        self.check((self.symbol_get_info)(handle, attribute, (&raw mut value).cast()))?;
        Ok(value)
    }

    /// An empty executable.
    pub(crate) fn new_executable(&self) -> Result<u64, String> {
        let mut executable = 0;
        let (profile, rounding, options) = (PROFILE_FULL, DEFAULT_ROUNDING, std::ptr::null());
        self.check((self.executable_create)(profile, rounding, options, &raw mut executable))?;
        Ok(executable)
    }

    /// Reads a code object, which has to last as long as the reader.
    pub(crate) fn new_reader(&self, object: &[u8]) -> Result<u64, String> {
        let mut reader = 0;
        self.check((self.reader_create_from_memory)(object.as_ptr().cast(), object.len(), &raw mut reader))?;
        Ok(reader)
    }

    /// Loads into an executable for an agent what a reader reads, and makes it ready.
    pub(crate) fn load_and_freeze(&self, executable: u64, agent: u64, reader: u64) -> Result<(), String> {
        let (options, loaded) = (std::ptr::null(), std::ptr::null_mut());
        self.check((self.load_agent_code_object)(executable, agent, reader, options, loaded))?;
        self.check((self.executable_freeze)(executable, options))
    }
}

/// Adds a handle to a vector of them, which `data` is.
extern "C" fn add_handle(handle: u64, data: *mut c_void) -> Status {
    // SAFETY: `data` is the vector of the caller, which nothing else uses during the call.
    unsafe { &mut *data.cast::<Vec<u64>>() }.push(handle);
    SUCCESS
}

/// A symbol of a loaded code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
    /// The address of a variable, the descriptor's of a kernel.
    pub(crate) address: u64,
}
