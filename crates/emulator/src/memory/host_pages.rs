//! Pages of the host that kernels share with the program: accesses by both are atomic where they are aligned.

use std::sync::Arc;

use vm_memory::MmapRegion;

use wavetap_base::error::Result;

use super::{Memory, Storage};

impl Memory {
    /// Maps pages in at an address.
    pub(crate) fn map(&mut self, address: u64, pages: Arc<MmapRegion>) -> Result<()> {
        let size = pages.size() as u64;
        self.insert_foreign(Storage::Owned(pages, 0), address, size)
    }
}
