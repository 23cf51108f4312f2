//! What registers hold in each lane of a wave: a number for each lane, and a sum of values that are the same in all
//! lanes and not in the code, each times a number for each lane.
//!
//! That is found for one wave of a workgroup of known shape, backward from a use through static single assignment. What
//! instructions make of numbers that are known is computed as they do it; with values that are not known there are
//! sums, products, and bit operations below or above all that is not known. As long as nothing wraps around
//! at 24 bits, the operations on 24-bit integers are those on all; of 64-bit values the lower half is looked at, and
//! quotients are those of values that have not wrapped around.
//!
//! Where lanes took different ways, or a value was loaded, nothing is known. In a loop a value may move by what is the
//! same in all lanes: [`LaneValues::step`] says by how much in each round.
//!
//! Each value is computed once: what was found is remembered, with the assumptions on loops that it rests on and, where
//! the search ended for its depth, with the depth ([`memo`]). The work of all searches is bounded by the length of the
//! code ([`WORK_PER_INSTRUCTION`]); nothing is known beyond.

mod exact;
mod memo;
mod value;

pub use value::{LaneSum, LaneValue, Offsets, Opaque, Symbol, Term};

use rustc_hash::FxHashMap;

use memo::{Key, Memo};

use super::definitions::Definitions;
use super::regset::RegSet;
use super::ssa::{Kills, Node, SsaId};
use crate::kernel::BodyKind;
use wavetap_amdgpu::{Flags, Inst, Memory, Opcode, Operand, Reg, RegFile, Role, Value};
use wavetap_base::entity::{BlockId, InstId};

/// So many operations are looked through.
const DEEPEST: u32 = 96;
/// How often a loop is looked at again with fewer bits known to be 0.
const MOST_ROUNDS: u32 = 3;
/// Definitions that are looked at for each instruction of a body, and for each body besides.
const WORK_PER_INSTRUCTION: u64 = 256;
const WORK: u64 = 1 << 16;

/// A wave of a workgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaveShape {
    /// Work-item ids x, y, z of each lane.
    ids: [Vec<i32>; 3],
    /// How many of the lanes are work-items.
    active: u32,
    /// How many ids a lane is given: x alone, x and y, or all three.
    given: u32,
}

impl WaveShape {
    /// The wave of this number, of so many lanes, in a workgroup of x, y, z work-items, of whose ids the first `given`
    /// are given to the kernel. Nothing if the workgroup has no such wave.
    #[must_use]
    pub fn new(workgroup: [u32; 3], lanes: u32, wave: u32, given: u32) -> Option<WaveShape> {
        let [x, y, z] = workgroup;
        let size = x.checked_mul(y)?.checked_mul(z)?;
        let first = wave.checked_mul(lanes).filter(|first| *first < size)?;
        // Lanes that are no work-items are given what they would have if the workgroup went on.
        let id = |flat: u32| [flat % x, flat / x % y, flat / (x * y)].map(u32::cast_signed);
        let ids = std::array::from_fn(|axis| (first..first + lanes).map(|flat| id(flat)[axis]).collect());
        Some(WaveShape { ids, active: lanes.min(size - first), given })
    }

    /// How many of its lanes are work-items: the first of them.
    #[must_use]
    pub fn active(&self) -> u32 {
        self.active
    }

    /// Its lanes.
    #[must_use]
    pub fn lanes(&self) -> u32 {
        self.ids[0].len() as u32
    }

    /// The work-item ids x, y, z of a lane.
    ///
    /// # Panics
    /// If the wave has no such lane.
    #[must_use]
    pub fn ids(&self, lane: usize) -> [i32; 3] {
        self.ids.each_ref().map(|ids| ids[lane])
    }

    fn id(&self, axis: usize) -> LaneSum {
        LaneSum::lanes(self.ids[axis].iter().copied())
    }

    /// v0 where it holds all three (AMDGPUUsage, "Initial kernel execution state": x in bits 9:0, y in 19:10, z in
    /// 29:20).
    fn packed(&self) -> LaneSum {
        let [x, y, z] = &self.ids;
        LaneSum::lanes(x.iter().zip(y).zip(z).map(|((x, y), z)| x | y << 10 | z << 20))
    }
}

