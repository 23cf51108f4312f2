//! Where each counter is kept.

use rustc_hash::FxHashMap;

use super::too_few;
use crate::placement::Measure;
use crate::scavenge::registers::{Allocation, ScalarPool};
use wavetap_amdgpu::{Reg, Target};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::Refusal;

/// The place of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CounterLocation {
    /// A bit of a mask: of what a wave does once at most.
    Bit(u32),
    /// A scalar register, and another one for the high half.
    Scalar(u16, Option<u16>),
    /// What is compared when the wave ends: its number.
    AtEnd(u32),
    /// Lanes of vector registers: number of the register among those taken, and lane.
    Lane((usize, u32), Option<(usize, u32)>),
}

/// The places of all counters of a kernel.
///
/// A record has the bits first, then those in scalar registers, then what is compared when the wave ends, then the
/// lanes of each vector register.
#[derive(Debug, Default)]
pub(super) struct CounterLocations {
    by_measure: FxHashMap<Measure, CounterLocation>,
    /// The mask of those that are bits, a pair of scalar registers or one in wave32, and how many there are. They are
    /// bits 1 and up: bit 0 is set, for the wave itself.
    pub(super) bits: Option<(u16, u32)>,
    /// In the order in which a record has them: low and high half.
    pub(super) scalars: Vec<(u16, Option<u16>)>,
    /// Measures of lanes that are compared when the wave ends.
    pub(super) compared: Vec<(Measure, Measure)>,
    /// Vector registers, with how many of their lanes are used.
    pub(super) vectors: Vec<(u16, u32)>,
    lanes: u32,
}

impl CounterLocations {
    /// Finds a place for each: bits for what happens once at most, then scalar registers, first for what may repeat,
    /// then lanes of vector registers, which are below an end and not among those taken.
    ///
    /// # Errors
    /// Refused if there are too few registers.
    pub(super) fn find(
        target: Target,
        measures: &[Measure],
        allocation: &Allocation<'_>,
        free: &mut ScalarPool,
        vectors: (RegSet, u32),
    ) -> Result<CounterLocations, Refusal> {
        let mut locations = CounterLocations { lanes: target.wave_size(), ..CounterLocations::default() };
        let mut order: Vec<&Measure> = measures.iter().collect();
        order.sort_by_key(|measure| !measure.is_wide());
        let (mut taken, vectors_end) = vectors;
        let mut without = 0;
        order.retain(|measure| !locations.at_end(measure) && !locations.bit(measure, free));
        for measure in order {
            let mut vector = || {
                let register = allocation.free_vector(&taken, vectors_end)?;
                taken.insert(Reg::vector(register, 1));
                Some(register)
            };
            let location = locations.scalar(measure, free).or_else(|| locations.lane(measure, &mut vector));
            match location {
                Some(location) => drop(locations.by_measure.insert(*measure, location)),
                None => without += 1,
            }
        }
        if without > 0 { Err(too_few(measures.len(), without)) } else { Ok(locations) }
    }

    /// Has a counter compared when the wave ends, if it is such a one.
    fn at_end(&mut self, measure: &Measure) -> bool {
        let Measure::SameLanes { before, after } = *measure else { return false };
        let lanes = |point| Measure::Lanes { function: 0, point, wide: false };
        self.by_measure.insert(*measure, CounterLocation::AtEnd(self.compared.len() as u32));
        self.compared.push((before.map_or(Measure::EntryLanes, lanes), lanes(after)));
        true
    }

    /// Makes a counter a bit, if it can be one and there is a mask for it.
    fn bit(&mut self, measure: &Measure, free: &mut ScalarPool) -> bool {
        if !matches!(measure, Measure::Executions { wide: false, .. }) {
            return false;
        }
        let dwords = (self.lanes / 32) as u16;
        let mask = match self.bits {
            Some((_, used)) if used + 1 == self.lanes => None,
            Some(mask) => Some(mask),
            None => free.take(dwords, dwords).ok().map(|first| (first, 0)),
        };
        let Some((first, used)) = mask else { return false };
        self.bits = Some((first, used + 1));
        self.by_measure.insert(*measure, CounterLocation::Bit(used + 1));
        true
    }

    fn scalar(&mut self, measure: &Measure, free: &mut ScalarPool) -> Option<CounterLocation> {
        let mut attempt = free.clone();
        let low = attempt.take(1, 1).ok()?;
        let high = if measure.is_wide() { Some(attempt.take(1, 1).ok()?) } else { None };
        *free = attempt;
        self.scalars.push((low, high));
        Some(CounterLocation::Scalar(low, high))
    }

    /// Lanes; `vector` is asked for a register when those at hand are full.
    fn lane(&mut self, measure: &Measure, vector: &mut impl FnMut() -> Option<u16>) -> Option<CounterLocation> {
        let low = self.take_lane(vector)?;
        let high = if measure.is_wide() { Some(self.take_lane(vector)?) } else { None };
        Some(CounterLocation::Lane(low, high))
    }

    fn take_lane(&mut self, vector: &mut impl FnMut() -> Option<u16>) -> Option<(usize, u32)> {
        if self.vectors.last().is_none_or(|(_, used)| *used == self.lanes) {
            self.vectors.push((vector()?, 0));
        }
        let number = self.vectors.len() - 1;
        let (_, used) = self.vectors.last_mut()?;
        *used += 1;
        Some((number, *used - 1))
    }

    /// The place of a counter.
    pub(super) fn of(&self, measure: &Measure) -> Option<CounterLocation> {
        self.by_measure.get(measure).copied()
    }

    /// How many counters a record has.
    pub(super) fn kept(&self) -> u32 {
        self.first_lane() + self.vectors.iter().map(|(_, used)| used).sum::<u32>()
    }

    /// The number of the first counter in a lane.
    fn first_lane(&self) -> u32 {
        self.bit_count() + (self.scalars.len() + self.compared.len()) as u32
    }

    /// How many counters are bits.
    pub(super) fn bit_count(&self) -> u32 {
        self.bits.map_or(0, |(_, count)| count)
    }

    /// The counters of a record that are those of a measure: the number of one, or of two that are its halves.
    pub(super) fn counters(&self, measure: &Measure) -> Option<(u32, Option<u32>)> {
        let first_lane = self.first_lane();
        // All but the last register have all their lanes in use.
        let lane = |(register, lane): (usize, u32)| first_lane + register as u32 * self.lanes + lane;
        match self.of(measure)? {
            CounterLocation::Bit(bit) => Some((bit - 1, None)),
            CounterLocation::AtEnd(number) => Some((self.bit_count() + self.scalars.len() as u32 + number, None)),
            CounterLocation::Scalar(low, _) => {
                let number = self.scalars.iter().position(|(register, _)| *register == low)?;
                Some((self.bit_count() + number as u32, None))
            }
            CounterLocation::Lane(low, high) => Some((lane(low), high.map(lane))),
        }
    }

    /// The scalar registers that begin with 0.
    pub(super) fn registers(&self) -> impl Iterator<Item = u16> + '_ {
        self.scalars.iter().flat_map(|(low, high)| std::iter::once(*low).chain(*high))
    }

    /// One more than the highest vector register.
    pub(super) fn vectors_end(&self) -> u32 {
        self.vectors.iter().map(|(register, _)| u32::from(*register) + 1).max().unwrap_or(0)
    }
}
