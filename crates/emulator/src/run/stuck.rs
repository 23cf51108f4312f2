//! Workgroups that wait for others at global wave sync.

use std::thread;

use super::worker::{Stopped, Worker, Workgroup};
use crate::fault::stop::Stop;
use crate::fault::{Fault, FaultKind};
use crate::state::wave::{Status, Wave};

impl Worker<'_> {
    /// A workgroup waits at global wave sync: it is another one's turn. If all that run wait, one more is begun; if
    /// that cannot be, other workers have to release them, and if there are none, it is a fault.
    pub(crate) fn others_first(&mut self) -> Result<(), Fault> {
        let shared = self.shared;
        let mut gws = shared.gws();
        let mut may_go_on = |wave: &Wave| match wave.status {
            Status::AtGws => wave.gws_request.is_none_or(|ask| gws.request(ask).is_none()),
            Status::Running | Status::Yielding => true,
            Status::AtBarrier | Status::AtSplitBarrier | Status::Ended => false,
        };
        // Where no wave waits here, the workgroup's own barrier is next.
        let is_stuck = |group: &Workgroup| group.waves.iter().any(|wave| wave.status == Status::AtGws);
        if !self.running.iter().all(|group| is_stuck(group) && !group.waves.iter().any(&mut may_go_on)) {
            return Ok(());
        }
        let is_one_left = !self.window.is_empty() || shared.left() > 0;
        if is_one_left && self.free.len() >= shared.plan.waves_of([0; 3]) as usize {
            self.wanted = self.running.len() + 1;
            return Ok(());
        }
        let for_ever = gws.wait(&mut self.waits_since);
        drop(gws);
        let stuck = self.running.iter().flat_map(|group| &group.waves).find(|wave| wave.status == Status::AtGws);
        match stuck.filter(|_| for_ever) {
            Some(wave) => {
                let what = "every wave waits at global wave sync for more than there are, or than can run at once";
                let stop = Stop { kind: FaultKind::Undefined { what: what.into() }, lane: None };
                Err(self.fault(Stopped { stop, op: None, pc: wave.pc }, wave))
            }
            None => {
                thread::yield_now();
                Ok(())
            }
        }
    }
}
