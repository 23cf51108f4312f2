//! The dispatch packet.

use super::registers::RegisterDispatch;

/// What a kernel dispatch packet says (HSA runtime specification, "kernel dispatch packet").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// Device address of the kernel descriptor.
    pub kernel_object: u64,
    /// Work-items of the grid in x, y, z; each at least 1.
    pub grid: [u32; 3],
    /// Work-items of a workgroup in x, y, z; each at least 1, the last workgroups of a row may be partial.
    pub workgroup: [u16; 3],
    /// Bytes of scratch of each lane.
    pub private_segment_size: u32,
    /// Bytes of LDS of each workgroup, static and dynamic together.
    pub group_segment_size: u32,
    /// Device address of the kernel arguments.
    pub kernarg_address: u64,
    /// The ordinal that a kernel gets as dispatch id.
    pub dispatch_id: u64,
}

/// Where a dispatch packet lies in device memory, and the queue that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedPacket {
    /// Device address of the packet's 64 bytes.
    pub packet: u64,
    /// Device address of the queue (`amd_queue_t`), which holds the high halves of the flat apertures.
    pub queue: u64,
    /// The ordinal that a kernel gets as dispatch id.
    pub dispatch_id: u64,
}

/// Where a dispatch comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin<'r> {
    /// The caller, without a packet in memory.
    Caller,
    /// A packet in a queue.
    Queue(QueuedPacket),
    /// Registers, without a packet.
    Registers(&'r RegisterDispatch),
}

impl Dispatch {
    /// What the bytes of a packet say.
    pub(crate) fn of_packet(bytes: &[u8; 64], dispatch_id: u64) -> Self {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let double = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Dispatch {
            kernel_object: double(32),
            grid: [word(12), word(16), word(20)],
            workgroup: [half(4), half(6), half(8)],
            private_segment_size: word(24),
            group_segment_size: word(28),
            kernarg_address: double(40),
            dispatch_id,
        }
    }
}
