//! Constants in scalar registers, followed far enough to know where `s_swappc_b64` and `s_setpc_b64` go.
//!
//! A forward analysis over the instructions of one body. Each scalar register holds a known word, a half of the return
//! address the body was entered with, or something unknown; at a join values that differ become unknown; a call makes
//! everything unknown but what its function is known to leave alone ([`PreservedRegs`]; compilers that know the
//! function keep its address there for the next call). Compilers form the address of a function as `s_getpc_b64` plus a
//! 64-bit literal (`s_add_u32`, `s_addc_u32`), or load it from a slot that the loader relocates; long branches are
//! formed in the first way and end in `s_setpc_b64`. Generators of assembly (Tensile) add up the literal first, by
//! `s_add_i32`.

use rustc_hash::FxHashMap;

use super::body::{Body, BodyKind, Flow};
use super::decode::{RETURN_ADDRESS, displaced};
use super::image::Image;
use crate::solver::{Analysis, Graph, Lattice, reverse_postorder, solve};
use wavetap_amdgpu::{Branch, Inst, Opcode, OpcodeFlags, Reg, RegFile, Role, Value, scalar};
use wavetap_base::entity::InstId;

/// Where an instruction that jumps through registers goes, as far as constants tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Address(u64),
    ReturnAddress,
    Unknown,
}

/// The scalar registers that functions leave alone, with all that they call: by the address of a function, a bit for
/// each register by operand code.
pub type PreservedRegs = FxHashMap<u64, u128>;

/// What a scalar register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Unknown,
    Known(u32),
    /// A half (0 low, 1 high) of the return address that the function was entered with.
    Return(u8),
}

/// Scalar registers that operands name by codes below 128.
const SCALARS: usize = 128;

#[derive(Debug, Clone, PartialEq)]
struct State {
    words: [Word; SCALARS],
    scc: Option<bool>,
}

/// Join: a register keeps its value if both sides have the same, else it is unknown.
impl Lattice for State {
    fn join(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            if mine != theirs && *mine != Word::Unknown {
                *mine = Word::Unknown;
                changed = true;
            }
        }
        if self.scc != other.scc && self.scc.is_some() {
            self.scc = None;
            changed = true;
        }
        changed
    }
}

impl State {
    const UNKNOWN: State = State { words: [Word::Unknown; SCALARS], scc: None };

    fn at_entry(kind: BodyKind) -> State {
        let mut state = State::UNKNOWN;
        if kind == BodyKind::Function {
            state.words[RETURN_ADDRESS.first as usize] = Word::Return(0);
            state.words[RETURN_ADDRESS.first as usize + 1] = Word::Return(1);
        }
        state
    }

    fn word(&self, reg: Reg, index: u8) -> Word {
        match reg.file {
            RegFile::Scalar if reg.is_null() => Word::Known(0),
            RegFile::Scalar => {
                self.words.get(usize::from(reg.first) + usize::from(index)).copied().unwrap_or(Word::Unknown)
            }
            _ => Word::Unknown,
        }
    }

    /// A 32-bit part of a source operand.
    fn source(&self, inst: &Inst, role: Role, index: u8) -> Word {
        match inst.operand(role).map(|operand| operand.value) {
            Some(Value::Reg(reg)) if index < reg.dwords => self.word(reg, index),
            // Whether the literal of a 64-bit operation is zero- or sign-extended depends on the operation; inline
            // integers are sign-extended.
            Some(Value::Literal64(literal)) => Word::Known((literal >> (32 * u32::from(index))) as u32),
            Some(Value::Literal(literal)) if index == 0 || literal >> 31 == 0 => {
                Word::Known(if index == 0 { literal } else { 0 })
            }
            Some(Value::InlineInt(value)) => {
                Word::Known(if index == 0 { i32::from(value) as u32 } else { (i32::from(value) >> 31) as u32 })
            }
            Some(Value::Imm(value)) => Word::Known((value >> (32 * u32::from(index))) as u32),
            _ => Word::Unknown,
        }
    }

