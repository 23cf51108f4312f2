//! All that was found in a run, as the log that is written for other tools.

use super::memory::{MemoryInputs, memory};
use super::slices::explain_all;
use wavetap_amdgpu::Board;
use wavetap_base::error::{Error, Result};
use wavetap_explain::launches::{LaunchInputs, LaunchTable};
use wavetap_explain::summary::of_all_kernels;
use wavetap_explain::{Report, RunInfo};
use wavetap_object::offload_bundle::Input;
use wavetap_object::selection::Selection;
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::time::TimeProfile;
use wavetap_report::counted::{self, CountedObject};
use wavetap_report::export::findings::{FindingInputs, finding_log};
use wavetap_report::findings::FindingLog;

/// What is known of the runs of an input.
#[derive(Debug, Clone, Copy)]
pub struct RunInputs<'a> {
    /// What was counted.
    pub profile: &'a Profile,
    /// A profile with recorded accesses, if that is another one.
    pub recorded: Option<&'a Profile>,
    /// Modelled time.
    pub time: Option<&'a TimeProfile>,
    /// The board that launches are about; none for the usual one of each target.
    pub board: Option<&'static Board>,
    /// The input's name.
    pub file: &'a str,
    /// The folder that names of files are relative to.
    pub base: Option<&'a str>,
}

/// What was found in the selected kernels of an input.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded; malformed if a profile is of another input; unsupported if
/// none of the selected kernels was dispatched.
pub fn findings(data: &[u8], selection: &Selection, inputs: RunInputs<'_>) -> Result<FindingLog> {
    let RunInputs { profile, recorded, time, board, file, base } = inputs;
    let input = Input::parse(data)?;
    let found = CountedObject::all(&input, &[])?;
    for profile in std::iter::once(profile).chain(recorded) {
        counted::check(profile, &found)?;
    }
    let selected = |name: &str, target: &str| selection.has_kernel(name) && selection.has_target(target);
    let dispatched: Vec<&KernelTotals> =
        profile.kernels.iter().filter(|kernel| selected(&kernel.name, &kernel.target)).collect();
    if dispatched.is_empty() {
        return Err(Error::unsupported("none of these kernels was dispatched in the run of the profile"));
    }
    let mut report = Report::new(profile, RunInfo::default());
    report.set_time(time.cloned());
    let code = explain_all(&mut report, profile, data)?;
    let table = LaunchTable::new(LaunchInputs { profile, board, time, code: &code });
    let (shares_of, kernels) = of_all_kernels(&report, &table, &code);
    let records = recorded.unwrap_or(profile);
    let ran = Selection {
        kernels: dispatched.iter().map(|kernel| kernel.name.clone()).collect(),
        targets: dispatched.iter().map(|kernel| kernel.target.clone()).collect(),
    };
    let accesses = (!records.accesses.is_empty())
        .then(|| memory(data, &ran, MemoryInputs { profile: Some(profile), recorded, ..MemoryInputs::default() }))
        .transpose()?;
    let inputs = FindingInputs { report: &report, kernels: &kernels, shares_of, memory: accesses.as_ref(), file, base };
    Ok(finding_log(inputs, &selected))
}
