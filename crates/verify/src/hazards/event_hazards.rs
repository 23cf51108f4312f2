//! Hazards that are no numbers of wait states: an event makes a register unsafe until another event, often however far
//! away, makes it safe.
//!
//! A forward analysis over the new code. Each fact is kept twice: as made by original instructions alone, and as made
//! with an inserted one. A hazard is a finding if the facts or the instruction that runs into it are inserted; between
//! original instructions alone it is left to the compiler. Which hazards a target has is a fact of the target
//! (`isa-tables/targets.yaml`, `hazards`). Those that depend on how far results are apart are in `forwarding`.

use super::classes::{is_lds, is_salu, is_valu, is_vector_memory};
use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{
    Access, Branch, Condition, Counter, Counters, Encoding, EventHazards as Rules, Flags, Inst, Memory, Opcode,
    OpcodeFlags, Reg, RegFile, Role, Value, WaitStates, alu_wait, scalar, wait_count,
};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::kernel::{Body, BodyKind};
use wavetap_analysis::solver::{Analysis, Lattice, solve};
use wavetap_base::entity::{BlockId, InstId};

/// A set of scalar registers by code.
type Codes = u128;

/// Registers of which no mask or pair is remembered.
const EXEMPT: Codes = 1 << scalar::M0 | 1 << scalar::NULL | 3 << scalar::EXEC;
/// The branch displacement that does not work.
const BAD_DISPLACEMENT: i64 = 0x3f;

/// A fact about registers: of which it was made by original instructions, and of which an inserted one took part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    original: Codes,
    inserted: Codes,
}

impl Marks {
    fn mark(&mut self, codes: Codes, inserted: bool) {
        *(if inserted { &mut self.inserted } else { &mut self.original }) |= codes;
    }

    fn clear(&mut self, codes: Codes) {
        self.original &= !codes;
        self.inserted &= !codes;
    }

    fn any(self) -> Codes {
        self.original | self.inserted
    }

    /// What an instruction runs into that is reported.
    fn ours(self, inserted: bool) -> Codes {
        if inserted { self.any() } else { self.inserted }
    }

    fn join(&mut self, other: Marks) {
        self.original |= other.original;
        self.inserted |= other.inserted;
    }
}

/// Facts in the order of [`State`].
const FACTS: usize = 11;

/// What may have happened before an instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State([Marks; FACTS]);

/// Read by vector memory or LDS instructions that may not have done so yet.
const VMEM_READS: usize = 0;
/// Read by scalar memory instructions that may not have done so yet.
const SMEM_READS: usize = 1;
/// EXEC (bit 0): read by other than vector instructions.
const EXEC_READ: usize = 2;
/// EXEC (bit 0): just written by a comparison.
const COMPARED: usize = 3;
/// Memory of each kind (bits 0 and 1) was accessed last, with no branch since; and with one.
const LAST: usize = 4;
const BRANCHED: usize = 5;
/// Read as a mask of lanes; and then written by the scalar or vector ALU, which it may not have seen yet.
const MASKS: usize = 6;
const STALE: usize = 7;
/// Ever read by a vector instruction, in pairs; and written by the scalar or by the vector ALU since.
const TRACKED: usize = 8;
const SALU_WRITES: usize = 9;
/// Written by the vector ALU: in tracked pairs; on gfx8 and gfx9 VCC (bit 0) in one half.
const VALU_WRITES: usize = 10;

impl State {
    fn at_entry(kind: BodyKind) -> State {
        let mut state = State::default();
        if kind == BodyKind::Function {
            state.enter_unknown();
        }
        state
    }

    /// Which registers the code before has read is not known.
    fn enter_unknown(&mut self) {
        self.0[TRACKED].original = Codes::MAX & !EXEMPT;
    }
}

/// What may have happened on either path.
impl Lattice for State {
    fn join(&mut self, other: &State) -> bool {
        let mut added = 0;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            added |= theirs.original & !mine.original | theirs.inserted & !mine.inserted;
            mine.join(*theirs);
        }
        added != 0
    }
}

