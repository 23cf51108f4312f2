//! The new code as the original instructions with others inserted.
//!
//! Which new instruction is which original one is read from the site table, and believed only as far as it can be
//! checked: every original instruction has exactly one place; what stands there is the same instruction, but for a
//! branch's displacement; and from each original instruction control reaches, through inserted instructions only,
//! exactly the original instructions that followed it in the original.

use rustc_hash::FxHashSet;

use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{Branch, Counter, Inst, Opcode, OpcodeFlags, Role, Value};
use wavetap_analysis::kernel::{Body, CallTarget, Flow};
use wavetap_base::entity::InstId;

/// Which new instruction is which original one.
#[derive(Debug)]
pub(crate) struct Alignment {
    /// By new instruction: the original one; none for an inserted one.
    original_of: Vec<Option<InstId>>,
    /// By original instruction: the new one.
    new_of: Vec<InstId>,
}

impl Alignment {
    /// An alignment in which these instructions are inserted and all others original.
    #[cfg(test)]
    pub(crate) fn of_inserted(new: &Body, inserted: &[u32]) -> Alignment {
        let original_of: Vec<_> = new.ids().map(|id| (!inserted.contains(&id.0)).then_some(id)).collect();
        Alignment { original_of, new_of: new.ids().collect() }
    }

    /// The original instruction that a new one is; none if it was inserted.
    pub(crate) fn original(&self, new: InstId) -> Option<InstId> {
        self.original_of[new.index()]
    }

    /// Where an original instruction is now.
    pub(crate) fn new_of(&self, original: InstId) -> InstId {
        self.new_of[original.index()]
    }

    /// Aligns two bodies by pairs of instructions, original and new; all that does not fit is a finding. Without an
    /// alignment nothing else about the code can be checked. Calls of functions that were copied to addresses from
    /// `new_code` on are added to `calls`: original function, copy. `dropping`: addresses of accesses that lanes may
    /// not execute.
    pub(crate) fn find(
        original: &Body,
        new: &Body,
        pairs: &[(InstId, InstId)],
        (new_code, dropping): (u64, &FxHashSet<u64>),
        calls: &mut Vec<(u64, u64)>,
        findings: &mut Vec<Finding>,
    ) -> Option<Alignment> {
        let before = findings.len();
        let mut original_of = vec![None; new.len()];
        let mut new_of = vec![None; original.len()];
        for &(old_id, new_id) in pairs {
            let complain = |message: String| Finding::new(Rule::Skeleton, message).at(new.address(new_id));
            let was_at = original.address(old_id);
            if original_of[new_id.index()].replace(old_id).is_some() || new_of[old_id.index()].replace(new_id).is_some()
            {
                findings.push(complain(format!("{was_at:#x} has two places or shares one")));
            }
            let new_inst = new.inst(new_id);
            if !same(original, old_id, new_inst) && !is_dissolved(original, old_id, new_inst, dropping) {
                let (was, is) = (original.inst(old_id).name(), new.inst(new_id).name());
                findings.push(complain(format!("{was} of {was_at:#x} became {is} or has other operands")));
            }
        }
        for (index, place) in new_of.iter().enumerate() {
            if place.is_none() {
                let message =
                    format!("the original instruction at {:#x} is missing", original.address(InstId(index as u32)));
                findings.push(Finding::new(Rule::Skeleton, message));
            }
        }
        if findings.len() != before {
            return None;
        }
        let new_of = new_of.into_iter().flatten().collect();
        let alignment = Alignment { original_of, new_of };
        alignment.check_flow(original, new, (new_code, calls), findings);
        Some(alignment)
    }

