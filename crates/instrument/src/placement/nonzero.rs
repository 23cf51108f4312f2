//! Where EXEC is certain to have a lane: a wave begins with one, and code that no lane would execute is mostly branched
//! over.

use wavetap_amdgpu::{Branch, Condition, Inst, MaskOp, Reg, Role, Value, scalar};
use wavetap_analysis::cfg::{Cfg, EdgeKind};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::{Body, BodyKind, Flow};
use wavetap_analysis::solver::{Analysis, Lattice, solve};
use wavetap_base::entity::{BlockId, InstId};

/// What is certain at a point: whether EXEC has a lane, and the scalar registers whose masks have one.
///
/// Lattice: more is certain further down; paths that meet keep what is certain on both. Its height is the number of
/// scalar registers, and the transfer is monotone, so that the iteration ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    exec: bool,
    masks: RegSet,
}

impl Lattice for State {
    fn join(&mut self, other: &State) -> bool {
        let before = *self;
        *self = State { exec: self.exec && other.exec, masks: self.masks.intersection(other.masks) };
        *self != before
    }
}

/// From block to block.
struct Blocks<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    lanes: u32,
}

impl Analysis for Blocks<'_> {
    type Node = BlockId;
    type State = State;

    fn transfer(&mut self, block: BlockId, state: &mut State) {
        self.cfg.block(block).insts().for_each(|inst| step(self.body, inst, self.lanes, state));
    }

    fn join(&mut self, _: BlockId, state: &mut State, incoming: &State) -> bool {
        state.join(incoming)
    }

    fn on_edge(&mut self, from: BlockId, number: usize, output: &State) -> Option<State> {
        let (body, block) = (self.body, self.cfg.block(from));
        match (on_edge(body.inst(block.last), block.successors[number].kind), body.flow(block.last)) {
            // Both ways lead to the same place.
            (_, Flow::Branch(to)) if body.next(block.last) == Some(to) => None,
            // The edge is never taken: whatever comes along it is certain.
            (Some(false), _) if output.exec => Some(State { exec: true, masks: RegSet::ALL }),
            (has_lanes, _) => has_lanes.map(|exec| State { exec, ..*output }),
        }
    }
}

/// Before each instruction, whether EXEC is certain to have a lane.
pub(crate) fn nonzero(body: &Body, cfg: &Cfg) -> Vec<bool> {
    let lanes = body.target().wave_size();
    let entry = State { exec: body.kind() == BodyKind::Kernel, masks: RegSet::EMPTY };
    let before = solve(&cfg.forward(), &mut Blocks { body, cfg, lanes }, [(cfg.entry(), entry)]);
    let mut all = vec![false; body.len()];
    for block in cfg.blocks() {
        let Some(mut state) = before[cfg.block_of(block.first).index()] else { continue };
        for inst in block.insts() {
            all[inst.index()] = state.exec;
            step(body, inst, lanes, &mut state);
        }
    }
    all
}

/// What a branch on EXEC says of it on one of its edges: whether it has a lane.
pub(super) fn on_edge(inst: &Inst, edge: EdgeKind) -> Option<bool> {
    match (inst.variant.branch, edge) {
        (Branch::Conditional(Condition::ExecZ), EdgeKind::Taken) => Some(false),
        (Branch::Conditional(Condition::ExecZ), EdgeKind::FallThrough) => Some(true),
        (Branch::Conditional(Condition::ExecNz), EdgeKind::Taken) => Some(true),
        (Branch::Conditional(Condition::ExecNz), EdgeKind::FallThrough) => Some(false),
        _ => None,
    }
}

fn step(body: &Body, id: InstId, lanes: u32, state: &mut State) {
    let inst = body.inst(id);
    if matches!(body.flow(id), Flow::Call(_)) {
        *state = State { exec: false, masks: RegSet::EMPTY };
        return;
    }
    let exec = Reg::scalar(scalar::EXEC, (lanes / 32) as u8);
    let value = |role| inst.operand(role).map(|operand| operand.value);
    let certain = |value: Option<Value>| match value {
        Some(Value::Reg(reg)) if reg == exec => state.exec,
        Some(Value::Reg(reg)) => state.masks.contains(reg),
        Some(Value::InlineInt(number)) => number != 0,
        _ => false,
    };
    let mask = inst.opcode().mask().filter(|mask| u32::from(mask.dwords) * 32 == lanes).map(|mask| mask.operation);
    let either = certain(value(Role::Src0)) || certain(value(Role::Src1));
    let result = match mask {
        Some(MaskOp::Mov) => certain(value(Role::Src0)),
        Some(MaskOp::Or | MaskOp::OrSaveexec) => either || (mask == Some(MaskOp::OrSaveexec) && state.exec),
        _ => false,
    };
    let saves = mask.is_some_and(saves_exec);
    let had_lanes = state.exec;
    for reg in body.writes(id) {
        if reg.overlaps(Reg::EXEC) {
            state.exec = false;
        }
        state.masks.remove(reg);
    }
    let destination = match value(Role::Sdst) {
        Some(Value::Reg(reg)) => Some(reg),
        _ => None,
    };
    let keep = |state: &mut State, reg: Reg| if reg == exec { state.exec = true } else { state.masks.insert(reg) };
    match (destination, saves) {
        (Some(reg), true) => {
            if had_lanes {
                keep(state, reg);
            }
            if result {
                state.exec = true;
            }
        }
        (Some(reg), false) if result => keep(state, reg),
        _ => {}
    }
}

/// Whether an operation copies EXEC as it was to its destination.
pub(super) fn saves_exec(operation: MaskOp) -> bool {
    matches!(
        operation,
        MaskOp::AndSaveexec
            | MaskOp::OrSaveexec
            | MaskOp::XorSaveexec
            | MaskOp::NandSaveexec
            | MaskOp::NorSaveexec
            | MaskOp::XnorSaveexec
            | MaskOp::Andn1Saveexec
            | MaskOp::Andn2Saveexec
            | MaskOp::Orn1Saveexec
            | MaskOp::Orn2Saveexec
    )
}

/// The scalar register or pair to which an instruction copies EXEC as it was before it narrows it, if it does.
pub(crate) fn saved_exec(body: &Body, inst: InstId) -> Option<Reg> {
    let inst = body.inst(inst);
    let lanes = body.target().wave_size();
    let operation = inst.opcode().mask().filter(|mask| u32::from(mask.dwords) * 32 == lanes)?.operation;
    match inst.operand(Role::Sdst)?.value {
        Value::Reg(reg) if saves_exec(operation) && !reg.overlaps(Reg::EXEC) => Some(reg),
        _ => None,
    }
}
