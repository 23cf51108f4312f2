//! Text of `unitrace --stall-sampling`: tables of kernels, addresses and counts.
//!
//! ```text
//! === Device #0 Metrics ===
//!
//!            Kernel, IP[Address], Active[Events], ControlStall[Events], …
//! "name<a, b>(int)",         1a8,              2,                    0, …
//! ```
//!
//! Names are quoted and may have commas; addresses are hexadecimal, from the kernel's first instruction on. Other text
//! of the program may be before, between and after tables.

use std::collections::BTreeMap;

use wavetap_base::error::{Error, Result};
use wavetap_profile::pc_samples::Place;

/// The samples of one kernel: by offset from its first instruction.
///
/// Offsets are those of [`crate::Function`]'s addresses. A sample may be later than what it is of: the wave may have
/// stood at the instruction before.
pub type KernelSamples = BTreeMap<u64, Place>;

/// The reasons that tables have, as [`Place::stalled`] names them.
pub const REASONS: [&str; 9] = [
    "ControlStall",
    "DistStall",
    "InstrFetchStall",
    "OtherStall",
    "PSDepStall",
    "PipeStall",
    "SbidStall",
    "SendStall",
    "SyncStall",
];

const KERNEL: &str = "Kernel";
const ADDRESS: &str = "IP[Address]";
const EVENTS: &str = "[Events]";
const ISSUED: &str = "Active";

/// Whether `text` has a table of samples.
#[must_use]
pub fn is_unitrace(text: &str) -> bool {
    text.lines().any(is_header)
}

fn is_header(line: &str) -> bool {
    let mut names = line.split(',').map(str::trim);
    names.next() == Some(KERNEL) && names.next() == Some(ADDRESS)
}

/// The samples of all tables of `text`, by kernel as the tool names it: mangled or not.
///
/// # Errors
/// Malformed, with the line's number, if there is no table, a column that is not known, or a row that does not fit the
/// columns.
pub fn read(text: &str) -> Result<BTreeMap<String, KernelSamples>> {
    let mut kernels: BTreeMap<String, KernelSamples> = BTreeMap::new();
    let mut columns: Option<Vec<String>> = None;
    let mut is_found = false;
    for (number, line) in (1..).zip(text.lines()) {
        let fault = |what: String| Error::malformed(format!("line {number}: {what}"));
        let line = line.trim();
        if is_header(line) {
            columns = Some(reasons(line).map_err(|what| fault(format!("column {what}, which is not known")))?);
            is_found = true;
            continue;
        }
        let Some(names) = &columns else { continue };
        if line.is_empty() || line.starts_with("===") {
            columns = None;
            continue;
        }
        let fields = fields(line).map_err(|error| fault(error.to_string()))?;
        let [kernel, address, counts @ ..] = &fields[..] else {
            return Err(fault("a row without an address".to_owned()));
        };
        if counts.len() != names.len() {
            return Err(fault(format!("{} numbers for {} columns", counts.len(), names.len())));
        }
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)
            .map_err(|_| fault(format!("address {address:?}: a hexadecimal number was expected")))?;
        let mut place = Place::default();
        for (name, count) in names.iter().zip(counts) {
            let count: u64 = count.parse().map_err(|_| fault(format!("{name} {count:?}: a number was expected")))?;
            place.samples = place.samples.saturating_add(count);
            if name == ISSUED {
                place.issued = count;
            } else if count > 0 {
                place.stalled.insert(name.clone(), count);
            }
        }
        kernels.entry(kernel.clone()).or_default().entry(address).or_default().add(&place);
    }
    if !is_found {
        return Err(Error::malformed(format!("no table of samples: a line {KERNEL}, {ADDRESS}, … was expected")));
    }
    Ok(kernels)
}

/// The names of the columns with counts.
fn reasons(header: &str) -> Result<Vec<String>, String> {
    let names = header.split(',').skip(2).map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let name = name.strip_suffix(EVENTS).unwrap_or(name);
            let is_known = name == ISSUED || REASONS.contains(&name);
            if is_known { Ok(name.to_owned()) } else { Err(name.to_owned()) }
        })
        .collect()
}

fn fields(line: &str) -> Result<Vec<String>, csv::Error> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(line.as_bytes());
    let Some(record) = reader.records().next() else { return Ok(Vec::new()) };
    let record = record?;
    let mut fields: Vec<String> = record.iter().map(str::to_owned).collect();
    // Rows may end with a comma.
    if fields.last().is_some_and(String::is_empty) {
        fields.pop();
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by hand from the columns that the tool's source has.
    const TEXT: &str = "\
the program's own output

=== Device #0 Metrics ===

                   Kernel, IP[Address], Active[Events], ControlStall[Events], PipeStall[Events], SendStall[Events], \
DistStall[Events], SbidStall[Events], SyncStall[Events], InstrFetchStall[Events], OtherStall[Events]
\"axpy<float, 4>(float*)\",           0,              3,                    0,                 0,                 0, \
                0,                 0,                 0,                       1,                  0
\"axpy<float, 4>(float*)\",         1a8,              2,                    0,                 0,                 0, \
                5,                70,                 0,                       0,                  0
                 \"reduce\",          10,              0,                    0,                 0,                 0, \
                0,                 0,                 9,                       0,                  0

=== Device #1 Metrics ===

Kernel, IP[Address], Active[Events], SbidStall[Events]
\"reduce\", 10, 1, 2
";

    #[test]
    fn samples_are_by_kernel_address_and_reason() {
        let kernels = read(TEXT).expect("well-formed");
        assert_eq!(kernels.keys().collect::<Vec<_>>(), ["axpy<float, 4>(float*)", "reduce"]);
        let place = &kernels["axpy<float, 4>(float*)"][&0x1a8];
        assert_eq!((place.samples, place.issued), (77, 2));
        assert_eq!(place.stalled, BTreeMap::from([("DistStall".to_owned(), 5), ("SbidStall".to_owned(), 70)]));
        // Both devices.
        let place = &kernels["reduce"][&0x10];
        assert_eq!((place.samples, place.issued, place.stalled["SyncStall"]), (12, 1, 9));
        assert!(is_unitrace(TEXT) && !is_unitrace("Kernel, Calls, Time (ns)\n"));
    }

    #[test]
    fn what_does_not_fit_is_an_error_with_its_line() {
        let fails = |text: &str, expected: &str| {
            let error = read(text).expect_err("malformed").to_string();
            assert!(error.contains(expected), "{error}");
        };
        let head = "Kernel, IP[Address], Active[Events], SbidStall[Events]\n";
        fails("nothing\n", "no table of samples");
        fails(&format!("{head}\"k\", xyz, 1, 2\n"), "line 2: address \"xyz\"");
        fails(&format!("{head}\"k\", 10, 1\n"), "line 2: 1 numbers for 2 columns");
        fails(&format!("{head}\"k\", 10, 1, -2\n"), "line 2: SbidStall \"-2\"");
        fails("Kernel, IP[Address], Naps[Events]\n", "line 1: column Naps");
    }
}
