//! What the timing model says of the runs that are compared. Every number of cycles is *modelled*, and is called so.

use serde::{Deserialize, Serialize};

use super::{Compare, ComparedKernel};
use crate::table::{Align, Table, grouped};
use crate::text::Style;
use wavetap_profile::time::{KernelTime, TimeProfile};

/// Modelled time of all dispatches of a kernel in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelledTime {
    /// Cycles of its dispatches, summed.
    pub modelled_cycles: u64,
    /// Cycles that waves were resident, summed.
    pub modelled_wave_cycles: u64,
    /// Of these, at instructions that the rewrite added.
    pub modelled_added_cycles: u64,
    /// Most waves that were on a SIMD at once: the occupancy that its launches reached.
    pub most_waves_per_simd: u32,
}

impl ModelledTime {
    fn of(kernel: &KernelTime) -> ModelledTime {
        ModelledTime {
            modelled_cycles: kernel.modelled_cycles,
            modelled_wave_cycles: kernel.modelled_wave_cycles,
            modelled_added_cycles: kernel.modelled_added_cycles,
            most_waves_per_simd: kernel.most_waves_per_simd,
        }
    }
}

impl Compare {
    /// Adds the modelled time of the uninstrumented run, and of the run in each of these modes.
    pub fn add_time(&mut self, original: &TimeProfile, modes: &[(&str, &TimeProfile)]) {
        self.latencies.clone_from(&original.latencies);
        for compared in &mut self.kernels {
            let kernel = &compared.kernel;
            let find = |time: &TimeProfile| {
                let same = |timed: &&KernelTime| {
                    timed.name == kernel.name && timed.object == kernel.object && timed.target == kernel.target
                };
                time.kernels.iter().find(same).map(ModelledTime::of)
            };
            compared.original_time = find(original);
            for mode in &mut compared.modes {
                let time = modes.iter().find(|(name, _)| *name == mode.mode);
                mode.time = time.and_then(|(_, time)| find(time));
            }
        }
    }

    /// For each mode the geometric mean of what it costs, over the kernels that it counted.
    pub(super) fn mean_lines(&self, style: Style, lines: &mut Vec<String>) {
        let Some(first) = self.kernels.first().filter(|kernel| kernel.original_time.is_some()) else { return };
        let mut table = mean_table();
        for (at, mode) in first.modes.iter().enumerate() {
            let ratios: Vec<Ratios> = self.kernels.iter().filter_map(|kernel| kernel.ratios(at)).collect();
            let mean = |of: fn(&Ratios) -> f64| {
                (ratios.iter().map(|one| of(one).ln()).sum::<f64>() / ratios.len() as f64).exp()
            };
            if ratios.is_empty() {
                continue;
            }
            let means = [mean(|one| one.instructions), mean(|one| one.cycles), mean(|one| one.wave_cycles)];
            let cells = [mode.mode.clone(), grouped(ratios.len() as u64)];
            table.row(cells.into_iter().chain(means.map(times)));
        }
        if table.is_empty() {
            return;
        }
        lines.push(style.bold("times the original, geometric means of kernels"));
        push_table(&table, style, lines);
        if !self.latencies.is_empty() {
            lines.push(format!("  modelled with other latencies: {}", self.latencies.join(", ")));
        }
        lines.push(String::new());
    }
}

fn mean_table() -> Table {
    Table::new(&[
        ("mode", Align::Left),
        ("kernels", Align::Right),
        ("instructions", Align::Right),
        ("modelled cycles", Align::Right),
        ("modelled wave cycles", Align::Right),
    ])
}

/// What a mode costs, as multiples of the original.
struct Ratios {
    instructions: f64,
    cycles: f64,
    wave_cycles: f64,
}

impl ComparedKernel {
    /// None where a run has no number, or counted only a part of the dispatches.
    fn ratios(&self, mode: usize) -> Option<Ratios> {
        let mode = self.modes.get(mode).filter(|mode| mode.counted && mode.uncounted.is_empty())?;
        let (time, original) = (mode.time?, self.original_time?);
        Some(Ratios {
            instructions: ratio(mode.work?.instructions, self.original_work?.instructions)?,
            cycles: ratio(time.modelled_cycles, original.modelled_cycles)?,
            wave_cycles: ratio(time.modelled_wave_cycles, original.modelled_wave_cycles)?,
        })
    }