    fn set(&mut self, reg: Reg, index: u8, word: Word) {
        if reg.file == RegFile::Scalar
            && !reg.is_null()
            && let Some(place) = self.words.get_mut(usize::from(reg.first) + usize::from(index))
        {
            *place = word;
        }
    }

    /// The effect of one instruction.
    fn step(&mut self, inst: &Inst, next_pc: u64, image: &Image<'_>, preserved: &PreservedRegs) {
        if matches!(inst.variant.branch, Branch::Call | Branch::IndirectCall) {
            return self.call(inst, next_pc, preserved);
        }
        let destination =
            inst.operand(Role::Sdst).or_else(|| inst.operand(Role::Sdata)).and_then(|operand| operand.reg());
        let mut results: [Word; 16] = [Word::Unknown; 16];
        let mut carry_out = None;
        match inst.opcode() {
            Opcode::S_GETPC_B64 | Opcode::S_GET_PC_I64 => {
                results[..2].copy_from_slice(&[Word::Known(next_pc as u32), Word::Known((next_pc >> 32) as u32)]);
            }
            Opcode::S_MOV_B32 => results[0] = self.source(inst, Role::Src0, 0),
            Opcode::S_MOV_B64 => {
                for index in 0..2 {
                    results[usize::from(index)] = self.source(inst, Role::Src0, index);
                }
            }
            Opcode::S_MOVK_I32 => results[0] = self.source(inst, Role::Simm16, 0),
            Opcode::S_SEXT_I32_I16 => {
                if let Word::Known(value) = self.source(inst, Role::Src0, 0) {
                    results[0] = Word::Known(value as u16 as i16 as u32);
                }
            }
            // gfx12 has new names.
            Opcode::S_ADD_U32 | Opcode::S_ADD_CO_U32 => (results[0], carry_out) = self.add(inst, Some(false)),
            Opcode::S_ADDC_U32 | Opcode::S_ADD_CO_CI_U32 => (results[0], carry_out) = self.add(inst, self.scc),
            Opcode::S_SUB_U32 | Opcode::S_SUB_CO_U32 => (results[0], carry_out) = self.subtract(inst, Some(false)),
            Opcode::S_SUBB_U32 | Opcode::S_SUB_CO_CI_U32 => (results[0], carry_out) = self.subtract(inst, self.scc),
            // SCC is whether that overflows; only the sum is asked for.
            Opcode::S_ADD_I32 | Opcode::S_ADD_CO_I32 => results[0] = self.add(inst, Some(false)).0,
            Opcode::S_SUB_I32 | Opcode::S_SUB_CO_I32 => results[0] = self.subtract(inst, Some(false)).0,
            Opcode::S_ABS_I32 => {
                if let Word::Known(value) = self.source(inst, Role::Src0, 0) {
                    results[0] = Word::Known((value as i32).wrapping_abs() as u32);
                }
            }
            Opcode::S_ADD_NC_U64 | Opcode::S_SUB_NC_U64 => {
                if let (Some(a), Some(b)) = (self.quad(inst, Role::Src0), self.quad(inst, Role::Src1)) {
                    let result =
                        if inst.opcode() == Opcode::S_ADD_NC_U64 { a.wrapping_add(b) } else { a.wrapping_sub(b) };
                    results[..2].copy_from_slice(&[Word::Known(result as u32), Word::Known((result >> 32) as u32)]);
                }
            }
            _ if inst.is_any(OpcodeFlags::SCALAR_LOAD) => self.load(inst, image, &mut results),
            _ => {}
        }
        for reg in inst.writes() {
            if reg == Reg::SCC {
                self.scc = carry_out;
            }
            for index in 0..reg.dwords {
                let word = if Some(reg) == destination { results.get(usize::from(index)).copied() } else { None };
                self.set(reg, index, word.unwrap_or(Word::Unknown));
            }
        }
        if indirectly_writes_scalars(inst) {
            self.words = [Word::Unknown; SCALARS];
        }
    }

