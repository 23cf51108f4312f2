//! Accesses outside of what is allocated: the table that instrumented code compares addresses with, and what it leaves
//! of the first bad access of each site.
//!
//! The control block's pointer to the sample table leads to a header, in kernels that check bounds:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | steps of the search: the table has two to the power of it entries |
//! | 4 | 4 | 0 |
//! | 8 | 4 | bits 63:32 of flat addresses in LDS |
//! | 12 | 4 | bits 63:32 of flat addresses in scratch memory |
//! | 16 | 8 | address of the slots |
//! | 24 | 40 | 0 |
//! | 64 | 1024 | what each wave keeps in registers: the first entries, one for each lane; 0 if it has fewer lanes |
//! | 1088 | 16 for each entry | first address of a range, and the address after its last one |
//!
//! Entries are in rising order and do not overlap. The first one is 0 and 0; the last range is repeated up to the end
//! of the table. Before the header is a [`claim`] of 4 bytes for each site: bad executions (atomic). Whoever finds 0
//! there is the first. The site's slot has [`SLOT`] bytes, at [`slot`] from the first one, in memory that the host can
//! read while kernels run, and after one of them has ended the program. The first 16 bytes are stored by each wave
//! before its bad access, the others by the first one alone:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | an address that was bad |
//! | 8 | 4 | 1: there is one |
//! | 12 | 4 | 0 |
//! | 16 | 8 | the address of the first bad lane |
//! | 24 | 8 | the bad lanes |
//! | 32 | 12 | the workgroup |
//! | 44 | 4 | the wave in the workgroup |
//! | 48 | 4 | the first bad lane |
//! | 52 | 4 | 0 |
//! | 56 | 4 | 1: what is from byte 16 on is there; stored last |
//! | 60 | 4 | 0 |

use serde::{Deserialize, Serialize};

use crate::accesses::{AllocatedRange, Apertures};
use crate::record::{COUNTER, HEADER};
use wavetap_base::bytes;
use wavetap_base::error::{Error, Result};

/// Size of a slot in bytes.
pub const SLOT: u32 = 64;
/// Offset of the slots' address in the header.
pub const SLOTS: u32 = 16;
/// Size of a claim in bytes.
const CLAIM: u32 = 4;
/// Claims take a multiple of so many bytes.
const ALIGNMENT: u32 = 64;
/// Offset of what waves keep, after the header.
pub const KEPT: u32 = 64;
/// Offset of the table.
pub const TABLE: u32 = KEPT + ENTRY * MOST_LANES;
/// Lanes of the largest waves.
const MOST_LANES: u32 = 64;
/// Offset of the apertures in the header.
pub const SHARED: u32 = 8;
/// The same of the private one.
pub const PRIVATE: u32 = 12;
/// Size of an entry in bytes.
pub const ENTRY: u32 = 16;
/// The numbers of steps that a search may have.
pub const STEPS: [u32; 3] = [6, 10, 16];
/// Bytes from an allocation up to which a wrong address is taken for one of it.
pub const NEAR: i128 = 1 << 30;
/// Counters of a site.
const COUNTERS: u32 = 3;

/// The first bad access of a site in a dispatch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutOfBounds {
    /// Index into [`crate::file::Profile::kernels`].
    pub kernel: u32,
    /// The dispatch's ordinal.
    pub dispatch: u32,
    /// The ranges of the program in which it was dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The site: its index among the kernel's.
    pub site: u32,
    /// The address of the first bad lane. After a fault it may be all that is known: `lanes` is 0 then.
    #[serde(with = "crate::hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// The first bad lane.
    pub lane: u32,
    /// All bad lanes of the execution. 0: these, the first one, the workgroup and the wave are not known.
    #[serde(with = "crate::hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub lanes: u64,
    /// The workgroup.
    pub workgroup: [u32; 3],
    /// The wave's index in the workgroup.
    pub wave: u32,
    /// The allocation that is nearest to the address; none where there is none.
    pub nearest: Option<AllocatedRange>,
}

impl OutOfBounds {
    /// How many bytes the address is before the nearest allocation (negative), inside, or at and after its end.
    #[must_use]
    pub fn distance(&self) -> Option<i128> {
        let nearest = self.nearest?;
        let (address, end) = (i128::from(self.address), i128::from(nearest.address) + i128::from(nearest.size));
        Some(if address < i128::from(nearest.address) { address - i128::from(nearest.address) } else { address - end })
    }
}

/// What is at the address that the control block has, and before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The ranges, in rising order.
    pub ranges: Vec<AllocatedRange>,
    /// Sites, each with a claim and a slot.
    sites: u32,
    apertures: Apertures,
    /// Lanes of a wave.
    lanes: u32,
}

/// The number of the site whose counters are at an offset in the record.
const fn number(site: u32) -> u32 {
    (site - HEADER) / (COUNTERS * COUNTER)
}

