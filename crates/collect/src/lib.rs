//! The host's half of measuring, whatever runs the kernels: the emulator, ROCm on a GPU, or a test.
//!
//! A backend implements [`DeviceMemory`] and tells a [`Session`] what it does:
//!
//! ```text
//! attach(object) ─► ObjectId      finds the control block and the site table of a rewritten code object
//!   begin_dispatch ─► Ticket      arms the block; several dispatches may be in flight
//!   end_dispatch(Ticket)          sorts the records of what has ended by kernel, into the profile
//! detach(object)
//! finish() ─► Profile
//! ```
//!
//! - [`memory`]: what a backend implements;
//! - [`session`]: attaching, arming and draining;
//! - [`collector`]: records into totals;
//! - [`journals`]: the files in which a process keeps what it has collected;
//! - [`rank`]: which of the processes that one launcher has started a process is;
//! - [`residency`]: which launches run the original because fewer workgroups would run at the same time;
//! - [`stderr`]: lines on standard error, of the command and inside of applications;
//! - [`uncounted`]: why a dispatch is not counted;
//! - [`config`]: the configuration of a run, one file for whoever runs the kernels.
//!
//! Nothing here knows a probe: what counters mean is in the site table ([`wavetap_profile::schema`]).
#![forbid(unsafe_code)]

pub mod check;
pub mod collector;
pub mod config;
pub mod journals;
pub mod memory;
pub mod rank;
pub mod residency;
pub mod selected;
pub mod session;
pub mod stderr;
pub mod uncounted;

pub use memory::DeviceMemory;
pub use session::Session;
