//! The last accesses of each byte of global memory.
//!
//! Chunks of 128 bytes that are accessed as a whole, as rows of lanes mostly do, have one cell; others have one for
//! each dword, and dwords of which bytes are accessed apart have four. Pages are made when they are first accessed.

use rustc_hash::FxHashMap;

/// Bytes of a chunk.
pub(crate) const CHUNK: usize = 128;
/// Dwords of a chunk.
pub(crate) const DWORDS: usize = CHUNK / 4;
/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// Chunks of a page.
const CHUNKS: usize = PAGE as usize / CHUNK;

/// An access that is remembered, in one word. No operation has the id 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Access(u64);

impl Access {
    const ID_BITS: u32 = 22;
    const SITE_BITS: u32 = 13;
    const WAVE_BITS: u32 = 5;
    /// Operations of a wave with greater ids are not checked.
    pub(crate) const MOST_IDS: u32 = 1 << Self::ID_BITS;
    /// Instructions after these are not checked.
    pub(crate) const MOST_SITES: usize = 1 << Self::SITE_BITS;
    /// Workgroups after these are not checked.
    pub(crate) const MOST_GROUPS: u32 = 1 << (64 - Self::ID_BITS - Self::SITE_BITS - Self::WAVE_BITS);

    pub(crate) fn new(group: u32, wave: u32, id: u32, site: usize) -> Access {
        let wave = u64::from(wave) << Self::ID_BITS;
        let site = (site as u64) << (Self::ID_BITS + Self::WAVE_BITS);
        let group = u64::from(group) << (Self::ID_BITS + Self::WAVE_BITS + Self::SITE_BITS);
        Access(u64::from(id) | wave | site | group)
    }

    pub(crate) fn is_none(self) -> bool {
        self.id() == 0
    }

    pub(crate) fn id(self) -> u32 {
        self.0 as u32 & (Self::MOST_IDS - 1)
    }

    pub(crate) fn wave(self) -> usize {
        (self.0 >> Self::ID_BITS) as usize & ((1 << Self::WAVE_BITS) - 1)
    }

    pub(crate) fn site(self) -> usize {
        (self.0 >> (Self::ID_BITS + Self::WAVE_BITS)) as usize & (Self::MOST_SITES - 1)
    }

    pub(crate) fn group(self) -> u32 {
        (self.0 >> (Self::ID_BITS + Self::WAVE_BITS + Self::SITE_BITS)) as u32
    }
}

/// What is known of a chunk, a dword or a byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub written: Access,
    pub read: Access,
}

impl Cell {
    /// What stands in the cell of a dword whose bytes have their own.
    const BYTES: Cell = Cell { written: Access(1 << 63), read: Access(1 << 63) };
}

#[derive(Default)]
pub(crate) struct Chunk {
    /// Of all of it, unless it is split.
    pub cell: Cell,
    pub split: Option<Box<[Cell; DWORDS]>>,
    /// What was stored; only of bytes that were.
    pub values: Option<Box<[u8; CHUNK]>>,
}

/// The chunks of a page.
pub(crate) struct Page {
    pub chunks: [Chunk; CHUNKS],
    /// The bytes of dwords, by their number, that are accessed apart.
    bytes: FxHashMap<u16, [Cell; 4]>,
    /// Nothing in it is checked.
    pub ignored: bool,
}

impl Page {
    fn new(ignored: bool) -> Page {
        Page { chunks: std::array::from_fn(|_| Chunk::default()), bytes: FxHashMap::default(), ignored }
    }

    /// The cell of a byte, or of the dword that begins there if all of it is accessed alike. With `whole` a dword is
    /// asked for; none if it is split.
    pub(crate) fn cell(&mut self, at: usize, whole: bool) -> Option<Cell> {
        let chunk = &self.chunks[at / CHUNK];
        let cell = chunk.split.as_ref().map_or(chunk.cell, |cells| cells[at % CHUNK / 4]);
        if cell != Cell::BYTES {
            return Some(cell);
        }
        let bytes = self.bytes.get(&((at / 4) as u16))?;
        if whole {
            return bytes.iter().all(|cell| *cell == bytes[0]).then_some(bytes[0]);
        }
        Some(bytes[at % 4])
    }

    /// Replaces the cell of a dword, or of one byte.
    pub(crate) fn set(&mut self, at: usize, whole: bool, cell: Cell) {
        let Page { chunks, bytes, .. } = self;
        let chunk = &mut chunks[at / CHUNK];
        if chunk.split.is_none() && chunk.cell == cell {
            return;
        }
        let first = chunk.cell;
        let dwords = chunk.split.get_or_insert_with(|| Box::new([first; DWORDS]));
        let dword = &mut dwords[at % CHUNK / 4];
        let key = (at / 4) as u16;
        if whole {
            if *dword == Cell::BYTES {
                bytes.remove(&key);
            }
            *dword = cell;
        } else if *dword != cell {
            let before = *dword;
            let bytes = bytes.entry(key).or_insert([before; 4]);
            *dword = Cell::BYTES;
            bytes[at % 4] = cell;
        }
    }

    /// A chunk is accessed as a whole again.
    pub(crate) fn unite(&mut self, chunk: usize, cell: Cell) {
        let Page { chunks, bytes, .. } = self;
        chunks[chunk].cell = cell;
        if chunks[chunk].split.take().is_some() && !bytes.is_empty() {
            let dwords = (chunk * DWORDS) as u16..((chunk + 1) * DWORDS) as u16;
            bytes.retain(|dword, _| !dwords.contains(dword));
        }
    }

