//! What a person is told on standard error.

use wavetap::code_object::demangle;
use wavetap::error::Error;
use wavetap::report::names::short;

/// Says on standard error why something was refused.
pub(crate) fn complain(what: &str, error: &Error) {
    eprintln!("wavetap: {what}: {error}");
}

/// Says on standard error what a kernel did: that first, as names of kernels can be long.
pub(crate) fn say_fault(kernel: &str, reason: &str) {
    eprintln!("wavetap: {reason}, in kernel {}", short(&demangle(kernel)));
}
