//! Names of outputs that are one for each process, rank or host: `%p`, `%r`, `%h`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use wavetap_collect::rank;

/// What introduces a placeholder.
const PERCENT: u8 = b'%';

/// The rank of a process that no launcher has started: it is the only one, as for MPI, which makes it the first.
const ONLY_RANK: u32 = 0;

/// A piece of a file's name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    /// `%p`: the process's id.
    Process,
    /// `%h`: the name of this machine.
    Host,
    /// `%r`: the process's rank.
    Rank,
}

/// Where an output goes: a path in whose last component placeholders stand for what differs between processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputName {
    /// As the user has it.
    path: PathBuf,
    pieces: Vec<Piece>,
}

impl OutputName {
    /// Finds the placeholders.
    ///
    /// # Errors
    /// A `%` with something else after it: which placeholders there are.
    pub fn parse(path: PathBuf) -> std::result::Result<OutputName, String> {
        let mut pieces = Vec::new();
        let mut text = Vec::new();
        let mut bytes = path.file_name().unwrap_or_default().as_bytes().iter().copied();
        while let Some(byte) = bytes.next() {
            if byte != PERCENT {
                text.push(byte);
                continue;
            }
            let piece = match bytes.next() {
                Some(PERCENT) => {
                    text.push(PERCENT);
                    continue;
                }
                Some(b'p') => Piece::Process,
                Some(b'h') => Piece::Host,
                Some(b'r') => Piece::Rank,
                other => {
                    let found = other.map_or_else(String::new, |byte| char::from(byte).to_string());
                    let known = "%p (process), %h (host), %r (rank) or %% (a percent sign)";
                    return Err(format!("%{found} in the name: {known} was expected"));
                }
            };
            pieces.extend([Piece::Text(std::mem::take(&mut text)), piece]);
        }
        pieces.push(Piece::Text(text));
        Ok(OutputName { path, pieces })
    }

    /// Whether processes may have different ones.
    fn is_per_process(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Process | Piece::Rank))
    }

    /// Whether it depends on ranks.
    #[must_use]
    pub fn has_rank(&self) -> bool {
        self.pieces.contains(&Piece::Rank)
    }

    /// The one file for all processes; none if processes may have different ones.
    #[must_use]
    pub fn of_all(&self) -> Option<PathBuf> {
        (!self.is_per_process()).then(|| self.of("", None))
    }

    /// The file of a process, by what its journal is called (`123`, `123-1`), and its rank.
    #[must_use]
    pub fn of(&self, process: &str, rank: Option<u32>) -> PathBuf {
        // Nothing stands for something else.
        let [Piece::Text(text)] = &self.pieces[..] else { return self.path.with_file_name(self.file(process, rank)) };
        if text.is_empty() { self.path.clone() } else { self.path.with_file_name(OsStr::from_bytes(text)) }
    }

    fn file(&self, process: &str, rank: Option<u32>) -> OsString {
        let mut name = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => name.extend_from_slice(text),
                Piece::Process => name.extend_from_slice(process.as_bytes()),
                Piece::Rank => name.extend_from_slice(rank.unwrap_or(ONLY_RANK).to_string().as_bytes()),
                Piece::Host => name.extend_from_slice(rustix::system::uname().nodename().to_bytes()),
            }
        }
        OsString::from_vec(name)
    }

    /// The file that is tried before the application runs: that of all processes, or as if this one counted.
    #[must_use]
    pub fn expected(&self) -> PathBuf {
        self.of(&std::process::id().to_string(), rank::of_process())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn name(text: &str) -> OutputName {
        OutputName::parse(text.into()).expect("a name")
    }

    #[test]
    fn placeholders_stand_for_process_rank_and_host() {
        assert_eq!(name("a/r%r-%p.profile").of("12-1", Some(3)), Path::new("a/r3-12-1.profile"));
        assert_eq!(name("r%r").of("12", None), Path::new("r0"), "the only process is the first one");
        let host = name("%h%%").of_all().expect("one for all");
        assert!(host.as_os_str().len() > 1 && host.as_os_str().as_bytes().ends_with(b"%"), "{host:?}");
        assert_eq!(name("100%%").of_all().as_deref(), Some(Path::new("100%")));
        assert_eq!(name("%%p").of_all().as_deref(), Some(Path::new("%p")));
        assert!(name("%p").of_all().is_none() && name("%r").of_all().is_none());
    }

    #[test]
    fn only_the_name_of_the_file_has_them() {
        assert_eq!(name("50%/p").of_all().as_deref(), Some(Path::new("50%/p")));
        assert_eq!(name("/dev/null").of_all().as_deref(), Some(Path::new("/dev/null")));
        assert_eq!(name("..").of_all().as_deref(), Some(Path::new("..")));
    }

    #[test]
    fn others_are_refused_with_those_that_exist() {
        for (text, said) in [("a%x", "%x in"), ("50%", "% in"), ("%q{HOME}", "%q in"), ("%R", "%R in")] {
            let message = OutputName::parse(text.into()).expect_err(text);
            assert!(message.starts_with(said) && message.contains("%r (rank)"), "{message}");
        }
    }
}
