//! What the runtime asks of the driver: numbers and meanings are those of `linux/kfd_ioctl.h`.

use std::sync::atomic::Ordering;

use crate::driver::Driver;
use crate::engine::QueueKind;
use crate::events::{Outcome, SIGNAL, Waited};
use crate::gpu::{Gpu, Gpus};
use crate::layout::{
    LAST_EVENT_AGE, RUNTIME_MODE_MASK, Record, alloc, aperture, apertures, available, clocks, create_event,
    create_queue, destroy_queue, event, event_data, exception_failure, free, map, memory_exception, tile_config,
    version, wait_events, xnack,
};
use crate::{clock, raw};

/// Numbers of requests.
mod number {
    pub(super) const GET_VERSION: u8 = 0x01;
    pub(super) const CREATE_QUEUE: u8 = 0x02;
    pub(super) const DESTROY_QUEUE: u8 = 0x03;
    pub(super) const SET_MEMORY_POLICY: u8 = 0x04;
    pub(super) const GET_CLOCK_COUNTERS: u8 = 0x05;
    pub(super) const UPDATE_QUEUE: u8 = 0x07;
    pub(super) const CREATE_EVENT: u8 = 0x08;
    pub(super) const DESTROY_EVENT: u8 = 0x09;
    pub(super) const SET_EVENT: u8 = 0x0a;
    pub(super) const RESET_EVENT: u8 = 0x0b;
    pub(super) const WAIT_EVENTS: u8 = 0x0c;
    pub(super) const SET_SCRATCH_BACKING_VA: u8 = 0x11;
    pub(super) const GET_TILE_CONFIG: u8 = 0x12;
    pub(super) const SET_TRAP_HANDLER: u8 = 0x13;
    pub(super) const GET_PROCESS_APERTURES_NEW: u8 = 0x14;
    pub(super) const ACQUIRE_VM: u8 = 0x15;
    pub(super) const ALLOC_MEMORY_OF_GPU: u8 = 0x16;
    pub(super) const FREE_MEMORY_OF_GPU: u8 = 0x17;
    pub(super) const MAP_MEMORY_TO_GPU: u8 = 0x18;
    pub(super) const UNMAP_MEMORY_FROM_GPU: u8 = 0x19;
    pub(super) const SET_CU_MASK: u8 = 0x1a;
    pub(super) const ALLOC_QUEUE_GWS: u8 = 0x1e;
    pub(super) const SET_XNACK_MODE: u8 = 0x21;
    pub(super) const AVAILABLE_MEMORY: u8 = 0x23;
    pub(super) const RUNTIME_ENABLE: u8 = 0x25;
}

/// The version of the interface: 1.14.
const VERSION: [u32; 2] = [1, 14];

/// Flat addresses of LDS and of scratch have the emulator's high halves; addresses on the device are those of the
/// program.
const LDS: [u64; 2] = [0x0001_0000_0000_0000, 0x0001_0000_ffff_ffff];
const SCRATCH: [u64; 2] = [0x0002_0000_0000_0000, 0x0002_0000_ffff_ffff];
const MEMORY_RANGE: [u64; 2] = [0x4000, 0x7fff_ffff_ffff];

/// `KFD_IOC_QUEUE_TYPE_COMPUTE`, `…_COMPUTE_AQL` and those of SDMA, the last of which newer headers have.
const QUEUE_PM4: u32 = 0;
const QUEUE_AQL: u32 = 2;
const QUEUES_SDMA: [u32; 3] = [1, 3, 4];

/// Bytes of elements of arrays that requests point to.
const APERTURE_SIZE: usize = 56;
const EVENT_DATA_SIZE: usize = 48;

/// Most elements of the array of a wait, against nonsense.
const MOST_EVENTS: u32 = 1 << 16;

/// `GB_ADDR_CONFIG` of gfx9 processors; only images depend on it.
const ADDRESS_CONFIG: u32 = 0x1000_0444;

/// The signal page's place: not 0, so that the runtime has a slot for each event.
const EVENT_PAGE: u64 = 1 << 62;

/// `KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK`: the runtime begins, not ends, to be enabled.
const RUNTIME_ENABLED: u32 = 1;

/// Whether waiting was enough, as the kernel says it.
const COMPLETE: u32 = 0;
const TIMEOUT: u32 = 1;

