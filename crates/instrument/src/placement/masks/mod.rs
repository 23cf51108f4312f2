//! Where EXEC is again what it was before: masks that the original code saves and restores are followed through its
//! scalar registers.
//!
//! A *symbol* is EXEC before an instruction that saves it, as it was when that was last executed. What is certain is
//! said of symbols: that a register holds one, that it holds a part of one, and that what it holds together with EXEC
//! (or with another symbol) is all of one. The last is what remains of a mask whose lanes go two ways, of which a
//! register has the others: `if` with `else`, and loops that lanes leave one by one.
//!
//! `Definitions` of the analyses knows masks by what they are certainly within. That a mask has all lanes again takes
//! the other bound as well, which is what these facts are about.
//!
//! In code without loops each mask that is restored is all that were saved before it, so that there are as many symbols
//! in a register as places that save. Facts are therefore sets that share what they have in common ([`facts`],
//! [`sets`]), and which of two places alternate is found for all of them at once ([`regions`]). All work is counted:
//! where there is more of it than so much for each instruction, nothing is said ([`TooMuchWork`]).

mod facts;
mod regions;
mod sets;

use wavetap_amdgpu::{Inst, MaskOp, OpcodeFlags, Reg, RegFile, Role, Value, scalar};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::kernel::{Body, BodyKind, Flow};
use wavetap_analysis::solver::{Analysis, solve};
use wavetap_base::entity::{BlockId, InstId};

use facts::{Facts, Relations};
use regions::Regions;
use sets::SetId;

/// Units of work for each instruction, and for each function besides. The kernels of CuPy's `cub` that need most take
/// 100 for each instruction.
const WORK_PER_INSTRUCTION: u64 = 4096;
const WORK: u64 = 1 << 20;

/// A function whose masks take too much work to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuchWork;

/// The first of the scalar registers that hold a mask.
type Place = u16;
const EXEC: Place = scalar::EXEC;

/// A mask that an instruction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    In(Place),
    /// No lanes.
    Zero,
    Unknown,
}

/// What becomes of masks in an instruction.
#[derive(Default)]
struct Effect {
    /// Of the destination: the symbols that it is, of which it is a part, and that it is together with EXEC.
    destination: (SetId, SetId, SetId),
    /// Of EXEC, where the instruction writes that beside its destination.
    exec: (SetId, SetId),
    /// A register that is symbols together with EXEC, as the instruction leaves both.
    covers: Option<(Place, SetId)>,
}

struct Masks<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    /// Registers of a mask.
    dwords: u8,
    /// By symbol: the instruction that saves EXEC; what it is at the function's entry is the symbol after these.
    saved_by: Vec<InstId>,
    relations: Relations,
}

impl Analysis for Masks<'_> {
    type Node = BlockId;
    type State = Facts;

    fn transfer(&mut self, block: BlockId, facts: &mut Facts) {
        self.cfg.block(block).insts().for_each(|inst| self.step(inst, facts));
        let at_entry = self.at_entry();
        self.relations.prune(facts, at_entry);
        if self.relations.is_exhausted() {
            facts.clear();
        }
    }

    fn join(&mut self, _: BlockId, facts: &mut Facts, incoming: &Facts) -> bool {
        self.relations.meet(facts, incoming)
    }
}

