//! Dispatches in flight: each is run a part at a time, so that several make progress together with each other and with
//! the host.
//!
//! Between its parts a dispatch holds on to nothing of the device but what it has allocated: memory may be allocated
//! and freed, objects loaded, other dispatches run. How it is cut into parts makes no difference to what it does.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustc_hash::FxHasher;

use crate::run::code::Code;
use crate::run::paused::PausedWorker;
use crate::run::plan::Plan;
use crate::run::shared::DispatchProgress;
use crate::run::worker::Workgroup;
use crate::shadow::global::dispatches::DispatchNumber;
use crate::state::wave::Status;
use crate::timing;

/// How much of a dispatch is run before others have their turn.
#[derive(Debug, Clone, Copy)]
pub struct Share<'i> {
    /// Wave-instructions that each of its threads executes, about.
    pub instructions: u64,
    /// Where this is not 0, a caller waits: the share ends as soon as it can.
    pub interrupt: Option<&'i AtomicUsize>,
}

impl Share<'_> {
    /// The whole dispatch.
    #[must_use]
    pub fn all() -> Self {
        Share { instructions: u64::MAX, interrupt: None }
    }
}

/// Another worker of a dispatch, on a thread of its own.
pub(crate) struct Helper {
    pub code: Code,
    /// None while it runs.
    pub paused: Option<PausedWorker>,
    pub done: bool,
}

/// How far a dispatch is in modelled time.
pub(crate) enum TimedStage {
    /// It begins with what the dispatch before has left, if there was one and no other dispatch has it.
    NotBegun(Option<Box<timing::KeptMemory>>),
    Paused(Box<timing::PausedModel>),
    /// What it leaves to the next one.
    Ended(Box<timing::KeptMemory>),
}

/// How a dispatch is run.
pub(crate) enum Stage {
    /// In modelled time.
    Timed(TimedStage),
    /// By one thread for so many more instructions, and then perhaps by others as well.
    Alone(u64),
    /// By one thread.
    Lead,
    /// By several threads; whether nothing is left for the first.
    Divided(bool),
}

/// A dispatch that has begun and not ended.
pub struct Flight {
    pub(crate) plan: Plan,
    pub(crate) progress: DispatchProgress,
    /// None while it runs, and when it has ended.
    pub(crate) lead: Option<PausedWorker>,
    pub(crate) stage: Stage,
    pub(crate) others: Vec<Helper>,
    /// Which objects the code of the others is of.
    pub(crate) objects: u32,
    pub(crate) fuel: u64,
}

impl Flight {
    /// Wave-instructions that it has executed so far.
    #[must_use]
    pub fn executed(&self) -> u64 {
        self.fuel.saturating_sub(self.progress.fuel.load(Ordering::Relaxed))
    }

    /// Wave-instructions that it may execute.
    #[must_use]
    pub fn fuel(&self) -> u64 {
        self.fuel
    }

    /// Its number among the dispatches and accesses of the host of its device, by which
    /// [`DispatchOrder`](crate::DispatchOrder) names it.
    #[must_use]
    pub fn number(&self) -> DispatchNumber {
        self.plan.number
    }

    /// Threads that run it.
    #[must_use]
    pub fn threads(&self) -> usize {
        1 + self.others.len()
    }

    /// Gives a digest of the state of each wave that is running: where it is, and what its registers hold. One that
    /// waits for a change of memory returns to states that it was in before.
    pub fn states(&self, mut each: impl FnMut(u64)) {
        if let Stage::Timed(TimedStage::Paused(model)) = &self.stage {
            digests(model.groups(), &mut each);
        }
        for paused in self.lead.iter().chain(self.others.iter().filter_map(|helper| helper.paused.as_ref())) {
            digests(paused.groups(), &mut each);
        }
    }
}

/// Digests of the waves of workgroups.
fn digests<'g>(groups: impl Iterator<Item = &'g Workgroup>, each: &mut impl FnMut(u64)) {
    for wave in groups.flat_map(|group| &group.waves).filter(|wave| wave.status != Status::Ended) {
        let mut hasher = FxHasher::default();
        (wave.group_id, wave.index, wave.pc, wave.scc, wave.status == Status::Running, wave.sgpr).hash(&mut hasher);
        for register in wave.vgpr.iter().chain(wave.agpr.iter()) {
            hasher.write_u64(
                register
                    .iter()
                    .fold(0, |sum, lane| (sum ^ u64::from(*lane)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)),
            );
        }
        each(hasher.finish());
    }
}
