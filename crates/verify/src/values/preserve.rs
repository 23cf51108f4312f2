//! Inserted code leaves everything that the original can see as the original would have it.
//!
//! A forward analysis over the new code ([`State`]): at every original instruction, each register that it reads must
//! hold in the rewritten machine what it holds in the original one. Then it computes the same results, stores the same
//! data and takes the same way. Inserted code may use any register as long as nothing original reads it afterwards:
//! whether it was dead, saved and restored, or unused makes no difference here.

use std::cell::Cell;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use crate::hazards::expert_scheduling;
use crate::placement::bundles;
use crate::placement::first_vector;
use crate::values::compared::{FlatScratch, State, Word};
use crate::values::dropped;
use crate::values::entry::at_entry;
use crate::values::preloaded;
use crate::values::scratch::{self, RESOURCE_CARRY};
use crate::values::spill_slots;
use wavetap_amdgpu::{Inst, Memory, Opcode, OpcodeFlags, Reg, RegFile, Role, Value, scalar};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{Accesses, Indexing, RegSet, Summaries};
use wavetap_analysis::kernel::{Body, CallTarget, Flow};
use wavetap_analysis::solver::{Analysis, solve};
use wavetap_base::entity::{BlockId, InstId};
use wavetap_object::code_object::InitialRegisters;

/// More findings than this in one kernel say nothing new.
const MOST_FINDINGS: usize = 20;

/// What is checked against what.
pub(crate) struct Subject<'a> {
    /// The original kernel or function.
    pub(crate) original: &'a Body,
    /// Its instrumented code.
    pub(crate) new: &'a Body,
    /// Which instruction is which.
    pub(crate) alignment: &'a Alignment,
    /// Of a kernel: registers at entry, in the original and now.
    pub(crate) entry: Option<(&'a InitialRegisters, &'a InitialRegisters)>,
    /// Registers that any original code names: nothing else can be read by a function that is not known.
    pub(crate) named: RegSet,
    /// What calls in the original may read and write.
    pub(crate) summaries: &'a Summaries,
    /// Vector registers that the original has: an index at run time goes no further.
    pub(crate) vector_registers: u32,
    /// Scratch memory of each lane that is there for inserted code alone.
    pub(crate) scratch: Range<u64>,
    /// From here on code is new: below, only original code runs.
    pub(crate) new_code: u64,
    /// Of copied functions that were checked, by entry: what [`check`] gave.
    pub(crate) changed_by: &'a FxHashMap<u64, RegSet>,
    /// Original addresses of accesses that some lanes may not execute.
    pub(crate) dropping: &'a FxHashSet<u64>,
    /// Whether this may run while it runs already: then those that call it are not all checked after it.
    pub(crate) is_recursive: &'a dyn Fn() -> bool,
}

/// Checks one kernel or function. Gives the scalar registers that may differ from the original's when a function
/// returns: no caller may read them then.
pub(crate) fn check(subject: &Subject<'_>, cfg: &Cfg, findings: &mut Vec<Finding>) -> RegSet {
    let special: RegSet = [Reg::EXEC, Reg::SCC, Reg::scalar(scalar::MODE, 1), Reg::M0, Reg::VCC].into_iter().collect();
    let absent: RegSet = (subject.vector_registers as u16..256).map(|number| Reg::vector(number, 1)).collect();
    let visible = subject.named.union(special).difference(absent);
    let returned = Cell::new(RegSet::EMPTY);
    let mut machine = Machine { subject, indexing: Indexing::of(subject.original), visible, returned, reports: false };
    if !machine.solve(cfg, false).1.contains(&true) {
        return machine.returned.get();
    }
    // Findings are rare, and only then is it needed what every block begins with.
    let (block_in, faulty) = machine.solve(cfg, true);
    machine.reports = true;
    let mut found = Vec::new();
    for block in cfg.ids().filter(|block| faulty[block.index()]) {
        let Some(mut state) = block_in[block.index()].clone() else { continue };
        for id in cfg.block(block).insts() {
            machine.step(&mut state, id, |finding| found.push(finding()));
        }
    }
    if let Some(more) = found.get(MOST_FINDINGS) {
        let message = format!("{} further reads of changed registers", found.len() - MOST_FINDINGS);
        let more = Finding::new(more.rule, message);
        found.truncate(MOST_FINDINGS);
        found.push(more);
    }
    findings.append(&mut found);
    machine.returned.get()
}

