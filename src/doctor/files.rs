//! The libraries of this program.

use super::System;
use wavetap_profile::file::Backend;
use wavetap_report::doctor::{Check, Subject};

/// What each library is for, and whether it was found.
pub(super) fn checks(system: &System, gpu: bool) -> Vec<Check> {
    let found = system.libraries.find_each();
    let of = |(library, place): (&'static str, wavetap_base::error::Result<std::path::PathBuf>)| {
        let (use_of, stops): (&str, &[Backend]) = match library {
            "hip_runtime" => ("programs run on the emulator with it", &[Backend::Emulator]),
            "hsa_tool" => ("it counts on GPUs and with --stack rocm", &[Backend::Gpu]),
            "kernel_driver" => ("--stack rocm needs it", &[]),
            _ => ("it has the ranges (roctx) of programs on GPUs and with --stack rocm", &[]),
        };
        let is_needed = stops.contains(&Backend::Emulator) || gpu && !stops.is_empty();
        match place {
            Ok(path) => Check::ok(Subject::Wavetap, library, format!("{}: {use_of}", path.display())),
            Err(error) if is_needed => Check::problem(Subject::Wavetap, library, error.message(), use_of, stops),
            Err(error) => Check::note(Subject::Wavetap, library, error.message(), use_of),
        }
    };
    found.into_iter().map(of).collect()
}