/// Answers a request, or gives an error number.
pub(crate) fn answer(driver: &Driver, request: u8, record: &mut Record) -> Result<(), i32> {
    match request {
        number::GET_VERSION => {
            record.set_word(version::major_version, VERSION[0]);
            record.set_word(version::minor_version, VERSION[1]);
            Ok(())
        }
        number::CREATE_QUEUE => create(driver, record),
        number::DESTROY_QUEUE => driver.engine().destroy_queue(record.word(destroy_queue::queue_id)),
        number::GET_CLOCK_COUNTERS => {
            record.set_double(clocks::gpu_clock_counter, clock::gpu());
            record.set_double(clocks::cpu_clock_counter, clock::cpu());
            record.set_double(clocks::system_clock_counter, clock::system());
            record.set_double(clocks::system_clock_freq, 1_000_000_000);
            Ok(())
        }
        number::CREATE_EVENT => {
            let page = record.double(create_event::event_page_offset);
            if let Some(address) = driver.allocations().address(page) {
                driver.events.set_slots(address);
            }
            let kind = record.word(create_event::event_type);
            let id = driver.events.create(kind, record.word(create_event::auto_reset) != 0)?;
            record.set_word(create_event::event_id, id);
            record.set_word(create_event::event_trigger_data, id);
            if kind == SIGNAL {
                record.set_word(create_event::event_slot_index, id);
                record.set_double(create_event::event_page_offset, EVENT_PAGE);
            }
            Ok(())
        }
        number::DESTROY_EVENT => driver.events.destroy(record.word(event::event_id)),
        number::SET_EVENT => driver.events.set(record.word(event::event_id)),
        number::RESET_EVENT => driver.events.reset(record.word(event::event_id)),
        number::WAIT_EVENTS => wait(driver, record),
        number::GET_TILE_CONFIG => {
            record.set_word(tile_config::gb_addr_config, ADDRESS_CONFIG);
            record.set_word(tile_config::num_banks, 0);
            record.set_word(tile_config::num_ranks, 0);
            record.set_word(tile_config::num_tile_configs, 0);
            record.set_word(tile_config::num_macro_tile_configs, 0);
            Ok(())
        }
        number::GET_PROCESS_APERTURES_NEW => describe_apertures(driver, record),
        number::ALLOC_MEMORY_OF_GPU => {
            let (address, size) = (record.double(alloc::va_addr), record.double(alloc::size));
            let (flags, place) = (record.word(alloc::flags), record.double(alloc::mmap_offset));
            let gpu = gpu(driver, record.word(alloc::gpu_id))?;
            let (handle, place) = driver.allocations().allocate(gpu, address, size, flags, place)?;
            record.set_double(alloc::handle, handle);
            record.set_double(alloc::mmap_offset, place);
            Ok(())
        }
        number::FREE_MEMORY_OF_GPU => {
            let (address, gpus) = driver.allocations().free(record.double(free::handle))?;
            driver.engine().unmap(address, gpus)
        }
        number::MAP_MEMORY_TO_GPU => {
            let gpus = named(driver, record)?;
            let mapping = driver.allocations().map(record.double(map::handle), gpus)?;
            driver.engine().map(&mapping)?;
            record.set_word(map::n_success, record.word(map::n_devices));
            Ok(())
        }
        number::UNMAP_MEMORY_FROM_GPU => {
            let gpus = named(driver, record)?;
            let (address, gpus) = driver.allocations().unmap(record.double(map::handle), gpus)?;
            driver.engine().unmap(address, gpus)?;
            record.set_word(map::n_success, record.word(map::n_devices));
            Ok(())
        }
        // Page faults are not replayed.
        number::SET_XNACK_MODE => match record.word(xnack::xnack_enabled) as i32 {
            0 => Ok(()),
            asked if asked < 0 => {
                record.set_word(xnack::xnack_enabled, 0);
                Ok(())
            }
            _ => Err(libc::EPERM),
        },
        number::AVAILABLE_MEMORY => {
            let gpu = gpu(driver, record.word(available::gpu_id))?;
            record.set_double(available::available, driver.allocations().available(gpu));
            Ok(())
        }
        number::RUNTIME_ENABLE => {
            let enable = record.word(RUNTIME_MODE_MASK) & RUNTIME_ENABLED != 0;
            let was = driver.runtime_enabled.swap(enable, Ordering::AcqRel);
            // There is no debugger that would be told.
            if enable && was { Err(libc::EBUSY) } else { Ok(()) }
        }
        // Nothing of the emulated device depends on these.
        number::SET_MEMORY_POLICY
        | number::UPDATE_QUEUE
        | number::SET_SCRATCH_BACKING_VA
        | number::SET_TRAP_HANDLER
        | number::ACQUIRE_VM
        | number::SET_CU_MASK
        | number::ALLOC_QUEUE_GWS => Ok(()),
        _ => Err(libc::ENOTTY),
    }
}

