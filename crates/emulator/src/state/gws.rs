//! Global wave sync: barriers for waves of any workgroup of a dispatch, which `grid.sync()` of cooperative groups is
//! compiled to on gfx9 and gfx10.
//!
//! A resource has a counter. A wave that comes to a barrier waits and counts it down; the one that finds it 0 releases
//! all and sets it to its own number, which is one less than the waves that meet (Vega ISA guide, `DS_GWS_INIT`,
//! `DS_GWS_BARRIER`). The driver shares out resources and sets them up before a cooperative launch; here a resource
//! that the dispatch has not set up itself begins with the number that the first wave brings.
//!
//! The counter may be a semaphore's, too (`DS_GWS_SEMA_P`, `_V`, `_BR`, `_RELEASE_ALL` of the same guide): a wave waits
//! until it is not 0 and counts it down, others count it up, or release all that wait. Not set up it is 0.

use std::collections::BTreeMap;

/// A wave's request to a resource; it waits until that is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GwsRequest {
    /// To set the counter.
    Init { resource: u32, number: u32 },
    /// To be let through the barrier.
    Barrier { resource: u32, number: u32 },
    /// To go on when the barrier is in another phase.
    Phase { resource: u32, phase: u64 },
    /// To count a semaphore down.
    Down { resource: u32 },
    /// The same, or to be released with all that wait; `released` counts releases when it began to wait.
    Queued { resource: u32, released: u64 },
    /// To count a semaphore up.
    Up { resource: u32, by: u32 },
    /// To release all that wait for a semaphore.
    Release { resource: u32 },
}

/// One resource.
#[derive(Debug, Default)]
pub(crate) struct Resource {
    counter: Option<u32>,
    /// How often all have met.
    phase: u64,
    /// How often all that waited for the semaphore were released.
    released: u64,
}

/// The resources of a dispatch, and who of those that run it has nothing to do but to wait for the others.
#[derive(Debug)]
pub(crate) struct Gws {
    resources: BTreeMap<u32, Resource>,
    /// Workers that have workgroups.
    workers: usize,
    /// Those of them whose workgroups all wait.
    waiting: usize,
    /// How often waves were released: requests made before that are made again.
    releases: u64,
}

impl GwsRequest {
    fn resource(self) -> u32 {
        match self {
            GwsRequest::Init { resource, .. }
            | GwsRequest::Barrier { resource, .. }
            | GwsRequest::Phase { resource, .. } => resource,
            GwsRequest::Down { resource }
            | GwsRequest::Queued { resource, .. }
            | GwsRequest::Up { resource, .. }
            | GwsRequest::Release { resource } => resource,
        }
    }
}

impl Resource {
    /// Counts the semaphore down if it can.
    fn counts_down(&mut self) -> bool {
        let less = self.counter.and_then(|counter| counter.checked_sub(1));
        self.counter = less.or(self.counter);
        less.is_some()
    }
}

impl Default for Gws {
    fn default() -> Gws {
        Gws { resources: BTreeMap::new(), workers: 1, waiting: 0, releases: 0 }
    }
}

impl Gws {
    /// Grants a request, or else returns what the wave waits for.
    pub(crate) fn request(&mut self, ask: GwsRequest) -> Option<GwsRequest> {
        let resource = ask.resource();
        let state = self.resources.entry(resource).or_default();
        match ask {
            GwsRequest::Init { number, .. } => {
                state.counter = Some(number);
                // What waits for a semaphore makes its request again.
                self.let_go();
                None
            }
            GwsRequest::Up { by, .. } => {
                state.counter = Some(state.counter.unwrap_or(0).saturating_add(by));
                self.let_go();
                None
            }
            GwsRequest::Release { .. } => {
                state.counter = Some(0);
                state.released += 1;
                self.let_go();
                None
            }
            GwsRequest::Down { .. } => {
                (!state.counts_down()).then_some(GwsRequest::Queued { resource, released: state.released })
            }
            GwsRequest::Queued { released, .. } => (released == state.released && !state.counts_down()).then_some(ask),
            GwsRequest::Phase { phase, .. } => (state.phase == phase).then_some(ask),
            GwsRequest::Barrier { number, .. } => {
                let counter = state.counter.get_or_insert(number);
                if *counter > 0 {
                    *counter -= 1;
                    return Some(GwsRequest::Phase { resource, phase: state.phase });
                }
                *counter = number;
                state.phase += 1;
                self.let_go();
                None
            }
        }
    }