impl<'a> Masks<'a> {
    /// For so much work.
    fn of(body: &'a Body, cfg: &'a Cfg, limit: u64) -> Masks<'a> {
        let dwords = (body.target().wave_size() / 32) as u8;
        let mut masks = Masks { body, cfg, dwords, saved_by: Vec::new(), relations: Relations::below(1, limit) };
        masks.saved_by = body.ids().filter(|id| masks.saves(*id)).collect();
        masks.relations = Relations::below(masks.at_entry() + 1, limit);
        masks
    }

    /// The symbol that stands for EXEC at the function's entry.
    fn at_entry(&self) -> u32 {
        self.saved_by.len() as u32
    }

    fn operation(&self, id: InstId) -> Option<MaskOp> {
        let mask = self.body.inst(id).opcode().mask().filter(|mask| mask.dwords == self.dwords);
        mask.map(|mask| mask.operation)
    }

    /// Whether an instruction copies EXEC as it was to another register.
    fn saves(&self, id: InstId) -> bool {
        let inst = self.body.inst(id);
        let saves = match self.operation(id) {
            Some(MaskOp::Mov) => matches!(self.source(inst, Role::Src0), Source::In(EXEC) | Source::Zero),
            Some(operation) => super::nonzero::saves_exec(operation),
            None => false,
        };
        saves && self.destination(inst).is_some_and(|place| place != EXEC)
    }

    fn source(&self, inst: &Inst, role: Role) -> Source {
        match inst.operand(role).map(|operand| operand.value) {
            Some(Value::InlineInt(0)) => Source::Zero,
            Some(Value::Reg(reg)) if reg.file == RegFile::Scalar && reg.dwords == self.dwords => Source::In(reg.first),
            _ => Source::Unknown,
        }
    }

    fn destination(&self, inst: &Inst) -> Option<Place> {
        let reg = inst.operand(Role::Sdst)?.reg()?;
        (reg.file == RegFile::Scalar && reg.dwords == self.dwords).then_some(reg.first)
    }

    fn step(&mut self, id: InstId, facts: &mut Facts) {
        let (body, inst) = (self.body, self.body.inst(id));
        if matches!(body.flow(id), Flow::Call(_)) {
            facts.clear();
            return;
        }
        let operation = self.operation(id);
        let destination = self.destination(inst);
        let exec = Source::In(EXEC);
        if self.saves(id)
            && let Ok(symbol) = self.saved_by.binary_search(&id)
        {
            self.relations.save(facts, symbol as u32);
        }
        let nothing = SetId::EMPTY;
        let effect = match operation {
            // EXEC cannot be saved in itself.
            Some(operation) if super::nonzero::saves_exec(operation) && destination == Some(EXEC) => Effect::default(),
            Some(operation) => {
                let [a, b] = [Role::Src0, Role::Src1].map(|role| self.source(inst, role));
                self.effect(facts, operation, destination, a, b)
            }
            None if inst.is_any(OpcodeFlags::CMPX) => {
                Effect { exec: (nothing, self.relations.within(facts, exec)), ..Effect::default() }
            }
            // Lanes that are not active are not set.
            None if inst.is_any(OpcodeFlags::CMP) => {
                Effect { destination: (nothing, self.relations.within(facts, exec), nothing), ..Effect::default() }
            }
            None => Effect::default(),
        };
        let mut writes_exec = false;
        for reg in body.writes(id) {
            if reg.overlaps(Reg::EXEC) && !writes_exec {
                writes_exec = true;
                self.relations.leave_exec(facts);
            }
            if reg.file == RegFile::Scalar {
                let first = reg.first.saturating_sub(u16::from(self.dwords) - 1);
                (first..reg.first + u16::from(reg.dwords)).filter(|place| *place != EXEC).for_each(|p| facts.forget(p));
            }
        }
        let Effect { destination: (equal, within, covers), exec: of_exec, covers: kept } = effect;
        if writes_exec && destination != Some(EXEC) {
            self.relations.add(facts, EXEC, of_exec.0, of_exec.1);
        }
        if let Some(place) = destination {
            self.relations.add(facts, place, equal, within);
            self.relations.add_covers(facts, place, covers);
        }
        if let Some((place, symbols)) = kept.filter(|(place, _)| destination != Some(*place)) {
            self.relations.add_covers(facts, place, symbols);
        }
        if writes_exec {
            self.relations.enter_exec(facts);
        }
    }

    /// What an operation makes of masks, where this is certain before it.
    fn effect(&mut self, facts: &Facts, operation: MaskOp, destination: Option<Place>, a: Source, b: Source) -> Effect {
        let all = &mut self.relations;
        let exec = Source::In(EXEC);
        let (within_a, within_b) = (all.within(facts, a), all.within(facts, b));
        let (is, part) = (facts.equal(exec), all.within(facts, exec));
        let none = SetId::EMPTY;
        let in_exec = destination == Some(EXEC);
        // What a register and EXEC without that register's lanes are is what both were.
        let with = |all: &mut Relations, source: Source| match source {
            Source::In(place) if place != EXEC => Some((place, all.covers(facts, source))),
            _ => None,
        };
        let saved = (is, part, none);
        match operation {
            MaskOp::Mov => {
                // No lanes lie outside of EXEC.
                let covers = if a == Source::Zero && !in_exec { is } else { none };
                Effect { destination: (facts.equal(a), within_a, covers), ..Effect::default() }
            }
            MaskOp::AndSaveexec => {
                Effect { destination: saved, exec: (none, all.either(within_a, part)), ..Effect::default() }
            }
            MaskOp::Andn1Saveexec => Effect { destination: saved, exec: (none, part), covers: with(all, a) },
            MaskOp::OrSaveexec => {
                let exec = (all.covers(facts, a), all.both(within_a, part));
                Effect { destination: saved, exec, ..Effect::default() }
            }
            MaskOp::Andn2Saveexec => {
                let destination = (is, part, all.covers(facts, a));
                Effect { destination, exec: (none, within_a), ..Effect::default() }
            }
            MaskOp::And => Effect { destination: (none, all.either(within_a, within_b), none), ..Effect::default() },
            MaskOp::Or => {
                let equal = match (a == exec, b == exec) {
                    (true, _) => all.covers(facts, b),
                    (_, true) => all.covers(facts, a),
                    _ => none,
                };
                let covers = if in_exec || a == exec || b == exec {
                    none
                } else {
                    let (of_a, of_b) = (all.covers(facts, a), all.covers(facts, b));
                    let (with_b, with_a) = (all.both(of_a, within_b), all.both(of_b, within_a));
                    all.either(with_b, with_a)
                };
                Effect { destination: (equal, all.both(within_a, within_b), covers), ..Effect::default() }
            }
            MaskOp::Xor => {
                let other = match (a == exec, b == exec) {
                    (true, false) => b,
                    (false, true) => a,
                    _ => Source::Unknown,
                };
                // One of the two is all of a symbol, the other is a part of it: the result is the rest.
                let rest = all.both(facts.equal(other), part);
                let of_other = all.within(facts, other);
                let of_exec = all.both(is, of_other);
                let within = all.both(within_a, within_b);
                match other {
                    Source::In(place) if in_exec => Effect {
                        destination: (none, within, none),
                        covers: Some((place, of_exec)),
                        ..Effect::default()
                    },
                    _ => Effect { destination: (none, within, rest), ..Effect::default() },
                }
            }
            MaskOp::Andn2 if in_exec && a == exec => {
                Effect { destination: (none, within_a, none), covers: with(all, b), ..Effect::default() }
            }
            MaskOp::Andn2 => {
                let covers = if !in_exec && b == exec { all.covers(facts, a) } else { none };
                Effect { destination: (none, within_a, covers), ..Effect::default() }
            }
            _ => Effect::default(),
        }
    }
}

