//! Programs of many processes and nodes: MPI, Slurm, and the files for CI in `examples/ci`.

mod ci;
mod mpi;
mod slurm;

use std::fs;
use std::path::Path;

use wavetap::profile::file::Profile;

/// Whether a program is where programs are; daemons have a folder that is not in every user's `PATH`.
fn has_program(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).chain(["/usr/sbin".into()]).any(|folder| folder.join(name).is_file())
}

fn read(path: &Path) -> Profile {
    Profile::from_json(&fs::read(path).expect("a file")).expect("a profile")
}
