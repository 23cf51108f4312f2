//! What instrumented code of a dispatch compares addresses with.

use crate::memory::DeviceMemory;
use wavetap_base::error::{Error, Result};
use wavetap_profile::accesses::AllocatedRange;
use wavetap_profile::bounds::{Checked, OutOfBounds};
use wavetap_profile::map::KernelMap;

/// Alignment in bytes.
const ALIGNMENT: u64 = 64;

/// The table of a dispatch, in device memory.
#[derive(Debug)]
pub(super) struct Checks {
    /// Where it was allocated.
    address: u64,
    /// Where its slots are.
    slots: u64,
    checked: Checked,
}

impl Checks {
    /// What is allocated now, but for the buffers at these addresses, which are for records.
    pub(super) fn begin<M: DeviceMemory>(memory: &mut M, kernel: &KernelMap, records: &[u64]) -> Result<Checks> {
        let unknown = || Error::unsupported("which flat addresses are in LDS or scratch is not known");
        let apertures = memory.apertures().ok_or_else(unknown)?;
        let unknown = || Error::unsupported("--probe bounds: what kernels may access is not known here");
        let mut ranges = memory.accessible().ok_or_else(unknown)?;
        ranges.retain(|range| !records.contains(&range.address));
        let checked = Checked::new(ranges, apertures, kernel.record_bytes(), kernel.before.wave_size)?;
        let size = checked.slots_bytes().max(1);
        let slots = memory.alloc_visible(size, ALIGNMENT)?;
        memory.write(slots, &vec![0; size as usize])?;
        let bytes = checked.to_bytes(slots);
        let address = memory.alloc(bytes.len() as u64, ALIGNMENT)?;
        memory.write(address, &bytes)?;
        Ok(Checks { address, slots, checked })
    }

    /// Where it has allocated something.
    pub(super) fn addresses(&self) -> [u64; 2] {
        [self.address, self.slots]
    }

    /// Frees it.
    pub(super) fn free<M: DeviceMemory>(&self, memory: &mut M) -> Result<()> {
        self.addresses().into_iter().try_for_each(|address| Ok(memory.free(address)?))
    }

    /// The address that the control block has.
    pub(super) fn table(&self) -> u64 {
        self.address + self.checked.before()
    }

    /// What waves have left. `ended`: the dispatch has, and the device can be asked.
    pub(super) fn found<M: DeviceMemory>(
        &self,
        memory: &M,
        (kernel, dispatch): (u32, u32),
        ended: bool,
    ) -> Result<Vec<OutOfBounds>> {
        let mut slots = vec![0; self.checked.slots_bytes() as usize];
        match ended {
            true => memory.read(self.slots, &mut slots)?,
            false => memory.read_now(self.slots, &mut slots)?,
        }
        let found = self.checked.found(&slots, kernel, dispatch)?;
        for bad in &found {
            let unknown = memory.mapped_at(bad.address).filter(|mapped| !self.checked.overlaps(mapped));
            if let Some(mapped) = unknown {
                let AllocatedRange { address, size } = mapped;
                return Err(Error::unsupported(format!(
                    "--probe bounds: an access at {:#x} is in {size} bytes of memory at {address:#x} that were \
                     allocated in a way that is not known here",
                    bad.address
                )));
            }
        }
        Ok(found)
    }
}
