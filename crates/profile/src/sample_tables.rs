//! Samples that `rocprofv3` writes as tables: PC samples (`--output-format csv`), which name no place but an
//! instruction's text and its source line, and the `stats_*.csv` of thread traces (`--att`), which have the address;
//! and the table in [`viewer`](super::viewer)'s `code.json`, which has the same columns.
//!
//! Columns are found by their names, in any order and whatever their case; those that a slice does not need may be
//! missing. Every number and every row is checked, and what is wrong with one is said with its line.

use std::collections::BTreeMap;

use csv::StringRecord;
use serde::Deserialize;
use serde_json::Value;

use super::pc_samples::{PcSamples, Place, SampleKind, SampledObject, TextPlace};
use super::samples::REASON_PREFIX;
use super::viewer::{CODE_FILE, FUNCTION_MARK};
use wavetap_base::error::{Error, Result};

/// Columns of PC samples.
const INSTRUCTION: &str = "instruction";
const COMMENT: &str = "instruction_comment";
const DISPATCH: &str = "dispatch_id";
const ISSUED: &str = "wave_issued_instruction";
const REASON: &str = "stall_reason";
/// Columns of thread traces, with [`INSTRUCTION`].
const OBJECT: &str = "codeobj";
const ADDRESS: &str = "vaddr";
const HITS: &str = "hitcount";
const LATENCY: &str = "latency";
const STALL: &str = "stall";
const IDLE: &str = "idle";
/// Columns of `code.json`.
const ROW_TEXT: &str = "ISA";
const ROW_NUMBERS: [&str; 6] = ["Codeobj", "Vaddr", "Hit", "Latency", "Stall", "Idle"];

/// Reads a table of either kind.
///
/// # Errors
/// Malformed if it is neither, or if a row is not as its header promises.
pub(super) fn read(data: &[u8]) -> Result<PcSamples> {
    let mut rows = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(data);
    let columns = rows.headers().map_err(wrong_row)?.iter().map(str::to_ascii_lowercase).collect();
    let table = Table { columns };
    match () {
        () if table.has(&[ADDRESS, HITS]) => thread_trace(&table, rows),
        () if table.has(&[INSTRUCTION, COMMENT]) => pc_samples(&table, rows),
        () => Err(Error::malformed(
            "neither JSON nor a table of samples: expected rocprofv3's PC samples (JSON, or CSV with the columns \
                Instruction and Instruction_Comment) or the stats_*.csv of a thread trace (columns Vaddr and Hitcount)",
        )),
    }
}

/// The columns that a table has, in lower case.
struct Table {
    columns: Vec<String>,
}

impl Table {
    fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.find(name).is_some())
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    fn column(&self, name: &str) -> Result<usize> {
        self.find(name).ok_or_else(|| Error::malformed(format!("the table has no column {name}")))
    }
}

fn line_of(row: &StringRecord) -> u64 {
    row.position().map_or(0, csv::Position::line)
}

fn wrong_row(error: csv::Error) -> Error {
    let line = error.position().map_or_else(String::new, |position| format!("line {}: ", position.line()));
    let what = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} columns where the header has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "not UTF-8".to_owned(),
        _ => error.to_string(),
    };
    Error::malformed(format!("{line}{what}"))
}

/// A number, decimal or with `0x`.
fn number(row: &StringRecord, column: usize, name: &str) -> Result<u64> {
    let text = row.get(column).unwrap_or_default().trim();
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| Error::malformed(format!("line {}: {name} is {text:?}, which is no number", line_of(row))))
}

fn added(sum: u64, more: u64, row: &StringRecord) -> Result<u64> {
    sum.checked_add(more)
        .ok_or_else(|| Error::malformed(format!("line {}: the sum of the numbers is beyond 64 bits", line_of(row))))
}

