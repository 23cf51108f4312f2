//! Captures: what streams are given to do becomes a graph.

use std::collections::HashMap;
use std::ffi::c_int;
use std::thread::ThreadId;

use crate::status::*;

/// A capture that has begun.
#[derive(Debug)]
pub(crate) struct Capture {
    /// The stream it began in and must end in.
    pub(crate) origin: usize,
    pub(crate) graph: usize,
    pub(crate) mode: c_int,
    pub(crate) thread: ThreadId,
    pub(crate) valid: bool,
}

/// All captures, by their number.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    pub(crate) captures: HashMap<u64, Capture>,
    pub(crate) last: u64,
}

impl Captures {
    /// Whether a capture has not ended.
    pub(crate) fn is_active(&self, capture: u64) -> bool {
        self.captures.contains_key(&capture)
    }

    /// Makes a capture fail when it ends.
    pub(crate) fn invalidate(&mut self, capture: u64) {
        if let Some(capture) = self.captures.get_mut(&capture) {
            capture.valid = false;
        }
    }

    pub(crate) fn valid(&self, capture: u64) -> Outcome<&Capture> {
        self.captures.get(&capture).filter(|capture| capture.valid).ok_or(STREAM_CAPTURE_INVALIDATED)
    }
}

/// Nodes of a graph that is being captured, after which the next one comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Captured {
    /// Which capture.
    pub(crate) capture: u64,
    pub(crate) last: Vec<usize>,
}
