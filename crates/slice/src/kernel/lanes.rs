//! How the lanes of an access lie to each other, as the code of its address says.

use super::Context;
use crate::access::LaneAccess;
use crate::latency::Cycles;
use wavetap_amdgpu::MachineFact;
use wavetap_base::entity::InstId;
use wavetap_memory::{Space, space};

impl Context<'_> {
    /// How the lanes of an access to global memory lie to each other; nothing for other instructions, and where the
    /// code does not say.
    pub(super) fn lane_access(&self, id: InstId) -> Option<LaneAccess> {
        let mut lanes = self.lanes.borrow_mut();
        let (waves, known) = &mut *lanes;
        *known.entry(id).or_insert_with(|| {
            let all = self.accesses.all();
            let access = &all[all.binary_search_by_key(&id, |access| access.inst).ok()?];
            let line = self.body.target().l1_line_bytes();
            let places = waves.places(access);
            let of_waves: Vec<_> = places.iter().flat_map(|(_, places)| places).collect();
            let is_global = space(access, &of_waves) == Space::Global;
            is_global.then(|| LaneAccess::new(&places, &self.launched, line)).flatten()
        })
    }

    /// What the lanes' places add to the latency of an operation.
    pub(super) fn scattered(&self, id: InstId, latency: Cycles) -> Cycles {
        let bandwidth = u64::from(self.body.target().machine(MachineFact::L1Bandwidth).typical);
        let extra = self.lane_access(id).map_or(0, |access| access.extra(bandwidth));
        latency.longer_by(u32::try_from(extra).unwrap_or(u32::MAX))
    }
}
