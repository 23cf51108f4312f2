//! Graphs: nodes with the nodes they come after, and what an instantiated graph does in which order.

use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::sync::Arc;

use crate::extents::Copy3D;
use crate::handles::handle;
use crate::status::*;
use crate::stream_op::{Step, StreamOp};

/// A node of a graph.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) graph: usize,
    pub(crate) operation: StreamOp,
    /// The nodes that it comes after.
    pub(crate) after: Vec<usize>,
    /// Addresses of its arguments, kept for a caller that asked for them.
    pub(crate) pointers: Vec<usize>,
    /// What a copy was described by, where it was so.
    pub(crate) described: Option<Copy3D>,
    /// Attributes of a kernel that the program has set, as they are in memory.
    pub(crate) attributes: HashMap<c_int, [u8; 32]>,
}

/// A graph: its nodes in the order of their creation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<usize>,
    /// Device memory of its allocation nodes, which it shares with its copies and with what was instantiated from it.
    pub(crate) memory: Vec<Arc<u64>>,
    /// Of a clone: which node each node was cloned from.
    originals: HashMap<usize, usize>,
    /// User objects that live as long as the graph, with the number of references.
    pub(crate) objects: HashMap<usize, u32>,
}

/// An instantiated graph.
#[derive(Debug, Clone)]
pub(crate) struct Executable {
    /// Which of those that were instantiated it is, from 1.
    pub(crate) number: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) flags: u64,
    /// As of the graph: what it needs for as long as it is there.
    pub(crate) memory: Vec<Arc<u64>>,
    pub(crate) objects: HashMap<usize, u32>,
}

/// How to destroy a user object when its last reference is gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UserObject {
    pub(crate) data: usize,
    pub(crate) destroy: crate::stream_op::HostFunction,
    pub(crate) references: u32,
}

/// Everything of graphs, by handle.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    graphs: HashMap<usize, Graph>,
    nodes: HashMap<usize, Node>,
    executables: HashMap<usize, Executable>,
    instantiated: u64,
    pub(crate) objects: HashMap<usize, UserObject>,
}

impl Graphs {
    /// A new, empty graph.
    pub(crate) fn create(&mut self) -> usize {
        let graph = handle();
        self.graphs.insert(graph, Graph::default());
        graph
    }

    pub(crate) fn graph(&self, graph: usize) -> Outcome<&Graph> {
        self.graphs.get(&graph).ok_or(INVALID_VALUE)
    }

    pub(crate) fn graph_mut(&mut self, graph: usize) -> Outcome<&mut Graph> {
        self.graphs.get_mut(&graph).ok_or(INVALID_VALUE)
    }

    pub(crate) fn node(&self, node: usize) -> Outcome<&Node> {
        self.nodes.get(&node).ok_or(INVALID_VALUE)
    }

    pub(crate) fn node_mut(&mut self, node: usize) -> Outcome<&mut Node> {
        self.nodes.get_mut(&node).ok_or(INVALID_VALUE)
    }

    pub(crate) fn executable(&mut self, executable: usize) -> Outcome<&mut Executable> {
        self.executables.get_mut(&executable).ok_or(INVALID_VALUE)
    }

    /// The step of an instantiated graph that was made from a node.
    pub(crate) fn step(&mut self, executable: usize, node: usize) -> Outcome<&mut Step> {
        self.executable(executable)?.steps.iter_mut().find(|step| step.node == node).ok_or(INVALID_VALUE)
    }

    /// Adds a node to a graph.
    pub(crate) fn add(&mut self, graph: usize, operation: StreamOp, after: &[usize]) -> Outcome<usize> {
        let nodes = &self.nodes;
        let distinct: HashSet<usize> = after.iter().copied().collect();
        if distinct.len() != after.len()
            || after.iter().any(|node| nodes.get(node).is_none_or(|node| node.graph != graph))
        {
            return Err(INVALID_VALUE);
        }
        let node = handle();
        self.graph_mut(graph)?.nodes.push(node);
        let new = Node {
            graph,
            operation,
            after: after.to_vec(),
            pointers: Vec::new(),
            described: None,
            attributes: HashMap::new(),
        };
        self.nodes.insert(node, new);
        Ok(node)
    }

    /// Adds or removes edges of a graph.
    pub(crate) fn connect(&mut self, graph: usize, edges: &[(usize, usize)], add: bool) -> Outcome {
        self.graph(graph)?;
        for &(from, to) in edges {
            if self.node(from)?.graph != graph || self.node(to)?.graph != graph || from == to {
                return Err(INVALID_VALUE);
            }
            if self.node(to)?.after.contains(&from) == add {
                return Err(INVALID_VALUE);
            }
            let after = &mut self.node_mut(to)?.after;
            if add { after.push(from) } else { after.retain(|node| *node != from) }
        }
        Ok(())
    }

