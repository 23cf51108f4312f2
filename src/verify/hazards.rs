//! Required wait states around inserted code.
//!
//! On the gfx9 family some pairs of instructions need a number of issue slots between them; `s_nop k` fills k + 1, any other instruction one. Slots are counted
//! backward from each consumer, along all paths. Two original instructions cannot have come closer together by insertion, so only pairs with
//! an inserted member are checked. The rules are those of LLVM's hazard recogniser and AMD's ISA manuals that code without matrix
//! instructions, mode changes and messages can break.

use smallvec::SmallVec;

use super::align::Alignment;
use super::finding::{Finding, Rule};
use crate::cfg::Cfg;
use crate::dataflow::RegSet;
use crate::entity::InstId;
use crate::isa::{Encoding, Flags, Inst, Memory, Reg, RegFile, Role, Target, Value, scalar};
use crate::kernel::Body;

/// The longest distance any rule asks for.
const FARTHEST: u32 = 5;

/// A rule: issue slots needed between a producer and a consumer, if it applies to the two.
type Needed = fn(&Pair<'_>) -> Option<u32>;

/// An instruction with its register sets, which many pairs ask for.
struct Known<'a> {
    inst: &'a Inst,
    reads: RegSet,
    writes: RegSet,
}

impl std::ops::Deref for Known<'_> {
    type Target = Inst;

    fn deref(&self) -> &Inst {
        self.inst
    }
}

struct Pair<'a> {
    producer: &'a Known<'a>,
    consumer: &'a Known<'a>,
    strict: bool,
    replays: bool,
}

/// The rules and what each is called in a message.
const RULES: [(&str, Needed); 15] = [
    ("a vector instruction writes a scalar register that a vector memory instruction reads", sgpr_to_memory),
    ("a vector instruction writes VCC, which v_div_fmas reads", vcc_to_div_fmas),
    ("a vector instruction writes the lane number of v_readlane or v_writelane", lane_select),
    ("a vector register is written that DPP reads", vgpr_to_dpp),
    ("a vector instruction writes EXEC before DPP", exec_to_dpp),
    ("M0 is written before a message or GDS", m0_to_message),
    ("M0 is written before an indexed move or an LDS load through memory", m0_to_index),
    ("the data of a wide store is overwritten", wide_store),
    ("the result of a transcendental is read", trans_to_valu),
    ("a register written in part is used", partial_to_valu),
    ("a vector instruction writes a scalar register that another reads", sgpr_to_valu),
    ("a vector instruction writes EXEC before a lane access", exec_to_lane),
    ("a vector register is written that a lane access reads", vgpr_to_lane),
    ("a vector instruction writes VCC or EXEC, whose zero flag is read as data", zero_flag),
    ("scalar loads in a row overlap and may be replayed", scalar_replay),
];

/// Checks one kernel's new code. `replays` says that XNACK may be on.
pub(super) fn check(new: &Body, alignment: &Alignment, replays: bool, findings: &mut Vec<Finding>) {
    let cfg = Cfg::build(new);
    let strict = strict_forwarding(new.target());
    let predecessors = |id: InstId| -> SmallVec<[InstId; 2]> {
        let block = cfg.block(cfg.block_of(id));
        if block.first == id {
            block.predecessors.iter().map(|edge| cfg.block(edge.block).last).collect()
        } else {
            SmallVec::from_slice(&[InstId(id.0 - 1)])
        }
    };
    let known: Vec<Known<'_>> =
        new.ids().map(|id| Known { inst: new.inst(id), reads: new.reads(id).collect(), writes: new.writes(id).collect() }).collect();
    for consumer in new.ids() {
        let mut work: SmallVec<[(InstId, u32); 8]> = predecessors(consumer).into_iter().map(|id| (id, 0)).collect();
        // Paths of the same length to the same place need not be walked twice.
        let mut seen: SmallVec<[(InstId, u32); 16]> = SmallVec::new();
        while let Some((producer, between)) = work.pop() {
            if between >= FARTHEST || seen.contains(&(producer, between)) {
                continue;
            }
            seen.push((producer, between));
            if alignment.original(producer).is_none() || alignment.original(consumer).is_none() {
                let pair = Pair { producer: &known[producer.index()], consumer: &known[consumer.index()], strict, replays };
                for (what, needed) in RULES {
                    if let Some(states) = needed(&pair).filter(|states| between < *states) {
                        let message = format!(
                            "{what}: {} at {:#x}, then {} after {between} of {states} wait states",
                            pair.producer.name(),
                            new.address(producer),
                            pair.consumer.name()
                        );
                        findings.push(Finding::new(Rule::Hazard, message).at(new.address(consumer)));
                    }
                }
            }
            let passed = between + slots(new.inst(producer));
            work.extend(predecessors(producer).into_iter().map(|id| (id, passed)));
        }
    }
}

/// Issue slots an instruction takes.
fn slots(inst: &Inst) -> u32 {
    match inst.operand(Role::Simm16).map(|operand| operand.value) {
        Some(Value::Imm(states)) if inst.name() == "s_nop" => states as u32 % 16 + 1,
        _ => 1,
    }
}

/// gfx940 and its relatives forward fewer results in hardware: rules of their own, which the cache bits' names tell apart as well.
fn strict_forwarding(target: Target) -> bool {
    target.sc_cache_bits()
}

