//! Operations with a simple case, which is all that loops of vector instructions do.

use super::{
    ARCH, ActiveLanes, BitOperation, Bits, DoubleBits, Lane, LaneBit, Operation, Row, Rows, WideRows, active, wide,
};
use crate::float::Env;

/// An operation of many cases, of which nearly all lanes have one that is simple.
///
/// `simple` is compiled to loops of vector instructions, so it has no branches and no calls. Its bit says that the case
/// is another one and the value means nothing: the lane is then done with `general`, which is right in all cases.
#[derive(Clone, Copy)]
struct Simplified<F, S> {
    general: F,
    simple: S,
}

impl<F: Lane, S: LaneBit> Operation for Simplified<F, S> {
    fn lane(&self, env: &Env, sources: &[u64; 4]) -> u64 {
        (self.general)(env, sources)
    }

    fn words(&self, a: &Row, b: &Row, c: &Row, out: &mut Row, lanes: ActiveLanes) {
        let others = ARCH.dispatch(Bits(self.simple, [a, b, c], out, lanes.halves)) & lanes.mask;
        for lane in active(others) {
            out[lane] = (self.general)(&Env::USUAL, &of_lane([a, b, c], lane)) as u32;
        }
    }

    fn doubles(&self, sources: WideRows<'_>, out: [&mut Row; 2], lanes: ActiveLanes) {
        let [low, high] = out;
        let others = ARCH.dispatch(DoubleBits(self.simple, sources, [&mut *low, &mut *high], lanes.halves));
        for lane in active(others & lanes.mask) {
            let value = (self.general)(&Env::USUAL, &of_wide_lane(sources, lane));
            (low[lane], high[lane]) = (value as u32, (value >> 32) as u32);
        }
    }
}

/// In the simple case the bit that the operation gives is zero.
impl<F: LaneBit, S: LaneBit> BitOperation for Simplified<F, S> {
    fn lane(&self, env: &Env, sources: &[u64; 4]) -> (u64, bool) {
        (self.general)(env, sources)
    }

    fn words(&self, a: &Row, b: &Row, c: &Row, out: &mut Row, lanes: ActiveLanes) -> u64 {
        let others = ARCH.dispatch(Bits(self.simple, [a, b, c], out, lanes.halves)) & lanes.mask;
        let mut bits = 0;
        for lane in active(others) {
            let (value, bit) = (self.general)(&Env::USUAL, &of_lane([a, b, c], lane));
            out[lane] = value as u32;
            bits |= u64::from(bit) << lane;
        }
        bits
    }

    fn doubles(&self, sources: WideRows<'_>, out: [&mut Row; 2], lanes: ActiveLanes) -> u64 {
        let [low, high] = out;
        let others = ARCH.dispatch(DoubleBits(self.simple, sources, [&mut *low, &mut *high], lanes.halves));
        let mut bits = 0;
        for lane in active(others & lanes.mask) {
            let (value, bit) = (self.general)(&Env::USUAL, &of_wide_lane(sources, lane));
            (low[lane], high[lane]) = (value as u32, (value >> 32) as u32);
            bits |= u64::from(bit) << lane;
        }
        bits
    }
}

/// The sources of a lane.
pub(crate) fn of_lane([a, b, c]: Rows<'_>, lane: usize) -> [u64; 4] {
    [u64::from(a[lane]), u64::from(b[lane]), u64::from(c[lane]), 0]
}

/// The sources of a lane, each of two dwords.
pub(crate) fn of_wide_lane(sources: WideRows<'_>, lane: usize) -> [u64; 4] {
    let [a, b, c] = sources.map(|[low, high]| wide([low, high], lane));
    [a, b, c, 0]
}

/// An operation with a simple case.
pub(crate) fn simplified(general: impl Lane, simple: impl LaneBit) -> &'static dyn Operation {
    Box::leak(Box::new(Simplified { general, simple }))
}

/// See [`simplified`].
pub(crate) fn simplified_bit(general: impl LaneBit, simple: impl LaneBit) -> &'static dyn BitOperation {
    Box::leak(Box::new(Simplified { general, simple }))
}
