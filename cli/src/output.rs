//! Where reports go and in which form.

use std::io::{BufWriter, IsTerminal, StdoutLock, Write};

use clap::ValueEnum;
use serde::Serialize;
use wavetap::error::{Error, Kind, Result};
use wavetap::pipeline::probe::{self, ProbeRef};
use wavetap::profile::file::Profile;
use wavetap::profile::launches::{NotCounted, UncountedDispatches};
use wavetap::report::launches::uncounted_line;
use wavetap::report::text::Style;
use wavetap::stderr_line;

use crate::args::{ColorChoice, CounterChoice, Format, InstrumentArgs, LookArgs, OutputArgs};
use crate::files;

/// Message of the error when the reader of stdout went away.
pub const BROKEN_PIPE: &str = "stdout was closed";

/// Writes `value` where and as `args` say; `text` renders it for people.
pub fn emit<T: Serialize>(
    args: &OutputArgs,
    look: LookArgs,
    value: &T,
    text: impl FnOnce(&T, Style) -> String,
) -> Result<()> {
    let out = match args.format {
        Format::Text => {
            let style = style(args, look);
            style.fit(text(value, style))
        }
        Format::Json => json(value)?,
        Format::Yaml => yaml(value)?,
    };
    write(args, &out)
}

/// A report as JSON.
pub fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value).map_err(|e| Error::internal(format!("JSON: {e}")))? + "\n")
}

/// A report as YAML.
pub fn yaml(value: &impl Serialize) -> Result<String> {
    serde_yaml::to_string(value).map_err(|e| Error::internal(format!("YAML: {e}")))
}

/// Writes a report where `args` say.
pub fn write<F: ValueEnum + Send + Sync>(args: &OutputArgs<F>, report: &str) -> Result<()> {
    match &args.report {
        Some(path) => files::write(path, report.as_bytes(), args.force, None),
        None => stdout(report.as_bytes()),
    }
}

/// Writes to stdout; a reader that went away is an error of its own.
pub fn stdout(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| stdout_failed(&error))
}

fn stdout_failed(error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Error::new(Kind::Io, BROKEN_PIPE),
        _ => Error::new(Kind::Io, format!("cannot write to stdout: {error}")),
    }
}

/// A report that is too big to be made before it is written.
pub enum Stream {
    /// To stdout.
    Stdout(BufWriter<StdoutLock<'static>>),
    /// To a file that appears when it is complete.
    File(files::Pending),
}

impl Stream {
    /// Opens it where `args` say.
    pub fn open(args: &OutputArgs) -> Result<Stream> {
        Ok(match &args.report {
            Some(path) => Stream::File(files::Pending::new(path, args.force)?),
            None => Stream::Stdout(BufWriter::new(std::io::stdout().lock())),
        })
    }

    /// Writes the next part.
    pub fn write(&mut self, text: &str) -> Result<()> {
        match self {
            Stream::Stdout(out) => out.write_all(text.as_bytes()).map_err(|error| stdout_failed(&error)),
            Stream::File(file) => file.write(text.as_bytes()),
        }
    }

    /// There is no more.
    pub fn finish(self) -> Result<()> {
        match self {
            Stream::Stdout(mut out) => out.flush().map_err(|error| stdout_failed(&error)),
            Stream::File(file) => file.finish(None),
        }
    }
}

/// Fails now if the report could not be written later.
pub fn check<F: ValueEnum + Send + Sync>(args: &OutputArgs<F>) -> Result<()> {
    args.report.as_ref().map_or(Ok(()), |path| files::may_write(path, args.force))
}

/// Columns of text where there is no terminal.
const COLUMNS: usize = 120;
/// The least columns: with fewer, numbers have no room.
const LEAST_COLUMNS: usize = 40;

/// How wide text may be.
fn columns<F: ValueEnum + Send + Sync>(args: &OutputArgs<F>) -> usize {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    let of_terminal = || {
        let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(std::io::stdout())?;
        Some(usize::from(columns)).filter(|columns| *columns > 0)
    };
    let of_stdout = || if args.report.is_none() { of_terminal() } else { None };
    set.or_else(of_stdout).unwrap_or(COLUMNS).max(LEAST_COLUMNS)
}

/// How text looks.
pub fn style<F: ValueEnum + Send + Sync>(args: &OutputArgs<F>, look: LookArgs) -> Style {
    let colour = match look.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            args.report.is_none()
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                && std::io::stdout().is_terminal()
        }
    };
    Style { colour, long_names: args.long_names, width: (!look.wide).then(|| columns(args)) }
}