fn pc_samples(table: &Table, mut rows: csv::Reader<&[u8]>) -> Result<PcSamples> {
    let (instruction, comment, dispatch) =
        (table.column(INSTRUCTION)?, table.column(COMMENT)?, table.column(DISPATCH)?);
    let stochastic = match (table.find(ISSUED), table.find(REASON)) {
        (Some(issued), Some(reason)) => Some((issued, reason)),
        (None, None) => None,
        _ => {
            return Err(Error::malformed(format!(
                "the table has one of the columns {ISSUED} and {REASON}, and not the other"
            )));
        }
    };
    let kind = if stochastic.is_some() { SampleKind::StochasticCsv } else { SampleKind::HostTrapCsv };
    let mut samples = PcSamples::of(kind);
    let mut known: BTreeMap<u64, BTreeMap<(String, String), TextPlace>> = BTreeMap::new();
    for row in rows.records() {
        let row = row.map_err(wrong_row)?;
        let text = row.get(instruction).unwrap_or_default().trim();
        let dispatch = number(&row, dispatch, DISPATCH)?;
        let outcome = match stochastic {
            None => None,
            Some((issued, reason)) => match row.get(issued).unwrap_or_default().trim() {
                "1" => Some(None),
                "0" => Some(Some(row.get(reason).unwrap_or_default().trim())),
                other => {
                    return Err(Error::malformed(format!(
                        "line {}: {ISSUED} is {other:?}, which is neither 0 nor 1",
                        line_of(&row)
                    )));
                }
            },
        };
        if text.is_empty() {
            samples.nowhere += 1;
            continue;
        }
        let comment = row.get(comment).unwrap_or_default().trim();
        let place =
            known.entry(dispatch).or_default().entry((text.to_owned(), comment.to_owned())).or_insert_with(|| {
                TextPlace {
                    line: line_of(&row),
                    instruction: text.to_owned(),
                    comment: comment.to_owned(),
                    place: Place::default(),
                }
            });
        place.place.samples += 1;
        match outcome {
            Some(None) => place.place.issued += 1,
            Some(Some(reason)) => {
                let reason = reason.strip_prefix(REASON_PREFIX).unwrap_or(reason);
                *place.place.stalled.entry(reason.to_owned()).or_default() += 1;
            }
            None => {}
        }
    }
    samples.dispatches =
        known.into_iter().map(|(dispatch, places)| (dispatch, places.into_values().collect())).collect();
    if samples.dispatches.is_empty() && samples.nowhere == 0 {
        return Err(Error::malformed("there are no samples in the table: it has a header only"));
    }
    Ok(samples)
}

fn thread_trace(table: &Table, mut rows: csv::Reader<&[u8]>) -> Result<PcSamples> {
    let text = table.column(INSTRUCTION)?;
    let numbers = [OBJECT, ADDRESS, HITS, LATENCY, STALL, IDLE];
    let mut at = [0; 6];
    for (at, name) in at.iter_mut().zip(numbers) {
        *at = table.column(name)?;
    }
    let mut objects: BTreeMap<u64, SampledObject> = BTreeMap::new();
    for row in rows.records() {
        let row = row.map_err(wrong_row)?;
        let mut values = [0; 6];
        for ((value, at), name) in values.iter_mut().zip(at).zip(numbers) {
            *value = number(&row, at, name)?;
        }
        let [id, address, hits, latency, stall, idle] = values;
        let text = row.get(text).unwrap_or_default().trim();
        let object = objects.entry(id).or_insert_with(|| SampledObject { id, ..SampledObject::default() });
        if let Some(kernel) = text.strip_prefix(FUNCTION_MARK) {
            let kernel = kernel.trim();
            object.kernels.push(kernel.strip_suffix(".kd").unwrap_or(kernel).to_owned());
            continue;
        }
        let line = line_of(&row);
        if stall > latency {
            return Err(Error::malformed(format!(
                "line {line}: {stall} cycles of stall in {latency} of latency: it is a part of it"
            )));
        }
        let place = object.places.entry(address).or_default();
        match &place.instruction {
            Some(known) if known != text => {
                return Err(Error::malformed(format!(
                    "line {line}: `{text}` at {address:#x}, where an earlier row has `{known}`"
                )));
            }
            Some(_) => {}
            None => place.instruction = (!text.is_empty()).then(|| text.to_owned()),
        }
        place.samples = added(place.samples, latency, &row)?;
        place.issued = added(place.issued, latency - stall, &row)?;
        place.idle = Some(added(place.idle.unwrap_or(0), idle, &row)?);
        place.executions = Some(added(place.executions.unwrap_or(0), hits, &row)?);
    }
    objects.retain(|_, object| !object.places.is_empty());
    if objects.is_empty() {
        return Err(Error::malformed("there are no instructions in the table: no wave ran on the traced compute unit"));
    }
    Ok(PcSamples { objects: objects.into_values().collect(), ..PcSamples::of(SampleKind::ThreadTrace) })
}

/// The columns, as either version of the format names them.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Columns {
    Text(String),
    List(Vec<String>),
}

/// Rows as they are read: any values, so that what is wrong with one is said with its place.
pub(super) type AnyRow = Vec<Value>;

