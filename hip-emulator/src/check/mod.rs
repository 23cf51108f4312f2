//! `wavetap check`: what kernels and calls of the program do wrong, written as findings.
//!
//! Kernels: the emulator's strict mode finds it and goes on ([`Check::found`]). Calls: an entry point that fails
//! ([`Check::call_failed`]), memory that is freed twice, or never.

mod accesses;
mod allocations;
mod copies;
mod handles;
mod outputs;
mod stacks;

use wavetap::collect::check::{CheckConfig, Recorder, places};
use wavetap::profile::check::{Class, Finding, Tool};

use crate::handles::last_missing;
use crate::raw;
use crate::status::*;
use accesses::Accesses;
pub(crate) use accesses::Accessor;
use allocations::Allocations;
pub(crate) use copies::{CopySide, Place};
use handles::Handles;
pub(crate) use stacks::RawCall;

/// Calls that programs make to find something out, so that an error is an answer.
const QUERIES: [&str; 14] = [
    "hipPointerGetAttributes",
    "hipPointerGetAttribute",
    "hipDrvPointerGetAttributes",
    "hipMemPtrGetInfo",
    "hipMemGetAddressRange",
    "hipHostGetFlags",
    "hipHostGetDevicePointer",
    "hipDeviceGetAttribute",
    "hipDeviceCanAccessPeer",
    "hipDeviceEnablePeerAccess",
    "hipDeviceDisablePeerAccess",
    "hipModuleGetGlobal",
    "hipModuleGetFunction",
    "hipGetProcAddress",
];

/// What is checked, and what was found.
pub(crate) struct Check {
    config: CheckConfig,
    recorder: Recorder,
    pub(crate) allocations: Allocations,
    pub(crate) handles: Handles,
    pub(crate) accesses: Accesses,
    /// Kernels that have ended since it was last written what is in memory.
    kernels: Vec<String>,
    /// Whether the call that fails next has a finding already.
    explained: bool,
}

impl Check {
    pub(crate) fn new(config: &CheckConfig) -> Check {
        let mut recorder = Recorder::new(config);
        recorder.begin();
        Check {
            config: config.clone(),
            recorder,
            allocations: Allocations::default(),
            handles: Handles::default(),
            accesses: Accesses::default(),
            kernels: Vec::new(),
            explained: false,
        }
    }

    /// Whether a tool looks for something.
    pub(crate) fn wants(&self, tool: Tool) -> bool {
        self.recorder.wants(tool)
    }

    /// Says what cannot be looked at.
    pub(crate) fn not_checked(&mut self, what: &str) {
        self.recorder.not_checked(what.to_owned());
    }

    /// The child of a fork has findings of its own.
    pub(crate) fn forked(&mut self) {
        self.recorder.forked(&self.config);
    }

    /// Notes what a kernel did; `complete` adds the kernel's name and source lines.
    pub(crate) fn found(&mut self, mut finding: Finding, complete: impl FnOnce(&mut Finding)) {
        if finding.tool == Tool::Memory {
            self.allocations.describe(&mut finding);
        }
        places::tell_host_pointer(&mut finding, |address| raw::is_mapped(address as usize, 1));
        self.add(finding, complete);
    }

    fn add(&mut self, finding: Finding, complete: impl FnOnce(&mut Finding)) {
        let allocations = &self.allocations;
        self.recorder.add(finding, |finding| {
            allocations.locate(finding);
            complete(finding);
            allocations.add_calls(finding);
        });
    }

    /// Notes that a call frees what is not allocated, if it was once.
    pub(crate) fn freed_again(&mut self, address: u64) {
        let Some(allocation) = self.allocations.freed_at(address) else { return };
        let mut finding = Finding::new(Class::DoubleFree, format!("{address:#x} is freed again"));
        finding.allocation = Some(allocation);
        self.explained = true;
        self.add_call(finding, &RawCall::here());
    }

    /// Notes that an entry point of this name returns an error.
    pub(crate) fn call_failed(&mut self, name: &'static str, status: Status) {
        if std::mem::take(&mut self.explained) || working().is_err() || status == NOT_SUPPORTED {
            return;
        }
        let function = name.strip_suffix("_spt").unwrap_or(name);
        if QUERIES.contains(&function) || !self.recorder.wants(Tool::Api) {
            return;
        }
        if let Some(finding) = last_missing().and_then(|handle| self.handles.stale(handle)) {
            return self.add_call(finding, &RawCall::here());
        }
        let (code, text) = (crate::status::name(status), crate::status::text(status));
        let message = format!("{function} returned {} ({})", code.to_string_lossy(), text.to_string_lossy());
        let class = if status == COOPERATIVE_LAUNCH_TOO_LARGE { Class::CooperativeTooLarge } else { Class::CallFailed };
        self.add_call(Finding::new(class, message), &RawCall::here());
    }

    fn add_call(&mut self, finding: Finding, call: &RawCall) {
        self.called(finding, call, |_| ());
    }

    /// Notes what a call does; `complete` adds what takes long to find out.
    pub(crate) fn called(&mut self, mut finding: Finding, call: &RawCall, complete: impl FnOnce(&mut Finding)) {
        finding.call = Some(call.resolve());
        self.add(finding, complete);
    }

    /// The program has ended.
    pub(crate) fn finish(&mut self) {
        // What cannot be freed any more is not forgotten.
        if working().is_ok() {
            for (call, finding) in self.allocations.leaks().into_iter().chain(self.handles.leaks()) {
                self.add_call(finding, &call);
            }
        }
        self.recorder.finish();
    }
}