/// An instruction after which EXEC is what it was before another one, each time that either is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Restored {
    pub(super) saved_before: InstId,
    pub(super) restored_by: InstId,
}

/// Finds where EXEC is restored.
///
/// # Errors
/// If that takes more work than a function of its size may.
pub(crate) fn restored(body: &Body, cfg: &Cfg) -> Result<Vec<Restored>, TooMuchWork> {
    restored_within(body, cfg, WORK + WORK_PER_INSTRUCTION * body.len() as u64)
}

/// [`restored`] with so much work.
fn restored_within(body: &Body, cfg: &Cfg, limit: u64) -> Result<Vec<Restored>, TooMuchWork> {
    let mut masks = Masks::of(body, cfg, limit);
    let entry = match body.kind() {
        BodyKind::Kernel => {
            let at_entry = masks.at_entry();
            Facts::of_exec(masks.relations.only([at_entry]))
        }
        BodyKind::Function => Facts::default(),
    };
    let before = solve(&cfg.forward(), &mut masks, [(cfg.entry(), entry)]);
    let mut regions = Regions::of(body, cfg);
    // The symbols of each region.
    let mut symbols = vec![SetId::EMPTY; regions.count()];
    for (symbol, inst) in masks.saved_by.iter().enumerate() {
        let one = masks.relations.only([symbol as u32]);
        let region = &mut symbols[regions.of_block(cfg.block_of(*inst))];
        *region = masks.relations.either(*region, one);
    }
    let mut all = Vec::new();
    for id in cfg.ids() {
        let Some(mut facts) = before[id.index()].clone() else { continue };
        for inst in cfg.block(id).insts() {
            masks.step(inst, &mut facts);
            if !body.writes(inst).any(|reg| reg.overlaps(Reg::EXEC)) {
                continue;
            }
            let is = facts.equal(Source::In(EXEC));
            let candidates = masks.relations.both(is, symbols[regions.of_block(id)]);
            let saves = masks.relations.sets().numbers(candidates).map(|symbol| masks.saved_by[symbol as usize]);
            let mut saves = saves.filter(|saved| *saved != inst);
            let found = saves.find(|saved| regions.alternate(*saved, inst));
            all.extend(found.map(|saved_before| Restored { saved_before, restored_by: inst }));
        }
        if masks.relations.is_exhausted() || regions.is_exhausted() {
            return Err(TooMuchWork);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_amdgpu::Target;
    use wavetap_analysis::kernel::Image;

    const ENTRY: u64 = 0x1000;

    /// Pairs of the lines after which EXEC is what it was before another, from 0. Branches name lines; each instruction
    /// has four bytes.
    fn pairs(code: &str) -> Vec<(u32, u32)> {
        pairs_within(code, WORK).expect("little work")
    }

    fn pairs_within(code: &str, limit: u64) -> Result<Vec<(u32, u32)>, TooMuchWork> {
        let target = Target::by_name("gfx90a").expect("a target");
        let operand = |text: &str| match text {
            "exec" => Value::Reg(Reg::EXEC),
            "vcc" => Value::Reg(Reg::VCC),
            _ => match text.strip_prefix('s') {
                Some(number) => Value::Reg(Reg::scalar(number.parse().expect("a register"), 2)),
                None => Value::InlineInt(text.parse().expect("a number")),
            },
        };
        let mut bytes = Vec::new();
        for (line, text) in code.lines().map(str::trim).chain(["s_endpgm 0"]).enumerate() {
            let (name, operands) = text.split_once(' ').expect("operands");
            let operands: Vec<Value> = match name {
                _ if name.starts_with("s_cbranch") || name == "s_branch" => {
                    let to: i64 = operands.parse().expect("a line");
                    vec![Value::Imm(to - line as i64 - 1)]
                }
                "s_endpgm" | "s_nop" => vec![Value::Imm(0)],
                _ => operands.split(", ").map(operand).collect(),
            };
            let inst = wavetap_amdgpu::build(target, name, &operands).unwrap_or_else(|error| panic!("{text}: {error}"));
            bytes.extend(wavetap_amdgpu::encode(target, &inst).expect("encodes"));
            assert_eq!(bytes.len(), 4 * (line + 1), "{text}");
        }
        let mut image = Image::new();
        image.add_code(ENTRY, &bytes);
        let program =
            wavetap_analysis::cfg::Program::build(target, &image, [("k".to_owned(), BodyKind::Kernel, ENTRY)]);
        let body = program.body(program.at(ENTRY).expect("decoded"));
        let found = restored_within(body, &Cfg::build(body), limit)?;
        Ok(found.iter().map(|pair| (pair.saved_before.0, pair.restored_by.0)).collect())
    }

    /// Branches one after the other: all masks that are restored are the first one.
    fn branches(count: usize) -> String {
        vec!["s_and_saveexec_b64 s4, vcc\ns_nop 0\ns_or_b64 exec, exec, s4"; count].join("\n")
    }

    #[test]
    fn work_is_counted_and_bounded() {
        let all: Vec<(u32, u32)> = (0..100).map(|n| (0, 3 * n + 2)).collect();
        assert_eq!(pairs(&branches(100)), all);
        assert_eq!(pairs_within(&branches(100), 100), Err(TooMuchWork));
        // What suffices for some branches suffices, but for the depth of trees, for each of ten times as many.
        let least =
            |count: usize| (0..).map(|n| 1_u64 << n).find(|limit| pairs_within(&branches(count), *limit).is_ok());
        let (Some(short), Some(long)) = (least(100), least(1000)) else { panic!("no limit suffices") };
        assert!(long <= 32 * short, "{short} and {long}");
    }

    #[test]
    fn a_mask_that_was_saved_is_restored() {
        let code =
            |inside: &str| format!("s_and_saveexec_b64 s4, vcc\ns_cbranch_execz 3\n{inside}\ns_or_b64 exec, exec, s4");
        assert_eq!(pairs(&code("s_and_b64 exec, exec, s6")), [(0, 3)]);
        // The register is another one, or half of it is; EXEC has other lanes.
        for inside in ["s_mov_b64 s4, s6", "s_or_b64 s4, s4, s6", "s_or_b64 exec, exec, s6", "s_mov_b64 exec, -1"] {
            assert_eq!(pairs(&code(inside)), [], "{inside}");
        }
        // Restored by itself, in whatever register it is by then.
        assert_eq!(
            pairs("s_and_saveexec_b64 s4, vcc\ns_mov_b64 s8, s4\ns_mov_b64 s4, 0\ns_mov_b64 exec, s8"),
            [(0, 3)]
        );
        assert_eq!(pairs("s_and_saveexec_b64 s4, vcc\ns_mov_b64 s8, s4\ns_mov_b64 s4, 0\ns_mov_b64 exec, s4"), []);
    }

    #[test]
    fn masks_inside_of_others_are_restored() {
        let code = |outer: &str| {
            format!(
                "s_and_saveexec_b64 s4, vcc\ns_cbranch_execz 5\ns_and_saveexec_b64 s6, s8\ns_nop 0\n\
                 s_or_b64 exec, exec, s6\ns_or_b64 exec, exec, {outer}"
            )
        };
        assert_eq!(pairs(&code("s4")), [(2, 4), (0, 5)]);
        assert_eq!(pairs(&code("s6")), [(2, 4)]);
    }

    #[test]
    fn a_mask_whose_lanes_go_two_ways_is_restored() {
        let code = |then: &str, last: &str| {
            format!(
                "s_and_saveexec_b64 s4, vcc\ns_xor_b64 s4, exec, s4\ns_cbranch_execz 6\n\
                 s_and_saveexec_b64 s6, s8\n{then}\n\
                 s_or_b64 exec, exec, s6\ns_or_saveexec_b64 s4, s4\ns_xor_b64 exec, exec, s4\ns_cbranch_execz 10\n\
                 s_nop 0\ns_or_b64 exec, exec, {last}"
            )
        };
        assert_eq!(pairs(&code("s_nop 0", "s4")), [(3, 5), (0, 6), (0, 10)]);
        assert_eq!(pairs(&code("s_nop 0", "s6")), [(3, 5), (0, 6)]);
        // Lanes that `then` gives up are missing after it.
        assert_eq!(pairs(&code("s_mov_b64 s6, vcc", "s4")), []);
        // The same as later compilers write it.
        let short = "s_and_saveexec_b64 s4, vcc\ns_xor_b64 s4, exec, s4\ns_andn2_saveexec_b64 s4, s4\ns_nop 0\n\
            s_or_b64 exec, exec, s4";
        assert_eq!(pairs(short), [(0, 4)]);
    }

    #[test]
    fn a_loop_that_lanes_leave_one_by_one_ends_with_those_that_entered_it() {
        let code = |leave: &str, narrow: &str| {
            format!(
                "s_mov_b64 s6, 0\n{leave}\ns_or_b64 s6, s8, s6\ns_andn2_b64 exec, exec, {narrow}\ns_cbranch_execnz 1\n\
                s_or_b64 exec, exec, s6"
            )
        };
        assert_eq!(pairs(&code("s_and_b64 s8, exec, vcc", "s6")), [(0, 5)]);
        // What leaves was never there, or does not leave.
        assert_eq!(pairs(&code("s_mov_b64 s8, vcc", "s6")), []);
        assert_eq!(pairs(&code("s_and_b64 s8, exec, vcc", "s10")), []);
    }

    #[test]
    fn each_execution_restores_what_was_saved_last() {
        // In a loop of its own the mask is restored as often as it is saved.
        let alternate = "s_nop 0\ns_and_saveexec_b64 s4, vcc\ns_nop 0\ns_or_b64 exec, exec, s4\ns_cbranch_scc1 0";
        assert_eq!(pairs(alternate), [(1, 3)]);
        // Saved once, restored again and again.
        let again = "s_and_saveexec_b64 s4, vcc\ns_nop 0\ns_or_b64 exec, exec, s4\ns_cbranch_scc1 1";
        assert_eq!(pairs(again), []);
        // Saved again and again, restored once.
        let last = "s_nop 0\ns_and_saveexec_b64 s4, vcc\ns_cbranch_scc1 0\ns_or_b64 exec, exec, s4";
        assert_eq!(pairs(last), []);
        // Not on all paths.
        let maybe = "s_and_saveexec_b64 s4, vcc\ns_cbranch_scc1 3\ns_or_b64 exec, exec, s4\ns_nop 0";
        assert_eq!(pairs(maybe), []);
        assert_eq!(pairs("s_cbranch_scc1 2\ns_and_saveexec_b64 s4, vcc\ns_or_b64 exec, exec, s4"), []);
    }
}
