//! The flows of one function: executions of blocks and branches, and active lanes.
//!
//! Lanes flow as executions do: as many lanes leave a block as enter it, unless it writes EXEC. A block is therefore
//! cut at such instructions into segments, and what flows in and out there comes from and goes to the world.

use super::flow::{Edge, Flow};
use super::nonzero::{nonzero, saves_exec};
use super::values::{Measure, ValueId, Values};
use crate::facts::ClonedFunction;
use crate::guards;
use wavetap_amdgpu::{Branch, Condition, Reg, Role, Value};
use wavetap_analysis::cfg::{EdgeKind, Exit};
use wavetap_analysis::dataflow::Liveness;
use wavetap_analysis::kernel::{BodyKind, Flow as Control, Reason, Refusal};
use wavetap_base::entity::{BlockId, InstId, ProgramPoint, Side};

/// How much more often a loop's blocks are executed than those around it: a guess.
const LOOP_WEIGHT: f64 = 8.0;
/// How often a branch over code that no lane would execute is not taken: a guess.
const LANES_WEIGHT: f64 = 0.8;
/// Instructions that add to a counter, and that add lanes to one.
const ADD: f64 = 1.0;
const ADD_LANES: f64 = 2.0;
/// Instructions that save SCC.
const SAVE_SCC: f64 = 2.0;
/// Points of a block that are tried: those at its beginning are as good as others.
const MOST_POINTS: usize = 256;

/// What a site's counter is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Executions of the instruction.
    Executions(InstId),
    /// How often the branch is taken.
    Taken(InstId),
    /// The active lanes, added up.
    Lanes(ProgramPoint),
    /// Executions of an instruction that narrows EXEC with no lane before it.
    Empty(InstId),
    /// Executions of it after which as many lanes are active as before.
    AllOn(InstId),
    /// Executions of it after which no lane is active.
    AllOff(InstId),
}

/// The flows of a function, solved.
#[derive(Debug)]
pub(crate) struct FunctionFlows<'f, 'a> {
    function: &'f ClonedFunction<'a>,
    number: usize,
    /// By instruction: whether EXEC is certain to have a lane before it.
    nonzero: Vec<bool>,
    /// By block: whether it may be executed more than once.
    repeats: Vec<bool>,
    /// By block: the value of its executions.
    executions: Vec<ValueId>,
    /// By block: that of its taken branch, if it has one.
    taken: Vec<Option<ValueId>>,
    /// By block: the instructions that write EXEC.
    writers: Vec<Vec<InstId>>,
    /// By block: the values of the lanes of its segments; empty if lanes are not asked for.
    lanes: Vec<Vec<ValueId>>,
}

impl<'f, 'a> FunctionFlows<'f, 'a> {
    /// Solves the flows of the kernel's function of that number.
    ///
    /// # Errors
    /// Refused if control goes to where nothing is known of, or the flows do not follow from what can be counted.
    pub(crate) fn solve(
        function: &'f ClonedFunction<'a>,
        number: usize,
        liveness: &Liveness,
        with_lanes: bool,
        values: &mut Values,
    ) -> Result<FunctionFlows<'f, 'a>, Refusal> {
        let (body, cfg) = (function.body, &function.cfg);
        let is_kernel = body.kind() == BodyKind::Kernel;
        if let Some(block) = cfg.blocks().iter().find(|block| block.exit == Some(Exit::Unknown)) {
            return Err(refusal(function, block.last, "control goes to an unknown place"));
        }
        if !is_kernel && let Some(end) = function.ends().next() {
            return Err(refusal(function, end, "a function may end the wave"));
        }
        let mut writers = vec![Vec::new(); cfg.len()];
        for id in body.ids() {
            let calls = matches!(body.flow(id), Control::Call(_));
            if calls || body.writes(id).any(|reg| reg.overlaps(Reg::EXEC)) {
                writers[cfg.block_of(id).index()].push(id);
            }
        }
        let builder = Builder {
            function,
            number,
            liveness,
            is_kernel,
            repeats: repeats(function),
            weights: block_weights(function),
        };
        let unsolved = || Refusal::new(Reason::CounterMode, "its flow does not follow from what can be counted");
        let (executions, taken) = builder.executions(values).ok_or_else(unsolved)?;
        let lanes = if with_lanes { builder.lanes(&writers, values).ok_or_else(unsolved)? } else { Vec::new() };
        let repeats = builder.repeats;
        let nonzero = nonzero(body, cfg);
        Ok(FunctionFlows { function, number, nonzero, repeats, executions, taken, writers, lanes })
    }

