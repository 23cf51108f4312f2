//! `wavetap profile`: rewrite, run and report in one go.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::pipeline::{self, Inspected, MemoryInputs, Options};
use wavetap::profile::file::{KernelTotals, Origin, Profile};
use wavetap::profile::launches::NotCounted;
use wavetap::profile::map::{EVERY_KERNEL, ObjectMap, Refused};
use wavetap::profile::time::TimeProfile;
use wavetap::report::launches::CodeOfKernel;
use wavetap::report::memory::{self, MemoryReport};
use wavetap::report::summary::SummaryInputs;
use wavetap::report::{Report, text};

use super::launches;
use super::run::launch_code;
use crate::args::{ColorChoice, DetailsChoice, ProfileArgs};
use crate::collected::Ended;
use crate::output_name::OutputName;
use crate::{files, launch, map_file, output, page, progress, triton};

/// Exit code: it ran, and something that was asked for was refused.
const REFUSED: i32 = 1;

/// Profiles the application; the exit code is its own unless something was refused.
pub fn run(args: &ProfileArgs, colour: ColorChoice) -> Result<ExitCode> {
    let platform = launch::choose(&args.backend)?;
    output::check(&args.report)?;
    if platform.has_tool() && args.timing.wanted() {
        return Err(platform.lacks("--timing"));
    }
    output::check_probes(&args.instrument)?;
    output::check_per_wave(args.backend.per_wave, args.instrument.counters)?;
    let app = launch::App::find(&args.app)?;
    if let Some(name) = &args.output {
        let expected = name.expected();
        files::may_write(&expected, args.report.force)?;
        files::not_the_same(&app.path, &expected)?;
    }
    if let Some(page) = &args.html {
        files::may_write(page, args.report.force)?;
        files::not_the_same(&app.path, page)?;
    }
    let output = args.output.as_ref().map(OutputName::expected);
    files::distinct(output.iter().chain(&args.report.report).chain(&args.html))?;
    if args.instrument.counts_nothing() {
        return launches::run(args, colour, platform, &app);
    }
    let original = map_file::open(&app.path)?;
    let (folder, originals) = (launch::scratch()?, launch::scratch()?);
    let executable = folder.path().join(app.path.file_name().unwrap_or("app".as_ref()));
    let options = Options { single_waves: args.backend.per_wave, ..args.instrument.options(&args.select) };
    let has_no_code = launch::has_no_code_of_its_own(&original);
    let records = args.instrument.need(|needs| needs.records);
    if records && (args.view.board.board.is_some() || args.view.details != DetailsChoice::All) {
        return Err(Error::unsupported("--board and --details are not for the report of --probe memory"));
    }
    // The HSA tool rewrites what is loaded: a file that was rewritten would tell HIP what kernels need with counters.
    let loads_all = has_no_code || platform.has_tool();
    let left =
        if loads_all { Vec::new() } else { rewrite_keeping(&original, &app.path, &executable, &options, LeftOut::of)? };
    if loads_all {
        // Which kernels there are shows when they are loaded.
    } else if let Some(nothing) = nothing_selected(&original, &options, left.iter().map(|left| left.selected).sum()) {
        eprintln!("wavetap: {}: {nothing}", app.path.display());
        return Ok(launch_code(REFUSED));
    }

    let run = launch::Run {
        platform,
        app: &app,
        executable: (!loads_all).then_some(&executable),
        backend: &args.backend,
        target: args.select.target.first().map(String::as_str),
        counters: true,
        trace: false,
        launches: false,
        timing: measured_time_is_modelled(args, platform).then_some(launch::Modelled {
            latencies: &args.timing.latency,
            samples: false,
            interval: None,
        }),
        at_load: Some(launch::AtLoad { options: &options, originals: originals.path() }),
        stdout: None,
    };
    let mut ended = run.execute()?;
    ended.explain(|profile| left.iter().for_each(|left| left.explain(profile)));
    ended.say();
    ended.say_unranked(&args.output);
    if loads_all && ended.counters()?.is_none() && !ended.lacks_something() {
        return nothing_loaded(&app, platform, has_no_code, ended.code);
    }
    let written = match &args.output {
        Some(path) => ended.write_counters(path, args.report.force).map(drop),
        None => Ok(()),
    };
    let profile = ended.counters()?.unwrap_or_else(|| {
        // It used no kernel, and nothing is missing.
        Profile {
            complete: ended.signal.is_none() && !ended.lacks_something(),
            ..Profile::new(Origin::Counters, platform.backend())
        }
    });
    let file = (!loads_all).then_some((app.path.as_path(), &original[..]));
    if records {
        written?;
        let report = Report::new(&profile, launch::info(&args.backend, platform, &ended));
        write_page(args, &report, &profile, file, originals.path())?;
        let original = (!loads_all).then_some(&*original);
        return memory_report(args, colour, &app, (original, originals.path()), &profile, &ended);
    }
    let mut report = Report::new(&profile, launch::info(&args.backend, platform, &ended));
    let mut cut_short = false;
    if args.timing.wanted() && ended.signal.is_none() {
        (report.time, cut_short) = modelled(args, &app)?;
    }
    let mut code = Vec::new();
    if !loads_all {
        code = pipeline::explain(&mut report, &profile, &original).within(|| app.path.display().to_string())?;
    }
    code.extend(explain_loaded(&mut report, &profile, originals.path())?);
    report.set_builds(&triton::builds(&profile));
    report.summarise(&SummaryInputs { profile: &profile, board: args.view.board.board, code: &code });
    let details = args.view.details.into();
    output::emit(&args.report, colour, &report, |report, style| text::render_part(report, details, style))?;
    let misfit = args.view.board.misfit(profile.kernels.iter().map(|kernel| kernel.target.as_str()));
    misfit.iter().for_each(|misfit| eprintln!("wavetap: {misfit}"));
    write_page(args, &report, &profile, file, originals.path())?;
    output::say_refused(&report.refused, &args.report);
    output::say_uncounted(&report.uncounted);
    written?;
    let lacks_waves = args.backend.per_wave && output::say_shared(&profile);
    let counted_nothing = platform.has_tool() && !ended.lacks_something() && say_if_nothing_counted(&profile);
    let lacks = misfit.is_some()
        || cut_short
        || lacks_waves
        || counted_nothing
        || report.has_gaps()
        || ended.lacks_something()
        || ended.found;
    Ok(launch_code(if ended.code == 0 && lacks { REFUSED } else { ended.code }))
}