    /// The effect of a call.
    fn call(&mut self, inst: &Inst, next_pc: u64, preserved: &PreservedRegs) {
        let target = match inst.variant.branch {
            Branch::Call => displaced(inst, next_pc.wrapping_sub(inst.size.into())),
            _ => match self.target(inst, next_pc) {
                Target::Address(address) => Some(address),
                Target::ReturnAddress | Target::Unknown => None,
            },
        };
        let preserved = target.and_then(|address| preserved.get(&address)).copied().unwrap_or(0);
        let lost = self.words.iter_mut().enumerate().filter(|(code, _)| preserved >> code & 1 == 0);
        lost.for_each(|(_, word)| *word = Word::Unknown);
        self.scc = None;
        let link = inst.operand(Role::Sdst).and_then(|operand| operand.reg());
        link.into_iter().for_each(|link| (0..link.dwords).for_each(|half| self.set(link, half, Word::Unknown)));
    }

    fn add(&self, inst: &Inst, carry_in: Option<bool>) -> (Word, Option<bool>) {
        match (self.source(inst, Role::Src0, 0), self.source(inst, Role::Src1, 0), carry_in) {
            (Word::Known(a), Word::Known(b), Some(carry)) => {
                let sum = u64::from(a) + u64::from(b) + u64::from(carry);
                (Word::Known(sum as u32), Some(sum >> 32 != 0))
            }
            _ => (Word::Unknown, None),
        }
    }

    fn subtract(&self, inst: &Inst, borrow_in: Option<bool>) -> (Word, Option<bool>) {
        match (self.source(inst, Role::Src0, 0), self.source(inst, Role::Src1, 0), borrow_in) {
            (Word::Known(a), Word::Known(b), Some(borrow)) => {
                let difference = i64::from(a) - i64::from(b) - i64::from(borrow);
                (Word::Known(difference as u32), Some(difference < 0))
            }
            _ => (Word::Unknown, None),
        }
    }

    /// A scalar load from a known address gives known words where the loader puts pointers.
    fn load(&self, inst: &Inst, image: &Image<'_>, results: &mut [Word; 16]) {
        let Some(base) = inst.operand(Role::Sbase).and_then(|operand| operand.reg()) else { return };
        let (Word::Known(low), Word::Known(high)) = (self.word(base, 0), self.word(base, 1)) else { return };
        let offset = match inst.operand(Role::Soffset).map(|operand| operand.value) {
            None | Some(Value::Off) => i64::from(inst.modifiers.offset),
            Some(Value::Imm(value)) => value,
            Some(_) => return,
        };
        let address = (u64::from(low) | u64::from(high) << 32).wrapping_add_signed(offset) & !3;
        for pair in 0..results.len() / 2 {
            if let Some(target) = image.pointer(address.wrapping_add(8 * pair as u64)) {
                results[2 * pair] = Word::Known(target as u32);
                results[2 * pair + 1] = Word::Known((target >> 32) as u32);
            }
        }
    }

    /// A 64-bit source operand.
    fn quad(&self, inst: &Inst, role: Role) -> Option<u64> {
        match (self.source(inst, role, 0), self.source(inst, role, 1)) {
            (Word::Known(low), Word::Known(high)) => Some(u64::from(low) | u64::from(high) << 32),
            _ => None,
        }
    }

    fn target(&self, inst: &Inst, next_pc: u64) -> Target {
        if inst.opcode() == Opcode::S_ADD_PC_I64 {
            return self
                .quad(inst, Role::Src0)
                .map_or(Target::Unknown, |offset| Target::Address(next_pc.wrapping_add(offset)));
        }
        if inst.is_any(OpcodeFlags::TRAP_RETURN) {
            return Target::Unknown;
        }
        match (self.source(inst, Role::Src0, 0), self.source(inst, Role::Src0, 1)) {
            (Word::Known(low), Word::Known(high)) => Target::Address(u64::from(low) | u64::from(high) << 32),
            (Word::Return(0), Word::Return(1)) => Target::ReturnAddress,
            _ => Target::Unknown,
        }
    }
}