fn is_valu(inst: &Inst) -> bool {
    inst.variant.flags.contains(Flags::VALU)
}

fn is_vector_memory(inst: &Inst) -> bool {
    matches!(inst.variant.memory, Memory::Global | Memory::Flat | Memory::Scratch | Memory::Buffer | Memory::Image)
}

fn is_dpp(inst: &Inst) -> bool {
    inst.modifiers.dpp.is_some()
}

/// `sN` and VCC: what a vector instruction may write as a mask or value.
fn written_sgprs(inst: &Inst) -> RegSet {
    inst.writes().filter(|reg| reg.file == RegFile::Scalar && reg.first < scalar::VCC + 2).collect()
}

fn if_met(met: bool, states: u32) -> Option<u32> {
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
    if_met(is_dpp(p.consumer) && p.producer.writes.vectors().intersects(&p.consumer.reads), 2)
}

fn exec_to_dpp(p: &Pair<'_>) -> Option<u32> {
    if_met(is_valu(p.producer) && is_dpp(p.consumer) && p.producer.writes.overlaps(Reg::EXEC), 5)
}

fn m0_to_message(p: &Pair<'_>) -> Option<u32> {
    let messages = p.consumer.variant.memory == Memory::Message || p.consumer.modifiers.gds || p.consumer.name() == "s_ttracedata";
    if_met(p.producer.variant.flags.contains(Flags::SALU) && p.producer.writes.overlaps(Reg::M0) && messages, 1)
}

fn m0_to_index(p: &Pair<'_>) -> Option<u32> {
    let name = p.consumer.name();
    let indexes = name.starts_with("s_movrel") || name.starts_with("v_interp") || name.contains("_addtid_") || p.consumer.modifiers.lds;
    if_met(p.producer.variant.flags.contains(Flags::SALU) && p.producer.writes.overlaps(Reg::M0) && indexes, 1)
}

fn wide_store(p: &Pair<'_>) -> Option<u32> {
    let stores = is_vector_memory(p.producer) && p.producer.variant.flags.intersects(Flags::STORE | Flags::ATOMIC);
    let data = p.producer.operand(Role::Vdata).or_else(|| p.producer.operand(Role::Data0)).and_then(|operand| operand.reg());
    let overwritten = data.filter(|data| data.dwords > 2).is_some_and(|data| p.consumer.writes.overlaps(data));
    if_met(stores && is_valu(p.consumer) && overwritten, if p.strict { 2 } else { 1 })
}

fn trans_to_valu(p: &Pair<'_>) -> Option<u32> {
    let trans = |inst: &Inst| inst.variant.flags.contains(Flags::TRANS);
    let reads_result = p.producer.writes.vectors().intersects(&p.consumer.reads);
    if_met(p.strict && trans(p.producer) && is_valu(p.consumer) && !trans(p.consumer) && reads_result, 1)
}

fn partial_to_valu(p: &Pair<'_>) -> Option<u32> {
    /// SDWA selector of the whole register.
    const DWORD: u8 = 6;
    let partial = p.producer.modifiers.sdwa.is_some_and(|sdwa| sdwa.dst_sel != DWORD) || p.producer.modifiers.op_sel & 8 != 0;
    let uses = p.consumer.reads.union(p.consumer.writes);
    if_met(p.strict && is_valu(p.producer) && partial && is_valu(p.consumer) && p.producer.writes.vectors().intersects(&uses), 1)
}

fn sgpr_to_valu(p: &Pair<'_>) -> Option<u32> {
    if_met(p.strict && is_valu(p.producer) && is_valu(p.consumer) && written_sgprs(p.producer).intersects(&p.consumer.reads), 2)
}

fn exec_to_lane(p: &Pair<'_>) -> Option<u32> {
    let lane = matches!(p.consumer.name(), "v_readlane_b32" | "v_writelane_b32" | "v_readfirstlane_b32");
    if_met(p.strict && is_valu(p.producer) && lane && p.producer.writes.overlaps(Reg::EXEC), 4)
}

fn vgpr_to_lane(p: &Pair<'_>) -> Option<u32> {
    let lane = matches!(p.consumer.name(), "v_readlane_b32" | "v_readfirstlane_b32");
    if_met(p.strict && is_valu(p.producer) && lane && p.producer.writes.vectors().intersects(&p.consumer.reads), 1)
}

fn zero_flag(p: &Pair<'_>) -> Option<u32> {
    let named = |code| p.consumer.operands.iter().filter_map(|operand| operand.reg()).any(|reg| reg == Reg::scalar(code, 1));
    let written = p.producer.writes;
    let stale = (named(scalar::VCCZ) && written.overlaps(Reg::VCC)) || (named(scalar::EXECZ) && written.overlaps(Reg::EXEC));
    if_met(is_valu(p.producer) && is_valu(p.consumer) && stale, 5)
}

fn scalar_replay(p: &Pair<'_>) -> Option<u32> {
    let both = p.producer.variant.encoding == Encoding::Smem && p.consumer.variant.encoding == Encoding::Smem;
    let overlap =
        p.producer.writes.intersects(&p.consumer.reads.union(p.consumer.writes)) || p.consumer.writes.intersects(&p.producer.reads);
    if_met(p.replays && both && overlap, 1)
}
