//! `wavetap disasm`: annotated disassembly.

use std::process::ExitCode;

use wavetap::error::{Result, ResultExt};
use wavetap::pipeline;

use crate::args::{ColorChoice, DisasmArgs};
use crate::{files, output};

/// Exit code: it ran, and some of the code could not be decoded.
const REFUSED: u8 = 1;

/// Disassembles the file.
pub fn run(args: &DisasmArgs, colour: ColorChoice) -> Result<ExitCode> {
    output::check(&args.output)?;
    let data = files::read(&args.file)?;
    let disassembly = pipeline::disassemble(&data, &args.select.selection()).within(|| args.file.display().to_string())?;
    output::emit(&args.output, colour, &disassembly, |disassembly, style| disassembly.render(style))?;
    for failed in &disassembly.undecodable {
        eprintln!("wavetap: not decoded: {failed}");
    }
    Ok(if disassembly.undecodable.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}
