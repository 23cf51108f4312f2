//! The fast path of accesses to whole dwords that are ordered after what was there, none of it atomic: nearly all are
//! such.
//!
//! As FastTrack does (Flanagan and Freund, PLDI 2009), it compares single accesses with the wave's clock instead of
//! whole clocks, and remembers the last accesses that were found ordered: neighbouring dwords usually have the same
//! ones, and the answer for equal accesses is the same as long as no clock changes. Whatever does not fit (a part of a
//! dword, an atomic, a copy, an access that is not ordered) is left to the general check, which alone reports races:
//! the fast path must never accept what that would report.

use super::lds_row::LdsRow;
use super::{Cell, CellAccess, Clocks, How, LdsOperation, Races, View, Word, note, place_of_read};
use crate::fault::FaultKind;
use crate::lanes::{Registers, active};

/// What was last found of a dword, while no clock changes: neighbours were mostly accessed by the same instructions.
#[derive(Default)]
pub(crate) struct Seen {
    /// A write and reads that the wave is ordered after; at first there are none.
    written: CellAccess,
    read: [CellAccess; 2],
    /// Reads that were remembered, and which of them another takes the place of; of none it is the first.
    before: [CellAccess; 2],
    place: usize,
}

/// Whether an access needs no more order to one of a wave: there is none, it is the wave's own, in the order of LDS
/// operations, or known to be over.
#[inline]
fn is_behind(other: CellAccess, wave: usize, clocks: &Clocks) -> bool {
    other.id() == 0 || if other.wave() == wave { !other.is_copied() } else { other.is_before(clocks) }
}

impl Seen {
    /// Whether a wave may read a dword (or write it) with nothing more to look at.
    #[inline(always)]
    fn is_ordered(&mut self, word: &Word, wave: usize, view: &View, writes: bool) -> bool {
        let Cell { written, read } = word.cell;
        if word.split.is_some() {
            return false;
        }
        if written != self.written {
            if written.is_atomic() || !is_behind(written, wave, &view.writes) {
                return false;
            }
            self.written = written;
        }
        if writes && read != self.read {
            if !read.iter().all(|read| is_behind(*read, wave, &view.reads)) {
                return false;
            }
            self.read = read;
        }
        true
    }

    /// The fast path of one dword of a lane.
    #[inline(always)]
    fn goes(
        &mut self,
        words: &mut [Word],
        access: CellAccess,
        (at, reads): (usize, bool),
        how: impl Fn() -> How,
        (wave, view): (usize, &View),
    ) -> bool {
        let Some(word) = words.get_mut(at / 4).filter(|_| at.is_multiple_of(4)) else { return false };
        let ordered = self.is_ordered(word, wave, view, !reads);
        if ordered {
            self.note(word, access, how(), view);
        }
        ordered
    }

    /// Remembers the access: as [`note`] does.
    #[inline(always)]
    fn note(&mut self, word: &mut Word, access: CellAccess, how: How, view: &View) {
        if how != How::Read {
            return note(word, (0, 4), access, how, 0, view);
        }
        let read = &mut word.cell.read;
        if *read != self.before {
            (self.before, self.place) = (*read, place_of_read(read, access, view));
        }
        read[self.place] = access;
    }
}

impl Races {
    /// [`Races::access`] of the lanes of a row. Gives the lane that races.
    pub(crate) fn row(
        &mut self,
        operation: &LdsOperation,
        size: usize,
        (row, files): (&LdsRow, [&Registers; 2]),
        in_flight: &dyn Fn(u32) -> bool,
        polls: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), (usize, FaultKind)> {
        if !self.is_on() {
            self.start(size);
        }
        if operation.wave as usize >= self.views.len() {
            return Ok(());
        }
        let access = CellAccess::new(operation, self.site(operation), false, false);
        let (mut seen, mut result) = (Seen::default(), Ok(()));
        let done = self.dwords(access, row, files, &mut seen);
        for lane in active(row.mask).skip(done) {
            for element in 0..row.elements {
                let place = (row.places[element][lane] as usize, row.size);
                if !self.dword_fast(access, place, |word| row.how(files, element, lane, word), &mut seen) {
                    let how = row.how_all(files, element, lane);
                    let found = self.access(operation, size, (place.0, row.size, how), in_flight, polls);
                    result = result.and(found.map_err(|kind| (lane, kind)));
                    seen = Seen::default();
                }
            }
        }
        result
    }

    /// [`Races::dword_fast`] of lanes that have a dword each, one after the other: so many have gone this way.
    fn dwords(&mut self, access: CellAccess, row: &LdsRow, files: [&Registers; 2], seen: &mut Seen) -> usize {
        let Races { words, views, exchanged, .. } = self;
        if row.elements != 1 || row.size != 4 || !exchanged.is_empty() {
            return 0;
        }
        let (wave, view) = (access.wave(), &views[access.wave()]);
        let mut each = |lane: usize, reads: bool| {
            let how = || if reads { How::Read } else { row.how(files, 0, lane, 0) };
            seen.goes(words, access, (row.places[0][lane] as usize, reads), how, (wave, view))
        };
        // Two loops, in each of which it is known which it is.
        let ends = match row.from {
            None => active(row.mask).position(|lane| !each(lane, true)),
            Some(_) => active(row.mask).position(|lane| !each(lane, false)),
        };
        ends.unwrap_or(row.mask.count_ones() as usize)
    }

    /// The fast path of a lane: false, and nothing done, if it is not open. `how` is what it does with each dword, the
    /// same with all.
    #[inline]
    pub(super) fn dword_fast(
        &mut self,
        access: CellAccess,
        (at, length): (usize, usize),
        how: impl Fn(usize) -> How,
        seen: &mut Seen,
    ) -> bool {
        let Races { words, views, exchanged, .. } = self;
        if !exchanged.is_empty() || !at.is_multiple_of(4) || !length.is_multiple_of(4) {
            return false;
        }
        let (wave, view) = (access.wave(), &views[access.wave()]);
        let writes = how(0) != How::Read;
        let Some(words) = words.get_mut(at / 4..(at + length) / 4) else { return false };
        if !words.iter().all(|word| seen.is_ordered(word, wave, view, writes)) {
            return false;
        }
        for (n, word) in words.iter_mut().enumerate() {
            seen.note(word, access, how(n), view);
        }
        true
    }
}
