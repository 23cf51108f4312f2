//! No instruction overwrites a register that a memory instruction may have to read again: until its addresses are
//! translated it may be replayed (gfx1250).
//!
//! Original instructions among themselves are left to the compiler. What inserted ones overwrite, and what inserted
//! ones read, may be read again until the translation is known to be done: by a wait for none, by what the hardware
//! itself lets wait for all (`Inst::waits_for_translations`, but for conditional branches: one that is not taken waits
//! for nothing; and but for `s_set_vgpr_msb`, of which only code that compilers leave out says that it waits), by the
//! other kind of memory (the hardware does not mix scalar and vector memory), or because the operation itself, or a
//! load of vector memory after it, has completed; and for original ones also when the original itself overwrites the
//! register.

use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{Branch, Counter, Encoding, Inst, Memory, OpcodeFlags, Reg, issued, scalar, wait_count};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::Body;
use wavetap_analysis::solver::{Analysis, Lattice, solve};
use wavetap_base::entity::{BlockId, InstId};

/// Registers that may be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sources {
    /// By scalar memory.
    scalar: RegSet,
    /// By vector memory up to the last load that `loadcnt` counts.
    loaded: RegSet,
    /// By vector memory since.
    later: RegSet,
}

impl Sources {
    const NOTHING: Sources = Sources { scalar: RegSet::EMPTY, loaded: RegSet::EMPTY, later: RegSet::EMPTY };

    fn each(&mut self) -> [&mut RegSet; 3] {
        [&mut self.scalar, &mut self.loaded, &mut self.later]
    }

    fn all(&self) -> RegSet {
        self.scalar.union(self.loaded).union(self.later)
    }

    fn join(&mut self, other: &Sources) {
        let others = [other.scalar, other.loaded, other.later];
        self.each().into_iter().zip(others).for_each(|(mine, its)| *mine = mine.union(its));
    }

    fn remove(&mut self, registers: RegSet) {
        self.each().into_iter().for_each(|set| *set = set.difference(registers));
    }

    /// An operation is issued.
    fn issue(&mut self, kind: Kind) {
        match kind {
            Kind::Scalar => (self.loaded, self.later) = (RegSet::EMPTY, RegSet::EMPTY),
            Kind::Vector => self.scalar = RegSet::EMPTY,
            Kind::Load => {
                self.scalar = RegSet::EMPTY;
                self.loaded = self.loaded.union(std::mem::replace(&mut self.later, RegSet::EMPTY));
            }
        }
    }

    /// Where what an operation reads is noted.
    fn of(&mut self, kind: Kind) -> &mut RegSet {
        match kind {
            Kind::Scalar => &mut self.scalar,
            Kind::Vector => &mut self.later,
            Kind::Load => &mut self.loaded,
        }
    }
}

/// Kinds of operations whose addresses are translated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    /// Of vector memory: a load that completes in the order of loads, and any other.
    Load,
    Vector,
}

impl Kind {
    /// Of an instruction; none if it translates nothing.
    fn of(inst: &Inst) -> Option<Kind> {
        let counters = issued(inst);
        if !counters.contains(Counter::X.flag()) {
            return None;
        }
        let scalar = inst.variant.memory == Memory::Scalar || inst.variant.encoding == Encoding::Smem;
        Some(match counters.contains(Counter::Load.flag()) {
            _ if scalar => Kind::Scalar,
            true => Kind::Load,
            false => Kind::Vector,
        })
    }
}

/// Registers that may be read again, by whose instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    original: Sources,
    inserted: Sources,
}

impl State {
    const NOTHING: State = State { original: Sources::NOTHING, inserted: Sources::NOTHING };

    fn step(&mut self, new: &Body, id: InstId, inserted: bool) {
        let inst = new.inst(id);
        let waited = wait_count(new.target(), inst).unwrap_or_default();
        let is_done = inst.waits_for_translations()
            && !matches!(inst.variant.branch, Branch::Conditional(_) | Branch::Obsolete)
            && !inst.is_any(OpcodeFlags::SET_VGPR_MSB);
        if waited.get(Counter::X) == Some(0) || is_done {
            *self = State::NOTHING;
            return;
        }
        for sources in [&mut self.original, &mut self.inserted] {
            if waited.get(Counter::Km) == Some(0) {
                sources.scalar = RegSet::EMPTY;
            }
            if waited.get(Counter::Load) == Some(0) {
                sources.loaded = RegSet::EMPTY;
            }
        }
        match Kind::of(inst) {
            Some(kind) => {
                self.original.issue(kind);
                self.inserted.issue(kind);
                let set = if inserted { self.inserted.of(kind) } else { self.original.of(kind) };
                new.reads(id).for_each(|reg| set.insert(reg));
            }
            // The original may overwrite it here, so nothing reads it again any more.
            None if !inserted => self.original.remove(new.writes(id).collect()),
            None => {}
        }
    }

    /// What an instruction must not overwrite.
    fn at_risk(&self, inst: &Inst, inserted: bool) -> RegSet {
        // What vector memory brings comes after all translations before it.
        if matches!(Kind::of(inst), Some(Kind::Load | Kind::Vector)) {
            return RegSet::EMPTY;
        }
        if inserted { self.original.all().union(self.inserted.all()) } else { self.inserted.all() }
    }
}

/// What may be read again on either path.
impl Lattice for State {
    fn join(&mut self, other: &State) -> bool {
        let before = self.clone();
        self.original.join(&other.original);
        self.inserted.join(&other.inserted);
        *self != before
    }
}

/// The registers that may be read again before each block.
struct Replays<'a> {
    new: &'a Body,
    cfg: &'a Cfg,
    alignment: &'a Alignment,
}

impl Analysis for Replays<'_> {
    type Node = BlockId;
    type State = State;

    fn transfer(&mut self, block: BlockId, state: &mut State) {
        let insts = self.cfg.block(block).insts();
        insts.for_each(|id| state.step(self.new, id, self.alignment.original(id).is_none()));
    }

    fn join(&mut self, _: BlockId, state: &mut State, incoming: &State) -> bool {
        state.join(incoming)
    }
}

/// Registers that hold nothing.
fn holds_nothing(reg: Reg) -> bool {
    reg == Reg::SCC || reg == Reg::scalar(scalar::NULL, 1)
}

/// Checks one kernel's or function's new code.
pub(crate) fn check(new: &Body, cfg: &Cfg, alignment: &Alignment, findings: &mut Vec<Finding>) {
    if new.target().largest_wait(Counter::X).is_none() {
        return;
    }
    let inserted = |id: InstId| alignment.original(id).is_none();
    // A call waits for all of them.
    let before = solve(&cfg.forward(), &mut Replays { new, cfg, alignment }, [(cfg.entry(), State::NOTHING)]);
    for (block, state) in cfg.blocks().iter().zip(before) {
        let Some(mut state) = state else { continue };
        for id in block.insts() {
            let at_risk = state.at_risk(new.inst(id), inserted(id));
            let clash: RegSet = new.writes(id).filter(|reg| !holds_nothing(*reg) && at_risk.overlaps(*reg)).collect();
            // A wait comes first.
            let waits = wait_count(new.target(), new.inst(id)).is_some();
            if !clash.is_empty() && !waits {
                let message = format!(
                    "{} overwrites {clash:?}, which a memory instruction may read again: no wait for xcnt",
                    new.inst(id).name()
                );
                findings.push(Finding::new(Rule::Wait, message).at(new.address(id)));
            }
            state.step(new, id, inserted(id));
        }
    }
}
