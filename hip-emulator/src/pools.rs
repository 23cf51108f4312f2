//! Memory pools, and allocation in stream order: memory is allocated at once and freed in its turn.

use std::ffi::{c_int, c_void};

use crate::devices::only;
use crate::entry_point::entry_points;
use crate::handles::handle;
use crate::lock::runtime;
use crate::objects::pools::Pool;
use crate::raw;
use crate::runtime::Runtime;
use crate::status::*;
use crate::stream_op::StreamOp;
use crate::submit::submit;

/// `hipMemPoolAttr`: three switches that are `int`, five sizes that are 64 bits.
const REUSE_FIRST: c_int = 1;
const REUSE_LAST: c_int = 3;
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED_CURRENT: c_int = 5;
const RESERVED_HIGH: c_int = 6;
const USED_CURRENT: c_int = 7;
const USED_HIGH: c_int = 8;

/// `hipMemAccessFlagsProtReadWrite`.
const READ_WRITE: c_int = 3;

/// `hipMemLocationTypeDevice`.
const ON_A_DEVICE: c_int = 1;

/// `hipMemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Location {
    kind: c_int,
    id: c_int,
}

/// `hipMemPoolProps` without its reserved end.
#[repr(C)]
#[derive(Clone, Copy)]
struct Properties {
    allocation: c_int,
    handles: c_int,
    location: Location,
}

/// `hipMemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Access {
    location: Location,
    flags: c_int,
}

impl Runtime {
    /// Allocates from a pool.
    fn allocate_from(&mut self, pool: usize, size: u64) -> Outcome<u64> {
        self.pools.pool(pool)?;
        let address = self.allocate(size)?;
        self.pools.allocated(pool, address, size)?;
        Ok(address)
    }
}

/// Allocates in stream order. What is captured is allocated now and has its address for as long as the graph lives.
fn allocate(out: *mut u64, size: usize, pool: Option<usize>, stream: *mut c_void) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    let mut locked = runtime();
    if size == 0 {
        locked.streams.stream(stream)?;
        return raw::store(out, 0);
    }
    let captured = locked.streams.stream(stream)?.captured.is_some();
    let address = if captured {
        locked.allocate(size as u64)?
    } else {
        let pool = pool.unwrap_or_else(|| locked.pools.current_pool());
        locked.allocate_from(pool, size as u64)?
    };
    drop(locked);
    if captured {
        submit(stream, StreamOp::Allocate { address, size: size as u64 })?;
    }
    raw::store(out, address)
}

fn attribute_of(pool: &Pool, attribute: c_int) -> Outcome<u64> {
    Ok(match attribute {
        REUSE_FIRST..=REUSE_LAST => pool.reuse[(attribute - REUSE_FIRST) as usize] as u64,
        RELEASE_THRESHOLD => pool.release_threshold,
        RESERVED_CURRENT | USED_CURRENT => pool.used,
        RESERVED_HIGH | USED_HIGH => pool.used_high,
        _ => return Err(INVALID_VALUE),
    })
}

