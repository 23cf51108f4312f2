//! Reading inputs and writing outputs: an output appears whole or not at all, and never by surprise.
//!
//! A signal that ends the process leaves temporary files where a file system cannot make files without a name. A
//! program that handles signals learns of them by [`observe_temporaries`].

use std::fmt;
use std::fs::{self, File, FileType, Permissions};
use std::io::{BufWriter, Cursor, Read, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tempfile::{NamedTempFile, TempDir};
use wavetap_base::error::{Error, Kind, Result};

/// Larger inputs are mapped, not read.
const MOST_READ: u64 = 16 << 30;
/// More is not read of what is no file on a disk: it may have no end.
const MOST_STREAMED: u64 = 4 << 30;
/// The same of text.
const MOST_TEXT: u64 = 512 << 20;
/// How long a FIFO is waited for that nothing writes to, or reads from.
const FIFO_PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked at meanwhile.
const FIFO_LOOK: Duration = Duration::from_millis(10);
/// What device code begins with, or a file that holds it: anything else that has no end need not be read to it.
const BEGINNINGS: [&[u8]; 3] = [b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"];
/// Enough to tell.
const BEGINNING: usize = 4096;

/// What is told of temporary files and folders.
static OBSERVER: OnceLock<fn(&Path)> = OnceLock::new();

/// Has `observer` told of each temporary file or folder that is made from now on, so that it can be removed when a
/// signal ends the process. They are removed without it at the end of what they are for. The first observer stays.
pub fn observe_temporaries(observer: fn(&Path)) {
    let _ = OBSERVER.set(observer);
}

fn made_temporary(path: &Path) {
    if let Some(observer) = OBSERVER.get() {
        observer(path);
    }
}

/// A folder that is removed with the value.
///
/// # Errors
/// Io if it cannot be made.
pub fn temporary_folder() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix("wavetap-")
        .tempdir()
        .inspect(|folder| made_temporary(folder.path()))
        .map_err(|error| Error::new(Kind::Io, format!("cannot make a temporary folder: {error}")))
}

/// The contents of a file, read or mapped, that many may share.
#[derive(Clone)]
pub struct Contents(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Contents {
    /// These bytes: a `Vec<u8>`, or what maps a file.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Contents {
        Contents(Arc::new(bytes))
    }
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// Reads a whole input file. A FIFO is waited for; what is no file on a disk is read up to a limit.
///
/// # Errors
/// Io if it cannot be read or is a folder or a device; limit if it is too large.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |error: &std::io::Error| io(path, "cannot read", error);
    let metadata = fs::metadata(path).map_err(|error| failed(&error))?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err(Error::new(Kind::Io, format!("{}: is a directory, a file was expected", path.display())));
    }
    if kind.is_file() {
        if metadata.len() > MOST_READ {
            let (size, most) = (metadata.len() >> 30, MOST_READ >> 30);
            return Err(Error::limit(format!(
                "{}: is {size} GiB large; files of at most {most} GiB are read",
                path.display()
            )));
        }
        return fs::read(path).map_err(|error| failed(&error));
    }
    if kind.is_fifo() {
        return read_stream(&mut open_fifo(path)?, path, true);
    }
    if !(is_own_descriptor(path) || fs::read_link(path).is_ok_and(|next| is_own_descriptor(&next))) {
        return Err(Error::new(Kind::Io, format!("{}: is {}, a file was expected", path.display(), kind_name(kind))));
    }
    read_stream(&mut File::open(path).map_err(|error| failed(&error))?, path, true)
}

