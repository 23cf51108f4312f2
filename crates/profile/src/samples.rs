//! Stall samples in the form of `rocprofv3 --pc-sampling-method stochastic --output-format json`, so that what reads
//! those reads these.
//!
//! Only the emulator's timing model writes them, and `metadata` says that they are *modelled*. The fields that say
//! where in the hardware a wave was are those of the model's machine; what it has no notion of (pipe, queue, virtual
//! memory) is 0.

use serde::Serialize;

use wavetap_base::error::{Error, Result};

/// Schema named in `metadata`.
pub const SCHEMA: &str = "wavetap.samples/1";
/// What rocprofiler-sdk's names of stall reasons begin with.
pub const REASON_PREFIX: &str = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_";
/// What its names of instruction types begin with.
pub const TYPE_PREFIX: &str = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_";

/// The file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct File<'a> {
    #[serde(rename = "rocprofiler-sdk-tool")]
    tool: [&'a Samples; 1],
}

/// All samples of a run.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Samples {
    /// What they are.
    pub metadata: Metadata,
    /// Texts that samples refer to.
    pub strings: Strings,
    /// Code objects.
    pub code_objects: Vec<CodeObject>,
    /// Kernels.
    pub kernel_symbols: Vec<KernelSymbol>,
    /// The samples, and what was dispatched.
    pub buffer_records: Records,
}

/// What the samples are.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metadata {
    /// [`SCHEMA`].
    pub schema: String,
    /// Always true: nothing was measured.
    pub modelled: bool,
    /// Modelled cycles between samples of a wave.
    pub interval: u32,
    /// Samples that there was no room for.
    pub lost: u64,
}

/// Instructions and what is known of them, by `inst_index`.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Strings {
    /// As printed.
    pub pc_sample_instructions: Vec<String>,
    /// Source lines, `file:line`, or nothing.
    pub pc_sample_comments: Vec<String>,
}

/// A code object.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeObject {
    /// Its number.
    pub code_object_id: u64,
    /// MD5 of the original.
    pub md5: String,
}

/// A kernel.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelSymbol {
    /// Its number.
    pub kernel_id: u64,
    /// Its code object's.
    pub code_object_id: u64,
    /// The mangled name with `.kd`.
    pub kernel_name: String,
    /// The demangled name.
    pub formatted_kernel_name: String,
}

/// Samples and dispatches.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Records {
    /// The samples.
    pub pc_sample_stochastic: Vec<Sample>,
    /// The dispatches.
    pub kernel_dispatch: Vec<KernelDispatch>,
}

/// A dispatch.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelDispatch {
    /// Modelled cycle in which it began.
    pub start_timestamp: u64,
    /// Modelled cycle in which it ended.
    pub end_timestamp: u64,
    /// Which it was.
    pub dispatch_info: DispatchInfo,
}

/// Which dispatch.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DispatchInfo {
    /// Its number, from 1.
    pub dispatch_id: u64,
    /// Its kernel's.
    pub kernel_id: u64,
}

/// A sample.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// What was seen.
    pub record: Record,
    /// The instruction in [`Strings`].
    pub inst_index: usize,
}

/// What was seen of a wave.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)] // The names are rocprofiler-sdk's.
pub struct Record {
    pub hw_id: HardwareId,
    pub pc: Pc,
    pub exec_mask: u64,
    /// Modelled cycles since the run began.
    pub timestamp: u64,
    pub dispatch_id: u64,
    pub corr_id: CorrelationId,
    pub wrkgrp_id: WorkgroupId,
    pub wave_in_grp: u32,
    pub wave_issued: u8,
    #[serde(serialize_with = "with_type_prefix")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub inst_type: &'static str,
    pub wave_cnt: u32,
    pub snapshot: Snapshot,
    /// The instruction whose operation in flight it waits for, of several the one that is done last; only the timing
    /// model can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Pc>,
}

/// Where the wave was.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub struct HardwareId {
    pub chiplet: u32,
    pub wave_id: u32,
    pub simd_id: u32,
    pub pipe_id: u32,
    pub cu_or_wgp_id: u32,
    pub shader_array_id: u32,
    pub shader_engine_id: u32,
    pub workgroup_id: u32,
    pub vm_id: u32,
    pub queue_id: u32,
    pub microengine_id: u32,
}

/// Which instruction it stood at: the original virtual address in the code object.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub struct Pc {
    pub code_object_id: u64,
    pub code_object_offset: u64,
}

/// The call that made the dispatch.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub struct CorrelationId {
    pub internal: u64,
    pub external: u64,
}

/// The workgroup.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub struct WorkgroupId {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

/// Why it did not issue.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// Of no meaning where it did.
    #[serde(serialize_with = "with_reason_prefix")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub stall_reason: &'static str,
    /// Never: the model has no such thing.
    pub dual_issue_valu: u8,
}

fn with_reason_prefix<S: serde::Serializer>(
    name: &&'static str,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{REASON_PREFIX}{name}"))
}

fn with_type_prefix<S: serde::Serializer>(name: &&'static str, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{TYPE_PREFIX}{name}"))
}

impl Samples {
    /// None yet.
    #[must_use]
    pub fn new(interval: u32) -> Samples {
        let metadata = Metadata { schema: SCHEMA.to_owned(), modelled: true, interval, lost: 0 };
        Samples { metadata, ..Samples::default() }
    }

    /// The file's contents.
    ///
    /// # Errors
    /// Internal if they cannot be serialised.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        let mut json =
            serde_json::to_vec(&File { tool: [self] }).map_err(|e| Error::internal(format!("samples: {e}")))?;
        json.push(b'\n');
        Ok(json)
    }
}
