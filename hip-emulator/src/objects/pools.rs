//! Memory pools.

use std::collections::HashMap;
use std::ffi::c_int;

use crate::handles::handle;
use crate::status::*;

/// A pool: what is in use is counted; it holds on to nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool {
    pub(crate) reuse: [c_int; 3],
    pub(crate) release_threshold: u64,
    pub(crate) used: u64,
    pub(crate) used_high: u64,
}

impl Default for Pool {
    fn default() -> Self {
        Pool { reuse: [1; 3], release_threshold: 0, used: 0, used_high: 0 }
    }
}

/// The memory pools.
#[derive(Default)]
pub(crate) struct Pools {
    pub(crate) by_handle: HashMap<usize, Pool>,
    pub(crate) default: Option<usize>,
    pub(crate) current: Option<usize>,
    /// Pool and size of allocations that came from one, by address.
    pub(crate) allocations: HashMap<u64, (usize, u64)>,
}

impl Pools {
    /// The pool that a device has from the start.
    pub(crate) fn default_pool(&mut self) -> usize {
        *self.default.get_or_insert_with(|| {
            let pool = handle();
            self.by_handle.insert(pool, Pool::default());
            pool
        })
    }

    pub(crate) fn current_pool(&mut self) -> usize {
        let default = self.default_pool();
        *self.current.get_or_insert(default)
    }

    pub(crate) fn pool(&mut self, pool: usize) -> Outcome<&mut Pool> {
        self.by_handle.get_mut(&pool).ok_or(INVALID_VALUE)
    }

    /// An allocation came from a pool.
    pub(crate) fn allocated(&mut self, pool: usize, address: u64, size: u64) -> Outcome {
        self.allocations.insert(address, (pool, size));
        let pool = self.pool(pool)?;
        pool.used += size;
        pool.used_high = pool.used_high.max(pool.used);
        Ok(())
    }

    /// Forgets that an allocation came from a pool.
    pub(crate) fn freed(&mut self, address: u64) {
        if let Some((pool, size)) = self.allocations.remove(&address)
            && let Some(pool) = self.by_handle.get_mut(&pool)
        {
            pool.used -= size;
        }
    }
}