    /// The bytes that were last stored.
    pub(crate) fn values(&self, at: usize, count: usize) -> Option<&[u8]> {
        self.chunks[at / CHUNK].values.as_ref().map(|values| &values[at % CHUNK..][..count])
    }

    /// Remembers bytes that are stored, within one chunk.
    pub(crate) fn store(&mut self, at: usize, bytes: &[u8]) {
        let values = self.chunks[at / CHUNK].values.get_or_insert_with(|| Box::new([0; CHUNK]));
        values[at % CHUNK..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Bytes that were stored have changed: what is remembered of them is no value that anything has stored, but by
    /// chance.
    pub(crate) fn change_values(&mut self, at: usize, count: usize) {
        if let Some(values) = &mut self.chunks[at / CHUNK].values {
            values[at % CHUNK..][..count].iter_mut().for_each(|value| *value = value.wrapping_add(0x5b));
        }
    }

    /// What is known of each part of a range, with its bytes.
    pub(crate) fn cells(&mut self, range: std::ops::Range<usize>) -> Vec<(Cell, usize)> {
        let (mut found, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let is_whole = |size: usize| at.is_multiple_of(size) && range.end - at >= size;
            let (cell, size) = if is_whole(CHUNK) && self.chunks[at / CHUNK].split.is_none() {
                (Some(self.chunks[at / CHUNK].cell), CHUNK)
            } else if is_whole(4)
                && let Some(cell) = self.cell(at, true)
            {
                (Some(cell), 4)
            } else {
                (self.cell(at, false), 1)
            };
            found.push((cell.unwrap_or_default(), size));
            at += size;
        }
        found
    }

    /// Whether any byte was written.
    fn is_written(&self) -> bool {
        let is = |cell: &Cell| *cell != Cell::BYTES && !cell.written.is_none();
        let in_chunk = |chunk: &Chunk| match &chunk.split {
            Some(cells) => cells.iter().any(is),
            None => is(&chunk.cell),
        };
        self.chunks.iter().any(in_chunk) || self.bytes.values().flatten().any(is)
    }

    fn clear(&mut self, from: usize, to: usize) {
        for at in from..to {
            self.set(at, false, Cell::default());
        }
    }
}

/// Pages that are found without a look at the map, by their numbers.
const RECENT: usize = 64;

/// The pages that were accessed.
pub(crate) struct Shadow {
    pages: Vec<Page>,
    places: FxHashMap<u64, u32>,
    /// Pages that were accessed last.
    recent: [(u64, u32); RECENT],
}

impl Default for Shadow {
    fn default() -> Shadow {
        Shadow { pages: Vec::new(), places: FxHashMap::default(), recent: [(0, 0); RECENT] }
    }
}

impl Shadow {
    /// The page with a number, which is made if there is none; `is_ignored` says whether anything is checked in it.
    #[inline]
    pub(crate) fn page(&mut self, number: u64, is_ignored: impl FnOnce() -> bool) -> &mut Page {
        // No page has the number 0.
        let slot = &mut self.recent[number as usize % RECENT];
        if slot.0 != number {
            let Shadow { pages, places, .. } = self;
            let at = *places.entry(number).or_insert_with(|| {
                pages.push(Page::new(is_ignored()));
                (pages.len() - 1) as u32
            });
            *slot = (number, at);
        }
        &mut self.pages[slot.1 as usize]
    }

    /// Those of these pages that were accessed, by their numbers.
    pub(crate) fn numbers(&self, range: std::ops::Range<u64>) -> Vec<u64> {
        let few = range.end.saturating_sub(range.start) <= self.places.len() as u64;
        let mut found: Vec<u64> = match few {
            true => range.filter(|number| self.places.contains_key(number)).collect(),
            false => self.places.keys().copied().filter(|number| range.contains(number)).collect(),
        };
        found.sort_unstable();
        found
    }

    /// The page with a number, if it was accessed.
    pub(crate) fn known(&mut self, number: u64) -> Option<&mut Page> {
        let at = *self.places.get(&number)?;
        self.pages.get_mut(at as usize)
    }

    /// The numbers of the pages that were written, ascending, without those that are ignored.
    pub(crate) fn written(&self) -> Vec<u64> {
        let is_written = |page: &Page| !page.ignored && page.is_written();
        let known = self.places.iter().filter(|(_, at)| is_written(&self.pages[**at as usize]));
        let mut numbers: Vec<u64> = known.map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Shadow::default();
    }

    /// Forgets the accesses of a range.
    pub(crate) fn forget(&mut self, from: u64, to: u64) {
        if self.pages.is_empty() || from >= to {
            return;
        }
        let pages = from / PAGE..=(to - 1) / PAGE;
        let known: Vec<(u64, u32)> = self
            .places
            .iter()
            .filter(|(number, _)| pages.contains(number))
            .map(|(&number, &at)| (number, at))
            .collect();
        for (number, at) in known {
            let start = number * PAGE;
            let (first, last) = (from.max(start) - start, to.min(start + PAGE) - start);
            let page = &mut self.pages[at as usize];
            if first == 0 && last == PAGE {
                *page = Page::new(false);
                // Another allocation may be there next.
                self.places.remove(&number);
                self.recent = [(0, 0); RECENT];
            } else {
                page.clear(first as usize, last as usize);
            }
        }
    }
}
