//! The least time that what kernels executed takes on a board, by resource, and how near to it they can be.
//!
//! A time here is a floor: counted or modelled work over a peak. Nothing runs faster, and most runs take longer; a
//! kernel that is above its roof is an error of this project. What a lane requested is no work of a cache: lanes that
//! read the same address are one line. So bytes of caches and of memory are lines that the timing model has moved, and
//! where no time was modelled there are none.

mod measured;

pub use measured::MeasuredRoofs;

use serde::{Deserialize, Serialize};

use crate::Basis;
use crate::mix::{KernelMix, MixCounts, OperationRow, Traffic};
use crate::words::counted;
use wavetap_amdgpu::{Board, MachineFact, Target};
use wavetap_profile::time::KernelTime;

/// Schema of [`RooflineReport`] as JSON.
pub const SCHEMA: &str = "wavetap.roofline/1";

/// Kernels and the roofs above them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RooflineReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// Whether the profile is of a run that ended.
    pub complete: bool,
    /// The roofs of each target's board.
    pub boards: Vec<BoardRoofs>,
    /// Roofs that were measured, if a file of them was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredRoofs>,
    /// The kernels that were counted.
    pub kernels: Vec<KernelRoofline>,
    /// Selected kernels that were not counted, or for whose target no board is known, by demangled name.
    pub left_out: Vec<String>,
    /// Kernels and code objects that contradict their format, each with what is wrong and where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// The roofs of a board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoardRoofs {
    /// Target id of the kernels that it is for.
    pub target: String,
    /// Its name, as `--board` takes it.
    pub board: String,
    /// Its maker's name.
    pub title: String,
    /// Compute units.
    pub compute_units: u32,
    /// Peak clock.
    pub clock_mhz: u32,
    /// Whether it was named; otherwise it is the usual one of the target.
    pub chosen: bool,
    /// Where the numbers are from: the list is in `isa-tables/boards.yaml`.
    pub source: String,
    /// The roofs.
    pub roofs: Vec<Roof>,
}

/// A roof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Roof {
    /// `memory`, `mall`, `l2`, `l1`, `lds`, `vector_f32`, `matrix_f16`, `vector_issue`, …
    pub resource: String,
    /// What it is a rate of.
    pub unit: RateUnit,
    /// The peak, in 10⁹ of the unit a second.
    pub peak: f64,
    /// What micro-benchmarks reach, where that is published.
    pub usual: Option<f64>,
    /// What was measured on the user's device.
    pub measured: Option<f64>,
}

/// What a rate is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RateUnit {
    /// Bytes.
    Bytes,
    /// Operations.
    Operations,
    /// Wave-instructions.
    Instructions,
}

/// The least times of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelRoofline {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id of its code object.
    pub target: String,
    /// MD5 of its code object.
    pub object: String,
    /// The board.
    pub board: String,
    /// Dispatches that were counted: all numbers are of all of them.
    pub dispatches: u64,
    /// Floating-point operations that active lanes did, counted.
    pub flops: u64,
    /// Whether the work is more than these numbers say: lanes of instructions, waves or functions are not known.
    pub at_least: bool,
    /// Bytes and operations per byte.
    pub levels: Vec<Level>,
    /// The least time by resource, the longest first.
    pub times: Vec<LeastTime>,
    /// The time of all dispatches in the timing model, where it was given.
    pub modelled_microseconds: Option<f64>,
    /// Why modelled time that was given is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_not_used: Option<String>,
}

/// Bytes of a memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    /// `requested` of global memory; `flat`: requested by FLAT instructions of which the code does not say whether they
    /// access global memory, LDS or scratch; `l1`, `l2`, `memory`, `lds`.
    pub level: String,
    /// Bytes.
    pub bytes: u64,
    /// What that rests on.
    pub basis: Basis,
    /// Floating-point operations per byte.
    pub intensity: f64,
}

