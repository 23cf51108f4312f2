//! The emulator's HIP runtime in this process, which was started with it first on the path of libraries.

use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use wavetap::error::{Error, Kind, Result};

/// A name of the library, and the function.
const LIBRARY: &std::ffi::CStr = c"libamdhip64.so";
const FUNCTION: &std::ffi::CStr = c"wavetap_replay";

type Replay = extern "C" fn(*const c_char, *const c_char, u64, *const c_char) -> c_int;

/// Replays a capture; the exit code.
pub fn replay(capture: &Path, code: Option<&Path>, memory_limit: u64, outcome: &Path) -> Result<u8> {
    let text = |path: &Path| {
        CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::unsupported("a path with a zero byte"))
    };
    let (capture, outcome) = (text(capture)?, text(outcome)?);
    let code = code.map(text).transpose()?;
    let replay = function()?;
    let status = replay(
        capture.as_ptr(),
        code.as_ref().map_or(std::ptr::null(), |code| code.as_ptr()),
        memory_limit,
        outcome.as_ptr(),
    );
    Ok(u8::try_from(status).unwrap_or(u8::MAX))
}

#[allow(unsafe_code)]
fn function() -> Result<Replay> {
    let missing = |what: &str| Error::new(Kind::Io, format!("the emulator's HIP runtime: {what}"));
    // SAFETY: the name ends with a zero. What the library does when it is loaded is this project's own.
    let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return Err(missing("it cannot be loaded"));
    }
    // SAFETY: the library is loaded and stays so, and the name ends with a zero.
    let address = unsafe { libc::dlsym(library, FUNCTION.as_ptr()) };
    if address.is_null() {
        return Err(missing("it has no function to replay with: it is of another version"));
    }
    // SAFETY: not null; the function has this type since there is one of this name.
    Ok(unsafe { std::mem::transmute::<*mut libc::c_void, Replay>(address) })
}
