//! Stores of the other waves of a workgroup that have not been waited for.
//!
//! Waves of a workgroup with a common first-level cache see each other's stores in the order of issue, other waves only
//! after a wait. So while one wave runs, the held stores of the others are moved here; before it accesses a range,
//! those that touch the range are published. Invariant: of one wave, stores are published in the order of issue, so
//! publishing one publishes all before it.

use super::in_flight::{Effect, Space, publish_if};
use crate::address::range::{Range, overlap};
use crate::fault::FaultKind;
use crate::memory::View;

/// What the other waves of a workgroup have stored and not waited for, while one of them runs.
#[derive(Default)]
pub(crate) struct Neighbours {
    /// By wave.
    effects: Vec<Vec<Effect>>,
}

/// Makes a wave's stores to memory visible up to the last that touches a range.
pub(crate) fn publish_touching(
    effects: &mut Vec<Effect>,
    range: Range,
    memory: &View,
    lds: &mut [u8],
) -> Result<(), FaultKind> {
    let touches = |effect: &Effect| effect.space == Space::Global && overlap(effect.range(), range);
    let Some(last) = effects.iter().rev().find(|effect| touches(effect)).map(|effect| effect.id) else { return Ok(()) };
    publish_if(effects, &mut Vec::new(), memory, lds, |effect| effect.space == Space::Global && effect.id <= last)
}

impl Neighbours {
    /// Exchanges the stores of all waves but the one that runs with those that are held here.
    pub(crate) fn swap<'e>(&mut self, waves: impl ExactSizeIterator<Item = &'e mut Vec<Effect>>, running: usize) {
        self.effects.resize_with(waves.len(), Vec::new);
        let others = waves.zip(&mut self.effects).enumerate().filter(|(n, _)| *n != running);
        others.for_each(|(_, (of_wave, effects))| std::mem::swap(of_wave, effects));
    }

    /// Makes visible what touches a range, and what the same wave stored before.
    pub(crate) fn publish_touching(&mut self, range: Range, memory: &View, lds: &mut [u8]) -> Result<(), FaultKind> {
        self.effects.iter_mut().try_for_each(|effects| publish_touching(effects, range, memory, lds))
    }

    /// Makes visible what was stored before the last barrier.
    pub(crate) fn publish_before_barrier(&mut self, memory: &View, lds: &mut [u8]) -> Result<(), FaultKind> {
        self.effects
            .iter_mut()
            .try_for_each(|effects| publish_if(effects, &mut Vec::new(), memory, lds, |effect| effect.before_barrier))
    }
}
