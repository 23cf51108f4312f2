//! How the runtime finds the tool: by `HSA_TOOLS_LIB`, or through rocprofiler-sdk, with which runtimes of ROCm 6.2 and
//! newer register their tables if there is one. Where both give the tool the tables, it is loaded once.

use std::ffi::c_int;
use std::panic::catch_unwind;
use std::sync::{Mutex, PoisonError};

use crate::api::{Api, Tables};
use crate::raw::{Register, Registered};
use crate::settings::Settings;
use crate::tool::{Tool, complain};
use crate::{hooks, raw};

/// `ROCPROFILER_HSA_TABLE`.
const HSA_TABLE: u32 = 1;

/// Who gave the tool its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The runtime, calling `OnLoad`.
    Runtime,
    /// rocprofiler-sdk, for a runtime before which so many were registered.
    Registration(u64),
}

/// Who gave the tool that is loaded its tables.
static LOADED: Mutex<Option<Origin>> = Mutex::new(None);

/// Loads the tool with a runtime's table of tables, unless it is loaded; false if it cannot be used.
pub(crate) fn load(table: usize, origin: Origin, settings: impl FnOnce() -> Option<Settings>) -> bool {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_next =
        matches!((origin, *loaded), (Origin::Registration(this), Some(Origin::Registration(last))) if this > last);
    if loaded.is_some() && !is_next {
        return true;
    }
    let Some(settings) = settings() else { return true };
    match Tables::read(table).and_then(Api::read) {
        Ok(api) => {
            // The tool of a runtime that is gone.
            if let Some(last) = hooks::tool().filter(|_| is_next) {
                last.finish();
            }
            let tool: &'static Tool = Box::leak(Box::new(Tool::new(api, settings)));
            hooks::install(tool);
            tool.start();
            raw::at_exit(at_exit);
            *loaded = Some(origin);
            true
        }
        Err(problem) => {
            complain("nothing is counted", &problem);
            false
        }
    }
}

/// The program ends: functions that end HIP come after this one, and may unload code objects.
extern "C" fn at_exit() {
    let _ = catch_unwind(|| {
        if let Some(tool) = hooks::tool() {
            tool.drain();
        }
    });
}

/// The tool was unloaded: the next runtime may load it again.
pub(crate) fn unloaded() {
    *LOADED.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Asks rocprofiler-sdk for the runtime's tables. `client` is the address of what it knows of this tool, which begins
/// with a name.
pub(crate) fn configure(register: Option<Register>, client: usize, registered: Registered) {
    raw::store(client, c"wavetap".as_ptr());
    let problem = match register {
        None => "there is no rocprofiler_at_intercept_table_registration".to_owned(),
        Some(register) => match register(registered, HSA_TABLE as c_int, std::ptr::null_mut()) {
            0 => return,
            status => format!("status {status}"),
        },
    };
    complain("rocprofiler does not give the HSA tool the runtime's functions", &problem);
}

/// The table of tables of an HSA runtime, of what rocprofiler-sdk calls with.
pub(crate) fn table(kind: u32, tables: usize, count: u64) -> Option<usize> {
    if kind == HSA_TABLE && count > 0 { raw::load(tables) } else { None }
}
