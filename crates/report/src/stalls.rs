//! Where waves stand in the timing model: what ranks waits where time was modelled.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Kernel, Report};
use crate::slice::Chain;
use wavetap_profile::map::Source;
use wavetap_profile::time::{InstructionCycles, KernelTime};

/// Cycles that the waves of a kernel stood at its instructions.
pub(crate) struct Stalls<'t> {
    /// Those at which some stood, by address.
    places: BTreeMap<u64, &'t InstructionCycles>,
    all: u64,
}

/// Cycles at one instruction without those of its issue.
fn stalled(instruction: &InstructionCycles) -> u64 {
    instruction.modelled_stalled.values().fold(0, |sum, cycles| sum.saturating_add(*cycles))
}

impl<'t> Stalls<'t> {
    /// None where no time of the kernel was modelled, or no wave ever stood.
    pub(crate) fn of(report: &'t Report, kernel: &Kernel) -> Option<Stalls<'t>> {
        let is_it = |time: &&KernelTime| time.object == kernel.object && time.name == kernel.name;
        Stalls::of_time(report.time.as_ref()?.kernels.iter().find(is_it)?)
    }

    /// The same of a kernel's time.
    pub(crate) fn of_time(time: &'t KernelTime) -> Option<Stalls<'t>> {
        let places: BTreeMap<u64, &InstructionCycles> =
            time.instructions.iter().filter(|each| stalled(each) > 0).map(|each| (each.address, each)).collect();
        let all = places.values().fold(0_u64, |sum, each| sum.saturating_add(stalled(each)));
        (all > 0).then_some(Stalls { places, all })
    }

    /// Cycles at an address.
    pub(crate) fn cycles(&self, address: u64) -> u64 {
        self.places.get(&address).map_or(0, |place| stalled(place))
    }

    /// So many cycles as a part of all, 0 to 1.
    pub(crate) fn share(&self, cycles: u64) -> f64 {
        cycles as f64 / self.all as f64
    }

    /// Why waves stood there longest, as rocprofiler-sdk calls it.
    pub(crate) fn reason(&self, address: u64) -> Option<&'t str> {
        let reasons = &self.places.get(&address)?.modelled_stalled;
        reasons.iter().max_by_key(|(_, cycles)| **cycles).map(|(reason, _)| reason.as_str())
    }

    /// The instructions, the one at which waves stood longest first.
    pub(crate) fn in_order(&self) -> Vec<&'t InstructionCycles> {
        let mut places: Vec<&InstructionCycles> = self.places.values().copied().collect();
        places.sort_by_key(|place| (Reverse(stalled(place)), place.address));
        places
    }

    /// The source line at which waves stood longest, with the cycles and the address of the instruction of the line
    /// that has most of them.
    pub(crate) fn hottest_line(&self) -> Option<(&'t Source, u64, u64)> {
        let mut lines: BTreeMap<(&str, u32), (u64, &InstructionCycles)> = BTreeMap::new();
        for place in self.in_order() {
            let Some(source) = place.source.as_ref().filter(|source| source.line > 0) else { continue };
            let (cycles, _) = lines.entry((&source.file, source.line)).or_insert((0, place));
            *cycles = cycles.saturating_add(stalled(place));
        }
        let (cycles, place) = lines.into_values().max_by_key(|(cycles, place)| (*cycles, Reverse(place.address)))?;
        Some((place.source.as_ref()?, cycles, place.address))
    }
}

/// The predicted causes of the wait at an address, the largest first.
pub(crate) fn causes(chains: &[Chain], address: u64) -> impl Iterator<Item = &Chain> {
    chains.iter().filter(move |chain| chain.address == address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::time::MemoryTime;

    /// An instruction of a line with so many cycles of issue and of stalls.
    fn instruction(address: u64, line: u32, issued: u64, stalls: &[(&str, u64)]) -> InstructionCycles {
        InstructionCycles {
            address,
            instruction: "s_waitcnt vmcnt(0)".to_owned(),
            source: Some(Source { file: "k.hip".to_owned(), line }),
            executions: 1,
            modelled_issued: issued,
            modelled_stalled: stalls.iter().map(|(reason, cycles)| ((*reason).to_owned(), *cycles)).collect(),
            modelled_waits_for: Vec::new(),
            modelled_vector_alu: 0,
            lines: 0,
            modelled_lds_conflict_cycles: 0,
        }
    }

    fn time(instructions: Vec<InstructionCycles>) -> KernelTime {
        KernelTime {
            name: "k".to_owned(),
            demangled: "k()".to_owned(),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            waves: 1,
            most_waves_per_simd: 1,
            modelled_cycles: 100,
            modelled_wave_cycles: 100,
            modelled_added_cycles: 0,
            dispatches: Vec::new(),
            memory: MemoryTime::default(),
            traced: None,
            resources: Vec::new(),
            instructions,
        }
    }

    #[test]
    fn lines_and_instructions_are_ranked_by_stalls_alone() {
        // 40 cycles of issue are no stall. Line 7 has 20 + 15, line 9 has 30 at one instruction.
        let all = vec![
            instruction(0, 5, 40, &[]),
            instruction(4, 7, 1, &[("WAITCNT", 15), ("ARBITER_NOT_WIN", 5)]),
            instruction(8, 7, 1, &[("WAITCNT", 15)]),
            instruction(12, 9, 1, &[("WAITCNT", 30)]),
        ];
        let time = time(all);
        let stalls = Stalls::of_time(&time).expect("waves stood");
        assert_eq!(stalls.in_order().iter().map(|each| each.address).collect::<Vec<_>>(), [12, 4, 8]);
        let (source, cycles, address) = stalls.hottest_line().expect("lines are known");
        assert_eq!((source.line, cycles, address), (7, 35, 4));
        assert_eq!((stalls.cycles(4), stalls.reason(4), stalls.cycles(0)), (20, Some("WAITCNT"), 0));
        assert!((stalls.share(13) - 0.2).abs() < 1e-9);
        assert!(
            Stalls::of_time(&KernelTime { instructions: vec![instruction(0, 5, 40, &[])], ..time.clone() }).is_none()
        );
    }
}
