//! `wavetap export sites`: every counter of every site.

use std::process::ExitCode;

use wavetap::error::Result;
use wavetap::profile::file::KernelTotals;
use wavetap::report::export::sites::sites;

use super::{check, is_selected, write};
use crate::args::SitesArgs;

/// Writes the table.
pub fn run(args: &SitesArgs) -> Result<ExitCode> {
    write(&args.out, || {
        let profile = args.region.read(&args.counters)?;
        let selection = args.select.selection();
        let name = |kernel: &KernelTotals| (kernel.name.clone(), kernel.target.clone());
        check(&selection, profile.kernels.iter().map(name), "the profile")?;
        let is_selected = |kernel: &&KernelTotals| is_selected(&selection, &kernel.name, &kernel.target);
        Ok(sites(profile.kernels.iter().filter(is_selected))?.into())
    })
}
