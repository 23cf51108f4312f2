//! Nothing is inserted between instructions that must follow each other: members of a clause, `s_nop` before the
//! message that gives registers back, and what stands between `s_set_gpr_idx_on` and `s_set_gpr_idx_off`, where vector
//! instructions mean other registers than they name.
//!
//! A clause may have become shorter, or two; each has members that follow each other in a clause of the original.
//! Delays (`s_delay_alu`) are hints, and may be anything.

use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{EventHazards, Inst, Memory, Opcode, OpcodeFlags, Role, Value};
use wavetap_analysis::dataflow::Indexing;
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;

/// The message that gives vector registers back (`MSG_DEALLOC_VGPRS`).
const DEALLOC_VGPRS: i64 = 3;
/// Bits of a message's immediate that say which one it is.
const MESSAGE: i64 = 0xff;

/// Checks one body's new code.
pub(crate) fn check(original: &Body, new: &Body, alignment: &Alignment, findings: &mut Vec<Finding>) {
    let before = clauses(original);
    for clause in clauses(new) {
        let mut originals = (clause.first.0..=clause.last.0).map(|id| alignment.original(InstId(id)));
        // In the original they are consecutive, and of one clause.
        let kept = originals.next().flatten().is_some_and(|first| {
            let mut last = first;
            let consecutive = originals.all(|next| {
                last = InstId(last.0 + 1);
                next == Some(last)
            });
            consecutive && (first.0..=last.0).all(|id| is_member(&before, InstId(id)))
        });
        if !kept {
            findings.push(
                Finding::new(Rule::Adjacent, "a clause has members that are not one of the original's")
                    .at(new.address(clause.start)),
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
    let follows_nop = |body: &Body, id: InstId| id.0 > 0 && body.inst(InstId(id.0 - 1)).opcode() == Opcode::S_NOP;
    for id in new.ids().filter(|id| gives_registers_back(new.inst(*id))) {
        let had = alignment.original(id).is_some_and(|old| follows_nop(original, old));
        if had && !follows_nop(new, id) {
            findings.push(
                Finding::new(Rule::Adjacent, "the message that gives registers back does not follow s_nop any more")
                    .at(new.address(id)),
            );
        }
    }
}

/// Instructions that `s_clause` says are issued without others in between, in address order.
struct Clause {
    start: InstId,
    first: InstId,
    last: InstId,
}

/// The clauses of a body, in address order. They end where the code leaves them.
fn clauses(body: &Body) -> Vec<Clause> {
    let mut clauses = Vec::new();
    if !body.opcode_flags().contains(OpcodeFlags::CLAUSE) {
        return clauses;
    }
    for start in body.ids().filter(|id| body.inst(*id).variant.opcode_flags.contains(OpcodeFlags::CLAUSE)) {
        let Some(length) = members(body.inst(start)) else { continue };
        let mut next = start.index() + 1;
        let mut following = |id| body.at_next(body.end_address(id), &mut next);
        let Some(first) = following(start) else { continue };
        let mut last = first;
        for _ in 1..length {
            let Some(member) = following(last) else { break };
            last = member;
        }
        clauses.push(Clause { start, first, last });
    }
    clauses
}

/// How many members an `s_clause` says that it has: one less in bits 5:0 (RDNA ISA guides, "S_CLAUSE").
fn members(inst: &Inst) -> Option<u32> {
    let operand = inst.operand(Role::Simm16).or_else(|| inst.operands.first())?;
    if let Value::Imm(bits) = operand.value { Some((bits as u32 & 0x3f) + 1) } else { None }
}

/// Whether an instruction is a member of one of the clauses.
fn is_member(clauses: &[Clause], id: InstId) -> bool {
    // Of those that begin before it the last one ends last, unless an `s_clause` is itself a member of a clause.
    let begun = clauses.partition_point(|clause| clause.first <= id);
    clauses[..begun].iter().rev().any(|clause| id <= clause.last)
}

/// Whether an instruction sends that message.
pub(crate) fn gives_registers_back(inst: &Inst) -> bool {
    if inst.variant.memory != Memory::Message {
        return false;
    }
    let message = inst.operand(Role::Message).or_else(|| inst.operand(Role::Simm16)).map(|operand| operand.value);
    matches!(message, Some(Value::Imm(bits)) if bits & MESSAGE == DEALLOC_VGPRS)
}
