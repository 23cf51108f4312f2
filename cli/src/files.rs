//! Reading inputs and writing outputs: an output appears whole or not at all, and never by surprise.

use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
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

/// Writes `bytes` to a file that appears when it is complete. `permissions` are those of a file it is made from.
pub fn write(path: &Path, bytes: &[u8], force: bool, permissions: Option<Permissions>) -> Result<()> {
    let mut file = Pending::new(path, force)?;
    file.write(bytes)?;
    file.finish(permissions)
}

/// An output that is written bit by bit and appears when it is complete.
pub struct Pending {
    path: PathBuf,
    force: bool,
    file: BufWriter<Unfinished>,
}

impl Pending {
    /// Begins the file at `path`.
    pub fn new(path: &Path, force: bool) -> Result<Pending> {
        may_write(path, force)?;
        let file = Unfinished::new_in(directory(path)).map_err(|error| io(path, "cannot write", &error))?;
        Ok(Pending { path: path.to_owned(), force, file: BufWriter::new(file) })
    }

    /// Appends to it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| io(&self.path, "cannot write", &error))
    }

    /// The file, for those who write to it themselves.
    pub fn output(&mut self) -> &mut (impl Write + Seek + Send + use<>) {
        &mut self.file
    }

    /// A file without a name beside it, for what waits to be written to it: where there is room for it, there is for that.
    pub fn scratch(&self) -> Result<File> {
        tempfile::tempfile_in(directory(&self.path)).map_err(|error| io(&self.path, "cannot write", &error))
    }

    /// The error of those who wrote to it.
    pub fn failed(&self, error: &Error) -> Error {
        Error::new(Kind::Io, format!("{}: cannot write: {}", self.path.display(), error.message()))
    }

    /// Gives it its name. `permissions` are those of a file it is made from.
    pub fn finish(self, permissions: Option<Permissions>) -> Result<()> {
        let failed = |error: &std::io::Error| io(&self.path, "cannot write", error);
        let file = self.file.into_inner().map_err(|error| failed(error.error()))?;
        file.file().set_permissions(permissions.unwrap_or_else(default_permissions)).map_err(|error| failed(&error))?;
        file.name(&self.path, self.force).map_err(|error| failed(&error))
    }
}

/// Where the system names the files that this process has open.
const OPEN_FILES: &str = "/proc/self/fd";

/// A file that is not complete: without a name, so that nothing of it stays whatever ends the process; with a temporary one where the file system or the
/// system cannot name it later.
enum Unfinished {
    Unnamed(File),
    Named(NamedTempFile),
}

impl Unfinished {
    fn new_in(folder: &Path) -> std::io::Result<Unfinished> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) if Path::new(OPEN_FILES).is_dir() => Ok(Unfinished::Unnamed(file.into())),
            _ => NamedTempFile::new_in(folder).map(Unfinished::Named),
        }
    }

    fn file(&self) -> &File {
        match self {
            Unfinished::Unnamed(file) => file,
            Unfinished::Named(file) => file.as_file(),
        }
    }

    /// Gives it its name, in the folder where it is. `force` replaces what has that name.
    fn name(self, path: &Path, force: bool) -> std::io::Result<()> {
        let file = match self {
            Unfinished::Named(file) if force => return file.persist(path).map(drop).map_err(|error| error.error),
            Unfinished::Named(file) => return file.persist_noclobber(path).map(drop).map_err(|error| error.error),
            Unfinished::Unnamed(file) => file,
        };
        let open = format!("{OPEN_FILES}/{}", file.as_raw_fd());
        let link = |path: &Path| Ok(rustix::fs::linkat(CWD, &open, CWD, path, AtFlags::SYMLINK_FOLLOW)?);
        if !force {
            return link(path);
        }
        // A link replaces nothing, and a name does.
        let named = tempfile::Builder::new().make_in(directory(path), link)?;
        named.persist(path).map(drop).map_err(|error| error.error)
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file().flush()
    }
}

impl Seek for Unfinished {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.file().seek(to)
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

    #[test]
    fn what_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let left = || fs::read_dir(folder.path()).unwrap().count();
        let mut pending = Pending::new(&path, false).unwrap();
        pending.write(&[7; 100_000]).unwrap();
        assert!(pending.scratch().is_ok());
        drop(pending);
        assert_eq!(left(), 0);
        // Somebody else is faster.
        let mut pending = Pending::new(&path, false).unwrap();
        pending.write(b"late").unwrap();
        write(&path, b"early", false, None).unwrap();
        let error = pending.finish(None).unwrap_err();
        assert!(error.to_string().contains("File exists"), "{error}");
        assert_eq!((read(&path).unwrap(), left()), (b"early".to_vec(), 1));
    }

    #[test]
    fn a_file_with_a_temporary_name_does_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        for (force, fits) in [(false, true), (false, false), (true, true)] {
            let mut file = Unfinished::Named(NamedTempFile::new_in(folder.path()).unwrap());
            file.write_all(b"one").unwrap();
            assert_eq!(file.name(&path, force).is_ok(), fits);
            assert_eq!((read(&path).unwrap(), fs::read_dir(folder.path()).unwrap().count()), (b"one".to_vec(), 1));
        }
    }
}
