//! Which versions of AMD's hardware blocks a processor has, as the kernel reads them from the GPU (`ip_discovery`).
//!
//! Processors before gfx940 on the line of gfx9 have no such table: the kernel's driver knows their blocks itself and
//! shows no files. Versions of the graphics block are those by which the kernel's driver (`kfd_device.c`) chooses the
//! processor; those of the other two are what it accepts for these (`amdgpu_discovery.c`) and what users' kernel logs
//! and dumps of these files show.

use wavetap_amdgpu::Target;

/// Numbers of blocks (`soc15_hw_ip.h`).
const GC: u32 = 11;
const SDMA0: u32 = 42;
const NBIF: u32 = 108;

/// A block of the hardware.
pub(crate) struct Block {
    pub(crate) hardware_id: u32,
    pub(crate) name: &'static str,
    /// Major, minor, revision.
    pub(crate) version: [u32; 3],
}

/// Versions of the graphics block, the copy engines, and the bus interface.
type Versions = [[u32; 3]; 3];

const PROCESSORS: [(&str, Versions); 8] = [
    ("gfx942", [[9, 4, 3], [4, 4, 2], [7, 9, 0]]),
    ("gfx950", [[9, 5, 0], [4, 4, 4], [7, 9, 1]]),
    ("gfx1010", [[10, 1, 10], [5, 0, 0], [2, 3, 0]]),
    ("gfx1030", [[10, 3, 0], [5, 2, 0], [3, 3, 0]]),
    ("gfx1100", [[11, 0, 0], [6, 0, 0], [4, 3, 0]]),
    ("gfx1102", [[11, 0, 2], [6, 0, 2], [4, 3, 0]]),
    ("gfx1200", [[12, 0, 0], [7, 0, 0], [6, 3, 1]]),
    ("gfx1201", [[12, 0, 1], [7, 0, 1], [6, 3, 1]]),
];

/// The blocks of a processor whose versions are known; none of another one.
pub(crate) fn of(target: Target) -> impl Iterator<Item = Block> {
    let found = PROCESSORS.iter().find(|(name, _)| *name == target.name());
    found.into_iter().flat_map(|(_, versions)| {
        let blocks = [(GC, "GC"), (SDMA0, "SDMA0"), (NBIF, "NBIF")];
        let block =
            |((hardware_id, name), version): ((u32, _), &[u32; 3])| Block { hardware_id, name, version: *version };
        blocks.into_iter().zip(versions).map(block)
    })
}
