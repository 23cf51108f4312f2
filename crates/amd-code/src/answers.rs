//! Where values and lanes come from, as the analyses of AMD's code say.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use crate::access::{extra, lane_access};
use crate::stores::{InBody, Stores};
use wavetap_amdgpu::{MachineFact, Reg, RegFile, Role, scalar};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{Definition, Definitions};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;
use wavetap_code::{Code, DataFlow, LaneAccess, MaskSource, Origin, Values};
use wavetap_memory::{Accesses, Launched, Space, WaveAccesses, space};

/// Answers about one body.
pub(crate) struct Answers<'a> {
    pub(crate) body: &'a Body,
    pub(crate) cfg: &'a Cfg,
    pub(crate) definitions: &'a Definitions<'a>,
    pub(crate) stores: Stores,
    pub(crate) accesses: &'a Accesses<'a, 'a>,
    /// With what is known of the accesses that were looked at.
    pub(crate) lanes: RefCell<(WaveAccesses<'a>, FxHashMap<InstId, Option<LaneAccess>>)>,
    pub(crate) launched: Launched,
}

/// EXEC, as wide as the waves are.
pub(crate) fn exec(body: &Body) -> Reg {
    Reg::scalar(scalar::EXEC, (body.target().wave_size() / 32) as u8)
}

/// Registers that hold data, rather than which lanes or how.
pub(crate) fn is_followed(reg: Reg) -> bool {
    reg.file != RegFile::Scalar || !(reg.overlaps(Reg::EXEC) || reg.first == scalar::MODE)
}

impl Answers<'_> {
    /// Whether it works for lanes. A scalar load is one for the whole wave.
    fn has_lanes(&self, id: InstId) -> bool {
        let exec = exec(self.body);
        self.body.reads(id).any(|reg| reg.overlaps(exec))
    }

    fn written_by(&self, at: InstId, reg: Reg) -> impl Iterator<Item = InstId> + use<> {
        self.definitions.reaching(at, reg).into_iter().filter_map(|definition| match definition {
            Definition::Inst(id) => Some(id),
            Definition::Entry | Definition::Call(_) => None,
        })
    }
}

impl DataFlow for Answers<'_> {
    fn producers(&self, _code: &Code<'_>, at: InstId, of: Values) -> Vec<InstId> {
        let reads: Vec<Reg> = match of {
            Values::All => self.body.reads(at).filter(|reg| is_followed(*reg)).collect(),
            Values::Stored => {
                let is_data = |role| matches!(role, Role::Vdata | Role::Data0 | Role::Data1);
                let data = self.body.inst(at).operands.iter().filter(|operand| is_data(operand.role));
                data.filter_map(|operand| self.body.register(at, operand)).collect()
            }
        };
        reads.into_iter().flat_map(|reg| self.written_by(at, reg)).collect()
    }

    fn lanes_written_by(&self, _code: &Code<'_>, at: InstId) -> Option<InstId> {
        if !self.has_lanes(at) {
            return None;
        }
        match self.definitions.reaching(at, exec(self.body))[..] {
            [Definition::Inst(formed)] => Some(formed),
            _ => None,
        }
    }

    fn mask(&self, _code: &Code<'_>, at: InstId) -> Option<MaskSource> {
        if !self.has_lanes(at) {
            return None;
        }
        let formed = self.definitions.mask_formed_by(at)?;
        let reads = self.body.reads(formed);
        let condition = reads.filter(|reg| reg.file == RegFile::Scalar && !reg.overlaps(Reg::EXEC));
        let compared = condition.flat_map(|reg| self.written_by(formed, reg));
        Some(MaskSource { formed, compared: compared.min_by_key(|id| (formed.0.abs_diff(id.0), *id)) })
    }

    fn origin(&self, _code: &Code<'_>, load: InstId, executed: &dyn Fn(InstId) -> bool) -> Option<Origin> {
        let code = InBody { body: self.body, cfg: self.cfg, definitions: self.definitions };
        self.stores.origin(code, load, executed)
    }

    fn lane_access(&self, _code: &Code<'_>, at: InstId) -> Option<LaneAccess> {
        let mut lanes = self.lanes.borrow_mut();
        let (waves, known) = &mut *lanes;
        *known.entry(at).or_insert_with(|| {
            let all = self.accesses.all();
            let access = &all[all.binary_search_by_key(&at, |access| access.inst).ok()?];
            let line = self.body.target().l1_line_bytes();
            let places = waves.places(access);
            let of_waves: Vec<_> = places.iter().flat_map(|(_, places)| places).collect();
            let is_global = space(access, &of_waves) == Space::Global;
            is_global.then(|| lane_access(&places, &self.launched, line)).flatten()
        })
    }

    fn extra_latency(&self, code: &Code<'_>, at: InstId) -> u32 {
        let bandwidth = u64::from(self.body.target().machine(MachineFact::L1Bandwidth).typical);
        let cycles = self.lane_access(code, at).map_or(0, |access| extra(access, bandwidth));
        u32::try_from(cycles).unwrap_or(u32::MAX)
    }
}