/// How far before the header the claim of the site is whose counters are at an offset in the record.
#[must_use]
pub const fn claim(site: u32) -> u32 {
    (number(site) + 1) * CLAIM
}

/// Offset of the slot of that site among the slots.
#[must_use]
pub const fn slot(site: u32) -> u32 {
    number(site) * SLOT
}

impl Checked {
    /// Of a kernel whose record has so many bytes and whose waves so many lanes. Ranges that overlap are joined.
    ///
    /// # Errors
    /// Limit if there are more ranges than a search has steps for.
    pub fn new(
        mut ranges: Vec<AllocatedRange>,
        apertures: Apertures,
        record_bytes: u32,
        lanes: u32,
    ) -> Result<Checked> {
        ranges.retain(|range| range.size > 0);
        ranges.sort_by_key(|range| range.address);
        ranges.dedup_by(|range, before| {
            let end = before.address.saturating_add(before.size);
            let overlaps = range.address < end;
            if overlaps {
                before.size = range.address.saturating_add(range.size).max(end) - before.address;
            }
            overlaps
        });
        let most = (1_usize << STEPS[STEPS.len() - 1]) - 1;
        if ranges.len() > most {
            return Err(Error::limit(format!("{} allocations, --probe bounds knows {most}", ranges.len())));
        }
        let sites = record_bytes.saturating_sub(HEADER) / (COUNTERS * COUNTER);
        Ok(Checked { ranges, sites, apertures, lanes })
    }

    /// Whether a range has bytes of one of these ranges.
    #[must_use]
    pub fn overlaps(&self, range: &AllocatedRange) -> bool {
        let end = range.address.saturating_add(range.size);
        let before = &self.ranges[..self.ranges.partition_point(|known| known.address < end)];
        before.last().is_some_and(|last| last.address.saturating_add(last.size) > range.address)
    }

    /// Bytes before the header.
    #[must_use]
    pub fn before(&self) -> u64 {
        (u64::from(self.sites) * u64::from(CLAIM)).next_multiple_of(ALIGNMENT.into())
    }

    /// Bytes of all slots.
    #[must_use]
    pub fn slots_bytes(&self) -> u64 {
        u64::from(self.sites) * u64::from(SLOT)
    }

    /// All bytes, the claims' before them. `slots`: where the slots are.
    #[must_use]
    pub fn to_bytes(&self, slots: u64) -> Vec<u8> {
        let entries = self.ranges.len() + 1;
        let steps = STEPS.into_iter().find(|steps| entries <= 1 << steps).unwrap_or(STEPS[STEPS.len() - 1]);
        let mut out = vec![0; self.before() as usize];
        for word in [steps, 0, self.apertures.shared, self.apertures.private] {
            out.extend(word.to_le_bytes());
        }
        out.extend(slots.to_le_bytes());
        out.resize(self.before() as usize + KEPT as usize, 0);
        let of = |range: &AllocatedRange| [range.address, range.address.saturating_add(range.size)];
        let last = self.ranges.last().map_or([0, 0], of);
        let entries_of = |count| {
            let first = std::iter::once([0, 0]).chain(self.ranges.iter().map(of));
            first.chain(std::iter::repeat(last)).take(count).flatten().flat_map(u64::to_le_bytes)
        };
        if entries <= self.lanes as usize {
            out.extend(entries_of(MOST_LANES as usize));
        }
        out.resize(self.before() as usize + TABLE as usize, 0);
        out.extend(entries_of(1 << steps));
        out
    }

    /// What the slots say: of each site with a bad access the first one, by its number. `kernel`, `dispatch` and
    /// `region` are those of the dispatch.
    ///
    /// # Errors
    /// Malformed if there are fewer bytes than slots, or one contradicts itself.
    pub fn found(&self, slots: &[u8], kernel: u32, dispatch: u32) -> Result<Vec<OutOfBounds>> {
        let mut found = Vec::new();
        for site in 0..self.sites {
            let at = u64::from(site) * u64::from(SLOT);
            let word = |offset: u64| bytes::u32_at(slots, at + offset, "first bad access");
            let wide = |offset: u64| bytes::u64_at(slots, at + offset, "first bad access");
            if word(8)? == 0 {
                continue;
            }
            let bad = |address, (lane, lanes), workgroup, wave| OutOfBounds {
                kernel,
                dispatch,
                region: None,
                site,
                address,
                lane,
                lanes,
                workgroup,
                wave,
                nearest: self.nearest(address),
            };
            if word(56)? == 0 {
                // The first one was stopped while it stored.
                found.push(bad(wide(0)?, (0, 0), [0; 3], 0));
                continue;
            }
            let (lanes, lane) = (wide(24)?, word(48)?);
            if lanes.trailing_zeros() != lane {
                return Err(Error::malformed(format!("the first of the lanes {lanes:#x} is not {lane}")));
            }
            found.push(bad(wide(16)?, (lane, lanes), [word(32)?, word(36)?, word(40)?], word(44)?));
        }
        Ok(found)
    }

