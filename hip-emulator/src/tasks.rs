//! Running what streams have been given to do and have not done ([`crate::objects::tasks`]).
//!
//! Most operations are done at once by the thread that submits them, which is as fast as can be and always in the same
//! order. Two sorts are not: those that come after something that has not been done, and kernels that do not end within
//! so many instructions, as one that waits for the host does. Such are tasks: a thread of this library runs them one
//! share after the other, all kernels in flight in turn, while the program goes on. Functions of the program are called
//! by a second thread. The library's lock is held while a task runs, and given up as soon as another thread wants it.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use wavetap::emulator::Share;
use wavetap::profile::check::Tool;
use wavetap::stderr_line;

use crate::begin::{Begin, End};
use crate::called::called_now;
use crate::check::RawCall;
use crate::dispatch::Launched;
use crate::in_flight::{InFlight, STUCK, STUCK_ALONE};
use crate::lock::{WAITING, runtime};
use crate::objects::streams::{LEGACY, Place};
use crate::objects::tasks::{CHANGED, Task, Tasks, Work, wake};
use crate::runtime::Runtime;
use crate::status::*;
use crate::stream_op::{HostCall, Step, StreamOp};

/// Wave-instructions of a kernel that is one of several in flight, before it is another one's turn: one may wait for
/// the other again and again.
const TURN: u64 = 20_000;

/// The same where several threads run the kernel, which takes its time to begin.
const DIVIDED_TURN: u64 = 500_000;

/// Wave-instructions of a kernel where nothing else can be done, after which it is seen whether there is something else
/// to do.
const LONG_TURN: u64 = 2_000_000;

/// How long the thread that runs tasks lets others go first who wait for the lock: a kernel's turn takes longer than
/// most calls, which mostly come one after the other.
const REST: Duration = Duration::from_micros(200);

/// How often a value is looked at that a stream waits for.
const POLL: Duration = Duration::from_micros(100);

/// How long the thread that submits a function waits for it to return: usually it does at once, and the program's
/// output has its usual order.
const CALL: Duration = Duration::from_millis(20);

/// An operation that was given to a stream.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// The task that it became, unless it has been done.
    pub(crate) task: Option<u64>,
    /// When it ended, if it has been done.
    pub(crate) end: End,
}

/// What became of an operation that was started.
enum Started {
    /// It has been done, and ended then.
    Ended(End),
    /// The rest of its work.
    Left(Work),
}

/// What a turn came to.
enum Turn {
    Done,
    /// There is nothing to do but to look again soon.
    Poll,
    Idle,
}

impl Runtime {
    /// Does an operation of a stream after these tasks: at once if it can be, else it becomes a task.
    fn give(&mut self, place: Place, operation: StreamOp, mut before: Vec<u64>, mut begin: Begin) -> Outcome<Given> {
        if let StreamOp::Steps(steps) = operation {
            return self.give_steps(place, steps, &before, begin);
        }
        if let StreamOp::Wait(event) = operation {
            match self.streams.pending(event) {
                Some(task) => before.push(task),
                None => begin = begin.and_after(&self.streams.end(event)),
            }
        }
        before.retain(|task| self.tasks.has(*task));
        before.sort_unstable();
        before.dedup();
        let event = if let StreamOp::Record(event) = operation { Some(event) } else { None };
        let work = if before.is_empty() {
            match self.start(operation, &begin)? {
                Started::Left(work) => work,
                Started::Ended(end) => {
                    self.clocks.ended(place, &end);
                    return Ok(Given { task: None, end });
                }
            }
        } else {
            Work::Waiting(self.kept(operation)?)
        };
        let end = begin.end();
        let task = self.tasks.add(place, &before, begin, work);
        if let Some(event) = event {
            self.streams.will_record(event, task)?;
        }
        self.start_threads();
        wake();
        Ok(Given { task: Some(task), end })
    }

    /// A graph: each step after those that it depends on, and what comes next after all.
    fn give_steps(&mut self, place: Place, steps: Vec<Step>, before: &[u64], begin: Begin) -> Outcome<Given> {
        self.clocks.branch();
        let mut tasks: HashMap<usize, (Vec<u64>, End)> = HashMap::new();
        let (mut all, mut latest) = (before.to_vec(), begin.after.clone());
        for step in steps {
            let given = || step.after.iter().filter_map(|node| tasks.get(node));
            let mut after: Vec<u64> = given().flat_map(|(tasks, _)| tasks).copied().collect();
            let mut end = given().fold(begin.after.clone(), |all, (_, end)| all.and(end));
            if step.after.is_empty() {
                after = before.to_vec();
            }
            if step.enabled {
                let given = self.give(place, step.operation, after, begin.clone().and_after(&end))?;
                (after, end) = (given.task.into_iter().collect(), given.end);
            }
            all.extend(&after);
            latest = latest.and(&end);
            tasks.insert(step.node, (after, end));
        }
        self.give(place, StreamOp::Empty, all, begin.and_after(&latest))
    }

