//! What runs the kernels, under which libraries.

use std::path::Path;

use wavetap_base::error::{Error, Result};
use wavetap_profile::file::Backend;

/// The kernel driver's device: there is an AMD GPU where it exists.
const GPU_DEVICE: &str = "/dev/kfd";

/// What is to run the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BackendChoice {
    /// The GPU where there is one (`/dev/kfd`) and no [`Stack`] is chosen, otherwise the built-in emulator.
    #[default]
    Auto,
    /// This machine's GPU, with its own ROCm libraries.
    Gpu,
    /// The built-in emulator.
    Emulator,
}

/// What the calls of HIP reach of an application that runs on the emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stack {
    /// The emulator's own HIP runtime instead of AMD's.
    Hip,
    /// AMD's own libraries, as they are installed, with the emulator in place of their kernel driver.
    Rocm,
}

/// What runs the kernels, under which libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Platform {
    /// The emulator, under its own HIP runtime.
    EmulatorHip,
    /// The emulator, under the real ROCm libraries.
    EmulatorRocm,
    /// The GPU.
    Gpu,
}

impl Platform {
    /// What runs the kernels.
    #[must_use]
    pub fn backend(self) -> Backend {
        match self {
            Platform::EmulatorHip | Platform::EmulatorRocm => Backend::Emulator,
            Platform::Gpu => Backend::Gpu,
        }
    }

    /// Whether the emulator runs them.
    #[must_use]
    pub fn is_emulated(self) -> bool {
        self.backend() == Backend::Emulator
    }

    /// Whether the HSA tool counts: code is rewritten when it is loaded, and never before.
    #[must_use]
    pub fn has_tool(self) -> bool {
        self != Platform::EmulatorHip
    }

    /// The error of asking for what it does not have.
    #[must_use]
    pub fn lacks(self, what: &str) -> Error {
        let (place, instead) = match self {
            Platform::Gpu => ("on a GPU", "--backend emulator"),
            Platform::EmulatorRocm => ("with --stack rocm", "--stack hip"),
            Platform::EmulatorHip => ("with --stack hip", "--stack rocm"),
        };
        Error::unsupported(format!("{what}: not available {place}; use {instead}"))
    }

    /// Why there is nothing where no process has left anything.
    #[must_use]
    pub fn nothing_collected(self) -> &'static str {
        match self {
            Platform::EmulatorHip => "the application never used the HIP runtime",
            Platform::EmulatorRocm | Platform::Gpu => {
                "the HSA tool was loaded into no process: the application did not initialise ROCm's HSA runtime, or \
                    that loads no tools"
            }
        }
    }
}

impl Platform {
    /// What runs the kernels on this machine.
    ///
    /// # Errors
    /// Unsupported if a GPU is wanted and there is none, or beside a stack.
    pub fn choose(choice: BackendChoice, stack: Option<Stack>) -> Result<Platform> {
        decide(choice, stack, Path::new(GPU_DEVICE).exists())
    }

    /// What a person has to be told of a platform that was chosen for them.
    #[must_use]
    pub fn remark(self, choice: BackendChoice) -> Option<&'static str> {
        /// The emulator is what all is tested with.
        const USED: &str = "running on this machine's GPU, on which this version was not tested (--backend emulator: \
                            the built-in emulator)";
        (self == Platform::Gpu && choice == BackendChoice::Auto).then_some(USED)
    }
}

/// What runs the kernels on a machine with or without an AMD GPU.
fn decide(choice: BackendChoice, stack: Option<Stack>, gpu: bool) -> Result<Platform> {
    let emulated = match stack {
        None | Some(Stack::Hip) => Platform::EmulatorHip,
        Some(Stack::Rocm) => Platform::EmulatorRocm,
    };
    match (choice, stack) {
        (BackendChoice::Auto, None) if gpu => Ok(Platform::Gpu),
        (BackendChoice::Auto | BackendChoice::Emulator, _) => Ok(emulated),
        (BackendChoice::Gpu, Some(_)) => {
            Err(Error::unsupported("--stack chooses libraries for the emulator; --backend gpu has the machine's own"))
        }
        (BackendChoice::Gpu, None) if gpu => Ok(Platform::Gpu),
        (BackendChoice::Gpu, None) => {
            let message = format!("there is no AMD GPU here (no {GPU_DEVICE}): use --backend emulator");
            Err(Error::unsupported(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_run_on_the_gpu_where_there_is_one_and_nothing_else_was_asked_for() {
        let decide = |choice, stack, gpu| {
            decide(choice, stack, gpu).map(|platform| (platform, platform.remark(choice).is_some()))
        };
        for gpu in [false, true] {
            let without = if gpu { (Platform::Gpu, true) } else { (Platform::EmulatorHip, false) };
            assert_eq!(decide(BackendChoice::Auto, None, gpu).unwrap(), without);
            assert_eq!(decide(BackendChoice::Emulator, None, gpu).unwrap(), (Platform::EmulatorHip, false));
            for choice in [BackendChoice::Auto, BackendChoice::Emulator] {
                let rocm = decide(choice, Some(Stack::Rocm), gpu).unwrap();
                assert_eq!(rocm, (Platform::EmulatorRocm, false));
                let hip = decide(choice, Some(Stack::Hip), gpu).unwrap();
                assert_eq!(hip, (Platform::EmulatorHip, false));
            }
            let error = decide(BackendChoice::Gpu, Some(Stack::Rocm), gpu).unwrap_err();
            assert!(error.to_string().contains("--stack"), "{error}");
        }
        assert_eq!(decide(BackendChoice::Gpu, None, true).unwrap(), (Platform::Gpu, false));
        let error = decide(BackendChoice::Gpu, None, false).unwrap_err().to_string();
        assert!(error.contains("--backend emulator") && error.contains("/dev/kfd"), "{error}");
    }
}
