//! Sets of registers.

use std::ops::Range;

use crate::solver::Lattice;
use wavetap_amdgpu::{Reg, RegFile, scalar};

/// A set of 32-bit registers: the scalar ones with operand codes below 128 (`s0..`, FLAT_SCRATCH, VCC, ttmp, M0, EXEC),
/// SCC, MODE, `v0..v1023` and `a0..a255`.
///
/// The read-only `src_*` operands are no registers, except that `src_vccz` and `src_execz` stand for VCC and EXEC, and
/// `src_lds_direct` for M0. The null register is none: it reads 0, and what is written is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegSet([u64; WORDS]);

const WORDS: usize = 23;
/// Positions: 0..128 scalar by code, then SCC and MODE in a word of their own, then VGPRs, then AGPRs.
const SCC_BIT: usize = 128;
const MODE_BIT: usize = 129;
const VECTOR: usize = 192;
const ACCUM: usize = VECTOR + VECTORS;
const END: usize = ACCUM + 256;
/// Vector registers a wave may have (gfx1250).
const VECTORS: usize = 1024;

impl RegSet {
    /// The empty set.
    pub const EMPTY: RegSet = RegSet([0; WORDS]);

    /// Every register there is.
    pub const ALL: RegSet = {
        let mut words = [u64::MAX; WORDS];
        words[1] &= !(1 << (scalar::NULL - 64));
        words[2] = 3;
        RegSet(words)
    };

    /// How many registers there may be: positions are below this.
    pub const POSITIONS: usize = END;

    /// Where a register run lies in the bits: each register has its own position.
    #[inline]
    pub fn positions(reg: Reg) -> Range<usize> {
        let (first, dwords) = (usize::from(reg.first), usize::from(reg.dwords));
        let (start, limit) = match reg.file {
            RegFile::Vector => (VECTOR + first, ACCUM),
            RegFile::Accum => (ACCUM + first, END),
            RegFile::Scalar if reg.first < scalar::NULL => (first, SCC_BIT),
            RegFile::Scalar => return Self::special(reg),
        };
        start.min(limit)..(start + dwords).min(limit)
    }

    /// [`RegSet::positions`] of scalar registers from the null register on.
    fn special(reg: Reg) -> Range<usize> {
        let of = |first: u16, count: usize| usize::from(first)..usize::from(first) + count;
        match reg.first {
            scalar::SCC => SCC_BIT..SCC_BIT + 1,
            scalar::MODE => MODE_BIT..MODE_BIT + 1,
            scalar::VCCZ => of(scalar::VCC, 2),
            scalar::EXECZ => of(scalar::EXEC, 2),
            scalar::LDS_DIRECT => of(scalar::M0, 1),
            scalar::NULL => 0..0,
            first => {
                let Range { start, end } = of(first, reg.dwords.into());
                start.min(SCC_BIT)..end.min(SCC_BIT)
            }
        }
    }

    /// Calls `each` with the words that a register run lies in and the bits of it, as [`RegSet::positions`], until it
    /// says that this is enough.
    #[inline]
    fn words(reg: Reg, mut each: impl FnMut(usize, u64) -> bool) {
        let Range { mut start, end } = Self::positions(reg);
        // Nearly always there is one.
        while start < end {
            let first = start % 64;
            let count = (end - start).min(64 - first);
            if !each(start / 64, u64::MAX >> (64 - count) << first) {
                return;
            }
            start += count;
        }
    }

    /// The register at a position.
    pub fn reg_at(bit: usize) -> Reg {
        match bit {
            SCC_BIT => Reg::SCC,
            MODE_BIT => Reg::scalar(scalar::MODE, 1),
            ACCUM.. => Reg::accum((bit - ACCUM) as u16, 1),
            VECTOR.. => Reg::vector((bit - VECTOR) as u16, 1),
            _ => Reg::scalar(bit as u16, 1),
        }
    }

    /// Adds all registers of a run.
    #[inline]
    pub fn insert(&mut self, reg: Reg) {
        Self::words(reg, |word, mask| {
            self.0[word] |= mask;
            true
        });
    }

    /// Removes all registers of a run.
    #[inline]
    pub fn remove(&mut self, reg: Reg) {
        Self::words(reg, |word, mask| {
            self.0[word] &= !mask;
            true
        });
    }

    /// Whether *all* registers of a run are in the set.
    #[must_use]
    #[inline]
    pub fn contains(&self, reg: Reg) -> bool {
        let mut all = true;
        Self::words(reg, |word, mask| {
            all = self.0[word] & mask == mask;
            all
        });
        all
    }

    /// Whether *any* register of a run is in the set.
    #[must_use]
    #[inline]
    pub fn overlaps(&self, reg: Reg) -> bool {
        let mut any = false;
        Self::words(reg, |word, mask| {
            any = self.0[word] & mask != 0;
            !any
        });
        any
    }

