//! Which instructions are counted, and in which order their counters lie in a record.

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{Branch, Condition, Inst, Reg, Role, Value, scalar};
use wavetap_analysis::kernel::{Body, Reason, Refusal, Stop};
use wavetap_base::entity::InstId;
use wavetap_profile::map::{Site, SiteKind};
use wavetap_profile::record::{COUNTER, HEADER};

/// How a site is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// EXEC becomes `EXEC & mask` (or `EXEC & ~mask`), by a scalar instruction.
    Mask { mask: Value, complemented: bool },
    /// EXEC becomes the lanes for which a comparison holds.
    Compare,
    /// A scalar branch.
    Branch(Condition),
}

impl Probe {
    /// What the instruction counts as, if it is a site.
    fn of(inst: &Inst, lanes: u32) -> Option<Probe> {
        let value = |role| inst.operand(role).map(|operand| operand.value);
        // In waves of 32 EXEC is its low half, and the instructions on masks are those of 32 bits.
        let exec = Some(Value::Reg(Reg::scalar(scalar::EXEC, (lanes / 32) as u8)));
        let (src0, src1) = (value(Role::Src0), value(Role::Src1));
        let mask = |mask: Option<Value>, complemented| Some(Probe::Mask { mask: mask?, complemented });
        let on_masks = wavetap_amdgpu::operation(inst.name()).strip_suffix(if lanes == 32 { "_b32" } else { "_b64" });
        match on_masks {
            Some("s_and_saveexec") => mask(src0, false),
            Some("s_andn1_saveexec" | "s_andn1_wrexec") => mask(src0, true),
            Some("s_and") if value(Role::Sdst) == exec && src0 == exec => mask(src1, false),
            Some("s_and") if value(Role::Sdst) == exec && src1 == exec => mask(src0, false),
            Some("s_andn2") if value(Role::Sdst) == exec && src0 == exec => mask(src1, true),
            _ if inst.name().starts_with("v_cmpx_") => Some(Probe::Compare),
            _ => match inst.variant.branch {
                Branch::Conditional(Condition::Debug) => None,
                Branch::Conditional(condition) => Some(Probe::Branch(condition)),
                _ => None,
            },
        }
    }

    pub(super) fn kind(self) -> SiteKind {
        match self {
            Probe::Mask { .. } | Probe::Compare => SiteKind::Exec,
            Probe::Branch(_) => SiteKind::Scalar,
        }
    }
}

/// A site's instruction, the way it is counted, and the offset of its counters in a record.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) inst: InstId,
    pub(super) probe: Probe,
    pub(super) offset: u32,
}

/// The sites of a kernel and of the functions that go with it, each with the offset of its counters in a record.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// In the order of their counters.
    pub(super) sites: Vec<Site>,
    by_address: FxHashMap<u64, usize>,
    counters: u32,
}

impl Table {
    /// Adds a body's sites. Bodies may share code: an instruction has the same counters in all of them.
    pub(super) fn add(&mut self, body: &Body) -> Result<Vec<Planned>, Stop> {
        let mut planned = Vec::new();
        for id in body.ids() {
            let inst = body.inst(id);
            let Some(probe) = Probe::of(inst, body.target().wave_size()) else { continue };
            let address = body.address(id);
            if let Probe::Mask { mask: Value::Reg(mask), .. } = probe
                && matches!(mask.first, scalar::SCC | scalar::VCCZ | scalar::EXECZ)
            {
                let detail = format!("{} takes its mask from a status bit", inst.name());
                return Err(Refusal::at(Reason::MaskOperand, address, detail).into());
            }
            let index = *self.by_address.entry(address).or_insert_with(|| {
                let kind = probe.kind();
                let offset = HEADER + self.counters * COUNTER;
                self.counters += kind.counters();
                self.sites.push(Site { address, instruction: wavetap_amdgpu::print(body.target(), inst), kind, source: None, offset });
                self.sites.len() - 1
            });
            planned.push(Planned { inst: id, probe, offset: self.sites[index].offset });
        }
        Ok(planned)
    }

    /// Where each site's counters end, in bytes behind the record's header.
    pub(super) fn ends(&self) -> Vec<u32> {
        self.sites.iter().map(|site| site.offset - HEADER + site.kind.counters() * COUNTER).collect()
    }

    /// How many counters the sites have.
    pub(super) fn counters(&self) -> u32 {
        self.counters
    }
}
