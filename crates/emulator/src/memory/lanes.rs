//! Loads and stores of the lanes of a wave in one allocation: run by run ([`Runs`]).

use std::sync::atomic::{Ordering, fence};

use vm_memory::VolatileArrayRef;

use super::{Span, with_bytes};
use crate::lanes::elements;
use crate::lanes::runs::{Run, RunKind, Runs};
use crate::lanes::{LANES, Register, Row, active};

/// Lanes at places that follow each other are loaded and stored together from so many on.
const FEW: usize = 4;

/// Where lanes are in an allocation.
pub(crate) struct LanePlaces<'a> {
    /// What the places count from, in the allocation.
    pub origin: usize,
    /// What is accessed from each place on is in bounds, for active lanes.
    pub places: &'a Row,
    pub runs: Runs,
    /// Bytes that a lane accesses.
    pub size: usize,
}

impl LanePlaces<'_> {
    fn at(&self, lane: usize) -> usize {
        self.origin + self.places[lane] as usize
    }
}

/// The aligned dwords of an allocation from an offset on.
struct Words<'a>(Option<VolatileArrayRef<'a, u32>>);

impl<'a> Words<'a> {
    fn of(memory: &'a Span, origin: usize) -> Words<'a> {
        let rest = memory.len().saturating_sub(origin);
        Words(memory.words(origin, rest / 4))
    }

    /// A dword at a place: none if it is not aligned. The caller orders the loads.
    #[inline(always)]
    fn load(&self, place: usize) -> Option<u32> {
        let words = self.0.as_ref().filter(|words| place.is_multiple_of(4) && place / 4 < words.len())?;
        Some(u32::from_le(words.load(place / 4)))
    }
}

/// Loads the active lanes into rows, one for each dword; none if something is out of bounds.
pub(crate) fn load_lanes(
    memory: &Span,
    rows: &mut [Box<Register>],
    lanes: &LanePlaces<'_>,
    extend: impl Fn(&[u8]) -> u32,
) -> Option<()> {
    if lanes.size < 4 {
        return load_parts(memory, &mut rows.first_mut()?.0, lanes, extend);
    }
    let words = Words::of(memory, lanes.origin);
    for run in lanes.runs {
        if run.kind == RunKind::Following && run.count >= FEW {
            load_following(memory, rows, lanes, run)?;
            continue;
        }
        if let (RunKind::Scattered, [row]) = (run.kind, &mut *rows) {
            for (cell, &place) in row[run.lanes()].iter_mut().zip(&lanes.places[run.lanes()]) {
                *cell = match words.load(place as usize) {
                    Some(word) => word,
                    None => memory.load32(lanes.origin + place as usize)?,
                };
            }
            continue;
        }
        let distinct = if run.kind == RunKind::Same { 1 } else { run.count };
        for lane in run.first..run.first + distinct {
            let place = lanes.places[lane] as usize;
            for (n, pair) in rows.chunks_mut(2).enumerate() {
                let place = place + 8 * n;
                match pair {
                    // In one step, as a GPU does: workgroups publish a value and a flag in one word of 64 bits.
                    [low, high] => {
                        let both = memory.load64(lanes.origin + place)?;
                        (low[lane], high[lane]) = (both as u32, (both >> 32) as u32);
                    }
                    rest => {
                        for row in rest {
                            row[lane] = match words.load(place) {
                                Some(word) => word,
                                None => memory.load32(lanes.origin + place)?,
                            };
                        }
                    }
                }
            }
        }
        if run.kind == RunKind::Same {
            for row in &mut *rows {
                let value = row[run.first];
                row[run.lanes()].fill(value);
            }
        }
    }
    fence(Ordering::Acquire);
    Some(())
}

/// Loads lanes at places that follow each other.
fn load_following(memory: &Span, rows: &mut [Box<Register>], lanes: &LanePlaces<'_>, run: Run) -> Option<()> {
    with_bytes(rows.len(), run.count, |bytes| {
        memory.read(lanes.at(run.first), bytes)?;
        elements::scatter(bytes, rows, run.lanes());
        Some(())
    })
}

/// Loads bytes and halves.
fn load_parts(memory: &Span, row: &mut Row, lanes: &LanePlaces<'_>, extend: impl Fn(&[u8]) -> u32) -> Option<()> {
    let mut bytes = [0; 2 * LANES];
    let size = lanes.size;
    for run in lanes.runs {
        if run.kind == RunKind::Scattered {
            for lane in run.lanes() {
                let bytes = bytes.get_mut(..size)?;
                memory.read(lanes.at(lane), bytes)?;
                row[lane] = extend(bytes);
            }
            continue;
        }
        let same = run.kind == RunKind::Same;
        let bytes = bytes.get_mut(..if same { size } else { run.count * size })?;
        memory.read(lanes.at(run.first), bytes)?;
        if same {
            row[run.lanes()].fill(extend(bytes));
        } else {
            let parts = bytes.chunks_exact(size);
            row[run.lanes()].iter_mut().zip(parts).for_each(|(cell, bytes)| *cell = extend(bytes));
        }
    }
    Some(())
}

/// Stores the active lanes, the lowest first; none if something is out of bounds.
pub(crate) fn store_runs(memory: &Span, registers: &[Box<Register>], lanes: &LanePlaces<'_>) -> Option<()> {
    for run in lanes.runs {
        if run.kind == RunKind::Following && run.count >= FEW {
            store_following(memory, registers, lanes, run)?;
        } else {
            let mask = (u64::MAX >> (LANES - run.count)) << run.first;
            store_lanes(memory, registers, mask, lanes.size, |lane| lanes.at(lane))?;
        }
    }
    Some(())
}

/// Stores lanes at places that follow each other.
fn store_following(memory: &Span, registers: &[Box<Register>], lanes: &LanePlaces<'_>, run: Run) -> Option<()> {
    with_bytes(registers.len(), run.count, |bytes| {
        let bytes = bytes.get_mut(..run.count * lanes.size)?;
        if lanes.size < 4 {
            let values = registers.first()?[run.lanes()].iter();
            bytes.chunks_exact_mut(lanes.size).zip(values).for_each(|(bytes, value)| {
                bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]);
            });
        } else {
            elements::gather(registers, run.lanes(), bytes);
        }
        memory.write(lanes.at(run.first), bytes)
    })
}

