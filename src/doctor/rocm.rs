//! AMD's libraries: ROCm and its version, HIP and the HSA runtime.

use std::path::{Path, PathBuf};

use super::System;
use wavetap_profile::file::Backend;
use wavetap_report::doctor::{Check, Subject};

/// Where the loader, and what ROCm's compilers link, look besides `LD_LIBRARY_PATH`.
const FOLDERS: [&str; 5] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/opt/rocm/lib", "/opt/rocm/lib64"];
/// The library of HIP, with the first number of its version.
const HIP: &str = "libamdhip64.so.";
/// The HSA runtime.
const HSA: &str = "libhsa-runtime64.so.1";
/// The last version of HIP that takes code objects of version 4 at most.
const LAST_WITHOUT_V5: [u32; 2] = [5, 2];

/// What there is.
pub(super) fn checks(system: &System, gpu: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut installed: Vec<String> = system
        .names("/opt")
        .into_iter()
        .filter(|name| name.starts_with("rocm"))
        .map(|name| format!("/opt/{name}"))
        .collect();
    installed.extend(system.variable("ROCM_PATH"));
    let mut seen: Vec<PathBuf> = Vec::new();
    for folder in installed {
        let place = system.path(&folder).canonicalize().unwrap_or_else(|_| system.path(&folder));
        let Some(version) = system.text(format!("{folder}/.info/version")).filter(|_| !seen.contains(&place)) else {
            continue;
        };
        seen.push(place);
        checks.push(Check::ok(Subject::Rocm, "rocm", format!("ROCm {version} in {folder}")));
    }
    checks.push(hip(system));
    checks.push(hsa(system, gpu));
    checks
}

/// A library whose name begins like this, in the first folder that has one, and the version at the end of its file's
/// name.
fn library(system: &System, begin: &str) -> Option<(PathBuf, String)> {
    let folders = system.folders("LD_LIBRARY_PATH").into_iter().chain(FOLDERS.iter().map(PathBuf::from));
    folders.into_iter().find_map(|folder| {
        // The name with the fewest numbers is the one that programs ask for.
        let mut names: Vec<String> = system.names(&folder);
        names.retain(|name| name.starts_with(begin));
        let name = names.into_iter().min_by_key(String::len)?;
        let place = folder.join(name);
        let file = system.path(&place).canonicalize().ok()?;
        Some((place, version(&file)))
    })
}

/// The numbers after `.so.` in a file's name.
fn version(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.split_once(".so.").map(|(_, version)| version.to_owned()).unwrap_or_default()
}

fn hip(system: &System) -> Check {
    const NAME: &str = "hip";
    let Some((place, version)) = library(system, HIP) else {
        let found = "libamdhip64 is in none of LD_LIBRARY_PATH, /usr/lib, /opt/rocm/lib";
        let advice = "only --stack rocm and GPUs need it: the emulator has its own";
        return Check::note(Subject::Rocm, NAME, found, advice);
    };
    let found = format!("HIP {version}: {}", place.display());
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let first = [numbers.next(), numbers.next()].map(|number| number.and_then(Result::ok));
    match first {
        [Some(major), Some(minor)] if [major, minor] <= LAST_WITHOUT_V5 => Check::note(
            Subject::Rocm,
            NAME,
            found,
            "it loads code objects up to version 4: with --stack rocm, compile with -mcode-object-version=4",
        ),
        _ => Check::ok(Subject::Rocm, NAME, found),
    }
}

fn hsa(system: &System, gpu: bool) -> Check {
    const NAME: &str = "hsa";
    match library(system, HSA) {
        Some((place, version)) => Check::ok(Subject::Rocm, NAME, format!("HSA runtime {version}: {}", place.display())),
        None => {
            let found = "libhsa-runtime64 is in none of LD_LIBRARY_PATH, /usr/lib, /opt/rocm/lib";
            if gpu {
                let advice = "install ROCm, or name its folder in LD_LIBRARY_PATH";
                Check::problem(Subject::Rocm, NAME, found, advice, &[Backend::Gpu])
            } else {
                Check::note(Subject::Rocm, NAME, found, "only --stack rocm and GPUs need it")
            }
        }
    }
}