/// Checks one body's new code.
pub(crate) fn check(original: &Body, new: &Body, cfg: &Cfg, alignment: &Alignment, findings: &mut Vec<Finding>) {
    let rules = rules_of(new);
    let zero_flag = may_have_stale_zero_flag(new);
    if rules.is_empty() && !zero_flag {
        return;
    }
    let checker = Checker { original, new, alignment, cfg, rules, zero_flag };
    let mut events = Events { checker: &checker, faulty: vec![false; cfg.len()] };
    let block_in = solve(&cfg.forward(), &mut events, [(cfg.entry(), State::at_entry(new.kind()))]);
    let faulty = events.faulty;
    for block in cfg.ids().filter(|block| faulty[block.index()]) {
        let Some(mut state) = block_in[block.index()].clone() else { continue };
        for id in cfg.block(block).insts() {
            let mut found = |message: String| {
                findings.push(
                    Finding::new(Rule::Hazard, format!("{}: {message}", new.inst(id).name())).at(new.address(id)),
                );
            };
            checker.step(&mut state, id, &mut found);
        }
    }
}

/// The rules of the target that code of a body may break.
fn rules_of(new: &Body) -> Rules {
    let checked = Rules::VMEM_TO_SCALAR_WRITE
        | Rules::SMEM_TO_VECTOR_WRITE
        | Rules::VCMPX_EXEC_WAR
        | Rules::VCMPX_PERMLANE
        | Rules::LDS_BRANCH_VMEM
        | Rules::BRANCH_OFFSET
        | Rules::FLAT_OFFSET
        | Rules::VALU_MASK_WRITE
        | Rules::VALU_READ_SGPR;
    let mut rules = new.target().event_hazards() & checked;
    if new.target().wave_size() != 64 {
        rules -= Rules::VALU_MASK_WRITE;
    }
    if rules.contains(Rules::VCMPX_PERMLANE) && !new.insts().iter().any(permutes_lanes) {
        rules -= Rules::VCMPX_PERMLANE;
    }
    rules
}

/// Whether, on a target where that matters, there are branches on VCCZ, and writes of one half of VCC alone.
fn may_have_stale_zero_flag(new: &Body) -> bool {
    let half = |inst: &Inst| {
        let written = inst.writes().fold(0, |all, reg| all | codes(reg)) & codes(Reg::VCC);
        written != 0 && written != codes(Reg::VCC)
    };
    new.target().wait_states() != WaitStates::None
        && new.insts().iter().any(asks_for_zero_flag)
        && new.insts().iter().any(half)
}

fn asks_for_zero_flag(inst: &Inst) -> bool {
    matches!(inst.variant.branch, Branch::Conditional(Condition::VccZ | Condition::VccNz))
}

fn permutes_lanes(inst: &Inst) -> bool {
    is_valu(inst) && inst.is_any(OpcodeFlags::PERMLANE)
}

/// The scalar registers that an instruction reads, and those that it writes. What `s_set_vgpr_msb` does to vector
/// registers is nothing to them.
fn accessed(inst: &Inst) -> (Codes, Codes) {
    let (mut reads, mut writes) = (0, 0);
    inst.accesses(|reg| reads |= codes(reg), |reg| writes |= codes(reg));
    (reads, writes)
}

/// Scalar registers by code.
fn codes(reg: Reg) -> Codes {
    if reg.file != RegFile::Scalar || reg.first >= 128 {
        return 0;
    }
    (Codes::from((1_u64 << reg.dwords.min(32)) - 1) << reg.first) & !(1 << scalar::NULL)
}

/// Whole pairs of what is in `codes`.
fn pairs(codes: Codes) -> Codes {
    const EVEN: Codes = Codes::MAX / 3;
    codes | (codes & EVEN) << 1 | (codes & !EVEN) >> 1
}

