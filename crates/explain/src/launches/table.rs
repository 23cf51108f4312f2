//! The launch table: each way in which each kernel was launched, on a board.
//!
//! Workgroups, waves and lanes follow from the grid; occupancy from the registers and the LDS of the original; rounds
//! from both and the board's compute units. Nothing of it is measured, and nothing is estimated.

use serde::{Deserialize, Serialize};

use super::warnings::{self, LaunchWarning};
use crate::code::ExecutedCode;
use crate::memory::KernelMemory;
use crate::occupancy::{Needs, Occupancy, Resource};
use wavetap_amdgpu::{Board, Demand, Target};
use wavetap_profile::file::{KernelTotals, Profile, WaveCounts};
use wavetap_profile::host::HostActivity;
use wavetap_profile::launches::{LaunchShape, waves, workgroups};
use wavetap_profile::time::TimeProfile;

/// Every launch of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchTable {
    /// The board that numbers of each target are about.
    pub boards: Vec<BoardOfTarget>,
    /// A row for each way in which a kernel was launched; kernels in order of first dispatch.
    pub rows: Vec<LaunchRow>,
    /// What is unfavourable, the worst first.
    pub warnings: Vec<LaunchWarning>,
    /// What the host had the device do, in its order, where that was recorded.
    #[serde(default, skip_serializing_if = "HostActivity::is_empty")]
    pub host: HostActivity,
}

/// The board that is meant where code for a target runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoardOfTarget {
    /// Target id of code objects.
    pub target: String,
    /// Its name, as `--board` takes it; null where none is known: then nothing is said that depends on one.
    pub board: Option<String>,
    /// Its maker's name.
    pub title: Option<String>,
    /// Compute units.
    pub compute_units: Option<u32>,
    /// Whether it was named; otherwise it is the usual one of the target.
    pub chosen: bool,
}

/// A kernel by its names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedKernel {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id.
    pub target: String,
    /// MD5 of the original code object.
    pub object: String,
    /// What tells it from other kernels of its name; null where it is the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl NamedKernel {
    /// The names of a kernel of a profile.
    #[must_use]
    pub fn of(totals: &KernelTotals) -> NamedKernel {
        NamedKernel {
            name: totals.name.clone(),
            demangled: totals.demangled.clone(),
            target: totals.target.clone(),
            object: totals.object.clone(),
            variant: None,
        }
    }

    /// Whether it is the kernel of this name in the code object with this MD5.
    #[must_use]
    pub fn is(&self, object: &str, name: &str) -> bool {
        self.object == object && self.name == name
    }
}

/// Launches of a kernel that are alike. Numbers are of one of them; what is not known is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchRow {
    /// The kernel.
    #[serde(flatten)]
    pub kernel: NamedKernel,
    /// How they were launched, and how many there were.
    #[serde(flatten)]
    pub shape: LaunchShape,
    /// Lanes of a wave.
    pub wave_size: Option<u32>,
    /// Workgroups.
    pub workgroups: Option<u64>,
    /// Waves.
    pub waves: Option<u64>,
    /// Waves for each compute unit of the board.
    pub waves_per_cu: Option<f64>,
    /// Waves of such workgroups that a SIMD holds.
    pub occupancy: Option<u32>,
    /// The most that a SIMD holds.
    pub most_waves: Option<u32>,
    /// What keeps it from holding more.
    pub limited_by: Vec<Resource>,
    /// Workgroups that the board holds at once.
    pub workgroups_at_once: Option<u64>,
    /// How often the board is filled: workgroups / workgroups at once.
    pub rounds: Option<f64>,
    /// What of the rounds, the last one taken as a whole, workgroups fill: rounds / ⌈rounds⌉.
    pub tail_efficiency: Option<f64>,
    /// Lanes of its waves.
    pub lanes: Option<u64>,
    /// Of these, lanes that have no work-item: of waves that a workgroup does not fill.
    pub idle_lanes: Option<u64>,
}

/// What the code of a kernel says that launches and summaries depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeOfKernel {
    /// MD5 of its code object.
    pub object: String,
    /// Its mangled name.
    pub name: String,
    /// Whether it, or a function that it calls, has a barrier.
    pub barriers: bool,
    /// Address of the instruction that takes lanes out of the whole kernel at its beginning (`if (i < n)`), if there is
    /// one.
    pub guard: Option<u64>,
    /// How its lanes access memory: of the kernels that a summary is about.
    pub memory: Option<KernelMemory>,
    /// Its instructions with what was counted of them: of the same kernels.
    pub executed: Option<ExecutedCode>,
}

/// What a launch table is made from.
#[derive(Debug, Clone, Copy)]
pub struct LaunchInputs<'a> {
    /// The run.
    pub profile: &'a Profile,
    /// The board that was named: it is that of its target.
    pub board: Option<&'static Board>,
    /// Modelled time of the run.
    pub time: Option<&'a TimeProfile>,
    /// What is known of the code.
    pub code: &'a [CodeOfKernel],
}

/// The processor of a target id.
pub fn processor(target_id: &str) -> Option<Target> {
    Target::by_name(target_id.split(':').next().unwrap_or_default())
}