    /// The scalar registers of the set as a mask by operand code, without SCC and MODE.
    pub fn scalar_codes(&self) -> u128 {
        u128::from(self.0[1]) << 64 | u128::from(self.0[0])
    }

    /// Removes the scalar registers that are not in a mask by operand code. SCC and MODE stay.
    pub fn keep_scalar_codes(&mut self, codes: u128) {
        self.0[0] &= codes as u64;
        self.0[1] &= (codes >> 64) as u64;
    }

    /// Whether the sets share a register.
    #[must_use]
    pub fn intersects(&self, other: &RegSet) -> bool {
        // As in `is_subset`, without a way out: whole vectors of words at once are quicker than the first difference.
        self.0.iter().zip(&other.0).fold(0, |common, (a, b)| common | a & b) != 0
    }

    /// Whether the sets share a vector or AGPR.
    #[must_use]
    pub fn shares_vectors(&self, other: &RegSet) -> bool {
        let first = VECTOR / 64;
        self.0[first..].iter().zip(&other.0[first..]).any(|(a, b)| a & b != 0)
    }

    /// Whether every register of this set is in the other.
    #[must_use]
    pub fn is_subset(&self, other: &RegSet) -> bool {
        self.0.iter().zip(&other.0).fold(0, |missing, (a, b)| missing | a & !b) == 0
    }

    /// Whether there is no register in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// How many registers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Registers in either set.
    #[must_use]
    pub fn union(mut self, other: RegSet) -> RegSet {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a |= b);
        self
    }

    /// Registers in both sets.
    #[must_use]
    pub fn intersection(mut self, other: RegSet) -> RegSet {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a &= b);
        self
    }

    /// Registers of this set that are not in the other.
    #[must_use]
    pub fn difference(mut self, other: RegSet) -> RegSet {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a &= !b);
        self
    }

    /// [`RegSet::union`] in place: a set is large enough that copies of it cost more than what is done with them.
    #[inline]
    pub fn add_all(&mut self, other: &RegSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// [`RegSet::difference`] in place.
    #[inline]
    pub fn remove_all(&mut self, other: &RegSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
    }

    /// [`RegSet::intersection`] in place.
    #[inline]
    pub fn keep_all(&mut self, other: &RegSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
    }

    /// Adds the vector and AGPRs of another set.
    #[inline]
    pub(crate) fn add_vectors(&mut self, other: &RegSet) {
        let first = VECTOR / 64;
        self.0[first..].iter_mut().zip(&other.0[first..]).for_each(|(a, b)| *a |= b);
    }

    /// [`RegSet::iter`] without vector and AGPRs.
    pub fn scalars(&self) -> impl Iterator<Item = Reg> + use<> {
        let mut words = [0; VECTOR / 64];
        words.copy_from_slice(&self.0[..VECTOR / 64]);
        Self::registers(words)
    }

    /// The vector and AGPRs of the set.
    #[must_use]
    pub fn vectors(mut self) -> RegSet {
        self.0[..VECTOR / 64].fill(0);
        self
    }

    /// The registers one by one, each a run of one: scalar ones ascending, SCC, MODE, vector, accumulation.
    pub fn iter(&self) -> impl Iterator<Item = Reg> + use<> {
        Self::registers(self.0)
    }

    /// The registers of the first words of a set.
    fn registers<const N: usize>(words: [u64; N]) -> impl Iterator<Item = Reg> {
        words.into_iter().enumerate().flat_map(|(index, mut word)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                word &= word.checked_sub(1)?;
                Some(Self::reg_at(64 * index + bit))
            })
        })
    }

    /// The highest `sN` in the set, up to `s101` (on some targets the registers after it have names of their own).
    #[must_use]
    pub fn highest_sgpr(&self) -> Option<u16> {
        self.highest_sgpr_below(scalar::FLAT_SCRATCH)
    }

    /// The highest `sN` in the set with N below `count`: as many as a target names
    /// ([`wavetap_amdgpu::Target::addressable_sgprs`]).
    #[must_use]
    pub fn highest_sgpr_below(&self, count: u16) -> Option<u16> {
        (0..count).rev().find(|&code| self.contains(Reg::scalar(code, 1)))
    }

    /// The highest `vN` in the set.
    #[must_use]
    pub fn highest_vgpr(&self) -> Option<u16> {
        (0..VECTORS as u16).rev().find(|&number| self.contains(Reg::vector(number, 1)))
    }

    /// The highest `aN` in the set.
    #[must_use]
    pub fn highest_agpr(&self) -> Option<u16> {
        (0..256).rev().find(|&number| self.contains(Reg::accum(number, 1)))
    }
}

/// The union.
impl Lattice for RegSet {
    fn join(&mut self, other: &RegSet) -> bool {
        let changed = !other.is_subset(self);
        if changed {
            self.add_all(other);
        }
        changed
    }
}

