//! Which masks of lanes are within which: whether all lanes that are active here were active there.
//!
//! Every definition of EXEC ([`Ssa`]) gets another one that it is certainly within, if one is known: a tree.
//! `s_and_saveexec_b64 s[4:5], vcc` makes a mask within the one before, and leaves that in `s[4:5]`; so what `s_or_b64
//! exec, exec, s[4:5]` makes after the branch is again within the mask before the branch. The same is followed through
//! the masks that compilers keep in scalar registers (of ELSE, of lanes that have left a loop), by what each is
//! certainly within. Where nothing is known nothing is claimed.
//!
//! A definition stands for the mask that its instruction made last. What is found in a loop of an earlier round is
//! taken for nothing known by those who ask ([`ExecMasks::outside`]).

use std::cell::Cell;

use fixedbitset::FixedBitSet;

use super::regset::RegSet;
use super::ssa::{ENTRY, EXEC, Node, Ssa, SsaId};
use crate::cfg::{Cfg, Loops};
use crate::kernel::Body;
use wavetap_amdgpu::{MaskOp, OpcodeFlags, Operand, Reg, Role, Value, scalar};
use wavetap_base::entity::{BlockId, InstId};

/// No definition.
const NONE: SsaId = SsaId::MAX;
/// After so many rounds what still changes is given up, and after so many more all that was assumed.
const ROUNDS: usize = 8;
const LAST_ROUNDS: usize = 32;
/// Masks that are walked over, up the tree, for each definition; beyond, nothing is known.
const WALK_PER_DEFINITION: usize = 256;

/// What a mask in a register is within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// It has no lanes.
    Empty,
    /// A definition of EXEC.
    Within(SsaId),
    /// Not known.
    Unknown,
}

/// What masks are found from.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) body: &'a Body,
    pub(super) cfg: &'a Cfg,
    pub(super) loops: &'a Loops,
    pub(super) ssa: &'a Ssa,
}

impl Context<'_> {
    fn is_header(&self, block: BlockId) -> bool {
        !self.loops.irreducible()
            && self.loops.innermost(block).is_some_and(|index| self.loops.all()[index].header == block)
    }

    /// Whether a definition of EXEC is made in the loop with this header.
    fn in_loop(&self, def: SsaId, header: BlockId) -> bool {
        let block = match self.ssa.node(def) {
            Node::Entry => return false,
            Node::Write { inst, .. } | Node::Call { inst, .. } => self.cfg.block_of(inst),
            Node::Merge { block, .. } => block,
        };
        let mut at = self.loops.innermost(block);
        while let Some(index) = at {
            let each = &self.loops.all()[index];
            if each.header == header {
                return true;
            }
            at = each.parent;
        }
        false
    }

    /// 32-bit registers that hold a mask.
    fn dwords(&self) -> u8 {
        (self.body.target().wave_size() / 32) as u8
    }
}

/// Definitions of EXEC by inclusion.
#[derive(Debug)]
pub(super) struct ExecMasks {
    /// By definition: the one that it is within.
    parents: Vec<SsaId>,
    depths: Vec<u32>,
    /// By definition: when a walk over the tree comes to it, and when it leaves it.
    visits: Vec<(u32, u32)>,
    /// Steps up the tree that are left.
    walk: Cell<usize>,
}

impl ExecMasks {
    pub(super) fn compute(context: Context<'_>) -> ExecMasks {
        let Context { cfg, ssa, .. } = context;
        let count = ssa.len();
        let walk = Cell::new(WALK_PER_DEFINITION * count);
        let (parents, depths, visits) = (vec![NONE; count], vec![0; count], vec![(0, 0); count]);
        let mut masks = ExecMasks { parents, depths, visits, walk };
        // What comes into a merge from later code is assumed, and checked when a round has ended. Rounds over all
        // definitions, not the solver: what is assumed is joined in the tree that the round itself builds.
        let mut assumed = vec![Bound::Empty; count];
        for round in 0.. {
            let bounds = masks.round(context, &assumed);
            let mut holds = true;
            for (def, position, node) in ssa.all() {
                let Node::Merge { block, operands } = node else { continue };
                let mut bound = assumed[def as usize];
                for (from, operand) in ssa.merged(cfg, block, operands) {
                    if from.is_some_and(|from| cfg.retreats(from, block)) {
                        let incoming = if position == EXEC { Bound::Within(operand) } else { bounds[operand as usize] };
                        bound = masks.join(bound, masks.leave(context, incoming, block, def));
                    }
                }
                if round >= ROUNDS + LAST_ROUNDS {
                    bound = Bound::Unknown;
                }
                if bound != assumed[def as usize] {
                    assumed[def as usize] = if round < ROUNDS { bound } else { Bound::Unknown };
                    holds = false;
                }
            }
            if holds {
                break;
            }
        }
        masks.number(ssa);
        masks
    }

