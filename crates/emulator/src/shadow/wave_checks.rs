//! What strict mode keeps of a wave.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::event_hazard::Events;
use super::init_shadow::InitShadow;
use crate::fault::stop::Stop;
use crate::shadow::global::note::GlobalNotes;
use crate::shadow::polls::Poll;
use crate::shadow::races::access::LaneAccess;
use crate::shadow::races::lds_row::LdsRow;

/// What strict mode keeps of a wave.
pub(crate) struct WaveChecks {
    pub init_shadow: InitShadow,
    /// Accesses of the instruction that is running.
    pub accesses: Vec<LaneAccess>,
    /// Those of one that takes the fast path, instead.
    pub row: Option<Box<LdsRow>>,
    /// Accesses of global memory, where races there are checked.
    pub global: GlobalNotes,
    /// All of its lanes went to scratch, and their undefined bits have been followed.
    pub in_scratch: bool,
    /// Operations in LDS that may still be in flight: LDS instructions that write, copies that write, and copies that
    /// read.
    pub in_lds: [VecDeque<u32>; 3],
    /// The turn of the wave ends after this instruction.
    pub pauses: bool,
    /// The code address of the instruction that is running.
    pub at: u64,
    /// The lanes that have a work-item.
    pub present: u64,
    /// What was found at it and does not stop the wave.
    pub found: RefCell<Vec<Stop>>,
    pub events: Events,
    /// What it waits for, if it does.
    pub poll: Poll,
}

impl WaveChecks {
    pub(crate) fn new(strict: bool) -> WaveChecks {
        WaveChecks {
            init_shadow: InitShadow::new(strict),
            accesses: Vec::new(),
            row: None,
            global: GlobalNotes::default(),
            in_scratch: false,
            in_lds: Default::default(),
            pauses: false,
            at: 0,
            present: 0,
            found: RefCell::default(),
            events: Events::default(),
            poll: Poll::default(),
        }
    }
}

impl WaveChecks {
    /// Whether anything was found.
    #[inline]
    pub(crate) fn has_found(&mut self) -> bool {
        !self.found.get_mut().is_empty()
    }

    /// [`WaveChecks::has_found`] while the instruction runs.
    pub(crate) fn has_found_now(&self) -> bool {
        !self.found.borrow().is_empty()
    }

    /// What was found; nothing is left.
    pub(crate) fn take_found(&mut self) -> Vec<Stop> {
        std::mem::take(self.found.get_mut())
    }
}
