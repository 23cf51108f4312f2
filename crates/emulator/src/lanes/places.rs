//! The addresses of lanes, and their places in an allocation or in LDS.

use super::{ARCH, HALF, LANES, Lanes, Row, vector_loop};

/// What the addresses of lanes are made of, beside what is the same for all.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AddressRows<'a> {
    /// The low and high dwords of addresses.
    Wide(&'a Row, &'a Row),
    /// Numbers without sign.
    Unsigned(&'a Row),
    /// Numbers with a sign, which count elements of so many bytes.
    Signed(&'a Row, u32),
}

#[inline(always)]
fn wide(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[inline(always)]
fn signed(word: u32, size: u32) -> u64 {
    (i64::from(word as i32) * i64::from(size)) as u64
}

impl AddressRows<'_> {
    /// The address of a lane.
    pub(crate) fn of_lane(self, fixed: u64, lane: usize) -> u64 {
        let own = match self {
            AddressRows::Wide(low, high) => wide(low[lane], high[lane]),
            AddressRows::Unsigned(low) => u64::from(low[lane]),
            AddressRows::Signed(low, size) => signed(low[lane], size),
        };
        own.wrapping_add(fixed)
    }

    /// The addresses of all lanes.
    pub(crate) fn of_all(self, fixed: u64) -> Lanes {
        std::array::from_fn(|lane| self.of_lane(fixed, lane))
    }
}

/// What the places of lanes have in common, as sums of what differs in some lane: 0 if nothing does.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlaceSums {
    /// An active lane is out of bounds.
    pub outside: u32,
    /// An active lane is not at the place of the first active lane.
    pub different: u32,
    /// A lane, whether active or not, is not at the place after that of the lane before it.
    pub scattered: u32,
}

/// What places are compared with.
#[derive(Debug, Clone, Copy)]
struct PlaceBounds {
    /// The last place.
    last: u64,
    /// The place of the first active lane, and the one that the first lane has if they follow each other.
    first: u32,
    start: u32,
    /// Bytes of a lane.
    size: u32,
    mask: u64,
}

/// The places that a half of the lanes has, and their sums. The sums are of one half, so that loops know their length.
#[inline(always)]
fn summed(
    offsets: impl Iterator<Item = u64>,
    into: &mut [u32],
    (bounds, mask, expected): (&PlaceBounds, u32, u32),
) -> PlaceSums {
    let mut sums = PlaceSums::default();
    for ((into, offset), lane) in into.iter_mut().zip(offsets).zip(0..) {
        let is_active = 0_u32.wrapping_sub(mask >> (lane & 31) & 1);
        *into = offset as u32;
        sums.outside |= u32::from(offset > bounds.last) & is_active;
        sums.different |= (offset as u32 ^ bounds.first) & is_active;
        sums.scattered |= offset as u32 ^ expected.wrapping_add(bounds.size.wrapping_mul(lane));
    }
    sums
}

struct WidePlaces<'a>(&'a [u32], &'a [u32], u64, &'a mut [u32], (&'a PlaceBounds, u32, u32));

vector_loop!(() WidePlaces<'_>, PlaceSums, |this| {
    let WidePlaces(low, high, fixed, into, bounds) = this;
    summed(low.iter().zip(high).map(|(&low, &high)| wide(low, high).wrapping_add(fixed)), into, bounds)
});

struct UnsignedPlaces<'a>(&'a [u32], u64, &'a mut [u32], (&'a PlaceBounds, u32, u32));

vector_loop!(() UnsignedPlaces<'_>, PlaceSums, |this| {
    let UnsignedPlaces(low, fixed, into, bounds) = this;
    summed(low.iter().map(|&low| u64::from(low).wrapping_add(fixed)), into, bounds)
});

struct SignedPlaces<'a>(&'a [u32], u32, u64, &'a mut [u32], (&'a PlaceBounds, u32, u32));