struct Machine<'a> {
    subject: &'a Subject<'a>,
    /// Of the original.
    indexing: Indexing,
    /// Registers that original code can see.
    visible: RegSet,
    /// Registers that may differ where control goes back to a caller.
    returned: Cell<RegSet>,
    /// The fixed point is reached: this pass is for the findings.
    reports: bool,
}

/// The two machines, from block to block.
struct Blocks<'a> {
    machine: &'a Machine<'a>,
    cfg: &'a Cfg,
    /// Whether what each block begins with is asked for.
    keeps_all: bool,
    /// By block: whether its last visit, which has the state of the solution, found something.
    faulty: Vec<bool>,
}

impl Analysis for Blocks<'_> {
    type Node = BlockId;
    type State = Box<State>;

    fn transfer(&mut self, block: BlockId, state: &mut Box<State>) {
        let faulty = &mut self.faulty[block.index()];
        *faulty = false;
        for id in self.cfg.block(block).insts() {
            self.machine.step(state, id, |_| *faulty = true);
        }
    }

    fn join(&mut self, block: BlockId, state: &mut Box<State>, incoming: &Box<State>) -> bool {
        state.join(incoming, self.cfg.block(block).first.0)
    }

    fn keeps(&self, block: BlockId) -> bool {
        self.keeps_all || block == self.cfg.entry() || self.cfg.block(block).predecessors.len() != 1
    }
}

