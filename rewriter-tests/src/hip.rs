//! Compiles HIP programs of tests with the compiler that the tests need.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Failure, place};

/// Puts the device libraries that the compiler needs into a folder, which is made if it is not there.
///
/// # Errors
/// If they are not there or cannot be copied.
pub fn device_libraries(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    finish(Command::new(place::root().join("hip-samples/bitcode.sh")).arg(folder))
}

/// Compiles a program for these targets, with the device libraries of a folder and further flags.
///
/// # Errors
/// If the compiler does not take it.
pub fn compile(
    (source, executable): (&Path, &Path),
    libraries: &Path,
    targets: &[&str],
    flags: &[&str],
) -> Result<(), Failure> {
    finish(
        Command::new("clang++-19")
            .args(["-w", "-x", "hip", "-std=c++17", "-O2"])
            .args(targets.iter().map(|target| format!("--offload-arch={target}")))
            .arg(format!("--rocm-device-lib-path={}", libraries.display()))
            .args(flags)
            .args([source, Path::new("-o"), executable])
            .arg("-lamdhip64"),
    )
}

/// Runs a command to its end.
fn finish(command: &mut Command) -> Result<(), Failure> {
    let out = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if out.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr)))
}
