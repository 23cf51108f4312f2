//! What a person is told on standard error.

use wavetap::code_object::demangle;
use wavetap::error::Error;
use wavetap::report::names::short;
use wavetap::stderr_line;

/// Says on standard error why something was refused.
pub(crate) fn complain(what: &str, error: &Error) {
    stderr_line!("wavetap: {what}: {error}");
}

/// Says on standard error what a kernel did: that first, as names of kernels can be long.
pub(crate) fn say_fault(kernel: &str, reason: &str) {
    stderr_line!("wavetap: {reason}, in kernel {}", short(&demangle(kernel)));
}
