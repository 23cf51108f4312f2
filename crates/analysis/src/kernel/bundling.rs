//! What ties instructions to their neighbours: the members of a clause, and the instructions that `s_delay_alu` speaks
//! of.
//!
//! A dual instruction (VOPD) is one instruction here, so nothing can come between its two operations.

use rustc_hash::FxHashMap;

use super::body::Body;
use wavetap_amdgpu::{Inst, OpcodeFlags, Role, Value};
use wavetap_base::entity::InstId;

/// Instructions that `s_clause` says are issued without others in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clause {
    /// The `s_clause`.
    pub start: InstId,
    /// The first member.
    pub first: InstId,
    /// The last member; before the length that the clause gives, if the code leaves it earlier.
    pub last: InstId,
    /// Members after which the clause may be interrupted, each time; 0: nowhere.
    pub break_span: u8,
}

/// What an instruction is delayed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dependency {
    /// The n-th previous vector instruction, 1 to 4.
    Valu(u8),
    /// The n-th previous transcendental, 1 to 3.
    Transcendental(u8),
    /// Accumulation of a multiply-add.
    FmaAccumulate,
    /// So many cycles of a scalar instruction, 1 to 3.
    SaluCycles(u8),
    /// A number without a meaning.
    Reserved(u8),
}

/// One half of an `s_delay_alu`: a hint, which changes no results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// The `s_delay_alu`.
    pub start: InstId,
    /// The instruction that is delayed.
    pub inst: InstId,
    /// The dependency that the instruction waits for.
    pub dependency: Dependency,
}

/// Why something between an instruction and the next one in memory would fall between what belongs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundlingConstraint {
    /// Both are in this clause, or one is its `s_clause`.
    Clause(Clause),
    /// It is between an `s_delay_alu`, which counts instructions, and one that it delays.
    Delay(InstId),
}

/// The ties of a body.
#[derive(Debug, Clone, Default)]
pub struct BundlingConstraints {
    clauses: Vec<Clause>,
    delays: Vec<Delay>,
    ties: FxHashMap<InstId, BundlingConstraint>,
}

impl BundlingConstraints {
    /// Finds the clauses and delays of a body.
    #[must_use]
    pub fn of(body: &Body) -> BundlingConstraints {
        let mut found = BundlingConstraints::default();
        if !body.opcode_flags().intersects(OpcodeFlags::CLAUSE | OpcodeFlags::DELAY) {
            return found;
        }
        for id in body.ids() {
            let inst = body.inst(id);
            let opcode_flags = inst.variant.opcode_flags;
            if !opcode_flags.intersects(OpcodeFlags::CLAUSE | OpcodeFlags::DELAY) {
                continue;
            }
            match immediate(inst) {
                Some(bits) if opcode_flags.contains(OpcodeFlags::CLAUSE) => found.clause(body, id, bits),
                Some(bits) => found.delay(body, id, bits),
                None => {}
            }
        }
        found
    }

    /// The clauses, in address order.
    #[must_use]
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// The delays, in the order of their `s_delay_alu`.
    #[must_use]
    pub fn delays(&self) -> &[Delay] {
        &self.delays
    }

    /// What would be torn apart by an instruction between `id` and the one that follows it in memory. A clause is told
    /// before a delay.
    #[must_use]
    pub fn tie_after(&self, id: InstId) -> Option<BundlingConstraint> {
        self.ties.get(&id).copied()
    }

    /// `s_clause`: length - 1 in bits 5:0, break span in bits 11:8 (RDNA ISA guides, "S_CLAUSE").
    fn clause(&mut self, body: &Body, start: InstId, bits: u16) {
        let mut members = following(body, start).take(usize::from(bits & 0x3f) + 1);
        let Some(first) = members.next() else { return };
        let clause = Clause { start, first, last: members.last().unwrap_or(first), break_span: (bits >> 8 & 15) as u8 };
        for index in start.0..clause.last.0 {
            self.ties.insert(InstId(index), BundlingConstraint::Clause(clause));
        }
        self.clauses.push(clause);
    }