    /// From every original instruction, control reaches the same original instructions as before.
    fn check_flow(
        &self,
        original: &Body,
        new: &Body,
        copies: (u64, &mut Vec<(u64, u64)>),
        findings: &mut Vec<Finding>,
    ) {
        let (new_code, calls) = copies;
        let (bodies, walk) = ((original, new), &mut Walk::new(new));
        self.leads_to(bodies, (new.entry(), original.entry()), walk, || "the entry".to_owned(), findings);
        for old_id in original.ids() {
            let new_id = self.new_of(old_id);
            let text = || format!("{} of {:#x}", original.inst(old_id).name(), original.address(old_id));
            let (old_flow, new_flow) = (original.flow(old_id), new.flow(new_id));
            let fits = match (old_flow, new_flow) {
                (Flow::Jump(old_to), Flow::Jump(new_to)) | (Flow::Branch(old_to), Flow::Branch(new_to)) => {
                    self.leads_to(bodies, (new_to, old_to), walk, text, findings);
                    true
                }
                (Flow::Call(CallTarget::Known(function)), Flow::Call(CallTarget::Known(copy)))
                | (Flow::TailCall(CallTarget::Known(function)), Flow::TailCall(CallTarget::Known(copy)))
                    if copy >= new_code =>
                {
                    calls.push((function, copy));
                    true
                }
                (old, new) => old == new,
            };
            if !fits {
                let message = format!("{} goes elsewhere: {old_flow:?} became {new_flow:?}", text());
                findings.push(Finding::new(Rule::Branch, message).at(new.address(new_id)));
            } else if let Some(old_next) = original.next(old_id) {
                match new.next(new_id) {
                    Some(new_next) => {
                        self.leads_to(
                            bodies,
                            (new_next, old_next),
                            walk,
                            || format!("what follows {}", text()),
                            findings,
                        );
                    }
                    None => findings.push(
                        Finding::new(Rule::Branch, format!("nothing follows {}", text())).at(new.address(new_id)),
                    ),
                }
            }
        }
    }

    /// Checks that `from` leads through inserted instructions to `wanted` and to no other original instruction.
    fn leads_to(
        &self,
        (original, new): (&Body, &Body),
        (from, wanted): (InstId, InstId),
        walk: &mut Walk,
        what: impl Fn() -> String,
        findings: &mut Vec<Finding>,
    ) {
        if self.original(from) == Some(wanted) {
            return;
        }
        walk.begin(from);
        let mut arrives = false;
        while let Some(id) = walk.next() {
            match self.original(id) {
                Some(found) if found == wanted => arrives = true,
                Some(found) => {
                    let (found, wanted) = (original.address(found), original.address(wanted));
                    let message = format!("{} should lead to {wanted:#x}, and leads to {found:#x}", what());
                    findings.push(Finding::new(Rule::Branch, message).at(new.address(id)));
                    return;
                }
                // Ending early is the same where the original ends at once.
                None if new.flow(id) == Flow::End && original.flow(wanted) == Flow::End => arrives = true,
                None if new.flow(id) == Flow::End => {
                    let message = format!("after {}, inserted code ends the wave", what());
                    findings.push(Finding::new(Rule::Forbidden, message).at(new.address(id)));
                    return;
                }
                None => {
                    // The probes' code goes forward only: one that comes back might never arrive.
                    if new.successors(id).any(|next| next <= id && self.leads_back(new, next, id)) {
                        let message = format!("after {}, inserted code may loop forever", what());
                        findings.push(Finding::new(Rule::Branch, message).at(new.address(id)));
                        return;
                    }
                    walk.work.extend(new.successors(id));
                }
            }
        }
        if !arrives {
            let message = format!("{} never leads to {:#x}", what(), original.address(wanted));
            findings.push(Finding::new(Rule::Branch, message).at(new.address(from)));
        }
    }

    /// Whether inserted code alone leads from one instruction to another.
    fn leads_back(&self, new: &Body, from: InstId, to: InstId) -> bool {
        let (mut seen, mut work) = (FxHashSet::default(), vec![from]);
        // Reachability: the search ends when it has arrived.
        while let Some(id) = work.pop() {
            if id == to {
                return true;
            }
            if self.original(id).is_none() && seen.insert(id) {
                work.extend(new.successors(id));
            }
        }
        false
    }
}

