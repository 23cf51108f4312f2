//! Accesses of lanes, as handlers of memory instructions note them.

use super::How;

/// An access of a lane that a memory instruction has noted.
#[derive(Clone, Copy)]
pub(crate) struct Access {
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

impl Access {
    fn new(lane: usize, at: usize, size: usize, element: usize, how: How) -> Access {
        Access { lane: lane as u8, size: size as u8, element: element as u8, scratch: false, at: at as u32, how }
    }

    pub(crate) fn read(lane: usize, at: usize, size: usize, element: usize) -> Access {
        Access::new(lane, at, size, element, How::Read)
    }

    pub(crate) fn write(lane: usize, at: usize, bytes: &[u8], element: usize) -> Access {
        let value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte));
        Access::new(lane, at, bytes.len(), element, How::Write(value))
    }

    pub(crate) fn atomic(lane: usize, at: usize, size: usize, element: usize) -> Access {
        Access::new(lane, at, size, element, How::Atomic)
    }

    /// The same in scratch.
    pub(crate) fn of_scratch(self) -> Access {
        Access { scratch: true, ..self }
    }
}
