//! Latencies by chance: what a memory operation takes where neither the tables nor the caches say.
//!
//! Each instruction has a share of hits of its own. A hit takes from the least to the usual cycles of its class, a miss
//! from there to the most. Both come from the seed, the instruction's address, the wave and how often that wave has
//! executed the instruction, and from nothing else: a run in which one operation is made faster draws the same for all
//! others.

use wavetap_amdgpu::LatencyRange;

use crate::state::random::Random;

/// Draws latencies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chance(pub u64);

impl Chance {
    /// Cycles of an operation of a class at an address: of the wave that was the `wave`-th to start, at its `nth`
    /// execution.
    pub(crate) fn cycles(self, range: LatencyRange, address: u64, wave: u64, nth: u64) -> u64 {
        const HUNDRED: usize = 100;
        let instruction = self.0 ^ address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hits = Random::new(instruction).below(HUNDRED);
        let mut random = Random::new(instruction ^ wave.wrapping_mul(0xd1b5_4a32_d192_ed03) ^ nth.rotate_left(40));
        let (from, to) =
            if random.below(HUNDRED) < hits { (range.min, range.typical) } else { (range.typical, range.max) };
        u64::from(from) + random.below(to.saturating_sub(from) as usize + 1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_within_the_range_and_differ_between_instructions() {
        let range = LatencyRange { min: 100, typical: 300, max: 2000 };
        let mean = |address: u64| (0..1000).map(|nth| Chance(7).cycles(range, address, 3, nth)).sum::<u64>() / 1000;
        let means: Vec<u64> = (0..20).map(|n| mean(0x100 + 8 * n)).collect();
        assert!(means.iter().all(|mean| (100..=2000).contains(mean)));
        assert!(means.iter().max().unwrap() - means.iter().min().unwrap() > 300, "{means:?}");
        assert_eq!(Chance(7).cycles(range, 0x100, 1, 2), Chance(7).cycles(range, 0x100, 1, 2));
        assert_ne!(mean(0x100), (0..1000).map(|nth| Chance(8).cycles(range, 0x100, 3, nth)).sum::<u64>() / 1000);
    }
}
