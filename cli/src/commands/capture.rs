//! `wavetap capture`: one dispatch of an application into a file.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use wavetap::capture::{CaptureFile, Header};
use wavetap::collect::config::CaptureConfig;
use wavetap::error::{Error, Kind, Result};
use wavetap::report::names::short;
use wavetap::report::replay::axes;
use wavetap::run::{Collect, Launch};
use wavetap::stderr_line;

use super::run::{check_nothing_collected, launch_code};
use crate::args::CaptureArgs;
use crate::{files, launch};

/// Runs the application and captures; the exit code is the application's where that is not 0.
pub fn run(args: &CaptureArgs) -> Result<ExitCode> {
    let (_, mut options) = launch::options(&args.backend, &args.app, args.target.as_deref())?;
    check_nothing_collected(&args.backend, "a capture collects nothing that kernels count")?;
    let app = launch::find(&args.app)?;
    files::may_write(&args.output, args.force)?;
    files::not_the_same(app.path(), &args.output)?;
    // Beside the output, so that it appears there when it is complete.
    let folder = match args.output.parent().filter(|parent| *parent != Path::new("")) {
        Some(parent) => parent,
        None => Path::new("."),
    };
    let folder = tempfile::Builder::new()
        .prefix(".wavetap-capture-")
        .tempdir_in(folder)
        .map_err(|error| files::io(folder, "cannot make a folder in it", &error))?;
    let absolute = fs::canonicalize(folder.path()).map_err(|error| files::io(folder.path(), "cannot find", &error))?;
    options.collect = Collect::NOTHING;
    let limit = args.max_memory << 20;
    options.capture = Some(CaptureConfig {
        kernels: args.kernel.clone(),
        dispatch: args.dispatch,
        folder: absolute,
        memory_limit: limit,
    });
    let ended = Launch { app: &app, executable: None, options: &options, at_load: None }.execute(&launch::Terminal)?;
    launch::say_findings(&ended);
    launch::say(&ended, []);
    let mut captures = with_extension(folder.path(), "capture")?;
    captures.sort();
    let Some(first) = captures.first() else {
        let seen: u64 = with_extension(folder.path(), "seen")?
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok())
            .sum();
        return nothing(args, seen, ended.exit_code());
    };
    let header = CaptureFile::open(first, limit)?.header().clone();
    files::may_write(&args.output, args.force)?;
    fs::rename(first, &args.output).map_err(|error| files::io(&args.output, "cannot write", &error))?;
    say(args, &header, captures.len());
    Ok(launch_code(ended.exit_code()))
}

/// The files of a folder with an extension.
fn with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| files::io(folder, "cannot read", &error))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.extension() == Some(OsStr::new(extension))).collect())
}

/// What is wrong where nothing was captured.
fn nothing(args: &CaptureArgs, seen: u64, code: i32) -> Result<ExitCode> {
    let which = match &args.kernel[..] {
        [] => "of kernels".to_owned(),
        patterns => format!("of kernels that match {}", patterns.join(", ")),
    };
    let message = if seen >= args.dispatch {
        "the dispatch was launched, and not captured".to_owned()
    } else {
        format!("{seen} dispatches {which} were launched, and number {} was to be captured", args.dispatch)
    };
    if code == 0 {
        return Err(Error::new(Kind::Unsupported, format!("nothing was captured: {message}")));
    }
    stderr_line!("wavetap: nothing was captured: {message}");
    Ok(launch_code(code))
}

/// Says what was captured.
fn say(args: &CaptureArgs, header: &Header, captures: usize) {
    let path = args.output.display();
    let Header { demangled, target, grid, workgroup, memory, .. } = header;
    let changed = memory.iter().filter(|range| range.changed).count();
    stderr_line!(
        "wavetap: {path}: {}, {target}, grid {}, workgroup {}, {} ranges of memory with {} bytes, {changed} of them \
            changed",
        short(demangled),
        axes(*grid),
        axes(*workgroup),
        memory.len(),
        header.bytes()
    );
    if captures > 1 {
        stderr_line!("wavetap: {captures} processes captured a dispatch: {path} is that of the first");
    }
    if !header.alone {
        stderr_line!(
            "wavetap: the kernel was not alone: what others changed meanwhile is taken for what it changed, and a \
                replay may differ"
        );
    }
}
