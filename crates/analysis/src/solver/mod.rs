//! The dataflow solver: one engine for every analysis that is a plain fixed point.
//!
//! An [`Analysis`] says what a node does to a state ([`Analysis::transfer`]) and how states of several paths become one
//! ([`Analysis::join`]). A [`Graph`] says along which edges states go, and in which order nodes are visited: the blocks
//! of a body in either direction, its instructions, or the call graph. [`solve`] gives the least solution: the state at
//! the input of each node. [`iterate`] is for values that are not joined along edges, such as the summary of a function
//! from those of its callees.
//!
//! # Order
//! The queued node of the lowest [`Graph::rank`] is visited next. Ranks are a reverse postorder in the direction of the
//! edges, so a node is visited after its predecessors but for those in its own loops. Nothing else decides the order:
//! the same input gives the same visits.
//!
//! # Termination
//! A node is queued again only when [`Analysis::join`] has told that the state at its input changed. `join` must give
//! an upper bound of both states, and tell of a change only if the state grew. Every state that may be stored must then
//! have only finitely many larger ones, which holds for sets of registers and for all enumerations; an analysis whose
//! states have infinitely many, or very many, widens in [`Analysis::join`], which knows the node. If `transfer` is
//! monotone the solution does not depend on the order.
//!
//! ```
//! use wavetap_analysis::solver::{Analysis, Edges, Lattice, solve};
//!
//! /// The nodes on some path to a node, a bit for each.
//! #[derive(Clone, PartialEq, Debug)]
//! struct Passed(u64);
//!
//! impl Lattice for Passed {
//!     fn join(&mut self, other: &Passed) -> bool {
//!         let before = self.0;
//!         self.0 |= other.0;
//!         self.0 != before
//!     }
//! }
//!
//! struct Paths;
//!
//! impl Analysis for Paths {
//!     type Node = usize;
//!     type State = Passed;
//!
//!     fn transfer(&mut self, node: usize, state: &mut Passed) {
//!         state.0 |= 1 << node;
//!     }
//!
//!     fn join(&mut self, _: usize, state: &mut Passed, incoming: &Passed) -> bool {
//!         state.join(incoming)
//!     }
//! }
//!
//! // 0 -> 1 -> 2 -> 1, 3 is not reached.
//! let graph = Edges::new(vec![vec![1], vec![2], vec![1], vec![2]], [0]);
//! let at = solve(&graph, &mut Paths, [(0, Passed(0))]);
//! assert_eq!(at, [Some(Passed(0)), Some(Passed(0b111)), Some(Passed(0b111)), None]);
//! ```

mod graph;
mod queue;

use queue::Queue;

pub use graph::{Edges, Graph, reverse_postorder};

/// States of which any two have an upper bound.
pub trait Lattice: Clone {
    /// Becomes an upper bound of itself and `other`, the least one unless it widens; tells whether that changed it.
    fn join(&mut self, other: &Self) -> bool;
}

/// What may hold on some path.
impl Lattice for bool {
    fn join(&mut self, other: &bool) -> bool {
        let changed = *other && !*self;
        *self |= other;
        changed
    }
}

/// A dataflow analysis, without its graph.
pub trait Analysis {
    /// A node of the graph.
    type Node: Copy;
    /// What is known at the input of a node.
    type State: Clone;

    /// The effect of a node: from the state at its input to the one at its output. Called with larger and larger states
    /// of a node; the last call for a node has the state of the solution.
    fn transfer(&mut self, node: Self::Node, state: &mut Self::State);

    /// Joins what comes from a predecessor with the state at the input of `node`; tells whether that changed it. Most
    /// analyses call [`Lattice::join`]; some widen, or have an upper bound that depends on the node.
    fn join(&mut self, node: Self::Node, state: &mut Self::State, incoming: &Self::State) -> bool;

    /// What goes along an edge, if that is not the state at the output of its node: edges are numbered from 0 in the
    /// order of [`Graph::successors`].
    fn on_edge(&mut self, _from: Self::Node, _number: usize, _output: &Self::State) -> Option<Self::State> {
        None
    }

    /// Whether the state at the input of a node is in the solution. One that is not is moved into
    /// [`Analysis::transfer`], not copied. False is allowed only for nodes with a single predecessor and no boundary
    /// value: what comes from that one replaces what came before.
    fn keeps(&self, _node: Self::Node) -> bool {
        true
    }
}

/// The least solution of an analysis: the state at the input of each node, by [`Graph::index`]; none for nodes that no
/// node with a `boundary` value leads to, and for those that [`Analysis::keeps`] excludes.
pub fn solve<A: Analysis>(
    graph: &impl Graph<Node = A::Node>,
    analysis: &mut A,
    boundary: impl IntoIterator<Item = (A::Node, A::State)>,
) -> Vec<Option<A::State>> {
    let mut inputs: Vec<Option<A::State>> = std::iter::repeat_with(|| None).take(graph.order().len()).collect();
    let mut queue = Queue::new(graph.order().len());
    for (node, state) in boundary {
        inputs[graph.index(node)] = Some(state);
        queue.push(graph.rank(node));
    }
    while let Some(rank) = queue.pop() {
        let node = graph.order()[rank];
        let input = &mut inputs[graph.index(node)];
        let Some(mut state) = (if analysis.keeps(node) { input.clone() } else { input.take() }) else { continue };
        analysis.transfer(node, &mut state);
        let mut state = Some(state);
        let mut successors = graph.successors(node).enumerate().peekable();
        while let Some((number, successor)) = successors.next() {
            let is_last = successors.peek().is_none();
            let own = state.as_ref().and_then(|state| analysis.on_edge(node, number, state));
            let changed = match (&mut inputs[graph.index(successor)], own.as_ref().or(state.as_ref())) {
                (Some(old), Some(incoming)) => analysis.join(successor, old, incoming),
                (unreached, _) if own.is_some() => {
                    *unreached = own;
                    true
                }
                (unreached, _) => {
                    *unreached = if is_last { state.take() } else { state.clone() };
                    true
                }
            };
            if changed {
                queue.push(graph.rank(successor));
            }
        }
    }
    inputs
}

/// Evaluates each node, and again each successor of a node whose evaluation returns true: that its value changed. Ends
/// when no value changes any more; values must only grow, and have only finitely many larger ones.
pub fn iterate<G: Graph>(graph: &G, mut evaluate: impl FnMut(G::Node) -> bool) {
    let mut queue = Queue::new(graph.order().len());
    (0..graph.order().len()).for_each(|rank| queue.push(rank));
    while let Some(rank) = queue.pop() {
        let node = graph.order()[rank];
        if evaluate(node) {
            graph.successors(node).for_each(|successor| queue.push(graph.rank(successor)));
        }
    }
}

#[cfg(test)]
mod tests;