    /// The value of a quantity.
    pub(crate) fn value(&self, quantity: Quantity, values: &mut Values) -> ValueId {
        let block = |inst| self.function.cfg.block_of(inst).index();
        let (function, wide) = (self.number, |inst| self.repeats[block(inst)]);
        match quantity {
            Quantity::Executions(inst) => self.executions[block(inst)],
            Quantity::Taken(inst) => self.taken[block(inst)].unwrap_or_else(|| values.sum(Vec::new())),
            Quantity::Lanes(point) => self.lanes[block(point.inst)][self.segment(point)],
            Quantity::Empty(inst) if self.nonzero[inst.index()] => values.sum(Vec::new()),
            Quantity::Empty(inst) => values.keep(Measure::Empty { function, inst, wide: wide(inst) }),
            Quantity::AllOn(inst) => values.keep(Measure::AllOn { function, inst, wide: wide(inst) }),
            Quantity::AllOff(inst) => self.all_off(inst, values),
        }
    }

    /// The number of a point's segment in its block.
    fn segment(&self, point: ProgramPoint) -> usize {
        let block = self.function.cfg.block_of(point.inst).index();
        let before = |writer: &&InstId| match point.side {
            Side::Before => **writer < point.inst,
            Side::After => **writer <= point.inst,
        };
        self.writers[block].iter().filter(before).count()
    }

    /// After the last instruction of a block that writes EXEC, a branch on it says whether a lane is left.
    fn all_off(&self, inst: InstId, values: &mut Values) -> ValueId {
        let (body, cfg) = (self.function.body, &self.function.cfg);
        let block = cfg.block_of(inst);
        let executions = self.executions[block.index()];
        let is_last = self.writers[block.index()].last() == Some(&inst);
        match (body.inst(cfg.block(block).last).variant.branch, self.taken[block.index()]) {
            (Branch::Conditional(Condition::ExecZ), Some(taken)) if is_last => taken,
            (Branch::Conditional(Condition::ExecNz), Some(taken)) if is_last => {
                values.sum(vec![(1, executions), (-1, taken)])
            }
            _ => {
                let wide = self.repeats[block.index()];
                let nonzero = values.keep(Measure::NonZero { function: self.number, inst, wide });
                values.sum(vec![(1, executions), (-1, nonzero)])
            }
        }
    }
}

fn refusal(function: &ClonedFunction<'_>, inst: InstId, detail: &str) -> Refusal {
    Refusal::at(Reason::CounterMode, function.body.address(inst), format!("{detail}: counters in registers follow it"))
}

/// By block: whether it may be executed more than once in a call of the kernel. A cycle goes back in memory somewhere,
/// and all its blocks lie between the ends of such edges.
fn repeats(function: &ClonedFunction<'_>) -> Vec<bool> {
    let cfg = &function.cfg;
    let mut repeats = vec![function.body.kind() == BodyKind::Function; cfg.len()];
    for id in cfg.ids() {
        for edge in cfg.block(id).successors.iter().filter(|edge| edge.block <= id) {
            repeats[edge.block.index()..=id.index()].fill(true);
        }
    }
    repeats
}

