//! Required wait states around inserted code (gfx8, gfx9), and runs of memory instructions that may be replayed.
//!
//! On gfx8 and the gfx9 family some pairs of instructions need a number of issue slots between them; `s_nop k` fills k + 1, any other instruction one. Slots
//! are counted backward from each consumer, along all paths. Two original instructions cannot have come closer together by insertion, so only pairs
//! with an inserted member are checked. The rules are those of LLVM's hazard recogniser and AMD's ISA manuals; which of them a target has is a fact of
//! the target ([`crate::isa::Target::wait_states`]). Those around matrix instructions are in `matrix`, those of later targets, which are no numbers of slots, in
//! `events`.

use std::cell::OnceCell;

use smallvec::SmallVec;

use super::align::Alignment;
use super::finding::{Finding, Rule};
use super::matrix;
use crate::cfg::Cfg;
use crate::dataflow::RegSet;
use crate::entity::InstId;
use crate::isa::{Encoding, Flags, Inst, Memory, Reg, RegFile, Role, Traits, Value, WaitStates, scalar};
use crate::kernel::Body;

/// The longest distance any rule without matrix instructions asks for.
const FARTHEST: u32 = 5;
/// A run of memory instructions is followed back this far.
const LONGEST_RUN: usize = 64;

/// A rule: issue slots needed between a producer and a consumer, if it applies to the two.
pub(super) type Needed = fn(&Pair<'_>) -> Option<u32>;

/// An instruction with its register sets, which many pairs ask for.
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

const RULES: [(&str, Needed); 19] = [
    ("a scalar register written by a vector instruction is read by a memory instruction", sgpr_to_memory),
    ("VCC written by a vector instruction is read by v_div_fmas", vcc_to_div_fmas),
    ("a scalar register written by a vector instruction selects a lane", lane_select),
    ("a vector register is written that DPP reads", vgpr_to_dpp),
    ("a vector instruction writes EXEC before DPP", exec_to_dpp),
    ("M0 is written that a message reads", m0_to_message),
    ("M0 is written that an indexed access reads", m0_to_index),
    ("data of a wide store is overwritten", wide_store),
    ("a result of a transcendental is read", trans_to_valu),
    ("part of a register is written that is used at once", partial_to_valu),
    ("a scalar register written by a vector instruction is read by a vector instruction", sgpr_to_valu),
    ("EXEC is written by a vector instruction before a lane access", exec_to_lane),
    ("a vector register is written that a lane access reads", vgpr_to_lane),
    ("a vector instruction writes VCC or EXEC, whose zero flag is read as data", zero_flag),
    ("a hardware register is written and accessed again", hardware_register),
    ("a vector instruction writes EXEC, which a vector instruction reads as data", exec_to_data),
    ("a vector register is written whose rows are swapped", vgpr_to_swap),
    ("a vector instruction writes EXEC before rows are swapped", exec_to_swap),
    ("TRAPSTS is written before a return from the trap handler", trap_status),
];

/// Checks one body's new code. `replays` says that XNACK may be on.
pub(super) fn check(new: &Body, cfg: &Cfg, alignment: &Alignment, replays: bool, findings: &mut Vec<Finding>) {
    let states = new.target().wait_states();
    if states == WaitStates::None && !replays {
        return;
    }
    let walker = Walker::new(new, cfg, alignment, states);
    // Instructions of the same block since its beginning, or since an inserted one.
    let mut original = 0;
    for consumer in new.ids() {
        if cfg.block(cfg.block_of(consumer)).first == consumer {
            original = 0;
        }
        // Between original instructions alone there is nothing to look for.
        let near_inserted = walker.is_inserted(consumer) || original < FARTHEST;
        original = if walker.is_inserted(consumer) { 0 } else { original + 1 };
        if states != WaitStates::None && near_inserted {
            walker.distances(consumer, findings);
        }
        if replays {
            walker.run(consumer, findings);
        }
    }
}

struct Walker<'a> {
    new: &'a Body,
    alignment: &'a Alignment,
    cfg: &'a Cfg,
    /// Made where they are asked for: few original instructions are near inserted ones.
    known: Vec<OnceCell<Box<Known<'a>>>>,
    states: WaitStates,
    has_matrix: bool,
}