/// The report as a page, if one was asked for: with the code of the application's file, or of what it loaded.
fn write_page(
    args: &ProfileArgs,
    report: &Report,
    profile: &Profile,
    code: Option<(&Path, &[u8])>,
    originals: &Path,
) -> Result<()> {
    let Some(out) = &args.html else { return Ok(()) };
    page::write(out, args.report.force, &args.source, report, |data| {
        let is_loaded = |kernel: &KernelTotals| original_of(&kernel.object, originals).exists();
        if let Some((path, code)) = code.filter(|_| !profile.kernels.iter().all(is_loaded)) {
            pipeline::page(data, code, profile, None).within(|| path.display().to_string())?;
        }
        each_loaded(profile, originals, |code| pipeline::page(data, code, profile, None))
    })
}

/// Where the original of a code object is that was loaded.
fn original_of(object: &str, originals: &Path) -> PathBuf {
    originals.join(format!("{object}.co"))
}

/// Whether the clock that kernels read is that of the timing model: there is no other that says anything of time.
fn measured_time_is_modelled(args: &ProfileArgs, platform: launch::Platform) -> bool {
    let is_measured = args.instrument.need(|needs| needs.reads_clocks);
    is_measured && platform == launch::Platform::EmulatorHip && !args.backend.is_strict()
}