entry_points! {
    /// Allocates device memory in stream order.
    fn hipMallocAsync(out: *mut u64, size: usize, stream: *mut c_void) {
        allocate(out, size, None, stream)
    }

    /// Allocates device memory from a pool in stream order.
    fn hipMallocFromPoolAsync(out: *mut u64, size: usize, pool: usize, stream: *mut c_void) {
        runtime().pools.pool(pool)?;
        allocate(out, size, Some(pool), stream)
    }

    /// Frees device memory in stream order.
    fn hipFreeAsync(address: u64, stream: *mut c_void) {
        let mut locked = runtime();
        if address == 0 {
            return Err(INVALID_VALUE);
        }
        if locked.streams.stream(stream)?.captured.is_some() {
            drop(locked);
            return submit(stream, StreamOp::Free(address));
        }
        if locked.device()?.allocation_of(address).is_none_or(|allocation| allocation.address != address) {
            return Err(INVALID_VALUE);
        }
        let of_a_graph = locked.graph_memory.frees(address)?;
        drop(locked);
        submit(stream, if of_a_graph { StreamOp::Empty } else { StreamOp::Release(address) })
    }

    /// The pool that a device has from the start.
    fn hipDeviceGetDefaultMemPool(out: *mut usize, device: c_int) {
        only(device)?;
        let pool = runtime().pools.default_pool();
        raw::store(out, pool)
    }

    /// The pool that allocations in stream order come from.
    fn hipDeviceGetMemPool(out: *mut usize, device: c_int) {
        only(device)?;
        let pool = runtime().pools.current_pool();
        raw::store(out, pool)
    }

    /// Sets the pool that allocations in stream order come from.
    fn hipDeviceSetMemPool(device: c_int, pool: usize) {
        only(device)?;
        let mut runtime = runtime();
        runtime.pools.pool(pool)?;
        runtime.pools.current = Some(pool);
        Ok(())
    }

    /// Creates a pool.
    fn hipMemPoolCreate(out: *mut usize, properties: *const c_void) {
        let of = raw::load(properties.cast::<Properties>())?;
        // Pinned memory, which is what device memory counts as; shared with no other process.
        if of.allocation != 1 || of.handles != 0 || of.location.kind != ON_A_DEVICE {
            return Err(INVALID_VALUE);
        }
        only(of.location.id)?;
        let pool = handle();
        runtime().pools.by_handle.insert(pool, Pool::default());
        raw::store(out, pool)
    }

    /// Ends a pool; what came from it stays until it is freed.
    fn hipMemPoolDestroy(pool: usize) {
        let mut runtime = runtime();
        if Some(pool) == runtime.pools.default {
            return Err(INVALID_VALUE);
        }
        runtime.pools.by_handle.remove(&pool).ok_or(INVALID_VALUE)?;
        if runtime.pools.current == Some(pool) {
            runtime.pools.current = None;
        }
        Ok(())
    }

    /// Frees the unused memory that a pool holds: none.
    fn hipMemPoolTrimTo(pool: usize, _least: usize) {
        runtime().pools.pool(pool).map(|_| ())
    }

    /// A property of a pool.
    fn hipMemPoolGetAttribute(pool: usize, attribute: c_int, out: *mut c_void) {
        let value = attribute_of(runtime().pools.pool(pool)?, attribute)?;
        match attribute {
            ..=REUSE_LAST => raw::store(out.cast::<c_int>(), value as c_int),
            _ => raw::store(out.cast::<u64>(), value),
        }
    }

    /// Sets a property of a pool; high-water marks can only be set back to 0.
    fn hipMemPoolSetAttribute(pool: usize, attribute: c_int, value: *const c_void) {
        let mut runtime = runtime();
        let pool = runtime.pools.pool(pool)?;
        match attribute {
            REUSE_FIRST..=REUSE_LAST => {
                pool.reuse[(attribute - REUSE_FIRST) as usize] = raw::load(value.cast::<c_int>())?;
            }
            RELEASE_THRESHOLD => pool.release_threshold = raw::load(value.cast::<u64>())?,
            RESERVED_HIGH | USED_HIGH if raw::load(value.cast::<u64>())? == 0 => pool.used_high = pool.used,
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    /// Sets which devices may use a pool: the only one may, and it cannot be kept out.
    fn hipMemPoolSetAccess(pool: usize, list: *const c_void, count: usize) {
        runtime().pools.pool(pool)?;
        for access in raw::array(list.cast::<Access>(), count)? {
            only(access.location.id)?;
            if access.location.kind != ON_A_DEVICE || access.flags != READ_WRITE {
                return Err(INVALID_VALUE);
            }
        }
        Ok(())
    }

    /// Whether a device may use a pool: the only one may.
    fn hipMemPoolGetAccess(flags: *mut c_int, pool: usize, location: *const c_void) {
        runtime().pools.pool(pool)?;
        let location = raw::load(location.cast::<Location>())?;
        only(location.id)?;
        raw::store(flags, if location.kind == ON_A_DEVICE { READ_WRITE } else { return Err(INVALID_VALUE) })
    }
}