fn named(codes: Codes) -> String {
    let register: wavetap_analysis::dataflow::RegSet =
        [Reg::scalar(codes.trailing_zeros() as u16, 1)].into_iter().collect();
    format!("{register:?}")
}

/// The registers that an instruction reads as a mask of lanes.
fn mask_of(inst: &Inst) -> Codes {
    if !inst.variant.opcode_flags.contains(OpcodeFlags::LANE_MASK) && inst.variant.halves.is_none() {
        return 0;
    }
    let explicit = inst.operand(Role::Src2).and_then(|operand| operand.reg()).filter(|reg| reg.file == RegFile::Scalar);
    let implicit =
        inst.variant.implicit_reads.regs(inst.wave_size.into()).filter(|reg| reg.overlaps(Reg::VCC)).map(codes);
    explicit.map_or(0, codes) | implicit.fold(0, |all, codes| all | codes)
}

struct Checker<'a> {
    original: &'a Body,
    new: &'a Body,
    alignment: &'a Alignment,
    cfg: &'a Cfg,
    rules: Rules,
    /// Whether it is looked for branches on VCCZ after writes of one half of VCC.
    zero_flag: bool,
}

/// What may have happened before each block.
struct Events<'a> {
    checker: &'a Checker<'a>,
    /// By block: whether its last visit, which has the state of the solution, found something.
    faulty: Vec<bool>,
}

impl Analysis for Events<'_> {
    type Node = BlockId;
    type State = State;

    fn transfer(&mut self, block: BlockId, state: &mut State) {
        let faulty = &mut self.faulty[block.index()];
        *faulty = false;
        let insts = self.checker.cfg.block(block).insts();
        insts.for_each(|id| self.checker.step(state, id, &mut |_| *faulty = true));
    }

    fn join(&mut self, _: BlockId, state: &mut State, incoming: &State) -> bool {
        state.join(incoming)
    }
}

/// What the rules ask about one instruction.
struct Step<'a> {
    inst: &'a Inst,
    inserted: bool,
    reads: Codes,
    writes: Codes,
    valu: bool,
    salu: bool,
    memory: bool,
    lds: bool,
}

