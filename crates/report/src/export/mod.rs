//! What is known of a run in the forms of other tools.
//!
//! - [`trace`]: dispatches in time, as Chrome's trace format has it, which Perfetto opens;
//! - [`folded`]: stacks of kernel and source line, which speedscope and inferno draw as flame graphs;
//! - [`tables`]: what kernels executed as one CSV table, whose metrics are named as rocprof-compute's where they mean
//!   the same;
//! - [`mod@sites`]: sites of all probes as CSV;
//! - [`records`]: recorded accesses as CSV, and the heat map that cuThermo's viewer shows;
//! - [`mod@lcov`]: which source lines, branches and functions were executed, as lcov reads it;
//! - [`findings`]: what was found, for SARIF and remarks of LLVM;
//! - [`viewer`]: instructions and waves in time, as AMD's viewer of thread traces opens them: a folder.
//!
//! An exporter is a function from what the reports have to text: none computes a number that they do not have.

mod finding_rules;
pub mod findings;
pub mod folded;
pub mod lcov;
pub mod records;
pub mod sites;
pub mod tables;
pub mod trace;
pub mod viewer;

use wavetap_base::error::{Error, Result};

/// Rows as CSV, the first of which is the heading.
fn csv(rows: impl IntoIterator<Item = Vec<String>>) -> Result<String> {
    let failed = |error: &dyn std::fmt::Display| Error::internal(format!("CSV: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).map_err(|error| failed(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}
