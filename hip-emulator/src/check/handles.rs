//! Streams, events and modules: by which calls they are created and destroyed.

use std::collections::BTreeMap;

use wavetap::profile::check::{Class, Finding};

use super::RawCall;

/// What a handle stands for.
#[derive(Debug)]
struct Entry {
    what: &'static str,
    created: RawCall,
    destroyed: Option<RawCall>,
}

/// All handles; no two things have the same.
#[derive(Debug, Default)]
pub(crate) struct Handles(BTreeMap<usize, Entry>);

impl Handles {
    /// The call that this thread is in creates something.
    pub(crate) fn created(&mut self, handle: usize, what: &'static str) {
        self.0.insert(handle, Entry { what, created: RawCall::here(), destroyed: None });
    }

    /// The call that this thread is in destroys it.
    pub(crate) fn destroyed(&mut self, handle: usize) {
        if let Some(entry) = self.0.get_mut(&handle) {
            entry.destroyed.get_or_insert_with(RawCall::here);
        }
    }

    /// That a call uses what was destroyed, if it was.
    pub(super) fn stale(&self, handle: usize) -> Option<Finding> {
        let entry = self.0.get(&handle)?;
        let destroyed = entry.destroyed.as_ref()?.resolve();
        let mut finding = Finding::new(Class::DestroyedHandle, format!("a {} is used that was destroyed", entry.what));
        finding.destroyed = Some(destroyed);
        Some(finding)
    }

    /// What was never destroyed, by the call that created it. Modules go with their process.
    pub(super) fn leaks(&self) -> Vec<(RawCall, Finding)> {
        let mut by_call: BTreeMap<&RawCall, (&'static str, u64)> = BTreeMap::new();
        for entry in self.0.values().filter(|entry| entry.destroyed.is_none() && entry.what != "module") {
            by_call.entry(&entry.created).or_insert((entry.what, 0)).1 += 1;
        }
        let leak = |(call, (what, count)): (&RawCall, (&str, u64))| {
            let text = if count == 1 { format!("1 {what} was") } else { format!("{count} {what}s were") };
            let mut finding = Finding::new(Class::Leak, format!("{text} never destroyed"));
            finding.count = count;
            (call.clone(), finding)
        };
        by_call.into_iter().map(leak).collect()
    }
}
