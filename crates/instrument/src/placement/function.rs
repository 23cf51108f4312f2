//! The flows of one function: executions of blocks and branches, and active lanes.
//!
//! Lanes flow as executions do: as many lanes leave a block as enter it, unless it writes EXEC. A block is therefore
//! cut at such instructions into segments, and what flows in and out there comes from and goes to the world.

use std::collections::BTreeSet;

use super::flow::{Edge, Flow};
use super::masks::Restored;
use super::nonzero::on_edge;
use super::values::{Measure, Quantity, ValueId, Values};
use crate::function::ClonedFunction;
use crate::guards;
use wavetap_amdgpu::{Branch, Condition, Reg};
use wavetap_analysis::cfg::{EdgeKind, Exit};
use wavetap_analysis::dataflow::Liveness;
use wavetap_analysis::kernel::{BodyKind, Flow as Control, Reason, Refusal};
use wavetap_base::entity::{BlockId, InstId, ProgramPoint, Side};

/// Instructions that count lanes.
const COUNT_LANES: f64 = 1.0;
/// Instructions that count those with which a wave begins.
const ENTRY_LANES: f64 = 1.0;
/// Instructions that save SCC.
const SAVE_SCC: f64 = 2.0;
/// Why the fewest counters of a function are not found.
const TOO_MUCH_WORK: &str = "to follow its masks takes more work than an analysis may take for code of its length";
/// Points of a block that are tried: those at its beginning are as good as others.
const MOST_POINTS: usize = 256;

/// Instructions of a measurement, by where its counter is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Prices {
    /// Those of a point where anything is measured.
    point: f64,
    /// Those that add 1, and that add something else.
    one: f64,
    value: f64,
    /// Those that a counter of 64 bits needs more.
    carry: f64,
}

impl Prices {
    /// In registers each addition is by itself.
    pub(crate) const REGISTERS: Prices = Prices { point: 0.0, one: 1.0, value: 1.0, carry: 1.0 };
    /// In memory and in LDS one instruction adds all that is measured at a point. A lane that adds 1 needs no
    /// instruction; it is the counter that costs something.
    pub(crate) const MEMORY: Prices = Prices { point: 7.0, one: 0.1, value: 1.0, carry: 0.0 };
}

/// What is asked of a function's flows.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Active lanes, too.
    pub(crate) lanes: bool,
    /// Instructions after which EXEC is compared.
    pub(crate) compared: Vec<InstId>,
}

