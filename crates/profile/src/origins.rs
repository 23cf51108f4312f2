//! What waits really waited for in a run, and where values came from: the emulator's record of it as a file, for tests
//! of what the slicer works out.

use serde::{Deserialize, Serialize};

use super::hex;
use wavetap_base::error::{Error, Result};

/// Schema of the file.
pub const SCHEMA: &str = "wavetap.origins/1";

/// The record of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OriginsFile {
    /// [`SCHEMA`].
    pub schema: String,
    /// By code object.
    pub objects: Vec<ObjectOrigins>,
}

/// The record of one code object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectOrigins {
    /// MD5 of the code object.
    pub object: String,
    /// Target id.
    pub target: String,
    /// Waits by address and counter.
    pub waits: Vec<WaitRecord>,
    /// Values by where they were read and the register.
    pub values: Vec<ValueRecord>,
    /// Operations outstanding before instructions that wait, jump, call or end the wave, by address and counter.
    #[serde(default)]
    pub outstanding: Vec<OutstandingRecord>,
    /// Calls, and jumps through registers.
    #[serde(default)]
    pub jumps: Vec<JumpRecord>,
}

/// One counter of one wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitRecord {
    /// Address of the wait.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// The counter's name: `vmcnt`.
    pub counter: String,
    /// How often waves executed it.
    pub executions: u64,
    /// Operations that it forced to be complete, with the executions in which it did.
    pub forced: Vec<OriginRecord>,
    /// Those of which it forced some.
    pub possible: Vec<OriginRecord>,
}

/// What was outstanding in one counter before an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutstandingRecord {
    /// Address of the instruction.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// The counter's name: `vmcnt`.
    pub counter: String,
    /// The operations; `times` is 1.
    pub operations: Vec<OriginRecord>,
}

/// Where a call, or a jump through registers, went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JumpRecord {
    /// Address of the instruction.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// The addresses in the same object that it went to, ascending.
    pub targets: Vec<u64>,
}

/// One dword that an instruction read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueRecord {
    /// Address of the instruction.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// `s`, `v` or `a`, and the number: for scalar registers the operand code, `s253` is SCC.
    pub register: String,
    /// Who had written it.
    pub origins: Vec<OriginRecord>,
}

/// Where something was done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OriginRecord {
    /// As the function sees it.
    pub place: OriginPlace,
    /// The instruction; of what a callee did, the function's call of it; absent before it was called.
    #[serde(default)]
    pub address: Option<u64>,
    /// How often.
    pub times: u64,
}

/// Where something was done, as a function sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OriginPlace {
    /// In the function.
    Here,
    /// In what it called.
    Callee,
    /// Before it was called.
    Caller,
}

impl OriginsFile {
    /// The file's contents.
    ///
    /// # Errors
    /// Internal if it cannot be serialised.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|e| Error::internal(format!("origins: {e}")))
    }

    /// Reads such a file.
    ///
    /// # Errors
    /// Malformed if it is not one.
    pub fn from_json(json: &[u8]) -> Result<OriginsFile> {
        let read: OriginsFile =
            serde_json::from_slice(json).map_err(|e| Error::malformed(format!("not a file of origins: {e}")))?;
        if read.schema != SCHEMA {
            return Err(Error::unsupported(format!(
                "schema {:?} of origins, this program knows {SCHEMA:?}",
                read.schema
            )));
        }
        Ok(read)
    }
}
