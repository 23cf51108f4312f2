//! How LDS serves the lanes of an instruction: in phases of some lanes, each phase in as many cycles as its busiest
//! bank has different words to give.
//!
//! Which lanes are in a phase and how many banks there are depends on the target, the direction and the size of what
//! each lane accesses. Sources: composable_kernel, "LDS and bank conflicts" (groups of 128-bit reads); HipKittens,
//! `analysis/paper_experiments/phases` (measured on gfx950); rocRoller, `LDSBankModel` (lanes per clock). The phases of
//! gfx10 and later are not published: theirs are those of a bank's width, and a guess. A phase without an active lane
//! costs nothing here; rocprofiler-compute's `conflicts` sample on MI250 (one active lane keeps LDS for two cycles)
//! suggests that it costs a cycle there.

use super::target::Target;

/// Bytes of a bank's word.
const WORD: u64 = 4;
/// Most lanes of a wave.
const LANES: u32 = 64;

/// What an instruction does to LDS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LdsOperation {
    /// It reads: lanes that want the same word get it together.
    Read,
    /// It writes.
    Write,
    /// It changes words: lanes that change the same one go one after the other.
    Atomic,
}

/// How the lanes of an instruction are taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LdsPhases {
    /// Banks, 4 bytes wide.
    pub banks: u32,
    /// The lanes of each phase, as masks; those beyond the wave are of no effect.
    pub lanes: &'static [u64],
}

/// What LDS does with an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LdsCycles {
    /// Cycles that it is kept.
    pub cycles: u64,
    /// Of these, because of conflicts.
    pub conflicts: u64,
    /// The most words of one bank in a phase: 1 without conflicts, 0 if no lane is active.
    pub ways: u64,
}

/// Lanes `from` to `to`.
const fn span(from: u32, to: u32) -> u64 {
    (u64::MAX >> (LANES - 1 - (to - from))) << from
}

/// Phases of lanes in a row.
const fn rows<const PHASES: usize>() -> [u64; PHASES] {
    let (mut phases, mut phase) = ([0; PHASES], 0);
    let each = LANES / PHASES as u32;
    while phase < PHASES {
        phases[phase] = span(phase as u32 * each, (phase as u32 + 1) * each - 1);
        phase += 1;
    }
    phases
}

/// Phases of the first 32 lanes, and the same of the others.
const fn twice<const HALF: usize, const PHASES: usize>(half: [u64; HALF]) -> [u64; PHASES] {
    let (mut phases, mut phase) = ([0; PHASES], 0);
    while phase < PHASES {
        phases[phase] = half[phase % HALF] << (32 * (phase / HALF));
        phase += 1;
    }
    phases
}

static ROWS_OF_32: [u64; 2] = rows();
static ROWS_OF_16: [u64; 4] = rows();
static ROWS_OF_8: [u64; 8] = rows();
/// 96- and 128-bit reads on gfx8 to gfx94x, 96-bit ones on gfx950.
static READ_128: [u64; 8] = twice([
    span(0, 3) | span(20, 23),
    span(4, 7) | span(16, 19),
    span(8, 11) | span(28, 31),
    span(12, 15) | span(24, 27),
]);
/// 128-bit reads on gfx950.
static READ_128_OF_64_BANKS: [u64; 4] =
    twice([span(0, 3) | span(12, 15) | span(20, 27), span(4, 11) | span(16, 19) | span(28, 31)]);

