//! The seeded source of everything the architecture leaves undefined.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A 64-bit generator: small, fast and the same everywhere.
#[derive(Debug, Clone)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(SplitMix64::seed_from_u64(seed ^ 0x5851_f42d_4c95_7f2d))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound` (which is at least 1).
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: u32) -> bool {
        self.below(n as usize) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    /// The numbers of Vigna's `splitmix64.c` from the state 0: a seed means the same run in every version.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut random = Random::new(0x5851_f42d_4c95_7f2d);
        assert_eq!([random.next(), random.next()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }
}