/// Answers what registers hold in the lanes of a wave.
#[derive(Debug)]
pub struct LaneValues<'d, 'b> {
    definitions: &'d Definitions<'b>,
    shape: WaveShape,
    /// What was found, and what is assumed of loops that are being looked at.
    memo: Memo,
    /// Definitions that may still be looked at.
    work: u64,
    /// By how much what merges in loops stand for moves in a round, none where that is not a number in the code; and
    /// what it is in the first round.
    steps: FxHashMap<Symbol, (Option<i32>, LaneSum)>,
}

impl<'d, 'b> LaneValues<'d, 'b> {
    /// Nothing is looked at yet.
    #[must_use]
    pub fn new(definitions: &'d Definitions<'b>, shape: WaveShape) -> LaneValues<'d, 'b> {
        let work = WORK + WORK_PER_INSTRUCTION * definitions.body.len() as u64;
        LaneValues { definitions, shape, memo: Memo::default(), work, steps: FxHashMap::default() }
    }

    /// The wave.
    #[must_use]
    pub fn shape(&self) -> &WaveShape {
        &self.shape
    }

    /// What an instruction reads in an operand: the lower half of what is longer than 32 bits.
    ///
    /// # Panics
    /// If `id` is not of the body.
    pub fn operand(&mut self, id: InstId, operand: &Operand) -> LaneValue {
        self.read(id, operand, 0)
    }

    /// By how much a symbol that stands for a value in a loop moves in each round; none where that is not a number that
    /// is in the code, or the symbol is of no loop.
    #[must_use]
    pub fn step(&self, symbol: Symbol) -> Option<i32> {
        self.steps.get(&symbol).and_then(|(step, _)| *step)
    }

    /// What a symbol that stands for a value in a loop is in the first round; none if it is of no loop.
    #[must_use]
    pub fn first(&self, symbol: Symbol) -> Option<&LaneSum> {
        self.steps.get(&symbol).map(|(_, first)| first)
    }

    /// The scalar load that loaded what a symbol stands for, and which of its dwords that is.
    #[must_use]
    pub fn loaded_by(&self, symbol: Symbol) -> Option<(InstId, u32)> {
        let Node::Write { inst, .. } = self.definitions.ssa.node(symbol.def) else { return None };
        let code = self.definitions.body.inst(inst);
        let loads = code.variant.memory == Memory::Scalar && code.variant.flags.contains(Flags::LOAD);
        let to = code.operands.first().filter(|_| loads)?.reg()?;
        let at = RegSet::reg_at(usize::from(symbol.position));
        (at.file == to.file).then(|| at.first.checked_sub(to.first)).flatten().map(|dword| (inst, dword.into()))
    }

    /// Whether a symbol stands for what was in a register when the kernel began.
    #[must_use]
    pub fn is_of_entry(&self, symbol: Symbol) -> bool {
        matches!(self.definitions.ssa.node(symbol.def), Node::Entry)
    }

    fn read(&mut self, id: InstId, operand: &Operand, depth: u32) -> LaneValue {
        let Some(reg) = self.definitions.body.register(id, operand) else {
            let number = match operand.value {
                Value::InlineInt(value) => Some(i32::from(value)),
                Value::Literal(value) => Some(value.cast_signed()),
                Value::Imm(value) => i32::try_from(value).ok(),
                _ => None,
            };
            return number.map_or(LaneValue::Opaque(Opaque::Operation), |number| LaneSum::number(number).into());
        };
        if reg.is_null() {
            return LaneSum::number(0).into();
        }
        let low = Reg { dwords: 1, ..reg };
        match self.definitions.ssa.read_at(id, low).next() {
            Some((position, def)) => self.def(def, position, Some(self.definitions.ssa.exec_before(id)), depth),
            None => LaneValue::Opaque(Opaque::Operation),
        }
    }

