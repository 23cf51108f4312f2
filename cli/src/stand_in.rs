//! The libraries that applications are run with: the stand-in `libamdhip64`, which is put before a real one, and the
//! one that stands in for the kernel driver; and the tool that counts under the real ROCm libraries.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use wavetap::error::{Error, Kind, Result};

use crate::files;

/// Names under which executables of HIP 4 to 7 ask for the runtime, and for hipRTC where it is a library of its own. A
/// loader loads one file once, whatever its names.
const NAMES: [&str; 9] = [
    "libamdhip64.so",
    "libamdhip64.so.4",
    "libamdhip64.so.5",
    "libamdhip64.so.6",
    "libamdhip64.so.7",
    "libhiprtc.so",
    "libhiprtc.so.5",
    "libhiprtc.so.6",
    "libhiprtc.so.7",
];

/// A library that cargo builds beside this command.
pub struct Library {
    what: &'static str,
    /// File name as built.
    file: &'static str,
    /// Names it when it is not where it is looked for.
    variable: &'static str,
    /// Builds it.
    build: &'static str,
}

/// The emulator's HIP runtime.
pub const HIP_RUNTIME: Library = Library {
    what: "the emulator's HIP runtime",
    file: "libamdhip64.so",
    variable: "WAVETAP_HIP_RUNTIME",
    build: "cargo build --release",
};

/// What stands in for the kernel driver.
pub const KERNEL_DRIVER: Library = Library {
    what: "the emulated kernel driver",
    file: "libwavetap_kfd.so",
    variable: "WAVETAP_KFD",
    build: "cargo build --release -p wavetap-kfd-emulator",
};

/// What counts under the real ROCm libraries.
pub const HSA_TOOL: Library = Library {
    what: "the HSA tool",
    file: "libwavetap_hsa.so",
    variable: "WAVETAP_HSA_TOOL",
    build: "cargo build --release -p wavetap-hsa-tool",
};

impl Library {
    /// Finds it: the environment's, or beside this executable, where cargo and an installation put it.
    pub fn find(&self) -> Result<PathBuf> {
        let Library { what, file, variable, build } = self;
        if let Some(path) = std::env::var_os(variable) {
            let path = PathBuf::from(path);
            let place = if path.is_dir() { path.join(file) } else { path };
            return place
                .canonicalize()
                .map_err(|error| files::io(&place, &format!("{variable} names it, but it cannot be opened"), &error));
        }
        let executable = std::env::current_exe()
            .map_err(|error| Error::new(Kind::Io, format!("cannot find this executable: {error}")))?;
        let beside = executable.parent().unwrap_or(Path::new("."));
        let places = [beside.join("deps").join(file), beside.join(file), beside.join("../lib/wavetap").join(file)];
        places.iter().find_map(|place| place.canonicalize().ok()).ok_or_else(|| {
            let tried: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
            let message = format!(
                "{what} {file} is not at {}; build it with `{build}`, or name it in {variable}",
                tried.join(" or ")
            );
            Error::new(Kind::Io, message)
        })
    }
}

/// Makes `folder` a library folder in which every name of the HIP runtime is the stand-in.
pub fn make_folder(folder: &Path, stand_in: &Path) -> Result<()> {
    for name in NAMES {
        let link = folder.join(name);
        symlink(stand_in, &link).map_err(|error| files::io(&link, "cannot make a link", &error))?;
    }
    Ok(())
}

/// A search path: `first`, then what the variable `name` holds, then `last`.
pub fn search_path(name: &str, first: &Path, last: &[PathBuf]) -> Result<OsString> {
    let present = std::env::var_os(name).unwrap_or_default();
    let present: Vec<PathBuf> = std::env::split_paths(&present).filter(|path| !path.as_os_str().is_empty()).collect();
    std::env::join_paths(
        std::iter::once(first).chain(present.iter().map(PathBuf::as_path)).chain(last.iter().map(PathBuf::as_path)),
    )
    .map_err(|error| Error::new(Kind::Io, format!("{name}: {error}")))
}
