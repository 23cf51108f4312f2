//! The dispatch packet.

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
