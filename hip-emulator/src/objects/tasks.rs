//! Tasks: what streams have been given to do and have not done.
//!
//! Tasks form an acyclic graph: what a stream is given comes after what it was given before; the legacy default stream
//! and the blocking ones come after each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Condvar;
use std::time::Instant;

use super::streams::{Place, comes_after};
use crate::begin::{Begin, End};
use crate::in_flight::InFlight;
use crate::status::*;
use crate::stream_op::StreamOp;

/// Something has been done, or there is something to do.
pub(crate) static CHANGED: Condvar = Condvar::new();

/// Wakes threads that wait for tasks.
pub(crate) fn wake() {
    CHANGED.notify_all();
}

/// What is to be done.
pub(crate) enum Work {
    /// It has not begun.
    Waiting(StreamOp),
    /// A kernel that has begun.
    Running(Box<InFlight>),
    /// A function of the program that is being called.
    Called,
}

/// Something to do.
pub(crate) struct Task {
    pub(crate) place: Place,
    pub(crate) work: Work,
    /// From when on it may begin, after what has been done before it.
    pub(crate) begin: Begin,
    /// Tasks before it that have not been done.
    pub(crate) before: usize,
    /// Tasks that come after it.
    pub(crate) after: Vec<u64>,
}

/// All that has not been done, by number in the order of submission.
#[derive(Default)]
pub(crate) struct Tasks {
    pub(crate) tasks: BTreeMap<u64, Task>,
    /// Those with nothing before them.
    pub(crate) ready: BTreeSet<u64>,
    /// The last task of each stream.
    pub(crate) last: HashMap<usize, (u64, bool)>,
    pub(crate) numbers: u64,
    /// The task that had its turn last.
    pub(crate) turn: u64,
    /// The process whose threads run tasks: after a fork there are none.
    pub(crate) process: Option<u32>,
    /// What went wrong with a task, for the next call that waits.
    pub(crate) failure: Option<Status>,
    /// The calls in which threads of the program wait.
    pub(crate) waiting: Vec<&'static str>,
    /// Since when there are such.
    pub(crate) awaited: Option<Instant>,
    /// Whether it was said that a value does not come.
    pub(crate) told: bool,
}

impl Tasks {
    /// Whether a task has not been done.
    pub(crate) fn has(&self, task: u64) -> bool {
        self.tasks.contains_key(&task)
    }

    /// Whether the next operation of a stream would have to wait.
    pub(crate) fn would_wait(&self, place: Place) -> bool {
        !self.before(place).is_empty()
    }

    /// What must have been done before the next operation of a stream.
    pub(crate) fn before(&self, place: Place) -> Vec<u64> {
        let waits = |other: Place| comes_after(place, other);
        let all = self.last.iter().filter(|(other, (task, blocks))| waits((**other, *blocks)) && self.has(*task));
        all.map(|(_, (task, _))| *task).collect()
    }

    pub(crate) fn add(&mut self, place: Place, before: &[u64], begin: Begin, work: Work) -> u64 {
        self.numbers += 1;
        let number = self.numbers;
        for other in before {
            if let Some(other) = self.tasks.get_mut(other) {
                other.after.push(number);
            }
        }
        if before.is_empty() {
            self.ready.insert(number);
        }
        self.tasks.insert(number, Task { place, work, begin, before: before.len(), after: Vec::new() });
        self.last.insert(place.0, (number, place.1));
        number
    }

    /// A task has been done, and has ended then unless it failed.
    pub(crate) fn finish(&mut self, number: u64, outcome: Outcome<End>) {
        let end = outcome.unwrap_or_else(|status| {
            self.failure.get_or_insert(status);
            End::default()
        });
        self.ready.remove(&number);
        for after in self.tasks.remove(&number).map(|task| task.after).unwrap_or_default() {
            if let Some(task) = self.tasks.get_mut(&after) {
                task.before -= 1;
                task.begin = std::mem::take(&mut task.begin).and_after(&end);
                if task.before == 0 {
                    self.ready.insert(after);
                }
            }
        }
        if self.tasks.is_empty() {
            self.last.clear();
        }
        wake();
    }

    /// Nothing is done any more: the device is broken, or this is another process.
    pub(crate) fn clear(&mut self) {
        self.tasks.clear();
        self.ready.clear();
        self.last.clear();
        wake();
    }

    /// The kernels in flight: their streams, and how far they are.
    pub(crate) fn running(&self) -> impl Iterator<Item = (usize, &InFlight)> {
        self.ready.iter().filter_map(|number| match self.tasks.get(number) {
            Some(Task { place, work: Work::Running(of), .. }) => Some((place.0, &**of)),
            _ => None,
        })
    }

    /// What the program does meanwhile, in words.
    pub(crate) fn host(&self) -> String {
        match self.waiting.as_slice() {
            [] => "the program does not wait in a call of HIP".into(),
            [call] => format!("the program waits in {call}"),
            [first, rest @ ..] => {
                format!(
                    "threads of the program wait in {first}{}",
                    rest.iter().map(|call| format!(", {call}")).collect::<String>()
                )
            }
        }
    }

    /// What else there is, in words.
    pub(crate) fn others(&self, number: u64) -> String {
        let others = || self.tasks.iter().filter(|(other, _)| **other != number).map(|(_, task)| task);
        let running = others().filter(|task| matches!(task.work, Work::Running(_))).count();
        let waiting = others().filter(|task| matches!(task.work, Work::Waiting(_)) && task.before > 0).count();
        let calls = others().filter(|task| matches!(task.work, Work::Called)).count();
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let mut all = vec![match running {
            0 => "no other kernel is in flight".to_owned(),
            count => format!("{count} other kernel{} in flight", if count == 1 { " is" } else { "s are" }),
        }];
        if calls > 0 {
            all.push(format!("{calls} function{} of the program called by a stream", plural(calls)));
        }
        if waiting > 0 {
            all.push(format!("{waiting} operation{} cannot begin before others have ended", plural(waiting)));
        }
        all.join("; ")
    }
}
