//! How the lanes of an access lie to each other, as the code of its address says.

use super::Context;
use crate::access::LaneAccess;
use crate::latency::Cycles;
use wavetap_amdgpu::{Flags, MachineFact, Memory, Role};
use wavetap_base::entity::InstId;

impl Context<'_> {
    /// How the lanes of an access to global memory lie to each other; nothing for other instructions, and where the
    /// code does not say.
    pub(super) fn lane_access(&self, id: InstId) -> Option<LaneAccess> {
        let mut strides = self.strides.borrow_mut();
        let (strides, known) = &mut *strides;
        *known.entry(id).or_insert_with(|| {
            let inst = self.body.inst(id);
            let global = matches!(inst.variant.memory, Memory::Global | Memory::Flat);
            if !global
                || !inst.variant.flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC)
                || inst.variant.memory_bytes == 0
            {
                return None;
            }
            let address =
                inst.operands.iter().find(|operand| operand.role.is_address() || operand.role == Role::Addr)?;
            let factors = strides.factors(&self.definitions, id, address)?.map(|factor| factor.map(i64::from));
            let target = self.body.target();
            LaneAccess::new(
                inst.variant.memory_bytes.into(),
                factors,
                &self.launched,
                target.wave_size(),
                target.l1_line_bytes(),
            )
        })
    }

    /// What the lanes' places add to the latency of an operation.
    pub(super) fn scattered(&self, id: InstId, latency: Cycles) -> Cycles {
        let bandwidth = u64::from(self.body.target().machine(MachineFact::L1Bandwidth).typical);
        let extra = self.lane_access(id).map_or(0, |access| access.extra(bandwidth));
        latency.longer_by(u32::try_from(extra).unwrap_or(u32::MAX))
    }
}
