//! How the lanes of an access to memory lie to each other, where that is known.

use serde::{Deserialize, Serialize};

/// How it is known what the workgroups of a kernel look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkgroupSource {
    /// It was launched with such, most often.
    Launched,
    /// Who asks says so.
    Given,
    /// The source requires them.
    Required,
    /// It is not: the largest that the metadata allows is taken, with one dimension.
    Assumed,
}

/// The places that the lanes of a wave access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneAccess {
    /// Bytes that each lane accesses.
    pub bytes: u32,
    /// Bytes from the place of a lane to that of the next one in direction x of the workgroup: 0 where all access the
    /// same, negative where they go downward, none where it is not one number that is in the code.
    pub stride: Option<i64>,
    /// The same in directions y and z: 0 where lanes of a wave do not differ in it.
    #[serde(default)]
    pub strides: [Option<i64>; 2],
    /// The workgroup that the lanes are those of: x, y, z.
    #[serde(default)]
    pub workgroup: [u32; 3],
    /// How that is known.
    #[serde(default = "assumed")]
    pub workgroup_source: WorkgroupSource,
    /// Bytes of a line of the vector L1 cache: so much is fetched for a lane at least.
    pub line: u32,
    /// How many of these, on average, some lane accesses.
    pub used: u32,
    /// Lines that a wave accesses, on average.
    #[serde(default)]
    pub lines: u32,
    /// How many it would be if the bytes were next to each other.
    #[serde(default)]
    pub least_lines: u32,
}

/// What workgroups are taken to be where a file does not say.
fn assumed() -> WorkgroupSource {
    WorkgroupSource::Assumed
}

impl LaneAccess {
    /// Whether more is fetched than if the lanes were next to each other.
    #[must_use]
    pub fn scattered(self) -> bool {
        self.lines > self.least_lines
    }
}