impl Machine<'_> {
    /// The states that blocks begin with, and which blocks have findings. A state is large, and most blocks have one
    /// predecessor: the states of those are not stored unless `keeps_all`.
    fn solve(&self, cfg: &Cfg, keeps_all: bool) -> (Vec<Option<Box<State>>>, Vec<bool>) {
        let mut blocks = Blocks { machine: self, cfg, keeps_all, faulty: vec![false; cfg.len()] };
        let block_in = solve(&cfg.forward(), &mut blocks, [(cfg.entry(), Box::new(at_entry(self.subject)))]);
        (block_in, blocks.faulty)
    }

    fn step(&self, state: &mut State, id: InstId, mut report: impl FnMut(&dyn Fn() -> Finding)) {
        match self.subject.alignment.original(id) {
            Some(original) => self.original(state, original, id, report),
            None => {
                self.lds_limit(state, id, &mut report);
                if first_vector::repeats_mode(self.subject.original, self.subject.new, id) {
                    return;
                }
                if !self.flat_scratch(state, id, &mut report)
                    && !spill_slots::moved(state, self.subject.new, id, &self.subject.scratch, report)
                {
                    self.inserted(state, id);
                }
            }
        }
    }

    /// The rewritten machine alone executes an inserted instruction; or, where the original one before it was an access
    /// that lanes do not execute, both give these lanes 0.
    fn inserted(&self, state: &mut State, id: InstId) {
        let new = self.subject.new;
        match state.dropping.and_then(|site| dropped::zeroed(self.subject.original, InstId(site), new, id)) {
            Some(zeroed) if state.are_dropped(new.target().wave_size()) => state.both_write_dropped(zeroed, id.0),
            _ => {
                let arguments = preloaded::loaded(state, new, id);
                inserted(state, new, id);
                arguments.into_iter().for_each(|register| state.set(register, 0, Word::Original(register.first)));
            }
        }
    }

    /// Does what an inserted instruction does to FLAT_SCRATCH where software sets it, and tells whether that was all.
    /// Only a kernel's entry may set it, and nothing is there before.
    fn flat_scratch(&self, state: &mut State, id: InstId, report: &mut impl FnMut(&dyn Fn() -> Finding)) -> bool {
        let new = self.subject.new;
        let (inst, target) = (new.inst(id), new.target());
        if target.architected_flat_scratch() {
            return false;
        }
        let finding = |what: &str| Finding::new(Rule::Scratch, format!("{} {what}", inst.name())).at(new.address(id));
        if inst.variant.memory == Memory::Scratch
            && state.flat_scratch.is_some_and(|flat_scratch| !flat_scratch.is_set())
        {
            report(&|| finding("accesses scratch memory, and FLAT_SCRATCH does not lead there"));
        }
        let register = Reg::scalar(scalar::FLAT_SCRATCH, 2);
        let hwreg = target.flat_scratch_hwreg();
        let half = match (hwreg, inst.sets_hwreg()) {
            (Some(low), Some(number)) => [low, low + 1].iter().position(|half| *half == number),
            (None, _) if new.writes(id).any(|reg| reg.overlaps(register)) => None,
            _ => return false,
        };
        if hwreg.is_some() && half.is_none() {
            return false;
        }
        let is_whole = inst.hardware_register().is_some_and(|(_, bits)| bits == (0..32));
        let source = inst.operands.iter().find_map(|operand| operand.reg());
        let word = source.filter(|_| is_whole).map_or(Word::Other(id.0), |reg| state.word(reg, 0));
        if hwreg.is_none() {
            inserted(state, new, id);
        }
        let registers = [0, 1].map(|half| state.word(register, half));
        match (&mut state.flat_scratch, half) {
            (None, _) => report(&|| finding("changes FLAT_SCRATCH")),
            (Some(flat_scratch), Some(half)) => flat_scratch.set[half] = word,
            (Some(flat_scratch), None) => flat_scratch.set = registers,
        }
        true
    }

    /// Where LDS instructions take the size that they may reach from M0, an inserted one needs a limit that is none.
    fn lds_limit(&self, state: &State, id: InstId, report: &mut impl FnMut(&dyn Fn() -> Finding)) {
        let (new, target) = (self.subject.new, self.subject.new.target());
        if !target.lds_limit_in_m0() || new.inst(id).variant.memory != Memory::Lds {
            return;
        }
        if !matches!(state.word(Reg::M0, 0), Word::Constant(limit) if limit >= target.lds_bytes()) {
            let message = || format!("{}: M0 is not known to let it reach all of LDS", new.inst(id).name());
            report(&|| Finding::new(Rule::Lds, message()).at(new.address(id)));
        }
    }

    /// Both machines execute an original instruction.
    fn original(&self, state: &mut State, original: InstId, new: InstId, mut report: impl FnMut(&dyn Fn() -> Finding)) {
        let body = self.subject.original;
        let inst = body.inst(original);
        if state.flat_scratch.take().is_some_and(|flat_scratch| !flat_scratch.is_set()) {
            let message = "scratch memory was added, and FLAT_SCRATCH does not lead there";
            report(&|| Finding::new(Rule::Scratch, message).at(self.subject.new.address(new)));
        }
        (state.resource, state.preloaded) = (None, None);
        let flow = body.flow(original);
        let lanes = body.target().wave_size();
        let drops = self.subject.dropping.contains(&body.address(original)) && state.executes_subset(lanes);
        if !self.writes_alone(state, original, flow, new) {
            self.any_original(state, original, new, drops, report);
        }
        state.dropping = None;
        if drops {
            state.execute_subset(original.0, lanes);
        }
        if is_getpc(inst)
            && let Some(pair) = inst.operand(Role::Sdst).and_then(|operand| operand.reg())
        {
            state.both_read_counter(pair, body.end_address(original), self.subject.new.end_address(new));
        }
    }

    /// Does what an original instruction does that reads nothing that may differ, and accesses what it names and no
    /// more; tells whether it is one. Most are, and sets of all registers cost more than a look at the few that are
    /// named.
    fn writes_alone(&self, state: &mut State, original: InstId, flow: Flow, new: InstId) -> bool {
        let body = self.subject.original;
        let inst = body.inst(original);
        let reads = match flow {
            Flow::Next | Flow::Branch(_) => true,
            // As in `any_original`.
            Flow::Jump(_) => false,
            _ => return false,
        };
        let differs = |any: bool, reg: Reg| any || state.may_differ_in(reg);
        if !Accesses::are_named(inst, self.indexing.at(original)) || reads && body.reads(original).fold(false, differs)
        {
            return false;
        }
        if reads
            && Accesses::keeps_parts(inst)
            && body.writes(original).filter(|reg| reg.file != RegFile::Scalar).fold(false, differs)
        {
            return false;
        }
        body.writes(original).for_each(|reg| state.both_overwrite(reg, new.0));
        true
    }

    /// Does what an original instruction does to both machines, whatever it is.
    fn any_original(
        &self,
        state: &mut State,
        original: InstId,
        new: InstId,
        drops: bool,
        mut report: impl FnMut(&dyn Fn() -> Finding),
    ) {
        let body = self.subject.original;
        let inst = body.inst(original);
        let own = Accesses::at(body, original, &self.indexing);
        let Accesses { mut reads, mut writes, .. } = own;
        match body.flow(original) {
            Flow::Call(target) | Flow::TailCall(target) => {
                if matches!(target, CallTarget::Known(_)) {
                    // As with a jump.
                    reads = RegSet::EMPTY;
                }
                let summary = self.subject.summaries.of(target);
                reads.add_all(&summary.reads.difference(own.kills));
                if matches!(body.flow(original), Flow::TailCall(_)) {
                    // The function returns to the caller for this one.
                    reads = RegSet::ALL;
                }
                writes.add_all(&summary.writes);
            }
            Flow::Return | Flow::IndirectJump => reads = RegSet::ALL,
            // Its target is known, and the new code goes there whatever the registers hold.
            Flow::Jump(_) => reads = RegSet::EMPTY,
            // The message has no operands.
            _ if bundles::gives_registers_back(inst) => reads = RegSet::EMPTY,
            _ => {}
        }
        if drops {
            reads.remove_all(&RegSet::from_iter([Reg::EXEC]));
        }
        reads.keep_all(&self.visible);
        if state.may_differ(&reads) {
            let mut reported = RegSet::EMPTY;
            reads.remove_all(&state.undefined);
            for reg in reads.iter() {
                if let Some((part, blame)) = state.differing(reg) {
                    if body.flow(original) == Flow::Return && !own.reads.contains(part) && self.is_of_callers(part) {
                        self.returns_changed(&RegSet::from_iter([part]));
                        continue;
                    }
                    report(&|| self.clobbered(inst, original, new, part, blame));
                    reported.insert(part);
                }
            }
            if self.reports {
                // Said once for each block is enough.
                state.adopt(&reported);
            }
        }
        state.both_write(&writes, &own.kills, new.0);
        if matches!(body.flow(original), Flow::Call(_)) {
            // A copy of the function has inserted code, too.
            let is_original =
                |target| matches!(target, CallTarget::Known(function) if function < self.subject.new_code);
            let runs_original = matches!(self.subject.new.flow(new), Flow::Call(target) if is_original(target));
            state.forget_unnamed(self.subject.named, runs_original, new.0);
        }
        match self.subject.new.flow(new) {
            Flow::Call(CallTarget::Known(copy)) => {
                self.changed_by(copy).iter().for_each(|reg| state.set(reg, 0, Word::Other(new.0)));
            }
            Flow::TailCall(CallTarget::Known(copy)) => self.returns_changed(self.changed_by(copy)),
            _ => {}
        }
    }

    /// What a copied function may have changed when it returns.
    fn changed_by(&self, copy: u64) -> &RegSet {
        self.subject.changed_by.get(&copy).unwrap_or(&RegSet::EMPTY)
    }

    /// Whether it is the callers' business, each of which is checked after this, that a register differs where control
    /// goes back to them.
    fn is_of_callers(&self, reg: Reg) -> bool {
        let is_numbered = u32::from(reg.first) < self.subject.original.target().addressable_sgprs();
        reg.file == RegFile::Scalar
            && (is_numbered || reg.overlaps(Reg::VCC))
            && self.subject.entry.is_none()
            && !(self.subject.is_recursive)()
    }

    fn returns_changed(&self, registers: &RegSet) {
        self.returned.set(self.returned.get().union(*registers));
    }

    fn clobbered(&self, inst: &Inst, original: InstId, new: InstId, part: Reg, blame: Option<u32>) -> Finding {
        let rule = match part {
            Reg { file: RegFile::Scalar, first: scalar::SCC, .. } => Rule::Scc,
            part if part.overlaps(Reg::EXEC) => Rule::Exec,
            _ => Rule::Clobbered,
        };
        let name = format!("{:?}", RegSet::from_iter([part]));
        let by = match blame.filter(|index| (*index as usize) < self.subject.new.len()) {
            Some(index) => {
                format!(
                    ", changed by {} at {:#x}",
                    self.subject.new.inst(InstId(index)).name(),
                    self.subject.new.address(InstId(index))
                )
            }
            None => String::new(),
        };
        let message = format!(
            "{} (originally at {:#x}) reads {name}, which inserted code changed{by}",
            inst.name(),
            self.subject.original.address(original)
        );
        Finding::new(rule, message).at(self.subject.new.address(new))
    }
}

