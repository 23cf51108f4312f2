//! Lines on standard error, which may be closed or full, and which may be the standard error of an application.
//!
//! Text that cannot be written is lost. `eprintln!` panics there, which ends the application in whose process a library
//! writes; and a process that does not ignore SIGPIPE, as most applications, is ended by a write to a pipe that nothing
//! reads.

use std::fmt::Arguments;
use std::io::{Write, stderr};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Writes a line to standard error, whole and at once, as `eprintln!` without a panic.
#[macro_export]
macro_rules! stderr_line {
    ($($text:tt)*) => { $crate::stderr::line(::core::format_args!($($text)*)) };
}

/// Writes a line to standard error, if that is possible.
pub fn line(text: Arguments<'_>) {
    let mut out = stderr().lock();
    if has_reader(out.as_fd()) {
        let _ = out.write_all(format!("{text}\n").as_bytes());
    }
}

/// Whether something may read what is written: false of a pipe or socket whose other end is closed.
fn has_reader(file: BorrowedFd<'_>) -> bool {
    let mut files = [PollFd::from_borrowed_fd(file, PollFlags::OUT)];
    // What cannot be polled can be tried.
    let _ = poll(&mut files, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    !files[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_without_a_reader_is_not_written_to() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        assert!(has_reader(writer.as_fd()));
        drop(reader);
        assert!(!has_reader(writer.as_fd()));
    }

    #[test]
    fn files_and_devices_are_written_to() {
        let file = tempfile::tempfile().expect("a file");
        assert!(has_reader(file.as_fd()));
        let null = std::fs::File::options().write(true).open("/dev/null").expect("the device");
        assert!(has_reader(null.as_fd()));
    }
}
