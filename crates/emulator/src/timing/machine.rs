//! The numbers of a target that the model takes, with what the user put in their place.

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{Latency, MachineFact, Target};

use super::chance::Chance;
use crate::trace::timing::{LatencyClass, Timing};

/// The machine that is modelled.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    target: Target,
    facts: [u32; MachineFact::ALL.len()],
    /// Cycles of an issue slot.
    pub interval: u64,
    /// Cycles that a 32-bit vector operation keeps its SIMD.
    pub passes: u64,
    latency: [u64; Latency::ALL.len()],
    /// Cycles until the next instruction after a branch that is not taken.
    pub not_taken: u64,
    pub gl1_hit: u64,
    pub l2_hit: u64,
    pub mall_hit: u64,
    pub memory: u64,
    pub store: u64,
    /// From the issue of a store until the counter that a wait reads has counted it down: L2's acknowledgement comes
    /// from as far as the data of a load. The end of a wave does not wait for it.
    pub acknowledged: u64,
    /// The first vector and the first scalar access to a page.
    pub first_touch: [u64; 2],
    pub atomic: u64,
    /// The user has set how long matrix operations take.
    pub fixed_matrix: bool,
    /// Latencies of single instructions, by address.
    pub fixed: FxHashMap<u64, u64>,
    pub chance: Option<Chance>,
}

impl Machine {
    pub(crate) fn target(&self) -> Target {
        self.target
    }

    pub(crate) fn new(target: Target, timing: &Timing) -> Machine {
        // Those of the board, if it is one of this target's.
        let board = timing.board.filter(|board| board.target == target.name());
        let facts = MachineFact::ALL.map(|fact| match board {
            Some(board) => board.machine(fact),
            None => target.machine(fact).typical,
        });
        let fact = |fact: MachineFact| u64::from(facts[fact as usize]);
        let mut machine = Machine {
            target,
            facts,
            interval: fact(MachineFact::IssueInterval),
            passes: u64::from(target.wave_size()).div_ceil(fact(MachineFact::ValuLanes)),
            latency: Latency::ALL.map(|class| {
                let range = target.latency(class);
                match class {
                    Latency::Vmem => fact(MachineFact::L1Hit),
                    Latency::Smem => fact(MachineFact::ScalarHit),
                    // The rest of the range is waves that come late, which is modelled.
                    Latency::Barrier => range.min.into(),
                    _ => range.typical.into(),
                }
            }),
            not_taken: target.latency(Latency::Branch).min.into(),
            gl1_hit: fact(MachineFact::Gl1Hit),
            l2_hit: fact(MachineFact::L2Hit),
            mall_hit: fact(MachineFact::MallHit),
            memory: fact(MachineFact::Memory),
            store: fact(MachineFact::Store),
            acknowledged: fact(MachineFact::Store).max(fact(MachineFact::L2Hit)),
            first_touch: [MachineFact::FirstTouch, MachineFact::FirstTouchScalar].map(fact),
            atomic: fact(MachineFact::Atomic),
            fixed_matrix: false,
            fixed: FxHashMap::default(),
            chance: timing.chance.map(Chance),
        };
        for changed in &timing.latencies {
            let cycles = u64::from(changed.cycles);
            match changed.class {
                LatencyClass::At(address) => {
                    machine.fixed.insert(address, cycles);
                }
                LatencyClass::Gl1 => machine.gl1_hit = cycles,
                LatencyClass::L2 => machine.l2_hit = cycles,
                LatencyClass::Mall => machine.mall_hit = cycles,
                LatencyClass::Memory => machine.memory = cycles,
                LatencyClass::Store => (machine.store, machine.acknowledged) = (cycles, cycles),
                LatencyClass::Page => machine.first_touch = [cycles; 2],
                LatencyClass::Atomic => machine.atomic = cycles,
                LatencyClass::Instruction(class) => {
                    machine.latency[class as usize] = cycles;
                    match class {
                        Latency::Branch => machine.not_taken = cycles,
                        Latency::Mfma => machine.fixed_matrix = true,
                        _ => {}
                    }
                }
            }
        }
        machine
    }

    pub(crate) fn fact(&self, fact: MachineFact) -> u64 {
        self.facts[fact as usize].into()
    }

    /// What an operation of a class takes by chance, if that is how time is modelled.
    pub(crate) fn drawn(&self, class: Latency, address: u64, wave: u64, nth: u64) -> Option<u64> {
        Some(self.chance?.cycles(self.target.latency(class), address, wave, nth))
    }

    pub(crate) fn latency(&self, class: Latency) -> u64 {
        self.latency[class as usize]
    }

    /// Cycles by which a wave's end is before the acknowledgement of its last store.
    pub(crate) fn acknowledgement(&self) -> u64 {
        self.acknowledged.saturating_sub(self.store)
    }

    /// Bytes of a line of the vector L1 cache.
    pub(crate) fn l1_line(&self) -> u64 {
        self.target.l1_line_bytes().into()
    }

    /// Cycles that a 32-bit vector operation keeps its SIMD in a wave of the usual size: what latencies are for.
    pub(crate) fn usual_passes(&self) -> u64 {
        self.passes.min(self.interval)
    }

    /// The first cycle from `at` on in which a SIMD issues.
    pub(crate) fn slot(&self, at: u64) -> u64 {
        at.next_multiple_of(self.interval)
    }
}
