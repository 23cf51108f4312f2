//! `wavetap rewrite`: an executable that counts.

use std::process::ExitCode;

use wavetap::error::{Error, Result};
use wavetap::pipeline::Options;
use wavetap::report::rewrite::Maps;

use crate::args::{ColorChoice, RewriteArgs};
use crate::{files, map_file, output, progress};

/// Exit code: it ran, and something that was asked for was refused.
const REFUSED: u8 = 1;

/// Rewrites the file.
pub fn run(args: &RewriteArgs, colour: ColorChoice) -> Result<ExitCode> {
    let force = args.report.force;
    for path in [Some(&args.output), args.map.as_ref()].into_iter().flatten() {
        files::not_the_same(&args.input, path)?;
        files::may_write(path, force)?;
    }
    output::check(&args.report)?;
    let input = map_file::open(&args.input)?;
    let permissions = std::fs::metadata(&args.input).map_err(|error| files::io(&args.input, "cannot read", &error))?.permissions();
    let options = Options { packing: args.bundles.into(), keep_addresses: args.map.is_some(), ..args.instrument.options(&args.select) };
    let mut pending = files::Pending::new(&args.output, force)?;
    let maps = progress::rewrite(&input, &args.input, &options, &mut pending)?;
    if maps.iter().all(|map| map.kernels.is_empty() && map.refused.is_empty()) {
        eprintln!("wavetap: nothing is selected: {} is a copy of {}", args.output.display(), args.input.display());
    }
    pending.finish(Some(permissions))?;
    let maps = Maps::new(maps);
    if let Some(path) = &args.map {
        let map = serde_json::to_vec_pretty(&maps).map_err(|e| Error::internal(format!("map: {e}")))?;
        files::write(path, &map, force, None)?;
    }
    let summary = maps.summary();
    output::emit(&args.report, colour, &summary, |summary, style| summary.render(style))?;
    output::say_refused(&summary.refused);
    Ok(if summary.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}
