//! A dispatch without a packet: what a command processor has written to the registers of the hardware.

/// What the registers of the compute pipeline say when a dispatch begins (`COMPUTE_*` of AMD's register headers). There
/// is no kernel descriptor and no dispatch packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterDispatch {
    /// Device address of the kernel's first instruction (`COMPUTE_PGM_LO` and `_HI`, shifted).
    pub entry: u64,
    /// `COMPUTE_PGM_RSRC1` to `3`.
    pub rsrc: [u32; 3],
    /// `COMPUTE_USER_DATA_0` and the following ones: the first scalar registers.
    pub user_data: Vec<u32>,
    /// Work-items of a workgroup in x, y, z.
    pub workgroup: [u16; 3],
    /// Workgroups in x, y, z, all of them whole.
    pub groups: [u32; 3],
    /// Bytes of LDS of each workgroup.
    pub lds_bytes: u32,
    /// Bytes of scratch of each wave; the device has the memory itself.
    pub wave_scratch_bytes: u32,
    /// Waves have 32 lanes.
    pub wave32: bool,
}