    /// A definition of the register at a position, as the lanes see it that are active in `lanes`.
    fn def(&mut self, def: SsaId, position: u16, lanes: Option<SsaId>, depth: u32) -> LaneValue {
        let reg = RegSet::reg_at(usize::from(position));
        self.work = self.work.saturating_sub(1);
        let value = if depth > DEEPEST || self.work == 0 {
            self.memo.cut();
            LaneValue::Opaque(Opaque::Operation)
        } else {
            match self.definitions.ssa.node(def) {
                Node::Entry => self.at_entry(reg),
                Node::Call { .. } => LaneValue::Opaque(Opaque::Operation),
                Node::Write { inst, kills, .. } => self.write(def, position, inst, kills, lanes, depth),
                Node::Merge { block, operands } => self.merge(def, position, block, operands, lanes, depth),
            }
        };
        match value {
            // Whatever it is, it is one value.
            LaneValue::Opaque(_) if !is_vector(reg) => self.symbol(def, position, 0).into(),
            value => value,
        }
    }

    fn symbol(&self, def: SsaId, position: u16, zeros: u32) -> LaneSum {
        LaneSum::symbol(Symbol { def, position }, zeros)
    }

    fn write(
        &mut self,
        def: SsaId,
        position: u16,
        inst: InstId,
        kills: Kills,
        lanes: Option<SsaId>,
        depth: u32,
    ) -> LaneValue {
        let exec = self.definitions.ssa.exec_before(inst);
        match kills {
            Kills::All => {}
            Kills::Lanes if lanes.is_some_and(|lanes| self.definitions.masks.covers(exec, lanes)) => {}
            Kills::Lanes | Kills::Nothing => return LaneValue::Opaque(Opaque::Paths),
        }
        let key = Key::Write(def, position);
        if let Some(known) = self.memo.get(key, depth) {
            return known;
        }
        let rests_on = self.memo.begin();
        let value = match self.result(inst, RegSet::reg_at(usize::from(position)), depth + 1) {
            Combined::Sum { known, rest } => {
                let sum = rest.map(|zeros| known.plus(&self.symbol(def, position, zeros))).unwrap_or(known);
                if sum.has_too_many_terms() { self.forget(def, position, &sum) } else { sum.into() }
            }
            Combined::Opaque(why) => LaneValue::Opaque(why),
        };
        self.memo.end(rests_on, key, depth, value.clone());
        value
    }

    /// The same with one symbol for all that is the same in all lanes; nothing if what is left is still too much.
    fn forget(&self, def: SsaId, position: u16, sum: &LaneSum) -> LaneValue {
        let (lanes, same) = sum.split();
        match lanes.has_too_many_terms() {
            true => LaneValue::Opaque(Opaque::Stride),
            false => lanes.plus(&self.symbol(def, position, same.low_zeros())).into(),
        }
    }

    fn merge(
        &mut self,
        def: SsaId,
        position: u16,
        block: BlockId,
        operands: u32,
        lanes: Option<SsaId>,
        depth: u32,
    ) -> LaneValue {
        if let Some(assumed) = self.memo.assumed(def, position) {
            return assumed.into();
        }
        let key = Key::Merge(def, position, lanes);
        if let Some(known) = self.memo.get(key, depth) {
            return known;
        }
        let rests_on = self.memo.begin();
        let value = self.merge_of(def, position, block, operands, lanes, depth);
        self.memo.end(rests_on, key, depth, value.clone());
        value
    }

    fn merge_of(
        &mut self,
        def: SsaId,
        position: u16,
        block: BlockId,
        operands: u32,
        lanes: Option<SsaId>,
        depth: u32,
    ) -> LaneValue {
        let definitions = self.definitions;
        let merged: Vec<_> = definitions.ssa.merged(definitions.cfg, block, operands).collect();
        let retreats = |from: &Option<BlockId>| from.is_some_and(|from| definitions.cfg.retreats(from, block));
        let (later, earlier): (Vec<_>, Vec<_>) = merged.into_iter().partition(|(from, _)| retreats(from));
        let before = |from| lanes.and_then(|lanes| definitions.lanes_before(lanes, block, from));
        let mut all: Option<LaneSum> = None;
        for (from, earlier) in earlier {
            let value = match self.def(earlier, position, before(from), depth + 1) {
                LaneValue::Sum(value) => value,
                opaque => return opaque,
            };
            all = match all {
                None => Some(value),
                Some(known) if known == value => Some(known),
                // They may differ by what is the same in all lanes.
                Some(known) => {
                    let ((lanes, a), (others, b)) = (known.split(), value.split());
                    if lanes != others {
                        return LaneValue::Opaque(Opaque::Paths);
                    }
                    Some(lanes.plus(&self.symbol(def, position, a.low_zeros().min(b.low_zeros()))))
                }
            };
        }
        let Some(all) = all else { return LaneValue::Opaque(Opaque::Operation) };
        if later.is_empty() {
            return all.into();
        }
        let (lanes_alone, first) = all.split();
        let mut zeros = first.low_zeros();
        for _ in 0..MOST_ROUNDS {
            // What the rounds before made of it is something else, and the same in all lanes as well.
            let assumed = lanes_alone.plus(&self.symbol(def, position, zeros));
            self.memo.assume(def, position, assumed.clone());
            let Some(moved) = self.moved(position, &assumed, &later, before, depth) else {
                self.memo.withdraw();
                return LaneValue::Opaque(Opaque::Paths);
            };
            let lost = moved.iter().map(LaneSum::low_zeros).fold(zeros, u32::min);
            if lost == zeros {
                let same = moved.windows(2).all(|pair| pair[0] == pair[1]);
                let step = moved.first().filter(|_| same).and_then(LaneSum::constant);
                self.steps.insert(Symbol { def, position }, (step, first));
                self.memo.confirm();
                return assumed.into();
            }
            self.memo.withdraw();
            zeros = lost;
        }
        LaneValue::Opaque(Opaque::Paths)
    }

