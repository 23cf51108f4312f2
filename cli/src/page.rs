//! HTML pages of reports.

use std::path::Path;

use wavetap::error::Result;
use wavetap::report::Report;
use wavetap::report::html::{self, PageData};

use crate::args::PageSourceArgs;
use crate::files;
use crate::sources::Sources;

/// Writes the page of a report; `fill` adds what is known of the code.
pub fn write(
    out: &Path,
    force: bool,
    source: &PageSourceArgs,
    report: &Report,
    fill: impl FnOnce(&mut PageData<'_>) -> Result<()>,
) -> Result<()> {
    let sources = Sources::below(&source.source_path);
    let text = |file: &str, line: u32| sources.line(file, line);
    let mut data = PageData::default();
    if !source.no_source {
        data.source_text = Some(&text);
    }
    fill(&mut data)?;
    files::write(out, html::render(report, &data).as_bytes(), force, None)
}
