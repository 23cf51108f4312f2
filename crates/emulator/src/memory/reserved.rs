//! Reserved ranges of addresses, parts of which can be accessed: what a runtime's calls for virtual memory make.
//!
//! A reservation has memory of the host for all of its bytes, which takes none before it is written. Each run of parts
//! that follow one another and are accessible is one allocation, as an access or a copy may go from one part into the
//! next.

use std::ops::Range;
use std::sync::Arc;

use vm_memory::MmapRegion;
use wavetap_base::bytes::align_up;
use wavetap_base::error::{Error, Result};

use super::{Block, FIRST_ADDRESS, GUARD, LAST_ADDRESS, MAX_TOTAL, Memory, Storage};
use crate::address::allocation::{Allocation, AllocationKind};

/// Most bytes of a reservation: programs reserve more than there is.
const MOST: u64 = 1 << 42;

/// A reserved range.
pub(super) struct Reservation {
    pub(super) address: u64,
    pub(super) size: u64,
    pages: Arc<MmapRegion>,
    /// What can be accessed: sorted, no two of them touch.
    accessible: Vec<Range<u64>>,
}

impl Memory {
    /// Reserves a range, at an address if one is wanted and free.
    pub(crate) fn reserve(&mut self, size: u64, align: u64, wanted: Option<u64>) -> Result<u64> {
        if size == 0 || size > MOST || !align.is_power_of_two() {
            return Err(Error::unsupported(format!("a reservation of {size} bytes aligned to {align}")));
        }
        let given = FIRST_ADDRESS..LAST_ADDRESS;
        let fits = |address: &u64| {
            address.is_multiple_of(align) && given.contains(address) && self.free_range(*address, size).is_ok()
        };
        let address = wanted.filter(fits).unwrap_or_else(|| align_up(self.next, align));
        let end = address.checked_add(size + GUARD).filter(|end| *end <= LAST_ADDRESS);
        let end = end.ok_or_else(|| Error::limit("device memory: the address range is used up"))?;
        let length = usize::try_from(size).map_err(|_| Error::limit("a reservation too large for this machine"))?;
        let pages = MmapRegion::new(length)
            .map_err(|error| Error::limit(format!("a reservation of {size} bytes: the host gives none: {error}")))?;
        self.next = self.next.max(align_up(end, super::MIN_ALIGN));
        self.reserved.push(Reservation { address, size, pages: Arc::new(pages), accessible: Vec::new() });
        Ok(address)
    }

    /// Ends a reservation of which nothing is accessible.
    pub(crate) fn end_reservation(&mut self, address: u64, size: u64) -> Result<()> {
        let is_it = |range: &Reservation| range.address == address && range.size == size;
        let at = self.reserved.iter().position(is_it).filter(|at| self.reserved[*at].accessible.is_empty());
        let at =
            at.ok_or_else(|| Error::unsupported(format!("no unused reservation of {size} bytes at {address:#x}")))?;
        self.reserved.swap_remove(at);
        Ok(())
    }

    /// Makes a part of a reservation accessible, or inaccessible.
    pub(crate) fn set_accessible(&mut self, part: Range<u64>, accessible: bool) -> Result<()> {
        let holds = |range: &Reservation| {
            range.address <= part.start && part.start < part.end && part.end <= range.address + range.size
        };
        let at = self.reserved.iter().position(holds);
        let at = at.ok_or_else(|| Error::unsupported(format!("{part:#x?} lies in no reservation")))?;
        let more = if accessible { part.end - part.start } else { 0 };
        if self.total + more > MAX_TOTAL {
            return Err(Error::limit(format!("device memory: {more} bytes wanted, {} in use", self.total)));
        }
        let old = std::mem::take(&mut self.reserved[at].accessible);
        for range in &old {
            self.remove(range.start)?;
        }
        let new = if accessible { with(&old, part) } else { without(&old, &part) };
        let Reservation { address, ref pages, .. } = self.reserved[at];
        let pages = Arc::clone(pages);
        for range in &new {
            let size = range.end - range.start;
            let storage = Storage::Owned(Arc::clone(&pages), (range.start - address) as usize);
            self.total += size;
            self.insert(Block {
                undefined: None,
                allocation: Allocation { address: range.start, size, kind: AllocationKind::Mapped },
                storage,
            });
        }
        self.reserved[at].accessible = new;
        Ok(())
    }