    /// By how much each way back moves what was assumed at the beginning of a loop; nothing if not all lanes alike.
    fn moved(
        &mut self,
        position: u16,
        assumed: &LaneSum,
        later: &[(Option<BlockId>, SsaId)],
        before: impl Fn(Option<BlockId>) -> Option<SsaId>,
        depth: u32,
    ) -> Option<Vec<LaneSum>> {
        let mut moved = Vec::with_capacity(later.len());
        for (from, later) in later {
            let LaneValue::Sum(value) = self.def(*later, position, before(*from), depth + 1) else { return None };
            moved.push(Some(value.minus(assumed)).filter(LaneSum::is_uniform)?);
        }
        Some(moved)
    }

    /// What an instruction leaves in a register.
    fn result(&mut self, id: InstId, to: Reg, depth: u32) -> Combined {
        let inst = self.definitions.body.inst(id);
        let Some(halves) = inst.halves() else {
            return self.computed(id, inst.opcode(), inst.operands.iter(), to, depth);
        };
        let Some(half) = halves.iter().find(|half| half.writes().any(|reg| reg.overlaps(to))) else {
            return Combined::Opaque(Opaque::Operation);
        };
        let opcode = half.opcode().alone().unwrap_or(half.opcode());
        self.computed(id, opcode, half.operands(), to, depth)
    }

