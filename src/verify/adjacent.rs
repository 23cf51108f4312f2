//! Nothing is inserted between instructions that must follow each other: members of a clause, `s_nop` before the message that gives registers back, and what
//! stands between `s_set_gpr_idx_on` and `s_set_gpr_idx_off`, where vector instructions mean other registers than they name.
//!
//! A clause may have become shorter, or two; each has members that follow each other in a clause of the original. Delays (`s_delay_alu`) are hints, and
//! may be anything.

use super::align::Alignment;
use super::finding::{Finding, Rule};
use crate::dataflow::Indexing;
use crate::entity::InstId;
use crate::isa::{EventHazards, Inst, Memory, Role, Value};
use crate::kernel::{Body, Neighbours};

/// The message that gives vector registers back (`MSG_DEALLOC_VGPRS`).
const DEALLOC_VGPRS: i64 = 3;
/// Bits of a message's immediate that say which one it is.
const MESSAGE: i64 = 0xff;

/// Checks one body's new code.
pub(super) fn check(original: &Body, new: &Body, alignment: &Alignment, findings: &mut Vec<Finding>) {
    let (before, now) = (Neighbours::of(original), Neighbours::of(new));
    for clause in now.clauses() {
        let members: Vec<InstId> = (clause.first.0..=clause.last.0).map(InstId).collect();
        let originals: Option<Vec<InstId>> = members.iter().map(|id| alignment.original(*id)).collect();
        // In the original they are consecutive, and of one clause.
        let kept = originals.is_some_and(|originals| {
            let consecutive = originals.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1);
            let inside = |id: &InstId| before.clauses().iter().any(|clause| clause.first <= *id && *id <= clause.last);
            consecutive && originals.iter().all(inside)
        });
        if !kept {
            findings.push(
                Finding::new(Rule::Adjacent, "a clause has members that are not one of the original's").at(new.address(clause.start)),
            );
        }
    }
    let indexing = Indexing::of(new);
    for id in new.ids().filter(|id| alignment.original(*id).is_none() && indexing.may_be_on(*id)) {
        let message = format!("{} was inserted where vector registers may be indexed", new.inst(id).name());
        findings.push(Finding::new(Rule::Adjacent, message).at(new.address(id)));
    }
    if !new.target().event_hazards().contains(EventHazards::DEALLOC_VGPRS) {
        return;
    }
    let follows_nop = |body: &Body, id: InstId| id.0 > 0 && body.inst(InstId(id.0 - 1)).name() == "s_nop";
    for id in new.ids().filter(|id| gives_registers_back(new.inst(*id))) {
        let had = alignment.original(id).is_some_and(|old| follows_nop(original, old));
        if had && !follows_nop(new, id) {
            findings.push(
                Finding::new(Rule::Adjacent, "the message that gives registers back does not follow s_nop any more").at(new.address(id)),
            );
        }
    }
}

/// Whether an instruction sends that message.
pub(super) fn gives_registers_back(inst: &Inst) -> bool {
    let message = inst.operand(Role::Message).or_else(|| inst.operand(Role::Simm16)).map(|operand| operand.value);
    inst.variant.memory == Memory::Message && matches!(message, Some(Value::Imm(bits)) if bits & MESSAGE == DEALLOC_VGPRS)
}
