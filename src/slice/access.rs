//! How the lanes of an access to memory lie to each other, where the code says so, and what that costs.

use serde::{Deserialize, Serialize};

use super::chains::Context;
use super::latency::Cycles;
use crate::entity::InstId;
use crate::isa::{Flags, MachineFact, Memory, Role};

/// The places that neighbouring lanes access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneAccess {
    /// Bytes that each lane accesses.
    pub bytes: u32,
    /// Bytes from the place of a lane to that of the next one in direction x of the workgroup: 0 where all access the same, negative where they go downward.
    pub stride: i64,
    /// Bytes of a line of the vector L1 cache: so much is fetched for a lane at least.
    pub line: u32,
    /// How many of these, on average, some lane accesses.
    pub used: u32,
}

impl LaneAccess {
    fn new(bytes: u32, stride: i64, line: u32) -> LaneAccess {
        let apart = u32::try_from(stride.unsigned_abs()).unwrap_or(u32::MAX);
        let used = match apart {
            // One line for all, of which as much is used as one lane accesses.
            0 => bytes.min(line),
            apart if apart <= bytes => line,
            apart if apart < line => u32::try_from(u64::from(line) * u64::from(bytes) / u64::from(apart)).unwrap_or(line),
            _ => bytes.min(line),
        };
        LaneAccess { bytes, stride, line, used }
    }

    /// Whether more is fetched than if the lanes were next to each other.
    #[must_use]
    pub fn scattered(self) -> bool {
        self.stride != 0 && self.used < self.line
    }

    /// What it takes longer than if the lanes were next to each other, in cycles: the L1 cache gives so many bytes in one.
    fn extra(self, lanes: u32, bandwidth: u64) -> u64 {
        if !self.scattered() {
            return 0;
        }
        let dense = u64::from(lanes) * u64::from(self.bytes);
        let fetched = dense * u64::from(self.line) / u64::from(self.used.max(1));
        (fetched - dense) / bandwidth.max(1)
    }
}

impl Context<'_> {
    /// How the lanes of an access to global memory lie to each other; nothing for other instructions, and where the code does not say.
    pub(super) fn lane_access(&self, id: InstId) -> Option<LaneAccess> {
        let mut strides = self.strides.borrow_mut();
        let (strides, known) = &mut *strides;
        *known.entry(id).or_insert_with(|| {
            let inst = self.body.inst(id);
            let global = matches!(inst.variant.memory, Memory::Global | Memory::Flat);
            if !global || !inst.variant.flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC) || inst.variant.memory_bytes == 0 {
                return None;
            }
            let address = inst.operands.iter().find(|operand| operand.role.is_address() || operand.role == Role::Addr)?;
            let stride = strides.of(&self.definitions, id, address)?;
            Some(LaneAccess::new(inst.variant.memory_bytes.into(), stride.into(), self.body.target().l1_line_bytes()))
        })
    }

    /// What the lanes' places add to the latency of an operation.
    pub(super) fn scattered(&self, id: InstId, latency: Cycles) -> Cycles {
        let target = self.body.target();
        let bandwidth = u64::from(target.machine(MachineFact::L1Bandwidth).typical);
        let extra = self.lane_access(id).map_or(0, |access| access.extra(target.wave_size(), bandwidth));
        latency.longer_by(u32::try_from(extra).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_of_a_line_and_what_the_rest_costs() {
        let of = |bytes, stride| LaneAccess::new(bytes, stride, 64);
        let cases = [
            ((4, 4), 64, 0),
            ((4, -4), 64, 0),
            ((4, 0), 4, 0),
            ((4, 8), 32, 4),
            ((8, 24), 21, 16),
            ((4, 64), 4, 60),
            ((4, 400), 4, 60),
            ((16, 4096), 16, 48),
        ];
        for ((bytes, stride), used, extra) in cases {
            let access = of(bytes, stride);
            assert_eq!((access.used, access.extra(64, 64)), (used, extra), "{access:?}");
        }
    }
}
