//! Stores of the lanes of a wave into one allocation.

use super::Span;
use crate::lanes::{Register, active};

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
