//! Flows in a graph: what goes into a vertex comes out of it. Of the edges of a cycle one has to be counted; those of a
//! spanning tree follow from the others (Knuth 1973; Ball and Larus, "Optimally profiling and tracing programs").

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::values::{Measure, ValueId, Values};

/// What is known of an edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Edge {
    /// Its value is known.
    Known(ValueId),
    /// It can be counted, in this way and at this cost.
    Countable(Measure, f64),
    /// Nothing can be inserted on it.
    Hidden,
}

/// A graph whose vertices are numbers.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    edges: Vec<(usize, usize, Edge)>,
    vertices: usize,
    /// By edge: another one whose value it has.
    same: FxHashMap<usize, usize>,
}

impl Flow {
    /// A graph of so many vertices.
    pub(crate) fn new(vertices: usize) -> Flow {
        Flow { vertices, ..Flow::default() }
    }

    /// Adds an edge; returns its number.
    pub(crate) fn edge(&mut self, from: usize, to: usize, edge: Edge) -> usize {
        self.edges.push((from, to, edge));
        self.edges.len() - 1
    }

    /// How many edges there are.
    pub(crate) fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// Says that as much flows on an edge as on another one.
    ///
    /// No spanning tree has the edge: it follows from the other one. Where that in turn follows from the edge alone,
    /// the cheapest edge of those that depend on each other is counted.
    pub(crate) fn set_same(&mut self, edge: usize, other: usize) {
        if edge != other && !matches!(self.edges[edge].2, Edge::Known(_)) {
            self.same.insert(edge, other);
        }
    }

    /// Takes back all that [`Flow::set_same`] said.
    pub(crate) fn clear_same(&mut self) {
        self.same.clear();
    }

    /// The value of each edge, by its number. Those that are counted are the cheapest from which the others follow.
    /// None if edges that cannot be counted form a cycle.
    pub(crate) fn solve(&self, values: &mut Values) -> Option<Vec<ValueId>> {
        let mut solved: Vec<Option<ValueId>> = self
            .edges
            .iter()
            .map(|(_, _, edge)| if let Edge::Known(value) = edge { Some(*value) } else { None })
            .collect();
        let is_open = |edge: &usize| solved[*edge].is_none() && !self.same.contains_key(edge);
        let mut order: Vec<usize> = (0..self.edges.len()).filter(is_open).collect();
        let cost = |edge: usize| match self.edges[edge].2 {
            Edge::Countable(_, cost) => cost,
            Edge::Known(_) | Edge::Hidden => f64::INFINITY,
        };
        order.sort_by(|a, b| cost(*b).partial_cmp(&cost(*a)).unwrap_or(Ordering::Equal));
        let mut components = Components::new(self.vertices);
        for edge in order {
            let (from, to, what) = self.edges[edge];
            if components.join(from, to) {
                continue;
            }
            let Edge::Countable(measure, _) = what else { return None };
            solved[edge] = Some(values.keep(measure));
        }
        let pairs = self.same.iter().flat_map(|(edge, other)| [(*other, *edge), (*edge, *other)]);
        let mut same: Vec<(usize, usize)> = pairs.collect();
        same.sort_unstable();
        let mut solution = Solution::of(self, solved, &same);
        let all = (0..self.vertices).rev().collect();
        let known = (0..self.edges.len()).filter(|edge| solution.solved[*edge].is_some()).collect();
        solution.derive(values, all, known);
        // Edges that are the same as those from which they follow: one of them is counted.
        let mut unsolved: Vec<usize> = (0..self.edges.len()).filter(|edge| solution.solved[*edge].is_none()).collect();
        unsolved.sort_by(|a, b| cost(*a).partial_cmp(&cost(*b)).unwrap_or(Ordering::Equal));
        for edge in unsolved {
            if solution.solved[edge].is_none() {
                let Edge::Countable(measure, _) = self.edges[edge].2 else { return None };
                solution.solve(edge, values.keep(measure));
                let (from, to, _) = self.edges[edge];
                solution.derive(values, vec![from.max(to), from.min(to)], vec![edge]);
            }
        }
        solution.solved.into_iter().collect()
    }
}