/// The least time of a resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeastTime {
    /// As in [`Roof::resource`].
    pub resource: String,
    /// How much the kernel has of it.
    pub amount: u64,
    /// In what.
    pub unit: RateUnit,
    /// What the amount rests on.
    pub basis: Basis,
    /// At the peak.
    pub microseconds: f64,
    /// At what micro-benchmarks reach.
    pub usual_microseconds: Option<f64>,
    /// At what was measured on the user's device.
    pub measured_microseconds: Option<f64>,
}

/// Kinds of instructions of which a SIMD issues one at a time: beginnings of their classes, and the resource.
const ISSUED: [(&str, &[&str]); 4] = [
    ("vector_issue", &["valu.", "matrix."]),
    ("scalar_issue", &["salu."]),
    ("memory_issue", &["vmem."]),
    ("lds_issue", &["lds."]),
];

impl BoardRoofs {
    /// The roofs of a board for kernels of this target id, and what was measured.
    #[must_use]
    pub fn new(
        target_id: &str,
        target: Target,
        board: &Board,
        chosen: bool,
        measured: Option<&MeasuredRoofs>,
    ) -> BoardRoofs {
        let units = f64::from(board.compute_units);
        let gigahertz = f64::from(board.clock_mhz) / 1e3;
        let mut peaks = vec![("memory".to_owned(), RateUnit::Bytes, f64::from(board.memory_gbs))];
        peaks.extend(board.mall_gbs.map(|gbs| ("mall".to_owned(), RateUnit::Bytes, f64::from(gbs))));
        peaks.extend(board.l2_bytes.map(|bytes| ("l2".to_owned(), RateUnit::Bytes, f64::from(bytes) * gigahertz)));
        for (name, bytes) in [("l1", board.l1_bytes), ("lds", board.lds_bytes)] {
            peaks.push((name.to_owned(), RateUnit::Bytes, f64::from(bytes) * units * gigahertz));
        }
        for (unit, rates) in [("vector", board.vector), ("matrix", board.matrix)] {
            let peak = |(number, rate): &(&str, u32)| {
                (format!("{unit}_{number}"), RateUnit::Operations, f64::from(*rate) * units * gigahertz)
            };
            peaks.extend(rates.iter().map(peak));
        }
        let interval = f64::from(target.machine(MachineFact::IssueInterval).typical.max(1));
        let issued = units * f64::from(target.simds_per_cu()) * gigahertz / interval;
        peaks.extend(ISSUED.iter().map(|(name, _)| ((*name).to_owned(), RateUnit::Instructions, issued)));
        let roof = |(resource, unit, peak): (String, RateUnit, f64)| Roof {
            usual: board.reached(&resource).map(|percent| peak * f64::from(percent) / 100.0),
            measured: measured.and_then(|measured| measured.roofs.get(&resource).copied()),
            resource,
            unit,
            peak,
        };
        BoardRoofs {
            target: target_id.to_owned(),
            board: board.name.to_owned(),
            title: board.title.to_owned(),
            compute_units: board.compute_units,
            clock_mhz: board.clock_mhz,
            chosen,
            source: board.source.to_owned(),
            roofs: peaks.into_iter().map(roof).collect(),
        }
    }

    fn roof(&self, resource: &str) -> Option<&Roof> {
        self.roofs.iter().find(|roof| roof.resource == resource)
    }
}

