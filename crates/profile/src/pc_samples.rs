//! Samples of where waves were, and why they did not go on: PC samples that `rocprofv3 --pc-sampling-beta-enabled`
//! wrote as JSON or CSV, or `wavetap run --samples`, which writes the same JSON, and thread traces (`rocprofv3 --att`),
//! as `stats_*.csv` or as `code.json` of a folder for AMD's viewer.
//! What a file is follows from its contents.
//!
//! Only what a slice needs is read; other fields may be there or not. Host-trap samples tell where waves were,
//! stochastic ones also whether they issued and why not, and, of hardware, whether their SIMD did anything else
//! meanwhile. Where a file has both kinds, the stochastic ones are taken.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::sample_tables;
use super::samples::REASON_PREFIX;
use wavetap_base::error::{Error, Result};

/// What samples are. The first kinds are trusted more than the later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SampleKind {
    /// Cycles of every instruction of some waves.
    ThreadTrace,
    /// Samples that the hardware took, with reasons.
    Stochastic,
    /// Samples that the host took by interrupting waves.
    HostTrap,
    /// [`SampleKind::Stochastic`] without addresses.
    StochasticCsv,
    /// [`SampleKind::HostTrap`] without addresses.
    HostTrapCsv,
}

impl SampleKind {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SampleKind::ThreadTrace => "thread trace",
            SampleKind::Stochastic => "stochastic",
            SampleKind::HostTrap => "host trap",
            SampleKind::StochasticCsv => "stochastic, CSV",
            SampleKind::HostTrapCsv => "host trap, CSV",
        }
    }

    /// What is counted: `samples` or `cycles`.
    #[must_use]
    pub fn unit(self) -> &'static str {
        if self == SampleKind::ThreadTrace { "cycles" } else { "samples" }
    }

    /// Whether places were found by text and source line, or may be off by an instruction or two.
    #[must_use]
    pub fn approximate(self) -> bool {
        !matches!(self, SampleKind::ThreadTrace | SampleKind::Stochastic)
    }

    /// What has to be known to read them, if a timing model may have made them.
    #[must_use]
    pub fn caveat_of(self, modelled: bool) -> &'static str {
        match self {
            SampleKind::ThreadTrace if modelled => "of all waves, as the timing model has them",
            _ => self.caveat(),
        }
    }

    /// What has to be known to read them.
    #[must_use]
    pub fn caveat(self) -> &'static str {
        match self {
            SampleKind::ThreadTrace => {
                "exact, of the waves on the traced compute unit only: how often they executed an instruction is no \
                    count of the dispatch"
            }
            SampleKind::Stochastic => "each at the instruction that the wave stood at",
            SampleKind::HostTrap => {
                "approximate: a host trap is taken up to two instructions late, so that samples may belong to one of \
                    the two before"
            }
            SampleKind::StochasticCsv => "approximate: without addresses, found by text and source line",
            SampleKind::HostTrapCsv => {
                "approximate: without addresses, found by text and source line, and a host trap is taken up to two \
                    instructions late, so that samples may belong to one of the two before"
            }
        }
    }
}

/// Samples by code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PcSamples {
    /// What they are.
    pub kind: SampleKind,
    /// Whether a timing model made them.
    pub modelled: bool,
    /// Code objects with at least one sample, by their number in the file.
    pub objects: Vec<SampledObject>,
    /// Samples that have texts in place of addresses, by dispatch.
    pub dispatches: BTreeMap<u64, Vec<TextPlace>>,
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
    /// Where it was loaded from, where the file has it: `file://…#offset=…&size=…` or `memory://…`.
    pub uri: Option<String>,
    /// Bytes of memory that it was loaded into, where the file has it.
    pub load_size: Option<u64>,
    /// The file lists its code objects, and this one is not among them.
    pub unlisted: bool,
    /// Mangled names of the kernels that the file says it has.
    pub kernels: Vec<String>,
    /// By offset from its load address.
    pub places: BTreeMap<u64, Place>,
}

impl SampledObject {
    /// Bytes of the code object's file that its URI names, if it does.
    #[must_use]
    pub fn file_size(&self) -> Option<u64> {
        let (_, place) = self.uri.as_deref()?.split_once('#')?;
        let text = place.split('&').find_map(|part| part.strip_prefix("size="))?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }

    /// Whether anything says which code object it is.
    #[must_use]
    pub fn is_identified(&self) -> bool {
        let text = self.places.values().any(|place| place.instruction.is_some());
        self.md5.is_some() || self.file_size().is_some() || !self.kernels.is_empty() || text
    }

    /// All its samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.places.values().map(|place| place.samples).fold(0, u64::saturating_add)
    }
}

