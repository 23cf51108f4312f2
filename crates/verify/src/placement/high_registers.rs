//! Vector registers above v255 (gfx1250): inserted code uses those below, or such above as no original code has, and
//! original instructions mean the ones that they mean in the original.

use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{Memory, Reg, RegFile, VgprMsb};
use wavetap_analysis::dataflow::UsedRegisters;
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;

/// The registers that instructions can number.
const NUMBERED: u16 = 256;

/// What original code has of vector registers.
#[derive(Clone, Copy)]
pub(crate) struct Originals {
    /// The registers that it names.
    pub(crate) used: UsedRegisters,
    /// How many are allocated for it.
    pub(crate) allocated: u32,
}

impl Originals {
    /// Whether a register is above v255, and no original code has it.
    fn leave(&self, reg: Reg) -> bool {
        let chosen = self.used.indexed && u32::from(reg.first) < self.allocated;
        reg.first >= NUMBERED && !chosen && !self.used.named.overlaps(reg)
    }
}

/// Whether all vector registers of an inserted instruction are inserted code's own, above v255. Spill slots in scratch
/// memory are followed for lower registers alone.
fn is_own(new: &Body, id: InstId, originals: &Originals) -> bool {
    let inst = new.inst(id);
    let mut vectors = new.reads(id).chain(new.writes(id)).filter(|reg| reg.file == RegFile::Vector);
    new.vgpr_msb_before(id).is_some()
        && !matches!(inst.variant.memory, Memory::Scratch | Memory::Buffer)
        && vectors.all(|reg| originals.leave(reg))
}

/// Checks the high bits of vector register numbers at every instruction, as far as the original's are known.
pub(crate) fn check(
    original: &Body,
    new: &Body,
    alignment: &Alignment,
    originals: &Originals,
    findings: &mut Vec<Finding>,
) {
    for id in new.ids() {
        let (inst, now) = (new.inst(id), new.vgpr_msb_before(id));
        let (expected, whose) = match alignment.original(id) {
            Some(before) => (original.vgpr_msb_before(before), "an original instruction"),
            // Nothing else keeps apart which registers inserted code changes.
            None if inst
                .operands
                .iter()
                .any(|operand| operand.reg().is_some_and(|reg| reg.file == RegFile::Vector))
                && !is_own(new, id, originals) =>
            {
                (Some(VgprMsb::default()), "inserted code")
            }
            None => continue,
        };
        if expected.is_some() && expected != now {
            let message = format!(
                "{}: {whose} runs with other high bits of vector registers (s_set_vgpr_msb) than it needs",
                inst.name()
            );
            findings.push(Finding::new(Rule::Clobbered, message).at(new.address(id)));
            // All that follow say the same.
            return;
        }
    }
}
