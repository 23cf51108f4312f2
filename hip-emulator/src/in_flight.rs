//! Kernels in flight, and whether they wait for what never comes.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use wavetap::capture::Snapshot;
use wavetap::code_object::demangle;
use wavetap::collect::session::Ticket;
use wavetap::emulator::Flight;
use wavetap::isa::Target;

use crate::begin::End;
use crate::images::KernelRef;
use crate::kernarg::Shape;

/// A kernel in flight is looked at from this age on.
const YOUNG: Duration = Duration::from_secs(1);

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Its waves have been where they have been before for so long: it waits. While no thread of the program waits for it,
/// it may be the program that it waits for.
pub(crate) const STUCK: Duration = Duration::from_secs(2);
pub(crate) const STUCK_ALONE: Duration = Duration::from_secs(10);

/// States that are remembered: a loop that has more of them is none that waits.
const MOST_STATES: usize = 1 << 16;

/// The arguments of a launch in device memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    /// Size and alignment: what another launch can use it for.
    pub(crate) room: (u64, u64),
}

/// A kernel that has begun and not ended.
pub(crate) struct InFlight {
    pub(crate) kernel: KernelRef,
    pub(crate) shape: Shape,
    pub(crate) flight: Flight,
    pub(crate) kernarg: Segment,
    /// What it is known by to the session, if it counts.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) target: Target,
    pub(crate) ordinal: u64,
    /// The ranges of the program that it is in.
    pub(crate) region: Option<String>,
    /// Whether nothing is to be collected of it.
    pub(crate) left_out: bool,
    /// When it began and after what, and its workgroups.
    pub(crate) started: End,
    pub(crate) workgroups: u64,
    /// Its memory before, if it is captured; and whether nothing else can have changed memory since.
    pub(crate) snapshot: Option<(Snapshot, bool)>,
    began: Instant,
    /// Digests of the states its waves have been in.
    states: HashSet<u64>,
    /// When the last new one was seen, and when it was looked.
    news: Instant,
    looked: Instant,
    told: bool,
}

impl InFlight {
    pub(crate) fn new(
        kernel: KernelRef,
        shape: Shape,
        flight: Flight,
        kernarg: Segment,
        ticket: Option<Ticket>,
        target: Target,
        ordinal: u64,
    ) -> Self {
        let now = Instant::now();
        InFlight {
            kernel,
            shape,
            flight,
            kernarg,
            ticket,
            target,
            ordinal,
            region: None,
            left_out: false,
            started: End::default(),
            workgroups: 0,
            snapshot: None,
            began: now,
            states: HashSet::new(),
            news: now,
            looked: now,
            told: false,
        }
    }

    pub(crate) fn name(&self) -> String {
        demangle(&self.kernel.name).into_owned()
    }

    /// Wave-instructions executed so far.
    pub(crate) fn executed(&self) -> u64 {
        self.flight.executed()
    }

    /// Wave-instructions that it may execute.
    pub(crate) fn fuel(&self) -> u64 {
        self.flight.fuel()
    }

    /// How long all its waves have been in states only that they had been in before.
    pub(crate) fn stuck_for(&self) -> Duration {
        self.news.elapsed()
    }

    /// Looks at its waves, which a call has waited for so long; tells once that they have gone round in loops for long.
    /// A wave that counts, or computes anything, is in another state each time; one that only loads and compares what
    /// does not change is not.
    pub(crate) fn seems_stuck(&mut self, awaited: Duration) -> bool {
        if self.told || self.began.elapsed() < YOUNG || self.looked.elapsed() < LOOK {
            return false;
        }
        self.looked = Instant::now();
        let mut news = false;
        self.flight.states(|state| news |= self.states.insert(state));
        if news {
            self.news = Instant::now();
            if self.states.len() > MOST_STATES {
                self.states.clear();
            }
        }
        self.told = self.news.elapsed() > if awaited > STUCK { STUCK } else { STUCK_ALONE };
        self.told
    }
}