/// The samples of a dispatch at an instruction of which the text is known, and no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPlace {
    /// Line of the file that has the first of them.
    pub line: u64,
    /// The instruction's text.
    pub instruction: String,
    /// Its source line, `file:line`, or nothing.
    pub comment: String,
    /// The samples.
    pub place: Place,
}

/// The samples at one instruction; of a thread trace, the cycles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The instruction's text, where the file has it.
    pub instruction: Option<String>,
    /// All samples; the latency of a thread trace.
    pub samples: u64,
    /// Those in which the wave issued it.
    pub issued: u64,
    /// The others by reason, without [`REASON_PREFIX`]; host-trap samples and thread traces give none.
    pub stalled: BTreeMap<String, u64>,
    /// Of the others, those that tell for which operation in flight the wave waited, by the offset of its instruction
    /// in the same code object: samples of the timing model do.
    pub waits_for: BTreeMap<u64, u64>,
    /// Of the others, those in which an instruction of another wave of the SIMD went ahead: the waiting cost nothing.
    /// None if the samples do not tell of all of them.
    pub hidden: Option<u64>,
    /// Cycles between the end of the instruction before and the begin of this one: thread traces tell.
    pub idle: Option<u64>,
    /// How often traced waves executed it: thread traces tell.
    pub executions: Option<u64>,
}

impl Place {
    /// Those in which the wave did not issue; of host-trap samples, which do not tell, all.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.samples.saturating_sub(self.issued)
    }

    /// Adds what was seen elsewhere to this.
    pub fn add(&mut self, other: &Place) {
        let known = |a: Option<u64>, b: Option<u64>| {
            if a.is_none() && b.is_none() { None } else { Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))) }
        };
        // Hidden ones are known if those of every sample are.
        self.hidden = match (self.waiting(), other.waiting()) {
            (0, _) => other.hidden.or(self.hidden),
            (_, 0) => self.hidden,
            _ => self.hidden.zip(other.hidden).map(|(a, b)| a.saturating_add(b)),
        };
        self.samples = self.samples.saturating_add(other.samples);
        self.issued = self.issued.saturating_add(other.issued);
        for (reason, count) in &other.stalled {
            let all = self.stalled.entry(reason.clone()).or_default();
            *all = all.saturating_add(*count);
        }
        for (offset, count) in &other.waits_for {
            let all = self.waits_for.entry(*offset).or_default();
            *all = all.saturating_add(*count);
        }
        self.idle = known(self.idle, other.idle);
        self.executions = known(self.executions, other.executions);
        self.instruction = self.instruction.take().or_else(|| other.instruction.clone());
    }
}

/// What JSON is that is no file of samples.
const NEITHER: &str = "neither PC samples as rocprofv3 writes them to JSON (\"rocprofiler-sdk-tool\" with \
    \"buffer_records\") nor code.json of a thread trace (\"code\" and \"header\")";

#[derive(Deserialize)]
struct File {
    #[serde(rename = "rocprofiler-sdk-tool")]
    tools: Option<Vec<Tool>>,
    /// Of [`viewer`](super::viewer), with the next two.
    code: Option<Vec<sample_tables::AnyRow>>,
    header: Option<sample_tables::Columns>,
    #[serde(default)]
    modelled: bool,
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
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    load_size: Option<u64>,
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
    #[serde(default)]
    waits_for: Option<Pc>,
}

#[derive(Deserialize)]
struct Pc {
    code_object_id: u64,
    code_object_offset: u64,
}

