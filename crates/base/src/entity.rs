//! Typed indices and the places of a program.

/// Index of an instruction within one kernel or function, in address order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstId(pub u32);

/// Index of a basic block within one kernel or function, in address order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// Index of a counted site within one kernel, in address order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

impl InstId {
    /// The index as a `usize`.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl BlockId {
    /// The index as a `usize`.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// On which side of an instruction a point lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Executed before the instruction, on every path that reaches it (branches to it included).
    Before,
    /// Executed after the instruction when it falls through to the next one.
    After,
}

/// A place in a kernel: before or after one original instruction. Ordered by execution in a straight line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramPoint {
    /// The original instruction.
    pub inst: InstId,
    /// The side of it.
    pub side: Side,
}

impl ProgramPoint {
    /// The instruction that the point is after, in memory; none before the first one.
    #[must_use]
    pub fn previous(self) -> Option<InstId> {
        match self.side {
            Side::After => Some(self.inst),
            Side::Before => self.inst.0.checked_sub(1).map(InstId),
        }
    }
}
