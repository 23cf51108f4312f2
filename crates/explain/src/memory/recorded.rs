//! What follows from recorded accesses, as JSON.

use serde::{Deserialize, Serialize};

use super::Space;
use crate::HexAddress;
use wavetap_memory as memory;
pub use wavetap_memory::{Evidence, FindingKind, Fix};
use wavetap_profile::hex;
use wavetap_profile::map::Source;

/// What was recorded of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedMemory {
    /// Workgroups that were recorded.
    pub workgroups: u64,
    /// Workgroups of the same dispatches.
    pub of_workgroups: u64,
    /// Executions of accesses that were recorded.
    pub executions: u64,
    /// Executions for which there was no room.
    pub dropped: u64,
    /// Dispatches of which workgroups were recorded.
    #[serde(default)]
    pub dispatches: u64,
    /// Dispatches of the kernel.
    #[serde(default)]
    pub of_dispatches: u64,
    /// Accesses of the code whose addresses are not recorded where they are executed: of scratch memory, images and
    /// tensors, or above v255.
    #[serde(default)]
    pub not_measured: u64,
    /// Executions that were recorded and are in no other number: through descriptors that are not of plain memory, or
    /// at the end of what one describes.
    #[serde(default)]
    pub unresolved: u64,
    /// The arrays that were accessed.
    pub arrays: Vec<RecordedArray>,
    /// What is worth a change, the largest share first; small shares and notes come last.
    pub findings: Vec<MemoryFinding>,
}

/// An array that was accessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedArray {
    /// The name of the pointer to it, or `allocation 1`; `LDS 0x0` is what begins there in LDS.
    pub name: String,
    /// [`Space::Global`] or [`Space::Lds`].
    pub space: Space,
    /// Its first byte.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub begin: u64,
    /// Bytes, if that is known.
    pub bytes: Option<u64>,
    /// Words of four bytes that were accessed.
    pub words: u64,
    /// Of these, by several workgroups.
    pub shared_words: u64,
    /// The share of its words that was accessed, if its size is known: 0 to 1.
    pub touched: Option<f64>,
    /// Executions of instructions for each word that was accessed.
    pub reuse: f64,
    /// How many waves access what, of the first recorded workgroup that accesses it.
    pub heat: Option<HeatMap>,
    /// The same of the other ones, if it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_heat: Vec<HeatMap>,
    /// Workgroups of which there is no map, because those before them have as many runs as there is room for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub heat_left_out: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How many waves of a workgroup access each word and each sector of an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeatMap {
    /// The dispatch, by its number in the run.
    #[serde(default)]
    pub dispatch: u32,
    /// The workgroup's id.
    pub workgroup: [u32; 3],
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// What sectors look like.
    pub patterns: Vec<HeatPattern>,
    /// The sectors that are accessed, by rising address.
    pub runs: Vec<HeatRun>,
    /// Sets of instructions that access the same sectors, each by rising address.
    #[serde(default)]
    pub sites: Vec<Vec<HexAddress>>,
    /// Sectors for which there was no room.
    pub left_out: u64,
}

/// How many waves access a sector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeatPattern {
    /// Each of its words.
    pub words: Vec<u8>,
    /// Any of them.
    pub sector: u8,
}

/// Sectors in a row that look the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeatRun {
    /// Address of the first.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// How many.
    pub sectors: u64,
    /// What they look like, by its place in [`HeatMap::patterns`].
    pub pattern: u32,
    /// The instructions that access them, by their place in [`HeatMap::sites`].
    #[serde(default)]
    pub sites: u32,
}

/// A pattern of accesses that costs more than it has to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryFinding {
    /// The pattern.
    pub kind: FindingKind,
    /// What may help; none if it is as it has to be.
    pub fix: Option<Fix>,
    /// The array, by [`RecordedArray::name`].
    pub array: Option<String>,
    /// The instructions.
    pub sites: Vec<FindingSite>,
    /// The numbers that it rests on.
    pub evidence: Evidence,
    /// The instructions' share of the kernel's requests to L1, or of its cycles of LDS: 0 to 1.
    pub share: f64,
    /// Whether it is worth knowing and often right as it is.
    pub note: bool,
    /// Whether its share is too small to matter.
    pub folded: bool,
    /// Whether executions of the instructions are missing for which there was no room.
    pub truncated: bool,
    /// Whether all workgroups were recorded: else it holds for those that were.
    pub whole: bool,
}

/// An instruction of a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FindingSite {
    /// Its address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// Its source line.
    pub source: Option<Source>,
}