/// A walk from one new instruction to others, of which there are many: each visits an instruction once.
struct Walk {
    /// By instruction: the last walk that visited it, by number from 1.
    visited: Vec<u32>,
    number: u32,
    work: Vec<InstId>,
}

impl Walk {
    fn new(new: &Body) -> Walk {
        Walk { visited: vec![0; new.len()], number: 0, work: Vec::new() }
    }

    fn begin(&mut self, from: InstId) {
        self.number += 1;
        self.work.clear();
        self.work.push(from);
    }

    /// The next instruction, which was not visited before in this walk.
    fn next(&mut self) -> Option<InstId> {
        loop {
            let id = self.work.pop()?;
            if std::mem::replace(&mut self.visited[id.index()], self.number) != self.number {
                return Some(id);
            }
        }
    }
}

/// Whether `new` is the original instruction: the same but for a displacement or a delay, which is a hint; or, for a
/// jump through a register whose target inside the body is known, a direct jump; or, for a call of a known function,
/// another one that leaves the return address in the same place. Where jumps and calls go is checked apart from this.
fn same(original: &Body, id: InstId, new: &Inst) -> bool {
    let old = original.inst(id);
    if original.flow(id) == Flow::Next {
        return same_encoded(old, new);
    }
    if matches!(original.flow(id), Flow::Jump(_))
        && old.variant.branch == Branch::IndirectJump
        && new.variant.branch == Branch::Jump
    {
        return true;
    }
    let is_call = |inst: &Inst| matches!(inst.variant.branch, Branch::Call | Branch::IndirectCall);
    let link = |inst: &Inst| inst.operand(Role::Sdst).and_then(|operand| operand.reg());
    match original.flow(id) {
        Flow::Call(CallTarget::Known(_)) if is_call(new) => return link(old) == link(new),
        Flow::TailCall(CallTarget::Known(_)) if new.variant.branch == Branch::IndirectJump => return true,
        _ => {}
    }
    same_encoded(old, new)
}

/// Whether the `s_clause` of an access that lanes may not execute became `s_nop 0`, where it is a hint: memory
/// instructions are not replayed as a clause.
fn is_dissolved(original: &Body, id: InstId, new: &Inst, dropping: &FxHashSet<u64>) -> bool {
    let old = original.inst(id);
    let Some(Value::Imm(length)) = old.operand(Role::Simm16).map(|operand| operand.value) else { return false };
    let members = original.ids().skip(id.index() + 1).take((length & 63) as usize + 1);
    old.variant.opcode_flags.contains(OpcodeFlags::CLAUSE)
        && members.into_iter().any(|member| dropping.contains(&original.address(member)))
        && original.target().largest_wait(Counter::X).is_none()
        && new.opcode() == Opcode::S_NOP
        && old.size == new.size
        && new.operands.iter().all(|operand| operand.value == Value::Imm(0))
}

/// Whether two instructions are the same but for a displacement or a delay.
pub(crate) fn same_encoded(old: &Inst, new: &Inst) -> bool {
    let may_differ = |role: Role| {
        matches!(role, Role::SimmTarget | Role::Delay)
            || (role == Role::Simm16 && old.variant.opcode_flags.contains(OpcodeFlags::CLAUSE))
    };
    // What has no fields for modifiers has none.
    let has_modifiers = || !old.variant.layout.modifiers.is_empty() || old.variant.layout.has_parts;
    std::ptr::eq(old.variant, new.variant)
        && old.size == new.size
        && (!has_modifiers() || old.modifiers == new.modifiers)
        && old.ignored == new.ignored
        && old.operands.len() == new.operands.len()
        && old.operands.iter().zip(&new.operands).all(|(a, b)| a == b || (a.role == b.role && may_differ(a.role)))
}