/// The rewritten machine alone executes an inserted instruction.
fn inserted(state: &mut State, body: &Body, id: InstId) {
    let inst = body.inst(id);
    // What these set is what the original has at each original instruction: `high_registers` and `scheduling` check
    // that.
    if inst.variant.opcode_flags.contains(OpcodeFlags::SET_VGPR_MSB) || expert_scheduling::sets(body, id) {
        return;
    }
    let other = Word::Other(id.0);
    let mut results = [other; 2];
    let mut scc = other;
    // `v_readlane_b32` has its scalar destination where others have a vector one.
    let destination = inst.operand(Role::Sdst).or_else(|| inst.operand(Role::Vdst)).and_then(|operand| operand.reg());
    let source = |state: &State, role, index| match state.source(inst, role, index) {
        Word::Other(_) | Word::Executed | Word::Dropped => other,
        word => word,
    };
    match inst.opcode() {
        Opcode::S_MOV_B32 => results[0] = scratch::copied(state, source(state, Role::Src0, 0), destination, 0),
        Opcode::S_MOV_B64 => {
            results = [0, 1].map(|index| scratch::copied(state, source(state, Role::Src0, index), destination, index))
        }
        _ if is_getpc(inst) => results = [0, 32].map(|shift| Word::Constant((body.end_address(id) >> shift) as u32)),
        Opcode::S_CSELECT_B32 | Opcode::S_CSELECT_B64 => {
            results = [0, 1].map(|index| {
                select(
                    state.word(Reg::SCC, 0),
                    source(state, Role::Src0, index),
                    source(state, Role::Src1, index),
                    other,
                )
            });
        }
        Opcode::S_MOVK_I32 => results[0] = immediate(inst).map_or(other, |value| Word::Constant(value as u32)),
        Opcode::S_SEXT_I32_I16 => {
            if let Word::Constant(value) = source(state, Role::Src0, 0) {
                results[0] = Word::Constant(value as i16 as u32);
            }
        }
        // gfx12 has new names.
        Opcode::S_ADD_U32 | Opcode::S_ADD_CO_U32 => (results[0], scc) = add(state, inst, Word::Constant(0), other),
        Opcode::S_ADDC_U32 | Opcode::S_ADD_CO_CI_U32 => {
            (results[0], scc) = add(state, inst, state.word(Reg::SCC, 0), other)
        }
        Opcode::S_ADD_NC_U64 => results = add_whole(state, inst).unwrap_or(results),
        opcode @ (Opcode::S_CMP_LG_U32 | Opcode::S_CMP_LG_I32 | Opcode::S_CMP_EQ_U32 | Opcode::S_CMP_EQ_I32) => {
            scc = compare(state, inst, matches!(opcode, Opcode::S_CMP_EQ_U32 | Opcode::S_CMP_EQ_I32), other)
        }
        Opcode::V_READLANE_B32 => {
            if let Some((vector, lane)) = lane_operands(state, body, id, Role::Src0) {
                results[0] = state.lane(vector, lane).unwrap_or(other);
            }
        }
        Opcode::V_WRITELANE_B32 => {
            if let Some((to, lane)) = lane_operands(state, body, id, Role::Vdst) {
                // What the original has not set may be anything, and so may its copy, until it is restored.
                let from = inst.operand(Role::Src0).and_then(|operand| operand.reg());
                let is_unset =
                    |from: &Reg| state.undefined.contains(*from) && matches!(state.word(*from, 0), Word::Other(_));
                if let Some(from) = from.filter(is_unset) {
                    state.adopt(&RegSet::from_iter([from]));
                }
                let word = source(state, Role::Src0, 0);
                state.write_lane(to, lane, word);
                return;
            }
        }
        Opcode::V_AND_B32 if body.writes(id).next() == Some(Reg::vector(0, 1)) && restores_ids(state, inst) => {
            state.restore_ids();
            return;
        }
        _ if destination.is_some_and(|reg| reg.overlaps(Reg::EXEC)) => {
            results = [0, 1].map(|half| dropped::lanes(state, inst, half).unwrap_or(other));
        }
        // Of 32 bits it has no second word.
        _ if inst.is_any(OpcodeFlags::SAVEEXEC) => results = [0, 1].map(|index| state.word(Reg::EXEC, index)),
        _ => {}
    }
    for reg in body.writes(id) {
        match reg.file {
            RegFile::Scalar if Some(reg) == destination => {
                for index in 0..reg.dwords {
                    state.set(reg, index, results.get(usize::from(index)).copied().unwrap_or(other));
                }
            }
            RegFile::Scalar if reg == Reg::SCC => state.set(reg, 0, scc),
            RegFile::Scalar => (0..reg.dwords).for_each(|index| state.set(reg, index, other)),
            RegFile::Vector | RegFile::Accum if writes_active_lanes(inst) => {
                state.write_active_lanes(reg, body.target().wave_size(), other);
            }
            RegFile::Vector | RegFile::Accum => state.clobber_vector(reg),
        }
    }
}

