//! Times on the modelled clock.

/// A time on the modelled clock; 0 where no time is modelled.
pub(crate) type Cycle = u64;

/// From when on an operation may begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Begin {
    /// When the program submitted it.
    pub(crate) submitted: Cycle,
    /// When all that it comes after has ended, as far as that is known.
    pub(crate) after: Cycle,
}

impl Begin {
    /// When it may begin.
    pub(crate) fn time(self) -> Cycle {
        self.submitted.max(self.after)
    }

    /// The same after something else as well.
    pub(crate) fn and_after(self, end: Cycle) -> Begin {
        Begin { after: self.after.max(end), ..self }
    }
}
