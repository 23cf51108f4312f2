//! What the verifier shares with the rewriter, beside what the emulator did: which operations are outstanding, and where
//! calls and jumps through registers go. A mistake there would be made on both sides, so that the verifier could not
//! find it; the emulator shares neither.

use std::collections::BTreeSet;

use wavetap::cfg::Cfg;
use wavetap::dataflow::{Operation, Waits};
use wavetap::isa::Counter;
use wavetap::kernel::{Body, CallTarget, Flow};

use super::compare::{Place, Seen, Subject, place_of, seen_by};

/// What was compared.
#[derive(Default, Clone, Copy)]
pub struct SharedTally {
    /// Operations that were outstanding, by instruction and counter.
    pub outstanding: u64,
    /// Calls and jumps through registers that were executed: to a place that was resolved, back to a caller, and those
    /// that are listed as unknown.
    pub resolved: u64,
    pub returns: u64,
    pub unknown: u64,
}

impl SharedTally {
    pub fn add(&mut self, other: SharedTally) {
        self.outstanding += other.outstanding;
        self.resolved += other.resolved;
        self.returns += other.returns;
        self.unknown += other.unknown;
    }
}

impl Subject<'_> {
    /// Whatever was outstanding is said to be: what the model takes for complete was complete.
    pub fn outstanding_of(&self, body: &Body, cfg: &Cfg, seen: &Seen, complain: &mut impl FnMut(String)) -> u64 {
        let mut compared = 0;
        Waits::compute(body, cfg, &self.waits).for_each_pending(|id, pending: &[(Counter, Operation)]| {
            let address = body.address(id);
            let of_instruction = seen.outstanding.range((address, String::new())..(address + 1, String::new()));
            for ((_, counter), operations) in of_instruction {
                let said: BTreeSet<Place> = pending
                    .iter()
                    .filter(|(of, _)| of.name() == counter)
                    .map(|(_, operation)| place_of(body, *operation))
                    .collect();
                let was: BTreeSet<Place> = operations.iter().map(|place| seen_by(body, *place)).collect();
                for place in was.difference(&said) {
                    complain(format!(
                        "{place:x?} is outstanding in {counter} before {} at {address:#x}, and is said to be complete",
                        body.inst(id).name()
                    ));
                }
                compared += was.len() as u64;
            }
        });
        compared
    }

    /// Every call, and every jump through registers, went to a place that is listed, or is listed as unknown.
    pub fn jumps_of(&self, body: &Body, seen: &Seen, complain: &mut impl FnMut(String)) -> SharedTally {
        let mut tally = SharedTally::default();
        for (&from, targets) in &seen.jumps {
            let Some(id) = body.at(from) else { continue };
            for &to in targets {
                let listed = match body.flow(id) {
                    Flow::Call(CallTarget::Unknown) | Flow::TailCall(CallTarget::Unknown) | Flow::IndirectJump => {
                        tally.unknown += 1;
                        continue;
                    }
                    Flow::Call(CallTarget::Known(function)) | Flow::TailCall(CallTarget::Known(function)) => {
                        tally.resolved += 1;
                        function == to
                    }
                    Flow::Jump(place) => {
                        tally.resolved += 1;
                        body.address(place) == to
                    }
                    Flow::Return => {
                        tally.returns += 1;
                        self.returns_to(to)
                    }
                    Flow::Next | Flow::Branch(_) | Flow::End => false,
                };
                if !listed {
                    let (name, flow) = (body.inst(id).name(), body.flow(id));
                    complain(format!("{name} at {from:#x} went to {to:#x}, and is said to be {flow:?}"));
                }
            }
        }
        tally
    }

    /// Whether an instruction follows a call.
    fn returns_to(&self, address: u64) -> bool {
        let follows = |body: &Body| {
            body.calls().any(|(id, _)| matches!(body.flow(id), Flow::Call(_)) && body.end_address(id) == address)
        };
        self.program.bodies().iter().any(follows)
    }
}
