//! Graphs that states go along.

/// A directed graph with an order of its nodes.
///
/// Edges point in the direction of the analysis: those of a backward analysis from a block to its predecessors.
pub trait Graph {
    /// A node.
    type Node: Copy;

    /// All nodes in the order in which they are visited: reverse postorder, so that predecessors come first but for
    /// those in a loop.
    fn order(&self) -> &[Self::Node];

    /// The place of a node in [`Graph::order`].
    fn rank(&self, node: Self::Node) -> usize;

    /// The number of a node, from 0: results are in the order of these.
    fn index(&self, node: Self::Node) -> usize;

    /// Where states go from a node.
    fn successors(&self, node: Self::Node) -> impl Iterator<Item = Self::Node>;
}

/// A graph of numbered nodes, by its edges.
#[derive(Debug, Clone)]
pub struct Edges {
    successors: Vec<Vec<usize>>,
    order: Vec<usize>,
    ranks: Vec<usize>,
}

impl Edges {
    /// The graph in which edges go from each node to its `successors`; analyses begin at `entries`.
    ///
    /// # Panics
    /// If a successor or an entry is not a number of a node.
    #[must_use]
    pub fn new(successors: Vec<Vec<usize>>, entries: impl IntoIterator<Item = usize>) -> Edges {
        let order = reverse_postorder(successors.len(), entries, |node| successors[node].iter().copied());
        let mut ranks = vec![0; order.len()];
        order.iter().enumerate().for_each(|(rank, node)| ranks[*node] = rank);
        Edges { successors, order, ranks }
    }
}

impl Graph for Edges {
    type Node = usize;

    fn order(&self) -> &[usize] {
        &self.order
    }

    fn rank(&self, node: usize) -> usize {
        self.ranks[node]
    }

    fn index(&self, node: usize) -> usize {
        node
    }

    fn successors(&self, node: usize) -> impl Iterator<Item = usize> {
        self.successors[node].iter().copied()
    }
}

/// The nodes from 0 to `count`, in reverse postorder of a depth-first walk from the entries and then from all others.
pub fn reverse_postorder<I: Iterator<Item = usize>>(
    count: usize,
    entries: impl IntoIterator<Item = usize>,
    successors: impl Fn(usize) -> I,
) -> Vec<usize> {
    let mut order = Vec::with_capacity(count);
    let mut seen = vec![false; count];
    let mut stack: Vec<(usize, I)> = Vec::new();
    for start in entries.into_iter().chain(0..count) {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        stack.push((start, successors(start)));
        while let Some((node, following)) = stack.last_mut() {
            match following.next() {
                Some(next) => {
                    if !std::mem::replace(&mut seen[next], true) {
                        stack.push((next, successors(next)));
                    }
                }
                None => {
                    order.push(*node);
                    stack.pop();
                }
            }
        }
    }
    order.reverse();
    order
}
