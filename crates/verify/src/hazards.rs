//! Required wait states around inserted code (gfx8, gfx9), and runs of memory instructions that may be replayed.
//!
//! On gfx8 and the gfx9 family some pairs of instructions need a number of issue slots between them. `s_nop k` fills
//! `k + 1` of them, any other instruction one. Slots are counted backward from each consumer, along all paths. Two
//! original instructions cannot have come closer together by insertion, so only pairs with an inserted member are
//! checked. The rules are those of LLVM's hazard recogniser and AMD's ISA manuals; which of them a target has is a fact
//! of the target ([`wavetap_amdgpu::Target::wait_states`]). Those around matrix instructions are in `matrix`, those of
//! later targets, which are no numbers of slots, in `events`.

mod facts;

use std::ops::Range;

use smallvec::SmallVec;

use super::align::Alignment;
use super::finding::{Finding, Rule};
use super::matrix;
use wavetap_amdgpu::{
    Encoding, Flags, Inst, Memory, Opcode, OpcodeFlags, Operand, Reg, RegFile, Role, Value, WaitStates, scalar,
};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;

pub(super) use facts::Facts;
use facts::{Numbers, Sides, Teller, each, rule};

/// The longest distance any rule without matrix instructions asks for.
const FARTHEST: u32 = 5;
/// A run of memory instructions is followed back this far.
const LONGEST_RUN: usize = 64;

/// Issue slots needed between a producer and a consumer, if a rule applies to the two.
type Needed = fn(&Pair<'_>) -> Option<u32>;

/// A rule about a producer and a consumer.
pub(super) struct WaitRule {
    /// What happens, as a finding says it.
    what: &'static str,
    /// What every producer is, among other things,
    producer: Facts,
    /// and every consumer: of others it is not asked.
    consumer: Facts,
    /// The most slots that it asks for.
    most: u32,
    /// Whether it applies, and how many slots it asks for, is said by this alone.
    needed: Needed,
}

impl WaitRule {
    pub(super) const fn new(
        what: &'static str,
        producer: Facts,
        consumer: Facts,
        most: u32,
        needed: Needed,
    ) -> WaitRule {
        WaitRule { what, producer, consumer, most, needed }
    }
}

/// An instruction with its register sets.
pub(super) struct Known<'a> {
    inst: &'a Inst,
    pub(super) reads: RegSet,
    pub(super) writes: RegSet,
}

impl std::ops::Deref for Known<'_> {
    type Target = Inst;

    fn deref(&self) -> &Inst {
        self.inst
    }
}

/// Two instructions of which one comes after the other, on a target with these rules.
pub(super) struct Pair<'a> {
    pub(super) producer: &'a Known<'a>,
    pub(super) consumer: &'a Known<'a>,
    pub(super) states: WaitStates,
    /// The oldest generation has a rule less.
    indexed_by_m0: bool,
}

impl Pair<'_> {
    /// gfx940 and its relatives forward fewer results in hardware.
    pub(super) fn strict(&self) -> bool {
        matches!(self.states, WaitStates::Gfx94x | WaitStates::Gfx950)
    }
}

/// Facts that are there together.
pub(super) const fn all<const N: usize>(facts: [Facts; N]) -> Facts {
    let (mut union, mut index) = (Facts::empty(), 0);
    while index < N {
        union = union.union(facts[index]);
        index += 1;
    }
    union
}

