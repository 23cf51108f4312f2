//! What is unfavourable in how kernels are launched. Each warning says its threshold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::table::{CodeOfKernel, LaunchInputs, LaunchRow, NamedKernel, processor};
use crate::names::short;
use crate::variants::labelled;
use crate::words::{counted, grouped, place};
use wavetap_amdgpu::Board;
use wavetap_profile::file::{KernelTotals, WaveCounts};
use wavetap_profile::map::Source;
use wavetap_profile::probes::branches::{BranchCounts, ExecCounts};

/// So many tiny launches of a kernel are many.
const MANY: u64 = 100;
/// Modelled microseconds below which a launch is short: a launch takes about as long itself.
const SHORT_MICROSECONDS: f64 = 10.0;
/// Tail efficiency below this is warned of.
const TAIL: f64 = 0.8;
/// Of so many rounds at most; of more it is a hint.
const TAIL_ROUNDS: f64 = 4.0;
/// A workgroup that does so many times what one does on average is uneven.
const UNEVEN: f64 = 1.5;
/// Work-items of a workgroup that may fill a compute unit alone.
const LARGE_WORKGROUP: u32 = 1024;
/// Percent of lanes that are left out at the beginning of a kernel, from which on it is warned of.
const LEFT_OUT_PERCENT: u64 = 25;

/// What is unfavourable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// Many launches that do not fill the board.
    ManyTiny,
    /// Launches that do not fill the board.
    Tiny,
    /// Launches that take about as long as a launch takes by itself.
    Short,
    /// The last round fills a small part of the board, of few rounds.
    Tail,
    /// The same of many rounds.
    TailHint,
    /// Workgroups do not fill their last wave.
    PartialWaves,
    /// Many lanes are left out at the kernel's beginning.
    LanesLeftOut,
    /// Barriers in workgroups of one wave, which has nothing to wait for.
    OneWaveBarriers,
    /// Workgroups so large that a compute unit holds one.
    OneWorkgroup,
    /// Workgroups execute unequally much.
    Uneven,
}

impl WarningKind {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WarningKind::ManyTiny => "many tiny launches",
            WarningKind::Tiny => "tiny launches",
            WarningKind::Short => "short launches",
            WarningKind::Tail => "tail",
            WarningKind::TailHint => "tail (hint)",
            WarningKind::PartialWaves => "partial waves",
            WarningKind::LanesLeftOut => "lanes left out",
            WarningKind::OneWaveBarriers => "barriers of one wave",
            WarningKind::OneWorkgroup => "one workgroup per compute unit",
            WarningKind::Uneven => "uneven workgroups",
        }
    }

    /// What sort of change helps.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            WarningKind::ManyTiny => "do the work of many launches in one",
            WarningKind::Tiny => "divide the work among more workgroups",
            WarningKind::Short => "do more in a launch, or the work of several in one",
            WarningKind::Tail | WarningKind::TailHint => {
                "choose the grid or the workgroup so that the last round is full"
            }
            WarningKind::PartialWaves => "divide the work among all lanes of a wave",
            WarningKind::LanesLeftOut => "launch as many work-items as there is work",
            WarningKind::OneWaveBarriers => "leave out the barriers, or declare the workgroup's size",
            WarningKind::OneWorkgroup => "use smaller workgroups",
            WarningKind::Uneven => "divide the work evenly, or let workgroups take their next part when they are done",
        }
    }
}

/// Something unfavourable about launches of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchWarning {
    /// What.
    pub kind: WarningKind,
    /// The kernel.
    #[serde(flatten)]
    pub kernel: NamedKernel,
    /// Launches that it is about.
    pub dispatches: u64,
    /// What was found, in words.
    pub text: String,
    /// From when on it is warned of.
    pub threshold: String,
    /// Which part of the board, the lanes or the time is lost while these launches run, 0 to 1: orders the warnings.
    pub weight: f64,
    /// The source line that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// What the warnings of a kernel are found in.
struct Subject<'a> {
    inputs: &'a LaunchInputs<'a>,
    kernel: &'a KernelTotals,
    board: Option<&'static Board>,
    code: Option<&'a CodeOfKernel>,
    rows: &'a [LaunchRow],
    /// The counters of its single waves, where they were kept.
    waves: &'a [&'a WaveCounts],
}

