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

use std::collections::BTreeSet;

use wavetap_amdgpu::{Inst, MaskOp, OpcodeFlags, Reg, RegFile, Role, Value, scalar};
use wavetap_analysis::cfg::{Cfg, DominatorTree};
use wavetap_analysis::kernel::{Body, BodyKind, Flow};
use wavetap_analysis::solver::{Analysis, solve};
use wavetap_base::entity::{BlockId, InstId};

/// Blocks that are searched for one restored mask.
const MOST_BLOCKS: usize = 4096;

/// EXEC before the instruction of that number; [`AT_ENTRY`]: at the function's entry.
type Symbol = u32;
const AT_ENTRY: Symbol = u32::MAX;

/// The first of the scalar registers that hold a mask.
type Place = u16;
const EXEC: Place = scalar::EXEC;

/// What is certain at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    /// A register holds a symbol.
    Equal(Place, Symbol),
    /// It holds a part of it.
    Within(Place, Symbol),
    /// What it holds, and EXEC, are all of it.
    Covers(Place, Symbol),
    /// What it holds, and the first symbol, are all of the second.
    Joins(Place, Symbol, Symbol),
}

impl Fact {
    fn place(self) -> Place {
        match self {
            Fact::Equal(place, _) | Fact::Within(place, _) | Fact::Covers(place, _) | Fact::Joins(place, ..) => place,
        }
    }

    fn mentions(self, symbol: Symbol) -> bool {
        match self {
            Fact::Equal(_, of) | Fact::Within(_, of) | Fact::Covers(_, of) => of == symbol,
            Fact::Joins(_, with, of) => with == symbol || of == symbol,
        }
    }
}

/// A mask that an instruction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    In(Place),
    /// No lanes.
    Zero,
    Unknown,
}

type Symbols = BTreeSet<Symbol>;

/// All that is certain at a point.
///
/// Lattice: fewer facts are further up; paths that meet keep what is certain on both. There are finitely many, and the
/// transfer is monotone: from more facts follow more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Facts(BTreeSet<Fact>);

impl Facts {
    fn equal(&self, source: Source) -> Symbols {
        let Source::In(place) = source else { return Symbols::new() };
        let held = self.0.range(Fact::Equal(place, 0)..=Fact::Equal(place, Symbol::MAX));
        held.filter_map(|fact| if let Fact::Equal(_, symbol) = fact { Some(*symbol) } else { None }).collect()
    }

    /// The symbols of which it is a part. All are, of no lanes: there it is those of which anything is said.
    fn within(&self, source: Source) -> Symbols {
        match source {
            Source::Unknown => Symbols::new(),
            Source::Zero => self.equal(Source::In(EXEC)),
            Source::In(place) => {
                let parts = self.0.range(Fact::Within(place, 0)..=Fact::Within(place, Symbol::MAX));
                let parts =
                    parts.filter_map(|fact| if let Fact::Within(_, symbol) = fact { Some(*symbol) } else { None });
                parts.chain(self.equal(source)).collect()
            }
        }
    }

    /// The symbols that it is together with EXEC.
    fn covers(&self, source: Source) -> Symbols {
        let said = |symbol: &Fact| match (*symbol, source) {
            (Fact::Covers(at, symbol), Source::In(place)) if at == place => Some(symbol),
            _ => None,
        };
        let (exec, parts) = (self.equal(Source::In(EXEC)), self.within(Source::In(EXEC)));
        let all = self.equal(source).intersection(&parts).copied().collect::<Symbols>();
        let rest = exec.intersection(&self.within(source)).copied().collect::<Symbols>();
        self.0.iter().filter_map(said).chain(all).chain(rest).collect()
    }

    /// Forgets what is said of a register, or of EXEC and what lies outside of it.
    fn forget(&mut self, place: Place) {
        let is_of_exec = |fact: &Fact| place == EXEC && matches!(fact, Fact::Covers(..));
        self.0.retain(|fact| fact.place() != place && !is_of_exec(fact));
    }