/// What an access did in the executions that were recorded. Numbers are of an execution, on average.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredAccess {
    /// The memory that was accessed: [`Space::Global`], [`Space::Lds`] or [`Space::Scratch`].
    pub space: Space,
    /// Executions that were recorded: of an access with two addresses of a lane each counts.
    pub executions: u64,
    /// Executions for which there was no room.
    pub dropped: u64,
    /// Active lanes.
    pub lanes: f64,
    /// Bytes that lanes requested, in all executions.
    pub requested_bytes: u64,
    /// Lines of L1; none in LDS and scratch.
    pub lines: Option<f64>,
    /// Lines that its bytes would fill.
    pub ideal_lines: Option<f64>,
    /// Requests to L1: of each four lanes the lines that they access.
    pub requests: Option<f64>,
    /// Cycles of LDS; none elsewhere.
    pub cycles: Option<f64>,
    /// Of these, because of conflicts.
    pub conflicts: Option<f64>,
    /// The most words of one bank in a phase of LDS.
    pub ways: Option<u64>,
    /// Bytes from each lane to the next, if that was one number in all executions.
    pub stride: Option<i64>,
    /// Lines, or cycles of LDS, beyond what the bytes need, in all executions.
    pub excess: u64,
    /// The share of the kernel's requests to L1, or of its cycles of LDS: 0 to 1.
    pub share: f64,
    /// Whether lines, or cycles of LDS, are those that the code says; none if the code does not say, or if some lanes
    /// were not active.
    pub as_predicted: Option<bool>,
    /// All executions of the run that was counted, at what those that were recorded cost; none if it is not known how
    /// many there were, or if the instruction accessed several memories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<TotalAccess>,
}

/// What an access costs in a run: counted executions, each at the mean of those that were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TotalAccess {
    /// Executions, which were counted.
    pub executions: u64,
    /// Lines of L1, or cycles of LDS.
    pub cost: f64,
    /// Of these, beyond what the bytes need.
    pub excess: f64,
}

/// What a person is shown of a [`MeasuredAccess`]: an execution is one of the instruction, whatever places it accesses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstructionCost {
    /// Executions that were recorded.
    pub executions: u64,
    /// Lines, or cycles of LDS, of one of them.
    pub cost: Option<f64>,
    /// The same if all its bytes were next to each other, or without conflicts.
    pub ideal: Option<f64>,
}

impl MeasuredAccess {
    /// The numbers of an instruction that accesses so many places in a lane.
    pub fn of_instruction(&self, addresses: u32) -> InstructionCost {
        let places = addresses.max(1);
        let ideal = self.cycles.zip(self.conflicts).map(|(cycles, conflicts)| cycles - conflicts);
        let of_all = |cost: Option<f64>| cost.map(|cost| cost * f64::from(places));
        InstructionCost {
            executions: self.executions / u64::from(places),
            cost: of_all(self.lines.or(self.cycles)),
            ideal: of_all(self.ideal_lines.or(ideal)),
        }
    }

    /// With the total of so many executions of the instruction, of which each accesses `addresses` places in a lane.
    #[must_use]
    pub fn in_all(self, executions: u64, addresses: u32) -> MeasuredAccess {
        let places = executions as f64 * f64::from(addresses.max(1));
        let mean = self.lines.or(self.cycles).filter(|_| self.executions > 0);
        let total = mean.map(|cost| TotalAccess {
            executions,
            cost: cost * places,
            excess: self.excess as f64 / self.executions as f64 * places,
        });
        MeasuredAccess { total, ..self }
    }

    /// What was measured of an instruction of a kernel; `site` is what the code says of it.
    #[must_use]
    pub fn new(analysis: &memory::Analysis<'_>, measured: &memory::Measured, site: &memory::Site) -> MeasuredAccess {
        let executions = measured.executions.max(1) as f64;
        let mean = |sum: u64| sum as f64 / executions;
        let in_memory = !matches!(measured.space, memory::Space::Lds | memory::Space::Scratch);
        let of_memory = |sum: u64| in_memory.then(|| mean(sum));
        let in_all = |of: fn(&memory::Measured) -> u64| analysis.measured.iter().map(of).sum::<u64>().max(1) as f64;
        let cycles = |measured: &memory::Measured| measured.lds.map_or(0, |lds| lds.cycles);
        let share = match measured.lds {
            Some(lds) => lds.cycles as f64 / in_all(cycles),
            None => measured.requests as f64 / in_all(|measured| measured.requests),
        };
        MeasuredAccess {
            space: measured.space,
            executions: measured.executions,
            dropped: measured.dropped,
            lanes: measured.mean_lanes(),
            requested_bytes: measured.requested_bytes(),
            lines: of_memory(measured.lines),
            ideal_lines: of_memory(measured.ideal_lines),
            requests: of_memory(measured.requests),
            cycles: measured.lds.map(|lds| mean(lds.cycles)),
            conflicts: measured.lds.map(|lds| mean(lds.conflicts)),
            ways: measured.lds.map(|lds| lds.ways),
            stride: measured.stride,
            excess: measured.excess(),
            share,
            as_predicted: analysis.as_predicted(measured, site),
            total: None,
        }
    }
}

