//! Reading inputs and writing outputs: an output appears whole or not at all, and never by surprise.

use std::fs::{self, Permissions};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use wavetap::error::{Error, Kind, Result};

/// Reads a whole input file. ([`crate::map_file`] maps it.)
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let metadata = fs::metadata(path).map_err(|error| io(path, "cannot read", &error))?;
    if metadata.is_dir() {
        return Err(Error::new(Kind::Io, format!("{}: is a directory, a file was expected", path.display())));
    }
    fs::read(path).map_err(|error| io(path, "cannot read", &error))
}

/// The path that means stdin.
const STDIN: &str = "-";

/// Reads a whole input file, or stdin for `-`.
pub fn read_or_stdin(path: &Path) -> Result<Vec<u8>> {
    if path.as_os_str() != STDIN {
        return read(path);
    }
    let mut data = Vec::new();
    std::io::stdin().lock().read_to_end(&mut data).map_err(|error| io(Path::new("stdin"), "cannot read", &error))?;
    Ok(data)
}

/// What an input is called in messages.
pub fn name(path: &Path) -> String {
    if path.as_os_str() == STDIN { "stdin".to_owned() } else { path.display().to_string() }
}

/// An error that names the file.
pub fn io(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::new(Kind::Io, format!("{}: {what}: {error}", path.display()))
}

/// Fails now, before the work, if `path` exists and may not be replaced.
pub fn may_write(path: &Path, force: bool) -> Result<()> {
    if !force && path.symlink_metadata().is_ok() {
        return Err(Error::new(Kind::Io, format!("{}: exists (use --force to replace it)", path.display())));
    }
    if !directory(path).is_dir() {
        return Err(Error::new(Kind::Io, format!("{}: there is no folder {}", path.display(), directory(path).display())));
    }
    Ok(())
}

/// Fails if writing `output` would change `input`.
pub fn not_the_same(input: &Path, output: &Path) -> Result<()> {
    let same = match (fs::canonicalize(input), fs::canonicalize(output)) {
        (Ok(input), Ok(output)) => input == output,
        _ => false,
    };
    if same { Err(Error::new(Kind::Io, format!("{}: is the input, which is never changed", output.display()))) } else { Ok(()) }
}

/// Writes `bytes` to a temporary file beside `path` and renames it. `permissions` are those of a file it is made from.
pub fn write(path: &Path, bytes: &[u8], force: bool, permissions: Option<Permissions>) -> Result<()> {
    may_write(path, force)?;
    let failed = |error: &std::io::Error| io(path, "cannot write", error);
    let mut file = NamedTempFile::new_in(directory(path)).map_err(|e| failed(&e))?;
    file.write_all(bytes).map_err(|e| failed(&e))?;
    file.as_file().set_permissions(permissions.unwrap_or_else(default_permissions)).map_err(|e| failed(&e))?;
    let renamed = if force { file.persist(path) } else { file.persist_noclobber(path) };
    renamed.map_err(|e| failed(&e.error))?;
    Ok(())
}

/// An output that is written bit by bit and appears when it is complete.
pub struct Pending {
    path: PathBuf,
    force: bool,
    file: BufWriter<NamedTempFile>,
}

impl Pending {
    /// Begins the file at `path`.
    pub fn new(path: &Path, force: bool) -> Result<Pending> {
        may_write(path, force)?;
        let file = NamedTempFile::new_in(directory(path)).map_err(|error| io(path, "cannot write", &error))?;
        Ok(Pending { path: path.to_owned(), force, file: BufWriter::new(file) })
    }

    /// Appends to it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| io(&self.path, "cannot write", &error))
    }

    /// Gives it its name.
    pub fn finish(self) -> Result<()> {
        let failed = |error: &std::io::Error| io(&self.path, "cannot write", error);
        let file = self.file.into_inner().map_err(|error| failed(error.error()))?;
        file.as_file().set_permissions(default_permissions()).map_err(|error| failed(&error))?;
        let renamed = if self.force { file.persist(&self.path) } else { file.persist_noclobber(&self.path) };
        renamed.map_err(|error| failed(&error.error))?;
        Ok(())
    }
}

/// The folder a file is in.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What a newly created file gets: a temporary file is private, an output is as the user's umask says.
fn default_permissions() -> Permissions {
    /// The usual umask, where the system does not tell.
    const USUAL: u32 = 0o022;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("Umask:")?.trim(), 8).ok());
    Permissions::from_mode(0o666 & !umask.unwrap_or(USUAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_not_overwritten_unasked_and_keep_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write(&path, b"one", false, Some(Permissions::from_mode(0o751))).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o751);
        let error = write(&path, b"two", false, None).unwrap_err();
        assert!(error.to_string().contains("--force"), "{error}");
        assert_eq!(read(&path).unwrap(), b"one");
        write(&path, b"two", true, None).unwrap();
        assert_eq!(read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
        assert!(not_the_same(&path, &folder.path().join("../").join(folder.path().file_name().unwrap()).join("out")).is_err());
        assert!(may_write(&folder.path().join("missing/out"), true).is_err());
    }
}
