//! Workgroups that wait for others, and what a GPU has room for.
//!
//! A GPU begins workgroups in the order of their ids, as long as there is room for them, and one that waits keeps its
//! room. Here a workgroup whose waves all wait for a change of memory ([`crate::shadow::polls`]) has no turn until
//! there is one, and another one begins. When as many wait as the GPU has room for, and those that have not begun all
//! come after them, none of them gets any further on a GPU by itself. That is a finding as soon as a workgroup that is
//! begun all the same writes where they wait: it is the one that they wait for. The memory of the host is not looked
//! at for this, as the host may write it at any time.

use super::worker::{Stopped, Worker, Workgroup};
use crate::address::allocation::AllocationKind;
use crate::fault::stop::Stop;
use crate::fault::{Fault, FaultKind, NoProgress};
use crate::shadow::polls::Poll;
use crate::state::wave::{Status, Wave};

/// Different places where waves wait that are remembered.
const MOST_PLACES: usize = 16;

/// What is known of workgroups that wait.
#[derive(Default)]
pub(crate) struct WaitingGroups {
    /// Workgroups that have begun.
    begun: u64,
    /// All wait, and no other can begin: they try again and again.
    pub try_again: bool,
    /// The next one to begin is the first of those that are left.
    pub in_order: bool,
    /// Where they waited when there was no room for more.
    full: Option<Full>,
}

/// No further workgroup would have room.
struct Full {
    /// Workgroups that had begun by then, and that were waiting.
    begun: u64,
    waiting: u64,
    places: Vec<(Poll, Fault)>,
}

impl WaitingGroups {
    /// A workgroup begins; its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.try_again = false;
        self.begun += 1;
        self.begun
    }
}