impl KernelRoofline {
    /// The roofline of a kernel of which this was counted, under these roofs, with its modelled time if there is one.
    #[must_use]
    pub fn new(mix: &KernelMix, target: Target, roofs: &BoardRoofs, time: Option<&KernelTime>) -> KernelRoofline {
        let total = &mix.total;
        let time_not_used = time.and_then(|time| not_used(mix, time));
        let time = time.filter(|_| time_not_used.is_none());
        let mut amounts: Vec<(String, u64, Basis)> = operations(total);
        amounts.extend(instructions(total).into_iter().map(|(name, count)| (name.to_owned(), count, Basis::Counted)));
        amounts.push(("lds".to_owned(), total.bytes_of(Traffic::Lds), Basis::Counted));
        let flat = total.bytes_of(Traffic::Flat);
        let mut levels = vec![
            ("requested".to_owned(), total.bytes_of(Traffic::Global), Basis::Counted),
            ("flat".to_owned(), flat, Basis::Counted),
        ];
        if let Some(time) = time {
            let line = u64::from(target.l1_line_bytes());
            let far_line = u64::from(target.machine(MachineFact::L2LineBytes).typical);
            let memory = &time.memory;
            // Files of versions that did not note write-backs have no resources.
            let memory_lines = if time.resources.is_empty() { memory.l2_misses } else { memory.memory_lines };
            let has_mall = target.machine(MachineFact::MallBytes).typical > 0;
            let beyond_l2 = memory.l2_misses.saturating_add(memory.l2_written_back).saturating_mul(far_line);
            for (name, bytes) in [
                ("l1", memory.l1_hits.saturating_add(memory.l1_misses).saturating_mul(line)),
                ("l2", memory.l1_misses.saturating_mul(line).saturating_add(memory.stored_bytes)),
                ("mall", if has_mall { beyond_l2 } else { 0 }),
                ("memory", memory_lines.saturating_mul(far_line)),
            ] {
                amounts.push((name.to_owned(), bytes, Basis::Modelled));
                levels.push((name.to_owned(), bytes, Basis::Modelled));
            }
            // They are in no least time of their own: stores are of `l2`, and what is left is of `memory` where
            // no cache is before it.
            levels.push(("l2_stored".to_owned(), memory.stored_bytes, Basis::Modelled));
            levels.push(("l2_left".to_owned(), memory.l2_left.saturating_mul(far_line), Basis::Modelled));
        }
        levels.push(("lds".to_owned(), total.bytes_of(Traffic::Lds), Basis::Counted));
        let flops = total.flops.effective;
        let level = |(level, bytes, basis): (String, u64, Basis)| Level {
            level,
            bytes,
            basis,
            intensity: flops as f64 / bytes.max(1) as f64,
        };
        let time_of = |(resource, amount, basis): (String, u64, Basis)| {
            let roof = roofs.roof(&resource)?;
            // 10⁹ a second are 1000 a microsecond.
            let at = |rate: f64| amount as f64 / (rate * 1e3);
            Some(LeastTime {
                microseconds: at(roof.peak),
                usual_microseconds: roof.usual.map(at),
                measured_microseconds: roof.measured.map(at),
                unit: roof.unit,
                resource,
                amount,
                basis,
            })
        };
        let mut times: Vec<LeastTime> =
            amounts.into_iter().filter(|(_, amount, _)| *amount > 0).filter_map(time_of).collect();
        times.sort_by(|a, b| b.microseconds.total_cmp(&a.microseconds));
        KernelRoofline {
            name: mix.name.clone(),
            demangled: mix.demangled.clone(),
            target: mix.target.clone(),
            object: mix.object.clone(),
            board: roofs.board.clone(),
            dispatches: mix.dispatches,
            flops,
            // What FLAT instructions access may be in LDS.
            at_least: total.flops.lanes_unknown > 0
                || flat > 0
                || total.uncounted > 0
                || mix.dropped > 0
                || mix.unfinished > 0
                || !mix.uncounted_callees.is_empty(),
            levels: levels.into_iter().filter(|(_, bytes, _)| *bytes > 0).map(level).collect(),
            times,
            modelled_microseconds: time.map(|time| time.modelled_cycles as f64 / f64::from(roofs.clock_mhz)),
            time_not_used,
        }
    }

    /// The resource that needs longest, and the next one.
    #[must_use]
    pub fn bound(&self) -> (Option<&LeastTime>, Option<&LeastTime>) {
        let mut times = self.times.iter();
        (times.next(), times.next())
    }
}