/// The warnings of a kernel with these rows.
pub(super) fn of_kernel(
    inputs: &LaunchInputs<'_>,
    kernel: &KernelTotals,
    board: Option<&'static Board>,
    rows: &[LaunchRow],
    waves: &[&WaveCounts],
) -> Vec<LaunchWarning> {
    let code = inputs.code.iter().find(|code| code.object == kernel.object && code.name == kernel.name);
    let subject = Subject { inputs, kernel, board, code, rows, waves };
    let all = [
        subject.tiny(),
        subject.short(),
        subject.tail(false),
        subject.tail(true),
        subject.partial_waves(),
        subject.left_out(),
        subject.one_wave_barriers(),
        subject.one_workgroup(),
        subject.uneven(),
    ];
    all.into_iter().flatten().collect()
}

impl Subject<'_> {
    fn warning(
        &self,
        kind: WarningKind,
        dispatches: u64,
        text: String,
        threshold: String,
        weight: f64,
    ) -> LaunchWarning {
        let kernel = NamedKernel::of(self.kernel);
        LaunchWarning { kind, kernel, dispatches, text, threshold, weight: weight.clamp(0.0, 1.0), source: None }
    }

    /// Launches with a property, and the row of those that has it most, by a number.
    fn most<T>(&self, mut of: impl FnMut(&LaunchRow) -> Option<(f64, T)>) -> Option<(u64, f64, T, &LaunchRow)> {
        let mut found: Option<(u64, f64, T, &LaunchRow)> = None;
        for row in self.rows {
            let Some((weight, what)) = of(row) else { continue };
            let dispatches = row.shape.dispatches;
            found = Some(match found {
                Some((sum, most, of, other)) if most >= weight => (sum + dispatches, most, of, other),
                Some((sum, ..)) => (sum + dispatches, weight, what, row),
                None => (dispatches, weight, what, row),
            });
        }
        found
    }

    fn tiny(&self) -> Option<LaunchWarning> {
        let (board, target) = (self.board?, processor(&self.kernel.target)?);
        let units = u64::from(board.compute_units);
        let simds = units * u64::from(target.simds_per_cu());
        let mut tiny: Vec<(u64, u64)> = Vec::new();
        let (dispatches, weight, ..) = self.most(|row| {
            let (groups, waves) = (row.workgroups?, row.waves?);
            let idle = 1.0 - (waves as f64 / simds as f64).min(groups as f64 / units as f64).min(1.0);
            (groups < units || waves < simds).then(|| {
                tiny.push((groups, waves));
                (idle, ())
            })
        })?;
        let of = |number: fn(&(u64, u64)) -> u64, one: &str, many: &str| {
            let least = tiny.iter().map(number).min().unwrap_or(0);
            match tiny.iter().map(number).max().unwrap_or(0) {
                most if most == least => counted(least, one, many),
                most => format!("{} to {}", grouped(least), counted(most, one, many)),
            }
        };
        let what = format!(
            "{} of {} ({}) on {units} CUs",
            counted(dispatches, "launch", "launches"),
            of(|(groups, _)| *groups, "workgroup", "workgroups"),
            of(|(_, waves)| *waves, "wave", "waves")
        );
        let kind = if dispatches >= MANY { WarningKind::ManyTiny } else { WarningKind::Tiny };
        let many = if kind == WarningKind::ManyTiny { format!("{MANY} launches or more of ") } else { String::new() };
        let threshold = format!("{many}workgroups < {units} compute units, or waves < {simds} SIMDs");
        Some(self.warning(kind, dispatches, what, threshold, weight))
    }

    fn short(&self) -> Option<LaunchWarning> {
        let time = self.microseconds().filter(|time| *time < SHORT_MICROSECONDS)?;
        let dispatches = self.kernel.dispatches;
        let text = format!("{} of {time:.1} µs on average", counted(dispatches, "launch", "launches"));
        let threshold = format!("< {SHORT_MICROSECONDS} µs modelled");
        // One alone has nothing to be merged with.
        let weight = if dispatches > 1 { 1.0 - time / SHORT_MICROSECONDS } else { 0.0 };
        Some(self.warning(WarningKind::Short, dispatches, text, threshold, weight))
    }

    /// Modelled microseconds of a dispatch on average.
    fn microseconds(&self) -> Option<f64> {
        let of_kernel = |time: &&wavetap_profile::time::KernelTime| {
            time.object == self.kernel.object && time.name == self.kernel.name
        };
        let time = self.inputs.time?.kernels.iter().find(of_kernel)?;
        let dispatches = time.dispatches.len().max(1) as f64;
        Some(self.board?.microseconds(time.modelled_cycles as f64 / dispatches))
    }

    fn tail(&self, hint: bool) -> Option<LaunchWarning> {
        let (dispatches, weight, (rounds, efficiency), row) = self.most(|row| {
            let (rounds, efficiency) = (row.rounds?, row.tail_efficiency?);
            // What is less than one round is tiny, or all of the board's room is not needed.
            let applies = efficiency < TAIL && rounds > 1.0 && (rounds.ceil() > TAIL_ROUNDS) == hint;
            applies.then_some((1.0 - efficiency, (rounds, efficiency)))
        })?;
        let text = format!(
            "{}: {rounds:.2} rounds of {} workgroups at once, {:.0} % of {} rounds",
            counted(dispatches, "launch", "launches"),
            grouped(row.workgroups_at_once.unwrap_or_default()),
            100.0 * efficiency,
            rounds.ceil()
        );
        let (kind, rounds) = if hint { (WarningKind::TailHint, ">") } else { (WarningKind::Tail, "≤") };
        let threshold = format!("rounds / ⌈rounds⌉ < {TAIL}, of {rounds} {TAIL_ROUNDS} rounds");
        Some(self.warning(kind, dispatches, text, threshold, weight))
    }

    fn partial_waves(&self) -> Option<LaunchWarning> {
        let (dispatches, weight, lanes, row) = self.most(|row| {
            let lanes = row.wave_size?;
            let size = row.shape.workgroup_size();
            let filled = u64::from(size.next_multiple_of(lanes));
            let idle = filled - u64::from(size);
            (idle > 0).then_some((idle as f64 / filled as f64, (idle, filled, lanes)))
        })?;
        let (idle, filled, wave) = lanes;
        let text = format!(
            "{} of {}: {idle} of {filled} lanes of each workgroup have none",
            counted(dispatches, "launch with workgroups", "launches with workgroups"),
            counted(row.shape.workgroup_size().into(), "work-item", "work-items")
        );
        let threshold = format!("the workgroup is no multiple of the wave's {wave} lanes");
        Some(self.warning(WarningKind::PartialWaves, dispatches, text, threshold, weight))
    }

    fn left_out(&self) -> Option<LaunchWarning> {
        let guard = self.code?.guard?;
        let site = self.kernel.sites.iter().find(|site| {
            site.address == guard && matches!(BranchCounts::of(&site.counts), Some(BranchCounts::Exec(_)))
        })?;
        let Some(BranchCounts::Exec(ExecCounts { lanes_before, lanes_after, .. })) = BranchCounts::of(&site.counts)
        else {
            return None;
        };
        let out = lanes_before.saturating_sub(lanes_after);
        if lanes_before == 0 || out.saturating_mul(100) < lanes_before.saturating_mul(LEFT_OUT_PERCENT) {
            return None;
        }
        let weight = out as f64 / lanes_before as f64;
        let text = format!(
            "{} of {} work-items do nothing after the test at {} ({:.0} %)",
            grouped(out),
            grouped(lanes_before),
            site.source.as_ref().map_or_else(|| format!("{guard:#x}"), |source| place(Some(source))),
            100.0 * weight
        );
        let threshold = format!("{LEFT_OUT_PERCENT} % of the work-items or more");
        let mut warning = self.warning(WarningKind::LanesLeftOut, self.kernel.dispatches, text, threshold, weight);
        warning.source = site.source.clone();
        Some(warning)
    }

    fn one_wave_barriers(&self) -> Option<LaunchWarning> {
        if !self.code?.barriers {
            return None;
        }
        let one_wave = |row: &LaunchRow| row.wave_size.is_some_and(|lanes| row.shape.workgroup_size() <= lanes);
        let (dispatches, ..) = self.most(|row| one_wave(row).then_some((0.0, ())))?;
        let text = format!(
            "{} whose workgroups are one wave, and the code has barriers",
            counted(dispatches, "launch", "launches")
        );
        let threshold = "a barrier, in workgroups of one wave".to_owned();
        // What the instruction takes; not more is known.
        Some(self.warning(WarningKind::OneWaveBarriers, dispatches, text, threshold, 0.01))
    }

    fn one_workgroup(&self) -> Option<LaunchWarning> {
        let board = self.board?;
        let (dispatches, weight, (waves, most), row) = self.most(|row| {
            let (at_once, size) = (row.workgroups_at_once?, row.shape.workgroup_size());
            let (waves, most) = (row.occupancy?, row.most_waves?);
            let alone = size >= LARGE_WORKGROUP && at_once <= u64::from(board.compute_units);
            (alone && waves < most).then_some((1.0 - f64::from(waves) / f64::from(most), (waves, most)))
        })?;
        let names: Vec<&str> = row.limited_by.iter().map(|resource| resource.name()).collect();
        let text = format!(
            "{} with workgroups of {} work-items, of which a compute unit holds one: {waves} of {most} waves per SIMD, \
                limited by {}",
            counted(dispatches, "launch", "launches"),
            row.shape.workgroup_size(),
            names.join(", ")
        );
        let threshold = format!("workgroups of {LARGE_WORKGROUP} work-items, one per compute unit");
        // Barriers leave the compute unit idle; for how long is not known.
        Some(self.warning(WarningKind::OneWorkgroup, dispatches, text, threshold, 0.5 * weight))
    }

    /// From the counters of single waves: what workgroups of the same dispatch executed.
    fn uneven(&self) -> Option<LaunchWarning> {
        if self.waves.is_empty() {
            return None;
        }
        let counters = executions(self.kernel)?;
        let mut groups: BTreeMap<(u32, [u32; 3]), u64> = BTreeMap::new();
        for wave in self.waves {
            let Some(dispatch) = wave.dispatch else { continue };
            let executed = counters.iter().filter_map(|counter| wave.counters.get(*counter)).sum::<u64>();
            *groups.entry((dispatch, wave.workgroup)).or_default() += executed;
        }
        let mut dispatches: BTreeMap<u32, (u64, u64, u64)> = BTreeMap::new();
        for ((dispatch, _), executed) in groups {
            let (count, sum, most) = dispatches.entry(dispatch).or_default();
            (*count, *sum, *most) = (*count + 1, *sum + executed, (*most).max(executed));
        }
        let ratio = |(count, sum, most): (u64, u64, u64)| most as f64 * count as f64 / sum.max(1) as f64;
        let uneven: Vec<f64> = dispatches.into_values().map(ratio).filter(|ratio| *ratio >= UNEVEN).collect();
        let most = uneven.iter().copied().reduce(f64::max)?;
        let count = uneven.len() as u64;
        let text = format!(
            "{} in which a workgroup executes up to {most:.1} times as many blocks or branches as one on average",
            counted(count, "launch", "launches")
        );
        let threshold = format!("most / mean of the workgroups of a launch ≥ {UNEVEN}");
        Some(self.warning(WarningKind::Uneven, count, text, threshold, 1.0 - 1.0 / most))
    }
}

/// Which counters of a wave say how often something was executed; those of blocks where there are some.
fn executions(kernel: &KernelTotals) -> Option<Vec<usize>> {
    use wavetap_profile::probes::{blocks, branches};
    let mut counters: [Vec<usize>; 2] = Default::default();
    let mut at = 0;
    for site in &kernel.sites {
        let kind = site.counts.kind();
        let probe = [blocks::PROBE, branches::PROBE].iter().position(|probe| *kind.probe == **probe);
        let field = kind.fields.iter().position(|field| field.name == "executions");
        if let (Some(probe), Some(field)) = (probe, field) {
            counters[probe].push(at + field);
        }
        at += site.counts.values().len();
    }
    counters.into_iter().find(|counters| !counters.is_empty())
}

impl LaunchWarning {
    /// What warnings that are alike begin with: what, from when on it is warned of, and what helps.
    #[must_use]
    pub fn heading(&self) -> String {
        format!("{} [{}]: {}", self.kind.name(), self.threshold, self.kind.help())
    }

    /// Of which kernel, and what was found.
    #[must_use]
    pub fn line(&self) -> String {
        let name = labelled(&short(&self.kernel.demangled), self.kernel.variant.as_deref());
        format!("{name}: {}", self.text)
    }
}
