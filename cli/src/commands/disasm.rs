//! `wavetap disasm`: annotated disassembly, written while it is made.

use std::process::ExitCode;

use wavetap::error::{Error, Kind, Result, ResultExt};
use wavetap::pipeline::{self, Listed, Vendor, refuse_vendor};
use wavetap::report::disassembly::JsonStream;
use wavetap::report::listing::Listing;
use wavetap::report::vendor_code;
use wavetap::stderr_line;

use super::inspect::vendor_code_refused;
use crate::args::{DisasmArgs, Format, Hidden, LookArgs};
use crate::disassembly::{Form, Writer, YamlStream};
use crate::sources::Sources;
use crate::{files, map_file, output};

/// Exit code: it ran, and some of the code could not be disassembled.
const REFUSED: u8 = 1;

/// Disassembles the file.
pub fn run(args: &DisasmArgs, look: LookArgs) -> Result<ExitCode> {
    if args.plain && args.output.format != Format::Text {
        return Err(Error::new(
            Kind::Io,
            "--plain is a form of text: it cannot be combined with --format json or yaml",
        ));
    }
    output::check(&args.output)?;
    let data = map_file::open_or_stdin(&args.file)?;
    if let Some(vendor) = Vendor::of(&data) {
        return other_vendor(args, look, vendor, &data);
    }
    let profile = args.counters.as_deref().map(|path| args.region.read(path)).transpose()?;
    let sources = Sources::below(&args.source_path);
    let source_text = |file: &str, line: u32| sources.line(file, line);
    let mut listed = Listed {
        selection: args.select.selection(),
        functions: args.function.clone(),
        entries: args.entry.entry.clone(),
        workgroup: args.entry.workgroup,
        dynamic_lds: args.entry.dynamic_lds,
        source_text: None,
        profile: profile.as_ref(),
    };
    if args.source || !args.source_path.is_empty() {
        listed.source_text = Some(&source_text);
    }
    let shown = |what| !args.hide.contains(&what);
    let listing = Listing {
        style: output::style(&args.output, look),
        bytes: args.bytes,
        arrows: shown(Hidden::Arrows),
        registers: shown(Hidden::Registers),
        source: shown(Hidden::Source),
        waits: shown(Hidden::Waits),
    };
    let form = match args.output.format {
        Format::Text if args.plain => Form::plain(files::name(&args.file)),
        Format::Text => Form::Listing(listing),
        Format::Json => Form::Json(JsonStream::default()),
        Format::Yaml => Form::Yaml(YamlStream::default()),
    };
    let mut writer = Writer::new(output::Stream::open(&args.output)?, form);
    let refused = match pipeline::disassemble(&data, &listed, &mut writer) {
        // The reader went away: not an error of the file.
        Err(error) if error.kind() == Kind::Io => return Err(writer.failure.unwrap_or(error)),
        result => result.within(|| files::name(&args.file))?,
    };
    writer.finish()?;
    for failed in &refused {
        stderr_line!("wavetap: not followed: {}", failed.replace(['\n', '\r'], " "));
    }
    Ok(if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}

/// Lists code of another vendor.
fn other_vendor(args: &DisasmArgs, look: LookArgs, vendor: Vendor, data: &[u8]) -> Result<ExitCode> {
    if args.counters.is_some() {
        refuse_vendor(vendor, "--counters")?;
    }
    let of_amd = args.plain || args.bytes || args.source || !args.source_path.is_empty() || !args.hide.is_empty();
    if of_amd || !args.entry.entry.is_empty() {
        refuse_vendor(vendor, "--plain, --bytes, --source, --hide and --entry")?;
    }
    let mut selection = args.select.selection();
    selection.kernels.extend(args.function.iter().cloned());
    let code = vendor.code((data, &files::name(&args.file)), &selection, true)?;
    output::emit(&args.output, look, &code, vendor_code::render_code)?;
    Ok(vendor_code_refused(&code))
}