    /// The first byte and the end of a reservation that reaches into a range.
    pub(super) fn reserved_in(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let found =
            self.reserved.iter().find(|other| other.address < range.end && range.start < other.address + other.size);
        found.map(|other| other.address..other.address + other.size)
    }
}

/// Sorted ranges with one more, those that touch as one.
fn with(ranges: &[Range<u64>], more: Range<u64>) -> Vec<Range<u64>> {
    let mut all = ranges.to_vec();
    all.push(more);
    all.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in all {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Sorted ranges without a part.
fn without(ranges: &[Range<u64>], part: &Range<u64>) -> Vec<Range<u64>> {
    let rest = |range: &Range<u64>| [range.start..range.end.min(part.start), range.start.max(part.end)..range.end];
    ranges.iter().flat_map(rest).filter(|range| range.start < range.end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::MemoryAccess;

    #[test]
    fn parts_that_touch_are_one_allocation() {
        assert_eq!(with(&[0..10, 30..40], 10..20), [0..20, 30..40]);
        assert_eq!(with(&[0..10, 30..40, 50..60], 10..30), [0..40, 50..60]);
        assert_eq!(with(&[5..10, 20..30], 0..3), [0..3, 5..10, 20..30]);
        assert_eq!(without(&[0..40, 50..60], &(10..20)), [0..10, 20..40, 50..60]);
        assert_eq!(without(&[0..10, 20..30], &(5..25)), [0..5, 25..30]);
        assert_eq!(without(&[0..10, 20..30], &(0..30)), []);
    }

    #[test]
    fn only_what_is_accessible_can_be_accessed_and_bytes_stay() {
        let mut memory = Memory::new();
        let base = memory.reserve(0x10000, 0x1000, None).expect("a range");
        let read = |memory: &Memory, at: u64, size: usize| {
            let mut bytes = vec![0; size];
            memory.view().read(base + at, &mut bytes, MemoryAccess::Load).map(|()| bytes).ok()
        };
        let write =
            |memory: &Memory, at: u64, bytes: &[u8]| memory.view().write(base + at, bytes, MemoryAccess::Store).is_ok();
        assert!(read(&memory, 0, 1).is_none());
        memory.set_accessible(base..base + 0x2000, true).expect("inside");
        memory.set_accessible(base + 0x2000..base + 0x3000, true).expect("inside");
        assert!(write(&memory, 0x1ffe, &[1, 2, 3, 4]), "from one part into the next");
        assert!(read(&memory, 0x2ffe, 4).is_none());
        memory.set_accessible(base + 0x1000..base + 0x2000, false).expect("inside");
        assert!(read(&memory, 0x1ffe, 4).is_none());
        assert_eq!(read(&memory, 0x2000, 2), Some(vec![3, 4]));
        memory.set_accessible(base + 0x1000..base + 0x2000, true).expect("inside");
        assert_eq!(read(&memory, 0x1ffe, 4), Some(vec![1, 2, 3, 4]));
        assert!(memory.end_reservation(base, 0x10000).is_err(), "it is used");
        assert!(memory.malloc_at(base + 0x8000, 16, AllocationKind::Device).is_err(), "it is reserved");
        memory.set_accessible(base..base + 0x10000, false).expect("inside");
        assert!(memory.end_reservation(base, 0x8000).is_err() && memory.end_reservation(base, 0x10000).is_ok());
        assert!(memory.set_accessible(base..base + 0x1000, true).is_err(), "it has ended");
        assert_eq!(memory.in_use(), 0);
        assert_eq!(memory.reserve(0x1000, 0x1000, Some(base + 0x40000)), Ok(base + 0x40000));
        assert_ne!(memory.reserve(0x1000, 0x1000, Some(base + 0x40000)), Ok(base + 0x40000), "it is taken");
        for (size, align) in [(0, 0x1000), (0x1000, 3), (u64::MAX, 0x1000)] {
            assert!(memory.reserve(size, align, None).is_err());
        }
    }
}
