//! What all workers of a dispatch share: how far it is, and what they take from it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use super::plan::Plan;
use crate::launch::options::Options;
use crate::memory::Memory;
use crate::state::gws::Gws;

/// How far a dispatch is.
pub(crate) struct DispatchProgress {
    /// Workgroups that a worker has begun.
    begun: AtomicU64,
    /// Wave-instructions that no worker has taken yet.
    pub fuel: AtomicU64,
    /// A worker has found a fault.
    failed: AtomicBool,
    gws: Mutex<Gws>,
    /// When a wave first waited for a clock.
    waits_since: OnceLock<Instant>,
}

/// What all workers of a dispatch share.
pub(crate) struct Shared<'a> {
    pub plan: &'a Plan,
    pub options: &'a Options,
    pub memory: &'a Memory,
    pub progress: &'a DispatchProgress,
    pub interrupt: Option<&'a AtomicUsize>,
}

impl DispatchProgress {
    pub(crate) fn new(options: &Options) -> Self {
        DispatchProgress {
            begun: AtomicU64::new(0),
            fuel: AtomicU64::new(options.fuel),
            failed: AtomicBool::new(false),
            gws: Mutex::default(),
            waits_since: OnceLock::new(),
        }
    }
}

impl Shared<'_> {
    /// Global wave sync. What a thread that panicked left is whole: nothing in there can panic half-way.
    pub(crate) fn gws(&self) -> MutexGuard<'_, Gws> {
        self.progress.gws.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a wave first waited for a clock: now, if none has.
    pub(crate) fn waits_since(&self) -> Instant {
        *self.progress.waits_since.get_or_init(Instant::now)
    }

    /// The id of a workgroup that no worker has begun.
    pub(crate) fn next(&self) -> Option<[u32; 3]> {
        let [nx, ny, nz] = self.plan.groups.map(u64::from);
        let n = self.progress.begun.fetch_add(1, Ordering::Relaxed);
        (n < nx * ny * nz).then(|| [(n % nx) as u32, (n / nx % ny) as u32, (n / (nx * ny)) as u32])
    }

    /// How many are left.
    pub(crate) fn left(&self) -> u64 {
        self.plan
            .groups
            .map(u64::from)
            .iter()
            .product::<u64>()
            .saturating_sub(self.progress.begun.load(Ordering::Relaxed))
    }

    /// Takes up to this much fuel; the caller returns what it does not use.
    pub(crate) fn take_fuel(&self, wanted: u64) -> u64 {
        let mut taken = 0;
        let _ = self.progress.fuel.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            taken = left.min(wanted);
            Some(left - taken)
        });
        taken
    }

    /// Takes fuel back that was not used.
    pub(crate) fn give_fuel(&self, fuel: u64) {
        self.progress.fuel.fetch_add(fuel, Ordering::Relaxed);
    }

    /// Whether a worker has found a fault.
    pub(crate) fn failed(&self) -> bool {
        self.progress.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn fail(&self) {
        self.progress.failed.store(true, Ordering::Relaxed);
    }

    /// Whether others are to have their turn.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.is_some_and(|waiting| waiting.load(Ordering::Relaxed) != 0)
    }
}
