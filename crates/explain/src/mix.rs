//! What kernels executed, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use wavetap_mix as mix;
pub use wavetap_mix::Traffic;
use wavetap_profile::hex;
use wavetap_profile::map::Source;

/// Schema of [`MixReport`] as JSON.
pub const SCHEMA: &str = "wavetap.mix/1";

/// What some kernels executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MixReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// Whether the profile is of a run that ended.
    pub complete: bool,
    /// The kernels that were counted.
    pub kernels: Vec<KernelMix>,
    /// Selected kernels of which the profile has no counts, by demangled name.
    pub not_counted: Vec<String>,
    /// Kernels and code objects that contradict their format, each with what is wrong and where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// What a kernel executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelMix {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id of its code object.
    pub target: String,
    /// MD5 of its code object.
    #[serde(default)]
    pub object: String,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// Dispatches that were counted.
    pub dispatches: u64,
    /// Waves.
    pub waves: u64,
    /// Waves of which nothing was counted: the record buffer was full.
    pub dropped: u64,
    /// Waves that began and did not end: their counts may be incomplete.
    pub unfinished: u64,
    /// Functions that it may call and that were not counted; `?` stands for calls through unknown pointers.
    pub uncounted_callees: Vec<String>,
    /// Whether it was found out which instructions compute addresses only; not where there are calls.
    pub addresses_known: bool,
    /// All of it, with the functions that it calls.
    pub total: MixCounts,
    /// Its loops, outer ones before those inside them. A loop has the counts of those inside it.
    pub loops: Vec<LoopMix>,
    /// Its source lines, those with most instructions first.
    pub lines: Vec<LineMix>,
}

/// What a loop executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopMix {
    /// Address of the first instruction of its header.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub header: u64,
    /// Loops that it is in, itself included.
    pub depth: u32,
    /// Source line of the header.
    pub source: Option<Source>,
    /// How often the header was executed by waves, if it is known.
    pub iterations: Option<u64>,
    /// What it executed.
    pub mix: MixCounts,
}

/// What a source line executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineMix {
    /// The line; none of instructions without one.
    pub source: Option<Source>,
    /// What it executed.
    pub mix: MixCounts,
}

/// What a piece of code executed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MixCounts {
    /// Instructions issued, one per wave.
    pub instructions: u64,
    /// By class, those issued most first. A pair of operations in one instruction (VOPD) counts as both.
    pub classes: Vec<ClassRow>,
    /// Operations by the numbers that they are on; of matrices and dot products the factors.
    pub operations: Vec<OperationRow>,
    /// Of these, operations of matrix instructions; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrix_operations: Vec<OperationRow>,
    /// Floating-point operations: all rows that are no integers.
    pub flops: OperationSum,
    /// Integer operations.
    pub iops: OperationSum,
    /// Bytes by memory.
    pub bytes: Vec<BytesRow>,
    /// Vector instructions issued that compute addresses only.
    pub vector_addresses: u64,
    /// Scalar instructions issued that compute addresses only.
    pub scalar_addresses: u64,
    /// Issued instructions that work in active lanes, and it is not known how many were active.
    pub lanes_unknown: u64,
    /// Instructions of the code of which it is not known how often they were executed; they are in no other number.
    pub uncounted: u64,
}

/// Instructions of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassRow {
    /// `valu.f32.fma`, `vmem.global.read`.
    pub class: String,
    /// How often waves issued them.
    pub issued: u64,
    /// Of these, those that work in active lanes, and it is known how many were active.
    pub in_lanes: u64,
    /// Active lanes of those, summed.
    pub lanes: u64,
    /// Of the issued, those that work in active lanes, and it is not known how many were active.
    pub lanes_unknown: u64,
}

/// Operations on numbers of a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationRow {
    /// `f32`, `i8`.
    pub number: String,
    /// How many.
    #[serde(flatten)]
    pub sum: OperationSum,
}

/// How many operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationSum {
    /// In rocprof-compute's convention: every lane of the wave whatever EXEC is, a packed pair once, an integer
    /// instruction once.
    pub convention: u64,
    /// Of the lanes that were active, each product and each sum; without instructions whose lanes are not known.
    pub effective: u64,
    /// Issued instructions whose lanes are not known.
    pub lanes_unknown: u64,
}

/// Bytes of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BytesRow {
    /// Which memory.
    pub memory: Traffic,
    /// Bytes that lanes, or waves, requested.
    pub requested: u64,
    /// Issued instructions of which it is not known.
    pub unknown: u64,
}

impl From<&mix::Mix> for MixCounts {
    fn from(mix: &mix::Mix) -> MixCounts {
        let mut classes: Vec<ClassRow> = mix
            .classes
            .iter()
            .filter(|(_, count)| count.issued > 0)
            .map(|(class, count)| ClassRow {
                class: class.to_string(),
                issued: count.issued,
                in_lanes: count.in_lanes,
                lanes: count.lanes,
                lanes_unknown: count.lanes_unknown,
            })
            .collect();
        classes.sort_by_key(|row| std::cmp::Reverse(row.issued));
        let of = |count: &mix::OperationCount| OperationSum {
            convention: count.convention,
            effective: count.effective,
            lanes_unknown: count.lanes_unknown,
        };
        let sum = |integer: bool| {
            let rows = mix.operations.iter().filter(|(number, _)| number.is_integer() == integer);
            rows.fold(OperationSum::default(), |sum, (_, count)| OperationSum {
                convention: sum.convention.saturating_add(count.convention),
                effective: sum.effective.saturating_add(count.effective),
                lanes_unknown: sum.lanes_unknown.saturating_add(count.lanes_unknown),
            })
        };
        let rows = |operations: &BTreeMap<mix::NumberType, mix::OperationCount>| {
            let some = operations.iter().filter(|(_, count)| count.convention > 0);
            some.map(|(number, count)| OperationRow { number: number.name().to_owned(), sum: of(count) }).collect()
        };
        let bytes =
            mix.bytes.iter().filter(|(_, bytes)| bytes.requested > 0 || bytes.unknown > 0).map(|(memory, bytes)| {
                BytesRow { memory: *memory, requested: bytes.requested, unknown: bytes.unknown }
            });
        MixCounts {
            instructions: mix.instructions,
            classes,
            operations: rows(&mix.operations),
            matrix_operations: rows(&mix.matrix_operations),
            flops: sum(false),
            iops: sum(true),
            bytes: bytes.collect(),
            vector_addresses: mix.vector_addresses,
            scalar_addresses: mix.scalar_addresses,
            lanes_unknown: mix.lanes_unknown,
            uncounted: mix.uncounted,
        }
    }
}

impl MixCounts {
    /// FLOPs for each byte of a memory; none where it is not known how many there were of either.
    #[must_use]
    pub fn flops_per_byte(&self, row: &BytesRow) -> Option<f64> {
        let known = row.requested > 0 && row.unknown == 0 && self.flops.lanes_unknown == 0;
        (known && self.flops.effective > 0).then(|| self.flops.effective as f64 / row.requested as f64)
    }

    /// Bytes of a memory.
    #[must_use]
    pub fn bytes_of(&self, memory: Traffic) -> u64 {
        self.bytes.iter().find(|row| row.memory == memory).map_or(0, |row| row.requested)
    }
}
