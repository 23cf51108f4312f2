//! What a rule about wait states is: a producer, a consumer, and the issue slots needed between them.

use super::instruction_facts::Facts;
use wavetap_amdgpu::{Inst, WaitStates};
use wavetap_analysis::dataflow::RegSet;

/// Issue slots needed between a producer and a consumer, if a rule applies to the two.
pub(crate) type Needed = fn(&Pair<'_>) -> Option<u32>;

/// A rule about a producer and a consumer.
pub(crate) struct WaitRule {
    /// What happens, as a finding says it.
    pub(crate) what: &'static str,
    /// What every producer is, among other things,
    pub(crate) producer: Facts,
    /// and every consumer: others are not checked.
    pub(crate) consumer: Facts,
    /// The most slots that it needs.
    pub(crate) most: u32,
    /// Whether it applies, and how many slots it needs, is said by this alone.
    pub(crate) needed: Needed,
}

impl WaitRule {
    pub(crate) const fn new(
        what: &'static str,
        producer: Facts,
        consumer: Facts,
        most: u32,
        needed: Needed,
    ) -> WaitRule {
        WaitRule { what, producer, consumer, most, needed }
    }
}

/// An instruction with its register sets.
pub(crate) struct Known<'a> {
    pub(crate) inst: &'a Inst,
    pub(crate) reads: RegSet,
    pub(crate) writes: RegSet,
}

impl std::ops::Deref for Known<'_> {
    type Target = Inst;

    fn deref(&self) -> &Inst {
        self.inst
    }
}

/// Two instructions of which one comes after the other, on a target with these rules.
pub(crate) struct Pair<'a> {
    pub(crate) producer: &'a Known<'a>,
    pub(crate) consumer: &'a Known<'a>,
    pub(crate) states: WaitStates,
    /// The oldest generation has a rule less.
    pub(crate) indexed_by_m0: bool,
}

impl Pair<'_> {
    /// gfx940 and its relatives forward fewer results in hardware.
    pub(crate) fn strict(&self) -> bool {
        matches!(self.states, WaitStates::Gfx94x | WaitStates::Gfx950)
    }
}

/// Facts that are there together.
pub(crate) const fn all<const N: usize>(facts: [Facts; N]) -> Facts {
    let (mut union, mut index) = (Facts::empty(), 0);
    while index < N {
        union = union.union(facts[index]);
        index += 1;
    }
    union
}

/// A number of slots if a condition is met.
pub(crate) fn if_met(met: bool, states: u32) -> Option<u32> {
    met.then_some(states)
}