#[rustfmt::skip] // A line for each rule.
static RULES: [WaitRule; 19] = {
    use Facts as F;
    [
        WaitRule::new("a scalar register written by a vector instruction is read by a memory instruction",
            all([F::VALU, F::WRITES_SGPR]), all([F::VECTOR_MEMORY, F::READS_SGPR]), 5, sgpr_to_memory),
        WaitRule::new("VCC written by a vector instruction is read by v_div_fmas",
            all([F::VALU, F::WRITES_VCC]), F::DIV_FMAS, 4, vcc_to_div_fmas),
        WaitRule::new("a scalar register written by a vector instruction selects a lane",
            all([F::VALU, F::WRITES_SGPR]), F::SELECTS_LANE, 4, lane_select),
        WaitRule::new("a vector register is written that DPP reads",
            F::WRITES_VECTOR, all([F::DPP, F::READS_VECTOR]), 2, vgpr_to_dpp),
        WaitRule::new("a vector instruction writes EXEC before DPP",
            all([F::VALU, F::WRITES_EXEC]), F::DPP, 5, exec_to_dpp),
        WaitRule::new("M0 is written that a message reads",
            all([F::SALU, F::WRITES_M0]), F::MESSAGE, 1, m0_to_message),
        WaitRule::new("M0 is written that an indexed access reads",
            all([F::SALU, F::WRITES_M0, F::INDEXED_BY_M0]), F::INDEXES, 1, m0_to_index),
        WaitRule::new("data of a wide store is overwritten",
            F::WIDE_STORE, all([F::VALU, F::WRITES_VECTOR]), 2, wide_store),
        WaitRule::new("a result of a transcendental is read",
            all([F::STRICT, F::TRANS, F::WRITES_VECTOR]), all([F::VALU, F::READS_VECTOR]), 1, trans_to_valu),
        WaitRule::new("part of a register is written that is used at once",
            all([F::STRICT, F::VALU, F::PARTIAL, F::WRITES_VECTOR]), F::VALU, 1, partial_to_valu),
        WaitRule::new("a scalar register written by a vector instruction is read by a vector instruction",
            all([F::STRICT, F::VALU, F::WRITES_SGPR]), all([F::VALU, F::READS_SGPR]), 2, sgpr_to_valu),
        WaitRule::new("EXEC is written by a vector instruction before a lane access",
            all([F::STRICT, F::VALU, F::WRITES_EXEC]), F::LANE, 4, exec_to_lane),
        WaitRule::new("a vector register is written that a lane access reads",
            all([F::STRICT, F::VALU, F::WRITES_VECTOR]), all([F::LANE, F::READS_VECTOR]), 1, vgpr_to_lane),
        WaitRule::new("a vector instruction writes VCC or EXEC, whose zero flag is read as data",
            F::VALU, all([F::VALU, F::NAMES_ZERO_FLAG]), 5, zero_flag),
        WaitRule::new("a hardware register is written and accessed again",
            F::HARDWARE_REGISTER, F::HARDWARE_REGISTER, 2, hardware_register),
        WaitRule::new("a vector instruction writes EXEC, which a vector instruction reads as data",
            all([F::STRICT, F::VALU, F::WRITES_EXEC]), all([F::VALU, F::NAMES_EXEC]), 2, exec_to_data),
        WaitRule::new("a vector register is written whose rows are swapped",
            all([F::GFX950, F::VALU, F::WRITES_VECTOR]), all([F::SWAPS_ROWS, F::READS_VECTOR]), 2, vgpr_to_swap),
        WaitRule::new("a vector instruction writes EXEC before rows are swapped",
            all([F::GFX950, F::VALU, F::WRITES_EXEC]), F::SWAPS_ROWS, 4, exec_to_swap),
        WaitRule::new("TRAPSTS is written before a return from the trap handler",
            F::HARDWARE_REGISTER, F::TRAP_RETURN, 1, trap_status),
    ]
};

