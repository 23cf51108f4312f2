//! What the program allocates, and what else kernels may access: memory of the host that is made accessible, signals
//! and queues.

use std::ffi::c_void;

use super::{api, inside};
use crate::api::{Api, ERROR, Place, QueueAddress, SUCCESS, Status, place, virtual_memory};
use crate::raw;
use crate::tool::Tool;

/// Size of a signal, and the offset of the address that is written to when it changes (`amd_signal_t`).
const SIGNAL: u64 = 64;
const MAILBOX: usize = 16;
/// Size of what is in a mailbox.
const MAIL: u64 = 8;
/// Size of a queue's description (`amd_queue_t`), and offsets of its packets' address and of their number.
const QUEUE: u64 = 256;
const PACKETS: usize = 8;
const PACKET_COUNT: usize = 24;
/// Size of a packet.
const PACKET: u64 = crate::packets::SIZE as u64;

/// Where a hook is, its address, and what was there before.
pub(super) fn hooks(api: &Api) -> Vec<(Place, usize, usize)> {
    let mut hooks = vec![
        (place::pool_allocate, pool_allocate as *const () as usize, api.pool_allocate as usize),
        (place::pool_free, pool_free as *const () as usize, api.pool_free as usize),
        (place::memory_allocate, memory_allocate as *const () as usize, api.memory_allocate as usize),
        (place::memory_free, memory_free as *const () as usize, api.memory_free as usize),
        (place::memory_register, memory_register as *const () as usize, api.memory_register as usize),
        (place::memory_deregister, memory_deregister as *const () as usize, api.memory_deregister as usize),
        (place::core_signal_create, core_signal_create as *const () as usize, api.core_signal_create as usize),
        (place::signal_create, signal_create as *const () as usize, api.signal_create as usize),
        (place::signal_destroy, signal_destroy as *const () as usize, api.signal_destroy as usize),
        (place::memory_lock, memory_lock as *const () as usize, api.memory_lock as usize),
        (place::memory_unlock, memory_unlock as *const () as usize, api.memory_unlock as usize),
        (place::lock_to_pool, lock_to_pool as *const () as usize, api.lock_to_pool as usize),
        (place::interop_map, interop_map as *const () as usize, api.interop_map as usize),
        (place::interop_unmap, interop_unmap as *const () as usize, api.interop_unmap as usize),
        (place::ipc_attach, ipc_attach as *const () as usize, api.ipc_attach as usize),
        (place::ipc_detach, ipc_detach as *const () as usize, api.ipc_detach as usize),
        (place::svm_attributes_set, svm_attributes_set as *const () as usize, api.svm_attributes_set as usize),
    ];
    if let (Some(map), Some(unmap)) = (api.virtual_map, api.virtual_unmap) {
        hooks.push((virtual_memory::MAP, virtual_map as *const () as usize, map as usize));
        hooks.push((virtual_memory::UNMAP, virtual_unmap as *const () as usize, unmap as usize));
    }
    hooks
}

/// Tells the tool of an address that a call of the program has written, if it has.
fn written<T: Copy>(status: Status, address: *const T, tell: impl FnOnce(&Tool, T)) -> Status {
    if status == SUCCESS
        && let Some(value) = raw::load::<T>(address as usize)
    {
        inside(|tool| tell(tool, value));
    }
    status
}

extern "C" fn pool_allocate(pool: u64, size: usize, flags: u32, address: *mut usize) -> Status {
    let status = (api().pool_allocate)(pool, size, flags, address);
    written(status, address, |tool, address| tool.allocations.add(address as u64, size as u64))
}

extern "C" fn pool_free(address: usize) -> Status {
    inside(|tool| tool.allocations.remove(address as u64));
    (api().pool_free)(address)
}

extern "C" fn memory_allocate(region: u64, size: usize, address: *mut usize) -> Status {
    let status = (api().memory_allocate)(region, size, address);
    written(status, address, |tool, address| tool.allocations.add(address as u64, size as u64))
}

extern "C" fn memory_free(address: usize) -> Status {
    inside(|tool| tool.allocations.remove(address as u64));
    (api().memory_free)(address)
}

extern "C" fn memory_register(address: usize, size: usize) -> Status {
    let status = (api().memory_register)(address, size);
    if status == SUCCESS {
        inside(|tool| tool.allocations.add_other(address as u64, address as u64, size as u64));
    }
    status
}

extern "C" fn memory_deregister(address: usize, size: usize) -> Status {
    inside(|tool| tool.allocations.remove_other(address as u64));
    (api().memory_deregister)(address, size)
}

