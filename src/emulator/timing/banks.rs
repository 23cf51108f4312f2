//! Conflicts in the banks of LDS.
//!
//! A bank gives one dword in a cycle. As many lanes as all banks together have dwords for go at once (32 lanes of 4 bytes, 16 of 8, 8 of 12 or 16); those of them that want
//! different dwords of a bank go one after the other, those that want the same dword together, unless they change it.

use super::super::core::{LANES, active};

/// Bytes of a bank's word.
const WORD: u64 = 4;

/// Cycles that LDS is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kept {
    pub cycles: u64,
    /// Of these, because of conflicts.
    pub conflicts: u64,
}

impl Kept {
    pub(super) fn add(&mut self, other: Kept) {
        self.cycles += other.cycles;
        self.conflicts += other.conflicts;
    }
}

/// Of an access of `size` bytes by the lanes in `mask`.
pub(super) fn kept(addresses: &[u64; LANES], mask: u64, size: u64, banks: u64, changes: bool) -> Kept {
    let width = size.max(WORD).next_power_of_two();
    let together = (banks * WORD / width).clamp(1, LANES as u64) as usize;
    let mut kept = Kept::default();
    for first in (0..LANES).step_by(together) {
        let group = mask & (u64::MAX >> (LANES - together)) << first;
        if group == 0 {
            continue;
        }
        let mut words: Vec<u64> = Vec::with_capacity(together * (width / WORD) as usize);
        for lane in active(group) {
            let (from, to) = (addresses[lane] / WORD, (addresses[lane] + size - 1) / WORD);
            words.extend(from..=to);
        }
        words.sort_unstable();
        if !changes {
            words.dedup();
        }
        let mut of_bank = vec![0; banks as usize];
        words.iter().for_each(|word| of_bank[(word % banks) as usize] += 1);
        let cycles = of_bank.into_iter().max().unwrap_or(1);
        kept.add(Kept { cycles, conflicts: cycles - 1 });
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stride(stride: u64, size: u64, changes: bool) -> (u64, u64) {
        let addresses = std::array::from_fn(|lane| lane as u64 * stride);
        let kept = kept(&addresses, u64::MAX, size, 32, changes);
        (kept.cycles, kept.conflicts)
    }

    #[test]
    fn dwords() {
        assert_eq!(stride(4, 4, false), (2, 0), "32 lanes in a cycle");
        assert_eq!(stride(8, 4, false), (4, 2));
        assert_eq!(stride(128, 4, false), (64, 62), "all in one bank");
        assert_eq!(stride(132, 4, false), (2, 0), "a padded row");
        assert_eq!(stride(0, 4, false), (2, 0), "one dword for all");
        assert_eq!(stride(0, 4, true), (64, 62), "one dword that all change");
    }

    #[test]
    fn wide_accesses_go_in_phases() {
        assert_eq!(stride(8, 8, false), (4, 0));
        assert_eq!(stride(16, 16, false), (8, 0));
        assert_eq!(stride(12, 12, false).0, 8);
        assert_eq!(kept(&[0; LANES], 1, 4, 32, false), Kept { cycles: 1, conflicts: 0 });
        assert_eq!(kept(&[0; LANES], 0, 4, 32, false), Kept::default());
    }
}
