//! `wavetap check`: what is wrong in the GPU code of an application.

use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Error, Kind, Result, ResultExt};
use wavetap::explain::check::{self, CheckSuppressions};
use wavetap::profile::check::{CheckReport, SCHEMA, Severity, Tool};
use wavetap::report::check::{junit, log, render};
use wavetap::report::findings::sarif;
use wavetap::run::{App, Checked, Collect, Finished, Launch, Platform, RunOptions};
use wavetap::{Program, stderr_line};

use super::orders;
use super::run::launch_code;
use crate::args::{CheckArgs, CheckFormat, LookArgs};
use crate::{files, launch, map_file, output, signals};

/// Exit code: something was found, or nothing was checked.
const FOUND: i32 = 1;

/// Exit code of a command that signal n ended: 128 + n.
const SIGNAL_BASE: i32 = 128;

/// Runs the application and reports what was found.
pub fn run(args: &CheckArgs, look: LookArgs) -> Result<ExitCode> {
    let target = args.board.target(args.target.as_deref())?;
    output::check(&args.output)?;
    let suppressions = args.suppressions.as_deref().map(read_suppressions).transpose()?.unwrap_or_default();
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let (platform, mut options) = launch::platform(args.backend, args.stack, &args.app)?;
    let app = launch::find(&args.app)?;
    launch::check_target(&app, target.as_deref(), &args.board)?;
    options.target = target;
    options.board = args.board.board;
    (options.seed, options.fuel) = (args.seed, args.fuel);
    let by_probe = args.instrument || platform == Platform::Gpu;
    if by_probe && (args.schedules > 1 || args.schedule_seed.is_some()) {
        return Err(Error::unsupported(
            "--schedules and --schedule-seed: only the emulator chooses orders, not inserted code",
        ));
    }
    if args.drop && !by_probe {
        let message = "--drop needs --backend gpu or --instrument: the emulator never executes accesses out of bounds";
        return Err(Error::unsupported(message));
    }
    let mut schedule_seeds =
        if args.schedules > 1 { orders::seeds(args.schedules, args.schedule_seed) } else { Vec::new() };
    let mut tools = tools(&args.tools);
    let held = signals::hold().map_err(|error| Error::new(Kind::Io, format!("cannot handle signals: {error}")))?;
    let (ended, checked) = if by_probe {
        let (own, ended, checked) = check_by_probe(tools, platform, args.drop, options, app.clone())?;
        tools = own;
        (ended, checked)
    } else {
        options.check = Some(tools.clone());
        options.collect = Collect::NOTHING;
        if schedule_seeds.is_empty() {
            options.schedule = args.schedule_seed;
            let run = Launch { app: &app, executable: None, options: &options, at_load: None };
            let ended = run.execute(&launch::Terminal)?;
            let checked = ended.checked().ok_or_else(|| Error::internal("nothing was checked"))?.clone();
            (ended, checked)
        } else {
            let tried = orders::run(&app, options, &schedule_seeds, &tools, &held)?;
            schedule_seeds = tried.seeds;
            (tried.finished, tried.checked)
        }
    };
    // An application that ends by itself after a signal has its own exit code. Other orders are missing all the same.
    let interrupted = held.arrived().filter(|_| args.schedules > 1 || ended.signal().is_some());
    drop(held);
    launch::say(&ended, []);
    let mut not_checked = checked.not_checked;
    // Without AMD's runtime calls of HIP were checked.
    let no_kernel = checked.processes > 0 && (by_probe || platform == Platform::EmulatorRocm) && !checked.launched;
    if no_kernel {
        not_checked.push("no kernel ran, or its launch failed: no code of the GPU was checked".to_owned());
    }
    if checked.processes == 0 && not_checked.is_empty() {
        not_checked.push("the application never used the HIP runtime: nothing was checked".to_owned());
    }
    if let Some(signal) = ended.signal() {
        not_checked.push(format!("what the application had still to do when it was ended by {signal}"));
    }
    let lacks = checked.processes == 0 || no_kernel;
    let mut findings = checked.findings;
    say_unmatched(args.suppressions.as_deref(), &suppressions.unmatched(&findings));
    let suppressed = check::suppress(&mut findings, &suppressions);
    let in_baseline = baseline.map_or(0, |baseline| check::leave_out_baseline(&mut findings, &baseline));
    check::sort(&mut findings);
    let command = args.app.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let report = CheckReport {
        schema: SCHEMA.to_owned(),
        command,
        tools,
        seed: args.seed,
        schedule_seeds,
        exit_code: ended.exit_code(),
        findings,
        suppressed,
        in_baseline,
        not_checked,
    };
    write(args, look, &report, app.path())?;
    let failed = args.fail_on.least().is_some_and(|least| check::fails(&report.findings, least));
    Ok(launch_code(match interrupted {
        Some(signal) => SIGNAL_BASE + signal,
        None if failed || lacks && ended.exit_code() == 0 => FOUND,
        None => ended.exit_code(),
    }))
}

