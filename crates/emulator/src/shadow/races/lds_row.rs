//! What all lanes of an instruction do to LDS at once: reads or writes of whole dwords.
//!
//! The fast path of LDS instructions notes one of these instead of a [`LaneAccess`] for each lane and element, of which
//! it is the same as [`LdsRow::accesses`].

use wavetap_amdgpu::RegFile;

use super::How;
use super::access::LaneAccess;
use crate::lanes::{LANES, Registers, active};

/// The accesses of the lanes in a mask, one after the other, each of its elements in turn.
pub(crate) struct LdsRow {
    pub mask: u64,
    /// Bytes of an element: whole dwords.
    pub size: usize,
    pub elements: usize,
    /// First bytes, by element and lane; those of other lanes mean nothing.
    pub places: [[u32; LANES]; 2],
    /// Whether they are [`LdsRow::is_contiguous`].
    pub in_a_row: [bool; 2],
    /// The file and first register of what is written, by element; none for reads.
    pub from: Option<[(RegFile, u16); 2]>,
}

impl LdsRow {
    /// No lane's.
    pub(crate) const NONE: LdsRow =
        LdsRow { mask: 0, size: 0, elements: 0, places: [[0; LANES]; 2], in_a_row: [false; 2], from: None };

    /// Dwords of an element.
    pub(crate) fn words(&self) -> usize {
        self.size / 4
    }

    /// What a lane does with a dword of an element, given VGPRs and AGPRs. Writes do not change the
    /// registers that they write from: these are what they were.
    #[inline]
    pub(crate) fn how(&self, [vector, accum]: [&Registers; 2], element: usize, lane: usize, word: usize) -> How {
        match self.from {
            None => How::Read,
            Some(from) => {
                let (file, first) = from[element];
                let registers = if file == RegFile::Accum { accum } else { vector };
                How::Write(registers.get(usize::from(first) + word).map_or(0, |register| register[lane]).into())
            }
        }
    }

    /// [`LdsRow::how`] of all dwords of an element.
    pub(crate) fn how_all(&self, files: [&Registers; 2], element: usize, lane: usize) -> How {
        let join = |all: How, word: usize| match (all, self.how(files, element, lane, word)) {
            (How::Write(low), How::Write(high)) => How::Write(low | high << (32 * word)),
            (all, _) => all,
        };
        (1..self.words()).fold(self.how(files, element, lane, 0), join)
    }

    /// The accesses one by one.
    pub(crate) fn accesses<'a>(&'a self, files: [&'a Registers; 2]) -> impl Iterator<Item = LaneAccess> + 'a {
        active(self.mask).flat_map(move |lane| {
            (0..self.elements).map(move |element| LaneAccess {
                lane: lane as u8,
                size: self.size as u8,
                element: element as u8,
                scratch: false,
                at: self.places[element][lane],
                how: self.how_all(files, element, lane),
            })
        })
    }

    /// Whether all lanes of a wave are active, and the elements of each follow those of the one before in LDS.
    pub(crate) fn is_contiguous(places: &[u32; LANES], (mask, lanes): (u64, usize), size: usize) -> bool {
        let all = u64::MAX >> (LANES - lanes);
        let follow = || {
            places[..lanes]
                .iter()
                .zip(0..)
                .fold(true, |all, (&at, lane)| all & (at == places[0].wrapping_add(size as u32 * lane)))
        };
        mask == all && follow()
    }
}