/// Checks one body's new code. `replays` says that XNACK may be on.
pub(super) fn check(new: &Body, cfg: &Cfg, alignment: &Alignment, replays: bool, findings: &mut Vec<Finding>) {
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
        let has_matrix = new.insts().iter().any(matrix::concerns);
        let mut teller = Teller::new(states, !new.target().lds_limit_in_m0());
        let (mut produced, mut produced_by_inserted) = (0, 0);
        let step = |id| {
            let inst = new.inst(id);
            let sides = if states == WaitStates::None { Sides::default() } else { teller.sides(inst) };
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

    /// The wait states in front of one consumer.
    fn distances(&self, id: InstId, findings: &mut Vec<Finding>) {
        let consumer = self.at(id);
        let rules = consumer.sides.consumes & if consumer.inserted { self.produced } else { self.produced_by_inserted };
        if rules == 0 {
            return;
        }
        // Nothing inserted is far in front of an original instruction that it may disturb.
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
                        if overlap { "memory instructions in a row overlap" } else { "a store directly behind loads" };
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

/// The instructions that may be executed directly before one.
pub(super) fn predecessors(cfg: &Cfg, id: InstId) -> SmallVec<[InstId; 2]> {
    let block = cfg.block(cfg.block_of(id));
    if block.first == id {
        block.predecessors.iter().map(|edge| cfg.block(edge.block).last).collect()
    } else {
        SmallVec::from_slice(&[InstId(id.0 - 1)])
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

pub(super) fn is_valu(inst: &Inst) -> bool {
    inst.variant.flags.contains(Flags::VALU)
}

pub(super) fn is_salu(inst: &Inst) -> bool {
    inst.variant.flags.contains(Flags::SALU)
}

pub(super) fn is_vector_memory(inst: &Inst) -> bool {
    matches!(inst.variant.memory, Memory::Global | Memory::Flat | Memory::Scratch | Memory::Buffer | Memory::Image)
}

pub(super) fn is_lds(inst: &Inst) -> bool {
    matches!(inst.variant.memory, Memory::Lds | Memory::Gds)
}

fn is_dpp(inst: &Inst) -> bool {
    inst.modifiers.dpp.is_some()
}

/// `sN` and VCC: what a vector instruction may write as a mask or value.
fn written_sgprs(inst: &Inst) -> RegSet {
    inst.writes().filter(|reg| reg.file == RegFile::Scalar && reg.first < scalar::VCC + 2).collect()
}

pub(super) fn if_met(met: bool, states: u32) -> Option<u32> {
    met.then_some(states)
}

fn sgpr_to_memory(p: &Pair<'_>) -> Option<u32> {
    if_met(
        is_valu(p.producer) && is_vector_memory(p.consumer) && written_sgprs(p.producer).intersects(&p.consumer.reads),
        5,
    )
}

fn vcc_to_div_fmas(p: &Pair<'_>) -> Option<u32> {
    if_met(is_valu(p.producer) && p.consumer.is_any(OpcodeFlags::DIV_FMAS) && p.producer.writes.overlaps(Reg::VCC), 4)
}

fn lane_select(p: &Pair<'_>) -> Option<u32> {
    let lane = matches!(p.consumer.opcode(), Opcode::V_READLANE_B32 | Opcode::V_WRITELANE_B32)
        .then(|| p.consumer.operand(Role::Src1))
        .flatten();
    let select = lane.and_then(|operand| operand.reg());
    if_met(is_valu(p.producer) && select.is_some_and(|reg| written_sgprs(p.producer).overlaps(reg)), 4)
}

fn vgpr_to_dpp(p: &Pair<'_>) -> Option<u32> {
    if_met(is_dpp(p.consumer) && p.producer.writes.shares_vectors(&p.consumer.reads), 2)
}

fn exec_to_dpp(p: &Pair<'_>) -> Option<u32> {
    if_met(is_valu(p.producer) && is_dpp(p.consumer) && p.producer.writes.overlaps(Reg::EXEC), 5)
}

fn m0_to_message(p: &Pair<'_>) -> Option<u32> {
    let messages = p.consumer.variant.memory == Memory::Message
        || p.consumer.modifiers.gds
        || p.consumer.opcode() == Opcode::S_TTRACEDATA;
    if_met(is_salu(p.producer) && p.producer.writes.overlaps(Reg::M0) && messages, 1)
}

fn m0_to_index(p: &Pair<'_>) -> Option<u32> {
    if !p.indexed_by_m0 || !is_salu(p.producer) || !p.producer.writes.overlaps(Reg::M0) {
        return None;
    }
    const INDEXES: OpcodeFlags = OpcodeFlags::SCALAR_RELATIVE.union(OpcodeFlags::INTERP).union(OpcodeFlags::ADDTID);
    if_met(p.consumer.is_any(INDEXES) || p.consumer.modifiers.lds, 1)
}

/// The registers whose contents a store takes late.
fn wide_data(inst: &Inst) -> Option<Reg> {
    if !is_vector_memory(inst) || !inst.variant.flags.intersects(Flags::STORE | Flags::ATOMIC) {
        return None;
    }
    // A buffer instruction whose offset is in a register takes longer anyway.
    let late = inst.operand(Role::Soffset).is_some_and(|offset| offset.reg().is_some());
    let data = inst.operand(Role::Vdata).or_else(|| inst.operand(Role::Data0)).and_then(|operand| operand.reg());
    data.filter(|data| data.dwords > 2 && !late)
}

fn wide_store(p: &Pair<'_>) -> Option<u32> {
    let overwritten = || wide_data(p.producer).is_some_and(|data| p.consumer.writes.overlaps(data));
    if_met(is_valu(p.consumer) && overwritten(), if p.strict() { 2 } else { 1 })
}

fn trans_to_valu(p: &Pair<'_>) -> Option<u32> {
    let trans = |inst: &Inst| inst.variant.flags.contains(Flags::TRANS);
    let reads_result = || p.producer.writes.shares_vectors(&p.consumer.reads);
    if_met(p.strict() && trans(p.producer) && is_valu(p.consumer) && !trans(p.consumer) && reads_result(), 1)
}

/// Whether an instruction writes a part of a register.
fn writes_part(inst: &Inst) -> bool {
    /// SDWA selector of the whole register.
    const DWORD: u8 = 6;
    inst.modifiers.sdwa.is_some_and(|sdwa| sdwa.dst_sel != DWORD)
        || inst.modifiers.op_sel & 8 != 0
        || (inst.modifiers.op_sel != 0 && inst.is_any(OpcodeFlags::CVT_BYTES))
}

fn partial_to_valu(p: &Pair<'_>) -> Option<u32> {
    let writes = &p.producer.writes;
    let uses = || writes.shares_vectors(&p.consumer.reads) || writes.shares_vectors(&p.consumer.writes);
    if_met(p.strict() && is_valu(p.producer) && is_valu(p.consumer) && writes_part(p.producer) && uses(), 1)
}

fn sgpr_to_valu(p: &Pair<'_>) -> Option<u32> {
    if_met(
        p.strict()
            && is_valu(p.producer)
            && is_valu(p.consumer)
            && written_sgprs(p.producer).intersects(&p.consumer.reads),
        2,
    )
}

fn exec_to_lane(p: &Pair<'_>) -> Option<u32> {
    let lane =
        matches!(p.consumer.opcode(), Opcode::V_READLANE_B32 | Opcode::V_WRITELANE_B32 | Opcode::V_READFIRSTLANE_B32);
    if_met(p.strict() && is_valu(p.producer) && lane && p.producer.writes.overlaps(Reg::EXEC), 4)
}

fn vgpr_to_lane(p: &Pair<'_>) -> Option<u32> {
    let lane = matches!(p.consumer.opcode(), Opcode::V_READLANE_B32 | Opcode::V_READFIRSTLANE_B32);
    if_met(p.strict() && is_valu(p.producer) && lane && p.producer.writes.shares_vectors(&p.consumer.reads), 1)
}

fn zero_flag(p: &Pair<'_>) -> Option<u32> {
    if !is_valu(p.producer) || !is_valu(p.consumer) {
        return None;
    }
    let named =
        |code| p.consumer.operands.iter().filter_map(|operand| operand.reg()).any(|reg| reg == Reg::scalar(code, 1));
    let written = &p.producer.writes;
    let stale =
        (named(scalar::VCCZ) && written.overlaps(Reg::VCC)) || (named(scalar::EXECZ) && written.overlaps(Reg::EXEC));
    if_met(stale, 5)
}

/// The number of the hardware register that an instruction accesses.
fn hardware(inst: &Inst) -> Option<u8> {
    inst.hardware_register().map(|(number, _)| number)
}

fn hardware_register(p: &Pair<'_>) -> Option<u32> {
    let again = || hardware(p.consumer).is_some() && hardware(p.producer) == hardware(p.consumer);
    if_met(p.producer.is_any(OpcodeFlags::SETREG) && again(), 2)
}

fn trap_status(p: &Pair<'_>) -> Option<u32> {
    /// `HW_REG_TRAPSTS`.
    const TRAPSTS: u8 = 3;
    if_met(
        p.producer.is_any(OpcodeFlags::SETREG)
            && hardware(p.producer) == Some(TRAPSTS)
            && p.consumer.is_any(OpcodeFlags::TRAP_RETURN),
        1,
    )
}

fn exec_to_data(p: &Pair<'_>) -> Option<u32> {
    let data = || p.consumer.operands.iter().filter_map(|operand| operand.reg()).any(|reg| reg.overlaps(Reg::EXEC));
    if_met(
        p.strict() && is_valu(p.producer) && is_valu(p.consumer) && p.producer.writes.overlaps(Reg::EXEC) && data(),
        2,
    )
}

fn swaps_rows(inst: &Inst) -> bool {
    matches!(inst.opcode(), Opcode::V_PERMLANE16_SWAP_B32 | Opcode::V_PERMLANE32_SWAP_B32)
}

fn vgpr_to_swap(p: &Pair<'_>) -> Option<u32> {
    let reads = || p.producer.writes.shares_vectors(&p.consumer.reads);
    if_met(p.states == WaitStates::Gfx950 && is_valu(p.producer) && swaps_rows(p.consumer) && reads(), 2)
}

fn exec_to_swap(p: &Pair<'_>) -> Option<u32> {
    let exec = || p.producer.writes.overlaps(Reg::EXEC);
    if_met(p.states == WaitStates::Gfx950 && is_valu(p.producer) && swaps_rows(p.consumer) && exec(), 4)
}