/// Whether an instruction certainly leaves lanes that are not active as they are: some ignore EXEC, and these do not.
fn writes_active_lanes(inst: &Inst) -> bool {
    matches!(inst.opcode(), Opcode::V_MOV_B32 | Opcode::V_ADD_U32 | Opcode::V_ADDC_U32)
        && inst.modifiers.sdwa.is_none()
        && inst.modifiers.dpp.is_none()
}

/// `s_getpc_b64` by any of its names.
fn is_getpc(inst: &Inst) -> bool {
    inst.variant.opcode_flags.contains(OpcodeFlags::GET_PC)
}

/// The 16-bit immediate.
fn immediate(inst: &Inst) -> Option<i64> {
    match inst.operand(Role::Simm16)?.value {
        Value::Imm(value) => Some(value),
        _ => None,
    }
}

/// The vector register and the constant lane of a lane access.
fn lane_operands(state: &State, body: &Body, id: InstId, vector: Role) -> Option<(u16, u32)> {
    let inst = body.inst(id);
    // Lane numbers are taken modulo the size of a wave.
    let lanes = u32::from(inst.wave_size.max(1));
    let register = body.register(id, inst.operand(vector)?).filter(|reg| reg.file == RegFile::Vector)?;
    match state.source(inst, Role::Src1, 0) {
        Word::Constant(lane) => Some((register.first, lane % lanes)),
        _ => None,
    }
}