    /// Some wave may go on.
    fn let_go(&mut self) {
        self.releases += 1;
        self.waiting = 0;
    }

    /// More workers begin.
    pub(crate) fn join(&mut self, workers: usize) {
        self.workers += workers;
    }

    /// A worker has no workgroups any more.
    pub(crate) fn leave(&mut self) {
        // A worker that has ended may be run again.
        self.workers = self.workers.saturating_sub(1);
    }

    /// All workgroups of a worker wait, and it can begin no others; `since` is when the worker found that last, counted
    /// in releases. Returns whether no wave will ever go on.
    pub(crate) fn wait(&mut self, since: &mut Option<u64>) -> bool {
        if *since != Some(self.releases) {
            *since = Some(self.releases);
            self.waiting += 1;
        }
        self.waiting >= self.workers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_let_go_by_the_last_one() {
        let mut gws = Gws::default();
        let barrier = GwsRequest::Barrier { resource: 3, number: 2 };
        let first = gws.request(barrier);
        let second = gws.request(barrier);
        assert_eq!(first, Some(GwsRequest::Phase { resource: 3, phase: 0 }));
        assert_eq!((second, gws.request(first.expect("it waits"))), (first, first));
        assert_eq!(gws.request(GwsRequest::Barrier { resource: 4, number: 0 }), None);
        assert_eq!(gws.request(barrier), None);
        assert_eq!(gws.request(first.expect("it waited")), None);
        // The next phase needs as many again.
        assert_eq!(gws.request(barrier), Some(GwsRequest::Phase { resource: 3, phase: 1 }));
        assert_eq!(gws.request(GwsRequest::Init { resource: 3, number: 0 }), None);
        assert_eq!(gws.request(barrier), None);
    }

    #[test]
    fn a_semaphore_lets_as_many_through_as_it_was_counted_up() {
        let mut gws = Gws::default();
        let (down, queued) = (GwsRequest::Down { resource: 9 }, Some(GwsRequest::Queued { resource: 9, released: 0 }));
        assert_eq!(gws.request(down), queued);
        assert_eq!(gws.request(GwsRequest::Up { resource: 9, by: 2 }), None);
        assert_eq!(
            (gws.request(down), gws.request(GwsRequest::Queued { resource: 9, released: 0 }), gws.request(down)),
            (None, None, queued)
        );
        // Those that wait now and no others.
        assert_eq!(gws.request(GwsRequest::Release { resource: 9 }), None);
        assert_eq!(gws.request(GwsRequest::Queued { resource: 9, released: 0 }), None);
        assert_eq!(gws.request(down), Some(GwsRequest::Queued { resource: 9, released: 1 }));
        assert_eq!(gws.request(GwsRequest::Init { resource: 9, number: 1 }), None);
        assert_eq!(
            (gws.request(down), gws.request(down)),
            (None, Some(GwsRequest::Queued { resource: 9, released: 1 }))
        );
    }

    #[test]
    fn nobody_goes_on_when_all_workers_wait() {
        let mut gws = Gws::default();
        gws.join(1);
        let (mut one, mut other) = (None, None);
        assert!(!gws.wait(&mut one) && !gws.wait(&mut one));
        assert_eq!(gws.request(GwsRequest::Barrier { resource: 0, number: 0 }), None);
        assert!(!gws.wait(&mut other));
        assert!(gws.wait(&mut one));
        gws.leave();
        assert!(gws.wait(&mut other));
    }
}
