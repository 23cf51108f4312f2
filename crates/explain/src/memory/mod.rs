//! How a kernel's lanes access memory, with what was counted and recorded, and what is wrong with it.

mod patterns;
mod recorded;
mod rules;
pub mod words;

pub use patterns::RecordedPattern;
pub use recorded::{
    Evidence, FindingKind, FindingSite, Fix, HeatMap, HeatPattern, HeatRun, MappedWorkgroups, MeasuredAccess,
    MemoryFinding, RecordedArray, RecordedMemory,
};
pub use rules::{Finding, Rule};

use serde::{Deserialize, Serialize};

use wavetap_memory as memory;
pub use wavetap_memory::{Category, Operation, Severity, Space, Unknown, WorkgroupSource};
use wavetap_profile::hex;
use wavetap_profile::map::Source;

/// Schema of [`MemoryReport`] as JSON.
pub const SCHEMA: &str = "wavetap.memory/1";

/// The accesses of some kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// Always true: places, lines and cycles follow from the code; what was measured is in fields of its own.
    pub predicted: bool,
    /// The kernels.
    pub kernels: Vec<KernelMemory>,
    /// Kernels and code objects that contradict their format, each with what is wrong and where: they are not analysed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// The accesses of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelMemory {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id of its code object.
    pub target: String,
    /// Work-items of a workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// How that is known.
    pub workgroup_source: WorkgroupSource,
    /// Waves of a workgroup that were looked at: all, or of many eight, from the first to the last.
    pub waves: u32,
    /// Bytes of a line of the vector L1 cache.
    pub line_bytes: u32,
    /// The accesses, in the order of the code. Those of functions that it calls are not among them.
    pub accesses: Vec<MemoryAccess>,
    /// What follows from its accesses that were recorded, if some were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedMemory>,
    /// Functions that it calls, directly or through others. Where their lanes go is not known: registers hold what the
    /// callers have set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub called: Vec<CalledFunction>,
    /// Whether it may also call functions that are not known: through pointers, or such as cannot be decoded.
    #[serde(default)]
    pub calls_unknown: bool,
}

/// A function whose accesses are not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CalledFunction {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// How many accesses it has.
    pub accesses: u64,
}

/// An access.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryAccess {
    /// Address of the instruction.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// Which memory, as the code says; where its addresses were recorded, `measured` says it of a FLAT access, too.
    pub space: Space,
    /// What is done.
    pub operation: Operation,
    /// Bytes at each address of a lane; 0 if that is not known.
    pub bytes: u32,
    /// Addresses of a lane: two for `ds_read2_b32` and its like.
    pub addresses: u32,
    /// Loops that it is in.
    pub loop_depth: u32,
    /// The pointer among the kernel's arguments that it is an offset from, by its name or, where
    /// neither the metadata nor the debug information has one, as `argument 1`.
    pub array: Option<String>,
    /// What it looks like, in the wave where it is worst.
    pub category: Category,
    /// How much more it costs than its bytes need.
    pub severity: Severity,
    /// Bytes from each lane to the next, if that is one number.
    pub stride: Option<i64>,
    /// Bytes by which it moves in each round of a loop, if that is a number in the code.
    pub step: Option<i64>,
    /// Why nothing is known of the lanes' addresses.
    pub unknown: Option<Unknown>,
    /// Lines of L1 that a wave accesses with all its lanes active; none in LDS, where nothing is known, and of FLAT
    /// accesses of which the code does not say the memory.
    pub lines: Option<LinesOfWave>,
    /// What LDS does for a wave with all its lanes active; none elsewhere, and where nothing is known.
    pub lds: Option<LdsOfWave>,
    /// How often waves executed it, if a profile was given and says so.
    pub executions: Option<u64>,
    /// Active lanes on average, if the profile says so.
    pub active_lanes: Option<f64>,
    /// Lines, or cycles of LDS, of all executions beyond what their bytes need, as if all lanes were active.
    pub excess: Option<f64>,
    /// What it did in the executions that were recorded, for each memory: an instruction of flat addresses may access
    /// several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<MeasuredAccess>,
}

/// Lines that a wave accesses, on average over the waves that were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinesOfWave {
    /// At least so many.
    pub least: f64,
    /// At most so many.
    pub most: f64,
    /// So many if all rows of lanes begin where it is best, and lie apart.
    pub likely: f64,
    /// So many if all its bytes were next to each other.
    pub ideal: f64,
    /// Whether `least` and `most` are the same.
    pub exact: bool,
}

/// What LDS does for a wave, on average over the waves that were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LdsOfWave {
    /// Cycles that it is kept.
    pub cycles: f64,
    /// Of these, because of conflicts.
    pub conflicts: f64,
    /// The most words of one bank in a phase, in any of the waves: 1 without conflicts.
    pub ways: u64,
}

/// What is known of an access besides its site.
#[derive(Debug, Clone, Default)]
pub struct AccessFacts {
    /// Address of the instruction.
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// Loops that it is in.
    pub loop_depth: u32,
    /// Name of the pointer that it is an offset from.
    pub array: Option<String>,
    /// How often waves executed it.
    pub executions: Option<u64>,
    /// Active lanes on average.
    pub active_lanes: Option<f64>,
    /// What was recorded.
    pub measured: Vec<MeasuredAccess>,
}

impl MemoryAccess {
    /// An access with what is known of it.
    #[must_use]
    pub fn new(site: &memory::Site, facts: AccessFacts) -> MemoryAccess {
        let AccessFacts { address, instruction, source, loop_depth, array, executions, active_lanes, measured } = facts;
        let waves = f64::from(site.waves.max(1));
        let lines = site.lines.map(|lines| LinesOfWave {
            least: f64::from(lines.least) / waves,
            most: f64::from(lines.most) / waves,
            likely: f64::from(lines.likely) / waves,
            ideal: f64::from(lines.ideal) / waves,
            exact: site.exact,
        });
        let lds = site.lds.map(|lds| LdsOfWave {
            cycles: lds.cycles as f64 / waves,
            conflicts: lds.conflicts as f64 / waves,
            ways: lds.ways,
        });
        MemoryAccess {
            address,
            instruction,
            source,
            space: site.access.space,
            operation: site.access.operation,
            bytes: site.access.bytes,
            addresses: site.access.addresses,
            loop_depth,
            array,
            category: site.category,
            severity: site.severity,
            stride: site.stride,
            step: site.step,
            unknown: site.unknown,
            lines,
            lds,
            executions,
            active_lanes,
            excess: executions.and_then(|executions| Some(site.excess()? * executions as f64)),
            measured,
        }
    }

    /// Whether every lane of a vector instruction loads the same, which a scalar load could do.
    #[must_use]
    pub fn is_uniform_load(&self) -> bool {
        self.category == Category::Uniform
            && self.operation == Operation::Load
            && matches!(self.known_space(), Space::Global | Space::Buffer)
    }

    /// The memory that the code says or, of a FLAT access of which it does not, the one where all of its recorded
    /// addresses are.
    #[must_use]
    pub fn known_space(&self) -> Space {
        match self.measured.as_slice() {
            [measured] if self.space == Space::Flat => measured.space,
            _ => self.space,
        }
    }

    /// Lines, or cycles of LDS, of a wave, and how many it would be at best.
    #[must_use]
    pub fn cost(&self) -> Option<(f64, f64)> {
        let lds = self.lds.map(|lds| (lds.cycles, lds.cycles - lds.conflicts));
        self.lines.map(|lines| (lines.likely, lines.ideal)).or(lds)
    }
}