    /// Pairs of a node and one that comes after it.
    pub(crate) fn edges(&self, graph: usize) -> Outcome<Vec<(usize, usize)>> {
        let mut edges = Vec::new();
        for node in &self.graph(graph)?.nodes {
            edges.extend(self.node(*node)?.after.iter().map(|from| (*from, *node)));
        }
        Ok(edges)
    }

    /// Removes a node and its edges.
    pub(crate) fn remove_node(&mut self, node: usize) -> Outcome {
        let removed = self.nodes.remove(&node).ok_or(INVALID_VALUE)?;
        self.graph_mut(removed.graph)?.nodes.retain(|other| *other != node);
        for other in self.nodes.values_mut() {
            other.after.retain(|before| *before != node);
        }
        if let StreamOp::Child(graph) = removed.operation {
            self.remove(graph)?;
        }
        Ok(())
    }

    /// Removes a graph; gives what it held.
    pub(crate) fn remove(&mut self, graph: usize) -> Outcome<Graph> {
        let removed = self.graphs.remove(&graph).ok_or(INVALID_VALUE)?;
        for node in &removed.nodes {
            if let Some(Node { operation: StreamOp::Child(child), .. }) = self.nodes.remove(node) {
                self.remove(child)?;
            }
        }
        Ok(removed)
    }

    /// Copies a graph and the graphs within it.
    pub(crate) fn copy(&mut self, graph: usize) -> Outcome<usize> {
        let Graph { nodes, memory, .. } = self.graph(graph)?.clone();
        let copy = self.create();
        let mut copies = HashMap::new();
        for node in &nodes {
            copies.insert(*node, handle());
        }
        for node in &nodes {
            let mut new = self.node(*node)?.clone();
            if let StreamOp::Child(child) = new.operation {
                new.operation = StreamOp::Child(self.copy(child)?);
            }
            new.graph = copy;
            new.after.iter_mut().for_each(|before| *before = copies[before]);
            self.nodes.insert(copies[node], new);
        }
        let new = self.graph_mut(copy)?;
        new.memory = memory;
        new.nodes = nodes.iter().map(|node| copies[node]).collect();
        new.originals = copies.iter().map(|(original, copy)| (*copy, *original)).collect();
        Ok(copy)
    }

    /// The node of a clone that was cloned from `original`.
    pub(crate) fn find_in_clone(&self, clone: usize, original: usize) -> Outcome<usize> {
        let graph = self.graph(clone)?;
        graph.nodes.iter().copied().find(|node| graph.originals.get(node) == Some(&original)).ok_or(INVALID_VALUE)
    }

    /// The nodes of a graph in an order that its edges allow; an error if they form a circle.
    ///
    /// Of several nodes that may come next the oldest is taken or, in strict mode, the youngest.
    fn order(&self, graph: usize, youngest: bool) -> Outcome<Vec<usize>> {
        let mut left = self.graph(graph)?.nodes.clone();
        let mut done = HashSet::new();
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let ready = |node: &usize| self.nodes[node].after.iter().all(|before| done.contains(before));
            let at = if youngest { left.iter().rposition(ready) } else { left.iter().position(ready) };
            let node = left.remove(at.ok_or(INVALID_VALUE)?);
            done.insert(node);
            order.push(node);
        }
        Ok(order)
    }

    /// What a graph does in which order.
    pub(crate) fn steps(&self, graph: usize, youngest: bool) -> Outcome<Vec<Step>> {
        let mut steps = Vec::new();
        for node in self.order(graph, youngest)? {
            let of = self.node(node)?;
            let operation = match of.operation {
                StreamOp::Child(child) => StreamOp::Steps(self.steps(child, youngest)?),
                ref operation => operation.clone(),
            };
            steps.push(Step { node, operation, after: of.after.clone(), enabled: true });
        }
        Ok(steps)
    }

    /// Instantiates a graph.
    pub(crate) fn instantiate(&mut self, graph: usize, flags: u64, youngest: bool) -> Outcome<usize> {
        let steps = self.steps(graph, youngest)?;
        let executable = handle();
        let Graph { memory, objects, .. } = self.graph(graph)?.clone();
        self.instantiated += 1;
        let number = self.instantiated;
        self.executables.insert(executable, Executable { number, steps, flags, memory, objects });
        Ok(executable)
    }

    pub(crate) fn remove_executable(&mut self, executable: usize) -> Outcome<Executable> {
        self.executables.remove(&executable).ok_or(INVALID_VALUE)
    }

    /// Gives an instantiated graph the operations of a graph of the same shape; the error says which node differs and
    /// how.
    pub(crate) fn update(
        &mut self,
        executable: usize,
        graph: usize,
        youngest: bool,
    ) -> Outcome<Result<(), (usize, Difference)>> {
        let new = self.steps(graph, youngest)?;
        let old = self.executable(executable)?;
        if let Err(difference) = same_shape(&old.steps, &new) {
            return Ok(Err(difference));
        }
        for (before, after) in old.steps.iter_mut().zip(new) {
            before.operation = after.operation;
        }
        Ok(Ok(()))
    }

    /// All nodes that a node comes after, directly or not, and the node itself.
    pub(crate) fn ancestors(&self, nodes: &[usize]) -> HashSet<usize> {
        let mut found = HashSet::new();
        let mut left = nodes.to_vec();
        while let Some(node) = left.pop() {
            if found.insert(node) {
                left.extend(self.nodes.get(&node).into_iter().flat_map(|node| &node.after));
            }
        }
        found
    }
}

