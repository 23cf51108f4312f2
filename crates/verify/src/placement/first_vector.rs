//! The first vector instructions of a wave (gfx125x): before a rewritten kernel branches, it comes to a vector memory
//! instruction, of which the first is in no clause, and to a vector ALU instruction, of which the first is `v_nop`
//! (LLVM, pull request 209517, "unclaused vmem workaround").

use crate::alignment::{Alignment, same_encoded};
use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{EventHazards, Flags, Inst, Latency, Opcode, Value};
use wavetap_analysis::kernel::{Body, BodyKind, BundlingConstraints, Flow};
use wavetap_base::entity::InstId;

/// HW_REG_MODE in a `hwreg` operand.
const MODE: u8 = 1;

/// Whether an inserted instruction at a kernel's entry writes the same literal to MODE as the original's first one,
/// which is executed before any other original one. MODE is the same from there on.
pub(crate) fn repeats_mode(original: &Body, new: &Body, id: InstId) -> bool {
    let (inst, first) = (new.inst(id), original.inst(original.entry()));
    id == new.entry()
        && new.kind() == BodyKind::Kernel
        && inst.sets_hwreg() == Some(MODE)
        && has_literal(inst)
        && same_encoded(first, inst)
}

fn has_literal(inst: &Inst) -> bool {
    inst.operands.iter().any(|operand| matches!(operand.value, Value::Literal(_)))
}

/// Checks a kernel's new code.
pub(crate) fn check(new: &Body, alignment: &Alignment, findings: &mut Vec<Finding>) {
    // Where an original instruction is the first, it is the compiler's matter.
    if !new.target().event_hazards().contains(EventHazards::FIRST_VECTOR) || alignment.original(new.entry()).is_some() {
        return;
    }
    let clauses = BundlingConstraints::of(new);
    let in_clause = |id: InstId| clauses.clauses().iter().any(|clause| (clause.first..=clause.last).contains(&id));
    let (mut vector, mut memory) = (false, false);
    let mut at = new.entry();
    while !(vector && memory) {
        let inst = new.inst(at);
        let wrong = if inst.variant.flags.contains(Flags::VALU) {
            let wrong = !vector && inst.opcode() != Opcode::V_NOP;
            vector = true;
            wrong.then_some("the first vector instruction is not v_nop")
        } else if inst.variant.latency == Latency::Vmem {
            let wrong = !memory && in_clause(at);
            memory = true;
            wrong.then_some("the first vector memory instruction is in a clause")
        } else {
            None
        };
        let next = match (new.flow(at), new.next(at)) {
            (Flow::Next, Some(next)) => Ok(next),
            _ => Err("the kernel branches before its first vector and vector memory instruction"),
        };
        let ended = if vector && memory { None } else { next.err() };
        if let Some(what) = wrong.or(ended) {
            let message = format!("{}: {what}, which waves must begin with", inst.name());
            findings.push(Finding::new(Rule::Hazard, message).at(new.address(at)));
            return;
        }
        at = next.unwrap_or(at);
    }
}
