//! An in-order commit queue: code objects are rewritten in any order, and written in the order of the file as soon as
//! all of a bundle are there.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Kept, Merger, Sources};
use crate::offload_bundle::EntryPlace;
use wavetap_base::error::{Error, Kind, Result};

/// What became of a code object.
#[derive(Debug)]
pub struct Committed<'d, M> {
    /// What is to be told of it.
    pub map: M,
    /// Its new bytes, if it changed, until the others of its bundle are there.
    pub bytes: Option<Kept<'d>>,
}

/// The work that is left and what was done. `M` is what is told of each code object.
pub struct CommitQueue<'o, 'd, M> {
    sources: &'o Sources<'d>,
    /// The code objects that are written together.
    units: Vec<Range<usize>>,
    state: Mutex<State<'o, 'd, M>>,
}

struct State<'o, 'd, M> {
    /// Groups of code objects that were handed out.
    groups: usize,
    /// Of each code object, while it waits to be written.
    outcomes: Vec<Option<Result<Option<Committed<'d, M>>>>>,
    /// Units that were written.
    written: usize,
    /// None while a thread writes.
    merger: Option<Merger<'o, 'd>>,
    maps: Vec<M>,
    /// The first code object's error.
    wrong: Option<Error>,
    /// Why nothing more is written.
    unwritten: Option<Error>,
}

impl<'o, 'd, M> CommitQueue<'o, 'd, M> {
    /// Nothing is written yet.
    #[must_use]
    pub fn new(sources: &'o Sources<'d>, merger: Merger<'o, 'd>) -> CommitQueue<'o, 'd, M> {
        let outcomes = (0..sources.count()).map(|_| None).collect();
        let merger = Some(merger);
        let state = State { groups: 0, outcomes, written: 0, merger, maps: Vec::new(), wrong: None, unwritten: None };
        CommitQueue { sources, units: sources.units(), state: Mutex::new(state) }
    }

    /// A panic of another thread ends the rewrite by itself.
    fn state(&self) -> MutexGuard<'_, State<'o, 'd, M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the number of the next group of code objects to be rewritten, of `count`; none if an output that cannot be
    /// written makes it useless.
    pub fn next_group(&self, count: usize) -> Option<usize> {
        let mut state = self.state();
        let useless = state.unwritten.as_ref().is_some_and(|error| error.kind() == Kind::Io);
        let next = (state.groups < count && !useless).then_some(state.groups);
        state.groups += 1;
        next
    }

    /// A code object is done. Whoever completes a unit writes it, and what others complete while that takes.
    pub fn done(&self, number: usize, outcome: Result<Option<Committed<'d, M>>>) {
        self.state().outcomes[number] = Some(outcome);
        loop {
            let mut state = self.state();
            let Some(unit) = self.units.get(state.written) else { return };
            if state.outcomes[unit.clone()].iter().any(Option::is_none) {
                return;
            }
            let Some(mut merger) = state.merger.take() else { return };
            let outcomes: Vec<_> = state.outcomes[unit.clone()].iter_mut().filter_map(Option::take).collect();
            let in_vain = state.wrong.is_some() || state.unwritten.is_some();
            drop(state);
            let (mut maps, mut replaced, mut wrong) = (Vec::new(), Vec::new(), None);
            for (number, outcome) in unit.clone().zip(outcomes) {
                match outcome {
                    Ok(None) => {}
                    Ok(Some(Committed { map, bytes })) => {
                        maps.push(map);
                        replaced.extend(bytes.map(|bytes| (number, bytes)));
                    }
                    Err(error) => wrong = wrong.or(Some(error)),
                }
            }
            let written = if in_vain || wrong.is_some() { Ok(()) } else { self.write(&mut merger, replaced) };
            let mut state = self.state();
            state.maps.append(&mut maps);
            state.wrong = state.wrong.take().or(wrong);
            state.unwritten = state.unwritten.take().or(written.err());
            state.merger = Some(merger);
            state.written += 1;
        }
    }

    /// Writes a unit in which these code objects have new bytes.
    fn write(&self, merger: &mut Merger<'o, 'd>, replaced: Vec<(usize, Kept<'d>)>) -> Result<()> {
        let Some((first, _)) = replaced.first() else { return Ok(()) };
        let Some(EntryPlace { bundle, .. }) = self.sources.place(*first) else {
            return replaced.iter().try_for_each(|(_, new)| merger.code_object(new));
        };
        let mut contents = self.sources.contents(bundle);
        for (number, new) in replaced {
            if let Some(EntryPlace { entry, .. }) = self.sources.place(number) {
                contents[entry] = new;
            }
        }
        merger.bundle(bundle, &contents)
    }

    /// Everything was done: completes the output. Returns what is told of the code objects, in the order of the file.
    ///
    /// # Errors
    /// The first code object's, or that of writing.
    pub fn finish(self) -> Result<Vec<M>> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.wrong.or(state.unwritten) {
            return Err(error);
        }
        state.merger.ok_or_else(|| Error::internal("an output that is still written"))?.finish()?;
        Ok(state.maps)
    }
}
