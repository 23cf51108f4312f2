//! `wavetap profile`: rewrite, run and report in one go.

use std::process::ExitCode;

use wavetap::emulator::TimedWorkgroups;
use wavetap::error::{Error, Result};
use wavetap::profile::file::Profile;
use wavetap::profile::time::TimeProfile;
use wavetap::report::{Report, memory, text};
use wavetap::run::{App, Collect, Finished, OutputName, Platform, RunOptions, Stdout};
use wavetap::stderr_line;
use wavetap::{ExplainOptions, Options, Program};

use super::launches;
use super::run::launch_code;
use crate::args::{DetailsChoice, Format, LookArgs, ProfileArgs};
use crate::{files, launch, map_file, output, page, progress, triton};

/// Exit code: it ran, and something that was asked for was refused.
const REFUSED: i32 = 1;

/// Profiles the application; the exit code is its own unless something was refused.
pub fn run(args: &ProfileArgs, look: LookArgs) -> Result<ExitCode> {
    let mut args = args.clone();
    let target = args.select.target.first().map(String::as_str);
    let (platform, mut run) = launch::options(&args.backend, &args.app, target)?;
    if platform.is_emulated() {
        args.view.board.select(&mut args.select)?;
        run.target = args.select.target.first().cloned();
        run.board = args.view.board.board;
    }
    let args = &args;
    output::check(&args.report)?;
    if platform.has_tool() && args.timing.wanted() {
        return Err(platform.lacks("--timing"));
    }
    output::check_probes(&args.instrument)?;
    output::check_per_wave(args.backend.per_wave, args.instrument.counters)?;
    let app = launch::find(&args.app)?;
    if let Some(name) = &args.output {
        let expected = name.expected();
        files::may_write(&expected, args.report.force)?;
        files::not_the_same(app.path(), &expected)?;
    }
    if let Some(page) = &args.html {
        files::may_write(page, args.report.force)?;
        files::not_the_same(app.path(), page)?;
    }
    let output = args.output.as_ref().map(OutputName::expected);
    files::distinct(output.iter().chain(&args.report.report).chain(&args.html))?;
    if args.instrument.counts_nothing() {
        return launches::run(args, look, run, app);
    }
    let contents = map_file::open(app.path())?;
    let program = Program::new(app, contents);
    let options = Options { single_waves: args.backend.per_wave, ..args.instrument.options(&args.select) };
    let records = args.instrument.need(|needs| needs.records);
    if records && (args.view.board.board.is_some() || args.view.details != DetailsChoice::All) {
        return Err(Error::unsupported("--board and --details are not for the report of --probe memory"));
    }
    let rewritten = if platform.has_tool() {
        program.rewrite_at_load(&options)
    } else {
        progress::rewrite_program(&program, &options)?
    };
    if let Some(nothing) = rewritten.nothing_selected() {
        return Err(Error::unsupported(format!("{nothing}, in {}", program.path().display())));
    }
    run.timing = measured_time_is_modelled(args, &run, platform).then(|| {
        // Of workgroups that are not modelled the clock would say nothing.
        let mut timing = launch::timing(&args.timing);
        timing.workgroups = TimedWorkgroups::All;
        timing
    });
    let ended = rewritten.run_observed(&run, &launch::Terminal)?;
    launch::say_findings(&ended);
    launch::say(&ended, &args.output);
    if let Some(nothing) = ended.nothing_loaded() {
        if ended.exit_code() == 0 {
            return Err(Error::unsupported(nothing));
        }
        stderr_line!("wavetap: {nothing}");
        return Ok(launch_code(ended.exit_code()));
    }
    let written = match &args.output {
        Some(path) => ended.write_counters(path, args.report.force).map(drop),
        None => Ok(()),
    };
    let profile = ended.profile()?;
    let selected = launch::check_selected(&args.select.selection(), &program, &ended, &profile);
    if records {
        written?;
        let report = Report::new(&profile, ended.info().clone());
        write_page(args, &report, &profile, &ended)?;
        let code = memory_report(args, look, program.app(), &profile, &ended)?;
        return selected.map(|()| code);
    }
    let (mut time, mut cut_short) = (None, false);
    if args.timing.wanted() && ended.signal().is_none() {
        (time, cut_short) = modelled(args, &program, run)?;
    }
    let explained = ExplainOptions::new().board(args.view.board.board).time(time).builds(triton::builds(&profile));
    let report = ended.explain(&profile, &explained)?;
    let details = args.view.details.into();
    output::emit(&args.report, look, &report, |report, style| text::render_part(report, details, style))?;
    let misfit = args.view.board.misfit(profile.kernels.iter().map(|kernel| kernel.target.as_str()));
    misfit.iter().for_each(|misfit| stderr_line!("wavetap: {misfit}"));
    write_page(args, &report, &profile, &ended)?;
    output::say_refused(&report.refused, &args.report);
    output::say_uncounted(&report.uncounted);
    written?;
    selected?;
    let lacks_waves = args.backend.per_wave && output::say_shared(&profile);
    let counted_nothing = platform.has_tool() && !ended.lacks_something() && say_if_nothing_counted(&profile, &ended);
    let lacks = misfit.is_some()
        || cut_short
        || lacks_waves
        || counted_nothing
        || report.has_gaps()
        || ended.lacks_something()
        || ended.has_findings();
    Ok(launch_code(if ended.exit_code() == 0 && lacks { REFUSED } else { ended.exit_code() }))
}

