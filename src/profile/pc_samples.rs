//! PC samples that `rocprofv3 --pc-sampling-beta-enabled --output-format json` wrote, or `wavetap run --samples`, which writes the same: how often waves were seen at each
//! instruction, and why they did not issue it.
//!
//! Only what a slice needs is read; other fields may be there or not. Host-trap samples tell where waves were, stochastic ones also whether they issued and why not.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::samples::REASON_PREFIX;
use crate::error::{Error, Result};

/// Samples by code object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PcSamples {
    /// Whether a timing model made them.
    pub modelled: bool,
    /// Code objects with at least one sample, by their number in the file.
    pub objects: Vec<SampledObject>,
    /// Samples that name no code object: outside of kernels.
    pub nowhere: u64,
}

/// The samples of one code object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampledObject {
    /// Its number in the file.
    pub id: u64,
    /// MD5 of the original, where the file has it.
    pub md5: Option<String>,
    /// Mangled names of the kernels that the file says it has.
    pub kernels: Vec<String>,
    /// By offset from its load address.
    pub places: BTreeMap<u64, Place>,
}

/// The samples at one instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The instruction's text, where the file has it.
    pub instruction: Option<String>,
    /// All samples.
    pub samples: u64,
    /// Those in which the wave issued it.
    pub issued: u64,
    /// The others by reason, without [`REASON_PREFIX`]; host-trap samples give none.
    pub stalled: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "rocprofiler-sdk-tool")]
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    strings: Strings,
    #[serde(default)]
    code_objects: Vec<CodeObject>,
    #[serde(default)]
    kernel_symbols: Vec<KernelSymbol>,
    #[serde(default)]
    buffer_records: Records,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    modelled: bool,
}

#[derive(Deserialize, Default)]
struct Strings {
    #[serde(default)]
    pc_sample_instructions: Vec<String>,
}

#[derive(Deserialize)]
struct CodeObject {
    code_object_id: u64,
    #[serde(default)]
    md5: Option<String>,
}

#[derive(Deserialize)]
struct KernelSymbol {
    code_object_id: u64,
    #[serde(default)]
    kernel_name: String,
}

#[derive(Deserialize, Default)]
struct Records {
    #[serde(default)]
    pc_sample_host_trap: Vec<Sample>,
    #[serde(default)]
    pc_sample_stochastic: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    record: Record,
    /// -1 if it is not known.
    #[serde(default = "unknown")]
    inst_index: i64,
}

fn unknown() -> i64 {
    -1
}

#[derive(Deserialize)]
struct Record {
    pc: Pc,
    #[serde(default)]
    wave_issued: Option<u8>,
    #[serde(default)]
    snapshot: Option<Snapshot>,
}

#[derive(Deserialize)]
struct Pc {
    code_object_id: u64,
    code_object_offset: u64,
}

#[derive(Deserialize)]
struct Snapshot {
    #[serde(default)]
    stall_reason: String,
}

