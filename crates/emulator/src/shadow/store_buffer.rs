//! What the lanes of one instruction store, until others may see it.
//!
//! The data and addresses of one store instruction, taken when it is issued: later writes of its registers do not
//! change what is stored. `in_flight` holds it until a wait, a barrier or the end of the wave makes it visible, and
//! `strict::store_order` says when. The addresses were checked at issue, so that a fault belongs to the
//! instruction, and not to the wait that publishes it. Rows of dwords without gaps, which are usual, have only their
//! first address.

use smallvec::SmallVec;

use crate::address::range::Range;
use crate::fault::{FaultKind, MemoryAccess};
use crate::lanes::{LANES, Register, active};
use crate::memory::View;
use crate::memory::lanes::store_lanes;

/// Most dwords that a lane stores.
const DWORDS: usize = 4;

/// Stores of the lanes in a mask, one after the other, each of its elements in turn.
pub(crate) struct LaneStores {
    pub mask: u64,
    /// Bytes of an element.
    pub size: usize,
    /// Two in LDS, for instructions that have two.
    pub elements: usize,
    /// How many lanes there are, if the first elements of all of them follow each other, whole dwords; then only the
    /// first place is filled in.
    pub in_a_row: Option<usize>,
    /// In memory, where all of it is.
    pub range: Range,
    /// First bytes, by element and lane.
    pub places: [[u64; LANES]; 2],
    /// The dwords of the elements, one after the other.
    data: [Box<Register>; DWORDS],
}

impl Default for LaneStores {
    fn default() -> Self {
        LaneStores {
            mask: 0,
            size: 0,
            elements: 0,
            in_a_row: None,
            range: (0, 0),
            places: [[0; LANES]; 2],
            data: Default::default(),
        }
    }
}

impl LaneStores {
    fn words(&self) -> usize {
        self.size.div_ceil(4)
    }

    /// Takes the data of the next element from the first of some registers.
    pub(crate) fn put(&mut self, registers: &[Box<Register>]) {
        let words = self.words();
        for (to, from) in self.data[self.elements * words..][..words].iter_mut().zip(registers) {
            to.0 = from.0;
        }
        self.elements += 1;
    }

    /// The first addresses and lengths of what is stored in memory: one where all of it is together.
    pub(crate) fn ranges(&self) -> SmallVec<[(u64, u32); 1]> {
        match self.in_a_row {
            Some(lanes) => SmallVec::from_elem((self.places[0][0], (lanes * self.size) as u32), 1),
            None => active(self.mask).map(|lane| (self.places[0][lane], self.size as u32)).collect(),
        }
    }

    /// Notes where in memory all of it is, once the places are filled in.
    pub(crate) fn set_range(&mut self) {
        let first = self.places[0][0];
        self.range = match self.in_a_row {
            Some(lanes) => (first, first.saturating_add((lanes * self.size) as u64)),
            None => active(self.mask).fold((u64::MAX, 0), |(from, to), lane| {
                let at = self.places[0][lane];
                (from.min(at), to.max(at.saturating_add(self.size as u64)))
            }),
        };
    }

    /// Where a lane stores in memory.
    fn place(&self, lane: usize) -> u64 {
        self.in_a_row.map_or(self.places[0][lane], |_| self.places[0][0] + (lane * self.size) as u64)
    }

    /// Stores to memory: all within one allocation, as was checked when the operation was issued.
    pub(crate) fn to_memory(&self, memory: &View) -> Result<(), FaultKind> {
        let first = self.place(self.mask.trailing_zeros() as usize % LANES);
        let data = &self.data[..self.words()];
        let stored = memory.span_to_write(first).and_then(|span| match self.in_a_row {
            Some(lanes) => span.store_rows(first.wrapping_sub(span.start) as usize, data, lanes),
            None => store_lanes(&span, data, self.mask, self.size, |lane| {
                self.places[0][lane].wrapping_sub(span.start) as usize
            }),
        });
        if stored.is_some() {
            return Ok(());
        }
        // The one that cannot be says why.
        active(self.mask).try_for_each(|lane| {
            let mut bytes = [0; 4 * DWORDS];
            bytes
                .as_chunks_mut()
                .0
                .iter_mut()
                .zip(data)
                .for_each(|(bytes, register)| *bytes = register[lane].to_le_bytes());
            memory.write(self.place(lane), &bytes[..self.size], MemoryAccess::Store)
        })
    }

    /// Stores to LDS, within bounds.
    pub(crate) fn to_lds(&self, lds: &mut [u8]) {
        let words = self.words();
        if let (1, Some(lanes)) = (self.elements, self.in_a_row)
            && let Some(bytes) =
                lds.get_mut(self.places[0][0] as usize..).and_then(|rest| rest.get_mut(..lanes * self.size))
        {
            for (word, register) in self.data[..words].iter().enumerate() {
                let dwords = bytes.as_chunks_mut().0.iter_mut().skip(word).step_by(words);
                dwords.zip(register.iter()).for_each(|(bytes, value)| *bytes = value.to_le_bytes());
            }
            return;
        }
        for lane in active(self.mask) {
            for element in 0..self.elements {
                for (word, register) in self.data[element * words..][..words].iter().enumerate() {
                    let at = self.places[element][lane] as usize + 4 * word;
                    if let Some(bytes) = lds.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                        *bytes = register[lane].to_le_bytes();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::Registers;

    /// Registers with numbers in them that are all different.
    fn registers(count: usize) -> Registers {
        (0..count).map(|n| Box::new(Register(std::array::from_fn(|lane| (100 * n + lane + 1) as u32)))).collect()
    }

    #[test]
    fn later_lanes_and_elements_win_in_lds() {
        let mut stores = LaneStores { mask: 0b101, size: 8, ..LaneStores::default() };
        // The second element of the first lane is where the third lane's first one is, which comes later.
        stores.places = [[0; LANES], [8; LANES]];
        stores.places[0][2] = 8;
        stores.places[1][2] = 24;
        let registers = registers(4);
        stores.put(&registers[..2]);
        stores.put(&registers[2..]);
        let mut lds = [0; 32];
        stores.to_lds(&mut lds);
        let words: Vec<u32> = lds.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        assert_eq!(words, [1, 101, 3, 103, 0, 0, 203, 303]);
    }

    #[test]
    fn a_row_is_stored_as_its_lanes_are() {
        let registers = registers(2);
        let lane_by_lane = std::array::from_fn(|lane| 16 + 8 * lane as u64);
        for in_a_row in [None, Some(LANES)] {
            let mut stores = LaneStores { mask: u64::MAX, size: 8, in_a_row, ..LaneStores::default() };
            stores.places[0] = lane_by_lane;
            stores.put(&registers);
            let mut lds = [0; 16 + 8 * LANES];
            stores.to_lds(&mut lds);
            assert!(lds[..16].iter().all(|byte| *byte == 0));
            for (lane, bytes) in lds[16..].as_chunks::<8>().0.iter().enumerate() {
                assert_eq!(u64::from_le_bytes(*bytes), (lane as u64 + 1) | (lane as u64 + 101) << 32);
            }
            let ranges: u32 = stores.ranges().iter().map(|(_, bytes)| bytes).sum();
            assert_eq!((ranges, stores.ranges()[0].0), (8 * LANES as u32, 16));
        }
    }
}
