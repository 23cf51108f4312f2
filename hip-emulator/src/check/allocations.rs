//! What the program allocates: by which call, and which call frees it.

use std::collections::BTreeMap;

use wavetap::profile::check::{Allocation, Class, Finding};

use super::RawCall;

/// An allocation, which may have been freed.
#[derive(Debug)]
struct Entry {
    size: u64,
    made: RawCall,
    freed: Option<RawCall>,
}

/// The address that a finding is about.
fn address_of(finding: &Finding) -> Option<u64> {
    let digits = finding.access.as_ref()?.address.strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok()
}

/// All allocations by address. Addresses of device memory are given once only; those of host memory may come again.
#[derive(Debug, Default)]
pub(crate) struct Allocations(BTreeMap<u64, Entry>);

impl Allocations {
    /// The call that this thread is in allocates.
    pub(crate) fn allocated(&mut self, address: u64, size: u64) {
        // What was freed there before is gone.
        let overlapped: Vec<u64> =
            self.0.range(address..address.saturating_add(size)).map(|(start, _)| *start).collect();
        overlapped.iter().for_each(|start| drop(self.0.remove(start)));
        self.0.insert(address, Entry { size, made: RawCall::here(), freed: None });
    }

    /// The call that this thread is in frees.
    pub(crate) fn freed(&mut self, address: u64) {
        if let Some(entry) = self.0.get_mut(&address) {
            entry.freed.get_or_insert_with(RawCall::here);
        }
    }

    /// The allocation that was freed at an address.
    pub(crate) fn freed_at(&self, address: u64) -> Option<Allocation> {
        let entry = self.0.get(&address).filter(|entry| entry.freed.is_some())?;
        Some(Allocation { address, size: entry.size, offset: 0, variable: None, made: None, freed: None })
    }

    /// Says of an access of what was freed that it is one.
    pub(crate) fn describe(&self, finding: &mut Finding) {
        let Some(address) = address_of(finding) else { return };
        let Some((start, entry)) = self.0.range(..=address).next_back() else { return };
        let is_inside = address - start < entry.size;
        let is_bounds = matches!(
            finding.class,
            Class::OutOfBoundsLoad
                | Class::OutOfBoundsStore
                | Class::OutOfBoundsAtomic
                | Class::Overread
                | Class::HostPointer
        );
        if is_bounds && is_inside && entry.freed.is_some() {
            finding.set_class(Class::UseAfterFree);
            let offset = (address - start) as i64;
            finding.allocation =
                Some(Allocation { address: *start, size: entry.size, offset, variable: None, made: None, freed: None });
        }
    }

    /// Adds the allocation that accesses race in.
    pub(crate) fn locate(&self, finding: &mut Finding) {
        let is_race = matches!(
            finding.class,
            Class::GlobalRace | Class::StreamRace | Class::HostRace | Class::SameValue | Class::LaneConflict
        );
        let Some(address) = address_of(finding).filter(|_| is_race && finding.allocation.is_none()) else { return };
        let Some((start, entry)) = self.0.range(..=address).next_back() else { return };
        if address - start < entry.size {
            finding.allocation = Some(Allocation {
                address: *start,
                size: entry.size,
                offset: (address - start) as i64,
                variable: None,
                made: None,
                freed: None,
            });
        }
    }

    /// Adds by which calls the allocation of a finding was made and freed.
    pub(crate) fn add_calls(&self, finding: &mut Finding) {
        let Some(allocation) = &mut finding.allocation else { return };
        let Some(entry) = self.0.get(&allocation.address) else { return };
        allocation.made = Some(entry.made.resolve());
        allocation.freed = entry.freed.as_ref().map(RawCall::resolve);
    }

    /// What was never freed, by the call that allocated it.
    pub(crate) fn leaks(&self) -> Vec<(RawCall, Finding)> {
        let mut by_call: BTreeMap<&RawCall, (u64, u64)> = BTreeMap::new();
        for entry in self.0.values().filter(|entry| entry.freed.is_none()) {
            let (count, size) = by_call.entry(&entry.made).or_default();
            *count += 1;
            *size += entry.size;
        }
        let leak = |(call, (count, size)): (&RawCall, (u64, u64))| {
            let several = if count == 1 { String::new() } else { format!(" in {count} allocations") };
            let mut finding = Finding::new(Class::Leak, format!("{size} bytes{several} were never freed"));
            finding.count = count;
            (call.clone(), finding)
        };
        by_call.into_iter().map(leak).collect()
    }
}
