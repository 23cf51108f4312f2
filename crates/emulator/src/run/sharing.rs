//! What a worker shares with others: decoded code, places for waves, global wave sync.

use super::code::Code;
use super::plan::Plan;
use super::worker::Worker;
use crate::state::wave::{Status, Wave};
use crate::strict;

impl Worker<'_> {
    /// The same code for another thread.
    pub(crate) fn fork_code(&self) -> Code {
        self.code.fork()
    }

    /// Places for waves that others may have: all but so many.
    pub(crate) fn spare_places(&mut self, keep: usize) -> Vec<usize> {
        self.free.split_off(self.free.len().min(keep))
    }

    pub(crate) fn take_places(&mut self, places: Vec<usize>) {
        self.free.extend(places);
    }

    /// Lets a wave go on that waits at global wave sync, if its request is granted.
    pub(super) fn at_gws(&mut self, plan: &Plan, wave: &mut Wave, group: Option<u32>) {
        let Some(ask) = wave.gws_request.filter(|_| wave.status == Status::AtGws) else { return };
        if let (Some(races), Some(group)) = (&mut self.races, group) {
            strict::global_races::before_gws(races, group, wave, &plan.launch);
        }
        wave.gws_request = self.shared.gws().request(ask);
        if wave.gws_request.is_none() {
            wave.status = Status::Running;
            if let (Some(races), Some(group)) = (&mut self.races, group) {
                strict::global_races::after_gws(races, group, wave);
            }
        }
    }
}