    /// Starts an operation that has nothing before it.
    fn start(&mut self, operation: StreamOp, begin: &Begin) -> Outcome<Started> {
        self.begin_use();
        let started = self.start_unwatched(operation, begin);
        if !matches!(started, Ok(Started::Left(Work::Running(_)))) {
            self.end_use();
        }
        started
    }

    fn start_unwatched(&mut self, operation: StreamOp, begin: &Begin) -> Outcome<Started> {
        match operation {
            StreamOp::Kernel(launch) => Ok(match self.launch(&launch, begin)? {
                Launched::Ended(end) => Started::Ended(end),
                Launched::InFlight(of) => Started::Left(Work::Running(of)),
            }),
            StreamOp::Host { .. } => Ok(Started::Left(Work::Waiting(operation))),
            StreamOp::WaitValue(wait) if !self.has_value(&wait)? => Ok(Started::Left(Work::Waiting(operation))),
            operation => self.run(&operation, begin).map(Started::Ended),
        }
    }

    /// An operation that is done later: what it copies of memory that the program may change by then is copied now.
    fn kept(&mut self, operation: StreamOp) -> Outcome<StreamOp> {
        match operation {
            StreamOp::Copy(copy) | StreamOp::SymbolCopy { copy, .. } if self.is_pageable(copy.from.start) => {
                Ok(StreamOp::Staged { bytes: copy.gather()?, copy })
            }
            operation => Ok(operation),
        }
    }

    /// Runs a share of a task, the one whose turn it is.
    fn turn(&mut self) -> Turn {
        if working().is_err() {
            self.tasks.clear();
            return Turn::Idle;
        }
        let last = self.tasks.turn;
        let (mut found, mut poll) = (None, false);
        for number in self.tasks.ready.range(last + 1..).chain(self.tasks.ready.range(..=last)) {
            match self.tasks.tasks.get(number).map(|task| &task.work) {
                Some(Work::Running(_)) => found = Some(*number),
                Some(Work::Waiting(StreamOp::WaitValue(wait))) => {
                    // One whose value cannot be read any more gives its error.
                    if self.has_value(wait) == Ok(false) { poll = true } else { found = Some(*number) }
                }
                Some(Work::Waiting(StreamOp::Host { .. })) | Some(Work::Called) | None => {}
                Some(Work::Waiting(_)) => found = Some(*number),
            }
            if found.is_some() {
                break;
            }
        }
        let Some(number) = found else { return if poll { Turn::Poll } else { Turn::Idle } };
        self.tasks.turn = number;
        let alone = self.tasks.ready.len() == 1;
        let Some(task) = self.tasks.tasks.get_mut(&number) else { return Turn::Done };
        let (place, begin) = (task.place, task.begin.clone());
        let outcome = match std::mem::replace(&mut task.work, Work::Called) {
            Work::Running(mut of) => {
                let instructions = match of.flight.threads() {
                    _ if alone => LONG_TURN,
                    1 => TURN,
                    _ => DIVIDED_TURN,
                };
                let share = Share { instructions, interrupt: Some(&WAITING) };
                self.begin_use();
                let ended = self.advance(&mut of, share);
                if !matches!(ended, Ok(None)) {
                    self.end_use();
                }
                if matches!(ended, Ok(None)) {
                    self.watch(number, &mut of);
                } else {
                    self.collection.journals.set_running(&of.kernel.name, false);
                }
                ended.map(|end| end.map_or_else(|| Started::Left(Work::Running(of)), Started::Ended))
            }
            Work::Waiting(StreamOp::Record(event)) => {
                self.streams.recorded(event, number, begin.end());
                Ok(Started::Ended(begin.end()))
            }
            Work::Waiting(operation) => self.start(operation, &begin),
            Work::Called => Ok(Started::Ended(begin.end())),
        };
        let outcome = match (outcome, self.tasks.tasks.get_mut(&number)) {
            (Ok(Started::Left(work)), Some(task)) => {
                task.work = work;
                return Turn::Done;
            }
            (Ok(Started::Left(_)), None) => Ok(begin.end()),
            (Ok(Started::Ended(end)), _) => {
                self.clocks.ended(place, &end);
                Ok(end)
            }
            (Err(status), _) => Err(status),
        };
        self.tasks.finish(number, outcome);
        Turn::Done
    }