    /// `s_delay_alu`: what the next instruction waits for in bits 3:0, how many instructions on the second one is in
    /// bits 6:4, what that one waits for in bits 10:7 (RDNA3 ISA guide, "S_DELAY_ALU").
    fn delay(&mut self, body: &Body, start: InstId, bits: u16) {
        let skip = usize::from(bits >> 4 & 7);
        let mut last = start;
        for (dependency, distance) in [(dependency(bits & 15), 0), (dependency(bits >> 7 & 15), skip)] {
            let Some((dependency, inst)) = dependency.zip(following(body, start).nth(distance)) else { continue };
            self.delays.push(Delay { start, inst, dependency });
            last = last.max(inst);
        }
        for index in start.0..last.0 {
            self.ties.entry(InstId(index)).or_insert(BundlingConstraint::Delay(start));
        }
    }
}

/// The number of a dependency; 0 is none.
fn dependency(id: u16) -> Option<Dependency> {
    let id = id as u8;
    match id {
        0 => None,
        1..=4 => Some(Dependency::Valu(id)),
        5..=7 => Some(Dependency::Transcendental(id - 4)),
        8 => Some(Dependency::FmaAccumulate),
        9..=11 => Some(Dependency::SaluCycles(id - 8)),
        _ => Some(Dependency::Reserved(id)),
    }
}

fn immediate(inst: &Inst) -> Option<u16> {
    let operand = inst.operand(Role::Simm16).or_else(|| inst.operands.first())?;
    if let Value::Imm(bits) = operand.value { Some(bits as u16) } else { None }
}

/// The instructions after `id` that follow each other in memory without a gap.
fn following(body: &Body, id: InstId) -> impl Iterator<Item = InstId> {
    std::iter::successors(Some(id), |id| body.at(body.end_address(*id))).skip(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::assembly::{Listing, Op, branch_scc1, end, op};

    fn nops(listing: Listing, count: usize) -> Listing {
        (0..count).fold(listing, |listing, _| listing.push(op("s_nop")))
    }

    fn with(op: Op) -> BundlingConstraints {
        BundlingConstraints::of(&nops(Listing::at(0).push(op), 6).push(end()).kernel())
    }

    #[test]
    fn a_clause_has_as_many_members_as_it_says() {
        let found = with(op("s_clause").imm(2 | 1 << 8));
        let clause = Clause { start: InstId(0), first: InstId(1), last: InstId(3), break_span: 1 };
        assert_eq!(found.clauses(), [clause]);
        let tied: Vec<bool> =
            (0..6).map(|id| found.tie_after(InstId(id)) == Some(BundlingConstraint::Clause(clause))).collect();
        assert_eq!(tied, [true, true, true, false, false, false]);
        let cut =
            BundlingConstraints::of(&Listing::at(0).push(op("s_clause").imm(5)).push(op("s_nop")).push(end()).kernel());
        assert_eq!(cut.clauses()[0].last, InstId(2), "the code ends first");
    }

    #[test]
    fn delays_name_their_instructions() {
        // The ISA guide's example: VALU_DEP_1 for the next, SALU_CYCLE_1 for the one after it.
        let found = with(op("s_delay_alu").imm(0x491));
        let delay = |inst, dependency| Delay { start: InstId(0), inst: InstId(inst), dependency };
        assert_eq!(found.delays(), [delay(1, Dependency::Valu(1)), delay(2, Dependency::SaluCycles(1))]);
        assert_eq!(found.tie_after(InstId(1)), Some(BundlingConstraint::Delay(InstId(0))));
        assert_eq!(found.tie_after(InstId(2)), None);
        let skipping = with(op("s_delay_alu").imm(5 | 4 << 4 | 8 << 7));
        assert_eq!(skipping.delays(), [delay(1, Dependency::Transcendental(1)), delay(5, Dependency::FmaAccumulate)]);
        assert!(with(op("s_delay_alu").imm(0)).delays().is_empty());
    }

    #[test]
    fn branches_inside_change_nothing_of_what_follows_in_memory() {
        let listing = Listing::at(0)
            .push(op("s_clause").imm(1))
            .push(branch_scc1("out"))
            .push(op("s_nop"))
            .label("out")
            .push(end());
        assert_eq!(BundlingConstraints::of(&listing.kernel()).clauses()[0].last, InstId(2));
    }
}