    fn add(&mut self, place: Place, equal: &Symbols, within: &Symbols) {
        self.0.extend(equal.iter().map(|symbol| Fact::Equal(place, *symbol)));
        self.0.extend(within.iter().map(|symbol| Fact::Within(place, *symbol)));
    }

    fn add_covers(&mut self, place: Place, symbol: Symbol) {
        if place != EXEC {
            self.0.extend([Fact::Covers(place, symbol), Fact::Within(place, symbol), Fact::Within(EXEC, symbol)]);
        }
    }

    /// Forgets symbols that no register can restore.
    fn prune(&mut self) {
        let held = |fact: &Fact| match *fact {
            Fact::Equal(place, symbol) => (place != EXEC).then_some(symbol),
            Fact::Covers(_, symbol) | Fact::Joins(_, _, symbol) => Some(symbol),
            Fact::Within(..) => None,
        };
        let held: Symbols = self.0.iter().filter_map(held).chain([AT_ENTRY]).collect();
        self.0.retain(|fact| match fact {
            Fact::Equal(_, symbol) | Fact::Within(_, symbol) | Fact::Covers(_, symbol) => held.contains(symbol),
            Fact::Joins(_, with, symbol) => held.contains(with) && held.contains(symbol),
        });
    }
}

/// What becomes of masks in an instruction.
#[derive(Default)]
struct Effect {
    /// Of the destination: the symbols that it is, of which it is a part, and that it is together with EXEC.
    destination: (Symbols, Symbols, Symbols),
    /// Of EXEC, where the instruction writes that beside its destination.
    exec: (Symbols, Symbols),
    /// Registers that are a symbol together with EXEC, as the instruction leaves both.
    covers: Vec<(Place, Symbol)>,
}

struct Masks<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    /// Registers of a mask.
    dwords: u8,
}

impl Analysis for Masks<'_> {
    type Node = BlockId;
    type State = Facts;

    fn transfer(&mut self, block: BlockId, facts: &mut Facts) {
        self.cfg.block(block).insts().for_each(|inst| self.step(inst, facts));
        facts.prune();
    }

    fn join(&mut self, _: BlockId, facts: &mut Facts, incoming: &Facts) -> bool {
        let before = facts.0.len();
        facts.0.retain(|fact| incoming.0.contains(fact));
        facts.0.len() != before
    }
}

impl Masks<'_> {
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

    fn step(&self, id: InstId, facts: &mut Facts) {
        let (body, inst) = (self.body, self.body.inst(id));
        if matches!(body.flow(id), Flow::Call(_)) {
            facts.0.clear();
            return;
        }
        let operation = inst.opcode().mask().filter(|mask| mask.dwords == self.dwords).map(|mask| mask.operation);
        let [a, b] = [Role::Src0, Role::Src1].map(|role| self.source(inst, role));
        let destination = self.destination(inst);
        let exec = Source::In(EXEC);
        let saves = match operation {
            Some(MaskOp::Mov) => a == exec || a == Source::Zero,
            Some(operation) => super::nonzero::saves_exec(operation),
            None => false,
        };
        if saves && destination.is_some_and(|place| place != EXEC) {
            facts.0.retain(|fact| !fact.mentions(id.0));
            facts.0.insert(Fact::Equal(EXEC, id.0));
        }
        let effect = match operation {
            // EXEC cannot be saved in itself.
            Some(operation) if super::nonzero::saves_exec(operation) && destination == Some(EXEC) => Effect::default(),
            Some(operation) => effect(facts, operation, destination, a, b),
            None if inst.is_any(OpcodeFlags::CMPX) => {
                Effect { exec: (Symbols::new(), facts.within(exec)), ..Effect::default() }
            }
            // Lanes that are not active are not set.
            None if inst.is_any(OpcodeFlags::CMP) => {
                Effect { destination: (Symbols::new(), facts.within(exec), Symbols::new()), ..Effect::default() }
            }
            None => Effect::default(),
        };
        let mut writes_exec = false;
        for reg in body.writes(id) {
            if reg.overlaps(Reg::EXEC) && !writes_exec {
                writes_exec = true;
                // What lies outside of EXEC lies outside of what that is.
                let is = facts.equal(exec);
                let outside: Vec<(Place, Symbol)> = facts.0.iter().filter_map(covered).collect();
                for (place, symbol) in outside {
                    facts.0.extend(is.iter().map(|with| Fact::Joins(place, *with, symbol)));
                }
                facts.forget(EXEC);
            }
            if reg.file == RegFile::Scalar {
                let first = reg.first.saturating_sub(u16::from(self.dwords) - 1);
                (first..reg.first + u16::from(reg.dwords)).filter(|place| *place != EXEC).for_each(|p| facts.forget(p));
            }
        }
        let Effect { destination: (equal, within, covers), exec: of_exec, covers: kept } = effect;
        if writes_exec && destination != Some(EXEC) {
            facts.add(EXEC, &of_exec.0, &of_exec.1);
        }
        if let Some(place) = destination {
            facts.add(place, &equal, &within);
            covers.into_iter().for_each(|symbol| facts.add_covers(place, symbol));
        }
        for (place, symbol) in kept {
            if destination != Some(place) {
                facts.add_covers(place, symbol);
            }
        }
        if writes_exec {
            let is = facts.equal(exec);
            let joined = |fact: &Fact| match *fact {
                Fact::Joins(place, with, symbol) if is.contains(&with) => Some((place, symbol)),
                _ => None,
            };
            let joined: Vec<(Place, Symbol)> = facts.0.iter().filter_map(joined).collect();
            joined.into_iter().for_each(|(place, symbol)| facts.add_covers(place, symbol));
        }
    }
}