    /// The table of modelled time, if time was modelled.
    pub(super) fn time_lines(&self, style: Style, lines: &mut Vec<String>) {
        let Some(original) = self.original_time else { return };
        let mut table = Table::new(&[
            ("mode", Align::Left),
            ("modelled cycles", Align::Right),
            ("×", Align::Right),
            ("modelled wave cycles", Align::Right),
            ("×", Align::Right),
            ("instructions ×", Align::Right),
            ("most waves/SIMD", Align::Right),
        ]);
        let row = |mode: &str, time: ModelledTime, instructions: Option<f64>| {
            let times_original = |of: fn(&ModelledTime) -> u64| {
                ratio(of(&time), of(&original)).filter(|_| mode != ORIGINAL).map(times).unwrap_or_default()
            };
            [
                mode.to_owned(),
                grouped(time.modelled_cycles),
                times_original(|time| time.modelled_cycles),
                grouped(time.modelled_wave_cycles),
                times_original(|time| time.modelled_wave_cycles),
                instructions.map(times).unwrap_or_default(),
                grouped(time.most_waves_per_simd.into()),
            ]
        };
        table.row(row(ORIGINAL, original, None));
        for mode in &self.modes {
            let instructions = mode.work.zip(self.original_work);
            let instructions =
                instructions.and_then(|(work, original)| ratio(work.instructions, original.instructions));
            if let Some(time) = mode.time {
                table.row(row(&mode.mode, time, instructions));
            }
        }
        push_table(&table, style, lines);
    }
}

/// The row of the uninstrumented run.
const ORIGINAL: &str = "original";

fn push_table(table: &Table, style: Style, lines: &mut Vec<String>) {
    lines.extend(table.lines(2, style));
}

/// None where nothing, or nothing of the original, was there.
fn ratio(found: u64, original: u64) -> Option<f64> {
    (found > 0 && original > 0).then(|| found as f64 / original as f64)
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{OutputDifference, Run};
    use wavetap_profile::file::{Backend, KernelTotals, Origin, Profile, Work};
    use wavetap_profile::time::MemoryTime;

    fn profile(kernels: &[(&str, u64)]) -> Profile {
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        profile.kernels = kernels
            .iter()
            .map(|(name, instructions)| KernelTotals {
                name: (*name).to_owned(),
                demangled: (*name).to_owned(),
                work: Some(Work { instructions: *instructions, ..Work::default() }),
                ..KernelTotals::default()
            })
            .collect();
        profile
    }

    fn time(kernels: &[(&str, u64)]) -> TimeProfile {
        let mut time = TimeProfile::new(vec!["l2=9".to_owned()]);
        time.kernels = kernels
            .iter()
            .map(|(name, cycles)| KernelTime {
                name: (*name).to_owned(),
                demangled: (*name).to_owned(),
                target: String::new(),
                object: String::new(),
                waves: 1,
                most_waves_per_simd: 3,
                modelled_cycles: *cycles,
                modelled_wave_cycles: 10 * cycles,
                modelled_added_cycles: 0,
                dispatches: Vec::new(),
                memory: MemoryTime::default(),
                traced: None,
                resources: Vec::new(),
                instructions: Vec::new(),
            })
            .collect();
        time
    }

    #[test]
    fn every_mode_is_a_multiple_of_the_original() {
        let (original, lds) = (profile(&[("a", 10), ("b", 10)]), profile(&[("a", 20), ("b", 80)]));
        let output = OutputDifference::Same;
        let run = Run { mode: "lds", profile: &lds, trace: Some(&lds), output: &output, exit_code: 0 };
        let mut compare = Compare::new(Backend::Emulator, Some(&original), 0, &[run]);
        let before = compare.render(Style::default());
        assert!(!before.contains("modelled"), "{before}");
        compare.add_time(&time(&[("b", 100), ("a", 200)]), &[("lds", &time(&[("a", 500), ("b", 1000)]))]);
        let text = compare.render(Style::default());
        let expected = "
  mode      modelled cycles     ×  modelled wave cycles     ×  instructions ×  most waves/SIMD
  original              200                        2000                                      3
  lds                   500  2.50                  5000  2.50            2.00                3
";
        assert!(text.contains(expected), "{text}");
        let expected = "
times the original, geometric means of kernels
  mode  kernels  instructions  modelled cycles  modelled wave cycles
  lds         2          4.00             5.00                  5.00
  modelled with other latencies: l2=9
";
        assert!(text.contains(expected), "{text}");
        let json = serde_json::to_string(&compare).unwrap();
        assert_eq!(serde_json::from_str::<Compare>(&json).unwrap(), compare);
    }

    #[test]
    fn a_mode_without_time_is_left_out() {
        let profiles = profile(&[("a", 10)]);
        let output = OutputDifference::Same;
        let run = Run { mode: "lds", profile: &profiles, trace: None, output: &output, exit_code: 0 };
        let mut compare = Compare::new(Backend::Emulator, Some(&profiles), 0, &[run]);
        compare.add_time(&time(&[("a", 200)]), &[("lds", &time(&[]))]);
        assert!(compare.kernels[0].modes[0].time.is_none());
        let text = compare.render(Style::default());
        assert!(!text.contains("geometric"), "{text}");
    }
}