/// Kernels named one by one on stderr; the report has all.
const REFUSALS_SAID: usize = 20;

/// Says on stderr which dispatches are missing from the counts, but for those of refused kernels, which are said by
/// themselves.
pub fn say_uncounted(uncounted: &[UncountedDispatches]) {
    say_lines(uncounted.iter().filter(|uncounted| uncounted.why.is_gap() && uncounted.why != NotCounted::Refused));
}

/// Says on stderr which dispatches are missing from the counts.
pub fn say_missing(uncounted: &[UncountedDispatches]) {
    say_lines(uncounted.iter().filter(|uncounted| uncounted.why.is_gap()));
}

fn say_lines<'u>(missing: impl Iterator<Item = &'u UncountedDispatches>) {
    for uncounted in missing.take(REFUSALS_SAID) {
        stderr_line!(
            "wavetap: not counted: {}",
            uncounted_line(uncounted, None).trim_start().replace(['\n', '\r'], " ")
        );
    }
}

/// Refuses `none` beside probes, probes beside others that have to be alone, and counters where a probe's cannot be.
pub fn check_probes(instrument: &InstrumentArgs) -> Result<()> {
    if instrument.counts_nothing() && instrument.probes().next().is_some() {
        return Err(Error::unsupported("--probe none stands alone: nothing is counted then"));
    }
    let probes: Vec<ProbeRef> = instrument.probes().collect();
    if instrument.drop && !probes.contains(&probe::BOUNDS_DROP) {
        return Err(Error::unsupported("--drop is an option of --probe bounds, and another probe is given"));
    }
    probe::check_together(&probes)?;
    let in_memory = probes.iter().find_map(|probe| Some((probe.name(), probe.needs().global_memory?)));
    match (in_memory, instrument.counters) {
        (None, _) | (_, CounterChoice::Auto | CounterChoice::Global) => Ok(()),
        (Some((name, what)), _) => {
            let message = format!("--probe {name} needs --counters global: {what} in global memory");
            Err(Error::unsupported(message))
        }
    }
}

/// Refuses counters of single waves where they cannot be.
pub fn check_per_wave(per_wave: bool, counters: CounterChoice) -> Result<()> {
    if per_wave && counters == CounterChoice::Register {
        return Err(Error::unsupported("counters in registers are totals: --per-wave needs --counters lds or global"));
    }
    Ok(())
}

/// Says on stderr of which kernels no single wave's counters were kept, as waves shared records; false if of none.
pub fn say_shared(profile: &Profile) -> bool {
    let shared: Vec<&str> =
        profile.kernels.iter().filter(|kernel| kernel.shared_records).map(|kernel| kernel.demangled.as_str()).collect();
    for name in shared.iter().take(REFUSALS_SAID) {
        stderr_line!(
            "wavetap: {name}: counters are totals: waves shared records, as they do with counters in registers, and in \
                files rewritten without --per-wave"
        );
    }
    !shared.is_empty()
}

/// Says on stderr which kernels were left as they were.
pub fn say_refused(refused: &[wavetap::profile::map::Refused], args: &OutputArgs) {
    let style = Style { long_names: args.long_names, ..Style::default() };
    for kernel in refused.iter().take(REFUSALS_SAID) {
        stderr_line!(
            "wavetap: not counted: {}",
            wavetap::report::text::refused_line(kernel, style).trim_start().replace(['\n', '\r'], " ")
        );
    }
    if refused.len() > REFUSALS_SAID {
        stderr_line!("wavetap: not counted: {} more kernels, all of them in the report", refused.len() - REFUSALS_SAID);
    }
}