/// Opens a FIFO to be read when something has been written to it.
fn open_fifo(path: &Path) -> Result<impl Read> {
    let failed = |error: &std::io::Error| io(path, "cannot read", error);
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut file = File::options().read(true).custom_flags(nonblocking).open(path).map_err(|error| failed(&error))?;
    let start = Instant::now();
    let mut first = [0; 1];
    let read = loop {
        match file.read(&mut first) {
            Ok(0) if start.elapsed() >= FIFO_PATIENCE => {
                return Err(Error::new(Kind::Io, format!("{}: is a FIFO that nothing is written to", path.display())));
            }
            Ok(0) => std::thread::sleep(FIFO_LOOK),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::sleep(FIFO_LOOK),
            result => break result.map_err(|error| failed(&error))?,
        }
    };
    rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(|error| failed(&error.into()))?;
    Ok(Cursor::new(first).take(read as u64).chain(file))
}

/// Reads what is no file on a disk. What neither is nor holds device code is read in part: enough to say what it is.
fn read_stream(from: &mut impl Read, path: &Path, may_be_text: bool) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| io(path, "cannot read", &error);
    let mut data = Vec::new();
    from.take(BEGINNING as u64).read_to_end(&mut data).map_err(failed)?;
    let text = may_be_text && data.first().is_some_and(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let most = match () {
        () if data.len() < BEGINNING => return Ok(data),
        () if BEGINNINGS.iter().any(|beginning| data.starts_with(beginning)) => MOST_STREAMED,
        // A profile, or samples.
        () if text => MOST_TEXT,
        () => return Ok(data),
    };
    from.take(most).read_to_end(&mut data).map_err(failed)?;
    if data.len() as u64 >= most {
        return Err(Error::limit(format!(
            "{}: more than {} MiB came, which are read of files only",
            path.display(),
            most >> 20
        )));
    }
    Ok(data)
}

/// Reads all of stdin: device code, or enough of something else to tell that it is none.
///
/// # Errors
/// Io if it cannot be read; limit if there is too much.
pub fn read_stdin() -> Result<Vec<u8>> {
    read_stream(&mut std::io::stdin().lock(), Path::new("stdin"), false)
}

/// An error that names the file.
#[must_use]
pub fn io(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::new(Kind::Io, format!("{}: {what}: {error}", path.display()))
}

/// Fails now, before the work, if `path` exists and may not be replaced, or could not be written.
///
/// # Errors
/// Io if it could not be written, or exists and `force` is not set.
pub fn may_write(path: &Path, force: bool) -> Result<()> {
    match Place::of(path, force)? {
        // Nothing is left of it.
        Place::File(target) => {
            Unfinished::new_in(directory(&target)).map(drop).map_err(|error| io(path, "cannot be written", &error))
        }
        Place::Through(through) => through.check().map_err(|error| io(path, "cannot be written", &error)),
    }
}

/// Removes what an output would have replaced.
///
/// # Errors
/// Io if it cannot be removed.
pub fn remove_old(path: &Path) -> Result<()> {
    match Place::of(path, true) {
        Ok(Place::File(target)) if target.is_file() => {
            fs::remove_file(&target).map_err(|error| io(path, "cannot replace", &error))
        }
        _ => Ok(()),
    }
}

/// Fails if two outputs are to be written to the same file.
///
/// # Errors
/// Io if so.
pub fn distinct<'p>(outputs: impl IntoIterator<Item = &'p PathBuf>) -> Result<()> {
    let mut seen: Vec<PathBuf> = Vec::new();
    for path in outputs {
        // What is written as it is, such as /dev/null, takes as much as there is.
        let Ok(Place::File(target)) = Place::of(path, true) else { continue };
        let folder = fs::canonicalize(directory(&target)).unwrap_or_default();
        let whole = folder.join(target.file_name().unwrap_or_default());
        if seen.contains(&whole) {
            return Err(Error::new(Kind::Io, format!("{}: two outputs are to be written to it", path.display())));
        }
        seen.push(whole);
    }
    Ok(())
}

/// Most symbolic links on the way to a file, as in Linux.
const MOST_LINKS: u32 = 40;

