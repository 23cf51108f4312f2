//! Where the lanes of a wave access memory: most often many of them at one place, or at places that follow each other.

use super::{ARCH, HALF, LANES, Row, vector_loop};

/// The places of the active lanes, as runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runs {
    mask: u64,
    /// The lane is active and at the place of the lane before it, which is active, too.
    same: u64,
    /// It is active and at the place after that of the lane before it, which is active, too.
    following: u64,
}

/// What the lanes of a run have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunKind {
    /// They are at one place.
    Same,
    /// They are at places that follow each other.
    Following,
    /// Nothing.
    Scattered,
}

/// Lanes one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub first: usize,
    pub count: usize,
    pub kind: RunKind,
}

impl Run {
    pub(crate) fn lanes(self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }
}

struct Flags<'a>(&'a [u32], &'a [u32], u32, &'a mut [u8]);

vector_loop!(() Flags<'_>, (), |this| {
    let Flags(places, before, size, flags) = this;
    for (flag, (&place, &before)) in flags.iter_mut().zip(places.iter().zip(before)) {
        *flag = u8::from(place == before) | u8::from(place == before.wrapping_add(size)) << 1;
    }
});

impl Runs {
    /// The places of the active lanes in a mask, each with so many bytes: not 0.
    pub(crate) fn of(places: &Row, size: u32, mask: u64) -> Runs {
        let mut before = [0; LANES];
        before[1..].copy_from_slice(&places[..LANES - 1]);
        let mut flags = [0; LANES];
        for half in 0..LANES / HALF {
            let lanes = half * HALF..(half + 1) * HALF;
            ARCH.dispatch(Flags(&places[lanes.clone()], &before[lanes.clone()], size, &mut flags[lanes]));
        }
        let (mut same, mut following) = (0, 0);
        for (n, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
            let eight = u64::from_le_bytes(*eight);
            same |= lowest_bits(eight) << (8 * n);
            following |= lowest_bits(eight >> 1) << (8 * n);
        }
        // The first lane follows none.
        let continued = mask & mask << 1;
        Runs { mask, same: same & continued, following: following & continued }
    }

    /// All lanes of a wave at places that follow each other.
    pub(crate) fn following(lanes: u64) -> Runs {
        Runs { mask: lanes, same: 0, following: lanes & !1 }
    }

    /// The lanes from the first active one on at its place.
    pub(crate) fn same(mask: u64) -> Runs {
        let mask = u64::MAX.checked_shl(mask.trailing_zeros()).unwrap_or(0);
        Runs { mask, same: mask & mask << 1, following: 0 }
    }

    /// Whether all lanes of the wave are active and at places that follow each other.
    pub(crate) fn is_one(&self, lanes: u64) -> bool {
        self.mask == lanes && self.following == lanes & !1
    }
}

/// The lowest bits of eight bytes.
fn lowest_bits(bytes: u64) -> u64 {
    // Multiplication brings them together in the highest byte.
    (bytes & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

impl Iterator for Runs {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        if self.mask == 0 {
            return None;
        }
        let first = self.mask.trailing_zeros() as usize;
        let after = |bits: u64| (bits >> first >> 1).trailing_ones() as usize;
        let (equal, rising) = (after(self.same), after(self.following));
        let (count, kind) = if equal > 0 {
            (1 + equal, RunKind::Same)
        } else if rising > 0 {
            (1 + rising, RunKind::Following)
        } else {
            // Up to the lane before one that begins something else.
            let others = (self.same | self.following) >> 1 | !self.mask;
            (((others >> first).trailing_zeros() as usize).min(LANES - first), RunKind::Scattered)
        };
        self.mask &= u64::MAX.checked_shl((first + count) as u32).unwrap_or(0);
        Some(Run { first, count, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::RunKind::{Following, Same, Scattered};

    fn runs(places: &Row, mask: u64) -> Vec<(usize, usize, RunKind)> {
        Runs::of(places, 4, mask).map(|run| (run.first, run.count, run.kind)).collect()
    }

    #[test]
    fn lanes_make_runs() {
        let row = |f: fn(u32) -> u32| -> Row { std::array::from_fn(|lane| f(lane as u32)) };
        let (equal, rising) = (row(|_| 12), row(|lane| 4 * lane + 8));
        assert_eq!(runs(&equal, u64::MAX), [(0, 64, Same)]);
        assert_eq!(runs(&rising, u64::MAX), [(0, 64, Following)]);
        assert!(Runs::of(&rising, 4, u64::MAX).is_one(u64::MAX) && !Runs::of(&rising, 8, u64::MAX).is_one(u64::MAX));
        assert!(Runs::of(&rising, 4, 0xffff_ffff).is_one(0xffff_ffff));
        assert!(!Runs::of(&rising, 4, 0x7fff_ffff).is_one(0xffff_ffff));
        assert_eq!(Runs::same(0xf0).collect::<Vec<_>>(), [Run { first: 4, count: 60, kind: Same }]);
        assert_eq!(Runs::following(0xffff_ffff).collect::<Vec<_>>(), [Run { first: 0, count: 32, kind: Following }]);
        assert_eq!(runs(&equal, 0), []);
        assert_eq!(
            runs(&rising, 0x8000_0000_0000_0d01),
            [(0, 1, Scattered), (8, 1, Scattered), (10, 2, Following), (63, 1, Scattered)]
        );
        // Sixteen lanes each at one place and then at places that follow each other, with a step back between.
        let mixed = row(|lane| if lane & 16 == 0 { lane & 32 } else { 4 * (lane & 15) + 400 });
        assert_eq!(runs(&mixed, u64::MAX), [(0, 16, Same), (16, 16, Following), (32, 16, Same), (48, 16, Following)]);
        // Where the first lane is at 0 no lane is before it.
        let far = row(|lane| 100 * lane);
        assert_eq!(runs(&far, 7), [(0, 3, Scattered)]);
    }

    /// Every active lane is in one run, and where that says.
    #[test]
    fn runs_say_where_lanes_are() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for _ in 0..2000 {
            let mut place = 0_u32;
            let places: Row = std::array::from_fn(|_| {
                place = match next() % 8 {
                    0 => next() as u32 % 1000,
                    1..4 => place,
                    _ => place.wrapping_add(4),
                };
                place
            });
            let mask = (next() | next() << 32) | if next() % 2 == 0 { u64::MAX >> (next() % 64) } else { 0 };
            let mut seen = 0_u64;
            for run in Runs::of(&places, 4, mask) {
                for lane in run.lanes() {
                    assert_eq!(seen >> lane & 1, 0);
                    seen |= 1 << lane;
                    let offset = match run.kind {
                        Same => 0,
                        Following => 4 * (lane - run.first) as u32,
                        Scattered => continue,
                    };
                    assert_eq!(places[lane], places[run.first].wrapping_add(offset));
                }
            }
            assert_eq!(seen, mask);
        }
    }
}