/// Of which workgroups heat maps are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MappedWorkgroups {
    /// The first one that accesses an array.
    #[default]
    First,
    /// All that were recorded, as far as there is room.
    All,
}

/// Runs of all heat maps of a kernel together, after which no more maps are made.
const MOST_RUNS: usize = 1 << 18;

impl RecordedMemory {
    /// What follows from a kernel's records; `source` is the line of an instruction.
    #[must_use]
    pub fn new(
        analysis: &memory::Analysis<'_>,
        mapped: MappedWorkgroups,
        source: impl Fn(u64) -> Option<Source>,
    ) -> RecordedMemory {
        let mut room = if mapped == MappedWorkgroups::All { MOST_RUNS } else { 0 };
        let finding = |finding: &memory::Finding| MemoryFinding {
            kind: finding.kind,
            fix: finding.kind.fix(),
            array: finding.array.map(|array| name(analysis, array)),
            sites: finding.sites.iter().map(|&address| FindingSite { address, source: source(address) }).collect(),
            evidence: finding.evidence,
            share: finding.share,
            note: finding.kind.is_note(),
            folded: finding.is_folded,
            truncated: finding.is_truncated,
            whole: finding.is_whole,
        };
        RecordedMemory {
            workgroups: analysis.recorded_workgroups(),
            of_workgroups: analysis.kernel.workgroups,
            executions: analysis.kernel.records.len() as u64,
            dropped: analysis.kernel.dropped.values().sum(),
            dispatches: 1,
            of_dispatches: 1,
            not_measured: 0,
            unresolved: analysis.kernel.unresolved,
            arrays: analysis
                .heat
                .arrays
                .keys()
                .map(|array| {
                    let mut recorded = RecordedArray::new(analysis, *array);
                    if mapped == MappedWorkgroups::All {
                        recorded.map_others(analysis, *array, &mut room);
                    }
                    recorded
                })
                .collect(),
            findings: memory::findings(analysis).iter().map(finding).collect(),
        }
    }
}

impl RecordedArray {
    fn new(analysis: &memory::Analysis<'_>, array: memory::Array) -> RecordedArray {
        let used = analysis.heat.array_use(array, &analysis.arrays);
        let first = analysis.heat.arrays.get(&array).and_then(|groups| groups.first());
        RecordedArray {
            name: name(analysis, array),
            space: if matches!(array, memory::Array::Lds(_)) { Space::Lds } else { Space::Global },
            begin: analysis.arrays.begin(array),
            bytes: analysis.arrays.bytes(array),
            words: used.words,
            shared_words: used.shared_words,
            touched: used.touched(),
            reuse: used.reuse(),
            heat: first.map(|group| HeatMap::new(analysis, group)),
            other_heat: Vec::new(),
            heat_left_out: 0,
        }
    }

    /// Adds the maps of the workgroups after the first, until they have as many runs as there is room for.
    fn map_others(&mut self, analysis: &memory::Analysis<'_>, array: memory::Array, room: &mut usize) {
        let groups = analysis.heat.arrays.get(&array).map(Vec::as_slice).unwrap_or_default();
        for group in groups.iter().skip(1) {
            if *room == 0 {
                self.heat_left_out += 1;
                continue;
            }
            let map = HeatMap::new(analysis, group);
            *room = room.saturating_sub(map.runs.len());
            self.other_heat.push(map);
        }
    }
}

impl HeatMap {
    /// Of a workgroup, with sectors as large as a line.
    fn new(analysis: &memory::Analysis<'_>, group: &memory::WorkgroupWords) -> HeatMap {
        let map = group.heat_map(analysis.kernel.line_bytes());
        let run = |run: &memory::Run| HeatRun {
            address: run.sector * u64::from(map.sector_bytes),
            sectors: run.sectors,
            pattern: run.pattern,
            sites: run.sites.index() as u32,
        };
        let addresses = |set: &Vec<u64>| set.iter().copied().map(HexAddress).collect();
        HeatMap {
            dispatch: group.dispatch,
            workgroup: group.workgroup,
            sector_bytes: map.sector_bytes,
            runs: map.runs.iter().map(run).collect(),
            sites: map.sites.all().iter().map(addresses).collect(),
            left_out: map.left_out,
            patterns: map.patterns.into_iter().map(|of| HeatPattern { words: of.words, sector: of.sector }).collect(),
        }
    }
}

fn name(analysis: &memory::Analysis<'_>, array: memory::Array) -> String {
    match array {
        memory::Array::Allocation(index) => {
            let allocation = &analysis.kernel.allocations[index];
            allocation.name.clone().unwrap_or_else(|| format!("allocation {}", allocation.ordinal + 1))
        }
        memory::Array::Elsewhere => "memory of no known allocation".to_owned(),
        memory::Array::Lds(_) => format!("LDS {:#x}", analysis.arrays.begin(array)),
    }
}