/// Whether the arbiter chose an instruction for a pipe in the sampled cycle, and whether the pipe could not take it.
macro_rules! snapshot {
    ($($issue:ident $stall:ident),*) => {
        #[derive(Deserialize)]
        struct Snapshot {
            #[serde(default)]
            stall_reason: String,
            $(#[serde(default)] $issue: Option<Bit>, #[serde(default)] $stall: Option<Bit>,)*
        }

        impl Snapshot {
            /// Whether an instruction of any wave of the SIMD went ahead; none if the arbiter's state is not there.
            /// (rocprofiler-sdk, "Analyzing PC sampling data": a pipe makes progress if an instruction was issued to it
            /// and not stalled.)
            fn progress(&self) -> Option<bool> {
                let pipes = [$((self.$issue, self.$stall)),*];
                let told = pipes.iter().filter_map(|(issue, stall)| {
 Some(issue.as_ref()?.set() && !stall.as_ref()?.set())
 });
                told.reduce(|a, b| a || b)
            }
        }
    };
}

snapshot!(
    arb_state_issue_valu arb_state_stall_valu,
    arb_state_issue_matrix arb_state_stall_matrix,
    arb_state_issue_lds arb_state_stall_lds,
    arb_state_issue_lds_direct arb_state_stall_lds_direct,
    arb_state_issue_scalar arb_state_stall_scalar,
    arb_state_issue_vmem_tex arb_state_stall_vmem_tex,
    arb_state_issue_flat arb_state_stall_flat,
    arb_state_issue_exp arb_state_stall_exp,
    arb_state_issue_misc arb_state_stall_misc,
    arb_state_issue_brmsg arb_state_stall_brmsg
);

/// A bit, as a number or as a truth value.
#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
enum Bit {
    Number(u8),
    Truth(bool),
}

impl Bit {
    fn set(self) -> bool {
        match self {
            Bit::Number(number) => number != 0,
            Bit::Truth(truth) => truth,
        }
    }
}

/// Reads a file of samples of any kind.
///
/// ```
/// use wavetap_profile::pc_samples::{self, SampleKind};
/// let table = b"CodeObj,Vaddr,Instruction,Hitcount,Latency,Stall,Idle,Source\n1,4096,s_endpgm,2,32,0,0,\n";
/// let samples = pc_samples::read(table)?;
/// assert_eq!(samples.kind, SampleKind::ThreadTrace);
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
///
/// # Errors
/// Malformed if it is no such file, has no samples, or a part of it is damaged; with the place.
pub fn read(data: &[u8]) -> Result<PcSamples> {
    let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    match data.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => PcSamples::from_json(data),
        _ => sample_tables::read(data),
    }
}