/// The rows of such a file as samples.
///
/// # Errors
/// Malformed if a column is missing or a row is not as the header promises, with its place in the list; or if no wave
/// executed anything.
pub(super) fn code_rows(header: &Columns, rows: &[AnyRow], modelled: bool) -> Result<PcSamples> {
    let names: Vec<&str> = match header {
        Columns::Text(text) => text.split(',').map(str::trim).collect(),
        Columns::List(names) => names.iter().map(|name| name.trim()).collect(),
    };
    let column = |name: &str| {
        names
            .iter()
            .position(|column| *column == name)
            .ok_or_else(|| Error::malformed(format!("{CODE_FILE}: \"header\" has no column {name}")))
    };
    let text = column(ROW_TEXT)?;
    let numbers = ROW_NUMBERS;
    let mut at = [0; 6];
    for (at, name) in at.iter_mut().zip(numbers) {
        *at = column(name)?;
    }
    let mut objects: BTreeMap<u64, SampledObject> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let wrong = |what: String| Error::malformed(format!("{CODE_FILE}: code[{index}]: {what}"));
        if row.len() != names.len() {
            return Err(wrong(format!("{} values where the header has {} columns", row.len(), names.len())));
        }
        let mut values = [0; 6];
        for ((value, at), name) in values.iter_mut().zip(at).zip(numbers) {
            let given = &row[at];
            *value = given.as_u64().ok_or_else(|| wrong(format!("{name} is {given}, and not a number from 0")))?;
        }
        let [id, address, hits, latency, stall, idle] = values;
        let given = &row[text];
        let printed = given.as_str().map(str::trim).filter(|text| !text.is_empty());
        let printed = printed.ok_or_else(|| wrong(format!("{ROW_TEXT} is {given}, and not an instruction")))?;
        let object = objects.entry(id).or_insert_with(|| SampledObject { id, ..SampledObject::default() });
        if let Some(function) = printed.strip_prefix(FUNCTION_MARK) {
            object.kernels.push(function.trim().to_owned());
            continue;
        }
        if stall > latency {
            return Err(wrong(format!("{stall} cycles of Stall in {latency} of Latency: they are a part of it")));
        }
        let place = Place {
            instruction: Some(printed.to_owned()),
            samples: latency,
            issued: latency - stall,
            idle: Some(idle),
            executions: Some(hits),
            ..Place::default()
        };
        if object.places.insert(address, place).is_some() {
            return Err(wrong(format!("a second instruction at {address:#x}")));
        }
    }
    objects.retain(|_, object| object.places.values().any(|place| place.executions > Some(0)));
    if objects.is_empty() {
        return Err(Error::malformed(format!("{CODE_FILE}: no traced wave executed an instruction (Hit is always 0)")));
    }
    Ok(PcSamples { modelled, objects: objects.into_values().collect(), ..PcSamples::of(SampleKind::ThreadTrace) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pc_samples::read as read_any;

    const HOST_TRAP: &str = "\"Sample_Timestamp\",\"Exec_Mask\",\"Dispatch_Id\",\
        \"Instruction\",\"Instruction_Comment\",\"Correlation_Id\"\n\
        10,65535,1,\"s_waitcnt vmcnt(0)\",\"k.hip:7\",1\n11,65535,1,\"s_waitcnt vmcnt(0)\",\"k.hip:7\",1\n\
        12,1,2,\"v_add_u32_e32 v0, v1, v2\",\"\",2\n13,1,2,\"\",\"\",2\n";
    const STOCHASTIC: &str = "Sample_Timestamp,Exec_Mask,Dispatch_Id,Instruction,Instruction_Comment,Correlation_Id,\
        Wave_Issued_Instruction,Instruction_Type,Stall_Reason,Wave_Count\n\
        1,3,9,s_waitcnt vmcnt(0),a/k.hip:7,9,0,\
        ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_NO_INST,\
        ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT,4\n\
        2,3,9,s_waitcnt vmcnt(0),a/k.hip:7,9,1,\
        ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_SCALAR,\
        ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_OTHER_WAIT,4\n";
    const TRACE: &str = "CodeObj,Vaddr,Instruction,Hitcount,Latency,Stall,Idle,Source\n\
        4,0,\"; _Z1kv\",0,0,0,0,\n4,4096,\"s_waitcnt vmcnt(0)\",8,900,860,16,k.hip:7\n\
        4,0x1004,s_endpgm,8,32,0,0,k.hip:9\n";

    #[test]
    fn host_trap_samples_are_counted_by_text_line_and_dispatch() {
        let samples = read_any(HOST_TRAP.as_bytes()).expect("samples");
        assert_eq!((samples.kind, samples.nowhere, samples.dispatches.len()), (SampleKind::HostTrapCsv, 1, 2));
        let [wait] = samples.dispatches[&1].as_slice() else { panic!("{samples:?}") };
        assert_eq!(
            (wait.line, wait.comment.as_str(), &wait.place),
            (2, "k.hip:7", &Place { samples: 2, ..Place::default() })
        );
        assert_eq!(samples.dispatches[&2][0].instruction, "v_add_u32_e32 v0, v1, v2");
    }

    #[test]
    fn stochastic_samples_have_reasons_unless_they_were_issued() {
        let samples = read_any(STOCHASTIC.as_bytes()).expect("samples");
        assert_eq!(samples.kind, SampleKind::StochasticCsv);
        let place = &samples.dispatches[&9][0].place;
        assert_eq!((place.samples, place.issued), (2, 1));
        assert_eq!(place.stalled, BTreeMap::from([("WAITCNT".to_owned(), 1)]));
    }

    #[test]
    fn thread_traces_have_addresses_and_kernels() {
        for text in [TRACE.to_owned(), TRACE.to_uppercase().replace("0X1004", "4100"), format!("\u{feff}{TRACE}")] {
            let samples = read_any(text.as_bytes()).expect("a trace");
            let [object] = samples.objects.as_slice() else { panic!("{samples:?}") };
            assert_eq!(
                (samples.kind, object.id, object.kernels.len(), object.places.len()),
                (SampleKind::ThreadTrace, 4, 1, 2)
            );
            let wait = &object.places[&0x1000];
            assert_eq!((wait.samples, wait.issued, wait.idle, wait.executions), (900, 40, Some(16), Some(8)));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text: String| read_any(text.as_bytes()).expect_err(&text).to_string();
        assert!(wrong("a,b\n1,2\n".to_owned()).contains("neither JSON nor a table of samples"));
        assert!(wrong(String::new()).contains("neither JSON nor a table of samples"));
        assert!(wrong(TRACE.replace("900,860", "900,901")).contains("line 3: 901 cycles of stall in 900 of latency"));
        assert!(wrong(TRACE.replace("860", "many")).contains("line 3: stall is \"many\", which is no number"));
        assert!(wrong(TRACE.replace("860", "-860")).contains("no number"));
        assert!(
            wrong(TRACE.replace("0x1004", "4096"))
                .contains("line 4: `s_endpgm` at 0x1000, where an earlier row has `s_waitcnt vmcnt(0)`")
        );
        assert!(wrong(TRACE.replace(",Idle", "").replace(",16,", ",")).contains("the table has no column idle"));
        assert!(
            wrong(TRACE.replace("900", "18446744073709551615").replace("0x1004,s_endpgm", "4096,s_waitcnt vmcnt(0)"))
                .contains("beyond 64 bits")
        );
        assert!(wrong(format!("{HOST_TRAP}5,6\n")).contains("line 6: 2 columns where the header has 6"));
        assert!(wrong(HOST_TRAP.lines().next().expect("a header").to_owned()).contains("a header only"));
        assert!(wrong(STOCHASTIC.replace("9,1,ROC", "9,2,ROC")).contains("line 3: wave_issued_instruction is \"2\""));
        assert!(wrong(STOCHASTIC.replace("Stall_Reason", "Reason")).contains("and not the other"));
    }

    /// Damaged files are read or refused: never a panic, and what is read is consistent.
    #[test]
    fn damaged_files_are_read_or_refused() {
        // Knuth's MMIX generator.
        let mut state = 17_u64;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        let (mut read, mut refused) = (0, 0);
        let json = br#"{"rocprofiler-sdk-tool": [{"strings": {"pc_sample_instructions": ["s_endpgm"]},
        "buffer_records": {"pc_sample_stochastic": [
            {"record": {"pc": {"code_object_id": 2, "code_object_offset": 256}, "wave_issued": 0,
            "snapshot": {"stall_reason": "WAITCNT", "arb_state_issue_valu": 1}}, "inst_index": 0}]}}]}"#;
        let viewer =
            br#"{"header":"ISA, _, Codeobj, Vaddr, Hit, Latency, Stall, Idle","code":[["s_nop 0",0,1,256,2,32,8,0]]}"#;
        for round in 0..5000 {
            let seed = [HOST_TRAP.as_bytes(), STOCHASTIC.as_bytes(), TRACE.as_bytes(), json, viewer][round % 5];
            let mut data = seed.to_vec();
            for _ in 0..1 + below(3) {
                if data.is_empty() {
                    break;
                }
                let at = below(data.len());
                match below(5) {
                    0 => data[at] = below(256) as u8,
                    1 => data[at] = b"\",;\n0-x9"[below(8)],
                    2 => drop(data.remove(at)),
                    3 => data.insert(at, b"\",;\n0-x9"[below(8)]),
                    _ => data.truncate(at.max(1)),
                }
            }
            match read_any(&data) {
                Ok(samples) => {
                    read += 1;
                    let placed = samples.objects.iter().flat_map(|object| object.places.values());
                    let texts = samples.dispatches.values().flatten().map(|text| &text.place);
                    assert!(placed.chain(texts).all(|place| place.issued <= place.samples), "{samples:?}");
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
        assert!(read > 300 && refused > 300, "{read} {refused}");
    }
}