/// Where an output is written.
enum Place {
    /// A file that appears when it is complete, and takes the place of one that is there: the last of any symbolic
    /// links, which stay.
    File(PathBuf),
    /// What is no file on a disk: written to as it is.
    Through(Through),
}

/// What an output is written to as it is.
enum Through {
    /// A file that this process has open, such as `/dev/stdout`.
    Descriptor(PathBuf),
    /// A character device, such as `/dev/null`.
    Device(PathBuf),
    Fifo(PathBuf),
}

impl Place {
    fn of(path: &Path, force: bool) -> Result<Place> {
        let refused = |what: &str| Error::new(Kind::Io, format!("{}: {what}", path.display()));
        let mut target = path.to_owned();
        for _ in 0..MOST_LINKS {
            if is_own_descriptor(&target) {
                return Ok(Place::Through(Through::Descriptor(target)));
            }
            let kind = match target.symlink_metadata() {
                Ok(metadata) => metadata.file_type(),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    // A link that leads nowhere is something that exists.
                    if !force && target != path {
                        return Err(refused("exists (use --force to replace it)"));
                    }
                    return if directory(&target).is_dir() {
                        Ok(Place::File(target))
                    } else {
                        Err(refused(&format!("there is no folder {}", directory(&target).display())))
                    };
                }
                Err(error) => return Err(io(path, "cannot be written", &error)),
            };
            if kind.is_symlink() {
                let next = fs::read_link(&target).map_err(|error| io(path, "cannot be written", &error))?;
                target = directory(&target).join(next);
                continue;
            }
            return match () {
                () if kind.is_char_device() => Ok(Place::Through(Through::Device(target))),
                () if kind.is_fifo() => Ok(Place::Through(Through::Fifo(target))),
                () if !kind.is_file() => Err(refused(&format!("is {}, a file was expected", kind_name(kind)))),
                () if !force => Err(refused("exists (use --force to replace it)")),
                () => Ok(Place::File(target)),
            };
        }
        Err(refused("too many symbolic links"))
    }

    /// The folder for what is not complete.
    fn folder(&self) -> PathBuf {
        match self {
            Place::File(target) => directory(target).to_owned(),
            Place::Through(_) => std::env::temp_dir(),
        }
    }
}

impl Through {
    /// Fails now if it could not be opened later. A FIFO may get its reader in the meantime.
    fn check(&self) -> std::io::Result<()> {
        match self {
            Through::Descriptor(path) => File::options().append(true).open(path).map(drop),
            Through::Device(path) => {
                File::options().write(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path).map(drop)
            }
            Through::Fifo(_) => Ok(()),
        }
    }

    fn open(&self) -> std::io::Result<File> {
        match self {
            // What the application has written there stays.
            Through::Descriptor(path) => File::options().append(true).open(path),
            Through::Device(path) => File::options().write(true).open(path),
            Through::Fifo(path) => {
                let start = Instant::now();
                loop {
                    match File::options().write(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path) {
                        Err(_) if start.elapsed() < FIFO_PATIENCE => std::thread::sleep(FIFO_LOOK),
                        Err(_) => return Err(std::io::Error::other("it is a FIFO that nothing reads from")),
                        Ok(file) => {
                            rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
                            return Ok(file);
                        }
                    }
                }
            }
        }
    }
}

/// Whether a path names a file that this process has open.
fn is_own_descriptor(path: &Path) -> bool {
    let number = path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
    let own = || fs::canonicalize("/proc/self/fd").ok();
    number && fs::canonicalize(directory(path)).is_ok_and(|folder| Some(folder) == own())
}

/// What a file is that is none on a disk.
fn kind_name(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_fifo() => "a FIFO",
        _ => "no regular file",
    }
}

/// Fails if writing `output` would change `input`.
///
/// # Errors
/// Io if so.
pub fn not_the_same(input: &Path, output: &Path) -> Result<()> {
    let same = match (fs::canonicalize(input), fs::canonicalize(output)) {
        (Ok(input), Ok(output)) => input == output,
        _ => false,
    };
    if same {
        Err(Error::new(Kind::Io, format!("{}: is the input, which is never changed", output.display())))
    } else {
        Ok(())
    }
}