/// Why a modelled time is not one of the run that was counted.
fn not_used(mix: &KernelMix, time: &KernelTime) -> Option<String> {
    let dispatches = time.dispatches.len() as u64;
    if dispatches != mix.dispatches {
        let of = counted(dispatches, "dispatch", "dispatches");
        return Some(format!("it is of {of}, the counts are of {}", mix.dispatches));
    }
    (time.modelled_added_cycles > 0).then(|| "it is of a kernel that was rewritten, which does more".to_owned())
}

/// What vector and matrix instructions computed, by type.
fn operations(total: &MixCounts) -> Vec<(String, u64, Basis)> {
    let of = |rows: &[OperationRow], number: &str| {
        rows.iter().find(|row| row.number == number).map_or(0, |row| row.sum.effective)
    };
    let each = |row: &OperationRow| {
        let matrix = of(&total.matrix_operations, &row.number);
        let vector = row.sum.effective.saturating_sub(matrix);
        [("vector", vector), ("matrix", matrix)]
            .map(|(unit, amount)| (format!("{unit}_{}", row.number), amount, Basis::Counted))
    };
    total.operations.iter().flat_map(each).collect()
}

/// Instructions of each kind that is issued by itself.
fn instructions(total: &MixCounts) -> Vec<(&'static str, u64)> {
    let issued = |begins: &[&str]| {
        let rows = total.classes.iter().filter(|row| begins.iter().any(|begin| row.class.starts_with(begin)));
        rows.fold(0_u64, |sum, row| sum.saturating_add(row.issued))
    };
    // Pairs of operations in one instruction are in two classes of vector instructions, and issued once.
    let all = total.classes.iter().fold(0_u64, |sum, row| sum.saturating_add(row.issued));
    let pairs = all.saturating_sub(total.instructions);
    ISSUED
        .iter()
        .map(|(name, begins)| {
            let count = issued(begins);
            (*name, if begins.contains(&"valu.") { count.saturating_sub(pairs) } else { count })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::{BytesRow, ClassRow, OperationSum};
    use wavetap_mix::NumberType;
    use wavetap_profile::time::{DispatchTime, MemoryTime, ResourceTime};

    fn roofs() -> (Target, BoardRoofs) {
        let target = Target::by_name("gfx90a").unwrap();
        let board = Board::by_name("mi210").unwrap();
        (target, BoardRoofs::new("gfx90a", target, board, false, None))
    }

    /// 1024 instructions for each SIMD of an MI210, of which one is a packed multiplication of f32 in all lanes.
    fn kernel() -> KernelMix {
        let simds = 416;
        let class =
            |class: &str, issued| ClassRow { class: class.to_owned(), issued, in_lanes: 0, lanes: 0, lanes_unknown: 0 };
        let sum = |effective| OperationSum { convention: effective, effective, lanes_unknown: 0 };
        let flops = simds * 1024 * 64 * 4;
        KernelMix {
            name: "k".to_owned(),
            demangled: "k".to_owned(),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            wave_size: 64,
            dispatches: 1,
            waves: simds,
            dropped: 0,
            unfinished: 0,
            uncounted_callees: Vec::new(),
            addresses_known: true,
            total: MixCounts {
                instructions: simds * 1536,
                classes: vec![class("valu.f32.fma", simds * 1024), class("vmem.global.read", simds * 512)],
                operations: vec![OperationRow { number: "f32".to_owned(), sum: sum(flops) }],
                flops: sum(flops),
                bytes: vec![BytesRow { memory: Traffic::Global, requested: simds * 512 * 256, unknown: 0 }],
                ..MixCounts::default()
            },
            loops: Vec::new(),
            lines: Vec::new(),
        }
    }

    fn time(misses: u64, dispatches: usize) -> KernelTime {
        KernelTime {
            name: "k".to_owned(),
            demangled: "k".to_owned(),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            waves: 416,
            most_waves_per_simd: 1,
            modelled_cycles: 17_000,
            modelled_wave_cycles: 1,
            modelled_added_cycles: 0,
            dispatches: vec![
                DispatchTime {
                    dispatch: 0,
                    modelled_cycles: 17_000,
                    modelled_start: None,
                    region: None,
                    extrapolated: None
                };
                dispatches
            ],
            memory: MemoryTime {
                l1_misses: misses,
                l2_misses: misses / 2,
                l2_written_back: misses / 2,
                memory_lines: misses,
                ..MemoryTime::default()
            },
            traced: None,
            resources: vec![ResourceTime { resource: "memory".to_owned(), modelled_busy: 1, modelled_available: 2 }],
            instructions: Vec::new(),
        }
    }

    #[test]
    fn the_largest_least_time_bounds() {
        let (target, roofs) = roofs();
        let kernel = KernelRoofline::new(&kernel(), target, &roofs, None);
        // Each SIMD issues 1024 vector instructions, one in four cycles; packed, their operations take as long.
        let (Some(first), Some(second)) = kernel.bound() else { panic!("{kernel:?}") };
        let expected = 1024.0 * 4.0 / 1700.0;
        for time in [first, second] {
            assert!((time.microseconds - expected).abs() < 1e-9, "{time:?}");
        }
        let names = [first.resource.as_str(), second.resource.as_str()];
        assert!(names.contains(&"vector_f32") && names.contains(&"vector_issue"), "{names:?}");
        let levels: Vec<&str> = kernel.levels.iter().map(|level| level.level.as_str()).collect();
        assert_eq!(levels, ["requested"], "what lanes request is no work of a cache");
        assert!(kernel.times.iter().all(|time| time.basis == Basis::Counted));
    }

    #[test]
    fn lines_of_the_model_are_bytes_of_caches_and_memory() {
        let (target, roofs) = roofs();
        // 1638 bytes of memory are a nanosecond; a line of L2 is 128 bytes.
        let misses = 1_638_000;
        let kernel_ = KernelRoofline::new(&kernel(), target, &roofs, Some(&time(misses, 1)));
        let (Some(first), _) = kernel_.bound() else { panic!("{kernel_:?}") };
        assert_eq!((first.resource.as_str(), first.basis), ("memory", Basis::Modelled));
        assert!((first.microseconds - 128.0).abs() < 1e-9 && first.usual_microseconds.is_some_and(|time| time > 150.0));
        assert_eq!(kernel_.modelled_microseconds, Some(10.0));
        let other = KernelRoofline::new(&kernel(), target, &roofs, Some(&time(misses, 2)));
        assert_eq!((other.modelled_microseconds, other.levels.len()), (None, 1));
        assert!(other.time_not_used.is_some_and(|why| why.contains("2 dispatches")));
    }

    #[test]
    fn pairs_are_issued_once() {
        let class =
            |class: &str, issued| ClassRow { class: class.to_owned(), issued, in_lanes: 0, lanes: 0, lanes_unknown: 0 };
        let classes = vec![class("valu.f32.fma", 30), class("valu.f32.mul", 20), class("salu.integer", 5)];
        // 20 pairs, 10 more, 5 scalar ones.
        let total = MixCounts { instructions: 35, classes, ..MixCounts::default() };
        let found = instructions(&total);
        assert_eq!(found[..2], [("vector_issue", 30), ("scalar_issue", 5)]);
    }

    #[test]
    fn boards_know_the_types_of_numbers_that_are_counted() {
        let known: Vec<&str> = NumberType::ALL.iter().map(|number| number.name()).collect();
        for board in Board::all() {
            for (number, rate) in board.vector.iter().chain(board.matrix) {
                assert!(known.contains(number) && *rate > 0, "{}: {number}", board.name);
            }
            for (resource, _) in board.reached {
                let target = Target::by_name(board.target).unwrap();
                let roofs = BoardRoofs::new(board.target, target, board, false, None);
                assert!(roofs.roof(resource).is_some(), "{}: {resource}", board.name);
            }
        }
    }
}