    /// Says once of a kernel that it seems to wait for what never comes.
    fn watch(&self, number: u64, of: &mut InFlight) {
        if !of.seems_stuck(self.tasks.awaited.map_or(Duration::ZERO, |since| since.elapsed())) {
            return;
        }
        let stream = self.tasks.tasks.get(&number).map_or(LEGACY, |task| task.place.0);
        stderr_line!(
            "wavetap: kernel {} of {} has executed {} wave-instructions and its waves go round in loops: they wait for \
                what has not come for {} s; {}; {}. It is ended when it has executed {} (--fuel)",
            of.name(),
            stream_name(stream),
            of.executed(),
            of.stuck_for().as_secs(),
            self.tasks.host(),
            self.tasks.others(number),
            of.fuel(),
        );
    }

    /// Says once of streams that wait for values that they have done so for long, while nothing else runs.
    fn watch_values(&mut self, quiet: Duration) {
        if self.tasks.told || quiet < if self.tasks.waiting.is_empty() { STUCK_ALONE } else { STUCK } {
            return;
        }
        self.tasks.told = true;
        for number in &self.tasks.ready {
            if let Some(Task { place, work: Work::Waiting(StreamOp::WaitValue(wait)), .. }) =
                self.tasks.tasks.get(number)
            {
                stderr_line!(
                    "wavetap: {} has waited for {} s for {}, which are {:#x}; {}; {}",
                    stream_name(place.0),
                    quiet.as_secs(),
                    wait.name(),
                    self.value(wait).unwrap_or_default(),
                    self.tasks.host(),
                    self.tasks.others(*number),
                );
            }
        }
    }

    /// Starts the threads that run tasks, once in a process.
    fn start_threads(&mut self) {
        let process = std::process::id();
        if self.tasks.process == Some(process) {
            return;
        }
        self.tasks.process = Some(process);
        for (name, run) in [("wavetap-streams", run_tasks as fn()), ("wavetap-calls", run_calls)] {
            if let Err(error) = thread::Builder::new().name(name.into()).spawn(run) {
                stderr_line!("wavetap: streams cannot be run: {error}");
                std::process::abort();
            }
        }
    }

    /// A function of the program that was called has returned; it takes no modelled time. It may have told the program
    /// what has been done.
    fn returned(&mut self, number: u64) {
        let Some(task) = self.tasks.tasks.get(&number) else { return };
        let (place, end) = (task.place, task.begin.end());
        self.clocks.ended(place, &end);
        self.clocks.seen(&End { cycle: 0, ..end.clone() });
        self.tasks.finish(number, Ok(end));
    }

    /// The program has seen that a stream has done everything that it was given.
    pub(crate) fn seen_stream(&mut self, stream: *mut c_void) -> Outcome {
        let place = self.streams.place(stream)?;
        let end = if place.0 == LEGACY { self.clocks.end_before(place) } else { self.clocks.end_of(place) };
        self.seen(&end);
        Ok(())
    }

    /// The program has seen that something has ended.
    pub(crate) fn seen(&mut self, end: &End) {
        self.begin_use();
        self.clocks.seen(end);
        if self.tasks.tasks.is_empty() && self.clocks.forget() {
            self.check.iter_mut().for_each(|check| check.accesses.clear());
            self.uses_host = false;
        }
        if self.uses_host {
            self.end_use();
        }
    }

    /// The next function of the program to call.
    fn next_call(&mut self) -> Option<(u64, HostCall, usize)> {
        let tasks = &mut self.tasks.tasks;
        self.tasks.ready.iter().find_map(|number| {
            let work = &mut tasks.get_mut(number)?.work;
            let Work::Waiting(StreamOp::Host { call, data }) = *work else { return None };
            *work = Work::Called;
            Some((*number, call, data))
        })
    }
}

/// A stream in words.
fn stream_name(stream: usize) -> String {
    if stream == LEGACY { "the default stream".into() } else { format!("stream {stream:#x}") }
}

/// Runs tasks until the program ends.
fn run_tasks() {
    let mut quiet: Option<Instant> = None;
    loop {
        let mut runtime = runtime();
        match runtime.turn() {
            Turn::Done => quiet = None,
            Turn::Idle => {
                quiet = None;
                drop(CHANGED.wait(runtime));
                continue;
            }
            Turn::Poll => {
                let since = *quiet.get_or_insert_with(Instant::now);
                runtime.watch_values(since.elapsed());
                drop(CHANGED.wait_timeout(runtime, POLL));
                continue;
            }
        }
        // Calls that wait for tasks have to see that what they wait for has been done.
        let awaited = !runtime.tasks.waiting.is_empty() && runtime.tasks.running().next().is_some();
        drop(runtime);
        // The lock is not fair: who waits for it gets it first, and keeps it for some more calls.
        if awaited || WAITING.load(Ordering::Relaxed) > 0 {
            thread::sleep(REST);
        }
    }
}