    /// One round over all definitions: the tree, and the bounds of masks in registers.
    fn round(&mut self, context: Context<'_>, assumed: &[Bound]) -> Vec<Bound> {
        let Context { body, cfg, ssa, .. } = context;
        let mut bounds = vec![Bound::Unknown; ssa.len()];
        for (def, position, node) in ssa.all() {
            let bound = match node {
                Node::Entry | Node::Call { .. } => Bound::Unknown,
                Node::Write { inst, before, .. } if position == EXEC => {
                    if super::definitions::narrows_exec(body.target(), body.inst(inst)) {
                        Bound::Within(before)
                    } else {
                        match self.result(context, inst, Reg::EXEC, &bounds) {
                            Bound::Empty => Bound::Within(before),
                            bound => bound,
                        }
                    }
                }
                Node::Write { inst, .. } => self.result(context, inst, RegSet::reg_at(position), &bounds),
                Node::Merge { block, operands } => {
                    let mut bound = assumed[def as usize];
                    for (from, operand) in ssa.merged(cfg, block, operands) {
                        if from.is_none_or(|from| !cfg.retreats(from, block)) {
                            let incoming =
                                if position == EXEC { Bound::Within(operand) } else { bounds[operand as usize] };
                            bound = self.join(bound, incoming);
                        }
                    }
                    bound
                }
            };
            if position == EXEC {
                let parent = if let Bound::Within(parent) = bound { parent } else { NONE };
                self.parents[def as usize] = parent;
                self.depths[def as usize] = if parent == NONE { 0 } else { self.depths[parent as usize] + 1 };
            } else {
                bounds[def as usize] = bound;
            }
        }
        bounds
    }

    /// A step up the tree; none where nothing is known, or too many were taken.
    fn parent(&self, def: SsaId) -> SsaId {
        let left = self.walk.get();
        self.walk.set(left.saturating_sub(1));
        if left == 0 { NONE } else { self.parents[def as usize] }
    }

    /// The smallest known mask that both are within.
    fn join(&self, a: Bound, b: Bound) -> Bound {
        match (a, b) {
            (Bound::Empty, other) | (other, Bound::Empty) => other,
            (Bound::Unknown, _) | (_, Bound::Unknown) => Bound::Unknown,
            (Bound::Within(mut a), Bound::Within(mut b)) => {
                while a != b {
                    let deeper = if self.depths[a as usize] >= self.depths[b as usize] { &mut a } else { &mut b };
                    *deeper = self.parent(*deeper);
                    if *deeper == NONE {
                        return Bound::Unknown;
                    }
                }
                Bound::Within(a)
            }
        }
    }

    /// What is within this at the end of a loop is within what when the loop's header is entered again. A definition of
    /// EXEC that leads back to the header's own adds nothing to it.
    fn leave(&self, context: Context<'_>, bound: Bound, header: BlockId, own: SsaId) -> Bound {
        let Bound::Within(mut at) = bound else { return bound };
        while at != NONE && at != own && context.in_loop(at, header) {
            at = self.parent(at);
        }
        match at {
            NONE => Bound::Unknown,
            at if at == own => Bound::Empty,
            // A cycle that is no natural loop may come from anywhere.
            _ if !context.is_header(header) => Bound::Unknown,
            at => Bound::Within(at),
        }
    }