impl<'a> Walker<'a> {
    fn new(new: &'a Body, cfg: &'a Cfg, alignment: &'a Alignment, states: WaitStates) -> Self {
        let has_matrix = new.insts().iter().any(matrix::concerns);
        Walker { new, alignment, cfg, known: new.ids().map(|_| OnceCell::new()).collect(), states, has_matrix }
    }

    fn known(&self, id: InstId) -> &Known<'a> {
        let new = self.new;
        let known = || Box::new(Known { inst: new.inst(id), reads: new.reads(id).collect(), writes: new.writes(id).collect() });
        self.known[id.index()].get_or_init(known)
    }

    fn is_inserted(&self, id: InstId) -> bool {
        self.alignment.original(id).is_none()
    }

    fn predecessors(&self, id: InstId) -> SmallVec<[InstId; 2]> {
        predecessors(self.cfg, id)
    }

    /// The wait states in front of one consumer.
    fn distances(&self, consumer: InstId, findings: &mut Vec<Finding>) {
        // Nothing inserted is far in front of an original instruction that it may disturb.
        let farthest = if self.has_matrix && self.is_inserted(consumer) { matrix::FARTHEST } else { FARTHEST };
        let mut work: SmallVec<[(InstId, u32); 8]> = self.predecessors(consumer).into_iter().map(|id| (id, 0)).collect();
        // Paths of the same length to the same place need not be walked twice.
        let mut seen: SmallVec<[(InstId, u32); 16]> = SmallVec::new();
        while let Some((producer, between)) = work.pop() {
            if between >= farthest || seen.contains(&(producer, between)) {
                continue;
            }
            seen.push((producer, between));
            if (self.is_inserted(producer) || self.is_inserted(consumer)) && !is_harmless(self.new.inst(producer)) {
                self.pair(producer, consumer, between, findings);
            }
            let passed = between + slots(self.new.inst(producer));
            work.extend(self.predecessors(producer).into_iter().map(|id| (id, passed)));
        }
    }

    fn pair(&self, producer: InstId, consumer: InstId, between: u32, findings: &mut Vec<Finding>) {
        let pair = Pair {
            producer: self.known(producer),
            consumer: self.known(consumer),
            states: self.states,
            indexed_by_m0: !self.new.target().lds_limit_in_m0(),
        };
        let rules = RULES.iter().chain(if self.has_matrix { &matrix::RULES[..] } else { &[] });
        for (what, needed) in rules {
            if let Some(states) = needed(&pair).filter(|states| between < *states) {
                let message = format!(
                    "{what}: {} at {:#x}, then {} after {between} of {states} wait states",
                    pair.producer.name(),
                    self.new.address(producer),
                    pair.consumer.name()
                );
                findings.push(Finding::new(Rule::Hazard, message).at(self.new.address(consumer)));
            }
        }
    }

    /// With replay, no instruction of a run of scalar (or, on gfx9, vector) memory instructions may write what one of them reads or writes, and a
    /// store begins a run of its own.
    fn run(&self, consumer: InstId, findings: &mut Vec<Finding>) {
        let Some(class) = run_class(self.new.inst(consumer), self.states) else { return };
        let last = self.known(consumer);
        let mut seen: SmallVec<[InstId; 16]> = SmallVec::new();
        let mut work = self.predecessors(consumer);
        while let Some(id) = work.pop() {
            if seen.contains(&id) || seen.len() > LONGEST_RUN || run_class(self.new.inst(id), self.states) != Some(class) {
                continue;
            }
            seen.push(id);
            let first = self.known(id);
            let overlap = named(first.inst, true).intersects(&named(last.inst, true).union(named(last.inst, false)))
                || named(last.inst, true).intersects(&named(first.inst, false));
            let store = last.variant.flags.contains(Flags::STORE) && !named(first.inst, true).is_empty();
            if (overlap || store) && (self.is_inserted(id) || self.is_inserted(consumer)) {
                let what = if overlap { "memory instructions in a row overlap" } else { "a store directly behind loads" };
                let message = format!("{what} and may be replayed: {} at {:#x}, then {}", first.name(), self.new.address(id), last.name());
                findings.push(Finding::new(Rule::Hazard, message).at(self.new.address(consumer)));
                return;
            }
            work.extend(self.predecessors(id));
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

/// Whether no rule has instructions like this one come first: a scalar instruction that writes neither M0 nor a hardware register.
fn is_harmless(inst: &Inst) -> bool {
    matches!(inst.variant.encoding, Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc | Encoding::Sopp)
        && !is_valu(inst)
        && !inst.variant.traits.contains(Traits::STATEFUL)
        && !inst.writes().any(|reg| reg.overlaps(Reg::M0))
}

/// Which runs a memory instruction belongs to.
fn run_class(inst: &Inst, states: WaitStates) -> Option<bool> {
    match inst.variant.encoding {
        Encoding::Smem => Some(true),
        _ if is_vector_memory(inst) && states != WaitStates::None => Some(false),
        _ => None,
    }
}

/// The registers that an instruction names and writes, or reads.
fn named(inst: &Inst, written: bool) -> RegSet {
    use crate::isa::Access::{Read, ReadWrite, Write};
    let accessed = |access| if written { matches!(access, Write | ReadWrite) } else { matches!(access, Read | ReadWrite) };
    inst.operands.iter().filter(|operand| accessed(operand.access)).filter_map(|operand| operand.reg()).collect()
}

/// Issue slots an instruction takes.
fn slots(inst: &Inst) -> u32 {
    if !inst.variant.traits.contains(Traits::NOP) {
        return 1;
    }
    match inst.operand(Role::Simm16).map(|operand| operand.value) {
        Some(Value::Imm(states)) => states as u32 % 16 + 1,
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
    if_met(is_valu(p.producer) && is_vector_memory(p.consumer) && written_sgprs(p.producer).intersects(&p.consumer.reads), 5)
}

fn vcc_to_div_fmas(p: &Pair<'_>) -> Option<u32> {
    if_met(is_valu(p.producer) && p.consumer.name().starts_with("v_div_fmas") && p.producer.writes.overlaps(Reg::VCC), 4)
}

fn lane_select(p: &Pair<'_>) -> Option<u32> {
    let lane = matches!(p.consumer.name(), "v_readlane_b32" | "v_writelane_b32").then(|| p.consumer.operand(Role::Src1)).flatten();
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
    let messages = p.consumer.variant.memory == Memory::Message || p.consumer.modifiers.gds || p.consumer.name() == "s_ttracedata";
    if_met(is_salu(p.producer) && p.producer.writes.overlaps(Reg::M0) && messages, 1)
}

fn m0_to_index(p: &Pair<'_>) -> Option<u32> {
    if !p.indexed_by_m0 || !is_salu(p.producer) || !p.producer.writes.overlaps(Reg::M0) {
        return None;
    }
    let name = p.consumer.name();
    let indexes = name.starts_with("s_movrel") || name.starts_with("v_interp") || name.contains("_addtid_") || p.consumer.modifiers.lds;
    if_met(indexes, 1)
}

fn wide_store(p: &Pair<'_>) -> Option<u32> {
    let stores = is_vector_memory(p.producer) && p.producer.variant.flags.intersects(Flags::STORE | Flags::ATOMIC);
    if !stores || !is_valu(p.consumer) {
        return None;
    }
    // A buffer instruction whose offset is in a register takes longer anyway.
    let late = p.producer.operand(Role::Soffset).is_some_and(|offset| offset.reg().is_some());
    let data = p.producer.operand(Role::Vdata).or_else(|| p.producer.operand(Role::Data0)).and_then(|operand| operand.reg());
    let overwritten = data.filter(|data| data.dwords > 2).is_some_and(|data| p.consumer.writes.overlaps(data));
    if_met(!late && overwritten, if p.strict() { 2 } else { 1 })
}

fn trans_to_valu(p: &Pair<'_>) -> Option<u32> {
    let trans = |inst: &Inst| inst.variant.flags.contains(Flags::TRANS);
    let reads_result = || p.producer.writes.shares_vectors(&p.consumer.reads);
    if_met(p.strict() && trans(p.producer) && is_valu(p.consumer) && !trans(p.consumer) && reads_result(), 1)
}

fn partial_to_valu(p: &Pair<'_>) -> Option<u32> {
    /// SDWA selector of the whole register.
    const DWORD: u8 = 6;
    if !p.strict() || !is_valu(p.producer) || !is_valu(p.consumer) {
        return None;
    }
    let name = p.producer.name();
    let bytes = name.starts_with("v_cvt_") && (name.contains("_fp8") || name.contains("_bf8") || name.contains("_fp4"));
    let partial = p.producer.modifiers.sdwa.is_some_and(|sdwa| sdwa.dst_sel != DWORD)
        || p.producer.modifiers.op_sel & 8 != 0
        || (bytes && p.producer.modifiers.op_sel != 0);
    let writes = &p.producer.writes;
    if_met(partial && (writes.shares_vectors(&p.consumer.reads) || writes.shares_vectors(&p.consumer.writes)), 1)
}

fn sgpr_to_valu(p: &Pair<'_>) -> Option<u32> {
    if_met(p.strict() && is_valu(p.producer) && is_valu(p.consumer) && written_sgprs(p.producer).intersects(&p.consumer.reads), 2)
}

fn exec_to_lane(p: &Pair<'_>) -> Option<u32> {
    let lane = matches!(p.consumer.name(), "v_readlane_b32" | "v_writelane_b32" | "v_readfirstlane_b32");
    if_met(p.strict() && is_valu(p.producer) && lane && p.producer.writes.overlaps(Reg::EXEC), 4)
}

fn vgpr_to_lane(p: &Pair<'_>) -> Option<u32> {
    let lane = matches!(p.consumer.name(), "v_readlane_b32" | "v_readfirstlane_b32");
    if_met(p.strict() && is_valu(p.producer) && lane && p.producer.writes.shares_vectors(&p.consumer.reads), 1)
}

fn zero_flag(p: &Pair<'_>) -> Option<u32> {
    if !is_valu(p.producer) || !is_valu(p.consumer) {
        return None;
    }
    let named = |code| p.consumer.operands.iter().filter_map(|operand| operand.reg()).any(|reg| reg == Reg::scalar(code, 1));
    let written = &p.producer.writes;
    let stale = (named(scalar::VCCZ) && written.overlaps(Reg::VCC)) || (named(scalar::EXECZ) && written.overlaps(Reg::EXEC));
    if_met(stale, 5)
}

/// The number of the hardware register that an instruction accesses.
fn hardware(inst: &Inst) -> Option<u8> {
    inst.hardware_register().map(|(number, _)| number)
}

fn hardware_register(p: &Pair<'_>) -> Option<u32> {
    let again = || hardware(p.consumer).is_some() && hardware(p.producer) == hardware(p.consumer);
    if_met(p.producer.name().starts_with("s_setreg") && again(), 2)
}

fn trap_status(p: &Pair<'_>) -> Option<u32> {
    /// `HW_REG_TRAPSTS`.
    const TRAPSTS: u8 = 3;
    if_met(p.producer.name().starts_with("s_setreg") && hardware(p.producer) == Some(TRAPSTS) && p.consumer.name().starts_with("s_rfe"), 1)
}

fn exec_to_data(p: &Pair<'_>) -> Option<u32> {
    let data = || p.consumer.operands.iter().filter_map(|operand| operand.reg()).any(|reg| reg.overlaps(Reg::EXEC));
    if_met(p.strict() && is_valu(p.producer) && is_valu(p.consumer) && p.producer.writes.overlaps(Reg::EXEC) && data(), 2)
}

fn swaps_rows(inst: &Inst) -> bool {
    matches!(inst.name(), "v_permlane16_swap_b32" | "v_permlane32_swap_b32")
}

fn vgpr_to_swap(p: &Pair<'_>) -> Option<u32> {
    let reads = || p.producer.writes.shares_vectors(&p.consumer.reads);
    if_met(p.states == WaitStates::Gfx950 && is_valu(p.producer) && swaps_rows(p.consumer) && reads(), 2)
}

fn exec_to_swap(p: &Pair<'_>) -> Option<u32> {
    let exec = || p.producer.writes.overlaps(Reg::EXEC);
    if_met(p.states == WaitStates::Gfx950 && is_valu(p.producer) && swaps_rows(p.consumer) && exec(), 4)
}