impl Checker<'_> {
    fn step(&self, state: &mut State, id: InstId, report: &mut dyn FnMut(String)) {
        let inst = self.new.inst(id);
        let (reads, writes) = accessed(inst);
        let step = Step {
            inst,
            inserted: self.alignment.original(id).is_none(),
            reads,
            writes,
            valu: is_valu(inst),
            salu: is_salu(inst),
            memory: is_vector_memory(inst),
            lds: is_lds(inst),
        };
        self.scalar_reads(state, &step, report);
        self.exec_reads(state, &step, report);
        self.memory_kinds(state, &step, report);
        self.displacement(id, &step, report);
        if self.rules.contains(Rules::VALU_MASK_WRITE) {
            self.masks(state, &step, report);
        }
        if self.rules.contains(Rules::VALU_READ_SGPR) {
            self.tracked_pairs(state, &step, report);
            if self.forgets(id) {
                state.0[TRACKED] = Marks::default();
            }
        }
        if self.zero_flag {
            zero_flag(state, &step, report);
        }
    }

    /// Scalar registers that memory instructions have yet to read are overwritten (gfx10.1).
    fn scalar_reads(&self, state: &mut State, step: &Step<'_>, report: &mut dyn FnMut(String)) {
        let inst = step.inst;
        if self.rules.contains(Rules::VMEM_TO_SCALAR_WRITE) {
            let reads = &mut state.0[VMEM_READS];
            if step.salu || inst.variant.encoding == Encoding::Smem {
                // Compilers do not look at what an instruction writes without naming it.
                let explicit = inst
                    .operands
                    .iter()
                    .filter(|operand| operand.access != Access::Read)
                    .filter_map(|operand| operand.reg());
                let explicit = explicit.fold(0, |all, reg| all | codes(reg));
                let clash =
                    if step.inserted { reads.any() & step.writes } else { reads.inserted & (step.writes | explicit) };
                if clash != 0 {
                    report(format!("{} is written, which a memory instruction has yet to read", named(clash)));
                }
            }
            let waits = inst.opcode() == Opcode::S_WAITCNT && wait_for_all(inst);
            if step.valu || waits || alu_wait(inst).is_some_and(|wait| wait.vm_vsrc == Some(0)) {
                *reads = Marks::default();
            }
            if step.memory || step.lds {
                reads.mark(step.reads, step.inserted);
            }
        }
        if self.rules.contains(Rules::SMEM_TO_VECTOR_WRITE) {
            let reads = &mut state.0[SMEM_READS];
            let clash = if step.valu { reads.ours(step.inserted) & step.writes } else { 0 };
            if clash != 0 {
                report(format!("{} is written, which a scalar memory instruction has yet to read", named(clash)));
            }
            let waited = wait_count(self.new.target(), inst).is_some_and(|counts| counts.get(Counter::Lgkm) == Some(0));
            let computes =
                step.salu && inst.variant.encoding != Encoding::Sopp && !inst.variant.flags.contains(Flags::WAIT);
            if waited || (computes && inst.opcode() != Opcode::S_VERSION) {
                *reads = Marks::default();
            }
            if inst.variant.encoding == Encoding::Smem {
                reads.mark(step.reads, step.inserted);
            }
        }
    }

    /// EXEC is read by another than a vector instruction and then written by one (gfx10.1); or written by one before
    /// rows are permuted.
    fn exec_reads(&self, state: &mut State, step: &Step<'_>, report: &mut dyn FnMut(String)) {
        let exec = codes(Reg::EXEC);
        if self.rules.contains(Rules::VCMPX_EXEC_WAR) {
            let read = &mut state.0[EXEC_READ];
            if step.valu && step.writes & exec != 0 && read.ours(step.inserted) != 0 {
                report("EXEC is written, which another than a vector instruction has yet to read".to_owned());
            }
            if (step.valu && step.writes != 0) || alu_wait(step.inst).is_some_and(|wait| wait.sa_sdst == Some(0)) {
                *read = Marks::default();
            }
            if !step.valu && step.reads & exec != 0 {
                read.mark(1, step.inserted);
            }
        }
        if self.rules.contains(Rules::VCMPX_PERMLANE) && step.valu {
            let compared = &mut state.0[COMPARED];
            if permutes_lanes(step.inst) && compared.ours(step.inserted) != 0 {
                report("EXEC was just written by a vector comparison".to_owned());
            }
            if step.inst.opcode() != Opcode::V_NOP {
                *compared = Marks::default();
            }
            if step.inst.is_any(OpcodeFlags::CMPX) {
                compared.mark(1, step.inserted);
            }
        }
    }

    /// LDS, a branch and vector memory, or the other way round, with no wait for stores (gfx10.1).
    fn memory_kinds(&self, state: &mut State, step: &Step<'_>, report: &mut dyn FnMut(String)) {
        let inst = step.inst;
        if !self.rules.contains(Rules::LDS_BRANCH_VMEM) {
            return;
        }
        let kind: Codes = match inst.variant.memory {
            Memory::Lds => 1,
            Memory::Global | Memory::Scratch | Memory::Buffer | Memory::Image
                if inst.variant.counters != Counters::empty() =>
            {
                2
            }
            _ => 0,
        };
        if kind != 0 {
            if state.0[BRANCHED].ours(step.inserted) & (3 ^ kind) != 0 {
                report("LDS and vector memory with a branch between them and no wait for stores".to_owned());
            }
            state.0[BRANCHED] = Marks::default();
            state.0[LAST] = Marks::default();
            state.0[LAST].mark(kind, step.inserted);
        }
        if matches!(inst.variant.branch, Branch::Jump | Branch::Conditional(_)) {
            let mut last = std::mem::take(&mut state.0[LAST]);
            if step.inserted {
                last = Marks { original: 0, inserted: last.any() };
            }
            state.0[BRANCHED].join(last);
        }
        let waits = wait_count(self.new.target(), inst).is_some_and(|counts| counts.get(Counter::Vs) == Some(0));
        if waits && inst.opcode() == Opcode::S_WAITCNT_VSCNT {
            state.0[LAST] = Marks::default();
            state.0[BRANCHED] = Marks::default();
        }
    }

    /// A branch has got a displacement that does not work; a flat access has an offset (gfx10.1).
    fn displacement(&self, id: InstId, step: &Step<'_>, report: &mut dyn FnMut(String)) {
        let bad = |inst: &Inst| inst.branch_displacement() == Some(BAD_DISPLACEMENT);
        if self.rules.contains(Rules::BRANCH_OFFSET)
            && step.inst.variant.encoding == Encoding::Sopp
            && bad(step.inst)
            && self.alignment.original(id).is_none_or(|original| !bad(self.original.inst(original)))
        {
            report("a branch over 63 dwords".to_owned());
        }
        let flat = step.inst.variant.encoding == Encoding::Flat && step.inst.modifiers.offset != 0;
        if self.rules.contains(Rules::FLAT_OFFSET) && step.inserted && flat {
            report("a flat access with an offset".to_owned());
        }
    }

    /// A mask of lanes that a vector instruction has read is written and read again (gfx11, wave64).
    fn masks(&self, state: &mut State, step: &Step<'_>, report: &mut dyn FnMut(String)) {
        let wait = alu_wait(step.inst).unwrap_or_default();
        if wait.sa_sdst == Some(0) {
            // Waits for what the vector ALU wrote are other fields.
            let vector = state.0[VALU_WRITES];
            state.0[STALE].clear(!vector.any());
        }
        if wait.va_sdst == Some(0) {
            let vector = state.0[VALU_WRITES].any() & !codes(Reg::VCC);
            state.0[STALE].clear(vector);
        }
        if wait.va_vcc == Some(0) {
            let vector = state.0[VALU_WRITES].any() & codes(Reg::VCC);
            state.0[STALE].clear(vector);
        }
        if step.valu || step.salu {
            let clash = state.0[STALE].ours(step.inserted) & step.reads;
            if clash != 0 {
                report(format!(
                    "{} is read, which a vector instruction had read as a mask before it was written",
                    named(clash)
                ));
            }
        }
        if step.valu {
            // Compilers before LLVM 20 take any use of a scalar or of a literal for the end of it: no more is asked of
            // the original.
            let literal = step.inst.operands.iter().any(|operand| matches!(operand.value, Value::Literal(_)));
            if !step.inserted && (literal || step.reads & !codes(Reg::EXEC) != 0) {
                state.0[MASKS].original = 0;
            }
            state.0[MASKS].mark(mask_of(step.inst) & !EXEMPT, step.inserted);
        }
        let masks = state.0[MASKS];
        let (ours, theirs) = (masks.ours(step.inserted) & step.writes, masks.original & step.writes);
        state.0[STALE].clear(step.writes);
        state.0[VALU_WRITES].clear(step.writes);
        if step.salu || step.valu {
            state.0[STALE].mark(ours, true);
            // What original vector instructions write is not waited for by LLVM 19.
            state.0[STALE].mark(if step.inserted || step.valu { 0 } else { theirs }, false);
            state.0[VALU_WRITES].mark(if step.valu { step.writes } else { 0 }, step.inserted);
        }
        state.0[MASKS].clear(step.writes);
    }

    /// Whether the hardware now forgets which pairs vector instructions have read: after so many `ds_nop` in a row.
    /// They are one row only within a block.
    fn forgets(&self, id: InstId) -> bool {
        if !self.new.inst(id).variant.opcode_flags.contains(OpcodeFlags::DS_NOP) {
            return false;
        }
        let count = self.new.target().forgetting_nops();
        let first = self.cfg.block(self.cfg.block_of(id)).first;
        let row = (id.0 + 1).checked_sub(count).filter(|start| *start >= first.0);
        row.is_some_and(|start| {
            (start..=id.0).all(|index| self.new.inst(InstId(index)).variant.opcode_flags.contains(OpcodeFlags::DS_NOP))
        })
    }

    /// A register of a pair that a vector instruction has ever read is written and read again (gfx12.0).
    fn tracked_pairs(&self, state: &mut State, step: &Step<'_>, report: &mut dyn FnMut(String)) {
        let variant = step.inst.variant;
        let may_wait = variant.opcode_flags.contains(OpcodeFlags::ALU_WAIT) || variant.encoding == Encoding::Ldsdir;
        if let Some(wait) = may_wait.then(|| alu_wait(step.inst)).flatten() {
            let vcc = codes(Reg::VCC);
            if wait.sa_sdst == Some(0) {
                state.0[SALU_WRITES] = Marks::default();
            }
            if wait.va_sdst == Some(0) {
                state.0[VALU_WRITES].clear(!vcc);
            }
            if wait.va_vcc == Some(0) {
                state.0[VALU_WRITES].clear(vcc);
            }
        }
        if step.inst.variant.encoding == Encoding::Smem || (step.memory && step.inst.variant.memory != Memory::Flat) {
            state.0[SALU_WRITES] = Marks::default();
            state.0[VALU_WRITES] = Marks::default();
        }
        if matches!(step.inst.variant.branch, Branch::Call | Branch::IndirectCall | Branch::IndirectJump) {
            state.enter_unknown();
            return;
        }
        if !step.valu && !step.salu {
            return;
        }
        let tracked = state.0[TRACKED];
        // Which registers were read is known by pairs, which were written one by one.
        let (read, written) = (step.reads & !EXEMPT, step.writes & !EXEMPT);
        if read | written == 0 {
            return;
        }
        for (fact, by) in [(SALU_WRITES, "scalar"), (VALU_WRITES, "vector")] {
            // The hardware waits for scalar reads of what vector instructions write.
            if fact == VALU_WRITES && !step.valu {
                continue;
            }
            let written = state.0[fact];
            let clash = if step.inserted {
                written.any() & tracked.any()
            } else {
                // A pair is ours if inserted code alone has made it one that is tracked.
                (written.inserted & tracked.any()) | (written.original & tracked.inserted & !tracked.original)
            } & read;
            if clash != 0 {
                report(format!("{} is read with no wait for the {by} instruction that wrote it", named(clash)));
            }
        }
        state.0[SALU_WRITES].clear(written);
        state.0[VALU_WRITES].clear(written);
        if step.valu {
            state.0[TRACKED].mark(pairs(read), step.inserted);
            state.0[VALU_WRITES].mark(written, step.inserted);
        } else {
            state.0[SALU_WRITES].mark(written, step.inserted);
        }
    }
}

/// One half of VCC was written alone, which does not update the flag that a branch reads (gfx8, gfx9).
fn zero_flag(state: &mut State, step: &Step<'_>, report: &mut dyn FnMut(String)) {
    let vcc = codes(Reg::VCC);
    if asks_for_zero_flag(step.inst) && state.0[VALU_WRITES].ours(step.inserted) != 0 {
        report("one half of VCC was written alone, which does not update VCCZ".to_owned());
    }
    match step.writes & vcc {
        0 => {}
        both if both == vcc => state.0[VALU_WRITES] = Marks::default(),
        _ => state.0[VALU_WRITES].mark(1, step.inserted),
    }
}

/// Whether it is a wait whose immediate is 0.
fn wait_for_all(inst: &Inst) -> bool {
    inst.operand(Role::WaitCount)
        .or_else(|| inst.operand(Role::Simm16))
        .is_some_and(|operand| operand.value == Value::Imm(0))
}
