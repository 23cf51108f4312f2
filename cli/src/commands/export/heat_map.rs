//! `wavetap export heat-map`: which waves access which words.

use std::process::ExitCode;

use wavetap::error::Result;
use wavetap::report::export::records::heat_maps;
use wavetap::report::memory::MappedWorkgroups;

use super::{Counted, write};
use crate::args::HeatMapArgs;

/// Writes the maps.
pub fn run(args: &HeatMapArgs) -> Result<ExitCode> {
    let mapped = if args.all_workgroups { MappedWorkgroups::All } else { MappedWorkgroups::First };
    write(&args.out, || Ok(heat_maps(&Counted::of(&args.counted)?.recorded()?, mapped).into()))
}
