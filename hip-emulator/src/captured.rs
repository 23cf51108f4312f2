//! Capturing a dispatch: which one, its memory before and after.

use wavetap::capture::{Launched, Memory, Snapshot};
use wavetap::emulator::{AllocationKind, Device, Dispatch};
use wavetap::error::{Error, Result};

use crate::images::KernelRef;
use crate::messages::complain;
use crate::runtime::Runtime;

/// Wave-instructions that the thread executes which launches a captured kernel, so that nothing else changes memory
/// meanwhile: more than of others, and not without limit, as the kernel may wait for the program.
pub(crate) const AT_ONCE: u64 = 2_000_000_000;

/// The memory of the device.
struct DeviceMemory<'d>(&'d Device);

impl Memory for DeviceMemory<'_> {
    fn allocations(&self) -> Vec<(u64, u64)> {
        let accessible = self.0.allocations().filter(|allocation| allocation.kind != AllocationKind::Runtime);
        accessible.map(|allocation| (allocation.address, allocation.size)).collect()
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<()> {
        self.0.read(address, into)
    }
}

impl Runtime {
    /// Takes the memory of a dispatch that is to be captured; none if it is another one, or cannot be.
    pub(crate) fn snapshot(&mut self, kernel: &KernelRef, dispatch: &Dispatch, arguments: &[u8]) -> Option<Snapshot> {
        let captures = self.captures.as_mut()?;
        if !captures.filter.selects(&kernel.name) {
            return None;
        }
        let (most, number) = (captures.most, captures.filter.seen());
        let taken = self.take(kernel, dispatch, arguments, most, number);
        taken.inspect_err(|error| complain("the dispatch is not captured", error)).ok()
    }

    fn take(
        &mut self,
        kernel: &KernelRef,
        dispatch: &Dispatch,
        arguments: &[u8],
        most: u64,
        number: u64,
    ) -> Result<Snapshot> {
        let loaded =
            self.code.images.get(kernel.image).and_then(Option::as_ref).and_then(|image| image.loaded.as_ref());
        let (Some(loaded), Some((device, _))) = (loaded, &self.device) else {
            return Err(Error::internal("a kernel is launched that is not loaded"));
        };
        if loaded.counters.is_some() {
            return Err(Error::unsupported("its code was rewritten: capture the original application"));
        }
        let launched = Launched {
            kernel: &kernel.name,
            code: &loaded.bytes,
            code_address: loaded.object.base,
            grid: dispatch.grid,
            workgroup: dispatch.workgroup.map(u32::from),
            group_segment_size: dispatch.group_segment_size,
            private_segment_size: dispatch.private_segment_size,
            arguments,
            dispatch: number,
        };
        Snapshot::take(&mut DeviceMemory(device), &launched, most)
    }

    /// Writes the capture of a dispatch that has ended.
    pub(crate) fn complete(&mut self, snapshot: Snapshot, alone: bool) {
        let (Some(captures), Some((device, _))) = (&self.captures, &self.device) else { return };
        if let Err(error) = snapshot.complete(&mut DeviceMemory(device), alone, &captures.file("capture")) {
            complain("the dispatch is not captured", &error);
        }
    }
}
