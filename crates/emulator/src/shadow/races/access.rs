//! Accesses of lanes, as handlers of memory instructions note them.

use super::How;

/// An access of a lane that a memory instruction has noted.
#[derive(Clone, Copy)]
pub(crate) struct LaneAccess {
    pub lane: u8,
    /// Bytes.
    pub size: u8,
    /// Which element of an instruction that has two.
    pub element: u8,
    /// The lane's private memory rather than LDS.
    pub scratch: bool,
    /// First byte.
    pub at: u32,
    pub how: How,
}

impl LaneAccess {
    fn new(lane: usize, at: usize, size: usize, element: usize, how: How) -> LaneAccess {
        LaneAccess { lane: lane as u8, size: size as u8, element: element as u8, scratch: false, at: at as u32, how }
    }

    pub(crate) fn read(lane: usize, at: usize, size: usize, element: usize) -> LaneAccess {
        LaneAccess::new(lane, at, size, element, How::Read)
    }

    pub(crate) fn write(lane: usize, at: usize, bytes: &[u8], element: usize) -> LaneAccess {
        let value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte));
        LaneAccess::new(lane, at, bytes.len(), element, How::Write(value))
    }

    pub(crate) fn atomic(lane: usize, at: usize, size: usize, element: usize) -> LaneAccess {
        LaneAccess::new(lane, at, size, element, How::Atomic)
    }

    /// The same in scratch.
    pub(crate) fn of_scratch(self) -> LaneAccess {
        LaneAccess { scratch: true, ..self }
    }
}
