//! Where in the program a call is made.

use wavetap::profile::check::{HostCall, HostFrame};

use crate::called::called_now;
use crate::raw;

/// A call of an entry point: its name, and the return addresses of the stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RawCall {
    function: &'static str,
    addresses: Vec<usize>,
}

impl RawCall {
    /// The call that this thread is in.
    pub(crate) fn here() -> RawCall {
        RawCall { function: called_now(), addresses: raw::return_addresses() }
    }

    /// Code of the program's own, by its address and those to which the functions return that have called it.
    pub(crate) fn of_program(stack: Vec<usize>) -> RawCall {
        // The others are after a call.
        let addresses = stack.into_iter().enumerate().map(|(n, address)| if n == 0 { address + 1 } else { address });
        RawCall { function: "the host", addresses: addresses.collect() }
    }

    /// The function of HIP.
    pub(crate) fn function(&self) -> &'static str {
        self.function.strip_suffix("_spt").unwrap_or(self.function)
    }

    /// The same with modules and addresses in them. Functions and lines are found later, by who reads it.
    pub(crate) fn resolve(&self) -> HostCall {
        let own = raw::own_file_name();
        let frames = self.addresses.iter().filter_map(|address| {
            let (module, base) = raw::module_of(*address)?;
            // The call is before the address to which it returns.
            Some(HostFrame { module, address: (address - base) as u64 - 1, function: None, source: None })
        });
        let stack = frames.filter(|frame| own.as_ref() != Some(&frame.module)).collect();
        HostCall { function: self.function().to_owned(), stack }
    }
}
