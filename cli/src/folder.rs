//! Folders that are written whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wavetap::error::{Error, Kind, Result};

use crate::files;

/// Fails now if a folder may not be written: it exists and is not empty, and is not to be replaced; or it has files
/// that are not of such a folder, which are never removed.
pub fn may_write(path: &Path, force: bool, is_of_folder: impl Fn(&str) -> bool) -> Result<()> {
    let refused = |what: &str| Error::new(Kind::Io, format!("{}: {what}", path.display()));
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            let parent = parent(path);
            return if parent.is_dir() {
                Ok(())
            } else {
                Err(refused(&format!("there is no folder {}", parent.display())))
            };
        }
        Err(error) => return Err(files::io(path, "a folder was expected, or nothing", &error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| files::io(path, "cannot read", &error))?;
        let name = entry.file_name();
        let its = name.to_str().is_some_and(&is_of_folder) && entry.file_type().is_ok_and(|kind| kind.is_file());
        if !its {
            let name = name.to_string_lossy();
            return Err(refused(&format!("the folder has {name}, which is not of such a folder, and is not replaced")));
        }
        if !force {
            return Err(refused("exists and is not empty (use --force to replace it)"));
        }
    }
    Ok(())
}

/// Writes a folder. It appears with all its files.
pub fn write(
    path: &Path,
    contents: &[(String, Vec<u8>)],
    force: bool,
    is_of_folder: impl Fn(&str) -> bool,
) -> Result<()> {
    let failed = |error: &io::Error| files::io(path, "cannot be written", error);
    let new = tempfile::Builder::new().prefix(".wavetap-").tempdir_in(parent(path)).map_err(|error| failed(&error))?;
    for (name, bytes) in contents {
        fs::write(new.path().join(name), bytes).map_err(|error| failed(&error))?;
    }
    // A folder for one user was made.
    fs::set_permissions(new.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .map_err(|error| failed(&error))?;
    // It may have changed meanwhile.
    may_write(path, force, is_of_folder)?;
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(|error| failed(&error))? {
            let entry = entry.map_err(|error| failed(&error))?;
            fs::remove_file(entry.path()).map_err(|error| failed(&error))?;
        }
    }
    fs::rename(new.path(), path).map_err(|error| failed(&error))?;
    // What was renamed is not there to be removed.
    let _ = new.keep();
    Ok(())
}

fn parent(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
