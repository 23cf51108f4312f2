//! The libraries that programs are run with, where the command has them in itself (feature `bundled`).

use std::path::{Path, PathBuf};

use wavetap::error::{Error, Kind, Result};
use wavetap::files;

include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// A folder with the libraries: they are written there the first time.
pub fn folder() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let cache = cache.ok_or_else(|| {
        Error::new(Kind::Io, "neither XDG_CACHE_HOME nor HOME names a folder, in which libraries have to be stored")
    })?;
    let folder = cache.join(format!("wavetap/{}-{ID}", env!("CARGO_PKG_VERSION")));
    std::fs::create_dir_all(&folder).map_err(|error| files::io(&folder, "cannot be made", &error))?;
    for (name, bytes) in LIBRARIES {
        let path = folder.join(name);
        if !is_there(&path, bytes) {
            files::write(&path, bytes, true, None)?;
        }
    }
    Ok(folder)
}

/// Whether a library is there: files appear whole, and the folder's name is of their contents.
fn is_there(path: &Path, bytes: &[u8]) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64)
}
