//! What is captured of dispatches.

use std::path::PathBuf;

use wavetap::capture::Filter;
use wavetap::collect::config::CaptureConfig;
use wavetap::error::Error;

use crate::messages::complain;

/// Which dispatch of the process is captured.
pub(crate) struct Captures {
    pub(crate) filter: Filter,
    folder: PathBuf,
    /// Bytes of memory that a capture may have.
    pub(crate) most: u64,
}

impl Captures {
    pub(crate) fn new(config: &CaptureConfig) -> Captures {
        Captures {
            filter: Filter::new(config.kernels.clone(), config.dispatch),
            folder: config.folder.clone(),
            most: config.memory_limit,
        }
    }

    /// Where the capture of this process goes, and how many dispatches there were if it has none.
    pub(crate) fn file(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", std::process::id()))
    }

    /// Says how many dispatches could have been captured, for a run in which none was.
    pub(crate) fn finish(&self) {
        if let Err(error) = std::fs::write(self.file("seen"), self.filter.seen().to_string()) {
            complain("what could be captured is not known", &Error::from(error));
        }
    }
}