/// Writes `bytes` to a file that appears when it is complete. `permissions` are those of a file it is made from.
///
/// # Errors
/// Io if it cannot be written, or exists and `force` is not set.
pub fn write(path: &Path, bytes: &[u8], force: bool, permissions: Option<Permissions>) -> Result<()> {
    let mut file = Pending::new(path, force)?;
    file.write(bytes)?;
    file.finish(permissions)
}

/// An output that is written piece by piece and appears when it is complete; nothing of one that is not finished stays.
pub struct Pending {
    path: PathBuf,
    place: Place,
    force: bool,
    file: BufWriter<Unfinished>,
}

impl Pending {
    /// Begins the file at `path`.
    ///
    /// # Errors
    /// Io if that fails.
    pub fn new(path: &Path, force: bool) -> Result<Pending> {
        let place = Place::of(path, force)?;
        let file = Unfinished::new_in(&place.folder()).map_err(|error| io(path, "cannot be written", &error))?;
        Ok(Pending { path: path.to_owned(), place, force, file: BufWriter::new(file) })
    }

    /// Appends to it.
    ///
    /// # Errors
    /// Io if that fails.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| io(&self.path, "cannot write", &error))
    }

    /// The file, for those who write to it themselves.
    pub fn output(&mut self) -> &mut (impl Write + Seek + Send + use<>) {
        &mut self.file
    }

    /// A file without a name beside it, for what waits to be written to it: where there is room for it, there is for
    /// that.
    ///
    /// # Errors
    /// Io if that fails.
    pub fn scratch(&self) -> Result<File> {
        tempfile::tempfile_in(self.place.folder()).map_err(|error| io(&self.path, "cannot write", &error))
    }

    /// The error of those who wrote to it.
    #[must_use]
    pub fn failed(&self, error: &Error) -> Error {
        Error::new(Kind::Io, format!("{}: cannot write: {}", self.path.display(), error.message()))
    }

    /// Gives it its name. `permissions` are those of a file it is made from.
    ///
    /// # Errors
    /// Io if that fails.
    pub fn finish(self, permissions: Option<Permissions>) -> Result<()> {
        let failed = |error: &std::io::Error| io(&self.path, "cannot write", error);
        let file = self.file.into_inner().map_err(|error| failed(error.error()))?;
        match &self.place {
            Place::File(target) => {
                file.file()
                    .set_permissions(permissions.unwrap_or_else(default_permissions))
                    .map_err(|error| failed(&error))?;
                file.name(target, self.force).map_err(|error| failed(&error))
            }
            Place::Through(through) => {
                let copy = || {
                    let mut from = file.file();
                    from.rewind()?;
                    let mut to = through.open()?;
                    std::io::copy(&mut from, &mut to)?;
                    to.flush()
                };
                copy().map_err(|error| failed(&error))
            }
        }
    }
}

/// Where the system names the files that this process has open.
const OPEN_FILES: &str = "/proc/self/fd";

/// A file that is not complete: without a name, so that nothing of it stays whatever ends the process; with a temporary
/// one where the file system or the system cannot name it later.
enum Unfinished {
    Unnamed(File),
    Named(NamedTempFile),
}

impl Unfinished {
    fn new_in(folder: &Path) -> std::io::Result<Unfinished> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) if Path::new(OPEN_FILES).is_dir() => Ok(Unfinished::Unnamed(file.into())),
            _ => {
                let file = NamedTempFile::new_in(folder)?;
                made_temporary(file.path());
                Ok(Unfinished::Named(file))
            }
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
        assert!(
            not_the_same(&path, &folder.path().join("../").join(folder.path().file_name().unwrap()).join("out"))
                .is_err()
        );
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