impl LaunchInputs<'_> {
    /// The board of a target, and whether it was named.
    pub fn board_of(&self, target_id: &str) -> (Option<&'static Board>, bool) {
        let Some(target) = processor(target_id) else { return (None, false) };
        match self.board.filter(|board| board.target == target.name()) {
            Some(board) => (Some(board), true),
            None => (Board::of_target(target), false),
        }
    }
}

impl LaunchTable {
    /// The launches of a run.
    #[must_use]
    pub fn new(inputs: LaunchInputs<'_>) -> LaunchTable {
        let mut boards: Vec<BoardOfTarget> = Vec::new();
        let mut rows = Vec::new();
        let mut found = Vec::new();
        let mut waves_of: Vec<Vec<&WaveCounts>> = vec![Vec::new(); inputs.profile.kernels.len()];
        for wave in &inputs.profile.waves {
            waves_of.get_mut(wave.kernel as usize).into_iter().for_each(|waves| waves.push(wave));
        }
        for (kernel, waves) in inputs.profile.kernels.iter().zip(&waves_of) {
            let (board, chosen) = inputs.board_of(&kernel.target);
            if !boards.iter().any(|known| known.target == kernel.target) {
                boards.push(BoardOfTarget {
                    target: kernel.target.clone(),
                    board: board.map(|board| board.name.to_owned()),
                    title: board.map(|board| board.title.to_owned()),
                    compute_units: board.map(|board| board.compute_units),
                    chosen,
                });
            }
            let first = rows.len();
            rows.extend(kernel.launches.iter().map(|shape| LaunchRow::new(kernel, *shape, board)));
            found.extend(warnings::of_kernel(&inputs, kernel, board, &rows[first..], waves));
        }
        // The worst first; kernels stay in their order among equals.
        found.sort_by(|a: &LaunchWarning, b| b.weight.total_cmp(&a.weight));
        LaunchTable { boards, rows, warnings: found, host: inputs.profile.host.clone() }
    }

    /// The warnings about a kernel.
    pub fn warnings_of<'t>(&'t self, object: &'t str, name: &'t str) -> impl Iterator<Item = &'t LaunchWarning> {
        self.warnings.iter().filter(move |warning| warning.kernel.is(object, name))
    }
}

impl LaunchRow {
    fn new(kernel: &KernelTotals, shape: LaunchShape, board: Option<&Board>) -> LaunchRow {
        let mut row = LaunchRow {
            kernel: NamedKernel::of(kernel),
            shape,
            wave_size: None,
            workgroups: shape.grid.map(|grid| workgroups(grid, shape.workgroup)),
            waves: None,
            waves_per_cu: None,
            occupancy: None,
            most_waves: None,
            limited_by: Vec::new(),
            workgroups_at_once: None,
            rounds: None,
            tail_efficiency: None,
            lanes: None,
            idle_lanes: None,
        };
        let Some(target) = processor(&kernel.target) else { return row };
        let lanes = kernel.before.map(|before| before.wave_size).filter(|lanes| *lanes > 0);
        let Some(target) = lanes.and_then(|lanes| target.with_wave_size(lanes)) else { return row };
        row.wave_size = lanes;
        row.waves = shape.grid.map(|grid| waves(grid, shape.workgroup, target.wave_size()));
        row.lanes = row.waves.map(|waves| waves.saturating_mul(target.wave_size().into()));
        row.idle_lanes = row.lanes.zip(shape.work_items()).map(|(lanes, items)| lanes.saturating_sub(items));
        row.waves_per_cu = row.waves.zip(board).map(|(waves, board)| waves as f64 / f64::from(board.compute_units));
        if let Some(before) = kernel.before {
            let workgroup = shape.workgroup_size();
            let lds_bytes = before.lds_bytes.saturating_add(shape.dynamic_lds);
            let wgp_mode = before.wgp_mode && target.has_wgp_mode();
            let needs = Needs { vgprs: before.vgprs, sgprs: before.sgprs, lds_bytes, workgroup, exact: true, wgp_mode };
            let occupancy = Occupancy::of(target, &needs);
            row.occupancy = Some(occupancy.waves);
            row.most_waves = Some(occupancy.most);
            row.limited_by = occupancy.limited_by;
            let demand =
                Demand { vgprs: before.vgprs, sgprs: before.sgprs, lds_bytes, workgroup_size: workgroup, wgp_mode };
            // Of a compute unit, or of two that a workgroup has together.
            let units = if wgp_mode { 2 } else { 1 };
            let at_once = board
                .map(|board| u64::from(board.compute_units / units) * u64::from(target.workgroups(&demand)))
                .filter(|at_once| *at_once > 0);
            row.workgroups_at_once = at_once;
            row.rounds = row.workgroups.zip(at_once).map(|(groups, at_once)| groups as f64 / at_once as f64);
            row.tail_efficiency = row.rounds.filter(|rounds| *rounds > 0.0).map(|rounds| rounds / rounds.ceil());
        }
        row
    }

    /// `4×2×1`.
    pub fn size(axes: [u32; 3]) -> String {
        let [x, y, z] = axes;
        format!("{x}×{y}×{z}")
    }
}