fn covered(fact: &Fact) -> Option<(Place, Symbol)> {
    if let Fact::Covers(place, symbol) = *fact { Some((place, symbol)) } else { None }
}

/// What an operation makes of masks, where this is certain before it.
fn effect(facts: &Facts, operation: MaskOp, destination: Option<Place>, a: Source, b: Source) -> Effect {
    let exec = Source::In(EXEC);
    let both = |x: Symbols, y: &Symbols| x.intersection(y).copied().collect::<Symbols>();
    let either = |x: Symbols, y: Symbols| x.into_iter().chain(y).collect::<Symbols>();
    let (within_a, within_b) = (facts.within(a), facts.within(b));
    let (is, part) = (facts.equal(exec), facts.within(exec));
    let none = Symbols::new;
    let in_exec = destination == Some(EXEC);
    // What a register and EXEC without that register's lanes are is what both were.
    let with = |source: Source| match source {
        Source::In(place) if place != EXEC => facts.covers(source).into_iter().map(|symbol| (place, symbol)).collect(),
        _ => Vec::new(),
    };
    let saved = (is.clone(), part.clone(), none());
    match operation {
        MaskOp::Mov => {
            // No lanes lie outside of EXEC.
            let covers = if a == Source::Zero && !in_exec { is } else { none() };
            Effect { destination: (facts.equal(a), within_a, covers), ..Effect::default() }
        }
        MaskOp::AndSaveexec => {
            Effect { destination: saved, exec: (none(), either(within_a, part)), ..Effect::default() }
        }
        MaskOp::Andn1Saveexec => Effect { destination: saved, exec: (none(), part), covers: with(a) },
        MaskOp::OrSaveexec => {
            let exec = (facts.covers(a), both(within_a, &part));
            Effect { destination: saved, exec, ..Effect::default() }
        }
        MaskOp::Andn2Saveexec => {
            let destination = (is, part, facts.covers(a));
            Effect { destination, exec: (none(), within_a), ..Effect::default() }
        }
        MaskOp::And => Effect { destination: (none(), either(within_a, within_b), none()), ..Effect::default() },
        MaskOp::Or => {
            let equal = match (a == exec, b == exec) {
                (true, _) => facts.covers(b),
                (_, true) => facts.covers(a),
                _ => none(),
            };
            let covers = if in_exec || a == exec || b == exec {
                none()
            } else {
                either(both(facts.covers(a), &within_b), both(facts.covers(b), &within_a))
            };
            Effect { destination: (equal, both(within_a, &within_b), covers), ..Effect::default() }
        }
        MaskOp::Xor => {
            let other = match (a == exec, b == exec) {
                (true, false) => b,
                (false, true) => a,
                _ => Source::Unknown,
            };
            // One of the two is all of a symbol, the other is a part of it: the result is the rest.
            let rest = both(facts.equal(other), &part);
            let of_exec = both(is, &facts.within(other));
            let within = both(within_a, &within_b);
            match other {
                Source::In(place) if in_exec => {
                    let covers = of_exec.into_iter().map(|symbol| (place, symbol)).collect();
                    Effect { destination: (none(), within, none()), covers, ..Effect::default() }
                }
                _ => Effect { destination: (none(), within, rest), ..Effect::default() },
            }
        }
        MaskOp::Andn2 if in_exec && a == exec => {
            Effect { destination: (none(), within_a, none()), covers: with(b), ..Effect::default() }
        }
        MaskOp::Andn2 => {
            let covers = if !in_exec && b == exec { facts.covers(a) } else { none() };
            Effect { destination: (none(), within_a, covers), ..Effect::default() }
        }
        _ => Effect::default(),
    }
}

