//! Accesses of the host: what its calls copy and fill, and what its own code reads and writes in memory that kernels
//! use as well.

use super::cells::{Access, Cell, PAGE};
use super::dispatches::{DispatchNumber, DispatchOrder};
use super::order::{Released, Site};
use super::{GlobalRaces, Now};
use crate::fault::{FaultKind, MemoryAccess, MissingSynchronisation};

/// An access of the host: of all bytes of a range, which it reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAccess {
    /// Addresses as the device has them.
    pub range: std::ops::Range<u64>,
    /// Whether it writes them.
    pub write: bool,
}

/// Whether an access of the host's own code to a byte races with others.
#[derive(Debug, Clone, PartialEq)]
pub enum HostTouch<F> {
    /// It is ordered after all accesses before.
    Ordered,
    /// A dispatch that has not ended for certain has stored there as one does that hands something over.
    Synchronises(DispatchNumber),
    /// It races with one.
    Races {
        /// The race.
        fault: F,
        /// A wave has stored to that place alone, as one also does that hands something over.
        may_be_flag: bool,
    },
}

impl GlobalRaces {
    /// The host reads or writes ranges of memory, all at the same time; the number of these accesses, and the first
    /// race of each.
    pub(crate) fn host_accesses(
        &mut self,
        accesses: &[HostAccess],
        order: DispatchOrder,
        name: &'static str,
        is_ignored: &dyn Fn(u64) -> bool,
    ) -> (DispatchNumber, Vec<FaultKind>) {
        // They take no longer than this.
        let number = self.begin(order);
        self.end(number);
        let mut found = Vec::new();
        let Some(group) = self.order.start(number, [0; 3], 1) else { return (number, found) };
        for HostAccess { range, write } in accesses {
            // Its place among instructions is after all addresses of code.
            let how = if *write { MemoryAccess::Store } else { MemoryAccess::Load };
            let pc = u64::MAX - (name.as_ptr() as u64) * 2 - u64::from(*write);
            let size = usize::MAX;
            let (returns, coherent, polls) = (false, false, Some(false));
            let site = Site { pc, object: None, address: 0, name, how, returns, coherent, size, polls };
            let Some(site) = self.order.site(pc, || site) else { continue };
            let mut now = Now {
                access: Access::new(group, 0, 1, site),
                done: Released { wave: 0, next: 2, oldest_write: 2, apart: false },
                polls: &mut |_| false,
                is_ignored,
                handed: None,
                seen: None,
                found: None,
            };
            self.access(&mut now, range.start, range.end.saturating_sub(range.start) as usize, None);
            found.extend(now.found.take().map(|race| self.fault(&now, &race)));
        }
        self.order.end(group);
        (number, found)
    }

    /// The pages of 4096 bytes in a range that others than these dispatches have accessed: the first byte of each, and
    /// whether they have written. With `whole` only those of which they have accessed all bytes.
    pub(crate) fn unordered_pages(
        &mut self,
        range: std::ops::Range<u64>,
        done: &DispatchOrder,
        whole: bool,
    ) -> Vec<(u64, bool)> {
        let mut found = Vec::new();
        for number in self.shadow.numbers(range.start / PAGE..range.end.div_ceil(PAGE)) {
            let first = number * PAGE;
            let bytes = range.start.max(first) - first..range.end.min(first + PAGE) - first;
            let (mut accessed, mut written) = (0, false);
            for (cell, size) in self.shadow.page(number, || false).cells(bytes.start as usize..bytes.end as usize) {
                let is_written = self.is_unordered(cell.written, done);
                written |= is_written;
                if is_written || self.is_unordered(cell.read, done) {
                    accessed += size;
                }
            }
            if accessed > 0 && (!whole || accessed as u64 == bytes.end - bytes.start) {
                found.push((first, written));
            }
        }
        found
    }

    /// The host's own code reads or writes a byte when it knows that these dispatches have ended.
    pub(crate) fn touch(&mut self, address: u64, write: bool, done: &DispatchOrder) -> HostTouch<FaultKind> {
        if self.shadow.numbers(address / PAGE..address / PAGE + 1).is_empty() {
            return HostTouch::Ordered;
        }
        let Cell { written, read } =
            self.shadow.page(address / PAGE, || false).cell((address % PAGE) as usize, false).unwrap_or_default();
        let earlier = if self.is_unordered(written, done) {
            written
        } else if write && self.is_unordered(read, done) {
            read
        } else {
            return HostTouch::Ordered;
        };
        let (site, group) = (&self.order.sites[earlier.site()], &self.order.groups[earlier.group() as usize]);
        let release = self.order.release_at(address).filter(|_| site.how == MemoryAccess::Store && site.is_narrow());
        if site.how == MemoryAccess::Atomic || site.coherent || release == Some(true) {
            return HostTouch::Synchronises(group.dispatch);
        }
        let fault = FaultKind::GlobalRace {
            address,
            access: if write { MemoryAccess::Store } else { MemoryAccess::Load },
            other: Box::new(self.order.describe(earlier, MissingSynchronisation::Dispatch)),
            same_value: false,
        };
        HostTouch::Races { fault, may_be_flag: release.is_some() }
    }

    fn is_unordered(&self, access: Access, done: &DispatchOrder) -> bool {
        let group = || self.order.groups.get(access.group() as usize);
        !access.is_none() && group().is_some_and(|group| !done.has(group.dispatch))
    }
}