impl PcSamples {
    /// Reads a file.
    ///
    /// # Errors
    /// Malformed if it is not such JSON, or has no samples.
    pub fn from_json(data: &[u8]) -> Result<PcSamples> {
        let wrong = |error: serde_json::Error| {
            Error::malformed(format!(
                "no PC samples as rocprofv3 writes them to JSON (\"rocprofiler-sdk-tool\" with \"buffer_records\"): {error}"
            ))
        };
        let file: File = serde_json::from_slice(data).map_err(wrong)?;
        let mut samples = PcSamples::default();
        let mut objects: BTreeMap<u64, SampledObject> = BTreeMap::new();
        for tool in file.tools {
            samples.modelled |= tool.metadata.modelled;
            let stochastic = tool.buffer_records.pc_sample_stochastic.iter();
            for sample in stochastic.chain(&tool.buffer_records.pc_sample_host_trap) {
                let Pc { code_object_id: id, code_object_offset: offset } = sample.record.pc;
                // rocprofiler-sdk's number of none.
                if id == 0 {
                    samples.nowhere += 1;
                    continue;
                }
                let place = objects.entry(id).or_default().places.entry(offset).or_default();
                let text = usize::try_from(sample.inst_index).ok().and_then(|index| tool.strings.pc_sample_instructions.get(index));
                if let Some(text) = text.filter(|text| !text.is_empty() && place.instruction.is_none()) {
                    place.instruction = Some(text.clone());
                }
                place.samples += 1;
                match (sample.record.wave_issued, &sample.record.snapshot) {
                    // Of a wave that issued the reason means nothing.
                    (Some(issued), _) if issued != 0 => place.issued += 1,
                    (Some(_), Some(snapshot)) => {
                        let reason = snapshot.stall_reason.strip_prefix(REASON_PREFIX).unwrap_or(&snapshot.stall_reason);
                        *place.stalled.entry(reason.to_owned()).or_default() += 1;
                    }
                    _ => {}
                }
            }
            for object in tool.code_objects {
                if let Some(sampled) = objects.get_mut(&object.code_object_id) {
                    sampled.md5 = object.md5;
                }
            }
            for kernel in tool.kernel_symbols {
                if let Some(sampled) = objects.get_mut(&kernel.code_object_id) {
                    let name = kernel.kernel_name.strip_suffix(".kd").unwrap_or(&kernel.kernel_name);
                    sampled.kernels.push(name.to_owned());
                }
            }
        }
        for (id, object) in &mut objects {
            object.id = *id;
        }
        samples.objects = objects.into_values().collect();
        if samples.objects.is_empty() && samples.nowhere == 0 {
            return Err(Error::malformed("there are no PC samples in it: neither pc_sample_stochastic nor pc_sample_host_trap"));
        }
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_kinds_and_says_what_is_missing() {
        let json = r#"{"rocprofiler-sdk-tool": [{
            "strings": {"pc_sample_instructions": ["s_waitcnt vmcnt(0)"], "pc_sample_comments": [""]},
            "code_objects": [{"code_object_id": 2, "load_base": 1}, {"code_object_id": 3}],
            "kernel_symbols": [{"code_object_id": 2, "kernel_name": "_Z1kv.kd"}],
            "buffer_records": {
                "pc_sample_stochastic": [
                    {"record": {"pc": {"code_object_id": 2, "code_object_offset": 256}, "wave_issued": 0,
                        "snapshot": {"stall_reason": "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT"}}, "inst_index": 0},
                    {"record": {"pc": {"code_object_id": 2, "code_object_offset": 256}, "wave_issued": 1,
                        "snapshot": {"stall_reason": "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT"}}, "inst_index": -1},
                    {"record": {"pc": {"code_object_id": 0, "code_object_offset": 7}, "wave_issued": 1}, "inst_index": -1}],
                "pc_sample_host_trap": [{"record": {"pc": {"code_object_id": 2, "code_object_offset": 260}, "exec_mask": 1}, "inst_index": -1}]
            }}]}"#;
        let samples = PcSamples::from_json(json.as_bytes()).expect("samples");
        assert_eq!((samples.nowhere, samples.modelled, samples.objects.len()), (1, false, 1));
        let object = &samples.objects[0];
        assert_eq!((object.id, object.kernels.as_slice()), (2, ["_Z1kv".to_owned()].as_slice()));
        let wait = &object.places[&256];
        assert_eq!((wait.samples, wait.issued, wait.stalled.get("WAITCNT")), (2, 1, Some(&1)));
        assert_eq!(wait.instruction.as_deref(), Some("s_waitcnt vmcnt(0)"));
        assert_eq!(object.places[&260], Place { samples: 1, ..Place::default() });
        let wrong = |json: &str| PcSamples::from_json(json.as_bytes()).expect_err("no samples").to_string();
        assert!(wrong("{}").contains("rocprofiler-sdk-tool"));
        assert!(wrong(r#"{"rocprofiler-sdk-tool": [{}]}"#).contains("there are no PC samples"));
        assert!(wrong("Sample_Timestamp,Exec_Mask").contains("JSON"));
    }
}
