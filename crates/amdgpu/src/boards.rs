//! Boards: what a device of a target has at most. `isa-tables/boards.yaml` has them with their sources.
//!
//! Numbers of launches and roofs are about a board, not a target: the same code runs on boards of different sizes. They
//! are peaks, so that what follows from them is a least time, never a prediction.

use super::target::Target;
use super::vocabulary::MachineFact;

include!(concat!(env!("OUT_DIR"), "/boards.rs"));

/// A board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Board {
    /// Its name on the command line: `mi210`.
    pub name: &'static str,
    /// Its maker's name.
    pub title: &'static str,
    /// The processor.
    pub target: &'static str,
    /// Compute units of one device as HIP shows it.
    pub compute_units: u32,
    /// Peak clock.
    pub clock_mhz: u32,
    /// Operations a cycle of a compute unit by vector instructions, by the numbers that they are on.
    pub vector: &'static [(&'static str, u32)],
    /// The same by matrix instructions.
    pub matrix: &'static [(&'static str, u32)],
    /// Bytes a cycle of the LDS of a compute unit.
    pub lds_bytes: u32,
    /// Bytes a cycle of the vector L1 of a compute unit.
    pub l1_bytes: u32,
    /// Bytes a cycle of L2, of the whole device, where a source says so.
    pub l2_bytes: Option<u32>,
    /// Capacity of L2 of the whole device in MiB.
    pub l2_mib: u32,
    /// Capacity of the MALL (Infinity Cache) in MiB, where there is one.
    pub mall_mib: Option<u32>,
    /// Its peak bandwidth in GB/s (10⁹ bytes a second), where that is published.
    pub mall_gbs: Option<u32>,
    /// Peak bandwidth of memory in GB/s.
    pub memory_gbs: u32,
    /// Percent of these peaks that micro-benchmarks reach, by resource, where that is published.
    pub reached: &'static [(&'static str, u32)],
    /// Where the numbers are from: the sources that `isa-tables/boards.yaml` lists.
    pub source: &'static str,
}

impl Board {
    /// All of them; the first one of a target is the one that is meant where none is named.
    #[must_use]
    pub fn all() -> &'static [Board] {
        &BOARDS
    }

    /// The board of this name.
    ///
    /// ```
    /// use wavetap_amdgpu::{Board, Target};
    /// let board = Board::by_name("mi250x").unwrap();
    /// assert_eq!((board.target, board.compute_units), ("gfx90a", 110));
    /// let usual = Board::of_target(Target::by_name("gfx90a").unwrap()).unwrap();
    /// assert_eq!(usual.name, "mi210");
    /// ```
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Board> {
        BOARDS.iter().find(|board| board.name == name)
    }

    /// The board that is meant where a target is all that is known.
    #[must_use]
    pub fn of_target(target: Target) -> Option<&'static Board> {
        BOARDS.iter().find(|board| board.target == target.name())
    }

    /// A number of the machine around the instructions as this board has it: that of its target, which is its usual
    /// board's, unless the two boards differ. What is beyond L2 does not run by the shader clock: where that is
    /// another, bandwidths and latencies in its cycles are.
    ///
    /// ```
    /// use wavetap_amdgpu::{Board, MachineFact};
    /// let board = Board::by_name("mi300a").unwrap();
    /// assert_eq!([MachineFact::ComputeUnits, MachineFact::L2Caches].map(|fact| board.machine(fact)), [228, 6]);
    /// ```
    #[must_use]
    pub fn machine(&self, fact: MachineFact) -> u32 {
        let Some(target) = Target::by_name(self.target) else { return 0 };
        let fact_of_target = |fact| target.machine(fact).typical;
        let own = fact_of_target(fact);
        let Some(usual) = Board::of_target(target) else { return own };
        let scaled = |by: f64| (f64::from(own) * by).round() as u32;
        let clock = f64::from(self.clock_mhz) / f64::from(usual.clock_mhz);
        match fact {
            MachineFact::ComputeUnits => self.compute_units,
            MachineFact::L2Caches if own > 1 => {
                (u64::from(own) * u64::from(self.l2_mib) / u64::from(usual.l2_mib.max(1))).max(1) as u32
            }
            MachineFact::MallBytes => match (self.mall_mib, usual.mall_mib) {
                (Some(mib), Some(usual)) if mib != usual => scaled(f64::from(mib) / f64::from(usual)),
                _ => own,
            },
            MachineFact::MemoryBandwidth => scaled(self.memory_bytes() / usual.memory_bytes()),
            MachineFact::MallBandwidth => scaled(1.0 / clock),
            MachineFact::MallHit | MachineFact::Memory => scaled(clock),
            _ => own,
        }
    }

    /// Bytes of memory a cycle of the shader clock.
    #[must_use]
    pub fn memory_bytes(&self) -> f64 {
        f64::from(self.memory_gbs) * 1e3 / f64::from(self.clock_mhz)
    }

    /// Microseconds of so many cycles at the peak clock.
    #[must_use]
    pub fn microseconds(&self, cycles: f64) -> f64 {
        cycles / f64::from(self.clock_mhz)
    }

    /// Percent of its peak that micro-benchmarks reach of a resource, where that is published.
    #[must_use]
    pub fn reached(&self, resource: &str) -> Option<u32> {
        self.reached.iter().find(|(name, _)| *name == resource).map(|(_, percent)| *percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The timing model and the boards are of the same machines, where both say something.
    #[test]
    fn the_usual_board_of_a_target_is_the_machine_of_the_timing_model() {
        for board in BOARDS {
            let target = Target::by_name(board.target).unwrap();
            let units = target.machine(MachineFact::ComputeUnits);
            assert!((units.min..=units.max).contains(&board.compute_units), "{}", board.name);
            let simds = target.simds_per_cu();
            for (fact, number) in [
                (MachineFact::MatrixF64, "f64"),
                (MachineFact::MatrixF32, "f32"),
                (MachineFact::MatrixXf32, "xf32"),
                (MachineFact::MatrixF16, "f16"),
                (MachineFact::MatrixBf16, "bf16"),
                (MachineFact::MatrixI8, "i8"),
            ] {
                // What a target has no instructions for, the model may have a rate of.
                let Some((_, rate)) = board.matrix.iter().find(|(name, _)| *name == number) else { continue };
                assert_eq!(target.machine(fact).typical * simds, *rate, "{} {number}", board.name);
            }
            if Board::of_target(target) == Some(&board) {
                for fact in MachineFact::ALL {
                    assert_eq!(board.machine(fact), target.machine(fact).typical, "{} {fact:?}", board.name);
                }
                assert_eq!(units.typical, board.compute_units, "{}", board.name);
                assert!(f64::from(target.machine(MachineFact::MemoryBandwidth).typical) <= board.memory_bytes() * 1.05);
            }
            let bytes = board.machine(MachineFact::MemoryBandwidth);
            assert!(f64::from(bytes) <= board.memory_bytes() * 1.05, "{} {bytes}", board.name);
            assert!(board.reached.iter().all(|(_, percent)| (1..=100).contains(percent)), "{}", board.name);
        }
    }
}
