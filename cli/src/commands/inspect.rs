//! `wavetap inspect`: what is in a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use wavetap::error::{Result, ResultExt};
use wavetap::pipeline::{self, Inspected, Vendor, refuse_vendor};
use wavetap::report::inspect::InspectedEntry;
use wavetap::report::vendor_code::{self, VendorCode};
use wavetap::stderr_line;

use crate::args::{EntryArgs, InspectArgs, LookArgs};
use crate::{files, map_file, output};

/// Exit code: it ran, and something in the file is of a kind that is not handled.
const REFUSED: u8 = 1;

/// Looks into the file.
pub fn run(args: &InspectArgs, look: LookArgs) -> Result<ExitCode> {
    output::check(&args.output)?;
    let data = map_file::open_or_stdin(&args.file)?;
    if let Some(vendor) = Vendor::of(&data) {
        return other_vendor(args, look, vendor, &data);
    }
    let EntryArgs { entry, workgroup, dynamic_lds } = &args.entry;
    let inspected = Inspected {
        selection: args.select.selection(),
        entries: entry.clone(),
        workgroup: *workgroup,
        dynamic_lds: *dynamic_lds,
    };
    let inspect = |extract: Option<&mut pipeline::Extract<'_>>| {
        pipeline::inspect(&data, &inspected, extract).within(|| files::name(&args.file))
    };
    let inspection = match &args.extract {
        None => inspect(None)?,
        Some(folder) => {
            // All names are known to be free before the first file is written.
            let planned = inspect(None)?;
            let name = |entry: &InspectedEntry| folder.join(file_name(&args.file, entry));
            for entry in planned
                .bundles
                .iter()
                .flat_map(|bundle| &bundle.entries)
                .filter(|entry| folder.is_dir() && entry.is_code())
            {
                files::may_write(&name(entry), args.output.force)?;
            }
            let mut extract = |entry: &InspectedEntry, bytes: &[u8]| {
                let path = name(entry);
                fs::create_dir_all(folder).map_err(|error| files::io(folder, "cannot be made", &error))?;
                files::write(&path, bytes, args.output.force, None)?;
                Ok(path.display().to_string())
            };
            inspect(Some(&mut extract))?
        }
    };
    output::emit(&args.output, look, &inspection, |inspection, style| inspection.render(style))?;
    let mut code = ExitCode::SUCCESS;
    let entries = inspection.bundles.iter().flat_map(|bundle| &bundle.entries);
    for problem in inspection.malformed.iter().chain(entries.filter_map(|entry| entry.problem.as_ref())) {
        stderr_line!("wavetap: not readable: {}", problem.replace(['\n', '\r'], " "));
        code = ExitCode::from(REFUSED);
    }
    for object in &inspection.objects {
        if let Some(problem) = &object.problem {
            stderr_line!("wavetap: not looked into: {}: {problem}", object.id);
            code = ExitCode::from(REFUSED);
        }
        for part in &object.malformed {
            stderr_line!("wavetap: not readable: {}: {}", object.id, part.replace(['\n', '\r'], " "));
            code = ExitCode::from(REFUSED);
        }
    }
    Ok(code)
}

/// What is in a file with code of another vendor.
fn other_vendor(args: &InspectArgs, look: LookArgs, vendor: Vendor, data: &[u8]) -> Result<ExitCode> {
    let EntryArgs { entry, workgroup, dynamic_lds } = &args.entry;
    if args.extract.is_some() {
        refuse_vendor(vendor, "--extract")?;
    }
    if !entry.is_empty() || workgroup.is_some() || *dynamic_lds != 0 {
        refuse_vendor(vendor, "--entry, --workgroup and --dynamic-lds")?;
    }
    let code = vendor.code((data, &files::name(&args.file)), &args.select.selection(), false)?;
    output::emit(&args.output, look, &code, vendor_code::render_inspection)?;
    Ok(vendor_code_refused(&code))
}

/// Says what of another vendor's code was not read.
pub fn vendor_code_refused(code: &VendorCode) -> ExitCode {
    let functions = code.objects.iter().flat_map(|object| &object.functions);
    let refused: Vec<&String> =
        code.unread.iter().chain(functions.filter_map(|function| function.refused.as_ref())).collect();
    for part in &refused {
        stderr_line!("wavetap: not readable: {}", part.replace(['\n', '\r'], " "));
    }
    if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) }
}

/// `libfoo.so.0.2.gfx90a_xnack-.co`: the input's name, the entry's id, its target without characters that other systems
/// forbid in file names.
fn file_name(input: &Path, entry: &InspectedEntry) -> PathBuf {
    let stem = match input.file_name() {
        Some(name) if input.as_os_str() != "-" => name.to_string_lossy().into_owned(),
        _ => "stdin".to_owned(),
    };
    let fine = |c: char| if c.is_ascii_alphanumeric() || "+-_.".contains(c) { c } else { '_' };
    let target: String = entry.target.as_deref().unwrap_or("host").chars().map(fine).collect();
    PathBuf::from(format!("{stem}.{}.{target}.{}", entry.id, entry.contents.extension()))
}