/// `s_cselect_b32`, or a half of `s_cselect_b64`: SCC as a flag in a register, where it chooses between 0 and something
/// else; or one of two constants.
fn select(scc: Word, if_set: Word, if_clear: Word, other: Word) -> Word {
    match (scc, if_set, if_clear) {
        (Word::Original(scalar::SCC), Word::Constant(flag), Word::Constant(0)) if flag != 0 => Word::Flag(flag),
        (_, a, b) if a == b => a,
        (_, Word::Constant(a), Word::Constant(b)) => Word::Within(a | b),
        _ => other,
    }
}

/// The sum and the carry (as SCC) of constants.
fn add(state: &State, inst: &Inst, carry: Word, other: Word) -> (Word, Word) {
    let (a, b) = (state.source(inst, Role::Src0, 0), state.source(inst, Role::Src1, 0));
    let adds = |one, other| (a, b) == (one, other) || (a, b) == (other, one);
    if let Some([low, high, .., offset]) = state.resource {
        match carry {
            Word::Constant(0) if adds(low, offset) => return (Word::Resource(0), Word::Resource(RESOURCE_CARRY)),
            Word::Resource(RESOURCE_CARRY) if adds(high, Word::Constant(0)) => return (Word::Resource(1), other),
            _ => {}
        }
    }
    if let Some(FlatScratch { given: [low, high, offset], .. }) = state.flat_scratch {
        match carry {
            Word::Constant(0) if adds(low, offset) => return (Word::FlatScratch(0), Word::FlatScratch(2)),
            Word::FlatScratch(2) if adds(high, Word::Constant(0)) => return (Word::FlatScratch(1), other),
            _ => {}
        }
    }
    match (a, b, carry) {
        (Word::Constant(a), Word::Constant(b), Word::Constant(carry)) => {
            let sum = u64::from(a) + u64::from(b) + u64::from(carry);
            (Word::Constant(sum as u32), Word::Constant((sum >> 32) as u32))
        }
        _ => (other, other),
    }
}