/// Runs the application with inserted code that checks its accesses: the tool `memory` alone.
fn check_by_probe(
    tools: Vec<Tool>,
    platform: Platform,
    drops: bool,
    options: RunOptions,
    app: App,
) -> Result<(Vec<Tool>, Finished, Checked)> {
    let (memory, others): (Vec<Tool>, Vec<Tool>) = tools.into_iter().partition(|tool| *tool == Tool::Memory);
    let others = others.into_iter().map(Tool::name).collect::<Vec<_>>().join(", ");
    if memory.is_empty() {
        return Err(platform.lacks(&format!("--tools {others}")));
    }
    let contents = map_file::open(app.path())?;
    let (ended, mut checked) = Program::new(app, contents).check_bounds(&options, drops, &launch::Terminal)?;
    if !others.is_empty() {
        checked.not_checked.insert(0, format!("{others}: only the emulator has these tools, not inserted code"));
    }
    Ok((memory, ended, checked))
}

/// Each tool once, in their own order.
fn tools(named: &[Tool]) -> Vec<Tool> {
    Tool::ALL.into_iter().filter(|tool| named.is_empty() || named.contains(tool)).collect()
}

fn read_suppressions(path: &Path) -> Result<CheckSuppressions> {
    let text = wavetap::files::read(path)?;
    CheckSuppressions::parse(&String::from_utf8_lossy(&text)).within(|| path.display().to_string())
}

/// Says on stderr which lines of a file of suppressions name no finding.
fn say_unmatched(path: Option<&Path>, lines: &[usize]) {
    let (Some(path), false) = (path, lines.is_empty()) else { return };
    let numbers = lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let what = if lines.len() == 1 { "line" } else { "lines" };
    stderr_line!("wavetap: note: {}: no finding is suppressed by {what} {numbers}", path.display());
}

fn read_baseline(path: &Path) -> Result<CheckReport> {
    let wrong = |what: String| Error::malformed(format!("{}: {what}", path.display()));
    let json = wavetap::files::read(path)?;
    let report: CheckReport = serde_json::from_slice(&json)
        .map_err(|error| wrong(format!("no report of `wavetap check --format json`: {error}")))?;
    if report.schema == SCHEMA {
        Ok(report)
    } else {
        Err(wrong(format!("schema {}, {SCHEMA} expected", report.schema)))
    }
}

fn write(args: &CheckArgs, look: LookArgs, report: &CheckReport, app: &Path) -> Result<()> {
    let out = match args.output.format {
        CheckFormat::Text => {
            let style = output::style(&args.output, look);
            style.fit(render(report, style))
        }
        CheckFormat::Json => output::json(report)?,
        CheckFormat::Yaml => output::yaml(report)?,
        CheckFormat::Sarif => {
            output::json(&sarif(&log(report, &app.to_string_lossy(), files::current_folder().as_deref())))?
        }
        CheckFormat::Junit => junit(report, args.fail_on.least().unwrap_or(Severity::Error))?,
    };
    output::write(&args.output, &out)?;
    if args.output.report.is_some() && !report.findings.is_empty() {
        let count = report.findings.len();
        stderr_line!("wavetap: {count} {}", if count == 1 { "finding" } else { "findings" });
    }
    Ok(())
}