/// A row of a target's table: what lanes that access up to so many bytes do.
struct Row {
    bytes: u32,
    read: (u32, &'static [u64]),
    write: (u32, &'static [u64]),
}

/// `lds_phases: 0` of `targets.yaml`: gfx8, and gfx9 to gfx94x.
static GCN: [Row; 4] = [
    Row { bytes: 4, read: (32, &ROWS_OF_32), write: (32, &ROWS_OF_32) },
    Row { bytes: 8, read: (32, &ROWS_OF_16), write: (32, &ROWS_OF_16) },
    Row { bytes: 12, read: (32, &READ_128), write: (32, &ROWS_OF_8) },
    Row { bytes: 16, read: (32, &READ_128), write: (32, &ROWS_OF_8) },
];
/// `lds_phases: 1`: gfx950. Its 64 banks are there for reads of 64 and of 128 bits alone.
static GFX950: [Row; 4] = [
    Row { bytes: 4, read: (32, &ROWS_OF_32), write: (32, &ROWS_OF_32) },
    Row { bytes: 8, read: (64, &ROWS_OF_32), write: (32, &ROWS_OF_16) },
    Row { bytes: 12, read: (32, &READ_128), write: (32, &ROWS_OF_8) },
    Row { bytes: 16, read: (64, &READ_128_OF_64_BANKS), write: (32, &ROWS_OF_8) },
];
/// `lds_phases: 2`: gfx10 and later.
static RDNA: [Row; 4] = [
    Row { bytes: 4, read: (32, &ROWS_OF_32), write: (32, &ROWS_OF_32) },
    Row { bytes: 8, read: (32, &ROWS_OF_16), write: (32, &ROWS_OF_16) },
    Row { bytes: 12, read: (32, &ROWS_OF_8), write: (32, &ROWS_OF_8) },
    Row { bytes: 16, read: (32, &ROWS_OF_8), write: (32, &ROWS_OF_8) },
];

impl Target {
    /// The bits of M0 that `ds_…_addtid` adds: 16 in all ISA guides, gfx950's too; 20 on gfx1250, whose first silicon
    /// had 16 (ROCm/llvm-project pull request 2302).
    #[must_use]
    pub fn lane_address_mask(self) -> u32 {
        if self.generation() >= 1250 { 0xf_ffff } else { 0xffff }
    }

    /// The bits of M0 that are an offset in LDS where instructions add it: as many as LDS needs (CDNA3 and CDNA4 ISA
    /// guides, 9.1.9: 16 and 18).
    #[must_use]
    pub fn lds_offset_mask(self) -> u32 {
        self.lds_bytes().next_power_of_two() - 1
    }

    /// How the lanes of an LDS instruction of which each accesses `bytes` bytes are taken together. More than 16 bytes
    /// are taken as 16.
    ///
    /// ```
    /// use wavetap_amdgpu::{LdsOperation, Target};
    /// let target = Target::by_name("gfx950").unwrap();
    /// assert_eq!(target.lds_phases(LdsOperation::Read, 16).banks, 64);
    /// assert_eq!(target.lds_phases(LdsOperation::Write, 16).banks, 32);
    /// ```
    #[must_use]
    pub fn lds_phases(self, operation: LdsOperation, bytes: u32) -> LdsPhases {
        let table = match self.data.lds_phases {
            0 => &GCN,
            1 => &GFX950,
            _ => &RDNA,
        };
        let row = table.iter().find(|row| bytes <= row.bytes).unwrap_or(&table[table.len() - 1]);
        let (banks, lanes) = if operation == LdsOperation::Read { row.read } else { row.write };
        LdsPhases { banks, lanes }
    }

    /// What LDS does with an instruction whose lanes in `active` access `bytes` bytes at their addresses; none if no
    /// lane is active.
    ///
    /// # Panics
    /// If a lane is active that has no address.
    #[must_use]
    pub fn lds_cycles(self, operation: LdsOperation, bytes: u32, addresses: &[u64], active: u64) -> LdsCycles {
        let mut all = LdsCycles::default();
        if active == 0 {
            return all;
        }
        let LdsPhases { banks, lanes } = self.lds_phases(operation, bytes);
        let wave = u64::MAX >> (LANES - self.wave_size());
        let mut words: Vec<u64> = Vec::new();
        for phase in lanes.iter().filter(|phase| **phase & wave != 0) {
            words.clear();
            let mut left = phase & active;
            while left != 0 {
                let address = addresses[left.trailing_zeros() as usize];
                words.extend(address / WORD..=(address + u64::from(bytes.max(1)) - 1) / WORD);
                left &= left - 1;
            }
            words.sort_unstable();
            if operation != LdsOperation::Atomic {
                words.dedup();
            }
            let mut of_bank = [0_u64; 64];
            words.iter().for_each(|word| of_bank[(word % u64::from(banks)) as usize] += 1);
            let ways = of_bank.into_iter().max().unwrap_or(0);
            all.ways = all.ways.max(ways);
            all.cycles += ways;
            all.conflicts += ways.saturating_sub(1);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::LdsOperation::{Atomic, Read, Write};
    use super::*;

    fn target(name: &str) -> Target {
        Target::by_name(name).expect("a target")
    }

    /// Cycles and conflicts of all lanes at these places.
    fn all(name: &str, operation: LdsOperation, bytes: u32, place: impl Fn(u64) -> u64) -> (u64, u64) {
        let target = target(name);
        let addresses: Vec<u64> = (0..64).map(place).collect();
        let lanes = u64::MAX >> (64 - target.wave_size());
        let cycles = target.lds_cycles(operation, bytes, &addresses, lanes);
        (cycles.cycles, cycles.conflicts)
    }

    #[test]
    fn every_lane_is_in_one_phase() {
        for name in ["gfx803", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1201"] {
            for (operation, bytes) in
                [Read, Write, Atomic].into_iter().flat_map(|operation| (1..=16).map(move |bytes| (operation, bytes)))
            {
                let phases = target(name).lds_phases(operation, bytes).lanes;
                assert_eq!(phases.iter().fold(0, |all, phase| all | phase), u64::MAX, "{name} {operation:?} {bytes}");
                assert_eq!(
                    phases.iter().map(|phase| phase.count_ones()).sum::<u32>(),
                    64,
                    "{name} {operation:?} {bytes}"
                );
            }
        }
    }

    #[test]
    fn dwords() {
        assert_eq!(all("gfx90a", Read, 4, |lane| 4 * lane), (2, 0), "32 lanes in a cycle");
        assert_eq!(all("gfx90a", Read, 4, |lane| 8 * lane), (4, 2));
        assert_eq!(all("gfx90a", Write, 4, |lane| 128 * lane), (64, 62), "all in one bank");
        assert_eq!(all("gfx90a", Read, 4, |lane| 132 * lane), (2, 0), "a padded row");
        assert_eq!(all("gfx90a", Read, 4, |_| 0), (2, 0), "one dword for all");
        assert_eq!(all("gfx90a", Atomic, 4, |_| 0), (64, 62), "one dword that all change");
        assert_eq!(all("gfx950", Read, 4, |lane| 8 * lane), (4, 2), "32 banks for dwords there, too");
        assert_eq!(all("gfx1030", Read, 4, |lane| 8 * lane), (2, 1), "waves of 32");
    }

    /// Dwords 128 bytes apart, all in one bank, for 1 to n lanes.
    #[test]
    fn a_phase_without_active_lanes_costs_nothing() {
        let addresses: Vec<u64> = (0..64).map(|lane| 128 * lane).collect();
        let of = |name: &str, active: u64| {
            let LdsCycles { cycles, conflicts, ways } = target(name).lds_cycles(Read, 4, &addresses, active);
            (cycles, conflicts, ways)
        };
        for name in ["gfx90a", "gfx1030"] {
            assert_eq!([0b1, 0b11, 0b111].map(|active| of(name, active)), [(1, 0, 1), (2, 1, 2), (3, 2, 3)], "{name}");
            assert_eq!(of(name, 0), (0, 0, 0), "{name}");
        }
        assert_eq!(of("gfx90a", 1 | 1 << 32), (2, 0, 1), "a lane in each half");
    }

    #[test]
    fn wide_accesses_go_in_phases() {
        for (name, eight, sixteen) in [("gfx90a", 4, 8), ("gfx942", 4, 8), ("gfx950", 2, 4), ("gfx1100", 2, 4)] {
            assert_eq!(all(name, Read, 8, |lane| 8 * lane), (eight, 0), "{name}");
            assert_eq!(all(name, Read, 16, |lane| 16 * lane), (sixteen, 0), "{name}");
        }
        assert_eq!(all("gfx950", Write, 8, |lane| 8 * lane), (4, 0));
        assert_eq!(all("gfx950", Write, 16, |lane| 16 * lane), (8, 0));
        // Lanes 0-31 on 64 banks with 16 bytes between: 128 words of 64 banks, but 8 bytes each: two lanes for each
        // pair of banks.
        assert_eq!(all("gfx950", Read, 8, |lane| 16 * lane), (4, 2));
        assert_eq!(all("gfx950", Write, 8, |lane| 16 * lane), (8, 4), "32 banks");
    }

    /// The usual read of a matrix operand: row = lane % 16, 16-byte column = lane / 16. By hand: a phase of gfx9 has
    /// two rows of four lanes, one of each column of a pair.
    #[test]
    fn rows_of_a_matrix_tile() {
        let pitch = |name: &str, pitch: u64| all(name, Read, 16, |lane| pitch * (lane % 16) + 16 * (lane / 16)).1;
        // 128 bytes are all 32 banks: four lanes of a phase want the same four.
        assert_eq!(pitch("gfx942", 128), 24);
        assert_eq!(pitch("gfx950", 128), 12);
        assert_eq!(pitch("gfx942", 144), 8);
        assert_eq!(pitch("gfx950", 144), 4);
    }
}