/// What the memory probe has recorded, of the kernels that ran.
fn memory_report(
    args: &ProfileArgs,
    colour: ColorChoice,
    app: &launch::App,
    (file, originals): (Option<&[u8]>, &Path),
    profile: &Profile,
    ended: &Ended,
) -> Result<ExitCode> {
    let inputs = MemoryInputs { profile: Some(profile), ..MemoryInputs::default() };
    let selection = args.select.selection();
    let empty =
        MemoryReport { schema: memory::SCHEMA.into(), predicted: true, kernels: Vec::new(), unread: Vec::new() };
    let analyse = |data: &[u8]| pipeline::memory(data, &selection, inputs);
    let mut report = match file {
        Some(file) => analyse(file).within(|| app.path.display().to_string())?,
        None => empty,
    };
    each_loaded(profile, originals, |code| {
        let MemoryReport { kernels, unread, .. } = analyse(code)?;
        report.kernels.extend(kernels);
        report.unread.extend(unread);
        Ok(())
    })?;
    report.kernels.retain(|kernel| kernel.recorded.is_some());
    output::emit(&args.report, colour, &report, memory::render)?;
    output::say_refused(&profile.refused, &args.report);
    output::say_uncounted(&profile.uncounted);
    let lacks = report.kernels.is_empty() || !profile.refused.is_empty() || ended.lacks_something() || ended.found;
    if report.kernels.is_empty() {
        eprintln!("wavetap: {}: no kernel ran whose accesses are recorded", app.path.display());
    }
    Ok(launch_code(if ended.code == 0 && lacks { REFUSED } else { ended.code }))
}

/// Says that neither an application nor what it started used the runtime that counts.
fn nothing_loaded(app: &launch::App, platform: launch::Platform, has_no_code: bool, code: i32) -> Result<ExitCode> {
    let path = app.path.display();
    let what = if has_no_code { "it has no device code, and " } else { "" };
    let message = match platform {
        launch::Platform::EmulatorHip => {
            format!("{path}: {what}no process of it used the HIP runtime to load any: there is nothing to count")
        }
        _ => format!("{path}: {what}{}: there is nothing to count", platform.nothing_collected()),
    };
    if code == 0 {
        return Err(Error::unsupported(message));
    }
    eprintln!("wavetap: {message}");
    Ok(launch_code(code))
}

/// Says that the HSA tool was loaded and nothing was counted, and why as far as that is known. Whether it was so.
fn say_if_nothing_counted(profile: &Profile) -> bool {
    if !profile.kernels.is_empty() {
        return false;
    }
    let why = match profile.uncounted.first() {
        None => "no kernel was dispatched, apart from HIP's own".to_owned(),
        Some(uncounted) => format!("none of {} kernels has counters ({})", profile.uncounted.len(), uncounted.detail),
    };
    eprintln!("wavetap: the HSA tool was loaded, and nothing was counted: {why}");
    true
}

/// Explains the waits of code that was loaded, from its originals.
fn explain_loaded(report: &mut Report, profile: &Profile, originals: &Path) -> Result<Vec<CodeOfKernel>> {
    let mut code = Vec::new();
    each_loaded(profile, originals, |object| {
        code.extend(pipeline::explain(report, profile, object)?);
        Ok(())
    })?;
    Ok(code)
}

/// Does something with each code object that was loaded and has counted, as it was before.
fn each_loaded(profile: &Profile, originals: &Path, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let counted: BTreeSet<&str> = profile.kernels.iter().map(|kernel| kernel.object.as_str()).collect();
    for object in counted {
        let path = original_of(object, originals);
        if path.exists() {
            each(&files::read(&path)?).within(|| format!("the code object {object}, which was loaded"))?;
        }
    }
    Ok(())
}

