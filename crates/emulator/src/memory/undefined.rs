//! Which bytes of an allocation nothing has written.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Block, Memory, View};

/// Bytes of a word.
const WORD: u64 = 64;

/// A bit for each byte of an allocation: 1 is undefined.
pub(crate) struct UndefinedBytes {
    words: Box<[AtomicU64]>,
    /// How many are undefined.
    left: AtomicU64,
}

impl UndefinedBytes {
    /// So many, all undefined.
    pub(crate) fn all(size: u64) -> UndefinedBytes {
        let word = |n: u64| AtomicU64::new(if size - n >= WORD { u64::MAX } else { (1 << (size - n)) - 1 });
        UndefinedBytes { words: (0..size).step_by(WORD as usize).map(word).collect(), left: AtomicU64::new(size) }
    }

    /// Whether all are defined.
    #[inline]
    pub(crate) fn is_clear(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Those of up to 64 bytes from an offset on: a bit for each.
    pub(crate) fn get(&self, at: u64, count: u64) -> u64 {
        let (word, shift) = ((at / WORD) as usize, at % WORD);
        let load = |n: usize| self.words.get(n).map_or(0, |word| word.load(Ordering::Relaxed));
        let high = if shift == 0 { 0 } else { load(word + 1) << (WORD - shift) };
        (load(word) >> shift | high) & mask(count)
    }

    /// Makes up to 64 bytes from an offset on what a mask says.
    pub(crate) fn set(&self, at: u64, count: u64, undefined: u64) {
        let (word, shift, all) = ((at / WORD) as usize, at % WORD, mask(count));
        self.put(word, all << shift, undefined << shift);
        if shift != 0 {
            self.put(word + 1, all >> (WORD - shift), (undefined & all) >> (WORD - shift));
        }
    }

    /// Bytes have been written.
    pub(crate) fn define(&self, at: u64, count: u64) {
        if self.is_clear() {
            return;
        }
        for start in (at..at + count).step_by(WORD as usize) {
            self.set(start, (at + count - start).min(WORD), 0);
        }
    }

    fn put(&self, word: usize, all: u64, undefined: u64) {
        let Some(word) = self.words.get(word).filter(|_| all != 0) else { return };
        let old = word.load(Ordering::Relaxed);
        let new = old & !all | undefined & all;
        if new != old {
            word.store(new, Ordering::Relaxed);
            let more = i64::from(new.count_ones()) - i64::from(old.count_ones());
            self.left.fetch_add(more as u64, Ordering::Relaxed);
        }
    }
}

impl Memory {
    /// From now on nothing has written the allocation that starts at an address.
    pub(crate) fn mark_undefined(&mut self, address: u64) {
        self.follows_undefined = true;
        if let Ok(at) = self.blocks.binary_search_by_key(&address, |block| block.allocation.address) {
            let block = &mut self.blocks[at];
            block.undefined = Some(UndefinedBytes::all(block.allocation.size));
        }
    }
}

impl View<'_> {
    /// Whether some allocation has undefined bytes, or had.
    #[inline]
    pub(crate) fn follows_undefined(&self) -> bool {
        self.memory.follows_undefined
    }

    /// Which of up to 64 bytes nothing has written: a bit for each.
    pub(crate) fn undefined(&self, address: u64, count: usize) -> u64 {
        let Some(block) = self.find(address, count as u64) else { return 0 };
        let undefined = block.undefined.as_ref().filter(|undefined| !undefined.is_clear());
        undefined.map_or(0, |undefined| undefined.get(address - block.allocation.address, count as u64))
    }

    /// Whether all bytes of a range of one allocation are defined.
    pub(crate) fn is_defined(&self, address: u64, count: u64) -> bool {
        let Some(Block { allocation, undefined: Some(bytes), .. }) = self.find(address, count) else { return true };
        let at = address - allocation.address;
        bytes.is_clear() || (0..count).step_by(WORD as usize).all(|n| bytes.get(at + n, (count - n).min(WORD)) == 0)
    }

    /// How many bytes of a range of one allocation nothing has written, and where the first of them is; none if all
    /// are written.
    pub(crate) fn undefined_bytes(&self, address: u64, count: u64) -> Option<(u64, u64)> {
        let Some(Block { allocation, undefined: Some(bytes), .. }) = self.find(address, count) else { return None };
        if bytes.is_clear() {
            return None;
        }
        let (at, mut found) = (address - allocation.address, None);
        for start in (0..count).step_by(WORD as usize) {
            let undefined = bytes.get(at + start, (count - start).min(WORD));
            if undefined != 0 {
                let first = address + start + u64::from(undefined.trailing_zeros());
                let (sum, _) = found.get_or_insert((0, first));
                *sum += u64::from(undefined.count_ones());
            }
        }
        found
    }

    /// The bytes of a range hold what those of another do, which may overlap it.
    pub(crate) fn copy_undefined(&self, to: u64, from: u64, count: u64) {
        if !self.follows_undefined() {
            return;
        }
        let parts = || (0..count).step_by(WORD as usize).map(|start| (start, (count - start).min(WORD) as usize));
        let read: Vec<u64> = parts().map(|(start, length)| self.undefined(from + start, length)).collect();
        for ((start, length), undefined) in parts().zip(read) {
            self.set_undefined(to + start, length, undefined);
        }
    }

    /// Up to 64 bytes have been written, with undefined bytes where the mask says so.
    pub(crate) fn set_undefined(&self, address: u64, count: usize, undefined: u64) {
        let Some(Block { allocation, undefined: Some(bytes), .. }) = self.find(address, count as u64) else { return };
        if undefined != 0 || !bytes.is_clear() {
            bytes.set(address - allocation.address, count as u64, undefined);
        }
    }

    /// Bytes of one allocation have been written.
    pub(crate) fn define(&self, address: u64, count: u64) {
        if let Some(Block { allocation, undefined: Some(bytes), .. }) = self.find(address, count) {
            bytes.define(address - allocation.address, count);
        }
    }
}

fn mask(count: u64) -> u64 {
    if count >= WORD { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_defined_one_by_one() {
        let bytes = UndefinedBytes::all(150);
        assert_eq!((bytes.get(0, 64), bytes.get(140, 64)), (u64::MAX, (1 << 10) - 1));
        bytes.set(62, 4, 0b0101);
        assert_eq!((bytes.get(60, 8), bytes.left.load(Ordering::Relaxed)), (0b1101_0111, 148));
        bytes.define(3, 140);
        assert_eq!((bytes.get(0, 8), bytes.get(142, 8)), (0b111, 0b1111_1110));
        bytes.set(0, 3, 0);
        bytes.define(143, 7);
        assert!(bytes.is_clear());
        bytes.set(149, 1, 1);
        assert!(!bytes.is_clear());
    }
}
