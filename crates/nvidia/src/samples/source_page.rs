//! CSV source pages of Nsight Compute. A page is a row `"Kernel Name","…"`, a header and a row for each instruction;
//! older versions write no name and begin with the header. Columns differ by version and are found by name.

use csv::{ReaderBuilder, StringRecord};
use wavetap_base::error::{Error, Result};
use wavetap_profile::pc_samples::Place;

use super::{FunctionSamples, count, of};

const KERNEL_NAME: &str = "Kernel Name";
const ADDRESS: &str = "Address";
const SOURCE: &str = "Source";
/// The column of rows' numbers, with which headers begin.
const NUMBER: &str = "#";
const EXECUTED: [&str; 2] = ["Instructions Executed", "inst_executed"];
/// Columns with all samples, the better ones first.
const SAMPLES: [&str; 4] =
    ["Warp Stall Sampling (All Samples)", "Warp Stall Sampling (All Cycles)", "# Samples", "Sampling Data (All)"];
const REASON: &str = "stall_";
/// Columns that only pages of CUDA source and PTX have.
const OF_SOURCE: [&str; 3] = ["Line No", "Line", "File Name"];
const INST_BYTES: u64 = 16;

/// Where the columns of a page are.
struct Columns {
    address: usize,
    source: Option<usize>,
    executed: Option<usize>,
    samples: Option<usize>,
    /// Reasons, without `stall_`.
    reasons: Vec<(usize, String)>,
}

impl Columns {
    fn of(header: &StringRecord) -> Result<Columns> {
        let first = |names: &[&str]| names.iter().find_map(|name| header.iter().position(|column| column == *name));
        let reason = |(index, column): (usize, &str)| Some((index, column.strip_prefix(REASON)?.to_owned()));
        let Some(address) = first(&[ADDRESS]) else {
            let what = if first(&OF_SOURCE).is_some() || first(&[SOURCE]).is_some() {
                "a page of CUDA source or PTX, whose rows have no addresses"
            } else {
                "no source page: it has no column Address"
            };
            return Err(Error::unsupported(format!("samples: {what}; use `--page source --print-source sass --csv`")));
        };
        let columns = Columns {
            address,
            source: first(&[SOURCE]),
            executed: first(&EXECUTED),
            samples: first(&SAMPLES),
            reasons: header.iter().enumerate().filter_map(reason).collect(),
        };
        if columns.samples.is_none() && columns.reasons.is_empty() {
            return Err(Error::unsupported(
                "samples: a source page without samples: the report needs the section SourceCounters",
            ));
        }
        Ok(columns)
    }
}

/// A row, whose address is not yet an offset.
struct Row {
    address: u64,
    place: Place,
}

pub(super) fn read(text: &str) -> Result<Vec<FunctionSamples>> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let (mut all, mut name, mut columns): (Vec<FunctionSamples>, _, Option<Columns>) =
        (Vec::new(), String::new(), None);
    let (mut rows, mut width): (Vec<Row>, usize) = (Vec::new(), 0);
    for record in reader.records() {
        let record = record.map_err(|error| Error::malformed(format!("samples: {error}")))?;
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |index: usize| record.get(index).unwrap_or_default().trim();
        if cell(0) == KERNEL_NAME {
            finish(&mut all, &name, &mut rows)?;
            (name, columns) = (cell(1).to_owned(), None);
        } else if record.iter().any(|column| [ADDRESS, SOURCE, NUMBER].contains(&column.trim())) && !is_row(&record) {
            finish(&mut all, &name, &mut rows)?;
            let trimmed: StringRecord = record.iter().map(str::trim).collect();
            (columns, width) = (Some(Columns::of(&trimmed)?), record.len());
        } else if let Some(columns) = &columns {
            if record.len() != width {
                let text = format!("samples, line {line}: {} columns, the header has {width}", record.len());
                return Err(Error::malformed(text));
            }
            rows.push(row(&record, columns, line)?);
        } else if !record.iter().all(|column| column.trim().is_empty()) && !cell(0).starts_with("==") {
            return Err(Error::unsupported(format!(
                "samples, line {line}: no header of a source page; use `--page source --print-source sass --csv`"
            )));
        }
    }
    finish(&mut all, &name, &mut rows)?;
    if all.is_empty() {
        return Err(Error::unsupported("samples: no source page with instructions"));
    }
    Ok(all)
}

/// Whether a record that has a column's name has a number at its begin: a row, not a header.
fn is_row(record: &StringRecord) -> bool {
    record.get(0).is_some_and(|cell| cell.trim().parse::<u64>().is_ok())
}

/// A number, which may have separators of thousands; an empty cell is 0.
fn number(cell: &str, line: u64) -> Result<u64> {
    let digits: String = cell.chars().filter(|digit| !matches!(digit, ',' | ' ' | '\u{a0}' | '\u{202f}')).collect();
    match digits.as_str() {
        "" | "-" => Ok(0),
        digits => {
            digits.parse().map_err(|_| Error::malformed(format!("samples, line {line}: {cell:?} is no whole number")))
        }
    }
}

fn row(record: &StringRecord, columns: &Columns, line: u64) -> Result<Row> {
    let cell = |index: usize| record.get(index).unwrap_or_default().trim();
    let address = cell(columns.address);
    let digits = address.strip_prefix("0x").unwrap_or(address);
    let radix =
        if address.starts_with("0x") || digits.bytes().any(|digit| digit.is_ascii_alphabetic()) { 16 } else { 10 };
    let address = u64::from_str_radix(digits, radix)
        .map_err(|_| Error::malformed(format!("samples, line {line}: {address:?} is no address")))?;
    let mut place = Place {
        instruction: columns.source.map(|index| cell(index).to_owned()).filter(|text| !text.is_empty()),
        executions: columns.executed.map(|index| number(cell(index), line)).transpose()?,
        ..Place::default()
    };
    for (index, reason) in &columns.reasons {
        count(&mut place, reason, number(cell(*index), line)?);
    }
    // Reasons that a version does not show are in the sum alone.
    let samples = columns.samples.map(|index| number(cell(index), line)).transpose()?;
    place.samples = place.samples.max(samples.unwrap_or(0));
    Ok(Row { address, place })
}

/// A page is complete: its addresses become offsets from the first.
fn finish(all: &mut Vec<FunctionSamples>, name: &str, rows: &mut Vec<Row>) -> Result<()> {
    let Some(first) = rows.iter().map(|row| row.address).min() else { return Ok(()) };
    let samples = of(all, name);
    for row in std::mem::take(rows) {
        let offset = row.address - first;
        if !offset.is_multiple_of(INST_BYTES) {
            let text = format!("samples of {name:?}: {:#x} is no address of an instruction of 16 bytes", row.address);
            return Err(Error::malformed(text));
        }
        samples.places.entry(offset).or_default().add(&row.place);
    }
    Ok(())
}
