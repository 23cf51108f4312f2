//! Inserted code computes, loads and stores; it does not synchronise, call, or change how instructions execute.

use super::first_vector;
use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use crate::hazards::expert_scheduling;
use wavetap_amdgpu::{
    Branch, ConstantClock, Flags, Inst, Memory, Opcode, OpcodeFlags, Operand, RegFile, Target, Value, scalar,
};
use wavetap_analysis::kernel::Body;

/// Checks one body's new code.
pub(crate) fn check(original: &Body, new: &Body, alignment: &Alignment, findings: &mut Vec<Finding>) {
    for id in new.ids().filter(|id| alignment.original(*id).is_none()) {
        let inst = new.inst(id);
        if new.may_be_skipped(id) {
            let message =
                format!("inserted code contains {} where vector instructions may be skipped (s_setvskip)", inst.name());
            findings.push(Finding::new(Rule::Forbidden, message).at(new.address(id)));
        }
        let bad = match inst.variant.branch {
            // Whether it may, is checked in `preserve` and `scheduling`.
            Branch::None => {
                let allowed = sets_flat_scratch(inst, new.target())
                    || sets_high_bits(inst)
                    || reads_clock(inst, new.target())
                    || expert_scheduling::sets(new, id);
                forbidden(inst) && !allowed && !first_vector::repeats_mode(original, new, id)
            }
            Branch::Jump | Branch::Conditional(_) | Branch::End => false,
            _ => true,
        };
        if bad {
            findings.push(
                Finding::new(Rule::Forbidden, format!("inserted code contains {}", inst.name())).at(new.address(id)),
            );
        }
    }
}

/// Instructions that touch what other waves, the host or later vector instructions see.
fn forbidden(inst: &Inst) -> bool {
    inst.variant.flags.contains(Flags::BARRIER)
        || inst.variant.memory == Memory::Message
        || inst.modifiers.gds
        || inst.variant.opcode_flags.contains(OpcodeFlags::STATEFUL)
        // The trap handler's registers, some of which hold the workgroup's ids.
        || inst.writes().any(|reg| reg.file == RegFile::Scalar && (scalar::TTMP0..scalar::M0).contains(&reg.first))
}

/// Whether it sets the high bits of vector register numbers. That original code has its own is checked in
/// `high_registers`.
fn sets_high_bits(inst: &Inst) -> bool {
    inst.variant.opcode_flags.contains(OpcodeFlags::SET_VGPR_MSB)
}

/// Whether it is the message whose answer is the time.
fn reads_clock(inst: &Inst, target: Target) -> bool {
    let Some(ConstantClock::Message(number)) = target.constant_clock() else { return false };
    let asks = |operand: &Operand| operand.value == Value::Imm(number.into());
    inst.opcode() == Opcode::S_SENDMSG_RTN_B64 && inst.operands.iter().any(asks)
}

/// Whether all that the instruction does is to set a half of FLAT_SCRATCH.
fn sets_flat_scratch(inst: &Inst, target: Target) -> bool {
    let low = target.flat_scratch_hwreg().filter(|_| !target.architected_flat_scratch());
    low.zip(inst.sets_hwreg()).is_some_and(|(low, number)| number == low || number == low + 1)
}