    /// What the mask is within that an instruction writes to `to`, or to a half of it.
    fn result(&self, context: Context<'_>, id: InstId, to: Reg, bounds: &[Bound]) -> Bound {
        let (inst, before) = (context.body.inst(id), Bound::Within(context.ssa.exec_before(id)));
        let exec = to.overlaps(Reg::EXEC);
        let whole =
            |operand: &Operand| operand.reg().is_some_and(|reg| reg.overlaps(to) && reg.dwords == context.dwords());
        if inst.is_any(OpcodeFlags::CMP) {
            // A comparison clears the bits of the lanes that are not active.
            return before;
        }
        let Some(mask) = inst.opcode().mask().filter(|mask| mask.dwords == context.dwords()) else {
            return Bound::Unknown;
        };
        let saves = inst.is_any(OpcodeFlags::SAVEEXEC);
        if !(saves && exec || inst.operand(Role::Sdst).is_some_and(whole)) {
            return Bound::Unknown;
        }
        if saves && !exec {
            return before;
        }
        let source =
            |role| inst.operand(role).map_or(Bound::Unknown, |operand| self.source(context, id, operand, bounds));
        let either = |a: Bound, b: Bound| match (a, b) {
            (Bound::Empty, _) | (_, Bound::Empty) => Bound::Empty,
            (Bound::Unknown, known) | (known, Bound::Unknown) => known,
            (Bound::Within(x), Bound::Within(y)) => {
                if self.depths[x as usize] >= self.depths[y as usize] {
                    a
                } else {
                    b
                }
            }
        };
        match mask.operation {
            MaskOp::Mov => source(Role::Src0),
            MaskOp::And => either(source(Role::Src0), source(Role::Src1)),
            MaskOp::Or | MaskOp::Xor | MaskOp::Cselect => self.join(source(Role::Src0), source(Role::Src1)),
            // S0 & ~S1.
            MaskOp::Andn2 => source(Role::Src0),
            // S0 | EXEC, S0 ^ EXEC; S0 & ~EXEC (Vega ISA, SOP1).
            MaskOp::OrSaveexec | MaskOp::XorSaveexec => self.join(source(Role::Src0), before),
            MaskOp::Andn2Saveexec | MaskOp::Andn2Wrexec => source(Role::Src0),
            _ => Bound::Unknown,
        }
    }

    /// What a mask that is read is within.
    fn source(&self, context: Context<'_>, id: InstId, operand: &Operand, bounds: &[Bound]) -> Bound {
        match operand.value {
            Value::InlineInt(0) => Bound::Empty,
            Value::Reg(reg) if reg.dwords != context.dwords() => Bound::Unknown,
            Value::Reg(reg) if reg == Reg::scalar(scalar::EXEC, context.dwords()) => {
                Bound::Within(context.ssa.exec_before(id))
            }
            // Halves of masks are at even numbers if they are low ones.
            Value::Reg(reg) if reg.dwords == 2 && reg.first % 2 != 0 => Bound::Unknown,
            Value::Reg(reg) => {
                let halves = context.ssa.read(id, reg).map(|def| bounds[def as usize]);
                halves.reduce(|a, b| self.join(a, b)).unwrap_or(Bound::Unknown)
            }
            _ => Bound::Unknown,
        }
    }

    /// Numbers the definitions by a walk over the tree.
    fn number(&mut self, ssa: &Ssa) {
        let mut children: Vec<Vec<SsaId>> = vec![Vec::new(); ssa.len()];
        let mut nodes: Vec<SsaId> =
            ssa.all().filter(|(_, position, _)| *position == EXEC).map(|(def, _, _)| def).collect();
        nodes.push(ENTRY);
        let mut roots = Vec::new();
        for def in nodes {
            match self.parents[def as usize] {
                NONE => roots.push(def),
                parent => children[parent as usize].push(def),
            }
        }
        let mut time = 0;
        let mut left = FixedBitSet::with_capacity(ssa.len());
        let mut work = roots;
        // A walk over a tree, not a fixed point.
        while let Some(def) = work.pop() {
            time += 1;
            if left.put(def as usize) {
                self.visits[def as usize].1 = time;
            } else {
                self.visits[def as usize].0 = time;
                work.push(def);
                work.extend(&children[def as usize]);
            }
        }
    }

    /// Whether every lane of the inner mask is in the outer one.
    pub(super) fn covers(&self, outer: SsaId, inner: SsaId) -> bool {
        let ((from, to), (at, _)) = (self.visits[outer as usize], self.visits[inner as usize]);
        from <= at && at <= to
    }

    /// A mask and all that it is within, from the inside.
    pub(super) fn around(&self, mask: SsaId) -> impl Iterator<Item = SsaId> {
        std::iter::successors(Some(mask), |mask| Some(self.parents[*mask as usize]).filter(|parent| *parent != NONE))
    }

    /// What a mask is within that was not made again since the round of a loop before: none if that is not known.
    pub(super) fn outside(&self, context: Context<'_>, mask: SsaId, header: BlockId) -> Option<SsaId> {
        match self.leave(context, Bound::Within(mask), header, NONE) {
            Bound::Within(def) => Some(def),
            Bound::Empty | Bound::Unknown => None,
        }
    }
}
