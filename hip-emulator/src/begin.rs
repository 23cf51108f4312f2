//! When operations begin and end: on the modelled clock, and after which dispatches.

use std::sync::Arc;

use wavetap::emulator::{DispatchNumber, DispatchOrder};

use crate::check::RawCall;

/// A time on the modelled clock; 0 where no time is modelled.
pub(crate) type Cycle = u64;

/// When something has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct End {
    /// The time.
    pub(crate) cycle: Cycle,
    /// What has then ended for certain: dispatches, and accesses of calls; nothing where races are not looked for.
    pub(crate) done: Arc<DispatchOrder>,
}

impl End {
    /// When this and another have ended.
    #[must_use]
    pub(crate) fn and(mut self, other: &End) -> End {
        self.cycle = self.cycle.max(other.cycle);
        if Arc::ptr_eq(&self.done, &other.done) || self.done.has_all(&other.done) {
            return self;
        }
        if other.done.has_all(&self.done) {
            self.done = Arc::clone(&other.done);
        } else {
            Arc::make_mut(&mut self.done).join(&other.done);
        }
        self
    }

    /// When this and a dispatch have ended.
    #[must_use]
    pub(crate) fn with(mut self, dispatch: DispatchNumber) -> End {
        if dispatch.number > 0 {
            Arc::make_mut(&mut self.done).add(dispatch);
        }
        self
    }
}

/// From when on an operation may begin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Begin {
    /// When the program submitted it.
    pub(crate) submitted: Cycle,
    /// When all that it comes after has ended, as far as that is known.
    pub(crate) after: End,
    /// The call that submitted it, where races or unwritten bytes are looked for and it is no kernel.
    pub(crate) call: Option<Arc<RawCall>>,
}

impl Begin {
    /// When it may begin.
    pub(crate) fn time(&self) -> Cycle {
        self.submitted.max(self.after.cycle)
    }

    /// When it ends if it takes no time.
    pub(crate) fn end(&self) -> End {
        self.end_at(self.time())
    }

    /// When it ends if that is at this time.
    pub(crate) fn end_at(&self, cycle: Cycle) -> End {
        End { cycle, done: Arc::clone(&self.after.done) }
    }

    /// The same after something else as well.
    #[must_use]
    pub(crate) fn and_after(mut self, end: &End) -> Begin {
        self.after = self.after.and(end);
        self
    }
}