    fn computed<'a>(
        &mut self,
        id: InstId,
        opcode: Opcode,
        operands: impl Iterator<Item = &'a Operand>,
        to: Reg,
        depth: u32,
    ) -> Combined {
        let inst = self.definitions.body.inst(id);
        if inst.variant.memory != Memory::None && inst.variant.flags.intersects(Flags::LOAD | Flags::ATOMIC) {
            return Combined::Opaque(Opaque::Loaded);
        }
        let operands: Vec<&Operand> = operands.collect();
        if opcode == Opcode::V_PK_MOV_B32 {
            return self.moved_half(id, &operands, to, depth);
        }
        // The upper halves of results are not looked at.
        let lower = operands.first().and_then(|operand| operand.reg()).is_some_and(|reg| reg.first == to.first);
        if !lower || is_vector(to) && changes_operands(inst) {
            return Combined::Opaque(Opaque::Operation);
        }
        let mut sources: [Option<LaneSum>; 3] = [const { None }; 3];
        let mut opaque: Option<Opaque> = None;
        for (source, role) in sources.iter_mut().zip([Role::Src0, Role::Src1, Role::Src2]) {
            let Some(operand) = operands.iter().find(|operand| alone(operand.role) == role) else { continue };
            match self.read(id, operand, depth) {
                LaneValue::Sum(sum) => *source = Some(sum),
                LaneValue::Opaque(why) => opaque = Some(opaque.map_or(why, |known| known.min(why))),
            }
        }
        if let Some(why) = opaque {
            return Combined::Opaque(why);
        }
        if matches!(opcode, Opcode::S_MOVK_I32 | Opcode::S_MOV_B32)
            && sources[0].is_none()
            && let Some(constant) = constant(inst)
        {
            return LaneSum::number(constant).into();
        }
        exact::combine(opcode, &sources, self.shape.lanes())
    }

    /// What `v_pk_mov_b32` leaves in one half: a half of the first source, or of the second.
    fn moved_half(&mut self, id: InstId, operands: &[&Operand], to: Reg, depth: u32) -> Combined {
        let half = operands.first().and_then(|operand| operand.reg()).map_or(0, |reg| to.first - reg.first);
        let role = if half == 0 { Role::Src0 } else { Role::Src1 };
        let m = &self.definitions.body.inst(id).modifiers;
        let upper = u16::from(m.op_sel >> half & 1);
        let plain = !m.clamp && (m.neg | m.abs | m.neg_hi | m.omod) == 0 && half < 2;
        let source = operands.iter().find(|operand| operand.role == role).filter(|_| plain);
        let from = source.and_then(|source| self.definitions.body.register(id, source)).filter(|reg| reg.dwords == 2);
        let read = from.and_then(|from| {
            self.definitions.ssa.read_at(id, Reg { first: from.first + upper, dwords: 1, ..from }).next()
        });
        let lanes = self.definitions.ssa.exec_before(id);
        match read.map(|(position, def)| self.def(def, position, Some(lanes), depth)) {
            Some(LaneValue::Sum(sum)) => sum.into(),
            Some(LaneValue::Opaque(why)) => Combined::Opaque(why),
            None => Combined::Opaque(Opaque::Operation),
        }
    }

    /// What registers hold when a body begins.
    fn at_entry(&self, reg: Reg) -> LaneValue {
        let opaque = LaneValue::Opaque(Opaque::Operation);
        if !is_vector(reg) || self.definitions.body.kind() != BodyKind::Kernel {
            return opaque;
        }
        let packed = self.definitions.body.target().packed_work_item_ids();
        match (0..3).find(|number| Reg::vector(*number, 1) == reg) {
            Some(number) if !packed && u32::from(number) < self.shape.given => self.shape.id(number.into()).into(),
            // Those that were not asked for are 0.
            Some(0) if packed && self.shape.given == 1 => self.shape.id(0).into(),
            Some(0) if packed => self.shape.packed().into(),
            _ => opaque,
        }
    }
}

/// What an operation makes of its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Combined {
    /// So much is known, and added to it is, unless `rest` is none, something that is the same in all lanes, and of
    /// whose lowest bits so many are 0.
    Sum { known: LaneSum, rest: Option<u32> },
    /// Nothing is known.
    Opaque(Opaque),
}

impl Combined {
    /// Something that is the same in all lanes, and of whose lowest bits so many are 0.
    fn same_in_all(zeros: u32) -> Combined {
        Combined::Sum { known: LaneSum::number(0), rest: Some(zeros) }
    }
}

impl From<LaneSum> for Combined {
    fn from(known: LaneSum) -> Combined {
        Combined::Sum { known, rest: None }
    }
}

impl From<LaneSum> for LaneValue {
    fn from(sum: LaneSum) -> LaneValue {
        LaneValue::Sum(sum)
    }
}

/// Whether what an instruction computes with is something else than what its operands hold: values of other lanes, or
/// parts of values.
fn changes_operands(inst: &Inst) -> bool {
    let m = &inst.modifiers;
    m.clamp || m.dpp.is_some() || m.dpp8.is_some() || m.sdwa.is_some() || (m.op_sel | m.neg | m.abs | m.omod) != 0
}

/// The role that an operand of the second of two operations has in that operation alone.
fn alone(role: Role) -> Role {
    match role {
        Role::Src0Y => Role::Src0,
        Role::Src1Y => Role::Src1,
        Role::Src2Y => Role::Src2,
        other => other,
    }
}

/// Whether lanes have values of their own in it.
fn is_vector(reg: Reg) -> bool {
    reg.file != RegFile::Scalar
}

/// The number that is in an instruction.
fn constant(inst: &Inst) -> Option<i32> {
    inst.operands.iter().find_map(|operand| match operand.value {
        Value::InlineInt(value) => Some(i32::from(value)),
        Value::Literal(value) => Some(value.cast_signed()),
        Value::Imm(value) => i32::try_from(value).ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