/// Whether steps are of the same sorts in the same order; the error says which one of the new ones differs and how.
pub(crate) fn same_shape(old: &[Step], new: &[Step]) -> Result<(), (usize, Difference)> {
    let places = |steps: &[Step]| steps.iter().enumerate().map(|(at, step)| (step.node, at)).collect::<HashMap<_, _>>();
    let (old_places, new_places) = (places(old), places(new));
    if old.len() != new.len() {
        return Err((new.first().map_or(0, |step| step.node), Difference::Topology));
    }
    for (before, after) in old.iter().zip(new) {
        if std::mem::discriminant(&before.operation) != std::mem::discriminant(&after.operation) {
            return Err((after.node, Difference::Kind));
        }
        let positions = |step: &Step, places: &HashMap<usize, usize>| {
            let mut all: Vec<_> = step.after.iter().map(|node| places.get(node).copied()).collect();
            all.sort_unstable();
            all
        };
        if positions(before, &old_places) != positions(after, &new_places) {
            return Err((after.node, Difference::Topology));
        }
    }
    Ok(())
}

/// Why an instantiated graph cannot take another graph's operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    Topology,
    Kind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_cannot_be_instantiated() {
        let mut graphs = Graphs::default();
        let graph = graphs.create();
        let first = graphs.add(graph, StreamOp::Empty, &[]).unwrap();
        let second = graphs.add(graph, StreamOp::Empty, &[first]).unwrap();
        assert!(graphs.instantiate(graph, 0, false).is_ok());
        graphs.connect(graph, &[(second, first)], true).unwrap();
        assert_eq!(graphs.instantiate(graph, 0, false), Err(INVALID_VALUE));
        assert_eq!(graphs.connect(graph, &[(second, first)], true), Err(INVALID_VALUE), "it is there already");
        graphs.connect(graph, &[(second, first)], false).unwrap();
        assert!(graphs.instantiate(graph, 0, false).is_ok());
    }

    #[test]
    fn the_unkind_order_is_allowed_and_different() {
        let mut graphs = Graphs::default();
        let graph = graphs.create();
        let a = graphs.add(graph, StreamOp::Empty, &[]).unwrap();
        let b = graphs.add(graph, StreamOp::Empty, &[]).unwrap();
        let c = graphs.add(graph, StreamOp::Empty, &[a]).unwrap();
        assert_eq!(graphs.order(graph, false).unwrap(), [a, b, c]);
        assert_eq!(graphs.order(graph, true).unwrap(), [b, a, c]);
    }

    #[test]
    fn clones_remember_their_originals() {
        let mut graphs = Graphs::default();
        let graph = graphs.create();
        let a = graphs.add(graph, StreamOp::Empty, &[]).unwrap();
        let b = graphs.add(graph, StreamOp::Record(5), &[a]).unwrap();
        let clone = graphs.copy(graph).unwrap();
        let copied = graphs.find_in_clone(clone, b).unwrap();
        assert_ne!(copied, b);
        assert_eq!(graphs.node(copied).unwrap().after, [graphs.find_in_clone(clone, a).unwrap()]);
        graphs.remove(graph).unwrap();
        assert!(graphs.node(a).is_err() && graphs.node(copied).is_ok());
    }

    #[test]
    fn updates_need_the_same_shape() {
        let mut graphs = Graphs::default();
        let pair = |graphs: &mut Graphs, second: StreamOp, connected: bool| {
            let graph = graphs.create();
            let a = graphs.add(graph, StreamOp::Empty, &[]).unwrap();
            let b = graphs.add(graph, second, if connected { std::slice::from_ref(&a) } else { &[] }).unwrap();
            (graph, b)
        };
        let (graph, _) = pair(&mut graphs, StreamOp::Record(1), true);
        let executable = graphs.instantiate(graph, 0, false).unwrap();
        let (same, _) = pair(&mut graphs, StreamOp::Record(2), true);
        assert_eq!(graphs.update(executable, same, false), Ok(Ok(())));
        assert!(matches!(graphs.executable(executable).unwrap().steps[1].operation, StreamOp::Record(2)));
        let (loose, node) = pair(&mut graphs, StreamOp::Record(2), false);
        assert_eq!(graphs.update(executable, loose, false), Ok(Err((node, Difference::Topology))));
        let (other, node) = pair(&mut graphs, StreamOp::Wait(2), true);
        assert_eq!(graphs.update(executable, other, false), Ok(Err((node, Difference::Kind))));
    }
}
