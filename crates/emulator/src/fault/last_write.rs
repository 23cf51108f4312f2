//! What has written a byte of memory.

use crate::address::ObjectId;

/// The last write of a byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastWrite {
    /// Name of the instruction.
    pub instruction: &'static str,
    /// Its code address (virtual, in the object).
    pub address: u64,
    /// The object.
    pub object: Option<ObjectId>,
    /// Bytes that a lane of it writes.
    pub size: usize,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// The wave within the workgroup.
    pub wave: u32,
}
