//! `wavetap rewrite`: an executable that counts.

use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::pipeline::{self, Options};
use wavetap::profile::map::ObjectMap;
use wavetap::report::rewrite::{Maps, Summary};
use wavetap::stderr_line;

use crate::args::{LookArgs, RewriteArgs};
use crate::{files, map_file, memory, output, progress};

/// Exit code: it ran, and something that was asked for was refused.
const REFUSED: u8 = 1;

/// Rewrites the file.
pub fn run(args: &RewriteArgs, look: LookArgs) -> Result<ExitCode> {
    let force = args.report.force;
    for path in [Some(&args.output), args.map.as_ref()].into_iter().flatten() {
        files::not_the_same(&args.input, path)?;
        files::may_write(path, force)?;
    }
    output::check(&args.report)?;
    output::check_probes(&args.instrument)?;
    if args.instrument.counts_nothing() {
        return Err(Error::unsupported("--probe none: nothing would be rewritten; `wavetap profile` reports launches"));
    }
    output::check_per_wave(args.per_wave, args.instrument.counters)?;
    let input = map_file::open(&args.input)?;
    let permissions =
        std::fs::metadata(&args.input).map_err(|error| files::io(&args.input, "cannot read", &error))?.permissions();
    let options = Options {
        packing: args.bundles.into(),
        keep_addresses: args.map.is_some(),
        single_waves: args.per_wave,
        ..args.instrument.options(&args.select)
    };
    memory::keep_little();
    let mut pending = files::Pending::new(&args.output, force)?;
    // Where no map is asked for, the sites are not kept: there are many.
    let keep = |map: ObjectMap| (Summary::of(std::slice::from_ref(&map)), args.map.is_some().then_some(map));
    let kept = progress::rewrite(&input, &args.input, &options, &mut pending, keep)?;
    pipeline::check_selection(&input, &args.select.selection()).within(|| args.input.display().to_string())?;
    let (summaries, maps): (Vec<Summary>, Vec<Option<ObjectMap>>) = kept.into_iter().unzip();
    let summary = Summary::join(summaries);
    if summary.kernels.is_empty() && summary.refused.is_empty() {
        stderr_line!("wavetap: there is no kernel: {} is a copy of {}", args.output.display(), args.input.display());
    }
    pending.finish(Some(permissions))?;
    if let Some(path) = &args.map {
        let maps = Maps::new(maps.into_iter().flatten().collect());
        let map = serde_json::to_vec_pretty(&maps).map_err(|e| Error::internal(format!("map: {e}")))?;
        files::write(path, &map, force, None)?;
    }
    output::emit(&args.report, look, &summary, |summary, style| summary.render(style))?;
    output::say_refused(&summary.refused, &args.report);
    Ok(if summary.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}
