//! Who does what when: code objects at the same time, and what is complete is written in the order of the file
//! meanwhile.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::sources::Sources;
use wavetap_base::error::{Error, Kind, Result};
use wavetap_object::emit::{Kept, Merger};

/// What is kept of the map of a code object that is selected, and its new bytes if a kernel was instrumented, kept
/// until the others of its bundle are there.
pub(super) type KeptOutcome<'d, M> = Option<(M, Option<Kept<'d>>)>;

/// The work that is left and what was done.
pub(super) struct Order<'o, 'd, M> {
    sources: &'o Sources<'d>,
    /// The code objects that are written together.
    units: Vec<Range<usize>>,
    state: Mutex<State<'o, 'd, M>>,
}

struct State<'o, 'd, M> {
    /// Groups of code objects that were handed out.
    groups: usize,
    /// Of each code object, while it waits to be written.
    outcomes: Vec<Option<Result<KeptOutcome<'d, M>>>>,
    /// Units that were written.
    written: usize,
    /// Gone while somebody writes.
    merger: Option<Merger<'o, 'd>>,
    maps: Vec<M>,
    /// The first code object's error.
    wrong: Option<Error>,
    /// Why nothing more is written.
    unwritten: Option<Error>,
}

impl<'o, 'd, M> Order<'o, 'd, M> {
    pub(super) fn new(sources: &'o Sources<'d>, merger: Merger<'o, 'd>) -> Order<'o, 'd, M> {
        let outcomes = (0..sources.count()).map(|_| None).collect();
        let merger = Some(merger);
        let state = State { groups: 0, outcomes, written: 0, merger, maps: Vec::new(), wrong: None, unwritten: None };
        Order { sources, units: sources.units(), state: Mutex::new(state) }
    }

    /// A panic of another thread ends the rewrite by itself.
    fn state(&self) -> MutexGuard<'_, State<'o, 'd, M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next group of code objects to be rewritten, of `count`; none if an output that cannot be
    /// written makes it useless.
    pub(super) fn next_group(&self, count: usize) -> Option<usize> {
        let mut state = self.state();
        let useless = state.unwritten.as_ref().is_some_and(|error| error.kind() == Kind::Io);
        let next = (state.groups < count && !useless).then_some(state.groups);
        state.groups += 1;
        next
    }

    /// A code object is done. Whoever completes a unit writes it, and what others complete while that takes.
    pub(super) fn done(&self, number: usize, outcome: Result<KeptOutcome<'d, M>>) {
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
                    Ok(Some((map, new))) => {
                        maps.push(map);
                        replaced.extend(new.map(|new| (number, new)));
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
        let Some((bundle, _)) = self.sources.place(*first) else {
            return replaced.iter().try_for_each(|(_, new)| merger.code_object(new));
        };
        let mut contents = self.sources.contents(bundle);
        for (number, new) in replaced {
            if let Some((_, entry)) = self.sources.place(number) {
                contents[entry] = new;
            }
        }
        merger.bundle(bundle, &contents)
    }

    /// Everything was done: completes the output.
    pub(super) fn finish(self) -> Result<Vec<M>> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.wrong.or(state.unwritten) {
            return Err(error);
        }
        state.merger.ok_or_else(|| Error::internal("an output that is still written"))?.finish()?;
        Ok(state.maps)
    }
}