/// The report as a page, if one was asked for: with the code of the application's file, or of what it loaded.
fn write_page(args: &ProfileArgs, report: &Report, profile: &Profile, ended: &Finished) -> Result<()> {
    let Some(out) = &args.html else { return Ok(()) };
    page::write(out, args.report.force, &args.source, report, |data| ended.fill_page(data, profile))
}

/// Whether the clock that kernels read is that of the timing model: there is no other that says anything of time.
fn measured_time_is_modelled(args: &ProfileArgs, run: &RunOptions, platform: Platform) -> bool {
    let is_measured = args.instrument.need(|needs| needs.reads_clocks);
    is_measured && platform == Platform::EmulatorHip && !run.is_strict()
}

/// What the memory probe has recorded, of the kernels that ran.
fn memory_report(
    args: &ProfileArgs,
    look: LookArgs,
    app: &App,
    profile: &Profile,
    ended: &Finished,
) -> Result<ExitCode> {
    let report = ended.memory(profile, &args.select.selection())?;
    // As text there is nothing to show where nothing was recorded, which is said on stderr.
    if !report.kernels.is_empty() || args.report.format != Format::Text {
        output::emit(&args.report, look, &report, memory::render)?;
    }
    output::say_refused(&profile.refused, &args.report);
    output::say_uncounted(&profile.uncounted);
    let lacks =
        report.kernels.is_empty() || !profile.refused.is_empty() || ended.lacks_something() || ended.has_findings();
    if report.kernels.is_empty() {
        let what = match ended.signal() {
            Some(_) => "no dispatch whose accesses are recorded had ended by then",
            None => "no kernel ran whose accesses are recorded",
        };
        stderr_line!("wavetap: {}: {what}", app.path().display());
    }
    Ok(launch_code(if ended.exit_code() == 0 && lacks { REFUSED } else { ended.exit_code() }))
}

/// Says that the HSA tool was loaded and nothing was counted, and why as far as that is known. Whether it was so.
fn say_if_nothing_counted(profile: &Profile, ended: &Finished) -> bool {
    if !profile.kernels.is_empty() {
        return false;
    }
    let why = match profile.uncounted.first() {
        None => "no kernel was dispatched, apart from HIP's own".to_owned(),
        Some(uncounted) => format!("none of {} kernels has counters ({})", profile.uncounted.len(), uncounted.detail),
    };
    stderr_line!("wavetap: the HSA tool was loaded, and nothing was counted: {why}");
    if ended.exit_code() == 0 {
        ended.warnings().iter().for_each(|warning| stderr_line!("wavetap: {warning}"));
    }
    true
}

/// Models the time of the application as it is: counting takes time that the original does not. Of a run that
/// did not end there is none, which is said, and whether it was so: shares of a part of it are not those of the whole.
fn modelled(args: &ProfileArgs, program: &Program, mut options: RunOptions) -> Result<(Option<TimeProfile>, bool)> {
    options.collect = Collect::NOTHING;
    options.timing = Some(launch::timing(&args.timing));
    options.stdout = Stdout::Discarded;
    let ended = program.run_observed(&options, &launch::Terminal)?;
    launch::say_findings(&ended);
    if ended.signal().is_some() || ended.lacks_something() {
        stderr_line!("wavetap: the run whose time was modelled did not end: no time is shown");
        return Ok((None, true));
    }
    Ok((ended.time(), false))
}