impl Worker<'_> {
    /// Whether a wave waits for a change of memory.
    pub(crate) fn waits(&self, wave: &Wave) -> bool {
        self.shared.plan.room.is_some()
            && !self.waiting.try_again
            && matches!(wave.status, Status::Running | Status::Yielding)
            && wave.checks.poll.waits(&self.memory)
    }

    /// Whether all waves of a workgroup that could go on wait.
    pub(crate) fn is_waiting(&self, group: &Workgroup) -> bool {
        let stays = |wave: &Wave| match wave.status {
            Status::Running | Status::Yielding => self.waits(wave),
            Status::AtSplitBarrier => group.barrier.phase == wave.signalled,
            Status::AtGws => false,
            Status::AtBarrier | Status::Ended => true,
        };
        // Where no wave waits for memory, the barrier is next.
        self.shared.plan.room.is_some()
            && group.waves.iter().any(|wave| self.waits(wave))
            && group.waves.iter().all(stays)
    }

    /// A workgroup that does not wait, from this one on; this one if there is none.
    pub(crate) fn next_that_goes_on(&self, from: usize) -> usize {
        if self.shared.plan.room.is_none() {
            return from;
        }
        let count = self.running.len();
        let goes_on = |at: &usize| !self.is_waiting(&self.running[*at]);
        (from..from + count).map(|at| at % count).find(goes_on).unwrap_or(from)
    }

    /// A workgroup waits. If all do, one more is begun, or all try again if that cannot be.
    pub(crate) fn one_waits(&mut self) {
        if self.waiting.try_again || !self.running.iter().rev().all(|group| self.is_waiting(group)) {
            return;
        }
        let is_one_left = !self.window.is_empty() || self.shared.left() > 0;
        if is_one_left && self.waiting.full.is_none() && self.is_full() {
            self.waiting.full = Some(self.places());
        }
        self.waiting.in_order = true;
        if is_one_left && self.free.len() >= self.shared.plan.waves_of([0; 3]) as usize {
            self.wanted = self.running.len() + 1;
            return;
        }
        self.waiting.try_again = true;
        let waves = self.running.iter_mut().flat_map(|group| &mut group.waves);
        waves.for_each(|wave| wave.checks.poll.try_again());
    }

    /// Whether a GPU would have no room for a further workgroup, of those that run here.
    fn is_full(&self) -> bool {
        let plan = self.shared.plan;
        let Some(room) = &plan.room else { return false };
        let last =
            self.running.iter().filter_map(|group| group.waves.first()).map(|wave| plan.number_of(wave.group_id));
        let next = self.window.iter().map(|id| plan.number_of(*id)).min();
        self.running.len() as u64 >= room.workgroups
            && next.is_none_or(|next| last.max().is_none_or(|last| next > last))
    }

    /// Where the workgroups that run wait.
    fn places(&self) -> Full {
        let mut places: Vec<(Poll, Fault)> = Vec::new();
        for wave in self.running.iter().flat_map(|group| &group.waves).filter(|wave| self.waits(wave)) {
            let poll = &wave.checks.poll;
            let of_device = |(address, _): &(u64, u8)| {
                self.memory.allocation_of(*address).is_some_and(|memory| memory.kind == AllocationKind::Device)
            };
            let is_known = places.iter().any(|(known, _)| (known.pc, known.place()) == (poll.pc, poll.place()));
            if is_known || places.len() == MOST_PLACES || !poll.places().iter().all(of_device) {
                continue;
            }
            let stop = Stop { kind: FaultKind::OutOfFuel, lane: None };
            places.push((poll.clone(), self.fault(self.stopped_at(stop, poll.pc), wave)));
        }
        Full { begun: self.waiting.begun, waiting: self.running.len() as u64, places }
    }

    /// At an instruction that was executed.
    fn stopped_at(&self, stop: Stop, pc: u64) -> Stopped {
        Stopped { stop, op: self.code.ops.iter().position(|op| op.pc == pc), pc }
    }

    /// A workgroup is about to have its turn: what has changed by now was no write of it.
    pub(crate) fn before_turn(&mut self) {
        if let Some(full) = &mut self.waiting.full {
            full.places.retain(|(poll, _)| !poll.has_changed(&self.memory));
        }
    }

    /// It has had its turn.
    pub(crate) fn after_turn(&mut self, group: &Workgroup) {
        let (Some(full), Some(room)) = (&mut self.waiting.full, &self.shared.plan.room) else { return };
        let waiting = full.waiting;
        let has_begun_since = group.number > full.begun;
        let id = group.waves.first().map_or([0; 3], |wave| wave.group_id);
        for (poll, mut fault) in full.places.extract_if(.., |(poll, _)| poll.has_changed(&self.memory)) {
            let (Some((address, size)), true) = (poll.place(), has_begun_since) else { continue };
            fault.kind = FaultKind::NoProgress(Box::new(NoProgress {
                waiting,
                room: room.workgroups,
                board: room.board.clone(),
                address,
                size: size.into(),
                writer: id,
                nearest: self.memory.allocation_of(address),
            }));
            self.findings.add_all(vec![fault], &self.shared.plan.launch.passes);
        }
    }

    /// What has stopped a wave; of one that has used up the fuel, what it waits for, if it does.
    pub(crate) fn explained(&self, stopped: Stopped, wave: &Wave) -> Stopped {
        let poll = &wave.checks.poll;
        match poll.place().filter(|_| stopped.stop.kind == FaultKind::OutOfFuel && poll.has_repeated()) {
            Some((address, size)) => {
                let nearest = self.memory.allocation_of(address);
                let kind = FaultKind::EndlessWait { address, size: size.into(), nearest };
                self.stopped_at(Stop { kind, lane: None }, poll.pc)
            }
            None => stopped,
        }
    }

    /// The first of the workgroups of which one begins next.
    pub(crate) fn first_of_window(&self) -> usize {
        let numbers = self.window.iter().map(|id| self.shared.plan.number_of(*id)).enumerate();
        numbers.min_by_key(|(_, number)| *number).map_or(0, |(at, _)| at)
    }
}
