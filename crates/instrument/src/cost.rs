//! What inserted code is predicted to cost.
//!
//! An estimate to compare counter modes of one kernel with: instructions by the target's latency table, blocks by how
//! deep in loops they are. Modelled time (`wavetap compare --timing`) is what a run takes.

use wavetap_amdgpu::{Inst, Latency, MachineFact, Target};
use wavetap_analysis::kernel::edit::{Item, Snippet};

/// Cycles that inserted code takes of a wave, predicted, where a SIMD holds so many waves; each snippet with how often
/// it runs.
pub(crate) fn added_cycles<'s>(
    target: Target,
    waves_per_simd: u32,
    snippets: impl IntoIterator<Item = (f64, &'s Snippet)>,
) -> u64 {
    let costs = CycleCosts { target, waves: waves_per_simd.max(1) };
    snippets.into_iter().map(|(times, snippet)| times * costs.snippet(snippet)).sum::<f64>().round() as u64
}

struct CycleCosts {
    target: Target,
    waves: u32,
}

impl CycleCosts {
    fn snippet(&self, snippet: &Snippet) -> f64 {
        // What a wait has to wait for: the slowest of what the snippet itself loads.
        let mut outstanding = 0.0_f64;
        let mut cycles = 0.0;
        let mut is_aside = false;
        for item in &snippet.items {
            is_aside = match item {
                Item::Aside => true,
                Item::AsideEnd => false,
                _ => is_aside,
            };
            match item {
                // Seldom executed.
                _ if is_aside => {}
                Item::Inst(inst) => {
                    if inst.variant.latency == Latency::Wait {
                        cycles += std::mem::take(&mut outstanding);
                    } else if self.is_memory(inst) && inst.writes().next().is_some() {
                        outstanding = outstanding.max(self.latency(inst.variant.latency));
                    }
                    cycles += self.instruction(inst);
                }
                Item::Label(_) | Item::Aside | Item::AsideEnd => {}
                Item::Branch { .. } => cycles += self.interval() + self.branch(),
                // Three scalar instructions.
                Item::Address { .. } => cycles += 3.0 * self.interval().max(self.latency(Latency::Salu)),
            }
        }
        cycles
    }

    /// Cycles of an instruction for whose result nothing waits, or at once.
    fn instruction(&self, inst: &Inst) -> f64 {
        let class = inst.variant.latency;
        match class {
            // Other waves of the SIMD run meanwhile.
            _ if self.is_memory(inst) => self.interval() + self.latency(class) / f64::from(self.waves),
            Latency::Branch => self.interval() + self.branch(),
            _ => self.interval().max(self.latency(class)),
        }
    }

    fn is_memory(&self, inst: &Inst) -> bool {
        matches!(inst.variant.latency, Latency::Smem | Latency::Lds | Latency::Vmem)
    }

    /// A branch that is not taken, as those of inserted code mostly are.
    fn branch(&self) -> f64 {
        f64::from(self.target.latency(Latency::Branch).min)
    }

    fn latency(&self, class: Latency) -> f64 {
        f64::from(self.target.latency(class).typical)
    }

    fn interval(&self) -> f64 {
        f64::from(self.target.machine(MachineFact::IssueInterval).typical)
    }
}
