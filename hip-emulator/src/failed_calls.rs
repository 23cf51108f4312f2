//! Entry points that return an error, where calls are checked.

use crate::lock::runtime;
use crate::status::{NOT_READY, Status};

/// An entry point of this name returns an error.
#[cold]
pub(crate) fn failed(name: &'static str, status: Status) {
    if status != NOT_READY
        && let Some(check) = &mut runtime().check
    {
        check.call_failed(name, status);
    }
}