vector_loop!(() SignedPlaces<'_>, PlaceSums, |this| {
    let SignedPlaces(low, size, fixed, into, bounds) = this;
    summed(low.iter().map(|&low| signed(low, size).wrapping_add(fixed)), into, bounds)
});

struct NarrowPlaces<'a>(&'a [u32], u32, &'a mut [u32], (&'a PlaceBounds, u32, u32));

vector_loop!(() NarrowPlaces<'_>, PlaceSums, |this| {
    let NarrowPlaces(row, fixed, into, (bounds, mask, expected)) = this;
    let mut sums = PlaceSums::default();
    let last = bounds.last as u32;
    for ((into, &word), lane) in into.iter_mut().zip(row).zip(0..) {
        let place = word.wrapping_add(fixed);
        let is_active = 0_u32.wrapping_sub(mask >> (lane & 31) & 1);
        *into = place;
        sums.outside |= u32::from(place > last) & is_active;
        sums.different |= (place ^ bounds.first) & is_active;
        sums.scattered |= place ^ expected.wrapping_add(bounds.size.wrapping_mul(lane));
    }
    sums
});

/// Does something for each half of a wave, and sums up.
#[inline(always)]
fn of_halves<'b>(
    bounds: &'b PlaceBounds,
    (lanes, into): (usize, &mut Row),
    mut half: impl FnMut(std::ops::Range<usize>, &mut [u32], (&'b PlaceBounds, u32, u32)) -> PlaceSums,
) -> PlaceSums {
    let mut all = PlaceSums::default();
    for first in (0..lanes.min(LANES)).step_by(HALF) {
        let range = first..first + HALF;
        let expected = bounds.start.wrapping_add(bounds.size.wrapping_mul(first as u32));
        let mask = (bounds.mask >> first) as u32;
        let sums = half(range.clone(), &mut into[range], (bounds, mask, expected));
        all.outside |= sums.outside;
        all.different |= sums.different;
        all.scattered |= sums.scattered;
    }
    all
}

/// Computes the places of lanes as offsets of their addresses from a start. Each lane has so many bytes from its place
/// on; the last place is given.
pub(crate) fn places64(
    rows: AddressRows<'_>,
    fixed: u64,
    (last, size): (u32, u32),
    (lanes, mask): (usize, u64),
    into: &mut Row,
) -> PlaceSums {
    let first = rows.of_lane(fixed, mask.trailing_zeros() as usize % LANES) as u32;
    let bounds = PlaceBounds { last: last.into(), first, start: rows.of_lane(fixed, 0) as u32, size, mask };
    match rows {
        AddressRows::Wide(low, high) => of_halves(&bounds, (lanes, into), |range, into, bounds| {
            ARCH.dispatch(WidePlaces(&low[range.clone()], &high[range], fixed, into, bounds))
        }),
        AddressRows::Unsigned(low) => of_halves(&bounds, (lanes, into), |range, into, bounds| {
            ARCH.dispatch(UnsignedPlaces(&low[range], fixed, into, bounds))
        }),
        AddressRows::Signed(low, size) => of_halves(&bounds, (lanes, into), |range, into, bounds| {
            ARCH.dispatch(SignedPlaces(&low[range], size, fixed, into, bounds))
        }),
    }
}

/// The same of places that are the sums of a row and a number.
pub(crate) fn places32(
    row: &Row,
    fixed: u32,
    (last, size): (u32, u32),
    (lanes, mask): (usize, u64),
    into: &mut Row,
) -> PlaceSums {
    let first = row[mask.trailing_zeros() as usize % LANES].wrapping_add(fixed);
    let bounds = PlaceBounds { last: last.into(), first, start: row[0].wrapping_add(fixed), size, mask };
    of_halves(&bounds, (lanes, into), |range, into, bounds| {
        ARCH.dispatch(NarrowPlaces(&row[range], fixed, into, bounds))
    })
}
