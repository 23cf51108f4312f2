//! Required wait states around inserted code (gfx8, gfx9), and runs of memory instructions that may be replayed.
//!
//! On gfx8 and the gfx9 family some pairs of instructions need a number of issue slots between them. `s_nop k` fills
//! `k + 1` of them, any other instruction one. Slots are counted backward from each consumer, along all paths. Two
//! original instructions cannot have come closer together by insertion, so only pairs with an inserted member are
//! checked. The rules are those of LLVM's hazard recogniser and AMD's ISA manuals; which of them a target has is a fact
//! of the target ([`wavetap_amdgpu::Target::wait_states`]). Those around matrix instructions are in `matrix`, those of
//! later targets, which are no numbers of slots, in `event_hazards`.

use std::ops::Range;

use smallvec::SmallVec;

use super::classes::{concerns_matrices, is_vector_memory, predecessors};
use super::matrix;
use super::rule_index::{Numbers, Sides, SidesCache, each, rule};
use super::wait_rule::{Known, Pair};
use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{Encoding, Flags, Inst, OpcodeFlags, Operand, Reg, Role, Value, WaitStates};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;

/// The longest distance any rule without matrix instructions needs.
const FARTHEST: u32 = 5;
/// A run of memory instructions is followed back this far.
const LONGEST_RUN: usize = 64;

/// Checks one body's new code. `replays` says that XNACK may be on.
pub(crate) fn check(new: &Body, cfg: &Cfg, alignment: &Alignment, replays: bool, findings: &mut Vec<Finding>) {
    let states = new.target().wait_states();
    if states == WaitStates::None && !replays {
        return;
    }
    let walker = Walker::new(new, cfg, alignment, states);
    for block in cfg.blocks() {
        // Instructions of the block since its beginning, or since an inserted one.
        let mut original = 0;
        for consumer in block.insts() {
            let inserted = walker.at(consumer).inserted;
            // Between original instructions alone there is nothing to look for.
            let near_inserted = inserted || original < FARTHEST;
            original = if inserted { 0 } else { original + u32::from(walker.at(consumer).slots.min(1)) };
            if near_inserted {
                walker.distances(consumer, findings);
            }
            if replays {
                walker.run(consumer, findings);
            }
        }
    }
}

/// Which runs of memory instructions one belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    None,
    Scalar,
    Vector,
}

/// What the rules ask about every instruction.
struct Step {
    sides: Sides,
    /// Issue slots that it takes.
    slots: u8,
    run: Run,
    inserted: bool,
}

struct Walker<'a> {
    new: &'a Body,
    cfg: &'a Cfg,
    steps: Vec<Step>,
    states: WaitStates,
    has_matrix: bool,
    /// The rules that any instruction may be the producer of, and that any inserted one may.
    produced: Numbers,
    produced_by_inserted: Numbers,
}

impl<'a> Walker<'a> {
    fn new(new: &'a Body, cfg: &'a Cfg, alignment: &'a Alignment, states: WaitStates) -> Self {
        let has_matrix = new.insts().iter().any(concerns_matrices);
        let mut cache = SidesCache::new(states, !new.target().lds_limit_in_m0());
        let (mut produced, mut produced_by_inserted) = (0, 0);
        let step = |id| {
            let inst = new.inst(id);
            let sides = if states == WaitStates::None { Sides::default() } else { cache.sides(inst) };
            let inserted = alignment.original(id).is_none();
            produced |= sides.produces;
            produced_by_inserted |= if inserted { sides.produces } else { 0 };
            // What is skipped need not take a slot.
            let slots = if new.may_be_skipped(id) { 0 } else { slots(inst) };
            Step { sides, slots, run: run_class(inst, states), inserted }
        };
        let steps = new.ids().map(step).collect();
        Walker { new, cfg, steps, states, has_matrix, produced, produced_by_inserted }
    }

    fn at(&self, id: InstId) -> &Step {
        &self.steps[id.index()]
    }