/// Calls functions of the program until it ends.
fn run_calls() {
    loop {
        let mut locked = runtime();
        let Some((number, call, data)) = locked.next_call() else {
            drop(CHANGED.wait(locked));
            continue;
        };
        drop(locked);
        CALLING.set(Some(number));
        let data = data as *mut c_void;
        match call {
            HostCall::Plain(function) => function(data),
            HostCall::OfStream(function, stream) => function(stream as *mut c_void, SUCCESS, data),
        }
        runtime().returned(number);
    }
}

thread_local! {
    /// The task whose function this thread calls, if that is what it does.
    static CALLING: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Waits while there are such tasks. What went wrong with a task is told the first who waits. A function that a stream
/// calls cannot wait for streams, as in HIP: other functions are called after it.
fn wait_while(mut is_there: impl FnMut(&Tasks) -> bool) -> Outcome {
    let mut runtime = runtime();
    if is_there(&runtime.tasks) {
        if CALLING.get().is_some() {
            stderr_line!(
                "wavetap: {}: a function that a stream calls waits for streams, which HIP does not allow",
                called_now()
            );
            return Err(NOT_SUPPORTED);
        }
        let call = called_now();
        runtime.tasks.waiting.push(call);
        runtime.tasks.awaited.get_or_insert_with(Instant::now);
        while working().is_ok() && is_there(&runtime.tasks) {
            runtime = CHANGED.wait(runtime).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        let waiting = &mut runtime.tasks.waiting;
        if let Some(own) = waiting.iter().position(|other| *other == call) {
            waiting.swap_remove(own);
        }
        if waiting.is_empty() {
            runtime.tasks.awaited = None;
        }
    }
    working()?;
    runtime.tasks.failure.take().map_or(Ok(()), Err)
}

/// Waits until a task has been done.
pub(crate) fn wait_for(task: u64) -> Outcome {
    wait_while(|tasks| tasks.has(task) && CALLING.get() != Some(task))
}

/// Waits until an operation has been done that a stream was given.
pub(crate) fn wait_for_given(stream: *mut c_void, given: Given) -> Outcome {
    let Some(task) = given.task else {
        runtime().seen(&given.end);
        return Ok(());
    };
    wait_for(task)?;
    let mut runtime = runtime();
    let place = runtime.streams.place(stream)?;
    let end = runtime.clocks.end_of(place);
    runtime.seen(&end);
    Ok(())
}

/// Waits until all has been done that was submitted before.
pub(crate) fn wait_for_all() -> Outcome {
    let numbers = runtime().tasks.numbers;
    let own = CALLING.get();
    wait_while(|tasks| tasks.tasks.keys().find(|task| Some(**task) != own).is_some_and(|first| *first <= numbers))?;
    let mut runtime = runtime();
    let latest = runtime.clocks.latest();
    runtime.seen(&latest);
    Ok(())
}

/// Waits until a stream has done what was submitted before; the legacy default stream waits for the blocking ones.
pub(crate) fn wait_for_stream(stream: *mut c_void) -> Outcome {
    let before = {
        let mut runtime = runtime();
        match runtime.streams.place(stream)? {
            (LEGACY, blocking) => runtime.tasks.before((LEGACY, blocking)),
            (stream, _) => runtime.tasks.last.get(&stream).map(|(task, _)| *task).into_iter().collect(),
        }
    };
    wait_while(|tasks| before.iter().any(|task| tasks.has(*task) && CALLING.get() != Some(*task)))?;
    runtime().seen_stream(stream)
}

/// Does an operation in the order of a stream, or makes it a task.
pub(crate) fn give(stream: *mut c_void, operation: StreamOp) -> Outcome<Given> {
    working()?;
    let calls = matches!(operation, StreamOp::Host { .. } | StreamOp::Steps(_));
    let mut runtime = runtime();
    let place = runtime.streams.place(stream)?;
    let before = runtime.tasks.before(place);
    // A default stream of a thread is none of those that were created.
    if place.0 != LEGACY && !runtime.streams.streams.contains_key(&place.0) {
        runtime.clocks.branch();
    }
    let mut begin = runtime.clocks.begin(place);
    let finds = runtime.check.as_ref().is_some_and(|check| check.wants(Tool::Init));
    if (finds || runtime.clocks.keeps_order()) && !matches!(operation, StreamOp::Kernel(_)) {
        begin.call = Some(Arc::new(RawCall::here()));
    }
    let given = runtime.give(place, operation, before, begin)?;
    let Some(number) = given.task.filter(|_| calls) else { return Ok(given) };
    let until = Instant::now() + CALL;
    while runtime.tasks.has(number) && runtime.tasks.running().next().is_none() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(given);
        }
        runtime = CHANGED.wait_timeout(runtime, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
    }
    if runtime.tasks.has(number) {
        return Ok(given);
    }
    Ok(Given { task: None, end: runtime.clocks.end_of(place) })
}