impl PcSamples {
    /// None yet.
    pub(super) fn of(kind: SampleKind) -> PcSamples {
        PcSamples { kind, modelled: false, objects: Vec::new(), dispatches: BTreeMap::new(), nowhere: 0 }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Malformed if it is not such JSON, or has no samples.
    pub fn from_json(data: &[u8]) -> Result<PcSamples> {
        let wrong = |error: serde_json::Error| Error::malformed(format!("{NEITHER}: {error}"));
        let file: File = serde_json::from_slice(data).map_err(wrong)?;
        let tools = match (file.tools, file.code, file.header) {
            (Some(tools), None, None) => tools,
            (None, Some(code), Some(header)) => return sample_tables::code_rows(&header, &code, file.modelled),
            _ => return Err(Error::malformed(NEITHER)),
        };
        let stochastic = tools.iter().any(|tool| !tool.buffer_records.pc_sample_stochastic.is_empty());
        let mut samples = PcSamples::of(if stochastic { SampleKind::Stochastic } else { SampleKind::HostTrap });
        // Each process numbers its own.
        let mut objects: BTreeMap<(usize, u64), SampledObject> = BTreeMap::new();
        for (process, tool) in tools.into_iter().enumerate() {
            samples.modelled |= tool.metadata.modelled;
            let Records { pc_sample_stochastic, pc_sample_host_trap } = &tool.buffer_records;
            for sample in if stochastic { pc_sample_stochastic } else { pc_sample_host_trap } {
                let Pc { code_object_id: id, code_object_offset: offset } = sample.record.pc;
                // rocprofiler-sdk's number of none.
                if id == 0 {
                    samples.nowhere += 1;
                    continue;
                }
                let place = objects.entry((process, id)).or_default().places.entry(offset).or_default();
                let text = usize::try_from(sample.inst_index)
                    .ok()
                    .and_then(|index| tool.strings.pc_sample_instructions.get(index));
                if let Some(text) = text.filter(|text| !text.is_empty() && place.instruction.is_none()) {
                    place.instruction = Some(text.clone());
                }
                let mut seen = Place { samples: 1, ..Place::default() };
                match (sample.record.wave_issued, &sample.record.snapshot) {
                    // Of a wave that issued the reason means nothing.
                    (Some(issued), _) if issued != 0 => seen.issued = 1,
                    (Some(_), Some(snapshot)) => {
                        let reason =
                            snapshot.stall_reason.strip_prefix(REASON_PREFIX).unwrap_or(&snapshot.stall_reason);
                        seen.stalled.insert(reason.to_owned(), 1);
                        seen.hidden = snapshot.progress().map(u64::from);
                        let operation = sample.record.waits_for.as_ref().filter(|pc| pc.code_object_id == id);
                        seen.waits_for.extend(operation.map(|pc| (pc.code_object_offset, 1)));
                    }
                    _ => {}
                }
                place.add(&seen);
            }
            if !tool.code_objects.is_empty() {
                objects.range_mut((process, 0)..=(process, u64::MAX)).for_each(|(_, object)| object.unlisted = true);
            }
            for object in tool.code_objects {
                if let Some(sampled) = objects.get_mut(&(process, object.code_object_id)) {
                    (sampled.md5, sampled.load_size, sampled.unlisted) =
                        (object.md5, object.load_size.filter(|size| *size > 0), false);
                    sampled.uri = object.uri.filter(|uri| !uri.is_empty());
                }
            }
            for kernel in tool.kernel_symbols {
                if let Some(sampled) = objects.get_mut(&(process, kernel.code_object_id)) {
                    let name = kernel.kernel_name.strip_suffix(".kd").unwrap_or(&kernel.kernel_name);
                    sampled.kernels.push(name.to_owned());
                }
            }
        }
        for ((_, id), object) in &mut objects {
            object.id = *id;
        }
        samples.objects = objects.into_values().collect();
        if samples.objects.is_empty() && samples.nowhere == 0 {
            return Err(Error::malformed(
                "there are no PC samples in it: neither pc_sample_stochastic nor pc_sample_host_trap",
            ));
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
                        "snapshot": {"stall_reason": "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT"}},
                        "inst_index": 0},
                    {"record": {"pc": {"code_object_id": 2, "code_object_offset": 256}, "wave_issued": 1,
                        "snapshot": {"stall_reason": "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT"}},
                        "inst_index": -1},
                    {"record": {"pc": {"code_object_id": 0, "code_object_offset": 7}, "wave_issued": 1},
                    "inst_index": -1}],
                "pc_sample_host_trap": [{"record": {"pc": {"code_object_id": 2, "code_object_offset": 260},
                "exec_mask": 1}, "inst_index": -1}]
            }}]}"#;
        let samples = PcSamples::from_json(json.as_bytes()).expect("samples");
        assert_eq!((samples.nowhere, samples.modelled, samples.objects.len()), (1, false, 1));
        let object = &samples.objects[0];
        assert_eq!((object.id, object.kernels.as_slice()), (2, ["_Z1kv".to_owned()].as_slice()));
        let wait = &object.places[&256];
        assert_eq!((wait.samples, wait.issued, wait.stalled.get("WAITCNT")), (2, 1, Some(&1)));
        assert_eq!(wait.instruction.as_deref(), Some("s_waitcnt vmcnt(0)"));
        assert_eq!(
            samples.kind,
            SampleKind::Stochastic,
            "host-trap samples beside stochastic ones are not mixed with them"
        );
        assert!(!object.places.contains_key(&260));
        let host_trap =
            PcSamples::from_json(json.replace("pc_sample_stochastic", "other").as_bytes()).expect("samples");
        assert_eq!(
            (host_trap.kind, &host_trap.objects[0].places[&260]),
            (SampleKind::HostTrap, &Place { samples: 1, ..Place::default() })
        );
        let wrong = |json: &str| PcSamples::from_json(json.as_bytes()).expect_err("no samples").to_string();
        assert!(wrong("{}").contains("rocprofiler-sdk-tool"));
        assert!(wrong(r#"{"rocprofiler-sdk-tool": [{}]}"#).contains("there are no PC samples"));
        assert!(wrong("Sample_Timestamp,Exec_Mask").contains("JSON"));
    }

    #[test]
    fn stalls_are_hidden_where_the_simd_did_something_else() {
        let sample = |issued: u8, arbiter: &str| {
            format!(
                r#"{{"record": {{"pc": {{"code_object_id": 2, "code_object_offset": 256}}, "wave_issued": {issued},
                "snapshot": {{"stall_reason": "WAITCNT"{arbiter}}}}}}}"#
            )
        };
        let hidden = |samples: &[String]| {
            let json = format!(
                r#"{{"rocprofiler-sdk-tool": [{{"buffer_records": {{"pc_sample_stochastic": [{}]}}}}]}}"#,
                samples.join(",")
            );
            PcSamples::from_json(json.as_bytes()).expect("samples").objects[0].places[&256].hidden
        };
        let other_wave = sample(
            0,
            r#", "arb_state_issue_valu": 1, "arb_state_stall_valu": 0, "arb_state_issue_lds": 0,
            "arb_state_stall_lds": 0"#,
        );
        let held_up = sample(0, r#", "arb_state_issue_valu": true, "arb_state_stall_valu": true"#);
        let nobody = sample(0, r#", "arb_state_issue_valu": 0, "arb_state_stall_valu": 0"#);
        let issued = sample(1, r#", "arb_state_issue_valu": 1, "arb_state_stall_valu": 0"#);
        assert_eq!(hidden(&[other_wave.clone(), held_up, nobody, issued.clone()]), Some(1));
        assert_eq!(hidden(&[other_wave, sample(0, "")]), None, "one does not tell");
        assert_eq!(hidden(&[issued]), None);
    }
}