/// Adds a signal: kernels that wait for the host, or tell it something, access it and its mailbox.
fn add_signal(tool: &Tool, signal: u64) {
    tool.allocations.add_other(signal, signal, SIGNAL);
    if let Some(mailbox) = raw::load::<u64>(signal as usize + MAILBOX).filter(|mailbox| *mailbox != 0) {
        tool.allocations.add_other(signal, mailbox, MAIL);
    }
}

extern "C" fn core_signal_create(value: i64, count: u32, agents: *const u64, signal: *mut u64) -> Status {
    written((api().core_signal_create)(value, count, agents, signal), signal, add_signal)
}

extern "C" fn signal_create(value: i64, count: u32, agents: *const u64, attributes: u64, signal: *mut u64) -> Status {
    written((api().signal_create)(value, count, agents, attributes, signal), signal, add_signal)
}

extern "C" fn signal_destroy(signal: u64) -> Status {
    inside(|tool| tool.allocations.remove_others(signal));
    (api().signal_destroy)(signal)
}

extern "C" fn memory_lock(host: usize, size: usize, agents: *const u64, count: i32, address: *mut usize) -> Status {
    let status = (api().memory_lock)(host, size, agents, count, address);
    written(status, address, |tool, address| tool.allocations.add_other(host as u64, address as u64, size as u64))
}

extern "C" fn lock_to_pool(
    host: usize,
    size: usize,
    agents: *const u64,
    count: i32,
    pool: u64,
    flags: u32,
    address: *mut usize,
) -> Status {
    let status = (api().lock_to_pool)(host, size, agents, count, pool, flags, address);
    written(status, address, |tool, address| tool.allocations.add_other(host as u64, address as u64, size as u64))
}

extern "C" fn memory_unlock(host: usize) -> Status {
    inside(|tool| tool.allocations.remove_other(host as u64));
    (api().memory_unlock)(host)
}

extern "C" fn interop_map(
    count: u32,
    agents: *const u64,
    handle: i32,
    flags: u32,
    size: *mut usize,
    address: *mut usize,
    metadata_size: *mut usize,
    metadata: *mut usize,
) -> Status {
    let status = (api().interop_map)(count, agents, handle, flags, size, address, metadata_size, metadata);
    written(status, address, |tool, address| {
        let size = raw::load::<usize>(size as usize).unwrap_or(0);
        tool.allocations.add_other(address as u64, address as u64, size as u64);
    })
}

extern "C" fn interop_unmap(address: usize) -> Status {
    inside(|tool| tool.allocations.remove_other(address as u64));
    (api().interop_unmap)(address)
}

extern "C" fn ipc_attach(
    handle: *const c_void,
    size: usize,
    count: u32,
    agents: *const u64,
    address: *mut usize,
) -> Status {
    let status = (api().ipc_attach)(handle, size, count, agents, address);
    written(status, address, |tool, address| tool.allocations.add_other(address as u64, address as u64, size as u64))
}

extern "C" fn ipc_detach(address: usize) -> Status {
    inside(|tool| tool.allocations.remove_other(address as u64));
    (api().ipc_detach)(address)
}

/// Memory of the host that becomes managed. When it is freed, the runtime is not told.
extern "C" fn svm_attributes_set(address: usize, size: usize, attributes: *const c_void, count: usize) -> Status {
    let status = (api().svm_attributes_set)(address, size, attributes, count);
    if status == SUCCESS {
        inside(|tool| {
            tool.allocations.remove_others(address as u64);
            tool.allocations.add_other(address as u64, address as u64, size as u64);
        });
    }
    status
}

extern "C" fn virtual_map(address: usize, size: usize, offset: usize, handle: u64, flags: u64) -> Status {
    let Some(before) = api().virtual_map else { return ERROR };
    let status = before(address, size, offset, handle, flags);
    if status == SUCCESS {
        inside(|tool| tool.allocations.add_other(address as u64, address as u64, size as u64));
    }
    status
}

extern "C" fn virtual_unmap(address: usize, size: usize) -> Status {
    let Some(before) = api().virtual_unmap else { return ERROR };
    inside(|tool| tool.allocations.remove_others(address as u64));
    before(address, size)
}

/// Adds a queue's description and its packets, which kernels may read.
pub(super) fn add_queue(tool: &Tool, queue: QueueAddress) {
    tool.allocations.add_other(queue as u64, queue as u64, QUEUE);
    let packets = raw::load::<u64>(queue + PACKETS).filter(|address| *address != 0);
    let count = raw::load::<u32>(queue + PACKET_COUNT).unwrap_or(0);
    if let Some(packets) = packets {
        tool.allocations.add_other(queue as u64, packets, u64::from(count) * PACKET);
    }
}

pub(super) fn remove_queue(tool: &Tool, queue: QueueAddress) {
    tool.allocations.remove_others(queue as u64);
}
