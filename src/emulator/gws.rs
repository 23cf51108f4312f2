//! Global wave sync: barriers for waves of any workgroup of a dispatch, which `grid.sync()` of cooperative groups is compiled to on gfx9 and gfx10.
//!
//! A resource has a counter. A wave that comes to a barrier waits and counts it down; the one that finds it 0 lets all go and sets it to its own number, which
//! is one less than the waves that meet (Vega ISA guide, `DS_GWS_INIT`, `DS_GWS_BARRIER`). The driver shares out resources and sets them up before a cooperative
//! launch; here a resource that the dispatch has not set up itself begins with the number that the first wave brings.

use std::collections::BTreeMap;

use crate::isa::scalar;

use super::core::{Core, Status, Step, active, undefined};
use super::op::{Meaning, Op, Semantics};

/// Resources have numbers below this.
const RESOURCES: u32 = 64;
/// M0 has the first resource in these bits.
const BASE_SHIFT: u32 = 16;

/// What a wave asks of a resource; it waits until that is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// To set the counter.
    Init { resource: u32, number: u32 },
    /// To be let through the barrier.
    Barrier { resource: u32, number: u32 },
    /// To be told that the barrier has gone into another phase.
    Phase { resource: u32, phase: u64 },
}

/// One resource.
#[derive(Debug, Default)]
struct Resource {
    counter: Option<u32>,
    /// How often all have met.
    phase: u64,
}

/// The resources of a dispatch, and who of those that run it has nothing to do but to wait for the others.
#[derive(Debug)]
pub(super) struct Gws {
    resources: BTreeMap<u32, Resource>,
    /// Workers that have workgroups.
    workers: usize,
    /// Those of them whose workgroups all wait.
    waiting: usize,
    /// How often waves were let go: who waited before that has to look again.
    releases: u64,
}

impl Default for Gws {
    fn default() -> Gws {
        Gws { resources: BTreeMap::new(), workers: 1, waiting: 0, releases: 0 }
    }
}

impl Gws {
    /// Grants what a wave asks for, or else says what it waits for.
    pub(super) fn ask(&mut self, ask: Ask) -> Option<Ask> {
        let (Ask::Init { resource, .. } | Ask::Barrier { resource, .. } | Ask::Phase { resource, .. }) = ask;
        let state = self.resources.entry(resource).or_default();
        match ask {
            Ask::Init { number, .. } => {
                state.counter = Some(number);
                None
            }
            Ask::Phase { phase, .. } => (state.phase == phase).then_some(ask),
            Ask::Barrier { number, .. } => {
                let counter = state.counter.get_or_insert(number);
                if *counter > 0 {
                    *counter -= 1;
                    return Some(Ask::Phase { resource, phase: state.phase });
                }
                *counter = number;
                state.phase += 1;
                self.releases += 1;
                self.waiting = 0;
                None
            }
        }
    }

    /// More workers begin.
    pub(super) fn join(&mut self, workers: usize) {
        self.workers += workers;
    }

    /// A worker has no workgroups any more.
    pub(super) fn leave(&mut self) {
        // One that was done already may be asked again.
        self.workers = self.workers.saturating_sub(1);
    }

    /// All workgroups of a worker wait, and it can begin no others; `since` is the worker's own memory of that. Tells whether nobody will ever go on.
    pub(super) fn wait(&mut self, since: &mut Option<u64>) -> bool {
        if *since != Some(self.releases) {
            *since = Some(self.releases);
            self.waiting += 1;
        }
        self.waiting >= self.workers
    }
}

/// Resource and number of an instruction: the number is that of the first active lane.
fn operands(core: &mut Core, op: &Op) -> Step<(u32, u32)> {
    if core.launch.strict {
        core.passed(core.wave.hazards.check_m0())?;
    }
    let resource = (op.inst.modifiers.offset as u32).wrapping_add(core.scalar(op, scalar::M0)? >> BASE_SHIFT) % RESOURCES;
    let Some(source) = op.inst.operands.iter().find_map(|operand| operand.reg()) else { return undefined("no data") };
    core.reading(op, source.file, source.first, 1)?;
    let Some(lane) = active(core.wave.exec()).next() else { return undefined(format!("{} without active lanes", op.inst.name())) };
    Ok((resource, core.file(source.file)[usize::from(source.first)][lane]))
}

fn init(core: &mut Core, op: &Op) -> Step {
    let (resource, number) = operands(core, op)?;
    ask(core, Ask::Init { resource, number })
}

fn barrier(core: &mut Core, op: &Op) -> Step {
    let (resource, number) = operands(core, op)?;
    ask(core, Ask::Barrier { resource, number })
}

fn ask(core: &mut Core, ask: Ask) -> Step {
    core.wave.asks = Some(ask);
    core.wave.status = Status::AtGws;
    Ok(())
}

/// The meaning of such an instruction.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    match name {
        "ds_gws_init" => Some((init, Semantics::Own)),
        "ds_gws_barrier" => Some((barrier, Semantics::Own)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_let_go_by_the_last_one() {
        let mut gws = Gws::default();
        let barrier = Ask::Barrier { resource: 3, number: 2 };
        let first = gws.ask(barrier);
        let second = gws.ask(barrier);
        assert_eq!(first, Some(Ask::Phase { resource: 3, phase: 0 }));
        assert_eq!((second, gws.ask(first.expect("it waits"))), (first, first));
        assert_eq!(gws.ask(Ask::Barrier { resource: 4, number: 0 }), None);
        assert_eq!(gws.ask(barrier), None);
        assert_eq!(gws.ask(first.expect("it waited")), None);
        // The next phase needs as many again.
        assert_eq!(gws.ask(barrier), Some(Ask::Phase { resource: 3, phase: 1 }));
        assert_eq!(gws.ask(Ask::Init { resource: 3, number: 0 }), None);
        assert_eq!(gws.ask(barrier), None);
    }

    #[test]
    fn nobody_goes_on_when_all_workers_wait() {
        let mut gws = Gws::default();
        gws.join(1);
        let (mut one, mut other) = (None, None);
        assert!(!gws.wait(&mut one) && !gws.wait(&mut one));
        assert_eq!(gws.ask(Ask::Barrier { resource: 0, number: 0 }), None);
        assert!(!gws.wait(&mut other));
        assert!(gws.wait(&mut one));
        gws.leave();
        assert!(gws.wait(&mut other));
    }
}
