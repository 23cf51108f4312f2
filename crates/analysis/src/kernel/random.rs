//! Random small kernels for property tests: any mixture of jumps, branches and ends, reducible or not.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::assembly::{Listing, Op, branch_scc1, end, jump, op};
use super::body::Body;

/// A deterministic generator.
pub struct Random(SplitMix64);

impl Random {
    /// A generator whose numbers follow from `seed`.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::seed_from_u64(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }
}

const LABELS: [&str; 24] = [
    "l0", "l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8", "l9", "l10", "l11", "l12", "l13", "l14", "l15", "l16", "l17",
    "l18", "l19", "l20", "l21", "l22", "l23",
];

/// A kernel of up to `lines` lines of straight instructions, jumps and branches.
pub fn random_kernel(random: &mut Random, lines: usize) -> Body {
    random_kernel_of(random, lines, |_| op("s_straight"))
}

/// [`random_kernel`] with a choice of straight instructions.
pub fn random_kernel_of(random: &mut Random, lines: usize, mut straight: impl FnMut(&mut Random) -> Op) -> Body {
    let lines = lines.min(LABELS.len()) as u64;
    let count = 2 + random.below(lines - 2);
    let mut listing = Listing::at(0x100);
    for line in 0..count {
        listing = listing.label(LABELS[line as usize]);
        let to = LABELS[random.below(count) as usize];
        let last = line + 1 == count;
        listing = listing.push(match random.below(8) {
            0..=2 if !last => straight(random),
            3..=5 if !last => branch_scc1(to),
            6 => jump(to),
            7 if !last => straight(random),
            _ => end(),
        });
    }
    listing.kernel()
}