/// Stores an element of each lane in a mask, each at its place; none if one is out of bounds.
#[inline]
pub(crate) fn store_lanes(
    memory: &Span,
    registers: &[Box<Register>],
    mask: u64,
    size: usize,
    at: impl Fn(usize) -> usize,
) -> Option<()> {
    if size == 4 {
        for lane in active(mask) {
            memory.store32(at(lane), registers[0][lane])?;
        }
        return Some(());
    }
    for lane in active(mask) {
        if size < 4 {
            memory.write(at(lane), &registers[0][lane].to_le_bytes()[..size])?;
            continue;
        }
        for (n, pair) in registers.chunks(2).enumerate() {
            let place = at(lane) + 8 * n;
            match pair {
                [low, high] => memory.store64(place, u64::from(low[lane]) | u64::from(high[lane]) << 32)?,
                rest => rest.iter().try_for_each(|register| memory.store32(place, register[lane]))?,
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::memory::{AllocationKind, Memory};

    /// What one thread stores in one step, another one never sees half of, whatever the places of the lanes are.
    #[test]
    fn aligned_words_of_64_bits_are_loaded_in_one_step() {
        const LOADS: usize = 200_000;
        let mut memory = Memory::new();
        let address = memory.malloc(4096, 256, AllocationKind::Device).expect("memory");
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let view = memory.view();
                let span = view.span_to_write(address).expect("a span");
                for value in [u64::MAX, 0].into_iter().cycle() {
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                    (0..512).for_each(|n| span.store64(8 * n, value).expect("in bounds"));
                }
            });
            let view = memory.view();
            let span = view.span(address).expect("a span");
            // The same place, places that follow each other (few and many), and others.
            let kinds: [(u32, u64); 4] = [(0, 0b1111), (8, 0b11), (8, u64::MAX), (56, u64::MAX)];
            let torn = (0..LOADS).find(|n| {
                let (step, mask) = kinds[n % kinds.len()];
                let places = std::array::from_fn(|lane| step * lane as u32);
                let runs = Runs::of(&places, 8, mask);
                let mut rows = [Box::default(), Box::default()];
                let lanes = LanePlaces { origin: 0, places: &places, runs, size: 8 };
                load_lanes(&span, &mut rows, &lanes, |_| 0).expect("in bounds");
                let [low, high] = &rows;
                active(mask).any(|lane| low[lane] != high[lane])
            });
            ended.store(true, Ordering::Relaxed);
            assert_eq!(torn, None, "a load that saw half of a store");
        });
    }
}
