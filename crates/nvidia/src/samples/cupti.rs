//! The text of CUPTI's PC sampling utility: `key: value` pairs, separated by commas.

use wavetap_base::error::{Error, Result};

use super::{FunctionSamples, count, of};

const REASON: &str = "smsp__pcsamp_warps_issue_stalled_";
/// The keys before the reasons, in their order. A function's name may have commas.
const KEYS: [&str; 5] = ["functionIndex", "pcOffset", "lineNumber", "fileName", "stallReasonCount"];

pub(super) fn read(text: &str) -> Result<Vec<FunctionSamples>> {
    let mut all = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let fault = |what: String| Error::malformed(format!("PC samples of CUPTI, line {number}: {what}"));
        let mut rest = line.trim().strip_prefix("functionName:").ok_or_else(|| fault("no functionName".into()))?;
        let mut values = Vec::new();
        for key in KEYS {
            let (value, after) =
                rest.split_once(&format!(", {key}:")).ok_or_else(|| fault(format!("no {key} in its place")))?;
            values.push(value.trim());
            rest = after;
        }
        let [name, _, offset, ..] = values[..] else { return Err(fault("too few values".into())) };
        let offset: u64 = offset.parse().map_err(|_| fault(format!("{offset:?} is no offset")))?;
        let mut fields = rest.split(',').map(str::trim).filter(|field| !field.is_empty());
        let reasons = fields.next().unwrap_or_default();
        let reasons: usize = reasons.parse().map_err(|_| fault(format!("{reasons:?} is no number of reasons")))?;
        let place = of(&mut all, name).places.entry(offset).or_default();
        let mut found = 0;
        for field in fields {
            let (reason, value) = field.split_once(':').ok_or_else(|| fault(format!("{field:?} is no pair")))?;
            let value: u64 = value.trim().parse().map_err(|_| fault(format!("{value:?} is no number")))?;
            count(place, reason.trim().trim_start_matches(REASON), value);
            found += 1;
        }
        if found != reasons {
            return Err(fault(format!("{found} reasons, stallReasonCount says {reasons}")));
        }
    }
    Ok(all)
}