/// The sum of 64-bit constants.
fn add_whole(state: &State, inst: &Inst) -> Option<[Word; 2]> {
    let whole = |role| match (inst.operand(role)?.value, state.source(inst, role, 0), state.source(inst, role, 1)) {
        (Value::Literal64(value), ..) => Some(value),
        (Value::Reg(_) | Value::InlineInt(_), Word::Constant(low), Word::Constant(high)) => {
            Some(u64::from(high) << 32 | u64::from(low))
        }
        _ => None,
    };
    let sum = whole(Role::Src0)?.wrapping_add(whole(Role::Src1)?);
    Some([Word::Constant(sum as u32), Word::Constant((sum >> 32) as u32)])
}

/// A comparison that turns a flag in a register back into SCC.
fn compare(state: &State, inst: &Inst, equal: bool, other: Word) -> Word {
    let pair = (state.source(inst, Role::Src0, 0), state.source(inst, Role::Src1, 0));
    let ((Word::Flag(flag), Word::Constant(constant)) | (Word::Constant(constant), Word::Flag(flag))) = pair else {
        return other;
    };
    let same_as_scc = if equal { constant == flag } else { constant == 0 };
    if same_as_scc { Word::Original(scalar::SCC) } else { other }
}

/// `v_and_b32 v0, mask, v0` in all lanes that the original has: takes the work-item ids away that the original did not
/// ask for.
fn restores_ids(state: &State, inst: &Inst) -> bool {
    let v0 = Some(Value::Reg(Reg::vector(0, 1)));
    let value = |role| inst.operand(role).map(|operand| operand.value);
    let mask = match state.source(inst, Role::Src0, 0) {
        Word::Constant(mask) => Some(mask),
        _ => None,
    };
    mask.is_some()
        && state.packed_ids == mask
        && value(Role::Vdst) == v0
        && value(Role::Src1) == v0
        && inst.modifiers.sdwa.is_none()
        && inst.modifiers.dpp.is_none()
        && state.differing(Reg::EXEC).is_none()
}
