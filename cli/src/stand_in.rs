//! The stand-in `libamdhip64`: finding it and putting it before a real one.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use wavetap::error::{Error, Kind, Result};

use crate::files;

/// File name of the stand-in as built.
const FILE: &str = "libamdhip64.so";
/// Names under which executables of HIP 4 to 7 ask for the runtime.
const NAMES: [&str; 5] =
    ["libamdhip64.so", "libamdhip64.so.4", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"];
/// Names the stand-in when it is not where it is looked for.
const VARIABLE: &str = "WAVETAP_HIP_RUNTIME";

/// Finds the stand-in: the environment's, or beside this executable, where cargo and an installation put it.
pub fn find() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        let path = PathBuf::from(path);
        let place = if path.is_dir() { path.join(FILE) } else { path };
        return place
            .canonicalize()
            .map_err(|error| files::io(&place, &format!("{VARIABLE} names it, but it cannot be opened"), &error));
    }
    let executable = std::env::current_exe()
        .map_err(|error| Error::new(Kind::Io, format!("cannot find this executable: {error}")))?;
    let beside = executable.parent().unwrap_or(Path::new("."));
    let places = [beside.join("deps").join(FILE), beside.join(FILE), beside.join("../lib/wavetap").join(FILE)];
    places.iter().find_map(|place| place.canonicalize().ok()).ok_or_else(|| {
        let tried: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        let message = format!(
            "the emulator's HIP runtime {FILE} is not at {}; build it with `cargo build --release`, or name it in \
                {VARIABLE}",
            tried.join(" or ")
        );
        Error::new(Kind::Io, message)
    })
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
