//! Descriptor, metadata and site table agree with each other and with the code.

mod allocation;
mod descriptor;
mod preload;

pub(crate) use descriptor::{check, check_added};
