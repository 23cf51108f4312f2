//! Samples of where warps were and why they did not issue, by function and offset.
//!
//! Two forms are read; what a text is follows from its contents.
//!
//! - **Source pages of Nsight Compute**: `ncu --import REPORT --page source --print-source sass --csv`. Of each kernel
//!   a row an instruction, with columns that are found by name.
//! - **CUPTI's PC sampling utility**: a line for each function and offset, with a count for each reason.
//!
//! Offsets are bytes from the begin of the function's section, which are the addresses of
//! [`Function::code`](crate::container::Function::code). The names of reasons are those of the file without their
//! prefix; [`Properties::stall_reason`](wavetap_code::Properties::stall_reason) of a `Code` says what they mean.
//!
//! ```
//! let text = "functionName: k, functionIndex: 0, pcOffset: 32, lineNumber: 7, fileName: a.cu, stallReasonCount: 2, \
//!             smsp__pcsamp_warps_issue_stalled_long_scoreboard: 5, smsp__pcsamp_warps_issue_stalled_selected: 1";
//! let samples = wavetap_nvidia::samples::read(text)?;
//! assert_eq!(samples[0].name, "k");
//! assert_eq!((samples[0].places[&32].samples, samples[0].places[&32].issued), (6, 1));
//! # Ok::<(), wavetap_base::error::Error>(())
//! ```

mod cupti;
mod source_page;

use std::collections::BTreeMap;

use wavetap_base::error::{Error, Result};
use wavetap_profile::pc_samples::Place;

/// The reason under which samples count that issued.
const SELECTED: &str = "selected";
/// With this ending a reason counts samples of cycles in which no warp was issued: they are among the others.
const NOT_ISSUED: [&str; 2] = [" (Not Issued)", "_not_issued"];

/// The samples of one function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FunctionSamples {
    /// Its name, as the file has it: mangled or not.
    pub name: String,
    /// By offset: instructions with samples, executions or a text.
    pub places: BTreeMap<u64, Place>,
}

/// Reads samples. Functions are in the order of the file; one that the file has more than once (each launch has its own
/// page) is there once, with the sum.
///
/// # Errors
/// Unsupported if it is a page of CUDA source or PTX, of metrics, or anything that is neither form; malformed, with the
/// line, if a row breaks its form.
pub fn read(text: &str) -> Result<Vec<FunctionSamples>> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    let first = first.ok_or_else(|| Error::malformed("samples: the text is empty"))?;
    if first.starts_with("functionName:") {
        cupti::read(text)
    } else if first.starts_with('"') || first.contains(',') {
        source_page::read(text)
    } else {
        Err(Error::unsupported(
            "samples: neither a CSV source page of Nsight Compute (`ncu --page source --print-source sass --csv`) nor \
             the text of CUPTI's PC sampling utility (`functionName: …`)",
        ))
    }
}

/// The samples of a function that may be there already.
fn of<'s>(all: &'s mut Vec<FunctionSamples>, name: &str) -> &'s mut FunctionSamples {
    let index = all.iter().position(|each| each.name == name).unwrap_or_else(|| {
        all.push(FunctionSamples { name: name.to_owned(), places: BTreeMap::new() });
        all.len() - 1
    });
    &mut all[index]
}

/// Adds samples of a reason to a place.
fn count(place: &mut Place, reason: &str, samples: u64) {
    if samples == 0 || NOT_ISSUED.iter().any(|ending| reason.ends_with(ending)) {
        return;
    }
    place.samples = place.samples.saturating_add(samples);
    if reason == SELECTED {
        place.issued = place.issued.saturating_add(samples);
    } else {
        let all = place.stalled.entry(reason.to_owned()).or_default();
        *all = all.saturating_add(samples);
    }
}

#[cfg(test)]
mod tests;
