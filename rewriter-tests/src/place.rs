//! Folders and files of the project, and files that are made once for all tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::Failure;

/// Debian's LLVM 19, which the samples are compiled with: a second opinion on what the toolchain's LLVM says.
pub const LLVM_19: &str = "/usr/lib/x86_64-linux-gnu/libLLVM.so.19.1";

/// The folder of the workspace.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is inside the workspace")
}

/// The prebuilt samples.
#[must_use]
pub fn samples() -> PathBuf {
    root().join("hip-samples/bin")
}

/// The names of all prebuilt samples, sorted.
#[must_use]
pub fn sample_names() -> Vec<String> {
    let entries = fs::read_dir(samples()).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter(|e| e.path().is_file()).map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The folder that cargo builds into, and the profile's folder in it: `target/debug`.
#[must_use]
pub fn build_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    // target/debug/deps/cases-0123456789abcdef
    test.ancestors().nth(2).expect("tests run from target/PROFILE/deps").to_path_buf()
}

/// The emulator's HIP runtime. Cargo links it into the profile's folder only when it is built for itself, and not when
/// it is built for tests that use it, so this is where the compiler puts it.
#[must_use]
pub fn hip_runtime() -> PathBuf {
    build_folder().join("deps/libamdhip64.so")
}

/// Real libraries that `fetch-corpora.sh` has put there, if it was run.
#[must_use]
pub fn corpora() -> PathBuf {
    build_folder().parent().expect("the profile's folder is inside target").join("corpora")
}

/// Other kinds of host file and container of the samples' sources, built by `hip-samples/variants.sh` once per run of
/// the tests and build of the scripts.
///
/// # Errors
/// If the compiler is missing or the script fails.
pub fn variants() -> Result<PathBuf, Failure> {
    static MADE: OnceLock<Result<PathBuf, Failure>> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = build_folder().join("hip-variants");
        let script = root().join("hip-samples/variants.sh");
        let stamp = folder.join("made-from");
        let sources = fingerprint(&root().join("hip-samples"))?;
        if fs::read_to_string(&stamp).is_ok_and(|made| made == sources) {
            return Ok(folder);
        }
        let out = Command::new(&script).arg(&folder).output().map_err(|e| format!("{}: {e}", script.display()))?;
        if !out.status.success() {
            return Err(format!(
                "{} failed ({}):\n{}",
                script.display(),
                out.status,
                String::from_utf8_lossy(&out.stderr)
            ));
        }
        fs::write(&stamp, sources).map_err(|e| e.to_string())?;
        Ok(folder)
    })
    .clone()
}

/// Names, sizes and times of the scripts and sources that variants are built from.
fn fingerprint(folder: &Path) -> Result<String, Failure> {
    let mut lines = Vec::new();
    for place in [folder.to_path_buf(), folder.join("src")] {
        for entry in fs::read_dir(&place).map_err(|e| format!("{}: {e}", place.display()))?.flatten() {
            let data = entry.metadata().map_err(|e| e.to_string())?;
            if data.is_file() {
                lines.push(format!("{} {} {:?}", entry.path().display(), data.len(), data.modified().ok()));
            }
        }
    }
    lines.sort();
    Ok(lines.join("\n"))
}