/// An instruction after which EXEC is what it was before another one, each time that either is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Restored {
    pub(super) saved_before: InstId,
    pub(super) restored_by: InstId,
}

/// Finds where EXEC is restored.
pub(super) fn restored(body: &Body, cfg: &Cfg) -> Vec<Restored> {
    let mut masks = Masks { body, cfg, dwords: (body.target().wave_size() / 32) as u8 };
    let entry = match body.kind() {
        BodyKind::Kernel => Facts([Fact::Equal(EXEC, AT_ENTRY)].into_iter().collect()),
        BodyKind::Function => Facts::default(),
    };
    let before = solve(&cfg.forward(), &mut masks, [(cfg.entry(), entry)]);
    let dominators = cfg.dominators();
    let mut all = Vec::new();
    for block in cfg.blocks() {
        let Some(mut facts) = before[cfg.block_of(block.first).index()].clone() else { continue };
        for inst in block.insts() {
            masks.step(inst, &mut facts);
            if !body.writes(inst).any(|reg| reg.overlaps(Reg::EXEC)) {
                continue;
            }
            let symbols = facts.equal(Source::In(EXEC)).into_iter().filter(|symbol| *symbol != AT_ENTRY);
            let mut saves = symbols.map(InstId).filter(|saved| *saved != inst);
            let found = saves.find(|saved| alternate(body, cfg, &dominators, *saved, inst));
            all.extend(found.map(|saved_before| Restored { saved_before, restored_by: inst }));
        }
    }
    all
}

/// Whether each execution of the first instruction is followed by one of the second before the next of its own, and
/// each of the second comes after one of the first.
fn alternate(body: &Body, cfg: &Cfg, dominators: &DominatorTree, first: InstId, second: InstId) -> bool {
    let (from, to) = (cfg.block_of(first), cfg.block_of(second));
    if from == to {
        return first < second;
    }
    let leaves = |block: BlockId| {
        let block = cfg.block(block);
        block.exit.is_some() || block.successors.is_empty() || body.flow(block.last) == Flow::End
    };
    dominators.dominates(from, to)
        && !leaves(from)
        && !reaches(cfg, from, to, |block| block == from || leaves(block))
        && !reaches(cfg, to, from, |block| block == to)
}

/// Whether control gets from a block's end to one that is looked for without passing another; so it is said where that
/// takes long to find out.
fn reaches(cfg: &Cfg, from: BlockId, without: BlockId, is_wanted: impl Fn(BlockId) -> bool) -> bool {
    let mut seen = BTreeSet::new();
    let mut work: Vec<BlockId> = cfg.block(from).successors.iter().map(|edge| edge.block).collect();
    while let Some(block) = work.pop() {
        if block == without || !seen.insert(block) {
            continue;
        }
        if is_wanted(block) || seen.len() > MOST_BLOCKS {
            return true;
        }
        work.extend(cfg.block(block).successors.iter().map(|edge| edge.block));
    }
    false
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
        let found = restored(body, &Cfg::build(body));
        found.iter().map(|pair| (pair.saved_before.0, pair.restored_by.0)).collect()
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
