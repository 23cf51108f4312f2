//! Which launches and calls have accessed memory, for those that race with them.

use std::collections::HashMap;
use std::sync::Arc;

use wavetap::emulator::{DispatchNumber, Fault, FaultKind};
use wavetap::profile::check::{Class, Finding, Severity};

use super::RawCall;
use crate::images::KernelRef;

/// What accesses memory.
#[derive(Debug, Clone)]
pub(crate) enum Accessor {
    /// A launch, by its number from 1.
    Launch {
        number: DispatchNumber,
        kernel: KernelRef,
        launch: u64,
        /// The program went on while it was in flight.
        met_program: bool,
    },
    Call(Arc<RawCall>),
}

/// What has, by the number that the device gave it, since the program last knew that everything was done.
#[derive(Debug, Default)]
pub(crate) struct Accesses(HashMap<u64, Accessor>);

impl Accessor {
    /// Whether it is a call that AMD's runtime may or may not wait for before it returns.
    fn may_have_waited(&self) -> bool {
        let Accessor::Call(call) = self else { return false };
        call.function().starts_with("hipMemset") && !call.function().ends_with("Async")
    }

    /// Makes a race with such a call a warning: programs that rely on the wait work with some versions of the runtime.
    pub(crate) fn judge(&self, finding: &mut Finding) {
        if finding.class == Class::StreamRace && self.may_have_waited() {
            finding.severity = Severity::Warning;
        }
    }
}

impl Accesses {
    pub(crate) fn add(&mut self, dispatch: DispatchNumber, accessor: Accessor) {
        self.0.insert(dispatch.number, accessor);
    }

    /// The program goes on while a launch is in flight.
    pub(crate) fn met_program(&mut self, dispatch: DispatchNumber) {
        if let Some(Accessor::Launch { met_program, .. }) = self.0.get_mut(&dispatch.number) {
            *met_program = true;
        }
    }

    /// Nothing can race with them any more.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The earlier one of a race, if it is known. The fault then has the number of its launch.
    pub(crate) fn earlier(&self, fault: &mut Fault) -> Option<Accessor> {
        let FaultKind::GlobalRace { other, .. } = &mut fault.kind else { return None };
        let earlier = self.0.get(&other.dispatch)?.clone();
        if let Accessor::Launch { launch, .. } = earlier {
            other.dispatch = launch;
        }
        Some(earlier)
    }
}