/// By block: how often it is executed when the function is called once. A guess from loops and branches.
pub(crate) fn block_weights(function: &ClonedFunction<'_>) -> Vec<f64> {
    let loops = function.cfg.loops();
    let (body, cfg) = (function.body, &function.cfg);
    let depth = |block: BlockId| loops.depth(block) as i32;
    let mut weights = vec![0.0; cfg.len()];
    weights[cfg.entry().index()] = LOOP_WEIGHT.powi(depth(cfg.entry()));
    for &id in cfg.reverse_postorder() {
        let block = cfg.block(id);
        for edge in block.successors.iter().filter(|edge| !cfg.retreats(id, edge.block)) {
            let share = match (body.inst(block.last).variant.branch, edge.kind) {
                _ if block.successors.len() < 2 => 1.0,
                (Branch::Conditional(Condition::ExecZ), EdgeKind::FallThrough)
                | (Branch::Conditional(Condition::ExecNz), EdgeKind::Taken) => LANES_WEIGHT,
                (Branch::Conditional(Condition::ExecZ | Condition::ExecNz), _) => 1.0 - LANES_WEIGHT,
                _ => 0.5,
            };
            let loops = LOOP_WEIGHT.powi(depth(edge.block) - depth(id));
            weights[edge.block.index()] += weights[id.index()] * share * loops;
        }
    }
    weights
}

struct Builder<'f, 'a> {
    function: &'f ClonedFunction<'a>,
    number: usize,
    liveness: &'f Liveness,
    is_kernel: bool,
    repeats: Vec<bool>,
    weights: Vec<f64>,
}

impl Builder<'_, '_> {
    /// The values of each block's executions and of its taken branch.
    fn executions(&self, values: &mut Values) -> Option<(Vec<ValueId>, Vec<Option<ValueId>>)> {
        let cfg = &self.function.cfg;
        let mut flow = Flow::new(2 * cfg.len() + 1);
        for id in cfg.ids() {
            let block = cfg.block(id);
            let points = block.insts().map(|inst| ProgramPoint { inst, side: Side::Before });
            let edge = self.countable(id, points, 1.0, ADD, |point, wide| Measure::Executions {
                function: self.number,
                point,
                wide,
            });
            flow.edge(entrance(id), exit(id), edge);
        }
        let entry = if self.is_kernel { Edge::Known(Values::WAVES) } else { Edge::Hidden };
        let taken = self.connect(
            &mut flow,
            entry,
            |_| None,
            |id| {
                self.on_fall_through(id, ADD, |point, wide| Measure::Executions { function: self.number, point, wide })
            },
        );
        let solved = flow.solve(values)?;
        let taken = taken.into_iter().map(|edge| edge.map(|edge| solved[edge])).collect();
        Some((solved[..cfg.len()].to_vec(), taken))
    }

    /// The values of the lanes of each block's segments.
    fn lanes(&self, writers: &[Vec<InstId>], values: &mut Values) -> Option<Vec<Vec<ValueId>>> {
        let (body, cfg) = (self.function.body, &self.function.cfg);
        let none = values.sum(Vec::new());
        let world = 2 * cfg.len();
        let mut flow = Flow::new(world + 1);
        let mut segments = Vec::new();
        let lanes = |point, wide| Measure::Lanes { function: self.number, point, wide };
        for id in cfg.ids() {
            let block = cfg.block(id);
            let writers = &writers[id.index()];
            let first = flow.edge_count();
            for number in 0..=writers.len() {
                let after = number.checked_sub(1).map(|number| writers[number]);
                let begin = after.map_or(block.first.0, |writer| writer.0 + 1);
                let end = writers.get(number).copied().unwrap_or(block.last);
                let after = after.map(|inst| ProgramPoint { inst, side: Side::After });
                let inside = (begin..=end.0).map(|inst| ProgramPoint { inst: InstId(inst), side: Side::Before });
                let edge = self.countable(id, after.into_iter().chain(inside), 1.0, ADD_LANES, lanes);
                let from = if number == 0 { entrance(id) } else { world };
                let to = if number == writers.len() { exit(id) } else { world };
                flow.edge(from, to, edge);
            }
            segments.push(first..flow.edge_count());
        }
        let entry = if self.is_kernel { Edge::Countable(Measure::EntryLanes, ADD) } else { Edge::Hidden };
        // Where a branch says that no lane is left, none flows.
        let known = |(id, kind): (BlockId, EdgeKind)| {
            let is_none = match (body.inst(cfg.block(id).last).variant.branch, kind) {
                (Branch::Conditional(Condition::ExecZ), kind) => kind == EdgeKind::Taken,
                (Branch::Conditional(Condition::ExecNz), kind) => kind == EdgeKind::FallThrough,
                _ => false,
            };
            is_none.then_some(none)
        };
        self.connect(&mut flow, entry, known, |id| self.on_fall_through(id, ADD_LANES, lanes));
        let solved = flow.solve(values)?;
        Some(segments.into_iter().map(|edges| solved[edges].to_vec()).collect())
    }