/// Models the time of the application as it is: counting takes time that the original does not. Of a run that
/// did not end there is none, which is said, and whether it was so: shares of a part of it are not those of the whole.
fn modelled(args: &ProfileArgs, app: &launch::App) -> Result<(Option<TimeProfile>, bool)> {
    let nowhere = std::fs::File::options()
        .write(true)
        .open("/dev/null")
        .map_err(|error| files::io(Path::new("/dev/null"), "cannot open", &error))?;
    let run = launch::Run {
        platform: launch::Platform::EmulatorHip,
        app,
        executable: None,
        backend: &args.backend,
        target: args.select.target.first().map(String::as_str),
        counters: false,
        trace: false,
        launches: false,
        timing: Some(launch::Modelled { latencies: &args.timing.latency, samples: false, interval: None }),
        at_load: None,
        stdout: Some(nowhere),
    };
    let ended = run.execute()?;
    if ended.signal.is_some() || ended.lacks_something() {
        eprintln!("wavetap: the run whose time was modelled did not end: no time is shown");
        return Ok((None, true));
    }
    Ok((ended.time(), false))
}

/// The kernels of a skipped code object, none of which was instrumented. Then it is the
/// original, and has no site table that says so.
#[derive(Debug)]
struct LeftOut {
    object: String,
    /// How many kernels of it were selected.
    selected: usize,
    refused: Vec<Refused>,
}

impl LeftOut {
    fn of(map: ObjectMap) -> LeftOut {
        let selected = map.kernels.len() + map.refused.len();
        LeftOut {
            object: map.original,
            selected,
            refused: if map.kernels.is_empty() { map.refused } else { Vec::new() },
        }
    }

    /// Says of its kernels that were dispatched why they were not counted.
    fn explain(&self, profile: &mut Profile) {
        let mut dispatched = false;
        for uncounted in profile.uncounted.iter_mut().filter(|uncounted| uncounted.object == self.object) {
            let refused =
                self.refused.iter().find(|refused| refused.name == uncounted.name || refused.name == EVERY_KERNEL);
            if let (NotCounted::NotRewritten, Some(refused)) = (uncounted.why, refused) {
                (uncounted.why, uncounted.detail) =
                    (NotCounted::Refused, format!("{}: {}", refused.reason, refused.detail));
                dispatched = true;
            } else if uncounted.why == NotCounted::NotRewritten {
                (uncounted.why, uncounted.detail) = (NotCounted::NotSelected, "it was not selected".to_owned());
            }
        }
        if dispatched {
            for refused in &self.refused {
                if !profile.refused.contains(refused) {
                    profile.refused.push(refused.clone());
                }
            }
        }
        profile.check_complete();
    }
}

/// Says why nothing was selected, if something should have been.
pub fn nothing_selected(original: &[u8], options: &Options, selected: usize) -> Option<String> {
    let selection = &options.selection;
    if selected > 0 || (selection.kernels.is_empty() && selection.targets.is_empty()) {
        return None;
    }
    let inspected = Inspected { selection: selection.clone(), ..Inspected::default() };
    let said = pipeline::inspect(original, &inspected, None).err().map(|error| error.to_string());
    Some(said.unwrap_or_else(|| "nothing that --kernel and --target select is there to be counted".to_owned()))
}

/// Writes the rewritten application, executable as the original is. How many kernels were selected.
pub fn rewrite_to(original: &[u8], path: &Path, output: &Path, options: &Options) -> Result<usize> {
    let kept = rewrite_keeping(original, path, output, options, |map| map.kernels.len() + map.refused.len())?;
    Ok(kept.into_iter().sum())
}

/// [`rewrite_to`] that keeps something of the map of each code object.
fn rewrite_keeping<M: Send>(
    original: &[u8],
    path: &Path,
    output: &Path,
    options: &Options,
    keep: impl Fn(ObjectMap) -> M + Sync,
) -> Result<Vec<M>> {
    let mut pending = files::Pending::new(output, false)?;
    let kept = progress::rewrite(original, path, options, &mut pending, keep)?;
    let permissions = std::fs::metadata(path).map_err(|error| files::io(path, "cannot read", &error))?.permissions();
    pending.finish(Some(permissions))?;
    Ok(kept)
}