/// The GPU that a request names by its number.
fn gpu(driver: &Driver, id: u32) -> Result<Gpu, i32> {
    Gpu::by_id(id, driver.gpus).ok_or(libc::EINVAL)
}

/// The GPUs that memory is to be mapped for, or not any more.
fn named(driver: &Driver, record: &Record) -> Result<Gpus, i32> {
    let count = record.word(map::n_devices) as usize;
    if count == 0 || count > driver.gpus as usize {
        return Err(libc::EINVAL);
    }
    let ids = raw::bytes(record.double(map::device_ids_array_ptr), count * size_of::<u32>()).ok_or(libc::EFAULT)?;
    ids.chunks_exact(size_of::<u32>()).map(|id| gpu(driver, id.try_into().map_or(0, u32::from_ne_bytes))).collect()
}

fn create(driver: &Driver, record: &mut Record) -> Result<(), i32> {
    let kind = match record.word(create_queue::queue_type) {
        QUEUE_PM4 => QueueKind::Pm4,
        QUEUE_AQL => QueueKind::Aql,
        sdma if QUEUES_SDMA.contains(&sdma) => QueueKind::Sdma,
        _ => return Err(libc::EINVAL),
    };
    let gpu = gpu(driver, record.word(create_queue::gpu_id))?;
    let id = driver.engine().create_queue(
        gpu,
        kind,
        (record.double(create_queue::ring_base_address), record.word(create_queue::ring_size).into()),
        record.double(create_queue::write_pointer_address),
        record.double(create_queue::read_pointer_address),
    )?;
    record.set_word(create_queue::queue_id, id);
    record.set_double(create_queue::doorbell_offset, 8 * u64::from(id));
    Ok(())
}

fn describe_apertures(driver: &Driver, record: &mut Record) -> Result<(), i32> {
    let room = record.word(apertures::num_of_nodes).min(driver.gpus);
    let place = record.double(apertures::kfd_process_device_apertures_ptr);
    record.set_word(apertures::num_of_nodes, driver.gpus);
    if room == 0 {
        return Ok(());
    }
    let bytes = raw::bytes(place, room as usize * APERTURE_SIZE).ok_or(libc::EFAULT)?;
    for (bytes, gpu) in bytes.chunks_exact_mut(APERTURE_SIZE).zip(Gpu::all(room)) {
        let mut element = Record(bytes);
        element.set_double(aperture::lds_base, LDS[0]);
        element.set_double(aperture::lds_limit, LDS[1]);
        element.set_double(aperture::scratch_base, SCRATCH[0]);
        element.set_double(aperture::scratch_limit, SCRATCH[1]);
        element.set_double(aperture::gpuvm_base, MEMORY_RANGE[0]);
        element.set_double(aperture::gpuvm_limit, MEMORY_RANGE[1]);
        element.set_word(aperture::gpu_id, gpu.id());
        element.set_word(aperture::pad, 0);
    }
    Ok(())
}

fn wait(driver: &Driver, record: &mut Record) -> Result<(), i32> {
    let count = Some(record.word(wait_events::num_events)).filter(|count| *count <= MOST_EVENTS).ok_or(libc::EINVAL)?;
    let place = record.double(wait_events::events_ptr);
    let bytes: &mut [u8] = match count {
        0 => &mut [],
        _ => raw::bytes(place, count as usize * EVENT_DATA_SIZE).ok_or(libc::EFAULT)?,
    };
    let mut waited = Vec::with_capacity(count as usize);
    for element in bytes.chunks_exact_mut(EVENT_DATA_SIZE) {
        let element = Record(element);
        let known_age = element.double(LAST_EVENT_AGE);
        waited.push(Waited { event: element.word(event_data::event_id), known_age, outcome: None });
    }
    let enough =
        driver.events.wait(&mut waited, record.word(wait_events::wait_for_all) != 0, record.word(wait_events::timeout));
    for (element, one) in bytes.chunks_exact_mut(EVENT_DATA_SIZE).zip(waited) {
        let mut element = Record(element);
        match one.outcome {
            Some(Outcome::Signal(age)) => element.set_double(LAST_EVENT_AGE, age),
            Some(Outcome::Memory(address, gpu_id)) => {
                element.set_word(exception_failure::NotPresent, 1);
                element.set_word(exception_failure::ReadOnly, 0);
                element.set_word(exception_failure::NoExecute, 0);
                element.set_word(exception_failure::imprecise, 0);
                element.set_double(memory_exception::va, address);
                element.set_word(memory_exception::gpu_id, gpu_id);
                element.set_word(memory_exception::ErrorType, 0);
            }
            None => {}
        }
    }
    record.set_word(wait_events::wait_result, if enough { COMPLETE } else { TIMEOUT });
    Ok(())
}