/// The values of a graph's edges that are found so far.
struct Solution<'f> {
    flow: &'f Flow,
    solved: Vec<Option<ValueId>>,
    /// Pairs of edges of the same value, in both orders.
    same: &'f [(usize, usize)],
    /// By vertex: its edges. What leaves a vertex and comes back to it at once says nothing of others.
    at: Vec<Vec<usize>>,
    /// By vertex: how many of these are not solved, and the exclusive or of their numbers: the number of the last one.
    missing: Vec<(usize, usize)>,
}

impl<'f> Solution<'f> {
    fn of(flow: &'f Flow, solved: Vec<Option<ValueId>>, same: &'f [(usize, usize)]) -> Solution<'f> {
        let mut at: Vec<Vec<usize>> = vec![Vec::new(); flow.vertices];
        let mut missing = vec![(0, 0); flow.vertices];
        for (number, (from, to, _)) in flow.edges.iter().enumerate().filter(|(_, (from, to, _))| from != to) {
            for vertex in [*from, *to] {
                at[vertex].push(number);
                if solved[number].is_none() {
                    missing[vertex] = (missing[vertex].0 + 1, missing[vertex].1 ^ number);
                }
            }
        }
        Solution { flow, solved, same, at, missing }
    }

    fn solve(&mut self, edge: usize, value: ValueId) {
        self.solved[edge] = Some(value);
        let (from, to, _) = self.flow.edges[edge];
        for vertex in [from, to].into_iter().filter(|_| from != to) {
            let (count, numbers) = self.missing[vertex];
            self.missing[vertex] = (count - 1, numbers ^ edge);
        }
    }

    /// The edges of the tree, from its leaves on, and those that have the value of others: what follows at `work`, the
    /// last first, from edges that were `found`.
    fn derive(&mut self, values: &mut Values, mut work: Vec<usize>, mut found: Vec<usize>) {
        loop {
            while let Some(edge) = found.pop() {
                let first = self.same.partition_point(|(other, _)| *other < edge);
                for (_, follows) in self.same[first..].iter().take_while(|(other, _)| *other == edge) {
                    if let (None, Some(value)) = (self.solved[*follows], self.solved[edge]) {
                        self.solve(*follows, value);
                        work.extend([self.flow.edges[*follows].0, self.flow.edges[*follows].1]);
                        found.push(*follows);
                    }
                }
            }
            let Some(vertex) = work.pop() else { break };
            let (1, edge) = self.missing[vertex] else { continue };
            let comes_in = self.flow.edges[edge].1 == vertex;
            let terms = self.at[vertex].iter().filter_map(|other| {
                let value = self.solved[*other]?;
                // What comes in on this edge is what else goes out, without what else comes in.
                let goes_out = self.flow.edges[*other].0 == vertex;
                Some((if comes_in == goes_out { 1 } else { -1 }, value))
            });
            let value = values.sum(terms.collect());
            self.solve(edge, value);
            found.push(edge);
            let (from, to, _) = self.flow.edges[edge];
            work.push(if from == vertex { to } else { from });
        }
    }
}

/// Which vertices are connected.
struct Components(Vec<usize>);

impl Components {
    fn new(vertices: usize) -> Components {
        Components((0..vertices).collect())
    }

    fn find(&mut self, mut vertex: usize) -> usize {
        while self.0[vertex] != vertex {
            self.0[vertex] = self.0[self.0[vertex]];
            vertex = self.0[vertex];
        }
        vertex
    }