/// The flows of a function, solved.
#[derive(Debug)]
pub(crate) struct FunctionFlows<'f, 'a> {
    function: &'f ClonedFunction<'a>,
    number: usize,
    /// By instruction: whether EXEC is certain to have a lane before it.
    nonzero: &'f [bool],
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
    /// Whether a wave has its counters by itself, and can compare them when it ends.
    compares_at_end: bool,
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
        wanted: &Wanted,
        prices: Prices,
        values: &mut Values,
    ) -> Result<FunctionFlows<'f, 'a>, Refusal> {
        let (body, cfg) = (function.body, &function.cfg);
        let is_kernel = body.kind() == BodyKind::Kernel;
        check_exits(function)?;
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
        let nonzero = function.nonzero();
        let restored = match function.restored() {
            _ if !wanted.lanes => &[],
            Some(restored) => restored,
            None => return Err(Refusal::new(Reason::CounterMode, TOO_MUCH_WORK)),
        };
        let mut builder = Builder {
            function,
            nonzero,
            restored,
            number,
            liveness,
            is_kernel,
            repeats: repeats(function),
            weights: function.weights(),
            prices,
            used: wanted.compared.iter().map(|&inst| ProgramPoint { inst, side: Side::After }).collect(),
        };
        let unsolved = || Refusal::new(Reason::CounterMode, "its flow does not follow from what can be counted");
        let (executions, taken) = builder.executions(values).ok_or_else(unsolved)?;
        builder.used.extend(values.execution_points(number));
        let lanes = if wanted.lanes { builder.lanes(&writers, values).ok_or_else(unsolved)? } else { Vec::new() };
        let repeats = builder.repeats;
        let compares_at_end = is_kernel && prices == Prices::REGISTERS;
        Ok(FunctionFlows { compares_at_end, function, number, nonzero, repeats, executions, taken, writers, lanes })
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
            Quantity::AllOn(inst) => self
                .all_on_at_end(inst, values)
                .unwrap_or_else(|| values.keep(Measure::AllOn { function, inst, wide: wide(inst) })),
            Quantity::AllOff(inst) => self.all_off(inst, values),
        }
    }

    /// The number of a point's segment in its block.
    fn segment(&self, point: ProgramPoint) -> usize {
        let block = self.function.cfg.block_of(point.inst).index();
        segment(&self.writers[block], point)
    }

    /// Of an instruction that a wave executes once at most, with a lane: if the wave counts the lanes before it and
    /// those after it, both numbers are 0 at the end or tell whether they are the same lanes.
    fn all_on_at_end(&self, inst: InstId, values: &mut Values) -> Option<ValueId> {
        let block = self.function.cfg.block_of(inst).index();
        let is_once = self.compares_at_end && !self.repeats[block] && self.nonzero[inst.index()];
        let lanes = self.lanes.get(block).filter(|_| is_once)?;
        let [before, after] =
            [Side::Before, Side::After].map(|side| values.measure(lanes[self.segment(ProgramPoint { inst, side })]));
        let once = |measure| match measure {
            Measure::Lanes { function: 0, point, wide: false } => Some(point),
            _ => None,
        };
        let before = match before? {
            Measure::EntryLanes => None,
            measure => Some(once(measure)?),
        };
        let same = values.keep(Measure::SameLanes { before, after: once(after?)? });
        // In waves that do not execute it both are 0, unless they begin with those before it.
        let executions = self.executions[block];
        match before {
            None => Some(same),
            Some(_) => Some(values.sum(vec![(1, same), (1, executions), (-1, Values::WAVES)])),
        }
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

/// Refuses a function that control may leave for where nothing is known of.
pub(super) fn check_exits(function: &ClonedFunction<'_>) -> Result<(), Refusal> {
    match function.cfg.blocks().iter().find(|block| block.exit == Some(Exit::Unknown)) {
        Some(block) => Err(refusal(function, block.last, "control goes to an unknown place")),
        None => Ok(()),
    }
}

fn refusal(function: &ClonedFunction<'_>, inst: InstId, detail: &str) -> Refusal {
    Refusal::at(Reason::CounterMode, function.body.address(inst), format!("{detail}: counters in registers follow it"))
}

/// By block: whether it may be executed more than once in a call of the kernel. A cycle goes back in memory somewhere,
/// and all its blocks lie between the ends of such edges.
pub(super) fn repeats(function: &ClonedFunction<'_>) -> Vec<bool> {
    let cfg = &function.cfg;
    let mut repeats = vec![function.body.kind() == BodyKind::Function; cfg.len()];
    for id in cfg.ids() {
        for edge in cfg.block(id).successors.iter().filter(|edge| edge.block <= id) {
            repeats[edge.block.index()..=id.index()].fill(true);
        }
    }
    repeats
}

struct Builder<'f, 'a> {
    function: &'f ClonedFunction<'a>,
    /// By instruction: whether EXEC is certain to have a lane before it.
    nonzero: &'f [bool],
    restored: &'f [Restored],
    number: usize,
    liveness: &'f Liveness,
    is_kernel: bool,
    repeats: Vec<bool>,
    weights: &'f [f64],
    prices: Prices,
    /// Points where something is measured in any case.
    used: BTreeSet<ProgramPoint>,
}

impl Builder<'_, '_> {
    /// The values of each block's executions and of its taken branch.
    fn executions(&self, values: &mut Values) -> Option<(Vec<ValueId>, Vec<Option<ValueId>>)> {
        let cfg = &self.function.cfg;
        let mut flow = Flow::new(2 * cfg.len() + 1);
        for id in cfg.ids() {
            let block = cfg.block(id);
            let points = block.insts().flat_map(|inst| {
                let after = ProgramPoint { inst, side: Side::After };
                let is_used = inst != block.last && self.used.contains(&after);
                [ProgramPoint { inst, side: Side::Before }].into_iter().chain(is_used.then_some(after))
            });
            let edge = self.countable(id, points, 1.0, self.prices.one, |point, wide| Measure::Executions {
                function: self.number,
                point,
                wide,
            });
            flow.edge(entrance(id), exit(id), edge);
        }
        let entry = if self.is_kernel { Edge::Known(Values::WAVES) } else { Edge::Hidden };
        let none = values.sum(Vec::new());
        let taken = self.connect(
            &mut flow,
            entry,
            |edge| self.is_without_lanes(edge, true).then_some(none),
            |id| {
                self.on_fall_through(id, self.prices.one, |point, wide| Measure::Executions {
                    function: self.number,
                    point,
                    wide,
                })
            },
        );
        let solved = flow.solve(values)?;
        let taken = taken.into_iter().map(|edge| edge.map(|edge| solved[edge])).collect();
        Some((solved[..cfg.len()].to_vec(), taken))
    }

    /// The values of the lanes of each block's segments.
    fn lanes(&self, writers: &[Vec<InstId>], values: &mut Values) -> Option<Vec<Vec<ValueId>>> {
        let cfg = &self.function.cfg;
        let none = values.sum(Vec::new());
        let world = 2 * cfg.len();
        let mut flow = Flow::new(world + 1);
        let mut segments = Vec::new();
        let cost = self.prices.value + COUNT_LANES;
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
                let edge = self.countable(id, after.into_iter().chain(inside), 1.0, cost, lanes);
                let from = if number == 0 { entrance(id) } else { world };
                let to = if number == writers.len() { exit(id) } else { world };
                flow.edge(from, to, edge);
            }
            segments.push(first..flow.edge_count());
        }
        let entry = if self.is_kernel { Edge::Countable(Measure::EntryLanes, ENTRY_LANES) } else { Edge::Hidden };
        // Where a branch says that no lane is left, none flows.
        let known = |edge| self.is_without_lanes(edge, false).then_some(none);
        self.connect(&mut flow, entry, known, |id| self.on_fall_through(id, cost, lanes));
        let segment = |point: ProgramPoint| {
            let block = cfg.block_of(point.inst).index();
            segments[block].start + segment(&writers[block], point)
        };
        for &Restored { saved_before, restored_by } in self.restored {
            let after = segment(ProgramPoint { inst: restored_by, side: Side::After });
            flow.set_same(after, segment(ProgramPoint { inst: saved_before, side: Side::Before }));
        }
        let solved = match flow.solve(values) {
            Some(solved) => solved,
            None => {
                flow.clear_same();
                flow.solve(values)?
            }
        };
        Some(segments.into_iter().map(|edges| solved[edges].to_vec()).collect())
    }

    /// Whether a branch goes that way only if EXEC is 0; or never, since that is certain not to be.
    fn is_without_lanes(&self, (block, kind): (BlockId, EdgeKind), never: bool) -> bool {
        let last = self.function.cfg.block(block).last;
        on_edge(self.function.body.inst(last), kind) == Some(false) && (!never || self.nonzero[last.index()])
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

    /// Counting at the best of some points of a block: where something else is, and where SCC need not be saved.
    fn countable(
        &self,
        id: BlockId,
        points: impl Iterator<Item = ProgramPoint>,
        share: f64,
        cost: f64,
        measure: impl Fn(ProgramPoint, bool) -> Measure,
    ) -> Edge {
        let wide = self.repeats[id.index()];
        let block = self.function.cfg.block(id);
        let [first, last] =
            [(block.first, Side::Before), (block.last, Side::After)].map(|(inst, side)| ProgramPoint { inst, side });
        let shares = self.prices.point > 0.0 && self.used.range(first..=last).next().is_some();
        let mut best: Option<(f64, ProgramPoint)> = None;
        for point in points.take(MOST_POINTS).filter(|point| self.is_possible(*point)) {
            let saves = self.liveness.at(point).overlaps(Reg::SCC);
            let is_used = shares && self.used.contains(&point);
            let here = if is_used { 0.0 } else { self.prices.point + if saves { SAVE_SCC } else { 0.0 } };
            if best.is_none_or(|(cost, _)| here < cost) {
                best = Some((here, point));
            }
            if is_used || !(saves || shares) {
                break;
            }
        }
        let Some((here, point)) = best else { return Edge::Hidden };
        let cost = cost + here + if wide { self.prices.carry } else { 0.0 };
        Edge::Countable(measure(point, wide), self.weights[id.index()] * share * cost)
    }

    /// Whether code can be inserted at a point.
    fn is_possible(&self, point: ProgramPoint) -> bool {
        let ClonedFunction { body, cfg, neighbours, .. } = self.function;
        let last = cfg.block(cfg.block_of(point.inst)).last;
        // After the code at the end of a wave nothing is counted any more.
        let is_late = body.flow(last) == Control::End
            && point > ProgramPoint { inst: guards::place_before_end(body, cfg, last), side: Side::Before };
        !is_late
            && guards::check_clause(body, neighbours, point).is_ok()
            && self.function.check_modes(point.inst).is_ok()
    }
}

/// How many of a block's instructions that write EXEC are before a point.
fn segment(writers: &[InstId], point: ProgramPoint) -> usize {
    writers.partition_point(|writer| match point.side {
        Side::Before => *writer < point.inst,
        Side::After => *writer <= point.inst,
    })
}

/// The vertex at the begin of a block.
fn entrance(block: BlockId) -> usize {
    2 * block.index()
}

/// The vertex at its end.
fn exit(block: BlockId) -> usize {
    2 * block.index() + 1
}