impl Default for RegSet {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl FromIterator<Reg> for RegSet {
    fn from_iter<I: IntoIterator<Item = Reg>>(regs: I) -> Self {
        let mut set = RegSet::EMPTY;
        regs.into_iter().for_each(|reg| set.insert(reg));
        set
    }
}

impl std::fmt::Debug for RegSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("{")?;
        for (index, reg) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { " " };
            match (reg.file, reg.first) {
                (RegFile::Vector, number) => write!(f, "{separator}v{number}")?,
                (RegFile::Accum, number) => write!(f, "{separator}a{number}")?,
                (RegFile::Scalar, scalar::SCC) => write!(f, "{separator}scc")?,
                (RegFile::Scalar, scalar::MODE) => write!(f, "{separator}mode")?,
                (RegFile::Scalar, scalar::M0) => write!(f, "{separator}m0")?,
                (RegFile::Scalar, scalar::VCC) => write!(f, "{separator}vcc_lo")?,
                (RegFile::Scalar, 107) => write!(f, "{separator}vcc_hi")?,
                (RegFile::Scalar, scalar::EXEC) => write!(f, "{separator}exec_lo")?,
                (RegFile::Scalar, 127) => write!(f, "{separator}exec_hi")?,
                (RegFile::Scalar, code) => write!(f, "{separator}s{code}")?,
            }
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kernel::random::Random;

    fn random_reg(random: &mut Random) -> Reg {
        let dwords = 1 + random.below(4) as u8;
        match random.below(4) {
            0 => Reg::scalar(random.below(121) as u16, dwords),
            1 => Reg::vector(random.below(1021) as u16, dwords),
            2 => Reg::accum(random.below(253) as u16, dwords),
            _ => [Reg::SCC, Reg::M0, Reg::VCC, Reg::EXEC, Reg::scalar(scalar::MODE, 1)][random.below(5) as usize],
        }
    }

    fn singles(reg: Reg) -> impl Iterator<Item = Reg> {
        (0..u16::from(reg.dwords)).map(move |index| Reg { first: reg.first + index, dwords: 1, ..reg })
    }

    #[test]
    fn behaves_like_a_set_of_single_registers() {
        let mut random = Random::new(5);
        let (mut set, mut model) = (RegSet::EMPTY, BTreeSet::new());
        let (mut other, mut other_model) = (RegSet::EMPTY, BTreeSet::new());
        for _ in 0..5000 {
            let reg = random_reg(&mut random);
            assert_eq!(set.contains(reg), singles(reg).all(|single| model.contains(&single)));
            assert_eq!(set.overlaps(reg), singles(reg).any(|single| model.contains(&single)));
            match random.below(4) {
                0 | 1 => {
                    set.insert(reg);
                    model.extend(singles(reg));
                }
                2 => {
                    set.remove(reg);
                    singles(reg).for_each(|single| assert!(model.remove(&single) || !model.contains(&single)));
                }
                _ => {
                    other.insert(reg);
                    other_model.extend(singles(reg));
                }
            }
            let as_set = |set: RegSet| set.iter().collect::<BTreeSet<_>>();
            assert_eq!(as_set(set), model);
            assert_eq!(set.len(), model.len());
            assert_eq!(as_set(set.union(other)), model.union(&other_model).copied().collect());
            assert_eq!(as_set(set.intersection(other)), model.intersection(&other_model).copied().collect());
            assert_eq!(as_set(set.difference(other)), model.difference(&other_model).copied().collect());
            assert_eq!(set.intersects(&other), !model.is_disjoint(&other_model));
            assert_eq!(set.is_subset(&other), model.is_subset(&other_model));
        }
    }

    #[test]
    fn named_sources_stand_for_their_registers() {
        let of = |code| RegSet::from_iter([Reg::scalar(code, 1)]);
        assert_eq!(of(scalar::VCCZ), RegSet::from_iter([Reg::VCC]));
        assert_eq!(of(scalar::EXECZ), RegSet::from_iter([Reg::EXEC]));
        assert_eq!(of(scalar::LDS_DIRECT), RegSet::from_iter([Reg::M0]));
        assert!(of(scalar::SHARED_BASE).is_empty());
        assert!(RegSet::from_iter([Reg::scalar(scalar::NULL, 2)]).is_empty(), "a wide null register is not EXEC");
        assert!(!RegSet::ALL.overlaps(Reg::scalar(scalar::NULL, 1)));
        assert_eq!(RegSet::ALL.len(), 127 + 2 + 1024 + 256);
        assert_eq!(RegSet::ALL.iter().count(), RegSet::ALL.len());
        let high = RegSet::from_iter([Reg::scalar(7, 2), Reg::VCC, Reg::vector(3, 1), Reg::accum(9, 2)]);
        assert_eq!((high.highest_sgpr(), high.highest_vgpr(), high.highest_agpr()), (Some(8), Some(3), Some(10)));
    }
}