    /// The range that is nearest to an address.
    fn nearest(&self, address: u64) -> Option<AllocatedRange> {
        let after = self.ranges.partition_point(|range| range.address <= address);
        let (before, after) = (after.checked_sub(1).map(|before| self.ranges[before]), self.ranges.get(after).copied());
        match (before, after) {
            (Some(before), Some(after)) => {
                let behind = address.saturating_sub(before.address.saturating_add(before.size));
                Some(if behind <= after.address - address { before } else { after })
            }
            (before, after) => before.or(after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(address: u64, size: u64) -> AllocatedRange {
        AllocatedRange { address, size }
    }

    #[test]
    fn ranges_are_sorted_and_joined_where_they_overlap_alone() {
        let apertures = Apertures { shared: 1, private: 2 };
        let ranges = vec![range(0x3000, 0x100), range(0x1000, 0x100), range(0x1080, 0x100), range(0x1180, 8)];
        let checked = Checked::new(ranges, apertures, HEADER + 24, 64).unwrap();
        assert_eq!(checked.ranges, [range(0x1000, 0x180), range(0x1180, 8), range(0x3000, 0x100)]);
        let bytes = checked.to_bytes(0x7000);
        let wide = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(bytes.len() as u32, ALIGNMENT + TABLE + (ENTRY << STEPS[0]));
        assert_eq!((checked.before(), wide(64 + SLOTS as usize)), (64, 0x7000));
        assert_eq!([128, 136, 144, 152].map(wide), [0, 0, 0x1000, 0x1180]);
        assert_eq!([1152, 1160, 1168, 1176].map(wide), [0, 0, 0x1000, 0x1180]);
        assert_eq!([1136, 1144].map(wide), [0x3000, 0x3100]);
        assert_eq!([bytes.len() - 16, bytes.len() - 8].map(wide), [0x3000, 0x3100]);
        // 32 entries with the first one, and one more than a wave32 keeps.
        for (ranges, kept) in [(31, 31 << 32), (32, 0)] {
            let ranges = (1..=ranges).map(|number| range(number << 32, 1)).collect();
            let bytes = Checked::new(ranges, apertures, HEADER, 32).unwrap().to_bytes(0);
            let at = (KEPT + 31 * ENTRY) as usize;
            assert_eq!(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()), kept);
        }
        let many = (1..=1 << 16).map(|number| range(number << 12, 1)).collect();
        assert!(Checked::new(many, apertures, HEADER, 64).is_err());
    }

    #[test]
    fn the_nearest_range_is_named() {
        let ranges = vec![range(0x1000, 0x100), range(0x3000, 0x100)];
        let checked = Checked::new(ranges, Apertures { shared: 1, private: 2 }, HEADER + 48, 32).unwrap();
        let mut slots = vec![0; 128];
        assert_eq!((slot(HEADER), slot(HEADER + 24)), (0, 64));
        assert_eq!((claim(HEADER), claim(HEADER + 24)), (4, 8));
        assert_eq!((checked.before(), checked.slots_bytes()), (64, 128));
        let second = &mut slots[64..];
        second[0] = 0x10;
        second[8] = 1;
        second[16..24].copy_from_slice(&0x2ff0_u64.to_le_bytes());
        second[24] = 0b1100;
        second[32] = 7;
        second[44] = 5;
        second[48] = 2;
        let partial = checked.found(&slots, 4, 9).unwrap();
        assert_eq!((partial[0].address, partial[0].lanes, partial[0].nearest), (0x10, 0, Some(range(0x1000, 0x100))));
        slots[64 + 56] = 1;
        let found = checked.found(&slots, 4, 9).unwrap();
        let [bad] = found.as_slice() else { panic!("one") };
        assert_eq!((bad.site, bad.address, bad.lanes, bad.lane), (1, 0x2ff0, 0b1100, 2));
        assert_eq!((bad.workgroup, bad.wave, bad.kernel, bad.dispatch), ([7, 0, 0], 5, 4, 9));
        assert_eq!((bad.nearest, bad.distance()), (Some(range(0x3000, 0x100)), Some(-0x10)));
        slots[64 + 48] = 3;
        assert!(checked.found(&slots, 4, 9).is_err());
        let overlaps = |address, size| checked.overlaps(&range(address, size));
        assert!(overlaps(0x10ff, 1) && overlaps(0xfff, 2) && overlaps(0x2000, 0x1001) && overlaps(0, 0x9000));
        assert!(!overlaps(0x1100, 1) && !overlaps(0xfff, 1) && !overlaps(0x1100, 0x1f00) && !overlaps(0x3100, 9));
        assert_eq!(checked.nearest(0x10), Some(range(0x1000, 0x100)));
        assert_eq!(checked.nearest(0x1100), Some(range(0x1000, 0x100)));
        assert_eq!(checked.nearest(u64::MAX), Some(range(0x3000, 0x100)));
    }
}
