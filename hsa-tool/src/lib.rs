//! A tool of AMD's HSA runtime: kernels of unmodified programs count, on a GPU or on an emulated one.
//!
//! The runtime loads it (`HSA_TOOLS_LIB`, or through rocprofiler-sdk) when a program initialises HSA, HIP programs
//! included. It puts functions of its own into the runtime's tables, rewrites kernels that are dispatched, arms each
//! dispatch, and writes what was counted to the journal of the process. README.md says what it does and what not.
//!
//! - [`OnLoad`], [`rocprofiler_configure`], [`OnUnload`]: the entry points; `registration`: which of them loads the
//!   tool.
//! - `hooks`: the functions in the tables.
//! - `tool`: what is loaded, dispatched and counted; `objects`: code objects; `packets`: packets.
//! - `memory`: the GPU's memory, as a session uses it.
//! - `settings`: what the run asks for.
//! - `api`, `raw`: the runtime's functions and pointers; all unsafe code.

mod api;
mod hooks;
mod memory;
mod objects;
mod packets;
mod raw;
mod registration;
mod settings;
#[cfg(test)]
mod tests;
mod tool;

use std::ffi::{c_char, c_void};
use std::panic::catch_unwind;

use registration::Origin;
use settings::Settings;

/// Among tools that a process has already loaded, the runtime (ROCm 5.7 and newer) loads those with the lowest number
/// first. What counts comes before what looks at it.
#[unsafe(no_mangle)]
pub static HSA_AMD_TOOL_PRIORITY: u32 = 50;

/// The runtime calls it at the end of `hsa_init` with its table of tables. False: the tool is not to be used.
#[unsafe(no_mangle)]
pub extern "C" fn OnLoad(table: *mut c_void, _version: u64, _failed: u64, _names: *const *const c_char) -> bool {
    catch_unwind(|| registration::load(table as usize, Origin::Runtime, Settings::read)).unwrap_or(false)
}

/// rocprofiler-sdk calls it, with its version and a client of its own, before a runtime registers its tables. It wants
/// nothing back.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_configure(
    _version: u32,
    _runtime: *const c_char,
    _priority: u32,
    client: *mut c_void,
) -> *mut c_void {
    let _ = catch_unwind(|| registration::configure(raw::register(), client as usize, registered));
    std::ptr::null_mut()
}

/// rocprofiler-sdk calls it with a runtime's tables.
extern "C" fn registered(kind: u32, _version: u64, before: u64, tables: *mut usize, count: u64, _data: *mut c_void) {
    let _ = catch_unwind(|| {
        if let Some(table) = registration::table(kind, tables as usize, count) {
            registration::load(table, Origin::Registration(before), Settings::read);
        }
    });
}

/// The runtime calls it when it shuts down, before it unloads this library.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    let _ = catch_unwind(|| {
        if let Some(tool) = hooks::tool() {
            tool.drain();
            tool.join();
            hooks::remove(tool);
            tool.finish();
        }
        registration::unloaded();
    });
}

/// Runs after all exit handlers, when HIP is gone.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = {
    extern "C" fn at_end() {
        let _ = catch_unwind(|| {
            if let Some(tool) = hooks::tool() {
                tool.finish();
            }
        });
    }
    at_end
};