    /// Adds the edges between blocks and to the world; returns those of taken branches.
    fn connect(
        &self,
        flow: &mut Flow,
        entry: Edge,
        known: impl Fn((BlockId, EdgeKind)) -> Option<ValueId>,
        fall_through: impl Fn(BlockId) -> Edge,
    ) -> Vec<Option<usize>> {
        let cfg = &self.function.cfg;
        let world = 2 * cfg.len();
        flow.edge(world, entrance(cfg.entry()), entry);
        let mut taken = vec![None; cfg.len()];
        for id in cfg.ids() {
            let block = cfg.block(id);
            for edge in &block.successors {
                let what = match known((id, edge.kind)) {
                    Some(value) => Edge::Known(value),
                    None if edge.kind == EdgeKind::FallThrough && block.successors.len() > 1 => fall_through(id),
                    None => Edge::Hidden,
                };
                let number = flow.edge(exit(id), entrance(edge.block), what);
                if edge.kind == EdgeKind::Taken {
                    taken[id.index()] = Some(number);
                }
            }
            if block.exit.is_some() || block.successors.is_empty() {
                flow.edge(exit(id), world, Edge::Hidden);
            }
        }
        taken
    }

    /// Counting where a branch is not taken.
    fn on_fall_through(&self, id: BlockId, cost: f64, measure: impl Fn(ProgramPoint, bool) -> Measure) -> Edge {
        let point = ProgramPoint { inst: self.function.cfg.block(id).last, side: Side::After };
        self.countable(id, std::iter::once(point), 0.5, cost, measure)
    }

    /// Counting at the best of some points of a block: where SCC need not be saved.
    fn countable(
        &self,
        id: BlockId,
        points: impl Iterator<Item = ProgramPoint>,
        share: f64,
        cost: f64,
        measure: impl Fn(ProgramPoint, bool) -> Measure,
    ) -> Edge {
        let wide = self.repeats[id.index()];
        let mut possible = points.take(MOST_POINTS).filter(|point| self.is_possible(*point)).peekable();
        let first = possible.peek().copied();
        let free = possible.find(|point| !self.liveness.at(*point).overlaps(Reg::SCC));
        let Some((point, save)) = free.map(|point| (point, 0.0)).or(first.map(|point| (point, SAVE_SCC))) else {
            return Edge::Hidden;
        };
        let cost = cost + save + if wide { ADD } else { 0.0 };
        Edge::Countable(measure(point, wide), self.weights[id.index()] * share * cost)
    }

    /// Whether code can be inserted at a point.
    fn is_possible(&self, point: ProgramPoint) -> bool {
        let ClonedFunction { body, neighbours, .. } = self.function;
        guards::check_clause(body, neighbours, point).is_ok() && self.function.check_modes(point.inst).is_ok()
    }
}

/// The vertex at the begin of a block.
fn entrance(block: BlockId) -> usize {
    2 * block.index()
}

/// The vertex at its end.
fn exit(block: BlockId) -> usize {
    2 * block.index() + 1
}

/// The scalar register or pair to which an instruction copies EXEC as it was before it narrows it, if it does.
pub(crate) fn saved_exec(function: &ClonedFunction<'_>, inst: InstId) -> Option<Reg> {
    let inst = function.body.inst(inst);
    let lanes = function.body.target().wave_size();
    let operation = inst.opcode().mask().filter(|mask| u32::from(mask.dwords) * 32 == lanes)?.operation;
    match inst.operand(Role::Sdst)?.value {
        Value::Reg(reg) if saves_exec(operation) && !reg.overlaps(Reg::EXEC) => Some(reg),
        _ => None,
    }
}
