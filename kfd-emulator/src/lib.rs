//! Stands in for the kernel driver of AMD GPUs under AMD's own, unmodified `libamdhip64` and `libhsa-runtime64`: a
//! program that this library is loaded into before all others (`LD_PRELOAD`) sees one or several GPUs, whose kernels
//! run on the emulator. README.md says what it does and what not.
//!
//! - `interposed`, `interposed_files`, `drm`: the functions of the C library and of libdrm that it comes before.
//! - `paths`, `nodes`, `sysfs`, `ip_blocks`: which files are the driver's, and what is in them.
//! - `raw`: the program's pointers, and the functions that come after; all unsafe code.
//! - `layout`: where the fields of shared structures are.
//! - `driver`, `settings`, `gpu`, `topology`: the driver of this process, what the run asks for, the GPUs and their
//!   description.
//! - `requests`: what the runtime asks of the driver by `ioctl`.
//! - `memory`, `events`, `clock`: what the driver has of these.
//! - `engine`: the device and its queues; the packets of a queue (`aql`, `sdma`); what becomes of a kernel that did
//!   something wrong (`faults`).

mod clock;
mod driver;
mod drm;
mod engine;
mod events;
mod gpu;
mod interposed;
mod interposed_files;
mod ip_blocks;
mod layout;
mod memory;
mod nodes;
mod paths;
mod raw;
mod requests;
mod settings;
mod sysfs;
mod topology;
