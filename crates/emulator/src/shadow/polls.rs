//! Waves that repeat an access of global memory until another wave, or the host, changes what is there.
//!
//! A wave waits if it has found the same bytes at the same addresses [`TIMES`] times in a row, with no other access of
//! global memory between, and is in a loop that does nothing else ([`crate::strict::global_races`]). Of a loop that was
//! unrolled several instructions do. That the bytes have changed ends it.
//!
//! In an order that was chosen ([`crate::launch::options::Options::schedule`]) a wave that may have many turns before
//! others have one also gives up its turn in a loop that does something else, as often as it has found the same bytes
//! [`TIMES`] times. It does not count as waiting.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::fault::MemoryAccess;
use crate::memory::View;

/// How often an access has to find the same.
const TIMES: u32 = 16;
/// Bytes of one lane.
const MOST_BYTES: usize = 16;

/// The access of global memory that a wave has repeated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Poll {
    /// Device address of the instruction that did so last.
    pub pc: u64,
    /// Addresses and bytes, those of lanes that access the same once.
    places: Vec<(u64, u8)>,
    /// Of what is there.
    digest: u64,
    times: u32,
    /// Whether the instruction is in a loop that only waits, once that is known.
    in_loop: Option<bool>,
}

impl Poll {
    /// Notes an access; whether the turn of the wave ends, because it waits from now on or, where it `yields`, because
    /// it may wait.
    pub(crate) fn note(
        &mut self,
        (pc, yields): (u64, bool),
        mut places: impl Iterator<Item = (u64, u8)>,
        memory: &View,
        in_loop: impl FnOnce() -> bool,
    ) -> bool {
        let Some(first) = places.next() else { return false };
        self.pc = pc;
        if self.places.first() != Some(&first) {
            (self.times, self.digest, self.in_loop) = (0, 0, None);
            self.places.clear();
            self.places.push(first);
            return false;
        }
        if self.in_loop == Some(false) && !yields {
            return false;
        }
        self.places.truncate(1);
        self.places.extend(places);
        self.places.dedup();
        let digest = self.digest(memory);
        if digest != self.digest {
            (self.times, self.digest) = (0, digest);
            return false;
        }
        self.times = self.times.saturating_add(1);
        let waits = self.times == TIMES && *self.in_loop.get_or_insert_with(in_loop);
        waits || yields && self.times.is_multiple_of(TIMES)
    }

    /// The wave is to try again, whatever has not changed.
    pub(crate) fn try_again(&mut self) {
        self.times = 0;
    }

    /// Whether the wave waits: nothing has changed since it looked.
    pub(crate) fn waits(&self, memory: &View) -> bool {
        self.times >= TIMES && self.in_loop == Some(true) && self.digest(memory) == self.digest
    }

    /// Whether the wave waits, or has tried again in vain.
    pub(crate) fn has_repeated(&self) -> bool {
        self.times > 0 && self.in_loop == Some(true)
    }

    /// Whether there is something else than when the wave looked.
    pub(crate) fn has_changed(&self, memory: &View) -> bool {
        self.digest(memory) != self.digest
    }

    /// The first place.
    pub(crate) fn place(&self) -> Option<(u64, u8)> {
        self.places.first().copied()
    }

    /// All of them.
    pub(crate) fn places(&self) -> &[(u64, u8)] {
        &self.places
    }

    fn digest(&self, memory: &View) -> u64 {
        let mut hasher = FxHasher::default();
        for (address, size) in &self.places {
            let mut bytes = [0; MOST_BYTES];
            let bytes = &mut bytes[..usize::from(*size).min(MOST_BYTES)];
            // What cannot be read does not change.
            let _ = memory.read(*address, bytes, MemoryAccess::Load);
            hasher.write_u64(*address);
            hasher.write(bytes);
        }
        hasher.finish()
    }
}