/// The scalar registers that a body's own instructions leave alone, a bit for each by operand code.
#[must_use]
pub fn preserved_by(body: &Body) -> u128 {
    let mut preserved = u128::MAX;
    for inst in body.insts() {
        if indirectly_writes_scalars(inst) {
            return 0;
        }
        for reg in inst.writes().filter(|reg| reg.file == RegFile::Scalar && !reg.is_null()) {
            (reg.first..reg.first + u16::from(reg.dwords))
                .filter(|code| usize::from(*code) < SCALARS)
                .for_each(|code| preserved &= !(1 << code));
        }
    }
    preserved
}

/// Whether the instruction writes scalar registers that M0 chooses.
fn indirectly_writes_scalars(inst: &Inst) -> bool {
    inst.is_any(OpcodeFlags::SCALAR_RELATIVE_WRITE)
}

/// The targets of all indirect calls and jumps of a body.
pub(super) fn indirect_targets(body: &Body, image: &Image<'_>, preserved: &PreservedRegs) -> Vec<(InstId, Target)> {
    let indirect = |id: InstId| matches!(body.inst(id).variant.branch, Branch::IndirectCall | Branch::IndirectJump);
    if !body.ids().any(indirect) {
        return Vec::new();
    }
    let mut found: FxHashMap<InstId, Target> = FxHashMap::default();
    let before = |id: InstId, state: &State| {
        if indirect(id) {
            found.insert(id, state.target(body.inst(id), body.end_address(id)));
        }
    };
    follow(body, image, preserved, before, |_, _| {});
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(id, _)| *id);
    found
}

/// The addresses that a body forms relative to its own place (`s_getpc_b64` and additions) or loads from slots that the
/// loader relocates: the instruction that completes the address in a pair of scalar registers, and the address. What it
/// is the address of is not looked at here.
///
/// ```
/// # use wavetap_amdgpu::Target;
/// # use wavetap_analysis::kernel::{self, Body, BodyKind, Image};
/// # let Some(target) = Target::by_name("gfx90a") else { return Ok(()) };
/// // s_getpc_b64 s[0:1]; s_add_u32 s0, s0, 0x40; s_addc_u32 s1, s1, 0; s_endpgm
/// let words = [0xbe801c00_u32, 0x8000ff00, 0x40, 0x82018001, 0xbf810000];
/// let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
/// let mut image = Image::new();
/// image.add_code(0x1000, &code);
/// let body = Body::decode(target, &image, "kernel", BodyKind::Kernel, 0x1000)?;
/// let addresses: Vec<u64> = kernel::formed_addresses(&body, &image).into_iter().map(|(_, address)| address).collect();
/// assert_eq!(addresses, [0x1044]);
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
#[must_use]
pub fn formed_addresses(body: &Body, image: &Image<'_>) -> Vec<(InstId, u64)> {
    if !body.opcode_flags().contains(OpcodeFlags::GET_PC) {
        return Vec::new();
    }
    // Whether the last visit, which has the states that hold on every path, still knew the address.
    let mut found: FxHashMap<InstId, Option<u64>> = FxHashMap::default();
    let after = |id: InstId, state: &State| {
        let inst = body.inst(id);
        let pair = match inst.opcode() {
            Opcode::S_ADDC_U32 | Opcode::S_SUBB_U32 | Opcode::S_ADD_CO_CI_U32 | Opcode::S_SUB_CO_CI_U32 => {
                inst.operand(Role::Sdst).and_then(|operand| operand.reg()).and_then(|high| {
                    let low = high.first.checked_sub(1)?;
                    Some(Reg::scalar(low, 2))
                })
            }
            Opcode::S_ADD_NC_U64 | Opcode::S_SUB_NC_U64 => inst.operand(Role::Sdst).and_then(|operand| operand.reg()),
            _ if inst.is_any(OpcodeFlags::SCALAR_LOAD) => inst.operand(Role::Sdata).and_then(|operand| operand.reg()),
            _ => None,
        };
        if let Some(pair) = pair.filter(|pair| pair.dwords >= 2) {
            let address = match (state.word(pair, 0), state.word(pair, 1)) {
                (Word::Known(low), Word::Known(high)) => Some(u64::from(low) | u64::from(high) << 32),
                _ => None,
            };
            found.insert(id, address);
        }
    };
    follow(body, image, &PreservedRegs::default(), |_, _| {}, after);
    let mut found: Vec<_> = found.into_iter().filter_map(|(id, address)| Some((id, address?))).collect();
    found.sort_by_key(|(id, _)| *id);
    found
}