    /// Connects two; false if they were.
    fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a] = b;
        a != b
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    use wavetap_base::entity::{InstId, ProgramPoint, Side};

    /// Walks through random graphs leave counts from which all others follow.
    #[test]
    fn all_edges_of_random_walks_follow_from_those_that_are_counted() {
        let mut random = SplitMix64::seed_from_u64(5);
        let mut below = |n: usize| (random.next_u64() % n as u64) as usize;
        let mut kept = 0;
        for _ in 0..300 {
            let blocks = 1 + below(12);
            // Each block goes to one or two others, or leaves.
            let next: Vec<Vec<usize>> =
                (0..blocks).map(|_| (0..1 + below(2)).map(|_| below(blocks + 1)).collect()).collect();
            let world = 2 * blocks;
            let mut values = Values::default();
            let mut flow = Flow::new(world + 1);
            let mut walked = Vec::new();
            let countable = |number: usize, cost: f64| {
                let point = ProgramPoint { inst: InstId(number as u32), side: Side::Before };
                Edge::Countable(Measure::Executions { function: 0, point, wide: false }, cost)
            };
            let entry = flow.edge(world, 0, Edge::Known(Values::WAVES));
            for block in 0..blocks {
                flow.edge(2 * block, 2 * block + 1, countable(block, 1.0));
            }
            let mut ways = Vec::new();
            for (block, next) in next.iter().enumerate() {
                for (side, to) in next.iter().enumerate() {
                    let to = if *to == blocks { world } else { 2 * to };
                    let edge = if side == 0 { Edge::Hidden } else { countable(100 + block, 0.5) };
                    ways.push((block, flow.edge(2 * block + 1, to, edge)));
                }
            }
            let solved = flow.solve(&mut values).expect("at most one way of each block is hidden");
            // Walks that end.
            let mut counts = vec![0_i64; flow.edges.len()];
            for _ in 0..10 {
                let (mut block, mut walk) = (0, vec![0_i64; flow.edges.len()]);
                walk[entry] += 1;
                for _ in 0..1000 {
                    walk[1 + block] += 1;
                    let out: Vec<usize> = ways.iter().filter(|way| way.0 == block).map(|way| way.1).collect();
                    let way = out[below(out.len())];
                    walk[way] += 1;
                    if flow.edges[way].1 == world {
                        walked.push(());
                        counts.iter_mut().zip(&walk).for_each(|(count, walk)| *count += walk);
                        break;
                    }
                    block = flow.edges[way].1 / 2;
                }
            }
            let measured = |measure: &Measure| {
                let number = solved
                    .iter()
                    .enumerate()
                    .position(|(edge, _)| matches!(flow.edges[edge].2, Edge::Countable(other, _) if other == *measure));
                counts[number.expect("it is an edge")]
            };
            let evaluated = values.evaluate(walked.len() as i64, measured);
            for (edge, value) in solved.iter().enumerate() {
                assert_eq!(evaluated[value.index()], counts[edge], "edge {edge} of {flow:?}");
            }
            kept += values.kept().len();
            assert!(values.kept().len() <= blocks + 1, "{} counters for {blocks} blocks", values.kept().len());
        }
        assert!(kept > 300, "{kept}");
    }

    /// A loop in whose middle the flow ends, and begins again as large as it was.
    #[test]
    fn an_edge_with_the_value_of_another_is_not_counted() {
        let (header, latch, world) = (0, 1, 2);
        let counted = |number, cost| {
            let point = ProgramPoint { inst: InstId(number), side: Side::Before };
            Edge::Countable(Measure::Executions { function: 0, point, wide: false }, cost)
        };
        let mut values = Values::default();
        let mut flow = Flow::new(3);
        flow.edge(world, header, Edge::Known(Values::WAVES));
        let saved = flow.edge(header, world, counted(0, 2.0));
        let restored = flow.edge(world, latch, counted(1, 2.0));
        flow.edge(latch, header, counted(2, 1.0));
        let left = flow.edge(latch, world, Edge::Hidden);
        flow.set_same(restored, saved);
        let solved = flow.solve(&mut values).expect("solved");
        // All of them depend on each other: the cheapest is counted.
        let Edge::Countable(cheapest, _) = counted(2, 1.0) else { unreachable!("it is") };
        assert_eq!(values.kept(), [cheapest]);
        let evaluated = values.evaluate(10, |_| 30);
        assert_eq!([saved, restored, left].map(|edge| evaluated[solved[edge].index()]), [40, 40, 10]);
    }

    #[test]
    fn what_cannot_be_counted_and_does_not_follow_is_said() {
        let mut flow = Flow::new(2);
        flow.edge(0, 1, Edge::Hidden);
        flow.edge(1, 0, Edge::Hidden);
        assert!(flow.solve(&mut Values::default()).is_none());
    }
}