    fn known(&self, id: InstId) -> Known<'a> {
        Known { inst: self.new.inst(id), reads: self.new.reads(id).collect(), writes: self.new.writes(id).collect() }
    }

    /// The wait states before one consumer.
    fn distances(&self, id: InstId, findings: &mut Vec<Finding>) {
        let consumer = self.at(id);
        let rules = consumer.sides.consumes & if consumer.inserted { self.produced } else { self.produced_by_inserted };
        if rules == 0 {
            return;
        }
        // Nothing inserted is far before an original instruction that it may disturb.
        let farthest = if self.has_matrix && consumer.inserted { matrix::FARTHEST } else { FARTHEST };
        let farthest = each(rules).map(|number| rule(number).most).max().unwrap_or(0).min(farthest);
        let mut known = None;
        // A bounded search backward from one consumer, path-sensitive by the slots that were passed.
        // Blocks that are walked back from their ends, with the slots from there to the consumer: once each.
        let mut seen: SmallVec<[_; 8]> = SmallVec::new();
        let mut work: SmallVec<[_; 8]> = SmallVec::new();
        let (mut block, mut end, mut between) = (self.cfg.block_of(id), id.0, 0);
        loop {
            let first = self.cfg.block(block).first.0;
            while end > first && between < farthest {
                end -= 1;
                let producer = self.at(InstId(end));
                let asked = producer.sides.produces & rules;
                if asked != 0 && (producer.inserted || consumer.inserted) {
                    let known = known.get_or_insert_with(|| self.known(id));
                    self.pair(InstId(end), (id, known), asked, between, findings);
                }
                between += u32::from(producer.slots);
            }
            if between < farthest {
                work.extend(self.cfg.block(block).predecessors.iter().map(|edge| (edge.block, between)));
            }
            let next = loop {
                match work.pop() {
                    Some(next) if seen.contains(&next) => {}
                    next => break next,
                }
            };
            let Some(next) = next else { return };
            seen.push(next);
            (block, between) = next;
            end = self.cfg.block(block).last.0 + 1;
        }
    }

    /// Asks some rules about two instructions.
    fn pair(
        &self,
        id: InstId,
        (consumer_id, consumer): (InstId, &Known<'_>),
        asked: Numbers,
        between: u32,
        findings: &mut Vec<Finding>,
    ) {
        let producer = &self.known(id);
        let pair =
            Pair { producer, consumer, states: self.states, indexed_by_m0: !self.new.target().lds_limit_in_m0() };
        for rule in each(asked).map(rule) {
            if let Some(states) = (rule.needed)(&pair).filter(|states| between < *states) {
                let message = format!(
                    "{}: {} at {:#x}, then {} after {between} of {states} wait states",
                    rule.what,
                    producer.name(),
                    self.new.address(id),
                    consumer.name()
                );
                findings.push(Finding::new(Rule::Hazard, message).at(self.new.address(consumer_id)));
            }
        }
    }

    /// With replay, no instruction of a run of scalar (or, on gfx9, vector) memory instructions may write what one of
    /// them reads or writes, and a store begins a run of its own.
    fn run(&self, consumer: InstId, findings: &mut Vec<Finding>) {
        let Step { run, inserted, .. } = *self.at(consumer);
        if run == Run::None {
            return;
        }
        let last = self.new.inst(consumer);
        let mut seen: SmallVec<[InstId; 16]> = SmallVec::new();
        let mut work = predecessors(self.cfg, consumer);
        // A bounded search backward from one consumer.
        while let Some(id) = work.pop() {
            if self.at(id).run != run || seen.contains(&id) || seen.len() > LONGEST_RUN {
                continue;
            }
            seen.push(id);
            if inserted || self.at(id).inserted {
                let first = self.new.inst(id);
                let overlap = shares_named(first, true, last, true)
                    || shares_named(first, true, last, false)
                    || shares_named(last, true, first, false);
                let store = || {
                    last.variant.flags.contains(Flags::STORE)
                        && named(first, true).any(|reg| !RegSet::positions(reg).is_empty())
                };
                if overlap || store() {
                    let what =
                        if overlap { "memory instructions in a row overlap" } else { "a store directly after loads" };
                    let message = format!(
                        "{what} and may be replayed: {} at {:#x}, then {}",
                        first.name(),
                        self.new.address(id),
                        last.name()
                    );
                    findings.push(Finding::new(Rule::Hazard, message).at(self.new.address(consumer)));
                    return;
                }
            }
            work.extend(predecessors(self.cfg, id));
        }
    }
}

/// Which runs a memory instruction belongs to.
fn run_class(inst: &Inst, states: WaitStates) -> Run {
    match inst.variant.encoding {
        Encoding::Smem => Run::Scalar,
        _ if is_vector_memory(inst) && states != WaitStates::None => Run::Vector,
        _ => Run::None,
    }
}

/// The registers that an instruction names and writes, or reads.
fn named(inst: &Inst, written: bool) -> impl Iterator<Item = Reg> {
    let accessed = move |operand: &&Operand| if written { operand.access.writes() } else { operand.access.reads() };
    inst.operands.iter().filter(accessed).filter_map(Operand::reg)
}

/// Whether two instructions name a register that one writes, or reads, and the other.
fn shares_named(a: &Inst, a_written: bool, b: &Inst, b_written: bool) -> bool {
    let share = |a: &Range<usize>, b: &Range<usize>| a.start.max(b.start) < a.end.min(b.end);
    named(a, a_written).map(RegSet::positions).any(|a| named(b, b_written).any(|b| share(&a, &RegSet::positions(b))))
}

/// Issue slots an instruction takes.
fn slots(inst: &Inst) -> u8 {
    if !inst.variant.opcode_flags.contains(OpcodeFlags::NOP) {
        return 1;
    }
    match inst.operand(Role::Simm16).map(|operand| operand.value) {
        Some(Value::Imm(states)) => (states as u32 % 16) as u8 + 1,
        _ => 1,
    }
}
