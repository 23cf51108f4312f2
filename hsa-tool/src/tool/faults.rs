//! What a memory access fault leaves: the GPU has stopped, no dispatch ends, and the runtime is about to end the
//! program. What kernels have found until then is in memory of the host.

use std::fmt::Write;

use wavetap::code_object::demangle;
use wavetap::collect::journals::replace;
use wavetap::profile::launches::NotCounted;
use wavetap::stderr_line;

use super::dispatches::InFlight;
use super::{State, Tool, complain};
use crate::hooks;
use crate::memory::AgentMemory;

/// Kernels that are named.
const NAMED: usize = 4;

impl Tool {
    /// Asks the runtime, once, to tell of faults.
    pub(super) fn listen(&self) {
        self.listening.call_once(|| hooks::listen(&self.api));
    }

    /// Keeps what dispatches in flight on a GPU have found, whose access to an address was a fault. Nothing is asked of
    /// the GPU.
    pub(crate) fn faulted(&self, agent: u64, address: u64) {
        let Some(mut state) = self.state_soon() else {
            complain("what kernels had found before a memory access fault is lost", &"the tool is in use");
            return;
        };
        let state = &mut *state;
        let stopped: Vec<InFlight> = state.in_flight.extract_if(.., |flight| flight.agent == agent).collect();
        if state.launches.is_none() && self.captures.is_none() {
            stderr_line!("wavetap: memory access fault at {address:#x}: {}", in_flight(state, &stopped));
        }
        let memory = AgentMemory::new(&self.api, agent);
        for InFlight { ticket, kernel, region, code, .. } in stopped {
            match state.session.find_at_fault(&memory, ticket) {
                Ok(place) => state.write(place.as_slice()),
                Err(error) => complain(&format!("what kernel {kernel} had found is lost"), &error),
            }
            let why = format!("its counts are lost: a memory access fault at {address:#x} ended the program before it");
            state.not_counted((&kernel, region.as_deref()), &code, (NotCounted::Faulted, why));
        }
        if let Some(path) = &self.settings.profile {
            let mut profile = state.session.collector().profile().clone();
            profile.set_ended(false);
            if let Err(error) = profile.to_json().and_then(|json| replace(path, &json)) {
                complain("the counts could not be written", &error);
            }
        }
    }
}

/// Which kernels were in flight, by name, and how to find out more.
fn in_flight(state: &State, stopped: &[InFlight]) -> String {
    if stopped.is_empty() {
        return "no kernel that is counted was in flight".to_owned();
    }
    let mut names: Vec<String> = stopped.iter().map(|flight| demangle(&flight.kernel).into_owned()).collect();
    names.dedup();
    let mut text = if names.len() == 1 { "in kernel " } else { "in one of the kernels " }.to_owned();
    text.push_str(&names[..names.len().min(NAMED)].join("; "));
    if names.len() > NAMED {
        let _ = write!(text, "; and {} more", names.len() - NAMED);
    }
    let checks = |flight: &InFlight| {
        let map = state.session.map(flight.object);
        map.is_ok_and(|map| map.kernels.iter().any(|kernel| kernel.checks_bounds()))
    };
    if !stopped.iter().any(checks) {
        text.push_str(" (wavetap check names the source line)");
    }
    text
}