/// Runs of instructions that are executed one after the other, calls included: a run is named by its first instruction.
/// States are stored where runs begin, not at every instruction, because they are large.
struct Runs<'a> {
    body: &'a Body,
    /// By instruction: whether a run begins with it.
    begins: Vec<bool>,
    /// First instructions.
    order: Vec<InstId>,
    /// By first instruction: its place in `order`, and the last instruction.
    runs: FxHashMap<InstId, (usize, InstId)>,
}

impl<'a> Runs<'a> {
    fn of(body: &'a Body) -> Runs<'a> {
        let mut begins = vec![false; body.len()];
        begins[body.entry().index()] = true;
        for id in body.ids().filter(|id| !matches!(body.flow(*id), Flow::Next | Flow::Call(_))) {
            body.successors(id).for_each(|to| begins[to.index()] = true);
        }
        let firsts: Vec<InstId> = body.ids().filter(|id| begins[id.index()]).collect();
        let mut runs = Runs { body, begins, order: Vec::new(), runs: FxHashMap::default() };
        let lasts: Vec<InstId> = firsts.iter().map(|first| runs.insts(*first).last().unwrap_or(*first)).collect();
        let number = |first: InstId| firsts.binary_search(&first).unwrap_or_default();
        let order =
            reverse_postorder(firsts.len(), [number(body.entry())], |run| body.successors(lasts[run]).map(number));
        runs.runs = order.iter().enumerate().map(|(rank, run)| (firsts[*run], (rank, lasts[*run]))).collect();
        runs.order = order.into_iter().map(|run| firsts[run]).collect();
        runs
    }

    /// The instructions of a run.
    fn insts(&self, first: InstId) -> impl Iterator<Item = InstId> {
        std::iter::successors(Some(first), |id| self.body.successors(*id).find(|to| !self.begins[to.index()]))
    }
}

impl Graph for Runs<'_> {
    type Node = InstId;

    fn order(&self) -> &[InstId] {
        &self.order
    }

    fn rank(&self, first: InstId) -> usize {
        self.runs[&first].0
    }

    fn index(&self, first: InstId) -> usize {
        self.rank(first)
    }

    fn successors(&self, first: InstId) -> impl Iterator<Item = InstId> {
        self.body.successors(self.runs[&first].1)
    }
}

/// Follows constants through a body. `before` and `after` are called with every reachable instruction and the state
/// there, again whenever less is known: the last call holds on every path.
struct Constants<'a, B, A> {
    runs: &'a Runs<'a>,
    image: &'a Image<'a>,
    preserved: &'a PreservedRegs,
    before: B,
    after: A,
}

impl<B: FnMut(InstId, &State), A: FnMut(InstId, &State)> Analysis for Constants<'_, B, A> {
    type Node = InstId;
    type State = Box<State>;

    fn transfer(&mut self, first: InstId, state: &mut Box<State>) {
        let body = self.runs.body;
        for id in self.runs.insts(first) {
            (self.before)(id, state);
            state.step(body.inst(id), body.end_address(id), self.image, self.preserved);
            (self.after)(id, state);
        }
    }

    fn join(&mut self, _: InstId, state: &mut Box<State>, incoming: &Box<State>) -> bool {
        state.join(incoming)
    }
}

fn follow(
    body: &Body,
    image: &Image<'_>,
    preserved: &PreservedRegs,
    before: impl FnMut(InstId, &State),
    after: impl FnMut(InstId, &State),
) {
    let runs = Runs::of(body);
    let at_entry = Box::new(State::at_entry(body.kind()));
    solve(&runs, &mut Constants { runs: &runs, image, preserved, before, after }, [(body.entry(), at_entry)]);
}

/// EXEC and the other named registers have codes below 128 too, so one array serves all.
const _: () = assert!((scalar::EXEC as usize) + 2 <= SCALARS);
