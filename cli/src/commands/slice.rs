//! `wavetap slice`: what each wait waits for, and why.

use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Error, Kind, Result, ResultExt};
use wavetap::pipeline::{self, Vendor, refuse_vendor};
use wavetap::profile::pc_samples::{self, PcSamples};
use wavetap::profile::viewer;
use wavetap::report::slice::{Slice, compare, render, render_comparison};
use wavetap::stderr_line;

use crate::args::{LookArgs, SliceArgs};
use crate::{files, map_file, output};

/// Exit code: something that was asked for could not be read.
const REFUSED: u8 = 1;

/// Slices the file, or compares several.
pub fn run(args: &SliceArgs, look: LookArgs) -> Result<ExitCode> {
    output::check(&args.output)?;
    if !args.compare && args.files.len() > 1 {
        return Err(Error::new(Kind::Io, "several files: --compare puts their kernels side by side"));
    }
    let slices = args.files.iter().map(|file| slice(args, file)).collect::<Result<Vec<(String, Slice)>>>()?;
    let unread = if args.compare {
        let comparison = compare(&slices);
        output::emit(&args.output, look, &comparison, render_comparison)?;
        comparison.unread
    } else {
        let Some((_, slice)) = slices.into_iter().next() else { return Err(Error::internal("no file")) };
        output::emit(&args.output, look, &slice, render)?;
        slice.unread
    };
    for part in &unread {
        stderr_line!("wavetap: not readable: {}", part.replace(['\n', '\r'], " "));
    }
    Ok(if unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}

/// Slices a file.
fn slice(args: &SliceArgs, file: &Path) -> Result<(String, Slice)> {
    let data = map_file::open(file)?;
    let name = || file.display().to_string();
    let selection = args.select.selection();
    let slice = match Vendor::of(&data) {
        Some(vendor) => {
            if args.counters.is_some() {
                refuse_vendor(vendor, "--counters").within(name)?;
            }
            let samples = args.samples.iter().map(|path| read_text(path)).collect::<Result<Vec<(String, String)>>>()?;
            vendor.slice((&data, &name()), &selection, &samples, args.blame.into())?
        }
        None => {
            pipeline::check_selection(&data, &selection).within(name)?;
            let profile = args.counters.as_deref().map(|path| args.region.read(path)).transpose()?;
            let samples = args.samples.iter().map(|path| read_samples(path)).collect::<Result<Vec<PcSamples>>>()?;
            let given = pipeline::Evidence { profile: profile.as_ref(), samples: &samples, blame: args.blame.into() };
            pipeline::slice(&data, &selection, given).within(name)?
        }
    };
    Ok((name(), slice))
}

/// Reads a file of samples; of a folder for AMD's viewer, the file with the instructions.
fn read_samples(path: &Path) -> Result<PcSamples> {
    let file = if path.is_dir() { &path.join(viewer::CODE_FILE) } else { path };
    pc_samples::read(&files::read(file)?).within(|| file.display().to_string())
}

/// Reads a file of samples that another vendor's tool wrote.
fn read_text(path: &Path) -> Result<(String, String)> {
    let name = path.display().to_string();
    String::from_utf8(files::read(path)?)
        .map_err(|error| Error::malformed("text was expected").at(error.utf8_error().valid_up_to() as u64))
        .within(|| name.clone())
        .map(|text| (name, text))
}
