//! Vector registers above v255 (gfx1250): inserted code names those below, and original instructions mean the ones that
//! they mean in the original.

use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{RegFile, VgprMsb};
use wavetap_analysis::kernel::Body;

/// Checks the high bits of vector register numbers at every instruction, as far as the original's are known.
pub(crate) fn check(original: &Body, new: &Body, alignment: &Alignment, findings: &mut Vec<Finding>) {
    for id in new.ids() {
        let (inst, now) = (new.inst(id), new.vgpr_msb_before(id));
        let (expected, whose) = match alignment.original(id) {
            Some(before) => (original.vgpr_msb_before(before), "an original instruction"),
            // Nothing else keeps apart which registers inserted code changes.
            None if inst
                .operands
                .iter()
                .any(|operand| operand.reg().is_some_and(|reg| reg.file == RegFile::Vector)) =>
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
